//! The agreement: everybody's declarations, checked, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use transport_core::{Fabric, Rank};

use super::declare::{Contribution, Declaration};
use super::extents::{Extents, choose, own_extents};
use super::wire::{Reader, Writer};
use super::world::malformed;
use super::{Setup, place_of};
use crate::Error;
use crate::job::{Connection, Job};
use crate::kind::Kind;
use crate::report::{Algorithm, Direction};
use crate::schedule::Schedule;
use crate::time::Ticks;

/// What all ranks know after the agreement, the same on all.
#[derive(Debug)]
pub(crate) struct Agreed {
    /// This application's tick.
    pub(crate) tick: Ticks,
    /// The ranks of each application, by number.
    pub(crate) members: Vec<Vec<Rank>>,
    /// One per connection.
    pub(crate) links: Vec<Link>,
    /// Whether this application is in a loop of connections.
    pub(crate) in_loop: bool,
    /// How far ahead a waiting rank takes what arrives.
    pub(crate) slack: Ticks,
}

/// A connection after the agreement.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) kind: Kind,
    pub(crate) schedule: Schedule,
    /// One past the highest id that anybody maps.
    pub(crate) end: u64,
    pub(crate) algorithm: Algorithm,
    pub(crate) reason: &'static str,
}

/// Collective over the job.
pub(super) fn agree<F: Fabric>(setup: &mut Setup<F>, tick_seconds: f64) -> Result<Agreed, Error> {
    let (tick, declaration, mut all) = gather(setup, tick_seconds)?;
    let job = setup.job.clone();
    check_failures(&job, &all)?;
    let members = members(&job, &all)?;
    check_equality(setup, &declaration, &all)?;
    let declarations: BTreeMap<usize, Declaration> = all
        .iter_mut()
        .filter_map(|one| Some((one.application, one.declaration.take()?)))
        .collect();
    // Every application has a rank 0, so the values are in the order of the applications.
    let declarations: Vec<Declaration> = declarations.into_values().collect();
    check_ports(&job, &declarations)?;
    let kinds = kinds(&job, &declarations)?;
    let extents = Extents::of(&job, &all);
    let told = setup.driver.fabric().rank() == Rank(0);
    let wide = extents.iter().zip(&job.connections).zip(&kinds);
    for ((extents, connection), _) in wide.filter(|(_, kind)| kind.has_ids()) {
        if let Some(warning) = extents.check(&job, connection)?.filter(|_| told) {
            setup.observer.warning(&warning);
        }
    }
    let schedules = super::schedules::negotiated(&job, &declarations)?;
    let slack = |sum: Ticks, schedule: &Schedule| sum.plus(schedule.slack());
    let slack = schedules.iter().fold(Ticks::ZERO, slack);
    let topology = setup.driver.fabric().topology();
    let links = schedules.into_iter().zip(&extents).zip(&job.connections);
    let links = links.zip(kinds);
    let links = links.map(|(((schedule, extents), connection), kind)| {
        let receivers = &members[connection.receiver.application];
        let (algorithm, reason) = choose(connection, kind, extents, receivers, topology);
        Link {
            kind,
            schedule,
            end: extents.sender_end.max(extents.receiver_end),
            algorithm,
            reason,
        }
    });
    let links = links.collect();
    Ok(Agreed {
        tick,
        members,
        links,
        in_loop: is_in_loop(&job, setup.application),
        slack,
    })
}

/// Everybody's contributions, by rank.
fn gather<F: Fabric>(
    setup: &mut Setup<F>,
    tick_seconds: f64,
) -> Result<(Ticks, Declaration, Vec<Contribution>), Error> {
    let tick = setup.job.timebase.interval(tick_seconds);
    let declaration = Declaration::of(setup, tick.unwrap_or_default());
    let contribution = Contribution {
        application: setup.application,
        number: setup.rank(),
        failure: tick.err().map(|error| format!("tick: {error}")),
        fingerprint: declaration.fingerprint(),
        extents: own_extents(setup),
        declaration: (setup.rank() == 0).then(|| declaration.clone()),
    };
    let words = contribution.write();
    let gathered = setup.world.gather(&mut setup.driver, &words)?;
    let tick = tick.map_err(|source| Error::Time {
        what: "tick".to_owned(),
        source,
    })?;
    let read =
        |(from, words): (usize, &Vec<u64>)| Contribution::read(words).map_err(|_| malformed(from));
    let all: Result<Vec<_>, _> = gathered.iter().enumerate().map(read).collect();
    Ok((tick, declaration, all?))
}

/// Whether connections lead from an application back to itself.
fn is_in_loop(job: &Job, application: usize) -> bool {
    let mut reached = BTreeSet::new();
    let mut next = vec![application];
    while let Some(from) = next.pop() {
        let leaving = job
            .connections
            .iter()
            .filter(|one| one.sender.application == from);
        for to in leaving.map(|one| one.receiver.application) {
            if reached.insert(to) {
                next.push(to);
            }
        }
    }
    reached.contains(&application)
}

fn check_failures(job: &Job, all: &[Contribution]) -> Result<(), Error> {
    let Some(failed) = all.iter().find(|one| one.failure.is_some()) else {
        return Ok(());
    };
    let application = job.applications.get(failed.application);
    Err(Error::Elsewhere {
        application: application.map_or_else(String::new, |known| known.name.clone()),
        rank: failed.number,
        message: failed.failure.clone().unwrap_or_default(),
    })
}

/// The ranks of each application.
fn members(job: &Job, all: &[Contribution]) -> Result<Vec<Vec<Rank>>, Error> {
    let mut members = vec![Vec::new(); job.applications.len()];
    for (rank, one) in all.iter().enumerate() {
        let ranks: &mut Vec<Rank> = members
            .get_mut(one.application)
            .ok_or_else(|| malformed(rank))?;
        if one.number as usize != ranks.len() {
            return Err(malformed(rank));
        }
        ranks.push(Rank(
            u32::try_from(rank).expect("ranks are numbered by u32"),
        ));
    }
    for (application, ranks) in job.applications.iter().zip(&members) {
        let found = u32::try_from(ranks.len()).expect("ranks are numbered by u32");
        if found != application.processes {
            return Err(Error::ApplicationRanks {
                place: format!("{}:{}", job.file, application.location.line),
                application: application.name.clone(),
                expected: application.processes,
                found,
            });
        }
    }
    Ok(members)
}

/// The ranks of each application must ask for the same. If some do not, all ranks look at all
/// declarations, so that the error can say what differs.
fn check_equality<F: Fabric>(
    setup: &mut Setup<F>,
    own: &Declaration,
    all: &[Contribution],
) -> Result<(), Error> {
    let first = |application| {
        let mut ranks = all.iter().filter(|one| one.application == application);
        ranks.next().map(|one| one.fingerprint)
    };
    let firsts: Vec<_> = (0..setup.job.applications.len()).map(first).collect();
    let differs = |one: &Contribution| firsts[one.application] != Some(one.fingerprint);
    let Some(odd) = all.iter().find(|one| differs(one)) else {
        return Ok(());
    };
    let mut writer = Writer::default();
    if setup.application == odd.application {
        own.write(&mut writer);
    }
    let words = writer.into_words();
    let told = setup.world.gather(&mut setup.driver, &words)?;
    let mut declared = Vec::new();
    for (from, words) in told
        .iter()
        .enumerate()
        .filter(|(_, words)| !words.is_empty())
    {
        let declaration = Declaration::read(&mut Reader::new(words));
        declared.push(declaration.map_err(|_| malformed(from))?);
    }
    let what = declared
        .first()
        .zip(declared.get(odd.number as usize))
        .and_then(|(first, odd)| first.difference(odd));
    let ranks = all
        .iter()
        .filter(|one| one.application == odd.application && differs(one))
        .map(|one| one.number)
        .collect();
    Err(Error::Disagree {
        application: setup.job.applications[odd.application].name.clone(),
        what: what.unwrap_or_else(|| "what it asks".to_owned()),
        ranks,
    })
}

/// Every connected port must be published and mapped.
fn check_ports(job: &Job, declarations: &[Declaration]) -> Result<(), Error> {
    for connection in &job.connections {
        let ends = [
            (&connection.sender, Direction::Output),
            (&connection.receiver, Direction::Input),
        ];
        for (end, direction) in ends {
            let declared = &declarations[end.application];
            let asked = declared.ports.get(&(direction, end.port.clone()));
            if asked.is_some_and(|asked| asked.mapped) {
                continue;
            }
            let lacks = if asked.is_some() { "map" } else { "publish" };
            return Err(Error::Unpublished {
                place: place_of(job, connection),
                application: job.applications[end.application].name.clone(),
                port: end.port.clone(),
                lacks,
                known: known(declared, direction),
            });
        }
    }
    Ok(())
}

/// What each connection carries, the same at both its ends.
fn kinds(job: &Job, declarations: &[Declaration]) -> Result<Vec<Kind>, Error> {
    let asked = |connection: &Connection| {
        let (from, to) = (&connection.sender, &connection.receiver);
        let output = (Direction::Output, from.port.clone());
        let input = (Direction::Input, to.port.clone());
        let output = declarations[from.application].ports.get(&output)?;
        Some((output, declarations[to.application].ports.get(&input)?))
    };
    let kind = |connection| {
        let (output, input) = asked(connection).expect("every connected port is published");
        if output.kind == input.kind {
            return Ok(output.kind);
        }
        Err(Error::Kinds {
            place: place_of(job, connection),
            output: job.endpoint_name(&connection.sender),
            sent: output.kind.to_string(),
            input: job.endpoint_name(&connection.receiver),
            wanted: input.kind.to_string(),
        })
    };
    job.connections.iter().map(kind).collect()
}

fn known(declared: &Declaration, direction: Direction) -> String {
    let ports = declared.ports.keys().filter(|(way, _)| *way == direction);
    let names: Vec<&str> = ports.map(|(_, name)| name.as_str()).collect();
    match names.as_slice() {
        [] => format!("it publishes no {direction} port"),
        [one] => format!("its only {direction} port is {one}"),
        _ => format!("its {direction} ports are {}", names.join(", ")),
    }
}
