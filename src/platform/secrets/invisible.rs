//! Invisible characters: a key with one of them inside looks like the key, and becomes it again once a program drops
//! them.
//!
//! The search runs on the text without them; matches are returned as spans of the original text, including the
//! invisible characters. They are recognised plain and escaped: `\u200b`, `&#8203;`, `&ZeroWidthSpace;`, `%E2%80%8B`.

use regex::Regex;
use std::fmt::Write;
use std::ops::{Range, RangeInclusive};
use std::sync::LazyLock;

/// Control characters except tab and line ends; characters that a program may render as nothing
/// (`Default_Ignorable_Code_Point`, <https://www.unicode.org/Public/UCD/latest/ucd/DerivedCoreProperties.txt>); the
/// annotation characters; and the replacement character.
const RANGES: [RangeInclusive<u32>; 19] = [
    0x00..=0x08,
    0x0b..=0x0c,
    0x0e..=0x1f,
    0x7f..=0x9f,
    0xad..=0xad,
    0x34f..=0x34f,
    0x61c..=0x61c,
    0x115f..=0x1160,
    0x17b4..=0x17b5,
    0x180b..=0x180f,
    0x200b..=0x200f,
    0x2028..=0x202e,
    0x2060..=0x206f,
    0x3164..=0x3164,
    0xfe00..=0xfe0f,
    0xfeff..=0xfeff,
    0xffa0..=0xffa0,
    0xfff0..=0xffff,
    0xe0000..=0xe0fff,
];
/// HTML names of some of them.
const NAMED: &str = "shy|ZeroWidthSpace|zwnj|zwj|lrm|rlm|NoBreak|af|ApplyFunction|it|InvisibleTimes|ic|InvisibleComma";

/// How a character reference by name begins that the pattern may match, the `&` of an escaped one included.
const REFERENCES: [&str; 11] =
    ["amp;", "shy;", "ZeroWidth", "zw", "lrm;", "rlm;", "NoBreak;", "af;", "Apply", "Invisible", "i"];

static INVISIBLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&pattern()).ok());

/// Pattern of one or more invisible characters, each in any escape.
fn pattern() -> String {
    let mut plain = String::new();
    for range in &RANGES {
        // Writing to memory cannot fail.
        let _ = write!(plain, "\\x{{{:x}}}-\\x{{{:x}}}", range.start(), range.end());
    }
    // An escape names one character: a pattern covers the larger ranges, the others are listed.
    let codes = || RANGES.iter().filter(|range| *range.end() < 0xe0000).flat_map(Clone::clone);
    let hex = codes().map(|code| format!("{code:x}")).collect::<Vec<_>>().join("|");
    let units = codes().map(|code| format!("{code:04x}")).collect::<Vec<_>>().join("|");
    let decimal = codes().map(|code| code.to_string()).collect::<Vec<_>>().join("|");
    // Only control characters are a single byte in UTF-8.
    let percent = |code: u32| {
        let letter = char::from_u32(code).unwrap_or_default().to_string();
        letter.bytes().fold(String::new(), |told, byte| told + &format!("%(?:25){{0,4}}{byte:02x}"))
    };
    let percent = codes().map(percent).collect::<Vec<_>>().join("|");
    format!(
        "(?:[{plain}]|\\\\{{1,8}}u(?i:{units}|db40\\\\{{1,8}}ud[cd][0-9a-f]{{2}})\
         |\\\\{{1,8}}u\\{{0{{0,6}}(?i:{hex}|e0[0-9a-f]{{3}})\\}}\
         |&(?:amp;){{0,4}}(?:#0{{0,6}}(?:{decimal});|#[xX]0{{0,6}}(?i:{hex});|(?:{NAMED});)|(?i:{percent}))+"
    )
}

/// Bytes that may begin an invisible character or its escape.
const SUSPICIOUS: [bool; 256] = {
    let mut suspicious = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        suspicious[byte] = !matches!(byte, 0x09 | 0x0a | 0x0d);
        byte += 1;
    }
    // The last ones are the first bytes of the ranges in UTF-8.
    let others = [b'\\', b'%', b'&', 0x7f, 0xc2, 0xcd, 0xd8, 0xe1, 0xe2, 0xe3, 0xef, 0xf3];
    let mut next = 0;
    while next < others.len() {
        suspicious[others[next] as usize] = true;
        next += 1;
    }
    suspicious
};

/// Whether a text may hold an invisible character, as it is or escaped. Most texts hold none, and the pattern is slow.
fn may_be_in(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at).copied() {
        at += 1;
        if !SUSPICIOUS[usize::from(byte)] {
            continue;
        }
        let next = bytes.get(at).copied().unwrap_or_default();
        let found = match byte {
            b'\\' => matches!(next, b'u' | b'\\'),
            b'%' => next.is_ascii_hexdigit(),
            b'&' => next == b'#' || REFERENCES.iter().any(|name| text[at..].starts_with(name)),
            _ => {
                let letter = text[at - 1..].chars().next().map_or(0, u32::from);
                RANGES.iter().any(|range| range.contains(&letter))
            }
        };
        if found {
            return true;
        }
    }
    false
}

/// Whether a text holds an invisible character in any escape.
pub(super) fn is_in(text: &str) -> bool {
    may_be_in(text) && INVISIBLE.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// A text without its invisible characters, and the original positions of its parts.
#[derive(Debug)]
pub(super) struct Visible {
    pub text: String,
    /// Positions in `text` before which something was removed, with the total bytes removed up to there.
    left_out: Vec<(usize, usize)>,
}

impl Visible {
    /// Removes the invisible characters; `None` if there are none.
    pub(super) fn of(text: &str) -> Option<Self> {
        let pattern = INVISIBLE.as_ref().filter(|_| may_be_in(text))?;
        let mut visible = Self { text: String::new(), left_out: Vec::new() };
        let (mut rest, mut bytes) = (0, 0);
        for found in pattern.find_iter(text) {
            visible.text.push_str(&text[rest..found.start()]);
            bytes += found.len();
            visible.left_out.push((visible.text.len(), bytes));
            rest = found.end();
        }
        if bytes == 0 {
            return None;
        }
        visible.text.push_str(&text[rest..]);
        Some(visible)
    }

    /// Span in the original text, with the invisible characters inside it and none around it.
    pub(super) fn original(&self, place: &Range<usize>) -> Range<usize> {
        let before = |end: usize| {
            let many = self.left_out.partition_point(|(at, _)| *at < end);
            many.checked_sub(1).and_then(|last| self.left_out.get(last)).map_or(0, |(_, bytes)| *bytes)
        };
        let (start, end) = (place.start + before(place.start + 1), place.end + before(place.end));
        start..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Redactor;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_span_of_the_visible_text_is_the_one_of_the_original_with_what_is_inside_and_nothing_around() {
        let text = "a\u{200b}\u{200b}key\u{ad}s\u{feff} b";
        let visible = Visible::of(text).expect("there are some");
        assert_eq!(visible.text, "akeys b");
        assert_eq!(&text[visible.original(&(1..5))], "key\u{ad}s");
        assert_eq!(&text[visible.original(&(0..1))], "a");
        assert_eq!(&text[visible.original(&(5..7))], " b");
        assert!(Visible::of("plain & 100% \\u0041 grün\n").is_none());
    }

    #[test]
    fn invisible_characters_are_ignored_as_they_are_and_in_every_escape_and_the_original_span_is_redacted() {
        let redactor = Redactor::new([("SERVICE_KEY".to_owned(), "pass/word+1234".to_owned())]);
        for between in [
            "\u{200b}", "\u{ad}", "\u{feff}\u{200d}", "\u{2060}", "\u{e0041}", "\u{fe0f}", "\u{7}", "\u{202e}",
            "\\u200b", "\\\\u200B", "\\u00ad", "\\u{200b}", "&#8203;", "&#x200B;", "&amp;#8203;", "&ZeroWidthSpace;",
            "&shy;", "%E2%80%8B", "%e2%80%8b", "%C2%AD", "%25E2%2580%258B", "\\u0007", "\\udb40\\udc41",
        ] {
            let known = format!("it is pass/wo{between}rd+1234 here");
            assert_eq!(redactor.redact(&known), "it is [redacted:SERVICE_KEY] here", "{between:?}");
            let looks = format!("it is sk-abcdef{between}ghijklmnop1234, here");
            assert_eq!(redactor.redact(&looks), "it is [redacted:openai], here", "{between:?}");
            let body = json!({"a": [looks], "b": known}).to_string();
            let clean = redactor.redact_body(body.as_bytes()).map(|body| String::from_utf8(body).expect("UTF-8"));
            let expected = json!({"a": ["it is [redacted:openai], here"], "b": "it is [redacted:SERVICE_KEY] here"});
            assert_eq!(clean, Some(expected.to_string()), "{between:?}");
        }
    }

    #[test]
    fn every_invisible_character_is_found_and_no_other() {
        for code in (0..=0x0010_ffff).filter_map(char::from_u32).map(u32::from) {
            let letter = char::from_u32(code).expect("a character");
            let invisible = RANGES.iter().any(|range| range.contains(&code));
            assert_eq!(may_be_in(&format!("a{letter}.")), invisible, "{code:x}");
        }
    }

    #[test]
    fn a_text_with_invisible_characters_and_no_key_is_left_as_it_is() {
        let redactor = Redactor::new([("SERVICE_KEY".to_owned(), "a1bc".to_owned())]);
        for text in ["grün\u{200b}er 100%", "a1\u{200b}bcde", "family \u{1f468}\u{200d}\u{1f469}", "\u{feff}x"] {
            assert_eq!(redactor.redact(text), text);
        }
        // A short key between them counts as a separate word too.
        assert_eq!(redactor.redact("x \u{200b}a1bc\u{200b}, y"), "x \u{200b}[redacted:SERVICE_KEY]\u{200b}, y");
    }
}
