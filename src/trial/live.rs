//! One trial against its providers, and the recording of it.
//!
//! A recording is written only when the trial ran to its end and every service was reached; it is then loaded again
//! and replayed, and the replay is what the run reports. A replay that differs from the live trial in anything but
//! time is an error.

use super::replay::{aborted, error, failed, rerecord};
use super::services::Keys;
use super::settings::{ServiceSettings, environment};
use super::stages::RecordedStages;
use super::{Finished, TrialRunner, VariantSetup, case_of, no_evidence, trace_of};
use crate::cassette::{self, Cassette, CassetteError, Header, LocalTimes, Redactor, Take};
use crate::clock::{Clock, PausableClock, RealClock};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::LoadedScenario;
use crate::trace::{Attempt, Event, Evidence, Mode, Reply, Trace, TrialEnd, TrialErrorKind, What};
use crate::transport::{LimitTransport, LiveTransport, RecordTransport, Service, Transport};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// A live trial with what its environment noted.
struct Ran {
    trace: Trace,
    stages: BTreeMap<String, Vec<Duration>>,
}

impl TrialRunner {
    /// Runs one trial against its providers and records nothing.
    pub async fn live(&self, plan: &Plan, trial: &PlannedTrial) -> Finished {
        match self.prepare(plan, trial) {
            Err(finished) => *finished,
            Ok((_, setup, clock, transport)) => {
                let ran = self.run(plan, trial, setup, clock, transport).await;
                Finished { trace: redacted(ran.trace, &self.redactor()), unused: Vec::new() }
            }
        }
    }

    /// Runs one trial against its providers, writes its cassette, and gives the trace of replaying that.
    pub async fn record(&self, plan: &Plan, trial: &PlannedTrial) -> Finished {
        match self.prepare(plan, trial) {
            Ok((_, _, clock, transport)) => self.record_with(plan, trial, clock, transport).await,
            Err(finished) => *finished,
        }
    }

    /// Like [`TrialRunner::record`], against whatever `transport` leads to, on `clock`.
    pub async fn record_with(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
    ) -> Finished {
        let (written, setup) = match self.place(plan, trial) {
            Ok(place) => place,
            Err(finished) => return *finished,
        };
        let redactor = Arc::new(self.redactor());
        let recorder = Arc::new(RecordTransport::new(transport, Arc::clone(&clock), Arc::clone(&redactor)));
        let started = clock.wall();
        let ran = self.run(plan, trial, setup, clock, Arc::clone(&recorder) as Arc<dyn Transport>).await;
        let live = redacted(ran.trace, &redactor);
        if live.end != TrialEnd::Completed {
            return Finished { trace: live, unused: Vec::new() };
        }
        if let Some(reason) = unreached(&live) {
            let detail = vec!["nothing was written; an earlier recording is as it was".to_owned()];
            return failed(plan, trial, TrialErrorKind::Provider, &reason, detail);
        }
        let exchanges = recorder.finish();
        let scenario = &written.scenario.scenario;
        let path = cassette::path(self.cassettes(), scenario, &live.case, &trial.lane);
        let blobs = cassette::blobs_dir(self.cassettes(), scenario);
        let (take, takes) = Cassette::next_take(&path, &blobs);
        let header = Header {
            scenario: scenario.clone(),
            case: live.case.clone(),
            lane: trial.lane.to_string(),
            recorded_at: started.round(jiff::Unit::Second).unwrap_or(started),
            recorded_from: recorder.recorded_from(&providers(&setup.services)),
            recorder: format!("ragcheck {}", env!("CARGO_PKG_VERSION")),
            knowledge: live.evidence.knowledge.clone(),
            seed: trial.seed,
            take,
            takes,
            profiles: recorder.profiles(),
            vars: BTreeMap::new(),
        };
        let cassette = Cassette::new(header, exchanges, ran.stages);
        // Beside, until it is known to replay: the lane's earlier recording stays whole as long.
        let beside = path.with_extension("taking");
        let saved = cassette
            .save(&beside, &blobs, &redactor)
            .and_then(|()| Cassette::load_as(&beside, self.shown(&path), &blobs));
        let broken = |message: &str, detail| failed(plan, trial, TrialErrorKind::CassetteBroken, message, detail);
        let cassette = match saved {
            Err(problem) => return broken(&problem.to_string(), Vec::new()),
            Ok(cassette) => cassette,
        };
        let record = rerecord(written, &live.case, trial);
        let mut finished = self.replay_from(plan, trial, setup, cassette, &record);
        if let Some(difference) = difference(&live, &finished.trace) {
            let message = "the replay of what was just recorded differs from the live trial";
            let kept = "an earlier recording is as it was".to_owned();
            finished.trace.end =
                TrialEnd::Error(error(TrialErrorKind::CassetteBroken, message, vec![difference, kept]));
            let _ = fs::remove_file(&beside);
        } else if let Err(problem) = fs::rename(&beside, &path) {
            let shown = self.shown(&path).display();
            return broken(&format!("{shown}: cannot be written: {problem}"), Vec::new());
        }
        finished
    }

    /// Notes in the cassette of a trial that was just recorded what its take came to, so that recording until green
    /// shows.
    ///
    /// # Errors
    /// When the cassette cannot be read or written.
    pub fn note_verdict(&self, trace: &Trace, verdict: &str) -> Result<(), CassetteError> {
        let path = cassette::path(self.cassettes(), &trace.scenario, &trace.case, &trace.lane);
        let blobs = cassette::blobs_dir(self.cassettes(), &trace.scenario);
        let mut cassette = Cassette::load_as(&path, self.shown(&path), &blobs)?;
        let take = Take { recorded_at: cassette.header.recorded_at, verdict: verdict.to_owned() };
        cassette.header.takes.insert(cassette.header.take, take);
        cassette.save(&path, &blobs, &self.redactor())
    }

    /// A trial that the end of the run cut off, or kept from beginning.
    pub fn stopped(&self, plan: &Plan, trial: &PlannedTrial, reason: &str) -> Finished {
        let detail = vec!["finished trials are kept; the same command with --failed runs the others".to_owned()];
        let end = TrialEnd::Error(error(TrialErrorKind::Stopped, reason, detail));
        Finished { trace: trace_of(plan, trial, no_evidence(Mode::Live, ""), end), unused: Vec::new() }
    }

    /// A live trial whose task failed: a bug, told as one.
    pub fn crashed(&self, plan: &Plan, trial: &PlannedTrial, reason: &str) -> Finished {
        let message = format!("this is a bug of ragcheck: {reason}");
        failed(plan, trial, TrialErrorKind::Panic, &message, Vec::new())
    }

    /// What a trial of `plan` stands on.
    fn place(&self, plan: &Plan, trial: &PlannedTrial) -> Result<(&LoadedScenario, &VariantSetup), Box<Finished>> {
        let written = self.written(plan, trial);
        let setup = written.and_then(|written| self.setup(trial, written));
        written.zip(setup).ok_or_else(|| {
            let message = "the plan names a scenario that is not loaded";
            Box::new(failed(plan, trial, TrialErrorKind::Panic, message, Vec::new()))
        })
    }

    #[expect(clippy::type_complexity, reason = "what a live trial needs, named where it is taken apart")]
    pub(super) fn prepare<'a>(
        &'a self,
        plan: &Plan,
        trial: &PlannedTrial,
    ) -> Result<(&'a LoadedScenario, &'a VariantSetup, Arc<dyn Clock>, Arc<dyn Transport>), Box<Finished>> {
        let (written, setup) = self.place(plan, trial)?;
        let held = PausableClock::new(Arc::new(RealClock::start()));
        let clock: Arc<dyn Clock> = Arc::new(held.clone());
        let shared = setup.live.get_or_init(|| {
            let targets = self.targets(&setup.services, Keys::Ours)?;
            LiveTransport::new(targets, Arc::clone(&clock)).map_err(|problem| problem.to_string())
        });
        match shared {
            Ok(shared) => {
                let own = shared.with_clock(Arc::clone(&clock)).with_trial(&trial.id);
                let (paces, budget) = (self.paces(&setup.services), Arc::clone(&self.budget));
                let limited = LimitTransport::new(Arc::new(own), paces, budget, held);
                let limited = limited.with_meter(self.meter(plan, trial));
                Ok((written, setup, clock, Arc::new(limited)))
            }
            Err(reason) => Err(Box::new(failed(plan, trial, TrialErrorKind::Provider, reason, Vec::new()))),
        }
    }

    async fn run(
        &self,
        plan: &Plan,
        trial: &PlannedTrial,
        setup: &VariantSetup,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
    ) -> Ran {
        let times = Arc::new(LocalTimes::recording());
        let stages = Arc::new(RecordedStages::noting(Arc::clone(&times), Arc::clone(&clock)));
        let model = &setup.settings.model;
        let evidence = Evidence {
            mode: Mode::Live,
            recorded_from: format!("{} {}", setup.services.model, model.name),
            recorded_at: None,
            model: model.name.clone(),
            knowledge: String::new(),
            earlier_takes: Vec::new(),
        };
        let built = environment(&self.loaded.project, trial, setup, &transport, &clock, stages, trial.seed);
        let (environment, case) = match (built, case_of(plan, trial)) {
            (Ok(environment), Some(case)) => (environment, case),
            (built, _) => {
                let reason = built.err().map_or_else(|| "the plan names an unknown case".into(), |why| why.to_string());
                let end = TrialEnd::Error(error(TrialErrorKind::Provider, &reason, Vec::new()));
                let trace = trace_of(plan, trial, no_evidence(Mode::Live, &model.name), end);
                return Ran { trace, stages: BTreeMap::new() };
            }
        };
        let end = match super::drive::drive(setup.flow, &environment, case).await {
            Ok(()) => TrialEnd::Completed,
            Err(abort) => TrialEnd::Error(aborted(&abort)),
        };
        let mut trace = trace_of(plan, trial, evidence, end);
        trace.took_us = u64::try_from(clock.now().as_micros()).unwrap_or(u64::MAX);
        trace.evidence.knowledge = environment.knowledge.hash();
        trace.events = environment.take_events();
        setup.tell_tools(&mut trace);
        Ran { trace, stages: times.stages() }
    }
}

/// The trace without the keys that a service may have echoed: what was never recorded is still written down.
pub(super) fn redacted(trace: Trace, redactor: &Redactor) -> Trace {
    let Ok(value) = serde_json::to_value(&trace) else { return Trace { events: Vec::new(), ..trace } };
    let clean = redactor.redact_value(&value);
    if clean == value {
        return trace;
    }
    serde_json::from_value(clean).unwrap_or(Trace { events: Vec::new(), ..trace })
}

/// The providers' names, by service.
pub(super) fn providers(services: &ServiceSettings) -> BTreeMap<String, String> {
    let model = (Service::Model.as_str().to_owned(), services.model.clone());
    let search = services.search.clone();
    let search = search.map(|search| (Service::Search.as_str().to_owned(), search));
    [Some(model), search].into_iter().flatten().collect()
}

/// Why a recording would be evidence of a broken set-up and not of an agent: a service that was never reached, or
/// that refused the key.
pub(super) fn unreached(trace: &Trace) -> Option<String> {
    let hopeless = |attempts: &[Attempt]| {
        attempts
            .last()
            .and_then(|last| last.cause.clone())
            .filter(|cause| matches!(cause.as_str(), "connection" | "auth" | "quota"))
    };
    trace.events.iter().find_map(|event| match &event.what {
        What::ModelCalled(called) => match &called.reply {
            Reply::Failure { message, .. } => {
                hopeless(&called.attempts).map(|cause| format!("the model was not reached ({cause}): {message}"))
            }
            Reply::Completion(_) => None,
        },
        What::ToolCalled(called) => {
            hopeless(&called.attempts).map(|cause| format!("`{}` did not reach its service ({cause})", called.tool))
        }
        _ => None,
    })
}

/// The first thing, times aside, in which two traces of one trial differ. Conversations that run side by side are
/// compared one by one.
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
