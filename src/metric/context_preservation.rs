//! `context_preservation`: conversations that keep their context / conversations of two turns or more (SC-008).
//!
//! Three conditions must hold. History: every completion of each later turn was shown every message that the previous
//! turn left as history, in order (a subsequence, because the flow adds messages). The agent of others may ask a model
//! beside the conversation, to choose a route, to guard or for a title: of its completions, those count whose calls ran and
//! the one that gave the answer. If no completion has the words of the answer, all count. Nothing foreign: among and before
//! the history there are only system messages, and the first completion of a turn that is shown the history is shown
//! exactly one message more, the user's. The agent of others may keep its calls and their results among the history: of
//! its messages, only those of users can be foreign. Probes: every context probe of the conversation's turns holds. An
//! empty history preserves nothing and is a failure.

use super::catalogue::Registered;
use super::expectation::probe_failure;
use super::{Member, Metric, Observation, TrialView, TurnView};
use crate::trace::{EXTERNAL, IMPORTED, ModelCalled, Reply, ToolOutcome, ToolResult};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("context_preservation", |_| Metric {
    applies: Box::new(|case| case.conversations().any(|one| one.turns.len() >= 2)),
    members: &[Member::Shown, Member::History, Member::Answers],
    ..Metric::new("conversations", observe)
})
.about(
    "Conversations of several turns whose completions were shown their whole history and whose context probes all hold; of an \
     agent outside, the completions that gave the answer or whose calls ran.",
)];

/// How the digest of a user's message begins.
const USER: &str = "user:";

/// Whether `wanted` is a subsequence of `shown`.
pub(super) fn subsequence(wanted: &[String], shown: &[String]) -> bool {
    let mut rest = shown.iter();
    wanted.iter().all(|digest| rest.any(|seen| seen == digest))
}

/// The completions of a turn that must know its conversation, each with its place in the turn.
fn within<'a>(turn: &TurnView<'a>, foreign_agent: bool) -> Vec<(usize, &'a ModelCalled)> {
    let all: Vec<_> = turn.models().enumerate().collect();
    if !foreign_agent {
        return all;
    }
    let is_run = |asked: &ModelCalled| {
        asked.reply.lists_calls() && turn.calls().any(|call| call.call == asked.call && !call.outcome.is_unseen())
    };
    let responded = |outcome: &ToolOutcome| matches!(outcome, ToolOutcome::Ok(ToolResult::Responded));
    let by_call = turn.calls().filter(|call| responded(&call.outcome)).map(|call| call.call).last();
    let by_text = || {
        let said = turn.answer().map(|answer| answer.text.trim()).filter(|said| !said.is_empty())?;
        let texts = all.iter().filter_map(|(_, asked)| match &asked.reply {
            Reply::Completion(completion) => Some((asked.call, completion.text.trim())),
            Reply::Failure { .. } => None,
        });
        let is_part = |text: &str| text.contains(said) || said.contains(text) && text.len() * 2 >= said.len();
        let whole = texts.clone().find(|(_, text)| *text == said);
        whole.or_else(|| texts.clone().find(|(_, text)| is_part(text))).map(|(call, _)| call)
    };
    let Some(answering) = by_call.or_else(by_text) else { return all };
    all.into_iter().filter(|(_, asked)| asked.call == answering || is_run(asked)).collect()
}

fn history_failure(before: &TurnView<'_>, later: &TurnView<'_>, foreign_agent: bool) -> Option<String> {
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
    let within = within(later, foreign_agent);
    let (lost, _) = within.iter().find(|(_, asked)| !subsequence(&end.history, &asked.shown))?;
    let when = if *lost == 0 { String::new() } else { format!(" at completion {}", lost + 1) };
    Some(format!("turn {at} was not shown the history before it{when}"))
}

/// Whether a message belongs to the conversation rather than to the system.
pub(super) fn spoken(digest: &str) -> bool {
    !["sys", "developer"].iter().any(|role| digest.starts_with(role))
}

/// Whether a message can be foreign: one of the conversation, and of the agent of others one of a user.
fn counts(digest: &str, foreign_agent: bool) -> bool {
    spoken(digest) && (!foreign_agent || digest.starts_with(USER))
}

/// Describes messages shown in a turn that are neither its history nor its input: a message among or before the
/// history, or more than the user's words after it. `preamble` is what the agent shows before any history. Of the agent of
/// others, only the messages of users are looked at.
fn foreign(preamble: &[&String], history: &[String], turn: &TurnView<'_>, foreign_agent: bool) -> Option<String> {
    let users: Vec<&String> = history.iter().filter(|digest| counts(digest, foreign_agent)).collect();
    for (place, asked) in within(turn, foreign_agent) {
        // What an earlier completion of the conversation said may be followed by words of the agent.
        let is_first = turn.models().take(place).all(|earlier| !subsequence(history, &earlier.shown));
        let spoken: Vec<&String> = asked.shown.iter().filter(|digest| counts(digest, foreign_agent)).collect();
        let spoken = spoken.strip_prefix(preamble).unwrap_or(&spoken);
        let agree = users.iter().zip(spoken).take_while(|(wanted, seen)| wanted == seen).count();
        if agree < users.len().min(spoken.len()) || (is_first && spoken.len() > users.len() + 1) {
            let (turn, ordinal, at) = (turn.turn.saturating_add(1), place + 1, agree + 1);
            return Some(format!("turn {turn}, completion {ordinal} was shown a foreign message at place {at}"));
        }
    }
    None
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let mut units = Vec::new();
    let foreign_agent = [EXTERNAL, IMPORTED].contains(&view.trace.lane.flow.as_str());
    for turns in view.turns.chunk_by(|left, right| left.conversation == right.conversation) {
        if turns.len() < 2 {
            continue;
        }
        let history = turns.windows(2).find_map(|pair| history_failure(&pair[0], &pair[1], foreign_agent));
        let before = |at: usize| {
            let end = at.checked_sub(1).and_then(|before| turns[before].ended());
            end.map_or(&[][..], |end| end.history.as_slice())
        };
        // The agent of others may show the same examples in front of every turn: what stands before the user's first words.
        let first = within(&turns[0], foreign_agent).into_iter().next().filter(|_| foreign_agent);
        let mut preamble: Vec<&String> =
            first.iter().flat_map(|(_, asked)| &asked.shown).filter(|digest| counts(digest, foreign_agent)).collect();
        let query = before(1).iter().find(|digest| digest.starts_with(USER));
        let asked = preamble.iter().position(|shown| Some(*shown) == query);
        preamble.truncate(asked.unwrap_or(preamble.len().saturating_sub(1)));
        let foreign =
            || turns.iter().enumerate().find_map(|(at, turn)| foreign(&preamble, before(at), turn, foreign_agent));
        let probe = || turns.iter().find_map(|turn| probe_failure(view, turn));
        let lack = history.or_else(foreign).or_else(probe);
        units.push(Observation::unless(turns[0].conversation_label(), lack));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::super::sample::{Story, metric, plan, story, viewed};
    use super::subsequence;
    use crate::trace::{Completion, ModelCalled, Reply, ToolCalled, ToolOutcome, ToolResult, What};
    use serde_json::{Value, json};

    /// What a completion was shown and said, and whether a call of it ran.
    type Asked<'a> = (&'a [&'a str], &'a str, bool);

    /// What the metric says of a conversation whose second turn has these completions.
    fn of_second_turn(flow: &str, completions: &[Asked<'_>]) -> String {
        of_turns(flow, &[], completions)
    }

    /// The same, where the first turn has a completion without words and these.
    fn of_turns(flow: &str, first: &[Asked<'_>], second: &[Asked<'_>]) -> String {
        let plan = plan("[{case: a, turns: [{ask: I live in Turku}, {ask: heating grants?}]}]", "[]", 1);
        let story = asking(story(&plan, 0).turn("I live in Turku"), first).deliver("noted", &[], 1);
        let mut trace = asking(story.turn_begins("heating grants?"), second).deliver("There are two.", &[], 1).done();
        trace.lane.flow = flow.into();
        let units = viewed(&plan, &trace, |view| (metric("context_preservation").observe)(&view));
        let [unit] = units.as_slice() else { panic!("one conversation") };
        if matches!(unit.outcome, Outcome::Success) { "yes".into() } else { unit.note.clone() }
    }

    /// The story with these completions of its last turn.
    fn asking(mut story: Story, completions: &[Asked<'_>]) -> Story {
        for (call, (shown, text, calls)) in (1..).zip(completions) {
            let named = calls.then(|| "look".to_owned()).into_iter().collect();
            let completion = Completion { text: (*text).to_owned(), calls: named, ..Completion::default() };
            story = story.push(What::ModelCalled(ModelCalled {
                call,
                service: None,
                state: String::new(),
                took_us: 1,
                first_token_us: None,
                shown: shown.iter().map(ToString::to_string).collect(),
                tool_choice: "auto".into(),
                attempts: Vec::new(),
                reply: Reply::Completion(completion),
            }));
            if *calls {
                let outcome = ToolOutcome::Ok(ToolResult::other(Value::Null));
                let (id, tool, arguments, attempts) = ("c".into(), "look".into(), json!({}), Vec::new());
                let called = ToolCalled { call, id, tool, arguments, outcome, began_us: None, took_us: 1, attempts };
                story = story.push(What::ToolCalled(called));
            }
        }
        story
    }

    #[test]
    fn the_agents_own_words_as_a_user_behind_its_plan_are_no_examples() {
        let first: &[&str] = &["system:0", "user:I live in Turku", "assistant:a plan", "user:Continue"];
        let second: &[&str] =
            &["user:I live in Turku", "assistant:noted", "user:heating grants?", "assistant:a plan", "user:Continue"];
        let turns = |examples: &[&str]| {
            let (first, second) = ([examples, first].concat(), [examples, second].concat());
            let plan = (&second[..second.len() - 2], "a plan", false);
            of_turns("external", &[(&first[..], "noted", false)], &[plan, (&second[..], "There are two.", false)])
        };
        assert_eq!(turns(&[]), "yes");
        assert_eq!(turns(&["user:example?", "assistant:so"]), "yes");
    }

    #[test]
    fn an_agent_outside_may_ask_beside_the_conversation_and_answers_and_calls_with_its_history() {
        let whole: &[&str] = &["system:0", "user:I live in Turku", "assistant:noted", "user:heating grants?"];
        let alone: &[&str] = &["system:1", "user:heating grants?"];
        let (router, title) = ((alone, "grants", false), (alone, "Grants in Turku", false));
        let answer = (whole, "There are two.", false);
        assert_eq!(of_second_turn("external", &[router, answer, title]), "yes");
        assert_ne!(
            of_second_turn("tool-rag", &[router, answer, title]),
            "yes",
            "flows of our own ask nothing beside it"
        );
        let lost = "turn 2 was not shown the history before it";
        let second = format!("{lost} at completion 2");
        assert_eq!(of_second_turn("external", &[(whole, "grants", false), (alone, "There are two.", false)]), second);
        assert_eq!(of_second_turn("external", &[answer, (alone, "", true)]), second, "its call ran");
        let more = [whole, &["user:and subsidies?"]].concat();
        assert_eq!(
            of_second_turn("external", &[router, (&more[..], "There are two.", false)]),
            "turn 2, completion 2 was shown a foreign message at place 2"
        );
        let of_neither = [(alone, "two", false), (whole, "maybe", false)];
        assert_eq!(of_second_turn("external", &of_neither), lost, "the answer is of neither, so both count");
    }

    #[test]
    fn history_may_be_interleaved_and_not_reordered() {
        let list = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        assert!(subsequence(&list("user:1 assistant:2"), &list("system:0 user:1 assistant:2 user:3")));
        assert!(!subsequence(&list("user:1 assistant:2"), &list("system:0 assistant:2 user:1")));
        assert!(!subsequence(&list("user:1 user:1"), &list("user:1 user:2")), "each message is used once");
    }
}
