//! A Slurm of three nodes on this machine, for tests: no systemd, no munge, no name service, all
//! its files in a folder of its own, all its processes in a PID namespace that ends with it.
//!
//! Use from another test by `#[path = ".../transport/tests/support/slurm.rs"] mod slurm;`.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use self::settings::SETTINGS;

#[path = "slurm_settings.rs"]
mod settings;

/// Nodes of the cluster: `n1`, `n2`, `n3`, all with the address 127.0.0.1.
pub(crate) const NODES: usize = 3;
/// How long the nodes may take to come up.
const START: Duration = Duration::from_secs(60);
/// How long the daemons live at most, whatever happens to the test.
const LIFE_SECONDS: u32 = 300;

/// A running cluster; ends with the value.
pub(crate) struct Slurm {
    folder: PathBuf,
    daemons: Child,
}

impl Slurm {
    /// Starts a cluster, or says why there is none.
    pub(crate) fn start() -> Option<Self> {
        if let Some(reason) = missing() {
            println!("skipped: {reason}");
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tutti-slurm-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        for sub in ["state", "log"] {
            fs::create_dir_all(folder.join(sub)).unwrap();
        }
        for node in 1..=NODES {
            for of_node in ["spool", "tmp"] {
                fs::create_dir_all(folder.join(format!("{of_node}.n{node}"))).unwrap();
            }
        }
        fs::write(folder.join("slurm.conf"), configuration(&folder)).unwrap();
        let daemons = daemons(&folder).spawn().unwrap();
        let cluster = Self { folder, daemons };
        cluster.wait_until_idle();
        Some(cluster)
    }

    /// A client of this cluster: `srun`, `salloc`, `sinfo`.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }

    fn wait_until_idle(&self) {
        let deadline = Instant::now() + START;
        let wanted = format!("idle {NODES}");
        loop {
            let said = self
                .command("sinfo")
                .args(["-h", "-o", "%t %D"])
                .stderr(Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            if said.trim() == wanted {
                return;
            }
            let log = || fs::read_to_string(self.folder.join("log/slurmctld.log"));
            assert!(
                Instant::now() < deadline,
                "{said}\n{}",
                log().unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The namespace ends with its first process, and that with this one.
        let _ = self.daemons.kill();
        let _ = self.daemons.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What keeps a cluster from being started here.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("a Slurm of one's own needs root".to_owned());
    }
    for program in [
        "slurmctld",
        "slurmd",
        "srun",
        "sinfo",
        "setpriv",
        "unshare",
        "timeout",
    ] {
        let found = std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        });
        if !found {
            return Some(format!(
                "{program} is not there; run `apt-get install --no-install-recommends slurmctld \
                 slurmd slurm-client slurm-wlm-basic-plugins`"
            ));
        }
    }
    forbidden()
}

/// Why namespaces cannot be made here though this is root: some containers forbid it.
fn forbidden() -> Option<String> {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "20", "unshare", "--pid", "--fork"]);
    command.args(["--kill-child=KILL", "--mount", "--mount-proc", "true"]);
    let why = match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return None,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("namespaces cannot be made here: {why}"))
}

/// The daemons in a PID namespace whose end is theirs, and which ends with this thread.
fn daemons(folder: &Path) -> Command {
    const SCRIPT: &str = "slurmctld -D & for n in \"$@\"; do slurmd -D -N $n & done; wait";
    let life = LIFE_SECONDS.to_string();
    let mut command = Command::new("setpriv");
    command
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--pid",
            "--fork",
            "--kill-child=KILL",
        ])
        .args(["--mount", "--mount-proc", "timeout", "-s", "KILL", &life])
        .args(["sh", "-c", SCRIPT, "sh"])
        .args((1..=NODES).map(|node| format!("n{node}")))
        .env("SLURM_CONF", folder.join("slurm.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn configuration(folder: &Path) -> String {
    let ports = free_ports(NODES + 1);
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let base = folder.display();
    let mut text = format!(
        "ClusterName=one\n\
         SlurmctldHost={host}(127.0.0.1)\n\
         SlurmctldPort={}\n\
         StateSaveLocation={base}/state\n\
         SlurmdSpoolDir={base}/spool.%n\n\
         SlurmctldPidFile={base}/slurmctld.pid\n\
         SlurmdPidFile={base}/slurmd.%n.pid\n\
         SlurmctldLogFile={base}/log/slurmctld.log\n\
         SlurmdLogFile={base}/log/slurmd.%n.log\n\
         TmpFS={base}/tmp.%n\n\
         {SETTINGS}",
        ports[0]
    );
    for (node, port) in (1..).zip(&ports[1..]) {
        writeln!(
            text,
            "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 \
             RealMemory=1000 State=UNKNOWN"
        )
        .unwrap();
    }
    text
}

/// Ports that were free a moment ago, all different.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    held.iter().map(port).collect()
}
