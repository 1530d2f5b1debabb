//! Rings: every home makes room for the streams that end there and tells senders and readers.
//!
//! A sender asks the home of each of its streams; with the request go its credit counters and the
//! list of readers. The home answers with the ring, and passes everything on to the readers.

use std::collections::BTreeMap;

use transport_core::{Counter, Fabric, Offset, Rank, WORD_BYTES};

use super::agree::Agreed;
use super::routes::Routes;
use super::wire::{Malformed, Reader, Writer};
use super::{Setup, build};
use crate::Error;
use crate::port::Outputs;
use crate::stream::{Exchange, Ring, Slots};

/// Messages by the rank they go to.
type Letters = BTreeMap<u32, Writer>;

/// Makes the streams of this rank. Collective over the job; whatever fails on one rank fails on
/// all, before they go on to the next round.
pub(super) fn connect<F: Fabric>(
    setup: &mut Setup<F>,
    agreed: &Agreed,
    routes: Routes,
) -> Result<(Exchange, Outputs), Error> {
    let asked = ask(setup, agreed, &routes);
    let (requests, credits) = setup.all_succeed(asked)?;
    let requested = setup.world.exchange(&mut setup.driver, requests)?;
    let answers = make_room(setup, agreed, &requested);
    let answers = setup.all_succeed(answers)?;
    let answered = setup.world.exchange(&mut setup.driver, answers)?;
    let built = build::build(setup, agreed, routes, credits, &answered);
    setup.all_succeed(built)
}

/// A stream of this rank, by connection and position in the plan.
pub(super) type StreamKey = (usize, usize);

/// Requests to the homes of this rank's streams.
fn ask<F: Fabric>(
    setup: &mut Setup<F>,
    agreed: &Agreed,
    routes: &Routes,
) -> Result<(Letters, BTreeMap<StreamKey, Slots>), Error> {
    let me = setup.driver.fabric().rank();
    let (mut letters, mut credits) = (Letters::new(), BTreeMap::new());
    for (&connection, plan) in &routes.plans {
        let application = setup.job.connections[connection].receiver.application;
        for (position, readers) in plan.streams.iter().enumerate() {
            let home = agreed.members[application][readers[0] as usize];
            let near = setup.driver.fabric().topology().are_mates(me, home);
            let credit = counters(setup.driver.fabric_mut(), near, SLOTS)?;
            letters
                .entry(home.0)
                .or_default()
                .number(connection as u64)
                .number(position as u64)
                .number(u64::from(setup.rank()))
                .slots(&credit)
                .numbers(readers.iter().map(|&number| u64::from(number)));
            credits.insert((connection, position), credit);
        }
    }
    Ok((letters, credits))
}

/// A stream that wants to end here.
struct Request {
    sender: Rank,
    connection: usize,
    position: u64,
    number: u32,
    credit: Slots,
    readers: Vec<u32>,
}

/// Answers of this rank as a home: to each sender its ring, to each reader the whole stream.
fn make_room<F: Fabric>(
    setup: &mut Setup<F>,
    agreed: &Agreed,
    requested: &[(Rank, Vec<u64>)],
) -> Result<Letters, Error> {
    let mut requests = Vec::new();
    for (from, words) in requested {
        let mut reader = Reader::new(words);
        while reader.more() {
            let request = read_request(&mut reader, *from, agreed);
            requests.push(request.map_err(|_| Error::Malformed { from: *from })?);
        }
    }
    let slot_words = slot_words(setup.driver.fabric_mut(), requests.len() as u64)?;
    let mut letters = Letters::new();
    for request in &requests {
        let (ring, release) = ring(setup.driver.fabric_mut(), request, slot_words)?;
        let to = letters.entry(request.sender.0).or_default();
        to.flag(true)
            .number(request.connection as u64)
            .number(request.position);
        write_ring(to, &ring);
        let application = setup.job.connections[request.connection]
            .receiver
            .application;
        for &number in &request.readers {
            let reader = agreed.members[application][number as usize];
            let to = letters.entry(reader.0).or_default();
            to.flag(false)
                .number(request.connection as u64)
                .number(u64::from(request.sender.0))
                .number(u64::from(request.number))
                .slots(&request.credit)
                .number(request.readers.len() as u64);
            write_ring(to, &ring);
            if let Some(release) = &release {
                to.slots(release);
            }
        }
    }
    Ok(letters)
}

fn read_request(
    reader: &mut Reader<'_>,
    sender: Rank,
    agreed: &Agreed,
) -> Result<Request, Malformed> {
    let request = Request {
        sender,
        connection: reader.index()?,
        position: reader.number()?,
        number: reader.small()?,
        credit: reader.slots()?,
        readers: reader.smalls()?,
    };
    let known = request.connection < agreed.links.len() && !request.readers.is_empty();
    if known { Ok(request) } else { Err(Malformed) }
}

/// How long slots can be so that all streams fit, with room left for other uses of the heap.
fn slot_words<F: Fabric>(fabric: &mut F, streams: u64) -> Result<usize, Error> {
    if streams == 0 {
        return Ok(0);
    }
    // The arena tells the largest free stretch in its error.
    let free = fabric.heap().full(0).free;
    let share = free / 4 * 3 / (streams * SLOTS as u64);
    let words = (share / WORD_BYTES as u64).min(SLOT_WORDS_MAX);
    if words < SLOT_WORDS_MIN {
        return Err(Error::Heap {
            streams,
            needed: streams * SLOTS as u64 * SLOT_WORDS_MIN * WORD_BYTES as u64 / 3 * 4,
            free,
        });
    }
    Ok(usize::try_from(words).expect("at most SLOT_WORDS_MAX"))
}

/// Takes heap and counters for a stream.
fn ring<F: Fabric>(
    fabric: &mut F,
    request: &Request,
    slot_words: usize,
) -> Result<(Ring, Option<Slots>), Error> {
    let home = fabric.rank();
    let near = fabric.topology().are_mates(request.sender, home);
    let slots = request.credit.start.len();
    let at = fabric
        .heap()
        .alloc((slots * slot_words * WORD_BYTES) as u64)?;
    let data = counters(fabric, near, slots)?;
    let release = match request.readers.len() {
        1 => None,
        _ => Some(counters(fabric, true, slots)?),
    };
    let ring = Ring {
        home,
        at: Offset(at),
        slot_words,
        data,
    };
    Ok((ring, release))
}

/// Takes counters that node-mates change, or any rank.
fn counters<F: Fabric>(fabric: &mut F, near: bool, count: usize) -> Result<Slots, Error> {
    let arena = if near {
        fabric.node_counters()
    } else {
        fabric.network_counters()
    };
    let slot = arena.alloc(count as u64)?;
    let slot = u32::try_from(slot).map_err(|_| arena.full(count as u64))?;
    let first = if near {
        Counter::Node(slot)
    } else {
        Counter::Network(slot)
    };
    let me = fabric.rank();
    let start = (0..count)
        .zip(0_u32..)
        .map(|(_, slot)| fabric.load(me, first.plus(slot)))
        .collect();
    Ok(Slots { first, start })
}

fn write_ring(writer: &mut Writer, ring: &Ring) {
    writer
        .number(ring.at.0)
        .number(ring.slot_words as u64)
        .slots(&ring.data);
}

/// Slots of a ring: two would do, four let a sender run ahead of a receiver that was interrupted.
const SLOTS: usize = 4;

/// 64 KiB hold 5,000 events; longer slots gain nothing.
const SLOT_WORDS_MAX: u64 = 8 * 1024;

/// A slot holds at least a few events.
const SLOT_WORDS_MIN: u64 = 16;
