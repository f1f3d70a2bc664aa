//! What the SDKs of Langfuse, LangSmith and Vercel posted (`fixtures/telemetry`): the conversations in it, against the reader
//! in `tests/oracle/telemetry.py`, and the verdicts of labelled conversations in the shapes of all imports.

use super::project::{Outcome, Project};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Captures, with the number of traces in each.
const CAPTURES: [(&str, usize); 5] = [
    ("langfuse.otlp", 3),
    ("langsmith.jsonl", 3),
    ("langsmith-langgraph.jsonl", 1),
    ("langsmith-multipart.bin", 1),
    ("ai-sdk.json", 3),
];

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/telemetry").join(name)
}

fn import(project: &Project, name: &str) -> Outcome {
    let file = project.path(name);
    fs::copy(capture(name), file).expect("a capture");
    project.run(&["score", "--import", name])
}

fn events<'t>(trace: &'t Value, kind: &'t str) -> impl Iterator<Item = &'t Value> {
    trace["events"].as_array().expect("events").iter().filter_map(move |event| event["what"].get(kind))
}

/// What the import of a trace says, in the words of the reader.
fn told(trace: &Value) -> Value {
    let models = events(trace, "model_called").map(|call| {
        let reply = &call["reply"]["completion"];
        json!([reply["model"], reply["input_tokens"], reply["output_tokens"]])
    });
    let mut passages = Vec::new();
    let tools = events(trace, "tool_called").map(|call| {
        let outcome = &call["outcome"];
        let found = outcome["ok"]["search"]["hits"].as_array().into_iter().flatten();
        passages.extend(found.map(|hit| json!([hit["id"], hit["excerpt"]])));
        json!([call["tool"], call["arguments"], outcome["ok"]["other"]])
    });
    let tools: Vec<Value> = tools.collect();
    let ended: Vec<&Value> = events(trace, "turn_ended").collect();
    let asked: Vec<&Value> = events(trace, "turn_started").collect();
    assert_eq!((asked.len(), ended.len()), (1, 1), "{trace}");
    json!({"models": models.collect::<Vec<_>>(), "tools": tools, "passages": passages, "question": asked[0]["query"],
        "answer": ended[0]["outcome"]["answered"]["text"]})
}

#[test]
#[ignore = "needs python3, its standard library alone"]
fn every_trace_of_three_vendors_says_what_an_independent_reader_reads() {
    for (name, number) in CAPTURES {
        let project = Project::starter();
        let outcome = import(&project, name);
        let complete = format!("{number} trace{}: {number} complete", if number == 1 { "" } else { "s" });
        assert!(outcome.stderr.trim_end().ends_with(&complete), "{name}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("read as `otlp`"), "{}", outcome.stderr);
        let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/telemetry.py");
        let read = Command::new("python3").arg(oracle).arg(capture(name)).output().expect("python3");
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let read = String::from_utf8(read.stdout).expect("text");
        let read: Vec<Value> = read.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let traces = project.traces();
        assert_eq!((traces.len(), read.len()), (number, number), "{name}");
        for row in &read {
            let note = format!("trace {}", row["trace"].as_str().expect("an id"));
            let notes = |trace: &&Value| trace["notes"].as_array().expect("notes").contains(&json!(note));
            let trace = traces.iter().find(notes).unwrap_or_else(|| panic!("{name}: no {note}"));
            let mut told = told(trace);
            let mut row = row.clone();
            let members = row.as_object_mut().expect("an object");
            members.remove("trace");
            let earlier = members.remove("earlier").expect("messages").as_array().map_or(0, Vec::len);
            assert_eq!(trace["notes"].to_string().contains("of the user before its first turn"), earlier > 0, "{name}");
            // The result of a search is its passages.
            if row["passages"] != json!([]) {
                for side in [&mut row, &mut told] {
                    side["tools"][0][2] = Value::Null;
                }
            }
            assert_eq!(told, row, "{name}");
        }
    }
}

#[test]
fn a_failed_tool_fails_in_every_capture_and_a_graph_is_one_turn() {
    for (name, number) in CAPTURES {
        let project = Project::starter();
        import(&project, name);
        let traces = project.traces();
        let failed = |trace: &&Value| events(trace, "tool_called").any(|call| call["outcome"].get("failed").is_some());
        assert_eq!(traces.iter().filter(failed).count(), usize::from(number == 3), "{name}");
        let turns: Vec<usize> = traces.iter().map(|trace| events(trace, "turn_started").count()).collect();
        assert_eq!(turns, vec![1; number], "{name}");
    }
}

#[test]
fn a_marked_result_that_only_an_input_shows_has_failed_and_a_run_without_an_id_is_of_the_call_with_its_arguments() {
    let call = |id: &str, word: &str| json!({"toolCallId": id, "toolName": "find", "input": {"q": word}});
    let step = |messages: Value, more: Value| {
        let mut step = json!({"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": messages});
        step.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        step
    };
    let asked = json!({"role": "user", "content": [{"type": "text", "text": "Why?"}]});
    let failed = json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "find",
        "output": {"type": "error-text", "value": "index is down"}}]});
    let file = spans(
        0,
        &json!({}),
        [
            json!({"ai.operationId": "ai.generateText", "ai.prompt": {"prompt": "Why?"}, "ai.response.text": "So."}),
            step(json!([asked]), json!({"ai.response.toolCalls": [call("c1", "a"), call("c2", "b")]})),
            json!({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "find", "ai.toolCall.args": {"q": "b"},
                "ai.toolCall.result": {"hits": []}}),
            step(json!([asked, failed]), json!({"ai.response.text": "So."})),
        ],
    );
    let project = Project::starter();
    project.write("log.json", &file.to_string());
    let outcome = project.run(&["score", "--import", "log.json"]);
    let trace = &project.traces()[0];
    let outcomes: Vec<Value> = events(trace, "tool_called").map(|call| json!([call["id"], call["outcome"]])).collect();
    let failed = json!({"failed": {"message": "index is down", "retryable": false}});
    assert_eq!(outcomes, [json!(["c1", failed]), json!(["c2", {"ok": {"other": {"hits": []}}}])], "{}", outcome.stderr);
}

#[test]
fn results_with_ids_of_no_call_belong_to_the_calls_in_order_and_steps_without_words_are_no_conversation() {
    let chat = |input: Value, output: Value| {
        json!({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": input,
            "gen_ai.output.messages": [output]})
    };
    let call = |id: &str, word: &str| json!({"type": "tool_call", "id": id, "name": "find", "arguments": {"q": word}});
    let result = |id: &str, text: &str| json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": text}]});
    let asked = json!({"role": "user", "content": "Why?"});
    let calls = json!({"role": "assistant", "parts": [call("fc1", "a"), call("fc2", "b")]});
    let file = spans(
        0,
        &json!({}),
        [
            json!({"gen_ai.operation.name": "invoke_agent"}),
            chat(json!([asked]), calls.clone()),
            json!({"gen_ai.operation.name": "embeddings"}),
            chat(
                json!([asked, calls, result("call_1", "A"), result("call_2", "B")]),
                json!({"role": "assistant", "content": "So."}),
            ),
        ],
    );
    let step = json!({"openinference.span.kind": "CHAIN", "input.value": {"nodes": ["<Document(id_=a)>"]},
        "output.value": ["<TextNode(id_=b)>"]});
    let vectors = json!({"openinference.span.kind": "EMBEDDING"});
    let index = spans(1, &json!({}), [step.clone(), step.clone(), vectors, step]);
    let project = Project::starter();
    project.write("log.json", &format!("{file}\n{index}\n"));
    let outcome = project.run(&["score", "--import", "log.json"]);
    assert!(outcome.stderr.contains("1 of other work, left out"), "{}", outcome.stderr);
    let traces = project.traces();
    let results: Vec<&Value> = events(&traces[0], "tool_called").map(|call| &call["outcome"]["ok"]["other"]).collect();
    assert_eq!((traces.len(), results), (1, vec![&json!("A"), &json!("B")]), "{}", outcome.stderr);
}

#[test]
fn multipart_bodies_of_several_requests_are_one_import_and_what_is_no_run_is_listed() {
    let whole = fs::read_to_string(capture("langsmith-multipart.bin")).expect("a capture");
    let boundary = whole.lines().next().expect("a boundary").to_owned();
    let second = whole.replace(&boundary, "--other").replace("01a210d6-", "02b210d6-");
    let project = Project::starter();
    let head = "Content-Disposition: form-data; name=";
    let strange = format!(
        "--third\r\n{head}\"attachment.1.picture\"\r\n\r\n\u{1}\r\n--third\r\n{head}\"post.x\"\r\n\r\n{{\r\n--third--\r\n"
    );
    project.write("posted.bin", &format!("{whole}{second}\r\n{strange}"));
    let outcome = project.run(&["score", "--import", "posted.bin"]);
    for words in [
        "2 traces: 2 complete",
        "1 part of the file not read: the part `post.x` is not JSON",
        "the part `attachment.1.picture` is of no run",
    ] {
        assert!(outcome.stderr.contains(words), "{words}: {}", outcome.stderr);
    }
    project.write("cut.bin", &whole[..whole.len() - 60]);
    let outcome = project.run(&["score", "--import", "cut.bin"]);
    assert!(outcome.stderr.contains("the last part is cut off"), "{}", outcome.stderr);
}

/// A conversation with a call, its grade, and the shapes in which it is written.
fn labelled(number: usize) -> [Value; 6] {
    let reward = [1.0, 0.0, 0.5][number % 3];
    let (task, question) = (format!("task-{number}"), format!("Question {number}?"));
    let call = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\":\"x\"}"}});
    let asked = json!([{"role": "user", "content": question}]);
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let shown = json!([asked[0], calls, {"role": "tool", "tool_call_id": "c1", "content": "{\"hits\":[]}"}]);
    let said = json!({"role": "assistant", "content": "So it is."});
    let all = [shown.as_array().expect("messages").as_slice(), std::slice::from_ref(&said)].concat();
    let messages = json!({"task_id": task, "reward": reward, "messages": all});
    let published = json!({"case": task, "reward": reward, "conversations": [{"turns": [{"message": question,
        "calls": [{"id": "c1", "tool": "find", "arguments": {"q": "x"}, "result": {"hits": []}}],
        "answer": {"text": "So it is."}}]}]});
    let about = json!({"ragcheck.task_id": task, "ragcheck.reward": reward});
    let langfuse = spans(
        number,
        &about,
        [
            json!({"langfuse.observation.type": "agent", "langfuse.observation.input": {"args": [question], "kwargs": {}},
            "langfuse.observation.output": "So it is."}),
            json!({"langfuse.observation.type": "generation", "langfuse.observation.input": {"messages": asked},
            "langfuse.observation.output": calls, "langfuse.observation.model.name": "m"}),
            json!({"langfuse.observation.type": "tool", "langfuse.observation.input": {"args": [], "kwargs": {"q": "x"}},
            "langfuse.observation.output": {"hits": []}}),
            json!({"langfuse.observation.type": "generation", "langfuse.observation.input": {"messages": shown},
            "langfuse.observation.output": said, "langfuse.observation.model.name": "m"}),
        ],
    );
    let step = |messages: &Value, more: Value| {
        let mut step = json!({"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": messages});
        step.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        step
    };
    let ai_sdk = spans(
        number,
        &about,
        [
            json!({"ai.operationId": "ai.generateText", "ai.prompt": {"messages": asked}, "ai.response.text": "So it is."}),
            step(
                &asked,
                json!({"ai.response.toolCalls": [{"toolCallId": "c1", "toolName": "find", "input": "{\"q\":\"x\"}"}]}),
            ),
            json!({"ai.operationId": "ai.toolCall", "ai.toolCall.name": "find", "ai.toolCall.id": "c1",
            "ai.toolCall.args": {"q": "x"}, "ai.toolCall.result": {"hits": []}}),
            step(&asked, json!({"ai.response.text": "So it is."})),
        ],
    );
    let id = |place: usize| format!("00000000-0000-7000-8000-{:012}", number * 10 + place);
    let run = |place: usize, kind: &str, inputs: Value, outputs: Value| {
        json!({"id": id(place), "trace_id": id(0), "parent_run_id": if place == 0 { Value::Null } else { json!(id(0)) },
            "run_type": kind, "name": "find", "inputs": inputs, "outputs": outputs, "extra": {"metadata": about},
            "start_time": format!("2026-07-02T10:00:0{place}.000000+00:00"), "end_time": "2026-07-02T10:00:09.000000+00:00"})
    };
    let completed = |message: &Value| json!({"choices": [{"message": message}]});
    let runs = json!({"post": [
        run(0, "chain", json!({"question": question}), json!({"output": "So it is."})),
        run(1, "llm", json!({"messages": asked}), completed(&calls)),
        run(2, "tool", json!({"q": "x"}), json!({"hits": []})),
        run(3, "llm", json!({"messages": shown}), completed(&said))]});
    let passed = reward >= 1.0;
    let evals = json!({"object": "eval.run.output_item", "datasource_item_id": number, "datasource_item": {"q": question},
        "results": [{"name": "graded", "passed": passed}], "sample": {"input": asked, "output": all[1..]}});
    [messages, published, langfuse, ai_sdk, runs, evals]
}

/// The spans of an agent, its first completion, a tool and its second completion.
fn spans(number: usize, about: &Value, all: [Value; 4]) -> Value {
    let span = |(place, mut own): (usize, Value)| {
        own.as_object_mut().expect("attributes").extend(about.as_object().expect("attributes").clone());
        let pairs: Vec<Value> = own
            .as_object()
            .expect("attributes")
            .iter()
            .map(|(key, value)| {
                let value = match value {
                    Value::Number(number) => json!({"doubleValue": number}),
                    Value::String(text) => json!({"stringValue": text}),
                    other => json!({"stringValue": other.to_string()}),
                };
                json!({"key": key, "value": value})
            })
            .collect();
        let at = 1_700_000_000_000_000_000_u64 + (number as u64 * 10 + place as u64) * 1_000_000_000;
        let end = if place == 0 { at + 9_000_000_000 } else { at + 500_000_000 };
        let parent = if place == 0 { String::new() } else { format!("{:016x}", 1) };
        json!({"traceId": format!("{:032x}", number + 1), "spanId": format!("{:016x}", place + 1), "parentSpanId": parent,
            "name": if place == 2 { "find" } else { "s" }, "startTimeUnixNano": at.to_string(),
            "endTimeUnixNano": end.to_string(), "attributes": pairs})
    };
    let all: Vec<Value> = all.into_iter().enumerate().map(span).collect();
    json!({"resourceSpans": [{"scopeSpans": [{"spans": all}]}]})
}

#[test]
fn labelled_conversations_have_the_same_verdicts_in_every_format_which_is_recognised() {
    let all: Vec<[Value; 6]> = (0..9).map(labelled).collect();
    let project = Project::starter();
    let mut expected = Vec::new();
    for (place, format) in ["messages", "trace", "otlp", "otlp", "otlp", "evals"].into_iter().enumerate() {
        let lines: Vec<String> = all.iter().map(|shapes| format!("{}\n", shapes[place])).collect();
        project.write("log.jsonl", &lines.concat());
        let outcome = project.run(&["score", "--import", "log.jsonl"]);
        assert!(outcome.stderr.contains(&format!("read as `{format}`")), "{}", outcome.stderr);
        assert!(outcome.stderr.trim_end().ends_with("9 traces: 9 complete"), "{}", outcome.stderr);
        let run = project.latest("run.json");
        let trials = run["trials"].as_array().expect("trials").iter();
        let verdicts: Vec<String> = trials.map(|trial| trial["verdict"].to_string()).collect();
        if place == 0 {
            assert!(verdicts.iter().any(|one| one.contains("PASS")) && verdicts.iter().any(|one| one.contains("FAIL")));
            expected.clone_from(&verdicts);
        }
        assert_eq!(verdicts, expected, "{place} {format}");
        let traces = project.traces();
        let called = |trace: &Value| {
            let calls: Vec<&Value> = events(trace, "tool_called").collect();
            calls.len() == 1 && calls[0]["arguments"] == json!({"q": "x"}) && calls[0]["outcome"].get("ok").is_some()
        };
        assert!(traces.iter().all(called), "{place} {format}: {}", traces[0]);
    }
}

#[test]
fn a_format_is_named_or_recognised_and_never_guessed() {
    let project = Project::starter();
    project.write("log.json", r#"{"speaker": "me"}"#);
    let outcome = project.run(&["score", "--import", "log.json"]);
    outcome.expect_code(2);
    assert!(
        outcome.stderr.contains("the format is not recognised: it holds an object with `speaker`"),
        "{}",
        outcome.stderr
    );
    project.write("log.json", "{\"messages\": []}\n{\"conversations\": []}\n");
    let outcome = project.run(&["score", "--import", "log.json"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("it holds `messages` and `trace`"), "{}", outcome.stderr);
    let outcome = project.run(&["score", "--import", "trace"]);
    outcome.expect_code(2);
    assert!(outcome.stderr.contains("write `--import FILE`, or name the format"), "{}", outcome.stderr);
}
