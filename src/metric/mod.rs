//! Metrics: pure functions of traces, one file a metric, and the catalogue that criteria name them by.
//!
//! A metric turns one trial into [`Observation`]s; sums, bounds and verdicts are made from those in `gate`. Nothing
//! here knows how a trace came to be.

mod assignment;
mod calls;
mod case_pass_rate;
pub(crate) mod catalogue;
mod citation_provenance;
mod citation_validity;
mod combined_sources;
mod context_preservation;
mod control_validity;
mod evidence;
pub(crate) mod expectation;
mod first_attempt_rate;
mod forced_calls;
pub mod generic;
mod grade;
mod inline_citations;
mod keyword_coverage;
mod keywords;
mod latency;
mod learned;
mod managed_answers;
mod mandatory_call_rate;
mod nugget_recall;
pub(crate) mod offer;
mod order_violation_rate;
mod pass_of_k;
pub(crate) mod provenance;
mod refusal_rate;
mod refusal_words;
mod retry_recovery;
#[cfg(test)]
pub(crate) mod sample;
mod satisfaction;
pub(crate) mod stages;
mod state_machine_conformance;
pub(crate) mod taken;
mod tenant_isolation;
mod text_match;
mod tools;
mod trajectory;
mod trajectory_session;
mod turn_success_rate;
pub(crate) mod turns;
mod verbatim_query_rate;

#[cfg(test)]
mod answers_tests;
#[cfg(test)]
mod expectation_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trajectory_tests;

/// Lists what the files of metrics register: one line a metric, beside its `mod` line.
macro_rules! metrics {
    ($($file:ident),* $(,)?) => {
        /// What each file registers.
        const REGISTERED: &[&[catalogue::Registered]] = &[$($file::ENTRIES),*];
    };
}

// In the order of the documentation.
metrics! {
    mandatory_call_rate,
    first_attempt_rate,
    keyword_coverage,
    satisfaction,
    latency,
    learned,
    retry_recovery,
    context_preservation,
    case_pass_rate,
    pass_of_k,
    turn_success_rate,
    verbatim_query_rate,
    citation_validity,
    citation_provenance,
    evidence,
    nugget_recall,
    grade,
    refusal_rate,
    combined_sources,
    order_violation_rate,
    state_machine_conformance,
    control_validity,
    forced_calls,
    inline_citations,
    tenant_isolation,
    managed_answers,
    trajectory,
}

pub(crate) use calls::Patterns;
pub(crate) use tools::Tools;
pub(crate) use turns::TurnView;

use crate::plan::{Plan, PlannedCase, PlannedScenario, PlannedTrial, ResolvedCase};
use crate::scenario::Target;
use crate::trace::state_machine::Departure;
use crate::trace::text::quote;
use crate::trace::{Agreement, Arm, EXTERNAL, Grade, Grades, Mode, Trace};
use serde::{Deserialize, Serialize};

/// One trial with all that is known about it.
#[derive(Debug, Clone, Copy)]
pub struct TrialView<'a> {
    /// The whole plan.
    pub plan: &'a Plan,
    /// The planned trial.
    pub trial: &'a PlannedTrial,
    /// Its scenario.
    pub scenario: &'a PlannedScenario,
    /// Its case.
    pub case: &'a PlannedCase,
    /// What it did.
    pub trace: &'a Trace,
    /// The same by turn, planned turns that never began included: see [`turns::turns`].
    pub turns: &'a [TurnView<'a>],
    /// What its case expects, checked by [`expectation::checks`]; empty until then.
    pub checks: &'a [Check],
    /// Where it left its flow's state machine; `None` when the plan has no machine for the flow.
    pub departures: Option<&'a [Departure]>,
    /// Grades of its answers; none where nothing was graded.
    pub grades: &'a [Grade],
}

impl TrialView<'_> {
    /// One unit a turn: a success, or a failure with its note. A turn of which it cannot be told is no unit.
    fn by_turn(&self, judge: impl Fn(&TurnView<'_>) -> Held) -> Vec<Observation> {
        let unit = |turn: &TurnView<'_>| match judge(turn) {
            Ok(()) => Some(Observation::success(turn.label())),
            Err(seen) if seen.unknown.is_some() => None,
            Err(seen) => Some(Observation::failure(turn.label(), seen.words)),
        };
        self.turns.iter().filter_map(unit).collect()
    }

    /// Why it cannot be told of a turn, of the first such turn.
    fn unseen(&self, judge: impl Fn(&TurnView<'_>) -> Held) -> Option<String> {
        self.turns
            .iter()
            .find_map(|turn| judge(turn).err().filter(|seen| seen.unknown.is_some()))
            .map(|seen| seen.words)
    }
}

/// Why it cannot be told whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// A service did not tell its tokens, or has no price.
    Usage,
    /// The traffic of an agent that runs elsewhere does not show it.
    Traffic,
}

/// What was seen where something does not hold, in words: the note of a failed unit or check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(crate) struct Seen {
    /// In words.
    pub words: String,
    /// Why it could not be told: then it neither holds nor fails.
    pub unknown: Option<Unknown>,
}

impl Seen {
    fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), unknown: None }
    }

    fn unknown(words: impl Into<String>) -> Self {
        Self { words: words.into(), unknown: Some(Unknown::Usage) }
    }

    fn hidden(words: impl Into<String>) -> Self {
        Self { words: words.into(), unknown: Some(Unknown::Traffic) }
    }
}

/// Whether something holds; where not, what was seen instead.
pub(crate) type Held = Result<(), Seen>;

/// One measured unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The unit within its trial, for people: `turn 2`, `conversation b, turn 1`, `retry 1 of final_answer`.
    pub unit: String,
    /// What was seen.
    pub outcome: Outcome,
    /// Why, when it is a failure, or what, when a rate counts something unwanted; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What was seen of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    Success,
    /// It does not.
    Failure,
    /// It took so many microseconds.
    Took(u64),
    /// It never ended, or ended in an error: longer than any limit.
    Never,
}

impl Observation {
    /// A unit for which it holds.
    pub(crate) fn success(unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), outcome: Outcome::Success, note: String::new() }
    }

    /// A unit for which it does not hold, and why.
    pub(crate) fn failure(unit: impl Into<String>, note: impl Into<String>) -> Self {
        Self { unit: unit.into(), outcome: Outcome::Failure, note: note.into() }
    }

    /// A unit for which the counted thing happened, where that is the bad news, and what happened.
    pub(crate) fn occurrence(unit: impl Into<String>, note: impl Into<String>) -> Self {
        Self { unit: unit.into(), outcome: Outcome::Success, note: note.into() }
    }
}

/// One metric with its parameters filled in.
pub trait Metric: Send + Sync {
    /// For times, the share that must stay below the target: 0.95 for a p95.
    fn quantile(&self) -> f64 {
        0.95
    }
    /// What its units are called, in the plural: `queries`, `retries`, `conversations`.
    fn units(&self) -> &'static str;
    /// Whether it stands in for something that it does not measure: never PASS.
    fn is_proxy(&self, _plan: &Plan) -> bool {
        false
    }
    /// Why the grades of a run say nothing of it: they are of another rubric or model than those that were set beside
    /// people, or lack a verdict that the target would take for good.
    fn doubt(&self, _plan: &Plan, _grades: &Grades, _target: Target) -> Option<String> {
        None
    }
    /// How far the model whose word its units are agrees with people; `None` for what needs nobody's word.
    fn agreement(&self, _plan: &Plan) -> Option<Agreement> {
        None
    }
    /// The arm that it looks at: a trial of the other arm is never shown to it.
    fn arm(&self) -> Arm {
        Arm::Main
    }
    /// Why traces of that mode cannot show it; it then measures nothing, and says so.
    fn hidden_in(&self, _mode: Mode) -> Option<&'static str> {
        None
    }
    /// Why the traffic of an agent that runs elsewhere cannot show it; it then measures nothing, and says so.
    fn hidden_in_traffic(&self) -> Option<&'static str> {
        None
    }
    /// Why a trace of that mode and flow cannot show it.
    fn hidden(&self, mode: Mode, flow: &str) -> Option<&'static str> {
        self.hidden_in(mode).or_else(|| self.hidden_in_traffic().filter(|_| flow == EXTERNAL))
    }
    /// The tools that an agent must have, each of them, to be in its scope.
    fn needs(&self) -> Vec<Tools> {
        Vec::new()
    }
    /// Why the agent of that trace is out of its scope: not a failure, no success, and shown as what it is.
    fn out_of_scope(&self, trace: &Trace) -> Option<String> {
        self.needs().iter().find_map(|tools| tools.missing(trace))
    }
    /// Why some of the trial cannot be told, though its agent is in scope: what it did not show its model, for example. That
    /// is no unit, and shown as what it is.
    fn unseen(&self, _view: &TrialView<'_>) -> Option<String> {
        None
    }
    /// Whether a trial of this case can have units at all: if not, its ERROR does not touch the metric.
    fn applies(&self, _case: &ResolvedCase) -> bool {
        true
    }
    /// How many repetitions of a case make one unit, where that is more than one; `None` for units within a trial.
    fn group(&self) -> Option<Group> {
        None
    }
    /// The units of one trial; empty when the trial has none.
    fn observe(&self, view: &TrialView<'_>) -> Vec<Observation>;
}

/// Repetitions of one case that are one unit together: 1 to k, k + 1 to 2k, and so on, so that no trial counts twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Repetitions in a unit.
    pub size: u32,
    /// Whether all of them must succeed, and not any.
    pub all: bool,
}

/// Whether a trial met what its case expects.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Check {
    /// Where it was expected and what, for people: `turn 1: calls.before: lookup_order, create_ticket`.
    pub what: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was seen instead; of a check that holds, what is worth knowing of it, else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// Why it could not be told; a trial of which all else holds is an ERROR then. Not kept in files.
    #[serde(skip)]
    pub unknown: Option<Unknown>,
}
