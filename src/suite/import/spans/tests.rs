//! What becomes an event of which spans: each call once, with what it ran with and what came of it.

mod missing;

use super::{Record, records};
use crate::trace::{Member, ToolCalled, ToolOutcome, ToolResult, What, cut_off};
use serde_json::{Value, json};

/// A span that lasts from a second to another, below the span 1 unless it is that.
fn span(id: u64, (from, to): (f64, f64), attributes: &Value) -> Value {
    let at =
        |second: f64| 1_700_000_000_000_000_000_u64 + u64::try_from((second * 1e6) as i64).expect("a time") * 1_000;
    let parent = if id == 1 { String::new() } else { format!("{:016x}", 1) };
    json!({"traceId": format!("{:032x}", 1), "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": "a span",
        "startTimeUnixNano": at(from), "endTimeUnixNano": at(to), "attributes": attributes})
}

fn agent() -> Value {
    span(
        1,
        (0.0, 9.0),
        &json!({"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": [user("q?")],
            "gen_ai.output.messages": [{"role": "assistant", "content": "It is 30 days."}]}),
    )
}

fn user(words: &str) -> Value {
    json!({"role": "user", "content": words})
}

fn made(id: &str, tool: &str, arguments: &Value) -> Value {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "function": function}]})
}

fn result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn chat(id: u64, at: (f64, f64), input: &[Value], output: &Value) -> Value {
    let told =
        json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": input, "gen_ai.output.messages": [output]});
    span(id, at, &told)
}

fn run(id: u64, at: (f64, f64), more: &Value) -> Value {
    let mut told = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"});
    for (name, value) in more.as_object().expect("attributes") {
        told[format!("gen_ai.tool.call.{name}")] = value.clone();
    }
    span(id, at, &told)
}

fn read(spans: &[Value]) -> Vec<Record> {
    let file = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string();
    records(file.as_bytes()).expect("spans").0
}

fn calls(spans: &[Value]) -> Vec<ToolCalled> {
    let told = read(spans).remove(0).told.expect("a story");
    let call = |what| if let What::ToolCalled(call) = what { Some(call) } else { None };
    told.events.into_iter().filter_map(|event| call(event.what)).collect()
}

fn told(spans: &[Value]) -> Vec<(String, Value, ToolOutcome)> {
    calls(spans).into_iter().map(|call| (call.tool, call.arguments, call.outcome)).collect()
}

fn ok(value: &str) -> ToolOutcome {
    ToolOutcome::Ok(ToolResult::other(value.into()))
}

fn answer() -> Value {
    json!({"role": "assistant", "content": "It is 30 days."})
}

#[test]
fn a_call_that_only_an_input_shows_was_made_once_and_has_the_result_that_the_input_shows() {
    let amount = json!({"amount": 500});
    let shown = [user("q?"), made("c1", "refund", &amount), result("c1", "refunded")];
    let last = chat(4, (3.0, 4.0), &shown, &answer());
    let asked = chat(2, (0.5, 1.0), &shown[..1], &shown[1]);
    let more = [&shown[..], &[made("c2", "refund", &amount), result("c2", "again")]].concat();
    let expected = ("refund".to_owned(), amount.clone(), ok("refunded"));
    let ran = |more: &Value| run(3, (1.0, 2.0), more);
    for spans in [
        vec![agent(), last.clone()],
        vec![last.clone()],
        vec![agent(), last.clone(), chat(5, (5.0, 6.0), &shown, &answer())],
        vec![agent(), asked.clone(), last.clone()],
        vec![agent(), asked, ran(&json!({"id": "c1"})), last.clone()],
        vec![agent(), ran(&json!({"id": "c1", "result": "refunded"})), last.clone()],
        vec![agent(), ran(&json!({"id": "of-framework", "arguments": amount, "result": "refunded"})), last.clone()],
        vec![agent(), ran(&json!({"result": "refunded"})), last.clone()],
        // By another clock, the tool ran after its result was read.
        vec![agent(), last.clone(), run(3, (3.5, 3.6), &json!({"id": "c1", "result": "refunded"}))],
    ] {
        assert_eq!(told(&spans), std::slice::from_ref(&expected), "{spans:?}");
    }
    let twice = told(&[agent(), ran(&json!({"result": "refunded"})), chat(4, (3.0, 4.0), &more, &answer())]);
    assert_eq!(twice, [expected.clone(), ("refund".to_owned(), amount, ok("again"))]);
}

#[test]
fn a_completion_behind_the_answer_that_knows_nothing_of_it_is_no_answer() {
    let ended = |spans: &[Value]| {
        let told = read(spans).remove(0).told.expect("a story");
        let end = told
            .events
            .into_iter()
            .find_map(|event| if let What::TurnEnded(end) = event.what { Some(end) } else { None });
        end.and_then(|end| end.outcome.answer().map(|answer| answer.text.clone()))
    };
    let found = "Within thirty days of delivery.";
    let shown = [user("q?"), made("c1", "refund", &json!({})), result("c1", found)];
    let other = json!({"role": "assistant", "content": "Other."});
    let asks = |text: &str| chat(5, (5.0, 6.0), &[user(text)], &other);
    let turn = [chat(2, (0.5, 1.0), &shown[..1], &shown[1]), chat(4, (3.0, 4.0), &shown, &answer())];
    let behind = |last: Value| ended(&[&turn[..], &[last]].concat());
    assert_eq!(behind(asks("Make a title for: q?")).as_deref(), Some("It is 30 days."));
    assert_eq!(behind(asks("Say it better: It is 30 days.")).as_deref(), Some("Other."));
    assert_eq!(behind(asks(&format!("Answer q? by: {found}"))).as_deref(), Some("Other."));
    let more = [&shown[..], &[answer(), user("again")]].concat();
    assert_eq!(behind(chat(5, (5.0, 6.0), &more[..3], &other)).as_deref(), Some("Other."));
}

#[test]
fn examples_and_earlier_turns_in_an_input_are_no_calls_and_a_reminder_after_a_result_begins_no_turn() {
    let call = [made("c1", "refund", &json!({})), result("c1", "so")];
    let before = [&[user("an example")], &call[..], &[answer(), user("q?")]].concat();
    assert_eq!(told(&[agent(), chat(2, (1.0, 2.0), &before, &answer())]), []);
    let after = [&[user("q?")], &call[..], &[user("Remember to cite.")]].concat();
    assert_eq!(told(&[agent(), chat(2, (1.0, 2.0), &after, &answer())]).len(), 1);
}

#[test]
fn a_call_in_an_input_whose_search_has_a_span_is_that_search() {
    let found =
        json!({"openinference.span.kind": "RETRIEVER", "input.value": "x", "retrieval.documents.0.document.id": "a#1"});
    let shown = [user("q?"), made("c1", "look_up", &json!({"query": "x"})), result("c1", "so")];
    let spans = [agent(), span(2, (1.0, 2.0), &found), chat(3, (3.0, 4.0), &shown, &answer())];
    assert!(
        matches!(told(&spans).as_slice(), [(tool, _, ToolOutcome::Ok(ToolResult::Search(_)))] if tool == "look_up")
    );
    let told = read(&spans).remove(0).told.expect("a story");
    assert!(!told.events.iter().any(|event| matches!(event.what, What::Searched(_))));
}

#[test]
fn one_call_that_ran_twice_one_after_the_other_is_two_and_two_reports_of_one_run_are_one() {
    let call = json!({"id": "c1", "arguments": {"amount": 5}});
    let asked = chat(2, (0.5, 1.0), &[user("q?")], &made("c1", "refund", &json!({"amount": 5})));
    let mut failed = run(3, (1.0, 2.0), &call);
    failed["status"] = json!({"code": 2});
    for first in [run(3, (1.0, 2.0), &call), failed] {
        assert_eq!(calls(&[agent(), asked.clone(), first, run(4, (2.1, 2.5), &json!({"id": "c1"}))]).len(), 2);
    }
    let beside = [agent(), asked, run(3, (1.0, 2.0), &call), run(4, (1.1, 1.9), &call)];
    assert_eq!(calls(&beside).len(), 1);
}

#[test]
fn what_ran_counts_where_it_contradicts_the_call_and_not_where_it_is_written_in_another_form() {
    let asked = json!({"amount": 5, "why": "late"});
    let ran = |arguments: Value| {
        let made = chat(2, (0.5, 1.0), &[user("q?")], &made("c1", "refund", &asked));
        calls(&[agent(), made, run(3, (1.0, 2.0), &json!({"id": "c1", "arguments": arguments}))]).remove(0).arguments
    };
    assert_eq!(ran(json!({"amount": 500})), json!({"amount": 500, "why": "late"}));
    assert_eq!(
        ran(json!({"amount": 5, "why": "late", "currency": "EUR"})),
        json!({"amount": 5, "why": "late", "currency": "EUR"})
    );
    assert_eq!(ran(json!({"amount": "5", "why": "late"})), asked);
    for form in [json!("{'amount': 5}"), json!({"input": "{'amount': 5}"}), json!([5])] {
        assert_eq!(ran(form), asked);
    }
}

#[test]
fn spans_that_name_a_tool_are_runs_whatever_their_operation_and_a_call_by_mcp_counts_once() {
    let named = json!({"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c1", "tool_arguments": "{\"amount\":5}", "tool_response": "so"});
    let mcp = json!({"mcp.method.name": "tools/call", "gen_ai.tool.name": "refund"});
    let other = json!({"gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "refund"});
    for attributes in [&named, &mcp, &other] {
        assert_eq!(told(&[agent(), span(2, (1.0, 2.0), attributes)])[0].0, "refund", "{attributes}");
    }
    assert_eq!(told(&[agent(), span(2, (1.0, 2.0), &named)])[0].1, json!({"amount": 5}));
    let below = |mut span: Value, parent: u64| {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
        span
    };
    let server = |id: u64| {
        let mut span = span(id, (1.2, 1.8), &mcp);
        span["kind"] = json!(2);
        span
    };
    let client = below(span(3, (1.1, 1.9), &mcp), 2);
    let outer = run(2, (1.0, 2.0), &json!({}));
    assert_eq!(calls(&[agent(), outer.clone(), client.clone(), below(server(4), 3)]).len(), 1);
    // The spans between did not come.
    assert_eq!(calls(&[agent(), outer, below(server(4), 7)]).len(), 1);
    assert_eq!(calls(&[agent(), server(4)]).len(), 1, "its server alone shows that it ran");
    assert_eq!(read(&[server(4)]).len(), 0, "what a server did is no conversation");
}

#[test]
fn spans_of_an_agent_alone_do_not_show_that_no_tool_ran() {
    let absent = |spans: &[Value]| read(spans).remove(0).told.and_then(|told| told.absent).expect("members");
    assert!(absent(&[agent()]).contains(&Member::Calls));
    assert!(!absent(&[agent(), chat(2, (1.0, 2.0), &[user("q?")], &answer())]).contains(&Member::Calls));
}

#[test]
fn what_names_a_tool_is_a_call_in_every_shape_and_the_words_after_one_that_the_service_ran_are_the_answer() {
    let said = json!({"type": "text", "text": "It is 30 days."});
    let query = json!({"query": "x"});
    let parts = |part: Value| json!([{"role": "assistant", "content": [part, said]}]);
    let beside = |name: &str, value: Value| json!([{"role": "assistant", "content": "It is 30 days.", name: value}]);
    let function = json!([{"id": "c1", "function": {"name": "look", "arguments": query.to_string()}}]);
    let item = json!({"type": "message", "role": "assistant", "content": [said]});
    for (output, arguments, is_served) in [
        (
            parts(json!({"type": "server_tool_call", "id": "c1", "name": "look", "server_tool_call": query})),
            &query,
            true,
        ),
        (parts(json!({"type": "server_tool_use", "id": "c1", "name": "look", "input": query})), &query, true),
        (parts(json!({"type": "look_call", "query": "x"})), &query, true),
        (
            parts(
                json!({"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": query, "providerExecuted": true}),
            ),
            &query,
            true,
        ),
        (
            json!({"output": [{"type": "look_call", "id": "c1", "status": "completed", "action": query}, item]}),
            &query,
            true,
        ),
        (parts(json!({"type": "dynamic-tool", "toolCallId": "c1", "toolName": "look", "input": query})), &query, false),
        (
            parts(json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": query.to_string()})),
            &query,
            false,
        ),
        (parts(json!({"functionCall": {"name": "look", "args": query}})), &query, false),
        (parts(json!({"toolUse": {"toolUseId": "c1", "name": "look", "input": query}})), &query, false),
        (beside("additional_kwargs", json!({"tool_calls": function})), &query, false),
        (beside("tool_calls", json!(function.to_string())), &query, false),
        (beside("invalid_tool_calls", json!([{"name": "look", "args": "{x", "id": "c1"}])), &json!("{x"), false),
        (beside("function_call_name", json!("look")), &json!({}), false),
        (json!({"choices": [{"message": beside("tool_calls", function.clone())[0]}]}), &query, false),
    ] {
        let told = json!({"openinference.span.kind": "LLM", "input.value": [user("q?")], "output.value": output});
        let events = read(&[span(1, (1.0, 2.0), &told)]).remove(0).told.expect("a story").events;
        let calls: Vec<_> = events.iter().filter_map(|event| event.what.tool_call()).collect();
        let [call] = calls.as_slice() else { panic!("{output}: {calls:?}") };
        let is_ok = matches!(call.outcome, ToolOutcome::Ok(_));
        assert_eq!((call.tool.as_str(), &call.arguments, is_ok), ("look", arguments, is_served), "{output}");
        let ended = events.iter().any(|event| matches!(&event.what, What::TurnEnded(_)));
        assert_eq!(ended, is_served, "{output}: {events:?}");
    }
}

#[test]
fn a_run_is_that_of_the_call_with_its_id_whenever_it_seems_to_begin() {
    let look = made("c1", "refund", &json!({}));
    for from in [0.5, 0.999, 1.0, 1.001, 2.0] {
        let ran = run(3, (from, 2.5), &json!({"id": "c1", "result": "so"}));
        let within = span(5, (from, 2.4), &json!({"gen_ai.operation.name": "embeddings"}));
        let spans = [
            agent(),
            chat(2, (1.0, 2.0), &[user("q?")], &look),
            ran,
            within,
            chat(4, (3.0, 4.0), &[user("q?"), look.clone(), result("c1", "so")], &answer()),
        ];
        assert_eq!(told(&spans), [("refund".to_owned(), json!({}), ok("so"))], "{from}");
    }
}

#[test]
fn arguments_of_a_run_are_those_in_the_envelopes_of_decorators_and_unknown_if_they_cannot_be_read() {
    let query = json!({"query": "x"});
    for (given, arguments) in [
        (json!({"args": [], "kwargs": query}).to_string(), query.clone()),
        (json!({"inputs": query, "tags": [], "metadata": {}, "kwargs": {"name": "look"}}).to_string(), query.clone()),
        (json!({"input_str": query.to_string(), "tags": []}).to_string(), query.clone()),
        (json!({"inputs": 3, "kwargs": 4}).to_string(), json!({"inputs": 3, "kwargs": 4})),
        (json!({"args": ["x"], "kwargs": {}}).to_string(), Value::Null),
        ("{\"query\": \"x".to_owned(), Value::Null),
        (String::new(), Value::Null),
        ("[\"x\"]".to_owned(), Value::Null),
    ] {
        let tool =
            json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "look", "traceloop.entity.input": given});
        assert_eq!(calls(&[agent(), span(2, (1.0, 2.0), &tool)])[0].arguments, arguments, "{given}");
    }
    let cut = json!([{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "refund", "arguments": "{\"q"}}]}]);
    let asked = chat(2, (0.5, 1.0), &[user("q?")], &cut[0]);
    let ran = run(3, (1.0, 2.0), &json!({"id": "c1", "result": "so"}));
    assert_eq!(told(&[agent(), asked.clone(), ran]), [("refund".to_owned(), Value::Null, ok("so"))]);
    assert!(matches!(told(&[agent(), asked]).as_slice(), [(_, Value::String(_), ToolOutcome::Rejected(_))]));
}

#[test]
fn hidden_contents_are_missing_and_no_words() {
    let hidden = |content: &str| {
        json!({"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": content,
            "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "__REDACTED__"})
    };
    let why = |content: &str| {
        let mut read = read(&[span(1, (0.0, 1.0), &hidden(content))]);
        read.remove(0).messages.expect_err("no answer").to_string()
    };
    assert_eq!(
        [why("__REDACTED__"), why("q?")],
        ["no span says what turn 1 was asked", "no span says what turn 1 answered"]
    );
    let all = json!({"openinference.span.kind": "LLM", "input.value": "__REDACTED__", "output.value": "__REDACTED__"});
    let told = read(&[span(1, (0.0, 1.0), &all)]).remove(0).told.expect("a story");
    assert!(told.absent.is_some_and(|absent| absent.contains(&Member::Answers)), "{:?}", told.notes);
}

#[test]
fn an_answer_that_was_cut_off_has_a_note_by_each_convention() {
    let out = |finish: &str| json!([{"role": "assistant", "content": "It is", "finish_reason": finish}]);
    let noted = |attributes: Value| {
        let mut told = json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": [user("q?")]});
        told.as_object_mut().expect("attributes").extend(attributes.as_object().expect("attributes").clone());
        cut_off(&read(&[span(1, (0.0, 1.0), &told)]).remove(0).told.expect("a story").events)
    };
    for attributes in [
        json!({"gen_ai.output.messages": out("length")}),
        json!({"gen_ai.output.messages": out("").to_string(), "gen_ai.response.finish_reasons": ["MAX_TOKENS"]}),
        json!({"gen_ai.output.messages": out("x"), "gen_ai.response.finish_reasons": "[\"content_filter\"]"}),
        json!({"output.value": json!({"choices": [{"finish_reason": "length", "message": answer()}]}).to_string()}),
        json!({"ai.response.text": "It is", "ai.response.finishReason": "content-filter"}),
    ] {
        assert!(noted(attributes.clone()).is_some(), "{attributes}");
    }
    assert_eq!(noted(json!({"gen_ai.output.messages": out("stop")})), None);
}

#[test]
fn runs_of_one_time_come_in_one_order_whatever_the_order_of_the_file() {
    let tool = |id: u64, name: &str| {
        span(id, (1.0, 2.0), &json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}))
    };
    let (one, other) = (tool(2, "search"), tool(3, "refund"));
    let order = |spans: &[Value]| calls(spans).into_iter().map(|call| call.tool).collect::<Vec<_>>();
    assert_eq!(order(&[agent(), one.clone(), other.clone()]), order(&[agent(), other.clone(), one.clone()]));
    let times: Vec<_> = calls(&[agent(), one, other]).iter().map(|call| (call.began_us, call.took_us)).collect();
    assert_eq!(times, [(Some(1_000_000), 1_000_000); 2]);
}

#[test]
fn results_with_ids_of_no_call_belong_to_the_calls_of_their_names_else_of_one_tool_and_are_unseen_of_several() {
    let outcomes = |tools: [&str; 2], names: [Option<&str>; 2]| {
        let call = |id: &str, tool: &str| json!({"type": "tool_call", "id": id, "name": tool, "arguments": {}});
        let result =
            |id: &str, name: Option<&str>| json!({"role": "tool", "name": name, "tool_call_id": id, "content": id});
        let made = json!({"role": "assistant", "parts": [call("fc1", tools[0]), call("fc2", tools[1])]});
        let shown = [user("q?"), made.clone(), result("call_2", names[0]), result("call_1", names[1])];
        let next = json!({"role": "assistant", "parts": [call("fc3", "end")]});
        let last = [&shown[..], &[next.clone(), result("call_3", None)]].concat();
        let spans = [
            agent(),
            chat(2, (0.5, 1.0), &shown[..1], &made),
            chat(3, (2.0, 3.0), &shown, &next),
            chat(4, (4.0, 5.0), &last, &answer()),
        ];
        let calls = calls(&spans).into_iter().map(|call| match call.outcome {
            ToolOutcome::Ok(ToolResult::Other(value)) => format!("{} {value}", call.tool),
            ToolOutcome::Unseen { .. } => format!("{} unseen", call.tool),
            other => format!("{} {other:?}", call.tool),
        });
        calls.collect::<Vec<_>>()
    };
    let named = [Some("book"), Some("find")];
    assert_eq!(outcomes(["find", "book"], named), ["find \"call_1\"", "book \"call_2\"", "end \"call_3\""]);
    let of_one = ["find \"call_2\"", "find \"call_1\"", "end \"call_3\""];
    assert_eq!(outcomes(["find", "find"], [None, None]), of_one);
    assert_eq!(
        outcomes(["find", "book"], [None, Some("find")]),
        ["find \"call_1\"", "book \"call_2\"", "end \"call_3\""]
    );
    assert_eq!(outcomes(["find", "book"], [None, None]), ["find unseen", "book unseen", "end \"call_3\""]);
}

#[test]
fn steps_and_vectors_are_a_conversation_unless_all_ended_well_and_only_printed_objects_went_through_them() {
    let failed = json!({"code": 2, "message": "KeyError"});
    let step = |id: u64, input: Value, output: Option<Value>| {
        let mut told = json!({"openinference.span.kind": "CHAIN", "input.value": input.to_string()});
        if let Some(output) = output {
            told["output.value"] = output.as_str().map_or_else(|| output.to_string(), str::to_owned).into();
        }
        span(id, (0.0, 9.0), &told)
    };
    let fails = |mut span: Value| {
        span["status"] = failed.clone();
        span
    };
    let (documents, nodes) =
        (json!({"nodes": ["<Document(id_=kettle)>"], "show": false}), json!(["<TextNode(id_=1)>"]));
    let split = step(1, documents.clone(), Some(nodes.clone()));
    let part = step(2, json!({"text": "Descale it."}), Some(json!(["Descale it."])));
    let vectors = span(3, (0.0, 9.0), &json!({"openinference.span.kind": "EMBEDDING"}));
    for other in [
        vec![split.clone(), part.clone(), vectors.clone()],
        vec![step(1, documents.clone(), Some(json!({"nodes": 7})))],
        vec![vectors.clone()],
    ] {
        assert_eq!(read(&other).len(), 0, "{other:?}");
    }
    for conversation in [
        vec![fails(split.clone())],
        vec![split.clone(), fails(part)],
        vec![split, fails(vectors)],
        vec![step(1, documents.clone(), None)],
        vec![step(1, documents, Some(json!("So.")))],
        vec![step(1, json!({"turns": ["Why?"]}), Some(json!(["So."])))],
        vec![step(1, json!({"asked": "<p>Why?</p>", "page": "<b>It</b>"}), Some(json!({"html": "<p>So.</p>"})))],
        vec![step(1, json!({"user_input": "Why?", "session": "s-1"}), Some(json!("So.")))],
        vec![fails(step(1, json!({"user_input": "Why?", "session": "s-1"}), None))],
        vec![step(1, json!({"order": 7}), Some(json!({"state": 3})))],
    ] {
        assert_eq!(read(&conversation).len(), 1, "{conversation:?}");
    }
}
