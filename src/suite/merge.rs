//! Merges the runs of partitions (`run --partition`) into the run that one machine would have made: the same plan and the same
//! traces in plan order, judged anew.

use super::{DEFAULT_JOBS, Mode, Unlisted, environment};
use crate::history::Gather;
use crate::plan::{self, Partition, Plan};
use crate::platform::{files, secrets};
use crate::suite::evaluation::{self, EvaluatedRun, ScoreError};
use crate::trace::text::plural;
use crate::trace::{self, Passages, PassagesError, Seal, Trace, TraceError, TrialEnd, TrialErrorKind};
use crate::trial::run::folder::Writing;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum number of missing trials and of files listed in a message.
const LISTED: usize = 5;

/// Why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergeError {
    /// A folder is no run.
    #[error(transparent)]
    Run(#[from] ScoreError),
    /// Its passages cannot be used.
    #[error(transparent)]
    Passages(#[from] PassagesError),
    /// A file was edited after the run, so its traces are no evidence.
    #[error("{}: edited after the run, or made by a build without digests: run the partition again", .0.display())]
    Edited(PathBuf),
    /// Two runs are of different plans.
    #[error(
        "{} and {} are no partitions of one run:\n  {}\nrun all partitions from one commit, with the same options",
        first.display(), other.display(), differences.join("\n  ")
    )]
    Plans { first: PathBuf, other: PathBuf, differences: Vec<String> },
    /// Two runs have different traces of a trial.
    #[error(
        "{trial} ran twice, with different results, in {} and {}: leave out one of the runs; which draw counts is for \
         nobody to choose afterwards", first.display(), other.display()
    )]
    Twice { trial: String, first: PathBuf, other: PathBuf },
    /// Trials did not run. `of`: number of partitions; 1 if the runs are not partitions.
    #[error("{}", missing(trials, *planned, *of))]
    Missing { trials: Vec<String>, planned: usize, of: u32 },
    /// The merged run is written, and what is beside it is not.
    #[error(transparent)]
    Unlisted(#[from] Unlisted),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

fn missing(trials: &[String], planned: usize, of: u32) -> String {
    let mut text = format!("{} of {} missing, and nothing was written:", trials.len(), plural(planned, "trial"));
    for trial in trials.iter().take(LISTED) {
        let _ = write!(text, "\n  {trial}");
    }
    if trials.len() > LISTED {
        let _ = write!(text, "\n  and {} more", trials.len() - LISTED);
    }
    let partitions: BTreeSet<u32> = trials.iter().map(|trial| Partition::number_of(trial, of)).collect();
    for number in partitions.into_iter().filter(|_| of > 1).take(LISTED) {
        let _ = write!(
            text,
            "\nmissing of partition hash:{number}/{of}: finish it (`ragcheck run --resume --report-dir` with its folder) or run it, and merge again"
        );
    }
    text
}

/// A merged and written run.
pub(crate) struct MergedRun {
    pub(crate) folder: PathBuf,
    /// Verdicts of the run.
    pub(crate) evaluated: EvaluatedRun,
    /// Remarks for the user.
    pub(crate) notes: Vec<String>,
}

/// Merges the runs in `folders` and writes the whole run below `reports`; `root` is noted in `environment.json`. Neither the
/// order of the folders nor a run that is named twice, or was merged before, changes a byte.
///
/// # Errors
/// If the runs are of different plans, a trial is missing or has two results, or a file cannot be read or written.
pub(crate) fn merge(folders: &[PathBuf], reports: &Path, root: &Path) -> Result<MergedRun, MergeError> {
    let mut runs = folders.iter().map(|folder| Source::read(folder)).collect::<Result<Vec<_>, _>>()?;
    // What was typed is no part of a plan's id; the same one counts in every order.
    runs.sort_by(|one, other| one.text.cmp(&other.text));
    let of = runs.iter().filter_map(|run| run.plan.partition).map(|partition| partition.of).max().unwrap_or(1);
    let Some(first) = runs.first() else { return Err(MergeError::Missing { trials: Vec::new(), planned: 0, of }) };
    for other in &runs[1..] {
        if other.plan.id != first.plan.id || other.plan.searches_another(&first.plan) {
            return Err(MergeError::Plans {
                first: first.folder.clone(),
                other: other.folder.clone(),
                differences: differences(&first.text, &other.text),
            });
        }
    }
    let mut plan = Plan { partition: None, ..first.plan.clone() };
    let text = plan.stored(|text| secrets::clean_bytes(text).into_owned());
    let text = text.map_err(|error| MergeError::File { path: first.folder.join(trace::PLAN), error: error.into() })?;
    let lines = lines(&runs, &plan)?;
    let missing: Vec<String> =
        plan.trials.iter().map(|trial| &trial.id).filter(|id| !lines.contains_key(*id)).cloned().collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { trials: missing, planned: plan.trials.number(), of });
    }
    let unwritten = |error: io::Error| MergeError::File { path: reports.to_owned(), error };
    let mut writing = Writing::begin(reports, &text).map_err(unwritten)?;
    let mut gather = Gather::default();
    for planned in &plan.trials {
        let Some(Line { run, start, length, .. }) = lines.get(&planned.id) else { continue };
        let source = &runs[*run];
        let found = source.trace(*start, *length)?;
        gather.add(&found);
        write(&found, |line| writing.trace(line)).map_err(unwritten)?;
        writing.passages(&source.passages.of(&found)).map_err(unwritten)?;
        for later in source.later.get(&planned.id).into_iter().flatten() {
            write(later, |line| writing.run_again(line)).map_err(unwritten)?;
        }
        if let Some(printed) = source.printed.get(&planned.id) {
            writing.printed(&planned.id, printed).map_err(unwritten)?;
        }
    }
    writing.flush().map_err(unwritten)?;
    let mut evaluated = evaluation::score(writing.path(), false)?;
    evaluated.write(writing.path()).map_err(unwritten)?;
    let point = gather.identity();
    let made_at = runs.iter().filter_map(|run| run.made_at.as_deref()).max();
    let facts = environment::Facts { mode: mode(&plan, &runs), jobs: jobs(&runs), point: Some(&point), made_at };
    environment::write(writing.path(), root, &facts).map_err(unwritten)?;
    let newest = plan.part.as_ref().is_none_or(|part| !part.cases);
    let (folder, aside) = writing.finish(newest).map_err(unwritten)?;
    let kept = evaluation::write_runs_page(reports, root).map_err(Unlisted::beside(&folder))?;
    let graded = runs.iter().any(|run| run.folder.join(trace::GRADES).exists());
    let graded =
        graded.then(|| "grades of the partitions are not merged: `ragcheck judge` grades the whole run".to_owned());
    Ok(MergedRun { folder, evaluated, notes: aside.into_iter().chain(graded).chain(kept).collect() })
}

/// Mode of the merged run. The sealed plan knows a live one; a replay, which may be removed one day, is one by all its parts.
fn mode(plan: &Plan, runs: &[Source]) -> &'static str {
    let replay = Mode::Replay.as_str();
    match plan.mode {
        Some(trace::Mode::Live) => Mode::Live.as_str(),
        Some(trace::Mode::Imported) => "import",
        _ if runs.iter().all(|run| run.mode.as_deref() == Some(replay)) => replay,
        _ => Mode::Record.as_str(),
    }
}

/// Number of trials that ran at the same time: those of the whole run, or of its partitions together.
fn jobs(runs: &[Source]) -> Option<u16> {
    if let Some(whole) = runs.iter().find(|run| run.plan.partition.is_none()) {
        return whole.jobs;
    }
    let by_partition: BTreeMap<_, _> =
        runs.iter().map(|run| (run.plan.partition.map(|one| one.number), run.jobs)).collect();
    let each = by_partition.into_values().map(|jobs| jobs.unwrap_or(DEFAULT_JOBS));
    Some(each.fold(0, u16::saturating_add))
}

fn write(trace: &Trace, mut out: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut line = Vec::new();
    trace::write_trace(&mut line, trace)?;
    out(&line)
}

/// Differences between two plans, except for what partitions of one run may differ in.
fn differences(first: &[u8], other: &[u8]) -> Vec<String> {
    let read = |text: &[u8]| {
        let mut plan: Value = serde_json::from_slice(text).unwrap_or_default();
        for name in ["partition", "order"] {
            plan.as_object_mut().map(|plan| plan.remove(name));
        }
        plan
    };
    plan::differences(&read(first), &read(other))
}

/// One run to be merged.
struct Source {
    folder: PathBuf,
    /// Its plan, of all trials of the whole run.
    plan: Plan,
    text: Vec<u8>,
    passages: Passages,
    /// Draws that do not count, by trial.
    later: BTreeMap<String, Vec<Trace>>,
    /// What the agent printed, by trial.
    printed: BTreeMap<String, String>,
    /// Mode by its `environment.json`.
    mode: Option<String>,
    /// Number of concurrent trials by the same, if it was given.
    jobs: Option<u16>,
    /// When it was made by the same (RFC 3339, UTC).
    made_at: Option<String>,
}

impl Source {
    fn read(folder: &Path) -> Result<Self, MergeError> {
        let plan = evaluation::read_whole_plan(folder)?;
        let file = |name: &str| folder.join(name);
        let of = |name: &str| {
            let path = file(name);
            move |error| MergeError::File { path, error }
        };
        let text = trace::plan_text(folder).map_err(of(trace::PLAN))?;
        if plan.id.is_empty() || std::str::from_utf8(&text).map_or(Seal::Edited, trace::sealed) != Seal::Whole {
            return Err(MergeError::Edited(file(trace::PLAN)));
        }
        let passages = Passages::read(folder, |_| true)?;
        if passages.are_edited() {
            return Err(MergeError::Edited(file(trace::PASSAGES)));
        }
        let mut later: BTreeMap<String, Vec<Trace>> = BTreeMap::new();
        for draw in evaluation::read_later_draws(folder)? {
            later.entry(draw.trial.clone()).or_default().push(draw);
        }
        let mut printed = BTreeMap::new();
        if file(trace::AGENT_OUTPUT).exists() {
            let text = files::read_to_string(file(trace::AGENT_OUTPUT)).map_err(of(trace::AGENT_OUTPUT))?;
            let lines = text.lines().filter_map(|line| serde_json::from_str::<BTreeMap<String, String>>(line).ok());
            printed.extend(lines.filter_map(|mut line| Some((line.remove("trial")?, line.remove("text")?))));
        }
        let environment = files::read(file(trace::ENVIRONMENT)).unwrap_or_default();
        let environment: Value = serde_json::from_slice(&environment).unwrap_or_default();
        let mode = environment["mode"].as_str().map(str::to_owned);
        let jobs = environment["jobs"].as_u64().and_then(|jobs| u16::try_from(jobs).ok());
        let made_at = environment["written_at"].as_str().map(str::to_owned);
        Ok(Self { folder: folder.to_owned(), plan, text, passages, later, printed, mode, jobs, made_at })
    }

    fn file(&self) -> PathBuf {
        self.folder.join(trace::TRACES)
    }

    /// The trace of a line.
    fn trace(&self, start: u64, length: u64) -> Result<Trace, MergeError> {
        let read = || {
            let mut file = files::open(self.file())?;
            file.seek(SeekFrom::Start(start))?;
            let mut line = String::new();
            file.take(length).read_to_string(&mut line)?;
            Ok(line)
        };
        let line = read().map_err(|error| MergeError::File { path: self.file(), error })?;
        Ok(trace::parse_trace(&line, 1).map_err(|error| ScoreError::Trace { file: self.file(), error })?)
    }
}

/// The line that counts for a trial.
struct Line {
    /// Which run has it.
    run: usize,
    start: u64,
    length: u64,
    digest: String,
    completed: bool,
}

/// The lines of all trials that ran. A completed one counts, rather than an ERROR of the same trial; trials that were not
/// reached have none.
fn lines(runs: &[Source], plan: &Plan) -> Result<BTreeMap<String, Line>, MergeError> {
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for (run, source) in runs.iter().enumerate() {
        let file = source.file();
        let input = files::open(&file).map_err(|error| MergeError::File { path: file.clone(), error })?;
        let mut reader = BufReader::with_capacity(1 << 20, input);
        let (mut start, mut number, mut lacking) = (0, 0, BTreeSet::new());
        while let Some((trace, digest, length)) = next(&mut reader, &file, &mut number, &plan.id)? {
            let begin = start;
            start += length;
            if matches!(&trace.end, TrialEnd::Error(why) if why.kind == TrialErrorKind::Stopped) {
                continue;
            }
            lacking.extend(source.passages.lacks(&trace).cloned());
            let completed = trace.end == TrialEnd::Completed;
            let line = Line { run, start: begin, length, digest, completed };
            match lines.get(&trace.trial) {
                Some(known) if known.digest == line.digest || known.completed && !completed => {}
                Some(known) if known.completed == completed => {
                    let (first, other) = (runs[known.run].folder.clone(), source.folder.clone());
                    return Err(MergeError::Twice { trial: trace.trial, first, other });
                }
                _ => drop(lines.insert(trace.trial, line)),
            }
        }
        if !lacking.is_empty() {
            let (file, number) = (source.folder.join(trace::PASSAGES), lacking.len());
            return Err(ScoreError::Lacks { file, number }.into());
        }
    }
    Ok(lines)
}

/// The next trace of a file, with its digest and the length of its line.
fn next(
    reader: &mut impl BufRead,
    file: &Path,
    number: &mut usize,
    plan: &str,
) -> Result<Option<(Trace, String, u64)>, MergeError> {
    let mut line = Vec::new();
    *number += 1;
    let wrong = |error| ScoreError::Trace { file: file.to_owned(), error };
    let length =
        trace::read_line(reader, &mut line).map_err(|error| wrong(TraceError::Read { line: *number, error }))?;
    if length == 0 {
        return Ok(None);
    }
    let text = std::str::from_utf8(&line).map_err(|_| MergeError::Edited(file.to_owned()))?;
    let trace = trace::parse_trace(text, *number).map_err(wrong)?;
    if trace::sealed(text) != Seal::Whole || trace.plan != plan {
        return Err(MergeError::Edited(file.to_owned()));
    }
    let (_, digest) = trace::seal(text.trim_end());
    Ok(Some((trace, digest, length as u64)))
}
