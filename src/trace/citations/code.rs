//! Finds code in a text, which cites nothing: fenced and inline code, JSON objects and nested lists, an index after a
//! name (`a[9]`), a list assigned to a name (`x = [1, 9]`, `ports: [1, 9]`) or passed to a function.
//!
//! An inline code span that contains only an address is kept: people format addresses that way.

use super::{NOUNS, addresses};
use crate::trace::markers::code;
use serde_json::Value;
use std::ops::Range;

/// Words that precede an index in code but not in sentences.
const NAMES: &[&str] = &[
    "arg", "args", "argv", "arr", "array", "buf", "cfg", "dict", "env", "idx", "int", "obj", "param", "params", "ptr",
    "str", "tmp", "tuple", "val", "vals", "var", "vec",
];

/// The text with a space in place of every byte of code.
pub(super) fn without_code(text: &str) -> String {
    let mut plain = text.as_bytes().to_vec();
    for range in code(text).into_iter().filter(|range| !is_address(&text[range.clone()])) {
        plain[range].fill(b' ');
    }
    // Whole characters were blanked, so this is a text again.
    let mut plain = String::from_utf8(plain).unwrap_or_default();
    for range in json(&plain) {
        plain.replace_range(range.clone(), &" ".repeat(range.len()));
    }
    plain
}

fn is_address(code: &str) -> bool {
    let inside = code.trim_matches(['`', ' ']);
    addresses(inside).first().is_some_and(|address| address == inside)
}

/// JSON objects, and lists of several lists.
fn json(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find(['{', '[']).map(|at| from + at) {
        from = open + 1;
        let next = text[from..].trim_start().chars().next();
        let begins = if text[open..].starts_with('{') { matches!(next, Some('"' | '}')) } else { next == Some('[') };
        if !begins {
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(&text[open..]).into_iter::<Value>();
        let is_code = match values.next() {
            Some(Ok(Value::Object(_))) => true,
            Some(Ok(Value::Array(items))) => items.len() > 1 && items.iter().all(Value::is_array),
            _ => false,
        };
        if is_code {
            from = open + values.byte_offset();
            found.push(open..from);
        }
    }
    found
}

/// Whether the brackets between these two parts of a text are code; `numbers` stand in them.
pub(super) fn is_index_or_list(before: &str, numbers: &[usize], after: &str) -> bool {
    // Sources are counted from 1: a list with a 0 is one of something else.
    if numbers.len() > 1 && numbers.contains(&0) {
        return true;
    }
    if before.ends_with(|letter: char| letter.is_alphanumeric() || "_)".contains(letter)) {
        return is_index(before, numbers, after);
    }
    if let Some(index) = before.strip_suffix(']') {
        // Of `x[1][2]` the second is an index where the first is one; of `so[1][2]` both cite.
        let open = index.rfind('[').unwrap_or_default();
        let first: Option<Vec<usize>> = super::numbers(index[open..].trim_start_matches('['));
        return first.is_some_and(|first| is_index_or_list(&before[..open], &first, ""));
    }
    let given = before.trim_end_matches([' ', '\t']);
    if given.ends_with('=') {
        return true;
    }
    if let Some(key) = given.strip_suffix(':') {
        let word = key.rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
        return key.ends_with(['"', '\'']) || (numbers.len() > 1 && !NOUNS.contains(&word.as_str()));
    }
    let argument =
        before.strip_suffix('(').is_some_and(|name| name.ends_with(|one: char| one.is_alphanumeric() || one == '_'));
    argument && numbers.len() > 1
}

/// Whether a number directly behind a word is an index: `a[9]`, `row_ids[9]`, `f(x)[9]`, `items[9] = 2`.
fn is_index(before: &str, numbers: &[usize], after: &str) -> bool {
    let rest = after.trim_start_matches(' ');
    let assigned = rest.starts_with("= ") || rest.starts_with("==") || rest.starts_with("+=");
    let accessed =
        after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|one: char| one.is_lowercase() || one == '_'));
    if numbers.contains(&0) || assigned || accessed {
        return true;
    }
    if before.ends_with(')') {
        // A sentence has a space before its parenthesis; a call has none.
        let open = before.rfind('(');
        return open.is_some_and(|open| before[..open].ends_with(|one: char| one.is_alphanumeric() || one == '_'));
    }
    let word = before.rsplit(|one: char| !one.is_alphanumeric() && !"_.$".contains(one)).next().unwrap_or_default();
    let word = word.trim_start_matches('.');
    let letters = word.chars().count();
    let camel = word.chars().zip(word.chars().skip(1)).any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    let single = letters == 1 && word.chars().all(|one| one.is_ascii_alphabetic());
    single || camel || word.contains(['_', '.', '$']) || NAMES.contains(&word)
}
