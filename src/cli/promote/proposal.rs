//! Proposes a case for a trace: what it asks, and expectations that hold on the trace.

use super::line;
use crate::cli::first_contact::{facts, given};
use crate::gate::Examiner;
use crate::plan::{Plan, ResolvedCase};
use crate::platform::secrets;
use crate::scenario::expect::{AnswerExpectation, CallExpectation, CallOutcome, CallPattern, Expectation};
use crate::scenario::{Case, Turn};
use crate::suite::evaluation::RunEvaluator;
use crate::suite::import::Imported;
use crate::trace::text::plural;
use crate::trace::{Answer, Member, Role, Roles, SOURCES, ToolOutcome, ToolResult, Trace, TrialEnd, What};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Passages that a case names as the evidence of its trace.
const PASSAGES: usize = 5;
/// An answer with any text.
const ANY_TEXT: &str = r"\S";

/// Why a trace makes no case.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unpromotable {
    /// It cannot be read.
    #[error("{0}")]
    Broken(String),
    /// It has no contents.
    #[error(
        "the trace has no contents, so it makes no case. Missing are what the user asked (turns[].message) and how turns \
         ended: {0}. Let the instrumentation capture contents, and promote a later trace"
    )]
    NoContents(String),
    /// Its conversations share an index.
    #[error("the trace has {0} with one index: write them as a `sequence` by hand")]
    Several(String),
    /// It has no question.
    #[error("the trace does not say what the user asked (turns[].message)")]
    NoQuestion,
    /// Its case cannot be serialised.
    #[error("the case cannot be written: {0}")]
    Unwritten(#[from] serde_json::Error),
}

/// Why a call has no counterpart in the scenario.
#[derive(Debug, thiserror::Error)]
enum Unmapped {
    /// No tool does the same.
    #[error("the scenario's agent has no such tool, and none with its role")]
    NoTool,
    /// Several tools have the role.
    #[error("{0} of the scenario's agent have its role")]
    Several(String),
}

/// A case and what is said about it.
pub(super) struct Proposal {
    pub case: Case,
    /// Lines on where it comes from and what its trace found.
    pub about: Vec<String>,
    /// What it leaves out, and why.
    pub notes: Vec<String>,
}

impl Proposal {
    /// The case `name` of the trace at that place; `known` are the tools of the scenario's agent, and whether it may have
    /// others.
    ///
    /// # Errors
    /// What the trace does not say.
    pub(super) fn of(
        imported: &Imported,
        place: usize,
        name: &str,
        (known, open): &(Roles, bool),
    ) -> Result<Self, Unpromotable> {
        let trace = &imported.traces[place];
        let own = &imported.plan.scenarios[0].cases;
        let own = own.iter().find(|case| case.case.case == trace.case).map(|case| &case.case);
        let written = own.filter(|case| case.turns().next().is_some());
        let mut turns = match (&trace.end, written) {
            (TrialEnd::Error(error), None) => return Err(Unpromotable::Broken(error.message.clone())),
            (_, Some(case)) => case.turns().map(|turn| Turn { ask: turn.ask.clone(), expect: None }).collect(),
            (TrialEnd::Completed, None) => asked(trace)?,
        };
        let mut notes = Vec::new();
        match written.and_then(|case| case.expect.clone()) {
            Some(expect) => {
                notes.push("its expectations are those of the testing criteria".to_owned());
                if let Some(last) = turns.last_mut() {
                    last.expect = Some(expect);
                }
            }
            None if trace.end == TrialEnd::Completed => {
                propose(&mut turns, imported, trace, &mut notes);
                for turn in &mut turns {
                    map_tools(turn, trace, known, *open, &mut notes);
                }
            }
            None => notes.push("nothing was answered, so nothing is expected but an answer".to_owned()),
        }
        for turn in &mut turns {
            if !turn.expect.as_ref().is_some_and(Expectation::asserts) {
                answer_mut(turn).matches.push(ANY_TEXT.to_owned());
            }
        }
        let earlier = imported.earlier.get(place).into_iter().flatten();
        let mut all: Vec<Turn> = earlier.map(|ask| Turn { ask: ask.clone(), expect: None }).collect();
        all.extend(turns);
        if all.len() > 1 {
            notes.push(
                "the agent answers every turn again: answers before the last may differ from the trace".to_owned(),
            );
        }
        let mut case = Case { case: name.to_owned(), ..Case::default() };
        match <[Turn; 1]>::try_from(all) {
            Ok([only]) => (case.ask, case.expect) = (Some(only.ask), only.expect),
            Err(all) => case.turns = all,
        }
        let case = serde_json::to_value(&case)
            .map(|case| secrets::declared().redact_value(&case))
            .and_then(serde_json::from_value)?;
        Ok(Self { case, about: about(trace, imported.file()), notes })
    }
}

impl Proposal {
    /// Removes the expected sources; whether there were some.
    pub(super) fn without_sources(&mut self) -> bool {
        let turns = self.case.turns.iter_mut().filter_map(|turn| turn.expect.as_mut());
        let mut removed = false;
        for answer in turns.chain(self.case.expect.as_mut()).filter_map(|expect| expect.answer.as_mut()) {
            removed |= !std::mem::take(&mut answer.cites).is_empty();
            if *answer == AnswerExpectation::default() {
                answer.matches.push(ANY_TEXT.to_owned());
            }
        }
        removed
    }
}

fn answer_mut(turn: &mut Turn) -> &mut AnswerExpectation {
    turn.expect.get_or_insert_default().answer.get_or_insert_default()
}

/// Calls the expected tools by the names that they have in the scenario.
fn map_tools(turn: &mut Turn, trace: &Trace, known: &Roles, open: bool, notes: &mut Vec<String>) {
    let Some(expect) = &mut turn.expect else { return };
    for expected in &mut expect.calls {
        let CallExpectation::InOrder(calls) = expected else { continue };
        calls.retain_mut(|call| match mapped(&call.tool, trace.role(&call.tool), known, open) {
            Ok(tool) => {
                call.tool = tool;
                true
            }
            Err(why) => {
                let note = format!("the call of `{}` is not expected: {why}", line(&call.tool, 60));
                if !notes.contains(&note) {
                    notes.push(note);
                }
                false
            }
        });
    }
    expect.calls.retain(|expected| !matches!(expected, CallExpectation::InOrder(calls) if calls.is_empty()));
}

/// The tool of the scenario's agent that does what a tool of the trace did.
fn mapped(tool: &str, role: Role, known: &Roles, open: bool) -> Result<String, Unmapped> {
    if known.contains_key(tool) {
        return Ok(tool.to_owned());
    }
    let same: Vec<&String> =
        known.iter().filter(|(_, other)| **other == role && role != Role::None).map(|(tool, _)| tool).collect();
    match same.as_slice() {
        [one] => Ok((*one).clone()),
        [] if open => Ok(tool.to_owned()),
        [] => Err(Unmapped::NoTool),
        several => Err(Unmapped::Several(plural(several.len(), "tool"))),
    }
}

/// The turns of a trace.
fn asked(trace: &Trace) -> Result<Vec<Turn>, Unpromotable> {
    if let Some(why) = trace.not_shown(&[Member::Answers]) {
        return Err(Unpromotable::NoContents(why));
    }
    let (mut turns, mut conversations): (Vec<Turn>, BTreeSet<u32>) = (Vec::new(), BTreeSet::new());
    for event in &trace.events {
        if let What::TurnStarted { query } = &event.what {
            conversations.insert(event.conversation);
            turns.push(Turn { ask: query.clone(), expect: None });
        }
    }
    if conversations.len() > 1 {
        return Err(Unpromotable::Several(plural(conversations.len(), "conversation")));
    }
    if turns.iter().all(|turn| turn.ask.trim().is_empty()) {
        return Err(Unpromotable::NoQuestion);
    }
    Ok(turns)
}

/// Gives each turn the expectations that hold on the trace.
fn propose(turns: &mut [Turn], imported: &Imported, trace: &Trace, notes: &mut Vec<String>) {
    let mut candidates: Vec<(usize, Expectation)> = Vec::new();
    for (place, turn) in turns.iter().enumerate() {
        let calls = ran(trace, place);
        if !calls.is_empty() {
            let calls = vec![CallExpectation::InOrder(calls)];
            candidates.push((place, Expectation { calls, ..Expectation::default() }));
        }
        let Some(answer) = answer_of(trace, place) else {
            notes.push(format!(
                "turn {} ended without an answer: the case expects one, and fails until there is one",
                place + 1
            ));
            continue;
        };
        let of = |answer| Expectation { answer: Some(answer), ..Expectation::default() };
        let results = given(trace.events.iter().filter(|event| event.turn as usize == place));
        let contains = facts(&answer.text, &[], &turn.ask, &results);
        if !contains.is_empty() {
            candidates.push((place, of(AnswerExpectation { contains, ..AnswerExpectation::default() })));
        }
        let cites: Vec<String> = answer.sources.iter().map(|source| source.id.clone()).collect();
        if !cites.is_empty() && !answer.hides(SOURCES) {
            candidates.push((place, of(AnswerExpectation { cites, ..AnswerExpectation::default() })));
        }
    }
    for member in [Member::Calls, Member::Passages, Member::Sources] {
        notes.extend(trace.not_shown(&[member]));
    }
    for (place, candidate) in candidates {
        if let Some(why) = broken(imported, trace, turns, place, &candidate) {
            notes.push(format!("not proposed for turn {}: {why}", place + 1));
            continue;
        }
        let expect = turns[place].expect.get_or_insert_default();
        expect.calls.extend(candidate.calls);
        if let Some(new) = candidate.answer {
            let answer = answer_mut(&mut turns[place]);
            answer.contains.extend(new.contains);
            answer.cites.extend(new.cites);
        }
    }
}

/// The calls of a turn that ran, in order, each once in a row.
fn ran(trace: &Trace, turn: usize) -> Vec<CallPattern> {
    let mut calls: Vec<CallPattern> = Vec::new();
    for event in trace.events.iter().filter(|event| event.turn as usize == turn) {
        if let Some(call) = event.what.tool_call()
            && matches!(call.outcome, ToolOutcome::Ok(_))
            && calls.last().is_none_or(|last| last.tool != call.tool)
        {
            let (arguments, result) = (BTreeMap::new(), BTreeMap::new());
            calls.push(CallPattern { tool: call.tool.clone(), arguments, result, outcome: Some(CallOutcome::Ok) });
        }
    }
    calls
}

fn answer_of(trace: &Trace, turn: usize) -> Option<&Answer> {
    trace.events.iter().filter(|event| event.turn as usize == turn).find_map(|event| event.what.answer())
}

/// Why an expectation does not hold on the trace that it comes from; `None` if it does.
fn broken(imported: &Imported, trace: &Trace, turns: &[Turn], place: usize, expect: &Expectation) -> Option<String> {
    let case = |expect: Option<&Expectation>| {
        let turn = |(at, turn): (usize, &Turn)| Turn {
            ask: turn.ask.clone(),
            expect: expect.filter(|_| at == place).cloned(),
        };
        ResolvedCase::single(&trace.case, turns.iter().enumerate().map(turn).collect())
    };
    let checked = |expect| failing(&imported.plan, trace, case(expect));
    match (checked(None), checked(Some(expect))) {
        (Some(without), Some(with)) => with.into_iter().find(|failed| !without.contains(failed)),
        _ => Some("it cannot be checked on the trace".to_owned()),
    }
}

/// The checks of a case that fail on a trace.
fn failing(plan: &Plan, trace: &Trace, case: ResolvedCase) -> Option<Vec<String>> {
    let mut plan = plan.clone();
    plan.rewards.clear();
    plan.scenarios[0]
        .cases
        .iter_mut()
        .filter(|planned| planned.case.case == trace.case)
        .for_each(|planned| planned.case = case.clone());
    let plan = Arc::new(plan);
    let evaluator = RunEvaluator::begin(&plan).ok()?;
    let examiner: &Examiner<'_> = &evaluator.examiner();
    let examined = examiner.examine(trace, &[]).ok()?;
    let failed = examined.result().checks.iter().filter(|check| !check.passed);
    Some(failed.map(|check| format!("{} ({})", check.what, check.seen)).collect())
}

/// Where a trace comes from, and what its searches found.
fn about(trace: &Trace, file: &str) -> Vec<String> {
    let id = trace.notes.iter().find_map(|note| note.strip_prefix("trace ")).map(|id| format!(", trace {id}"));
    let at = trace.evidence.recorded_at.as_ref().map(|at| format!(", {at}"));
    let model = Some(&trace.evidence.model).filter(|model| *model != "unknown").map(|model| format!(", {model}"));
    let mut about = vec![line(
        &["Promoted from ", file, &id.unwrap_or_default(), &at.unwrap_or_default(), &model.unwrap_or_default()]
            .concat(),
        300,
    )];
    let mut found: Vec<String> = Vec::new();
    for event in &trace.events {
        let outcome = match &event.what {
            What::ToolCalled(call) => &call.outcome,
            What::Searched(search) => &search.outcome,
            _ => continue,
        };
        if let ToolOutcome::Ok(ToolResult::Search(search)) = outcome {
            for hit in &search.hits {
                let line = line(&format!("found {}: {}", hit.id, hit.excerpt), 200);
                if !found.contains(&line) {
                    found.push(line);
                }
            }
        } else if let ToolOutcome::Ok(ToolResult::Other(result)) = outcome
            && !matches!(result, Value::Null)
        {
            found.push(line(&format!("result {result}"), 200));
        }
    }
    let more = found.len().saturating_sub(PASSAGES);
    about.extend(found.into_iter().take(PASSAGES));
    if more > 0 {
        about.push(format!("and {more} more"));
    }
    about
}
