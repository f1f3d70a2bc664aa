//! The listener: one address, and behind it the transports of the trials that are running.

use super::admission::{Refusal, Refused, TLS_HANDSHAKE, admit, admit_local, is_read, read_body};
use super::desk::{Desk, Requests, Whose};
use super::refusal::{failed, refusal};
use super::relayed::{Answer, LEFT_OUT, begun, relayed, sent};
use super::route::{Mount, Route, client_dialect};
use super::table::Api;
use super::trace_ids::{TRACEPARENT, Traced, take_base_path};
use super::{mcp, telemetry};
use crate::flow::external::TurnSpans;
use crate::platform::clock::{Clock, RealClock};
use crate::platform::lock::lock;
use crate::provider::{ended_by, observed};
use crate::transport::{HttpRequest, HttpResponse, SERVICE_ADDRESS, Service, Transport, TransportError};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Key of an agent that has none: it is not handed on, so that the key of the project file is sent.
pub(crate) const PLACEHOLDER_KEY: &str = "ragcheck-placeholder-key";
/// Request headers that are about the connection to this proxy, or written anew.
const OF_THE_CONNECTION: [&str; 7] =
    ["host", "accept-encoding", "te", "proxy-authorization", "proxy-connection", "expect", TRACEPARENT];
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(200);
/// Why a request without a trace id is refused while trials run side by side.
pub(super) const UNTRACED: &str = "without the `traceparent` of a trial that is running, while trials ran side by side";

pub(super) type Slot = Arc<Mutex<Desk>>;

/// A listening proxy; it stops when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    slot: Slot,
    task: tokio::task::JoinHandle<()>,
}

/// While it lives, requests of one trial go to its transport.
pub(crate) struct Serving {
    slot: Slot,
    number: u64,
}

impl Proxy {
    /// Listens at `address` on the runtime that it is called in.
    #[expect(clippy::disallowed_methods, reason = "a server is a task of its own")]
    pub async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let (address, slot) = (listener.local_addr()?, Slot::default());
        let routes = axum::Router::new().fallback(answer).with_state(Arc::clone(&slot));
        let task = tokio::spawn(accept(listener, routes, Arc::clone(&slot)));
        Ok(Self { address, slot, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that came when no trial ran, each once.
    pub(crate) fn of_nobody(&self) -> Vec<Refused> {
        lock(&self.slot).of_nobody().to_vec()
    }

    /// Hands requests to `transport` until the guard is dropped: all of them, or those with the id of `trace`. `hosts` are
    /// names beside those of this machine by which the agent may ask for this server; `mounts` are services beside the
    /// model and the search service.
    pub(crate) fn serve(
        &self,
        transport: Arc<dyn Transport>,
        hosts: &[String],
        mounts: Vec<Mount>,
        trace: Option<Traced>,
    ) -> Serving {
        let number = lock(&self.slot).serve(transport, hosts.to_vec(), mounts, trace);
        Serving { slot: Arc::clone(&self.slot), number }
    }
}

impl Serving {
    /// Its spans.
    pub(crate) fn reports(&self) -> Reports {
        Reports { slot: Arc::clone(&self.slot), number: self.number }
    }

    /// What was heard so far.
    pub(crate) fn requests(&self) -> Requests {
        lock(&self.slot).requests(self.number)
    }
}

/// The spans of one trial that is served.
pub(crate) struct Reports {
    slot: Slot,
    number: u64,
}

impl Reports {
    /// Number of its spans that were not taken yet, and whether one of them has that parent.
    pub(crate) fn reported(&self, parent: &str) -> (usize, bool) {
        lock(&self.slot).reported(self.number, parent)
    }

    /// Takes its spans, and what is odd about exports.
    pub(crate) fn take_spans(&self) -> TurnSpans {
        lock(&self.slot).take_spans(self.number)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        lock(&self.slot).end(self.number);
    }
}

/// Serves connections, and notes those that carry no HTTP/1 request: their clients get no answer that an agent could
/// tell from a failure of its provider.
#[expect(clippy::disallowed_methods, reason = "a connection is a task of its own")]
async fn accept(listener: tokio::net::TcpListener, routes: axum::Router, slot: Slot) {
    // A client that keeps its connection would otherwise go on asking a proxy that is gone.
    let (_open, closed) = tokio::sync::watch::channel(());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // The process is out of sockets; requests until it has one say so.
            RealClock::start().sleep(PAUSE).await;
            continue;
        };
        // Each part of a streamed answer goes out as it comes: held back until the one before is acknowledged, it would be
        // up to 40 ms late. A socket that cannot be told so serves all the same.
        let _ = stream.set_nodelay(true);
        let (routes, slot, mut closed) = (routes.clone(), Arc::clone(&slot), closed.clone());
        tokio::spawn(async move {
            let mut first = [0; 3];
            let peeked = stream.peek(&mut first).await;
            if peeked.is_ok() && first[0] == TLS_HANDSHAKE {
                return lock(&slot).note_connection(Refused::connection(&first));
            }
            let service = TowerToHyperService::new(routes);
            let mut served = std::pin::pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            let served = tokio::select! {
                served = served.as_mut() => served,
                // Nothing is sent there: it ends with this proxy.
                _ = closed.changed() => {
                    served.as_mut().graceful_shutdown();
                    served.await
                }
            };
            if served.is_err_and(|why| why.is_parse()) {
                lock(&slot).note_connection(Refused::connection(&first));
            }
        });
    }
}

async fn answer(State(slot): State<Slot>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let before = head.uri.path().to_owned();
    take_base_path(&mut head);
    let of_trial = before.strip_suffix(head.uri.path()).unwrap_or_default().to_owned();
    let (whose, (hosts, mounts)) = {
        let mut desk = lock(&slot);
        let whose = desk.whose(&head.headers);
        (whose, desk.served_at(whose))
    };
    if telemetry::is_export(&head) {
        return match admit_local(&head, &hosts) {
            Ok(()) => telemetry::take(&slot, &head, body).await,
            Err(Refusal { status, .. }) => status.into_response(),
        };
    }
    let client = client_dialect(head.uri.path(), &head.headers);
    let read = match admit(&head, &hosts, &mounts) {
        Ok(route) => read_body(body, &route, &head.headers).await.map(|read| (route, read)),
        Err(refused) => Err(refused),
    };
    let (route, (body, bytes)) = match read {
        Ok(read) => read,
        Err(Refusal { status, code, why, broken_off }) => {
            let refused = Refused::new(&head, why);
            let message = refused.to_string();
            if !broken_off {
                lock(&slot).note(whose, refused);
            }
            return refusal(client, status, code, &message);
        }
    };
    if route.api == Api::Mcp {
        let request = HttpRequest { sent: bytes, ..asked(route, body, &head.headers) };
        return mcp::answer(&slot, whose, &head, request).await;
    }
    if whose == Whose::Stray {
        let refused = Refused::new(&head, UNTRACED.to_owned());
        lock(&slot).strays(&refused);
        return refusal(client, StatusCode::BAD_REQUEST, "ragcheck_untraced", &refused.to_string());
    }
    let completion = observed::is_completion(route.api.profile().name);
    let transport = lock(&slot).transport(whose, completion);
    let Some(transport) = transport else {
        lock(&slot).note_of_nobody(Refused::new(&head, "when no trial ran".to_owned()));
        let message = "no trial is running that this request could belong to";
        return refusal(client, StatusCode::BAD_REQUEST, "ragcheck_no_trial", message);
    };
    let here = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let mount = format!("{of_trial}/{}", route.service.as_str());
    let here = here.map(|host| format!("http://{host}{mount}"));
    let request = HttpRequest { sent: bytes, ..asked(route, body, &head.headers) };
    let led = |mut response: HttpResponse| {
        for (name, value) in response.headers.iter_mut().filter(|(_, value)| value.contains(SERVICE_ADDRESS)) {
            // The path of a cookie has no host.
            let here = if name == "set-cookie" { mount.as_str() } else { here.as_deref().unwrap_or_default() };
            *value = value.replace(SERVICE_ADDRESS, here);
        }
        response
    };
    match sent(transport, request).await {
        Answer::Begun(head, body) => begun(&led(head), body),
        Answer::Whole(Ok(response)) => relayed(&led(response), head.method == Method::HEAD),
        Answer::Whole(Err(error)) => {
            note_withheld(&slot, whose, &head, &error);
            failed(client, &error)
        }
    }
}

/// Keeps a request that was not sent because of its key: nobody answered it, so the trial says nothing about the agent.
pub(super) fn note_withheld(slot: &Slot, whose: Whose, head: &Parts, error: &TransportError) {
    if let TransportError::Withheld { message } = error {
        lock(slot).note(whose, Refused::new(head, format!("which was not sent: {message}")));
    }
}

fn asked(route: Route, body: Value, headers: &HeaderMap) -> HttpRequest {
    let stream = match route.api {
        Api::Dialect(dialect) if dialect.asks_for_stream(&route.path, &body) => Some(ended_by(dialect)),
        _ => None,
    };
    // A gateway before a model may want headers that nobody else knows.
    let kept =
        headers.iter().filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    let declared = matches!(route.service, Service::Declared(_));
    let unread = |name: &str, value: &str| declared && name == "content-encoding" && !is_read(value);
    let kept = kept.filter(|(name, value)| {
        (is_handed_on(name, declared) || unread(name, value)) && !value.contains(PLACEHOLDER_KEY)
    });
    let request = HttpRequest::new(route.service, route.api.profile(), route.method, route.path, body);
    HttpRequest { stream, headers: kept.collect(), ..request }
}

/// Whether a request header is for the service. Headers of ours to declared services are those of `mcp-record`.
fn is_handed_on(name: &str, declared: bool) -> bool {
    let own = !declared && (name.starts_with("x-ragcheck-") || name == CONTENT_TYPE.as_str());
    !LEFT_OUT.contains(&name) && !OF_THE_CONNECTION.contains(&name) && !own
}
