//! Makes the connections before they are needed.
//!
//! Many providers connect at the first operation, and only while both sides read their completion
//! queues; two that connect to each other at once may refuse one another. So the ranks greet each
//! other here, all together, and try again until the deadline. While they wait they learn
//! whether the completion queue's descriptor is woken by what the others write.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;
use transport_core::Rank;

use super::OfiError;
use super::endpoint::Endpoint;
use super::mail::{Inbox, Outbox};
use super::mailbox::Letter;

impl Endpoint {
    /// Makes and tries the connections with some peers; all ranks call it together, and whoever
    /// names a peer is named by it.
    ///
    /// # Errors
    /// [`OfiError::Late`] if a peer did not answer in time.
    pub(crate) fn warm(&mut self, peers: &[Rank], until: Instant) -> Result<(), OfiError> {
        self.warming = true;
        let mail_after = std::mem::replace(&mut self.mail.on, true);
        let met = self.greet(peers, until);
        self.warming = false;
        self.mail.on = mail_after;
        if let Err(Missing { rank, count }) = met {
            let cause = self.trouble.as_ref().map(|words| format!("; {words}"));
            return Err(OfiError::Late {
                provider: self.provider.clone(),
                rank,
                missing: count,
                cause: cause.unwrap_or_default(),
                ours: self.port.objects.address_in_words(),
            });
        }
        // What failed on the way was tried again and succeeded.
        self.trouble = None;
        Ok(())
    }

    fn greet(&mut self, peers: &[Rank], until: Instant) -> Result<(), Missing> {
        self.tell(peers, Letter::Hello);
        self.attend(peers, until, |inbox| inbox.hellos > 0 && inbox.welcomes > 0)?;
        self.try_to_sleep(peers, until)?;
        self.tell(peers, Letter::Enough);
        self.attend(peers, until, |inbox| inbox.enough && !inbox.reporting)
    }

    /// Asks the next of the peers to be woken, until that happened once.
    fn try_to_sleep(&mut self, peers: &[Rank], until: Instant) -> Result<(), Missing> {
        let above = |peer: &&Rank| **peer > self.rank;
        let next = peers.iter().filter(above).min();
        let Some(next) = next.or(peers.iter().min()).copied() else {
            return Ok(());
        };
        for _ in 0..WAKE_TRIES {
            if self.wait_fd.is_none() || self.wakes || next == self.rank {
                break;
            }
            let answers = self.mail.inn[next.index()].welcomes;
            self.tell(&[next], Letter::WakeMe);
            self.attend(&[next], until, |inbox| inbox.welcomes > answers)?;
        }
        Ok(())
    }

    fn tell(&mut self, peers: &[Rank], letter: Letter) {
        for peer in peers {
            self.mail.out[peer.index()].enqueue(letter, None);
        }
    }

    /// Waits until something is so of every peer and everything for it is sent.
    fn attend(
        &mut self,
        peers: &[Rank],
        until: Instant,
        is_so: impl Fn(&Inbox) -> bool,
    ) -> Result<(), Missing> {
        loop {
            let completed = self.complete();
            self.exchange_mail();
            let missing = |peer: &&Rank| {
                let (inn, out) = (&self.mail.inn[peer.index()], &self.mail.out[peer.index()]);
                !is_so(inn) || !Outbox::is_idle(out)
            };
            let count = peers.iter().filter(missing).count();
            let Some(rank) = peers.iter().find(missing).copied() else {
                return Ok(());
            };
            if Instant::now() >= until {
                return Err(Missing { rank, count });
            }
            if !completed {
                self.doze();
            }
        }
    }

    /// Sleeps a little on the descriptor, if there is one, and learns whether it was woken by what
    /// others wrote: nothing of this rank's was completed.
    fn doze(&mut self) {
        let Some(fd) = self.wait_fd.filter(|_| self.is_idle_at_last()) else {
            return std::thread::yield_now();
        };
        // SAFETY: the descriptor is the completion queue's, which is open as long as `self`.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        let span = Timespec::try_from(DOZE).expect("a short span");
        let ready = rustix::event::poll(&mut fds, Some(&span)).unwrap_or(0) > 0;
        let heard = self.heard();
        let completed = self.complete();
        self.exchange_mail();
        self.wakes |= ready && !completed && self.heard() > heard;
    }

    /// Whether this rank may sleep. The first leave is often refused since what was completed
    /// before is only forgotten then; and asking may take something in, which then wakes nobody.
    fn is_idle_at_last(&mut self) -> bool {
        for _ in 0..LEAVES {
            let leave = self.port.objects.may_sleep();
            if self.exchange_mail() || (!leave && self.complete()) {
                return false;
            }
            if leave {
                return true;
            }
        }
        false
    }

    /// How often others have greeted or answered.
    fn heard(&self) -> u64 {
        let others = (0..).zip(&self.mail.inn);
        let others = others.filter(|(peer, _)| *peer != self.rank.index());
        others.map(|(_, inbox)| inbox.hellos + inbox.welcomes).sum()
    }
}

/// Who did not come, and how many in all.
struct Missing {
    rank: Rank,
    count: usize,
}

/// How often a peer is asked to write while this rank sleeps.
const WAKE_TRIES: usize = 16;

/// How often the leave to sleep is asked for at a time.
const LEAVES: usize = 4;

/// One sleep of the greeting.
const DOZE: Duration = Duration::from_millis(2);
