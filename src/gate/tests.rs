//! Evaluation of whole runs.

use super::{Evaluation, Evaluator, Verdict, evaluate};
use crate::metric::sample::{good, plan, story};
use crate::plan::Plan;
use crate::scenario::criteria::Estimand;
use crate::trace::state_machine::Machine;
use crate::trace::{Moved, Trace, What};
use proptest::prelude::*;

pub(super) const CASES: &str = "[{case: a, ask: q, expect: {calls: [{never: perplexity_search}]}}]";
pub(super) const KB: &str = "metric: mandatory_call_rate(knowledge_base_search)";

pub(super) fn run(plan: &Plan, traces: impl IntoIterator<Item = Trace>) -> Evaluation {
    let traces: Vec<Trace> = traces.into_iter().collect();
    // What is stored between examination and evaluation changes nothing.
    let mut evaluator = Evaluator::new(plan).expect("a plan");
    let examiner = evaluator.examiner();
    for trace in &traces {
        let examined = examiner.examine(trace, &[]).expect("examined");
        let text = serde_json::to_string(&examined).expect("JSON");
        let restored = examiner.restore(serde_json::from_str(&text).expect("an examined trial"));
        evaluator.add(restored.expect("of the plan")).expect("once");
    }
    let evaluated = evaluate(plan, traces.into_iter().map(Ok)).expect("can be judged");
    assert_eq!(evaluator.finish(), evaluated);
    evaluated
}

pub(super) fn all_good(plan: &Plan) -> Vec<Trace> {
    (0..plan.trials.len()).map(|place| good(plan, place)).collect()
}

/// A trial that answers without searching.
pub(super) fn bad(plan: &Plan, place: usize) -> Trace {
    story(plan, place).turn("q").answer("no idea", &[]).done()
}

pub(super) fn confidence() -> String {
    format!("[{{id: C, {KB}, target: '>= 95%', kind: confidence}}]")
}

fn invariant() -> String {
    format!("[{{id: I, {KB}, target: '= 100%', kind: invariant, floor: '>= 95%', min_n: 60}}]")
}

#[test]
fn turns_of_one_conversation_count_together_and_the_figure_says_so() {
    let cases = "[{case: a, turns: [{ask: q}, {ask: r}]}]";
    let plan = plan(cases, &confidence(), 70);
    let talk = |place, good: bool| {
        let story = story(&plan, place).turn("q");
        let story = if good { story.search(&["d#1"]) } else { story };
        let story = story.answer("x", &[]).turn("r");
        if good { story.search(&["d#1"]).answer("y", &[]).done() } else { story.answer("y", &[]).done() }
    };
    // One conversation fails entirely: 138 of 140 turns pass, of which 124 with 2 failures would have sufficed.
    let result = run(&plan, (0..70).map(|place| talk(place, place != 3))).criteria.remove(0);
    assert_eq!((result.n, result.clusters, result.verdict), (140, 70, Verdict::Inconclusive), "{}", result.sentence);
    let head = "138 of 140 queries in 70 conversations: 98.6 %, at least 90.1 %; ";
    assert!(result.sentence.starts_with(head), "{}", result.sentence);
    assert!(result.sentence.contains("more conversations at this rate would show it"), "{}", result.sentence);
}

#[test]
fn several_required_gates_share_the_probability_of_a_wrong_fail_and_not_that_of_a_wrong_pass() {
    let of = |number: usize| {
        let one = |index: usize| format!("{{id: C{index}, {KB}, target: '>= 95%', kind: confidence}}");
        let plan = plan(CASES, &format!("[{}]", (0..number).map(one).collect::<Vec<_>>().join(", ")), 20);
        let trace = |place: usize| if place < 4 { bad(&plan, place) } else { good(&plan, place) };
        run(&plan, (0..20).map(trace)).criteria.remove(0)
    };
    let (one, six) = (of(1), of(6));
    assert_eq!((one.verdict, six.verdict), (Verdict::Fail, Verdict::Inconclusive), "P(4 or more) is .0159");
    assert_eq!(one.lower, six.lower);
    assert!(six.upper > one.upper);
}

#[test]
fn one_violation_fails_an_invariant_and_is_named_with_case_and_lane() {
    let plan = plan(CASES, &invariant(), 60);
    assert_eq!(run(&plan, all_good(&plan)).exit_code, 0);
    let mut traces = all_good(&plan);
    traces[41] = story(&plan, 41).turn("q").feedback("knowledge_base_search").fail("mandatory_call_missing").done();
    let evaluation = run(&plan, traces);
    let result = &evaluation.criteria[0];
    assert_eq!((result.verdict, evaluation.exit_code), (Verdict::Fail, 1));
    assert_eq!((result.causes.len(), result.causes[0].first.trial.as_str()), (1, "s/a/tool-rag.base.42"));
    assert_eq!(evaluation.trials.to_vec()[41].verdict, Verdict::Fail);
    assert_eq!(evaluation.trials.to_vec()[41].checks[0].what, "turn 1: an answer");
}

#[test]
fn deleting_traces_never_passes() {
    let plan = plan(CASES, &invariant(), 60);
    for kept in [0, 1, 59] {
        let evaluation = run(&plan, all_good(&plan).into_iter().take(kept));
        assert_eq!(evaluation.exit_code, 3);
        assert_eq!(evaluation.criteria[0].verdict, Verdict::Error, "{kept} kept");
        assert_eq!(evaluation.errors[0].trials.len(), 60 - kept);
        assert_eq!(evaluation.errors[0].kind, "not run");
    }
}

#[test]
fn a_plan_of_nothing_shows_nothing() {
    let plan = plan("[]", &invariant(), 1);
    assert_eq!(run(&plan, []).exit_code, 1);
}

#[test]
fn trials_in_error_are_grouped_by_cause_and_can_still_fail() {
    let plan = plan(CASES, &invariant(), 61);
    let mut traces = all_good(&plan);
    for (place, cause) in [(1, "x"), (2, "prompt"), (5, "prompt")] {
        traces[place] = story(&plan, place).error(cause);
    }
    let evaluation = run(&plan, traces.clone());
    assert_eq!((evaluation.criteria[0].verdict, evaluation.exit_code), (Verdict::Error, 3));
    let groups: Vec<_> = evaluation.errors.iter().map(|group| (group.message.as_str(), group.trials.len())).collect();
    assert_eq!(groups, [("miss: prompt", 2), ("miss: x", 1)]);
    traces[9] = bad(&plan, 9);
    let evaluation = run(&plan, traces);
    assert_eq!((evaluation.criteria[0].verdict, evaluation.exit_code), (Verdict::Fail, 3), "incomplete goes first");
}

#[test]
fn a_turn_that_never_ends_is_slower_than_any_limit() {
    let criteria = "[{id: L, metric: latency_p95, target: '<= 10s', kind: confidence}]";
    let plan = plan(CASES, criteria, 20);
    let mut traces = all_good(&plan);
    for (place, trace) in traces.iter_mut().enumerate().take(3) {
        *trace = story(&plan, place).turn("q").fail("timeout").done();
    }
    let result = run(&plan, traces.clone()).criteria.remove(0);
    assert_eq!((result.verdict, result.successes, result.observed), (Verdict::Inconclusive, 17, None));
    traces[3] = story(&plan, 3).turn("q").search(&["doc#1"]).deliver("late", &[], 10_000_000).done();
    let result = run(&plan, traces).criteria.remove(0);
    assert_eq!(result.verdict, Verdict::Fail, "four of twenty: {}", result.sentence);
    assert_eq!(result.violations[3].note, "slower than 10 s: 10 s");
    assert!(result.observed_text.starts_with("p95 never reached, 16/20 = 80.0 % below 10 s"));
}

#[test]
fn a_proxy_is_shown_and_is_never_a_measurement() {
    let criteria = "[{id: S, metric: satisfaction, target: '>= 50%', kind: point, required: false}, \
                    {id: T, metric: turn_success_rate, target: '>= 50%', kind: confidence}]";
    let cases = "[{case: a, ask: q, expect: {calls: [{superset: [perplexity_search]}]}}]";
    let mut plan = plan(cases, criteria, 30);
    let both = [("internal", "doc#1"), ("external", "https://example.org/a")];
    let mixed = |place| story(&plan, place).turn("q").search(&["doc#1"]).external("r").answer("x", &both).done();
    let traces: Vec<_> = (0..30).map(mixed).collect();
    let evaluation = run(&plan, traces.clone());
    assert_eq!(evaluation.criteria[0].sentence, "proxy 30/30 = 100.0 %, not a measurement of satisfaction");
    assert_eq!((evaluation.criteria[0].verdict, evaluation.exit_code), (Verdict::NotMeasured, 0));
    plan.criteria.criteria[0].required = Some(true);
    assert_eq!(run(&plan, traces.clone()).exit_code, 1);
    plan.ratings = Some(plan.trials.iter().take(20).map(|trial| (trial.id.clone(), true)).collect());
    let evaluation = run(&plan, traces);
    assert_eq!((evaluation.criteria[0].verdict, evaluation.criteria[0].n), (Verdict::Pass, 20));
    assert!(evaluation.criteria[0].sentence.ends_with("by the observed figure alone"));
}

#[test]
fn measuring_nothing_fails_unless_it_was_declared() {
    let criteria =
        format!("[{{id: K, metric: keyword_coverage, target: '= 100%', kind: invariant}}, {}", &confidence()[1..]);
    let mut plan = plan(CASES, &criteria, 70);
    let evaluation = run(&plan, all_good(&plan));
    assert_eq!((evaluation.criteria[0].verdict, evaluation.exit_code), (Verdict::NotMeasured, 1));
    plan.not_measured_ok.push("K".into());
    assert_eq!(run(&plan, all_good(&plan)).exit_code, 0);
}

#[test]
fn live_and_replayed_units_are_never_averaged() {
    let plan = plan(CASES, &confidence(), 60);
    let mut traces = all_good(&plan);
    traces[0] = story(&plan, 0).live().turn("q").search(&["doc#1"]).answer("so", &[]).done();
    let evaluation = run(&plan, traces);
    assert_eq!((evaluation.criteria[0].verdict, evaluation.exit_code), (Verdict::Error, 3));
}

#[test]
fn a_rate_that_should_be_low_is_bounded_from_above() {
    let criteria = "[{id: O, metric: order_violation_rate, target: '<= 5%', kind: confidence}]";
    let plan = plan(CASES, criteria, 59);
    let result = run(&plan, all_good(&plan)).criteria.remove(0);
    assert_eq!((result.verdict, result.successes), (Verdict::Pass, 0));
    assert_eq!(result.bound_text, "true rate at most 4.96 %");
    let violate = |place| {
        story(&plan, place).turn("q").out_of_order("perplexity_search").search(&["doc#1"]).answer("x", &[]).done()
    };
    let result = run(&plan, (0..59).map(violate)).criteria.remove(0);
    assert_eq!((result.verdict, result.violations.len()), (Verdict::Fail, 59));
    assert!(result.bound_text.starts_with("true rate at least 95."), "{}", result.bound_text);
}

#[test]
fn a_margin_changes_nothing_in_a_run_of_a_fixed_size() {
    let text = |criteria: &str| {
        let plan = plan(CASES, criteria, 59);
        run(&plan, all_good(&plan)).criteria.remove(0).bound_text
    };
    let criteria = confidence().replace("95%", "95.03%");
    for criteria in [criteria.replace("kind:", "margin: 5%, kind:"), criteria] {
        assert_eq!(text(&criteria), "true rate at least 95.04 %");
    }
}

#[test]
fn a_population_is_named_and_counts_cases() {
    let mut plan = plan(CASES, &confidence(), 100);
    plan.criteria.estimand = Estimand::Population;
    let result = run(&plan, all_good(&plan)).criteria.remove(0);
    assert_eq!(result.verdict, Verdict::Inconclusive, "a hundred repetitions of one case are one case");
    assert!(
        result.sentence.contains("met, not shown: 58 more cases at this rate would show it"),
        "{}",
        result.sentence
    );
}

#[test]
fn copies_of_a_case_are_no_further_cases() {
    let judged = |ask: fn(u32) -> String| {
        let cases: Vec<String> = (0..59).map(|number| format!("{{case: c{number}, ask: {}}}", ask(number))).collect();
        let mut plan = plan(&format!("[{}]", cases.join(", ")), &confidence(), 1);
        plan.criteria.estimand = Estimand::Population;
        run(&plan, all_good(&plan)).criteria.remove(0)
    };
    let (copies, distinct) = (judged(|_| "q".to_owned()), judged(|number| format!("q{number}")));
    assert_eq!((copies.verdict, copies.clusters), (Verdict::Inconclusive, 1), "{}", copies.sentence);
    let spaced = judged(|number| format!("'Q {}'", " ".repeat(number as usize)));
    assert_eq!(spaced.clusters, 1, "{}", spaced.sentence);
    assert_eq!((distinct.verdict, distinct.clusters), (Verdict::Pass, 59), "{}", distinct.sentence);
}

#[test]
fn what_cannot_be_judged_is_refused_with_a_reason() {
    for (criterion, part) in [
        ("{id: A, metric: latncy_p95, target: '<= 1s', kind: point}", "did you mean `latency_p95`"),
        ("{id: A, metric: latency_p95, target: '>= 95%', kind: point}", "a time, `<= 10s`"),
        ("{id: A, metric: case_pass_rate, target: '>= 95%', kind: invariant}", "kind: confidence"),
        ("{id: A, metric: case_pass_rate, target: '>= 95%', kind: point, floor: '90%'}", "only an invariant"),
    ] {
        let plan = plan(CASES, &format!("[{criterion}]"), 1);
        let message = Evaluator::new(&plan).err().expect(criterion).to_string();
        assert!(message.starts_with("A: ") && message.contains(part), "{message}");
    }
    let plan = plan(CASES, &confidence(), 1);
    let twice = evaluate(&plan, [good(&plan, 0), good(&plan, 0)].into_iter().map(Ok));
    assert!(twice.is_err_and(|error| error.to_string().contains("two traces")));
    let mut stranger = good(&plan, 0);
    stranger.trial = "s/other/tool-rag.base.1".into();
    assert!(
        evaluate(&plan, [Ok(stranger)].into_iter()).is_err_and(|error| error.to_string().contains("belong together"))
    );
}

#[test]
fn every_violation_is_listed_in_plan_order_whatever_the_order_of_arrival() {
    let plan = plan(CASES, &confidence(), 1_050);
    let traces: Vec<_> = (0..1_050).rev().map(|place| bad(&plan, place)).collect();
    let result = run(&plan, traces).criteria.remove(0);
    assert_eq!((result.violations.len(), result.causes[0].units), (1_050, 1_050));
    assert_eq!(result.violations[0].trial, plan.trials[0].id);
    assert_eq!(result.violations[999].trial, plan.trials[999].id);
}

fn worth(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Pass => 2,
        Verdict::Inconclusive => 1,
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_order_of_trials_changes_nothing(
        kinds in proptest::collection::vec(0..4_u8, 12),
        order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let criteria = "[{id: C, metric: mandatory_call_rate(knowledge_base_search), target: '>= 95%', kind: confidence}, \
                         {id: L, metric: latency_p50, target: '<= 2s', kind: point}]";
        let plan = plan(CASES, criteria, 12);
        let trace = |place: usize| match kinds[place] {
            0 => bad(&plan, place),
            1 => story(&plan, place).error(if place.is_multiple_of(2) { "x" } else { "y" }),
            2 => story(&plan, place).turn("q").search(&["d#1"]).deliver("a", &[], 1_000 * place as u64).done(),
            _ => good(&plan, place),
        };
        prop_assert_eq!(run(&plan, (0..12).map(trace)), run(&plan, order.into_iter().map(trace)));
    }

    #[test]
    fn a_trial_that_improves_never_worsens_a_verdict(failing in proptest::collection::vec(any::<bool>(), 62), better in 0..62_usize) {
        let criteria = format!("[{}, {}", &confidence()[1..confidence().len() - 1], &invariant()[1..]);
        let plan = plan(CASES, &criteria, 62);
        // Mostly good, so that intermediate verdicts occur.
        let fails = |place: usize| failing[place] && place.is_multiple_of(16);
        let trace = |place| if fails(place) { bad(&plan, place) } else { good(&plan, place) };
        let before = run(&plan, (0..62).map(trace));
        let after = run(&plan, (0..62).map(|place| if place == better { good(&plan, place) } else { trace(place) }));
        for (before, after) in before.criteria.iter().zip(&after.criteria) {
            prop_assert!(worth(after.verdict) >= worth(before.verdict));
        }
    }
}

#[test]
fn a_point_gate_is_advisory_unless_it_says_otherwise() {
    let of = |more: &str| {
        let criteria = format!("[{{id: P, {KB}, target: '>= 95%', kind: point{more}}}, {}", &invariant()[1..]);
        let plan = plan(CASES, &criteria, 60);
        run(&plan, (0..60).map(|place| if place < 6 { bad(&plan, place) } else { good(&plan, place) }))
    };
    let (advisory, required) = (of(""), of(", required: true"));
    assert_eq!((advisory.criteria[0].verdict, advisory.criteria[0].required), (Verdict::Fail, false));
    assert!(advisory.criteria[0].sentence.ends_with("by the observed figure alone (advisory)"));
    assert!(required.criteria[0].sentence.ends_with("by the observed figure alone"));
    assert!(
        !advisory.conclusion.contains('P') || !advisory.conclusion.contains("failed: P"),
        "{}",
        advisory.conclusion
    );
    assert!(required.conclusion.contains("failed: P"), "{}", required.conclusion);
}

#[test]
fn the_shipped_criteria_can_be_judged() {
    let mut plan = plan(CASES, "[]", 1);
    plan.criteria = serde_saphyr::from_str(include_str!("../flow/tool_rag/criteria.yaml")).expect("criteria");
    let evaluation = run(&plan, all_good(&plan));
    let ids: Vec<_> = evaluation.criteria.iter().map(|result| result.id.as_str()).collect();
    let before = ["SC-001", "SC-002", "SC-003", "SC-004", "SC-005", "SC-006"];
    let after = ["SC-006-found", "SC-006-harm", "SC-007", "SC-008", "CITATIONS", "ORDER", "QUERIES"];
    let sense = ["QUERIES-WEB", "QUERIES-APART", "KEYWORDS"];
    assert_eq!(ids, [&before[..], &after[..], &sense[..]].concat());
    assert_eq!(evaluation.exit_code, 1, "one trial leaves most of them unmeasured: {}", evaluation.conclusion);
}

#[test]
fn transitions_are_counted_in_the_order_of_the_machine_those_never_taken_too() {
    let mut plan = plan(CASES, &confidence(), 2);
    let machine =
        Machine::of("asking", &["asking", "done"], &[("asking", "give_up", "done"), ("asking", "answer", "done")]);
    plan.machines.insert("tool-rag".into(), serde_json::to_value(machine).expect("plain data"));
    let moved = || What::Moved(Moved { from: "asking".into(), on: "answer".into(), to: "done".into() });
    let tell = |place| story(&plan, place).turn("q").push(moved()).answer("so", &[]).done();
    let evaluation = run(&plan, [tell(0), tell(1)]);
    let times: Vec<_> = evaluation.transitions[0].taken.iter().map(|row| (row.on.as_str(), row.times)).collect();
    assert_eq!(times, [("give_up", 0), ("answer", 2)]);
    assert_eq!(evaluation.turn_times_us, [2_000_000, 2_000_000]);
    let lost = What::Moved(Moved { from: "asking".into(), on: "x".into(), to: "lost".into() });
    let evaluation = run(&plan, [story(&plan, 0).turn("q").push(lost).answer("so", &[]).done(), tell(1)]);
    assert_eq!(
        evaluation.trials.to_vec()[0].departures.len(),
        2,
        "an undeclared move, and an end in no terminal state"
    );
    assert_eq!(evaluation.trials.to_vec()[0].verdict, Verdict::Fail);
}

#[test]
fn trials_can_be_examined_side_by_side() {
    fn shared<T: Send + Sync>(_: &T) {}
    let plan = plan(CASES, &confidence(), 8);
    let mut evaluator = Evaluator::new(&plan).expect("readable");
    let examiner = evaluator.examiner();
    shared(&examiner);
    let traces = all_good(&plan);
    let examined: Vec<_> = std::thread::scope(|scope| {
        let tasks: Vec<_> = traces.iter().map(|trace| scope.spawn(|| examiner.examine(trace, &[]))).collect();
        tasks.into_iter().map(|task| task.join().expect("no panic").expect("planned")).collect()
    });
    for one in examined.into_iter().rev() {
        evaluator.add(one).expect("once");
    }
    assert_eq!(evaluator.finish(), run(&plan, traces));
}

#[test]
fn all_of_k_and_any_of_k_count_each_k_repetitions_of_a_case_once() {
    let gates = "[{id: ALL, metric: pass_all(4), target: '>= 50%', kind: point},
        {id: ANY, metric: pass_any(k=2), target: '>= 50%', kind: point},
        {id: MANY, metric: pass_all(9), target: '>= 50%', kind: point}]";
    let cases: Vec<String> = (0..6).map(|case| format!("{{case: c{case}, ask: q}}")).collect();
    let plan = plan(&format!("[{}]", cases.join(", ")), gates, 4);
    // Six cases of four trials, of which 4, 4, 3, 4, 1 and 4 pass.
    let passed = [4, 4, 3, 4, 1, 4];
    let traces = |order: &mut dyn Iterator<Item = usize>| -> Vec<Trace> {
        let one = |place: usize| {
            let trial = &plan.trials[place];
            let passes = trial.lane.repetition <= passed[trial.case];
            if passes { good(&plan, place) } else { story(&plan, place).turn("q").fail("timeout").done() }
        };
        order.map(one).collect()
    };
    let evaluation = run(&plan, traces(&mut (0..24)));
    let counts: Vec<_> = evaluation.criteria.iter().map(|row| (row.successes, row.n)).collect();
    assert_eq!(counts, [(4, 6), (11, 12), (0, 0)], "pass^4 of the table is 4/6; case 5 fails repetitions 3 and 4");
    assert_eq!(evaluation.criteria[0].violations[0].unit, "repetitions 1 to 4");
    assert!(
        evaluation.criteria[0].violations[0].note.starts_with("repetition 4: "),
        "{:?}",
        evaluation.criteria[0].violations
    );
    assert_eq!(evaluation.criteria[2].verdict, Verdict::NotMeasured);
    let backwards = run(&plan, traces(&mut (0..24).rev()));
    let again: Vec<_> = backwards.criteria.iter().map(|row| (row.successes, row.n)).collect();
    assert_eq!(again, counts);
}

#[test]
fn a_recording_that_came_to_another_verdict_when_it_was_made_is_named() {
    let plan = plan("[{case: a, ask: q, expect: {answer: {contains: [so]}}}]", "[]", 8);
    let traces = |noted: fn(usize) -> Option<&'static str>| {
        let mut all: Vec<_> = (0..8).map(|place| good(&plan, place)).collect();
        for (place, trace) in all.iter_mut().enumerate() {
            trace.evidence.noted_verdict = noted(place).map(str::to_owned);
        }
        evaluate(&plan, all.into_iter().map(Ok)).expect("judged")
    };
    let same = traces(|place| (place > 0).then_some("PASS"));
    assert!(same.trials.iter().all(|trial| trial.verdict == Verdict::Pass));
    assert_eq!(same.notes, Vec::<String>::new());
    let one = traces(|place| (place == 3).then_some("FAIL"));
    assert_eq!(one.notes, ["1 recording had another verdict when recorded: s/a/tool-rag.base.4 (FAIL, now PASS)"]);
    let mut missed: Vec<_> = (0..8).map(|place| good(&plan, place)).collect();
    missed[3].evidence.noted_verdict = Some("PASS".to_owned());
    let (message, cause) = ("cassette miss".to_owned(), "miss".to_owned());
    missed[3].end = crate::trace::TrialEnd::Error(crate::trace::TrialError {
        kind: crate::trace::TrialErrorKind::CassetteMiss,
        message,
        cause,
        detail: Vec::new(),
    });
    let missed = evaluate(&plan, missed.into_iter().map(Ok)).expect("judged");
    assert_eq!(missed.notes, Vec::<String>::new(), "a trial in ERROR came to no verdict");
    let all = traces(|_| Some("ERROR"));
    assert!(all.notes[0].starts_with("8 recordings had another verdict"), "{:?}", all.notes);
    assert!(all.notes[0].ends_with("tool-rag.base.5 (ERROR, now PASS) and 3 more"), "{:?}", all.notes);
}
