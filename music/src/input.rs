//! Reading files that may be anything: bounded, and never waiting for a writer.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The most bytes that are read of a `.music` file, or of a line of numbers: 64 MiB.
const MOST: u64 = 64 << 20;

/// All of a `.music` file.
///
/// # Errors
/// One line that names the file, if it cannot be read or is longer than 64 MiB. So is anything but
/// a regular file: each process of the job reads it again.
pub fn music_file(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let wrong = |error: io::Error| format!("{name}: {error}");
    let kind = fs::metadata(path).map_err(wrong)?.file_type();
    if kind.is_dir() {
        return Err(format!("{name} is a directory: name the .music file in it"));
    }
    if !kind.is_file() {
        return Err(format!(
            "{name} is no regular file: write a .music file, as every process of the job reads it"
        ));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(wrong)?.take(MOST + 1);
    file.read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > MOST {
        return Err(format!(
            "{name} is longer than 64 MiB: is it a .music file?"
        ));
    }
    Ok(bytes)
}

/// Calls `take` with each line of a text, without its end, and its number from 1.
///
/// # Errors
/// What the system says, or the line at which `take` finds something wrong, which is not UTF-8, or
/// which is longer than 64 MiB.
pub fn lines(
    path: &Path,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), LineError> {
    let mut file = BufReader::new(File::open(path)?);
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        file.by_ref().take(MOST + 1).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            break;
        }
        let line = match std::str::from_utf8(&bytes) {
            _ if bytes.len() as u64 > MOST => Err("longer than 64 MiB".to_owned()),
            Ok(line) => take(line.trim_end_matches(['\n', '\r'])),
            Err(_) => Err("not UTF-8 text".to_owned()),
        };
        line.map_err(|what| LineError::Line(number, what))?;
    }
    Ok(())
}

/// Why [`lines`] stopped.
#[derive(Debug)]
pub enum LineError {
    /// What the system said.
    Io(io::Error),
    /// Which line, from 1, and what is wrong with it.
    Line(usize, String),
}

impl From<io::Error> for LineError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing here may wait for a writer or read without end.
    #[test]
    fn only_a_regular_file_of_some_size_is_a_music_file() {
        let folder = std::env::temp_dir().join(format!("tutti-input-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (fifo, huge) = (folder.join("fifo"), folder.join("huge"));
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        File::create(&huge).unwrap().set_len(10 << 30).unwrap();
        for (path, what) in [
            ("/dev/zero".as_ref(), "is no regular file"),
            ("/dev/full".as_ref(), "is no regular file"),
            (fifo.as_path(), "is no regular file"),
            (folder.as_path(), "is a directory"),
            (huge.as_path(), "is longer than 64 MiB"),
            ("/nowhere".as_ref(), ": No such file"),
        ] {
            let error = music_file(path).unwrap_err();

            let start = path.display().to_string();
            assert!(error.starts_with(&start) && error.contains(what), "{error}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lines_end_somewhere_and_are_text() {
        let path = std::env::temp_dir().join(format!("tutti-lines-{}", std::process::id()));
        fs::write(&path, b"a\r\nb\n\xff").unwrap();
        let mut taken = Vec::new();
        let stopped = lines(&path, |line| {
            taken.push(line.to_owned());
            Ok(())
        });
        let endless = lines("/dev/zero".as_ref(), |_| Ok(()));
        fs::remove_file(path).unwrap();

        assert_eq!(taken, ["a", "b"]);
        assert!(matches!(stopped, Err(LineError::Line(3, what)) if what == "not UTF-8 text"));
        assert!(matches!(endless, Err(LineError::Line(1, what)) if what == "longer than 64 MiB"));
    }
}
