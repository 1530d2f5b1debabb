//! The example on two and three hosts under each launcher: the spikes of a run on one host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::emulated::Hosts;
use crate::example::{EXAMPLE, Example, RANKS, music};
use crate::{wanted_long, wheels};

/// The launcher of MPICH 5, with our agent for its ssh; `None` with the reason printed.
pub(crate) fn hydra(example: &Example<'_>, options: &[&str]) -> Option<Command> {
    let mut command = example.front(wheels::MPICH.program("mpiexec")?);
    command.args(["-launcher", "ssh", "-launcher-exec"]);
    command.arg(example.hosts.agent());
    command.args(["-hosts", &example.hosts.names().join(",")]);
    command.args(options).args(["-np", RANKS]).arg(music());
    command.arg(EXAMPLE);
    Some(command)
}

fn open_mpi_4(example: &Example<'_>) -> Option<Command> {
    let program = Path::new("/usr/bin/mpirun.openmpi");
    if !program.is_file() {
        println!("skipped: {} is not there", program.display());
        return None;
    }
    Some(open_mpi(
        example,
        program.into(),
        ["--mca", "plm_rsh_agent"],
    ))
}

fn open_mpi_5(example: &Example<'_>) -> Option<Command> {
    let program = wheels::OPEN_MPI.program("mpirun")?;
    Some(open_mpi(example, program, ["--prtemca", "plm_ssh_agent"]))
}

/// A launcher of Open MPI, with our agent for its ssh.
fn open_mpi(example: &Example<'_>, program: PathBuf, agent: [&str; 2]) -> Command {
    let mut command = example.front(program);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PRTE_ALLOW_RUN_AS_ROOT", "1");
    command.env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(agent).arg(example.hosts.agent());
    let slots = |host: &String| format!("{host}:2");
    let hosts: Vec<String> = example.hosts.names().iter().map(slots).collect();
    command.args(["--host", &hosts.join(","), "-np", RANKS]);
    // It passes on no variable of ours by itself.
    command.args(["-x", "TUTTI_HEAP_MIB", "-x", "TUTTI_FABRIC"]);
    command.arg(music()).arg(EXAMPLE);
    command
}

/// Two hosts have the spikes of one: by shared memory on each and `tcp` between them, and by `tcp`
/// between all ranks.
#[track_caller]
fn two_hosts_have_the_spikes_of_one(launcher: impl Fn(&Example<'_>) -> Option<Command>) {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, "1.0");
    let alone = example.alone();
    for fabric in ["auto", "tcp"] {
        let Some(mut command) = launcher(&example) else {
            return;
        };
        command.env("TUTTI_FABRIC", fabric);

        assert_eq!(example.verdict_of(&mut command), alone, "{fabric}");
    }
}

#[test]
fn our_launcher_gives_two_hosts_the_spikes_of_one() {
    two_hosts_have_the_spikes_of_one(|example| Some(example.across()));
}

#[test]
fn hydra_gives_two_hosts_the_spikes_of_one() {
    two_hosts_have_the_spikes_of_one(|example| hydra(example, &["-ppn", "2"]));
}

#[test]
fn open_mpi_4_gives_two_hosts_the_spikes_of_one() {
    two_hosts_have_the_spikes_of_one(open_mpi_4);
}

#[test]
fn open_mpi_5_gives_two_hosts_the_spikes_of_one() {
    two_hosts_have_the_spikes_of_one(open_mpi_5);
}

#[test]
fn every_launcher_gives_two_and_three_hosts_the_spikes_of_one() {
    if !wanted_long() {
        return;
    }
    for count in [2, 3] {
        let Some(hosts) = Hosts::start(count) else {
            return;
        };
        let example = Example::lasting(&hosts, "1.0");
        let alone = example.alone();
        for (name, command) in [
            ("music run", Some(example.across())),
            ("Hydra 5, blocks", hydra(&example, &["-ppn", "2"])),
            ("Hydra 5, in turn", hydra(&example, &["-ppn", "1"])),
            ("Open MPI 4", open_mpi_4(&example)),
            ("Open MPI 5", open_mpi_5(&example)),
        ] {
            let Some(mut command) = command else {
                continue;
            };
            command.env("TUTTI_FABRIC", "auto");
            let verdict = example.verdict_of(&mut command);
            assert_eq!(verdict, alone, "{name}, {count} hosts");
            println!("{name}, {count} hosts: {}", verdict.trim());
        }
    }
}
