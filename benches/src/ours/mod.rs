//! Ours: a rank of a job with its communicator, and what is measured of it.

use barrier::{Algorithm, Barrier, Slots};
use collectives::Communicator;
use transport::AnyFabric;
use transport::bootstrap::Bootstrap;
use transport_core::{Counter, Deadline, Driver, Fabric, Memory, Nanos, Rank};

use crate::error::BenchError;
use crate::host;
use crate::measure::Subject;
use crate::options::Options;
use crate::record::Network;

mod add;
mod put;

pub use add::OurFetchAdd;
pub use put::OurPut;

/// A rank that has joined its job.
pub struct Joined {
    bootstrap: Bootstrap,
    driver: Driver<AnyFabric>,
    communicator: Communicator,
}

impl Joined {
    /// Joins the job of the environment, with the options' wait policy, pinned if they say so.
    ///
    /// # Errors
    /// [`BenchError`] if the ranks cannot meet.
    pub fn join(options: &Options) -> Result<Self, BenchError> {
        let mut bootstrap = Bootstrap::from_env().map_err(while_doing("joining"))?;
        if options.pin {
            host::pin(bootstrap.rank().0).map_err(while_doing("pinning"))?;
        }
        let fabric = transport::Options::from_environment()
            .and_then(|options| transport::open(&mut bootstrap, &options))
            .map_err(while_doing("opening the fabric"))?;
        let mates = fabric.topology().mates(fabric.rank()).len();
        let mates = u32::try_from(mates).expect("ranks are numbered by u32");
        let policy = options.policy.suited(mates, &fabric.capabilities());
        let mut driver = Driver::with_policy(fabric, policy);
        let communicator =
            Communicator::world(&mut driver).map_err(while_doing("making the communicator"))?;
        Ok(Self {
            bootstrap,
            driver,
            communicator,
        })
    }

    /// Leaves in order.
    ///
    /// # Errors
    /// [`BenchError`] if a rank or the launcher is gone.
    pub fn leave(mut self) -> Result<(), BenchError> {
        self.communicator
            .barrier(&mut self.driver, PATIENCE)
            .map_err(while_doing("leaving"))?;
        self.driver.into_fabric().close();
        self.bootstrap.finalize().map_err(while_doing("leaving"))
    }

    /// What connects the ranks, as the fabric says it.
    pub fn network(&self) -> Network {
        let fabric = self.driver.fabric();
        let topology = fabric.topology();
        let last = Rank(topology.size().saturating_sub(1));
        let library = fabric.network().map(str::to_owned);
        let name = library.as_deref().and_then(|line| line.split(' ').next());
        Network {
            fabric: name.unwrap_or("shm").into(),
            nodes: topology.node(last) + 1,
            library,
        }
    }

    /// Takes the first free counter, the same on every rank, in the domain that connects two ranks.
    fn counter_between(&mut self, one: Rank, other: Rank) -> Result<Counter, BenchError> {
        let fabric = self.driver.fabric_mut();
        let topology = fabric.topology();
        let are_mates = topology.node(one) == topology.node(other);
        let full = while_doing("taking a counter");
        let node = fabric.node_counters().alloc(1).map_err(&full)?;
        let network = fabric.network_counters().alloc(1).map_err(&full)?;
        let slot = |at| u32::try_from(at).expect("counters are numbered by u32");
        Ok(if are_mates {
            Counter::Node(slot(node))
        } else {
            Counter::Network(slot(network))
        })
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        let mine: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut all = vec![0; mine.len() * self.communicator.size() as usize];
        self.communicator
            .allgather(&mut self.driver, &mine, &mut all, PATIENCE)
            .map_err(while_doing("sharing figures"))?;
        let (words, _) = all.as_chunks();
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }
}

/// Our barrier as a subject: the communicator's, or another algorithm by its name.
pub struct OurBarrier {
    joined: Joined,
    other: Option<Barrier>,
    name: String,
}

impl OurBarrier {
    /// The barrier that the options ask for.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if there is no such algorithm.
    pub fn new(mut joined: Joined, options: &Options) -> Result<Self, BenchError> {
        let selected = joined.communicator.barrier_algorithm();
        let other = match &options.algorithm {
            None => None,
            Some(name) => Some(name.parse().map_err(|error: barrier::UnknownAlgorithm| {
                BenchError::Usage(error.to_string())
            })?),
        };
        let name = other.unwrap_or(selected).to_string();
        let other = other
            .map(|algorithm| barrier(&mut joined, algorithm))
            .transpose()?;
        Ok(Self {
            joined,
            other,
            name,
        })
    }

    /// The algorithm's name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// What connects the ranks.
    pub fn network(&self) -> Network {
        self.joined.network()
    }

    /// Leaves in order.
    ///
    /// # Errors
    /// As [`Joined::leave`].
    pub fn leave(self) -> Result<(), BenchError> {
        self.joined.leave()
    }
}

impl Subject for OurBarrier {
    fn rank(&self) -> u32 {
        self.joined.communicator.index()
    }

    fn ranks(&self) -> u32 {
        self.joined.communicator.size()
    }

    #[inline]
    fn call(&mut self) -> Result<(), BenchError> {
        let Joined {
            driver,
            communicator,
            ..
        } = &mut self.joined;
        match &mut self.other {
            None => communicator
                .barrier(driver, PATIENCE)
                .map_err(while_doing("barrier")),
            Some(other) => driver
                .run(other.next(), PATIENCE)
                .map_err(while_doing("barrier")),
        }
    }

    fn verify(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        self.joined.share(words)
    }
}

/// Our allgather as a subject; every call carries other bytes.
pub struct OurAllgather {
    joined: Joined,
    mine: Vec<u8>,
    all: Vec<u8>,
    calls: u8,
}

impl OurAllgather {
    /// An allgather of so many bytes from each rank.
    pub fn new(joined: Joined, bytes: usize) -> Self {
        let ranks = joined.communicator.size() as usize;
        Self {
            joined,
            mine: vec![0; bytes],
            all: vec![0; bytes * ranks],
            calls: 0,
        }
    }

    /// What connects the ranks.
    pub fn network(&self) -> Network {
        self.joined.network()
    }

    /// Leaves in order.
    ///
    /// # Errors
    /// As [`Joined::leave`].
    pub fn leave(self) -> Result<(), BenchError> {
        self.joined.leave()
    }

    /// What a rank writes into its first bytes in the present call.
    fn mark(&self, rank: usize) -> u8 {
        self.calls.wrapping_add((rank & 0xff) as u8)
    }
}

/// Bytes of a block that change with every call.
const MARKED_BYTES: usize = 8;

impl Subject for OurAllgather {
    fn rank(&self) -> u32 {
        self.joined.communicator.index()
    }

    fn ranks(&self) -> u32 {
        self.joined.communicator.size()
    }

    fn call(&mut self) -> Result<(), BenchError> {
        self.calls = self.calls.wrapping_add(1);
        let mark = self.mark(self.joined.communicator.index() as usize);
        let marked = self.mine.len().min(MARKED_BYTES);
        self.mine[..marked].fill(mark);
        let Joined {
            driver,
            communicator,
            ..
        } = &mut self.joined;
        communicator
            .allgather(driver, &self.mine, &mut self.all, PATIENCE)
            .map_err(while_doing("allgather"))
    }

    fn verify(&mut self) -> Result<(), BenchError> {
        let (bytes, marked) = (self.mine.len(), self.mine.len().min(MARKED_BYTES));
        let blocks = self.all.chunks_exact(bytes.max(1));
        for (rank, block) in blocks.enumerate() {
            let right = block[..marked].iter().all(|&byte| byte == self.mark(rank))
                && block[marked..].iter().all(|&byte| byte == 0);
            if !right {
                let what = format!(
                    "the block of rank {rank} is wrong after {} calls",
                    self.calls
                );
                return Err(BenchError::Wrong(what));
            }
        }
        Ok(())
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        self.joined.share(words)
    }
}

/// A bench that waits longer than this for one call has lost a rank.
const PATIENCE: Deadline = Deadline::Within(Nanos::seconds(60));

/// A barrier beside the communicator's own, on counters that nobody has used: all ranks take the
/// first free ones, which are the same for all and show 0.
fn barrier(joined: &mut Joined, algorithm: Algorithm) -> Result<Barrier, BenchError> {
    let group = joined.communicator.group();
    let fabric = joined.driver.fabric_mut();
    if !algorithm.runs_on(group, &fabric.capabilities()) {
        return Err(BenchError::Usage(format!(
            "{algorithm} needs atomics that this fabric lacks"
        )));
    }
    let need = algorithm.counters(group);
    let full = while_doing("taking counters");
    let node = fabric
        .node_counters()
        .alloc(need.node.into())
        .map_err(&full)?;
    let network = fabric
        .network_counters()
        .alloc(need.network.into())
        .map_err(&full)?;
    let slots = |counter: fn(u32) -> Counter, at: u64| Slots {
        first: counter(u32::try_from(at).expect("counters are numbered by u32")),
        base: 0,
    };
    let (node, network) = (slots(Counter::Node, node), slots(Counter::Network, network));
    Ok(Barrier::new(algorithm, group, node, network))
}

fn while_doing<E: std::fmt::Display>(doing: &str) -> impl Fn(E) -> BenchError {
    move |error| BenchError::job(doing, error)
}
