//! `ragcheck mutate`: which defects of a run's evidence change a verdict, and which cases assert nothing about one.

use super::arguments::Mutate;
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs;
use crate::gate::RequirementState;
use crate::suite::evaluation;
use crate::suite::mutation::{self, Mutants, Silent};
use crate::trace::text::listed;
use crate::trace::{
    self,
    text::{line, plural},
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

/// Cases that a finding names, unless all are asked for.
const CASES: usize = 3;

/// Expectations and criteria that a row names.
const NAMED: usize = 3;

/// Runs `ragcheck mutate`.
///
/// # Errors
/// If the folder does not hold a readable run, or none of its trials passes.
pub(super) fn run(given: &Mutate) -> Result<Exit, Problem> {
    let run = runs::typed_or_newest(given.run.as_deref())?;
    let found = mutation::mutants(&run)?;
    if found.trials == 0 {
        return Err(format!("{}: no trial passes, so no verdict can change: mutate a green run", run.display()).into());
    }
    let unwritten = |why: io::Error| Problem::Unwritten(format!("{}: {why}", run.display()));
    mutation::write(&run, &found).map_err(unwritten)?;
    evaluation::score(&run, false)?.write(&run).map_err(unwritten)?;
    output::data(given.format, &found, |found| {
        let (table, file) = (table(found, given.all), run.join(trace::MUTANTS));
        format!("{table}\nmutants: {}; the report shows the requirements\n", file.display())
    })?;
    Ok(Exit::Passed)
}

fn table(found: &Mutants, all: bool) -> String {
    let mut out = format!("{} that pass, each with one defect at a time:\n\n", plural(found.trials, "trial"));
    let _ = writeln!(out, "{:24}{:>7}{:>14}{:>11}{:>11}", "defect", "trials", "expectations", "criteria", "unnoticed");
    for row in &found.defects {
        let _ = writeln!(
            out,
            "{:24}{:>7}{:>14}{:>11}{:>11}",
            row.defect, row.trials, row.by_expectations, row.by_criteria, row.unnoticed
        );
        let expectations = row.expectations.iter().map(|(what, times)| format!("{} ({times})", line(what)));
        let criteria = row.criteria.iter().map(|id| line(id));
        for (by, names) in [("", expectations.collect::<Vec<_>>()), ("criteria: ", criteria.collect())] {
            if !names.is_empty() {
                let _ = writeln!(out, "    {by}{}", listed(&names, NAMED));
            }
        }
    }
    let mut by_topic: BTreeMap<(&str, &str), Vec<&Silent>> = BTreeMap::new();
    for one in &found.silent {
        by_topic.entry((one.topic, one.defect)).or_default().push(one);
    }
    for ((topic, defect), cases) in by_topic {
        let _ = writeln!(out, "\n{} nothing about {topic} ({defect}):", asserting(cases.len()));
        let shown = if all { cases.len() } else { cases.len().min(CASES) };
        for one in &cases[..shown] {
            let _ = match one.lines.as_str() {
                "" => {
                    writeln!(out, "  {}\n    its trials that pass differ in it: no line holds in all", line(&one.case))
                }
                lines => writeln!(out, "  {}\n    expect: {}", line(&one.case), line(lines)),
            };
        }
        if shown < cases.len() {
            let _ = writeln!(out, "  and {} more: --all", cases.len() - shown);
        }
    }
    if !found.requirements.is_empty() {
        use RequirementState::{Asserted, NamedOnly, RecordedOnly, TestedOutsideRuns};
        let states = [Asserted, RecordedOnly, TestedOutsideRuns, NamedOnly];
        let count = |state: RequirementState| found.requirements.iter().filter(|one| one.state == state).count();
        let counts: Vec<String> = states.iter().map(|state| format!("{} {}", count(*state), state.as_str())).collect();
        let _ = writeln!(out, "\n{}: {}", plural(found.requirements.len(), "requirement"), counts.join(", "));
        for one in found.requirements.iter().filter(|one| all || one.state == NamedOnly) {
            let why = if one.why.is_empty() { String::new() } else { format!(": {}", line(&one.why)) };
            let _ = writeln!(out, "  {} {}{why}", line(&one.id), one.state.as_str());
        }
    }
    if found.silent.is_empty() {
        let _ = writeln!(out, "\nEvery defect changes a verdict of every case that has evidence for it.");
    }
    out
}

fn asserting(cases: usize) -> String {
    if cases == 1 { "This case asserts".into() } else { format!("{cases} cases assert") }
}
