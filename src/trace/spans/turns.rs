//! The turns in a story.
//!
//! The outermost agents below one root are one turn: its query is what the first was asked, its answer what the last
//! said. Without a span of an agent, a completion begins a turn if a user's message follows the last answer in its
//! input; the turn's answer is then the last text of the model. A completion behind that text which is shown neither it nor a
//! call or result stands beside the conversation, as one for a title does.

use super::HIDDEN;
use super::meaning::{Completed, Operation, Ran};
use super::messages::{Said, prints};
use super::story::Story;
use std::collections::BTreeMap;

/// Least bytes of a result that is looked for in a prompt: a short one stands in many.
const LEAST_RESULT: usize = 16;

/// One turn, as far as spans tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SpanTurn {
    /// The user's words; `None` if contents are not captured.
    pub(crate) query: Option<String>,
    /// The agent's words; `None` if there are none or contents are not captured.
    pub(crate) answer: Option<String>,
    /// Whether a span of the agent says its answer, and not only its model's messages.
    pub(crate) is_answered_by_agent: bool,
    /// Message of the error in which it ended.
    pub(crate) failed: Option<String>,
    /// When it began, in nanoseconds since 1970.
    pub(crate) at_ns: u64,
    /// Duration, in microseconds.
    pub(crate) took_us: u64,
    /// Whether it has a span with an impossible time: then its duration is unknown.
    pub(crate) is_untimed: bool,
    /// What was done in it: indexes into [`Story::operations`], in order.
    pub(crate) operations: Vec<usize>,
    /// Completions among them that stand beside the conversation: their words are not its answer.
    pub(crate) aside: Vec<usize>,
    root: String,
}

/// The turns of a story, in order.
pub(crate) fn turns(story: &Story) -> Vec<SpanTurn> {
    let is_agent = |place: &usize| matches!(story.operations[*place].operation, Operation::Agent { .. });
    let outer = |place: usize| story.around(place).filter(is_agent).last();
    let mut turns: Vec<SpanTurn> = Vec::new();
    for (place, done) in story.operations.iter().enumerate() {
        let Operation::Agent { asked, answered, .. } = &done.operation else { continue };
        if outer(place).is_some() {
            continue;
        }
        let known = turns.iter().position(|turn| turn.root == done.root);
        let turn = known.unwrap_or_else(|| {
            turns.push(SpanTurn { root: done.root.clone(), at_ns: done.at_ns, ..SpanTurn::default() });
            turns.len() - 1
        });
        let turn = &mut turns[turn];
        turn.query = turn.query.take().or_else(|| asked.clone());
        turn.answer = answered.clone().or(turn.answer.take());
        turn.is_answered_by_agent = turn.answer.is_some();
        turn.failed.clone_from(&done.failed);
        turn.is_untimed |= !done.is_timed;
        turn.took_us = turn.took_us.max(done.at_ns.saturating_sub(turn.at_ns) / 1_000 + done.took_us);
    }
    let by_agents = !turns.is_empty();
    for (place, done) in story.operations.iter().enumerate() {
        if is_agent(&place) || done.is_repeated {
            continue;
        }
        let turn = if by_agents {
            let same = turns.iter().position(|turn| turn.root == done.root);
            same.or_else(|| turns.iter().rposition(|turn| turn.at_ns <= done.at_ns)).unwrap_or_default()
        } else {
            if turns.last().is_none_or(|turn| is_asked_again(story, turn, place)) {
                turns.push(SpanTurn { at_ns: done.at_ns, ..SpanTurn::default() });
            }
            turns.len() - 1
        };
        turns[turn].operations.push(place);
        turns[turn].is_untimed |= !done.is_timed;
        if !by_agents {
            let turn = &mut turns[turn];
            turn.took_us = turn.took_us.max(done.at_ns.saturating_sub(turn.at_ns) / 1_000 + done.took_us);
        }
    }
    for turn in &mut turns {
        after_their_calls(story, &mut turn.operations);
        by_completions(story, turn);
    }
    turns
}

/// Puts runs, with what is within them, after the completion that asked for them, whatever their clocks say: the id of a
/// call decides.
fn after_their_calls(story: &Story, operations: &mut Vec<usize>) {
    let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
    for (rank, place) in operations.iter().enumerate() {
        let Operation::Completed(one) = &story.operations[*place].operation else { continue };
        let calls = one.output.iter().flatten().flat_map(|said| &said.calls).filter(|call| !call.id.is_empty());
        calls.for_each(|call| _ = asked.entry(&call.id).or_insert(rank));
    }
    let of_run = |place: usize| match &story.operations[place].operation {
        Operation::Ran(Ran { id: Some(id), .. }) => asked.get(id.as_str()).copied(),
        _ => None,
    };
    let mut ranked: Vec<(usize, usize)> = Vec::with_capacity(operations.len());
    for (rank, place) in operations.iter().enumerate() {
        let after = story.around(*place).chain([*place]).filter_map(of_run).max().filter(|asked| *asked > rank);
        ranked.push((after.unwrap_or(rank), *place));
    }
    // What has the rank of a completion comes after it.
    ranked.sort_by_key(|(rank, place)| (*rank, operations.get(*rank) != Some(place)));
    *operations = ranked.into_iter().map(|(_, place)| place).collect();
}

/// Whether a completion belongs to another turn: the user's last message in its input follows the turn's answer.
fn is_asked_again(story: &Story, turn: &SpanTurn, place: usize) -> bool {
    let Operation::Completed(next) = &story.operations[place].operation else { return false };
    let said = turn.operations.iter().rev().find_map(|place| match &story.operations[*place].operation {
        Operation::Completed(last) => {
            last.output.as_ref()?.iter().rfind(|said| said.is_agent() && said.calls.is_empty())
        }
        _ => None,
    });
    let (Some(said), Some(input)) = (said, &next.input) else { return false };
    let answered = input.iter().rposition(|one| one.is_agent() && one.text == said.text);
    let asked = input.iter().rposition(Said::is_user);
    answered.zip(asked).is_some_and(|(answered, asked)| asked > answered)
}

/// Adds the query and the answer that only the model's messages show.
fn by_completions(story: &Story, turn: &mut SpanTurn) {
    let own = turn.operations.iter().filter(|place| {
        !story
            .around(**place)
            .any(|outer| matches!(story.operations[outer].operation, Operation::Found(_) | Operation::Ran(_)))
    });
    let completed: Vec<_> = own
        .filter_map(|place| match &story.operations[*place] {
            done if done.is_repeated => None,
            done => {
                if let Operation::Completed(completed) = &done.operation {
                    Some((*place, completed))
                } else {
                    None
                }
            }
        })
        .collect();
    let aside = aside(&completed);
    if turn.query.is_none() {
        let asked = completed.iter().find_map(|(_, one)| one.input.as_ref()?.iter().rfind(|said| said.is_user()));
        // One text without a role is a prompt.
        let prompt =
            || completed.first().and_then(|(_, one)| one.input.as_ref()?.first().filter(|said| said.role.is_empty()));
        turn.query = asked.or_else(prompt).map(|said| said.text.clone()).filter(|text| text != HIDDEN);
    }
    let Some((last, completion)) = completed.iter().rfind(|(place, _)| !aside.contains(place)) else { return };
    let said = completion.output.iter().flatten().rfind(|said| said.is_agent() && said.calls.is_empty());
    let said = said.map(|said| said.text.clone()).filter(|text| !["", HIDDEN].contains(&text.trim()));
    if turn.answer.as_ref().is_none_or(|answer| said.as_ref().is_some_and(|said| prints(answer, said))) {
        turn.answer = said;
    }
    // An agent whose span ended well and hides its contents may have answered after its model failed.
    let is_hidden = !turn.root.is_empty() && turn.query.is_none() && turn.answer.is_none();
    if !turn.is_answered_by_agent && !is_hidden {
        turn.failed = turn.failed.take().or_else(|| story.operations[*last].failed.clone());
    }
    turn.aside = aside;
}

/// Which completions stand beside the conversation of the others: behind the model's last calls and the words after them, those
/// that are shown neither these words nor any call or result, be it as text.
fn aside(completed: &[(usize, &Completed)]) -> Vec<usize> {
    let calls = |one: &Completed| one.output.iter().flatten().any(|said| !said.calls.is_empty());
    let Some(called) = completed.iter().rposition(|(_, one)| calls(one)) else { return Vec::new() };
    let inputs = completed[called + 1..].iter().flat_map(|(_, one)| one.input.iter().flatten());
    let results = inputs.filter(|said| said.answers.is_some()).map(|said| said.text.trim());
    let results: Vec<&str> = results.filter(|text| text.len() >= LEAST_RESULT && *text != HIDDEN).collect();
    let mut words: Vec<&str> = Vec::new();
    let mut aside = Vec::new();
    for (place, one) in &completed[called + 1..] {
        let continues = |said: &Said| {
            let shows = |text: &&str| said.text.contains(*text);
            !said.calls.is_empty() || said.answers.is_some() || words.iter().chain(&results).any(shows)
        };
        if !words.is_empty() && one.input.as_ref().is_some_and(|input| !input.iter().any(continues)) {
            aside.push(*place);
            continue;
        }
        let said = one.output.iter().flatten().filter(|said| said.is_agent());
        words.extend(said.map(|said| said.text.trim()).filter(|text| !["", HIDDEN].contains(text)));
    }
    aside
}
