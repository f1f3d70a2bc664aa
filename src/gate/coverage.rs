//! Coverage of transitions of each flow's machine, and of requirements.

use super::{CaseCounts, RequirementCoverage, TransitionCount, TransitionCoverage, TrialResults, Verdict};
use crate::plan::Plan;
use crate::trace::state_machine::Machine;
use crate::trace::{Arm, Trace, What};
use std::collections::BTreeMap;

/// Indices of the declared transitions that a trace took, in order; undeclared moves are departures and not included.
pub(super) fn taken(machine: &Machine, trace: &Trace) -> Vec<u32> {
    let moves = trace.events.iter().filter_map(|event| match &event.what {
        What::Moved(moved) => machine
            .transitions
            .iter()
            .position(|row| row.from == moved.from && row.on == moved.on && row.to == moved.to),
        _ => None,
    });
    moves.map(|index| index as u32).collect()
}

/// Counts of each declared transition, in the machine's order, from counts by flow.
pub(super) fn transitions(
    machines: &BTreeMap<String, Machine>,
    counts: &BTreeMap<String, Vec<u64>>,
) -> Vec<TransitionCoverage> {
    let flow = |(name, machine): (&String, &Machine)| {
        let times = |index: usize| counts.get(name).and_then(|all| all.get(index)).copied().unwrap_or(0);
        let row = |(index, row): (usize, &crate::trace::state_machine::Transition)| TransitionCount {
            from: row.from.clone(),
            on: row.on.clone(),
            to: row.to.clone(),
            times: times(index),
        };
        TransitionCoverage { flow: name.clone(), taken: machine.transitions.iter().enumerate().map(row).collect() }
    };
    machines.iter().map(flow).collect()
}

/// For each requirement the cases that name it, with trials passed and trials that PASS or FAIL (main arm). Includes
/// ids in `covers` that the project does not declare.
pub(super) fn requirements(plan: &Plan, trials: &TrialResults) -> Vec<RequirementCoverage> {
    let mut ended: BTreeMap<(usize, usize), (u32, u32)> = BTreeMap::new();
    for (planned, trial) in plan.trials.each().zip(trials) {
        let count = ended.entry((planned.scenario, planned.case)).or_default();
        let is_measured = !matches!(trial.verdict, Verdict::Error | Verdict::NotMeasured);
        if planned.arm == Arm::Main && is_measured {
            count.0 += u32::from(trial.verdict == Verdict::Pass);
            count.1 += 1;
        }
    }
    let mut covered: BTreeMap<&str, Vec<CaseCounts>> =
        plan.requirements.keys().map(|id| (id.as_str(), Vec::new())).collect();
    for ((scenario, case), (passed, trials)) in ended {
        let scenario = &plan.scenarios[scenario];
        let case = &scenario.cases[case].case;
        for id in &case.covers {
            let case = format!("{}/{}", scenario.name, case.case);
            covered.entry(id).or_default().push(CaseCounts { case, passed, trials });
        }
    }
    let row = |(id, cases): (&str, Vec<CaseCounts>)| RequirementCoverage {
        id: id.to_owned(),
        about: plan.requirements.get(id).cloned().unwrap_or_default(),
        source: plan.requirement_sources.get(id).cloned().unwrap_or_default(),
        cases,
        state: None,
        why: String::new(),
    };
    covered.into_iter().map(row).collect()
}
