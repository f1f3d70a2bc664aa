//! Imports conversations of other agents as traces; `shape` defines which message formats are read.
//!
//! A file is JSON or JSON lines: a list of messages (one conversation), or a list of conversations. A conversation is a
//! list of messages or an object with `messages` (also `history`, `traj`, `contents`, `items`, or `input` with
//! `output`). Optional members are `task_id`, `trial`, `reward` (0 to 1), `model`, `tools` (names or definitions of the
//! offered tools), and `mapping` (other names of OpenAI's roles, and the meaning of closing messages). Other members
//! are ignored, and listed. A task becomes a case, and its conversations become repetitions of the case; without a
//! task, conversations with equal inputs do. A duplicate (same messages, and same id or times) is dropped, and listed.
//! A contradictory conversation becomes a trial in ERROR, so that none is dropped silently. Times, hits and states are
//! never made up: metrics that need them measure nothing and say so. Nothing here judges.

mod conversation;
mod copies;
mod error;
mod evals;
mod json;
mod mapping;
mod matching;
mod planning;
pub(crate) mod published;
mod recognise;
mod record;
mod shape;
mod spans;

pub(crate) use error::MappingError;

use crate::plan::Plan;
use crate::platform::words;
use crate::scenario::{Criteria, Scenario};
use crate::settings::price::Price;
use crate::trace::spans::SpansError;
use crate::trace::text::{plural, quote};
use crate::trace::{Member, NamedPassage, Trace, TrialEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An imported file, ready to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// One scenario named after the file: one case per task, one trial per conversation.
    pub plan: Plan,
    /// One trace per trial, in plan order.
    pub traces: Vec<Trace>,
    /// The whole passages that each trace's searches found, for readers of the report.
    pub passages: Vec<Vec<Arc<NamedPassage>>>,
    /// Messages of the user before the first turn of each trace, which its source shows and no event holds.
    pub earlier: Vec<Vec<String>>,
    /// Ignored members of conversations, with the number of conversations that have them.
    pub ignored: BTreeMap<String, usize>,
    /// Dropped duplicates: position in the file, from 1, and position of the original.
    pub copies: Vec<(usize, usize)>,
    /// Remarks on what the import leaves out.
    pub remarks: Vec<String>,
    aside: Aside,
}

/// What of a file is no trace of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
struct Aside {
    /// Number of traces of other work.
    traces: usize,
    /// Descriptions for the summary.
    parts: Vec<String>,
}

words! {
    fn name;
    /// Formats of files that can be imported.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Format {
        /// Lists of messages, in the shapes of several providers.
        Messages = "messages",
        /// Published traces.
        Trace = "trace",
        /// Spans of OpenTelemetry, and runs of LangSmith.
        Otlp = "otlp",
        /// Rows of OpenAI Evals.
        Evals = "evals",
    }
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Messages, Self::Trace, Self::Otlp, Self::Evals];

    /// The format of a file by its content.
    ///
    /// # Errors
    /// If it is of no known format, or of several.
    pub fn of(text: &[u8]) -> Result<Self, ImportError> {
        recognise::format(text)
    }

    /// Imports `text`, the content of the file `name`; `criteria` replace the default ones. For the agent of a scenario,
    /// its tool roles and gates apply, and a task with the name of a case must meet the expectations of that case. If none
    /// has, the gate `cases` measures nothing.
    ///
    /// # Errors
    /// If the file as a whole cannot be used; see `ImportError`.
    pub fn read(
        self,
        name: &str,
        text: &[u8],
        criteria: Option<Criteria>,
        agent: Option<&Scenario>,
    ) -> Result<Imported, ImportError> {
        let mut aside = Aside::default();
        let mut remarks = Vec::new();
        let records = match self {
            Self::Messages => record::records(text)?,
            Self::Trace => record::traces(text)?,
            Self::Otlp => {
                let (records, others) = spans::records(text)?;
                if records.is_empty() {
                    let all = [vec![plural(others.traces, "trace")], others.parts].concat();
                    return Err(ImportError::NoAgent(all.join(", ")));
                }
                aside = others;
                records
            }
            Self::Evals => {
                let (rows, left_out) = evals::records(text)?;
                remarks = left_out;
                rows
            }
        };
        let mut imported = planning::imported(name, records, criteria, agent)?;
        for trace in &mut imported.traces {
            trace.notes.extend(remarks.iter().cloned());
        }
        imported.remarks.splice(0..0, remarks);
        Ok(Imported { aside, ..imported })
    }
}

/// Largest number of reasons that a summary lists.
const REASONS: usize = 3;

impl Imported {
    /// How many traces are complete, without contents, and broken, with the reasons:
    /// `31 traces: 22 complete, 6 without contents (score only), 3 broken: …`.
    pub fn summary(&self) -> String {
        let mut broken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut bare = 0;
        for trace in &self.traces {
            match &trace.end {
                TrialEnd::Error(error) => *broken.entry(&error.cause).or_default() += 1,
                TrialEnd::Completed => bare += usize::from(trace.lacks(Member::Answers)),
            }
        }
        let (all, lost) = (self.traces.len(), broken.values().sum::<usize>());
        let mut told = format!("{}: {} complete", plural(all + self.aside.traces, "trace"), all - lost - bare);
        if bare > 0 {
            told += &format!(", {bare} without contents (score only)");
        }
        if lost > 0 {
            let mut causes: Vec<(&str, usize)> = broken.into_iter().collect();
            causes.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
            let said = causes.iter().take(REASONS).map(|(why, number)| match number {
                1 => quote(why, 160),
                number => format!("{} ({number})", quote(why, 160)),
            });
            let said: Vec<String> = said.collect();
            let more = if causes.len() > REASONS { "; …" } else { "" };
            told += &format!(", {lost} broken: {}{more}", said.join("; "));
        }
        self.aside.parts.iter().fold(told, |told, part| format!("{told}, {part}"))
    }

    /// Name of the imported file.
    pub fn file(&self) -> &str {
        self.plan.scenarios.first().map_or("", |scenario| &scenario.file)
    }

    /// Takes over the ratings of a project, if one of them is of a conversation here; the others are remarked on.
    pub fn rated(&mut self, ratings: BTreeMap<String, bool>) {
        let trials: BTreeSet<&str> = self.traces.iter().map(|trace| trace.trial.as_str()).collect();
        let unknown: Vec<&String> = ratings.keys().filter(|trial| !trials.contains(trial.as_str())).collect();
        if unknown.len() == ratings.len() {
            return;
        }
        if let Some(first) = unknown.first() {
            let (number, all) = (unknown.len(), ratings.len());
            self.remarks.push(format!("{number} of {all} ratings name no trial of this import, first `{first}`"));
        }
        self.plan.ratings = Some(ratings);
    }

    /// Applies the project's prices.
    pub fn priced(&mut self, prices: BTreeMap<String, Price>) {
        self.plan.prices = prices;
    }

    /// Adds the project's criteria; they replace default criteria with the same id.
    pub fn by_project(&mut self, project: Criteria) {
        let mut usual = std::mem::take(&mut self.plan.criteria.criteria);
        let mut criteria = project.criteria;
        usual.retain(|row| !criteria.iter().any(|own| own.id == row.id));
        criteria.extend(usual);
        self.plan.criteria = Criteria { criteria, ..project };
    }
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is of no known format.
    #[error(
        "the format is not recognised: {0}; read are lists of messages (`messages`, `role`), published traces (`conversations`), spans (`resourceSpans`, the JSON of SDKs, LangSmith's runs) and rows of OpenAI Evals (`item`). `--import FORMAT FILE` reads it as {names}, and says what is wrong with it", names = Format::ALL.map(Format::name).join(", ")
    )]
    Unrecognised(String),
    /// It holds several formats.
    #[error("it holds `{0}` and `{1}`: import them from separate files, or name the format, `--import {0} FILE`")]
    Mixed(&'static str, &'static str),
    /// It has a configuration of OpenAI Evals alone.
    #[error("it has no row (`{{\"item\": …}}`): {0}")]
    NoRows(&'static str),
    /// It is neither JSON nor JSON lines.
    #[error("not JSON and not JSON lines: {0}")]
    Json(#[from] serde_json::Error),
    /// It holds no spans.
    #[error(transparent)]
    Spans(#[from] SpansError),
    /// Its spans say nothing about an agent.
    #[error("no span says what an agent did, by the GenAI conventions or OpenInference; {0}")]
    NoAgent(String),
    /// Its mapping is invalid.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// It has no conversation.
    #[error("there is no conversation in it: write a list of messages, or a list of objects with `messages`")]
    Empty,
    /// Two conversations have the same task and trial.
    #[error(
        "conversation {ordinal}: the task {task} has another conversation of trial {trial}; each counts once: remove \
         one of them, or `trial` from all"
    )]
    Twice { ordinal: usize, task: String, trial: u32 },
}

/// Imports lists of messages for tests; see [`Format::read`].
///
/// # Errors
/// If the file as a whole cannot be used; see `ImportError`.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests use it"))]
pub fn messages(name: &str, text: &[u8], criteria: Option<Criteria>) -> Result<Imported, ImportError> {
    Format::Messages.read(name, text, criteria, None)
}
