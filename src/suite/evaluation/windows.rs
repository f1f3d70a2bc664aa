//! Lines of a large file: read on one thread, handled on all, and taken in file order on another; at most a few windows of
//! lines are in memory.

use super::ScoreError;
use crate::platform::files;
use crate::trace::{self, TraceError};
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// Lines that are handled in parallel.
const WINDOW: usize = 512;

/// Initial capacity of a window in bytes.
const TYPICAL: usize = 2 << 20;

/// Bytes after which a window takes no further line.
const WINDOW_BYTES: usize = 8 << 20;

/// A line that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Its number in the file, from 1; counted from the beginning of the range that is read.
    pub(super) number: usize,
    /// Place of its first byte in the file.
    pub(super) start: u64,
    pub(super) text: &'a [u8],
}

/// Handles the lines of `file` that begin in the range of bytes by `each`, and passes the results to `take`, up to the first error.
///
/// # Errors
/// If the file cannot be read, and those of `each` and `take`.
pub(super) fn in_order<T: Send>(
    file: &Path,
    range: Range<u64>,
    each: impl Fn(Line<'_>) -> Result<T, ScoreError> + Sync,
    mut take: impl FnMut(T) -> Result<(), ScoreError>,
) -> Result<(), ScoreError> {
    let (reader, start) =
        opened(file, range.start).map_err(|error| ScoreError::Open { file: file.to_owned(), error })?;
    let each = &each;
    std::thread::scope(|scope| {
        let (read, windows) = sync_channel::<Result<Window, TraceError>>(1);
        let (handled, results) = sync_channel::<Vec<Result<T, ScoreError>>>(1);
        scope.spawn(move || Window::read_all(reader, start..range.end, |window| read.send(window).is_ok()));
        scope.spawn(move || {
            for window in windows {
                let results = match window {
                    Ok(window) => window.lines().into_par_iter().map(each).collect(),
                    Err(error) => vec![Err(ScoreError::Trace { file: file.to_owned(), error })],
                };
                if handled.send(results).is_err() {
                    return;
                }
            }
        });
        results.into_iter().flatten().try_for_each(|result| take(result?))
    })
}

/// Opens a file at the first line that begins at `start` or later; returns its place.
fn opened(file: &Path, start: u64) -> io::Result<(BufReader<File>, u64)> {
    let mut reader = BufReader::with_capacity(1 << 20, files::open(file)?);
    let Some(before) = start.checked_sub(1) else { return Ok((reader, 0)) };
    reader.seek(SeekFrom::Start(before))?;
    let skipped = reader.skip_until(b'\n')?;
    Ok((reader, before + skipped as u64))
}

/// Number of lines of a file before the one that begins at `start` or later.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn lines_before(file: &Path, start: u64) -> io::Result<usize> {
    let (mut reader, (mut at, mut lines)) = (BufReader::with_capacity(1 << 20, files::open(file)?), (0, 0));
    while at < start {
        match reader.skip_until(b'\n')? {
            0 => break,
            length => (at, lines) = (at + length as u64, lines + 1),
        }
    }
    Ok(lines)
}

/// Some lines of a file.
struct Window {
    /// Number of the first line, from 1.
    first: usize,
    /// Place of the first line.
    start: u64,
    text: Vec<u8>,
    /// End offset of each line.
    ends: Vec<usize>,
}

impl Window {
    /// Passes the lines of `reader` that begin in the range on in windows, until the end or until `hand` returns false.
    fn read_all(mut reader: impl BufRead, range: Range<u64>, mut hand: impl FnMut(Result<Self, TraceError>) -> bool) {
        let (mut first, mut start) = (1, range.start);
        loop {
            let mut window = Self { first, start, text: Vec::with_capacity(TYPICAL), ends: Vec::with_capacity(WINDOW) };
            while window.ends.len() < WINDOW
                && window.text.len() < WINDOW_BYTES
                && start + (window.text.len() as u64) < range.end
            {
                match trace::read_line(&mut reader, &mut window.text) {
                    Ok(0) => break,
                    Ok(_) => window.ends.push(window.text.len()),
                    Err(error) => {
                        hand(Err(TraceError::Read { line: first + window.ends.len(), error }));
                        return;
                    }
                }
            }
            first += window.ends.len();
            start += window.text.len() as u64;
            if window.ends.is_empty() || !hand(Ok(window)) {
                return;
            }
        }
    }

    /// Its non-empty lines.
    fn lines(&self) -> Vec<Line<'_>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let lines = (self.first..).zip(starts.zip(&self.ends)).map(|(number, (start, end))| Line {
            number,
            start: self.start + start as u64,
            text: &self.text[start..*end],
        });
        lines.filter(|line| !line.text.trim_ascii().is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::bounds::Bound;
    use std::io::Read;

    #[test]
    fn a_line_without_an_end_is_an_error_and_is_not_read_whole() {
        let most = Bound::TraceSize.most();
        let endless = || BufReader::new(io::repeat(b' ').take(most * 8));
        let mut told = Vec::new();
        Window::read_all(endless(), 0..u64::MAX, |window| {
            told.extend(window.err().map(|why| why.to_string()));
            true
        });
        told.extend(trace::read_traces(endless()).map(|one| one.expect_err("too long").to_string()));
        let expected = "line 1: larger than 32 MiB; `--limit trace-size=64MiB` on the command line raises the limit";
        assert_eq!(told, [expected; 2]);
    }

    #[test]
    fn lines_keep_their_numbers_across_windows_and_blank_ones_are_passed_over() {
        let text: String =
            (1..=WINDOW * 2 + 3).map(|line| if line % 7 == 0 { "\n".into() } else { format!("{line}\n") }).collect();
        let (mut seen, mut windows) = (Vec::new(), 0);
        Window::read_all(text.trim_end().as_bytes(), 0..u64::MAX, |window| {
            let window = window.expect("readable");
            let told = |line: Line<'_>| (line.number, String::from_utf8_lossy(line.text).trim().to_owned());
            seen.extend(window.lines().into_iter().map(told));
            windows += 1;
            true
        });
        assert_eq!(windows, 3);
        let expected = (1..=WINDOW * 2 + 3).filter(|line| line % 7 != 0).map(|line| (line, line.to_string()));
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }

    #[test]
    fn each_line_begins_in_one_of_any_ranges_that_cover_the_file_and_lies_where_it_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("lines");
        let text = "one\n\nthree is longer than the others\n4\n5\nlast";
        std::fs::write(&file, text).expect("written");
        let length = text.len() as u64;
        for of in 1..=length + 2 {
            let mut seen = Vec::new();
            for number in 0..of {
                let (start, end) = (length * number / of, length * (number + 1) / of);
                let read = |line: Line<'_>| Ok((line.number, line.start, line.text.to_vec()));
                let before = lines_before(&file, start).expect("counted");
                in_order(&file, start..end, read, |(number, start, line)| {
                    assert!(text.as_bytes()[start as usize..].starts_with(&line));
                    seen.push((before + number, String::from_utf8_lossy(&line).trim().to_owned()));
                    Ok(())
                })
                .expect("read");
            }
            let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty());
            assert_eq!(seen, lines.map(|(number, line)| (number, line.to_owned())).collect::<Vec<_>>(), "{of}");
        }
    }
}
