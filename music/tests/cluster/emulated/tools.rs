//! What emulated hosts need of the machine.

use std::path::Path;
use std::process::{Command, Stdio};

/// A program, and the Debian package that brings it.
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

/// What makes hosts and cables.
const ALWAYS: &[Tool] = &[
    tool("ip", "iproute2"),
    tool("nsenter", "util-linux"),
    tool("setpriv", "util-linux"),
    tool("timeout", "coreutils"),
    tool("unshare", "util-linux"),
];

pub(crate) const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// What keeps hosts, and these programs besides, from being here.
pub(crate) fn missing(tools: &[Tool]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("hosts of one's own need root".to_owned());
    }
    let absent = ALWAYS.iter().chain(tools).find(|tool| !is_here(tool));
    if let Some(Tool { program, package }) = absent {
        return Some(format!(
            "{program} is not there; run `apt-get install --no-install-recommends {package}`, or \
             `cargo xtask test` as root"
        ));
    }
    forbidden()
}

/// Why namespaces cannot be made here though this is root: some containers forbid it, and a root
/// that is no mount point, as in a chroot, cannot be made private.
fn forbidden() -> Option<String> {
    let script = "ip link add v0 type veth peer name v1 && ip addr add 10.0.0.1/24 dev v0";
    let mut command = Command::new("timeout");
    command.args([
        "-s", "KILL", "20", "unshare", "-n", "-u", "-i", "-m", "-p", "-f",
    ]);
    command.args(["--kill-child=KILL", "--mount-proc", "sh", "-c", script]);
    let why = match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("namespaces cannot be made here: {why}"))
}

fn is_here(tool: &Tool) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).collect::<Vec<_>>();
    // Where a user's PATH does not lead, and root's need not either.
    folders.extend(["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).to_owned()));
    folders
        .iter()
        .any(|folder| folder.join(tool.program).is_file())
}
