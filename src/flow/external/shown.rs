//! Finds the parts of the conversation in a request: earlier texts in it, and what it adds to the request before.

use super::decoder;
use crate::flow::digest;
use crate::provider::chat::{Message, Role};
use serde_json::Value;

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
    let mut texts = vec![message.content.clone()];
    for call in &message.calls {
        leaves(&decoder::document(&call.arguments), &mut texts);
    }
    let earlier = known.iter().filter(|(_, said)| !said.is_empty() && texts.iter().any(|text| text.contains(said)));
    let shown: Vec<String> = earlier.map(|(role, said)| digest(*role, said)).collect();
    if shown.is_empty() { vec![digest(message.role, &message.content)] } else { shown }
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
