//! Writes a JSON document as block-style YAML that is readable in reviews and equal in every parser.

use serde_json::{Map, Value};
use std::fmt::Write;

/// Maximum nesting of a document printed as YAML; parsers have such limits too.
const MAX_DEPTH: usize = 24;
/// Maximum key length; YAML limits implicit keys to 1024 characters.
const MAX_KEY: usize = 200;

/// Whether a document can be printed as YAML within the limits of parsers.
pub(crate) fn fits(value: &Value) -> bool {
    fn check(value: &Value, depth: usize) -> bool {
        depth < MAX_DEPTH
            && match value {
                Value::Array(items) => items.iter().all(|item| check(item, depth + 1)),
                Value::Object(entries) => {
                    entries.iter().all(|(key, item)| key.len() <= MAX_KEY && check(item, depth + 1))
                }
                _ => true,
            }
    }
    check(value, 0)
}

/// Writes a document; anything but a non-empty object becomes one flow value on one line.
pub(crate) fn write(document: &Value) -> String {
    let mut out = String::new();
    match document {
        Value::Object(entries) if !entries.is_empty() => map(&mut out, entries, 0, false),
        other => {
            out.push_str(&other.to_string());
            out.push('\n');
        }
    }
    out
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes entries at `indent`; with `inline`, the first one follows a list's dash.
fn map(out: &mut String, entries: &Map<String, Value>, indent: usize, inline: bool) {
    for (index, (name, value)) in entries.iter().enumerate() {
        if index > 0 || !inline {
            pad(out, indent);
        }
        key(out, name);
        out.push(':');
        member(out, value, indent, false);
    }
}

fn list(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(out, indent);
        out.push('-');
        member(out, item, indent, true);
    }
}

/// Writes what follows a key's colon or, with `inline`, a list's dash, where a map begins on the same line.
fn member(out: &mut String, value: &Value, indent: usize, inline: bool) {
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            out.push(if inline { ' ' } else { '\n' });
            map(out, inner, indent + 2, inline);
        }
        Value::Array(items) if !is_flow(items) => {
            out.push('\n');
            list(out, items, indent + 2);
        }
        _ => {
            out.push(' ');
            scalar(out, value, indent + 2);
        }
    }
}

/// Whether a list fits on one line: it has no strings and no containers.
fn is_flow(items: &[Value]) -> bool {
    items.iter().all(|item| matches!(item, Value::Null | Value::Bool(_) | Value::Number(_)))
}

/// Writes a value on the current line, or a literal block with its lines at `indent`.
fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) => string(out, text, indent),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&item.to_string());
            }
            out.push_str("]\n");
        }
        other => {
            out.push_str(&other.to_string());
            out.push('\n');
        }
    }
}

fn string(out: &mut String, text: &str, indent: usize) {
    if is_literal(text) {
        literal(out, text, indent);
        return;
    }
    if text.contains(['"', '\\']) && !text.contains('\n') && !text.contains('\t') && !text.chars().any(must_escape) {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
    } else {
        double_quoted(out, text);
    }
    out.push('\n');
}

/// Whether a text can be a literal block: it has several lines, and unambiguous first and last lines.
fn is_literal(text: &str) -> bool {
    let body = text.trim_end_matches('\n');
    text.contains('\n')
        && !body.is_empty()
        && !text.chars().any(|char| char != '\n' && char != '\t' && must_escape(char))
        && !body.split('\n').any(|line| line.starts_with('\t'))
        && body.split('\n').next().is_some_and(|line| !line.trim().is_empty())
        && body.rsplit('\n').next().is_some_and(|line| !line.trim().is_empty())
}

fn literal(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push('|');
    if body.starts_with(' ') {
        out.push('2');
    }
    match text.len() - body.len() {
        0 => out.push('-'),
        1 => {}
        _ => out.push('+'),
    }
    out.push('\n');
    for line in body.split('\n') {
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
    for _ in 1..(text.len() - body.len()) {
        out.push('\n');
    }
}

fn key(out: &mut String, name: &str) {
    let plain = name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '-')
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
            .iter()
            .any(|word| name.eq_ignore_ascii_case(word));
    if plain {
        out.push_str(name);
    } else {
        double_quoted(out, name);
    }
}

/// Characters that are written as escapes: controls, line separators, and characters that reorder or hide text in a
/// review.
fn must_escape(char: char) -> bool {
    let code = u32::from(char);
    code < 0x20
        || matches!(code,
            0x7f..=0x9f | 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x2069 | 0xfdd0..=0xfdef | 0xfeff
            | 0xfff0..=0xfffb | 0xe0000..=0xe0fff)
        || code & 0xfffe == 0xfffe
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if must_escape(other) => {
                let code = u32::from(other);
                // Writing to memory cannot fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
