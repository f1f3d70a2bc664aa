//! Writes what a struck request gets, in its dialect: errors, broken streams, other answers.

use crate::provider::chat::{ChatRequest, Finish, ToolChoice};
use crate::provider::wire::answer::{Part, Said};
use crate::provider::wire::framing::Framing;
use crate::provider::wire::{self, Dialect, openai_chat};
use crate::settings::fault::Stage;
use crate::settings::{DeclaredFault, FaultKind};
use crate::transport::{BROKEN_HEADER, DECLARED_FAULT_HEADER, HttpRequest, HttpResponse};
use serde_json::{Value, json};
use std::time::Duration;

/// Duration of an exchange that a fault answers.
const TOOK: Duration = Duration::from_millis(20);

pub(super) fn seconds(fault: &DeclaredFault) -> Duration {
    Duration::try_from_secs_f64(fault.seconds.unwrap_or(1.0)).unwrap_or(Duration::from_secs(1))
}

/// The response in place of an answer; `None` if the fault cannot strike this request.
pub(super) fn response(fault: &DeclaredFault, request: &HttpRequest, wall: jiff::Timestamp) -> Option<HttpResponse> {
    let dialect = wire::by_name(request.profile.name);
    if fault.fault.stage() == Stage::Request {
        return error(fault, dialect.unwrap_or(openai_chat::DIALECT), wall);
    }
    let dialect = dialect.filter(|dialect| !dialect.searches)?;
    let asked = dialect.decode_request(&request.path, &request.body).ok()?;
    let said = said(fault.fault, &asked)?;
    if request.stream.is_none() {
        let whole = (fault.fault.stage() == Stage::Answer).then(|| said.whole(dialect.name())).flatten()?;
        return Some(written(fault.fault, 200, "application/json", whole.to_string()));
    }
    let pieces = said.stream(dialect.name())?;
    let kept: Vec<&str> = match fault.fault {
        FaultKind::CutBeforeToken => {
            pieces.iter().take_while(|(part, _)| *part == Part::Head).map(|(_, piece)| piece.as_str()).collect()
        }
        FaultKind::CutAfterToken | FaultKind::CutInArguments | FaultKind::ErrorInStream => {
            let first = pieces.iter().position(|(part, _)| *part == Part::Token)?;
            pieces[..=first].iter().map(|(_, piece)| piece.as_str()).collect()
        }
        _ => pieces.iter().map(|(_, piece)| piece.as_str()).collect(),
    };
    let mut body = kept.concat();
    if fault.fault == FaultKind::ErrorInStream {
        body.push_str(&error_event(dialect));
    }
    let kind = if dialect.framing == Framing::Lines { "application/x-ndjson" } else { "text/event-stream" };
    let mut response = written(fault.fault, 200, kind, body);
    if fault.fault.stage() == Stage::Stream && fault.fault != FaultKind::ErrorInStream {
        response.headers.push((BROKEN_HEADER.to_owned(), "1".to_owned()));
    }
    Some(response)
}

fn written(fault: FaultKind, status: u16, kind: &str, body: String) -> HttpResponse {
    let headers = [("content-type", kind), (DECLARED_FAULT_HEADER, fault.as_str())];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    HttpResponse { status, headers, body: body.into(), took: TOOK, chunks: Vec::new() }
}

fn error(fault: &DeclaredFault, dialect: &Dialect, wall: jiff::Timestamp) -> Option<HttpResponse> {
    use FaultKind as K;
    let (status, code, message) = match fault.fault {
        K::RateLimit | K::RateLimitSeconds | K::RateLimitMilliseconds | K::RateLimitDate => {
            (429, "rate_limit_exceeded", "Too many requests: slow down.")
        }
        K::Quota if dialect.name() == "anthropic-messages" => {
            (400, "insufficient_quota", "Your credit balance is too low to access the API.")
        }
        K::Quota => (429, "insufficient_quota", "Your credit balance is too low: you exceeded your current quota."),
        K::ServerError => (500, "server_error", "The server had an error."),
        K::Unavailable => (503, "service_unavailable", "The service is unavailable."),
        K::Overloaded => (529, "overloaded_error", "Overloaded"),
        K::TooLarge => (413, "request_too_large", "The request is too large."),
        K::ContextLength => (400, "context_length_exceeded", "The prompt is too long: it exceeds the context window."),
        _ => return None,
    };
    let message = format!("{message} (declared fault)");
    let body = dialect.encode_error(status, code, &message).to_string();
    let mut response = written(fault.fault, status, "application/json", body);
    let wait = seconds(fault);
    let header = match fault.fault {
        K::RateLimitSeconds => Some(("retry-after", wait.as_secs().to_string())),
        K::RateLimitMilliseconds => Some(("retry-after-ms", wait.as_millis().to_string())),
        K::RateLimitDate => {
            let until = wall.checked_add(jiff::SignedDuration::from_secs(i64::try_from(wait.as_secs()).unwrap_or(1)));
            Some(("retry-after", until.ok()?.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()))
        }
        _ => None,
    };
    response.headers.extend(header.map(|(name, value)| (name.to_owned(), value)));
    Some(response)
}

/// The answer that a fault gives; `None` if the request offers no tool to call.
fn said(kind: FaultKind, asked: &ChatRequest) -> Option<Said> {
    let named = match &asked.tool_choice {
        ToolChoice::Named(name) => Some(name.clone()),
        _ => asked.tools.first().map(|tool| tool.name.clone()),
    };
    let text = |text: &str| Said::text(&asked.model, text);
    let call = |name: String, arguments: &str| Said {
        call: Some((name, arguments.to_owned())),
        finish: Finish::ToolCalls,
        ..text("")
    };
    Some(match kind {
        FaultKind::WrongTool => call("no_such_tool".to_owned(), "{}"),
        FaultKind::MalformedArguments => call(named?, "{\"query\": \"unfinis"),
        FaultKind::CutInArguments => call(named?, "{\"query\": \"unfinished\"}"),
        FaultKind::LengthStop => Said { finish: Finish::Length, ..text("The answer begins with") },
        FaultKind::ContentFilter => Said { finish: Finish::ContentFilter, ..text("") },
        FaultKind::Refusal => Said { refuses: true, ..text("I cannot help with that.") },
        // A model that was given tools and calls none; without tools, that is an answer like any other.
        FaultKind::NoToolCall => named.map(|_| text("Let me look into that."))?,
        _ => text("Let me look into that."),
    })
}

/// An error in the middle of a stream.
fn error_event(dialect: &Dialect) -> String {
    let message = "The server had an error while streaming. (declared fault)";
    let body = dialect.encode_error(500, "server_error", message);
    match dialect.name() {
        "anthropic-messages" => format!("event: error\ndata: {body}\n\n"),
        "openai-responses" => {
            let body = json!({"type": "error", "code": "server_error", "message": message, "param": null, "sequence_number": 9});
            format!("event: error\ndata: {body}\n\n")
        }
        _ if dialect.framing == Framing::Lines => format!("{body}\n"),
        _ => format!("data: {body}\n\n"),
    }
}

/// The response without its end marker or its usage; `None` if it has none, or is an error.
pub(super) fn without(kind: FaultKind, profile: &str, response: &HttpResponse) -> Option<HttpResponse> {
    let framing = Framing::of(profile);
    if !(200..300).contains(&response.status) || wire::by_name(profile).is_none() {
        return None;
    }
    let mark = |body: Vec<u8>| {
        let mut headers = response.headers.clone();
        headers.push((DECLARED_FAULT_HEADER.to_owned(), kind.as_str().to_owned()));
        HttpResponse { headers, body: body.into(), chunks: Vec::new(), ..response.clone() }
    };
    if !framing.is_stream(&response.headers, &response.body) {
        let mut document: Value = serde_json::from_slice(&response.body).ok()?;
        let removed = kind == FaultKind::NoUsage && remove_usage(&mut document);
        return removed.then(|| mark(document.to_string().into_bytes()));
    }
    if framing == Framing::AwsFrames {
        return None;
    }
    let events = framing.read(&response.body).ok()?;
    if kind == FaultKind::NoEndMarker {
        let last = events.last()?;
        return Some(mark(response.body.get(..last.bytes.start)?.to_vec()));
    }
    let (mut body, mut removed) = (String::new(), false);
    for event in &events {
        let text = String::from_utf8_lossy(response.body.get(event.bytes.clone())?).into_owned();
        let mut document = serde_json::from_str::<Value>(&event.data).unwrap_or_default();
        if remove_usage(&mut document) {
            removed = true;
            body.push_str(&text.replace(&event.data, &document.to_string()));
        } else {
            body.push_str(&text);
        }
    }
    removed.then(|| mark(body.into_bytes()))
}

/// Removes the members that report tokens.
fn remove_usage(document: &mut Value) -> bool {
    let mut removed = false;
    for pointer in ["", "/message", "/response"] {
        let Some(Value::Object(members)) = document.pointer_mut(pointer) else { continue };
        for name in ["usage", "usageMetadata", "prompt_eval_count", "eval_count"] {
            removed |= members.shift_remove(name).is_some_and(|value| !value.is_null());
        }
    }
    removed
}
