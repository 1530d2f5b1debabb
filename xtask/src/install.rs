//! Installing what a task needs and does not find: Debian packages as root or through sudo.

use std::process::Command;

use crate::process;

/// A program that a task needs, and the Debian packages that bring it.
pub(crate) struct Need {
    /// Any of these on PATH will do.
    pub(crate) programs: &'static [&'static str],
    pub(crate) packages: &'static [&'static str],
}

/// What `cargo build` and `cargo test` need besides Rust.
pub(crate) const C_LINKER: Need = Need {
    programs: &["cc", "gcc", "clang"],
    packages: &["gcc", "libc6-dev"],
};

/// Installs libfabric, opened when a network is asked for, if it is not there.
///
/// Without it nothing fails: tests that need it say that they are left out.
pub(crate) fn libfabric() {
    let Err(absent) = libfabric_sys::Library::open() else {
        return;
    };
    println!("{absent}");
    // Whoever names a file wants that one, which no package brings.
    let is_named = std::env::var_os(libfabric_sys::PATH_VARIABLE).is_some();
    if !is_named && let Err(error) = install(&["libfabric1"]) {
        println!("going on without libfabric: {error}");
    }
}

/// What tests make hosts of network namespaces with.
pub(crate) const HOSTS: &[Need] = &[Need {
    programs: &["ip"],
    packages: &["iproute2"],
}];

/// What long tests do to those hosts and start on them besides. Launchers of MPI are taken where
/// they are there.
pub(crate) const LONG: &[Need] = &[
    Need {
        programs: &["nft"],
        packages: &["nftables"],
    },
    Need {
        programs: &["slurmctld"],
        packages: &["slurmctld"],
    },
    Need {
        programs: &["slurmd"],
        packages: &["slurmd", "slurm-wlm-basic-plugins"],
    },
    Need {
        programs: &["srun"],
        packages: &["slurm-client"],
    },
];

/// Installs what is not there of these needs.
///
/// Without it nothing fails: tests that need it say that they are left out.
pub(crate) fn if_possible(needs: &[Need]) {
    if let Err(error) = ensure(needs) {
        println!("going on without: {error}");
    }
}

/// Installs the packages of every need that is not met.
///
/// # Errors
/// What is missing and how to get it by hand, if it cannot be installed here.
pub(crate) fn ensure(needs: &[Need]) -> Result<(), String> {
    let unmet = needs
        .iter()
        .filter(|need| process::first_on_path(need.programs).is_none());
    let packages: Vec<&str> = unmet.flat_map(|need| need.packages).copied().collect();
    if packages.is_empty() {
        return Ok(());
    }
    install(&packages)
}

fn install(packages: &[&str]) -> Result<(), String> {
    let names = packages.join(" ");
    println!("installing {names}");
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    apt_get(&["update"])
        .and_then(|()| apt_get(&install))
        .map_err(|error| format!("{error}; install by hand: apt-get install {names}"))
}

fn apt_get(args: &[&str]) -> Result<(), String> {
    if process::first_on_path(&["apt-get"]).is_none() {
        return Err("no apt-get on this machine".into());
    }
    let root = process::output(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if root { "apt-get" } else { "sudo" });
    if !root {
        // -n: a password prompt would wait for ever where nobody is looking.
        command.args(["-n", "apt-get"]);
    }
    process::run(command.env("DEBIAN_FRONTEND", "noninteractive").args(args))
}
