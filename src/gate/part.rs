//! Describes partial runs, and rejects traces that do not belong to the plan.

use super::EvaluationError;
use crate::plan::{Plan, PlannedTrial};
use crate::trace::text::count;
use crate::trace::{Trace, TrialEnd, TrialError, TrialErrorKind};

/// Describes how a run of `planned` trials is partial; `errors` are those of the trials in ERROR (`None`: without a
/// trace). Empty for a complete run.
pub(super) fn part<'e>(plan: &Plan, planned: usize, errors: impl Iterator<Item = Option<&'e TrialError>>) -> String {
    let missing = errors.filter(|error| error.is_none_or(|error| error.kind == TrialErrorKind::Stopped)).count();
    let trials = count(planned as u64, "trial", "trials");
    // Whole scenarios need no text here: the conclusion lists what they do not decide.
    let selected = plan.part.as_ref().filter(|part| part.of > 0);
    let selected = selected.map(|part| format!("{planned} of {} trials, selected by {}", part.of, part.by));
    let missing = (missing > 0).then(|| format!("{missing} of {trials} not run"));
    [selected, missing].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A conclusion that begins with the part of a run that it speaks of; `part` is empty for a complete run.
pub(crate) fn of_part(part: &str, conclusion: String) -> String {
    if part.is_empty() { conclusion } else { format!("PART ({part}): {conclusion}") }
}

/// Rejects a trace made from another plan, or one that contradicts the plan.
pub(super) fn belongs(plan: &Plan, planned: &PlannedTrial, trace: &Trace) -> Result<(), EvaluationError> {
    if trace.plan != plan.id {
        return Err(EvaluationError::Foreign(trace.trial.clone()));
    }
    let contradiction = |what, planned: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
        let (trial, planned, found) = (trace.trial.clone(), planned.to_string(), found.to_string());
        Err(EvaluationError::Contradiction { trial, what, planned, found })
    };
    if trace.lane != planned.lane {
        return contradiction("lane", &planned.lane, &trace.lane);
    }
    let scenario = plan.scenario_of(planned).map_or("", |scenario| scenario.name.as_str());
    let case = plan.case_of(planned).map_or("", |case| case.case.as_str());
    if trace.scenario != scenario {
        return contradiction("scenario", &scenario, &trace.scenario);
    }
    if trace.case != case {
        return contradiction("case", &case, &trace.case);
    }
    match plan.mode {
        // A trial that could not be run may have ended before its replay.
        Some(mode) if trace.end == TrialEnd::Completed && mode != trace.evidence.mode => {
            contradiction("mode", &mode, &trace.evidence.mode)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::evaluate;
    use super::*;
    use crate::metric::sample::{good, plan};
    use crate::plan::Part;
    use crate::trace::Mode;

    fn sealed() -> (Plan, Vec<Trace>) {
        let mut plan = plan("[{case: a, ask: q}, {case: b, ask: q}]", "[]", 2);
        (plan.id, plan.mode) = ("0123456789abcdef".into(), Some(Mode::Replay));
        let traces = (0..4).map(|place| Trace { plan: plan.id.clone(), ..good(&plan, place) }).collect();
        (plan, traces)
    }

    /// The error for a run whose second trace was changed.
    fn refused(change: impl Fn(&mut Trace)) -> String {
        let (plan, mut traces) = sealed();
        change(&mut traces[1]);
        evaluate(&plan, traces.into_iter().map(Ok)).expect_err("it does not belong to the plan").to_string()
    }

    #[test]
    fn a_foreign_trace_a_second_one_and_one_that_contradicts_the_plan_are_errors() {
        let (plan, traces) = sealed();
        assert!(evaluate(&plan, traces.clone().into_iter().map(Ok)).is_ok());
        for other in ["", "fedcba9876543210"] {
            assert!(refused(|trace| trace.plan = other.into()).contains("is of another run"), "{other}");
        }
        assert!(refused(|trace| trace.lane.repetition = 7).contains("its lane is "));
        assert!(refused(|trace| trace.case = "b".into()).contains("its case is b, planned was a"));
        assert!(refused(|trace| trace.scenario = "other".into()).contains("its scenario is other"));
        assert!(refused(|trace| trace.evidence.mode = Mode::Live).contains("its mode is LIVE, planned was REPLAYED"));
        let twice = [traces[0].clone(), traces[0].clone()];
        let why = evaluate(&plan, twice.into_iter().map(Ok)).expect_err("one trial counts once").to_string();
        assert!(why.contains("there are two traces of"), "{why}");
    }

    #[test]
    fn a_part_is_said_to_be_one_and_a_whole_run_says_nothing() {
        let (mut plan, traces) = sealed();
        let told = |plan: &Plan, traces: &[Trace]| {
            let evaluation = evaluate(plan, traces.iter().cloned().map(Ok)).expect("judged");
            (evaluation.part, evaluation.conclusion)
        };
        assert_eq!(told(&plan, &traces).0, "");
        let (part, conclusion) = told(&plan, &traces[..3]);
        assert_eq!(part, "1 of 4 trials not run");
        assert!(conclusion.starts_with("PART (1 of 4 trials not run): "), "{conclusion}");
        plan.part = Some(Part { of: 90, by: "--only a".into(), cases: false, scenarios: false });
        assert_eq!(told(&plan, &traces).0, "4 of 90 trials, selected by --only a");
        plan.part = Some(Part { of: 0, by: String::new(), cases: false, scenarios: true });
        assert_eq!(told(&plan, &traces).0, "");
    }
}
