//! Who is answered: programs that were told the address, and where other machines reach it, those with the token.
//!
//! A page in a browser is refused by its `Origin`, and on loopback so is a name that anybody can point at this machine
//! (see [`loopback`]). The token is compared by its digest, which tells nothing by how long the comparison takes.

use super::api::ApiError;
use super::service::Service;
use crate::{platform::clock, platform::loopback};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Longest request that is read, in bytes.
pub(super) const LONGEST_BODY: usize = 1 << 20;
/// How long the body of a request may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(20);

/// Reads a request's body whole before anything is done for it, so that a slow one holds nobody else's place.
pub(super) async fn whole(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let refused = |status, kind, message: String| ApiError::new(status, kind, message).into_response();
    match clock::timeout(&*service.clock, BODY_TIME, to_bytes(body, LONGEST_BODY)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Err(why)) if why.source().is_some_and(|why| why.to_string().contains("length limit")) => {
            let message = format!("a request has at most {LONGEST_BODY} bytes");
            refused(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        }
        Ok(Err(why)) => refused(StatusCode::BAD_REQUEST, "invalid_request", format!("the body broke off: {why}")),
        Err(clock::Elapsed(limit)) => {
            let message = format!("the body did not arrive within {} s", limit.as_secs());
            refused(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
        }
    }
}

/// Refuses pages in browsers, and foreign names for this machine.
pub(super) async fn origin(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let admitted = {
        let shown = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
        // With a token the service may stand behind any name: the token says who asks.
        let host = shown(header::HOST).filter(|_| service.options.token.is_none());
        loopback::admit(host, shown(header::ORIGIN))
    };
    match admitted {
        Ok(()) => next.run(request).await,
        Err(stranger) => ApiError::new(StatusCode::FORBIDDEN, "forbidden", stranger.to_string()).into_response(),
    }
}

/// Refuses requests without the token, where there is one.
pub(super) async fn token(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    if service.options.token.as_deref().is_none_or(|wanted| bears(request.headers(), wanted)) {
        return next.run(request).await;
    }
    let message = "send the service's token in `Authorization: Bearer …`";
    let mut response = ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    response
}

fn bears(headers: &HeaderMap, wanted: &str) -> bool {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    sent.is_some_and(|(_, token)| Sha256::digest(token.trim()) == Sha256::digest(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_in_its_scheme_opens() {
        let sent = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            bears(&headers, "correct horse battery")
        };
        assert!(sent("Bearer correct horse battery") && sent("bearer correct horse battery"));
        for wrong in ["Bearer correct horse", "Bearer ", "Basic correct horse battery", "correct horse battery", ""] {
            assert!(!sent(wrong), "{wrong}");
        }
        assert!(!bears(&HeaderMap::new(), "correct horse battery"));
    }
}
