//! Finds recordings that are too old, no longer match their trial, belong to no trial, or are missing.
//!
//! Nothing here is part of a report: the same run gives the same bytes on another day.

use super::drift::{Compared, RequestPart, drifted};
use super::starts::start_lanes;
use crate::cassette::{self, Cassette, CassetteError, Keys};
use crate::plan::{self, Plan, PlannedScenario, PlannedTrial, Selection};
use crate::platform::files;
use crate::scenario::{Diagnostic, Loaded};
use crate::trace::text::{listed, plural};
use crate::trial::{Opened, lane_file as recorded_at};
use jiff::Timestamp;
use rayon::iter::Either;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age limit of recordings.
#[derive(Debug, Clone, Copy)]
pub struct Ages {
    now: Timestamp,
    limit: Option<Duration>,
}

impl Ages {
    /// Limit relative to the time `now`; `None` means no limit.
    pub fn new(limit: Option<Duration>, now: Timestamp) -> Self {
        Self { now, limit }
    }

    /// Whether a recording of that time is too old.
    pub fn too_old(&self, recorded_at: Timestamp) -> bool {
        self.limit.is_some_and(|limit| {
            let age = self.now.duration_since(recorded_at);
            Duration::try_from(age).is_ok_and(|age| age > limit)
        })
    }

    /// The day (UTC) at this distance from now, `2026-11-24`.
    pub(super) fn day_in(&self, distance: Duration) -> String {
        day(self.now.checked_add(distance).unwrap_or(self.now))
    }

    fn limit(&self) -> String {
        let hours = self.limit.unwrap_or_default().as_secs() / 3600;
        if hours.is_multiple_of(24) { plural((hours / 24) as usize, "day") } else { plural(hours as usize, "hour") }
    }

    /// Warning about the recordings that are too old; `None` if none is.
    pub fn remark(&self, recorded: &[(String, Timestamp)]) -> Option<String> {
        let old: Vec<&(String, Timestamp)> = recorded.iter().filter(|(_, at)| self.too_old(*at)).collect();
        let (trial, at) = old.iter().min_by_key(|(trial, at)| (*at, trial))?;
        Some(format!(
            "warning: {} older than {}, the oldest that of {trial}, of {}; record them again: ragcheck cassette refresh --stale",
            are(old.len()),
            self.limit(),
            day(*at),
        ))
    }
}

fn are(recordings: usize) -> String {
    format!("{} {}", plural(recordings, "recording"), if recordings == 1 { "is" } else { "are" })
}

fn were(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// Why a lane is stale.
#[derive(Debug)]
pub(crate) struct Stale {
    /// Recording time, if it is too long ago.
    pub old: Option<Timestamp>,
    /// Parts of its requests that have changed, with the exchanges that have the old ones.
    pub drifted: Vec<(RequestPart, Vec<u32>)>,
    /// The recorded knowledge server declaration, if another is declared today.
    pub searched: Option<String>,
}

/// Stale lanes of a plan: trials by index, with reasons. Lanes without a valid recording are left out.
pub(crate) fn stale(opened: &Opened, plan: &Plan, ages: Ages) -> BTreeMap<usize, Stale> {
    let lanes = plan.trials.par_iter().enumerate().map_init(Keys::default, |keys, (index, trial)| {
        let Compared { cassette, drifted, searched_another } = drifted(keys, opened.trial(plan, trial)).ok()?;
        let at = cassette.header.recorded_at;
        let searched = searched_another.then_some(cassette.header.knowledge);
        let stale = Stale { old: ages.too_old(at).then_some(at), drifted, searched };
        (stale.old.is_some() || !stale.drifted.is_empty() || stale.searched.is_some()).then_some((index, stale))
    });
    lanes.flatten_iter().collect()
}

/// Trials of a plan whose recording would miss, by index, with the parts of their first request that have changed.
pub(crate) fn would_miss(opened: &Opened, plan: &Plan) -> BTreeMap<usize, Vec<RequestPart>> {
    let lanes = plan.trials.par_iter().enumerate().map_init(Keys::default, |keys, (index, trial)| {
        let parts: Vec<RequestPart> = match drifted(keys, opened.trial(plan, trial)) {
            Ok(compared) => compared.drifted.into_iter().map(|(part, _)| part).collect(),
            Err(CassetteError::Missing { .. }) => Vec::new(),
            Err(_) => vec![RequestPart::Recording],
        };
        (!parts.is_empty()).then_some((index, parts))
    });
    lanes.flatten_iter().collect()
}

/// Recorded starts of processes that are too old: the scenario's index, the lane's name, and its time.
pub(super) fn old_starts(opened: &Opened, plan: &Plan, ages: Ages) -> Vec<(usize, String, Timestamp)> {
    let lanes = start_lanes(plan, &opened.cassettes).into_iter();
    let recorded = lanes.filter_map(|lane| {
        let at = lane.recording(&opened.loaded.root).ok()??.header.recorded_at;
        Some((lane.scenario, lane.name, at))
    });
    recorded.filter(|(.., at)| ages.too_old(*at)).collect()
}

/// Notes on stale and unused recordings, by scenario.
pub(crate) fn notes(opened: &Opened, plan: &Plan, ages: Ages) -> Vec<Diagnostic> {
    let stale = stale(opened, plan, ages);
    let starts = old_starts(opened, plan, ages);
    let mut notes = Vec::new();
    for (number, scenario) in plan.scenarios.iter().enumerate() {
        let lanes: Vec<(&PlannedTrial, &Stale)> = stale
            .iter()
            .map(|(index, stale)| (&plan.trials[*index], stale))
            .filter(|(trial, _)| trial.scenario == number)
            .collect();
        let refresh = format!("record them again: ragcheck cassette refresh --stale {}", scenario.file);
        let mut old: Vec<(Timestamp, &str)> =
            lanes.iter().filter_map(|(trial, stale)| Some((stale.old?, trial.id.as_str()))).collect();
        old.extend(starts.iter().filter(|(of, ..)| *of == number).map(|(_, lane, at)| (*at, lane.as_str())));
        old.sort_unstable();
        if let Some((at, trial)) = old.first() {
            let (are, limit) = (are(old.len()), ages.limit());
            let message = format!("{are} older than {limit}, the oldest that of {trial}, of {}", day(*at));
            notes.push(Diagnostic::note("old-recording", &scenario.file, message).with_help(refresh.clone()));
        }
        let mut drifted: BTreeMap<Vec<RequestPart>, (usize, usize, &str)> = BTreeMap::new();
        for (trial, stale) in &lanes {
            let parts: Vec<RequestPart> = stale.drifted.iter().map(|(part, _)| *part).collect();
            if parts.is_empty() {
                continue;
            }
            let exchanges: BTreeSet<u32> = stale.drifted.iter().flat_map(|(_, ordinals)| ordinals.clone()).collect();
            let group = drifted.entry(parts).or_insert((0, 0, trial.id.as_str()));
            group.0 += 1;
            group.1 += exchanges.len();
        }
        for (parts, (lanes, exchanges, first)) in drifted {
            let parts: Vec<&str> = parts.into_iter().map(RequestPart::as_str).collect();
            let message = if parts == [RequestPart::Recording.as_str()] {
                format!("{} incomplete or edited and would miss, that of {first} first", are(lanes))
            } else {
                let were = were(lanes);
                let (lanes, exchanges) = (plural(lanes, "lane"), plural(exchanges, "exchange"));
                format!("{} changed since {lanes} ({exchanges}) {were} recorded, {first} first", parts.join(", "))
            };
            notes.push(
                Diagnostic::note("drifted-recording", &scenario.file, message)
                    .with_help(format!("see what differs: ragcheck run {}", scenario.file))
                    .with_help(refresh.clone()),
            );
        }
        let searched: Vec<(&String, &str)> =
            lanes.iter().filter_map(|(trial, stale)| Some((stale.searched.as_ref()?, trial.id.as_str()))).collect();
        if let Some((pinned, first)) = searched.first() {
            let (lanes, were) = (plural(searched.len(), "lane"), were(searched.len()));
            let message = format!("another base was searched when {lanes} {were} recorded, {first} first: {pinned}");
            notes.push(Diagnostic::note("searched-another", &scenario.file, message).with_help(refresh.clone()));
        }
        notes.extend(unused(opened, plan, number));
    }
    notes
}

/// Note on recordings of a scenario that no trial uses.
fn unused(opened: &Opened, plan: &Plan, scenario: usize) -> Option<Diagnostic> {
    const SHOWN: usize = 3;
    let planned = &plan.scenarios[scenario];
    let trials = plan.trials.iter().filter(|trial| trial.scenario == scenario);
    let starts = start_lanes(plan, &opened.cassettes).into_iter().filter(|lane| lane.scenario == scenario);
    let wanted: BTreeSet<_> =
        trials.map(|trial| recorded_at(opened.trial(plan, trial))).chain(starts.map(|lane| lane.path)).collect();
    let folder = opened.cassettes.join(&planned.name);
    let below =
        |folder: &Path| -> Vec<_> { files::entries(folder).into_iter().flatten().map(|entry| entry.path).collect() };
    let files = below(&folder).into_iter().flat_map(|entry| if entry.is_dir() { below(&entry) } else { vec![entry] });
    let mut left: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|end| end == "yaml") && !wanted.contains(file))
        .filter_map(|file| Some(file.strip_prefix(&folder).ok()?.with_extension("").display().to_string()))
        .collect();
    left.sort_unstable();
    let verb = if left.len() == 1 { "belongs" } else { "belong" };
    let what = plural(left.len(), "recording");
    let message = format!("{what} of `{}` {verb} to no trial: {}", planned.name, listed(&left, SHOWN));
    let folder = folder.strip_prefix(&opened.loaded.root).unwrap_or(&folder);
    let files: Vec<_> = left.iter().map(|name| folder.join(format!("{name}.yaml")).display().to_string()).collect();
    let help = format!("a renamed or removed case, variant or repetition left them: delete {}", listed(&files, SHOWN));
    (!left.is_empty()).then(|| Diagnostic::note("unused-recording", &planned.file, message).with_help(help))
}

/// Path of a trial's recording; `cassettes` overrides the project's folder.
pub(crate) fn lane_file(loaded: &Loaded, cassettes: Option<&Path>, trial: &str) -> PathBuf {
    folder_of(loaded, cassettes).join(format!("{trial}.yaml"))
}

fn folder_of(loaded: &Loaded, cassettes: Option<&Path>) -> PathBuf {
    loaded.root.join(cassettes.unwrap_or(Path::new(&loaded.project.cassettes)))
}

/// One error for each unreadable recording (truncated or not a cassette), and one for each cause of incomplete requests
/// in a scenario's recordings: such recordings replay, but cannot explain a miss. One note for the recordings of a scenario
/// that were edited by hand.
pub(crate) fn broken(loaded: &Loaded, cassettes: Option<&Path>) -> Vec<Diagnostic> {
    let Ok(plan) = plan::build(loaded, &Selection::default(), 0) else { return Vec::new() };
    let found = plan.trials.par_iter().filter_map(|trial| {
        let file = lane_file(loaded, cassettes, &trial.id);
        let shown = file.strip_prefix(&loaded.root).unwrap_or(&file).to_owned();
        let scenario = &plan.scenarios[trial.scenario];
        let blobs = cassette::blobs_dir(&folder_of(loaded, cassettes), &scenario.name);
        match Cassette::load_as(&file, &shown, &blobs) {
            Ok(cassette) => {
                let problem = cassette.requests().into_iter().find_map(|request| request.problem);
                (cassette.edited || problem.is_some()).then_some(Either::Right((trial, problem, cassette.edited)))
            }
            Err(CassetteError::Missing { .. }) => None,
            Err(error) => {
                let help = format!("fix it, or record it again: {}", record(scenario, &trial.id));
                let error = Diagnostic::error("broken-recording", &scenario.file, error.to_string());
                Some(Either::Left(error.with_help(help)))
            }
        }
    });
    let (mut errors, read): (Vec<Diagnostic>, Vec<_>) = found.partition_map(|one| one);
    let mut edited: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (trial, ..) in read.iter().filter(|(.., edited)| *edited) {
        edited.entry(trial.scenario).or_default().push(&trial.id);
    }
    let starts = start_lanes(&plan, &folder_of(loaded, cassettes));
    let starts: Vec<_> = starts.iter().map(|lane| (lane, lane.recording(&loaded.root))).collect();
    for (lane, read) in &starts {
        if read.as_ref().is_ok_and(|cassette| cassette.as_ref().is_some_and(|cassette| cassette.edited)) {
            edited.entry(lane.scenario).or_default().push(&lane.name);
        }
    }
    errors.extend(edited.into_iter().map(|(scenario, lanes)| {
        let (recordings, were) = (plural(lanes.len(), "recording"), were(lanes.len()));
        let message = format!("{recordings} {were} edited by hand, that of {} first", lanes[0]);
        Diagnostic::note("edited-recording", &plan.scenarios[scenario].file, message)
            .with_help("a verdict on it says so; what the service really answers only a new recording shows")
    }));
    errors.extend(starts.into_iter().filter_map(|(lane, read)| {
        let file = &plan.scenarios[lane.scenario].file;
        let help = format!("fix it, or record it again: ragcheck run {file} --mode record");
        let problem = match read {
            Ok(cassette) => {
                let problem = cassette?.requests().into_iter().find_map(|request| request.problem)?;
                return Some(
                    Diagnostic::error("incomplete-request", file, format!("a request of {}: {problem}", lane.name))
                        .with_help(help),
                );
            }
            Err(problem) => problem.to_string(),
        };
        Some(Diagnostic::error("broken-recording", file, problem).with_help(help))
    }));
    let mut incomplete: BTreeMap<(usize, String), Vec<&str>> = BTreeMap::new();
    for (trial, problem) in read.into_iter().filter_map(|(trial, problem, _)| Some((trial, problem?))) {
        incomplete.entry((trial.scenario, problem)).or_default().push(&trial.id);
    }
    errors.extend(incomplete.into_iter().map(|((scenario, problem), lanes)| {
        let scenario = &plan.scenarios[scenario];
        let which = match lanes.as_slice() {
            [one] => format!("a request of {one}"),
            lanes => format!("requests of {} lanes, {} first", lanes.len(), lanes[0]),
        };
        let blobs = cassette::blobs_dir(&folder_of(loaded, cassettes), &scenario.name);
        let blobs = blobs.strip_prefix(&loaded.root).unwrap_or(&blobs).display();
        let file = &scenario.file;
        let agent = agent(scenario);
        let help = format!(
            "take it from version control ({blobs}), or record again: ragcheck run {file} --mode record{agent}"
        );
        Diagnostic::error("incomplete-request", &scenario.file, format!("{which}: {problem}"))
            .with_help("it replays, but a miss could not be explained")
            .with_help(help)
    }));
    errors
}

/// One note for each case with missing recordings, with the command that records them; a single note if nothing is
/// recorded yet.
pub(crate) fn unrecorded(loaded: &Loaded, cassettes: Option<&Path>) -> Vec<Diagnostic> {
    let Ok(plan) = plan::build(loaded, &Selection::default(), 0) else { return Vec::new() };
    let mut missing: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for trial in &plan.trials {
        let counts = missing.entry((trial.scenario, trial.case)).or_default();
        counts.0 += usize::from(!lane_file(loaded, cassettes, &trial.id).is_file());
        counts.1 += 1;
    }
    if missing.len() > 1 && missing.values().all(|(missing, all)| missing == all) {
        let (cases, lanes) = (plural(missing.len(), "case"), plural(plan.trials.number(), "lane"));
        let agents: BTreeSet<String> = plan.scenarios.iter().map(agent).collect();
        let message = format!("nothing is recorded yet: {cases}, {lanes}");
        let file = if let [one] = plan.scenarios.as_slice() { format!(" {}", one.file) } else { String::new() };
        let command = format!("ragcheck run{file} --mode record{}", agents.into_iter().collect::<String>());
        return vec![Diagnostic::note("no-recordings", "", message).with_help(format!("record them: {command}"))];
    }
    let notes = missing.into_iter().filter(|(_, (missing, _))| *missing > 0);
    notes
        .map(|((scenario, case), (missing, all))| {
            let scenario = &plan.scenarios[scenario];
            let case = &scenario.cases[case].case.case;
            let message = format!("{missing} of {all} lanes of `{case}` have no recording");
            let command = record(scenario, &format!("{}/{case}", scenario.name));
            Diagnostic::note("no-recording", &scenario.file, message).with_help(format!("record them: {command}"))
        })
        .collect()
}

/// Command that records a case or a trial, with the `--agent` option if it needs one.
fn record(scenario: &PlannedScenario, only: &str) -> String {
    format!("ragcheck run {} --mode record --only {only}{}", scenario.file, agent(scenario))
}

/// `--agent` option for a scenario's agent, after a space; empty without an agent.
fn agent(scenario: &PlannedScenario) -> String {
    let agent = scenario.agent.as_ref().and_then(|agent| agent.target.server());
    agent.map_or_else(String::new, |server| format!(" --agent {server}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_recording_is_too_old_only_beyond_the_limit_and_never_from_the_future() {
        let ages = Ages { now: at("2026-04-01T00:00:00Z"), limit: Some(Duration::from_hours(48)) };
        assert!(!ages.too_old(at("2026-03-30T00:00:00Z")) && ages.too_old(at("2026-03-29T23:59:59Z")));
        assert!(!ages.too_old(at("2027-01-01T00:00:00Z")));
        assert!(!Ages { limit: None, ..ages }.too_old(at("1999-01-01T00:00:00Z")));
        let recorded = [("b", "2026-01-02T03:04:05Z"), ("a", "2026-01-02T03:04:05Z"), ("c", "2026-03-31T00:00:00Z")]
            .map(|(trial, time)| (trial.to_owned(), at(time)));
        let remark = ages.remark(&recorded).expect("two are old");
        assert!(remark.contains("2 recordings are older than 2 days, the oldest that of a, of 2026-01-02"), "{remark}");
        assert_eq!(ages.remark(&recorded[2..]), None);
    }
}
