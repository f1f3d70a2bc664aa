//! `ragcheck show`: prints one trial's conversation as numbered lines.

use super::arguments::{Printed, Show};
use super::exit::Exit;
use super::output::{self, Problem};
use super::runs::is_there;
use super::select::reports_folder;
use crate::gate::Evaluation;
use crate::platform::files;
use crate::suite::evaluation::{self, ScoreError};
use crate::trace;
use crate::trace::text::{self, quote};
use crate::trace::{
    AGENT_OUTPUT, Answer, Event, PASSAGES, Passages, Reply, ToolOutcome, ToolResult, Trace, TrialEnd, TrialError,
    TurnOutcome, What,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Bytes of the agents' output that are read.
const MOST_PRINTED: u64 = 64 << 20;
/// Lines of it that are shown.
const PRINTED_LINES: usize = 20;

/// Runs `ragcheck show`.
///
/// # Errors
/// If the run, or the trial in it, does not exist.
pub(super) fn run(given: &Show) -> Result<Exit, Problem> {
    let (folder, name) = place(&given.trial);
    is_there(&folder)?;
    let mut nearest: Option<(f64, String)> = None;
    for found in evaluation::read_traces(&folder)? {
        let mut found = found?;
        if found.trial == name {
            let mut later_draws = evaluation::read_later_draws(&folder)?;
            later_draws.retain(|again| again.trial == name);
            let judged = judged(&folder, &name);
            if given.format == Printed::Json {
                output::data_as_json(&ShownTrial { judged, trace: found, later_draws })?;
                return Ok(Exit::Passed);
            }
            // A miss after another answer than the expected one is no reason to declare or record anything.
            if let TrialEnd::Error(why) = &mut found.end
                && judged.as_ref().is_some_and(|judged| !judged.failed.is_empty())
            {
                let proposes = |line: &String| line == TrialError::GENERATED;
                why.detail.truncate(why.detail.iter().position(proposes).unwrap_or(why.detail.len()));
                why.detail.retain(|line| !line.starts_with("re-record: "));
            }
            let mut text = judged.as_ref().map(verdict).unwrap_or_default() + &conversation(&found);
            if given.passages {
                text.push_str(&passages(&folder, &found)?);
            }
            for again in &later_draws {
                let _ = write!(text, "\nA later draw, which does not count:\n\n{}", conversation(again));
            }
            text.push_str(&printed(&folder, &found));
            output::result(&text);
            return Ok(Exit::Passed);
        }
        let likeness = strsim::jaro_winkler(&found.trial, &name);
        if nearest.as_ref().is_none_or(|(best, _)| likeness > *best) {
            nearest = Some((likeness, found.trial));
        }
    }
    let hint = nearest.map_or_else(String::new, |(_, trial)| format!("; did you mean `{trial}`?"));
    Err(Problem::Words(format!("no trial of {} is called `{name}`{hint}", folder.display())))
}

/// A trial, as `show --format json` prints it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShownTrial {
    /// The judgement by `run.json`; `None` if that does not say.
    judged: Option<JudgedTrial>,
    /// The trace that counts.
    trace: Trace,
    /// Traces of later draws, which do not count.
    later_draws: Vec<Trace>,
}

/// Verdict of a trial, and why it is no PASS.
#[derive(Debug, Serialize, JsonSchema)]
struct JudgedTrial {
    /// PASS, FAIL or ERROR.
    verdict: String,
    /// Expectations that do not hold.
    failed: Vec<FailedExpectation>,
    /// Steps that its state machine does not have, in words.
    departures: Vec<String>,
    /// What violates a criterion.
    violations: Vec<ShownViolation>,
}

/// An expectation that does not hold.
#[derive(Debug, Serialize, JsonSchema)]
struct FailedExpectation {
    /// The expectation, in words.
    expected: String,
    /// What was seen instead; empty if that says nothing more.
    seen: String,
}

/// A unit that violates a criterion.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownViolation {
    /// The criterion or gate.
    criterion: String,
    /// Turn, call or passage within the trial.
    unit: String,
    /// The reason, in words.
    reason: String,
}

fn judged(folder: &Path, name: &str) -> Option<JudgedTrial> {
    let evaluation: Evaluation = serde_json::from_str(&files::read_to_string(folder.join(trace::RUN)).ok()?).ok()?;
    let trial = evaluation.trials.iter().find(|trial| trial.id == name)?;
    let failed = trial.checks.iter().filter(|check| !check.passed);
    let failed = failed.map(|check| FailedExpectation { expected: check.what.clone(), seen: check.seen.clone() });
    let rows = evaluation.rows().filter(|row| row.metric != "case_pass_rate");
    let violations = rows.flat_map(|row| {
        let own = row.violations.iter().filter(|violation| violation.trial == name);
        own.map(|one| ShownViolation { criterion: row.key().clone(), unit: one.unit.clone(), reason: one.note.clone() })
    });
    Some(JudgedTrial {
        verdict: trial.verdict.as_str().to_owned(),
        failed: failed.collect(),
        departures: trial.departures.iter().map(ToString::to_string).collect(),
        violations: violations.collect(),
    })
}

/// The judgement as text.
fn verdict(judged: &JudgedTrial) -> String {
    let mut out = judged.verdict.clone();
    for FailedExpectation { expected, seen } in &judged.failed {
        let seen = if seen.is_empty() { String::new() } else { format!("; {seen}") };
        let _ = write!(out, "\n  expected {}{seen}", flat(expected));
    }
    for departure in &judged.departures {
        let _ = write!(out, "\n  {}", flat(departure));
    }
    for ShownViolation { criterion, unit, reason } in &judged.violations {
        let _ = write!(out, "\n  violates {criterion}, {}: {}", flat(unit), flat(reason));
    }
    out + "\n\n"
}

/// The run folder and the trial in `given`: the last three path segments are the trial.
fn place(given: &str) -> (PathBuf, String) {
    let parts: Vec<&str> = given.split('/').collect();
    let cut = parts.len().saturating_sub(3);
    let folder = parts[..cut].join("/");
    let trial = parts[cut..].join("/");
    let folder = PathBuf::from(folder);
    // The name of a run, as its page prints it, is one of the project's reports.
    let folder = match cut {
        0 => newest_with(&reports_folder(), &trial),
        _ if folder.exists() => folder,
        _ => Some(reports_folder().join(&folder)).filter(|run| run.exists()).unwrap_or(folder),
    };
    (folder, trial)
}

/// The newest run that has a trial, though it be one of some cases only, which is never `latest`; else `latest`.
fn newest_with(reports: &Path, trial: &str) -> PathBuf {
    let has = |folder: &PathBuf| {
        evaluation::read_traces(folder)
            .is_ok_and(|mut traces| traces.any(|one| one.is_ok_and(|one| one.trial == trial)))
    };
    let runs = evaluation::runs(reports).unwrap_or_default();
    let newer = runs.iter().take_while(|run| !run.latest).filter(|run| run.broken.is_none());
    newer.map(|run| reports.join(&run.name)).find(has).unwrap_or_else(|| reports.join("latest"))
}

/// A trial as text: one line per event, times in milliseconds.
pub(super) fn conversation(trace: &Trace) -> String {
    let mut out = String::new();
    let evidence = &trace.evidence;
    let when = evidence.recorded_at.as_deref().unwrap_or("now");
    let from = evidence.answered_by().map_or("no service was asked".to_owned(), |from| format!("recorded from {from}"));
    let _ = writeln!(out, "{}\n{}: {from}, {when}", trace.trial, evidence.mode);
    if let Some(takes) = evidence.draws() {
        let _ = writeln!(out, "{takes}");
    }
    for note in &trace.notes {
        let _ = writeln!(out, "note: {}", flat(note));
    }
    out.push('\n');
    for (number, event) in (1..).zip(&trace.events) {
        let _ = writeln!(out, "{number:>3}  {:>8.1} ms  {}", millis(event.at_us), text::block(&line(event)));
    }
    match &trace.end {
        TrialEnd::Completed => {
            let _ = writeln!(out, "\ncompleted after {:.1} ms", millis(trace.took_us));
        }
        TrialEnd::Error(problem) => {
            let _ = writeln!(out, "\nERROR, {}: {}", problem.kind.label(), problem.message);
            for detail in &problem.detail {
                let _ = writeln!(out, "  {detail}");
            }
        }
    }
    out
}

/// The last lines that the process of an external agent printed in a trial; empty for other agents.
fn printed(folder: &Path, trace: &Trace) -> String {
    let stored = files::read_at_most(folder.join(AGENT_OUTPUT), MOST_PRINTED).unwrap_or_default();
    let lines = String::from_utf8_lossy(&stored).into_owned();
    let mut found = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let found = found.rfind(|line| line["trial"] == trace.trial.as_str());
    let Some(printed) = found.as_ref().and_then(|line| line["text"].as_str()) else { return String::new() };
    let kept: Vec<&str> = printed.lines().collect();
    let last = &kept[kept.len().saturating_sub(PRINTED_LINES)..];
    let mut out = format!("\nprinted by the agent's process ({AGENT_OUTPUT}), the last {} lines:\n", last.len());
    for line in last {
        let _ = writeln!(out, "    {}", text::line(line));
    }
    out
}

/// Passages found by a trial's searches, each once, in full if the run folder has them.
fn passages(folder: &Path, trace: &Trace) -> Result<String, ScoreError> {
    let wanted: BTreeSet<&String> = trace.passages.iter().flat_map(|searched| searched.passages.values()).collect();
    let whole = Passages::read(folder, |name| wanted.contains(&name.to_owned()))?;
    let mut out = String::new();
    if whole.are_edited() {
        let _ = writeln!(out, "\nEDITED BY HAND after the run: {PASSAGES}; what was edited is not shown");
    }
    let mut shown = BTreeSet::new();
    for search in trace.searches() {
        for hit in search.hits.iter().filter(|hit| shown.insert((&search.kb_id, &hit.id))) {
            let (text, note) = match whole.text_of(trace, search, hit) {
                Some(text) => (text, ""),
                None => (hit.excerpt.as_str(), ", shortened: the run folder does not hold it whole"),
            };
            let (id, title) = (text::line(&hit.id), text::line(&hit.title));
            let _ = writeln!(out, "\n{id} ({title}){note}");
            for line in text::block(text).lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
    if shown.is_empty() {
        out.push_str("\nno passages were found\n");
    }
    Ok(out)
}

fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

fn line(event: &Event) -> String {
    match &event.what {
        What::ConversationStarted { name, session, tenant } => {
            let tenant = tenant.as_ref().map_or(String::new(), |tenant| format!(", tenant `{tenant}`"));
            format!("conversation `{name}` ({session}){tenant}")
        }
        What::TurnStarted { query } => format!("user: {}", flat(query)),
        What::Moved(moved) => format!("  [{}] -{}-> [{}]", moved.from, moved.on, moved.to),
        What::ModelCalled(called) => {
            let took = millis(called.took_us);
            let model = called.service.as_ref().map_or_else(|| "model".to_owned(), |name| format!("model of `{name}`"));
            let again = called.attempts.len().saturating_sub(1);
            let again = if again == 0 { String::new() } else { format!(", {again} HTTP retries") };
            match &called.reply {
                Reply::Completion(done) if done.calls.is_empty() => {
                    format!("{model} ({took:.1} ms{again}): {}", flat(&done.text))
                }
                Reply::Completion(done) => format!("{model} ({took:.1} ms{again}) calls {}", done.calls.join(", ")),
                Reply::Failure { kind, message } => {
                    format!("{model} ({took:.1} ms{again}) FAILED, {kind}: {}", flat(message))
                }
            }
        }
        What::ToolCalled(called) => {
            format!("  {} {} -> {}", called.tool, flat(&called.arguments.to_string()), outcome(&called.outcome))
        }
        What::Searched(search) => {
            format!("  the flow searches {} -> {}", flat(&search.query), outcome(&search.outcome))
        }
        What::Requested(one) => format!("  request to `{}`: {}", one.service, flat(&one.told())),
        What::FedBack(told) => format!("  feedback ({}, {}): {}", told.step, told.cause, flat(&told.message)),
        What::Retried(retry) => {
            let ended = if retry.recovered { "recovered" } else { "did not recover" };
            format!("  retry {} of {} ({}): {ended}", retry.attempt, retry.target, retry.account.as_str())
        }
        What::Degraded { without, reason } => format!("  goes on without {without}: {}", flat(reason)),
        What::Logged(entry) => {
            let (kind, words) = entry.described();
            format!("  {kind}: {}", flat(&words))
        }
        What::TurnEnded(ended) => match &ended.outcome {
            TurnOutcome::Answered(Answer { text, sources, .. }) => {
                let ids: Vec<&str> = sources.iter().map(|source| source.id.as_str()).collect();
                format!("answer: {} [{}]", flat(text), ids.join(", "))
            }
            TurnOutcome::Failed { kind, message } => format!("error ({kind}): {}", flat(message)),
        },
    }
}

fn outcome(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Ok(given) => result(given),
        ToolOutcome::Rejected(why) => format!("REJECTED ({}): {}", why.cause, flat(&why.reason)),
        ToolOutcome::OutOfOrder(why) => format!("OUT OF ORDER: {}", flat(&why.reason)),
        ToolOutcome::Failed { message, .. } => format!("FAILED: {}", flat(message)),
        ToolOutcome::Unseen { reason } => format!("NOT SHOWN: {}", flat(reason)),
    }
}

fn result(given: &ToolResult) -> String {
    match given {
        ToolResult::Search(search) => {
            let ids: Vec<&str> = search.hits.iter().map(|hit| hit.id.as_str()).collect();
            if ids.is_empty() { "no hits".into() } else { ids.join(", ") }
        }
        ToolResult::External(external) => format!("{}: {}", external.result, flat(&external.answer)),
        ToolResult::Indexed(index) => format!("indexed {}", index.keywords.join(", ")),
        ToolResult::Responded => "accepted".into(),
        ToolResult::Other(value) => flat(&value.to_string()),
    }
}

fn flat(text: &str) -> String {
    quote(text, 240)
}
