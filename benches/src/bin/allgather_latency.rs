//! How long does an allgather take, from the last arrival to the last leave?
//!
//! `allgather_latency --ranks 8 --bytes 4096` starts itself eight times and prints one JSON line; a
//! launcher that speaks PMI-1 may start it too. Each call carries other bytes, and they are checked
//! after every repetition.

use std::process::ExitCode;

use benches::{BenchError, Joined, Latency, Launch, Options, OurAllgather, Role, Subject};

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let done = match Role::of_this_process() {
        Role::Parent => parent(&options),
        Role::Rank => rank(&options),
    };
    done.map_or_else(|error| error.exit_code(), |()| ExitCode::SUCCESS)
}

fn parent(options: &Options) -> Result<(), BenchError> {
    if options.peer.is_some() {
        return Err(BenchError::Usage(
            "--peer is a barrier; it cannot gather".into(),
        ));
    }
    for line in Launch::of_this_program(options.ranks, &options.placement)?.run()? {
        println!("{line}");
    }
    Ok(())
}

fn rank(options: &Options) -> Result<(), BenchError> {
    let mut ours = OurAllgather::new(Joined::join(options)?, options.bytes);
    let measured = benches::measure(&mut ours, options)?;
    if ours.rank() == 0 {
        let latency = Latency::new("allgather", options, "auto".into(), &measured);
        println!("{}", latency.over(ours.network()));
    }
    ours.leave()
}
