//! `turn_context(context=whole|step)`: turns whose completions were shown what they answer from / turns with a completion.
//!
//! Four conditions must hold for the completions of the scenario's model. System prompt: each begins with a system
//! message. Question: the user's message that the first completion was shown last is shown to each. History: before
//! this message, the first completion is shown the history of its conversation and nothing else but what the agent noted
//! of the user. Results: each is shown at least as many results of tools as the one before, and one more for each call
//! that gave one in between.
//!
//! A flow that begins each step anew and leaves parts of a long history out is held by `context=step`: of the history
//! parts may be missing, and only the last completion must be shown a result, where the answer names sources.

use super::catalogue::Registered;
use super::context_preservation::{spoken, subsequence};
use super::{Member, Metric, Observation, TrialView, TurnView, trajectory};
use crate::settings::catalogue::Parameter;
use crate::trace::{Logged, ModelCalled, ToolCalled, ToolOutcome, What};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("turn_context", |asked| {
    let whole = asked.parameter("context") == "whole";
    Metric {
        members: &[Member::Shown, Member::History, Member::Calls, Member::Sources, Member::Log],
        ..Metric::new("turns", move |view| observe(view, whole))
    }
})
.about("Turns in which every completion was shown the system prompt, the history, the question and the results so far.")
.takes(&[Parameter::one_of("context", &["whole", "step"], "whole")])];

/// Number of results of tools among the messages shown.
fn results(asked: &ModelCalled) -> usize {
    asked.shown.iter().filter(|digest| digest.starts_with("tool:")).count()
}

/// What a conversation left for its next turn.
#[derive(Debug, Default)]
struct Left<'a> {
    history: &'a [String],
    /// Messages with decisions and preferences of the user, which an agent sends again.
    notes: Vec<&'a String>,
}

/// Completions of the scenario's model, each with the number of results that calls gave since the one before.
fn completions<'a>(turn: &TurnView<'a>) -> Vec<(&'a ModelCalled, usize)> {
    let (mut completions, mut given) = (Vec::new(), 0);
    for what in &turn.events {
        match what {
            What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(_), .. }) => given += 1,
            What::ModelCalled(asked) if asked.service.is_none() => {
                completions.push((asked, std::mem::take(&mut given)));
            }
            _ => {}
        }
    }
    completions
}

/// Describes the first completion that lacks something; `left` is what the turn may build on.
fn lack(asked: &[(&ModelCalled, usize)], turn: &TurnView<'_>, left: &Left<'_>, whole: bool) -> Option<String> {
    let (first, _) = asked.first()?;
    let said = first.shown.iter().filter(|digest| spoken(digest) && !left.notes.contains(digest));
    let said: Vec<String> = said.cloned().collect();
    let Some((question, earlier)) = said.split_last().filter(|(last, _)| last.starts_with("user:")) else {
        return Some("completion 1 was not shown the user's message last".to_owned());
    };
    if whole && earlier.len() < left.history.len() {
        return Some("completion 1 was not shown the whole history".to_owned());
    }
    if !subsequence(earlier, left.history) {
        return Some("completion 1 was shown messages that its conversation did not leave".to_owned());
    }
    let mut before = 0;
    for (ordinal, (asked, given)) in (1..).zip(asked) {
        let (expected, found) = (if ordinal == 1 { 0 } else { before + given }, results(asked));
        if asked.shown.first().is_none_or(|digest| spoken(digest)) {
            return Some(format!("completion {ordinal} was shown no system prompt"));
        }
        if !asked.shown.contains(question) {
            return Some(format!("completion {ordinal} was not shown the user's message"));
        }
        if whole && found < expected {
            return Some(format!("completion {ordinal} was shown {found} of {expected} results"));
        }
        before = found;
    }
    let names_sources = turn.answer().is_some_and(|answer| !answer.sources.is_empty());
    (names_sources && before == 0).then(|| "the completion that names sources was shown no result".to_owned())
}

fn observe(view: &TrialView<'_>, whole: bool) -> Vec<Observation> {
    let mut units = Vec::new();
    for turns in view.turns.chunk_by(|left, right| left.conversation == right.conversation) {
        let mut left = Left::default();
        for turn in turns {
            left.notes.extend(trajectory::logs(turn).filter_map(|entry| match entry {
                Logged::Noted { shown, .. } => Some(shown),
                _ => None,
            }));
            let asked = completions(turn);
            if !asked.is_empty() {
                units.push(Observation::unless(turn.label(), lack(&asked, turn, &left, whole)));
            }
            left.history = turn.ended().map_or(left.history, |end| &end.history);
        }
    }
    units
}
