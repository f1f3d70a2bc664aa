//! Reads the JSON values of an import: one list, or one value a line; numbers that JSON lacks and values that are nested too
//! deeply spoil no other.

use super::ImportError;
use super::distinct::Distinct;
use super::record::IDS;
use crate::platform::secrets;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::ops::Range;

/// The items of a file: those of a single list, or one a line; without declared secrets and keys of well-known forms.
///
/// # Errors
/// If it is not JSON or JSON lines, or is empty.
pub(super) fn items(text: &[u8]) -> Result<Vec<Value>, ImportError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let values = match values(text) {
        Err(why) if why.to_string().contains("recursion limit exceeded") => values(&without_too_deep(text))?,
        // Python writes numbers that JSON lacks.
        Err(why) => values(&without_nan(text).ok_or(why)?)?,
        values => values?,
    };
    // A single list is the whole file; otherwise, each line is an item.
    let items = match <[Value; 1]>::try_from(values) {
        Ok([Value::Array(items)]) => items,
        Ok([one]) => vec![one],
        Err(lines) => lines,
    };
    let redactor = secrets::declared();
    let is_clean = std::str::from_utf8(text).is_ok_and(|text| redactor.is_surely_clean(text));
    match items.as_slice() {
        [] => Err(ImportError::Empty),
        _ if is_clean => Ok(items),
        items => Ok(items.iter().map(|item| with_own_id(item, redactor.redact_value(item))).collect()),
    }
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

/// The JSON values of a text, one after the other.
fn values(text: &[u8]) -> Result<Vec<Value>, serde_json::Error> {
    let values = serde_json::Deserializer::from_slice(text).into_iter();
    values.map(|value| value.map(|Distinct(value)| value)).collect()
}

/// The text with `null` for `NaN`, `Infinity` and `-Infinity` outside of strings; `None` if there are none.
pub(super) fn without_nan(text: &[u8]) -> Option<Vec<u8>> {
    const NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let (mut out, mut rest, mut quoted) = (Vec::with_capacity(text.len()), text, false);
    while let Some(first) = rest.first() {
        let number = NUMBERS.iter().find(|number| !quoted && rest.starts_with(number));
        let taken = match (number, first) {
            (Some(number), _) => number.len(),
            (None, b'\\') => rest.len().min(2),
            (None, _) => 1,
        };
        quoted ^= *first == b'"';
        out.extend_from_slice(if number.is_some() { b"null" } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    (out != text).then_some(out)
}

/// Greatest depth that is parsed.
const DEEPEST: usize = 127;
/// What replaces a conversation that is nested deeper.
pub(super) const TOO_DEEP: &str = "\0nested too deeply";

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
            [serde_json::json!({}), TOO_DEEP.into()]
        );
    }
}
