//! Sends requests over the network, with reqwest on rustls.

use super::own_headers::{below, with_own_addresses};
use super::record::{BROKEN_HEADER, broke_off};
use super::relay::{LEFT_HEADER, Reader, Relay, is_relayed, was_left};
use super::{HttpRequest, HttpResponse, Service, StreamEnd, Transport, TransportError, links, raw, sse};
use crate::cassette::{Chunk, LONGEST_BODY, Redactor, UnpackError, unpack};
use crate::platform::clock::{BoxFuture, Clock, timeout};
use crate::platform::{loopback, numbers};
use crate::settings::Auth;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Header in which a redirecting response names the target host. It replaces the whole address, which may hold a key
/// and which no client may follow.
pub(crate) const REDIRECT_HEADER: &str = "x-ragcheck-redirect";
/// Header of a request to a declared service that names its address: `ragcheck mcp-record` serves there.
pub(crate) const TARGET_HEADER: &str = "x-ragcheck-target";
/// Characters of a host's name that are shown.
const LONGEST_HOST: usize = 255;

/// Address of a service, and how to send requests to it.
#[derive(Clone)]
pub struct Target {
    /// Base URL, with or without a trailing slash; a request's path is appended to it.
    pub base_url: String,
    /// The key, sent as `auth` says.
    pub key: Option<String>,
    /// How the key is sent.
    pub auth: Auth,
    /// Headers sent with every request, with or without a key.
    pub headers: &'static [(&'static str, &'static str)],
    /// Time for one request, from sending to the end of the body.
    pub timeout: Duration,
    /// Whether the trial's seed and fault are sent, see [`LiveTransport::with_trial`]: for simulators only.
    pub trial_header: bool,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.as_ref().map(|_| "(hidden)");
        formatter
            .debug_struct("Target")
            .field("base_url", &self.base_url)
            .field("key", &key)
            .field("auth", &self.auth)
            .field("headers", &self.headers)
            .field("timeout", &self.timeout)
            .field("trial_header", &self.trial_header)
            .finish()
    }
}

/// Reason why a live transport cannot be created.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LiveError {
    /// A base URL is invalid. `url`: the given URL, redacted.
    #[error("the base URL of the {service} service is not a URL: {url}: {reason}")]
    BaseUrl { service: &'static str, url: String, reason: String },
    /// A key contains characters that are not allowed in a header.
    #[error("the key of the {service} service holds characters that cannot be sent in a header")]
    Key { service: &'static str },
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// Sends requests to the services. Clones share one connection pool.
#[derive(Clone)]
pub struct LiveTransport {
    client: reqwest::Client,
    /// Client that ignores the proxies of the environment, for addresses on this machine: a proxy cannot reach them,
    /// and would see the conversation and a key in plain text.
    direct: reqwest::Client,
    targets: Arc<BTreeMap<Service, Target>>,
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Has the client trust Mozilla's root certificates where the system has none, as in an image with nothing but the binary.
#[cfg(all(unix, not(target_vendor = "apple")))]
fn with_roots(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    static BUNDLED: std::sync::LazyLock<Option<Vec<reqwest::Certificate>>> = std::sync::LazyLock::new(|| {
        // Whoever names certificates wants those and no others.
        let is_named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|name| std::env::var_os(name).is_some());
        if is_named || !rustls_native_certs::load_native_certs().certs.is_empty() {
            return None;
        }
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        Some(roots.filter_map(|root| reqwest::Certificate::from_der(root).ok()).collect())
    });
    match &*BUNDLED {
        Some(roots) => builder.tls_certs_only(roots.iter().cloned()),
        None => builder,
    }
}

/// The system verifies certificates.
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
fn with_roots(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    builder
}

/// A client of services: `direct` ignores the proxies of the environment, `plain` speaks no TLS.
pub(crate) fn client_builder(direct: bool, plain: bool) -> reqwest::ClientBuilder {
    // Another part of the process may have installed the provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A redirecting API is misconfigured; a redirect is never followed with a key.
    let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let builder = if direct { builder.no_proxy() } else { builder };
    // Reading the certificates of the machine takes longer than a replayed turn.
    if plain { builder.tls_certs_only([]) } else { with_roots(builder) }
}

impl LiveTransport {
    /// Creates a transport to these services; the keys are redacted from error messages.
    ///
    /// # Errors
    /// `LiveError` if a base URL or key is unusable.
    pub fn new(targets: BTreeMap<Service, Target>, clock: Arc<dyn Clock>) -> Result<Self, LiveError> {
        let build = |direct: bool| {
            let plain = targets
                .iter()
                .filter(|(service, target)| is_direct(**service, target) == direct)
                .all(|(_, target)| target.base_url.starts_with("http://"));
            client_builder(direct, plain).build().map_err(|why| LiveError::Client(chain(&why)))
        };
        let (client, direct) = (build(false)?, build(true)?);
        let secrets = targets
            .iter()
            .filter_map(|(service, target)| Some((format!("{} key", service.as_str()), target.key.clone()?)));
        let redactor = Arc::new(Redactor::new(secrets));
        for (service, target) in &targets {
            let service = service.as_str();
            reqwest::Url::parse(&target.base_url).map_err(|error| LiveError::BaseUrl {
                service,
                url: redactor.redact(&target.base_url).into_owned(),
                reason: error.to_string(),
            })?;
            if target.key.as_ref().is_some_and(|key| HeaderValue::from_str(key).is_err()) {
                return Err(LiveError::Key { service });
            }
        }
        Ok(Self { client, direct, targets: Arc::new(targets), clock, redactor, headers: Vec::new() })
    }

    /// Sends a simulator what the prompts of the variant ask for, as the variant declares it, in `x-ragcheck-asks-for`;
    /// nothing where it declares nothing.
    #[must_use]
    pub fn asking_for(&self, rules: Option<&[String]>) -> Self {
        let name = HeaderName::from_static("x-ragcheck-asks-for");
        let value = rules.and_then(|rules| HeaderValue::from_str(&rules.join(",")).ok());
        let mut transport = self.clone();
        transport.headers.extend(value.map(|value| (name, value)));
        transport
    }

    /// Sends the trial's data for a simulator: a seed in the header `x-ragcheck-seed`, and the fault that the case
    /// declares in `x-ragcheck-fault`. The trial's name is not sent.
    #[must_use]
    pub fn with_trial(&self, seed: u64, fault: Option<&str>) -> Self {
        let number = HeaderValue::from_str(&format!("{seed:016x}")).ok();
        let told = [
            (HeaderName::from_static("x-ragcheck-seed"), number),
            (HeaderName::from_static("x-ragcheck-fault"), fault.and_then(|name| HeaderValue::from_str(name).ok())),
        ];
        let mut transport = self.clone();
        for (name, value) in told {
            transport.headers.retain(|(present, _)| *present != name);
            transport.headers.extend(value.map(|value| (name, value)));
        }
        transport
    }

    /// Uses the clock of the trial.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self.clone() }
    }

    /// The address that a request to a declared service names itself, see [`TARGET_HEADER`]: on this machine alone.
    fn named_target(&self, request: &HttpRequest) -> Option<Target> {
        let (_, url) = request.headers.iter().find(|(name, _)| name == TARGET_HEADER)?;
        let sound = matches!(request.service, Service::Declared(_)) && loopback::is_loopback_url(url);
        let timeout = self.targets.values().map(|target| target.timeout).max().unwrap_or(Duration::from_mins(1));
        let (base_url, auth) = (url.clone(), Auth::Bearer);
        sound.then_some(Target { base_url, key: None, auth, headers: &[], timeout, trial_header: false })
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        if let Some(message) = links::broken_in(&request) {
            return Err(TransportError::Invalid { message });
        }
        let named = self.named_target(&request);
        let Some(target) = named.as_ref().or_else(|| self.targets.get(&request.service)) else {
            let message = format!("no address is configured for the {} service", request.service.as_str());
            return Err(TransportError::Invalid { message });
        };
        let start = self.clock.now();
        let url = address(request.service, &target.base_url, &request.path);
        let method = reqwest::Method::from_bytes(request.method.as_bytes()).unwrap_or(reqwest::Method::POST);
        let client = if is_direct(request.service, target) { &self.direct } else { &self.client };
        let mut call = client.request(method, url).header(ACCEPT_ENCODING, "identity");
        // An agent's own service gets what the agent sent: some refuse an empty body of a type, or take forms alone.
        let declared = matches!(request.service, Service::Declared(_));
        if !declared && !request.headers.iter().any(|(name, _)| name == CONTENT_TYPE.as_str()) {
            call = call.header(CONTENT_TYPE, "application/json");
        }
        if !request.body.is_null() {
            call = call.body(match &request.sent {
                Some(bytes) => bytes.to_vec(),
                None if declared => raw::unpacked(&request.body, raw::content_type(&request.headers)),
                None if request.service == Service::Agent && raw::is_form(&request.headers) => raw::form(&request.body),
                None => numbers::write(&request.body).into_bytes(),
            });
        }
        // An agent's own key is not replaced.
        let own = request.headers.iter().any(|(name, _)| Auth::ALL.iter().any(|auth| auth.header() == name));
        if let Some(key) = target.key.as_ref().filter(|_| !own) {
            let secret = HeaderValue::from_str(&format!("{}{key}", target.auth.prefix()));
            let Ok(mut secret) = secret else {
                let message = "the key holds characters that no header can carry".to_owned();
                return Err(TransportError::Invalid { message });
            };
            secret.set_sensitive(true);
            call = call.header(target.auth.header(), secret);
        }
        let sent = |name: &str| request.headers.iter().any(|(own, _)| own == name);
        for (name, value) in target.headers.iter().filter(|(name, _)| !sent(name)) {
            call = call.header(*name, *value);
        }
        for (name, value) in self.headers.iter().filter(|_| target.trial_header) {
            call = call.header(name, value);
        }
        for (name, value) in &request.headers {
            let Ok(mut value) = HeaderValue::from_str(value) else { continue };
            value.set_sensitive(true);
            call = call.header(name, value);
        }
        let arrivals = request.stream.as_ref().map(|_| (self.clock.as_ref(), start));
        let own = reqwest::Url::parse(&target.base_url).ok().filter(|_| declared);
        let relay = request.relay.as_ref();
        let sets_cookies = request.service == Service::Agent;
        let read = read(call, arrivals, (request.stream.as_ref(), relay), (own.as_ref(), sets_cookies));
        match timeout(self.clock.as_ref(), target.timeout, read).await {
            Err(_) => Err(TransportError::Timeout { after: target.timeout }),
            Ok(Err(error)) => Err(TransportError::Connection {
                message: self.redactor.knowing(request.secrets()).redact(&error.to_string()).into_owned(),
                took: self.clock.now().saturating_sub(start),
            }),
            Ok(Ok(mut response)) => {
                let took = self.clock.now().saturating_sub(start);
                if request.stream.as_ref().is_some_and(|end| is_cut(&response, end)) {
                    if relay.is_some_and(Relay::has_begun) {
                        // The agent has what came of it.
                        response.headers.push(mark(BROKEN_HEADER));
                        return Ok(HttpResponse { took, ..response });
                    }
                    let message = "the stream ended before its last event".to_owned();
                    return Err(TransportError::Connection { message, took });
                }
                Ok(HttpResponse { took, ..response })
            }
        }
    }
}

/// Whether requests to a service ignore the proxies of the environment.
fn is_direct(service: Service, target: &Target) -> bool {
    service == Service::Agent || loopback::is_loopback_url(&target.base_url)
}

/// The address of a path below a base URL; where both have the version, it stands there once. Clients of Anthropic write
/// it in the path, and an endpoint that speaks OpenAI's dialects as well has it in its base URL. Such an endpoint has
/// the APIs of Ollama and of Cohere beside `/v1`.
pub(super) fn address(service: Service, base_url: &str, path: &str) -> String {
    let base = base_url.trim_end_matches('/');
    let of_model = matches!(service, Service::Model | Service::Embeddings | Service::Provider(_));
    let beside = of_model && ["/api/", "/v2/"].iter().any(|root| path.starts_with(root));
    let base = if beside || path.starts_with("/v1/") { base.strip_suffix("/v1").unwrap_or(base) } else { base };
    format!("{base}{path}")
}

/// Whether a response is a stream that lacks its end: it must be neither believed nor recorded.
fn is_cut(response: &HttpResponse, end: &StreamEnd) -> bool {
    let others = ["application/x-ndjson", "application/vnd.amazon.eventstream"];
    let typed = response.header("content-type").map(|kind| kind.trim_start().to_ascii_lowercase());
    let typed = typed.is_some_and(|kind| others.iter().any(|other| kind.starts_with(other)));
    let stream = typed || sse::is_stream(&response.headers, &response.body);
    let known = was_left(response) || broke_off(response);
    (200..300).contains(&response.status) && stream && !known && !end.is_whole(&response.body)
}

/// A header by which we mark a response.
fn mark(name: &str) -> (String, String) {
    (name.to_owned(), "1".to_owned())
}

/// Reason why no response was read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    /// The connection failed or broke; with all causes on one line.
    #[error("{0}")]
    Broken(String),
    /// The response exceeds the size limit.
    #[error("the response {}", UnpackError::TooLong)]
    TooLong,
    /// The body is compressed and cannot be decompressed.
    #[error("the body of the response {0}")]
    Packed(UnpackError),
}

/// Sends a request and reads the response to its end; `arrivals` is the clock and start time for the arrival of chunks,
/// `end` the end of a stream, `relay` takes it as it comes, `own` is the base URL of a declared service; cookies of others are
/// left out unless it `sets_cookies`.
async fn read(
    call: reqwest::RequestBuilder,
    arrivals: Option<(&dyn Clock, Duration)>,
    (end, relay): (Option<&StreamEnd>, Option<&Relay>),
    (own, sets_cookies): (Option<&reqwest::Url>, bool),
) -> Result<HttpResponse, ReadError> {
    let mut response = call.send().await.map_err(|error| ReadError::Broken(chain(&error.without_url())))?;
    let status = response.status().as_u16();
    let mut headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .filter(|(name, _)| name != LEFT_HEADER && name != BROKEN_HEADER)
        .collect();
    let redirects = response.status().is_redirection();
    let to = headers.iter().find(|(name, _)| name == "location").and_then(|(_, to)| response.url().join(to).ok());
    if redirects {
        headers.retain(|(name, _)| name != "location" && name != REDIRECT_HEADER);
        match own.zip(to.as_ref()).and_then(|(own, to)| below(to, own)) {
            Some(here) => headers.push(("location".to_owned(), here)),
            None => headers.extend(to.as_ref().and_then(host).map(|host| (REDIRECT_HEADER.to_owned(), host))),
        }
    }
    let kept = |(name, value): (String, String)| {
        if sets_cookies && name == "set-cookie" { Some((name, value)) } else { with_own_addresses(name, value, own) }
    };
    headers = headers.into_iter().filter_map(kept).collect();
    if response.content_length().is_some_and(|length| length > LONGEST_BODY as u64) {
        return Err(ReadError::TooLong);
    }
    let relay = relay.filter(|_| is_relayed(status, &headers, end));
    if let Some(relay) = relay {
        relay.begin(status, &headers);
    }
    let mut body = Vec::new();
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut reader = Reader::new(relay, end, arrivals.map(|(clock, _)| clock));
    loop {
        let next = reader.next(response.chunk()).await;
        let Some(next) = next else {
            if reader.goes_on(&body) {
                continue;
            }
            if let Some(got) = reader.left_at(&body) {
                headers.push(mark(LEFT_HEADER));
                body.truncate(got);
                chunks.retain(|chunk| chunk.end <= got);
            }
            break;
        };
        let chunk = match next {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(_) if relay.is_some() => {
                headers.push(mark(BROKEN_HEADER));
                break;
            }
            Err(error) => return Err(ReadError::Broken(chain(&error.without_url()))),
        };
        if body.len() + chunk.len() > LONGEST_BODY {
            return Err(ReadError::TooLong);
        }
        body.extend_from_slice(&chunk);
        if let Some(relay) = relay {
            relay.push(chunk);
        }
        if let Some((clock, start)) = arrivals {
            chunks.push(Chunk { at: clock.now().saturating_sub(start), end: body.len() });
        }
        if end.is_some_and(|end| end.leaves && sse::is_stream(&headers, &body) && end.is_whole(&body)) {
            break;
        }
    }
    // No compression was requested, but some servers compress all the same.
    if headers.iter().any(|(name, _)| name == "content-encoding") {
        body = unpack(body, &headers).map_err(ReadError::Packed)?;
        headers.retain(|(name, _)| name != "content-encoding");
        // Chunk ends are known only for the compressed bytes.
        chunks = chunks.last().map(|last| Chunk { at: last.at, end: body.len() }).into_iter().collect();
    }
    Ok(HttpResponse { status, headers, body: body.into(), took: Duration::ZERO, chunks })
}

/// Host and port of an address.
fn host(to: &reqwest::Url) -> Option<String> {
    let port = to.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}{port}", to.host_str()?).chars().take(LONGEST_HOST).collect())
}

/// An error with its causes on one line: reqwest's own message says little more than that sending failed.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

impl Transport for LiveTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.exchange(request))
    }
}
