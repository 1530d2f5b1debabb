//! Who am I, and where is everyone?

mod rendezvous;

pub use rendezvous::{Rendezvous, RendezvousError};
