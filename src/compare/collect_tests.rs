//! Tests of the sums of trials.

use super::*;
use crate::metric::catalogue;
use crate::metric::sample::{good, plan, story};

const CASES_WRITTEN: &str = "[{case: one, ask: q}, {case: two, ask: q, excluded_from: {F: why}}]";
const CRITERIA: &str = "[{id: T, metric: latency_p95, target: <= 1s, kind: confidence}, \
                        {id: F, metric: turn_success_rate, target: '>= 90%', kind: confidence}]";

#[test]
fn units_are_summed_by_case_and_exclusions_and_errors_are_kept_apart() {
    let plan = plan(CASES_WRITTEN, CRITERIA, 2);
    let answered = [Observation { unit: "turn 1".into(), outcome: Outcome::Success, note: String::new() }];
    let slow = [Observation { unit: "turn 1".into(), outcome: Outcome::Took(2_000_000), note: String::new() }];
    let units: Vec<(&str, &[Observation])> = vec![("turn_success_rate", &answered), ("latency_p95", &slow)];
    let mut collector = Collector::new(&plan, |_| None);
    collector.add(
        &good(&plan, 0),
        &TrialFigures {
            passed: Some(true),
            why: String::new(),
            cost: None,
            units: units.clone(),
            not_offered: Vec::new(),
        },
    );
    collector.add(
        &good(&plan, 1),
        &TrialFigures {
            passed: Some(false),
            why: "short".into(),
            cost: None,
            units: units.clone(),
            not_offered: Vec::new(),
        },
    );
    let failed = story(&plan, 2).turn("q").fail("model").done();
    collector.add(
        &failed,
        &TrialFigures { passed: Some(false), why: "no answer".into(), cost: None, units, not_offered: Vec::new() },
    );
    let summary = collector.finish("run", None, "");
    let [one, two] = summary.cases.as_slice() else { panic!("{summary:?}") };
    assert_eq!((one.trials, one.passed, one.errors, one.turn_us), (2, 1, 0, Some(2_000_000)));
    let units = |key: &str| (one.units[key].successes, one.units[key].n);
    assert_eq!((units("F"), units("T"), units(CASES)), ((2, 2), (0, 2), (1, 2)));
    assert_eq!((two.trials, two.errors, two.turn_us), (1, 1, None), "a turn without an answer has no time");
    assert!(!two.units.contains_key("F"), "an excluded case has no units");
    assert_eq!(one.trials_run[1].why, "short");
    assert_eq!(summary.settings[0].recorded_from.iter().next().map(String::as_str), Some("simulator"));
}

#[test]
fn a_criterion_of_one_flow_counts_the_trials_of_that_flow_and_of_external_agents() {
    let of = |flow: &str| {
        let written =
            format!("[{{id: F, metric: turn_success_rate, target: '>= 90%', kind: confidence, flow: {flow}}}]");
        let plan = plan("[{case: one, ask: q}]", &written, 1);
        let mut collector = Collector::new(&plan, |_| None);
        let seen = [Observation::success("turn 1")];
        let units: Vec<(&str, &[Observation])> = vec![("turn_success_rate", &seen)];
        collector.add(
            &good(&plan, 0),
            &TrialFigures { passed: Some(true), why: String::new(), cost: None, units, not_offered: Vec::new() },
        );
        collector.finish("run", None, "").cases[0].units.contains_key("F")
    };
    assert!(of("tool-rag") && !of("react"));
}

#[test]
fn repetitions_that_are_one_unit_together_are_paired_by_case_like_any_other() {
    let criteria = "[{id: ALL, metric: pass_all(k=2), target: '>= 90%', kind: confidence}, \
                     {id: ANY, metric: pass_any(k=2), target: '>= 90%', kind: confidence}]";
    let plan = plan("[{case: one, ask: q}]", criteria, 5);
    let resolved: Vec<_> = ["pass_all(k=2)", "pass_any(k=2)"]
        .map(|name| {
            catalogue::resolve(&crate::scenario::resolve_metric(name, &catalogue::entries()).expect("known"))
                .expect("known")
        })
        .into();
    let metric = |written: &str| Some(&resolved[usize::from(written.starts_with("pass_any"))]);
    let mut collector = Collector::new(&plan, metric);
    let unit = |success| if success { Observation::success("trial") } else { Observation::failure("trial", "no") };
    // The fourth could not be run: repetitions 3 and 4 are no unit, and 5 alone is none either.
    for (place, success) in [(1, true), (0, false), (2, true), (4, true)] {
        let seen = [unit(success)];
        let units: Vec<(&str, &[Observation])> = vec![("pass_all(k=2)", &seen), ("pass_any(k=2)", &seen)];
        collector.add(
            &good(&plan, place),
            &TrialFigures { passed: Some(success), why: String::new(), cost: None, units, not_offered: Vec::new() },
        );
    }
    let summary = collector.finish("run", None, "");
    let units = |key: &str| (summary.cases[0].units[key].successes, summary.cases[0].units[key].n);
    assert_eq!((units("ALL"), units("ANY")), ((0, 1), (1, 1)));
}

#[test]
fn the_last_row_is_on_all_cases_and_a_proxy_is_marked() {
    let plan = plan("[{case: one, ask: q}]", "[{id: S, metric: satisfaction, target: '>= 90%', kind: point}]", 1);
    let metric =
        catalogue::resolve(&crate::scenario::resolve_metric("satisfaction", &catalogue::entries()).expect("known"))
            .expect("known");
    let summary = Collector::new(&plan, |_| Some(&metric)).finish("run", None, "");
    assert!(summary.criteria[0].proxy && !summary.criteria[1].proxy);
    assert_eq!(summary.criteria[1].key, CASES);
    assert_eq!(summary.errors(), 1, "nothing was added");
}

#[test]
fn conversations_without_a_grade_count_with_their_times_and_neither_pass_nor_fail() {
    let mut plan = plan("[{case: one, ask: q}, {case: two, ask: r}]", "[]", 2);
    plan.mode = Some(Mode::Imported);
    let summary = |plan: &crate::plan::Plan, passed: [Option<bool>; 4]| {
        let mut collector = Collector::new(plan, |_| None);
        for (place, passed) in passed.into_iter().enumerate() {
            let mut trace = good(plan, place);
            (trace.evidence.mode, trace.absent) = (Mode::Imported, Some([].into()));
            let (units, not_offered) = (Vec::new(), Vec::new());
            let seen = TrialFigures { passed, why: String::new(), cost: None, units, not_offered };
            collector.add(&trace, &seen);
        }
        collector.finish("log", None, "")
    };
    let figures = |summary: &Summary| -> Vec<(u64, u64, (u64, u64), usize)> {
        summary.cases.iter().map(|case| (case.trials, case.errors, case.graded(), case.times.len())).collect()
    };
    let none = summary(&plan, [Some(true); 4]);
    assert_eq!(figures(&none), [(2, 0, (0, 0), 2), (2, 0, (0, 0), 2)], "an answer alone is no pass");
    let found = super::super::compare(&none, &none, 0.02).expect("comparable");
    assert_eq!((found.a.trials, found.cases, found.rows[0].cases, found.rows[1].cases), (4, 2, 0, 2));
    let first = plan.trials.at(0).expect("a trial").id;
    plan.rewards.insert(first, 1.0);
    let one = summary(&plan, [Some(true), None, None, None]);
    assert_eq!(figures(&one), [(2, 0, (1, 1), 2), (2, 0, (0, 0), 2)]);
    let slower = |side: &Summary| {
        let mut side = side.clone();
        side.cases.iter_mut().flat_map(|case| case.times.values_mut()).flatten().for_each(|time| *time *= 9);
        side
    };
    let found = super::super::compare(&one, &slower(&one), 0.02).expect("comparable");
    assert_eq!((found.rows[1].worse, found.rows[2].worse, found.dropped), (2, 2, 0));
}
