//! Ranks that leave because of an error are lost to those that still wait: all report the error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use music_core::{
    Error, Ignore, IndexMap, Indexing, InputOptions, Job, OutputOptions, Setup, Silent,
};
use transport_core::{
    Arena, Capabilities, Counter, Driver, Fabric, Lost, Memory, Nanos, Offset, Op, Pause,
    PostError, Posted, Rank, Ticket, Topology,
};
use transport_sim::{Adversary, Link, Network, Sim, SimFabric};

/// Two ranks of A send to three ranks of B.
const FILE: &str = "[A]\nnp=2\nbinary=a\n[B]\nnp=3\nbinary=b\nA.out -> B.in [10]\n";
const RANKS: u32 = 5;

/// Nobody has left.
const NOBODY: u32 = u32::MAX;

/// A simulated fabric that must be closed, as real ones must: once a rank drops it, all others
/// learn at once that this rank is lost.
struct Fragile {
    inner: SimFabric,
    gone: Arc<AtomicU32>,
}

impl Fragile {
    fn check(&self) -> Result<(), Lost> {
        match self.gone.load(Ordering::SeqCst) {
            NOBODY => Ok(()),
            rank => Err(Lost { rank: Rank(rank) }),
        }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        let me = self.inner.rank().0;
        // Only the first to go is told of.
        let _ = self
            .gone
            .compare_exchange(NOBODY, me, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Memory for Fragile {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn topology(&self) -> &Topology {
        self.inner.topology()
    }

    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.inner.load(home, counter)
    }

    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.inner.words(home, at, words)
    }
}

impl Fabric for Fragile {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        self.check().map_err(PostError::Lost)?;
        self.inner.post(op)
    }

    fn progress(&mut self) -> Result<(), Lost> {
        self.check()?;
        self.inner.progress()
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        self.inner.finished(ticket)
    }

    fn pause(&mut self, pause: Pause<'_>) {
        self.inner.pause(pause);
    }

    fn heap(&mut self) -> &mut Arena {
        self.inner.heap()
    }

    fn node_counters(&mut self) -> &mut Arena {
        self.inner.node_counters()
    }

    fn network_counters(&mut self) -> &mut Arena {
        self.inner.network_counters()
    }
}

/// What is wrong in a job.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    /// The sender maps more than the file allows.
    Width,
    /// The receiver publishes its port and does not map it.
    Unmapped,
    /// One rank of A has another tick than the other.
    Tick,
    /// One rank has no heap left for its streams.
    Heap,
}

impl Mistake {
    /// What every rank says; the rank whose fault it is may leave its own name out.
    fn text(self) -> &'static str {
        match self {
            Self::Width => {
                "test.music:7: port A.out maps ids up to 12, but the connection A.out -> B.in is \
                 10 wide"
            }
            Self::Unmapped => "test.music:7: B does not map port in, which the file connects; ",
            Self::Tick => "application A: the tick differs between rank 0 and rank 1",
            Self::Heap => "2 streams need ",
        }
    }

    /// Joins and starts; yields the error.
    fn make(self, fabric: Fragile, job: &Arc<Job>) -> Error {
        let error = self.start(fabric, job);
        error.expect_err("every rank fails")
    }

    fn start(self, fabric: Fragile, job: &Arc<Job>) -> Result<(), Error> {
        let rank = fabric.rank();
        let application = job.application_of(rank.0).expect("a known rank");
        let tight = matches!(self, Self::Heap) && rank.0 + 1 == RANKS;
        let mut setup = Setup::new(
            Driver::new(fabric),
            Arc::clone(job),
            application,
            Box::new(Silent),
        )?;
        if tight {
            let (_, driver) = setup.communicator();
            let heap = driver.fabric_mut().heap();
            heap.alloc(heap.full(0).free - SPARE)?;
        }
        if application == 0 {
            let port = setup.publish_event_output("out")?;
            let wide = matches!(self, Self::Width);
            let map = IndexMap::linear(0, if wide { 12 } else { 10 }).expect("small ids");
            setup.map_output(port, map, Indexing::Global, OutputOptions::default())?;
        } else {
            let port = setup.publish_event_input("in")?;
            let map = IndexMap::linear(0, 10).expect("small ids");
            if !matches!(self, Self::Unmapped) {
                setup.map_input(port, map, Indexing::Global, InputOptions::default())?;
            }
        }
        let odd = matches!(self, Self::Tick) && rank == Rank(1);
        let tick = if odd { 0.002 } else { 0.001 };
        setup.start(tick, &mut Ignore).map(drop)
    }
}

/// Too little for a stream.
const SPARE: u64 = 256;

/// Errors of all ranks, by rank.
fn errors(mistake: Mistake, topology: Topology, adversary: Adversary, seed: u64) -> Vec<Error> {
    let job = Arc::new(Job::parse("test.music", FILE).expect("a good file"));
    let gone = Arc::new(AtomicU32::new(NOBODY));
    let sim = Sim::new(topology, Network::default(), seed)
        .adversary(adversary)
        .counters(1024)
        .heap_bytes(1 << 18);
    let body = |inner| {
        let gone = Arc::clone(&gone);
        mistake.make(Fragile { inner, gone }, &job)
    };
    sim.threads(body)
        .unwrap_or_else(|error| panic!("{mistake:?}, seed {seed}: {error}"))
}

/// Each rank in turn starts late and hears late from the others.
fn adversaries(seed: u64) -> Vec<Adversary> {
    let slow = |late: u32| {
        let mut adversary = Adversary::harsh(seed).straggling(Rank(late), Nanos::millis(50));
        let links = (0..RANKS).filter(|&from| from != late).map(|from| Link {
            from: Rank(from),
            to: Rank(late),
            extra: Nanos::millis(5),
        });
        adversary.slow_links.extend(links);
        adversary
    };
    let mut all = vec![Adversary::none(), Adversary::harsh(seed)];
    all.extend((0..RANKS).map(slow));
    all
}

fn nobody_is_lost(mistake: Mistake) {
    let topologies = [
        Topology::single_node(RANKS),
        Topology::from_nodes(&[0, 0, 1, 1, 2]),
    ];
    for (topology, seed) in topologies
        .iter()
        .flat_map(|one| (1..4).map(move |s| (one, s)))
    {
        for adversary in adversaries(seed) {
            let told = errors(mistake, topology.clone(), adversary.clone(), seed);
            assert_eq!(told.len(), RANKS as usize);
            for error in told {
                let text = error.to_string();
                let text = text.strip_prefix("B rank 2: ").unwrap_or(&text);
                assert!(text.starts_with(mistake.text()), "{text}: {adversary:?}");
            }
        }
    }
}

#[test]
fn a_width_that_does_not_fit_is_what_all_ranks_report() {
    nobody_is_lost(Mistake::Width);
}

#[test]
fn a_port_that_is_not_mapped_is_what_all_ranks_report() {
    nobody_is_lost(Mistake::Unmapped);
}

#[test]
fn ranks_that_differ_are_what_all_ranks_report() {
    nobody_is_lost(Mistake::Tick);
}

#[test]
fn a_heap_too_small_on_one_rank_is_what_all_ranks_report() {
    nobody_is_lost(Mistake::Heap);
}
