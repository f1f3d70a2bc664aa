//! The run folder: names of its files, and reading and writing of `traces.jsonl`.
//!
//! | file | holds |
//! |---|---|
//! | `plan.json` | the planned trials and the rules of evaluation |
//! | `traces.jsonl` | one [`Trace`] per line, in plan order, each with its digest and that of its plan |
//! | `run-again.jsonl` | traces of re-runs while nothing under test had changed, which do not count |
//! | `passages.jsonl` | the whole text of each passage that a search found, see [`super::Passages`] |
//! | `run.json` | verdicts and figures |
//! | `environment.json` | what differs between machines: times, jobs, paths |
//! | `trials.csv`, `criteria.csv`, `violations.csv`, `latency.csv`, `requirements.csv`, `index.html` | the report |
//! | `mutants.json` | what `ragcheck mutate` found: which defects change a verdict, and how requirements are shown |
//! | `grades.jsonl` | grades of answers, where a model graded them, see [`super::Grade`] |
//! | `judgements.csv` | the same as a table |
//! | `agreement.json` | how far they agree with people, where the run has ratings, see [`super::MeasuredAgreement`] |
//! | `own-files.json` | which grades and comparisons were made on this machine |
//! | `exit-code.json` | the exit code of the run, where more than its criteria decided it: `run --baseline --fail-on` |
//! | `comparison.csv`, `comparison.html`, `comparison.json` | the last comparison in which it was the newer side |
//! | `variants.csv`, `pairs.csv`, `variants.html`, `variants.json` | the last comparison of its variants |
//!
//! `plan.json` and each line of `traces.jsonl` end with a digest, see `super::seal`: edits by hand are reported.
//!
//! `score` reads `plan.json`, `traces.jsonl` and, where it exists, `grades.jsonl`, and nothing else.

use super::{TRACE_VERSION, Trace};
use crate::platform::bounds::Bound;
use crate::platform::files;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// The first version of traces that carry the roles of tools.
const ROLES_VERSION: u32 = 2;

/// Resolved expectations, planned trials, criteria, state machines.
pub const PLAN: &str = "plan.json";
/// Traces, one a line.
pub const TRACES: &str = "traces.jsonl";
/// Traces of draws that do not count, one per line: re-run trials.
pub(crate) const RUN_AGAIN: &str = "run-again.jsonl";
/// Verdicts and figures.
pub(crate) const RUN: &str = "run.json";
/// Values that differ between machines.
pub(crate) const ENVIRONMENT: &str = "environment.json";
/// What the processes of external agents printed, a line of JSON with `trial` and `text` for each trial.
pub(crate) const AGENT_OUTPUT: &str = "agent-output.jsonl";
pub(crate) const TRIALS_CSV: &str = "trials.csv";
/// One row a criterion.
pub(crate) const CRITERIA_CSV: &str = "criteria.csv";
/// One row a unit that fails a criterion.
pub(crate) const VIOLATIONS_CSV: &str = "violations.csv";
/// One row a figure of time.
pub(crate) const LATENCY_CSV: &str = "latency.csv";
pub(crate) const REQUIREMENTS_CSV: &str = "requirements.csv";
/// Which defects of the evidence change a verdict.
pub(crate) const MUTANTS: &str = "mutants.json";
/// The report.
pub(crate) const INDEX_HTML: &str = "index.html";
/// One row an answer and item of a rubric.
pub(crate) const JUDGEMENTS_CSV: &str = "judgements.csv";
/// The exit code of the run, if more than its criteria decided it.
pub(crate) const EXIT_CODE: &str = "exit-code.json";
/// One row a criterion compared.
pub(crate) const COMPARISON_CSV: &str = "comparison.csv";
pub(crate) const COMPARISON_HTML: &str = "comparison.html";
/// The comparison as data.
pub(crate) const COMPARISON_JSON: &str = "comparison.json";
/// One row a figure of a variant.
pub(crate) const VARIANTS_CSV: &str = "variants.csv";
/// One row a criterion of a pair of variants.
pub(crate) const PAIRS_CSV: &str = "pairs.csv";
/// The comparison of variants as a page.
pub(crate) const VARIANTS_HTML: &str = "variants.html";
/// The comparison of variants as data.
pub(crate) const VARIANTS_JSON: &str = "variants.json";

/// A line of `traces.jsonl` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("line {line}: {error}")]
    Read { line: usize, error: std::io::Error },
    /// The line is not a trace.
    #[error("line {line}: not a trace: {error}")]
    Parse { line: usize, error: serde_json::Error },
    /// Written by a newer build.
    #[error("line {line}: trace format {version} is newer than this build reads ({TRACE_VERSION}); update ragcheck")]
    Newer { line: usize, version: u32 },
}

impl TraceError {
    /// The number of its line.
    pub(crate) fn line_mut(&mut self) -> &mut usize {
        let (Self::Read { line, .. } | Self::Parse { line, .. } | Self::Newer { line, .. }) = self;
        line
    }
}

/// Writes one trace as one line.
///
/// ```
/// use ragcheck::{Trace, read_traces, write_trace};
///
/// let trace: Trace = serde_json::from_value(serde_json::json!({
///     "version": 2,
///     "trial": "refunds/deposit/tool-rag.base.1",
///     "scenario": "refunds",
///     "case": "deposit",
///     "lane": {"flow": "tool-rag", "variant": "base", "repetition": 1},
///     "seed": 0,
///     "evidence": {"mode": "live", "recorded_from": "my agent", "model": "m", "knowledge": ""},
///     "end": "completed",
///     "took_us": 1_250_000,
///     "events": [],
/// }))?;
/// let mut lines = Vec::new();
/// write_trace(&mut lines, &trace)?;
/// assert_eq!(read_traces(lines.as_slice()).next().transpose()?, Some(trace));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If it cannot be written as JSON.
pub fn write_trace(out: &mut Vec<u8>, trace: &Trace) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, trace)?;
    out.push(b'\n');
    Ok(())
}

/// Parses one line of `traces.jsonl`; `line` counts from 1 and is used in the message.
///
/// # Errors
/// If it is not a trace, or newer than this build reads.
pub(crate) fn parse_trace(text: &str, line: usize) -> Result<Trace, TraceError> {
    let mut trace: Trace = serde_json::from_str(text).map_err(|error| TraceError::Parse { line, error })?;
    if trace.version > TRACE_VERSION {
        return Err(TraceError::Newer { line, version: trace.version });
    }
    if trace.version < ROLES_VERSION {
        trace.roles = super::version_1();
    }
    Ok(trace)
}

/// The text of a run folder's plan.
///
/// # Errors
/// When it cannot be read, or is larger than [`Bound::PlanSize`].
pub(crate) fn plan_text(folder: &Path) -> io::Result<Vec<u8>> {
    files::read_at_most(folder.join(PLAN), Bound::PlanSize.most()).map_err(|error| Bound::PlanSize.named(error))
}

/// Appends the next line of traces to `text` and returns its length in bytes: 0 at the end.
///
/// # Errors
/// When it cannot be read, or is longer than [`Bound::TraceSize`].
pub(crate) fn read_line(input: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<usize> {
    let most = Bound::TraceSize.most();
    let length = input.by_ref().take(most.saturating_add(1)).read_until(b'\n', text)?;
    if length as u64 > most { Err(Bound::TraceSize.exceeded()) } else { Ok(length) }
}

/// Reads traces line by line, skipping blank lines, up to the first invalid line; holds only one in memory.
///
/// ```
/// use std::io::BufReader;
///
/// let file = std::fs::File::open("tests/runs/positional/traces.jsonl")?;
/// for trace in ragcheck::read_traces(BufReader::new(file)) {
///     let trace = trace?;
///     println!("{}: {} events in {} µs", trace.trial, trace.events.len(), trace.took_us);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_traces(mut input: impl BufRead) -> impl Iterator<Item = Result<Trace, TraceError>> {
    let (mut line, mut ended) = (0, false);
    std::iter::from_fn(move || {
        while !ended {
            line += 1;
            let mut text = Vec::new();
            let read = read_line(&mut input, &mut text).and_then(|length| {
                let text =
                    String::from_utf8(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                Ok((length, text))
            });
            match read {
                Ok((0, _)) => ended = true,
                Ok((_, text)) if text.trim().is_empty() => {}
                Ok((_, text)) => return Some(parse_trace(&text, line)),
                Err(error) => {
                    ended = true;
                    return Some(Err(TraceError::Read { line, error }));
                }
            }
        }
        None
    })
}
