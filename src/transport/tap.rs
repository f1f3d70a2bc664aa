//! Keeps what passes to a service, so that a trace can be told from it. It changes nothing, until it is closed.
//!
//! What the asker hung up on is not kept: it was never answered.

use super::{HttpRequest, HttpResponse, Transport, TransportError};
use crate::clock::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One request that passed, with what came back.
#[derive(Debug, Clone)]
pub struct Passed {
    /// What was asked.
    pub request: HttpRequest,
    /// What came back.
    pub result: Result<HttpResponse, TransportError>,
}

impl Passed {
    /// How long it took; in replay, how long it took when it was recorded.
    pub fn took(&self) -> Duration {
        match &self.result {
            Ok(response) => response.took,
            Err(error) => error.took(),
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    sent: u64,
    closed: bool,
    passed: Vec<(u64, Passed)>,
    secrets: Vec<(String, String)>,
}

/// Passes requests on and keeps them until [`Tap::take`].
pub struct Tap {
    inner: Arc<dyn Transport>,
    kept: Mutex<Kept>,
}

impl Tap {
    /// A tap on the way to `inner`.
    pub fn new(inner: Arc<dyn Transport>) -> Self {
        Self { inner, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What passed since the last call, in the order of sending.
    pub fn take(&self) -> Vec<Passed> {
        let mut passed = std::mem::take(&mut self.kept().passed);
        passed.sort_by_key(|(ordinal, _)| *ordinal);
        passed.into_iter().map(|(_, passed)| passed).collect()
    }

    /// Lets nothing pass any more: whoever still asks is told that the turn is over, and not to try again.
    pub fn close(&self) {
        self.kept().closed = true;
    }

    /// The keys that requests brought with them: a name for messages, and the value.
    pub fn secrets(&self) -> Vec<(String, String)> {
        self.kept().secrets.clone()
    }

    async fn pass(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let ordinal = {
            let mut kept = self.kept();
            for secret in request.secrets() {
                if !kept.secrets.contains(&secret) {
                    kept.secrets.push(secret);
                }
            }
            if kept.closed {
                let message = "the turn ran into its time limit and is over; nothing is answered any more".to_owned();
                return Err(TransportError::Invalid { message });
            }
            kept.sent += 1;
            kept.sent
        };
        let result = self.inner.send(request.clone()).await;
        let request = HttpRequest { headers: Vec::new(), ..request };
        self.kept().passed.push((ordinal, Passed { request, result: result.clone() }));
        result
    }
}

impl Transport for Tap {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.pass(request))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, Service};
    use super::*;
    use crate::clock::{VirtualClock, block_on};
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
        let request = HttpRequest {
            service,
            profile: &Profile::EXACT,
            method: "POST",
            path,
            body: body.into(),
            stream: None,
            headers,
        };
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        for _ in 0..2 {
            block_on(&clock, tap.send(request.clone())).expect("no deadlock").expect("an answer");
        }
        let passed = tap.take();
        assert_eq!((passed.len(), passed[0].took()), (2, Duration::from_millis(3)));
        assert!(passed.iter().all(|one| one.request.headers.is_empty()), "{passed:?}");
        assert_eq!(tap.secrets(), [("agent's authorization".to_owned(), "agents-own-key".to_owned())]);
        assert!(tap.take().is_empty());
        tap.close();
        let refused = block_on(&clock, tap.send(request)).expect("no deadlock");
        assert!(matches!(refused, Err(TransportError::Invalid { .. })), "{refused:?}");
        assert!(tap.take().is_empty());
    }
}
