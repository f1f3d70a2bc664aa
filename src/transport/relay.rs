//! Hands a stream to an agent as it comes, while it is read for the recording and the trace.
//!
//! Clients limit the time between two pieces of a stream. Held back until it is complete, a stream that a client reads
//! well without the proxy would run into that limit.

use super::{HttpResponse, StreamEnd};
use crate::platform::clock::{Clock, timeout};
use bytes::Bytes;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Header of a stream that its client left before it ended: the body is what came until then. A proxy leaves it open.
pub(crate) const LEFT_HEADER: &str = "x-ragcheck-left-open";
/// Content types of streams. No length of time says that one of them is complete but its end.
const STREAMS: [&str; 6] = [
    "text/event-stream",
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/stream+json",
    "application/vnd.amazon.eventstream",
];

/// How long a model's stream is read after its client left it.
const REST: Duration = Duration::from_secs(1);

/// A part of a response that is handed on as it comes.
#[derive(Debug)]
pub(crate) enum Part {
    /// Its status and headers.
    Head(u16, Vec<(String, String)>),
    /// Bytes of its body.
    Bytes(Bytes),
}

/// Where a request's transport puts the parts of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Relay {
    parts: mpsc::UnboundedSender<Part>,
    begun: Arc<AtomicBool>,
}

impl Relay {
    /// A relay, and where its parts arrive. The client has left when that is dropped.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Part>) {
        let (parts, arriving) = mpsc::unbounded_channel();
        (Self { parts, begun: Arc::default() }, arriving)
    }

    /// Begins with the head of a response.
    pub(super) fn begin(&self, status: u16, headers: &[(String, String)]) {
        self.begun.store(true, Ordering::SeqCst);
        let _ = self.parts.send(Part::Head(status, headers.to_vec()));
    }

    /// Hands on bytes.
    pub(super) fn push(&self, bytes: Bytes) {
        let _ = self.parts.send(Part::Bytes(bytes));
    }

    /// Whether the head was handed on.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Resolves when the client has left.
    pub(crate) async fn left(&self) {
        self.parts.closed().await;
    }
}

/// Decides how long a response is read. A client that left a model's stream may have seen in it that it ends: what follows at
/// once is read still. Any other stream may never end.
pub(super) struct Reader<'r> {
    relay: Option<&'r Relay>,
    end: Option<&'r StreamEnd>,
    clock: Option<&'r dyn Clock>,
    /// Bytes that the client got before it left, and until when the rest is read.
    left: Option<(usize, Duration)>,
}

impl<'r> Reader<'r> {
    pub(super) fn new(relay: Option<&'r Relay>, end: Option<&'r StreamEnd>, clock: Option<&'r dyn Clock>) -> Self {
        Self { relay, end, clock, left: None }
    }

    /// The next piece; `None` if it does not come for as long as it is wanted.
    pub(super) async fn next<T: Send>(&self, piece: impl Future<Output = T> + Send) -> Option<T> {
        match (self.relay, self.left, self.clock) {
            (Some(relay), None, _) => match select(pin!(piece), pin!(relay.left())).await {
                Either::Left((piece, _)) => Some(piece),
                Either::Right(_) => None,
            },
            (_, Some((_, until)), Some(clock)) => timeout(clock, until.saturating_sub(clock.now()), piece).await.ok(),
            _ => Some(piece.await),
        }
    }

    /// After there was no next piece: whether to go on all the same.
    pub(super) fn goes_on(&mut self, body: &[u8]) -> bool {
        let first = self.left.is_none();
        self.left.get_or_insert((body.len(), self.clock.map_or(Duration::ZERO, |clock| clock.now() + REST)));
        first && self.end.is_some_and(|end| !end.is_whole(body))
    }

    /// Number of bytes after which the client left; `None` if what was read is whole.
    pub(super) fn left_at(&self, body: &[u8]) -> Option<usize> {
        let whole = self.end.is_some_and(|end| end.is_whole(body));
        self.left.map(|(got, _)| got).filter(|_| !whole)
    }
}

/// Whether a response is handed on as it comes: a stream, by what was asked for or by its type. One that is compressed is
/// unpacked as a whole, and one that tells an error is short.
pub(super) fn is_relayed(status: u16, headers: &[(String, String)], end: Option<&StreamEnd>) -> bool {
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let kind = header("content-type").map(|kind| kind.trim_start().to_ascii_lowercase()).unwrap_or_default();
    let is_stream = end.is_some() || STREAMS.iter().any(|stream| kind.starts_with(stream));
    (200..300).contains(&status) && is_stream && header("content-encoding").is_none()
}

/// Whether a client left a response before it ended.
pub(crate) fn was_left(response: &HttpResponse) -> bool {
    response.header(LEFT_HEADER).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_handed_on_and_documents_errors_and_compressed_bodies_are_not() {
        let end = StreamEnd::new(|_| false);
        let of = |status, kind: &str, more: &[(&str, &str)], end| {
            let headers = [("content-type", kind)].into_iter().chain(more.iter().copied());
            let headers: Vec<_> = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            is_relayed(status, &headers, end)
        };
        assert!(of(200, "text/event-stream; charset=utf-8", &[], None) && of(200, "Application/X-NDJSON", &[], None));
        assert!(of(200, "application/json", &[], Some(&end)), "a list of JSON that was asked for as a stream");
        assert!(!of(200, "application/json", &[], None) && !of(429, "text/event-stream", &[], Some(&end)));
        assert!(!of(200, "text/event-stream", &[("content-encoding", "gzip")], Some(&end)));
    }
}
