//! A behaviour file: what the simulated model and search service do. Unknown keys are errors, so an old reader never
//! half-understands a newer file.
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
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// One behaviour file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    /// Its name: lower-case letters, digits and hyphens; sent in the header `x-ragcheck-simulator`.
    pub name: String,
    /// The seed of all chance.
    pub seed: u64,
    /// Whether latencies are waited out.
    #[serde(default)]
    pub(crate) pace: Pace,
    /// Names of the tools where the agent calls them otherwise, by their role (`knowledge`, `external`, `index`, `respond`).
    #[serde(default)]
    pub tools: Aliases,
    /// The chat model.
    pub(crate) model: ModelBehaviour,
    /// The search service.
    pub(crate) search: SearchBehaviour,
    /// A judge of answers, where there is one.
    #[serde(default)]
    pub(crate) judge: Option<JudgeBehaviour>,
    /// A model for embeddings, where there is one.
    #[serde(default)]
    pub(crate) embeddings: Option<EmbeddingsBehaviour>,
    /// A managed retrieval service, where there is one.
    #[serde(default)]
    pub(crate) managed: Option<ManagedBehaviour>,
}

/// The simulated model for embeddings: texts with the same words are near to each other.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmbeddingsBehaviour {
    /// How long an answer takes.
    pub latency: Latency,
    /// Numbers of a vector.
    pub dimensions: usize,
    /// When it fails, by the first text; the first that fits counts.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// What happens with a declared latency. It always stands in the header `x-ragcheck-latency-us`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Pace {
    /// It is slept before the answer goes out.
    #[default]
    Real,
    /// The answer goes out at once.
    Declared,
}

/// The simulated chat model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelBehaviour {
    /// How long a completion takes.
    pub latency: Latency,
    /// What the habit `slow` adds.
    #[serde(default = "slow_by")]
    pub slow_by: Span,
    /// Share of the question's words that a chunk must have to answer it, 0 to 1.
    #[serde(default = "sufficient_overlap")]
    pub sufficient_overlap: f64,
    /// How many chunks it asks for.
    #[serde(default = "top_k")]
    pub top_k: u32,
    /// Things that it repeats in answers when the user named them in an earlier turn, serial numbers for example.
    #[serde(default)]
    pub recall: Vec<Pattern>,
    /// A file with how often it makes which mistakes, beside this one: see [`Rates`].
    #[serde(default)]
    pub rates: Option<String>,
    /// What that file says of prompts.
    #[serde(skip)]
    pub unless_told: Vec<UnlessTold>,
    /// Mistakes, unless a rule says otherwise; they win over the file's.
    #[serde(default)]
    pub habits: Habits,
    /// Share of turns in which it words its query otherwise, asks for more passages or answers at greater length, 0 to 1.
    #[serde(default)]
    pub variety: f64,
    /// What differs for some questions or declared faults; all that fit apply, later ones win.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// A file of rates: how often a model errs, apart from what it is asked and what is expected of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rates {
    /// Where the figures come from.
    #[serde(rename = "source")]
    _source: String,
    /// The mistakes.
    pub(super) habits: Habits,
    /// What a prompt is worth.
    #[serde(default)]
    pub(super) unless_told: Vec<UnlessTold>,
}

/// Mistakes that are made more often, or less, where the system prompt lacks some words.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnlessTold {
    /// The words, letter by letter.
    pub words: String,
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

/// What differs where `when` holds.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// Where it applies.
    pub when: When,
    /// Other habits.
    #[serde(default)]
    pub habits: Habits,
    /// Whether documents of the knowledge base suffice, instead of judging by words. What was learned is judged by
    /// words all the same.
    #[serde(default)]
    pub sufficient: Option<bool>,
    /// The query for the knowledge base.
    #[serde(default)]
    pub search_query: Option<String>,
    /// The query for the search service.
    #[serde(default)]
    pub external_query: Option<String>,
    /// What the habit `hostile_query` puts into a query.
    #[serde(default)]
    pub hostile: Option<String>,
    /// The answer's text.
    #[serde(default)]
    pub answer: Option<String>,
    /// The calls to make, one after the other, of whatever tools the agent has; then `answer` is said. Nothing else of the
    /// model's ways applies.
    #[serde(default)]
    pub calls: Option<Vec<ScriptedCall>>,
    /// What it does step by step, in an agent that reasons, acts and observes.
    #[serde(default)]
    pub steps: Option<Vec<StepScript>>,
    /// The choice of tools at which the service fails at every attempt: `none` where the final answer is asked for.
    #[serde(default)]
    pub fails_at: Option<String>,
    /// So many messages before the question are too many: it is slower by `slow_by`.
    #[serde(default)]
    pub slow_over: Option<usize>,
    /// How many chunks it asks for.
    #[serde(default)]
    pub top_k: Option<u32>,
    /// The keywords to index.
    #[serde(default)]
    pub keywords: Option<Vec<String>>,
    /// The keywords that the habit `poor_keywords` tries.
    #[serde(default)]
    pub poor_keywords: Option<Vec<String>>,
}

/// A call that a rule says.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedCall {
    /// The tool, by the agent's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

/// Where a rule, topic or failure applies; all that is given must hold.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    /// The user's last question, or the search query, matches.
    #[serde(default)]
    pub asks: Option<Pattern>,
    /// The case declares this fault, as sent in the header `x-ragcheck-fault`. Names of cases and trials are not sent: a
    /// rule sees what a model sees, and what a case says that it puts wrong.
    #[serde(default)]
    pub fault: Option<String>,
}

impl When {
    /// Whether it applies.
    pub(crate) fn holds(&self, asked: &str, caller: Caller<'_>) -> bool {
        self.asks.as_ref().is_none_or(|pattern| pattern.0.is_match(asked))
            && self.fault.as_ref().is_none_or(|fault| fault == caller.fault)
    }
}

/// What a request says of its trial.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Caller<'a> {
    /// What sets it apart from others: it decides chances, and nothing else.
    pub seed: &'a str,
    /// The fault that its case declares, empty for none.
    pub fault: &'a str,
}

/// A regular expression, letter case ignored.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(pub regex::Regex);

impl JsonSchema for Pattern {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pattern".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "examples": ["frost|ice"]})
    }
}

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
    /// How long an answer takes.
    pub latency: Latency,
    /// What it knows; the first that fits answers.
    #[serde(default)]
    pub topics: Vec<Topic>,
    /// When it fails; the first that fits counts.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// Something that the search service knows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topic {
    /// What it answers.
    pub when: When,
    /// The answer; `[n]` refers to the n-th result.
    pub answer: String,
    /// What it found.
    pub results: Vec<Page>,
}

/// One page found.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// Title.
    pub title: String,
    /// Address.
    pub url: String,
    /// An extract.
    pub snippet: String,
    /// Date of publication, `2026-03-01` for example.
    #[serde(default)]
    pub date: Option<String>,
}

/// A failure of the search service, or of the embeddings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    /// Which queries fail.
    pub when: When,
    /// HTTP status of the failure.
    pub status: u16,
    /// How often it fails before it answers; then it begins anew.
    pub times: FailTimes,
}

/// How often a failure happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailTimes {
    /// So many times, then one answer.
    Count(u32),
    /// Always.
    Always,
}

impl JsonSchema for FailTimes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FailTimes".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}], "examples": [2, "always"]})
    }
}

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
