//! Why a shared memory fabric could not be opened.

use transport_core::Rank;

use crate::bootstrap::RendezvousError;

/// Why a fabric could not be opened. Every message is one line that says whose fault it is.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// An environment variable makes no sense.
    #[error("{name} is {value:?}, not a whole number from 1 on")]
    BadOption {
        /// The variable.
        name: &'static str,
        /// What it is set to.
        value: String,
    },
    /// The name of a fabric makes no sense.
    #[error("TUTTI_FABRIC is {value:?}, not the name of a fabric such as auto, shm or tcp")]
    BadFabric {
        /// What it is set to.
        value: String,
    },
    /// Ranks were told to use different fabrics.
    #[error(
        "rank 0 was told to use the fabric {first}, {rank} to use {other}: set TUTTI_FABRIC alike"
    )]
    FabricsDiffer {
        /// What rank 0 was told.
        first: String,
        /// A rank that was told otherwise.
        rank: Rank,
        /// What it was told.
        other: String,
    },
    /// Ranks of several nodes have memory of different sizes.
    #[error(
        "rank 0 has {first}, {rank} {other}: set TUTTI_HEAP_MIB and TUTTI_COUNTERS alike on \
         all hosts"
    )]
    SizesDiffer {
        /// What rank 0 has.
        first: String,
        /// A rank that has something else.
        rank: Rank,
        /// What it has.
        other: String,
    },
    /// Shared memory was asked for, but not all ranks are on one host.
    #[error(
        "rank 0 is on host {first}, {rank} on host {other}: they share no memory, and TUTTI_FABRIC \
         forbids a network"
    )]
    HostsDiffer {
        /// Where rank 0 is.
        first: String,
        /// A rank elsewhere.
        rank: Rank,
        /// Where it is.
        other: String,
    },
    /// More ranks than a job on several nodes is made for.
    #[error("{ranks} ranks; a job on several nodes has at most 16384")]
    TooManyNodes {
        /// How many there are.
        ranks: u32,
    },
    /// The network between nodes does not work.
    #[error("{rank} cannot use the network: {cause}")]
    Network {
        /// This rank.
        rank: Rank,
        /// What is wrong.
        cause: String,
    },
    /// The ranks could not meet.
    #[error(transparent)]
    Rendezvous(#[from] RendezvousError),
    /// The segment is larger than what the machine or a control group has left.
    #[error(
        "no memory for {ranks} ranks with a heap of {heap_mib} MiB each ({bytes} bytes together): \
         {cause}; lower TUTTI_HEAP_MIB or start fewer ranks"
    )]
    Memory {
        /// Ranks of this node.
        ranks: u32,
        /// Size of each heap.
        heap_mib: u64,
        /// Size of the segment; `u64::MAX` if it cannot be expressed.
        bytes: u64,
        /// What is lacking.
        cause: String,
    },
    /// More ranks on one node than the fabric is made for.
    #[error("{ranks} ranks on one node; shared memory carries at most {most}")]
    TooManyRanks {
        /// How many there are.
        ranks: u32,
        /// How many there may be.
        most: u32,
    },
    /// This rank does not reach the rank that hands out the shared memory.
    #[error(
        "{rank} on host {host} cannot reach {leader} on host {leader_host} ({cause}): shared \
         memory needs all ranks alive on one host, and several hosts need a network fabric"
    )]
    Unreachable {
        /// This rank.
        rank: Rank,
        /// Its host.
        host: String,
        /// The rank that hands the memory out.
        leader: Rank,
        /// Its host.
        leader_host: String,
        /// The system's reason.
        cause: String,
    },
    /// A rank did not come in time.
    #[error("{rank} did not {expected} within {seconds} s ({missing} missing in all)")]
    Late {
        /// The first that is missing.
        rank: Rank,
        /// What it should have done.
        expected: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// How many are missing in all.
        missing: u32,
    },
    /// A rank ended while the fabric was opened.
    #[error("{rank} ended while the ranks opened their shared memory")]
    Ended {
        /// Which one.
        rank: Rank,
    },
    /// A rank speaks another version of this protocol, or something else.
    #[error("{rank} does not speak this version's protocol ({what}): is it the same build?")]
    Garbled {
        /// Which one.
        rank: Rank,
        /// What it sent.
        what: &'static str,
    },
    /// Another rank gave up and said why.
    #[error("{reason} (reported by {by})")]
    GivenUp {
        /// Which one.
        by: Rank,
        /// Its error line.
        reason: String,
    },
    /// The system refused something that every supported system grants.
    #[error("{rank} cannot {doing}: {cause}")]
    System {
        /// This rank.
        rank: Rank,
        /// What was refused.
        doing: &'static str,
        /// The system's reason.
        cause: String,
    },
}

impl OpenError {
    /// The system refused something that every supported system grants.
    pub(crate) fn system(rank: Rank, doing: &'static str, cause: &std::io::Error) -> Self {
        let cause = cause.to_string();
        Self::System { rank, doing, cause }
    }

    /// The same with the ranks' numbers in the job, given by their places on this node.
    pub(super) fn named(mut self, names: &[Rank]) -> Self {
        let name = |rank: &mut Rank| *rank = names.get(rank.index()).copied().unwrap_or(*rank);
        match &mut self {
            Self::Late { rank, .. }
            | Self::Ended { rank }
            | Self::Garbled { rank, .. }
            | Self::GivenUp { by: rank, .. }
            | Self::System { rank, .. } => name(rank),
            Self::Unreachable { rank, leader, .. } => {
                name(rank);
                name(leader);
            }
            _ => {}
        }
        self
    }
}

/// Makes an [`OpenError::System`] of a system's reason.
pub(super) fn refused<E: std::fmt::Display>(
    rank: Rank,
    doing: &'static str,
) -> impl FnOnce(E) -> OpenError {
    move |cause| OpenError::System {
        rank,
        doing,
        cause: cause.to_string(),
    }
}
