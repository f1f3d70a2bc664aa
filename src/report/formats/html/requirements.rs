//! Data of the table of requirements.

use super::model::LISTED;
use crate::gate::{CaseCounts, CriterionResult, RequirementCoverage, RequirementState};
use crate::report::formats::requirements::NOT_EXAMINED;
use crate::report::page::FRAGMENT;
use percent_encoding::utf8_percent_encode;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Requirement {
    id: String,
    about: String,
    source: String,
    /// Name, trials passed and run, and search text that shows them in the table.
    cases: Vec<(String, u32, u32, String)>,
    more: usize,
    /// Figure of the criterion with this id, or trials passed and run.
    figure: String,
    state: &'static str,
    why: String,
    /// Whether nothing shows it: no case names it, or it is named only.
    uncovered: bool,
}

/// How many requirements are shown in which way, in words.
pub(super) fn covered(requirements: &[RequirementCoverage]) -> String {
    use RequirementState::{Asserted, NamedOnly, RecordedOnly, TestedOutsideRuns};
    let all = requirements.len();
    if requirements.iter().all(|row| row.state.is_none()) {
        let with_case = requirements.iter().filter(|row| !row.cases.is_empty()).count();
        return format!("{with_case} of {all} requirements have a case; what the cases assert is {NOT_EXAMINED}");
    }
    let count = |state| requirements.iter().filter(|row| row.state == Some(state)).count();
    let states = [Asserted, RecordedOnly, TestedOutsideRuns, NamedOnly];
    let states: Vec<String> = states.iter().map(|state| format!("{} {}", count(*state), state.as_str())).collect();
    format!("{all} requirements: {}, which is not covered", states.join(", "))
}

pub(super) fn requirement(coverage: &RequirementCoverage, criteria: &[CriterionResult]) -> Requirement {
    // A requirement that is a criterion has the criterion's figure: trials that fail something else do not count.
    let own = criteria.iter().find(|row| row.id == coverage.id && !row.observed_text.is_empty());
    let sum = |count: fn(&CaseCounts) -> u32| coverage.cases.iter().map(|row| u64::from(count(row))).sum();
    let case = |CaseCounts { case, passed, trials }: &CaseCounts| {
        let found = format!("#trials?text={}", utf8_percent_encode(&format!("{case}/"), FRAGMENT));
        (case.clone(), *passed, *trials, found)
    };
    let (passed, run): (u64, u64) = (sum(|row| row.passed), sum(|row| row.trials));
    Requirement {
        figure: own.map_or_else(|| format!("{passed} of {run} trials"), |row| row.observed_text.clone()),
        id: coverage.id.clone(),
        about: coverage.about.clone(),
        source: coverage.source.clone(),
        cases: coverage.cases.iter().take(LISTED).map(case).collect(),
        more: coverage.cases.len().saturating_sub(LISTED),
        state: coverage.state.map_or(NOT_EXAMINED, RequirementState::as_str),
        why: coverage.why.clone(),
        uncovered: coverage.state.map_or(coverage.cases.is_empty(), |state| state == RequirementState::NamedOnly),
    }
}
