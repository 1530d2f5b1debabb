//! Starts the ranks of a job as processes, serves their rendezvous, and reaps them.
//!
//! Every process is this test binary again; its standard input is its end of the rendezvous. A job
//! that does not end by its deadline is killed and the test fails; no process outlives its `Job`.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use std::io::{BufRead, BufReader};

use transport::bootstrap::Bootstrap;
use transport::bootstrap::server::PmiServer;
use transport_core::Nanos;

/// Environment variable that names the role of a process.
pub(crate) const ROLE: &str = "TUTTI_TEST_ROLE";

/// Environment variable that bounds the opening of a process; long for crowded machines.
pub(crate) const PATIENCE_MS: &str = "TUTTI_TEST_PATIENCE_MS";

const RANK: &str = "TUTTI_TEST_RANK";
const SIZE: &str = "TUTTI_TEST_SIZE";
const DEADLINE: Duration = Duration::from_secs(240);

/// A line that a process printed after the mark `>`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) rank: u32,
    pub(crate) text: String,
}

/// A running job.
pub(crate) struct Job {
    children: Vec<Option<Child>>,
    lines: Receiver<Line>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    deadline: Instant,
}

impl Job {
    /// Starts `ranks` processes that play `role`.
    pub(crate) fn start(ranks: u32, role: &str) -> Self {
        Self::start_with(ranks, role, &[])
    }

    /// As [`start`](Self::start), with variables added to the environment.
    pub(crate) fn start_with(ranks: u32, role: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_by(ranks, role, variables, |_, program| Command::new(program))
    }

    /// As [`start_with`](Self::start_with), the program of each rank run by a given command.
    pub(crate) fn start_by(
        ranks: u32,
        role: &str,
        variables: &[(&str, &str)],
        command: impl Fn(u32, &Path) -> Command,
    ) -> Self {
        let (server, ends) = PmiServer::new(&vec![0; ranks as usize]).unwrap();
        let (sender, lines) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut job = Self {
            children: Vec::new(),
            lines,
            stop: Arc::clone(&stop),
            threads: vec![std::thread::spawn(move || serve(server, &stop))],
            deadline: Instant::now() + DEADLINE,
        };
        for (rank, end) in (0..ranks).zip(ends) {
            let mut child = command(rank, &std::env::current_exe().unwrap())
                .args(["--exact", "rank_process", "--nocapture", "--test-threads=1"])
                .env(ROLE, role)
                .env(RANK, rank.to_string())
                .env(SIZE, ranks.to_string())
                .envs(variables.iter().copied())
                .stdin(Stdio::from(end))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            let sender = sender.clone();
            job.children.push(Some(child));
            job.threads.push(std::thread::spawn(move || {
                for line in output.lines().map_while(Result::ok) {
                    if let Some(text) = line.strip_prefix('>') {
                        let text = text.to_owned();
                        let _ = sender.send(Line { rank, text });
                    }
                }
            }));
        }
        job
    }

    /// The process of a rank.
    pub(crate) fn pid(&self, rank: u32) -> u32 {
        self.children[rank as usize].as_ref().unwrap().id()
    }

    /// The next line that any process prints; `None` once all have ended.
    pub(crate) fn next_line(&self) -> Option<Line> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the job went on past its deadline"),
        }
    }

    /// Kills a process the hard way, and reaps it.
    pub(crate) fn kill(&mut self, rank: u32) {
        let mut child = self.children[rank as usize].take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends a signal to a rank's process.
    pub(crate) fn signal(&self, rank: u32, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid(rank) as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// All further lines, until all processes have ended.
    pub(crate) fn rest(&self) -> Vec<Line> {
        std::iter::from_fn(|| self.next_line()).collect()
    }

    /// Waits for the end of all processes; none may have died of a signal or panicked.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        let lines = self.rest();
        for (rank, child) in self.children.iter_mut().enumerate() {
            if let Some(mut child) = child.take() {
                let status = child.wait().unwrap();
                assert_eq!(status.signal(), None, "rank {rank}");
                assert!(status.success(), "rank {rank} failed: {status}, {lines:?}");
            }
        }
        lines
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for mut child in self.children.iter_mut().filter_map(Option::take) {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// This process's place in its job, from within a role.
pub(crate) fn rendezvous() -> Bootstrap {
    let number = |name| std::env::var(name).unwrap().parse().unwrap();
    let end = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    Bootstrap::over(end, number(RANK), number(SIZE)).unwrap_or_else(|error| {
        say(&format!("open-error {error}"));
        std::process::exit(0);
    })
}

/// How long this process may wait for others while it opens, from within a role.
pub(crate) fn patience() -> Nanos {
    let millis = std::env::var(PATIENCE_MS).map(|text| text.parse().unwrap());
    millis.map_or(Nanos::seconds(60), Nanos::millis)
}

/// Prints a line for the test.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let mut output = std::io::stdout().lock();
    writeln!(output, "\n>{text}").unwrap();
}

fn serve(mut server: PmiServer, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        server.turn(Duration::from_millis(20)).unwrap();
    }
}
