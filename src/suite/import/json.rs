//! Reads the JSON values of an import: one list, or one value a line. A value that cannot be read, or is nested too deeply,
//! spoils no other.

use super::ImportError;
use super::error::ConversationError;
use super::record::IDS;
use crate::platform::distinct_json::Distinct;
use crate::platform::lenient_json::without_nan;
use crate::platform::secrets;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::ops::Range;

/// An item of a file, or why it cannot be read.
pub(super) type Item = Result<Value, ConversationError>;

/// The items of a file: those of a single list, or one a line; without declared secrets and keys of well-known forms. One
/// that cannot be read spoils no other.
///
/// # Errors
/// If no item can be read, or there is none.
pub(super) fn items(text: &[u8]) -> Result<Vec<Item>, ImportError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let items = match values(text).map(<[Value; 1]>::try_from) {
        // A single list is the whole file; otherwise, each line is an item.
        Ok(Ok([Value::Array(items)])) => items.into_iter().map(Ok).collect(),
        Ok(Ok([one])) => vec![Ok(one)],
        Ok(Err(lines)) => lines.into_iter().map(Ok).collect(),
        Err(why) => {
            let read: Vec<Item> = pieces(text).into_iter().flat_map(|(at, piece)| of_piece(text, at, piece)).collect();
            if read.iter().all(|item| item.as_ref().map_or(true, is_too_deep)) {
                return Err(why.into());
            }
            read
        }
    };
    let redactor = secrets::declared();
    let is_clean = std::str::from_utf8(text).is_ok_and(|text| redactor.is_surely_clean(text));
    let item = |item: Value| {
        if is_too_deep(&item) {
            return Err(ConversationError::TooDeep);
        }
        Ok(if is_clean { item } else { with_own_id(&item, redactor.redact_value(&item)) })
    };
    let items: Vec<Item> = items.into_iter().map(|read| read.and_then(item)).collect();
    if items.is_empty() { Err(ImportError::Empty) } else { Ok(items) }
}

/// The items of the part of a text at `at`, or the line at which it cannot be read.
fn of_piece(text: &[u8], at: usize, piece: &[u8]) -> Vec<Item> {
    match values(piece) {
        Ok(values) => values.into_iter().map(Ok).collect(),
        Err(why) => {
            let line = 1 + memchr::memchr_iter(b'\n', &text[..at]).count();
            // The line of the error is counted within the part.
            let why = why.to_string().replacen(" at line 1 column ", " at column ", 1);
            vec![Err(ConversationError::Line { line, why: format!("not JSON: {why}") })]
        }
    }
}

/// The parts of a file that can be read apart, each with its place: its lines, or the items of the list that it is, and
/// what stands between them.
pub(super) fn pieces(text: &[u8]) -> Vec<(usize, &[u8])> {
    let place = |part: &[u8]| part.as_ptr().addr() - text.as_ptr().addr();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let first = lines.iter().find(|line| !line.is_empty()).copied().unwrap_or_default();
    let is_list = first.starts_with(b"[") && values(first).is_err();
    let parts = if is_list { between(text) } else { lines };
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| (place(part), part)).collect()
}

/// The objects and lists of the list that a text is, and the rest of it: what is between them, or is cut off.
fn between(text: &[u8]) -> Vec<&[u8]> {
    let bare = |part: &'_ [u8]| part.iter().all(|byte| byte.is_ascii_whitespace() || b",[]".contains(byte));
    let (mut parts, mut from) = (Vec::new(), 0);
    let places = nested(text, 1).into_iter().map(|(place, _)| place).chain(std::iter::once(text.len()..text.len()));
    for place in places {
        let rest = &text[from..place.start];
        if !bare(rest) {
            parts.push(rest);
        }
        parts.push(&text[place.clone()]);
        from = place.end;
    }
    parts
}

/// The redacted item with digests in place of redacted ids, which would otherwise all be equal.
fn with_own_id(item: &Value, mut redacted: Value) -> Value {
    for name in IDS {
        if let (Some(id), Some(now)) = (item.get(name), redacted.get_mut(name).filter(|now| item[name] != **now)) {
            *now = hex::encode(&Sha256::digest(id.to_string())[..8]).into();
        }
    }
    redacted
}

/// The JSON values of a text, one after the other; numbers that JSON lacks, which Python writes, are null, and a value that
/// is nested too deeply is [`TOO_DEEP`].
fn values(text: &[u8]) -> Result<Vec<Value>, serde_json::Error> {
    let read = |text: &[u8]| {
        let values = serde_json::Deserializer::from_slice(text).into_iter();
        values.map(|value| value.map(|Distinct(value)| value)).collect::<Result<Vec<Value>, _>>()
    };
    match read(text) {
        Err(why) if why.to_string().contains("recursion limit exceeded") => read(&without_too_deep(text)),
        Err(why) => read(&without_nan(text).ok_or(why)?),
        values => values,
    }
}

/// Greatest depth that is parsed.
const DEEPEST: usize = 127;
/// What replaces a conversation that is nested deeper.
const TOO_DEEP: &str = "\0nested too deeply";

/// Whether an item was nested too deeply, or is a list with such a one.
fn is_too_deep(item: &Value) -> bool {
    item.as_str() == Some(TOO_DEEP) || item.as_array().is_some_and(|items| items.iter().any(is_too_deep))
}

/// The text with each too deeply nested conversation replaced by [`TOO_DEEP`]: an item of the list that the file is, or
/// a value after another.
fn without_too_deep(text: &[u8]) -> Vec<u8> {
    let mut found = nested(text, 0);
    if found.len() == 1 && text.get(found[0].0.start) == Some(&b'[') {
        found = nested(text, 1);
    }
    let (mut out, mut copied) = (Vec::with_capacity(text.len()), 0);
    for (place, _) in found.into_iter().filter(|(_, deepest)| *deepest > DEEPEST) {
        out.extend_from_slice(&text[copied..place.start]);
        out.extend_from_slice(Value::from(TOO_DEEP).to_string().as_bytes());
        copied = place.end;
    }
    out.extend_from_slice(&text[copied..]);
    out
}

/// Lists and objects inside `outside` others: position, and depth of the deepest inside.
fn nested(text: &[u8], outside: usize) -> Vec<(Range<usize>, usize)> {
    let (mut depth, mut deepest, mut start) = (0_usize, 0, 0);
    let (mut quoted, mut escaped) = (false, false);
    let mut found = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                if depth == outside {
                    (start, deepest) = (at, 0);
                }
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => {
                // One that nothing opened ends nothing.
                if depth == outside + 1 {
                    found.push((start..at + 1, deepest));
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_that_nothing_opens_are_no_place_of_a_value_that_is_nested_too_deeply() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for text in [format!("{deep}]"), format!("]{deep}]]"), format!("{{}}]{deep}}}{deep}")] {
            assert!(items(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(
            items(format!("[{{}},{deep}]").as_bytes()).expect("a list"),
            [Ok(serde_json::json!({})), Err(ConversationError::TooDeep)]
        );
    }
    #[test]
    fn what_cannot_be_read_costs_itself_alone_and_is_named_by_its_line() {
        for (text, broken) in [
            ("{\"a\": 1}\n{\"a\": \"\\ud83d\"}\n{\"a\": 1}\n", 2),
            ("{\"a\": 1}\n\n{\"a\": 1}\n{\"a\"", 4),
            ("{\"a\": 1}\noops\n{\"a\": NaN}", 2),
            ("{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n[1]", 2),
            ("[{\"a\": 1}, {\"a\": \"\\ud83d\"}, {\"a\": 1}]", 1),
            ("[\n  {\"a\": 1},\n  {\"a\": [1]},\n  {\"a\": \"cut", 3),
        ] {
            let items = items(text.as_bytes()).unwrap_or_default();
            let lines: Vec<usize> = items
                .iter()
                .filter_map(
                    |item| if let Err(ConversationError::Line { line, .. }) = item { Some(*line) } else { None },
                )
                .collect();
            assert_eq!((items.len(), lines), (3, vec![broken]), "{text}");
        }
        assert!(items(b"{oops\n{").is_err() && items(b"[{\"a\": oops}]").is_err());
    }
}
