//! Replays one trial of a flow from its cassette on a virtual clock: no socket, no real waiting.

use super::drive::FlowTrial;
use super::knowledge::without_services;
use super::opened::{FlowSetup, Trial};
use super::outage::with_outage;
use super::outcome::{Finished, aborted, bug, error, foreign, redacted, replayed};
use super::stages::RecordedStages;
use crate::cassette::{Cassette, LocalTimes};
use crate::platform::clock::{BoxFuture, Clock, VirtualClock, block_on};
use crate::platform::lock::lock;
use crate::provider::RetryPolicy;
use crate::trace::{TrialEnd, TrialErrorKind};
use crate::transport::{HttpRequest, HttpResponse, Miss, ReplayTransport, Transport, TransportError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Replays one trial; every failure, panics included, becomes the trial's end.
pub fn replay(trial: Trial<'_>) -> Finished {
    let Some(setup) = trial.opened.flow(trial.planned) else { return trial.failed(&foreign()) };
    match trial.recorded() {
        Ok(cassette) => replay_from(trial, setup, cassette),
        Err(why) => trial.failed(&why),
    }
}

pub(super) fn replay_from(trial: Trial<'_>, setup: &FlowSetup, cassette: Cassette) -> Finished {
    let header = cassette.header.clone();
    let evidence = replayed(&cassette, &setup.settings.model.name);
    let clock = VirtualClock::at(header.recorded_at);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let times = Arc::new(LocalTimes::replaying(cassette.stages.clone()));
    let stages = RecordedStages::replaying(times, Arc::clone(&shared));
    let keys = lock(&setup.keys).pop().unwrap_or_default();
    let transport = ReplayTransport::new(cassette, Arc::clone(&shared), trial.rerecord()).with_keys(keys);
    let transport = Arc::new(transport);
    let way = Arc::clone(&transport) as Arc<dyn Transport>;
    let flow_trial = FlowTrial::new(trial, setup, &way, shared, stages, header.seed);
    let flow_trial = match flow_trial.and_then(FlowTrial::with_index) {
        Ok(flow_trial) => flow_trial,
        Err(why) => return trial.failed(&why),
    };
    let ran = catch_unwind(AssertUnwindSafe(|| block_on(&clock, flow_trial.drive())));
    let end = match ran {
        Ok(Ok(Ok(()))) => TrialEnd::Completed,
        Ok(Ok(Err(abort))) => TrialEnd::Error(*aborted(&abort)),
        Ok(Err(deadlock)) => TrialEnd::Error(*error(TrialErrorKind::Deadlock, &deadlock.to_string(), Vec::new())),
        Err(panic) => TrialEnd::Error(*error(TrialErrorKind::Panic, &message_of(&*panic), Vec::new())),
    };
    let completed = end == TrialEnd::Completed;
    // Services' responses were redacted when recorded: only questions and documents can still hold keys.
    let redactor = trial.opened.redactor();
    let mut asks = flow_trial.case.conversations().flat_map(|one| &one.turns);
    let clean = asks.all(|turn| redactor.is_surely_clean(&turn.ask));
    let (trace, passages, clean_passages) = flow_trial.end(evidence, end, &redactor);
    let trace = if clean && clean_passages { trace } else { redacted(trace, &redactor) };
    let trace = with_outage(trial, trace, &header.recorded_from);
    let unused = if completed { transport.unused() } else { Vec::new() };
    lock(&setup.keys).push(transport.take_keys());
    Finished { trace, unused, passages, again: None, printed: None }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    bug(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words"))
}

/// The first request of a trial; `None` if it sends none.
pub(crate) fn first_request(trial: Trial<'_>) -> Option<HttpRequest> {
    let setup = trial.opened.flow(trial.planned)?;
    let probe = Arc::new(Probe::default());
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let times = Arc::new(LocalTimes::replaying(std::collections::BTreeMap::new()));
    let stages = RecordedStages::replaying(times, Arc::clone(&shared));
    let transport = Arc::clone(&probe) as Arc<dyn Transport>;
    let flow_trial = FlowTrial::new(trial, setup, &transport, shared, stages, trial.planned.seed).ok()?;
    // How the trial ends does not matter, only what it had sent by then.
    let _ = catch_unwind(AssertUnwindSafe(|| block_on(&clock, flow_trial.drive())));
    lock(&probe.first).take()
}

/// Whether a trial would search another knowledge base than the recording pins.
pub(crate) fn searches_another(trial: Trial<'_>, cassette: &Cassette) -> bool {
    trial.opened.flow(trial.planned).is_some_and(|setup| {
        let knowledge = setup.knowledge.open(&without_services(RetryPolicy::default()));
        knowledge.depart_from(&cassette.header.knowledge)
    })
}

/// Captures the first request and answers none: the trial ends as on a cassette miss.
#[derive(Default)]
struct Probe {
    first: Mutex<Option<HttpRequest>>,
}

impl Transport for Probe {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        lock(&self.first).get_or_insert(request);
        let words = || "only the first request was asked for".to_owned();
        let miss = Miss { message: words(), cause: words(), detail: Vec::new() };
        Box::pin(std::future::ready(Err(TransportError::Miss(Box::new(miss)))))
    }
}
