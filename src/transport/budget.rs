//! What a live run may spend, and the wish that it end: shared by all of its trials.
//!
//! [`LimitTransport`] stands before the wire. It asks a provider no faster than its [`Pace`] allows, and once the budget is used up it lets none through any more: whoever asks waits until the run, told by
//! [`Budget::ended`], drops the trial. So a trial is either whole or did not happen.

use super::pace::Pace;
use super::{HttpRequest, HttpResponse, Service, Transport, TransportError};
use crate::clock::{BoxFuture, PausableClock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;

/// The budget of one run.
#[derive(Debug, Default)]
pub struct Budget {
    most_calls: Option<u64>,
    calls: AtomicU64,
    most_dollars: Option<f64>,
    money: Mutex<Money>,
    settled: Notify,
    reason: OnceLock<String>,
    told: Notify,
    under_way: AtomicU64,
    trial_ended: Notify,
}

/// What of the money is gone, in US dollars.
#[derive(Debug, Default)]
struct Money {
    spent: f64,
    /// For requests under way: the most that each may cost.
    reserved: f64,
    under_way: u64,
    /// The dearest answer of each service so far.
    dearest: BTreeMap<Service, f64>,
}

/// The money that is kept for one request. Dropped before the answer is known, it is spent: the service may bill it.
#[derive(Debug)]
struct Reservation<'b> {
    budget: &'b Budget,
    service: Service,
    dollars: f64,
    /// What the request cost, where that is known.
    cost: Option<f64>,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut money = self.budget.money.lock().unwrap_or_else(PoisonError::into_inner);
        let cost = self.cost.unwrap_or(self.dollars);
        money.reserved -= self.dollars;
        money.under_way -= 1;
        money.spent += cost;
        let dearest = money.dearest.entry(self.service).or_default();
        *dearest = dearest.max(cost);
        drop(money);
        self.budget.settled.notify_waiters();
    }
}

/// Requests that are kept free for each trial under way, so that those that were begun can end.
const CALLS_KEPT_PER_TRIAL: u64 = 16;

/// A trial under way, until it is dropped.
#[derive(Debug)]
pub struct TrialUnderWay<'b>(&'b Budget);

impl Drop for TrialUnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        self.0.trial_ended.notify_waiters();
    }
}

impl Budget {
    /// At most so many requests; `None` for as many as it takes.
    pub fn new(most_calls: Option<u64>) -> Self {
        Self { most_calls, ..Self::default() }
    }

    /// And for at most so many US dollars: for each request the most that it may cost, by its [`Tariff`], is reserved
    /// before it is sent.
    #[must_use]
    pub fn with_dollars(mut self, most: Option<f64>) -> Self {
        self.most_dollars = most;
        self
    }

    /// Whether money counts.
    fn counts_dollars(&self) -> bool {
        self.most_dollars.is_some()
    }

    /// Keeps the most that a request may cost, `quote`, until its answer tells what it did cost. Waits while other
    /// requests hold what is missing; where nothing is missing that could come back, the run ends and `None` is returned.
    async fn reserve(&self, service: Service, quote: Option<f64>) -> Option<Reservation<'_>> {
        let most = self.most_dollars.unwrap_or(f64::INFINITY);
        let Some(quote) = quote else {
            self.end(&format!(
                "--max-cost {most} cannot be kept: a request to the {} service has no `max_tokens`, or its model has no price",
                service.as_str()
            ));
            return None;
        };
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            // Registered before the look, so that nothing is missed between the two.
            settled.as_mut().enable();
            if self.reason().is_some() {
                return None;
            }
            {
                let mut money = self.money.lock().unwrap_or_else(PoisonError::into_inner);
                // What a service reads by itself is in no request: its dearest answer so far is the better guess.
                let dollars = money.dearest.get(&service).copied().unwrap_or_default().max(quote);
                if money.spent + money.reserved + dollars <= most {
                    money.reserved += dollars;
                    money.under_way += 1;
                    return Some(Reservation { budget: self, service, dollars, cost: None });
                }
                if money.under_way == 0 {
                    let (spent, calls) = (money.spent, self.calls());
                    drop(money);
                    self.end(&format!(
                        "--max-cost {most} is used up: about ${spent:.4} in {calls} requests, and the next may cost ${dollars:.4}"
                    ));
                    return None;
                }
            }
            settled.await;
        }
    }

    /// Ends the run; the first reason given stands.
    pub fn end(&self, reason: &str) {
        let _ = self.reason.set(reason.to_owned());
        self.told.notify_waiters();
    }

    /// Why the run is to end; `None` while it is not.
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Resolves when the run is to end, with the reason.
    pub async fn ended(&self) -> &str {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            // Registered before the look, so that nothing is missed between the two.
            told.as_mut().enable();
            if let Some(reason) = self.reason() {
                return reason;
            }
            told.await;
        }
    }

    /// Waits until another trial may begin. With a bound on requests, so many are kept free for each trial under way
    /// that few are begun in vain: a budget spread over all of them would finish none. One trial alone may always begin.
    pub async fn begin_trial(&self) -> TrialUnderWay<'_> {
        loop {
            let ended = self.trial_ended.notified();
            tokio::pin!(ended);
            // Registered before the look, so that nothing is missed between the two.
            ended.as_mut().enable();
            let may = |under_way: u64| {
                let kept = (under_way + 1).saturating_mul(CALLS_KEPT_PER_TRIAL);
                let fits = self.most_calls.is_none_or(|most| self.calls().saturating_add(kept) <= most);
                (under_way == 0 || fits).then_some(under_way + 1)
            };
            if self.under_way.fetch_update(Ordering::SeqCst, Ordering::SeqCst, may).is_ok() {
                return TrialUnderWay(self);
            }
            ended.await;
        }
    }

    /// Requests sent so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Whether one more request may be sent; the first that may not ends the run.
    fn spend(&self) -> bool {
        if self.reason().is_some() {
            return false;
        }
        let most = self.most_calls.unwrap_or(u64::MAX);
        let next = |calls: u64| (calls < most).then_some(calls + 1);
        if self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).is_ok() {
            return true;
        }
        self.end(&format!("--max-calls {most} is used up"));
        false
    }
}

/// What requests and their answers cost, in US dollars.
pub trait Tariff: Send + Sync {
    /// The most that a request may cost; `None` when nothing bounds it.
    fn quote(&self, request: &HttpRequest) -> Option<f64>;

    /// What a response of a service cost, by the name of its profile; `None` when that is not known.
    fn cost(&self, service: Service, profile: &str, response: &HttpResponse) -> Option<f64>;
}

/// Holds requests back as the providers' limits and the run's budget say.
pub struct LimitTransport {
    inner: Arc<dyn Transport>,
    paces: BTreeMap<Service, Arc<Pace>>,
    budget: Arc<Budget>,
    clock: PausableClock,
    tariff: Option<Arc<dyn Tariff>>,
}

impl LimitTransport {
    /// Before `inner`, for the trial of that clock, which stands still while it waits.
    pub fn new(
        inner: Arc<dyn Transport>,
        paces: BTreeMap<Service, Arc<Pace>>,
        budget: Arc<Budget>,
        clock: PausableClock,
    ) -> Self {
        Self { inner, paces, budget, clock, tariff: None }
    }

    /// With money reserved for each request and charged for each response, where the budget counts money.
    #[must_use]
    pub fn with_tariff(self, tariff: Arc<dyn Tariff>) -> Self {
        Self { tariff: Some(tariff), ..self }
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let waits = self.clock.waiting();
        let permit = match self.paces.get(&request.service) {
            Some(pace) => Some(pace.enter().await),
            None => None,
        };
        let tariff = self.tariff.as_ref().filter(|_| self.budget.counts_dollars());
        let mut reservation = None;
        if let Some(tariff) = tariff {
            reservation = self.budget.reserve(request.service, tariff.quote(&request)).await;
            if reservation.is_none() {
                std::future::pending::<()>().await;
            }
        }
        if !self.budget.spend() {
            // It is not sent, so it costs nothing.
            if let Some(kept) = &mut reservation {
                kept.cost = Some(0.0);
            }
            drop(reservation);
            return std::future::pending().await;
        }
        let _sends = self.clock.sending();
        drop(waits);
        let (service, profile) = (request.service, request.profile.name);
        let answer = self.inner.send(request).await;
        if let (Some(permit), Ok(response)) = (&permit, &answer) {
            permit.answered(response.status, &response.body);
        }
        if let (Some(tariff), Some(mut kept)) = (tariff, reservation) {
            match &answer {
                Ok(response) => {
                    kept.cost = tariff.cost(service, profile, response);
                    // For vectors no more is billed than the text that was sent, which is what was reserved.
                    if kept.cost.is_none() && service != Service::Embeddings {
                        // A bound that nobody measures is none.
                        self.budget.end("--max-cost cannot be kept: a service did not tell its tokens");
                    }
                }
                Err(TransportError::Timeout { .. }) => {}
                Err(_) => kept.cost = Some(0.0),
            }
        }
        answer
    }
}

impl Transport for LimitTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::Profile;
    use crate::clock::{Clock, VirtualClock, block_on};
    use crate::settings::PaceLimits;
    use futures_util::future::join_all;
    use serde_json::Value;
    use std::time::Duration;

    /// Takes a second for each request, and knows how many were there at the same time.
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

    /// Answers after a second; what an answer costs is its body.
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

    /// Quotes this much for each request.
    struct Quotes(Option<f64>);

    impl Tariff for Quotes {
        fn quote(&self, _request: &HttpRequest) -> Option<f64> {
            self.0
        }

        fn cost(&self, _service: Service, _profile: &str, response: &HttpResponse) -> Option<f64> {
            String::from_utf8_lossy(&response.body).parse().ok()
        }
    }

    /// Sends so many requests at once within 1 dollar: the budget, what was sent, and how many were answered.
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
        // Those that may not be sent wait for somebody to drop them.
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
        assert!(budget.reason().is_some_and(|reason| reason.contains("did not tell its tokens")), "{budget:?}");
    }

    fn request(service: Service) -> HttpRequest {
        let (path, headers) = (String::new(), Vec::new());
        HttpRequest {
            service,
            profile: &Profile::EXACT,
            method: "POST",
            path,
            body: Value::Null.into(),
            stream: None,
            headers,
        }
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
}
