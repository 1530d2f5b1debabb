//! A barrier between processes, or between threads where no launcher has started this one:
//! `mpirun -np 4 target/debug/examples/barrier`, or the program alone.

use collectives::Communicator;
use transport::bootstrap::{Bootstrap, server::PmiServer};
use transport_core::{Deadline, Driver, Nanos};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn rank(mut peers: Bootstrap) -> Result<(), Failure> {
    let fabric = transport::open(&mut peers, &transport::Options::default())?;
    let mut driver = Driver::new(fabric);
    let mut world = Communicator::world(&mut driver)?;
    for _ in 0..1_000 {
        world.barrier(&mut driver, Deadline::Within(Nanos::seconds(60)))?;
    }
    println!("rank {} of {}: 1000 barriers", world.index(), world.size());
    driver.into_fabric().close();
    Ok(peers.finalize()?)
}

fn main() -> Result<(), Failure> {
    let peers = Bootstrap::from_env()?;
    if peers.size() > 1 {
        return rank(peers);
    }
    let (mut server, ends) = PmiServer::new(&[0; 4])?;
    std::thread::scope(|scope| {
        let start = |(number, end)| scope.spawn(move || rank(Bootstrap::over(end, number, 4)?));
        let ranks: Vec<_> = (0..).zip(ends).map(start).collect();
        while !ranks.iter().all(|rank| rank.is_finished()) {
            server.turn(std::time::Duration::from_millis(10))?;
        }
        ranks
            .into_iter()
            .try_for_each(|rank| rank.join().map_err(|_| "a rank panicked")?)
    })
}

#[test]
fn threads_that_nobody_launched_meet() {
    main().unwrap();
}
