//! Units that are read from answers: their citations, and the notices that they owe.

use super::{Units, graded, hold, logs};
use crate::metric::turns::executed;
use crate::metric::{Held, Observation, Seen, TurnView, quote};
use crate::trace::citations::numbers_of;
use crate::trace::{Logged, ModelCalled, Reply, Role, ToolOutcome, Trace, TurnOutcome, What};
use std::collections::BTreeSet;

/// Sources, and numbers that stand for none.
pub(super) fn citations(turn: &TurnView<'_>) -> Vec<Observation> {
    let Some(answer) = turn.answer() else { return Vec::new() };
    let relevant: BTreeSet<&String> = graded(turn).flatten().collect();
    let of_source = |id: &String| {
        let unit = format!("{}, {}", turn.label(), quote(id, 60));
        if relevant.contains(id) {
            Observation::failure(unit, "")
        } else {
            Observation::occurrence(unit, "cited, and not graded relevant")
        }
    };
    let sources = answer.sources.iter().map(|source| of_source(&source.id));
    let most = answer.sources.len();
    let numbers = numbers_of(&answer.text);
    let outside = numbers.into_iter().filter(|number| *number == 0 || *number > most);
    let outside = outside.map(|number| {
        Observation::occurrence(format!("{}, [{number}]", turn.label()), format!("matches none of {most} sources"))
    });
    sources.chain(outside).collect()
}

/// Things that a turn continues without after a move, and the subject of the notice about each.
const MOVES: [(&str, &str); 7] = [
    ("steps_used_up", "stopped"),
    ("retries_used_up", "stopped"),
    ("budget_used_up", "stopped"),
    ("timeout", "stopped"),
    ("model_unavailable", "stopped"),
    ("shorter_context", "context"),
    ("partial_result", "partial"),
];

/// Things that the turn continued without.
pub(super) fn notices(turn: &TurnView<'_>, trace: &Trace) -> Units {
    let Some(ended) = turn.ended() else { return Vec::new() };
    let got = match &ended.outcome {
        TurnOutcome::Answered(answer) => &answer.text,
        TurnOutcome::Failed { message, .. } => message,
    };
    let notice = |about: &str| {
        let mut of = logs(turn).filter_map(|entry| match entry {
            Logged::Notice { about: subject, text } if subject == about => Some(text),
            _ => None,
        });
        of.find(|text| got.contains(text.as_str()))
    };
    let unit = |about: &'static str| {
        let held = match notice(about) {
            None => Err(Seen::new("the user was not informed of it")),
            Some(text) if about == "context" => names_cause(text, turn),
            Some(_) => Ok(()),
        };
        (format!("`{about}`"), held)
    };
    lacks(turn, trace).into_iter().map(unit).collect()
}

/// Subjects of the notices that a turn owes, derived from its events.
fn lacks(turn: &TurnView<'_>, trace: &Trace) -> BTreeSet<&'static str> {
    let mut lacks = BTreeSet::new();
    let mut search_failed = false;
    for what in &turn.events {
        match what {
            What::Moved(moved) => lacks.extend(MOVES.iter().filter(|(on, _)| *on == moved.on).map(|(_, about)| *about)),
            What::ToolCalled(call) if trace.role(&call.tool) == Role::Knowledge && executed(call) => {
                search_failed = matches!(call.outcome, ToolOutcome::Failed { .. });
            }
            What::Logged(Logged::Compacted { done: false, .. }) => {
                lacks.insert("window");
            }
            What::Logged(Logged::StartedAfresh { .. }) => {
                lacks.insert("session");
            }
            What::Logged(Logged::Estimated { most, warn: Some(warn), .. }) if most > warn => {
                lacks.insert("budget");
            }
            _ => {}
        }
    }
    if search_failed {
        lacks.insert("search");
    }
    if turn.answer().is_some_and(|answer| answer.sources.is_empty()) {
        lacks.insert("own_knowledge");
    }
    lacks
}

/// Whether the notice about a shorter context names why the model failed before: the HTTP status or the kind of the
/// failure, and a time-out only if it was one.
fn names_cause(notice: &str, turn: &TurnView<'_>) -> Held {
    let until = turn.events.iter().position(|what| matches!(what, What::Moved(moved) if moved.on == "shorter_context"));
    let failed = turn.events[..until.unwrap_or(turn.events.len())].iter().rev().find_map(|what| match what {
        What::ModelCalled(ModelCalled { reply: Reply::Failure { kind, .. }, attempts, .. }) => Some((kind, attempts)),
        _ => None,
    });
    let Some((kind, attempts)) = failed else { return Ok(()) };
    let status = attempts.last().and_then(|attempt| attempt.status).filter(|status| *status >= 400);
    let says_late = ["in time", "timed out", "timeout", "time-out", "too slow"];
    let late = says_late.iter().any(|words| notice.to_lowercase().contains(words));
    let kinds = [kind.to_lowercase(), kind.to_lowercase().replace('_', " ")];
    let kind_named = kinds.iter().any(|kind| notice.to_lowercase().contains(kind));
    let named = status.is_none_or(|status| kind_named || notice.contains(&status.to_string()));
    let cause = status.map_or_else(|| quote(kind, 40), |status| format!("{}, HTTP {status}", quote(kind, 40)));
    hold(named && late == (kind == "timeout"), || format!("the notice does not name the cause, {cause}"))
}
