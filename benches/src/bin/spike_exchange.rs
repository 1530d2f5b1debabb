//! What does a spike cost from one population to another, transport and routing only?
//!
//! Spikes are drawn before the measured loop. The program starts itself as all ranks of two
//! applications, `--senders` and `--receivers` of them, checks that every spike arrived once, in
//! time and nowhere else, and prints one JSON line; if not it ends with 3 and prints none. A peer
//! is measured by giving the command that starts it after `--`.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use benches::spikes::{SpikeCost, TICK_S, Tally, Topology, Workload, judge};
use benches::{BenchError, Launch, Placement, Role, now_ns};
use clap::{Parser, ValueEnum};
use tutti::{
    Event, Handler, IndexMap, Indexing, InputOptions, InputPort, OutputOptions, Outputs, Report,
};

#[derive(Parser)]
#[command(about = "Measures the cost of a spike between two populations; one JSON line")]
struct Options {
    /// Ranks of the sending population
    #[arg(long, default_value_t = 1)]
    senders: u32,

    /// Ranks of the receiving population
    #[arg(long, default_value_t = 1)]
    receivers: u32,

    /// Neurons of each population
    #[arg(long, default_value_t = 10_000)]
    neurons: u32,

    /// Ids that each receiving neuron draws (random topology)
    #[arg(long, default_value_t = 100)]
    inputs: u32,

    /// Where the ranks run.
    #[command(flatten)]
    placement: Placement,

    /// Who listens to whom
    #[arg(long, value_enum, default_value_t = Topology::Random)]
    topology: Topology,

    /// How spikes travel
    #[arg(long, value_enum, default_value_t = Algorithm::Pairwise)]
    algorithm: Algorithm,

    /// Ticks of 5 ms, the warm-up included
    #[arg(long, default_value_t = 400)]
    ticks: u32,

    /// Ticks before the clock starts
    #[arg(long, default_value_t = 100)]
    warmup: u32,

    /// Few neurons, few ticks: shows that it works, not how fast
    #[arg(long)]
    smoke: bool,

    /// The name of the peer that is measured
    #[arg(long, requires = "command")]
    subject: Option<String>,

    /// Counts late spikes instead of refusing the run
    #[arg(long)]
    late_is_allowed: bool,

    /// Starts a peer whose ranks each print a tally
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Algorithm {
    Pairwise,
    Allgather,
}

impl Algorithm {
    /// As a `.music` file writes it.
    fn in_file(self) -> &'static str {
        match self {
            Self::Pairwise => "point-to-point",
            Self::Allgather => "collective",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Pairwise => "pairwise",
            Self::Allgather => "allgather",
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let workload = options.workload();
    let done = match Role::of_this_process() {
        Role::Parent => parent(&options, &workload),
        Role::Rank => rank(&workload),
    };
    done.map_or_else(|error| error.exit_code(), |()| ExitCode::SUCCESS)
}

impl Options {
    fn workload(&self) -> Workload {
        let (neurons, ticks) = if self.smoke {
            (1_000, 100)
        } else {
            (self.neurons, self.ticks)
        };
        Workload {
            neurons: neurons.max(1),
            inputs: self.inputs,
            senders: self.senders.max(1),
            receivers: self.receivers.max(1),
            ticks: ticks.max(2),
            warmup: self.warmup.min(ticks.max(2) / 2),
            topology: self.topology,
        }
    }
}

fn parent(options: &Options, workload: &Workload) -> Result<(), BenchError> {
    let lines = match options.command.split_first() {
        Some((program, args)) => lines_of(Command::new(program).args(args))?,
        None => run_ours(options, workload)?,
    };
    let tallies = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok());
    let sum = judge(
        workload,
        &tallies.collect::<Vec<Tally>>(),
        options.late_is_allowed,
    )?;
    let subject = options.subject.as_deref().unwrap_or("tutti");
    println!(
        "{}",
        SpikeCost::new(subject, options.algorithm.name(), workload, &sum)
    );
    Ok(())
}

fn lines_of(command: &mut Command) -> Result<Vec<String>, BenchError> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| BenchError::job("starting the peer", error))?;
    if !output.status.success() {
        return Err(BenchError::Job(format!(
            "the peer ended with {}",
            output.status
        )));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

fn run_ours(options: &Options, workload: &Workload) -> Result<Vec<String>, BenchError> {
    let file = MusicFile::write(options, workload)?;
    let ranks = workload.senders + workload.receivers;
    let path = file.0.display().to_string();
    Launch::of_this_program(ranks, &options.placement)?
        .env(tutti::FILE_VARIABLE, &path)
        .run()
}

/// The `.music` file of the run; removed again when dropped.
struct MusicFile(PathBuf);

impl MusicFile {
    fn write(options: &Options, workload: &Workload) -> Result<Self, BenchError> {
        let name = format!("tutti-spikes-{}.music", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = format!(
            "binary=spike_exchange\n[A]\nnp={}\n[B]\nnp={}\nA.out -> B.in [{},{}]\n",
            workload.senders,
            workload.receivers,
            workload.neurons,
            options.algorithm.in_file()
        );
        let written = std::fs::write(&path, text);
        written.map_err(|error| BenchError::job("writing the .music file", error))?;
        Ok(Self(path))
    }
}

impl Drop for MusicFile {
    fn drop(&mut self) {
        // A file left in the temporary folder is no reason to fail.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn rank(workload: &Workload) -> Result<(), BenchError> {
    let setup = tutti::setup().map_err(|error| BenchError::job("joining", error))?;
    let run = if setup.application() == 0 {
        send
    } else {
        receive
    };
    let tally = run(setup, workload).map_err(|error| BenchError::job("exchanging", error))?;
    let line = serde_json::to_string(&tally);
    println!(
        "{}",
        line.map_err(|error| BenchError::job("printing", error))?
    );
    Ok(())
}

fn send(mut setup: tutti::Setup, workload: &Workload) -> Result<Tally, tutti::Error> {
    let own = workload.sender_slice(setup.rank());
    let pattern = workload.pattern(own.clone());
    let port = setup.publish_event_output("out")?;
    let map = IndexMap::linear(own.start, own.end - own.start)?;
    setup.map_output(
        port,
        map,
        Indexing::Global,
        OutputOptions {
            max_buffered: Some(1),
        },
    )?;
    let mut deaf = tutti::Ignore;
    let mut runtime = setup.start(TICK_S, &mut deaf)?;
    let mut tally = Tally::default();
    for tick in 0..workload.ticks {
        if tick == workload.warmup {
            tally.start_ns = now_ns();
        }
        let start = f64::from(tick) * TICK_S;
        let spikes = &pattern[tick as usize % pattern.len()];
        for spike in spikes {
            runtime.insert_event(port, start + spike.offset, spike.id);
        }
        tally.inserted += spikes.len() as u64;
        runtime.tick(&mut deaf)?;
    }
    tally.end_ns = now_ns();
    tally.bytes = bytes_of(&runtime.finalize(&mut deaf)?);
    Ok(tally)
}

fn receive(mut setup: tutti::Setup, workload: &Workload) -> Result<Tally, tutti::Error> {
    let mapped = workload.mapped(setup.rank());
    let port = setup.publish_event_input("in")?;
    let options = InputOptions {
        max_buffered: Some(1),
        ..InputOptions::default()
    };
    setup.map_input(port, map_of(&mapped)?, Indexing::Global, options)?;
    let mut counter = Counter::default();
    let mut runtime = setup.start(TICK_S, &mut counter)?;
    for tick in 0..workload.ticks {
        if tick == workload.warmup {
            counter.tally.start_ns = now_ns();
        }
        counter.due = runtime.time() + TICK_S - ROUNDING_S;
        runtime.tick(&mut counter)?;
    }
    counter.tally.end_ns = now_ns();
    counter.due = 0.0;
    runtime.finalize(&mut counter)?;
    let mut tally = counter.tally;
    (tally.expected, tally.expected_ids) = workload.expected(&mapped);
    Ok(tally)
}

/// Below the resolution of the timebase.
const ROUNDING_S: f64 = 1e-9;

/// Counts what arrives, no more than the clients of the peers do.
#[derive(Default)]
struct Counter {
    tally: Tally,
    /// A spike before this time should have been here earlier.
    due: f64,
}

impl Handler for Counter {
    fn events(&mut self, _: &mut Outputs, _: InputPort, events: &[Event]) {
        self.tally.delivered += events.len() as u64;
        for event in events {
            self.tally.ids += u64::from(event.id);
            self.tally.late += u64::from(event.time < self.due);
        }
    }
}

fn map_of(mapped: &[bool]) -> Result<IndexMap, tutti::Error> {
    let ids = (0..)
        .zip(mapped)
        .filter_map(|(id, mapped)| mapped.then_some(id));
    Ok(IndexMap::permutation(&ids.collect::<Vec<u32>>())?)
}

fn bytes_of(report: &Report) -> u64 {
    report.ports.iter().map(|port| port.bytes).sum()
}
