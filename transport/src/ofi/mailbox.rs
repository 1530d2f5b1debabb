//! What ranks tell each other in lines of 64 bytes, over a network that promises no order.
//!
//! Each rank has a ring of lines for every peer that may write to it. A line is seven words and a
//! *seal*, a hash of these and of the line's number. Its reader knows the number of the line that
//! comes next at that place of the ring, so a line that has not come, has come in part, or is the
//! one of the lap before does not carry the right seal, whatever the order in which its bytes
//! landed. A *letter* is one line; the bytes of a put follow it in lines of their own.
//!
//! Here is the pure part: what stands in a line. `post` moves them.

use super::request::{How, Raise};

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;

/// Bytes of a put that one line carries.
pub(super) const PAYLOAD_BYTES: usize = 56;

/// A line without its seal.
pub(super) type Payload = [u64; 7];

/// What a line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Letter {
    /// Bytes for a position of the segment follow; the counter is raised after the last of them.
    Put {
        /// First position.
        at: u64,
        /// How many, not 0.
        bytes: u64,
        /// What to raise then.
        raise: Option<Raise>,
    },
    /// Raises a counter.
    Raise(Raise),
    /// Adds to a counter and asks for the value before.
    FetchAdd {
        /// Position of the counter's line in the segment.
        line: u64,
        /// By how much.
        amount: u64,
        /// Comes back with the answer.
        token: u64,
    },
    /// The value before.
    Answer {
        /// As it was asked.
        token: u64,
        /// The value.
        value: u64,
    },
    /// The first words of a connection; to be answered.
    Hello,
    /// To be answered after a while, since whoever asks goes to sleep.
    WakeMe,
    /// The answer to either.
    Welcome,
    /// No more hellos come.
    Enough,
}

/// A line that no rank of the same build writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Garbled;

/// A line as it stands in a ring.
pub(super) type Line = [u64; 8];

/// Line `number` with this payload. Its words are masked by the number, so that each differs from
/// what stood there a lap before: a line that can be opened has landed to its last word.
pub(super) fn seal(number: u64, payload: &Payload) -> Line {
    let mask = mix(number.wrapping_add(SALT));
    let mut line = [0; 8];
    for (place, (word, plain)) in line.iter_mut().zip(payload).enumerate() {
        *word = plain ^ mask_of(mask, place);
    }
    line[7] = hash(mask, payload);
    line
}

/// The payload of line `number`, if this is it.
fn open(number: u64, line: &Line) -> Option<Payload> {
    let mask = mix(number.wrapping_add(SALT));
    let payload = std::array::from_fn(|place| line[place] ^ mask_of(mask, place));
    (line[7] == hash(mask, &payload)).then_some(payload)
}

fn hash(mask: u64, payload: &Payload) -> u64 {
    // Not from the mask itself: that would cancel out against the first word as it stands in the
    // ring, and its number with it.
    let hash = payload
        .iter()
        .fold(mix(mask), |hash, word| mix(hash ^ word));
    hash | 1 // a fresh ring is zero
}

fn mask_of(mask: u64, place: usize) -> u64 {
    mask.rotate_left(8 * place as u32)
}

impl Letter {
    pub(super) fn fetch_add(line: usize, amount: u64, token: u64) -> Self {
        Self::FetchAdd {
            line: line as u64,
            amount,
            token,
        }
    }

    /// As a line.
    pub(super) fn to_line(self) -> Payload {
        let raised = |raise: Option<Raise>| match raise.map(|raise| (raise.line as u64, raise.how))
        {
            None => [0, 0, 0],
            Some((line, How::Set(value))) => [1, line, value],
            Some((line, How::Add(amount))) => [2, line, amount],
        };
        match self {
            Self::Put { at, bytes, raise } => {
                let [how, line, value] = raised(raise);
                [PUT, at, bytes, how, line, value, 0]
            }
            Self::Raise(raise) => {
                let [how, line, value] = raised(Some(raise));
                [RAISE, 0, 0, how, line, value, 0]
            }
            Self::FetchAdd {
                line,
                amount,
                token,
            } => [FETCH_ADD, line, amount, token, 0, 0, 0],
            Self::Answer { token, value } => [ANSWER, token, value, 0, 0, 0, 0],
            Self::Hello => [HELLO, 0, 0, 0, 0, 0, 0],
            Self::Welcome => [WELCOME, 0, 0, 0, 0, 0, 0],
            Self::WakeMe => [WAKE_ME, 0, 0, 0, 0, 0, 0],
            Self::Enough => [ENOUGH, 0, 0, 0, 0, 0, 0],
        }
    }

    /// From a line.
    pub(super) fn from_line(line: &Payload) -> Result<Self, Garbled> {
        let raise = || {
            let place = usize::try_from(line[4]).map_err(|_| Garbled)?;
            let how = match line[3] {
                0 => return Ok(None),
                1 => How::Set(line[5]),
                2 => How::Add(line[5]),
                _ => return Err(Garbled),
            };
            Ok(Some(Raise { line: place, how }))
        };
        Ok(match line[0] {
            PUT if line[2] > 0 => Self::Put {
                at: line[1],
                bytes: line[2],
                raise: raise()?,
            },
            RAISE => Self::Raise(raise()?.ok_or(Garbled)?),
            FETCH_ADD => Self::FetchAdd {
                line: line[1],
                amount: line[2],
                token: line[3],
            },
            ANSWER => Self::Answer {
                token: line[1],
                value: line[2],
            },
            HELLO => Self::Hello,
            WELCOME => Self::Welcome,
            WAKE_ME => Self::WakeMe,
            ENOUGH => Self::Enough,
            _ => return Err(Garbled),
        })
    }
}

/// What the next line of a peer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Came {
    /// A put announced itself: its bytes come next.
    Announced,
    /// Bytes of a put; after the last ones the counter is to be raised.
    Bytes {
        /// Where they go in the segment.
        at: u64,
        /// The bytes.
        bytes: [u8; PAYLOAD_BYTES],
        /// How many of them count.
        count: usize,
        /// What to raise now.
        raise: Option<Raise>,
    },
    /// Anything else.
    Letter(Letter),
}

/// Reads the lines of one peer in their order.
#[derive(Debug, Default)]
pub(super) struct Reader {
    next: u64,
    rest: Option<Rest>,
}

/// What is still to come of a put.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: u64,
    bytes: u64,
    raise: Option<Raise>,
}

impl Reader {
    /// The number of the line that comes next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Reads the next line if this is it.
    pub(super) fn read(&mut self, line: &Line) -> Result<Option<Came>, Garbled> {
        let Some(payload) = &open(self.next, line) else {
            return Ok(None);
        };
        self.next += 1;
        if let Some(rest) = self.rest.take() {
            return Ok(Some(self.bytes(rest, payload)));
        }
        match Letter::from_line(payload)? {
            Letter::Put { at, bytes, raise } => {
                at.checked_add(bytes).ok_or(Garbled)?;
                self.rest = Some(Rest { at, bytes, raise });
                Ok(Some(Came::Announced))
            }
            letter => Ok(Some(Came::Letter(letter))),
        }
    }

    fn bytes(&mut self, rest: Rest, payload: &Payload) -> Came {
        let count = rest.bytes.min(PAYLOAD_BYTES as u64);
        let last = count == rest.bytes;
        if !last {
            self.rest = Some(Rest {
                at: rest.at + count,
                bytes: rest.bytes - count,
                raise: rest.raise,
            });
        }
        let mut bytes = [0; PAYLOAD_BYTES];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(payload) {
            *chunk = word.to_ne_bytes();
        }
        Came::Bytes {
            at: rest.at,
            bytes,
            count: usize::try_from(count).expect("at most a line"),
            raise: rest.raise.filter(|_| last),
        }
    }
}

/// A payload of bytes; the rest is zero.
pub(super) fn payload_of(bytes: &[u8]) -> Payload {
    let mut line = [0; PAYLOAD_BYTES];
    line[..bytes.len()].copy_from_slice(bytes);
    let mut payload = [0; 7];
    for (word, chunk) in payload.iter_mut().zip(line.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*chunk);
    }
    payload
}

/// A permutation of the words in which every bit depends on every other.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let word = (word ^ (word >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ (word >> 32)
}

const SALT: u64 = 0x7475_7474_6921_0001;
const PUT: u64 = 1;
const RAISE: u64 = 2;
const FETCH_ADD: u64 = 3;
const ANSWER: u64 = 4;
const HELLO: u64 = 5;
const WELCOME: u64 = 6;
const ENOUGH: u64 = 7;
const WAKE_ME: u64 = 8;

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
