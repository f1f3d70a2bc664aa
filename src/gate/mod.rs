//! Turns observations into verdicts: the evaluation of a run as plain data (`run.json`).
//!
//! An [`Examiner`] examines the trace of one trial, in parallel with others; an [`Evaluator`] aggregates the results in
//! plan order. A planned trial without a trace is in ERROR: deleting traces never
//! makes a run pass. Nothing here knows how a trace is produced or how a verdict is shown.

mod after_answer;
mod behaviour;
mod cause;
mod conclusion;
mod corrected;
mod counting;
mod counts;
mod coverage;
mod criterion;
mod design;
mod draws;
mod error;
mod error_groups;
mod evaluator;
mod examine;
mod figures;
mod format;
mod grades;
mod grouped;
mod held;
mod latency;
mod notes;
mod part;
mod pass_bet;
mod repeats;
mod restarts;
mod results;
mod row;
mod rule;
mod sources;
mod spending;
mod stopped;
mod tally;
mod unread;
mod unshown;

#[cfg(test)]
mod counting_tests;
#[cfg(test)]
mod design_tests;
#[cfg(test)]
mod grade_error_rate_tests;
#[cfg(test)]
mod run_error_rate_tests;
#[cfg(test)]
mod scope_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod undecided_tests;

pub(crate) use cause::{Cause, expectation, note_in_words, reason};
pub(crate) use corrected::Corrected;
pub(crate) use counting::most_units;
pub(crate) use counts::{
    CaseCounts, CurvePoint, Interval, KindCount, RequirementCoverage, RequirementState, RetryCounts, StageTime,
    TransitionCount, TransitionCoverage, VariantCounts,
};
pub(crate) use draws::{Draws, Redrawn};
pub(crate) use error::EvaluationError;
pub(crate) use error_groups::calls_held;
pub use evaluator::Evaluator;
#[cfg(not(front_door_only))]
pub use evaluator::evaluate;
pub(crate) use examine::{Examined, Examiner};
pub(crate) use grades::ItemGrades;
pub(crate) use held::HeldRun;
pub(crate) use latency::{Edge, Latency, Quantile};
pub(crate) use part::of_part;
pub(crate) use repeats::Repeats;
pub(crate) use restarts::Restarts;
pub(crate) use results::{TrialResults, TrialRows};
pub(crate) use row::TrialRow;
pub(crate) use sources::day_of;
pub(crate) use spending::{Spending, Spent, SpentBy};
pub(crate) use stopped::{Sequential, Stopped};
pub(crate) use unread::Unread;
pub(crate) use unshown::Unshown;

use crate::metric::Check;
use crate::platform::words;
use crate::trace::{Lane, Mode, is_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Version of `run.json`. Version 2 names the members of what were lists of values in version 1, and gives some
/// members the names of CSV columns; both are read.
pub(crate) const RUN_VERSION: u32 = 2;

words! {
    /// The five verdicts.
    ///
    /// ```
    /// assert_eq!(ragcheck::Verdict::NotMeasured.as_str(), "NOT_MEASURED");
    /// ```
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum Verdict {
        /// The requirement holds.
        Pass = "PASS",
        /// The requirement does not hold.
        Fail = "FAIL",
        /// The evidence does not decide.
        Inconclusive = "INCONCLUSIVE",
        /// There was nothing to measure.
        #[default]
        NotMeasured = "NOT_MEASURED",
        /// Not evaluated: a trial in ERROR is among its units.
        Error = "ERROR",
    }
}

impl Verdict {
    /// All verdicts, in the order of reports.
    pub(crate) const ALL: [Self; 5] = [Self::Pass, Self::Fail, Self::Inconclusive, Self::NotMeasured, Self::Error];
}

/// Result of one criterion or gate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionResult {
    /// `SC-001`, or `gate 1` of a scenario.
    pub id: String,
    /// The requirement in a sentence.
    pub about: String,
    /// The scenario that the gate belongs to; `None` for a criterion on the whole run.
    pub scenario: Option<String>,
    /// The metric as written.
    pub metric: String,
    /// The target as written.
    pub target: String,
    /// `invariant`, `confidence` or `point`.
    pub kind: String,
    /// Whether the run fails when it does not pass.
    pub required: bool,
    /// Whether it may measure nothing.
    pub not_measured_ok: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Name of the units, in the plural.
    pub units: String,
    /// Number of measured units, without exclusions.
    pub n: u64,
    /// Number of independent clusters: trials, or cases where the claim is about unseen cases.
    #[serde(default)]
    pub clusters: u64,
    /// Number of distinct conversations among the trials with units: by questions, calls and outcomes, ignoring
    /// wording.
    #[serde(default)]
    pub distinct: u64,
    /// Units and clusters as text, if there are fewer clusters: `448 queries in 283 conversations`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sample_text: String,
    /// Unit that the rate is counted over: `unit`, or `conversation`, where each has the same weight.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub per: String,
    /// The observed share of all units, for any `per`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_unit: Option<f64>,
    /// The observed mean of the shares of conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_conversation: Option<f64>,
    /// Observed and bounded figures as text, the beginning of the sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seen_text: String,
    /// Number of successes (for a time: units below the target).
    pub successes: u64,
    /// The observed figure: a rate 0 to 1, or seconds; `None` when nothing was measured.
    pub observed: Option<f64>,
    /// For a rate of grades with a measured agreement: the rate corrected for the grader's errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Corrected>,
    /// The observed figure as text: `38/40 = 95.0 %`, `p95 8.41 s`.
    pub observed_text: String,
    /// One-sided lower bound on the rate. The bound that decides a PASS is at 95 %, the
    /// one that decides a FAIL at 95 % for all required confidence gates together.
    pub lower: Option<f64>,
    /// One-sided upper bound on the rate.
    pub upper: Option<f64>,
    /// Two-sided 95 % interval, for display only: Wilson's where every trial has one unit.
    pub interval: Option<Interval>,
    /// The bound as text: `true rate at least 92.8 %`.
    pub bound_text: String,
    /// The whole verdict in one sentence: observed figures, target, bound, what is missing to decide.
    pub sentence: String,
    /// Source of the evidence: `REPLAYED, recorded from simulator on 2026-11-21`.
    pub evidence: String,
    /// Whether the metric is only a proxy for the requirement.
    pub proxy: bool,
    /// Excluded cases, with reasons.
    pub excluded: Vec<Excluded>,
    /// The figure including excluded cases: `41/44 = 93.2 %`; empty when none is excluded.
    pub with_excluded: String,
    /// Units that fail it, without exclusions, at most 50,000.
    pub violations: Vec<Violation>,
    /// Reasons for all failures, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Sources of its units; empty if none was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Trials in ERROR that would have counted.
    pub errors: u64,
    /// Trials whose agent is out of the metric's scope: it lacks a role or a tool that the metric is about, or its trace
    /// lacks a member that the metric needs. These are neither failures nor successes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_scope: u64,
    /// Whether it applies to none of the trials, by their declarations: flow, case, tools and exclusions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_asked: bool,
    /// Number of trials with units that were re-run. All figures use their first draw.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_again: u64,
    /// Number of these that passed when last run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_again_passed: u64,
    /// The same rate by variant, when there are several.
    pub by_variant: Vec<VariantCounts>,
    /// In a run until decided, the decision rule: the figures cover the passes up to the decision, and the bounds are
    /// valid under early stopping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// Kind of INCONCLUSIVE: met but not proven, below its target, or unable to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<Unshown>,
    /// The floor as written; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub floor: String,
    /// Smallest number of trials, or of cases, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_n: Option<u32>,
}

impl CriterionResult {
    /// Unique key within the run: the id of a criterion, `scenario/id` for a gate.
    pub fn key(&self) -> String {
        self.scenario.as_ref().map_or_else(|| self.id.clone(), |of| format!("{of}/{}", self.id))
    }
}

/// A case that does not count for a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Excluded {
    /// `scenario/case`.
    pub case: String,
    /// The reason.
    pub reason: String,
    /// Units it would have added.
    pub n: u64,
    /// Successes among them.
    pub successes: u64,
}

/// Source of trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Replayed, live or imported.
    pub mode: Mode,
    /// Services that answered, or that were recorded.
    #[serde(rename = "recorded_from", alias = "from")]
    pub from: String,
    /// The model name in the request.
    pub model: String,
    /// Dates of the recordings, `2026-11-21`, in order; empty for what is not replayed.
    #[serde(rename = "recorded_on", alias = "dates")]
    pub dates: Vec<String>,
}

/// One unit that fails a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// The trial: case and lane.
    pub trial: String,
    /// The unit within it.
    pub unit: String,
    /// The reason.
    #[serde(rename = "reason", alias = "note")]
    pub note: String,
}

/// Result of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialResult {
    /// `scenario/case/flow.variant.n`.
    pub id: String,
    /// The scenario.
    pub scenario: String,
    /// The case.
    pub case: String,
    /// Flow, variant, repetition, arm.
    pub lane: Lane,
    /// PASS when every check holds, FAIL when one does not, ERROR when it could not be run.
    pub verdict: Verdict,
    /// Expectations, and whether they hold.
    pub checks: Vec<Check>,
    /// Departures from the state machine, as text.
    pub departures: Vec<String>,
    /// The error, when it could not be run.
    pub error: String,
    /// Number of turns.
    pub turns: u32,
    /// Number of completions of the model.
    pub model_calls: u32,
    /// Number of tool calls, executed or not.
    pub tool_calls: u32,
    /// Retries by account.
    pub retries: RetryCounts,
    /// Input tokens; `None` unless every completion reports them.
    pub input_tokens: Option<u64>,
    /// Input tokens from the provider's cache, as far as completions report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Output tokens; `None` unless every completion reports them.
    pub output_tokens: Option<u64>,
    /// US dollars for model and search; `None` unless all tokens and prices are known.
    #[serde(rename = "cost_usd", alias = "cost", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The slowest turn that ended, in microseconds; `None` if none did, or its time was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_turn_us: Option<u64>,
    /// Length of the trial in microseconds.
    pub took_us: u64,
    /// Source of the evidence: `REPLAYED, recorded from simulator on 2026-11-21`; empty for a trial without evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The requested model; empty for a trial without evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Its draws other than the one that counts.
    #[serde(default, skip_serializing_if = "Draws::is_empty")]
    pub draws: Draws,
}

/// Evaluation of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// Format version.
    pub version: u32,
    /// The exit code for the verdicts.
    pub exit_code: u8,
    /// The reason for that exit code in a sentence.
    pub conclusion: String,
    /// The end of `conclusion` that says what it leaves out; not stored.
    #[serde(skip)]
    pub(crate) omissions: String,
    /// Sources of the run's evidence as text: `REPLAYED, recorded from simulator on 2026-11-21 (model gpt-sim)`, one
    /// entry per source.
    pub evidence: Vec<String>,
    /// The same as data, one entry per source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Calls that recordings answered in a run with held services; `None` in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldRun>,
    /// Notes for readers of the verdicts, with the number of trials: outages that the agent handled, hosts that it
    /// requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The criteria on the whole run.
    pub criteria: Vec<CriterionResult>,
    /// The scenarios' own gates.
    pub gates: Vec<CriterionResult>,
    /// Those of both that are self-tests: what flows promise, whatever the model does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub self_tests: Vec<CriterionResult>,
    /// Where a run until decided stopped, and what it saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Describes how the run is partial, because trials were selected or not run; empty for a complete one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Trials that were drawn more than once.
    #[serde(default, skip_serializing_if = "Redrawn::is_empty")]
    pub redrawn: Redrawn,
    /// How often the process of an external agent was started again.
    #[serde(default, skip_serializing_if = "Restarts::is_empty")]
    pub restarts: Restarts,
    /// Causes of ERROR with the affected trials, most frequent first.
    pub errors: Vec<ErrorGroup>,
    /// Duration of every turn in microseconds, in plan order; the largest number for an unanswered turn.
    pub turn_times_us: Vec<u64>,
    /// Kinds of evidence of those times, as `kind` in `latency`: a number of consecutive turns each.
    #[serde(default)]
    pub turn_kinds: Vec<KindCount>,
    /// Quantiles and stages by flow, variant and kind of evidence.
    #[serde(default)]
    pub latency: Vec<Latency>,
    /// Transition coverage by flow.
    pub transitions: Vec<TransitionCoverage>,
    /// Requirement coverage.
    pub requirements: Vec<RequirementCoverage>,
    /// Any of k and all of k, by scenario and variant, where cases were repeated.
    #[serde(default)]
    pub repeats: Vec<Repeats>,
    /// Tokens and money.
    #[serde(default, skip_serializing_if = "Spending::is_empty")]
    pub spending: Spending,
    /// Grades by rubric item, without a verdict. Empty if nothing was graded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grades: Vec<ItemGrades>,
    /// Every trial, in plan order.
    #[schemars(with = "Vec<TrialResult>")]
    pub trials: Arc<TrialResults>,
}

impl Evaluation {
    /// Criteria, gates and self-tests.
    pub fn rows(&self) -> impl Iterator<Item = &CriterionResult> {
        self.criteria.iter().chain(&self.gates).chain(&self.self_tests)
    }
}

/// Trials that could not be run for the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorGroup {
    /// `cassette miss` for example.
    pub kind: String,
    /// The first one's message.
    pub message: String,
    /// The first one's further lines.
    pub detail: Vec<String>,
    /// The trials.
    pub trials: Vec<String>,
}
