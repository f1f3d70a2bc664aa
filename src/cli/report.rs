//! `ragcheck report`: prints a run's report in one format to stdout.

use super::arguments::{Report, Rows};
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs::typed_or_newest;
use crate::compare::Comparison;
use crate::report::{DecidedExit, Encoding};
use crate::{platform::files, report, suite::evaluation, trace};
use clap::ValueEnum as _;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// Runs `ragcheck report`.
///
/// # Errors
/// If the folder does not hold a readable run.
pub(super) fn run(given: &Report) -> Result<Exit, Problem> {
    let folder = typed_or_newest(given.run.as_deref())?;
    let encoding = Encoding::named(&given.to);
    if let (Some(encoding), Rows::Calls) = (encoding, given.rows) {
        return calls(&folder, encoding, &given.to);
    }
    let mut evaluated = evaluation::score(&folder, false)?;
    if let Some(comparison) = beside::<Comparison>(&folder, trace::COMPARISON_JSON) {
        evaluated.compare_with(comparison);
    }
    if let Some(decided) = beside::<DecidedExit>(&folder, trace::EXIT_CODE) {
        evaluated.ends_with(decided);
    }
    let name = given.to.as_str();
    let table = encoding.and_then(|_| given.rows.to_possible_value());
    let format = report::named(name)
        .find(|format| table.as_ref().is_none_or(|table| format.file.split('.').next() == Some(table.get_name())))
        .ok_or_else(|| format!("no report format is called `{name}`"))?;
    let mut out = Vec::new();
    (format.write)(&evaluated.view(), &mut out).map_err(|why| format!("the report cannot be made: {why}"))?;
    output::report(&out, name);
    Ok(Exit::Passed)
}

/// Prints the table of calls, from the traces.
fn calls(folder: &Path, encoding: Encoding, name: &str) -> Result<Exit, Problem> {
    let mut broken = None;
    let traces = evaluation::read_traces(folder)?.map_while(|trace| trace.map_err(|why| broken = Some(why)).ok());
    let mut out = Vec::new();
    let written = encoding.write(&mut out, &report::call_columns(), traces.flat_map(report::call_rows));
    written.map_err(|why| format!("the table cannot be made: {why}"))?;
    if let Some(why) = broken {
        return Err(why.into());
    }
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
