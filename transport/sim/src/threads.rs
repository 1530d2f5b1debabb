//! Blocking code on the simulated fabric: a thread per rank, one of which runs at a time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use transport_core::Rank;

use crate::stage::{Stage, Stopped};
use crate::{Failure, Sim, SimError, SimFabric};

impl Sim {
    /// Runs code that waits, usually through a `Driver`, on every rank, and yields what the ranks
    /// return, by rank; a rank lost through the adversary returns nothing.
    ///
    /// Each rank has a thread, but only one runs at a time: it goes on until it pauses, and then
    /// virtual time passes until one has to run. Reading the time of the machine or talking to
    /// each other past the fabric would break that.
    ///
    /// *Deadlock.* A driver that waits sleeps in slices of 10 ms, so ranks that wait for ever never
    /// sleep for ever. Hence it is a deadlock when nothing has happened for the
    /// [patience](Self::patience) but slices that ended: nothing was in flight, no rank posted,
    /// computed (a `Pause::Block` without watches), started or ended. A rank with an earlier
    /// deadline gets its timeout before.
    ///
    /// *Polling.* A loop that calls `progress`, `finished` or a full `post` without pausing makes
    /// time pass after a few turns, so it ends too.
    ///
    /// A rank that panics is lost to the others, as a process would be.
    ///
    /// # Errors
    /// The panic, deadlock, broken rule or limit that ended the simulation. All threads have ended
    /// by then.
    pub fn threads<T, B>(&self, body: B) -> Result<Vec<T>, SimError>
    where
        T: Send,
        B: Fn(SimFabric) -> T + Sync,
    {
        let stage = self.stage_for_threads();
        let outputs = thread::scope(|scope| {
            let spawned = (0..self.size()).map(Rank).map(|rank| {
                let fabric = self.fabric(rank, &stage);
                let (stage, body) = (Arc::clone(&stage), &body);
                thread::Builder::new()
                    .name(format!("{rank}"))
                    .spawn_scoped(scope, move || play(rank, fabric, &stage, body))
                    .map_err(|error| Failure::NoThread(rank, error.to_string()))
            });
            let spawned: Vec<_> = spawned.collect();
            let (threads, errors): (Vec<_>, Vec<_>) = spawned.into_iter().partition(Result::is_ok);
            begin(
                &stage,
                self.size(),
                errors.into_iter().find_map(Result::err),
            );
            let threads = threads.into_iter().flatten();
            let joined = threads.map(|thread| thread.join().expect("its panics were caught"));
            joined.collect::<Vec<Option<T>>>()
        });
        match stage.lock().world.failed() {
            Some(error) => Err(error),
            None => Ok(outputs.into_iter().flatten().collect()),
        }
    }
}

/// Lets all ranks enter, or none if there is a failure already.
fn begin(stage: &Stage, size: u32, failure: Option<Failure>) {
    let mut play = stage.lock();
    if let Some(failure) = failure {
        play.world.fail(failure);
    }
    for rank in (0..size).map(Rank) {
        play.world.enter(rank, 0);
    }
    stage.pass(&mut play);
}

/// The life of a rank's thread.
fn play<T>(
    rank: Rank,
    fabric: SimFabric,
    stage: &Stage,
    body: impl Fn(SimFabric) -> T,
) -> Option<T> {
    let mut output = None;
    if stage.take_turn(rank, stage.lock()) {
        stage.lock().world.entered(rank);
        match catch_unwind(AssertUnwindSafe(|| body(fabric))) {
            Ok(value) => {
                stage.lock().world.left(rank);
                output = Some(value);
            }
            Err(payload) if payload.is::<Stopped>() => {}
            Err(payload) => {
                let mut play = stage.lock();
                play.world.die(rank);
                let message = message(payload.as_ref());
                play.world.note_panic(rank, message);
            }
        }
    }
    stage.leave(rank);
    output
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a payload without text")
        .to_owned()
}
