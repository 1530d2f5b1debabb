use std::net::TcpListener;
use std::thread;

use super::super::exchange::Notice;
use super::*;

const LONG: Duration = Duration::from_secs(60);

fn patience(seconds: u32) -> Patience {
    Patience::from_env(&|name: &str| {
        (name == super::super::error::TIMEOUT_VARIABLE).then(|| seconds.to_string())
    })
    .unwrap()
}

fn secret(text: &str) -> Secret {
    Secret::of_job(&|name: &str| (name == "TUTTI_JOB_SECRET").then(|| text.to_owned()))
}

/// Ports that were free a moment ago.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    held.iter().map(port).collect()
}

fn meeting(rank: u32, size: u32, ports: &[u16]) -> Meeting {
    Meeting {
        rank,
        size,
        node: rank / 2,
        host: "localhost".to_owned(),
        host_from: "a test".to_owned(),
        one_host: true,
        ports: ports.to_vec(),
        secret: secret("known to the job"),
        patience: patience(60),
    }
}

/// Runs every rank in a thread; yields their results by rank.
fn job<T: Send + 'static>(
    size: u32,
    ports: &[u16],
    act: impl Fn(u32, Box<dyn Exchange>) -> T + Send + Copy + 'static,
) -> Vec<T> {
    job_of((0..size).map(|rank| meeting(rank, size, ports)), act)
}

fn job_of<T: Send + 'static>(
    meetings: impl Iterator<Item = Meeting>,
    act: impl Fn(u32, Box<dyn Exchange>) -> T + Send + Copy + 'static,
) -> Vec<T> {
    let ranks: Vec<_> = meetings
        .map(|meeting| {
            let rank = meeting.rank;
            thread::spawn(move || act(rank, meet(&meeting).unwrap()))
        })
        .collect();
    ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
}

fn fence(exchange: &mut dyn Exchange) -> Result<(), BootstrapError> {
    exchange.barrier(&mut Notice::after(Duration::MAX, &mut || ()))
}

/// Each rank publishes, all meet, each reads all.
fn exchange_all(rank: u32, size: u32, exchange: &mut dyn Exchange) {
    for round in 0..3 {
        let value = |rank: u32| format!("{round}.{rank}.{}", "x".repeat(3_000));
        let key = |rank: u32| format!("k{round}-{rank}");
        exchange.put(&key(rank), &value(rank)).unwrap();
        fence(exchange).unwrap();
        for other in 0..size {
            assert_eq!(exchange.get(&key(other)).unwrap(), Some(value(other)));
        }
    }
}

#[test]
fn ranks_exchange_values_at_every_size() {
    for size in [1, 2, 5, 9] {
        let nodes = job(size, &free_ports(2), move |rank, mut exchange| {
            exchange_all(rank, size, &mut *exchange);
            assert_eq!(exchange.get("none").unwrap(), None);
            let nodes = exchange.nodes().unwrap().unwrap();
            exchange.finalize().unwrap();
            nodes
        });

        let expected: Vec<u32> = (0..size).map(|rank| rank / 2).collect();
        assert!(nodes.iter().all(|nodes| *nodes == expected), "{nodes:?}");
    }
}

#[test]
fn ranks_of_several_hosts_meet_at_the_name_or_address_of_the_first() {
    let own = rustix::system::uname();
    let own = own.nodename().to_str().unwrap();
    // A loopback address that nobody gave on purpose is seen by no other host: rank 0 listens at
    // all of them.
    for (host, from) in [
        ("localhost", "a list"),
        ("127.0.0.1", "TUTTI_BOOTSTRAP_HOST"),
        (own, "a list"),
    ] {
        let ports = free_ports(2);
        let meetings = (0..3).map(|rank| Meeting {
            host: host.to_owned(),
            host_from: from.to_owned(),
            one_host: false,
            ..meeting(rank, 3, &ports)
        });

        job_of(meetings, |rank, mut exchange| {
            exchange_all(rank, 3, &mut *exchange)
        });
    }
}

#[test]
fn a_host_without_an_address_is_named_with_the_variable() {
    for rank in [0, 1] {
        let nowhere = Meeting {
            host: "no-such-host.invalid".to_owned(),
            host_from: "SLURM_STEP_NODELIST=no-such-host.invalid".to_owned(),
            one_host: false,
            ..meeting(rank, 2, &[20_000])
        };

        let text = meet(&nowhere).map(|_| ()).unwrap_err().to_string();

        assert!(
            text.contains("SLURM_STEP_NODELIST") && text.contains(HOST_VARIABLE),
            "{text}"
        );
    }
}

#[test]
fn a_slow_fence_is_told_once_and_goes_on() {
    let told = job(2, &free_ports(1), |rank, mut exchange| {
        let mut told = 0;
        let mut tell = || told += 1;
        exchange
            .barrier(&mut Notice::after(Duration::ZERO, &mut tell))
            .unwrap();
        exchange_all(rank, 2, &mut *exchange);
        told
    });

    // Rank 0 does not wait if all have come; the others always do.
    assert!(told[0] <= 1 && told[1] == 1, "{told:?}");
}

#[test]
fn no_bytes_whatever_break_a_link() {
    let mut random = crate::bootstrap::testing::Random::new(5);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..2_000 {
        let mut theirs = TcpStream::connect(address).unwrap();
        let mut link = Link::new(listener.accept().unwrap().0);
        let bytes: Vec<u8> = (0..random.below(60))
            .map(|_| [0, 0, 1, 2, 3, 4, 5, b'x', 0xff][random.below(9)])
            .collect();
        theirs.write_all(&bytes).unwrap();
        drop(theirs);

        let deadline = Instant::now() + LONG;
        let mut frames = 0;
        while link.receive(deadline).is_ok() {
            frames += 1;
        }

        assert!(frames <= bytes.len() / 5, "{bytes:?}");
    }
}

#[test]
fn a_port_that_another_program_has_is_passed_over() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let stranger = thread::spawn({
        let taken = taken.try_clone().unwrap();
        // Answers whatever comes as a web server would.
        move || {
            while let Ok((mut guest, _)) = taken.accept() {
                let mut greeting = [0; 8];
                if guest.read_exact(&mut greeting).is_err() || greeting == *b"good bye" {
                    return;
                }
                let _ = guest.write_all(&[b'?'; CHALLENGE]);
            }
        }
    });
    let address = taken.local_addr().unwrap();
    let ports = [address.port(), free_ports(1)[0]];

    job(3, &ports, |rank, mut exchange| {
        exchange_all(rank, 3, &mut *exchange)
    });

    let mut last = TcpStream::connect(address).unwrap();
    last.write_all(b"good bye").unwrap();
    stranger.join().unwrap();
}

/// Connects as soon as rank 0 listens.
fn connect(port: u16) -> TcpStream {
    let deadline = Instant::now() + LONG;
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::yield_now();
    }
}

#[test]
fn strangers_are_dropped_and_hold_nobody_up() {
    let ports = free_ports(1);
    let root = thread::spawn({
        let meeting = meeting(0, 2, &ports);
        move || meet(&meeting).map(|mut exchange| exchange_all(0, 2, &mut *exchange))
    });
    let mute = connect(ports[0]);
    let mut babbler = connect(ports[0]);
    babbler.write_all(&[b'x'; 400]).unwrap();
    // Rank 0 hangs up, with or without a reset.
    let mut answer = Vec::new();
    let _ = babbler.read_to_end(&mut answer);
    assert!(answer.is_empty());
    for (rank, size, text) in [(1, 2, "guessed"), (1, 3, "known to the job"), (9, 2, "x")] {
        let stranger = Meeting {
            secret: secret(text),
            patience: patience(1),
            ..meeting(rank, size, &ports)
        };
        let refused = meet(&stranger).map(|_| ()).unwrap_err().to_string();
        assert!(
            !refused.contains('\n') && !refused.contains(text),
            "{refused}"
        );
    }

    let mut late = meet(&meeting(1, 2, &ports)).unwrap();

    exchange_all(1, 2, &mut *late);
    root.join().unwrap().unwrap();
    drop(mute);
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let ports = free_ports(1);
    let alone = Meeting {
        patience: patience(1),
        ..meeting(0, 3, &ports)
    };

    let text = meet(&alone).map(|_| ()).unwrap_err().to_string();

    assert!(text.contains("2 of 3 ranks, rank 1 first"), "{text}");
    let lost = Meeting { rank: 2, ..alone };
    let text = meet(&lost).map(|_| ()).unwrap_err().to_string();
    let port = ports[0].to_string();
    assert!(
        text.contains(&port) && text.contains(HOST_VARIABLE),
        "{text}"
    );
}

#[test]
fn a_rank_that_goes_is_named_to_all_others() {
    let says = job(4, &free_ports(1), |rank, mut exchange| {
        fence(&mut *exchange).unwrap();
        if rank == 2 {
            return String::new();
        }
        fence(&mut *exchange).unwrap_err().to_string()
    });

    for rank in [0, 1, 3] {
        assert!(says[rank].contains("rank 2"), "rank {rank}: {}", says[rank]);
    }
}

#[test]
fn an_abort_and_a_farewell_reach_all_others() {
    for (goes, abort) in [(0, true), (1, true), (0, false), (1, false)] {
        let ports = free_ports(1);
        let ranks: Vec<_> = (0..3)
            .map(|rank| {
                let meeting = meeting(rank, 3, &ports);
                thread::spawn(move || {
                    let mut exchange = meet(&meeting).unwrap();
                    if rank != goes {
                        return fence(&mut *exchange).unwrap_err().to_string();
                    }
                    if abort {
                        exchange.abort(7, "enough of it");
                    } else {
                        exchange.finalize().unwrap();
                    }
                    String::new()
                })
            })
            .collect();
        let says: Vec<String> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();

        let expected = if abort {
            "enough_of_it"
        } else {
            "has left the job"
        };
        for (rank, said) in says.iter().enumerate() {
            let named = said.contains(&format!("rank {goes}")) && said.contains(expected);
            assert!(named || rank == goes as usize, "rank {rank}: {said}");
        }
    }
}
