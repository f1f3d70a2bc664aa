//! Which requests are handed on, and what is said of one that is refused here: the provider never saw it, so that what
//! the agent makes of the refusal says nothing about the agent.

use super::route::{self, Mount, Route, fits};
use crate::cassette::{LONGEST_BODY, unpack};
use crate::platform::loopback::{self, SITE};
use crate::platform::numbers;
use crate::transport::{self, Service, raw};
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, ORIGIN, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;
use std::fmt;

/// Why a signed request is refused.
const SIGNED: &str = "which is signed by AWS (SigV4): the signature covers the host, so the request cannot be handed on. \
    Use a Bedrock API key: write `key: AWS_BEARER_TOKEN_BEDROCK` for the provider in the project file, and let the client send no \
    signature (boto3: `Config(signature_version=botocore.UNSIGNED)`), or set AWS_BEARER_TOKEN_BEDROCK for an agent whose client \
    sends it without encryption too (boto3's does not)";
/// What a client of AWS says that has a key of Bedrock, perhaps a placeholder of ours, and a base URL without encryption.
const KEY_TO_HTTPS_ALONE: &str = "Bearer authorization requires an HTTPS endpoint";
/// Why a websocket is refused; a client that offers another upgrade goes on without it.
const WEBSOCKET: &str = "to open a websocket, which cannot be recorded: let the agent ask this service by HTTP requests, or go \
    to it directly, without its base URL here; it then runs for real in replays too";
/// Why a path with dots is refused: our client would send the path that it leads to.
const DOTS: &str = "whose path has `.` or `..` between slashes and cannot be handed on as it is: ask for the path that it leads to, \
    below the base URL";
/// Characters of a path or host that are shown.
const SHOWN: usize = 200;

/// Why an agent with these last words asked nothing, and what to set instead, if its client sends keys to HTTPS alone.
pub(crate) fn unsent_key(words: &str) -> Option<&'static str> {
    words.contains(KEY_TO_HTTPS_ALONE).then_some(
        "boto3 sends the key in AWS_BEARER_TOKEN_BEDROCK (a placeholder, where it is not set) to HTTPS addresses alone: let its \
         client send none, with `Config(signature_version=botocore.UNSIGNED)`, and declare the key for the provider in the project \
         file (`key: AWS_BEARER_TOKEN_BEDROCK`); requests that are signed by AWS keys (SigV4) cannot be handed on",
    )
}

/// A request that was refused here: as the agent asked, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    method: String,
    /// The path without its query; with the host before it where another host was asked for.
    target: String,
    why: String,
}

impl Refused {
    pub(super) fn new(head: &Parts, why: String) -> Self {
        let path = head.uri.path();
        let target = match (head.uri.scheme_str(), head.uri.authority()) {
            (_, None) => path.to_owned(),
            (None, Some(authority)) => host_of(authority.as_str()).to_owned(),
            (Some(scheme), Some(authority)) => format!("{scheme}://{}{path}", host_of(authority.as_str())),
        };
        Self { method: head.method.to_string(), target: shown(&target), why }
    }

    /// A connection that carries no HTTP/1 request and begins with `first`: TLS, HTTP/2, or anything else.
    pub(super) fn connection(first: &[u8]) -> Self {
        let why = match first {
            [TLS_HANDSHAKE, ..] => {
                "opened a TLS connection to the proxy, which speaks plain HTTP: its base URL must begin with `http://`"
            }
            [b'P', b'R', b'I', ..] => {
                "spoke HTTP/2 without TLS to the proxy, as gRPC clients do, which cannot be recorded: give that client the \
                 address of its server, and declare no service for it; the server must then run in replays too"
            }
            _ => "sent the proxy something that is no HTTP/1.1 request",
        };
        Self { method: String::new(), target: String::new(), why: why.to_owned() }
    }

    /// What lets a trial go on all the same; empty if nothing does.
    pub(crate) fn remedy(&self) -> &'static str {
        if self.target.is_empty() {
            return "";
        }
        "; where a refusal does not matter, name the path in `target.may_refuse`"
    }

    /// Whether one of these patterns names it: a path in which `*` stands for any text of a segment.
    pub(crate) fn is_among(&self, patterns: &[String]) -> bool {
        patterns.iter().any(|pattern| fits(pattern, &self.target))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.method.is_empty() {
            return write!(formatter, "your agent {}", self.why);
        }
        write!(formatter, "your agent asked {} {}, {}", self.method, self.target, self.why)
    }
}

/// Why a request for a ranking is refused: no provider of a model serves it.
const RERANKS: &str = "which is no request to a model: declare the reranker, `services: {rerank: {http: https://api.cohere.com, env: \
                       CO_API_URL}}`; for `init`, start the agent with its address, --agent 'env CO_API_URL=https://api.cohere.com COMMAND'";
/// First byte of a TLS connection.
pub(super) const TLS_HANDSHAKE: u8 = 0x16;

/// Why a request is not handed on.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) why: String,
    /// Whether the client left before its request was complete: then nobody was refused anything.
    pub(super) broken_off: bool,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, why: String) -> Self {
        Self { status, code, why, broken_off: false }
    }

    fn forbidden(code: &'static str, why: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, why)
    }

    fn invalid(status: StatusCode, why: String) -> Self {
        Self::new(status, "ragcheck_invalid_request", why)
    }
}

/// Where a request leads, by its head alone. `hosts` are names beside those of this machine that are this server.
/// `mounts` are services beside the model and the search service.
pub(super) fn admit(head: &Parts, hosts: &[String], mounts: &[Mount]) -> Result<Route, Refusal> {
    let header = |name| head.headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let asked = head.uri.authority().map(|authority| host_of(authority.as_str()));
    let is_this = |host: &str| is_named(host, hosts) || loopback::admit(Some(host), None, None).is_ok();
    let origin = header(ORIGIN);
    if origin.is_none()
        && let Some(host) = asked.filter(|host| head.method == Method::CONNECT || !is_this(host))
    {
        let host = shown(host);
        let why = format!("which is for {host}: this proxy leads to the model and the search service alone");
        return Err(Refusal::forbidden("ragcheck_other_host", why));
    }
    admit_local(head, hosts)?;
    let to_websocket = |to: &str| to.split(',').any(|one| one.trim().eq_ignore_ascii_case("websocket"));
    if header(UPGRADE).is_some_and(to_websocket) {
        return Err(Refusal::invalid(StatusCode::BAD_REQUEST, WEBSOCKET.to_owned()));
    }
    let (method, path, query) = (head.method.as_str(), head.uri.path(), head.uri.query());
    let found = route::route(mounts, (method, path), query, &head.headers);
    let found = found.ok_or_else(|| {
        let others = route::methods(mounts, path, &head.headers);
        if others.is_empty() && path.ends_with("/rerank") {
            return Refusal::new(StatusCode::NOT_FOUND, "ragcheck_unknown_path", RERANKS.to_owned());
        }
        if others.is_empty() {
            let why = match route::lost_mount(mounts, path) {
                Some(known) => format!(
                    "which is below none of the base URLs here ({known}): a client that takes a host and a port leaves out the path \
                     of its base URL"
                ),
                None => format!("which is not served; served: {}", route::served(mounts)),
            };
            return Refusal::new(StatusCode::NOT_FOUND, "ragcheck_unknown_path", why);
        }
        let why = format!("which is not served by this method; served there: {}", others.join(", "));
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "ragcheck_unknown_method", why)
    })?;
    if path.split(['/', '\\']).any(is_dots) {
        return Err(Refusal::invalid(StatusCode::BAD_REQUEST, DOTS.to_owned()));
    }
    let signed = header(AUTHORIZATION).is_some_and(|value| value.starts_with("AWS4-"));
    if signed && !matches!(found.service, Service::Declared(_)) {
        return Err(Refusal::forbidden("ragcheck_signed_request", SIGNED.to_owned()));
    }
    Ok(found)
}

/// Whether a part of a path is `.` or `..`, which leads elsewhere.
fn is_dots(part: &str) -> bool {
    matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

/// Whether a request comes from this machine, and not from a page in a browser.
pub(super) fn admit_local(head: &Parts, hosts: &[String]) -> Result<(), Refusal> {
    let header = |name: &str| head.headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let origin = header(ORIGIN.as_str());
    let host = header(HOST.as_str()).filter(|host| !is_named(host, hosts));
    loopback::admit(host, origin, header(SITE)).map_err(|stranger| {
        let why = match &stranger {
            loopback::Stranger::Page(_) => format!("with an `Origin` header, and {stranger}"),
            loopback::Stranger::OtherSite(_) => format!("from a web page, and {stranger}"),
            loopback::Stranger::Name(_) => {
                format!("and {stranger}, or allow a container's name by `proxy_hosts: [NAME]`")
            }
        };
        Refusal::forbidden("ragcheck_forbidden", why)
    })
}

/// The JSON body of a request, decompressed where `headers` name a compression, and its bytes: a service gets its numbers as
/// the agent wrote them. Null where it has none. That of a declared service may be anything.
pub(super) async fn read_body(
    body: Body,
    route: &Route,
    headers: &HeaderMap,
) -> Result<(Value, Option<Bytes>), Refusal> {
    let (mut bytes, mut pieces) = (Vec::new(), body.into_data_stream());
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else {
            let refusal = Refusal::invalid(StatusCode::BAD_REQUEST, "whose body broke off".to_owned());
            return Err(Refusal { broken_off: true, ..refusal });
        };
        bytes.extend_from_slice(&piece);
        if bytes.len() > LONGEST_BODY {
            let why = format!("whose body is longer than {} MiB", LONGEST_BODY >> 20);
            return Err(Refusal::invalid(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
    }
    let invalid = |why| Refusal::invalid(StatusCode::BAD_REQUEST, why);
    // Without the header, a compressed body is a file, and stays as it is.
    if let Some(packing) = headers.get(CONTENT_ENCODING) {
        let packing = String::from_utf8_lossy(packing.as_bytes()).into_owned();
        if is_read(&packing) || !matches!(route.service, Service::Declared(_)) {
            let named = packing.trim().to_ascii_lowercase();
            let plain = unpack(bytes.clone(), &[("content-encoding".to_owned(), packing)]);
            let plain = plain.map_err(|why| invalid(format!("whose body {why}")))?;
            if is_packed(&named) && plain == bytes && !bytes.is_empty() {
                return Err(invalid(format!("whose body is not {named}, which its `Content-Encoding` names")));
            }
            bytes = plain;
        }
    }
    if matches!(route.service, Service::Declared(_)) {
        let document = raw::packed(&bytes, headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()));
        let sent = (!document.is_null()).then(|| bytes.into());
        return Ok((document, sent));
    }
    if bytes.is_empty() {
        return Ok((Value::Null, None));
    }
    let body: Value = numbers::read(&bytes).map_err(|why| invalid(format!("whose body is not JSON: {why}")))?;
    match transport::broken_conversation(route.api.profile().layout, &body) {
        Some(why) => Err(invalid(format!("whose conversation cannot be sent: {why}"))),
        None => Ok((body, Some(bytes.into()))),
    }
}

/// Whether a body with this `Content-Encoding` is decompressed here. Others, such as `aws-chunked`, are of the service.
pub(super) fn is_read(encoding: &str) -> bool {
    let named = encoding.trim().to_ascii_lowercase();
    is_packed(&named) || ["", "identity"].contains(&named.as_str())
}

/// Whether a `Content-Encoding` in lower case names a compression that is undone here.
fn is_packed(encoding: &str) -> bool {
    ["gzip", "deflate", "br", "zstd"].contains(&encoding)
}

/// A host and port without what may be secret before them.
fn host_of(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

fn is_named(host: &str, hosts: &[String]) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_end_matches('.');
    hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request = headers
            .iter()
            .fold(Request::builder().method(method).uri(uri), |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request").into_parts().0
    }

    fn refused(head: &Parts, hosts: &[String]) -> Option<String> {
        let mounts = [Mount { service: Service::declared("kb"), serves: route::Serves::Anything }];
        admit(head, hosts, &mounts).err().map(|refusal| Refused::new(head, refusal.why).to_string())
    }

    #[test]
    fn each_refusal_names_the_request_without_its_query_and_says_why() {
        for (method, uri, headers, words) in [
            (
                "POST",
                "/model/v1/audio/speech?key=s3cret",
                &[][..],
                "POST /model/v1/audio/speech, which is not served; served: POST /model/v1/chat/completions",
            ),
            (
                "DELETE",
                "/model/v1/chat/completions",
                &[],
                "DELETE /model/v1/chat/completions, which is not served by this method; served there: POST",
            ),
            (
                "GET",
                "/model/v1/realtime",
                &[("connection", "Upgrade"), ("upgrade", "WebSocket")],
                "GET /model/v1/realtime, to open a websocket, which cannot be recorded",
            ),
            (
                "POST",
                "/model/v1/chat/completions",
                &[("origin", "http://localhost:3000")],
                "Origin: http://localhost:3000",
            ),
            ("GET", "/model/v1/models", &[("sec-fetch-site", "cross-site")], "Sec-Fetch-Site: cross-site"),
            ("POST", "/model/v1/chat/completions", &[("host", "llm-gateway:9321")], "`proxy_hosts: [NAME]`"),
            (
                "GET",
                "http://me:pw@third.example/collect?all",
                &[],
                "GET http://third.example/collect, which is for third.example",
            ),
            (
                "POST",
                "/model/model/m%3A0/converse",
                &[("authorization", "AWS4-HMAC-SHA256 Credential=s3cret, Signature=0")],
                "POST /model/model/m%3A0/converse, which is signed by AWS (SigV4): the signature covers the host, so the \
                 request cannot be handed on. Use a Bedrock API key: write `key: AWS_BEARER_TOKEN_BEDROCK` for the provider",
            ),
            ("CONNECT", "third.example:443", &[], "CONNECT third.example:443, which is for third.example:443"),
            ("GET", "/kb/a/../../etc?q=..", &[], "GET /kb/a/../../etc, whose path has `.` or `..` between slashes"),
            ("GET", "/kb/%2E%2e/x", &[], "GET /kb/%2E%2e/x, whose path has"),
            ("DELETE", "/model/v1/responses/..", &[], "DELETE /model/v1/responses/.., whose path has"),
        ] {
            let head = head(method, uri, headers);
            let told = refused(&head, &[]).expect(uri);
            assert!(told.starts_with("your agent asked ") && told.contains(words), "{told}");
            assert!(!told.contains("s3cret") && !told.contains("pw@"), "{told}");
        }
    }

    #[test]
    fn a_method_of_its_own_is_named_as_the_reason_and_another_upgrade_is_ignored() {
        let mounts = [Mount { service: Service::declared("kb"), serves: route::Serves::Anything }];
        let search = head("SEARCH", "/kb/list", &[]);
        let Err(refused) = admit(&search, &[], &mounts) else { panic!("it is served") };
        assert_eq!(
            refused.why,
            "which is not served by this method; served there: GET, POST, PUT, PATCH, DELETE, HEAD"
        );
        for path in ["/kb/..list", "/kb/a.b/...", "/kb/.well-known/x", "/kb/list?path=../x", "/kb/%2e%2e%2fx"] {
            assert!(admit(&head("GET", path, &[]), &[], &mounts).is_ok(), "{path}");
        }
        let java = [("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"), ("http2-settings", "AAEAAEAA")];
        assert!(admit(&head("GET", "/kb/list", &java), &[], &mounts).is_ok());
    }

    #[test]
    fn a_body_that_is_not_what_its_header_names_is_refused_and_others_are_handed_on() {
        let plain = br#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, plain).expect("memory");
        let packed = gzip.finish().expect("memory");
        let exact = Route {
            service: Service::declared("kb"),
            method: "POST",
            api: super::super::table::Api::Exact,
            path: "/list".to_owned(),
        };
        let chat = Route { service: Service::Model, api: super::super::table::CHAT, ..exact.clone() };
        for (route, encoding, body, refused) in [
            (&exact, "gzip", &packed[..], None),
            (&chat, " GZIP ", &packed, None),
            (&exact, "gzip", plain, Some("whose body is not gzip")),
            (&chat, "gzip", plain, Some("whose body is not gzip")),
            (&exact, "zstd", b"xxxx", Some("whose body is not zstd")),
            (&exact, "br", b"\"xxxx\"", Some("whose body is not br")),
            (&exact, "gzip", &packed[..packed.len() - 6], Some("whose body is broken gzip")),
            (&exact, "gzip", b"", None),
            (&exact, "identity", plain, None),
            (&exact, "aws-chunked", plain, None),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_ENCODING, encoding.parse().expect("a value"))]);
            let read = read_body(Body::from(body.to_vec()), route, &headers);
            let read = futures_util::FutureExt::now_or_never(read).expect("the whole body is there");
            let why = read.as_ref().err().map(|refusal| refusal.why.as_str()).unwrap_or_default();
            assert_eq!(why.starts_with(refused.unwrap_or("-")), refused.is_some(), "{encoding}: {why}");
            if let Ok((_, Some(sent))) = read {
                assert_eq!(sent, &plain[..], "{encoding}");
            }
        }
    }

    #[test]
    fn a_host_is_allowed_by_its_name_alone_and_never_with_an_origin() {
        let hosts = ["llm-gateway".to_owned()];
        let chat = "/model/v1/chat/completions";
        assert_eq!(refused(&head("POST", chat, &[("host", "LLM-gateway:9321")]), &hosts), None);
        assert_eq!(refused(&head("POST", &format!("http://llm-gateway:9321{chat}"), &[]), &hosts), None);
        for host in ["llm-gateway.example", "other", "x-llm-gateway"] {
            assert!(refused(&head("POST", chat, &[("host", host)]), &hosts).is_some(), "{host}");
        }
        let page = head("POST", chat, &[("host", "llm-gateway"), ("origin", "http://llm-gateway")]);
        assert!(refused(&page, &hosts).is_some());
    }

    #[test]
    fn what_may_be_refused_is_named_by_path_with_a_star_for_a_segment() {
        let speech = Refused::new(&head("POST", "/model/v1/audio/speech/?x=1", &[]), String::new());
        for pattern in ["/model/v1/audio/speech", "/model/v1/audio/*"] {
            assert!(speech.is_among(&[pattern.to_owned()]), "{pattern}");
        }
        assert!(!speech.is_among(&["/model/v1/audio".to_owned(), "/model/*".to_owned()]));
        let tunnel = Refused::new(&head("CONNECT", "third.example:443", &[]), String::new());
        assert!(tunnel.is_among(&["third.example:443".to_owned()]));
    }
}
