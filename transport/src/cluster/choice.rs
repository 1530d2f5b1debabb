//! Which fabric a job is told to use.

use std::fmt;

use crate::shm::OpenError;

/// Which fabric a job is told to use. All ranks must be told the same.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// Shared memory if all ranks share a host, else the best network that is there.
    #[default]
    Auto,
    /// Shared memory.
    Shm,
    /// A network by the name of its provider, between all ranks, those of one host too.
    Provider(String),
}

impl Choice {
    /// By a name: `auto`, `shm`, or that of a provider; layers are separated by `;` or `:`.
    pub fn from_name(name: &str) -> Self {
        match name.trim() {
            "" | "auto" => Self::Auto,
            "shm" => Self::Shm,
            provider => Self::Provider(provider.replace(':', ";")),
        }
    }

    /// By the variable `TUTTI_FABRIC`; [`Choice::Auto`] if it is not set.
    ///
    /// # Errors
    /// [`OpenError::BadFabric`] if the name cannot be one.
    pub fn from_environment() -> Result<Self, OpenError> {
        let Ok(value) = std::env::var(FABRIC_VARIABLE) else {
            return Ok(Self::Auto);
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:;".contains(c);
        if value.len() <= 64 && value.chars().all(allowed) {
            Ok(Self::from_name(&value))
        } else {
            Err(OpenError::BadFabric { value })
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Shm => "shm",
            Self::Provider(name) => name,
        })
    }
}

/// The variable that names the fabric.
pub const FABRIC_VARIABLE: &str = "TUTTI_FABRIC";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_layered_providers_have_one_form() {
        let layered = Choice::from_name("tcp:ofi_rxm");

        assert_eq!(layered, Choice::from_name("tcp;ofi_rxm"));
        assert_eq!(Choice::from_name(&layered.to_string()), layered);
        assert_eq!(Choice::from_name("auto"), Choice::Auto);
        assert_eq!(Choice::from_name("shm"), Choice::Shm);
    }
}
