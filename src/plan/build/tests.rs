//! Plans made from loaded scenarios.

use super::*;
use crate::scenario::{CasePlace, Criteria, Project};
use crate::settings::DeclaredFault;

fn loaded() -> Loaded {
    let scenario: Scenario = serde_json::from_value(serde_json::json!({
        "scenario": "s", "flow": "tool-rag", "knowledge": "k", "model": {"provider": "p", "name": "m"},
        "covers": ["FR-003"], "excluded_from": {"SC-002": "why"}, "repeat": 2,
        "variants": {"feedback": {}, "forced": {"enforcement": "forced"}},
        "cases": [
            {"case": "one", "ask": "q", "expect": {"within": "1s"}, "covers": ["FR-003", "SC-001"]},
            {"case": "two", "turns": [{"ask": "q"}], "control": true, "repeat": 1}
        ]
    }))
    .expect("a scenario");
    let case_places = [5, 9].map(|line| CasePlace { table: None, line }).to_vec();
    let (tables, prompts) = (BTreeSet::new(), BTreeMap::new());
    let file = "s.yaml".to_owned();
    let source = LoadedScenario { file, scenario, case_places, tables, prompts, managed_retrieval: None };
    Loaded {
        partial: false,
        unmatched: Vec::new(),
        paths: Vec::new(),
        typed_criteria: None,
        root: ".".into(),
        project: Project::default(),
        project_file: None,
        scenarios: vec![source],
        criteria: Criteria::default(),
        criteria_file: String::new(),
        ratings: None,
        unrated: None,
        agreement: None,
    }
}

fn ids(selection: &Selection) -> Vec<String> {
    build(&loaded(), selection, 7).expect("a plan").trials.iter().map(|trial| trial.id.clone()).collect()
}

#[test]
fn a_run_until_decided_is_planned_in_complete_passes() {
    let loaded = loaded();
    let one = build(&loaded, &Selection { repeat: Some(1), ..Selection::default() }, 0).expect("a plan");
    let plan = build(&loaded, &Selection { passes: Some(3), ..Selection::default() }, 0).expect("a plan");
    assert_eq!(plan.version, PLAN_VERSION);
    let passes: Vec<_> = plan.passes().collect();
    assert_eq!(passes.len(), 3);
    for (number, pass) in (1..).zip(&passes) {
        assert!(pass.iter().all(|trial| trial.lane.repetition == number));
        assert_eq!(pass.len(), one.trials.len(), "every case, however often the scenario repeats it");
    }
    assert_eq!(passes[0], &one.trials[..], "seeds and ids too");
    assert_eq!(one.passes().count(), 1);
}

#[test]
fn a_long_plan_is_written_as_runs_of_repeats_and_reads_as_the_same_trials() {
    let plan = build(&loaded(), &Selection { repeat: Some(50), ..Selection::default() }, 7).expect("a plan");
    let (list, runs) = (plan.json(300).expect("JSON"), plan.json(299).expect("JSON"));
    assert_eq!(plan.trials.number(), 300);
    assert_eq!(serde_json::from_slice::<Plan>(&list).expect("read"), plan);
    let read: Plan = serde_json::from_slice(&runs).expect("read");
    assert_eq!(read.trials, plan.trials);
    assert_eq!(String::from_utf8_lossy(&runs).matches("\"to\": 50").count(), 4);
}

#[test]
fn trials_stand_in_the_order_case_variant_repetition_arm() {
    assert_eq!(
        ids(&Selection::default()),
        [
            "s/one/tool-rag.feedback.1",
            "s/one/tool-rag.feedback.2",
            "s/one/tool-rag.forced.1",
            "s/one/tool-rag.forced.2",
            "s/two/tool-rag.feedback.1",
            "s/two/tool-rag.feedback.1.control",
            "s/two/tool-rag.forced.1",
            "s/two/tool-rag.forced.1.control",
        ]
    );
}

#[test]
fn selecting_fewer_trials_changes_no_seed() {
    let all = build(&loaded(), &Selection::default(), 7).expect("a plan");
    let some = Selection { only: vec!["s/t*".into()], variant: Some("forced".into()), ..Selection::default() };
    let plan = build(&loaded(), &some, 7).expect("a plan");
    assert_eq!(plan.trials.len(), 2);
    assert_eq!((plan.scenarios[0].cases.len(), plan.scenarios[0].cases[0].line), (1, 9));
    for trial in &plan.trials {
        let same = all.trials.iter().find(|other| other.id == trial.id).expect("the same trial");
        assert_eq!(same.seed, trial.seed);
    }
    assert_ne!(trial_seed(7, "a"), trial_seed(8, "a"));
}

#[test]
fn cases_are_completed_from_their_scenario() {
    let plan = build(&loaded(), &Selection::default(), 7).expect("a plan");
    let case = &plan.scenarios[0].cases[0].case;
    assert_eq!(case.covers, ["FR-003", "SC-001"]);
    assert_eq!(case.excluded_from["SC-002"], "why");
    assert!(case.is_single() && case.expect.is_none());
    assert!(case.turns().eq([&case.steps[0][0].turns[0]]) && case.steps[0][0].turns[0].expect.is_some());
    assert_eq!(plan.scenarios[0].gates[0].id, "cases");
    assert_eq!(plan.scenarios[0].variants[1].about, "enforcement forced");
}

#[test]
fn a_flow_may_be_what_variants_differ_in() {
    let mut loaded = loaded();
    let scenario = &mut loaded.scenarios[0].scenario;
    let theirs = Variant { flow: Some(EXTERNAL.to_owned()), ..Variant::default() };
    scenario.variants = BTreeMap::from([("ours".to_owned(), Variant::default()), ("theirs".to_owned(), theirs)]);
    let target = serde_json::json!({"http": "http://127.0.0.1:1/chat"});
    scenario.target = Some(serde_json::from_value(target).expect("a target"));
    let selection = Selection { only: vec!["one".into()], repeat: Some(1), ..Selection::default() };
    let plan = build(&loaded, &selection, 0).expect("a plan");
    let found: Vec<&str> = plan.trials.iter().map(|trial| trial.id.as_str()).collect();
    assert_eq!(found, ["s/one/tool-rag.ours.1", "s/one/external.theirs.1"]);
    let scenario = &plan.scenarios[0];
    assert_eq!((scenario.variants[1].flow.as_str(), scenario.variants[1].about.as_str()), (EXTERNAL, "flow external"));
    assert!(scenario.agent.is_some());
    let one = Selection { flow: Some(EXTERNAL.to_owned()), ..selection };
    assert_eq!(build(&loaded, &one, 0).expect("a plan").trials.len(), 1);
}

#[test]
fn a_fault_in_a_lane_that_no_trial_of_its_cases_has_is_an_error() {
    let with = |lane: &str, on_case: bool| {
        let mut loaded = loaded();
        let scenario = &mut loaded.scenarios[0].scenario;
        let fault = DeclaredFault { lane: Some(lane.into()), ..DeclaredFault::new(crate::settings::FaultKind::Reset) };
        if on_case {
            scenario.cases[1].faults.push(fault);
        } else {
            scenario.faults.push(fault);
        }
        build(&loaded, &Selection { only: vec!["one".into()], ..Selection::default() }, 0)
    };
    for lane in ["tool-rag.forced", "tool-rag.feedback.2", "tool-rag"] {
        assert!(with(lane, false).is_ok(), "{lane}: case `one` has it");
    }
    for (lane, on_case) in
        [("forced", false), ("tool-rag.force", false), ("tool-rag.forced.3", false), ("tool-rag.forced.2", true)]
    {
        let said = format!("{:?}", with(lane, on_case).expect_err(lane)[0]);
        assert!(said.contains("strikes nothing") && said.contains("tool-rag.forced"), "{said}");
    }
}

#[test]
fn a_selection_of_nothing_is_an_error_that_helps() {
    let code = |selection: Selection| build(&loaded(), &selection, 0).expect_err("an error")[0].clone();
    let only = code(Selection { only: vec!["onee".into()], ..Selection::default() });
    assert_eq!((only.code, only.help[0].as_str()), ("unknown-case", "did you mean `--only one`?"));
    let beside = code(Selection { only: vec!["one".into(), "nosuch".into()], ..Selection::default() });
    assert_eq!((beside.code, beside.message.as_str()), ("unknown-case", "`--only nosuch` fits no case or trial"));
    let without = code(Selection { exclude: vec!["nosuch".into()], ..Selection::default() });
    assert_eq!(without.message, "`--exclude nosuch` fits no case or trial");
    let nothing = code(Selection { exclude: vec!["*".into()], ..Selection::default() });
    assert_eq!(nothing.code, "nothing-selected");
    let variant = code(Selection { variant: Some("forcd".into()), ..Selection::default() });
    assert_eq!(variant.code, "unknown-variant");
    assert_eq!(code(Selection { flow: Some("react".into()), ..Selection::default() }).code, "unknown-flow");
}

#[test]
fn chosen_trials_and_repetitions_win_over_the_scenario() {
    let chosen =
        Selection { trials: Some(BTreeSet::from(["s/one/tool-rag.forced.2".to_owned()])), ..Selection::default() };
    assert_eq!(ids(&chosen), ["s/one/tool-rag.forced.2"]);
    let more = Selection { repeat: Some(3), only: vec!["one".into()], ..Selection::default() };
    assert_eq!(ids(&more).len(), 6);
}
