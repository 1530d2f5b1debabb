//! A libfabric for tests: providers that behave like hardware, between threads of one process.
//!
//! Programs open it as they open the real library (`TUTTI_LIBFABRIC=.../libfabric_double.so`) and
//! find the providers of [`PROVIDERS`] in it. Each promises what a provider of that name promises,
//! keeps no more than that, and punishes what hardware would punish: bytes land late and in pieces
//! in any order, buffers are read as late as allowed, completions come as early as allowed. What a
//! real network would answer with silent damage ends the process with one line on standard error:
//! a buffer that is not registered, an object that is used after it was closed, one that is closed
//! too early.
//!
//! It is one world behind one lock, moved on by whoever reads a completion queue, or by a thread
//! where the hardware needs nobody. Which bytes land next is drawn from a fixed seed, but threads
//! race for the draws.

mod atomics;
mod closing;
mod info;
mod memory;
mod objects;
mod operation;
mod personality;
mod post;
mod progress;
mod queue;
mod random;
mod raw;
mod rma;
mod symbols;
mod wire;
mod world;

pub use personality::PROVIDERS;
