//! The example under a Slurm that has a daemon on each emulated host.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use self::settings::SETTINGS;
use crate::emulated::{Hosts, Started, Tool, tool};
use crate::example::{EXAMPLE, Example, RANKS, music};
use crate::wanted_long;

#[path = "../../../transport/tests/support/slurm_settings.rs"]
mod settings;

const TOOLS: &[Tool] = &[
    tool("slurmctld", "slurmctld"),
    tool("slurmd", "slurmd"),
    tool("srun", "slurm-client"),
    tool("sinfo", "slurm-client"),
];
/// What the nodes may take to come up.
const START: Duration = Duration::from_secs(90);

/// Slurm on some hosts, with its controller on h0; its daemons end with it.
struct Slurm<'a> {
    hosts: &'a Hosts,
    daemons: Vec<Started>,
}

impl<'a> Slurm<'a> {
    fn start(hosts: &'a Hosts) -> Self {
        fs::create_dir_all(hosts.folder().join("slurm/state")).unwrap();
        fs::write(configuration_file(hosts), configuration(hosts)).unwrap();
        let mut slurm = Self {
            hosts,
            daemons: Vec::new(),
        };
        let controller = hosts.spawn(slurm.command("slurmctld").arg("-D"));
        slurm.daemons.push(controller);
        for host in hosts.names() {
            let file = configuration_file(hosts);
            let line = format!("SLURM_CONF={} slurmd -D -N {host}", file.display());
            let mut command = hosts.front(hosts.agent());
            slurm.daemons.push(hosts.spawn(command.args([host, &line])));
        }
        slurm.wait_until_idle();
        slurm
    }

    /// A client on h0.
    fn command(&self, program: &str) -> Command {
        let mut command = self.hosts.front(program);
        command.env("SLURM_CONF", configuration_file(self.hosts));
        command.env("TUTTI_HEAP_MIB", "4");
        command
    }

    fn wait_until_idle(&self) {
        let deadline = Instant::now() + START;
        let wanted = format!("idle {}", self.hosts.names().len());
        loop {
            let mut command = self.command("sinfo");
            let said = self.hosts.run(command.args(["-h", "-o", "%t %D"])).said;
            if said.trim() == wanted {
                return;
            }
            let log = fs::read_to_string(self.hosts.folder().join("slurm/ctld.log"));
            assert!(Instant::now() < deadline, "{said}\n{log:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn configuration_file(hosts: &Hosts) -> PathBuf {
    hosts.folder().join("slurm/slurm.conf")
}

fn configuration(hosts: &Hosts) -> String {
    let base = hosts.folder().join("slurm");
    let base = base.display();
    let nodes = hosts.names().join(",");
    format!(
        "ClusterName=emulated\n\
         SlurmctldHost=h0\n\
         StateSaveLocation={base}/state\n\
         SlurmdSpoolDir={base}/spool.%n\n\
         SlurmctldPidFile={base}/ctld.pid\n\
         SlurmdPidFile={base}/%n.pid\n\
         SlurmctldLogFile={base}/ctld.log\n\
         SlurmdLogFile={base}/%n.log\n\
         NodeName={nodes} CPUs=8 RealMemory=1000 State=UNKNOWN\n\
         {SETTINGS}"
    )
}

/// A step of the example on all nodes.
fn step(slurm: &Slurm<'_>, mpi: &str) -> Command {
    let mut command = slurm.command("srun");
    command.args(["--kill-on-bad-exit", &format!("--mpi={mpi}")]);
    command.args(["-N", &slurm.hosts.names().len().to_string(), "-n", RANKS]);
    command.arg(music()).arg(EXAMPLE);
    command
}

#[test]
fn slurm_gives_two_hosts_the_spikes_of_one() {
    let Some(hosts) = Hosts::start_with(2, TOOLS) else {
        return;
    };
    let example = Example::lasting(&hosts, "1.0");
    let alone = example.alone();
    let slurm = Slurm::start(&hosts);
    for (mpi, fabric) in [("pmi2", "auto"), ("pmix", "tcp"), ("none", "tcp")] {
        let mut command = step(&slurm, mpi);
        command.env("TUTTI_FABRIC", fabric);

        assert_eq!(example.verdict_of(&mut command), alone, "{mpi} {fabric}");
    }
}

#[test]
fn slurm_gives_two_and_three_hosts_the_spikes_of_one_whatever_its_mpi() {
    if !wanted_long() {
        return;
    }
    for count in [2, 3] {
        let Some(hosts) = Hosts::start_with(count, TOOLS) else {
            return;
        };
        let example = Example::lasting(&hosts, "1.0");
        let alone = example.alone();
        let slurm = Slurm::start(&hosts);
        for mpi in ["pmi2", "pmix", "cray_shasta", "none"] {
            let verdict = example.verdict_of(&mut step(&slurm, mpi));

            assert_eq!(verdict, alone, "{mpi}, {count} hosts");
            println!("srun --mpi={mpi}, {count} hosts: {}", verdict.trim());
        }
    }
}
