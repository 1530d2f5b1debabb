//! What a job will do, for people: the text of `music check`.

use std::fmt::Write;

use crate::job::{Application, Connection, Job};

/// Ranks, connections and warnings of a job, a line each.
///
/// Ticks are not in a file: every program gives its own when it starts, so the text says so.
pub fn describe(job: &Job) -> String {
    let mut plan = Plan(String::new());
    plan.head(job);
    plan.applications(job);
    plan.connections(job);
    for warning in &job.warnings {
        plan.line(format_args!("{warning}"));
    }
    plan.0
}

struct Plan(String);

impl Plan {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn head(&mut self, job: &Job) {
        let stop = match job.stop_time {
            Some(seconds) => format!("stops at {seconds} s"),
            None => "no stoptime: each program decides when to stop".to_owned(),
        };
        let (ranks, applications) = (u64::from(job.ranks()), job.applications.len() as u64);
        self.line(format_args!(
            "{}: {}, {}; {stop}; timebase {}",
            job.file,
            counted(applications, "application"),
            counted(ranks, "rank"),
            job.timebase
        ));
    }

    fn applications(&mut self, job: &Job) {
        self.line(format_args!("\napplications"));
        let widest = column(job.applications.iter().map(|a| a.name.clone()));
        let ranks: Vec<String> = job.applications.iter().map(ranks).collect();
        let rank_column = column(ranks.iter().cloned());
        for (application, ranks) in job.applications.iter().zip(&ranks) {
            let Application {
                name,
                binary,
                arguments,
                working_directory,
                ..
            } = application;
            let words: Vec<String> = std::iter::once(binary)
                .chain(arguments)
                .map(|word| shell_word(word))
                .collect();
            let place = working_directory.as_ref().map(|d| format!("  (in {d})"));
            self.line(format_args!(
                "  {name:widest$}  {ranks:rank_column$}  {}{}",
                words.join(" "),
                place.unwrap_or_default()
            ));
        }
    }

    fn connections(&mut self, job: &Job) {
        if job.connections.is_empty() {
            self.line(format_args!(
                "\nno connections: every application runs by itself"
            ));
            return;
        }
        self.line(format_args!("\nconnections"));
        let widest = column(job.connections.iter().map(|c| job.connection_name(c)));
        for connection in &job.connections {
            let name = job.connection_name(connection);
            self.line(format_args!("  {name:widest$}  {}", terms(job, connection)));
        }
        self.line(format_args!(
            "  ticks are not known before the programs run, and with them the loops that are too \
             short"
        ));
    }
}

/// Width, exchange and overrides of a connection.
fn terms(job: &Job, connection: &Connection) -> String {
    let width = match connection.width {
        Some(width) => format!("width {width}"),
        None => "width as mapped".to_owned(),
    };
    let ranks = |index: usize| job.applications.get(index).map_or(0, |a| a.processes);
    let sides = (
        ranks(connection.sender.application),
        ranks(connection.receiver.application),
    );
    let mut terms = format!(
        "{width}, {}, {} to {}",
        connection.communication, sides.0, sides.1
    );
    match connection.acceptable_latency {
        Some(seconds) => terms += &format!(", latency {seconds} s"),
        None => terms += ", latency as asked",
    }
    if let Some(ticks) = connection.max_buffered {
        terms += &format!(", maxbuffered {ticks}");
    }
    terms
}

fn ranks(application: &Application) -> String {
    match application.processes {
        1 => format!("rank {}", application.first_rank),
        _ => format!(
            "ranks {}-{}",
            application.first_rank,
            application.ranks().end - 1
        ),
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A word as one would type it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''").replace('\n', " "))
    }
}

/// The width of a column, unless one entry would push everything off the screen.
fn column(entries: impl Iterator<Item = String>) -> usize {
    const WIDEST: usize = 40;
    entries
        .map(|entry| entry.chars().count())
        .max()
        .unwrap_or(0)
        .min(WIDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_shows_ranks_connections_and_warnings() {
        let job = Job::parse(
            "two.music",
            "stoptime=1.5\n[A]\nnp=2\nbinary=./gen\nargs=-t 0.01 'x y'\nwd=/data\n\
             [receiver]\nnp=1\nbinary=log\nstray\n\
             A.out -> receiver.in [10, collective] latency=0.002 maxbuffered=3\n\
             receiver.o -> A.i\n",
        )
        .unwrap();

        assert_eq!(
            describe(&job),
            "two.music: 2 applications, 3 ranks; stops at 1.5 s; timebase 1e-9 s\n\
             \napplications\n  \
             A         ranks 0-1  ./gen -t 0.01 'x y'  (in /data)\n  \
             receiver  rank 2     log\n\
             \nconnections\n  \
             A.out -> receiver.in  width 10, collective, 2 to 1, latency 0.002 s, maxbuffered 3\n  \
             receiver.o -> A.i     width as mapped, point-to-point, 1 to 2, latency as asked\n  \
             ticks are not known before the programs run, and with them the loops that are too \
             short\n\
             two.music:10:1: warning: nothing is meant by \"stray\" here: write key=value, \
             [application] or app.port -> app.port; start comments with #\n"
        );
    }

    #[test]
    fn an_application_alone_needs_no_connections() {
        let text = describe(&Job::parse("f", "np=1\nbinary=x\n[A]").unwrap());

        assert!(
            text.contains("1 application, 1 rank; no stoptime"),
            "{text}"
        );
        assert!(text.contains("no connections"), "{text}");
    }
}
