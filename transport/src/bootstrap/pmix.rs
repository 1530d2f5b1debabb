//! PMIx, through `libpmix.so.2` opened at run time: Open MPI 4 and 5, PRRTE, Slurm with
//! `--mpi=pmix`.
//!
//! PMIx files a value under the rank that put it, and a `get` has to name that rank. So each rank
//! puts one text per fence, with everything that it published, and reads those of all ranks after
//! the fence.

use std::path::Path;
use std::time::Duration;

use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::{AT_FENCE, Exchange, Joined, Notice, Table};
use super::library::{Caller, Library, Wanted};
use super::pmix_calls::{Calls, Failed, Process, c_string};

/// Variable that names the file of the library.
pub(crate) const KNOB: &str = "TUTTI_LIBPMIX";

/// Longest value: PMIx has no bound of its own.
const VALUE_MAX: usize = 4096;

/// Joins by PMIx.
pub(crate) fn join(
    patience: Patience,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Joined, BootstrapError> {
    let names = candidates(lookup);
    let library = Library::open(
        &Wanted {
            knob: KNOB,
            names: &names,
            symbol: c"PMIx_Init",
            advice: "install libpmix2, or whatever package of the launcher has it",
        },
        lookup,
    )?;
    let calls = Calls::of(&library)?;
    let name = library.name().to_owned();
    let mut caller = Caller::start(format!("PMIx ({name})"))?;
    let started = caller.call("PMIx_Init", patience.answer(), move || {
        let me = calls.init()?;
        let everyone = me.everyone();
        Ok((
            me,
            calls.number(everyone, c"pmix.job.size")?,
            calls.number(me, c"pmix.appnum").ok(),
            calls.number(everyone, c"pmix.univ.size").ok(),
        ))
    })?;
    let (me, size, app, universe) = started.map_err(|failed: Failed| failed.into_error(&name))?;
    super::predict::check_within("PMIX_RANK", me.rank, "pmix.job.size", size)?;
    Ok(Joined {
        rank: me.rank,
        size,
        app,
        universe,
        exchange: Box::new(Pmix {
            caller,
            calls,
            name,
            me,
            size,
            fences: 0,
            table: Table::default(),
            patience: patience.of_rank(me.rank),
        }),
    })
}

/// Where the library may be: inside the launcher's own folders, since a library of another version
/// than the server's works but complains, then where the loader finds it.
fn candidates(lookup: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    const OWN: [&str; 4] = [
        "PMIX_PREFIX",
        "OPAL_PREFIX",
        "PRTE_PREFIX",
        "PMIX_INSTALL_PREFIX",
    ];
    let mut names = Vec::new();
    for prefix in OWN.iter().filter_map(|variable| lookup(variable)) {
        for folder in ["lib", "lib64", "lib/openmpi"] {
            let file = format!("{prefix}/{folder}/libpmix.so.2");
            if !names.contains(&file) && Path::new(&file).is_file() {
                names.push(file);
            }
        }
    }
    names.extend(["libpmix.so.2", "libpmix.so"].map(str::to_owned));
    names
}

struct Pmix {
    caller: Caller,
    calls: Calls,
    name: String,
    me: Process,
    size: u32,
    fences: u64,
    table: Table,
    patience: Patience,
}

impl std::fmt::Debug for Pmix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pmix({} of {}, {})", self.me.rank, self.size, self.name)
    }
}

impl Exchange for Pmix {
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        self.table.put(key, value)
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, BootstrapError> {
        Ok(self.table.get(key))
    }

    fn barrier(&mut self, notice: &mut Notice<'_>) -> Result<(), BootstrapError> {
        let (text, fence) = (self.table.take_fresh(), self.fences);
        self.fences += 1;
        let (calls, me, size) = (self.calls, self.me, self.size);
        let texts = self
            .caller
            .call_telling(AT_FENCE, self.patience.fence(), notice, move || {
                calls.exchange(me, size, fence, &text)
            })?
            .map_err(|failed| failed.into_error(&self.name))?;
        for text in texts {
            let learnt = self.table.learn(&text);
            learnt.map_err(|line| BootstrapError::Meeting {
                problem: format!("a rank published {line:?}, which is nothing of ours"),
            })?;
        }
        Ok(())
    }

    fn fence_within(&self) -> Duration {
        self.patience.fence()
    }

    fn value_max(&self) -> usize {
        VALUE_MAX
    }

    fn nodes(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        let (calls, me, size) = (self.calls, self.me, self.size);
        let awaited = "the node of each rank";
        self.caller.call(awaited, self.patience.answer(), move || {
            calls.nodes(me, size)
        })
    }

    fn abort(&mut self, code: i32, message: &str) {
        let message = c_string(super::wire::one_word(message));
        let calls = self.calls;
        // A launcher that is gone has no job to end.
        let _ = self
            .caller
            .call("PMIx_Abort", self.patience.answer(), move || {
                calls.abort(code, &message)
            });
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        let calls = self.calls;
        self.caller
            .call("PMIx_Finalize", self.patience.answer(), move || {
                calls.finalize()
            })?
            .map_err(|failed| failed.into_error(&self.name))
    }
}
