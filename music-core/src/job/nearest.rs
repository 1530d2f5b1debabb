//! Which known name someone probably meant.

/// The known name that is nearest to `meant`, if one is near enough to be worth a guess.
pub(super) fn nearest<'a>(meant: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let meant = letters(meant)?;
    let limit = meant.len().div_ceil(3).max(1);
    known
        .filter_map(|name| Some((distance(&meant, &letters(name)?), name)))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Lower-case letters of a name short enough to be compared.
fn letters(name: &str) -> Option<Vec<char>> {
    const LONGEST: usize = 64;
    (name.len() <= LONGEST).then(|| name.chars().flat_map(char::to_lowercase).collect())
}

/// How many letters have to be put in, taken out or replaced.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_understood_and_a_stranger_is_not() {
        let known = ["sender", "receiver", "A"];

        assert_eq!(nearest("sendr", known.into_iter()), Some("sender"));
        assert_eq!(nearest("Reciever", known.into_iter()), Some("receiver"));
        assert_eq!(nearest("a", known.into_iter()), Some("A"));
        assert_eq!(nearest("cortex", known.into_iter()), None);
        assert_eq!(nearest(&"x".repeat(1000), known.into_iter()), None);
    }
}
