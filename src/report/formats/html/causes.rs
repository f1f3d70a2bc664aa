//! Causes of failed criteria and of trials that could not be judged, with links to the trials.

use super::model::{Badge, LISTED, anchored, toned};
use crate::gate::{CriterionResult, Evaluation, Verdict, Violation};
use crate::report::View;
use crate::report::against_base::{self, is_unrecorded};
use crate::report::figures::{self, count, counted};
use crate::trace::text::clip;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

/// Characters left unescaped in a URL fragment: unreserved ones and `/`.
pub(super) const FRAGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A cause of failing criteria, required ones first.
#[derive(Serialize)]
pub(super) struct CauseRow {
    reason: String,
    times: String,
    trials: String,
    /// Anchor and name of each criterion that it fails.
    breaks: Vec<(String, String)>,
    first: Link,
    required: bool,
    /// Search text that shows its trials in the table.
    find: String,
}

/// A link to a trial.
#[derive(Serialize)]
pub(super) struct Link {
    trial: String,
    pub href: String,
    unit: String,
    note: String,
}

/// One cause of ERROR, with its trials.
#[derive(Serialize)]
pub(super) struct ErrorRow {
    /// `NOT RECORDED` or `ERROR`.
    word: &'static str,
    kind: String,
    message: String,
    detail: String,
    number: String,
    trials: Vec<Link>,
    more: usize,
}

/// Causes of failing criteria: each once, those of required criteria first, then by frequency.
pub(super) fn causes(evaluation: &Evaluation) -> Vec<CauseRow> {
    let mut found: Vec<(u64, CauseRow)> = Vec::new();
    for (anchor, row) in anchored(evaluation).filter(|(_, row)| row.verdict == Verdict::Fail) {
        let name = figures::name(row);
        for cause in &row.causes {
            if let Some((units, known)) = found.iter_mut().find(|(_, known)| known.reason == cause.reason) {
                known.breaks.push((anchor.clone(), name.clone()));
                known.required |= row.required;
                // The same units may fail both criteria, so only the larger number is certain.
                if cause.units > *units {
                    (*units, known.times) = (cause.units, count(cause.units));
                    known.trials = counted(cause.trials, "trial");
                }
                continue;
            }
            let cause_row = CauseRow {
                reason: cause.reason.clone(),
                times: count(cause.units),
                trials: counted(cause.trials, "trial"),
                breaks: vec![(anchor.clone(), name.clone())],
                first: violation(&cause.first),
                required: row.required,
                find: format!("#trials?cause={}", utf8_percent_encode(&cause.reason, FRAGMENT)),
            };
            found.push((cause.units, cause_row));
        }
    }
    found.sort_by_key(|(units, cause)| (!cause.required, std::cmp::Reverse(*units)));
    found.into_iter().map(|(_, cause)| cause).collect()
}

/// A required criterion that neither passes nor has a cause in the list.
#[derive(Serialize)]
pub(super) struct OpenRow {
    verdict: Badge,
    anchor: String,
    name: String,
    why: String,
}

/// Required criteria that do not pass and have no cause: those that nothing decides, and those without a measurement.
pub(super) fn open(evaluation: &Evaluation) -> Vec<OpenRow> {
    let untried = |row: &CriterionResult| row.verdict == Verdict::Error && !evaluation.errors.is_empty();
    let explained = |row: &CriterionResult| row.verdict == Verdict::Fail && !row.causes.is_empty();
    let open = anchored(evaluation).filter(|(_, row)| {
        row.required && row.verdict != Verdict::Pass && !row.not_measured_ok && !untried(row) && !explained(row)
    });
    open.map(|(anchor, row)| OpenRow {
        verdict: toned(row),
        anchor,
        name: figures::name(row),
        why: clip(&row.sentence, 300).into_owned(),
    })
    .collect()
}

/// Commands that show and reproduce what fails.
pub(super) fn commands(view: &View<'_>) -> Vec<(&'static str, String)> {
    let failing = against_base::failing(view);
    let named = [("See why", against_base::see(&failing)), ("Reproduce it", against_base::reproduce(view, &failing))];
    named.into_iter().filter_map(|(title, command)| Some((title, command?))).collect()
}

/// Link to a trial.
pub(super) fn link(trial: &str) -> Link {
    let href = format!("#trial={}", utf8_percent_encode(trial, FRAGMENT));
    Link { trial: trial.to_owned(), href, unit: String::new(), note: String::new() }
}

/// Link to a trial that violates a criterion, with the unit and the reason.
pub(super) fn violation(violation: &Violation) -> Link {
    let (unit, note) = (violation.unit.clone(), clip(&violation.note, 300).into_owned());
    Link { unit, note, ..link(&violation.trial) }
}

/// Causes of ERROR.
pub(super) fn errors(evaluation: &Evaluation) -> Vec<ErrorRow> {
    let group = |group: &crate::gate::ErrorGroup| ErrorRow {
        word: if is_unrecorded(&group.kind) { "NOT RECORDED" } else { "ERROR" },
        kind: group.kind.clone(),
        message: group.message.clone(),
        detail: clip(&group.detail.join("\n"), 4_000).into_owned(),
        number: counted(group.trials.len() as u64, "trial"),
        trials: group.trials.iter().take(LISTED).map(|trial| link(trial)).collect(),
        more: group.trials.len().saturating_sub(LISTED),
    };
    evaluation.errors.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_stands_once_with_what_it_breaks_and_required_criteria_go_first() {
        let mut run = crate::report::sample::run(1);
        let violation = run.evaluation.criteria[0].violations[0].clone();
        let cause = |reason: &str, units: u64| crate::gate::Cause {
            reason: reason.into(),
            units,
            trials: units,
            first: violation.clone(),
        };
        for (place, (required, causes)) in
            [(false, vec![cause("took …", 9), cause("lost", 2)]), (true, vec![cause("lost", 3)])]
                .into_iter()
                .enumerate()
        {
            let row = &mut run.evaluation.criteria[place];
            (row.verdict, row.required, row.causes) = (Verdict::Fail, required, causes);
        }
        let found = causes(&run.evaluation);
        let told: Vec<_> =
            found.iter().map(|cause| (cause.reason.as_str(), cause.times.as_str(), cause.breaks.len())).collect();
        assert_eq!(told, [("lost", "3", 2), ("took …", "9", 1)]);
        assert_eq!(found[1].find, "#trials?cause=took%20%E2%80%A6");
    }

    #[test]
    fn fragments_hold_only_unreserved_characters() {
        assert_eq!(utf8_percent_encode("a/b c.ü<", FRAGMENT).to_string(), "a/b%20c.%C3%BC%3C");
    }
}
