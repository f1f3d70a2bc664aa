//! What an agent's process asks before its first turn: clients that ask who they are, tools that are listed, an index
//! that is built.
//!
//! These requests belong to no trial. They are recorded once, in the lane `start` of scenario and variant, and served
//! to every process in a replay. The process whose start is recorded runs first; the next one, that of the replay that
//! verifies a trial, must ask for nothing else. The recording replaces an earlier one with the first trial that is kept.

use super::agents::{Process, Wanted};
use crate::cassette::{self, Cassette, CassetteError, LocalTimes};
use crate::flow::external::SILENCE;
use crate::platform::clock::{BoxFuture, Clock, FixedClock};
use crate::platform::files;
use crate::platform::lock::lock;
use crate::trace::{TrialError, TrialErrorKind};
use crate::transport::{
    HttpRequest, HttpResponse, Miss, Passed, ReplayTransport, Service, Tap, Transport, TransportError,
};
use crate::trial::TrialMode;
use crate::trial::opened::Trial;
use crate::trial::outcome::error;
use crate::trial::proxy::{Bound, Refused, Requests, Unbound, Vars};
use crate::trial::recording::{Recorder, RecordingError, Written};
use crate::trial::services::LiveAccess;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long the requests of a start are awaited after the process is ready.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
/// Beginning of messages about a start.
const WHEN: &str = "when the agent's process started";
/// Polling interval for requests in progress.
const LOOK: Duration = Duration::from_millis(5);

/// Lanes by the scenario's index in the plan and the variant.
type Lanes = BTreeMap<(usize, String), Arc<tokio::sync::Mutex<Known>>>;

/// The lanes `start` of a run, by the scenario's index in the plan and the variant.
#[derive(Default)]
pub(super) struct Starts {
    known: Mutex<Lanes>,
    resumed_since: OnceLock<jiff::Timestamp>,
}

/// One lane `start`.
#[derive(Default)]
struct Known {
    /// Whether processes are served from `lane`.
    is_settled: bool,
    /// The recording; `None` if processes ask nothing.
    lane: Option<Cassette>,
    /// What is to replace the earlier recording as soon as a trial is kept.
    unplaced: Option<Replacement>,
    /// Whether the earlier recording does not fit any more: a run that records some trials makes it anew.
    is_outdated: bool,
    /// Exchanges that no process asked for, as messages; `None` before the first process.
    unused: Option<BTreeSet<String>>,
}

/// What replaces an earlier recording of a start.
enum Replacement {
    Recorded(Written),
    /// Processes ask nothing any more.
    Nothing,
}

/// A process that is being started, and what answers it.
pub(super) struct Beginning<'w> {
    wanted: &'w Wanted<'w>,
    tap: Arc<Tap>,
    way: Arc<dyn Transport>,
    vars: Arc<Vars>,
    answers: Answers,
}

/// Who answers the requests of a start.
enum Answers {
    Services,
    /// The services, and the exchanges are recorded.
    Recorded {
        recorder: Box<Recorder>,
        known: OwnedMutexGuard<Known>,
    },
    Lane {
        /// `None` if nothing is recorded.
        replay: Option<Arc<ReplayTransport>>,
        known: Arc<tokio::sync::Mutex<Known>>,
        /// Whether it is that of an earlier run, in a run that records.
        earlier: bool,
    },
}

/// Answers where no start is recorded.
struct Unrecorded {
    record: String,
}

impl Transport for Unrecorded {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        if request.profile.is_notice() {
            return Box::pin(async { Ok(HttpResponse::accepted()) });
        }
        let service = request.service.as_str();
        let message = format!("{} {} of the service `{service}`: no start is recorded", request.method, request.path);
        let detail = vec![format!("record it: {}", self.record)];
        Box::pin(async move { Err(TransportError::Miss(Box::new(Miss { cause: message.clone(), message, detail }))) })
    }
}

/// Why the trials of a process cannot run.
pub(super) enum Unfit {
    /// The earlier recording does not fit: the start is to be recorded anew.
    Outdated,
    /// The process may not be used; `lasting` if another one would come to the same.
    Error { why: Box<TrialError>, lasting: bool },
}

impl Trial<'_> {
    /// Path of the lane `start` of the trial's scenario and variant.
    fn start_file(self) -> PathBuf {
        let lane = &self.planned.lane;
        cassette::start_path(&self.opened.cassettes, &self.names().0, &lane.flow, &lane.variant)
    }

    /// Command that records all trials of its scenario and variant, and the start of their processes.
    fn record_start(self) -> String {
        let file = self.plan.scenario_of(self.planned).map_or("", |scenario| scenario.file.as_str());
        let variant = self.planned.lane.variant.as_str();
        let variant = if variant == "base" { String::new() } else { format!(" --variant {variant}") };
        format!("ragcheck run {file} --mode record{variant}")
    }

    /// The recorded start; `None` if there is none.
    pub(crate) fn recorded_start(self) -> Result<Option<Cassette>, Box<TrialError>> {
        let (path, opened) = (self.start_file(), self.opened);
        let blobs = cassette::blobs_dir(&opened.cassettes, &self.names().0);
        match Cassette::load_as(&path, opened.shown(&path), &blobs) {
            Ok(cassette) => Ok(Some(cassette)),
            Err(CassetteError::Missing { .. }) => Ok(None),
            Err(why) => {
                let detail = vec![format!("fix or re-record it: {}", self.record_start())];
                Err(error(TrialErrorKind::CassetteBroken, &why.to_string(), detail))
            }
        }
    }
}

impl Starts {
    /// Keeps recordings made since then: the run was interrupted and goes on.
    pub(super) fn resume(&self, since: jiff::Timestamp) {
        let _ = self.resumed_since.set(since);
    }

    /// Whether the process of a trial was answered by a recording that was edited by hand.
    pub(super) async fn is_edited(&self, trial: Trial<'_>) -> bool {
        let Some(known) = self.known(trial) else { return false };
        known.lock().await.lane.as_ref().is_some_and(|lane| lane.edited)
    }

    fn known(&self, trial: Trial<'_>) -> Option<Arc<tokio::sync::Mutex<Known>>> {
        let key = (trial.planned.scenario, trial.planned.lane.variant.clone());
        lock(&self.known).get(&key).map(Arc::clone)
    }

    /// Replaces the earlier recording of a trial's start by the one that the trial, which is kept, was recorded with.
    pub(super) async fn place(&self, trial: Trial<'_>) -> Result<(), RecordingError> {
        let Some(known) = self.known(trial) else { return Ok(()) };
        let unplaced = known.lock().await.unplaced.take();
        match unplaced {
            Some(Replacement::Recorded(written)) => written.place()?,
            // An earlier start would be reported as not asked for.
            Some(Replacement::Nothing) => _ = files::remove_file(trial.start_file()),
            None => {}
        }
        Ok(())
    }

    /// Exchanges of lanes `start` that no process asked for, as messages.
    pub(super) fn unused(&self) -> Vec<String> {
        let known = lock(&self.known);
        // No process is being started any more.
        let lanes = known.values().filter_map(|lane| lane.try_lock().ok());
        lanes.flat_map(|mut lane| lane.unused.take().unwrap_or_default()).collect()
    }

    /// Prepares the start of a process.
    pub(super) async fn begin<'w>(&self, wanted: &'w Wanted<'w>) -> Result<Beginning<'w>, Box<TrialError>> {
        let (trial, setup) = (wanted.trial, wanted.setup);
        if wanted.mode == TrialMode::Live {
            let LiveAccess { transport, .. } = (wanted.access)()?;
            let vars = Arc::new(Vars::new(Vec::new(), BTreeMap::new()));
            let tap = Arc::new(Tap::new(transport));
            let way = Arc::clone(&tap) as Arc<dyn Transport>;
            return Ok(Beginning { wanted, tap, way, vars, answers: Answers::Services });
        }
        let key = (trial.planned.scenario, trial.planned.lane.variant.clone());
        let known = Arc::clone(lock(&self.known).entry(key).or_default());
        let mut held = Arc::clone(&known).lock_owned().await;
        let mut earlier = false;
        if !held.is_settled {
            let lane = if held.is_outdated { None } else { trial.recorded_start()? };
            let since = self.resumed_since.get();
            let keeps = |lane: &Cassette| {
                trial.opened.in_part.contains(&trial.planned.scenario)
                    || since.is_some_and(|since| lane.header.recorded_at.as_second() >= since.as_second())
            };
            earlier = wanted.mode == TrialMode::Record && lane.as_ref().is_some_and(keeps);
            if wanted.mode == TrialMode::Record && !earlier {
                return record(wanted, held);
            }
            (held.lane, held.is_settled) = (lane, true);
        }
        let lane = held.lane.clone();
        drop(held);
        let recorded = lane.as_ref().map(|lane| lane.header.vars.clone()).unwrap_or_default();
        let vars = Arc::new(Vars::new(setup.patterns.clone(), recorded));
        let replay = lane.map(|lane| {
            let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(lane.header.recorded_at));
            let replay = ReplayTransport::new(lane, clock, trial.record_start());
            Arc::new(replay.with_redactor(trial.opened.redactor()))
        });
        let below: Arc<dyn Transport> = match &replay {
            Some(replay) => Arc::clone(replay) as Arc<dyn Transport>,
            None => Arc::new(Unrecorded { record: trial.record_start() }),
        };
        let tap = Arc::new(Tap::new(below));
        let way = Arc::new(Bound { inner: Arc::clone(&tap) as _, vars: Arc::clone(&vars) });
        Ok(Beginning { wanted, tap, way, vars, answers: Answers::Lane { replay, known, earlier } })
    }
}

/// Prepares the start of a process whose requests are recorded.
fn record<'w>(wanted: &'w Wanted<'w>, known: OwnedMutexGuard<Known>) -> Result<Beginning<'w>, Box<TrialError>> {
    let (trial, setup) = (wanted.trial, wanted.setup);
    let LiveAccess { clock, transport } = (wanted.access)()?;
    let vars = Arc::new(Vars::new(setup.patterns.clone(), BTreeMap::new()));
    let below: Arc<dyn Transport> = Arc::new(Unbound { inner: transport, vars: Arc::clone(&vars) });
    let path = trial.start_file();
    let mut subject = setup.subject(trial);
    trial.opened.shown(&path).clone_into(&mut subject.shown);
    subject.lane = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    (subject.case, subject.path) = (String::new(), path);
    (subject.tested, subject.seed, subject.stopping) = (String::new(), trial.plan.seed, None);
    let recorder = Recorder::begin(subject, below, &clock, Arc::new(trial.opened.redactor()));
    let tap = Arc::new(Tap::new(recorder.transport()));
    let way = Arc::new(Bound { inner: Arc::clone(&tap) as _, vars: Arc::clone(&vars) });
    Ok(Beginning { wanted, tap, way, vars, answers: Answers::Recorded { recorder: Box::new(recorder), known } })
}

impl Beginning<'_> {
    /// What answers the process until its first turn.
    pub(super) fn way(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.way)
    }

    /// Waits until the process, which is ready, asks nothing more.
    pub(super) async fn settled(&self) {
        let clock = self.wanted.clock;
        let until = clock.now() + SETTLE_LIMIT;
        let is_over = || match &self.answers {
            Answers::Lane { replay: Some(replay), .. } => replay.unused().is_empty(),
            _ => self.tap.moment() == 0,
        };
        loop {
            while self.tap.under_way() > 0 && clock.now() < until {
                clock.sleep(LOOK).await;
            }
            let seen = self.tap.moment();
            if is_over() || clock.now() >= until {
                return;
            }
            clock.sleep(SILENCE).await;
            if self.tap.moment() == seen {
                return;
            }
        }
    }

    /// Ends the start; returns the process, and notes for its trials. That a request was not answered is a better reason
    /// than that the process did not start.
    pub(super) async fn end(
        self,
        started: Result<Process, Box<TrialError>>,
        requests: Requests,
    ) -> Result<(Process, Vec<String>), Unfit> {
        self.tap.close();
        let Self { wanted, tap, vars, answers, .. } = self;
        let trial = wanted.trial;
        let passed = tap.take();
        trial.opened.agents.asks(trial, tap.services());
        let (allowed, refused) = wanted.setup.allowed(requests.refused);
        if let Some(problem) = problem(&passed, &refused, matches!(answers, Answers::Lane { .. })) {
            if let Answers::Lane { known, earlier: true, .. } = answers
                && problem.kind == TrialErrorKind::CassetteMiss
            {
                let mut known = known.lock().await;
                // Another process may have found that out before.
                known.is_settled &= known.is_outdated;
                known.is_outdated = true;
                return Err(Unfit::Outdated);
            }
            let mut why = problem;
            let lasting = started.is_err() || why.kind != TrialErrorKind::Provider;
            why.detail.extend(started.err().map(|failure| format!("then: {}", failure.message)));
            return Err(Unfit::Error { why, lasting });
        }
        let process = started.map_err(|why| Unfit::Error { why, lasting: true })?;
        let broken = |why: RecordingError| {
            let why = error(TrialErrorKind::CassetteBroken, &why.to_string(), Vec::new());
            Unfit::Error { why, lasting: false }
        };
        match answers {
            Answers::Services => {}
            Answers::Recorded { mut known, .. } if passed.is_empty() => {
                (known.lane, known.unplaced, known.is_settled) = (None, Some(Replacement::Nothing), true);
            }
            Answers::Recorded { recorder, mut known } => {
                let redactor = recorder.redactor().knowing(tap.secrets());
                let times = LocalTimes::recording();
                let written = recorder.write(&times, vars.values(), String::new(), &redactor);
                let (cassette, written) = written.map_err(broken)?;
                (known.lane, known.unplaced, known.is_settled) =
                    (Some(cassette), Some(Replacement::Recorded(written)), true);
            }
            Answers::Lane { replay, known, .. } => {
                let mut known = known.lock().await;
                let unused: BTreeSet<String> = replay.iter().flat_map(|replay| replay.unused()).collect();
                known.unused = Some(match known.unused.take() {
                    Some(others) => others.intersection(&unused).cloned().collect(),
                    None => unused,
                });
            }
        }
        let notes = allowed.iter().map(|one| format!("{WHEN}, {one} (`target.may_refuse`)"));
        Ok((process, notes.collect()))
    }
}

/// Why the trials of a process cannot be judged, by what it asked when it started; `replayed` if a recording answered.
fn problem(passed: &[Passed], refused: &[Refused], replayed: bool) -> Option<Box<TrialError>> {
    if let [first, others @ ..] = refused {
        let mut detail: Vec<String> = others.iter().map(ToString::to_string).collect();
        detail.push(format!("nobody answered that request{}", first.remedy()));
        return Some(error(TrialErrorKind::ProxyRefused, &format!("{WHEN}, {first}"), detail));
    }
    let missed = passed.iter().find_map(|one| match &one.result {
        Err(TransportError::Miss(miss)) => Some(miss),
        _ => None,
    });
    if let Some(miss) = missed {
        return Some(Box::new(TrialError {
            kind: TrialErrorKind::CassetteMiss,
            message: format!("{WHEN}: {}", miss.message),
            cause: format!("{WHEN}: {}", miss.cause),
            detail: miss.detail.clone(),
        }));
    }
    if replayed {
        return None;
    }
    // As in a turn, the last answer of each service decides.
    let last: BTreeMap<Service, &Passed> = passed.iter().map(|one| (one.request.service, one)).collect();
    last.into_values().find_map(|one| {
        let declared = matches!(one.request.service, Service::Declared(_));
        let what = match &one.result {
            Ok(response) if matches!(response.status, 429 | 500..) => format!("HTTP {}", response.status),
            Ok(response) if !declared && matches!(response.status, 401..=403) => format!("HTTP {}", response.status),
            Ok(_) => return None,
            Err(why) => why.to_string(),
        };
        let service = one.request.service.as_str();
        let message = format!("{WHEN}, the service `{service}` failed: {what}");
        let detail = vec!["nothing was written; an earlier recording is as it was".to_owned()];
        Some(error(TrialErrorKind::Provider, &message, detail))
    })
}
