//! `nuclia_rag {query}`: stores the answer of the managed retrieval service as an artifact, and returns what the model
//! needs to pass it on.
//!
//! Every result has `status`, `message_to_llm` and, if the service reports it, `nuclia_learning_id`; a success names
//! its artifact. The answer's text is not sent to the model: the artifact is inserted where the model embeds it.

use super::NUCLIA_RAG;
use crate::flow::managed_rag::template::{Prepared, prepare};
use crate::flow::managed_rag::{ManagedRag, artifact, citations, memory::KeptArtifact};
use crate::flow::tools::search::EXCERPT;
use crate::flow::tools::{Declaration, Failure, Output, Refusal, Scope, Sent, Tool, ToolError, guard};
use crate::provider::{AskAnswer, AskStatus};
use crate::trace::{Artifact, Hit, ManagedAnswer, ManagedStatus, Role, SearchResult, ToolResult};
use serde_json::{Map, Value, json};

pub(super) static TOOL: Tool<ManagedRag> = Tool {
    declaration: Declaration::new(NUCLIA_RAG, Role::Knowledge, schema).with_error(error),
    run: |arguments, scope| Box::pin(run(arguments, scope)),
};

const MAX_QUERY: usize = 1_000;

/// Guidance for the model after a failure: while a retry can help, and when none can.
const GUIDANCE: [&str; 2] = [
    "Try once more with the same query.",
    "Tell the user that the documents could not be asked, and why; do not answer from memory.",
];

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY,
                      "description": "One complete question that can be understood without the conversation."}
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

/// The result of a failed call, in addition to the fields of every tool error.
fn error(message: String) -> String {
    let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(&message) else { return message };
    let part =
        |name: &str| fields.get("error").and_then(|error| error.get(name)?.as_str()).unwrap_or_default().to_owned();
    let words = format!("The documents could not be asked: {}. {}", part("reason"), part("guidance"));
    fields.insert("status".into(), "error".into());
    fields.insert("message_to_llm".into(), words.into());
    Value::Object(fields).to_string()
}

fn query(object: &Map<String, Value>) -> Result<String, Refusal> {
    guard::line("query", object.get("query").and_then(Value::as_str).unwrap_or_default(), MAX_QUERY)
}

/// Asks the service and creates the artifact of its answer.
async fn run(arguments: &Map<String, Value>, scope: Scope<'_, ManagedRag>) -> Result<Output, ToolError> {
    let query = query(arguments)?;
    let env = scope.env;
    let (Some(service), Some(settings)) = (&env.managed_retrieval, &env.settings.managed_retrieval) else {
        return Err(failed("not_configured", "no managed retrieval service is configured".to_owned()));
    };
    let prepared = prepare(settings, &query, &scope.own.context).map_err(|missing| {
        failed("missing_parameters", format!("the conversation does not give: {}", missing.join(", ")))
    })?;
    let attempted = service.ask(&prepared.request).await;
    let sent = Sent { service: "managed_retrieval", attempts: attempted.attempts };
    let answer = match attempted.result {
        Err(error) => return Err(ToolError::of_service("the retrieval service", error, GUIDANCE, sent)),
        Ok(answer) => match &env.faults {
            Some(faults) => AskAnswer { text: faults.change_text(answer.text), ..answer },
            None => answer,
        },
    };
    let found = answer.status == AskStatus::Success && !answer.text.trim().is_empty();
    let hits = if found { hits(&answer) } else { Vec::new() };
    let managed = if found {
        let cited = citations::cite(&answer, settings.inline_citation_links);
        let made = artifact::create(settings, &query, &cited, &scope.memory.all());
        let kept = KeptArtifact { artifact: made.clone(), sources: cited.sources.clone() };
        scope.own.made.push(kept.name());
        scope.memory.artifacts.push(kept);
        let plain = answered(ManagedStatus::Success, prepared, answer);
        let (citations, sources, artifact) = (cited.citations, cited.sources, Some(made));
        let notes = [cited.notes, plain.notes].concat();
        ManagedAnswer { citations, sources, notes, artifact, ..plain }
    } else {
        answered(ManagedStatus::NoAnswerFound, prepared, answer)
    };
    let message = for_model(&managed);
    let (kb_id, managed) = (settings.kb_id.clone(), Some(Box::new(managed)));
    Ok(Output {
        result: ToolResult::Search(SearchResult { managed, ..SearchResult::of(query, kb_id, hits) }),
        message,
        sent,
    })
}

/// A call that never reached the service and would fail again.
fn failed(cause: &'static str, reason: String) -> ToolError {
    ToolError::Failed(Box::new(Failure { transient: false, ..Failure::of(cause, reason, GUIDANCE) }))
}

/// The result of an answer before its citations are numbered.
fn answered(status: ManagedStatus, prepared: Prepared, answer: AskAnswer) -> ManagedAnswer {
    let Prepared { request, filter_applied, missing_filter_parameters } = prepared;
    let skipped = answer.skipped.iter().map(|kind| format!("An item of the unknown type `{kind}` was skipped."));
    ManagedAnswer {
        status,
        learning_id: answer.learning_id,
        asked: request.query,
        audit: request.audit_metadata,
        filter_applied,
        applied_filter: request.filter_expression,
        missing_filter_parameters,
        text: answer.text,
        citations: Vec::new(),
        sources: Vec::new(),
        notes: skipped.collect(),
        artifact: None,
        input_tokens: answer.usage.input,
        output_tokens: answer.usage.output,
    }
}

/// The pages found, each once, best first; a passage of no file stands under its resource and field.
fn hits(answer: &AskAnswer) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    for paragraph in &answer.paragraphs {
        let id = citations::page_id(paragraph).unwrap_or_else(|| citations::key(paragraph));
        if hits.iter().any(|hit| hit.id == id) {
            continue;
        }
        let (title, excerpt) = (paragraph.title.clone(), crate::knowledge::excerpt(&paragraph.text, EXCERPT));
        hits.push(Hit { id, title, raw_score: paragraph.score, excerpt, ..Hit::default() });
    }
    hits
}

/// The tool message.
fn for_model(managed: &ManagedAnswer) -> String {
    let message = match &managed.artifact {
        Some(artifact) => format!(
            "The documents answer. Put the answer into your reply with this embed, letter by letter, on a line of its own: {}",
            artifact::embed_of(artifact)
        ),
        None => "The documents hold no answer to this. Say so in the sentence that you were given for it.".to_owned(),
    };
    let mut message = json!({
        "status": managed.status.as_str(),
        "nuclia_learning_id": managed.learning_id,
        "message_to_llm": message,
    });
    if let Some(Artifact { filename, version, mime_type, .. }) = &managed.artifact {
        message["response_artifact"] = json!({"filename": filename, "version": version, "mime_type": mime_type});
    }
    if let Some(applied) = managed.filter_applied {
        message["filter_applied"] = applied.into();
    }
    if let Some(filter) = &managed.applied_filter {
        message["applied_filter"] = filter.clone();
    }
    if !managed.missing_filter_parameters.is_empty() {
        message["missing_filter_parameters"] = json!(managed.missing_filter_parameters);
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_as_a_status_with_a_message_and_says_whether_to_try_again() {
        let plain = json!({"error": {"cause": "server_error", "reason": "the retrieval service failed", "guidance": "Wait.", "retryable": true}});
        let told: Value = serde_json::from_str(&error(plain.to_string())).expect("JSON");
        assert_eq!((&told["status"], &told["error"]["retryable"]), (&json!("error"), &json!(true)));
        let words = told["message_to_llm"].as_str().expect("words");
        assert!(words.contains("the retrieval service failed. Wait."), "{words}");
    }

    #[test]
    fn hostile_and_empty_queries_are_refused() {
        let cause = |text: &str| query(json!({"query": text}).as_object().expect("an object")).map_err(|no| no.cause);
        assert_eq!(cause(" What does  E-17 mean? "), Ok("What does E-17 mean?".into()));
        assert_eq!(cause("  "), Err("length"));
        assert_eq!(cause("x' UNION SELECT password FROM users --"), Err("hostile"));
    }
}
