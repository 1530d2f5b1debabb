//! How to pass the time of a wait: spin while that succeeds, then yield while yields are quick,
//! then block.
//!
//! No fixed choice wins (`docs/benchmarks.md`): spinning steals the processor of the rank that is
//! waited for when ranks outnumber processors, a yield hands the processor to a stranger when the
//! machine is shared, and blocking costs a wake-up when it is not. So the waiter learns from its
//! own last waits. It has no clock and makes no system call: the driver tells it the time.

use crate::{Capabilities, Nanos};

/// Thresholds of a [`Waiter`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitPolicy {
    /// Most turns spun before the first yield; 0 never spins.
    pub spins_max: u32,
    /// Fewest turns spun after failures, so that success can be noticed again.
    pub spins_min: u32,
    /// Yields before blocking.
    pub yields: u32,
    /// A yield that takes longer has given the processor to a stranger.
    pub slow_yield: Nanos,
    /// Most waits for which yields stay banned after a slow one.
    pub ban_max: u32,
}

impl WaitPolicy {
    /// For `ranks` waiting ranks on `processors` processors.
    pub const fn adaptive(ranks: u32, processors: u32) -> Self {
        let spins_max = if ranks <= processors { 4_000 } else { 0 };
        Self {
            spins_max,
            spins_min: if spins_max == 0 { 0 } else { 16 },
            yields: 24,
            slow_yield: Nanos::micros(400),
            ban_max: 256,
        }
    }

    /// For a rank with `mates` ranks on its node, itself included, on a fabric that can do this.
    ///
    /// Where a network must be driven by calls, a turn of a wait is work and not only waiting, and
    /// a sleep takes several system calls: so such a rank yields for longer before it sleeps.
    pub const fn suited(mates: u32, capabilities: &Capabilities) -> Self {
        let policy = Self::adaptive(mates, capabilities.processors);
        if capabilities.autonomous {
            return policy;
        }
        Self {
            yields: DRIVEN_YIELDS,
            ..policy
        }
    }

    /// Spins for ever: for measurements on a machine of one's own.
    pub const fn spin() -> Self {
        Self {
            spins_max: u32::MAX,
            spins_min: u32::MAX,
            yields: 0,
            slow_yield: Nanos(u64::MAX),
            ban_max: 0,
        }
    }

    /// Yields for ever.
    pub const fn yields() -> Self {
        Self {
            spins_max: 0,
            spins_min: 0,
            yields: u32::MAX,
            slow_yield: Nanos(u64::MAX),
            ban_max: 0,
        }
    }

    /// Blocks at once.
    pub const fn block() -> Self {
        Self {
            spins_max: 0,
            spins_min: 0,
            yields: 0,
            slow_yield: Nanos(0),
            ban_max: 0,
        }
    }
}

/// Yields before sleeping where the network must be driven.
const DRIVEN_YIELDS: u32 = 150;

/// What to do in the next turn of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Spin,
    Yield,
    Block,
}

/// Learns over the waits of one rank; one wait is `begin`, any number of turns, `end`.
#[derive(Clone, Debug)]
pub struct Waiter {
    policy: WaitPolicy,
    spin_budget: u32,
    banned_waits: u32,
    next_ban: u32,
    spins: u32,
    yields: u32,
    yielded_at: Option<Nanos>,
}

impl Waiter {
    /// A waiter without experience.
    pub const fn new(policy: WaitPolicy) -> Self {
        Self {
            policy,
            spin_budget: policy.spins_max,
            banned_waits: 0,
            next_ban: 8,
            spins: 0,
            yields: 0,
            yielded_at: None,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.spins = 0;
        self.yields = 0;
        self.yielded_at = None;
    }

    /// Whether the next turn needs to know the time: only around yields, so that a spin costs no
    /// clock read.
    pub(crate) fn needs_time(&self) -> bool {
        self.spins >= self.spin_budget
    }

    pub(crate) fn turn(&mut self, now: Nanos) -> Turn {
        if self.spins < self.spin_budget {
            self.spins += 1;
            return Turn::Spin;
        }
        self.judge_last_yield(now);
        if self.banned_waits == 0 && self.yields < self.policy.yields {
            self.yields += 1;
            self.yielded_at = Some(now);
            return Turn::Yield;
        }
        Turn::Block
    }

    /// The wait is over at `now`: what it took shapes the next ones.
    pub(crate) fn end(&mut self, now: Nanos) {
        self.judge_last_yield(now);
        let spun_in_vain = self.spins >= self.spin_budget;
        self.spin_budget = if spun_in_vain {
            (self.spin_budget / 2).max(self.policy.spins_min)
        } else {
            self.spin_budget
                .saturating_mul(2)
                .min(self.policy.spins_max)
        };
        if self.banned_waits > 0 {
            self.banned_waits -= 1;
        } else if self.yields > 0 && self.yields < self.policy.yields {
            self.next_ban = (self.next_ban / 2).max(8);
        }
    }

    fn judge_last_yield(&mut self, now: Nanos) {
        let Some(at) = self.yielded_at.take() else {
            return;
        };
        if now - at > self.policy.slow_yield && self.policy.ban_max > 0 {
            self.banned_waits = self.next_ban;
            self.next_ban = (self.next_ban * 2).min(self.policy.ban_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(waiter: &mut Waiter, count: usize, yield_takes: Nanos) -> Vec<Turn> {
        let mut now = Nanos(0);
        waiter.begin();
        let turns = (0..count)
            .map(|_| {
                let turn = waiter.turn(now);
                if turn == Turn::Yield {
                    now = now + yield_takes;
                }
                turn
            })
            .collect();
        waiter.end(now);
        turns
    }

    #[test]
    fn more_ranks_than_processors_never_spin() {
        let mut waiter = Waiter::new(WaitPolicy::adaptive(4, 2));

        let turns = turns(&mut waiter, 30, Nanos::micros(2));

        assert_eq!(
            turns.iter().filter(|turn| **turn == Turn::Yield).count(),
            24
        );
        assert_eq!(turns.iter().filter(|turn| **turn == Turn::Spin).count(), 0);
        assert_eq!(turns[24..], [Turn::Block; 6]);
    }

    #[test]
    fn a_slow_yield_bans_yields_for_a_while_and_then_tries_again() {
        let mut waiter = Waiter::new(WaitPolicy::adaptive(4, 2));

        assert_eq!(
            turns(&mut waiter, 2, Nanos::millis(4)),
            [Turn::Yield, Turn::Block]
        );
        for _ in 0..8 {
            assert!(turns(&mut waiter, 1, Nanos(0)).len() == 1);
        }

        assert_eq!(turns(&mut waiter, 1, Nanos(0)), [Turn::Yield]);
    }

    #[test]
    fn spinning_in_vain_shrinks_the_budget_and_success_restores_it() {
        let mut waiter = Waiter::new(WaitPolicy::adaptive(2, 2));
        for _ in 0..20 {
            turns(&mut waiter, 5_000, Nanos::micros(1));
        }
        assert_eq!(waiter.spin_budget, 16);

        for _ in 0..20 {
            turns(&mut waiter, 3, Nanos::micros(1));
        }

        assert_eq!(waiter.spin_budget, 4_000);
    }

    #[test]
    fn fixed_policies_do_one_thing() {
        for (policy, turn) in [
            (WaitPolicy::spin(), Turn::Spin),
            (WaitPolicy::yields(), Turn::Yield),
            (WaitPolicy::block(), Turn::Block),
        ] {
            let mut waiter = Waiter::new(policy);
            assert_eq!(turns(&mut waiter, 100, Nanos::millis(10)), [turn; 100]);
        }
    }
}
