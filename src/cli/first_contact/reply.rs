//! Where the reply of an agent of which nothing is known holds its answer and its sources.

use crate::flow::external::{AnswerAt, Unread, read_reply};
use crate::platform::lenient_json;
use crate::provider::chat::{ChatResponse, ToolCall};
use crate::provider::observed;
use crate::scenario::external::OPENAI_SHAPE;
use crate::transport::{HttpResponse, Passed, sse};
use serde_json::Value;

/// Usual names of an answer, the most usual first.
pub(super) const ANSWERS: [&str; 13] = [
    "answer", "response", "reply", "output", "output_text", "message", "content", "text", "result", "completion",
    "final_answer", "final_output", "token",
];
/// Usual names of a list of sources.
const SOURCES: [&str; 7] =
    ["sources", "citations", "references", "source_documents", "documents", "docs", "source_nodes"];
/// Levels of a reply that are searched.
const DEEPEST: usize = 5;

/// What was found in a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// Value of `target.answer`.
    pub(super) answer: String,
    /// Value of `target.sources`.
    pub(super) sources: Option<String>,
    /// The content in words.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// The shape of a reply; `passed` are the requests that the agent made for it.
///
/// # Errors
/// Content type and beginning of a reply that cannot be read.
pub(super) fn shape(reply: &HttpResponse, question: &str, passed: &[Passed]) -> Result<Shape, Unread> {
    let at = |pointer: &str| {
        let answer = if pointer == OPENAI_SHAPE { AnswerAt::OpenAi } else { AnswerAt::Pointer(pointer.to_owned()) };
        read_reply(reply, &answer).map(|(text, _)| text)
    };
    let default = |text| Ok(Shape { answer: "/answer".to_owned(), sources: None, kind: "JSON", text });
    let events = sse::is_stream(&reply.headers, &reply.body);
    let body = if events { None } else { lenient_json::read(&reply.body).ok() };
    let said = said(passed);
    let names = ANSWERS.map(|name| format!("/{name}"));
    // The default comes first: plain text and events of the usual shapes need no pointer.
    let mut found = names.iter().filter_map(|pointer| Some((pointer, at(pointer).ok()?)));
    if body.as_ref().is_some_and(Value::is_array)
        && let Some((pointer, text)) = found.find(|(_, text)| said.iter().any(|said| said.trim() == text.trim()))
    {
        return Ok(Shape { answer: pointer.clone(), sources: None, kind: "JSON in pieces", text });
    }
    let Some(body) = body.filter(|body| !body.is_string()) else {
        let kind = if events { "events" } else { "text" };
        let found = found.next();
        let Some((pointer, text)) = found else { return default(at("/answer")?) };
        return Ok(Shape { answer: pointer.clone(), sources: None, kind, text });
    };
    let sources = lists(&body).into_iter().next();
    if body.pointer("/choices/0/message/content").is_some_and(Value::is_string) {
        let text = at(OPENAI_SHAPE)?;
        return Ok(Shape { answer: OPENAI_SHAPE.to_owned(), sources, kind: "the shape of Chat Completions", text });
    }
    let mut texts = Vec::new();
    leaves(&body, String::new(), DEEPEST, &mut texts);
    let scored = texts.into_iter().filter(|(_, text)| !text.trim().is_empty() && *text != question);
    let scored = scored.map(|(pointer, text)| (score(&pointer, &text, &said), pointer));
    let best = scored.filter(|(score, _)| *score > 0).max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    let Some((_, pointer)) = best else { return default(at("/answer")?) };
    let text = at(&pointer)?;
    Ok(Shape { answer: pointer, sources, kind: "JSON", text })
}

fn score(pointer: &str, text: &str, said: &[String]) -> i32 {
    let name = pointer.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let usual = (0..).zip(ANSWERS).find(|(_, known)| *known == name).map_or(0, |(place, _): (i32, _)| 40 - place);
    let (trimmed, long) = (text.trim(), |one: &str| one.chars().count() > 8);
    let by_model = if said.iter().any(|said| said.trim() == trimmed) {
        100
    } else if said
        .iter()
        .any(|said| long(said) && trimmed.contains(said.trim()) || long(trimmed) && said.contains(trimmed))
    {
        60
    } else {
        0
    };
    let depth = i32::try_from(pointer.matches('/').count()).unwrap_or(i32::MAX);
    let sentence = i32::from(trimmed.contains(' ')) * 5;
    if usual + by_model == 0 { 0 } else { usual + by_model + sentence - depth }
}

/// What the model answered, the last answer first.
fn answers(passed: &[Passed]) -> impl Iterator<Item = ChatResponse> {
    let completions = passed.iter().rev().filter(|one| observed::is_completion(one.request.profile.name));
    completions.filter_map(|one| observed::completion(&one.request, &one.result).result.ok())
}

/// The texts in the arguments of a call that are not empty.
fn texts_of(call: &ToolCall) -> impl Iterator<Item = String> {
    let mut texts = Vec::new();
    leaves(&serde_json::from_str(&call.arguments).unwrap_or_default(), String::new(), DEEPEST, &mut texts);
    texts.into_iter().map(|(_, text)| text).filter(|text| !text.trim().is_empty())
}

/// What the model said last: its text, and the texts in the arguments of its calls.
fn said(passed: &[Passed]) -> Vec<String> {
    let mut said = Vec::new();
    for answer in answers(passed) {
        said.extend(Some(answer.content).filter(|text| !text.trim().is_empty()));
        said.extend(answer.calls.iter().flat_map(texts_of));
    }
    said
}

/// The tool whose arguments hold the answer, if the model's last completion calls it: no result of it is sent.
pub(super) fn responding(passed: &[Passed], answer: &str) -> Option<String> {
    let last = answers(passed).next()?;
    let gives = |call: &ToolCall| texts_of(call).any(|text| text.trim() == answer.trim());
    last.calls.into_iter().find(gives).map(|call| call.name)
}

fn leaves(value: &Value, at: String, depth: usize, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((at, text.clone())),
        Value::Array(items) if depth > 0 => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, format!("{at}/{index}"), depth - 1, found);
            }
        }
        Value::Object(members) if depth > 0 => {
            for (name, item) in members {
                leaves(item, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), depth - 1, found);
            }
        }
        _ => {}
    }
}

/// Pointers to the lists of sources, in the order of the usual names.
fn lists(body: &Value) -> Vec<String> {
    let below = body.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
    let places: Vec<String> = std::iter::once(String::new()).chain(below.map(|(name, _)| format!("/{name}"))).collect();
    let all = SOURCES.iter().flat_map(|name| places.iter().map(move |place| format!("{place}/{name}")));
    let usable = |item: &Value| {
        let named = ["id", "source", "url", "path", "filename", "file", "doc_id", "document_id", "chunk_id"];
        item.is_string() || named.iter().any(|name| item.get(*name).is_some_and(Value::is_string))
    };
    all.filter(|at| body.pointer(at).and_then(Value::as_array).is_some_and(|list| list.iter().all(usable))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::openai_chat;
    use crate::transport::{HttpRequest, Service};
    use bytes::Bytes;
    use serde_json::json;
    use std::time::Duration;

    fn found(kind: &str, body: &str) -> Result<Shape, Unread> {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let body = Bytes::copy_from_slice(body.as_bytes());
        shape(&HttpResponse { status: 200, headers, body, took: Duration::ZERO, chunks: Vec::new() }, "How long?", &[])
    }

    #[test]
    fn answers_and_sources_are_found_by_their_usual_names() {
        for (body, answer, sources) in [
            (r#"{"question":"How long?","answer":"60 months","sources":["a.md"]}"#, "/answer", Some("/sources")),
            (
                r#"{"data":{"response":"60 months","id":"x"},"citations":[{"url":"https://a"}]}"#,
                "/data/response",
                Some("/citations"),
            ),
            (r#"{"id":"7","message":{"role":"assistant","content":"60 months"}}"#, "/message/content", None),
            (r#"{"reply":"60 months","documents":[{"n":1}]}"#, "/reply", None),
            (r#"{"object":"chat.completion","choices":[{"message":{"content":"60 months"}}]}"#, "openai", None),
        ] {
            let found = found("application/json", body).expect(body);
            assert_eq!(
                (found.answer.as_str(), found.sources.as_deref(), found.text.as_str()),
                (answer, sources, "60 months")
            );
        }
        let events = "data: {\"delta\":\"60 \"}\n\ndata: {\"delta\":\"months\"}\n\n";
        assert_eq!(
            found("text/event-stream", events).map(|found| (found.kind, found.text)).ok(),
            Some(("events", "60 months".into()))
        );
        assert_eq!(
            found("text/plain", "60 months").map(|found| (found.kind, found.text)).ok(),
            Some(("text", "60 months".into()))
        );
    }

    /// A completion that the agent got: one call of an output tool, streamed.
    fn streamed(arguments: &Value) -> Passed {
        let call = json!({"index": 0, "id": "1", "type": "function",
            "function": {"name": "final_result", "arguments": arguments.to_string()}});
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "How long?"}]});
        let profile = openai_chat::DIALECT.profile;
        let request = HttpRequest::new(Service::Model, profile, "POST", "/chat/completions", body);
        let reply = HttpResponse {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            body: format!("data: {chunk}\n\ndata: [DONE]\n\n").into(),
            took: Duration::ZERO,
            chunks: Vec::new(),
        };
        Passed { request, result: Ok(reply), at: None }
    }

    #[test]
    fn an_answer_in_the_arguments_of_a_streamed_call_is_found_and_so_is_the_tool_that_gives_it() {
        let arguments = json!({"advice": "It is 60 months.", "risk": 1});
        let reply = HttpResponse {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: arguments.to_string().into(),
            took: Duration::ZERO,
            chunks: Vec::new(),
        };
        let passed = [streamed(&arguments)];
        let shape = shape(&reply, "How long?", &passed).expect("an answer");
        assert_eq!((shape.answer.as_str(), shape.text.as_str()), ("/advice", "It is 60 months."));
        assert_eq!(responding(&passed, &shape.text).as_deref(), Some("final_result"));
        assert_eq!(responding(&passed, "Something else."), None);
    }

    #[test]
    fn a_reply_without_an_answer_says_its_content_type_and_its_beginning() {
        for (kind, body) in [("text/html", "<html>Sign in"), ("application/json", r#"{"ok":true,"echo":"How long?"}"#)]
        {
            let why = found(kind, body).expect_err(body).to_string();
            assert!(why.contains(kind) && why.contains("it begins with"), "{why}");
        }
    }
}
