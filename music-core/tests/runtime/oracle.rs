//! The judge: knows the file, the maps and what was inserted, and looks at what was handed over.

use std::collections::BTreeMap;

use music_core::{Event, IndexMap};

use crate::harness::{Delivery, Log, Program, Scenario};

/// An event as a key: bits of the time, id.
pub(crate) type Key = (u64, u32);

/// What is wrong with a run; empty if nothing is.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) late: usize,
    pub(crate) lost: usize,
    pub(crate) foreign: usize,
    pub(crate) doubled: usize,
    pub(crate) disordered: usize,
}

impl Scenario {
    /// Runs and judges; the run must be right.
    pub(crate) fn check(&self) -> Vec<Log> {
        let logs = self.logs();
        let verdict = self.judge(&logs);
        assert_eq!(verdict, Verdict::default(), "seed {}", self.seed);
        logs
    }

    /// Looks at every rank's deliveries.
    pub(crate) fn judge(&self, logs: &[Log]) -> Verdict {
        let job = self.job();
        let mut verdict = Verdict::default();
        for connection in &job.connections {
            let sender = &self.programs[connection.sender.application];
            let receiver = &self.programs[connection.receiver.application];
            let sent: Vec<Event> = logs
                .iter()
                .filter(|log| log.application == sender.name)
                .flat_map(|log| &log.inserted)
                .filter(|(port, _)| *port == connection.sender.port)
                .map(|(_, event)| *event)
                .collect();
            let port = &connection.receiver.port;
            let input = receiver
                .inputs
                .iter()
                .find(|input| input.name == port)
                .expect("a published port");
            let latency = connection.acceptable_latency.unwrap_or(input.latency);
            for log in logs.iter().filter(|log| log.application == receiver.name) {
                let map = &input.maps[log.rank as usize];
                let deliveries: Vec<&Delivery> = log
                    .delivered
                    .iter()
                    .filter(|one| one.port == *port)
                    .collect();
                verdict.count(&sent, map, &deliveries);
                verdict.time(receiver, latency, &deliveries);
            }
        }
        verdict
    }
}

impl Verdict {
    /// Everything wanted, as often as it was sent, and nothing else.
    fn count(&mut self, sent: &[Event], map: &IndexMap, deliveries: &[&Delivery]) {
        let mut balance: BTreeMap<Key, i64> = BTreeMap::new();
        for event in sent.iter().filter(|event| map.local(event.id).is_some()) {
            *balance.entry(key(event)).or_default() += 1;
        }
        for event in deliveries.iter().flat_map(|one| &one.events) {
            if map.local(event.id).is_none() {
                self.foreign += 1;
                continue;
            }
            match balance.get_mut(&key(event)) {
                Some(left) => *left -= 1,
                None => self.foreign += 1,
            }
        }
        for left in balance.into_values() {
            self.lost += usize::try_from(left).unwrap_or(0);
            self.doubled += usize::try_from(-left).unwrap_or(0);
        }
    }

    /// Nothing is later than the latency allows, and each id's times ascend in each delivery.
    fn time(&mut self, receiver: &Program, latency: f64, deliveries: &[&Delivery]) {
        for delivery in deliveries {
            let end = receiver.ticks as f64 * receiver.tick;
            for event in &delivery.events {
                // What comes while finalizing belongs to the time that the receiver did not reach.
                let at = delivery.at.unwrap_or(end);
                let room = latency + 1e-9;
                self.late += usize::from(delivery.at.is_some() && at > event.time + room);
                self.late += usize::from(delivery.at.is_none() && event.time + room < end);
            }
            let mut last: BTreeMap<u32, f64> = BTreeMap::new();
            for event in &delivery.events {
                let before = last.insert(event.id, event.time);
                self.disordered += usize::from(before.is_some_and(|before| before > event.time));
            }
        }
    }
}

/// Everything that the ranks of an application were handed on a port, sorted.
pub(crate) fn delivered_set(logs: &[Log], application: &str, port: &str) -> Vec<Key> {
    let mut keys: Vec<Key> = logs
        .iter()
        .filter(|log| log.application == application)
        .flat_map(|log| &log.delivered)
        .filter(|one| one.port == port)
        .flat_map(|one| one.events.iter().map(key))
        .collect();
    keys.sort_unstable();
    keys
}

pub(crate) fn key(event: &Event) -> Key {
    (event.time.to_bits(), event.id)
}
