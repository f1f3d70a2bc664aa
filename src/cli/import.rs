//! `ragcheck score --import [FORMAT] FILE`: makes a run folder from another agent's conversations.

use super::arguments::Score;
use super::exit::Exit;
use super::output::{Problem, remark};
use super::score::print;
use super::select::{current_folder, project, reports_folder};
use crate::gate::{Evaluation, Verdict};
use crate::platform::bounds::Bound;
use crate::platform::files;
use crate::scenario::{self, Criteria, Scenario};
use crate::suite::import::Format;
use crate::suite::{self, OfProject};
use crate::trace::MeasuredAgreement;
use crate::trace::text::{listed, plural, quote};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of duplicates listed.
const NAMED: usize = 5;

/// The format, if one is named, and the file.
///
/// # Errors
/// If the format is not known.
pub(super) fn format_and_file(named: &[PathBuf]) -> Result<(Option<Format>, &Path), Problem> {
    let by_name = |name: &PathBuf| Format::ALL.into_iter().find(|one| name.as_os_str() == one.name());
    match named {
        [file] if by_name(file).is_none() || file.exists() => Ok((None, file)),
        [format, file] if by_name(format).is_some() => Ok((by_name(format), file)),
        _ => {
            let names = Format::ALL.map(|one| format!("`--import {} FILE`", one.name())).join(", ");
            Err(Problem::Words(format!("write `--import FILE`, or name the format: {names}")))
        }
    }
}

/// Imports the file of `named` (an optional format, and the file), evaluates it and writes a run folder.
///
/// # Errors
/// If the file or the criteria cannot be used, or the folder cannot be written.
pub(super) fn run(named: &[PathBuf], given: &Score) -> Result<Exit, Problem> {
    let (format, file) = format_and_file(named)?;
    let criteria = given.criteria.as_deref().map(read_criteria).transpose()?;
    let reports = given.report_dir.clone().unwrap_or_else(reports_folder);
    let agent = given.scenario.as_deref().map(read_scenario).transpose()?;
    let project = of_project(criteria.is_some())?;
    let run = suite::import(format, file, criteria, project, agent.as_ref(), &reports, &current_folder()?)?;
    if let Some(format) = run.recognised {
        remark(&format!("read as `{}`", format.name()));
    }
    for one in &run.remarks {
        remark(&quote(one, 400));
    }
    if !run.ignored.is_empty() {
        let member =
            |(name, count): (&String, &usize)| format!("`{}` ({})", quote(name, 60), plural(*count, "conversation"));
        let members: Vec<String> = run.ignored.iter().map(member).collect();
        remark(&format!("ignored, because they mean nothing here: {}", members.join(", ")));
    }
    if !run.copies.is_empty() {
        let named = run.copies.iter().map(|(copy, first)| format!("conversation {copy} is conversation {first}"));
        let named = listed(named, NAMED);
        let copies = if run.copies.len() == 1 { "exact copy" } else { "exact copies" };
        remark(&format!("dropped {} {copies}: {named}", run.copies.len()));
    }
    run.aside.iter().for_each(|note| remark(note));
    for undecided in too_few(&run.evaluated.evaluation) {
        remark(&undecided);
    }
    print(&run.evaluated, given.verbose.of(given.format), &run.folder, None);
    remark(&quote(&run.summary, 2_000));
    Ok(Exit::of_code(run.evaluated.evaluation.exit_code))
}

/// One message for each required row with too few conversations: how many there are, and how many more are needed.
fn too_few(evaluation: &Evaluation) -> Vec<String> {
    let rows = evaluation.rows();
    let undecided = rows.filter(|row| row.required && row.verdict == Verdict::Inconclusive);
    let number = plural(evaluation.trials.len(), "conversation");
    undecided.map(|row| format!("too few for `{}`: {number} imported, {}", row.id, row.sentence)).collect()
}

/// What the project at the current folder adds; criteria that are named replace those of the project.
fn of_project(are_named: bool) -> Result<OfProject, Problem> {
    let (root, project) = project()?;
    let ratings = project.ratings.as_ref().map(|named| read_ratings(&root, named)).transpose()?;
    let criteria = project.criteria.as_ref().filter(|_| !are_named);
    let criteria = criteria.map(|named| read_criteria(&root.join(named))).transpose()?;
    let agreement = project.agreement.as_ref().map(|named| read_agreement(&root.join(named))).transpose()?;
    let (not_measured_ok, prices) = (project.not_measured_ok, project.prices);
    Ok(OfProject { criteria, not_measured_ok, ratings, agreement, prices })
}

fn read_ratings(root: &Path, named: &str) -> Result<BTreeMap<String, bool>, Problem> {
    let path = root.join(named);
    let text = files::read_text_within(&path, Bound::RatingsSize)
        .map_err(|why| format!("{} cannot be read: {why}", path.display()))?;
    let (ratings, unrated) = scenario::ratings::counted(&text, named).map_err(Problem::Diagnostics)?;
    if let Some(note) = unrated {
        remark(&format!("{named}: {}", note.message));
    }
    Ok(ratings)
}

fn read_agreement(path: &Path) -> Result<MeasuredAgreement, Problem> {
    let read = files::read_text_within(path, Bound::ScenarioSize).map_err(|why| why.to_string());
    let found = read.and_then(|text| MeasuredAgreement::read(&text).map_err(|why| why.to_string()));
    Ok(found.map_err(|why| format!("the agreement {} cannot be used: {why}", path.display()))?)
}

pub(super) fn read_scenario(file: &Path) -> Result<Scenario, Problem> {
    let here = current_folder()?;
    let paths = [here.join(file)];
    let loaded = scenario::load(&scenario::find_root(&here), &paths, None, &crate::catalogues())?;
    let scenario = loaded.scenarios.into_iter().next().map(|loaded| loaded.scenario);
    scenario.ok_or_else(|| Problem::Words(format!("{} is no scenario", file.display())))
}

fn read_criteria(file: &Path) -> Result<Criteria, Problem> {
    let here = current_folder()?;
    let file = here.join(file);
    Ok(scenario::load(&scenario::find_root(&here), std::slice::from_ref(&file), Some(&file), &crate::catalogues())?
        .criteria)
}
