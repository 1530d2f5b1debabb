//! Every variable that is malformed, missing or contradictory is one line that says so.

use std::os::fd::AsRawFd;
use std::process::Command;

use transport::bootstrap::{Bootstrap, BootstrapError, environment, inherited_stream};

use crate::run;

fn join(variables: &[(&str, &str)]) -> Result<Bootstrap, BootstrapError> {
    Bootstrap::from_variables(|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn refusal(variables: &[(&str, &str)]) -> String {
    let text = join(variables).unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn a_program_started_alone_is_a_job_of_one() {
    for variables in [
        &[][..],
        &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")],
        &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")],
    ] {
        let mut job = join(variables).unwrap();

        assert_eq!((job.rank().0, job.size(), job.is_launched()), (0, 1, false));
        job.put("key", &[0, 255]).unwrap();
        job.barrier().unwrap();
        assert_eq!(job.get("key").unwrap(), [0, 255]);
        assert!(matches!(
            job.get("none"),
            Err(BootstrapError::Absent { .. })
        ));
        let long = vec![0; Bootstrap::VALUE_MAX + 1];
        assert!(matches!(
            job.put("long", &long),
            Err(BootstrapError::ValueTooLong { .. })
        ));
        job.put("longest", &long[1..]).unwrap();
        assert_eq!(job.get("longest").unwrap(), long[1..]);
        job.finalize().unwrap();
    }
}

#[test]
fn bad_variables_are_named() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let no_socket = file.as_raw_fd().to_string();
    let beside = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    let fd = |value| [&[("PMI_FD", value)], &beside[..]].concat();
    for (variables, expected) in [
        (vec![("PMI_FD", "9")], "PMI_FD=9 is set but PMI_RANK is not"),
        (
            vec![("PMI_FD", "9"), ("PMI_RANK", "0")],
            "PMI_FD=9 is set but PMI_SIZE is not",
        ),
        (fd("nine"), "PMI_FD=\"nine\" is not the number"),
        (fd(""), "PMI_FD=\"\" is not the number"),
        (fd("-1"), "PMI_FD=\"-1\" is not the number"),
        (fd("1"), "PMI_FD=\"1\" is not the number"),
        (fd("99999"), "PMI_FD=\"99999\" is not an open descriptor"),
        (fd(&no_socket), "is open but not a stream socket"),
        (
            vec![("PMI_FD", "9"), ("PMI_RANK", "2"), ("PMI_SIZE", "2")],
            "no rank of a job of 2",
        ),
        (
            vec![("PMI_RANK", "1")],
            "started as rank 1 (PMI_RANK=1), but this launcher gives no",
        ),
        (beside.to_vec(), "started as rank 0 of 2 (PMI_RANK=0)"),
        (vec![("PMIX_RANK", "0")], "started as rank 0 (PMIX_RANK=0)"),
        (
            vec![("PMI_RANK", "1"), ("PMIX_RANK", "2")],
            "PMI_RANK=1 contradicts PMIX_RANK=2",
        ),
        (
            vec![("PMI_PORT", "localhost:1")],
            "PMI_PORT=localhost:1 is set but PMI_ID is not",
        ),
        (
            vec![("PMI_PORT", "nowhere"), ("PMI_ID", "0")],
            "cannot use the PMI server at PMI_PORT",
        ),
        (
            vec![("PMI_PORT", "127.0.0.1:x"), ("PMI_ID", "0")],
            "PMI_PORT=127.0.0.1:x",
        ),
        (
            vec![("TUTTI_BOOTSTRAP_TIMEOUT", "1m")],
            "TUTTI_BOOTSTRAP_TIMEOUT=\"1m\"",
        ),
    ] {
        let text = refusal(&variables);

        assert!(text.contains(expected), "{variables:?}: {text}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);

    let text = refusal(&[("PMI_PORT", &address), ("PMI_ID", "0")]);

    assert!(
        text.contains(&address) && text.contains("refused"),
        "{text}"
    );
}

#[test]
fn an_inherited_socket_is_taken_once_and_closed_in_children() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let number = std::os::fd::IntoRawFd::into_raw_fd(ours);
    let raw = number.to_string();
    let lookup = |name: &str| (name == "SOME_FD").then(|| raw.clone());

    let taken = inherited_stream("SOME_FD", lookup).unwrap().unwrap();

    let flags = rustix::io::fcntl_getfd(&taken).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    let again = inherited_stream("SOME_FD", lookup).unwrap_err();
    assert!(matches!(again, BootstrapError::Taken { .. }), "{again}");
    assert!(inherited_stream("OTHER_FD", lookup).unwrap().is_none());
    drop(theirs);
}

const ROLE: &str = "TUTTI_TEST_ALONE";

/// Does nothing in a test run; alone with odd variables, tells the reason why it cannot join.
#[test]
fn acts_alone() {
    if std::env::var_os(ROLE).is_some() {
        let error = Bootstrap::from_variables(environment).unwrap_err();
        println!("\n<{error}>");
    }
}

#[test]
fn variables_that_are_not_text_are_named_too() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "variables::acts_alone", "--nocapture"])
        .env(ROLE, "1");
    command.env("PMI_RANK", std::ffi::OsStr::from_bytes(b"\xff"));

    let ended = run(&mut command);

    assert!(ended.status.success(), "{}", ended.said);
    assert!(
        ended
            .said
            .contains("<PMI_RANK=\"\u{fffd}\" is not a number"),
        "{}",
        ended.said
    );
}
