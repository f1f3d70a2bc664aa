//! The simulated model in an agent that reasons, acts and observes: it searches with the words of the question, made
//! broader or changed as the step requires, grades passages by their words, and states a lesson after a failure.
//!
//! It has no state: the step and its approach are read from the last message of the controller, as by a real model.
//! Rules override single steps.

use super::behaviour::ModelBehaviour;
use super::compose::compose;
use super::sentences::{content_words, overlap, sentences, words};
use super::situation::{Chunk, Situation};
use crate::provider::chat::{Message, Role};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The tool by which such an agent is recognised.
pub(super) const SEARCH: &str = "search_documents_for_facts";
/// Grades results.
pub(super) const ASSESS: &str = "assess_search_results";
pub(super) const ANALYSE: &str = "record_failure_analysis";

/// Overrides for one step; missing parts keep the default behaviour.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StepScript {
    /// Free text instead of the call.
    pub text: Option<String>,
    /// Arguments of the search, verbatim.
    pub arguments: Option<Map<String, Value>>,
    /// Query.
    pub query: Option<String>,
    /// Numbers of the passages that the model grades as relevant.
    pub relevant: Option<Vec<u64>>,
    /// Whether the model reports that the goal is met.
    pub goal_met: Option<bool>,
    /// Summary of the step.
    pub summary: Option<String>,
    /// Whether it returns free text instead of grades.
    pub no_grades: bool,
    /// Whether it returns free text instead of an analysis.
    pub no_analysis: bool,
}

/// Output: a call, or text.
pub(super) enum Act {
    Call(&'static str, Value),
    Say(String),
}

/// The step and its approach, if the controller names them.
fn grounding(messages: &[Message]) -> (usize, String) {
    static STATE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"Step (\d+) of \d+\. Approach of this step: `([a-z_]+)`").ok());
    let mut said = messages.iter().rev().filter(|message| message.role == Role::System);
    let found = said.find_map(|message| STATE.as_ref()?.captures(&message.content));
    found.map_or((1, "direct".to_owned()), |found| (found[1].parse().unwrap_or(1), found[2].to_owned()))
}

/// Results of the last search.
fn passages(messages: &[Message]) -> Vec<Chunk> {
    let results = messages.iter().rev().filter(|message| message.role == Role::Tool);
    let mut found = results.filter_map(|message| serde_json::from_str::<Value>(&message.content).ok());
    let Some(chunks) = found.find_map(|value| value.get("chunks")?.as_array().cloned()) else {
        return Vec::new();
    };
    let text = |chunk: &Value, key: &str| chunk[key].as_str().unwrap_or_default().to_owned();
    let chunk = |chunk: &Value| Chunk {
        id: text(chunk, "id"),
        title: text(chunk, "title"),
        text: text(chunk, "text"),
        learned: false,
        number: chunk["number"].as_u64(),
    };
    chunks.iter().map(chunk).collect()
}

/// Output of the model for `choice` and the subject `asked`; `since` starts with the question, which the first search
/// repeats if it is `copied`.
pub(super) fn act(
    behaviour: &ModelBehaviour,
    choice: Option<&str>,
    since: &[Message],
    (asked, copied): (&[String], Option<&str>),
    steps: &[StepScript],
) -> Act {
    let (step, approach) = grounding(since);
    let script = step.checked_sub(1).and_then(|at| steps.get(at)).cloned().unwrap_or_default();
    match choice {
        Some(ASSESS) if script.no_grades => Act::Say("The passages look fine to me.".into()),
        Some(ASSESS) => Act::Call(ASSESS, assessment(behaviour, &passages(since), asked, &script)),
        Some(ANALYSE) if script.no_analysis => Act::Say("Something went wrong.".into()),
        Some(ANALYSE) => {
            let query = script.query.unwrap_or_else(|| query(asked, &approach));
            Act::Call(
                ANALYSE,
                json!({
                    "cause": format!("The words `{query}` did not lead to passages that answer the question."),
                    "lesson": "Take the words that the documents use for this subject.",
                }),
            )
        }
        _ => match (script.text, script.arguments) {
            (Some(text), _) => Act::Say(text),
            (None, Some(arguments)) => Act::Call(SEARCH, Value::Object(arguments)),
            (None, None) => {
                let copied = copied.filter(|_| approach == "direct").map(str::to_owned);
                let query = script.query.or(copied).unwrap_or_else(|| query(asked, &approach));
                let reasoning = format!(
                    "The question is about {}. The documents should say so; approach {approach}.",
                    asked.join(" ")
                );
                Act::Call(SEARCH, json!({"reasoning": reasoning, "query": query, "approach": approach}))
            }
        },
    }
}

fn query(asked: &[String], approach: &str) -> String {
    let half = asked.len().div_ceil(2);
    match approach {
        "broader" => asked[..half].join(" "),
        "synonyms" => format!("{} details", asked.join(" ")),
        "related" => format!("{} settings", asked[asked.len() - half..].join(" ")),
        _ => asked.join(" "),
    }
}

fn assessment(behaviour: &ModelBehaviour, chunks: &[Chunk], asked: &[String], script: &StepScript) -> Value {
    let share = |chunk: &Chunk| overlap(asked, &format!("{} {}", chunk.title, chunk.text));
    let enough = behaviour.sufficient_overlap;
    let judged = || (1..).zip(chunks).filter(|(_, chunk)| share(chunk) >= enough).map(|(number, _)| number).collect();
    let relevant: Vec<u64> = script.relevant.clone().unwrap_or_else(judged);
    let goal_met = script.goal_met.unwrap_or(!relevant.is_empty());
    let first = relevant.first().and_then(|number| chunks.get(usize::try_from(*number).ok()?.checked_sub(1)?));
    let best = first.and_then(|chunk| {
        let ranked = sentences(&chunk.text).into_iter();
        ranked.max_by(|a, b| overlap(asked, a).total_cmp(&overlap(asked, b)))
    });
    let summary = script.summary.clone().or_else(|| best.map(str::to_owned));
    let observation = match (relevant.len(), goal_met) {
        (0, _) => "None of the passages says anything about the question.".to_owned(),
        (count, true) => format!("{count} of {} passages answer the question.", chunks.len()),
        (count, false) => format!("{count} of {} passages help; a part of the question is still open.", chunks.len()),
    };
    json!({
        "observation": observation,
        "relevant": relevant,
        "goal_met": goal_met,
        "summary": summary.unwrap_or_else(|| "Nothing that helps was found.".into()),
    })
}

/// Number of parts of the question: one, plus one for each further question word after an `and`.
fn parts(question: &str) -> usize {
    static PART: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?i)\band (how|what|when|where|which|who|why)\b").ok());
    1 + PART.as_ref().map_or(0, |part| part.find_iter(question).count())
}

/// Whether a question is about what belongs to the user, who named it earlier.
pub(super) fn asks_for_own(question: &str) -> bool {
    words(question).iter().any(|word| word == "mine")
}

/// The final answer: what is `recalled`, sentences of the passages with their numbers, or general knowledge if there are
/// none.
pub(super) fn answer(
    since: &[Message],
    asked: &[String],
    fixed: Option<&str>,
    recalled: &[String],
    length: usize,
) -> String {
    let chunks = passages(since);
    if chunks.is_empty() {
        let known = format!("In general, {} depends on the product; its manual says more.", asked.join(" "));
        return fixed.map_or(known, str::to_owned);
    }
    // One sentence per part of the question; two more if detail was requested.
    let detailed = since.iter().any(|message| message.role == Role::System && message.content.contains("Detailed:"));
    let situation = Situation { searched: true, chunks, sufficient: true, ..Situation::default() };
    let asked = if asked.is_empty() { content_words(&since[0].content) } else { asked.to_vec() };
    compose(&situation, &asked, fixed, recalled, if detailed { length + 2 } else { parts(&since[0].content) }).text
}
