//! The loopback server: routes, delays and failures.
//!
//! The model and the search service have mounts, `/model` and `/search`, because two of their paths are the same. Without a
//! mount `/v1/responses` is the search service's.
//!
//! Answers depend on the request, the headers `x-ragcheck-seed` and `x-ragcheck-fault`, and the behaviour's seed. State is:
//! counts of failures by trial seed and cause, because a repeated request has the same bytes (after the declared number of
//! failures comes one answer, and the count restarts); conversations by the id of an answer; items of answers by theirs.

use super::api::{self, Api};
use super::behaviour::{self, Behaviour, Caller, FailTimes, Pace};
use super::dice::Dice;
use super::{aliases, embed, judge, managed, model, perplexity, search, structured};
use crate::platform::clock::Clock;
use crate::platform::lock::lock;
use crate::platform::loopback;
use crate::provider::chat::{Message, Role, ToolDefinition};
use crate::provider::wire::{Dialect, embeddings, nuclia_ask, openai_chat};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::serve::ListenerExt;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Header with the behaviour's name on every response.
pub(crate) const NAME_HEADER: &str = "x-ragcheck-simulator";
/// Header with the declared latency in microseconds.
pub(crate) const LATENCY_HEADER: &str = "x-ragcheck-latency-us";
/// Header of a failure that the behaviour file declares.
pub(super) const DECLARED_FAULT_HEADER: &str = "x-ragcheck-declared-fault";
pub(crate) const SEED_HEADER: &str = "x-ragcheck-seed";
/// Header with the fault that the trial's case declares.
pub(crate) const FAULT_HEADER: &str = "x-ragcheck-fault";
/// Header with the rules that the variant's prompts ask for, joined by commas.
pub(super) const ASKS_FOR_HEADER: &str = "x-ragcheck-asks-for";

const LONGEST_BODY: usize = 16 * 1024 * 1024;
/// Conversations and items that are kept.
const MOST_CONVERSATIONS: usize = 10_000;

struct Server {
    behaviour: Behaviour,
    clock: Arc<dyn Clock>,
    failed: Mutex<BTreeMap<String, u32>>,
    /// Conversations by the id of the answer that they end with.
    conversations: Mutex<BTreeMap<String, Conversation>>,
    /// Items of answers by their ids.
    items: Mutex<BTreeMap<String, Value>>,
}

/// What a later request continues.
#[derive(Clone)]
struct Conversation {
    messages: Vec<Message>,
    /// The tools that a thread of Messages keeps.
    tools: Arc<[ToolDefinition]>,
}

/// Binds `address` and returns the bound address (port 0 picks a free one) and the server as a future; it runs until it
/// is dropped.
pub(crate) async fn serve(
    behaviour: Behaviour,
    address: SocketAddr,
    clock: Arc<dyn Clock>,
) -> std::io::Result<(SocketAddr, impl Future<Output = std::io::Result<()>> + Send)> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let (failed, conversations, items) = (Mutex::default(), Mutex::default(), Mutex::default());
    let server = Server { behaviour, clock, failed, conversations, items };
    let routes = model_routes()
        .merge(search_routes())
        .nest("/model", model_routes().route("/v1/responses", completions(&api::RESPONSES)))
        .nest("/search", search_routes())
        .route("/kb/{kb}/ask", post(ask))
        .route("/kb/{kb}/resource/{resource}/file/{field}/download/field", get(file))
        .fallback(unknown)
        .layer(middleware::from_fn(admitted))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(Arc::new(server));
    // Parts of a streamed answer go out as they come, not when the one before is acknowledged.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok((bound, async move { axum::serve(listener, routes).await }))
}

type Routes = Router<Arc<Server>>;

/// What the model answers, but for Responses.
fn model_routes() -> Routes {
    Router::new()
        .route("/v1/chat/completions", completions(&api::CHAT))
        .route("/v1/messages", completions(&api::MESSAGES))
        .route("/v1beta/models/{call}", completions(&api::GEMINI))
        .route("/v1/embeddings", post(vectors))
        .route("/v1/models", get(models))
}

/// What the search service answers.
fn search_routes() -> Routes {
    Router::new().route("/v1/agent", post(agent)).route("/v1/responses", post(agent))
}

fn completions(api: &'static Api) -> MethodRouter<Arc<Server>> {
    post(move |state, uri, headers, body| complete(api, state, uri, headers, body))
}

impl Server {
    async fn respond(&self, status: StatusCode, latency: Duration, body: &Value) -> Response {
        if self.behaviour.pace == Pace::Real {
            self.clock.sleep(latency).await;
        }
        let response = (status, body.to_string()).into_response();
        self.headed(response, "application/json", latency)
    }

    /// Streams an answer: the first piece after two fifths of `latency`, the others evenly spaced after it.
    fn respond_in_pieces(&self, latency: Duration, pieces: Vec<String>, content: &'static str) -> Response {
        let first = latency * 2 / 5;
        let between = latency.saturating_sub(first) / u32::try_from(pieces.len().max(1)).unwrap_or(u32::MAX);
        let clock = (self.behaviour.pace == Pace::Real).then(|| Arc::clone(&self.clock));
        let pieces = stream::iter(pieces.into_iter().enumerate()).then(move |(place, piece)| {
            let wait = clock.as_ref().map(|clock| clock.sleep(if place == 0 { first } else { between }));
            async move {
                if let Some(wait) = wait {
                    wait.await;
                }
                Ok::<_, Infallible>(Bytes::from(piece))
            }
        });
        self.headed(Body::from_stream(pieces).into_response(), content, latency)
    }

    fn headed(&self, mut response: Response, content: &'static str, latency: Duration) -> Response {
        let status = response.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
        headers.insert(LATENCY_HEADER, HeaderValue::from(latency.as_micros() as u64));
        if let Ok(name) = HeaderValue::from_str(&self.behaviour.name) {
            headers.insert(NAME_HEADER, name);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// A failure that the behaviour file declares.
    async fn fail(&self, status: StatusCode, latency: Duration, body: &Value) -> Response {
        let mut response = self.respond(status, latency, body).await;
        response.headers_mut().insert(DECLARED_FAULT_HEADER, HeaderValue::from_static("true"));
        response
    }

    async fn refuse(&self, reason: &str) -> Response {
        self.refuse_in(openai_chat::DIALECT, reason).await
    }

    /// Refuses a request with an error in the shape of a dialect.
    async fn refuse_in(&self, dialect: &Dialect, reason: &str) -> Response {
        let body = dialect.encode_error(400, "invalid_request_error", reason);
        self.respond(StatusCode::BAD_REQUEST, Duration::from_millis(5), &body).await
    }

    /// The conversation that ends with the answer of that id.
    fn conversation(&self, id: &str) -> Option<Conversation> {
        lock(&self.conversations).get(id).cloned()
    }

    /// Keeps the items of an answer.
    fn keep_items(&self, answer: &Value) {
        let items = answer["output"].as_array().into_iter().flatten();
        keep_in(&self.items, items.filter_map(|item| Some((item["id"].as_str()?.to_owned(), item.clone()))));
    }

    /// Puts the items that were kept in place of references to them.
    fn resolve(&self, document: &mut Value) {
        let kept = lock(&self.items);
        for item in document.get_mut("input").and_then(Value::as_array_mut).into_iter().flatten() {
            let named = item["role"].is_null() && item["type"].as_str().is_none_or(|kind| kind == "item_reference");
            if let Some(known) = item["id"].as_str().filter(|_| named).and_then(|id| kept.get(id)) {
                *item = known.clone();
            }
        }
    }

    /// The status of the failure that a behaviour file declares for what is asked, while it is not used up.
    fn failure(
        &self,
        service: &str,
        declared: &[behaviour::Failure],
        asked: &str,
        caller: Caller<'_>,
    ) -> Option<StatusCode> {
        let (at, failure) = declared.iter().enumerate().find(|(_, failure)| failure.when.holds(asked, caller))?;
        let fails = self.fails(format!("{service}/{at}/{}", caller.seed), failure.times);
        fails.then(|| StatusCode::from_u16(failure.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE))
    }

    /// Whether the next answer to `key` is still one of `times` failures in a row.
    fn fails(&self, key: String, times: FailTimes) -> bool {
        let FailTimes::Count(times) = times else { return true };
        if times == 0 {
            return false;
        }
        let mut failed = lock(&self.failed);
        let count = failed.entry(key.clone()).or_default();
        *count += 1;
        let still = *count <= times;
        if !still {
            failed.remove(&key);
        }
        still
    }
}

async fn admitted(request: Request, next: Next) -> Response {
    let admitted = {
        let header = |name: &str| request.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
        loopback::admit(header(header::HOST.as_str()), header(header::ORIGIN.as_str()), header(loopback::SITE))
    };
    match admitted {
        Ok(()) => next.run(request).await,
        Err(stranger) => {
            let body = perplexity::write_error("forbidden", &stranger.to_string());
            (StatusCode::FORBIDDEN, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
        }
    }
}

fn caller_of(headers: &HeaderMap) -> Caller<'_> {
    let said = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let asks_for = headers.contains_key(ASKS_FOR_HEADER).then(|| said(ASKS_FOR_HEADER));
    Caller { seed: said(SEED_HEADER), fault: said(FAULT_HEADER), asks_for }
}

fn parse(body: &[u8]) -> Result<Value, perplexity::RequestError> {
    Ok(serde_json::from_slice(body)?)
}

/// One completion, in the shape of an API.
async fn complete(
    api: &'static Api,
    State(server): State<Arc<Server>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    let mut document = match parse(&body) {
        Ok(document) => document,
        Err(reason) => return server.refuse_in(api.dialect, &reason.to_string()).await,
    };
    server.resolve(&mut document);
    let mut request = match api.read(path, &document) {
        Ok(request) => request,
        Err(reason) => return server.refuse_in(api.dialect, &reason.to_string()).await,
    };
    let is_thread = document["thread"].is_object();
    let continued = ["/previous_response_id", "/thread/previous_message_id"].map(|place| document.pointer(place));
    if let Some(id) = continued.into_iter().flatten().find_map(Value::as_str) {
        let Some(Conversation { mut messages, tools }) = server.conversation(id) else {
            return server.refuse_in(api.dialect, &format!("the simulator gave no answer `{id}`")).await;
        };
        let is_system = |message: &Message| message.role == Role::System;
        if is_thread && request.messages.iter().any(is_system) {
            messages.retain(|message| !is_system(message));
        }
        messages.append(&mut request.messages);
        request.messages = messages;
        if is_thread && request.tools.is_empty() {
            request.tools = tools;
        }
    }
    let told = Conversation { messages: request.messages.clone(), tools: request.tools.clone() };
    let tools = aliases::of_request(&server.behaviour.tools, &request.tools);
    aliases::inward(&tools, &mut request);
    let caller = caller_of(&headers);
    let seed = server.behaviour.seed;
    let choice = request.tool_choice.clone();
    let prompt = model::Prompt { messages: &request.messages, tools: &request.tools, choice, caller };
    let mut outcome = match &server.behaviour.judge {
        Some(asked) if asked.model == request.model => judge::grade(asked, seed, &request.messages, caller.seed),
        _ => model::complete(&server.behaviour.model, seed, &prompt),
    };
    aliases::outward(&tools, &mut outcome.completion);
    structured::fit(&mut outcome.completion, &document, &request.messages);
    let key = |kind: &str| format!("model/{kind}/{}/{}", caller.seed, request.messages.len());
    let brief = outcome.latency / 8;
    if server.fails(key("429"), FailTimes::Count(outcome.rate_limited)) {
        let body = api.dialect.encode_error(429, "rate_limit_exceeded", "Too many requests; wait and try again.");
        return server.fail(StatusCode::TOO_MANY_REQUESTS, brief, &body).await;
    }
    if server.fails(key("500"), FailTimes::Count(outcome.server_errors)) {
        let body = api.dialect.encode_error(500, "server_error", "The model failed; try again.");
        return server.fail(StatusCode::INTERNAL_SERVER_ERROR, brief, &body).await;
    }
    let dialogue = String::from_utf8_lossy(&body);
    let id = Dice::new(seed, &["completion", caller.seed, &dialogue]).id("id");
    let answer = api.write(&request, &outcome.completion, &id);
    if let Some(id) = answer["id"].as_str().filter(|_| is_thread || answer["object"] == "response") {
        let (mut told, model::Completion { text, calls, .. }) = (told, outcome.completion);
        told.messages.push(Message { calls, ..Message::text(Role::Assistant, text) });
        keep_in(&server.conversations, [(id.to_owned(), told)]);
    }
    server.keep_items(&answer);
    if api.dialect.asks_for_stream(path, &document) {
        let (pieces, content) = api.pieces(&answer, path, &document);
        return server.respond_in_pieces(outcome.latency, pieces, content);
    }
    server.respond(StatusCode::OK, outcome.latency, &answer).await
}

async fn agent(State(server): State<Arc<Server>>, headers: HeaderMap, body: Bytes) -> Response {
    let request = match parse(&body).and_then(|value| perplexity::read_agent(&value)) {
        Ok(request) => request,
        Err(reason) => return server.refuse(&reason.to_string()).await,
    };
    let caller = caller_of(&headers);
    let found = search::ask(&server.behaviour.search, server.behaviour.seed, caller, request.asked());
    if let Some(status) = server.failure("search", &server.behaviour.search.failures, request.asked(), caller) {
        let kind = if status == StatusCode::TOO_MANY_REQUESTS { "rate_limit_exceeded" } else { "service_unavailable" };
        let body = perplexity::write_error(kind, "The search service cannot answer at the moment.");
        return server.fail(status, found.latency / 8, &body).await;
    }
    let id = Dice::new(server.behaviour.seed, &["answer", caller.seed, &request.question]).id("id");
    server.respond(StatusCode::OK, found.latency, &perplexity::write_agent(&request, &found, &id)).await
}

async fn vectors(State(server): State<Arc<Server>>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(behaviour) = &server.behaviour.embeddings else {
        return server.refuse("this behaviour declares no `embeddings`").await;
    };
    let request = parse(&body).and_then(|value| Ok(embeddings::decode_request(&value)?));
    let request = match request {
        Ok(request) => request,
        Err(reason) => return server.refuse(&reason.to_string()).await,
    };
    let caller = caller_of(&headers);
    let (vectors, latency) = embed::embed(behaviour, server.behaviour.seed, caller.seed, &request.inputs);
    let first = request.inputs.first().map_or("", String::as_str);
    if let Some(status) = server.failure("embeddings", &behaviour.failures, first, caller) {
        let body = perplexity::write_error("service_unavailable", "No embeddings can be made at the moment.");
        return server.fail(status, latency / 8, &body).await;
    }
    let one = |(index, vector): (usize, &Vec<f32>)| json!({"object": "embedding", "index": index, "embedding": vector});
    let data: Vec<Value> = vectors.iter().enumerate().map(one).collect();
    let tokens: usize = request.inputs.iter().map(|text| text.split_whitespace().count()).sum();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let answer = json!({"object": "list", "model": request.model, "data": data, "usage": usage});
    server.respond(StatusCode::OK, latency, &answer).await
}

async fn ask(State(server): State<Arc<Server>>, Path(kb): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(behaviour) = &server.behaviour.managed else {
        return server.refuse("this behaviour declares no `managed`").await;
    };
    let said = |name: &str| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    if let Err((status, body)) = admitted_to(behaviour, &kb, said("x-nuclia-serviceaccount")) {
        return server.respond(status, Duration::from_millis(5), &body).await;
    }
    let request = match parse(&body).and_then(|value| Ok(nuclia_ask::decode_request(&value)?)) {
        Ok(request) => request,
        Err(reason) => return server.refuse(&reason.to_string()).await,
    };
    let caller = caller_of(&headers);
    let answered = managed::ask(behaviour, server.behaviour.seed, caller, &request);
    if let Some(status) = server.failure("managed", &behaviour.failures, &request.query, caller) {
        let body = json!({"detail": "The service cannot answer at the moment."});
        return server.fail(status, answered.latency / 8, &body).await;
    }
    if said(nuclia_ask::SYNCHRONOUS.0) == nuclia_ask::SYNCHRONOUS.1 {
        return if answered.fails {
            server.fail(StatusCode::OK, answered.latency, &answered.document).await
        } else {
            server.respond(StatusCode::OK, answered.latency, &answered.document).await
        };
    }
    let id = answered.document["learning_id"].as_str().unwrap_or_default().to_owned();
    let mut response = server.respond_in_pieces(answered.latency, managed::pieces(&answered), nuclia_ask::CONTENT_TYPE);
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(nuclia_ask::LEARNING_ID_HEADER, id);
    }
    response
}

/// Whether a caller with this token may use that knowledge box.
fn admitted_to(behaviour: &managed::ManagedBehaviour, kb: &str, token: &str) -> Result<(), (StatusCode, Value)> {
    let token = token.strip_prefix("Bearer ").unwrap_or_default();
    if behaviour.token.as_ref().is_some_and(|wanted| wanted != token) {
        return Err((StatusCode::UNAUTHORIZED, json!({"detail": "the service account's token is missing or wrong"})));
    }
    if kb != behaviour.kb_id {
        return Err((StatusCode::NOT_FOUND, json!({"detail": "there is no such knowledge box"})));
    }
    Ok(())
}

async fn file(
    State(server): State<Arc<Server>>,
    Path((kb, resource, field)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(behaviour) = &server.behaviour.managed else {
        return server.refuse("this behaviour declares no `managed`").await;
    };
    let token = headers.get("x-nuclia-serviceaccount").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Err((status, body)) = admitted_to(behaviour, &kb, token) {
        return server.respond(status, Duration::from_millis(5), &body).await;
    }
    let Some(file) = behaviour.files.get(&resource).filter(|_| field == "file") else {
        let body = json!({"detail": "there is no such file"});
        return server.respond(StatusCode::NOT_FOUND, Duration::from_millis(5), &body).await;
    };
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], file.text()).into_response()
}

/// Adds to what is kept, which begins anew where it is full.
fn keep_in<T>(kept: &Mutex<BTreeMap<String, T>>, more: impl IntoIterator<Item = (String, T)>) {
    let mut kept = lock(kept);
    if kept.len() >= MOST_CONVERSATIONS {
        kept.clear();
    }
    kept.extend(more);
}

async fn models(State(server): State<Arc<Server>>) -> Response {
    let model = json!({"id": server.behaviour.name, "object": "model", "created": 0, "owned_by": "ragcheck"});
    server.respond(StatusCode::OK, Duration::ZERO, &json!({"object": "list", "data": [model]})).await
}

async fn unknown(State(server): State<Arc<Server>>) -> Response {
    let known = "known: POST /v1/chat/completions, /v1/messages, /v1beta/models/NAME:generateContent, /v1/embeddings and \
        GET /v1/models, each also below /model; POST /model/v1/responses (the model); POST /v1/agent and /v1/responses, also \
        below /search (the search service); POST /kb/ID/ask";
    let body = perplexity::write_error("not_found", &format!("the simulator has no such endpoint; {known}"));
    server.respond(StatusCode::NOT_FOUND, Duration::ZERO, &body).await
}
