//! What a case or a turn expects, as written.

use crate::settings::TimeSpan;
use crate::trace::Account;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Expectations; every given key is checked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// Tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallExpectation>,
    /// The answer's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerExpectation>,
    /// The answer's sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<SourcesExpectation>,
    /// The body of the reply that a chat service gives, of an agent that runs elsewhere the one that it gave: conditions by
    /// JSON pointer, `/session_id` for example; an empty pointer is the whole body.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reply: BTreeMap<String, ArgumentPattern>,
    /// Keyword indexing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keywords: Option<KeywordsExpectation>,
    /// Retries, by account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryExpectation>,
    /// What must be remembered from earlier turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextExpectation>,
    /// The turn must end within this time, `10s` for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<TimeSpan>,
    /// Tokens of the model: of the turn, or of all turns of a case together. Where a completion does not tell its tokens, the
    /// trial is an ERROR and never passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokensExpectation>,
    /// US dollars for the model, the search service and managed retrieval, by the prices of the project: of the turn, or of all
    /// turns of a case together. Where something of it is not known, the trial is an ERROR and never passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostExpectation>,
    /// The turn must end with this error instead of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorExpectation>,
}

impl Expectation {
    /// Whether anything is checked: facts and documents that only label an answer, for metrics, are no check.
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
        Self { answer: None, ..self.clone() } != Self::default() || self.answer.as_ref().is_some_and(checked)
    }
}

/// One expectation on tool calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallExpectation {
    /// These calls run in this order; others may stand between them.
    InOrder(Vec<CallPattern>),
    /// Exactly these calls, in this order, and no others.
    Exact(Vec<CallPattern>),
    /// Exactly these calls, in any order, and no others.
    AnyOrder(Vec<CallPattern>),
    /// No call but these; not all need to happen.
    Subset(Vec<CallPattern>),
    /// All of these run, in any order; others may happen too.
    Superset(Vec<CallPattern>),
    /// Every call of the second that runs comes after some call of the first; both run.
    Before(Vec<CallPattern>),
    /// It is tried exactly once.
    ExactlyOnce(CallPattern),
    /// It is tried at most so often.
    AtMost(AtMost),
    /// It is never tried.
    Never(CallPattern),
}

/// A bound on how often a call happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AtMost {
    /// How often at most.
    pub times: u32,
    /// Which call.
    pub call: CallPattern,
}

/// Which calls are meant: a tool's name alone, or a map with more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallPattern {
    /// The tool's name.
    pub tool: String,
    /// Conditions on arguments, by name; a key that begins with `/` is a JSON pointer into the arguments.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentPattern>,
    /// Conditions on the result, by JSON pointer into it as `traces.jsonl` holds it (`/hits/0/id`); an empty pointer is the
    /// whole result. A call without a result fits none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub result: BTreeMap<String, ArgumentPattern>,
    /// The outcome it must have; any when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
}

/// A condition on one argument, or on a part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentPattern {
    /// Equal to this value, numbers by value.
    Equals(Value),
    /// Text that matches this regular expression.
    Matches(String),
    /// Valid against this JSON Schema.
    Schema(Value),
}

/// How a call ended, as far as expectations tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It ran and gave a result.
    Ok,
    /// It was rejected, came out of order, or failed.
    Failed,
    /// It gave a result after an earlier call of the same tool in the same turn did not.
    Recovered,
}

/// Expectations on the answer's text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerExpectation {
    /// It contains each of these, both sides normalised: case, spaces, emphasis; a number matches as a number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contains: Vec<String>,
    /// It contains none of these, both sides normalised as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_contains: Vec<String>,
    /// Whether `contains` and `not_contains` compare letter by letter, with nothing normalised.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// It matches each of these regular expressions, as it was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Its sources name each of these documents, chunks or URLs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cites: Vec<String>,
    /// All documents, chunks or URLs that bear on the question, for `citation_precision` and `citation_recall`; no check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Facts that a good answer holds, for `nugget_recall`; no check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nuggets: Vec<Nugget>,
    /// Whether it says that it cannot answer, names no source and claims none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<bool>,
}

/// A fact that a good answer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nugget {
    /// Its spellings: the answer holds it when it contains one of these, both normalised.
    pub any_of: Vec<String>,
    /// Whether an answer without it is not good; otherwise it is welcome.
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
    /// At least so many sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
}

/// Bounds on tokens, over all completions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokensExpectation {
    /// At most so many input and output tokens together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// At most so many input tokens, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_at_most: Option<u32>,
    /// At most so many output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_at_most: Option<u32>,
}

/// A bound on money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostExpectation {
    /// At most so many US dollars.
    pub at_most: f64,
}

/// Expectations on keyword indexing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeywordsExpectation {
    /// Whether keywords were indexed and read back for every external result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed: Option<bool>,
    /// These are among them, after normalisation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Whether none of those indexed is generic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_generic: Option<bool>,
    /// These were there before and were merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<String>,
    /// What this conversation indexed is found by a search of that later conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_by: Option<String>,
}

/// Expectations on one retry account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryExpectation {
    /// Which account.
    pub account: Account,
    /// At least so many retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
    /// At most so many retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// Whether every episode ended recovered (true) or at least one did not (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<bool>,
}

/// What must be remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextExpectation {
    /// Facts told in earlier turns that must show in this one.
    pub probes: Vec<Probe>,
}

/// One fact to remember: shown in the answer, or in the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Any of these must appear, both sides normalised.
    pub any_of: Vec<String>,
    /// Where it must appear: the answer, or the arguments of calls of this tool.
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
        for labels in ["{answer: {nuggets: [{any_of: [24 months]}]}}", "{answer: {evidence: [warranty], exact: true}}"]
        {
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
