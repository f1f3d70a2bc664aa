//! The listener: one address, and behind it the transport of the trial that is running.

use super::refusal::{failed, refusal};
use super::route::{Route, SERVED, route};
use crate::platform::loopback;
use crate::provider::ended_by;
use crate::transport::{HttpRequest, HttpResponse, Transport};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest request that is read, in bytes.
const LONGEST_BODY: usize = 16 << 20;
/// Request headers that go on to a live service: keys, and what says whose they are.
const PASSED_ON: [&str; 7] =
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "openai-organization", "openai-project", "openai-beta"];
/// Response headers that are about the connection to the service, or about a body that is not passed on as it came.
const LEFT_OUT: [&str; 8] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "trailer",
    "upgrade",
    "set-cookie",
];

/// Hosts that are remembered of those that an agent asked for and was refused.
const MOST_HOSTS: usize = 20;

/// What comes, and whom it is for.
#[derive(Default)]
struct Desk {
    served: Option<Served>,
    /// Requests since the last trial that no trial was there for.
    unserved: u32,
}

/// One trial that is served.
struct Served {
    transport: Arc<dyn Transport>,
    /// Requests that came before it, when no trial was there.
    before: u32,
    /// Hosts that were asked for and refused.
    elsewhere: Vec<String>,
}

type Slot = Arc<Mutex<Desk>>;

/// A listening proxy; it stops when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    slot: Slot,
    task: tokio::task::JoinHandle<()>,
}

/// While it lives, requests go to one trial's transport.
pub struct Serving {
    slot: Slot,
}

impl Proxy {
    /// Listens at `address` on the runtime that it is called in.
    ///
    /// # Errors
    /// When the address cannot be bound.
    #[expect(clippy::disallowed_methods, reason = "a server is a task of its own")]
    pub async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let (address, slot) = (listener.local_addr()?, Slot::default());
        let routes = axum::Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .with_state(Arc::clone(&slot));
        let task = tokio::spawn(async move {
            // It ends with the listener, which fails only when the process is out of sockets; requests then say so.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, slot, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Hands requests to `transport` until the guard is dropped.
    pub fn serve(&self, transport: Arc<dyn Transport>) -> Serving {
        let mut desk = lock(&self.slot);
        let before = std::mem::take(&mut desk.unserved);
        desk.served = Some(Served { transport, before, elsewhere: Vec::new() });
        drop(desk);
        Serving { slot: Arc::clone(&self.slot) }
    }
}

impl Desk {
    /// The way of the trial that is running; `None` counts a request that there is none for.
    fn transport(&mut self) -> Option<Arc<dyn Transport>> {
        let transport = self.served.as_ref().map(|served| Arc::clone(&served.transport));
        self.unserved += u32::from(transport.is_none());
        transport
    }
}

impl Serving {
    /// Hosts beside the model's and the search service's that the agent has asked for, and was refused, in order.
    pub fn elsewhere(&self) -> Vec<String> {
        lock(&self.slot).served.as_ref().map(|served| served.elsewhere.clone()).unwrap_or_default()
    }

    /// How many requests came between the trial before and this one, and were refused.
    pub fn before(&self) -> u32 {
        lock(&self.slot).served.as_ref().map_or(0, |served| served.before)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        lock(&self.slot).served = None;
    }
}

fn lock(slot: &Slot) -> MutexGuard<'_, Desk> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(slot): State<Slot>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(host) = third_host(&method, &uri, &headers) {
        if let Some(served) = lock(&slot).served.as_mut()
            && served.elsewhere.len() < MOST_HOSTS
            && !served.elsewhere.contains(&host)
        {
            served.elsewhere.push(host.clone());
        }
        let message =
            format!("requests to {host} are not passed on: this proxy leads to the model and the search service alone");
        return refusal(StatusCode::FORBIDDEN, "ragcheck_other_host", &message);
    }
    let header = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    if let Err(stranger) = loopback::admit(header(HOST), header(ORIGIN)) {
        return refusal(StatusCode::FORBIDDEN, "ragcheck_forbidden", &stranger.to_string());
    }
    let Some(route) = route(uri.path(), uri.query()).filter(|_| method == Method::POST) else {
        let message = format!("nothing is served at {method} {}; known: {SERVED}", uri.path());
        return refusal(StatusCode::NOT_FOUND, "ragcheck_unknown_path", &message);
    };
    let body: Value = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(why) => {
            let message = format!("the body is not JSON: {why}");
            return refusal(StatusCode::BAD_REQUEST, "ragcheck_invalid_request", &message);
        }
    };
    let Some(transport) = lock(&slot).transport() else {
        let message = "no trial is running that this request could belong to";
        return refusal(StatusCode::BAD_REQUEST, "ragcheck_no_trial", message);
    };
    match transport.send(request(route, body, &headers)).await {
        Ok(response) => relayed(response),
        Err(error) => failed(&error),
    }
}

/// The host that a request is for when it is not this server: whoever is told that this is a proxy for HTTP asks for any.
/// What a page in a browser sends is refused as such and is no word of the agent's.
fn third_host(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let asked = uri.authority().map(|authority| authority.as_str().to_owned());
    let named = || headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let host = asked.or_else(named).filter(|_| !headers.contains_key(ORIGIN))?;
    let shown = host.rsplit('@').next().unwrap_or_default();
    let elsewhere = *method == Method::CONNECT || loopback::admit(Some(shown), None).is_err();
    elsewhere.then(|| shown.chars().filter(|letter| !letter.is_control()).take(100).collect())
}

fn request(route: Route, body: Value, headers: &HeaderMap) -> HttpRequest {
    let streamed = body.get("stream").and_then(Value::as_bool) == Some(true);
    let kept =
        PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.to_owned())));
    HttpRequest {
        service: route.service,
        profile: route.dialect.profile(),
        method: "POST",
        stream: streamed.then(|| ended_by(route.dialect)),
        path: route.path,
        body: body.into(),
        headers: kept.collect(),
    }
}

fn relayed(response: HttpResponse) -> Response {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut relayed = (status, response.body).into_response();
    let headers = relayed.headers_mut();
    headers.clear();
    for (name, value) in &response.headers {
        let pair = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        if let Some((name, value)) = pair.filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())) {
            headers.append(name, value);
        }
    }
    relayed
}
