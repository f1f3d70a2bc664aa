//! What LangChain's callbacks write around messages, arguments and results: serialised constructors (`lc`, `kwargs`),
//! messages as dictionaries (`type`, `data`), and the wraps of OpenLLMetry (`inputs`, `output`).

use super::parsed;
use serde_json::{Map, Value};

/// The object within a serialised constructor or a message's dictionary, which has a type and data with contents alone:
/// other objects with these members are none.
pub(super) fn unwrapped(object: &Map<String, Value>) -> Option<&Value> {
    let inner = if object.contains_key("lc") {
        object.get("kwargs")
    } else {
        let is_message = object.len() == 2 && object.get("type").is_some_and(Value::is_string);
        object.get("data").filter(|data| is_message && data.get("content").is_some())
    };
    inner.filter(|inner| inner.is_object())
}

/// The message that a run of a tool ended with: it names its call, and may be marked as an error.
pub(super) fn tool_message(result: &Value) -> Option<&Map<String, Value>> {
    let object = result.as_object()?;
    if object.contains_key("content") && object.get("tool_call_id").is_some_and(Value::is_string) {
        return Some(object);
    }
    tool_message(unwrapped(object).or_else(|| object.get("output"))?)
}

/// Whether a message of a tool is marked as an error.
pub(super) fn is_failed(message: &Map<String, Value>) -> bool {
    message.get("status").is_some_and(|status| status == "error")
}

/// The arguments of a run, without what OpenLLMetry writes beside them: `inputs`, else `input_str`, which may be no JSON.
pub(super) fn arguments(given: Value) -> Value {
    let is_wrapped = |members: &Map<String, Value>| {
        let beside = ["tags", "metadata", "kwargs"].iter().all(|name| members.contains_key(*name));
        members.contains_key("input_str") || beside && members.contains_key("inputs")
    };
    match given {
        Value::Object(mut members) if is_wrapped(&members) => match members.remove("inputs") {
            Some(inputs) if inputs.is_object() => inputs,
            _ => members.get("input_str").map(parsed).unwrap_or_default(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::meaning::{self, Found, Operation, Ran};
    use super::super::messages::messages;
    use super::super::{Attributes, Batch, Span, langsmith, stories, turns};
    use serde_json::{Value, json};

    fn span(attributes: &Value) -> Span {
        let attributes: Attributes = attributes.as_object().expect("attributes").clone();
        Span { trace: "t".into(), id: "s".into(), name: "a span".into(), attributes, ..Span::default() }
    }

    #[test]
    fn a_failed_run_of_a_tool_is_known_by_its_message_in_every_wrapping() {
        let message = json!({"content": "index is down", "type": "tool", "name": "look", "tool_call_id": "c2", "status": "error"});
        let wrapped = json!({"output": {"lc": 1, "type": "constructor", "id": ["langchain"], "kwargs": message},
            "kwargs": {"color": "green"}});
        let asked = json!({"input_str": "{'query': 'x'}", "inputs": {"query": "x"}, "kwargs": {"tool_call_id": "c2"}});
        let id = "0af76519-16cd-43dd-8448-eb211c80319c";
        let run = json!({"id": id, "trace_id": id, "run_type": "tool", "name": "look", "inputs": {"query": "x"},
            "outputs": {"output": message}});
        let mut batch = Batch::default();
        langsmith::add(vec![run], &mut batch);
        for span in [
            span(&json!({"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": {"query": "x"},
                "output.value": json!({"type": "tool", "data": message}).to_string()})),
            span(&json!({"traceloop.span.kind": "tool", "traceloop.entity.name": "look",
                "traceloop.entity.input": asked.to_string(), "traceloop.entity.output": wrapped.to_string()})),
            batch.spans.remove(0),
        ] {
            let story = stories(vec![span], &[]).remove(0);
            let done = &story.operations[0];
            assert_eq!(done.failed.as_deref(), Some("index is down"), "{done:?}");
            let Operation::Ran(ran) = &done.operation else { panic!("{done:?}") };
            let (arguments, result) = (Some(json!({"query": "x"})), Some(json!("index is down")));
            assert_eq!(*ran, Ran { tool: "look".into(), id: Some("c2".into()), arguments, result, outcome: None });
        }
    }

    #[test]
    fn a_message_with_a_type_and_data_beside_its_content_is_read_as_it_is() {
        let message = json!({"role": "assistant", "type": "message", "content": "Me.", "data": {"tokens": 3}});
        assert_eq!(messages(&message)[0].text, "Me.");
        for data in [json!({"tokens": 3}), json!({"content": "other"})] {
            let message = json!({"type": "ai", "content": "Me.", "data": data});
            assert_eq!(messages(&message)[0].text, "Me.");
        }
        assert_eq!(super::unwrapped(json!({"type": "event", "data": {"tokens": 3}}).as_object().expect("one")), None);
    }

    #[test]
    fn an_agent_is_asked_and_answers_by_messages_as_dictionaries_and_by_inputs_and_outputs() {
        let said = |kind: &str, content: &str| json!({"type": kind, "data": {"type": kind, "content": content}});
        for (attributes, is_chain) in [
            (
                json!({"openinference.span.kind": "CHAIN",
                    "input.value": json!({"messages": [said("human", "Why?")]}).to_string(),
                    "output.value": json!({"messages": [said("human", "Why?"), said("ai", "So.")]}).to_string()}),
                true,
            ),
            (
                json!({"traceloop.span.kind": "workflow",
                    "traceloop.entity.input": json!({"inputs": "Why?", "kwargs": {"name": "Sequence"}}).to_string(),
                    "traceloop.entity.output": json!({"outputs": "So.", "kwargs": {"tags": []}}).to_string()}),
                false,
            ),
        ] {
            let agent = Operation::Agent { asked: Some("Why?".into()), answered: Some("So.".into()), is_chain };
            assert_eq!(meaning::of(&span(&attributes)), Some(agent), "{attributes}");
        }
    }

    #[test]
    fn a_pipeline_is_asked_the_one_text_of_its_input_and_answers_what_its_printed_message_says() {
        let words = "It isn't \"hard\":\nUse citric acid.";
        let printed =
            r#"ChatMessage(_content=[TextContent(text='It isn\'t "hard":\nUse citric acid.')], _meta={'model': 'm'})"#;
        let pipeline = span(&json!({"openinference.span.kind": "CHAIN",
            "input.value": json!({"data": {"r": {"query": "Why?"}, "b": {"q": "Why?", "k": 3}}}).to_string(),
            "output.value": json!({"llm": {"replies": [printed]}}).to_string()}));
        let completion =
            span(&json!({"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": words}));
        let completion = Span { id: "c".into(), parent: Some("s".into()), ..completion };
        let turn = turns(&stories(vec![pipeline, completion], &[])[0]).remove(0);
        assert_eq!((turn.query.as_deref(), turn.answer.as_deref()), (Some("Why?"), Some(words)));
        let task = json!({"openinference.span.kind": "AGENT", "input.value": json!({"task": "Why?", "stream": false}).to_string()});
        let asked = Operation::Agent { asked: Some("Why?".into()), answered: None, is_chain: false };
        assert_eq!(meaning::of(&span(&task)), Some(asked));
    }

    #[test]
    fn results_that_are_marked_as_errors_are_known_in_messages() {
        let result = |more: Value| {
            let mut part =
                json!({"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "down"}});
            part.as_object_mut().expect("a part").extend(more.as_object().expect("members").clone());
            json!({"role": "tool", "content": [part]})
        };
        for (message, is_failed) in [
            (result(json!({})), false),
            (result(json!({"output": {"type": "error-text", "value": "down"}})), true),
            (
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "down", "is_error": true}]}),
                true,
            ),
            (
                json!({"type": "tool", "data": {"type": "tool", "content": "down", "tool_call_id": "c1", "status": "error"}}),
                true,
            ),
        ] {
            let said = messages(&message).remove(0);
            assert_eq!((said.text.as_str(), said.is_failed), ("down", is_failed), "{message}");
        }
    }

    #[test]
    fn a_retriever_that_openllmetry_traces_is_a_search() {
        let documents = json!({"documents": [{"page_content": "so", "metadata": {"source": "a.md"}}], "count": 1});
        let attributes = json!({"gen_ai.operation.name": "vector_db_retrieve", "traceloop.span.kind": "task",
            "traceloop.entity.input": json!({"query": "Why?", "kwargs": {"name": "r"}}).to_string(),
            "traceloop.entity.output": documents.to_string()});
        let found = Found { query: Some("Why?".into()), documents: Some(documents), ..Found::default() };
        assert_eq!(meaning::of(&span(&attributes)), Some(Operation::Found(found)));
    }
}
