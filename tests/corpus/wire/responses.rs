//! Responses: texts, calls, usage and reasons equal a plain reading; errors have a kind; nothing panics on rubbish.

use super::requests::equal;
use super::{Exchange, corpus, exchanges, plain, streams};
use ragcheck::internals::provider::ErrorKind;
use ragcheck::internals::provider::chat::{ChatResponse, Finish, Role};
use ragcheck::internals::provider::wire::{Dialect, embeddings, error_kind, error_message};
use serde_json::Value;

/// Whether the response, streamed or not, reads as it plainly says, or its error has a kind.
pub fn check(exchange: &Exchange) -> Result<(), String> {
    if exchange.status != 200 {
        let kind = error_kind(exchange.status, &exchange.response);
        let said = error_message(&exchange.response);
        let fits = match exchange.status {
            _ if kind == ErrorKind::NoModel => said.contains("model"),
            401 | 403 => kind == ErrorKind::Auth,
            429 => matches!(kind, ErrorKind::RateLimit | ErrorKind::Quota),
            400..500 => matches!(kind, ErrorKind::BadRequest | ErrorKind::ContextLength),
            _ => matches!(kind, ErrorKind::Server | ErrorKind::Overloaded),
        };
        let whole = fits && !said.is_empty() && !said.starts_with('{');
        return if whole { Ok(()) } else { Err(format!("{} became {kind:?}: {said}", exchange.status)) };
    }
    if exchange.streamed {
        let dialect = exchange.dialect.ok_or("a stream without a dialect")?;
        return streams::check(dialect, exchange.response.as_bytes());
    }
    let body: Value = serde_json::from_str(&exchange.response).map_err(|error| error.to_string())?;
    match exchange.dialect {
        Some(dialect) => compare(dialect, &body, &plain::response(dialect, &body)),
        None if exchange.api == "embeddings" => {
            let response = embeddings::decode_response(&body, embeddings::Packing::SignedBytes);
            let response = response.map_err(|error| error.to_string())?;
            equal("vectors", &response.vectors.len(), &body["data"].as_array().map_or(0, Vec::len))?;
            equal("tokens", &response.usage.input, &body["usage"]["prompt_tokens"].as_u64())
        }
        // A list of models: there is nothing to translate.
        None => Ok(()),
    }
}

pub fn compare(dialect: &'static Dialect, body: &Value, plain: &plain::Response) -> Result<(), String> {
    let response = dialect.decode_response(body).map_err(|error| error.to_string())?;
    equal("text", &response.content, &plain.text)?;
    let calls: Vec<_> = response.calls.iter().map(|call| (call.name.clone(), plain::json(&call.arguments))).collect();
    equal("calls", &calls, &plain.calls)?;
    let finish = match plain.finish.as_str() {
        "STOP" | "completed" if !calls.is_empty() => Finish::ToolCalls,
        "stop" | "end_turn" | "stop_sequence" | "STOP" | "completed" => Finish::Stop,
        "tool_calls" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" | "MAX_TOKENS" => Finish::Length,
        "refusal" | "content_filter" | "SAFETY" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    };
    equal("finish", &response.finish, &finish)?;
    equal("input tokens", &response.usage.input, &plain.input)?;
    equal("cached tokens", &response.usage.cached, &plain.cached)?;
    equal("output tokens", &response.usage.output, &plain.output)?;
    sent_back(dialect, &response, body)
}

/// The reply as the next message: its words, and every signature, are in the request that it becomes part of.
fn sent_back(dialect: &'static Dialect, response: &ChatResponse, body: &Value) -> Result<(), String> {
    let request = ragcheck::internals::provider::chat::ChatRequest::new("m", vec![response.to_message()]);
    let written = dialect.encode_request(&request);
    let again = dialect.decode_request("", &written).map_err(|error| error.to_string())?;
    // A call that the service ran goes back with its result, as one of the agent's would.
    let (results, said): (Vec<_>, Vec<_>) = again.messages.into_iter().partition(|message| message.role == Role::Tool);
    let is_answered = |id: &str| results.iter().any(|result| result.answers.as_deref() == Some(id));
    equal("the reply's text when sent back", &texts(&said), &response.content)?;
    let calls: Vec<_> =
        said.iter().flat_map(|message| message.calls.clone()).filter(|call| !is_answered(&call.id)).collect();
    equal("the reply's calls when sent back", &calls, &response.calls)?;
    let sent = written.to_string();
    for signature in signatures(body) {
        if !sent.contains(&signature) {
            return Err(format!("{signature} is not sent back"));
        }
    }
    Ok(())
}

fn texts(messages: &[ragcheck::internals::provider::chat::Message]) -> String {
    messages.iter().map(|message| message.content.as_str()).collect()
}

/// What a provider wants back unread, wherever it stands in the reply.
fn signatures(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let here = map.iter().filter(|(key, value)| {
                ["thoughtSignature", "signature", "encrypted_content"].contains(&key.as_str())
                    && value.as_str().is_some_and(|text| !text.is_empty())
            });
            let mut found: Vec<String> = here.map(|(_, value)| value.to_string()).collect();
            found.extend(
                map.iter().filter(|(key, _)| *key != "provider_metadata").flat_map(|(_, value)| signatures(value)),
            );
            found
        }
        Value::Array(list) => list.iter().flat_map(signatures).collect(),
        _ => Vec::new(),
    }
}

/// Every document with one part of it taken out or replaced is read or refused, without a panic.
#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn broken_documents_are_refused_and_never_panic() {
    let corpus = corpus();
    let (mut read, mut refused) = (0, 0);
    for exchange in exchanges(&corpus) {
        let Some(dialect) = exchange.dialect else { continue };
        let mut documents: Vec<Value> = exchange.request.into_iter().collect();
        documents.extend(serde_json::from_str::<Value>(&exchange.response));
        for document in documents {
            for broken in broken(&document) {
                for result in [
                    dialect.decode_request("", &broken).map(|request| _ = dialect.encode_request(&request)),
                    dialect.decode_response(&broken).map(|response| _ = response.to_message()),
                ] {
                    if result.is_ok() { read += 1 } else { refused += 1 }
                }
            }
        }
    }
    println!("broken documents: {read} read, {refused} refused");
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

/// Copies of `document`, each with one place near the top replaced by something else.
fn broken(document: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    pointers(document, String::new(), 4, &mut places);
    let stride = places.len().div_ceil(24).max(1);
    let others = [
        Value::Null,
        Value::from(7),
        Value::from("x"),
        serde_json::json!([]),
        serde_json::json!({}),
        serde_json::json!([[1]]),
    ];
    let picked = places.iter().step_by(stride).zip(others.iter().cycle());
    picked
        .map(|(place, other)| {
            let mut copy = document.clone();
            *copy.pointer_mut(place).expect("a place of the document") = other.clone();
            copy
        })
        .collect()
}

fn pointers(value: &Value, here: String, depth: usize, places: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let below = format!("{here}/{}", key.replace('~', "~0").replace('/', "~1"));
                pointers(value, below.clone(), depth - 1, places);
                places.push(below);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate().take(3) {
                let below = format!("{here}/{index}");
                pointers(value, below.clone(), depth - 1, places);
                places.push(below);
            }
        }
        _ => {}
    }
}
