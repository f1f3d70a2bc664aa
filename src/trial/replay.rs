//! Replays one trial from its cassette on a virtual clock: no socket, no real waiting.

use super::keyword_index;
use super::live::redacted;
use super::settings::environment;
use super::stages::RecordedStages;
use super::{Finished, TrialRunner, VariantSetup, no_evidence, trace_of};
use crate::cassette::{Cassette, LocalTimes};
use crate::flow::Abort;
use crate::plan::{Plan, PlannedTrial};
use crate::platform::clock::{Clock, VirtualClock, block_on};
use crate::trace::{ASKED_NOBODY, Evidence, Mode, TrialEnd, TrialError, TrialErrorKind, version_of};
use crate::transport::{ReplayTransport, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

impl TrialRunner {
    /// Replays one trial; every failure, panics included, becomes the trial's end.
    pub fn replay(&self, plan: &Plan, trial: &PlannedTrial) -> Finished {
        let Some(setup) = self.setup(trial) else { return failed(plan, trial, &foreign()) };
        match self.recorded(plan, trial) {
            Ok(cassette) => self.replay_from(plan, trial, setup, cassette),
            Err(why) => failed(plan, trial, &why),
        }
    }

    /// Loads the recording of a trial's lane.
    pub(super) fn recorded(&self, plan: &Plan, trial: &PlannedTrial) -> Result<Cassette, Box<TrialError>> {
        let record = rerecord(plan, trial);
        if !self.lane_file(plan, trial).exists() {
            let detail = vec![format!("record it: {record}")];
            return Err(error(TrialErrorKind::LaneMissing, "this lane has no recording", detail));
        }
        self.recording(plan, trial).map_err(|why| {
            let detail = vec![format!("fix or re-record it: {record}")];
            error(TrialErrorKind::CassetteBroken, &why.to_string(), detail)
        })
    }

    pub(super) fn replay_from(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        setup: &VariantSetup,
        cassette: Cassette,
    ) -> Finished {
        let header = cassette.header.clone();
        let origin = cassette.origin(sources(&header.recorded_from));
        let clock = VirtualClock::at(header.recorded_at);
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let times = Arc::new(LocalTimes::replaying(cassette.stages.clone()));
        let stages = RecordedStages::replaying(times, Arc::clone(&shared));
        let transport = Arc::new(ReplayTransport::new(cassette, Arc::clone(&shared), rerecord(plan, trial)));
        let evidence = Evidence {
            mode: Mode::Replay,
            recorded_from: origin,
            recorded_at: Some(header.recorded_at.to_string()),
            model: setup.settings.model.name.clone(),
            knowledge: String::new(),
            earlier_takes: header.earlier_verdicts(),
            noted_verdict: header.noted_verdict(),
            run_again: header.later_verdicts(),
            replaced_errors: 0,
        };
        let way = Arc::clone(&transport) as Arc<dyn Transport>;
        let project = &self.loaded.project;
        let built = environment(project, trial, setup, &way, &shared, Arc::new(stages), header.seed);
        let mut environment = match built {
            Ok(environment) => environment,
            Err(why) => return failed(plan, trial, &error(TrialErrorKind::Provider, &why.to_string(), Vec::new())),
        };
        let Some(case) = plan.case_of(trial) else { return failed(plan, trial, &foreign()) };
        let found = environment.knowledge.noting();
        let _index = match keyword_index::place(&mut environment, case, &self.loaded.root) {
            Ok(place) => place,
            Err(why) => return failed(plan, trial, &why),
        };
        let ran =
            catch_unwind(AssertUnwindSafe(|| block_on(&clock, super::drive::drive(setup.flow, &environment, case))));
        let end = match ran {
            Ok(Ok(Ok(()))) => TrialEnd::Completed,
            Ok(Ok(Err(abort))) => TrialEnd::Error(*aborted(&abort)),
            Ok(Err(deadlock)) => TrialEnd::Error(*error(TrialErrorKind::Deadlock, &deadlock.to_string(), Vec::new())),
            Err(panic) => TrialEnd::Error(*error(TrialErrorKind::Panic, &words_of(&panic), Vec::new())),
        };
        let completed = end == TrialEnd::Completed;
        let mut trace = trace_of(plan, trial, evidence, end);
        trace.took_us = u64::try_from(clock.now().as_micros()).unwrap_or(u64::MAX);
        // The hash of a base behind a server is known only after it was searched.
        trace.evidence.knowledge = environment.knowledge.hash();
        trace.events = environment.take_events();
        trace.version = version_of(&trace.events);
        setup.tell_tools(&mut trace);
        // Services' responses were redacted when recorded: only questions and documents can still hold keys.
        let redactor = self.redactor();
        let (passages, mut clean) = self.found.name(&mut trace, &found, &redactor);
        clean &= case.conversations().flat_map(|one| &one.turns).all(|turn| redactor.is_surely_clean(&turn.ask));
        let trace = if clean { trace } else { redacted(trace, &redactor) };
        let trace = self.with_outage(trial, trace, &header.recorded_from);
        let unused = if completed { transport.unused() } else { Vec::new() };
        Finished { trace, unused, passages, again: None, printed: None }
    }
}

/// Origin of the responses as one phrase; services are named separately if their sources differ.
pub(super) fn sources(from: &BTreeMap<String, String>) -> String {
    let distinct: BTreeSet<&String> = from.values().collect();
    match distinct.len() {
        0 => ASKED_NOBODY.into(),
        1 => distinct.into_iter().cloned().collect(),
        _ => from.iter().map(|(service, who)| format!("{who} ({service})")).collect::<Vec<_>>().join(", "),
    }
}

/// Command that re-records a lane.
pub(super) fn rerecord(plan: &Plan, trial: &PlannedTrial) -> String {
    let file = plan.scenario_of(trial).map_or("", |scenario| scenario.file.as_str());
    let case = plan.case_of(trial).map_or("", |case| case.case.as_str());
    let variant =
        if trial.lane.variant == "base" { String::new() } else { format!(" --variant {}", trial.lane.variant) };
    let agent = plan.scenario_of(trial).and_then(|scenario| scenario.agent.as_ref());
    let agent = agent.filter(|_| TrialRunner::is_external(trial)).and_then(|agent| agent.target.server());
    let agent = agent.map_or_else(String::new, |server| format!(" --agent {server}"));
    format!("ragcheck run {file} --mode record --only {case}{variant}{agent}")
}

/// End of a trial that cannot continue.
#[expect(clippy::unnecessary_box_returns, reason = "an error of a trial is long and always on its way through results")]
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

/// An error whose message is also its cause.
#[expect(clippy::unnecessary_box_returns, reason = "an error of a trial is long and always on its way through results")]
pub(super) fn error(kind: TrialErrorKind, message: &str, detail: Vec<String>) -> Box<TrialError> {
    Box::new(TrialError { kind, message: message.to_owned(), cause: message.to_owned(), detail })
}

/// Error for a trial that is not part of the runner's plan.
#[expect(clippy::unnecessary_box_returns, reason = "an error of a trial is long and always on its way through results")]
pub(super) fn foreign() -> Box<TrialError> {
    error(TrialErrorKind::Panic, "this is a bug of ragcheck: the trial is of another plan", Vec::new())
}

/// Message of a panic.
pub(super) fn words_of(panic: &Box<dyn std::any::Any + Send>) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    format!("this is a bug of ragcheck: {}", words.unwrap_or_else(|| "a panic without words".into()))
}

/// Result of a trial that never ran.
pub(super) fn failed(plan: &Plan, trial: &PlannedTrial, why: &TrialError) -> Finished {
    let end = TrialEnd::Error(why.clone());
    Finished::of(trace_of(plan, trial, no_evidence(Mode::Replay, ""), end))
}
