//! Digests as texts, and the canonical form of a JSON document.
//!
//! The form has sorted members, numbers as exact decimals (1 and 1.0 are equal) and lists in order.

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use std::io::Write;

/// Lower-case hex, truncated to `digits`.
pub(crate) fn hex(bytes: &[u8], digits: usize) -> String {
    let mut text = hex::encode(bytes);
    text.truncate(digits);
    text
}

/// The first `digits` hex digits of SHA-256.
pub(super) fn digest(bytes: impl AsRef<[u8]>, digits: usize) -> String {
    hex(&Sha256::digest(bytes), digits)
}

/// Canonical form of a JSON document.
pub(super) fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, value);
    out
}

/// Appends the canonical form of a document.
pub(super) fn push(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => push_number(out, number),
        Value::String(text) => push_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                separate(out, index);
                push(out, item);
            }
            out.push(b']');
        }
        Value::Object(entries) => {
            let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                push_name(out, index, name);
                push(out, value);
            }
            out.push(b'}');
        }
    }
}

/// Appends a comma before every element but the first.
pub(super) fn separate(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// Appends a member's name, with what separates it.
pub(super) fn push_name(out: &mut Vec<u8>, index: usize, name: &str) {
    separate(out, index);
    push_string(out, name);
    out.push(b':');
}

fn push_number(out: &mut Vec<u8>, number: &Number) {
    let float = if number.is_f64() { number.as_f64() } else { None };
    let text = match float {
        // Whole floats print as integers: 1.0 as 1, and -0.0 as 0.
        Some(float) if float.fract() == 0.0 => format!("{:.0}", float + 0.0),
        _ => number.to_string(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends a string as `serde_json` writes it; about as fast as a copy if little needs escaping.
fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for piece in text.as_bytes().chunks(PIECE) {
        // No branch per byte, so that the compiler can vectorise.
        if piece.iter().fold(false, |found, byte| found | escaped(*byte)) {
            for byte in piece {
                push_escaped(out, *byte);
            }
        } else {
            out.extend_from_slice(piece);
        }
    }
    out.push(b'"');
}

/// Bytes of a string that are checked together.
const PIECE: usize = 32;

/// Whether a byte of a string is written as an escape.
fn escaped(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\')
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        byte if escaped(byte) => {
            // Writing to memory does not fail.
            let _ = write!(out, "\\u{byte:04x}");
            return;
        }
        byte => return out.push(byte),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn a_string_is_written_as_the_library_writes_it(text in "([ -~]{0,40}|[\\x00-\\x1f\"\\\\é🙂\u{7f}]|\\PC){0,8}") {
            prop_assert_eq!(canonical(&json!(text)), serde_json::to_vec(&text).expect("JSON"));
        }
    }
}
