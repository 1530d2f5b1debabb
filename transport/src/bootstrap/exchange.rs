//! What every way to meet offers: put, fence, get; and the table that most of them share.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::error::BootstrapError;
use super::wire::KEY_MAX;

/// What a rank waits for at a fence, for errors.
pub(crate) const AT_FENCE: &str =
    "all ranks to join, as a program that does not use MUSIC never does,";

/// A conversation with whoever carries values between the ranks of this job.
pub(crate) trait Exchange: fmt::Debug + Send {
    /// Publishes a word under a key, visible to all after the next [`barrier`](Self::barrier).
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError>;
    /// The word published under a key before the last barrier; `None` if nobody did.
    fn get(&mut self, key: &str) -> Result<Option<String>, BootstrapError>;
    /// Waits until every rank has come here.
    fn barrier(&mut self, notice: &mut Notice<'_>) -> Result<(), BootstrapError>;
    /// How long a barrier may take.
    fn fence_within(&self) -> Duration;
    /// Values are shorter than this.
    fn value_max(&self) -> usize;
    /// The node of each rank, if it is known.
    fn nodes(&mut self) -> Result<Option<Vec<u32>>, BootstrapError>;
    /// Asks for the end of the whole job, as far as there is somebody to ask.
    fn abort(&mut self, code: i32, message: &str);
    /// Leaves in order, without waiting for other ranks.
    fn finalize(&mut self) -> Result<(), BootstrapError>;
}

/// Whom to tell when a wait takes long.
pub(crate) struct Notice<'a> {
    at: Option<Instant>,
    tell: &'a mut dyn FnMut(),
}

impl<'a> Notice<'a> {
    /// Calls `tell` once, when `after` has passed from now.
    pub(crate) fn after(after: Duration, tell: &'a mut dyn FnMut()) -> Self {
        Self {
            at: Instant::now().checked_add(after),
            tell,
        }
    }

    /// Tells if it is time. A wait until `deadline` should come back here at the time returned.
    pub(crate) fn next(&mut self, deadline: Instant) -> Instant {
        if self.at.is_some_and(|at| at <= Instant::now()) {
            self.at = None;
            (self.tell)();
        }
        self.at.map_or(deadline, |at| at.min(deadline))
    }
}

/// A place in a job, and the exchange with the others.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) app: Option<u32>,
    pub(crate) universe: Option<u32>,
    pub(crate) exchange: Box<dyn Exchange>,
}

/// Words under keys: those of all ranks before the last fence, and this rank's since then.
///
/// At a fence each rank hands over what it has put as one text, lines of `key value`, and learns
/// the texts of the others.
#[derive(Debug, Default)]
pub(crate) struct Table {
    known: HashMap<String, String>,
    fresh: String,
}

impl Table {
    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        check_key(key)?;
        check_value(key, value)?;
        self.fresh += &format!("{key} {value}\n");
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Option<String> {
        self.known.get(key).cloned()
    }

    /// What this rank has put since the last fence.
    pub(crate) fn take_fresh(&mut self) -> String {
        std::mem::take(&mut self.fresh)
    }

    /// Takes a text that [`take_fresh`](Self::take_fresh) of some rank gave; the error is the line
    /// that is none of ours.
    pub(crate) fn learn(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines() {
            match line.split_once(' ') {
                Some((key, value)) if is_word(key) && is_word(value) => {
                    self.known.insert(key.to_owned(), value.to_owned());
                }
                _ => return Err(line.chars().take(80).collect()),
            }
        }
        Ok(())
    }
}

/// Refuses what cannot be a key under every process manager.
pub(crate) fn check_key(key: &str) -> Result<(), BootstrapError> {
    if is_word(key) && !key.contains(['=', ';']) && key.len() < KEY_MAX {
        return Ok(());
    }
    Err(BootstrapError::Key {
        key: key.to_owned(),
        problem: format!(
            "it must be 1 to {} printable ASCII characters without blank, `=` and `;`",
            KEY_MAX - 1
        ),
    })
}

/// Refuses a value that is not one word.
pub(crate) fn check_value(key: &str, value: &str) -> Result<(), BootstrapError> {
    if is_word(value) {
        return Ok(());
    }
    Err(BootstrapError::Value {
        key: key.to_owned(),
        problem: "it must be printable ASCII characters without blanks".to_owned(),
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_knows_after_the_fence_what_every_rank_has_put() {
        let (mut ours, mut theirs) = (Table::default(), Table::default());
        ours.put("a", "1").unwrap();
        theirs.put("b", "2=;3").unwrap();
        assert_eq!(ours.get("a"), None);

        let texts = [ours.take_fresh(), theirs.take_fresh()];
        texts.iter().for_each(|text| ours.learn(text).unwrap());

        assert_eq!(ours.get("a"), Some("1".to_owned()));
        assert_eq!(ours.get("b"), Some("2=;3".to_owned()));
        assert_eq!(ours.get("c"), None);
        assert_eq!(ours.take_fresh(), "");
    }

    #[test]
    fn what_is_no_word_is_refused() {
        let mut table = Table::default();
        for key in [
            "",
            "a b",
            "a=b",
            "a;b",
            "a\nb",
            "\u{e4}",
            &"k".repeat(KEY_MAX),
        ] {
            assert!(
                matches!(table.put(key, "v"), Err(BootstrapError::Key { .. })),
                "{key:?}"
            );
        }
        for value in ["", "a b", "a\nb", "\u{e4}"] {
            let refused = table.put("k", value);
            assert!(
                matches!(refused, Err(BootstrapError::Value { .. })),
                "{value:?}"
            );
        }
        for text in ["k", "k ", " v", "k v w", "k v\n\n"] {
            assert!(table.learn(text).is_err(), "{text:?}");
        }
    }
}
