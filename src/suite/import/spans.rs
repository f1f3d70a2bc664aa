//! Imports traces of OpenTelemetry and LangSmith: a trace id is a conversation.
//!
//! Completions, tool runs and searches become events. A run of a tool belongs to the call with its id, else to the call
//! of its name that has no result yet, in its turn. Where only the model's messages show the answer, it stands where the
//! last of them without a call does, as in messages: a turn in which the agent went on calling after it never ended. A trace without contents keeps models, tokens and tools, and the members of a
//! published trace that it lacks are named; a turn whose span failed has failed, with or without contents. Nothing is guessed:
//! a trace that has contents and does not say what was asked in a turn that did not fail is broken.

mod events;

use super::Aside;
use super::error::ConversationError;
use super::record::{Record, Told, grade};
use crate::platform::secrets;
use crate::trace::spans::{self, Found, Operation, REWARD, SpanOperation, SpanTurn, SpansError, Story};
use crate::trace::text::plural;
use crate::trace::{Member, What};
use events::Events;
use serde_json::{Value, json};

/// What an instrumented agent shows in any case.
const SHOWN: [Member; 6] =
    [Member::Completions, Member::Calls, Member::Arguments, Member::Answers, Member::Took, Member::TookParts];
/// Remarks of one kind that are named.
const NAMED: usize = 3;

/// Conversations in a file of spans, and what of the file is none.
///
/// # Errors
/// If the file holds no spans.
pub(super) fn records(bytes: &[u8]) -> Result<(Vec<Record>, Aside), SpansError> {
    let mut batch = spans::read(bytes)?;
    batch.redact(&secrets::declared());
    let stories = spans::stories(batch.spans, &[]);
    let seen = |of: fn(&Story) -> bool| stories.iter().any(of);
    let mut absent: Vec<Member> = Member::ALL.iter().copied().filter(|member| !SHOWN.contains(member)).collect();
    let documents =
        |done: &SpanOperation| matches!(&done.operation, Operation::Found(Found { documents: Some(_), .. }));
    if stories.iter().any(|story| story.operations.iter().any(documents)) {
        absent.retain(|member| *member != Member::Passages);
    }
    if seen(|story| !story.logged.is_empty()) {
        absent.retain(|member| *member != Member::Log);
    }
    let unread = (!batch.unread.is_empty()).then(|| {
        absent.extend([Member::Calls, Member::Passages]);
        format!(
            "{} of the file could not be read, and may be a call or a search of this trace",
            plural(batch.unread.len(), "part")
        )
    });
    let (others, stories): (Vec<Story>, Vec<Story>) = stories.into_iter().partition(is_other_work);
    let (mut records, others) = (Vec::new(), others.len());
    let ended_well = stories.iter().filter(|story| !has_failed(&spans::turns(story)));
    let known = Known::of(ended_well.map(has_contents));
    for story in stories {
        let turns = spans::turns(&story);
        let mut record = Record::of(Ok(Vec::new()));
        (record.task, record.id) = (story.task.clone(), Some(story.trace.clone()));
        record.session.clone_from(&story.session);
        let reward = story.reward.as_ref().map(|reward| grade(REWARD, reward)).transpose();
        let contradiction = story.contradiction.clone().map_or(Ok(()), |why| Err(ConversationError::Source(why)));
        match told(&story, &turns, absent.clone(), known).and_then(|told| contradiction.and(Ok((told, reward?)))) {
            Ok((mut told, reward)) => {
                told.notes.extend(unread.clone());
                record.reward = reward;
                let asked = turns.iter().filter_map(|turn| turn.query.as_ref());
                record.messages = Ok(asked.map(|query| json!({"role": "user", "content": query})).collect());
                record.told = Some(told);
            }
            Err(why) => record.messages = Err(why),
        }
        records.push(record);
    }
    let mut parts = Vec::new();
    if others > 0 {
        parts.push(format!("{others} of other work, left out"));
    }
    if let [_, ..] = batch.unread.as_slice() {
        let of = format!("{} of the file not read", plural(batch.unread.len(), "part"));
        parts.push(format!("{of}: {}", first(&batch.unread)));
    }
    if let [_, ..] = batch.odd.as_slice() {
        parts.push(first(&batch.odd));
    }
    Ok((records, Aside { traces: others, parts }))
}

/// The first of some remarks, and how many more there are.
fn first(remarks: &[String]) -> String {
    let named = remarks.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let more = remarks.len().saturating_sub(NAMED);
    if more > 0 { format!("{named}; and {more} more") } else { named }
}

/// Whether a trace is no conversation: it is of a tool's server, which starts a new one if its client passes none on, or of
/// requests for vectors and of steps that got printed objects and gave some, as documents are split for an index. If one of
/// them failed, it may be an agent that did not reach its first completion.
fn is_other_work(story: &Story) -> bool {
    let is_step = |done: &SpanOperation| match &done.operation {
        _ if done.failed.is_some() => false,
        Operation::Vectors => true,
        Operation::Agent { asked, answered, is_chain } => {
            let printed = |words: Option<&str>| words.and_then(printed_objects);
            let is_data =
                || printed(asked.as_deref()).is_some_and(|some| some > 0) && printed(answered.as_deref()).is_some();
            *is_chain && (done.within.is_some() || is_data())
        }
        _ => false,
    };
    let is_graded = story.task.is_some() || story.reward.is_some();
    story.operations.iter().all(|done| done.is_of_server) || !is_graded && story.operations.iter().all(is_step)
}

/// Number of Python's printed objects (`<Document(…)>`) in JSON that has no other text.
fn printed_objects(json: &str) -> Option<usize> {
    fn count(value: &Value) -> Option<usize> {
        match value {
            Value::String(text) => {
                let (name, _) = text.strip_prefix('<')?.strip_suffix(")>")?.split_once('(')?;
                name.chars().all(|one| one.is_alphanumeric() || one == '_').then_some(1)
            }
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => Some(0),
        }
    }
    let read: Value = serde_json::from_str(json).ok()?;
    if read.is_object() || read.is_array() { count(&read) } else { None }
}

/// Whether a span of the story holds messages.
fn has_contents(story: &Story) -> bool {
    let captured = |done: &SpanOperation| match &done.operation {
        Operation::Completed(completed) => completed.input.is_some() || completed.output.is_some(),
        Operation::Agent { asked, answered, .. } => asked.is_some() || answered.is_some(),
        _ => false,
    };
    story.operations.iter().any(captured)
}

/// Whether every turn of a story ended in an error: then it has no answer, whatever else of it was recorded.
fn has_failed(turns: &[SpanTurn]) -> bool {
    !turns.is_empty() && turns.iter().all(|turn| turn.failed.is_some())
}

/// Of which traces of a file that ended well the contents are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    All,
    Some,
    None,
}

impl Known {
    fn of(known: impl Iterator<Item = bool>) -> Self {
        let (mut some, mut all) = (false, true);
        known.for_each(|one| (some, all) = (some || one, all && one));
        if all {
            Self::All
        } else if some {
            Self::Some
        } else {
            Self::None
        }
    }
}

/// Events of a story. A story that failed without contents counts where all others have contents; where some have none,
/// whether it counts would depend on how it ended.
fn told(story: &Story, turns: &[SpanTurn], mut absent: Vec<Member>, known: Known) -> Result<Told, ConversationError> {
    let has_contents = has_contents(story);
    let fails_alone = !has_contents && has_failed(turns);
    if fails_alone && known == Known::Some {
        let why = "it failed without messages, and other traces of the file that ended well hold none either: record the \
                   contents of all traces or of none";
        return Err(ConversationError::Source(why.to_owned()));
    }
    let ends = has_contents || fails_alone && known == Known::All;
    let earliest = |times: &mut dyn Iterator<Item = u64>| times.filter(|at_ns| *at_ns > 0).min();
    let began = earliest(&mut turns.iter().map(|turn| turn.at_ns));
    let began = began.or_else(|| earliest(&mut story.operations.iter().map(|done| done.at_ns))).unwrap_or_default();
    let mut events = Events::of(story, began);
    events.push(began, What::ConversationStarted { name: "main".into(), session: "main".into(), tenant: None });
    let mut logged = story.logged.iter().peekable();
    for (number, turn) in (0..).zip(turns) {
        events.begin(number, turn);
        if ends {
            let why = || story.because(format!("no span says what turn {} was asked", number + 1));
            let missing = || ConversationError::Source(why());
            let unknown = turn.failed.as_ref().map(|_| String::new());
            let query = turn.query.clone().or(unknown).ok_or_else(missing)?;
            events.push(turn.at_ns, What::TurnStarted { query });
        }
        for place in &turn.operations {
            while let Some((at, entry)) = logged.next_if(|(at, _)| *at < story.operations[*place].at_ns) {
                events.push(*at, What::Logged(entry.clone()));
            }
            events.tell(*place);
        }
        let next = turns.get(number as usize + 1).map_or(u64::MAX, |turn| turn.at_ns);
        while let Some((at, entry)) = logged.next_if(|(at, _)| *at < next) {
            events.push(*at, What::Logged(entry.clone()));
        }
        if ends {
            events.end(turn)?;
        }
    }
    let mut notes = vec![format!("trace {}", story.trace)];
    notes.extend(story.notes.iter().cloned());
    if story.others > 0 {
        notes.push(format!("{} of other work, not read", plural(story.others, "span")));
    }
    let earlier = earlier(story, turns.first());
    if !earlier.is_empty() {
        notes.push(format!("{} of the user before its first turn, not judged", plural(earlier.len(), "message")));
    }
    if !ends {
        absent.push(Member::Answers);
    }
    if !has_contents {
        notes.push("its spans hold no contents: only models, tokens, tools and times are known".to_owned());
    }
    if turns.iter().any(|turn| turn.is_untimed) {
        absent.push(Member::Took);
    }
    if story.lost > 0 || !story.unread.is_empty() {
        absent.extend([Member::Calls, Member::Passages]);
        let lost = (story.lost > 0).then(|| format!("what the exporter dropped of {}", plural(story.lost, "span")));
        let mut unread: Vec<String> = lost.into_iter().chain(story.unread.iter().cloned()).collect();
        unread.dedup();
        notes.push(format!("not known, and perhaps a call or a search: {}", first(&unread)));
    }
    if events.without_arguments > 0 {
        absent.push(Member::Arguments);
        notes.push(format!("{} without arguments", plural(events.without_arguments, "run of a tool")));
    }
    if events.late > 0 {
        notes.push(format!(
            "{} of a call of an earlier turn, which belongs to no turn",
            plural(events.late, "run or result")
        ));
    }
    if events.other_values > 0 {
        let runs = plural(events.other_values, "run of a tool");
        notes.push(format!("{runs} with other arguments than the model's call: those of the run count"));
    }
    if events.other_names > 0 {
        let runs = plural(events.other_names, "run of a tool");
        notes.push(format!("{runs} with arguments of other names than the model's call, which counts"));
    }
    let shows_work = |done: &SpanOperation| !matches!(done.operation, Operation::Agent { .. } | Operation::Vectors);
    if !story.operations.iter().any(shows_work) {
        absent.extend([Member::Completions, Member::Calls, Member::Arguments, Member::Passages]);
        notes.push(
            "no span shows a completion, a run of a tool or a search: what the agent called is unknown".to_owned(),
        );
    }
    absent.sort_unstable();
    absent.dedup();
    let ends = turns.iter().map(|turn| turn.at_ns.saturating_sub(began) / 1_000 + turn.took_us);
    Ok(Told {
        took_us: ends.max().unwrap_or_default(),
        events: events.events,
        notes,
        absent: Some(absent),
        earlier,
        passages: Vec::new(),
    })
}

/// What the user said in the input of the first completion before what the first turn asks.
fn earlier(story: &Story, first: Option<&SpanTurn>) -> Vec<String> {
    let input = first.into_iter().flat_map(|turn| &turn.operations).find_map(|place| {
        match &story.operations[*place].operation {
            Operation::Completed(completed) => completed.input.as_ref(),
            _ => None,
        }
    });
    let said = input.into_iter().flatten().filter(|said| said.is_user());
    let mut asked: Vec<String> = said.map(|said| said.text.clone()).collect();
    asked.pop();
    asked
}

#[cfg(test)]
mod tests;
