//! Orders the exchanges of a turn and groups the attempts of each request.

use super::Words;
use crate::provider::observed::{self, Asks, Observed};
use crate::provider::{Attempt, Failure};
use crate::transport::{HttpRequest, HttpResponse, Passed, Service, TransportError};
use serde_json::Value;

/// Exchanges of one request: the first, and its repeats after a failure.
pub(super) struct Group {
    /// The request, in the words of the recording.
    pub(super) request: HttpRequest,
    /// The attempts.
    pub(super) passed: Vec<Passed>,
}

impl Group {
    /// Its attempts, and the result of the last.
    pub(super) fn observed<T>(
        &self,
        read: impl Fn(&HttpRequest, &Result<HttpResponse, TransportError>) -> Observed<T>,
    ) -> Option<(Vec<Attempt>, Result<T, Failure>)> {
        let (attempts, mut results): (Vec<_>, Vec<_>) =
            self.passed.iter().map(|one| read(&self.request, &one.result)).map(|one| (one.attempt, one.result)).unzip();
        Some((attempts, results.pop()?))
    }
}

/// Sorts exchanges by time of sending, except that searches and requests for vectors are sorted by their content where
/// nothing else is sent between them.
pub(super) fn in_order(passed: Vec<Passed>) -> Vec<Passed> {
    let mut ordered: Vec<Passed> = Vec::with_capacity(passed.len());
    let mut searches: Vec<Passed> = Vec::new();
    for one in passed {
        if matches!(observed::asks(&one.request), Asks::Completion | Asks::Declared | Asks::ToolCall) {
            searches.sort_by_cached_key(content);
            ordered.append(&mut searches);
            ordered.push(one);
        } else {
            searches.push(one);
        }
    }
    searches.sort_by_cached_key(content);
    ordered.append(&mut searches);
    ordered
}

fn content(passed: &Passed) -> (String, Service, &'static str, String) {
    let request = &passed.request;
    (request.body.to_string(), request.service, request.method, request.path.clone())
}

/// Groups each exchange with the repeats that follow its failure.
pub(super) fn grouped(passed: Vec<Passed>, words: &dyn Words) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for one in passed {
        let again = groups.last_mut().filter(|group| {
            let same = |last: &Passed| asks(&last.request) == asks(&one.request);
            group.passed.last().is_some_and(|last| same(last) && failed(last))
        });
        if let Some(group) = again {
            group.passed.push(one);
        } else {
            let request = HttpRequest { body: words.body(&one.request.body).into(), ..one.request.clone() };
            groups.push(Group { request, passed: vec![one] });
        }
    }
    groups
}

/// A request without its headers; Gemini's model stands in the path.
fn asks(request: &HttpRequest) -> (Service, &str, &str, &Value) {
    (request.service, request.method, &request.path, &request.body)
}

fn failed(passed: &Passed) -> bool {
    !passed.result.as_ref().is_ok_and(|response| (200..300).contains(&response.status))
}
