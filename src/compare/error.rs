//! Errors that prevent a comparison.

use super::summary::BASELINE_VERSION;

/// Reason why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompareError {
    /// A run lacks the requested variant.
    #[error("{run} has no variant `{variant}`; it has {known}")]
    NoVariant { run: String, variant: String, known: String },
    /// A file is not a baseline.
    #[error("not a baseline: {0}; `ragcheck compare RUN --save FILE` writes one from a run folder")]
    NoBaseline(serde_json::Error),
    /// A baseline has a case with more successes than units, or with more tokens, cost or time than any run has.
    #[error(
        "not a baseline: its figures of {0} are impossible (more successes than units, or tokens, money or times that no run has?); write it again from its run \
         folder with `ragcheck compare RUN --save FILE`"
    )]
    Impossible(String),
    /// A baseline does not list repetitions one by one.
    #[error(
        "baseline format 1 does not hold repetitions one by one, so they cannot be paired: write it again from its run \
         folder with `ragcheck compare RUN --save FILE`"
    )]
    OldBaseline,
    /// A baseline was written by a newer build.
    #[error("baseline format {0} is newer than this build reads ({BASELINE_VERSION}); update ragcheck")]
    NewerBaseline(u32),
    /// A run mixes live and replayed trials.
    #[error("{0} has both live and replayed trials; compare runs of one mode")]
    MixedModes(String),
    /// One side is live, the other a replay.
    #[error(
        "{a} is {mode_a} and {b} is {mode_b}: a replay says nothing about today's provider, so the two are not \
         compared; run both in the same mode"
    )]
    OtherMode { a: String, mode_a: String, b: String, mode_b: String },
    /// A run whose variants are to be compared has only one.
    #[error("{run} has one variant, {variant}: name another run to compare it with, `ragcheck compare {run} OTHER`")]
    OneVariant { run: String, variant: String },
    /// The variants share no case. `known`: the variants of each scenario.
    #[error(
        "no case of {run} was run under all of these variants ({known}): name those to be compared, `--variants A,B`"
    )]
    NoCommonCase { run: String, known: String },
    /// The sides have no case in common.
    #[error("{0}")]
    NothingInCommon(String),
}
