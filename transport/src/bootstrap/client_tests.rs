//! The client against servers that behave otherwise than ours.

use std::thread;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::super::server::stream_pair;
use super::super::testing::Random;
use super::*;

const SOON: Duration = Duration::from_millis(30);
const PATIENCE: Duration = Duration::from_secs(60);

/// A client whose server answers each line it gets with the next text of `script`, and then closes.
fn against(script: &'static [&'static str], patience: Duration) -> Client {
    let (ours, theirs) = stream_pair().unwrap();
    thread::spawn(move || {
        for answer in script {
            let mut byte = [0];
            while matches!(recv(&theirs, &mut byte, RecvFlags::empty()), Ok((1, _))) {
                if byte[0] == b'\n' {
                    break;
                }
            }
            // A client that has given up does not listen.
            let _ = send(&theirs, answer.as_bytes(), SendFlags::NOSIGNAL);
        }
    });
    let patience = Patience {
        answer: patience,
        fence: patience,
    };
    Client::new(ours, "the test".to_owned(), patience)
}

const WELCOME: [&str; 3] = [
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
    "cmd=my_kvsname kvsname=kvs_7\n",
];

#[test]
fn the_words_of_slurm_and_of_hydra_mean_the_same() {
    let slurm = &[
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n",
        "cmd=maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=1024\n",
        "cmd=my_kvsname rc=0 kvsname=123.0\n",
        "cmd=appnum rc=0 appnum=-1\n",
        "cmd=universe_size rc=0 size=4\n",
        "cmd=get_result rc=0 value=a=b\n",
        "cmd=get_result rc=-1\n",
        "cmd=barrier_out rc=0\n",
        "cmd=finalize_ack rc=0\n",
    ];
    let hydra = &[
        WELCOME[0],
        WELCOME[1],
        WELCOME[2],
        "cmd=appnum appnum=-1\n",
        "cmd=universe_size size=4 rc=0\n",
        "cmd=get_result rc=0 msg=success value=a=b\n",
        "cmd=get_result rc=-1 msg=key_k_not_found value=unknown\n",
        "cmd=barrier_out\n",
        "cmd=finalize_ack\n",
    ];
    for script in [slurm, hydra] {
        let mut client = against(script, PATIENCE);

        client.init().unwrap();
        assert_eq!(client.app().unwrap(), None);
        assert_eq!(client.universe().unwrap(), Some(4));
        assert_eq!(client.get("k").unwrap(), Some("a=b".to_owned()));
        assert_eq!(client.get("k").unwrap(), None);
        client.barrier().unwrap();
        client.finalize().unwrap();
    }
}

#[test]
fn over_tcp_the_server_tells_rank_and_size() {
    let answers = &["cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=3\ncmd=set debug=0\n"];
    assert_eq!(against(answers, PATIENCE).introduce("3").unwrap(), (3, 4));

    for (answers, expected) in [
        (
            &["cmd=initack rc=0\ncmd=set size=3\ncmd=set rank=3\ncmd=set debug=0\n"],
            "no rank of",
        ),
        (
            &["cmd=initack rc=0\nsize 3\n"],
            "does not start with `cmd=`",
        ),
        (&["cmd=initack rc=-1 msg=who_are_you\n"], "who are you"),
        (&["cmd=initack rc=0\ncmd=set size=3\n"], "closed"),
    ] {
        let error = against(answers, PATIENCE)
            .introduce("3")
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_a_server_does_wrong_is_named_in_one_line() {
    let long: &'static str = Box::leak("x".repeat(100_000).into_boxed_str());
    for (answer, expected) in [
        (
            "",
            "closed the connection while this rank waited for `response_to_init`",
        ),
        ("\n", "it is empty"),
        ("cmd=maxes rc=0\n", "`cmd=response_to_init` should follow"),
        ("cmd=response_to_init rc=0\n", "no `pmi_version=`"),
        (
            "cmd=response_to_init pmi_version=2 rc=0\n",
            "another version",
        ),
        ("cmd=response_to_init pmi_version=1 rc=-1\n", "refused"),
        ("cmd=response_to_init pmi_version=1 rc=x\n", "refused"),
        ("\x1b[31m\u{e9}\n", "not printable"),
        ("rubbish\n", "does not start"),
        (long, "bytes"),
    ] {
        let script: &'static [&str] = Box::leak(Box::new([answer]));
        let mut client = against(script, PATIENCE);

        let error = client.init().unwrap_err().to_string();

        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n') && error.len() < 600, "{error}");
    }
}

#[test]
fn a_silent_server_is_given_up_and_then_left_alone() {
    let (ours, _theirs) = stream_pair().unwrap();
    let patience = Patience {
        answer: SOON,
        fence: SOON,
    };
    let mut client = Client::new(ours, "PMI_FD=9".to_owned(), patience);

    let error = client.init().unwrap_err();
    assert!(matches!(error, BootstrapError::Timeout { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("PMI_FD=9") && text.contains("TUTTI_BOOTSTRAP_TIMEOUT"),
        "{text}"
    );

    // An answer that comes late would be taken for that to the next request.
    assert!(matches!(client.barrier(), Err(BootstrapError::Broken)));
}

#[test]
fn keys_and_values_that_cannot_travel_are_refused_before_they_are_sent() {
    let mut client = against(&WELCOME, PATIENCE);
    client.init().unwrap();

    for key in ["", "a b", "a=b", "a;b", "a\n", "\u{e9}", &"k".repeat(64)] {
        let error = client.put(key, "v").unwrap_err();
        assert!(matches!(error, BootstrapError::Key { .. }), "{error}");
        assert!(client.get(key).is_err());
    }
    for value in ["", "a b", "a\nb", &"v".repeat(1024)] {
        let error = client.put("k", value).unwrap_err();
        assert!(matches!(error, BootstrapError::Value { .. }), "{error}");
    }
}

#[test]
fn no_answer_whatever_breaks_the_client() {
    let words = [
        "cmd=",
        "get_result",
        " rc=0",
        " value=",
        "1.00",
        "\n",
        "\n",
        "\0",
        "\u{ff}",
        "x",
    ];
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (ours, theirs) = stream_pair().unwrap();
        for _ in 0..random.below(40) {
            let word = words[random.below(words.len())];
            send(&theirs, word.as_bytes(), SendFlags::NOSIGNAL).unwrap();
        }
        drop(theirs);
        let patience = Patience {
            answer: PATIENCE,
            fence: PATIENCE,
        };
        let mut client = Client::new(ours, "the test".to_owned(), patience);

        // Until the connection is known to be at its end.
        while client.get("k").is_ok() {}
    }
}
