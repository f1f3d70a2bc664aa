//! Access control: programs that know the address and, if other machines can reach it, the token.
//!
//! Requests from browser pages are refused by their `Origin`. On loopback, host names that anyone could point at this
//! machine are refused too (see [`loopback`]). Tokens are compared by digest, so that timing reveals nothing.

use super::api::ApiError;
use super::service::Service;
use crate::{platform::clock, platform::loopback};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a request body in bytes.
pub(super) const LONGEST_BODY: usize = 1 << 20;
/// Time limit for the arrival of a request body.
const BODY_TIME: Duration = Duration::from_secs(20);

/// Reads the whole body before any work begins, so that a slow client holds no place.
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

/// Refuses requests from browser pages, and foreign host names for this machine.
pub(super) async fn origin(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let admitted = {
        let shown = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
        // With a token, any host name is allowed: the token identifies the caller.
        let host = shown(header::HOST.as_str()).filter(|_| service.options.token.is_none());
        loopback::admit(host, shown(header::ORIGIN.as_str()), shown(loopback::SITE))
    };
    match admitted {
        Ok(()) => next.run(request).await,
        Err(stranger) => ApiError::new(StatusCode::FORBIDDEN, "forbidden", stranger.to_string()).into_response(),
    }
}

/// Refuses requests without the token, if one is required.
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
