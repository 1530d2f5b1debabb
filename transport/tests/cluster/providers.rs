//! The contract over each of libfabric's software providers, every rank a process.
//!
//! A provider that the library does not offer is skipped, with its reason, and only if `skips.txt`
//! lists it: any other skip fails. `TUTTI_LIBFABRIC_NEWER` names a second library to do it with.

use transport::ofi;

use crate::has_network;
use crate::job::{Job, Line};

/// Each at these numbers of ranks.
const RANKS: [u32; 3] = [2, 3, 5];

fn keeps_the_contract(provider: &str) {
    if let Some(version) = has_network().then(ofi::library_version).flatten() {
        keeps_it_with(provider, &version, &[]);
    }
    if let Ok(library) = std::env::var("TUTTI_LIBFABRIC_NEWER") {
        keeps_it_with(provider, "2", &[("TUTTI_LIBFABRIC", &library)]);
    }
}

fn keeps_it_with(provider: &str, version: &str, library: &[(&str, &str)]) {
    let mut variables = vec![("TUTTI_HEAP_MIB", "1"), ("TUTTI_FABRIC", provider)];
    variables.extend(library);
    if provider == "udp" && version.starts_with("1.") {
        // Its own crash there when many of them are in flight.
        variables.push(("TUTTI_OFI_TEST", "atomics=none"));
    }
    for ranks in RANKS {
        let lines = Job::start_with(ranks, "conformance:0", &variables).finish();
        if let Some(reason) = refusal(&lines) {
            eprintln!("skipped: {provider} with libfabric {version}: {reason}");
            let listed = is_listed(SKIPS, provider, version, reason);
            assert!(listed, "{provider} {version} is not in skips.txt: {reason}");
            return;
        }
        let broken: Vec<_> = lines.iter().filter(|line| line.text != "open").collect();
        assert!(
            broken.is_empty(),
            "{provider} {version} {ranks}: {broken:?}"
        );
        assert_eq!(lines.len(), ranks as usize, "{provider} {version}");
    }
}

/// Why the provider is not offered, if all ranks say so.
fn refusal(lines: &[Line]) -> Option<&str> {
    let reason = |line: &'_ Line| line.text.contains(" offers no ");
    let all = !lines.is_empty() && lines.iter().all(reason);
    let first = lines.first().filter(|_| all)?;
    first.text.split_once("network: ").map(|(_, reason)| reason)
}

/// Whether a skip is expected: a line has the provider, the start of the version, and words of the
/// reason.
fn is_listed(list: &str, provider: &str, version: &str, reason: &str) -> bool {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.into_iter().any(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        matches!(columns[..], [name, of, words]
            if name == provider && version.starts_with(of) && reason.contains(words))
    })
}

/// The skips that are expected.
const SKIPS: &str = include_str!("skips.txt");

#[test]
fn rxm_over_tcp_keeps_the_contract() {
    keeps_the_contract("tcp");
}

#[test]
fn bare_tcp_keeps_the_contract() {
    keeps_the_contract("tcp-rdm");
}

#[test]
fn sockets_keeps_the_contract() {
    keeps_the_contract("sockets");
}

#[test]
fn rxd_over_udp_keeps_the_contract() {
    keeps_the_contract("udp");
}

#[test]
fn shared_memory_of_libfabric_keeps_the_contract() {
    keeps_the_contract("shm-rdm");
}

#[test]
fn only_listed_skips_are_skips() {
    let list = "# a comment\ntcp-rdm | 1.17 | offers no tcp\n";
    let reason = "libfabric 1.17 offers no tcp here";

    assert!(is_listed(list, "tcp-rdm", "1.17", reason));
    assert!(!is_listed(list, "tcp-rdm", "2.5", reason));
    assert!(!is_listed(list, "sockets", "1.17", reason));
    assert!(!is_listed(list, "tcp-rdm", "1.17", "memory is used up"));
}
