//! `ragcheck check`: every mistake at once, what has no recording yet, and which recordings have gone stale.

use super::arguments::{Check, Printed};
use super::diagnostic;
use super::exit::Exit;
use super::output::{self, Problem};
use super::staleness::{self, Ages};
use crate::plan::{self, Selection};
use crate::scenario::{Diagnostic, Loaded, Severity, examine, find_root};
use crate::trial::TrialRunner;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What `check` found.
#[derive(Debug)]
pub struct Checked {
    /// Errors and notes, by file and place, notes on missing recordings last.
    pub diagnostics: Vec<Diagnostic>,
    /// Files that were read.
    pub files: usize,
}

impl Checked {
    /// 2 with any error, 0 otherwise: notes change nothing.
    pub fn exit_code(&self) -> u8 {
        let wrong = self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        if wrong { 2 } else { 0 }
    }

    /// For people: every diagnostic, then the summary line.
    pub fn text(&self, styled: bool) -> String {
        let summary = diagnostic::summary(&self.diagnostics, self.files);
        let all = diagnostic::text(&self.diagnostics, styled);
        if all.is_empty() { format!("{summary}\n") } else { format!("{all}\n{summary}\n") }
    }
}

/// Checks the scenarios at `paths`, the criteria and the project file. `cassettes` wins over the project's folder.
pub fn check(root: &Path, paths: &[PathBuf], criteria: Option<&Path>, cassettes: Option<&Path>) -> Checked {
    checked(root, paths, criteria, cassettes).0
}

/// The same, with what was read when nothing is wrong with it.
fn checked(
    root: &Path,
    paths: &[PathBuf],
    criteria: Option<&Path>,
    cassettes: Option<&Path>,
) -> (Checked, Option<Loaded>) {
    let examined = examine(root, paths, criteria);
    let mut diagnostics = examined.diagnostics;
    if let Some(loaded) = &examined.loaded {
        diagnostics.extend(unrecorded(loaded, cassettes));
    }
    (Checked { diagnostics, files: examined.files }, examined.loaded)
}

/// Where a trial's recording stands.
pub fn cassette(loaded: &Loaded, cassettes: Option<&Path>, trial: &str) -> PathBuf {
    let folder = cassettes.map_or_else(|| PathBuf::from(&loaded.project.cassettes), Path::to_path_buf);
    loaded.root.join(folder).join(format!("{trial}.yaml"))
}

/// One note for each case with lanes that have no recording, with the command that records them.
fn unrecorded(loaded: &Loaded, cassettes: Option<&Path>) -> Vec<Diagnostic> {
    let Ok(plan) = plan::build(loaded, &Selection::default(), 0) else { return Vec::new() };
    let mut missing: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for trial in &plan.trials {
        let counts = missing.entry((trial.scenario, trial.case)).or_default();
        counts.0 += usize::from(!cassette(loaded, cassettes, &trial.id).is_file());
        counts.1 += 1;
    }
    let notes = missing.into_iter().filter(|(_, (missing, _))| *missing > 0);
    notes
        .map(|((scenario, case), (missing, all))| {
            let scenario = &plan.scenarios[scenario];
            let case = &scenario.cases[case].case.case;
            let message = format!("{missing} of {all} lanes of `{case}` have no recording");
            let command = format!("ragcheck run {} --mode record --only {}/{case}", scenario.file, scenario.name);
            Diagnostic::note("no-recording", &scenario.file, message).with_help(format!("record them: {command}"))
        })
        .collect()
}

/// Notes on recordings that are old, no longer fit, or belong to nothing.
fn stale(loaded: Loaded, ages: Ages) -> Vec<Diagnostic> {
    let Ok(plan) = plan::build(&loaded, &Selection::default(), 0) else { return Vec::new() };
    match TrialRunner::new(Arc::new(loaded)) {
        Ok(runner) => staleness::notes(&runner, &plan, ages),
        Err(why) => vec![Diagnostic::note("no-world", "", format!("recordings cannot be compared with trials: {why}"))],
    }
}

/// Does what `ragcheck check` was asked to.
///
/// # Errors
/// When the current folder cannot be read.
pub(super) fn run(given: &Check) -> Result<Exit, Problem> {
    let here = std::env::current_dir().map_err(|why| format!("the current folder cannot be read: {why}"))?;
    let root = find_root(&here);
    let (mut checked, loaded) = checked(&root, &given.paths, given.criteria.as_deref(), None);
    if let Some(loaded) = loaded {
        let ages = Ages::new(given.warn_recordings_after, &loaded.project)?;
        checked.diagnostics.extend(stale(loaded, ages));
    }
    match given.format {
        Printed::Human => output::result(&checked.text(output::coloured())),
        Printed::Json => output::result(&format!("{}\n", diagnostic::json(&checked.diagnostics))),
    }
    Ok(if checked.exit_code() == 0 { Exit::Passed } else { Exit::Usage })
}
