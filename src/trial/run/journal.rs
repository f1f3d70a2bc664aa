//! Journal of a live or recording run: finished trials survive any way in which the run ends.
//!
//! `reports/.unfinished/<id of the plan>-<n>/` is created before the first trial begins, and removed once every trial
//! has ended without being cancelled and the run folder is written. That of a partition is
//! `<id of the plan>-<number>-of-<partitions>-<n>/`.
//!
//! | file | holds |
//! |---|---|
//! | `plan.json` | the plan, as the run folder has it |
//! | `begun.json` | [`Begun`]: the command, its mode, since when |
//! | `passages.jsonl` | the passages that finished trials found, whole; they last before the trace that names them |
//! | `errors.jsonl` | the id of each trial that ended in ERROR, once for each time |
//! | `run-again.jsonl` | the trace of a later draw, if the first one counts; it lasts before the first one is noted |
//! | `traces.jsonl` | the trace of each finished trial, in the order of finishing; a line lasts before the trial counts as finished |
//!
//! A run is unfinished as long as this folder exists; no other file says so. Its process holds the lock of
//! `traces.jsonl`. A truncated last line is dropped. A build that does not know the version of `begun.json` refuses to
//! resume the run.

use super::folder::stored_line;
use super::kept::KeptTraces;
use crate::plan::{Plan, differences};
use crate::platform::lock::lock;
use crate::platform::{files, secrets};
use crate::trace::{self, PASSAGES, PLAN, PassageWriter, Passages, RUN_AGAIN, TRACES, Trace};
use crate::trial::Finished;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Version of `begun.json`.
const VERSION: u32 = 1;
/// Folder of unfinished runs, below the reports folder.
const UNFINISHED: &str = ".unfinished";
/// File that describes the interrupted command.
const BEGUN: &str = "begun.json";
/// File that lists trials that ended in ERROR.
const ERRORS: &str = "errors.jsonl";
/// Maximum number of unfinished runs of one plan.
const MOST: usize = 1_000;

/// Contents of `begun.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub version: u32,
    /// `record` or `live`.
    pub mode: String,
    /// Start time (RFC 3339, UTC).
    pub at: Timestamp,
    /// Process id.
    pub process: u32,
    /// Command-line arguments after the program name.
    pub arguments: Vec<String>,
}

impl Begun {
    /// Describes a run that starts now under `mode` with these arguments.
    pub(crate) fn now(mode: &str, at: Timestamp, arguments: Vec<String>) -> Self {
        let arguments = arguments.iter().map(|argument| secrets::clean(argument).into_owned()).collect();
        Self { version: VERSION, mode: mode.to_owned(), at, process: std::process::id(), arguments }
    }

    /// The command line.
    pub(crate) fn command(&self) -> String {
        format!("ragcheck {}", self.arguments.join(" "))
    }
}

/// Why a run cannot be resumed or journaled.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no unfinished run.
    #[error("--resume: there is no unfinished run below {}", reports.display())]
    Nothing { reports: PathBuf },
    /// Its process is still running.
    #[error(
        "--resume: the run is still under way in process {process}, since {since}: wait until it has ended, or stop it"
    )]
    Running { process: u32, since: Timestamp },
    /// The plan has changed since.
    #[error(
        "--resume: what is asked for is not what was begun at {at} with `{command}` ({finished} finished):\n  {}\nundo the change, or begin \
         a new run without --resume; what is finished stays below {}",
        differences.join("\n  "), folder.display()
    )]
    Changed { at: Timestamp, command: String, finished: usize, differences: Vec<String>, folder: PathBuf },
    /// A file of the journal is invalid.
    #[error("--resume: {}: {why}; delete {} to begin anew", file.display(), folder.display())]
    Broken { file: PathBuf, why: String, folder: PathBuf },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
}

/// Journal of a run in progress.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    begun: Begun,
    kept: KeptTraces,
    /// Later draws of finished trials.
    again: KeptTraces,
    written: Mutex<Written>,
    resumed: bool,
    /// Number of ERROR results by trial, from earlier processes.
    errors: BTreeMap<String, u32>,
}

#[derive(Debug)]
struct Written {
    /// Locked while the run is in progress.
    file: File,
    length: u64,
    trials: BTreeSet<String>,
    passages: PassageWriter<File>,
}

impl Journal {
    /// Creates a journal for a run of `plan`, whose text is `plan_text`.
    pub(crate) fn begin(reports: &Path, plan: &Plan, plan_text: &[u8], begun: Begun) -> Result<Self, JournalError> {
        let _turn = files::turn();
        let free = (1..MOST).map(|n| folder_of(reports, plan, n)).find(|folder| !folder.exists());
        let folder = free.unwrap_or_else(|| folder_of(reports, plan, MOST));
        let file = |name: &str| folder.join(name);
        let of = |path: PathBuf| move |error| JournalError::File { path, error };
        files::create_dir_all(&folder).map_err(of(folder.clone()))?;
        files::replace(file(PLAN), plan_text).map_err(of(file(PLAN)))?;
        let text = serde_json::to_vec_pretty(&begun).map_err(|error| of(file(BEGUN))(error.into()))?;
        let traces = files::append(file(TRACES)).map_err(of(file(TRACES)))?;
        traces.try_lock().map_err(|error| of(file(TRACES))(error.into()))?;
        // Written last: a folder without it belongs to a process killed before the run began.
        files::replace(file(BEGUN), text).map_err(of(file(BEGUN)))?;
        let passages = files::append(file(PASSAGES)).map_err(of(file(PASSAGES)))?;
        let passages = PassageWriter::new(passages, &Passages::default());
        let written = Mutex::new(Written { file: traces, length: 0, trials: BTreeSet::new(), passages });
        let (kept, again) = (KeptTraces::default(), KeptTraces::default());
        Ok(Self { folder, begun, kept, again, written, resumed: false, errors: BTreeMap::new() })
    }

    /// Resumes the newest unfinished run of `plan` below `reports`.
    ///
    /// # Errors
    /// If there is none, if its plan or mode differs, or if its process is still running.
    pub(crate) fn resume(reports: &Path, plan: &Plan, plan_text: &[u8], mode: &str) -> Result<Self, JournalError> {
        let now: Value = serde_json::from_slice(plan_text).unwrap_or_default();
        let mut refused = None;
        for (begun, folder) in unfinished(reports)? {
            let file = folder.join(PLAN);
            let of = |error| JournalError::File { path: file.clone(), error };
            let broken = |error: serde_json::Error| JournalError::Broken {
                file: file.clone(),
                why: error.to_string(),
                folder: folder.clone(),
            };
            let before: Value = serde_json::from_slice(&trace::plan_text(&folder).map_err(of)?).map_err(broken)?;
            let mut differences = differences(&before, &now);
            if begun.mode != mode {
                differences.insert(0, format!("mode: {} then, {mode} now", begun.mode));
            }
            if differences.is_empty() {
                return Self::reopen(folder, begun, plan);
            }
            let finished = KeptTraces::of(&folder.join(TRACES), &id(&before), |_| true).map_or(0, |kept| kept.len());
            let (at, command) = (begun.at, begun.command());
            refused = refused.or(Some(JournalError::Changed { at, command, finished, differences, folder }));
        }
        Err(refused.unwrap_or_else(|| JournalError::Nothing { reports: reports.to_owned() }))
    }

    fn reopen(folder: PathBuf, begun: Begun, plan: &Plan) -> Result<Self, JournalError> {
        let path = folder.join(TRACES);
        let of = |error| JournalError::File { path: path.clone(), error };
        let file = files::append(&path).map_err(of)?;
        if file.try_lock().is_err() {
            return Err(JournalError::Running { process: begun.process, since: begun.at });
        }
        let kept = KeptTraces::of(&path, &plan.id, |_| true).map_err(of)?;
        let later = folder.join(RUN_AGAIN);
        let again = KeptTraces::last_draws(&later, &plan.id).map_err(of)?;
        if later.exists() {
            // The next line would continue one that was cut off by the kill, and both would be lost.
            let of = |error| JournalError::File { path: later.clone(), error };
            files::append(&later).and_then(|file| file.set_len(again.whole())).map_err(of)?;
        }
        let length = kept.whole();
        file.set_len(length).map_err(of)?;
        let beside = folder.join(PASSAGES);
        let of = |error| JournalError::File { path: beside.clone(), error };
        let passages = files::append(&beside).map_err(of)?;
        passages.set_len(Passages::whole(&beside).map_err(of)?.1).map_err(of)?;
        let passages = PassageWriter::new(passages, kept.passages());
        let written = Mutex::new(Written { file, length, trials: BTreeSet::new(), passages });
        let mut errors: BTreeMap<String, u32> = BTreeMap::new();
        for line in files::read_to_string(folder.join(ERRORS)).unwrap_or_default().lines() {
            if let Ok(trial) = serde_json::from_str::<String>(line) {
                *errors.entry(trial).or_default() += 1;
            }
        }
        Ok(Self { folder, begun, kept, again, written, resumed: true, errors })
    }

    /// A trial that an earlier process finished, with its later draw, which may not have been evaluated.
    pub(crate) fn finished_before(&self, trial: &str) -> Option<Finished> {
        let finished = self.kept.finished(trial)?;
        let again = self.again.finished(trial).filter(|_| !finished.trace.evidence.run_again.is_empty());
        Some(Finished { again: again.map(|again| Box::new(again.trace)), ..finished })
    }

    /// Start time of a resumed run; `None` for a new run.
    pub(crate) fn resumed_since(&self) -> Option<Timestamp> {
        self.resumed.then_some(self.begun.at)
    }

    /// Number of finished trials.
    pub(crate) fn finished(&self) -> usize {
        self.kept.len() + lock(&self.written).trials.len()
    }

    /// Number of times a trial ended in ERROR before the run was resumed.
    pub(crate) fn errors(&self, trial: &str) -> u32 {
        self.errors.get(trial).copied().unwrap_or(0)
    }

    /// Notes that a trial ended in ERROR, so that a resumed run can report how many it ran again.
    pub(crate) fn note_error(&self, trial: &str) -> io::Result<()> {
        let _alone = lock(&self.written);
        let line = serde_json::to_string(trial)? + "\n";
        files::append(self.folder.join(ERRORS))?.write_all(line.as_bytes())
    }

    /// Appends the traces of a finished trial and the passages that its searches found, and syncs them to disk.
    ///
    /// # Errors
    /// If it cannot be written; the journal is then unchanged.
    pub(crate) fn keep(&self, finished: &Finished) -> io::Result<()> {
        let stored = |trace: &Trace| -> io::Result<Vec<u8>> {
            let mut line = Vec::with_capacity(8 * 1024);
            trace::write_trace(&mut line, trace)?;
            Ok(stored_line(&line).0)
        };
        let Finished { trace, passages: found, again, .. } = finished;
        let line = stored(trace)?;
        let again = again.as_deref().map(stored).transpose()?;
        let mut written = lock(&self.written);
        let Written { file, length, trials, passages } = &mut *written;
        if passages.add(found)? {
            passages.out().sync_data()?;
        }
        if let Some(again) = again {
            let mut file = files::append(self.folder.join(RUN_AGAIN))?;
            let length = file.metadata()?.len();
            if let Err(error) = file.write_all(&again).and_then(|()| file.sync_data()) {
                let _ = file.set_len(length);
                return Err(error);
            }
        }
        if let Err(error) = file.write_all(&line).and_then(|()| file.sync_data()) {
            // A partial line would be dropped on resume; truncating leaves none.
            let _ = file.set_len(*length);
            return Err(error);
        }
        *length += line.len() as u64;
        trials.insert(trace.trial.clone());
        Ok(())
    }

    /// Ends the journal. If `complete`, every trial has ended without being cancelled and the run folder is written:
    /// removes this journal, and those of earlier runs of the same plan in the same mode. Otherwise keeps it.
    pub(crate) fn end(self, complete: bool) {
        if !complete {
            return;
        }
        let Self { folder, begun, written, .. } = self;
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = name.rsplit_once('-').map_or("", |(stem, _)| stem);
        let Some(parent) = folder.parent() else { return };
        for entry in files::entries(parent).unwrap_or_default() {
            let of_plan = entry.path.file_name().is_some_and(|name| {
                name.to_string_lossy().rsplit_once('-').is_some_and(|(own, _)| own == stem && !stem.is_empty())
            });
            let mine = entry.path.file_name() == folder.file_name();
            let same = || match read_begun(&entry.path) {
                Ok(other) => other.mode == begun.mode,
                // Left by a process that was killed while removing its folder.
                Err(JournalError::File { error, .. }) => error.kind() == io::ErrorKind::NotFound,
                Err(_) => false,
            };
            let free = || files::append(entry.path.join(TRACES)).is_ok_and(|file| file.try_lock().is_ok());
            if mine || (of_plan && same() && free()) {
                // Removed first: a folder without it is not an unfinished run, so an interrupted removal is never
                // resumed with some of its trials missing. If it cannot be removed, it is offered again and finishes at
                // once.
                let _ = files::remove_file(entry.path.join(BEGUN));
                let _ = files::remove_dir_all(&entry.path);
            }
        }
        drop(written);
    }
}

/// Unfinished runs below `reports`, newest first, each with its folder.
///
/// # Errors
/// If the folder of one cannot be read.
pub(crate) fn unfinished(reports: &Path) -> Result<Vec<(Begun, PathBuf)>, JournalError> {
    let folder = reports.join(UNFINISHED);
    let mut found = Vec::new();
    for entry in files::entries(&folder).unwrap_or_default() {
        match read_begun(&entry.path) {
            Ok(begun) => found.push((begun, entry.path)),
            Err(JournalError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
    }
    found.sort_by_key(|(begun, _)| std::cmp::Reverse(begun.at));
    Ok(found)
}

fn read_begun(folder: &Path) -> Result<Begun, JournalError> {
    let file = folder.join(BEGUN);
    let text = files::read(&file).map_err(|error| JournalError::File { path: file.clone(), error })?;
    let broken = |why: String| JournalError::Broken { file: file.clone(), why, folder: folder.to_owned() };
    let begun: Begun = serde_json::from_slice(&text).map_err(|error| broken(error.to_string()))?;
    if begun.version > VERSION {
        return Err(broken(format!("version {} is newer than this build reads ({VERSION})", begun.version)));
    }
    Ok(begun)
}

fn id(plan: &Value) -> String {
    plan.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn folder_of(reports: &Path, plan: &Plan, number: usize) -> PathBuf {
    let id = plan.id.get(..12).unwrap_or("plan");
    // Partitions of one run have the id of its plan; the end of one leaves the journals of the others.
    let partition = plan.partition.map(|one| format!("-{}-of-{}", one.number, one.of)).unwrap_or_default();
    reports.join(UNFINISHED).join(format!("{id}{partition}-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};

    #[test]
    fn a_later_draw_that_was_cut_off_by_a_kill_takes_no_other_with_it() {
        let reports = tempfile::tempdir().expect("a folder");
        let plan = plan("[{case: a, ask: b, expect: {within: 9s}}, {case: c, ask: d, expect: {within: 9s}}]", "[]", 1);
        let text = serde_json::to_vec(&plan).expect("JSON");
        let of = |place: usize| {
            let mut trace = story(&plan, place).turn("b").done();
            trace.evidence.run_again.push(super::super::UNJUDGED.to_owned());
            Finished { again: Some(Box::new(trace.clone())), ..Finished::of(trace) }
        };
        let begun = Begun::now("live", Timestamp::UNIX_EPOCH, Vec::new());
        let first = Journal::begin(reports.path(), &plan, &text, begun).expect("begins");
        first.keep(&of(0)).expect("written");
        let later = first.folder.join(RUN_AGAIN);
        let (traces, begun) = (first.folder.join(TRACES), first.begun.clone());
        let folder = first.folder.clone();
        drop(first);
        // The kill came within the line of the later draw, and before its trial was noted.
        for file in [&later, &traces] {
            let text = files::read_to_string(file).expect("readable");
            files::replace(file, &text.as_bytes()[..text.len() - if *file == later { 20 } else { text.len() }])
                .expect("cut");
        }
        let second = Journal::reopen(folder.clone(), begun.clone(), &plan).expect("resumes");
        second.keep(&of(1)).expect("written");
        drop(second);
        let third = Journal::reopen(folder, begun, &plan).expect("resumes");
        let trial = plan.trials.at(1).expect("planned").id;
        assert!(third.finished_before(&trial).is_some_and(|finished| finished.again.is_some()));
    }
}
