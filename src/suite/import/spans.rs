//! Imports traces of OpenTelemetry and LangSmith: a trace id is a conversation.
//!
//! Completions, tool runs and searches become events. A run of a tool belongs to the call with its id, else to the call
//! of its name that has no result yet. A trace without contents keeps models, tokens and tools, and the members of a
//! published trace that it lacks are named. Nothing is guessed: a trace that has contents and does not say what was
//! asked is broken.

use super::Aside;
use super::error::ConversationError;
use super::record::{Record, Told};
use crate::platform::secrets;
use crate::provider::tool_result;
use crate::trace::spans::{self, Completed, Deed, Done, Found, Ran, SpanTurn, SpansError, Story};
use crate::trace::text::plural;
use crate::trace::{
    Answer, Completion, Event, FlowSearch, Hit, Member, ModelCalled, Reply, SearchResult, ToolCalled, ToolOutcome,
    ToolResult, TurnEnded, TurnOutcome, What,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What an instrumented agent shows in any case.
const SHOWN: [Member; 4] = [Member::Completions, Member::Calls, Member::Answers, Member::Took];
/// Characters of a passage that a trace keeps.
const EXCERPT: usize = 160;
/// Unread items that a note names.
const NAMED: usize = 3;
const NOT_RECORDED: &str = "not recorded";

/// Conversations in a file of spans, and what of the file is none.
///
/// # Errors
/// If the file holds no spans.
pub(super) fn records(bytes: &[u8]) -> Result<(Vec<Record>, Aside), SpansError> {
    let batch = spans::read(bytes)?;
    let stories = spans::stories(batch.spans, &[]);
    let seen = |of: fn(&Story) -> bool| stories.iter().any(of);
    let mut absent: Vec<Member> = Member::ALL.iter().copied().filter(|member| !SHOWN.contains(member)).collect();
    let documents = |done: &Done| matches!(&done.deed, Deed::Found(Found { documents: Some(_), .. }));
    if stories.iter().any(|story| story.dones.iter().any(documents)) {
        absent.retain(|member| *member != Member::Passages);
    }
    if seen(|story| !story.logged.is_empty()) {
        absent.retain(|member| *member != Member::Log);
    }
    let (mut records, mut others) = (Vec::new(), 0);
    for story in stories {
        if story.dones.is_empty() {
            others += 1;
            continue;
        }
        let turns = spans::turns(&story);
        let mut record = Record::of(Ok(Vec::new()));
        (record.task, record.reward, record.id) = (story.task.clone(), story.reward, Some(story.trace.clone()));
        match told(&story, &turns, absent.clone()) {
            Ok(told) => {
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
        let named = batch.unread.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        let more = batch.unread.len().saturating_sub(NAMED);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        parts.push(format!("{} of the file not read: {named}{more}", plural(batch.unread.len(), "part")));
    }
    Ok((records, Aside { traces: others, parts }))
}

/// Events of a story.
fn told(story: &Story, turns: &[SpanTurn], mut absent: Vec<Member>) -> Result<Told, ConversationError> {
    let captured = |done: &Done| match &done.deed {
        Deed::Completed(completed) => completed.input.is_some() || completed.output.is_some(),
        Deed::Agent { asked, answered } => asked.is_some() || answered.is_some(),
        _ => false,
    };
    let has_contents = story.dones.iter().any(captured);
    let began = turns.iter().map(|turn| turn.at_ns).min().unwrap_or_default();
    let mut events = Events::of(story, began);
    events.push(began, What::ConversationStarted { name: "main".into(), session: "main".into(), tenant: None });
    let mut logged = story.logged.iter().peekable();
    for (number, turn) in (0..).zip(turns) {
        events.turn = number;
        if has_contents {
            let missing = || ConversationError::Source(format!("no span says what turn {} was asked", number + 1));
            let query = turn.query.clone().ok_or_else(missing)?;
            events.push(turn.at_ns, What::TurnStarted { query });
        }
        for place in &turn.dones {
            while let Some((at, entry)) = logged.next_if(|(at, _)| *at < story.dones[*place].at_ns) {
                events.push(*at, What::Logged(entry.clone()));
            }
            events.tell(*place);
        }
        let next = turns.get(number as usize + 1).map_or(u64::MAX, |turn| turn.at_ns);
        while let Some((at, entry)) = logged.next_if(|(at, _)| *at < next) {
            events.push(*at, What::Logged(entry.clone()));
        }
        if has_contents {
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
    if !has_contents {
        absent.push(Member::Answers);
        notes.push("its spans hold no contents: only models, tokens, tools and times are known".to_owned());
    }
    if events.without_arguments > 0 {
        absent.push(Member::Calls);
        notes.push(format!("{} without arguments", plural(events.without_arguments, "run of a tool")));
    }
    if events.other_arguments > 0 {
        let runs = plural(events.other_arguments, "run of a tool");
        notes.push(format!("{runs} with other arguments than the model's call, which counts"));
    }
    absent.sort_unstable();
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
    let input = first.into_iter().flat_map(|turn| &turn.dones).find_map(|place| match &story.dones[*place].deed {
        Deed::Completed(completed) => completed.input.as_ref(),
        _ => None,
    });
    let said = input.into_iter().flatten().filter(|said| said.is_user());
    let mut asked: Vec<String> = said.map(|said| said.text.clone()).collect();
    asked.pop();
    asked
}

/// The events so far.
struct Events<'s> {
    story: &'s Story,
    began: u64,
    turn: u32,
    completions: u32,
    events: Vec<Event>,
    /// Calls without a result: index of the event.
    waiting: Vec<usize>,
    /// Index of the event of each run of a tool, by its place in the story.
    runs: BTreeMap<usize, usize>,
    without_arguments: usize,
    other_arguments: usize,
}

impl<'s> Events<'s> {
    fn of(story: &'s Story, began: u64) -> Self {
        Self {
            story,
            began,
            turn: 0,
            completions: 0,
            events: Vec::new(),
            waiting: Vec::new(),
            runs: BTreeMap::new(),
            without_arguments: 0,
            other_arguments: 0,
        }
    }

    fn push(&mut self, at_ns: u64, what: What) {
        let at_us = at_ns.saturating_sub(self.began) / 1_000;
        self.events.push(Event { at_us, conversation: 0, turn: self.turn, what });
    }

    fn tell(&mut self, place: usize) {
        let done = &self.story.dones[place];
        match &done.deed {
            Deed::Completed(completed) => self.completed(done, completed),
            Deed::Ran(ran) => self.ran(place, done, ran),
            Deed::Found(found) => self.found(place, done, found),
            Deed::Agent { .. } | Deed::Vectors => {}
        }
    }

    fn completed(&mut self, done: &Done, completed: &Completed) {
        for said in completed.input.iter().flatten().filter(|said| said.role == "tool" || said.role == "function") {
            let call = self.call_of(said.answers.as_deref(), None);
            if let Some(What::ToolCalled(call)) = call.map(|place| &mut self.events[place].what)
                && call.arguments.is_object()
            {
                let value = serde_json::from_str(&said.text).unwrap_or_else(|_| Value::String(said.text.clone()));
                call.outcome = ToolOutcome::Ok(ToolResult::other(value));
            }
        }
        let call = self.completions;
        self.completions += 1;
        let output = completed.output.as_deref().unwrap_or_default();
        let texts: Vec<&str> = output.iter().map(|said| said.text.as_str()).filter(|text| !text.is_empty()).collect();
        let reply = match &done.failed {
            Some(message) => Reply::Failure { kind: "error".into(), message: message.clone() },
            None => Reply::Completion(Completion {
                model: completed.model.clone(),
                text: texts.join("\n"),
                refusal: None,
                calls: output.iter().flat_map(|said| &said.calls).map(|call| call.tool.clone()).collect(),
                finish: completed.finish.clone().unwrap_or_else(|| NOT_RECORDED.into()),
                input_tokens: completed.input_tokens,
                cached_tokens: completed.cached_tokens,
                output_tokens: completed.output_tokens,
            }),
        };
        let called = ModelCalled {
            service: None,
            call,
            state: NOT_RECORDED.into(),
            took_us: done.took_us,
            first_token_us: None,
            shown: Vec::new(),
            tool_choice: NOT_RECORDED.into(),
            attempts: Vec::new(),
            reply,
        };
        self.push(done.at_ns, What::ModelCalled(called));
        for asked in output.iter().flat_map(|said| &said.calls) {
            let broken = !asked.arguments.is_object();
            self.waiting.push(self.events.len());
            let outcome = if broken {
                ToolOutcome::not_executed("not_json", "its arguments are not a JSON object")
            } else {
                ToolOutcome::not_executed("no_result", "no span and no message gives a result of this call")
            };
            let (id, tool, arguments) = (asked.id.clone(), asked.tool.clone(), asked.arguments.clone());
            let at = done.at_ns.saturating_add(done.took_us * 1_000);
            let called = ToolCalled { call, id, tool, arguments, outcome, took_us: 0, attempts: Vec::new() };
            self.push(at, What::ToolCalled(called));
        }
    }

    /// Takes the first call without a result that has this id, or this name where one of the two has no id.
    fn call_of(&mut self, id: Option<&str>, tool: Option<&str>) -> Option<usize> {
        let found = self.waiting.iter().position(|place| match &self.events[*place].what {
            What::ToolCalled(call) => match id.filter(|id| !id.is_empty() && !call.id.is_empty()) {
                Some(id) => call.id == id,
                None => tool.is_none_or(|tool| call.tool == tool),
            },
            _ => false,
        })?;
        Some(self.waiting.remove(found))
    }

    fn ran(&mut self, place: usize, done: &Done, ran: &Ran) {
        let event = self.call_of(ran.id.as_deref(), Some(&ran.tool));
        if event.is_none() && ran.arguments.is_none() {
            self.without_arguments += 1;
        }
        let outcome = match (&done.failed, &ran.result) {
            (Some(message), _) => ToolOutcome::Failed { message: message.clone(), retryable: false },
            (None, result) => ToolOutcome::Ok(ToolResult::other(result.clone().unwrap_or_default())),
        };
        let event = event.unwrap_or_else(|| {
            let called = ToolCalled {
                call: self.completions.saturating_sub(1),
                id: ran.id.clone().unwrap_or_default(),
                tool: ran.tool.clone(),
                arguments: ran.arguments.clone().unwrap_or_default(),
                outcome: outcome.clone(),
                took_us: 0,
                attempts: Vec::new(),
            };
            self.push(done.at_ns, What::ToolCalled(called));
            self.events.len() - 1
        });
        self.runs.insert(place, event);
        if let What::ToolCalled(call) = &mut self.events[event].what {
            (call.outcome, call.took_us) = (outcome, done.took_us);
            // Some instrumentations lose the arguments of calls that were streamed.
            let is_empty = call.arguments.as_object().is_none_or(serde_json::Map::is_empty);
            match &ran.arguments {
                Some(arguments) if is_empty => call.arguments.clone_from(arguments),
                Some(arguments) if *arguments != call.arguments => self.other_arguments += 1,
                _ => {}
            }
            if call.id.is_empty() {
                call.id = ran.id.clone().unwrap_or_default();
            }
        }
    }

    /// A search within a run of a tool is its result; another is the agent's own.
    fn found(&mut self, place: usize, done: &Done, found: &Found) {
        let query = found.query.clone().unwrap_or_default();
        let hits = found.documents.as_ref().and_then(tool_result::passages).map(|passages| {
            let hit = |one: tool_result::Passage<'_>| Hit {
                id: one.id,
                title: one.title.to_owned(),
                raw_score: one.score,
                excerpt: secrets::beginning(one.text, EXCERPT),
                learned: None,
            };
            passages.into_iter().map(hit).collect::<Vec<Hit>>()
        });
        let outcome = match (&done.failed, hits) {
            (Some(message), _) => ToolOutcome::Failed { message: message.clone(), retryable: false },
            (None, Some(hits)) => {
                let without_learned = hits.iter().map(|hit| hit.id.clone()).collect();
                let kb_id = found.base.clone().unwrap_or_default();
                let query = query.clone();
                ToolOutcome::Ok(ToolResult::Search(SearchResult { query, kb_id, hits, without_learned, managed: None }))
            }
            (None, None) => {
                let reason = "the documents in its span are missing, or one of them has no id";
                ToolOutcome::Unseen { reason: reason.to_owned() }
            }
        };
        let run = self.story.around(place).find_map(|outer| self.runs.get(&outer).copied());
        if let Some(What::ToolCalled(call)) = run.map(|event| &mut self.events[event].what) {
            if matches!((&call.outcome, &outcome), (ToolOutcome::Ok(ToolResult::Other(_)), ToolOutcome::Ok(_))) {
                call.outcome = outcome;
            }
            return;
        }
        let search = FlowSearch { query, outcome, took_us: done.took_us, attempts: Vec::new() };
        self.push(done.at_ns, What::Searched(search));
    }

    fn end(&mut self, turn: &SpanTurn) -> Result<(), ConversationError> {
        let outcome = match (&turn.answer, &turn.failed) {
            (_, Some(message)) => TurnOutcome::Failed { kind: "agent_error".into(), message: message.clone() },
            (Some(text), None) => TurnOutcome::Answered(Answer::text_alone(text.clone())),
            (None, None) => {
                let said = |place: &usize| match &self.story.dones[*place].deed {
                    Deed::Completed(completed) => completed.output.is_some(),
                    _ => false,
                };
                // As in messages, a turn that ends with a call never ended.
                let calls = turn.dones.iter().any(said);
                let missing =
                    || ConversationError::Source(format!("no span says what turn {} answered", self.turn + 1));
                return calls.then_some(()).ok_or_else(missing);
            }
        };
        let ended = TurnEnded { took_us: turn.took_us, outcome, history: Vec::new(), reply: None };
        let at = turn.at_ns.saturating_add(turn.took_us.saturating_mul(1_000));
        self.push(at, What::TurnEnded(ended));
        Ok(())
    }
}
