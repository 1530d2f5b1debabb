//! When a connection communicates: one rule in integers, the same on both sides.
//!
//! Exchange `k = 1, 2, ..` of a connection covers the sender's time `[(k-1)p, kp)`, where the
//! period `p` is a whole number of sender ticks. It is sent in the sender's tick that makes its
//! time `kp`. The receiver, in the tick that makes its time `T` (and at `T = 0`, before the first),
//! takes every exchange with `(k-1)p < T + h_r - lag`.
//!
//! The *lag* is at most the acceptable latency `L`, so when `time() == T` every event with
//! `t < T + h_r - L` has been handed over: lateness never exceeds `L`. Where no loop forbids it the
//! lag is only `h_r + p - 1`, which is the same as taking every exchange with `kp <= T`, all that
//! was sent by then: nothing waits longer than it must. In a loop of connections the receiver may
//! not be able to wait for the sender's present without waiting for itself; there the lag is as
//! much longer as the loop needs, see [`negotiate`](crate::negotiate).

use crate::time::Ticks;

/// The rhythm of one connection. Times are counts of the job's timebase.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Schedule {
    sender_tick: Ticks,
    receiver_tick: Ticks,
    latency: Ticks,
    period: Ticks,
    lag: Ticks,
}

impl Schedule {
    /// The schedule that hands events over as early as it can: the lag is the smaller of the
    /// latency and `receiver_tick + period - 1`.
    ///
    /// `None` unless ticks and `max_buffered` (in sender ticks) are positive, the latency is not
    /// negative, and all of it and the period are at most [`Ticks::MAX`].
    pub fn new(
        sender_tick: Ticks,
        receiver_tick: Ticks,
        latency: Ticks,
        max_buffered: u64,
    ) -> Option<Self> {
        let span = Ticks(1)..=Ticks::MAX;
        let period = sender_tick.times(max_buffered)?;
        let valid = [sender_tick, receiver_tick, period]
            .iter()
            .all(|ticks| span.contains(ticks));
        if !valid || !(Ticks::ZERO..=Ticks::MAX).contains(&latency) {
            return None;
        }
        let lag = latency.min(earliest_lag(receiver_tick, period));
        Some(Self {
            sender_tick,
            receiver_tick,
            latency,
            period,
            lag,
        })
    }

    /// The same schedule with a longer lag, bounded by the latency; never shorter than it was.
    #[must_use]
    pub fn with_lag(self, lag: Ticks) -> Self {
        Self {
            lag: lag.max(self.lag).min(self.latency),
            ..self
        }
    }

    /// The sender's step.
    pub const fn sender_tick(&self) -> Ticks {
        self.sender_tick
    }

    /// The receiver's step.
    pub const fn receiver_tick(&self) -> Ticks {
        self.receiver_tick
    }

    /// How late an event may be handed over: `time() <= t + latency`.
    pub const fn latency(&self) -> Ticks {
        self.latency
    }

    /// The time that one exchange covers.
    pub const fn period(&self) -> Ticks {
        self.period
    }

    /// The sender ticks that one exchange covers, *maxBuffered*.
    pub const fn max_buffered(&self) -> u64 {
        self.period.0.unsigned_abs() / self.sender_tick.0.unsigned_abs()
    }

    /// How far behind the end of its next tick the receiver takes exchanges; at most the latency.
    pub const fn lag(&self) -> Ticks {
        self.lag
    }

    /// How many exchanges the sender has sent once its time is `at`.
    pub const fn sent(&self, at: Ticks) -> u64 {
        if at.0 <= 0 {
            return 0;
        }
        (at.0 / self.period.0).unsigned_abs()
    }

    /// How many exchanges the receiver has taken once its time is `at`. It never falls.
    pub const fn due(&self, at: Ticks) -> u64 {
        // Times are at most 2^62 - 1, so neither saturates within a simulation.
        let horizon =
            at.0.saturating_add(self.receiver_tick.0)
                .saturating_sub(self.lag.0);
        if horizon <= 0 {
            return 0;
        }
        // Exchanges with (k-1)p < horizon: the quotient rounded up.
        (horizon / self.period.0).unsigned_abs() + (horizon % self.period.0 != 0) as u64
    }

    /// The exchange that an event of time `t >= 0` travels in, if it is inserted in the tick that
    /// its time belongs to.
    pub const fn exchange_of(&self, t: Ticks) -> u64 {
        (t.0 / self.period.0).unsigned_abs() + 1
    }

    /// The receiver's time at which exchange `k >= 1` is taken, `None` beyond [`Ticks::MAX`].
    pub fn taken_at(&self, k: u64) -> Option<Ticks> {
        let start = self.period.times(k.saturating_sub(1))?;
        let ticks = (start.0.saturating_add(self.lag.0) / self.receiver_tick.0).unsigned_abs();
        self.receiver_tick.times(ticks)
    }

    /// The receiver's time at which an event of time `t >= 0` is handed over, `None` beyond
    /// [`Ticks::MAX`].
    pub fn delivered_at(&self, t: Ticks) -> Option<Ticks> {
        self.taken_at(self.exchange_of(t))
    }

    /// How far this connection alone can make its two sides differ in time: receiver tick plus
    /// period. Summed over all connections it bounds how far ahead of its own time any rank ever
    /// has to look to let the others proceed.
    pub const fn slack(&self) -> Ticks {
        self.receiver_tick.plus(self.period)
    }
}

/// The lag at which a receiver takes exactly what a sender of the same time has sent.
pub(crate) const fn earliest_lag(receiver_tick: Ticks, period: Ticks) -> Ticks {
    Ticks(receiver_tick.0.saturating_add(period.0) - 1)
}
