//! The log of a service: every event of every turn with its session, one JSON object per line.
//!
//! A log that reaches [`MOST_BYTES`] is renamed to `events.1.jsonl`, replacing the previous one, and a new log begins:
//! a service that runs for years does not fill the disk. A line that cannot be written does not fail the answer; it is
//! counted.

use crate::platform::lock::lock;
use crate::trace::Event;
use crate::{platform::files, platform::secrets};
use jiff::Timestamp;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Maximum size of one log file in bytes.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// The log's file.
#[derive(Debug)]
pub(super) struct EventLog {
    path: PathBuf,
    most: u64,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
    /// Whether the last line was written only partly: the next one then starts on a new line.
    torn: bool,
    lost: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    session: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

impl EventLog {
    /// Opens the log at `path` for appending, with at most `most` bytes per file.
    pub(super) fn open(path: &Path, most: u64) -> io::Result<Self> {
        let file = files::append_private(path)?;
        let bytes = file.metadata()?.len();
        let torn = bytes > 0 && !ends_a_line(path)?;
        let open = Mutex::new(Open { file, bytes, torn, lost: 0 });
        Ok(Self { path: path.to_owned(), most, open })
    }

    /// Writes one event, with known secrets redacted. A full disk loses the line, not the answer.
    pub(super) fn write(&self, at: Timestamp, session: &str, event: &Event) {
        let line = serde_json::to_string(&Line { at, session, event });
        let mut open = lock(&self.open);
        let Ok(line) = line else {
            open.lost += 1;
            return;
        };
        let start = if open.torn { "\n" } else { "" };
        let line = format!("{start}{}\n", secrets::clean(&line));
        if open.bytes > 0 && open.bytes + line.len() as u64 > self.most {
            self.rotate(&mut open);
        }
        // Written in one call, so that a kill truncates at most one line.
        let written = open.file.write_all(line.as_bytes());
        open.torn = written.is_err();
        open.lost += u64::from(written.is_err());
        open.bytes += line.len() as u64;
    }

    /// Number of lines that could not be written since the start.
    pub(super) fn lost(&self) -> u64 {
        lock(&self.open).lost
    }

    /// Starts a new file. If that fails, the old one continues: the log matters more than its size limit.
    fn rotate(&self, open: &mut Open) {
        let renamed = files::rename(&self.path, self.path.with_extension("1.jsonl"));
        if let Ok(file) = renamed.and_then(|()| files::append_private(&self.path)) {
            (open.file, open.bytes, open.torn) = (file, 0, false);
        }
    }
}

/// Whether a non-empty file ends with a whole line: a killed service may have left a partial one.
fn ends_a_line(path: &Path) -> io::Result<bool> {
    let mut last = [0];
    let mut file = files::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::What;

    fn event(words: &str) -> Event {
        Event { at_us: 0, conversation: 0, turn: 0, what: What::TurnStarted { query: words.to_owned() } }
    }

    fn lines(file: &Path) -> Vec<String> {
        std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_log_that_is_full_is_put_aside_and_at_most_two_files_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, before) = (folder.path().join("events.jsonl"), folder.path().join("events.1.jsonl"));
        let log = EventLog::open(&file, 1000).expect("opens");
        for number in 0..100 {
            log.write(Timestamp::UNIX_EPOCH, "s-1", &event(&format!("question {number}")));
        }
        let names = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(names, 2);
        for file in [&file, &before] {
            assert!(std::fs::metadata(file).expect("a file").len() <= 1000);
        }
        let kept: Vec<String> = lines(&before).into_iter().chain(lines(&file)).collect();
        assert!(kept.last().is_some_and(|line| line.contains("question 99")), "{kept:?}");
        let numbers: Vec<usize> = kept
            .iter()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).expect("a whole line");
                let words = line["what"]["turn_started"]["query"].as_str().expect("words").to_owned();
                words["question ".len()..].parse().expect("a number")
            })
            .collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn half_a_line_that_a_kill_left_spoils_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events.jsonl");
        std::fs::write(&file, "{\"at\":\"20").expect("written");
        EventLog::open(&file, MOST_BYTES).expect("opens").write(Timestamp::UNIX_EPOCH, "s-1", &event("after the kill"));
        let last = lines(&file).pop().expect("a line");
        let last: serde_json::Value = serde_json::from_str(&last).expect("a whole line");
        assert_eq!(last["what"]["turn_started"]["query"], "after the kill");
        EventLog::open(&file, MOST_BYTES).expect("opens").write(Timestamp::UNIX_EPOCH, "s-1", &event("later"));
        assert_eq!(lines(&file).len(), 3, "a whole line needs no other beginning");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_what_was_said() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("events.jsonl");
        let _log = EventLog::open(&file, MOST_BYTES).expect("opens");
        assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    }
}
