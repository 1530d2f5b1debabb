//! What a message costs over each fabric, and a barrier and an allgather between two hosts.

use std::fs::File;

use serde_json::Value;

use super::hosts::Hosts;
use super::network::{Case, Subject, pairs, points};
use super::rows::{matching, numbers, quantile, shown, spread, table};
use super::{Bench, Run, page, result_of};

const PUT_BYTES: &[u64] = &[8, 4_096, 65_536];
const RANKS: &[u32] = &[2, 4, 8, 16, 32];
const QUICK_RANKS: &[u32] = &[2, 4];
const GATHERED_BYTES: &[u64] = &[8, 4_096];

/// Measures and writes the tables; whether every subject had a result.
pub(super) fn run(bench: &Bench<'_>) -> Result<bool, String> {
    let hosts = Hosts::new(&bench.workspace.target().join("peers"))
        .inspect_err(|error| println!("one host only: {error}"))
        .ok();
    let hosts = hosts.as_ref();
    let (mut lines, path) = bench.lines_file("fabric")?;
    let mut plan = vec![Table {
        title: "between two ranks; contended: four".into(),
        base: "tutti tcp",
        subjects: points(bench, hosts),
        cases: point_cases(),
    }];
    for (question, bytes) in collectives(bench) {
        plan.push(Table {
            title: match bytes {
                0 => question.into(),
                bytes => format!("{question}, {bytes} bytes from each rank"),
            },
            base: "tutti, two",
            subjects: pairs(bench, hosts),
            cases: collective_cases(bench, question, bytes),
        });
    }
    let mut complete = true;
    let mut results = Vec::new();
    for round in 1..=bench.rounds(if bench.options.quick { 1 } else { 3 }) {
        for table in &plan {
            complete &= table.measure(bench, round, &mut lines, &mut results)?;
        }
    }
    println!("lines: {}", path.display());
    let tables = plan.iter().map(|table| table.shown(&results));
    let tables = tables.collect::<Vec<_>>().join("\n");
    let sample = results.iter().find(|result| result["host"].is_string());
    let provenance = page::provenance(bench, sample);
    page::replace(bench, "fabric", &format!("{tables}\n{provenance}\n"))?;
    Ok(complete)
}

fn point_cases() -> Vec<Case> {
    let put = |&bytes| Case {
        question: "put",
        ranks: 2,
        bytes,
    };
    let add = |(question, ranks)| Case {
        question,
        ranks,
        bytes: 0,
    };
    let adds = [("fetch_add", 2), ("fetch_add_contended", 4)].map(add);
    PUT_BYTES.iter().map(put).chain(adds).collect()
}

fn collectives(bench: &Bench<'_>) -> Vec<(&'static str, u64)> {
    let sizes = if bench.options.quick {
        &GATHERED_BYTES[..1]
    } else {
        GATHERED_BYTES
    };
    let allgathers = sizes.iter().map(|&bytes| ("allgather", bytes));
    std::iter::once(("barrier", 0)).chain(allgathers).collect()
}

fn collective_cases(bench: &Bench<'_>, question: &'static str, bytes: u64) -> Vec<Case> {
    let usual = if bench.options.quick {
        QUICK_RANKS
    } else {
        RANKS
    };
    let case = |ranks| Case {
        question,
        ranks,
        bytes,
    };
    bench.ranks(usual).into_iter().map(case).collect()
}

/// Subjects in rows, cases in columns; all subjects of a case in turns.
struct Table<'a> {
    title: String,
    /// What the row begins with to which the others are compared.
    base: &'static str,
    subjects: Vec<Subject<'a>>,
    cases: Vec<Case>,
}

impl Table<'_> {
    /// One round; whether every subject had a result.
    fn measure(
        &self,
        bench: &Bench<'_>,
        round: u32,
        lines: &mut File,
        results: &mut Vec<Value>,
    ) -> Result<bool, String> {
        let mut complete = true;
        for &case in &self.cases {
            for subject in self.subjects.iter().filter(|one| one.answers(case)) {
                let run = Run {
                    subject: subject.name.clone(),
                    case: case.shown(),
                    round,
                    command: subject.command(bench, case),
                    seconds: 60,
                };
                let result = result_of(run, lines)?;
                complete &= result.is_some();
                results.extend(result);
            }
        }
        Ok(complete)
    }

    /// Medians with quartiles, then how many times slower than the base.
    fn shown(&self, results: &[Value]) -> String {
        let figures = |name: &str, case: Case| {
            let fields = [
                ("subject", name.into()),
                ("question", case.question.into()),
                ("ranks", case.ranks.into()),
                ("bytes", case.bytes.into()),
            ];
            numbers(&matching(results, &fields), "means_us")
        };
        let base = |case| {
            let mut named = self
                .subjects
                .iter()
                .filter(|one| one.name.starts_with(self.base));
            let first = named.next()?;
            quantile(&figures(&first.name, case), 0.5)
        };
        let medians = self.section("us, p50 (p25-p75)", &|name, case| {
            spread(&figures(name, case))
        });
        let ratios = self.section(&format!("times {}", self.base_name()), &|name, case| {
            let ratio = quantile(&figures(name, case), 0.5).zip(base(case));
            ratio.map_or("-".into(), |(one, base)| shown(one / base))
        });
        format!("**{}**\n\n{medians}\n{ratios}", self.title)
    }

    fn base_name(&self) -> &str {
        let mut named = self.subjects.iter().map(|one| one.name.as_str());
        named
            .find(|name| name.starts_with(self.base))
            .unwrap_or(self.base)
    }

    fn section(&self, title: &str, cell: &dyn Fn(&str, Case) -> String) -> String {
        let mut header = vec![title.to_string()];
        header.extend(self.cases.iter().map(|case| case.shown()));
        let rows = self.subjects.iter().map(|subject| {
            let cells = self.cases.iter().map(|&case| cell(&subject.name, case));
            std::iter::once(subject.name.clone()).chain(cells).collect()
        });
        table(&header, &rows.collect::<Vec<_>>())
    }
}

impl Case {
    /// As a column is called.
    fn shown(self) -> String {
        match self.question {
            "put" => format!("put, {} bytes", self.bytes),
            "fetch_add" => "fetch-add".into(),
            "fetch_add_contended" => "fetch-add, contended".into(),
            _ => format!("{} ranks", self.ranks),
        }
    }
}
