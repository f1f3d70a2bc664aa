//! The simulated managed retrieval service: the first declared answer that matches the question, with its citations.
//!
//! Positions in an answer are computed here, in characters, so that a behaviour file only quotes the words. Pages are
//! counted from 1 in the file and from 0 in responses, as in the real service.

use super::behaviour::{Caller, Failure, Pattern, When};
use super::dice::{Dice, Latency};
use super::mistake::ValueError;
use crate::provider::wire::nuclia_ask::AskRequest;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The simulated service.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagedBehaviour {
    /// Its knowledge box; questions to any other are refused.
    pub kb_id: String,
    /// Token that it requires; if missing, no token is required.
    #[serde(default)]
    pub token: Option<String>,
    /// Response time.
    pub latency: Latency,
    /// Its files, by the id of their resource.
    pub files: BTreeMap<String, ManagedFile>,
    /// Its answers; the first match counts. If none matches, nothing is found.
    pub answers: Vec<ManagedReply>,
    /// Failures; the first match counts.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// A file of the service.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagedFile {
    /// Name.
    pub name: String,
    /// Title.
    #[serde(default)]
    pub title: String,
    /// Passages by page, from 1.
    pub pages: BTreeMap<u64, Vec<String>>,
}

impl ManagedFile {
    /// Text of all pages, each after a line with its number.
    pub(super) fn text(&self) -> String {
        let page = |(number, passages): (&u64, &Vec<String>)| format!("page {number}\n{}\n", passages.join("\n"));
        self.pages.iter().map(page).collect()
    }
}

/// An answer.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagedReply {
    /// Condition.
    pub when: When,
    /// Required content of the filter, as JSON.
    #[serde(default)]
    pub filter: Option<Pattern>,
    /// Required content of the audit data, as JSON.
    #[serde(default)]
    pub audit: Option<Pattern>,
    /// Status, by default `success`: `no_context`, `no_retrieval_data`, `error`.
    #[serde(default)]
    pub status: Option<String>,
    /// The text.
    #[serde(default)]
    pub answer: String,
    /// Citations.
    #[serde(default)]
    pub cites: Vec<ManagedCite>,
    /// Message about the status.
    #[serde(default)]
    pub details: Option<String>,
    /// Additional items of a stream, of unknown types.
    #[serde(default)]
    pub items: Vec<Map<String, Value>>,
}

/// Words supported by a passage.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagedCite {
    /// Resource.
    pub resource: String,
    /// Page, from 1; a page that the file lacks is a passage that was not found.
    pub page: u64,
    /// Passage of the page, from 1.
    #[serde(default = "first")]
    pub passage: usize,
    /// The words as in the answer; every occurrence is cited.
    #[serde(default)]
    pub words: Vec<String>,
    /// Positions to send in addition to those of the words, in characters.
    #[serde(default)]
    pub at: Vec<(u64, u64)>,
}

fn first() -> usize {
    1
}

/// Response of the service.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    /// A non-streamed answer.
    pub document: Value,
    /// Additional items.
    pub items: Vec<Map<String, Value>>,
    /// Response time.
    pub latency: Duration,
    /// Whether its status is an error, as the behaviour file declares.
    pub fails: bool,
}

/// Answers one question.
pub(super) fn ask(behaviour: &ManagedBehaviour, seed: u64, caller: Caller<'_>, request: &AskRequest) -> Answered {
    let query = request.query.as_str();
    let says = |pattern: &Option<Pattern>, said: Value| {
        pattern.as_ref().is_none_or(|pattern| pattern.0.is_match(&said.to_string()))
    };
    let filter = || request.filter_expression.clone().unwrap_or_default();
    let fits = |reply: &&ManagedReply| {
        reply.when.holds(query, caller)
            && says(&reply.filter, filter())
            && says(&reply.audit, json!(request.audit_metadata))
    };
    let reply = behaviour.answers.iter().find(fits);
    let dice = Dice::new(seed, &["managed", caller.seed, query]);
    let latency = behaviour.latency.draw(&dice);
    let Some(reply) = reply else {
        let document = document("no_retrieval_data", "", &dice, json!({}), json!({}), None);
        return Answered { document, items: Vec::new(), latency, fails: false };
    };
    let mut cited: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for cite in &reply.cites {
        cited.entry(id(cite)).or_default().extend(places(&reply.answer, cite));
    }
    let found = resources(behaviour, &reply.cites, request.top_k as usize);
    let status = reply.status.as_deref().unwrap_or("success");
    let document = document(status, &reply.answer, &dice, found, json!(cited), reply.details.as_deref());
    Answered { document, items: reply.items.clone(), latency, fails: status == "error" }
}

fn document(status: &str, answer: &str, dice: &Dice, found: Value, cited: Value, details: Option<&str>) -> Value {
    let tokens = json!({"input": 40 + answer.chars().count(), "output": answer.chars().count() / 4});
    json!({
        "answer": answer,
        "status": status,
        "learning_id": dice.id("learning"),
        "retrieval_results": {"resources": found},
        "citations": cited,
        "metadata": {"tokens": tokens},
        "error_details": details,
    })
}

/// The items of a streamed answer, one line of JSON each.
pub(super) fn pieces(answered: &Answered) -> Vec<String> {
    let part = |pointer: &str| answered.document.pointer(pointer).cloned().unwrap_or_default();
    let mut items = vec![json!({"type": "retrieval", "results": part("/retrieval_results")})];
    let text = part("/answer");
    let words = text.as_str().unwrap_or_default().split_inclusive(' ');
    items.extend(words.map(|word| json!({"type": "answer", "text": word})));
    items.extend(answered.items.iter().cloned().map(Value::Object));
    items.push(json!({"type": "metadata", "tokens": part("/metadata/tokens"), "timings": {}}));
    items.push(json!({"type": "citations", "citations": part("/citations")}));
    items.push(json!({"type": "status", "code": "0", "status": part("/status"), "details": part("/error_details")}));
    items.into_iter().map(|item| format!("{}\n", json!({ "item": item }))).collect()
}

/// The id of a cited passage.
fn id(cite: &ManagedCite) -> String {
    let start = (cite.page * 10 + cite.passage as u64) * 100;
    format!("{}/f/file/{start}-{}", cite.resource, start + 99)
}

/// Positions of the cited words, in characters.
fn places(answer: &str, cite: &ManagedCite) -> Vec<(u64, u64)> {
    let count = |text: &str| text.chars().count() as u64;
    let found = cite.words.iter().flat_map(|words| {
        answer.match_indices(words.as_str()).map(move |(start, words)| {
            let start = count(&answer[..start]);
            (start, start + count(words))
        })
    });
    found.chain(cite.at.iter().copied()).collect()
}

/// The passages found: cited ones, then others of their files, up to the limit.
fn resources(behaviour: &ManagedBehaviour, cites: &[ManagedCite], most: usize) -> Value {
    let mut wanted: Vec<ManagedCite> = Vec::new();
    let named: Vec<&str> = cites.iter().map(|cite| cite.resource.as_str()).collect();
    let others = behaviour.files.iter().filter(|(resource, _)| named.contains(&resource.as_str()));
    let others = others.flat_map(|(resource, file)| {
        file.pages.iter().flat_map(move |(page, passages)| {
            let cite = move |passage| ManagedCite {
                resource: resource.clone(),
                page: *page,
                passage,
                words: Vec::new(),
                at: Vec::new(),
            };
            (1..=passages.len()).map(cite)
        })
    });
    for cite in cites.iter().cloned().chain(others) {
        if wanted.len() < most && !wanted.iter().any(|known| id(known) == id(&cite)) {
            wanted.push(cite);
        }
    }
    let mut found = Map::new();
    for (rank, cite) in wanted.iter().enumerate() {
        let Some(file) = behaviour.files.get(&cite.resource) else { continue };
        let passages = file.pages.get(&cite.page);
        let Some(text) = passages.and_then(|passages| passages.get(cite.passage.checked_sub(1)?)) else { continue };
        let resource = found.entry(cite.resource.clone()).or_insert_with(|| {
            json!({
                "id": cite.resource,
                "title": file.title,
                "data": {"files": {"file": {"value": {"file": {
                    "uri": format!("/kb/{}/resource/{}/file/file/download/field", behaviour.kb_id, cite.resource),
                    "filename": file.name,
                }}}}},
                "fields": {"/f/file": {"paragraphs": {}}},
            })
        });
        resource["fields"]["/f/file"]["paragraphs"][id(cite)] = json!({
            "id": id(cite),
            "text": text,
            "score": 1.0 / (rank + 1) as f64,
            "position": {"page_number": cite.page - 1, "index": cite.passage - 1, "start": 0, "end": text.chars().count()},
        });
    }
    Value::Object(found)
}

/// Checks the declared behaviour.
pub(super) fn check(behaviour: &ManagedBehaviour) -> Vec<(Vec<String>, ValueError)> {
    let mut wrong = Vec::new();
    let path = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    for (answer, reply) in behaviour.answers.iter().enumerate() {
        for (place, cite) in reply.cites.iter().enumerate() {
            let (answer, place) = (answer.to_string(), place.to_string());
            let here = ["answers", &answer, "cites", &place];
            for (key, is_zero) in [("page", cite.page == 0), ("passage", cite.passage == 0)] {
                if is_zero {
                    wrong.push((path(&[&here[..], &[key]].concat()), ValueError::NoPage(cite.resource.clone())));
                }
            }
            for (index, words) in cite.words.iter().enumerate() {
                if words.is_empty() || !reply.answer.contains(words.as_str()) {
                    let at = path(&[&here[..], &["words", &index.to_string()]].concat());
                    wrong.push((at, ValueError::NotInAnswer(words.clone())));
                }
            }
        }
    }
    for (name, file) in &behaviour.files {
        if file.pages.contains_key(&0) {
            wrong.push((path(&["files", name, "pages"]), ValueError::NoPage(name.clone())));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::nuclia_ask::{self, AskStatus};

    fn behaviour() -> ManagedBehaviour {
        serde_json::from_value(json!({
            "kb_id": "box", "latency": {"constant": "1s"},
            "files": {"codes": {"name": "codes.pdf", "title": "Codes", "pages": {"3": ["38 to 46 ohms", "more"], "4": ["else"]}}},
            "answers": [
                {"when": {"asks": "coil"}, "filter": "norway", "answer": "In Norway: 40."},
                {"when": {"asks": "coil"}, "answer": "😀 38 to 46 ohms. Again 38 to 46 ohms.",
                 "cites": [{"resource": "codes", "page": 3, "words": ["38 to 46 ohms."]}], "items": [{"type": "of_tomorrow"}]}]
        }))
        .expect("reads")
    }

    #[test]
    fn words_are_cited_where_they_stand_and_both_forms_say_the_same() {
        let behaviour = behaviour();
        assert_eq!(check(&behaviour), []);
        let request = AskRequest { query: "The coil?".into(), top_k: 2, ..AskRequest::default() };
        let answered = ask(&behaviour, 1, Caller::default(), &request);
        let whole = nuclia_ask::decode_response(answered.document.to_string().as_bytes()).expect("reads");
        assert_eq!(whole.citations[0].spans, [(2, 16), (23, 37)]);
        assert_eq!(whole.paragraphs.len(), 2, "as many as were asked for");
        assert_eq!((whole.paragraphs[0].page, whole.paragraphs[0].file.as_deref()), (Some(2), Some("codes.pdf")));
        let pieces = nuclia_ask::decode_response(pieces(&answered).concat().as_bytes()).expect("reads");
        assert_eq!((&pieces.text, &pieces.citations, pieces.skipped.len()), (&whole.text, &whole.citations, 1));
    }

    #[test]
    fn a_filter_chooses_the_answer_and_what_is_not_known_is_not_found() {
        let filter_expression = Some(json!({"label": "Norway"}));
        let filtered = AskRequest { query: "The coil?".into(), top_k: 5, filter_expression, ..AskRequest::default() };
        assert_eq!(ask(&behaviour(), 1, Caller::default(), &filtered).document["answer"], "In Norway: 40.");
        let unknown = AskRequest { query: "The moon?".into(), top_k: 5, ..AskRequest::default() };
        let answered = ask(&behaviour(), 1, Caller::default(), &unknown).document.to_string();
        let answered = nuclia_ask::decode_response(answered.as_bytes()).expect("reads");
        assert_eq!((answered.status, answered.paragraphs.len()), (AskStatus::NoRetrievalData, 0));
    }

    #[test]
    fn words_that_the_answer_does_not_hold_are_a_mistake() {
        let mut wrong = behaviour();
        wrong.answers[1].cites[0].words = vec!["47 ohms".into()];
        let told = check(&wrong);
        assert_eq!(told[0].0.join("."), "answers.1.cites.0.words.0");
        assert!(told[0].1.to_string().contains("47 ohms"));
    }
}
