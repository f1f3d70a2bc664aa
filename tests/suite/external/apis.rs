//! Agents that ask by other APIs than Chat Completions: recorded, replayed with the provider stopped, the same verdict.

use super::desk::{Desk, Kind, plain};
use super::{events, own_apis};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// What an agent asks, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asks {
    pub api: Api,
    pub stream: bool,
    /// `down-1` is a model that its provider does not serve today.
    pub model: &'static str,
    pub prompt: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Api {
    Responses,
    /// The same; the provider keeps the conversation.
    Kept,
    Messages,
    Gemini,
    /// Gemini's stream as one JSON list.
    GeminiList,
    Ollama,
    Bedrock,
    /// Vectors of token ids, and a completion.
    Embeddings,
    /// Vectors in other providers' shapes, and a completion.
    GoogleVector,
    GoogleVectors,
    CohereVectors,
    OllamaVectors,
}

const VECTORS: [Api; 5] =
    [Api::Embeddings, Api::GoogleVector, Api::GoogleVectors, Api::CohereVectors, Api::OllamaVectors];
pub const TOOL: &str = "search_docs";
pub const FOUND: &str = "A helmet comes with every kayak.";

impl Api {
    fn path(self, asks: Asks) -> String {
        match self {
            Self::Responses | Self::Kept => "/model/v1/responses".into(),
            Self::Messages => "/model/v1/messages".into(),
            Self::Gemini if asks.stream => {
                format!("/model/v1beta/models/{}:streamGenerateContent?alt=sse", asks.model)
            }
            Self::GeminiList => format!("/model/v1beta/models/{}:streamGenerateContent", asks.model),
            Self::Gemini => format!("/model/v1beta/models/{}:generateContent", asks.model),
            Self::Ollama | Self::Bedrock => own_apis::path(asks),
            Self::Embeddings => "/model/v1/embeddings".into(),
            Self::GoogleVector => format!("/model/v1beta/models/{}:embedContent", asks.model),
            Self::GoogleVectors => format!("/model/v1beta/models/{}:batchEmbedContents", asks.model),
            Self::CohereVectors => "/model/v2/embed".into(),
            Self::OllamaVectors => "/model/api/embed".into(),
        }
    }

    /// The first request of a turn, or the second with what the search gave.
    fn body(self, asks: Asks, question: &str, second: bool) -> Value {
        let schema = json!({"type": "object", "properties": {"query": {"type": "string"}}});
        let arguments = json!({"query": "helmet"});
        let result = json!({"chunks": [{"id": "manual#4", "text": FOUND}]});
        let mut body = match self {
            Self::Responses | Self::Kept => {
                let call = json!({"type": "function_call", "call_id": "call_1", "name": TOOL,
                    "arguments": arguments.to_string()});
                let output = json!({"type": "function_call_output", "call_id": "call_1", "output": result.to_string()});
                let asked = json!({"role": "user", "content": question});
                let input = match (second, self) {
                    (false, _) => json!([asked]),
                    (true, Self::Kept) => json!([output]),
                    (true, _) => json!([asked, call, output]),
                };
                let mut body = json!({"model": asks.model, "instructions": asks.prompt, "input": input,
                    "tools": [{"type": "function", "name": TOOL, "description": "Searches.", "parameters": schema}]});
                if second && self == Self::Kept {
                    body["previous_response_id"] = json!("resp_1");
                }
                body
            }
            Self::Messages => {
                let call = json!({"type": "tool_use", "id": "call_1", "name": TOOL, "input": arguments});
                let output = json!({"type": "tool_result", "tool_use_id": "call_1", "content": result.to_string()});
                let mut messages = vec![json!({"role": "user", "content": question})];
                if second {
                    messages.push(json!({"role": "assistant", "content": [call]}));
                    messages.push(json!({"role": "user", "content": [output]}));
                }
                json!({"model": asks.model, "max_tokens": 99, "system": asks.prompt, "messages": messages,
                    "tools": [{"name": TOOL, "description": "Searches.", "input_schema": schema}]})
            }
            Self::Gemini | Self::GeminiList => {
                let mut contents = vec![json!({"role": "user", "parts": [{"text": question}]})];
                if second {
                    let call = json!({"functionCall": {"name": TOOL, "args": arguments}});
                    contents.push(json!({"role": "model", "parts": [call]}));
                    let output = json!({"functionResponse": {"name": TOOL, "response": result}});
                    contents.push(json!({"role": "user", "parts": [output]}));
                }
                let tool = json!({"name": TOOL, "description": "Searches.", "parameters": schema});
                return json!({"systemInstruction": {"parts": [{"text": asks.prompt}]}, "contents": contents,
                    "tools": [{"functionDeclarations": [tool]}]});
            }
            Self::Ollama | Self::Bedrock => return own_apis::body(asks, question, second),
            Self::Embeddings => {
                return json!({"model": asks.model, "input": [[1820, 7], [9]], "encoding_format": "base64"});
            }
            Self::GoogleVector => return json!({"content": {"parts": [{"text": asks.prompt}]}}),
            Self::GoogleVectors => {
                let content = json!({"role": "user", "parts": [{"text": asks.prompt}]});
                return json!({"requests": [{"model": format!("models/{}", asks.model), "content": content}]});
            }
            Self::CohereVectors => {
                return json!({"model": asks.model, "texts": [asks.prompt], "input_type": "search_query",
                    "embedding_types": ["float"]});
            }
            Self::OllamaVectors => return json!({"model": asks.model, "input": asks.prompt}),
        };
        if asks.stream {
            body["stream"] = json!(true);
        }
        body
    }
}

/// The agent's turn: its answer, and what its provider said last.
pub async fn answer(client: &reqwest::Client, proxy: SocketAddr, asks: Asks, question: &str) -> (String, String) {
    let post = async |path: String, body: Value| {
        let key = match asks.api {
            Api::Messages => ("x-api-key", "sk-agents-own-0123456789"),
            Api::Gemini | Api::GeminiList | Api::GoogleVector | Api::GoogleVectors => {
                ("x-goog-api-key", "sk-agents-own-0123456789")
            }
            _ => ("authorization", "Bearer sk-agents-own-0123456789"),
        };
        let mut request = client.post(format!("http://{proxy}{path}")).header(key.0, key.1);
        if asks.api == Api::Messages {
            request = request.header("anthropic-version", "2023-06-01");
        }
        let answered = request.header("content-type", "application/json").body(body.to_string()).send().await;
        answered.expect("an answer").text().await.expect("text")
    };
    let mut heard = post(asks.api.path(asks), asks.api.body(asks, question, false)).await;
    if VECTORS.contains(&asks.api) && (heard.contains("AACAPw") || heard.contains("0.015625")) {
        let body = json!({"model": "fake-1", "messages": [{"role": "user", "content": question}]});
        let said = post("/model/v1/chat/completions".into(), body).await;
        return (if said.contains("helmet") { FOUND.into() } else { "Sorry.".into() }, said);
    }
    if heard.contains(TOOL) {
        heard = post(asks.api.path(asks), asks.api.body(asks, question, true)).await;
    }
    (if heard.contains(FOUND) { FOUND.into() } else { "Sorry.".into() }, heard)
}

/// The provider's answer; `None` for what is Chat Completions.
pub fn provide(uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let (path, text) = (uri.path(), asked.to_string());
    let second = text.contains("manual#4");
    if text.contains("down-1") || path.contains("down-1") {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        return Some((StatusCode::SERVICE_UNAVAILABLE, axum::Json(error)).into_response());
    }
    if let Some(answer) = own_apis::provide(uri, headers, &asked, second) {
        return Some(answer);
    }
    let arguments = json!({"query": "helmet"});
    let (whole, events) = match path {
        "/v1/responses" => {
            assert!(headers.contains_key("authorization"), "its key");
            let item = if second {
                json!({"type": "message", "id": "s", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": FOUND, "annotations": []}]})
            } else {
                json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": TOOL,
                    "arguments": arguments.to_string(), "status": "completed"})
            };
            let whole = json!({"id": "resp_1", "object": "response", "model": asked["model"], "status": "completed",
                "error": null, "output": [item],
                "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}});
            let events = vec![json!({"type": "response.completed", "response": whole})];
            (whole, events)
        }
        "/v1/messages" => {
            assert_eq!(headers.get_all("anthropic-version").iter().count(), 1, "the version, once");
            assert!(headers.contains_key("x-api-key"), "its key");
            let usage = json!({"input_tokens": 10, "output_tokens": 5});
            let (block, empty, delta, stop) = if second {
                let delta = json!({"type": "text_delta", "text": FOUND});
                (json!({"type": "text", "text": FOUND}), json!({"type": "text", "text": ""}), delta, "end_turn")
            } else {
                let block = |input: &Value| json!({"type": "tool_use", "id": "call_1", "name": TOOL, "input": input});
                let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
                (block(&arguments), block(&json!({})), delta, "tool_use")
            };
            let message = |content: Value, stop: Value| {
                json!({"id": "m", "type": "message", "role": "assistant", "model": asked["model"],
                    "content": content, "stop_reason": stop, "usage": usage})
            };
            let events = vec![
                json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
                json!({"type": "content_block_start", "index": 0, "content_block": empty}),
                json!({"type": "content_block_delta", "index": 0, "delta": delta}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
                json!({"type": "message_stop"}),
            ];
            (message(json!([block]), json!(stop)), events)
        }
        "/v1/embeddings" => {
            let data = [0, 1].map(|index| json!({"object": "embedding", "index": index, "embedding": "AACAPwAAAMA="}));
            let usage = json!({"prompt_tokens": 3, "total_tokens": 3});
            (json!({"object": "list", "model": asked["model"], "data": data, "usage": usage}), Vec::new())
        }
        "/v1/models/fake-1:embedContent" => (json!({"embedding": {"values": [0.015_625, -2.0]}}), Vec::new()),
        "/v1/models/fake-1:batchEmbedContents" => {
            assert!(headers.contains_key("x-goog-api-key"), "its key");
            (json!({"embeddings": [{"values": [0.015_625, -2.0]}]}), Vec::new())
        }
        "/v2/embed" => {
            let meta = json!({"api_version": {"version": "2"}, "billed_units": {"input_tokens": 3}});
            let embeddings = json!({"float": [[0.015_625, -2.0]]});
            (
                json!({"id": "e", "embeddings": embeddings, "texts": asked["texts"], "meta": meta,
                "response_type": "embeddings_by_type"}),
                Vec::new(),
            )
        }
        "/api/embed" => {
            let vectors = json!([[0.015_625, -2.0]]);
            (json!({"model": asked["model"], "embeddings": vectors, "prompt_eval_count": 3}), Vec::new())
        }
        path if path.contains(":generateContent") || path.contains(":streamGenerateContent") => {
            assert!(path.starts_with("/v1/models/gemini-1:"), "{path}");
            assert!(headers.contains_key("x-goog-api-key"), "its key");
            let part = if second {
                json!({"text": FOUND})
            } else {
                json!({"functionCall": {"name": TOOL, "args": arguments}})
            };
            let whole = json!({"modelVersion": "gemini-1", "candidates": [{"index": 0, "finishReason": "STOP",
                "content": {"role": "model", "parts": [part]}}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}});
            (whole.clone(), vec![whole])
        }
        _ => return None,
    };
    let sse = asked["stream"] == true || uri.query() == Some("alt=sse");
    if sse {
        let event = |event: &Value| {
            let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
            format!("{name}data: {event}\n\n")
        };
        let stream: String = events.iter().map(event).collect();
        return Some(([("content-type", "text/event-stream")], stream).into_response());
    }
    let list = path.ends_with(":streamGenerateContent");
    Some(axum::Json(if list { json!(events) } else { whole }).into_response())
}

fn asks(api: Api, stream: bool) -> Asks {
    let model = match api {
        Api::Gemini | Api::GeminiList => "gemini-1",
        _ => "fake-1",
    };
    Asks { api, stream, model, prompt: "Search, then answer." }
}

fn desk(asks: Asks) -> Desk {
    let desk = Desk::set(Kind::Api(asks), "", "roles: {knowledge: search_docs}\n");
    if !VECTORS.contains(&asks.api) {
        let expected = "answer: {contains: [comes with every kayak]}, calls: [{exact: [search_docs]}]";
        desk.project.edit("desk.yaml", "answer: {contains: [helmet]}", expected);
    }
    desk
}

/// Recorded and replayed without its provider; the trace tells the search, its passages and the tokens.
fn passes(asks: Asks) {
    let mut desk = desk(asks);
    desk.passes_recorded_and_replayed();
    let trace = &desk.project.traces()[0];
    let completions = events(trace, "model_called");
    assert_eq!(completions.len(), 2, "{asks:?}: {trace}");
    for called in completions {
        let completion = &called["reply"]["completion"];
        let tokens = (completion["input_tokens"].as_u64(), completion["output_tokens"].as_u64());
        assert_eq!(tokens, (Some(10), Some(5)), "{asks:?}: {called}");
        let streamed = asks.stream && asks.api != Api::GeminiList;
        assert_eq!(called["first_token_us"].is_u64(), streamed, "{asks:?}: {called}");
    }
    let call = events(trace, "tool_called")[0];
    assert_eq!(call["arguments"]["query"], "helmet", "{asks:?}: {call}");
    assert_eq!(call["outcome"]["ok"]["search"]["hits"][0]["id"], "manual#4", "{asks:?}: {call}");
    let lane = desk.project.read("cassettes/desk/helmet/external.base.1.yaml");
    assert!(!lane.contains("agents-own"), "{lane}");

    // Another prompt is an explained miss, and the agent's client can read it.
    let other = Asks { prompt: "Answer at once.", ..asks };
    desk.becomes(Kind::Api(other));
    let outcome = desk.run("replay");
    outcome.expect_code(3);
    assert!(plain(&outcome.stdout).contains("system prompt changed"), "{asks:?}: {}", outcome.stdout);
    let heard: Value = serde_json::from_str(&desk.heard()).expect("JSON");
    let error = &heard["error"];
    let words = [error, &error["message"], &heard["message"]].into_iter().find_map(Value::as_str);
    assert!(words.is_some_and(|words| words.starts_with("ragcheck: ")), "{heard}");
    match asks.api {
        Api::Messages => {
            assert_eq!((&heard["type"], &error["type"]), (&json!("error"), &json!("invalid_request_error")), "{heard}");
        }
        Api::Gemini | Api::GeminiList => {
            assert_eq!((&error["code"], &error["status"]), (&json!(400), &json!("INVALID_ARGUMENT")), "{heard}");
        }
        Api::Ollama => assert_eq!(heard["code"], "ragcheck_cassette_miss", "{heard}"),
        Api::Bedrock => assert_eq!(heard["__type"], "ragcheck_cassette_miss", "{heard}"),
        _ => assert_eq!(error["code"], "ragcheck_cassette_miss", "{heard}"),
    }
}

/// A provider that does not answer says nothing about the agent.
fn is_an_outage(asks: Asks) {
    let desk = desk(Asks { model: "down-1", ..asks });
    let outcome = desk.run("record");
    outcome.expect_code(3);
    let (verdict, error) = desk.trial();
    assert_eq!(verdict, "ERROR", "{asks:?}: {}", outcome.stdout);
    assert!(error.contains("(HTTP 503) from 127.0.0.1:"), "{asks:?}: {error}");
}

#[test]
fn an_agent_that_asks_by_responses_is_recorded_and_replayed_without_its_provider() {
    passes(asks(Api::Responses, false));
    passes(asks(Api::Responses, true));
    passes(asks(Api::Kept, false));
    is_an_outage(asks(Api::Responses, false));
}

#[test]
fn an_agent_that_asks_by_messages_is_recorded_and_replayed_without_its_provider() {
    passes(asks(Api::Messages, false));
    passes(asks(Api::Messages, true));
    is_an_outage(asks(Api::Messages, true));
}

#[test]
fn an_agent_that_asks_by_generate_content_is_recorded_and_replayed_without_its_provider() {
    passes(asks(Api::Gemini, false));
    passes(asks(Api::Gemini, true));
    passes(asks(Api::GeminiList, true));
    is_an_outage(asks(Api::Gemini, false));
}

#[test]
fn an_agent_that_asks_by_ollamas_own_api_is_recorded_and_replayed_without_its_provider() {
    passes(asks(Api::Ollama, false));
    passes(asks(Api::Ollama, true));
    is_an_outage(asks(Api::Ollama, true));
}

#[test]
fn an_agent_that_asks_by_converse_is_recorded_and_replayed_without_its_provider() {
    passes(asks(Api::Bedrock, false));
    passes(asks(Api::Bedrock, true));
    is_an_outage(asks(Api::Bedrock, false));
}

#[test]
fn an_embedding_is_recorded_and_replayed_and_is_no_completion() {
    for (api, profile) in VECTORS.into_iter().zip(["openai", "google", "google", "cohere", "ollama"]) {
        let mut desk = desk(asks(api, false));
        desk.passes_recorded_and_replayed();
        let trace = &desk.project.traces()[0];
        assert_eq!(events(trace, "model_called").len(), 1, "{trace}");
        let lane = desk.project.read("cassettes/desk/helmet/external.base.1.yaml");
        assert!(lane.contains("service: \"embeddings\"") && lane.contains("embeddings: \"fake"), "{lane}");
        assert!(lane.contains(&format!("profile: \"{profile}-embeddings\"")), "{lane}");
        assert_eq!(desk.project.latest("run.json")["trials"][0]["model_calls"], 1);
        // Its model is asked the same, and nothing is retrieved any more.
        desk.becomes(Kind::Chat);
        let words = "no request to `embeddings` came to the proxy; 1 recorded request was not asked for";
        desk.is_an_error(&desk.run("replay"), words);
        desk.project.edit("desk.yaml", "cases:", "optional: [embeddings]\ncases:");
        desk.run("replay").expect_code(0);
        if api != Api::Embeddings {
            // The recorded answer is that of the recorded text alone.
            desk.becomes(Kind::Api(Asks { prompt: "Another text.", ..asks(api, false) }));
            desk.run("replay").expect_code(3);
        }
    }
    is_an_outage(asks(Api::Embeddings, false));
    is_an_outage(asks(Api::GoogleVectors, false));
    is_an_outage(asks(Api::CohereVectors, false));
}
