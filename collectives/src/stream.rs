//! The stream: all members see all bytes of all members, in order, a window at a time.
//!
//! In the first turn a slot holds the length of its member's bytes and as many of them as fit. From
//! then on everyone knows what everyone has left, so all agree on the layout of each further turn
//! and on which is the last. Small exchanges are over after one turn, that is one synchronisation.

use std::sync::atomic::Ordering;

use transport_core::{Deadline, Driver, Fabric, Group, Memory, Offset, Rank};

use crate::CollectiveError;
use crate::exchange::Exchange;
use crate::layout::GRAIN;

/// The bytes that a member shows.
pub(crate) trait Source {
    /// How many there are.
    fn bytes(&self) -> u64;

    /// Copies `bytes` of them, from the byte `from` on, into the heap. `from` is a multiple of two
    /// words.
    fn copy_in<M: Memory>(&self, memory: &M, at: Offset, from: u64, bytes: u64);
}

impl Source for [u8] {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn copy_in<M: Memory>(&self, memory: &M, at: Offset, from: u64, bytes: u64) {
        memory.copy_in(at, &self[index(from)..index(from + bytes)]);
    }
}

impl Source for [u64] {
    fn bytes(&self) -> u64 {
        8 * self.len() as u64
    }

    fn copy_in<M: Memory>(&self, memory: &M, at: Offset, from: u64, bytes: u64) {
        let mine = &self[index(from / 8)..index((from + bytes) / 8)];
        let words = memory.words(memory.rank(), at, mine.len());
        for (word, value) in words.iter().zip(mine) {
            // Relaxed: ordered by the signal that will announce these bytes.
            word.store(*value, Ordering::Relaxed);
        }
    }
}

/// What a member does with the bytes of all.
pub(crate) trait Sink {
    /// Called once, before any piece. An error ends the stream; it must be one on every member.
    fn lengths(&mut self, group: &Group, lengths: &[u64]) -> Result<(), CollectiveError>;

    /// Called for each piece; those of one member come in order.
    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece);
}

/// Some bytes of a member, readable until the call returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Whose bytes they are.
    pub(crate) index: usize,
    /// The number of the first of them among the member's bytes, a multiple of two words.
    pub(crate) from: u64,
    /// How many.
    pub(crate) bytes: u64,
    /// Where they are.
    pub(crate) home: Rank,
    /// Where they are.
    pub(crate) at: Offset,
}

impl Piece {
    /// Copies all of them out.
    pub(crate) fn copy_out<M: Memory>(&self, memory: &M, into: &mut [u8]) {
        memory.copy_out(self.home, self.at, into);
    }

    /// The words of a piece that has only whole words.
    pub(crate) fn words<'a, M: Memory>(&self, memory: &'a M) -> impl Iterator<Item = u64> + 'a {
        let words = memory.words(self.home, self.at, index(self.bytes / 8));
        // Relaxed: ordered by the counter that ended the turn.
        words.iter().map(|word| word.load(Ordering::Relaxed))
    }
}

/// Runs a stream to its end. `source` is `None` if this member's arguments are wrong: then the
/// stream is an error on all, and nobody waits for ever.
pub(crate) fn run<F, S, K>(
    exchange: &mut Exchange,
    driver: &mut Driver<F>,
    group: &Group,
    (source, sink): (Option<&S>, &mut K),
    deadline: Deadline,
) -> Result<(), CollectiveError>
where
    F: Fabric,
    S: Source + ?Sized,
    K: Sink,
{
    let length = source.map_or(REFUSED, Source::bytes);
    let slot = exchange.first_slot();
    let inline = (slot - HEADER) / GRAIN * GRAIN;

    let at = exchange.begin(|_| slot);
    let fabric = driver.fabric();
    // Relaxed: ordered by the signal that will announce these bytes.
    fabric.words(fabric.rank(), at, 1)[0].store(length, Ordering::Relaxed);
    if let Some(source) = source {
        source.copy_in(fabric, at.plus(HEADER), 0, length.min(inline));
    }
    exchange.meet(driver, |_| slot, deadline)?;

    let mut lengths = std::mem::take(&mut exchange.lengths);
    let fabric = driver.fabric();
    read_lengths(exchange, fabric, &mut lengths);
    refusals(&lengths, group)?;
    sink.lengths(group, &lengths)?;
    show(exchange, fabric, sink, HEADER, |index| {
        (0, lengths[index].min(inline))
    });
    if lengths.iter().any(|length| *length > inline) {
        let rest = Rest {
            sent: inline,
            lengths: &lengths,
        };
        go_on(exchange, driver, rest, (source, sink), deadline)?;
    }
    exchange.lengths = lengths;
    Ok(())
}

/// What is left of everyone's bytes after the first turn.
struct Rest<'a> {
    /// How many of each were shown.
    sent: u64,
    lengths: &'a [u64],
}

/// All turns but the first.
fn go_on<F, S, K>(
    exchange: &mut Exchange,
    driver: &mut Driver<F>,
    rest: Rest<'_>,
    (source, sink): (Option<&S>, &mut K),
    deadline: Deadline,
) -> Result<(), CollectiveError>
where
    F: Fabric,
    S: Source + ?Sized,
    K: Sink,
{
    let me = exchange.me();
    let Rest { sent, lengths } = rest;
    let mut left: Vec<u64> = lengths
        .iter()
        .map(|length| length - sent.min(*length))
        .collect();
    while left.iter().any(|&left| left > 0) {
        let share = exchange.share(&left);
        let amount = |index: usize| left[index].min(share);
        let at = exchange.begin(amount);
        if let Some(source) = source {
            source.copy_in(driver.fabric(), at, lengths[me] - left[me], amount(me));
        }
        exchange.meet(driver, amount, deadline)?;
        show(exchange, driver.fabric(), sink, 0, |index| {
            (lengths[index] - left[index], amount(index))
        });
        left.iter_mut().for_each(|left| *left -= share.min(*left));
    }
    Ok(())
}

fn read_lengths<M: Memory>(exchange: &Exchange, memory: &M, lengths: &mut Vec<u64>) {
    let length = |index| {
        let slot = exchange.slot(index);
        // Relaxed: ordered by the counter that ended the turn.
        memory.words(slot.rank, slot.offset, 1)[0].load(Ordering::Relaxed)
    };
    lengths.clear();
    lengths.extend((0..exchange.members()).map(length));
}

fn refusals(lengths: &[u64], group: &Group) -> Result<(), CollectiveError> {
    if !lengths.contains(&REFUSED) {
        return Ok(());
    }
    Err(CollectiveError::Refused {
        ranks: ranks_where(group, |index| lengths[index] == REFUSED),
    })
}

/// The ranks of the members for which something holds.
pub(crate) fn ranks_where(group: &Group, holds: impl Fn(usize) -> bool) -> Vec<u32> {
    let members = group.members().iter().enumerate();
    let found = members.filter(|(index, _)| holds(*index));
    found.map(|(_, rank)| rank.0).collect()
}

fn show<M: Memory, K: Sink>(
    exchange: &Exchange,
    memory: &M,
    sink: &mut K,
    skip: u64,
    range: impl Fn(usize) -> (u64, u64),
) {
    for index in 0..exchange.members() {
        let (from, bytes) = range(index);
        if bytes > 0 {
            let slot = exchange.slot(index);
            sink.piece(
                memory,
                Piece {
                    index,
                    from,
                    bytes,
                    home: slot.rank,
                    at: slot.offset.plus(skip),
                },
            );
        }
    }
}

/// An amount of bytes in memory as an index.
pub(crate) fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("what is in memory can be indexed")
}

/// The length word of a first slot.
const HEADER: u64 = 8;

/// A length that says: my arguments are wrong.
const REFUSED: u64 = u64::MAX;
