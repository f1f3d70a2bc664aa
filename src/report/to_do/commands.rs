//! Commands that record, resume, show or reproduce what is on the list. Each does what it is printed for: `tests/suite/to_do.rs` runs them.

use super::{State, ToDo, figures};
use crate::gate::{ErrorGroup, Verdict, calls_held};
use crate::plan::{self, Plan, PlannedScenario, Typed};
use crate::report::View;
use crate::settings::price::dollars;
use crate::trace::text::shell_word;
use crate::trace::{Mode, TrialErrorKind as Kind};
use std::collections::BTreeSet;

/// A command, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct Help {
    pub(in crate::report) purpose: &'static str,
    pub(in crate::report) command: String,
    /// Calls and cost; empty for a command that asks no service.
    pub(in crate::report) cost: String,
}

const RESUME: &str = "resume";

impl Help {
    fn free(purpose: &'static str, command: String) -> Self {
        Self { purpose, command, cost: String::new() }
    }

    /// Whether it runs again what was down.
    pub(in crate::report) fn is_resume(&self) -> bool {
        self.purpose == RESUME
    }

    /// Whether it helps several items of the list: it records or resumes.
    pub(in crate::report) fn is_of_several(&self) -> bool {
        !["see it", "run it again"].contains(&self.purpose)
    }
}

/// The command in a line of an error that says how to record a lane: `re-record: ragcheck run …     (about 3 calls)`.
pub(super) fn told_in(line: &str) -> Option<&str> {
    let begins =
        ["re-record: ", "record it: ", "record all ", "fix or re-record it: ", "fix or delete it, then re-record it: "];
    let rest = begins.iter().find_map(|begin| line.strip_prefix(begin))?;
    let command = rest.find("ragcheck ").map_or("", |at| &rest[at..]);
    Some(command.split("     (").next().unwrap_or_default())
}

/// Commands for trials that could not be run.
pub(super) fn of_group(view: &View<'_>, group: &ErrorGroup) -> Vec<Help> {
    let state = State::of_error(&group.kind);
    if is_recorded_again(&group.kind) {
        return record(view, group);
    }
    let slow = group.kind == Kind::NoUsableReply.label();
    if (state == State::Down || slow) && view.plan.mode.is_some() {
        let mode = if view.plan.mode == Some(Mode::Live) { "live" } else { "record" };
        let again = match exec(view.plan) {
            Some(exec) => plan::in_mode(exec, mode),
            None => again(view.plan, &[("mode", mode)], " --failed"),
        };
        let failed = view.evaluation.trials.iter().filter(|trial| trial.verdict != Verdict::Pass);
        let failed: Vec<String> = failed.map(|trial| trial.id.into_owned()).collect();
        return vec![Help { purpose: RESUME, command: again, cost: takes(view, &[group], failed.iter()) }];
    }
    Vec::new()
}

/// The command that records what misses and nothing else, and its dry run. It needs no earlier run.
fn record(view: &View<'_>, group: &ErrorGroup) -> Vec<Help> {
    let told = group.detail.iter().find_map(|line| told_in(line));
    // `ragcheck exec` records with its own test runner, and a run until decided has passes that only it plans.
    if view.plan.stopping.is_some() || told.is_some_and(|told| !told.starts_with("ragcheck run ")) {
        let help = |told: &str| {
            let cost = takes(view, &[group], group.trials.iter());
            Help { purpose: "record", command: told.to_owned(), cost }
        };
        return told.map(help).into_iter().collect();
    }
    let place = |trial: &String| view.plan.trials.place_of(trial);
    let concerned: BTreeSet<usize> =
        group.trials.iter().filter_map(|trial| Some(view.plan.trials.at(place(trial)?)?.scenario)).collect();
    // The command records all that misses in these scenarios, for whichever cause.
    let of_these =
        |trial: &&String| concerned.iter().any(|place| in_scenario(trial, &view.plan.scenarios[*place].name));
    let missing = view.evaluation.errors.iter().filter(|group| is_recorded_again(&group.kind));
    let missing: Vec<_> = missing.filter(|group| group.trials.iter().any(|trial| of_these(&trial))).collect();
    let cost = takes(view, &missing, missing.iter().flat_map(|group| &group.trials).filter(of_these));
    let scenarios: Vec<&PlannedScenario> = concerned.iter().map(|place| &view.plan.scenarios[*place]).collect();
    let files: Vec<String> = scenarios.iter().map(|scenario| scenario.file.clone()).collect();
    let refresh = |last: &str| {
        let options = typed(view.plan);
        command(&format!("ragcheck cassette refresh --missed {last}"), scenarios.iter().copied(), &files, options)
    };
    // Whoever reads from the top sees what would be asked before anything is.
    vec![Help::free("dry run", refresh("--dry-run")), Help { purpose: "record", command: refresh("--yes"), cost }]
}

/// Whether trials with an ERROR of this kind are recorded again.
fn is_recorded_again(kind: &str) -> bool {
    State::of_error(kind) == State::NotRecorded || kind == Kind::CassetteBroken.label()
}

/// Whether a trial is one of the scenario with this name.
fn in_scenario(trial: &str, name: &str) -> bool {
    trial.split('/').next() == Some(name)
}

/// Number of calls in the recordings that a group's trials missed, if a group of one case by that of the first.
fn recorded_calls(group: &ErrorGroup) -> Option<u64> {
    let (line, calls) = group.detail.iter().find_map(|line| Some((line, calls_held(line)?)))?;
    Some(if line.starts_with("record all ") { calls } else { calls * group.trials.len() as u64 })
}

/// Calls and cost of running trials again: by the recordings that `missed` if each says how many calls it holds, else by the
/// means of this run's trials of the same scenarios; without any, by the recordings that say it.
fn takes<'t>(view: &View<'_>, missed: &[&ErrorGroup], again: impl Iterator<Item = &'t String>) -> String {
    let (mut trials, mut concerned) = (0_u64, BTreeSet::new());
    for trial in again {
        trials += 1;
        concerned.extend(trial.split('/').next());
    }
    let judged =
        || view.evaluation.trials.iter().filter(|trial| trial.verdict != Verdict::Error && trial.model_calls > 0);
    let alike = judged().any(|trial| concerned.contains(trial.scenario));
    let (mut n, mut calls, mut priced, mut cost) = (0_u64, 0_u64, 0_u64, 0.0);
    for trial in judged().filter(|trial| !alike || concerned.contains(trial.scenario)) {
        (n, calls) = (n + 1, calls + u64::from(trial.model_calls));
        if let Some(dollars) = trial.cost {
            (priced, cost) = (priced + 1, cost + dollars);
        }
    }
    // Each recording that misses says how many calls it holds; where all of them do, no mean of other trials is closer.
    let known: Vec<(u64, u64)> =
        missed.iter().filter_map(|group| Some((recorded_calls(group)?, group.trials.len() as u64))).collect();
    let (held, of) = known.iter().fold((0, 0), |(held, of), (calls, trials)| (held + calls, of + trials));
    let recorded = (of > 0).then(|| (held * trials).div_ceil(of));
    let mean = (n > 0 && (recorded.is_none() || known.len() < missed.len())).then(|| (calls * trials).div_ceil(n));
    let of = figures::counted(trials, "trial");
    let calls = match (mean, recorded) {
        // What the number comes from.
        (Some(about), _) if trials > 1 => {
            let each = format!("{:.1}", calls as f64 / n as f64);
            let (each, by) = (each.trim_end_matches(".0"), if alike { "this scenario" } else { "this run" });
            format!("about {} for {of} ({each} a trial in {by})", figures::counted(about, "model call"))
        }
        (Some(about), _) => format!("about {} for {of}", figures::counted(about, "model call")),
        (None, Some(about)) => {
            format!("about {} for {of}, by the recordings that miss", figures::counted(about, "call"))
        }
        (None, None) => {
            format!("number of model calls for {of} unknown: no trial of this run and no recording tells it")
        }
    };
    let cost = match priced {
        _ if view.plan.prices.is_empty() => "cost unknown: ragcheck.yaml declares no prices".to_owned(),
        0 => "cost unknown: no trial has a price".to_owned(),
        n => format!("about {}", dollars(cost / n as f64 * trials as f64)),
    };
    format!("{calls}; {cost}")
}

/// Commands for a failed case or criterion.
pub(super) fn of(view: &View<'_>, one: &ToDo) -> Vec<Help> {
    if one.state.is_open() {
        return Vec::new();
    }
    // The page of a trial without traffic shows nothing more.
    let seen = one.trial.as_deref().filter(|_| one.state != State::NotRecorded);
    let see = seen.map(|trial| Help::free("see it", show(trial)));
    let replayed = view.plan.mode.is_none_or(|mode| mode == Mode::Replay);
    let case = one.trial.as_deref().filter(|_| replayed && one.trials > 0 && !one.state.is_untried());
    let again = case.and_then(|trial| of_case(view.plan, trial)).map(|command| Help::free("run it again", command));
    [see, again].into_iter().flatten().collect()
}

/// Command that shows a trial.
fn show(trial: &str) -> String {
    format!("ragcheck show {}", shell_word(trial))
}

/// Options as typed, without those that select one run.
fn typed(plan: &Plan) -> impl Iterator<Item = (&str, &[String])> {
    let options = plan.typed.as_ref().map(|typed| &typed.options).into_iter().flatten();
    options.map(|(option, values)| (option.as_str(), &values[..]))
}

/// The command of `ragcheck exec`, if it made the run.
fn exec(plan: &Plan) -> Option<&str> {
    plan.typed.as_ref()?.exec.as_deref()
}

/// `ragcheck run` as typed, with `more` options and the words `last`.
fn again(plan: &Plan, more: &[(&str, &str)], last: &str) -> String {
    let paths = plan.typed.as_ref().map_or(&[][..], |typed| &typed.paths);
    let options: Vec<(&str, Vec<String>)> =
        more.iter().map(|(option, value)| (*option, vec![(*value).to_owned()])).collect();
    let options = options.iter().map(|(option, values)| (*option, &values[..]));
    command("ragcheck run", &plan.scenarios, paths, typed(plan).chain(options)) + last
}

/// Command that reproduces the run's exit code; `None` if there is no such command: for live runs, imports, outages,
/// and runs decided by a comparison.
pub(in crate::report) fn reproduce(view: &View<'_>, found: &[ToDo]) -> Option<String> {
    let plan = view.plan;
    let code = view.exit_code();
    if plan.mode.is_some_and(|mode| mode != Mode::Replay) || code != view.evaluation.exit_code {
        return None;
    }
    let of = |state: &dyn Fn(&ToDo) -> bool| {
        found.iter().filter(|one| state(one)).find_map(|one| of_case(plan, one.trial.as_deref()?))
    };
    let case = match code {
        // For a failing case, its trials are selected and decide. A criterion has no trials.
        1 => of(&|one| !one.state.is_untried() && one.trials > 0 && !one.why.contains(ANSWER_MISSING)),
        3 => return of(&|one| one.state.is_untried() && IN_REPLAY.contains(&one.name.as_str())),
        4 => None,
        _ => return None,
    };
    case.or_else(|| whole(plan))
}

/// End of a turn whose reply could not be read: FAIL among replies that could, ERROR alone.
const ANSWER_MISSING: &str = "answer_missing";

/// Kinds of ERROR that a replay reproduces.
const IN_REPLAY: [&str; 6] =
    ["lane missing", "cassette miss", "cassette broken", "tool not offered", "usage unknown", "reply not read"];

/// Command that runs the case of a trial alone, with the other options that were typed; the trial alone, if trials were
/// selected by patterns. `--exclude` is left out: alone, its patterns can match nothing, which is an error.
fn of_case(plan: &Plan, trial: &str) -> Option<String> {
    if let Some(exec) = exec(plan) {
        return Some(exec.to_owned());
    }
    let (case, _) = trial.rsplit_once('/')?;
    let (name, _) = case.split_once('/')?;
    let scenario = plan.scenarios.iter().find(|scenario| scenario.name == name)?;
    let typed = plan.typed.as_ref().map(|typed| &typed.options).into_iter().flatten();
    let (patterns, others): (Vec<_>, Vec<_>) =
        typed.partition(|(option, _)| ["only", "exclude"].contains(&option.as_str()));
    let of_trials = patterns.iter().flat_map(|(_, values)| *values).any(|pattern| pattern.contains('/'));
    let only = [if of_trials { trial } else { case }.to_owned()];
    let others = others.into_iter().map(|(option, values)| (option.as_str(), &values[..]));
    Some(command("ragcheck run", [scenario], std::slice::from_ref(&scenario.file), others.chain([("only", &only[..])])))
}

/// Command that repeats a replay of the whole run; `None` if an older build did not store what was typed, or the trials
/// were not selected by options (`--failed`).
fn whole(plan: &Plan) -> Option<String> {
    let by_name = |typed: &Typed| {
        ["only", "exclude", "tag", "filter-sample"].iter().any(|option| typed.options.contains_key(*option))
    };
    let cases = plan.part.as_ref().is_some_and(|part| part.cases);
    match &plan.typed {
        Some(Typed { exec: Some(exec), .. }) => Some(exec.clone()),
        None if plan.part.is_some() => None,
        Some(typed) if cases && !by_name(typed) => None,
        None => Some(command("ragcheck run", &plan.scenarios, &[], std::iter::empty())),
        Some(typed) => {
            let options = typed.options.iter().map(|(option, values)| (option.as_str(), &values[..]));
            Some(command("ragcheck run", &plan.scenarios, &typed.paths, options))
        }
    }
}

/// `head` for `paths` with `options`, and with the servers of the external agents of `scenarios`.
fn command<'a>(
    head: &str,
    scenarios: impl IntoIterator<Item = &'a PlannedScenario>,
    paths: &[String],
    options: impl Iterator<Item = (&'a str, &'a [String])>,
) -> String {
    let agents = scenarios.into_iter().filter_map(|scenario| scenario.agent.as_ref()?.target.server());
    let agents: BTreeSet<&str> = agents.collect();
    let mut words = vec![head.to_owned()];
    words.extend(paths.iter().map(|path| shell_word(path)));
    for (option, values) in options {
        words.extend(values.iter().map(|value| format!("--{option} {}", shell_word(value))));
    }
    words.extend(agents.iter().map(|server| format!("--agent {server}")));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn if_every_trial_misses_the_recordings_tell_how_many_calls_it_takes() {
        let mut run = sample::run(1);
        run.evaluation.trials = std::sync::Arc::default();
        let group = |kind: Kind, trials: &[&str], detail: &str| ErrorGroup {
            kind: kind.label().to_owned(),
            message: String::new(),
            detail: vec![detail.to_owned()],
            trials: trials.iter().map(|&trial| trial.to_owned()).collect(),
        };
        let changed = group(Kind::CassetteMiss, &["s/a/1", "s/a/2"], "re-record: ragcheck run     (about 4 calls)");
        let longer = group(Kind::CassetteMiss, &["s/b/1"], "re-record: ragcheck run     (about 9 calls)");
        let never = group(Kind::LaneMissing, &["s/c/1"], "this lane has no recording");
        let said = |groups: &[&ErrorGroup]| {
            let said = takes(&run.view(), groups, groups.iter().flat_map(|group| &group.trials));
            said.split_once("; cost").expect("a cost").0.to_owned()
        };
        let by = "by the recordings that miss";
        assert_eq!(said(&[&changed, &longer]), format!("about 17 calls for 3 trials, {by}"));
        assert_eq!(said(&[&changed, &longer, &never]), format!("about 23 calls for 4 trials, {by}"));
        let unknown = "number of model calls for 1 trial unknown: no trial of this run and no recording tells it";
        assert_eq!(said(&[&never]), unknown);
    }
}
