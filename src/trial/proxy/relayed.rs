//! Responses on their way to the agent: whole ones, and streams as they come.

use super::refusal::broken_off;
use crate::platform::clock::{RealClock, timeout};
use crate::transport::{
    BROKEN_HEADER, HttpRequest, HttpResponse, LEFT_HEADER, Part, Relay, Transport, TransportError, broke_off, sse,
    was_left,
};
use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::{self, Stream, StreamExt};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

/// How long a piece of a stream waits for the next one or the end. What completes a stream so goes out when the exchange is
/// over, and what an agent asks after it was not asked beside it.
const LAST_PIECE: Duration = Duration::from_millis(25);
/// Headers that are about the connection to the service, or about a body that is not passed on as it came.
pub(super) const LEFT_OUT: [&str; 7] =
    ["connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "trailer", "upgrade"];

/// Result of a request.
pub(super) enum Answer {
    /// The whole response, or why there is none.
    Whole(Result<HttpResponse, TransportError>),
    /// The head of a stream, and its body, which is under way.
    Begun(HttpResponse, Body),
}

/// `None` if the agent left before anything of the answer came.
type Sending = JoinHandle<Option<Result<HttpResponse, TransportError>>>;

/// Sends a request. A stream is read to its end, or until the agent leaves it, whatever becomes of its connection, so that
/// what came of it is recorded.
#[expect(clippy::disallowed_methods, reason = "an exchange outlives the connection that asked for it")]
pub(super) async fn sent(transport: Arc<dyn Transport>, request: HttpRequest) -> Answer {
    let (relay, mut parts) = Relay::new();
    let client = relay.clone();
    let task = tokio::spawn(async move {
        let sending = pin!(transport.send(HttpRequest { relay: Some(relay), ..request }));
        match select(sending, pin!(client.left())).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(((), sending)) if client.has_begun() => Some(sending.await),
            Either::Right(_) => None,
        }
    });
    if let Some(Part::Head(status, headers)) = parts.recv().await {
        let (body, took, chunks) = (Bytes::new(), Duration::ZERO, Vec::new());
        let head = HttpResponse { status, headers, body, took, chunks };
        return Answer::Begun(head, Body::from_stream(pieces(parts, task)));
    }
    let failed = || Err(TransportError::Invalid { message: "the proxy failed".to_owned() });
    Answer::Whole(task.await.ok().flatten().unwrap_or_else(failed))
}

/// The pieces of a stream; it breaks where its service broke it.
fn pieces(parts: UnboundedReceiver<Part>, task: Sending) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let bytes = |part| match part {
        Some(Part::Bytes(bytes)) => Some(bytes),
        Some(Part::Head(..)) | None => None,
    };
    stream::unfold((parts, Some(task), None), move |(mut parts, task, ahead)| async move {
        let piece = match ahead {
            None => bytes(parts.recv().await),
            ahead => ahead,
        };
        if let Some(piece) = piece {
            let ahead = timeout(&RealClock::start(), LAST_PIECE, parts.recv()).await.ok();
            return Some((Ok(piece), (parts, task, ahead.and_then(bytes))));
        }
        if task?.await.is_ok_and(|sent| sent.is_some_and(|sent| sent.is_ok_and(|response| !broke_off(&response)))) {
            return None;
        }
        // A body that waits is written out before its connection breaks.
        tokio::task::yield_now().await;
        let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the service broke off");
        Some((Err(broken), (parts, None, None)))
    })
}

/// The body of a response. An event stream goes out event by event, without its length, as services send it; one that its
/// client left stays open.
fn body(response: &HttpResponse) -> Body {
    let left = was_left(response);
    let events = sse::is_stream(&response.headers, &response.body).then(|| sse::read_all(&response.body).ok());
    let Some(events) = events.flatten().filter(|events| left || events.len() > 1) else {
        return if left { open(vec![response.body.clone()], true) } else { Body::from(response.body.clone()) };
    };
    let last = events.len().saturating_sub(1);
    let ends = events.iter().enumerate().map(|(place, event)| {
        if place == last { response.body.len() } else { event.bytes.end.min(response.body.len()) }
    });
    let mut start = 0;
    open(ends.map(|end| response.body.slice(std::mem::replace(&mut start, end)..end)).collect(), left)
}

fn open(pieces: Vec<Bytes>, left: bool) -> Body {
    let end = if left { stream::pending().boxed() } else { stream::empty().boxed() };
    Body::from_stream(stream::iter(pieces).map(io::Result::Ok).chain(end))
}

/// A whole response. One to a request for the headers alone (HEAD) tells the length of the body that it does not hold.
pub(super) fn relayed(response: &HttpResponse, of_head: bool) -> Response {
    let status = status(response);
    let relayed = if broke_off(response) {
        broken_off(status, response.body.clone())
    } else {
        (status, body(response)).into_response()
    };
    let mut relayed = with_headers(relayed, response);
    let length = response.header("content-length").filter(|_| of_head && response.body.is_empty());
    if let Some(length) = length.and_then(|length| HeaderValue::from_str(length).ok()) {
        relayed.headers_mut().insert(CONTENT_LENGTH, length);
    }
    relayed
}

/// A response that has begun.
pub(super) fn begun(head: &HttpResponse, body: Body) -> Response {
    with_headers((status(head), body).into_response(), head)
}

fn status(response: &HttpResponse) -> StatusCode {
    StatusCode::from_u16(response.status).unwrap_or(StatusCode::BAD_GATEWAY)
}

fn with_headers(mut relayed: Response, response: &HttpResponse) -> Response {
    let headers = relayed.headers_mut();
    headers.clear();
    for (name, value) in &response.headers {
        let pair = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
        if let Some((name, value)) = pair.filter(|(name, _)| !is_of_connection(name.as_str())) {
            headers.append(name, value);
        }
    }
    relayed
}

/// Whether a response header is not for the agent.
fn is_of_connection(name: &str) -> bool {
    LEFT_OUT.contains(&name) || name == BROKEN_HEADER || name == LEFT_HEADER
}
