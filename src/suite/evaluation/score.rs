//! Computes the verdicts of a run folder from `plan.json`, `traces.jsonl` and `grades.jsonl` alone.

use super::evaluator::{EvaluatedRun, ExaminedTrace, RunEvaluator};
use super::requirement_states;
use super::slices::SlicesError;
use super::windows::{self, Line};
use crate::gate::{EvaluationError, Examiner};
use crate::plan::{PLAN_VERSION, Plan};
use crate::platform::files;
use crate::report::Room;
use crate::trace::text::plural;
use crate::trace::{self, GradeError, Grades, NamedPassage, Passages, PassagesError, Seal, Trace, TraceError};
use std::collections::BTreeSet;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a run folder cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// The folder has no readable plan.
    #[error("{folder} is not a run folder: {} cannot be read: {error}", trace::PLAN, folder = folder.display())]
    NoRun { folder: PathBuf, error: io::Error },
    /// The plan is invalid.
    #[error("{file}: {error}", file = file.display())]
    Plan { file: PathBuf, error: serde_json::Error },
    /// A newer build wrote the plan.
    #[error("{file}: plan format {version} is newer than this build reads ({PLAN_VERSION}); update ragcheck", file = file.display())]
    Newer { file: PathBuf, version: u32 },
    /// The traces cannot be opened.
    #[error("{file}: {error}", file = file.display())]
    Open { file: PathBuf, error: io::Error },
    /// A line of the traces is invalid.
    #[error("{file}: {error}", file = file.display())]
    Trace { file: PathBuf, error: TraceError },
    /// The grades cannot be used.
    #[error(transparent)]
    Grades(#[from] GradeError),
    /// The passages cannot be used.
    #[error(transparent)]
    Passages(#[from] PassagesError),
    /// Passages that traces name are missing, so what is judged by them would be judged by less.
    #[error(
        "{}: lacks {} that its traces name, so nothing was written: fetch the whole folder, or run it again; after a run with \
         `--limit found-passages-size`, use the same limit here", file.display(), plural(*number, "passage")
    )]
    Lacks {
        /// The file.
        file: PathBuf,
        /// Number of passages.
        number: usize,
    },
    /// The slices of the run cannot be put together.
    #[error(transparent)]
    Slices(#[from] SlicesError),
    /// Plan and traces cannot be evaluated.
    #[error("{file}: {error}", file = file.display())]
    Evaluation { file: PathBuf, error: EvaluationError },
}

/// Evaluates a run folder; keeps the figures of every case if `for_comparison`.
///
/// ```
/// use ragcheck::{Verdict, score};
///
/// let run = score("tests/runs/positional".as_ref(), false)?;
/// for trial in run.evaluation.trials.iter() {
///     assert_eq!(trial.verdict, Verdict::Pass, "{}: {}", trial.id, trial.error);
/// }
/// # assert!(!run.evaluation.trials.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the folder does not hold a readable run, with file and line.
pub fn score(folder: &Path, for_comparison: bool) -> Result<EvaluatedRun, ScoreError> {
    let OpenedRun { plan, grades, passages, mut edits } = OpenedRun::read(folder)?;
    let evaluator = begin(folder, &plan, grades)?;
    let evaluator = if for_comparison { evaluator.collecting() } else { evaluator };
    let evaluated = add_traces(evaluator, folder, &passages, &mut edits)?;
    finished(folder, evaluated, edits)
}

/// What is read of a run folder before its traces.
pub(super) struct OpenedRun {
    pub(super) plan: Arc<Plan>,
    pub(super) grades: Grades,
    pub(super) passages: Passages,
    pub(super) edits: Edits,
}

impl OpenedRun {
    pub(super) fn read(folder: &Path) -> Result<Self, ScoreError> {
        let (plan, seal) = read_sealed_plan(folder)?;
        let plan = Arc::new(plan.narrowed());
        let (grades, passages) = (Grades::read(folder)?, Passages::read(folder, |_| true)?);
        let mut edits = Edits::default();
        edits.add(trace::PLAN, is_edited(seal, &plan.id));
        edits.add(trace::GRADES, grades.are_edited());
        edits.add(trace::PASSAGES, passages.are_edited());
        Ok(Self { plan, grades, passages, edits })
    }
}

/// Begins the evaluation of a run folder.
pub(super) fn begin<'p>(folder: &Path, plan: &'p Arc<Plan>, grades: Grades) -> Result<RunEvaluator<'p>, ScoreError> {
    let file = folder.join(trace::PLAN);
    RunEvaluator::with_grades(plan, grades).map_err(|error| ScoreError::Evaluation { file, error })
}

/// Adds what a run folder shows beside its traces.
///
/// # Errors
/// If passages are missing, or its requirements cannot be read.
pub(super) fn finished(folder: &Path, mut evaluated: EvaluatedRun, edits: Edits) -> Result<EvaluatedRun, ScoreError> {
    let file = folder.join(trace::PASSAGES);
    // Older builds wrote no such file: then the beginnings of the passages are all that is known. An edit is said below.
    if !edits.lacking.is_empty() && !edits.files.contains(&trace::PASSAGES) && file.exists() {
        return Err(ScoreError::Lacks { file, number: edits.lacking.len() });
    }
    evaluated.evaluation.evidence.extend(edits.sentences());
    let (file, plan) = (folder.join(trace::TRACES), evaluated.plan().id.clone());
    requirement_states::apply(folder, &plan, &mut evaluated.evaluation)
        .map_err(|error| ScoreError::Open { file, error })?;
    Ok(evaluated)
}

/// Files of a run folder that were edited by hand, and passages that were cut off.
#[derive(Default)]
pub(super) struct Edits {
    files: Vec<&'static str>,
    /// Ids of trials.
    traces: Vec<String>,
    /// Names of the passages that traces name and the folder lacks.
    lacking: BTreeSet<String>,
}

impl Edits {
    fn add(&mut self, file: &'static str, edited: bool) {
        self.files.extend(edited.then_some(file));
    }

    /// One sentence for each edited file, shown beside the origin.
    fn sentences(self) -> impl Iterator<Item = String> {
        let files = self.files.into_iter().map(|file| format!("EDITED BY HAND after the run: {file}"));
        let traces = self.traces.split_first().map(|(first, others)| {
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            format!("EDITED BY HAND after the run: {}, the trace of {first}{more}", trace::TRACES)
        });
        files.chain(traces)
    }
}

/// Whether a text differs from what was written. If `digest` is not empty, a missing digest counts as an edit.
fn is_edited(seal: Seal, digest: &str) -> bool {
    seal == Seal::Edited || (seal == Seal::None && !digest.is_empty())
}

/// Reads the plan of a run folder.
///
/// # Errors
/// If it cannot be read, or was written by a newer build.
pub(crate) fn read_plan(folder: &Path) -> Result<Plan, ScoreError> {
    Ok(read_whole_plan(folder)?.narrowed())
}

/// Reads the plan of a run folder; that of a partition has all trials of its run.
pub(crate) fn read_whole_plan(folder: &Path) -> Result<Plan, ScoreError> {
    Ok(read_sealed_plan(folder)?.0)
}

/// Reads the plan, and whether its digest matches.
fn read_sealed_plan(folder: &Path) -> Result<(Plan, Seal), ScoreError> {
    let file = folder.join(trace::PLAN);
    let text = trace::plan_text(folder).map_err(|error| ScoreError::NoRun { folder: folder.to_owned(), error })?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| ScoreError::Plan { file: file.clone(), error })?;
    if plan.version > PLAN_VERSION {
        return Err(ScoreError::Newer { file, version: plan.version });
    }
    let seal = std::str::from_utf8(&text).map_or(Seal::Edited, trace::sealed);
    Ok((plan, seal))
}

/// Reads the traces of a run folder, one by one, in order.
///
/// # Errors
/// If the file cannot be opened; an unreadable trace is an error item in the iterator.
pub(crate) fn read_traces(folder: &Path) -> Result<impl Iterator<Item = Result<Trace, ScoreError>>, ScoreError> {
    read_file(folder.join(trace::TRACES))
}

/// The later draws of a run's trials, which do not count; none if no trial was run again.
///
/// # Errors
/// If the file cannot be read, or a line is no trace.
pub(crate) fn read_later_draws(folder: &Path) -> Result<Vec<Trace>, ScoreError> {
    let file = folder.join(trace::RUN_AGAIN);
    if file.exists() { read_file(file)?.collect() } else { Ok(Vec::new()) }
}

fn read_file(file: PathBuf) -> Result<impl Iterator<Item = Result<Trace, ScoreError>>, ScoreError> {
    let input = files::open(&file).map_err(|error| ScoreError::Open { file: file.clone(), error })?;
    let traces = trace::read_traces(BufReader::with_capacity(1 << 20, input));
    Ok(traces.map(move |found| found.map_err(|error| ScoreError::Trace { file: file.clone(), error })))
}

/// Adds the traces of a run folder in file order.
fn add_traces(
    mut evaluator: RunEvaluator<'_>,
    folder: &Path,
    passages: &Passages,
    edits: &mut Edits,
) -> Result<EvaluatedRun, ScoreError> {
    let file = folder.join(trace::TRACES);
    let (examiner, room) = (evaluator.examiner(), evaluator.room());
    let read = |line: Line<'_>| read_line(&file, &examiner, passages, room.as_ref(), &line);
    windows::in_order(&file, 0..u64::MAX, read, |line| line.add_to(&mut evaluator, edits, folder))?;
    Ok(evaluator.finish())
}

pub(super) struct ExaminedLine {
    /// The trace, if it is still needed.
    pub(super) trace: Option<Trace>,
    pub(super) found: Vec<Arc<NamedPassage>>,
    /// Names of the passages that it found and the run folder lacks.
    pub(super) lacking: Vec<String>,
    pub(super) examined: ExaminedTrace,
    /// Trial id of a line that was edited by hand.
    pub(super) edited: Option<String>,
}

impl ExaminedLine {
    pub(super) fn add_to(
        self,
        evaluator: &mut RunEvaluator<'_>,
        edits: &mut Edits,
        folder: &Path,
    ) -> Result<(), ScoreError> {
        edits.traces.extend(self.edited);
        edits.lacking.extend(self.lacking);
        let added = evaluator.add(self.trace.as_ref(), &self.found, self.examined);
        added.map_err(|error| ScoreError::Evaluation { file: folder.join(trace::TRACES), error })
    }
}

fn read_line(
    file: &Path,
    examiner: &Examiner<'_>,
    passages: &Passages,
    room: Option<&Room>,
    line: &Line<'_>,
) -> Result<ExaminedLine, ScoreError> {
    let (trace, edited) = parsed(file, line)?;
    let edited = edited.then(|| trace.trial.clone());
    let (found, lacking) = (passages.of(&trace), passages.lacks(&trace).cloned().collect());
    let examined = ExaminedTrace::read(examiner, &trace, &found, room);
    let is_done = room.zip(examined.verdict()).is_some_and(|(room, verdict)| room.is_full(verdict));
    Ok(ExaminedLine { trace: (!is_done).then_some(trace), found, lacking, examined, edited })
}

/// The trace of a line, and whether it was edited by hand.
pub(super) fn parsed(file: &Path, line: &Line<'_>) -> Result<(Trace, bool), ScoreError> {
    let wrong = |error| ScoreError::Trace { file: file.to_owned(), error };
    let no_text = |why| TraceError::Read { line: line.number, error: io::Error::new(io::ErrorKind::InvalidData, why) };
    let text = std::str::from_utf8(line.text).map_err(|why| wrong(no_text(why)))?;
    let trace = trace::parse_trace(text, line.number).map_err(wrong)?;
    let edited = is_edited(trace::sealed(text), &trace.plan);
    Ok((trace, edited))
}
