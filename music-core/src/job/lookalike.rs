//! Lines that were meant to be connections but have the wrong arrow.
//!
//! `A.out - B.in`, `A.out => B.in`, `A.out > B.in`: this format takes them for settings or for
//! nothing at all, and the ports stay unconnected without a word. Dotted keys such as
//! `angular.z=0.5` look alike, so a line only counts if a known application stands before a dot
//! on one side and a dot on the other.

/// What should stand there instead, if `text` is a connection with a wrong arrow.
pub(super) fn connection_meant(text: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    let text = text.split(['[', '#']).next().unwrap_or(text);
    if text.len() > LONGEST {
        return None;
    }
    let mut at = 0;
    while let Some(start) = text[at..].find(is_arrow).map(|found| at + found) {
        let blank_or_arrow = |c: char| is_arrow(c) || c.is_whitespace();
        let rest = text[start..].trim_start_matches(blank_or_arrow);
        at = text.len() - rest.len();
        if let Some(line) = proper(text[..start].trim(), &text[start..at], rest.trim(), &known) {
            return Some(line);
        }
    }
    None
}

/// No connection is longer, in bytes.
const LONGEST: usize = 400;

/// The line with a proper arrow in place of `sign`, if that makes sense.
fn proper(left: &str, sign: &str, right: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    let (left_known, right_known) = (known(application(left)?), known(application(right)?));
    let forward = sign.contains(['>', '\u{2192}', '\u{21d2}']);
    let backward = !forward && sign.contains(['<', '\u{2190}']);
    // A setting may have a dotted key and a negative value: then both must be applications.
    let setting = sign.contains('=') && !forward && !backward;
    let sure = if setting {
        left_known && right_known
    } else {
        left_known || right_known
    };
    sure.then(|| format!("{left} {} {right}", if backward { "<-" } else { "->" }))
}

/// What stands before the dot of `app.port`, neither of which holds blanks or signs.
fn application(name: &str) -> Option<&str> {
    let (application, port) = name.split_once('.')?;
    let plain = |part: &str| {
        !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || "=<>,;\"'".contains(c))
    };
    (plain(application) && plain(port)).then_some(application)
}

fn is_arrow(character: char) -> bool {
    "-=><~\u{2192}\u{2190}\u{21d2}\u{2013}\u{2014}".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(text: &str) -> Option<String> {
        connection_meant(text, |name| ["A", "B", "my-app"].contains(&name))
    }

    #[test]
    fn every_wrong_arrow_is_seen() {
        for text in [
            "A.out - B.in [10]",
            "A.out => B.in",
            "A.out > B.in",
            "A.out>B.in",
            "A.out - > B.in",
            "A.out --> B.in",
            "A.out = B.in [10, collective]",
            "A.out \u{2192} B.in",
            "A.out \u{2014} B.in",
        ] {
            assert_eq!(meant(text).as_deref(), Some("A.out -> B.in"), "{text}");
        }
        assert_eq!(meant("B.in < A.out").as_deref(), Some("B.in <- A.out"));
        assert_eq!(
            meant("my-app.x-y > C.in").as_deref(),
            Some("my-app.x-y -> C.in")
        );
    }

    #[test]
    fn keys_values_and_prose_are_not() {
        for text in [
            "angular.z=0.5",
            "A.gain = 0.5",
            "A.gain = -0.5",
            "see http://example.org/a.b - version 1.2",
            "linear.x - angular.z",
            "A - B",
            "args=--a.b=c.d",
            "",
        ] {
            assert_eq!(meant(text), None, "{text}");
        }
    }
}
