//! Spending limits and cancellation of a live run, shared by all of its trials.
//!
//! [`LimitTransport`] wraps the live transport. It sends requests no faster than the provider's [`Pace`] allows, and
//! none once the budget is used up: further requests wait until the run, notified by [`Budget::ended`], drops the
//! trial. So a trial either completes or is not counted.

use super::pace::{Pace, until};
use super::{HttpRequest, HttpResponse, Service, Transport, TransportError, broke_off, was_left};
use crate::platform::clock::{BoxFuture, PausableClock};
use crate::platform::lock::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
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

/// Money spent and reserved, in US dollars.
#[derive(Debug, Default)]
struct Money {
    spent: f64,
    /// Reserved for requests in flight: the maximum cost of each.
    reserved: f64,
    under_way: u64,
    /// Highest cost of an answer so far, by service.
    dearest: BTreeMap<Service, f64>,
}

/// Money reserved for one request. If dropped before the answer is known, it counts as spent: the service may bill it.
#[derive(Debug)]
struct Reservation<'b> {
    budget: &'b Budget,
    service: Service,
    dollars: f64,
    /// Cost of the request, if known.
    cost: Option<f64>,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut money = lock(&self.budget.money);
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

/// Requests reserved for each running trial, so that started trials can finish.
const CALLS_KEPT_PER_TRIAL: u64 = 16;

/// A running trial, until it is dropped.
#[derive(Debug)]
pub struct TrialUnderWay<'b>(&'b Budget);

impl Drop for TrialUnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
        self.0.trial_ended.notify_waiters();
    }
}

impl Budget {
    /// Creates a budget of at most that many requests; `None` for no limit.
    pub fn new(most_calls: Option<u64>) -> Self {
        Self { most_calls, ..Self::default() }
    }

    /// Adds a limit in US dollars: the maximum cost of each request, by its `Tariff`, is reserved before it is sent.
    #[must_use]
    pub fn with_dollars(mut self, most: Option<f64>) -> Self {
        self.most_dollars = most;
        self
    }

    /// US dollars spent and reserved; 0 without a limit in dollars.
    pub fn spent(&self) -> f64 {
        let money = lock(&self.money);
        money.spent + money.reserved
    }

    /// Reserves `quote`, the maximum cost of a request, until its actual cost is known. Waits if other requests hold
    /// the missing amount; if no reservation could release it, ends the run and returns `None`.
    async fn reserve(&self, service: Service, quote: Option<f64>) -> Option<Reservation<'_>> {
        let most = self.most_dollars.unwrap_or(f64::INFINITY);
        let Some(quote) = quote else {
            self.end(&format!(
                "--max-cost {most} cannot be kept: a request to the {} service has no `max_tokens`, or its model has no price",
                service.as_str()
            ));
            return None;
        };
        let reserved = || {
            if self.reason().is_some() {
                return Some(None);
            }
            let mut money = lock(&self.money);
            // Input that a service adds by itself is not in the request: its highest cost so far is the better estimate.
            let dollars = money.dearest.get(&service).copied().unwrap_or_default().max(quote);
            if money.spent + money.reserved + dollars <= most {
                money.reserved += dollars;
                money.under_way += 1;
                return Some(Some(Reservation { budget: self, service, dollars, cost: None }));
            }
            if money.under_way > 0 {
                return None;
            }
            let (spent, calls) = (money.spent, self.calls());
            drop(money);
            self.end(&format!(
                "--max-cost {most} is used up: about ${spent:.4} in {calls} requests, and the next may cost ${dollars:.4}"
            ));
            Some(None)
        };
        until(&self.settled, reserved).await
    }

    /// Ends the run; the first reason is kept.
    pub fn end(&self, reason: &str) {
        let _ = self.reason.set(reason.to_owned());
        self.told.notify_waiters();
    }

    /// Reason why the run is to end; `None` if it is not.
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Resolves with the reason when the run is to end.
    pub async fn ended(&self) -> &str {
        until(&self.told, || self.reason()).await
    }

    /// Waits until another trial may start. With a limit on requests, some are reserved for each running trial, so that
    /// few trials start in vain: a budget spread over all of them would finish none. A single trial may always start.
    pub async fn begin_trial(&self) -> TrialUnderWay<'_> {
        let begun = || {
            let may = |under_way: u64| {
                let kept = (under_way + 1).saturating_mul(CALLS_KEPT_PER_TRIAL);
                let fits = self.most_calls.is_none_or(|most| self.calls().saturating_add(kept) <= most);
                (under_way == 0 || fits).then_some(under_way + 1)
            };
            self.under_way.fetch_update(Ordering::SeqCst, Ordering::SeqCst, may).ok()
        };
        until(&self.trial_ended, begun).await;
        TrialUnderWay(self)
    }

    /// Number of running trials.
    pub fn under_way(&self) -> u64 {
        self.under_way.load(Ordering::SeqCst)
    }

    /// Number of requests sent.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Counts one request if the limit allows it; the first one that it does not allow ends the run.
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

/// Cost of requests and their answers, in US dollars.
pub trait Tariff: Send + Sync {
    /// Maximum cost of a request; `None` if it has no limit.
    fn quote(&self, request: &HttpRequest) -> Option<f64>;

    /// Cost of a service's response, by the name of its profile; `None` if unknown.
    fn cost(&self, service: Service, profile: &str, response: &HttpResponse) -> Option<f64>;
}

/// Delays requests according to the providers' limits and the run's budget.
pub struct LimitTransport {
    inner: Arc<dyn Transport>,
    paces: BTreeMap<Service, Arc<Pace>>,
    budget: Arc<Budget>,
    clock: PausableClock,
    tariff: Option<Arc<dyn Tariff>>,
}

impl LimitTransport {
    /// Wraps `inner` for the trial of that clock, which is paused during waits.
    pub fn new(
        inner: Arc<dyn Transport>,
        paces: BTreeMap<Service, Arc<Pace>>,
        budget: Arc<Budget>,
        clock: PausableClock,
    ) -> Self {
        Self { inner, paces, budget, clock, tariff: None }
    }

    /// Reserves money for each request and charges it for each response, if the budget has a limit in dollars.
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
        let tariff = self.tariff.as_ref().filter(|_| self.budget.most_dollars.is_some());
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
                // What a stream costs that was not read to its end is unknown: all that it may cost counts as spent.
                Ok(response) if was_left(response) || broke_off(response) => {}
                Ok(response) => {
                    kept.cost = tariff.cost(service, profile, response);
                    // An embeddings request costs at most the text sent, which is the reserved amount.
                    if kept.cost.is_none() && service != Service::Embeddings {
                        // A limit without measurements cannot be enforced.
                        self.budget.end("--max-cost cannot be kept: a service did not report its tokens");
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
