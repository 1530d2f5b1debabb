//! How long does a barrier take, from the last arrival to the last leave?
//!
//! `barrier_latency --ranks 8` starts itself eight times and prints one JSON line; a launcher that
//! speaks PMI-1 may start it too. `--peer futex` asks the same of a barrier written by hand.

use std::process::ExitCode;

use benches::peers::{FutexBarrier, Segment};
use benches::{
    BenchError, Joined, Latency, Launch, Network, Options, OurBarrier, Peer, Role, Subject,
};

const SEGMENT: &str = "TUTTI_BENCH_SEGMENT";

fn main() -> ExitCode {
    let options = Options::from_command_line().without_bytes();
    let done = match Role::of_this_process() {
        Role::Parent => parent(&options),
        Role::Rank => rank(&options),
    };
    done.map_or_else(|error| error.exit_code(), |()| ExitCode::SUCCESS)
}

fn parent(options: &Options) -> Result<(), BenchError> {
    if options.peer == Some(Peer::Tcp) {
        return Err(BenchError::Usage(
            "--peer tcp is a ping-pong, no barrier".into(),
        ));
    }
    let (_memory, path) =
        Segment::create(options.ranks).map_err(|error| BenchError::job("shared memory", error))?;
    let lines = Launch::of_this_program(options.ranks, &options.placement)?
        .env(SEGMENT, &path)
        .run()?;
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

fn rank(options: &Options) -> Result<(), BenchError> {
    if let Some(peer) = options.peer {
        let network = Network::default();
        return print_measured(
            &mut futex(options, peer)?,
            options,
            peer.to_string(),
            network,
        );
    }
    let mut ours = OurBarrier::new(Joined::join(options)?, options)?;
    let (algorithm, network) = (ours.name(), ours.network());
    print_measured(&mut ours, options, algorithm, network)?;
    ours.leave()
}

fn futex(options: &Options, peer: Peer) -> Result<FutexBarrier, BenchError> {
    let (rank, ranks) = benches::told_rank()?;
    let processors = benches::processors();
    if options.pin {
        benches::pin(rank).map_err(|error| BenchError::job("pinning", error))?;
    }
    let path = std::env::var(SEGMENT)
        .map_err(|_| BenchError::Usage("a futex barrier is started by barrier_latency".into()))?;
    let segment =
        Segment::open(&path, ranks).map_err(|error| BenchError::job("shared memory", error))?;
    Ok(FutexBarrier::new(
        segment,
        rank,
        ranks,
        processors,
        peer.yields(),
    ))
}

fn print_measured(
    subject: &mut impl Subject,
    options: &Options,
    algorithm: String,
    network: Network,
) -> Result<(), BenchError> {
    let measured = benches::measure(subject, options)?;
    if subject.rank() == 0 {
        let latency = Latency::new("barrier", options, algorithm, &measured);
        println!("{}", latency.over(network));
    }
    Ok(())
}
