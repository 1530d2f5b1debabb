//! Negotiation, and whole jobs run by its schedules in a model: nobody waits for himself.

use music_core::negotiate::{NegotiationError, Pace, Request, negotiate};
use music_core::{Job, Schedule, Ticks, Timebase};
use proptest::prelude::*;
use std::fmt::Write;

/// One connection: from, to, latency, what sender and receiver ask for buffering.
type Link = (usize, usize, i64, Option<u64>, Option<u64>);

/// A job of that many applications `A0`, `A1`, .. with connections `o0`, `o1`, ...
fn job(applications: usize, links: &[Link]) -> Job {
    let mut text = String::from("np=1\nbinary=x\n");
    (0..applications).for_each(|a| writeln!(text, "[A{a}]").unwrap());
    for (index, (from, to, ..)) in links.iter().enumerate() {
        writeln!(text, "A{from}.o{index} -> A{to}.i{index} [10]").unwrap();
    }
    Job::parse("model.music", &text).unwrap()
}

fn schedules(ticks: &[i64], links: &[Link]) -> Result<Vec<Schedule>, Vec<NegotiationError>> {
    let job = job(ticks.len(), links);
    let paces: Vec<Pace> = ticks
        .iter()
        .map(|&t| Pace {
            timebase: Timebase::DEFAULT,
            tick: Ticks(t),
        })
        .collect();
    let requests: Vec<Request> = links
        .iter()
        .enumerate()
        .map(|(connection, &(_, _, latency, sender, receiver))| Request {
            connection,
            sender_max_buffered: sender,
            receiver_max_buffered: receiver,
            acceptable_latency: Ticks(latency),
        })
        .collect();
    negotiate(&job, &paces, &requests)
}

/// Applications that tick as the rule says, and rings of `slots` exchanges between them.
struct Model<'a> {
    ticks: &'a [i64],
    links: &'a [Link],
    schedules: &'a [Schedule],
    slots: u64,
    /// How far ahead of its own time a rank looks to let the others proceed.
    ahead: i64,
    /// Per application: the tick it is in.
    at: Vec<i64>,
    /// Per link: put into the ring, drained from it.
    sent: Vec<u64>,
    drained: Vec<u64>,
}

impl<'a> Model<'a> {
    fn new(ticks: &'a [i64], links: &'a [Link], schedules: &'a [Schedule], slots: u64) -> Self {
        let ahead = schedules.iter().map(|schedule| schedule.slack().0).sum();
        let at = vec![0; ticks.len()];
        let (sent, drained) = (vec![0; links.len()], vec![0; links.len()]);
        Self {
            ticks,
            links,
            schedules,
            slots,
            ahead,
            at,
            sent,
            drained,
        }
    }

    /// Whether everyone gets beyond `end`; else everyone left waits for ever.
    fn runs_to(&mut self, end: i64) -> bool {
        // Nobody has to run further than this for the others to reach the end; whoever waits for
        // nobody would run on for ever.
        let limit = end + self.ahead;
        loop {
            let mut moved = false;
            for application in 0..self.ticks.len() {
                moved |= self.turn(application, limit);
            }
            if self.at.iter().all(|&at| at > end) {
                return true;
            }
            if !moved {
                return false;
            }
        }
    }

    /// Lets one application do what it can: drain, send what is due, then complete its tick.
    fn turn(&mut self, me: usize, limit: i64) -> bool {
        let mut moved = false;
        let now = self.at[me];
        for link in 0..self.links.len() {
            let (from, to, ..) = self.links[link];
            let schedule = self.schedules[link];
            if to == me {
                while self.drained[link] < self.sent[link]
                    && (self.drained[link] as i64 + 1) * schedule.period().0 <= now + self.ahead
                {
                    self.drained[link] += 1;
                    moved = true;
                }
            }
            if from == me {
                while self.sent[link] < schedule.sent(Ticks(now))
                    && self.sent[link] - self.drained[link] < self.slots
                {
                    self.sent[link] += 1;
                    moved = true;
                }
            }
        }
        if now <= limit && self.complete(me, now) {
            self.at[me] += self.ticks[me];
            moved = true;
        }
        moved
    }

    fn complete(&self, me: usize, now: i64) -> bool {
        self.links
            .iter()
            .enumerate()
            .all(|(link, &(from, to, ..))| {
                let schedule = self.schedules[link];
                (from != me || self.sent[link] >= schedule.sent(Ticks(now)))
                    && (to != me || self.drained[link] >= schedule.due(Ticks(now)))
            })
    }
}

#[test]
fn loops_are_those_of_the_reference() {
    let loop_of = |a, b, l_ab, l_ba| {
        schedules(
            &[a, b],
            &[(0, 1, l_ab, None, None), (1, 0, l_ba, None, None)],
        )
    };
    // In half milliseconds: one tick each.
    let one_each = loop_of(2, 2, 2, 2).unwrap();
    assert_eq!(one_each[0].delivered_at(Ticks(0)), Some(Ticks(2)));
    assert_eq!(one_each[1].delivered_at(Ticks(2)), Some(Ticks(4)));
    // All on one side: A at once, B two ticks later in the reference, one tick earlier in ours.
    let one_side = loop_of(2, 2, 4, 0).unwrap();
    assert_eq!(one_side[1].delivered_at(Ticks(0)), Some(Ticks(0)));
    assert!(one_side[0].delivered_at(Ticks(0)).unwrap() <= Ticks(4));
    // More than enough: the reference gathers three ticks, ours does not.
    assert!(
        loop_of(2, 2, 6, 6).unwrap()[0]
            .delivered_at(Ticks(0))
            .unwrap()
            <= Ticks(6)
    );
    // Different ticks.
    assert!(loop_of(1, 2, 2, 2).is_ok());
    assert!(loop_of(1, 2, 1, 2).is_ok());
    assert!(loop_of(2, 2, 1, 2).is_err());
}

#[test]
fn a_loop_with_too_little_latency_is_named_with_what_is_missing() {
    let job = Job::parse(
        "loop.music",
        "np=1\nbinary=x\n[A]\n[B]\n[C]\nA.x -> B.y [1]\nB.z -> A.w [1]\nB.c -> C.d\n",
    )
    .unwrap();
    let paces = [Pace {
        timebase: Timebase::DEFAULT,
        tick: Ticks(1_000_000),
    }; 3];
    let request = |connection, latency| Request {
        connection,
        sender_max_buffered: None,
        receiver_max_buffered: None,
        acceptable_latency: Ticks(latency),
    };

    let errors = negotiate(
        &job,
        &paces,
        &[request(0, 500_000), request(1, 1_000_000), request(2, 0)],
    )
    .unwrap_err();

    assert_eq!(errors.len(), 1);
    let text = errors[0].to_string();
    assert!(
        text.starts_with("0.0005 s of latency are missing around the loop "),
        "{text}"
    );
    for part in [
        "A.x -> B.y",
        "B.z -> A.w",
        "0.002 s",
        "0.0015 s",
        "loop.music:",
        "latency=",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("C.d"), "{text}");
}

#[test]
fn the_file_replaces_what_the_programs_ask() {
    let text = "np=1\nbinary=x\n[A]\n[B]\nA.x -> B.y [1] latency=0.002 maxbuffered=2\n\
                B.z -> A.w [1] latency=0\n";
    let job = Job::parse("f", text).unwrap();
    let paces = [Pace {
        timebase: Timebase::DEFAULT,
        tick: Ticks(1_000_000),
    }; 2];
    let request = |connection| Request {
        connection,
        sender_max_buffered: Some(7),
        receiver_max_buffered: Some(9),
        acceptable_latency: Ticks(0),
    };

    let open = negotiate(&job, &paces, &[request(0)]).unwrap();
    assert_eq!(open[0].latency(), Ticks(2_000_000));
    assert_eq!(open[0].max_buffered(), 2);

    // In the loop there is latency for one tick each.
    let closed = negotiate(&job, &paces, &[request(0), request(1)]).unwrap();
    assert_eq!(closed[0].max_buffered(), 1);
    assert_eq!(closed[1].max_buffered(), 1);
}

#[test]
fn buffering_is_the_least_of_both_in_sender_ticks() {
    for ((h_s, h_r), (sender, receiver), expected) in [
        ((1, 1), (None, None), 1),
        ((1, 1), (Some(5), None), 5),
        ((1, 1), (Some(5), Some(2)), 2),
        ((1, 5), (None, Some(2)), 10),
        ((2, 5), (None, Some(1)), 2),
        ((5, 2), (None, Some(1)), 1),
        ((5, 2), (Some(3), Some(6)), 2),
    ] {
        let made = schedules(&[h_s, h_r], &[(0, 1, 0, sender, receiver)]).unwrap();
        assert_eq!(
            made[0].max_buffered(),
            expected,
            "{h_s}/{h_r} {sender:?} {receiver:?}"
        );
    }
    let endless = schedules(&[3, 1], &[(0, 1, 0, Some(u64::MAX), Some(u64::MAX))]).unwrap();
    assert!(endless[0].period() <= Ticks::MAX);
}

#[test]
fn a_loop_limits_buffering_to_what_it_can_spare() {
    // Five ticks to spare around a loop of two: two and a half each, so three ticks.
    let links = [
        (0, 1, 4, Some(9), None),
        (1, 0, 3, Some(9), None),
        (1, 2, 0, Some(9), None),
    ];

    let made = schedules(&[1, 1, 1], &links).unwrap();

    assert_eq!(
        made.iter().map(Schedule::max_buffered).collect::<Vec<_>>(),
        [3, 3, 9]
    );
}

#[test]
fn what_is_wrong_with_a_program_names_it() {
    let job = job(2, &[(0, 1, 0, None, None)]);
    let pace = |seconds, tick| Pace {
        timebase: Timebase::new(seconds).unwrap(),
        tick: Ticks(tick),
    };
    let request = Request {
        connection: 0,
        sender_max_buffered: None,
        receiver_max_buffered: None,
        acceptable_latency: Ticks(0),
    };
    let fails = |paces: [Pace; 2], request: Request| {
        let errors = negotiate(&job, &paces, &[request]).unwrap_err();
        errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let good = pace(1e-9, 5);

    let text = fails([good, pace(1e-6, 5)], request);
    assert!(
        text.contains("A1 counts time in units of 1e-6 s, but A0 in 1e-9 s"),
        "{text}"
    );
    let text = fails([pace(1e-9, 0), pace(1e-9, -1)], request);
    assert!(
        text.contains("tick of A0 is 0") && text.contains("tick of A1 is -1"),
        "{text}"
    );
    let text = fails(
        [good, good],
        Request {
            acceptable_latency: Ticks(-1),
            ..request
        },
    );
    assert!(
        text.contains("A0.o0 -> A1.i0: the acceptable latency is -0.000000001 s"),
        "{text}"
    );
    let text = fails(
        [good, good],
        Request {
            receiver_max_buffered: Some(0),
            ..request
        },
    );
    assert!(text.contains("A0.o0 -> A1.i0: maxBuffered is 0"), "{text}");
}

#[test]
fn one_tick_of_latency_less_than_nothing_stands_still() {
    // Not negotiated: both sides wait for each other's first exchange.
    let links = [(0, 1, 0, None, None), (1, 0, 0, None, None)];
    let bare = Schedule::new(Ticks(1), Ticks(1), Ticks(0), 1).unwrap();

    assert!(!Model::new(&[1, 1], &links, &[bare, bare], 1).runs_to(10));
    assert!(schedules(&[1, 1], &links).is_err());
}

#[test]
fn taking_all_that_was_sent_by_now_would_stand_still_in_some_loops() {
    // A waits for C's tick of 10, C for B's of 7, and B, if it took all that A has sent by its own
    // time, for A: so B's lag has to be longer although nothing of A is urgent.
    let ticks = [1, 7, 10];
    let links = [
        (0, 1, 1000, None, None),
        (1, 2, 0, None, None),
        (2, 0, 0, None, None),
    ];
    let eager: Vec<Schedule> = links
        .iter()
        .map(|&(from, to, latency, ..)| {
            Schedule::new(Ticks(ticks[from]), Ticks(ticks[to]), Ticks(latency), 1).unwrap()
        })
        .collect();
    assert!(!Model::new(&ticks, &links, &eager, 1).runs_to(1000));

    let made = schedules(&ticks, &links).unwrap();
    assert!(made[0].lag() > eager[0].lag());
    assert!(Model::new(&ticks, &links, &made, 1).runs_to(1000));
}

#[test]
fn dense_graphs_of_fifty_applications_are_settled_at_once() {
    let ticks = [1_000_000; 50];
    let mut links: Vec<Link> = Vec::new();
    for from in 0..50 {
        for to in (0..50).filter(|&to| to != from) {
            links.push((from, to, 3_000_000 + from as i64, Some(100), None));
        }
    }

    let made = schedules(&ticks, &links).unwrap();
    assert!(made.iter().all(|schedule| schedule.max_buffered() == 3));

    links[777].2 = 0;
    links[777 + 49].2 = 0;
    for link in &mut links {
        link.2 = link.2.min(999_999);
    }
    let errors = schedules(&ticks, &links).unwrap_err();
    assert_eq!(errors.len(), 1);
}

fn graphs() -> impl Strategy<Value = (Vec<i64>, Vec<Link>)> {
    let ticks = prop::collection::vec(1_i64..=10, 2..=8);
    ticks.prop_flat_map(|ticks| {
        let count = ticks.len();
        let asked = || prop::option::weighted(0.3, 1_u64..6);
        // Mostly short latencies, now and then one that a whole loop can live on.
        let latency = prop_oneof![3 => 0_i64..12, 1 => 30_i64..100];
        let link = (0..count, 1..count, latency, asked(), asked());
        let links = prop::collection::vec(link, 1..=14);
        (Just(ticks), links).prop_map(|(ticks, links)| {
            let count = ticks.len();
            // Never to oneself.
            let links = links
                .into_iter()
                .map(|(a, d, l, s, r)| (a, (a + d) % count, l, s, r));
            (ticks, links.collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_negotiated_runs_with_rings_of_one_slot((ticks, links) in graphs()) {
        let Ok(made) = schedules(&ticks, &links) else { return Ok(()) };

        prop_assert!(Model::new(&ticks, &links, &made, 1).runs_to(300));
        for (schedule, link) in made.iter().zip(&links) {
            prop_assert_eq!(schedule.latency(), Ticks(link.2));
            for t in 0..60 {
                let at = schedule.delivered_at(Ticks(t)).unwrap();
                prop_assert!(at.0 <= t + link.2);
            }
        }
    }

    #[test]
    fn whatever_is_refused_has_a_loop_that_is_too_short((ticks, links) in graphs()) {
        let Err(errors) = schedules(&ticks, &links) else { return Ok(()) };

        for error in errors {
            let NegotiationError::Loop(fault) = error else { panic!("{error}") };
            prop_assert!(fault.missing_seconds > 0.0);
            prop_assert!(fault.connections.len() >= 2);
        }
    }

    #[test]
    fn loops_without_any_latency_stand_still_unless_they_are_refused(
        ticks in prop::collection::vec(1_i64..=1, 2..=8),
    ) {
        let count = ticks.len();
        let links: Vec<Link> = (0..count).map(|a| (a, (a + 1) % count, 0, None, None)).collect();
        let bare = Schedule::new(Ticks(1), Ticks(1), Ticks(0), 1).unwrap();

        prop_assert!(!Model::new(&ticks, &links, &vec![bare; count], 1).runs_to(20));
        prop_assert!(schedules(&ticks, &links).is_err());
    }
}
