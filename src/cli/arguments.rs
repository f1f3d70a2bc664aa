//! Arguments of the command line.

use super::amount::money;
use super::cassette::arguments::Cassette;
use super::exec_arguments::Exec;
use super::exit;
use super::faults::Faults;
use super::index_arguments::{Keywords, Knowledge};
use super::review::Review;
use super::runs_arguments::{Compare, Comparing, History, Runs};
use crate::plan::{OnNew, Partition};
use crate::suite::Mode;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs the agent flows of a retrieval-augmented assistant against recordings or live models, evaluates the traces
/// against success criteria, and reports.
#[derive(Debug, Parser)]
#[command(name = "ragcheck", version, after_help = exit::table(), propagate_version = true)]
pub(super) struct Arguments {
    /// A folder outside of the project whose files may be read and written too; may be repeated.
    #[arg(long, value_name = "DIR", global = true, help_heading = "Safety", hide_short_help = true)]
    pub allow_path: Vec<PathBuf>,
    /// A key that may be sent to a host: `KEY=HOST`, beside the well-known pairs; may be repeated, also in RAGCHECK_TRUST.
    #[arg(long, value_name = "KEY=HOST", global = true, help_heading = "Safety", hide_short_help = true)]
    pub trust: Vec<String>,
    /// Where the agent of `flow: external` is, `http://127.0.0.1:8100`: a run speaks to no other, whatever a scenario names,
    /// in replay too; may be repeated, also in RAGCHECK_AGENT.
    #[arg(long, value_name = "URL", global = true, help_heading = "Safety", hide_short_help = true)]
    pub agent: Vec<String>,
    /// Sets a limit on the size of inputs: `scenario-size=16MiB`; may be repeated. docs/reference/limits.md lists the limits.
    #[arg(long, value_name = "NAME=VALUE", global = true, help_heading = "Safety", hide_short_help = true)]
    pub limit: Vec<String>,
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// The options beside the subcommand, to be given to another process.
    pub(super) fn granted(&self) -> Vec<OsString> {
        let several = [("--trust", &self.trust), ("--agent", &self.agent), ("--limit", &self.limit)];
        let texts = several.into_iter().flat_map(|(name, all)| all.iter().map(move |one| (name, OsString::from(one))));
        let paths = self.allow_path.iter().map(|path| ("--allow-path", path.clone().into_os_string()));
        paths.chain(texts).flat_map(|(name, value)| [name.into(), value]).collect()
    }
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "one for each process")]
pub(super) enum Command {
    /// Make a project: questions, documents, two prompts, criteria, recordings. It runs at once, without a key. With
    /// `--agent`: a project that tests an agent of yours.
    Init(Init),
    /// Look at a finished project, in a temporary folder: a flake distinguished from a real break, and the report in the browser.
    Demo(Demo),
    /// Run scenarios, evaluate them and report.
    Run(Run),
    /// Start a test runner of yours, and judge the cases that its tests begin: each is a trial with what the agent asked, recorded or
    /// replayed.
    Exec(Exec),
    /// In the configuration of an agent, before an MCP server that it starts: record the server's answers with the trial, and
    /// replay them without the server.
    McpRecord(McpRecord),
    /// Serve a coding agent by MCP, over the standard input and output: check, run, show, compare, and record with a limit that
    /// you set.
    McpServer(McpServer),
    /// Check scenarios, criteria and the project file: print every mistake, and every trial without a recording.
    Check(Check),
    /// Print the trials that would run.
    List(List),
    /// Make one run of the runs of its partitions (`run --partition`), and judge it.
    Merge(Merge),
    /// Recompute verdicts and reports from a run folder.
    Score(Score),
    /// Remove or bend evidence in the traces of a run that passes, score it again, and say which expectation or criterion
    /// notices, and which case asserts nothing about it.
    Mutate(Mutate),
    /// Make a case of a trace: what was asked, and expectations that hold on it, written into a scenario.
    Promote(Promote),
    /// Let a model grade the answers of a run by a rubric, and compare its grades with human ratings.
    Judge(Judge),
    /// Show conversations of a run to a person, without variant and grades, and write the person's ratings.
    Review(Review),
    /// Compare two runs, a run with a saved baseline, or the variants of one run, case by case.
    Compare(Compare),
    /// Show the results of live runs and recordings over time, with lasting changes.
    History(History),
    /// List the runs, newest first: verdict, date, suite, model, what failed.
    Runs(Runs),
    /// Print a run's report in one format.
    Report(Report),
    /// Print one trial's conversation.
    Show(Show),
    /// Explain what a criterion or metric measures, and how its verdict is reached.
    Explain(Explain),
    /// Strike each passing case with faults, one at a time: errors, broken streams, wrong answers, failing tools; and show
    /// which it recovers from.
    Faults(Faults),
    /// Serve a flow to people: a chat service over HTTP, with the settings of a scenario.
    Serve(Serve),
    /// Serve a model and a search service with declared behaviour, on loopback.
    Simulate(Simulate),
    /// Inspect a knowledge base.
    Knowledge(Knowledge),
    /// Inspect a keyword index, or prune it.
    Keywords(Keywords),
    /// Manage recordings.
    Cassette(Cassette),
    /// Print a JSON Schema, for editors and for programs that read run folders.
    Schema(Schema),
    /// Print the completions of a shell: `ragcheck completions bash > FILE`, where the shell reads them.
    Completions(Completions),
}

#[derive(Debug, Clone, Args)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Init {
    /// The folder; it is made where it is missing. No file in it is overwritten.
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    /// Make a project for an agent of yours: the command that starts it, or the URL of a running one. It is asked one
    /// question; what it replies and what it asks its model show how it is tested.
    #[arg(long, value_name = "CMD|URL")]
    pub agent: Option<String>,
    /// With --agent: the path to which a question is posted; by default the usual ones are tried.
    #[arg(long, value_name = "PATH", requires = "agent")]
    pub path: Option<String>,
    /// With --agent: who answers the agent's requests: openai, anthropic, google, …, simulator, or a base URL; by default
    /// inferred from the first request and the keys that are set, else the simulator.
    #[arg(long, value_name = "NAME|URL", requires = "agent")]
    pub provider: Option<String>,
    /// With --agent: the question.
    #[arg(long, value_name = "TEXT", requires = "agent")]
    pub question: Option<String>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Demo {
    /// Do not open the report in a browser.
    #[arg(long)]
    pub no_open: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct McpRecord {
    /// The server's name in recordings and traces, a to z, 0 to 9 and `-`; by default inferred from the command:
    /// `server-memory` for `npx -y @modelcontextprotocol/server-memory`.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The server and its arguments, behind `--`. It is started without a shell, and only when a run asks it.
    #[arg(last = true, required = true, value_name = "SERVER")]
    pub server: Vec<OsString>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct McpServer {
    /// Let the agent record, and spend at most this in all calls together, by the prices in ragcheck.yaml; without it,
    /// recordings are refused.
    #[arg(long, value_name = "USD", value_parser = money)]
    pub max_cost: Option<f64>,
}

/// Which trials.
#[derive(Debug, Clone, Args)]
pub(super) struct Select {
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

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Printed {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// How the result of a run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// For people; a large suite that passes in a few lines.
    Brief,
    /// For people, with everything.
    Whole,
    /// For programs.
    Json,
    /// Not at all: it is part of another result.
    Nothing,
}

/// Whether a long result is printed in full.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Verbose {
    /// Print every criterion, also of a large suite that passes.
    #[arg(short, long)]
    pub verbose: bool,
}

impl Verbose {
    /// How the result is printed.
    pub(super) fn of(self, format: Printed) -> Detail {
        match format {
            Printed::Json => Detail::Json,
            Printed::Human if self.verbose => Detail::Whole,
            Printed::Human => Detail::Brief,
        }
    }
}

/// What a run may take, and where it goes.
#[derive(Debug, Clone, Args)]
pub(super) struct Bounds {
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
pub(super) struct Run {
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
    #[command(flatten)]
    pub verbose: Verbose,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

/// A report to be written to a file.
#[derive(Debug, Clone)]
pub(super) struct ReportFile {
    /// The format, as `ragcheck report --to` names it.
    pub format: String,
    /// Where it goes.
    pub file: PathBuf,
}

/// Why a typed report cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReportFileError {
    #[error(
        "write FORMAT=FILE, `junit=out.xml`, or a file that ends in .html, .xml, .md, .csv or .json; formats are {}",
        crate::report::names().join(", ")
    )]
    Shape,
    #[error("no report format is called `{0}`: there are {names}", names = crate::report::names().join(", "))]
    Format(String),
}

/// Formats by the ending of a file.
const ENDINGS: [(&str, &str); 5] =
    [("html", "html"), ("xml", "junit"), ("md", "markdown"), ("csv", "csv"), ("json", "json")];

/// Reads `junit=out.xml`, or `out.xml`, whose ending names the format.
pub(super) fn report_file(text: &str) -> Result<ReportFile, ReportFileError> {
    let ending = std::path::Path::new(text).extension().and_then(|ending| ending.to_str());
    let of_ending = || ENDINGS.iter().find(|(known, _)| Some(*known) == ending).map(|(_, format)| (*format, text));
    let (format, file) = text.split_once('=').or_else(of_ending).ok_or(ReportFileError::Shape)?;
    if file.is_empty() {
        return Err(ReportFileError::Shape);
    }
    if !crate::report::names().contains(&format) {
        return Err(ReportFileError::Format(format.to_owned()));
    }
    Ok(ReportFile { format: format.to_owned(), file: file.into() })
}

#[derive(Debug, Clone, Args)]
pub(super) struct Judge {
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
pub(super) struct Check {
    /// Scenario files or folders; by default the project's.
    pub paths: Vec<PathBuf>,
    /// Criteria file; by default the project's.
    #[arg(long, value_name = "FILE")]
    pub criteria: Option<PathBuf>,
    /// Warn of recordings older than this, `90d` for example; by default as `recordings: {warn_after: …}` says.
    #[arg(long, value_name = "AGE", value_parser = crate::settings::parse_age)]
    pub warn_recordings_after: Option<Duration>,
    /// Environment file with keys, `KEY=VALUE` lines: missing ones are reported.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct List {
    #[command(flatten)]
    pub select: Select,
    /// Estimate the requests and the cost of a live run, and the smallest difference that it could show.
    #[arg(long)]
    pub estimate: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Merge {
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
pub(super) struct Score {
    /// The run folder; by default the project's newest run.
    #[arg(conflicts_with = "import")]
    pub run: Option<PathBuf>,
    /// Import another agent's conversations as a new run, from a file that may be compressed with gzip. Its format is
    /// recognised; `--import FORMAT FILE` names it: `messages`, chat messages; `trace`, published traces (`ragcheck schema
    /// trace`); `otlp`, OpenTelemetry spans and LangSmith's runs; `evals`, rows of OpenAI Evals.
    #[arg(long, num_args = 1..=2, value_names = ["FORMAT", "FILE"])]
    pub import: Option<Vec<PathBuf>>,
    /// Criteria file for imported conversations; by default every query must get an answer and every task must pass.
    #[arg(long, value_name = "FILE", requires = "import")]
    pub criteria: Option<PathBuf>,
    /// Scenario of the agent that talked: its roles and gates apply, and a task named like a case must meet what that case
    /// expects.
    #[arg(long, value_name = "FILE", requires = "import")]
    pub scenario: Option<PathBuf>,
    /// Where the run folder of imported conversations goes; by default the project's.
    #[arg(long, value_name = "DIR", requires = "import")]
    pub report_dir: Option<PathBuf>,
    #[command(flatten)]
    pub verbose: Verbose,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Mutate {
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
pub(super) struct Promote {
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
pub(super) enum Rows {
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
pub(super) struct Report {
    /// The run folder; by default the project's newest run.
    pub run: Option<PathBuf>,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(crate::report::names()))]
    pub to: String,
    /// With `--to csv` and `--to parquet`, what a row is.
    #[arg(long, value_enum, default_value_t = Rows::Criteria)]
    pub rows: Rows,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Show {
    /// A run folder and a trial behind it, or a trial of the newest run: `scenario/case/flow.variant.n`.
    pub trial: String,
    /// Print the whole text of every passage that its searches found, too.
    #[arg(long, conflicts_with = "format")]
    pub passages: bool,
    /// How the trial is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Explain {
    /// A criterion (`SC-002`) or a metric (`first_attempt_rate`); without one, all of them.
    pub name: Option<String>,
    /// Criteria file; by default the project's.
    #[arg(long, value_name = "FILE")]
    pub criteria: Option<PathBuf>,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Serve {
    /// The flow.
    #[arg(long)]
    pub flow: String,
    /// The scenario file whose settings are served; by default that of the flow's name, else the first with this flow.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Its variant; by default the first with this flow.
    #[arg(long)]
    pub variant: Option<String>,
    /// Where to listen; port 0 takes a free one. An address that other machines reach needs --token-env.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8100")]
    pub listen: SocketAddr,
    /// The variable that holds the token which every request must bear, of 16 characters or more.
    #[arg(long, value_name = "NAME")]
    pub token_env: Option<String>,
    /// Folder of sessions, keywords and the log; by default `.ragcheck/serve/FLOW` in the project.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// A session that is unused for so long ends.
    #[arg(long, value_name = "D", default_value = "24h", value_parser = crate::settings::parse_duration)]
    pub session_lifetime: Duration,
    /// Questions that are answered at the same time; more are turned away with 503.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_requests: u16,
    /// A file of `KEY=VALUE` lines with the providers' keys; it wins over the environment. No file is read by default.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// Another base URL of the model's provider: that of a proxy, for example.
    #[arg(long, value_name = "URL")]
    pub model_url: Option<String>,
    /// Another base URL of the search service's provider.
    #[arg(long, value_name = "URL")]
    pub search_url: Option<String>,
    /// Serve as an agent under test: callers choose their sessions' ids, and POST /api/test/reset forgets everything.
    #[arg(long)]
    pub test_target: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Simulate {
    /// The behaviour file.
    pub behaviour: PathBuf,
    /// Port on loopback; 0 takes a free one.
    #[arg(long, default_value_t = 8091)]
    pub port: u16,
}

/// Files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Schemas {
    /// Scenario files.
    Scenario,
    /// Criteria files.
    Criteria,
    /// `ragcheck.yaml`.
    Project,
    /// Rubrics.
    Rubric,
    /// Behaviour files of the simulator.
    Behaviour,
    /// `run.json` of a run folder.
    Run,
    /// `plan.json` of a run folder.
    Plan,
    /// Published traces, for `score --import trace`.
    Trace,
    /// A line of `traces.jsonl` of a run folder.
    Events,
    /// `exit-code.json` of a run folder.
    ExitCode,
    /// What `check --format json` prints.
    Check,
    /// What `list --format json` prints.
    List,
    /// What `show --format json` prints.
    Show,
    /// What `explain --format json` prints.
    Explain,
    /// What `init --format json` prints.
    Init,
    /// What `demo --format json` prints.
    Demo,
    /// What `judge --format json` prints.
    Judge,
    /// What `compare --format json` prints.
    Compare,
    /// What `history --format json` prints.
    History,
    /// What `runs --format json` prints.
    Runs,
    /// What `mutate --format json` prints.
    Mutate,
    /// What `faults --format json` prints.
    Faults,
    /// What `knowledge --format json` prints.
    Knowledge,
    /// What `keywords --format json` prints.
    Keywords,
    /// What `cassette --format json` prints.
    Cassette,
    /// Columns of the CSV files, as a page in Markdown.
    Csv,
}

#[derive(Debug, Clone, Args)]
pub(super) struct Schema {
    /// Which kind of file.
    #[arg(value_enum, default_value_t = Schemas::Scenario)]
    pub of: Schemas,
    /// Print a reference page in Markdown instead.
    #[arg(long)]
    pub markdown: bool,
}
