//! Small records of `run.json`: retries, intervals, and counts by variant, kind of evidence, transition and case.
//!
//! Up to version 1 of `run.json` these were lists of the values alone. A list is still read, in the order of the
//! members here.

use super::latency::FAULTS;
use crate::metric::stages::Stage;
use crate::platform::words;
use crate::trace::ASKED_NOBODY;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Retries of one trial, by account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetryCounts {
    /// HTTP attempts after the first.
    pub transport: u32,
    /// Feedback to the model about a missing or invalid call.
    pub model: u32,
    /// Repeated calls of a tool that failed or rejected its arguments.
    pub tool: u32,
}

/// A two-sided interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// Successes and units of one variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariantCounts {
    /// The variant.
    pub variant: String,
    /// Number of successes.
    pub successes: u64,
    /// Number of units.
    pub n: u64,
}

/// A number of consecutive turns with one kind of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KindCount {
    /// The kind, as in `latency`.
    pub kind: String,
    /// Number of turns.
    pub turns: u64,
}

impl KindCount {
    /// Whether the times are those of an agent whose services answer, if one is called.
    pub(crate) fn is_usual(&self) -> bool {
        !self.kind.ends_with(FAULTS) && self.kind != ASKED_NOBODY
    }
}

/// One point of a curve of turn times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Duration of a turn in microseconds.
    pub took_us: u64,
    /// Number of turns that took at most that long.
    pub turns: u64,
}

/// Time spent in one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageTime {
    /// The stage.
    pub stage: Stage,
    /// Microseconds of all answered turns.
    pub took_us: u64,
}

/// Counts of each declared transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionCoverage {
    /// The flow.
    pub flow: String,
    /// The transitions, in the order of the flow's declaration.
    pub taken: Vec<TransitionCount>,
}

/// One declared transition, with the number of times that traces took it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionCount {
    /// State before it.
    pub from: String,
    /// Event that causes it.
    pub on: String,
    /// State after it.
    pub to: String,
    /// Number of times.
    pub times: u64,
}

/// Which cases exercise a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequirementCoverage {
    /// `FR-003`.
    pub id: String,
    /// The requirement in a few words.
    pub about: String,
    /// Its source as the project states it, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Cases that name it: empty means uncovered.
    pub cases: Vec<CaseCounts>,
    /// How it is shown; `None` if `ragcheck mutate` has not examined the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RequirementState>,
    /// What keeps it from being asserted, or the tests that show it; empty if it is asserted or not examined.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

words! {
    /// How a requirement is shown.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum RequirementState {
        /// A verdict of its cases changes with each of its defects.
        Asserted = "asserted",
        /// Its cases pass, and no verdict is known to depend on it: the recording pins it.
        RecordedOnly = "recorded only",
        /// A test shows it, outside of runs.
        TestedOutsideRuns = "tested outside runs",
        /// No case of it passes, and no test is named: it is not covered.
        NamedOnly = "named only",
    }
}

/// Trials of one case, of the main arm and not in ERROR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseCounts {
    /// `scenario/case`.
    pub case: String,
    /// Number of trials that passed.
    pub passed: u32,
    /// Number of trials that were run.
    pub trials: u32,
}

#[cfg(test)]
mod tests {
    use crate::gate::Evaluation;

    #[test]
    fn a_run_json_of_version_1_with_lists_of_values_is_read_with_the_same_figures() {
        let text = include_str!("../../tests/runs/positional/run.json");
        let old: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert_eq!((&old["version"], old["trials"][0]["retries"].is_array()), (&1.into(), true));
        let read: Evaluation = serde_json::from_str(text).expect("an evaluation");
        let now = serde_json::to_value(&read).expect("JSON");
        assert_eq!(now["criteria"][0]["interval"]["lower"], old["criteria"][0]["interval"][0]);
        assert_eq!(now["trials"][0]["retries"]["tool"], old["trials"][0]["retries"][2]);
        assert_eq!(now["transitions"][0]["taken"][0]["times"], old["transitions"][0]["taken"][0][3]);
        assert_eq!(now["latency"][0]["stages"][0]["stage"], old["latency"][0]["stages"][0][0]);
        assert_eq!(now["spending"]["cases"][0]["name"], old["spending"]["cases"][0][0]);
        assert_eq!(now["sources"][0]["recorded_on"], old["sources"][0]["dates"]);
    }
}
