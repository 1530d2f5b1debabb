//! Code that was commented out: git remembers it, the reader should not have to.

use super::Violation;
use super::source::Source;

/// Remarks that read like code. Documentation is left alone: it shows code on purpose.
pub(super) fn check(path: &str, source: &Source) -> Vec<Violation> {
    let lines = source.numbered().filter(|(_, line)| !line.is_doc);
    lines
        .filter(|(_, line)| reads_like_code(line.comment.trim()))
        .map(|(number, _)| {
            let what = "code in a comment; delete it, or say in a sentence why it is not there";
            Violation::new(path, number, what)
        })
        .collect()
}

fn reads_like_code(remark: &str) -> bool {
    is_statement(remark) || is_item(remark) || is_block(remark)
}

/// `x = y;`, `call(x);`, `call(x)?;`, `return x;`, `let x = y`.
fn is_statement(remark: &str) -> bool {
    let Some(body) = remark.strip_suffix(';') else {
        return remark.starts_with("let ") && remark.contains(" = ");
    };
    let has_keyword = ["let ", "return", "use ", "break", "continue", "mod "]
        .iter()
        .any(|keyword| body.starts_with(keyword));
    has_keyword || body.contains(" = ") || body.contains(" += ") || ends_in_call(body)
}

/// `name(...)`: a prose parenthesis has a space before it.
fn ends_in_call(body: &str) -> bool {
    let body = body.trim_end_matches('?');
    let Some(inside) = body.strip_suffix(')') else {
        return false;
    };
    let before = inside
        .rfind('(')
        .and_then(|at| inside[..at].chars().next_back());
    before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '!' | '>'))
}

fn is_item(remark: &str) -> bool {
    let starts = ["fn ", "pub fn ", "pub(crate) ", "impl ", "struct ", "enum "];
    let opens = remark.ends_with('{') || remark.ends_with('}');
    remark.starts_with("#[") || opens && starts.iter().any(|start| remark.starts_with(start))
}

fn is_block(remark: &str) -> bool {
    let starts = [
        "if ", "for ", "while ", "loop ", "match ", "} else", "else ",
    ];
    let only_closes =
        !remark.is_empty() && remark.chars().all(|c| matches!(c, '{' | '}' | ')' | ';'));
    only_closes || remark.ends_with('{') && starts.iter().any(|start| remark.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_recognised() {
        for remark in [
            "let x = 3;",
            "let x = self",
            "counter.store(1, Ordering::Relaxed);",
            "fabric.progress()?;",
            "use std::thread;",
            "self.at += 1;",
            "fn old(x: u32) -> u32 {",
            "#[inline]",
            "if x > 3 {",
            "}",
            "});",
            "return None;",
        ] {
            assert!(reads_like_code(remark), "{remark}");
        }
    }

    #[test]
    fn sentences_are_not() {
        for remark in [
            "Release: pairs with the Acquire in `Window::load`.",
            "the first is local (see above);",
            "nobody waits here;",
            "if the rank is early, its counter is already there",
            "let the leader go first",
            "SAFETY: `words` points at `len` words",
            "",
        ] {
            assert!(!reads_like_code(remark), "{remark}");
        }
    }
}
