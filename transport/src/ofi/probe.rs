//! What a provider can do, tried on itself: capabilities are never believed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::OfiError;
use super::endpoint::Endpoint;
use super::port::{Care, Here, Operation, Refusal, There};
use super::slots::Use;

/// How long one round trip to oneself took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latency {
    /// From a put to the bytes' being there.
    pub put: Duration,
    /// From a fetch-add to its value, where atomics are the provider's.
    pub fetch_add: Option<Duration>,
}

impl Endpoint {
    /// Puts to itself and, if the provider claims atomics, adds to itself: the median of `rounds`.
    /// Atomics that do not work are not an error: then they are served.
    pub(super) fn probe(&mut self, rounds: usize) -> Result<Latency, OfiError> {
        let put = self.median(rounds, Self::probe_put)?;
        let put = put.ok_or_else(|| self.does_not_work("a put to itself did not arrive"))?;
        let fetch_add = match self.native_atomics {
            true => self.median(rounds, Self::probe_fetch_add)?,
            false => None,
        };
        self.native_atomics = fetch_add.is_some();
        self.trouble = None;
        self.lost = None;
        Ok(Latency { put, fetch_add })
    }

    fn median(
        &mut self,
        rounds: usize,
        mut once: impl FnMut(&mut Self, u64) -> Option<()>,
    ) -> Result<Option<Duration>, OfiError> {
        let mut spans = Vec::with_capacity(rounds);
        for round in 1..=rounds as u64 {
            let start = Instant::now();
            if once(self, round).is_none() {
                return Ok(None);
            }
            spans.push(start.elapsed());
        }
        spans.sort_unstable();
        Ok(spans.get(spans.len() / 2).copied())
    }

    fn does_not_work(&self, what: &str) -> OfiError {
        let cause = self.trouble.as_ref().map(|words| format!(" ({words})"));
        OfiError::Probe {
            provider: self.provider.clone(),
            what: format!("{what}{}", cause.unwrap_or_default()),
            seconds: PROBE_WITHIN.as_secs(),
        }
    }

    fn probe_put(&mut self, round: u64) -> Option<()> {
        let (slot, target) = (self.port.slots.take()?, self.port.slots.take()?);
        self.port
            .lines
            .slot_word(slot, 0)
            .store(round, Ordering::Relaxed);
        self.port
            .lines
            .slot_word(target, 0)
            .store(0, Ordering::Relaxed);
        let operation = self.probing(slot, target);
        let until = Instant::now() + PROBE_WITHIN;
        self.try_until(until, |port| port.write(&operation, Here::Slot(0), 8))?;
        let arrived = self.watch_until(until, |endpoint| {
            let word = endpoint.port.lines.slot_word(target, 0);
            word.load(Ordering::Acquire) == round && endpoint.port.slots.in_flight() == 0
        });
        self.port.slots.give(target);
        arrived
    }

    fn probe_fetch_add(&mut self, round: u64) -> Option<()> {
        let (slot, target) = (self.port.slots.take()?, self.port.slots.take()?);
        for (word, value) in [(0, 3), (1, u64::MAX)] {
            self.port
                .lines
                .slot_word(slot, word)
                .store(value, Ordering::Relaxed);
        }
        let start = u64::MAX - round;
        self.port
            .lines
            .slot_word(target, 0)
            .store(start, Ordering::Relaxed);
        let operation = self.probing(slot, target);
        let until = Instant::now() + PROBE_WITHIN;
        self.try_until(until, |port| port.fetch_add(&operation))?;
        let completed = self.watch_until(until, |endpoint| endpoint.port.slots.in_flight() == 0);
        completed?;
        let before = self.port.lines.slot_word(slot, 1).load(Ordering::Acquire);
        let after = self.port.lines.slot_word(target, 0).load(Ordering::Acquire);
        self.port.slots.give(target);
        (before == start && after == start.wrapping_add(3)).then_some(())
    }

    fn probing(&self, slot: usize, target: usize) -> Operation {
        Operation {
            slot,
            peer: 0,
            its: Use::Probe,
            there: There::Desk(self.port.lines.slot_at(target)),
            care: Care::Plain,
        }
    }

    fn try_until(
        &mut self,
        until: Instant,
        post: impl Fn(&mut super::port::Port) -> Result<(), Refusal>,
    ) -> Option<()> {
        loop {
            match post(&mut self.port) {
                Ok(()) => return Some(()),
                Err(Refusal::Again) if Instant::now() < until => {
                    self.complete();
                }
                Err(refusal) => {
                    self.refused(self.rank, refusal);
                    return None;
                }
            }
        }
    }

    fn watch_until(&mut self, until: Instant, is_so: impl Fn(&Self) -> bool) -> Option<()> {
        loop {
            self.complete();
            if is_so(self) {
                return Some(());
            }
            if self.lost.is_some() || Instant::now() >= until {
                return None;
            }
            std::thread::yield_now();
        }
    }
}

/// How long an operation on oneself may take, on the most loaded of machines.
const PROBE_WITHIN: Duration = Duration::from_secs(10);
