//! Reads the JSON that lenient writers produce: numbers that JSON lacks, and halves of surrogate pairs.
//!
//! JavaScript counts UTF-16 units and cuts texts within an emoji, also a stream into its events. RFC 8259 allows such a
//! half as an escape, and the clients of other languages read it.

use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// The second half of a pair at the beginning of a text.
static FIRST_IN_TEXT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:^|[^\\])"(\\u[dD][c-fC-F][0-9a-fA-F]{2})"#).ok());
/// The first half of a pair at the end of a text.
static LAST_IN_TEXT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"[^\\](\\u[dD][89abAB][0-9a-fA-F]{2})""#).ok());

/// The value of a text, with U+FFFD for each half of a surrogate pair without the other half.
///
/// # Errors
/// What is wrong with the text as written.
pub(crate) fn read(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|why| match without_halves(text) {
        (_, 0) => Err(why),
        (clean, _) => serde_json::from_slice(&clean).map_err(|_| why),
    })
}

/// The value of the next event of a stream, like [`read`]. A half at the end of its text is held back in `half` and put
/// before the other one, if the next event begins with that.
///
/// # Errors
/// What is wrong with the text as written.
pub(crate) fn read_next(text: &str, half: &mut Option<String>) -> serde_json::Result<Value> {
    let before = half.take();
    serde_json::from_str(text).or_else(|why| {
        let place = |half: Option<&Regex>, text: &str| Some(half?.captures(text)?.get(1)?.range());
        let mut text = text.to_owned();
        if let (Some(before), Some(at)) = (before, place(FIRST_IN_TEXT.as_ref(), &text)) {
            text.insert_str(at.start, &before);
        }
        let last = place(LAST_IN_TEXT.as_ref(), &text).map(|at| text.drain(at).collect());
        let value = read(text.as_bytes()).map_err(|_| why)?;
        *half = last;
        Ok(value)
    })
}

/// The text with `null` for `NaN`, which is no figure, and a number beyond every limit for `Infinity` and `-Infinity`, outside
/// of strings; `None` if there are none.
pub(crate) fn without_nan(text: &[u8]) -> Option<Vec<u8>> {
    const NUMBERS: [(&[u8], &[u8]); 3] = [(b"-Infinity", b"-1e308"), (b"Infinity", b"1e308"), (b"NaN", b"null")];
    let (mut out, mut rest, mut quoted) = (Vec::with_capacity(text.len()), text, false);
    while let Some(first) = rest.first() {
        let number = NUMBERS.iter().find(|(number, _)| !quoted && rest.starts_with(number));
        let taken = match (number, first) {
            (Some((number, _)), _) => number.len(),
            (None, b'\\') => rest.len().min(2),
            (None, _) => 1,
        };
        quoted ^= *first == b'"';
        out.extend_from_slice(number.map_or(&rest[..taken], |(_, read_as)| read_as));
        rest = &rest[taken..];
    }
    (out != text).then_some(out)
}

/// Bytes of the escape of half a pair, `\ud83d`.
const ESCAPE: usize = 6;

/// The text with U+FFFD for each half of a surrogate pair without the other half, and their number; Python and JavaScript
/// write such a half of a text that was cut within an emoji.
fn without_halves(text: &[u8]) -> (Vec<u8>, usize) {
    let half = |at: usize| {
        let escape = text.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
        let value = u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()?;
        (0xd800..0xe000).contains(&value).then_some(value)
    };
    let (mut out, mut at, mut halves) = (Vec::with_capacity(text.len()), 0, 0);
    while at < text.len() {
        let is_pair = || half(at + ESCAPE).is_some_and(|other| other >= 0xdc00);
        let taken = match half(at) {
            Some(first) if first < 0xdc00 && is_pair() => 2 * ESCAPE,
            Some(_) => {
                halves += 1;
                out.extend_from_slice(b"\\ufffd");
                at += ESCAPE;
                continue;
            }
            None if text[at] == b'\\' => 2.min(text.len() - at),
            None => 1,
        };
        out.extend_from_slice(&text[at..at + taken]);
        at += taken;
    }
    (out, halves)
}

/// The text without both, and the number of halves; `None` if it has neither.
pub(crate) fn repaired(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let numbers = without_nan(text);
    let (clean, halves) = without_halves(numbers.as_deref().unwrap_or(text));
    (numbers.is_some() || halves > 0).then_some((clean, halves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_that_two_events_share_is_joined_and_half_of_one_is_replaced() {
        let read_all = |events: &[&str]| {
            let mut half = None;
            let texts = events.iter().map(|event| read_next(event, &mut half).expect(event)["text"].clone());
            texts.map(|text| text.as_str().expect("a text").to_owned()).collect::<String>()
        };
        assert_eq!(read_all(&[r#"{"text":"a \ud83d"}"#, r#"{"text":"\udeb2 b"}"#]), "a 🚲 b");
        assert_eq!(read_all(&[r#"{"text":"\uD83D\uDEB2\uD83D"}"#, r#"{"text":"\uDEB2"}"#]), "🚲🚲");
        assert_eq!(read_all(&[r#"{"text":"a\ud83db"}"#, r#"{"text":"\udeb2"}"#]), "a\u{fffd}b\u{fffd}");
        assert_eq!(read_all(&[r#"{"text":"a\ud83d"}"#, r#"{"text":"b"}"#, r#"{"text":"\udeb2"}"#]), "ab\u{fffd}");
        assert_eq!(read(br#"{"text":"a\ud83d"}"#).expect("JSON")["text"], "a\u{fffd}");
        let mut half = None;
        assert!(read_next(r#"{"text":"a\ud83d""#, &mut half).is_err() && half.is_none(), "a line that was cut off");
    }

    #[test]
    fn numbers_and_halves_of_letters_are_replaced_and_all_else_stays() {
        for (text, clean, halves) in [
            (r#"{"a": NaN}"#, r#"{"a": null}"#, 0),
            (r#"{"a": "cut \ud83d"}"#, r#"{"a": "cut \ufffd"}"#, 1),
            (r#"["\ude00\ud83d\ude00\ud83d\n"]"#, r#"["\ufffd\ud83d\ude00\ufffd\n"]"#, 2),
            (r#"["\ud83d", -Infinity, Infinity]"#, r#"["\ufffd", -1e308, 1e308]"#, 1),
        ] {
            assert_eq!(repaired(text.as_bytes()), Some((clean.into(), halves)), "{text}");
        }
        for text in [r#"{"a": "NaN \ud83d\ude00 \\ud83d"}"#, r#""\u00e9 \u12"#, "\\"] {
            assert_eq!(repaired(text.as_bytes()), None, "{text}");
        }
    }
}
