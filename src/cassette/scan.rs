//! Finds secrets in existing files, for a check before a commit.
//!
//! Uses the [`Redactor`] that cleans recordings. Base64 is decoded and searched too, because cassettes store binary
//! bodies as base64, and report pages store conversations as gzip in base64. Streams are reassembled. Findings are
//! named, never shown.

use super::base64;
use super::exchange::{Cassette, Outcome};
use crate::platform::secrets::{Redactor, redact_stream};
use flate2::read::MultiGzDecoder;
use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

/// Long runs of base64; shorter ones cannot hold a key with its surroundings.
static ENCODED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("[A-Za-z0-9+/]{32,}={0,2}").ok());

/// Maximum bytes searched in an unpacked block; the longest in a report page has a few megabytes.
const LONGEST_BLOCK: usize = 64 << 20;

/// A secret found in a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Find {
    /// Line where it begins, from 1.
    pub line: usize,
    /// What it is, without its value.
    pub what: String,
}

/// Secrets of a text, by line; equal findings in a line are listed once.
pub(crate) fn scan(text: &str, redactor: &Redactor) -> Vec<Find> {
    let mut found: Vec<(usize, String)> =
        redactor.finds(text).into_iter().map(|(place, what)| (place.start, what)).collect();
    for run in ENCODED.iter().flat_map(|runs| runs.find_iter(text)) {
        let Some(bytes) = base64::decode(run.as_str()) else { continue };
        let packed = bytes.starts_with(&[0x1f, 0x8b]);
        let (bytes, whole) = if packed { unpacked(&bytes) } else { (bytes, true) };
        let place = if packed { "in a compressed block" } else { "in base64" };
        let inside = redactor.finds(&String::from_utf8_lossy(&bytes));
        found.extend(inside.into_iter().map(|(_, what)| (run.start(), format!("{what}, {place}"))));
        if !whole {
            found.push((
                run.start(),
                "a compressed block that cannot be unpacked whole, and was not searched whole".into(),
            ));
        }
    }
    found.sort();
    let (mut line, mut counted) = (1, 0);
    let mut finds: Vec<Find> = Vec::new();
    for (start, what) in found {
        line += text[counted..start].matches('\n').count();
        counted = start;
        finds.push(Find { line, what });
    }
    let pieces = "a secret that a stream tells in pieces";
    for (line, stream) in streams(text) {
        if redact_stream(&stream, redactor).is_some() {
            finds.push(Find { line, what: pieces.to_owned() });
        }
    }
    finds.sort();
    finds.dedup();
    finds
}

/// Unpacks gzip; the flag says whether the result is complete.
fn unpacked(packed: &[u8]) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let read = MultiGzDecoder::new(packed).take(LONGEST_BLOCK as u64 + 1).read_to_end(&mut bytes);
    let whole = read.is_ok() && bytes.len() <= LONGEST_BLOCK;
    (bytes, whole)
}

/// Event streams in a text, with the lines where they begin: the text itself, or the streams that a cassette holds.
fn streams(text: &str) -> Vec<(usize, String)> {
    let begins = |line: &str| line.starts_with("data:");
    let cassette = text.starts_with("cassette:").then(|| Cassette::parse(text.into(), Path::new(""), Path::new("")));
    let Some(Ok(cassette)) = cassette else {
        let first = text.lines().position(begins);
        return first.map(|line| (line + 1, text.to_owned())).into_iter().collect();
    };
    let bodies = cassette.exchanges.iter().filter_map(|exchange| {
        let Outcome::Response { body, .. } = &exchange.outcome else { return None };
        let body = std::str::from_utf8(body).ok().filter(|body| body.lines().any(begins))?;
        let head = format!("ordinal: {}", exchange.ordinal);
        let line = text.lines().position(|line| line.trim_start_matches([' ', '-']) == head).unwrap_or(0);
        Some((line + 1, body.to_owned()))
    });
    bodies.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::lane;
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_are_named_with_their_line_and_without_their_value() {
        let redactor = Redactor::new([("SERVICE_KEY".to_owned(), "pass/word+1234".to_owned())]);
        let encoded = base64::encode(b"\x00\x01 authorization: Bearer abcdefghijklmnop1234 \x00");
        let text =
            format!("a: 1\nb: \"x\\nsk-abcdefghijklmnop1234\"\n\nc: pass/word+1234 pass%2Fword%2B1234\nd: {encoded}\n");
        let found = scan(&text, &redactor);
        let found: Vec<(usize, &str)> = found.iter().map(|find| (find.line, find.what.as_str())).collect();
        assert_eq!(
            found,
            [
                (2, "a key that begins like those of OpenAI, Anthropic or OpenRouter"),
                (4, "the value of SERVICE_KEY"),
                (5, "a value in the place of a key, in base64"),
            ]
        );
    }

    #[test]
    fn a_secret_that_a_stream_tells_in_pieces_is_found_in_a_log_and_in_a_cassette() {
        let stream = ["sk-abcdef", "ghijklmnop", "qrst1234 is it"]
            .map(|piece| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": piece}}]})))
            .concat();
        let pieces = |line| [Find { line, what: "a secret that a stream tells in pieces".to_owned() }];
        assert_eq!(scan(&format!("event log\n{stream}"), &Redactor::default()), pieces(2));
        let mut cassette = lane();
        if let Outcome::Response { body, .. } = &mut cassette.exchanges[1].outcome {
            *body = stream.into();
        }
        let text = cassette.to_text().expect("readable").0;
        let line = text.lines().position(|line| line == "  - ordinal: 1").expect("the exchange") + 1;
        assert_eq!(scan(&text, &Redactor::default()), pieces(line));
    }

    #[test]
    fn a_secret_in_a_compressed_block_is_found_and_a_block_that_cannot_be_unpacked_is_told() {
        use std::io::Write as _;
        let pack = |text: &str| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(text.as_bytes()).expect("memory");
            gzip.finish().expect("memory")
        };
        let redactor = Redactor::new([("SERVICE_KEY".to_owned(), "pass/word+1234".to_owned())]);
        let block = |bytes: &[u8]| format!("<p>\n<script class=\"block\">{}</script>\n", base64::encode(bytes));
        let dirty = json!({"s": ["it is pass/wo\u{200b}rd+1234 and sk-abcdefghijklmnop1234"]}).to_string();
        let found: Vec<(usize, String)> =
            scan(&block(&pack(&dirty)), &redactor).into_iter().map(|find| (find.line, find.what)).collect();
        let openai = "a key that begins like those of OpenAI, Anthropic or OpenRouter, in a compressed block";
        let known = "the value of SERVICE_KEY, in a compressed block";
        assert_eq!(found, [(2, openai.to_owned()), (2, known.to_owned())]);
        assert_eq!(scan(&block(&pack(&json!({"s": ["nothing"]}).to_string())), &redactor), []);
        let cut = scan(&block(&pack(&"many words ".repeat(90))[..30]), &redactor);
        assert!(cut.len() == 1 && cut[0].what.contains("cannot be unpacked whole"), "{cut:?}");
    }

    #[test]
    fn what_was_redacted_is_clean_for_the_scan() {
        let redactor = Redactor::new([("SERVICE_KEY".to_owned(), "pass/word+1234".to_owned())]);
        let dirty = "Bearer abcdefghijklmnop1234 pass/word+1234 hf_abcdefghijklmnopqrst\n\
             -----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1234567890\nabcdefghijk\n-----END RSA PRIVATE KEY-----\n";
        assert_eq!(scan(dirty, &redactor).len(), 4);
        assert_eq!(scan(&redactor.redact(dirty), &redactor), []);
    }
}
