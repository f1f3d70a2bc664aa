//! `ragcheck report`: prints a run's report in one format to stdout.

use super::arguments::{Report, Rows};
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs::typed_or_newest;
use crate::compare::Comparison;
use crate::report::DecidedExit;
use crate::{platform::files, report, suite::evaluation, trace};
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// Runs `ragcheck report`.
///
/// # Errors
/// If the folder does not hold a readable run.
pub(super) fn run(given: &Report) -> Result<Exit, Problem> {
    let folder = typed_or_newest(given.run.as_deref())?;
    let mut evaluated = evaluation::score(&folder, false)?;
    if let Some(comparison) = beside::<Comparison>(&folder, trace::COMPARISON_JSON) {
        evaluated.compare_with(comparison);
    }
    if let Some(decided) = beside::<DecidedExit>(&folder, trace::EXIT_CODE) {
        evaluated.ends_with(decided);
    }
    let name = given.to.as_str();
    let file = (name == "csv").then_some(match given.rows {
        Rows::Criteria => trace::CRITERIA_CSV,
        Rows::Violations => trace::VIOLATIONS_CSV,
        Rows::Latency => trace::LATENCY_CSV,
        Rows::Requirements => trace::REQUIREMENTS_CSV,
        Rows::Trials => trace::TRIALS_CSV,
    });
    let format = report::named(name)
        .find(|format| file.is_none_or(|file| format.file() == file))
        .ok_or_else(|| format!("no report format is called `{name}`"))?;
    let mut out = Vec::new();
    format.write(&evaluated.view(), &mut out).map_err(|why| format!("the report cannot be made: {why}"))?;
    output::report(&out, name);
    Ok(Exit::Passed)
}

/// A sealed file beside the report. One that is unusable or edited is reported and left out.
fn beside<T: DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    let file = folder.join(name);
    let text = match files::read_to_string(&file) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return None,
        text => text.map_err(|why| why.to_string()),
    };
    let whole = |text: String| match trace::sealed(&text) {
        trace::Seal::Edited | trace::Seal::None => Err("it was edited by hand".to_owned()),
        trace::Seal::Whole => Ok(text),
    };
    let read = text.and_then(whole).and_then(|text| serde_json::from_str(&text).map_err(|why| why.to_string()));
    read.inspect_err(|why| output::remark(&format!("note: {} is left out: {why}", file.display()))).ok()
}
