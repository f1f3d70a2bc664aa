//! Every shape of a conversation converts to the same messages, and unknown shapes are rejected by name.

use super::super::conversation::events;
use super::super::mapping::Mapping;
use super::*;
use crate::trace::{Roles, ToolOutcome, TurnOutcome, What};

/// Summarises a conversation in one line: question, call with arguments, result, answer.
fn told(messages: &Value) -> Result<String, Box<str>> {
    let told = events(messages.as_array().expect("a list"), &Mapping::default(), "m", None, &Roles::default());
    let events = told.map_err(|why| why.to_string())?.events;
    let line = |what: &What| match what {
        What::TurnStarted { query } => Some(format!("asks {query}")),
        What::ToolCalled(call) => match &call.outcome {
            ToolOutcome::Ok(result) => Some(format!("{} {} = {}", call.tool, call.arguments, json!(result)["other"])),
            _ => Some(format!("{} {} not executed", call.tool, call.arguments)),
        },
        What::TurnEnded(end) => Some(match &end.outcome {
            TurnOutcome::Answered(answer) => format!("answers {}", answer.text),
            TurnOutcome::Failed { kind, .. } => format!("fails {kind}"),
        }),
        _ => None,
    };
    Ok(events.iter().filter_map(|event| line(&event.what)).collect::<Vec<_>>().join("; "))
}

const SAME: &str = "asks Why?; find {\"q\":\"E-17\"} = {\"ohms\":38}; answers 38 ohms.";

fn shapes() -> Vec<(&'static str, Value)> {
    vec![
        (
            "OpenAI chat",
            json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{\"q\": \"E-17\"}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "{\"ohms\": 38}"},
                {"role": "assistant", "content": "38 ohms."}]),
        ),
        (
            "Anthropic",
            json!([
                {"role": "user", "content": "Why?"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "1", "name": "find", "input": {"q": "E-17"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "{\"ohms\": 38}"}]}]},
                {"role": "assistant", "content": [{"type": "text", "text": "38 ohms."}]}]),
        ),
        (
            "Gemini",
            json!([
                {"role": "user", "parts": [{"text": "Why?"}]},
                {"role": "model", "parts": [
                    {"text": "hm", "thought": true}, {"functionCall": {"name": "find", "args": {"q": "E-17"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"ohms": 38}}}]},
                {"role": "model", "parts": [{"text": "38 ohms."}]}]),
        ),
        (
            "Bedrock Converse",
            json!([
                {"role": "user", "content": [{"text": "Why?"}]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm"}}},
                    {"toolUse": {"toolUseId": "1", "name": "find", "input": {"q": "E-17"}}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"json": {"ohms": 38}}], "status": "success"}}]},
                {"role": "assistant", "content": [{"text": "38 ohms."}]}]),
        ),
        (
            "Responses items",
            json!([
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why?"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "1", "name": "find", "arguments": "{\"q\": \"E-17\"}"},
                {"type": "function_call_output", "call_id": "1", "output": "{\"ohms\": 38}"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "38 ohms.", "annotations": []}]}]),
        ),
        (
            "LangChain",
            json!([
                {"type": "human", "content": "Why?"},
                {"type": "ai", "content": "", "tool_calls": [{"name": "find", "args": {"q": "E-17"}, "id": "1", "type": "tool_call"}]},
                {"type": "tool", "content": "{\"ohms\": 38}", "tool_call_id": "1", "status": "success"},
                {"type": "ai", "content": "38 ohms."}]),
        ),
        (
            "LangChain, as constructors and with data",
            json!([
                {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"], "kwargs": {"content": "Why?"}},
                {"type": "ai", "data": {"content": [{"type": "tool_use", "id": "1", "name": "find", "input": {"q": "E-17"}}],
                    "tool_calls": [{"name": "find", "args": {"q": "E-17"}, "id": "1"}]}},
                {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"],
                    "kwargs": {"content": "{\"ohms\": 38}", "tool_call_id": "1"}},
                {"type": "AIMessageChunk", "content": [{"type": "text", "text": "38 ohms."}]}]),
        ),
    ]
}

#[test]
fn every_shape_tells_the_same_conversation() {
    for (name, messages) in shapes() {
        assert_eq!(told(&messages).as_deref(), Ok(SAME), "{name}");
        assert!(messages.as_array().expect("a list").iter().all(is_message), "{name}");
    }
}

#[test]
fn a_shell_call_of_responses_is_a_call_of_the_shell() {
    let messages = json!([
        {"type": "message", "role": "user", "content": "Why?"},
        {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}, "status": "completed"},
        {"type": "shell_call_output", "call_id": "1", "output": [{"stdout": "y"}]},
        {"type": "message", "role": "assistant", "content": "So."}]);
    let said = told(&messages).expect("a conversation");
    assert!(said.contains(r#"shell {"commands":["ls"]}"#), "{said}");
}

#[test]
fn results_with_words_after_them_are_results_and_a_query() {
    let messages = json!([
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, {"type": "tool_use", "id": "1", "name": "a", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}, {"type": "text", "text": "And now?"}]},
        {"role": "assistant", "content": "So."}]);
    assert_eq!(told(&messages).as_deref(), Ok("asks Why?; a {} = \"x\"; asks And now?; answers So."));
}

#[test]
fn tools_that_the_service_runs_are_calls_with_their_results() {
    let messages = json!([
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result", "url": "u"}]},
            {"type": "text", "text": "So."}]}]);
    let line = told(&messages).expect("told");
    assert!(line.contains("web_search {\"query\":\"q\"} = ") && line.ends_with("answers So."), "{line}");
    let messages = json!([
        {"role": "user", "content": "Why?"},
        {"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"text": "t"}], "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}]);
    let line = told(&messages).expect("told");
    assert!(line.contains("file_search {\"queries\":[\"q\"]} = [{\"text\":\"t\"}]"), "{line}");
}

#[test]
fn the_text_parts_of_a_message_are_pieces_of_one_text() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let gemini = json!([{"role": "user", "parts": [{"text": "Why"}, {"text": "?"}]}, {"role": "model", "parts": [{"text": "It costs 5"}, {"text": "0 euros."}]}]);
    let cited = json!([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": [text("It costs "), text("50 euros"), text(".")]}]);
    let apart = json!([{"role": "user", "content": [text("Why"), {"type": "image_url", "image_url": {"url": "u"}}, text("?")]},
        {"role": "assistant", "content": [text("It costs 50\u{20}"), text("euros.")]}]);
    for messages in [gemini, cited, apart] {
        assert_eq!(told(&messages).as_deref(), Ok("asks Why?; answers It costs 50 euros."), "{messages}");
    }
}

/// A conversation whose call `1` has this result, as a message.
fn resulting(result: &Value) -> Value {
    json!([
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "a", "input": {}}]},
        result,
        {"role": "assistant", "content": "So."}])
}

#[test]
fn parts_of_a_result_are_text_json_or_media_and_any_other_is_refused() {
    let anthropic = |content: Value| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": content}]});
    let bedrock =
        |part: Value| json!({"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [part]}}]});
    let item = |output: Value| json!({"type": "function_call_output", "call_id": "1", "output": output});
    for (result, read) in [
        (anthropic(json!(["x", {"type": "text", "text": "y"}])), "\"x\\ny\""),
        (
            anthropic(json!([{"type": "search_result", "source": "u", "title": "t", "content": []}])),
            "{\"type\":\"search_result\",\"source\":\"u\",\"title\":\"t\",\"content\":[]}",
        ),
        (anthropic(json!([{"type": "image", "source": {}}, {"type": "text", "text": "y"}])), "\"y\""),
        (bedrock(json!({"json": {"ohms": 38}})), "{\"ohms\":38}"),
        (bedrock(json!({"text": "y"})), "\"y\""),
        (item(json!([{"type": "input_text", "text": "y"}, {"type": "input_image", "image_url": "u"}])), "\"y\""),
        (item(json!("y")), "\"y\""),
        (json!({"type": "shell_call_output", "call_id": "1", "output": [{"stdout": "y"}]}), "[{\"stdout\":\"y\"}]"),
    ] {
        let expected = format!("asks Why?; a {{}} = {read}; answers So.");
        assert_eq!(told(&resulting(&result)).as_deref(), Ok(expected.as_str()), "{result}");
    }
    for (result, seen) in [
        (anthropic(json!([{"type": "hologram", "text": "y"}])), "a part of the type `hologram`"),
        (anthropic(json!([{"odd": 1}])), "a part that is an object with `odd`"),
        (anthropic(json!({"ohms": 38})), "a part that is an object with `ohms`"),
        (
            anthropic(json!([{"type": "tool_use", "id": "2", "name": "b", "input": {}}])),
            "a part of the type `tool_use`",
        ),
        (bedrock(json!({"odd": 1})), "a part that is an object with `odd`"),
        (item(json!([{"type": "hologram"}])), "a part of the type `hologram`"),
        (
            json!({"role": "tool", "tool_call_id": "1", "content": [{"type": "hologram"}]}),
            "a part of the type `hologram`",
        ),
        (
            json!({"type": "tool", "tool_call_id": "1", "content": [{"type": "hologram"}]}),
            "a part of the type `hologram`",
        ),
    ] {
        let mistake = told(&resulting(&result)).expect_err(seen);
        assert!(mistake.contains("message 3") && mistake.contains(seen) && mistake.contains("LangChain"), "{mistake}");
    }
}

#[test]
fn guarded_and_cited_words_are_words_and_calls_in_content_of_langchain_are_calls() {
    let messages = json!([
        {"role": "user", "content": [{"guardContent": {"text": {"text": "Why?", "qualifiers": ["query"]}}}]},
        {"type": "ai", "content": [{"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"}],
            "tool_calls": [{"name": "a", "args": {}, "id": "1"}]},
        {"type": "tool", "content": "x", "tool_call_id": "1"},
        {"type": "ai", "content": [{"type": "tool_call", "id": "2", "name": "b", "args": {}}]},
        {"type": "tool", "content": "y", "tool_call_id": "2"},
        {"role": "assistant", "content": [{"citationsContent": {"content": [{"text": "S"}, {"text": "o."}], "citations": []}}]}]);
    assert_eq!(told(&messages).as_deref(), Ok("asks Why?; a {} = \"x\"; b {} = \"y\"; answers So."));
}

#[test]
fn what_is_no_shape_is_refused_with_what_was_seen_and_what_is_read() {
    for (message, seen) in [
        (json!({"speaker": "me", "words": "hi"}), "an object with `speaker`, `words`"),
        (json!({"type": "hologram_call", "call_id": "1"}), "an item of the type `hologram_call`"),
        (
            json!({"role": "assistant", "content": [{"type": "tool-call", "toolName": "x"}]}),
            "a part of the type `tool-call`",
        ),
        (json!({"role": "assistant", "content": [{"odd": 1}]}), "a part that is an object with `odd`"),
        (
            json!({"role": "assistant", "content": "", "toolInvocations": [{"toolName": "x"}]}),
            "the member `toolInvocations`",
        ),
        (
            json!({"role": "user", "parts": [{"executableCode": {"code": "x"}}]}),
            "a part that is an object with `executableCode`",
        ),
        (
            json!({"lc": 1, "type": "constructor", "id": ["x", "RemoveMessage"], "kwargs": {}}),
            "a LangChain object `RemoveMessage`",
        ),
        (json!({}), "an empty object"),
        (json!({"role": "assistant", "blocks": [{"block_type": "text", "text": "hi"}]}), "a message without `content`"),
        (json!({"type": "ai", "text": "hi"}), "a message without `content`"),
        (
            json!({"role": "assistant", "content": "hi", "additional_kwargs": {"tool_calls": [{"id": "1"}]}}),
            "the member `additional_kwargs.tool_calls`",
        ),
        (
            json!({"role": "assistant", "content": "", "invalid_tool_calls": [{"name": "x"}]}),
            "the member `invalid_tool_calls`",
        ),
        (json!({"type": "item_reference", "id": "1"}), "an item of the type `item_reference`"),
        (json!({"type": "compaction", "encrypted_content": "x"}), "an item of the type `compaction`"),
        (json!({"type": "function_call", "call_id": "1", "arguments": "{}"}), "`function_call` without a name"),
    ] {
        let mistake = recognise(&message).expect_err(seen).to_string();
        assert!(mistake.contains(seen), "{mistake}");
        for shape in ["OpenAI chat", "Anthropic", "Gemini", "Bedrock Converse", "Responses items", "LangChain"] {
            assert!(mistake.contains(shape), "{mistake}");
        }
    }
}

#[test]
fn a_medium_is_no_text_and_is_told_and_an_answer_of_a_medium_alone_is_refused() {
    for part in [
        json!({"type": "image_url", "image_url": {"url": "u"}}),
        json!({"inlineData": {"data": "x"}}),
        json!({"image": {}}),
    ] {
        let seen = recognise(&json!({"role": "user", "content": [{"text": "Look:"}, part]})).expect("read");
        assert_eq!((seen.messages[0]["content"].as_str(), seen.media.len()), (Some("Look:"), 1), "{part}");
        assert!(recognise(&json!({"role": "assistant", "content": [part]})).is_err(), "{part}");
    }
    let heard = |audio: Value| recognise(&json!({"role": "assistant", "content": null, "audio": audio}));
    let seen = heard(json!({"id": "a", "transcript": "So."})).expect("read");
    assert_eq!((seen.messages[0]["content"].as_str(), seen.media.len()), (Some("So."), 1));
    assert!(heard(json!({"id": "a"})).is_err());
    assert!(heard(Value::Null).is_ok(), "an empty answer");
}

#[test]
fn parts_with_every_member_and_custom_calls_are_read() {
    let part = |name: &str, value: Value| {
        let mut part = json!({"text": null, "thought": null, "function_call": null, "function_response": null,
            "inline_data": null, "type": null});
        part[name] = value;
        part
    };
    let messages = json!([
        {"role": "user", "parts": [part("text", json!("Why?"))]},
        {"role": "model", "parts": [part("function_call", json!({"id": null, "name": "a", "args": {}}))]},
        {"role": "user", "parts": [part("function_response", json!({"name": "a", "response": {"x": 1}}))]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "custom", "custom": {"name": "b", "input": "words"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "y"},
        {"role": "model", "parts": [part("text", json!("So."))]}]);
    let expected = "asks Why?; a {} = {\"x\":1}; b {\"input\":\"words\"} = \"y\"; answers So.";
    assert_eq!(told(&messages).as_deref(), Ok(expected));
}
