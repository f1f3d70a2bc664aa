//! Splits a completion into the chunks of a Chat Completions stream.

use serde_json::{Value, json};

/// Characters of a call's arguments per chunk.
const PIECE: usize = 24;

/// The server-sent events of a whole completion, word by word; `usage` adds the chunk with the token counts.
pub(super) fn pieces(completion: &Value, usage: bool) -> Vec<String> {
    let event = |choices: Value, tokens: &Value| {
        let mut chunk = completion.clone();
        chunk["object"] = json!("chat.completion.chunk");
        chunk["choices"] = choices;
        chunk["usage"] = tokens.clone();
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: &Value| {
        event(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), &Value::Null)
    };
    let none = Value::Null;
    let message = completion.pointer("/choices/0/message").unwrap_or(&none);
    let mut events = vec![choice(json!({"role": "assistant", "content": ""}), &none)];
    for field in ["content", "refusal"] {
        let text = message.get(field).and_then(Value::as_str).unwrap_or_default();
        events.extend(text.split_inclusive(' ').map(|word| choice(json!({ field: word }), &none)));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    for (index, call) in calls.enumerate() {
        let mut opening = call.clone();
        opening["index"] = json!(index);
        opening["function"]["arguments"] = json!("");
        events.push(choice(json!({"tool_calls": [opening]}), &none));
        let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
        let characters: Vec<char> = arguments.chars().collect();
        events.extend(characters.chunks(PIECE).map(|piece| {
            let piece: String = piece.iter().collect();
            choice(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), &none)
        }));
    }
    events.push(choice(json!({}), completion.pointer("/choices/0/finish_reason").unwrap_or(&none)));
    if usage {
        events.push(event(json!([]), completion.get("usage").unwrap_or(&none)));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::openai_chat;

    #[test]
    fn the_pieces_add_up_to_the_completion() {
        let arguments = "{\"query\":\"Wärme und Kälte im Gewächshaus, heute\"}";
        let message = json!({"role": "assistant", "content": "Two words.", "refusal": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]});
        let whole = json!({"id": "x", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}});
        let mut assembler = openai_chat::DIALECT.assembler();
        let stream = pieces(&whole, true).concat();
        for event in crate::transport::sse::read_all(stream.as_bytes()).expect("short") {
            assembler.push(&event).expect("an event");
        }
        assert!(assembler.complete());
        let read = openai_chat::DIALECT.decode_response(&assembler.document()).expect("decodes");
        let plain = openai_chat::DIALECT.decode_response(&whole).expect("decodes");
        assert_eq!(
            (read.content, read.calls, read.finish, read.usage),
            (plain.content, plain.calls, plain.finish, plain.usage)
        );
        assert!(pieces(&whole, false).iter().all(|event| !event.contains("prompt_tokens")));
    }
}
