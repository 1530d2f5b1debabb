//! Reminders and stand-ins that must not stay: they belong into an issue, or be done.

use super::Violation;
use super::source::{Source, has_word};

/// In comments and code alike.
const REMINDERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), "XXX", "HACK"];

/// In code only.
const STAND_INS: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// The widest line of a Rust source, in characters.
const COLUMNS_MAX: usize = 100;

/// Reminders, stand-ins and overlong lines.
pub(super) fn check(path: &str, source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in source.numbered() {
        let words = [line.code.as_str(), line.comment.as_str()].join(" ");
        let reminder = REMINDERS.iter().find(|word| has_word(&words, word));
        let stand_in = STAND_INS.iter().find(|word| is_in(&line.code, word));
        found.extend(reminder.or(stand_in).map(|word| {
            let what = format!("leftover: `{word}`; do it now or file an issue and delete this");
            Violation::new(path, number, what)
        }));
        let is_address = line.comment.contains("http") && !line.comment.trim().contains(' ');
        if line.columns > COLUMNS_MAX && !is_address {
            let what = format!(
                "{} columns, at most {COLUMNS_MAX}; break the line",
                line.columns
            );
            found.push(Violation::new(path, number, what));
        }
    }
    found
}

fn is_in(code: &str, word: &str) -> bool {
    if word.starts_with('#') {
        code.contains(word)
    } else {
        has_word(code, word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(text: &str) -> Vec<usize> {
        let found = check("a.rs", &Source::scan(text));
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn reminders_are_found_in_comments_and_stand_ins_in_code() {
        assert_eq!(lines(&format!("x\n/// {}: later", REMINDERS[0])), [2]);
        assert_eq!(lines("fn f() {\n    dbg!(x)\n}"), [2]);
        assert_eq!(lines("#[ignore = \"slow\"]"), [1]);
    }

    #[test]
    fn strings_and_longer_words_are_left_alone() {
        assert_eq!(lines(&format!("let x = \"{}\";", REMINDERS[1])), NONE);
        assert_eq!(lines("// we do not `unimplemented` things"), NONE);
    }

    #[test]
    fn a_line_of_101_columns_is_too_long_unless_it_is_an_address() {
        assert_eq!(lines(&"x".repeat(100)), NONE);
        assert_eq!(lines(&"x".repeat(101)), [1]);
        assert_eq!(lines(&format!("// http://{}", "x".repeat(101))), NONE);
    }
}
