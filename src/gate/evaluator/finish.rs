//! Aggregated trials as an [`Evaluation`]: results of criteria, exit code, conclusion, notes.

use super::Evaluator;
use crate::gate::conclusion::{
    asked_of_others, conclude, conclude_selection, left_out, not_counted, not_decided, relax_for_scenarios,
    relax_for_selection, relax_unasked,
};
use crate::gate::coverage;
use crate::gate::criterion::CriterionSums;
use crate::gate::draws::fallen;
use crate::gate::error_groups::{NOT_RUN, group};
use crate::gate::examine::blank;
use crate::gate::grades::item_grades;
use crate::gate::held::HeldRun;
use crate::gate::latency::Kind;
use crate::gate::notes::{changed, older, redrawn_trials};
use crate::gate::part::{of_part, part};
use crate::gate::repeats::repeats;
use crate::gate::{
    CriterionResult, Evaluation, KindCount, RUN_VERSION, Redrawn, Spending, Stopped, TrialResult, TrialRow, Verdict,
};
use crate::metric::Metric;
use crate::trace::Arm;
use crate::trace::text::count;
use std::sync::Arc;

impl Evaluator<'_> {
    /// Closes the passes that were needed; returns the number of their trials and the report on stopping.
    fn stop(&mut self) -> Option<(usize, Stopped)> {
        let plan = self.examiner.plan;
        let max = plan.stopping?.max_passes;
        while self.closed < max && !self.is_settled() {
            self.end_of_pass(self.closed + 1);
        }
        let needed = plan.trials.each().take_while(|trial| trial.repetition <= self.closed).count();
        let trials = (needed as u64, plan.trials.number() as u64);
        Some((needed, Stopped::new((self.closed, max), trials)))
    }

    /// Returns the evaluation once every trace has been added. A planned trial without one is in ERROR, unless a run
    /// until decided did not need it.
    pub fn finish(mut self) -> Evaluation {
        let plan = self.examiner.plan;
        let stopped = self.stop();
        if stopped.is_none() {
            self.count_not_offered(u32::MAX);
        }
        let (needed, stopped) =
            stopped.map_or((plan.trials.number(), None), |(needed, stopped)| (needed, Some(stopped)));
        self.trials.truncate(needed);
        let mut errors = Vec::new();
        for place in 0..needed {
            let verdict = self.trials.verdict(place);
            if verdict.is_some_and(|verdict| verdict != Verdict::Error) && !self.errors.contains_key(&place) {
                continue;
            }
            if let Some(planned) = plan.trials.at(place) {
                if verdict.is_none() {
                    self.trials.put(place, TrialResult { error: NOT_RUN.into(), ..blank(plan, &planned) });
                }
                errors.push((planned.id, self.errors.remove(&place)));
                if stopped.is_none() {
                    self.count_error(place);
                }
            }
        }
        let trials = std::mem::take(&mut self.trials);
        let in_error = errors.len() as u64;
        // A stable sort keeps the turns of a trial in order.
        self.turn_times.sort_by_key(|(place, ..)| *place);
        let metrics = &self.examiner.metrics;
        let (criteria, closed) = (self.criteria.iter_mut(), self.closed);
        let mut results: Vec<_> =
            criteria.map(|criterion| criterion.result(plan, &metrics[criterion.metric], closed)).collect();
        let required: Vec<bool> = results.iter().map(|result| result.required).collect();
        // In a run of selected cases, rates over all cases are shown and decide nothing.
        let selected = plan.part.as_ref().is_some_and(|part| part.cases) && plan.stopping.is_none();
        let some = plan.part.as_ref().is_some_and(|part| part.scenarios) && plan.stopping.is_none();
        // A criterion that applies to none of the selected trials decides nothing.
        let unasked: Vec<String> = match &plan.part {
            Some(_) => results.iter_mut().filter_map(relax_unasked).collect(),
            None => Vec::new(),
        };
        let mut at_end = asked_of_others(&unasked);
        let (mut exit_code, mut conclusion) = if selected {
            let shown = results.iter().any(|result| result.required && result.n > 0);
            let missed: Vec<String> = results.iter_mut().filter_map(relax_for_selection).collect();
            let failed = trials.iter().filter(|trial| trial.verdict == Verdict::Fail).count() as u64;
            conclude_selection(results.iter(), &missed, shown, (failed, in_error, needed as u64))
        } else {
            let open: Vec<String> = results.iter_mut().filter(|_| some).filter_map(relax_for_scenarios).collect();
            // A self-test that holds is no gate that the agent passed.
            let counts = |(row, sums): &(&CriterionResult, &CriterionSums<'_>)| {
                !sums.written.self_test || row.verdict != Verdict::Pass
            };
            let counted = || results.iter().zip(&self.criteria).filter(counts).map(|(row, _)| row);
            let (code, said) = conclude(counted(), in_error, needed as u64, plan.criteria.undecided);
            if code == 0 {
                at_end.push_str(&left_out(counted()));
            }
            (code, said + &not_decided(&open))
        };
        if exit_code == 0 {
            // Its units are trials that meet their case's expectations.
            let counts_trials = |metric: &Metric| metric.reads_expectations && metric.arm == Arm::Main;
            let counted: Vec<_> = results
                .iter()
                .zip(&self.criteria)
                .zip(required)
                .filter(|((row, sums), required)| *required && row.n > 0 && counts_trials(&metrics[sums.metric]))
                .map(|((row, sums), _)| (row.scenario.as_deref(), sums.written))
                .collect();
            let is_counted = |trial: &TrialRow<'_>| {
                let of = |scenario: Option<&str>| scenario.is_none_or(|scenario| scenario == trial.scenario);
                counted.iter().any(|(scenario, written)| of(*scenario) && written.counts_flow(trial.lane.flow))
            };
            let failed = trials.iter().filter(|trial| trial.verdict == Verdict::Fail && trial.lane.arm == Arm::Main);
            conclusion.push_str(&not_counted(failed.filter(|trial| !is_counted(trial)).count() as u64));
        }
        let redrawn = Redrawn::of(&trials);
        conclusion.push_str(&redrawn.words());
        // What fails now is not shipped, whatever was drawn first; nor does it pass by being drawn again.
        if exit_code == 0
            && let Some(fallen) = fallen(&trials)
        {
            (exit_code, conclusion) = (1, format!("{fallen}; {conclusion}"));
        }
        let part = part(plan, needed, errors.iter().map(|(_, error)| error.as_ref()));
        conclusion = of_part(&part, conclusion);
        if let Some(changed) = &plan.changed_recordings {
            conclusion = format!("{conclusion}; {}", changed.words());
        }
        conclusion.push_str(&at_end);
        let gates = results.split_off(plan.criteria.criteria.len());
        let mut self_tests = Vec::new();
        let mut apart = |rows: Vec<CriterionResult>, written: &[CriterionSums<'_>]| -> Vec<CriterionResult> {
            let (own, others): (Vec<_>, Vec<_>) =
                rows.into_iter().zip(written).partition(|(_, sums)| sums.written.self_test);
            self_tests.extend(own.into_iter().map(|(row, _)| without_bound(row)));
            others.into_iter().map(|(row, _)| row).collect()
        };
        let (of_run, of_gates) = self.criteria.split_at(results.len());
        let (criteria, gates) = (apart(results, of_run), apart(gates, of_gates));
        let held = std::mem::take(&mut self.held).finish();
        Evaluation {
            version: RUN_VERSION,
            exit_code,
            conclusion,
            omissions: at_end,
            evidence: self.sources.entries().into_iter().chain(held.iter().flat_map(HeldRun::lines)).collect(),
            held,
            sources: self.sources.list(),
            notes: self
                .notes
                .iter()
                .map(|(note, n)| format!("{note} ({})", count(*n, "trial", "trials")))
                .chain(changed(plan, &self.changed))
                .chain(redrawn_trials(&trials))
                .chain(self.restarts.words())
                .chain(older(plan))
                .collect(),
            criteria,
            gates,
            self_tests,
            stopped,
            part,
            redrawn,
            restarts: self.restarts,
            errors: group(errors, plan),
            turn_kinds: kinds(&self.turn_times),
            turn_times_us: self.turn_times.iter().map(|(_, _, time)| *time).collect(),
            latency: self.latencies.finish(),
            transitions: coverage::transitions(&self.examiner.machines, &self.taken),
            requirements: coverage::requirements(plan, &trials),
            repeats: repeats(&trials),
            spending: Spending::of(plan, &trials),
            grades: item_grades(&self.examiner.grades),
            trials: Arc::new(trials),
        }
    }
}

/// A self-test as counts: its units are no sample of anything.
fn without_bound(row: CriterionResult) -> CriterionResult {
    let sentence = if row.verdict == Verdict::Pass { row.observed_text.clone() } else { row.sentence };
    CriterionResult { lower: None, upper: None, interval: None, bound_text: String::new(), sentence, ..row }
}

/// Run-length encoding of the kinds of evidence of turn times.
fn kinds(times: &[(u32, Kind, u64)]) -> Vec<KindCount> {
    let rows = times.chunk_by(|(_, one, _), (_, next, _)| one == next);
    let count = |row: &[(u32, Kind, u64)]| {
        row.first().map(|(_, kind, _)| KindCount { kind: kind.name(), turns: row.len() as u64 })
    };
    rows.filter_map(count).collect()
}
