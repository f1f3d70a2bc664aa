//! Decodes tool results of an unknown agent by the field names that such results usually have.
//!
//! Nothing is invented: a result without recognisable passages is kept as a document, and metrics that need passages
//! have no unit for it.

use crate::platform::secrets;
use crate::trace::{Hit, IndexResult, SourceRef};
use serde_json::{Map, Value};

/// Characters of a hit's text that are written to the trace.
const EXCERPT: usize = 160;
const LISTS: [&str; 7] = ["chunks", "results", "passages", "documents", "hits", "matches", "items"];
const IDS: [&str; 10] =
    ["id", "chunk_id", "passage_id", "doc_id", "document_id", "source", "url", "path", "filename", "file"];
const TEXTS: [&str; 5] = ["text", "content", "snippet", "passage", "body"];

/// A tool's result as the agent showed it to its model: parsed if it is JSON, else as text.
pub(super) fn document(content: &str) -> Value {
    serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.to_owned()))
}

/// The error that a result reports: its message, and whether a retry may help.
pub(super) fn error(result: &Value) -> Option<(String, bool)> {
    let retryable = |value: &Value| value.get("retryable").and_then(Value::as_bool);
    match result {
        Value::String(text) => {
            let head: String = text.trim_start().chars().take(5).collect();
            head.eq_ignore_ascii_case("error").then(|| (text.clone(), true))
        }
        Value::Object(members) => {
            let error = members.get("error").filter(|error| !matches!(error, Value::Null | Value::Bool(false)))?;
            let words = ["message", "reason"].into_iter().find_map(|name| error.get(name)?.as_str());
            let words = words.or_else(|| error.as_str()).map_or_else(|| error.to_string(), str::to_owned);
            Some((words, retryable(error).or_else(|| retryable(result)).unwrap_or(true)))
        }
        _ => None,
    }
}

/// The passages in a search result; `None` if it holds no list of objects with names.
pub(super) fn passages(result: &Value) -> Option<Vec<Hit>> {
    let list = match result {
        Value::Array(items) => items,
        Value::Object(members) => LISTS.into_iter().find_map(|name| members.get(name)?.as_array())?,
        _ => return None,
    };
    list.iter().map(passage).collect()
}

fn passage(item: &Value) -> Option<Hit> {
    let item = item.as_object()?;
    let id = IDS.into_iter().find_map(|name| text_or_number(item.get(name)?))?;
    let text = |names: &[&str]| names.iter().find_map(|name| item.get(*name)?.as_str()).unwrap_or_default();
    Some(Hit {
        id,
        title: text(&["title", "name", "filename"]).to_owned(),
        raw_score: ["score", "similarity", "relevance"].into_iter().find_map(|n| item.get(n)?.as_f64()).unwrap_or(0.0),
        excerpt: secrets::beginning(text(&TEXTS), EXCERPT),
        learned: None,
    })
}

fn text_or_number(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The search query: the argument `query`, or the first argument that is text.
pub(super) fn query(arguments: &Value) -> String {
    let members = arguments.as_object();
    let named = ["query", "q", "question"].into_iter().find_map(|name| members?.get(name)?.as_str());
    named.or_else(|| members?.values().find_map(Value::as_str)).unwrap_or_default().to_owned()
}

/// The id that an agent gave to an external answer.
pub(super) fn result_id(result: &Value) -> Option<String> {
    ["result_id", "id"].into_iter().find_map(|name| text_or_number(result.get(name)?))
}

/// The keywords stored for a result. Whether they can be found again is not visible.
pub(super) fn indexed(arguments: &Value, result: &Value) -> IndexResult {
    let words = |value: Option<&Value>| -> Vec<String> {
        value
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|one| Some(one.as_str()?.to_lowercase()))
            .collect()
    };
    let of = arguments.as_object().into_iter().flatten().find_map(|(name, value)| {
        (name.ends_with("result_id") || name == "result").then(|| value.as_str().unwrap_or_default().to_owned())
    });
    IndexResult {
        result: of.unwrap_or_default(),
        keywords: words(arguments.get("keywords")),
        merged: words(result.get("merged")),
        read_back: Vec::new(),
    }
}

/// The sources that a response names.
pub(super) fn sources(arguments: &Value) -> Vec<SourceRef> {
    let list = ["sources", "citations"].into_iter().find_map(|name| arguments.get(name)?.as_array());
    list.into_iter().flatten().filter_map(source).collect()
}

/// The sources in a reply; `None` if one of them has no name, because the list would be incomplete.
pub(super) fn replied_sources(list: &Value) -> Option<Vec<SourceRef>> {
    match list {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(source).collect(),
        _ => None,
    }
}

/// The text of a passage as an agent passes it on, and the names by which it may be shown.
pub(super) fn words_and_names(item: &Value) -> (Option<&str>, Vec<String>) {
    let members = item.as_object();
    let words = TEXTS.into_iter().find_map(|name| members?.get(name)?.as_str());
    let named = IDS.into_iter().filter_map(|name| text_or_number(members?.get(name)?));
    (words, text_or_number(item).into_iter().chain(named).collect())
}

fn source(item: &Value) -> Option<SourceRef> {
    let none = Map::new();
    let members = item.as_object().unwrap_or(&none);
    let text = |names: &[&str]| names.iter().find_map(|name| members.get(*name)?.as_str()).unwrap_or_default();
    let id = text_or_number(item).or_else(|| IDS.into_iter().find_map(|name| text_or_number(members.get(name)?)))?;
    let web = id.starts_with("http://") || id.starts_with("https://");
    let kind = match text(&["kind", "type"]) {
        kind @ ("internal" | "external") => kind,
        _ if web => "external",
        _ => "internal",
    };
    Some(SourceRef { kind: kind.to_owned(), title: text(&["title", "name"]).to_owned(), id, number: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn passages_are_read_by_their_usual_names_or_not_at_all() {
        let found =
            passages(&json!({"results": [{"source": "a.md", "content": "text", "score": 0.5}]})).expect("a list");
        assert_eq!((found[0].id.as_str(), found[0].excerpt.as_str(), found[0].raw_score), ("a.md", "text", 0.5));
        assert_eq!(passages(&json!([])).map(|list| list.len()), Some(0));
        for unreadable in [json!("words"), json!({"found": "x"}), json!(["words"]), json!({"results": [{"n": {}}]})] {
            assert!(passages(&unreadable).is_none(), "{unreadable}");
        }
    }

    #[test]
    fn errors_are_told_from_results() {
        assert_eq!(error(&json!({"error": {"message": "down", "retryable": false}})), Some(("down".into(), false)));
        assert_eq!(error(&json!({"error": "down"})), Some(("down".into(), true)));
        assert_eq!(error(&document("Error: down")), Some(("Error: down".into(), true)));
        for fine in [json!({"error": null, "chunks": []}), json!({"chunks": []}), json!("all is well"), json!([1])] {
            assert_eq!(error(&fine), None, "{fine}");
        }
    }

    #[test]
    fn sources_are_texts_or_objects_and_addresses_are_external() {
        let arguments = json!({"sources": ["kb-1", {"url": "https://a", "title": "A"}, {"type": "internal", "id": "https://b"}, 3, {}]});
        let seen: Vec<_> = sources(&arguments).into_iter().map(|source| (source.kind, source.id)).collect();
        let pair = |kind: &str, id: &str| (kind.to_owned(), id.to_owned());
        assert_eq!(
            seen,
            [
                pair("internal", "kb-1"),
                pair("external", "https://a"),
                pair("internal", "https://b"),
                pair("internal", "3")
            ]
        );
    }
}
