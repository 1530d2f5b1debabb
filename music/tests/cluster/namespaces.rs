//! The emulated hosts themselves.

use std::fs;

use crate::emulated::Hosts;

#[test]
fn hosts_have_names_and_reach_each_other() {
    let Some(hosts) = Hosts::start(3) else {
        return;
    };
    for host in hosts.names() {
        assert_eq!(hosts.on(host, "hostname").trim(), host);
        for other in hosts.names().iter().chain([&"h0".to_owned()]) {
            // Nobody listens there; a host that is not there would not say so.
            let line = format!("exec 2>&1; : </dev/tcp/{other}/9 || true");
            let said = hosts.on(host, &format!("timeout 20 bash -c '{line}'"));
            assert!(
                said.contains("Connection refused"),
                "{host} to {other}: {said}"
            );
        }
    }
}

#[test]
fn hosts_share_the_folder_and_nothing_else() {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let folder = hosts.folder().display();
    hosts.on(
        "h1",
        &format!("touch {folder}/seen /tmp/own /dev/shm/own; sleep 77 >/dev/null 2>&1 &"),
    );

    let there = format!("ls {folder} /tmp /dev/shm; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; env");
    let said = hosts.on("h2", &there);

    assert!(hosts.folder().join("seen").is_file());
    assert!(said.contains("seen"), "{said}");
    assert!(!said.contains("own"), "{said}");
    assert!(!said.contains("sleep 77"), "{said}");
    assert!(!said.contains("CARGO"), "{said}");
}

#[test]
fn the_first_process_of_a_host_takes_in_orphans() {
    let Some(hosts) = Hosts::start(1) else {
        return;
    };
    // The shell in between ends before its child does.
    let said = hosts.on(
        "h1",
        "(sh -c 'sleep 0.01 & echo $!') >orphan.pid; pid=$(cat orphan.pid); rm orphan.pid
         for turn in $(seq 2000); do [ -e /proc/$pid ] || exit 0; sleep 0.01; done
         cat /proc/$pid/status; exit 1",
    );
    assert_eq!(said, "");
}

#[test]
fn a_host_that_crashes_takes_its_processes_and_no_other_host_along() {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let mut command = hosts.front(hosts.agent());
    let victim = hosts.spawn(command.args(["h1", "sleep 1000"]));

    hosts.crash("h1");

    assert_ne!(victim.finish().code, 0);
    assert_eq!(hosts.on("h2", "hostname").trim(), "h2");
}

#[test]
fn nothing_is_left_of_hosts_whose_test_panics() {
    if Hosts::start(1).is_none() {
        return;
    }
    let panicking = std::thread::spawn(|| {
        let hosts = Hosts::start(2).unwrap();
        let mark = hosts.folder().display().to_string();
        let mut command = hosts.front(hosts.agent());
        let _running = hosts.spawn(command.args(["h2", &format!("sh -c 'sleep 1000; {mark}'")]));
        std::panic::panic_any(mark);
    });
    let mark = panicking.join().unwrap_err();
    let mark = mark.downcast_ref::<String>().unwrap();

    assert!(!fs::exists(mark).unwrap());
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        assert!(!line.contains(mark), "{line}");
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(mark), "{mounts}");
}
