//! Calls and results that are text.
//!
//! | who | writes |
//! |---|---|
//! | a model that is offered no tools | `Action: NAME` and `Action Input: …` (ReAct), or the fields `next_tool_name` and `next_tool_args` (DSPy) |
//! | its agent, in a later request | `Observation: …`, or the field `observation_N` |
//! | an agent that gives results back as text | its model's calls, with their ids, as a message of the assistant, and what they returned as the user's message behind it |

use super::{TraceBuilder, Waiting};
use crate::flow::external::decoder;
use crate::flow::external::shown::{continued, leaves};
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::mcp::Ran;
use crate::trace::ToolOutcome;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// Shortest id that is looked for in a text.
const SHORTEST_ID: usize = 5;

/// What stands before such a result.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    let heads = r"call id: \S+|(?:observations?|tool (?:results?|outputs?|responses?))\s*:";
    Regex::new(&format!(r"(?i)^(?:\s*(?:{heads})\s*)+")).expect("an expression")
});

/// A call of a ReAct agent.
static ACTION: LazyLock<Regex> = LazyLock::new(|| {
    let name = r#"[`"'*]*(?P<tool>[\w.-]+(?: [\w.-]+){0,5}?)[`"'*]*"#;
    let end = r"(?:\n\s*\**(?:Observation|Thought|Final Answer)\b|\z)";
    let react = format!(r"(?ms)^\s*\**Action\**\s*:\s*\**{name}\s*\n?\s*\**Action Input\**\s*:\s*(?P<input>.*?){end}");
    Regex::new(&react).expect("an expression")
});

/// A call of DSPy.
static NEXT_TOOL: LazyLock<Regex> = LazyLock::new(|| {
    let field = |name: &str| format!(r"\[\[ ## {name} ## \]\]\s*");
    let (tool, input) = (field("next_tool_name"), field("next_tool_args"));
    Regex::new(&format!(r"(?s){tool}(?P<tool>[\w.-]+)\s*{input}(?P<input>.*?)\s*(?:\[\[ ##|\z)"))
        .expect("an expression")
});

/// What such a call returned.
static OBSERVED: LazyLock<Regex> = LazyLock::new(|| {
    let react = r"^\s*\**Observation\**\s*:\s*";
    Regex::new(&format!(r"(?m){react}|\[\[ ## observation_\d+ ## \]\]\s*")).expect("an expression")
});

/// What follows it.
static BEHIND: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)\n\s*\**Thought\**\s*:|\s*\[\[ ##|\n\nRespond with the corresponding output fields")
        .expect("an expression")
});

/// Names in the place of a tool that are none.
const ENDS: [&str; 4] = ["none", "n/a", "final answer", "finish"];

/// Beginning of the ids of calls that have none.
const OWN_IDS: &str = "text-";

impl TraceBuilder<'_> {
    /// Adds the call in the text of a completion.
    pub(super) fn called_in_text(&mut self, (tool, arguments): (String, Value), text: &str, completion: u32) {
        text.trim().clone_into(&mut self.written);
        self.writes_calls = true;
        self.made.push((tool.clone(), arguments.clone()));
        self.waiting.push(Waiting::new(self.at, completion, (format!("{OWN_IDS}{completion}"), tool, arguments)));
    }

    /// Reads the results of pending calls from texts. Where one text follows calls of several tools, it is not known which
    /// is of which.
    pub(super) fn results_in_text(&mut self, asked: &ChatRequest) {
        let old = self.known_messages(asked);
        let mut told = Vec::new();
        let mut waiting = Vec::new();
        for call in std::mem::take(&mut self.waiting) {
            let of_its_tool = |ids: &[&str]| {
                let tool = |id: &&str| self.ids.get(*id).map(|place| self.made[*place].0.as_str());
                ids.iter().all(|id| tool(id) == Some(call.tool.as_str()))
            };
            match result(&asked.messages, old, &call.id, &self.written, of_its_tool) {
                Some(result) => told.push((result, call)),
                None => waiting.push(call),
            }
        }
        self.waiting = waiting;
        for (result, call) in told {
            let failed = matches!(call.ran, Some(Ran::Failed(_)));
            let outcome = if failed { self.ran(&call) } else { self.outcome(&call, result) };
            self.called(call, outcome);
        }
    }

    /// Ends the calls of the last completion that a request leaves out, though it goes on with the user's words: a single
    /// one failed if they report an error, and an answering tool's was not the answer. An agent may put its own words in
    /// place of the calls; if they hold the answer, it stands.
    pub(super) fn left_out_calls(&mut self, asked: &ChatRequest) {
        let (told, own): (Vec<&str>, Vec<&Message>) = match continued(&self.before, &asked.messages) {
            Some(told) => {
                let (told, own): (Vec<&Message>, Vec<_>) = told.iter().partition(|message| message.role == Role::User);
                (told.into_iter().map(|message| message.content.as_str()).collect(), own)
            }
            None => (grown(&self.before, &asked.messages).into_iter().collect(), Vec::new()),
        };
        if told.is_empty() || own.iter().any(|message| message.role != Role::Assistant || !message.calls.is_empty()) {
            return;
        }
        let last = self.completions.checked_sub(1);
        let is_said = |call: &Waiting| {
            let mut texts = Vec::new();
            leaves(&call.arguments, &mut texts);
            let said = |text: &String| !text.is_empty() && own.iter().any(|message| message.content.contains(text));
            texts.iter().any(said)
        };
        let is_left_out = |call: &Waiting| {
            Some(call.completion) == last && call.ran.is_none() && call.found.is_none() && !is_said(call)
        };
        let places: Vec<usize> = (0..self.waiting.len()).filter(|place| is_left_out(&self.waiting[*place])).collect();
        let words = told.join("\n");
        if let [place] = places[..]
            && let Some((message, retryable)) = decoder::error(&decoder::document(&HEADS.replace(&words, "")))
        {
            let call = self.waiting.remove(place);
            return self.called(call, ToolOutcome::Failed { message, retryable });
        }
        for place in places {
            self.waiting[place].is_left_out = true;
        }
    }
}

/// What the user's last words say behind those that they were before, where nothing else differs: smolagents joins messages
/// of one role.
fn grown<'m>(before: &[Message], after: &'m [Message]) -> Option<&'m str> {
    let ((said, before), (now, after)) = (before.split_last()?, after.split_last()?);
    let more = now.content.strip_prefix(said.content.as_str())?.trim();
    (before == after && said.role == Role::User && now.role == Role::User && !more.is_empty()).then_some(more)
}

/// The tool and the arguments of the call in the text of a completion.
pub(super) fn call(text: &str) -> Option<(String, Value)> {
    let parts = ACTION.captures(text).or_else(|| NEXT_TOOL.captures(text))?;
    if ENDS.iter().any(|end| parts["tool"].eq_ignore_ascii_case(end)) {
        return None;
    }
    Some((parts["tool"].to_owned(), decoder::document(parts["input"].trim().trim_matches('`'))))
}

/// The result of the call with that id: the text behind the message that names it, if it is that of this call alone, or if
/// all calls that the message names are of its tool.
fn result(
    messages: &[Message],
    old: usize,
    id: &str,
    written: &str,
    of_its_tool: impl Fn(&[&str]) -> bool,
) -> Option<Value> {
    if id.starts_with(OWN_IDS) {
        return observed(&messages[old.min(messages.len())..], written);
    }
    if id.len() < SHORTEST_ID {
        return None;
    }
    let names =
        |message: &Message| message.role == Role::Assistant && message.calls.is_empty() && message.content.contains(id);
    let place = (old..messages.len()).find(|place| names(&messages[*place]))?;
    let announced: Vec<&str> = ids(&messages[place].content);
    let behind: Vec<&str> = messages[place + 1..]
        .iter()
        .take_while(|message| message.role == Role::User)
        .map(|message| message.content.as_str())
        .collect();
    let text = match announced.iter().position(|one| *one == id) {
        Some(at) if announced.len() == behind.len() => behind[at].to_owned(),
        Some(_) if announced.len() == 1 && !behind.is_empty() => behind.join("\n"),
        Some(at) if behind.len() == 1 => {
            let text = HEADS.replace(behind[0], "");
            let one = documents(&text).filter(|all| all.len() == announced.len()).map(|mut all| all.swap_remove(at));
            return one.or_else(|| of_its_tool(&announced).then(|| decoder::document(&text)));
        }
        _ => return None,
    };
    Some(decoder::document(&HEADS.replace(&text, "")))
}

/// The objects and lists that a text consists of, one behind the other or one in each line; `None` for any other text.
fn documents(text: &str) -> Option<Vec<Value>> {
    let is_document = |one: &Value| one.is_object() || one.is_array();
    let all: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    let all = all.unwrap_or_else(|_| text.trim().lines().map(decoder::document).collect());
    all.iter().all(is_document).then_some(all)
}

/// The last observation in new messages, or in a prompt that has grown, behind what the model has `written`.
fn observed(messages: &[Message], written: &str) -> Option<Value> {
    let behind = |message: &Message| message.content.rfind(written).map_or(0, |at| at + written.len());
    let last = |message: &Message| {
        let from = behind(message);
        OBSERVED.find_iter(&message.content[from..]).last().map(|found| from + found.end())
    };
    let told = messages.iter().rev().filter(|message| message.role != Role::System);
    let (message, from) = told.into_iter().find_map(|message| Some((message, last(message)?)))?;
    let text = &message.content[from..];
    let end = BEHIND.find(text).map_or(text.len(), |behind| behind.start());
    Some(decoder::document(text[..end].trim()))
}

/// The ids of the calls in a text, as `'id': 'call_1'`.
fn ids(text: &str) -> Vec<&str> {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"['"](?:tool_call_|call_)?id['"]\s*:\s*['"]([^'"]+)['"]"#).expect("an expression")
    });
    ID.captures_iter(text).filter_map(|parts| Some(parts.get(1)?.as_str())).collect()
}
