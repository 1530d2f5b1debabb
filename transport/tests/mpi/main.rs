//! Ranks that use MPI meet by a communicator of it, and open their fabric so.
//!
//! `cargo test -p transport --features mpi --test mpi`, with the MPI that `mpicc` names.

#[path = "../support/ended.rs"]
mod ended;

use std::process::Command;

use mpi::traits::Communicator;
use transport::bootstrap::{MpiRendezvous, Rendezvous};
use transport::{Options, open};
use transport_core::{Memory, Rank};

const ROLE: &str = "TUTTI_TEST_MPI";

/// Does nothing in a test run; as a rank of MPI, exchanges values and opens a fabric.
#[test]
fn acts_as_a_rank() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let size = u32::try_from(world.size()).unwrap();
    let mut peers = MpiRendezvous::new(&world);
    let rank = peers.rank().0;
    for round in 0..3 {
        let value = |rank: u32| format!("{round}.{}", "x".repeat(100 * rank as usize));
        if rank != 1 {
            // Not every rank has something to say.
            peers
                .publish(&format!("k{round}-{rank}"), &value(rank))
                .unwrap();
        }
        peers.fence().unwrap();
        for other in 0..size {
            let expected = (other != 1).then(|| value(other));
            assert_eq!(
                peers.lookup(&format!("k{round}-{other}")).unwrap(),
                expected
            );
        }
    }
    let fabric = open(&mut peers, &Options::default()).unwrap();
    assert_eq!(fabric.rank(), Rank(rank));
    assert_eq!(fabric.topology().size(), size);
    fabric.close();
    // One write, so that the ranks' lines do not mix.
    println!("\n<{rank} of {size}>");
}

#[test]
fn ranks_that_use_mpi_meet_by_its_communicator() {
    for size in [1_u32, 2, 5] {
        let mut command = Command::new("mpirun");
        command.env(ROLE, "1").env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.args(["--oversubscribe", "-np", &size.to_string()]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", "acts_as_a_rank", "--nocapture"]);

        let ended = ended::run(&mut command);

        assert!(ended.status.success(), "{}", ended.said);
        for rank in 0..size {
            let line = format!("<{rank} of {size}>");
            assert!(
                ended.said.contains(&line),
                "{line} is not in\n{}",
                ended.said
            );
        }
    }
}
