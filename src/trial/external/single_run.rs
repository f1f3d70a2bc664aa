//! One run of a trial: a process or an address of the agent, a reset, its turns, and the trace of them.

use super::agents::{Process, Wanted};
use super::heard::Heard;
use super::runner::{ENDED_EARLY, NEVER_ENDED};
use super::spans::{self, Received};
use super::{Work, found, signs};
use crate::flow::Abort;
use crate::flow::external::{
    ANSWER_MISSING, CRASHED, Chains, Life, Pace, Session, Silence, Telemetry, Tracing, Trouble, ended_as, reset,
};
use crate::knowledge::FoundPassages;
use crate::plan::ResolvedCase;
use crate::platform::clock::Clock;
use crate::provider::faults::FaultTransport;
use crate::trace::text::plural;
use crate::trace::{
    Arm, Evidence, Member, Mode, RestartCause, Trace, TrialEnd, TrialError, TrialErrorKind, version_of,
};
use crate::transport::{Tap, Transport, Turns};
use crate::trial::TrialMode;
use crate::trial::outcome::{aborted, error, with_faults};
use crate::trial::proxy::{Asked, Bound, MODEL_MOUNT, SEARCH_MOUNT, Serving, Traced, Vars};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a mode sets up for one run.
pub(super) struct RunInput<'p> {
    pub(super) mode: TrialMode,
    /// Whether the agent's process may have run no other trial.
    pub(super) fresh: bool,
    /// The services behind the proxy, without the faults of the trial.
    pub(super) services: Arc<dyn Transport>,
    pub(super) vars: Arc<Vars>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) pace: &'p dyn Pace,
    pub(super) evidence: Evidence,
    /// Requests in the replayed recording; `None` outside replay.
    pub(super) recorded: Option<Asked>,
    /// Turns begun, for what is held before a turn.
    pub(super) turns: Turns,
}

/// Result of one run.
pub(super) struct RunOutput {
    pub(super) trace: Trace,
    /// Passages that its trace shows the beginning of.
    pub(super) found: FoundPassages,
    /// Whether the trial has faults.
    pub(super) struck: bool,
    pub(super) secrets: Vec<(String, String)>,
    /// What the agent's process printed, without the keys of the environment; `None` for an agent that runs elsewhere.
    pub(super) printed: Option<String>,
    /// Its spans, a line each.
    pub(super) spans: Vec<String>,
    /// A request that the agent abandoned before it was answered.
    pub(super) abandoned: Option<String>,
}

impl Work<'_> {
    /// Resets the agent and runs the turns.
    pub(super) async fn run(&self, input: RunInput<'_>) -> Result<RunOutput, Box<TrialError>> {
        let RunInput { mode, fresh, services, vars, clock, pace, evidence, recorded, turns } = input;
        let faults = self.trial.faults(&clock);
        let tap = Arc::new(Tap::new(match &faults {
            Some(faults) => FaultTransport::observed(services, Arc::clone(faults)),
            None => services,
        }));
        let way: Arc<dyn Transport> = Arc::new(Bound { inner: Arc::clone(&tap) as _, vars: Arc::clone(&vars) });
        let (setup, opened) = (self.outside, self.trial.opened);
        let access = || self.access((self.trial.plan.seed, None));
        let wanted = Wanted { setup, trial: self.trial, mode, fresh, clock: &clock, access: &access };
        let lease = opened.agents.lease(wanted).await?;
        let process = lease.process();
        let settings = &setup.settings(process.map(Process::port));
        if let Some(endpoint) = &settings.reset {
            let way = self.to_agent(endpoint, mode, &clock)?;
            reset(endpoint, &*way, &self.trial.planned.id).await.map_err(|trouble| self.error_of(trouble))?;
        }
        let begun = match self.beginnings {
            Some(beginnings) => Some(Arc::new(beginnings.next().await?)),
            None => None,
        };
        let lines = process.and_then(Process::lines);
        let agent = match (&begun, &lines) {
            (Some(begun), _) => Arc::clone(begun) as Arc<dyn Transport>,
            (None, Some(lines)) => Arc::clone(lines) as Arc<dyn Transport>,
            (None, None) => self.to_agent(&settings.target.endpoint, mode, &clock)?,
        };
        let probe = self.probe(process.map(Process::port), (mode, &clock), &way)?;
        let probed = probe.is_some();
        let silence = match evidence.mode {
            Mode::Live if opened.agents.watches(self.trial) => Silence::Always,
            Mode::Live => Silence::IfBusy,
            Mode::Replay | Mode::Imported => Silence::Unchecked,
        };
        let traced = match &begun {
            Some(begun) => Some(Traced::new(Arc::default(), begun.beside)),
            None => self.place.traced().or_else(|| setup.spans.then(Traced::alone)),
        };
        let trace = traced.as_ref().map(|traced| traced.id().to_owned());
        let serving: Serving = lease.proxy.serve(way, &setup.hosts, setup.services.mounts(), traced);
        if let Some((begun, trace)) = begun.as_ref().zip(trace.as_ref()) {
            begun.serve(trace);
        }
        let life: Option<&dyn Life> = match &begun {
            Some(begun) => Some(&**begun),
            None => process.map(|process| process as &dyn Life),
        };
        let received = Received { reports: serving.reports(), clock: Arc::clone(&clock) };
        let mut session = Session {
            settings,
            trial: &self.trial.planned.id,
            variant: &self.trial.planned.lane.variant,
            withhold_history: self.trial.planned.lane.arm == Arm::Control,
            keep_replies: self.case.expects_reply(),
            way: agent,
            probe,
            life,
            tap: Arc::clone(&tap),
            clock,
            silence,
            // A recording keeps whole turns, in a replay the time is that of this machine, and a test goes on.
            late_fails: mode == TrialMode::Live && begun.is_none(),
            trace,
            pace,
            words: &*vars,
            telemetry: setup.spans.then_some(&received as &dyn Telemetry),
            chains: Chains::default(),
            tracing: Tracing::default(),
            held: BTreeMap::new(),
            events: Vec::new(),
            took: Duration::ZERO,
            completions: 0,
            offered: None,
            parameters: BTreeMap::new(),
        };
        let end = match converse(&mut session, self.case, &turns).await {
            Ok(()) => TrialEnd::Completed,
            Err(trouble) => {
                let is_early = matches!(trouble, Trouble::AfterReply(_));
                if is_early {
                    opened.agents.watch_again(self.trial);
                }
                let mut why = self.error_of(trouble);
                why.detail.extend(lines.as_ref().map(|lines| lines.taken()).filter(|_| is_early));
                TrialEnd::Error(*why)
            }
        };
        // What the agent still sends belongs to no trial.
        let abandoned = tap.abandoned();
        tap.close();
        let is_late = session.is_late();
        if process.is_none() && (is_late || end != TrialEnd::Completed) {
            session.abandoned().await;
        }
        let requests = serving.requests();
        drop(serving);
        opened.agents.asks(self.trial, tap.services());
        let mut told = session.told();
        let spans = std::mem::take(&mut told.lines);
        let (proxy, printed) = (lease.proxy.address(), process.map(Process::printed));
        let live = evidence.mode == Mode::Live;
        let (allowed, refused) = setup.allowed(requests.refused);
        let (asked, stray, asks_nothing) = (requests.asked, requests.stray.as_ref(), self.case.asks_nothing);
        let by_runner = begun.is_some();
        let started = by_runner || self.outside.is_started();
        let of_ended = requests.of_ended;
        let heard =
            Heard { proxy, asked, refused: &refused, stray, recorded, asks_nothing, of_ended, by_runner, started };
        let end = match heard.problem(&session.events, &end) {
            Some(mut problem) => {
                let is_unread = session.events.iter().any(|event| ended_as(event, &[ANSWER_MISSING]));
                problem.detail.extend(lines.as_ref().map(|lines| lines.taken()).filter(|_| is_unread));
                TrialEnd::Error(*problem)
            }
            None => end,
        };
        let silent = heard.note(&session.events, &end);
        let mut trace = self.trial.trace(evidence, end);
        trace.notes = lease.notes().to_vec();
        trace.notes.extend(allowed.iter().map(|one| format!("{one} (`target.may_refuse`)")).chain(silent));
        trace.notes.extend(abandoned.as_ref().map(|asked| {
            format!(
                "your agent broke off {asked} before its answer was complete, and the steps of the trial leave it out; if its \
                 client gave up for lack of time, let it wait longer, and if it shuts down its side of the connection after a \
                 request, let it keep it open"
            )
        }));
        if live && requests.before > 0 {
            trace.notes.push(format!(
                "before this trial, {} of the agent came when no trial ran, and nothing was answered: it may \
                 still work on an earlier one; let `reset` end that",
                plural(requests.before, "request")
            ));
        }
        trace.took_us = u64::try_from(session.took.as_micros()).unwrap_or(u64::MAX);
        (trace.roles, trace.offered, trace.events) = (session.roles(), session.offered, session.events);
        trace.parameters = session.parameters;
        if setup.spans {
            spans::evidence(&mut trace, told);
        }
        let found = found::take(&mut trace);
        let notes = signs::notes(&trace);
        trace.notes.extend(notes);
        trace.notes.extend(vars.notes());
        if probed {
            trace.reveal(Member::IndexWrites);
        }
        trace.version = version_of(&trace.events).max(trace.end.version());
        trace.restart = process.and_then(|_| match &trace.end {
            TrialEnd::Error(_) => Some(RestartCause::TrialError),
            TrialEnd::Completed if is_late => Some(RestartCause::TimedOut),
            TrialEnd::Completed if trace.events.iter().any(|event| ended_as(event, &[CRASHED])) => {
                Some(RestartCause::Crashed)
            }
            TrialEnd::Completed => setup.restarts.then_some(RestartCause::Declared),
        });
        if trace.end == TrialEnd::Completed && !is_late {
            lease.release();
        }
        if let Some(begun) = begun {
            begun.end(&trace.end);
        }
        let (trace, struck) = (with_faults(trace, faults.as_deref()), faults.is_some());
        Ok(RunOutput { trace, found, struck, secrets: tap.secrets(), printed, spans, abandoned })
    }

    #[expect(
        clippy::unnecessary_box_returns,
        reason = "an error of a trial is long and always on its way through results"
    )]
    fn error_of(&self, trouble: Trouble) -> Box<TrialError> {
        let proxy = self.outside.proxy;
        match trouble {
            Trouble::Unreached(why) if self.beginnings.is_some() => {
                let (message, detail) = if why.contains(ENDED_EARLY) {
                    (ENDED_EARLY, "hand in the answers of the turns before the last with POST /cases/ID/turn")
                } else {
                    (NEVER_ENDED, "end it where the test ends, even when it fails: POST /cases/ID/end")
                };
                error(TrialErrorKind::Stopped, message, vec![detail.to_owned()])
            }
            Trouble::Unreached(why) if self.outside.is_started() => {
                error(TrialErrorKind::AgentUnreached, &why, Vec::new())
            }
            Trouble::Unreached(why) => {
                let mut detail = vec![
                    "start the agent before the run, with these base URLs in its settings:".to_owned(),
                    format!("  model:  http://{proxy}{MODEL_MOUNT}"),
                    format!("  search: http://{proxy}{SEARCH_MOUNT}"),
                ];
                let mounts = self.outside.services.mounts();
                let names = mounts.iter().map(|mount| mount.service.as_str());
                detail.extend(names.map(|name| format!("  {name}: http://{proxy}/{name}")));
                error(TrialErrorKind::AgentUnreached, &why, detail)
            }
            Trouble::AfterReply(why) => {
                let detail = "let the agent reply when it has asked all that it asks for: what comes later belongs to no \
                              turn, and would be answered and counted in the next one";
                error(TrialErrorKind::NoUsableReply, &why, vec![detail.to_owned()])
            }
            Trouble::SetUp(why) | Trouble::TooSlow(why) => error(TrialErrorKind::NoUsableReply, &why, Vec::new()),
            Trouble::Miss(miss) => aborted(&Abort::Miss(miss)),
        }
    }
}

/// Runs all conversations of a case, one after another.
async fn converse(session: &mut Session<'_>, case: &ResolvedCase, turns: &Turns) -> Result<(), Trouble> {
    for (ordinal, planned) in (0..).zip(case.conversations()) {
        let mut conversation = session.begin(ordinal, &planned.name, planned.tenant.as_deref());
        for turn in &planned.turns {
            turns.begin();
            session.turn(&mut conversation, &turn.ask).await?;
            if session.is_late() {
                return session.finish().await;
            }
        }
    }
    session.finish().await
}
