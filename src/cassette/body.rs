//! Stores bodies as YAML if that is lossless, else as text, and binary bodies as base64.
//!
//! A body is stored as YAML only if printing it again gives the same bytes, compact (`json`) or indented
//! (`json_pretty`). Reviewers can then read its structure, and replay serves the bytes that were received.

use super::base64;
use crate::platform::yaml::{self, Node};
use bytes::Bytes;
use serde_json::Value;

/// Name and value of the member that stores a body.
pub(super) fn encode(body: &[u8]) -> (&'static str, Value) {
    if let Ok(value) = serde_json::from_slice::<Value>(body)
        && (value.is_object() || value.is_array())
        && yaml::fits(&value)
    {
        if serde_json::to_vec(&value).is_ok_and(|bytes| bytes == body) {
            return ("json", value);
        }
        if serde_json::to_vec_pretty(&value).is_ok_and(|bytes| bytes == body) {
            return ("json_pretty", value);
        }
    }
    match std::str::from_utf8(body) {
        Ok(text) => ("text", Value::String(text.to_owned())),
        Err(_) => ("base64", Value::String(base64::encode(body))),
    }
}

/// Bytes that a `response` mapping encodes.
///
/// # Errors
/// The problem, and the node that has it.
pub(super) fn decode<'n>(response: &'n Node<'_>) -> Result<Bytes, (String, &'n Node<'n>)> {
    let not_json = |error: serde_json::Error| (format!("the body is no JSON document: {error}"), response);
    if let Some(node) = response.get("json") {
        serde_json::to_vec(node).map(Bytes::from).map_err(not_json)
    } else if let Some(node) = response.get("json_pretty") {
        serde_json::to_vec_pretty(node).map(Bytes::from).map_err(not_json)
    } else if let Some(node) = response.get("text") {
        let text = node.text().ok_or_else(|| (format!("`text` must be a string, not {}", node.describe()), node))?;
        Ok(Bytes::copy_from_slice(text.as_bytes()))
    } else if let Some(node) = response.get("base64") {
        let bytes = node.text().and_then(base64::decode);
        bytes.map(Bytes::from).ok_or_else(|| ("`base64` must be a string of base64".to_owned(), node))
    } else {
        Err(("the response has no body: expected `json`, `json_pretty`, `text` or `base64`".to_owned(), response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn round_trip(body: &[u8]) -> (String, Bytes, Bytes) {
        let (name, value) = encode(body);
        let text = yaml::write(&json!({ name: value }));
        let strict = yaml::parse_own_style(&text, &[]).expect("our own style");
        let loose = yaml::parse(&text).expect("YAML");
        (name.to_owned(), decode(&strict).expect("a body"), decode(&loose).expect("a body"))
    }

    #[test]
    fn each_kind_of_body_takes_the_most_readable_form_that_is_exact() {
        for (body, form) in [
            (r#"{"a":[1,2.5,{}],"b":"x\ny"}"#.as_bytes(), "json"),
            (b"{\n  \"a\": [],\n  \"b\": 1\n}", "json_pretty"),
            (b"{\"a\": 1}", "text"),
            (b"{\"a\":1}\n", "text"),
            (b"{\"a\":1,\"a\":2}", "text"),
            (b"{\"a\":1e5,\"b\":123456789012345678901234567890}", "text"),
            (b"", "text"),
            (b"data: 1\r\n\r\n", "text"),
            (b"\xff\xfe\x00", "base64"),
        ] {
            let (name, strict, loose) = round_trip(body);
            assert_eq!(name, form, "{}", String::from_utf8_lossy(body));
            assert_eq!(strict, body);
            assert_eq!(loose, body);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(body: Vec<u8>) {
            let (_, strict, loose) = round_trip(&body);
            prop_assert_eq!(&strict, &body);
            prop_assert_eq!(&loose, &body);
        }

        #[test]
        fn any_text_comes_back(body in "([ -~\t\r\n]|---\n|\u{0}|\u{85}|é|  \n){0,40}") {
            let (_, strict, loose) = round_trip(body.as_bytes());
            prop_assert_eq!(&strict, body.as_bytes());
            prop_assert_eq!(&loose, body.as_bytes());
        }
    }
}
