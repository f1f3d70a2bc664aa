//! Client of Perplexity's Agent API; the format of the retired Sonar API is still decoded, for old cassettes and
//! gateways.

use super::failure::{failure, malformed, unreadable};
use super::wire::{perplexity, perplexity_agent};
use super::{Access, Attempted, Failure, SearchAnswer, SearchQuestion, SearchService};
use crate::cassette::Redactor;
use crate::platform::clock::BoxFuture;
use crate::platform::{lenient_json, secrets};
use crate::transport::{HttpRequest, HttpResponse, Service};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Instructions sent with every question.
const INSTRUCTIONS: &str =
    "Answer from current web sources. Put the number of the source in brackets behind each statement, like [1].";

/// The search service behind `POST {base}/v1/agent`.
pub struct PerplexityAgent {
    access: Access,
    redactor: Redactor,
    calls: AtomicU64,
}

impl PerplexityAgent {
    /// Creates a client; one per trial, because waits between retries depend on its number of calls. Errors contain no
    /// secret that is declared by then.
    pub fn new(access: Access) -> Self {
        Self { access, redactor: secrets::declared(), calls: AtomicU64::new(0) }
    }
}

impl SearchService for PerplexityAgent {
    fn ask<'a>(&'a self, question: &'a SearchQuestion) -> BoxFuture<'a, Attempted<SearchAnswer>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(self.access.exchange(
            call,
            || {
                let (profile, path) = (&perplexity_agent::PROFILE, perplexity_agent::ENDPOINT);
                HttpRequest::new(Service::Search, profile, "POST", path, encode(question))
            },
            |response| decode(response, &self.redactor),
        ))
    }
}

/// Encodes a request's body: a plain model searches the web only if the tool is offered.
pub fn encode(question: &SearchQuestion) -> Value {
    let input = match question.context.as_deref().map(str::trim).filter(|context| !context.is_empty()) {
        Some(context) => format!("{}\n\nKnown already:\n{context}", question.query),
        None => question.query.clone(),
    };
    json!({
        "model": question.model,
        "input": input,
        "instructions": INSTRUCTIONS,
        "tools": [{"type": "web_search"}],
    })
}

/// Decodes a response, successful or not.
///
/// # Errors
/// [`Failure`] with the kind of error that the response reports, or `Malformed` if it cannot be decoded.
pub fn decode(response: &HttpResponse, redactor: &Redactor) -> Result<SearchAnswer, Failure> {
    if !(200..300).contains(&response.status) {
        return Err(failure(response, redactor));
    }
    let body = lenient_json::read(&response.body)
        .map_err(|error| malformed(response, &format!("the answer cannot be read: {error}"), redactor))?;
    let answer = perplexity::decode_answer(&body).map_err(|error| unreadable(response, &error, redactor))?;
    if let Some(status) = body.get("status").and_then(Value::as_str).filter(|status| *status != "completed") {
        return Err(malformed(response, &format!("the answer is not complete: its status is {status}"), redactor));
    }
    if answer.text.trim().is_empty() {
        return Err(malformed(response, "the answer holds no text", redactor));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::super::ErrorKind;
    use super::*;
    use crate::provider::chat::Usage;
    use std::time::Duration;

    fn decode_body(body: &Value) -> Result<SearchAnswer, Failure> {
        let body = bytes::Bytes::from(body.to_string());
        decode(
            &HttpResponse { status: 200, headers: Vec::new(), body, took: Duration::ZERO, chunks: Vec::new() },
            &Redactor::default(),
        )
    }

    fn urls(answer: &SearchAnswer) -> Vec<&str> {
        answer.citations.iter().map(|citation| citation.url.as_str()).collect()
    }

    #[test]
    fn a_question_asks_for_the_web_and_carries_what_is_known() {
        let question = SearchQuestion {
            query: "What is new?".to_owned(),
            context: Some("Old things.".to_owned()),
            model: "p/s".to_owned(),
        };
        let body = encode(&question);
        assert_eq!(body["tools"], json!([{"type": "web_search"}]));
        assert_eq!(body["input"], json!("What is new?\n\nKnown already:\nOld things."));
        assert_eq!(encode(&SearchQuestion { context: None, ..question })["input"], json!("What is new?"));
    }

    #[test]
    fn citations_follow_the_ids_of_results_without_repeats() {
        let answer = decode_body(&json!({
            "id": "r", "object": "response", "status": "completed", "model": "perplexity/sonar", "error": null,
            "output": [
                {"type": "reasoning_of_tomorrow", "text": "ignored"},
                {"type": "search_results", "queries": ["q"], "results": [
                    {"id": 2, "title": "Two", "url": "https://two", "snippet": "s2"},
                    {"id": 1, "title": "", "url": "https://one", "snippet": "s1"}]},
                {"type": "message", "role": "assistant", "content": [
                    {"type": "output_text", "text": "First [1]. ", "annotations": [
                        {"type": "citation", "url": "https://one", "title": "One"},
                        {"type": "citation", "url": "https://three", "title": "Three"}]},
                    {"type": "output_text", "text": "Second [2].", "annotations": null}]}],
            "usage": {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11}}))
        .expect("decodes");
        assert_eq!(answer.text, "First [1]. Second [2].");
        assert_eq!(urls(&answer), ["https://one", "https://two", "https://three"]);
        assert_eq!((answer.citations[0].title.as_str(), answer.citations[0].snippet.as_str()), ("One", "s1"));
        assert_eq!(answer.usage, Usage { input: Some(5), output: Some(6), ..Usage::default() });
    }

    #[test]
    fn the_retired_shape_is_read() {
        let answer = decode_body(&json!({"model": "sonar", "choices": [{"message": {"content": "Yes [2]."}}],
            "citations": ["https://a", "https://b"],
            "search_results": [{"title": "B", "url": "https://b", "snippet": "sb"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2}}))
        .expect("decodes");
        assert_eq!(urls(&answer), ["https://a", "https://b"]);
        assert_eq!(answer.citations[1].title, "B");
    }

    #[test]
    fn failures_within_a_success_are_failures() {
        for (body, kind) in [
            (
                json!({"status": "failed", "error": {"type": "server_error", "message": "no"}, "output": []}),
                ErrorKind::Server,
            ),
            (
                json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "no"}}),
                ErrorKind::RateLimit,
            ),
            (json!({"status": "in_progress", "output": []}), ErrorKind::Server),
            (json!({"status": "cancelled", "output": []}), ErrorKind::Server),
            (json!({"status": "completed", "output": []}), ErrorKind::Malformed),
            (json!({"choices": []}), ErrorKind::Malformed),
            (json!({}), ErrorKind::Malformed),
        ] {
            assert_eq!(decode_body(&body).expect_err("a failure").kind, kind, "{body}");
        }
    }
}
