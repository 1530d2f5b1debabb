//! Installing what a task needs and does not find: Debian packages as root or through sudo.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::process;

/// Something that a task needs, and the Debian packages that bring it.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    pub(crate) sign: Sign,
    pub(crate) packages: &'static [&'static str],
}

/// By what one sees that a need is met.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    /// Any of these is on PATH, or where PATH of a user does not lead.
    Program(&'static [&'static str]),
    /// A shared library of this name is where Debian puts them.
    Library(&'static str),
    /// libfabric can be opened, or a file is named, which no package brings.
    Libfabric,
    /// Python can make environments.
    PythonVenv,
}

const fn program(name: &'static [&'static str], packages: &'static [&'static str]) -> Need {
    Need {
        sign: Sign::Program(name),
        packages,
    }
}

/// What `cargo build` and `cargo test` need besides Rust.
pub(crate) const C_LINKER: Need = program(&["cc", "gcc", "clang"], &["gcc", "libc6-dev"]);

/// Opened when a network is asked for.
pub(crate) const LIBFABRIC: Need = Need {
    sign: Sign::Libfabric,
    packages: &["libfabric1"],
};

/// What installs wheels.
pub(crate) const PYTHON: Need = Need {
    sign: Sign::PythonVenv,
    packages: &["python3-venv"],
};

/// What tests use where it is there: a network, hosts made of namespaces, and launchers.
pub(crate) const TESTS: &[Need] = &[
    LIBFABRIC,
    program(&["ip"], &["iproute2"]),
    program(&["mpirun.openmpi"], &["openmpi-bin"]),
    program(&["mpiexec.mpich"], &["mpich"]),
    program(&["mpicc.openmpi"], &["libopenmpi-dev"]),
    program(&["mpicc.mpich"], &["libmpich-dev"]),
    program(&["mpif90.openmpi", "mpif90.mpich"], &["gfortran"]),
    program(&["slurmctld"], &["slurmctld"]),
    program(&["slurmd"], &["slurmd", "slurm-wlm-basic-plugins"]),
    program(&["srun"], &["slurm-client"]),
    Need {
        sign: Sign::Library("libpmi2.so.0"),
        packages: &["libpmi2-0"],
    },
];

/// What long tests do to those hosts besides.
pub(crate) const LONG: &[Need] = &[
    program(&["nft"], &["nftables"]),
    program(&["sshd"], &["openssh-server"]),
    program(&["ssh"], &["openssh-client"]),
];

/// libfabric's headers, from which its structures are taken.
pub(crate) const LIBFABRIC_HEADERS: &[&str] = &["libfabric-dev"];

/// Installs what is not there of these needs; whether all is there then.
///
/// Without it nothing fails: tests that need it say that they are left out.
pub(crate) fn if_possible(needs: &[Need]) -> bool {
    let unmet: Vec<Need> = needs
        .iter()
        .filter(|need| !need.is_met())
        .copied()
        .collect();
    if unmet.is_empty() {
        return true;
    }
    if let Err(error) = ensure(&unmet) {
        println!("{error}");
        // A distribution that lacks one package may have the others.
        for need in unmet.iter().filter(|_| unmet.len() > 1) {
            let _ = apt_get_install(need.packages);
        }
    }
    let without = unmet.iter().filter(|need| !need.is_met());
    let without: Vec<&str> = without.flat_map(|need| need.packages).copied().collect();
    if !without.is_empty() {
        println!("going on without {}", without.join(" "));
    }
    without.is_empty()
}

/// Installs the packages of every need that is not met.
///
/// # Errors
/// What is missing and how to get it by hand, if it cannot be installed here.
pub(crate) fn ensure(needs: &[Need]) -> Result<(), String> {
    let unmet = needs.iter().filter(|need| !need.is_met());
    let packages: Vec<&str> = unmet.flat_map(|need| need.packages).copied().collect();
    if packages.is_empty() {
        return Ok(());
    }
    packages_now(&packages)
}

/// Installs these packages, after a look at what there is.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn packages_now(packages: &[&str]) -> Result<(), String> {
    let names = packages.join(" ");
    println!("installing {names}");
    apt_get(&["update"])
        .and_then(|()| apt_get_install(packages))
        .map_err(|error| format!("{error}; install by hand: apt-get install {names}"))
}

impl Need {
    fn is_met(&self) -> bool {
        match self.sign {
            Sign::Program(names) => process::first_on_path(names).is_some() || is_of_root(names),
            Sign::Library(name) => is_library(name),
            Sign::Libfabric => is_libfabric_there(),
            Sign::PythonVenv => can_make_environments(),
        }
    }
}

/// Whether any of these is where the PATH of a user may not lead.
fn is_of_root(names: &[&str]) -> bool {
    let folders = ["/usr/sbin", "/sbin"].map(Path::new);
    let mut files = names
        .iter()
        .flat_map(|name| folders.map(|folder| folder.join(name)));
    files.any(|file| file.is_file())
}

/// Whether a file of this name is in `/usr/lib` or in a folder of an architecture there.
fn is_library(name: &str) -> bool {
    let root = Path::new("/usr/lib");
    let folders = fs::read_dir(root).into_iter().flatten().flatten();
    let mut files = folders.map(|folder| folder.path().join(name));
    root.join(name).is_file() || files.any(|file| file.is_file())
}

fn is_libfabric_there() -> bool {
    let is_named = std::env::var_os(libfabric_sys::PATH_VARIABLE).is_some();
    is_named || libfabric_sys::Library::open().is_ok()
}

/// Debian's Python has the module `venv` without what it installs pip from.
fn can_make_environments() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import ensurepip, venv"]);
    python.stdin(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn apt_get_install(packages: &[&str]) -> Result<(), String> {
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    apt_get(&install)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_met_and_nothing_else() {
        assert!(program(&["no-such-program", "sh"], &[]).is_met());
        assert!(!program(&["no-such-program"], &["none"]).is_met());
        assert!(!is_library("libnosuch.so.0"));
    }
}
