//! `perplexity_search {query, context?}`: an external answer with citations.

use super::PERPLEXITY_SEARCH;
use crate::flow::AgentContext;
use crate::flow::tool_rag::ToolRag;
use crate::flow::tools::search::external_answer;
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Sent, Tool, ToolError, guard, sanitise};
use crate::knowledge::{ExternalRecord, question_id};
use crate::provider::{SearchAnswer, SearchQuestion};
use crate::trace::{Role, ToolResult};
use serde_json::{Map, Value, json};

pub(super) static TOOL: Tool<ToolRag> = Tool {
    declaration: Declaration::new(PERPLEXITY_SEARCH, Role::External, schema).offered_with(|services| services.search),
    run: |arguments, scope| Box::pin(run(arguments, scope)),
};

/// Guidance for the model after a failure: while a retry can help, and when none can.
const GUIDANCE: [&str; 2] = [
    "Try once more, or answer from the knowledge base alone and say what is missing.",
    "Answer from the knowledge base alone and say what is missing.",
];

const MAX_QUERY: usize = 500;
const MAX_CONTEXT: usize = 4_000;

/// The parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PerplexitySearch {
    query: String,
    /// What is already known.
    context: Option<String>,
}

/// JSON Schema of the arguments.
fn schema() -> Value {
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
    fn from_arguments(object: &Map<String, Value>) -> Result<Self, Refusal> {
        let query = guard::line("query", object.get("query").and_then(Value::as_str).unwrap_or_default(), MAX_QUERY)?;
        let raw = object.get("context").and_then(Value::as_str).unwrap_or_default();
        let context = sanitise::text(raw);
        sanitise::length("context", &context, 0, MAX_CONTEXT)?;
        guard::inspect_context("context", raw)?;
        Ok(Self { query, context: (!context.is_empty()).then_some(context) })
    }
}

/// The answer as declared faults of the trial change it: empty, twice, or contradicted.
fn struck(env: &AgentContext, answer: SearchAnswer) -> SearchAnswer {
    let Some(faults) = &env.faults else { return answer };
    let text = faults.change_text(answer.text);
    let citations = if text.is_empty() { Vec::new() } else { answer.citations };
    SearchAnswer { text, citations, ..answer }
}

/// Asks the service. Its answer may be cited and requires keywords.
async fn run(arguments: &Map<String, Value>, scope: Scope<'_, ToolRag>) -> Result<Output, ToolError> {
    let call = PerplexitySearch::from_arguments(arguments)?;
    let env = scope.env;
    let (Some(service), Some(settings)) = (&env.search, &env.settings.search) else {
        let offered = env.settings.prompts.tools().iter().map(|tool| tool.name.as_str());
        return Err(Refusal::unknown_tool(PERPLEXITY_SEARCH, offered).into());
    };
    let (query, context, model) = (call.query.clone(), call.context.clone(), settings.name.clone());
    let attempted = service.ask(&SearchQuestion { query, context, model }).await;
    let sent = Sent { service: "search", attempts: attempted.attempts };
    let answer = match attempted.result {
        Err(error) => return Err(ToolError::of_service("the external service", error, GUIDANCE, sent)),
        Ok(answer) => struck(env, answer),
    };
    let memory = scope.memory;
    let result = format!("result-{}", memory.received.len() + 1);
    let message = for_model(&result, &call, &answer);
    memory.citable.asked = true;
    memory.citable.external.extend(answer.citations.iter().map(|citation| citation.url.clone()));
    memory.received.push(ExternalRecord {
        session: scope.session.to_owned(),
        conversation: scope.conversation,
        result: result.clone(),
        query: call.query.clone(),
        answer: answer.text.clone(),
        citations: answer.citations.iter().map(|one| (one.title.clone(), one.url.clone())).collect(),
        question: scope.question.to_owned(),
        question_id: question_id(scope.session, scope.conversation, scope.turn, scope.question),
    });
    Ok(Output { result: ToolResult::External(external_answer(result, call.query, answer)), message, sent })
}

/// The tool message: the answer under the id that `index_keywords` and later searches use.
fn for_model(result: &str, call: &PerplexitySearch, answer: &SearchAnswer) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_context_is_refused_and_empty_context_is_none() {
        let read = |arguments: &Value| PerplexitySearch::from_arguments(arguments.as_object().expect("is an object"));
        let hostile = json!({"query": "a", "context": "<script>alert(1)</script>"});
        assert_eq!(read(&hostile).expect_err("is refused").cause, "hostile");
        assert_eq!(read(&json!({"query": "a", "context": " "})).map(|call| call.context), Ok(None));
    }
}
