//! Perplexity's Agent API; the shape of the retired Sonar API is still read, for old cassettes and gateways.

use super::failure::{failure, from_error, malformed};
use super::retry::{Failure, RetryPolicy, attempt};
use super::{Attempted, Citation, SearchAnswer, SearchQuestion, SearchService};
use crate::cassette::Redactor;
use crate::chat::Usage;
use crate::clock::{BoxFuture, Clock};
use crate::transport::{HttpRequest, HttpResponse, Service, Transport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the service is told beside the question.
const INSTRUCTIONS: &str =
    "Answer from current web sources. Put the number of the source in brackets behind each statement, like [1].";

/// The search service behind `POST {base}/v1/agent`.
pub struct PerplexityAgent {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    policy: RetryPolicy,
    redactor: Redactor,
    calls: AtomicU64,
}

impl PerplexityAgent {
    /// A service reached through `transport`; one for each trial, as the waits between retries count its calls.
    pub fn new(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>, policy: RetryPolicy) -> Self {
        Self { transport, clock, policy, redactor: Redactor::default(), calls: AtomicU64::new(0) }
    }

    /// With known secrets, for the service's error messages.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }
}

impl SearchService for PerplexityAgent {
    fn ask<'a>(&'a self, question: &'a SearchQuestion) -> BoxFuture<'a, Attempted<SearchAnswer>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(attempt(
            self.transport.as_ref(),
            self.clock.as_ref(),
            &self.policy,
            call,
            || HttpRequest {
                service: Service::Search,
                profile: "perplexity-agent",
                method: "POST",
                path: "/v1/agent".to_owned(),
                body: encode(question),
            },
            |response| decode(response, &self.redactor),
        ))
    }
}

/// The body of a request: a bare model searches the web only when it is given the tool.
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

/// Reads a response, success or not.
pub(super) fn decode(response: &HttpResponse, redactor: &Redactor) -> Result<SearchAnswer, Failure> {
    if !(200..300).contains(&response.status) {
        return Err(failure(response, redactor));
    }
    let body: Value = serde_json::from_slice(&response.body)
        .map_err(|error| malformed(response, &format!("the answer cannot be read: {error}"), redactor))?;
    if body.get("choices").is_some_and(Value::is_array) {
        return sonar(response, &body, redactor);
    }
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        return Err(from_error(error, None, &response.body, redactor));
    }
    let Some(items) = body.get("output").and_then(Value::as_array) else {
        return Err(malformed(response, "the answer has neither `output` nor `choices`", redactor));
    };
    if let Some(status) = body.get("status").and_then(Value::as_str).filter(|status| *status != "completed") {
        return Err(malformed(response, &format!("the answer is not complete: its status is {status}"), redactor));
    }
    let mut text = String::new();
    let mut cited = Sources::default();
    let mut found: Vec<(Option<u64>, Citation)> = Vec::new();
    // Items of unknown types are left alone: the API adds some from time to time.
    for item in items {
        match item.get("type").and_then(Value::as_str) {
            Some("search_results") => found.extend(
                list(item, "results")
                    .filter_map(|result| Some((result.get("id").and_then(Value::as_u64), citation(result)?))),
            ),
            Some("message") => {
                let parts =
                    list(item, "content").filter(|part| part.get("type").is_some_and(|kind| kind == "output_text"));
                for part in parts {
                    text.push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
                    list(part, "annotations").filter_map(citation).for_each(|source| cited.add(source));
                }
            }
            _ => {}
        }
    }
    if text.trim().is_empty() {
        return Err(malformed(response, "the answer holds no text", redactor));
    }
    // `[n]` means the result with id n: results come in the order of their ids, and what only annotations name behind.
    found.sort_by_key(|(id, _)| id.unwrap_or(u64::MAX));
    let mut citations = Sources::default();
    found.into_iter().for_each(|(_, source)| citations.add(source));
    cited.list.into_iter().for_each(|source| citations.add(source));
    let tokens = |name: &str| body.pointer("/usage")?.get(name)?.as_u64();
    Ok(SearchAnswer {
        text,
        citations: citations.list,
        model: body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        usage: Usage {
            input: tokens("input_tokens"),
            cached: body.pointer("/usage/input_tokens_details/cached_tokens").and_then(Value::as_u64),
            output: tokens("output_tokens"),
        },
    })
}

/// Citations without repeats of an address, in order of appearance; a later title or snippet fills an empty one.
#[derive(Default)]
struct Sources {
    list: Vec<Citation>,
    places: BTreeMap<String, usize>,
}

impl Sources {
    fn add(&mut self, source: Citation) {
        if let Some(known) = self.places.get(&source.url).and_then(|place| self.list.get_mut(*place)) {
            for (kept, new) in [(&mut known.title, source.title), (&mut known.snippet, source.snippet)] {
                if kept.is_empty() {
                    *kept = new;
                }
            }
            return;
        }
        self.places.insert(source.url.clone(), self.list.len());
        self.list.push(source);
    }
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn citation(value: &Value) -> Option<Citation> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let url = text("url");
    (!url.is_empty()).then(|| Citation { title: text("title"), url, snippet: text("snippet") })
}

/// The retired chat shape: `[n]` counts `citations` from 1; `search_results` adds titles and snippets.
fn sonar(response: &HttpResponse, body: &Value, redactor: &Redactor) -> Result<SearchAnswer, Failure> {
    let Some(text) = body.pointer("/choices/0/message/content").and_then(Value::as_str) else {
        return Err(malformed(response, "the answer holds no text", redactor));
    };
    let mut citations = Sources::default();
    for url in list(body, "citations").filter_map(Value::as_str) {
        citations.add(Citation { title: String::new(), url: url.to_owned(), snippet: String::new() });
    }
    list(body, "search_results").filter_map(citation).for_each(|source| citations.add(source));
    let tokens = |name: &str| body.get("usage")?.get(name)?.as_u64();
    Ok(SearchAnswer {
        text: text.to_owned(),
        citations: citations.list,
        model: body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        usage: Usage { input: tokens("prompt_tokens"), cached: None, output: tokens("completion_tokens") },
    })
}

#[cfg(test)]
mod tests {
    use super::super::ErrorKind;
    use super::*;
    use std::time::Duration;

    fn decode_body(body: &Value) -> Result<SearchAnswer, Failure> {
        let body = bytes::Bytes::from(body.to_string());
        decode(&HttpResponse { status: 200, headers: Vec::new(), body, took: Duration::ZERO }, &Redactor::default())
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
        assert_eq!(answer.usage, Usage { input: Some(5), cached: None, output: Some(6) });
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
            (json!({"status": "in_progress", "output": []}), ErrorKind::Malformed),
            (json!({"status": "completed", "output": []}), ErrorKind::Malformed),
            (json!({"choices": []}), ErrorKind::Malformed),
            (json!({}), ErrorKind::Malformed),
        ] {
            assert_eq!(decode_body(&body).expect_err("a failure").kind, kind, "{body}");
        }
    }
}
