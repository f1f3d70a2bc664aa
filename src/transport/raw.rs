//! Bodies that are not JSON, as requests to declared services may have: they are kept in a JSON document, which
//! recordings hold and requests are compared by.
//!
//! The boundary of a multipart body differs in every request. It is replaced by a fixed one, in what is sent, too.

use crate::platform::secrets::BYTES;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Member of a body that is text.
const TEXT: &str = "$text";
/// The boundary of every multipart body.
const BOUNDARY: &str = "ragcheck-boundary";

/// The document that stands for a body; null for none. `content_type` gets the fixed boundary.
pub(crate) fn packed(body: &[u8], content_type: &mut Option<String>) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    if let Ok(document) = serde_json::from_slice(body) {
        return document;
    }
    let body = with_fixed_boundary(body, content_type);
    match String::from_utf8(body) {
        Ok(text) => json!({ TEXT: text }),
        Err(bytes) => json!({ BYTES: STANDARD.encode(bytes.as_bytes()) }),
    }
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
