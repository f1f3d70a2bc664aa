//! Cassette files: paths, reading, and atomic replacement.

use super::delta::{self, BlobProblem, Blobs};
use super::end::{self, End};
use super::exchange::{Cassette, Outcome, Source, StoredRequest, Take};
use super::format::{self, Wrong};
use crate::platform::bounds::Bound;
use crate::platform::files;
use crate::platform::secrets::Redactor;
use crate::platform::yaml::{self, Node, Place, Problem, ReadError};
use crate::trace::text::shell_word;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that hold the first lines of a lane's file.
const HEADER: u64 = 4096;

/// Why a cassette cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file is missing: the lane was never recorded.
    #[error("{}: no such recording", path.display())]
    Missing { path: PathBuf },
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file is larger than a recording may be.
    #[error("{}: larger than {}; {}", path.display(), Bound::RecordingSize.shown(), Bound::RecordingSize.advice())]
    TooLarge { path: PathBuf },
    /// The file is not a valid cassette. `line`, `column`: from 1.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Broken { path: PathBuf, line: u32, column: u32, message: String },
    /// The last line is missing: the file is truncated.
    #[error(
        "{}: the file is cut off: its last line, `end: {{exchanges, digest}}`, is missing; restore it, or record the lane again",
        path.display()
    )]
    Truncated { path: PathBuf },
    /// A newer build wrote it.
    #[error("{}: cassette format {version} is newer than this build reads ({}); update ragcheck", path.display(), format::VERSION)]
    Newer { path: PathBuf, version: u64 },
    /// The file has format 1, which has no digest, so edits cannot be detected.
    #[error(
        "{}: cassette format 1 has no `end:` line, so nothing tells what was cut off or edited; `ragcheck cassette rekey {}` converts it",
        path.display(),
        shell_word(&path.display().to_string())
    )]
    FirstFormat { path: PathBuf },
    /// The file would hold a secret, so it was not written. `place`: the exchange that holds it; empty if none does.
    #[error("{}: not written, because it would still hold {secret}{place}", path.display())]
    Secret { path: PathBuf, secret: String, place: String },
    /// The file cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Reads the text of a lane's file; messages name it `shown`.
fn read_whole(path: &Path, shown: &Path) -> Result<Arc<str>, CassetteError> {
    let bytes = files::read_at_most(path, Bound::RecordingSize.most());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into()));
    text.map(Arc::from).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => CassetteError::TooLarge { path: shown.to_owned() },
        io::ErrorKind::NotFound => CassetteError::Missing { path: shown.to_owned() },
        _ => CassetteError::Read { path: shown.to_owned(), source: error },
    })
}

/// Path of a lane's file: `<dir>/<scenario>/<case>/<lane>.yaml`; `lane` prints as `flow.variant.n[.control]`.
pub fn path(dir: &Path, scenario: &str, case: &str, lane: &impl std::fmt::Display) -> PathBuf {
    dir.join(scenario).join(case).join(format!("{lane}.yaml"))
}

/// Path of the lane `start` of a flow and a variant, which holds what the agent's process asks before its first turn:
/// `<dir>/<scenario>/<flow>.<variant>.start.yaml`.
pub(crate) fn start_path(dir: &Path, scenario: &str, flow: &str, variant: &str) -> PathBuf {
    dir.join(scenario).join(format!("{flow}.{variant}.start.yaml"))
}

/// When a lane was recorded, from the first lines of its file; `None` if they do not say.
pub(crate) fn recorded_at(path: &Path) -> Option<jiff::Timestamp> {
    let mut text = Vec::new();
    files::open(path).ok()?.take(HEADER).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("recorded_at:"))?.trim().trim_matches('"').parse().ok()
}

/// Folder shared by a scenario's cassettes: `<dir>/<scenario>/blobs`.
pub fn blobs_dir(dir: &Path, scenario: &str) -> PathBuf {
    dir.join(scenario).join("blobs")
}

impl Cassette {
    /// Reads a lane's file; requests are parsed later, by [`Cassette::requests`].
    ///
    /// # Errors
    /// `CassetteError` with file, line and column.
    pub fn load(path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::load_as(path, path, blobs)
    }

    /// Number and history of the next take of the lane in that file; take 1 if there is no valid recording.
    pub fn next_take(path: &Path, blobs: &Path) -> (u32, BTreeMap<u32, Take>) {
        Self::load(path, blobs).map_or_else(|_| (1, BTreeMap::new()), |earlier| earlier.header.next_take())
    }

    /// Like [`Cassette::load`], but messages name the file `shown`: output of a run must not depend on absolute paths.
    ///
    /// # Errors
    /// `CassetteError` with file, line and column.
    pub fn load_as(path: &Path, shown: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::parse(read_whole(path, shown)?, shown, blobs)
    }

    /// Like [`Cassette::load`], but accepts format 1 too. For conversion only.
    ///
    /// # Errors
    /// `CassetteError` with file, line and column.
    pub fn load_to_convert(path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::parse_since(1, read_whole(path, path)?, path, blobs)
    }

    /// Parses a lane's text like [`Cassette::load`]; `path` is used in messages.
    ///
    /// # Errors
    /// `CassetteError` with file, line and column.
    pub fn parse(text: Arc<str>, path: &Path, blobs: &Path) -> Result<Self, CassetteError> {
        Self::parse_since(end::SINCE, text, path, blobs)
    }

    /// Parses a text whose format version is at least `oldest`.
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
            // A truncated file is rarely valid YAML, so report the truncation first.
            if end.is_none() && says_version(body, end::SINCE) {
                return truncated();
            }
            unreadable(path, &error)
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

    /// The requests, one for each exchange in the same order; parsed from the file's text if necessary.
    pub fn requests(&self) -> Vec<StoredRequest> {
        let Some(source) = &self.source else {
            return self.exchanges.iter().filter_map(|exchange| exchange.request.clone()).collect();
        };
        let Ok(root) = source.root() else { return Vec::new() };
        let entries: Vec<(u32, String, Option<&Node<'_>>)> = self
            .exchanges
            .iter()
            .zip(exchange_nodes(&root))
            .map(|(exchange, node)| (exchange.ordinal, exchange.service.clone(), node.get("request")))
            .collect();
        delta::decode(&entries, &|name| source.blob(name))
    }

    /// The file's text and its blobs by name, as written by [`Cassette::save`]. Requests of a loaded file are copied as
    /// they stand in it.
    ///
    /// # Errors
    /// `CassetteError::Broken` if the requests of a loaded file cannot be read, and so would be lost.
    pub fn to_text(&self) -> Result<(String, Vec<(String, String)>), CassetteError> {
        let (requests, blobs) = match &self.source {
            None => delta::encode(&self.exchanges),
            Some(source) => source.stored_requests()?,
        };
        let mut text = yaml::write(&format::encode(self, requests));
        let mut end = End::of(&text, self.exchanges.len(), self.edited);
        // An edit that was undone, for example by rekeying, restores the recorded text.
        end.edited &= self.recorded.as_ref() != Some(&end.digest);
        text.push_str(&end.line());
        Ok((text, blobs.into_iter().collect()))
    }

    /// Writes the lane's file and its blobs, each atomically.
    ///
    /// # Errors
    /// As [`Cassette::to_text`], or `CassetteError::Secret` if the text would still hold a secret (nothing is written
    /// then), or if writing fails.
    pub fn save(&self, path: &Path, blobs: &Path, redactor: &Redactor) -> Result<(), CassetteError> {
        let (text, files) = self.to_text()?;
        let mut all: Vec<(PathBuf, String)> = files.into_iter().map(|(name, text)| (blobs.join(name), text)).collect();
        // The lane is written last: an interrupted write can leave unused blobs, but never a lane without its blobs.
        all.push((path.to_owned(), text));
        for (file, text) in &all {
            if let Some(secret) = redactor.leak(text) {
                let (secret, place) = (secret.to_owned(), self.place_of_secret(redactor).unwrap_or_default());
                return Err(CassetteError::Secret { path: file.clone(), secret, place });
            }
        }
        for (file, text) in &all {
            let same = file != path && files::read_to_string(file).is_ok_and(|present| present == *text);
            if !same {
                files::replace(file, text).map_err(|source| CassetteError::Write { path: file.clone(), source })?;
            }
        }
        Ok(())
    }
}

impl Cassette {
    /// The first exchange that holds a secret, as part of a message.
    fn place_of_secret(&self, redactor: &Redactor) -> Option<String> {
        let holds = |text: &str| !redactor.is_clean(text);
        self.exchanges.iter().find_map(|exchange| {
            let request = exchange.request.as_ref()?;
            let asks = holds(&request.path) || holds(&request.body.to_string());
            let answers = || match &exchange.outcome {
                Outcome::Response { headers, body, .. } => {
                    holds(&String::from_utf8_lossy(body)) || headers.iter().any(|(_, value)| holds(value))
                }
                _ => false,
            };
            let part = if asks { "request" } else { answers().then_some("answer")? };
            let (ordinal, method, path) = (exchange.ordinal, &request.method, redactor.redact(&request.path));
            Some(format!(", in the {part} of exchange {ordinal} ({method} {path})"))
        })
    }
}

impl Source {
    /// The document, without responses.
    fn root(&self) -> Result<Node<'_>, CassetteError> {
        let body = end::split(&self.text).map_or(&*self.text, |(body, _)| body);
        read(body, "response").map_err(|error| unreadable(&self.path, &error))
    }

    /// The text of a blob, as it was recorded.
    fn blob(&self, name: &str) -> Result<String, BlobProblem> {
        let plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '.') && !name.contains("..");
        let read = || files::read_text_at_most(self.blobs.join(name), Bound::RecordingSize.most());
        let text = plain.then(|| read().ok()).flatten();
        delta::as_recorded(name, text.ok_or_else(|| BlobProblem::Missing(name.to_owned()))?)
    }

    /// The requests in their stored form, and the blobs that they refer to, as far as these are there.
    fn stored_requests(&self) -> Result<(Vec<Value>, Blobs), CassetteError> {
        let root = self.root()?;
        let requests = exchange_nodes(&root).iter().map(|node| node.get("request").map_or(Value::Null, Node::to_value));
        let mut requests: Vec<Value> = requests.collect();
        let mut names = BTreeSet::new();
        for request in &mut requests {
            delta::blob_names(request, &mut names);
        }
        let blobs = names.into_iter().filter_map(|name| self.blob(&name).ok().map(|text| (name, text)));
        Ok((requests, blobs.collect()))
    }
}

fn exchange_nodes<'n, 'a>(root: &'n Node<'a>) -> &'n [Node<'a>] {
    root.get("exchanges").and_then(Node::items).unwrap_or_default()
}

/// Parses a lane's document: with the fast parser, without `skip`, if it is in our own style, else with the full one.
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

fn unreadable(path: &Path, error: &ReadError) -> CassetteError {
    let Place { line, column, .. } = error.place.unwrap_or(Place { line: 1, column: 1, length: 1 });
    CassetteError::Broken { path: path.to_owned(), line, column, message: error.to_string() }
}

/// Whether the first lines of a document give this version.
fn says_version(text: &str, version: u64) -> bool {
    let claim = format!("cassette: {version}");
    text.lines().take(5).any(|line| line.trim_end() == claim)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lane, saved};
    use super::*;

    #[test]
    fn a_request_that_is_not_in_the_file_is_still_missed_after_the_file_is_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = saved(&lane(), folder.path()).to_text().expect("readable").0;
        let without = whole.replacen("    request:\n", "    requested:\n", 1);
        assert_ne!(without, whole);
        let parse = |text: String| Cassette::parse(text.into(), Path::new("lane.yaml"), folder.path()).expect("a lane");
        let loaded = parse(without);
        for cassette in [&loaded, &parse(loaded.to_text().expect("readable").0)] {
            assert_eq!(cassette.requests()[0].problem.as_deref(), Some("it is not in the file"));
        }
    }

    #[test]
    fn a_recording_whose_request_cannot_be_read_is_never_written_again_without_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, blobs) = (folder.path().join("lane.yaml"), folder.path().join("blobs"));
        let whole = saved(&lane(), folder.path()).to_text().expect("readable").0;
        let broken = whole.replacen("      method: \"POST\"", "      method: \"POST", 1);
        assert_ne!(broken, whole);
        std::fs::write(&file, &broken).expect("written");
        let loaded = Cassette::load(&file, &blobs).expect("its requests are not read");
        let error = loaded.save(&file, &blobs, &Redactor::default()).expect_err("its requests would be lost");
        assert!(matches!(error, CassetteError::Broken { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), broken);
    }
}
