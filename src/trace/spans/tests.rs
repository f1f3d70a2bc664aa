use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A span in OTLP's JSON; `parent` 0 is a root.
fn otlp(id: u64, parent: u64, name: &str, attributes: &Value) -> Value {
    let pairs = attributes.as_object().expect("attributes").iter();
    let pairs: Vec<Value> = pairs.map(|(key, value)| json!({"key": key, "value": any(value)})).collect();
    json!({"traceId": TRACE, "spanId": format!("{id:016x}"),
        "parentSpanId": if parent == 0 { String::new() } else { format!("{parent:016x}") }, "name": name,
        "startTimeUnixNano": (1_000_000 * id).to_string(), "endTimeUnixNano": (1_000_000 * id + 500_000).to_string(),
        "attributes": pairs})
}

fn any(value: &Value) -> Value {
    match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_i64() => json!({"intValue": number.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::Array(items) => json!({"arrayValue": {"values": items.iter().map(any).collect::<Vec<_>>()}}),
        Value::Object(members) => {
            let pairs: Vec<Value> = members.iter().map(|(key, one)| json!({"key": key, "value": any(one)})).collect();
            json!({"kvlistValue": {"values": pairs}})
        }
        Value::Null => json!({}),
    }
}

fn export(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]})
}

fn batch(bytes: &[u8]) -> Batch {
    read(bytes).expect("spans")
}

fn field(number: u64, wire: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::try_from(number << 3 | wire).expect("a small number")];
    if wire == 2 {
        let mut length = bytes.len();
        while length > 127 {
            out.push(u8::try_from(length & 127 | 128).expect("a byte"));
            length >>= 7;
        }
        out.push(u8::try_from(length).expect("a byte"));
    }
    out.extend_from_slice(bytes);
    out
}

fn value_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => field(1, 2, text.as_bytes()),
        Value::Bool(value) => field(2, 0, &[u8::from(*value)]),
        Value::Number(number) if number.is_i64() => {
            field(3, 0, &[u8::try_from(number.as_i64().expect("an integer")).expect("a small one")])
        }
        Value::Number(number) => field(4, 1, &number.as_f64().expect("a number").to_le_bytes()),
        Value::Array(items) => {
            field(5, 2, &items.iter().flat_map(|one| field(1, 2, &value_bytes(one))).collect::<Vec<_>>())
        }
        Value::Object(members) => {
            field(6, 2, &members.iter().flat_map(|(name, one)| field(1, 2, &pair_bytes(name, one))).collect::<Vec<_>>())
        }
        Value::Null => Vec::new(),
    }
}

fn pair_bytes(name: &str, value: &Value) -> Vec<u8> {
    [field(1, 2, name.as_bytes()), field(2, 2, &value_bytes(value))].concat()
}

fn span_bytes(span: &Span) -> Vec<u8> {
    let id = |text: &str| hex::decode(text).expect("an id");
    let mut out = [field(1, 2, &id(&span.trace)), field(2, 2, &id(&span.id))].concat();
    out.extend(span.parent.iter().flat_map(|parent| field(4, 2, &id(parent))));
    out.extend(field(5, 2, span.name.as_bytes()));
    out.extend(field(7, 1, &span.start_ns.to_le_bytes()));
    out.extend(field(8, 1, &span.end_ns.to_le_bytes()));
    out.extend(span.attributes.iter().flat_map(|(name, value)| field(9, 2, &pair_bytes(name, value))));
    out.extend(span.events.iter().flat_map(|(at, name, attributes)| {
        let pairs = attributes.iter().flat_map(|(name, value)| field(3, 2, &pair_bytes(name, value)));
        let head = [field(1, 1, &at.to_le_bytes()), field(2, 2, name.as_bytes())].concat();
        field(11, 2, &head.into_iter().chain(pairs).collect::<Vec<_>>())
    }));
    let failed = span.failed.iter();
    out.extend(failed.flat_map(|words| field(15, 2, &[field(2, 2, words.as_bytes()), field(3, 0, &[2])].concat())));
    out
}

fn protobuf_of(spans: &[Vec<u8>]) -> Vec<u8> {
    let scope: Vec<u8> = spans.iter().flat_map(|span| field(2, 2, span)).collect();
    field(1, 2, &field(2, 2, &scope))
}

#[test]
fn one_export_reads_the_same_in_every_encoding() {
    let attributes =
        json!({"text": "ü", "flag": true, "count": 7, "share": 0.5, "list": ["a", 2], "map": {"b": {"c": 1}}});
    let mut one = otlp(1, 0, "invoke_agent", &attributes);
    one["events"] =
        json!([{"name": "exception", "attributes": [{"key": "exception.message", "value": any(&json!("so"))}]}]);
    one["status"] = json!({"code": 2, "message": "it failed"});
    let two = otlp(2, 1, "chat", &json!({}));
    let whole = batch(export(&[one.clone(), two.clone()]).to_string().as_bytes());
    assert_eq!(whole.spans.len(), 2);
    assert_eq!(Value::Object(whole.spans[0].attributes.clone()), attributes);
    assert_eq!(whole.spans[0].failed.as_deref(), Some("it failed"));
    assert_eq!(whole.spans[1].parent.as_deref(), Some("0000000000000001"));

    let lines = format!("{}\n{}\n", export(std::slice::from_ref(&one)), export(std::slice::from_ref(&two)));
    assert_eq!(batch(lines.as_bytes()), whole, "JSON lines");
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain(lines.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(batch(&wide), whole, "UTF-16");
    let mut other = one.clone();
    for (name, length) in [("traceId", 32), ("spanId", 16)] {
        let id = other[name].as_str().expect("an id");
        assert_eq!(id.len(), length);
        other[name] = json!(STANDARD.encode(hex::decode(id).expect("hex")));
    }
    assert_eq!(batch(export(&[other, two.clone()]).to_string().as_bytes()), whole, "base64");
    let bytes = protobuf_of(&whole.spans.iter().map(span_bytes).collect::<Vec<_>>());
    assert_eq!(batch(&bytes), whole, "protobuf");
    let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
    let halves: Vec<u8> = [&length[..], &bytes, &[0, 0]].concat();
    let read = batch(&halves);
    assert_eq!((read.spans, read.unread.len()), (whole.spans.clone(), 1), "with lengths, and a broken end");
    let printed = json!({"name": "chat", "context": {"trace_id": format!("0x{TRACE}"), "span_id": "0x0000000000000002"},
        "parent_id": "0x0000000000000001", "start_time": "1970-01-01T00:00:00.002000Z",
        "end_time": "1970-01-01T00:00:00.002500Z", "attributes": {}, "events": []});
    assert_eq!(batch(printed.to_string().as_bytes()).spans, whole.spans[1..], "an SDK's console");
    let number = u128::from_str_radix(TRACE, 16).expect("a number");
    let dump = format!(
        r#"{{"spans": [{{"name": "chat", "context": {{"trace_id": {number}, "span_id": 2}},
        "parent": {{"trace_id": {number}, "span_id": 1}}, "start_time": 2000000, "end_time": 2500000, "attributes": {{}}}}]}}"#
    );
    assert_eq!(batch(dump.as_bytes()).spans, whole.spans[1..], "numbers of 128 bits");
    for nothing in [&b"no spans"[..], b"", b"\x08\x01", b"{broken"] {
        assert!(super::read(nothing).is_err(), "{nothing:?}");
    }
}

fn operation(attributes: &Value) -> Option<Operation> {
    let spans = batch(export(&[otlp(1, 0, "a span", attributes)]).to_string().as_bytes()).spans;
    meaning::of(&spans[0])
}

#[test]
fn every_convention_says_the_same_of_a_completion() {
    let call = json!({"id": "c1", "function": {"name": "find", "arguments": "{\"q\":\"x\"}"}});
    let ours = [
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5,
            "gen_ai.input.messages": json!([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "response": {"a": 1}}]}]).to_string(),
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "So."},
                {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": "x"}}], "finish_reason": "tool_call"}]}),
        json!({"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 5,
            "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Why?",
            "llm.input_messages.1.message.role": "tool", "llm.input_messages.1.message.content": "{\"a\":1}",
            "llm.input_messages.1.message.tool_call_id": "c0", "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.contents.0.message_content.type": "text",
            "llm.output_messages.0.message.contents.0.message_content.text": "So.",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "find",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{\"q\":\"x\"}"}),
        json!({"llm.request.type": "chat", "gen_ai.request.model": "m", "gen_ai.usage.prompt_tokens": 5,
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Why?", "gen_ai.prompt.1.role": "tool",
            "gen_ai.prompt.1.content": "{\"a\":1}", "gen_ai.prompt.1.tool_call_id": "c0",
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "So.",
            "gen_ai.completion.0.tool_calls.0.id": "c1", "gen_ai.completion.0.tool_calls.0.name": "find",
            "gen_ai.completion.0.tool_calls.0.arguments": "{\"q\":\"x\"}"}),
    ];
    let mut told: Vec<Completed> = ours
        .iter()
        .map(|attributes| match operation(attributes) {
            Some(Operation::Completed(completed)) => completed,
            other => panic!("{other:?}"),
        })
        .collect();
    let mut span = otlp(
        1,
        0,
        "chat m",
        &json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5}),
    );
    let event = |name: &str, attributes: Value| {
        let pairs: Vec<Value> = attributes
            .as_object()
            .expect("attributes")
            .iter()
            .map(|(key, one)| json!({"key": key, "value": any(one)}))
            .collect();
        json!({"name": name, "attributes": pairs})
    };
    span["events"] = json!([
        event("gen_ai.user.message", json!({"content": "Why?"})),
        event("gen_ai.tool.message", json!({"id": "c0", "content": "{\"a\":1}"})),
        event(
            "gen_ai.choice",
            json!({"index": 0, "message": {"role": "assistant", "content": "So.", "tool_calls": [call]}})
        ),
    ]);
    let spans = batch(export(&[span]).to_string().as_bytes()).spans;
    told.extend(
        meaning::of(&spans[0])
            .map(|operation| if let Operation::Completed(one) = operation { one } else { panic!("{operation:?}") }),
    );
    for one in &told {
        let expected = Completed { finish: one.finish.clone(), ..told[0].clone() };
        assert_eq!(*one, expected);
    }
    assert_eq!((told.len(), told[0].input_tokens, told[0].input.as_ref().map(Vec::len)), (4, Some(5), Some(2)));
    let output = told[0].output.as_ref().expect("an output");
    assert_eq!((output[0].text.as_str(), &output[0].calls[0].arguments), ("So.", &json!({"q": "x"})));
    assert_eq!(told[0].input.as_ref().expect("an input")[1].answers.as_deref(), Some("c0"));
}

/// Tokens of a completion: of the input, read from a cache, written to it, of the output.
fn tokens(span: &Span) -> [Option<u64>; 4] {
    let Some(Operation::Completed(one)) = meaning::of(span) else { panic!("{span:?}") };
    [one.input_tokens, one.cached_tokens, one.cache_write_tokens, one.output_tokens]
}

#[test]
fn kinds_of_tokens_that_langfuse_subtracts_are_added_and_those_within_a_whole_are_not() {
    let whole = [Some(1000), Some(800), Some(100), Some(500)];
    let of_openai = [Some(1000), Some(800), None, Some(500)];
    for (usage, expected) in [
        (
            json!({"completion_tokens": 500, "prompt_tokens": 1000, "total_tokens": 1500,
                "completion_tokens_details": {"reasoning_tokens": 300}, "prompt_tokens_details": {"cached_tokens": 800}}),
            of_openai,
        ),
        (
            json!({"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 800}, "output_tokens": 500}),
            of_openai,
        ),
        (
            json!({"input": 200, "output": 200, "total": 1500, "input_audio": 0, "input_cache_read": 800, "output_audio": 0,
                "output_reasoning": 300}),
            of_openai,
        ),
        (
            json!({"input": 1000, "output": 200, "input_priority": 200, "input_priority_cache_read": 800,
                "output_reasoning": 300}),
            of_openai,
        ),
        (
            json!({"input": 100, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 100, "output": 500,
            "cache_creation_ephemeral_5m_input_tokens": 100}),
            whole,
        ),
        (
            json!({"input": 100, "output": 500, "input_cache_read": 800, "input_cache_creation": 0,
            "input_ephemeral_1h_input_tokens": 100}),
            whole,
        ),
        (json!({"input": 0, "output": 500, "input_modality_TEXT": 200, "cached_modality_TEXT": 800}), of_openai),
    ] {
        let attributes = json!({"langfuse.observation.type": "generation",
            "langfuse.observation.usage_details": usage.to_string()});
        let found = batch(export(&[otlp(1, 0, "chat", &attributes)]).to_string().as_bytes());
        let written = |[input, cached, written, output]: [Option<u64>; 4]| {
            [input, cached, written.filter(|tokens| *tokens > 0), output]
        };
        assert_eq!(written(tokens(&found.spans[0])), expected, "{usage}");
    }
}

#[test]
fn tokens_written_to_a_cache_are_read_of_langsmith_and_of_the_ai_sdk() {
    for details in [
        json!({"cache_read": 800, "cache_creation": 100}),
        json!({"cache_read": 800, "cache_creation": 0, "ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40}),
        json!({"flex": 100, "flex_cache_read": 800, "flex_cache_creation": 100}),
    ] {
        let run = json!({"id": TRACE, "trace_id": TRACE, "run_type": "llm", "outputs": {
            "usage_metadata": {"input_tokens": 1000, "output_tokens": 500, "input_token_details": details}}});
        let found = batch(json!({"post": [run]}).to_string().as_bytes());
        assert_eq!(tokens(&found.spans[0]), [Some(1000), Some(800), Some(100), Some(500)], "{details}");
    }
    let attributes = json!({"ai.operationId": "ai.generateText.doGenerate", "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 500, "ai.usage.cachedInputTokens": 800,
        "ai.usage.inputTokenDetails.cacheReadTokens": 800, "ai.usage.inputTokenDetails.cacheWriteTokens": 100});
    let found = batch(export(&[otlp(1, 0, "chat", &attributes)]).to_string().as_bytes());
    assert_eq!(tokens(&found.spans[0]), [Some(1000), Some(800), Some(100), Some(500)]);
}

#[test]
fn tools_and_searches_are_read_by_both_conventions_and_other_work_is_none() {
    let ran = Ran {
        tool: "find".into(),
        id: Some("c1".into()),
        arguments: Some(json!({"q": 1})),
        result: Some(json!("so")),
        outcome: None,
    };
    for attributes in [
        json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find", "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": {"q": 1}, "gen_ai.tool.call.result": "so"}),
        json!({"openinference.span.kind": "TOOL", "tool.name": "find", "tool_call.id": "c1", "input.value": "{\"q\": 1}",
            "output.value": "so"}),
    ] {
        assert_eq!(operation(&attributes), Some(Operation::Ran(ran.clone())), "{attributes}");
    }
    let documents = json!([{"id": "a#1", "content": "so", "score": 0.5}]);
    let found = Found { query: Some("x".into()), documents: Some(documents.clone()), ..Found::default() };
    for attributes in [
        json!({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "x",
            "gen_ai.retrieval.documents": documents.to_string()}),
        json!({"openinference.span.kind": "RETRIEVER", "input.value": "x", "retrieval.documents.0.document.id": "a#1",
            "retrieval.documents.0.document.content": "so", "retrieval.documents.0.document.score": 0.5}),
    ] {
        assert_eq!(operation(&attributes), Some(Operation::Found(found.clone())), "{attributes}");
    }
    assert_eq!(operation(&json!({"openinference.span.kind": "EMBEDDING"})), Some(Operation::Vectors));
    assert_eq!(operation(&json!({"http.method": "GET"})), None);
}

fn told(spans: &[Value]) -> Story {
    let mut all = stories(batch(export(spans).to_string().as_bytes()).spans, &[]);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn chat(input: &Value, output: &str) -> Value {
    let output = json!([{"role": "assistant", "content": output}]);
    json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input, "gen_ai.output.messages": output})
}

#[test]
fn a_deed_that_two_instrumentations_report_counts_once() {
    let outer = json!({"openinference.span.kind": "LLM", "llm.token_count.prompt": 3});
    let asked = json!([{"role": "user", "content": "Why?"}]);
    let story =
        told(&[otlp(3, 2, "openai", &chat(&asked, "So.")), otlp(2, 1, "http", &json!({})), otlp(1, 0, "llm", &outer)]);
    let counted: Vec<bool> = story.operations.iter().map(|done| done.is_repeated).collect();
    assert_eq!(counted, [false, true]);
    let turns = turns(&story);
    assert_eq!((turns[0].query.as_deref(), turns[0].answer.as_deref()), (Some("Why?"), Some("So.")));
}

#[test]
fn turns_follow_from_agents_or_from_the_history_of_completions() {
    let asked = |words: &[(&str, &str)]| -> Value {
        words.iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
    };
    let first = otlp(1, 0, "chat", &chat(&asked(&[("user", "Why?")]), "So."));
    let again = asked(&[("user", "Why?"), ("assistant", "So."), ("user", "And how?")]);
    let story = told(&[first.clone(), otlp(2, 0, "chat", &chat(&again, "Thus."))]);
    let words = |story: &Story| -> Vec<(Option<String>, Option<String>)> {
        turns(story).into_iter().map(|turn| (turn.query, turn.answer)).collect()
    };
    let pair = |query: &str, answer: &str| (Some(query.to_owned()), Some(answer.to_owned()));
    assert_eq!(words(&story), [pair("Why?", "So."), pair("And how?", "Thus.")]);
    let agent = |asked: &str, said: &str| {
        json!({"openinference.span.kind": "AGENT", "input.value": json!({"messages": [{"role": "user", "content": asked}]}).to_string(),
            "output.value": said})
    };
    // The search's own completion is not the answer, and a planner inside an agent is no turn.
    let story = told(&[
        otlp(1, 0, "agent", &agent("Why?", "Because.")),
        otlp(2, 1, "planner", &agent("plan", "planned")),
        otlp(3, 1, "retriever", &json!({"openinference.span.kind": "RETRIEVER"})),
        otlp(4, 3, "rewrite", &chat(&asked(&[("user", "rewrite")]), "rewritten")),
    ]);
    assert_eq!(words(&story), [pair("Why?", "Because.")]);
}

/// 200 broken spans: every one is read, or named.
#[test]
fn broken_spans_neither_panic_nor_vanish() {
    let mut spans: Vec<Value> = Vec::new();
    for number in 1..=200_u64 {
        let mut span = otlp(number, number / 2, "chat", &json!({"gen_ai.operation.name": "chat"}));
        match number % 10 {
            0 => span["parentSpanId"] = json!("00000000000fffff"),
            1 => span["parentSpanId"] = span["spanId"].clone(),
            2 => span["spanId"] = json!(format!("{:016x}", number + 1)),
            3 => (span["startTimeUnixNano"], span["endTimeUnixNano"]) = (json!("99999999999999999999999"), json!(-5)),
            4 => (span["startTimeUnixNano"], span["endTimeUnixNano"]) = (json!(u64::MAX), json!("1")),
            5 => span["traceId"] = json!("no id"),
            6 => {
                span["attributes"] = json!([{"key": 3}, {"value": {}}, "x", {"key": "gen_ai.operation.name", "value": {"kvlistValue": 7}}]);
            }
            7 => span["spanId"] = json!(["list"]),
            8 => span["events"] = json!([{"name": 4, "attributes": "none"}, 7]),
            _ => span = json!({"spans": null, "name": {"no": "text"}}),
        }
        spans.push(span);
    }
    spans[7]["attributes"] = json!([{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.input.messages", "value": {"stringValue": "x".repeat(10 << 20)}}]);
    let deep = format!("llm.input_messages{}", ".a".repeat(1 << 20));
    spans[17]["attributes"] = json!([{"key": "openinference.span.kind", "value": {"stringValue": "LLM"}},
        {"key": deep, "value": {"stringValue": "x"}}, {"key": "llm.input_messages.4000000000.message.content", "value": {"stringValue": "far"}}]);
    let read = batch(export(&spans).to_string().as_bytes());
    assert_eq!(read.spans.len() + read.unread.len(), 200, "{:?}", read.unread);
    assert_eq!(read.unread.len(), 60, "wrong trace ids, wrong span ids, and no spans: {:?}", read.unread);
    let protobuf: Vec<Vec<u8>> = read.spans.iter().map(span_bytes).collect();
    for story in stories(read.spans, &[]) {
        let notes = story.notes.join("; ");
        for what in [
            "whose parent did not come", "in a circle of parents", "with an impossible time",
            "with the id of another span",
        ] {
            assert!(notes.contains(what), "{what}: {notes}");
        }
        assert!(!turns(&story).is_empty());
    }
    // In protobuf, every byte may be cut or changed.
    let whole = protobuf_of(&protobuf.into_iter().filter(|span| span.len() < 2_000).collect::<Vec<_>>());
    for place in (0..whole.len()).step_by(41) {
        let mut changed = whole.clone();
        changed[place] = changed[place].wrapping_add(u8::try_from(place % 255 + 1).expect("a byte"));
        for bytes in [&whole[..place], &changed] {
            if let Ok(batch) = super::read(bytes) {
                for story in stories(batch.spans, &[]) {
                    drop(turns(&story));
                }
            }
        }
    }
}

#[test]
fn numbers_that_json_lacks_and_halves_of_letters_lose_no_span() {
    let text = export(&[otlp(1, 0, "a", &json!({"score": 0.5, "input.value": "cut"})), otlp(2, 1, "b", &json!({}))]);
    let text = text.to_string().replace("0.5", "NaN").replace("cut", "cut \\ud83d");
    for text in [text.clone(), format!("{text}\n{{cut")] {
        let read = batch(text.as_bytes());
        assert_eq!(read.spans.len(), 2, "{text}");
        assert_eq!(read.spans[0].attributes["input.value"], "cut \u{fffd}");
        assert!(read.spans[0].attributes["score"].is_null());
        assert!(read.odd[0].contains("1 half of a surrogate pair replaced"), "{:?}", read.odd);
        assert_eq!(read.unread.len(), usize::from(text.ends_with("cut")), "{:?}", read.unread);
    }
}
