//! What a live run may spend, and the wish that it end: shared by all of its trials.
//!
//! [`LimitTransport`] stands before the wire. It asks a provider no faster than its [`Pace`] allows, and once the budget is used up it lets none through any more: whoever asks waits until the run, told by
//! [`Budget::ended`], drops the trial. So a trial is either whole or did not happen.

use super::pace::Pace;
use super::{HttpRequest, HttpResponse, Service, Transport, TransportError};
use crate::platform::clock::{BoxFuture, PausableClock};
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

    /// Trials under way.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::SeqCst)
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
mod tests;
