//! From the environment to a [`Setup`], from there to a [`Runtime`], and out again in order.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use music_core::{Handler, Job, Report};
use transport::AnyFabric;
use transport::bootstrap::{Bootstrap, environment, inherited_stream};
use transport_core::Driver;

use crate::channel::{Channel, Watcher};
use crate::report::{Message, ProcessReport};
use crate::{APPLICATION_VARIABLE, Error, FILE_VARIABLE, REPORT_VARIABLE};

/// When to say that the ranks of a job have not all joined.
const JOINED_WITHIN: Duration = Duration::from_secs(5);

/// A program that has joined its job and publishes and maps its ports; see
/// [`music_core::Setup`] for everything that it can do.
pub struct Setup {
    inner: music_core::Setup<AnyFabric>,
    membership: Membership,
}

/// A program whose simulation runs; see [`music_core::Runtime`] for everything that it can do.
pub struct Runtime {
    inner: music_core::Runtime<AnyFabric>,
    membership: Membership,
    started: Instant,
}

/// What has to be left in order at the end.
struct Membership {
    /// Not closed after an error: a launcher takes that for a crash and may end the process before
    /// it can say what happened.
    bootstrap: ManuallyDrop<Bootstrap>,
    channel: Channel,
}

/// Joins the job that the environment describes. Collective over all ranks of the job; once per
/// process.
///
/// # Errors
/// [`Error`], the same on all ranks where the file or the number of ranks is at fault.
pub fn setup() -> Result<Setup, Error> {
    let socket = inherited_stream(REPORT_VARIABLE, environment)?;
    let channel = Channel::new(socket.map(UnixStream::from));
    let mut bootstrap = ManuallyDrop::new(Bootstrap::from_env()?);
    let rank = bootstrap.rank().0;
    let job = Arc::new(read_job(&mut bootstrap, &channel)?);
    job.check_ranks(bootstrap.size())
        .map_err(music_core::Error::from)?;
    let application = own_application(&job, rank)?;
    let options = transport::Options::from_environment()?;
    let fabric = transport::open(&mut *bootstrap, &options)
        .map_err(|error| channel.unopened(error, rank))?;
    channel.introduce(&job, &fabric);
    let driver = Driver::new(fabric);
    let watcher = Box::new(Watcher::new(channel.clone()));
    let inner = music_core::Setup::new(driver, job, application, watcher)
        .map_err(|error| channel.after(error))?;
    Ok(Setup {
        inner,
        membership: Membership { bootstrap, channel },
    })
}

impl Setup {
    /// Agrees with all other ranks and starts the simulation, in ticks of `tick_seconds`. What is
    /// known at time zero is handed over at once. Collective over the job.
    ///
    /// # Errors
    /// Whatever the file or the programs have wrong, the same on all ranks.
    pub fn start(self, tick_seconds: f64, handler: &mut impl Handler) -> Result<Runtime, Error> {
        let channel = &self.membership.channel;
        let inner = self
            .inner
            .start(tick_seconds, handler)
            .map_err(|error| channel.after(error))?;
        Ok(Runtime {
            inner,
            membership: self.membership,
            started: Instant::now(),
        })
    }
}

impl Runtime {
    /// Moves on by one tick: sends what is due, waits for what is due, hands it over.
    ///
    /// # Errors
    /// [`Error::Music`] if a rank is lost or events do not arrive as they were sent.
    #[inline]
    pub fn tick(&mut self, handler: &mut impl Handler) -> Result<(), Error> {
        self.inner
            .tick(handler)
            .map_err(|error| self.membership.channel.after(error))
    }

    /// Sends what is left, hands over what still comes, and leaves the job in order.
    ///
    /// # Errors
    /// [`Error`] if a rank is lost meanwhile.
    pub fn finalize(mut self, handler: &mut impl Handler) -> Result<Report, Error> {
        let channel = &self.membership.channel;
        let report = self
            .inner
            .finalize(handler)
            .map_err(|error| channel.after(error))?;
        let Membership { bootstrap, channel } = self.membership;
        let fabric = self.inner.into_driver().into_fabric();
        let described = fabric.describe();
        fabric.close();
        let wall_s = self.started.elapsed().as_secs_f64();
        let report_of_all = ProcessReport::new(&report, wall_s, described);
        channel.say(&Message::Finished(report_of_all));
        ManuallyDrop::into_inner(bootstrap).finalize()?;
        Ok(report)
    }
}

/// The file that the environment names, the same on all ranks; a job of this program alone if it
/// names none.
fn read_job(bootstrap: &mut Bootstrap, channel: &Channel) -> Result<Job, Error> {
    let Some(path) = std::env::var_os(FILE_VARIABLE).map(PathBuf::from) else {
        return Ok(Job::alone(&program_name(), bootstrap.size()));
    };
    let text = std::fs::read_to_string(&path).map_err(|source| Error::File {
        path: path.clone(),
        source,
    })?;
    let job = Job::parse(&path.display().to_string(), &text);
    let own = job.as_ref().ok().and_then(|job| first_of(job, bootstrap));
    let tell = |within: Duration| {
        if let Some(application) = own {
            channel.waits_for_all(application, within);
        }
    };
    if !is_agreed(bootstrap, &text, tell)? {
        return Err(Error::Differs(path));
    }
    Ok(job?)
}

/// The application whose first rank this is, if it is one: it speaks for the others.
fn first_of<'a>(job: &'a Job, bootstrap: &Bootstrap) -> Option<&'a str> {
    let rank = bootstrap.rank().0;
    let application = &job.applications[job.application_of(rank)?];
    (application.first_rank == rank).then_some(application.name.as_str())
}

/// Whether rank 0 reads the same text.
fn is_agreed(
    bootstrap: &mut Bootstrap,
    text: &str,
    tell: impl FnOnce(Duration),
) -> Result<bool, Error> {
    const KEY: &str = "tutti-file";
    if bootstrap.size() == 1 {
        return Ok(true);
    }
    // The standard hasher has fixed keys: the same text gives the same number everywhere.
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let hash = hasher.finish().to_le_bytes();
    if bootstrap.rank().0 == 0 {
        bootstrap.put(KEY, &hash)?;
    }
    bootstrap.barrier_telling(JOINED_WITHIN, tell)?;
    Ok(bootstrap.get(KEY)? == hash)
}

fn own_application(job: &Job, rank: u32) -> Result<usize, Error> {
    let own = job.application_of(rank).unwrap_or(0);
    match std::env::var(APPLICATION_VARIABLE) {
        Ok(told) if told != job.applications[own].name && !job.file.is_empty() => {
            Err(Error::Application {
                file: job.file.clone(),
                application: told,
                rank,
                expected: job.applications[own].name.clone(),
            })
        }
        _ => Ok(own),
    }
}

fn program_name() -> String {
    let program = std::env::args_os()
        .next()
        .map(PathBuf::from)
        .unwrap_or_default();
    program.file_name().map_or_else(
        || "program".into(),
        |name| name.to_string_lossy().into_owned(),
    )
}

impl Deref for Setup {
    type Target = music_core::Setup<AnyFabric>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl Deref for Runtime {
    type Target = music_core::Runtime<AnyFabric>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Runtime {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
