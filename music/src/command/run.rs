//! `music run FILE`: starts every application, watches them, and sums up what happened.

mod absent;
mod hosts;
mod plan;
mod progress;
mod screen;
mod signals;
mod summary;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use transport::bootstrap::{environment, predict_rank};
use transport::launch::{Event, Job as Started, Launch, LaunchError, serve_agent};
use tutti::Job;
use tutti::report::Message;

use super::fabric;
use super::failure;
use super::load::{check_room, load};
use super::programs;
use super::recursion;
use absent::Absent;
use plan::Plan;
use progress::Progress;
use screen::Screen;
use signals::Signals;
use summary::Summary;

/// Options of `music run`.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// The .music file
    pub file: PathBuf,

    /// Print the report as one JSON object on standard output; what the processes print goes to
    /// standard error then
    #[arg(long)]
    pub json: bool,

    /// Do not put [application.rank] before the lines that processes print
    #[arg(long)]
    pub no_prefix: bool,

    /// Put [application.rank] before the lines that processes print (the default)
    #[arg(long, overrides_with = "no_prefix")]
    pub prefix: bool,

    /// Whether to show how far the simulation is
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub progress: When,

    /// Do not print the table at the end
    #[arg(short = 'q', long)]
    pub quiet: bool,

    /// Start the processes on these hosts, by ssh: their slots are filled in order; without slots
    /// each host gets an equal block of ranks
    #[arg(long, value_name = "HOST[:SLOTS],...")]
    pub hosts: Option<String>,

    /// The command that starts `music agent` on a host instead of ssh, with {host} for its name;
    /// the words `.../music agent` are appended [default: TUTTI_AGENT from the environment]
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    pub agent: Option<String>,

    /// What joins the ranks: auto, shm, or a provider of libfabric (`music fabric` lists them)
    /// between all ranks, those of one host too [default: TUTTI_FABRIC from the environment]
    #[arg(long, value_name = "NAME", value_parser = fabric::name)]
    pub fabric: Option<String>,

    /// Set a variable in the environment of all processes, or pass on this command's to other hosts
    #[arg(short = 'x', long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
}

impl RunOptions {
    /// The options of `music FILE`.
    pub fn for_file(file: PathBuf) -> Self {
        Self {
            file,
            json: false,
            no_prefix: false,
            prefix: false,
            progress: When::Auto,
            quiet: false,
            hosts: None,
            agent: None,
            fabric: None,
            env: Vec::new(),
        }
    }
}

/// When to show progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum When {
    /// One line that changes on a terminal; elsewhere a line every ten seconds.
    Auto,
    /// Elsewhere a line every second.
    Always,
    /// Not at all.
    Never,
}

/// After a failure or a signal, processes have this long to end by themselves.
const GRACE: Duration = Duration::from_millis(800);

/// Our launcher marks every process of a job with it.
const JOB_VARIABLE: &str = "TUTTI_JOB";

/// Runs it.
pub(super) fn run(options: &RunOptions) -> ExitCode {
    if let Err(error) = recursion::check(&options.file) {
        return super::usage_error(&error);
    }
    // Within a job of ours the variables are those of the application that started this command.
    if environment(JOB_VARIABLE).is_none()
        && let Ok(Some(place)) = predict_rank(environment)
        && place.size.is_none_or(|size| size > 1)
    {
        let file = options.file.display();
        return super::usage_error(&format!(
            "`music run` starts all processes itself, but {}={} says that an MPI launcher has; \
             use `music {file}` under mpirun",
            place.source, place.rank
        ));
    }
    let job = match load(&options.file) {
        Ok(job) => job,
        Err(code) => return code,
    };
    // With other hosts each has its own room and its own programs, which its agent looks for.
    if options.hosts.is_none() {
        if let Err(error) = check_room(&job) {
            return programs::say(&[error]);
        }
        let problems = programs::problems(&job);
        if !problems.is_empty() {
            return programs::say(&problems);
        }
    }
    let plan = match Plan::new(&job, options) {
        Ok(plan) => plan,
        Err(error) => return super::usage_error(&error),
    };
    match launch(&job, plan, options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => failure(&error),
    }
}

/// Is the agent of a launcher on another host.
pub(super) fn agent() -> ExitCode {
    match serve_agent() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error),
    }
}

fn launch(job: &Job, plan: Plan, options: &RunOptions) -> Result<u8, Box<dyn std::error::Error>> {
    let absent = Absent::new(plan.processes.len());
    let (signals, wake) = Signals::catch()?;
    let mut launch = Launch::new(plan.processes);
    launch.hosts = plan.hosts;
    launch.wake = Some(wake);
    launch.stop_on_failure = Some(GRACE);
    let mut running = Running {
        screen: Screen::new(options.json, !options.no_prefix || options.prefix),
        progress: Progress::new(job, options.progress),
        summary: Summary::new(job),
        absent,
        distrusted: BTreeSet::new(),
        signals,
        stopped_by: None,
        failed: None,
    };
    running.watch(launch)?;
    running.close(job, options)
}

/// A run that is watched.
struct Running {
    screen: Screen,
    progress: Progress,
    summary: Summary,
    absent: Absent,
    /// Processes whose report channel carries something else.
    distrusted: BTreeSet<usize>,
    signals: Signals,
    stopped_by: Option<i32>,
    failed: Option<u8>,
}

impl Running {
    fn watch(&mut self, launch: Launch) -> Result<(), LaunchError> {
        let mut job = match launch.start() {
            Err(LaunchError::Interrupted) => {
                self.stopped_by = self.signals.caught();
                return Ok(());
            }
            started => started?,
        };
        self.summary.started();
        while !job.is_finished() {
            match job.next(self.progress.patience())? {
                Some(Event::Woken) => {
                    if let Some(signal) = self.signals.caught() {
                        self.stopped_by.get_or_insert(signal);
                        // Asked twice, the user means it.
                        let again = self.stopped_by.is_some_and(|_| self.signals.count() > 1);
                        job.stop(if again { Duration::ZERO } else { GRACE });
                    }
                }
                Some(event) => self.take(event, &job),
                None => {}
            }
            let label = |process| job.label_and_host(process);
            if let Some(absent) = self.absent.overdue(Instant::now(), label) {
                self.screen.say(&absent);
            }
            self.progress.show(&mut self.screen);
        }
        self.screen.clear();
        Ok(())
    }

    fn take(&mut self, event: Event, job: &Started) {
        let label = &|process| job.label_and_host(process);
        match event {
            Event::Line {
                process,
                stream,
                text,
                ended,
            } => {
                self.screen
                    .line(process, job.label(process), stream, &text, ended);
            }
            Event::HostLine { host, text } => self.screen.host_line(&host, &text),
            Event::Report { process, line } => self.hear(process, &line, label),
            Event::BadReport { process, problem } => {
                self.distrust(process, &problem, label);
            }
            Event::Joined { process } => {
                self.absent.joined(process, Instant::now());
                self.summary.joined(process);
            }
            Event::Failed(failure) => {
                self.failed = u8::try_from(failure.exit_code()).ok().or(Some(1));
                if self.stopped_by.is_none() {
                    self.screen.say(&failure.to_string());
                }
            }
            _ => {}
        }
    }

    fn hear(&mut self, process: usize, line: &str, label: &dyn Fn(usize) -> String) {
        if self.distrusted.contains(&process) {
            return;
        }
        self.summary.joined(process);
        match serde_json::from_str(line) {
            Ok(Message::Progress { time_s }) => self.progress.reached(process, time_s),
            Ok(Message::Finished(report)) => {
                self.progress.reached(process, report.time_s);
                self.summary.add(report);
            }
            Ok(Message::Stall { message, .. }) => self.screen.say(&message),
            Ok(Message::Warning { message }) => {
                self.screen
                    .say(&format!("{}: warning: {message}", label(process)));
            }
            Ok(_) => {}
            Err(error) => {
                self.distrust(process, &error, label);
            }
        }
    }

    /// Something else than reports came: what comes next is not heard.
    fn distrust(
        &mut self,
        process: usize,
        problem: &dyn std::fmt::Display,
        label: &dyn Fn(usize) -> String,
    ) {
        if self.distrusted.insert(process) {
            let label = label(process);
            self.screen.say(&format!(
                "{label}: bad report, those after it are ignored: {problem}"
            ));
        }
    }

    /// The table, and what to exit with.
    fn close(mut self, job: &Job, options: &RunOptions) -> Result<u8, Box<dyn std::error::Error>> {
        let strangers = self.summary.strangers(job);
        let code = match (self.stopped_by, self.failed) {
            (Some(signal), _) => {
                self.screen
                    .say(&format!("stopped by {}", signals::name(signal)));
                u8::try_from(128 + signal).unwrap_or(1)
            }
            (None, Some(code)) => code,
            (None, None) => u8::from(!strangers.is_empty()),
        };
        if self.stopped_by.is_none() && self.failed.is_none() {
            for line in strangers {
                self.screen.say(&line);
            }
        }
        if options.json {
            self.screen.print(&self.summary.json(job, code)?);
        } else if code == 0 && !options.quiet {
            self.screen.show(&self.summary.text(job));
        }
        Ok(if code == 0 && self.screen.has_lost() {
            1
        } else {
            code
        })
    }
}
