//! Lines of the PMI-1 wire protocol: `cmd=NAME key=value key=value`.
//!
//! A line is split at blanks and each word at its first `=`. The servers differ in the order of
//! their words (MPICH's says `msg=` before `value=`, Slurm's says `rc=` first and no `msg=`), so
//! nothing is taken to be the rest of a line. Only after a word that carries free text may bare
//! words follow: they belong to it.

/// Longest key that every server takes.
pub(crate) const KEY_MAX: usize = 64;
/// Longest value of a line that every server takes; ours are shorter than [`VALUE_SAFE`].
pub(crate) const VALUE_MAX: usize = 1024;
/// Longest value we send: Slurm refuses request lines over 1,023 bytes although it announces more.
pub(crate) const VALUE_SAFE: usize = 512;
/// Longest line that either side takes.
pub(crate) const LINE_MAX: usize = 4096 + 512;

/// Words whose value may hold blanks.
const FREE_TEXT: [&str; 3] = ["msg", "error_msg", "message"];

/// One line, borrowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message<'a> {
    /// The value of `cmd=` (or `mcmd=`).
    pub(crate) command: &'a str,
    fields: Vec<(&'a str, &'a str)>,
}

/// Why a line is not one of the protocol.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("it is empty")]
    Empty,
    #[error("byte {position} is not printable ASCII")]
    NotText { position: usize },
    #[error("it does not start with `cmd=`")]
    NoCommand,
    #[error("{word:?} is not of the form key=value")]
    BareWord { word: String },
    #[error("{key:?} appears twice")]
    Twice { key: String },
    #[error("it has no `{key}=`")]
    Lacks { key: &'static str },
    #[error("`{key}={value}` is not a number")]
    NotANumber { key: &'static str, value: String },
}

impl<'a> Message<'a> {
    /// Reads a line without its newline.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, Malformed> {
        let text = printable(line)?;
        let mut fields: Vec<(&str, &str)> = Vec::new();
        let mut at = 0;
        for word in text.split(' ') {
            let start = at;
            at += word.len() + 1;
            if word.is_empty() {
                continue;
            }
            match word.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    if fields.iter().any(|(other, _)| *other == key) {
                        return Err(Malformed::Twice { key: key.into() });
                    }
                    fields.push((key, value));
                }
                _ => extend_free_text(&mut fields, text, start + word.len(), word)?,
            }
        }
        let Some((key, command)) = fields.first().copied() else {
            return Err(Malformed::Empty);
        };
        if !matches!(key, "cmd" | "mcmd") || command.is_empty() {
            return Err(Malformed::NoCommand);
        }
        Ok(Self { command, fields })
    }

    /// The value of a key.
    pub(crate) fn field(&self, key: &str) -> Option<&'a str> {
        let found = self.fields.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value)
    }

    /// The value of a key that must be there.
    pub(crate) fn needed(&self, key: &'static str) -> Result<&'a str, Malformed> {
        self.field(key).ok_or(Malformed::Lacks { key })
    }

    /// The number of a key that must be there.
    pub(crate) fn number(&self, key: &'static str) -> Result<i64, Malformed> {
        let value = self.needed(key)?;
        value.parse().map_err(|_| Malformed::NotANumber {
            key,
            value: value.into(),
        })
    }
}

fn printable(line: &[u8]) -> Result<&str, Malformed> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let foreign = |byte: &u8| !(b' '..=b'~').contains(byte);
    if let Some(position) = line.iter().position(foreign) {
        return Err(Malformed::NotText { position });
    }
    std::str::from_utf8(line).map_err(|error| Malformed::NotText {
        position: error.valid_up_to(),
    })
}

fn extend_free_text<'a>(
    fields: &mut [(&'a str, &'a str)],
    text: &'a str,
    end: usize,
    word: &str,
) -> Result<(), Malformed> {
    let bare = || Malformed::BareWord { word: word.into() };
    let (key, value) = fields.last_mut().ok_or(Malformed::NoCommand)?;
    if !FREE_TEXT.contains(key) {
        return Err(bare());
    }
    // Both are parts of `text`, so their addresses differ by positions within it.
    let start = value.as_ptr() as usize - text.as_ptr() as usize;
    *value = text.get(start..end).ok_or_else(bare)?;
    Ok(())
}

/// A text as one word: what is not printable, and blanks, become `_`.
pub(crate) fn one_word(text: &str) -> String {
    text.chars()
        .take(400)
        .map(|c| if c.is_ascii_graphic() { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_may_come_in_any_order() {
        for line in [
            "cmd=get_result rc=0 msg=success value=ab=c",
            "cmd=get_result value=ab=c rc=0",
            "  cmd=get_result   rc=0 value=ab=c \r",
        ] {
            let message = Message::parse(line.as_bytes()).unwrap();

            assert_eq!(message.command, "get_result", "{line:?}");
            assert_eq!(message.field("value"), Some("ab=c"), "{line:?}");
            assert_eq!(message.number("rc"), Ok(0), "{line:?}");
        }
    }

    #[test]
    fn free_text_may_hold_blanks_and_other_values_may_not() {
        let message = Message::parse(b"cmd=get_result msg=no such  key rc=-1").unwrap();
        assert_eq!(message.field("msg"), Some("no such  key"));
        assert_eq!(message.number("rc"), Ok(-1));

        let word = "b".to_owned();
        assert_eq!(
            Message::parse(b"cmd=put value=a b"),
            Err(Malformed::BareWord { word })
        );
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        let twice = |key: &str| Malformed::Twice { key: key.into() };
        for (line, expected) in [
            (&b""[..], Malformed::Empty),
            (b"   ", Malformed::Empty),
            (b"put key=a", Malformed::NoCommand),
            (b"key=a cmd=put", Malformed::NoCommand),
            (b"cmd= key=a", Malformed::NoCommand),
            (b"=put", Malformed::NoCommand),
            (b"cmd=put key=a key=b", twice("key")),
            (b"cmd=a cmd=b", twice("cmd")),
            (b"cmd=a\tb", Malformed::NotText { position: 5 }),
            (b"cmd=\xff", Malformed::NotText { position: 4 }),
        ] {
            assert_eq!(Message::parse(line), Err(expected), "{line:?}");
        }
    }

    #[test]
    fn no_bytes_whatever_break_the_parser() {
        let mut random = crate::bootstrap::testing::Random::new(7);
        let vocabulary = b"cmd=msg =\n\r\0\xffkey value rc=0 ";
        for _ in 0..200_000 {
            let length = random.below(60);
            let line: Vec<u8> = (0..length)
                .map(|_| vocabulary[random.below(vocabulary.len())])
                .collect();

            if let Ok(message) = Message::parse(&line) {
                assert!(!message.command.is_empty());
                assert!(message.fields.iter().all(|(key, _)| !key.is_empty()));
            }
        }
    }

    #[test]
    fn any_text_becomes_one_word() {
        assert_eq!(one_word("rank 3:\nlost"), "rank_3:_lost");
    }
}
