use transport::launch::{Event, Launch, Status, Stream};

use crate::{PATIENCE, lines, run_to_the_end, run_until, shell, start_scripts};

#[test]
fn lines_come_with_their_process_and_stream_and_before_its_end() {
    let mut job = start_scripts(&["echo a; echo b >&2", "printf 'c\\nunfinished'"]);

    let events = run_to_the_end(&mut job);

    assert_eq!(lines(&events, 0, Stream::Stdout), ["a"]);
    assert_eq!(lines(&events, 0, Stream::Stderr), ["b"]);
    assert_eq!(lines(&events, 1, Stream::Stdout), ["c", "unfinished"]);
    for process in 0..2 {
        let is_own = |event: &&Event| match event {
            Event::Line { process: of, .. } | Event::Exited { process: of, .. } => *of == process,
            _ => false,
        };
        let last = events.iter().rfind(is_own).unwrap();
        let status = Status::Code(0);
        assert_eq!(*last, Event::Exited { process, status });
    }
    assert_eq!(job.failure(), None);
}

#[test]
fn a_line_of_megabytes_comes_in_parts_and_loses_nothing() {
    let mut job = start_scripts(&["head -c 3000000 /dev/zero | tr '\\0' x; echo; echo y"]);

    let events = run_to_the_end(&mut job);

    let parts = lines(&events, 0, Stream::Stdout);
    let longest = parts.iter().map(String::len).max().unwrap();
    assert!(longest <= 64 << 10, "a part has {longest} bytes");
    assert_eq!(parts.concat().len(), 3_000_001);
    assert_eq!(parts.last().unwrap(), "y");
}

#[test]
fn bytes_that_are_not_text_pass_unchanged() {
    let mut job = start_scripts(&["printf '\\377\\000\\r\\n'"]);

    let events = run_to_the_end(&mut job);

    let stream = Stream::Stdout;
    let line = Event::Line {
        process: 0,
        stream,
        text: b"\xff\0\r".to_vec(),
        ended: true,
    };
    assert!(events.contains(&line), "{events:?}");
}

#[test]
fn a_process_that_writes_for_ever_starves_nobody() {
    let mut job = start_scripts(&["yes", "echo hello; exit 3"]);

    let mut events = Vec::new();
    let failed = |event: &Event| matches!(event, Event::Failed(_));
    assert!(run_until(&mut job, &mut events, failed));
    assert_eq!(lines(&events, 1, Stream::Stdout), ["hello"]);
    run_until(&mut job, &mut Vec::new(), |_| false);

    assert_eq!(job.failure().unwrap().process, 1);
}

#[test]
fn a_written_wake_descriptor_is_an_event() {
    let (wake, waker) = rustix::pipe::pipe().unwrap();
    let mut launch = Launch::new(vec![shell("p", "exec sleep 1000")]);
    launch.wake = Some(wake);
    let mut job = launch.start().unwrap();
    assert_eq!(job.next(std::time::Duration::ZERO).unwrap(), None);

    rustix::io::write(&waker, b"x").unwrap();

    assert_eq!(job.next(PATIENCE).unwrap(), Some(Event::Woken));
    job.stop(PATIENCE);
    run_to_the_end(&mut job);
    assert_eq!(job.status(0), Some(Status::Signal(15)));
    assert_eq!(job.failure(), None, "who is stopped has not failed");
}
