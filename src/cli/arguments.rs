//! Arguments of the command line.

mod exec;
mod index;
mod results;
mod run;
mod runs;

pub(super) use exec::Exec;
pub(super) use index::{Keywords, KeywordsCommand, Knowledge, KnowledgeCommand};
pub(super) use results::{Explain, Judge, Merge, Mutate, Promote, Report, Rows, Score, Show};
pub(super) use run::{Bounds, ReportFile, Run, Select, report_file, report_formats};
pub(super) use runs::{Compare, Comparing, FailOn, History, HistoryCommand, Runs};

use super::amount::money;
use super::cassette::arguments::Cassette;
use super::exit;
use super::faults::Faults;
use super::review::Review;
use super::storage::Storage;
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
    /// Keep runs and recordings in S3-compatible storage.
    Storage(Storage),
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
    /// Files of `faults --poison`.
    Payloads,
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
    /// What `storage --format json` prints.
    Storage,
    /// What `promote --output json` prints.
    Promote,
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
