//! Tests of whole comparisons.

use super::sample::summary;
use super::*;
use rand::seq::SliceRandom as _;
use rand::{SeedableRng as _, rngs::ChaCha8Rng};

fn cases(passed: &[u64], trials: u64) -> Vec<(String, u64, u64)> {
    passed.iter().enumerate().map(|(index, passed)| (format!("c{index:02}"), *passed, trials)).collect()
}

fn run(label: &str, passed: &[u64], trials: u64) -> Summary {
    let cases = cases(passed, trials);
    summary(label, &cases.iter().map(|(case, passed, trials)| (case.as_str(), *passed, *trials)).collect::<Vec<_>>())
}

#[test]
fn a_run_beside_itself_changes_no_case() {
    let one = run("run", &[3, 2, 0, 3, 1, 3, 3, 3], 3);
    let found = compare(&one, &one, 0.02).expect("comparable");
    assert!(found.rows.iter().all(|row| row.finding == Finding::NoDiscordance), "{found:?}");
    assert!(found.flips.is_empty() && found.differences.is_empty() && !found.regression);
    assert!(found.rows[0].sentence.contains("no case changed"), "{}", found.rows[0].sentence);
    assert!(!found.rows[0].sentence.contains("equal"), "{}", found.rows[0].sentence);
    assert!(found.conclusion.contains("points or more would have been seen"), "{}", found.conclusion);
}

#[test]
fn prompts_are_compared_with_a_simulator_only_where_both_sides_declare_what_they_ask_for() {
    let [mut a, mut b] = [run("a", &[1; 10], 1), run("b", &[0; 10], 1)];
    b.settings[0].prompts = [("system".to_owned(), "Be brief.".to_owned())].into();
    a.settings[0].asks_for = Some(["use-response-tool".to_owned()].into());
    let found = compare(&a, &b, 0.02).expect("comparable");
    assert!(found.rows.is_empty() && found.flips.is_empty() && !found.regression, "{found:?}");
    assert!(found.conclusion.starts_with("withheld: ") && found.conclusion.contains("asks_for"), "{found:?}");
    assert_eq!(found.too_few_cases().as_ref(), Some(&found.withheld), "no gate passes by it");

    b.settings[0].asks_for = Some(BTreeSet::new());
    let found = compare(&a, &b, 0.02).expect("comparable");
    assert!(found.regression && found.withheld.is_empty(), "{}", found.conclusion);
    assert!(found.warnings.iter().any(|words| words.contains("nothing about the prompts")), "{:?}", found.warnings);

    // A model that read the prompts.
    for one in [&mut a, &mut b] {
        one.settings[0].recorded_from = ["openai gpt-4o-mini".to_owned()].into();
        one.settings[0].asks_for = None;
    }
    let found = compare(&a, &b, 0.02).expect("comparable");
    assert!(found.regression && found.warnings.is_empty(), "{:?}", found.warnings);
}

#[test]
fn ten_cases_of_ten_that_fail_are_a_regression_and_five_of_five_are_not() {
    let found = compare(&run("a", &[1; 10], 1), &run("b", &[0; 10], 1), 0.02).expect("comparable");
    assert!(found.regression && found.rows[0].finding == Finding::Worse, "{}", found.rows[0].sentence);
    assert_eq!(found.flips.len(), 10);
    let found = compare(&run("a", &[1; 5], 1), &run("b", &[0; 5], 1), 0.02).expect("comparable");
    assert!(!found.regression && found.rows[0].finding == Finding::Undecided, "{}", found.rows[0].sentence);
}

#[test]
fn a_loss_within_the_margin_is_no_regression() {
    let (a, b) = (run("a", &[10; 20], 10), run("b", &[9; 20], 10));
    assert!(compare(&a, &b, 0.02).expect("comparable").regression);
    assert!(!compare(&a, &b, 0.15).expect("comparable").regression);
    assert!(!compare(&b, &a, 0.02).expect("comparable").regression, "a gain is none");
}

#[test]
fn one_case_of_twenty_is_undecided_and_says_what_would_have_been_seen() {
    let mut worse = [1; 20];
    worse[3] = 0;
    let found = compare(&run("a", &[1; 20], 1), &run("b", &worse, 1), 0.0).expect("comparable");
    let row = &found.rows[0];
    assert_eq!(row.finding, Finding::Undecided, "{}", row.sentence);
    assert!(row.sentence.contains("points or more would have been seen"), "{}", row.sentence);
}

#[test]
fn a_side_that_dropped_cases_is_named_first_in_the_conclusion() {
    let (a, mut b) = (run("a", &[1, 1, 1, 0, 0], 1), run("b", &[1, 1, 1, 0, 0], 1));
    b.cases.truncate(3);
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert!(found.warnings[0].starts_with("b lacks 2 cases of a: s/c03, s/c04"), "{:?}", found.warnings);
    assert!(found.conclusion.starts_with("b lacks 2 cases of a"), "{}", found.conclusion);
    assert_eq!(found.dropped, 2);
}

#[test]
fn changed_texts_expectations_and_criteria_stand_before_every_other_difference() {
    let (a, mut b) = (run("a", &[1; 6], 1), run("b", &[1; 6], 1));
    b.cases[1].text = "other".into();
    b.cases[2].expected = "weaker".into();
    b.criteria[0].target = ">= 10%".into();
    b.settings[0].models = ["other".to_owned()].into();
    let found = compare(&a, &b, 0.0).expect("comparable").differences;
    let named: Vec<_> = found.iter().map(|row| (row.what.as_str(), row.b.as_str())).collect();
    assert_eq!(
        named,
        [
            ("criterion cases", "≥ 10 %"),
            ("case text", "changed in 1 case: s/c01"),
            ("expectations", "changed in 1 case: s/c02"),
            ("model", "other")
        ]
    );
}

#[test]
fn a_gate_that_was_weakened_or_taken_away_is_told_and_takes_no_regression_back() {
    let (a, mut b) = (run("a", &[1; 10], 1), run("b", &[0; 10], 1));
    b.criteria[0].required = false;
    b.gates = Some([("s".to_owned(), "none".to_owned())].into());
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert!(found.regression, "{}", found.rows[0].sentence);
    let told: Vec<_> = found.differences.iter().map(|row| (row.what.as_str(), row.b.as_str())).collect();
    assert_eq!(told, [("gate on cases", "none")]);
    let older = Summary { gates: None, ..a.clone() };
    assert_eq!(compare(&older, &b, 0.0).expect("comparable").differences, [], "an older build kept no gates");

    let (mut a, b) = (run("a", &[1; 6], 1), run("b", &[1; 6], 1));
    a.criteria.push(Measured { key: "s/mine".into(), target: ">= 90%".into(), ..collect::cases_row() });
    a.criteria.push(Measured { key: "elsewhere/mine".into(), ..collect::cases_row() });
    let found = compare(&a, &b, 0.0).expect("comparable");
    let told: Vec<_> = found.differences.iter().map(|row| (row.what.as_str(), row.b.as_str())).collect();
    assert_eq!(told, [("criterion s/mine", "none")], "a scenario that was not selected lacks no gate");
}

#[test]
fn lanes_that_ran_on_one_side_alone_are_named_with_their_variant_and_their_cases_are_not_counted() {
    let (mut a, mut b) = (run("a", &[1; 6], 1), run("b", &[1; 6], 1));
    for side in [&mut a, &mut b] {
        let strict = side.cases.iter().map(|case| CaseFigures { variant: "strict".into(), ..case.clone() });
        let strict: Vec<CaseFigures> = strict.collect();
        side.cases.extend(strict);
    }
    b.cases[6].trials = 0;
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert_eq!(found.warnings, ["b has no result of 1 case and variant of the other side: s/c00 (strict)"]);
    assert_eq!(found.cases, 6);
    b.cases[0].trials = 0;
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert_eq!(found.warnings, ["b has no result of 1 case of the other side: s/c00"]);
    assert_eq!(found.cases, 5);
    assert!(found.conclusion.contains("(over 5 cases)"), "{}", found.conclusion);
}

#[test]
fn repetitions_of_one_side_alone_are_named() {
    let found = compare(&run("a", &[1; 6], 1), &run("b", &[3; 6], 3), 0.0).expect("comparable");
    let note = found.notes.iter().find(|note| note.contains("without a partner")).expect("a note");
    assert!(note.starts_with("12 repetitions of b without a partner in a are not compared: s/c00"), "{note}");
}

#[test]
fn live_beside_replayed_is_refused_with_the_reason() {
    let (a, mut b) = (run("a", &[1; 6], 1), run("b", &[1; 6], 1));
    b.settings[0].modes = ["LIVE".to_owned()].into();
    let why = compare(&a, &b, 0.0).expect_err("refused").to_string();
    assert!(why.contains("a is REPLAYED and b is LIVE"), "{why}");
}

#[test]
fn two_logs_are_compared_by_their_messages_though_their_files_have_other_names() {
    let log = |name: &str| {
        let mut side = run(name, &[1; 6], 1);
        side.settings[0].modes = ["IMPORTED".to_owned()].into();
        side.cases.iter_mut().map(|case| &mut case.scenario).for_each(|scenario| name.clone_into(scenario));
        side.settings.iter_mut().map(|one| &mut one.scenario).for_each(|scenario| name.clone_into(scenario));
        side
    };
    let found = compare(&log("monday"), &log("tuesday"), 0.0).expect("comparable");
    assert_eq!(found.cases, compare(&log("monday"), &log("monday"), 0.0).expect("comparable").cases);
    let mut replayed = log("tuesday");
    replayed.settings[0].modes = ["REPLAYED".to_owned()].into();
    assert!(compare(&log("monday"), &replayed, 0.0).is_err());
}

#[test]
fn neither_the_order_of_the_lines_of_logs_nor_the_names_of_their_files_change_a_figure() {
    let log = |name: &str, most: u64, order: u64| {
        let names: Vec<String> = (0..24).map(|case| format!("c{case}")).collect();
        let sizes = |case: u64| 1 + (case * 7 + most) % most;
        let rows: Vec<_> =
            (0..).zip(&names).map(|(case, name)| (name.as_str(), sizes(case) / 2, sizes(case))).collect();
        let mut side = summary(name, &rows);
        side.settings[0].modes = ["IMPORTED".to_owned()].into();
        name.clone_into(&mut side.settings[0].scenario);
        let mut dice = ChaCha8Rng::seed_from_u64(order);
        for (place, case) in (0..).zip(&mut side.cases) {
            name.clone_into(&mut case.scenario);
            case.times = (1..).zip((0..case.trials).map(|one| vec![1_000_000 + one * 70_000 + place * most])).collect();
            if order == 0 {
                continue;
            }
            let rows = case.repetitions.get_mut(CASES).expect("rows");
            rows.shuffle(&mut dice);
            (1..).zip(rows).for_each(|(number, row)| row.repetition = number);
            let mut times: Vec<Vec<u64>> = case.times.values().cloned().collect();
            times.shuffle(&mut dice);
            case.times = (1..).zip(times).collect();
        }
        if order > 0 {
            side.cases.shuffle(&mut dice);
        }
        side
    };
    let rows = |a: &Summary, b: &Summary| {
        let rows = compare(a, b, 0.0).expect("comparable").rows.into_iter();
        rows.map(|row| (row.key, row.finding, row.p, row.interval, row.sentence)).collect::<Vec<_>>()
    };
    let told = rows(&log("monday", 4, 0), &log("tuesday", 9, 0));
    assert!(told.len() == 3 && told.iter().all(|row| row.2.is_some()), "a test of nothing: {told:?}");
    for order in 1..20 {
        assert_eq!(rows(&log("monday", 4, order), &log("tuesday", 9, order)), told, "{order}");
        assert_eq!(rows(&log("a", 4, order), &log("b", 9, 0)), told, "{order}, other names");
    }
}

#[test]
fn a_side_that_stopped_early_is_warned_of() {
    let (a, mut b) = (run("a", &[1; 6], 1), run("b", &[1; 6], 1));
    assert_eq!(compare(&a, &b, 0.0).expect("comparable").warnings, Vec::<String>::new());
    b.stopped = Some(StoppedEarly { passes: 2, max: 10 });
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert!(found.warnings[0].starts_with("b was stopped after 2 of 10 passes"), "{:?}", found.warnings);
}

#[test]
fn a_side_that_is_a_part_is_said_to_be_one_before_everything_else() {
    let (mut a, mut b) = (run("a", &[1; 6], 1), run("b", &[1; 6], 1));
    b.part = "6 of 90 trials, selected by --only c".into();
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert!(found.conclusion.starts_with("PART (b: 6 of 90 trials, selected by --only c): "), "{found:?}");
    assert!(found.warnings[0].starts_with("PART b: 6 of 90 trials"), "{:?}", found.warnings);
    a.part = "1 of 7 trials not run".into();
    b.part = String::new();
    let found = compare(&a, &b, 0.0).expect("comparable");
    assert!(found.conclusion.starts_with("PART (a: 1 of 7 trials not run): "), "{}", found.conclusion);
    assert_eq!((found.a.part.as_str(), found.b.part.as_str()), ("1 of 7 trials not run", ""));
}

#[test]
fn nothing_in_common_is_an_error_that_names_both() {
    let (a, mut b) = (run("a", &[1], 1), run("b", &[1], 1));
    b.cases[0].case = "other".into();
    assert!(compare(&a, &b, 0.0).is_err_and(|why| why.to_string().contains("no case in common")));
}

#[test]
fn slower_turns_beyond_the_margin_are_a_regression_where_a_time_is_gated() {
    let (a, mut b) = (run("a", &[1; 12], 1), run("b", &[1; 12], 1));
    for (index, case) in b.cases.iter_mut().enumerate() {
        case.turn_us = Some(3_000_000 + index as u64);
    }
    assert!(!compare(&a, &b, 0.02).expect("comparable").regression, "no criterion asks for a time");
    let timed = Measured { key: "T".into(), metric: "latency_p95".into(), limit_us: Some(1), ..collect::cases_row() };
    let (mut a, mut b) = (a, b);
    a.criteria.insert(0, timed.clone());
    b.criteria.insert(0, timed);
    let found = compare(&a, &b, 0.02).expect("comparable");
    let row = found.rows.iter().find(|row| row.scale == Scale::Time).expect("a row on times");
    assert!(found.regression && row.finding == Finding::Worse, "{}", row.sentence);
    assert!(row.sentence.contains("50.0 %"), "{}", row.sentence);
}

#[test]
fn the_same_summaries_give_the_same_bytes() {
    let (a, b) = (run("a", &[3, 2, 1, 3, 0, 3, 2, 2], 3), run("b", &[2, 3, 1, 1, 0, 2, 2, 3], 3));
    let text = || serde_json::to_string(&compare(&a, &b, 0.02).expect("comparable")).expect("JSON");
    assert_eq!(text(), text());
}
