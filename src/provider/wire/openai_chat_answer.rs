//! Decodes answers of Chat Completions: text, calls, parts to send back, finish reason and usage.

use super::call_ids::CallIds;
use super::document::{Reader, WireError, text, tokens};
use super::openai_chat_tools::{is_custom, read_calls};
use super::{openai_chat, openai_chat_legacy as legacy, passthrough};
use crate::provider::chat::{ChatResponse, Finish, Passthrough, Piece, Usage};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Members that servers want back in addition to text and calls: signed reasoning.
const SENT_BACK: [&str; 3] = ["reasoning_details", "reasoning_content", "thinking_blocks"];

/// Decodes a whole response.
pub(super) fn read(dialect: &'static str, body: &Value) -> Result<ChatResponse, WireError> {
    if let Some(message) = super::error::filtered(body) {
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let (refusal, finish, usage) = (Some(message), Finish::ContentFilter, usage(body));
        return Ok(ChatResponse { model, refusal, finish, usage, ..ChatResponse::default() });
    }
    if let Some(reported) = super::error::reported(body).or_else(|| super::error::broken_off(body)) {
        return Err(reported);
    }
    let reader = Reader(dialect);
    let document = reader.object("", body)?;
    let choice = reader.list(document, "choices")?.first();
    let choice = choice.ok_or_else(|| reader.wrong("/choices/0", "a choice", None))?;
    let filtered = choice.get("finish_reason").is_some_and(|reason| reason == "content_filter");
    let none = Map::new();
    let message = match choice.get("message") {
        Some(Value::Object(message)) => message,
        // Azure's filter removes the whole answer that it stopped.
        None | Some(Value::Null) if filtered => &none,
        other => return Err(reader.wrong("/choices/0/message", "an object", other)),
    };
    let (content, mut pieces) = openai_chat::read_content(message.get("content"));
    let mut calls = read_calls(message, &mut pieces);
    legacy::read_call(message, &mut calls, &mut pieces, &mut CallIds::default());
    let refusal = Some(text(message, "refusal")).filter(|words| !words.is_empty()).map(str::to_owned);
    let refusal = refusal.or_else(|| (filtered && message.is_empty()).then(|| filtered_for(choice)));
    Ok(ChatResponse {
        model: text(document, "model").to_owned(),
        passthrough: sent_back(dialect, message, pieces),
        finish: finish(choice.get("finish_reason").and_then(Value::as_str), !calls.is_empty()),
        content,
        refusal,
        calls,
        usage: usage(body),
    })
}

/// Categories that a content filter reports.
fn filtered_for(choice: &Value) -> String {
    let results = choice.get("content_filter_results").and_then(Value::as_object).into_iter().flatten();
    let found: Vec<&str> =
        results.filter(|(_, result)| result["filtered"] == true).map(|(name, _)| name.as_str()).collect();
    if found.is_empty() {
        "the content filter removed the answer".to_owned()
    } else {
        format!("the content filter removed the answer: {}", found.join(", "))
    }
}

/// Parts to send back: signed reasoning, a list of parts, and additional members of a call.
fn sent_back(dialect: &str, message: &Map<String, Value>, pieces: Vec<Piece>) -> Option<Arc<Passthrough>> {
    let mut fields = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
    let list = message.get("content").is_some_and(Value::is_array);
    let none = message.get("content").is_none_or(|content| content.is_null() || content == "");
    let content = if list {
        json!([])
    } else if none {
        Value::Null
    } else {
        json!("")
    };
    fields.insert("content".to_owned(), content);
    for key in SENT_BACK {
        // DeepSeek wants its reasoning back between a call and its result, and rejects it in a finished turn.
        let wanted = key != "reasoning_content" || pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
        if let Some(value) = message.get(key).filter(|value| wanted && !value.is_null()) {
            fields.insert(key.to_owned(), value.clone());
        }
    }
    let signed = pieces.iter().any(
        |piece| matches!(piece, Piece::Call { wire } if wire.get("extra_content").is_some() || is_custom(wire) || legacy::is_place(wire)),
    );
    if fields.len() == 2 && !list && !signed {
        return None;
    }
    let pieces = pieces.into_iter().map(|piece| match piece {
        Piece::Call { mut wire } => {
            // The index is used only in streams; servers reject it in a request.
            wire.as_object_mut().map(|call| call.shift_remove("index"));
            Piece::Call { wire }
        }
        piece => piece,
    });
    passthrough::keep(dialect, fields, pieces.collect())
}

fn finish(reason: Option<&str>, calls: bool) -> Finish {
    match reason {
        Some("stop") => Finish::Stop,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        Some(other) => Finish::Other(other.to_owned()),
        None if calls => Finish::ToolCalls,
        None => Finish::Other(String::new()),
    }
}

fn usage(body: &Value) -> Usage {
    let usage = body.get("usage").filter(|usage| usage.is_object()).or_else(|| body.pointer("/x_groq/usage"));
    let Some(usage) = usage else { return Usage::default() };
    let input = tokens(usage, "/prompt_tokens");
    let output = tokens(usage, "/completion_tokens");
    let reasoning = tokens(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    // xAI counts reasoning separately from the completion; only the total includes it.
    let apart = tokens(usage, "/total_tokens").zip(input).zip(output).is_some_and(|((total, input), output)| {
        reasoning > 0 && input.checked_add(output).and_then(|sum| sum.checked_add(reasoning)) == Some(total)
    });
    let cached =
        ["/prompt_tokens_details/cached_tokens", "/cached_tokens", "/num_cached_tokens", "/prompt_cache_hit_tokens"];
    // Mistral counts audio in the total alone.
    let audio = tokens(usage, "/prompt_audio_seconds").is_some_and(|seconds| seconds > 0);
    let heard = || tokens(usage, "/total_tokens")?.checked_sub(output?).filter(|heard| Some(*heard) > input);
    Usage {
        input: if audio { heard().or(input) } else { input },
        cached: cached.iter().find_map(|pointer| tokens(usage, pointer)),
        written: None,
        output: output.map(|output| if apart { output + reasoning } else { output }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_that_only_the_total_counts_is_input() {
        let of = |seconds: Value| {
            let counts = json!({"prompt_tokens": 4, "completion_tokens": 635, "total_tokens": 3264, "prompt_audio_seconds": seconds});
            usage(&json!({"usage": counts}))
        };
        assert_eq!(of(json!(203)), Usage { input: Some(2629), output: Some(635), ..Usage::default() });
        for silent in [json!(0), Value::Null, json!({})] {
            assert_eq!(of(silent).input, Some(4));
        }
        let within =
            json!({"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32, "prompt_audio_seconds": 2});
        assert_eq!(usage(&json!({ "usage": within })).input, Some(30));
    }
}
