//! The labelled conversations of `tests/labelled/imports.yaml` in the format of each import: they count as in OpenAI's shape.

use super::import_spans::in_convention;
use super::labelled_traces::{criteria, differences, evaluation, labelled, message, names, text};
use ragcheck::internals::suite::import::Format;
use serde_json::{Value, json};

/// Conversations that end with a question without an answer: nothing was done, so no span says so.
const WITHOUT_SPAN: [&str; 2] = ["closing_question", "assent_unanswered"];

/// One thing that an agent did.
enum Deed {
    /// It took a turn.
    Turn,
    /// Its model completed these messages by one more.
    Completed(Vec<Value>, Value),
    /// A tool ran: id of the call, tool, arguments and result.
    Ran(String, String, Value, Value),
}

/// What an agent did in a conversation, each with the ordinal of its turn.
fn deeds(messages: &[Value]) -> Vec<(usize, Deed)> {
    let (mut all, mut calls, mut turn) = (Vec::new(), Vec::new(), 0);
    for (place, message) in messages.iter().enumerate() {
        match message["role"].as_str().expect("a role") {
            "user" => {
                turn += 1;
                let answered = messages[place + 1..].iter().any(|later| later["role"] != "user");
                all.extend(answered.then_some((turn, Deed::Turn)));
            }
            "assistant" => {
                calls.extend(message["tool_calls"].as_array().into_iter().flatten().cloned());
                all.push((turn, Deed::Completed(messages[..place].to_vec(), message.clone())));
            }
            _ => {
                let own = calls.iter().position(|call| call["id"] == message["tool_call_id"]).expect("a call");
                let call: Value = calls.remove(own);
                let (tool, arguments) = (call["function"]["name"].clone(), arguments(&call));
                // A tool does not run with arguments that are none.
                if arguments.is_object() {
                    let word = |value: &Value| value.as_str().expect("text").to_owned();
                    let result = parsed(&message["content"]);
                    all.push((turn, Deed::Ran(word(&call["id"]), word(&tool), arguments, result)));
                }
            }
        }
    }
    all
}

fn parsed(value: &Value) -> Value {
    serde_json::from_str(value.as_str().expect("text")).unwrap_or_else(|_| value.clone())
}

fn arguments(call: &Value) -> Value {
    let written = &call["function"]["arguments"];
    if *written == "" { json!({}) } else { parsed(written) }
}

/// A message as Vercel's AI SDK has it.
fn of_ai_sdk(message: &Value) -> Value {
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        json!({"type": "tool-call", "toolCallId": call["id"], "toolName": call["function"]["name"], "input": arguments(call)})
    });
    let content = match message["role"].as_str() {
        Some("tool") => json!([{"type": "tool-result", "toolCallId": message["tool_call_id"],
            "output": {"type": "text", "value": message["content"]}}]),
        Some("assistant") => {
            let words = message["content"].as_str().map(|words| json!({"type": "text", "text": words}));
            words.into_iter().chain(calls).collect()
        }
        _ => message["content"].clone(),
    };
    json!({"role": message["role"], "content": content})
}

/// Name and attributes of the span of a deed, by a convention.
fn attributes(deed: &Deed, convention: &str) -> (String, Value) {
    let name = match deed {
        Deed::Ran(_, tool, ..) => tool.clone(),
        _ => "s".to_owned(),
    };
    let own = match (convention, deed) {
        ("langfuse", Deed::Turn) => json!({"langfuse.observation.type": "agent"}),
        ("langfuse", Deed::Completed(input, output)) => {
            json!({"langfuse.observation.type": "generation",
            "langfuse.observation.input": {"messages": input}, "langfuse.observation.output": output})
        }
        ("langfuse", Deed::Ran(_, _, arguments, result)) => json!({"langfuse.observation.type": "tool",
            "langfuse.observation.input": {"args": [], "kwargs": arguments}, "langfuse.observation.output": result}),
        ("ai_sdk", Deed::Turn) => json!({"ai.operationId": "ai.generateText"}),
        ("ai_sdk", Deed::Completed(input, output)) => {
            let input: Value = input.iter().map(of_ai_sdk).collect();
            let calls = output["tool_calls"].as_array().map(|calls| {
                let call = |call: &Value| {
                    json!({"toolCallId": call["id"], "toolName": call["function"]["name"],
                    "input": call["function"]["arguments"]})
                };
                calls.iter().map(call).collect::<Value>()
            });
            json!({"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": input,
                "ai.response.text": output["content"].as_str().unwrap_or_default(), "ai.response.toolCalls": calls})
        }
        ("ai_sdk", Deed::Ran(id, tool, arguments, result)) => {
            json!({"ai.operationId": "ai.toolCall", "ai.toolCall.name": tool, "ai.toolCall.id": id,
            "ai.toolCall.args": arguments, "ai.toolCall.result": result})
        }
        (_, Deed::Turn) => json!({"gen_ai.operation.name": "invoke_agent"}),
        (_, Deed::Completed(input, output)) => json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
            "gen_ai.input.messages": input, "gen_ai.output.messages": [output]}),
        (_, Deed::Ran(id, tool, arguments, result)) => json!({"gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool, "gen_ai.tool.call.id": id, "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": result}),
    };
    (name, own)
}

/// The spans of a conversation: an agent for each turn, and what it did within.
fn spans(messages: &[Value], convention: &str) -> String {
    let mut root = String::new();
    let span = |(place, (turn, deed)): (usize, (usize, Deed))| {
        let (name, own) = attributes(&deed, convention);
        let id = format!("{:016x}", place + 1);
        let is_turn = matches!(deed, Deed::Turn);
        let parent = if is_turn { String::new() } else { root.clone() };
        if is_turn {
            root.clone_from(&id);
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = own.as_object().expect("attributes").iter().filter(|(_, value)| !value.is_null());
        let pairs: Vec<Value> =
            pairs.map(|(key, value)| json!({"key": key, "value": {"stringValue": text(value)}})).collect();
        let at = (1_700_000_000 + turn as u64 * 1_000 + place as u64) * 1_000_000_000;
        let end = at + if is_turn { 900_000_000_000 } else { 500_000_000 };
        let span = json!({"traceId": format!("{:032x}", 1), "spanId": id, "parentSpanId": parent, "name": name,
            "startTimeUnixNano": at.to_string(), "endTimeUnixNano": end.to_string(), "attributes": pairs});
        match convention {
            "parts" | "openinference" | "openllmetry" => in_convention(&span, convention),
            _ => span,
        }
    };
    let all: Vec<Value> = deeds(messages).into_iter().enumerate().map(span).collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": all}]}]}).to_string()
}

/// The runs of a conversation, as the SDK of LangSmith posts them.
fn runs(messages: &[Value]) -> String {
    let id = |place: usize| format!("00000000-0000-7000-8000-{place:012}");
    let mut root = Value::Null;
    let run = |(place, (turn, deed)): (usize, (usize, Deed))| {
        let parent = if matches!(deed, Deed::Turn) { Value::Null } else { root.clone() };
        let (kind, inputs, outputs) = match &deed {
            Deed::Turn => {
                root = json!(id(place));
                ("chain", json!({}), json!({}))
            }
            Deed::Completed(input, output) => {
                ("llm", json!({"messages": input}), json!({"choices": [{"message": output}]}))
            }
            Deed::Ran(_, _, arguments, result) => ("tool", arguments.clone(), json!({"output": result})),
        };
        json!({"id": id(place), "trace_id": id(0), "parent_run_id": parent, "run_type": kind,
            "name": attributes(&deed, "langsmith").0, "inputs": inputs, "outputs": outputs,
            "start_time": format!("2026-07-02T1{turn}:00:{place:02}.000000+00:00"),
            "end_time": format!("2026-07-02T1{turn}:00:{place:02}.500000+00:00")})
    };
    json!({"post": deeds(messages).into_iter().enumerate().map(run).collect::<Vec<_>>()}).to_string()
}

/// A conversation of one turn as a row of OpenAI Evals.
fn row(messages: &[Value]) -> Option<String> {
    let is_one = messages.iter().filter(|message| message["role"] == "user").count() == 1;
    let row = json!({"item": {"q": "q"}, "sample": {"input": messages[..1], "output": messages[1..]}});
    is_one.then(|| row.to_string())
}

#[test]
fn conversations_count_in_the_format_of_each_import_as_they_do_in_openais_shape() {
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for one in &labelled("imports.yaml") {
        let (name, why) = (text(one, "name"), text(one, "why"));
        let messages: Vec<Value> = one["messages"].as_array().expect("messages").iter().map(message).collect();
        let counts = one["counts"].as_object().expect("counts");
        let by_spans = ["messages", "parts", "openinference", "openllmetry", "langfuse", "ai_sdk"];
        let mut files: Vec<(&str, Format, String)> = by_spans.map(|by| (by, Format::Otlp, spans(&messages, by))).into();
        files.push(("langsmith", Format::Otlp, runs(&messages)));
        if WITHOUT_SPAN.contains(&name) {
            files.clear();
        }
        files.extend(row(&messages).map(|row| ("evals", Format::Evals, row)));
        for (format, kind, file) in files {
            let asked = serde_json::from_value(json!({"criteria": criteria(&names(counts))})).expect("criteria");
            let read = kind.read("c.json", file.as_bytes(), Some(asked), None).expect("a file");
            judged += 1;
            let name = format!("{name} as {format}");
            wrong.extend(differences(&name, why, counts, &evaluation(read.plan, &read.traces)));
        }
    }
    assert!(judged > 150, "{judged}");
    assert!(wrong.is_empty(), "{} of {judged}:\n{}", wrong.len(), wrong.join("\n"));
}
