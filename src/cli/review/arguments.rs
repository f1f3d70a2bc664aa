//! Arguments of `ragcheck review`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct Review {
    /// The run folder; by default the project's newest run. It is only read.
    pub run: Option<PathBuf>,
    /// Conversations in the random sample.
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub sample: usize,
    /// Most conversations that are shown first because their judges disagree; outside the sample they count in no figure.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub disagreements: usize,
    /// Seed of the sample; a larger sample with the same seed goes on with the smaller one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Draw from all answers, not only from those for which knowledge base and external search both returned results.
    #[arg(long)]
    pub all: bool,
    /// The ratings file; by default the one that ragcheck.yaml names, or else ratings.csv beside it.
    #[arg(long, value_name = "FILE")]
    pub ratings: Option<PathBuf>,
    /// Port on 127.0.0.1; by default a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}
