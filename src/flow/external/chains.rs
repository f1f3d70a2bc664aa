//! What a service keeps of a conversation: a request of Responses or of a thread of Messages that continues an answer sends
//! what is new alone, and an answer in the background is fetched when it is complete. Here the request gets what came before,
//! and its answer, so that both are read as in every other dialect.

use crate::provider::wire::{self, anthropic_messages, is_unfinished, openai_responses};
use crate::provider::{EXACT, ended_by, observed};
use crate::transport::{HttpResponse, Passed};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What was kept of the conversations of a trial: members of a request, by the id of the answer that they end with, or that
/// of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Chains(BTreeMap<String, Map<String, Value>>);

/// How requests of a dialect continue a conversation.
struct Continuing {
    dialect: &'static str,
    /// Where a request names the answer or the conversation that it continues.
    continues: &'static [&'static str],
    /// The member that a request adds to.
    list: &'static str,
    /// Members that the service keeps with it.
    kept: &'static [&'static str],
    /// The member of a request without which the service keeps nothing.
    only_with: Option<&'static str>,
    /// What an answer adds to the list.
    adds: fn(Value) -> Vec<Value>,
}

const CONTINUING: [Continuing; 2] = [
    Continuing {
        dialect: openai_responses::NAME,
        continues: &["/previous_response_id", "/conversation/id", "/conversation"],
        list: "input",
        kept: &[],
        only_with: None,
        adds: |mut answer| items_of(answer["output"].take()),
    },
    Continuing {
        dialect: anthropic_messages::NAME,
        continues: &["/thread/previous_message_id"],
        list: "messages",
        kept: &["system", "tools"],
        only_with: Some("thread"),
        adds: |mut answer| vec![json!({"role": "assistant", "content": answer["content"].take()})],
    },
];

impl Chains {
    /// Gives each request for an answer what the service kept for it.
    pub(super) fn follow(&mut self, passed: &mut [Passed]) {
        fetch(passed);
        for one in passed {
            let name = one.request.profile.name;
            if let Some(continuing) = CONTINUING.iter().find(|continuing| continuing.dialect == name) {
                self.continued(continuing, one);
            } else if name == EXACT.name {
                self.added(one);
            }
        }
    }

    /// Puts what was kept in front of a request that continues it.
    fn continued(&mut self, by: &Continuing, one: &mut Passed) {
        let named = by.continues.iter().find_map(|place| one.request.body.pointer(place)?.as_str()).map(str::to_owned);
        let before = named.as_ref().and_then(|id| self.0.get(id));
        if let Some(before) = before
            && let Some(body) = Arc::make_mut(&mut one.request.body).as_object_mut()
        {
            for (member, kept) in before {
                let own = body.entry(member.clone()).or_insert(Value::Null);
                if member == by.list {
                    *own = items_of(kept.clone()).into_iter().chain(items_of(own.take())).collect();
                } else if own.is_null() {
                    own.clone_from(kept);
                }
            }
        }
        let body = &one.request.body;
        if by.only_with.is_some_and(|member| !body[member].is_object()) {
            return;
        }
        let answer = one.result.as_ref().ok().filter(|response| is_whole(by.dialect, response));
        let Some(answer) = answer.and_then(|response| answer_of(by.dialect, response)) else { return };
        let conversation = named.filter(|_| !body["conversation"].is_null());
        let ids: Vec<String> = answer["id"].as_str().map(str::to_owned).into_iter().chain(conversation).collect();
        let list = items_of(body[by.list].clone()).into_iter().chain((by.adds)(answer));
        let mut members = Map::from_iter([(by.list.to_owned(), list.collect())]);
        members.extend(by.kept.iter().filter_map(|member| Some(((*member).to_owned(), body.get(*member)?.clone()))));
        self.0.extend(ids.into_iter().map(|id| (id, members.clone())));
    }

    /// Keeps the items that the agent itself puts into a conversation, when it begins one or later.
    fn added(&mut self, one: &Passed) {
        let answer = one.result.as_ref().ok().and_then(answered);
        let Some(answer) = answer.filter(|_| one.request.method == "POST") else { return };
        let id = match segments(&one.request.path)[..] {
            ["conversations"] => answer["id"].as_str(),
            ["conversations", id, "items"] => Some(id),
            _ => None,
        };
        if let Some(id) = id {
            let list = self.0.entry(id.to_owned()).or_default().entry("input").or_insert_with(|| json!([]));
            let items = items_of(list.take()).into_iter().chain(items_of(one.request.body["items"].clone()));
            *list = items.collect();
        }
    }
}

/// Gives a request whose answer was not complete the one that was fetched later under its id.
fn fetch(passed: &mut [Passed]) {
    for later in 1..passed.len() {
        let (before, fetched) = passed.split_at_mut(later);
        let request = &fetched[0].request;
        let (["responses", id], "GET") = (&segments(&request.path)[..], request.method) else { continue };
        let Some(whole) = fetched[0].result.as_ref().ok().and_then(answered).filter(|answer| !is_waiting(answer))
        else {
            continue;
        };
        let polls = before.iter().filter(|one| one.request.path == request.path && one.request.method == "GET");
        let polled: Duration = polls.map(Passed::took).sum();
        let asked = before.iter_mut().rev().filter(|one| one.request.profile.name == openai_responses::NAME);
        let mut waiting = asked.filter_map(|one| {
            let response = one.result.as_mut().ok()?;
            answered(response).filter(|answer| answer["id"] == **id && is_waiting(answer))?;
            Some(response)
        });
        if let Some(response) = waiting.next() {
            response.body = whole.to_string().into();
            response.headers = vec![("content-type".to_owned(), "application/json".to_owned())];
            response.chunks = Vec::new();
            response.took += polled + fetched[0].took();
        }
    }
}

/// Whether an answer is not complete.
fn is_waiting(answer: &Value) -> bool {
    answer["status"].as_str().is_some_and(is_unfinished)
}

/// The segments of a path without its query.
fn segments(path: &str) -> Vec<&str> {
    path.split('?').next().unwrap_or_default().split('/').filter(|segment| !segment.is_empty()).collect()
}

/// Items of a conversation, which may be one text.
fn items_of(list: Value) -> Vec<Value> {
    match list {
        Value::Array(items) => items,
        Value::String(text) => vec![json!({"role": "user", "content": text})],
        _ => Vec::new(),
    }
}

/// The answer of Responses.
fn answered(response: &HttpResponse) -> Option<Value> {
    answer_of(openai_responses::NAME, response)
}

/// The answer of a dialect as a document, streamed or not, as far as it came.
fn answer_of(dialect: &str, response: &HttpResponse) -> Option<Value> {
    let good = (200..300).contains(&response.status);
    good.then(|| observed::document(dialect, &response.headers, &response.body)).flatten().filter(Value::is_object)
}

/// Whether an answer came to its end, if it is a stream.
fn is_whole(dialect: &str, response: &HttpResponse) -> bool {
    wire::by_name(dialect).is_none_or(|dialect| {
        !dialect.framing.is_stream(&response.headers, &response.body) || ended_by(dialect).is_whole(&response.body)
    })
}
