//! The agreement: everybody's declarations, checked, and what follows from them.

use std::collections::BTreeMap;

use transport_core::{Fabric, Rank};

use super::declare::{Contribution, Declaration, Extent};
use super::wire::{Reader, Writer};
use super::world::malformed;
use super::{Setup, place_of};
use crate::Error;
use crate::job::{Communication, Connection, Job};
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
    /// How far ahead a waiting rank takes what arrives.
    pub(crate) slack: Ticks,
}

/// A connection after the agreement.
#[derive(Debug)]
pub(crate) struct Link {
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
    let reach = Reach::new(&job, &all);
    let warnings = reach.check(&job)?;
    if setup.driver.fabric().rank() == Rank(0) {
        for warning in warnings {
            setup.observer.warning(&warning);
        }
    }
    let schedules = super::schedules::negotiated(&job, &declarations)?;
    let slack = |sum: Ticks, schedule: &Schedule| sum.plus(schedule.slack());
    let slack = schedules.iter().fold(Ticks::ZERO, slack);
    let links = schedules.into_iter().enumerate();
    let links = links.map(|(index, schedule)| {
        let (algorithm, reason) = choose(&job.connections[index]);
        Link {
            schedule,
            end: reach.end(index),
            algorithm,
            reason,
        }
    });
    Ok(Agreed {
        tick,
        members,
        links: links.collect(),
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

/// How a connection's spikes travel, and why.
fn choose(connection: &Connection) -> (Algorithm, &'static str) {
    match connection.communication {
        Communication::Pairwise => (Algorithm::Pairwise, "the file says so, or nothing"),
        Communication::Allgather => (Algorithm::Allgather, "the file says so"),
    }
}

/// The extents of this rank's maps, for each end of a connection that its application has.
fn own_extents<F: Fabric>(setup: &Setup<F>) -> Vec<Extent> {
    let mut extents = Vec::new();
    for connection in &setup.job.connections {
        if connection.sender.application == setup.application {
            let port = setup
                .outputs
                .iter()
                .find(|p| p.name == connection.sender.port);
            let mapped = port.and_then(|port| port.mapped.as_ref());
            extents.push(Extent::of(mapped.map(|mapped| &mapped.map)));
        } else if connection.receiver.application == setup.application {
            let port = setup
                .inputs
                .iter()
                .find(|p| p.name == connection.receiver.port);
            let mapped = port.and_then(|port| port.mapped.as_ref());
            extents.push(Extent::of(mapped.map(|mapped| &mapped.map)));
        }
    }
    extents
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

fn known(declared: &Declaration, direction: Direction) -> String {
    let ports = declared.ports.keys().filter(|(way, _)| *way == direction);
    let names: Vec<&str> = ports.map(|(_, name)| name.as_str()).collect();
    match names.as_slice() {
        [] => format!("it publishes no {direction} port"),
        [one] => format!("its only {direction} port is {one}"),
        _ => format!("its {direction} ports are {}", names.join(", ")),
    }
}

/// How far the maps of each connection's sender and receiver reach.
struct Reach {
    ends: Vec<(u64, u64)>,
}

impl Reach {
    fn new(job: &Job, all: &[Contribution]) -> Self {
        let mut ends = vec![(0, 0); job.connections.len()];
        for one in all {
            let mut extents = one.extents.iter();
            for (connection, (sender, receiver)) in job.connections.iter().zip(&mut ends) {
                let side = if connection.sender.application == one.application {
                    sender
                } else if connection.receiver.application == one.application {
                    receiver
                } else {
                    continue;
                };
                let end = extents.next().map_or(0, |extent| extent.end);
                *side = end.max(*side);
            }
        }
        Self { ends }
    }

    /// One past the highest id of a connection.
    fn end(&self, connection: usize) -> u64 {
        let (sender, receiver) = self.ends[connection];
        sender.max(receiver)
    }

    /// No side may reach further than the file's width, nor the receiver further than the sender.
    /// Yields warnings about widths that the sender does not fill.
    fn check(&self, job: &Job) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        for (connection, &(sender, receiver)) in job.connections.iter().zip(&self.ends) {
            let place = place_of(job, connection);
            let name = job.connection_name(connection);
            let output = job.endpoint_name(&connection.sender);
            let input = job.endpoint_name(&connection.receiver);
            let too_wide = |port: &str, end, limit_of: String, limit| Error::Width {
                place: place.clone(),
                port: port.to_owned(),
                end,
                limit_of,
                limit,
            };
            if let Some(width) = connection.width {
                for (port, end) in [(&output, sender), (&input, receiver)] {
                    if end > width {
                        return Err(too_wide(port, end, format!("the connection {name}"), width));
                    }
                }
                if sender < width {
                    warnings.push(format!(
                        "{place}: the connection {name} is {width} wide, but {output} maps ids \
                         only up to {sender}"
                    ));
                }
            }
            if receiver > sender {
                return Err(too_wide(
                    &input,
                    receiver,
                    format!("output port {output}"),
                    sender,
                ));
            }
        }
        Ok(warnings)
    }
}
