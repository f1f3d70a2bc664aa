//! Spellings of a secret value in a text.
//!
//! Plain, hex and base64 spellings are searched as literals. Spellings character by character (JSON and HTML escapes,
//! percent-encoding, mixed or nested) are matched by one pattern with alternatives for each character.

use crate::platform::lock::lock;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::{Regex, RegexBuilder};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Shorter spellings match only as separate words.
const SHORT: usize = 8;
/// Maximum bytes of a compiled pattern; the longest piece needs less than one MiB.
const PATTERN_LIMIT: usize = 64 << 20;

/// Cache of compiled spellings by value: every request has the same few keys.
static COMPILED: Mutex<BTreeMap<String, Arc<Spellings>>> = Mutex::new(BTreeMap::new());

/// The compiled spellings of one value.
#[derive(Debug)]
pub(super) struct Spellings {
    literal: Option<Regex>,
    escaped: Option<Regex>,
}

impl Spellings {
    /// Spellings of a non-empty value.
    pub(super) fn of(value: &str) -> Arc<Self> {
        let mut compiled = lock(&COMPILED);
        let known = compiled.entry(value.to_owned()).or_insert_with(|| Arc::new(Self::compile(value)));
        Arc::clone(known)
    }

    fn compile(value: &str) -> Self {
        let mut literal = literals(value).iter().map(|form| regex::escape(form)).collect::<Vec<_>>().join("|");
        let hex = hex::encode(value);
        if hex.len() >= shortest(value) {
            let _ = write!(literal, "|(?i:{hex})");
        }
        let escaped: String =
            value.chars().enumerate().map(|(place, letter)| alternatives(letter, place == 0)).collect();
        let compile = |pattern: &str| RegexBuilder::new(pattern).size_limit(PATTERN_LIMIT).build().ok();
        Self { literal: compile(&literal), escaped: compile(&escaped) }
    }

    /// Positions of the value in any spelling; positions of two spellings may overlap.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let escapes = text.bytes().any(|byte| matches!(byte, b'\\' | b'%' | b'&' | b'+'));
        for pattern in [Some(&self.literal), escapes.then_some(&self.escaped)].into_iter().flatten().flatten() {
            let mut start = 0;
            while let Some(place) = pattern.find_at(text, start) {
                if place.len() >= SHORT || stands_alone(text, &place.range()) {
                    found.push(place.range());
                    start = place.end();
                } else {
                    start = place.start() + text[place.start()..].chars().next().map_or(1, char::len_utf8);
                }
            }
        }
        found
    }

    /// Whether the value occurs in the text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }
}

/// Whether no letter or digit touches the match, also not through the `_` or `-` of a longer name; a preceding escape
/// does not count.
fn stands_alone(text: &str, place: &Range<usize>) -> bool {
    const JOINS: [char; 2] = ['_', '-'];
    let behind = text[place.end..].trim_start_matches(JOINS);
    let before = text[..place.start].trim_end_matches(JOINS);
    let touches = before.chars().next_back().is_some_and(char::is_alphanumeric);
    behind.chars().next().is_none_or(|next| !next.is_alphanumeric()) && (!touches || ends_with_escape(before))
}

fn ends_with_escape(before: &str) -> bool {
    let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match before.as_bytes() {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        bytes => {
            let tail = |count: usize| bytes.len().checked_sub(count).map(|start| &bytes[start..]);
            tail(3).is_some_and(|tail| tail[0] == b'%' && hex(&tail[1..]))
                || tail(6).is_some_and(|tail| tail.starts_with(b"\\u") && hex(&tail[2..]))
        }
    }
}

/// Minimum characters of an encoded value: a shorter one may be part of any hash or word.
fn shortest(value: &str) -> usize {
    SHORT.min(value.len() * 2).max(6)
}

/// The value plain, and in base64 once and twice, longest first.
fn literals(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let once = in_base64(value.as_bytes());
    let twice: Vec<String> = once.iter().flat_map(|form| in_base64(form.as_bytes())).collect();
    forms.extend(once);
    forms.extend(twice);
    forms.retain(|form| form.len() >= shortest(value));
    forms.push(value.to_owned());
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    forms.dedup();
    forms
}

/// Base64 digits that depend on the value alone, for each of three offsets and both alphabets. Digits that share bits
/// with a neighbour vary between texts.
fn in_base64(value: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for lead in 0..3 {
        let padded = [vec![0; lead], value.to_vec()].concat();
        let encoded = STANDARD.encode(&padded);
        let own = encoded.get((lead * 8).div_ceil(6)..padded.len() * 8 / 6).unwrap_or_default();
        forms.push(own.to_owned());
        forms.push(own.replace('+', "-").replace('/', "_"));
    }
    forms
}

/// Pattern of one character in any escape.
fn alternatives(letter: char, first: bool) -> String {
    let code = u32::from(letter);
    let mut pattern = String::from("(?:");
    // A backslash before a letter does not escape that letter, and one before the first character may belong to the
    // preceding text.
    let slashes =
        if letter.is_alphanumeric() || (first && !matches!(letter, '"' | '\\' | '/')) { "" } else { r"\\{0,8}" };
    pattern.push_str(slashes);
    pattern.push_str(&regex::escape(&letter.to_string()));
    let control = match letter {
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        _ => None,
    };
    // Writing to memory cannot fail.
    if let Some(control) = control {
        let _ = write!(pattern, r"|\\{{1,8}}{control}");
    }
    pattern.push('|');
    for unit in letter.encode_utf16(&mut [0; 2]) {
        let _ = write!(pattern, r"\\{{1,8}}u(?i:{unit:04x})");
    }
    let _ = write!(pattern, r"|\\{{1,8}}u\{{0{{0,6}}(?i:{code:x})\}}");
    if code < 0x100 {
        let _ = write!(pattern, r"|\\{{1,8}}x(?i:{code:02x})");
    }
    pattern.push('|');
    for byte in letter.to_string().bytes() {
        let _ = write!(pattern, "%(?:25){{0,4}}(?i:{byte:02x})");
    }
    if letter == ' ' {
        pattern.push_str(r"|\+");
    }
    let and = "&(?:amp;){0,4}";
    let _ = write!(pattern, "|{and}#0{{0,6}}{code};?|{and}#[xX]0{{0,6}}(?i:{code:x});?");
    if let Some((_, name)) = NAMED.iter().find(|(named, _)| *named == letter) {
        let _ = write!(pattern, "|{and}{name};");
    }
    pattern.push(')');
    pattern
}

/// HTML names of ASCII characters.
const NAMED: [(char, &str); 32] = [
    ('&', "amp"),
    ('<', "lt"),
    ('>', "gt"),
    ('"', "quot"),
    ('\'', "apos"),
    ('/', "sol"),
    ('+', "plus"),
    ('=', "equals"),
    ('%', "percnt"),
    ('#', "num"),
    ('!', "excl"),
    ('$', "dollar"),
    ('(', "lpar"),
    (')', "rpar"),
    ('*', "ast"),
    (',', "comma"),
    ('.', "period"),
    (':', "colon"),
    (';', "semi"),
    ('?', "quest"),
    ('@', "commat"),
    ('[', "lsqb"),
    ('\\', "bsol"),
    (']', "rsqb"),
    ('^', "Hat"),
    ('_', "lowbar"),
    ('`', "grave"),
    ('{', "lcub"),
    ('|', "verbar"),
    ('}', "rcub"),
    ('\t', "Tab"),
    ('\n', "NewLine"),
];
