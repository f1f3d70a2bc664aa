//! `ragcheck check`: reports all mistakes at once, missing and stale recordings, and keys that live runs lack.

use super::arguments::{Check, Printed};
use super::decidable::{poor_prospects, ragged, too_few_cases, unknown_ratings, without_units};
use super::diagnostic;
use super::exit::Exit;
use super::long_cases::long_cases;
use super::output::{self, Problem};
use super::recording_age::ages;
use crate::plan::{self, Plan, Selection};
use crate::scenario::{Diagnostic, Loaded, Severity, find_root, load_report};
use crate::suite::recordings::{self, Ages, broken, unrecorded};
use crate::trial::{Opened, Variables, missing_keys};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of `check`.
#[derive(Debug)]
pub struct Checked {
    /// Errors and notes by file and position; notes on missing recordings come last.
    pub diagnostics: Vec<Diagnostic>,
    /// Number of files read.
    pub files: usize,
}

impl Checked {
    /// 2 if there is an error, else 0: notes do not count.
    pub fn exit_code(&self) -> u8 {
        let wrong = self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        if wrong { 2 } else { 0 }
    }

    /// Text output: every diagnostic, then the summary line.
    pub fn text(&self, styled: bool) -> String {
        let summary = diagnostic::summary(&self.diagnostics, self.files);
        let all = diagnostic::text(&self.diagnostics, styled);
        if all.is_empty() { format!("{summary}\n") } else { format!("{all}\n{summary}\n") }
    }
}

/// Checks the scenarios at `paths`, the criteria and the project file. `cassettes` overrides the project's folder.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
pub fn check(root: &Path, paths: &[PathBuf], criteria: Option<&Path>, cassettes: Option<&Path>) -> Checked {
    checked(root, paths, criteria, cassettes).0
}

/// Like [`check`], but also returns what was loaded if there are no errors.
fn checked(
    root: &Path,
    paths: &[PathBuf],
    criteria: Option<&Path>,
    cassettes: Option<&Path>,
) -> (Checked, Option<Loaded>) {
    let report = load_report(root, paths, criteria, &crate::catalogues());
    let mut diagnostics = report.diagnostics;
    if let Some(loaded) = &report.loaded {
        diagnostics.extend(broken(loaded, cassettes));
        diagnostics.extend(unrecorded(loaded, cassettes));
    }
    let plan =
        report.loaded.as_ref().and_then(|loaded| Some((loaded, plan::build(loaded, &Selection::default(), 0).ok()?)));
    if let Some((loaded, plan)) = &plan {
        // Over some of the project's scenarios, what its criteria leave undecided decides nothing.
        let decided = !loaded.partial;
        diagnostics.extend(too_few_cases(loaded, plan, decided));
        diagnostics.extend(poor_prospects(loaded, plan, decided));
        diagnostics.extend(unknown_ratings(loaded, plan).filter(|_| paths.is_empty()));
        diagnostics.extend(long_cases(loaded, plan));
        diagnostics.extend(ragged(plan));
        diagnostics.extend(without_units(loaded, plan, paths.is_empty() && criteria.is_none()));
    }
    (Checked { diagnostics, files: report.files }, report.loaded)
}

/// Notes on recordings that are old, no longer match or belong to no trial; or the error that prevents every run.
fn stale(loaded: Loaded, variables: Variables, ages: Ages) -> Vec<Diagnostic> {
    let plan = match plan::build(&loaded, &Selection::default(), 0) {
        Ok(plan) => plan,
        Err(mistakes) => return mistakes.into_iter().filter(|mistake| mistake.code != "nothing-selected").collect(),
    };
    match Opened::new(Arc::new(loaded), &plan) {
        Ok(mut opened) => {
            opened.variables = variables;
            let misfits = recordings::Catalogue::recorded(&opened, &plan).misfits(&plan);
            let ends = recordings::model_end_notes(&opened, &plan, ages);
            let counted = uncounted(&opened.loaded, &plan);
            [recordings::notes(&opened, &plan, ages), misfits, counted, keys(&opened, &plan), ends].concat()
        }
        Err(why) => vec![Diagnostic::error("no-trials", "", why.to_string())],
    }
}

/// Notes on every key that a live run would lack, so that all are found before the first request.
fn keys(opened: &Opened, plan: &Plan) -> Vec<Diagnostic> {
    let note = |(problem, files): (String, BTreeSet<String>)| {
        let files = files.into_iter().collect::<Vec<_>>().join(", ");
        Diagnostic::note("no-key", "ragcheck.yaml", problem)
            .with_help(format!("live and recording runs of {files} need it; replays do not"))
    };
    missing_keys(opened, plan).into_iter().map(note).collect()
}

/// Notes on why `--max-cost` would be refused, for projects that declare prices.
fn uncounted(loaded: &Loaded, plan: &Plan) -> Vec<Diagnostic> {
    if plan.prices.is_empty() {
        return Vec::new();
    }
    let note = |code, file: &str, model: &str, lacks: &str, help: &str| {
        let message = format!("`{model}` has no {lacks}: a run with `--max-cost` would be refused");
        Diagnostic::note(code, file, message).with_help(help)
    };
    let each = |found: BTreeMap<String, BTreeSet<String>>| {
        found.into_iter().flat_map(|(model, files)| files.into_iter().map(move |file| (model.clone(), file)))
    };
    let unpriced = each(recordings::unpriced(loaded, plan)).map(|(model, file)| {
        note("no-price", &file, &model, "price", "add it under `prices` in ragcheck.yaml; 0 for what costs nothing")
    });
    let unbounded = each(recordings::unbounded(plan)).map(|(model, file)| {
        note("no-max-tokens", &file, &model, "`max_tokens`", "add `max_tokens` to the scenario's `model`")
    });
    unpriced.chain(unbounded).collect()
}

/// Runs `ragcheck check`.
///
/// # Errors
/// If the current folder cannot be read.
pub(super) fn run(given: &Check) -> Result<Exit, Problem> {
    let here = super::select::current_folder()?;
    let root = find_root(&here);
    let (paths, criteria) = super::select::from_here(&given.paths, given.criteria.as_deref());
    let (mut checked, loaded) = checked(&root, &paths, criteria.as_deref(), None);
    if let Some(loaded) = loaded {
        let ages = ages(given.warn_recordings_after, &loaded.project)?;
        let variables = super::select::variables(given.env_file.as_deref())?;
        checked.diagnostics.extend(stale(loaded, variables, ages));
    }
    match given.format {
        Printed::Human => {
            output::result(&checked.text(output::coloured()));
            output::annotate(&checked.diagnostics);
        }
        Printed::Json => output::result(&format!("{}\n", diagnostic::json(&checked.diagnostics))),
    }
    Ok(if checked.exit_code() == 0 { Exit::Passed } else { Exit::Usage })
}
