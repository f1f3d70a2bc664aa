//! `context_preservation`: conversations that keep their context / conversations of two turns or more (SC-008).
//!
//! Three conditions must hold. History: every completion of each later turn was shown every message that the previous
//! turn left as history, in order (a subsequence, because the flow adds messages). Nothing foreign: among and before
//! the history there are only system messages, and the first completion of a turn is shown exactly one message more,
//! the user's. The agent of others may keep its calls and their results among the history: of its messages, only those of
//! users can be foreign. Probes: every context probe of the conversation's turns holds. An empty history preserves nothing and
//! is a failure.

use super::catalogue::Registered;
use super::expectation::probe_failure;
use super::{Member, Metric, Observation, TrialView, TurnView};
use crate::trace::{EXTERNAL, IMPORTED};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("context_preservation", |_| Metric {
    applies: Box::new(|case| case.conversations().any(|one| one.turns.len() >= 2)),
    members: &[Member::Shown, Member::History, Member::Answers],
    ..Metric::new("conversations", observe)
})
.about("Conversations of several turns that were shown their whole history and whose context probes all hold.")];

/// How the digest of a user's message begins.
const USER: &str = "user:";

/// Whether `wanted` is a subsequence of `shown`.
pub(super) fn subsequence(wanted: &[String], shown: &[String]) -> bool {
    let mut rest = shown.iter();
    wanted.iter().all(|digest| rest.any(|seen| seen == digest))
}

fn history_failure(before: &TurnView<'_>, later: &TurnView<'_>) -> Option<String> {
    let at = later.turn.saturating_add(1);
    let Some(end) = before.ended() else {
        return Some(format!("turn {} {}", before.turn.saturating_add(1), before.ending()));
    };
    if later.models().next().is_none() {
        return Some(format!("turn {at} never asked the model"));
    }
    if end.history.is_empty() {
        return Some(format!("turn {} left no history", before.turn.saturating_add(1)));
    }
    let lost = later.models().position(|asked| !subsequence(&end.history, &asked.shown))?;
    let when = if lost == 0 { String::new() } else { format!(" at completion {}", lost + 1) };
    Some(format!("turn {at} was not shown the history before it{when}"))
}

/// Whether a message belongs to the conversation rather than to the system.
pub(super) fn spoken(digest: &str) -> bool {
    !["sys", "developer"].iter().any(|role| digest.starts_with(role))
}

/// Describes messages shown in a turn that are neither its history nor its input: a message among or before the
/// history, or more than the user's words after it. `preamble` is what the agent shows before any history; `counts` says
/// which messages are looked at.
fn foreign(
    preamble: &[&String],
    history: &[String],
    turn: &TurnView<'_>,
    counts: impl Fn(&str) -> bool,
) -> Option<String> {
    let history: Vec<&String> = history.iter().filter(|digest| counts(digest)).collect();
    for (ordinal, asked) in (1..).zip(turn.models()) {
        let spoken: Vec<&String> = asked.shown.iter().filter(|digest| counts(digest)).collect();
        let spoken = spoken.strip_prefix(preamble).unwrap_or(&spoken);
        let agree = history.iter().zip(spoken).take_while(|(wanted, seen)| wanted == seen).count();
        if agree < history.len().min(spoken.len()) || (ordinal == 1 && spoken.len() > history.len() + 1) {
            let (turn, at) = (turn.turn.saturating_add(1), agree + 1);
            return Some(format!("turn {turn}, completion {ordinal} was shown a foreign message at place {at}"));
        }
    }
    None
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let mut units = Vec::new();
    for turns in view.turns.chunk_by(|left, right| left.conversation == right.conversation) {
        if turns.len() < 2 {
            continue;
        }
        let history = turns.windows(2).find_map(|pair| history_failure(&pair[0], &pair[1]));
        let before = |at: usize| {
            let end = at.checked_sub(1).and_then(|before| turns[before].ended());
            end.map_or(&[][..], |end| end.history.as_slice())
        };
        // The agent of others may show the same examples in front of every turn.
        let foreign_agent = [EXTERNAL, IMPORTED].contains(&view.trace.lane.flow.as_str());
        let counts = |digest: &str| spoken(digest) && (!foreign_agent || digest.starts_with(USER));
        let first = turns[0].models().next().filter(|_| foreign_agent);
        let mut preamble: Vec<&String> =
            first.iter().flat_map(|asked| &asked.shown).filter(|digest| counts(digest)).collect();
        preamble.pop();
        let foreign = || turns.iter().enumerate().find_map(|(at, turn)| foreign(&preamble, before(at), turn, counts));
        let probe = || turns.iter().find_map(|turn| probe_failure(view, turn));
        let lack = history.or_else(foreign).or_else(probe);
        units.push(Observation::unless(turns[0].conversation_label(), lack));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::subsequence;

    #[test]
    fn history_may_be_interleaved_and_not_reordered() {
        let list = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert!(subsequence(&list("user:1 assistant:2"), &list("system:0 user:1 assistant:2 user:3")));
        assert!(!subsequence(&list("user:1 assistant:2"), &list("system:0 assistant:2 user:1")));
        assert!(!subsequence(&list("user:1 user:1"), &list("user:1 user:2")), "each message is used once");
    }
}
