//! One trial of an agent that runs elsewhere: live, recorded or replayed.
//!
//! The agent is a real process in all three: it is sent the turns over HTTP, and what it asks of model and search service
//! comes through a proxy on loopback. What differs is what stands behind the proxy: the providers, the providers and a
//! recorder, or a cassette. Trials go through a turnstile, one at a time in the order of the plan, because nothing in a
//! request says which trial it belongs to.

use super::external_setup::{ExternalSetup, Measured, Recorded};
use super::live::{difference, providers, redacted, unreached};
use super::replay::{aborted, error, failed, rerecord, sources};
use super::services::Keys;
use super::{Finished, TrialRunner, case_of, trace_of};
use crate::cassette::{self, Cassette, Header, LocalTimes};
use crate::clock::{Clock, FixedClock, PausableClock, RealClock};
use crate::flow::Abort;
use crate::flow::external::{Endpoint, Pace, Session, Trouble, reset};
use crate::plan::{Plan, PlannedTrial};
use crate::proxy::{Bound, MODEL_MOUNT, Proxy, SEARCH_MOUNT, Serving, Unbound, Vars};
use crate::scenario::{Case, LoadedScenario, SequenceStep, Turn};
use crate::settings::Auth;
use crate::trace::{Arm, EXTERNAL, Evidence, Mode, Trace, TrialEnd, TrialError, TrialErrorKind};
use crate::transport::{
    LimitTransport, LiveTransport, RecordTransport, ReplayTransport, Service, Tap, Target as Address, Transport,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// What is done with a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It runs against the providers.
    Live,
    /// It runs against the providers, is recorded, and then replayed from what was written.
    Record,
    /// It runs against its cassette.
    Replay,
}

/// What one trial with the agent left.
struct Ran {
    trace: Trace,
    secrets: Vec<(String, String)>,
}

impl TrialRunner {
    /// Whether a trial is one of an agent that runs elsewhere: it needs a runtime and the turnstile.
    pub fn is_external(trial: &PlannedTrial) -> bool {
        trial.lane.flow == EXTERNAL
    }

    /// Waits until no other trial of an agent that runs elsewhere is under way; first come, first served.
    pub async fn turnstile(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turnstile).lock_owned().await
    }

    /// Runs one trial of an agent that runs elsewhere. The caller went through [`TrialRunner::turnstile`].
    pub async fn external(&self, plan: &Plan, trial: &PlannedTrial, doing: Doing) -> Finished {
        let written = self.written(plan, trial);
        let outside = written.and_then(|written| self.outside.get(&written.scenario.scenario));
        let Some(((written, outside), case)) = written.zip(outside).zip(case_of(plan, trial)) else {
            let message = "the plan names a scenario or case that is not loaded";
            return failed(plan, trial, TrialErrorKind::Panic, message, Vec::new());
        };
        let work = Work { runner: self, plan, trial, written, outside, case };
        let done = match doing {
            Doing::Live => work.live().await,
            Doing::Record => work.record().await,
            Doing::Replay => work.replay().await,
        };
        done.unwrap_or_else(|why| {
            let TrialError { kind, message, detail, .. } = *why;
            failed(plan, trial, kind, &message, detail)
        })
    }

    /// The proxy at that address, opened when it is first needed.
    async fn proxy(&self, address: SocketAddr) -> Result<Arc<Proxy>, Box<TrialError>> {
        let mut proxies = self.proxies.lock().await;
        if let Some(proxy) = proxies.get(&address) {
            return Ok(Arc::clone(proxy));
        }
        let opened = Proxy::open(address).await.map_err(|why| {
            let message = format!("the proxy cannot listen at {address}: {why}");
            let detail = "stop what listens there, or write another address in `proxy` and in the agent's settings";
            Box::new(error(TrialErrorKind::Provider, &message, vec![detail.to_owned()]))
        })?;
        let opened = Arc::new(opened);
        proxies.insert(address, Arc::clone(&opened));
        Ok(opened)
    }
}

type Outcome = Result<Finished, Box<TrialError>>;

/// One trial with everything that it needs.
struct Work<'a> {
    runner: &'a TrialRunner,
    plan: &'a Plan,
    trial: &'a PlannedTrial,
    written: &'a LoadedScenario,
    outside: &'a ExternalSetup,
    case: &'a Case,
}

impl Work<'_> {
    async fn live(&self) -> Outcome {
        let held = PausableClock::new(Arc::new(RealClock::start()));
        let services = self.services(&held)?;
        let clock: Arc<dyn Clock> = Arc::new(held);
        let times = Arc::new(LocalTimes::recording());
        let vars = Arc::new(Vars::new(Vec::new(), BTreeMap::new()));
        let tap = Arc::new(Tap::new(services));
        let ran = self
            .run(Arc::clone(&tap) as Arc<dyn Transport>, tap, vars, clock, &Measured(times), self.live_evidence())
            .await?;
        let redactor = self.runner.redactor().knowing(ran.secrets);
        Ok(Finished { trace: redacted(ran.trace, &redactor), unused: Vec::new() })
    }

    async fn record(&self) -> Outcome {
        let held = PausableClock::new(Arc::new(RealClock::start()));
        let services = self.services(&held)?;
        let clock: Arc<dyn Clock> = Arc::new(held);
        let redactor = Arc::new(self.runner.redactor());
        let vars = Arc::new(Vars::new(self.outside.patterns.clone(), BTreeMap::new()));
        let below: Arc<dyn Transport> = Arc::new(Unbound::new(services, Arc::clone(&vars)));
        let recorder = Arc::new(RecordTransport::new(below, Arc::clone(&clock), redactor));
        let tap = Arc::new(Tap::new(Arc::clone(&recorder) as Arc<dyn Transport>));
        let way = Arc::new(Bound::new(Arc::clone(&tap) as Arc<dyn Transport>, Arc::clone(&vars)));
        let times = Arc::new(LocalTimes::recording());
        let started = clock.wall();
        let pace = Measured(Arc::clone(&times));
        let ran = self.run(way, tap, Arc::clone(&vars), clock, &pace, self.live_evidence()).await?;
        let redactor = recorder.redactor().knowing(ran.secrets);
        let live = redacted(ran.trace, &redactor);
        if live.end != TrialEnd::Completed {
            return Ok(Finished { trace: live, unused: Vec::new() });
        }
        if let Some(reason) = unreached(&live) {
            let detail = vec!["nothing was written; an earlier recording is as it was".to_owned()];
            return Err(Box::new(error(TrialErrorKind::Provider, &reason, detail)));
        }
        let scenario = &self.written.scenario.scenario;
        let folder = self.runner.cassettes();
        let path = cassette::path(folder, scenario, &self.case.case, &self.trial.lane);
        let blobs = cassette::blobs_dir(folder, scenario);
        let (take, takes) = Cassette::next_take(&path, &blobs);
        let header = Header {
            scenario: scenario.clone(),
            case: self.case.case.clone(),
            lane: self.trial.lane.to_string(),
            recorded_at: started.round(jiff::Unit::Second).unwrap_or(started),
            recorded_from: recorder.recorded_from(&providers(&self.outside.services)),
            recorder: format!("ragcheck {}", env!("CARGO_PKG_VERSION")),
            knowledge: String::new(),
            seed: self.trial.seed,
            take,
            takes,
            profiles: recorder.profiles(),
            vars: vars.values(),
        };
        let broken = |why: cassette::CassetteError| {
            Box::new(error(TrialErrorKind::CassetteBroken, &why.to_string(), Vec::new()))
        };
        // Beside, until it is known to replay: the lane's earlier recording stays whole as long.
        let beside = path.with_extension("taking");
        Cassette::new(header, recorder.finish(), times.stages()).save(&beside, &blobs, &redactor).map_err(broken)?;
        let loaded = Cassette::load_as(&beside, self.runner.shown(&path), &blobs).map_err(broken)?;
        let mut finished = self.replay_from(loaded).await?;
        if let Some(difference) = difference(&live, &finished.trace) {
            let message = "the replay of what was just recorded differs from the live trial";
            let detail = vec![
                difference,
                "an earlier recording is as it was".to_owned(),
                "what the agent makes anew in every run (dates, ids) is declared in `vars`; what it remembers of the \
                 trial before is cleared by `reset`"
                    .to_owned(),
            ];
            finished.trace.end = TrialEnd::Error(error(TrialErrorKind::CassetteBroken, message, detail));
            let _ = std::fs::remove_file(&beside);
        } else if let Err(problem) = std::fs::rename(&beside, &path) {
            let message = format!("{}: cannot be written: {problem}", self.runner.shown(&path).display());
            return Err(Box::new(error(TrialErrorKind::CassetteBroken, &message, Vec::new())));
        }
        Ok(finished)
    }

    async fn replay(&self) -> Outcome {
        let (runner, scenario) = (self.runner, &self.written.scenario.scenario);
        let path = cassette::path(runner.cassettes(), scenario, &self.case.case, &self.trial.lane);
        let record = rerecord(self.written, &self.case.case, self.trial);
        if !path.exists() {
            let detail = vec![format!("record it: {record}")];
            return Err(Box::new(error(TrialErrorKind::LaneMissing, "this lane has no recording", detail)));
        }
        let blobs = cassette::blobs_dir(runner.cassettes(), scenario);
        let cassette = Cassette::load_as(&path, runner.shown(&path), &blobs).map_err(|why| {
            let detail = vec![format!("mend it, or record it again: {record}")];
            Box::new(error(TrialErrorKind::CassetteBroken, &why.to_string(), detail))
        })?;
        self.replay_from(cassette).await
    }

    async fn replay_from(&self, cassette: Cassette) -> Outcome {
        let runner = self.runner;
        let record = rerecord(self.written, &self.case.case, self.trial);
        let header = cassette.header.clone();
        let origin = cassette.origin(sources(&header.recorded_from));
        let pace = Recorded(LocalTimes::replaying(cassette.stages.clone()));
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
            model: self.outside.model.clone(),
            knowledge: String::new(),
            earlier_takes: header.earlier_verdicts(),
        };
        let clock = Arc::new(RealClock::start());
        let ran = self.run(way, tap, vars, clock, &pace, evidence).await?;
        let trace = redacted(ran.trace, &runner.redactor().knowing(ran.secrets));
        let unused = if trace.end == TrialEnd::Completed { replay.unused() } else { Vec::new() };
        Ok(Finished { trace, unused })
    }

    fn live_evidence(&self) -> Evidence {
        Evidence {
            mode: Mode::Live,
            recorded_from: format!("{} {}", self.outside.services.model, self.outside.model),
            recorded_at: None,
            model: self.outside.model.clone(),
            knowledge: String::new(),
            earlier_takes: Vec::new(),
        }
    }

    /// The way to the providers, with the limits of the run.
    fn services(&self, held: &PausableClock) -> Result<Arc<dyn Transport>, Box<TrialError>> {
        let clock: Arc<dyn Clock> = Arc::new(held.clone());
        let trouble = |why: String| Box::new(error(TrialErrorKind::Provider, &why, Vec::new()));
        let targets = self.runner.targets(&self.outside.services, Keys::TheAgents).map_err(trouble)?;
        let live = LiveTransport::new(targets, clock).map_err(|why| trouble(why.to_string()))?;
        let own = live.with_trial(&self.trial.id);
        let (paces, budget) = (self.runner.paces(&self.outside.services), Arc::clone(&self.runner.budget));
        let limited = LimitTransport::new(Arc::new(own), paces, budget, held.clone());
        let limited = limited.with_meter(self.runner.meter(self.plan, self.trial));
        Ok(Arc::new(limited))
    }

    /// The way to the agent at `endpoint`. A turn's limit is the session's, which waits as long again for the reply.
    fn to_agent(&self, endpoint: &Endpoint, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Transport>, Box<TrialError>> {
        let address = Address {
            base_url: endpoint.origin.clone(),
            key: None,
            auth: Auth::Bearer,
            headers: &[],
            timeout: self.outside.settings.turn.saturating_mul(3),
            trial_header: false,
        };
        let live = LiveTransport::new(BTreeMap::from([(Service::Agent, address)]), Arc::clone(clock));
        let live = live.map_err(|why| Box::new(error(TrialErrorKind::Provider, &why.to_string(), Vec::new())))?;
        Ok(Arc::new(live))
    }

    /// The trial itself: reset, then turn by turn, with `way` behind the proxy.
    async fn run(
        &self,
        way: Arc<dyn Transport>,
        tap: Arc<Tap>,
        vars: Arc<Vars>,
        clock: Arc<dyn Clock>,
        pace: &dyn Pace,
        evidence: Evidence,
    ) -> Result<Ran, Box<TrialError>> {
        let settings = &self.outside.settings;
        let proxy = self.runner.proxy(self.outside.proxy).await?;
        if let Some(endpoint) = &settings.reset {
            let way = self.to_agent(endpoint, &clock)?;
            reset(endpoint, &*way, &self.trial.id).await.map_err(|trouble| Box::new(self.told(trouble)))?;
        }
        let agent = self.to_agent(&settings.target.endpoint, &clock)?;
        let serving: Serving = proxy.serve(way);
        let mut session = Session {
            settings,
            trial: &self.trial.id,
            variant: &self.trial.lane.variant,
            withhold_history: self.trial.lane.arm == Arm::Control,
            way: agent,
            tap: Arc::clone(&tap),
            clock,
            pace,
            words: &*vars,
            events: Vec::new(),
            took: Duration::ZERO,
            completions: 0,
            offered: None,
        };
        let end = match converse(&mut session, self.case).await {
            Ok(()) => TrialEnd::Completed,
            Err(trouble) => TrialEnd::Error(self.told(trouble)),
        };
        drop(serving);
        let mut trace = trace_of(self.plan, self.trial, evidence, end);
        trace.took_us = u64::try_from(session.took.as_micros()).unwrap_or(u64::MAX);
        (trace.roles, trace.offered, trace.events) = (session.roles(), session.offered, session.events);
        Ok(Ran { trace, secrets: tap.secrets() })
    }

    fn told(&self, trouble: Trouble) -> TrialError {
        let proxy = self.outside.proxy;
        match trouble {
            Trouble::Unreached(why) => {
                let detail = vec![
                    "start the agent before the run, with these base URLs in its settings:".to_owned(),
                    format!("  model:  http://{proxy}{MODEL_MOUNT}"),
                    format!("  search: http://{proxy}{SEARCH_MOUNT}"),
                ];
                error(TrialErrorKind::Provider, &why, detail)
            }
            Trouble::TooSlow(why) => error(TrialErrorKind::Provider, &why, Vec::new()),
            Trouble::Miss(miss) => aborted(&Abort::Miss(miss)),
        }
    }
}

/// All conversations of a case, one after another.
async fn converse(session: &mut Session<'_>, case: &Case) -> Result<(), Trouble> {
    if case.sequence.is_empty() {
        return conversation(session, 0, "main", &case.asked()).await;
    }
    let mut ordinal = 0;
    for step in &case.sequence {
        let conversations = match step {
            SequenceStep::Conversation(one) => std::slice::from_ref(one),
            SequenceStep::Together(all) => all.as_slice(),
        };
        for one in conversations {
            conversation(session, ordinal, &one.name, &one.turns).await?;
            ordinal += 1;
        }
    }
    Ok(())
}

async fn conversation(session: &mut Session<'_>, ordinal: u32, name: &str, turns: &[Turn]) -> Result<(), Trouble> {
    let mut conversation = session.begin(ordinal, name);
    for turn in turns {
        session.turn(&mut conversation, &turn.ask).await?;
    }
    Ok(())
}
