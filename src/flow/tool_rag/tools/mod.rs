//! The tools of `tool-rag`, one file each: parameters, schema, rules and implementation.

mod generate_response;
pub mod index_keywords;
mod knowledge_base_search;
mod perplexity_search;

use super::ToolRag;
use crate::flow::tools::Tool;

pub(crate) const KNOWLEDGE_BASE_SEARCH: &str = "knowledge_base_search";
/// Asks the external search service.
pub(crate) const PERPLEXITY_SEARCH: &str = "perplexity_search";
/// Stores an external answer under keywords.
pub(crate) const INDEX_KEYWORDS: &str = "index_keywords";
/// Answers the user.
pub(crate) const GENERATE_RESPONSE: &str = "generate_response";

/// All tools, in the order in which they are offered.
pub(super) static TOOLS: [&Tool<ToolRag>; 4] =
    [&knowledge_base_search::TOOL, &perplexity_search::TOOL, &index_keywords::TOOL, &generate_response::TOOL];
