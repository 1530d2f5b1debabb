//! Columns of text, numbers to the right.

use std::fmt::Write;

/// A table with a head.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these columns; `true` aligns to the right.
    pub(super) fn new(columns: &[(&str, bool)]) -> Self {
        Self {
            rows: vec![columns.iter().map(|(name, _)| (*name).to_owned()).collect()],
            right: columns.iter().map(|(_, right)| *right).collect(),
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The lines.
    pub(super) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.right.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), right) in row.iter().zip(&widths).zip(&self.right) {
                let gap = if line.is_empty() { "" } else { "  " };
                let written = if *right {
                    write!(line, "{gap}{cell:>width$}")
                } else {
                    write!(line, "{gap}{cell:<width$}")
                };
                written.expect("a string takes all");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A number of bytes with three digits or so.
pub(super) fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" {
                format!("{count} B")
            } else {
                format!("{value:.1} {unit}")
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// Seconds with a unit that suits them.
pub(super) fn span(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.0} us", 1e6 * seconds)
    } else if seconds < 1.0 {
        format!("{:.1} ms", 1e3 * seconds)
    } else {
        format!("{seconds:.2} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("port", false), ("events", true)]);
        table.row(vec!["A.out".to_owned(), "1234567".to_owned()]);
        table.row(vec!["B.in".to_owned(), "1".to_owned()]);

        assert_eq!(
            table.text(),
            "port    events\nA.out  1234567\nB.in         1\n"
        );
    }

    #[test]
    fn quantities_keep_about_three_digits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_234_567), "1.2 MB");
        assert_eq!(span(0.000_012), "12 us");
        assert_eq!(span(0.012), "12.0 ms");
        assert_eq!(span(12.0), "12.00 s");
    }
}
