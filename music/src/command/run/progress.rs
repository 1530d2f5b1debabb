//! How far the simulation is: per application the time that its slowest rank has reached.

use std::time::{Duration, Instant};

use tutti::Job;

use super::When;
use super::screen::Screen;

/// On a terminal the line is drawn this often.
const REDRAW: Duration = Duration::from_millis(200);
/// Where lines cannot be changed, a new one comes this often.
const PLAIN_RARE: Duration = Duration::from_secs(10);
const PLAIN_OFTEN: Duration = Duration::from_secs(1);

/// Simulated time by application.
#[derive(Debug)]
pub(super) struct Progress {
    when: When,
    stop_s: Option<f64>,
    applications: Vec<Application>,
    started: Instant,
    shown: Instant,
    changed: bool,
}

#[derive(Debug)]
struct Application {
    name: String,
    first: usize,
    reached_s: Vec<Option<f64>>,
}

impl Progress {
    pub(super) fn new(job: &Job, when: When) -> Self {
        let applications = job.applications.iter().map(|application| Application {
            name: application.name.clone(),
            first: application.first_rank as usize,
            reached_s: vec![None; application.processes as usize],
        });
        Self {
            when,
            stop_s: job.stop_time,
            applications: applications.collect(),
            started: Instant::now(),
            shown: Instant::now(),
            changed: false,
        }
    }

    /// How long to wait for something to happen before looking at the clock again.
    pub(super) fn patience(&self) -> Duration {
        REDRAW
    }

    /// A process has come this far.
    pub(super) fn reached(&mut self, process: usize, time_s: f64) {
        let application = self
            .applications
            .iter_mut()
            .rev()
            .find(|a| a.first <= process);
        if let Some(application) = application {
            let rank = process - application.first;
            if let Some(reached) = application.reached_s.get_mut(rank) {
                *reached = Some(time_s);
                self.changed = true;
            }
        }
    }

    /// Draws the line if it is time to.
    pub(super) fn show(&mut self, screen: &mut Screen) {
        let every = match (self.when, screen.is_terminal()) {
            (When::Never, _) => return,
            (_, true) => REDRAW,
            (When::Always, false) => PLAIN_OFTEN,
            (When::Auto, false) => PLAIN_RARE,
        };
        if !self.changed || self.shown.elapsed() < every {
            return;
        }
        (self.shown, self.changed) = (Instant::now(), false);
        let line = self.line(self.started.elapsed().as_secs_f64());
        if screen.is_terminal() {
            screen.status(&line);
        } else {
            screen.say(&line);
        }
    }

    /// `A 0.350 s  B 0.345 s  35 %  2.1 x real time`.
    fn line(&self, wall_s: f64) -> String {
        let mut parts = Vec::new();
        let mut slowest = f64::INFINITY;
        for application in &self.applications {
            let times = application.reached_s.iter();
            let reached = times
                .map(|time| time.unwrap_or(0.0))
                .fold(f64::INFINITY, f64::min);
            slowest = slowest.min(reached);
            parts.push(format!("{} {reached:.3} s", application.name));
        }
        if let Some(stop) = self.stop_s.filter(|stop| *stop > 0.0) {
            parts.push(format!("{:.0} %", (100.0 * slowest / stop).min(100.0)));
        }
        parts.push(format!("{:.2} x real time", slowest / wall_s.max(1e-3)));
        parts.join("  ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_as_far_as_its_slowest_rank() {
        let text = "stoptime=2\n[A]\nbinary=a\nnp=1\n[B]\nbinary=b\nnp=2\nA.o -> B.i [1]\n";
        let job = Job::parse("x.music", text).unwrap();
        let mut progress = Progress::new(&job, When::Auto);

        progress.reached(0, 1.0);
        progress.reached(1, 0.9);
        assert_eq!(
            progress.line(1.0),
            "A 1.000 s  B 0.000 s  0 %  0.00 x real time"
        );
        progress.reached(2, 0.8);

        assert_eq!(
            progress.line(0.4),
            "A 1.000 s  B 0.800 s  40 %  2.00 x real time"
        );
    }
}
