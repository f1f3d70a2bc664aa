//! Arguments of `ragcheck exec`.

use super::{Printed, ReportFile, report_file};
use crate::suite::Mode;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Exec {
    /// The scenario that the cases are judged by: its services, tool roles and `vars`, and what it expects of a case of the
    /// same name. It has no `target`. By default every provider of the project and the usual ones, and no expectations.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Where answers come from. A recording starts the command twice: the second time verifies what was recorded.
    #[arg(long, value_enum, default_value_t = Mode::Replay)]
    pub mode: Mode,
    /// Criteria file; by default the project's.
    #[arg(long, value_name = "FILE")]
    pub criteria: Option<PathBuf>,
    /// Seed of the run.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// A file of `KEY=VALUE` lines with the providers' keys; it wins over the environment. No file is read by default.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// Most requests that a live or recording run may send.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_calls: Option<u64>,
    /// Where run folders go; by default the project's.
    #[arg(long, value_name = "DIR")]
    pub report_dir: Option<PathBuf>,
    /// Write the report to files besides: `junit=out.xml,markdown=summary.md`, by the formats of `ragcheck report`; may be
    /// repeated. `csv` is the table of criteria.
    #[arg(long, value_name = "FORMAT=FILE", value_delimiter = ',', value_parser = report_file)]
    pub report: Vec<ReportFile>,
    /// How the result is printed; with `json`, what the test runner prints goes to the error output.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
    /// The test runner and its arguments, behind `--`: `ragcheck exec -- pytest -q`. It is started without a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
