//! Cassettes on disk: where a lane's file is, reading it, and replacing it whole or not at all.

use super::delta;
use super::end::{self, End};
use super::exchange::{Cassette, StoredRequest, Take};
use super::format::{self, Wrong};
use crate::platform::bounds::Bound;
use crate::platform::files;
use crate::platform::secrets::Redactor;
use crate::platform::yaml::{self, Node, Place, Problem, ReadError};
use crate::trace::text::shell_word;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a cassette cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// There is none: the lane was never recorded.
    #[error("{}: no such recording", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is larger than a recording may be.
    #[error("{}: larger than {}; {}", path.display(), Bound::RecordingSize.shown(), Bound::RecordingSize.advice())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a cassette.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
        /// What is wrong there.
        message: String,
    },
    /// Its last line is missing.
    #[error(
        "{}: the file is cut off: its last line, `end: {{exchanges, digest}}`, is missing; restore it, or record the lane again",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("{}: cassette format {version} is newer than this build reads ({}); update ragcheck", path.display(), format::VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version it has.
        version: u64,
    },
    /// It is of the first format, which has no digest: nothing tells whether it was edited.
    #[error(
        "{}: cassette format 1 has no `end:` line, so nothing tells what was cut off or edited; `ragcheck cassette rekey {}` converts it",
        path.display(),
        shell_word(&path.display().to_string())
    )]
    FirstFormat {
        /// The file.
        path: PathBuf,
    },
    /// It would hold a secret, so it was not written.
    #[error("{}: not written, because it would still hold {secret}", path.display())]
    Secret {
        /// The file that was not written.
        path: PathBuf,
        /// The secret's name.
        secret: String,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Where a cassette came from; the text is kept for the requests, which only a miss reads.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub path: PathBuf,
    pub text: Arc<str>,
    pub blobs: PathBuf,
}

/// The text of a lane's file, which messages call `shown`.
fn read_whole(path: &Path, shown: &Path) -> Result<Arc<str>, CassetteError> {
    let bytes = files::read_at_most(path, Bound::RecordingSize.most());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into()));
    text.map(Arc::from).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => CassetteError::TooLarge { path: shown.to_owned() },
        io::ErrorKind::NotFound => CassetteError::Missing { path: shown.to_owned() },
        _ => CassetteError::Read { path: shown.to_owned(), error },
    })
}

/// The file of a lane: `<dir>/<scenario>/<case>/<lane>.yaml`; `lane` prints as `flow.variant.n[.control]`.
pub fn path(dir: &Path, scenario: &str, case: &str, lane: &impl std::fmt::Display) -> PathBuf {
    dir.join(scenario).join(case).join(format!("{lane}.yaml"))
}

/// The folder of what a scenario's cassettes share: `<dir>/<scenario>/blobs`.
pub fn blobs_dir(dir: &Path, scenario: &str) -> PathBuf {
    dir.join(scenario).join("blobs")
}

impl Cassette {
    /// Reads a lane's file; the requests stay unread until [`Cassette::requests`].
    ///
    /// # Errors
    /// [`CassetteError`] with file, line and column.
    pub fn load(path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::load_as(path, path, blobs)
    }

    /// The number of the next take of the lane in that file, with the history that it has then; a first one where
    /// there is no sound recording.
    pub fn next_take(path: &Path, blobs: &Path) -> (u32, BTreeMap<u32, Take>) {
        Self::load(path, blobs).map_or_else(|_| (1, BTreeMap::new()), |earlier| earlier.header.next_take())
    }

    /// [`Cassette::load`] with messages that call the file `shown`: what a run writes must not depend on where it is.
    ///
    /// # Errors
    /// [`CassetteError`] with file, line and column.
    pub fn load_as(path: &Path, shown: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::parse(read_whole(path, shown)?, shown, blobs)
    }

    /// [`Cassette::load`] that takes files of the first format too: to convert them, and for nothing else.
    ///
    /// # Errors
    /// [`CassetteError`] with file, line and column.
    pub fn load_to_convert(path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::parse_since(1, read_whole(path, path)?, path, blobs)
    }

    /// Reads a lane's text, as [`Cassette::load`] does; `path` is for messages.
    ///
    /// # Errors
    /// [`CassetteError`] with file, line and column.
    pub fn parse(text: Arc<str>, path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::parse_since(end::SINCE, text, path, blobs)
    }

    /// Reads the text of a format that is as new as `oldest`.
    fn parse_since(oldest: u64, text: Arc<str>, path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        let broken = |wrong: Wrong| CassetteError::Broken {
            path: path.to_owned(),
            line: wrong.place.line,
            column: wrong.place.column,
            message: wrong.message,
        };
        let (body, end) = end::split(&text).map_or((&*text, None), |(body, end)| (body, Some(end)));
        let truncated = || CassetteError::Truncated { path: path.to_owned() };
        let root = read(body, "request").map_err(|error| {
            // What is cut off is seldom YAML: say why.
            if end.is_none() && says_version(body, end::SINCE) {
                return truncated();
            }
            let place = error.place.unwrap_or(Place { line: 1, column: 1, length: 1 });
            broken(Wrong { place, message: error.to_string() })
        })?;
        let version = format::version(&root).map_err(broken)?;
        if version > format::VERSION {
            return Err(CassetteError::Newer { path: path.to_owned(), version });
        }
        if version < oldest {
            return Err(CassetteError::FirstFormat { path: path.to_owned() });
        }
        if version >= end::SINCE && end.is_none() {
            return Err(truncated());
        }
        let mut cassette = format::decode(&root).map_err(broken)?;
        drop(root);
        cassette.sealed = end.is_some();
        cassette.edited = end.as_ref().is_some_and(|end| end.is_edited(body, cassette.exchanges.len()));
        cassette.recorded = end.filter(|end| !end.edited).map(|end| end.digest);
        cassette.source = Some(Source { path: path.to_owned(), text, blobs: blobs.to_owned() });
        Ok(cassette)
    }

    /// The requests, one for each exchange in the same order, read from the file where they were not yet.
    pub fn requests(&self) -> Vec<StoredRequest> {
        let Some(source) = &self.source else {
            return self.exchanges.iter().filter_map(|exchange| exchange.request.clone()).collect();
        };
        let body = end::split(&source.text).map_or(&*source.text, |(body, _)| body);
        let Ok(root) = read(body, "response") else { return Vec::new() };
        let items = root.get("exchanges").and_then(Node::items).unwrap_or_default();
        let entries: Vec<(u32, String, Option<&Node<'_>>)> = self
            .exchanges
            .iter()
            .zip(items)
            .map(|(exchange, node)| (exchange.ordinal, exchange.service.clone(), node.get("request")))
            .collect();
        delta::decode(&entries, &|name| {
            let plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '.') && !name.contains("..");
            let read = || files::read_text_at_most(source.blobs.join(name), Bound::RecordingSize.most());
            let text = plain.then(|| read().ok()).flatten();
            delta::as_recorded(name, text.ok_or_else(|| delta::BlobProblem::Missing(name.to_owned()))?)
        })
    }

    /// The file's text and its blobs by name, as [`Cassette::save`] writes them.
    pub fn to_text(&self) -> (String, Vec<(String, String)>) {
        let mut complete = self.clone();
        if self.source.is_some() {
            for (exchange, request) in complete.exchanges.iter_mut().zip(self.requests()) {
                exchange.request = Some(request);
            }
        }
        let (document, blobs) = format::encode(&complete);
        let mut text = yaml::write(&document);
        let mut end = End::of(&text, self.exchanges.len(), self.edited);
        // An edit that was taken back, a key computed anew for example, leaves what was recorded.
        end.edited &= self.recorded.as_ref() != Some(&end.digest);
        text.push_str(&end.line());
        (text, blobs.into_iter().collect())
    }

    /// Writes the lane's file and its blobs, each whole or not at all.
    ///
    /// # Errors
    /// [`CassetteError::Secret`] when a secret would still be in it (nothing is written then), or when writing fails.
    pub fn save(&self, path: &Path, blobs: &Path, redactor: &Redactor) -> Result<(), CassetteError> {
        let (text, files) = self.to_text();
        let mut all: Vec<(PathBuf, String)> = files.into_iter().map(|(name, text)| (blobs.join(name), text)).collect();
        // The lane comes last: an interrupted write leaves blobs that nobody needs, never a lane without its blobs.
        all.push((path.to_owned(), text));
        for (file, text) in &all {
            if let Some(secret) = redactor.leak(text) {
                return Err(CassetteError::Secret { path: file.clone(), secret: secret.to_owned() });
            }
        }
        for (file, text) in &all {
            let same = file != path && files::read_to_string(file).is_ok_and(|present| present == *text);
            if !same {
                files::replace(file, text).map_err(|error| CassetteError::Write { path: file.clone(), error })?;
            }
        }
        Ok(())
    }
}

/// A lane's document: in our own style without `skip`, or as a person left it.
fn read<'a>(body: &'a str, skip: &str) -> Result<Node<'a>, ReadError> {
    if let Some(root) = yaml::parse_own_style(body, &[skip]) {
        return Ok(root);
    }
    let root = yaml::parse(body)?;
    match root.wrong_key() {
        None => Ok(root),
        Some(key) => {
            let problem = key.written().map_or(Problem::KeyNotText, |key| Problem::RepeatedKey(Some(key.to_owned())));
            Err(ReadError { problem, place: Some(key.place) })
        }
    }
}

/// Whether a document claims this version in its first lines.
fn says_version(text: &str, version: u64) -> bool {
    let claim = format!("cassette: {version}");
    text.lines().take(5).any(|line| line.trim_end() == claim)
}
