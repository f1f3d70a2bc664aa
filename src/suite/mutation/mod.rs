//! Mutants of a run: its traces with one defect each, scored again. A defect that changes no verdict of a case shows what that
//! case asserts nothing about.
//!
//! Only trials that pass are bent, all those of the run at once, so that rates over the run are judged too. A criterion notices
//! a trial's defect if its verdict falls and the trial's units are other ones.

mod defects;
mod proposal;

use super::evaluation::{ScoreError, read_plan, read_traces, requirement_states};
use crate::gate::{Evaluation, Evaluator, Examined, RequirementCoverage, RequirementState, Verdict};
use crate::metric::Outcome;
use crate::plan::Plan;
use crate::platform::files;
use crate::trace::{self, Arm, Grades, MUTANTS, Passages, Trace};
use defects::{DEFECTS, Defect};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The mutants of a run, as plain data.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Mutants {
    /// Format version.
    pub version: u32,
    /// The plan of the run.
    pub plan: String,
    /// SHA-256, in hex, of its traces.
    pub traces: String,
    /// Trials that pass, each with every defect for which it has evidence.
    pub trials: usize,
    /// Each defect, in the order of the table.
    pub defects: Vec<DefectRow>,
    /// What cases assert nothing about, by case.
    pub silent: Vec<Silent>,
    /// The requirements that the plan lists.
    pub requirements: Vec<Requirement>,
}

/// One defect over the run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DefectRow {
    /// Its name.
    pub defect: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Trials that have it.
    pub trials: usize,
    /// Trials whose expectations notice it.
    pub by_expectations: usize,
    /// Those expectations with the number of trials, most first.
    pub expectations: Vec<(String, usize)>,
    /// Further trials that only a criterion or gate notices.
    pub by_criteria: usize,
    /// Criteria and gates whose verdict falls.
    pub criteria: Vec<String>,
    /// Trials in which nothing notices it.
    pub unnoticed: usize,
}

/// A case that asserts nothing about something.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Silent {
    /// `scenario/case`.
    pub case: String,
    /// The defect that nothing notices.
    pub defect: &'static str,
    /// What the case asserts nothing about.
    pub topic: &'static str,
    /// The lines to add below `expect`; empty if they do not hold in each of its trials that pass.
    pub lines: String,
}

/// One requirement.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Requirement {
    /// Its id.
    pub id: String,
    /// The requirement in a few words.
    pub about: String,
    /// How it is shown.
    pub state: RequirementState,
    /// What keeps it from being asserted; empty if it is.
    pub why: String,
}

/// A run with its verdicts, and what they are made of.
#[derive(Debug)]
struct Scored {
    evaluation: Evaluation,
    /// By trial: the outcomes of its units by metric.
    units: Vec<BTreeMap<String, Vec<Outcome>>>,
}

impl Scored {
    fn of<'t>(
        plan: &Plan,
        passages: &Passages,
        traces: impl IndexedParallelIterator<Item = &'t Trace>,
    ) -> Result<Self, crate::gate::EvaluationError> {
        // A grade is of an answer as it was, so criteria on grades measure nothing here.
        let mut evaluator = Evaluator::with_grades(plan, Grades::default())?;
        let examiner = evaluator.examiner();
        let examined: Vec<_> = traces.map(|trace| examiner.examine(trace, &passages.of(trace))).collect();
        let mut units = Vec::with_capacity(examined.len());
        for one in examined {
            let one: Examined = one?;
            let of_metric = |(metric, units): (&str, &[crate::metric::Observation])| {
                (metric.to_owned(), units.iter().map(|unit| unit.outcome).collect())
            };
            units.push(examiner.units(&one).map(of_metric).collect());
            evaluator.add(one)?;
        }
        Ok(Self { evaluation: evaluator.finish(), units })
    }
}

/// A run as it is: what is bent, and what its defects are compared with.
#[derive(Debug)]
pub struct Sound {
    file: PathBuf,
    plan: Plan,
    passages: Passages,
    traces: Vec<Trace>,
    scored: Scored,
    /// Places of the trials that pass.
    passing: Vec<usize>,
}

/// What notices a defect.
#[derive(Debug, Default)]
pub struct Noticed {
    /// Trials that have it.
    pub trials: usize,
    /// Trials whose expectations notice it.
    pub by_expectations: usize,
    /// These expectations, with the number of trials.
    pub expectations: BTreeMap<String, usize>,
    /// Further trials that only a criterion or gate notices.
    pub by_criteria: usize,
    /// Criteria and gates whose verdict falls.
    pub criteria: BTreeSet<String>,
    /// Cases with a trial that notices it.
    pub heard: BTreeSet<String>,
    /// Cases in which nothing notices it, with the place of a trace.
    pub silent: BTreeMap<String, usize>,
}

impl Sound {
    /// Reads a run folder, and scores it as it is.
    ///
    /// # Errors
    /// If the folder does not hold a readable run.
    pub fn read(folder: &Path) -> Result<Self, ScoreError> {
        let (file, plan) = (folder.join(trace::TRACES), read_plan(folder)?);
        let passages = Passages::read(folder, |_| true)?;
        let traces: Vec<Trace> = read_traces(folder)?.collect::<Result<_, _>>()?;
        let scored = Scored::of(&plan, &passages, traces.par_iter())
            .map_err(|error| ScoreError::Evaluation { file: file.clone(), error })?;
        let verdicts: BTreeMap<String, Verdict> =
            scored.evaluation.trials.iter().map(|trial| (trial.id.to_string(), trial.verdict)).collect();
        let passes = |trace: &Trace| trace.lane.arm == Arm::Main && verdicts.get(&trace.trial) == Some(&Verdict::Pass);
        let passing = (0..traces.len()).filter(|place| passes(&traces[*place])).collect();
        Ok(Self { file, plan, passages, traces, scored, passing })
    }

    /// Bends the trials that pass, of which `of` chooses by number and trace, all at once, and scores the run again. `bend` returns false
    /// for a trace that has nothing of the kind.
    ///
    /// # Errors
    /// If the bent run cannot be evaluated.
    pub fn bent(
        &self,
        of: impl Fn(usize, &Trace) -> bool + Sync,
        bend: impl Fn(&mut Trace) -> bool + Sync,
    ) -> Result<Noticed, ScoreError> {
        let bent: BTreeMap<usize, Trace> = self
            .passing
            .par_iter()
            .enumerate()
            .filter(|(number, place)| of(*number, &self.traces[**place]))
            .filter_map(|(_, place)| {
                let mut trace = self.traces[*place].clone();
                bend(&mut trace).then_some((*place, trace))
            })
            .collect();
        if bent.is_empty() {
            return Ok(Noticed::default());
        }
        let all: Vec<&Trace> =
            self.traces.iter().enumerate().map(|(at, trace)| bent.get(&at).unwrap_or(trace)).collect();
        let mutant = Scored::of(&self.plan, &self.passages, all.into_par_iter())
            .map_err(|error| ScoreError::Evaluation { file: self.file.clone(), error })?;
        Ok(self.noticed(&bent, &mutant))
    }

    fn noticed(&self, bent: &BTreeMap<usize, Trace>, mutant: &Scored) -> Noticed {
        let rows = self.scored.evaluation.rows().zip(mutant.evaluation.rows());
        let fallen: Vec<_> = rows
            .filter(|(before, after)| before.verdict == Verdict::Pass && after.verdict != Verdict::Pass)
            .map(|(before, _)| before)
            .collect();
        let checks: BTreeMap<String, BTreeSet<String>> = mutant
            .evaluation
            .trials
            .iter()
            .filter(|trial| trial.verdict != Verdict::Pass)
            .map(|trial| {
                let failed = trial.checks.iter().filter(|check| !check.passed).map(|check| kind(&check.what));
                (trial.id.to_string(), failed.collect())
            })
            .collect();
        let mut found = Noticed { trials: bent.len(), ..Noticed::default() };
        for place in bent.keys() {
            let trace = &self.traces[*place];
            let case = format!("{}/{}", trace.scenario, trace.case);
            let (before, after) = (&self.scored.units[*place], &mutant.units[*place]);
            if let Some(failed) = checks.get(&trace.trial) {
                found.by_expectations += 1;
                for what in failed {
                    *found.expectations.entry(what.clone()).or_default() += 1;
                }
                found.heard.insert(case);
            } else if fallen.iter().any(|row| before.get(&row.metric) != after.get(&row.metric)) {
                found.by_criteria += 1;
                found.heard.insert(case);
            } else {
                found.silent.insert(case, *place);
            }
        }
        found.criteria = fallen.iter().filter(|row| row.metric != "case_pass_rate").map(|row| row.id.clone()).collect();
        let Noticed { silent, heard, .. } = &mut found;
        silent.retain(|case, _| !heard.contains(case));
        found
    }
}

/// Bends the traces of a run folder by every defect, and scores each mutant of the run.
///
/// # Errors
/// If the folder does not hold a readable run.
pub(crate) fn mutants(folder: &Path) -> Result<Mutants, ScoreError> {
    let sound = Sound::read(folder)?;
    let (_, digest) = requirement_states::digest(&sound.file)
        .map_err(|error| ScoreError::Open { file: sound.file.clone(), error })?;
    let mut found = Mutants {
        version: requirement_states::VERSION,
        plan: sound.plan.id.clone(),
        traces: digest,
        trials: sound.passing.len(),
        ..Mutants::default()
    };
    let mut heard = BTreeMap::new();
    for defect in DEFECTS {
        let of = |number: usize, trace: &Trace| {
            number.is_multiple_of(defect.every) && (!defect.of_faults || has_fault(&sound.plan, trace))
        };
        let noticed = sound.bent(of, defect.bend)?;
        if noticed.trials > 0 {
            let lines = sound.proposed(defect, &noticed.silent)?;
            heard.insert(defect.name, add(&mut found, defect, noticed, lines));
        }
    }
    found.requirements = requirements(&sound.plan, &sound.scored.evaluation, &heard);
    found.silent.sort_by(|one, other| one.case.cmp(&other.case));
    Ok(found)
}

/// Writes the mutants of a run into its folder.
pub(crate) fn write(folder: &Path, found: &Mutants) -> io::Result<()> {
    files::replace(folder.join(MUTANTS), trace::seal(&serde_json::to_string_pretty(found)?).0 + "\n")?;
    trace::claim(folder, &[MUTANTS])
}

/// The state of each requirement of the plan.
fn requirements(plan: &Plan, sound: &Evaluation, noticed: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Requirement> {
    let state = |coverage: &RequirementCoverage| {
        let evidence = plan.requirement_evidence.get(&coverage.id).cloned().unwrap_or_default();
        let cases = || coverage.cases.iter().filter(|case| case.passed > 0);
        let silent = |defect: &&String| {
            let heard = noticed.get(defect.as_str());
            !cases().any(|case| heard.is_some_and(|heard| heard.contains(&case.case)))
        };
        let missed: Vec<&str> = evidence.defects.iter().filter(silent).map(String::as_str).collect();
        match (evidence.defects.is_empty(), missed.is_empty()) {
            (false, true) => (RequirementState::Asserted, String::new()),
            _ if !evidence.tests.is_empty() => (RequirementState::TestedOutsideRuns, evidence.tests.join(", ")),
            _ if cases().next().is_none() => {
                (RequirementState::NamedOnly, "no case of it passes, and no test is named".into())
            }
            (true, _) => (RequirementState::RecordedOnly, "no defect is named as its `evidence`".into()),
            (false, false) => {
                (RequirementState::RecordedOnly, format!("its cases do not notice {}", missed.join(", ")))
            }
        }
    };
    let row = |coverage: &RequirementCoverage| {
        let (state, why) = state(coverage);
        Requirement { id: coverage.id.clone(), about: coverage.about.clone(), state, why }
    };
    sound.requirements.iter().map(row).collect()
}

/// Adds what noticed a defect, and the cases in which nothing did; returns the cases that notice it.
fn add(found: &mut Mutants, defect: &Defect, noticed: Noticed, lines: BTreeMap<String, String>) -> BTreeSet<String> {
    let mut expectations: Vec<(String, usize)> = noticed.expectations.into_iter().collect();
    expectations.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    found.defects.push(DefectRow {
        defect: defect.name,
        about: defect.about,
        trials: noticed.trials,
        by_expectations: noticed.by_expectations,
        expectations,
        by_criteria: noticed.by_criteria,
        criteria: noticed.criteria.into_iter().collect(),
        unnoticed: noticed.trials - noticed.by_expectations - noticed.by_criteria,
    });
    let silent = |(case, lines)| Silent { case, defect: defect.name, topic: defect.topic, lines };
    found.silent.extend(lines.into_iter().map(silent));
    noticed.heard
}

/// The expectation without its values: `answer.contains` of `turn 1: answer.contains: 30 days`.
fn kind(what: &str) -> String {
    let bare = match what.split_once(": ") {
        Some((label, rest)) if label.starts_with("turn ") || label.starts_with("conversation ") => rest,
        _ => what,
    };
    bare.split(": ").next().unwrap_or(bare).to_owned()
}

fn has_fault(plan: &Plan, trace: &Trace) -> bool {
    let scenario = plan.scenarios.iter().find(|scenario| scenario.name == trace.scenario);
    let case = scenario.and_then(|one| one.cases.iter().find(|case| case.case.case == trace.case));
    case.is_some_and(|case| case.case.fault.is_some())
}
