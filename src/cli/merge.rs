//! `ragcheck merge`: makes one run of the runs of its partitions.

use super::arguments::Merge;
use super::exit::Exit;
use super::output::{self, Problem};
use super::score::print;
use super::select::{current_folder, reports_folder};
use crate::scenario;
use crate::suite::{MergeError, merge};

impl From<MergeError> for Problem {
    fn from(error: MergeError) -> Self {
        match error {
            missing @ MergeError::Missing { .. } => Self::Incomplete(missing.to_string()),
            beside @ MergeError::Unlisted(_) => Self::Unwritten(beside.to_string()),
            other => Self::of(&other),
        }
    }
}

/// Runs `ragcheck merge`; the exit code is that of the whole run.
///
/// # Errors
/// If the runs are no partitions of one run, or one of its trials is missing.
pub(super) fn run(given: &Merge) -> Result<Exit, Problem> {
    let reports = given.report_dir.clone().unwrap_or_else(reports_folder);
    let root = scenario::find_root(&current_folder()?);
    let merged = merge(&given.runs, &reports, &root)?;
    merged.notes.iter().for_each(|note| output::remark(&format!("note: {note}")));
    print(&merged.evaluated, given.verbose.of(given.format), &merged.folder, None);
    Ok(Exit::of_code(merged.evaluated.evaluation.exit_code))
}
