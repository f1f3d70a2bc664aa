//! What may be typed behind `ragcheck cassette`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub struct Cassette {
    #[command(subcommand)]
    pub command: CassetteCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub enum CassetteCommand {
    /// Look for secrets in recordings or any other files; exit code 1 when there are some.
    Scan(Scan),
}

#[derive(Debug, Clone, Args)]
pub struct Scan {
    /// Files, and folders with all that is below them; by default the project's cassettes.
    pub paths: Vec<PathBuf>,
    /// A file of `KEY=VALUE` lines whose values are looked for, beside those of the environment.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
}
