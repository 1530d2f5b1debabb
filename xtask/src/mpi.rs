//! `cargo xtask mpi`: what takes over calls of unmodified MPI programs, a library for each MPI.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::process;
use crate::workspace::Workspace;

/// Which MPI, and where to.
#[derive(Args)]
pub(crate) struct Options {
    /// The compiler of the MPI that the program uses
    #[arg(long, default_value = "mpicc")]
    mpicc: PathBuf,
    /// The folder that gets libtutti_mpi.so [default: tutti-mpi in the target folder]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Makes the library and says how to use it.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    process::run(&mut workspace.cargo(&["build", "--release", "--package", "tutti-mpi"]))?;
    let folder = options.out.clone();
    let folder = folder.unwrap_or_else(|| workspace.target().join("tutti-mpi"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let library = folder.join("libtutti_mpi.so");
    let mut build = Command::new(workspace.root().join("tutti-mpi/build.sh"));
    build.arg(&options.mpicc);
    build.arg(workspace.target().join("release/libtutti_mpi_group.a"));
    process::run(build.arg(&library))?;
    println!(
        "mpirun -x LD_PRELOAD={0} ... (Open MPI), -genv LD_PRELOAD {0} (MPICH)",
        library.display()
    );
    Ok(true)
}
