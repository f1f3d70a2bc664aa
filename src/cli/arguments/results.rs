//! Arguments of the commands that read a finished run: `judge`, `merge`, `score`, `mutate`, `promote`, `report`, `show` and `explain`.

use super::{Printed, Verbose, report_formats};
use crate::cli::amount::money;
use crate::suite::Mode;
use crate::suite::evaluation::{MOST_SLICES, Slice};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Judge {
    /// The run folder.
    pub run: PathBuf,
    /// The rubric; by default `scenarios/rubric.yaml`.
    #[arg(long, value_name = "FILE")]
    pub rubric: Option<PathBuf>,
    /// Where grades come from; `record` asks only for answers that have no recording yet.
    #[arg(long, value_enum, default_value_t = Mode::Replay)]
    pub mode: Mode,
    /// Grade every answer, not only those for which knowledge base and external search both returned results.
    #[arg(long)]
    pub all: bool,
    /// Most requests that may be sent; an answer takes two.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_calls: Option<u64>,
    /// Most US dollars that may be spent, by the prices in ragcheck.yaml; what is recorded by then is kept.
    #[arg(long, value_name = "USD", value_parser = money)]
    pub max_cost: Option<f64>,
    /// How many answers are graded at the same time, live or recording.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// A file of `KEY=VALUE` lines with the providers' keys; it wins over the environment. No file is read by default.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Merge {
    /// The run folders of all partitions, in any order.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Where the run folder goes; by default the project's.
    #[arg(long, value_name = "DIR")]
    pub report_dir: Option<PathBuf>,
    #[command(flatten)]
    pub verbose: Verbose,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Score {
    /// The run folder; by default the project's newest run.
    #[arg(conflicts_with = "import")]
    pub run: Option<PathBuf>,
    /// Import another agent's conversations as a new run, from a file that may be compressed with gzip. Its format is
    /// recognised; `--import FORMAT FILE` names it: `messages`, chat messages; `trace`, published traces (`ragcheck schema
    /// trace`); `otlp`, OpenTelemetry spans and LangSmith's runs; `evals`, rows of OpenAI Evals.
    #[arg(long, num_args = 1..=2, value_names = ["FORMAT", "FILE"])]
    pub import: Option<Vec<PathBuf>>,
    /// Criteria file for imported conversations; by default the project's, and that every query gets an answer and every
    /// task passes.
    #[arg(long, value_name = "FILE", requires = "import")]
    pub criteria: Option<PathBuf>,
    /// Scenario of the agent that talked: its roles and gates apply, and a task named like a case must meet what that case
    /// expects.
    #[arg(long, value_name = "FILE", requires = "import")]
    pub scenario: Option<PathBuf>,
    /// Where the run folder of imported conversations goes; by default the project's.
    #[arg(long, value_name = "DIR", requires = "import")]
    pub report_dir: Option<PathBuf>,
    /// Examine one of several slices of the traces, `3/8`, and store what was found in the run folder: several machines share the
    /// work. `--slices` makes the verdict.
    #[arg(long, value_name = "SLICE", conflicts_with_all = ["import", "slices"])]
    pub slice: Option<Slice>,
    /// Make the verdict of N slices that `--slice` examined, without examining a trace again.
    #[arg(long, value_name = "N", conflicts_with = "import", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SLICES)))]
    pub slices: Option<u32>,
    #[command(flatten)]
    pub verbose: Verbose,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Mutate {
    /// The run folder; by default the project's newest run. The result goes there, and into its report.
    pub run: Option<PathBuf>,
    /// Name every case that asserts nothing about something.
    #[arg(long)]
    pub all: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Promote {
    /// The file with the trace, in any format that `score --import` reads.
    #[arg(value_name = "TRACE")]
    pub file: PathBuf,
    /// Name of the new case.
    #[arg(long, value_name = "NAME")]
    pub case: String,
    /// Scenario that takes the case; by default the project's only one.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Which trace, if the file has several: its number in the order of the import, its case, or the beginning of its id.
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<String>,
    /// A recording of the same conversation by another tool, which becomes the lane of the case: HAR, VCR.py, Ruby VCR,
    /// go-vcr or httprr.
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// Format of the file; by default it is recognised.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// How the case is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub output: Printed,
}

/// What a row of a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Rows {
    /// A criterion.
    Criteria,
    /// A trial.
    Trials,
    /// A unit that fails a criterion, with the reason.
    Violations,
    /// A call of a model, a tool, a search or a declared service.
    Calls,
    /// A figure of time.
    Latency,
    /// A requirement, with how it is shown.
    Requirements,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Report {
    /// The run folder; by default the project's newest run.
    pub run: Option<PathBuf>,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = report_formats())]
    pub to: String,
    /// With `--to csv` and `--to parquet`, what a row is.
    #[arg(long, value_enum, default_value_t = Rows::Criteria)]
    pub rows: Rows,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Show {
    /// A run folder and a trial behind it, or a trial of the newest run that has it: `scenario/case/flow.variant.n`.
    pub trial: String,
    /// Print the whole text of every passage that its searches found, too.
    #[arg(long, conflicts_with = "format")]
    pub passages: bool,
    /// How the trial is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Explain {
    /// A criterion (`SC-002`) or a metric (`first_attempt_rate`); without one, all of them.
    pub name: Option<String>,
    /// Criteria file; by default the project's.
    #[arg(long, value_name = "FILE")]
    pub criteria: Option<PathBuf>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}
