//! The report of a run: what every port did, over all ranks of its application.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde::Serialize;
use tutti::Job;
use tutti::report::{Direction, Member, PortReport, ProcessReport, WaitedFor};

use crate::command::table::{Table, bytes, span};

/// What the processes have reported.
#[derive(Debug)]
pub(super) struct Summary {
    expected: usize,
    started: Instant,
    processes: Vec<ProcessReport>,
    joined: BTreeSet<usize>,
}

/// One end of one connection, over all ranks.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct PortRow {
    application: String,
    port: String,
    direction: Direction,
    peer: String,
    peer_port: String,
    algorithm: String,
    reason: String,
    events: u64,
    /// Per second of wall-clock time.
    events_per_s: f64,
    bytes: u64,
    communications: u64,
    /// Added over ranks.
    waited_s: f64,
    waited_for: Vec<WaitedFor>,
}

#[derive(Serialize)]
struct Whole<'a> {
    file: &'a str,
    exit_code: u8,
    /// From the start of the first process to the end of the last one.
    wall_s: f64,
    /// From the end of set-up to the end of finalising, of the slowest rank.
    run_wall_s: f64,
    simulated_s: f64,
    complete: bool,
    ports: Vec<PortRow>,
    processes: &'a [ProcessReport],
}

impl Summary {
    pub(super) fn new(job: &Job) -> Self {
        let expected = job.ranks() as usize;
        Self {
            expected,
            started: Instant::now(),
            processes: Vec::new(),
            joined: BTreeSet::new(),
        }
    }

    /// The processes have been started.
    pub(super) fn started(&mut self) {
        self.started = Instant::now();
    }

    /// A process has finished.
    pub(super) fn add(&mut self, report: ProcessReport) {
        self.processes.push(report);
    }

    /// A process, by its rank in the job, has joined the others or has reported something.
    pub(super) fn joined(&mut self, process: usize) {
        self.joined.insert(process);
    }

    /// A line for each application that the file connects and that never joined.
    pub(super) fn strangers(&self, job: &Job) -> Vec<String> {
        let ranks = self
            .joined
            .iter()
            .filter_map(|&rank| u32::try_from(rank).ok());
        let mut known: BTreeSet<usize> =
            ranks.filter_map(|rank| job.application_of(rank)).collect();
        let mut lines = Vec::new();
        for connection in &job.connections {
            for end in [&connection.sender, &connection.receiver] {
                if known.insert(end.application) {
                    let (file, place) = (&job.file, connection.location);
                    let name = &job.applications[end.application].name;
                    let port = job.endpoint_name(end);
                    lines.push(format!(
                        "{file}:{place}: application {name} never joined although the file \
                         connects its port {port}"
                    ));
                }
            }
        }
        lines
    }

    /// The whole report as one line of JSON.
    pub(super) fn json(&self, job: &Job, exit_code: u8) -> serde_json::Result<String> {
        serde_json::to_string(&Whole {
            file: &job.file,
            exit_code,
            wall_s: self.started.elapsed().as_secs_f64(),
            run_wall_s: self.run_wall_s(),
            simulated_s: self.simulated_s(),
            complete: self.processes.len() == self.expected,
            ports: self.rows(job),
            processes: &self.processes,
        })
    }

    /// The report as text; nothing if no process has reported anything.
    pub(super) fn text(&self, job: &Job) -> String {
        if self.processes.is_empty() {
            return String::new();
        }
        let (simulated, wall) = (self.simulated_s(), self.run_wall_s());
        let mut text = format!(
            "\n{}: {simulated} s simulated in {} ({:.1} x real time), {} processes over {}\n",
            job.file,
            span(wall),
            simulated / wall.max(1e-9),
            self.processes.len(),
            self.fabric(),
        );
        let rows = self.rows(job);
        if !rows.is_empty() {
            text.push_str(&table(&rows).text());
        }
        text
    }

    /// What joined the ranks, as the first application's first rank says.
    fn fabric(&self) -> &str {
        let first = self.processes.iter().min_by_key(|process| &process.who);
        first.map_or("", |process| &process.fabric)
    }

    fn simulated_s(&self) -> f64 {
        self.processes
            .iter()
            .map(|process| process.time_s)
            .fold(0.0, f64::max)
    }

    fn run_wall_s(&self) -> f64 {
        self.processes
            .iter()
            .map(|process| process.wall_s)
            .fold(0.0, f64::max)
    }

    /// One row per application, port and peer, in the order of the file.
    fn rows(&self, job: &Job) -> Vec<PortRow> {
        let mut rows: Vec<PortRow> = Vec::new();
        let mut processes: Vec<_> = self.processes.iter().collect();
        processes
            .sort_by_key(|process| (job.application(&process.who.application), process.who.rank));
        for (process, port) in processes
            .iter()
            .flat_map(|p| p.ports.iter().map(move |q| (p, q)))
        {
            let application = &process.who.application;
            match rows.iter_mut().find(|row| row.is_of(application, port)) {
                Some(row) => row.add(port),
                None => rows.push(PortRow::new(application, port)),
            }
        }
        let wall = self.run_wall_s().max(1e-9);
        for row in &mut rows {
            row.events_per_s = row.events as f64 / wall;
            let shares = std::mem::take(&mut row.waited_for);
            row.waited_for = joined(shares);
        }
        rows
    }
}

impl PortRow {
    fn new(application: &str, port: &PortReport) -> Self {
        Self {
            application: application.to_owned(),
            port: port.port.clone(),
            direction: port.direction,
            peer: port.peer.clone(),
            peer_port: port.peer_port.clone(),
            algorithm: port.algorithm.clone(),
            reason: port.reason.clone(),
            events: port.events,
            events_per_s: 0.0,
            bytes: port.bytes,
            communications: port.communications,
            waited_s: port.waited_s,
            waited_for: port.waited_for.clone(),
        }
    }

    fn is_of(&self, application: &str, port: &PortReport) -> bool {
        self.application == application
            && self.port == port.port
            && self.direction == port.direction
            && self.peer == port.peer
            && self.peer_port == port.peer_port
    }

    fn add(&mut self, port: &PortReport) {
        self.events += port.events;
        self.bytes += port.bytes;
        self.communications += port.communications;
        self.waited_s += port.waited_s;
        self.waited_for.extend(port.waited_for.iter().cloned());
    }
}

/// Adds up the shares of each rank, the longest first.
fn joined(shares: Vec<WaitedFor>) -> Vec<WaitedFor> {
    let mut by_rank: BTreeMap<Member, f64> = BTreeMap::new();
    for share in shares {
        *by_rank.entry(share.who).or_default() += share.waited_s;
    }
    let shares = by_rank
        .into_iter()
        .map(|(who, waited_s)| WaitedFor { who, waited_s });
    let mut shares: Vec<_> = shares.collect();
    shares.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s));
    shares
}

fn table(rows: &[PortRow]) -> Table {
    let mut table = Table::new(&[
        ("port", false),
        ("", false),
        ("peer", false),
        ("by", false),
        ("events", true),
        ("events/s", true),
        ("bytes", true),
        ("comms", true),
        ("waited", true),
        ("most for", false),
    ]);
    for row in rows {
        let most = row.waited_for.first();
        table.row(vec![
            format!("{}.{}", row.application, row.port),
            if row.direction == Direction::Output {
                "->"
            } else {
                "<-"
            }
            .to_owned(),
            format!("{}.{}", row.peer, row.peer_port),
            row.algorithm.clone(),
            row.events.to_string(),
            format!("{:.0}", row.events_per_s),
            bytes(row.bytes),
            row.communications.to_string(),
            span(row.waited_s),
            most.map_or_else(String::new, |share| {
                format!("{}.{}", share.who.application, share.who.rank)
            }),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(rank: u32) -> Member {
        Member {
            application: "B".to_owned(),
            rank,
        }
    }

    fn process(rank: u32, waited_s: f64) -> ProcessReport {
        let port = PortReport {
            port: "out".to_owned(),
            direction: Direction::Output,
            peer: "B".to_owned(),
            peer_port: "in".to_owned(),
            algorithm: "pairwise".to_owned(),
            reason: String::new(),
            events: 10,
            bytes: 800,
            communications: 5,
            exchanges: 5,
            waited_s,
            waited_for: vec![WaitedFor {
                who: member(rank),
                waited_s,
            }],
        };
        let who = Member {
            application: "A".to_owned(),
            rank,
        };
        ProcessReport {
            who,
            time_s: 1.0,
            ticks: 100,
            wall_s: 0.5,
            fabric: "shared memory".to_owned(),
            ports: vec![port],
        }
    }

    fn summary() -> (Job, Summary) {
        let text = "[A]\nbinary=a\nnp=2\n[B]\nbinary=b\nnp=2\nA.out -> B.in [1]\n";
        let job = Job::parse("x.music", text).unwrap();
        let mut summary = Summary::new(&job);
        summary.add(process(1, 0.3));
        summary.add(process(0, 0.1));
        (job, summary)
    }

    #[test]
    fn ranks_of_an_application_are_added_up() {
        let (job, summary) = summary();

        let text = summary.text(&job);

        assert_eq!(
            text,
            "\nx.music: 1 s simulated in 500.0 ms (2.0 x real time), 2 processes over shared \
             memory\n\
             port       peer  by        events  events/s   bytes  comms    waited  most for\n\
             A.out  ->  B.in  pairwise      20        40  1.6 kB     10  400.0 ms  B.1\n"
        );
    }

    #[test]
    fn the_json_report_is_one_object_on_one_line() {
        let (job, summary) = summary();

        let json = summary.json(&job, 0).unwrap();

        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(!json.contains('\n'));
        assert_eq!(value["ports"][0]["events"], 20);
        assert_eq!(value["ports"][0]["waited_for"][0]["who"]["rank"], 1);
        assert_eq!(value["complete"], false);
    }
}
