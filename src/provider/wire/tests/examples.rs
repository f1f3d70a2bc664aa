//! A request with all features of each dialect, and an answer, whole and streamed: the inputs of the tests of all dialects.

use crate::provider::wire::Dialect;
use serde_json::{Value, json};

/// Inputs of these tests for one dialect.
pub(in crate::provider) struct Example {
    /// A typical request, with the features that only this dialect has.
    pub request: Value,
    /// An answer: the same text, call and usage in every dialect.
    pub whole: Value,
    /// The same answer as the events of a stream.
    pub events: Vec<Value>,
}

impl Dialect {
    /// The example of this dialect, or of the one that it is a variant of.
    pub(in crate::provider) fn example(&self) -> Example {
        match self.name() {
            "openai-responses" | "perplexity-agent" => openai_responses(),
            "anthropic-messages" => anthropic_messages(),
            "gemini" => gemini(),
            "ollama" => ollama(),
            "bedrock-converse" => bedrock_converse(),
            _ => openai_chat(),
        }
    }
}

fn openai_chat() -> Example {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let chat = |message: Value| {
        json!({"id": "c", "model": "m-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
    };
    let delta = |delta: Value, finish: Value| json!({"id": "c", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let call = |index: Value, arguments: &str| json!([{"index": index, "id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}]);
    Example {
        request: json!({
        "model": "m", "temperature": 0, "max_completion_tokens": 9, "stream": true, "n": 1,
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Look "}, {"type": "image_url", "image_url": {"url": "u"}}, {"type": "text", "text": "here"}]},
            {"role": "assistant", "content": null, "reasoning_details": [{"type": "reasoning.encrypted", "data": "s"}],
             "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"q\": 1}"}, "extra_content": {"google": {"thought_signature": "s"}}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema, "strict": true}}, {"type": "web"}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}}),
        whole: chat(json!({"role": "assistant", "content": "Hello", "tool_calls": call(json!(0), "{\"q\": 1}")})),
        events: vec![
            delta(json!({"role": "assistant", "content": "Hel"}), Value::Null),
            delta(json!({"content": "lo", "tool_calls": call(json!(0), "{\"q\"")}), Value::Null),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}), Value::Null),
            delta(json!({}), json!("tool_calls")),
            json!({"id": "c", "model": "m-1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ],
    }
}

fn openai_responses() -> Example {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let item = |arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": arguments, "status": "completed"});
    let said = json!({"type": "message", "id": "s", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hello", "annotations": []}]});

    let whole = json!({"id": "r", "object": "response", "model": "m-1", "status": "completed", "error": null,
            "output": [said, item("{\"q\": 1}")], "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}});
    let events = vec![
        json!({"type": "response.created", "response": {"id": "r", "object": "response", "model": "m-1", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "s", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "s", "delta": "Hello"}),
        json!({"type": "response.completed", "response": whole}),
    ];
    Example {
        request: json!({
        "model": "m", "instructions": "Be brief.", "max_output_tokens": 9, "store": false, "include": ["reasoning.encrypted_content"],
        "input": [
            {"role": "developer", "content": "And kind."},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look "}, {"type": "input_image", "file_id": "x"}, {"type": "input_text", "text": "here"}]},
            {"type": "reasoning", "id": "rs", "encrypted_content": "s", "summary": []},
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": "{\"q\": 1}", "status": "completed"},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "also"}]},
            {"type": "shell_call", "id": "sh", "call_id": "c3", "action": {"commands": ["ls"]}, "status": "completed"},
            {"type": "shell_call_output", "call_id": "c3", "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]}],
        "tools": [{"type": "function", "name": "f", "description": null, "parameters": schema, "strict": true}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": false}),
        whole,
        events,
    }
}

fn anthropic_messages() -> Example {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    Example {
        request: json!({
        "model": "m", "max_tokens": 9, "temperature": 1.0,
        "system": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "So"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"q": 1}}, {"type": "tool_use", "id": "c2", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "found"}], "is_error": false},
                {"type": "tool_result", "tool_use_id": "c2", "content": "also"}, {"type": "text", "text": "Go on", "cache_control": null}]}],
        "tools": [{"name": "f", "description": "", "input_schema": schema}, {"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true}}),
        whole: json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "Hello"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}}],
            "usage": {"input_tokens": 3, "output_tokens": 2}}),
        events: vec![
            json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": [], "usage": {"input_tokens": 3, "output_tokens": 0}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"q\""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ],
    }
}

fn gemini() -> Example {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let part = |part: Value| json!({"modelVersion": "m-1", "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]});

    let call = json!({"functionCall": {"id": "a", "name": "f", "args": {"q": 1}}});
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
    let mut last = part(call.clone());
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = usage.clone();
    let mut whole = part(json!({"text": "Hello"}));
    whole["candidates"][0]["content"]["parts"] = json!([{"text": "Hello"}, call]);
    whole["candidates"][0]["finishReason"] = json!("STOP");
    whole["usageMetadata"] = usage;
    Example {
        request: json!({
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": ""}}]},
            {"role": "model", "parts": [{"text": "hm", "thought": true}, {"functionCall": {"name": "f", "args": {"q": 1}}, "thoughtSignature": "s"},
                {"functionCall": {"name": "f", "id": "c2"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "found"}}},
                {"functionResponse": {"name": "f", "id": "c2", "response": {"a": 1}}}, {"text": "Go on"}]}],
        "tools": [{"function_declarations": [{"name": "f", "description": "d", "parameters": schema}]}, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"temperature": 0, "maxOutputTokens": 9, "topK": 3}}),
        whole,
        events: vec![part(json!({"text": "Hel"})), part(json!({"text": "lo"})), last],
    }
}

fn ollama() -> Example {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let call = json!({"id": "a", "function": {"index": 0, "name": "f", "arguments": {"q": 1}}});
    let line = |message: Value| json!({"model": "m-1", "created_at": "t", "message": message, "done": false});
    let last = |message: Value| {
        json!({"model": "m-1", "created_at": "t", "message": message, "done": true, "done_reason": "stop",
            "total_duration": 9, "prompt_eval_count": 3, "eval_count": 2})
    };
    Example {
        request: json!({
        "model": "m", "stream": false, "keep_alive": "5m", "options": {"temperature": 0, "num_predict": 9, "num_ctx": 4096},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Look", "images": ["AA=="]},
            {"role": "assistant", "thinking": "hm", "tool_calls": [{"function": {"name": "f", "arguments": {"q": 1}}},
                {"id": "c2", "function": {"index": 1, "name": "f", "arguments": {}}}]},
            {"role": "tool", "tool_name": "f", "content": "found"},
            {"role": "tool", "tool_call_id": "c2", "tool_name": "f", "content": "also"}],
        "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}, {"type": "web"}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}}),
        whole: last(json!({"role": "assistant", "content": "Hello", "tool_calls": [call]})),
        events: vec![
            line(json!({"role": "assistant", "content": "Hel"})),
            line(json!({"role": "assistant", "content": "lo"})),
            line(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
            last(json!({"role": "assistant", "content": ""})),
        ],
    }
}

fn bedrock_converse() -> Example {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let usage = json!({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5});
    let delta = |index: u64, delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}});
    let call = json!({"toolUseId": "a", "name": "f", "input": {"q": 1}});
    Example {
        request: json!({
        "system": [{"text": "Be "}, {"text": "brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"text": "Look"}, {"image": {"format": "png", "source": {"bytes": ""}}}]},
            {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"q": 1}}}, {"toolUse": {"toolUseId": "c2", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "found"}], "status": "success"}},
                {"toolResult": {"toolUseId": "c2", "content": [{"json": {"a": 1}}]}}, {"text": "Go on"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": schema}}}, {"systemTool": {"name": "web"}}],
            "toolChoice": {"tool": {"name": "f"}}},
        "inferenceConfig": {"maxTokens": 9, "temperature": 0, "topP": 0.5}}),
        whole: json!({"output": {"message": {"role": "assistant", "content": [{"text": "Hello"}, {"toolUse": call}]}},
            "stopReason": "tool_use", "usage": usage, "metrics": {"latencyMs": 7}}),
        events: vec![
            json!({"messageStart": {"role": "assistant"}}),
            delta(0, json!({"text": "Hel"})),
            delta(0, json!({"text": "lo"})),
            json!({"contentBlockStop": {"contentBlockIndex": 0}}),
            json!({"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "a", "name": "f"}}}}),
            delta(1, json!({"toolUse": {"input": "{\"q\""}})),
            delta(1, json!({"toolUse": {"input": ": 1}"}})),
            json!({"contentBlockStop": {"contentBlockIndex": 1}}),
            json!({"messageStop": {"stopReason": "tool_use"}}),
            json!({"metadata": {"usage": usage, "metrics": {"latencyMs": 7}}}),
        ],
    }
}
