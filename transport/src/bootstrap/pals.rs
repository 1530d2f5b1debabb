//! PALS, the launcher of HPE Cray EX (and Slurm with `--mpi=cray_shasta`): a file tells who runs
//! where, and nobody carries values; we do, over our own TCP on the host of rank 0.
//!
//! The file `PALS_APINFO` starts with a version, its own length and a row of tables, each given by
//! entry size, offset and count. Later versions append fields to entries and tables to the row, so
//! entries are found by the sizes in the file. Known versions are 1 (Slurm 22.05) to 5 (Slurm since
//! 23.02, Flux, PALS).

use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::Joined;
use super::predict::{check_within, number};
use super::tcp_meet::{HOST_VARIABLE, Meeting, meet};
use super::tcp_ports::ports_of_job;
use super::tcp_secret::Secret;

const RANK: &str = "PALS_RANKID";
const FILE: &str = "PALS_APINFO";

/// Joins a job of PALS.
pub(crate) fn join(
    patience: Patience,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Joined, BootstrapError> {
    let missing = |present, missing| BootstrapError::Missing {
        present,
        missing,
        advice: "PALS and srun --mpi=cray_shasta set both",
    };
    let rank = number(RANK, lookup)?.ok_or_else(|| missing("PALS".to_owned(), RANK))?;
    let path = lookup(FILE).ok_or_else(|| missing(format!("{RANK}={rank}"), FILE))?;
    let wrong = |problem: String| BootstrapError::Variable {
        variable: FILE.to_owned(),
        value: path.clone(),
        problem,
    };
    let bytes = std::fs::read(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let info = ApplicationInfo::parse(&bytes)
        .map_err(|problem| wrong(format!("is no description of a job: {problem}")))?;
    let size = u32::try_from(info.ranks.len()).map_err(|_| wrong("is too large".to_owned()))?;
    check_within(RANK, rank, FILE, size)?;
    let at = |rank: u32| &info.ranks[usize::try_from(rank).expect("checked against the size")];
    let (mut host_from, mut host) = (format!("{FILE}={path}"), at(0).host(&info).to_owned());
    if let Some(given) = lookup(HOST_VARIABLE).filter(|host| !host.is_empty()) {
        (host_from, host) = (HOST_VARIABLE.to_owned(), given);
    }
    let job = lookup("PALS_APID").unwrap_or_default();
    let ports = ["PMI_CONTROL_PORT", "SLURM_STEP_RESV_PORTS"];
    let meeting = Meeting {
        rank,
        size,
        node: at(rank).node,
        host,
        host_from,
        one_host: info.ranks.iter().all(|other| other.node == at(0).node),
        ports: ports_of_job(&ports, &job, lookup)?,
        secret: Secret::of_job(lookup),
        patience,
    };
    Ok(Joined {
        rank,
        size,
        app: Some(at(rank).command),
        universe: None,
        exchange: meet(&meeting)?,
    })
}

/// What the file says.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ApplicationInfo {
    ranks: Vec<Place>,
    hosts: Vec<String>,
}

/// Where a rank runs, and which program of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    command: u32,
    node: u32,
}

impl Place {
    fn host(self, info: &ApplicationInfo) -> &str {
        let node = usize::try_from(self.node).expect("an index of a table");
        &info.hosts[node]
    }
}

/// Where a table of the file lies.
#[derive(Clone, Copy)]
struct Table {
    entry: usize,
    offset: usize,
    count: usize,
}

impl ApplicationInfo {
    /// Every place's node is an index of `hosts`, and there is at least one rank.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        const VERSIONS: std::ops::RangeInclusive<i32> = 1..=5;
        let version = integer(bytes, 0)?;
        if !VERSIONS.contains(&version) {
            return Err(format!("its version is {version}, known are 1 to 5"));
        }
        let total = length(bytes, 8)?;
        if total > bytes.len() {
            return Err(format!("it has {} of its {total} bytes", bytes.len()));
        }
        let bytes = &bytes[..total];
        // The first table describes how ranks communicate.
        let commands = Table::read(bytes, 1, 4)?;
        let ranks = Table::read(bytes, 2, 12)?;
        let nodes = Table::read(bytes, 3, 4 + NAME)?;
        let hosts: Result<Vec<String>, String> = (0..nodes.count)
            .map(|index| host(bytes, nodes.at(index)))
            .collect();
        let hosts = hosts?;
        let place = |index: usize| {
            let at = ranks.at(index);
            Ok(Place {
                command: below(integer(bytes, at + 4)?, commands.count, "program", index)?,
                node: below(integer(bytes, at + 8)?, hosts.len(), "node", index)?,
            })
        };
        let ranks: Vec<Place> = (0..ranks.count).map(place).collect::<Result<_, String>>()?;
        if ranks.is_empty() {
            return Err("it has no ranks".to_owned());
        }
        Ok(Self { ranks, hosts })
    }
}

/// Bytes of a host name with its zero byte.
const NAME: usize = 64;

impl Table {
    /// The table `index` of the row; its entries have at least `least` bytes.
    fn read(bytes: &[u8], index: usize, least: usize) -> Result<Self, String> {
        const ROW: usize = 16;
        const COLUMNS: usize = 24;
        let at = ROW + COLUMNS * index;
        let count = integer(bytes, at + 16)?;
        let table = Self {
            entry: length(bytes, at)?,
            offset: length(bytes, at + 8)?,
            count: usize::try_from(count).map_err(|_| format!("table {index} has {count} rows"))?,
        };
        let end = table
            .entry
            .checked_mul(table.count)
            .and_then(|length| length.checked_add(table.offset));
        if table.entry < least && table.count > 0 {
            return Err(format!("rows of table {index} have {} bytes", table.entry));
        }
        match end {
            Some(end) if end <= bytes.len() => Ok(table),
            _ => Err(format!("table {index} lies beyond its end")),
        }
    }

    /// The offset of a row, which `read` found to lie within the file.
    fn at(self, index: usize) -> usize {
        self.offset + self.entry * index
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], String> {
    at.checked_add(N)
        .and_then(|end| bytes.get(at..end))
        .and_then(|field| field.try_into().ok())
        .ok_or_else(|| format!("it ends before byte {at}"))
}

/// The format is that of the machine's C compiler: PALS runs on little-endian machines only.
fn integer(bytes: &[u8], at: usize) -> Result<i32, String> {
    field(bytes, at).map(i32::from_le_bytes)
}

fn length(bytes: &[u8], at: usize) -> Result<usize, String> {
    let value = field(bytes, at).map(u64::from_le_bytes)?;
    usize::try_from(value).map_err(|_| format!("byte {at} holds a length of {value}"))
}

fn host(bytes: &[u8], at: usize) -> Result<String, String> {
    let name: [u8; NAME] = field(bytes, at + 4)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    match std::str::from_utf8(&name[..end]) {
        Ok(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(text.to_owned())
        }
        _ => Err(format!("byte {at} holds no host name")),
    }
}

fn below(value: i32, count: usize, what: &str, rank: usize) -> Result<u32, String> {
    u32::try_from(value)
        .ok()
        .filter(|index| usize::try_from(*index).is_ok_and(|index| index < count))
        .ok_or_else(|| format!("rank {rank} is of {what} {value}, of which there are {count}"))
}

#[cfg(test)]
#[path = "pals_tests.rs"]
mod tests;
