//! Both wire formats, on the service's side: OpenAI Chat Completions and Perplexity's Agent API.
//!
//! Requests are decoded tolerantly, and errors are answered like those of the real services, with status 400 and an
//! `error`. Token counts are estimates: a quarter of the characters.

use super::model::Completion;
use super::search::SearchAnswer;
use crate::provider::chat::{Finish, Message, Role, ToolCall, ToolChoice, ToolDefinition};
use crate::provider::wire::WireError;
use serde_json::{Value, json};

/// Reason why a request is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the body is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("`messages` must hold at least one message")]
    NoMessages,
    #[error("a message has the role {0:?}; known: system, user, assistant, tool")]
    UnknownRole(Option<String>),
    #[error("`tool_choice` cannot be `{0}`")]
    UnknownChoice(String),
    #[error("`tool_choice` names `{0}`, which is not among the tools")]
    ChoiceNotOffered(String),
    #[error("this simulator streams completions only, not searches; send `stream: false`")]
    SearchStream,
    #[error("`input` must be a text or a list of messages")]
    NoQuestion,
    #[error("give `model` or `preset`")]
    NoModel,
    #[error(transparent)]
    Embeddings(#[from] WireError),
}

/// A decoded chat request.
#[derive(Debug)]
pub(super) struct ChatBody {
    /// The requested model.
    pub model: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools.
    pub tools: Vec<ToolDefinition>,
    /// Which tools may or must be called.
    pub choice: ToolChoice,
    /// Whether a stream is requested.
    pub stream: bool,
    /// Whether the stream should end with token counts.
    pub stream_usage: bool,
}

fn text_of(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Text given as a string, or as a list of parts with `text`.
fn flat(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| text_of(part, "text")).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Decodes a Chat Completions request.
///
/// # Errors
/// The error, in words.
pub(super) fn read_chat(body: &Value) -> Result<ChatBody, RequestError> {
    let list = |key: &str| body.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let messages: Vec<Message> = list("messages").iter().map(read_message).collect::<Result<_, _>>()?;
    if messages.is_empty() {
        return Err(RequestError::NoMessages);
    }
    let tools = list("tools").iter().filter_map(|tool| tool.get("function")).map(|function| ToolDefinition {
        name: text_of(function, "name"),
        description: text_of(function, "description"),
        parameters: function.get("parameters").cloned().unwrap_or(Value::Null),
    });
    let tools: Vec<ToolDefinition> = tools.collect();
    let choice = match body.get("tool_choice") {
        None | Some(Value::Null) => ToolChoice::Auto,
        Some(Value::String(word)) => match word.as_str() {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            "none" => ToolChoice::None,
            other => return Err(RequestError::UnknownChoice(other.to_owned())),
        },
        Some(map) => {
            ToolChoice::Named(map.get("function").map(|function| text_of(function, "name")).unwrap_or_default())
        }
    };
    if let ToolChoice::Named(name) = &choice
        && !tools.iter().any(|tool| tool.name == *name)
    {
        return Err(RequestError::ChoiceNotOffered(name.clone()));
    }
    let flag = |pointer: &str| body.pointer(pointer).and_then(Value::as_bool) == Some(true);
    let (stream, stream_usage) = (flag("/stream"), flag("/stream_options/include_usage"));
    Ok(ChatBody { model: text_of(body, "model"), messages, tools, choice, stream, stream_usage })
}

fn read_message(message: &Value) -> Result<Message, RequestError> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => return Err(RequestError::UnknownRole(other.map(str::to_owned))),
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let calls = calls.iter().map(|call| {
        let function = call.get("function").unwrap_or(&Value::Null);
        ToolCall { id: text_of(call, "id"), name: text_of(function, "name"), arguments: text_of(function, "arguments") }
    });
    let answers = message.get("tool_call_id").and_then(Value::as_str).map(str::to_owned);
    Ok(Message { role, content: flat(message.get("content")), calls: calls.collect(), answers, passthrough: None })
}

fn tokens(characters: usize) -> u64 {
    characters.div_ceil(4) as u64
}

/// Encodes a Chat Completions response; `id` is unique per completion.
pub(super) fn write_chat(request: &ChatBody, completion: &Completion, id: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": Value::Null, "refusal": completion.refusal});
    if !completion.text.is_empty() {
        message["content"] = json!(completion.text);
    }
    if !completion.calls.is_empty() {
        let calls = completion.calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        message["tool_calls"] = calls.collect();
    }
    let finish = match &completion.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    };
    let characters = |message: &Message| {
        message.content.len() + message.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
    };
    let tools = request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len());
    let read = tokens(request.messages.iter().map(characters).sum::<usize>() + tools.sum::<usize>());
    let said = completion.text.len() + completion.refusal.as_ref().map_or(0, String::len);
    let wrote =
        tokens(said + completion.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>());
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "logprobs": Value::Null, "finish_reason": finish}],
        "usage": {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote},
    })
}

/// A decoded search request.
#[derive(Debug)]
pub(super) struct AgentBody {
    /// The requested model.
    pub model: String,
    /// The question: all items of `input` in one text.
    pub question: String,
}

impl AgentBody {
    /// The question without context: the text before the first empty line.
    pub(super) fn asked(&self) -> &str {
        self.question.split("\n\n").next().unwrap_or_default()
    }
}

/// Decodes an Agent API request.
///
/// # Errors
/// The error, in words.
pub(super) fn read_agent(body: &Value) -> Result<AgentBody, RequestError> {
    if body.get("stream").and_then(Value::as_bool) == Some(true) {
        return Err(RequestError::SearchStream);
    }
    let question = match body.get("input") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| flat(item.get("content"))).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    if question.trim().is_empty() {
        return Err(RequestError::NoQuestion);
    }
    let model = body.get("model").or_else(|| body.get("preset")).and_then(Value::as_str);
    Ok(AgentBody { model: model.ok_or(RequestError::NoModel)?.to_owned(), question })
}

/// Encodes an Agent API response; annotations mark each `[n]` in the text, in characters.
pub(super) fn write_agent(request: &AgentBody, found: &SearchAnswer<'_>, id: &str) -> Value {
    let results: Vec<Value> = found
        .results
        .iter()
        .enumerate()
        .map(|(at, page)| {
            let mut result =
                json!({"id": at + 1, "title": page.title, "url": page.url, "snippet": page.snippet, "source": "web"});
            if let Some(date) = &page.date {
                result["date"] = json!(date);
            }
            result
        })
        .collect();
    let annotations: Vec<Value> = found
        .results
        .iter()
        .enumerate()
        .filter_map(|(at, page)| {
            let mark = format!("[{}]", at + 1);
            let start = found.answer.split_once(&mark)?.0.chars().count();
            let end = start + mark.chars().count();
            Some(json!({"type": "url_citation", "url": page.url, "title": page.title, "start_index": start, "end_index": end}))
        })
        .collect();
    let shown: usize = found.results.iter().map(|page| page.title.len() + page.snippet.len()).sum();
    let (read, wrote) = (tokens(request.question.len() + shown), tokens(found.answer.len()));
    json!({
        "id": format!("resp_{id}"),
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request.model,
        "error": Value::Null,
        "output": [
            {"type": "search_results", "queries": [request.question], "results": results},
            {"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": found.answer, "annotations": annotations}]},
        ],
        "usage": {
            "input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote,
            "tool_calls_details": {"web_search": {"invocation": 1}},
        },
    })
}

/// An error body in the format of both services.
pub(super) fn write_error(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": Value::Null, "code": kind}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::behaviour::Page;
    use std::time::Duration;

    #[test]
    fn annotations_count_characters_not_bytes() {
        let page = Page { title: "T".into(), url: "https://example.org/".into(), snippet: "s".into(), date: None };
        let pages = [page];
        let found =
            SearchAnswer { answer: "Öl für 3 € [1].", results: &pages, latency: Duration::ZERO, failure: None };
        let body = write_agent(&AgentBody { model: "m".into(), question: "q".into() }, &found, "1");
        let mark = &body["output"][1]["content"][0]["annotations"][0];
        assert_eq!((mark["start_index"].as_u64(), mark["end_index"].as_u64()), (Some(11), Some(14)));
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_with_the_reason() {
        for (body, part) in [
            (json!({}), "messages"),
            (json!({"messages": [{"role": "wizard", "content": "x"}]}), "wizard"),
            (
                json!({"messages": [{"role": "user", "content": "x"}],
                       "tool_choice": {"type": "function", "function": {"name": "gone"}}}),
                "gone",
            ),
        ] {
            let error = read_chat(&body).expect_err(part);
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(read_agent(&json!({"input": "x"})).expect_err("no model").to_string().contains("model"));
        let read = read_agent(&json!({"model": "m", "input": "frost?\n\nKnown already:\nsun"})).expect("valid");
        assert_eq!(read.asked(), "frost?");
    }

    #[test]
    fn content_parts_and_null_content_are_read() {
        let body = json!({"model": "m", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
        ]});
        let read = read_chat(&body).expect("valid");
        assert_eq!(read.messages[0].content, "a\nb");
        assert_eq!(read.messages[1].calls[0].name, "f");
    }
}
