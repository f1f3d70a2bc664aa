//! Forwards requests and records the exchanges, redacted, for a cassette.

use super::{
    HttpRequest, HttpResponse, Learner, PlacedResult, Profile, RecordedPlace, Service, Transport, TransportError,
    links, sse,
};
use crate::cassette::{Chunk, Exchange, Outcome, Redactor, Request, StoredRequest};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use crate::platform::secrets::frame_ends;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Header of a simulator's responses, which are not evidence about a provider.
pub const SIMULATOR_HEADER: &str = "x-ragcheck-simulator";
/// Header of a failure that a simulator was asked to produce, also in its recording: it belongs to the case and is not
/// an outage.
pub(crate) const DECLARED_FAULT_HEADER: &str = "x-ragcheck-declared-fault";
/// Header of a body that broke off, by itself or as a declared fault: a proxy ends the connection after it.
pub(crate) const BROKEN_HEADER: &str = "x-ragcheck-broken-off";

/// Least time until a foreign agent gets an answer: requests that it sends at once to a service that answers at once are
/// then in flight together, and recorded as such. The recorded time is that of the service.
const TOGETHER: Duration = Duration::from_millis(20);

/// Records one lane. Exchanges are numbered when they are sent, so concurrency does not reorder the file.
pub struct RecordTransport {
    inner: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    learner: Learner,
    kept: Mutex<Recording>,
}

#[derive(Default)]
struct Recording {
    sent: u32,
    under_way: u32,
    burst: u32,
    exchanges: Vec<Exchange>,
    simulated: BTreeMap<String, bool>,
    profiles: BTreeMap<&'static str, &'static Profile>,
}

impl RecordTransport {
    /// Records the traffic through `inner`; `redactor` should know every key in use.
    pub fn new(inner: Arc<dyn Transport>, clock: Arc<dyn Clock>, redactor: Arc<Redactor>) -> Self {
        Self { inner, clock, learner: Learner(Mutex::new(redactor)), kept: Mutex::default() }
    }

    /// The redactor in use: the given one, extended by keys found in requests.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.learner.redactor()
    }

    /// The exchanges recorded so far, in the order of sending.
    pub fn finish(&self) -> Vec<Exchange> {
        let (mut exchanges, profiles) = {
            let kept = lock(&self.kept);
            (kept.exchanges.clone(), kept.profiles.clone())
        };
        exchanges.sort_by_key(|exchange| exchange.ordinal);
        let redactor = self.redactor();
        for (place, exchange) in exchanges.iter_mut().enumerate() {
            // A later request may have told that something is a key.
            if let Some(profile) = profiles.get(exchange.profile.as_str()) {
                redact(exchange, profile, &redactor);
            }
            // A request that was not sent leaves no gap: a gap in a file means that an exchange was deleted.
            exchange.ordinal = u32::try_from(place).unwrap_or(u32::MAX);
        }
        exchanges
    }

    /// Origin of the answers, by service: `simulator`, or the name in `providers` and the requested model.
    pub fn recorded_from(&self, providers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let kept = lock(&self.kept);
        let mut names = BTreeMap::new();
        // A request without a model, such as one for the list of models, says least about the origin.
        let (unnamed, named): (Vec<_>, Vec<_>) =
            kept.exchanges.iter().partition(|exchange| exchange.drift.model.is_empty());
        for exchange in named.into_iter().chain(unnamed) {
            let name = if kept.simulated.get(&exchange.service).copied().unwrap_or(false) {
                "simulator".to_owned()
            } else {
                let provider = providers.get(&exchange.service).map_or(exchange.service.as_str(), String::as_str);
                format!("{provider} {}", exchange.drift.model).trim_end().to_owned()
            };
            names.entry(exchange.service.clone()).or_insert(name);
        }
        names
    }

    /// Versions of the matching profiles in use.
    pub fn profiles(&self) -> BTreeMap<String, u32> {
        let kept = lock(&self.kept);
        let used = kept.exchanges.iter().map(|exchange| exchange.profile.as_str());
        used.filter_map(|name| Some((name.to_owned(), kept.profiles.get(name)?.version))).collect()
    }

    /// Sends and records; overlap with an earlier request is recorded if the caller asks for the position.
    async fn exchange(&self, request: HttpRequest, placed: bool) -> PlacedResult {
        if let Some(message) = links::broken_in(&request) {
            return (None, Err(TransportError::Invalid { message }));
        }
        if request.profile.is_notice() {
            return (None, self.inner.send(request).await);
        }
        let redactor = self.learner.learn(request.secrets());
        let matching = request.profile;
        let canonical = Request { profile: matching, method: request.method, path: &request.path, body: &request.body };
        let (start, at) = (self.clock.now(), request.at);
        let (place, beside) = {
            let mut kept = lock(&self.kept);
            let beside = kept.under_way > 0;
            kept.sent += 1;
            kept.under_way += 1;
            kept.burst += u32::from(!beside);
            kept.profiles.insert(matching.name, matching);
            (RecordedPlace { ordinal: kept.sent - 1, burst: kept.burst, at, body: None }, beside)
        };
        let (receiver, asked_by) = (request.service, request.method);
        let (service, waiting) = (receiver.as_str().to_owned(), Outcome::Abandoned { after: Duration::ZERO });
        let exchange = Exchange::of(place.ordinal, service, canonical, waiting, &redactor);
        let exchange = Exchange { beside: beside && placed, at, ..exchange };
        let mut pending = Pending { recorder: self, exchange: Some(exchange), start };
        let result = self.inner.send(request).await;
        if placed {
            self.clock.sleep((start + TOGETHER).saturating_sub(self.clock.now())).await;
        }
        // What a service gives an agent comes back in later requests.
        let given: Vec<_> = result.iter().flat_map(|response| response.secrets(receiver)).collect();
        let logs_in = !given.is_empty();
        let outcome = match &result {
            Ok(response) => {
                if response.header(SIMULATOR_HEADER).is_some() {
                    pending.simulated();
                }
                let redactor = if logs_in { self.learner.learn(given.into_iter()) } else { redactor };
                Some(answered(response, (receiver, asked_by), &redactor))
            }
            Err(TransportError::Connection { message, took }) => {
                Some(Outcome::ConnectionError { message: redactor.redact(message).into_owned(), took: *took })
            }
            Err(TransportError::Timeout { after }) => Some(Outcome::Timeout { after: *after }),
            // Nothing was sent, so there is nothing to record.
            Err(
                TransportError::Miss(_)
                | TransportError::Invalid { .. }
                | TransportError::Withheld { .. }
                | TransportError::Faulted { .. },
            ) => None,
        };
        // The flow continues with the recorded form: an echoed key would otherwise make replay differ. A response by which a
        // service logs an agent in works only as it was given; what it gives is redacted in the agent's requests too.
        let kept = match &outcome {
            Some(Outcome::Response { body, rewritten: true, chunks, .. }) if !logs_in => {
                Some((body.clone(), chunks.clone()))
            }
            _ => None,
        };
        pending.settle(outcome);
        let result = match (result, kept) {
            (Ok(response), Some((body, chunks))) => Ok(HttpResponse { body, chunks, ..response }),
            (result, _) => result,
        };
        (Some(place), result)
    }
}

/// Whether the body of a response broke off.
pub(crate) fn broke_off(response: &HttpResponse) -> bool {
    response.header(BROKEN_HEADER).is_some()
}

/// The recorded form of a response.
fn answered(response: &HttpResponse, (service, method): (Service, &str), redactor: &Redactor) -> Outcome {
    let redacted = redactor.redact_body(&response.body);
    let mut headers = match service {
        Service::Declared(_) => redactor.headers_of_service(&response.headers),
        _ => redactor.headers(&response.headers),
    };
    // Asked for the headers alone, a service tells the length of what it does not send.
    let length = response.header("content-length").filter(|_| method == "HEAD");
    headers.extend(length.map(|length| ("content-length".to_owned(), length.to_owned())));
    Outcome::Response {
        status: response.status,
        headers,
        rewritten: redacted.is_some(),
        chunks: match &redacted {
            Some(body) => realigned(&response.chunks, &response.body, body),
            None => response.chunks.clone(),
        },
        body: redacted.map_or_else(|| response.body.clone(), Into::into),
        took: response.took,
    }
}

/// Redacts what was recorded before these secrets were known.
fn redact(exchange: &mut Exchange, profile: &'static Profile, redactor: &Redactor) {
    match &mut exchange.outcome {
        Outcome::Response { headers, body, rewritten, chunks, .. } => {
            for (_, value) in headers {
                *value = redactor.redact(value).into_owned();
            }
            if let Some(clean) = redactor.redact_body(body) {
                *chunks = realigned(chunks, body, &clean);
                (*body, *rewritten) = (clean.into(), true);
            }
        }
        Outcome::ConnectionError { message, .. } => *message = redactor.redact(message).into_owned(),
        Outcome::Timeout { .. } | Outcome::Abandoned { .. } => {}
    }
    let Some(StoredRequest { method, path, body, .. }) = &exchange.request else { return };
    let request = Request { profile, method, path, body };
    let (service, outcome) = (exchange.service.clone(), exchange.outcome.clone());
    let again = Exchange::of(exchange.ordinal, service, request, outcome, redactor);
    if again.request != exchange.request {
        *exchange = Exchange { beside: exchange.beside, at: exchange.at, ..again };
    }
}

/// The chunks of a body that redaction changed: each ends with the last event or frame that it completed before.
fn realigned(chunks: &[Chunk], before: &[u8], after: &[u8]) -> Vec<Chunk> {
    let ends = |body: &[u8]| -> Vec<usize> {
        let events = || sse::read_all(body).unwrap_or_default();
        let of_events = || events().iter().map(|event| event.bytes.end.min(body.len())).collect();
        frame_ends(body).unwrap_or_else(of_events)
    };
    let (old, new) = (ends(before), ends(after));
    let last = chunks.len().saturating_sub(1);
    let moved = chunks.iter().enumerate().map(|(place, chunk)| {
        let whole = old.partition_point(|end| *end <= chunk.end).min(new.len());
        let end = if place == last { after.len() } else { whole.checked_sub(1).map_or(0, |event| new[event]) };
        Chunk { at: chunk.at, end }
    });
    moved.collect()
}

/// An exchange in flight. If dropped before it completes, it is recorded as abandoned, so that replay waits equally
/// long.
struct Pending<'r> {
    recorder: &'r RecordTransport,
    exchange: Option<Exchange>,
    start: Duration,
}

impl Pending<'_> {
    fn simulated(&self) {
        if let Some(exchange) = &self.exchange {
            lock(&self.recorder.kept).simulated.insert(exchange.service.clone(), true);
        }
    }

    fn settle(&mut self, outcome: Option<Outcome>) {
        let Some(exchange) = self.exchange.take() else { return };
        let mut kept = lock(&self.recorder.kept);
        kept.under_way -= 1;
        if let Some(outcome) = outcome {
            kept.exchanges.push(Exchange { outcome, ..exchange });
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.exchange.is_some() {
            let after = self.recorder.clock.now().saturating_sub(self.start);
            self.settle(Some(Outcome::Abandoned { after }));
        }
    }
}

impl Transport for RecordTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move { self.exchange(request, false).await.1 })
    }

    fn send_placed(&self, request: HttpRequest) -> BoxFuture<'_, PlacedResult> {
        Box::pin(self.exchange(request, true))
    }
}
