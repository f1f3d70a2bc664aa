//! Behaviour files: they declare the simulated model and search service. Unknown keys are errors, so that an old reader
//! never misinterprets a newer file.
//!
//! ```yaml
//! name: example
//! seed: 7
//! model:
//!   latency: {lognormal: {median: 900ms, sigma: 0.4, max: 12s}}
//!   habits: {forget_response: 0.015}
//! search:
//!   latency: {constant: 2s}
//!   topics: [{when: {asks: frost}, answer: "Frost tonight [1].", results: [...]}]
//! ```

use super::aliases::Aliases;
use super::dice::{Latency, Span};
use super::habit::{Habit, Habits};
use super::judge::JudgeBehaviour;
use super::managed::ManagedBehaviour;
use super::reason_act::StepScript;
use crate::platform::schema;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// One behaviour file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    /// Name: lower-case letters, digits and hyphens; sent in the header `x-ragcheck-simulator`.
    pub name: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// Whether latencies are slept.
    #[serde(default)]
    pub(crate) pace: Pace,
    /// Names of tools that the agent calls differently, by role (`knowledge`, `external`, `index`, `respond`). If none is
    /// declared and the agent offers no tool of a built-in flow, the names and descriptions of its tools tell their roles.
    #[serde(default)]
    pub tools: Aliases,
    /// The chat model.
    pub(crate) model: ModelBehaviour,
    /// The search service.
    pub(crate) search: SearchBehaviour,
    /// A judge of answers.
    #[serde(default)]
    pub(crate) judge: Option<JudgeBehaviour>,
    /// An embeddings model.
    #[serde(default)]
    pub(crate) embeddings: Option<EmbeddingsBehaviour>,
    /// A managed retrieval service.
    #[serde(default)]
    pub(crate) managed: Option<ManagedBehaviour>,
}

/// The simulated embeddings model: texts that share words are similar.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmbeddingsBehaviour {
    /// Response time.
    pub latency: Latency,
    /// Length of a vector.
    pub dimensions: usize,
    /// Failures, by the first text; the first match counts.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// Handling of a declared latency, which is always sent in the header `x-ragcheck-latency-us`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pace {
    /// Sleep before the answer is sent.
    #[default]
    Real,
    /// Send the answer at once.
    Declared,
}

/// The simulated chat model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelBehaviour {
    /// Response time of a completion.
    pub latency: Latency,
    /// Delay that the habit `slow` adds.
    #[serde(default = "slow_by")]
    pub slow_by: Span,
    /// Fraction of the question's words that a chunk must contain to answer it, 0 to 1.
    #[serde(default = "sufficient_overlap")]
    pub sufficient_overlap: f64,
    /// Number of chunks requested.
    #[serde(default = "top_k")]
    pub top_k: u32,
    /// Things that the model repeats in answers if the user named them in an earlier turn, such as serial numbers.
    #[serde(default)]
    pub recall: Vec<Pattern>,
    /// File with the rates of mistakes, relative to this file: see [`Rates`].
    #[serde(default)]
    pub rates: Option<String>,
    /// Prompt effects from that file.
    #[serde(skip)]
    pub unless_asked: Vec<UnlessAsked>,
    /// Mistakes, unless a rule overrides them; they override those of the file.
    #[serde(default)]
    pub habits: Habits,
    /// Fraction of turns in which the model rephrases its query, requests more passages or gives a longer answer, 0 to
    /// 1.
    #[serde(default)]
    pub variety: f64,
    /// Changes for some questions or declared faults; all that match apply, and later ones override earlier ones.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// A file of rates: how often a model makes mistakes, independent of questions and expected answers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rates {
    /// Source of the numbers.
    #[serde(rename = "source")]
    _source: String,
    /// The mistakes.
    pub(super) habits: Habits,
    /// Effects of prompts.
    #[serde(default)]
    pub(super) unless_asked: Vec<UnlessAsked>,
}

/// Mistakes that become more or less frequent if a variant declares what its prompts ask for (`asks_for`) and a rule is not
/// among it. The wording of a prompt has no effect.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnlessAsked {
    /// The rule, by the name that variants give it.
    pub rule: String,
    /// The mistakes.
    pub habits: Habits,
}

fn slow_by() -> Span {
    Span(Duration::from_secs(9))
}

fn sufficient_overlap() -> f64 {
    0.5
}

fn top_k() -> u32 {
    3
}

/// Changes that apply if `when` matches.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Condition.
    pub when: When,
    /// Other habits.
    #[serde(default)]
    pub habits: Habits,
    /// Whether documents of the knowledge base suffice, instead of a decision by words. Learned entries are still
    /// decided by words.
    #[serde(default)]
    pub sufficient: Option<bool>,
    /// Query for the knowledge base.
    #[serde(default)]
    pub search_query: Option<String>,
    /// Query for the search service.
    #[serde(default)]
    pub external_query: Option<String>,
    /// Text that the habit `hostile_query` puts into a query.
    #[serde(default)]
    pub hostile: Option<String>,
    /// Text of the answer.
    #[serde(default)]
    pub answer: Option<String>,
    /// Calls to make in order, of any of the agent's tools, followed by `answer`. Nothing else of the model's behaviour
    /// applies.
    #[serde(default)]
    pub calls: Option<Vec<ScriptedCall>>,
    /// Actions per step, for an agent that reasons, acts and observes.
    #[serde(default)]
    pub steps: Option<Vec<StepScript>>,
    /// Tool choice at which the service fails at every attempt: `none` is the request for the final answer.
    #[serde(default)]
    pub fails_at: Option<String>,
    /// Number of messages before the question from which the model is slower by `slow_by`.
    #[serde(default)]
    pub slow_over: Option<usize>,
    /// Number of chunks requested.
    #[serde(default)]
    pub top_k: Option<u32>,
    /// Keywords to index.
    #[serde(default)]
    pub keywords: Option<Vec<String>>,
    /// Keywords that the habit `poor_keywords` tries.
    #[serde(default)]
    pub poor_keywords: Option<Vec<String>>,
}

/// A call that a rule prescribes.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedCall {
    /// Tool, by the agent's name.
    pub tool: String,
    /// Arguments.
    #[serde(default)]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

/// Condition of a rule, topic or failure; all given parts must match.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct When {
    /// Pattern for the user's last question, or the search query.
    pub asks: Option<Pattern>,
    /// Fault that the case declares, as sent in the header `x-ragcheck-fault`. Names of cases and trials are not sent:
    /// a rule sees only what a model sees, and the declared fault.
    pub fault: Option<String>,
}

impl When {
    /// Whether the condition matches.
    pub(crate) fn holds(&self, asked: &str, caller: Caller<'_>) -> bool {
        self.asks.as_ref().is_none_or(|pattern| pattern.0.is_match(asked))
            && self.fault.as_ref().is_none_or(|fault| fault == caller.fault)
    }
}

/// Data about the trial in a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caller<'a> {
    /// Seed of the trial; used only for random draws.
    pub seed: &'a str,
    /// Fault that the case declares; empty for none.
    pub fault: &'a str,
    /// Rules that the prompts ask for, joined by commas; `None` if the variant declares none.
    pub asks_for: Option<&'a str>,
}

impl Caller<'_> {
    /// Whether the variant declares what its prompts ask for, and that rule is not among it.
    pub(crate) fn omits(&self, rule: &str) -> bool {
        self.asks_for.is_some_and(|list| list.split(',').all(|one| one != rule))
    }
}

/// A regular expression, ignoring letter case.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(pub regex::Regex);

schema!(inline Pattern, json_schema!({"type": "string", "examples": ["frost|ice"]}));

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = regex::RegexBuilder::new(&text).case_insensitive(true).build();
        found.map(Self).map_err(|error| {
            let words = error.to_string();
            let why = words.lines().last().unwrap_or_default().trim_start_matches("error: ");
            serde::de::Error::custom(format!("not a regular expression: {why}"))
        })
    }
}

/// The simulated search service.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchBehaviour {
    /// Response time.
    pub latency: Latency,
    /// Topics that it knows; the first match answers.
    #[serde(default)]
    pub topics: Vec<Topic>,
    /// Failures; the first match counts.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// A topic that the search service knows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    /// Condition.
    pub when: When,
    /// The answer; `[n]` refers to the n-th result.
    pub answer: String,
    /// Pages found.
    pub results: Vec<Page>,
}

/// A page found.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Title.
    pub title: String,
    /// Address.
    pub url: String,
    /// Excerpt.
    pub snippet: String,
    /// Date of publication, `2026-03-01` for example.
    #[serde(default)]
    pub date: Option<String>,
}

/// A failure of the search service, or of the embeddings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// Queries that fail.
    pub when: When,
    /// HTTP status of the failure.
    pub status: u16,
    /// Number of failures before an answer; then the count restarts.
    pub times: FailTimes,
}

/// Number of failures in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailTimes {
    /// That many failures, then one answer.
    Count(u32),
    Always,
}

schema!(
    inline FailTimes,
    json_schema!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}], "examples": [2, "always"]})
);

impl<'de> Deserialize<'de> for FailTimes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "always" {
            return Ok(Self::Always);
        }
        text.parse()
            .map(Self::Count)
            .map_err(|_| serde::de::Error::custom(format!("`{text}`: write a number of times, or `always`")))
    }
}

/// The schema of behaviour files.
pub(crate) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Behaviour).to_value();
    let habits = schemars::schema_for!(Habit).to_value();
    let names = habits["oneOf"].as_array().into_iter().flatten().map(|habit| habit["const"].clone());
    schema["$defs"]["Habits"]["propertyNames"] = serde_json::json!({"enum": names.collect::<Vec<_>>()});
    schema
}
