//! Cassettes of VCR.py, turned into exchanges of ours through the same redaction.
//!
//! Read are YAML and JSON, bodies as text, as base64 and packed with gzip or deflate, event streams, and the `parsed_body`
//! that some projects keep instead of the bytes. What cannot be taken over is told with the reason; what is taken over
//! with a loss (times are not in the format, some bodies are not as they were sent) is told too.

use super::body;
use super::canonical::{Profile, Request, key, stored_body};
use super::drift::drift;
use super::exchange::{Exchange, Outcome, StoredRequest};
use super::redact::Redactor;
use super::{base64, word_diff::printable};
use bytes::Bytes;
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::LazyLock;
use std::time::Duration;

/// Longest unpacked body, in bytes.
const LONGEST_BODY: u64 = 64 << 20;
/// A body of bytes: the tag would be lost by reading the document, so the member's name tells.
static TAGGED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^( *(?:- )?)(string|body): !!binary ").ok());

/// Where a request of a foreign recording went, in our words.
#[derive(Debug, Clone)]
pub struct Route {
    /// The service: `model`, `search`, or `other` for an address of no known dialect.
    pub service: String,
    /// How requests of its dialect are matched.
    pub profile: &'static Profile,
    /// Below the base URL.
    pub path: String,
}

/// What was read from one foreign cassette.
#[derive(Debug, Default)]
pub struct Imported {
    /// The exchanges, in the order of the file.
    pub exchanges: Vec<Exchange>,
    /// Who answered, by service: host and model.
    pub recorded_from: BTreeMap<String, String>,
    /// The time that the first answer with a date tells.
    pub recorded_at: Option<jiff::Timestamp>,
    /// Interactions that were not taken over, by number from 1, with why.
    pub refused: Vec<(usize, String)>,
    /// What the exchanges lack beside what was sent.
    pub losses: BTreeSet<&'static str>,
}

/// Reads a VCR.py cassette; `route` tells where an address leads.
///
/// # Errors
/// In words, when the text is no such cassette.
pub fn import_vcr(text: &str, route: &dyn Fn(&str) -> Route, redactor: &Redactor) -> Result<Imported, String> {
    let document = parse(text)?;
    let Some(interactions) = document.get("interactions").and_then(Value::as_array) else {
        let har = if document.get("log").is_some() { ": it looks like a HAR file" } else { "" };
        return Err(format!("not a VCR.py cassette: no list of `interactions` in it{har}"));
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

fn parse(text: &str) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|why| format!("not JSON: {why}"));
    }
    let marked = TAGGED.as_ref().map_or(text.into(), |tagged| tagged.replace_all(text, "${1}${2}_in_base64: "));
    let mut budget = serde_saphyr::Budget::default();
    budget.max_nodes = text.len() + 1_000;
    budget.max_events = 4 * text.len() + 4_000;
    let options = serde_saphyr::options! {
        budget: Some(budget),
        ignore_binary_tag_for_string: true,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(&marked, options).map_err(|why| {
        let why = why.to_string();
        format!("not YAML: {}", printable(why.lines().next().unwrap_or_default(), 200))
    })
}

fn exchange(
    interaction: &Value,
    route: &dyn Fn(&str) -> Route,
    redactor: &Redactor,
    imported: &mut Imported,
) -> Result<Exchange, String> {
    let (request, response) = (&interaction["request"], &interaction["response"]);
    let word = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let url = word(request, "uri").or_else(|| word(request, "url")).ok_or("it has no `uri`")?;
    let method = word(request, "method").ok_or("it has no `method`")?.to_ascii_uppercase();
    let Route { service, profile, path } = route(&url);
    let sent = match message(request, &headers(request), "the request")? {
        Message::Parsed(value) => value,
        Message::Bytes(bytes) if bytes.is_empty() => Value::Null,
        Message::Bytes(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
            format!(
                "the body of the request is no JSON document ({} bytes), and only those can be matched",
                bytes.len()
            )
        })?,
    };
    let received = headers(response);
    let status = response["status"].get("code").unwrap_or(&response["status"]).as_u64();
    let status = status.or_else(|| response["status_code"].as_u64()).and_then(|status| u16::try_from(status).ok());
    let status = status.ok_or("the response has no status")?;
    let answer = match message(response, &received, "the response")? {
        Message::Bytes(bytes) => Bytes::from(bytes),
        Message::Parsed(value) => {
            imported.losses.insert("bodies that were kept parsed are spelt anew");
            serde_json::to_vec(&value).map_err(|why| why.to_string())?.into()
        }
    };
    imported.losses.insert("times are not in the format: every answer comes at once");
    if imported.recorded_at.is_none() {
        let date = received.iter().find(|(name, _)| name == "date");
        imported.recorded_at = date.and_then(|(_, date)| jiff::fmt::rfc2822::parse(date).ok()).map(|at| at.timestamp());
    }
    let asked = Request { profile, method: &method, path: &path, body: &sent };
    let (key, stored) = (key(asked, redactor), stored_body(profile, &sent, redactor));
    let drift = drift(&stored);
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let from = format!("{} {}", printable(host, 100), drift.model).trim_end().to_owned();
    imported.recorded_from.entry(service.clone()).or_insert_with(|| redactor.redact(&from).into_owned());
    let redacted = redactor.redact_body(&answer);
    Ok(Exchange {
        ordinal: u32::try_from(imported.exchanges.len()).unwrap_or(u32::MAX),
        service,
        profile: profile.name.to_owned(),
        key,
        drift,
        request: Some(StoredRequest { path: redactor.redact(&path).into_owned(), method, body: stored, problem: None }),
        outcome: Outcome::Response {
            status,
            headers: redactor.headers(&received),
            rewritten: redacted.is_some(),
            body: redacted.map_or(answer, Bytes::from),
            took: Duration::ZERO,
            chunks: Vec::new(),
        },
    })
}

/// A body as the cassette has it.
enum Message {
    Bytes(Vec<u8>),
    Parsed(Value),
}

/// The body of a request or response, unpacked.
fn message(message: &Value, headers: &[(String, String)], whose: &str) -> Result<Message, String> {
    if let Some(parsed) = message.get("parsed_body").filter(|parsed| !parsed.is_null()) {
        return Ok(Message::Parsed(parsed.clone()));
    }
    let body = message.get("body").unwrap_or(&Value::Null);
    let bytes = if let Some(text) = message.get("body_in_base64").and_then(Value::as_str) {
        decoded(text, whose)?
    } else {
        match body {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            Value::Object(entries) => {
                let text = |name: &str| entries.get(name).and_then(Value::as_str);
                if let Some(text) = text("string_in_base64").or_else(|| text("base64_string")) {
                    decoded(text, whose)?
                } else {
                    text("string").unwrap_or_default().as_bytes().to_vec()
                }
            }
            _ => return Err(format!("the body of {whose} is neither text nor bytes")),
        }
    };
    unpacked(bytes, headers).map(Message::Bytes).map_err(|why| format!("the body of {whose} {why}"))
}

fn decoded(text: &str, whose: &str) -> Result<Vec<u8>, String> {
    base64::decode(text).ok_or_else(|| format!("the body of {whose} is marked as base64 and is none"))
}

/// Takes the packing off that `content-encoding` tells of, unless somebody did before and left the header.
fn unpacked(bytes: Vec<u8>, headers: &[(String, String)]) -> Result<Vec<u8>, String> {
    let packing = headers.iter().find(|(name, _)| name == "content-encoding").map(|(_, value)| value.trim());
    let gzip = bytes.starts_with(&[0x1f, 0x8b]);
    if gzip {
        return read(GzDecoder::new(&bytes[..])).map_err(|why| format!("is broken gzip: {why}"));
    }
    match packing.map(str::to_ascii_lowercase).as_deref() {
        Some("deflate") if body::is_text(&bytes) => Ok(bytes),
        Some("deflate") => read(ZlibDecoder::new(&bytes[..]))
            .or_else(|_| read(DeflateDecoder::new(&bytes[..])))
            .map_err(|why| format!("is broken deflate: {why}")),
        Some(other) if !matches!(other, "" | "identity" | "gzip") && !body::is_text(&bytes) => {
            Err(format!("is packed with {}, which is not read here", printable(other, 40)))
        }
        _ => Ok(bytes),
    }
}

fn read(packed: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    packed.take(LONGEST_BODY + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    if bytes.len() as u64 > LONGEST_BODY { Err("it is longer than 64 MiB".to_owned()) } else { Ok(bytes) }
}

/// The headers in lower case; of several values the first.
fn headers(message: &Value) -> Vec<(String, String)> {
    let entries = message.get("headers").and_then(Value::as_object).into_iter().flatten();
    let first = |value: &Value| match value {
        Value::Array(values) => values.first().and_then(Value::as_str).map(str::to_owned),
        other => other.as_str().map(str::to_owned),
    };
    entries.filter_map(|(name, value)| Some((name.to_ascii_lowercase(), first(value)?))).collect()
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

    fn one(response: &Value) -> Result<(Imported, Bytes), String> {
        let request = json!({"method": "post", "uri": "https://api.example/v1/chat/completions", "headers": {},
            "body": "{\"model\": \"m-1\", \"user\": \"u\", \"messages\": []}"});
        let cassette = json!({"version": 1, "interactions": [{"request": request, "response": response}]}).to_string();
        let imported = import_vcr(&cassette, &route, &Redactor::default())?;
        if let Some((_, why)) = imported.refused.first() {
            return Err(why.clone());
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
        assert!(one(&brotli).expect_err("brotli").contains("packed with br"));
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
        assert!(imported.refused[0].1.starts_with("the body of the request is no JSON document (7 bytes)"));
        for (broken, why) in
            [("interactions: [", "not YAML"), ("{\"log\": {}}", "HAR"), ("a: 1", "no list of `interactions`")]
        {
            assert!(import_vcr(broken, &route, &Redactor::default()).expect_err(broken).contains(why), "{broken}");
        }
    }
}
