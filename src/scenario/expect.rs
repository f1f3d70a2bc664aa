//! Expectations of a case or a turn, as written.

use crate::platform::words;
use crate::settings::TimeSpan;
use crate::trace::Account;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Expectations; every key that is present is checked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// Tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallExpectation>,
    /// The answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerExpectation>,
    /// The answer's sources and flags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<SourcesExpectation>,
    /// Conditions on the body of a chat service's reply, by JSON pointer, `/session_id` for example; for an external
    /// agent, of its own reply. An empty pointer is the whole body.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reply: BTreeMap<String, ArgumentPattern>,
    /// Keyword indexing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keywords: Option<KeywordsExpectation>,
    /// Retries, by account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryExpectation>,
    /// Kinds of entries that the agent's log must have: `restored`, `reflection`, `compacted` and so on, as in `logged` of
    /// a trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// Facts that must be remembered from earlier turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextExpectation>,
    /// The turn must take less than this time, `10s` for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<TimeSpan>,
    /// Model tokens of the turn, or of all turns of a case together. If a completion does not report its tokens, the
    /// trial is an ERROR and never passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokensExpectation>,
    /// US dollars for the model, the search service, managed retrieval and the vectors of queries, by the project's prices: of the turn, or
    /// of all turns of a case together. If part of the cost is unknown, the trial is an ERROR and never passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostExpectation>,
    /// The turn must end with this error instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorExpectation>,
    /// Number of searches that the question needs, for `step_efficiency`; not a check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimal_steps: Option<std::num::NonZeroU32>,
}

impl Expectation {
    /// Whether anything is checked: facts, documents and steps that only label a turn for metrics are not checks.
    pub fn asserts(&self) -> bool {
        let checked = |answer: &AnswerExpectation| {
            let labels = AnswerExpectation {
                exact: answer.exact,
                evidence: answer.evidence.clone(),
                nuggets: answer.nuggets.clone(),
                ..AnswerExpectation::default()
            };
            *answer != labels
        };
        let unlabelled = Self { answer: None, optimal_steps: None, ..self.clone() };
        unlabelled != Self::default() || self.answer.as_ref().is_some_and(checked)
    }

    /// The part that holds over all turns of a conversation: without what is expected of the end of one turn.
    #[must_use]
    pub(crate) fn over_turns(&self) -> Self {
        Self {
            answer: self.answer.as_ref().map(|answer| answer.of_each(None)),
            sources: None,
            reply: BTreeMap::new(),
            context: None,
            error: None,
            optimal_steps: None,
            ..self.clone()
        }
    }
}

/// One expectation on tool calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallExpectation {
    /// These calls succeed in this order; other calls may come between them.
    InOrder(Vec<CallPattern>),
    /// Exactly these calls, all successful, in this order, and no others.
    Exact(Vec<CallPattern>),
    /// Exactly these calls, all successful, in any order, and no others.
    AnyOrder(Vec<CallPattern>),
    /// No calls except these, each at most as often as it is listed; not all need to happen.
    Subset(Vec<CallPattern>),
    /// All of these succeed, in any order; others may happen too.
    Superset(Vec<CallPattern>),
    /// Every call of the second that runs comes after a successful call of the first in the same turn; both succeed. Calls
    /// of one message come in the order in which they stand there, unless imported spans show when they ran: then the first
    /// must have ended when the second begins.
    Before(Vec<CallPattern>),
    /// Tried exactly once.
    ExactlyOnce(CallPattern),
    /// Tried at most this many times.
    AtMost(AtMost),
    /// Never tried.
    Never(CallPattern),
}

impl CallExpectation {
    /// Every pattern in it.
    pub(crate) fn patterns(&self) -> &[CallPattern] {
        match self {
            Self::InOrder(list)
            | Self::Exact(list)
            | Self::AnyOrder(list)
            | Self::Subset(list)
            | Self::Superset(list)
            | Self::Before(list) => list,
            Self::ExactlyOnce(call) | Self::Never(call) => std::slice::from_ref(call),
            Self::AtMost(bound) => std::slice::from_ref(&bound.call),
        }
    }

    /// Whether it only forbids or limits calls, and needs none.
    pub(crate) fn needs_none(&self) -> bool {
        matches!(self, Self::Subset(_) | Self::AtMost(_) | Self::Never(_))
    }
}

/// A limit on how often a call happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtMost {
    /// Largest number of times.
    pub times: u32,
    /// The call.
    pub call: CallPattern,
}

/// Selects calls: by a tool's name alone, or by a map with more conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallPattern {
    /// The tool's name.
    pub tool: String,
    /// Conditions on arguments, by name; a key that begins with `/` is a JSON pointer into the arguments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentPattern>,
    /// Conditions on the result, by JSON pointer into the result in `traces.jsonl` (`/hits/0/id`); an empty pointer
    /// is the whole result. A call without a result does not match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub result: BTreeMap<String, ArgumentPattern>,
    /// The required outcome. If absent, a required call has to succeed, and a limited or forbidden one has any outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
}

impl CallPattern {
    /// Names of the arguments with conditions: the first step of a pointer is one.
    pub(crate) fn argument_names(&self) -> impl Iterator<Item = String> {
        self.arguments.keys().map(|name| argument_of(name))
    }
}

/// The argument that a key of `arguments` names or points into.
pub(crate) fn argument_of(key: &str) -> String {
    let first = key.strip_prefix('/').map_or(key, |path| path.split('/').next().unwrap_or(path));
    first.replace("~1", "/").replace("~0", "~")
}

/// A condition on one argument, or on a part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentPattern {
    /// Equal to this value, numbers by value. Of a number beyond 64 bits a trace keeps the nearest one, so that a condition on its
    /// digits is not measured.
    Equals(Value),
    /// Text, or the JSON of anything else but null, that matches this regular expression.
    Matches(String),
    /// Valid against this JSON Schema. A keyword that no draft has is a mistake, except `x-…` and `$…`.
    Schema(Value),
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// Ran and returned a result.
    Ok,
    /// Was rejected, came out of order, or failed.
    Failed,
    /// Returned a result after an earlier call of the same tool in the same turn did not.
    Recovered,
}

/// Expectations on the answer's text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerExpectation {
    /// Contains each of these, both sides normalised: case, spaces, emphasis; a number or a code matches whole, a unit aside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// Contains none of these, both sides normalised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_contains: Vec<String>,
    /// Whether `contains` and `not_contains` compare exactly, without normalisation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// Matches each of these regular expressions, without normalisation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Its sources name each of these documents, chunks or URLs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cites: Vec<String>,
    /// All documents, chunks or URLs relevant to the question, for `citation_precision` and `citation_recall`; not a
    /// check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Facts that a good answer contains, for `nugget_recall`; not a check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nuggets: Vec<Nugget>,
    /// `true`: it says that it cannot answer, neither names, cites nor claims a source, and states no amount (a number with a unit that is not of time) that
    /// was neither retrieved nor asked, nor a claim behind "but" or from general knowledge. `false`: it says more than such a refusal, whatever sources it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<bool>,
    /// The length that the user asked for, in whatever words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<AnswerStyle>,
    /// Whether every fact in it is supported by what was retrieved or asked: numbers with units, dates, codes, names, quoted
    /// words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grounded: Option<bool>,
    /// Largest number of facts that may stand in nothing that was retrieved or asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported_facts: Option<u32>,
}

impl AnswerExpectation {
    /// What an expectation on a case asks of each of its answers: what none of them may do, unless the turn's `own`
    /// expectation says otherwise. The rest is asked of the last.
    pub(crate) fn of_each(&self, own: Option<&Self>) -> Self {
        let free = |says: fn(&Self) -> bool| !own.is_some_and(says);
        let facts = free(|own| own.grounded.is_some() || own.unsupported_facts.is_some());
        Self {
            not_contains: self.not_contains.clone(),
            exact: self.exact,
            grounded: self.grounded.filter(|_| facts),
            unsupported_facts: self.unsupported_facts.filter(|_| facts),
            refusal: self.refusal.filter(|wanted| !wanted && free(|own| own.refusal.is_some())),
            ..Self::default()
        }
    }
}

words! {
    /// The length of an answer, counted in words without citations and notices.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum AnswerStyle {
        /// The fact and its conditions, in at most 60 words.
        Concise = "concise",
        /// With reasons and conditions, in at least 30 words.
        Detailed = "detailed",
    }
}

impl AnswerStyle {
    /// The style of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Concise, Self::Detailed].into_iter().find(|style| style.as_str() == name)
    }
}

/// A fact that a good answer contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nugget {
    /// Its spellings: the answer has the fact when it contains one of these, both normalised.
    pub any_of: Vec<String>,
    /// Whether the fact is required for a good answer; otherwise it is optional.
    #[serde(default = "vital", skip_serializing_if = "is_true")]
    pub vital: bool,
}

fn vital() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn is_true(vital: &bool) -> bool {
    *vital
}

/// Expectations on the answer's sources and flags.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SourcesExpectation {
    /// Whether it says that the knowledge base was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal: Option<bool>,
    /// Whether it says that the external service was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<bool>,
    /// Smallest number of sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
}

/// Limits on tokens, over all completions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokensExpectation {
    /// Largest number of input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// Largest number of input tokens, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_at_most: Option<u32>,
    /// Largest number of output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_at_most: Option<u32>,
}

/// A limit on cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostExpectation {
    /// Largest cost in US dollars.
    pub at_most: f64,
}

/// Expectations on keyword indexing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeywordsExpectation {
    /// Whether keywords were indexed and read back for every external result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed: Option<bool>,
    /// Keywords that must be among those indexed, after normalisation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Whether none of the indexed keywords is generic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_generic: Option<bool>,
    /// Keywords that existed before and were merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// Name of a later conversation whose search finds what this one indexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_by: Option<String>,
}

/// Expectations on one retry account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryExpectation {
    /// The account.
    pub account: Account,
    /// Smallest number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
    /// Largest number of retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// Whether every episode recovered (true) or at least one did not (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<bool>,
}

/// Facts that must be remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextExpectation {
    /// Facts from earlier turns that must appear in this one.
    pub probes: Vec<Probe>,
}

/// One fact to remember, in the answer or in the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Any of these must appear, both sides normalised.
    pub any_of: Vec<String>,
    /// Tool whose call arguments must contain it, instead of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_arguments_of: Option<String>,
}

/// The error that a turn must end with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorExpectation {
    /// Its kind, `mandatory_call_missing` for example.
    pub kind: String,
    /// The message contains each of these, both sides normalised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_labels_an_answer_asserts_nothing() {
        let read = |text: &str| crate::platform::yaml::read::<Expectation>(text).expect("an expectation");
        for labels in [
            "{answer: {nuggets: [{any_of: [24 months]}]}}",
            "{answer: {evidence: [warranty], exact: true}}",
            "{optimal_steps: 2}",
        ] {
            assert!(!read(labels).asserts(), "{labels}");
        }
        for checks in [
            "{answer: {nuggets: [{any_of: [24 months]}], contains: [24]}}",
            "{answer: {evidence: [warranty]}, sources: {internal: true}}",
            "{answer: {refusal: true}}",
            "{within: 10s}",
        ] {
            assert!(read(checks).asserts(), "{checks}");
        }
    }
}
