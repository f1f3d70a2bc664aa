//! Trials that were drawn more than once: the draw that counts, and the results of the others.
//!
//! A trial that is re-run while nothing under test has changed keeps its first draw. Where every trial of a scenario
//! is drawn in one run, the new draws count, and earlier ones are reported.

use super::{TrialResults, Verdict};
use crate::trace::text::{count, listed};
use crate::trace::{self, Evidence, Mode, is_zero};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of trials that a sentence names.
const NAMED: usize = 5;

/// The draws of one trial other than the one that counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draws {
    /// Results of earlier draws, in order: a verdict each, or `unknown`.
    #[serde(rename = "earlier_draws", alias = "earlier", default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// Results of later re-runs, in order; none of these counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_again: Vec<String>,
    /// Number of earlier draws that ended in ERROR.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replaced_errors: u32,
}

impl Draws {
    /// Reads the draws from the evidence of a trace.
    pub(super) fn of(evidence: &Evidence) -> Self {
        let Evidence { earlier_takes, run_again, replaced_errors, .. } = evidence;
        Self { earlier: earlier_takes.clone(), run_again: run_again.clone(), replaced_errors: *replaced_errors }
    }

    /// Whether the trial was drawn once and never ended in ERROR before.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Text for reports: `draw 3; draws 1, 2: FAIL`; `None` if it was drawn once.
    pub fn words(&self) -> Option<String> {
        trace::draws(&self.earlier, &self.run_again, self.replaced_errors)
    }
}

/// The trials of a run that were drawn more than once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redrawn {
    /// Trials that were re-run and keep their first draw.
    pub run_again: u64,
    /// Number of these that passed when last run.
    pub run_again_passed: u64,
    /// Trials whose second or later draw counts and whose earlier draw did not pass.
    pub failed_before: u64,
    /// Re-runs of trials in ERROR, counting each re-run.
    pub replaced_errors: u64,
}

impl Redrawn {
    /// Counts the draws of all trials. A trial in ERROR has no draw in this run, so it was not drawn again.
    pub(super) fn of(trials: &TrialResults) -> Self {
        let mut all = Self::default();
        for trial in trials {
            let Draws { earlier, run_again, replaced_errors } = &*trial.draws;
            if let Some(last) = run_again.last() {
                all.run_again += 1;
                all.run_again_passed += u64::from(last == Verdict::Pass.as_str());
            }
            let failed = earlier.iter().any(|verdict| verdict == Verdict::Fail.as_str());
            all.failed_before += u64::from(failed && trial.verdict != Verdict::Error);
            all.replaced_errors += u64::from(*replaced_errors);
        }
        all
    }

    /// Whether all counts are 0.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Text after the verdict line; empty if all counts are 0.
    pub(super) fn words(&self) -> String {
        let mut said = String::new();
        if self.run_again > 0 {
            let trials = count(self.run_again, "trial", "trials");
            said += &format!("; first draws count: {trials} run again, {} of them PASS", self.run_again_passed);
        }
        if self.failed_before > 0 {
            let trials = count(self.failed_before, "trial", "trials");
            said += &format!("; drawn again: {trials} of which an earlier draw was FAIL");
        }
        if self.replaced_errors > 0 {
            said += &format!("; {} run again", count(self.replaced_errors, "outage", "outages"));
        }
        said
    }
}

/// The trials of a live run that fail now and passed in their first draw, in words; `None` if there are none.
pub(super) fn fallen(trials: &TrialResults) -> Option<String> {
    let live = Mode::Live.to_string();
    let failed = |draws: &Draws| draws.run_again.last().is_some_and(|last| last == Verdict::Fail.as_str());
    let passed = trials.iter().filter(|one| one.verdict == Verdict::Pass && one.evidence.starts_with(&live));
    let names: Vec<String> = passed.filter(|one| failed(&one.draws)).map(|one| one.id.clone().into_owned()).collect();
    (!names.is_empty()).then(|| format!("FAIL in this run, though the first draw passed: {}", listed(&names, NAMED)))
}

#[cfg(test)]
mod tests {
    use crate::gate::evaluate;
    use crate::metric::sample::{good, plan};
    use crate::trace::{TrialEnd, TrialError, TrialErrorKind};

    #[test]
    fn trials_that_were_run_again_and_outages_are_counted() {
        let plan = plan("[{case: one, ask: q}]", "[]", 2);
        let trace = |place: usize| {
            let mut trace = good(&plan, place);
            trace.evidence.run_again = vec![["PASS", "FAIL"][place].into()];
            trace.evidence.replaced_errors = 2;
            Ok(trace)
        };
        let found = evaluate(&plan, (0..2).map(trace)).expect("judged").redrawn;
        assert_eq!((found.run_again, found.run_again_passed, found.replaced_errors), (2, 1, 4));
    }

    #[test]
    fn a_trial_that_was_not_run_was_not_drawn_again() {
        let plan = plan("[{case: one, ask: q}]", "[]", 2);
        let trace = |place: usize, is_run: bool| {
            let mut trace = good(&plan, place);
            trace.evidence.earlier_takes = vec!["FAIL".into()];
            if !is_run {
                let (kind, message) = (TrialErrorKind::Stopped, "not run".to_owned());
                trace.end = TrialEnd::Error(TrialError { kind, cause: message.clone(), message, detail: Vec::new() });
            }
            Ok(trace)
        };
        let of = |is_run: [bool; 2]| {
            let found = evaluate(&plan, (0..2).map(|place| trace(place, is_run[place]))).expect("judged");
            let notes = found.notes.iter().filter(|note| note.starts_with("drawn more than once")).count();
            (found.redrawn.failed_before, found.conclusion.contains("drawn again"), notes)
        };
        assert_eq!(of([false, false]), (0, false, 0));
        assert_eq!(of([true, false]), (1, true, 1));
    }
}
