//! When a trial of an agent may run: at once in a process of its own, else one trial at a time, or side by side if the
//! agent forwards the `traceparent` of its turns.

use super::super::setup::ExternalSetup;
use crate::platform::lock::lock;
use crate::trial::proxy::{Propagation, Traced};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Lets trials through in the order of request.
#[derive(Debug, Default)]
pub(super) struct Turnstile {
    state: Arc<Mutex<State>>,
    /// Agents that run elsewhere, by the URL of a turn.
    elsewhere: Mutex<BTreeMap<String, Arc<Propagation>>>,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    /// Whether the trial under way runs alone.
    alone: bool,
    waiting: VecDeque<Waiting>,
}

/// A trial that waits.
#[derive(Debug)]
struct Waiting {
    /// Of an agent that may run its trials side by side, once it is known to forward what tells them apart.
    shares: Option<Arc<Propagation>>,
    /// Receives the place, which is given up again if nobody waits any more.
    go: oneshot::Sender<Taken>,
}

/// A place among the trials under way, until it is dropped.
#[derive(Debug)]
struct Taken {
    state: Arc<Mutex<State>>,
    beside: bool,
}

/// Permission to run one trial; it ends when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Place {
    taken: Option<Taken>,
    propagation: Option<Arc<Propagation>>,
}

impl Place {
    /// A new trace for a run of the trial; `None` for an agent that ragcheck starts.
    pub(in crate::trial::external) fn traced(&self) -> Option<Traced> {
        let beside = self.taken.as_ref().is_some_and(|taken| taken.beside);
        self.propagation.as_ref().map(|propagation| Traced::new(Arc::clone(propagation), beside))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.under_way -= 1;
        state.alone = false;
        admit(&self.state, state);
    }
}

impl Turnstile {
    /// Waits until a trial may run: one with a process of its own at once; others when no such trial runs, or beside
    /// trials that can be told apart; first come, first served.
    pub(super) async fn place(&self, setup: Option<&ExternalSetup>) -> Place {
        let started = setup.is_some_and(ExternalSetup::is_started);
        if started && setup.is_some_and(|setup| setup.fixed_port().is_none()) {
            return Place { taken: None, propagation: None };
        }
        let propagation = setup.filter(|_| !started).and_then(|setup| setup.http.clone()).map(|url| {
            let mut elsewhere = lock(&self.elsewhere);
            Arc::clone(elsewhere.entry(url).or_default())
        });
        // A reset concerns the whole agent: beside others, it would wipe out what they rely on.
        let shares = propagation.clone().filter(|_| setup.is_some_and(|setup| !setup.forgets()));
        let (go, gone) = oneshot::channel();
        {
            let mut state = lock(&self.state);
            state.waiting.push_back(Waiting { shares, go });
            admit(&self.state, state);
        }
        // The sender is only dropped after it was used.
        let taken = gone.await.ok();
        Place { taken, propagation }
    }
}

/// Lets those through that wait first, as long as the next may run beside those under way.
fn admit(shared: &Arc<Mutex<State>>, mut state: MutexGuard<'_, State>) {
    while let Some(next) = state.waiting.front() {
        let beside = next.shares.as_ref().is_some_and(|propagation| propagation.is_kept());
        if state.alone || !beside && state.under_way > 0 {
            return;
        }
        let Some(next) = state.waiting.pop_front() else { return };
        state.under_way += 1;
        state.alone = !beside;
        if let Err(untaken) = next.go.send(Taken { state: Arc::clone(shared), beside }) {
            drop(state);
            // Admits the next.
            drop(untaken);
            return;
        }
    }
}
