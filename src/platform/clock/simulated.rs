//! Virtual time: a heap of deadlines, and an executor that jumps to the next one.
//!
//! One trial is one future, polled on one thread. While it is pending and no other waker has fired, the clock jumps to
//! the earliest deadline and wakes its sleepers in order of registration. If nothing is ready and no deadline is left,
//! the result is a [`Deadlock`], which is reported at once.

use super::{BoxFuture, Clock};
use crate::platform::lock::lock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The trial waits for an event that can never happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("deadlock at {at:?} of virtual time: the trial waits, and no timer is pending")]
pub struct Deadlock {
    /// Virtual time of the deadlock.
    pub at: Duration,
}

#[derive(Debug)]
struct Alarm {
    deadline: Duration,
    sequence: u64,
    waker: Waker,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Alarm {}
impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.deadline, self.sequence).cmp(&(other.deadline, other.sequence))
    }
}

#[derive(Debug, Default)]
struct State {
    now: Duration,
    sequence: u64,
    alarms: BinaryHeap<Reverse<Alarm>>,
}

/// A clock that advances only in [`block_on`].
#[derive(Debug, Clone)]
pub struct VirtualClock {
    epoch: jiff::Timestamp,
    state: Arc<Mutex<State>>,
}

impl VirtualClock {
    /// A clock at zero whose wall time starts at `epoch`.
    pub fn at(epoch: jiff::Timestamp) -> Self {
        Self { epoch, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Jumps to the earliest deadline and wakes its sleepers; `false` if there is none.
    fn advance(&self) -> bool {
        let mut due = Vec::new();
        {
            let mut state = self.state();
            let Some(Reverse(first)) = state.alarms.pop() else { return false };
            state.now = state.now.max(first.deadline);
            due.push(first.waker);
            while state.alarms.peek().is_some_and(|Reverse(next)| next.deadline <= state.now) {
                if let Some(Reverse(next)) = state.alarms.pop() {
                    due.push(next.waker);
                }
            }
        }
        due.into_iter().for_each(Waker::wake);
        true
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        self.state().now
    }

    fn wall(&self) -> jiff::Timestamp {
        let now = jiff::SignedDuration::try_from(self.now()).unwrap_or(jiff::SignedDuration::MAX);
        self.epoch.checked_add(now).unwrap_or(jiff::Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let deadline = self.now().saturating_add(duration);
        Box::pin(Sleep { clock: self.clone(), deadline })
    }
}

struct Sleep {
    clock: VirtualClock,
    deadline: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if state.now >= self.deadline {
            return Poll::Ready(());
        }
        let sequence = state.sequence;
        state.sequence += 1;
        state.alarms.push(Reverse(Alarm { deadline: self.deadline, sequence, waker: context.waker().clone() }));
        Poll::Pending
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs `work` to its end on the calling thread, advancing `clock` whenever nothing is ready.
///
/// # Errors
/// `Deadlock` if `work` is pending, no waker fired and no deadline is left.
pub fn block_on<F: Future>(clock: &VirtualClock, work: F) -> Result<F::Output, Deadlock> {
    let mut work = pin!(work);
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&flag));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = work.as_mut().poll(&mut context) {
            return Ok(output);
        }
        while !flag.0.swap(false, Ordering::SeqCst) {
            if !clock.advance() {
                return Err(Deadlock { at: clock.now() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::timeout;

    fn clock() -> VirtualClock {
        VirtualClock::at(jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_hour_of_sleep_takes_no_real_time_and_is_exact() {
        let clock = clock();
        block_on(&clock, clock.sleep(Duration::from_hours(1))).expect("no deadlock");
        assert_eq!(clock.now(), Duration::from_hours(1));
        assert_eq!(clock.wall().as_second(), 3600);
    }

    #[test]
    fn sleeps_side_by_side_overlap() {
        let clock = clock();
        let both =
            futures_util::future::join(clock.sleep(Duration::from_millis(30)), clock.sleep(Duration::from_millis(50)));
        block_on(&clock, both).expect("no deadlock");
        assert_eq!(clock.now(), Duration::from_millis(50));
    }

    #[test]
    fn a_timeout_fires_at_its_limit_and_work_that_is_ready_wins() {
        let clock = clock();
        let slow = timeout(&clock, Duration::from_secs(1), clock.sleep(Duration::from_secs(2)));
        assert!(block_on(&clock, slow).expect("no deadlock").is_err());
        assert_eq!(clock.now(), Duration::from_secs(1));
        let even = timeout(&clock, Duration::from_secs(1), clock.sleep(Duration::from_secs(1)));
        assert!(block_on(&clock, even).expect("no deadlock").is_ok());
    }

    #[test]
    fn waiting_for_nothing_is_a_deadlock_and_not_a_hang() {
        let clock = clock();
        assert!(block_on(&clock, std::future::pending::<()>()).is_err());
    }
}
