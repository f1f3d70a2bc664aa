//! Restores neutral fields in the positions kept by [`Passthrough`].
//!
//! Invariant: with the original text and calls, `fill` returns the original pieces. If they were changed, the pieces
//! that are neither text nor call stay, the new text replaces the first old one, and calls replace calls in order.

use crate::provider::chat::{Message, Passthrough, Piece, ToolCall, ToolDefinition};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A piece of content with its text or call.
#[derive(Debug, PartialEq)]
pub(super) enum Filled<'a> {
    /// Text, and the rest of its piece.
    Text(&'a str, Option<&'a Value>),
    /// A call, and the rest of its piece.
    Call(&'a ToolCall, Option<&'a Value>),
    /// Verbatim.
    Other(&'a Value),
}

/// The parts kept for `dialect`; those of other dialects are ignored.
pub(super) fn of<'a>(dialect: &str, passthrough: Option<&'a Arc<Passthrough>>) -> Option<&'a Passthrough> {
    passthrough.map(|passthrough| &**passthrough).filter(|passthrough| passthrough.dialect == dialect)
}

/// Keeps `fields` and `pieces` for `dialect`.
pub(super) fn keep(dialect: &str, fields: Map<String, Value>, pieces: Vec<Piece>) -> Option<Arc<Passthrough>> {
    Some(Arc::new(Passthrough { dialect: dialect.to_owned(), fields, pieces }))
}

/// Gives the fields of the first of several messages that one is read as, which have its `envelope`, and then none.
pub(super) fn around(envelope: Map<String, Value>) -> impl FnMut() -> Map<String, Value> {
    let mut envelope = Some(("envelope".to_owned(), Value::Object(envelope)));
    move || envelope.take().into_iter().collect()
}

/// Puts the message's text and calls back into their pieces.
pub(super) fn fill<'a>(message: &'a Message, passthrough: Option<&'a Passthrough>) -> Vec<Filled<'a>> {
    let pieces = passthrough.map_or(&[][..], |passthrough| &passthrough.pieces[..]);
    let mut texts = cut(&message.content, pieces);
    let mut calls = message.calls.iter();
    let mut filled = Vec::with_capacity(pieces.len() + 1);
    for piece in pieces {
        match piece {
            Piece::Text { wire, .. } => filled.extend(texts.next().map(|text| Filled::Text(text, object(wire)))),
            Piece::Call { wire } => filled.extend(calls.next().map(|call| Filled::Call(call, object(wire)))),
            Piece::Other { wire } => filled.push(Filled::Other(wire)),
        }
    }
    if let Some(text) = texts.next().filter(|text| !text.is_empty()) {
        let place = filled.iter().position(|piece| matches!(piece, Filled::Call(..))).unwrap_or(filled.len());
        filled.insert(place, Filled::Text(text, None));
    }
    filled.extend(calls.map(|call| Filled::Call(call, None)));
    filled
}

/// The rest of a piece is an object; anything else was not written here and is dropped.
pub(super) fn object(wire: &Value) -> Option<&Value> {
    Some(wire).filter(|wire| wire.is_object())
}

/// The pieces of a message that are neither text nor calls.
pub(super) fn others<'m>(dialect: &str, message: &'m Message) -> impl Iterator<Item = &'m Value> {
    let pieces = of(dialect, message.passthrough.as_ref()).map_or(&[][..], |kept| &kept.pieces[..]);
    pieces.iter().filter_map(|piece| if let Piece::Other { wire } = piece { Some(wire) } else { None })
}

/// The text split by the pieces; whole if its length has changed.
fn cut<'a>(content: &'a str, pieces: &[Piece]) -> std::vec::IntoIter<&'a str> {
    let lengths: Vec<usize> = pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Text { bytes, .. } => Some(*bytes),
            _ => None,
        })
        .collect();
    split(content, &lengths).unwrap_or_else(|| vec![content]).into_iter()
}

/// Splits `content` into these lengths; `None` if the total differs or a character would be split.
pub(super) fn split<'a>(content: &'a str, lengths: &[usize]) -> Option<Vec<&'a str>> {
    let mut rest = content;
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let (part, after) = rest.split_at_checked(*length)?;
        parts.push(part);
        rest = after;
    }
    rest.is_empty().then_some(parts).filter(|parts| !parts.is_empty())
}

/// Writes a body's `tools` if they are one list: `ready`, from an earlier body with the same definitions, or each tool
/// in its template, see [`place_tools`].
pub(super) fn write_tools(
    body: &mut Map<String, Value>,
    ready: Option<Value>,
    tools: &[ToolDefinition],
    name: impl Fn(&Value) -> Option<String>,
    write: impl Fn(Option<Value>, &ToolDefinition) -> Value,
) {
    let written = ready.or_else(|| {
        let templates = body.get_mut("tools").and_then(Value::as_array_mut).map(std::mem::take);
        let needed = templates.is_some() || !tools.is_empty();
        needed.then(|| Value::Array(place_tools(templates.unwrap_or_default(), tools, name, write)))
    });
    if let Some(written) = written {
        body.insert("tools".to_owned(), written);
    }
}

/// Puts the tools into their templates, by name; tools without a template follow, and templates without a tool are
/// removed. `name` reads the name of a template that is a function; anything else stays in place.
pub(super) fn place_tools(
    templates: Vec<Value>,
    tools: &[ToolDefinition],
    name: impl Fn(&Value) -> Option<String>,
    write: impl Fn(Option<Value>, &ToolDefinition) -> Value,
) -> Vec<Value> {
    let mut left: Vec<&ToolDefinition> = tools.iter().collect();
    let mut written = Vec::with_capacity(templates.len().max(tools.len()));
    for template in templates {
        match name(&template) {
            Some(name) => {
                if let Some(place) = left.iter().position(|tool| tool.name == name) {
                    written.push(write(Some(template), left.remove(place)));
                }
            }
            None => written.push(template),
        }
    }
    written.extend(left.into_iter().map(|tool| write(None, tool)));
    written
}

/// Empties a text or an object in its place.
pub(super) fn clear(place: Option<&mut Value>) {
    match place {
        Some(Value::String(text)) => text.clear(),
        Some(Value::Object(object)) => object.clear(),
        _ => {}
    }
}

/// The call's arguments for a place: an object where one stands there, else text.
pub(super) fn arguments_for(place: Option<&Value>, arguments: &str) -> Value {
    if place.is_some_and(Value::is_object) { arguments_object(arguments) } else { Value::from(arguments) }
}

/// The call's arguments as an object, for dialects that require one; anything else is wrapped, not lost.
pub(crate) fn arguments_object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ if arguments.trim().is_empty() => Value::Object(Map::new()),
        _ => serde_json::json!({ "invalid_arguments": arguments }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::Role;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "look".into(), arguments: "{}".into() }
    }

    fn pieces() -> Vec<Piece> {
        vec![
            Piece::Other { wire: json!("signature") },
            Piece::Text { bytes: 2, wire: json!({"n": 1}) },
            Piece::Call { wire: json!({"n": 2}) },
            Piece::Text { bytes: 3, wire: json!({"n": 3}) },
        ]
    }

    #[test]
    fn unchanged_words_return_to_their_places() {
        let mut message = Message::text(Role::Assistant, "äbcd");
        message.calls.push(call("a"));
        let passthrough = Passthrough { dialect: "d".into(), fields: Map::new(), pieces: pieces() };
        let (one, two, three) = (json!({"n": 1}), json!({"n": 2}), json!({"n": 3}));
        assert_eq!(
            fill(&message, Some(&passthrough)),
            [
                Filled::Other(&json!("signature")),
                Filled::Text("ä", Some(&one)),
                Filled::Call(&message.calls[0], Some(&two)),
                Filled::Text("bcd", Some(&three)),
            ]
        );
    }

    #[test]
    fn changed_words_keep_the_signature_and_lose_the_old_cuts() {
        let mut message = Message::text(Role::Assistant, "other");
        message.content.push_str(" words");
        message.calls.extend([call("a"), call("b")]);
        let passthrough = Passthrough { dialect: "d".into(), fields: Map::new(), pieces: pieces() };
        let filled = fill(&message, Some(&passthrough));
        assert_eq!(filled.len(), 4);
        assert!(matches!(filled[0], Filled::Other(_)));
        assert!(matches!(filled[1], Filled::Text("other words", Some(_))));
        assert!(matches!(filled[3], Filled::Call(last, None) if last.id == "b"));
    }

    #[test]
    fn what_one_dialect_kept_is_nothing_to_another() {
        let passthrough = keep("gemini", Map::new(), pieces());
        assert!(of("gemini", passthrough.as_ref()).is_some());
        assert!(of("openai-chat", passthrough.as_ref()).is_none());
    }

    #[test]
    fn arguments_that_are_no_object_are_wrapped() {
        assert_eq!(arguments_object("{\"a\":1}"), json!({"a": 1}));
        assert_eq!(arguments_object(""), json!({}));
        assert_eq!(arguments_object("[1]"), json!({"invalid_arguments": "[1]"}));
    }

    proptest! {
        #[test]
        fn parts_of_a_text_add_up_to_it(parts in proptest::collection::vec("[aä🦀]{0,4}", 1..6)) {
            let lengths: Vec<usize> = parts.iter().map(String::len).collect();
            let whole = parts.concat();
            prop_assert_eq!(split(&whole, &lengths), Some(parts.iter().map(String::as_str).collect()));
        }
    }
}
