//! What one rank says about itself when all agree.

use std::collections::BTreeMap;

use transport_core::Fabric;

use super::Setup;
use super::wire::{Malformed, Reader, Writer};
use crate::Error;
use crate::index::IndexMap;
use crate::job::Job;
use crate::kind::Kind;
use crate::report::Direction;
use crate::time::Ticks;

/// What must be equal on all ranks of an application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Declaration {
    pub(super) tick: Ticks,
    pub(super) ports: BTreeMap<(Direction, String), Asked>,
}

/// What an application asks of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) mapped: bool,
    pub(super) latency: Ticks,
    pub(super) max_buffered: Option<u64>,
}

/// How much of a connection a rank maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Extent {
    /// One past the highest id.
    pub(super) end: u64,
    /// How many ids.
    pub(super) size: u64,
}

/// Everything a rank contributes to the agreement.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Contribution {
    pub(super) application: usize,
    pub(super) number: u32,
    pub(super) failure: Option<String>,
    pub(super) fingerprint: u64,
    /// One per end of a connection that the application has, in the order of the file.
    pub(super) extents: Vec<Extent>,
    /// Only from rank 0 of each application.
    pub(super) declaration: Option<Declaration>,
}

impl Declaration {
    pub(super) fn of<F: Fabric>(setup: &Setup<F>, tick: Ticks) -> Self {
        let mut ports = BTreeMap::new();
        for port in &setup.outputs {
            let mapped = port.mapped.as_ref();
            let asked = Asked {
                kind: port.kind,
                mapped: mapped.is_some(),
                latency: Ticks::ZERO,
                max_buffered: mapped.and_then(|mapped| mapped.max_buffered),
            };
            ports.insert((Direction::Output, port.name.clone()), asked);
        }
        for port in &setup.inputs {
            let mapped = port.mapped.as_ref();
            let seconds = mapped.map_or(0.0, |mapped| mapped.own.latency);
            let asked = Asked {
                kind: port.kind,
                mapped: mapped.is_some(),
                // Checked when the port was mapped.
                latency: setup.job.timebase.ticks(seconds).unwrap_or_default(),
                max_buffered: mapped.and_then(|mapped| mapped.max_buffered),
            };
            ports.insert((Direction::Input, port.name.clone()), asked);
        }
        Self { tick, ports }
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.number(self.tick.0.cast_unsigned());
        writer.number(self.ports.len() as u64);
        for ((direction, name), asked) in &self.ports {
            writer
                .flag(*direction == Direction::Input)
                .text(name)
                .number(asked.kind.code())
                .flag(asked.mapped)
                .number(asked.latency.0.cast_unsigned())
                .number(asked.max_buffered.unwrap_or(0));
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let tick = Ticks(reader.number()?.cast_signed());
        let mut ports = BTreeMap::new();
        for _ in 0..reader.number()? {
            let direction = if reader.flag()? {
                Direction::Input
            } else {
                Direction::Output
            };
            let name = reader.text()?;
            let asked = Asked {
                kind: Kind::of_code(reader.number()?).ok_or(Malformed)?,
                mapped: reader.flag()?,
                latency: Ticks(reader.number()?.cast_signed()),
                max_buffered: Some(reader.number()?).filter(|&ticks| ticks > 0),
            };
            ports.insert((direction, name), asked);
        }
        Ok(Self { tick, ports })
    }

    /// Equal for equal declarations, and hardly ever for different ones.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut writer = Writer::default();
        self.write(&mut writer);
        writer.into_words().iter().fold(FNV_OFFSET, |hash, word| {
            word.to_le_bytes().iter().fold(hash, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
            })
        })
    }

    /// The first thing in which two declarations differ.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.tick != other.tick {
            return Some("the tick".to_owned());
        }
        let names = self.ports.keys().chain(other.ports.keys());
        for key @ (_, name) in names {
            let aspect = match (self.ports.get(key), other.ports.get(key)) {
                (Some(mine), Some(theirs)) => mine.difference(theirs),
                _ => Some("is it published"),
            };
            if let Some(aspect) = aspect {
                return Some(format!("port {name} ({aspect})"));
            }
        }
        None
    }
}

impl Asked {
    fn difference(&self, other: &Self) -> Option<&'static str> {
        if self.kind != other.kind {
            return Some("what it carries");
        }
        if self.mapped != other.mapped {
            return Some("is it mapped");
        }
        if self.latency != other.latency {
            return Some("its acceptable latency");
        }
        (self.max_buffered != other.max_buffered).then_some("its max_buffered")
    }
}

impl Contribution {
    pub(super) fn write(&self) -> Vec<u64> {
        let mut writer = Writer::default();
        writer
            .number(self.application as u64)
            .number(u64::from(self.number))
            .text(self.failure.as_deref().unwrap_or(""))
            .number(self.fingerprint)
            .numbers(self.extents.iter().map(|extent| extent.end))
            .numbers(self.extents.iter().map(|extent| extent.size))
            .flag(self.declaration.is_some());
        if let Some(declaration) = &self.declaration {
            declaration.write(&mut writer);
        }
        writer.into_words()
    }

    pub(super) fn read(words: &[u64]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(words);
        Ok(Self {
            application: reader.index()?,
            number: reader.small()?,
            failure: Some(reader.text()?).filter(|text| !text.is_empty()),
            fingerprint: reader.number()?,
            extents: {
                let (ends, sizes) = (reader.numbers()?, reader.numbers()?);
                let pairs = ends.iter().zip(sizes);
                pairs.map(|(&end, &size)| Extent { end, size }).collect()
            },
            declaration: match reader.flag()? {
                true => Some(Declaration::read(&mut reader)?),
                false => None,
            },
        })
    }
}

impl Extent {
    pub(super) fn of(map: Option<&IndexMap>) -> Self {
        map.map_or(Self::default(), |map| Self {
            end: map.end(),
            size: map.size(),
        })
    }
}

/// A failure as another rank tells it.
pub(super) fn read_failure(reader: &mut Reader<'_>, job: &Job) -> Result<Error, Malformed> {
    let application = reader.index()?;
    let rank = reader.small()?;
    let application = job.applications.get(application).ok_or(Malformed)?;
    Ok(Error::Elsewhere {
        application: application.name.clone(),
        rank,
        message: reader.text()?,
    })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration() -> Declaration {
        let asked = Asked {
            kind: Kind::Events,
            mapped: true,
            latency: Ticks(5),
            max_buffered: None,
        };
        Declaration {
            tick: Ticks(1000),
            ports: BTreeMap::from([
                ((Direction::Output, "out".to_owned()), asked),
                ((Direction::Input, "in".to_owned()), asked),
            ]),
        }
    }

    #[test]
    fn a_contribution_is_read_as_it_was_written() {
        let contribution = Contribution {
            application: 2,
            number: 3,
            failure: Some("no".to_owned()),
            fingerprint: declaration().fingerprint(),
            extents: vec![Extent { end: 10, size: 4 }, Extent::default()],
            declaration: Some(declaration()),
        };

        let words = contribution.write();

        assert_eq!(Contribution::read(&words), Ok(contribution));
        assert_eq!(Contribution::read(&words[..9]), Err(Malformed));
    }

    #[test]
    fn differences_are_named() {
        let changed = |change: &dyn Fn(&mut Declaration)| {
            let mut other = declaration();
            change(&mut other);
            assert_ne!(other.fingerprint(), declaration().fingerprint());
            declaration().difference(&other).unwrap()
        };
        let input = (Direction::Input, "in".to_owned());

        assert_eq!(changed(&|other| other.tick = Ticks(1)), "the tick");
        assert_eq!(
            changed(&|other| other.ports.get_mut(&input).unwrap().latency = Ticks(6)),
            "port in (its acceptable latency)"
        );
        assert_eq!(
            changed(&|other| other.ports.get_mut(&input).unwrap().kind = Kind::Messages),
            "port in (what it carries)"
        );
        assert_eq!(
            changed(&|other| {
                other.ports.remove(&input);
            }),
            "port in (is it published)"
        );
        assert_eq!(declaration().difference(&declaration()), None);
    }
}
