//! Reads the answer from an agent's reply, whatever its content type: a JSON document, server-sent events, JSON objects one a
//! line or in a list, or text.
//!
//! A stream is read by its events. Texts at the answer's pointer, or in the shape of one of the usual clients (Chat
//! Completions, Responses, Messages, the AI SDK, AG-UI, Mastra), are its pieces; pieces that repeat what came before replace
//! it. At such a place, events whose type names reasoning or a tool's arguments hold none. A stream that ends with an error event
//! is a failed turn, whatever text came before it, and so is one that begins as such a client expects and lacks its end.

use crate::platform::{lenient_json, secrets};
use crate::provider::tool_result::{self, is_crash};
use crate::trace::answer::{is_blank, without_reasoning};
use crate::transport::{HttpResponse, sse};
use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use html_escape::decode_html_entities;
use serde_json::{Map, Value};

/// Bytes of a reply that a trace holds.
const LONGEST_REPLY: usize = 256 << 10;
/// Characters of a reply that a message shows.
const SHOWN: usize = 120;
/// Where the usual clients expect the text of an event, by pointers.
const PIECES: [&str; 7] = [
    "/choices/0/delta/content", "/choices/0/message/content", "/delta/text", "/delta", "/textDelta", "/payload/text",
    // Ollama's.
    "/message/content",
];
/// Types of events with a piece of the text.
const OF_TEXT: [&str; 4] = ["response.output_text.delta", "text-delta", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"];
/// Words in the types of events that hold something else at the same place.
const BESIDE: [&str; 5] = ["reasoning", "thinking", "tool", "arguments", "args"];
/// Types of events that say that the agent failed, in lower case.
const FAILED: [&str; 4] = ["error", "response.failed", "run_error", "abort"];
/// Types of events by which usual clients know that a stream goes on until one that ends it.
const BEGINS: [&str; 3] = ["start-step", "response.created", "RUN_STARTED"];
/// Types of the events that end it.
const ENDS: [&str; 4] = ["finish", "response.completed", "response.incomplete", "RUN_FINISHED"];
/// How the types of all their events begin, if none holds data of the agent's own.
const OWN: [&str; 15] = [
    "start", "finish", "text-", "reasoning-", "step-", "tool-", "response.", "message_", "content_block", "ping",
    "RUN_", "TEXT_", "TOOL_", "STEP_", "THINKING_",
];
/// What many streams end with.
const DONE: &str = "[DONE]";
/// Where an endpoint of the shape of Chat Completions holds its answer.
const OPENAI: &str = "/choices/0/message/content";

/// Where a reply holds the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerAt {
    /// A JSON pointer.
    Pointer(String),
    /// As in Chat Completions.
    OpenAi,
}

impl AnswerAt {
    fn pointer(&self) -> &str {
        match self {
            Self::Pointer(pointer) => pointer,
            Self::OpenAi => OPENAI,
        }
    }
}

/// Why a reply holds no answer: what is missing, the content type, and how it begins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("The agent's reply ({kind}) {why}; {said}")]
pub(crate) struct Unread {
    kind: String,
    why: String,
    said: String,
    pub(super) lack: Lack,
}

/// What a reply without an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// A reply of another form.
    Answer,
    /// An answer without a word.
    Words,
    /// A stream without its end.
    End,
    /// An error, as the agent says.
    Success,
}

/// An error that the agent put into its reply, as it says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct Told(String);

/// A reply whose body is UTF-8 without a byte order mark, decoded by the mark or by the `charset` of its content type. A
/// body that is UTF-8 whatever is declared stays, as does one that cannot be decoded.
pub(crate) fn in_utf8(mut response: HttpResponse) -> HttpResponse {
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let label = kind.split(';').find_map(|part| part.trim().strip_prefix("charset="));
    let declared = label.and_then(|label| Encoding::for_label(label.trim_matches('"').as_bytes()));
    let (encoding, mark) = Encoding::for_bom(&response.body).unwrap_or((declared.unwrap_or(UTF_8), 0));
    let body = response.body.slice(mark..);
    let stays = encoding == UTF_8 || encoding.is_ascii_compatible() && std::str::from_utf8(&body).is_ok();
    let decoded = if stays { None } else { encoding.decode_without_bom_handling_and_without_replacement(&body) };
    response.body = decoded.map(|text| Bytes::from(text.into_owned())).unwrap_or(body);
    response
}

/// The body of a reply, null if it is no JSON or too long for a trace.
pub(super) fn document(response: &HttpResponse) -> Value {
    let read = || lenient_json::read(&response.body).ok();
    if response.body.len() <= LONGEST_REPLY { read().unwrap_or_default() } else { Value::Null }
}

/// The answer's text, and the body that holds it: null if it is not JSON or too long for a trace.
///
/// # Errors
/// [`Unread`] if there is no answer.
pub(crate) fn read(response: &HttpResponse, answer: &AnswerAt) -> Result<(String, Value), Unread> {
    let printed = String::from_utf8_lossy(&response.body);
    if is_crash(&printed) {
        let lack = Lack::Success;
        return Err(Unread { lack, ..unread(response, "is what a program prints at an uncaught error") });
    }
    let pointer = answer.pointer();
    let (text, body) = whole(response, pointer)?;
    let said = without_reasoning(&text);
    if is_blank(said) {
        let lack = Lack::Words;
        let is_plain = response.body.trim_ascii().is_empty();
        let why = if is_plain { "has no text".to_owned() } else { format!("has an empty text at {pointer}") };
        return Err(Unread { lack, ..unread(response, &why) });
    }
    Ok((said.to_owned(), body))
}

/// The text of a reply, and its body.
fn whole(response: &HttpResponse, pointer: &str) -> Result<(String, Value), Unread> {
    if sse::is_stream(&response.headers, &response.body) {
        return of_events(response, &response.body, pointer);
    }
    let body = match lenient_json::read(&response.body) {
        Ok(body) => body,
        Err(why) => {
            let text = plain(response);
            if let Some(lines) = std::str::from_utf8(&response.body).ok().and_then(|text| as_events(text.lines(), 2)) {
                let read = of_events(response, &lines, pointer);
                // A text may consist of such lines.
                if text.is_none() || is_of_events(&read) {
                    return read;
                }
            }
            let text = text.ok_or_else(|| no_json(response, &why))?;
            let pieces = ai_sdk_lines(&text).unwrap_or(Ok(text)).map_err(|said| failed(response, &said))?;
            return Ok((pieces, Value::Null));
        }
    };
    let text = match (body.pointer(pointer), &body) {
        (Some(Value::String(text)), _) | (None, Value::String(text)) => text.clone(),
        (None, Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            let events = as_events(items.iter().map(String::as_str), 1);
            let read = events.map(|events| of_events(response, &events, pointer));
            return read
                .filter(is_of_events)
                .unwrap_or_else(|| Err(unread(response, &format!("has no text at {pointer}"))));
        }
        _ => return Err(unread(response, &format!("has no text at {pointer}"))),
    };
    Ok((text, if response.body.len() <= LONGEST_REPLY { body } else { Value::Null }))
}

/// JSON objects, one a line or in a list, as the events of a stream; `None` for anything else, and for fewer than `least`.
fn as_events<'t>(objects: impl Iterator<Item = &'t str>, least: usize) -> Option<Vec<u8>> {
    let (mut events, mut count) = (Vec::new(), 0);
    for object in objects.map(str::trim).filter(|object| !object.is_empty()) {
        lenient_json::read(object.as_bytes()).ok().filter(Value::is_object)?;
        events.extend([b"data: ", object.as_bytes(), b"\n\n"].concat());
        count += 1;
    }
    (count >= least).then_some(events)
}

/// The text of a stream of events, and its body.
fn of_events(response: &HttpResponse, events: &[u8], pointer: &str) -> Result<(String, Value), Unread> {
    streamed(events, pointer).map_err(|failure| match failure {
        Unstreamed::Error(said) => failed(response, &said),
        Unstreamed::Cut => {
            let why = "is a stream that ends without the event that marks its end";
            Unread { lack: Lack::End, ..unread(response, why) }
        }
        Unstreamed::Silent { is_whole } => {
            let lack = if is_whole { Lack::Words } else { Lack::Answer };
            Unread { lack, ..unread(response, "holds no text in its events") }
        }
    })
}

/// Whether events held an answer, or said why there is none.
fn is_of_events(read: &Result<(String, Value), Unread>) -> bool {
    read.as_ref().err().is_none_or(|unread| unread.lack != Lack::Answer)
}

/// A body that is text, and not a page; one that says that it is text may be empty.
fn plain(response: &HttpResponse) -> Option<String> {
    let text = std::str::from_utf8(&response.body).ok()?.trim();
    let kind = response.header("content-type").unwrap_or_default().trim().to_ascii_lowercase();
    // Many frameworks label text as `text/html` by default.
    if kind.starts_with("text/html") {
        let begins_tag =
            |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_alphabetic() || "/!?".contains(letter));
        let is_marked_up = text.split('<').skip(1).any(begins_tag);
        // A server answers so by itself.
        let is_failure = tool_result::error(&Value::from(text)).is_some();
        return (!text.is_empty() && !is_marked_up && !is_failure).then(|| decode_html_entities(text).into_owned());
    }
    let said = kind.is_empty() || kind.starts_with("text/plain") || kind.starts_with("text/markdown");
    (said && !(text.is_empty() && kind.is_empty())).then(|| text.to_owned())
}

/// The text of lines such as `0:"piece"`, which the AI SDK sent before its version 5, or the error that they end with;
/// `None` for other texts.
fn ai_sdk_lines(text: &str) -> Option<Result<String, Told>> {
    let (mut out, mut error, mut half) = (None, None, None);
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (kind, value) = line.split_once(':').filter(|(kind, _)| kind.len() == 1)?;
        let value = lenient_json::read_next(value, &mut half).ok()?;
        match kind {
            "0" => {
                out.get_or_insert_with(String::new).push_str(value.as_str()?);
                error = None;
            }
            "3" => error = Some(Told(value.to_string())),
            _ => {}
        }
    }
    error.map(Err).or(out.map(Ok))
}

/// Why a stream gives no answer.
enum Unstreamed {
    /// The error event after the last piece of text.
    Error(Told),
    /// It is one of the usual streams, and lacks the end.
    Cut,
    /// It has no text; whether it is whole as one of the usual streams.
    Silent { is_whole: bool },
}

/// The text of a stream, and the members of its JSON events in one object, the later ones in place of the earlier.
///
/// # Errors
/// [`Unstreamed`] if there is no text, or not all of it.
fn streamed(body: &[u8], pointer: &str) -> Result<(String, Value), Unstreamed> {
    let events = sse::Reader::whole(body).map_err(|_| Unstreamed::Silent { is_whole: false })?;
    let mut text = Text::default();
    let (mut members, mut half) = (Map::new(), None);
    let mut course = Course { begins: false, ends: false, is_usual: true, is_whole: false };
    for event in &events {
        // Some end their stream in a way of their own.
        course.ends |= event.name.as_deref().is_some_and(|name| ["end", "done", "close"].contains(&name));
        if event.data.trim() == DONE {
            course.ends = true;
            continue;
        }
        let read = lenient_json::read_next(&event.data, &mut half);
        if event.name.as_deref() == Some("error") || read.as_ref().is_ok_and(is_error) {
            text.error = Some(Told(event.data.clone()));
            continue;
        }
        match read {
            Ok(Value::String(piece)) => text.add(&piece, Place::Plain),
            Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                course.add(&value);
                let at = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
                if let Some(piece) = at(pointer).filter(|_| !(PIECES.contains(&pointer) && is_beside(&value))) {
                    text.add(piece, Place::Pointer);
                } else if let Some(piece) = PIECES.iter().find_map(|pointer| at(pointer)).filter(|_| is_text(&value)) {
                    text.add(piece, Place::Usual);
                }
                if let Value::Object(own) = value {
                    members.extend(own);
                }
            }
            _ => text.add(&event.data, Place::Plain),
        }
    }
    if let Some(error) = text.error {
        return Err(Unstreamed::Error(error));
    }
    if course.is_cut() {
        return Err(Unstreamed::Cut);
    }
    let said = text.text.filter(|text| !text.trim().is_empty());
    let text = said.ok_or(Unstreamed::Silent { is_whole: course.is_usual && course.is_whole })?;
    if let Some(name) = pointer.strip_prefix('/').filter(|name| members.contains_key(*name)) {
        members.insert(name.to_owned(), text.clone().into());
    }
    let body = if members.is_empty() || body.len() > LONGEST_REPLY { Value::Null } else { members.into() };
    Ok((text, body))
}

/// What the events of a stream say of its beginning and its end.
struct Course {
    /// Whether an event is one of [`BEGINS`].
    begins: bool,
    /// Whether it ended in whatever way.
    ends: bool,
    /// Whether all events are such as usual clients know.
    is_usual: bool,
    /// Whether an event ends the stream or a completion, as usual clients know it.
    is_whole: bool,
}

impl Course {
    fn add(&mut self, event: &Value) {
        let kind = kind_of(event).unwrap_or_default();
        let choice = event.pointer("/choices/0");
        self.begins |= BEGINS.contains(&kind);
        self.is_usual &= choice.is_some() || OWN.iter().any(|own| kind.starts_with(own));
        let is_finished = || choice.is_some_and(|choice| choice["finish_reason"].is_string());
        self.is_whole |= ENDS.contains(&kind) || kind == "message_stop" || is_finished();
    }

    /// Whether the end that its clients wait for is missing.
    fn is_cut(&self) -> bool {
        self.begins && self.is_usual && !self.ends && !self.is_whole
    }
}

/// Whether an event says that the agent failed: by its type, or by an error as its only content.
fn is_error(event: &Value) -> bool {
    let named = kind_of(event).is_some_and(|kind| FAILED.contains(&kind.to_ascii_lowercase().as_str()));
    let told = event.get("error").is_some_and(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    });
    named || told && event.as_object().is_some_and(|members| members.len() == 1)
}

/// Whether an event holds reasoning or what a tool is called with, by its type.
fn is_beside(event: &Value) -> bool {
    let kind = kind_of(event).unwrap_or_default().to_ascii_lowercase();
    BESIDE.iter().any(|word| kind.contains(word))
}

fn kind_of(event: &Value) -> Option<&str> {
    event.get("type")?.as_str()
}

/// Whether an event with a usual piece is about the text: the same members carry reasoning and arguments, by type.
fn is_text(event: &Value) -> bool {
    kind_of(event).is_none_or(|kind| {
        let delta = event.pointer("/delta/type").and_then(Value::as_str);
        OF_TEXT.contains(&kind) || delta == Some("text_delta")
    })
}

/// What the pieces of a stream come from, worst first: pieces of a better place replace those of a worse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Place {
    #[default]
    Plain,
    Usual,
    Pointer,
}

#[derive(Debug, Default)]
struct Text {
    place: Place,
    text: Option<String>,
    /// The error event after the last piece.
    error: Option<Told>,
}

impl Text {
    fn add(&mut self, piece: &str, place: Place) {
        if place < self.place {
            return;
        }
        if place > self.place {
            *self = Self { place, text: None, error: self.error.take() };
        }
        if !piece.is_empty() {
            self.error = None;
        }
        let text = self.text.get_or_insert_with(String::new);
        // Some agents repeat the whole answer so far in each event.
        if place == Place::Pointer && !text.is_empty() && piece.starts_with(text.as_str()) {
            text.clear();
        }
        text.push_str(piece);
    }
}

fn unread(response: &HttpResponse, why: &str) -> Unread {
    let kind = response.header("content-type").unwrap_or("no content type").to_owned();
    let said = secrets::beginning(String::from_utf8_lossy(&response.body).trim(), SHOWN);
    let said = if said.is_empty() { "it is empty".to_owned() } else { format!("it begins with: {said}") };
    Unread { kind, why: why.to_owned(), said, lack: Lack::Answer }
}

/// A reply that is meant as JSON says what is wrong with it.
fn no_json(response: &HttpResponse, why: &serde_json::Error) -> Unread {
    match response.body.trim_ascii_start().first() {
        Some(b'{' | b'[') => unread(response, &format!("is no JSON: {why}")),
        _ => unread(response, "is neither JSON, events nor plain text"),
    }
}

/// The agent says that it failed.
fn failed(response: &HttpResponse, Told(said): &Told) -> Unread {
    let said = format!("it says: {}", secrets::beginning(said.trim(), SHOWN));
    Unread { said, lack: Lack::Success, ..unread(response, "ends with an error") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A reply of this content type, as its body is read.
    fn read(kind: &str, body: &[u8]) -> Vec<u8> {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let body = Bytes::copy_from_slice(body);
        in_utf8(HttpResponse { status: 200, headers, body, took: Duration::ZERO, chunks: Vec::new() }).body.to_vec()
    }

    #[test]
    fn a_reply_is_read_by_its_charset_or_byte_order_mark() {
        let words = "Lån af en bådsjakke: ø";
        let latin: Vec<u8> = words.chars().map(|letter| u8::try_from(letter).expect("one byte")).collect();
        for kind in
            ["text/plain;charset=ISO-8859-1", "text/plain; charset=\"windows-1252\"", "Text/Plain; Charset=latin1"]
        {
            assert_eq!(read(kind, &latin), words.as_bytes(), "{kind}");
        }
        assert_eq!(read("application/json;charset=ISO-8859-1", words.as_bytes()), words.as_bytes(), "it is UTF-8");
        let wide: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read("text/plain; charset=utf-16le", &wide), words.as_bytes());
        for kind in ["application/json", "text/plain; charset=utf-8", ""] {
            assert_eq!(
                read(kind, "\u{feff}{\"answer\": \"ø\"}".as_bytes()),
                "{\"answer\": \"ø\"}".as_bytes(),
                "{kind}"
            );
            assert_eq!(read(kind, &latin), latin, "{kind}: nothing says how it is to be read");
        }
    }
}
