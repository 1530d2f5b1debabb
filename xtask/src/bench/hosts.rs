//! Two hosts that this machine plays: network namespaces joined by a cable, each with its own name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// The hosts; removed with the value.
pub(super) struct Hosts {
    prefix: String,
    /// Runs a command on a host, as `ssh` would: `agent HOST COMMAND...`.
    agent: PathBuf,
}

impl Hosts {
    /// Makes them, or says why that is not possible.
    pub(super) fn new(folder: &Path) -> Result<Self, String> {
        let prefix = format!("tutti-bench-{}-", std::process::id());
        let hosts = Self {
            agent: folder.join(format!("{prefix}agent")),
            prefix,
        };
        hosts.write_agent()?;
        for host in NAMES {
            ip(&format!("netns add {}", hosts.namespace(host)))?;
        }
        let [one, two] = NAMES.map(|host| hosts.namespace(host));
        ip(&format!(
            "-n {one} link add {INTERFACE} type veth peer name {INTERFACE} netns {two}"
        ))?;
        for (number, host) in (1..).zip([one, two]) {
            let address = format!("10.78.{}.{number}/24", std::process::id() % 250);
            ip(&format!("-n {host} addr add {address} dev {INTERFACE}"))?;
            ip(&format!("-n {host} link set {INTERFACE} up"))?;
            ip(&format!("-n {host} link set lo up"))?;
        }
        Ok(hosts)
    }

    /// The namespaces, as our benches take them.
    pub(super) fn namespaces(&self) -> String {
        NAMES.map(|host| self.namespace(host)).join(",")
    }

    pub(super) fn agent(&self) -> &Path {
        &self.agent
    }

    /// The same command, run on the first host.
    pub(super) fn on_first(&self, command: &Command) -> Command {
        let mut there = Command::new(&self.agent);
        there.arg(NAMES[0]).arg(command.get_program());
        there.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => there.env(name, value),
                None => there.env_remove(name),
            };
        }
        there
    }

    fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// A launcher may give options before the host, and the command in any number of words.
    fn write_agent(&self) -> Result<(), String> {
        let text = format!(
            "#!/bin/sh\n\
             while [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
             host=$1; shift\n\
             exec ip netns exec \"{}$host\" unshare -u \\\n\
             \x20   sh -c 'hostname \"$0\" && exec sh -c \"$*\"' \"$host\" \"$@\"\n",
            self.prefix
        );
        fs::write(&self.agent, text)
            .and_then(|()| fs::set_permissions(&self.agent, fs::Permissions::from_mode(0o755)))
            .map_err(|error| format!("{}: {error}", self.agent.display()))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in NAMES {
            // One that was not made cannot be removed, and that is all that can be wrong here.
            let _ = ip(&format!("netns del {}", self.namespace(host)));
        }
        let _ = fs::remove_file(&self.agent);
    }
}

/// As launchers call them.
pub(super) const NAMES: [&str; 2] = ["h1", "h2"];

/// The end of the cable on either host.
pub(super) const INTERFACE: &str = "eth0";

fn ip(arguments: &str) -> Result<(), String> {
    process::output(Command::new("ip").args(arguments.split(' '))).map(|_| ())
}
