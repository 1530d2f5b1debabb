//! The example on two and three hosts under each launcher: the spikes of a run on one host.

use std::path::Path;
use std::process::Command;

use crate::emulated::Hosts;
use crate::example::{EXAMPLE, Example, RANKS, music};
use crate::wanted_long;

/// The launcher of MPICH 5, with our agent for its ssh; `None` with the reason printed.
pub(crate) fn hydra(example: &Example<'_>, options: &[&str]) -> Option<Command> {
    let mut command = launcher(example, "/opt/mpich5/bin/mpiexec")?;
    command.args(["-launcher", "ssh", "-launcher-exec"]);
    command.arg(example.hosts.agent());
    command.args(["-hosts", &example.hosts.names().join(",")]);
    command.args(options).args(["-np", RANKS]).arg(music());
    command.arg(EXAMPLE);
    Some(command)
}

/// A launcher of Open MPI, with our agent for its ssh.
fn open_mpi(example: &Example<'_>, program: &str, agent: [&str; 2]) -> Option<Command> {
    let mut command = launcher(example, program)?;
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PRTE_ALLOW_RUN_AS_ROOT", "1");
    command.env("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(agent).arg(example.hosts.agent());
    let slots = |host: &String| format!("{host}:2");
    let hosts: Vec<String> = example.hosts.names().iter().map(slots).collect();
    command.args(["--host", &hosts.join(","), "-np", RANKS]);
    // It passes on no variable of ours by itself.
    command.args(["-x", "TUTTI_HEAP_MIB"]);
    command.arg(music()).arg(EXAMPLE);
    Some(command)
}

/// A launcher on h0, if it is here.
fn launcher(example: &Example<'_>, program: &str) -> Option<Command> {
    if !Path::new(program).is_file() {
        println!("skipped: {program} is not there");
        return None;
    }
    Some(example.front(program))
}

#[test]
fn our_launcher_gives_two_hosts_the_spikes_of_one() {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, "1.0");
    let alone = example.alone();

    for fabric in ["auto", "tcp"] {
        let mut command = example.across();
        command.env("TUTTI_FABRIC", fabric);

        assert_eq!(example.verdict_of(&mut command), alone, "{fabric}");
    }
}

#[test]
fn hydra_gives_two_hosts_the_spikes_of_one() {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, "1.0");
    let Some(mut blocks) = hydra(&example, &["-ppn", "2"]) else {
        return;
    };

    assert_eq!(example.verdict_of(&mut blocks), example.alone());
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
        let open_mpi_4 = ["--mca", "plm_rsh_agent"];
        let open_mpi_5 = ["--prtemca", "plm_ssh_agent"];
        for (name, command) in [
            ("music run", Some(example.across())),
            ("Hydra 5, blocks", hydra(&example, &["-ppn", "2"])),
            ("Hydra 5, in turn", hydra(&example, &["-ppn", "1"])),
            (
                "Open MPI 4",
                open_mpi(&example, "/usr/bin/mpirun.openmpi", open_mpi_4),
            ),
            (
                "Open MPI 5",
                open_mpi(&example, "/opt/ompi5/bin/mpirun", open_mpi_5),
            ),
        ] {
            let Some(mut command) = command else {
                continue;
            };
            let verdict = example.verdict_of(&mut command);
            assert_eq!(verdict, alone, "{name}, {count} hosts");
            println!("{name}, {count} hosts: {}", verdict.trim());
        }
    }
}
