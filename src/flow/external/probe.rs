//! What the agent's keyword index holds, asked after each turn that wrote to it, or at the end of the trial: traffic
//! shows what an agent stores, and not what it finds again.
//!
//! The running agent is asked, in replay too: an index that broke would still be whole in a recording. A store that is
//! a declared service is asked through the proxy's transport, so its answer is recorded with the lane.

use super::{Trouble, Words};
use crate::knowledge::tokenize::normalised_keyword as normalise;
use crate::platform::clock::{Clock, timeout};
use crate::platform::{lenient_json, secrets};
use crate::provider::EXACT;
use crate::trace::IndexResult;
use crate::transport::{HttpRequest, Service, Transport, TransportError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The placeholder of a probe's address.
const CONVERSATION: &str = "{{conversation_id}}";
/// Characters of an answer that a message shows.
const SHOWN: usize = 120;

/// How the index is read.
pub(crate) struct Probe {
    pub way: Arc<dyn Transport>,
    /// The service that holds it: the agent itself, or a declared one.
    pub service: Service,
    /// Path and query, with `{{conversation_id}}` for the conversation's id.
    pub path: String,
    /// JSON pointer to the keywords in the answer.
    pub at: String,
    /// Its address, for messages.
    pub address: String,
    /// Whether it is asked at the end of the trial alone.
    pub after_trial: bool,
}

/// One keyword of the index, and the result that it leads to, if the index says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldKeyword {
    keyword: String,
    result: Option<String>,
}

impl Probe {
    /// Asks what the index holds; `limit` is that of a turn.
    ///
    /// # Errors
    /// [`Trouble`] if it cannot be read: that says nothing about the agent's answers.
    pub(super) async fn ask(
        &self,
        conversation: &str,
        clock: &dyn Clock,
        limit: Duration,
        words: &dyn Words,
    ) -> Result<Vec<HeldKeyword>, Trouble> {
        let path = self.path.replace(CONVERSATION, conversation);
        let request = HttpRequest::new(self.service, &EXACT, "GET", path, Value::Null);
        let at = &self.address;
        let response = match timeout(clock, limit, self.way.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(TransportError::Miss(miss))) => return Err(Trouble::Miss(miss)),
            Ok(Err(error)) => return Err(Trouble::Unreached(format!("`probe` {at} did not answer: {error}"))),
            Err(_) => {
                let limit = limit.as_secs_f64();
                return Err(Trouble::TooSlow(format!("`probe` {at} gave no answer within {limit} s (limits.turn)")));
            }
        };
        if !(200..300).contains(&response.status) {
            return Err(Trouble::SetUp(format!("`probe` {at} answered with HTTP {}", response.status)));
        }
        let read = lenient_json::read(&response.body).ok();
        let found = read.as_ref().and_then(|body| held(body.pointer(&self.at)?));
        let Some(found) = found else {
            let said = secrets::beginning(String::from_utf8_lossy(&response.body).trim(), SHOWN);
            let place = if self.at.is_empty() { "its answer".to_owned() } else { format!("`{}`", self.at) };
            return Err(Trouble::SetUp(format!(
                "`probe` {at}: {place} holds no list of keywords (`probe.at`); the answer begins with: {said}"
            )));
        };
        let told = |one: HeldKeyword| HeldKeyword {
            keyword: normalise(&words.text(&one.keyword)),
            result: one.result.map(|result| words.text(&result)),
        };
        Ok(found.into_iter().map(told).collect())
    }
}

/// Keywords in a list of texts or of objects (`keyword` or `keywords`, and the result's id), or the names of an object.
fn held(value: &Value) -> Option<Vec<HeldKeyword>> {
    let plain = |keyword: &str| HeldKeyword { keyword: keyword.to_owned(), result: None };
    match value {
        Value::Object(members) => Some(members.keys().map(|name| plain(name)).collect()),
        Value::Array(items) => {
            let each = items.iter().map(|item| match item {
                Value::String(keyword) => Some(vec![plain(keyword)]),
                Value::Object(_) => {
                    let result = ["result_id", "result"].into_iter().find_map(|name| item.get(name)?.as_str());
                    let result = result.map(str::to_owned);
                    let with = |keyword: &str| HeldKeyword { keyword: keyword.to_owned(), result: result.clone() };
                    match (item.get("keyword"), item.get("keywords")) {
                        (Some(Value::String(keyword)), _) => Some(vec![with(keyword)]),
                        (_, Some(Value::Array(all))) => all.iter().map(|one| one.as_str().map(with)).collect(),
                        _ => None,
                    }
                }
                _ => None,
            });
            each.collect::<Option<Vec<_>>>().map(|lists| lists.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// Notes which keywords of an entry the index holds, for its result where the index names results.
pub(super) fn read_back(entry: &mut IndexResult, held: &[HeldKeyword]) {
    let leads = |one: &HeldKeyword| one.result.as_ref().is_none_or(|result| *result == entry.result);
    let found = |keyword: &&String| held.iter().any(|one| one.keyword == normalise(keyword) && leads(one));
    entry.read_back = entry.keywords.iter().filter(found).cloned().collect();
}
