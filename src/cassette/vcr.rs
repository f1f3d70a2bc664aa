//! Imports VCR.py cassettes as exchanges, with the usual redaction.
//!
//! Reads YAML and JSON; bodies as text or base64, also compressed with gzip or deflate; event streams; and the
//! `parsed_body` that some projects store in place of the bytes. Interactions that cannot be imported are reported with
//! the reason, and so are losses (the format has no timings, and some bodies differ from what was sent).

use super::canonical::Request;
use super::exchange::{Exchange, Outcome};
use super::layout::Profile;
use super::unpack::{UnpackError, unpack};
use super::{base64, word_diff::printable};
use crate::platform::secrets::Redactor;
use crate::platform::yaml;
use bytes::Bytes;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

/// Maximum total bytes of a file's unpacked bodies.
const LONGEST_FILE: usize = 128 << 20;
/// Marks a binary body: reading the document loses the YAML tag, so the tag is turned into a member.
static TAGGED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^( *(?:- )?)(string|body|content): !!binary ").ok());

/// Why a file is not a VCR.py cassette.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VcrError {
    /// It begins like JSON, but is not valid JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// It is not valid YAML.
    #[error("not YAML: {0}")]
    NotYaml(String),
    /// It has no list of interactions.
    #[error("not a VCR.py cassette: no list of `interactions` in it{}", if *har { ": it looks like a HAR file" } else { "" })]
    NoInteractions {
        /// Whether it has the member that every HAR file has.
        har: bool,
    },
}

/// Why an interaction was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// Its request has no URL.
    #[error("it has no `uri`")]
    NoAddress,
    /// Its request has no method.
    #[error("it has no `method`")]
    NoMethod,
    /// Its response has no status.
    #[error("the response has no status")]
    NoStatus,
    /// The request body is not JSON, so it cannot be matched.
    #[error("the body of the request is no JSON document ({bytes} bytes), and only those can be matched")]
    NotJson {
        /// Length of the body.
        bytes: usize,
    },
    /// A body is declared as base64, but is not valid base64.
    #[error("the body of {whose} is marked as base64 and is none")]
    NotBase64 {
        /// `the request` or `the response`.
        whose: &'static str,
    },
    /// A body is a number or a boolean.
    #[error("the body of {whose} is neither text nor bytes nor a document")]
    NotBody {
        /// `the request` or `the response`.
        whose: &'static str,
    },
    /// A body cannot be decompressed.
    #[error("the body of {whose} {error}")]
    Unpack {
        /// `the request` or `the response`.
        whose: &'static str,
        /// Why.
        error: UnpackError,
    },
    /// The file's bodies together are too long.
    #[error("the bodies of this file are longer than {} MiB together: cut it into several", LONGEST_FILE >> 20)]
    FileTooLong,
}

/// Destination of an imported request.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Service: `model`, `search`, or `other` for a URL of no known dialect.
    pub service: String,
    /// Matching profile of its dialect.
    pub profile: &'static Profile,
    /// Path below the base URL.
    pub path: String,
}

/// Contents of an imported VCR.py cassette.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// The exchanges, in the order of the file.
    pub exchanges: Vec<Exchange>,
    /// Origin of the responses by service: host and model.
    pub recorded_from: BTreeMap<String, String>,
    /// Date of the first response that has one.
    pub recorded_at: Option<jiff::Timestamp>,
    /// Interactions that were not imported, by number from 1, with the reason.
    pub refused: Vec<(usize, Refusal)>,
    /// Information that the exchanges lack.
    pub losses: BTreeSet<&'static str>,
    /// Total bytes of bodies so far.
    bytes: usize,
}

/// Imports a VCR.py cassette; `route` maps a URL to its service.
///
/// # Errors
/// [`VcrError`] if the text is not such a cassette.
pub(crate) fn import_vcr(text: &str, route: &dyn Fn(&str) -> Route, redactor: &Redactor) -> Result<Imported, VcrError> {
    let document = parse(text)?;
    let Some(interactions) = document.get("interactions").and_then(Value::as_array) else {
        return Err(VcrError::NoInteractions { har: document.get("log").is_some() });
    };
    let mut imported = Imported::default();
    for (number, interaction) in (1..).zip(interactions) {
        match exchange(interaction, route, redactor, &mut imported) {
            Ok(exchange) => imported.exchanges.push(exchange),
            Err(why) => imported.refused.push((number, why)),
        }
    }
    Ok(imported)
}

fn parse(text: &str) -> Result<Value, VcrError> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|why| VcrError::NotJson(why.to_string()));
    }
    let marked = TAGGED.as_ref().map_or(text.into(), |tagged| tagged.replace_all(text, "${1}${2}_in_base64: "));
    yaml::read(&marked).map_err(|why| VcrError::NotYaml(printable(&why.to_string(), 200)))
}

fn exchange(
    interaction: &Value,
    route: &dyn Fn(&str) -> Route,
    redactor: &Redactor,
    imported: &mut Imported,
) -> Result<Exchange, Refusal> {
    let (request, response) = (&interaction["request"], &interaction["response"]);
    let word = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let url = word(request, "uri").or_else(|| word(request, "url")).ok_or(Refusal::NoAddress)?;
    let method = word(request, "method").ok_or(Refusal::NoMethod)?.to_ascii_uppercase();
    let Route { service, profile, path } = route(&url);
    let sent = match message(request, &headers(request).0, "the request")? {
        Message::Parsed(value) => value,
        Message::Bytes(bytes) if bytes.is_empty() => Value::Null,
        Message::Bytes(bytes) => serde_json::from_slice(&bytes).map_err(|_| Refusal::NotJson { bytes: bytes.len() })?,
    };
    let (received, several) = headers(response);
    let status = response["status"].get("code").unwrap_or(&response["status"]).as_u64();
    let status = status.or_else(|| response["status_code"].as_u64()).and_then(|status| u16::try_from(status).ok());
    let status = status.ok_or(Refusal::NoStatus)?;
    if BODIES.iter().all(|name| response.get(name).is_none()) {
        imported.losses.insert("an answer has no `body` in its file: it is empty in the recording");
    }
    let answer = match message(response, &received, "the response")? {
        Message::Bytes(bytes) => Bytes::from(bytes),
        Message::Parsed(value) => {
            imported.losses.insert("bodies that the file has as documents are written as compact JSON");
            value.to_string().into_bytes().into()
        }
    };
    imported.bytes = imported.bytes.saturating_add(answer.len());
    if imported.bytes > LONGEST_FILE {
        return Err(Refusal::FileTooLong);
    }
    imported.losses.insert("times are not in the format: every answer comes at once");
    imported.losses.insert("headers of requests are left out: method, path and body are matched");
    if several {
        imported.losses.insert("of a header with several values the first is taken");
    }
    let kept = redactor.headers(&received);
    if kept.len() < received.len() {
        imported.losses.insert("of the headers of answers only those that clients act on are kept");
    }
    if imported.recorded_at.is_none() {
        let date = received.iter().find(|(name, _)| name == "date");
        imported.recorded_at = date.and_then(|(_, date)| jiff::fmt::rfc2822::parse(date).ok()).map(|at| at.timestamp());
    }
    let asked = Request { profile, method: &method, path: &path, body: &sent };
    let redacted = redactor.redact_body(&answer);
    let outcome = Outcome::Response {
        status,
        headers: kept,
        rewritten: redacted.is_some(),
        body: redacted.map_or(answer, Bytes::from),
        took: Duration::ZERO,
        chunks: Vec::new(),
    };
    let ordinal = u32::try_from(imported.exchanges.len()).unwrap_or(u32::MAX);
    let exchange = Exchange::of(ordinal, service.clone(), asked, outcome, redactor);
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let from = format!("{} {}", printable(host, 100), exchange.drift.model).trim_end().to_owned();
    imported.recorded_from.entry(service).or_insert_with(|| redactor.redact(&from).into_owned());
    Ok(exchange)
}

/// A body as stored in the VCR.py cassette.
enum Message {
    Bytes(Vec<u8>),
    Parsed(Value),
}

/// Members that hold a body; httpx's recorder uses `content`.
const BODIES: [&str; 5] = ["body", "content", "parsed_body", "body_in_base64", "content_in_base64"];

/// The body of a request or response, decompressed.
fn message(message: &Value, headers: &[(String, String)], whose: &'static str) -> Result<Message, Refusal> {
    let member = |names: [&str; 2]| names.iter().find_map(|name| message.get(name).filter(|body| !body.is_null()));
    if let Some(parsed) = message.get("parsed_body").filter(|parsed| !parsed.is_null()) {
        return Ok(Message::Parsed(parsed.clone()));
    }
    let bytes = if let Some(text) = member(["body_in_base64", "content_in_base64"]).and_then(Value::as_str) {
        decoded(text, whose)?
    } else {
        match member(["body", "content"]) {
            None => Vec::new(),
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(Value::Object(entries)) => match wrapped(entries, whose)? {
                Some(bytes) => bytes,
                None => return Ok(Message::Parsed(Value::Object(entries.clone()))),
            },
            Some(list @ Value::Array(_)) => return Ok(Message::Parsed(list.clone())),
            Some(_) => return Err(Refusal::NotBody { whose }),
        }
    };
    unpack(bytes, headers).map(Message::Bytes).map_err(|error| Refusal::Unpack { whose, error })
}

/// The bytes of a mapping that wraps a body; `None` if the mapping is the body.
fn wrapped(entries: &Map<String, Value>, whose: &'static str) -> Result<Option<Vec<u8>>, Refusal> {
    const WRAPPING: [&str; 4] = ["string", "base64_string", "string_in_base64", "encoding"];
    if entries.is_empty() || !entries.keys().all(|key| WRAPPING.contains(&key.as_str())) {
        return Ok(None);
    }
    let text = |name: &str| entries.get(name).and_then(Value::as_str);
    if let Some(text) = text("string_in_base64").or_else(|| text("base64_string")) {
        return decoded(text, whose).map(Some);
    }
    Ok(Some(text("string").unwrap_or_default().as_bytes().to_vec()))
}

fn decoded(text: &str, whose: &'static str) -> Result<Vec<u8>, Refusal> {
    base64::decode(text).ok_or(Refusal::NotBase64 { whose })
}

/// Headers with lower-case names, the first of several values, and whether any header had several.
fn headers(message: &Value) -> (Vec<(String, String)>, bool) {
    let entries = message.get("headers").and_then(Value::as_object).into_iter().flatten();
    let mut several = false;
    let first = |value: &Value| match value {
        Value::Array(values) => {
            several |= values.len() > 1;
            values.first().and_then(Value::as_str).map(str::to_owned)
        }
        other => other.as_str().map(str::to_owned),
    };
    let mut first = first;
    let pairs = entries.filter_map(|(name, value)| Some((name.to_ascii_lowercase(), first(value)?))).collect();
    (pairs, several)
}

#[cfg(test)]
mod tests {
    use super::super::tests::PROFILE;
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder};
    use serde_json::json;
    use std::io::Write;

    fn route(url: &str) -> Route {
        let path = url.trim_start_matches("https://api.example/v1").to_owned();
        Route { service: "model".into(), profile: &PROFILE, path }
    }

    fn one(response: &Value) -> Result<(Imported, Bytes), Box<dyn std::error::Error>> {
        let request = json!({"method": "post", "uri": "https://api.example/v1/chat/completions", "headers": {},
            "body": "{\"model\": \"m-1\", \"user\": \"u\", \"messages\": []}"});
        let cassette = json!({"version": 1, "interactions": [{"request": request, "response": response}]}).to_string();
        let mut imported = import_vcr(&cassette, &route, &Redactor::default())?;
        if let Some((_, why)) = imported.refused.pop() {
            return Err(why.into());
        }
        let Outcome::Response { body, .. } = &imported.exchanges[0].outcome else { return Err("no response".into()) };
        let body = body.clone();
        Ok((imported, body))
    }

    #[test]
    fn packed_bodies_come_out_whatever_they_were_packed_with() {
        let (mut gzip, mut deflate) = (
            GzEncoder::new(Vec::new(), Compression::default()),
            DeflateEncoder::new(Vec::new(), Compression::default()),
        );
        gzip.write_all(b"{\"a\":1}").expect("memory");
        deflate.write_all(b"{\"a\":1}").expect("memory");
        let (gzip, deflate) = (gzip.finish().expect("memory"), deflate.finish().expect("memory"));
        for (packing, body) in [
            ("gzip", json!({"base64_string": base64::encode(&gzip)})),
            ("deflate", json!({"base64_string": base64::encode(&deflate)})),
            ("gzip", json!({"string": "{\"a\":1}"})),
            ("br", json!({"string": "{\"a\":1}"})),
        ] {
            let response = json!({"status": {"code": 200}, "headers": {"Content-Encoding": [packing]}, "body": body});
            assert_eq!(one(&response).expect("read").1, &b"{\"a\":1}"[..], "{packing}");
        }
        let brotli =
            json!({"status": 200, "headers": {"content-encoding": "br"}, "body": {"base64_string": "//79/A=="}});
        assert!(one(&brotli).expect_err("brotli").to_string().contains("compressed with br"));
    }

    #[test]
    fn bodies_under_content_and_bodies_that_are_documents_are_taken_over() {
        for (member, body, expected) in [
            ("content", json!("{\"a\": 1}"), "{\"a\": 1}"),
            ("content", json!({"a": [1, null]}), "{\"a\":[1,null]}"),
            ("body", json!({"a": 1, "string": "no wrapping"}), "{\"a\":1,\"string\":\"no wrapping\"}"),
            ("body", json!([{"a": 1}]), "[{\"a\":1}]"),
            ("body", json!({"encoding": "UTF-8", "string": "plain"}), "plain"),
        ] {
            let (imported, read) = one(&json!({"status_code": 200, "headers": {}, member: body})).expect("read");
            assert_eq!(read, expected, "{member}");
            let documents = imported.losses.iter().any(|loss| loss.contains("as documents"));
            assert_eq!(documents, !body.is_string() && body.get("encoding").is_none(), "{member} {body}");
        }
        let (imported, read) = one(&json!({"status_code": 204, "headers": {}})).expect("read");
        assert!(read.is_empty() && imported.losses.iter().any(|loss| loss.contains("no `body`")));
        assert!(
            one(&json!({"status": 200, "body": 7}))
                .expect_err("a number")
                .to_string()
                .contains("neither text nor bytes")
        );
        let request =
            json!({"method": "POST", "uri": "https://api.example/v1/x", "body": {"model": "m", "messages": []}});
        let text = json!({"interactions": [{"request": request, "response": {"status": 200, "body": ""}}]}).to_string();
        let imported = import_vcr(&text, &route, &Redactor::default()).expect("a cassette");
        let stored = imported.exchanges[0].request.as_ref().map(|request| request.body.clone());
        assert_eq!(stored, Some(json!({"model": "m", "messages": []})));
    }

    #[test]
    fn a_key_in_a_body_is_redacted_and_the_request_is_stored_as_ours_are() {
        let response = json!({"status": {"code": 401}, "headers": {"content-type": ["text/plain"], "set-cookie": ["x"],
            "date": ["Mon, 02 Feb 2026 10:00:00 GMT"]}, "body": {"string": "no: sk-abcdefghijklmnop1234"}});
        let (imported, body) = one(&response).expect("read");
        assert_eq!(body, "no: [redacted:openai]");
        assert_eq!(imported.recorded_at.map(|at| at.to_string()).as_deref(), Some("2026-02-02T10:00:00Z"));
        assert_eq!(imported.recorded_from["model"], "api.example m-1");
        let exchange = &imported.exchanges[0];
        let request = exchange.request.as_ref().expect("stored");
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/chat/completions"));
        assert_eq!(request.body, json!({"model": "m-1", "messages": []}), "what does not count is not kept");
        let Outcome::Response { status, headers, rewritten, .. } = &exchange.outcome else { panic!("a response") };
        assert_eq!((*status, headers.len(), *rewritten), (401, 1, true));
    }

    #[test]
    fn yaml_bytes_are_told_from_text_and_what_cannot_be_matched_is_refused_with_a_reason() {
        let text = "interactions:\n- request:\n    body: !!binary |\n      eyJtb2RlbCI6Im0ifQ==\n    headers: {}\n    method: POST\n    uri: https://api.example/v1/x\n  \
            response:\n    body:\n      string: !!binary |\n        /wD+\n    headers: {}\n    status: {code: 200, message: OK}\n\
            - request: {body: 'a=1&b=2', headers: {}, method: POST, uri: https://api.example/v1/x}\n  response: {status: {code: 200}, body: {string: ''}, headers: {}}\n\
            version: 1\n";
        let imported = import_vcr(text, &route, &Redactor::default()).expect("a cassette");
        assert_eq!(
            imported.exchanges[0].request.as_ref().map(|request| request.body.clone()),
            Some(json!({"model": "m"}))
        );
        assert!(
            matches!(&imported.exchanges[0].outcome, Outcome::Response { body, .. } if body[..] == [0xff, 0, 0xfe])
        );
        assert_eq!(imported.refused.len(), 1);
        assert!(imported.refused[0].1.to_string().starts_with("the body of the request is no JSON document (7 bytes)"));
        for (broken, why) in
            [("interactions: [", "not YAML"), ("{\"log\": {}}", "HAR"), ("a: 1", "no list of `interactions`")]
        {
            assert!(
                import_vcr(broken, &route, &Redactor::default()).expect_err(broken).to_string().contains(why),
                "{broken}"
            );
        }
    }
}
