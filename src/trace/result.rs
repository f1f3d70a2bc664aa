//! Results of tools.

use super::{ManagedAnswer, ManagedStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolResult {
    /// A search of the knowledge base.
    Search(SearchResult),
    /// An answer from an external search service.
    External(ExternalResult),
    /// Keywords were indexed.
    Indexed(IndexResult),
    /// The response was accepted.
    Responded,
    /// Any other tool's result, as JSON; if long, its beginning as text.
    Other(Value),
}

impl ToolResult {
    /// Largest size of an untyped result, in characters of JSON: a trace is not a store for an agent's data.
    pub const MOST: usize = 4_000;

    /// In place of the result of a tool that ran at the provider, whose answer does not show it.
    pub(crate) const UNSHOWN: &str = "(not shown by the provider)";

    /// The result as JSON without its kind; `None` if it has only a kind.
    pub fn value(&self) -> Option<Cow<'_, Value>> {
        match self {
            Self::Search(found) => serde_json::to_value(found).ok().map(Cow::Owned),
            Self::External(found) => serde_json::to_value(found).ok().map(Cow::Owned),
            Self::Indexed(indexed) => serde_json::to_value(indexed).ok().map(Cow::Owned),
            Self::Responded => None,
            Self::Other(value) => Some(Cow::Borrowed(value)),
        }
    }

    /// The names by which what it gave can be cited, with the kind of the source: ids of hits are `internal`, addresses
    /// that a learned entry is made of, pages and the id of an external answer are `external`.
    pub(crate) fn names(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Search(search) => {
                let learned = search.hits.iter().filter_map(|hit| hit.learned.as_ref());
                let pages = learned.flat_map(|one| &one.urls).map(|url| ("external", url.as_str()));
                let names = search.hits.iter().flat_map(|hit| hit.names.iter().chain([&hit.id]));
                names.map(|name| ("internal", name.as_str())).chain(pages).collect()
            }
            Self::External(found) => {
                let pages = found.citations.iter().map(|page| ("external", page.url.as_str()));
                pages.chain([("external", found.result.as_str())]).collect()
            }
            Self::Indexed(_) | Self::Responded | Self::Other(_) => Vec::new(),
        }
    }

    /// The external service's answer, if it is one.
    pub fn external(&self) -> Option<&ExternalResult> {
        if let Self::External(found) = self { Some(found) } else { None }
    }

    /// The indexing result, if it is one.
    pub fn indexed(&self) -> Option<&IndexResult> {
        if let Self::Indexed(index) = self { Some(index) } else { None }
    }

    /// The result of a tool without a role: its JSON or, if longer than [`ToolResult::MOST`], its beginning with the
    /// number of characters left out.
    pub fn other(value: Value) -> Self {
        let text = value.to_string();
        let Some((end, _)) = text.char_indices().nth(Self::MOST) else { return Self::Other(value) };
        let more = text[end..].chars().count();
        Self::Other(Value::String(format!("{}… ({more} more characters)", &text[..end])))
    }
}

/// Hits of one search, with and without learned entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// The query that was searched, after sanitising.
    pub query: String,
    /// Which knowledge base.
    pub kb_id: String,
    /// Hits returned to the model, best first.
    pub hits: Vec<Hit>,
    /// Ids that the same search returns without the keyword index, best first.
    pub without_learned: Vec<String>,
    /// What the result of an external agent's search says beside its hits, a line for each member; at most 1,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub beside: String,
    /// The managed retrieval service's answer, if one was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<Box<ManagedAnswer>>,
}

impl SearchResult {
    /// A search without learned entries.
    pub(crate) fn of(query: String, kb_id: String, hits: Vec<Hit>) -> Self {
        let without_learned = hits.iter().map(|hit| hit.id.clone()).collect();
        Self { query, kb_id, hits, without_learned, beside: String::new(), managed: None }
    }

    /// Whether the search found something: a passage, or what a managed retrieval service answered from.
    pub(crate) fn found_something(&self) -> bool {
        let answered = |managed: &ManagedAnswer| managed.status == ManagedStatus::Success;
        !self.hits.is_empty() || self.managed.as_deref().is_some_and(answered)
    }
}

/// One hit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// Stable id of the chunk (`document#n`) or of the learned entry (`learned:…`).
    pub id: String,
    /// Title of its document, or the query that the entry was learned from.
    pub title: String,
    /// The raw score of its index; the model sees one that depends on rank alone.
    pub raw_score: f64,
    /// The first characters of its text, at most 160.
    pub excerpt: String,
    /// Other names by which an external agent may cite it: its address, file or title.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// What else the result of an external agent's search says of it, a line for each member; at most 1,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub beside: String,
    /// For a learned entry: the result it was learned from, and the keywords that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

impl Hit {
    /// Characters of its text that a trace keeps at most.
    pub(crate) const EXCERPT: usize = 160;
    /// Characters of what is said beside its text.
    pub(crate) const BESIDE: usize = 1_000;
}

/// Origin of a learned entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Learned {
    /// The external result's id, generated by the flow.
    pub result: String,
    /// Ordinal of the conversation that learned it.
    pub conversation: u32,
    /// The keywords that matched the search.
    pub keywords: Vec<String>,
    /// Addresses cited in the external answer: they may be cited where the entry was shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

/// A page that an external answer cites. Up to version 4 a list of title and address, which is still read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CitedPage {
    /// Its title; may be empty.
    pub title: String,
    /// Its address.
    pub url: String,
}

impl ExternalResult {
    /// The model of what a search engine found.
    pub(crate) const NO_MODEL: &str = "no model";

    /// Whether a model wrote it, which numbers its citations and costs tokens.
    pub(crate) fn is_written(&self) -> bool {
        self.model != Self::NO_MODEL
    }
}

/// An external search service's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalResult {
    /// Its id, generated by the flow.
    pub result: String,
    /// The query that was sent.
    pub query: String,
    /// The answer's text.
    pub answer: String,
    /// Its citations, in order.
    pub citations: Vec<CitedPage>,
    /// The service's model; `no model` for what a search engine found, which costs no tokens.
    pub model: String,
    /// Input tokens of the service, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Input tokens from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Output tokens of the service, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// Result of indexing keywords.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexResult {
    /// The external result that the keywords belong to.
    pub result: String,
    /// The keywords that were stored, normalised.
    pub keywords: Vec<String>,
    /// Stored keywords that existed before.
    pub merged: Vec<String>,
    /// Stored keywords whose read-back by exact keyword returned this result as provenance.
    pub read_back: Vec<String>,
}

/// Whether a document of a trace may hold the nearest number in place of an integer beyond 64 bits.
pub(crate) fn may_be_nearest(document: &Value) -> bool {
    match document {
        Value::Array(items) => items.iter().any(may_be_nearest),
        Value::Object(members) => members.values().any(may_be_nearest),
        Value::Number(number) => {
            // An id or an account has some forty digits at most, and one of few digits other than zeros is kept exactly.
            let digits =
                || number.to_string().bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
            let read = number.as_f64().filter(|_| number.is_f64());
            let is_beyond = |read: f64| read >= u64::MAX as f64 || read <= i64::MIN as f64;
            read.is_some_and(|read| is_beyond(read) && read.abs() < 1e40) && digits() >= 16
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_64_bits_may_be_the_nearest_one() {
        for (text, may_be) in [
            ("[18446744073709551615, -9223372036854775808, 1e19, 0.1]", false),
            (r#"{"a":[123456789012345678901]}"#, true),
            ("-9223372036854775809", true),
            ("[1e20, 6.02214076e23, -1.989e30, 1.7976931348623157e308, 500000000000000000000]", false),
            (r#""123456789012345678901234567890""#, false),
        ] {
            assert_eq!(may_be_nearest(&serde_json::from_str(text).expect("JSON")), may_be, "{text}");
        }
    }
}
