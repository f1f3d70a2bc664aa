//! Runs one trial of an external agent: live, recorded or replayed.
//!
//! In all three modes the agent is a real process: turns are posted to it over HTTP, and its requests to models and
//! search services pass through a proxy on loopback. Behind the proxy are the providers, the providers and a recorder,
//! or a cassette. A turnstile admits one trial at a time, in plan order, because a request does not say which trial it
//! belongs to.

use super::agents::{Process, Wanted};
use super::external_setup::{ExternalSetup, Measured, Recorded};
use super::heard::Heard;
use super::live::{Live, live_evidence, redacted};
use super::outage::Origin;
use super::recording::Recorder;
use super::replay::{aborted, error, failed, foreign, rerecord, sources};
use super::services::{Keys, LiveAccess};
use super::trust::may_call;
use super::{Finished, SetupError, TrialRunner, trace_of};
use crate::cassette::{Cassette, LocalTimes, Minted};
use crate::flow::Abort;
use crate::flow::external::{Endpoint, Life, Pace, SILENCE, Session, Trouble, reset};
use crate::plan::{Plan, PlannedTrial, ResolvedCase};
use crate::platform::clock::{Clock, FixedClock, RealClock};
use crate::settings::Auth;
use crate::trace::{Arm, EXTERNAL, Evidence, Mode, Trace, TrialEnd, TrialError, TrialErrorKind, version_of};
use crate::transport::{LiveTransport, ReplayTransport, Service, Tap, Target as Address, Transport};
use crate::trial::proxy::{Bound, MODEL_MOUNT, Refused, SEARCH_MOUNT, Serving, Unbound, Vars};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How a trial is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Runs against the providers.
    Live,
    /// Runs against the providers, is recorded, and is then replayed from the new cassette.
    Record,
    /// Runs against its cassette.
    Replay,
}

impl Doing {
    /// Headers sent to the agent with each turn, so that it can skip side effects in replays.
    /// Its name in headers and in the environment of an agent's process.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Record => "record",
            Self::Replay => "replay",
        }
    }

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
    /// Number of exchanges in the replayed recording; `None` outside replay.
    recorded: Option<usize>,
}

/// Result of one trial with the agent.
struct Ran {
    trace: Trace,
    secrets: Vec<(String, String)>,
    /// What the agent's process printed, without the keys of the environment; `None` for an agent that runs elsewhere.
    printed: Option<String>,
}

impl TrialRunner {
    /// Whether the trial's agent is external: it then needs a runtime and the turnstile.
    pub fn is_external(trial: &PlannedTrial) -> bool {
        trial.lane.flow == EXTERNAL
    }

    /// Waits until the trial's agent is free: an agent that runs elsewhere serves one trial at a time, in order of
    /// request; of one that ragcheck starts there is a process for each.
    pub async fn turnstile(&self, trial: &PlannedTrial) -> Option<OwnedMutexGuard<()>> {
        let elsewhere = self.agent(trial).is_some_and(|agent| !agent.is_started());
        if elsewhere { Some(self.agents.turnstile().await) } else { None }
    }

    /// Runs one external trial. The caller holds the permit of [`TrialRunner::turnstile`].
    pub async fn external(&self, plan: &Plan, trial: &PlannedTrial, doing: Doing) -> Finished {
        let Some((outside, case)) = self.agent(trial).zip(plan.case_of(trial)) else {
            return failed(plan, trial, &foreign());
        };
        let work = Work { runner: self, plan, trial, outside, case };
        let done = match doing {
            Doing::Live => work.live().await,
            Doing::Record => work.record().await,
            Doing::Replay => work.replay().await,
        };
        done.unwrap_or_else(|why| failed(plan, trial, &why))
    }
}

type Outcome = Result<Finished, Box<TrialError>>;

/// One trial with its dependencies.
struct Work<'a> {
    runner: &'a TrialRunner,
    plan: &'a Plan,
    trial: &'a PlannedTrial,
    outside: &'a ExternalSetup,
    case: &'a ResolvedCase,
}

impl Work<'_> {
    async fn live(&self) -> Outcome {
        let LiveAccess { clock, transport } = self.access()?;
        let times = Arc::new(LocalTimes::recording());
        let vars = Arc::new(Vars::new(Vec::new(), BTreeMap::new()));
        let tap = Arc::new(Tap::new(transport));
        let evidence = live_evidence(&self.outside.declared);
        let (way, pace) = (Arc::clone(&tap) as Arc<dyn Transport>, &Measured(times));
        let ran = self
            .run(Course { doing: Doing::Live, fresh: false, way, tap, vars, clock, pace, evidence, recorded: None })
            .await?;
        let redactor = self.runner.redactor().knowing(ran.secrets);
        let trace = self.runner.with_outage(self.trial, redacted(ran.trace, &redactor), &Origin::new());
        let printed = ran.printed.map(|text| redactor.redact(&text).into_owned());
        Ok(Finished { printed, ..Finished::of(trace) })
    }

    async fn record(&self) -> Outcome {
        let LiveAccess { clock, transport } = self.access()?;
        let vars = Arc::new(Vars::new(self.outside.patterns.clone(), BTreeMap::new()));
        let below: Arc<dyn Transport> = Arc::new(Unbound::new(transport, Arc::clone(&vars)));
        let mut subject = self.runner.subject(self.plan, self.trial, &self.outside.declared);
        let provider = self.outside.declared.model.provider.clone();
        subject.providers.insert(Service::Embeddings.as_str().to_owned(), provider);
        let recorder = Recorder::begin(subject, below, &clock, Arc::new(self.runner.redactor()));
        let tap = Arc::new(Tap::new(recorder.transport()));
        let way = Arc::new(Bound::new(Arc::clone(&tap) as Arc<dyn Transport>, Arc::clone(&vars)));
        let times = Arc::new(LocalTimes::recording());
        let (pace, evidence) = (&Measured(Arc::clone(&times)), live_evidence(&self.outside.declared));
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
        };
        let ran = self.run(course).await?;
        let redactor = Arc::new(recorder.redactor().knowing(ran.secrets));
        let trace = redacted(ran.trace, &redactor);
        let live = Live { trace, times: &times, vars: vars.values(), redactor };
        Ok(self.runner.keep(self.plan, self.trial, recorder, live, |cassette| self.replay_from(cassette, true)).await)
    }

    async fn replay(&self) -> Outcome {
        self.replay_from(self.runner.recorded(self.plan, self.trial)?, false).await
    }

    /// Replays a recording; `verifies` one that was just made, in a process that no other trial ran in.
    async fn replay_from(&self, cassette: Cassette, verifies: bool) -> Outcome {
        let runner = self.runner;
        let record = rerecord(self.plan, self.trial);
        let header = cassette.header.clone();
        let origin = cassette.origin(sources(&header.recorded_from));
        let pace = &Recorded(LocalTimes::replaying(cassette.stages.clone()));
        let recorded = Some(cassette.exchanges.len());
        let vars = Arc::new(Vars::new(self.outside.patterns.clone(), header.vars.clone()));
        let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(header.recorded_at));
        let replay = ReplayTransport::new(cassette, clock, record).with_redactor(runner.redactor());
        let replay = Arc::new(replay);
        let tap = Arc::new(Tap::new(Arc::clone(&replay) as Arc<dyn Transport>));
        let way = Arc::new(Bound::new(Arc::clone(&tap) as Arc<dyn Transport>, Arc::clone(&vars)));
        let evidence = Evidence {
            mode: Mode::Replay,
            recorded_from: origin,
            recorded_at: Some(header.recorded_at.to_string()),
            model: self.outside.declared.model.name.clone(),
            knowledge: String::new(),
            earlier_takes: header.earlier_verdicts(),
            noted_verdict: header.noted_verdict(),
            run_again: header.later_verdicts(),
            replaced_errors: 0,
        };
        let clock = Arc::new(RealClock::start());
        let fresh = verifies && !self.outside.forgets();
        let course = Course { doing: Doing::Replay, fresh, way, tap, vars, clock, pace, evidence, recorded };
        let ran = self.run(course).await?;
        let redactor = runner.redactor().knowing(ran.secrets);
        let trace = redacted(ran.trace, &redactor);
        let printed = ran.printed.map(|text| redactor.redact(&text).into_owned());
        let unused = if trace.end == TrialEnd::Completed { replay.unused() } else { Vec::new() };
        let mut trace = runner.with_outage(self.trial, trace, &header.recorded_from);
        if let TrialEnd::Error(why) = &mut trace.end
            && verifies
        {
            why.detail.extend(vars_lines(&replay.minted()));
        }
        Ok(Finished { unused, printed, ..Finished::of(trace) })
    }

    /// Access to the providers, with the limits of the run.
    fn access(&self) -> Result<LiveAccess, Box<TrialError>> {
        let (runner, declared) = (self.runner, &self.outside.declared);
        let provider = |why: SetupError| error(TrialErrorKind::Provider, &why.to_string(), Vec::new());
        let targets = runner.targets(declared, Keys::TheAgents).map_err(provider)?;
        let live = LiveTransport::new(targets, Arc::new(RealClock::start())).map_err(|why| provider(why.into()))?;
        let (paces, tariff) = (runner.paces(declared), runner.tariff(self.trial));
        Ok(LiveAccess::new(&live, (self.trial.seed, self.case.fault.as_deref()), paces, &runner.budget, tariff))
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
            may_call(&endpoint.url()).map_err(|why| error(TrialErrorKind::Provider, &why.to_string(), Vec::new()))?;
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
        let live = live.map_err(|why| error(TrialErrorKind::Provider, &why.to_string(), Vec::new()))?;
        Ok(Arc::new(live))
    }

    /// Runs the trial, a reset and then turn by turn, with access to the services behind the proxy.
    async fn run(&self, course: Course<'_>) -> Result<Ran, Box<TrialError>> {
        let Course { doing, fresh, way, tap, vars, clock, pace, evidence, recorded } = course;
        let (setup, trial, folder) = (self.outside, self.trial, self.runner.loaded.root.as_path());
        let lease = self.runner.agents.lease(Wanted { setup, trial, doing, fresh, folder, clock: &clock }).await?;
        let process = lease.process();
        let settings = &setup.settings(process.map(Process::port));
        if let Some(endpoint) = &settings.reset {
            let way = self.to_agent(endpoint, doing, &clock)?;
            reset(endpoint, &*way, &self.trial.id).await.map_err(|trouble| self.told(trouble))?;
        }
        let agent = match process.and_then(Process::lines) {
            Some(lines) => lines,
            None => self.to_agent(&settings.target.endpoint, doing, &clock)?,
        };
        let serving: Serving = lease.proxy.serve(way, &self.outside.hosts);
        let mut session = Session {
            settings,
            trial: &self.trial.id,
            variant: &self.trial.lane.variant,
            withhold_history: self.trial.lane.arm == Arm::Control,
            keep_replies: self.case.expects_reply(),
            way: agent,
            life: process.map(|process| process as &dyn Life),
            tap: Arc::clone(&tap),
            clock,
            silence: (evidence.mode == Mode::Live).then_some(SILENCE),
            pace,
            words: &*vars,
            events: Vec::new(),
            took: Duration::ZERO,
            completions: 0,
            offered: None,
        };
        let end = match converse(&mut session, self.case).await {
            Ok(()) => TrialEnd::Completed,
            Err(trouble) => TrialEnd::Error(*self.told(trouble)),
        };
        let (asked, refused, early) = (serving.asked(), serving.refused(), serving.before());
        drop(serving);
        let (proxy, printed) = (lease.proxy.address(), process.map(Process::printed));
        let live = evidence.mode == Mode::Live;
        let (allowed, refused): (Vec<Refused>, Vec<Refused>) =
            refused.into_iter().partition(|one| one.is_among(&self.outside.may_refuse));
        let asks_nothing = self.case.asks_nothing;
        let heard = Heard { proxy, asked, refused: &refused, recorded, asks_nothing };
        let end = heard.problem(&session.events, &end).map_or(end, |problem| TrialEnd::Error(*problem));
        let mut trace = trace_of(self.plan, self.trial, evidence, end);
        trace.notes = allowed.iter().map(|one| format!("{one} (`target.may_refuse`)")).collect();
        if live && early > 0 {
            let requests = if early == 1 { "1 request".to_owned() } else { format!("{early} requests") };
            trace.notes.push(format!(
                "before this trial, {requests} of the agent came when no trial ran, and nothing was answered: it may \
                 still work on an earlier one; let `reset` end that"
            ));
        }
        trace.took_us = u64::try_from(session.took.as_micros()).unwrap_or(u64::MAX);
        (trace.roles, trace.offered, trace.events) = (session.roles(), session.offered, session.events);
        trace.version = version_of(&trace.events).max(trace.end.version());
        if trace.end == TrialEnd::Completed {
            lease.release();
        }
        Ok(Ran { trace, secrets: tap.secrets(), printed })
    }

    #[expect(
        clippy::unnecessary_box_returns,
        reason = "an error of a trial is long and always on its way through results"
    )]
    fn told(&self, trouble: Trouble) -> Box<TrialError> {
        let proxy = self.outside.proxy;
        match trouble {
            Trouble::Unreached(why) if self.outside.is_started() => error(TrialErrorKind::Provider, &why, Vec::new()),
            Trouble::Unreached(why) => {
                let detail = vec![
                    "start the agent before the run, with these base URLs in its settings:".to_owned(),
                    format!("  model:  http://{proxy}{MODEL_MOUNT}"),
                    format!("  search: http://{proxy}{SEARCH_MOUNT}"),
                ];
                error(TrialErrorKind::Provider, &why, detail)
            }
            Trouble::AfterReply(why) => {
                let detail = "let the agent reply when it has asked all that it asks for: what comes later belongs to no \
                              turn, and would be answered and counted in the next one";
                error(TrialErrorKind::Provider, &why, vec![detail.to_owned()])
            }
            Trouble::SetUp(why) | Trouble::TooSlow(why) => error(TrialErrorKind::Provider, &why, Vec::new()),
            Trouble::Miss(miss) => aborted(&Abort::Miss(miss)),
        }
    }
}

/// Lines that declare values which an agent generates per run.
fn vars_lines(minted: &[Minted]) -> Vec<String> {
    let head = (!minted.is_empty()).then(|| MINTED.to_owned());
    head.into_iter().chain(minted.iter().map(|one| format!("  {one}"))).collect()
}

/// Runs all conversations of a case, one after another.
async fn converse(session: &mut Session<'_>, case: &ResolvedCase) -> Result<(), Trouble> {
    for (ordinal, planned) in (0..).zip(case.conversations()) {
        let mut conversation = session.begin(ordinal, &planned.name, planned.tenant.as_deref());
        for turn in &planned.turns {
            session.turn(&mut conversation, &turn.ask).await?;
        }
    }
    Ok(())
}
