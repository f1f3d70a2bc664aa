//! The retry loop of every dialect: transient failures only, full jitter, Retry-After honoured up to a limit. An empty
//! body or an HTML page is retried once: gateways send them temporarily, or permanently if the address is wrong.
//!
//! Waits are drawn from the trial's seed, the service and the ordinal of the call, never from shared state: a trial has
//! the same waits live, while recording and in replay.

use super::{Access, Attempt, Attempted, ErrorKind, ProviderError};
use crate::platform::clock::Clock;
use crate::transport::{DECLARED_FAULT_HEADER, HttpRequest, HttpResponse, TransportError, held};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// When, and after which wait, a request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Total number of attempts, including the first; 0 counts as 1.
    pub attempts: u32,
    /// Upper bound of the first wait; it doubles with every attempt.
    pub base: Duration,
    /// Upper bound of any drawn wait.
    pub cap: Duration,
    /// Upper bound of a wait that the service requests.
    pub retry_after_cap: Duration,
    /// The trial's seed; in replay, the one in the cassette's header.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(8),
            retry_after_cap: Duration::from_secs(30),
            seed: 0,
        }
    }
}

/// Reason why one attempt returned nothing usable, as the dialect sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Message of the service, redacted.
    pub message: String,
}

/// Sends the output of `request` until it succeeds, fails permanently, or the policy's attempts are used up.
///
/// `call` is the ordinal of this call among those to the same service.
pub(super) async fn attempt<T>(
    Access { transport, clock, policy }: &Access,
    call: u64,
    request: impl Fn() -> HttpRequest + Send,
    decode: impl Fn(&HttpResponse) -> Result<T, Failure> + Send,
    first_token: impl Fn(&HttpResponse) -> Option<Duration> + Send,
) -> Attempted<T> {
    let mut attempts = Vec::new();
    let mut dice: Option<ChaCha8Rng> = None;
    let mut blank_before = false;
    loop {
        let request = request();
        let service = request.service;
        let declared_fault;
        let (mut blank, mut mark) = (false, None);
        let (failure, took, asked) = match transport.send(request).await {
            Err(TransportError::Miss(miss)) => {
                attempts.push(Attempt::new(service, None, None, Duration::ZERO));
                return Attempted { result: Err(ProviderError::Miss(miss)), attempts };
            }
            Err(error) => {
                declared_fault = matches!(error, TransportError::Faulted { .. });
                let (kind, took) = (ErrorKind::of_transport(&error).unwrap_or(ErrorKind::BadRequest), error.took());
                let message = match error {
                    TransportError::Connection { message, .. }
                    | TransportError::Invalid { message }
                    | TransportError::Withheld { message } => message,
                    other => other.to_string(),
                };
                (Failure { kind, status: None, message }, took, Asked::Nothing)
            }
            Ok(response) => match decode(&response) {
                Ok(value) => {
                    let (status, took) = (Some(response.status), response.took);
                    let first_token = first_token(&response);
                    attempts.push(Attempt {
                        first_token,
                        held: held(&response),
                        ..Attempt::new(service, status, None, took)
                    });
                    return Attempted { result: Ok(value), attempts };
                }
                Err(failure) => {
                    (declared_fault, mark) = (response.header(DECLARED_FAULT_HEADER).is_some(), held(&response));
                    blank = is_blank(&failure, &response);
                    (failure, response.took, asked(&response, &**clock))
                }
            },
        };
        let last = attempts.len() as u64 + 1 >= u64::from(policy.attempts);
        let again = failure.kind.is_transient() || (blank && !std::mem::replace(&mut blank_before, blank));
        let wait = if last || asked == Asked::NoRetry || !again {
            None
        } else if let Asked::Wait(wait) = asked {
            Some(wait.min(policy.retry_after_cap))
        } else {
            let dice = dice.get_or_insert_with(|| self::dice(policy.seed, service.as_str(), call));
            let doubled = policy.base.saturating_mul(1 << attempts.len().min(20)).min(policy.cap);
            let bound = u64::try_from(doubled.as_micros()).unwrap_or(u64::MAX);
            Some(Duration::from_micros(dice.random_range(0..=bound)))
        };
        attempts.push(Attempt {
            wait,
            declared_fault,
            held: mark,
            ..Attempt::new(service, failure.status, Some(failure.kind), took)
        });
        let Some(wait) = wait else {
            let Failure { kind, status, message } = failure;
            return Attempted { result: Err(ProviderError::Failed { kind, status, message }), attempts };
        };
        clock.sleep(wait).await;
    }
}

/// Whether a response is empty or an HTML page instead of an answer.
fn is_blank(failure: &Failure, response: &HttpResponse) -> bool {
    failure.kind == ErrorKind::HtmlPage || failure.kind == ErrorKind::Malformed && response.body.trim_ascii().is_empty()
}

fn dice(seed: u64, service: &str, call: u64) -> ChaCha8Rng {
    let digest = Sha256::digest([&seed.to_le_bytes(), service.as_bytes(), &call.to_le_bytes()].concat());
    ChaCha8Rng::from_seed(digest.into())
}

/// Retry instructions of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Wait(Duration),
    NoRetry,
}

/// Reads `retry-after-ms`, `retry-after` in seconds or as an HTTP date (RFC 9110), and `x-should-retry: false`.
fn asked(response: &HttpResponse, clock: &dyn Clock) -> Asked {
    if response.header("x-should-retry").is_some_and(|value| value.trim() == "false") {
        return Asked::NoRetry;
    }
    let positive = |text: &str, unit: f64| {
        let number = text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0)?;
        Duration::try_from_secs_f64((number * unit).min(1e9)).ok()
    };
    if let Some(wait) = response.header("retry-after-ms").and_then(|text| positive(text, 0.001)) {
        return Asked::Wait(wait);
    }
    let Some(text) = response.header("retry-after") else { return Asked::Nothing };
    if let Some(wait) = positive(text, 1.0) {
        return Asked::Wait(wait);
    }
    match jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()) {
        // Rounded up to whole seconds like the date, so that the wait does not depend on the microsecond of the
        // request.
        Ok(date) => {
            let left = date.as_second().saturating_sub(clock.wall().as_second());
            Asked::Wait(Duration::from_secs(u64::try_from(left).unwrap_or(0)))
        }
        Err(_) => Asked::Nothing,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
    use crate::transport::{Miss, Service, Transport};
    use serde_json::Value;
    use std::sync::{Arc, Mutex};

    /// A transport that returns these results in order.
    pub struct Script(pub Mutex<Vec<Result<HttpResponse, TransportError>>>);

    impl Transport for Script {
        fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            let next = self.0.lock().expect("unpoisoned").remove(0);
            Box::pin(std::future::ready(next))
        }
    }

    /// Any request to the model.
    pub fn request() -> HttpRequest {
        HttpRequest::new(Service::Model, &crate::provider::EXACT, "POST", "/", Value::Null)
    }

    fn response(status: u16, headers: &[(&str, &str)]) -> Result<HttpResponse, TransportError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Ok(HttpResponse {
            status,
            headers,
            body: bytes::Bytes::new(),
            took: Duration::from_millis(10),
            chunks: Vec::new(),
        })
    }

    fn run(script: Vec<Result<HttpResponse, TransportError>>, seed: u64) -> (Attempted<u16>, Duration) {
        let clock = VirtualClock::at("2026-11-06T08:49:37Z".parse().expect("a time"));
        let transport = Arc::new(Script(Mutex::new(script)));
        let policy = RetryPolicy { seed, ..RetryPolicy::default() };
        let access = Access { transport, clock: Arc::new(clock.clone()), policy };
        let decode = |response: &HttpResponse| match response.status {
            200 => Ok(200),
            status => Err(Failure {
                kind: match status {
                    429 => ErrorKind::RateLimit,
                    402 => ErrorKind::Quota,
                    _ => ErrorKind::Server,
                },
                status: Some(status),
                message: String::new(),
            }),
        };
        let work = attempt(&access, 0, request, decode, |_| None);
        let attempted = block_on(&clock, work).expect("no deadlock");
        (attempted, clock.now())
    }

    fn waits(attempted: &Attempted<u16>) -> Vec<Option<Duration>> {
        attempted.attempts.iter().map(|attempt| attempt.wait).collect()
    }

    #[test]
    fn transient_failures_are_tried_again_with_bounded_jitter_from_the_seed() {
        let script = || vec![response(500, &[]), response(503, &[]), response(500, &[]), response(200, &[])];
        let (first, slept) = run(script(), 7);
        assert!(first.result.is_ok());
        assert_eq!(first.attempts.len(), 4);
        let waited = waits(&first);
        assert!(waited[3].is_none());
        for (wait, bound) in waited.iter().flatten().zip([500, 1000, 2000]) {
            assert!(*wait <= Duration::from_millis(bound), "{waited:?}");
        }
        assert_eq!(slept, waited.iter().flatten().sum());
        assert_eq!(waits(&run(script(), 7).0), waited);
        assert_ne!(waits(&run(script(), 8).0), waited);
    }

    #[test]
    fn attempts_are_bounded_and_the_last_failure_is_told() {
        let (attempted, _) =
            run(vec![response(500, &[]), response(500, &[]), response(500, &[]), response(502, &[])], 1);
        assert_eq!(attempted.attempts.len(), 4);
        assert!(matches!(
            attempted.result,
            Err(ProviderError::Failed { kind: ErrorKind::Server, status: Some(502), .. })
        ));
    }

    #[test]
    fn retry_after_is_honoured_in_its_three_spellings_and_bounded() {
        for (name, value, expected) in [
            ("retry-after", "3", 3_000),
            ("retry-after", "0.25", 250),
            ("retry-after-ms", "1500", 1_500),
            ("retry-after", "Fri, 06 Nov 2026 08:49:42 GMT", 5_000),
            ("retry-after", "Fri, 06 Nov 2020 08:49:42 GMT", 0),
            ("retry-after", "86400", 30_000),
            ("retry-after", "1e300", 30_000),
        ] {
            let (attempted, slept) = run(vec![response(429, &[(name, value)]), response(200, &[])], 1);
            assert!(attempted.result.is_ok());
            assert_eq!(slept, Duration::from_millis(expected), "{name}: {value}");
        }
    }

    #[test]
    fn quota_and_misses_and_what_the_service_forbids_are_never_tried_again() {
        let (quota, slept) = run(vec![response(402, &[("retry-after", "1")])], 1);
        assert_eq!((quota.attempts.len(), slept), (1, Duration::ZERO));
        let (forbidden, _) = run(vec![response(500, &[("x-should-retry", "false")])], 1);
        assert_eq!(forbidden.attempts.len(), 1);
        let miss = Miss { message: "m".to_owned(), cause: "c".to_owned(), detail: Vec::new() };
        let (missed, _) = run(vec![Err(TransportError::Miss(Box::new(miss)))], 1);
        assert!(matches!(missed.result, Err(ProviderError::Miss(_))));
        assert_eq!(missed.attempts.len(), 1);
    }

    #[test]
    fn a_broken_connection_is_tried_again() {
        let broken = TransportError::Connection { message: "reset".to_owned(), took: Duration::from_millis(4) };
        let (attempted, _) = run(vec![Err(broken), response(200, &[])], 1);
        assert!(attempted.result.is_ok());
        assert_eq!(attempted.attempts[0].cause, Some(ErrorKind::Connection));
        assert_eq!(attempted.attempts[0].took, Duration::from_millis(4));
    }
}
