//! Metrics as pure functions of traces, one file per metric, and the catalogue of names for criteria.
//!
//! A metric turns one trial into [`Observation`]s; `gate` computes sums, bounds and verdicts from them. Nothing here
//! knows how a trace was produced.

mod answer_length;
mod assignment;
mod calls;
pub(crate) mod case_pass_rate;
pub(crate) mod catalogue;
mod citation_provenance;
mod citation_validity;
mod combined_sources;
mod compaction_probes;
mod content_words;
mod context_preservation;
mod control_validity;
mod evidence;
pub(crate) mod expectation;
mod failure_messages;
mod first_attempt_rate;
mod forced_calls;
pub mod generic;
mod grade;
pub mod grounding;
mod inline_citations;
mod keyword_coverage;
mod keyword_quality;
mod keywords;
mod latency;
mod learned;
mod managed_answers;
mod mandatory_call_rate;
mod nugget_recall;
pub(crate) mod offer;
mod order_violation_rate;
mod pass_of_k;
mod passage_order;
pub(crate) mod provenance;
mod query_wording;
mod refusal_rate;
mod reply_agreement;
mod retry_recovery;
#[cfg(test)]
pub(crate) mod sample;
mod satisfaction;
mod source_flags;
pub(crate) mod stages;
mod state_machine_conformance;
mod step_efficiency;
mod step_log;
pub(crate) mod taken;
mod tenant_isolation;
mod text_match;
mod tools;
mod trajectory;
mod turn_context;
mod turn_success_rate;
pub(crate) mod turns;

#[cfg(test)]
mod answers_tests;
#[cfg(test)]
mod expectation_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trajectory_tests;

/// Declares one metric file per line and collects the entries that each registers.
macro_rules! metrics {
    ($($file:ident),* $(,)?) => {
        /// Entries of each file.
        const REGISTERED: &[&[catalogue::Registered]] = &[$($file::ENTRIES),*];
    };
}

// In the order of the documentation.
metrics! {
    mandatory_call_rate,
    first_attempt_rate,
    keyword_coverage,
    keyword_quality,
    satisfaction,
    latency,
    learned,
    retry_recovery,
    context_preservation,
    turn_context,
    passage_order,
    failure_messages,
    reply_agreement,
    step_log,
    case_pass_rate,
    pass_of_k,
    turn_success_rate,
    query_wording,
    citation_validity,
    citation_provenance,
    source_flags,
    evidence,
    nugget_recall,
    grounding,
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
    answer_length,
    step_efficiency,
    compaction_probes,
}

pub(crate) use calls::Patterns;
pub(crate) use grade::GradeRate;
pub(crate) use text_match::contains;
pub(crate) use tools::Tools;
pub(crate) use turns::TurnView;

use crate::plan::{Plan, PlannedCase, PlannedScenario, PlannedTrial, ResolvedCase};
use crate::scenario::Target;
use crate::trace::state_machine::Departure;
use crate::trace::text::quote;
use crate::trace::{Agreement, Arm, Grade, Member, NamedPassage, Trace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One trial with everything a metric may read about it.
#[derive(Debug, Clone, Copy)]
pub struct TrialView<'a> {
    pub plan: &'a Plan,
    pub trial: &'a PlannedTrial,
    pub scenario: &'a PlannedScenario,
    pub case: &'a PlannedCase,
    pub trace: &'a Trace,
    /// The trace by turn, including planned turns that never began: see [`turns::turns`].
    pub turns: &'a [TurnView<'a>],
    /// The case's expectations, checked by [`expectation::checks`]; empty before that.
    pub checks: &'a [Check],
    /// Departures from the flow's state machine; `None` when the plan has no machine for the flow.
    pub departures: Option<&'a [Departure]>,
    /// Grades of its answers; empty where nothing was graded.
    pub grades: &'a [Grade],
    /// Passages that its searches found, whole; the trace has their beginnings.
    pub passages: &'a [Arc<NamedPassage>],
    /// Facts of its answers, looked up once, at the first use.
    pub facts: &'a grounding::FactLookup,
}

/// Reason why a check is undetermined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// A service did not report its tokens, or has no price.
    Usage,
    /// The traffic of an external agent does not show it.
    Traffic,
}

/// Observed facts where a check does not hold: the note of a failed unit or check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(crate) struct Seen {
    /// Text for reports.
    pub words: String,
    /// Reason why the check is undetermined; it then neither holds nor fails.
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

/// Whether a check holds; the error says what was observed instead.
pub(crate) type Held = Result<(), Seen>;

/// One measured unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Name of the unit within its trial, for reports: `turn 2`, `conversation b, turn 1`, `retry 1 of final_answer`.
    pub unit: String,
    /// The measured outcome.
    pub outcome: Outcome,
    /// For a failure the reason; where a rate counts something unwanted, the occurrence; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Outcome of one unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It holds.
    Success,
    /// It does not.
    Failure,
    /// Duration in microseconds.
    Took(u64),
    /// Never ended, or ended in an error: slower than any limit.
    Never,
}

impl Observation {
    /// A successful unit.
    pub(crate) fn success(unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), outcome: Outcome::Success, note: String::new() }
    }

    /// A failed unit with its reason.
    pub(crate) fn failure(unit: impl Into<String>, note: impl Into<String>) -> Self {
        Self { unit: unit.into(), outcome: Outcome::Failure, note: note.into() }
    }

    /// A unit that succeeds if the check holds, and else fails with what was observed.
    pub(crate) fn of(unit: impl Into<String>, held: Held) -> Self {
        Self::unless(unit, held.err().map(|seen| seen.words))
    }

    /// A unit that fails for the reason given, and succeeds without one.
    pub(crate) fn unless(unit: impl Into<String>, lack: Option<impl Into<String>>) -> Self {
        match lack {
            None => Self::success(unit),
            Some(note) => Self::failure(unit, note),
        }
    }

    /// A unit in which the counted event occurred, where that is unwanted, and a description of the event.
    pub(crate) fn occurrence(unit: impl Into<String>, note: impl Into<String>) -> Self {
        Self { unit: unit.into(), outcome: Outcome::Success, note: note.into() }
    }
}

/// What a metric reads from a trial.
type Reader<T> = Box<dyn Fn(&TrialView<'_>) -> T + Send + Sync>;

/// A metric with its parameters set.
pub struct Metric {
    /// For a metric of times, the share that must stay below the target: 0.95 for a p95.
    pub quantile: f64,
    /// Name of the units, in the plural: `queries`, `retries`, `conversations`.
    pub units: &'static str,
    /// What people or a grading model contribute to it.
    pub(crate) basis: Basis,
    /// The arm that the metric reads; trials of the other arm are not passed to it.
    pub arm: Arm,
    /// Members of a published trace that it reads. A trace that lacks one of them has no units, and says which.
    pub members: &'static [Member],
    /// Tools that an agent must have, all of them, to be in scope.
    pub needs: Vec<Tools>,
    /// Whether it reads whether calls ran. Where that is known of some calls of an imported trace only, for example of
    /// those that failed, they are no fair sample of the others.
    pub reads_outcomes: bool,
    /// Whether it reads what the case expects: then a trial with an undetermined expectation has no units.
    pub reads_expectations: bool,
    /// Grouping of repetitions of a case into one unit; `None` for units within a trial.
    pub group: Option<Group>,
    /// Whether a trial of this case can have units. If not, its ERROR does not affect the metric.
    pub applies: Box<dyn Fn(&ResolvedCase) -> bool + Send + Sync>,
    /// Reason why part of the trial is undetermined although its agent is in scope, such as input that was hidden
    /// from the trace. That part is not a unit, and is reported as such.
    pub unseen: Reader<Option<String>>,
    /// The units of one trial; empty when the trial has none.
    pub observe: Reader<Vec<Observation>>,
}

impl Metric {
    /// A metric of the main arm, in whose scope is every agent and every trial.
    pub(crate) fn new(
        units: &'static str,
        observe: impl Fn(&TrialView<'_>) -> Vec<Observation> + Send + Sync + 'static,
    ) -> Self {
        Self {
            quantile: 0.95,
            units,
            basis: Basis::Traces,
            arm: Arm::Main,
            members: &[],
            needs: Vec::new(),
            reads_outcomes: false,
            reads_expectations: false,
            group: None,
            applies: Box::new(|_| true),
            unseen: Box::new(|_| None),
            observe: Box::new(observe),
        }
    }

    /// A metric with one unit per turn that `judge` decides: a success, or a failure with its note. An undetermined turn
    /// is not a unit, and the reason of the first one is reported.
    pub(crate) fn by_turn(
        units: &'static str,
        judge: impl Fn(&TurnView<'_>, &Trace) -> Option<Held> + Send + Sync + 'static,
    ) -> Self {
        let judge = Arc::new(judge);
        let again = Arc::clone(&judge);
        let observe = move |view: &TrialView<'_>| {
            let unit = |turn: &TurnView<'_>| {
                let held = judge(turn, view.trace)?;
                let is_unknown = held.as_ref().is_err_and(|seen| seen.unknown.is_some());
                (!is_unknown).then(|| Observation::of(turn.label(), held))
            };
            view.turns.iter().filter_map(unit).collect()
        };
        let unseen = move |view: &TrialView<'_>| {
            let mut failed = view.turns.iter().filter_map(|turn| again(turn, view.trace)?.err());
            failed.find(|seen| seen.unknown.is_some()).map(|seen| seen.words)
        };
        Self { unseen: Box::new(unseen), ..Self::new(units, observe) }
    }

    /// Reason why the agent of that trace is out of scope: neither a failure nor a success, and reported as such.
    pub fn out_of_scope(&self, trace: &Trace) -> Option<String> {
        let missing = self.needs.iter().find_map(|tools| tools.missing(trace));
        missing.or_else(|| trace.unknown_outcomes().filter(|_| self.reads_outcomes))
    }

    /// Whether the metric is a proxy for something it does not measure. A proxy never passes.
    pub fn is_proxy(&self, plan: &Plan) -> bool {
        match &self.basis {
            Basis::Traces => false,
            Basis::Ratings => plan.ratings.is_none(),
            Basis::Grades(graded) => graded.agreement_measured(plan).is_none(),
        }
    }

    /// Reason why no trial has a unit, where the name of the units alone would mislead.
    pub fn why_no_unit(&self, plan: &Plan) -> Option<&'static str> {
        let rated = matches!(self.basis, Basis::Ratings) && plan.ratings.is_some();
        rated.then_some("no rating is of a trial here that answers from both sources")
    }

    /// The item of a rubric whose grades it counts.
    pub(crate) fn graded(&self) -> Option<&GradeRate> {
        if let Basis::Grades(graded) = &self.basis { Some(graded) } else { None }
    }

    /// Measured agreement of the grading model with people, for such a target; `None` for metrics that need no grader.
    pub fn agreement(&self, plan: &Plan, target: Target) -> Option<Agreement> {
        plan.agreement.as_ref()?.of_item(&self.graded()?.item, target.is_ceiling())
    }
}

/// The data that a metric is computed from.
pub(crate) enum Basis {
    /// Traces, and what cases expect.
    Traces,
    /// Ratings of trials by people.
    Ratings,
    /// Grades of answers by a model.
    Grades(GradeRate),
}

/// Repetitions of one case that form one unit: 1 to k, k + 1 to 2k, and so on, so that no trial counts twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Repetitions per unit.
    pub size: u32,
    /// Whether all of them must succeed, rather than any.
    pub all: bool,
}

/// One expectation of a case and whether the trial met it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Place and text of the expectation, for reports: `turn 1: calls.before: lookup_order, create_ticket`.
    pub what: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was observed instead; for a check that holds, a remark or an empty text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// Reason why the check is undetermined; a trial in which all other checks hold is then an ERROR. Not stored in
    /// files.
    #[serde(skip)]
    pub unknown: Option<Unknown>,
}
