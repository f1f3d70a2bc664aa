//! The agent's side: a message per line, each request sent to the proxy of the run.

use super::ServerError;
use super::server::{self, ASKS, Server};
use crate::platform::lock::lock;
use crate::platform::numbers;
use crate::provider::mcp::{Message, message, method, written_message, written_messages};
use crate::transport::{HttpResponse, TARGET_HEADER};
use crate::trial::MCP_ERROR;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

/// Code of a line that is no JSON.
pub(in crate::cli) const NO_JSON: i32 = -32700;

/// The conversation with the agent.
struct Client {
    /// Address of the server at the proxy.
    url: String,
    http: reqwest::Client,
    /// Headers of every request: our address, and secrets that the server may repeat.
    headers: Vec<(String, String)>,
    server: Arc<Server>,
    lines: mpsc::UnboundedSender<Value>,
    /// Requests in flight, by their ids as JSON.
    asked: Mutex<BTreeMap<String, AbortHandle>>,
    /// Requests to the agent that it has not answered, by their ids.
    asking: Mutex<BTreeMap<String, oneshot::Sender<Value>>>,
}

/// Serves the agent until its input ends. `url` is the server's address at the proxy of the run.
#[expect(clippy::disallowed_methods, reason = "requests of the agent run side by side")]
pub(super) async fn serve(
    url: String,
    secrets: Vec<(String, String)>,
    command: Vec<OsString>,
) -> Result<(), ServerError> {
    // Another part of the process may have installed the provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build();
    let http = http.map_err(|why| ServerError::Http(why.to_string()))?;
    let server = Arc::new(Server::new(command));
    let address = server::open(Arc::clone(&server)).await.map_err(|why| ServerError::Port(why.to_string()))?;
    let mut headers = vec![(TARGET_HEADER.to_owned(), format!("http://{address}"))];
    headers.extend(secrets.into_iter().map(|(name, value)| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        (format!("x-ragcheck-env-{name}"), value)
    }));
    let (lines, mut written) = mpsc::unbounded_channel::<Value>();
    let writer = tokio::spawn(async move {
        let mut output = std::io::stdout();
        while let Some(line) = written.recv().await {
            // An agent that does not read any more has left.
            if writeln!(output, "{}", numbers::write(&line)).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    });
    let (asked, asking) = (Mutex::default(), Mutex::default());
    let client = Arc::new(Client { url, http, headers, server, lines, asked, asking });
    let mut input = lines_of_stdin();
    while let Some(line) = input.recv().await {
        match written_message(line.as_bytes()) {
            Ok(heard) => {
                for one in messages_in(heard) {
                    client.hear(one).await;
                }
            }
            Err(why) => client.say(error(&Value::Null, NO_JSON, &format!("ragcheck: a line is no JSON: {why}"))),
        }
    }
    lock(&client.asked).values().for_each(AbortHandle::abort);
    client.server.end().await;
    writer.abort();
    Ok(())
}

/// The lines of the standard input, until it ends.
pub(in crate::cli) fn lines_of_stdin() -> mpsc::UnboundedReceiver<String> {
    let (read, input) = mpsc::unbounded_channel::<String>();
    // The process ends with its input, and so does this thread.
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().split(b'\n').map_while(Result::ok);
        // Bytes that are not UTF-8 spoil their own line alone.
        let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.filter(|line| !line.trim().is_empty()).try_for_each(|line| read.send(line))
    });
    input
}

/// The messages of a line: 2025-03-26 alone has several messages in one.
pub(in crate::cli) fn messages_in(line: Value) -> Vec<Value> {
    match line {
        Value::Array(several) => several,
        one => vec![one],
    }
}

/// Ends the task of the request that a notification cancels, if it is under way.
pub(in crate::cli) fn cancel(tasks: &Mutex<BTreeMap<String, AbortHandle>>, notification: &Value) {
    let key = notification.pointer("/params/requestId").unwrap_or(&Value::Null).to_string();
    if let Some(task) = lock(tasks).remove(&key) {
        task.abort();
    }
}

impl Client {
    fn say(&self, message: Value) {
        // Nobody reads only where the process ends.
        let _ = self.lines.send(message);
    }

    /// Takes one message of the agent.
    #[expect(clippy::disallowed_methods, reason = "requests of the agent run side by side")]
    async fn hear(self: &Arc<Self>, heard: Value) {
        match message(&heard) {
            Message::Request => {
                if method(&heard) == Some("initialize") {
                    self.server.remember(&heard);
                }
                let (client, key) = (Arc::clone(self), heard["id"].to_string());
                // The task takes itself out, for which it needs what is held here.
                let mut asked = lock(&self.asked);
                let task = tokio::spawn(async move {
                    let (id, key) = (heard["id"].clone(), heard["id"].to_string());
                    let answer = client.ask(heard).await;
                    lock(&client.asked).remove(&key);
                    client.say(answer.unwrap_or_else(|why| error(&id, MCP_ERROR, &format!("ragcheck: {why}"))));
                });
                asked.insert(key, task.abort_handle());
            }
            Message::Notification if method(&heard) == Some("notifications/cancelled") => {
                // The request is given up, which the server is told by the one who waits for it.
                cancel(&self.asked, &heard);
            }
            // Before what the agent sends next: a server takes no request before `notifications/initialized`.
            Message::Notification => drop(self.post(&heard).await),
            Message::Response => {
                let waiting = heard["id"].as_str().and_then(|id| lock(&self.asking).remove(id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(heard);
                }
            }
            Message::Invalid => self.say(error(&Value::Null, -32600, "ragcheck: not a JSON-RPC message")),
        }
    }

    /// The answer to a request. Where the server asks the agent first, the agent is asked, and the request sent again with
    /// what it said.
    async fn ask(&self, mut request: Value) -> Result<Value, ServerError> {
        loop {
            let mut all = self.post(&request).await?;
            let place = all.iter().position(|one| message(one) == Message::Response);
            let Some(answer) = place.map(|place| all.remove(place)) else {
                return Err(ServerError::Status(200));
            };
            for one in all {
                self.say(one);
            }
            let token = answer.pointer("/result/_meta").and_then(|meta| meta.get(ASKS)).cloned();
            let Some(token) = token else { return Ok(answer) };
            let mut responses = Map::new();
            for (name, asks) in answer.pointer("/result/inputRequests").and_then(Value::as_object).into_iter().flatten()
            {
                responses.insert(name.clone(), self.question(&token, name, asks).await?);
            }
            let Some(parameters) = parameters(&mut request) else { return Ok(answer) };
            parameters.insert("inputResponses".to_owned(), Value::Object(responses));
            let meta = parameters.entry("_meta").or_insert_with(|| json!({}));
            meta[ASKS] = token;
        }
    }

    /// What the agent says to a request of the server: `{result}` or `{error}`.
    async fn question(&self, token: &Value, name: &str, asks: &Value) -> Result<Value, ServerError> {
        let id = format!("ragcheck-{token}-{name}");
        let (said, answer) = oneshot::channel();
        lock(&self.asking).insert(id.clone(), said);
        let mut question = asks.clone();
        (question["jsonrpc"], question["id"]) = (json!("2.0"), json!(id));
        self.say(question);
        let mut answer = answer.await.map_err(|_| ServerError::Unanswered)?;
        let kept = ["result", "error"].into_iter().find_map(|key| Some((key, answer.get_mut(key)?.take())));
        kept.map(|(key, value)| json!({ key: value })).ok_or(ServerError::Unanswered)
    }

    /// The messages that the proxy answers with.
    async fn post(&self, body: &Value) -> Result<Vec<Value>, ServerError> {
        let mut call = self.http.post(&self.url).header("content-type", "application/json").body(numbers::write(body));
        for (name, value) in &self.headers {
            if let Ok(value) = reqwest::header::HeaderValue::from_str(value) {
                call = call.header(name, value);
            }
        }
        if let Some(trace) = body.pointer("/params/_meta/traceparent").and_then(Value::as_str) {
            call = call.header("traceparent", trace);
        }
        let lost = |why: reqwest::Error| ServerError::Proxy(why.without_url().to_string());
        let response = call.send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        let body = response.bytes().await.map_err(lost)?;
        let response = HttpResponse { status, headers, body, took: Duration::ZERO, chunks: Vec::new() };
        let all = written_messages(&response);
        if all.is_empty() && !(200..300).contains(&status) {
            return Err(ServerError::Status(status));
        }
        Ok(all)
    }
}

fn parameters(request: &mut Value) -> Option<&mut Map<String, Value>> {
    request.as_object_mut()?.entry("params").or_insert_with(|| json!({})).as_object_mut()
}

pub(in crate::cli) fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
