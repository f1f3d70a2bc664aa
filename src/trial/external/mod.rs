//! Runs one trial of an external agent: live, recorded or replayed.
//!
//! In all three modes the agent is a real process: turns are posted to it over HTTP, and its requests to models and
//! search services pass through a proxy on loopback. Behind the proxy are the providers, the providers and a recorder,
//! or a cassette. `agents` says where the agent runs: in a process of its own for each worker, or elsewhere. `start` is
//! what a process asks before its first turn. With `runner`, a test runner asks the agent instead.

mod agents;
mod heard;
mod mcp_sessions;
pub(crate) mod runner;
mod services;
mod setup;
mod spans;
mod start;

pub(crate) use agents::{Agents, Contact, NoContact, Place};
pub(super) use setup::ExternalSetup;
pub(crate) use setup::agents_named;

use crate::cassette::{Cassette, Exchange, LocalTimes, Minted, Outcome as Recording};
use crate::flow::Abort;
use crate::flow::external::{
    CRASHED, Endpoint, Life, Pace, Probe, Session, Silence, Telemetry, Tracing, Trouble, reset,
};
use crate::plan::{PlannedTrial, ResolvedCase};
use crate::platform::clock::{Clock, FixedClock, RealClock};
use crate::provider::faults::{FaultTransport, Faults};
use crate::provider::observed;
use crate::scenario::external::ProbeAfter;
use crate::settings::Auth;
use crate::trace::{
    Arm, Event, Evidence, Member, Mode, RestartCause, Trace, TrialEnd, TrialError, TrialErrorKind, TurnOutcome, What,
    version_of,
};
use crate::transport::{LiveTransport, ReplayTransport, Service, Tap, Target as Address, Transport, Turns};
use crate::trial::hold::{HeldLane, held};
use crate::trial::live;
use crate::trial::opened::{Opened, Trial};
use crate::trial::outage::{Origin, with_outage};
use crate::trial::outcome::{Finished, aborted, error, foreign, redacted, replayed, unusable, with_faults};
use crate::trial::proxy::{Asked, Bound, MODEL_MOUNT, Refused, Renewed, SEARCH_MOUNT, Serving, Traced, Unbound, Vars};
use crate::trial::recording::Recorder;
use crate::trial::services::{Keys, LiveAccess, paces_of, targets};
use crate::trial::tariff::tariff_of;
use crate::trial::trust::may_call;
use crate::trial::verified::{Draft, keep};
use crate::trial::{Doing, SetupError};
use agents::{Process, Wanted};
use heard::Heard;
use mcp_sessions::McpSessions;
use runner::{Beginnings, ENDED_EARLY, NEVER_ENDED};
use setup::{Measured, Recorded};
use spans::Received;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl Doing {
    /// Its name in headers and in the environment of an agent's process.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Record => "record",
            Self::Replay => "replay",
        }
    }

    /// Headers sent to the agent with each turn, so that it can skip side effects in replays.
    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Live => &[(MODE_HEADER, "live")],
            Self::Record => &[(MODE_HEADER, "record")],
            Self::Replay => &[(MODE_HEADER, "replay")],
        }
    }
}

/// Header that names the mode of a turn.
const MODE_HEADER: &str = "x-ragcheck-mode";

/// First line of the proposals for values that an agent generates per run.
pub(super) const MINTED: &str =
    "if the agent generates these values per run, declare them in the scenario, below `vars:`";

/// One run of a trial: the services behind the proxy, and the clock that times it.
struct Course<'p> {
    doing: Doing,
    /// Whether the agent's process may have run no other trial.
    fresh: bool,
    way: Arc<dyn Transport>,
    tap: Arc<Tap>,
    vars: Arc<Vars>,
    clock: Arc<dyn Clock>,
    pace: &'p dyn Pace,
    evidence: Evidence,
    /// Requests in the replayed recording; `None` outside replay.
    recorded: Option<Asked>,
    /// Turns begun, for what is held before a turn.
    turns: Turns,
}

/// Result of one trial with the agent.
struct Ran {
    trace: Trace,
    secrets: Vec<(String, String)>,
    /// What the agent's process printed, without the keys of the environment; `None` for an agent that runs elsewhere.
    printed: Option<String>,
    /// What its spans told, a line each.
    spans: Vec<String>,
    /// A request that the agent abandoned before it was answered.
    abandoned: Option<String>,
}

/// The requests in a recording.
fn asked_in(cassette: &Cassette) -> Asked {
    let mut asked = Asked::default();
    for exchange in &cassette.exchanges {
        asked.count(observed::is_completion(&exchange.profile));
    }
    asked
}

/// Waits until a trial of an external agent may run.
pub(crate) async fn place(opened: &Opened, planned: &PlannedTrial) -> Place {
    opened.agents.place(opened.agent(planned)).await
}

/// Runs one trial of an external agent in its place.
pub(crate) async fn run(trial: Trial<'_>, doing: Doing, place: &Place) -> Finished {
    carry_out(trial, doing, place, None).await
}

/// Runs one trial of a case that a test runner begins.
async fn run_begun(trial: Trial<'_>, doing: Doing, beginnings: &Beginnings) -> Finished {
    carry_out(trial, doing, &Place::default(), Some(beginnings)).await
}

async fn carry_out(trial: Trial<'_>, doing: Doing, place: &Place, beginnings: Option<&Beginnings>) -> Finished {
    let Some((outside, case)) = trial.opened.agent(trial.planned).zip(trial.case()) else {
        return trial.failed(&foreign());
    };
    let work = Work { trial, outside, case, place, beginnings };
    let done = match doing {
        Doing::Live => work.live().await,
        Doing::Record => work.record().await,
        Doing::Replay => work.replay().await,
    };
    done.unwrap_or_else(|why| trial.failed(&why))
}

type Outcome = Result<Finished, Box<TrialError>>;

/// The services behind the proxy, and the recording that answers for those that are held.
type Services = (Arc<dyn Transport>, Option<HeldLane>);

/// One trial with its dependencies.
struct Work<'a> {
    trial: Trial<'a>,
    outside: &'a ExternalSetup,
    case: &'a ResolvedCase,
    place: &'a Place,
    /// Of a case that a test runner begins.
    beginnings: Option<&'a Beginnings>,
}

impl Work<'_> {
    async fn live(&self) -> Outcome {
        let LiveAccess { clock, transport } = self.access((self.trial.planned.seed, self.trial.fault()))?;
        let times = Arc::new(LocalTimes::recording());
        // Values that the agent generates matter only where requests are looked up.
        let patterns = self.trial.opened.hold.as_ref().map(|_| self.outside.patterns.clone());
        let vars = Arc::new(Vars::new(patterns.unwrap_or_default(), BTreeMap::new()));
        let (below, held) = self.services(Doing::Live, &clock, transport, &vars)?;
        let faults = self.trial.faults(&clock);
        let tap = Arc::new(Tap::new(struck(below, faults.as_ref())));
        let evidence = live::evidence(&self.outside.declared);
        let way = Arc::new(Bound::new(Arc::clone(&tap) as Arc<dyn Transport>, Arc::clone(&vars)));
        let pace = &Measured(times);
        let turns = held.as_ref().map(HeldLane::turns).unwrap_or_default();
        let (doing, fresh, recorded) = (Doing::Live, false, None);
        let course = Course { doing, fresh, way, tap, vars, clock, pace, evidence, recorded, turns };
        let mut ran = self.run(course).await?;
        ran.trace.evidence.held = held.as_ref().map(HeldLane::calls);
        let redactor = self.trial.opened.redactor().knowing(ran.secrets);
        let trace = redacted(with_faults(ran.trace, faults.as_deref()), &redactor);
        let trace = with_outage(self.trial, trace, &Origin::new());
        let printed = ran.printed.map(|text| redactor.redact(&text).into_owned());
        Ok(Finished { printed, ..Finished::of(trace) })
    }

    async fn record(&self) -> Outcome {
        let LiveAccess { clock, transport } = self.access((self.trial.planned.seed, self.trial.fault()))?;
        let vars = Arc::new(Vars::new(self.outside.patterns.clone(), BTreeMap::new()));
        let (below, held) = self.services(Doing::Record, &clock, transport, &vars)?;
        let subject = self.outside.subject(self.trial);
        let recorder = Recorder::begin(subject, below, &clock, Arc::new(self.trial.opened.redactor()));
        let faults = self.trial.faults(&clock);
        let tap = Arc::new(Tap::new(struck(recorder.transport(), faults.as_ref())));
        let way = Arc::new(Bound::new(Arc::clone(&tap) as Arc<dyn Transport>, Arc::clone(&vars)));
        let times = Arc::new(LocalTimes::recording());
        let (pace, evidence) = (&Measured(Arc::clone(&times)), live::evidence(&self.outside.declared));
        let course = Course {
            doing: Doing::Record,
            fresh: false,
            way,
            tap,
            vars: Arc::clone(&vars),
            clock,
            pace,
            evidence,
            recorded: None,
            turns: held.as_ref().map(HeldLane::turns).unwrap_or_default(),
        };
        let ran = self.run(course).await?;
        let recorder = recorder.holding(held.as_ref().map(HeldLane::calls));
        let redactor = Arc::new(recorder.redactor().knowing(ran.secrets));
        let trace = redacted(with_faults(ran.trace, faults.as_deref()), &redactor);
        let abandoned = ran.abandoned;
        let draft = Draft { trace, times: &times, vars: vars.values(), redactor, abandoned };
        let lines = ran.spans.iter().map(|line| draft.redactor.redact(line).into_owned()).collect();
        Ok(keep(self.trial, recorder.telling(lines), draft, |cassette| self.replay_from(cassette, true)).await)
    }

    async fn replay(&self) -> Outcome {
        self.replay_from(self.trial.recorded()?, false).await
    }

    /// Replays a recording; `verifies` one that was just made, in a process that no other trial ran in.
    async fn replay_from(&self, cassette: Cassette, verifies: bool) -> Outcome {
        let header = cassette.header.clone();
        let evidence = replayed(&cassette, &self.outside.declared.model.name);
        let pace = &Recorded(LocalTimes::replaying(cassette.stages.clone()));
        let recorded = Some(asked_in(&cassette));
        let vars = Arc::new(Vars::new(self.outside.patterns.clone(), header.vars.clone()));
        let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(header.recorded_at));
        let replay =
            ReplayTransport::new(cassette, clock, self.trial.rerecord()).with_redactor(self.trial.opened.redactor());
        let replay = Arc::new(replay);
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let faults = self.trial.faults(&clock);
        let tap = Arc::new(Tap::new(struck(Arc::clone(&replay) as Arc<dyn Transport>, faults.as_ref())));
        let way = Arc::new(Bound::new(Arc::clone(&tap) as Arc<dyn Transport>, Arc::clone(&vars)));
        let fresh = verifies && !self.outside.forgets();
        let course = Course {
            doing: Doing::Replay,
            fresh,
            way,
            tap,
            vars,
            clock,
            pace,
            evidence,
            recorded,
            turns: Turns::default(),
        };
        let ran = self.run(course).await?;
        let redactor = self.trial.opened.redactor().knowing(ran.secrets);
        let mut trace = redacted(with_faults(ran.trace, faults.as_deref()), &redactor);
        trace.notes.extend(spans::difference(&header.spans, &ran.spans, &redactor).filter(|_| self.outside.spans));
        let printed = ran.printed.map(|text| redactor.redact(&text).into_owned());
        let silent = self.silent(&replay.silent(), &trace);
        if let Some(problem) = silent.or_else(|| self.asks_less(&replay, &trace).filter(|_| faults.is_none())) {
            trace.end = TrialEnd::Error(*problem);
        }
        let unused = if trace.end == TrialEnd::Completed { replay.unused() } else { Vec::new() };
        let mut trace = with_outage(self.trial, trace, &header.recorded_from);
        if let TrialEnd::Error(why) = &mut trace.end {
            // Without a recording that was just made, other words may be an edit.
            let minted = replay.minted().into_iter().filter(|one| verifies || one.has_digits);
            why.detail.extend(vars_lines(&minted.collect::<Vec<_>>()));
        }
        Ok(Finished { unused, printed, ..Finished::of(trace) })
    }

    /// The problem of an agent that no longer asks a declared service, or asks it directly: its requests cannot be judged.
    fn silent(&self, silent: &BTreeMap<&str, usize>, trace: &Trace) -> Option<Box<TrialError>> {
        if trace.end != TrialEnd::Completed || self.case.asks_nothing || heard::failure(&trace.events).is_some() {
            return None;
        }
        let declared = |name: &str| self.outside.services.declared(name).is_some_and(|is_optional| !is_optional);
        let (name, count) = silent.iter().find(|(name, _)| declared(name))?;
        let missing = heard::not_asked_for(*count, "request")?;
        let message =
            format!("no request to `{name}` came to the proxy; {missing}: does the agent still go there itself?");
        let remedy = format!(
            "use the base URL of `{name}` that the agent's environment has; record again if the agent answers without \
             it now, or declare it `optional: true`"
        );
        Some(error(TrialErrorKind::NothingAsked, &message, vec![remedy]))
    }

    /// The problem of an agent that asked for fewer completions than it recorded, all of which its model gave: it behaves
    /// in another way now, or asks for them elsewhere, which nothing tells apart.
    fn asks_less(&self, replay: &ReplayTransport, trace: &Trace) -> Option<Box<TrialError>> {
        if trace.end != TrialEnd::Completed || self.case.asks_nothing || heard::failure(&trace.events).is_some() {
            return None;
        }
        let given = |exchange: &&Exchange| {
            observed::is_completion(&exchange.profile)
                && self.outside.services.declared(&exchange.service) != Some(true)
                && matches!(exchange.outcome, Recording::Response { status: 200..300, .. })
        };
        let missing = heard::not_asked_for(replay.left().filter(given).count(), "completion")?;
        let message =
            format!("{missing}: the agent asks its model less than when it was recorded, or partly elsewhere");
        let remedy = format!("re-record: {}", self.trial.rerecord());
        Some(error(TrialErrorKind::AsksLess, &message, vec![remedy]))
    }

    /// The services behind the proxy, and the recording that answers for held ones. What comes from it holds values
    /// that the agent generated then: those of today take their place.
    fn services(
        &self,
        doing: Doing,
        clock: &Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
        vars: &Arc<Vars>,
    ) -> Result<Services, Box<TrialError>> {
        let below: Arc<dyn Transport> = Arc::new(Unbound::new(transport, Arc::clone(vars)));
        let held = held(self.trial, doing, clock, &below)?;
        let way = match &held {
            Some(lane) => Arc::new(Renewed::new(lane.transport(), lane.vars.clone(), Arc::clone(vars))) as _,
            None => below,
        };
        Ok((way, held))
    }

    /// Access to the providers, with the limits of the run; a simulator also gets the seed and the fault.
    fn access(&self, told: (u64, Option<&str>)) -> Result<LiveAccess, Box<TrialError>> {
        let (opened, planned, declared) = (self.trial.opened, self.trial.planned, &self.outside.declared);
        let (services, timeout) = (&self.outside.services, *declared.limits.request);
        let mut targets = targets(opened, &services.providers(), timeout, Keys::TheAgents).map_err(unusable)?;
        targets.extend(services.targets(timeout));
        let live =
            LiveTransport::new(targets, Arc::new(RealClock::start())).map_err(|why| unusable(SetupError::from(why)))?;
        let live = live.asking_for(declared.asks_for.as_deref());
        let (paces, tariff) = (paces_of(opened, &services.providers()), tariff_of(opened, planned));
        let access = LiveAccess::new(&live, told, paces, &opened.budget, tariff);
        Ok(LiveAccess { transport: McpSessions::over(access.transport, services.mcp_servers()), ..access })
    }

    /// Client for the agent at `endpoint`. The session enforces the turn limit and waits the same time again for the
    /// reply.
    fn to_agent(
        &self,
        endpoint: &Endpoint,
        doing: Doing,
        clock: &Arc<dyn Clock>,
    ) -> Result<Arc<dyn Transport>, Box<TrialError>> {
        if !self.outside.is_started() {
            may_call(&endpoint.url()).map_err(unusable)?;
        }
        let address = Address {
            base_url: endpoint.origin.clone(),
            key: None,
            auth: Auth::Bearer,
            headers: doing.headers(),
            timeout: self.outside.declared.limits.turn.saturating_mul(3),
            trial_header: false,
        };
        let live = LiveTransport::new(BTreeMap::from([(Service::Agent, address)]), Arc::clone(clock));
        Ok(Arc::new(live.map_err(unusable)?))
    }

    /// How the keyword index is read, if the scenario says so: from the agent or from a service behind the proxy.
    fn probe(
        &self,
        port: Option<u16>,
        (doing, clock): (Doing, &Arc<dyn Clock>),
        way: &Arc<dyn Transport>,
    ) -> Result<Option<Probe>, Box<TrialError>> {
        let Some((probe, own)) = self.outside.probe(port) else { return Ok(None) };
        let (at, after_trial) = (probe.at.clone(), probe.after == ProbeAfter::Trial);
        Ok(Some(match (own, &probe.service) {
            (Some(endpoint), _) => {
                let way = self.to_agent(&endpoint, doing, clock)?;
                Probe { way, service: Service::Agent, address: endpoint.url(), path: endpoint.path, at, after_trial }
            }
            (None, name) => {
                let name = name.as_deref().unwrap_or_default();
                let (service, path) = (Service::declared(name), probe.http.clone());
                Probe { way: Arc::clone(way), service, address: format!("{name}{path}"), path, at, after_trial }
            }
        }))
    }

    /// Runs the trial, a reset and then turn by turn, with access to the services behind the proxy.
    async fn run(&self, course: Course<'_>) -> Result<Ran, Box<TrialError>> {
        let Course { doing, fresh, way, tap, vars, clock, pace, evidence, recorded, turns } = course;
        let (setup, opened) = (self.outside, self.trial.opened);
        let access = || self.access((self.trial.plan.seed, None));
        let wanted = Wanted { setup, trial: self.trial, doing, fresh, clock: &clock, access: &access };
        let lease = opened.agents.lease(wanted).await?;
        let process = lease.process();
        let settings = &setup.settings(process.map(Process::port));
        if let Some(endpoint) = &settings.reset {
            let way = self.to_agent(endpoint, doing, &clock)?;
            reset(endpoint, &*way, &self.trial.planned.id).await.map_err(|trouble| self.error_of(trouble))?;
        }
        let begun = match self.beginnings {
            Some(beginnings) => Some(Arc::new(beginnings.next().await?)),
            None => None,
        };
        let agent = match (&begun, process.and_then(Process::lines)) {
            (Some(begun), _) => Arc::clone(begun) as Arc<dyn Transport>,
            (None, Some(lines)) => lines,
            (None, None) => self.to_agent(&settings.target.endpoint, doing, &clock)?,
        };
        let probe = self.probe(process.map(Process::port), (doing, &clock), &way)?;
        let probed = probe.is_some();
        let silence = match evidence.mode {
            Mode::Live if opened.agents.watches(self.trial) => Silence::Always,
            Mode::Live => Silence::IfBusy,
            Mode::Replay | Mode::Imported => Silence::Unchecked,
        };
        let traced = match &begun {
            Some(_) => Some(Traced::new(Arc::default(), false)),
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
            trace,
            pace,
            words: &*vars,
            telemetry: setup.spans.then_some(&received as &dyn Telemetry),
            tracing: Tracing::default(),
            held: BTreeMap::new(),
            events: Vec::new(),
            took: Duration::ZERO,
            completions: 0,
            offered: None,
        };
        let end = match converse(&mut session, self.case, &turns).await {
            Ok(()) => TrialEnd::Completed,
            Err(trouble) => {
                if matches!(trouble, Trouble::AfterReply(_)) {
                    opened.agents.watch_again(self.trial);
                }
                TrialEnd::Error(*self.error_of(trouble))
            }
        };
        // What the agent still sends belongs to no trial.
        let abandoned = tap.abandoned();
        tap.close();
        if process.is_none() && end != TrialEnd::Completed {
            session.abandoned().await;
        }
        let requests = serving.requests();
        drop(serving);
        let mut told = session.told();
        let lines = std::mem::take(&mut told.lines);
        let (proxy, printed) = (lease.proxy.address(), process.map(Process::printed));
        let live = evidence.mode == Mode::Live;
        let (allowed, refused): (Vec<Refused>, Vec<Refused>) =
            requests.refused.into_iter().partition(|one| one.is_among(&self.outside.may_refuse));
        let (asked, stray, asks_nothing) = (requests.asked, requests.stray.as_ref(), self.case.asks_nothing);
        let by_runner = begun.is_some();
        let heard = Heard { proxy, asked, refused: &refused, stray, recorded, asks_nothing, by_runner };
        let end = heard.problem(&session.events, &end).map_or(end, |problem| TrialEnd::Error(*problem));
        let silent = heard.note(&end);
        let mut trace = self.trial.trace(evidence, end);
        trace.notes = lease.notes().to_vec();
        trace.notes.extend(allowed.iter().map(|one| format!("{one} (`target.may_refuse`)")).chain(silent));
        if live && requests.before > 0 {
            let early = requests.before;
            let requests = if early == 1 { "1 request".to_owned() } else { format!("{early} requests") };
            trace.notes.push(format!(
                "before this trial, {requests} of the agent came when no trial ran, and nothing was answered: it may \
                 still work on an earlier one; let `reset` end that"
            ));
        }
        trace.took_us = u64::try_from(session.took.as_micros()).unwrap_or(u64::MAX);
        (trace.roles, trace.offered, trace.events) = (session.roles(), session.offered, session.events);
        if setup.spans {
            spans::evidence(&mut trace, told);
        }
        if probed {
            trace.reveal(Member::IndexWrites);
        }
        trace.version = version_of(&trace.events).max(trace.end.version());
        trace.restart = process.and_then(|_| match &trace.end {
            TrialEnd::Error(_) => Some(RestartCause::TrialError),
            TrialEnd::Completed if has_crashed(&trace.events) => Some(RestartCause::Crashed),
            TrialEnd::Completed => setup.restarts.then_some(RestartCause::Declared),
        });
        if trace.end == TrialEnd::Completed {
            lease.release();
        }
        if let Some(begun) = begun {
            begun.end(&trace.end);
        }
        Ok(Ran { trace, secrets: tap.secrets(), printed, spans: lines, abandoned })
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

/// The transport, struck by the faults of the trial.
fn struck(way: Arc<dyn Transport>, faults: Option<&Arc<Faults>>) -> Arc<dyn Transport> {
    match faults {
        Some(faults) => FaultTransport::observed(way, Arc::clone(faults)),
        None => way,
    }
}

/// Lines that declare values which an agent generates per run.
fn vars_lines(minted: &[Minted]) -> Vec<String> {
    let head = (!minted.is_empty()).then(|| MINTED.to_owned());
    head.into_iter().chain(minted.iter().map(|one| format!("  {one}"))).collect()
}

/// Whether the agent's process ended in a turn.
fn has_crashed(events: &[Event]) -> bool {
    events.iter().any(|event| match &event.what {
        What::TurnEnded(ended) => matches!(&ended.outcome, TurnOutcome::Failed { kind, .. } if kind == CRASHED),
        _ => false,
    })
}

/// Runs all conversations of a case, one after another.
async fn converse(session: &mut Session<'_>, case: &ResolvedCase, turns: &Turns) -> Result<(), Trouble> {
    for (ordinal, planned) in (0..).zip(case.conversations()) {
        let mut conversation = session.begin(ordinal, &planned.name, planned.tenant.as_deref());
        for turn in &planned.turns {
            turns.begin();
            session.turn(&mut conversation, &turn.ask).await?;
        }
    }
    session.finish().await
}
