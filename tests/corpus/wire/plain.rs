//! A plain reading of the documents: JSON pointers and loops, none of the library's own code.

use ragcheck::internals::provider::chat::Role;
use ragcheck::internals::provider::wire::{Dialect, gemini};
use serde_json::Value;

#[derive(Debug, Default)]
pub struct Request {
    pub texts: Vec<(Role, String)>,
    pub calls: Vec<(String, Value)>,
    pub results: usize,
    pub tools: Vec<String>,
    pub choice: String,
}

#[derive(Debug, Default, PartialEq)]
pub struct Response {
    pub text: String,
    pub calls: Vec<(String, Value)>,
    pub finish: String,
    pub input: Option<u64>,
    pub cached: Option<u64>,
    pub output: Option<u64>,
}

/// Arguments as JSON, or as the text that they are.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// Text without white space and quotes: results become JSON on their way through some dialects.
pub fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn list<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().collect()
}

fn string(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn push(texts: &mut Vec<(Role, String)>, role: Role, text: String) {
    if !text.is_empty() {
        texts.push((role, text));
    }
}

fn role(name: &str) -> Role {
    match name {
        "system" | "developer" => Role::System,
        "assistant" | "model" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::User,
    }
}

pub fn request(dialect: &'static Dialect, body: &Value) -> Request {
    let mut plain = Request { choice: choice(dialect, body), ..Request::default() };
    match dialect.name() {
        "openai-chat" | "perplexity-sonar" => {
            for message in list(body, "/messages") {
                let role = role(&string(message, "/role"));
                push(&mut plain.texts, role, texts_of(&message["content"]));
                plain.results += usize::from(role == Role::Tool);
                for call in list(message, "/tool_calls") {
                    plain.calls.push((string(call, "/function/name"), json(&string(call, "/function/arguments"))));
                }
            }
            plain.tools = list(body, "/tools").into_iter().map(|tool| string(tool, "/function/name")).collect();
        }
        "openai-responses" | "perplexity-agent" => responses_request(body, &mut plain),
        "anthropic-messages" => {
            push(&mut plain.texts, Role::System, texts_of(&body["system"]));
            for message in list(body, "/messages") {
                let role = role(&string(message, "/role"));
                // Results split a user's message; texts between them are one.
                let mut open = message["content"].as_str().unwrap_or_default().to_owned();
                for block in list(message, "/content") {
                    match string(block, "/type").as_str() {
                        "text" => open.push_str(&string(block, "/text")),
                        "tool_use" => plain.calls.push((string(block, "/name"), block["input"].clone())),
                        "tool_result" => {
                            push(&mut plain.texts, role, std::mem::take(&mut open));
                            push(&mut plain.texts, Role::Tool, texts_of(&block["content"]));
                            plain.results += 1;
                        }
                        _ => {}
                    }
                }
                push(&mut plain.texts, role, open);
            }
            let tools = list(body, "/tools").into_iter();
            let ours = tools.filter(|tool| ["", "custom"].contains(&string(tool, "/type").as_str()));
            plain.tools = ours.map(|tool| string(tool, "/name")).collect();
        }
        "gemini" => gemini_request(body, &mut plain),
        other => panic!("nobody reads {other} here without our code: write how"),
    }
    plain
}

fn responses_request(body: &Value, plain: &mut Request) {
    push(&mut plain.texts, Role::System, string(body, "/instructions"));
    push(&mut plain.texts, Role::User, string(body, "/input"));
    let mut turn_of_model = false;
    for item in list(body, "/input") {
        let kind = string(item, "/type");
        let said = role(&string(item, "/role"));
        if let Some(call) = called(item) {
            plain.calls.push(call);
        } else if kind == "function_call_output" || kind == "custom_tool_call_output" {
            plain.results += 1;
            push(&mut plain.texts, Role::Tool, texts_of(&item["output"]));
        } else if ["", "message"].contains(&kind.as_str()) {
            let text = texts_of(&item["content"]);
            match plain.texts.last_mut() {
                Some((Role::Assistant, before)) if turn_of_model && said == Role::Assistant => before.push_str(&text),
                _ => push(&mut plain.texts, said, text),
            }
        }
        turn_of_model =
            !kind.ends_with("_call_output") && (said == Role::Assistant || !["", "message"].contains(&kind.as_str()));
    }
    let tools = list(body, "/tools").into_iter();
    let ours = tools.filter(|tool| tool["type"] == "function" || tool["type"] == "custom");
    plain.tools = ours.map(|tool| string(tool, "/name")).collect();
}

/// The call of an item of Responses: a function's arguments are JSON, a custom tool's input is any text. Tools that OpenAI
/// defines are named by their type.
pub(super) fn called(item: &Value) -> Option<(String, Value)> {
    match item["type"].as_str()? {
        "shell_call" => Some(("shell".into(), item["action"].clone())),
        "local_shell_call" => Some(("local_shell".into(), item["action"].clone())),
        "apply_patch_call" => Some(("apply_patch".into(), item["operation"].clone())),
        "function_call" => Some((string(item, "/name"), json(&string(item, "/arguments")))),
        "custom_tool_call" => Some((string(item, "/name"), Value::String(string(item, "/input")))),
        _ => None,
    }
}

fn gemini_request(body: &Value, plain: &mut Request) {
    push(&mut plain.texts, Role::System, texts_of(&body["systemInstruction"]["parts"]));
    for content in list(body, "/contents") {
        let role = role(&string(content, "/role"));
        let mut open = String::new();
        for part in list(content, "/parts") {
            if let Some(response) = part.get("functionResponse") {
                push(&mut plain.texts, role, std::mem::take(&mut open));
                let said = &response["response"];
                let result = said["result"].as_str().filter(|_| said.as_object().is_some_and(|said| said.len() == 1));
                push(&mut plain.texts, Role::Tool, result.map_or_else(|| said.to_string(), str::to_owned));
                plain.results += 1;
            } else if let Some(call) = part.get("functionCall") {
                plain.calls.push((string(call, "/name"), call.get("args").cloned().unwrap_or_else(|| json("{}"))));
            } else if part["thought"] != true {
                open.push_str(&string(part, "/text"));
            }
        }
        push(&mut plain.texts, role, open);
    }
    let one = [&body["tools"]];
    let tools = if body["tools"].is_array() { list(body, "/tools") } else { one.to_vec() };
    for key in ["/functionDeclarations", "/function_declarations"] {
        plain.tools.extend(tools.iter().flat_map(|tool| list(tool, key)).map(|function| string(function, "/name")));
    }
}

fn choice(dialect: &'static Dialect, body: &Value) -> String {
    let config = &body["toolConfig"]["functionCallingConfig"];
    if dialect == gemini::DIALECT {
        let only = list(config, "/allowedFunctionNames");
        return match (config["mode"].as_str(), only.len()) {
            (Some("ANY"), 1) => format!("named {}", only[0].as_str().expect("a name")),
            (Some("ANY"), _) => "required".to_owned(),
            (Some("NONE"), _) => "none".to_owned(),
            _ => "auto".to_owned(),
        };
    }
    let choice = &body["tool_choice"];
    let word = choice.as_str().or_else(|| choice["type"].as_str()).unwrap_or("auto");
    match word {
        "any" => "required".to_owned(),
        "tool" | "function" => format!("named {}", string(choice, "/name") + &string(choice, "/function/name")),
        word => word.to_owned(),
    }
}

/// A whole response.
pub fn response(dialect: &'static Dialect, body: &Value) -> Response {
    let number = |pointer: &str| body.pointer(pointer).and_then(Value::as_u64);
    let mut plain = Response::default();
    let finish;
    match dialect.name() {
        "openai-chat" | "perplexity-sonar" => {
            let message = &body["choices"][0]["message"];
            plain.text = texts_of(&message["content"]);
            for call in list(message, "/tool_calls") {
                plain.calls.push((string(call, "/function/name"), json(&string(call, "/function/arguments"))));
            }
            finish = string(body, "/choices/0/finish_reason");
            plain.input = number("/usage/prompt_tokens");
            // What a total counts beyond the prompt was written by the model.
            plain.output = number("/usage/total_tokens").zip(plain.input).map(|(total, input)| total - input);
            let places =
                ["/usage/prompt_tokens_details/cached_tokens", "/usage/cached_tokens", "/usage/num_cached_tokens"];
            plain.cached = places.iter().find_map(|place| number(place));
        }
        "openai-responses" | "perplexity-agent" => {
            for item in list(body, "/output") {
                plain.text.push_str(&if item["type"] == "message" {
                    texts_of(&item["content"])
                } else {
                    String::new()
                });
                // What has its output beside it, the service ran.
                let output = list(body, "/output");
                let is_run =
                    |other: &&Value| string(other, "/type").ends_with("_output") && other["call_id"] == item["call_id"];
                plain.calls.extend(called(item).filter(|_| !output.iter().any(is_run)));
            }
            finish = string(body, "/status");
            plain.input = number("/usage/input_tokens");
            plain.cached = number("/usage/input_tokens_details/cached_tokens");
            plain.output = number("/usage/output_tokens");
        }
        "anthropic-messages" => {
            for block in list(body, "/content") {
                match string(block, "/type").as_str() {
                    "text" => plain.text.push_str(&string(block, "/text")),
                    "tool_use" => plain.calls.push((string(block, "/name"), block["input"].clone())),
                    _ => {}
                }
            }
            finish = string(body, "/stop_reason");
            plain.cached = number("/usage/cache_read_input_tokens");
            let written = number("/usage/cache_creation_input_tokens").unwrap_or(0);
            plain.input = number("/usage/input_tokens").map(|input| input + written + plain.cached.unwrap_or(0));
            plain.output = number("/usage/output_tokens");
        }
        "gemini" => {
            for part in list(body, "/candidates/0/content/parts") {
                if part["thought"] != true {
                    plain.text.push_str(&string(part, "/text"));
                }
                if let Some(call) = part.get("functionCall") {
                    plain.calls.push((string(call, "/name"), call.get("args").cloned().unwrap_or_else(|| json("{}"))));
                }
            }
            finish = string(body, "/candidates/0/finishReason");
            let known = number("/usageMetadata/promptTokenCount");
            plain.input = known.map(|prompt| prompt + number("/usageMetadata/toolUsePromptTokenCount").unwrap_or(0));
            plain.cached = number("/usageMetadata/cachedContentTokenCount");
            plain.output =
                number("/usageMetadata/totalTokenCount").zip(plain.input).map(|(total, input)| total - input);
        }
        other => panic!("nobody reads {other} here without our code: write how"),
    }
    plain.finish = finish;
    plain
}
