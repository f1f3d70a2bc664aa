//! Compares a lane's recording with what its trial would send today, without a replay, by the hashes beside each
//! exchange.
//!
//! The trial runs up to its first request, which gets no answer. If a part of that request (model, system prompt,
//! tools, parameters) no longer has the hash of the first recorded exchange, every exchange recorded with the old hash
//! has drifted: its key can no longer match.

use super::TrialRunner;
use super::knowledge::without_services;
use super::settings::environment;
use super::stages::RecordedStages;
use crate::cassette::{self, Cassette, CassetteError, Drift, LocalTimes, Redactor};
use crate::plan::{Plan, PlannedTrial};
use crate::platform::clock::{BoxFuture, Clock, VirtualClock, block_on};
use crate::provider::RetryPolicy;
use crate::transport::{HttpRequest, HttpResponse, Miss, Transport, TransportError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A part of a request that people change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The model's name.
    Model,
    /// The system prompt.
    System,
    /// The tool list.
    Tools,
    /// Everything else but the conversation.
    Parameters,
}

impl Part {
    const ALL: [Self; 4] = [Self::Model, Self::System, Self::Tools, Self::Parameters];

    /// Name used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::System => "system prompt",
            Self::Tools => "tool list",
            Self::Parameters => "parameters",
        }
    }

    fn of(self, drift: &Drift) -> &str {
        match self {
            Self::Model => &drift.model,
            Self::System => &drift.system,
            Self::Tools => &drift.tools,
            Self::Parameters => &drift.parameters,
        }
    }
}

/// A recording compared with today's trial.
#[derive(Debug)]
pub struct Standing {
    /// The recording.
    pub cassette: Cassette,
    /// Parts that drifted, each with the ordinals of the exchanges recorded with the old hash.
    pub drifted: Vec<(Part, Vec<u32>)>,
    /// Whether the knowledge server searched another collection, model or folder than the scenario declares today.
    pub searched_another: bool,
}

impl TrialRunner {
    /// Path of a trial's lane file.
    pub fn lane_file(&self, plan: &Plan, trial: &PlannedTrial) -> PathBuf {
        let (scenario, case) = super::names(plan, trial);
        cassette::path(self.cassettes(), &scenario, &case, &trial.lane)
    }

    /// Reads a trial's recording.
    ///
    /// # Errors
    /// [`CassetteError`] if it is missing or broken; paths in messages are relative to the project.
    pub fn recording(&self, plan: &Plan, trial: &PlannedTrial) -> Result<Cassette, CassetteError> {
        let path = self.lane_file(plan, trial);
        let (scenario, _) = super::names(plan, trial);
        Cassette::load_as(&path, self.shown(&path), &cassette::blobs_dir(self.cassettes(), &scenario))
    }

    /// Compares a trial's recording with what the trial would send today.
    ///
    /// # Errors
    /// [`CassetteError`] if the recording is missing or broken.
    pub fn standing(&self, plan: &Plan, trial: &PlannedTrial) -> Result<Standing, CassetteError> {
        let cassette = self.recording(plan, trial)?;
        let mut drifted = Vec::new();
        if let (Some(first), Some(today)) = (cassette.exchanges.first(), self.first_request(plan, trial))
            && first.service == today.service.as_str()
        {
            let body = cassette::stored_body(today.profile, &today.body, &Redactor::default());
            let today = cassette::drift(today.profile.layout, &body);
            for part in Part::ALL {
                let old = part.of(&first.drift);
                if old != part.of(&today) {
                    let same = cassette
                        .exchanges
                        .iter()
                        .filter(|exchange| exchange.service == first.service && part.of(&exchange.drift) == old);
                    drifted.push((part, same.map(|exchange| exchange.ordinal).collect()));
                }
            }
        }
        let searched_another = self.setup(trial).is_some_and(|setup| {
            let opened = setup.knowledge.open(&without_services(RetryPolicy::default()));
            opened.depart_from(&cassette.header.knowledge)
        });
        Ok(Standing { cassette, drifted, searched_another })
    }

    /// The first request of a trial; `None` if it sends none.
    fn first_request(&self, plan: &Plan, trial: &PlannedTrial) -> Option<HttpRequest> {
        let setup = self.setup(trial)?;
        let probe = Arc::new(Probe::default());
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let stages = RecordedStages::replaying(
            Arc::new(LocalTimes::replaying(std::collections::BTreeMap::new())),
            Arc::clone(&shared),
        );
        let transport = Arc::clone(&probe) as Arc<dyn Transport>;
        let project = &self.loaded.project;
        let built = environment(project, trial, setup, &transport, &shared, Arc::new(stages), trial.seed).ok()?;
        let case = plan.case_of(trial)?;
        // How the trial ends does not matter, only what it had sent by then.
        let _ = catch_unwind(AssertUnwindSafe(|| block_on(&clock, super::drive::drive(setup.flow, &built, case))));
        probe.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Captures the first request and answers none: the trial ends as on a cassette miss.
#[derive(Default)]
struct Probe {
    first: Mutex<Option<HttpRequest>>,
}

impl Transport for Probe {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(request);
        let words = || "only the first request was asked for".to_owned();
        let miss = Miss { message: words(), cause: words(), detail: Vec::new() };
        Box::pin(std::future::ready(Err(TransportError::Miss(Box::new(miss)))))
    }
}
