//! Perplexity's Agent API, on the service's side.
//!
//! Requests are decoded tolerantly, and errors are answered like those of the real service, with status 400 and an
//! `error`.

use super::api::tokens;
use super::search::SearchAnswer;
use crate::provider::wire::WireError;
use serde_json::{Value, json};

/// Reason why a request is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the body is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("searches are not streamed here; send `stream: false`")]
    SearchStream,
    #[error("`input` must be a text or a list of messages")]
    NoQuestion,
    #[error("give `model` or `preset`")]
    NoModel,
    #[error(transparent)]
    Embeddings(#[from] WireError),
}

pub(super) fn text_of(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Text given as a string, or as a list of parts with `text`.
fn flat(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| text_of(part, "text")).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// A decoded search request.
#[derive(Debug)]
pub(super) struct AgentBody {
    pub model: String,
    /// The question: all items of `input` in one text.
    pub question: String,
}

impl AgentBody {
    /// The question without context: the text before the first empty line.
    pub(super) fn asked(&self) -> &str {
        self.question.split("\n\n").next().unwrap_or_default()
    }
}

/// Decodes an Agent API request.
///
/// # Errors
/// The error, in words.
pub(super) fn read_agent(body: &Value) -> Result<AgentBody, RequestError> {
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        return Err(RequestError::SearchStream);
    }
    let question = match body.get("input") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| flat(item.get("content"))).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    if question.trim().is_empty() {
        return Err(RequestError::NoQuestion);
    }
    let model = body.get("model").or_else(|| body.get("preset")).and_then(Value::as_str);
    Ok(AgentBody { model: model.ok_or(RequestError::NoModel)?.to_owned(), question })
}

/// Encodes an Agent API response; annotations mark each `[n]` in the text, in characters.
pub(super) fn write_agent(request: &AgentBody, found: &SearchAnswer<'_>, id: &str) -> Value {
    let results: Vec<Value> = found
        .results
        .iter()
        .enumerate()
        .map(|(at, page)| {
            let mut result =
                json!({"id": at + 1, "title": page.title, "url": page.url, "snippet": page.snippet, "source": "web"});
            if let Some(date) = &page.date {
                result["date"] = json!(date);
            }
            result
        })
        .collect();
    let annotations: Vec<Value> = found
        .results
        .iter()
        .enumerate()
        .filter_map(|(at, page)| {
            let mark = format!("[{}]", at + 1);
            let start = found.answer.split_once(&mark)?.0.chars().count();
            let end = start + mark.chars().count();
            Some(json!({"type": "url_citation", "url": page.url, "title": page.title, "start_index": start, "end_index": end}))
        })
        .collect();
    let shown: usize = found.results.iter().map(|page| page.title.len() + page.snippet.len()).sum();
    let (read, wrote) = (tokens(request.question.len() + shown), tokens(found.answer.len()));
    json!({
        "id": format!("resp_{id}"),
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request.model,
        "error": Value::Null,
        "output": [
            {"type": "search_results", "queries": [request.question], "results": results},
            {"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": found.answer, "annotations": annotations}]},
        ],
        "usage": {
            "input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote,
            "tool_calls_details": {"web_search": {"invocation": 1}},
        },
    })
}

/// An error body.
pub(super) fn write_error(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": Value::Null, "code": kind}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::behaviour::Page;
    use std::time::Duration;

    #[test]
    fn annotations_count_characters_not_bytes() {
        let page = Page { title: "T".into(), url: "https://example.org/".into(), snippet: "s".into(), date: None };
        let pages = [page];
        let found = SearchAnswer { answer: "Öl für 3 € [1].", results: &pages, latency: Duration::ZERO };
        let body = write_agent(&AgentBody { model: "m".into(), question: "q".into() }, &found, "1");
        let mark = &body["output"][1]["content"][0]["annotations"][0];
        assert_eq!((mark["start_index"].as_u64(), mark["end_index"].as_u64()), (Some(11), Some(14)));
    }

    #[test]
    fn a_search_needs_a_model_and_its_context_is_no_part_of_the_question() {
        assert!(read_agent(&json!({"input": "x"})).expect_err("no model").to_string().contains("model"));
        let read = read_agent(&json!({"model": "m", "input": "frost?\n\nKnown already:\nsun"})).expect("valid");
        assert_eq!(read.asked(), "frost?");
    }
}
