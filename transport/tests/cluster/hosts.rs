//! A link between two hosts that is cut: both sides name a rank of the other within the bound.
//!
//! The hosts are network namespaces, joined by a pair of virtual interfaces. Who may not make them
//! is told so, and the test is skipped.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::has_network;
use crate::job::Job;

/// Two hosts; removed with the value.
struct Hosts([String; 2]);

impl Hosts {
    /// `None` if this process may not make them.
    fn new() -> Option<Self> {
        let hosts = Self([0, 1].map(|host| format!("tutti-test-{}-{host}", std::process::id())));
        let [a, b] = &hosts.0;
        let mut made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&[
                "link", "add", "v0", "netns", a, "type", "veth", "peer", "name", "v1", "netns", b,
            ]);
        for (host, name) in hosts.0.iter().enumerate() {
            let (link, address) = (format!("v{host}"), format!("10.99.7.{}/24", host + 1));
            made = made
                && ip(&["-n", name, "addr", "add", &address, "dev", &link])
                && ip(&["-n", name, "link", "set", &link, "up"])
                && ip(&["-n", name, "link", "set", "lo", "up"])
                && ip(&["netns", "exec", name, "true"]);
        }
        made.then_some(hosts)
    }

    fn cut(&self) {
        assert!(ip(&["-n", &self.0[1], "link", "set", "v1", "down"]));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> bool {
    let mut command = Command::new("ip");
    let command = command.args(arguments).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn a_link_that_is_cut_is_noticed_on_both_sides() {
    let Some(hosts) = has_network().then(Hosts::new).flatten() else {
        return eprintln!("skipped: namespaces cannot be made here");
    };
    let job = Job::start_by(4, "wait:0", &[("TUTTI_HEAP_MIB", "1")], |rank, program| {
        let mut command = Command::new("ip");
        let host = &hosts.0[rank as usize % 2];
        command.args(["netns", "exec", host]).arg(program);
        command
    });
    let mut waiting = 0;
    while waiting < 4 {
        let line = job.next_line().expect("all ranks come to wait");
        assert!(!line.text.starts_with("open-error"), "{line:?}");
        waiting += u32::from(line.text == "waiting");
    }

    let cut_at = Instant::now();
    hosts.cut();

    let lines = job.finish();
    // Five times the stated bound, on a crowded machine.
    assert!(cut_at.elapsed() < Duration::from_secs(25));
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in lines {
        let first_of_the_other = 1 - line.rank % 2;
        let named = line
            .text
            .starts_with(&format!("rank {first_of_the_other} is lost"));
        assert!(named, "{line:?}");
    }
}
