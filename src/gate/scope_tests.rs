//! Scope of a criterion: trials of its scenario and flow, of agents that have its tools, and not excluded.

use super::tests::{CASES, all_good, bad, confidence, run};
use super::{CaseCounts, Evaluator, Verdict};
use crate::metric::sample::{good, plan, story};
use crate::plan::{Part, PlannedVariant};
use crate::trace::{HeldCalls, Member, Role};

/// The criterion `SC-002` alone: for any flow, or for `tool-rag`.
fn respond(flow: &str) -> String {
    format!("[{{id: R, metric: first_attempt_rate(respond), target: '>= 95%', kind: confidence{flow}}}]")
}

#[test]
fn a_selection_of_cases_passes_if_a_required_criterion_counts_them() {
    for (metric, code) in [("first_attempt_rate(respond)", 0), ("retry_recovery", 1)] {
        let mut plan = plan(CASES, &respond("").replace("first_attempt_rate(respond)", metric), 1);
        plan.part = Some(Part { of: 9, by: "--only a".into(), cases: true, scenarios: false });
        let evaluation = run(&plan, all_good(&plan));
        assert_eq!(evaluation.exit_code, code, "{metric}: {}", evaluation.conclusion);
    }
}

#[test]
fn a_metric_is_found_as_the_plan_writes_it() {
    let plan = plan(CASES, &respond(""), 1);
    let examiner = Evaluator::new(&plan).expect("a plan").examiner();
    assert_eq!(examiner.metric("first_attempt_rate(respond)").map(|metric| metric.units), Some("queries"));
    assert!(examiner.metric("first_attempt_rate").is_none());
}

#[test]
fn only_a_recording_that_answered_dates_a_run_with_held_services() {
    let plan = plan(CASES, &confidence(), 2);
    let held = |place: usize, recorded: u32, day: &str| {
        let mut trace = good(&plan, place);
        let recorded_at = Some(format!("{day}T08:00:00Z"));
        let services = vec!["model".to_owned()];
        trace.evidence.held =
            Some(HeldCalls { services, lane: None, recorded_at, recorded, forced: 0, new: 1 - recorded });
        trace
    };
    let held = run(&plan, [held(0, 1, "2026-11-21"), held(1, 0, "2026-11-22")]).held.expect("held calls");
    assert_eq!((held.held, held.new, held.recorded_on), (1, 1, vec!["2026-11-21".to_owned()]));
}

#[test]
fn a_criterion_of_a_flow_counts_no_trial_of_another_in_error_or_not() {
    for (flow, n) in [("", 4), (", flow: tool-rag", 3)] {
        let mut plan = plan(CASES, &respond(flow), 4);
        plan.trials[3].lane.flow = "other".into();
        let result = run(&plan, all_good(&plan)).criteria.remove(0);
        assert_eq!(result.n, n, "{flow}");
        let mut traces = all_good(&plan);
        traces[3] = story(&plan, 3).error("x");
        let result = run(&plan, traces).criteria.remove(0);
        let verdict = if n == 4 { Verdict::Error } else { Verdict::Inconclusive };
        assert_eq!((result.verdict, result.n), (verdict, 3), "{flow}: {}", result.sentence);
    }
}

#[test]
fn a_trial_in_error_of_an_agent_without_a_response_tool_is_out_of_scope_and_no_error_of_the_criterion() {
    let plan = plan(CASES, &respond(""), 4);
    let mut traces = all_good(&plan);
    traces[2] = story(&plan, 2).error("x");
    let result = run(&plan, traces.clone()).criteria.remove(0);
    assert_eq!((result.verdict, result.out_of_scope), (Verdict::Error, 0), "its agent has the tool");
    traces[2].roles.retain(|_, role| *role != Role::Respond);
    let evaluation = run(&plan, traces.clone());
    let result = &evaluation.criteria[0];
    assert_eq!((result.verdict, result.n, result.out_of_scope), (Verdict::Inconclusive, 3, 1), "{}", result.sentence);
    assert_eq!(evaluation.exit_code, 3, "the trial is in ERROR all the same");
    traces[2].roles.clear();
    let result = run(&plan, traces).criteria.remove(0);
    assert_eq!(result.verdict, Verdict::Error, "nothing is known of its tools: nothing is left out");
}

#[test]
fn an_agent_that_offers_a_tool_in_some_trials_alone_lost_it_in_the_others() {
    let plan = plan(CASES, "[{id: M, metric: mandatory_call_rate(knowledge), target: '= 100%', kind: point}]", 4);
    let result = |offered: fn(Role) -> bool, more: Option<&str>, lost: &[usize]| {
        let mut traces = all_good(&plan);
        for (place, trace) in traces.iter_mut().enumerate() {
            let is_lost = lost.contains(&place);
            if is_lost {
                *trace = story(&plan, place).turn("q").answer("from memory", &[]).done();
            }
            let tools = trace.roles.iter().filter(|(_, role)| !is_lost || offered(**role));
            let tools = tools.map(|(tool, _)| tool.clone()).chain(more.filter(|_| is_lost).map(str::to_owned));
            trace.offered = Some(tools.collect());
        }
        let result = run(&plan, traces).criteria.remove(0);
        (result.verdict, result.n, result.successes, result.out_of_scope, result.sentence)
    };
    let (verdict, n, successes, out_of_scope, sentence) = result(|role| role != Role::Knowledge, None, &[1, 3]);
    assert_eq!((verdict, n, successes, out_of_scope), (Verdict::Fail, 4, 2, 0), "{sentence}");
    let (_, n, _, out_of_scope, sentence) = result(|role| role != Role::Knowledge, Some("send_coupon"), &[1, 3]);
    assert_eq!((n, out_of_scope), (2, 2), "another agent, which has tools that the first lacks: {sentence}");
    let (_, n, _, out_of_scope, sentence) = result(|_| false, None, &[0, 1, 2, 3]);
    assert_eq!((n, out_of_scope), (0, 4), "it has no such tool at all: {sentence}");
}

#[test]
fn a_trace_that_lacks_what_a_metric_needs_is_no_unit_and_its_criterion_names_the_member() {
    let plan = plan(CASES, &respond(""), 4);
    let mut traces = all_good(&plan);
    traces[2].absent = Some(vec![Member::Feedback]);
    let result = run(&plan, traces.clone()).criteria.remove(0);
    assert_eq!((result.n, result.successes, result.out_of_scope), (3, 3, 1), "{}", result.sentence);
    let words = "the trace does not show which messages to the model are the agent's own feedback (turns[].feedback)";
    assert!(result.sentence.contains(&format!("1 trial out of scope ({words})")), "{}", result.sentence);
    for trace in &mut traces {
        trace.absent = Some(vec![Member::Feedback]);
    }
    let result = run(&plan, traces.clone()).criteria.remove(0);
    assert_eq!((result.verdict, result.n), (Verdict::NotMeasured, 0));
    assert_eq!(result.sentence, format!("nothing measured: {words}"));
    // A member that the metric does not read hides nothing, and neither does an empty list.
    for absent in [vec![Member::Took, Member::Log], Vec::new()] {
        for trace in &mut traces {
            trace.absent = Some(absent.clone());
        }
        assert_eq!(run(&plan, traces.clone()).criteria.remove(0).n, 4);
    }
}

#[test]
fn excluded_cases_are_counted_apart_and_shown() {
    let cases = "[{case: a, ask: q, expect: {within: 60s}}, \
                  {case: b, ask: q, expect: {within: 60s}, excluded_from: {C: shows the refusal}}]";
    let plan = plan(cases, &confidence(), 59);
    let traces = (0..118).map(|place| if place < 59 { good(&plan, place) } else { bad(&plan, place) });
    let evaluation = run(&plan, traces);
    let result = &evaluation.criteria[0];
    assert_eq!((result.verdict, result.n), (Verdict::Pass, 59));
    assert_eq!(result.with_excluded, "59/118 = 50.0 %");
    assert_eq!((result.excluded[0].case.as_str(), result.excluded[0].reason.as_str()), ("s/b", "shows the refusal"));
    assert!(result.sentence.ends_with("1 case left out (59/118 = 50.0 % with them)"), "{}", result.sentence);
}

#[test]
fn control_trials_count_for_their_own_metric_alone() {
    let cases = "[{case: a, control: true, turns: [{ask: 'I live in Turku'}, {ask: 'where do I live?', \
                  expect: {context: {probes: [{any_of: [turku]}]}}}]}]";
    let criteria = "[{id: P, metric: context_preservation, target: '= 100%', kind: invariant}, \
                    {id: V, metric: control_validity, target: '= 100%', kind: invariant}, \
                    {id: T, metric: turn_success_rate, target: '= 100%', kind: invariant}]";
    let plan = plan(cases, criteria, 1);
    let tell = |place, city: &str| {
        story(&plan, place)
            .turn("I live in Turku")
            .answer("noted", &[])
            .turn("where do I live?")
            .answer(city, &[])
            .done()
    };
    let forgot = story(&plan, 1)
        .turn("I live in Turku")
        .answer("noted", &[])
        .turn_shown("where do I live?", vec![])
        .answer("unknown", &[])
        .done();
    let evaluation = run(&plan, [tell(0, "In Turku."), forgot]);
    let verdicts: Vec<_> = evaluation.criteria.iter().map(|result| (result.verdict, result.n)).collect();
    assert_eq!(verdicts, [(Verdict::Pass, 1), (Verdict::Pass, 1), (Verdict::Pass, 2)]);
    assert_eq!(evaluation.trials.to_vec()[1].verdict, Verdict::Pass);
    let evaluation = run(&plan, [tell(0, "In Turku."), tell(1, "Turku, as always")]);
    assert_eq!((evaluation.criteria[1].verdict, evaluation.trials.to_vec()[1].verdict), (Verdict::Fail, Verdict::Fail));
}

#[test]
fn requirements_show_their_cases_and_those_without_any() {
    let cases = "[{case: a, covers: [FR-003, X-1], ask: q, expect: {within: 60s}}]";
    let mut plan = plan(cases, &confidence(), 3);
    plan.requirements = [("FR-003", "knowledge first"), ("FR-009", "respond by tool")]
        .map(|(id, about)| (id.into(), about.into()))
        .into();
    plan.requirement_sources = [("FR-003".into(), "the specification, page 4".into())].into();
    let mut traces = all_good(&plan);
    traces[1] = story(&plan, 1).turn("q").fail("timeout").done();
    traces.pop();
    let rows = run(&plan, traces).requirements;
    let sources: Vec<_> = rows.iter().map(|row| row.source.as_str()).collect();
    assert_eq!(sources, ["the specification, page 4", "", ""]);
    let rows: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.cases.clone())).collect();
    let case = vec![CaseCounts { case: "s/a".to_owned(), passed: 1, trials: 2 }];
    assert_eq!(rows, [("FR-003", case.clone()), ("FR-009", vec![]), ("X-1", case)]);
}

#[test]
fn variants_are_shown_side_by_side_in_declared_order() {
    let mut plan = plan(CASES, &confidence(), 4);
    plan.scenarios[0].variants = ["terse", "base"].map(|name| PlannedVariant::named(name, "", "tool-rag")).to_vec();
    for trial in &mut plan.trials[2..] {
        trial.lane.variant = "terse".into();
    }
    let traces = [good(&plan, 0), bad(&plan, 1), good(&plan, 2), good(&plan, 3)];
    let rows = run(&plan, traces).criteria.remove(0).by_variant;
    let rows: Vec<_> = rows.iter().map(|row| (row.variant.as_str(), row.successes, row.n)).collect();
    assert_eq!(rows, [("terse", 2, 2), ("base", 1, 2)]);
}

#[test]
fn a_gate_of_a_scenario_counts_its_own_trials() {
    let mut plan = plan(CASES, &confidence(), 60);
    let gate = "{id: cases, metric: case_pass_rate, target: '>= 100%', kind: invariant}";
    plan.scenarios[0].gates.push(serde_saphyr::from_str(gate).expect("gate"));
    let mut other = plan.scenarios[0].clone();
    other.name = "empty".into();
    plan.scenarios.push(other);
    let evaluation = run(&plan, all_good(&plan));
    let rows: Vec<_> = evaluation.gates.iter().map(|gate| (gate.scenario.as_deref(), gate.verdict, gate.n)).collect();
    assert_eq!(rows, [(Some("s"), Verdict::Pass, 60), (Some("empty"), Verdict::NotMeasured, 0)]);
    assert_eq!(evaluation.conclusion, "NOT_MEASURED: empty/cases");
}
