//! `music run` by `ssh` itself, to a daemon of OpenSSH on each emulated host. Here the launcher
//! hears of the hosts by the network that is cut, not by pipes of this machine.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::emulated::{Hosts, Started, Tool, tool};
use crate::example::{EXAMPLE, Example, music};
use crate::wanted_long;

const TOOLS: &[Tool] = &[
    tool("ssh", "openssh-client"),
    tool("ssh-keygen", "openssh-client"),
    tool("sshd", "openssh-server"),
];
/// Five times what an agent may be silent.
const SILENCE: Duration = Duration::from_secs(25);

/// A daemon on each host, which end with it.
struct Daemons {
    _running: Vec<Started>,
}

/// Hosts that take whoever has the key of their folder, and an h0 that shows it.
fn start(hosts: &Hosts) -> Daemons {
    let folder = hosts.folder().join("ssh");
    fs::create_dir_all(&folder).unwrap();
    let key = folder.join("key");
    let mut keygen = hosts.front("ssh-keygen");
    keygen
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key);
    hosts.run(&mut keygen).succeeds();
    fs::write(folder.join("sshd_config"), of_daemon(&folder)).unwrap();
    fs::write(folder.join("ssh_config"), of_client(&folder)).unwrap();
    let mut bind = hosts.front("mount");
    bind.arg("--bind").arg(folder.join("ssh_config"));
    hosts.run(bind.arg("/etc/ssh/ssh_config")).succeeds();
    let running = hosts.names().iter().map(|host| daemon(hosts, host));
    let daemons = Daemons {
        _running: running.collect(),
    };
    hosts.names().iter().for_each(|host| answers(hosts, host));
    daemons
}

fn daemon(hosts: &Hosts, host: &str) -> Started {
    let folder = hosts.folder().join("ssh");
    let line = format!(
        "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && \
         exec /usr/sbin/sshd -D -e -f {}/sshd_config",
        folder.display()
    );
    hosts.spawn(hosts.front(hosts.agent()).args([host, &line]))
}

/// Waits until the daemon of a host lets this key in.
fn answers(hosts: &Hosts, host: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut ssh = hosts.front("ssh");
        let ended = hosts.run(ssh.args(["-o", "BatchMode=yes", host, "hostname"]));
        if ended.code == 0 {
            assert_eq!(ended.said.lines().last(), Some(host));
            return;
        }
        assert!(Instant::now() < deadline, "{host}: {}", ended.said);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn of_daemon(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "HostKey {folder}/key\n\
         AuthorizedKeysFile {folder}/key.pub\n\
         StrictModes no\n\
         PasswordAuthentication no\n\
         PermitRootLogin prohibit-password\n\
         UsePAM no\n\
         PidFile none\n"
    )
}

fn of_client(folder: &Path) -> String {
    let mut text = "Host *\n".to_owned();
    for option in [
        &format!("IdentityFile {}/key", folder.display()),
        "IdentitiesOnly yes",
        "StrictHostKeyChecking no",
        "UserKnownHostsFile /dev/null",
        "LogLevel ERROR",
    ] {
        writeln!(text, "{option}").unwrap();
    }
    text
}

/// `music run` across all hosts, by what it takes where nothing else is said.
fn by_ssh(example: &Example<'_>) -> Command {
    let mut command = example.front(music());
    let names = example.hosts.names().join(",");
    command.args(["run", "--hosts", &names, EXAMPLE]);
    command
}

#[test]
fn ssh_gives_two_hosts_the_spikes_of_one() {
    if !wanted_long() {
        return;
    }
    let Some(hosts) = Hosts::start_with(2, TOOLS) else {
        return;
    };
    let _daemons = start(&hosts);
    let example = Example::lasting(&hosts, "1.0");
    let alone = example.alone();

    assert_eq!(example.verdict_of(&mut by_ssh(&example)), alone);
}

#[test]
fn a_cable_that_is_cut_under_ssh_ends_the_run_on_both_sides() {
    if !wanted_long() {
        return;
    }
    let Some(hosts) = Hosts::start_with(2, TOOLS) else {
        return;
    };
    let _daemons = start(&hosts);
    for port in ["v1", "v2", "v0"] {
        let example = Example::lasting(&hosts, "1e6");
        let run = example.in_the_middle(&mut by_ssh(&example));

        hosts.on_switch(&format!("ip link set {port} down"));

        let cut = Instant::now();
        let ended = run.finish();
        println!("{port}: after {:?}:\n{}", cut.elapsed(), ended.said);
        assert!(cut.elapsed() < SILENCE, "{:?}", cut.elapsed());
        ended.fails_with(&["lost"]);
        if port != "v0" {
            hosts
                .names()
                .iter()
                .for_each(|host| example.ends_on(host, SILENCE));
        }
        hosts.on_switch(&format!("ip link set {port} up"));
    }
}
