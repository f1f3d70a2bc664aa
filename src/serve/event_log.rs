//! The log of a service: every event of every turn, each with its session, one JSON object a line.

use crate::trace::Event;
use crate::{files, secrets};
use jiff::Timestamp;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The log's file.
#[derive(Debug)]
pub(super) struct EventLog {
    file: Mutex<File>,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    session: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

impl EventLog {
    /// The log in `file`, which is added to.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn open(file: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(files::append(file)?) })
    }

    /// Writes one event, without the secrets that the process knows. A full disk loses the line and no answer.
    pub(super) fn write(&self, at: Timestamp, session: &str, event: &Event) {
        let Ok(line) = serde_json::to_string(&Line { at, session, event }) else { return };
        let line = format!("{}\n", secrets::clean(&line));
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One call, so that the lines of turns side by side do not mix.
        let _ = file.write_all(line.as_bytes());
    }
}
