//! Bodies that are not JSON, as requests to declared services may have: they are kept in a JSON document, which
//! recordings hold and requests are compared by.
//!
//! The boundary of a multipart body differs in every request. It is replaced by a fixed one, in what is sent, too.

use crate::platform::secrets::BYTES;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Digits of the longest integers that a number here holds; not all of that length do.
const LONGEST_INTEGER: usize = 19;
/// Member of a body that is text.
const TEXT: &str = "$text";
/// The boundary of every multipart body.
const BOUNDARY: &str = "ragcheck-boundary";

/// The document that stands for a body; null for none. `content_type` gets the fixed boundary.
pub(crate) fn packed(body: &[u8], content_type: &mut Option<String>) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    if let Ok(document) = read(body) {
        return document;
    }
    let body = with_fixed_boundary(body, content_type);
    match String::from_utf8(body) {
        Ok(text) => json!({ TEXT: text }),
        Err(bytes) => json!({ BYTES: STANDARD.encode(bytes.as_bytes()) }),
    }
}

/// A JSON document in which an integer that no number here holds is a text of its digits, so that two of them differ.
pub(crate) fn read(body: &[u8]) -> serde_json::Result<Value> {
    let is_long = |run: &[u8]| run.len() >= LONGEST_INTEGER;
    if !body.split(|byte| !byte.is_ascii_digit()).any(is_long) {
        return serde_json::from_slice(body);
    }
    let (mut exact, mut rest, mut in_text) = (Vec::with_capacity(body.len() + 2), body, false);
    while let Some(byte) = rest.first() {
        let of_number = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let length = match byte {
            b'\\' if in_text => 2,
            b'-' | b'0'..=b'9' if !in_text => rest.iter().take_while(of_number).count(),
            _ => 1,
        };
        in_text ^= *byte == b'"';
        let (token, after) = rest.split_at(length.min(rest.len()));
        let text = std::str::from_utf8(token).unwrap_or_default();
        let is_integer = !text.trim_start_matches('-').starts_with('0')
            && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
        if !in_text && is_integer && text.parse::<u64>().is_err() && text.parse::<i64>().is_err() {
            exact.extend([b"\"", token, b"\""].concat());
        } else {
            exact.extend_from_slice(token);
        }
        rest = after;
    }
    serde_json::from_slice(&exact)
}

/// The bytes that a document stands for.
pub(crate) fn unpacked(document: &Value) -> Vec<u8> {
    let only = document.as_object().filter(|members| members.len() == 1);
    let member = |name: &str| only?.get(name)?.as_str();
    if let Some(text) = member(TEXT) {
        return text.as_bytes().to_vec();
    }
    member(BYTES).and_then(|text| STANDARD.decode(text).ok()).unwrap_or_else(|| document.to_string().into_bytes())
}

/// Whether headers say that a body is a form.
pub(super) fn is_form(headers: &[(String, String)]) -> bool {
    let says = |value: &str| value.trim_start().to_ascii_lowercase().starts_with("application/x-www-form-urlencoded");
    headers.iter().any(|(name, value)| name == "content-type" && says(value))
}

/// The members of a body as the fields of a form; what is no text stands there as JSON.
pub(super) fn form(body: &Value) -> Vec<u8> {
    let Ok(mut url) = reqwest::Url::parse("http://form/") else { return Vec::new() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    url.query_pairs_mut().extend_pairs(body.as_object().into_iter().flatten().map(|(name, value)| (name, text(value))));
    url.query().unwrap_or_default().as_bytes().to_vec()
}

fn with_fixed_boundary(body: &[u8], content_type: &mut Option<String>) -> Vec<u8> {
    let Some(kind) = content_type.as_mut().filter(|kind| kind.starts_with("multipart/")) else { return body.to_vec() };
    let Some((before, after)) = kind.split_once("boundary=") else { return body.to_vec() };
    let own = after.split(';').next().unwrap_or_default().trim().trim_matches('"').to_owned();
    if own.is_empty() {
        return body.to_vec();
    }
    *kind = format!("{before}boundary={BOUNDARY}");
    let (mut out, mut rest) = (Vec::with_capacity(body.len()), body);
    while let Some(at) = memchr::memmem::find(rest, own.as_bytes()) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(BOUNDARY.as_bytes());
        rest = &rest[at + own.len()..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_multipart_bodies_that_differ_in_their_boundary_are_one_request() {
        let body =
            |boundary: &str| format!("--{boundary}\r\nContent-Disposition: form-data\r\n\r\nx\r\n--{boundary}--\r\n");
        let packed = |boundary: &str| {
            let mut kind = Some(format!("multipart/form-data; boundary={boundary}"));
            (packed(body(boundary).as_bytes(), &mut kind), kind)
        };
        assert_eq!(packed("a1b2"), packed("----WebKitFormBoundary7MA4"));
        assert_eq!(unpacked(&packed("a1b2").0), body(BOUNDARY).into_bytes());
    }

    #[test]
    fn integers_of_any_length_are_compared_by_their_digits() {
        for (body, document) in [
            (r#"{"id":89014103211118510720}"#, json!({"id": "89014103211118510720"})),
            ("[-89014103211118510720,18446744073709551615]", json!(["-89014103211118510720", u64::MAX])),
            (
                r#"{"a\\":"\"89014103211118510720","b":[1.0000000000000000000e3,1]}"#,
                json!({"a\\": "\"89014103211118510720", "b": [1e3, 1]}),
            ),
            (r#"{"id":7}"#, json!({"id": 7})),
        ] {
            assert_eq!(read(body.as_bytes()).expect(body), document, "{body}");
        }
        assert!(read(br#"{"id":89014103211118510720,}"#).is_err());
    }

    proptest! {
        #[test]
        fn a_body_without_boundary_is_sent_as_it_came(body: Vec<u8>) {
            let document = packed(&body, &mut None);
            if serde_json::from_slice::<Value>(&body).is_err() && !body.is_empty() {
                prop_assert_eq!(unpacked(&document), body);
            }
        }
    }
}
