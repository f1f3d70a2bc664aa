//! `ragcheck score`: recomputes verdicts and reports from `plan.json` and `traces.jsonl` alone.

use super::arguments::{Detail, Score};
use super::exit::Exit;
use super::output::{self, Problem};
use super::select::unless_newest;
use super::{import, runs};
use crate::suite::evaluation::{self, EvaluatedRun, ScoreError, SlicesError};
use crate::trace::text::plural;
use crate::{report, trace};
use std::path::Path;

/// Runs `ragcheck score`.
///
/// # Errors
/// If the folder does not hold a readable run.
pub(super) fn run(given: &Score) -> Result<Exit, Problem> {
    if let Some(named) = &given.import {
        return import::run(named, given);
    }
    let run = runs::typed_or_newest(given.run.as_deref())?;
    if let Some(slice) = given.slice {
        let number = evaluation::examine_slice(&run, slice).map_err(problem)?;
        output::remark(&format!("slice {slice}: {} examined", plural(number as usize, "trace")));
        return Ok(Exit::Passed);
    }
    let mut evaluated = match given.slices {
        Some(of) => evaluation::score_slices(&run, of).map_err(problem)?,
        None => evaluation::score(&run, false)?,
    };
    let written = evaluated.write(&run);
    let written = if given.slices.is_some() { written.and_then(|()| evaluation::remove_slices(&run)) } else { written };
    written.map_err(|why| Problem::unwritten(&run, &why))?;
    runs::renew_page(&run)?;
    print(&evaluated, given.verbose.of(given.format), &run, None);
    Ok(Exit::of_code(evaluated.evaluation.exit_code))
}

fn problem(error: ScoreError) -> Problem {
    match error {
        ScoreError::Slices(missing @ SlicesError::Missing { .. }) => Problem::Incomplete(missing.to_string()),
        ScoreError::Slices(unwritten @ SlicesError::Unwritten { .. }) => Problem::Unwritten(unwritten.to_string()),
        other => other.into(),
    }
}

/// Prints an evaluated run in the requested format. `again` is the command, as typed, that runs again what did not pass.
pub(super) fn print(evaluated: &EvaluatedRun, format: Detail, folder: &Path, again: Option<&str>) {
    let view = evaluated.view();
    match format {
        Detail::Brief | Detail::Whole => {
            if format == Detail::Whole {
                output::result(&report::each_trial(&view, output::coloured()));
            }
            let brief = (format == Detail::Brief).then(|| report::terminal_brief(&view, output::width())).flatten();
            let text = brief.unwrap_or_else(|| report::terminal(&view, output::width(), output::coloured()));
            output::result(&text);
            output::result(&format!("report: {}\n", folder.join(trace::INDEX_HTML).display()));
            let named = unless_newest(folder).map(|folder| folder.display().to_string());
            let known = report::Known { folder: named.as_deref(), again };
            let to_do = report::what_to_do(&view, known, output::width(), output::coloured());
            if let Some(text) = &to_do {
                output::result(text);
            }
        }
        Detail::Nothing => {}
        Detail::Json => {
            let mut text = Vec::new();
            let formats = report::named("json").try_for_each(|format| (format.write)(&view, &mut text));
            match formats {
                Ok(()) => output::json(&String::from_utf8_lossy(&text)),
                Err(why) => output::remark(&format!("error: the result cannot be printed: {why}")),
            }
        }
    }
}
