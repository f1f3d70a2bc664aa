//! JSON with numbers that neither 64 bits nor a double can hold: longer integers, more digits, magnitudes beyond the range. In a
//! document each stands as an object with one member, its digits as a text, so that it equals no other number and no text;
//! [`write()`] makes a number of it again, also of such an object that was in the JSON.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value, json};
use std::borrow::Cow;

/// The member that holds a number as it is written.
const NUMBER: &str = "$ragcheck-number";
/// Significant digits that tell any two doubles apart.
const DIGITS: usize = 17;

/// Reads JSON; numbers that neither 64 bits nor a double can hold are kept.
///
/// # Errors
/// What is wrong with the text as written.
pub(crate) fn read(text: &[u8]) -> serde_json::Result<Value> {
    let read = serde_json::from_slice(text);
    let of_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    if read.is_ok() && !text.split(|byte| !of_number(byte)).any(|run| run.len() > DIGITS) {
        return read;
    }
    serde_json::from_slice(&marked(text, is_beyond)).or(read)
}

/// The text of JSON in which each number that would be written otherwise is kept: a document of it is handed on as it came.
pub(crate) fn as_written(text: &[u8]) -> Vec<u8> {
    let is_spelled = |number: &str| serde_json::from_str(number).is_ok_and(|read: Number| read.to_string() == number);
    marked(text, |number| !is_spelled(number))
}

/// Writes a document, with the numbers that it keeps as numbers.
pub(crate) fn write(document: &Value) -> String {
    serde_json::to_string(&Written(document)).unwrap_or_else(|_| document.to_string())
}

/// The digits of a number, kept or not.
pub(crate) fn digits(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        other => kept(other).map(Cow::Borrowed),
    }
}

/// The number that is written so, kept where it must be.
pub(crate) fn number(text: &str) -> Option<Value> {
    let is_kept = is_number(text) && is_beyond(text);
    if is_kept { Some(json!({ NUMBER: text })) } else { text.parse().ok().map(Value::Number) }
}

/// A document with the nearest number in place of each that it keeps, or with its digits where there is none.
pub(crate) fn nearest(document: &Value) -> Cow<'_, Value> {
    if keeps_any(document) { Cow::Owned(replaced(document)) } else { Cow::Borrowed(document) }
}

fn keeps_any(document: &Value) -> bool {
    match document {
        Value::Array(items) => items.iter().any(keeps_any),
        Value::Object(members) => kept(document).is_some() || members.values().any(keeps_any),
        _ => false,
    }
}

fn replaced(document: &Value) -> Value {
    match document {
        Value::Array(items) => items.iter().map(replaced).collect(),
        Value::Object(members) => match kept(document) {
            Some(number) => number.parse().map_or_else(|_| Value::String(number.to_owned()), Value::Number),
            None => members.iter().map(|(name, value)| (name.clone(), replaced(value))).collect(),
        },
        other => other.clone(),
    }
}

/// The number that an object keeps; `None` for any other value.
fn kept(value: &Value) -> Option<&str> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let number = members.get(NUMBER)?.as_str()?;
    is_number(number).then_some(number)
}

fn is_number(text: &str) -> bool {
    text.starts_with(|letter: char| letter == '-' || letter.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get() == text)
}

/// Whether neither 64 bits nor a double can hold a number with its digits.
fn is_beyond(number: &str) -> bool {
    let integer = number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    if integer {
        return number.parse::<u64>().is_err() && number.parse::<i64>().is_err();
    }
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let significant = digits.trim_matches('0').len();
    let read = number.parse::<f64>().unwrap_or(f64::INFINITY);
    significant > DIGITS || read.is_infinite()
}

/// The text with each number outside of strings that `is_kept` as an object.
fn marked(text: &[u8], is_kept: impl Fn(&str) -> bool) -> Vec<u8> {
    let (mut out, mut rest, mut quoted) = (Vec::with_capacity(text.len()), text, false);
    let of_number = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    while let Some(byte) = rest.first() {
        let length = match byte {
            b'\\' if quoted => 2,
            b'-' | b'0'..=b'9' if !quoted => rest.iter().take_while(of_number).count(),
            _ => 1,
        };
        quoted ^= *byte == b'"';
        let (token, after) = rest.split_at(length.min(rest.len()));
        let number = std::str::from_utf8(token).ok().filter(|token| !quoted && is_number(token) && is_kept(token));
        match number {
            Some(number) => out.extend(json!({ NUMBER: number }).to_string().into_bytes()),
            None => out.extend_from_slice(token),
        }
        rest = after;
    }
    out
}

/// A document as [`write()`] writes it.
struct Written<'d>(&'d Value);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(Written)),
            Value::Object(members) => match kept(self.0) {
                Some(number) => {
                    let raw = RawValue::from_string(number.to_owned()).map_err(serde::ser::Error::custom)?;
                    raw.serialize(serializer)
                }
                None => serializer.collect_map(members.iter().map(|(name, value)| (name, Written(value)))),
            },
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_that_no_number_here_holds_are_kept_and_others_are_read() {
        let kept = |number: &str| json!({ NUMBER: number });
        for (text, document) in [
            (r#"{"id":89014103211118510720}"#, json!({"id": kept("89014103211118510720")})),
            ("[-9223372036854775809,18446744073709551615]", json!([kept("-9223372036854775809"), u64::MAX])),
            (
                r#"{"a\\":"\"89014103211118510720","b":[1.0000000000000000000e3,1]}"#,
                json!({"a\\": "\"89014103211118510720", "b": [1e3, 1]}),
            ),
            (r#"{"id":7}"#, json!({"id": 7})),
            ("[1e400,-1E+400,1e-400]", json!([kept("1e400"), kept("-1E+400"), 0.0])),
            ("[12345678901234567.1,0.10000000000000001]", json!([kept("12345678901234567.1"), 0.1])),
            ("[0.000000000000000000001,0.000,-0.0]", json!([1e-21, 0.0, -0.0])),
            ("100000000000000000000000", kept("100000000000000000000000")),
        ] {
            let read = read(text.as_bytes()).expect(text);
            assert_eq!(read, document, "{text}");
            assert_eq!(super::read(write(&read).as_bytes()).expect(text), document, "{text}");
        }
        for text in [r#"{"id":89014103211118510720,}"#, "01234567890123456789", "1e", "-", "1e400.5"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_document_is_written_as_it_came_and_an_object_of_somebody_else_stays() {
        for text in [
            r#"{"big":123456789012345678901234567890,"neg":-9223372036854775809,"n":1.50}"#,
            r#"{"a":[1e5,1E5,-0,-0.0,1e400,0.10,7,18446744073709551615],"1.50":"1.50 \" 1.50"}"#,
            r#"{"$ragcheck-number":"x"}"#,
            r#"{"$ragcheck-number":"1.50","b":1}"#,
            r#"{"$number":"1.50"}"#,
        ] {
            let document: Value = serde_json::from_slice(&as_written(text.as_bytes())).expect(text);
            assert_eq!(write(&document), text);
        }
        let document = read(br#"{"a":[123456789012345678901234567890,1e400]}"#).expect("JSON");
        assert_eq!(*nearest(&document), json!({"a": [123_456_789_012_345_678_901_234_567_890_f64, "1e400"]}));
    }

    #[test]
    fn a_number_has_its_digits_whether_it_is_kept_or_not() {
        for text in ["7", "89014103211118510720", "1e400", "-12"] {
            let number = number(text).expect(text);
            assert_eq!((digits(&number).as_deref(), write(&number).as_str()), (Some(text), text));
        }
        assert_eq!((number("x"), number("\"7\""), digits(&json!("7"))), (None, None, None));
    }

    proptest! {
        #[test]
        fn what_numbers_hold_is_read_as_ever(number: f64, integer: i64) {
            let text = json!([number, integer, {"a": number}]).to_string();
            prop_assert_eq!(read(text.as_bytes()).ok(), serde_json::from_str::<Value>(&text).ok());
        }
    }
}
