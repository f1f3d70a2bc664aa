//! Runs one trial of a flow against its providers, and records it.

use super::drive::FlowTrial;
use super::environment::environment;
use super::hold::{HeldLane, held};
use super::opened::{FlowSetup, Opened, Trial};
use super::outage::{Origin, with_outage};
use super::outcome::{Finished, aborted, foreign, redacted, unusable};
use super::recording::Recorder;
use super::services::{LiveAccess, access};
use super::stages::RecordedStages;
use super::verified::{Draft, keep};
use super::{SetupError, TrialMode, replay};
use crate::cassette::LocalTimes;
use crate::flow::AgentContext;
use crate::plan::{PlannedTrial, VariantSettings};
use crate::platform::clock::Clock;
use crate::trace::{ASKED_NOBODY, Evidence, Mode, NamedPassage, Trace, TrialEnd, TrialError};
use crate::transport::Transport;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs one trial against its providers without recording.
pub(crate) async fn live(trial: Trial<'_>) -> Finished {
    let (setup, LiveAccess { clock, transport }) = match prepare(trial) {
        Ok(prepared) => prepared,
        Err(why) => return trial.failed(&why),
    };
    let held = match held(trial, TrialMode::Live, &clock, &transport) {
        Ok(held) => held,
        Err(why) => return trial.failed(&why),
    };
    let transport = held.as_ref().map_or(transport, HeldLane::transport);
    let (mut trace, _, passages) = run(trial, setup, clock, transport, held.as_ref()).await;
    trace.evidence.held = held.as_ref().map(HeldLane::calls);
    let trace = with_outage(trial, redacted(trace, &trial.opened.redactor()), &Origin::new());
    Finished { passages, ..Finished::of(trace) }
}

/// Runs one trial against its providers, writes its cassette, and returns the trace of replaying it.
pub(crate) async fn record(trial: Trial<'_>) -> Finished {
    match prepare(trial) {
        Ok((_, LiveAccess { clock, transport })) => record_with(trial, clock, transport).await,
        Err(why) => trial.failed(&why),
    }
}

/// Records one trial over the given `transport` and `clock`, and returns the trace of replaying it.
pub async fn record_with(trial: Trial<'_>, clock: Arc<dyn Clock>, transport: Arc<dyn Transport>) -> Finished {
    let Some(setup) = trial.opened.flow(trial.planned) else { return trial.failed(&foreign()) };
    let held = match held(trial, TrialMode::Record, &clock, &transport) {
        Ok(held) => held,
        Err(why) => return trial.failed(&why),
    };
    let transport = held.as_ref().map_or(transport, HeldLane::transport);
    let mut subject = trial.subject(&setup.declared);
    subject.providers.extend(setup.retrieval.names());
    let recorder = Recorder::begin(subject, transport, &clock, Arc::new(trial.opened.redactor()));
    let (trace, times, _) = run(trial, setup, clock, recorder.transport(), held.as_ref()).await;
    let recorder = recorder.holding(held.as_ref().map(HeldLane::calls));
    let redactor = recorder.redactor();
    let draft =
        Draft { trace: redacted(trace, &redactor), times: &times, vars: BTreeMap::new(), redactor, abandoned: None };
    let replay = |cassette| std::future::ready(Ok(replay::replay_from(trial, setup, cassette)));
    keep(trial, recorder, draft, replay).await
}

/// Transport of a trial's requests to its providers; `None` for an external agent.
pub(crate) fn transport(trial: Trial<'_>) -> Option<Result<Arc<dyn Transport>, SetupError>> {
    let setup = trial.opened.flow(trial.planned)?;
    Some(access(trial.opened, trial.planned, trial.fault(), setup).map(|access| access.transport))
}

/// Context of a turn of `planned` against its providers, with its own keyword index, which the caller may replace.
///
/// # Errors
/// [`SetupError`] if a provider cannot be used.
pub(crate) fn context(opened: &Opened, planned: &PlannedTrial) -> Result<AgentContext, SetupError> {
    let unknown = || SetupError::Flow { file: "the plan".into(), flow: planned.lane.flow.clone() };
    let setup = opened.flow(planned).ok_or_else(unknown)?;
    let LiveAccess { clock, transport } = access(opened, planned, None, setup)?;
    let stages = RecordedStages::noting(Arc::new(LocalTimes::recording()), Arc::clone(&clock));
    environment((opened, planned, setup), &transport, &clock, Arc::new(stages), planned.seed)
}

fn prepare(trial: Trial<'_>) -> Result<(&FlowSetup, LiveAccess), Box<TrialError>> {
    let setup = trial.opened.flow(trial.planned).ok_or_else(foreign)?;
    Ok((setup, access(trial.opened, trial.planned, trial.fault(), setup).map_err(unusable)?))
}

async fn run(
    trial: Trial<'_>,
    setup: &FlowSetup,
    clock: Arc<dyn Clock>,
    transport: Arc<dyn Transport>,
    held: Option<&HeldLane>,
) -> (Trace, Arc<LocalTimes>, Vec<Arc<NamedPassage>>) {
    let times = Arc::new(LocalTimes::recording());
    let stages = RecordedStages::noting(Arc::clone(&times), Arc::clone(&clock));
    let flow_trial = FlowTrial::new(trial, setup, &transport, clock, stages, trial.planned.seed);
    let flow_trial = match flow_trial.and_then(FlowTrial::with_index) {
        Ok(flow_trial) => flow_trial.counting(held.map(HeldLane::turns).unwrap_or_default()),
        Err(why) => {
            let none = Evidence::new(Mode::Live, ASKED_NOBODY.to_owned(), &setup.declared.model.name);
            return (trial.trace(none, TrialEnd::Error(*why)), times, Vec::new());
        }
    };
    let end = match flow_trial.drive().await {
        Ok(()) => TrialEnd::Completed,
        Err(abort) => TrialEnd::Error(*aborted(&abort)),
    };
    let (trace, passages, _) = flow_trial.end(evidence(&setup.declared), end, &trial.opened.redactor());
    (trace, times, passages)
}

/// Evidence of a trial against its providers.
pub(super) fn evidence(declared: &VariantSettings) -> Evidence {
    let model = &declared.model;
    // An agent may name its model in its requests alone.
    let answered = format!("{} {}", model.provider, model.name);
    Evidence::new(Mode::Live, answered.trim_end().to_owned(), &model.name)
}
