//! From observations to verdicts: what a run is judged to be, as plain data (`run.json`).
//!
//! [`judge`] reads a plan and its traces one by one; [`Evaluator`] and [`Examiner`] are the same in two halves, one that
//! runs side by side and one that adds up. A planned trial without a trace is in ERROR: deleting traces never makes a
//! run pass. Nothing here knows how a trace came to be or how a verdict is shown.

mod behaviour;
mod cause;
mod conclusion;
mod counting;
mod coverage;
mod criterion;
mod design;
mod draws;
mod error;
mod evaluator;
mod examine;
mod figures;
mod format;
mod grades;
mod grouped;
mod latency;
mod part;
mod pass_bet;
mod repeats;
mod results;
mod row;
mod rule;
mod sources;
mod spending;
mod stopped;
mod tally;
mod unshown;

#[cfg(test)]
mod counting_tests;
#[cfg(test)]
mod design_tests;
#[cfg(test)]
mod grade_error_rates;
#[cfg(test)]
mod scope_tests;
#[cfg(test)]
mod tests;

pub(crate) use cause::{Cause, reason};
pub(crate) use draws::{Draws, Redrawn};
pub(crate) use error::EvaluationError;
pub use evaluator::Evaluator;
#[cfg(not(front_door_only))]
pub use evaluator::evaluate;
pub(crate) use examine::{Examined, Examiner};
pub(crate) use grades::ItemGrades;
pub(crate) use latency::{Edge, Latency, Quantile};
pub(crate) use results::TrialResults;
pub(crate) use row::TrialRow;
pub(crate) use spending::{Spending, Spent};
pub(crate) use stopped::{Sequential, Stopped};
pub(crate) use unshown::Unshown;

use crate::metric::Check;
use crate::trace::{Lane, Mode};
use serde::{Deserialize, Serialize};

/// Version of `run.json`.
pub(crate) const RUN_VERSION: u32 = 1;

/// The five verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// The evidence does not decide.
    Inconclusive,
    /// There was nothing to measure.
    NotMeasured,
    /// It could not be judged: a trial in ERROR is among its units.
    Error,
}

impl Verdict {
    /// As reports print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::NotMeasured => "NOT_MEASURED",
            Self::Error => "ERROR",
        }
    }
}

/// One criterion or gate, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriterionResult {
    /// `SC-001`, or `gate 1` of a scenario.
    pub id: String,
    /// What it asks.
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
    /// What the units are called.
    pub units: String,
    /// Measured units, exclusions left out.
    pub n: u64,
    /// What is independent among them: trials, or cases where the claim is about cases not seen yet.
    #[serde(default)]
    pub clusters: u64,
    /// Different conversations among the trials with units: by questions, calls and outcomes, whatever their wording.
    #[serde(default)]
    pub distinct: u64,
    /// Units and clusters for people, where there are fewer of these: `448 queries in 283 conversations`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sample_text: String,
    /// What the rate is counted over: `unit`, or `conversation`, each of which counts the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub per: String,
    /// The observed share of all units, whatever the rate is counted over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_unit: Option<f64>,
    /// The observed mean of the conversations' own shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_conversation: Option<f64>,
    /// What was seen and what is bounded, with which the sentence begins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seen_text: String,
    /// Successes among them (for a time: units below the target).
    pub successes: u64,
    /// The observed figure: a rate 0 to 1, or seconds; `None` when nothing was measured.
    pub observed: Option<f64>,
    /// The observed figure for people: `38/40 = 95.0 %`, `p95 8.41 s`.
    pub observed_text: String,
    /// One-sided lower bound on the rate (see [`crate::stats::Sample`]). The bound that decides a PASS is at 95 %, the
    /// one that decides a FAIL at 95 % for all required confidence gates together.
    pub lower: Option<f64>,
    /// One-sided upper bound on the rate.
    pub upper: Option<f64>,
    /// Two-sided 95 % interval, for display only: Wilson's where every trial has one unit.
    pub interval: Option<(f64, f64)>,
    /// The bound for people: `true rate at least 92.8 %`.
    pub bound_text: String,
    /// The whole verdict in one sentence: what was seen, the target, the bound, what is missing to decide.
    pub sentence: String,
    /// What it rests on: `REPLAYED, recorded from simulator on 2026-11-21`.
    pub evidence: String,
    /// Whether the metric only stands in for what the criterion asks.
    pub proxy: bool,
    /// Cases left out, and why.
    pub excluded: Vec<Excluded>,
    /// The figure with them: `41/44 = 93.2 %`; empty when none is excluded.
    pub with_excluded: String,
    /// Units that fail it, exclusions left out, at most 1,000.
    pub violations: Vec<Violation>,
    /// Why they fail: all of them, most frequent reason first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Where its units come from; empty where none was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// Trials in ERROR that would have counted.
    pub errors: u64,
    /// Trials whose agent is out of the metric's scope: it has no tool of a role, or no tool of a name, that the metric is
    /// about. No failures, no successes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_scope: u64,
    /// Whether it can be asked of none of the trials, by what is declared of them: by flow, case, tools and exclusions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_asked: bool,
    /// Trials with units that were run again. All figures are those of their first draw.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_again: u64,
    /// How many of these passed when they were last run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_again_passed: u64,
    /// The same rate by variant, when there are several: name, successes, n.
    pub by_variant: Vec<(String, u64, u64)>,
    /// In a run until decided, the rule that decided: its figures cover the passes up to the decision, and its bounds
    /// hold although the run stopped when it had seen enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// What an INCONCLUSIVE one is: met and not shown, below its target, or unable to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<Unshown>,
    /// The floor as written; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub floor: String,
    /// The least number of trials, or cases, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_n: Option<u32>,
}

impl CriterionResult {
    /// What it is called among all of a run: the id of a criterion, `scenario/id` of a gate.
    pub fn key(&self) -> String {
        self.scenario.as_ref().map_or_else(|| self.id.clone(), |of| format!("{of}/{}", self.id))
    }
}

/// A case that does not count for a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excluded {
    /// `scenario/case`.
    pub case: String,
    /// Why.
    pub reason: String,
    /// Units it would have added.
    pub n: u64,
    /// Successes among them.
    pub successes: u64,
}

/// Where trials come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Replayed, live or imported.
    pub mode: Mode,
    /// From whom: the services that answered, or what they were recorded from.
    pub from: String,
    /// The model, by the name that the request gave.
    pub model: String,
    /// The days of the recordings, `2026-11-21`, in order; none for what is not replayed.
    pub dates: Vec<String>,
}

/// One unit that fails a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The trial: case and lane.
    pub trial: String,
    /// The unit within it.
    pub unit: String,
    /// Why.
    pub note: String,
}

/// One trial, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// What was expected, and whether it holds.
    pub checks: Vec<Check>,
    /// Departures from the state machine, in words.
    pub departures: Vec<String>,
    /// The error, when it could not be run.
    pub error: String,
    /// Turns.
    pub turns: u32,
    /// Completions of the model.
    pub model_calls: u32,
    /// Tool calls, executed or not.
    pub tool_calls: u32,
    /// Retries: transport, model, tool.
    pub retries: (u32, u32, u32),
    /// Tokens read, where every completion says.
    pub input_tokens: Option<u64>,
    /// Of these, from the provider's cache, as far as completions say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens written, where every completion says.
    pub output_tokens: Option<u64>,
    /// US dollars for model and search, where all tokens and prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The slowest turn in microseconds.
    pub slowest_turn_us: u64,
    /// Length of the trial in microseconds.
    pub took_us: u64,
    /// What it rests on: `REPLAYED, recorded from simulator on 2026-11-21`; empty of a trial that has no evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The model that was asked for; empty of a trial that has no evidence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Its draws beside the one that counts.
    #[serde(default, skip_serializing_if = "Draws::is_empty")]
    pub draws: Draws,
}

/// A run, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Format version.
    pub version: u32,
    /// The exit code that the verdicts call for.
    pub exit_code: u8,
    /// In a sentence: why that exit code.
    pub conclusion: String,
    /// What the run rests on: `REPLAYED, recorded from simulator on 2026-11-21 (model gpt-sim)`, one entry a source.
    pub evidence: Vec<String>,
    /// The same, one entry a source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
    /// What a reader of the verdicts should know, with the number of trials: outages that the agent handled, hosts that it
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The criteria on the whole run.
    pub criteria: Vec<CriterionResult>,
    /// The scenarios' own gates.
    pub gates: Vec<CriterionResult>,
    /// Where a run until decided stopped, and what that saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// In words, of what the run is a part, because trials were selected or not run; empty for a whole one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// Trials that were drawn more than once.
    #[serde(default, skip_serializing_if = "Redrawn::is_empty")]
    pub redrawn: Redrawn,
    /// Causes of ERROR with the trials that they hit, most frequent first.
    pub errors: Vec<ErrorGroup>,
    /// Duration of every turn in microseconds, in plan order; the largest number for a turn without an answer, which
    /// is longer than any other.
    pub turn_times_us: Vec<u64>,
    /// Whose times those are: kind of evidence, as in [`Latency::kind`], and how many in a row.
    #[serde(default)]
    pub turn_kinds: Vec<(String, u64)>,
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
    /// What a model's grades say, by item; no verdict by itself. Empty where nothing was graded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grades: Vec<ItemGrades>,
    /// Every trial.
    pub trials: TrialResults,
}

/// How often any of k, and all of k, trials of one case pass: means over the cases of one scenario in one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The scenario.
    pub scenario: String,
    /// The agent's flow.
    pub flow: String,
    /// The variant.
    pub variant: String,
    /// Its cases.
    pub cases: u64,
    /// Trials of each case; the most where they differ.
    pub repetitions: u64,
    /// pass^k for k = 1, 2, …: all of k pass, 0 to 1; at most 10 of them.
    pub all: Vec<f64>,
    /// pass@k for k = 1, 2, …: any of k passes, 0 to 1.
    pub any: Vec<f64>,
    /// Standard error of pass^1, trials clustered by case (CR1); `None` for a single case.
    pub standard_error: Option<f64>,
    /// The same as if trials of one case were independent, which they are not: for comparison only.
    pub naive_error: Option<f64>,
    /// Why nothing was measured; empty when something was.
    pub not_measured: String,
}

/// Trials that could not be run for one and the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// How often each declared transition was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionCoverage {
    /// The flow.
    pub flow: String,
    /// from, on, to, times.
    pub taken: Vec<(String, String, String, u64)>,
}

/// Which cases exercise a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequirementCoverage {
    /// `FR-003`.
    pub id: String,
    /// In a few words.
    pub about: String,
    /// Where it comes from, as the project says; empty where it does not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Cases that name it, with trials passed and trials run: empty means uncovered.
    pub cases: Vec<(String, u32, u32)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
