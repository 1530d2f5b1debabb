//! Cases about counters.

use std::sync::atomic::Ordering;

use transport_core::{Counter, Fabric, Offset, Rank};

use super::stand::{Stand, ensure};
use super::steps::{add, fetch_add, notify, put, set};

/// Changes of one counter by each rank.
const CHANGES: u64 = 20;

/// While all add to rank 0's counter, its node never sees it fall, and in the end it has the sum.
pub(super) fn growth<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let home = Rank(0);
    for counter in stand.counters(home, 0) {
        if stand.adds(counter) {
            for _ in 0..CHANGES {
                stand.post(notify(home, add(counter, 1)))?;
            }
        }
    }
    for counter in stand.counters(home, 0) {
        let sees = stand.mates().contains(&home);
        if sees && stand.adds(counter) {
            watch_growth(stand, home, counter)?;
        }
    }
    stand.meet()
}

fn watch_growth<F: Fabric>(
    stand: &mut Stand<'_, F>,
    home: Rank,
    counter: Counter,
) -> Result<(), String> {
    let total = stand.base + CHANGES * adders(stand, home, counter);
    let mut seen = stand.base;
    while seen < total {
        let next = stand.reach(home, counter, seen + 1)?;
        let again = stand.driver.fabric().load(home, counter);
        ensure!(
            next > seen && again >= next,
            "{counter} fell: {seen}, {next}, {again}"
        );
        seen = again;
    }
    ensure!(seen == total, "{counter} of {home} is {seen}, not {total}");
    Ok(())
}

/// How many ranks can reach a counter.
fn adders<F: Fabric>(stand: &Stand<'_, F>, home: Rank, counter: Counter) -> u64 {
    match counter {
        Counter::Network(_) => stand.size.into(),
        Counter::Node(_) => {
            let mates = stand.driver.fabric().topology().mates(home);
            mates.len() as u64
        }
    }
}

/// Everyone's adds and fetch-adds to everyone make exact sums, in both domains.
pub(super) fn sums<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    for home in (0..stand.size).map(Rank) {
        for counter in stand.counters(home, 0) {
            if stand.adds(counter) {
                for amount in 1..=CHANGES / 2 {
                    stand.post(notify(home, add(counter, amount)))?;
                    stand.post(fetch_add(home, counter, amount))?;
                }
            }
        }
    }
    let me = stand.me;
    let each = (1..=CHANGES / 2).sum::<u64>() * 2;
    for counter in [stand.node(0), stand.network(0)] {
        if stand.adds(counter) {
            let total = stand.base + each * adders(stand, me, counter);
            let reached = stand.reach(me, counter, total)?;
            ensure!(reached == total, "{counter} is {reached}, not {total}");
        }
    }
    stand.meet()?;
    for counter in [stand.node(0), stand.network(0)] {
        if stand.adds(counter) {
            let later = stand.driver.fabric().load(me, counter);
            let total = stand.base + each * adders(stand, me, counter);
            ensure!(later == total, "{counter} went on from {total} to {later}");
        }
    }
    Ok(())
}

/// No two fetch-adds on rank 0's counter yield the same value, and all values are yielded.
pub(super) fn fetched<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let (counter, home) = (stand.network(0), Rank(0));
    if !stand.adds(counter) {
        return Ok(());
    }
    let per_rank = CHANGES.min(stand.chunk / 8);
    let mut last = None;
    for count in 0..per_rank {
        let value = stand.post(fetch_add(home, counter, 1))?;
        let grows = value >= stand.base && last < Some(value);
        ensure!(grows, "{last:?}, then {value} was fetched");
        last = Some(value);
        let words = stand.driver.fabric();
        let at = stand.source(stand.me).offset.plus(count * 8);
        // Relaxed: announced by the signal below.
        words.words(stand.me, at, 1)[0].store(value, Ordering::Relaxed);
    }
    let (from, to) = (stand.source(stand.me), stand.target(home, stand.me));
    let here = add(stand.network(1), 1);
    stand.post(put(from, to, per_rank * 8, here))?;
    if stand.me == home {
        check_fetched(stand, per_rank)?;
    }
    stand.meet()
}

fn check_fetched<F: Fabric>(stand: &mut Stand<'_, F>, per_rank: u64) -> Result<(), String> {
    let all = stand.base + u64::from(stand.size);
    stand.reach(stand.me, stand.network(1), all)?;
    let mut values = Vec::new();
    for sender in (0..stand.size).map(Rank) {
        let Offset(at) = stand.target(stand.me, sender).offset;
        let words = stand.driver.fabric();
        let words = words.words(stand.me, Offset(at), per_rank as usize);
        values.extend(words.iter().map(|word| word.load(Ordering::Relaxed)));
    }
    values.sort_unstable();
    for (expected, value) in (stand.base..).zip(values) {
        ensure!(
            value == expected,
            "nobody fetched {expected}, somebody {value}"
        );
    }
    Ok(())
}

/// A counter takes every value that its one writer sets, in order, and keeps the last one.
pub(super) fn sets<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let (behind, ahead) = stand.partners(1);
    let me = stand.me;
    for value in stand.base + 1..=stand.base + CHANGES {
        for counter in stand.counters(ahead, 0) {
            stand.post(notify(ahead, set(counter, value)))?;
        }
        for counter in stand.counters(behind, 0) {
            let seen = stand.reach(me, counter, value)?;
            ensure!(seen == value, "{counter} is {seen} after a set to {value}");
        }
        stand.meet()?;
    }
    Ok(())
}

/// A freed counter keeps its value for its next user.
pub(super) fn freed<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let full = |full: transport_core::ArenaFull| full.to_string();
    let me = stand.me;
    let slot = stand.driver.fabric_mut().node_counters().alloc(1);
    let slot = slot.map_err(full)?;
    let counter = Counter::Node(u32::try_from(slot).map_err(|error| error.to_string())?);
    let value = stand.driver.fabric().load(me, counter) + 7;
    stand.post(notify(me, set(counter, value)))?;
    stand.reach(me, counter, value)?;
    stand.driver.fabric_mut().node_counters().free(slot, 1);
    let kept = stand.driver.fabric().load(me, counter);
    ensure!(kept == value, "freed with {value}, then it was {kept}");
    let again = stand.driver.fabric_mut().node_counters().alloc(1);
    let again = again.map_err(full)?;
    let kept = stand.driver.fabric().load(me, counter);
    stand.driver.fabric_mut().node_counters().free(again, 1);
    ensure!(again == slot, "slot {again} instead of {slot}");
    ensure!(kept == value, "freed with {value}, used again with {kept}");
    Ok(())
}
