//! What a rank writes, under a name that its errors give.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A file or standard output. Every error names it and the rank.
#[derive(Debug)]
pub(super) struct Output<W: Write> {
    name: String,
    out: BufWriter<W>,
}

impl Output<File> {
    /// A new file.
    pub(super) fn create(path: &Path, rank: u32) -> io::Result<Self> {
        let name = format!("{} of rank {rank}", path.display());
        match File::create(path) {
            Ok(file) => Ok(Self::new(name, file)),
            Err(error) => Err(named(&name, &error)),
        }
    }
}

impl<W: Write> Output<W> {
    pub(super) fn new(name: String, out: W) -> Self {
        let out = BufWriter::new(out);
        Self { name, out }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        written.map_err(|error| named(&self.name, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        flushed.map_err(|error| named(&self.name, &error))
    }
}

fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {name}: {error}"))
}
