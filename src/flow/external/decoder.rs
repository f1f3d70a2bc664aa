//! Decodes tool results of an unknown agent into the results of a trace.
//!
//! A result without recognisable passages is kept as a document, and metrics that need passages have no unit for it.

use crate::platform::secrets;
use crate::provider::chat::Usage;
use crate::provider::tool_result::{self, is_address, leaves, name_of};
pub(super) use crate::provider::tool_result::{document, query, result_id, words_and_names};
use crate::provider::{Citation, SearchAnswer};
use crate::trace::{ExternalResult, Hit, IndexResult, SearchResult, SourceRef};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The error that a result reports: its message, and whether a retry may help, which it does unless the result denies it.
pub(super) fn error(result: &Value) -> Option<(String, bool)> {
    tool_result::error(result).map(|(words, retryable)| (words, retryable.unwrap_or(true)))
}

/// The passages in a search result, whole: a trial's end shortens them. `None` if it holds no list of objects with names.
pub(super) fn passages(result: &Value) -> Option<Vec<Hit>> {
    let hit = |found: tool_result::Passage<'_>| Hit {
        title: found.title.to_owned(),
        raw_score: found.score,
        excerpt: secrets::clean(found.text).into_owned(),
        names: found.other_names().into_iter().map(|name| secrets::clean(&name).into_owned()).collect(),
        beside: secrets::beginning(&found.beside(), Hit::BESIDE),
        id: found.id,
        learned: None,
    };
    Some(tool_result::passages(result)?.into_iter().map(hit).collect())
}

/// A search with its passages, and what its result says beside them; `None` if [`passages`] finds none.
pub(super) fn search(query: String, kb_id: String, result: &Value) -> Option<SearchResult> {
    let beside = secrets::beginning(&tool_result::beside_passages(result), Hit::BESIDE);
    Some(SearchResult { beside, ..SearchResult::of(query, kb_id, passages(result)?) })
}

/// The pages that a search engine found, with all that its result says of them and with every name by which they may be
/// cited; no model wrote it. `None` if [`passages`] finds none.
pub(super) fn pages(result: &Value) -> Option<SearchAnswer> {
    let (mut citations, mut known) = (Vec::new(), BTreeSet::new());
    for page in tool_result::passages(result)? {
        let addresses = page.item.values().flat_map(texts).filter(|text| is_address(text));
        let names = [page.id].into_iter().chain(tool_result::names_in(page.item)).chain(addresses);
        let new = names.filter(|url| known.insert((page.title, url.clone())));
        citations.extend(new.map(|url| Citation { title: page.title.to_owned(), url, snippet: String::new() }));
    }
    let text = secrets::clean(&texts(result).collect::<Vec<_>>().join("\n")).into_owned();
    Some(SearchAnswer { text, citations, model: ExternalResult::NO_MODEL.to_owned(), usage: Usage::default() })
}

/// Every text and number of a document.
fn texts(value: &Value) -> impl Iterator<Item = String> + '_ {
    leaves(value).into_iter().filter_map(|leaf| match leaf {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
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

/// The kind of what gave a source of that name in the conversation: `internal` or `external`.
pub(super) type KindOf<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

/// The sources that a response names.
pub(super) fn sources(arguments: &Value, kind_of: KindOf<'_>) -> Vec<SourceRef> {
    let list = ["sources", "citations"].into_iter().find_map(|name| arguments.get(name)?.as_array());
    list.into_iter().flatten().filter_map(|item| source(item, kind_of)).collect()
}

/// The sources in a reply; `None` if one of them has no name, because the list would be incomplete.
pub(super) fn replied_sources(list: &Value, kind_of: KindOf<'_>) -> Option<Vec<SourceRef>> {
    match list {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(|item| source(item, kind_of)).collect(),
        _ => None,
    }
}

/// A source of the kind that it states, else of that of its giver; of an unknown giver, addresses are external.
fn source(item: &Value, kind_of: KindOf<'_>) -> Option<SourceRef> {
    let none = Map::new();
    let members = item.as_object().unwrap_or(&none);
    let text = |names: &[&str]| names.iter().find_map(|name| members.get(*name)?.as_str()).unwrap_or_default();
    let id = name_of(item)?;
    let kind = match text(&["kind", "type"]) {
        kind @ ("internal" | "external") => kind,
        _ => kind_of(&id).unwrap_or(if is_address(&id) { "external" } else { "internal" }),
    };
    Some(SourceRef { kind: kind.to_owned(), title: text(&["title", "name"]).to_owned(), id, number: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sources_are_texts_or_objects_and_addresses_are_external_unless_a_search_gave_them() {
        let arguments = json!({"sources": ["kb-1", {"url": "https://a", "title": "A"}, {"type": "internal", "id": "https://b"}, 3, {}]});
        let seen = |kind_of: KindOf<'_>| -> Vec<(String, String)> {
            sources(&arguments, kind_of).into_iter().map(|source| (source.kind, source.id)).collect()
        };
        let pair = |kind: &str, id: &str| (kind.to_owned(), id.to_owned());
        assert_eq!(
            seen(&|_| None),
            [
                pair("internal", "kb-1"),
                pair("external", "https://a"),
                pair("internal", "https://b"),
                pair("internal", "3")
            ]
        );
        let other = |id: &str| Some(if id == "https://a" || id == "https://b" { "internal" } else { "external" });
        let kinds: Vec<String> = seen(&other).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["external", "internal", "internal", "external"], "what is stated stays");
    }
}
