//! Borrowed view of one trial's result in [`super::TrialResults`], for reports.
//!
//! A [`TrialRow`] has the fields of a [`super::TrialResult`], and both serialise to the same `run.json`.

use super::{Draws, RetryCounts, Verdict};
use crate::metric::Check;
use crate::trace::Arm;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// Result of one trial: see [`super::TrialResult`] for the fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialRow<'a> {
    pub id: Cow<'a, str>,
    pub scenario: &'a str,
    pub case: &'a str,
    pub lane: LaneRow<'a>,
    pub verdict: Verdict,
    pub checks: &'a [Check],
    pub departures: &'a [String],
    pub error: &'a str,
    pub turns: u32,
    pub model_calls: u32,
    pub tool_calls: u32,
    pub retries: RetryCounts,
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    #[serde(rename = "cost_usd", skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest_turn_us: Option<u64>,
    pub took_us: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub evidence: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub model: &'a str,
    #[serde(skip_serializing_if = "Draws::is_empty")]
    pub draws: Cow<'a, Draws>,
}

/// Borrowed view of a [`crate::trace::Lane`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LaneRow<'a> {
    pub flow: &'a str,
    pub variant: &'a str,
    pub repetition: u32,
    pub arm: Arm,
}

impl fmt::Display for LaneRow<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.flow, self.variant, self.repetition)?;
        if self.arm == Arm::Control { formatter.write_str(".control") } else { Ok(()) }
    }
}
