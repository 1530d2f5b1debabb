//! A thread that says "alive" to all agents, whatever holds up the launcher's loop.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

use super::link::Outbox;
use super::silence::ALIVE_EVERY;

/// Ends the thread when it is dropped.
#[derive(Debug)]
pub(super) struct Alive {
    _stop: Sender<()>,
}

impl Alive {
    pub(super) fn say_to(agents: Vec<Arc<Outbox>>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let talk = move || {
            while stopped.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                agents.iter().for_each(|agent| agent.say_alive());
            }
        };
        let thread = std::thread::Builder::new().name("tutti-alive".to_owned());
        thread.spawn(talk)?;
        Ok(Self { _stop: stop })
    }
}
