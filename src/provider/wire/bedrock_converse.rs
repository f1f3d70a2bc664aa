//! Dialect of Amazon Bedrock's Converse.
//!
//! The model is in the path, and an answer does not name it. Messages are lists of blocks, in `bedrock_converse_blocks`.
//! There is no way to forbid calls while tools are offered, and no seed. Streams are in Amazon's binary framing. Requests
//! are authorized by a Bedrock API key; there are no signatures here.

use super::assembler::{Assemble, Assembler};
use super::document::{Reader, WireError, put, small, text, usage_beside_cache, with_member};
use super::framing::Framing;
use super::{Dialect, USUAL, bedrock_converse_blocks as blocks, passthrough};
use crate::cassette::{Layout, Place, Profile};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Role, ToolChoice, ToolDefinition};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(super) const NAME: &str = "bedrock-converse";
pub(super) const READER: Reader = Reader(NAME);
const CONFIG: &str = "toolConfig";
const INFERENCE: &str = "inferenceConfig";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: &["/requestMetadata"], layout: &LAYOUT };

static LAYOUT: Layout = Layout {
    conversation: &["/messages"],
    prompts: &[Place::at("/system/*/text")],
    prompt_members: &["/system"],
    tools: Some("/toolConfig/tools"),
    tool_names: &["/toolSpec/name"],
    role: "/role",
    text: "/content",
    calls: &[Place::at("/content/*/toolUse/toolUseId")],
    results: &[Place::at("/content/*/toolResult/toolUseId")],
    ..Layout::NONE
};

/// The dialect.
pub(crate) const DIALECT: &Dialect = &Dialect {
    about: "Amazon Bedrock's Converse, with a Bedrock API key; the base URL is `https://bedrock-runtime.REGION.amazonaws.com`.",
    profile: &PROFILE,
    proxied: true,
    framing: Framing::AwsFrames,
    path: |model, stream| {
        let operation = if stream { "converse-stream" } else { "converse" };
        format!("/model/{}/{operation}", model.replace(':', "%3A").replace('/', "%2F"))
    },
    endpoint: |_, path| {
        let asks = path.ends_with("/converse") || path.ends_with("/converse-stream");
        if asks { path.rfind("/model/").map(|start| &path[start..]) } else { None }
    },
    decode_request: |path, body| Ok(ChatRequest { model: model_of(path).unwrap_or_default(), ..decode_request(body)? }),
    encode: encode_request,
    asks_for_stream: |path, _| path.split('?').next().is_some_and(|path| path.ends_with("/converse-stream")),
    // A stream is requested by the path.
    ask_for_stream: |_| {},
    decode_response,
    encode_error: |_, code, message| json!({"message": message, "__type": code}),
    assembler: || Assembler::of(Blocks::default()),
    ..USUAL
};

/// The model in a path, whose id may hold colons and slashes.
fn model_of(path: &str) -> Option<String> {
    let id = path.rsplit_once("/model/")?.1.split_once('/')?.0;
    Some(["%3A", "%3a"].iter().fold(id.replace("%2F", "/").replace("%2f", "/"), |id, colon| id.replace(colon, ":")))
}

/// Decodes a request's body; the model stays empty.
fn decode_request(body: &Value) -> Result<ChatRequest, WireError> {
    let mut fields = READER.object("", body)?.clone();
    let mut messages: Vec<_> = fields.get_mut("system").and_then(blocks::read_system).into_iter().collect();
    for (index, message) in READER.list(&fields, "messages")?.iter().enumerate() {
        let at = format!("/messages/{index}");
        blocks::read_message(&at, READER.object(&at, message)?, &mut messages)?;
    }
    fields.insert("messages".to_owned(), json!([]));
    let inference = |key: &str| fields.get(INFERENCE).and_then(|inference| inference.get(key));
    let config = fields.get(CONFIG);
    let tools = config.and_then(|config| config.get("tools")?.as_array()).into_iter().flatten();
    let tools: Vec<_> = tools.filter_map(|tool| Some(read_tool(tool.get("toolSpec")?.as_object()?))).collect();
    let request = ChatRequest {
        tools: tools.into(),
        tool_choice: config.and_then(read_choice).unwrap_or_default(),
        temperature: inference("temperature").and_then(Value::as_f64),
        max_tokens: inference("maxTokens").and_then(small),
        ..ChatRequest::new("", messages)
    };
    for tool in fields.get_mut(CONFIG).and_then(|config| config.get_mut("tools")?.as_array_mut()).into_iter().flatten()
    {
        if let Some(Value::String(description)) = tool.pointer_mut("/toolSpec/description") {
            description.clear();
        }
        if let Some(schema) = tool.pointer_mut("/toolSpec/inputSchema/json") {
            *schema = Value::Null;
        }
    }
    Ok(ChatRequest { passthrough: passthrough::keep(NAME, fields, Vec::new()), ..request })
}

/// Encodes a request's body; the model goes into the path.
fn encode_request(request: &ChatRequest, tools: Option<Value>) -> Value {
    let passthrough = passthrough::of(NAME, request.passthrough.as_ref());
    let mut body = passthrough.map(|passthrough| passthrough.fields.clone()).unwrap_or_default();
    let leading = request.messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, messages) = request.messages.split_at(leading);
    if !system.is_empty() {
        body.insert("system".to_owned(), system.iter().flat_map(blocks::write_blocks).collect());
    } else if body.get("system").is_some_and(Value::is_array) {
        body.shift_remove("system");
    }
    body.insert("messages".to_owned(), blocks::write_messages(messages));
    with_member(&mut body, CONFIG, |config| {
        passthrough::write_tools(config, tools, &request.tools, name_of, write_tool);
        let read = read_choice(&Value::Object(config.clone())).unwrap_or_default();
        if read != request.tool_choice {
            match &request.tool_choice {
                ToolChoice::Auto | ToolChoice::None => _ = config.shift_remove("toolChoice"),
                ToolChoice::Required => _ = config.insert("toolChoice".to_owned(), json!({"any": {}})),
                ToolChoice::Named(name) => {
                    _ = config.insert("toolChoice".to_owned(), json!({"tool": {"name": name}}));
                }
            }
        }
    });
    with_member(&mut body, INFERENCE, |inference| {
        put(inference, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
        put(inference, "maxTokens", request.max_tokens.as_ref(), small, |number| json!(number));
    });
    Value::Object(body)
}

fn read_tool(spec: &Map<String, Value>) -> ToolDefinition {
    ToolDefinition {
        name: text(spec, "name").to_owned(),
        description: text(spec, "description").to_owned(),
        parameters: spec.get("inputSchema").and_then(|schema| schema.get("json")).cloned().unwrap_or(Value::Null),
    }
}

fn name_of(template: &Value) -> Option<String> {
    Some(text(template.get("toolSpec")?.as_object()?, "name").to_owned())
}

fn write_tool(template: Option<Value>, tool: &ToolDefinition) -> Value {
    let mut wire = template.unwrap_or_else(|| json!({"toolSpec": {"name": "", "inputSchema": {}}}));
    if wire["toolSpec"]["name"].as_str().unwrap_or_default() != tool.name {
        wire["toolSpec"]["name"] = Value::from(tool.name.as_str());
    }
    if !tool.description.is_empty() {
        wire["toolSpec"]["description"] = Value::from(tool.description.as_str());
    }
    if !tool.parameters.is_null() {
        wire["toolSpec"]["inputSchema"]["json"] = tool.parameters.clone();
    }
    wire
}

fn read_choice(config: &Value) -> Option<ToolChoice> {
    let choice = config.get("toolChoice")?.as_object()?;
    if let Some(tool) = choice.get("tool") {
        return Some(ToolChoice::Named(tool.get("name")?.as_str()?.to_owned()));
    }
    Some(if choice.contains_key("any") { ToolChoice::Required } else { ToolChoice::Auto })
}

fn decode_response(body: &Value) -> Result<ChatResponse, WireError> {
    if let Some(reported) = super::error::reported(body) {
        return Err(reported);
    }
    let found = body.pointer("/output/message");
    let Some(wire) = found.and_then(Value::as_object) else {
        return Err(READER.wrong("/output/message", "a message", found));
    };
    let message = blocks::read_answer(wire);
    Ok(ChatResponse {
        model: String::new(),
        finish: match body.get("stopReason").and_then(Value::as_str).unwrap_or_default() {
            "end_turn" | "stop_sequence" => Finish::Stop,
            "tool_use" => Finish::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "guardrail_intervened" | "content_filtered" => Finish::ContentFilter,
            other => Finish::Other(other.to_owned()),
        },
        passthrough: message.passthrough,
        content: message.content,
        refusal: None,
        calls: message.calls,
        usage: usage_beside_cache(body, USAGE),
    })
}

/// Members of an answer's usage.
const USAGE: [&str; 4] = ["inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens"];

/// Assembles the events of a stream, each under its type.
#[derive(Debug, Default)]
struct Blocks {
    fields: Map<String, Value>,
    role: Value,
    blocks: BTreeMap<u64, blocks::Begun>,
}

impl Assemble for Blocks {
    fn push(&mut self, event: &Value) {
        for (kind, data) in event.as_object().into_iter().flatten() {
            let index = data.get("contentBlockIndex").and_then(Value::as_u64).unwrap_or(0);
            match kind.as_str() {
                "messageStart" => self.role = data.get("role").cloned().unwrap_or_default(),
                "contentBlockStart" => self.blocks.entry(index).or_default().start(data.get("start")),
                "contentBlockDelta" => self.blocks.entry(index).or_default().add(data.get("delta")),
                "messageStop" | "metadata" => {
                    let members = data.as_object().into_iter().flatten();
                    self.fields.extend(members.map(|(key, value)| (key.clone(), value.clone())));
                }
                _ => {}
            }
        }
    }

    /// The tokens come last.
    fn complete(&self) -> bool {
        self.fields.contains_key("stopReason") && self.fields.contains_key("usage")
    }

    fn document(&mut self) -> Value {
        let content: Vec<Value> = std::mem::take(&mut self.blocks).into_values().map(blocks::Begun::whole).collect();
        let message = json!({"role": self.role.take(), "content": content});
        self.fields.insert("output".to_owned(), json!({ "message": message }));
        Value::Object(std::mem::take(&mut self.fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_in_the_path_with_its_colons_and_slashes() {
        for model in ["anthropic.claude-3-haiku-20240307-v1:0", "arn:aws:bedrock:eu-west-1:1:inference-profile/x"] {
            let path = DIALECT.path(model, true);
            assert_eq!(path.matches('/').count(), 3, "{path}");
            assert_eq!(model_of(&path).as_deref(), Some(model));
            assert!(DIALECT.asks_for_stream(&path, &Value::Null));
            let address = format!("/prod{path}");
            assert_eq!(DIALECT.endpoint("gateway", &address), Some(path.as_str()));
        }
    }

    #[test]
    fn cached_tokens_are_part_of_the_input() {
        let body = json!({"usage": {"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokens": 10, "cacheWriteInputTokens": 4}});
        let usage = usage_beside_cache(&body, USAGE);
        assert_eq!((usage.input, usage.cached, usage.output), (Some(17), Some(10), Some(2)));
    }
}
