//! What to do about a run: one list, computed once, for the page, the terminal, the job summary and the annotations.
//!
//! In the order of what decides the exit code: trials without a recording, services that were down and other errors, failed cases,
//! failed criteria, what nothing decides, and what failed on the base of a pull request too.

mod commands;
mod lines;

pub(super) use self::commands::Help;
pub(super) use self::lines::{Line, lines, subject};
use super::{View, figures};
use crate::compare::{Comparison, Finding, Flip};
use crate::gate::{CriterionResult, ErrorGroup, TrialRow, Verdict, expectation, reason};
use crate::platform::words;
use crate::scenario::Target;
use crate::trace::TrialErrorKind as Kind;
use std::collections::{BTreeMap, BTreeSet};

pub(super) use self::commands::reproduce;

words! {
    /// State of a failure, most urgent first; with a comparison, relative to the base.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) enum State {
        /// It has no recording that fits.
        NotRecorded = "NOT RECORDED",
        /// A service did not answer.
        Down = "DOWN",
        /// It could not be run for another reason.
        Error = "ERROR",
        /// It passed on the base.
        Regressed = "REGRESSED",
        /// A case fails, and the base has no result for it.
        Fails = "FAILS",
        /// It passed more often on the base. If not every repetition passed before and none passes now, chance can explain
        /// it.
        LessOften = "PASSES LESS OFTEN",
        /// A required criterion fails, or nothing was measured for it.
        CriterionFails = "FAILS",
        /// A required criterion has no measurement.
        NotMeasured = "NOT_MEASURED",
        /// A required criterion is INCONCLUSIVE.
        Undecided = "UNDECIDED",
        FailsOnBaseToo = "FAILS ON BASE TOO",
    }
}

impl State {
    /// Rank in short lists: a failed criterion is never left out because many cases fail.
    pub(super) fn in_brief(self) -> u8 {
        match self {
            state if state.is_untried() => 0,
            Self::Regressed => 1,
            Self::CriterionFails => 2,
            Self::NotMeasured => 4,
            Self::Undecided | Self::FailsOnBaseToo => 5,
            _ => 3,
        }
    }

    /// Whether a criterion cannot be judged.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::NotMeasured | Self::Undecided)
    }

    /// Whether trials could not be run.
    pub(super) fn is_untried(self) -> bool {
        matches!(self, Self::NotRecorded | Self::Down | Self::Error)
    }

    /// State of trials with an ERROR of this kind.
    fn of_error(kind: &str) -> Self {
        let is = |kinds: &[Kind]| kinds.iter().any(|one| one.label() == kind);
        if is(&[Kind::LaneMissing, Kind::CassetteMiss, Kind::AsksLess]) {
            Self::NotRecorded
        } else if is(&[Kind::Provider, Kind::Stopped]) {
            Self::Down
        } else {
            Self::Error
        }
    }
}

/// A failing case or criterion, or a cause of ERROR, with the commands that help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToDo {
    pub(super) state: State,
    /// `scenario/case`, the criterion, or the kind of error.
    pub(super) name: String,
    /// What the criterion requires, or the cases that could not be run: `recovery/late and 2 more cases`.
    pub(super) about: String,
    /// Number of its trials that failed or could not be run; 0 for a criterion.
    pub(super) trials: u64,
    /// What is wrong, in one sentence.
    pub(super) why: String,
    /// Further lines: what differs from the recording, for example.
    pub(super) detail: Vec<String>,
    /// The first of these trials.
    pub(super) trial: Option<String>,
    /// File of the scenario, and line of the case in it.
    pub(super) place: Option<(String, u32)>,
    /// Commands that help, each with its purpose.
    pub(super) commands: Vec<Help>,
}

impl ToDo {
    fn new(state: State, name: &str, why: String) -> Self {
        let (name, about, detail, commands) = (name.to_owned(), String::new(), Vec::new(), Vec::new());
        Self { state, name, about, trials: 0, why, detail, trial: None, place: None, commands }
    }
}

/// The whole list, most urgent first.
pub(super) fn to_do(view: &View<'_>) -> Vec<ToDo> {
    let places = places(view);
    let mut found: Vec<ToDo> = view.evaluation.errors.iter().map(|group| untried(view, group, &places)).collect();
    found.extend(cases(view, &places));
    let with_cases = found.iter().any(|one| !one.state.is_untried());
    found.extend(criteria(view, with_cases));
    found.sort_by_key(|one| one.state);
    for one in &mut found {
        one.commands.extend(commands::of(view, one));
    }
    found
}

/// Whether the list has a command that runs again what was down.
pub(crate) fn resumes(view: &View<'_>) -> bool {
    to_do(view).iter().any(|one| one.commands.iter().any(Help::is_resume))
}

/// Trials that could not be run for one cause.
fn untried(view: &View<'_>, group: &ErrorGroup, places: &BTreeMap<String, (String, u32)>) -> ToDo {
    let first = group.trials.first().cloned();
    let case = first.as_deref().and_then(|trial| trial.rsplit_once('/')).map(|(case, _)| case);
    let prefix = format!("{}: ", group.kind);
    ToDo {
        state: State::of_error(&group.kind),
        name: group.kind.clone(),
        about: cases_of(group),
        trials: group.trials.len() as u64,
        why: group.message.strip_prefix(&prefix).unwrap_or(&group.message).to_owned(),
        detail: group.detail.iter().filter(|line| commands::told_in(line).is_none()).cloned().collect(),
        place: case.and_then(|case| places.get(case).cloned()),
        trial: first,
        commands: commands::of_group(view, group),
    }
}

/// The cases of a group: the first, and how many more.
fn cases_of(group: &ErrorGroup) -> String {
    let cases: BTreeSet<&str> =
        group.trials.iter().filter_map(|trial| trial.rsplit_once('/')).map(|(case, _)| case).collect();
    match (group.trials.first().and_then(|trial| trial.rsplit_once('/')), cases.len()) {
        (None, _) => String::new(),
        (Some((first, _)), 1) => first.to_owned(),
        (Some((first, _)), cases) => format!("{first} and {}", figures::counted(cases as u64 - 1, "more case")),
    }
}

/// Cases with a failed trial.
fn cases(view: &View<'_>, places: &BTreeMap<String, (String, u32)>) -> Vec<ToDo> {
    let mut cases: BTreeMap<String, ToDo> = BTreeMap::new();
    for trial in view.evaluation.trials.iter().filter(|trial| trial.verdict == Verdict::Fail) {
        let name = format!("{}/{}", trial.scenario, trial.case);
        let row = cases.entry(name).or_insert_with_key(|name| {
            let why = why(&trial);
            let both = view.comparison.and_then(|found| shares(found, name));
            let why = both.map_or(why.clone(), |both| format!("{both}; {why}"));
            let state = view.comparison.map_or(State::Fails, |found| state(found, name));
            let (trial, place) = (Some(trial.id.clone().into_owned()), places.get(name).cloned());
            ToDo { trial, place, ..ToDo::new(state, name, why) }
        });
        row.trials += 1;
    }
    cases.into_values().collect()
}

/// Why a trial fails, what was expected beside what was seen: `expected "48 to 56 ohms"; the answer says "38 to 46 ohms"`.
pub(super) fn why(trial: &TrialRow<'_>) -> String {
    let Some(check) = trial.checks.iter().find(|check| !check.passed) else {
        return trial.departures.first().cloned().unwrap_or_else(|| "no check failed".into());
    };
    let failed = trial.checks.iter().filter(|check| !check.passed).count();
    let (turn, what) = match check.what.split_once(": ") {
        Some((turn, what)) if turn.contains("turn ") => (turn, what),
        _ => ("", &*check.what),
    };
    let first = if turn.is_empty() || trial.turns <= 1 { String::new() } else { format!("{turn}: ") };
    let expected = expectation(what).unwrap_or_else(|| format!("expected {what}"));
    let seen = match check.seen.strip_prefix("the answer says: ") {
        Some(said) => format!("; the answer says \"{said}\""),
        None if check.seen.is_empty() => String::new(),
        None => format!("; {}", check.seen),
    };
    let expected = if seen.is_empty() { &*expected } else { expected.trim_end_matches(", which is not in the answer") };
    let more = if failed > 1 { format!(" (and {} more)", failed - 1) } else { String::new() };
    format!("{first}{expected}{seen}{more}")
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
    let (a, b) = (flip.a, flip.b);
    Some(format!("{}/{} passed on the base, {}/{} now{}", a.passed, a.trials, b.passed, b.trials, flip.in_both()))
}

/// Required criteria that fail, are undecided, or are worse than on the base. One that counts the cases themselves is left out
/// if failed cases are listed.
fn criteria(view: &View<'_>, with_cases: bool) -> Vec<ToDo> {
    let worse = view.comparison.into_iter().flat_map(|found| &found.rows);
    let worse = worse.filter(|row| row.gated && row.finding == Finding::Worse);
    let mut found: Vec<ToDo> = worse.map(|row| ToDo::new(State::Regressed, &row.key, row.sentence.clone())).collect();
    for row in view.evaluation.rows().filter(|row| row.required) {
        let explained = with_cases && row.metric == "case_pass_rate";
        let (state, why) = match row.verdict {
            Verdict::Inconclusive => (State::Undecided, undecided(row)),
            Verdict::Fail if !explained => (State::CriterionFails, failed(row)),
            Verdict::NotMeasured if !row.not_measured_ok => (State::NotMeasured, row.sentence.clone()),
            _ => continue,
        };
        let name = row.key();
        if !found.iter().any(|known| known.name == name) {
            let most = most_in(row).map(|(case, ..)| case);
            let of_most = || row.violations.iter().filter(|violation| Some(case_of(&violation.trial)) == most);
            let named = |note: &str| row.causes.first().is_some_and(|cause| cause.reason == reason(note));
            let first = of_most().find(|violation| named(&violation.note)).or_else(|| of_most().next());
            let trial = first.map(|violation| violation.trial.clone()).filter(|_| state == State::CriterionFails);
            found.push(ToDo { trial, about: row.about.clone(), ..ToDo::new(state, &name, why) });
        }
    }
    found
}

/// Number of units that fail a criterion.
pub(super) fn missed(row: &CriterionResult) -> u64 {
    match figures::target(row) {
        Some(target) if target.is_ceiling() => row.successes,
        _ => row.n.saturating_sub(row.successes),
    }
}

/// A failed criterion in words: `162 of 797 turns took 5 s or longer (p95 6.77 s); most in refunds/late (34)`.
fn failed(row: &CriterionResult) -> String {
    let (bad, n) = (figures::thousands(missed(row)), figures::thousands(row.n));
    let figure = format!("observed {}, target {}", figures::observed(row), figures::goal(row));
    let what = match (figures::target(row), row.causes.first()) {
        (Some(Target::AtMostTime(limit)), _) => {
            let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
            // Of several causes one at least is that there was no answer at all.
            let limit = figures::limit(limit);
            let late = if row.causes.len() > 1 {
                format!("had no answer below {limit}")
            } else {
                format!("took {limit} or longer")
            };
            format!("{bad} of {n} {} {late}", row.units)
        }
        (_, Some(cause)) if row.causes.len() == 1 => format!("{bad} of {n} {}: {}", row.units, cause.reason),
        (_, Some(cause)) => {
            let units = figures::thousands(cause.units);
            format!("{bad} of {n} {}, {units} of them: {}", row.units, cause.reason)
        }
        (_, None) => format!("{bad} of {n} {}", row.units),
    };
    let cases = match most_in(row) {
        Some((case, _, 1)) => format!("; all in {case}"),
        Some((case, 1, cases)) => format!("; in {cases} cases, one of them {case}"),
        Some((case, units, cases)) => format!("; in {cases} cases, most in {case} ({})", figures::thousands(units)),
        None => String::new(),
    };
    format!("{what} ({figure}){cases}")
}

/// The case with most violations of a criterion, their number, and the number of cases that have some.
fn most_in(row: &CriterionResult) -> Option<(&str, u64, usize)> {
    let mut by_case: BTreeMap<&str, u64> = BTreeMap::new();
    for violation in &row.violations {
        *by_case.entry(case_of(&violation.trial)).or_default() += 1;
    }
    let most = by_case.iter().max_by_key(|(case, units)| (**units, std::cmp::Reverse(**case)));
    most.map(|(case, units)| (*case, *units, by_case.len()))
}

/// `scenario/case` of a trial; empty if its id has none.
fn case_of(trial: &str) -> &str {
    trial.rsplit_once('/').map_or("", |(case, _)| case)
}

/// An INCONCLUSIVE criterion in words: `met, not shown: 62 more conversations at this rate would show it (observed …)`.
fn undecided(row: &CriterionResult) -> String {
    let why = row.sentence.rsplit_once("inconclusive: ").map_or(&*row.sentence, |(_, why)| why);
    let (seen, bound) = (figures::observed(row), figures::bound(row));
    format!("{why} (observed {seen}, bound {bound}, target {}, n {})", figures::goal(row), figures::units(row))
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
        let found = to_do(&run.view());
        let states: Vec<State> = found.iter().map(|one| one.state).collect();
        assert!(
            states.is_sorted() && states.contains(&State::Fails) && states.iter().any(|one| one.is_untried()),
            "{states:?}"
        );
        let case = found.iter().find(|one| one.name == "heat-pumps/skips-the-manual").expect("a case");
        assert_eq!(case.trials, 2);
        assert!(case.place.as_ref().is_some_and(|(file, line)| !file.is_empty() && *line > 0), "{case:?}");
        let purposes: Vec<&str> = case.commands.iter().map(|help| help.purpose).collect();
        assert_eq!(purposes, ["see it", "run it again"], "{case:?}");
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
