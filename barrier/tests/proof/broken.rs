//! Barriers that are none: the proof must not pass them.

use barrier::Need;
use transport_core::{
    Await, Counter, Memory, Op, Outcome, Protocol, Rank, Signal, Step, Topology, Watch,
};

use crate::world::{ORDERS, World};

/// Dissemination with any number of rounds.
struct Rounds {
    me: u32,
    size: u32,
    round: u32,
    rounds: u32,
}

const VALUE: u64 = 6;

impl Protocol for Rounds {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Posted(_) => {
                return Step::Await(Await::Counter(Watch {
                    home: memory.rank(),
                    counter: Counter::Network(self.round),
                    at_least: VALUE,
                }));
            }
            Outcome::Ready(_) => self.round += 1,
            _ => {}
        }
        if self.round == self.rounds {
            return Step::Done(());
        }
        Step::Post(Op::Notify {
            to: Rank((self.me + (1 << self.round)) % self.size),
            signal: Signal::Set {
                counter: Counter::Network(self.round),
                value: VALUE,
            },
        })
    }
}

/// Everyone adds to rank 0, which waits for `waits_for` of them and lets all others go.
struct Gather {
    me: u32,
    size: u32,
    waits_for: u64,
    told: u32,
}

impl Protocol for Gather {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        let (arrivals, release) = (Counter::Network(0), Counter::Network(1));
        let watch = |counter, at_least| {
            Step::Await(Await::Counter(Watch {
                home: memory.rank(),
                counter,
                at_least,
            }))
        };
        let post = |to, signal| {
            Step::Post(Op::Notify {
                to: Rank(to),
                signal,
            })
        };
        match (self.me, last) {
            (0, Outcome::Start) => watch(arrivals, 5 + self.waits_for),
            (0, _) if self.told + 1 < self.size => {
                self.told += 1;
                post(
                    self.told,
                    Signal::Set {
                        counter: release,
                        value: VALUE,
                    },
                )
            }
            (0, _) | (_, Outcome::Ready(_)) => Step::Done(()),
            (_, Outcome::Start) => post(
                0,
                Signal::Add {
                    counter: arrivals,
                    amount: 1,
                },
            ),
            _ => watch(release, VALUE),
        }
    }
}

/// Whether every order of entries passes, and whether any does.
fn passes<P: Protocol<Output = ()>>(size: u32, make: impl Fn(u32) -> P) -> (bool, bool) {
    let need = Need {
        node: 0,
        network: 16,
    };
    let topology = Topology::blocks(size, 1);
    let mut world = World::new();
    let passed = ORDERS.map(|order| world.run(need, &topology, order, &make).is_ok());
    (passed.iter().all(|passed| *passed), passed.contains(&true))
}

#[test]
fn a_logarithm_rounded_down_is_caught_where_it_is_one() {
    for size in 2..=600_u32 {
        let make = |rounds| {
            move |me| Rounds {
                me,
                size,
                round: 0,
                rounds,
            }
        };

        assert_eq!(
            passes(size, make(size.next_power_of_two().ilog2())),
            (true, true)
        );
        let power = size.is_power_of_two();
        assert_eq!(
            passes(size, make(size.ilog2())),
            (power, power),
            "size {size}"
        );
    }
}

#[test]
fn an_arrival_that_nobody_waits_for_is_caught() {
    for size in 3..=600_u32 {
        let make = |waits_for| {
            move |me| Gather {
                me,
                size,
                waits_for,
                told: 0,
            }
        };

        let all = u64::from(size) - 1;
        assert_eq!(passes(size, make(all)), (true, true));
        assert_eq!(passes(size, make(all - 1)), (false, false), "size {size}");
        assert_eq!(passes(size, make(all + 1)), (false, false), "size {size}");
    }
}
