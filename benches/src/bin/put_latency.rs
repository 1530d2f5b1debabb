//! How long does a put take, until its signal is seen at the other rank?
//!
//! `put_latency --bytes 4096 --fabric tcp` starts itself twice and prints one JSON line. Two ranks
//! put to each other in turns; a figure is half of there and back. `--peer tcp` asks the same of a
//! TCP connection written by hand. Each put carries other bytes, and they are checked after every
//! repetition.

use std::process::ExitCode;

use benches::peers::TcpPingPong;
use benches::{BenchError, Joined, Latency, Launch, Network, Options, OurPut, Peer, Role, Subject};

fn main() -> ExitCode {
    let options = Options::from_command_line();
    let done = match Role::of_this_process() {
        Role::Parent => parent(&options),
        Role::Rank => rank(&options),
    };
    done.map_or_else(|error| error.exit_code(), |()| ExitCode::SUCCESS)
}

fn parent(options: &Options) -> Result<(), BenchError> {
    if let Some(peer) = options.peer.filter(|peer| *peer != Peer::Tcp) {
        let what = format!("--peer {peer} is a barrier; it cannot put");
        return Err(BenchError::Usage(what));
    }
    for line in Launch::of_this_program(options.ranks, &options.placement)?.run()? {
        println!("{line}");
    }
    Ok(())
}

fn rank(options: &Options) -> Result<(), BenchError> {
    if let Some(peer) = options.peer {
        let mut stream = TcpPingPong::join(options.bytes, benches::processors())?;
        let network = Network {
            fabric: "socket".into(),
            ..Network::default()
        };
        print_measured(&mut stream, options, peer.to_string(), network)?;
        return stream.leave();
    }
    let mut ours = OurPut::new(Joined::join(options)?, options.bytes)?;
    let network = ours.network();
    print_measured(&mut ours, options, "put and signal".into(), network)?;
    ours.leave()
}

fn print_measured(
    subject: &mut impl Subject,
    options: &Options,
    algorithm: String,
    network: Network,
) -> Result<(), BenchError> {
    let measured = benches::measure(subject, options)?.one_way();
    if subject.rank() == 0 {
        let latency = Latency::new("put", options, algorithm, &measured);
        println!("{}", latency.over(network));
    }
    Ok(())
}
