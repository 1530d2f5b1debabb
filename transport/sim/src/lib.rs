//! A deterministic fabric in virtual time, for tests of everything above the fabric.
//!
//! A [`Sim`] has ranks on nodes, a [`Network`] that says what operations cost, an [`Adversary`]
//! that uses every freedom that `docs/fabric-contract.md` leaves to a fabric, and a seed. It runs
//!
//! - *protocols* ([`Sim::run`], [`Sim::rounds`]): state machines in one thread, thousands of ranks;
//! - *blocking code* ([`Sim::threads`]): a thread per rank, of which one runs at a time.
//!
//! What happens is a function of the seed: the same seed gives the same trace. Oracles watch that
//! counters only grow, that the rules for changing them are kept ([`Violation`]), that somebody can
//! go on ([`Failure::Deadlock`]) and, on request, that a run was a barrier
//! ([`Run::check_barrier`]).
//!
//! ```
//! use transport_core::{Await, Counter, Memory, Op, Outcome, Protocol, Rank, Signal, Step};
//! use transport_core::{Topology, Watch};
//! use transport_sim::{Adversary, Network, Sim};
//!
//! /// Tells everyone, waits for everyone.
//! struct Naive(u32);
//!
//! impl Protocol for Naive {
//!     type Output = ();
//!
//!     fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
//!         let counter = Counter::Network(0);
//!         let size = memory.topology().size();
//!         match last {
//!             Outcome::Ready(_) => Step::Done(()),
//!             _ if self.0 < size => {
//!                 self.0 += 1;
//!                 let signal = Signal::Add { counter, amount: 1 };
//!                 Step::Post(Op::Notify { to: Rank(self.0 - 1), signal })
//!             }
//!             _ => Step::Await(Await::Counter(Watch {
//!                 home: memory.rank(),
//!                 counter,
//!                 at_least: size.into(),
//!             })),
//!         }
//!     }
//! }
//!
//! let sim = Sim::new(Topology::blocks(8, 4), Network::default(), 7);
//! for (_, adversary) in Adversary::mandatory(7) {
//!     let sim = sim.clone().adversary(adversary.withholding(Rank(3)));
//!     let run = sim.run(|_, _| Naive(0)).unwrap();
//!     run.check_barrier().unwrap();
//!     assert_eq!(run.messages.network.adds, 64);
//! }
//! ```
#![forbid(unsafe_code)]

mod adversary;
pub mod conformance;
mod error;
mod fabric;
mod heaps;
mod messages;
mod network;
mod run;
mod sim;
mod stage;
mod threads;
mod trace;
mod world;

pub use adversary::{Adversary, Interruption, Link};
pub use error::{Failure, SimError, Stuck, StuckIn, Violation};
pub use fabric::SimFabric;
pub use messages::{Counts, Messages};
pub use network::Network;
pub use run::Run;
pub use sim::Sim;
pub use trace::{Trace, TraceEvent, TraceLine};
