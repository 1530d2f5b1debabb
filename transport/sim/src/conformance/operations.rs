//! Cases about operations: room, tickets, and signals after bytes.

use transport_core::{
    Counter, Deadline, Fabric, Nanos, Pause, Place, PostError, Posted, Rank, Signal, Ticket,
};

use super::stand::{GUARD, Stand, ensure};
use super::steps::{Until, add, fetch_add, notify, pattern, put, set};

/// More than any queue is likely to hold.
const FLOOD: u64 = 300;

/// Sizes of puts around words, cache lines and what leaves at once.
const SIZES: [u64; 9] = [0, 1, 7, 8, 9, 64, 65, 1_000, 4_096];

/// A refused operation has no effect, and room comes back.
pub(super) fn backpressure<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let counter = stand.network(0);
    if !stand.adds(counter) {
        return Ok(());
    }
    let (_, ahead) = stand.partners(1);
    let mut tickets = Vec::new();
    let until = stand.patience();
    let mut posted = 0;
    while posted < FLOOD {
        let fabric = stand.driver.fabric_mut();
        match fabric.post(notify(ahead, add(counter, 1))) {
            Ok(Posted::InFlight(ticket)) => tickets.push(ticket),
            Ok(Posted::Finished(_)) => {}
            Err(PostError::Full) => {
                turn(stand, until, "room in the queue")?;
                continue;
            }
            Err(error) => return Err(error.to_string()),
        }
        posted += 1;
    }
    finish(stand, &mut tickets)?;
    let total = stand.base + FLOOD;
    let reached = stand.reach(stand.me, counter, total)?;
    ensure!(
        reached == total,
        "{FLOOD} accepted adds made {}",
        reached - stand.base
    );
    stand.meet()?;
    let later = stand.driver.fabric().load(stand.me, counter);
    ensure!(
        later == total,
        "a refused add came later: {}",
        later - stand.base
    );
    Ok(())
}

/// One turn of a waiting loop.
fn turn<F: Fabric>(stand: &mut Stand<'_, F>, until: Nanos, what: &str) -> Result<(), String> {
    let fabric = stand.driver.fabric_mut();
    fabric.progress().map_err(|error| error.to_string())?;
    fabric.pause(Pause::Yield);
    ensure!(fabric.now() < until, "waited too long for {what}");
    Ok(())
}

/// Waits until operations are finished.
fn finish<F: Fabric>(stand: &mut Stand<'_, F>, tickets: &mut Vec<Ticket>) -> Result<(), String> {
    let until = stand.patience();
    loop {
        let fabric = stand.driver.fabric_mut();
        tickets.retain(|&ticket| fabric.finished(ticket).is_none());
        if tickets.is_empty() {
            return Ok(());
        }
        turn(stand, until, "operations to finish")?;
    }
}

/// Once a put is finished its source may be overwritten.
pub(super) fn reuse<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let me = stand.me;
    let bytes = stand.chunk;
    for round in 1..=6_u32 {
        let (behind, ahead) = stand.partners(round);
        let value = stand.base + u64::from(round);
        let number = |rank: Rank| u64::from(round * 1_000 + rank.0);
        let source = stand.source(me);
        let fabric = stand.driver.fabric();
        fabric.copy_in(source.offset, &pattern(number(me), bytes));
        let to = stand.target(ahead, me);
        let signal = set(stand.network(0), value);
        stand.post(put(source, to, bytes, signal))?;
        let fabric = stand.driver.fabric();
        fabric.copy_in(source.offset, &vec![0xee; bytes as usize]);
        stand.reach(me, stand.network(0), value)?;
        let read = stand.bytes(stand.target(me, behind), bytes);
        let sent = pattern(number(behind), bytes);
        ensure!(
            read == sent,
            "{behind}'s put of {bytes} bytes was not read before its end"
        );
        stand.meet()?;
    }
    Ok(())
}

/// Whoever sees a put's signal, a set, sees all its bytes, and no other bytes have changed.
pub(super) fn signals<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    announced(stand, set)
}

/// The same for signals that add.
pub(super) fn added_signals<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    announced(stand, |counter, _| add(counter, 1))
}

fn announced<F: Fabric>(
    stand: &mut Stand<'_, F>,
    signal: impl Fn(Counter, u64) -> Signal + Copy,
) -> Result<(), String> {
    for distance in 0..stand.size {
        for (index, bytes) in (0..).zip(SIZES) {
            let parcel = Parcel {
                distance,
                index,
                bytes: bytes.min(stand.chunk),
            };
            parcel.send(stand, signal)?;
            parcel.check(stand, signal)?;
            stand.meet()?;
        }
    }
    Ok(())
}

/// What every rank sends to the one so far ahead.
#[derive(Clone, Copy)]
struct Parcel {
    distance: u32,
    /// Which of the sizes it has.
    index: u64,
    bytes: u64,
}

impl Parcel {
    fn send<F: Fabric>(
        self,
        stand: &mut Stand<'_, F>,
        signal: impl Fn(Counter, u64) -> Signal + Copy,
    ) -> Result<(), String> {
        let me = stand.me;
        let (_, ahead) = stand.partners(self.distance);
        let (from, to) = (stand.source(me), stand.target(ahead, me));
        // The source goes on behind what is sent, so that too long a put is seen.
        let content = pattern(self.number(me), self.bytes + GUARD);
        stand.driver.fabric().copy_in(from.offset, &content);
        for (counter, value) in self.announcers(stand, ahead, signal) {
            stand.post(put(from, to, self.bytes, signal(counter, value)))?;
        }
        Ok(())
    }

    /// Looks at what came to each rank of this node.
    fn check<F: Fabric>(
        self,
        stand: &mut Stand<'_, F>,
        signal: impl Fn(Counter, u64) -> Signal + Copy,
    ) -> Result<(), String> {
        for home in stand.mates() {
            let sender = self.sender(stand, home);
            for (counter, value) in self.announcers(stand, home, signal) {
                stand.reach(home, counter, value)?;
                let at = stand.target(home, sender);
                let read = stand.bytes(at, self.bytes);
                let sent = pattern(self.number(sender), self.bytes);
                let wrong = read.iter().zip(&sent).position(|(read, sent)| read != sent);
                if let Some(byte) = wrong {
                    let bytes = self.bytes;
                    let what = format!("{counter} of {home} announced {bytes} bytes of {sender}");
                    return Err(format!("{what}, but byte {byte} is wrong"));
                }
                let offset = at.offset.plus(stand.chunk);
                let guard = stand.bytes(Place { offset, ..at }, GUARD);
                ensure!(
                    guard == [0; GUARD as usize],
                    "{sender}'s put wrote behind its end"
                );
            }
        }
        Ok(())
    }

    fn number(self, sender: Rank) -> u64 {
        let number = (u64::from(self.distance) * 100 + self.index) << 32;
        number + u64::from(sender.0)
    }

    fn sender<F: Fabric>(self, stand: &Stand<'_, F>, home: Rank) -> Rank {
        Rank((home.0 + stand.size - self.distance) % stand.size)
    }

    /// The counters that announce this parcel at a rank, and the values that they reach with it:
    /// each parcel before it has raised them by one.
    fn announcers<F: Fabric>(
        self,
        stand: &Stand<'_, F>,
        home: Rank,
        signal: impl Fn(Counter, u64) -> Signal,
    ) -> Vec<(Counter, u64)> {
        let topology = stand.driver.fabric().topology();
        let near = |distance| {
            let sender = Rank((home.0 + stand.size - distance) % stand.size);
            topology.are_mates(home, sender)
        };
        let sizes = SIZES.len() as u64;
        let value = |distances: u64| stand.base + distances * sizes + self.index + 1;
        let mut announcers = vec![(stand.network(0), value(self.distance.into()))];
        if near(self.distance) {
            let nearer = (0..self.distance).filter(|&distance| near(distance));
            announcers.push((stand.node(0), value(nearer.count() as u64)));
        }
        announcers.retain(|&(counter, value)| match signal(counter, value) {
            Signal::Add { .. } => stand.adds(counter),
            Signal::Set { .. } => true,
        });
        announcers
    }
}

/// A put and an add to oneself work like any other.
pub(super) fn oneself<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let me = stand.me;
    for index in 0..2 {
        let counter = [stand.node(0), stand.network(0)][index as usize];
        let bytes = stand.chunk.min(500);
        let (from, to) = (stand.source(me), stand.target(me, me));
        let number = u64::from(me.0 * 2 + index);
        let fabric = stand.driver.fabric();
        fabric.copy_in(from.offset, &pattern(number, bytes));
        let value = stand.base + 1;
        stand.post(put(from, to, bytes, set(counter, value)))?;
        stand.reach(me, counter, value)?;
        let read = stand.bytes(to, bytes);
        ensure!(
            read == pattern(number, bytes),
            "{counter} announced other bytes"
        );
        let counter = [stand.node(1), stand.network(1)][index as usize];
        if stand.adds(counter) {
            stand.post(notify(me, add(counter, 2)))?;
            stand.reach(me, counter, stand.base + 2)?;
            let before = stand.post(fetch_add(me, counter, 3))?;
            ensure!(before == stand.base + 2, "{before} was fetched");
            stand.reach(me, counter, stand.base + 5)?;
        }
    }
    Ok(())
}

/// The source of a put may be a node-mate's heap, and its target any rank.
pub(super) fn mates<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let me = stand.me;
    let bytes = stand.chunk.min(200);
    let source = stand.source(me);
    let fabric = stand.driver.fabric();
    fabric.copy_in(source.offset, &pattern(me.0.into(), bytes));
    stand.meet()?;
    for distance in 0..stand.size {
        let (behind, ahead) = stand.partners(distance);
        let value = stand.base + u64::from(distance) + 1;
        let from = stand.source(next_mate(stand, me));
        let to = stand.target(ahead, me);
        let signal = set(stand.network(0), value);
        stand.post(put(from, to, bytes, signal))?;
        stand.reach(me, stand.network(0), value)?;
        let owner = next_mate(stand, behind);
        let read = stand.bytes(stand.target(me, behind), bytes);
        let sent = pattern(owner.0.into(), bytes);
        ensure!(
            read == sent,
            "{behind} sent {owner}'s bytes, other ones came"
        );
        stand.meet()?;
    }
    Ok(())
}

/// The next rank of a rank's node.
fn next_mate<F: Fabric>(stand: &Stand<'_, F>, rank: Rank) -> Rank {
    let topology = stand.driver.fabric().topology();
    let mates = topology.mates(rank);
    let after = mates.iter().find(|&&mate| mate > rank);
    *after.unwrap_or(&mates[0])
}

/// A ticket yields its value once.
pub(super) fn tickets<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let (_, ahead) = stand.partners(1);
    let counter = stand.network(0);
    if !stand.adds(counter) {
        return Ok(());
    }
    let until = stand.patience();
    let posted = loop {
        match stand.driver.fabric_mut().post(fetch_add(ahead, counter, 5)) {
            Ok(posted) => break posted,
            Err(PostError::Full) => turn(stand, until, "room in the queue")?,
            Err(error) => return Err(error.to_string()),
        }
    };
    let value = match posted {
        Posted::Finished(value) => value,
        Posted::InFlight(ticket) => {
            let value = loop {
                if let Some(value) = stand.driver.fabric_mut().finished(ticket) {
                    break value;
                }
                turn(stand, until, "a fetch-add to finish")?;
            };
            let again = stand.driver.fabric_mut().finished(ticket);
            ensure!(
                again.is_none(),
                "the ticket yielded {value}, then {again:?}"
            );
            value
        }
    };
    ensure!(
        value == stand.base,
        "{value} was fetched, not {}",
        stand.base
    );
    let watch = transport_core::Watch {
        home: stand.me,
        counter,
        at_least: stand.base + 5,
    };
    let until = Deadline::At(until);
    let reached = stand.driver.run(Until(watch), until);
    reached.map(|_| ()).map_err(|error| error.to_string())
}
