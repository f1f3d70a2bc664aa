//! The server's side: answers the proxy of a run that records, and starts the server with the first request.
//!
//! What the server sends beside its answers belongs to the oldest request in flight, or to the next one: notifications
//! are handed over with its answer. A request of the server (sampling, elicitation, roots) becomes an answer that asks
//! for input, in the form of 2026-07-28; the request comes again with what the agent said, and waits further. So every
//! exchange is one request and one answer, whatever the version.

use super::ServerError;
use super::client::error;
use crate::platform::clock::{RealClock, timeout};
use crate::platform::lock::lock;
use crate::platform::numbers;
use crate::provider::mcp::{Message, is_stateless, message, method, written_message};
use crate::trial::MCP_ERROR;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Member of `_meta` that names the request which waits for what the agent says.
pub(super) const ASKS: &str = "ragcheck/asks";
/// How long a server may take to end when its input is closed.
const END_LIMIT: Duration = Duration::from_secs(2);
/// Longest body that is taken, as at the proxy.
const LONGEST_BODY: usize = 16 << 20;

/// What happens to a request.
#[derive(Debug)]
enum Event {
    /// A notification.
    Note(Value),
    /// The server asks: its id, and the request.
    Asks(Value, Value),
    Answer(Value),
}

/// A request that the server works on.
#[derive(Debug)]
struct InFlight {
    token: Value,
    events: UnboundedSender<Event>,
}

/// Requests, notifications and questions of a server that runs.
#[derive(Debug, Default)]
struct Traffic {
    last: u64,
    in_flight: BTreeMap<u64, InFlight>,
    /// What came while nothing was in flight.
    idle: VecDeque<Event>,
    /// Requests whose agent is asked, with the ids of the questions.
    parked: BTreeMap<u64, (UnboundedReceiver<Event>, Vec<Value>)>,
    /// How the server ended, if it did.
    ended: Option<ServerError>,
}

/// The running server.
struct Running {
    input: UnboundedSender<Value>,
    child: Child,
}

/// A server that is started when it is asked.
pub(super) struct Server {
    command: Vec<OsString>,
    /// The agent's handshake, which a server needs that is started later.
    handshake: Mutex<Option<Value>>,
    running: tokio::sync::Mutex<Option<Running>>,
    traffic: Arc<Mutex<Traffic>>,
}

/// Listens on loopback for the proxy.
#[expect(clippy::disallowed_methods, reason = "a server is a task of its own")]
pub(super) async fn open(server: Arc<Server>) -> std::io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let routes = axum::Router::new().fallback(answer).with_state(server);
    tokio::spawn(async move {
        // It ends with the process.
        let _ = axum::serve(listener, routes).await;
    });
    Ok(address)
}

async fn answer(State(server): State<Arc<Server>>, request: axum::extract::Request) -> Response {
    let body = axum::body::to_bytes(request.into_body(), LONGEST_BODY).await.unwrap_or_default();
    let Ok(body) = written_message(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let id = body["id"].clone();
    match server.handle(body).await {
        Ok(all) => match all.as_slice() {
            [] => StatusCode::ACCEPTED.into_response(),
            [one] => ([(header::CONTENT_TYPE, "application/json")], numbers::write(one)).into_response(),
            all => {
                let event = |one| format!("event: message\ndata: {}\n\n", numbers::write(one));
                let events: String = all.iter().map(event).collect();
                ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
            }
        },
        Err(why) => {
            let told = error(&id, MCP_ERROR, &format!("ragcheck: {why}")).to_string();
            (StatusCode::BAD_GATEWAY, [(header::CONTENT_TYPE, "application/json")], told).into_response()
        }
    }
}

impl Server {
    pub(super) fn new(command: Vec<OsString>) -> Self {
        Self { command, handshake: Mutex::default(), running: tokio::sync::Mutex::default(), traffic: Arc::default() }
    }

    /// Keeps the agent's handshake.
    pub(super) fn remember(&self, handshake: &Value) {
        *lock(&self.handshake) = Some(handshake.clone());
    }

    /// Ends the server: closes its input, and stops it where that is not enough.
    pub(super) async fn end(&self) {
        let Some(Running { input, mut child }) = self.running.lock().await.take() else { return };
        drop(input);
        let clock = RealClock::start();
        if timeout(&clock, END_LIMIT, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    }

    /// The messages that answer one; the answer is last.
    async fn handle(&self, body: Value) -> Result<Vec<Value>, ServerError> {
        let is_request = message(&body) == Message::Request;
        if !is_request && self.running.lock().await.is_none() {
            // A server that nobody asked yet gets its handshake, and the rest of it, with the first request.
            return Ok(Vec::new());
        }
        let input = self.input(&body).await?;
        if !is_request {
            let _ = input.send(body);
            return Ok(Vec::new());
        }
        self.exchange(&input, body).await
    }

    /// The input of the server, which is started if it does not run.
    async fn input(&self, first: &Value) -> Result<UnboundedSender<Value>, ServerError> {
        let mut running = self.running.lock().await;
        // A server that ended in an earlier trial is started again: trials share nothing.
        if lock(&self.traffic).ended.take().is_some() {
            *running = None;
        }
        if let Some(running) = &*running {
            return Ok(running.input.clone());
        }
        let started = self.start()?;
        let input = started.input.clone();
        *running = Some(started);
        let handshake = lock(&self.handshake).clone();
        let handshake = handshake.filter(|_| method(first) != Some("initialize") && !is_stateless(first));
        if let Some(handshake) = handshake {
            self.exchange(&input, handshake).await?;
            let _ = input.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        Ok(input)
    }

    #[expect(clippy::disallowed_methods, reason = "the server is read and written while requests wait")]
    fn start(&self) -> Result<Running, ServerError> {
        let shown = self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
        let shown = shown.first().map(ToString::to_string).unwrap_or_default();
        let mut command = Command::new(self.command.first().cloned().unwrap_or_default());
        command.args(self.command.iter().skip(1)).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let not_started =
            |why: std::io::Error| ServerError::NotStarted { command: shown.clone(), why: why.to_string() };
        let mut child = command.spawn().map_err(not_started)?;
        let (input, mut written) = mpsc::unbounded_channel::<Value>();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        if let Some(mut stdin) = stdin {
            tokio::spawn(async move {
                while let Some(line) = written.recv().await {
                    // A server that ended is told by its output.
                    let text = format!("{}\n", numbers::write(&line));
                    if stdin.write_all(text.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                        return;
                    }
                }
            });
        }
        if let Some(stdout) = stdout {
            tokio::spawn(read(stdout, input.downgrade(), Arc::clone(&self.traffic), shown));
        }
        Ok(Running { input, child })
    }

    /// Sends a request, or what the agent said to a question of its server, and waits for what the server says.
    async fn exchange(&self, input: &UnboundedSender<Value>, mut body: Value) -> Result<Vec<Value>, ServerError> {
        let parked = body.pointer("/params/_meta").and_then(|meta| meta.get(ASKS)).and_then(Value::as_u64);
        let parked = parked.and_then(|id| Some((id, lock(&self.traffic).parked.remove(&id)?)));
        let (id, mut events) = if let Some((id, (events, asked))) = parked {
            for (place, own) in asked.into_iter().enumerate() {
                let said = body.pointer_mut(&format!("/params/inputResponses/{place}"));
                let mut said = said.map(Value::take).filter(Value::is_object).unwrap_or_else(|| json!({"result": {}}));
                (said["jsonrpc"], said["id"]) = (json!("2.0"), own);
                let _ = input.send(said);
            }
            (id, events)
        } else {
            let token = body.pointer("/params/_meta/progressToken").cloned().unwrap_or_default();
            let (id, events) = lock(&self.traffic).begin(token);
            body["id"] = json!(id);
            let _ = input.send(body);
            (id, events)
        };
        // Dropped with the request, if the agent gives it up.
        let mut waiting = Waiting { id, input, traffic: &self.traffic, is_over: false };
        let (mut told, mut asked) = (Vec::new(), Vec::new());
        while let Some(event) = events.recv().await {
            match event {
                Event::Note(note) => told.push(note),
                Event::Answer(answer) => {
                    waiting.is_over = true;
                    lock(&self.traffic).in_flight.remove(&id);
                    told.push(answer);
                    return Ok(told);
                }
                Event::Asks(own, question) => {
                    waiting.is_over = true;
                    asked.push(own);
                    let questions = Map::from_iter([("0".to_owned(), question)]);
                    let result =
                        json!({"resultType": "input_required", "inputRequests": questions, "_meta": {ASKS: id}});
                    told.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
                    lock(&self.traffic).parked.insert(id, (events, asked));
                    return Ok(told);
                }
            }
        }
        waiting.is_over = true;
        Err(lock(&self.traffic).ended.clone().unwrap_or_else(|| ServerError::Ended(String::new())))
    }
}

/// A request that waits: dropping it tells the server that nobody does any more.
struct Waiting<'s> {
    id: u64,
    input: &'s UnboundedSender<Value>,
    traffic: &'s Mutex<Traffic>,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            lock(self.traffic).in_flight.remove(&self.id);
            let parameters = json!({"requestId": self.id, "reason": "the client gave the request up"});
            let _ =
                self.input.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": parameters}));
        }
    }
}

impl Traffic {
    /// A new request, with its id.
    fn begin(&mut self, token: Value) -> (u64, UnboundedReceiver<Event>) {
        self.last += 1;
        let (events, received) = mpsc::unbounded_channel();
        for event in self.idle.drain(..) {
            let _ = events.send(event);
        }
        self.in_flight.insert(self.last, InFlight { token, events });
        (self.last, received)
    }

    /// Takes a message of the server.
    fn hear(&mut self, heard: Value) {
        let kind = message(&heard);
        if kind == Message::Response {
            let answered = heard["id"].as_u64().and_then(|id| self.in_flight.get(&id));
            if let Some(request) = answered {
                let _ = request.events.send(Event::Answer(heard));
            }
            return;
        }
        let token = heard.pointer("/params/progressToken").filter(|_| method(&heard) == Some("notifications/progress"));
        let of_token = token.and_then(|token| self.in_flight.values().find(|one| one.token == *token));
        let to = of_token.or_else(|| self.in_flight.values().next()).map(|one| one.events.clone());
        let event = match kind {
            Message::Request => {
                let question = json!({"method": heard["method"], "params": heard["params"]});
                Event::Asks(heard["id"].clone(), question)
            }
            // Progress of a request that is over says nothing.
            _ if token.is_some() && of_token.is_none() => return,
            _ => Event::Note(heard),
        };
        match to {
            Some(to) => drop(to.send(event)),
            None => self.idle.push_back(event),
        }
    }
}

/// Reads the server's messages until it ends.
async fn read(
    output: ChildStdout,
    input: mpsc::WeakUnboundedSender<Value>,
    traffic: Arc<Mutex<Traffic>>,
    shown: String,
) {
    let mut lines = BufReader::new(output).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        // Bytes that are not UTF-8 spoil their own line alone.
        let line = String::from_utf8_lossy(&line);
        let Ok(heard) = written_message(line.as_bytes()) else {
            if !line.trim().is_empty() {
                crate::cli::output::remark(&format!("mcp-record: the server printed a line that is no JSON: {line}"));
            }
            continue;
        };
        if message(&heard) == Message::Request && method(&heard) == Some("ping") {
            if let Some(input) = input.upgrade() {
                let _ = input.send(json!({"jsonrpc": "2.0", "id": heard["id"], "result": {}}));
            }
            continue;
        }
        lock(&traffic).hear(heard);
    }
    let mut traffic = lock(&traffic);
    traffic.ended = Some(ServerError::Ended(shown));
    traffic.in_flight.clear();
    traffic.parked.clear();
}
