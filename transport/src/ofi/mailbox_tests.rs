use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const RING: usize = 4;

fn letters() -> Vec<Letter> {
    let raise = |how| Raise { line: 4096, how };
    vec![
        Letter::Put {
            at: 8,
            bytes: 1,
            raise: None,
        },
        Letter::Put {
            at: u64::MAX - 9,
            bytes: 9,
            raise: Some(raise(How::Add(u64::MAX))),
        },
        Letter::Raise(raise(How::Set(7))),
        Letter::FetchAdd {
            line: 1,
            amount: 2,
            token: 3,
        },
        Letter::Answer { token: 4, value: 5 },
        Letter::Hello,
        Letter::Welcome,
        Letter::WakeMe,
        Letter::Enough,
    ]
}

#[test]
fn every_letter_survives_its_line() {
    for letter in letters() {
        assert_eq!(Letter::from_line(&letter.to_line()), Ok(letter));
    }
}

#[test]
fn lines_that_nobody_writes_are_refused() {
    for line in [
        [0; 7],
        [99, 0, 0, 0, 0, 0, 0],
        [PUT, 0, 0, 0, 0, 0, 0],
        [RAISE, 0, 0, 0, 0, 0, 0],
        [PUT, 0, 1, 3, 0, 0, 0],
    ] {
        assert_eq!(Letter::from_line(&line), Err(Garbled));
    }
    let mut reader = Reader::default();
    let past_the_end = [PUT, u64::MAX, 2, 0, 0, 0, 0];
    assert_eq!(reader.read(&seal(0, &past_the_end)), Err(Garbled));
}

#[test]
fn a_fresh_ring_and_the_lap_before_hold_no_line() {
    let mut reader = Reader::default();
    assert_eq!(reader.read(&[0; 8]), Ok(None));

    let hello = seal(0, &Letter::Hello.to_line());
    let came = reader.read(&hello);
    assert_eq!(came, Ok(Some(Came::Letter(Letter::Hello))));
    assert_eq!(reader.read(&hello), Ok(None));
}

/// Everything that was posted, as lines.
/// As when a put repeats itself from lap to lap: words that still are those of the lap before must
/// not make a line together with new ones.
#[test]
fn a_line_that_says_the_same_as_a_lap_before_is_read_only_when_all_of_it_has_landed() {
    let payload: Payload = std::array::from_fn(|word| 31 * word as u64);
    for number in 0..64 {
        let (old, new) = (seal(number, &payload), seal(number + 64, &payload));
        for landed in 0..=u8::MAX {
            let has = |word: usize| landed >> word & 1 == 1;
            let line = std::array::from_fn(|word| if has(word) { new[word] } else { old[word] });

            let read = open(number + 64, &line);

            assert_eq!(read.is_some(), landed == u8::MAX, "{landed:08b}");
        }
    }
}

fn lines(bytes: &[u8], letters: &[Letter]) -> Vec<Payload> {
    let mut lines = Vec::new();
    for letter in letters {
        lines.push(letter.to_line());
        if let Letter::Put {
            at, bytes: count, ..
        } = *letter
        {
            let (at, count) = (at as usize, count as usize);
            for chunk in bytes[at..at + count].chunks(PAYLOAD_BYTES) {
                lines.push(payload_of(chunk));
            }
        }
    }
    lines
}

fn some_letters(random: &mut Xoshiro256PlusPlus, space: u64) -> Vec<Letter> {
    let count = random.next_u64() % 12;
    (0..count)
        .map(|number| match random.next_u64() % 3 {
            0 => Letter::FetchAdd {
                line: 64,
                amount: 1,
                token: number,
            },
            _ => {
                let at = random.next_u64() % (space - 1);
                let how = How::Set(number);
                Letter::Put {
                    at,
                    bytes: 1 + random.next_u64() % (space - at),
                    raise: number.is_multiple_of(2).then_some(Raise { line: 64, how }),
                }
            }
        })
        .collect()
}

#[test]
fn words_that_land_in_any_order_are_read_as_they_were_written() {
    for round in 0..300 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(round);
        let source: Vec<u8> = (0..700).map(|_| random.next_u64() as u8).collect();
        let letters = some_letters(&mut random, source.len() as u64);
        let lines = lines(&source, &letters);
        let mut ring = [[0_u64; 8]; RING];
        let mut under_way: Vec<(usize, usize, u64)> = Vec::new();
        let (mut reader, mut sent) = (Reader::default(), 0);
        let (mut target, mut heard) = (vec![0_u8; source.len()], Vec::new());
        while reader.next() < lines.len() as u64 {
            if sent < lines.len() && (sent as u64) < reader.next() + RING as u64 {
                let words = seal(sent as u64, &lines[sent]).into_iter().enumerate();
                under_way.extend(words.map(|(word, value)| (sent % RING, word, value)));
                sent += 1;
            }
            if !under_way.is_empty() {
                let any = (random.next_u64() % under_way.len() as u64) as usize;
                let (place, word, value) = under_way.swap_remove(any);
                ring[place][word] = value;
            }
            let line = ring[reader.next() as usize % RING];
            match reader.read(&line).unwrap() {
                None | Some(Came::Announced) => {}
                Some(Came::Letter(letter)) => heard.push(letter),
                Some(Came::Bytes {
                    at,
                    bytes,
                    count,
                    raise,
                }) => {
                    let at = at as usize;
                    target[at..at + count].copy_from_slice(&bytes[..count]);
                    heard.extend(raise.map(Letter::Raise));
                }
            }
        }
        let mut expected_target = vec![0_u8; source.len()];
        let mut expected = Vec::new();
        for letter in &letters {
            match *letter {
                Letter::Put { at, bytes, raise } => {
                    let range = at as usize..(at + bytes) as usize;
                    expected_target[range.clone()].copy_from_slice(&source[range]);
                    expected.extend(raise.map(Letter::Raise));
                }
                letter => expected.push(letter),
            }
        }
        assert_eq!(
            (heard, target),
            (expected, expected_target),
            "round {round}"
        );
    }
}
