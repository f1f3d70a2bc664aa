//! A trace by turn: the view that expectations and most metrics read.
//!
//! A planned turn that never began is included, without events: a query without an answer stays a unit of every
//! denominator, so a flow cannot improve a rate by stopping early.

use super::{Seen, TrialView};
use crate::plan::ResolvedCase;
use crate::trace::citations::one_spelling;
use crate::trace::{
    Answer, EXTERNAL, ExternalResult, IndexResult, ModelCalled, Retried, SearchResult, ToolCalled, ToolOutcome,
    ToolResult, Trace, TurnEnded, TurnOutcome, What,
};
use std::collections::BTreeMap;

/// One turn: the user's input and all events that followed.
#[derive(Debug, Clone)]
pub struct TurnView<'a> {
    /// Ordinal of the conversation, from 0.
    pub conversation: u32,
    /// Ordinal of the turn in its conversation, from 0.
    pub turn: u32,
    /// The conversation's name.
    pub name: &'a str,
    /// The user's input, planned or sent.
    pub query: &'a str,
    /// Its events, in order.
    pub events: Vec<&'a What>,
    alone: bool,
}

/// The turns of a trace, by conversation and turn.
pub(crate) fn turns<'a>(case: &'a ResolvedCase, trace: &'a Trace) -> Vec<TurnView<'a>> {
    let alone = case.is_single();
    let mut names: Vec<&str> = case.conversations().map(|one| one.name.as_str()).collect();
    let mut turns: BTreeMap<(u32, u32), TurnView<'a>> = BTreeMap::new();
    let empty = |key: (u32, u32), name, query| TurnView {
        conversation: key.0,
        turn: key.1,
        name,
        query,
        events: Vec::with_capacity(24),
        alone,
    };
    for (conversation, one) in (0_u32..).zip(case.conversations()) {
        for (turn, asked) in (0_u32..).zip(&one.turns) {
            let key = (conversation, turn);
            turns.insert(key, empty(key, one.name.as_str(), asked.ask.as_str()));
        }
    }
    for event in &trace.events {
        let key = (event.conversation, event.turn);
        if let What::ConversationStarted { name, .. } = &event.what {
            match names.get_mut(key.0 as usize) {
                Some(known) => *known = name,
                None => names.push(name),
            }
            continue;
        }
        let name = names.get(key.0 as usize).copied().unwrap_or("unknown");
        let view = turns.entry(key).or_insert_with(|| empty(key, name, ""));
        if let What::TurnStarted { query } = &event.what {
            view.query = query;
        }
        view.events.push(&event.what);
    }
    turns.into_values().collect()
}

impl<'a> TurnView<'a> {
    /// The turn for people: `turn 2`, or `conversation b, turn 1` in a sequence.
    pub fn label(&self) -> String {
        if self.alone {
            format!("turn {}", self.turn.saturating_add(1))
        } else {
            format!("conversation {}, turn {}", self.name, self.turn.saturating_add(1))
        }
    }

    /// The conversation for people.
    pub fn conversation_label(&self) -> String {
        if self.alone { "conversation".into() } else { format!("conversation {}", self.name) }
    }

    /// Tool calls, executed or not, in order.
    pub fn calls(&self) -> impl Iterator<Item = &'a ToolCalled> {
        self.events.iter().filter_map(|what| if let What::ToolCalled(call) = what { Some(call) } else { None })
    }

    /// Completions of the model, in order.
    pub fn models(&self) -> impl Iterator<Item = &'a ModelCalled> {
        self.events.iter().filter_map(|what| if let What::ModelCalled(call) = what { Some(call) } else { None })
    }

    /// Retries, in order.
    pub fn retries(&self) -> impl Iterator<Item = &'a Retried> {
        self.events.iter().filter_map(|what| if let What::Retried(retry) = what { Some(retry) } else { None })
    }

    /// Results of calls and of the flow's searches, in order.
    pub(super) fn retrievals(&self) -> impl Iterator<Item = &'a ToolResult> {
        self.events.iter().filter_map(|what| what.given())
    }

    /// Results of the calls before the last accepted response call; of all calls where there is none.
    pub(super) fn retrievals_before_response(&self) -> impl Iterator<Item = &'a ToolResult> {
        let results: Vec<&ToolResult> = self.retrievals().collect();
        let end = results.iter().rposition(|result| matches!(result, ToolResult::Responded)).unwrap_or(results.len());
        results.into_iter().take(end)
    }

    /// Searches of the knowledge base that returned a result.
    pub fn searches(&self) -> impl Iterator<Item = &'a SearchResult> {
        self.retrievals().filter_map(|result| if let ToolResult::Search(search) = result { Some(search) } else { None })
    }

    /// Answers of the external service.
    pub fn externals(&self) -> impl Iterator<Item = &'a ExternalResult> {
        self.retrievals().filter_map(|result| if let ToolResult::External(found) = result { Some(found) } else { None })
    }

    /// Accepted keyword indexings.
    pub fn indexings(&self) -> impl Iterator<Item = &'a IndexResult> {
        self.retrievals().filter_map(|result| if let ToolResult::Indexed(index) = result { Some(index) } else { None })
    }

    /// The event that ended the turn, if any.
    pub fn ended(&self) -> Option<&'a TurnEnded> {
        self.events.iter().rev().find_map(|what| if let What::TurnEnded(end) = what { Some(end) } else { None })
    }

    /// The answer, if any.
    pub fn answer(&self) -> Option<&'a Answer> {
        self.ended()?.outcome.answer()
    }

    /// Ending of the turn, for reports: `answered`, `ended with the error timeout`, `never ended`, `never began`.
    pub fn ending(&self) -> String {
        match self.ended().map(|end| &end.outcome) {
            Some(TurnOutcome::Answered(_)) => "answered".into(),
            Some(TurnOutcome::Failed { kind, .. }) => format!("ended with the error {}", super::quote(kind, 60)),
            None if self.events.is_empty() => "never began".into(),
            None => "never ended".into(),
        }
    }
}

/// Whether a call ran, with or without success.
pub(super) fn executed(call: &ToolCalled) -> bool {
    matches!(call.outcome, ToolOutcome::Ok(_) | ToolOutcome::Failed { .. })
}

/// The finding that the trace does not show the outcome of a tool's calls, so they neither ran nor did not run.
pub(super) fn not_shown(tool: &str) -> Seen {
    Seen::hidden(format!("no later message shows a result of {tool}, so whether it ran is unknown"))
}

/// Reason why citations of a trial cannot be followed; `None` where all can. For an external agent, an answer must
/// declare that its sources use the names of its passages, and so must the earlier answers of its conversation.
pub(super) fn untraceable(view: &TrialView<'_>) -> Option<String> {
    let hidden = view.turns.iter().any(|turn| turn.answer().is_some() && !is_traceable(view, turn));
    hidden.then(|| "traffic does not show by which names an agent's answers cite its passages".to_owned())
}

/// Whether the citations of a turn's answer can be followed.
pub(super) fn is_traceable(view: &TrialView<'_>, turn: &TurnView<'_>) -> bool {
    let before = view.turns.iter().filter(|one| one.conversation == turn.conversation && one.turn <= turn.turn);
    view.trace.lane.flow != EXTERNAL || before.filter_map(TurnView::answer).all(|answer| answer.traceable)
}

/// Whether `wanted` is `id` itself, in any spelling of an address, or the document of the chunk `id` (`document#n`).
pub(super) fn names(wanted: &str, id: &str) -> bool {
    let (id, wanted) = (one_spelling(id), one_spelling(wanted));
    id == wanted || id.strip_prefix(&*wanted).is_some_and(|rest| rest.starts_with('#'))
}
