//! Decodes tool results of an unknown agent into the results of a trace.
//!
//! A result without recognisable passages is kept as a document, and metrics that need passages have no unit for it.

use crate::platform::secrets;
use crate::provider::tool_result::{self, name_of};
pub(super) use crate::provider::tool_result::{document, query, result_id, words_and_names};
use crate::trace::{Hit, IndexResult, SourceRef};
use serde_json::{Map, Value};

/// The error that a result reports: its message, and whether a retry may help, which it does unless the result denies it.
pub(super) fn error(result: &Value) -> Option<(String, bool)> {
    tool_result::error(result).map(|(words, retryable)| (words, retryable.unwrap_or(true)))
}

/// The passages in a search result, whole: a trial's end shortens them. `None` if it holds no list of objects with names.
pub(super) fn passages(result: &Value) -> Option<Vec<Hit>> {
    let hit = |found: tool_result::Passage<'_>| Hit {
        id: found.id,
        title: found.title.to_owned(),
        raw_score: found.score,
        excerpt: secrets::clean(found.text).into_owned(),
        learned: None,
    };
    Some(tool_result::passages(result)?.into_iter().map(hit).collect())
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

fn source(item: &Value) -> Option<SourceRef> {
    let none = Map::new();
    let members = item.as_object().unwrap_or(&none);
    let text = |names: &[&str]| names.iter().find_map(|name| members.get(*name)?.as_str()).unwrap_or_default();
    let id = name_of(item)?;
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
