//! httprr, the recorder of Go projects: a line with two lengths, then the bytes of a request and of its response.
//!
//! A version control system that turns CRLF into LF makes these files shorter than their lengths say. Such a file is
//! read by where its records begin; each must lack as many bytes as it has line ends, or as its headers have.

use super::found::{Body, Found, Headers, Items, Message, REQUEST, RESPONSE, Refusal, several};
use regex::bytes::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// First line of such a file.
const HEAD: &[u8] = b"httprr trace v1";
/// Beginning of a record.
static RECORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[0-9]+ [0-9]+\r?\n[A-Z]+ [^ \n]+ HTTP/[0-9]").ok());

/// Whether this is such a file.
pub(super) fn is(file: &[u8]) -> bool {
    file.starts_with(HEAD)
}

/// The exchanges of a file, with their lines.
pub(super) fn read(file: &[u8]) -> Items {
    let (mut found, mut at, mut line) = (Vec::new(), line_end(file, 0), 2);
    while at < file.len() {
        let start = line_end(file, at);
        let (record, end) = match lengths(&file[at..start]) {
            None => (Err(Refusal::NoLengths), next(file, start)),
            Some(announced) => record(file, start, announced),
        };
        found.push((line, record));
        line += line_feeds(&file[at..end]) as u32;
        at = end;
    }
    found
}

/// Offset behind the line that begins at `at`.
fn line_end(file: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &file[at..]).map_or(file.len(), |end| at + end + 1)
}

/// Two lengths on a line.
fn lengths(line: &[u8]) -> Option<(usize, usize)> {
    let (request, response) = std::str::from_utf8(line).ok()?.trim_end().split_once(' ')?;
    Some((request.parse().ok()?, response.parse().ok()?))
}

/// Offset of the record that begins at or behind `at`, or the end of the file.
fn next(file: &[u8], at: usize) -> usize {
    RECORD.as_ref().and_then(|record| record.find_at(file, at)).map_or(file.len(), |found| found.start())
}

/// The record whose request begins at `start`, and where it ends.
fn record(file: &[u8], start: usize, (request, response): (usize, usize)) -> (Result<Found, Refusal>, usize) {
    let rest = &file[start..];
    let announced = request.saturating_add(response);
    let follows = |end: usize| end == rest.len() || lengths(&rest[end..line_end(rest, end)]).is_some();
    if announced <= rest.len() && follows(announced) {
        let (request, response) = rest[..announced].split_at(request);
        return (exchange(request, response, false), start + announced);
    }
    // The digits of the next record's first length may follow digits of this body.
    let (mut ends, mut at) = (Vec::new(), start);
    while at < file.len() && (ends.is_empty() || at - start < announced) {
        at = next(file, at);
        let digits = file[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        ends.extend((0..digits.max(1)).map(|digit| at + digit - start));
        at += digits + 1;
    }
    let beginnings = memchr::memmem::find_iter(rest, b"HTTP/").take_while(|at| *at < request);
    let splits = beginnings.filter_map(|at| Some((at, loss(&rest[..at], request)?)));
    let found = splits.flat_map(|(at, of_request)| {
        let ends = ends.iter().filter(move |end| **end > at);
        ends.filter_map(move |&end| Some(((loss(&rest[at..end], response)?, of_request), at, end)))
    });
    if let Some((_, at, end)) = found.min() {
        return (exchange(&rest[..at], &rest[at..end], true), start + end);
    }
    let there = ends.first().copied().unwrap_or(rest.len());
    (Err(Refusal::Lengths { announced, there }), start + there)
}

/// Which line ends of a message became shorter by one byte each, so that it has this length and not the one announced.
/// The more likely ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    /// Those of its headers: its body has line feeds alone.
    Head,
    All,
    /// Those of its headers and around its chunks; the chunks have their lengths.
    Chunks,
}

fn loss(message: &[u8], announced: usize) -> Option<Loss> {
    let missing = announced.checked_sub(message.len())?;
    let (head, _) = message.split_at(memchr::memmem::find(message, b"\n\n")? + 2);
    let (few, all) = (line_feeds(head), line_feeds(message));
    let chunked = || memchr::memmem::find(&head.to_ascii_lowercase(), b"chunked").is_some();
    match missing {
        _ if message.contains(&b'\r') => None,
        missing if missing == few => Some(Loss::Head),
        missing if missing == all => Some(Loss::All),
        missing if few < missing && missing < all && chunked() => Some(Loss::Chunks),
        _ => None,
    }
}

fn line_feeds(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn exchange(request: &[u8], response: &[u8], shortened: bool) -> Result<Found, Refusal> {
    let mut notes = BTreeSet::new();
    if shortened {
        notes.insert(
            "the line ends of a file were changed after recording (CRLF to LF): its bodies are taken as they are",
        );
    }
    let (asked, sent) = message(request, REQUEST, &mut notes)?;
    let (answered, received) = message(response, RESPONSE, &mut notes)?;
    let mut words = asked.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Err(Refusal::NotMessage(REQUEST)) };
    let host = sent.headers.iter().find(|(name, _)| name == "host").map(|(_, host)| host.as_str());
    let url = match host {
        Some(host) if target.starts_with('/') => format!("https://{host}{target}"),
        _ => target.to_owned(),
    };
    let status = answered.strip_prefix("HTTP/").and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or(Refusal::NoStatus)?;
    Ok(Found { method: method.to_ascii_uppercase(), url, sent, status, received, took: None, at: None, notes })
}

/// First line, headers and body of an HTTP/1 message.
fn message(
    bytes: &[u8],
    whose: &'static str,
    notes: &mut BTreeSet<&'static str>,
) -> Result<(String, Message), Refusal> {
    let (mut lines, mut at) = (Vec::new(), 0);
    loop {
        let end = line_end(bytes, at);
        let line = std::str::from_utf8(&bytes[at..end]).map_err(|_| Refusal::NotMessage(whose))?;
        if end == at || !line.ends_with('\n') {
            return Err(Refusal::NotMessage(whose));
        }
        at = end;
        match line.trim_end_matches(['\r', '\n']) {
            "" => break,
            line => lines.push(line),
        }
    }
    let mut lines = lines.into_iter();
    let first = lines.next().ok_or(Refusal::NotMessage(whose))?.to_owned();
    let mut headers: Headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(Refusal::NotMessage(whose))?;
        let name = name.trim().to_ascii_lowercase();
        let known = headers.iter().any(|(other, _)| *other == name);
        several(known, notes);
        if !known {
            headers.push((name, value.trim().to_owned()));
        }
    }
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value.ends_with("chunked"));
    let body = if chunked { joined(&bytes[at..]).ok_or(Refusal::Chunks(whose))? } else { bytes[at..].to_vec() };
    Ok((first, Message { headers, body: Body::Bytes(body) }))
}

/// The body whose chunks these are; `None` if one is too short or the last one is missing.
fn joined(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (line, rest) = bytes.split_at(line_end(bytes, 0));
        let size = std::str::from_utf8(line).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        let rest = &rest[size..];
        bytes = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
    }
}
