//! The tools that a model is offered: definitions as data, parameters checked, one file a tool.
//!
//! A call comes as the model wrote it. [`read`] takes it through the pipeline: JSON, schema, sanitising, lengths, the
//! guard against hostile patterns, the tool's own rules. What passes is a [`Call`] with typed parameters; what does
//! not is a [`Refusal`] with a cause, a reason and guidance that a model can act on. Nothing here knows which tool is
//! due when: that is the flow's.

mod check;
pub mod generate_response;
pub mod index_keywords;
pub mod knowledge_base_search;
pub mod perplexity_search;

pub use check::{Call, ReadCall, read};
pub use generate_response::GenerateResponse;
pub use index_keywords::IndexKeywords;
pub use knowledge_base_search::KnowledgeBaseSearch;
pub use perplexity_search::PerplexitySearch;

use crate::chat::ToolDefinition;
use crate::flow::tools::{Refusal, guard, sanitise};
use serde_json::Value;

/// Searches the knowledge base.
pub const KNOWLEDGE_BASE_SEARCH: &str = "knowledge_base_search";
/// Asks the external search service.
pub const PERPLEXITY_SEARCH: &str = "perplexity_search";
/// Keeps an external answer under keywords.
pub const INDEX_KEYWORDS: &str = "index_keywords";
/// Answers the user.
pub const GENERATE_RESPONSE: &str = "generate_response";

/// All tools, in the order in which they are offered.
pub const NAMES: [&str; 4] = [KNOWLEDGE_BASE_SEARCH, PERPLEXITY_SEARCH, INDEX_KEYWORDS, GENERATE_RESPONSE];

/// The definition of one tool under this description; `None` for a name that is no tool.
pub fn definition(name: &str, description: &str) -> Option<ToolDefinition> {
    let parameters = schema(name)?;
    Some(ToolDefinition { name: name.to_owned(), description: description.trim().to_owned(), parameters })
}

/// JSON Schema of one tool's arguments; `None` for a name that is no tool.
pub fn schema(name: &str) -> Option<Value> {
    match name {
        KNOWLEDGE_BASE_SEARCH => Some(knowledge_base_search::schema()),
        PERPLEXITY_SEARCH => Some(perplexity_search::schema()),
        INDEX_KEYWORDS => Some(index_keywords::schema()),
        GENERATE_RESPONSE => Some(generate_response::schema()),
        _ => None,
    }
}
