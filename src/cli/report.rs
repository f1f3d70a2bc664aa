//! `ragcheck report`: one report of a run in some format, on stdout.

use super::arguments::{Report, Rows, To};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::{evaluation, report, trace};

/// Does what `ragcheck report` was asked to.
///
/// # Errors
/// When the folder does not hold a readable run.
pub fn run(given: &Report) -> Result<Exit, Problem> {
    let name = match given.to {
        To::Html => "html",
        To::Csv => "csv",
        To::Junit => "junit",
        To::Markdown => "markdown",
        To::Json => "json",
    };
    let evaluated = evaluation::score(&given.run, false)?;
    let file = match (given.to, given.rows) {
        (To::Csv, Rows::Criteria) => Some(trace::CRITERIA_CSV),
        (To::Csv, Rows::Latency) => Some(trace::LATENCY_CSV),
        (To::Csv, Rows::Trials) => Some(trace::TRIALS_CSV),
        _ => None,
    };
    let format = report::named(name)
        .find(|format| file.is_none_or(|file| format.file() == file))
        .ok_or_else(|| format!("no report format is called `{name}`"))?;
    let mut out = Vec::new();
    format.write(&evaluated.view(), &mut out).map_err(|why| format!("the report cannot be made: {why}"))?;
    output::bytes(&out);
    Ok(Exit::Passed)
}
