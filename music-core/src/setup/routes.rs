//! The rounds of the spatial negotiation: to the owners of slices and back.

use std::collections::{BTreeMap, HashSet};

use transport_core::{Fabric, Rank};

use super::Setup;
use super::agree::Agreed;
use super::wire::{Malformed, Reader, Writer};
use super::world::malformed;
use crate::Error;
use crate::index::IndexMap;
use crate::report::Algorithm;
use crate::route::Run;
use crate::space::{Claim, Plan, Role, Sets, Slices, meet};

/// What this rank learned about its connections.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// For each connection that leaves this rank, what goes where.
    pub(crate) plans: BTreeMap<usize, Plan>,
    /// Connections whose sending ranks' maps overlap where this rank receives.
    pub(crate) overlaps: HashSet<usize>,
}

/// Messages by the rank they go to, or came from.
type Letters = BTreeMap<u32, Writer>;

/// Collective over the job.
pub(super) fn find<F: Fabric>(setup: &mut Setup<F>, agreed: &Agreed) -> Result<Routes, Error> {
    let claims = claims(setup, agreed);
    let claimed = setup.world.exchange(&mut setup.driver, claims)?;
    let answers = answers(&claimed, agreed)?;
    let answered = setup.world.exchange(&mut setup.driver, answers)?;
    let (runs, overlaps) = read_answers(&answered)?;
    let plans = runs
        .into_iter()
        .map(|(connection, (runs, sets))| {
            let link = agreed.links.get(connection)?;
            let application = setup.job.connections[connection].receiver.application;
            let receivers = &agreed.members[application];
            let topology = setup.driver.fabric().topology();
            let place = |number: u32| match link.algorithm {
                Algorithm::Pairwise => number,
                Algorithm::Allgather => receivers
                    .get(number as usize)
                    .map_or(0, |&rank| topology.node(rank)),
            };
            Some((connection, Plan::new(&runs, &sets, place)))
        })
        .collect::<Option<BTreeMap<_, _>>>();
    Ok(Routes {
        plans: plans.ok_or_else(|| malformed(0))?,
        overlaps,
    })
}

/// What this rank tells the owners.
fn claims<F: Fabric>(setup: &Setup<F>, agreed: &Agreed) -> Letters {
    let ranks = setup.driver.fabric().topology().size();
    let mut letters = Letters::new();
    for (index, link) in agreed.links.iter().enumerate() {
        let slices = Slices::new(link.end, ranks);
        if let Some((role, map)) = own_maps(setup, index) {
            for (owner, ranges) in slices.cut(&map.ranges()) {
                letters
                    .entry(owner)
                    .or_default()
                    .number(index as u64)
                    .flag(role == Role::Receiver)
                    .number(u64::from(setup.rank()))
                    .ranges(&ranges);
            }
        }
    }
    letters
}

/// This rank's map at its end of a connection, if it is at one.
fn own_maps<F: Fabric>(setup: &Setup<F>, index: usize) -> Option<(Role, &IndexMap)> {
    let connection = &setup.job.connections[index];
    if connection.sender.application == setup.application {
        let port = setup
            .outputs
            .iter()
            .find(|port| port.name == connection.sender.port)?;
        return port
            .mapped
            .as_ref()
            .map(|mapped| (Role::Sender, &mapped.map));
    }
    if connection.receiver.application == setup.application {
        let port = setup
            .inputs
            .iter()
            .find(|port| port.name == connection.receiver.port)?;
        return port
            .mapped
            .as_ref()
            .map(|mapped| (Role::Receiver, &mapped.map));
    }
    None
}

/// What this rank, as the owner of slices, tells senders and receivers.
fn answers(claimed: &[(Rank, Vec<u64>)], agreed: &Agreed) -> Result<Letters, Error> {
    let mut by_connection: BTreeMap<usize, Vec<Claim>> = BTreeMap::new();
    let mut members: BTreeMap<(usize, bool, u32), u32> = BTreeMap::new();
    for (from, words) in claimed {
        let mut reader = Reader::new(words);
        while reader.more() {
            let (connection, claim) =
                read_claim(&mut reader).map_err(|_| Error::Malformed { from: *from })?;
            if connection >= agreed.links.len() {
                return Err(Error::Malformed { from: *from });
            }
            members.insert(
                (connection, claim.role == Role::Receiver, claim.number),
                from.0,
            );
            by_connection.entry(connection).or_default().push(claim);
        }
    }
    let mut letters = Letters::new();
    for (connection, claims) in by_connection {
        let matched = meet(&claims);
        for (sender, runs) in &matched.runs {
            let to = members[&(connection, false, *sender)];
            let letter = letters.entry(to).or_default();
            letter.number(connection as u64).flag(false);
            write_runs(letter, runs, &matched.sets);
        }
        for receiver in &matched.overlaps {
            let to = members[&(connection, true, *receiver)];
            let letter = letters.entry(to).or_default();
            letter.number(connection as u64).flag(true);
        }
    }
    Ok(letters)
}

fn read_claim(reader: &mut Reader<'_>) -> Result<(usize, Claim), Malformed> {
    let connection = reader.index()?;
    let claim = Claim {
        role: if reader.flag()? {
            Role::Receiver
        } else {
            Role::Sender
        },
        number: reader.small()?,
        ranges: reader.ranges()?,
    };
    Ok((connection, claim))
}

/// Runs with the sets that they use, each set once.
fn write_runs(letter: &mut Writer, runs: &[Run], sets: &Sets) {
    let mut used: Vec<u32> = runs.iter().map(|(_, set)| *set).collect();
    used.sort_unstable();
    used.dedup();
    letter.number(used.len() as u64);
    for &set in &used {
        letter.numbers(sets.members(set).iter().map(|&number| u64::from(number)));
    }
    let ids: Vec<_> = runs.iter().map(|(ids, _)| ids.clone()).collect();
    letter.ranges(&ids);
    let place = |set| used.partition_point(|&other| other < set) as u64;
    letter.numbers(runs.iter().map(|(_, set)| place(*set)));
}

/// Runs and sets of each connection that leaves this rank.
type Found = BTreeMap<usize, (Vec<Run>, Sets)>;

/// Puts the owners' answers together; owners answer in the order of their slices.
fn read_answers(answered: &[(Rank, Vec<u64>)]) -> Result<(Found, HashSet<usize>), Error> {
    let (mut found, mut overlaps) = (Found::new(), HashSet::new());
    for (from, words) in answered {
        let mut reader = Reader::new(words);
        while reader.more() {
            read_answer(&mut reader, &mut found, &mut overlaps)
                .map_err(|_| Error::Malformed { from: *from })?;
        }
    }
    Ok((found, overlaps))
}

fn read_answer(
    reader: &mut Reader<'_>,
    found: &mut Found,
    overlaps: &mut HashSet<usize>,
) -> Result<(), Malformed> {
    let connection = reader.index()?;
    if reader.flag()? {
        overlaps.insert(connection);
        return Ok(());
    }
    let (runs, sets) = found.entry(connection).or_default();
    let mut numbers = Vec::new();
    for _ in 0..reader.number()? {
        numbers.push(sets.number(&reader.smalls()?));
    }
    let ids = reader.ranges()?;
    for (ids, set) in ids.into_iter().zip(reader.smalls()?) {
        runs.push((ids, *numbers.get(set as usize).ok_or(Malformed)?));
    }
    Ok(())
}
