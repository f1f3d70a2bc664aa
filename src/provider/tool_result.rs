//! How agents spell the results of their tools to their model: read by the names that such results usually have.
//!
//! Nothing is invented: a result without recognisable passages has none.

mod failure;

pub(crate) use failure::error;

use serde_json::{Map, Value};

const LISTS: [&str; 10] =
    ["chunks", "results", "passages", "documents", "hits", "matches", "items", "points", "objects", "nodes"];
const IDS: [&str; 12] = [
    "id", "_id", "id_", "chunk_id", "passage_id", "doc_id", "document_id", "source", "url", "path", "filename", "file",
];
const TEXTS: [&str; 6] = ["text", "content", "snippet", "passage", "body", "page_content"];
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
    /// The text; empty if there is none.
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
    let list = match result {
        Value::Array(items) => items,
        Value::Object(members) => match LISTS.into_iter().find_map(|name| member(members, name)?.as_array()) {
            Some(items) => items,
            None => return WRAPS.into_iter().find_map(|name| passages(member(members, name)?)),
        },
        _ => return None,
    };
    list.iter().map(passage).collect()
}

fn passage(item: &Value) -> Option<Passage<'_>> {
    let item = item.as_object()?;
    let about = ABOUT.into_iter().find_map(|name| member(item, name)?.as_object());
    let id_in = |members: &Map<String, Value>| IDS.into_iter().find_map(|name| text_or_number(member(members, name)?));
    let id = id_in(item).or_else(|| id_in(about?))?;
    let text = |names: &[&str]| names.iter().find_map(|name| member(item, name)?.as_str());
    let text_about = |names: &[&str]| names.iter().find_map(|name| member(about?, name)?.as_str());
    let title = text(&["title", "name", "filename"]).or_else(|| text_about(&["title"]));
    let score = ["score", "similarity", "relevance"].into_iter().find_map(|name| member(item, name)?.as_f64());
    Some(Passage {
        id,
        title: title.unwrap_or_default(),
        text: text(&TEXTS).or_else(|| text_about(&TEXTS)).unwrap_or_default(),
        score: score.unwrap_or_default(),
        item,
    })
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

/// A member by its name, as written or as .NET and Go write it: `doc_id` is `DocId`.
fn member<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    members.get(name).or_else(|| {
        let words = name
            .split('_')
            .map(|word| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default());
        members.get(&words.collect::<String>())
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
        ] {
            let found = passages(&result).expect("a list");
            assert_eq!((found[0].id.as_str(), found[0].text, found[0].score), ("a.md", "text", 0.5), "{result}");
        }
        assert_eq!(passages(&json!([])).map(|list| list.len()), Some(0));
        for unreadable in [json!("words"), json!({"found": "x"}), json!(["words"]), json!({"results": [{"n": {}}]})] {
            assert!(passages(&unreadable).is_none(), "{unreadable}");
        }
    }
}
