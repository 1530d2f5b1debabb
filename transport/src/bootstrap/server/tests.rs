use std::thread;
use std::time::Instant;

use super::super::session::Bootstrap;
use super::super::testing::Random;
use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// Serves until all connections have ended; the events, in order.
fn serve_to_the_end(mut server: PmiServer) -> Vec<PmiEvent> {
    let deadline = Instant::now() + PATIENCE;
    let mut events = Vec::new();
    while server.connections.iter().any(Option::is_some) {
        assert!(
            Instant::now() < deadline,
            "the ranks do not come to an end: {events:?}"
        );
        events.extend(server.turn(PATIENCE).unwrap());
    }
    events
}

/// Runs `each` on a thread per rank over a real server; the results and the server's events.
fn job_of<T: Send + 'static>(
    size: u32,
    each: impl Fn(Bootstrap) -> T + Send + Clone + 'static,
) -> (Vec<T>, Vec<PmiEvent>) {
    let apps: Vec<u32> = (0..size).map(|rank| rank / 2).collect();
    let (server, ends) = PmiServer::new(&apps).unwrap();
    let ranks: Vec<_> = (0..)
        .zip(ends)
        .map(|(rank, end)| {
            let each = each.clone();
            thread::spawn(move || each(Bootstrap::over(end, rank, size).unwrap()))
        })
        .collect();
    let events = serve_to_the_end(server);
    (
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect(),
        events,
    )
}

#[test]
fn every_rank_reads_what_every_rank_has_put() {
    for size in [1, 2, 3, 5, 8] {
        let (oks, events) = job_of(size, move |mut job| {
            let me = job.rank().0;
            // Longer than one value: rank r puts 300 r + 1 bytes.
            let value = |rank: u32| vec![u8::try_from(rank).unwrap(); 300 * rank as usize + 1];
            job.put(&format!("value-{me}"), &value(me)).unwrap();
            job.barrier().unwrap();
            for rank in 0..size {
                assert_eq!(job.get(&format!("value-{rank}")).unwrap(), value(rank));
            }
            assert_eq!(job.app(), Some(me / 2));
            assert_eq!(job.universe(), Some(size));
            assert_eq!(job.nodes().unwrap(), Some(vec![0; size as usize]));
            assert!(job.get("nobody").is_err());
            assert!(job.put("value-0", b"again").is_err(), "a key is put once");
            job.finalize().is_ok()
        });

        assert_eq!(oks, vec![true; size as usize]);
        let left = events
            .iter()
            .filter(|event| matches!(event, PmiEvent::Left { .. }));
        assert_eq!(left.count(), size as usize);
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, PmiEvent::Closed { .. }))
        );
    }
}

#[test]
fn a_rank_that_dies_breaks_the_fence_of_the_others_at_once() {
    let (errors, events) = job_of(3, |mut job| {
        if job.rank().0 == 1 {
            return None; // dropped without finalize: the same as a crash
        }
        Some(job.barrier().unwrap_err().to_string())
    });

    for rank in [0, 2] {
        let error = errors[rank].as_ref().unwrap();
        assert!(error.contains("rank 1 has left the job"), "{error}");
    }
    let closed = PmiEvent::Closed {
        rank: 1,
        joined: true,
    };
    assert!(events.contains(&closed), "{events:?}");
    let broken = |event: &PmiEvent| matches!(event, PmiEvent::FenceBroken { absent: 1, .. });
    assert!(events.iter().any(broken), "{events:?}");
}

/// Serves until all that was sent is answered; what the rank at `end` is told last.
fn told(server: &mut PmiServer, end: &OwnedFd) -> String {
    let mut answer = [0; 4096];
    loop {
        server.turn(Duration::ZERO).unwrap();
        if let Ok((count, _)) = recv(end, &mut answer[..], RecvFlags::DONTWAIT) {
            return String::from_utf8_lossy(&answer[..count]).into_owned();
        }
    }
}

#[test]
fn who_left_first_is_named_to_all_although_others_leave_because_of_it() {
    for goodbye in [&b""[..], b"cmd=finalize\n"] {
        let (mut server, ends) = PmiServer::new(&[0; 4]).unwrap();
        let mut ends: Vec<Option<OwnedFd>> = ends.into_iter().map(Some).collect();
        for end in ends.iter().flatten() {
            say(end, b"cmd=init pmi_version=1 pmi_subversion=1\n");
            told(&mut server, end);
        }
        say(ends[2].as_ref().unwrap(), goodbye);
        ends[2] = None;
        while server.connections[2].is_some() {
            server.turn(PATIENCE).unwrap();
        }
        for rank in [1, 0, 3] {
            let end = ends[rank].take().unwrap();
            say(&end, b"cmd=barrier_in\n");
            let answer = told(&mut server, &end);
            assert!(answer.contains("rank_2_has_left"), "{rank}: {answer}");
            drop(end);
            while server.connections[rank].is_some() {
                server.turn(PATIENCE).unwrap();
            }
        }
    }
}

#[test]
fn a_rank_that_has_ended_is_gone_although_its_connection_is_held_open() {
    let (mut server, ends) = PmiServer::new(&[0, 0]).unwrap();
    for end in &ends {
        say(end, b"cmd=init pmi_version=1 pmi_subversion=1\n");
        told(&mut server, end);
    }
    say(&ends[0], b"cmd=barrier_in\n");
    server.turn(PATIENCE).unwrap();

    let (rank, joined) = (1, true);
    let broken = PmiEvent::FenceBroken {
        absent: 1,
        waiting: vec![0],
    };
    let closed = PmiEvent::Closed { rank, joined };
    assert_eq!(server.rank_ended(1), [closed, broken]);
    let answer = told(&mut server, &ends[0]);
    assert!(answer.contains("rank_1_has_left"), "{answer}");
    assert_eq!(server.rank_ended(1), [], "it ends once");

    say(&ends[0], b"cmd=get_appnum\ncmd=finalize\n");
    let left = PmiEvent::Left { rank: 0 };
    assert_eq!(server.rank_ended(0), [left], "what it said last counts");
}

#[test]
fn an_abort_carries_code_and_message() {
    let (_, events) = job_of(1, |job| job.abort(7, "no such file"));

    let abort = PmiEvent::Abort {
        rank: 0,
        code: 7,
        message: "no such file".to_owned(),
    };
    assert!(events.contains(&abort), "{events:?}");
}

/// The answer to `request` of a rank that has joined, and whether the connection lives on.
fn ask(request: &[u8]) -> (String, Vec<PmiEvent>) {
    let (mut server, mut ends) = PmiServer::new(&[0]).unwrap();
    let end = ends.pop().unwrap();
    say(&end, b"cmd=init pmi_version=1 pmi_subversion=1\n");
    say(&end, request);
    rustix::net::shutdown(&end, rustix::net::Shutdown::Write).unwrap();
    let mut events = Vec::new();
    while server.connections[0].is_some() {
        events.extend(server.turn(PATIENCE).unwrap());
    }
    let mut answer = vec![0; 1 << 16];
    let mut filled = 0;
    while let Ok((count @ 1.., _)) = recv(&end, &mut answer[filled..], RecvFlags::empty()) {
        filled += count;
    }
    let text = String::from_utf8(answer[..filled].to_vec()).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    (rest.to_owned(), events)
}

fn say(end: &OwnedFd, bytes: &[u8]) {
    assert_eq!(send(end, bytes, SendFlags::NOSIGNAL).unwrap(), bytes.len());
}

#[test]
fn requests_that_cannot_be_met_are_refused_and_the_connection_lives() {
    for (request, answer) in [
        (
            "cmd=get kvsname=x key=k",
            "cmd=get_result rc=-1 msg=unknown_kvsname\n",
        ),
        (
            "cmd=publish_name service=a",
            "cmd=publish_name_result rc=-1 msg=not_offered_by_this_server\n",
        ),
        (
            "mcmd=spawn\nnprocs=1\nexecname=a b\nendcmd",
            "cmd=spawn_result rc=-1 msg=processes_cannot_be_added\n",
        ),
    ] {
        let (answers, events) = ask(format!("{request}\ncmd=get_appnum\n").as_bytes());

        assert_eq!(
            answers,
            format!("{answer}cmd=appnum appnum=0 rc=0\n"),
            "{request}"
        );
        assert!(
            !events.iter().any(|e| matches!(e, PmiEvent::Broken { .. })),
            "{events:?}"
        );
    }
}

#[test]
fn what_is_not_pmi_ends_the_connection_and_is_named() {
    let long = vec![b'x'; LINE_MAX + 1];
    for (request, expected) in [
        (&b"hello\n"[..], "hello"),
        (b"\n", "empty"),
        (b"cmd=put key=a value=b c\n", "not of the form"),
        (b"cmd=put key=a\n", "no `value=`"),
        (b"cmd=finalize\ncmd=get_appnum\n", "after `cmd=finalize`"),
        (b"cmd=barrier_in\n\0\xff\n", "printable"),
        (&[0; 100], ""),
        (&long, "longer than"),
    ] {
        let (_, events) = ask(request);

        let named = events.iter().any(|event| match event {
            PmiEvent::Broken { problem, .. } => problem.contains(expected),
            // A line that never ended.
            PmiEvent::Closed { .. } => expected.is_empty(),
            _ => false,
        });
        assert!(named, "{:?}: {events:?}", String::from_utf8_lossy(request));
    }
}

#[test]
fn a_flood_of_requests_whose_answers_nobody_reads_is_held_back() {
    let (mut server, ends) = PmiServer::new(&[0, 1]).unwrap();
    let end = &ends[0];
    say(end, b"cmd=init pmi_version=1 pmi_subversion=1\n");
    let flood = b"cmd=get_my_kvsname\n".repeat(200);

    let mut sent = 0;
    for _ in 0..2_000 {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sent += send(end, &flood, flags).unwrap_or(0);
        server.turn(Duration::ZERO).unwrap();
        let connection = server.connections[0].as_ref().unwrap();
        assert!(connection.unsent.len() < 64 << 10, "answers pile up");
    }

    assert!(sent < 2_000 * flood.len(), "the flood was never held back");
    // The other rank is served all the same.
    say(&ends[1], b"cmd=init pmi_version=1 pmi_subversion=1\n");
    assert_eq!(
        server.turn(PATIENCE).unwrap(),
        [PmiEvent::Joined { rank: 1 }]
    );
}

#[test]
fn no_bytes_whatever_break_the_server() {
    let words: [&[u8]; 16] = [
        b"cmd=",
        b"init ",
        b"put ",
        b"get ",
        b"barrier_in",
        b"finalize",
        b"key=",
        b"value=",
        b"kvsname=x ",
        b"\n",
        b"\n",
        b"mcmd=spawn\n",
        b"endcmd\n",
        b"\xff",
        b" ",
        b"abort",
    ];
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let (mut server, ends) = PmiServer::new(&[0, 0, 0]).unwrap();
        say(&ends[0], b"cmd=init pmi_version=1 pmi_subversion=1\n");
        for _ in 0..60 {
            let rank = random.below(3);
            let bytes = words[random.below(words.len())];
            // A connection that the server has ended refuses.
            let _ = send(
                &ends[rank],
                bytes,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            );
            server.turn(Duration::ZERO).unwrap();
        }
        drop(ends);
        serve_to_the_end(server);
    }
}

#[test]
fn a_relayed_rank_is_served_by_hand_and_learns_the_nodes() {
    let (mut server, ends) =
        PmiServer::across(&[0, 0, 1], &[0, 1, 1], &[false, true, true]).unwrap();
    assert_eq!(ends.iter().filter(|end| end.is_some()).count(), 1);

    // In pieces, as a network delivers them.
    let mut events = server.feed(1, b"cmd=init pmi_version=1 pmi_sub");
    events.extend(server.feed(1, b"version=1\ncmd=get_my_kvsname\n"));

    assert_eq!(events, [PmiEvent::Joined { rank: 1 }]);
    let replies = server.take_relayed();
    let text = |index: usize| String::from_utf8(replies[index].1.clone()).unwrap();
    assert!(replies.iter().all(|(rank, _)| *rank == 1));
    assert!(text(0).starts_with("cmd=response_to_init "), "{replies:?}");
    let reply = text(1);
    let mut words = reply.split(' ');
    let space = words
        .find_map(|word| word.strip_prefix("kvsname="))
        .unwrap();

    let get = format!("cmd=get kvsname={space} key=PMI_process_mapping\n");
    assert_eq!(server.feed(1, get.as_bytes()), []);
    let mapping = String::from_utf8(server.take_relayed().remove(0).1).unwrap();
    assert!(
        mapping.ends_with("value=(vector,(0,1,1),(1,1,2))\n"),
        "{mapping}"
    );

    let events = server.feed(1, b"GET / HTTP/1.1\n");
    assert!(
        matches!(events[0], PmiEvent::Broken { rank: 1, .. }),
        "{events:?}"
    );
    assert_eq!(server.take_relayed(), [(1, Vec::new())]);
    assert_eq!(
        server.feed(1, b"cmd=init\n"),
        [],
        "its connection has ended"
    );
}
