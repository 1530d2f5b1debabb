//! A launcher that was itself started by one, with little room.

use std::path::Path;

use transport::launch::{Event, Launch, ProcessSpec, Stream};

use crate::{lines, run_to_the_end, shell};

const ROLE: &str = "TUTTI_TEST_NESTED";
const RANKS: usize = 40;

/// Does nothing in a test run; as a launcher within a job, starts many processes that print their
/// variables and their limit of open files.
#[test]
fn acts_as_a_launcher() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let script = "env | sort | grep -E 'PMI|OMPI|SLURM|TUTTI_(JOB|REPORT)'; ulimit -Sn";
    let processes = (0..RANKS).map(|rank| shell(&format!("inner {rank}"), script));
    let mut job = Launch::new(processes.collect()).start().unwrap();

    let events = run_to_the_end(&mut job);

    assert_eq!(job.failure(), None, "{events:?}");
    for rank in 0..RANKS {
        let said = lines(&events, rank, Stream::Stdout);
        assert_eq!(said.last().unwrap(), "64", "{said:?}");
        let names: Vec<&str> = said
            .iter()
            .filter_map(|line| line.split('=').next())
            .collect();
        let own = [
            "PMI_FD",
            "PMI_RANK",
            "PMI_SIZE",
            "SLURM_JOB_ID",
            "TUTTI_JOB",
        ];
        assert_eq!(names[..5], own, "{said:?}");
        assert_eq!(names[5..], ["TUTTI_REPORT_FD", "64"], "{said:?}");
        assert!(said.contains(&format!("PMI_RANK={rank}")), "{said:?}");
        let outer = std::env::var("TUTTI_JOB").unwrap();
        assert!(!said.contains(&format!("TUTTI_JOB={outer}")), "{said:?}");
    }
    println!("\nall well");
}

#[test]
fn a_launcher_in_a_job_gives_its_processes_their_own_place_and_its_own_limits() {
    let own = std::env::current_exe().unwrap();
    let command = |own: &Path| {
        let role = "nested::acts_as_a_launcher";
        format!(
            "ulimit -Sn 64; exec {} --exact {role} --nocapture",
            own.display()
        )
    };
    let outer: ProcessSpec = shell("outer", &command(&own))
        .env(ROLE, "1")
        .env("PMIX_RANK", "7")
        .env("OMPI_COMM_WORLD_RANK", "7")
        .env("PMI_PORT", "host:1")
        .env("SLURM_PROCID", "7")
        .env("SLURM_JOB_ID", "12");
    let mut job = Launch::new(vec![outer]).start().unwrap();

    let events = run_to_the_end(&mut job);

    let said = events.iter().filter_map(|event| match event {
        Event::Line { text, .. } => Some(String::from_utf8_lossy(text)),
        _ => None,
    });
    let said: Vec<_> = said.collect();
    assert_eq!(job.failure(), None, "{said:#?}");
    assert!(said.iter().any(|line| line == "all well"), "{said:#?}");
}
