//! Arguments of `ragcheck cassette`.

use crate::cassette::foreign::Format;
use crate::cli::arguments::{Bounds, Printed, ReportFile, Select, report_file};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(crate) struct Cassette {
    #[command(subcommand)]
    pub command: CassetteCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum CassetteCommand {
    /// Look for secrets in recordings or any other files; exit code 1 when there are some.
    Scan(Scan),
    /// Record lanes again: those whose replay misses, or that are old or no longer fit; says beforehand what it takes.
    Refresh(Refresh),
    /// Compute keys anew after a change of the matching profiles, from the stored requests, and add the `end:` line that
    /// recordings of format 1 lack; sends nothing.
    Rekey(Rekey),
    /// Make cassettes of what another recorder wrote: VCR.py, Ruby VCR, go-vcr, HAR, httprr.
    Import(Import),
    /// Send a sample of recorded requests to today's providers and compare the shapes of the answers; exit code 1 when
    /// members came, went or changed their type.
    Diff(Diff),
}

impl CassetteCommand {
    /// The reports that it was asked to write.
    pub(crate) fn reports(&self) -> &[ReportFile] {
        if let Self::Refresh(given) = self { &given.report } else { &[] }
    }
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Scan {
    /// Files, and folders with all that is below them; by default the project's cassettes.
    pub paths: Vec<PathBuf>,
    /// A file of `KEY=VALUE` lines whose values are looked for, beside those of the environment.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true).args(["missed", "stale"]))]
pub(crate) struct Refresh {
    #[command(flatten)]
    pub select: Select,
    /// Lanes whose replay ends in a miss, or that have no sound recording.
    #[arg(long)]
    pub missed: bool,
    /// Lanes that are too old, or were recorded with another model, system prompt, tool list or parameters.
    #[arg(long)]
    pub stale: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// Only print what would be recorded, with the number of calls and the cost; send nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Write the report on what was recorded to files besides, as `ragcheck run --report` does; none where nothing was.
    #[arg(long, value_name = "FORMAT=FILE", value_delimiter = ',', value_parser = report_file)]
    pub report: Vec<ReportFile>,
    #[command(flatten)]
    pub bounds: Bounds,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Rekey {
    /// Cassettes, and folders with all that are below them; by default the project's.
    pub paths: Vec<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Import {
    /// Files, and folders with all .yaml, .yml, .json, .har, .httprr and .gz files below them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The format of the files; without it, the content of each file shows it.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The scenario below whose name the cassettes are put; each file becomes a case of it, for a scenario of that name with
    /// `flow: external` to replay.
    #[arg(long, value_name = "NAME", default_value = "imported")]
    pub scenario: String,
    /// A file of `KEY=VALUE` lines whose values are redacted, beside those of the environment.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub output: Printed,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub select: Select,
    /// Requests sent to each service, at most; which ones depends on --seed alone.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: u32,
    /// A file of `KEY=VALUE` lines with the providers' keys; it wins over the environment.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}
