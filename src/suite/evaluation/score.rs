//! Computes the verdicts of a run folder from `plan.json`, `traces.jsonl` and `grades.jsonl` alone.

use super::evaluator::{EvaluatedRun, ExaminedTrace, RunEvaluator};
use super::requirement_states;
use crate::gate::{EvaluationError, Examiner};
use crate::plan::{PLAN_VERSION, Plan};
use crate::platform::files;
use crate::report::Room;
use crate::trace::{self, GradeError, Grades, NamedPassage, Passages, PassagesError, Seal, Trace, TraceError};
use rayon::prelude::*;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Lines that are parsed and examined in parallel before they are aggregated.
const WINDOW: usize = 512;

/// Initial capacity of a window in bytes.
const TYPICAL: usize = 2 << 20;

/// Bytes after which a window takes no further line.
const WINDOW_BYTES: usize = 8 << 20;

/// Why a run folder cannot be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// The folder has no readable plan.
    #[error("{folder} is not a run folder: {} cannot be read: {error}", trace::PLAN, folder = folder.display())]
    NoRun {
        /// Run folder.
        folder: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The plan is invalid.
    #[error("{file}: {error}", file = file.display())]
    Plan {
        /// Path of the plan.
        file: PathBuf,
        /// The error, with line and column.
        error: serde_json::Error,
    },
    /// A newer build wrote the plan.
    #[error("{file}: plan format {version} is newer than this build reads ({PLAN_VERSION}); update ragcheck", file = file.display())]
    Newer {
        /// Path of the plan.
        file: PathBuf,
        /// Version of the plan.
        version: u32,
    },
    /// The traces cannot be opened.
    #[error("{file}: {error}", file = file.display())]
    Open {
        /// Path of the traces.
        file: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A line of the traces is invalid.
    #[error("{file}: {error}", file = file.display())]
    Trace {
        /// Path of the traces.
        file: PathBuf,
        /// The error, with the line.
        error: TraceError,
    },
    /// The grades cannot be used.
    #[error(transparent)]
    Grades(#[from] GradeError),
    /// The passages cannot be used.
    #[error(transparent)]
    Passages(#[from] PassagesError),
    /// Plan and traces cannot be evaluated.
    #[error("{file}: {error}", file = file.display())]
    Evaluation {
        /// Path of the plan or of the traces.
        file: PathBuf,
        /// The error.
        error: EvaluationError,
    },
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
    let (plan, seal) = read_sealed_plan(folder)?;
    let plan = Arc::new(plan.narrowed());
    let file = folder.join(trace::PLAN);
    let grades = Grades::read(folder)?;
    let mut edits = Edits::default();
    edits.add(trace::PLAN, is_edited(seal, &plan.id));
    edits.add(trace::GRADES, grades.are_edited());
    let passages = Passages::read(folder, |_| true)?;
    edits.add(trace::PASSAGES, passages.are_edited());
    let evaluator = RunEvaluator::with_grades(&plan, grades).map_err(|error| ScoreError::Evaluation { file, error })?;
    let evaluator = if for_comparison { evaluator.collecting() } else { evaluator };
    let mut evaluated = add_traces(evaluator, folder, &passages, &mut edits)?;
    evaluated.evaluation.evidence.extend(edits.sentences());
    let file = folder.join(trace::TRACES);
    requirement_states::apply(folder, &plan.id, &mut evaluated.evaluation)
        .map_err(|error| ScoreError::Open { file, error })?;
    Ok(evaluated)
}

/// Files of a run folder that were edited by hand.
#[derive(Default)]
struct Edits {
    files: Vec<&'static str>,
    traces: Vec<String>,
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

/// Reads on one thread, parses and examines on all, and aggregates on this one in file order; at most a few windows of
/// traces are in memory.
fn add_traces(
    mut evaluator: RunEvaluator<'_>,
    folder: &Path,
    passages: &Passages,
    edits: &mut Edits,
) -> Result<EvaluatedRun, ScoreError> {
    let file = folder.join(trace::TRACES);
    let (examiner, room) = (evaluator.examiner(), evaluator.room());
    let input = files::open(&file).map_err(|error| ScoreError::Open { file: file.clone(), error })?;
    let reader = BufReader::with_capacity(1 << 20, input);
    std::thread::scope(|scope| {
        let (read, windows) = sync_channel::<Result<Window, TraceError>>(1);
        let (examined, lines) = sync_channel::<Vec<Result<ExaminedLine, TraceError>>>(1);
        scope.spawn(move || Window::read_all(reader, |window| read.send(window).is_ok()));
        scope.spawn(move || {
            for window in windows {
                let lines = match window {
                    Ok(window) => window
                        .lines()
                        .into_par_iter()
                        .map(|line| read_line(&examiner, passages, room.as_ref(), line))
                        .collect(),
                    Err(why) => vec![Err(why)],
                };
                if examined.send(lines).is_err() {
                    return;
                }
            }
        });
        for line in lines.into_iter().flatten() {
            let ExaminedLine { trace, found, examined, edited } =
                line.map_err(|error| ScoreError::Trace { file: file.clone(), error })?;
            edits.traces.extend(edited);
            let added = evaluator.add(trace.as_ref(), &found, examined);
            added.map_err(|error| ScoreError::Evaluation { file: file.clone(), error })?;
        }
        Ok(evaluator.finish())
    })
}

struct ExaminedLine {
    /// The trace, if it is still needed.
    trace: Option<Trace>,
    found: Vec<Arc<NamedPassage>>,
    examined: ExaminedTrace,
    /// Trial id of a line that was edited by hand.
    edited: Option<String>,
}

fn read_line(
    examiner: &Examiner<'_>,
    passages: &Passages,
    room: Option<&Room>,
    (number, line): (usize, &[u8]),
) -> Result<ExaminedLine, TraceError> {
    let no_text = |why| TraceError::Read { line: number, error: io::Error::new(io::ErrorKind::InvalidData, why) };
    let text = std::str::from_utf8(line).map_err(no_text)?;
    let trace = trace::parse_trace(text, number)?;
    let edited = is_edited(trace::sealed(text), &trace.plan).then(|| trace.trial.clone());
    let found = passages.of(&trace);
    let examined = ExaminedTrace::read(examiner, &trace, &found, room);
    let is_done = room.zip(examined.verdict()).is_some_and(|(room, verdict)| room.is_full(verdict));
    Ok(ExaminedLine { trace: (!is_done).then_some(trace), found, examined, edited })
}

/// Some lines of a file.
struct Window {
    /// Number of the first line, from 1.
    first: usize,
    text: Vec<u8>,
    /// End offset of each line.
    ends: Vec<usize>,
}

impl Window {
    /// Passes the lines of `reader` on in windows, until the end or until `hand` returns false.
    fn read_all(mut reader: impl BufRead, mut hand: impl FnMut(Result<Self, TraceError>) -> bool) {
        let mut first = 1;
        loop {
            let mut window = Self { first, text: Vec::with_capacity(TYPICAL), ends: Vec::with_capacity(WINDOW) };
            while window.ends.len() < WINDOW && window.text.len() < WINDOW_BYTES {
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
            if window.ends.is_empty() || !hand(Ok(window)) {
                return;
            }
        }
    }

    /// Its non-empty lines, with their numbers.
    fn lines(&self) -> Vec<(usize, &[u8])> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let lines = starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end]);
        (self.first..).zip(lines).filter(|(_, line)| !line.trim_ascii().is_empty()).collect()
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
        Window::read_all(endless(), |window| {
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
        Window::read_all(text.trim_end().as_bytes(), |window| {
            let window = window.expect("readable");
            let told = |(number, line): (usize, &[u8])| (number, String::from_utf8_lossy(line).trim().to_owned());
            seen.extend(window.lines().into_iter().map(told));
            windows += 1;
            true
        });
        assert_eq!(windows, 3);
        let expected = (1..=WINDOW * 2 + 3).filter(|line| line % 7 != 0).map(|line| (line, line.to_string()));
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }
}
