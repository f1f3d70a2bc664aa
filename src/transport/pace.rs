//! Rate limiting for one provider, shared by all trials of a run.
//!
//! Limits concurrent requests, requests per minute and tokens per minute, as far as declared. When a provider reports
//! overload (HTTP 429 or 529), its rate is halved; every success restores a twentieth of the declared rate (additive
//! increase, multiplicative decrease). Tokens are known only after the answer, so they are a debt: the next request
//! waits until the allowance per minute has paid it off.

use crate::platform::clock::Clock;
use crate::platform::lock::lock;
use crate::settings::PaceLimits;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

const MINUTE: Duration = Duration::from_mins(1);
/// Minimum fraction of the declared rate.
const SLOWEST: f64 = 1.0 / 32.0;
/// Fraction that a success restores.
const GROWTH: f64 = 1.0 / 20.0;

/// What `look` finds; it looks again at each notification.
pub(super) async fn until<T>(notify: &Notify, mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        let told = notify.notified();
        tokio::pin!(told);
        // Registered before the look, so that no notification is missed in between.
        told.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        told.await;
    }
}

/// The pace of one provider.
pub struct Pace {
    limits: PaceLimits,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    told: Notify,
}

#[derive(Debug)]
struct State {
    under_way: u32,
    /// Fraction of the declared rate, in (0, 1].
    share: f64,
    /// Limit on concurrent requests, measured if none is declared.
    found: Option<f64>,
    /// When the next request may be sent, by the pace's clock.
    next: Duration,
    /// When the tokens used so far are paid off.
    paid: Duration,
    /// When the rate was last halved: overload of earlier requests is not counted again.
    shrunk: Duration,
}

/// One request in flight; dropping it admits the next one.
pub struct Permit<'p> {
    pace: &'p Pace,
    sent: Duration,
}

impl Pace {
    /// Creates a pace on `clock`, which all trials share.
    pub fn new(limits: PaceLimits, clock: Arc<dyn Clock>) -> Self {
        let zero = Duration::ZERO;
        let state = State { under_way: 0, share: 1.0, found: None, next: zero, paid: zero, shrunk: zero };
        Self { limits, clock, state: Mutex::new(state), told: Notify::new() }
    }

    /// Current fraction of the declared rate, in (0, 1].
    #[cfg(test)]
    pub fn share(&self) -> f64 {
        lock(&self.state).share
    }

    /// Waits until one more request may be sent.
    pub async fn enter(&self) -> Permit<'_> {
        loop {
            match until(&self.told, || self.ask()).await {
                Ok(sent) => return Permit { pace: self, sent },
                Err(wait) => self.clock.sleep(wait).await,
            }
        }
    }

    /// Time of sending, else the time to wait; `None` to wait until a request ends.
    fn ask(&self) -> Option<Result<Duration, Duration>> {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        let at_once = match (self.limits.concurrency, state.found) {
            (Some(declared), _) => Some(f64::from(declared) * state.share),
            (None, found) => found,
        };
        if at_once.is_some_and(|most| f64::from(state.under_way) >= most.max(1.0).floor()) {
            return None;
        }
        let wait = state.next.max(state.paid).saturating_sub(now);
        if !wait.is_zero() {
            return Some(Err(wait));
        }
        if let Some(requests) = self.limits.requests_per_minute {
            let apart = MINUTE.div_f64(f64::from(requests.max(1)) * state.share);
            state.next = state.next.max(now) + apart;
        }
        state.under_way += 1;
        Some(Ok(now))
    }

    fn too_many(&self, sent: Duration) {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        if sent < state.shrunk {
            return;
        }
        state.shrunk = now.max(Duration::from_nanos(1));
        state.share = (state.share / 2.0).max(SLOWEST);
        let under_way = f64::from(state.under_way);
        state.found = Some((state.found.unwrap_or(under_way).min(under_way) / 2.0).max(1.0));
    }

    fn went_well(&self, tokens: u64) {
        let now = self.clock.now();
        let mut state = lock(&self.state);
        state.share = (state.share + GROWTH).min(1.0);
        state.found = state.found.map(|found| found + 1.0 / found);
        if let Some(allowed) = self.limits.tokens_per_minute {
            let share = tokens as f64 / (allowed.max(1) as f64 * state.share);
            state.paid = state.paid.max(now) + MINUTE.mul_f64(share.min(60.0));
        }
    }
}

impl Permit<'_> {
    /// Adjusts the rate to an answer, by its status and the tokens that it reports.
    pub fn answered(&self, status: u16, body: &[u8]) {
        match status {
            429 | 529 => self.pace.too_many(self.sent),
            200..300 => {
                let counted = self.pace.limits.tokens_per_minute.is_some();
                self.pace.went_well(if counted { tokens(body) } else { 0 });
            }
            _ => {}
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.pace.state);
        state.under_way = state.under_way.saturating_sub(1);
        drop(state);
        self.pace.told.notify_waiters();
    }
}

/// Tokens reported by an answer, under the field names of any dialect; if it reports none, as in most streams, a
/// quarter of its bytes.
fn tokens(body: &[u8]) -> u64 {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let at = |pointer: &str| document.pointer(pointer).and_then(Value::as_u64);
    let sum = |one: &str, other: &str| Some(at(one)? + at(other)?);
    at("/usage/total_tokens")
        .or_else(|| at("/usageMetadata/totalTokenCount"))
        .or_else(|| sum("/usage/prompt_tokens", "/usage/completion_tokens"))
        .or_else(|| sum("/usage/input_tokens", "/usage/output_tokens"))
        .unwrap_or(body.len() as u64 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::{VirtualClock, block_on};
    use futures_util::future::join_all;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(limits: PaceLimits) -> (VirtualClock, Pace) {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        (clock.clone(), Pace::new(limits, Arc::new(clock)))
    }

    #[test]
    fn requests_a_minute_are_spread_over_it() {
        let (clock, pace) = pace(PaceLimits { requests_per_minute: Some(60), ..PaceLimits::default() });
        let work = async {
            for _ in 0..5 {
                pace.enter().await.answered(200, b"{}");
            }
        };
        block_on(&clock, work).expect("no deadlock");
        assert_eq!(clock.now(), 4 * SECOND);
    }

    #[test]
    fn used_tokens_are_a_debt_that_the_next_request_waits_for() {
        let (clock, pace) = pace(PaceLimits { tokens_per_minute: Some(6_000), ..PaceLimits::default() });
        let work = async {
            pace.enter().await.answered(200, br#"{"usage": {"input_tokens": 700, "output_tokens": 300}}"#);
            pace.enter().await.answered(200, b"{}");
        };
        block_on(&clock, work).expect("no deadlock");
        assert_eq!(clock.now(), 10 * SECOND);
    }

    #[test]
    fn too_many_halves_the_pace_once_a_burst_and_successes_bring_it_back() {
        let (clock, pace) = pace(PaceLimits { concurrency: Some(8), ..PaceLimits::default() });
        let work = async {
            let burst = join_all((0..8).map(|_| pace.enter())).await;
            clock.sleep(SECOND).await;
            for permit in &burst {
                permit.answered(429, b"");
            }
            drop(burst);
            assert!((pace.share() - 0.5).abs() < 1e-9, "a burst tells one thing");
            let four = join_all((0..4).map(|_| pace.enter())).await;
            assert!(pace.ask().is_none(), "half as many at the same time");
            drop(four);
            for _ in 0..10 {
                pace.enter().await.answered(200, b"");
            }
            assert!((pace.share() - 1.0).abs() < 1e-9);
        };
        block_on(&clock, work).expect("no deadlock");
    }

    #[test]
    fn a_provider_without_declared_limits_is_slowed_down_all_the_same() {
        let (clock, pace) = pace(PaceLimits::default());
        let work = async {
            let many = join_all((0..10).map(|_| pace.enter())).await;
            many[0].answered(529, b"");
            drop(many);
            let five = join_all((0..5).map(|_| pace.enter())).await;
            assert_eq!(pace.ask(), None);
            drop(five);
            for _ in 0..60 {
                pace.enter().await.answered(200, b"");
            }
            join_all((0..10).map(|_| pace.enter())).await.len()
        };
        assert_eq!(block_on(&clock, work).expect("no deadlock"), 10);
    }

    #[test]
    fn tokens_are_read_in_every_dialects_words() {
        assert_eq!(tokens(br#"{"usage": {"prompt_tokens": 2, "completion_tokens": 3}}"#), 5);
        assert_eq!(tokens(br#"{"usageMetadata": {"totalTokenCount": 7}}"#), 7);
        assert_eq!(tokens(br#"{"usage": {"total_tokens": 9, "prompt_tokens": 1, "completion_tokens": 1}}"#), 9);
        assert_eq!(tokens(&[b' '; 40]), 10);
    }
}
