//! What tools gave.

use super::ManagedAnswer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// What a tool gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Any other tool's result, see [`ToolResult::other`].
    Other(Value),
}

impl ToolResult {
    /// Characters of JSON that a result without a type keeps at most: a trace is no store of an agent's data.
    pub const MOST: usize = 4_000;

    /// The result as JSON, without the word that says of what kind it is; `None` where there is nothing but that word.
    pub fn value(&self) -> Option<Cow<'_, Value>> {
        match self {
            Self::Search(found) => serde_json::to_value(found).ok().map(Cow::Owned),
            Self::External(found) => serde_json::to_value(found).ok().map(Cow::Owned),
            Self::Indexed(indexed) => serde_json::to_value(indexed).ok().map(Cow::Owned),
            Self::Responded => None,
            Self::Other(value) => Some(Cow::Borrowed(value)),
        }
    }

    /// The answer of the external service, where it is one.
    pub fn external(&self) -> Option<&ExternalResult> {
        if let Self::External(found) = self { Some(found) } else { None }
    }

    /// What was indexed, where keywords were.
    pub fn indexed(&self) -> Option<&IndexResult> {
        if let Self::Indexed(index) = self { Some(index) } else { None }
    }

    /// The result of a tool without a role: its JSON, or, where that is longer than [`ToolResult::MOST`], a text with
    /// its beginning and the number of characters left out.
    pub fn other(value: Value) -> Self {
        let text = value.to_string();
        let Some((end, _)) = text.char_indices().nth(Self::MOST) else { return Self::Other(value) };
        let more = text[end..].chars().count();
        Self::Other(Value::String(format!("{}… ({more} more characters)", &text[..end])))
    }
}

/// Hits of one search, with and without what was learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The query that was searched, after sanitising.
    pub query: String,
    /// Which knowledge base.
    pub kb_id: String,
    /// What the model was shown, best first.
    pub hits: Vec<Hit>,
    /// Ids of what the same search gives without the keyword index, best first.
    pub without_learned: Vec<String>,
    /// What a managed retrieval service made of the search, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed: Option<Box<ManagedAnswer>>,
}

/// One hit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Stable id of the chunk (`document#n`) or of the learned entry (`learned:…`).
    pub id: String,
    /// Title of its document, or the query that the entry was learned from.
    pub title: String,
    /// The raw score of its index; the model sees one that depends on rank alone.
    pub raw_score: f64,
    /// The first characters of its text, at most 160.
    pub excerpt: String,
    /// For a learned entry: the result it was learned from, and the keywords that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

/// Where a learned entry comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// The external result's id, as minted by the flow.
    pub result: String,
    /// Ordinal of the conversation that learned it.
    pub conversation: u32,
    /// The keywords that matched the search.
    pub keywords: Vec<String>,
    /// The addresses that the external answer cites: they may be cited where the entry was shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

/// An external search service's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalResult {
    /// The id that the flow minted for it.
    pub result: String,
    /// The query that was sent.
    pub query: String,
    /// The answer's text.
    pub answer: String,
    /// Its citations: (title, URL).
    pub citations: Vec<(String, String)>,
    /// The service's model.
    pub model: String,
    /// Tokens that the service read, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of these, from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens that it wrote, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// What a tool that keeps keywords did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexResult {
    /// The external result that the keywords belong to.
    pub result: String,
    /// The keywords that were stored, normalised.
    pub keywords: Vec<String>,
    /// Of these, the ones that were there before.
    pub merged: Vec<String>,
    /// Of these, the ones that a read-back by exact keyword found again with this result as provenance.
    pub read_back: Vec<String>,
}
