//! What is measured over networks, and the command of each subject.

use std::path::PathBuf;
use std::process::Command;

use super::Bench;
use super::hosts::Hosts;
use super::peers::Mpi;

/// One row of a table: a subject and how to run it.
pub(super) struct Subject<'a> {
    pub(super) name: String,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Ours with these options, and with this libfabric instead of the system's.
    Own(Vec<String>, Option<PathBuf>),
    /// A TCP connection written by hand.
    Stream,
    Mpi(&'a Mpi, Option<&'a Hosts>),
}

/// One column of a table.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) question: &'static str,
    pub(super) ranks: u32,
    pub(super) bytes: u64,
}

/// The fabrics between ranks of one host, each a node of its own, and between two hosts; then the
/// peers in the same places.
pub(super) fn points<'a>(bench: &'a Bench<'_>, hosts: Option<&'a Hosts>) -> Vec<Subject<'a>> {
    let mut subjects: Vec<_> = ["shm", "tcp", "sockets", "udp"]
        .map(|fabric| Subject::own(fabric, None))
        .into();
    let newer = bench.peers.mpis.iter().find_map(Mpi::libfabric);
    if newer.is_none() {
        println!("without tutti tcp-rdm: no libfabric newer than 1.17 was found");
    }
    for fabric in ["tcp", "tcp-rdm"].iter().filter(|_| newer.is_some()) {
        subjects.push(Subject::own(fabric, newer.clone()));
    }
    subjects.push(Subject {
        name: "plain TCP".into(),
        kind: Kind::Stream,
    });
    let single = bench.peers.mpis.iter().filter(|mpi| !mpi.is_default());
    subjects.extend(single.map(|mpi| Subject {
        name: format!("{}, tcp", mpi.name),
        kind: Kind::Mpi(mpi, None),
    }));
    if hosts.is_some() {
        subjects.extend(pairs(bench, hosts));
    }
    wanted(bench, subjects)
}

/// Two hosts, or what comes closest to them on this machine.
pub(super) fn pairs<'a>(bench: &'a Bench<'_>, hosts: Option<&'a Hosts>) -> Vec<Subject<'a>> {
    let place = if hosts.is_some() {
        "two hosts"
    } else {
        "one host, tcp"
    };
    let options = match hosts {
        Some(hosts) => vec!["--namespaces".into(), hosts.namespaces()],
        None => vec!["--nodes".into(), "2".into()],
    };
    let own = Subject {
        name: format!(
            "tutti, {}",
            if hosts.is_some() { place } else { "two nodes" }
        ),
        kind: Kind::Own(options, None),
    };
    let open = bench.peers.mpis.iter().filter(|mpi| mpi.is_open_mpi());
    let peers = open.map(|mpi| Subject {
        name: format!("{}, {place}", mpi.name),
        kind: Kind::Mpi(mpi, hosts),
    });
    wanted(bench, std::iter::once(own).chain(peers).collect())
}

fn wanted<'a>(bench: &Bench<'_>, subjects: Vec<Subject<'a>>) -> Vec<Subject<'a>> {
    let wanted = subjects.into_iter();
    wanted.filter(|one| bench.is_wanted(&one.name)).collect()
}

impl Subject<'_> {
    fn own(fabric: &str, library: Option<PathBuf>) -> Self {
        let age = library.as_ref().map_or("", |_| " (libfabric 2.5)");
        Self {
            name: format!("tutti {fabric}{age}"),
            kind: Kind::Own(vec!["--fabric".into(), fabric.into()], library),
        }
    }

    /// A stream cannot add, and ranks of one host add to each other's memory without a message.
    pub(super) fn answers(&self, case: Case) -> bool {
        match self.kind {
            Kind::Own(..) | Kind::Mpi(_, Some(_)) => true,
            Kind::Stream | Kind::Mpi(_, None) => !case.question.starts_with("fetch_add"),
        }
    }

    pub(super) fn command(&self, bench: &Bench<'_>, case: Case) -> Command {
        match &self.kind {
            Kind::Own(options, library) => {
                let mut command = own(bench, case);
                command.args(options);
                command.envs(library.iter().map(|file| ("TUTTI_LIBFABRIC", file)));
                command
            }
            Kind::Stream => {
                let mut command = own(bench, case);
                command.args(["--peer", "tcp"]);
                command
            }
            Kind::Mpi(mpi, hosts) => {
                let mut command = mpi.launch_over_tcp(case.ranks, *hosts);
                let span = repetition_ms(bench);
                command.arg(mpi.program("mpi_collectives"));
                command.args([
                    case.question,
                    &case.bytes.to_string(),
                    REPETITIONS,
                    span,
                    span,
                ]);
                match hosts {
                    Some(hosts) => hosts.on_first(&command),
                    None => command,
                }
            }
        }
    }
}

fn own(bench: &Bench<'_>, case: Case) -> Command {
    let mut command = bench.program(match case.question {
        "put" => "put_latency",
        "barrier" => "barrier_latency",
        "allgather" => "allgather_latency",
        _ => "fetch_add",
    });
    let span = repetition_ms(bench);
    command.args(["--ranks", &case.ranks.to_string()]);
    command.args(["--bytes", &case.bytes.to_string()]);
    command.args(["--repetitions", REPETITIONS, "--repetition-ms", span]);
    command.args(["--warmup-ms", span]);
    command.args((case.question == "fetch_add_contended").then_some("--contended"));
    command
}

fn repetition_ms(bench: &Bench<'_>) -> &'static str {
    if bench.options.quick { "20" } else { "50" }
}

/// Repetitions in one run.
const REPETITIONS: &str = "5";
