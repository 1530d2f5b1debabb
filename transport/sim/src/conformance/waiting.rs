//! Cases about progress and waiting.

use transport_core::{Deadline, Fabric, Nanos, Pause, Rank, Running, WaitError, WaitingFor, Watch};

use super::stand::{Stand, ensure};
use super::steps::{Until, add, notify, set};

/// Turns of a game in which every wake-up counts.
const TURNS: u64 = 100;

/// On an autonomous fabric a target that does not call progress sees what arrives.
pub(super) fn autonomy<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    if !stand.driver.fabric().capabilities().autonomous {
        return Ok(());
    }
    let (_, ahead) = stand.partners(1);
    let value = stand.base + 1;
    stand.meet()?;
    for counter in stand.counters(ahead, 0) {
        stand.post(notify(ahead, set(counter, value)))?;
    }
    let me = stand.me;
    let until = stand.patience();
    let (behind, _) = stand.partners(1);
    for counter in stand.counters(behind, 0) {
        while stand.driver.fabric().load(me, counter) < value {
            let fabric = stand.driver.fabric_mut();
            ensure!(
                fabric.now() < until,
                "{counter} did not come without progress"
            );
            fabric.pause(Pause::Yield);
        }
    }
    stand.meet()
}

/// Progress can be called any number of times and has no effect of its own.
pub(super) fn progress<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let counters = [stand.node(0), stand.network(0)];
    for _ in 0..1_000 {
        let fabric = stand.driver.fabric_mut();
        fabric.progress().map_err(|error| error.to_string())?;
    }
    for counter in counters {
        let value = stand.driver.fabric().load(stand.me, counter);
        ensure!(value == stand.base, "{counter} changed to {value}");
    }
    Ok(())
}

/// Sleeps until a counter of this rank is reached. The fabric alone must end the sleep: whoever is
/// asleep at the end of the time was not woken.
fn sleep_until<F: Fabric>(stand: &mut Stand<'_, F>, watch: &[Watch]) -> Result<(), String> {
    let until = stand.patience();
    let fabric = stand.driver.fabric_mut();
    loop {
        fabric.progress().map_err(|error| error.to_string())?;
        let reached = |watch: &Watch| fabric.load(watch.home, watch.counter) >= watch.at_least;
        if watch.iter().any(reached) {
            return Ok(());
        }
        ensure!(fabric.now() < until, "a wake-up was lost: {watch:?}");
        fabric.pause(Pause::Block { watch, until });
        ensure!(
            fabric.now() < until,
            "a sleep outlasted its wake-up: {watch:?}"
        );
    }
}

/// A ball goes round; whoever has it wakes the next rank, which sleeps or is about to.
pub(super) fn wakeups<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let me = stand.me;
    let (behind, ahead) = stand.partners(1);
    let mine = stand.counters(behind, 0);
    for turn in 1..=TURNS {
        let value = stand.base + turn;
        let watches = mine.iter().map(|&counter| Watch {
            home: me,
            counter,
            at_least: value,
        });
        let watches: Vec<Watch> = watches.collect();
        // Both domains take turns in waking; the other counter is watched as well.
        let counters = stand.counters(ahead, 0);
        let counter = counters[turn as usize % counters.len()];
        let throw = notify(ahead, set(counter, value));
        if me.0 == 0 {
            stand.post(throw)?;
            sleep_until(stand, &watches)?;
        } else {
            sleep_until(stand, &watches)?;
            stand.post(throw)?;
        }
    }
    stand.meet()
}

/// A change by a multiple of 2^32 wakes too: a sleep on half a counter must not miss it.
pub(super) fn wrap<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let (me, starts) = (stand.me, stand.me.0 == 0);
    let (behind, ahead) = stand.partners(1);
    for turn in 1..=2 {
        let value = stand.base + (turn << 32);
        if starts {
            set_all(stand, ahead, value)?;
        }
        for counter in stand.counters(behind, 0) {
            let watch = Watch {
                home: me,
                counter,
                at_least: value,
            };
            sleep_until(stand, &[watch])?;
        }
        if !starts {
            set_all(stand, ahead, value)?;
        }
        stand.meet()?;
    }
    Ok(())
}

fn set_all<F: Fabric>(stand: &mut Stand<'_, F>, to: Rank, value: u64) -> Result<(), String> {
    for counter in stand.counters(to, 0) {
        stand.post(notify(to, set(counter, value)))?;
    }
    Ok(())
}

/// A sleep ends in time if nothing wakes it.
pub(super) fn expiry<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let never = Watch {
        home: stand.me,
        counter: stand.node(0),
        at_least: u64::MAX,
    };
    let too_late = stand.patience();
    let fabric = stand.driver.fabric_mut();
    for watch in [&[][..], &[never]] {
        let until = fabric.now() + Nanos::millis(5);
        while fabric.now() < until {
            fabric.pause(Pause::Block { watch, until });
        }
        ensure!(fabric.now() < too_late, "a sleep of 5 ms did not end");
    }
    Ok(())
}

/// A wait that expires says what it waited for, and can be taken up again.
pub(super) fn deadlines<F: Fabric>(stand: &mut Stand<'_, F>) -> Result<(), String> {
    let (_, ahead) = stand.partners(1);
    let (me, counter, value) = (stand.me, stand.network(0), stand.base + 1);
    let mut running = Running::new(Until(Watch {
        home: me,
        counter,
        at_least: value,
    }));
    let soon = Deadline::Within(Nanos::millis(2));
    let what = WaitingFor::Counter {
        home: me,
        counter,
        at_least: value,
        value: stand.base,
    };
    match stand.driver.resume(&mut running, soon) {
        Err(WaitError::Timeout { what: said, .. }) if said == what => {}
        other => return Err(format!("expected a timeout for {what}, got {other:?}")),
    }
    stand.meet()?;
    let signal = if stand.adds(counter) {
        add(counter, 1)
    } else {
        set(counter, value)
    };
    stand.post(notify(ahead, signal))?;
    let until = Deadline::At(stand.patience());
    match stand.driver.resume(&mut running, until) {
        Ok(reached) if reached == value => stand.meet(),
        other => Err(format!("expected {value} after resuming, got {other:?}")),
    }
}
