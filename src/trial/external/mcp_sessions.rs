//! Sessions with MCP servers over HTTP, for versions before 2026-07-28.
//!
//! The handshake of an agent may be answered from a recording (the lane `start`), and then its server knows no session.
//! So each trial has a session of its own: that of the agent's handshake if the server answered it, else one that is
//! opened here before the first request. Session ids are not recorded, and replays have none.

use crate::platform::clock::BoxFuture;
use crate::provider::mcp;
use crate::transport::{HttpRequest, HttpResponse, Profile, Service, Transport, TransportError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// The version of a client that says none: headers say it since 2025-06-18.
const OLDEST: &str = "2025-03-26";
static NOTICE: Profile = Profile::NOTICE;

/// A session with one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Session {
    /// The server was not asked yet.
    #[default]
    New,
    /// It was; with the id that the server gave, if it gave one.
    Open(Option<String>),
}

/// Sends requests to MCP servers within their sessions, and all other requests as they are.
pub(super) struct McpSessions {
    inner: Arc<dyn Transport>,
    servers: BTreeMap<Service, Mutex<Session>>,
}

impl McpSessions {
    /// A transport over `inner`; without servers, that is `inner`.
    pub(super) fn over(inner: Arc<dyn Transport>, servers: impl Iterator<Item = Service>) -> Arc<dyn Transport> {
        let servers: BTreeMap<Service, Mutex<Session>> = servers.map(|one| (one, Mutex::default())).collect();
        if servers.is_empty() { inner } else { Arc::new(Self { inner, servers }) }
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let Some(session) = self.servers.get(&request.service) else { return self.inner.send(request).await };
        // The path is for recordings and messages: a server has one address.
        let mut request = HttpRequest { path: String::new(), ..request };
        let method = mcp::method(&request.body);
        if mcp::is_stateless(&request.body) {
            return self.inner.send(request).await;
        }
        if method == Some("initialize") {
            let response = self.inner.send(request).await?;
            *session.lock().await = Session::Open(response.header(SESSION).map(str::to_owned));
            return Ok(response);
        }
        let mut held = session.lock().await;
        if *held == Session::New {
            if request.profile.is_notice() {
                return Ok(HttpResponse::accepted());
            }
            *held = self.open(&request).await;
        }
        request.headers.retain(|(name, _)| name != SESSION);
        if let Session::Open(Some(id)) = &*held {
            request.headers.push((SESSION.to_owned(), id.clone()));
        }
        if request.method == "DELETE" {
            *held = Session::New;
        }
        drop(held);
        self.inner.send(request).await
    }

    /// Opens a session on behalf of the client that sends `request`. A server that refuses it answers the request itself.
    async fn open(&self, request: &HttpRequest) -> Session {
        let version = request.headers.iter().find(|(name, _)| name == VERSION).map_or(OLDEST, |(_, value)| value);
        let hello = json!({"jsonrpc": "2.0", "id": "ragcheck", "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "ragcheck", "version": env!("CARGO_PKG_VERSION")}}});
        let say = |body: Value, id: Option<&str>| {
            let mut headers = request.headers.clone();
            headers.retain(|(name, _)| name != SESSION && !name.starts_with("mcp-name"));
            headers.extend(id.map(|id| (SESSION.to_owned(), id.to_owned())));
            HttpRequest { profile: &NOTICE, body: body.into(), sent: None, headers, ..request.clone() }
        };
        let Ok(response) = self.inner.send(say(hello, None)).await else { return Session::New };
        if !(200..300).contains(&response.status) {
            return Session::Open(None);
        }
        let id = response.header(SESSION).map(str::to_owned);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let _ = self.inner.send(say(ready, id.as_deref())).await;
        Session::Open(id)
    }
}

impl Transport for McpSessions {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.exchange(request))
    }
}
