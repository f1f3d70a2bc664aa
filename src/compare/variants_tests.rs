//! Tests of the comparison of all variants of a run.

use super::super::sample::summary;
use super::super::variant_figures::without;
use super::*;

/// A run of three variants over ten cases: the third fails them all.
fn run() -> Summary {
    let names: Vec<String> = (0..10).map(|index| format!("c{index}")).collect();
    let of = |variant: &str, passed: u64| {
        let mut side = summary("run", &names.iter().map(|name| (name.as_str(), passed, 1)).collect::<Vec<_>>());
        side.cases.iter_mut().for_each(|case| case.variant = variant.into());
        side.settings[0].variant = variant.into();
        side
    };
    let mut run = of("a", 1);
    for side in [of("b", 1), of("c", 0)] {
        run.cases.extend(side.cases);
        run.settings.extend(side.settings);
    }
    run
}

#[test]
fn every_pair_is_compared_once_and_corrected_over_all_pairs() {
    let found = compare_variants(&run(), &[], 0.02).expect("comparable");
    let sides: Vec<_> = found.pairs.iter().map(|pair| (pair.a.label.as_str(), pair.b.label.as_str())).collect();
    assert_eq!(sides, [("run@a", "run@b"), ("run@a", "run@c"), ("run@b", "run@c")]);
    assert_eq!(found.tests, 3, "one required row a pair");
    let [equal, worse, _] = found.pairs.as_slice() else { panic!("{found:?}") };
    assert_eq!(equal.rows[0].finding, Finding::NoDiscordance);
    let alone = worse.rows[0].p.expect("discordance");
    assert!((worse.rows[0].p_adjusted.expect("corrected") - 3.0 * alone).abs() < 1e-12, "the smallest of three");
    assert!(worse.regression && worse.rows[0].finding == Finding::Worse);
    assert_eq!(
        found.conclusion,
        "3 variants, 3 pairs, over 10 cases: c is worse than a in cases; c is worse than b in cases; no other \
         difference is shown: do not ship c"
    );
}

#[test]
fn named_variants_keep_their_order_and_a_pair_alone_is_decided_as_among_all_pairs() {
    let run = run();
    let found = compare_variants(&run, &["c".into(), "a".into(), "c".into()], 0.02).expect("comparable");
    assert_eq!(found.variants.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["c", "a"]);
    assert_eq!((found.pairs.len(), found.corrected_pairs, found.tests), (1, 3, 3));
    assert_eq!(found.pairs, [compare_pair(&run, "c", "a", 0.02).expect("comparable")]);
    assert_eq!(found.conclusion, found.pairs[0].conclusion, "one sentence");
    assert!(found.conclusion.starts_with("a is better than c in cases +100.0 points"), "{}", found.conclusion);
    assert!(found.conclusion.contains("worse in nothing that is required: ship a"), "{}", found.conclusion);
    let all = compare_variants(&run, &[], 0.02).expect("comparable");
    let alone = compare_pair(&run, "a", "c", 0.02).expect("comparable");
    assert_eq!(alone, all.pairs[1], "one comparison has one sentence, whichever command makes it");
}

#[test]
fn a_case_that_one_variant_did_not_run_counts_for_none_and_is_named() {
    let mut run = run();
    let dropped = run.cases.iter_mut().find(|case| case.variant == "b" && case.case == "c4").expect("a case");
    (dropped.trials, dropped.errors) = (0, 1);
    let found = compare_variants(&run, &[], 0.02).expect("comparable");
    assert_eq!(found.warnings, ["1 case left out that was not run under every variant: s/c4"]);
    assert!(found.cases.iter().all(|case| case.case != "s/c4"));
    let cells = found.figures[0].cells.iter();
    let counts: Vec<_> = cells.map(|cell| cell.counts.map(|counts| (counts.numerator, counts.denominator))).collect();
    assert_eq!((found.figures[0].key.as_str(), counts), ("cases", vec![Some((9, 9)), Some((9, 9)), Some((0, 9))]));
    assert!(found.pairs.iter().all(|pair| pair.cases == 9));
}

#[test]
fn calls_tokens_times_and_citations_stand_beside_each_other() {
    let found = compare_variants(&run(), &[], 0.02).expect("comparable");
    let of = |key: &str| {
        let figure = found.figures.iter().find(|figure| figure.key == key).unwrap_or_else(|| panic!("{key}"));
        figure.cells.iter().map(|cell| cell.value).collect::<Vec<_>>()
    };
    assert_eq!(of("model calls"), [Some(3.0); 3]);
    assert_eq!(of("input tokens"), [Some(100.0); 3]);
    assert_eq!(of("turn p95"), [Some(1.0); 3]);
    assert_eq!(of("citations"), [Some(2.0), Some(2.0), Some(0.0)]);
    assert_eq!(of("service tokens"), [None; 3]);
}

#[test]
fn answers_that_do_not_show_their_sources_count_in_no_figure_of_citations() {
    let mut run = run();
    for case in run.cases.iter_mut().filter(|case| case.variant == "b") {
        let usage = case.usage.as_mut().expect("kept");
        (usage.hidden_sources, usage.citing, usage.citations) = (usage.answers, 0, 0);
    }
    let a = run.cases.iter_mut().find(|case| case.variant == "a").expect("a case");
    let usage = a.usage.as_mut().expect("kept");
    (usage.hidden_sources, usage.answers, usage.turns) = (1, usage.answers + 1, usage.turns + 1);
    let found = compare_variants(&run, &[], 0.02).expect("comparable");
    for key in ["citations", "citing answers"] {
        let cells = &found.figures.iter().find(|figure| figure.key == key).expect("a figure").cells;
        assert_eq!(cells[0].value, Some(if key == "citations" { 2.0 } else { 1.0 }), "{key}");
        assert_eq!(cells[1], without("no answer shows its sources"), "{key}");
    }
    assert!(
        found.cases.iter().all(|case| case.variants[1].citations.is_none() && case.variants[0].citations == Some(2.0))
    );
}

#[test]
fn tokens_that_a_service_does_not_tell_are_not_measured_and_never_0() {
    let mut run = run();
    run.cases[0].usage.as_mut().expect("kept").input_tokens = None;
    let asked = run.cases.iter_mut().filter(|case| case.variant == "b");
    asked.filter_map(|case| case.usage.as_mut()).for_each(|usage| {
        (usage.service_answers, usage.service_tokens) = (1, None);
    });
    let found = compare_variants(&run, &[], 0.02).expect("comparable");
    let cells = |key: &str| &found.figures.iter().find(|figure| figure.key == key).expect("a figure").cells;
    assert_eq!(cells("input tokens")[0], without("a service did not report its tokens"));
    assert_eq!(cells("service tokens")[1], without("a service did not report its tokens"));
    assert_eq!(cells("service tokens")[0].not_measured, "no service was asked for an answer");
}

#[test]
fn one_variant_and_variants_without_a_common_case_are_refused_with_what_to_do() {
    let mut run = run();
    let of = |run: &Summary, named: &[&str]| {
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        compare_variants(run, &named, 0.02).expect_err("refused").to_string()
    };
    assert!(of(&run, &["a"]).contains("ragcheck compare run OTHER"));
    assert!(of(&run, &["a", "d"]).contains("has no variant `d`; it has a, b, c"));
    run.cases.iter_mut().filter(|case| case.variant == "c").for_each(|case| case.scenario = "t".into());
    run.settings[2].scenario = "t".into();
    assert!(of(&run, &[]).contains("(s has a, b): name those to be compared, `--variants A,B`"), "{}", of(&run, &[]));
}
