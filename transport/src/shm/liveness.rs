//! Who of the node-mates is gone: the kernel says so through a descriptor of each process.
//!
//! A process descriptor becomes readable when its process has ended, however it ended, and never
//! while it computes, is stopped or sits in a debugger. All of them hang on one `epoll`, so a look
//! costs one system call whatever the number of mates. A rank that has left in order said so in its
//! seat before it ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::event::epoll;
use transport_core::{Fate, Lost, Rank};

use super::futex::timespec;
use super::segment::Segment;

/// Watches the processes of the mates.
pub(crate) struct Liveness {
    epoll: OwnedFd,
    processes: Vec<Option<OwnedFd>>,
}

impl Liveness {
    /// Watches the given processes; `None` for this rank itself.
    pub(crate) fn watch(processes: Vec<Option<OwnedFd>>) -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (place, process) in (0..).zip(&processes) {
            if let Some(process) = process {
                let data = epoll::EventData::new_u64(place);
                epoll::add(&epoll, process, data, epoll::EventFlags::IN)?;
            }
        }
        Ok(Self { epoll, processes })
    }

    /// Readable when a process may have ended.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Another watch over the same processes, for another thread.
    pub(super) fn another(&self) -> std::io::Result<Self> {
        let again =
            |process: &Option<OwnedFd>| process.as_ref().map(OwnedFd::try_clone).transpose();
        let processes: std::io::Result<_> = self.processes.iter().map(again).collect();
        Ok(Self::watch(processes?)?)
    }

    /// Declares those lost that ended without leaving. Makes a system call.
    #[cold]
    pub(crate) fn look(&mut self, segment: &Segment) {
        loop {
            let mut events = [EMPTY; 16];
            let now = timespec(transport_core::Nanos(0));
            // It fails only if interrupted: then the next look will do.
            let count = match epoll::wait(&self.epoll, &mut events[..], Some(&now)) {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            for event in &events[..count] {
                self.ended(event.data.u64(), segment);
            }
        }
    }

    fn ended(&mut self, place: u64, segment: &Segment) {
        let place = usize::try_from(place).expect("places were numbered by us");
        if let Some(process) = self.processes[place].take() {
            // Closing would do if no child of a fork held the descriptor too.
            let _ = epoll::delete(&self.epoll, &process);
        }
        // Acquire: pairs with `leave`, though the end of a process orders more than that.
        if segment.seat(place).left.load(Ordering::Acquire) == 0 {
            declare_lost(segment, place);
        }
    }
}

/// Tells the mates that a rank leaves in order.
pub(crate) fn leave(segment: &Segment, place: usize) {
    // Release: whoever sees that we left sees all we did before.
    segment.seat(place).left.store(1, Ordering::Release);
}

/// Tells all ranks that one is lost. The first loss stands, so all name the same rank.
#[cold]
pub(super) fn declare_lost(segment: &Segment, place: usize) {
    // Release: pairs with the Acquire in `fate`; what the rank wrote before it ended is there.
    segment.seat(place).lost.store(1, Ordering::Release);
    declare_rank_lost(segment, segment.name(place));
}

/// As [`declare_lost`], by the rank's number in the job.
#[cold]
pub(crate) fn declare_rank_lost(segment: &Segment, rank: Rank) {
    let number = rank.0.saturating_add(1);
    let lost = &segment.header().lost;
    // Relaxed: the number is all there is to know.
    let _ = lost.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
}

/// The rank that was lost first, if any.
#[inline]
pub(crate) fn lost(segment: &Segment) -> Result<(), Lost> {
    match segment.header().lost.load(Ordering::Relaxed) {
        0 => Ok(()),
        number => Err(Lost {
            rank: Rank(number - 1),
        }),
    }
}

/// What is known of a rank of this node.
pub(crate) fn fate(segment: &Segment, place: usize) -> Fate {
    if mate_left(segment, place) {
        return Fate::Left;
    }
    // Acquire: pairs with the Release in `declare_lost`.
    match segment.seat(place).lost.load(Ordering::Acquire) {
        0 => Fate::Present,
        _ => Fate::Lost,
    }
}

/// Whether a rank of this node has left in order.
pub(crate) fn mate_left(segment: &Segment, place: usize) -> bool {
    // Acquire: pairs with `leave`.
    segment.seat(place).left.load(Ordering::Acquire) != 0
}

/// Tells the ranks of this node that one of another node has left in order.
pub(crate) fn note_left(segment: &Segment, rank: Rank) {
    if let Some(word) = segment.header().left.get(rank.index() / 64) {
        // Relaxed: the bit is all there is to know.
        word.fetch_or(1 << (rank.index() % 64), Ordering::Relaxed);
    }
}

/// Whether a rank of another node has left in order, as far as this node knows.
#[inline]
pub(crate) fn has_left(segment: &Segment, rank: Rank) -> bool {
    let word = segment.header().left.get(rank.index() / 64);
    word.is_some_and(|word| word.load(Ordering::Relaxed) >> (rank.index() % 64) & 1 == 1)
}

const EMPTY: epoll::Event = epoll::Event {
    flags: epoll::EventFlags::empty(),
    data: epoll::EventData::new_u64(0),
};
