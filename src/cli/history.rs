//! `ragcheck history`: shows the results of live runs and recordings over time.

use super::arguments::{History, HistoryCommand};
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs::typed_or_newest;
use super::select::reports_folder;
use crate::history::{self, Gather, HISTORY, Series};
use crate::platform::files;
use crate::suite::{DEFAULT_JOBS, evaluation};
use crate::trace::{self, text::plural};
use crate::{report, scenario};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

pub(super) fn run(given: &History) -> Result<Exit, Problem> {
    let file = given.file.clone().unwrap_or_else(usual);
    match &given.command {
        Some(HistoryCommand::Add { run, label }) => {
            let (run, labels) = (typed_or_newest(run.as_deref())?, labels(label)?);
            let added = history::append(&file, &of_folder(&run, labels)?)?;
            let (run, history) = (run.display().to_string(), file.display().to_string());
            output::data(given.format, &Printable::Added { run, history, added }, ToString::to_string)?;
        }
        Some(HistoryCommand::Merge { files }) => {
            let (all, new) = history::merge(&file, files)?;
            let history = file.display().to_string();
            output::data(given.format, &Printable::Merged { history, points: all, new }, ToString::to_string)?;
        }
        None => {
            let (series, left_out) = history::series(&history::load(&file)?);
            show(given, &series)?;
            if !left_out.is_empty() {
                output::remark(&format!("note: {}: {left_out}", file.display()));
            }
            let doubtful = history::doubtful(&file)?;
            let lines = |doubt: &str| {
                let lines = doubtful.iter().filter(|(_, why)| *why == doubt).map(|(line, _)| line.to_string());
                lines.collect::<Vec<_>>().join(", ")
            };
            let (edited, unsealed) = (lines(history::EDITED), lines(history::NO_DIGEST));
            if !edited.is_empty() {
                output::remark(&format!("note: {} was EDITED BY HAND, in line {edited}", file.display()));
            }
            if !unsealed.is_empty() {
                let what = "an older ragcheck wrote it, or it was edited by hand";
                output::remark(&format!("note: {} has no digest in line {unsealed}: {what}", file.display()));
            }
        }
    }
    Ok(Exit::Passed)
}

/// What `history` and its subcommands print.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Printable {
    /// Points under equal conditions.
    #[expect(dead_code, reason = "it names them for the schema")]
    Series(Vec<Series>),
    /// Of `add`.
    Added {
        /// The run folder.
        run: String,
        /// The file.
        history: String,
        /// Whether the run is new there.
        added: bool,
    },
    /// Of `merge`.
    Merged {
        /// The file.
        history: String,
        /// Number of its points.
        points: usize,
        /// Number of those that are new.
        new: usize,
    },
}

impl fmt::Display for Printable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series(_) => Ok(()),
            Self::Added { run, history, added } => {
                writeln!(out, "{run} {} {history}", if *added { "added to" } else { "is already in" })
            }
            Self::Merged { history, points, new } => {
                writeln!(out, "{history}: {}, {new} of them new", plural(*points, "point"))
            }
        }
    }
}

fn show(given: &History, series: &[Series]) -> Result<(), Problem> {
    let page = given.html.clone().unwrap_or_else(|| reports_folder().join(evaluation::HISTORY_HTML));
    write_page(&page, series).map_err(|why| Problem::unwritten(&page, &why))?;
    let terminal = |series: &&[Series]| {
        format!("{}page: {}\n", report::history::terminal(series, output::width()), page.display())
    };
    output::data(given.format, &series, terminal)
}

fn write_page(page: &Path, series: &[Series]) -> io::Result<()> {
    let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    evaluation::write_history_page(page, series, &evaluation::beside_history(folder)?)
}

/// Path of the project's history.
pub(super) fn usual() -> PathBuf {
    scenario::find_root(&std::env::current_dir().unwrap_or_default()).join(HISTORY)
}

/// Parses typed labels.
///
/// # Errors
/// If one is not `KEY=VALUE`, or a key occurs twice.
pub(super) fn labels(typed: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let mut labels = BTreeMap::new();
    for text in typed {
        let pair = text.split_once('=').filter(|(key, value)| !key.trim().is_empty() && !value.trim().is_empty());
        let Some((key, value)) = pair else {
            return Err(Problem::Words(format!("--label {text}: write `KEY=VALUE`, `release=1.4.0` for example")));
        };
        if labels.insert(key.trim().to_owned(), value.trim().to_owned()).is_some() {
            return Err(Problem::Words(format!("--label: `{}` is given twice", key.trim())));
        }
    }
    Ok(labels)
}

/// The history point of a run folder.
fn of_folder(folder: &Path, labels: BTreeMap<String, String>) -> Result<history::Point, Problem> {
    let evaluated = evaluation::score(folder, false)?;
    let mut gather = Gather::default();
    for trace in evaluation::read_traces(folder)? {
        gather.add(&trace?);
    }
    let environment = files::read(folder.join(trace::ENVIRONMENT)).ok();
    let environment: Value = environment.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let made = environment["written_at"].as_str().unwrap_or_default().to_owned();
    let jobs = environment["jobs"].as_u64().and_then(|jobs| u16::try_from(jobs).ok()).unwrap_or(DEFAULT_JOBS);
    let point = gather.finish(&evaluated.evaluation, &made, jobs, labels);
    let point = point.map_err(|why| format!("{} cannot be added to a history: {why}", folder.display()))?;
    if point.at.is_empty() {
        let file = folder.join(trace::ENVIRONMENT);
        return Err(Problem::Words(format!("{}: the time of the live run is unknown", file.display())));
    }
    Ok(point)
}
