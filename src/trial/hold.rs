//! Runs a trial with services held: which services those are, and which recording answers for them.

use super::TrialMode;
use super::lane::lane_file;
use super::opened::{Opened, Setup, Trial};
use super::outcome::error;
use super::services::providers;
use crate::cassette::Cassette;
use crate::plan::{Hold, OnNew, Plan, PlannedTrial};
use crate::platform::clock::{Clock, FixedClock};
use crate::scenario::diagnostic::did_you_mean;
use crate::trace::{HeldCalls, Lane, TrialError, TrialErrorKind};
use crate::transport::{HoldTransport, Holding, ReplayTransport, Service, Transport, Turns};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Groups of services that can be held together.
const GROUPS: [&str; 3] = ["search", "tools", "knowledge"];

/// Why nothing can be held as typed.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The model is live.
    #[error(
        "--hold model: the model is what a held run asks; a replay (`--mode replay`) answers it from the recordings, \
         and --from TURN answers it before that turn"
    )]
    Model,
    /// No selected scenario has a service of that name.
    #[error("--hold {name}: no selected scenario has a service of that name; {help}")]
    Unknown { name: String, help: String },
    /// No selected scenario asks one of the services.
    #[error(
        "--hold {0}: the selected scenarios ask none of these services, so nothing can be held; functions inside the \
         agent run for real"
    )]
    Nothing(String),
    /// No case is that long.
    #[error("--from {from}: the longest selected case has {longest} turns")]
    NoTurn { from: u32, longest: usize },
    /// The order of turns is up to chance.
    #[error(
        "--from TURN counts the turns of a case in order, and `{0}` has conversations side by side: leave it out with \
         --exclude"
    )]
    Parallel(String),
}

/// The group of a service; `None` for models, which are held by name only. `searches` tells whether a further provider
/// is a search service.
fn group(service: Service, searches: bool) -> Option<&'static str> {
    match service {
        Service::Search => Some("search"),
        Service::Provider(_) => searches.then_some("search"),
        Service::Embeddings | Service::Knowledge | Service::ManagedRetrieval => Some("knowledge"),
        Service::Declared(_) => Some("tools"),
        Service::Model | Service::Agent => None,
    }
}

/// Services of a setup, and whether each is a search service.
fn services_of(setup: &Setup) -> Vec<(Service, bool)> {
    match setup {
        Setup::Flow(setup) => {
            let own = providers(&setup.declared).into_keys().chain(setup.retrieval.services());
            own.map(|service| (service, service == Service::Search)).collect()
        }
        Setup::Agent(setup) => setup.services.holdable().collect(),
    }
}

fn holds(name: &str, (service, searches): (Service, bool)) -> bool {
    service != Service::Model && (service.as_str() == name || group(service, searches) == Some(name))
}

/// Checks what a run of `plan` would hold; returns notes on groups that no selected scenario has.
///
/// # Errors
/// [`HoldError`] if a name is unknown, or nothing could be held.
pub(crate) fn holdable(opened: &Opened, plan: &Plan, hold: &Hold) -> Result<Vec<String>, HoldError> {
    let all: Vec<(Service, bool)> =
        opened.setups(plan).flat_map(|(_, setups)| setups.values()).flat_map(services_of).collect();
    let mut absent = Vec::new();
    for name in &hold.services {
        if name == Service::Model.as_str() {
            return Err(HoldError::Model);
        }
        if all.iter().any(|one| holds(name, *one)) {
            continue;
        }
        if !GROUPS.contains(&name.as_str()) {
            let own = all.iter().map(|(service, _)| service.as_str()).filter(|own| *own != Service::Model.as_str());
            let known: BTreeSet<&str> = GROUPS.into_iter().chain(own).collect();
            return Err(HoldError::Unknown { name: name.clone(), help: did_you_mean(name, known) });
        }
        absent.push(name.as_str());
    }
    if !hold.services.is_empty() && absent.len() == hold.services.len() {
        return Err(HoldError::Nothing(hold.services.join(",")));
    }
    if let Some(from) = hold.from {
        let cases = || plan.scenarios.iter().flat_map(|scenario| &scenario.cases).map(|planned| &planned.case);
        if let Some(case) = cases().find(|case| case.steps.iter().any(|step| step.len() > 1)) {
            return Err(HoldError::Parallel(case.case.clone()));
        }
        let turns = cases().map(|case| case.conversations().map(|one| one.turns.len()).sum::<usize>());
        let longest = turns.max().unwrap_or_default();
        if longest < from as usize {
            return Err(HoldError::NoTurn { from, longest });
        }
    }
    let note = |name: &str| format!("--hold {name}: no selected scenario has such a service");
    Ok(absent.into_iter().map(note).collect())
}

impl Opened {
    /// Whether requests to a service of a trial go out: those to a held one do not if what is new is a miss.
    pub(super) fn may_ask(&self, planned: &PlannedTrial, service: Service) -> bool {
        let Some(hold) = self.hold.as_ref().filter(|hold| hold.on_new == OnNew::Fail) else { return true };
        !self.held_services(planned, hold).contains(&service)
    }

    fn held_services(&self, planned: &PlannedTrial, hold: &Hold) -> BTreeSet<Service> {
        let all = self.setup(planned).map(services_of).unwrap_or_default().into_iter();
        let held = all.filter(|one| hold.services.iter().any(|name| holds(name, *one)));
        held.map(|(service, _)| service).collect()
    }
}

/// The recording that answers the held services of one trial.
pub(super) struct HeldLane {
    transport: Arc<HoldTransport>,
    turns: Turns,
    calls: HeldCalls,
    /// Values that the agent generated in the recording.
    pub(super) vars: BTreeMap<String, Vec<String>>,
}

impl HeldLane {
    /// The transport that holds.
    pub(super) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport) as Arc<dyn Transport>
    }

    /// The counter of turns, which the trial advances.
    pub(super) fn turns(&self) -> Turns {
        self.turns.clone()
    }

    /// The calls so far.
    pub(super) fn calls(&self) -> HeldCalls {
        let [recorded, forced, new] = self.transport.counted();
        HeldCalls { recorded, forced, new, ..self.calls.clone() }
    }
}

/// What a trial holds before `below`; `None` if its run holds nothing. In a live run held answers come at once; in a
/// recording they take their recorded time, as they will when it is replayed.
///
/// # Errors
/// If its recording cannot be read.
pub(super) fn held(
    trial: Trial<'_>,
    mode: TrialMode,
    clock: &Arc<dyn Clock>,
    below: &Arc<dyn Transport>,
) -> Result<Option<HeldLane>, Box<TrialError>> {
    let Some(hold) = &trial.opened.hold else { return Ok(None) };
    let found = recording(trial)?;
    let turns = Turns::default();
    let mut holding = Holding {
        services: trial.opened.held_services(trial.planned, hold),
        ask_new: hold.on_new == OnNew::Live,
        from: hold.from,
        simulated: BTreeSet::new(),
        turns: turns.clone(),
    };
    let mut calls = HeldCalls { services: hold.services.clone(), ..HeldCalls::default() };
    let mut vars = BTreeMap::new();
    let replay = found.map(|cassette| {
        let header = &cassette.header;
        calls.lane = Some(header.lane.clone());
        calls.recorded_at = Some(header.recorded_at.to_string());
        let simulated = header.recorded_from.iter().filter(|(_, from)| from.starts_with("simulator"));
        holding.simulated = simulated.map(|(service, _)| service.clone()).collect();
        vars.clone_from(&header.vars);
        let clock: Arc<dyn Clock> = match mode {
            TrialMode::Live => Arc::new(FixedClock::at(header.recorded_at)),
            TrialMode::Record | TrialMode::Replay => Arc::clone(clock),
        };
        ReplayTransport::new(cassette, clock, trial.rerecord()).with_redactor(trial.opened.redactor())
    });
    let transport = Arc::new(HoldTransport::new(Arc::clone(below), replay, holding));
    Ok(Some(HeldLane { transport, turns, calls, vars }))
}

/// The recording that a trial holds: of its own lane, else of its variant's first repetition, else of another variant of
/// its flow, in the order of the scenario.
fn recording(trial: Trial<'_>) -> Result<Option<Cassette>, Box<TrialError>> {
    let own = &trial.planned.lane;
    let others = trial.plan.scenario_of(trial.planned).into_iter().flat_map(|scenario| &scenario.variants);
    let others = others.filter(|variant| variant.flow == own.flow).map(|variant| &variant.name);
    let variants = std::iter::once(&own.variant).chain(others);
    let lanes = variants.flat_map(|variant| {
        [own.repetition, 1].map(|repetition| Lane { variant: variant.clone(), repetition, ..own.clone() })
    });
    for lane in lanes {
        let planned = PlannedTrial { lane, ..trial.planned.clone() };
        let other = Trial { planned: &planned, ..trial };
        if lane_file(other).exists() {
            let read = other.recording();
            return read.map(Some).map_err(|why| {
                let detail = vec![format!("fix or re-record it: {}", other.rerecord())];
                error(TrialErrorKind::CassetteBroken, &why.to_string(), detail)
            });
        }
    }
    Ok(None)
}
