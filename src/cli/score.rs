//! `ragcheck score`: recomputes verdicts and reports from `plan.json` and `traces.jsonl` alone.

use super::arguments::{Printed, Score};
use super::exit::Exit;
use super::import;
use super::output::{self, Problem};
use super::runs;
use crate::report;
use crate::suite::evaluation::{self, EvaluatedRun};
use crate::trace;
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
    let mut evaluated = evaluation::score(&run, false)?;
    evaluated.write(&run).map_err(|why| format!("{} cannot be written: {why}", run.display()))?;
    runs::renew_page(&run)?;
    print(&evaluated, given.format, &run);
    Ok(Exit::of_code(evaluated.evaluation.exit_code))
}

/// Prints an evaluated run in the requested format.
pub(super) fn print(evaluated: &EvaluatedRun, format: Printed, folder: &Path) {
    let view = evaluated.view();
    match format {
        Printed::Human => {
            output::result(&report::terminal(&view, output::width(), output::coloured()));
            output::result(&format!("report: {}\n", folder.join(trace::INDEX_HTML).display()));
        }
        Printed::Json => match serde_json::to_string_pretty(&evaluated.evaluation) {
            Ok(text) => output::json(&format!("{text}\n")),
            Err(why) => output::remark(&format!("error: the result cannot be printed: {why}")),
        },
    }
}
