//! Errors of loading, planning and running a suite.

use crate::cassette::StoppingError;
use crate::gate::EvaluationError;
use crate::plan::Partition;
use crate::platform::bounds::Bound;
use crate::platform::files::{LockError, is_full_disk};
use crate::scenario::Diagnostic;
use crate::scenario::diagnostic::listed;
use crate::suite::evaluation::ScoreError;
use crate::suite::import::ImportError;
use crate::suite::recordings::Unwritable;
use crate::trace::text::{line, plural, quote};
use crate::trial::external::runner::RunnerError;
use crate::trial::run::JournalError;
use crate::trial::{HoldError, SetupError};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Why a suite cannot be loaded, planned or run. A trial that cannot be run is an ERROR of that trial instead.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// All mistakes in scenarios, criteria, the project file or the selection.
    #[error("{}", listed(.0))]
    Files(Vec<Diagnostic>),
    /// The selection has no trial.
    #[error(
        "no trial is selected: `ragcheck list` shows what there is to select from with --only, --exclude, --tag, --flow and --variant"
    )]
    NothingSelected,
    /// A recorded stopping design cannot be read or written.
    #[error(transparent)]
    Design(#[from] StoppingError),
    /// A recorded stopping design cannot be removed.
    #[error("{path}: {error}", path = path.display())]
    DesignRemoval {
        /// Path of the design.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The trial limit is smaller than one pass.
    #[error("--max-trials {most} is less than one pass, which is one of every selected case: {}", plural(*pass, "trial"))]
    LessThanOnePass {
        /// Trial limit.
        most: u64,
        /// Trials per pass.
        pass: usize,
    },
    /// There is no room for a second pass.
    #[error(
        "--until-decided needs room for two passes or more: add --max-trials N (one pass is {})",
        plural(*pass, "trial")
    )]
    OnePassOnly {
        /// Trials per pass.
        pass: usize,
    },
    /// A replay of recordings with a fixed number of repetitions cannot run until decided.
    #[error(
        "--until-decided is for --mode record and --mode live: the number of these recordings was planned, and a \
         replay evaluates all of them"
    )]
    RecordedFixed,
    /// Another process is recording in this project.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Recordings could not be written.
    #[error(transparent)]
    Recordings(#[from] Unwritable),
    /// A partition has only some trials of each pass.
    #[error(
        "--partition cannot be used with --until-decided, nor with its recordings: whether another pass is needed is decided over all \
         trials of a pass, and a partition has some of them"
    )]
    PartitionUntilDecided,
    /// A run has fewer trials than partitions.
    #[error("no trial of this run is in partition {0}: use fewer partitions")]
    EmptyPartition(Partition),
    /// Call, cost and time limits do not apply to replays.
    #[error(
        "--max-calls, --max-cost and --timeout bound live and recording runs; a replay sends nothing and waits for \
         nothing: leave them out, or add --mode live"
    )]
    BoundedReplay,
    /// Trials cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A cost limit needs a price for every service.
    #[error(
        "--max-cost needs the price of every model, search service and embeddings model, and ragcheck.yaml has none of {}: add it under \
         `prices`",
        .0.join(", ")
    )]
    Unpriced(Vec<String>),
    /// A cost limit needs a token limit for every completion.
    #[error(
        "--max-cost reserves the most that a request may cost before it is sent, and {} has no `max_tokens`: add it to \
         the scenario's `model`",
        .0.join(", ")
    )]
    Unbounded(Vec<String>),
    /// A criterion or the plan is invalid.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// The plan cannot be serialised.
    #[error("the plan cannot be written as JSON: {0}")]
    Plan(#[from] serde_json::Error),
    /// The run ended before its last trial.
    #[error("the run stopped: {0}")]
    Stopped(io::Error),
    /// Grades of an earlier equal run cannot be used.
    #[error(transparent)]
    Grades(#[from] ScoreError),
    /// A live or recording run ended before its last trial.
    #[error(
        "the run stopped: {error}; {} finished and kept: {}`ragcheck run --resume` continues from there",
        plural(*finished, "trial"),
        if is_full_disk(error) { "free some space, then " } else { "" }
    )]
    Interrupted {
        /// The error.
        error: io::Error,
        /// Number of finished trials.
        finished: usize,
    },
    /// The run cannot be resumed or journaled.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A replay answers everything from its recordings.
    #[error("--hold and --from are for a run that asks a model: add --mode live or --mode record")]
    HeldReplay,
    /// Nothing can be held as typed.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// A replay cannot be resumed.
    #[error("--resume continues a live or recording run: add --mode live or --mode record as it was begun")]
    ReplayResumed,
    /// The run folder cannot be written.
    #[error("the run cannot be written below {}: {error}", reports.display())]
    Write {
        /// Reports folder.
        reports: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// The run folder is written, and what is beside it is not.
    #[error(transparent)]
    Unlisted(#[from] Unlisted),
    /// There is no earlier run whose trials could be rerun.
    #[error("--failed needs an earlier run, and {} cannot be read: {reason}", file.display())]
    NoEarlierRun {
        /// Path of its `run.json`.
        file: PathBuf,
        /// The error.
        reason: String,
    },
    /// Trials of the earlier run were drawn again after it.
    #[error(
        "--failed: {trials} of the trials that passed in {} were drawn again in a later run: a run never combines \
         draws of both. Name the later run, or run all trials again without --failed",
        run.display()
    )]
    DrawnSince {
        /// Folder of the earlier run.
        run: PathBuf,
        /// Number of these trials.
        trials: usize,
    },
    /// A replay of grades has no limits either.
    #[error("--max-calls and --max-cost bound live and recording grading; a replay sends nothing")]
    BoundedReplayedGrading,
    /// A cost limit needs the price of the grading model.
    #[error("--max-cost needs the price of the grading model, and ragcheck.yaml has none of {}: add it under `prices`", line(.0))]
    UnpricedGrader(String),
    /// A cost limit needs a token limit for gradings.
    #[error("--max-cost needs a bound on the grader's completions: add `max_tokens` to the rubric's `model`")]
    UnboundedGrader,
    /// No request for a grading can be sent.
    #[error("no runtime could be started: {0}")]
    Runtime(io::Error),
    /// The grades or reports of a run folder cannot be written.
    #[error("{} cannot be written: {error}", folder.display())]
    GradesWrite {
        /// Run folder.
        folder: PathBuf,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// A file of conversations cannot be read.
    #[error("{} cannot be read: {error}", file.display())]
    ImportRead {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is, or unpacks to, more bytes than allowed.
    #[error("{} holds more than {}: split it; {}", file.display(), Bound::ImportSize.shown(), Bound::ImportSize.advice())]
    ImportTooLarge {
        /// The file.
        file: PathBuf,
    },
    /// It does not hold valid conversations.
    #[error("{}: {error}", file.display())]
    Conversations {
        /// The file.
        file: PathBuf,
        /// Why.
        error: ImportError,
    },
    /// A test runner cannot be run.
    #[error(transparent)]
    Runner(#[from] RunnerError),
    /// A scenario does not fit a test runner.
    #[error("{0}")]
    NotForRunner(String),
    /// A test runner began no case.
    #[error("{}", no_case(failures, problems, skipped))]
    NoCase {
        /// How the runner ended, each time that it failed.
        failures: Vec<String>,
        /// What it asked instead.
        problems: Vec<String>,
        /// The cases that its tests skipped, with the reason.
        skipped: BTreeMap<String, String>,
    },
    /// Every trial of the earlier run passed.
    #[error("--failed: every trial of {} passed", file.display())]
    EveryTrialPassed {
        /// Path of its `run.json`.
        file: PathBuf,
    },
}

/// The run folder is written, and a page or an old replay beside it cannot be renewed or removed.
#[derive(Debug, thiserror::Error)]
#[error(
    "the run in {} is whole; beside it, {error}; {}`ragcheck runs` writes the list of runs",
    folder.display(),
    if is_full_disk(error) { "free some space, then " } else { "" }
)]
pub struct Unlisted {
    /// The run folder.
    folder: PathBuf,
    /// The error, with its file.
    error: io::Error,
}

impl Unlisted {
    /// The error of what is written beside that run folder.
    pub(super) fn beside(folder: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self { folder: folder.to_owned(), error }
    }
}

/// Message for a test runner that began no case, or skipped all.
fn no_case(failures: &[String], problems: &[String], skipped: &BTreeMap<String, String>) -> String {
    let ended = failures.first().map_or_else(String::new, |how| format!("; the test runner ended with {how}"));
    let lines = problems.iter().map(|problem| format!("\n  {problem}"));
    let lines: String = lines.collect();
    if !skipped.is_empty() {
        let all: Vec<String> = skipped.iter().map(|(name, why)| format!("{name} ({})", quote(why, 80))).collect();
        return format!("nothing was measured: the tests skipped every case{ended}: {}{lines}", all.join(", "));
    }
    format!(
        "nothing was measured: no case was begun{ended}. A test begins its case with POST $RAGCHECK_URL/cases and ends it with \
         POST $RAGCHECK_URL/cases/ID/end: examples/pytest and examples/vitest have a fixture that does{lines}"
    )
}

impl From<Vec<Diagnostic>> for SuiteError {
    fn from(mistakes: Vec<Diagnostic>) -> Self {
        Self::Files(mistakes)
    }
}
