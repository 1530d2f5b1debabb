//! How long a barrier and an allgather take, for every subject in every round.

use std::process::Command;

use serde_json::Value;

use super::peers::Mpi;
use super::rows::{matching, numbers, quantile, shown, spread, table};
use super::{Bench, Run, page, result_of};

/// One row of a table: a subject and how to run it.
struct Subject<'a> {
    name: String,
    pinned: bool,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// Our program with these options.
    Own(&'static [&'static str]),
    Mpi(&'a Mpi),
}

const BARRIER_RANKS: &[u32] = &[2, 4, 8, 16, 32];
const ALLGATHER_RANKS: &[u32] = &[2, 4, 8, 16, 32];
const ALLGATHER_BYTES: &[u64] = &[8, 4_096, 65_536];
const QUICK_RANKS: &[u32] = &[2, 4, 8];

/// Measures barriers and writes their tables; whether every subject had a result.
pub(super) fn barrier(bench: &Bench<'_>) -> Result<bool, String> {
    let mut subjects = subjects(bench);
    for (name, options) in [
        ("futex", ["--peer", "futex"].as_slice()),
        ("yield-futex", &["--peer", "yield-futex"]),
    ] {
        subjects.push(Subject {
            name: name.into(),
            pinned: false,
            kind: Kind::Own(options),
        });
    }
    subjects.retain(|subject| bench.is_wanted(&subject.name));
    let ranks = bench.ranks(if bench.options.quick {
        QUICK_RANKS
    } else {
        BARRIER_RANKS
    });
    let (results, complete) = rounds(bench, "barrier", &subjects, &ranks, &[0])?;
    page::replace(
        bench,
        "barrier",
        &tables(bench, &results, &subjects, &ranks, 0),
    )?;
    Ok(complete)
}

/// Measures allgathers and writes their tables; whether every subject had a result.
pub(super) fn allgather(bench: &Bench<'_>) -> Result<bool, String> {
    let subjects: Vec<_> = subjects(bench)
        .into_iter()
        .filter(|one| !one.pinned)
        .collect();
    let quick = bench.options.quick;
    let ranks = bench.ranks(if quick { QUICK_RANKS } else { ALLGATHER_RANKS });
    let bytes = if quick {
        &ALLGATHER_BYTES[..2]
    } else {
        ALLGATHER_BYTES
    };
    let (results, complete) = rounds(bench, "allgather", &subjects, &ranks, bytes)?;
    let tables = bytes.iter().map(|&bytes| {
        let tables = tables(bench, &results, &subjects, &ranks, bytes);
        format!("**{bytes} bytes from each rank**\n\n{tables}")
    });
    let tables: Vec<String> = tables.collect();
    page::replace(bench, "allgather", &tables.join("\n"))?;
    Ok(complete)
}

fn subjects<'a>(bench: &'a Bench<'_>) -> Vec<Subject<'a>> {
    let own = [false, true].map(|pinned| Subject {
        name: name("tutti", pinned),
        pinned,
        kind: Kind::Own(&[]),
    });
    let mpis = bench.peers.mpis.iter().flat_map(|mpi| {
        [false, true].map(|pinned| Subject {
            name: name(mpi.name, pinned),
            pinned,
            kind: Kind::Mpi(mpi),
        })
    });
    let all = own.into_iter().chain(mpis);
    all.filter(|one| bench.is_wanted(&one.name)).collect()
}

fn name(subject: &str, pinned: bool) -> String {
    format!("{subject}{}", if pinned { " pinned" } else { "" })
}

/// Runs every subject at every number of ranks and bytes, once a round.
fn rounds(
    bench: &Bench<'_>,
    question: &str,
    subjects: &[Subject<'_>],
    ranks: &[u32],
    bytes: &[u64],
) -> Result<(Vec<Value>, bool), String> {
    let (mut lines, path) = bench.lines_file(question)?;
    let (mut results, mut complete) = (Vec::new(), true);
    for round in 1..=bench.rounds(if bench.options.quick { 1 } else { 2 }) {
        for (&ranks, &bytes) in ranks.iter().flat_map(|r| bytes.iter().map(move |b| (r, b))) {
            for subject in subjects.iter().filter(|one| one.runs_with(bench, ranks)) {
                let run = Run {
                    subject: subject.name.clone(),
                    case: format!("{ranks} ranks, {bytes} bytes"),
                    round,
                    command: subject.command(bench, question, ranks, bytes),
                    seconds: 120,
                };
                let result = result_of(run, &mut lines)?;
                complete &= result.is_some();
                results.extend(result);
            }
        }
    }
    println!("lines: {}", path.display());
    Ok((results, complete))
}

impl Subject<'_> {
    /// Pinning has a meaning only while each rank has a processor of its own.
    fn runs_with(&self, bench: &Bench<'_>, ranks: u32) -> bool {
        let crowded = ranks > bench.processors;
        match self.kind {
            _ if self.pinned && crowded => false,
            Kind::Own(_) => true,
            Kind::Mpi(mpi) => !crowded || mpi.runs_oversubscribed(ranks),
        }
    }

    fn command(&self, bench: &Bench<'_>, question: &str, ranks: u32, bytes: u64) -> Command {
        let repetition_ms = if bench.options.quick { "20" } else { "50" };
        let bytes = bytes.to_string();
        match self.kind {
            Kind::Own(options) => {
                let mut command = bench.program(&format!("{question}_latency"));
                command.args(["--ranks", &ranks.to_string(), "--bytes", &bytes]);
                command.args([
                    "--repetitions",
                    REPETITIONS,
                    "--repetition-ms",
                    repetition_ms,
                ]);
                command.args(["--warmup-ms", repetition_ms]).args(options);
                command.args(self.pinned.then_some("--pin"));
                command
            }
            Kind::Mpi(mpi) => {
                let mut command = mpi.launch(ranks, bench.processors, self.pinned);
                command.arg(mpi.program("mpi_collectives"));
                command.args([question, &bytes, REPETITIONS, repetition_ms, repetition_ms]);
                command
            }
        }
    }
}

/// Repetitions in one run.
const REPETITIONS: &str = "5";

/// Medians, then how many times slower than ours, then single calls.
fn tables(
    bench: &Bench<'_>,
    results: &[Value],
    subjects: &[Subject<'_>],
    ranks: &[u32],
    bytes: u64,
) -> String {
    let cell = |subject: &str, ranks: u32| {
        let fields = [
            ("subject", subject.into()),
            ("ranks", ranks.into()),
            ("bytes", bytes.into()),
        ];
        matching(results, &fields)
    };
    let section = |title: &str, of: &dyn Fn(&str, u32) -> String| {
        let mut header = vec![title.to_string()];
        header.extend(ranks.iter().map(|ranks| format!("{ranks} ranks")));
        let rows = subjects.iter().map(|subject| {
            let cells = ranks.iter().map(|&ranks| of(&subject.name, ranks));
            std::iter::once(subject.name.clone()).chain(cells).collect()
        });
        table(&header, &rows.collect::<Vec<_>>())
    };
    let median = |subject: &str, ranks| quantile(&numbers(&cell(subject, ranks), "means_us"), 0.5);
    let medians = section("us, p50 (p25-p75)", &|subject, ranks| {
        spread(&numbers(&cell(subject, ranks), "means_us"))
    });
    let ratios = section("times tutti", &|subject, ranks| {
        let ratio = median(subject, ranks).zip(median("tutti", ranks));
        ratio.map_or("-".into(), |(peer, own)| shown(peer / own))
    });
    let singles = section(
        "single calls: p50, p99, exit skew p50 (us)",
        &|subject, ranks| {
            let of = |field| quantile(&numbers(&cell(subject, ranks), field), 0.5).map(shown);
            let fields = ["call_p50_us", "call_p99_us", "skew_p50_us"].map(of);
            let cells: Vec<String> = fields.into_iter().flatten().collect();
            if cells.is_empty() {
                "-".into()
            } else {
                cells.join(", ")
            }
        },
    );
    let sample = results.iter().find(|result| result["host"].is_string());
    format!(
        "{medians}\n{ratios}\n{singles}\n{}\n",
        page::provenance(bench, sample)
    )
}
