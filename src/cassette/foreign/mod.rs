//! Imports the recordings of other recorders as exchanges, with the usual redaction.
//!
//! | file | reads |
//! |---|---|
//! | [`vcr_py`] | VCR.py |
//! | [`vcr_ruby`] | Ruby VCR |
//! | [`go_vcr`] | go-vcr |
//! | [`har`] | HAR, of browsers and of Polly |
//! | [`httprr`] | httprr |
//!
//! Each of them turns a file into [`Found`] exchanges: method, URL, headers and bodies as they stand there. The format
//! is recognised by a file's content. What is common to all is done here: bodies are decompressed, requests are sent
//! on their way, and what cannot be imported is reported with its place and the reason, as are losses.

mod found;
mod go_vcr;
mod har;
mod httprr;
#[cfg(test)]
mod tests;
mod vcr_py;
mod vcr_ruby;

pub(crate) use found::Refusal;

use super::canonical::Request;
use super::exchange::{Exchange, Outcome};
use super::layout::Profile;
use super::unpack::{UnpackError, unpack_within};
use super::word_diff::printable;
use crate::platform::secrets::Redactor;
use crate::platform::words;
use crate::platform::yaml::{self, Node, Place};
use bytes::Bytes;
use found::{Body, Found, Items, REQUEST, RESPONSE};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum total bytes of a file's unpacked bodies, and of a file that is compressed.
const LONGEST_FILE: usize = 128 << 20;
/// Place of what a JSON document holds: its reader gives none.
const NOWHERE: Place = Place { line: 0, column: 0, length: 1 };

words! {
    fn name;
    /// A format of another recorder.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
    pub(crate) enum Format {
        /// VCR.py, in YAML or JSON.
        #[value(name = "vcr")]
        VcrPy = "VCR.py",
        /// Ruby VCR, in YAML or JSON.
        VcrRuby = "Ruby VCR",
        /// go-vcr, versions 1 to 4.
        GoVcr = "go-vcr",
        /// HAR, of browsers and of Polly.
        Har = "HAR",
        /// httprr of Go projects, also compressed with gzip.
        Httprr = "httprr",
    }
}

impl Format {
    /// The formats of documents, in the order in which they are tried.
    const DOCUMENTS: [Self; 4] = [Self::VcrRuby, Self::Har, Self::GoVcr, Self::VcrPy];

    /// What the format calls an exchange.
    pub(crate) fn item(self) -> &'static str {
        match self {
            Self::VcrPy | Self::VcrRuby | Self::GoVcr => "interaction",
            Self::Har => "entry",
            Self::Httprr => "record",
        }
    }

    /// The member that holds the exchanges, with a point before each inner name.
    fn holder(self) -> &'static str {
        match self {
            Self::VcrPy | Self::GoVcr => "interactions",
            Self::VcrRuby => "http_interactions",
            Self::Har => "log.entries",
            Self::Httprr => "httprr trace v1",
        }
    }

    /// The exchanges of a document, if it is of the format.
    fn items<'n, 'a>(self, root: &'n Node<'a>) -> Option<&'n [Node<'a>]> {
        self.holder().split('.').try_fold(root, |node, name| node.get(name))?.items()
    }

    fn read(self, item: &Node<'_>, root: &Node<'_>) -> Result<Found, Refusal> {
        match self {
            Self::VcrPy | Self::Httprr => vcr_py::read(item),
            Self::VcrRuby => vcr_ruby::read(item, root),
            Self::GoVcr => go_vcr::read(item),
            Self::Har => har::read(item, root),
        }
    }

    /// The format of a document.
    fn of(root: &Node<'_>) -> Option<Self> {
        let fits = |format: &Self| match format.items(root) {
            Some(items) => *format != Self::GoVcr || items.iter().any(go_vcr::is),
            None => false,
        };
        Self::DOCUMENTS.into_iter().find(fits)
    }
}

/// Why a file is not a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForeignError {
    /// It is compressed, and cannot be decompressed.
    #[error("the file {0}")]
    Packed(UnpackError),
    /// It is compressed, and longer than [`LONGEST_FILE`].
    #[error("the file is longer than {} MiB when it is unpacked: cut it into several", LONGEST_FILE >> 20)]
    TooLong,
    /// It is neither text nor an httprr trace.
    #[error("byte {0} is not UTF-8, and it is no httprr trace: export the recording again")]
    NotText(usize),
    /// It begins like JSON, but is not valid JSON.
    #[error("not JSON: {0}: if the file is cut off, record or export it again")]
    NotJson(String),
    /// It is not valid YAML.
    #[error("not YAML: line {line}: {why}: if the file is cut off, record it again")]
    NotYaml { line: u32, why: String },
    /// It is a document of another kind.
    #[error(
        "not a recording of another tool: no list of `interactions` (VCR.py, go-vcr), `http_interactions` (Ruby VCR) or `log.entries` (HAR) in it, and it does not begin with `httprr trace v1`"
    )]
    Unknown,
    /// It is not of the format that was asked for.
    #[error("not a recording of {}: no `{}` in it{}", .asked.name(), .asked.holder(),
        found.map(|found| format!("; it looks like one of {}: leave out --format", found.name())).unwrap_or_default())]
    Other { asked: Format, found: Option<Format> },
}

/// Makes the document that stands for a body which is not JSON, of its bytes and content type.
pub(crate) type Document = fn(&[u8], Option<&str>) -> Value;

/// Destination of an imported request.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Service: `model`, `search`, or `other` for a URL of no known dialect.
    pub service: String,
    /// Matching profile of its dialect.
    pub profile: &'static Profile,
    /// Path below the base URL.
    pub path: String,
    /// For bodies that are not JSON; `None` if the service takes only JSON.
    pub document: Option<Document>,
}

/// An exchange that was not imported.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Its number in the file, from 1.
    pub number: usize,
    /// Its line; 0 if it is not known, as in JSON.
    pub line: u32,
    pub why: Refusal,
}

/// Contents of an imported file.
#[derive(Debug)]
pub(crate) struct Imported {
    /// The format that it has.
    pub format: Format,
    /// The exchanges, in the order of the file.
    pub exchanges: Vec<Exchange>,
    /// Origin of the responses by service: host and model.
    pub recorded_from: BTreeMap<String, String>,
    /// Date of the first response that has one.
    pub recorded_at: Option<jiff::Timestamp>,
    /// What was not imported.
    pub refused: Vec<Refused>,
    /// Information that exchanges lack, with their number.
    pub losses: BTreeMap<&'static str, usize>,
    /// Total bytes of bodies so far.
    bytes: usize,
}

/// Imports a file of another recorder, of the format that is asked for, or else of the one that it has; `route` maps a
/// URL to its service.
///
/// # Errors
/// [`ForeignError`] if the file is no such recording.
pub(crate) fn import(
    file: &[u8],
    asked: Option<Format>,
    route: &dyn Fn(&str) -> Route,
    redactor: &Redactor,
) -> Result<Imported, ForeignError> {
    let file = if file.starts_with(&[0x1f, 0x8b]) {
        let unpacked = unpack_within(LONGEST_FILE, file.to_vec(), &[]);
        Cow::Owned(unpacked.map_err(|why| match why {
            UnpackError::TooLong => ForeignError::TooLong,
            why => ForeignError::Packed(why),
        })?)
    } else {
        Cow::Borrowed(file)
    };
    let (format, found) = read(&file, asked)?;
    let mut imported = Imported {
        format,
        exchanges: Vec::new(),
        recorded_from: BTreeMap::new(),
        recorded_at: None,
        refused: Vec::new(),
        losses: BTreeMap::new(),
        bytes: 0,
    };
    for (number, (line, one)) in (1..).zip(found) {
        let exchange = one.and_then(|found| exchange(found, route, redactor, &mut imported));
        match exchange {
            Ok(exchange) => imported.exchanges.push(exchange),
            Err(why) => imported.refused.push(Refused { number, line, why }),
        }
    }
    Ok(imported)
}

/// The format of a file, and its exchanges with their lines.
fn read(file: &[u8], asked: Option<Format>) -> Result<(Format, Items), ForeignError> {
    if httprr::is(file) {
        return match asked.filter(|asked| *asked != Format::Httprr) {
            Some(asked) => Err(ForeignError::Other { asked, found: Some(Format::Httprr) }),
            None => Ok((Format::Httprr, httprr::read(file))),
        };
    }
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let text = std::str::from_utf8(file).map_err(|why| ForeignError::NotText(why.valid_up_to() + 1))?;
    let json: Value;
    let root = if text.trim_start().starts_with(['{', '[']) {
        json = serde_json::from_str(text).map_err(|why| ForeignError::NotJson(why.to_string()))?;
        Node::of_json(&json, NOWHERE)
    } else {
        yaml::parse_only(text).map_err(|why| ForeignError::NotYaml {
            line: why.place.map_or(1, |place| place.line),
            why: printable(&why.problem.to_string(), 200),
        })?
    };
    let format = match (asked, Format::of(&root)) {
        (Some(asked), found) if asked.items(&root).is_none() => return Err(ForeignError::Other { asked, found }),
        (None, None) => return Err(ForeignError::Unknown),
        (Some(format), _) | (None, Some(format)) => format,
    };
    let items = format.items(&root).unwrap_or_default();
    Ok((format, items.iter().map(|item| (item.place.line, format.read(item, &root))).collect()))
}

fn exchange(
    found: Found,
    route: &dyn Fn(&str) -> Route,
    redactor: &Redactor,
    imported: &mut Imported,
) -> Result<Exchange, Refusal> {
    let Found { method, url, sent, status, received, took, at, mut notes } = found;
    let url = address(&url)?;
    let Route { service, profile, path, document } = route(&url);
    let (asked, answer) =
        (sent.body.unpacked(&sent.headers, REQUEST)?, received.body.unpacked(&received.headers, RESPONSE)?);
    let asked = match asked {
        Body::Parsed(value) => value,
        Body::Bytes(bytes) if bytes.is_empty() => Value::Null,
        Body::Bytes(bytes) => match (serde_json::from_slice(&bytes), document) {
            (Ok(value), _) => value,
            (Err(_), None) => return Err(Refusal::NotJson),
            (Err(_), Some(document)) => document(&bytes, value_of(&sent.headers, "content-type").as_deref()),
        },
    };
    let answer = match answer {
        Body::Bytes(bytes) => Bytes::from(bytes),
        Body::Parsed(value) => {
            notes.insert("bodies that the file has as documents are written as compact JSON");
            value.to_string().into_bytes().into()
        }
    };
    imported.bytes = imported.bytes.saturating_add(answer.len());
    if imported.bytes > LONGEST_FILE {
        return Err(Refusal::FileTooLong);
    }
    if took.is_none() {
        notes.insert("times are not in the file: every answer comes at once");
    }
    notes.insert("headers of requests are left out: method, path and body are matched");
    let kept = redactor.headers(&received.headers);
    if kept.len() < received.headers.len() {
        notes.insert("of the headers of answers only those that clients act on are kept");
    }
    if imported.recorded_at.is_none() {
        let mut dates = at.into_iter().chain(value_of(&received.headers, "date"));
        imported.recorded_at = dates.find_map(|date| timestamp(&date));
    }
    let request = Request { profile, method: &method, path: &path, body: &asked };
    let redacted = redactor.redact_body(&answer);
    let outcome = Outcome::Response {
        status,
        headers: kept,
        rewritten: redacted.is_some(),
        body: redacted.map_or(answer, Bytes::from),
        took: took.unwrap_or(Duration::ZERO),
        chunks: Vec::new(),
    };
    let ordinal = u32::try_from(imported.exchanges.len()).unwrap_or(u32::MAX);
    let exchange = Exchange::of(ordinal, service.clone(), request, outcome, redactor);
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let from = format!("{} {}", printable(host, 100), exchange.drift.model).trim_end().to_owned();
    imported.recorded_from.entry(service).or_insert_with(|| redactor.redact(&from).into_owned());
    for note in notes {
        *imported.losses.entry(note).or_default() += 1;
    }
    Ok(exchange)
}

/// An address of HTTP, without the port that it has anyway.
fn address(url: &str) -> Result<String, Refusal> {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" => ":443",
        "http" => ":80",
        other => return Err(Refusal::NotHttp(printable(other, 40))),
    };
    let rest = rest.trim_start_matches('/');
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    Ok(format!("{}://{}{path}", scheme.to_ascii_lowercase(), host.strip_suffix(port).unwrap_or(host)))
}

fn value_of(headers: &found::Headers, name: &str) -> Option<String> {
    headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
}

/// A date of HTTP or a timestamp of ISO 8601.
fn timestamp(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::parse(text).map(|at| at.timestamp()).ok().or_else(|| text.parse().ok())
}
