//! How a trial ended: its trace, or the error that says why there is none.
#![expect(
    clippy::unnecessary_box_returns,
    reason = "an error of a trial is long and always on its way through results"
)]

use super::opened::Trial;
use crate::cassette::{Cassette, Header};
use crate::flow::{self, Abort};
use crate::platform::secrets::Redactor;
use crate::provider::faults::Faults;
use crate::trace::{ASKED_NOBODY, Evidence, Mode, NamedPassage, Roles, Trace, TrialEnd, TrialError, TrialErrorKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Result of one trial.
#[derive(Debug)]
pub struct Finished {
    pub trace: Trace,
    /// Recorded exchanges of its lane that no request used, as messages.
    pub unused: Vec<String>,
    /// Full passages that its searches found; the trace refers to them by name.
    pub passages: Vec<Arc<NamedPassage>>,
    /// Trace of a later draw, if `trace` is the first draw, which counts.
    pub again: Option<Box<Trace>>,
    /// What the process of an external agent printed, redacted; `None` for other agents.
    pub printed: Option<String>,
}

impl Finished {
    /// A result that consists of a trace only.
    pub fn of(trace: Trace) -> Self {
        Self { trace, unused: Vec::new(), passages: Vec::new(), again: None, printed: None }
    }
}

impl Trial<'_> {
    /// Trace of the trial, without events, whichever way it was run.
    pub(super) fn trace(self, evidence: Evidence, end: TrialEnd) -> Trace {
        let (scenario, case) = self.names();
        let (plan, roles, planned) = (self.plan.id.clone(), self.declared_roles(), self.planned);
        let trace = Trace::of(planned.id.clone(), planned.lane.clone(), planned.seed, evidence);
        Trace { plan, scenario, case, roles, end, ..trace }
    }

    /// Roles of the tools that its agent declares, known even if the trial ends before it begins.
    fn declared_roles(self) -> Roles {
        let agent = || Some(self.plan.scenario_of(self.planned)?.agent.as_ref()?.roles.by_tool());
        flow::by_name(&self.planned.lane.flow).map(flow::roles).or_else(agent).unwrap_or_default()
    }

    /// Result of a trial that never ran.
    pub(super) fn failed(self, why: &TrialError) -> Finished {
        let evidence = Evidence::new(Mode::Replay, ASKED_NOBODY.to_owned(), "");
        Finished::of(self.trace(evidence, TrialEnd::Error(why.clone())))
    }

    /// Result of a trial that was cut off, or never begun, because the run ended.
    pub(crate) fn stopped(self, reason: &str) -> Finished {
        let detail = vec!["finished trials are kept; the same command with --resume runs the others".to_owned()];
        let evidence = Evidence::new(Mode::Live, ASKED_NOBODY.to_owned(), "");
        Finished::of(self.trace(evidence, TrialEnd::Error(*error(TrialErrorKind::Stopped, reason, detail))))
    }

    /// Result of a live trial whose task panicked, reported as a bug.
    pub(super) fn crashed(self, reason: &str) -> Finished {
        self.failed(&error(TrialErrorKind::Panic, &bug(reason), Vec::new()))
    }
}

/// Evidence of a trial of that model, replayed from `cassette`.
pub(super) fn replayed(cassette: &Cassette, model: &str) -> Evidence {
    let header: &Header = &cassette.header;
    Evidence {
        recorded_at: Some(header.recorded_at.to_string()),
        earlier_takes: header.earlier_verdicts(),
        noted_verdict: header.noted_verdict(),
        run_again: header.later_verdicts(),
        held: header.held.clone(),
        ..Evidence::new(Mode::Replay, cassette.origin(sources(&header.recorded_from)), model)
    }
}

/// Origin of the responses as one phrase; services are named separately if their sources differ.
fn sources(from: &BTreeMap<String, String>) -> String {
    let distinct: BTreeSet<&String> = from.values().collect();
    match distinct.len() {
        0 => ASKED_NOBODY.into(),
        1 => distinct.into_iter().cloned().collect(),
        _ => from.iter().map(|(service, who)| format!("{who} ({service})")).collect::<Vec<_>>().join(", "),
    }
}

/// An error whose message is also its cause.
pub(super) fn error(kind: TrialErrorKind, message: &str, detail: Vec<String>) -> Box<TrialError> {
    Box::new(TrialError { kind, message: message.to_owned(), cause: message.to_owned(), detail })
}

/// Error for services that cannot be used.
pub(super) fn unusable(why: impl ToString) -> Box<TrialError> {
    error(TrialErrorKind::Provider, &why.to_string(), Vec::new())
}

/// Error for a trial that is not part of the opened plan.
pub(super) fn foreign() -> Box<TrialError> {
    error(TrialErrorKind::Panic, &bug("the trial is of another plan"), Vec::new())
}

/// End of a trial that cannot continue.
pub(super) fn aborted(abort: &Abort) -> Box<TrialError> {
    match abort {
        Abort::State(problem) => error(TrialErrorKind::ConversationBroken, &problem.to_string(), Vec::new()),
        Abort::Killed => error(TrialErrorKind::Stopped, "the agent was killed in the middle of a turn", Vec::new()),
        Abort::Miss(miss) => Box::new(TrialError {
            kind: TrialErrorKind::CassetteMiss,
            message: miss.message.clone(),
            cause: miss.cause.clone(),
            detail: miss.detail.clone(),
        }),
    }
}

/// The trace with the account of the faults that struck its trial. If one never landed, nothing is measured.
pub(super) fn with_faults(mut trace: Trace, faults: Option<&Faults>) -> Trace {
    let Some(faults) = faults else { return trace };
    trace.notes.extend(faults.landed());
    let missed = faults.missed();
    if trace.end != TrialEnd::Completed {
        trace
            .notes
            .extend(missed.iter().map(|fault| format!("declared fault {fault} did not land before the trial ended")));
    } else if !missed.is_empty() {
        let message = format!("a declared fault never landed: {}", missed.join(", "));
        let detail =
            "the agent sent no such request or call, or the fault does not exist in its API or without a stream";
        trace.end = TrialEnd::Error(*error(TrialErrorKind::FaultMissed, &message, vec![detail.to_owned()]));
    }
    trace
}

/// Message of a failure inside ragcheck.
pub(super) fn bug(reason: &str) -> String {
    format!("this is a bug of ragcheck: {reason}")
}

/// The trace without keys that a service may have echoed: it is written to disk without passing through the recorder.
pub(super) fn redacted(trace: Trace, redactor: &Redactor) -> Trace {
    let Ok(value) = serde_json::to_value(&trace) else { return Trace { events: Vec::new(), ..trace } };
    let clean = redactor.redact_value(&value);
    if clean == value { trace } else { serde_json::from_value(clean).unwrap_or(Trace { events: Vec::new(), ..trace }) }
}
