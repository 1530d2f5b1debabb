//! Why a network endpoint could not be opened or joined.

use transport_core::Rank;

/// Why a network endpoint could not be opened or joined. Every message is one line.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OfiError {
    /// There is no library, or it is too old.
    #[error("{0}")]
    Library(String),
    /// A name that no provider has.
    #[error("there is no provider {name:?}; known are {}", super::provider::KNOWN)]
    UnknownProvider {
        /// As it was given.
        name: String,
    },
    /// The library has no such provider, or it finds no device for it.
    #[error(
        "libfabric {version} offers no {name} here ({cause}); `music fabric` lists what it offers"
    )]
    NotOffered {
        /// The provider.
        name: String,
        /// Version of the library.
        version: String,
        /// What the library said.
        cause: String,
    },
    /// A call failed.
    #[error("{provider}: cannot {what}: {cause}{}", advice(provider, *code))]
    Call {
        /// The provider.
        provider: String,
        /// What was asked of it.
        what: &'static str,
        /// What the library said.
        cause: String,
        /// The error's number.
        code: i32,
    },
    /// The provider claims to work but a put to itself did not arrive.
    #[error("{provider} does not work here: {what} within {seconds} s; choose another by --fabric")]
    Probe {
        /// The provider.
        provider: String,
        /// What did not happen.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A rank uses another provider or library.
    #[error("{rank} has {theirs} where this rank has {ours}: all ranks need the same libfabric")]
    Differs {
        /// Which one.
        rank: Rank,
        /// What it has.
        theirs: String,
        /// What this rank has.
        ours: String,
    },
    /// A rank published something that this version does not understand.
    #[error("{rank} does not speak this version's protocol: is it the same build?")]
    Garbled {
        /// Which one.
        rank: Rank,
    },
    /// Ranks did not answer over the network.
    #[error(
        "{provider}: no connection with {rank} in time ({missing} missing in all{cause}); is \
         {ours} reachable from there?"
    )]
    Late {
        /// The provider.
        provider: String,
        /// The first that is missing.
        rank: Rank,
        /// How many are missing.
        missing: usize,
        /// The last error, in words, or nothing.
        cause: String,
        /// The own address.
        ours: String,
    },
    /// `TUTTI_OFI_TEST` makes no sense.
    #[error("TUTTI_OFI_TEST: {0:?} is not understood")]
    BadTest(String),
    /// No memory for the endpoint's own buffers.
    #[error("no memory for the network's buffers ({bytes} bytes): {cause}")]
    Memory {
        /// How many bytes.
        bytes: usize,
        /// The system's reason.
        cause: String,
    },
}

/// What to do about the errors that people meet on Slingshot.
fn advice(provider: &str, code: i32) -> &'static str {
    let of_the_job = code == EINVAL || code == ENODATA;
    if provider.starts_with("cxi") && of_the_job {
        "; the launcher must give the job a virtual network (SLINGSHOT_VNIS)"
    } else {
        ""
    }
}

const EINVAL: i32 = 22;
const ENODATA: i32 = 61;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_on_slingshot_names_the_variable_that_is_missing() {
        let error = |provider: &str| OfiError::Call {
            provider: provider.into(),
            what: "open the endpoint",
            cause: "Invalid argument".into(),
            code: EINVAL,
        };

        assert!(error("cxi").to_string().contains("SLINGSHOT_VNIS"));
        assert_eq!(
            error("tcp").to_string(),
            "tcp: cannot open the endpoint: Invalid argument"
        );
    }
}
