//! `ragcheck report`: a run's report in one format, on stdout.

use super::arguments::{Report, Rows};
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs::typed_or_newest;
use crate::compare::Comparison;
use crate::{evaluation, files, report, trace};
use std::io;
use std::path::Path;

/// Does what `ragcheck report` was asked to.
///
/// # Errors
/// When the folder does not hold a readable run.
pub(super) fn run(given: &Report) -> Result<Exit, Problem> {
    let folder = typed_or_newest(given.run.as_deref())?;
    let mut evaluated = evaluation::score(&folder, false)?;
    if let Some(comparison) = beside(&folder) {
        evaluated.compare_with(comparison);
    }
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

/// What the run was compared with last; one that cannot be read is told and left out.
fn beside(folder: &Path) -> Option<Comparison> {
    let file = folder.join(trace::COMPARISON_JSON);
    let text = match files::read_to_string(&file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return None,
        text => text.map_err(|why| why.to_string()),
    };
    let read = text.and_then(|text| serde_json::from_str(&text).map_err(|why| why.to_string()));
    read.inspect_err(|why| output::remark(&format!("note: {} cannot be read and is left out: {why}", file.display())))
        .ok()
}
