//! Observes the traffic with a service, so that a trace can be built from it. It changes nothing until it is closed.
//!
//! A request that the sender abandoned is not kept, because it was never answered; of a stream that it left, what it got is.
//! Overlapping exchanges arrive in varying order and are returned in the order of the recording, so that the trace is
//! always the same.

use super::order::{Observed, in_recorded_order};
use super::{
    DECLARED_FAULT_HEADER, HttpRequest, HttpResponse, PlacedResult, Transport, TransportError, broke_off, was_left,
};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request with its result.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub request: HttpRequest,
    pub result: Result<HttpResponse, TransportError>,
    /// When it was sent, since its turn began; in replay, as recorded.
    pub at: Option<Duration>,
}

impl Passed {
    /// Duration; in replay, the recorded duration.
    pub(crate) fn took(&self) -> Duration {
        match &self.result {
            Ok(response) => response.took,
            Err(error) => error.took(),
        }
    }
}

/// Which requests are forwarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Admission {
    #[default]
    Open,
    /// The reply was delivered, and the next turn has not begun.
    BetweenTurns,
    /// The turn ran into its limit.
    Closed,
}

#[derive(Default)]
struct TapState {
    /// A clock, and when the turn began by it.
    turn: Option<(Arc<dyn Clock>, Duration)>,
    /// Counter of starts and ends.
    moment: u64,
    under_way: u32,
    admission: Admission,
    late: u32,
    passed: Vec<Observed>,
    /// First request that its sender abandoned before it was answered.
    abandoned: Option<String>,
    secrets: Vec<(String, String)>,
    /// Services that were asked.
    services: BTreeSet<&'static str>,
}

impl TapState {
    fn keep(&mut self, secret: (String, String)) {
        if !self.secrets.contains(&secret) {
            self.secrets.push(secret);
        }
    }
}

/// Forwards requests and keeps them until [`Tap::take`].
pub(crate) struct Tap {
    inner: Arc<dyn Transport>,
    state: Mutex<TapState>,
}

/// A request in flight: counted until it is dropped, answered or not.
struct UnderWay<'t> {
    tap: &'t Tap,
    /// Method and path, until it is answered.
    waits: Option<String>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.tap.state);
        state.under_way -= 1;
        if let (Some(asked), Admission::Open) = (self.waits.take(), state.admission) {
            state.abandoned.get_or_insert(asked);
        }
    }
}

impl Tap {
    /// Creates a tap in front of `inner`.
    pub(crate) fn new(inner: Arc<dyn Transport>) -> Self {
        Self { inner, state: Mutex::default() }
    }

    /// Exchanges since the last call, in the order of sending; overlapping ones in the order of the recording.
    pub(crate) fn take(&self) -> Vec<Passed> {
        let passed = std::mem::take(&mut lock(&self.state).passed);
        in_recorded_order(passed).into_iter().map(|one| one.passed).collect()
    }

    /// Measures from now when the requests of a turn are sent.
    pub(crate) fn begin_turn(&self, clock: &Arc<dyn Clock>) {
        lock(&self.state).turn = Some((Arc::clone(clock), clock.now()));
    }

    /// Refuses all further requests, with a response that says that the turn is over and must not be retried.
    pub(crate) fn close(&self) {
        lock(&self.state).admission = Admission::Closed;
    }

    /// Refuses and counts all requests from now until [`Tap::open`].
    pub(crate) fn end_turn(&self) {
        lock(&self.state).admission = Admission::BetweenTurns;
    }

    /// Forwards requests again; returns the number refused since [`Tap::end_turn`].
    pub(crate) fn open(&self) -> u32 {
        let mut state = lock(&self.state);
        state.admission = Admission::Open;
        std::mem::take(&mut state.late)
    }

    /// The first request that its sender abandoned before it was answered.
    pub(crate) fn abandoned(&self) -> Option<String> {
        lock(&self.state).abandoned.clone()
    }

    /// Number of requests in flight.
    pub(crate) fn under_way(&self) -> u32 {
        lock(&self.state).under_way
    }

    /// Number of starts and ends of requests so far.
    pub(crate) fn moment(&self) -> u64 {
        lock(&self.state).moment
    }

    /// Keys found in requests: a name for messages, and the value.
    pub(crate) fn secrets(&self) -> Vec<(String, String)> {
        lock(&self.state).secrets.clone()
    }

    /// Services that were asked so far.
    pub(crate) fn services(&self) -> BTreeSet<&'static str> {
        lock(&self.state).services.clone()
    }

    async fn pass(&self, request: HttpRequest) -> PlacedResult {
        if request.profile.is_notice() {
            return self.inner.send_placed(request).await;
        }
        let (began, at, mut under_way) = {
            let mut state = lock(&self.state);
            request.secrets().for_each(|secret| state.keep(secret));
            let refused = match state.admission {
                Admission::Open => None,
                Admission::BetweenTurns => {
                    state.late += 1;
                    Some("the agent has replied and its turn is over; what it asks after that belongs to no turn")
                }
                Admission::Closed => Some("the turn ran into its time limit and is over; nothing is answered any more"),
            };
            if let Some(message) = refused {
                return (None, Err(TransportError::Invalid { message: message.to_owned() }));
            }
            state.moment += 1;
            state.under_way += 1;
            state.services.insert(request.service.as_str());
            let path = request.path.split('?').next().unwrap_or_default();
            let at = state.turn.as_ref().map(|(clock, began)| clock.now().saturating_sub(*began));
            (state.moment, at, UnderWay { tap: self, waits: Some(format!("{} {path}", request.method)) })
        };
        let request = HttpRequest { at, ..request };
        let (mut place, result) = self.inner.send_placed(request.clone()).await;
        if request.stream.is_some() && result.as_ref().is_ok_and(was_left) {
            if let Some(asked) = under_way.waits.take() {
                lock(&self.state).abandoned.get_or_insert(asked);
            }
            // What the agent got of a stream that it left is a step: it may have used it.
            if result.as_ref().is_ok_and(|response| response.body.is_empty()) {
                return (place, result);
            }
        }
        under_way.waits = None;
        // The trace of a replay is that of the recording.
        let body = place.as_mut().and_then(|place| place.body.take()).unwrap_or(request.body);
        let request = HttpRequest { headers: Vec::new(), sent: None, relay: None, body, ..request };
        let at = place.as_ref().and_then(|place| place.at).or(at);
        let passed = Passed { request, result: result.clone().and_then(judged), at };
        let mut state = lock(&self.state);
        let given = result.as_ref().ok().map(|response| response.secrets(passed.request.service));
        for secret in given.into_iter().flatten() {
            state.keep(secret);
        }
        state.moment += 1;
        let ended = state.moment;
        state.passed.push(Observed { began, ended, place: place.clone(), passed });
        drop(state);
        (place, result)
    }
}

/// A response as it is judged: one that its service broke off is none, as for the client. One that broke off as a declared
/// fault is the fault's.
fn judged(response: HttpResponse) -> Result<HttpResponse, TransportError> {
    if broke_off(&response) && response.header(DECLARED_FAULT_HEADER).is_none() {
        let message = "the service broke off its answer".to_owned();
        return Err(TransportError::Connection { message, took: response.took });
    }
    Ok(response)
}

impl Transport for Tap {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move { self.pass(request).await.1 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::tests::observed;
    use super::super::{Profile, Service};
    use super::*;
    use crate::platform::clock::{VirtualClock, block_on};
    use serde_json::json;

    struct Echo;

    impl Transport for Echo {
        fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            let (status, body) = (200, request.body.to_string().into());
            let took = Duration::from_millis(3);
            Box::pin(async move { Ok(HttpResponse { status, headers: Vec::new(), body, took, chunks: Vec::new() }) })
        }
    }

    #[test]
    fn what_passed_is_taken_once_and_without_the_keys_that_came_with_it() {
        let tap = Tap::new(Arc::new(Echo));
        let headers = vec![("authorization".to_owned(), "Bearer agents-own-key".to_owned())];
        let (service, path, body) = (Service::Model, String::new(), json!({"n": 1}));
        let profile = &const { Profile::plain("plain") };
        let request = HttpRequest { headers, ..HttpRequest::new(service, profile, "POST", path, body) };
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        for _ in 0..2 {
            block_on(&clock, tap.send(request.clone())).expect("no deadlock").expect("an answer");
        }
        let passed = tap.take();
        assert_eq!((passed.len(), passed[0].took()), (2, Duration::from_millis(3)));
        assert!(passed.iter().all(|one| one.request.headers.is_empty()), "{passed:?}");
        assert_eq!(tap.secrets(), [("agent's authorization".to_owned(), "agents-own-key".to_owned())]);
        let login = "Basic ZWxhc3RpYzpQdzdLZDkzbVF6THg4MlRu".to_owned();
        let basic = HttpRequest { headers: vec![("authorization".to_owned(), login)], ..request.clone() };
        let keys: Vec<String> = basic.secrets().map(|(_, key)| key).collect();
        assert_eq!(keys, ["ZWxhc3RpYzpQdzdLZDkzbVF6THg4MlRu", "Pw7Kd93mQzLx82Tn"]);
        assert!(tap.take().is_empty());
        tap.close();
        let refused = block_on(&clock, tap.send(request)).expect("no deadlock");
        assert!(matches!(refused, Err(TransportError::Invalid { .. })), "{refused:?}");
        assert!(tap.take().is_empty());
    }

    #[test]
    fn what_is_asked_between_two_turns_is_refused_and_counted() {
        let tap = Tap::new(Arc::new(Echo));
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let ask = || block_on(&clock, tap.send(observed(0, 0, (0, 0)).passed.request)).expect("no deadlock");
        tap.end_turn();
        assert!(matches!(ask(), Err(TransportError::Invalid { message }) if message.contains("has replied")));
        assert_eq!((tap.open(), tap.under_way()), (1, 0));
        assert!(ask().is_ok());
        assert_eq!((tap.open(), tap.take().len()), (0, 1));
    }
}
