//! From what to start to what runs.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{
    PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, set_child_subreaper, setrlimit,
};

use super::attentive::attentive;
use super::error::LaunchError;
use super::guard::pid_of;
use super::job::{Job, MARK};
use super::pipe::Pipe;
use super::process::{Process, REPORT_LINE_MAX};
use super::program::{explain_start, find_program};
use super::spec::{Launch, ProcessSpec};
use crate::bootstrap::server::{PmiServer, stream_pair};
use crate::bootstrap::{child, is_launcher_variable};

/// Longest line of output that is handed out in one piece.
const OUTPUT_LINE_MAX: usize = 64 << 10;
/// Descriptors of a process in its launcher: two outputs, report, PMI, the process itself.
const DESCRIPTORS_EACH: u64 = 5;

impl Launch {
    /// Starts all processes. If one cannot be started, those before it are ended.
    ///
    /// To be called from a thread that lives as long as the job: the kernel ends the processes when
    /// that thread ends. The calling process becomes the reaper of orphans among its descendants,
    /// and raises its limit of open files as far as the job needs and it may.
    ///
    /// # Errors
    /// [`LaunchError`], which names the process and what to do. Programs that are not there are
    /// noticed before any process is started.
    pub fn start(self) -> Result<Job, LaunchError> {
        if self.processes.is_empty() {
            return Err(LaunchError::Nothing);
        }
        let files = self.find_programs()?;
        let wake = self.wake.as_ref().map(OwnedFd::try_clone).transpose();
        let wake = wake.map_err(|error| LaunchError::system("use the wake descriptor", error))?;
        attentive(wake.as_ref(), |woken| self.start_all(files, woken))
    }

    fn start_all(self, files: Vec<PathBuf>, woken: &AtomicBool) -> Result<Job, LaunchError> {
        let count = u64::try_from(files.len()).expect("usize fits u64");
        let own_limit = make_room_for_descriptors(count * DESCRIPTORS_EACH + 64);
        let inheritable = child::inheritable()
            .map_err(|error| LaunchError::system("list its descriptors", error))?;
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| LaunchError::system("become the reaper of orphans", error))?;

        let apps: Vec<u32> = self.processes.iter().map(|process| process.app).collect();
        let (server, ends) = PmiServer::new(&apps)
            .map_err(|error| LaunchError::system("open the processes' PMI connections", error))?;
        let mut job = Job::new(server, self.stop_on_failure, self.wake)?;
        for ((spec, file), pmi) in self.processes.iter().zip(files).zip(ends) {
            let report = if self.report {
                Some(report_pair()?)
            } else {
                None
            };
            let start = Start {
                spec,
                file,
                rank: job.count(),
                size: apps.len(),
                pmi,
                report,
                own_limit,
                inheritable: &inheritable,
            };
            start.start_in(&mut job)?;
            if woken.load(Ordering::Relaxed) {
                return Err(LaunchError::Interrupted);
            }
        }
        Ok(job)
    }

    fn find_programs(&self) -> Result<Vec<PathBuf>, LaunchError> {
        let find = |spec: &ProcessSpec| {
            check_directory(spec)?;
            let own_path = spec.env.iter().rev().find(|(name, _)| name == "PATH");
            let path = own_path
                .map(|(_, value)| value.clone())
                .or(std::env::var_os("PATH"));
            find_program(
                &spec.label,
                &spec.program,
                spec.cwd.as_deref(),
                self.beside.as_deref(),
                path.as_deref(),
            )
        };
        self.processes.iter().map(find).collect()
    }
}

/// One process about to be started.
struct Start<'a> {
    spec: &'a ProcessSpec,
    file: PathBuf,
    rank: usize,
    size: usize,
    pmi: OwnedFd,
    /// The launcher's end and the process's.
    report: Option<(OwnedFd, OwnedFd)>,
    own_limit: Rlimit,
    inheritable: &'a [RawFd],
}

impl Start<'_> {
    fn start_in(self, job: &mut Job) -> Result<(), LaunchError> {
        let mut command = self.command(job);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Err(explain_start(&self.spec.label, self.file, error)),
        };
        let label = self.spec.label.clone();
        match watched(&mut child, label, self.report) {
            Ok(process) => job.add(process),
            Err(error) => {
                // Nobody else knows of it.
                let _ = child.kill();
                let _ = child.wait();
                Err(LaunchError::system("watch a process", error))
            }
        }
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = Command::new(&self.file);
        command.arg0(&self.spec.program).args(&self.spec.args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(job.group().map_or(0, |group| group.as_raw_nonzero().get()));
        if let Some(directory) = &self.spec.cwd {
            command.current_dir(directory);
        }
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_launcher_variable) {
                command.env_remove(name);
            }
        }
        command.envs(self.spec.env.iter().map(|(name, value)| (name, value)));
        command.envs(self.variables(job));
        let theirs = self.report.as_ref().map(|(_, theirs)| theirs.as_raw_fd());
        let keep = std::iter::once(self.pmi.as_raw_fd())
            .chain(theirs)
            .collect();
        let confinement = child::Confinement {
            keep,
            withhold: self.inheritable.to_vec(),
            open_files: self.own_limit,
            guard: job.guard_to_tell(),
        };
        child::confine(&mut command, confinement);
        command
    }

    fn variables(&self, job: &Job) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![
            ("PMI_FD", self.pmi.as_raw_fd().to_string().into()),
            ("PMI_RANK", self.rank.to_string().into()),
            ("PMI_SIZE", self.size.to_string().into()),
            (MARK, job.mark().into()),
        ];
        if let Some((_, theirs)) = &self.report {
            variables.push(("TUTTI_REPORT_FD", theirs.as_raw_fd().to_string().into()));
        }
        variables
    }
}

fn watched(
    child: &mut Child,
    label: String,
    report: Option<(OwnedFd, OwnedFd)>,
) -> io::Result<Process> {
    let pid = pid_of(child);
    // The child is not reaped before the end of the job, so the number is still its own.
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let outputs = take_outputs(child)?;
    let report = report
        .map(|(ours, _)| Pipe::new(ours, REPORT_LINE_MAX))
        .transpose()?;
    Ok(Process {
        label,
        pid,
        pidfd,
        outputs,
        report,
        status: None,
    })
}

fn take_outputs(child: &mut Child) -> io::Result<[Pipe; 2]> {
    let stdout = child.stdout.take().expect("it was asked to be a pipe");
    let stderr = child.stderr.take().expect("it was asked to be a pipe");
    Ok([
        Pipe::new(stdout.into(), OUTPUT_LINE_MAX)?,
        Pipe::new(stderr.into(), OUTPUT_LINE_MAX)?,
    ])
}

fn report_pair() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    stream_pair().map_err(|error| LaunchError::system("open a report channel", error))
}

fn check_directory(spec: &ProcessSpec) -> Result<(), LaunchError> {
    let directory = spec.cwd.as_deref().unwrap_or(Path::new("."));
    let source = match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => io::Error::from(io::ErrorKind::NotADirectory),
        Err(error) => error,
    };
    Err(LaunchError::Directory {
        label: spec.label.clone(),
        directory: directory.to_owned(),
        source,
    })
}

/// Raises the soft limit of open files to `needed`, if the hard one allows. The limit as it was,
/// for the children: programs that use `select` rely on it.
fn make_room_for_descriptors(needed: u64) -> Rlimit {
    let own = getrlimit(Resource::Nofile);
    let wanted = own.maximum.map_or(needed, |most| needed.min(most));
    if own.current.is_some_and(|current| current < wanted) {
        let current = Some(wanted);
        // If this fails, opening a descriptor too many will say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..own });
    }
    own
}
