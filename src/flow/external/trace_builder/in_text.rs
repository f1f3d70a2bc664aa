//! Results that an agent gives back as text: it rewrites its model's calls, with their ids, as a message of the assistant,
//! and what they returned as the user's message behind it.

use super::TraceBuilder;
use crate::flow::external::decoder;
use crate::provider::chat::{ChatRequest, Message, Role};
use crate::provider::mcp::Ran;
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

impl TraceBuilder<'_> {
    /// Reads the results of pending calls from texts. Where one text follows several calls, it is not known which is of which.
    pub(super) fn results_in_text(&mut self, asked: &ChatRequest) {
        let old = self.before.iter().zip(&asked.messages).take_while(|(earlier, now)| earlier == now).count();
        let mut told = Vec::new();
        let mut waiting = Vec::new();
        for call in std::mem::take(&mut self.waiting) {
            match result(&asked.messages, old, &call.id) {
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
}

/// The result of the call with that id: the text behind the message that names it, if it is that of this call alone.
fn result(messages: &[Message], old: usize, id: &str) -> Option<Value> {
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
        _ => return None,
    };
    Some(decoder::document(&HEADS.replace(&text, "")))
}

/// The ids of the calls in a text, as `'id': 'call_1'`.
fn ids(text: &str) -> Vec<&str> {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"['"](?:tool_call_|call_)?id['"]\s*:\s*['"]([^'"]+)['"]"#).expect("an expression")
    });
    ID.captures_iter(text).filter_map(|parts| Some(parts.get(1)?.as_str())).collect()
}
