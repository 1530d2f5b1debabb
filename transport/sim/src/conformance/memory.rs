//! Cases about who sees whose memory, and how much there is of it.

use std::sync::atomic::Ordering;

use transport_core::{Fabric, Offset, Rank, WORD_BYTES};

use super::stand::{Stand, ensure};
use super::steps::pattern;

/// Most words that are looked at.
const WORDS_MAX: u64 = 65_536;

/// All ranks know the same topology, and node-mates really see each other's memory.
pub(super) fn topology<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let topology = stand.driver.fabric().topology().clone();
    let (me, size) = (stand.me, stand.size);
    ensure!(me.0 < size, "{me} in a job of {size}");
    ensure!(topology.mates(me).contains(&me), "I am no mate of mine");
    stand.same("the number of ranks", size.into())?;
    for rank in (0..size).map(Rank) {
        stand.same("the node of a rank", topology.node(rank).into())?;
    }
    let bytes = pattern(me.0.into(), 40);
    stand
        .driver
        .fabric()
        .copy_in(stand.source(me).offset, &bytes);
    stand.meet()?;
    for &mate in topology.mates(me) {
        let read = stand.bytes(stand.source(mate), 40);
        ensure!(
            read == pattern(mate.0.into(), 40),
            "{mate} is said to be my mate"
        );
    }
    Ok(())
}

/// What nobody has used is zero.
pub(super) fn zero<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let end = stand.driver.fabric_mut().heap().capacity();
    let words = end.saturating_sub(stand.end().0) / WORD_BYTES as u64;
    let words = words.min(WORDS_MAX);
    let start = Offset(end - words * WORD_BYTES as u64);
    let fabric = stand.driver.fabric();
    for word in fabric.words(stand.me, start, words as usize) {
        let value = word.load(Ordering::Relaxed);
        ensure!(value == 0, "an unused word is {value:#x}");
    }
    Ok(())
}

/// Node-mates reach each other's heap up to its last word.
pub(super) fn reach<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let end = stand.driver.fabric_mut().heap().capacity();
    let last = Offset(end - WORD_BYTES as u64);
    let write = |stand: &Stand<'_, F>, value| {
        let word = stand.driver.fabric().words(stand.me, last, 1);
        // Relaxed: ordered by the signals of the meeting.
        word[0].store(value, Ordering::Relaxed);
    };
    write(stand, u64::from(stand.me.0) + 1);
    stand.meet()?;
    for mate in stand.mates() {
        let word = stand.driver.fabric().words(mate, last, 1);
        let value = word[0].load(Ordering::Relaxed);
        ensure!(
            value == u64::from(mate.0) + 1,
            "the last word of {mate} is {value}"
        );
    }
    stand.meet()?;
    write(stand, 0);
    Ok(())
}

/// A heap that is used up says what was asked, what is free and which knob to turn.
pub(super) fn exhaustion<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let heap = stand.driver.fabric_mut().heap();
    let asked = heap.capacity() + 1;
    let Err(full) = heap.alloc(asked) else {
        return Err("more than the whole heap was given out".to_owned());
    };
    let line = full.to_string();
    for part in [&asked.to_string(), &full.free.to_string(), "TUTTI_HEAP_MIB"] {
        ensure!(line.contains(part), "{part} is missing in: {line}");
    }
    let at = heap.alloc(8).map_err(|full| full.to_string())?;
    heap.free(at, 8);
    Ok(())
}

/// The same requests yield the same offsets and slots on all ranks.
pub(super) fn offsets<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let fabric = stand.driver.fabric_mut();
    let heap = fabric.heap().alloc(24).map_err(|full| full.to_string())?;
    let node = fabric.node_counters().alloc(3);
    let node = node.map_err(|full| full.to_string())?;
    let network = fabric.network_counters().alloc(3);
    let network = network.map_err(|full| full.to_string())?;
    fabric.network_counters().free(network, 3);
    fabric.node_counters().free(node, 3);
    fabric.heap().free(heap, 24);
    ensure!(
        heap % WORD_BYTES as u64 == 0,
        "offset {heap} is no multiple of a word"
    );
    stand.same("an offset", heap)?;
    stand.same("a slot of node counters", node)?;
    stand.same("a slot of network counters", network)
}
