//! Runs a job on the simulated fabric: every application is a small program that makes events from
//! a seed, and every rank writes down what it inserted and what was handed to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use music_core::{
    Error, Event, Handler, IndexMap, Indexing, InputOptions, InputPort, Job, Observer, Order,
    OutputOptions, OutputPort, Outputs, Report, Runtime, Setup, Stall,
};
use transport_core::{Driver, Fabric, Memory, Nanos, Pause, Topology};
use transport_sim::{Adversary, Network, Sim, SimFabric};

/// One run: the file, what its programs do, and where they run.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) file: String,
    pub(crate) programs: Vec<Program>,
    pub(crate) topology: Topology,
    pub(crate) adversary: Adversary,
    pub(crate) heap_bytes: u64,
    pub(crate) seed: u64,
}

/// What the ranks of one application do.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) tick: f64,
    pub(crate) ticks: u64,
    pub(crate) outputs: Vec<Out>,
    pub(crate) inputs: Vec<In>,
    /// Inputs whose events are passed on to an output, by index.
    pub(crate) relays: Vec<(usize, usize)>,
    /// Whether it relays while it finalizes too; what it inserts then lies in the far future.
    pub(crate) relays_to_the_end: bool,
    /// Time a rank computes in each tick.
    pub(crate) compute: fn(rank: u32) -> Nanos,
}

#[derive(Clone)]
pub(crate) struct Out {
    pub(crate) name: &'static str,
    /// One map per rank.
    pub(crate) maps: Vec<IndexMap>,
    pub(crate) indexing: Indexing,
    pub(crate) max_buffered: Option<u64>,
    /// Events per id and tick, on average.
    pub(crate) rate: f64,
}

#[derive(Clone)]
pub(crate) struct In {
    pub(crate) name: &'static str,
    pub(crate) maps: Vec<IndexMap>,
    pub(crate) indexing: Indexing,
    pub(crate) latency: f64,
    pub(crate) max_buffered: Option<u64>,
    pub(crate) order: Order,
}

/// What a rank wrote down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Log {
    pub(crate) application: String,
    pub(crate) rank: u32,
    pub(crate) inserted: Vec<(String, Event)>,
    pub(crate) delivered: Vec<Delivery>,
    pub(crate) report: Report,
    pub(crate) stalls: u32,
}

/// One call of a handler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) port: String,
    /// The runtime's time, or none while it finalizes.
    pub(crate) at: Option<f64>,
    /// With global ids.
    pub(crate) events: Vec<Event>,
}

impl Scenario {
    pub(crate) fn new(file: &str, programs: Vec<Program>) -> Self {
        let ranks = programs.iter().map(Program::ranks).sum();
        Self {
            file: file.to_owned(),
            programs,
            topology: Topology::single_node(ranks),
            adversary: Adversary::none(),
            heap_bytes: 1 << 20,
            seed: 1,
        }
    }

    pub(crate) fn on(mut self, topology: Topology) -> Self {
        self.topology = topology;
        self
    }

    pub(crate) fn against(mut self, adversary: Adversary) -> Self {
        self.adversary = adversary;
        self
    }

    pub(crate) fn heap(mut self, bytes: u64) -> Self {
        self.heap_bytes = bytes;
        self
    }

    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    pub(crate) fn job(&self) -> Job {
        Job::parse("test.music", &self.file).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// What every rank wrote down, or why it failed.
    pub(crate) fn run(&self) -> Vec<Result<Log, Error>> {
        let job = Arc::new(self.job());
        let sim = Sim::new(self.topology.clone(), Network::default(), self.seed)
            .adversary(self.adversary.clone())
            .counters(4096)
            .heap_bytes(self.heap_bytes);
        sim.threads(|fabric| self.rank(fabric, &job))
            .unwrap_or_else(|error| panic!("seed {}: {error}", self.seed))
    }

    /// As [`run`](Self::run), where nothing may fail.
    pub(crate) fn logs(&self) -> Vec<Log> {
        let logs = self.run().into_iter();
        logs.map(|log| log.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed)))
            .collect()
    }

    fn rank(&self, fabric: SimFabric, job: &Arc<Job>) -> Result<Log, Error> {
        let application = job
            .application_of(fabric.rank().0)
            .expect("the job has this rank");
        let program = &self.programs[application];
        let stalls = Arc::new(AtomicU32::new(0));
        let observer = Box::new(Count(Arc::clone(&stalls)));
        let mut setup = Setup::new(Driver::new(fabric), Arc::clone(job), application, observer)?;
        let rank = setup.rank();
        let mut notes = Notes {
            program,
            rank,
            seed: self.seed,
            time: Some(0.0),
            outputs: Vec::new(),
            inputs: Vec::new(),
            inserted: Vec::new(),
            delivered: Vec::new(),
        };
        notes.publish(&mut setup)?;
        let mut runtime = setup.start(program.tick, &mut notes)?;
        for tick in 0..program.ticks {
            notes.make(tick, &mut runtime);
            let pause = (program.compute)(rank);
            compute(runtime.driver().fabric_mut(), pause);
            notes.time = Some(at(tick + 1, program.tick));
            runtime.tick(&mut notes)?;
            assert!((runtime.time() - at(tick + 1, program.tick)).abs() < 1e-9);
        }
        notes.time = None;
        let report = runtime.finalize(&mut notes)?;
        Ok(Log {
            application: program.name.clone(),
            rank,
            inserted: notes.inserted,
            delivered: notes.delivered,
            report,
            stalls: stalls.load(Ordering::Relaxed),
        })
    }
}

impl Program {
    pub(crate) fn new(name: &str, tick: f64, ticks: u64) -> Self {
        Self {
            name: name.to_owned(),
            tick,
            ticks,
            outputs: Vec::new(),
            inputs: Vec::new(),
            relays: Vec::new(),
            relays_to_the_end: false,
            compute: |_| Nanos(0),
        }
    }

    pub(crate) fn output(mut self, name: &'static str, maps: Vec<IndexMap>) -> Self {
        self.outputs.push(Out {
            name,
            maps,
            indexing: Indexing::Global,
            max_buffered: None,
            rate: 0.5,
        });
        self
    }

    pub(crate) fn input(mut self, name: &'static str, maps: Vec<IndexMap>, latency: f64) -> Self {
        self.inputs.push(In {
            name,
            maps,
            indexing: Indexing::Global,
            latency,
            max_buffered: None,
            order: Order::ByRank,
        });
        self
    }

    pub(crate) fn relay(mut self, input: usize, output: usize) -> Self {
        self.relays.push((input, output));
        self
    }

    pub(crate) fn rate(mut self, rate: f64) -> Self {
        for output in &mut self.outputs {
            output.rate = rate;
        }
        self
    }

    pub(crate) fn local(mut self) -> Self {
        for output in &mut self.outputs {
            output.indexing = Indexing::Local;
        }
        for input in &mut self.inputs {
            input.indexing = Indexing::Local;
        }
        self
    }

    pub(crate) fn computing(mut self, compute: fn(u32) -> Nanos) -> Self {
        self.compute = compute;
        self
    }

    pub(crate) fn ranks(&self) -> u32 {
        let outputs = self.outputs.iter().map(|port| port.maps.len());
        let maps = outputs.chain(self.inputs.iter().map(|port| port.maps.len()));
        u32::try_from(maps.max().unwrap_or(1)).expect("few ranks")
    }
}

/// A rank's handler: writes down, and passes on what the program relays.
struct Notes<'a> {
    program: &'a Program,
    rank: u32,
    seed: u64,
    time: Option<f64>,
    outputs: Vec<OutputPort>,
    inputs: Vec<InputPort>,
    inserted: Vec<(String, Event)>,
    delivered: Vec<Delivery>,
}

impl Notes<'_> {
    fn publish(&mut self, setup: &mut Setup<SimFabric>) -> Result<(), Error> {
        let rank = self.rank as usize;
        for out in &self.program.outputs {
            let port = setup.publish_event_output(out.name)?;
            let options = OutputOptions {
                max_buffered: out.max_buffered,
            };
            setup.map_output(port, out.maps[rank].clone(), out.indexing, options)?;
            self.outputs.push(port);
        }
        for input in &self.program.inputs {
            let port = setup.publish_event_input(input.name)?;
            let options = InputOptions {
                acceptable_latency: input.latency,
                max_buffered: input.max_buffered,
                order: input.order,
            };
            setup.map_input(port, input.maps[rank].clone(), input.indexing, options)?;
            self.inputs.push(port);
        }
        Ok(())
    }

    /// The events of one tick: of each id some, at times within the tick, in no order of ids.
    fn make(&mut self, tick: u64, runtime: &mut Runtime<SimFabric>) {
        for (out, &port) in self.program.outputs.iter().zip(&self.outputs) {
            let map = &out.maps[self.rank as usize];
            let mut events = Vec::new();
            for id in map.ranges().into_iter().flatten() {
                for spike in 0..draws(self.seed, out, id, tick) {
                    let part = unit(mix(&[self.seed, u64::from(id), tick, spike]));
                    let time = (tick as f64 + part) * self.program.tick;
                    events.push((mix(&[spike, u64::from(id)]), Event { time, id }));
                }
            }
            events.sort_by_key(|(order, _)| *order);
            for (_, event) in events {
                let id = spoken(out, map, event.id);
                runtime.insert_event(port, event.time, id);
                self.inserted.push((out.name.to_owned(), event));
            }
        }
    }

    fn pass_on(&mut self, outputs: &mut Outputs, input: usize, events: &[Event]) {
        let program = self.program;
        let now = match self.time {
            Some(now) => now,
            None if program.relays_to_the_end => 1e6,
            None => return,
        };
        for &(_, output) in program.relays.iter().filter(|(from, _)| *from == input) {
            let out = &program.outputs[output];
            let map = &out.maps[self.rank as usize];
            for event in events {
                let part = unit(mix(&[event.time.to_bits(), u64::from(event.id)]));
                // Every other event dies, so that a loop does not echo for ever.
                if part >= 0.5 || map.local(event.id).is_none() {
                    continue;
                }
                let event = Event {
                    time: now + part * program.tick,
                    id: event.id,
                };
                outputs.insert_event(self.outputs[output], event.time, spoken(out, map, event.id));
                self.inserted.push((out.name.to_owned(), event));
            }
        }
    }
}

impl Handler for Notes<'_> {
    fn events(&mut self, outputs: &mut Outputs, port: InputPort, events: &[Event]) {
        let index = self
            .inputs
            .iter()
            .position(|&known| known == port)
            .expect("a published port");
        let input = &self.program.inputs[index];
        let mut events = events.to_vec();
        if input.indexing == Indexing::Local {
            let globals = input.maps[self.rank as usize].globals();
            for event in &mut events {
                event.id = globals.global(event.id).expect("a mapped index");
            }
        }
        self.pass_on(outputs, index, &events);
        self.delivered.push(Delivery {
            port: input.name.to_owned(),
            at: self.time,
            events,
        });
    }
}

/// Counts stalls.
struct Count(Arc<AtomicU32>);

impl Observer for Count {
    fn stalled(&mut self, stall: &Stall) {
        assert!(!stall.to_string().is_empty());
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The id as the program speaks of it.
fn spoken(out: &Out, map: &IndexMap, id: u32) -> u32 {
    match out.indexing {
        Indexing::Global => id,
        Indexing::Local => map.local(id).expect("an own id"),
    }
}

/// How many events an id has in a tick; the same whichever rank has it.
fn draws(seed: u64, out: &Out, id: u32, tick: u64) -> u64 {
    let part = unit(mix(&[seed, u64::from(id), tick, out.name.len() as u64]));
    (out.rate + part) as u64
}

fn compute(fabric: &mut SimFabric, span: Nanos) {
    if span > Nanos(0) {
        let until = fabric.now() + span;
        while fabric.now() < until {
            fabric.pause(Pause::Block { watch: &[], until });
        }
    }
}

fn at(tick: u64, length: f64) -> f64 {
    tick as f64 * length
}

/// A number in [0, 1).
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Splits words up beyond recognition.
pub(crate) fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        let mut z = (hash ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 27;
        z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// `size` ids in blocks, one per rank.
pub(crate) fn blocks(size: u32, ranks: u32) -> Vec<IndexMap> {
    let cut = |rank: u32| u64::from(size) * u64::from(rank) / u64::from(ranks);
    (0..ranks)
        .map(|rank| {
            let (begin, end) = (cut(rank) as u32, cut(rank + 1) as u32);
            IndexMap::linear(begin, end - begin).expect("small ids")
        })
        .collect()
}

/// All ids on every rank.
pub(crate) fn everything(size: u32, ranks: u32) -> Vec<IndexMap> {
    vec![IndexMap::linear(0, size).expect("small ids"); ranks as usize]
}

/// A seeded subset of the ids on every rank, in a seeded order.
pub(crate) fn scattered(size: u32, ranks: u32, share: f64, seed: u64) -> Vec<IndexMap> {
    (0..u64::from(ranks))
        .map(|rank| {
            let key = |id: u32| mix(&[seed, rank, u64::from(id)]);
            let mut ids: Vec<u32> = (0..size).filter(|&id| unit(key(id)) < share).collect();
            ids.sort_by_key(|&id| key(id) >> 7);
            IndexMap::permutation(&ids).expect("each id once")
        })
        .collect()
}

/// The ids dealt out to the ranks like cards, in a seeded order.
pub(crate) fn dealt(size: u32, ranks: u32, seed: u64) -> Vec<IndexMap> {
    let mut ids: Vec<u32> = (0..size).collect();
    ids.sort_by_key(|&id| mix(&[seed, u64::from(id)]));
    (0..ranks)
        .map(|rank| {
            let own: Vec<u32> = ids
                .iter()
                .skip(rank as usize)
                .step_by(ranks as usize)
                .copied()
                .collect();
            IndexMap::permutation(&own).expect("each id once")
        })
        .collect()
}
