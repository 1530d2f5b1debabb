use std::os::fd::AsFd;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use transport_core::{Atomics, PostError, Rank};

use super::{PATIENCE, Player, choice, is_there, play, segment};
use crate::ofi::{Endpoint, How, OfiError, Raise, Request};

#[test]
fn a_sleeper_is_woken_by_a_put_where_the_descriptor_was_found_to_wake() {
    if !is_there("tcp") {
        return;
    }
    play("tcp", "", 2, |player| {
        assert!(
            player.endpoint.wait_fd().is_some(),
            "tcp;ofi_rxm wakes its descriptor"
        );
        if player.rank == 1 {
            let raise = Raise {
                line: Player::line(0),
                how: How::Set(1),
            };
            let posted = player.post(Request::Raise { to: Rank(0), raise });
            player.finish(posted);
            return;
        }
        let until = Instant::now() + PATIENCE;
        while player.counter(0) < 1 && Instant::now() < until {
            // The look comes after the leave to sleep, for that may take in what came.
            let may_sleep = player.endpoint.may_sleep() && player.counter(0) < 1;
            if let Some(fd) = player.endpoint.wait_fd().filter(|_| may_sleep) {
                let fd = fd.as_fd();
                let mut fds = [PollFd::new(&fd, PollFlags::IN)];
                let span = rustix::time::Timespec::try_from(PATIENCE).unwrap();
                assert!(rustix::event::poll(&mut fds, Some(&span)).unwrap() > 0);
            }
            player.endpoint.progress().unwrap();
        }
        assert_eq!(player.counter(0), 1);
    });
}

#[test]
fn sockets_is_not_slept_on_since_remote_writes_do_not_wake_it() {
    if is_there("sockets") {
        play("sockets", "", 2, |player| {
            assert!(player.endpoint.wait_fd().is_none());
        });
    }
}

#[test]
fn a_peer_that_vanishes_is_an_error_or_no_room_and_never_a_hang() {
    for provider in ["tcp", "tcp-rdm", "sockets"] {
        if !is_there(provider) {
            continue;
        }
        let (gone, gone_here) = std::sync::mpsc::channel();
        let gone_here = Mutex::new(gone_here);
        let gone = Mutex::new(Some(gone));
        vanish(provider, &gone, &gone_here);
    }
}

pub(super) type Sender = Mutex<Option<std::sync::mpsc::Sender<()>>>;

pub(super) fn vanish(
    provider: &str,
    gone: &Sender,
    gone_here: &Mutex<std::sync::mpsc::Receiver<()>>,
) {
    let cards = Mutex::new(vec![Vec::new(); 2]);
    let meet = Barrier::new(2);
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (cards, meet) = (&cards, &meet);
            scope.spawn(move || {
                let segment = segment();
                let choice = choice(provider, "");
                let mut endpoint = Endpoint::open(&choice, Rank(rank), 2, &segment).unwrap();
                cards.lock().unwrap()[rank as usize] = endpoint.card();
                meet.wait();
                let cards = cards.lock().unwrap().clone();
                endpoint.connect(cards).unwrap();
                let peer = [Rank(1 - rank)];
                endpoint.warm(&peer, Instant::now() + PATIENCE).unwrap();
                meet.wait();
                if rank == 1 {
                    drop(endpoint);
                    gone.lock().unwrap().take();
                    return;
                }
                let _ = gone_here.lock().unwrap().recv();
                write_to_the_dead(&mut endpoint);
            });
        }
    });
}

fn write_to_the_dead(endpoint: &mut Endpoint) {
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        let posted = endpoint.post(Request::Write {
            from: Player::heap(0),
            to: Rank(1),
            at: Player::heap(0),
            bytes: 4096,
            raise: None,
        });
        match posted {
            Ok(_) | Err(PostError::Full) => {}
            Err(PostError::Lost(lost)) => {
                assert_eq!(lost.rank, Rank(1));
                assert!(endpoint.trouble.is_some());
                return;
            }
            Err(error) => panic!("{error}"),
        }
        if let Err(lost) = endpoint.progress() {
            assert_eq!(lost.rank, Rank(1));
            return;
        }
    }
    eprintln!(
        "{:?} reports no death: {:?}",
        endpoint.library(),
        endpoint.atomics()
    );
}

#[test]
fn ranks_with_different_libraries_are_told_who_differs() {
    if !is_there("tcp") {
        return;
    }
    let segment = segment();
    let mut endpoint = Endpoint::open(&choice("tcp", ""), Rank(0), 2, &segment).unwrap();
    let own = endpoint.card();
    let mut other = super::super::card::Card::from_bytes(&own).unwrap();
    other.library = "cxi 1.0 of libfabric 2.6".into();

    let error = endpoint
        .connect(vec![own.clone(), other.to_bytes()])
        .unwrap_err();
    assert!(error.to_string().starts_with("rank 1 has cxi"), "{error}");
    let error = endpoint.connect(vec![own, vec![1, 2]]).unwrap_err();
    assert_eq!(error, OfiError::Garbled { rank: Rank(1) });
    assert_eq!(endpoint.atomics(), Atomics::Native);
}

#[test]
fn a_provider_that_is_not_there_is_named_with_the_way_to_find_others() {
    if !is_there("tcp") {
        return;
    }
    let missing = Endpoint::open(&choice("gni", ""), Rank(0), 1, &segment());
    let words = missing.unwrap_err().to_string();
    assert!(
        words.contains("gni") && words.contains("music fabric"),
        "{words}"
    );
}

#[test]
fn the_list_names_every_provider_and_chooses_one_that_may_be_chosen() {
    match super::super::list(std::net::Ipv4Addr::LOCALHOST.into()) {
        Err(error) => eprintln!("skipped: {error}"),
        Ok(listing) => {
            eprintln!("{listing:#?}");
            let (chosen, reason) = listing.chosen().unwrap();
            assert!(chosen.preference().is_some(), "{chosen}: {reason}");
            assert!(
                listing
                    .providers
                    .iter()
                    .any(|listed| listed.usability.is_err())
            );
        }
    }
}
