//! How agents spell the results of their tools to their model: read by the names that such results usually have.
//!
//! Nothing is invented: a result without recognisable passages has none.

mod failure;

pub(crate) use failure::{error, is_crash};

use crate::platform::distinct;
use crate::platform::secrets::MARK;
use serde_json::{Map, Value};

const LISTS: [&str; 10] =
    ["chunks", "results", "passages", "documents", "hits", "matches", "items", "points", "objects", "nodes"];
const IDS: [&str; 12] = [
    "id", "_id", "id_", "chunk_id", "passage_id", "doc_id", "document_id", "source", "url", "path", "filename", "file",
];
const TEXTS: [&str; 6] = ["text", "content", "snippet", "passage", "body", "page_content"];
const TITLES: [&str; 3] = ["title", "name", "filename"];
const SCORES: [&str; 3] = ["score", "similarity", "relevance"];
/// Members of a result that repeat its request.
const ASKED: [&str; 7] = ["query", "q", "search", "question", "input", "request", "params"];
/// Members that wrap a whole result.
const WRAPS: [&str; 5] = ["result", "output", "data", "response", "hits"];
/// Members of a passage that hold its text and names: those of Pinecone and LangChain, Qdrant, Elasticsearch, Weaviate,
/// LlamaIndex.
const ABOUT: [&str; 5] = ["metadata", "payload", "_source", "properties", "node"];

/// One passage of a search result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Passage<'a> {
    /// The id that the agent shows.
    pub(crate) id: String,
    /// The title; empty if there is none.
    pub(crate) title: &'a str,
    /// The text: a member with a usual name, else the longest text of several words; empty if there is none.
    pub(crate) text: &'a str,
    /// The score, in the agent's unit; 0 if there is none.
    pub(crate) score: f64,
    /// The passage as it is written.
    pub(crate) item: &'a Map<String, Value>,
}

/// A result as the agent showed it to its model: parsed if it is JSON, else as text.
pub(crate) fn document(content: &str) -> Value {
    serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.to_owned()))
}

/// The query of a search: the argument `query`, or the first argument that is text; empty if there is none.
pub(crate) fn query(arguments: &Value) -> String {
    let members = arguments.as_object();
    let named = ["query", "q", "question"].into_iter().find_map(|name| members?.get(name)?.as_str());
    named.or_else(|| members?.values().find_map(Value::as_str)).unwrap_or_default().to_owned()
}

/// The passages in a search result; `None` if it holds no list of objects with names.
pub(crate) fn passages(result: &Value) -> Option<Vec<Passage<'_>>> {
    list(result)?.iter().map(passage).collect()
}

/// What a search result says beside its passages, a line for each member, except what repeats the request: `"total": 57`.
pub(crate) fn beside_passages(result: &Value) -> String {
    let passages = list(result);
    let is_told =
        |value: &Value| value.as_array().is_some_and(|items| passages.is_some_and(|list| std::ptr::eq(list, items)));
    let is_asked = |name: &str| ASKED.iter().any(|asked| member_is(name, asked));
    let mut lines = Vec::new();
    if let Some(members) = result.as_object() {
        members
            .iter()
            .for_each(|(name, value)| said(value, name, &|name, value| is_told(value) || is_asked(name), &mut lines));
    }
    lines.join("\n")
}

/// The list in a result that may be one of passages.
fn list(result: &Value) -> Option<&Vec<Value>> {
    match result {
        Value::Array(items) => Some(items),
        Value::Object(members) => {
            let named = LISTS.into_iter().find_map(|name| member(members, name)?.as_array());
            named.or_else(|| WRAPS.into_iter().find_map(|name| list(member(members, name)?)))
        }
        _ => None,
    }
}

fn passage(item: &Value) -> Option<Passage<'_>> {
    let item = item.as_object()?;
    let about = ABOUT.into_iter().find_map(|name| member(item, name)?.as_object());
    let id_in = |members: &Map<String, Value>| IDS.into_iter().find_map(|name| text_or_number(member(members, name)?));
    let id = id_in(item).or_else(|| id_in(about?))?;
    let text = |names: &[&str]| names.iter().find_map(|name| member(item, name)?.as_str());
    let text_about = |names: &[&str]| names.iter().find_map(|name| member(about?, name)?.as_str());
    let title = text(&TITLES).or_else(|| text_about(&TITLES[..1])).unwrap_or_default();
    let score = SCORES.into_iter().find_map(|name| member(item, name)?.as_f64());
    let words = text(&TEXTS).or_else(|| text_about(&TEXTS)).or_else(|| longest(item, title));
    Some(Passage { id, title, text: words.unwrap_or_default(), score: score.unwrap_or_default(), item })
}

/// The longest text of several words in a passage, except its title.
fn longest<'v>(item: &'v Map<String, Value>, title: &str) -> Option<&'v str> {
    let texts = item.values().flat_map(leaves).filter_map(Value::as_str).collect::<Vec<_>>().into_iter();
    let of_words = texts.filter(|text| text.trim().contains(char::is_whitespace) && *text != title);
    // Of equal ones the first.
    of_words.rev().max_by_key(|text| text.len())
}

/// The values in a document that hold no others, in order.
pub(crate) fn leaves(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

impl Passage<'_> {
    /// Its names beside the id: ids and addresses of other members, and the title.
    pub(crate) fn other_names(&self) -> Vec<String> {
        let about = ABOUT.into_iter().filter_map(|name| member(self.item, name)?.as_object());
        let named = about.chain([self.item]).flat_map(names_in).chain([self.title.to_owned()]);
        distinct(named.filter(|name| !name.is_empty() && *name != self.id))
    }

    /// What else the result says of the passage, a line for each member: `"price": 1299`.
    pub(crate) fn beside(&self) -> String {
        let is_known = |name: &str| {
            IDS.iter().chain(&SCORES).chain(&["type", "kind", "number"]).any(|known| member_is(name, known))
        };
        let is_told = |name: &str, value: &Value| {
            !value.is_object() && is_known(name)
                || value.as_str().is_some_and(|text| text == self.text || text == self.title)
        };
        let mut lines = Vec::new();
        self.item.iter().for_each(|(name, value)| said(value, name, &is_told, &mut lines));
        lines.join("\n")
    }
}

/// Adds a line for each text and number in `value`, except lists of numbers and what `is_told` by its path and value. A text of
/// several words stands as it is, and all else as in JSON.
fn said(value: &Value, path: &str, is_told: &dyn Fn(&str, &Value) -> bool, lines: &mut Vec<String>) {
    match value {
        _ if is_told(path, value) => {}
        Value::Array(items) if items.iter().all(Value::is_number) => {}
        Value::Array(items) => items.iter().for_each(|item| said(item, path, is_told, lines)),
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| said(value, &format!("{path}.{name}"), is_told, lines));
        }
        Value::String(text) if has_words(text) => lines.push(format!("{path}: {text}")),
        Value::String(_) | Value::Number(_) => lines.push(format!("\"{path}\": {value}")),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Whether a text has several words. What stands in place of a secret is one, as the secret is.
fn has_words(text: &str) -> bool {
    let mut parts = text.trim().split(MARK);
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once(']').map_or("", |(_, rest)| rest));
    std::iter::once(first).chain(rest).any(|part| part.contains(char::is_whitespace))
}

/// Whether a text is the address of a page.
pub(crate) fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The text of a passage as an agent passes it on, and the names by which it may be shown.
pub(crate) fn words_and_names(item: &Value) -> (Option<&str>, Vec<String>) {
    let members = item.as_object();
    let words = TEXTS.into_iter().find_map(|name| member(members?, name)?.as_str());
    let named = members.into_iter().flat_map(names_in);
    (words, text_or_number(item).into_iter().chain(named).collect())
}

/// The names of a passage by its members.
pub(crate) fn names_in(members: &Map<String, Value>) -> impl Iterator<Item = String> + '_ {
    IDS.into_iter().filter_map(|name| text_or_number(member(members, name)?))
}

/// The name of a source: itself, or a member that names it.
pub(crate) fn name_of(item: &Value) -> Option<String> {
    let members = item.as_object();
    text_or_number(item).or_else(|| IDS.into_iter().find_map(|name| text_or_number(member(members?, name)?)))
}

/// The id that an agent gave to an external answer.
pub(crate) fn result_id(result: &Value) -> Option<String> {
    ["result_id", "id"].into_iter().find_map(|name| text_or_number(result.get(name)?))
}

/// Whether a path ends with that member, by [`member`]'s spellings.
fn member_is(path: &str, name: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    last.replace('_', "").eq_ignore_ascii_case(&name.replace('_', ""))
}

/// A member by its name, as written or as .NET, Go and JavaScript write it: `doc_id` is `DocId` and `docId`.
fn member<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    members.get(name).or_else(|| {
        let words = name
            .split('_')
            .map(|word| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default());
        let pascal = words.collect::<String>();
        let camel = || name.get(..1).unwrap_or_default().to_owned() + pascal.get(1..).unwrap_or_default();
        let camel = || members.get(&camel()).filter(|_| !name.starts_with('_'));
        members.get(&pascal).or_else(camel)
    })
}

fn text_or_number(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_result_says_of_a_passage_beside_its_text_its_names_and_its_score_is_kept() {
        let result = json!([
            {"id": "p-45", "text": "A bike.", "price": 1299, "currency": "EUR", "score": 0.9, "embedding": [0.1, 0.2],
             "metadata": {"source": "x-45", "updated": "2026-03-14", "tags": ["brand new"], "loc": {"line": 45}}},
            {"docId": "p-46", "text": "A bell.", "relevance": 0.8},
        ]);
        let found = passages(&result).expect("a list");
        assert_eq!(
            found[0].beside(),
            "\"price\": 1299\n\"currency\": \"EUR\"\n\"metadata.updated\": \"2026-03-14\"\nmetadata.tags: brand new\n\
             \"metadata.loc.line\": 45"
        );
        assert_eq!((found[1].beside(), found[1].other_names().len()), (String::new(), 0));
        assert_eq!(found[0].other_names(), ["x-45"]);
    }

    #[test]
    fn what_a_result_says_beside_its_passages_is_kept() {
        let list = json!([{"id": "p-45", "text": "A bike.", "price": 1299}]);
        for (result, beside) in [
            (
                json!({"query": "a bike of 60 kg", "total": 57, "results": list, "answer": "Two bikes."}),
                "\"total\": 57\nanswer: Two bikes.",
            ),
            (
                json!({"results": list, "caller": "[redacted:agent's x-desk-secret]", "note": "for [redacted:a b]"}),
                "\"caller\": \"[redacted:agent's x-desk-secret]\"\nnote: for [redacted:a b]",
            ),
            (json!({"hits": {"total": {"value": 57}, "hits": list}}), "\"hits.total.value\": 57"),
            (json!({"results": list}), ""),
            (list, ""),
        ] {
            assert_eq!(beside_passages(&result), beside, "{result}");
        }
    }

    #[test]
    fn passages_are_read_by_their_usual_names_or_not_at_all() {
        for result in [
            json!({"results": [{"source": "a.md", "content": "text", "score": 0.5}]}),
            json!([{"page_content": "text", "similarity": 0.5, "metadata": {"source": "a.md"}}]),
            json!({"result": {"hits": [{"path": "a.md", "body": "text", "relevance": 0.5}]}}),
            json!({"matches": [{"id": "a.md", "score": 0.5, "metadata": {"text": "text"}}]}),
            json!({"result": {"points": [{"id": "a.md", "score": 0.5, "payload": {"text": "text", "title": "t"}}]}}),
            json!({"hits": {"total": 1, "hits": [{"_id": "a.md", "score": 0.5, "_source": {"content": "text"}}]}}),
            json!({"nodes": [{"node": {"id_": "a.md", "text": "text"}, "score": 0.5}]}),
            json!({"Results": [{"DocId": "a.md", "Text": "text", "Score": 0.5}]}),
            json!([{"docId": "a.md", "pageContent": "text", "score": 0.5}]),
        ] {
            let found = passages(&result).expect("a list");
            assert_eq!((found[0].id.as_str(), found[0].text, found[0].score), ("a.md", "text", 0.5), "{result}");
        }
        let words = "It has 30 days.";
        for item in [
            json!({"id": "a.md", "title": "A title that is longer than its text", "chunk_text": words}),
            json!({"metadata": {"id": "a.md", "chunk": words, "url": "https://a.example/1"}}),
            json!({"id": "a.md", "content": [{"type": "text", "text": words}]}),
        ] {
            assert_eq!(passages(&json!([item])).expect("a list")[0].text, words, "{item}");
        }
        assert_eq!(passages(&json!([])).map(|list| list.len()), Some(0));
        for unreadable in [json!("words"), json!({"found": "x"}), json!(["words"]), json!({"results": [{"n": {}}]})] {
            assert!(passages(&unreadable).is_none(), "{unreadable}");
        }
    }
}
