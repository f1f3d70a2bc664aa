//! Finds the parts of the conversation in a request: earlier texts in it, and what it adds to the request before.

use super::decoder;
use super::evidence::places_alone;
use crate::flow::digest;
use crate::provider::chat::{Message, Role};
use serde_json::Value;

/// Least letters of a text that is found in any other one: fewer ("no", "1") stand in many.
const LEAST_LETTERS: usize = 16;

/// Digests of the earlier texts that a message contains, else of the message. A text of the agent may contain other
/// answers, so it matches only the longest earlier answer that it begins with.
pub(super) fn digests(known: &[(Role, String)], message: &Message) -> Vec<String> {
    if message.role == Role::Assistant {
        let said = known.iter().filter(|(role, said)| {
            *role == Role::Assistant && !said.is_empty() && message.content.starts_with(said.as_str())
        });
        if let Some((role, said)) = said.max_by_key(|(_, said)| said.len()) {
            return vec![digest(*role, said)];
        }
    }
    let mut arguments = Vec::new();
    for call in &message.calls {
        leaves(&decoder::document(&call.arguments), &mut arguments);
    }
    let found = |states: fn(&str, &str) -> bool| {
        let is_stated = |(role, said): &&(Role, String)| {
            // Calls and results repeat the user's words: that is no message of the user.
            let by_content = (*role != Role::User || message.role != Role::Tool) && states(&message.content, said);
            let by_call = *role != Role::User && arguments.iter().any(|text| states(text, said));
            !said.is_empty() && (by_content || by_call)
        };
        known.iter().filter(is_stated).map(|(role, said)| digest(*role, said)).collect::<Vec<String>>()
    };
    let mut shown = found(states);
    if shown.is_empty() && message.role == Role::User {
        shown = found(
            |text, said| if said.is_ascii() { places_alone(said, text).next().is_some() } else { text.contains(said) },
        );
    }
    if shown.is_empty() { vec![digest(message.role, &message.content)] } else { shown }
}

/// Whether a text states what was said, as a whole or in a part of it. A short one is a part only if it ends a line and
/// nothing but a label stands before it: "You know nothing" does not say "no".
fn states(text: &str, said: &str) -> bool {
    if said.chars().count() >= LEAST_LETTERS || text.trim() == said.trim() {
        return text.contains(said.trim());
    }
    let quotes = ['"', '\'', '`', '*'];
    text.match_indices(said).any(|(at, _)| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        let label = before.trim_end_matches(|letter: char| letter.is_whitespace() || quotes.contains(&letter));
        let rest = text[at + said.len()..].split('\n').next().unwrap_or_default().trim_start();
        let is_ended = rest.is_empty() || rest.starts_with('<') || rest.starts_with(quotes);
        is_ended && (label.is_empty() || label.ends_with([':', '：', '>', ']']))
    })
}

/// Adds the texts in a document.
pub(super) fn leaves(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, texts)),
        Value::Object(members) => members.values().for_each(|item| leaves(item, texts)),
        _ => {}
    }
}

/// The messages that `after` adds to `before`; `None` if it is another conversation.
pub(super) fn continued<'m>(before: &[Message], after: &'m [Message]) -> Option<&'m [Message]> {
    let same = |(one, other): (&Message, &Message)| one.role == other.role && one.content == other.content;
    let prefix = !before.is_empty() && before.len() <= after.len() && before.iter().zip(after).all(same);
    prefix.then(|| &after[before.len()..])
}
