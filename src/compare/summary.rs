//! One side of a comparison: the figures of a run, case by case. Saved, it is a baseline for version control.
//!
//! On disk it is JSON with one criterion, one setting and one case per line, so that a change of the baseline is
//! readable as a diff. A reader rejects a `version` newer than its own and ignores unknown fields.

use super::usage::Usage;
use super::{CompareError, Counts, RepetitionCounts};
use crate::settings::Enforcement;
use crate::trace::{self, Mode, is_zero};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Version of a baseline file. Version 3 names the members of what were lists of values in version 2; both are read.
pub(crate) const BASELINE_VERSION: u32 = 3;

/// The key of the row that counts trials that met everything their case expects.
pub(crate) const CASES: &str = "cases";

/// Figures of one run, or of one variant of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub version: u32,
    /// Its name: the run folder's name, followed by `@variant` if one was chosen.
    pub label: String,
    pub criteria: Vec<Measured>,
    /// The settings, one row per scenario and variant.
    pub settings: Vec<Setting>,
    /// The figures, one row per scenario, case and variant.
    pub cases: Vec<CaseFigures>,
    /// Where a run until decided stopped; `None` when it ran everything planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StoppedEarly>,
    /// Describes how the run is partial; empty for a complete one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub part: String,
    /// How the gates on its cases are judged, in words, by scenario; `None` in a baseline file of an older build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<BTreeMap<String, String>>,
    /// Why a baseline file may not be as it was saved; empty for any other side.
    #[serde(skip)]
    pub doubt: String,
}

/// The format of a baseline file, whose other members may be those of another version.
#[derive(Deserialize)]
struct Format {
    version: u32,
}

/// Where a run until decided stopped before its last pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoppedEarly {
    /// Number of passes made.
    pub passes: u32,
    /// Largest number of passes.
    pub max: u32,
}

/// One criterion, or gate of a scenario, as it was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Its name in [`CaseFigures::units`]: the criterion's id, `scenario/id` for a scenario's own gate.
    pub key: String,
    /// The requirement in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The metric as written.
    pub metric: String,
    /// The flow whose trials count, if only those of one do; baselines of older builds count every flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The target as written.
    pub target: String,
    /// Its rule as text: kind, floor, `min_n`, margin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub judged: String,
    /// Whether a run fails when it does not pass: only then can it be a regression.
    pub required: bool,
    /// Whether lower is better, because the metric counts something unwanted.
    pub fewer_is_better: bool,
    /// The limit in microseconds below which a unit counts, for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_us: Option<u64>,
    /// Whether the metric is only a proxy for the requirement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proxy: bool,
}

/// Settings of one variant of a scenario, from the plan and its traces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub scenario: String,
    pub variant: String,
    pub flow: String,
    /// Purpose of the variant.
    pub about: String,
    /// How mandatory steps are enforced; `None` where the plan does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The chat model's provider; `None` where the plan does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Replaced prompt texts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
    /// What its prompts ask for, as declared; `None` if nothing is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_for: Option<BTreeSet<String>>,
    /// `REPLAYED` or `LIVE`.
    pub modes: BTreeSet<String>,
    /// Services that answered.
    pub recorded_from: BTreeSet<String>,
    /// The days on which it was recorded, `2026-11-21`.
    pub recorded_on: BTreeSet<String>,
    pub models: BTreeSet<String>,
    /// Hashes of the knowledge searched.
    pub knowledge: BTreeSet<String>,
    /// Digests of the system prompts sent to the model.
    pub system_prompts: BTreeSet<String>,
}

/// Figures of one case under one variant, summed over repetitions; control arms count only for metrics that measure
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CaseFigures {
    pub scenario: String,
    pub case: String,
    pub variant: String,
    /// Trials that could be run.
    pub trials: u64,
    /// Trials among them that met everything the case expects; [`CaseFigures::graded`] has the number of which it is known.
    pub passed: u64,
    /// Planned trials that could not be run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Times of the turns by repetition, in microseconds; `u64::MAX` for one without an answer, which a file holds as `null`.
    /// Empty where they were not recorded, and in a baseline file of an older build.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "super::usage::times_by_repetition",
        deserialize_with = "super::usage::read_times_by_repetition"
    )]
    pub times: BTreeMap<u32, Vec<u64>>,
    /// The median time of a turn in microseconds; `None` where it is that of a turn without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_us: Option<u64>,
    /// Successes and units by criterion, as the metric counts; criteria without units here are left out.
    pub units: BTreeMap<String, Counts>,
    /// The same by repetition, in order: repetitions of two runs are paired by number.
    pub repetitions: BTreeMap<String, Vec<RepetitionCounts>>,
    /// Digest of the input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Digest of the expectations and exclusions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// `scenario/case` of the first case with the same input; empty for that one, and where the criteria are about the
    /// suite alone (see [`crate::plan::Plan::first_alike`]).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub copy_of: String,
    /// The trials of which it is known whether they passed, in plan order; a baseline file holds none.
    #[serde(skip)]
    pub trials_run: Vec<TrialOutcome>,
    /// Their usage; `None` in a baseline file of an older build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Largest plausible number of trials or units; larger values are rejected, so that sums do not overflow.
const MOST: u64 = 1 << 40;

impl CaseFigures {
    /// Whether no part of the figures is larger than its whole.
    fn is_possible(&self) -> bool {
        let possible = |good: u64, all: u64| good <= all && all <= MOST;
        possible(self.passed, self.trials)
            && self.errors <= MOST
            && self.usage.as_ref().is_none_or(|usage| usage.is_possible(MOST))
            && self.times.values().flatten().all(|time| *time == u64::MAX || *time <= MOST)
            && self.units.values().all(|one| possible(one.successes, one.n))
            && self.repetitions.values().flatten().all(|one| possible(one.successes, one.n))
    }
}

/// One trial that could be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrialOutcome {
    /// `scenario/case/flow.variant.n`.
    pub id: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Whether it met everything its case expects.
    pub passed: bool,
    /// The first expectation that it did not meet; empty when it passed.
    pub why: String,
}

impl CaseFigures {
    /// Trials that passed, and trials of which it is known.
    pub(crate) fn graded(&self) -> (u64, u64) {
        (self.passed, self.units.get(CASES).map_or(0, |one| one.n.min(self.trials)))
    }

    /// Whether `other` has results of a kind that this has none of: grades, or any units and times.
    pub(super) fn lacks_results_of(&self, other: &Self) -> bool {
        let any = |one: &Self| !one.times.is_empty() || one.units.values().any(|units| units.n > 0);
        self.graded().1 == 0 && other.graded().1 > 0 || !any(self) && any(other)
    }

    /// Whether the times of its queries were recorded, as far as is known.
    pub(super) fn is_timed(&self) -> bool {
        self.usage.as_ref().is_none_or(Usage::is_timed)
    }
}

impl Summary {
    /// The summary of one variant alone, named `label@variant`.
    ///
    /// # Errors
    /// If no case ran under that variant.
    pub(crate) fn of_variant(mut self, variant: &str) -> Result<Self, CompareError> {
        let known: BTreeSet<String> = self.cases.iter().map(|case| case.variant.clone()).collect();
        if !known.contains(variant) {
            let known: Vec<String> = known.into_iter().collect();
            let (run, variant, known) = (self.label, variant.to_owned(), known.join(", "));
            return Err(CompareError::NoVariant { run, variant, known });
        }
        self.cases.retain(|case| case.variant == variant);
        self.settings.retain(|setting| setting.variant == variant);
        self.label = format!("{}@{variant}", self.label);
        Ok(self)
    }

    /// The text of a baseline file.
    ///
    /// # Errors
    /// When a figure cannot be written as JSON.
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        let mut out = format!("{{\n\"version\": {},\n\"label\": {}", self.version, serde_json::to_string(&self.label)?);
        let criteria = self.criteria.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let settings = self.settings.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let cases = self.cases.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        if let Some(stopped) = &self.stopped {
            let _ = write!(out, ",\n\"stopped\": {}", serde_json::to_string(stopped)?);
        }
        if !self.part.is_empty() {
            let _ = write!(out, ",\n\"part\": {}", serde_json::to_string(&self.part)?);
        }
        if let Some(gates) = &self.gates {
            let _ = write!(out, ",\n\"gates\": {}", serde_json::to_string(gates)?);
        }
        for (name, rows) in [("criteria", criteria), ("settings", settings), ("cases", cases)] {
            let _ = write!(out, ",\n\"{name}\": [\n{}\n]", rows.join(",\n"));
        }
        out.push_str("\n}\n");
        Ok(trace::seal(&out).0 + "\n")
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// If it is not a baseline, an older build wrote it without repetitions, or a newer build wrote it.
    pub(crate) fn parse(text: &str) -> Result<Self, CompareError> {
        if serde_json::from_str::<Format>(text).is_ok_and(|format| format.version == 1) {
            return Err(CompareError::OldBaseline);
        }
        let summary: Self = serde_json::from_str(text).map_err(CompareError::NoBaseline)?;
        if summary.version > BASELINE_VERSION {
            return Err(CompareError::NewerBaseline(summary.version));
        }
        match summary.cases.iter().find(|case| !case.is_possible()) {
            Some(case) => Err(CompareError::Impossible(format!("{}/{}", case.scenario, case.case))),
            None => Ok(summary),
        }
    }

    /// All modes of its trials: one, or none when nothing could be run.
    pub(crate) fn modes(&self) -> BTreeSet<&str> {
        self.settings.iter().flat_map(|setting| setting.modes.iter().map(String::as_str)).collect()
    }

    /// Whether it is of logs: its repetitions have the order of their lines as numbers.
    pub(super) fn is_logged(&self) -> bool {
        self.modes().contains(&*Mode::Imported.to_string())
    }

    /// Whether one of two sides is of logs.
    pub(super) fn one_is_logged(a: &Self, b: &Self) -> bool {
        a.is_logged() || b.is_logged()
    }

    /// Whether it has a scenario of that name.
    pub(super) fn has(&self, scenario: &str) -> bool {
        self.cases.iter().any(|case| case.scenario == scenario)
    }

    /// Planned trials that could not be run.
    pub(crate) fn errors(&self) -> u64 {
        self.cases.iter().map(|case| case.errors).sum()
    }

    /// Trials that could be run.
    pub(crate) fn trials(&self) -> u64 {
        self.cases.iter().map(|case| case.trials).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_baseline_reads_back_as_it_was_written_without_its_trials() {
        let mut summary = sample::summary("run", &[("one", 2, 3), ("two", 0, 3)]);
        summary.stopped = Some(StoppedEarly { passes: 3, max: 8 });
        summary.part = "1 of 6 trials not run".into();
        let text = summary.to_text().expect("JSON");
        for case in &mut summary.cases {
            case.trials_run.clear();
        }
        assert_eq!(Summary::parse(&text).expect("a baseline"), summary);
        assert_eq!(text.lines().filter(|line| line.contains("\"case\"")).count(), 2, "one case a line:\n{text}");
    }

    #[test]
    fn what_is_no_baseline_is_refused_with_what_to_do() {
        assert!(Summary::parse("[]").is_err_and(|why| why.to_string().contains("--save")));
        let newer = sample::summary("run", &[("one", 1, 1)]).to_text().expect("JSON").replacen('3', "9", 1);
        assert!(Summary::parse(&newer).is_err_and(|why| why.to_string().contains("newer")));
    }

    #[test]
    fn a_variant_that_nothing_ran_under_is_refused_with_the_ones_there_are() {
        let summary = sample::summary("run", &[("one", 1, 1)]);
        assert_eq!(summary.clone().of_variant("base").expect("base").label, "run@base");
        assert!(summary.of_variant("bass").is_err_and(|why| why.to_string().contains("it has base")));
    }
}
