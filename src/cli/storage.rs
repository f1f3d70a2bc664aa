//! `ragcheck storage`: keeps runs and recordings in S3-compatible storage (the feature `s3`).

#[cfg(feature = "s3")]
mod commands;

#[cfg(feature = "s3")]
pub(super) use commands::run;

use super::arguments::Printed;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(super) struct Storage {
    #[command(subcommand)]
    pub command: StorageCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum StorageCommand {
    /// Store run folders, or the recordings. What is stored already is not sent again; files with secrets are refused.
    Push {
        #[command(flatten)]
        place: Place,
        /// The run folders; by default the project's newest run.
        #[arg(conflicts_with = "recordings")]
        runs: Vec<PathBuf>,
        /// Store the project's recordings instead.
        #[arg(long)]
        recordings: bool,
        /// Put recordings, or what was added to a run, in the place of stored ones that differ.
        #[arg(long)]
        replace: bool,
    },
    /// Fetch runs, or the recordings, and verify every file. A run appears as a whole or not at all.
    Pull {
        #[command(flatten)]
        place: Place,
        /// Names of the runs; by default all.
        #[arg(value_name = "NAME", conflicts_with = "recordings")]
        runs: Vec<String>,
        /// Fetch the recordings instead.
        #[arg(long)]
        recordings: bool,
        /// Where the run folders go, or the recordings; by default the project's folder for them.
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Put stored recordings in the place of those here that differ.
        #[arg(long, requires = "recordings")]
        replace: bool,
    },
    /// List the runs and recordings that are stored.
    List {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Clone, Args)]
pub(super) struct Place {
    /// Where: `s3://BUCKET/PREFIX`. Keys and the server are in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
    /// AWS_REGION and AWS_ENDPOINT_URL.
    #[arg(value_name = "URL")]
    pub url: String,
    /// A file of `KEY=VALUE` lines with these variables; it wins over the environment. No file is read by default.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Printed::Human)]
    pub format: Printed,
}

/// Runs `ragcheck storage`.
///
/// # Errors
/// Always: this build has no storage.
#[cfg(not(feature = "s3"))]
pub(super) fn run(_: &Storage) -> Result<super::Exit, super::output::Problem> {
    Err(super::output::Problem::Words(
        "this ragcheck was built without storage. Published binaries have it; a build of yours needs `--features s3`"
            .to_owned(),
    ))
}
