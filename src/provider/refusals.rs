//! Keeps the refusals of a trial's latest requests.
//!
//! Attempts are reported when a call ends. A turn that reaches its time limit while a service refuses or does not
//! answer drops the call; its refusals are kept here, so that an outage is not mistaken for a slow agent.

use super::{Attempt, ErrorKind, wire};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use crate::transport::{DECLARED_FAULT_HEADER, HttpRequest, HttpResponse, Transport, TransportError, held};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Transport that keeps the attempts that failed since the last success.
pub(crate) struct Refusals {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    kept: Mutex<ServiceAttempts>,
}

#[derive(Default)]
struct ServiceAttempts {
    failed: Vec<(Duration, Attempt)>,
    /// Time of sending of the request in flight.
    under_way: Option<Duration>,
}

impl Refusals {
    /// Wraps `transport`, with the trial's clock.
    pub(crate) fn new(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> Self {
        Self { transport, clock, kept: Mutex::default() }
    }

    /// Attempts sent at `from` (by the clock) or later that failed, without a success since. Empty if most of the time
    /// until now was spent in the request in flight, which was not refused.
    pub(crate) fn since(&self, from: Duration) -> Vec<Attempt> {
        let (now, kept) = (self.clock.now(), lock(&self.kept));
        let refused = kept.under_way.unwrap_or(now).saturating_sub(from);
        if refused * 2 < now.saturating_sub(from) {
            return Vec::new();
        }
        kept.failed.iter().filter(|(at, _)| *at >= from).map(|(_, attempt)| attempt.clone()).collect()
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let at = self.clock.now();
        lock(&self.kept).under_way = Some(at);
        let service = request.service;
        let result = self.transport.send(request).await;
        lock(&self.kept).under_way = None;
        let held = result.as_ref().ok().and_then(held);
        let (status, cause, took, declared_fault) = match &result {
            Ok(response) if response.status < 400 => {
                let Some(kind) = wire::reported_kind(&response.body) else {
                    lock(&self.kept).failed.clear();
                    return result;
                };
                (Some(response.status), kind, response.took, false)
            }
            Ok(response) => {
                let kind = wire::error_kind(response.status, &String::from_utf8_lossy(&response.body));
                (Some(response.status), kind, response.took, response.header(DECLARED_FAULT_HEADER).is_some())
            }
            Err(error) => {
                let Some(kind) = ErrorKind::of_transport(error) else { return result };
                (None, kind, error.took(), matches!(error, TransportError::Faulted { .. }))
            }
        };
        let attempt = Attempt { declared_fault, held, ..Attempt::new(service, status, Some(cause), took) };
        lock(&self.kept).failed.push((at, attempt));
        result
    }
}

impl Transport for Refusals {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

#[cfg(test)]
mod tests {
    use super::super::retry::tests::{Script, request};
    use super::*;
    use crate::platform::clock::{VirtualClock, block_on};

    #[test]
    fn what_was_refused_is_kept_until_something_works_and_told_from_a_time_on() {
        let answer = |status: u16| {
            let error =
                if status == 201 { "{\"error\": {\"code\": 429, \"message\": \"upstream is busy\"}}" } else { "" };
            let (took, body) = (Duration::from_millis(10), bytes::Bytes::from(error));
            Ok(HttpResponse { status, headers: Vec::new(), body, took, chunks: Vec::new() })
        };
        let after = Duration::from_mins(1);
        let script = vec![answer(500), answer(200), answer(201), Err(TransportError::Timeout { after })];
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let refusals = Refusals::new(Arc::new(Script(Mutex::new(script))), Arc::new(clock.clone()));
        let send = || {
            block_on(&clock, async {
                clock.sleep(Duration::from_secs(1)).await;
                let _ = refusals.send(request()).await;
            })
            .expect("no deadlock");
        };
        let causes = |from: u64| {
            let since = refusals.since(Duration::from_secs(from));
            since.into_iter().map(|attempt| (attempt.status, attempt.cause)).collect::<Vec<_>>()
        };
        send();
        assert_eq!(causes(0), [(Some(500), Some(ErrorKind::Server))]);
        send();
        assert_eq!(causes(0), []);
        send();
        send();
        assert_eq!(causes(0), [(Some(201), Some(ErrorKind::RateLimit)), (None, Some(ErrorKind::Timeout))]);
        assert_eq!(causes(4), [(None, Some(ErrorKind::Timeout))]);
    }

    #[test]
    fn a_service_that_refused_once_and_is_slow_since_did_not_refuse() {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let refusals = Refusals::new(Arc::new(Script(Mutex::default())), Arc::new(clock.clone()));
        let cause = Some(ErrorKind::RateLimit);
        let attempt = Attempt::new(crate::transport::Service::Model, Some(429), cause, Duration::ZERO);
        lock(&refusals.kept).failed.push((Duration::ZERO, attempt));
        lock(&refusals.kept).under_way = Some(Duration::from_secs(2));
        let after = |seconds: u64| {
            block_on(&clock, clock.sleep(Duration::from_secs(seconds))).expect("no deadlock");
            refusals.since(Duration::ZERO).len()
        };
        assert_eq!((after(3), after(3)), (1, 0));
    }
}
