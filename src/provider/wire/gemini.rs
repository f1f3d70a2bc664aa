//! Dialect of Google's generateContent.
//!
//! The model is in the path, not in the body. Ids of calls are optional: a call without one gets an id from its name
//! and position, which is not sent. A result names its function, so encoding one looks up the name in the earlier
//! calls. `STOP` together with a call means that the model waits for results. Thought signatures stay with their parts.
//! Field names may have either spelling (`functionCall`, `function_call`); each is written back unchanged.

use super::assembler::{Assemble, Assembler};
use super::call_ids::CallIds;
use super::document::{Reader, WireError, plus, put, small, text, tokens, with_member};
use super::gemini_parts::{self, key_of};
use super::gemini_stream::Assembler as Chunks;
use super::{Dialect, USUAL, passthrough};
use crate::cassette::{Layout, Place, Profile};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Message, Role, ToolChoice, ToolDefinition, Usage};
use crate::settings::Auth;
use serde_json::{Map, Value, json};

/// The dialect's name.
pub(super) const NAME: &str = "gemini";

// The model is in the path, which is compared whole.
static PROFILE: Profile = Profile { name: NAME, version: 1, drop: &["/labels"], layout: &LAYOUT };

// Results name functions, which may be called repeatedly, so there are no calls and results to check.
static LAYOUT: Layout = Layout {
    conversation: &["/contents"],
    prompts: &[Place::at("/systemInstruction/parts/*/text")],
    prompt_members: &["/systemInstruction"],
    tools: Some("/tools"),
    tool_names: &["/name", "/type"],
    role: "/role",
    ..Layout::NONE
};

pub(super) const READER: Reader = Reader(NAME);
const TOOL: super::document::ToolShape =
    super::document::ToolShape { parameters: &["parametersJsonSchema", "parameters", "parameters_json_schema"] };
const DECLARATIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];
const SYSTEM: [&str; 2] = ["systemInstruction", "system_instruction"];
const CONFIG: [&str; 2] = ["toolConfig", "tool_config"];
const CALLING: [&str; 2] = ["functionCallingConfig", "function_calling_config"];
const GENERATION: [&str; 2] = ["generationConfig", "generation_config"];

/// The dialect.
pub const DIALECT: &Dialect = &Dialect {
    about: "Google's generateContent; the base URL ends in `/v1beta`.",
    profile: &PROFILE,
    auth: Auth::XGoogApiKey,
    proxied: true,
    path: |model, stream| {
        let model = model.strip_prefix("models/").unwrap_or(model);
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("/models/{model}:{method}")
    },
    endpoint: |_, path| {
        let asks = path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent");
        if asks { path.rfind("/models/").map(|start| &path[start..]) } else { None }
    },
    decode_request: |path, body| {
        let mut request = decode_request(body)?;
        model_of(path).unwrap_or_default().clone_into(&mut request.model);
        Ok(request)
    },
    encode: encode_request,
    asks_for_stream: |path, _| path.split('?').next().is_some_and(|path| path.ends_with(":streamGenerateContent")),
    // A stream is requested by the path.
    ask_for_stream: |_| {},
    decode_response,
    encode_error,
    assembler: || Assembler::of(Chunks::default()),
    ..USUAL
};

fn encode_error(status: u16, code: &str, message: &str) -> Value {
    let word = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500 => "INTERNAL",
        504 => "DEADLINE_EXCEEDED",
        501..=503 | 505.. => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    };
    let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "ragcheck"});
    json!({"error": {"code": status, "message": message, "status": word, "details": [info]}})
}

/// The model in a path.
fn model_of(path: &str) -> Option<&str> {
    Some(path.rsplit_once("/models/")?.1.split_once(':')?.0)
}

/// Decodes a request's body; the model stays empty.
fn decode_request(body: &Value) -> Result<ChatRequest, WireError> {
    let mut fields = READER.object("", body)?.clone();
    let mut messages = Vec::new();
    let mut ids = CallIds::default();
    // Some libraries write null if there is none.
    if let Some(key) = key_of(&fields, &SYSTEM).filter(|key| !fields[*key].is_null()) {
        let system = &mut fields[key];
        let wire = match &*system {
            // The libraries accept a plain string.
            Value::String(text) => json!({"parts": [{"text": text}]}),
            other => other.clone(),
        };
        let whole = READER.object("/systemInstruction", &wire)?;
        messages.extend(gemini_parts::read_content(whole, Role::System, &mut ids));
        *system = json!({});
    }
    match fields.get("contents") {
        Some(Value::Array(contents)) => {
            for (index, content) in contents.iter().enumerate() {
                let at = format!("/contents/{index}");
                let content = READER.object(&at, content)?;
                let role = match content.get("role").and_then(Value::as_str) {
                    Some("model") => Role::Assistant,
                    None | Some("user" | "function") => Role::User,
                    Some(_) => return Err(READER.wrong(&format!("{at}/role"), "user or model", content.get("role"))),
                };
                messages.extend(gemini_parts::read_content(content, role, &mut ids));
            }
        }
        other => return Err(READER.wrong("/contents", "a list", other)),
    }
    let config = key_of(&fields, &CONFIG).and_then(|key| calling(&fields[key]));
    let generation = key_of(&fields, &GENERATION).map(|key| &fields[key]);
    let number = |key: &str| generation.and_then(|generation| generation.get(key));
    let request = ChatRequest {
        tools: read_tools(fields.get("tools")).into(),
        tool_choice: config.and_then(read_choice).unwrap_or_default(),
        temperature: number("temperature").and_then(Value::as_f64),
        max_tokens: number("maxOutputTokens").and_then(small),
        seed: number("seed").and_then(small),
        ..ChatRequest::new("", messages)
    };
    fields.insert("contents".to_owned(), json!([]));
    for declarations in all_declarations(fields.get_mut("tools")) {
        for function in declarations {
            if let Value::Object(function) = function {
                *function = TOOL.template(function);
            }
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
    let key = key_of(&body, &SYSTEM).unwrap_or(SYSTEM[0]);
    match gemini_parts::write_system(system) {
        Some(system) => _ = body.insert(key.to_owned(), system),
        None if body.get(key).is_some_and(Value::is_null) => {}
        None => _ = body.shift_remove(key),
    }
    body.insert("contents".to_owned(), gemini_parts::write_contents(messages));
    match tools {
        Some(tools) => _ = body.insert("tools".to_owned(), tools),
        None => write_tools(&mut body, &request.tools),
    }
    write_config(&mut body, request, passthrough.is_none());
    let key = key_of(&body, &GENERATION).unwrap_or(GENERATION[0]);
    with_member(&mut body, key, |generation| {
        put(generation, "temperature", request.temperature.as_ref(), Value::as_f64, |number| json!(number));
        put(generation, "maxOutputTokens", request.max_tokens.as_ref(), small, |number| json!(number));
        put(generation, "seed", request.seed.as_ref(), small, |number| json!(number));
    });
    Value::Object(body)
}

fn decode_response(body: &Value) -> Result<ChatResponse, WireError> {
    if let Value::Array(chunks) = body {
        return decode_response(&assembled(chunks)?);
    }
    let document = READER.answer(body)?;
    let model = document.get("modelVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let candidate = document.get("candidates").and_then(|candidates| candidates.get(0));
    let Some(candidate) = candidate else {
        let Some(reason) = body.pointer("/promptFeedback/blockReason").and_then(Value::as_str) else {
            return Err(READER.wrong("/candidates/0", "a candidate", None));
        };
        let refusal = Some(format!("the prompt was blocked: {reason}"));
        let (finish, usage) = (Finish::ContentFilter, usage(body));
        return Ok(ChatResponse { model, refusal, finish, usage, ..ChatResponse::default() });
    };
    let mut content = candidate.get("content").and_then(Value::as_object).cloned().unwrap_or_default();
    // In a request that repeats it, a content without this role would be the user's.
    if !content.is_empty() {
        content.insert("role".into(), "model".into());
    }
    let message = gemini_parts::read_content(&content, Role::Assistant, &mut CallIds::default()).into_iter().next();
    let message = message.unwrap_or_else(|| Message::text(Role::Assistant, ""));
    let reason = candidate.get("finishReason").and_then(Value::as_str).unwrap_or_default();
    let blocked = ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY"];
    Ok(ChatResponse {
        model,
        finish: match reason {
            "STOP" if !message.calls.is_empty() => Finish::ToolCalls,
            "STOP" => Finish::Stop,
            "MAX_TOKENS" => Finish::Length,
            reason if blocked.contains(&reason) => Finish::ContentFilter,
            other => Finish::Other(other.to_owned()),
        },
        passthrough: message.passthrough,
        content: message.content,
        refusal: None,
        calls: message.calls,
        usage: usage(body),
    })
}

/// Assembles a stream sent as one JSON array, as it is without `alt=sse`.
fn assembled(chunks: &[Value]) -> Result<Value, WireError> {
    let mut assembler = Chunks::default();
    for chunk in chunks {
        if let Some(reported) = super::error::reported(chunk) {
            return Err(reported);
        }
        assembler.push(chunk);
    }
    if assembler.complete() { Ok(assembler.document()) } else { Err(WireError::Cut) }
}

fn usage(body: &Value) -> Usage {
    let Some(usage) = body.get("usageMetadata") else { return Usage::default() };
    Usage {
        // Results of Google's own tools are counted separately from the prompt.
        input: plus(tokens(usage, "/promptTokenCount"), tokens(usage, "/toolUsePromptTokenCount")),
        cached: tokens(usage, "/cachedContentTokenCount"),
        written: None,
        output: plus(tokens(usage, "/candidatesTokenCount"), tokens(usage, "/thoughtsTokenCount")),
    }
}

fn calling(config: &Value) -> Option<&Value> {
    CALLING.iter().find_map(|key| config.get(*key))
}

fn read_choice(calling: &Value) -> Option<ToolChoice> {
    let allowed = calling.get("allowedFunctionNames").or_else(|| calling.get("allowed_function_names"));
    match calling.get("mode")?.as_str()? {
        // VALIDATED is AUTO with checked arguments.
        "AUTO" | "VALIDATED" => Some(ToolChoice::Auto),
        "ANY" => Some(match allowed.and_then(Value::as_array).map(Vec::as_slice) {
            Some([Value::String(only)]) => ToolChoice::Named(only.clone()),
            _ => ToolChoice::Required,
        }),
        "NONE" => Some(ToolChoice::None),
        _ => None,
    }
}

fn write_config(body: &mut Map<String, Value>, request: &ChatRequest, ours: bool) {
    let key = key_of(body, &CONFIG).unwrap_or(CONFIG[0]);
    let read = body.get(key).and_then(calling).and_then(read_choice).unwrap_or_default();
    if read == request.tool_choice && (!ours || request.tools.is_empty()) {
        return;
    }
    let calling = match &request.tool_choice {
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    if let Value::Object(config) = body.entry(key).or_insert_with(|| json!({})) {
        let key = key_of(config, &CALLING).unwrap_or(CALLING[0]);
        config.insert(key.to_owned(), calling);
    }
}

/// The tools as a list: a single object is accepted too.
fn tool_list(tools: Option<&Value>) -> Vec<&Value> {
    match tools {
        Some(Value::Array(tools)) => tools.iter().collect(),
        Some(tool @ Value::Object(_)) => vec![tool],
        _ => Vec::new(),
    }
}

fn read_tools(tools: Option<&Value>) -> Vec<ToolDefinition> {
    let lists = tool_list(tools).into_iter().filter_map(|tool| DECLARATIONS.iter().find_map(|key| tool.get(*key)));
    lists.filter_map(Value::as_array).flatten().filter_map(|function| Some(TOOL.read(function.as_object()?))).collect()
}

fn all_declarations(tools: Option<&mut Value>) -> Vec<&mut Vec<Value>> {
    let tools: Vec<&mut Value> = match tools {
        Some(Value::Array(tools)) => tools.iter_mut().collect(),
        Some(tool) => vec![tool],
        None => Vec::new(),
    };
    let objects = tools.into_iter().filter_map(Value::as_object_mut);
    objects
        .filter_map(|tool| {
            let key = key_of(tool, &DECLARATIONS)?;
            tool.get_mut(key)?.as_array_mut()
        })
        .collect()
}

fn write_tools(body: &mut Map<String, Value>, tools: &[ToolDefinition]) {
    let name = |template: &Value| Some(text(template.as_object()?, "name").to_owned());
    let mut left: Vec<ToolDefinition> = tools.to_vec();
    for declarations in all_declarations(body.get_mut("tools")) {
        let names: Vec<String> = declarations.iter().filter_map(name).collect();
        let mut here = Vec::new();
        for wanted in names {
            if let Some(place) = left.iter().position(|tool| tool.name == wanted) {
                here.push(left.remove(place));
            }
        }
        *declarations = passthrough::place_tools(std::mem::take(declarations), &here, name, |template, tool| {
            TOOL.write(template, tool)
        });
    }
    if left.is_empty() {
        return;
    }
    let rest: Vec<Value> = left.iter().map(|tool| TOOL.write(None, tool)).collect();
    if let Some(declarations) = all_declarations(body.get_mut("tools")).pop() {
        declarations.extend(rest);
        return;
    }
    let added = json!({ DECLARATIONS[0]: rest });
    match body.get_mut("tools") {
        Some(Value::Array(tools)) => tools.push(added),
        _ => _ = body.insert("tools".to_owned(), json!([added])),
    }
}
