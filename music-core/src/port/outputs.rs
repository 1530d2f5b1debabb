//! Where events and messages wait to be sent.
//!
//! Most ports have one connection all of whose streams get the same events, of ids that lie close
//! together. Such a port has a *lane*: an insertion is a range check and a push. All others go
//! through their connections' routers.

use crate::batch::{Batch, Layout};
use crate::index::{Globals, IndexMap, Indexing};
use crate::kind::Kind;
use crate::port::{Event, Message, MessageLog, MessageOutputPort, OutputPort};
use crate::route::Outlet;

/// The output ports of a rank while the simulation runs.
#[derive(Debug, Default)]
pub struct Outputs {
    ports: Vec<Output>,
    /// By port, a log for each connection that leaves it; empty for ports of other kinds.
    messages: Vec<Vec<MessageLog>>,
}

/// One output port for events: a lane, or its numbering and the connections that leave it.
#[derive(Debug, Default)]
pub(crate) struct Output {
    lane: Lane,
    /// Present if the program speaks of local indices.
    globals: Option<Globals>,
    outlets: Vec<Outlet>,
}

/// Indices `begin..begin + size`, as the program speaks of them, and their events. Closed if empty.
#[derive(Debug, Default)]
struct Lane {
    begin: u32,
    size: u32,
    /// From the program's index to the global id.
    shift: u32,
    events: Vec<Event>,
}

/// Where a connection's batches are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutletPlace {
    pub(crate) kind: Kind,
    pub(crate) port: usize,
    pub(crate) outlet: usize,
}

impl Outputs {
    /// Both lists have an entry for each port, empty if it is of another kind.
    pub(crate) fn new(ports: Vec<Output>, messages: Vec<Vec<MessageLog>>) -> Self {
        Self { ports, messages }
    }

    /// Sends an event with the next exchange. A no-op if the port is not connected, if the index is
    /// not mapped, or if nobody mapped the id at the other end.
    #[inline]
    pub fn insert_event(&mut self, port: OutputPort, time: f64, id: u32) {
        let Some(output) = self.ports.get_mut(port.0 as usize) else {
            return;
        };
        let lane = &mut output.lane;
        if id.wrapping_sub(lane.begin) < lane.size {
            let id = id.wrapping_add(lane.shift);
            lane.events.push(Event { time, id });
        } else {
            output.insert_beside(time, id);
        }
    }

    /// Sends a message with the next exchange, to every rank of every application that the port is
    /// connected to. The bytes are copied. A no-op if the port is not connected or not mapped.
    pub fn insert_message(&mut self, port: MessageOutputPort, time: f64, bytes: &[u8]) {
        for log in self.messages.get_mut(port.0 as usize).into_iter().flatten() {
            log.insert(Message { time, bytes });
        }
    }

    /// What waits for a stream of a connection, events laid out as [`layout`](Self::layout) says.
    pub(crate) fn batch(&self, place: OutletPlace, stream: usize, layout: Layout) -> Batch<'_> {
        match place.kind {
            Kind::Events => Batch::Events(self.events(place, stream), layout),
            Kind::Messages => Batch::Bytes(self.messages[place.port][place.outlet].bytes()),
        }
    }

    fn events(&self, place: OutletPlace, stream: usize) -> &[Event] {
        let output = &self.ports[place.port];
        match output.lane.size {
            0 => output.outlets[place.outlet].batch(stream),
            _ => &output.lane.events,
        }
    }

    /// How a stream's batch of events is laid out; of no meaning for other kinds.
    pub(crate) fn layout(&self, place: OutletPlace, stream: usize) -> Layout {
        match place.kind {
            Kind::Events => {
                let (begin, end) = self.ports[place.port].outlets[place.outlet].bounds();
                Layout::of(self.events(place, stream), begin, u64::from(end))
            }
            Kind::Messages => Layout::of(&[], 0, 0),
        }
    }

    /// What waited at a connection has been sent; yields how many events or messages they were,
    /// each counted once.
    pub(crate) fn clear(&mut self, place: OutletPlace) -> u64 {
        if place.kind == Kind::Messages {
            return self.messages[place.port][place.outlet].clear();
        }
        let output = &mut self.ports[place.port];
        if output.lane.size == 0 {
            return output.outlets[place.outlet].clear();
        }
        let count = output.lane.events.len() as u64;
        output.lane.events.clear();
        count
    }
}

impl Output {
    /// A port whose program numbers its ids as it says, with the connections that leave it.
    pub(crate) fn new(map: &IndexMap, indexing: Indexing, outlets: Vec<Outlet>) -> Self {
        let globals = match indexing {
            Indexing::Global => None,
            Indexing::Local => Some(map.globals()),
        };
        Self {
            lane: Lane::of(globals.as_ref(), &outlets).unwrap_or_default(),
            globals,
            outlets,
        }
    }

    #[inline(never)]
    fn insert_beside(&mut self, time: f64, id: u32) {
        if self.lane.size > 0 {
            return;
        }
        let id = match &self.globals {
            None => id,
            Some(globals) => match globals.global(id) {
                Some(id) => id,
                None => return,
            },
        };
        for outlet in &mut self.outlets {
            outlet.insert(Event { time, id });
        }
    }
}

impl Lane {
    /// The lane of a port that can have one.
    fn of(globals: Option<&Globals>, outlets: &[Outlet]) -> Option<Self> {
        let [outlet] = outlets else { return None };
        let wanted = outlet.shared_range()?;
        let shift = match globals {
            None => 0,
            Some(Globals::Linear { base, .. }) => *base,
            Some(Globals::Table(_)) => return None,
        };
        Some(Self {
            // Whoever is wanted is mapped, so this does not go below zero.
            begin: wanted.start.wrapping_sub(shift),
            size: wanted.end - wanted.start,
            shift,
            events: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Router;

    const PORT: OutputPort = OutputPort(0);
    const PLACE: OutletPlace = OutletPlace {
        kind: Kind::Events,
        port: 0,
        outlet: 0,
    };

    fn outputs(map: &IndexMap, indexing: Indexing, outlets: Vec<Outlet>) -> Outputs {
        Outputs::new(vec![Output::new(map, indexing, outlets)], vec![Vec::new()])
    }

    fn shared() -> Outlet {
        Outlet::new(Router::new(vec![(12..15, 0)]), vec![vec![0, 1]], 2)
    }

    fn filled(mut outputs: Outputs) -> Vec<u32> {
        for id in 0..20 {
            outputs.insert_event(PORT, 0.5, id);
        }
        let batch = outputs.events(PLACE, 0).iter();
        batch.map(|event| event.id).collect()
    }

    #[test]
    fn lanes_and_routers_take_the_same_events() {
        let map = IndexMap::linear(10, 8).unwrap();
        let table = IndexMap::permutation(&[10, 11, 12, 13, 14, 15, 17, 16]).unwrap();
        for (indexing, map) in [
            (Indexing::Global, &map),
            (Indexing::Local, &map),
            (Indexing::Local, &table),
        ] {
            let alone = outputs(map, indexing, vec![shared()]);
            let two = outputs(map, indexing, vec![shared(), shared()]);

            assert_eq!(two.ports[0].lane.size, 0);
            assert_eq!(filled(alone), [12, 13, 14], "{indexing:?}");
            assert_eq!(filled(two), [12, 13, 14], "{indexing:?}");
        }
    }

    #[test]
    fn what_was_sent_is_counted_once_and_forgotten() {
        let map = IndexMap::linear(10, 8).unwrap();
        let mut outputs = outputs(&map, Indexing::Global, vec![shared()]);
        outputs.insert_event(PORT, 0.5, 13);
        outputs.insert_event(PORT, 0.5, 16);

        assert_eq!(outputs.clear(PLACE), 1);
        assert_eq!(outputs.clear(PLACE), 0);
    }

    #[test]
    fn a_port_that_is_not_connected_takes_nothing() {
        let map = IndexMap::linear(0, 8).unwrap();
        let mut outputs = outputs(&map, Indexing::Global, Vec::new());

        outputs.insert_event(PORT, 0.5, 1);
        outputs.insert_event(OutputPort(7), 0.5, 1);

        assert!(outputs.ports[0].lane.events.is_empty());
    }
}
