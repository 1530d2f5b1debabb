//! What ours is compared with: things one would write by hand.
//!
//! The other peers are programs of their own (`benches/peers/`), for they need MPI.

mod futex;
mod segment;
mod stream;

pub use futex::FutexBarrier;
pub use segment::{Segment, SegmentError};
pub use stream::TcpPingPong;
