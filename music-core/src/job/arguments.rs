//! `args` into words.
//!
//! Blanks separate, any number of them together; `'..'` and `".."` keep blanks and may be empty;
//! a backslash takes the next character as it is, except within single quotes.

/// The words of `text`.
///
/// # Errors
/// The quote that is never closed.
pub(super) fn split(text: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            blank if blank.is_whitespace() => words.extend(word.take()),
            quote @ ('"' | '\'') => {
                quoted(quote, &mut characters, word.get_or_insert_default())?;
            }
            '\\' => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Takes what stands between `quote` and its partner.
fn quoted(
    quote: char,
    characters: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), char> {
    while let Some(character) = characters.next() {
        match character {
            end if end == quote => return Ok(()),
            '\\' if quote == '"' => word.extend(characters.next()),
            other => word.push(other),
        }
    }
    Err(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn splits(text: &str, words: &[&str]) {
        assert_eq!(split(text).unwrap(), words, "{text}");
    }

    #[test]
    fn blanks_separate_however_many() {
        splits("", &[]);
        splits("   ", &[]);
        splits("  -t  0.01\t10 \n x ", &["-t", "0.01", "10", "x"]);
    }

    #[test]
    fn quotes_keep_blanks_and_make_empty_words() {
        splits(r#"-x "a b" c"#, &["-x", "a b", "c"]);
        splits("'a \"b\"' \"it's\"", &["a \"b\"", "it's"]);
        splits(r#""" '' a"" --name="x y""#, &["", "", "a", "--name=x y"]);
    }

    #[test]
    fn a_backslash_takes_the_next_character_as_it_is() {
        splits(
            r#"a\ b "\"" '\' \\ end\"#,
            &["a b", "\"", "\\", "\\", "end"],
        );
    }

    #[test]
    fn an_open_quote_is_named() {
        assert_eq!(split("a 'b c"), Err('\''));
        assert_eq!(split("a \"b\\\""), Err('"'));
    }
}
