use transport::bootstrap::{Bootstrap, environment, inherited_stream};
use transport::launch::{Cause, Event, Launch, ProcessSpec, Status, Stream};

use crate::{PATIENCE, lines, run_to_the_end, shell};

/// What a copy of this test program does in a job of a test.
const ROLE: &str = "TUTTI_TEST_ROLE";

/// A process of a job: this program, in a role.
fn actor(label: &str, role: &str) -> ProcessSpec {
    let own = std::env::current_exe().unwrap();
    let arguments = ["--exact", "rendezvous::acts_in_a_job", "--nocapture"];
    let spec = ProcessSpec::new(label, own).env(ROLE, role);
    arguments
        .iter()
        .fold(spec, |spec, argument| spec.arg(argument))
}

/// Does nothing in a test run; in a job of a test, plays its role.
#[test]
fn acts_in_a_job() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    match role.as_str() {
        "report" => return write_to("TUTTI_REPORT_FD", b"{\"time\":1}\n{}\n\xff\nhalf"),
        "babble" => {
            write_to("PMI_FD", b"good morning\n");
            std::thread::sleep(PATIENCE);
            return;
        }
        _ => {}
    }
    let mut job = Bootstrap::from_env().unwrap();
    let (rank, size) = (job.rank().0, job.size());
    match role.as_str() {
        "exchange" => {
            job.put(
                &format!("key-{rank}"),
                format!("value of {rank}").as_bytes(),
            )
            .unwrap();
            job.barrier().unwrap();
            for other in 0..size {
                let value = job.get(&format!("key-{other}")).unwrap();
                assert_eq!(value, format!("value of {other}").as_bytes());
            }
            println!("\nrank {rank} of {size} app {:?} exchanged", job.app());
            job.finalize().unwrap();
        }
        "fence" => {
            let error = job.barrier().unwrap_err();
            eprintln!("\nfence: {error}");
            std::process::exit(9);
        }
        "crash" => std::process::abort(),
        "leave" => job.finalize().unwrap(),
        "abort" => {
            job.abort(5, "the world is not enough");
            std::process::exit(0);
        }
        other => panic!("no role {other}"),
    }
}

fn write_to(variable: &str, bytes: &[u8]) {
    let stream = inherited_stream(variable, environment).unwrap().unwrap();
    assert_eq!(rustix::io::write(stream, bytes).unwrap(), bytes.len());
}

#[test]
fn ranks_exchange_values_at_every_size() {
    for size in [1, 2, 3, 5, 8] {
        let processes = (0..size).map(|rank| ProcessSpec {
            app: rank / 2,
            ..actor(&format!("rank {rank}"), "exchange")
        });
        let mut job = Launch::new(processes.collect()).start().unwrap();

        let events = run_to_the_end(&mut job);

        assert_eq!(job.failure(), None, "{events:?}");
        for rank in 0..size {
            let said = lines(&events, rank as usize, Stream::Stdout);
            let expected = format!("rank {rank} of {size} app Some({}) exchanged", rank / 2);
            assert!(said.contains(&expected), "{said:?}");
            assert!(events.contains(&Event::Joined {
                process: rank as usize
            }));
        }
    }
}

#[test]
fn a_crash_while_the_others_wait_is_the_failure_not_their_complaints() {
    let roles = ["fence", "crash", "fence"].map(|role| actor(role, role));
    let mut job = Launch::new(roles.to_vec()).start().unwrap();

    let events = run_to_the_end(&mut job);

    let failure = job.failure().unwrap();
    assert_eq!(failure.process, 1, "{events:?}");
    assert_eq!(failure.cause, Cause::Exit(Status::Signal(6)));
}

#[test]
fn a_process_that_ends_well_while_the_others_wait_is_the_failure() {
    for early in [
        actor("early", "leave"),
        ProcessSpec::new("early", "true"),
        // Children that hold what their parent has inherited, the PMI connection as well.
        shell("early", "(sleep 1000 &)"),
        shell("early", "setsid sleep 1000 & exit 0"),
    ] {
        let mut job = Launch::new(vec![actor("waits", "fence"), early])
            .start()
            .unwrap();

        let events = run_to_the_end(&mut job);

        let failure = job.failure().unwrap();
        assert_eq!(
            (failure.process, &failure.cause),
            (1, &Cause::LeftEarly),
            "{events:?}"
        );
        assert!(
            failure.to_string().starts_with("early left the job"),
            "{failure}"
        );
    }
}

#[test]
fn an_abort_names_its_code_and_reason() {
    let mut job = Launch::new(vec![actor("waits", "fence"), actor("aborts", "abort")])
        .start()
        .unwrap();

    run_to_the_end(&mut job);

    let failure = job.failure().unwrap();
    assert_eq!(
        failure.to_string(),
        "aborts aborted the job with code 5: the world is not enough"
    );
    assert_eq!(failure.exit_code(), 5);
}

#[test]
fn a_process_that_does_not_speak_pmi_is_named() {
    let mut job = Launch::new(vec![actor("babbler", "babble")])
        .start()
        .unwrap();

    run_to_the_end(&mut job);

    let text = job.failure().unwrap().to_string();
    assert!(
        text.contains("babbler does not speak PMI-1: \"good morning\""),
        "{text}"
    );
}

#[test]
fn reports_have_their_own_channel() {
    let mut job = Launch::new(vec![actor("reports", "report")])
        .start()
        .unwrap();

    let events = run_to_the_end(&mut job);

    let report = |line: &str| Event::Report {
        process: 0,
        line: line.to_owned(),
    };
    assert!(events.contains(&report("{\"time\":1}")), "{events:?}");
    assert!(events.contains(&report("{}")), "{events:?}");
    let bad = events
        .iter()
        .filter(|event| matches!(event, Event::BadReport { .. }));
    assert_eq!(bad.count(), 2, "{events:?}");
}
