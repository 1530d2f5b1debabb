//! What can go wrong, or just otherwise than expected, on a simulated fabric.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use transport_core::{Atomics, Nanos, Rank};

/// Everything the contract of a fabric allows and protocols must live with, each in its own field.
/// The default does nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adversary {
    /// What crosses the network becomes visible only when its target calls `progress`, and tickets
    /// finish only when their poster does. Shared memory of a node needs nobody's help.
    pub manual_progress: bool,
    /// Every operation is delayed by a seeded time that lets later ones overtake it, and some words
    /// of a put arrive long before the others; only a put's signal stays behind its bytes.
    pub unordered: bool,
    /// The source of a put is read just before its ticket finishes, and no ticket finishes at once.
    pub late_reads: bool,
    /// The largest seeded extra delay of each operation and of each entry into a protocol.
    pub noise: Nanos,
    /// Interrupts ranks that were waiting.
    pub interruption: Option<Interruption>,
    /// Ranks that enter every round this much later (with threads: that start later).
    pub stragglers: Vec<(Rank, Nanos)>,
    /// Links with an extra delay.
    pub slow_links: Vec<Link>,
    /// Links, each from one rank to another, on which what is posted within ten latencies arrives
    /// in reverse.
    pub reversed_links: Vec<(Rank, Rank)>,
    /// Operations of one rank that may be in flight; one more is answered by `Full`.
    pub queue: Option<usize>,
    /// Who carries out adds on network counters.
    pub network_atomics: Atomics,
    /// Who carries out adds on node counters.
    pub node_atomics: Atomics,
    /// This rank enters (with threads: starts) only when nothing is in flight and all others wait.
    pub withhold: Option<Rank>,
    /// Ranks that stop for ever at a time; the others learn of it after `Network::detection`.
    pub lose: Vec<(Rank, Nanos)>,
    /// Ranks that stop for ever instead of posting their operation of this number, from 0.
    pub lose_at_post: Vec<(Rank, u64)>,
}

/// The way from one rank to another, and how much longer it takes than others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Who posts.
    pub from: Rank,
    /// Who is reached.
    pub to: Rank,
    /// How much later.
    pub extra: Nanos,
}

/// What the operating system does to a rank: when a wait of it ends, it goes on later, once in so
/// many times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interruption {
    /// Waits for each that ends late; seeded.
    pub one_in: u32,
    /// How much later.
    pub lasting: Nanos,
}

impl Default for Adversary {
    fn default() -> Self {
        Self {
            manual_progress: false,
            unordered: false,
            late_reads: false,
            noise: Nanos(0),
            interruption: None,
            stragglers: Vec::new(),
            slow_links: Vec::new(),
            reversed_links: Vec::new(),
            queue: None,
            network_atomics: Atomics::Native,
            node_atomics: Atomics::Native,
            withhold: None,
            lose: Vec::new(),
            lose_at_post: Vec::new(),
        }
    }
}

impl Adversary {
    /// Nothing out of the ordinary.
    pub fn none() -> Self {
        Self::default()
    }

    /// Manual progress with emulated network atomics, no order, late reads, noise of a seeded
    /// strength and a queue of one to four operations, all together.
    pub fn harsh(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            noise: Nanos(random.next_u64() % 3_000 + 1),
            queue: Some((random.next_u32() % 4 + 1) as usize),
            unordered: true,
            late_reads: true,
            ..Self::manual()
        }
    }

    /// Manual progress alone, with network atomics emulated by the target.
    pub fn manual() -> Self {
        Self {
            manual_progress: true,
            network_atomics: Atomics::Emulated,
            ..Self::default()
        }
    }

    /// No order alone.
    pub fn unordered() -> Self {
        Self {
            unordered: true,
            ..Self::default()
        }
    }

    /// The adversaries every protocol must pass, apart and together, with a name for messages.
    pub fn mandatory(seed: u64) -> Vec<(&'static str, Self)> {
        let late = Self {
            late_reads: true,
            ..Self::default()
        };
        let narrow = Self {
            queue: Some(1),
            ..Self::default()
        };
        vec![
            ("none", Self::none()),
            ("manual progress", Self::manual()),
            ("unordered", Self::unordered()),
            ("late reads", late),
            ("a queue of one", narrow),
            ("harsh", Self::harsh(seed)),
        ]
    }

    /// The same with a rank that enters when all is quiet.
    pub fn withholding(self, rank: Rank) -> Self {
        Self {
            withhold: Some(rank),
            ..self
        }
    }

    /// The same with a rank that is lost at a time.
    pub fn losing(mut self, rank: Rank, at: Nanos) -> Self {
        self.lose.push((rank, at));
        self
    }

    /// The same with a rank that is lost instead of posting its operation of this number, from 0.
    pub fn losing_at_post(mut self, rank: Rank, number: u64) -> Self {
        self.lose_at_post.push((rank, number));
        self
    }

    pub(crate) fn ends_at_post(&self, rank: Rank, number: u64) -> bool {
        self.lose_at_post.contains(&(rank, number))
    }

    /// The same with a rank that is late by so much.
    pub fn straggling(mut self, rank: Rank, late: Nanos) -> Self {
        self.stragglers.push((rank, late));
        self
    }

    pub(crate) fn entry_delay(&self, rank: Rank) -> Nanos {
        let late = self.stragglers.iter().filter(|(who, _)| *who == rank);
        late.fold(Nanos(0), |sum, (_, late)| sum + *late)
    }

    pub(crate) fn link_delay(&self, from: Rank, to: Rank, depart: Nanos, window: Nanos) -> Nanos {
        let slow = self.slow_links.iter();
        let slow = slow.filter(|link| link.from == from && link.to == to);
        let slow = slow.fold(Nanos(0), |sum, link| sum + link.extra);
        if !self.reversed_links.contains(&(from, to)) || window.0 == 0 {
            return slow;
        }
        // Twice what is left of the window: of two operations in it, the later one arrives first.
        slow + Nanos((window.0 - depart.0 % window.0).saturating_mul(2))
    }
}
