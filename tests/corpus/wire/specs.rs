//! What the flows send validates against the providers' own schemas.

use super::{corpus, unzipped};
use ragcheck::internals::provider::chat::{ChatRequest, Message, Role, ToolCall, ToolChoice, ToolDefinition};
use ragcheck::internals::provider::wire::{Dialect, anthropic_messages, gemini, openai_chat, openai_responses};
use serde_json::{Value, json};

/// Requests as a flow makes them: each choice, with and without tools, in the first turn and after results.
fn samples() -> Vec<ChatRequest> {
    let tools: [ToolDefinition; 2] = ["search_docs", "final_answer"].map(|name| ToolDefinition {
        name: name.to_owned(),
        description: format!("Use {name} when it helps."),
        parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}),
    });
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let mut asked = Message::text(Role::Assistant, "Let me look.");
    asked.calls = vec![call("call_1", "search_docs", r#"{"query":"tea"}"#), call("call_2", "search_docs", "{broken")];
    let mut silent = Message::text(Role::Assistant, "");
    silent.calls = vec![call("call_3", "final_answer", r#"{"query":"tea"}"#)];
    let first =
        vec![Message::text(Role::System, "Search first."), Message::text(Role::User, "How long does tea keep?")];
    let mut later = first.clone();
    later.extend([
        asked,
        Message::tool_result("call_1", r#"{"hits":[]}"#),
        Message::tool_result("call_2", "these arguments are no JSON"),
        Message::text(Role::User, "You must search."),
        silent,
        Message::tool_result("call_3", "ok"),
        Message::text(Role::Assistant, "A year."),
        Message::text(Role::User, "And green tea?"),
    ]);
    let choices =
        [ToolChoice::Auto, ToolChoice::Required, ToolChoice::None, ToolChoice::Named("search_docs".to_owned())];
    let mut samples = Vec::new();
    for messages in [first, later] {
        for choice in &choices {
            for parallel in [None, Some(true), Some(false)] {
                samples.push(ChatRequest {
                    model: "gpt-4o".to_owned(),
                    messages: messages.clone(),
                    tools: tools.to_vec().into(),
                    tool_choice: choice.clone(),
                    temperature: parallel.map(|_| 0.0),
                    max_tokens: parallel.map(|_| 800),
                    seed: parallel.map(|_| 7),
                    parallel_calls: parallel,
                    passthrough: None,
                });
            }
        }
        let plain = messages.into_iter().filter(|message| message.calls.is_empty() && message.answers.is_none());
        samples.push(ChatRequest::new("gpt-4o", plain.collect()));
    }
    samples
}

fn validate(dialect: &'static Dialect, schema: &Value) {
    let address = "document://published/";
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    compiler.set_default_draft(boon::Draft::V2020_12);
    compiler.add_resource(address, schema.clone()).expect("an address");
    let index = compiler.compile(address, &mut schemas).unwrap_or_else(|error| panic!("{}: {error:#}", dialect.name()));
    for sample in samples() {
        let body = dialect.encode_request(&sample);
        if let Err(error) = schemas.validate(&body, index) {
            panic!("{}\n{body:#}\n{error:#}", dialect.name());
        }
        // The schema is not one that lets everything pass.
        let key = if dialect == gemini::DIALECT {
            "contents"
        } else if body.get("input").is_some() {
            "input"
        } else {
            "messages"
        };
        let mut broken = body.clone();
        broken[key] = json!(7);
        assert!(schemas.validate(&broken, index).is_err(), "{}: the schema lets anything pass", dialect.name());
    }
}

fn openapi(corpus: &std::path::Path, file: &str, name: &str) -> Value {
    let text = unzipped(&corpus.join("specs").join(file));
    // Otherwise the name `y` of a coordinate is read as true.
    let options = serde_saphyr::options! { strict_booleans: true };
    let mut document: Value =
        serde_saphyr::from_str_with_options(&text, options).unwrap_or_else(|error| panic!("{file}: {error}"));
    modern(&mut document["components"]);
    assert!(document["components"]["schemas"][name].is_object(), "{file} has no {name}");
    json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]})
}

/// Keywords of older drafts, which OpenAPI documents still hold, are no keywords of the draft they claim.
fn modern(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                !(key == "$recursiveAnchor"
                    || key == "$recursiveRef"
                    || key.starts_with("exclusiveM") && value.is_boolean())
            });
            map.values_mut().for_each(modern);
        }
        Value::Array(list) => list.iter_mut().for_each(modern),
        _ => {}
    }
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn what_is_sent_to_openai_validates_against_its_document() {
    let corpus = corpus();
    let chat = openapi(&corpus, "openai-openapi.yaml.gz", "CreateChatCompletionRequest");
    validate(openai_chat::DIALECT, &chat);
    let mut responses = chat;
    responses["$ref"] = json!("#/components/schemas/CreateResponse");
    validate(openai_responses::DIALECT, &responses);
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn what_is_sent_to_anthropic_validates_against_its_document() {
    let corpus = corpus();
    validate(anthropic_messages::DIALECT, &openapi(&corpus, "anthropic-openapi.yaml.gz", "CreateMessageParams"));
}

#[test]
#[ignore = "needs the recordings and data sets of others: RAGCHECK_CORPUS"]
fn what_is_sent_to_gemini_validates_against_its_schemas() {
    let corpus = corpus();
    let text = unzipped(&corpus.join("specs/gemini-generatecontent-discovery-subset.json.gz"));
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    let name = "GoogleCloudAiplatformV1beta1GenerateContentRequest";
    assert!(document["schemas"][name].is_object(), "no {name}");
    strict(&mut document["schemas"]);
    document["$ref"] = json!(format!("#/schemas/{name}"));
    validate(gemini::DIALECT, &document);
}

/// Discovery documents name schemas by bare ids and have a type of their own for anything; unknown fields are errors.
fn strict(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(name)) = map.get_mut("$ref") {
                *name = format!("#/schemas/{name}");
            }
            if map.get("type").is_some_and(|kind| kind == "any") {
                map.remove("type");
            }
            if map.get("type").is_some_and(|kind| kind == "object")
                && map.get("properties").is_some_and(Value::is_object)
            {
                map.insert("additionalProperties".to_owned(), Value::from(false));
            }
            map.values_mut().for_each(strict);
        }
        Value::Array(list) => list.iter_mut().for_each(strict),
        _ => {}
    }
}
