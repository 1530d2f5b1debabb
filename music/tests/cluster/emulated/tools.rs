//! What emulated hosts need of the machine.

use std::path::Path;

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
    absent.map(|Tool { program, package }| {
        format!(
            "{program} is not there; run `apt-get install --no-install-recommends {package}`, or \
             `cargo xtask test` as root"
        )
    })
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
