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
use super::crew::{Crew, MARK, new_mark};
use super::error::LaunchError;
use super::guard::pid_of;
use super::job::{Job, Member};
use super::pipe::Pipe;
use super::process::{Process, REPORT_LINE_MAX};
use super::program::{explain_start, find_program};
use super::spec::{Launch, ProcessSpec};
use super::watch::Watch;
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
    ///
    /// # Panics
    /// If a process names a host that is not there.
    pub fn start(self) -> Result<Job, LaunchError> {
        if self.processes.is_empty() {
            return Err(LaunchError::Nothing);
        }
        let here = self.processes.iter().filter(|spec| spec.host.is_none());
        let files = find_programs(here, self.beside.as_deref())?;
        let wake = self.wake.as_ref().map(OwnedFd::try_clone).transpose();
        let wake = wake.map_err(|error| LaunchError::system("use the wake descriptor", error))?;
        attentive(wake.as_ref(), |woken| self.start_all(files, woken))
    }

    fn start_all(mut self, files: Vec<PathBuf>, woken: &AtomicBool) -> Result<Job, LaunchError> {
        let ground = Ground::prepare(files.len(), self.hosts.len())?;
        let apps: Vec<u32> = self.processes.iter().map(|process| process.app).collect();
        let elsewhere: Vec<bool> = self
            .processes
            .iter()
            .map(|process| process.host.is_some())
            .collect();
        let (server, ends) = PmiServer::across(&apps, &self.nodes(), &elsewhere)
            .map_err(|error| LaunchError::system("open the processes' PMI connections", error))?;
        let (stop, wake) = (self.stop_on_failure, self.wake.take());
        let mut job = Job::new(self.members(), server, new_mark()?, stop, wake)?;
        job.call_hosts(&self, woken)?;
        let mut files = files.into_iter();
        let specs = self.processes.iter().zip(ends).enumerate();
        for (rank, (spec, pmi)) in specs {
            let Some((pmi, file)) = pmi.and_then(|pmi| Some((pmi, files.next()?))) else {
                continue;
            };
            let start = Start {
                spec,
                file,
                rank,
                size: apps.len(),
                pmi,
                report: if self.report {
                    Some(report_pair()?)
                } else {
                    None
                },
                ground: &ground,
            };
            start.start_in(&mut job.crew, &job.watch)?;
            if woken.load(Ordering::Relaxed) {
                return Err(LaunchError::Interrupted);
            }
        }
        job.start_on_hosts(woken)?;
        Ok(job)
    }

    fn members(&self) -> Vec<Member> {
        let member = |spec: &ProcessSpec| Member {
            label: spec.label.clone(),
            host: spec.host,
            remote_pid: None,
            status: None,
        };
        self.processes.iter().map(member).collect()
    }

    /// The node of each process: hosts numbered in the order in which processes name them.
    fn nodes(&self) -> Vec<u32> {
        let mut seen = Vec::new();
        let mut node = |spec: &ProcessSpec| {
            let known = seen.iter().position(|host| *host == spec.host);
            let node = known.unwrap_or_else(|| {
                seen.push(spec.host);
                seen.len() - 1
            });
            u32::try_from(node).expect("there are no more hosts than ranks")
        };
        self.processes.iter().map(&mut node).collect()
    }
}

/// The files of all programs, looked for on this machine.
pub(super) fn find_programs<'a>(
    specs: impl Iterator<Item = &'a ProcessSpec>,
    beside: Option<&Path>,
) -> Result<Vec<PathBuf>, LaunchError> {
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
            beside,
            path.as_deref(),
        )
    };
    specs.map(find).collect()
}

/// What this process is made ready for before it starts others.
pub(super) struct Ground {
    own_limit: Rlimit,
    inheritable: Vec<RawFd>,
}

impl Ground {
    /// For so many processes here, and agents on so many other hosts.
    pub(super) fn prepare(processes: usize, hosts: usize) -> Result<Self, LaunchError> {
        let count = u64::try_from(processes + hosts).expect("usize fits u64");
        let own_limit = make_room_for_descriptors(count * DESCRIPTORS_EACH + 64);
        let inheritable = child::inheritable()
            .map_err(|error| LaunchError::system("list its descriptors", error))?;
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| LaunchError::system("become the reaper of orphans", error))?;
        Ok(Self {
            own_limit,
            inheritable,
        })
    }
}

/// One process about to be started.
pub(super) struct Start<'a> {
    pub(super) spec: &'a ProcessSpec,
    pub(super) file: PathBuf,
    pub(super) rank: usize,
    pub(super) size: usize,
    /// The process's end.
    pub(super) pmi: OwnedFd,
    /// The launcher's end and the process's.
    pub(super) report: Option<(OwnedFd, OwnedFd)>,
    pub(super) ground: &'a Ground,
}

impl Start<'_> {
    pub(super) fn start_in(self, crew: &mut Crew, watch: &Watch) -> Result<(), LaunchError> {
        let mut command = self.command(crew);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Err(explain_start(&self.spec.label, self.file, error)),
        };
        match watched(&mut child, self.rank, self.report) {
            Ok(process) => crew.add(process, watch),
            Err(error) => {
                // Nobody else knows of it.
                let _ = child.kill();
                let _ = child.wait();
                Err(LaunchError::system("watch a process", error))
            }
        }
    }

    fn command(&self, crew: &Crew) -> Command {
        let mut command = Command::new(&self.file);
        command.arg0(&self.spec.program).args(&self.spec.args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(crew.group().map_or(0, |group| group.as_raw_nonzero().get()));
        if let Some(directory) = &self.spec.cwd {
            command.current_dir(directory);
        }
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_launcher_variable) {
                command.env_remove(name);
            }
        }
        command.envs(self.spec.env.iter().map(|(name, value)| (name, value)));
        command.envs(self.variables(crew));
        let theirs = self.report.as_ref().map(|(_, theirs)| theirs.as_raw_fd());
        let keep = std::iter::once(self.pmi.as_raw_fd())
            .chain(theirs)
            .collect();
        let confinement = child::Confinement {
            keep,
            withhold: self.ground.inheritable.clone(),
            open_files: self.ground.own_limit,
            guard: crew.guard_to_tell(),
        };
        child::confine(&mut command, confinement);
        command
    }

    fn variables(&self, crew: &Crew) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![
            ("PMI_FD", self.pmi.as_raw_fd().to_string().into()),
            ("PMI_RANK", self.rank.to_string().into()),
            ("PMI_SIZE", self.size.to_string().into()),
            (MARK, crew.mark().into()),
        ];
        if let Some((_, theirs)) = &self.report {
            variables.push(("TUTTI_REPORT_FD", theirs.as_raw_fd().to_string().into()));
        }
        variables
    }
}

fn watched(
    child: &mut Child,
    rank: usize,
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
        rank,
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

pub(super) fn report_pair() -> Result<(OwnedFd, OwnedFd), LaunchError> {
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
