//! Runs one trial against its providers, and records it.
//!
//! A recording is written only if the trial ran to its end and every service was reachable. It is then loaded and
//! replayed, and the run reports the replay. A replay that differs from the live trial in anything but time is an
//! error.

use super::external::MINTED;
use super::keyword_index;
use super::outage::Origin;
use super::recording::{Recorder, RecordingError, Subject};
use super::replay::{aborted, error, failed, foreign};
use super::services::{Keys, LiveAccess, providers};
use super::settings::environment;
use super::stages::RecordedStages;
use super::{Finished, SetupError, TrialRunner, VariantSetup, names, no_evidence, trace_of};
use crate::cassette::{self, Cassette, CassetteError, Header, LocalTimes, Redactor, StoppingDesign, Take};
use crate::plan::{Plan, PlannedTrial, STOPPING_ALPHA, VariantSettings};
use crate::platform::clock::{Clock, RealClock};
use crate::trace::{Event, Evidence, Mode, NamedPassage, Trace, TrialEnd, TrialError, TrialErrorKind, version_of};
use crate::transport::{LiveTransport, Transport};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A live trial, with what its recording holds besides the exchanges.
pub(super) struct Live<'t> {
    /// The redacted trace.
    pub(super) trace: Trace,
    /// Durations of local stages.
    pub(super) times: &'t LocalTimes,
    /// Values that the agent generated.
    pub(super) vars: BTreeMap<String, Vec<String>>,
    /// Redacts every key in use.
    pub(super) redactor: Arc<Redactor>,
}

impl TrialRunner {
    /// Runs one trial against its providers without recording.
    pub async fn live(&self, plan: &Plan, trial: &PlannedTrial) -> Finished {
        let (setup, LiveAccess { clock, transport }) = match self.prepare(plan, trial) {
            Ok(prepared) => prepared,
            Err(why) => return failed(plan, trial, &why),
        };
        let (trace, _, passages) = self.run(plan, trial, setup, clock, transport).await;
        let trace = self.with_outage(trial, redacted(trace, &self.redactor()), &Origin::new());
        Finished { passages, ..Finished::of(trace) }
    }

    /// Runs one trial against its providers, writes its cassette, and returns the trace of replaying it.
    pub async fn record(&self, plan: &Plan, trial: &PlannedTrial) -> Finished {
        match self.prepare(plan, trial) {
            Ok((_, LiveAccess { clock, transport })) => self.record_with(plan, trial, clock, transport).await,
            Err(why) => failed(plan, trial, &why),
        }
    }

    /// Like [`TrialRunner::record`], over the given `transport` and `clock`.
    pub async fn record_with(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
    ) -> Finished {
        let Some(setup) = self.setup(trial) else { return failed(plan, trial, &foreign()) };
        let mut subject = self.subject(plan, trial, &setup.declared);
        subject.providers.extend(setup.asked.names());
        let recorder = Recorder::begin(subject, transport, &clock, Arc::new(self.redactor()));
        let (trace, times, _) = self.run(plan, trial, setup, clock, recorder.transport()).await;
        let redactor = recorder.redactor();
        let live = redacted(trace, &redactor);
        let replay = |cassette| std::future::ready(Ok(self.replay_from(plan, trial, setup, cassette)));
        self.keep(plan, trial, recorder, Live { trace: live, times: &times, vars: BTreeMap::new(), redactor }, replay)
            .await
    }

    /// Identity and path of a trial's recording.
    pub(super) fn subject(&self, plan: &Plan, trial: &PlannedTrial, declared: &VariantSettings) -> Subject {
        let (scenario, case) = names(plan, trial);
        let path = self.lane_file(plan, trial);
        let named = providers(declared).into_iter();
        Subject {
            shown: self.shown(&path).to_owned(),
            blobs: cassette::blobs_dir(self.cassettes(), &scenario),
            lane: trial.lane.to_string(),
            providers: named.map(|(service, name)| (service.as_str().to_owned(), name.to_owned())).collect(),
            tested: plan.subject(trial),
            seed: trial.seed,
            stopping: stopping_design(plan),
            scenario,
            case,
            path,
        }
    }

    /// Writes the recording of a live trial and replays it. If the replay is equal, the recording replaces the old one
    /// and the replay is the trial's result.
    pub(super) async fn keep<F>(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        recorder: Recorder,
        live: Live<'_>,
        replay: impl Fn(Cassette) -> F,
    ) -> Finished
    where
        F: Future<Output = Result<Finished, Box<TrialError>>>,
    {
        let Live { trace, times, vars, redactor } = live;
        let kept = || "nothing was written; an earlier recording is as it was".to_owned();
        let mut trace = self.with_outage(trial, trace, &Origin::new());
        if let TrialEnd::Error(why) = &mut trace.end {
            use TrialErrorKind::{NothingAsked, Provider, ProxyRefused};
            if matches!(why.kind, Provider | ProxyRefused | NothingAsked) {
                why.detail.push(kept());
            }
            return Finished::of(trace);
        }
        let broken = |why: RecordingError| error(TrialErrorKind::CassetteBroken, &why.to_string(), Vec::new());
        let (cassette, written) = match recorder.write(times, vars, trace.evidence.knowledge.clone(), &redactor) {
            Ok(written) => written,
            Err(why) => {
                self.end_unless_writable(&why);
                return failed(plan, trial, &broken(why));
            }
        };
        let mut finished = match replay(cassette).await {
            Ok(finished) => finished,
            Err(why) => return failed(plan, trial, &why),
        };
        if let Some(difference) = difference(&trace, &finished.trace) {
            let message = "the replay of what was just recorded differs from the live trial";
            let proposed = difference.contains(MINTED);
            let mut detail = vec![difference.clone(), "an earlier recording is as it was".to_owned()];
            if Self::is_external(trial) {
                let usual = "values that the agent generates per run (dates, ids) are declared in `vars`";
                detail.extend((!proposed).then(|| usual.to_owned()));
                let forgets = self.agent(trial).is_some_and(|agent| agent.is_started() && agent.forgets());
                detail.extend((!forgets).then(|| {
                    "the replay ran in a process that no other trial ran in: if your agent remembers earlier trials, \
                     declare `reset`, or `target.restart: trial`"
                        .to_owned()
                }));
            }
            let why = *error(TrialErrorKind::CassetteBroken, message, detail);
            // Each trial that differs is shown with its own difference.
            finished.trace.end = TrialEnd::Error(TrialError { cause: format!("{message}: {difference}"), ..why });
        } else if let Some(first) = self.first_draw(plan, trial, &trace, &replay).await {
            return first.run_again(finished);
        } else if let Err(why) = written.place() {
            self.end_unless_writable(&why);
            return failed(plan, trial, &broken(why));
        }
        finished
    }

    /// Replay of the existing recording, which stays because the trial was drawn before and nothing under test has
    /// changed. `None` if all trials of the scenario are drawn, there is no recording, or it no longer replays.
    async fn first_draw<F>(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        live: &Trace,
        replay: &impl Fn(Cassette) -> F,
    ) -> Option<Finished>
    where
        F: Future<Output = Result<Finished, Box<TrialError>>>,
    {
        if !self.in_part.contains(&trial.scenario) {
            return None;
        }
        let cassette = self.recording(plan, trial).ok()?;
        let Header { subject, knowledge, .. } = &cassette.header;
        let same = subject.is_empty() || *subject == plan.subject(trial);
        if !same || *knowledge != live.evidence.knowledge {
            return None;
        }
        let first = replay(cassette).await.ok()?;
        (first.trace.end == TrialEnd::Completed).then_some(first)
    }

    /// Notes in a trial's cassette that it was recorded again with that verdict, and that the first recording stayed.
    ///
    /// # Errors
    /// If the cassette cannot be read or written.
    pub fn note_run_again(&self, again: &Trace, verdict: &str) -> Result<(), CassetteError> {
        let path = cassette::path(self.cassettes(), &again.scenario, &again.case, &again.lane);
        let blobs = cassette::blobs_dir(self.cassettes(), &again.scenario);
        let mut cassette = Cassette::load_as(&path, self.shown(&path), &blobs)?;
        let at = again.evidence.recorded_at.as_ref().and_then(|at| at.parse().ok());
        cassette.header.note_later(at.unwrap_or(cassette.header.recorded_at), verdict);
        cassette.save(&path, &blobs, &self.redactor())
    }

    /// Ends the run if a recording failed for lack of disk space or permission: later recordings would be paid for and
    /// fail too.
    fn end_unless_writable(&self, why: &RecordingError) {
        if let Some((what, remedy)) = why.lasting() {
            self.budget().end(&format!("{what} ({why}): {remedy}"));
        }
    }

    /// Notes the verdict of the newest take in a trial's cassette, so that repeated recording until a pass is visible.
    ///
    /// # Errors
    /// If the cassette cannot be read or written.
    pub fn note_verdict(&self, trace: &Trace, verdict: &str) -> Result<(), CassetteError> {
        let path = cassette::path(self.cassettes(), &trace.scenario, &trace.case, &trace.lane);
        let blobs = cassette::blobs_dir(self.cassettes(), &trace.scenario);
        let mut cassette = Cassette::load_as(&path, self.shown(&path), &blobs)?;
        let take = Take { recorded_at: cassette.header.recorded_at, verdict: verdict.to_owned() };
        if cassette.header.takes.get(&cassette.header.take) == Some(&take) {
            return Ok(());
        }
        cassette.header.takes.insert(cassette.header.take, take);
        cassette.save(&path, &blobs, &self.redactor())
    }

    /// Whether a lane has a recording made after `since` whose take has no verdict: a run made it and was killed before
    /// noting one.
    pub fn recorded_since(&self, plan: &Plan, trial: &PlannedTrial, since: jiff::Timestamp) -> bool {
        self.recording(plan, trial).is_ok_and(|cassette| {
            let Header { recorded_at, take, takes, .. } = &cassette.header;
            // Recordings store whole seconds.
            recorded_at.as_second() >= since.as_second() && !takes.contains_key(take)
        })
    }

    /// End of a trial that was cut off, or never begun, because the run ended.
    pub fn stopped(&self, plan: &Plan, trial: &PlannedTrial, reason: &str) -> Finished {
        let detail = vec!["finished trials are kept; the same command with --resume runs the others".to_owned()];
        let end = TrialEnd::Error(*error(TrialErrorKind::Stopped, reason, detail));
        Finished::of(trace_of(plan, trial, no_evidence(Mode::Live, ""), end))
    }

    /// End of a live trial whose task panicked, reported as a bug.
    pub fn crashed(&self, plan: &Plan, trial: &PlannedTrial, reason: &str) -> Finished {
        let message = format!("this is a bug of ragcheck: {reason}");
        failed(plan, trial, &error(TrialErrorKind::Panic, &message, Vec::new()))
    }

    fn prepare(&self, plan: &Plan, trial: &PlannedTrial) -> Result<(&VariantSetup, LiveAccess), Box<TrialError>> {
        let setup = self.setup(trial).ok_or_else(foreign)?;
        let fault = plan.case_of(trial).and_then(|case| case.fault.as_deref());
        let access = self.access(trial, fault, setup);
        let access = access.map_err(|why| error(TrialErrorKind::Provider, &why.to_string(), Vec::new()))?;
        Ok((setup, access))
    }

    /// Access of a trial to its providers, with the limits of the run; a simulator also gets its seed and the fault.
    pub(super) fn access(
        &self,
        trial: &PlannedTrial,
        fault: Option<&str>,
        setup: &VariantSetup,
    ) -> Result<LiveAccess, SetupError> {
        let shared = setup.live.get_or_init(|| {
            let mut targets = self.targets(&setup.declared, Keys::Ours)?;
            targets.extend(setup.asked.targets(&self.variables, *setup.declared.limits.request)?);
            Ok(LiveTransport::new(targets, Arc::new(RealClock::start()))?)
        });
        let live = shared.as_ref().map_err(Clone::clone)?;
        let mut paces = self.paces(&setup.declared);
        paces.extend(setup.asked.paces(&self.paces));
        Ok(LiveAccess::new(live, (trial.seed, fault), paces, &self.budget, self.tariff(trial)))
    }

    async fn run(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        setup: &VariantSetup,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
    ) -> (Trace, Arc<LocalTimes>, Vec<Arc<NamedPassage>>) {
        let times = Arc::new(LocalTimes::recording());
        let stages = Arc::new(RecordedStages::noting(Arc::clone(&times), Arc::clone(&clock)));
        let evidence = live_evidence(&setup.declared);
        let built = environment(&self.loaded.project, trial, setup, &transport, &clock, stages, trial.seed);
        let (mut environment, case) = match (built, plan.case_of(trial)) {
            (Ok(environment), Some(case)) => (environment, case),
            (built, _) => {
                let reason = built.err().map_or_else(|| "the plan names an unknown case".into(), |why| why.to_string());
                let end = TrialEnd::Error(*error(TrialErrorKind::Provider, &reason, Vec::new()));
                let trace = trace_of(plan, trial, no_evidence(Mode::Live, &setup.declared.model.name), end);
                return (trace, times, Vec::new());
            }
        };
        let found = environment.knowledge.noting();
        let _index = match keyword_index::place(&mut environment, case, &self.loaded.root) {
            Ok(place) => place,
            Err(why) => {
                let none = no_evidence(Mode::Live, &setup.declared.model.name);
                return (trace_of(plan, trial, none, TrialEnd::Error(*why)), times, Vec::new());
            }
        };
        let end = match super::drive::drive(setup.flow, &environment, case).await {
            Ok(()) => TrialEnd::Completed,
            Err(abort) => TrialEnd::Error(*aborted(&abort)),
        };
        let mut trace = trace_of(plan, trial, evidence, end);
        trace.took_us = u64::try_from(clock.now().as_micros()).unwrap_or(u64::MAX);
        trace.evidence.knowledge = environment.knowledge.hash();
        trace.events = environment.take_events();
        trace.version = version_of(&trace.events);
        setup.tell_tools(&mut trace);
        let (passages, _) = self.found.name(&mut trace, &found, &self.redactor());
        (trace, times, passages)
    }
}

/// Design of a run until decided, as its recordings store it; `None` for a fixed number of repetitions.
pub(crate) fn stopping_design(plan: &Plan) -> Option<StoppingDesign> {
    let names = || plan.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    plan.stopping.map(|stopping| StoppingDesign::new(stopping.max_passes, STOPPING_ALPHA, STOPPING_ALPHA, names()))
}

/// Evidence of a trial against its providers.
pub(super) fn live_evidence(declared: &VariantSettings) -> Evidence {
    Evidence {
        mode: Mode::Live,
        recorded_from: format!("{} {}", declared.model.provider, declared.model.name),
        recorded_at: None,
        model: declared.model.name.clone(),
        knowledge: String::new(),
        earlier_takes: Vec::new(),
        noted_verdict: None,
        run_again: Vec::new(),
        replaced_errors: 0,
    }
}

/// The trace without keys that a service may have echoed: it is written to disk without passing through the recorder.
pub(super) fn redacted(trace: Trace, redactor: &Redactor) -> Trace {
    let Ok(value) = serde_json::to_value(&trace) else { return Trace { events: Vec::new(), ..trace } };
    let clean = redactor.redact_value(&value);
    if clean == value {
        return trace;
    }
    serde_json::from_value(clean).unwrap_or(Trace { events: Vec::new(), ..trace })
}

/// First difference, other than time, between two traces of one trial. Parallel conversations are compared one by one.
pub(super) fn difference(live: &Trace, replayed: &Trace) -> Option<String> {
    if let TrialEnd::Error(problem) = &replayed.end {
        let detail = problem.detail.join("\n");
        return Some(format!("{}: {}\n{detail}", problem.kind.label(), problem.message));
    }
    let (ours, theirs) = (by_conversation(live), by_conversation(replayed));
    for (conversation, events) in &ours {
        let others = theirs.get(conversation).map_or(&[][..], Vec::as_slice);
        for (index, event) in events.iter().enumerate() {
            if others.get(index) != Some(event) {
                let other = others.get(index).cloned().unwrap_or_default();
                return Some(format!("conversation {conversation}, event {index}: live {event}, replayed {other}"));
            }
        }
        if others.len() > events.len() {
            return Some(format!("conversation {conversation}: the replay has more events"));
        }
    }
    None
}

fn by_conversation(trace: &Trace) -> BTreeMap<u32, Vec<serde_json::Value>> {
    let mut events: BTreeMap<u32, Vec<serde_json::Value>> = BTreeMap::new();
    for event in &trace.events {
        events.entry(event.conversation).or_default().push(timeless(event));
    }
    events
}

fn timeless(event: &Event) -> serde_json::Value {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(map) => {
                map.retain(|key, _| !key.ends_with("_us"));
                map.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(event).unwrap_or_default();
    strip(&mut value);
    value
}
