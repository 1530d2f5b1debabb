//! What observers are told, and ranks that leave without an end.

use std::sync::{Arc, Mutex};

use music_core::{
    Error, Ignore, IndexMap, Indexing, InputOptions, Job, Lacking, Observer, OutputOptions,
    OutputPort, Runtime, Setup, Stall,
};
use transport_core::{Driver, Fabric, Memory, Nanos, Pause, Rank, Topology};
use transport_sim::{Network, Sim, SimFabric};

/// Two ranks of A send to two ranks of B.
const FILE: &str = "[A]\nnp=2\nbinary=a\n[B]\nnp=2\nbinary=b\nA.out -> B.in [12]\n";

/// Keeps what each rank's observer is told.
#[derive(Clone, Default)]
struct Told {
    stalls: Arc<Mutex<Vec<(Rank, Stall)>>>,
    warnings: Arc<Mutex<Vec<(Rank, String)>>>,
    times: Arc<Mutex<Vec<(Rank, f64)>>>,
}

struct Ear(Rank, Told);

impl Observer for Ear {
    fn time(&mut self, seconds: f64) {
        let mut times = self.1.times.lock().expect("no panic");
        times.push((self.0, seconds));
    }

    fn stalled(&mut self, stall: &Stall) {
        let mut stalls = self.1.stalls.lock().expect("no panic");
        stalls.push((self.0, stall.clone()));
    }

    fn warning(&mut self, message: &str) {
        let mut warnings = self.1.warnings.lock().expect("no panic");
        warnings.push((self.0, message.to_owned()));
    }
}

/// Runs the file; `body` has each rank's runtime, after it started, and the output port.
fn run<B>(body: B) -> Told
where
    B: Fn(Rank, &mut Runtime<SimFabric>, OutputPort) -> Result<(), Error> + Sync,
{
    let told = Told::default();
    let job = Arc::new(Job::parse("test.music", FILE).expect("a good file"));
    let sim = Sim::new(Topology::single_node(4), Network::default(), 1)
        .heap_bytes(1 << 18)
        .patience(Nanos::seconds(1000));
    sim.threads(|fabric| {
        let rank = fabric.rank();
        let application = job.application_of(rank.0).expect("a known rank");
        let observer = Box::new(Ear(rank, told.clone()));
        let mut setup = Setup::new(Driver::new(fabric), Arc::clone(&job), application, observer)?;
        setup.set_stall_threshold(Nanos::seconds(2));
        let out = setup.publish_event_output(if application == 0 { "out" } else { "unused" })?;
        if application == 0 {
            let map = IndexMap::linear(5 * setup.rank(), 5).expect("small ids");
            setup.map_output(out, map, Indexing::Global, OutputOptions::default())?;
        } else {
            let port = setup.publish_event_input("in")?;
            let all = IndexMap::linear(0, 10).expect("small ids");
            setup.map_input(port, all, Indexing::Global, InputOptions::default())?;
        }
        let mut runtime = setup.start(0.25, &mut Ignore)?;
        body(rank, &mut runtime, out)
    })
    .expect("no deadlock")
    .into_iter()
    .for_each(|result| result.expect("nobody fails"));
    told
}

/// Three ticks; one rank pauses before its second one, ranks of A insert that many events each.
fn with_pause(who: Rank, pause: Nanos, events: u32) -> Vec<(Rank, Stall)> {
    let told = run(|rank, runtime, out| {
        for tick in 0..3 {
            for event in 0..events {
                runtime.insert_event(out, 0.25 * f64::from(tick), 5 * rank.0 + event % 5);
            }
            if rank == who && tick == 1 {
                let fabric = runtime.driver().fabric_mut();
                let until = fabric.now() + pause;
                fabric.pause(Pause::Block { watch: &[], until });
            }
            runtime.tick(&mut Ignore)?;
        }
        runtime.finalize(&mut Ignore).map(|_| ())
    });
    told.stalls.lock().expect("no panic").clone()
}

#[test]
fn a_long_wait_for_events_is_reported_once_and_says_for_whom() {
    let stalls = with_pause(Rank(1), Nanos::seconds(9), 0);

    let (rank, stall) = &stalls[0];
    assert_eq!(stalls.len(), 2, "one for each rank of B");
    assert_eq!(stall.what, Lacking::Events { until: 0.5 });
    assert_eq!(
        stall.to_string(),
        format!(
            "B rank {} at time 0.25 s has waited 2000 ms for the events until 0.5 s on input port \
             in from A rank 1",
            rank.0 - 2
        )
    );
    assert_eq!(with_pause(Rank(1), Nanos::seconds(1), 0), []);
}

#[test]
fn a_long_wait_for_room_is_reported_once_and_says_for_whom() {
    let stalls = with_pause(Rank(3), Nanos::seconds(9), 200_000);

    let texts: Vec<String> = stalls.iter().map(|(_, stall)| stall.to_string()).collect();
    let expected = "A rank 0 at time 0.75 s has waited 2000 ms for room on output port out at B \
                    rank 1";
    assert!(texts.iter().any(|text| text == expected), "{texts:?}");
    for rank in 0..4 {
        let reports = stalls.iter().filter(|(from, _)| *from == Rank(rank));
        assert!(reports.count() <= 1, "{texts:?}");
    }
}

#[test]
fn a_width_that_the_sender_does_not_fill_is_one_warning() {
    let told = run(|_, runtime, _| {
        runtime.tick(&mut Ignore)?;
        runtime.finalize(&mut Ignore).map(|_| ())
    });

    let warnings = told.warnings.lock().expect("no panic").clone();
    let text = "test.music:7: the connection A.out -> B.in is 12 wide, but A.out maps ids only up \
                to 10";
    assert_eq!(warnings, [(Rank(0), text.to_owned())]);
    let times = told.times.lock().expect("no panic").clone();
    assert_eq!(times.len(), 4);
    assert!(times.iter().all(|(_, time)| (time - 0.25).abs() < 1e-9));
}

#[test]
fn a_sender_goes_on_when_its_receivers_have_abandoned_the_job() {
    run(|rank, runtime, out| {
        let sends = rank.0 < 2;
        for tick in 0..if sends { 20 } else { 3 } {
            for event in 0..10_000 {
                runtime.insert_event(out, 0.25 * f64::from(tick), 5 * rank.0 + event % 5);
            }
            runtime.tick(&mut Ignore)?;
        }
        if !sends {
            runtime.abandon();
            return Ok(());
        }
        runtime.finalize(&mut Ignore).map(|_| ())
    });
}
