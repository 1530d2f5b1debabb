//! A Rust file as lines of code and lines of comment, so that rules do not trip over strings.
//!
//! One pass over the characters knows comments (nested too), strings (raw too), characters and
//! lifetimes. What it does not know is macros: an unbalanced brace in one would only shift where
//! a test module is thought to end.

/// One line, split.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The code without comments, and with the insides of strings left out.
    pub(super) code: String,
    /// What a line comment or block comment says.
    pub(super) comment: String,
    /// Whether the comment is documentation.
    pub(super) is_doc: bool,
    /// Whether the line belongs to a `#[cfg(test)]` item.
    pub(super) in_test: bool,
    /// Length in characters.
    pub(super) columns: usize,
}

/// A scanned file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) lines: Vec<Line>,
}

impl Source {
    /// Splits a file.
    pub(super) fn scan(text: &str) -> Self {
        let mut scanner = Scanner {
            text: text.chars().collect(),
            at: 0,
            lines: vec![Line::default()],
        };
        scanner.run();
        let mut lines = scanner.lines;
        for (line, raw) in lines.iter_mut().zip(text.split('\n')) {
            line.columns = raw.chars().count();
        }
        mark_tests(&mut lines);
        Self { lines }
    }

    /// Lines with their numbers, from 1.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }
}

/// Whether `code` holds `word` as a whole identifier or path, not as part of a longer one.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let starts = !before.is_some_and(is_part);
        let ends = !word.ends_with(is_part) || !after.is_some_and(is_part);
        starts && ends
    })
}

struct Scanner {
    text: Vec<char>,
    at: usize,
    lines: Vec<Line>,
}

impl Scanner {
    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('/')) => self.line_comment(),
                ('/', Some('*')) => self.block_comment(),
                ('"', _) => self.string(),
                ('r' | 'b' | 'c', _) if self.starts_raw_string() => self.raw_string(),
                ('\'', _) => self.character_or_lifetime(),
                _ => self.code(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn line(&mut self) -> &mut Line {
        self.lines.last_mut().expect("there is a first line")
    }

    /// Moves on by one character; a line end opens a new line.
    fn bump(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.lines.push(Line::default());
        }
        Some(c)
    }

    fn code(&mut self) {
        if let Some(c) = self.bump()
            && c != '\n'
        {
            self.line().code.push(c);
        }
    }

    fn line_comment(&mut self) {
        self.at += 2;
        let doc = matches!(self.peek(0), Some('!')) || self.is_outer_doc('/');
        self.at += usize::from(doc);
        self.line().is_doc |= doc;
        while let Some(c) = self.peek(0).filter(|c| *c != '\n') {
            self.line().comment.push(c);
            self.at += 1;
        }
    }

    /// `///` and `/**` are documentation, `////` and `/***` are not.
    fn is_outer_doc(&self, mark: char) -> bool {
        self.peek(0) == Some(mark) && self.peek(1) != Some(mark)
    }

    fn block_comment(&mut self) {
        self.at += 2;
        let doc = matches!(self.peek(0), Some('!')) || self.is_outer_doc('*');
        let mut depth = 1;
        while depth > 0 && self.at < self.text.len() {
            self.line().is_doc |= doc;
            match (self.peek(0), self.peek(1)) {
                (Some('*'), Some('/')) => depth -= 1,
                (Some('/'), Some('*')) => depth += 1,
                _ => {
                    if let Some(c) = self.bump().filter(|c| *c != '\n') {
                        self.line().comment.push(c);
                    }
                    continue;
                }
            }
            self.at += 2;
        }
    }

    fn string(&mut self) {
        self.code();
        while let Some(c) = self.bump() {
            match c {
                '\\' => drop(self.bump()),
                '"' => break,
                _ => {}
            }
        }
        self.line().code.push('"');
    }

    fn starts_raw_string(&self) -> bool {
        let inside_word = self
            .at
            .checked_sub(1)
            .is_some_and(|before| self.text[before].is_alphanumeric() || self.text[before] == '_');
        let rest = &self.text[self.at..];
        let mark = rest
            .iter()
            .take_while(|c| matches!(c, 'r' | 'b' | 'c'))
            .count();
        let hashes = rest[mark..].iter().take_while(|c| **c == '#').count();
        let is_raw = rest[..mark].contains(&'r') && mark <= 2;
        !inside_word && is_raw && rest.get(mark + hashes) == Some(&'"')
    }

    fn raw_string(&mut self) {
        while self.peek(0).is_some_and(|c| matches!(c, 'r' | 'b' | 'c')) {
            self.at += 1;
        }
        let mut hashes = 0;
        while self.peek(0) == Some('#') {
            hashes += 1;
            self.at += 1;
        }
        self.code();
        while let Some(c) = self.bump() {
            let closes = (0..hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if c == '"' && closes {
                self.at += hashes;
                break;
            }
        }
        self.line().code.push('"');
    }

    fn character_or_lifetime(&mut self) {
        let escaped = self.peek(1) == Some('\\');
        if !escaped && self.peek(2) != Some('\'') {
            return self.code();
        }
        self.line().code.push_str("' '");
        self.at += if escaped { 3 } else { 2 };
        while self.bump().is_some_and(|c| c != '\'') {}
    }
}

/// Marks the lines of every item under `#[cfg(test)]`: to its closing brace, or to its `;`.
fn mark_tests(lines: &mut [Line]) {
    let mut at = 0;
    while at < lines.len() {
        let code = lines[at].code.replace(' ', "");
        if code.contains("#[cfg(test)]") || code.contains("#[cfg(all(test") {
            at = mark_item(lines, at);
        } else {
            at += 1;
        }
    }
}

/// Marks one item that starts at `from`; the line after it.
fn mark_item(lines: &mut [Line], from: usize) -> usize {
    let (mut depth, mut opened) = (0_i32, false);
    for (at, line) in lines.iter_mut().enumerate().skip(from) {
        line.in_test = true;
        for c in line.code.chars() {
            match c {
                '{' => (depth, opened) = (depth + 1, true),
                '}' => depth -= 1,
                _ => {}
            }
        }
        let over = opened && depth <= 0 || !opened && line.code.trim_end().ends_with(';');
        if over {
            return at + 1;
        }
    }
    lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        let source = Source::scan(text);
        source.lines.into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn strings_and_comments_are_no_code() {
        assert_eq!(code(r#"f("unsafe \" // x"); // unsafe"#), [r#"f(""); "#]);
        assert_eq!(code("a /* unsafe /* b */ c */ d"), ["a  d"]);
        assert_eq!(
            code("r#\"unsafe \" x\"# + br\"y\" + 1"),
            ["\"\" + \"\" + 1"]
        );
        assert_eq!(code("\"two\nlines\"; x"), ["\"", "\"; x"]);
    }

    #[test]
    fn characters_are_no_quotes_and_lifetimes_no_characters() {
        assert_eq!(code(r#"x('"', '\'', '\\') // y"#), ["x(' ', ' ', ' ') "]);
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), ["fn f<'a>(x: &'a str) {}"]);
        assert_eq!(code("for_bar\"x\""), ["for_bar\"\""]);
    }

    #[test]
    fn documentation_is_told_from_remarks() {
        let source = Source::scan("/// a\n//! b\n// c\n//// d\n/** e */\n/* f */");
        let docs: Vec<bool> = source.lines.iter().map(|line| line.is_doc).collect();

        assert_eq!(docs, [true, true, false, false, true, false]);
        assert_eq!(source.lines[2].comment, " c");
    }

    #[test]
    fn a_test_module_ends_at_its_brace_and_a_test_import_at_its_semicolon() {
        let text = "fn a() {}\n#[cfg(test)]\nuse x;\nfn b() {}\n\
                    #[cfg(test)]\nmod tests {\n  { }\n}\nfn c() {}";
        let source = Source::scan(text);
        let tests: Vec<bool> = source.lines.iter().map(|line| line.in_test).collect();

        assert_eq!(
            tests,
            [false, true, true, false, true, true, true, true, false]
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use transport::shm;", "transport::"));
        assert!(!has_word("use my_transport::shm;", "transport::"));
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
    }
}
