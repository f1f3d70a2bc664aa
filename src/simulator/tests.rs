//! Whole conversations with the simulated model through a small loop with fake tools.

mod served;

use super::behaviour::{Behaviour, Caller};
use super::model::{Completion, Prompt, complete};
use super::sentences::{content_words, overlap};
use super::serve;
use crate::platform::clock::RealClock;
use crate::provider::chat::{Message, Role, ToolCall, ToolChoice, ToolDefinition};
use serde_json::{Value, json};
use std::sync::Arc;

const BEHAVIOUR: &str = r#"
name: garden
seed: 5
pace: declared
model:
  latency: {lognormal: {median: 900ms, sigma: 0.4, max: 12s}}
  recall: ['\bGL-\d{4}\b']
  rules:
    - {when: {fault: forgets-search}, habits: {forget_knowledge_base: {times: 1}}}
    - {when: {fault: never-searches}, habits: {forget_knowledge_base: {times: 2}}}
    - {when: {fault: forgets-response}, habits: {forget_response: {times: 1}}}
    - {when: {fault: outside-first}, habits: {external_first: {times: 1}}}
    - {when: {fault: poor}, habits: {poor_keywords: {times: 1}}}
    - {when: {fault: skips}, habits: {skip_keywords: {times: 1}}}
    - {when: {fault: garbled}, habits: {malformed_arguments: {times: 1}}}
    - {when: {fault: typed}, habits: {wrong_schema: {times: 1}}}
    - {when: {fault: invents}, habits: {invent_source: {times: 1}}}
    - {when: {fault: outage}, habits: {retry_search: 1}}
    - {when: {fault: limited}, habits: {rate_limited: {times: 1}}}
    - {when: {asks: frost}, sufficient: false, keywords: [frost warning, night frost, valley forecast]}
search:
  latency: {constant: 2s}
  topics:
    - when: {asks: frost}
      answer: "The weather office expects frost of minus four degrees in the valley [1]. It lasts two nights [2]."
      results:
        - {title: Weather office, url: 'https://example.org/frost', snippet: Minus four degrees., date: '2026-03-01'}
        - {title: Valley news, url: 'https://example.com/valley', snippet: Two nights.}
  failures:
    - {when: {fault: outage}, status: 503, times: 2}
    - {when: {fault: gone}, status: 503, times: always}
"#;

const PASSAGES: &[(&str, &str)] = &[
    ("pump#1", "The irrigation pump runs at 6 bar. Clean its filter every month. Descale it once a year."),
    ("vent#1", "Roof vents open at 24 degrees. A motor moves each vent in forty seconds."),
    ("warranty#1", "The warranty of the pump lasts 36 months. The warranty of vents lasts 24 months."),
];

fn behaviour() -> Behaviour {
    serde_saphyr::from_str(BEHAVIOUR).expect("behaviour")
}

fn caller<'a>(seed: &'a str, fault: &'a str) -> Caller<'a> {
    Caller { seed, fault, asks_for: None }
}

fn tools() -> Vec<ToolDefinition> {
    ["knowledge_base_search", "perplexity_search", "index_keywords", "generate_response"]
        .map(|name| ToolDefinition { name: name.into(), description: String::new(), parameters: json!({}) })
        .into()
}

/// One conversation: its messages, and its calls with their outcomes.
struct Dialogue<'a> {
    fault: &'a str,
    messages: Vec<Message>,
    log: Vec<String>,
}

impl<'a> Dialogue<'a> {
    fn new(fault: &'a str) -> Self {
        Self { fault, messages: vec![Message::text(Role::System, "Use tools.")], log: Vec::new() }
    }

    fn next(&self) -> Completion {
        let (tools, behaviour) = (tools(), behaviour());
        let prompt = Prompt {
            messages: &self.messages,
            tools: &tools,
            choice: ToolChoice::Auto,
            caller: caller("lane", self.fault),
        };
        complete(&behaviour.model, behaviour.seed, &prompt).completion
    }

    /// Runs one turn of at most ten completions; returns the arguments of the accepted response.
    fn ask(&mut self, question: &str, search_works: bool) -> Option<Value> {
        self.messages.push(Message::text(Role::User, question));
        let start = self.messages.len();
        let mut searched = false;
        for _ in 0..10 {
            let said = self.next();
            let message = Message {
                role: Role::Assistant,
                content: said.text,
                calls: said.calls.clone(),
                answers: None,
                passthrough: None,
            };
            self.messages.push(message);
            if said.calls.is_empty() {
                self.log.push("text".into());
                let missing = if searched { "generate_response" } else { "knowledge_base_search" };
                self.messages.push(Message::text(Role::User, format!("You must call {missing}.")));
            }
            for call in &said.calls {
                let result = paper_tool(call, searched, search_works);
                let failed = result.get("error").is_some();
                self.log.push(format!("{}{}", call.name, if failed { "!" } else { "" }));
                self.messages.push(Message::tool_result(&call.id, result.to_string()));
                searched |= !failed && call.name == "knowledge_base_search";
                if !failed && call.name == "generate_response" {
                    let arguments: Value = serde_json::from_str(&call.arguments).expect("checked");
                    let text = arguments["answer"].as_str().expect("text").to_owned();
                    self.messages.truncate(start);
                    self.messages.push(Message::text(Role::Assistant, text));
                    return Some(arguments);
                }
            }
        }
        None
    }
}

fn rejected(cause: &str) -> Value {
    json!({"error": {"cause": cause, "reason": "not like this", "guidance": "do it right"}})
}

fn paper_tool(call: &ToolCall, searched: bool, search_works: bool) -> Value {
    let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { return rejected("not_json") };
    let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    match call.name.as_str() {
        "knowledge_base_search" if text("query").is_empty() => rejected("schema"),
        "knowledge_base_search" => {
            let asked = content_words(&text("query"));
            let mut found: Vec<(f64, Value)> = PASSAGES
                .iter()
                .map(|(id, text)| (overlap(&asked, text), json!({"id": id, "title": "Manual", "text": text})))
                .filter(|(share, _)| *share > 0.0)
                .collect();
            found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            json!({"chunks": found.into_iter().map(|(_, chunk)| chunk).collect::<Vec<_>>()})
        }
        _ if !searched => rejected("order"),
        "perplexity_search" if text("query").is_empty() => rejected("schema"),
        "perplexity_search" if !search_works => json!({"error": {"message": "down", "retryable": true}}),
        "perplexity_search" => json!({
            "result_id": "result-1",
            "answer": "Frost of minus four degrees is expected in the valley [1].",
            "citations": [{"title": "Weather office", "url": "https://example.org/frost"}],
        }),
        "index_keywords" => {
            let count = arguments["keywords"].as_array().map_or(0, Vec::len);
            let generic = arguments["keywords"].to_string().contains("\"information\"");
            match (count, generic, text("perplexity_result_id").as_str()) {
                (3..=10, false, "result-1") => json!({"indexed": true, "merged": 0, "keyword_count": count}),
                _ => rejected("generic_keyword"),
            }
        }
        "generate_response" if !arguments["sources"].is_array() => rejected("schema"),
        "generate_response" if arguments["sources"].to_string().contains("field-notes") => rejected("sources"),
        "generate_response" => json!({"accepted": true}),
        _ => rejected("unknown_tool"),
    }
}

const PUMP: &str = "At how many bar does the irrigation pump run?";
const FROST: &str = "Is frost expected in the valley tonight?";

#[test]
fn an_obedient_model_answers_from_the_knowledge_base_with_its_source() {
    let mut dialogue = Dialogue::new("plain");
    let answer = dialogue.ask(PUMP, true).expect("an answer");
    assert_eq!(dialogue.log, ["knowledge_base_search", "generate_response"]);
    assert!(answer["answer"].as_str().expect("text").contains("6 bar"));
    assert_eq!(answer["sources"][0]["id"], "pump#1");
    assert_eq!((&answer["used_internal_kb"], &answer["used_external_kb"]), (&json!(true), &json!(false)));
}

#[test]
fn what_the_knowledge_base_lacks_is_asked_outside_and_indexed() {
    let mut dialogue = Dialogue::new("plain");
    let answer = dialogue.ask(FROST, true).expect("an answer");
    assert_eq!(dialogue.log, ["knowledge_base_search", "perplexity_search", "index_keywords", "generate_response"]);
    assert_eq!(answer["used_external_kb"], json!(true));
    assert_eq!(answer["sources"][0]["id"], "https://example.org/frost");
}

#[test]
fn every_declared_mistake_shows_and_is_corrected_after_feedback() {
    let kb = ["knowledge_base_search", "generate_response"];
    for (trial, question, expected) in [
        ("forgets-search", PUMP, vec!["text", kb[0], kb[1]]),
        ("never-searches", PUMP, vec!["text", "text", kb[0], kb[1]]),
        ("forgets-response", PUMP, vec![kb[0], "text", kb[1]]),
        ("outside-first", PUMP, vec!["perplexity_search!", kb[0], kb[1]]),
        ("garbled", PUMP, vec!["knowledge_base_search!", kb[0], "generate_response!", kb[1]]),
        ("typed", PUMP, vec!["knowledge_base_search!", kb[0], "generate_response!", kb[1]]),
        ("invents", PUMP, vec![kb[0], "generate_response!", kb[1]]),
        ("poor", FROST, vec![kb[0], "perplexity_search", "index_keywords!", "index_keywords", kb[1]]),
    ] {
        let mut dialogue = Dialogue::new(trial);
        assert!(dialogue.ask(question, true).is_some(), "{trial} ends with an answer");
        assert_eq!(dialogue.log, expected, "{trial}");
    }
}

#[test]
fn skipped_keywords_lead_straight_to_the_response() {
    let mut dialogue = Dialogue::new("skips");
    dialogue.ask(FROST, true).expect("an answer");
    assert_eq!(dialogue.log, ["knowledge_base_search", "perplexity_search", "generate_response"]);
}

#[test]
fn an_outage_of_the_search_service_leaves_the_knowledge_base() {
    let mut dialogue = Dialogue::new("outage");
    let answer = dialogue.ask(FROST, false).expect("an answer");
    assert_eq!(
        dialogue.log,
        ["knowledge_base_search", "perplexity_search!", "perplexity_search!", "generate_response"]
    );
    assert_eq!(answer["used_external_kb"], json!(false));
    assert!(answer["answer"].as_str().expect("text").contains("not available"));
}

#[test]
fn a_follow_up_needs_its_history_and_recalls_what_was_said() {
    let mut dialogue = Dialogue::new("plain");
    dialogue.ask("How long is the warranty of the pump with serial GL-4410?", true).expect("an answer");
    let answer = dialogue.ask("And of the vents?", true).expect("an answer");
    let text = answer["answer"].as_str().expect("text");
    assert!(text.contains("GL-4410") && text.contains("24 months"), "{text}");
    let mut alone = Dialogue::new("plain");
    let answer = alone.ask("And of the vents?", true).expect("an answer");
    assert!(!answer["answer"].as_str().expect("text").contains("GL-4410"));
}

#[test]
fn the_tool_choice_is_obeyed() {
    let (tools, behaviour) = (tools(), behaviour());
    let messages = [Message::text(Role::User, PUMP)];
    let ask = |choice| {
        let prompt = Prompt { messages: &messages, tools: &tools, choice, caller: caller("lane", "forgets-search") };
        complete(&behaviour.model, behaviour.seed, &prompt).completion
    };
    assert_eq!(ask(ToolChoice::Named("knowledge_base_search".into())).calls[0].name, "knowledge_base_search");
    assert_eq!(ask(ToolChoice::Named("generate_response".into())).calls[0].name, "generate_response");
    assert!(ask(ToolChoice::None).calls.is_empty());
    assert_eq!(ask(ToolChoice::Required).calls.len(), 1);
    assert!(ask(ToolChoice::Auto).calls.is_empty(), "this trial forgets, where it may");
}

#[test]
fn what_a_variant_declares_changes_the_model_and_the_wording_of_a_prompt_does_not() {
    let (tools, mut behaviour) = (tools(), behaviour());
    let rule = "{rule: search-first, habits: {forget_knowledge_base: {times: 1}}}";
    behaviour.model.unless_asked = vec![serde_saphyr::from_str(rule).expect("a rule")];
    let calls = |asks_for, prompt: &str| {
        let messages = [Message::text(Role::System, prompt), Message::text(Role::User, PUMP)];
        let caller = Caller { asks_for, ..caller("lane", "") };
        let prompt = Prompt { messages: &messages, tools: &tools, choice: ToolChoice::Auto, caller };
        complete(&behaviour.model, behaviour.seed, &prompt).completion.calls.len()
    };
    for prompt in ["Search first.", "Be kind."] {
        let found = [None, Some("use-response-tool,search-first"), Some("use-response-tool"), Some("")];
        assert_eq!(found.map(|asks_for| calls(asks_for, prompt)), [1, 1, 0, 0], "{prompt}");
    }
}

#[test]
fn a_tool_that_the_simulator_does_not_know_gets_what_its_schema_requires() {
    let behaviour = behaviour();
    let parameters = json!({"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}});
    let tools = [ToolDefinition { name: "retrieve_documents".into(), description: String::new(), parameters }];
    let messages = [Message::text(Role::User, PUMP)];
    let choice = ToolChoice::Named("retrieve_documents".into());
    let prompt = Prompt { messages: &messages, tools: &tools, choice, caller: caller("lane", "") };
    let said = complete(&behaviour.model, behaviour.seed, &prompt).completion;
    assert_eq!(said.calls[0].name, "retrieve_documents");
    let arguments: Value = serde_json::from_str(&said.calls[0].arguments).expect("JSON");
    assert!(arguments["query"].as_str().expect("a query").contains("pump"));
}

#[test]
fn a_lane_repeats_itself_and_lanes_differ_in_time() {
    let (tools, behaviour) = (tools(), behaviour());
    let messages = [Message::text(Role::User, PUMP)];
    let ask = |trial: &str| {
        let prompt = Prompt { messages: &messages, tools: &tools, choice: ToolChoice::Auto, caller: caller(trial, "") };
        complete(&behaviour.model, behaviour.seed, &prompt)
    };
    assert_eq!(ask("s/c/tool-rag.base.1"), ask("s/c/tool-rag.base.1"));
    assert_ne!(ask("s/c/tool-rag.base.1").latency, ask("s/c/tool-rag.base.2").latency);
}

/// What the simulated model calls an agent's own tools with, whose results are in the agent's own shape.
#[test]
fn the_tools_of_another_agent_are_called_by_its_own_names_and_parameters() {
    let behaviour = behaviour();
    let tool =
        |name: &str, parameters: Value| ToolDefinition { name: name.into(), description: String::new(), parameters };
    let text = json!({"type": "string"});
    let names = json!({"type": "array", "items": {"type": "string"}});
    for answer in ["response", "answer"] {
        let tools = [
            tool("knowledge_base_search", json!({"properties": {"limit": {"type": "integer"}, "question": text}})),
            tool("generate_response", json!({"properties": {answer: text, "sources": names}, "required": [answer]})),
        ];
        let mut messages = vec![Message::text(Role::User, PUMP)];
        let next = |messages: &[Message]| {
            let prompt = Prompt { messages, tools: &tools, choice: ToolChoice::Auto, caller: caller("lane", "") };
            let said = complete(&behaviour.model, behaviour.seed, &prompt).completion;
            let arguments: Value = serde_json::from_str(&said.calls[0].arguments).expect("JSON");
            (said, arguments)
        };
        let only = |arguments: &Value| arguments.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
        let (said, arguments) = next(&messages);
        assert_eq!(only(&arguments), ["question"], "{arguments}");
        assert!(arguments["question"].as_str().expect("text").contains("pump"), "{arguments}");
        messages.push(Message { calls: said.calls.clone(), ..Message::text(Role::Assistant, "") });
        let found = json!([{"page_content": "The irrigation pump runs at 6 bar.", "metadata": {"source": "pump.md"}}]);
        messages.push(Message::tool_result(&said.calls[0].id, found.to_string()));
        let (_, arguments) = next(&messages);
        assert!(arguments[answer].as_str().expect("text").contains("6 bar"), "{arguments}");
        assert_eq!(arguments["sources"], json!(["pump.md"]));
        assert_eq!(only(&arguments).len(), 2, "{arguments}");
    }
}
