//! Derives the exit code and its sentence from the verdicts.

use super::{CriterionResult, Unshown, Verdict};
use crate::scenario::criteria::Undecided;
use crate::trace::text::{count, listed};

/// Largest number of criteria that a conclusion names.
const NAMED: usize = 8;

/// The exit code for the verdicts and the reason in one sentence. `in_error` of `planned` trials are in ERROR.
///
/// Incomplete (3) takes precedence over failed (1), and failed over INCONCLUSIVE (4). The sentence says all that applies.
pub(super) fn conclude<'a>(
    results: impl Iterator<Item = &'a CriterionResult>,
    in_error: u64,
    planned: u64,
    undecided: Undecided,
) -> (u8, String) {
    let (mut broken, mut failed, mut empty) = (vec![], vec![], vec![]);
    let (mut met, mut below, mut lost) = (vec![], vec![], vec![]);
    let (mut held, mut asked, mut declared) = (0_u64, 0_u64, vec![]);
    for result in results {
        let name = result.key();
        if result.verdict == Verdict::NotMeasured && result.not_measured_ok {
            declared.push(name.clone());
        }
        if !result.required {
            continue;
        }
        asked += 1;
        match result.verdict {
            Verdict::Pass => held += 1,
            Verdict::Fail => failed.push(name),
            Verdict::NotMeasured if result.not_measured_ok => {}
            Verdict::NotMeasured => empty.push(name),
            Verdict::Inconclusive if result.sequential.as_ref().is_some_and(|one| one.cannot_pass) => lost.push(name),
            Verdict::Inconclusive => match result.unshown {
                Some(Unshown::Met) => met.push(name),
                Some(Unshown::CannotPass) => lost.push(name),
                Some(Unshown::Below) | None => below.push(name),
            },
            Verdict::Error => broken.push(name),
        }
    }
    let mut parts = Vec::new();
    let mut say = |names: &[String], what: &str| {
        if !names.is_empty() {
            parts.push(format!("{what}: {}", listed(names, NAMED)));
        }
    };
    say(&failed, "failed");
    say(&empty, "NOT_MEASURED");
    let fail = usize::from(!failed.is_empty()) + usize::from(!empty.is_empty());
    say(&below, "INCONCLUSIVE, below target");
    say(&met, "INCONCLUSIVE, met but not shown");
    say(&lost, "INCONCLUSIVE, and cannot pass any more");
    if in_error > 0 || !broken.is_empty() {
        let trials = count(planned, "trial", "trials");
        let mut text = format!("incomplete: {in_error} of {trials} in ERROR");
        if !broken.is_empty() {
            text.push_str("; cannot be judged: ");
            text.push_str(&listed(&broken, NAMED));
        }
        // Behind what fails, before what is undecided.
        parts.insert(fail, text);
        return (3, parts.join("; "));
    }
    if planned == 0 || asked == 0 {
        // Without a trial or an expectation there is no success to report.
        let what = if planned == 0 { "no trial was planned" } else { "no gate is required" };
        return (1, format!("{what}, so nothing was shown"));
    }
    if !failed.is_empty() || !empty.is_empty() {
        return (1, parts.join("; "));
    }
    // `warn` accepts a gate whose observed figures reach its target, beside others that are proven. It never covers a
    // gate below its target, one that cannot pass any more, or a run without proof of anything.
    let stays = !lost.is_empty() || !below.is_empty();
    if stays || !met.is_empty() && (undecided == Undecided::Fail || held == 0) {
        return (4, parts.join("; "));
    }
    if held == 0 {
        return (1, format!("nothing was shown: {} NOT_MEASURED, as declared", listed(&declared, NAMED)));
    }
    let passed = count(held, "required gate passed", "required gates passed");
    (0, passed + &also(&met, "met, not shown, and let through"))
}

/// A further part of a sentence; empty without names.
fn also(names: &[String], what: &str) -> String {
    if names.is_empty() { String::new() } else { format!("; {what}: {}", listed(names, NAMED)) }
}

/// Text at the end of the conclusion of a run that passes, where reports shorten it: what was declared as not measured,
/// and behind it the criteria with excluded cases.
pub(super) fn left_out<'a>(results: impl Iterator<Item = &'a CriterionResult>) -> String {
    let (mut declared, mut excluded) = (vec![], vec![]);
    for result in results {
        let name = result.key();
        if result.required && !result.excluded.is_empty() {
            excluded.push(format!("{name} ({})", count(result.excluded.len() as u64, "case", "cases")));
        }
        if result.verdict == Verdict::NotMeasured && result.not_measured_ok {
            declared.push(name);
        }
    }
    also(&declared, "NOT_MEASURED as declared") + &also(&excluded, "cases left out of")
}

/// Keeps a criterion required in a run of selected cases only if it is proven, or an invariant that one of the cases
/// violates.
///
/// Any other figure needs the unselected cases too. Returns the name of one that fails, for a message.
pub(super) fn relax_for_selection(result: &mut CriterionResult) -> Option<String> {
    let broken = result.verdict == Verdict::Fail && result.kind == "invariant";
    let was_required = result.required;
    result.required &= broken || matches!(result.verdict, Verdict::Pass | Verdict::Error);
    let missed = was_required && !result.required && result.verdict == Verdict::Fail;
    missed.then(|| result.key())
}

/// Makes a criterion optional if, by their declarations, it applies to none of the selected trials; returns its name.
pub(super) fn relax_unasked(result: &mut CriterionResult) -> Option<String> {
    let unasked = result.verdict == Verdict::NotMeasured && result.not_asked && result.required;
    result.required &= !unasked;
    (unasked && !result.not_measured_ok).then(|| result.key())
}

/// Text after the conclusion: the criteria that decide nothing because they do not apply to the selected trials.
pub(super) fn asked_of_others(names: &[String]) -> String {
    also(names, "not asked of the selected trials")
}

/// Text after the conclusion of a run that passes: trials that FAIL in scenarios whose required gates count no trials.
pub(super) fn not_counted(failed: u64) -> String {
    if failed == 0 {
        String::new()
    } else {
        format!(
            "; {}",
            count(
                failed,
                "trial FAILs, and no required gate counts it",
                "trials FAIL, and no required gate counts them"
            )
        )
    }
}

/// Keeps a criterion required in a run of some of the project's scenarios only if they decide it. One that measures
/// nothing in them, or needs more units than they have, is only shown, since the other scenarios may have these.
/// Gates of a scenario stay.
pub(super) fn relax_for_scenarios(result: &mut CriterionResult) -> Option<String> {
    let open = match result.verdict {
        Verdict::NotMeasured if !result.not_measured_ok => true,
        Verdict::Inconclusive => true,
        _ => false,
    };
    let shown = result.scenario.is_none() && result.required && open;
    result.required &= !shown;
    shown.then(|| format!("{} ({})", result.key(), result.verdict.as_str()))
}

/// Text after the conclusion of a run of some scenarios: the criteria that they do not decide.
pub(super) fn not_decided(open: &[String]) -> String {
    also(open, "not decided by these scenarios")
}

/// [`conclude`] for a run of selected cases: their expectations and invariants decide. `shown` is whether any
/// required criterion had a unit, `failed` of `planned` trials missed their case's expectations, and `missed` are
/// criteria about all cases that fail over the selection.
pub(super) fn conclude_selection<'a>(
    results: impl Iterator<Item = &'a CriterionResult>,
    missed: &[String],
    shown: bool,
    (failed, in_error, planned): (u64, u64, u64),
) -> (u8, String) {
    let broken: Vec<String> = results
        .filter(|result| result.required && matches!(result.verdict, Verdict::Fail | Verdict::Error))
        .map(CriterionResult::key)
        .collect();
    let missed = also(missed, "FAIL over the selection");
    let trials = count(planned, "selected trial", "selected trials");
    let of_trials = (failed > 0).then(|| format!("{failed} of {trials} failed"));
    let of_criteria = (!broken.is_empty()).then(|| format!("failed: {}", listed(&broken, NAMED)));
    if in_error > 0 {
        let incomplete = format!("incomplete: {in_error} of {trials} in ERROR");
        return (3, of_trials.into_iter().chain([incomplete]).collect::<Vec<_>>().join("; "));
    }
    if planned == 0 || !shown {
        return (1, format!("nothing was shown: {trials}, and nothing that is required counts them"));
    }
    if failed == 0 && broken.is_empty() {
        return (0, format!("{trials} passed{missed}; criteria that speak of all cases are shown, and decide nothing"));
    }
    (1, [of_trials, of_criteria].into_iter().flatten().collect::<Vec<_>>().join("; ") + &missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_passes_if_its_trials_do_and_says_what_failed_and_what_did_not_run() {
        let one_failed = "1 of 2 selected trials failed";
        let none_shown = "nothing was shown: 0 selected trials, and nothing that is required counts them";
        let passed = "2 selected trials passed; criteria that speak of all cases are shown, and decide nothing";
        for (trials, code, words) in [
            ((0, 0, 2), 0, passed.to_owned()),
            ((1, 0, 2), 1, one_failed.to_owned()),
            ((0, 0, 0), 1, none_shown.to_owned()),
            ((0, 1, 2), 3, "incomplete: 1 of 2 selected trials in ERROR".to_owned()),
            ((1, 1, 2), 3, format!("{one_failed}; incomplete: 1 of 2 selected trials in ERROR")),
        ] {
            assert_eq!(conclude_selection([].iter(), &[], true, trials), (code, words), "{trials:?}");
        }
    }
}
