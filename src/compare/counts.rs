//! Counts and intervals in comparisons and baselines. Older builds wrote lists of the values alone, which are still
//! read, in the order of the members here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Successes and units of a criterion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of successes, as the metric counts them.
    pub successes: u64,
    /// Number of units.
    pub n: u64,
}

/// Successes and units of a criterion in one repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RepetitionCounts {
    /// Repetition, from 1.
    pub repetition: u32,
    /// Number of successes, as the metric counts them.
    pub successes: u64,
    /// Number of units.
    pub n: u64,
}

/// Trials of a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Passes {
    /// Number of trials that met everything the case expects.
    pub passed: u64,
    /// Number of trials that were run.
    pub trials: u64,
}

/// A figure as the counts behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fraction {
    /// Successes, or a sum.
    pub numerator: u64,
    /// Units, queries or answers.
    pub denominator: u64,
}

/// The two-sided interval of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<(u64, u64)> for Counts {
    fn from((successes, n): (u64, u64)) -> Self {
        Self { successes, n }
    }
}

impl From<(u64, u64)> for Passes {
    fn from((passed, trials): (u64, u64)) -> Self {
        Self { passed, trials }
    }
}

impl From<(f64, f64)> for Span {
    fn from((low, high): (f64, f64)) -> Self {
        Self { low, high }
    }
}
