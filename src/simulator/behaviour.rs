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

use super::aliases::{self, Aliases};
use super::dice::{Latency, Span};
use super::habit::{Habit, Habits};
use super::judge::JudgeBehaviour;
use super::managed::{self, ManagedBehaviour};
use super::reason_act::StepScript;
use crate::files;
use crate::yaml;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
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
    pub pace: Pace,
    /// Names of the tools where the agent calls them otherwise, by their role (`knowledge`, `external`, `index`, `respond`).
    #[serde(default)]
    pub tools: Aliases,
    /// The chat model.
    pub model: ModelBehaviour,
    /// The search service.
    pub search: SearchBehaviour,
    /// A judge of answers, where there is one.
    #[serde(default)]
    pub judge: Option<JudgeBehaviour>,
    /// A model for embeddings, where there is one.
    #[serde(default)]
    pub embeddings: Option<EmbeddingsBehaviour>,
    /// A managed retrieval service, where there is one.
    #[serde(default)]
    pub managed: Option<ManagedBehaviour>,
}

/// The simulated model for embeddings: texts with the same words are near to each other.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingsBehaviour {
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
pub enum Pace {
    /// It is slept before the answer goes out.
    #[default]
    Real,
    /// The answer goes out at once.
    Declared,
}

/// The simulated chat model.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelBehaviour {
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
struct Rates {
    /// Where the figures come from.
    #[serde(rename = "source")]
    _source: String,
    /// The mistakes.
    habits: Habits,
    /// What a prompt is worth.
    #[serde(default)]
    unless_told: Vec<UnlessTold>,
}

/// Mistakes that are made more often, or less, where the system prompt lacks some words.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlessTold {
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
pub struct Rule {
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
pub struct ScriptedCall {
    /// The tool, by the agent's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: serde_json::Map<String, serde_json::Value>,
}

/// Where a rule, topic or failure applies; all that is given must hold.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
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
    pub fn holds(&self, asked: &str, caller: Caller<'_>) -> bool {
        self.asks.as_ref().is_none_or(|pattern| pattern.0.is_match(asked))
            && self.fault.as_ref().is_none_or(|fault| fault == caller.fault)
    }
}

/// What a request says of its trial.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// What sets it apart from others: it decides chances, and nothing else.
    pub seed: &'a str,
    /// The fault that its case declares, empty for none.
    pub fault: &'a str,
}

/// A regular expression, letter case ignored.
#[derive(Debug, Clone)]
pub struct Pattern(pub regex::Regex);

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
        regex::RegexBuilder::new(&text).case_insensitive(true).build().map(Self).map_err(serde::de::Error::custom)
    }
}

/// The simulated search service.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchBehaviour {
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
pub struct Topic {
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
pub struct Page {
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
pub struct Failure {
    /// Which queries fail.
    pub when: When,
    /// HTTP status of the failure.
    pub status: u16,
    /// How often it fails before it answers; then it begins anew.
    pub times: FailTimes,
}

/// How often a failure happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailTimes {
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

/// Why a behaviour file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BehaviourError {
    /// It cannot be read.
    #[error("the behaviour file {} cannot be read: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not what a behaviour file looks like.
    #[error("{}{place}: the behaviour file is not valid: {words}", .path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// `:LINE:COLUMN`, where that is known.
        place: String,
        /// What is wrong.
        words: String,
    },
    /// It declares what cannot be.
    #[error("the behaviour file {} is not valid: {problem}", .path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to write.
        problem: ValueError,
    },
}

/// What is wrong with a declared value.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The name cannot be one.
    #[error("name `{0}`: use lower-case letters, digits and hyphens")]
    Name(String),
    /// Tools are renamed that there are not.
    #[error("tools: `{role}` is no role of a tool; known: {known}")]
    UnknownRole {
        /// What is written.
        role: String,
        /// The roles that there are.
        known: String,
    },
    /// A tool is renamed to nothing.
    #[error("tools: `{0}` has an empty name")]
    EmptyName(String),
    /// A number is out of its range.
    #[error("{what} must lie between {least} and {most}, not {found}")]
    Range {
        /// Which number.
        what: &'static str,
        /// The least that it may be.
        least: f64,
        /// The most.
        most: f64,
        /// What it is.
        found: f64,
    },
    /// Nothing would be searched.
    #[error("top_k must be at least 1")]
    NoHits,
    /// A page or passage is counted from 0.
    #[error("managed: `{0}`: pages and passages are counted from 1")]
    NoPage(String),
    /// Words are cited that the answer does not hold.
    #[error("managed: the answer does not hold the cited words `{0}`")]
    NotInAnswer(String),
    /// A topic of the search service answers with nothing.
    #[error("the topic `{0}` needs at least one result")]
    NoResults(String),
}

/// Whether a number lies in its range.
fn within(what: &'static str, found: f64, least: f64, most: f64) -> Result<(), ValueError> {
    if (least..=most).contains(&found) { Ok(()) } else { Err(ValueError::Range { what, least, most, found }) }
}

/// Reads and checks a behaviour file.
///
/// # Errors
/// [`BehaviourError`] with the file, what is wrong and where.
pub fn load(path: &Path) -> Result<Behaviour, BehaviourError> {
    let mut behaviour: Behaviour = read(path)?;
    if let Some(file) = &behaviour.model.rates {
        let rates: Rates = read(&path.with_file_name(file))?;
        let own = std::mem::replace(&mut behaviour.model.habits, rates.habits);
        behaviour.model.habits.overlay(&own);
        behaviour.model.unless_told = rates.unless_told;
    }
    check(&behaviour).map_err(|problem| BehaviourError::Value { path: path.to_owned(), problem })?;
    Ok(Behaviour { tools: aliases::by_tool(behaviour.tools), ..behaviour })
}

/// The schema of behaviour files.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Behaviour).to_value();
    let habits = schemars::schema_for!(Habit).to_value();
    let names = habits["oneOf"].as_array().into_iter().flatten().map(|habit| habit["const"].clone());
    schema["$defs"]["Habits"]["propertyNames"] = serde_json::json!({"enum": names.collect::<Vec<_>>()});
    schema
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, BehaviourError> {
    let text =
        files::read_to_string(path).map_err(|error| BehaviourError::Unreadable { path: path.to_owned(), error })?;
    yaml::read(&text).map_err(|error| {
        let place = error.place.map_or_else(String::new, |at| format!(":{}:{}", at.line, at.column));
        BehaviourError::Shape { path: path.to_owned(), place, words: error.to_string() }
    })
}

fn check(behaviour: &Behaviour) -> Result<(), ValueError> {
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if behaviour.name.is_empty() || !behaviour.name.chars().all(named) {
        return Err(ValueError::Name(behaviour.name.clone()));
    }
    aliases::check(&behaviour.tools)?;
    within("sufficient_overlap", behaviour.model.sufficient_overlap, 0.0, 1.0)?;
    within("variety", behaviour.model.variety, 0.0, 1.0)?;
    if behaviour.model.top_k == 0 {
        return Err(ValueError::NoHits);
    }
    if let Some(judge) = &behaviour.judge {
        let shares = [("judge: errs", judge.errs), ("judge: swayed", judge.swayed), ("judge: garbles", judge.garbles)];
        let looks = judge.items.values().map(|looks| ("judge: at_least", looks.at_least));
        shares.into_iter().chain(looks).try_for_each(|(what, share)| within(what, share, 0.0, 1.0))?;
    }
    let judge = behaviour.judge.as_ref().map(|judge| &judge.latency);
    let embeddings = behaviour.embeddings.as_ref().map(|embeddings| &embeddings.latency);
    let managed = behaviour.managed.as_ref().map(|managed| &managed.latency);
    let others = judge.into_iter().chain(embeddings).chain(managed);
    for latency in [&behaviour.model.latency, &behaviour.search.latency].into_iter().chain(others) {
        if let Latency::Lognormal(shape) = latency {
            within("sigma", shape.sigma, 0.0, 3.0)?;
        }
    }
    let embeddings = behaviour.embeddings.as_ref();
    if let Some(embeddings) = embeddings {
        within("embeddings: dimensions", embeddings.dimensions as f64, 2.0, 4_096.0)?;
    }
    if let Some(behaviour) = &behaviour.managed {
        managed::check(behaviour)?;
    }
    let failures = embeddings.into_iter().flat_map(|embeddings| &embeddings.failures);
    let failures = failures.chain(behaviour.managed.iter().flat_map(|managed| &managed.failures));
    for failure in behaviour.search.failures.iter().chain(failures) {
        within("a failure's status", f64::from(failure.status), 400.0, 599.0)?;
    }
    for topic in &behaviour.search.topics {
        if topic.results.is_empty() {
            return Err(ValueError::NoResults(topic.answer.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
name: small
seed: 1
model: {latency: {constant: 1s}}
search: {latency: {constant: 1s}, failures: [{when: {asks: tide}, status: 503, times: 2}, {when: {}, status: 500, times: always}]}
";

    fn written(text: &str) -> Result<Behaviour, BehaviourError> {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), text).expect("write");
        load(file.path())
    }

    #[test]
    fn a_small_file_loads_with_its_defaults() {
        let behaviour = written(SMALL).expect("valid");
        assert_eq!(behaviour.pace, Pace::Real);
        assert_eq!(behaviour.search.failures[0].times, FailTimes::Count(2));
        assert_eq!(behaviour.search.failures[1].times, FailTimes::Always);
    }

    #[test]
    fn mistakes_name_the_file_and_the_place() {
        for (from, to, part) in [
            ("seed: 1", "seed: 1\nsped: 2", "sped"),
            ("name: small", "name: Big Name", "Big Name"),
            ("asks: tide", "asks: '('", "regex"),
            ("status: 503", "status: 200", "400"),
            ("constant: 1s", "constant: 1", "length of time"),
        ] {
            let error = written(&SMALL.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(error.contains(part) && error.contains("behaviour file"), "{error}");
        }
    }
}
