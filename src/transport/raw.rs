//! Bodies that are not JSON, as requests to declared services may have: they are kept in a JSON document, which
//! recordings hold and requests are compared by.
//!
//! The boundary of a multipart body differs in every request. In the document, a fixed one stands in its place.

use crate::platform::numbers;
use crate::platform::secrets::BYTES;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::ops::Range;

/// Member of a body that is text.
const TEXT: &str = "$text";
/// The boundary of every multipart body in a document.
const BOUNDARY: &str = "ragcheck-boundary";

/// The document that stands for a body of that type; null for none.
pub(crate) fn packed(body: &[u8], content_type: Option<&str>) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    if let Ok(document) = numbers::read(body) {
        return document;
    }
    let body = match own_boundary(content_type) {
        // A body that has both boundaries would not come back as it was.
        Some(own) if !has_boundary(body, BOUNDARY) => with_boundary(body, own, BOUNDARY),
        _ => body.to_vec(),
    };
    match String::from_utf8(body) {
        Ok(text) => json!({ TEXT: text }),
        Err(bytes) => json!({ BYTES: STANDARD.encode(bytes.as_bytes()) }),
    }
}

/// The bytes that a document stands for, of a body of that type.
pub(crate) fn unpacked(document: &Value, content_type: Option<&str>) -> Vec<u8> {
    let body = unpacked_as_it_is(document);
    match own_boundary(content_type) {
        Some(own) if !has_boundary(&body, own) => with_boundary(&body, BOUNDARY, own),
        _ => body,
    }
}

fn unpacked_as_it_is(document: &Value) -> Vec<u8> {
    let only = document.as_object().filter(|members| members.len() == 1);
    let member = |name: &str| only?.get(name)?.as_str();
    if let Some(text) = member(TEXT) {
        return text.as_bytes().to_vec();
    }
    member(BYTES).and_then(|text| STANDARD.decode(text).ok()).unwrap_or_else(|| numbers::write(document).into_bytes())
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

/// The value of the `content-type` among headers.
pub(crate) fn content_type(headers: &[(String, String)]) -> Option<&str> {
    headers.iter().find(|(name, _)| name == "content-type").map(|(_, kind)| kind.as_str())
}

/// The boundary that the type of a multipart body names.
fn own_boundary(content_type: Option<&str>) -> Option<&str> {
    let kind = content_type?;
    let mut parts = kind.split(';');
    let is_multipart = parts.next()?.trim_start().to_ascii_lowercase().starts_with("multipart/");
    let mut named = parts.filter_map(|part| part.split_once('='));
    let (_, own) = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    Some(own.trim().trim_matches('"')).filter(|own| is_multipart && !own.is_empty())
}

/// The places of a boundary in a body: in lines that hold nothing else than `--`, it, and another `--` at the end.
fn boundaries<'b>(body: &'b [u8], boundary: &'b str) -> impl Iterator<Item = Range<usize>> + 'b {
    let is_end = |rest: &[u8]| {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let end = |rest: &[u8]| matches!(rest.iter().find(|byte| !blank(byte)), None | Some(b'\n'));
        end(rest) || rest.strip_prefix(b"--").is_some_and(end)
    };
    memchr::memmem::find_iter(body, boundary.as_bytes()).map(|at| at..at + boundary.len()).filter(move |place| {
        let line = body[..place.start].strip_suffix(b"--");
        line.is_some_and(|before| before.is_empty() || before.ends_with(b"\n")) && is_end(&body[place.end..])
    })
}

fn has_boundary(body: &[u8], boundary: &str) -> bool {
    boundaries(body, boundary).next().is_some()
}

fn with_boundary(body: &[u8], from: &str, to: &str) -> Vec<u8> {
    let (mut out, mut begin) = (Vec::with_capacity(body.len()), 0);
    for place in boundaries(body, from) {
        out.extend_from_slice(&body[begin..place.start]);
        out.extend_from_slice(to.as_bytes());
        begin = place.end;
    }
    out.extend_from_slice(&body[begin..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_multipart_bodies_that_differ_in_their_boundary_are_one_request_and_are_sent_as_they_came() {
        let body = |boundary: &str, data: &str| {
            let head = "Content-Disposition: form-data; name=\"f\"";
            format!("preamble --{boundary}\r\n--{boundary}\r\n{head}\r\n\r\n{data}\r\n--{boundary}--\r\nepilogue")
        };
        for data in ["x", "banana\r\n--apple", "has a1 and --a1 inside\r\n--a1b\r\n --a1\r\n", "", "--\n-- a1"] {
            let sent = |boundary: &str, kind: &str| {
                let (body, kind) = (body(boundary, data), format!("{kind}{boundary}"));
                let document = packed(body.as_bytes(), Some(&kind));
                assert_eq!(unpacked(&document, Some(&kind)), body.as_bytes(), "{kind}: {data}");
                document.to_string().replace(&format!("preamble --{boundary}"), "")
            };
            let known = sent(BOUNDARY, "multipart/form-data; boundary=");
            for own in ["a1", "----WebKitFormBoundary7MA4", "a"] {
                assert_eq!(sent(own, "multipart/form-data; boundary="), known, "{own}: {data}");
            }
            assert_eq!(sent("a1", "Multipart/Related; type=\"a/b\"; Boundary="), known);
        }
        for (data, kind) in [
            ("x\r\n--ragcheck-boundary\r\n\r\ny", "multipart/form-data; boundary=a1"),
            ("x", "multipart/form-data; boundary=another"),
            ("x", "multipart/form-data"),
            ("x", "text/plain; boundary=a1"),
        ] {
            let body = body("a1", data);
            let document = packed(body.as_bytes(), Some(kind));
            assert_eq!(document, json!({ TEXT: body }), "{kind}: {data}");
            assert_eq!(unpacked(&document, Some(kind)), body.into_bytes(), "{kind}: {data}");
        }
    }

    proptest! {
        #[test]
        fn a_body_without_boundary_is_sent_as_it_came(body: Vec<u8>) {
            let document = packed(&body, None);
            if serde_json::from_slice::<Value>(&body).is_err() && !body.is_empty() {
                prop_assert_eq!(unpacked(&document, None), body);
            }
        }
    }
}
