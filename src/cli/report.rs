//! `ragcheck report`: a run's report in one format, on stdout.

use super::arguments::{Report, Rows};
use super::exit::Exit;
use super::output::{self, Problem};
use super::select::newest_run;
use crate::{evaluation, report, trace};

/// Does what `ragcheck report` was asked to.
///
/// # Errors
/// When the folder does not hold a readable run.
pub(super) fn run(given: &Report) -> Result<Exit, Problem> {
    let evaluated = evaluation::score(&newest_run(given.run.as_deref()), false)?;
    let name = given.to.as_str();
    let file = (name == "csv").then_some(match given.rows {
        Rows::Criteria => trace::CRITERIA_CSV,
        Rows::Violations => trace::VIOLATIONS_CSV,
        Rows::Latency => trace::LATENCY_CSV,
        Rows::Trials => trace::TRIALS_CSV,
    });
    let format = report::named(name)
        .find(|format| file.is_none_or(|file| format.file() == file))
        .ok_or_else(|| format!("no report format is called `{name}`"))?;
    let mut out = Vec::new();
    format.write(&evaluated.view(), &mut out).map_err(|why| format!("the report cannot be made: {why}"))?;
    output::bytes(&out);
    Ok(Exit::Passed)
}
