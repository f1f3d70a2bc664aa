//! Run folders, written under a temporary name and renamed after their content.
//!
//! A temporary folder becomes `reports/<first 12 hex digits of SHA-256 over plan.json and traces.jsonl>`. Equal runs
//! therefore share a folder, even if two processes write it at once. Grades and comparisons in it stay if they were made
//! on this machine.
//! `reports/latest` points to the newest complete run. A killed run leaves older folders unchanged.

use crate::platform::{files, secrets};
use crate::trace::{
    AGENT_OUTPUT, COMPARISON_JSON, EARLIER, ENVIRONMENT, GRADES, NamedPassage, PASSAGES, PLAN, PassageWriter, Passages,
    RUN_AGAIN, TRACES, VARIANTS_JSON, seal, set_aside,
};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of folders named `latest` that are moved aside.
#[cfg(unix)]
const MOST_ASIDE: usize = 1_000;

/// A run folder in progress.
#[derive(Debug)]
pub(crate) struct Writing {
    reports: PathBuf,
    folder: files::TemporaryFolder,
    traces: BufWriter<File>,
    again: Option<BufWriter<File>>,
    printed: Option<BufWriter<File>>,
    passages: PassageWriter<BufWriter<File>>,
    digest: Sha256,
}

impl Writing {
    /// Creates a folder below `reports` with `plan`, the text of `plan.json` from
    /// [`Plan::stored`](crate::plan::Plan::stored).
    pub(crate) fn begin(reports: &Path, plan: &[u8]) -> io::Result<Self> {
        files::create_dir_all(reports)?;
        let folder = files::temporary_folder(reports)?;
        files::write(folder.path().join(PLAN), plan)?;
        let traces = BufWriter::with_capacity(1 << 20, files::create(folder.path().join(TRACES))?);
        let passages = BufWriter::new(files::create(folder.path().join(PASSAGES))?);
        let passages = PassageWriter::new(passages, &Passages::default());
        let mut digest = Sha256::new();
        digest.update(plan);
        Ok(Self { reports: reports.to_owned(), folder, traces, again: None, printed: None, passages, digest })
    }

    /// Appends one line, including its newline, to `traces.jsonl`.
    pub(crate) fn trace(&mut self, line: &[u8]) -> io::Result<()> {
        let (line, digest) = stored_line(line);
        // A line with a digest is represented by it.
        self.digest.update(if digest.is_empty() { &line[..] } else { digest.as_bytes() });
        self.traces.write_all(&line)
    }

    /// Appends the line of a draw that does not count to `run-again.jsonl`.
    pub(crate) fn run_again(&mut self, line: &[u8]) -> io::Result<()> {
        let again = match self.again.take() {
            Some(again) => again,
            None => BufWriter::new(files::create(self.folder.path().join(RUN_AGAIN))?),
        };
        self.again.insert(again).write_all(&stored_line(line).0)
    }

    /// Appends what the agent's process printed in a trial to `agent-output.jsonl`. It differs from run to run, so the
    /// folder's name does not depend on it.
    pub(crate) fn printed(&mut self, trial: &str, text: &str) -> io::Result<()> {
        let file = self.folder.path().join(AGENT_OUTPUT);
        let printed = match self.printed.take() {
            Some(printed) => printed,
            None => BufWriter::new(files::create(file)?),
        };
        let line = serde_json::json!({"trial": trial, "text": text}).to_string();
        self.printed.insert(printed).write_all(format!("{}\n", secrets::clean(&line)).as_bytes())
    }

    /// Appends passages that are not there yet to `passages.jsonl`.
    pub(crate) fn passages(&mut self, found: &[Arc<NamedPassage>]) -> io::Result<()> {
        self.passages.add(found).map(|_| ())
    }

    /// Flushes all files after the last trace, so that they can be read. Returns how many passages exceeded the size
    /// limit.
    pub(crate) fn flush(&mut self) -> io::Result<usize> {
        self.traces.flush()?;
        self.again.as_mut().map_or(Ok(()), Write::flush)?;
        self.printed.as_mut().map_or(Ok(()), Write::flush)?;
        self.passages.out().flush()?;
        Ok(self.passages.left_out())
    }

    /// Current path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Renames the folder to its final name. If an equal run exists, its files are replaced; grades and comparisons
    /// that were made on this machine stay, and others are set aside, with a note. Points `latest` to the folder if
    /// `newest` is set.
    pub(crate) fn finish(mut self, newest: bool) -> io::Result<(PathBuf, Option<String>)> {
        self.flush()?;
        self.traces.get_ref().sync_all()?;
        self.passages.out().get_ref().sync_all()?;
        let name = hex::encode(&self.digest.finalize()[..6]);
        let place = self.reports.join(&name);
        let _turn = files::turn();
        let mut aside = Vec::new();
        if place.is_dir() {
            for entry in files::entries(self.folder.path())? {
                if let Some(file) = entry.path.file_name() {
                    files::move_file(&entry.path, &place.join(file))?;
                }
            }
            aside = set_aside(&place)?;
        } else {
            files::persist_folder(self.folder, &place)?;
        }
        files::sync_folder(&self.reports);
        if newest {
            point_latest(&self.reports, &name)?;
        }
        let note = (!aside.is_empty()).then(|| not_made_here(&place, &aside));
        Ok((place, note))
    }
}

/// Note on additions that were moved to another folder.
fn not_made_here(place: &Path, aside: &[&str]) -> String {
    format!(
        "{} of an earlier equal run do not count, because they were not made on this machine; they are in {}. \
         `ragcheck judge` and `ragcheck compare` make them again",
        aside.join(", "),
        place.join(EARLIER).display()
    )
}

/// Removes the oldest replay folders below `reports` until `keep` of them are left. Folders of live runs, recordings
/// and imports, and folders with grades or comparisons, are never removed, nor are `latest` and `made`, the run just
/// written.
pub(crate) fn prune(reports: &Path, keep: usize, made: &Path) -> io::Result<()> {
    let _turn = files::turn();
    let latest = files::resolved(&reports.join("latest")).ok();
    let latest = latest.as_deref().and_then(Path::file_name);
    let mut replays = Vec::new();
    for entry in files::entries(reports)?.into_iter().filter(|entry| entry.is_folder) {
        let of = |name: &str| entry.path.join(name);
        let Some((mode, at)) = files::read(of(ENVIRONMENT)).ok().and_then(|text| made_in(&text)) else { continue };
        let stays = entry.path.file_name() == made.file_name() || entry.path.file_name() == latest;
        let used = [GRADES, COMPARISON_JSON, VARIANTS_JSON].iter().any(|name| of(name).exists());
        if mode == "replay" && !stays && !used {
            replays.push((at, entry.path));
        }
    }
    replays.sort_by(|one, other| other.cmp(one));
    for (_, folder) in replays.into_iter().skip(keep.saturating_sub(1)) {
        files::remove_dir_all(folder)?;
    }
    Ok(())
}

/// Mode of a run, and when it was written.
fn made_in(environment: &[u8]) -> Option<(String, String)> {
    let environment: serde_json::Value = serde_json::from_slice(environment).ok()?;
    let text = |name: &str| environment.get(name)?.as_str().map(str::to_owned);
    Some((text("mode")?, text("written_at")?))
}

/// A trace's stored line (redacted, sealed, with newline) and its digest, which may be empty.
pub(super) fn stored_line(line: &[u8]) -> (Vec<u8>, String) {
    let clean = secrets::clean_bytes(line);
    let Ok(text) = std::str::from_utf8(&clean) else { return (clean.into_owned(), String::new()) };
    let (line, digest) = seal(text);
    ((line + "\n").into_bytes(), digest)
}

#[cfg(unix)]
fn point_latest(reports: &Path, name: &str) -> io::Result<()> {
    let beside = files::temporary_folder(reports)?;
    let link = beside.path().join("latest");
    files::link(name, &link)?;
    let latest = reports.join("latest");
    match files::rename(&link, &latest) {
        // A copy that resolved the link, or an unpacked archive: moved aside, because only figures of this run may be
        // under this name.
        Err(error) if matches!(error.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty) => {
            let aside = (1..=MOST_ASIDE).map(|n| reports.join(format!("latest-{n}"))).find(|aside| !aside.exists());
            let aside = aside.ok_or(error)?;
            files::rename(&latest, aside)?;
            files::rename(&link, &latest)
        }
        // A symbolic link cannot be moved to another disk.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let removed = files::remove_file(&latest);
            removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
            files::link(name, latest)
        }
        other => other,
    }
}

#[cfg(not(unix))]
fn point_latest(reports: &Path, name: &str) -> io::Result<()> {
    files::write(reports.join("latest.txt"), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_called_latest_is_put_aside_and_nothing_of_it_is_lost() {
        let reports = tempfile::tempdir().expect("a folder");
        for round in 1..=2 {
            let _ = fs::remove_file(reports.path().join("latest"));
            fs::create_dir(reports.path().join("latest")).expect("a folder");
            fs::write(reports.path().join("latest/old.csv"), "old").expect("written");
            let made = Writing::begin(reports.path(), b"{}").expect("begun").finish(true).expect("finished").0;
            let latest = fs::canonicalize(reports.path().join("latest")).expect("latest");
            assert_eq!(latest, fs::canonicalize(made).expect("the run"));
            assert!(reports.path().join(format!("latest-{round}/old.csv")).exists());
        }
    }

    #[test]
    fn equal_content_gives_one_folder_and_latest_points_to_it() {
        let reports = tempfile::tempdir().expect("a folder");
        let write = |line: &[u8]| {
            let mut writing = Writing::begin(reports.path(), b"{}").expect("begin");
            writing.trace(line).expect("a line");
            writing.finish(true).expect("finish").0
        };
        let first = write(b"one\n");
        assert_eq!(write(b"one\n"), first);
        let second = write(b"two\n");
        assert_ne!(second, first);
        let latest = fs::canonicalize(reports.path().join("latest")).expect("latest");
        assert_eq!(latest, fs::canonicalize(&second).expect("second"));
        assert_eq!(fs::read_dir(reports.path()).expect("reports").count(), 3, "nothing is left behind");
    }

    #[test]
    fn an_interrupted_run_leaves_no_folder_and_older_ones_alone() {
        let reports = tempfile::tempdir().expect("a folder");
        let mut writing = Writing::begin(reports.path(), b"{}").expect("begin");
        writing.trace(b"half").expect("a line");
        drop(writing);
        assert_eq!(fs::read_dir(reports.path()).expect("reports").count(), 0);
    }
}
