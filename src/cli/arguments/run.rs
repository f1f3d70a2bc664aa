//! Arguments of `run`: which trials, from where their answers come, how much they may take, and what is written.

use super::runs::Comparing;
use super::{Printed, Verbose};
use crate::cli::amount::money;
use crate::plan::{OnNew, Partition};
use crate::suite::Mode;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;

/// Which trials.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Select {
    /// Scenario files or folders; by default the project's.
    pub paths: Vec<PathBuf>,
    /// Only cases or trials that match this glob: `refund-*`, `refunds/*`, `*/tool-rag.base.1`; may be repeated.
    #[arg(short = 'k', long, visible_alias = "filter", value_name = "GLOB")]
    pub only: Vec<String>,
    /// Not the cases or trials that match this glob; may be repeated.
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Only cases with this tag; may be repeated.
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Only this flow.
    #[arg(long)]
    pub flow: Option<String>,
    /// Only this variant.
    #[arg(long)]
    pub variant: Option<String>,
    /// Repetitions of each case, in place of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Only N of the cases, drawn by --seed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub filter_sample: Option<u32>,
    /// Criteria file; by default the project's.
    #[arg(long, value_name = "FILE")]
    pub criteria: Option<PathBuf>,
    /// Seed of the run.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// What a run may take, and where it goes.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Bounds {
    /// A file of `KEY=VALUE` lines with the providers' keys; it wins over the environment. No file is read by default.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// Threads in replay (by default one a core; at least 4 trials of external agents), trials at the same time
    /// otherwise (by default 4).
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Most requests that a live or recording run may send; trials that it does not reach end as stopped, and their
    /// recordings stay as they were.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_calls: Option<u64>,
    /// Most US dollars that a live or recording run may spend, by the prices in ragcheck.yaml; trials that are still
    /// running when they are spent end as stopped.
    #[arg(long, value_name = "USD", value_parser = money)]
    pub max_cost: Option<f64>,
    /// Time limit of a live or recording run, `10m` for example; trials that it does not reach end as stopped.
    #[arg(long, value_name = "D", value_parser = crate::settings::parse_duration)]
    pub timeout: Option<Duration>,
    /// Warn of recordings older than this, `90d` for example; by default as `recordings: {warn_after: …}` says.
    #[arg(long, value_name = "AGE", value_parser = crate::settings::parse_age)]
    pub warn_recordings_after: Option<Duration>,
    /// Where run folders go; by default the project's.
    #[arg(long, value_name = "DIR")]
    pub report_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Run {
    #[command(flatten)]
    pub select: Select,
    /// Where answers come from.
    #[arg(long, value_enum, default_value_t = Mode::Replay)]
    pub mode: Mode,
    /// In a live or recording run, answer these services from the recordings, where the request is the recorded one:
    /// `search`, `knowledge`, `tools` (HTTP services of an external agent), or a service by name. The model is asked.
    #[arg(long, value_name = "SERVICE", value_delimiter = ',')]
    pub hold: Vec<String>,
    /// What happens with a request to a held service that is not recorded.
    #[arg(long, value_enum, default_value_t = OnNew::Live, requires = "hold")]
    pub on_new: OnNew,
    /// In a live or recording run, answer everything before this turn of each case from the recordings, by position, even
    /// where the request differs; then go on as the other options say.
    #[arg(long, value_name = "TURN", value_parser = clap::value_parser!(u32).range(2..))]
    pub from: Option<u32>,
    #[command(flatten)]
    pub bounds: Bounds,
    /// Run again what did not pass in the newest whole run, or in the run named, and take the other trials over from it.
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "latest")]
    pub failed: Option<PathBuf>,
    /// Go on with the newest unfinished live or recording run: alone, with everything as it was typed; beside other
    /// options, with the newest of just that plan. Finished trials are not run again.
    #[arg(long)]
    pub resume: bool,
    /// Run complete passes over the selected cases until every required gate has passed, has failed or can no longer
    /// pass; --repeat, or else the cases' own `repeat`, bounds the passes. A replay follows its recordings.
    #[arg(long, conflicts_with = "failed")]
    pub until_decided: bool,
    /// Most trials that a run until decided may take.
    #[arg(long, value_name = "N", requires = "until_decided", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_trials: Option<u64>,
    /// Run one of several partitions of the selected trials, `hash:3/8`, by a hash of their ids; `ragcheck merge` makes one run of
    /// all. --max-calls, --max-cost and the rates of providers are divided among them.
    #[arg(long, value_name = "hash:N/M", conflicts_with_all = ["failed", "until_decided", "watch", "baseline"])]
    pub partition: Option<Partition>,
    /// Go on: replay again what a changed file touches (a scenario, prompt, document, recording, the criteria), and print what
    /// that changed. Ctrl-C ends it.
    #[arg(long, conflicts_with_all = ["failed", "resume", "until_decided", "baseline", "report", "folder_file", "base_commit"])]
    pub watch: bool,
    /// Label of a live or recording run in the history: `release=1.4.0`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Do not add this run to the project's history.
    #[arg(long)]
    pub no_history: bool,
    /// A file of faults, `faults: [{fault: reset, service: model, call: 2}]`: they strike every case, in addition to those
    /// that it declares.
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Compare with a run folder, `RUN@variant` or a saved baseline at the end.
    #[arg(long, value_name = "RUN|FILE")]
    pub baseline: Option<String>,
    #[command(flatten)]
    pub comparing: Comparing,
    /// Name in the verdict the recordings that are not as they were at this commit, on a pull request that of its base. Asks git.
    #[arg(long, value_name = "COMMIT")]
    pub base_commit: Option<String>,
    /// Write the report to files besides: `junit=out.xml,markdown=summary.md`, by the formats of `ragcheck report`; may be
    /// repeated. `csv` is the table of criteria. Without `FORMAT=`, the ending decides: .html, .xml (JUnit), .md, .csv, .json.
    #[arg(short = 'o', long, value_name = "FORMAT=FILE", value_delimiter = ',', value_parser = report_file)]
    pub report: Vec<ReportFile>,
    /// Write the path of the run folder to a file, for scripts.
    #[arg(long, value_name = "FILE", require_equals = true)]
    pub folder_file: Option<PathBuf>,
    /// With --max-cost, write to a file what was spent, in US dollars, also if the run fails.
    #[arg(long, value_name = "FILE", require_equals = true, requires = "max_cost")]
    pub spent_file: Option<PathBuf>,
    /// Digest of the prices and providers that --max-cost counts by: with others, nothing is run.
    #[arg(long, hide = true, require_equals = true, requires = "max_cost")]
    pub charged_by: Option<String>,
    #[command(flatten)]
    pub verbose: Verbose,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

/// A report to be written to a file.
#[derive(Debug, Clone)]
pub(in crate::cli) struct ReportFile {
    /// The format, as `ragcheck report --to` names it.
    pub format: String,
    /// Where it goes.
    pub file: PathBuf,
}

/// Why a typed report cannot be made.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ReportFileError {
    #[error(
        "write FORMAT=FILE, `junit=out.xml`, or a file that ends in .html, .xml, .md, .csv or .json; formats are {}",
        crate::report::names().join(", ")
    )]
    Shape,
    #[error("no report format is called `{0}`: there are {names}", names = crate::report::names().join(", "))]
    Format(String),
    #[error("this build does not write Parquet: published binaries do, or build with `--features parquet`")]
    WithoutParquet,
}

/// Formats by the ending of a file.
const ENDINGS: [(&str, &str); 6] =
    [("html", "html"), ("xml", "junit"), ("md", "markdown"), ("csv", "csv"), ("json", "json"), (PARQUET, PARQUET)];

/// The format of builds with the feature of its name.
const PARQUET: &str = "parquet";

/// Reads the name of a report format.
fn report_format(text: &str) -> Result<String, ReportFileError> {
    match text {
        known if crate::report::names().contains(&known) => Ok(known.to_owned()),
        PARQUET => Err(ReportFileError::WithoutParquet),
        other => Err(ReportFileError::Format(other.to_owned())),
    }
}

/// Reads the name of a report format; help and completions list those of this build.
pub(in crate::cli) fn report_formats() -> impl TypedValueParser<Value = String> {
    let unknown = cfg!(not(feature = "parquet")).then(|| PossibleValue::new(PARQUET).hide(true));
    let known = crate::report::names().into_iter().map(PossibleValue::new);
    PossibleValuesParser::new(known.chain(unknown)).try_map(|format| report_format(&format))
}

/// Reads `junit=out.xml`, or `out.xml`, whose ending names the format.
pub(in crate::cli) fn report_file(text: &str) -> Result<ReportFile, ReportFileError> {
    let ending = std::path::Path::new(text).extension().and_then(|ending| ending.to_str());
    let of_ending = || ENDINGS.iter().find(|(known, _)| Some(*known) == ending).map(|(_, format)| (*format, text));
    let (format, file) = text.split_once('=').or_else(of_ending).ok_or(ReportFileError::Shape)?;
    if file.is_empty() {
        return Err(ReportFileError::Shape);
    }
    Ok(ReportFile { format: report_format(format)?, file: file.into() })
}
