//! What tests force, so that the ways of hardware can be walked without it.
//!
//! `TUTTI_OFI_TEST` is for tests only: a comma list of `signal=order|fence|completion|mailbox`,
//! `atomics=none|emulated|native` (with `none` and `emulated` the target's processor serves),
//! `wait=none`, and `mr=basic|scalable` (how remote memory is addressed: by address and the
//! provider's key, or by position and ours).

use super::{OfiError, SignalMode};

/// What is not left to the probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forced {
    pub(super) signal: Option<SignalMode>,
    pub(super) native_atomics: Option<bool>,
    pub(super) no_wait: bool,
    pub(super) memory: Option<MemoryMode>,
}

/// How remote memory is addressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MemoryMode {
    /// By virtual address, with the provider's key.
    Basic,
    /// By position, with our key.
    Scalable,
}

impl Forced {
    /// From the environment.
    ///
    /// # Errors
    /// [`OfiError::BadTest`] if it is not understood.
    pub fn from_environment() -> Result<Self, OfiError> {
        match std::env::var(VARIABLE) {
            Ok(text) => Self::from_text(&text),
            Err(_) => Ok(Self::default()),
        }
    }

    pub(super) fn from_text(text: &str) -> Result<Self, OfiError> {
        let mut forced = Self::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            forced
                .apply(item)
                .ok_or_else(|| OfiError::BadTest(item.into()))?;
        }
        Ok(forced)
    }

    fn apply(&mut self, item: &str) -> Option<()> {
        match item.split_once('=')? {
            ("signal", mode) => self.signal = Some(SignalMode::from_name(mode)?),
            ("atomics", "native") => self.native_atomics = Some(true),
            ("atomics", "none" | "emulated") => self.native_atomics = Some(false),
            ("wait", "none") => self.no_wait = true,
            ("mr", "basic") => self.memory = Some(MemoryMode::Basic),
            ("mr", "scalable") => self.memory = Some(MemoryMode::Scalable),
            _ => return None,
        }
        Some(())
    }
}

const VARIABLE: &str = "TUTTI_OFI_TEST";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_forces_several_things() {
        let forced = Forced::from_text("signal=mailbox, atomics=none,wait=none,mr=basic").unwrap();

        assert_eq!(forced.signal, Some(SignalMode::Mailbox));
        assert_eq!(forced.native_atomics, Some(false));
        assert!(forced.no_wait);
        assert_eq!(forced.memory, Some(MemoryMode::Basic));
        assert_eq!(Forced::from_text(""), Ok(Forced::default()));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for item in ["signal=", "order", "mr=huge", "wait=fd"] {
            assert_eq!(Forced::from_text(item), Err(OfiError::BadTest(item.into())));
        }
    }
}
