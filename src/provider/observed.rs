//! Decodes traffic between an external agent and a service: the dialect of a request, and the result.
//!
//! The agent does its own retries, so every exchange is one attempt here, successful or not.

use super::failure::{failure, malformed, unreadable};
use super::json_service::EXACT;
use super::mcp::{self, MCP};
use super::retry::Failure;
use super::wire::embeddings_shapes::Shape;
use super::wire::{self, Dialect, WireError, openai_chat, perplexity, perplexity_agent};
use super::{Attempt, ErrorKind, SearchAnswer, chat_client, perplexity_agent as client, stream};
use crate::cassette::Redactor;
use crate::platform::{lenient_json, numbers};
use crate::provider::chat::{ChatRequest, ChatResponse, Role, ToolCall};
use crate::transport::{DECLARED_FAULT_HEADER, HttpRequest, HttpResponse, Service, TransportError, held, sse};
use serde_json::Value;
use std::borrow::Cow;

/// One attempt and its result.
#[derive(Debug, Clone)]
pub(crate) struct Observed<T> {
    pub attempt: Attempt,
    pub result: Result<T, Failure>,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Completion,
    /// An answer of a search service.
    Search,
    Vectors,
    /// Something of a declared HTTP service: it is compared exactly, and not decoded.
    Declared,
    /// A call of a tool of an MCP server.
    ToolCall,
    /// Something beside all that, such as a list of models: it is compared exactly, and not decoded.
    Aside,
}

/// What a request asks for, by its service and its profile.
pub(crate) fn asks(request: &HttpRequest) -> Asks {
    let profile = request.profile.name;
    match (request.service, wire::by_name(profile)) {
        (Service::Declared(_), _) if profile == MCP.name && mcp::called(&request.body).is_some() => Asks::ToolCall,
        (Service::Declared(_), _) => Asks::Declared,
        (Service::Embeddings, _) => Asks::Vectors,
        _ if Shape::is_named(profile) => Asks::Vectors,
        (_, None) => Asks::Aside,
        (Service::Search, Some(_)) => Asks::Search,
        (Service::Provider(_), Some(dialect)) if dialect.searches => Asks::Search,
        _ => Asks::Completion,
    }
}

/// Whether requests of that profile ask for completions.
pub(crate) fn is_completion(profile: &str) -> bool {
    wire::by_name(profile).is_some_and(|dialect| !dialect.searches)
}

/// Whether requests of that profile ask for what is found: a search, or vectors.
pub(crate) fn retrieves(profile: &str) -> bool {
    wire::by_name(profile).map_or_else(|| Shape::is_named(profile), |dialect| dialect.searches)
}

/// Decodes a request to a model; `None` if it does not match its dialect.
pub(crate) fn asked(request: &HttpRequest) -> Option<ChatRequest> {
    let dialect = wire::by_name(request.profile.name)?;
    let mut asked = dialect.decode_request(&request.path, &numbers::nearest(&request.body)).ok()?;
    for message in &mut asked.messages {
        message.calls = unpacked(std::mem::take(&mut message.calls));
    }
    Some(asked)
}

fn unpacked(calls: Vec<ToolCall>) -> Vec<ToolCall> {
    calls.into_iter().flat_map(ToolCall::unpacked).collect()
}

/// An answer of a declared service. No answer, 429 and 5xx are failures; any other status is an answer, 404 too.
pub(crate) fn declared_answer(request: &HttpRequest, result: &Result<HttpResponse, TransportError>) -> Observed<()> {
    read(request, result, |response| match response.status {
        429 | 500.. => Err(failure(response, &Redactor::default())),
        _ => Ok(()),
    })
}

/// What a call of an MCP server's tool came to; 429 and 5xx without an answer in JSON-RPC are failures.
pub(crate) fn tool_answer(request: &HttpRequest, result: &Result<HttpResponse, TransportError>) -> Observed<mcp::Ran> {
    read(request, result, |response| match response.status {
        429 | 500.. => Err(failure(response, &Redactor::default())),
        _ => Ok(mcp::ran(response)),
    })
}

/// The text of a request for one vector; empty for several, and for token ids, which nobody reads.
pub(crate) fn embedded_text(request: &HttpRequest) -> String {
    Shape::named(request.profile.name).only_text(&request.body)
}

/// Vectors: only whether they came is of interest.
pub(crate) fn vectors(request: &HttpRequest, result: &Result<HttpResponse, TransportError>) -> Observed<()> {
    let redactor = Redactor::default();
    read(request, result, |response| {
        if !(200..300).contains(&response.status) {
            return Err(failure(response, &redactor));
        }
        let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        if let Some(reported) = wire::reported(&body) {
            return Err(unreadable(response, &reported, &redactor));
        }
        // How the vectors are packed is between the agent and its provider.
        let listed = Shape::named(request.profile.name).has_vectors(&request.body, &body);
        if listed { Ok(()) } else { Err(malformed(response, "the answer lacks a vector for an input", &redactor)) }
    })
}

/// The words of a request to a search service: the last thing that the user says in it.
pub(crate) fn question(request: &HttpRequest) -> String {
    let words = request.body.get("query").and_then(Value::as_str).map(str::to_owned);
    let said = || {
        let asked = asked(request)?;
        asked.messages.into_iter().rev().find(|message| message.role == Role::User).map(|message| message.content)
    };
    words.or_else(said).unwrap_or_default()
}

/// Decodes a model's answer.
pub(crate) fn completion(
    request: &HttpRequest,
    result: &Result<HttpResponse, TransportError>,
) -> Observed<ChatResponse> {
    let dialect = wire::by_name(request.profile.name).unwrap_or(openai_chat::DIALECT);
    let mut heard = read(request, result, |response| {
        let redactor = Redactor::default();
        chat_client::decode(dialect, &in_events(&in_background(request, response)), &redactor)
    });
    if let (Ok(response), Ok(_)) = (result, &heard.result) {
        heard.attempt.first_token = stream::first_token(dialect, response);
    }
    if let (Ok(reply), Some(asked)) = (&mut heard.result, asked(request)) {
        wire::continue_ids(&asked, &mut reply.calls);
    }
    if let Ok(reply) = &mut heard.result {
        reply.calls = unpacked(std::mem::take(&mut reply.calls));
    }
    heard
}

/// The answer of a dialect as one document; that of a stream is assembled, as far as it came.
pub(crate) fn document(dialect: &str, headers: &[(String, String)], body: &[u8]) -> Option<Value> {
    let dialect = wire::by_name(dialect)?;
    if !dialect.framing.is_stream(headers, body) {
        return lenient_json::read(body).ok();
    }
    let mut assembler = dialect.assembler();
    for event in dialect.framing.read(body).ok()? {
        assembler.push(&event).ok()?;
    }
    Some(assembler.document())
}

/// Decodes a search service's answer, streamed or not; a plain list of results is an answer without text.
pub(crate) fn search_answer(
    request: &HttpRequest,
    result: &Result<HttpResponse, TransportError>,
) -> Observed<SearchAnswer> {
    let dialect = wire::by_name(request.profile.name).unwrap_or(perplexity_agent::DIALECT);
    read(request, result, |response| {
        let redactor = Redactor::default();
        let good = (200..300).contains(&response.status);
        if good && stream::is_stream(dialect, response) {
            let document = assembled(dialect, response, &redactor)?;
            return perplexity::decode_answer(&document).map_err(|error| unreadable(response, &error, &redactor));
        }
        let listed = lenient_json::read(&response.body).ok().filter(|_| good);
        match listed.and_then(|body| perplexity::decode_results(&body)) {
            Some(answer) => Ok(answer),
            None => client::decode(response, &redactor),
        }
    })
}

fn assembled(dialect: &Dialect, response: &HttpResponse, redactor: &Redactor) -> Result<Value, Failure> {
    let mut assembler = dialect.assembler();
    for event in sse::read_all(&response.body).unwrap_or_default() {
        assembler.push(&event).map_err(|error| unreadable(response, &error, redactor))?;
    }
    if assembler.complete() {
        return Ok(assembler.document());
    }
    Err(unreadable(response, &WireError::Cut, redactor))
}

/// The response with the request's `background` member, in case the service does not repeat it: a queued or unfinished
/// answer is then what was requested.
fn in_background<'r>(request: &HttpRequest, response: &'r HttpResponse) -> Cow<'r, HttpResponse> {
    let Some(flag) = request.body.get("background").filter(|flag| **flag == Value::Bool(true)) else {
        return Cow::Borrowed(response);
    };
    match lenient_json::read(&response.body) {
        Ok(Value::Object(mut body)) => {
            body.insert("background".to_owned(), flag.clone());
            Cow::Owned(HttpResponse { body: Value::Object(body).to_string().into(), ..response.clone() })
        }
        _ => Cow::Borrowed(response),
    }
}

/// The response with its chunks as events, where they are the elements of one JSON list: Gemini's streams are unless
/// `alt=sse` stands in the address.
fn in_events(response: &HttpResponse) -> Cow<'_, HttpResponse> {
    let good = (200..300).contains(&response.status) && response.body.trim_ascii_start().first() == Some(&b'[');
    let Some(Value::Array(chunks)) = good.then(|| lenient_json::read(&response.body).ok()).flatten() else {
        return Cow::Borrowed(response);
    };
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    Cow::Owned(HttpResponse { body: body.into(), headers, chunks: Vec::new(), ..response.clone() })
}

fn read<T>(
    request: &HttpRequest,
    answer: &Result<HttpResponse, TransportError>,
    decode: impl FnOnce(&HttpResponse) -> Result<T, Failure>,
) -> Observed<T> {
    let (took, status, result) = match answer {
        Ok(response) => (response.took, Some(response.status), decode(response)),
        Err(error) => {
            let kind = ErrorKind::of_transport(error).unwrap_or(ErrorKind::BadRequest);
            (error.took(), None, Err(Failure { kind, status: None, message: error.to_string() }))
        }
    };
    let cause = result.as_ref().err().map(|failure| failure.kind);
    // If a service is only matched and not decoded, any answer except a refusal to work counts as an answer.
    let exact = request.profile.name == EXACT.name;
    let cause = cause.filter(|_| !exact || status.is_none_or(|status| status == 429 || status >= 500));
    let service = request.service;
    let declared_fault = match answer {
        Ok(response) => result.is_err() && response.header(DECLARED_FAULT_HEADER).is_some(),
        Err(error) => matches!(error, TransportError::Faulted { .. }),
    };
    let held = answer.as_ref().ok().and_then(held);
    Observed { attempt: Attempt { declared_fault, held, ..Attempt::new(service, status, cause, took) }, result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn request(dialect: &Dialect, body: Value) -> HttpRequest {
        HttpRequest::new(Service::Search, dialect.profile, "POST", "", body)
    }

    fn response(body: &str, content: &str) -> Result<HttpResponse, TransportError> {
        let headers = vec![("content-type".to_owned(), content.to_owned())];
        let (body, took) = (bytes::Bytes::from(body.to_owned()), Duration::from_millis(5));
        Ok(HttpResponse { status: 200, headers, body, took, chunks: Vec::new() })
    }

    #[test]
    fn a_search_is_read_whole_streamed_and_as_a_bare_list() {
        let asked = request(perplexity_agent::DIALECT, json!({"model": "m", "input": "frost tonight?"}));
        assert_eq!(question(&asked), "frost tonight?");
        assert_eq!(question(&request(perplexity_agent::DIALECT, json!({"query": "frost"}))), "frost");
        let whole = json!({"id": "r", "object": "response", "model": "m", "status": "completed", "output": [
            {"type": "message", "id": "x", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]}]});
        let streamed = format!(
            "event: response.completed\ndata: {}\n\n",
            json!({"type": "response.completed", "response": whole})
        );
        for heard in [
            search_answer(&asked, &response(&whole.to_string(), "application/json")),
            search_answer(&asked, &response(&streamed, "text/event-stream")),
        ] {
            assert_eq!(heard.result.expect("an answer").text, "Yes.");
            assert_eq!(heard.attempt.took, Duration::from_millis(5));
        }
        let bare = json!({"id": "s", "results": [{"title": "T", "url": "https://a", "snippet": "s"}]}).to_string();
        let heard = search_answer(&asked, &response(&bare, "application/json")).result.expect("a list");
        assert_eq!((heard.text.as_str(), heard.citations[0].url.as_str()), ("", "https://a"));
    }

    #[test]
    fn a_queued_answer_is_an_answer_where_the_request_asked_for_background_and_an_outage_elsewhere() {
        let queued = json!({"status": "queued", "output": [], "model": "m"}).to_string();
        let read = |body: Value| {
            let asked = request(wire::by_name("openai-responses").expect("spoken"), body);
            completion(&asked, &response(&queued, "application/json"))
        };
        assert_eq!(read(json!({"model": "m", "input": "q", "background": true})).attempt.cause, None);
        let plain = read(json!({"model": "m", "input": "q"}));
        assert_eq!(plain.attempt.cause, Some(ErrorKind::Server));
        assert!(plain.result.expect_err("an outage").message.contains("queued"));
    }

    #[test]
    fn of_a_service_that_is_matched_exactly_only_no_answer_429_and_5xx_have_a_cause() {
        let exact = HttpRequest { profile: &EXACT, ..request(perplexity_agent::DIALECT, json!({"query": "frost"})) };
        for (status, expected) in [
            (200, None),
            (401, None),
            (404, None),
            (429, Some(ErrorKind::RateLimit)),
            (500, Some(ErrorKind::Server)),
            (503, Some(ErrorKind::Overloaded)),
        ] {
            let answer = response("whatever", "text/plain").map(|one| HttpResponse { status, ..one });
            assert_eq!(search_answer(&exact, &answer).attempt.cause, expected, "{status}");
        }
        let lost = TransportError::Timeout { after: Duration::from_secs(2) };
        assert_eq!(search_answer(&exact, &Err(lost)).attempt.cause, Some(ErrorKind::Timeout));
    }

    #[test]
    fn what_never_came_is_an_attempt_with_its_cause() {
        let asked = request(openai_chat::DIALECT, json!({"model": "m", "messages": []}));
        let lost = TransportError::Timeout { after: Duration::from_secs(2) };
        let heard = completion(&asked, &Err(lost));
        assert_eq!((heard.attempt.cause, heard.attempt.took), (Some(ErrorKind::Timeout), Duration::from_secs(2)));
        assert!(heard.result.is_err());
    }
}
