//! Playing over `libfabric-double`, whose providers behave like hardware.
//!
//! Its ranks are threads of one process, and a process has one libfabric: so a test starts its own
//! executable again, told to run one test that plays.

use std::process::{Command, Output};
use std::time::Duration;

/// Where the child finds what to play.
const PLAY: &str = "TUTTI_DOUBLE_PLAY";

/// What this process is to play, if it was started for that. From then on it ends with the first
/// panic of any thread, and when it takes too long.
pub(crate) fn play() -> Option<String> {
    let play = std::env::var(PLAY).ok()?;
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::exit(FAILED);
    }));
    std::thread::spawn(|| {
        std::thread::sleep(WITHIN);
        eprintln!("the play takes too long");
        std::process::exit(FAILED);
    });
    Some(play)
}

/// Runs a test of this executable in a process of its own, with the double as its libfabric; it is
/// built beside the executable since tests depend on it.
pub(crate) fn run(test: &str, play: &str, forced: &str) -> Output {
    let executable = std::env::current_exe().unwrap();
    let double = executable.with_file_name("libfabric_double.so");
    assert!(double.exists(), "{} is not built", double.display());
    let (_, name) = test.split_once("::").expect("a path from the crate on");
    let output = Command::new(executable)
        .args(["--exact", "--nocapture", "--test-threads=1", name])
        .env("TUTTI_LIBFABRIC", double)
        .env("TUTTI_OFI_TEST", forced)
        .env(PLAY, play)
        .output();
    output.unwrap()
}

/// What the process had to say.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Five times what the slowest play needs on a loaded machine.
const WITHIN: Duration = Duration::from_secs(180);

/// A child's code when something was wrong.
const FAILED: i32 = 101;
