//! Traces of OpenTelemetry as conversations: the verdicts of the same conversations as messages, and what is missing.

use super::project::{Outcome, Project};
use serde_json::{Value, json};

fn span(trace: usize, id: u64, parent: u64, attributes: &Value) -> Value {
    let of = |value: &Value| match value {
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        other => json!({"stringValue": other.as_str().map_or_else(|| other.to_string(), str::to_owned)}),
    };
    let pairs: Vec<Value> = attributes
        .as_object()
        .expect("attributes")
        .iter()
        .map(|(key, value)| json!({"key": key, "value": of(value)}))
        .collect();
    let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
    json!({"traceId": format!("{:032x}", trace + 1), "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": "s",
        "startTimeUnixNano": (1_700_000_000_000_000_000 + id * 1_000_000_000).to_string(),
        "endTimeUnixNano": (1_700_000_000_500_000_000 + id * 1_000_000_000).to_string(), "attributes": pairs})
}

fn export(spans: &[Value]) -> String {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string()
}

fn import(project: &Project, format: &str, text: &str, more: &[&str]) -> Outcome {
    project.write("log.json", text);
    project.run(&[&["score", "--import", format, "log.json"][..], more].concat())
}

/// Verdicts by case.
fn verdicts(project: &Project) -> Vec<(String, String)> {
    let run = project.latest("run.json");
    let trials = run["trials"].as_array().expect("trials").iter();
    trials.map(|trial| (trial["case"].to_string(), trial["verdict"].to_string())).collect()
}

/// A conversation with two calls, as messages and as the spans of an instrumented agent.
fn labelled(number: usize) -> (Value, Vec<Value>) {
    let reward = [1.0, 0.0, 0.5][number % 3];
    let task = format!("task-{number}");
    let question = format!("Question {number}?");
    let call = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\":\"x\"}"}});
    let asked = json!([{"role": "user", "content": question}]);
    let mut messages = asked.as_array().expect("messages").clone();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.push(json!({"role": "tool", "tool_call_id": "c1", "content": "{\"hits\":[]}"}));
    let shown = Value::Array(messages.clone());
    messages.push(json!({"role": "assistant", "content": "So it is."}));
    let about = json!({"gen_ai.operation.name": "invoke_agent", "ragcheck.task_id": task, "ragcheck.reward": reward});
    let chat = |input: &Value, output: Value| {
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": input,
            "gen_ai.output.messages": [output], "gen_ai.usage.input_tokens": 7})
    };
    let said = json!({"role": "assistant", "content": "So it is."});
    let spans = vec![
        span(number, 1, 0, &about),
        span(number, 2, 1, &chat(&asked, json!({"role": "assistant", "tool_calls": [call]}))),
        span(
            number,
            3,
            1,
            &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find",
            "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": "{\"q\":\"x\"}", "gen_ai.tool.call.result": "{\"hits\":[]}"}),
        ),
        span(number, 4, 1, &chat(&shown, said)),
    ];
    (json!({"task_id": task, "reward": reward, "messages": messages}), spans)
}

#[test]
fn labelled_conversations_have_the_same_verdicts_as_spans_and_as_messages() {
    let (messages, spans): (Vec<Value>, Vec<Vec<Value>>) = (0..9).map(labelled).unzip();
    let project = Project::starter();
    import(&project, "messages", &Value::Array(messages).to_string(), &[]);
    let expected = verdicts(&project);
    assert!(expected.iter().any(|(_, verdict)| verdict.contains("PASS")), "{expected:?}");
    assert!(expected.iter().any(|(_, verdict)| verdict.contains("FAIL")), "{expected:?}");
    let outcome = import(&project, "otlp", &export(&spans.concat()), &[]);
    assert_eq!(verdicts(&project), expected);
    assert!(outcome.stderr.trim_end().ends_with("9 traces: 9 complete"), "{}", outcome.stderr);
    let trace = &project.traces()[0];
    let calls: Vec<&Value> = trace["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["what"].get("tool_called"))
        .collect();
    assert_eq!(calls.len(), 1, "a call and its run are one");
    assert_eq!((&calls[0]["id"], &calls[0]["outcome"]), (&json!("c1"), &json!({"ok": {"other": {"hits": []}}})));
    // The same spans with retrieved documents show what a search found.
    let document = json!({"openinference.span.kind": "RETRIEVER", "input.value": "x",
        "retrieval.documents.0.document.id": "a#1", "retrieval.documents.0.document.content": "So it is."});
    let more = [spans[0].clone(), vec![span(0, 5, 3, &document)]].concat();
    import(&project, "otlp", &export(&more), &[]);
    let calls = project.traces()[0].to_string();
    assert!(calls.contains(r#""id":"a#1""#) && calls.contains(r#""excerpt":"So it is.""#), "{calls}");
    // A search in place of the run, or beside it, is the model's call, which counts once.
    let mut beside = span(0, 3, 1, &document);
    beside["spanId"] = json!(format!("{:016x}", 30));
    for ran in [Vec::new(), vec![spans[0][2].clone()]] {
        let all = [spans[0][..2].to_vec(), ran, vec![beside.clone(), spans[0][3].clone()]].concat();
        import(&project, "otlp", &export(&all), &[]);
        let trace = project.traces()[0].to_string();
        assert_eq!((trace.matches("tool_called").count(), trace.contains("searched")), (1, false), "{trace}");
        assert!(trace.contains(r#""id":"a#1""#), "{trace}");
    }
}

#[test]
fn a_turn_with_a_span_of_an_impossible_time_has_no_time_and_another_has() {
    let project = Project::starter();
    let criteria = "criteria: [{id: TIME, about: Turns are fast, metric: latency_p95, target: <= 30s, kind: point}]\n";
    project.write("time.yaml", criteria);
    let known = [
        ("startTimeUnixNano", json!("1700000001000000000"), "1"),
        ("endTimeUnixNano", json!("1700000001500000000"), "1"),
    ];
    let impossible = [
        ("startTimeUnixNano", json!("0"), "0"),
        ("startTimeUnixNano", json!("99999999999999999999999999"), "0"),
        ("endTimeUnixNano", json!("1600000000000000000"), "0"),
        ("endTimeUnixNano", json!("0"), "0"),
    ];
    for (place, (member, time, units)) in known.into_iter().chain(impossible).enumerate() {
        // The span of the agent, and that of a completion in it.
        for span in [0, 1].into_iter().filter(|span| *span == 0 || units == "0") {
            let (_, mut spans) = labelled(0);
            spans[span][member] = time.clone();
            import(&project, "otlp", &export(&spans), &["--criteria", "time.yaml"]);
            let run = project.latest("run.json");
            let row = &run["criteria"][0];
            assert_eq!(row["n"].to_string(), units, "{place}, span {span}: {row}");
            let notes = project.traces()[0]["notes"].to_string();
            assert_eq!(notes.contains("with an impossible time"), units == "0", "{place}, span {span}: {notes}");
        }
    }
}

/// The members of a message that OpenInference and OpenLLMetry flatten, by their names in it.
fn flat(message: &Value, at: &str, (inner, call): (&str, &str)) -> Vec<(String, Value)> {
    let own = ["role", "content", "tool_call_id"].map(|name| (format!("{at}{inner}{name}"), message[name].clone()));
    let calls = message["tool_calls"].as_array().into_iter().flatten().enumerate().flat_map(|(n, made)| {
        let function = if call.is_empty() { "" } else { "function." };
        let at = |name: &str| format!("{at}{inner}tool_calls.{n}.{call}{name}");
        let of = &made["function"];
        [
            (at("id"), made["id"].clone()),
            (at(&format!("{function}name")), of["name"].clone()),
            (at(&format!("{function}arguments")), of["arguments"].clone()),
        ]
    });
    own.into_iter().chain(calls).collect()
}

/// A message as the GenAI conventions of today have it.
fn in_parts(message: &Value) -> Value {
    let mut parts = Vec::new();
    match message["content"].as_str() {
        Some(content) if message["role"] == "tool" => {
            parts.push(json!({"type": "tool_call_response", "id": message["tool_call_id"], "result": content}));
        }
        Some(content) => parts.push(json!({"type": "text", "content": content})),
        None => {}
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let written = &call["function"]["arguments"];
        let arguments: Value =
            serde_json::from_str(written.as_str().expect("text")).unwrap_or_else(|_| written.clone());
        parts.push(
            json!({"type": "tool_call", "id": call["id"], "name": call["function"]["name"], "arguments": arguments}),
        );
    }
    json!({"role": message["role"], "parts": parts})
}

/// The same span by another convention.
pub fn in_convention(span: &Value, convention: &str) -> Value {
    let pairs = span["attributes"].as_array().expect("attributes");
    let mut out: Vec<(String, Value)> = Vec::new();
    for pair in pairs {
        let (key, value) = (pair["key"].as_str().expect("a key"), pair["value"]["stringValue"].clone());
        let text = value.as_str().unwrap_or_default();
        let messages = || serde_json::from_str::<Vec<Value>>(text).expect("messages");
        let name = match (convention, key) {
            ("parts", "gen_ai.input.messages" | "gen_ai.output.messages") => {
                let list: Value = messages().iter().map(in_parts).collect();
                out.push((key.to_owned(), list.to_string().into()));
                continue;
            }
            (_, "gen_ai.input.messages" | "gen_ai.output.messages") if convention != "parts" => {
                let (of, shape) = match (convention, key.contains("input")) {
                    ("openinference", true) => ("llm.input_messages", ("message.", "tool_call.")),
                    ("openinference", false) => ("llm.output_messages", ("message.", "tool_call.")),
                    (_, true) => ("gen_ai.prompt", ("", "")),
                    (_, false) => ("gen_ai.completion", ("", "")),
                };
                let all = messages();
                let all = all.iter().enumerate().flat_map(|(n, one)| flat(one, &format!("{of}.{n}."), shape));
                out.extend(all.filter(|(_, value)| !value.is_null()));
                continue;
            }
            ("openinference", "gen_ai.operation.name") => {
                let kind = match text {
                    "chat" => "LLM",
                    "execute_tool" => "TOOL",
                    _ => "AGENT",
                };
                out.push(("openinference.span.kind".into(), kind.into()));
                continue;
            }
            ("openllmetry", "gen_ai.operation.name") => {
                let (name, kind) = match text {
                    "chat" => ("llm.request.type", "chat"),
                    "execute_tool" => ("traceloop.span.kind", "tool"),
                    _ => ("traceloop.span.kind", "agent"),
                };
                out.push((name.into(), kind.into()));
                continue;
            }
            ("openinference", "gen_ai.request.model") => "llm.model_name",
            ("openinference", "gen_ai.tool.name") => "tool.name",
            ("openinference", "gen_ai.tool.call.arguments") => "input.value",
            ("openinference", "gen_ai.tool.call.result") => "output.value",
            ("openllmetry", "gen_ai.tool.name") => "traceloop.entity.name",
            ("openllmetry", "gen_ai.tool.call.arguments") => "traceloop.entity.input",
            ("openllmetry", "gen_ai.tool.call.result") => "traceloop.entity.output",
            (_, other) => other,
        };
        out.push((name.to_owned(), value));
    }
    let of_text = out.into_iter().filter(|(_, value)| !value.is_null());
    let of_text = of_text.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
    let others = pairs.iter().filter(|pair| pair["value"]["stringValue"].is_null()).cloned();
    let mut span = span.clone();
    span["attributes"] = of_text.chain(others).collect();
    span
}

#[test]
fn labelled_conversations_have_the_same_verdicts_and_calls_by_each_convention() {
    let (messages, spans): (Vec<Value>, Vec<Vec<Value>>) = (0..9).map(labelled).unzip();
    let project = Project::starter();
    import(&project, "messages", &Value::Array(messages).to_string(), &[]);
    let expected = verdicts(&project);
    let called = |project: &Project| {
        let traces = project.traces();
        let events = traces.iter().flat_map(|trace| trace["events"].as_array().expect("events").clone());
        let calls = events.filter_map(|event| event["what"].get("tool_called").cloned());
        calls.map(|call| (call["tool"].clone(), call["arguments"].clone(), call["outcome"].clone())).collect::<Vec<_>>()
    };
    import(&project, "otlp", &export(&spans.concat()), &[]);
    let calls = called(&project);
    assert_eq!(calls.len(), 9);
    for convention in ["parts", "openinference", "openllmetry"] {
        let spans: Vec<Value> = spans.iter().flatten().map(|span| in_convention(span, convention)).collect();
        let outcome = import(&project, "otlp", &export(&spans), &[]);
        assert!(outcome.stderr.trim_end().ends_with("9 traces: 9 complete"), "{convention}: {}", outcome.stderr);
        assert_eq!(verdicts(&project), expected, "{convention}");
        assert_eq!(called(&project), calls, "{convention}");
    }
}

#[test]
fn a_line_that_cannot_be_read_may_be_a_call_and_metrics_in_the_file_are_none() {
    let project = Project::starter();
    project.write(
        "agent.yaml",
        "scenario: agent\nflow: external\ntarget: {http: \"http://127.0.0.1:8100/chat\"}\nmodel: {provider: simulator, name: m}\n\
         cases:\n  - {case: task-0, ask: \"Question 0?\", expect: {calls: [{never: delete_account}]}}\n",
    );
    let about = json!({"gen_ai.operation.name": "invoke_agent", "ragcheck.task_id": "task-0"});
    let whole = export(&[&[span(0, 1, 0, &about)][..], &labelled(0).1[1..]].concat());
    for (beside, verdict, said) in [
        ("", "PASS", ""),
        (r#"{"resourceMetrics": []}"#, "PASS", "`resourceMetrics` passed over"),
        (r#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"na"#, "ERROR", "1 part of the file not read"),
        (r#"{"traceId": "x", "spanId": "y", "name": "delete_account"}"#, "ERROR", "its trace id is \"x\""),
    ] {
        let outcome = import(&project, "otlp", &format!("{whole}\n{beside}\n"), &["--scenario", "agent.yaml"]);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
        assert_eq!(verdicts(&project), [("\"task-0\"".to_owned(), format!("\"{verdict}\""))], "{beside}");
    }
}

#[test]
fn spans_that_contradict_each_other_about_the_grade_or_the_case_are_an_error() {
    let about = |reward: &Value, task: &str| json!({"ragcheck.reward": reward, "ragcheck.task_id": task});
    let project = Project::starter();
    for (reward, task, verdict) in
        [(json!(1), "task-0", "PASS"), (json!(0.0), "task-0", "ERROR"), (json!(1), "delivery", "ERROR")]
    {
        let spans = [labelled(0).1, vec![span(0, 9, 1, &about(&reward, task))]].concat();
        import(&project, "otlp", &export(&spans), &[]);
        assert_eq!(verdicts(&project)[0].1, format!("\"{verdict}\""), "{reward} {task}");
    }
}

#[test]
fn the_last_line_says_how_many_traces_are_complete_without_contents_or_broken_and_why() {
    let mut spans = labelled(0).1;
    let chat = json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7});
    spans.push(span(1, 1, 0, &chat));
    spans.push(span(2, 1, 0, &json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": "So."})));
    spans.push(span(3, 1, 0, &json!({"http.method": "GET"})));
    let mut wrong = span(4, 1, 0, &chat);
    wrong["traceId"] = json!("x");
    spans.push(wrong);
    let project = Project::starter();
    let outcome = import(&project, "otlp", &export(&spans), &[]);
    let last = "4 traces: 1 complete, 1 without contents (score only), 1 broken: no span says what turn 1 was asked, 1 of \
                other work, left out, 1 part of the file not read: the span `s`: its trace id is \"x\"";
    assert!(outcome.stderr.trim_end().ends_with(last), "{}", outcome.stderr);
    outcome.expect_code(3);
    let run = project.latest("run.json").to_string();
    assert!(run.contains("turns[].answer"), "what has no contents names the member that is missing: {run}");
    let nothing = import(&project, "otlp", &export(&[span(3, 1, 0, &json!({"http.method": "GET"}))]), &[]);
    nothing.expect_code(2);
    assert!(nothing.stderr.contains("no span says what an agent did"), "{}", nothing.stderr);
    import(&project, "otlp", "nothing", &[]).expect_code(2);
    let unknown = import(&project, "otel", "{}", &[]);
    assert!(unknown.stderr.contains("`--import otlp FILE`"), "{}", unknown.stderr);
}

/// Successes and units of the usual criterion on answers.
fn answers(project: &Project) -> (u64, u64) {
    let run = project.latest("run.json");
    let row = run["criteria"].as_array().expect("criteria").iter().find(|row| row["id"] == "answers").expect("a row");
    (row["successes"].as_u64().expect("successes"), row["n"].as_u64().expect("n"))
}

#[test]
fn an_empty_answer_is_none_in_every_format_and_a_failed_completion_fails_its_turn() {
    let asked = json!([{"role": "user", "parts": [{"type": "text", "content": "q"}]}]);
    let said = |text: &str| json!([{"role": "assistant", "parts": [{"type": "text", "content": text}]}]);
    let of = |operation: &str, output: Value| {
        span(
            0,
            1,
            0,
            &json!({"gen_ai.operation.name": operation, "gen_ai.input.messages": asked, "gen_ai.output.messages": output}),
        )
    };
    let failed = |mut span: Value| {
        span["status"] = json!({"code": 2, "message": "rate limit"});
        span
    };
    let langfuse = |level: &str, output: &str| {
        span(
            0,
            1,
            0,
            &json!({"langfuse.observation.type": "generation", "langfuse.observation.input": asked,
            "langfuse.observation.level": level, "langfuse.observation.status_message": "rate limit", "langfuse.observation.output": output}),
        )
    };
    let trace =
        |text: &str| json!({"conversations": [{"turns": [{"message": "q", "answer": {"text": text}}]}]}).to_string();
    let messages =
        |text: &str| json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": text}]).to_string();
    let otlp = |span: Value| export(&[span]);
    for (format, text, successes, why) in [
        ("trace", trace("a"), 1, ""),
        ("trace", trace(""), 0, "answer_empty"),
        ("trace", trace(" \n"), 0, "answer_empty"),
        ("messages", messages(" "), 0, ""),
        ("otlp", otlp(of("invoke_agent", said("a"))), 1, ""),
        ("otlp", otlp(of("invoke_agent", said(""))), 0, "answer_empty"),
        ("otlp", otlp(of("chat", said("a"))), 1, ""),
        ("otlp", otlp(of("chat", said(" "))), 0, "answer_empty"),
        ("otlp", otlp(failed(of("chat", json!([])))), 0, "rate limit"),
        ("otlp", otlp(failed(of("chat", said("half an ans")))), 0, "rate limit"),
        ("otlp", otlp(langfuse("DEFAULT", "a")), 1, ""),
        ("otlp", otlp(langfuse("DEFAULT", "")), 0, "answer_empty"),
        ("otlp", otlp(langfuse("ERROR", "")), 0, "rate limit"),
    ] {
        let project = Project::starter();
        import(&project, format, &text, &[]);
        assert_eq!(answers(&project), (successes, 1), "{format}: {text}");
        let told = project.traces()[0].to_string();
        assert!(told.contains(why), "{why} of {text}: {told}");
    }
}

#[test]
fn a_reward_in_a_span_is_a_number_from_0_to_1_or_a_truth_value_and_another_is_an_error() {
    let agent = |reward: Value| {
        let mut span = span(
            0,
            1,
            0,
            &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": "q", "gen_ai.output.messages": "a"}),
        );
        span["attributes"].as_array_mut().expect("attributes").push(json!({"key": "ragcheck.reward", "value": reward}));
        span
    };
    for (reward, verdict) in [
        (json!({"doubleValue": 1.0}), "PASS"),
        (json!({"boolValue": true}), "PASS"),
        (json!({"boolValue": false}), "FAIL"),
        (json!({"intValue": "0"}), "FAIL"),
        (json!({"doubleValue": 50.0}), "ERROR"),
        (json!({"stringValue": "0"}), "ERROR"),
        (json!({"stringValue": "fail"}), "ERROR"),
    ] {
        let project = Project::starter();
        let outcome = import(&project, "otlp", &export(&[agent(reward.clone())]), &[]);
        let trial = &project.latest("run.json")["trials"][0];
        assert_eq!(trial["verdict"], verdict, "{reward}: {trial}");
        assert_eq!(
            outcome.stderr.contains("`ragcheck.reward` is "),
            verdict == "ERROR",
            "{reward}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn an_agent_run_that_ended_in_an_error_is_a_failed_turn_whether_or_not_its_spans_hold_messages() {
    let asked = json!([{"role": "user", "parts": [{"type": "text", "content": "q"}]}]);
    let said = json!([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]);
    let failed = |mut span: Value| {
        span["status"] = json!({"code": 2, "message": "TimeoutError"});
        span
    };
    let bare =
        |trace, id, parent, operation: &str| span(trace, id, parent, &json!({"gen_ai.operation.name": operation}));
    let whole = |trace| {
        span(
            trace,
            1,
            0,
            &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": asked, "gen_ai.output.messages": said}),
        )
    };
    for (spans, expected, what) in [
        (vec![whole(0), failed(bare(1, 1, 0, "invoke_agent"))], (1, 2), "an agent that failed"),
        (vec![whole(0), failed(bare(1, 1, 0, "chat"))], (1, 2), "a completion that failed, without an agent"),
        (vec![whole(0), failed(bare(0, 5, 0, "invoke_agent"))], (1, 2), "the second turn of a conversation"),
        (
            vec![whole(0), bare(1, 1, 0, "invoke_agent"), failed(bare(1, 2, 1, "chat"))],
            (1, 1),
            "an agent that ended well may have answered without its model",
        ),
        (vec![whole(0), bare(1, 1, 0, "invoke_agent")], (1, 1), "nothing says how it ended"),
    ] {
        let project = Project::starter();
        import(&project, "otlp", &export(&spans), &[]);
        assert_eq!(answers(&project), expected, "{what}");
    }
}

#[test]
fn an_answer_is_grounded_in_what_was_found_before_it_and_whose_text_the_spans_hold() {
    let chat = |input: &Value| {
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input,
            "gen_ai.output.messages": [{"role": "assistant", "content": "It is 30 days."}]})
    };
    let asked = json!([{"role": "user", "content": "How long?"}]);
    let search = |documents: Value| json!({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "x", "gen_ai.retrieval.documents": documents});
    let found = json!([{"id": "d1", "content": "Returns within 30 days."}]);
    let call = json!([{"id": "c1", "function": {"name": "search", "arguments": "{\"query\": \"x\"}"}}]);
    let shown = json!([asked[0], {"role": "assistant", "tool_calls": call},
        {"role": "tool", "tool_call_id": "c1", "content": "Returns within 30 days."}]);
    let ids = || search(json!([{"id": "d1", "score": 0.9}]));
    let served = |result: Value| {
        let parts = json!([{"type": "server_tool_use", "id": "s1", "name": "search", "input": {"query": "x"}}, result]);
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked, "gen_ai.output.messages": [{"role": "assistant", "parts": parts}]})
    };
    let result = |content: Value| json!({"type": "search_tool_result", "tool_use_id": "s1", "content": content});
    // Spans at seconds; each lasts half a second.
    for (searched, at, input, verdict) in [
        (search(found.clone()), 2, &asked, "PASS"),
        (search(found.clone()), 4, &asked, "PASS"),
        (search(found), 6, &asked, "FAIL"),
        (search(json!([])), 2, &asked, "FAIL"),
        (search(json!([{"id": "d1", "content": "Returns are free."}])), 2, &asked, "FAIL"),
        (ids(), 2, &asked, "ERROR"),
        (ids(), 2, &shown, "PASS"),
        (search(json!([])), 2, &shown, "PASS"),
        (served(json!({"type": "text", "content": "I search."})), 2, &asked, "ERROR"),
        (served(result(json!([{"type": "web_search_result", "encrypted_content": "EqgfCioI"}]))), 2, &asked, "ERROR"),
        (served(result(json!("Returns within 30 days."))), 2, &asked, "PASS"),
        (served(result(json!("Returns are free."))), 2, &asked, "FAIL"),
    ] {
        let project = Project::starter();
        project.write(
            "agent.yaml",
            "scenario: agent\nflow: external\ntarget: {http: \"http://127.0.0.1:8100/chat\"}\nmodel: {provider: simulator, name: m}\n\
             roles: {knowledge: search}\ncases: [{case: a, ask: How long?, expect: {answer: {grounded: true}}}]\n",
        );
        let about = json!({"gen_ai.operation.name": "invoke_agent", "ragcheck.task_id": "a"});
        let spans = [span(0, 1, 0, &about), span(0, at, 1, &searched), span(0, 4, 1, &chat(input))];
        import(&project, "otlp", &export(&spans), &["--scenario", "agent.yaml"]);
        let trial = &project.latest("run.json")["trials"][0];
        assert_eq!(trial["verdict"], verdict, "{searched} at {at}: {trial}");
    }
}
