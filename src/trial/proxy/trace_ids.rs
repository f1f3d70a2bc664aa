//! Trace ids of trials that run side by side with one agent.
//!
//! Each turn carries the id of its trial in the `traceparent` header (W3C Trace Context), and the agent forwards it. A base
//! URL of one trial, `/trace/ID/…`, says the same.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Header of W3C Trace Context.
pub(super) const TRACEPARENT: &str = "traceparent";
/// First segment of the base URLs of one trial.
const TRACE_PATH: &str = "/trace/";

/// Whether an agent that runs elsewhere forwards the `traceparent` of its turns.
#[derive(Debug, Default)]
pub(crate) struct Propagation(AtomicU8);

impl Propagation {
    const UNKNOWN: u8 = 0;
    const KEPT: u8 = 1;
    const LOST: u8 = 2;

    /// Whether all requests of a trial carried its trace id, and none was without one since.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::KEPT
    }

    pub(super) fn kept(&self) {
        let _ = self.0.compare_exchange(Self::UNKNOWN, Self::KEPT, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub(super) fn lost(&self) {
        self.0.store(Self::LOST, Ordering::SeqCst);
    }
}

/// The trace of one trial with an agent that runs elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Traced {
    id: String,
    pub(super) propagation: Arc<Propagation>,
    pub(super) beside: bool,
}

impl Traced {
    /// A new trace; `beside` if other trials run at the same time.
    pub(crate) fn new(propagation: Arc<Propagation>, beside: bool) -> Self {
        // Random, because a late request of an earlier run must not match.
        let random = || RandomState::new().hash_one(0);
        Self { id: format!("{:016x}{:016x}", random(), random()), propagation, beside }
    }

    /// A new trace of a trial whose requests have a proxy of their own.
    pub(crate) fn alone() -> Self {
        Self::new(Arc::default(), false)
    }

    /// Its id: 32 hexadecimal digits.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// The beginning of the base URLs of a trace's trial, after the address of the proxy.
pub(crate) fn base_path(trace: &str) -> String {
    format!("{TRACE_PATH}{trace}")
}

/// Moves the trace id from the path of a request, if it was sent to a base URL of one trial, to its header.
pub(super) fn take_base_path(head: &mut Parts) {
    let Some(path) = head.uri.path_and_query().map(|path| path.as_str().to_owned()) else { return };
    let Some((id, rest)) = path.strip_prefix(TRACE_PATH).and_then(|after| Some(after.split_at(after.find('/')?)))
    else {
        return;
    };
    let (Ok(parent), Ok(uri)) = (HeaderValue::from_str(&traceparent(id, 1)), rest.parse::<Uri>()) else { return };
    head.headers.insert(TRACEPARENT, parent);
    head.uri = uri;
}

/// A `traceparent` of that trace, from that span.
fn traceparent(trace: &str, span: u64) -> String {
    format!("00-{trace}-{span:016x}-01")
}

/// The trace id of a request: `00-TRACE-PARENT-FLAGS`.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut parts = headers.get(TRACEPARENT)?.to_str().ok()?.trim().split('-');
    let (version, id) = (parts.next()?, parts.next()?);
    let sound = version.len() == 2 && id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    (sound && parts.next().is_some()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_id_is_read_from_a_sound_header_alone() {
        let with = |value: &str| {
            HeaderMap::from_iter([(TRACEPARENT.parse().expect("a name"), value.parse().expect("a header"))])
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(trace_id(&with(&format!("00-{id}-00f067aa0ba902b7-01"))), Some(id));
        for wrong in ["", "00", "00-4bf9-00f0-01", "4bf92f3577b34da6a3ce929d0e0e4736", &format!("00-{id}")] {
            assert_eq!(trace_id(&with(wrong)), None, "{wrong}");
        }
    }
}
