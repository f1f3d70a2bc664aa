//! `ragcheck runs`: lists the run folders of a project, newest first.

use super::arguments::Runs;
use super::exit::Exit;
use super::output::{self, Problem};
use super::select::{newest_run, reports_folder};
use crate::report;
use crate::report::runs::RunRow;
use crate::suite::evaluation;
use crate::trace;
use std::path::{Path, PathBuf};

pub(super) fn run(given: &Runs) -> Result<Exit, Problem> {
    let reports = given.report_dir.clone().unwrap_or_else(reports_folder);
    let runs = listed(&reports)?;
    output::data(given.format, &runs, |runs| report::runs::terminal(runs, output::width()))?;
    if reports.is_dir() {
        let unwritten = |why| Problem::unwritten(&reports.join(trace::INDEX_HTML), &why);
        evaluation::write_page_of(&reports, &runs).map_err(unwritten)?;
    }
    Ok(Exit::Passed)
}

/// Rewrites the list beside a run folder, if there is one.
pub(super) fn renew_page(folder: &Path) -> Result<(), Problem> {
    evaluation::renew_runs_page(folder).map_err(|why| Problem::Unwritten(why.to_string()))
}

fn listed(reports: &Path) -> Result<Vec<RunRow>, Problem> {
    let runs = evaluation::runs(reports);
    Ok(runs.map_err(|why| format!("{} cannot be read: {why}", reports.display()))?)
}

/// The given run folder, or the newest one.
pub(super) fn typed_or_newest(typed: Option<&Path>) -> Result<PathBuf, Problem> {
    let folder = newest_run(typed);
    is_there(&folder)?;
    Ok(folder)
}

/// Checks that the folder exists.
///
/// # Errors
/// If it does not, with the commands that make or list run folders.
pub(super) fn is_there(folder: &Path) -> Result<(), Problem> {
    newest_is_there(folder)?;
    if folder.exists() {
        return Ok(());
    }
    Err(Problem::Words(format!(
        "{}: there is no such run folder; `ragcheck runs` lists those that there are, `ragcheck run` makes one",
        folder.display()
    )))
}

/// Checks that `folder` exists, if it means the newest run of the project.
///
/// # Errors
/// Names the existing runs: a run of selected cases is never the newest.
pub(super) fn newest_is_there(folder: &Path) -> Result<(), Problem> {
    let newest = folder.file_name().is_some_and(|name| name == "latest");
    if !newest || folder.exists() {
        return Ok(());
    }
    let reports = folder.parent().unwrap_or(folder);
    let runs = if reports.is_dir() { listed(reports)? } else { Vec::new() };
    Err(Problem::Words(match runs.first() {
        None => format!("{}: there is no run yet; make one: ragcheck run", folder.display()),
        Some(run) => format!(
            "{}: there is no run of whole scenarios yet, and one of some cases is never the latest; name one: {} \
             (ragcheck runs lists them)",
            folder.display(),
            reports.join(&run.name).display()
        ),
    }))
}

/// The run before `newer`: the newest older run of the same scenarios and the same selection.
///
/// # Errors
/// If there is none.
pub(super) fn previous(newer: &Path) -> Result<PathBuf, Problem> {
    let whole = newer.canonicalize().map_err(|why| format!("{}: {why}", newer.display()))?;
    let (Some(reports), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err(Problem::Words(format!("{} is no run folder", newer.display())));
    };
    let runs = listed(reports)?;
    let Some(own) = runs.iter().position(|run| name == run.name.as_str()) else {
        return Err(Problem::Words(format!("{} is no run folder", newer.display())));
    };
    let like = |run: &&RunRow| run.scenarios == runs[own].scenarios && run.part == runs[own].part;
    let mut older = runs.iter().skip(own + 1).filter(|run| run.broken.is_none() && run.made_at.is_some());
    let found = older.find(like);
    let found = found.ok_or_else(|| {
        format!(
            "no run of the same scenarios lies before {} in {}; `ragcheck runs` lists all of them",
            name.to_string_lossy(),
            reports.display()
        )
    })?;
    Ok(newer.parent().filter(|folder| folder.join(&found.name).is_dir()).unwrap_or(reports).join(&found.name))
}
