//! What one span says: by the GenAI conventions of OpenTelemetry (today's names and earlier ones), by OpenInference, by
//! OpenLLMetry, or in the attributes of Langfuse's and Vercel's SDKs.
//!
//! <https://github.com/open-telemetry/semantic-conventions-genai>,
//! <https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md>

use super::messages::{CUT_OFF, Said, by_name, flattened, messages, nested, plain, words_in};
use super::parts::is_broken;
use super::published::{LEARNED, OUTCOME, WITHOUT_LEARNED};
use super::{Attributes, HIDDEN, Span, first, langchain, parsed, usage, words};
use crate::trace::finish_of;
use serde_json::{Map, Value};

const LANGFUSE_INPUT: &str = "langfuse.observation.input";
const LANGFUSE_OUTPUT: &str = "langfuse.observation.output";

/// What an agent did, by one span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operation {
    /// It worked on a request of its user, or a part of it did.
    Agent {
        /// The user's words.
        asked: Option<String>,
        /// The agent's words.
        answered: Option<String>,
        /// Whether it is a step of some work, which need not be an agent's.
        is_chain: bool,
    },
    Completed(Completed),
    Ran(Ran),
    /// It searched, or ranked what it found.
    Found(Found),
    /// It asked for vectors.
    Vectors,
}

/// A completion of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Completed {
    /// Id of the answer, if it is given.
    pub(crate) id: Option<String>,
    pub(crate) model: String,
    /// `None` if contents are not captured.
    pub(crate) input: Option<Vec<Said>>,
    /// `None` if contents are not captured.
    pub(crate) output: Option<Vec<Said>>,
    pub(crate) finish: Option<String>,
    /// What of it cannot be read and may be a call.
    pub(crate) unread: Option<String>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) cached_tokens: Option<u64>,
    pub(crate) cache_write_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// A run of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ran {
    pub(crate) tool: String,
    /// Id of the call.
    pub(crate) id: Option<String>,
    /// `None` if contents are not captured.
    pub(crate) arguments: Option<Value>,
    /// `None` if contents are not captured.
    pub(crate) result: Option<Value>,
    /// What the agent says of its end: [`OUTCOME`].
    pub(crate) outcome: Option<String>,
}

/// A search.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) query: Option<String>,
    /// Name of what was searched.
    pub(crate) base: Option<String>,
    /// List of documents, each an object; `None` if contents are not captured.
    pub(crate) documents: Option<Value>,
    /// Ids that it would find without learned entries: [`WITHOUT_LEARNED`].
    pub(crate) without_learned: Option<Vec<String>>,
    /// Origin of the learned entries among the documents, by id: [`LEARNED`].
    pub(crate) learned: Option<Value>,
    /// Whether it ranks what searches found.
    pub(crate) ranks: bool,
}

/// What a span says; `None` if it says nothing about an agent's work.
pub(super) fn of(span: &Span) -> Option<Operation> {
    let attributes = &span.attributes;
    let kind = words(attributes, &["gen_ai.operation.name"])
        .or_else(|| words(attributes, &["openinference.span.kind"]))
        .or_else(|| words(attributes, &["traceloop.span.kind"]))
        .or_else(|| words(attributes, &["llm.request.type"]))
        .or_else(|| of_langfuse(attributes))
        .or_else(|| of_ai_sdk(attributes))
        .unwrap_or_default();
    Some(match kind.to_ascii_lowercase().as_str() {
        "chat" | "text_completion" | "generate_content" | "call_llm" | "completion" | "llm" => {
            Operation::Completed(completed(span))
        }
        "execute_tool" | "tool" => Operation::Ran(ran(span)),
        "retrieval" | "retriever" | "search_memory" | "vector_db_retrieve" => Operation::Found(found(attributes)),
        "reranker" => Operation::Found(Found { ranks: true, ..found(attributes) }),
        "embeddings" | "embedding" => Operation::Vectors,
        "invoke_agent" | "invoke_workflow" | "agent" | "chain" | "workflow" => {
            let of = |names: &[&str], user| {
                first(attributes, names).and_then(|value| words_in(value, user)).filter(|words| words != HIDDEN)
            };
            Operation::Agent {
                asked: of(
                    &["gen_ai.input.messages", "input.value", "traceloop.entity.input", LANGFUSE_INPUT, "ai.prompt"],
                    true,
                ),
                answered: of(
                    &[
                        "gen_ai.output.messages", "gen_ai.output", "output.value", "traceloop.entity.output",
                        LANGFUSE_OUTPUT, "ai.response.text", "ai.response.object",
                    ],
                    false,
                ),
                is_chain: kind.eq_ignore_ascii_case("chain"),
            }
        }
        // Instrumentations have operations of their own for it, or none: `running tool`, MCP's `tools/call`.
        // A guard or an approval names the tool as well, and runs nothing.
        kind if ["guard", "approv", "permission", "polic", "valid"].iter().any(|word| kind.contains(word)) => {
            return None;
        }
        _ if is_mcp_call(span) || words(attributes, &["gen_ai.tool.name"]).is_some() => Operation::Ran(ran(span)),
        _ => return None,
    })
}

/// Whether a span is a call of a tool by the Model Context Protocol: of its client or of its server.
pub(super) fn is_mcp_call(span: &Span) -> bool {
    words(&span.attributes, &["mcp.method.name"]) == Some("tools/call")
}

/// Whether a model's tool is that of an MCP server: frameworks put the server's name before it, as `mcp__tickets__refund`.
pub(crate) fn is_tool(offered: &str, own: &str) -> bool {
    let before = offered.strip_suffix(own);
    before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.', '/', ':']))
}

/// The kind of an observation of Langfuse.
fn of_langfuse(attributes: &Attributes) -> Option<&str> {
    let is_root = || attributes.get("langfuse.internal.is_app_root").is_some_and(|root| *root == true);
    match words(attributes, &["langfuse.observation.type"])? {
        "generation" => Some("llm"),
        "span" => is_root().then_some("agent"),
        kind @ ("tool" | "retriever" | "embedding" | "agent" | "chain") => Some(kind),
        _ => None,
    }
}

/// The kind of a span of Vercel's AI SDK: a call such as `ai.generateText` is the agent's, and what it does for each step
/// is a completion.
fn of_ai_sdk(attributes: &Attributes) -> Option<&'static str> {
    match words(attributes, &["ai.operationId"])? {
        "ai.toolCall" => Some("tool"),
        "ai.generateText" | "ai.streamText" | "ai.generateObject" | "ai.streamObject" => Some("agent"),
        operation if operation.starts_with("ai.embed") => Some("embedding"),
        operation if operation.ends_with(".doGenerate") || operation.ends_with(".doStream") => Some("llm"),
        _ => None,
    }
}

/// The message that Vercel's AI SDK spreads over attributes.
fn ai_sdk_output(attributes: &Attributes) -> Option<Vec<Said>> {
    let text = words(attributes, &["ai.response.text", "ai.response.object"]);
    let calls = first(attributes, &["ai.response.toolCalls"]).map(parsed);
    // An empty attribute means an answer without words; a missing one means that contents are not captured.
    let is_told = calls.is_some() || first(attributes, &["ai.response.text", "ai.response.object"]).is_some();
    is_told.then(|| messages(&serde_json::json!({"role": "assistant", "content": text, "tool_calls": calls})))
}

fn completed(span: &Span) -> Completed {
    let attributes = &span.attributes;
    let usage = first(attributes, &["langfuse.observation.usage_details"]).map(parsed).unwrap_or_default();
    let usage = usage.as_object().map(usage::of_langfuse).unwrap_or_default();
    let number = |names: &[&str]| first(attributes, names).and_then(Value::as_u64);
    let of = |names: &[&str], flat: &[&str]| {
        let direct = first(attributes, names).map(messages);
        direct.or_else(|| flattened(attributes, flat)).filter(|said| !said.is_empty())
    };
    let (asked, answered) = in_events(span);
    let in_events = asked.is_some() || answered.is_some();
    let inputs = ["gen_ai.input.messages", "ai.prompt.messages"];
    let outputs = ["gen_ai.output.messages", "gen_ai.output"];
    let input = of(&inputs, &["llm.input_messages", "gen_ai.prompt"])
        .or(asked)
        .or_else(|| of(&["input.value", LANGFUSE_INPUT], &[]));
    let output = of(&outputs, &["llm.output_messages", "gen_ai.completion"])
        .or(answered)
        .or_else(|| ai_sdk_output(attributes))
        .or_else(|| of(&["output.value", LANGFUSE_OUTPUT], &[]));
    let is_whole = first(attributes, &inputs).and(first(attributes, &outputs)).is_some();
    let mut unread = if span.dropped > 0 && !is_whole {
        Some("attributes that the exporter dropped".to_owned())
    } else if span.dropped_events > 0 && (in_events || output.is_none()) {
        Some("events that the exporter dropped".to_owned())
    } else {
        None
    };
    let mut legible = |said: Option<Vec<Said>>| {
        let mut said = said?;
        unread = unread.take().or_else(|| said.iter().find_map(|one| one.unread.clone()));
        said.retain(|one| one.role != CUT_OFF);
        (!said.is_empty()).then_some(said)
    };
    let (input, output) = (legible(input), legible(output));
    let finish = [
        "gen_ai.response.finish_reasons",
        "gen_ai.completion.0.finish_reason",
        "llm.response.finish_reason",
        "llm.finish_reason",
        "ai.response.finishReason",
    ];
    let finish = first(attributes, &finish).map(parsed).map(|value| plain(value.get(0).unwrap_or(&value)));
    Completed {
        id: words(attributes, &["gen_ai.response.id"]).filter(|id| !id.is_empty()).map(str::to_owned),
        model: words(
            attributes,
            &["gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name"],
        )
        .unwrap_or("unknown")
        .to_owned(),
        input,
        output,
        unread,
        finish: finish.or_else(|| finish_in(span)),
        input_tokens: number(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"])
            .or(usage.input_tokens),
        cached_tokens: number(&[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
        ])
        .or(usage.cached_tokens),
        cache_write_tokens: number(&[
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.cache_write.input_tokens",
            "llm.token_count.prompt_details.cache_write",
            "ai.usage.inputTokenDetails.cacheWriteTokens",
        ])
        .or(usage.cache_write_tokens),
        output_tokens: number(&[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
        ])
        .or(usage.output_tokens),
    }
}

/// Why a completion ended, by what it answered.
fn finish_in(span: &Span) -> Option<String> {
    let choices = span.events.iter().filter(|(_, name, _)| name == "gen_ai.choice");
    let choices = choices.map(|(.., attributes)| Value::Object(attributes.clone()));
    let outputs = ["gen_ai.output.messages", "gen_ai.output", "output.value", LANGFUSE_OUTPUT];
    let outputs = outputs.iter().filter_map(|name| span.attributes.get(*name)).map(parsed);
    outputs.chain(choices).find_map(|value| {
        let last = value.as_array().and_then(|messages| messages.last()).unwrap_or(&value);
        finish_of(last).map(str::to_owned)
    })
}

/// Messages in the events of a span, as earlier conventions have them: `gen_ai.user.message`, `gen_ai.choice`, …
fn in_events(span: &Span) -> (Option<Vec<Said>>, Option<Vec<Said>>) {
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for (_, name, attributes) in &span.events {
        let whole = |names: &[&str]| first(attributes, names).map(messages).unwrap_or_default();
        asked.extend(whole(&["gen_ai.input.messages", "gen_ai.prompt"]));
        answered.extend(whole(&["gen_ai.output.messages", "gen_ai.completion"]));
        let told = |role: &str| {
            let mut message: Map<String, Value> =
                attributes.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            if let Some(calls) = message.get_mut("tool_calls") {
                *calls = parsed(calls);
            }
            message.insert("role".to_owned(), role.into());
            messages(&Value::Object(message))
        };
        match name.strip_prefix("gen_ai.").and_then(|rest| rest.strip_suffix(".message")) {
            Some(role @ ("system" | "user" | "assistant" | "tool")) => asked.extend(told(role)),
            _ if name == "gen_ai.choice" => match attributes.get("message") {
                Some(message) => answered.extend(messages(message)),
                None => answered.extend(told("assistant")),
            },
            _ => {}
        }
    }
    ((!asked.is_empty()).then_some(asked), (!answered.is_empty()).then_some(answered))
}

fn ran(span: &Span) -> Ran {
    let attributes = &span.attributes;
    let named = words(attributes, &["gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name"]);
    let within = || ["execute_tool ", "tools/call "].into_iter().find_map(|before| span.name.strip_prefix(before));
    let name = named.or_else(within).unwrap_or(&span.name);
    let id = words(attributes, &["gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id"]);
    let arguments = [
        "gen_ai.tool.call.arguments", "gen_ai.tool.args", "input.value", "tool.parameters", "traceloop.entity.input",
        "ai.toolCall.args", "tool_arguments", LANGFUSE_INPUT,
    ];
    // A function that is observed as a tool may take arguments by position, which have no names.
    let given = first(attributes, &arguments).map(parsed).map(langchain::arguments).and_then(by_name);
    let is_lost = |given: &Value| {
        given.is_array() || given.as_str().is_some_and(|text| text.trim().is_empty() || is_broken(text))
    };
    let result = result_in(attributes);
    let message = result.as_ref().and_then(langchain::tool_message);
    Ran {
        tool: name.to_owned(),
        id: id.or_else(|| message?.get("tool_call_id")?.as_str()).map(str::to_owned),
        arguments: given.filter(|given| !is_lost(given)),
        result: message.and_then(|message| message.get("content")).map(parsed).or(result.clone()),
        outcome: words(attributes, &[OUTCOME]).map(str::to_owned),
    }
}

/// The result of a run as it is written.
fn result_in(attributes: &Attributes) -> Option<Value> {
    let names = [
        "gen_ai.tool.call.result", "gen_ai.output", "output.value", "traceloop.entity.output", "ai.toolCall.result",
        LANGFUSE_OUTPUT, "tool_response",
    ];
    first(attributes, &names).map(parsed)
}

/// The message of a run of a tool whose result is marked as an error.
pub(super) fn failed_result(span: &Span) -> Option<String> {
    let result = result_in(&span.attributes)?;
    let message = langchain::tool_message(&result).filter(|message| langchain::is_failed(message))?;
    message.get("content").map(plain)
}

fn found(attributes: &Attributes) -> Found {
    let query = ["gen_ai.retrieval.query.text", "gen_ai.retrieval.query", "gen_ai.memory.query.text", "reranker.query"];
    let query = first(attributes, &query).map(plain);
    let documents = ["gen_ai.retrieval.documents", "gen_ai.memory.records", LANGFUSE_OUTPUT, "traceloop.entity.output"];
    let documents = first(attributes, &documents).map(parsed);
    let flat =
        ["retrieval.documents", "reranker.output_documents"].into_iter().find_map(|name| nested(attributes, name));
    let flat = flat.and_then(|list| {
        let items = list.as_array()?.iter().map(|one| one.get("document").unwrap_or(one));
        Some(items.map(with_metadata).collect())
    });
    Found {
        query: query.or_else(|| {
            first(attributes, &["input.value", LANGFUSE_INPUT, "traceloop.entity.input"])
                .and_then(|value| words_in(value, true))
        }),
        base: words(attributes, &["gen_ai.data_source.id", "gen_ai.memory.store.id"]).map(str::to_owned),
        documents: documents.or(flat),
        without_learned: first(attributes, &[WITHOUT_LEARNED])
            .map(parsed)
            .and_then(|list| list.as_array()?.iter().map(|id| Some(id.as_str()?.to_owned())).collect()),
        learned: first(attributes, &[LEARNED]).map(parsed).filter(Value::is_object),
        ranks: false,
    }
}

/// A document whose metadata may be JSON in a text.
fn with_metadata(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(metadata) = document.get_mut("metadata") {
        *metadata = parsed(metadata);
    }
    document
}
