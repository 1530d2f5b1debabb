//! What sentinels say to each other: a greeting, then news of eight bytes each.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt;
use rustix::rand::GetRandomFlags;
use transport_core::Rank;

use super::News;

/// What only the ranks of this job know.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::cluster) struct Secret([u8; 16]);

impl Secret {
    /// One that nobody can guess.
    pub(in crate::cluster) fn draw() -> io::Result<Self> {
        let mut bytes = [0; 16];
        let draw = || rustix::rand::getrandom(&mut bytes[..], GetRandomFlags::empty());
        let count = rustix::io::retry_on_intr(draw)?;
        match count {
            16 => Ok(Self(bytes)),
            _ => Err(io::Error::other("there are too few random bytes")),
        }
    }

    /// For the rendezvous of the job.
    pub(in crate::cluster) fn to_text(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    pub(in crate::cluster) fn from_text(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(text, 16).ok()?;
        Some(Self(number.to_be_bytes()))
    }

    /// Compares in a time that does not depend on where they differ.
    fn is(&self, other: &[u8]) -> bool {
        let differences = self.0.iter().zip(other).map(|(a, b)| a ^ b);
        other.len() == self.0.len() && differences.fold(0, |all, one| all | one) == 0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Makes the kernels of both ends notice within 5 s that the other is silent: the last sign of life
/// is at most 1 s old when the first question is sent, and 4 s without an answer end it.
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(1))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    sockopt::set_tcp_user_timeout(stream, 4_000)?;
    Ok(())
}

/// The first words of a node's first rank.
pub(super) fn say_hello(stream: &mut TcpStream, secret: &Secret, node: u32) -> io::Result<()> {
    let mut hello = [0; HELLO_BYTES];
    hello[..8].copy_from_slice(MAGIC);
    hello[8..24].copy_from_slice(&secret.0);
    hello[24..].copy_from_slice(&u64::from(node).to_le_bytes());
    stream.write_all(&hello)
}

/// The node that says hello; `None` if it is a stranger.
pub(super) fn greeted(hello: &[u8; HELLO_BYTES], secret: &Secret) -> Option<u32> {
    let known = secret.is(&hello[8..24]) && hello[..8] == *MAGIC;
    let node = hello[24..].try_into().map(u64::from_le_bytes).ok()?;
    u32::try_from(node).ok().filter(|_| known)
}

/// A connection that is read without waiting.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    begun: Vec<u8>,
}

impl Line {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            begun: Vec::new(),
        }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads the hello; `None` while it is not there in full, an error if the other side ended.
    pub(super) fn hear_hello(&mut self) -> io::Result<Option<[u8; HELLO_BYTES]>> {
        let ended = self.fill(HELLO_BYTES)?;
        match self.begun.split_first_chunk() {
            Some((hello, rest)) => {
                let hello = *hello;
                self.begun = rest.to_vec();
                Ok(Some(hello))
            }
            None if ended => Err(io::ErrorKind::UnexpectedEof.into()),
            None => Ok(None),
        }
    }

    /// All news that are there, and whether the other side ended.
    pub(super) fn hear(&mut self) -> (Vec<News>, bool) {
        let ended = self.fill(1 << 16).unwrap_or(true);
        let whole = self.begun.len() / NEWS_BYTES * NEWS_BYTES;
        let bytes: Vec<u8> = self.begun.drain(..whole).collect();
        let mut news = Vec::new();
        for word in bytes.as_chunks::<NEWS_BYTES>().0 {
            match News::from_bytes(*word) {
                Some(one) => news.push(one),
                None => return (news, true),
            }
        }
        (news, ended)
    }

    /// Says news; whether the other side took them.
    pub(super) fn say(&mut self, news: News) -> bool {
        // A few bytes always fit, unless the other side has not read thousands of them: then it is
        // stopped, and the next look will find it so or gone.
        self.stream.write_all(&news.to_bytes()).is_ok()
    }

    fn fill(&mut self, most: usize) -> io::Result<bool> {
        let mut chunk = [0; 1024];
        while self.begun.len() < most {
            let room = chunk.len().min(most - self.begun.len());
            match self.stream.read(&mut chunk[..room]) {
                Ok(0) => return Ok(true),
                Ok(count) => self.begun.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

impl News {
    fn to_bytes(self) -> [u8; NEWS_BYTES] {
        let (kind, rank) = match self {
            Self::Left(rank) => (LEFT, rank),
            Self::Lost(rank) => (LOST, rank),
        };
        (u64::from(kind) << 32 | u64::from(rank.0)).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; NEWS_BYTES]) -> Option<Self> {
        let word = u64::from_le_bytes(bytes);
        let rank = Rank(u32::try_from(word & u64::from(u32::MAX)).ok()?);
        match u32::try_from(word >> 32).ok()? {
            LEFT => Some(Self::Left(rank)),
            LOST => Some(Self::Lost(rank)),
            _ => None,
        }
    }
}

pub(super) const HELLO_BYTES: usize = 32;
const NEWS_BYTES: usize = 8;
const MAGIC: &[u8; 8] = b"tutti-s1";
const LEFT: u32 = 1;
const LOST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_survive_and_foreign_bytes_are_none() {
        for news in [News::Left(Rank(0)), News::Lost(Rank(u32::MAX - 1))] {
            assert_eq!(News::from_bytes(news.to_bytes()), Some(news));
        }
        assert_eq!(News::from_bytes(*b"GET / HT"), None);
    }

    #[test]
    fn only_who_knows_the_secret_is_greeted() {
        let secret = Secret::draw().unwrap();
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(MAGIC);
        hello[8..24].copy_from_slice(&secret.0);
        hello[24] = 7;

        assert_eq!(greeted(&hello, &secret), Some(7));
        hello[23] ^= 1;
        assert_eq!(greeted(&hello, &secret), None);
        let again = Secret::from_text(&secret.to_text());
        assert_eq!(again.as_ref(), Some(&secret));
        assert!(!format!("{secret:?}").contains(&secret.to_text()));
    }
}
