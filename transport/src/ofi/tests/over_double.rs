//! The same plays over providers that behave like hardware, and what becomes of them when a signal
//! is kept behind its bytes by a promise that the provider never made.

use super::*;
use crate::ofi::doubled;

/// The child's part; nothing in a process that was told no play.
#[test]
fn the_play_of_a_child() {
    let Some(play) = doubled::play() else {
        return;
    };
    let [provider, forced, size, name] = *play.split('|').collect::<Vec<_>>() else {
        panic!("{play}");
    };
    let size = size.parse().unwrap();
    match name {
        "everything" => everything(provider, forced, size),
        "roles" => roles(provider, forced, size),
        "vanish" => vanishes(provider),
        "list" => list(),
        _ => panic!("{name}"),
    }
}

/// Prints what the probe found, for the parent to compare.
fn roles(provider: &str, forced: &str, size: u32) {
    play(provider, forced, size, |player| {
        let endpoint = &player.endpoint;
        let wakes = if endpoint.wait_fd().is_some() {
            "wakes"
        } else {
            "sleeps"
        };
        let (mode, atomics) = (endpoint.signal_mode().name(), endpoint.atomics());
        eprintln!("found: {mode} {atomics:?} {wakes}");
    });
}

fn vanishes(provider: &str) {
    let (gone, gone_here) = std::sync::mpsc::channel();
    life::vanish(provider, &Mutex::new(Some(gone)), &Mutex::new(gone_here));
}

fn list() {
    let listing = super::super::list(std::net::Ipv4Addr::LOCALHOST.into()).unwrap();
    for listed in &listing.providers {
        let usable = listed.usability.as_ref().map(|usable| usable.signal.name());
        eprintln!("listed: {} {usable:?}", listed.provider);
    }
    eprintln!("chosen: {}", listing.chosen().unwrap().0);
}

/// Whether a play went well, and what was said.
fn child(provider: &str, forced: &str, size: u32, name: &str) -> (bool, String) {
    let test = concat!(module_path!(), "::the_play_of_a_child");
    let play = format!("{provider}|{forced}|{size}|{name}");
    let output = doubled::run(test, &play, "");
    (output.status.success(), doubled::said(&output))
}

fn plays_well(provider: &str, forced: &str, size: u32, name: &str) -> String {
    let (well, said) = child(provider, forced, size, name);
    assert!(well, "{provider} {forced} {size}: {said}");
    said
}

/// In both sizes, and with each mode that is right for it.
fn keeps_everything(provider: &str, right: &[&str]) {
    for forced in right {
        plays_well(provider, forced, 2, "everything");
    }
    plays_well(provider, "", 3, "everything");
}

/// What is forced is wrong for the provider, and bytes that are not there show it.
fn is_caught(provider: &str, forced: &str) {
    for _ in 0..TRIES {
        let (well, said) = child(provider, forced, 2, "everything");
        if !well {
            let shown = said.contains(" bytes") || said.contains("round ");
            assert!(shown, "{provider} {forced}: {said}");
            return;
        }
    }
    panic!("{provider} goes well with {forced}");
}

#[test]
fn fences_keep_signals_behind_bytes_over_gni() {
    keeps_everything(
        "gni",
        &["", "signal=completion,atomics=none", "signal=mailbox"],
    );
}

#[test]
fn sealed_lines_keep_signals_behind_bytes_over_efa() {
    keeps_everything("efa", &["", "signal=completion"]);
}

#[test]
fn sealed_lines_keep_signals_behind_bytes_over_opx() {
    keeps_everything("opx", &["", "mr=scalable"]);
}

#[test]
fn the_order_of_writes_keeps_signals_behind_bytes_over_cxi() {
    keeps_everything("cxi", &["", "signal=completion", "atomics=none,wait=none"]);
}

#[test]
fn the_order_of_writes_keeps_signals_behind_bytes_over_verbs_where_all_buffers_are_registered() {
    keeps_everything("verbs", &["", "signal=mailbox"]);
}

#[test]
fn posts_that_are_refused_most_of_the_time_lose_nothing() {
    keeps_everything("psm3", &["", "signal=completion"]);
}

#[test]
fn an_order_that_was_never_promised_is_found_out() {
    is_caught("gni", "signal=order");
    is_caught("efa", "signal=order");
    is_caught("opx", "signal=order");
}

#[test]
fn a_completion_that_does_not_mean_delivery_is_found_out() {
    is_caught("opx", "signal=completion");
}

#[test]
fn each_provider_is_used_as_it_promises() {
    for (provider, found) in [
        ("gni", "fence Native sleeps"),
        ("efa", "mailbox Emulated sleeps"),
        ("opx", "mailbox Emulated sleeps"),
        ("cxi", "order Native sleeps"),
        ("verbs", "order Native wakes"),
        ("psm3", "fence Native sleeps"),
        ("shm", "order Native sleeps"),
        ("tcp-rdm", "order Native wakes"),
    ] {
        let said = plays_well(provider, "", 2, "roles");

        let all = said.lines().filter_map(|line| line.strip_prefix("found: "));
        let all: Vec<_> = all.collect();
        assert_eq!(all, [found; 2], "{provider}");
    }
}

#[test]
fn a_peer_that_vanishes_is_a_loss_or_no_room_whatever_the_provider_says() {
    for provider in ["gni", "cxi", "verbs", "psm3", "shm", "tcp-rdm"] {
        let said = plays_well(provider, "", 2, "vanish");

        let silent = said.contains("reports no death");
        assert_eq!(silent, provider == "tcp-rdm", "{provider}: {said}");
    }
}

#[test]
fn all_providers_are_listed_and_hardware_is_chosen() {
    let said = plays_well("", "", 1, "list");

    for line in [
        "listed: gni Ok(\"fence\")",
        "listed: opx Ok(\"mailbox\")",
        "listed: cxi Ok(\"order\")",
        "listed: verbs;ofi_rxm Ok(\"order\")",
        "chosen: cxi",
    ] {
        assert!(said.lines().any(|one| one == line), "{line}: {said}");
    }
}

/// How often a play that must fail is tried.
const TRIES: usize = 60;
