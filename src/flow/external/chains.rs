//! Conversations that the service keeps: a Responses request that continues an earlier answer sends its new items alone. Here
//! it gets what came before, so that what the model was shown is read as for every other dialect.

use crate::provider::wire::openai_responses;
use crate::transport::{HttpResponse, Passed, sse};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Items of the conversations of a trial, by the id of the answer that they end with, or that of a kept conversation.
#[derive(Debug, Default)]
pub(crate) struct Chains(BTreeMap<String, Vec<Value>>);

impl Chains {
    /// Puts the items of an earlier answer in front of those of each request that continues it.
    pub(super) fn follow(&mut self, passed: &mut [Passed]) {
        for one in passed.iter_mut().filter(|one| one.request.profile.name == openai_responses::NAME) {
            let body = &one.request.body;
            let kept = body["conversation"]["id"].as_str().or_else(|| body["conversation"].as_str()).map(str::to_owned);
            let before = body["previous_response_id"].as_str().or(kept.as_deref());
            let before = before.and_then(|id| self.0.get(id)).cloned().unwrap_or_default();
            let own = match &body["input"] {
                Value::Array(items) => items.clone(),
                Value::String(text) => vec![json!({"role": "user", "content": text})],
                _ => Vec::new(),
            };
            let continues = !before.is_empty();
            let mut items: Vec<Value> = before.into_iter().chain(own).collect();
            if continues {
                Arc::make_mut(&mut one.request.body)["input"] = items.clone().into();
            }
            let Some(answer) = one.result.as_ref().ok().and_then(answer) else { continue };
            items.extend(answer["output"].as_array().into_iter().flatten().cloned());
            let ids = answer["id"].as_str().map(str::to_owned).into_iter().chain(kept);
            self.0.extend(ids.map(|id| (id, items.clone())));
        }
    }
}

/// The answer as a document, which a stream holds in its last event.
fn answer(response: &HttpResponse) -> Option<Value> {
    if !(200..300).contains(&response.status) {
        return None;
    }
    if !sse::is_stream(&response.headers, &response.body) {
        return serde_json::from_slice(&response.body).ok();
    }
    let events = sse::Reader::whole(&response.body).ok()?;
    let documents = events.iter().rev().filter_map(|event| serde_json::from_str::<Value>(&event.data).ok());
    documents.map(|mut document| document["response"].take()).find(|response| response["output"].is_array())
}
