//! What a spike costs from one population to another: both algorithms, the reference, plain MPI.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::figure::{Figure, Point, Series};
use super::rows::{matching, numbers, quantile, shown, spread, table};
use super::{Bench, Run, page, result_of};

/// The populations of one run.
#[derive(Clone, Copy)]
struct Case {
    topology: &'static str,
    /// Ranks of each population.
    ranks: u32,
    neurons: u32,
    ticks: u32,
}

/// Who exchanges the spikes, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Subject {
    name: &'static str,
    algorithm: &'static str,
}

const SUBJECTS: &[Subject] = &[
    subject("tutti", "pairwise"),
    subject("tutti", "allgather"),
    subject("music 1.1.16", "pairwise"),
    subject("music 1.1.16", "allgather"),
    subject("plain MPI", "pairwise"),
    subject("plain MPI", "allgather"),
];

const TOPOLOGIES: &[&str] = &["random", "all-to-all", "one-to-one"];
const RANKS: &[u32] = &[1, 2, 4, 8, 16];
const QUICK_RANKS: &[u32] = &[1, 2, 4];
const NEURONS: u32 = 100_000;
const INPUTS: u32 = 100;
const WARMUP_TICKS: u32 = 100;

/// What a spike costs, in the lines of the bench.
const COST: &str = "ns_per_delivered";

/// What the seed's figure asks for.
const FIGURE_SECONDS: f64 = 100.0;

/// The figure, as the page shows it.
const PICTURE: &str = "![Wall-clock for 100 simulated seconds against ranks](figures/spikes.svg)";

const fn subject(name: &'static str, algorithm: &'static str) -> Subject {
    Subject { name, algorithm }
}

/// Measures the exchange, writes its tables and the figure; whether every subject had a result.
pub(super) fn run(bench: &Bench<'_>) -> Result<bool, String> {
    let (mut lines, path) = bench.lines_file("spikes")?;
    let (mut results, mut complete) = (Vec::new(), true);
    let cases = cases(bench);
    for round in 1..=bench.rounds(if bench.options.quick { 1 } else { 5 }) {
        for (case, subject) in cases
            .iter()
            .flat_map(|case| SUBJECTS.iter().map(move |s| (case, s)))
        {
            if !bench.is_wanted(&subject.full_name()) {
                continue;
            }
            let Some(command) = subject.command(bench, case)? else {
                continue;
            };
            let run = Run {
                subject: subject.full_name(),
                case: format!("{0}+{0} ranks, {1}", case.ranks, case.topology),
                round,
                command,
                seconds: 300,
            };
            let result = result_of(run, &mut lines)?;
            complete &= result.is_some();
            results.extend(result);
        }
    }
    println!("lines: {}", path.display());
    draw(bench, &results, &cases)?;
    let tables = tables(&results, &cases);
    let provenance = page::provenance(bench, results.first());
    page::replace(
        bench,
        "spikes",
        &format!("{tables}\n{provenance}\n\n{PICTURE}"),
    )?;
    Ok(complete)
}

fn cases(bench: &Bench<'_>) -> Vec<Case> {
    let quick = bench.options.quick;
    let (topologies, usual) = if quick {
        (&TOPOLOGIES[..1], QUICK_RANKS)
    } else {
        (TOPOLOGIES, RANKS)
    };
    let all = topologies.iter().flat_map(|&topology| {
        bench.ranks(usual).into_iter().map(move |ranks| Case {
            topology,
            ranks,
            neurons: if quick { NEURONS / 10 } else { NEURONS },
            // Fewer ticks where a tick takes much longer: ranks that outnumber the processors.
            ticks: WARMUP_TICKS + if ranks > 4 { 200 } else { 1_000 },
        })
    });
    all.collect()
}

impl Subject {
    fn full_name(self) -> String {
        format!("{}, {}", self.name, self.algorithm)
    }

    /// How to run it; `None` if it is not on this machine.
    fn command(self, bench: &Bench<'_>, case: &Case) -> Result<Option<Command>, String> {
        let mut command = bench.program("spike_exchange");
        let number = |value: u32| value.to_string();
        command.args([
            "--senders",
            &number(case.ranks),
            "--receivers",
            &number(case.ranks),
        ]);
        command.args([
            "--neurons",
            &number(case.neurons),
            "--inputs",
            &number(INPUTS),
        ]);
        command.args([
            "--ticks",
            &number(case.ticks),
            "--warmup",
            &number(WARMUP_TICKS),
        ]);
        command.args(["--topology", case.topology, "--algorithm", self.algorithm]);
        if self.name == "tutti" {
            return Ok(Some(command));
        }
        let Some(peer) = self.peer(bench, case)? else {
            return Ok(None);
        };
        command.args(["--subject", self.name, "--late-is-allowed", "--"]);
        command.arg(peer.get_program()).args(peer.get_args());
        command.envs(
            peer.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Ok(Some(command))
    }

    fn peer(self, bench: &Bench<'_>, case: &Case) -> Result<Option<Command>, String> {
        let Some(mpi) = bench.peers.debian() else {
            return Ok(None);
        };
        let mut launch = mpi.launch(2 * case.ranks, bench.processors, false);
        if self.name == "plain MPI" {
            launch
                .arg(mpi.program("mpi_spikes"))
                .arg(self.algorithm)
                .args(case.words());
            return Ok(Some(launch));
        }
        let Some(client) = &bench.peers.reference else {
            return Ok(None);
        };
        let file = self.music_file(bench, case, client)?;
        launch.arg("music").arg(file);
        Ok(Some(launch))
    }

    fn music_file(self, bench: &Bench<'_>, case: &Case, client: &Path) -> Result<PathBuf, String> {
        let communication = if self.algorithm == "pairwise" {
            "point-to-point"
        } else {
            "collective"
        };
        let application = |name: &str, role: &str| {
            format!(
                "[{name}]\nnp={}\nbinary={}\nargs={role} {}\n",
                case.ranks,
                client.display(),
                case.words().join(" ")
            )
        };
        let text = format!(
            "stoptime=1\n{}{}A.out -> B.in [{},{communication}]\n",
            application("A", "send"),
            application("B", "receive"),
            case.neurons
        );
        let path = bench.workspace.root().join("out/bench/reference.music");
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Case {
    /// What the C programs are told, in their order.
    fn words(&self) -> Vec<String> {
        let numbers = [
            self.neurons,
            INPUTS,
            self.ranks,
            self.ranks,
            self.ticks,
            WARMUP_TICKS,
        ];
        let mut words: Vec<String> = numbers.map(|number| number.to_string()).into();
        words.push(self.topology.into());
        words
    }
}

fn of<'a>(results: &'a [Value], subject: Subject, case: &Case) -> Vec<&'a Value> {
    let fields = [
        ("subject", subject.full_name().into()),
        ("topology", case.topology.into()),
        ("senders", case.ranks.into()),
    ];
    matching(results, &fields)
}

/// One table for each topology: a row for each subject and number of ranks.
fn tables(results: &[Value], cases: &[Case]) -> String {
    let header = [
        "subject",
        "ranks",
        "ms per simulated s",
        "ns per spike delivered, p50 (p25-p75)",
        "times tutti",
        "spikes/s",
        "bytes per spike",
        "late",
    ]
    .map(str::to_owned);
    let mut text = String::new();
    for &topology in TOPOLOGIES {
        let own: Vec<&Case> = cases
            .iter()
            .filter(|case| case.topology == topology)
            .collect();
        let Some(first) = own.first() else { continue };
        let rows = SUBJECTS.iter().flat_map(|&subject| {
            own.iter()
                .filter_map(move |case| row(results, subject, case))
        });
        text += &format!("**{topology}**, N = {}, K = {INPUTS}\n\n", first.neurons);
        text += &table(&header, &rows.collect::<Vec<_>>());
        text.push('\n');
    }
    text
}

fn row(results: &[Value], subject: Subject, case: &Case) -> Option<Vec<String>> {
    let ours = Subject {
        name: "tutti",
        ..subject
    };
    let ours = numbers(&of(results, ours, case), COST);
    let results = of(results, subject, case);
    let median = |field: &str| quantile(&numbers(&results, field), 0.5);
    let ratio = quantile(&ours, 0.5).and_then(|ours| Some(median(COST)? / ours));
    let late = median("late")? / median("delivered")?.max(1.0);
    let bytes = median("bytes_per_spike")?;
    Some(vec![
        subject.full_name(),
        format!("{0}+{0}", case.ranks),
        shown(1_000.0 * median("wall_per_simulated_s")?),
        spread(&numbers(&results, COST)),
        ratio.map_or_else(|| "-".into(), shown),
        format!("{:.2e}", median("spikes_per_s")?),
        if bytes > 0.0 {
            shown(bytes)
        } else {
            "-".into()
        },
        if late > 0.0 {
            format!("{:.0} %", 100.0 * late)
        } else {
            "0".into()
        },
    ])
}

/// The seed's Figure 1: wall-clock for 100 simulated seconds against ranks, random topology.
fn draw(bench: &Bench<'_>, results: &[Value], cases: &[Case]) -> Result<(), String> {
    let series = SUBJECTS
        .iter()
        .filter(|subject| subject.name != "plain MPI")
        .map(|&subject| {
            let random = cases.iter().filter(|case| case.topology == "random");
            let points = random.filter_map(|case| {
                let per_second = numbers(&of(results, subject, case), "wall_per_simulated_s");
                Some(Point {
                    ranks: 2 * case.ranks,
                    seconds: FIGURE_SECONDS * quantile(&per_second, 0.5)?,
                    crowded: 2 * case.ranks > bench.processors,
                })
            });
            Series {
                name: subject.full_name(),
                points: points.collect(),
            }
        });
    let measured = numbers(&results.iter().collect::<Vec<_>>(), "simulated_s");
    let shortest = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let figure = Figure {
        title: format!("Two populations, K = {INPUTS}: wall-clock for 100 simulated seconds"),
        note: format!(
            "Extrapolated from runs of {shortest} s or more of simulated time. Hollow: more ranks \
             than the {} processors.",
            bench.processors
        ),
        series: series.filter(|series| !series.points.is_empty()).collect(),
    };
    let folder = if bench.options.keep_docs {
        "out/bench"
    } else {
        "docs/figures"
    };
    let path = bench.workspace.root().join(folder).join("spikes.svg");
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(&path, figure.svg()).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("figure: {}", path.display());
    Ok(())
}
