use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use transport::launch::{Launch, LaunchError, ProcessSpec, Stream};

use crate::{lines, run_to_the_end, shell, start_scripts};

/// A directory that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tutti-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refusal(program: impl AsRef<std::ffi::OsStr>) -> String {
    let error = Launch::new(vec![ProcessSpec::new("A:0", program)])
        .start()
        .unwrap_err();
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(text.contains("A:0"), "{text}");
    text
}

#[test]
fn every_reason_not_to_start_is_one_line_that_says_what_to_do() {
    let scratch = Scratch::new("reasons");
    let plain = scratch.file("plain", "", 0o644);
    let no_interpreter = scratch.file("script", "#!/no/such/shell -e\n", 0o755);
    let dos = scratch.file("dos", "#!/bin/sh\r\nexit 0\n", 0o755);
    let link = scratch.0.join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();

    for (program, expected) in [
        (Path::new("no-such-program"), "in PATH; write its path"),
        (Path::new("./no-such-program"), "not found"),
        (&plain, "chmod +x"),
        (&scratch.0, "is a directory"),
        (
            &no_interpreter,
            "script for \"/no/such/shell\", which is not there",
        ),
        (&dos, "/bin/sh\\r"),
        (&link, "link to nothing"),
        (Path::new("/dev/null"), "is not a file"),
    ] {
        let text = refusal(program);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_program_in_the_current_directory_needs_its_dot() {
    let text = refusal("Cargo.toml");

    assert!(text.contains("write ./Cargo.toml"), "{text}");
}

#[test]
fn tools_beside_the_launcher_come_before_those_in_path() {
    let scratch = Scratch::new("beside");
    scratch.file("true", "#!/bin/sh\necho ours $0\n", 0o755);
    let mut launch = Launch::new(vec![ProcessSpec::new("A", "true")]);
    launch.beside = Some(scratch.0.clone());

    let events = run_to_the_end(&mut launch.start().unwrap());

    assert!(
        lines(&events, 0, Stream::Stdout)[0].starts_with("ours "),
        "{events:?}"
    );
}

#[test]
fn a_missing_program_is_noticed_before_anything_is_started() {
    let scratch = Scratch::new("before");
    let trace = scratch.0.join("trace");
    let toucher = ProcessSpec::new("A", "touch").arg(&trace);

    let error = Launch::new(vec![toucher, ProcessSpec::new("B", "/no/such")])
        .start()
        .unwrap_err();

    assert!(matches!(error, LaunchError::NotFound { .. }), "{error}");
    assert!(!trace.exists());
    assert!(matches!(
        Launch::new(Vec::new()).start(),
        Err(LaunchError::Nothing)
    ));
}

#[test]
fn directory_arguments_and_variables_arrive() {
    let scratch = Scratch::new("cwd");
    scratch.file("tool.sh", "#!/bin/sh\npwd; echo \"$1|$2|$V\"\n", 0o755);
    let mut spec = ProcessSpec::new("A", "./tool.sh")
        .arg("a b")
        .arg("")
        .env("V", "v=1");
    spec.cwd = Some(scratch.0.clone());

    let events = run_to_the_end(&mut Launch::new(vec![spec]).start().unwrap());

    let expected = [scratch.0.to_str().unwrap(), "a b||v=1"];
    assert_eq!(lines(&events, 0, Stream::Stdout), expected, "{events:?}");

    let mut spec = ProcessSpec::new("A", "true");
    spec.cwd = Some(scratch.0.join("nowhere"));
    let error = Launch::new(vec![spec]).start().unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn children_inherit_their_own_two_sockets_and_nothing_else() {
    // A stray descriptor without close-on-exec, as a careless parent leaves them.
    let stray = rustix::io::dup(fs::File::open("/dev/null").unwrap()).unwrap();
    let script = "ls -l /proc/self/fd; echo fds $PMI_FD $TUTTI_REPORT_FD";
    let mut job = start_scripts(&[script, script, script]);

    let events = run_to_the_end(&mut job);

    assert!(stray.as_raw_fd() > 2);
    for process in 0..3 {
        let printed = lines(&events, process, Stream::Stdout);
        let (last, listing) = printed.split_last().unwrap();
        let mut open: Vec<u32> = listing
            .iter()
            .filter(|line| !line.contains("/fd") || line.contains("socket"))
            .filter_map(|line| line.split(" -> ").next()?.rsplit(' ').next()?.parse().ok())
            .filter(|number| *number > 2)
            .collect();
        open.sort_unstable();
        let mut expected: Vec<u32> = last
            .split(' ')
            .skip(1)
            .map(|number| number.parse().unwrap())
            .collect();
        expected.sort_unstable();
        assert_eq!(open, expected, "{printed:?}");
    }
}

#[test]
fn a_launcher_that_is_woken_while_it_starts_processes_ends_the_start() {
    let (wake, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut &writer, b"x").unwrap();
    let processes = (0..400).map(|_| shell("p", "sleep 1000"));
    let mut launch = Launch::new(processes.collect());
    launch.wake = Some(wake.into());

    let started = launch.start();

    assert!(
        matches!(started, Err(LaunchError::Interrupted)),
        "{started:?}"
    );
}
