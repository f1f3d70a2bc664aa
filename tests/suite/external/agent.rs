//! An agent that is nobody's here: an HTTP server of its own with its own prompt and tools, which knows two base URLs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The key that the agent has in its settings; no file may ever hold it.
pub const KEY: &str = "agents-own-key-4711";

/// What can differ between two starts of the agent.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    pub stream: bool,
    /// Whether each turn mints a ticket and a date, from this number on.
    pub mints: Option<u32>,
    pub prompt: &'static str,
    pub both_at_once: bool,
    /// A host that it asks the proxy for before each turn, as one that takes it for a proxy of the environment.
    pub third_host: Option<&'static str>,
    /// How long it ponders over a question about frost before it asks anybody.
    pub ponders: Duration,
    /// How long it ponders over one about frost when it has its answer.
    pub lingers: Duration,
    /// How many different requests it sends at once before each turn, in another order after each reset.
    pub asks_at_once: usize,
    /// How long after a reply it asks its model once more.
    pub asks_after: Option<Duration>,
    /// Whether it asks its model while it is set back.
    pub asks_on_reset: bool,
    /// How its keyword index answers: what it holds of three stored keywords, or another status.
    pub index: Index,
}

/// State of the agent's keyword index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// It holds what was stored.
    Whole,
    /// It lost the first keyword of each entry.
    Leaky,
    /// It holds what was stored, under another result.
    Misfiled,
    /// Its endpoint answers with HTTP 500.
    Down,
    /// Its endpoint answers with a page.
    Page,
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            stream: false,
            mints: None,
            prompt: "Help with greenhouses.",
            both_at_once: false,
            third_host: None,
            ponders: Duration::ZERO,
            lingers: Duration::ZERO,
            asks_at_once: 0,
            asks_after: None,
            asks_on_reset: false,
            index: Index::Whole,
        }
    }
}

struct Inside {
    proxy: SocketAddr,
    ways: ServiceSettings,
    client: reqwest::Client,
    minted: AtomicU32,
    resets: AtomicU32,
    refused: Mutex<Vec<String>>,
    stored: Mutex<Vec<String>>,
}

/// A running agent; it stops when it is dropped.
pub struct Agent {
    pub address: SocketAddr,
    inside: Arc<Inside>,
    _runtime: tokio::runtime::Runtime,
}

impl Agent {
    /// Starts one whose base URLs lead to `proxy`.
    pub fn start(proxy: SocketAddr, ways: ServiceSettings) -> Self {
        Self::start_at(0, proxy, ways)
    }

    /// Starts one at that port.
    #[expect(clippy::disallowed_methods, reason = "the agent is a server of its own")]
    pub fn start_at(port: u16, proxy: SocketAddr, ways: ServiceSettings) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let minted = AtomicU32::new(ways.mints.unwrap_or_default());
        let client = reqwest::Client::new();
        let (refused, stored) = (Mutex::default(), Mutex::default());
        let inside = Arc::new(Inside { proxy, ways, client, minted, resets: AtomicU32::new(0), refused, stored });
        let routes = Router::new().route("/chat", post(chat)).route("/reset", post(reset));
        let routes = routes.route("/keywords", get(keywords)).with_state(Arc::clone(&inside));
        let address = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
            let address = listener.local_addr().expect("an address");
            tokio::spawn(async move { axum::serve(listener, routes).await });
            address
        });
        Self { address, inside, _runtime: runtime }
    }

    /// How often it was set back.
    pub fn resets(&self) -> u32 {
        self.inside.resets.load(Ordering::SeqCst)
    }
}

impl Agent {
    /// What its requests came back with where they were not answered.
    pub fn refused(&self) -> Vec<String> {
        self.inside.refused.lock().expect("one thread").clone()
    }
}

async fn keywords(State(agent): State<Arc<Inside>>) -> Response {
    let stored = agent.stored.lock().expect("one thread").clone();
    let keywords: Vec<Value> = match agent.ways.index {
        Index::Whole => stored.iter().map(|word| json!(word)).collect(),
        Index::Leaky => stored.iter().skip(1).map(|word| json!(word)).collect(),
        Index::Misfiled => stored.iter().map(|word| json!({"keyword": word, "result_id": "web-9"})).collect(),
        Index::Down => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Index::Page => return "<html>Sign in".into_response(),
    };
    Json(json!({"index": {"keywords": keywords}})).into_response()
}

async fn reset(State(agent): State<Arc<Inside>>) -> StatusCode {
    agent.resets.fetch_add(1, Ordering::SeqCst);
    agent.stored.lock().expect("one thread").clear();
    if agent.ways.asks_on_reset {
        let asked = agent.complete(&[json!({"role": "user", "content": "Are you there?"})]).await;
        assert!(asked.is_err_and(|why| why.contains("no trial is running")), "it was answered");
    }
    StatusCode::NO_CONTENT
}

#[expect(clippy::disallowed_methods, reason = "the agent is a foreign process with a time of its own")]
async fn chat(State(agent): State<Arc<Inside>>, Json(body): Json<Value>) -> Response {
    let reply = answer(&agent, &body).await;
    if let Some(pause) = agent.ways.asks_after {
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            if let Err(why) = agent.complete(&[json!({"role": "user", "content": "Which title fits?"})]).await {
                agent.refused.lock().expect("one thread").push(why);
            }
        });
    }
    reply
}

#[expect(clippy::disallowed_methods, reason = "the agent is a foreign process with a time of its own")]
async fn answer(agent: &Inside, body: &Value) -> Response {
    let prompt = if agent.ways.mints.is_some() {
        let number = agent.minted.fetch_add(1, Ordering::SeqCst);
        format!("{} It is day {number} of the year. This is ticket TK-{number}.", agent.ways.prompt)
    } else {
        agent.ways.prompt.to_owned()
    };
    let mut messages = vec![json!({"role": "system", "content": prompt})];
    messages.extend(body["history"].as_array().into_iter().flatten().cloned());
    messages.push(json!({"role": "user", "content": body["message"]}));
    if let Some(host) = agent.ways.third_host {
        let proxy = reqwest::Proxy::all(format!("http://{}", agent.proxy)).expect("an address");
        let client = reqwest::Client::builder().proxy(proxy).build().expect("a client");
        let sent = client.get(host).send().await;
        assert!(sent.is_ok_and(|answer| answer.status() == 403) || host.starts_with("https"), "{host} was reached");
    }
    let frost = body["message"].as_str().is_some_and(|message| message.contains("frost tonight"));
    if frost {
        tokio::time::sleep(agent.ways.ponders).await;
    }
    agent.ask_at_once(&messages).await;
    for _ in 0..10 {
        let message = match agent.complete(&messages).await {
            Ok(message) => message,
            Err(why) => {
                agent.refused.lock().expect("one thread").push(why.clone());
                return (StatusCode::BAD_GATEWAY, Json(json!({"error": why}))).into_response();
            }
        };
        messages.push(message.clone());
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            let told = "Answer through final_answer only, after a call of search_docs.";
            messages.push(json!({"role": "system", "content": told}));
        }
        for call in calls {
            let text = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments: Value = serde_json::from_str(text).unwrap_or_default();
            let result = match call["function"]["name"].as_str() {
                Some("final_answer") => {
                    if frost {
                        tokio::time::sleep(agent.ways.lingers).await;
                    }
                    return Json(json!({"reply": {"text": arguments["answer"]}})).into_response();
                }
                Some("search_docs") => documents(),
                Some("web_search") => agent.search(&arguments).await,
                Some("remember") => {
                    let words = arguments["keywords"].as_array().into_iter().flatten();
                    let words = words.filter_map(|word| word.as_str().map(str::to_uppercase));
                    agent.stored.lock().expect("one thread").extend(words);
                    json!({"indexed": true, "merged": []})
                }
                other => json!({"error": {"message": format!("there is no tool {other:?}")}}),
            };
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result.to_string()}));
        }
    }
    (StatusCode::INTERNAL_SERVER_ERROR, "the model never answered").into_response()
}

impl Inside {
    /// Different requests, sent before any is answered.
    async fn ask_at_once(&self, messages: &[Value]) {
        let number = self.ways.asks_at_once;
        let first = self.resets.load(Ordering::SeqCst) as usize;
        let asked = (0..number).map(|place| {
            let part = json!({"role": "user", "content": format!("Part {}.", (first * 3 + place) % number)});
            let messages = [messages, &[part]].concat();
            async move { self.complete(&messages).await.is_ok() }
        });
        assert!(futures_util::future::join_all(asked).await.into_iter().all(|answered| answered), "a part was refused");
    }

    async fn complete(&self, messages: &[Value]) -> Result<Value, String> {
        let tool = |name: &str, names: &[&str]| {
            let properties: serde_json::Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
            json!({"type": "function", "function": {"name": name, "description": name,
                "parameters": {"type": "object", "properties": properties, "required": [names[0]]}}})
        };
        let answer = ["answer", "sources", "confidence_score", "used_internal_kb", "used_external_kb"];
        let mut body = json!({"model": "greenhouse-1", "messages": messages, "temperature": 0,
            "tools": [tool("search_docs", &["query"]), tool("web_search", &["query", "context"]),
                      tool("remember", &["keywords", "query", "perplexity_result_id"]),
                      tool("final_answer", &answer)]});
        if self.ways.stream {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
        }
        let url = format!("http://{}/model/v1/chat/completions", self.proxy);
        let answered = self.post(&url, &body).await?;
        if self.ways.stream {
            return Ok(assembled(&answered));
        }
        let answer: Value = serde_json::from_str(&answered).map_err(|why| why.to_string())?;
        Ok(answer["choices"][0]["message"].clone())
    }

    async fn search(&self, arguments: &Value) -> Value {
        let ask = async |query: &Value| {
            let body = json!({"model": "perplexity/sonar", "input": query, "tools": [{"type": "web_search"}]});
            self.post(&format!("http://{}/search/v1/responses", self.proxy), &body).await
        };
        let answered = if self.ways.both_at_once {
            let again = json!("night frost forecast");
            let (first, _) = tokio::join!(ask(&arguments["query"]), ask(&again));
            first
        } else {
            ask(&arguments["query"]).await
        };
        match answered {
            Err(why) => json!({"error": {"message": why, "retryable": false}}),
            Ok(text) => {
                let answer: Value = serde_json::from_str(&text).unwrap_or_default();
                let items = answer["output"].as_array().cloned().unwrap_or_default();
                let said = items.iter().filter_map(|item| item["content"][0]["text"].as_str()).collect::<String>();
                let citations: Vec<Value> =
                    items.iter().filter_map(|item| item["results"].as_array()).flatten().cloned().collect();
                json!({"result_id": "web-1", "answer": said, "citations": citations})
            }
        }
    }

    async fn post(&self, url: &str, body: &Value) -> Result<String, String> {
        let sent = self.client.post(url).header("authorization", format!("Bearer {KEY}"));
        let sent = sent.header("content-type", "application/json").body(body.to_string()).send().await;
        let response = sent.map_err(|why| why.to_string())?;
        let good = response.status().is_success();
        let is_event_stream = response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        if is_event_stream && response.content_length().is_some() {
            return Err("a stream with a length: it came whole".to_owned());
        }
        let text = response.text().await.map_err(|why| why.to_string())?;
        if good { Ok(text) } else { Err(text) }
    }
}

fn documents() -> Value {
    json!({"chunks": [
        {"id": "warranty#1", "title": "Warranty", "text": "The warranty of the Canopy lasts 60 months from delivery."},
        {"id": "heating#2", "title": "Heating", "text": "The frost guard switches the heater on below 4 degrees."}]})
}

/// A streamed completion as one message.
fn assembled(stream: &str) -> Value {
    let (mut content, mut calls) = (String::new(), Vec::<Value>::new());
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]") {
        let chunk: Value = serde_json::from_str(data).expect("an event");
        let delta = &chunk["choices"][0]["delta"];
        content.push_str(delta["content"].as_str().unwrap_or_default());
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().expect("an index")).expect("small");
            if calls.len() <= index {
                calls.push(json!({"id": piece["id"], "type": "function",
                    "function": {"name": piece["function"]["name"], "arguments": ""}}));
            }
            let more = piece["function"]["arguments"].as_str().unwrap_or_default();
            let sofar = calls[index]["function"]["arguments"].as_str().expect("text").to_owned();
            calls[index]["function"]["arguments"] = json!(sofar + more);
        }
    }
    let mut message =
        json!({"role": "assistant", "content": if content.is_empty() { Value::Null } else { json!(content) }});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    message
}
