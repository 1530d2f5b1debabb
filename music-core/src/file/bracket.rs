//! `[width, communication, processing]` behind a connection; every part may be left out from the
//! right, and the width may be empty.

use super::{Reader, shown};
use crate::diagnostic::Location;
use crate::job::{Communication, Processing};

/// What a bracket says.
#[derive(Debug, Default)]
pub(super) struct Bracket {
    pub(super) width: Option<u64>,
    pub(super) communication: Communication,
    pub(super) processing: Processing,
}

/// Ids are 32 bits, so no port has more.
const WIDEST: u64 = 1 << 32;

impl Reader<'_, '_> {
    /// Reads the bracket at the cursor; false if something is wrong with it.
    pub(super) fn bracket(&mut self, bracket: &mut Bracket) -> bool {
        let opening = self.cursor.location();
        let line = self.cursor.line_rest();
        let Some(end) = line
            .find([']', '#'])
            .filter(|end| line.as_bytes()[*end] == b']')
        else {
            let message = "the bracket behind this connection is not closed";
            self.findings
                .error(opening, message, "end it with ], as in [10]");
            self.cursor.skip_line();
            return false;
        };
        self.cursor.skip(1);
        let mut valid = true;
        for (index, part) in line[1..end].split(',').enumerate() {
            self.cursor.skip(usize::from(index > 0));
            valid &= self.part(index, part, bracket);
        }
        self.cursor.skip("]".len());
        valid
    }

    /// Reads one part and moves over it; false if it is wrong.
    fn part(&mut self, index: usize, part: &str, bracket: &mut Bracket) -> bool {
        self.cursor.skip(part.len() - part.trim_start().len());
        let location = self.cursor.location();
        let fault = match index {
            0 => read_width(part.trim()).map(|width| bracket.width = width),
            1 => read_communication(part.trim()).map(|word| bracket.communication = word),
            2 => read_processing(part.trim()).map(|word| bracket.processing = word),
            _ => Err(Fault::new(
                "a bracket has at most three parts".to_owned(),
                "write [width, communication, processing]",
            )),
        };
        self.cursor.skip(part.trim_start().len());
        self.report(location, fault)
    }

    fn report(&mut self, location: Location, fault: Result<(), Fault>) -> bool {
        if let Err(Fault { message, advice }) = &fault {
            self.findings.error(location, message, advice);
        }
        fault.is_ok()
    }
}

/// What is wrong with a part, and what to do.
struct Fault {
    message: String,
    advice: &'static str,
}

impl Fault {
    const fn new(message: String, advice: &'static str) -> Self {
        Self { message, advice }
    }
}

fn read_width(text: &str) -> Result<Option<u64>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.chars().all(|c| c.is_ascii_digit()) {
        // Only digits that are too many fail to parse.
        let width = text.parse().ok().filter(|width| *width <= WIDEST);
        return width.map(Some).ok_or_else(|| {
            Fault::new(
                format!("the width {} is more than there are ids", shown(text)),
                "the widest port has 4294967296",
            )
        });
    }
    Err(match text {
        _ if read_communication(text).is_ok() || read_processing(text).is_ok() => Fault::new(
            format!("the bracket starts with the word {text} where the width belongs"),
            "write [width, communication, processing]; without a width start with a comma, as in \
             [, collective]",
        ),
        _ if text
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_whitespace()) =>
        {
            Fault::new(
                format!("there are several numbers in the width {}", shown(text)),
                "write one number, as in [10]",
            )
        }
        _ => Fault::new(
            format!("the width {} is not a whole number from 0 up", shown(text)),
            "write digits only, as in [10], or [] for a port that takes the width of its maps",
        ),
    })
}

fn read_communication(text: &str) -> Result<Communication, Fault> {
    match text.to_ascii_lowercase().as_str() {
        "point-to-point" | "pairwise" => Ok(Communication::Pairwise),
        "collective" | "allgather" => Ok(Communication::Allgather),
        "auto" => Ok(Communication::Auto),
        "" => Err(Fault::new(
            "the communication is missing behind the comma".to_owned(),
            "write point-to-point or collective there",
        )),
        "tree" | "table" => Err(Fault::new(
            format!("{text} stands where the communication belongs"),
            "write the communication first, as in [10, point-to-point, tree]",
        )),
        _ => Err(Fault::new(
            format!("unknown communication {}", shown(text)),
            "write point-to-point or collective",
        )),
    }
}

fn read_processing(text: &str) -> Result<Processing, Fault> {
    match text.to_ascii_lowercase().as_str() {
        "tree" => Ok(Processing::Tree),
        "table" => Ok(Processing::Table),
        "" => Err(Fault::new(
            "the processing is missing behind the comma".to_owned(),
            "write tree or table there, or drop the comma",
        )),
        _ => Err(Fault::new(
            format!("unknown processing {}", shown(text)),
            "write tree or table",
        )),
    }
}
