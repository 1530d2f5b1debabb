//! The example of two populations on emulated hosts, and what its checker says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::emulated::{Ended, Hosts, Started};

pub(crate) const EXAMPLE: &str = "two-populations.music";
/// Ranks of the example: A has 0 and 1, B has 2 and 3.
pub(crate) const RANKS: &str = "4";

/// The example, in the folder of some hosts.
pub(crate) struct Example<'a> {
    pub(crate) hosts: &'a Hosts,
}

impl<'a> Example<'a> {
    /// With so many seconds to simulate.
    pub(crate) fn lasting(hosts: &'a Hosts, seconds: &str) -> Self {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let text = fs::read_to_string(examples.join(EXAMPLE)).unwrap();
        let text = text.replace("stoptime=1.0", &format!("stoptime={seconds}"));
        fs::write(hosts.folder().join(EXAMPLE), text).unwrap();
        Self { hosts }
    }

    /// A program on h0, in the folder, with rather small heaps.
    pub(crate) fn front(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.hosts.front(program);
        command.env("TUTTI_HEAP_MIB", "4");
        command
    }

    /// `music run` across all hosts.
    pub(crate) fn across(&self) -> Command {
        let mut command = self.front(music());
        let agent = format!("{} {{host}}", self.hosts.agent().display());
        let names = self.hosts.names().join(",");
        command.args(["run", "--hosts", &names, "--agent", &agent, EXAMPLE]);
        command
    }

    /// What the checker says after a run on h0 alone.
    pub(crate) fn alone(&self) -> String {
        self.verdict_of(self.front(music()).args(["run", EXAMPLE]))
    }

    /// What the checker says after a run by this command.
    #[track_caller]
    pub(crate) fn verdict_of(&self, command: &mut Command) -> String {
        self.forget();
        self.hosts.run(command).succeeds();
        self.verdict()
    }

    /// What the checker says of the spikes that were logged.
    #[track_caller]
    pub(crate) fn verdict(&self) -> String {
        let checker = music().with_file_name("spikecheck");
        let ended = self.hosts.run(self.front(checker).arg(EXAMPLE));
        ended.succeeds();
        let clean = " delivered, 0 late, 0 lost, 0 foreign, 0 duplicate, digest ";
        assert!(ended.said.contains(clean), "{}", ended.said);
        ended.said
    }

    /// Starts a run, which is in the middle when this returns.
    #[track_caller]
    pub(crate) fn in_the_middle(&self, command: &mut Command) -> Started {
        self.forget();
        let mut run = self.hosts.spawn(command);
        let long = |log: &PathBuf| log.metadata().is_ok_and(|file| file.len() > 10_000);
        let deadline = Instant::now() + Duration::from_secs(90);
        while !self.logs().iter().all(long) {
            if !run.is_running() || Instant::now() > deadline {
                let Ended { code, said, .. } = run.finish();
                panic!("ended too early, with {code}:\n{said}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        run
    }

    /// The process of a rank, by its number on its host.
    #[track_caller]
    pub(crate) fn process(&self, host: &str, rank: u32) -> String {
        let found = self.hosts.on(host, &listing(&format!("PMI_RANK={rank}")));
        let found = found.trim();
        assert!(found.parse::<u32>().is_ok(), "rank {rank}: {found:?}");
        found.to_owned()
    }

    /// As [`Example::process`], of a rank that may only be about to start.
    #[track_caller]
    pub(crate) fn first_seen(&self, host: &str, rank: u32) -> String {
        let deadline = Instant::now() + Duration::from_secs(90);
        let listing = listing(&format!("PMI_RANK={rank}"));
        loop {
            let found = self.hosts.on(host, &listing);
            if let Some(process) = found.lines().next() {
                return process.to_owned();
            }
            assert!(Instant::now() < deadline, "rank {rank} does not start");
        }
    }

    /// Waits until no process of any rank is left on a host.
    #[track_caller]
    pub(crate) fn ends_on(&self, host: &str, within: Duration) {
        let deadline = Instant::now() + within;
        let listing = listing("TUTTI_MUSIC_APP=.*");
        loop {
            let left = self.hosts.on(host, &listing);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left on {host}: {left}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn forget(&self) {
        for log in self.logs() {
            let _ = fs::remove_file(log);
        }
    }

    fn logs(&self) -> [PathBuf; 2] {
        let log = |rank| format!("two-populations-B-{rank}.log");
        [0, 1].map(|rank| self.hosts.folder().join(log(rank)))
    }
}

/// A line of shell that lists the populations with such a variable.
fn listing(variable: &str) -> String {
    format!(
        "for file in $(grep -lzx '{variable}' /proc/[0-9]*/environ 2>/dev/null); do \
         process=${{file%/environ}}; \
         [ \"$(cat $process/comm 2>/dev/null)\" = population ] && echo ${{process#/proc/}}; \
         done; true"
    )
}

pub(crate) fn music() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_music"))
}
