//! Groups trials in ERROR by cause.

use super::ErrorGroup;
use crate::plan::Plan;
use crate::trace::{EXTERNAL, TrialError};
use std::collections::BTreeSet;

/// Error kind of a planned trial without a trace.
pub(super) const NOT_RUN: &str = "planned, and there is no trace of it";

/// Trials in ERROR by cause, most frequent first, then in plan order; `None` is a trial without a trace.
///
/// If one cause affects several cases, the re-record command of the first becomes one command for all.
pub(super) fn group(errors: Vec<(String, Option<TrialError>)>, plan: &Plan) -> Vec<ErrorGroup> {
    let mut groups: Vec<(Option<String>, ErrorGroup)> = Vec::new();
    // Calls in the recordings that each group missed; `None` if one does not say.
    let mut calls: Vec<Option<u64>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (trial, error) in errors {
        let cause = error.as_ref().map(|error| error.cause.clone());
        let place = *known.entry(cause.clone()).or_insert(groups.len());
        let held = error.as_ref().and_then(|error| error.detail.iter().find_map(|line| calls_held(line)));
        if place == groups.len() {
            calls.push(Some(0));
            let group = match error {
                Some(error) => ErrorGroup {
                    kind: error.kind.label().into(),
                    message: error.message,
                    detail: error.detail,
                    trials: Vec::new(),
                },
                None => ErrorGroup {
                    kind: "not run".into(),
                    message: NOT_RUN.into(),
                    detail: vec!["run it again, or put its line back into traces.jsonl".into()],
                    trials: Vec::new(),
                },
            };
            groups.push((cause, group));
        }
        groups[place].1.trials.push(trial);
        calls[place] = calls[place].zip(held).map(|(all, held)| all + held);
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
    for (group, calls) in groups.iter_mut().zip(calls) {
        record_all(group, calls, plan);
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.trials.len()));
    groups
}

/// The number of calls in a line that ends with `(about 4 calls)`: those of the recording that a trial missed, or in a line
/// for several trials of all their recordings.
pub(crate) fn calls_held(line: &str) -> Option<u64> {
    let (_, about) = line.rsplit_once("     (about ")?;
    about.split(' ').next()?.parse().ok()
}

fn record_all(group: &mut ErrorGroup, calls: Option<u64>, plan: &Plan) {
    let Some(line) = group.detail.iter().position(|line| line.contains("ragcheck run ") && line.contains("record"))
    else {
        return;
    };
    let place = |id: &String| plan.trials.at(plan.trials.place_of(id)?);
    let hit = || group.trials.iter().filter_map(place);
    let recordings: BTreeSet<_> = hit().map(|trial| (trial.scenario, trial.case, trial.lane.variant)).collect();
    if recordings.len() > 1 {
        let files: BTreeSet<&str> = hit().map(|trial| plan.scenarios[trial.scenario].file.as_str()).collect();
        let files = files.into_iter().collect::<Vec<_>>().join(" ");
        let agents = hit().filter(|trial| trial.lane.flow == EXTERNAL).filter_map(|trial| {
            let agent = plan.scenarios[trial.scenario].agent.as_ref()?;
            agent.target.server().map(|server| format!(" --agent {server}"))
        });
        let agents: BTreeSet<String> = agents.collect();
        let (trials, agents) = (group.trials.len(), agents.into_iter().collect::<String>());
        let about = calls.map_or_else(String::new, |calls| format!("     (about {calls} calls)"));
        group.detail[line] = format!("record all {trials}: ragcheck run {files} --mode record --failed{agents}{about}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::plan;
    use crate::trace::TrialErrorKind;

    #[test]
    fn one_command_records_all_cases_that_one_cause_stopped() {
        let plan = plan("[{case: a, ask: q}, {case: b, ask: q}]", "[]", 1);
        let line = |calls: usize| {
            format!("record it again: ragcheck run scenarios/s.yaml --mode record     (about {calls} calls)")
        };
        let miss = |place: usize| {
            let error = TrialError {
                kind: TrialErrorKind::CassetteMiss,
                message: "miss".into(),
                cause: "miss".into(),
                detail: vec![line(4 + place)],
            };
            (plan.trials[place].id.clone(), Some(error))
        };
        let detail = |places: &[usize]| group(places.iter().copied().map(miss).collect(), &plan)[0].detail.clone();
        assert_eq!(detail(&[0]), [line(4)]);
        let all = "record all 2: ragcheck run scenarios/s.yaml --mode record --failed     (about 9 calls)";
        assert_eq!(detail(&[0, 1]), [all]);
    }
}
