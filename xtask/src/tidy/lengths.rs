//! No file grows without end: 500 lines, and files that were longer may only shrink.

use super::{File, Violation};

/// The longest file that needs no excuse.
const LINES_MAX: usize = 500;

/// Files that are longer for now, with the length they may not exceed. Entries only ever shrink.
const RATCHET: &[(&str, usize)] = &[];

/// Sources that are too long and not generated, and entries of the ratchet that can be tightened.
pub(super) fn check(files: &[File], generated: &[&str]) -> Vec<Violation> {
    let sources = files
        .iter()
        .filter(|file| file.is(".rs") || file.is(".c") || file.is(".cc"));
    sources
        .filter(|file| !generated.contains(&file.path.as_str()))
        .filter_map(|file| judge(&file.path, file.text.lines().count(), RATCHET))
        .collect()
}

fn judge(path: &str, lines: usize, ratchet: &[(&str, usize)]) -> Option<Violation> {
    let excused = ratchet.iter().find(|(excused, _)| *excused == path);
    let allowed = excused.map_or(LINES_MAX, |(_, allowed)| *allowed);
    let what = if lines > allowed {
        format!("{lines} lines, at most {allowed}; give one of its concepts a file of its own")
    } else if excused.is_some() && lines < allowed {
        format!("{lines} lines, {allowed} excused; lower the entry in xtask/src/tidy/lengths.rs")
    } else {
        return None;
    };
    Some(Violation::new(path, lines, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_501_lines_is_too_long_and_an_excuse_only_shrinks() {
        assert_eq!(judge("a.rs", 500, &[]), None);
        assert!(judge("a.rs", 501, &[]).is_some());
        assert_eq!(judge("a.rs", 700, &[("a.rs", 700)]), None);
        assert!(judge("a.rs", 701, &[("a.rs", 700)]).is_some());
        assert!(judge("a.rs", 699, &[("a.rs", 700)]).is_some());
    }
}
