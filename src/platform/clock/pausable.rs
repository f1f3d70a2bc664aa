//! A real clock without the time that a trial spends waiting for our rate limits.
//!
//! Waiting for a provider's rate limit is caused by this program, not by the agent: it must not count as latency or
//! against a turn's time limit. While a trial waits and has no request in flight, its clock is paused.

use super::{BoxFuture, Clock};
use crate::platform::lock::lock;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The clock of one live trial.
#[derive(Clone)]
pub struct PausableClock {
    base: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    waiting: u32,
    sending: u32,
    /// Base time at which the clock was paused.
    since: Option<Duration>,
    held: Duration,
}

impl State {
    fn settle(&mut self, now: Duration) {
        if let Some(since) = self.since.take() {
            self.held += now.saturating_sub(since);
        }
        if self.waiting > 0 && self.sending == 0 {
            self.since = Some(now);
        }
    }
}

/// A request that waits or is in flight; dropping this ends the phase.
pub struct Phase<'c> {
    clock: &'c PausableClock,
    waits: bool,
}

impl PausableClock {
    /// A clock over `base`.
    pub fn new(base: Arc<dyn Clock>) -> Self {
        Self { base, state: Arc::default() }
    }

    /// Starts waiting for the rate limit.
    pub fn waiting(&self) -> Phase<'_> {
        self.begin(true)
    }

    /// Starts sending a request.
    pub fn sending(&self) -> Phase<'_> {
        self.begin(false)
    }

    /// Total time paused so far.
    #[cfg(test)]
    pub fn held(&self) -> Duration {
        self.base.now().saturating_sub(self.now())
    }

    fn begin(&self, waits: bool) -> Phase<'_> {
        self.change(|state| if waits { state.waiting += 1 } else { state.sending += 1 });
        Phase { clock: self, waits }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.settle(self.base.now());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        let waits = self.waits;
        self.clock.change(|state| {
            let count = if waits { &mut state.waiting } else { &mut state.sending };
            *count = count.saturating_sub(1);
        });
    }
}

impl Clock for PausableClock {
    fn now(&self) -> Duration {
        let state = self.state();
        let until = state.since.unwrap_or_else(|| self.base.now());
        until.saturating_sub(state.held)
    }

    fn wall(&self) -> jiff::Timestamp {
        self.base.wall()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let (clock, until) = (self.clone(), self.now().saturating_add(duration));
        Box::pin(async move {
            loop {
                let left = until.saturating_sub(clock.now());
                if left.is_zero() {
                    return;
                }
                clock.base.sleep(left).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{VirtualClock, block_on};
    use super::*;

    fn clocks() -> (VirtualClock, PausableClock) {
        let base = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        (base.clone(), PausableClock::new(Arc::new(base)))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waiting_takes_no_time_and_sending_does() {
        let (base, clock) = clocks();
        let work = async {
            let waits = clock.waiting();
            base.sleep(5 * SECOND).await;
            assert_eq!(clock.now(), Duration::ZERO);
            drop(waits);
            let sends = clock.sending();
            base.sleep(SECOND).await;
            drop(sends);
        };
        block_on(&base, work).expect("no deadlock");
        assert_eq!((clock.now(), clock.held(), base.now()), (SECOND, 5 * SECOND, 6 * SECOND));
    }

    #[test]
    fn while_something_is_on_the_wire_time_goes_on_for_all() {
        let (base, clock) = clocks();
        let work = async {
            let _sends = clock.sending();
            let _waits = clock.waiting();
            base.sleep(2 * SECOND).await;
        };
        block_on(&base, work).expect("no deadlock");
        assert_eq!(clock.now(), 2 * SECOND);
    }

    #[test]
    fn a_time_limit_does_not_run_while_the_trial_is_held_back() {
        let (base, clock) = clocks();
        let held = async {
            let waits = clock.waiting();
            base.sleep(10 * SECOND).await;
            drop(waits);
            base.sleep(SECOND).await;
        };
        let done = block_on(&base, super::super::timeout(&clock, 2 * SECOND, held)).expect("no deadlock");
        assert_eq!(done, Ok(()));
        let late = block_on(&base, super::super::timeout(&clock, 2 * SECOND, base.sleep(3 * SECOND)));
        assert!(late.expect("no deadlock").is_err());
    }
}
