//! Runs of repeats equal the lists that they represent.

use super::*;
use proptest::prelude::*;

const SEED: u64 = 7;

fn trial(case: usize, variant: &str, repetition: u32, arm: Arm) -> PlannedTrial {
    let lane = Lane { flow: "tool-rag".into(), variant: variant.into(), repetition, arm };
    let id = format!("s/case-{case}/{lane}");
    let seed = trial_seed(SEED, &id);
    PlannedTrial { id, scenario: 0, case, lane, seed }
}

/// The trials of cases repeated so often, each with or without control.
fn list(cases: &[(u32, bool)]) -> Vec<PlannedTrial> {
    let mut trials = Vec::new();
    for (case, (repeat, control)) in cases.iter().enumerate() {
        for repetition in 1..=*repeat {
            trials.push(trial(case, "base", repetition, Arm::Main));
            trials.extend(control.then(|| trial(case, "base", repetition, Arm::Control)));
        }
    }
    trials
}

fn read(trials: &Trials) -> Trials {
    serde_json::from_str(&serde_json::to_string(trials).expect("written")).expect("read")
}

#[test]
fn a_case_repeated_a_thousand_times_is_one_entry() {
    let runs = Trials::from(list(&[(1_000, false), (1_000, true), (1, false)])).in_runs(SEED);
    let written = serde_json::to_value(&runs).expect("written");
    assert_eq!(written.as_array().map(Vec::len), Some(3));
    assert_eq!((&written[1]["id"], &written[1]["to"]), (&"s/case-1/tool-rag.base".into(), &1_000.into()));
    assert_eq!((&written[2]["id"], written[2].get("to")), (&"s/case-2/tool-rag.base.1".into(), None));
}

#[test]
fn what_does_not_follow_from_its_name_stands_for_itself() {
    let mut trials = list(&[(6, false)]);
    trials[2].seed += 1;
    trials[4].id = "elsewhere.5".into();
    let runs = Trials::from(trials.clone()).in_runs(SEED);
    assert_eq!(read(&runs).to_vec(), trials);
    assert_eq!((runs.place_of("elsewhere.5"), runs.place_of("s/case-0/tool-rag.base.5")), (Some(4), None));
}

#[test]
fn ids_that_no_trial_has_are_not_found() {
    let runs = Trials::from(list(&[(6, false), (2, true)])).in_runs(SEED);
    for id in ["", ".", "s/case-0/tool-rag.base", "s/case-0/tool-rag.base.7", "s/case-0/tool-rag.base.01"] {
        assert_eq!(runs.place_of(id), None, "{id}");
    }
    assert_eq!(runs.place_of("s/case-0/tool-rag.base.1.control"), None);
    assert_eq!(runs.place_of("s/case-1/tool-rag.base.2.control"), Some(9));
    assert_eq!(runs.at(10), None);
}

#[test]
fn a_plan_of_more_trials_than_any_machine_could_run_is_refused() {
    let entry = |from: u32, to: u32| {
        let lane = serde_json::json!({"flow": "f", "variant": "v", "repetition": from});
        serde_json::json!([{"id": "s/c/f.v", "scenario": 0, "case": 0, "lane": lane, "seed": 1, "to": to}])
    };
    let refused = |value: serde_json::Value| serde_json::from_value::<Trials>(value).expect_err("refused").to_string();
    assert!(refused(entry(1, u32::MAX)).contains("more than"), "{}", refused(entry(1, u32::MAX)));
    assert!(refused(entry(3, 2)).contains("not in order"));
}

#[test]
fn trials_that_are_changed_are_a_list_again() {
    let mut runs = Trials::from(list(&[(5, false)])).in_runs(SEED);
    runs[1].seed = 99;
    assert_eq!((runs.at(1).map(|trial| trial.seed), runs.number()), (Some(99), 5));
    assert_eq!(read(&runs), runs);
}

proptest! {
    #[test]
    fn runs_are_the_list_that_they_were_made_of(
        cases in proptest::collection::vec((1_u32..6, any::<bool>()), 1..6), by_pass in any::<bool>(),
    ) {
        let mut trials = list(&cases);
        if by_pass {
            trials.sort_by_key(|trial| trial.lane.repetition);
        }
        let plain = Trials::from(trials.clone());
        let made = plain.in_runs(SEED);
        let runs = read(&made);
        prop_assert!(runs[..] == trials[..]);
        prop_assert_eq!(runs.number(), trials.len());
        prop_assert!(runs.each().eq(plain.each()));
        for (place, trial) in trials.iter().enumerate() {
            prop_assert_eq!(runs.at(place), Some(trial.clone()));
            prop_assert_eq!((runs.place_of(&trial.id), plain.place_of(&trial.id)), (Some(place), Some(place)));
        }
    }
}
