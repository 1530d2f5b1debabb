//! What the ranks of a job know and strangers do not, and proofs of knowing it.
//!
//! The secret itself never travels: each side sends a number used once, and proves by a keyed hash
//! of both that it knows the secret.

use std::fmt;

use hmac_sha256::{HMAC, Hash};

/// Variable that holds the secret of a job.
pub(crate) const SECRET_VARIABLE: &str = "TUTTI_JOB_SECRET";

/// Bytes of a proof.
pub(crate) const PROOF: usize = 32;
/// Bytes of a number used once.
pub(crate) const NONCE: usize = 16;

/// A key; it is never shown.
#[derive(Clone)]
pub(crate) struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Which side proves, so that a proof cannot be sent back as one of the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Root,
    Member,
}

impl Secret {
    /// The user's ([`SECRET_VARIABLE`]), or the launcher's (`PMI_SHARED_SECRET`). Without either,
    /// what names this job: that tells jobs from each other and from strangers that stray in, but
    /// hides nothing from a user of the same cluster who looks for this job's numbers.
    pub(crate) fn of_job(lookup: &impl Fn(&str) -> Option<String>) -> Self {
        const NAMES_A_JOB: [&str; 8] = [
            "PALS_APID",
            "SLURM_CLUSTER_NAME",
            "SLURM_JOB_ID",
            "SLURM_STEP_ID",
            "SLURM_JOB_UID",
            "SLURM_JOB_NODELIST",
            "SLURM_STEP_LAUNCHER_PORT",
            "SLURM_SUBMIT_DIR",
        ];
        for variable in [SECRET_VARIABLE, "PMI_SHARED_SECRET"] {
            if let Some(secret) = lookup(variable).filter(|value| !value.is_empty()) {
                return Self::hashed("given", &[&secret]);
            }
        }
        let parts = NAMES_A_JOB.map(|name| lookup(name).unwrap_or_default());
        Self::hashed("job", &parts.each_ref().map(String::as_str))
    }

    fn hashed(purpose: &str, parts: &[&str]) -> Self {
        let mut hash = Hash::new();
        hash.update(b"tutti bootstrap ");
        hash.update(purpose.as_bytes());
        for part in parts {
            // Parts end in a zero byte, which no variable holds.
            hash.update([0]);
            hash.update(part.as_bytes());
        }
        Self(hash.finalize())
    }

    /// Proves to the other side, which sent part of `said`.
    pub(crate) fn proof(&self, side: Side, said: &[&[u8]]) -> [u8; PROOF] {
        let mut mac = HMAC::new(self.0);
        mac.update(match side {
            Side::Root => b"root",
            Side::Member => b"rank",
        });
        for part in said {
            mac.update(part);
        }
        mac.finalize()
    }

    /// Whether the other side knows the secret.
    pub(crate) fn accepts(&self, side: Side, said: &[&[u8]], proof: &[u8]) -> bool {
        let expected = self.proof(side, said);
        // All bytes are looked at, so that the time tells nothing about where they differ.
        let differing = expected
            .iter()
            .zip(proof)
            .fold(0, |seen, (a, b)| seen | (a ^ b));
        proof.len() == PROOF && std::hint::black_box(differing) == 0
    }
}

/// A number that nobody can foresee.
pub(crate) fn nonce() -> std::io::Result<[u8; NONCE]> {
    let mut bytes = [0; NONCE];
    // Up to 256 bytes come at once.
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(variables: &[(&str, &str)]) -> Secret {
        Secret::of_job(&|name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_who_knows_the_secret_can_prove_it() {
        let said: [&[u8]; 2] = [b"one", b"two"];
        let job = secret(&[("SLURM_JOB_ID", "7")]);
        let proof = job.proof(Side::Member, &said);

        assert!(job.accepts(Side::Member, &said, &proof));
        assert!(!job.accepts(Side::Root, &said, &proof));
        assert!(!job.accepts(Side::Member, &[b"one", b"tw0"], &proof));
        assert!(!job.accepts(Side::Member, &said, &proof[1..]));
        assert!(!job.accepts(Side::Member, &said, &[]));
        for other in [
            &[("SLURM_JOB_ID", "8")][..],
            &[("SLURM_STEP_ID", "7")],
            &[("SLURM_JOB_ID", "7"), ("PMI_SHARED_SECRET", "x")],
            &[("SLURM_JOB_ID", "7"), ("TUTTI_JOB_SECRET", "x")],
            &[],
        ] {
            assert!(
                !secret(other).accepts(Side::Member, &said, &proof),
                "{other:?}"
            );
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let job = secret(&[("TUTTI_JOB_SECRET", "hidden")]);

        assert_eq!(format!("{job:?}"), "Secret(..)");
    }
}
