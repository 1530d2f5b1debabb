//! Starts the processes of a job, serves their rendezvous, reads what they say, and leaves nothing
//! behind.
//!
//! A [`Launch`] says what to start; [`Launch::start`] makes it a [`Job`], whose one loop,
//! [`Job::next`], yields [`Event`]s: lines of output, lines of reports, exits. The first process
//! that fails decides the job's fate; the others are stopped. Each process finds its rank by PMI-1
//! (see [`bootstrap`](crate::bootstrap)), so programs that use MPICH or Intel MPI run too.
//!
//! Processes on other hosts are started by an *agent* there, which is [`serve_agent`] with its
//! standard streams connected to the launcher, by ssh for example. It runs the same code as a
//! launcher, and passes on what its processes say.
//!
//! All processes of a job on one host are one process group. A job ends by killing what is left of
//! the group, and every process elsewhere that carries the job's mark in its environment. If the
//! launcher itself is killed, the kernel kills its children and a guard process kills their group.

mod attentive;
mod crew;
mod error;
mod event;
mod guard;
mod hosts;
mod job;
mod judge;
mod leftovers;
mod pipe;
mod process;
mod program;
mod spec;
mod start;
mod watch;

pub use error::LaunchError;
pub use event::{Cause, Event, Failure, Status, Stream};
pub use hosts::serve_agent;
pub use job::Job;
pub use program::find_program;
pub use spec::{HostSpec, Launch, ProcessSpec};
