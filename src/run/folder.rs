//! Run folders: written beside, then renamed after their content.
//!
//! `reports/.writing-…` becomes `reports/<first 12 hex digits of SHA-256 over plan.json and traces.jsonl>`, so the
//! same run made twice is the same folder, and keeps its grades; `reports/latest` points to the newest. An interrupted run leaves older
//! folders as they were.

use crate::files;
use crate::secrets;
use crate::trace::{GRADES, JUDGEMENTS_CSV, PLAN, TRACES};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A run folder that is being written.
#[derive(Debug)]
pub struct Writing {
    reports: PathBuf,
    folder: tempfile::TempDir,
    traces: BufWriter<File>,
    digest: Sha256,
}

impl Writing {
    /// Begins a folder below `reports` with `plan` (the JSON text of `plan.json`).
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(reports: &Path, plan: &[u8]) -> io::Result<Self> {
        files::create_dir_all(reports)?;
        let folder = files::temporary_folder(".writing-", reports)?;
        let plan = &*secrets::clean_bytes(plan);
        files::write(folder.path().join(PLAN), plan)?;
        let traces = BufWriter::with_capacity(1 << 20, files::create(folder.path().join(TRACES))?);
        let mut digest = Sha256::new();
        digest.update(plan);
        Ok(Self { reports: reports.to_owned(), folder, traces, digest })
    }

    /// Appends one line, with its newline, to `traces.jsonl`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn trace(&mut self, line: &[u8]) -> io::Result<()> {
        let line = secrets::clean_bytes(line);
        self.digest.update(&line);
        self.traces.write_all(&line)
    }

    /// Where the folder is for now.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the folder its name and points `latest` to it; an equal run made before is replaced.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn finish(mut self) -> io::Result<PathBuf> {
        self.traces.flush()?;
        self.traces.get_ref().sync_all()?;
        let digest = self.digest.finalize();
        let first = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let name = format!("{first:012x}");
        let place = self.reports.join(&name);
        let written = self.folder.keep();
        if place.exists() {
            // The same answers: what was graded stays graded.
            for name in [GRADES, JUDGEMENTS_CSV] {
                match files::rename(place.join(name), written.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            files::remove_dir_all(&place)?;
        }
        files::rename(&written, &place)?;
        point_latest(&self.reports, &name)?;
        Ok(place)
    }
}

#[cfg(unix)]
fn point_latest(reports: &Path, name: &str) -> io::Result<()> {
    let beside = reports.join(".latest-new");
    let _ = files::remove_file(&beside);
    files::link(name, &beside)?;
    files::rename(&beside, reports.join("latest"))
}

#[cfg(not(unix))]
fn point_latest(reports: &Path, name: &str) -> io::Result<()> {
    files::write(reports.join("latest.txt"), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn equal_content_gives_one_folder_and_latest_points_to_it() {
        let reports = tempfile::tempdir().expect("a folder");
        let write = |line: &[u8]| {
            let mut writing = Writing::begin(reports.path(), b"{}").expect("begin");
            writing.trace(line).expect("a line");
            writing.finish().expect("finish")
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
