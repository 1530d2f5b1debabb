//! The ends of this rank's streams, once it knows the rings: outputs that feed them, inputs that
//! they feed.

use std::collections::{BTreeMap, HashSet};

use transport_core::{Fabric, Offset, Rank, WORD_BYTES};

use super::Setup;
use super::agree::Agreed;
use super::connect::StreamKey;
use super::ports::{self, Mapped};
use super::routes::Routes;
use super::wire::{Malformed, Reader};
use crate::Error;
use crate::batch::HEADER_WORDS;
use crate::index::{Indexing, Locals};
use crate::kind::Kind;
use crate::port::{InputPort, MessageInputPort, MessageLog, Order, OutletPlace, Output, Outputs};
use crate::report::Algorithm;
use crate::route::{Outlet, Router};
use crate::runtime::Arrangement;
use crate::space::Plan;
use crate::stream::{
    Exchange, Filter, Incoming, Inlet, Outflow, Outgoing, Queue, Ring, Slots, Staging, Target,
};

/// Puts this rank's ends together.
pub(super) fn build<F: Fabric>(
    setup: &mut Setup<F>,
    agreed: &Agreed,
    routes: Routes,
    credits: BTreeMap<StreamKey, Slots>,
    answered: &[(Rank, Vec<u64>)],
) -> Result<(Exchange, Outputs), Error> {
    let mut rings = BTreeMap::new();
    let mut incoming = BTreeMap::new();
    for (home, words) in answered {
        let mut reader = Reader::new(words);
        while reader.more() {
            read_answer(&mut reader, *home, agreed, &mut rings, &mut incoming)
                .map_err(|_| Error::Malformed { from: *home })?;
        }
    }
    let mut built = Exchange::new(agreed.slack);
    let outputs = outflows(setup, agreed, routes.plans, rings, credits, &mut built)?;
    inlets(setup, agreed, &routes.overlaps, incoming, &mut built);
    stage(setup, &mut built)?;
    Ok((built, outputs))
}

fn read_ring(reader: &mut Reader<'_>, home: Rank) -> Result<Ring, Malformed> {
    let ring = Ring {
        home,
        at: Offset(reader.number()?),
        slot_words: reader.index()?,
        data: reader.slots()?,
    };
    if ring.slot_words <= HEADER_WORDS + 1 {
        return Err(Malformed);
    }
    Ok(ring)
}

/// The streams that end here: by connection and sender's number.
type Arrivals = BTreeMap<(usize, u32), Incoming>;

fn read_answer(
    reader: &mut Reader<'_>,
    home: Rank,
    agreed: &Agreed,
    rings: &mut BTreeMap<StreamKey, Ring>,
    incoming: &mut Arrivals,
) -> Result<(), Malformed> {
    if reader.flag()? {
        let key = (reader.index()?, reader.index()?);
        rings.insert(key, read_ring(reader, home)?);
        return Ok(());
    }
    let connection = reader.index()?;
    let (sender, number) = (Rank(reader.small()?), reader.small()?);
    let credit = reader.slots()?;
    let readers = reader.number()?;
    let ring = read_ring(reader, home)?;
    let shared = match readers {
        1 => None,
        _ => Some((reader.slots()?, readers)),
    };
    let queue = match agreed.links.get(connection).ok_or(Malformed)?.kind {
        Kind::Events => Queue::Events(Vec::new()),
        Kind::Messages => Queue::Messages(Vec::new()),
    };
    let stream = Incoming::new(ring, (sender, number), credit, shared, queue);
    incoming.insert((connection, number), stream);
    Ok(())
}

/// Builds the sending ends, and the outputs that feed them.
fn outflows<F: Fabric>(
    setup: &Setup<F>,
    agreed: &Agreed,
    mut plans: BTreeMap<usize, Plan>,
    mut rings: BTreeMap<StreamKey, Ring>,
    mut credits: BTreeMap<StreamKey, Slots>,
    built: &mut Exchange,
) -> Result<Outputs, Error> {
    let fabric = setup.driver.fabric();
    let me = fabric.rank();
    let mut ports: Vec<Vec<Outlet>> = setup.outputs.iter().map(|_| Vec::new()).collect();
    let mut messages: Vec<Vec<MessageLog>> = setup.outputs.iter().map(|_| Vec::new()).collect();
    for (index, connection) in setup.job.connections.iter().enumerate() {
        if connection.sender.application != setup.application {
            continue;
        }
        let known = setup
            .outputs
            .iter()
            .position(|port| port.name == connection.sender.port);
        let port = known.expect("agreed: every connected port is published");
        let plan = plans.remove(&index).unwrap_or_default();
        let first = built.outgoing.len();
        for (position, readers) in plan.streams.iter().enumerate() {
            let key = (index, position);
            let (Some(ring), Some(credit)) = (rings.remove(&key), credits.remove(&key)) else {
                let home = agreed.members[connection.receiver.application][readers[0] as usize];
                return Err(Error::Malformed { from: home });
            };
            let direct = fabric.topology().are_mates(me, ring.home);
            built.outgoing.push(Outgoing::new(
                me,
                ring,
                credit,
                direct,
                readers.clone().into(),
            ));
        }
        let kind = agreed.links[index].kind;
        let outlet = match kind {
            Kind::Events => {
                let router = Router::new(plan.runs);
                ports[port].push(Outlet::new(router, plan.sets, plan.streams.len()));
                ports[port].len() - 1
            }
            Kind::Messages => {
                messages[port].push(MessageLog::new(plan.streams.len()));
                messages[port].len() - 1
            }
        };
        let place = OutletPlace { kind, port, outlet };
        let schedule = agreed.links[index].schedule;
        built.outflows.push(Outflow::new(
            index,
            schedule,
            place,
            first..built.outgoing.len(),
        ));
    }
    let outputs = setup.outputs.iter().zip(ports).map(|(port, outlets)| {
        let mapped = port.mapped.as_ref();
        mapped.map_or_else(Output::default, |mapped| {
            Output::new(&mapped.map, mapped.indexing, outlets)
        })
    });
    Ok(Outputs::new(outputs.collect(), messages))
}

/// Builds the receiving ends.
fn inlets<F: Fabric>(
    setup: &Setup<F>,
    agreed: &Agreed,
    overlaps: &HashSet<usize>,
    mut incoming: Arrivals,
    built: &mut Exchange,
) {
    for (index, connection) in setup.job.connections.iter().enumerate() {
        if connection.receiver.application != setup.application {
            continue;
        }
        let known = setup.inputs.iter().zip(0..).find_map(|(port, number)| {
            let mapped = port.mapped.as_ref()?;
            (port.name == connection.receiver.port).then_some((number, mapped))
        });
        let (number, mapped) = known.expect("agreed: every connected port is mapped");
        let later = incoming.split_off(&(index + 1, 0));
        let first = built.incoming.len();
        built.incoming.extend(incoming.into_values());
        incoming = later;
        let link = &agreed.links[index];
        built.inlets.push(Inlet::new(
            index,
            link.schedule,
            target(
                link.kind,
                number,
                mapped.own.order,
                overlaps.contains(&index),
            ),
            first..built.incoming.len(),
            filter(mapped, link.algorithm),
        ));
    }
}

/// Where an inlet hands over, for the input port with this number.
fn target(kind: Kind, number: u32, order: Order, overlaps: bool) -> Target {
    let arrangement = match order {
        Order::ByRank if !overlaps => Arrangement::ByRank,
        _ => Arrangement::ByTime,
    };
    match kind {
        Kind::Events => Target::Events(InputPort(number), arrangement),
        Kind::Messages => Target::Messages(MessageInputPort(number)),
    }
}

fn filter(mapped: &Mapped<ports::Incoming>, algorithm: Algorithm) -> Filter {
    match (mapped.indexing, algorithm) {
        (Indexing::Local, _) => Filter::ToLocal(Locals::new(&mapped.map)),
        (Indexing::Global, Algorithm::Allgather) => Filter::Mapped(Locals::new(&mapped.map)),
        (Indexing::Global, Algorithm::Pairwise) => Filter::None,
    }
}

/// Takes buffers for chunks that go to other nodes.
fn stage<F: Fabric>(setup: &mut Setup<F>, built: &mut Exchange) -> Result<(), Error> {
    let far = built.outgoing.iter().filter(|stream| !stream.direct);
    let Some(words) = far.map(|stream| stream.ring.slot_words).max() else {
        return Ok(());
    };
    let bytes = (words * WORD_BYTES) as u64;
    let heap = setup.driver.fabric_mut().heap();
    let mut buffers = vec![Offset(heap.alloc(bytes)?)];
    let more = (1..STAGING_BUFFERS).map_while(|_| heap.alloc(bytes).ok());
    buffers.extend(more.map(Offset));
    built.staging = Staging::new(buffers.into_iter());
    Ok(())
}

/// Chunks to other nodes that may be in flight at once.
const STAGING_BUFFERS: usize = 4;
