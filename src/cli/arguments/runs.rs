//! Arguments of the subcommands that compare runs, list them and show their history.

use super::Printed;
use crate::cli::amount::share;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Runs {
    /// Where the run folders are; by default the project's.
    #[arg(long, value_name = "DIR")]
    pub report_dir: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct History {
    #[command(subcommand)]
    pub command: Option<HistoryCommand>,
    /// The history; by default the project's `history.jsonl`.
    #[arg(long, value_name = "FILE", global = true)]
    pub file: Option<PathBuf>,
    /// Where the page goes; by default `history.html` in the project's folder of reports.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, global = true, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Subcommand)]
pub(in crate::cli) enum HistoryCommand {
    /// Add a run folder, of a live run or a recording, to the history.
    Add {
        /// The run folder; by default the project's newest run.
        run: Option<PathBuf>,
        /// Label of the run: `release=1.4.0`; may be repeated.
        #[arg(long, value_name = "KEY=VALUE")]
        label: Vec<String>,
    },
    /// Add the runs of other history files, each once.
    Merge {
        /// The other files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// What makes a comparison fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FailOn {
    /// A required criterion that is worse beyond the margin, corrected p at most 0.05 (exit code 1). With fewer cases than
    /// can show one it is a usage error: 6, with 6 required criteria 8, with 11 of them 9.
    Regression,
    /// A case that passed in every repetition on the older side and in none now (exit code 1). Live runs need three
    /// repetitions of each case on both sides, replays none. Of `run --baseline` this alone decides then: verdicts on
    /// criteria do not.
    Flip,
}

/// How a comparison is decided.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Comparing {
    /// Exit with 1 on this.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// A loss up to this much does not matter (turn times: never below 10%).
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    pub margin: f64,
}

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Compare {
    /// The older side: a run folder, `RUN@variant`, or a baseline file. With --previous, the newer side.
    #[arg(required_unless_present = "previous")]
    pub a: Option<String>,
    /// The newer side; without it, the variants of A are compared with each other, or A is only saved.
    #[arg(conflicts_with = "previous")]
    pub b: Option<String>,
    /// Compare only these variants of A with each other, in this order; two or more.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["b", "previous"])]
    pub variants: Vec<String>,
    /// Compare a run, the newest one by default, with the run of the same scenarios that was made before it.
    #[arg(long)]
    pub previous: bool,
    /// Save the newer side's figures, case by case, as a baseline to commit.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub comparing: Comparing,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}
