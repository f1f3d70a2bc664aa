//! The recording of a trial's lane: where it is, what it holds, and the verdicts noted in it.

use super::opened::{Opened, Strike, Trial};
use super::outcome::error;
use super::recording::Subject;
use super::services::providers;
use crate::cassette::{self, Cassette, CassetteError, Header, StoppingDesign, Take};
use crate::plan::{Plan, STOPPING_ALPHA, VariantSettings};
use crate::trace::{Lane, Trace, TrialError, TrialErrorKind};
use std::path::PathBuf;

/// Noted result of a take that is no draw, because its trial ended in ERROR.
pub(super) const NO_DRAW: &str = "ERROR";

/// Path of a trial's lane file.
pub(crate) fn lane_file(trial: Trial<'_>) -> PathBuf {
    let (scenario, case) = trial.names();
    cassette::path(&trial.opened.cassettes, &scenario, &case, &trial.planned.lane)
}

/// Folder beside the recordings with the lanes of cells.
const FAULT_CASSETTES: &str = "fault-cassettes";

/// Folder of recordings and path of the lane that a new recording of a trial gets: a cell has its own.
fn own_lane(trial: Trial<'_>) -> (PathBuf, PathBuf) {
    let cassettes = &trial.opened.cassettes;
    let Some(strike) = trial.cell else { return (cassettes.clone(), lane_file(trial)) };
    let (scenario, case) = trial.names();
    let cell = match strike {
        Strike::Poison(payload) => format!("{case}+poison-{}", payload.id),
        Strike::Fault(fault) => {
            let lasts = if fault.times == 0 { "-lasting" } else { "" };
            let of = fault.tool.as_deref().unwrap_or_else(|| fault.service());
            let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
            let of: String = of.chars().map(plain).collect();
            format!("{case}+{of}-{}-{}{lasts}", fault.call, fault.fault.as_str())
        }
    };
    let folder = cassettes.with_file_name(FAULT_CASSETTES);
    let path = cassette::path(&folder, &scenario, &cell, &trial.planned.lane);
    (folder, path)
}

impl Trial<'_> {
    /// Whether the trial of a cell has a lane of its own.
    pub(crate) fn has_own_lane(self) -> bool {
        own_lane(self).1.exists()
    }

    /// Folder of recordings and path of the lane that is replayed: a cell without its own has that of its trial.
    fn lane(self) -> (PathBuf, PathBuf) {
        let (folder, path) = own_lane(self);
        if path.exists() { (folder, path) } else { (self.opened.cassettes.clone(), lane_file(self)) }
    }

    /// Reads the recording of the trial's lane.
    ///
    /// # Errors
    /// [`CassetteError`] if it is missing or broken; paths in messages are relative to the project.
    pub(crate) fn recording(self) -> Result<Cassette, CassetteError> {
        let (folder, path) = self.lane();
        Cassette::load_as(&path, self.opened.shown(&path), &cassette::blobs_dir(&folder, &self.names().0))
    }

    /// Like [`Trial::recording`], for a replay: the error says how to record the lane.
    pub(super) fn recorded(self) -> Result<Cassette, Box<TrialError>> {
        let record = self.rerecord();
        if !self.lane().1.exists() {
            let detail = vec![format!("record it: {record}")];
            return Err(error(TrialErrorKind::LaneMissing, "this lane has no recording", detail));
        }
        self.recording().map_err(|why| {
            let detail = vec![format!("fix or re-record it: {record}")];
            error(TrialErrorKind::CassetteBroken, &why.to_string(), detail)
        })
    }

    /// Whether the lane has a recording made after `since` whose take has no verdict: a run made it and was killed
    /// before noting one.
    pub(super) fn recorded_since(self, since: jiff::Timestamp) -> bool {
        self.recording().is_ok_and(|cassette| {
            let Header { recorded_at, take, takes, .. } = &cassette.header;
            // Recordings store whole seconds.
            recorded_at.as_second() >= since.as_second() && !takes.contains_key(take)
        })
    }

    /// Command that re-records the lane.
    pub(super) fn rerecord(self) -> String {
        if let Some(command) = &self.opened.records {
            return command.clone();
        }
        let scenario = self.plan.scenario_of(self.planned);
        let file = scenario.map_or("", |scenario| scenario.file.as_str());
        let case = self.case().map_or("", |case| case.case.as_str());
        let variant = self.planned.lane.variant.as_str();
        let variant = if variant == "base" { String::new() } else { format!(" --variant {variant}") };
        let agent = scenario.and_then(|scenario| scenario.agent.as_ref());
        let agent = agent.filter(|_| self.planned.is_external()).and_then(|agent| agent.target.server());
        let agent = agent.map_or_else(String::new, |server| format!(" --agent {server}"));
        format!("ragcheck run {file} --mode record --only {case}{variant}{agent}")
    }

    /// Identity and path of a new recording of the lane.
    pub(super) fn subject(self, declared: &VariantSettings) -> Subject {
        let (scenario, case) = self.names();
        let (folder, path) = own_lane(self);
        let named = providers(declared).into_iter();
        Subject {
            shown: self.opened.shown(&path).to_owned(),
            blobs: cassette::blobs_dir(&folder, &scenario),
            lane: self.planned.lane.to_string(),
            providers: named.map(|(service, name)| (service.as_str().to_owned(), name.to_owned())).collect(),
            tested: self.plan.subject(self.planned),
            seed: self.planned.seed,
            stopping: stopping_design(self.plan),
            scenario,
            case,
            path,
        }
    }
}

/// Design of a run until decided, as its recordings store it; `None` for a fixed number of repetitions.
pub(crate) fn stopping_design(plan: &Plan) -> Option<StoppingDesign> {
    let names = || plan.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    plan.stopping.map(|stopping| StoppingDesign::new(stopping.max_passes, STOPPING_ALPHA, STOPPING_ALPHA, names()))
}

/// Notes the verdict of the newest take in a trial's cassette, so that repeated recording until a pass is visible.
pub(crate) fn note_verdict(opened: &Opened, trace: &Trace, verdict: &str) -> Result<(), CassetteError> {
    note(opened, trace, |header| {
        let take = Take { recorded_at: header.recorded_at, verdict: verdict.to_owned() };
        let known = header.takes.get(&header.take) == Some(&take);
        header.takes.insert(header.take, take);
        !known
    })
}

/// Notes in a trial's cassette that its newest take is no draw: the run found it in ERROR after all. It is replaced
/// when the trial is recorded again.
pub(crate) fn note_error(opened: &Opened, plan: &Plan, trial: &str) -> Result<(), CassetteError> {
    let Some(planned) = plan.trials.place_of(trial).and_then(|place| plan.trials.at(place)) else { return Ok(()) };
    let (scenario, case) = opened.trial(plan, &planned).names();
    note_in(opened, (&scenario, &case), &planned.lane, |header| {
        let take = Take { recorded_at: header.recorded_at, verdict: NO_DRAW.to_owned() };
        header.takes.insert(header.take, take);
        true
    })
}

/// Notes in a trial's cassette that it was recorded again with that verdict, and that the first recording stayed.
pub(crate) fn note_run_again(opened: &Opened, again: &Trace, verdict: &str) -> Result<(), CassetteError> {
    note(opened, again, |header| {
        let at = again.evidence.recorded_at.as_ref().and_then(|at| at.parse().ok());
        header.note_later(at.unwrap_or(header.recorded_at), verdict);
        true
    })
}

fn note(opened: &Opened, trace: &Trace, change: impl FnOnce(&mut Header) -> bool) -> Result<(), CassetteError> {
    note_in(opened, (&trace.scenario, &trace.case), &trace.lane, change)
}

/// Changes the header of a trial's cassette; writes it if `change` returns true.
fn note_in(
    opened: &Opened,
    (scenario, case): (&str, &str),
    lane: &Lane,
    change: impl FnOnce(&mut Header) -> bool,
) -> Result<(), CassetteError> {
    let path = cassette::path(&opened.cassettes, scenario, case, lane);
    let blobs = cassette::blobs_dir(&opened.cassettes, scenario);
    let mut cassette = Cassette::load_as(&path, opened.shown(&path), &blobs)?;
    if change(&mut cassette.header) { cassette.save(&path, &blobs, &opened.redactor()) } else { Ok(()) }
}
