//! Converts arguments into a loaded suite and a selection of its trials.

use super::arguments::{Bounds, Select};
use super::output::Problem;
use super::recording_age::ages;
use crate::plan::Selection;
use crate::platform::files;
use crate::scenario::{self, Diagnostic, Project};
use crate::suite::{RunOptions, Suite};
use crate::trial::{self, Variables};
use std::path::{Path, PathBuf};

/// The current folder.
pub(super) fn current_folder() -> Result<PathBuf, Problem> {
    std::env::current_dir().map_err(|why| Problem::Words(format!("the current folder cannot be read: {why}")))
}

/// The folder of the project, and its file.
///
/// # Errors
/// All mistakes in the file.
pub(super) fn project() -> Result<(PathBuf, Project), Problem> {
    let root = scenario::find_root(&current_folder()?);
    let project = scenario::load_project(&root, &crate::catalogues())?;
    Ok((root, project))
}

/// Loads the named scenarios and criteria.
///
/// # Errors
/// All mistakes in the files.
pub(super) fn load(given: &Select) -> Result<Suite, Problem> {
    let (paths, criteria) = from_here(&given.paths, given.criteria.as_deref());
    let suite = Suite::load(&current_folder()?, &paths, criteria.as_deref())?;
    match given.paths.first() {
        Some(named) if suite.loaded().scenarios.is_empty() => Err(no_scenario(named).into()),
        _ => Ok(suite),
    }
}

/// Diagnostic for a path with criteria but no scenario.
fn no_scenario(named: &Path) -> Vec<Diagnostic> {
    let file = named.to_string_lossy().replace('\\', "/");
    let message = if named.is_dir() {
        "there is no scenario here, only criteria"
    } else {
        "this is no scenario: it has criteria"
    };
    vec![Diagnostic::error("no-scenario", &file, message).with_help(
        "name a scenario, or nothing for all of the project; `--criteria FILE` runs them against other criteria",
    )]
}

/// Typed paths of scenarios and criteria are relative to the current folder; one that is not there is looked for from the
/// project's folder, as reports print it.
pub(super) fn from_here(paths: &[PathBuf], criteria: Option<&Path>) -> (Vec<PathBuf>, Option<PathBuf>) {
    let root = scenario::find_root(&std::env::current_dir().unwrap_or_default());
    let place = |path: &Path| {
        let here = files::absolute(path);
        let below = root.join(path);
        if !here.exists() && below.exists() { below } else { here }
    };
    (paths.iter().map(|path| place(path)).collect(), criteria.map(place))
}

/// The selected trials.
pub(super) fn selection(given: &Select) -> Selection {
    Selection {
        only: given.only.clone(),
        exclude: given.exclude.clone(),
        tags: given.tag.clone(),
        flow: given.flow.clone(),
        variant: given.variant.clone(),
        repeat: given.repeat,
        sample: given.filter_sample,
        ..Selection::default()
    }
}

/// Limits and output folder of a run; other options have their defaults.
///
/// # Errors
/// If the variables file or an age is invalid.
pub(super) fn bounded(given: &Bounds, select: &Select, project: &Project) -> Result<RunOptions, Problem> {
    Ok(RunOptions {
        seed: select.seed,
        jobs: given.jobs,
        max_calls: given.max_calls,
        max_cost: given.max_cost,
        timeout: given.timeout,
        variables: variables(given.env_file.as_deref())?,
        reports: given.report_dir.clone(),
        ages: Some(ages(given.warn_recordings_after, project)?),
        ..RunOptions::default()
    })
}

/// Variables of the environment file, if one is given.
///
/// # Errors
/// If it cannot be read, or a line is not a variable.
pub(super) fn variables(file: Option<&Path>) -> Result<Variables, Problem> {
    let Some(file) = file else { return Ok(Variables::new()) };
    let shown = file.display();
    let text = files::read_to_string(file).map_err(|why| format!("--env-file: {shown} cannot be read: {why}"))?;
    let read = trial::read_variables(&text);
    read.map_err(|line| Problem::Words(format!("--env-file: {shown}, line {line}: expected `KEY=VALUE` or a comment")))
}

/// The given run folder, or the project's newest run, from anywhere inside the project.
pub(super) fn newest_run(typed: Option<&Path>) -> PathBuf {
    typed.map_or_else(
        || {
            let newest = reports_folder().join("latest");
            let here = std::env::current_dir().unwrap_or_default();
            newest.strip_prefix(here).map(Path::to_path_buf).unwrap_or(newest)
        },
        Path::to_path_buf,
    )
}

/// A run folder as the current folder sees it; `None` for the newest run, which needs no name.
pub(super) fn unless_newest(folder: &Path) -> Option<PathBuf> {
    let newest = files::resolved(&newest_run(None)).ok() == files::resolved(folder).ok();
    let here = std::env::current_dir().unwrap_or_default();
    (!newest).then(|| folder.strip_prefix(&here).unwrap_or(folder).to_owned())
}

/// The project's reports folder; the default one if the project file has mistakes.
pub(super) fn reports_folder() -> PathBuf {
    let root = scenario::find_root(&std::env::current_dir().unwrap_or_default());
    let reports = scenario::load(&root, &[], None, &crate::catalogues())
        .map_or_else(|_| "reports".into(), |loaded| loaded.project.reports);
    root.join(reports)
}
