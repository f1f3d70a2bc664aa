//! `perplexity_search {query, context?}`: an answer from outside, with citations.

use super::{Refusal, guard, sanitise};
use crate::provider::{Attempted, SearchAnswer, SearchQuestion, SearchService};
use serde_json::{Map, Value, json};

const MAX_QUERY: usize = 500;
const MAX_CONTEXT: usize = 4_000;

/// The parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerplexitySearch {
    /// What to ask.
    pub query: String,
    /// What is known already.
    pub context: Option<String>,
}

/// JSON Schema of the arguments.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY,
                      "description": "A question for the open web that names exactly what the knowledge base lacks."},
            "context": {"type": "string", "maxLength": MAX_CONTEXT,
                        "description": "What the knowledge base did say, in a few sentences."}
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

impl PerplexitySearch {
    pub(super) fn from_arguments(object: &Map<String, Value>) -> Result<Self, Refusal> {
        let raw = object.get("query").and_then(Value::as_str).unwrap_or_default();
        let query = sanitise::line(raw);
        sanitise::length("query", &query, 1, MAX_QUERY)?;
        guard::inspect("query", raw)?;
        let raw = object.get("context").and_then(Value::as_str).unwrap_or_default();
        let context = sanitise::text(raw);
        sanitise::length("context", &context, 0, MAX_CONTEXT)?;
        guard::inspect("context", raw)?;
        Ok(Self { query, context: (!context.is_empty()).then_some(context) })
    }
}

/// Asks the service.
pub async fn run(call: &PerplexitySearch, service: &dyn SearchService, model: &str) -> Attempted<SearchAnswer> {
    let question = SearchQuestion { query: call.query.clone(), context: call.context.clone(), model: model.to_owned() };
    service.ask(&question).await
}

/// The tool message: the answer under the id that `index_keywords` and later searches use.
pub fn for_model(result: &str, call: &PerplexitySearch, answer: &SearchAnswer) -> String {
    let citations: Vec<Value> =
        answer.citations.iter().map(|citation| json!({"title": citation.title, "url": citation.url})).collect();
    json!({
        "result_id": result,
        "answer": answer.text,
        "citations": citations,
        "metadata": {"query": call.query, "model": answer.model}
    })
    .to_string()
}
