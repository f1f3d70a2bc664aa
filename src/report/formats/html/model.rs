//! Data of the template: formatted figures, encoded links, rendered charts.

use super::first_screen::{FirstScreen, first_screen};
use super::grid::{Grid, grids};
use super::heading::heading;
use super::latency::{Latency, latency};
use super::requirements::{Requirement, covered, requirement};
use super::spending::{Spending, spending};
use super::to_do::{Link, List, list, violation};
use crate::gate::{CriterionResult, Evaluation, Repeats, Unshown, VariantCounts, Verdict};
use crate::report::figures::{self, counted, thousands};
use crate::report::to_do::missed;
use crate::report::{Pages, TABLE_ROWS, View, charts};
use crate::settings::price::dollars;
use crate::stats::percent::percent;
use serde::Serialize;

/// Maximum number of trials listed for an ERROR group or a requirement.
pub(super) const LISTED: usize = 12;

/// Passing gates beyond this number are collapsed.
const PASSING: usize = 4;

/// Maximum number of violations listed per criterion; `violations.csv` has all.
const VIOLATIONS: usize = 100;

#[derive(Serialize)]
pub(super) struct RunPage<'v> {
    title: String,
    outcome: Badge,
    exit_code: u8,
    /// The exit code in words.
    meaning: &'static str,
    /// What decided the exit code, if it was not the criteria alone.
    decided: String,
    /// The counts of the run, in one sentence.
    sums: String,
    /// The same without verdicts.
    counts: String,
    pages: Pages,
    conclusion: String,
    /// Omissions from the conclusion: metrics declared as not measured, and excluded cases.
    caveats: String,
    evidence: Vec<String>,
    facts: Vec<(String, String)>,
    tally: Vec<(Badge, String)>,
    trials: u64,
    to_do: Option<List>,
    first_screen: FirstScreen,
    criteria: Vec<CriterionRow<'v>>,
    /// Passing criteria, if there are too many to show beside the others.
    passing_criteria: Vec<CriterionRow<'v>>,
    criteria_counts: String,
    grids: Vec<Grid>,
    gates: Vec<CriterionRow<'v>>,
    /// Passing gates, if there are too many to show beside the others.
    passing_gates: Vec<CriterionRow<'v>>,
    gates_counts: String,
    /// What the flows promise whatever the model does, in one line, and each with its anchor.
    self_tests: Option<String>,
    self_test_rows: Vec<(String, String)>,
    repeats: Vec<Repeated>,
    latency: Option<Latency>,
    spending: Option<Spending>,
    transitions: Vec<Flow>,
    requirements: Vec<Requirement>,
    covered: String,
    kept: String,
    left_out: u64,
    rows: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Badge {
    pub word: &'static str,
    pub class: &'static str,
    /// `below` if the observed figure of an INCONCLUSIVE criterion misses its target.
    pub tone: &'static str,
}

#[derive(Serialize)]
struct CriterionRow<'v> {
    anchor: String,
    of: &'v CriterionResult,
    floor: String,
    min_n: Option<u32>,
    verdict: Badge,
    n: String,
    observed: String,
    bound: String,
    target: String,
    chart: String,
    excluded: Vec<(String, String, String)>,
    violations: Vec<Link>,
    /// Number of all units that fail, and of those listed if these are fewer.
    failing: String,
    listed: String,
    variants: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Repeated {
    name: String,
    cases: String,
    all: String,
    any: String,
    error: String,
    not_measured: String,
}

#[derive(Serialize)]
struct Flow {
    name: String,
    taken: usize,
    declared: usize,
    graph: String,
    rows: Vec<(String, String, String, u64, String)>,
}

/// Builds the template data of `view`.
pub(super) fn page<'v>(view: &View<'v>) -> RunPage<'v> {
    let evaluation = view.evaluation;
    let outcome = figures::verdict_of(view.exit_code());
    let failed = figures::failing(evaluation);
    let heading = heading(view);
    let rows = |rows: &'v [CriterionResult], prefix: &str| -> Vec<CriterionRow<'v>> {
        let axis = charts::domain(rows);
        let mut rows: Vec<_> = rows.iter().enumerate().collect();
        // Worst first, and rows that decide the exit code before others; otherwise in declared order.
        rows.sort_by_key(|(_, result)| (worst_first(result.verdict), !result.required));
        rows.into_iter().map(|(place, result)| row(result, &anchor(prefix, place), axis)).collect()
    };
    // The passing rows behind one line, unless they are few.
    let folded = |rows: &mut Vec<CriterionRow<'v>>| -> Vec<CriterionRow<'v>> {
        let passing = rows.iter().position(|row| row.verdict.class == "pass").unwrap_or(rows.len());
        if rows.len() - passing <= PASSING { Vec::new() } else { rows.split_off(passing) }
    };
    let (mut criteria, mut gates) = (rows(&evaluation.criteria, "criterion"), rows(&evaluation.gates, "gate"));
    let (passing_criteria, passing_gates) = (folded(&mut criteria), folded(&mut gates));
    let requirements: Vec<_> =
        evaluation.requirements.iter().map(|row| requirement(row, &evaluation.criteria)).collect();
    RunPage {
        title: format!("{}: ragcheck report", heading.word),
        outcome: Badge { word: heading.word, ..badge(outcome) },
        exit_code: view.exit_code(),
        meaning: if view.decided.is_some() { "" } else { figures::exit_meaning(view.exit_code(), failed > 0) },
        decided: view.decided.map_or_else(String::new, |decided| {
            format!("{}; the criteria alone: exit code {}", decided.why, evaluation.exit_code)
        }),
        sums: figures::sums(evaluation),
        counts: format!(
            "{}, {} criteria, {}",
            counted(evaluation.trials.len() as u64, "trial"),
            thousands(evaluation.criteria.len() as u64),
            counted(evaluation.gates.len() as u64, "scenario gate")
        ),
        pages: view.pages,
        conclusion: heading.conclusion,
        caveats: heading.caveats,
        evidence: evaluation.evidence.iter().chain(&evaluation.notes).cloned().collect(),
        facts: facts(view),
        tally: figures::tally(evaluation).into_iter().map(|(verdict, n)| (badge(verdict), thousands(n))).collect(),
        trials: evaluation.trials.len() as u64,
        to_do: list(view),
        first_screen: first_screen(view),
        criteria,
        passing_criteria,
        grids: grids(&evaluation.trials),
        criteria_counts: figures::verdict_counts(evaluation.criteria.iter()),
        gates,
        passing_gates,
        gates_counts: figures::verdict_counts(evaluation.gates.iter()),
        self_tests: figures::self_tests(evaluation),
        self_test_rows: (0..)
            .zip(&evaluation.self_tests)
            .map(|(place, row)| (anchor("self-test", place), figures::self_test(row)))
            .collect(),
        repeats: evaluation.repeats.iter().map(repeated).collect(),
        latency: latency(evaluation),
        spending: spending(&evaluation.spending),
        transitions: transitions(evaluation),
        covered: covered(&evaluation.requirements),
        requirements,
        kept: thousands(view.timelines.kept() as u64),
        left_out: view.timelines.left_out() as u64,
        rows: (evaluation.trials.len() > TABLE_ROWS).then(|| thousands(TABLE_ROWS as u64)),
    }
}

fn facts(view: &View<'_>) -> Vec<(String, String)> {
    let evaluation = view.evaluation;
    let (mut calls, mut tools) = (0, 0);
    for trial in evaluation.trials.iter() {
        calls += u64::from(trial.model_calls);
        tools += u64::from(trial.tool_calls);
    }
    let spent = &evaluation.spending.run;
    let tokens = figures::tokens(evaluation);
    let cost = match spent.cost {
        _ if spent.trials == 0 => "none".into(),
        Some(cost) => dollars(cost),
        None => "not measured".into(),
    };
    let cases: usize = view.plan.scenarios.iter().map(|scenario| scenario.cases.len()).sum();
    let mut facts: Vec<(String, String)> = [
        ("Scenarios", thousands(view.plan.scenarios.len() as u64)),
        ("Cases", thousands(cases as u64)),
        ("Trials", thousands(evaluation.trials.len() as u64)),
        ("Turns timed", thousands(evaluation.turn_times_us.len() as u64)),
        ("Model calls", thousands(calls)),
        ("Tool calls", thousands(tools)),
        ("Tokens", tokens),
        ("Cost", cost),
        ("Seed", view.plan.seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    facts.extend(evaluation.grades.iter().map(|row| ("Grades".into(), figures::grades(row))));
    facts.extend(evaluation.stopped.iter().map(|stopped| ("Until decided".into(), stopped.sentence.clone())));
    facts
}

fn repeated(row: &Repeats) -> Repeated {
    let error = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    Repeated {
        name: figures::place(row),
        cases: format!("{}, {} each", thousands(row.cases), counted(row.repetitions, "trial")),
        all: figures::percents(&row.all),
        any: figures::percents(&row.any),
        error: format!("{} ({} if trials were independent)", error(row.standard_error), error(row.naive_error)),
        not_measured: row.not_measured.clone(),
    }
}

pub(super) fn badge(verdict: Verdict) -> Badge {
    let class = match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Inconclusive => "undecided",
        Verdict::NotMeasured => "unmeasured",
        Verdict::Error => "error",
    };
    Badge { word: verdict.as_str(), class, tone: "" }
}

fn row<'v>(result: &'v CriterionResult, anchor: &str, axis: (f64, f64)) -> CriterionRow<'v> {
    let excluded = result.excluded.iter().map(|one| {
        let figure = format!("{} of {} {}", thousands(one.successes), thousands(one.n), result.units);
        (one.case.clone(), one.reason.clone(), figure)
    });
    let variants = result.by_variant.iter().map(|VariantCounts { variant, successes, n }| {
        let share = if *n == 0 { "–".into() } else { percent(*successes as f64 / *n as f64) };
        (variant.clone(), format!("{successes}/{n} = {share}"))
    });
    let failing = missed(result).max(result.violations.len() as u64);
    CriterionRow {
        anchor: anchor.to_owned(),
        of: result,
        floor: result.floor.clone(),
        min_n: result.min_n,
        verdict: toned(result),
        n: figures::units(result),
        observed: figures::together(&figures::observed(result)),
        bound: figures::together(&figures::bound(result)),
        target: figures::together(&figures::goal(result)),
        chart: charts::interval(result, axis).unwrap_or_default(),
        excluded: excluded.collect(),
        violations: result.violations.iter().take(VIOLATIONS).map(violation).collect(),
        failing: counted(failing, "violation"),
        listed: if failing > VIOLATIONS as u64 { format!(", {VIOLATIONS} listed") } else { String::new() },
        variants: variants.collect(),
    }
}

fn anchor(prefix: &str, place: usize) -> String {
    format!("{prefix}-{}", place + 1)
}

/// Every criterion and gate, with the anchor of its row.
pub(super) fn anchored(evaluation: &Evaluation) -> impl Iterator<Item = (String, &CriterionResult)> {
    let of = |prefix: &'static str| move |(place, row)| (anchor(prefix, place), row);
    let gates = evaluation.gates.iter().enumerate().map(of("gate"));
    let self_tests = evaluation.self_tests.iter().enumerate().map(of("self-test"));
    evaluation.criteria.iter().enumerate().map(of("criterion")).chain(gates).chain(self_tests)
}

/// Verdict of a criterion, coloured by whether its figure reaches the target.
pub(super) fn toned(result: &CriterionResult) -> Badge {
    let tone = if matches!(result.unshown, Some(Unshown::Below | Unshown::CannotPass)) { "below" } else { "" };
    Badge { word: figures::verdict(result), tone, ..badge(result.verdict) }
}

/// Rank of a verdict, worst first; also its index in the script's list.
pub(super) fn worst_first(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Error => 0,
        Verdict::Fail => 1,
        Verdict::Inconclusive => 2,
        Verdict::NotMeasured => 3,
        Verdict::Pass => 4,
    }
}

fn transitions(evaluation: &Evaluation) -> Vec<Flow> {
    let flow = |coverage: &crate::gate::TransitionCoverage| Flow {
        name: coverage.flow.clone(),
        taken: coverage.taken.iter().filter(|row| row.times > 0).count(),
        declared: coverage.taken.len(),
        graph: charts::graph(&coverage.flow, &coverage.taken).unwrap_or_default(),
        rows: coverage
            .taken
            .iter()
            .map(|row| (row.from.clone(), row.on.clone(), row.to.clone(), row.times, thousands(row.times)))
            .collect(),
    };
    evaluation.transitions.iter().map(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_gates_that_pass_stand_behind_one_line_and_the_others_stay_in_sight() {
        let mut run = crate::report::sample::run(1);
        let gate = run.evaluation.criteria[0].clone();
        let with = |verdict| CriterionResult { verdict, ..gate.clone() };
        run.evaluation.gates = vec![with(Verdict::Pass); PASSING + 1];
        run.evaluation.gates.insert(2, with(Verdict::Fail));
        run.evaluation.gates.push(with(Verdict::Inconclusive));
        let shown = page(&run.view());
        let anchors = |rows: &[CriterionRow<'_>]| rows.iter().map(|row| row.anchor.clone()).collect::<Vec<_>>();
        assert_eq!(anchors(&shown.gates), ["gate-3", "gate-7"]);
        assert_eq!(anchors(&shown.passing_gates), ["gate-1", "gate-2", "gate-4", "gate-5", "gate-6"]);
        run.evaluation.gates.pop();
        run.evaluation.gates.remove(0);
        assert_eq!(page(&run.view()).gates.len(), PASSING + 1, "few are not folded");
    }

    #[test]
    fn a_row_shows_floor_and_min_n_and_what_is_met_has_another_colour_than_what_is_below() {
        let mut run = crate::report::sample::run(1);
        let undecided = run.evaluation.criteria.iter_mut().filter(|row| row.verdict == Verdict::Inconclusive);
        for (row, unshown) in undecided.zip([Unshown::Met, Unshown::Below]) {
            (row.unshown, row.floor, row.min_n) = (Some(unshown), ">= 91%".into(), Some(77));
        }
        let mut page = Vec::new();
        super::super::write(&run.view(), &mut page).expect("a page");
        let page = String::from_utf8(page).expect("UTF-8");
        for words in
            ["INCONCLUSIVE, met", "INCONCLUSIVE, below", "badge undecided below", "&gt;= 91%", "77 (<code>min_n"]
        {
            assert!(page.contains(words), "{words}");
        }
        let table = page.split_once("id=\"criteria\"").expect("the criteria").1;
        assert_eq!(table.matches("badge undecided below").count(), 1);
    }
}
