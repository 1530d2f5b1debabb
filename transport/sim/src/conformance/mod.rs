//! The tests that every fabric passes, of the promises of `docs/fabric-contract.md`.
//!
//! Every rank of a job makes the same calls in the same order, in threads of a simulation or in
//! processes of its own:
//!
//! ```
//! use transport_core::{Driver, Topology};
//! use transport_sim::{Network, Sim, conformance};
//!
//! let sim = Sim::new(Topology::blocks(3, 2), Network::default(), 1);
//! let verdicts = sim.threads(|fabric| conformance::run(&mut Driver::new(fabric), "signals"));
//! assert_eq!(verdicts.unwrap(), [const { Ok(()) }; 3]);
//! ```
//!
//! A case needs no more than sets of network counters to keep the ranks in step. It takes what it
//! needs from the arenas, at the same places on all ranks, and gives it back; so the arenas must be
//! alike on all ranks, and nobody else may have used the counters that it gets. Promises that need
//! the death of a rank or the end of a job (section 7) are left to each fabric's own tests, and
//! those that bind protocols (4.5, 8.2) to theirs; 2.3 binds by type.

mod counters;
mod memory;
mod operations;
mod stand;
mod steps;
mod waiting;

use transport_core::{Driver, Fabric};

use stand::Stand;

/// One test, made by all ranks together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// What [`run`] calls it.
    pub name: &'static str,
    /// The sentences of the contract that it tests.
    pub sentences: &'static str,
    /// With fewer ranks it tests nothing.
    pub ranks_min: u32,
}

/// The table of cases and the function of each.
macro_rules! cases {
    ($($name:literal $sentences:literal $ranks_min:literal $function:path,)*) => {
        const CASES: &[Case] = &[
            $(Case { name: $name, sentences: $sentences, ranks_min: $ranks_min },)*
        ];

        fn dispatch<F: Fabric>(name: &str, stand: &mut Stand<'_, F>) -> Result<(), String> {
            match name {
                $($name => $function(stand),)*
                _ => Err(format!("there is no case {name}")),
            }
        }
    };
}

cases! {
    "topology" "1.1, 1.2, 2.2" 1 memory::topology,
    "zero" "2.1" 1 memory::zero,
    "reach" "2.2" 1 memory::reach,
    "exhaustion" "2.4" 1 memory::exhaustion,
    "offsets" "2.5" 1 memory::offsets,
    "growth" "3.1" 1 counters::growth,
    "sums" "3.2, 3.5, 8.1" 1 counters::sums,
    "fetched" "3.5, 4.8" 1 counters::fetched,
    "sets" "3.5" 1 counters::sets,
    "freed" "3.4" 1 counters::freed,
    "backpressure" "4.1" 1 operations::backpressure,
    "reuse" "4.2, 4.4" 1 operations::reuse,
    "signals" "3.3, 4.3" 1 operations::signals,
    "added-signals" "3.3, 4.3" 1 operations::added_signals,
    "oneself" "4.6" 1 operations::oneself,
    "mates" "4.7" 2 operations::mates,
    "tickets" "4.8" 1 operations::tickets,
    "autonomy" "5.1" 2 waiting::autonomy,
    "progress" "5.2" 1 waiting::progress,
    "wakeups" "6.1, 6.2" 2 waiting::wakeups,
    "wrap" "6.1" 2 waiting::wrap,
    "expiry" "6.1" 1 waiting::expiry,
    "deadlines" "6.3" 1 waiting::deadlines,
}

/// The names of all cases, in the order in which [`run_all`] runs them.
pub const NAMES: [&str; CASES.len()] = {
    let mut names = [""; CASES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = CASES[index].name;
        index += 1;
    }
    names
};

/// All cases.
pub const fn cases() -> &'static [Case] {
    CASES
}

/// Runs a case on this rank, while every other rank does so too.
///
/// # Errors
/// What this rank, or that another one, saw against the contract; a case that does not exist. The
/// job must not be used for further cases then: its ranks are out of step.
pub fn run<F: Fabric>(driver: &mut Driver<F>, case: &str) -> Result<(), String> {
    let rank = driver.fabric().rank();
    let name = |what: String| format!("case {case}, {rank}: {what}");
    if !NAMES.contains(&case) {
        return Err(format!("there is no case {case}"));
    }
    let mut stand = Stand::build(driver).map_err(name)?;
    let verdict = dispatch(case, &mut stand).and_then(|()| stand.meet());
    if verdict.is_err() {
        stand.give_up();
    }
    verdict.and(stand.dismantle()).map_err(name)
}

/// Runs all cases.
///
/// # Errors
/// As [`run`], at the first case that fails.
pub fn run_all<F: Fabric>(driver: &mut Driver<F>) -> Result<(), String> {
    NAMES.iter().try_for_each(|case| run(driver, case))
}
