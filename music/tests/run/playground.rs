//! A folder of its own for a test, and programs run in it, each with a deadline.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes more than a second or two on an idle machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// A temporary folder, removed at the end.
pub(crate) struct Playground {
    directory: PathBuf,
}

/// What a program did.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Playground {
    /// A folder with a copy of the examples.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tutti-music-test-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        for entry in fs::read_dir(examples()).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "music" || extension == "dat")
            {
                fs::copy(&path, directory.join(path.file_name().unwrap())).unwrap();
            }
        }
        for rank in 1..4 {
            let to = directory.join(format!("recorded-{rank}.dat"));
            fs::copy(directory.join("recorded-0.dat"), to).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(String) -> String) {
        self.write(name, &edit(self.read(name)));
    }

    /// A program of this package, to be started in the folder.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary(program));
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env("TUTTI_HEAP_MIB", "4");
        command
    }

    /// Runs a program of this package to its end.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Finished {
        finish(start(&mut self.command(program, arguments)))
    }

    /// Processes of a job whose file is in this folder: rank and number.
    pub(crate) fn processes(&self) -> Vec<(u32, Pid)> {
        let mark = format!("TUTTI_MUSIC_FILE={}", self.directory.display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let number = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok());
            let Some(pid) = number.and_then(Pid::from_raw) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let mut variables = environment.split('\0');
            if variables
                .clone()
                .any(|variable| variable.starts_with(&mark))
            {
                let rank = variables.find_map(|variable| variable.strip_prefix("PMI_RANK="));
                found.push((
                    rank.and_then(|rank| rank.parse().ok()).unwrap_or(u32::MAX),
                    pid,
                ));
            }
        }
        found
    }

    /// Waits until there are no processes left.
    pub(crate) fn expect_nothing_left(&self) {
        wait_until("no process is left", || self.processes().is_empty());
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Finished {
    #[track_caller]
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(
            self.code, 0,
            "stdout:\n{}stderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn fails_with(&self, code: i32, part: &str) -> &Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}stderr:\n{}",
            self.stdout, self.stderr
        );
        assert!(
            self.stderr.contains(part),
            "{part:?} is not in\n{}",
            self.stderr
        );
        self
    }
}

/// The path of a program of this package.
pub(crate) fn binary(program: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_music")).with_file_name(program)
}

/// Starts a program whose output is kept.
pub(crate) fn start(command: &mut Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()))
}

/// Waits for the end of a program; kills it and fails if it takes too long.
pub(crate) fn finish(child: Child) -> Finished {
    let pid = pid_of(&child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output: Output = receiver
        .recv_timeout(DEADLINE)
        .unwrap_or_else(|_| {
            let _ = kill_process(pid, Signal::KILL);
            panic!("a program did not end within {DEADLINE:?}");
        })
        .unwrap();
    let status = output.status;
    Finished {
        code: status
            .code()
            .unwrap_or_else(|| -status.signal().unwrap_or(0)),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn pid_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Polls for something that another process does.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < DEADLINE,
            "not within {DEADLINE:?}: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The file with `ranks` processes per application, in the order of the sections.
pub(crate) fn with_ranks(text: &str, ranks: &[u32]) -> String {
    let mut counts = ranks.iter().chain(std::iter::repeat(ranks.last().unwrap()));
    let mut result = String::new();
    for line in text.lines().filter(|line| !line.trim().starts_with("np=")) {
        result.push_str(line);
        result.push('\n');
        if line.starts_with('[') {
            result.push_str(&format!("  np={}\n", counts.next().unwrap()));
        }
    }
    result
}

/// The file with all connections collective.
pub(crate) fn collective(text: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_suffix(']') {
        Some(start) if line.contains("->") => format!("{start}, collective]\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}
