//! What OpenAI's Responses keep at the service: a request that continues an earlier answer or a conversation sends its new
//! items alone, and an answer in the background is fetched when it is complete. Here the request gets what came before, and
//! its answer, so that both are read as in every other dialect.

use crate::provider::EXACT;
use crate::provider::wire::openai_responses;
use crate::transport::{HttpResponse, Passed, sse};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Items of the conversations of a trial, by the id of the answer that they end with, or that of a kept conversation.
#[derive(Debug, Default)]
pub(crate) struct Chains(BTreeMap<String, Vec<Value>>);

impl Chains {
    /// Gives each request for an answer what the service kept for it.
    pub(super) fn follow(&mut self, passed: &mut [Passed]) {
        fetch(passed);
        for one in passed {
            if one.request.profile.name == openai_responses::NAME {
                self.continued(one);
            } else if one.request.profile.name == EXACT.name {
                self.added(one);
            }
        }
    }

    /// Puts the items of an earlier answer in front of those of a request that continues it.
    fn continued(&mut self, one: &mut Passed) {
        let body = &one.request.body;
        let kept = body["conversation"]["id"].as_str().or_else(|| body["conversation"].as_str()).map(str::to_owned);
        let before = body["previous_response_id"].as_str().or(kept.as_deref());
        let before = before.and_then(|id| self.0.get(id)).cloned().unwrap_or_default();
        let continues = !before.is_empty();
        let mut items: Vec<Value> = before.into_iter().chain(items_of(&body["input"])).collect();
        if continues {
            Arc::make_mut(&mut one.request.body)["input"] = items.clone().into();
        }
        let Some(answer) = one.result.as_ref().ok().and_then(answer) else { return };
        items.extend(items_of(&answer["output"]));
        let ids = answer["id"].as_str().map(str::to_owned).into_iter().chain(kept);
        self.0.extend(ids.map(|id| (id, items.clone())));
    }

    /// Keeps the items that the agent itself puts into a conversation, when it begins one or later.
    fn added(&mut self, one: &Passed) {
        let Some(answer) = one.result.as_ref().ok().and_then(document) else { return };
        let id = match segments(&one.request.path)[..] {
            ["conversations"] => answer["id"].as_str(),
            ["conversations", id, "items"] => Some(id),
            _ => None,
        };
        if let Some(id) = id.filter(|_| one.request.method == "POST") {
            self.0.entry(id.to_owned()).or_default().extend(items_of(&one.request.body["items"]));
        }
    }
}

/// Gives a request whose answer was not complete the one that was fetched later under its id.
fn fetch(passed: &mut [Passed]) {
    for later in 1..passed.len() {
        let (before, fetched) = passed.split_at_mut(later);
        let request = &fetched[0].request;
        let (["responses", id], "GET") = (&segments(&request.path)[..], request.method) else { continue };
        let Some(whole) = fetched[0].result.as_ref().ok().and_then(answer).filter(|answer| !is_waiting(answer)) else {
            continue;
        };
        let asked = before.iter_mut().rev().filter(|one| one.request.profile.name == openai_responses::NAME);
        let mut waiting = asked.filter_map(|one| {
            let response = one.result.as_mut().ok()?;
            answer(response).filter(|answer| answer["id"] == **id && is_waiting(answer))?;
            Some(response)
        });
        if let Some(response) = waiting.next() {
            response.body = whole.to_string().into();
            response.headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            response.chunks = Vec::new();
            response.took += fetched[0].took();
        }
    }
}

/// Whether an answer is not complete.
fn is_waiting(answer: &Value) -> bool {
    matches!(answer["status"].as_str(), Some("queued" | "in_progress"))
}

/// The segments of a path without its query.
fn segments(path: &str) -> Vec<&str> {
    path.split('?').next().unwrap_or_default().split('/').filter(|segment| !segment.is_empty()).collect()
}

/// Items of a conversation, which may be one text.
fn items_of(input: &Value) -> Vec<Value> {
    match input {
        Value::Array(items) => items.clone(),
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        _ => Vec::new(),
    }
}

/// A JSON answer of a request that was good.
fn document(response: &HttpResponse) -> Option<Value> {
    (200..300).contains(&response.status).then(|| serde_json::from_slice(&response.body).ok())?
}

/// The answer as a document, which a stream holds in its last event.
fn answer(response: &HttpResponse) -> Option<Value> {
    if !sse::is_stream(&response.headers, &response.body) {
        return document(response);
    }
    let events = sse::Reader::whole(&response.body).ok().filter(|_| (200..300).contains(&response.status))?;
    let documents = events.iter().rev().filter_map(|event| serde_json::from_str::<Value>(&event.data).ok());
    documents.map(|mut document| document["response"].take()).find(|response| response["output"].is_array())
}
