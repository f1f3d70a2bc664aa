//! Failures of a run compared with the base of a pull request: new, already failing on the base, or undecided.

use super::{View, figures};
use crate::compare::{Comparison, Finding, Flip};
use crate::gate::{CriterionResult, Verdict};
use crate::plan::{Plan, PlannedScenario, Typed};
use crate::trace::Mode;
use crate::trace::text::shell_word;
use std::collections::{BTreeMap, BTreeSet};

/// State of a failure relative to the base, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It passed on the base.
    Regressed,
    /// The base has no result for it.
    Fails,
    /// It passed more often on the base. If not every repetition passed before and none passes now, chance can explain
    /// it.
    LessOften,
    /// It has no recording that fits.
    NotRecorded,
    /// It could not be run.
    Outage,
    /// A required criterion is INCONCLUSIVE.
    Undecided,
    /// It failed on the base too.
    FailsOnBaseToo,
}

impl State {
    /// Name in reports.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Regressed => "REGRESSED",
            Self::Fails => "FAILS",
            Self::LessOften => "PASSES LESS OFTEN",
            Self::NotRecorded => "NOT RECORDED",
            Self::Outage => "OUTAGE",
            Self::Undecided => "UNDECIDED",
            Self::FailsOnBaseToo => "FAILS ON BASE TOO",
        }
    }
}

impl State {
    /// Whether trials could not be run.
    fn is_untried(self) -> bool {
        matches!(self, Self::NotRecorded | Self::Outage)
    }
}

/// Whether trials with an ERROR of this kind lack a recording that fits, so that recording them again mends them.
pub(super) fn is_unrecorded(kind: &str) -> bool {
    ["lane missing", "cassette miss"].contains(&kind)
}

/// A failing case or criterion, or a cause of ERROR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failing {
    pub(super) state: State,
    /// `scenario/case`, the criterion, or the kind of error.
    pub(super) name: String,
    /// Number of its trials that failed or could not be run; 0 for a criterion.
    pub(super) trials: u64,
    pub(super) why: String,
    /// The first of these trials.
    pub(super) trial: Option<String>,
    /// File of the scenario, and line of the case in it.
    pub(super) place: Option<(String, u32)>,
}

/// All failures, most urgent first, by name within a state.
pub(super) fn failing(view: &View<'_>) -> Vec<Failing> {
    let places = places(view);
    let mut found = cases(view, &places);
    let evaluation = view.evaluation;
    found.extend(evaluation.errors.iter().map(|group| {
        let first = group.trials.first().cloned();
        let case = first.as_deref().and_then(|trial| trial.rsplit_once('/')).map(|(case, _)| case.to_owned());
        Failing {
            state: if is_unrecorded(&group.kind) { State::NotRecorded } else { State::Outage },
            name: group.kind.clone(),
            trials: group.trials.len() as u64,
            why: std::iter::once(&group.message).chain(&group.detail).cloned().collect::<Vec<_>>().join("\n"),
            place: case.and_then(|case| places.get(&case).cloned()),
            trial: first,
        }
    }));
    found.extend(criteria(view, found.is_empty()));
    found.sort_by(|one, other| one.state.cmp(&other.state).then_with(|| one.name.cmp(&other.name)));
    found
}

/// Cases with a failed trial.
fn cases(view: &View<'_>, places: &BTreeMap<String, (String, u32)>) -> Vec<Failing> {
    let mut cases: BTreeMap<String, Failing> = BTreeMap::new();
    for trial in view.evaluation.trials.iter().filter(|trial| trial.verdict == Verdict::Fail) {
        let name = format!("{}/{}", trial.scenario, trial.case);
        let row = cases.entry(name).or_insert_with_key(|name| {
            let why = match (trial.checks.iter().find(|check| !check.passed), trial.departures.first()) {
                (Some(check), _) if check.seen.is_empty() => check.what.clone(),
                (Some(check), _) => format!("{}, seen: {}", check.what, check.seen),
                (None, Some(departure)) => departure.clone(),
                (None, None) => "no check failed".into(),
            };
            Failing {
                state: view.comparison.map_or(State::Fails, |found| state(found, name)),
                name: name.clone(),
                trials: 0,
                why: view
                    .comparison
                    .and_then(|found| shares(found, name))
                    .map_or(why.clone(), |both| format!("{both}; {why}")),
                trial: Some(trial.id.clone().into_owned()),
                place: places.get(name).cloned(),
            }
        });
        row.trials += 1;
    }
    cases.into_values().collect()
}

/// State of a case that fails now.
fn state(found: &Comparison, case: &str) -> State {
    let of = |flips: &[Flip]| flips.iter().any(|flip| flip.worse && flip.case == case);
    let failed_before = found.paired.iter().any(|pair| pair.case == case && pair.a.passed < pair.a.trials);
    match (of(&found.flips), of(&found.changes), failed_before) {
        (true, ..) if found.too_few_repetitions().is_none() => State::Regressed,
        (true, ..) | (_, true, _) => State::LessOften,
        (false, false, true) => State::FailsOnBaseToo,
        // The base did not run the case, or not this repetition.
        (false, false, false) => State::Fails,
    }
}

/// How often a case that passes less often passed on both sides.
fn shares(found: &Comparison, case: &str) -> Option<String> {
    let mut changed = found.flips.iter().chain(&found.changes);
    let flip = changed.find(|flip| flip.worse && flip.case == case)?;
    Some(format!("{}/{} passed on the base, {}/{} now", flip.a.passed, flip.a.trials, flip.b.passed, flip.b.trials))
}

/// Required criteria that are undecided or worse than on the base; also failing ones, if nothing else explains why the
/// run fails.
fn criteria(view: &View<'_>, alone: bool) -> Vec<Failing> {
    let blank = |state, name: &str, why: &str| Failing {
        state,
        name: name.to_owned(),
        trials: 0,
        why: why.to_owned(),
        trial: None,
        place: None,
    };
    let worse = view.comparison.into_iter().flat_map(|found| &found.rows);
    let worse = worse.filter(|row| row.gated && row.finding == Finding::Worse);
    let mut found: Vec<Failing> = worse.map(|row| blank(State::Regressed, &row.key, &row.sentence)).collect();
    for row in view.evaluation.criteria.iter().chain(&view.evaluation.gates).filter(|row| row.required) {
        let state = match row.verdict {
            Verdict::Inconclusive => State::Undecided,
            Verdict::Fail | Verdict::NotMeasured if alone => State::Fails,
            _ => continue,
        };
        let name = row.key();
        if !found.iter().any(|known| known.name == name) {
            let first = row.violations.first();
            let trial = first.map(|violation| violation.trial.clone()).filter(|_| state == State::Fails);
            found.push(Failing { trial, ..blank(state, &name, &measured(row)) });
        }
    }
    found
}

/// Verdict of a criterion with its figure.
fn measured(row: &CriterionResult) -> String {
    let (seen, bound) = (figures::observed(row), figures::bound(row));
    format!(
        "{}: observed {seen}, bound {bound}, target {}, n {}",
        figures::verdict(row),
        row.target,
        figures::units(row)
    )
}

/// File and line of each `scenario/case`.
fn places(view: &View<'_>) -> BTreeMap<String, (String, u32)> {
    let scenarios = view.plan.scenarios.iter();
    let cases = scenarios.flat_map(|scenario| scenario.cases.iter().map(move |case| (scenario, case)));
    let place = cases.map(|(scenario, one)| {
        let file = one.table.as_ref().unwrap_or(&scenario.file);
        (format!("{}/{}", scenario.name, one.case.case), (file.clone(), one.line))
    });
    place.collect()
}

/// Command that reproduces the run's exit code; `None` if there is no such command: for live runs, imports, outages,
/// and runs decided by a comparison.
pub(super) fn reproduce(view: &View<'_>, failing: &[Failing]) -> Option<String> {
    let plan = view.plan;
    let code = view.exit_code();
    if plan.mode.is_some_and(|mode| mode != Mode::Replay) || code != view.evaluation.exit_code {
        return None;
    }
    let of = |state: &dyn Fn(&Failing) -> bool| {
        failing.iter().filter(|one| state(one)).find_map(|one| of_case(plan, one.trial.as_deref()?))
    };
    let found = match code {
        // For a failing case, its trials are selected and decide. A criterion has no trials.
        1 => of(&|one| !one.state.is_untried() && one.trials > 0 && !one.why.contains(ANSWER_MISSING)),
        3 => return of(&|one| one.state.is_untried() && IN_REPLAY.contains(&one.name.as_str())),
        4 => None,
        _ => return None,
    };
    found.or_else(|| whole(plan))
}

/// End of a turn whose reply could not be read: FAIL among replies that could, ERROR alone.
const ANSWER_MISSING: &str = "answer_missing";

/// Kinds of ERROR that a replay reproduces.
const IN_REPLAY: [&str; 6] =
    ["lane missing", "cassette miss", "cassette broken", "tool not offered", "usage unknown", "reply not read"];

/// Command that runs the case of a trial alone, with the other options that were typed; the trial alone, if trials were
/// selected by patterns. `--exclude` is left out: alone, its patterns can match nothing, which is an error.
fn of_case(plan: &Plan, trial: &str) -> Option<String> {
    let (case, _) = trial.rsplit_once('/')?;
    let (name, _) = case.split_once('/')?;
    let scenario = plan.scenarios.iter().find(|scenario| scenario.name == name)?;
    let typed = plan.typed.as_ref().map(|typed| &typed.options).into_iter().flatten();
    let (patterns, others): (Vec<_>, Vec<_>) =
        typed.partition(|(option, _)| ["only", "exclude"].contains(&option.as_str()));
    let of_trials = patterns.iter().flat_map(|(_, values)| *values).any(|pattern| pattern.contains('/'));
    let only = [if of_trials { trial } else { case }.to_owned()];
    let others = others.into_iter().map(|(option, values)| (option.as_str(), &values[..]));
    Some(command([scenario], std::slice::from_ref(&scenario.file), others.chain([("only", &only[..])])))
}

/// Command that repeats a replay of the whole run; `None` if an older build did not store what was typed, or the trials
/// were not selected by options (`--failed`).
fn whole(plan: &Plan) -> Option<String> {
    let by_name = |typed: &Typed| ["only", "exclude", "tag"].iter().any(|option| typed.options.contains_key(*option));
    let cases = plan.part.as_ref().is_some_and(|part| part.cases);
    match &plan.typed {
        None if plan.part.is_some() => None,
        Some(typed) if cases && !by_name(typed) => None,
        None => Some(command(&plan.scenarios, &[], std::iter::empty())),
        Some(typed) => {
            let options = typed.options.iter().map(|(option, values)| (option.as_str(), &values[..]));
            Some(command(&plan.scenarios, &typed.paths, options))
        }
    }
}

/// `ragcheck run` of `paths` with `options`, and with the servers of the external agents of `scenarios`.
fn command<'a>(
    scenarios: impl IntoIterator<Item = &'a PlannedScenario>,
    paths: &[String],
    options: impl Iterator<Item = (&'a str, &'a [String])>,
) -> String {
    let agents = scenarios.into_iter().filter_map(|scenario| scenario.agent.as_ref()?.target.server());
    let agents: BTreeSet<&str> = agents.collect();
    let mut words = vec!["ragcheck run".to_owned()];
    words.extend(paths.iter().map(|path| shell_word(path)));
    for (option, values) in options {
        words.extend(values.iter().map(|value| format!("--{option} {}", shell_word(value))));
    }
    words.extend(agents.iter().map(|server| format!("--agent {server}")));
    words.join(" ")
}

/// Command that shows the first failed trial.
pub(super) fn see(failing: &[Failing]) -> Option<String> {
    let trial = failing.iter().find_map(|one| one.trial.as_deref())?;
    Some(format!("ragcheck show {}", shell_word(trial)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, sample::summary};
    use crate::report::sample;

    #[test]
    fn a_case_regressed_failed_before_or_is_not_on_the_base() {
        let base = summary("base", &[("good", 1, 1), ("bad", 0, 1)]);
        let now = summary("now", &[("good", 0, 1), ("bad", 0, 1), ("new", 0, 1)]);
        let found = compare(&base, &now, 0.02).expect("comparable");
        let states = ["s/good", "s/bad", "s/new"].map(|case| state(&found, case));
        assert_eq!(states, [State::Regressed, State::FailsOnBaseToo, State::Fails]);
    }

    #[test]
    fn a_case_that_still_passes_at_times_and_a_single_live_trial_regressed_in_nothing() {
        let (base, now) = (summary("base", &[("some", 3, 3)]), summary("now", &[("some", 2, 3)]));
        let found = compare(&base, &now, 0.02).expect("comparable");
        assert_eq!(state(&found, "s/some"), State::LessOften);
        assert_eq!(shares(&found, "s/some").as_deref(), Some("3/3 passed on the base, 2/3 now"));
        let live = |label: &str, passed: u64, trials: u64| {
            let mut run = summary(label, &[("one", passed, trials)]);
            run.settings[0].modes = ["LIVE".to_owned()].into();
            run
        };
        for (trials, expected) in [(1, State::LessOften), (2, State::LessOften), (3, State::Regressed)] {
            let found = compare(&live("base", trials, trials), &live("now", 0, trials), 0.02).expect("comparable");
            assert_eq!(state(&found, "s/one"), expected, "{trials}");
        }
    }

    #[test]
    fn failing_cases_have_their_place_and_come_before_trials_that_could_not_be_run() {
        let run = sample::run(2);
        let found = failing(&run.view());
        let states: Vec<State> = found.iter().map(|one| one.state).collect();
        assert!(
            states.is_sorted() && states.contains(&State::Fails) && states.iter().any(|one| one.is_untried()),
            "{states:?}"
        );
        let case = found.iter().find(|one| one.name == "heat-pumps/skips-the-manual").expect("a case");
        assert_eq!(case.trials, 2);
        assert!(case.place.as_ref().is_some_and(|(file, line)| !file.is_empty() && *line > 0), "{case:?}");
        let show = see(&found).expect("a trial");
        assert!(show.starts_with("ragcheck show "), "{show}");
        let mut view = run.view();
        let mut evaluation = run.evaluation.clone();
        evaluation.exit_code = 1;
        view.evaluation = &evaluation;
        let again = reproduce(&view, &found).expect("a case");
        assert!(again.starts_with("ragcheck run ") && again.contains(".yaml --only "), "{again}");
        let decided = crate::report::DecidedExit { exit_code: 0, why: String::new() };
        view.decided = Some(&decided);
        assert_eq!(reproduce(&view, &found), None, "no command is known to end with 0");
    }
}
