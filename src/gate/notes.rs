//! Notes of an evaluation: changed recordings and verdicts, plans of older builds, trials drawn more than once.

use super::{TrialResults, TrialRow, Verdict};
use crate::plan::Plan;
use crate::trace::text::{count, listed, quote};
use std::collections::BTreeMap;

/// The first plan version whose criteria state what they count.
const COUNTED: u32 = 5;

/// Notes that a run of an older build is evaluated by the rules of this one.
pub(super) fn older(plan: &Plan) -> Option<String> {
    (plan.version < COUNTED).then(|| {
        "planned by an older build and scored by the rules of this one: each criterion counts per unit or per conversation"
            .to_owned()
    })
}

/// Largest number of trials that a note names.
const NAMED: usize = 5;

/// Notes recordings whose verdict has changed since they were made, because the expectations or the rules changed.
pub(super) fn changed(plan: &Plan, changed: &BTreeMap<usize, (String, Verdict)>) -> Option<String> {
    let named = changed.iter().filter_map(|(place, (noted, verdict))| {
        let id = plan.trials.at(*place)?.id;
        Some(format!("{id} ({}, now {})", quote(noted, 40), verdict.as_str()))
    });
    let recordings = count(changed.len() as u64, "recording", "recordings");
    (!changed.is_empty()).then(|| format!("{recordings} had another verdict when recorded: {}", listed(named, NAMED)))
}

/// Lists the trials that were drawn more than once, with the results of their draws.
pub(super) fn redrawn_trials(trials: &TrialResults) -> Option<String> {
    let told = |trial: &TrialRow<'_>| {
        let drawn = trial.verdict != Verdict::Error && trial.draws.earlier.iter().any(|verdict| verdict == FAILED);
        let again = drawn || !trial.draws.run_again.is_empty();
        again.then(|| format!("{} ({}, {})", trial.id, trial.verdict.as_str(), trial.draws.words().unwrap_or_default()))
    };
    let named = listed(trials.iter().filter_map(|trial| told(&trial)), NAMED);
    (!named.is_empty()).then(|| format!("drawn more than once: {named}"))
}

/// Spelling of [`Verdict::Fail`] in [`super::Draws`].
const FAILED: &str = "FAIL";
