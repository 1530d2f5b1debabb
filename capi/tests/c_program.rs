//! A program in C, compiled against the header, in jobs of several sizes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use transport::bootstrap::server::PmiServer;

const DEADLINE: Duration = Duration::from_secs(240);

/// Compiles `program.c` against one of the libraries.
fn compile(library: &str, others: &[&str]) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = std::env::current_exe().unwrap();
    let libraries = libraries.parent().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("program-{library}"));
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/program.c"))
        .arg(libraries.join(library))
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .args(others)
        .status()
        .unwrap();
    assert!(status.success(), "cc refused program.c with {library}");
    program
}

/// Runs a job; whether each rank ended well.
fn run(program: &Path, size: u32, arguments: &[&str]) -> Vec<bool> {
    let (mut server, ends) = PmiServer::new(&vec![0; size as usize]).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                server.turn(Duration::from_millis(20)).unwrap();
            }
        });
        let start = |(rank, end)| {
            // The connection must not be a standard stream.
            let mut command = Command::new("sh");
            command.args(["-c", "exec 3<&0 </dev/null; exec \"$0\" \"$@\""]);
            command.arg(program).args(arguments);
            command.stdin(Stdio::from(end));
            command.env("PMI_FD", "3");
            command.env("PMI_RANK", format!("{rank}"));
            command.env("PMI_SIZE", size.to_string()).spawn().unwrap()
        };
        let children: Vec<Child> = (0..size).zip(ends).map(start).collect();
        let until = Instant::now() + DEADLINE;
        let ended = children
            .into_iter()
            .map(|child| end(child, until))
            .collect();
        over.store(true, Ordering::Relaxed);
        ended
    })
}

fn end(mut child: Child, until: Instant) -> bool {
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn a_program_in_c_synchronises_and_gathers() {
    let program = compile("libtutti_c.so", &[]);
    for size in [1, 2, 3, 5] {
        assert_eq!(run(&program, size, &[]), vec![true; size as usize]);
    }
}

#[test]
fn a_program_in_c_learns_who_died() {
    let program = compile("libtutti_c.a", &["-lpthread", "-ldl", "-lm"]);
    for size in [2, 3, 5] {
        let mut expected = vec![true; size as usize];
        expected[0] = false;
        assert_eq!(run(&program, size, &["die"]), expected);
    }
}

#[test]
fn the_header_has_the_codes_of_the_library() {
    let header = include_str!("../include/tutti.h");
    for (name, code) in [
        ("OK", tutti_c::Code::Ok),
        ("TIMEOUT", tutti_c::Code::Timeout),
        ("DIED", tutti_c::Code::Died),
        ("BUSY", tutti_c::Code::Busy),
        ("ARGUMENT", tutti_c::Code::Argument),
        ("FAILED", tutti_c::Code::Failed),
        ("PANICKED", tutti_c::Code::Panicked),
    ] {
        assert!(header.contains(&format!("TUTTI_{name} = {}", code as i32)));
    }
}
