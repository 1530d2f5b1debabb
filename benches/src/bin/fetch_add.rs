//! How long does a fetch-add take, alone and when all ranks want the same counter?
//!
//! `fetch_add --ranks 4 --fabric tcp --contended` starts itself four times and prints one JSON
//! line. The counter is the last rank's; alone the first rank adds and the others wait. What is
//! fetched is checked, and in the end that no addition was lost.

use std::process::ExitCode;

use benches::{BenchError, Joined, Latency, Launch, Options, OurFetchAdd, Role, Subject};

fn main() -> ExitCode {
    let options = Options::from_command_line().without_bytes();
    let done = match Role::of_this_process() {
        Role::Parent => parent(&options),
        Role::Rank => rank(&options),
    };
    done.map_or_else(|error| error.exit_code(), |()| ExitCode::SUCCESS)
}

fn parent(options: &Options) -> Result<(), BenchError> {
    if let Some(peer) = options.peer {
        let what = format!("--peer {peer} cannot add");
        return Err(BenchError::Usage(what));
    }
    for line in Launch::of_this_program(options.ranks, &options.placement)?.run()? {
        println!("{line}");
    }
    Ok(())
}

fn rank(options: &Options) -> Result<(), BenchError> {
    let mut ours = OurFetchAdd::new(Joined::join(options)?, options.contended)?;
    let measured = benches::measure(&mut ours, options)?;
    let (rank, network, atomics) = (ours.rank(), ours.network(), ours.atomics());
    // A lost addition is no result, so the last look comes before the line.
    ours.leave()?;
    if rank == 0 {
        let question = if options.contended {
            "fetch_add_contended"
        } else {
            "fetch_add"
        };
        let latency = Latency::new(question, options, atomics, &measured);
        println!("{}", latency.over(network));
    }
    Ok(())
}
