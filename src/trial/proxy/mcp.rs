//! Serves the mounts of MCP servers: JSON-RPC over streamable HTTP, and what `ragcheck mcp-record` sends for a server
//! that talks by its standard input and output.
//!
//! A request is an exchange like any other. Its answer, from the server or from the recording, gets the request's id and
//! progress token. Notifications, answers to the server and the end of a session have no answer of their own: they are
//! passed on, are not recorded, and a replay accepts them. `ping` is answered here. What cannot be answered is a
//! JSON-RPC error, with status 200, because clients show the message of such an error and hide that of an HTTP error.

use super::admission::Refused;
use super::desk::Whose;
use super::refusal::told;
use super::relayed::relayed;
use super::server::{Slot, UNTRACED, note_withheld};
use crate::platform::lock::lock;
use crate::platform::numbers;
use crate::provider::mcp::{self, MCP, Message};
use crate::transport::{HttpRequest, HttpResponse, Profile, StreamEnd, sse};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Code of errors of ours, from the range that JSON-RPC leaves to servers.
pub(crate) const ERROR: i32 = -32010;
/// Code of a message that is none.
const INVALID: i32 = -32600;
/// Code of a method that is not served.
const UNKNOWN: i32 = -32601;
static NOTICE: Profile = Profile::NOTICE;

/// Answers a request to an MCP server. `head` is as the agent sent it.
pub(super) async fn answer(slot: &Slot, whose: Whose, head: &Parts, request: HttpRequest) -> Response {
    let kind = mcp::message(&request.body);
    match (request.method, kind) {
        // Clients of versions before 2026-07-28 ask for a stream beside their requests, and go on without it.
        ("GET" | "HEAD", _) => {
            let mut refused = StatusCode::METHOD_NOT_ALLOWED.into_response();
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
            refused
        }
        ("DELETE", _) | ("POST", Message::Notification | Message::Response) => {
            let listener = lock(slot).listener(whose);
            if let Some(listener) = listener {
                // Nobody waits for the answer, and a server that does not take it changes nothing.
                let _ = listener.send(HttpRequest { profile: &NOTICE, path: "/".to_owned(), ..request }).await;
            }
            let done = if head.method == Method::DELETE { StatusCode::OK } else { StatusCode::ACCEPTED };
            done.into_response()
        }
        ("POST", Message::Request) => asked(slot, whose, head, request).await,
        _ => {
            let why = "whose body is no JSON-RPC message, or a list of several, which is not served";
            let refused = Refused::new(head, why.to_owned());
            let message = refused.to_string();
            lock(slot).note(whose, refused);
            error(&Value::Null, StatusCode::BAD_REQUEST, INVALID, &message)
        }
    }
}

async fn asked(slot: &Slot, whose: Whose, head: &Parts, request: HttpRequest) -> Response {
    let id = request.body.get("id").cloned().unwrap_or_default();
    match mcp::method(&request.body) {
        Some("ping") => return document(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "result": {}})),
        Some("subscriptions/listen") => {
            let message = "ragcheck serves no subscriptions: their stream has no end that could be recorded";
            return error(&id, StatusCode::NOT_FOUND, UNKNOWN, message);
        }
        _ => {}
    }
    if whose == Whose::Stray {
        let refused = Refused::new(head, UNTRACED.to_owned());
        lock(slot).strays(&refused);
        return error(&id, StatusCode::OK, ERROR, &format!("ragcheck: {refused}"));
    }
    let transport = lock(slot).transport(whose, false);
    let Some(transport) = transport else {
        lock(slot).note_of_nobody(Refused::new(head, "when no trial ran".to_owned()));
        return error(&id, StatusCode::OK, ERROR, "ragcheck: no trial is running that this request could belong to");
    };
    let token = request.body.pointer("/params/_meta/progressToken").cloned();
    let (path, stream) = (mcp::path(&request.body), Some(StreamEnd::new(mcp::has_ended).leaving()));
    match transport.send(HttpRequest { profile: &MCP, path, stream, ..request }).await {
        Ok(response) => match asks_back(&response) {
            Some(method) => {
                let why = format!(
                    "and its server asked back (`{method}`) within the stream of the answer, which is handed over whole: \
                     a server before 2026-07-28 can do that by its standard input and output alone (`ragcheck mcp-record`)"
                );
                let refused = Refused::new(head, why);
                let message = format!("ragcheck: {refused}");
                lock(slot).note(whose, refused);
                error(&id, StatusCode::OK, ERROR, &message)
            }
            None => relayed(&addressed(response, &id, token.as_ref()), false),
        },
        Err(why) => {
            note_withheld(slot, whose, head, &why);
            let (_, code, message) = told(&why);
            let error = json!({"code": ERROR, "message": format!("ragcheck: {message}"), "data": {"code": code}});
            document(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
        }
    }
}

/// The method of a request that the server sent in place of its answer.
fn asks_back(response: &HttpResponse) -> Option<String> {
    let all = mcp::messages(response);
    let asks = all.iter().find(|one| mcp::message(one) == Message::Request)?;
    mcp::method(asks).map(str::to_owned)
}

/// An answer with the id and the progress token of its request. Progress that nobody asked for is left out.
fn addressed(response: HttpResponse, id: &Value, token: Option<&Value>) -> HttpResponse {
    let mut all = mcp::written_messages(&response);
    if all.is_empty() {
        return response;
    }
    all.retain_mut(|one| match mcp::message(one) {
        Message::Response if !one["id"].is_null() => {
            one["id"] = id.clone();
            true
        }
        _ if mcp::method(one) == Some("notifications/progress") => {
            if let (Some(token), Some(place)) = (token, one.pointer_mut("/params/progressToken")) {
                *place = token.clone();
            }
            token.is_some()
        }
        _ => true,
    });
    let body = match all.as_slice() {
        [one] if !sse::is_stream(&response.headers, &response.body) => numbers::write(one),
        all => all.iter().map(|one| format!("event: message\ndata: {}\n\n", numbers::write(one))).collect(),
    };
    HttpResponse { body: body.into(), chunks: Vec::new(), ..response }
}

fn error(id: &Value, status: StatusCode, code: i32, message: &str) -> Response {
    document(status, &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

fn document(status: StatusCode, body: &Value) -> Response {
    let mut response = (status, numbers::write(body)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn response(body: String, kind: &str) -> HttpResponse {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        HttpResponse { status: 200, headers, body: body.into(), took: Duration::ZERO, chunks: Vec::new() }
    }

    #[test]
    fn an_answer_gets_the_id_and_the_progress_token_of_its_request() {
        let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"content": []}});
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 7}});
        let stream = format!("event: message\ndata: {progress}\n\nevent: message\nid: 3\ndata: {answer}\n\n");
        let now = addressed(response(stream.clone(), "text/event-stream"), &json!("now"), Some(&json!("t")));
        let all = mcp::messages(&now);
        assert_eq!((&all[0]["params"]["progressToken"], &all[1]["id"]), (&json!("t"), &json!("now")));
        let unasked = addressed(response(stream, "text/event-stream"), &json!(1), None);
        assert_eq!(mcp::messages(&unasked), [json!({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})]);
        let whole = addressed(response(answer.to_string(), "application/json"), &json!(9), None);
        assert_eq!(mcp::messages(&whole)[0]["id"], 9);
        let exact = r#"{"jsonrpc":"2.0","id":7,"result":{"n":1.50,"big":123456789012345678901234567890,"far":1e400}}"#;
        let told = addressed(response(exact.to_owned(), "application/json"), &json!(9), None);
        assert_eq!(
            &told.body[..],
            exact.replace("\"id\":7", "\"id\":9").as_bytes(),
            "numbers are handed on as written"
        );
        let refused = response("{\"id\": null, \"error\": {\"code\": 1}}".into(), "application/json");
        assert_eq!(mcp::messages(&addressed(refused, &json!(9), None))[0]["id"], Value::Null);
        let other = addressed(response("Not Found".into(), "text/plain"), &json!(9), None);
        assert_eq!(&other.body[..], b"Not Found");
    }

    #[test]
    fn a_request_of_the_server_in_the_stream_of_an_answer_is_found() {
        let asks = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}});
        let found = asks_back(&response(format!("data: {asks}\n\n"), "text/event-stream"));
        assert_eq!(found.as_deref(), Some("elicitation/create"));
    }
}
