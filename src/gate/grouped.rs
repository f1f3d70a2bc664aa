//! Units of several repetitions: repetitions 1 to k of a case form one unit, k + 1 to 2k the next.

use super::criterion::CriterionSums;
use super::unshown::Unshown;
use super::{CriterionResult, Verdict};
use crate::metric::{Group, Observation, Outcome};
use crate::plan::{Plan, PlannedTrial};
use crate::trace::Evidence;
use crate::trace::text::count;

/// Key of a unit of several repetitions: scenario, case, variant, and the unit's number.
pub(super) type UnitKey = (usize, usize, String, u32);

impl CriterionSums<'_> {
    /// Adds the units of the trial at a place of the plan, those of a group once it is whole.
    pub(super) fn add(
        &mut self,
        group: Option<Group>,
        (place, trial): (usize, &PlannedTrial),
        units: &[Observation],
        excluded: bool,
        from: (&Evidence, u64),
    ) {
        let target = self.target;
        let Some(group) = group else {
            return self.tally_of(trial.lane.repetition).add(place, trial, units, target, excluded, from);
        };
        let (repetition, units) = self.units_of(group, trial, units);
        self.tally_of(repetition).add(place, trial, &units, target, excluded, from);
    }

    /// The unit of several repetitions that a trial completes, if it does, with that unit's last repetition. The order of
    /// trials affects only which of them completes the unit.
    fn units_of(&mut self, group: Group, trial: &PlannedTrial, seen: &[Observation]) -> (u32, Vec<Observation>) {
        let own = trial.lane.repetition;
        let unit = (own - 1) / group.size;
        let key = (trial.scenario, trial.case, trial.lane.variant.clone(), unit);
        let open = self.open.entry(key.clone()).or_default();
        open.extend(seen.iter().cloned().map(|one| (own, one)));
        if open.len() < group.size as usize {
            return (own, Vec::new());
        }
        let mut complete = self.open.remove(&key).unwrap_or_default();
        complete.sort_by_key(|(repetition, _)| *repetition);
        let failed = |(_, one): &&(u32, Observation)| one.outcome != Outcome::Success;
        let first =
            complete.iter().find(failed).map(|(repetition, one)| format!("repetition {repetition}: {}", one.note));
        let holds =
            if group.all { first.is_none() } else { complete.iter().any(|(_, one)| one.outcome == Outcome::Success) };
        let (from, to) = (unit * group.size + 1, (unit + 1) * group.size);
        let name = format!("repetitions {from} to {to}");
        let one =
            if holds { Observation::success(name) } else { Observation::failure(name, first.unwrap_or_default()) };
        (to, vec![one])
    }

    /// Reports how many trials fill no unit. Such trials prevent a PASS, unless the run itself decided their number:
    /// otherwise failing trials could be chosen as the ones left over.
    pub(super) fn leave_over(&self, result: &mut CriterionResult, group: Group, plan: &Plan) {
        let counts = |(scenario, case, ..): &&UnitKey| {
            !plan.scenarios[*scenario].cases[*case].case.excluded_from.contains_key(&self.written.id)
        };
        let over: usize = self.open.iter().filter(|(key, _)| counts(key)).map(|(_, trials)| trials.len()).sum();
        if over == 0 {
            return;
        }
        let (trials, size) = (count(over as u64, "trial", "trials"), group.size);
        let mut open = String::new();
        if result.verdict == Verdict::Pass && self.design.is_none() {
            (result.verdict, result.unshown) = (Verdict::Inconclusive, Some(Unshown::CannotPass));
            open = format!(": inconclusive until every case is repeated a multiple of {size} times");
        }
        result.sentence =
            format!("{}; {trials} left out, since {size} repetitions are one unit{open}", result.sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::super::tests::{CASES, all_good, run};
    use super::super::unshown::Unshown;
    use crate::metric::sample::{good, plan, story};

    #[test]
    fn repetitions_that_fill_no_unit_are_said_to_be_left_out() {
        let criteria = "[{id: K, metric: pass_all(k=3), target: '>= 50%', kind: confidence}]";
        let plan = plan(CASES, criteria, 7);
        let result = run(&plan, all_good(&plan)).criteria.remove(0);
        assert_eq!((result.n, result.clusters), (2, 2));
        assert!(
            result.sentence.contains("; 1 trial left out, since 3 repetitions are one unit"),
            "{}",
            result.sentence
        );
    }

    #[test]
    fn repetitions_that_fill_no_unit_let_nothing_pass() {
        let criteria = "[{id: K, metric: pass_all(k=2), target: '= 100%', kind: invariant}]";
        let failing = |repetitions: u32| {
            let plan = plan(CASES, criteria, repetitions);
            let last = plan.trials.len() - 1;
            let fails = |place| story(&plan, place).turn("q").fail("timeout").done();
            let trace = |place| if place == last { fails(place) } else { good(&plan, place) };
            run(&plan, (0..plan.trials.len()).map(trace)).criteria.remove(0)
        };
        let over = failing(3);
        assert_eq!(over.verdict, Verdict::Inconclusive, "{}", over.sentence);
        assert_eq!(over.unshown, Some(Unshown::CannotPass), "its figure is not below the target");
        assert!(over.sentence.ends_with("until every case is repeated a multiple of 2 times"), "{}", over.sentence);
        assert_eq!(failing(4).verdict, Verdict::Fail);
        let mut excluded = plan(CASES, criteria, 2);
        let mut out = excluded.scenarios[0].cases[0].clone();
        out.case.case = "out".into();
        out.case.excluded_from.insert("K".into(), "why not".into());
        excluded.scenarios[0].cases.push(out);
        let mut trials = excluded.trials.to_vec();
        trials.push(crate::plan::PlannedTrial {
            id: "s/out/tool-rag.base.1".into(),
            case: excluded.scenarios[0].cases.len() - 1,
            ..trials[0].clone()
        });
        excluded.trials = trials.into();
        let result = run(&excluded, all_good(&excluded)).criteria.remove(0);
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.sentence);
    }
}
