//! Properties of every dialect: decoding and encoding are inverse, and unknown fields survive.

mod examples;

use super::{Assembler, WireError, anthropic_messages, by_name, dialects, gemini, openai_chat, openai_responses};
use crate::provider::ErrorKind;
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Message, Role, ToolCall, ToolChoice, ToolDefinition};
use crate::transport::sse;
use examples::Example;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn each_dialect_reads_the_words_of_its_sample() {
    for dialect in dialects() {
        let request = dialect.decode_request(&dialect.path("m", false), &dialect.example().request).expect("decodes");
        let name = dialect.name();
        assert_eq!(request.model, "m", "{name}");
        assert_eq!(request.messages[0].role, Role::System, "{name}");
        assert_eq!(request.messages[0].content, "Be brief.", "{name}");
        assert_eq!(request.max_tokens, Some(9), "{name}");
        assert_eq!(request.tool_choice, ToolChoice::Named("f".into()), "{name}");
        assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["f"], "{name}");
        assert!(request.tools[0].parameters["properties"]["q"].is_object(), "{name}");
        let calls: Vec<_> = request.messages.iter().flat_map(|message| &message.calls).collect();
        assert_eq!(serde_json::from_str::<Value>(&calls[0].arguments).expect("JSON"), json!({"q": 1}), "{name}");
        let answered: Vec<_> = request.messages.iter().filter_map(|message| message.answers.as_deref()).collect();
        assert_eq!(answered, calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), "{name}");
        assert!(
            request.messages.iter().any(|message| message.role == Role::Tool && message.content == "found"),
            "{name}"
        );
    }
}

#[test]
fn a_dropped_tool_and_a_new_choice_leave_no_trace_of_the_old_ones() {
    for dialect in dialects() {
        let request = dialect.decode_request("", &dialect.example().request).expect("decodes");
        let other = ToolDefinition { name: "g".into(), description: "e".into(), parameters: json!({"type": "object"}) };
        let changed = ChatRequest { tools: [other.clone()].into(), tool_choice: ToolChoice::Required, ..request };
        let written = dialect.encode_request(&changed);
        let again = dialect.decode_request("", &written).expect("decodes");
        assert_eq!((&again.tools[..], &again.tool_choice), (&[other][..], &ToolChoice::Required), "{written:#}");
        let tools = written.pointer("/toolConfig/tools").unwrap_or(&written["tools"]);
        let builtin = tools.to_string();
        assert!(["web", "googleSearch"].iter().any(|word| builtin.contains(word)), "{builtin}");
    }
}

#[test]
fn a_tool_without_a_name_goes_back_as_it_came() {
    for dialect in dialects() {
        let body = dialect.example().request.to_string();
        let nameless = body.replace("\"name\":\"f\",\"description\"", "\"description\"");
        assert_ne!(nameless, body, "{}", dialect.name());
        let body: Value = serde_json::from_str(&nameless).expect("JSON");
        let request = dialect.decode_request("", &body).expect("decodes");
        assert_eq!(request.tools[0].name, "", "{}", dialect.name());
        assert_eq!(dialect.encode_request(&request), body, "{}", dialect.name());
    }
}

#[test]
fn what_is_no_document_of_the_dialect_is_refused_with_its_name_and_place() {
    for dialect in dialects() {
        for body in [json!(null), json!([]), json!("x"), json!({}), json!({"model": "m"})] {
            let error = dialect.decode_request("", &body).expect_err("refused").to_string();
            assert!(error.starts_with(dialect.name()), "{error}");
        }
        assert!(dialect.decode_response(&json!({"id": 1})).is_err(), "{}", dialect.name());
        assert!(by_name(dialect.name()) == Some(dialect));
    }
}

#[test]
fn an_answer_that_reports_an_error_is_that_error() {
    for dialect in dialects() {
        let body = json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}});
        let error = dialect.decode_response(&body).expect_err("an error");
        assert_eq!(error, WireError::Reported { kind: ErrorKind::RateLimit, message: "slow down".into() });
        let mut assembler = dialect.assembler();
        let stream = format!("data: {body}\n\n");
        let event = &sse::read_all(stream.as_bytes()).expect("short")[0];
        assert_eq!(assembler.push(event), Err(error));
        assert!(!assembler.complete());
    }
}

#[test]
fn refusals_and_limits_have_their_finish() {
    let chat = json!({"choices": [{"finish_reason": "length", "message": {"content": null, "refusal": "No."}}]});
    let responses = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}]});
    for (dialect, body) in [(openai_chat::DIALECT, chat), (openai_responses::DIALECT, responses)] {
        let reply = dialect.decode_response(&body).expect("decodes");
        assert_eq!((reply.refusal.as_deref(), reply.finish), (Some("No."), Finish::Length));
    }
    let anthropic = json!({"content": [], "stop_reason": "refusal", "stop_details": {"explanation": "No."}});
    let gemini = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    for (dialect, body) in [(anthropic_messages::DIALECT, anthropic), (gemini::DIALECT, gemini)] {
        let reply = dialect.decode_response(&body).expect("decodes");
        assert!(reply.refusal.is_some() && reply.finish == Finish::ContentFilter);
    }
}

#[test]
fn the_results_of_one_turn_go_into_one_message_where_the_dialect_wants_it() {
    let mut asked = Message::text(Role::Assistant, "");
    asked.calls = ["a", "b"].map(|id| ToolCall { id: id.into(), name: "f".into(), arguments: "{}".into() }).into();
    let messages =
        vec![Message::text(Role::User, "q"), asked, Message::tool_result("a", "1"), Message::tool_result("b", "2")];
    let request = plain(messages);
    assert_eq!(anthropic_messages::DIALECT.encode_request(&request)["messages"].as_array().map(Vec::len), Some(3));
    let gemini = gemini::DIALECT.encode_request(&request);
    assert_eq!(
        gemini["contents"][2]["parts"][1]["functionResponse"],
        json!({"name": "f", "id": "b", "response": {"result": "2"}})
    );
    assert_eq!(openai_chat::DIALECT.encode_request(&request)["messages"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_reply_goes_back_with_its_signature_and_only_to_its_own_dialect() {
    let body = json!({"candidates": [{"content": {"role": "model", "parts": [
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "secret-of-google"}]}, "finishReason": "STOP"}]});
    let reply = gemini::DIALECT.decode_response(&body).expect("decodes");
    assert_eq!(reply.finish, Finish::ToolCalls);
    let request = plain(vec![reply.to_message(), Message::tool_result(reply.calls[0].id.clone(), "done")]);
    let written = gemini::DIALECT.encode_request(&request)["contents"].take();
    assert_eq!(written[0], body["candidates"][0]["content"]);
    // The id was generated here: Google sent none and receives none.
    assert_eq!(written[1]["parts"][0], json!({"functionResponse": {"name": "f", "response": {"result": "done"}}}));
    for other in dialects().filter(|dialect| *dialect != gemini::DIALECT) {
        assert!(!other.encode_request(&request).to_string().contains("secret-of-google"));
    }
}

#[test]
fn an_answer_without_the_models_role_goes_back_as_the_models() {
    for role in [json!({}), json!({"role": "user"}), json!({"role": "assistant"})] {
        let mut content = json!({"parts": [{"text": "Hm."}, {"functionCall": {"name": "f", "args": {}}}]});
        content.as_object_mut().expect("an object").extend(role.as_object().cloned().unwrap_or_default());
        let reply = gemini::DIALECT.decode_response(&json!({"candidates": [{"content": content}]})).expect("decodes");
        let written = gemini::DIALECT.encode_request(&plain(vec![reply.to_message()]));
        let read = gemini::DIALECT.decode_request("", &written).expect("decodes");
        let message = read.messages.iter().find(|message| message.role == Role::Assistant).expect("an answer");
        assert_eq!((message.content.as_str(), message.calls.len()), ("Hm.", 1), "{role}");
    }
    let said = json!({"type": "message", "content": [{"type": "output_text", "text": "Hm."}]});
    let reply = openai_responses::DIALECT.decode_response(&json!({"model": "m", "output": [said]})).expect("decodes");
    let written = openai_responses::DIALECT.encode_request(&plain(vec![reply.to_message()]));
    assert_eq!(
        written["input"].as_array().and_then(|items| items.last()).map(|item| &item["role"]),
        Some(&json!("assistant"))
    );
}

#[test]
fn a_request_with_what_its_service_would_refuse_is_the_same_after_encoding() {
    let call = json!({"toolUse": {"name": "f", "input": {}}});
    let result = json!({"toolResult": {"content": [{"text": "found"}]}});
    let converse =
        json!({"messages": [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]});
    let both = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "function_call": {"name": "g"},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "tool_choice": "no such choice"});
    let odd = json!({"model": "m", "messages": [{"role": "assistant", "content": "", "tool_calls": [{"id": "c", "funktion": {"name": "f"}}]}]});
    let nameless =
        json!({"messages": [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "input": {}}}]}]});
    let bodies =
        [("bedrock-converse", converse), ("bedrock-converse", nameless), ("openai-chat", both), ("ollama", odd)];
    for (name, body) in bodies {
        let dialect = by_name(name).expect("a dialect");
        let request = dialect.decode_request("", &body).expect("decodes");
        let written = dialect.encode_request(&request);
        assert_eq!(dialect.decode_request("", &written).expect("decodes"), request, "{written}");
    }
}

/// Creates a completion with this message.
fn answer(message: Value, usage: Value) -> ChatResponse {
    let body = json!({"model": "m", "choices": [{"finish_reason": "stop", "message": message}], "usage": usage});
    openai_chat::DIALECT.decode_response(&body).expect("decodes")
}

#[test]
fn reasoning_that_a_total_shows_to_be_apart_is_counted() {
    let details = json!({"reasoning_tokens": 5});
    let apart =
        json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 10, "completion_tokens_details": details});
    let within =
        json!({"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10, "completion_tokens_details": details});
    assert_eq!(answer(json!({"content": "x"}), apart).usage.output, Some(7));
    assert_eq!(answer(json!({"content": "x"}), within).usage.output, Some(7));
}

#[test]
fn arguments_as_an_object_are_read_and_an_ordinary_reply_keeps_nothing() {
    let call = json!({"id": "a", "function": {"name": "f", "arguments": {"q": [1, 2]}}});
    let reply = answer(json!({"content": null, "tool_calls": [call]}), Value::Null);
    assert_eq!(reply.calls[0].arguments, "{\"q\":[1,2]}");
    assert_eq!(answer(json!({"role": "assistant", "content": "x", "refusal": null}), Value::Null).passthrough, None);
}

#[test]
fn reasoning_goes_back_with_calls_only() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let with = answer(json!({"content": "", "reasoning_content": "hm", "tool_calls": [call]}), Value::Null);
    assert_eq!(with.passthrough.expect("kept").fields["reasoning_content"], "hm");
    assert_eq!(answer(json!({"content": "x", "reasoning_content": "hm"}), Value::Null).passthrough, None);
}

fn plain(messages: Vec<Message>) -> ChatRequest {
    ChatRequest::new("m", messages)
}

/// Conversations in the form that flows produce: user turns, calls with results, an answer.
fn conversation() -> impl Strategy<Value = Vec<Message>> {
    let text = "[a-zäß🦀\"\\\\ {}\n]{1,12}";
    let turn = (text, proptest::collection::vec((text, text), 0..3), "[a-z ]{0,6}", text);
    (proptest::option::of(text), proptest::collection::vec(turn, 1..4)).prop_map(|(system, turns)| {
        let mut messages: Vec<Message> = system.into_iter().map(|text| Message::text(Role::System, text)).collect();
        for (turn, (question, calls, aside, answer)) in turns.into_iter().enumerate() {
            messages.push(Message::text(Role::User, question));
            if !calls.is_empty() {
                let mut asked = Message::text(Role::Assistant, aside);
                let mut results = Vec::new();
                for (number, (argument, result)) in calls.into_iter().enumerate() {
                    let id = format!("call_{turn}_{number}");
                    let arguments = json!({ "q": argument }).to_string();
                    asked.calls.push(ToolCall { id: id.clone(), name: "f".into(), arguments });
                    results.push(Message::tool_result(id, result));
                }
                messages.push(asked);
                messages.extend(results);
            }
            messages.push(Message::text(Role::Assistant, answer));
        }
        messages
    })
}

fn words(request: &ChatRequest) -> Vec<Message> {
    request.messages.iter().map(|message| Message { passthrough: None, ..message.clone() }).collect()
}

/// Adds `extra` under a new name to the `place`-th object of `value`; skips schemas and arguments.
fn inject(value: &mut Value, place: &mut usize, extra: &Value) -> bool {
    match value {
        Value::Object(map) => {
            if *place == 0 {
                map.insert("field_of_the_future".to_owned(), extra.clone());
                return true;
            }
            *place -= 1;
            map.iter_mut().any(|(_, value)| inject(value, place, extra))
        }
        Value::Array(list) => list.iter_mut().any(|value| inject(value, place, extra)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_each_dialect_writes_it_reads_and_writes_again(messages in conversation()) {
        for dialect in dialects() {
            let request = plain(messages.clone());
            let written = dialect.encode_request(&request);
            let read = dialect.decode_request("", &written).expect("decodes");
            prop_assert_eq!(words(&read), words(&request), "{}", dialect.name());
            prop_assert_eq!(dialect.encode_request(&read), written, "{}", dialect.name());
        }
    }

    #[test]
    fn unknown_fields_survive_wherever_they_stand(place in 0_usize..60, extra in "[a-z]{0,3}") {
        for dialect in dialects() {
            for extra in [json!(extra), json!(null), json!({"deep": [extra]})] {
                let mut body = dialect.example().request;
                inject(&mut body, &mut place.clone(), &extra);
                let read = dialect.decode_request("", &body).expect("decodes");
                prop_assert_eq!(&dialect.encode_request(&read), &body, "{}", dialect.name());
            }
        }
    }

    #[test]
    fn streams_of_any_json_never_panic(chunks in proptest::collection::vec(rubbish(), 0..8)) {
        for dialect in dialects() {
            let mut assembler: Assembler = dialect.assembler();
            for chunk in &chunks {
                let event = sse::Event { name: None, data: chunk.to_string(), id: None, bytes: 0..1 };
                _ = assembler.push(&event);
            }
            _ = dialect.decode_response(&assembler.document());
        }
    }
}

/// JSON made of the keys and values that dialects look for, in any order.
fn rubbish() -> impl Strategy<Value = Value> {
    let keys = [
        "choices", "delta", "index", "tool_calls", "function", "arguments", "content", "type", "text", "message",
        "usage", "candidates", "parts", "functionCall", "partialArgs", "jsonPath", "stringValue", "output_index",
        "item", "response", "output", "content_block", "reasoning_details", "thinking", "name", "id", "part", "args",
    ];
    let words = [
        "content_block_start",
        "content_block_delta",
        "message_start",
        "message_delta",
        "input_json_delta",
        "citations_delta",
        "response.output_item.added",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.completed",
        "response.content_part.added",
        "$.a[2].b",
        "$",
        "text",
        "thinking",
        "",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        (0_u64..4).prop_map(Value::from),
        Just(json!(u64::MAX)),
        proptest::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::vec((proptest::sample::select(keys.to_vec()), inner), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

#[test]
fn a_null_system_instruction_is_none_and_stays_null() {
    let body = json!({"systemInstruction": null, "contents": [{"role": "user", "parts": [{"text": "q"}]}]});
    let request = gemini::DIALECT.decode_request("", &body).expect("decodes");
    assert_eq!(request.messages.len(), 1);
    assert_eq!(gemini::DIALECT.encode_request(&request), body);
}

#[test]
fn a_gemini_stream_that_came_as_one_array_is_an_answer_when_it_is_whole() {
    let chunk = |text: &str| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}], "modelVersion": "g"});
    let mut last = chunk("lo");
    last["candidates"][0]["finishReason"] = json!("STOP");
    let whole = json!([chunk("Hel"), last]);
    assert_eq!(gemini::DIALECT.decode_response(&whole).expect("an answer").content, "Hello");
    assert_eq!(gemini::DIALECT.decode_response(&json!([chunk("Hel")])), Err(WireError::Cut));
    let failed = json!([chunk("Hel"), {"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}]);
    let error = gemini::DIALECT.decode_response(&failed).expect_err("an error");
    assert_eq!(error, WireError::Reported { kind: ErrorKind::Overloaded, message: "busy".into() });
}

#[test]
fn azures_requests_have_their_model_in_the_path_and_are_written_back_without_it() {
    let mut body = openai_chat::DIALECT.example().request;
    body.as_object_mut().expect("an object").shift_remove("model");
    let path = "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21";
    let request = openai_chat::DIALECT.decode_request(path, &body).expect("decodes");
    assert_eq!(request.model, "gpt-4o");
    assert!(request.messages.iter().any(|message| message.role == Role::Tool));
    assert_eq!(openai_chat::DIALECT.encode_request(&request), body);
    assert_eq!(openai_chat::DIALECT.decode_request("/chat/completions", &body).expect("decodes").model, "");
}

#[test]
fn azures_content_filter_is_a_finish_whatever_it_leaves_of_the_answer() {
    let filtered = json!({"hate": {"filtered": true, "severity": "high"}, "violence": {"filtered": false}});
    let stopped = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "content_filter", "content_filter_results": filtered}]});
    let refused = json!({"error": {"code": "content_filter", "message": "Policy.", "status": 400, "param": "prompt",
        "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
    for (body, said) in [(&stopped, "the content filter removed the answer: hate"), (&refused, "Policy.")] {
        let reply = openai_chat::DIALECT.decode_response(body).expect("an answer");
        assert_eq!((reply.finish, reply.refusal.as_deref()), (Finish::ContentFilter, Some(said)));
    }
    let begun = json!({"choices": [{"index": 0, "delta": {"content": "Well, "}}]});
    for events in [vec![&refused], vec![&begun, &refused]] {
        let mut assembler = openai_chat::DIALECT.assembler();
        let stream = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        for event in sse::read_all(stream.as_bytes()).expect("short") {
            assembler.push(&event).expect("no failure");
        }
        assert!(assembler.complete());
        let reply = openai_chat::DIALECT.decode_response(&assembler.document()).expect("an answer");
        assert_eq!((reply.finish, reply.refusal.as_deref()), (Finish::ContentFilter, Some("Policy.")));
    }
}

#[test]
fn an_answer_of_each_dialect_is_read_whole_and_in_pieces_as_the_same() {
    for dialect in dialects() {
        let name = dialect.name();
        let Example { whole, events, .. } = dialect.example();
        let stream = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        let mut assembler = dialect.assembler();
        for event in sse::read_all(stream.as_bytes()).expect("short") {
            assembler.push(&event).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(assembler.complete(), "{name}");
        for reply in [dialect.decode_response(&whole), dialect.decode_response(&assembler.document())] {
            let reply = reply.unwrap_or_else(|error| panic!("{name}: {error}"));
            // Converse does not name the model.
            let model = if whole.to_string().contains("m-1") { "m-1" } else { "" };
            assert_eq!((reply.content.as_str(), reply.model.as_str()), ("Hello", model), "{name}");
            assert_eq!((reply.calls[0].id.as_str(), reply.calls[0].name.as_str()), ("a", "f"), "{name}");
            let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).expect("JSON");
            assert_eq!(arguments, json!({"q": 1}), "{name}");
            assert_eq!((reply.usage.input, reply.usage.output), (Some(3), Some(2)), "{name}");
            assert_eq!(reply.finish, Finish::ToolCalls, "{name}");
        }
    }
}
