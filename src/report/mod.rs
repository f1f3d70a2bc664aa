//! Reports of one judged run, for people, spreadsheets, browsers and CI.
//!
//! Reports are functions from a [`View`] to bytes; the caller writes them. Each file format is a file of `formats`
//! behind [`Format`]; the terminal has a separate function, [`terminal`](terminal::terminal). Conversations reach the
//! HTML report through [`Timelines`], built while traces stream by, so that a run is never held in memory. Text from
//! models and documents is hostile: see [`crate::trace::text`]. Nothing here reads the time, and no unordered map
//! reaches the output, so the same run gives the same bytes.

mod charts;
mod compact;
pub(crate) mod comparison;
mod figures;
mod formats;
pub(crate) mod history;
mod page;
pub(crate) mod review;
pub(crate) mod runs;
#[cfg(test)]
mod sample;
mod searchable;
mod terminal;
mod terminal_lines;
mod terminal_table;
mod timelines;
mod to_do;
pub(crate) mod variants;

pub(crate) use self::comparison::columns as comparison_columns;
pub use self::formats::html::write as html;
pub(crate) use self::formats::{
    Encoding, annotation, call_columns, call_rows, criterion_columns, formats, latency_columns, named, names,
    requirement_columns, trial_columns, violation_columns,
};
pub(crate) use self::searchable::Searchable;
pub(crate) use self::terminal::{Known, each_trial, terminal, terminal_brief, what_to_do};
pub use self::timelines::{Beside, TimelineBuilder};
pub(crate) use self::timelines::{Room, Timelines};
pub(crate) use self::to_do::resumes;
pub(crate) use self::variants::columns as variant_columns;

use crate::compare::Comparison;
use crate::gate::Evaluation;
use crate::plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Row limit of the page's table; a larger page is slow to open.
const TABLE_ROWS: usize = 50_000;

/// Exit decision of `ragcheck run --baseline`, if `--fail-on` or the comparison itself decided it; or of `ragcheck exec`, if the
/// test runner failed (exit code 1, unless 2 or 3 come first), or if something kept a case or a request from being counted
/// (exit code 3): `exit-code.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedExit {
    /// Exit code of the process.
    pub exit_code: u8,
    /// Reason, in a sentence without its full stop.
    pub why: String,
}

/// Input of every report on a run.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Plan of the run.
    pub plan: &'a Plan,
    /// Evaluation of the run.
    pub evaluation: &'a Evaluation,
    /// Conversations of the trials; only the HTML report shows them.
    pub timelines: &'a Timelines,
    /// Comparison with the base, for reports that show changes.
    pub comparison: Option<&'a Comparison>,
    /// Exit code of the run, if more than its criteria decided it.
    pub decided: Option<&'a DecidedExit>,
    /// Pages beside the report, to link to.
    pub pages: Pages,
}

/// Pages beside those of a run folder, which they link to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// A comparison with another run.
    pub comparison: bool,
    /// A comparison of the run's variants.
    pub variants: bool,
    /// The history, one folder up. Reports link to it unasked, since they must not depend on other runs: every run writes it.
    pub history: bool,
}

impl View<'_> {
    /// Exit code of the run.
    fn exit_code(&self) -> u8 {
        self.decided.map_or(self.evaluation.exit_code, |decided| decided.exit_code)
    }

    /// Reason for the exit code, in a sentence without its full stop.
    fn why(&self) -> &str {
        self.decided.map_or(&self.evaluation.conclusion, |decided| &decided.why)
    }
}

/// A file format of the report.
#[derive(Debug)]
pub(crate) struct Format {
    /// Word of `--to`, for example `html`; formats may share one.
    pub(crate) name: &'static str,
    /// File name in the run folder.
    pub(crate) file: &'static str,
    /// Writes the whole file. Fails only if it cannot be written.
    pub(crate) write: fn(&View<'_>, &mut dyn Write) -> io::Result<()>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(format: &Format, view: &View<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        (format.write)(view, &mut out).expect("a vector takes everything");
        out
    }

    pub(super) fn written(format: &Format, view: &View<'_>) -> String {
        String::from_utf8(bytes(format, view)).expect("it is UTF-8")
    }

    #[test]
    fn every_format_gives_the_same_bytes_twice() {
        let (one, two) = (sample::run(3), sample::run(3));
        for format in formats() {
            assert!(bytes(format, &one.view()) == bytes(format, &two.view()), "{}", format.file);
        }
        assert_eq!(terminal(&one.view(), 100, true), terminal(&two.view(), 100, true));
    }

    #[test]
    fn every_word_of_to_names_a_file_of_its_own() {
        let mut files: Vec<_> = formats().map(|format| format.file).collect();
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), formats().count());
        assert_eq!(named("csv").count(), 5);
        assert_eq!(named("pdf").count(), 0);
        for name in names() {
            assert_ne!(named(name).count(), 0, "{name}");
        }
    }
}
