//! Endpoints of one process that reach each other over real providers on the loopback address.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use transport_core::{PostError, Posted, Rank, Ticket};

use super::forced::Forced;
use super::mail::{copy_from, copy_to};
use super::signal::SignalMode;
use super::{Choice, Endpoint, How, OfiError, Provider, Raise, Request};
use crate::shm::layout::{Domain, Geometry, Layout};
use crate::shm::segment::Segment;

/// Sleeping, dying, and what is told before anything is sent.
mod life;
mod over_double;

const GEOMETRY: Geometry = Geometry {
    ranks: 1,
    counters: 8,
    heap_bytes: 1 << 20,
};

/// Five times what the slowest machine that was seen needs.
const PATIENCE: Duration = Duration::from_secs(60);

fn layout() -> Layout {
    GEOMETRY.layout().unwrap()
}

fn segment() -> Arc<Segment> {
    let file = Segment::create(layout()).unwrap();
    Arc::new(Segment::map(&file, GEOMETRY).unwrap().unwrap())
}

fn choice(provider: &str, forced: &str) -> Choice {
    Choice {
        forced: Forced::from_text(forced).unwrap(),
        ..Choice::local(Provider::from_name(provider).unwrap())
    }
}

/// Whether a provider is there; says so if it is not.
fn is_there(provider: &str) -> bool {
    match Endpoint::open(&choice(provider, ""), Rank(0), 1, &segment()) {
        Ok(endpoint) => {
            endpoint.close();
            true
        }
        Err(error @ (OfiError::Library(_) | OfiError::NotOffered { .. })) => {
            eprintln!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// A rank with its segment.
struct Player {
    rank: u32,
    size: u32,
    endpoint: Endpoint,
    segment: Arc<Segment>,
    meet: Arc<Barrier>,
}

impl Player {
    fn line(slot: usize) -> usize {
        layout().line(0, Domain::Network, slot)
    }

    fn heap(at: u64) -> usize {
        layout().heap(0, at, 0)
    }

    fn counter(&self, slot: usize) -> u64 {
        self.segment.line_at(Self::line(slot)).unwrap().load()
    }

    fn post(&mut self, request: Request) -> Posted {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.endpoint.post(request) {
                Ok(posted) => return posted,
                Err(PostError::Full) => {
                    self.endpoint.progress().unwrap();
                    assert!(Instant::now() < until, "full for ever: {:?}", self.endpoint);
                }
                Err(error) => panic!("{error}: {:?}", self.endpoint.trouble),
            }
        }
    }

    fn finish(&mut self, posted: Posted) -> u64 {
        match posted {
            Posted::Finished(value) => value,
            Posted::InFlight(ticket) => {
                let mut value = None;
                self.until("a ticket", |player| {
                    value = player.endpoint.finished(ticket);
                    value.is_some()
                });
                value.unwrap()
            }
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            self.endpoint
                .progress()
                .unwrap_or_else(|lost| panic!("{lost}: {:?}", self.endpoint.trouble));
            assert!(
                Instant::now() < until,
                "rank {} waited in vain for {what}: {:?}",
                self.rank,
                self.endpoint
            );
            std::thread::yield_now();
        }
    }

    /// Fewer bytes of what is sent in lines of 56: each few of them take both ranks a turn on the
    /// processor, and a machine that is busy with other things gives turns sparingly.
    fn within_reason(&self, amount: usize) -> usize {
        match self.endpoint.signal_mode() {
            SignalMode::Mailbox => amount / 10,
            _ => amount,
        }
    }

    /// All ranks meet, and take the mail of the others in until all have come.
    fn meet(&mut self, slot: usize, epoch: u64) {
        let own = self.rank;
        for to in (0..self.size).filter(|to| *to != own) {
            let raise = Raise {
                line: Self::line(slot),
                how: How::Add(1),
            };
            let to = Rank(to);
            let posted = self.post(Request::Raise { to, raise });
            self.finish(posted);
        }
        let all = epoch * u64::from(self.size - 1);
        self.until("the others", |player| player.counter(slot) >= all);
    }
}

/// Opens as many endpoints in threads of their own, connects them, and lets them play.
fn play(provider: &str, forced: &str, size: u32, part: impl Fn(&mut Player) + Sync) {
    let cards = Mutex::new(vec![Vec::new(); size as usize]);
    let meet = Arc::new(Barrier::new(size as usize));
    std::thread::scope(|scope| {
        for rank in 0..size {
            let (cards, meet, part) = (&cards, &meet, &part);
            scope.spawn(move || {
                let segment = segment();
                let choice = choice(provider, forced);
                let mut endpoint = Endpoint::open(&choice, Rank(rank), size, &segment).unwrap();
                cards.lock().unwrap()[rank as usize] = endpoint.card();
                meet.wait();
                let cards = cards.lock().unwrap().clone();
                endpoint.connect(cards).unwrap();
                let peers: Vec<Rank> = (0..size).map(Rank).collect();
                endpoint.warm(&peers, Instant::now() + PATIENCE).unwrap();
                let meet = Arc::clone(meet);
                let mut player = Player {
                    rank,
                    size,
                    endpoint,
                    segment,
                    meet,
                };
                part(&mut player);
                player.meet(7, 1);
                player.meet.wait();
                player.endpoint.close();
            });
        }
    });
}

fn bytes_of(seed: u64, count: usize) -> Vec<u8> {
    (0..count as u64)
        .map(|at| (seed * 31 + at * 7) as u8)
        .collect()
}

/// Each rank puts into the next one's heap, with a signal of its own for each put: when the signal
/// is there, the bytes are.
fn puts_are_behind_their_signals(player: &mut Player) {
    let to = Rank((player.rank + 1) % player.size);
    let before = u64::from((player.rank + player.size - 1) % player.size);
    let [long, longer] = [200_000, 300_000].map(|bytes| player.within_reason(bytes));
    for (number, bytes) in [1, 8, 56, 57, 64, 4096, 5000, long, 8, longer]
        .into_iter()
        .enumerate()
    {
        let number = number as u64 + 1;
        let source = bytes_of(number + u64::from(player.rank), bytes);
        copy_to(&player.segment, Player::heap(0) as u64, &source).unwrap();
        let posted = player.post(Request::Write {
            from: Player::heap(0),
            to,
            at: Player::heap(512 << 10),
            bytes,
            raise: Some(Raise {
                line: Player::line(0),
                how: How::Set(number),
            }),
        });
        player.until("bytes", |player| player.counter(0) >= number);
        let mut came = vec![0; bytes];
        copy_from(&player.segment, Player::heap(512 << 10), &mut came);
        assert!(
            came == bytes_of(number + before, bytes),
            "put {number} of {bytes} bytes"
        );
        player.finish(posted);
        player.meet(1, number);
    }
}

/// All ranks add to a counter of rank 0 and get each value before once.
fn sums_are_exact(player: &mut Player) {
    const ADDS: u64 = 50;
    for _ in 0..ADDS {
        let posted = player.post(Request::FetchAdd {
            to: Rank(0),
            line: Player::line(2),
            amount: 1,
        });
        let before = player.finish(posted);
        let seen = player.post(Request::FetchAdd {
            to: Rank(0),
            line: Player::line(3),
            amount: 1 << (8 * (before % 4)),
        });
        player.finish(seen);
    }
    player.meet(4, 1);
    if player.rank == 0 {
        let all = ADDS * u64::from(player.size);
        assert_eq!(player.counter(2), all);
        let each = all / 4 + u64::from(!all.is_multiple_of(4));
        let bytes = player.counter(3).to_le_bytes();
        assert!(
            bytes[..4]
                .iter()
                .all(|count| u64::from(*count).abs_diff(each) <= 1),
            "{bytes:?}"
        );
    }
    player.meet(4, 2);
}

/// Adds behind bytes: the bytes are there when the sum is.
fn adds_are_behind_their_bytes(player: &mut Player) {
    let to = Rank((player.rank + 1) % player.size);
    for round in 1..=20 {
        let bytes = 3000;
        let source = bytes_of(round, bytes);
        copy_to(&player.segment, Player::heap(0) as u64, &source).unwrap();
        let posted = player.post(Request::Write {
            from: Player::heap(0),
            to,
            at: Player::heap(512 << 10),
            bytes,
            raise: Some(Raise {
                line: Player::line(5),
                how: How::Add(1),
            }),
        });
        player.until("a sum", |player| player.counter(5) >= round);
        let mut came = vec![0; bytes];
        copy_from(&player.segment, Player::heap(512 << 10), &mut came);
        assert!(came == source, "round {round}");
        player.finish(posted);
        player.meet(1, round + 10);
    }
}

/// More puts than there is room for: `Full` is answered, nothing is lost.
fn a_flood_is_held_back(player: &mut Player) {
    let puts = player.within_reason(2000) as u64;
    let to = Rank((player.rank + 1) % player.size);
    let (mut full, mut tickets): (u64, Vec<Ticket>) = (0, Vec::new());
    let until = Instant::now() + PATIENCE;
    for number in 0..puts {
        let request = Request::Write {
            from: Player::heap(0),
            to,
            at: Player::heap(4096 * (number % 64)),
            bytes: 1024,
            raise: Some(Raise {
                line: Player::line(6),
                how: How::Add(1),
            }),
        };
        loop {
            match player.endpoint.post(request) {
                Ok(Posted::InFlight(ticket)) => tickets.push(ticket),
                Ok(Posted::Finished(_)) => {}
                Err(PostError::Full) => {
                    full += 1;
                    player.endpoint.progress().unwrap();
                    assert!(Instant::now() < until, "full for ever");
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            break;
        }
    }
    assert!(full > 0, "there was room for everything");
    for ticket in tickets {
        player.finish(Posted::InFlight(ticket));
    }
    player.until("the flood", |player| player.counter(6) >= puts);
    assert_eq!(player.counter(6), puts);
}

fn everything(provider: &str, forced: &str, size: u32) {
    play(provider, forced, size, |player| {
        puts_are_behind_their_signals(player);
        sums_are_exact(player);
        adds_are_behind_their_bytes(player);
        a_flood_is_held_back(player);
    });
}

fn over(provider: &str, forced: &[&str]) {
    if is_there(provider) {
        for forced in forced {
            eprintln!("{provider} {forced}");
            everything(provider, forced, 2);
        }
    }
}

#[test]
fn everything_works_as_probed_over_tcp_rxm() {
    over("tcp", &[""]);
}

#[test]
fn everything_works_with_completions_over_tcp_rxm() {
    over(
        "tcp",
        &["signal=completion", "signal=completion,atomics=none"],
    );
}

#[test]
fn everything_works_by_mail_over_tcp_rxm() {
    over("tcp", &["signal=mailbox"]);
}

#[test]
fn everything_works_with_served_atomics_over_tcp_rxm() {
    over("tcp", &["atomics=none"]);
}

#[test]
fn everything_works_however_memory_is_addressed_over_tcp_rxm() {
    over("tcp", &["mr=basic", "mr=scalable", "wait=none"]);
}

#[test]
fn three_ranks_work_over_tcp_rxm() {
    if is_there("tcp") {
        everything("tcp", "", 3);
        everything("tcp", "signal=mailbox", 3);
    }
}

#[test]
fn everything_works_over_bare_tcp() {
    over("tcp-rdm", &["", "signal=mailbox"]);
}

#[test]
fn everything_works_over_sockets() {
    over("sockets", &["", "signal=fence", "signal=mailbox"]);
}

/// The provider of 2.5 crashes when two endpoints of one process write to each other.
#[test]
fn everything_works_over_shm() {
    if is_of_libfabric_2() {
        return eprintln!("skipped: shm of libfabric 2 needs a process for each endpoint");
    }
    over("shm", &["", "signal=mailbox"]);
}

/// That of 1.17 crashes under repeated fetch-adds.
#[test]
fn everything_works_over_rxd() {
    if is_of_libfabric_2() {
        over("udp", &["", "signal=mailbox"]);
    } else {
        over("udp", &["atomics=none", "signal=mailbox"]);
    }
}

fn is_of_libfabric_2() -> bool {
    super::library_version().is_some_and(|version| version.starts_with("2."))
}
