//! Hosts on this machine: each has a network, a host name, processes, System V objects, `/tmp` and
//! `/dev/shm` of its own; cables join them by a bridge.
//!
//! ```text
//!   h0 (launchers run here)   h1   h2   ..       each eth0, 10.77.0.NUMBER (h0: 254)
//!         │                   │    │
//!         v0 ──── br0 ─────── v1   v2   ..       sw, a network of its own
//! ```
//!
//! Everything lives in the PID namespace of h0. So one kill ends it all, and the kernel does it if
//! the test's thread ends in whatever way. No name is taken from the machine: namespaces have no
//! names, addresses mean nothing outside them, the folder is the test's own.

mod command;
mod tools;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::wheels;
pub(crate) use command::{Ended, Started};
pub(crate) use tools::{Tool, missing, tool};

/// No set of hosts outlives this, whatever happens to its test.
const LIFE_SECONDS: &str = "600";
/// What the hosts may take to come up.
const START: Duration = Duration::from_secs(60);

/// The scripts that make hosts, and the agent.
const SCRIPTS: [(&str, &str); 4] = [
    ("world.sh", include_str!("world.sh")),
    ("host.sh", include_str!("host.sh")),
    ("private.sh", include_str!("private.sh")),
    (AGENT, include_str!("ssh-like.sh")),
];
const AGENT: &str = "ssh-like";

/// Running hosts; they end with the value.
pub(crate) struct Hosts {
    folder: PathBuf,
    names: Vec<String>,
    /// Waits for the first process of h0, and takes it along.
    keeper: Child,
    /// The first process of h0, in whose end is that of all.
    first: Pid,
    handle: OwnedFd,
}

impl Hosts {
    /// Starts so many hosts, besides h0; or says why there are none.
    pub(crate) fn start(count: u32) -> Option<Self> {
        Self::start_with(count, &[])
    }

    /// As [`Hosts::start`], if these programs are here too.
    pub(crate) fn start_with(count: u32, tools: &[Tool]) -> Option<Self> {
        if let Some(reason) = missing(tools) {
            println!("skipped: {reason}");
            return None;
        }
        let folder = new_folder(count);
        let keeper = keeper(&folder, count).spawn().unwrap();
        Some(Self::up(folder, count, keeper))
    }

    fn up(folder: PathBuf, count: u32, mut keeper: Child) -> Self {
        let deadline = Instant::now() + START;
        let output = keeper.stdout.take().unwrap();
        let first_child = loop {
            if let Some(first) = only_child(&keeper) {
                break first;
            }
            let gone = keeper.try_wait().unwrap().is_some() || Instant::now() > deadline;
            assert!(!gone, "{}", log(&folder));
            std::thread::sleep(Duration::from_millis(1));
        };
        let handle = pidfd_open(first_child, PidfdFlags::empty()).unwrap();
        // From here on a panic ends them.
        let hosts = Self {
            folder,
            names: (1..=count).map(|number| format!("h{number}")).collect(),
            keeper,
            first: first_child,
            handle,
        };
        hosts.wait_until_ready(output, deadline);
        hosts
    }

    fn wait_until_ready(&self, output: std::process::ChildStdout, deadline: Instant) {
        let (sender, receiver) = std::sync::mpsc::channel();
        // Ends with the hosts, for they hold the other end.
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(output).read_line(&mut line);
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        assert_eq!(line.as_deref(), Ok("ready\n"), "{}", log(&self.folder));
    }

    /// The names of the hosts, without h0.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// A folder that the machine and all hosts see under this path.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The command that, followed by the name of a host and a command, runs it there; for h0.
    pub(crate) fn agent(&self) -> PathBuf {
        self.folder.join(AGENT)
    }

    /// A program on h0, in the folder.
    pub(crate) fn front(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.first.to_string(), "-n", "-u", "-i", "-m", "-p"]);
        command.args(["--", "sh", "-c", "cd \"$0\" && exec \"$@\""]);
        command.arg(&self.folder).arg(program.as_ref());
        command
    }

    /// Runs a line of shell on a host, in its home folder; yields what it says.
    ///
    /// # Panics
    /// If it fails.
    #[track_caller]
    pub(crate) fn on(&self, host: &str, line: &str) -> String {
        let mut command = self.front(self.agent());
        let ended = self.run(command.args([host, line]));
        ended.succeeds();
        ended.said
    }

    /// Runs a line of shell in the switch's network; `v2` is the port of h2.
    #[track_caller]
    pub(crate) fn on_switch(&self, line: &str) {
        let switch = fs::read_to_string(self.folder.join("sw.pid")).unwrap();
        let mut command = self.front("nsenter");
        let ended = self.run(command.args(["-t", switch.trim(), "-n", "--", "sh", "-c", line]));
        ended.succeeds();
    }

    /// Kills the first process of a host, and so all of them.
    #[track_caller]
    pub(crate) fn crash(&self, host: &str) {
        let first = fs::read_to_string(self.folder.join(format!("{host}.pid"))).unwrap();
        let ended = self.run(self.front("kill").args(["-KILL", first.trim()]));
        ended.succeeds();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // Its keeper sees its end when all processes of the namespace are gone.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
        let _ = self.keeper.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A folder with the scripts and the hosts' names.
fn new_folder(count: u32) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tutti-hosts-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in SCRIPTS {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::set_permissions(folder.join(AGENT), fs::Permissions::from_mode(0o755)).unwrap();
    let mut names = "127.0.0.1 localhost\n10.77.0.254 h0\n".to_owned();
    for number in 1..=count {
        writeln!(names, "10.77.0.{number} h{number}").unwrap();
    }
    fs::write(folder.join("hosts"), names).unwrap();
    folder
}

/// The process that holds h0, and ends it when this thread ends.
fn keeper(folder: &Path, count: u32) -> Command {
    let log = fs::File::create(folder.join("log")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_music")).parent().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    command.args(["-n", "-u", "-i", "-m", "-p", "-f"]);
    command.args(["--kill-child=KILL", "--mount-proc", "--"]);
    command.arg("sh").arg(folder.join("world.sh")).arg(folder);
    command.args([&count.to_string(), LIFE_SECONDS]);
    command.arg(folder).arg(programs);
    let wheels = [wheels::MPICH.folder(), wheels::OPEN_MPI.folder()];
    command.args(wheels.iter().filter(|wheel| wheel.is_dir()));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(log);
    command
}

/// The first process of the namespace, once there is one.
fn only_child(keeper: &Child) -> Option<Pid> {
    let id = keeper.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    Pid::from_raw(children.trim().parse().ok()?)
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}
