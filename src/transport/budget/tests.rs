//! Limits on requests, money and time, reached and not reached.

use super::*;
use crate::cassette::Profile;
use crate::platform::clock::{Clock, VirtualClock, block_on};
use crate::settings::PaceLimits;
use futures_util::future::join_all;
use serde_json::Value;
use std::time::Duration;

/// Takes a second per request and counts concurrent requests.
struct Slow {
    clock: VirtualClock,
    inside: AtomicU64,
    most: AtomicU64,
}

impl Transport for Slow {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async {
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(inside, Ordering::SeqCst);
            self.clock.sleep(Duration::from_secs(1)).await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            Err(TransportError::Timeout { after: Duration::from_secs(1) })
        })
    }
}

/// Answers after a second; the body of an answer is its cost.
struct Till {
    clock: VirtualClock,
    body: &'static str,
    sent: AtomicU64,
}

impl Transport for Till {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async {
            self.sent.fetch_add(1, Ordering::SeqCst);
            self.clock.sleep(Duration::from_secs(1)).await;
            let (headers, body) = (Vec::new(), self.body.into());
            Ok(HttpResponse { status: 200, headers, body, took: Duration::ZERO, chunks: Vec::new() })
        })
    }
}

/// Quotes this amount for each request.
struct Quotes(Option<f64>);

impl Tariff for Quotes {
    fn quote(&self, _request: &HttpRequest) -> Option<f64> {
        self.0
    }

    fn cost(&self, _service: Service, _profile: &str, response: &HttpResponse) -> Option<f64> {
        String::from_utf8_lossy(&response.body).parse().ok()
    }
}

/// Sends that many requests at once with a budget of 1 dollar; returns the budget, the requests sent, and the number
/// answered.
fn spent(requests: usize, quote: Option<f64>, body: &'static str) -> (Arc<Budget>, u64, usize) {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let till = Arc::new(Till { clock: clock.clone(), body, sent: AtomicU64::new(0) });
    let budget = Arc::new(Budget::new(None).with_dollars(Some(1.0)));
    let trials: Vec<LimitTransport> = (0..requests)
        .map(|_| {
            let held = PausableClock::new(Arc::new(clock.clone()));
            let limited = LimitTransport::new(Arc::clone(&till) as _, BTreeMap::new(), Arc::clone(&budget), held);
            limited.with_tariff(Arc::new(Quotes(quote)))
        })
        .collect();
    let answered = AtomicU64::new(0);
    let all = join_all(trials.iter().map(|limited| async {
        let answer = limited.send(request(Service::Model)).await;
        answered.fetch_add(u64::from(answer.is_ok()), Ordering::SeqCst);
    }));
    // Requests that may not be sent wait to be dropped.
    let _ = block_on(&clock, all);
    (budget, till.sent.load(Ordering::SeqCst), answered.load(Ordering::SeqCst) as usize)
}

#[test]
fn of_many_requests_at_once_none_is_sent_that_could_pass_the_limit() {
    let (budget, sent, answered) = spent(32, Some(0.3), "0.3");
    assert_eq!((sent, answered), (3, 3), "3 at 0.3 fit into 1");
    assert_eq!(
        budget.reason(),
        Some("--max-cost 1 is used up: about $0.9000 in 3 requests, and the next may cost $0.3000")
    );
    let (budget, sent, answered) = spent(32, Some(0.3), "0.1");
    assert_eq!((sent, answered), (8, 8), "what an answer did not cost is free again: 7 at 0.1 and one more at 0.3");
    assert!(budget.reason().is_some_and(|reason| reason.contains("$0.8000 in 8 requests")), "{budget:?}");
    let (budget, sent, _) = spent(4, Some(2.0), "0.1");
    assert_eq!(sent, 0, "{budget:?}");
}

#[test]
fn without_a_quote_nothing_is_sent_and_an_unknown_cost_ends_the_run() {
    let (budget, sent, _) = spent(4, None, "0.1");
    assert_eq!(sent, 0);
    assert!(budget.reason().is_some_and(|reason| reason.contains("no `max_tokens`")), "{budget:?}");
    let (budget, sent, answered) = spent(1, Some(0.1), "free");
    assert_eq!((sent, answered), (1, 1));
    assert!(budget.reason().is_some_and(|reason| reason.contains("did not report its tokens")), "{budget:?}");
}

fn request(service: Service) -> HttpRequest {
    HttpRequest::new(service, &const { Profile::plain("plain") }, "POST", "", Value::Null)
}

fn slow(clock: &VirtualClock) -> Arc<Slow> {
    Arc::new(Slow { clock: clock.clone(), inside: AtomicU64::new(0), most: AtomicU64::new(0) })
}

#[test]
fn no_more_requests_than_the_provider_allows_are_under_way_at_once_and_waiting_is_no_latency() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let inner = slow(&clock);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let limits = PaceLimits { concurrency: Some(2), ..PaceLimits::default() };
    let paces = BTreeMap::from([(Service::Model, Arc::new(Pace::new(limits, Arc::clone(&shared))))]);
    let trials: Vec<(PausableClock, LimitTransport)> = (0..6)
        .map(|_| {
            let held = PausableClock::new(Arc::clone(&shared));
            (held.clone(), LimitTransport::new(Arc::clone(&inner) as _, paces.clone(), Arc::default(), held))
        })
        .collect();
    let all = join_all(trials.iter().map(|(_, limited)| limited.send(request(Service::Model))));
    block_on(&clock, all).expect("no deadlock");
    assert_eq!((inner.most.load(Ordering::SeqCst), clock.now()), (2, Duration::from_secs(3)));
    let held: Duration = trials.iter().map(|(held, _)| held.held()).sum();
    assert_eq!(held, Duration::from_secs(2 + 2 * 2));
    let free = join_all(trials.iter().map(|(_, limited)| limited.send(request(Service::Search))));
    block_on(&clock, free).expect("no deadlock");
    assert_eq!(inner.most.load(Ordering::SeqCst), 6);
}

#[test]
fn a_bound_on_requests_begins_few_trials_at_once_and_none_waits_without_a_bound() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let budget = Budget::new(Some(CALLS_KEPT_PER_TRIAL));
    let first = block_on(&clock, budget.begin_trial()).expect("one may always begin");
    assert!(block_on(&clock, budget.begin_trial()).is_err(), "the second waits for the first");
    drop(first);
    let _next = block_on(&clock, budget.begin_trial()).expect("the first has ended");
    let free = Budget::new(None);
    let all: Vec<_> = (0..40).map(|_| block_on(&clock, free.begin_trial()).expect("no bound")).collect();
    assert_eq!(all.len(), 40);
}

#[test]
fn the_call_beyond_the_budget_is_never_sent_and_ends_the_run() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let budget = Arc::new(Budget::new(Some(2)));
    let held = PausableClock::new(Arc::new(clock.clone()));
    let limited = LimitTransport::new(slow(&clock), BTreeMap::new(), Arc::clone(&budget), held);
    for _ in 0..2 {
        assert!(block_on(&clock, limited.send(request(Service::Model))).expect("no deadlock").is_err());
    }
    assert_eq!((budget.calls(), budget.reason()), (2, None));
    let waits = block_on(&clock, limited.send(request(Service::Model)));
    assert!(waits.is_err(), "it waits for somebody to drop it");
    assert_eq!((budget.calls(), budget.reason()), (2, Some("--max-calls 2 is used up")));
    budget.end("another reason");
    let told = block_on(&clock, budget.ended()).expect("it has ended");
    assert_eq!(told, "--max-calls 2 is used up");
}
