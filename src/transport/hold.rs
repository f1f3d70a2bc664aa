//! Answers held services from a recording and sends every other request on: the model is live, the evidence is held.
//!
//! A held answer is marked by a header, which traces and new recordings keep. An exchange that was abandoned when it was
//! recorded has no answer to hold: its request counts as not recorded.

use super::record::SIMULATOR_HEADER;
use super::{HttpRequest, HttpResponse, Miss, ReplayTransport, Service, Transport, TransportError};
use crate::cassette::Outcome;
use crate::platform::clock::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Header of responses in a run with held services; its value is the name of a [`Held`].
const HELD_HEADER: &str = "x-ragcheck-held";

/// Who answered a request of a run with held services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The recording, which has this request.
    Recorded,
    /// The recording, by the position of the request, which differs from the recorded one.
    Forced,
    /// The service, because the recording does not have this request.
    New,
}

impl Held {
    /// Name in headers and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Forced => "forced",
            Self::New => "new",
        }
    }
}

/// The mark of a response; `None` in runs without held services, and for services that are not held.
pub(crate) fn held(response: &HttpResponse) -> Option<Held> {
    let value = response.header(HELD_HEADER)?;
    [Held::Recorded, Held::Forced, Held::New].into_iter().find(|held| held.as_str() == value)
}

/// Number of turns begun in a trial; its clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<AtomicU32>);

impl Turns {
    /// Counts one more turn.
    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// What to hold, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holding {
    /// Held services.
    pub services: BTreeSet<Service>,
    /// Whether a request that is not recorded goes to its service; otherwise it is a miss.
    pub ask_new: bool,
    /// Requests before this turn, counted from 1, are answered by position, whatever their service.
    pub from: Option<u32>,
    /// Services whose recorded answers are a simulator's.
    pub simulated: BTreeSet<String>,
    /// Turns begun.
    pub turns: Turns,
}

/// Numbers of calls by [`Held`].
#[derive(Debug, Default)]
struct Counts {
    recorded: AtomicU32,
    forced: AtomicU32,
    new: AtomicU32,
}

/// Holds the services of one trial.
pub(crate) struct HoldTransport {
    inner: Arc<dyn Transport>,
    /// `None` if nothing is recorded.
    recording: Option<ReplayTransport>,
    holding: Holding,
    counts: Counts,
}

impl HoldTransport {
    /// Answers from `recording`, and sends on to `inner`.
    pub(crate) fn new(inner: Arc<dyn Transport>, recording: Option<ReplayTransport>, holding: Holding) -> Self {
        Self { inner, recording, holding, counts: Counts::default() }
    }

    /// Number of calls so far that were recorded, forced and new.
    pub(crate) fn counted(&self) -> [u32; 3] {
        let Counts { recorded, forced, new } = &self.counts;
        [recorded, forced, new].map(|count| count.load(Ordering::SeqCst))
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let Holding { services, ask_new, from, turns, simulated } = &self.holding;
        let early = from.is_some_and(|from| turns.0.load(Ordering::SeqCst) < from);
        if !early && !services.contains(&request.service) {
            return self.inner.send(request).await;
        }
        let service = request.service.as_str();
        let found = match &self.recording {
            None => Err(Box::new(unrecorded())),
            Some(recording) => match recording.find(&request) {
                Ok(found) if matches!(found.exchange.outcome, Outcome::Abandoned { .. }) => Err(Box::new(unrecorded())),
                Ok(found) => Ok((recording, found.exchange, Held::Recorded)),
                Err(TransportError::Miss(miss)) => {
                    let next = early.then(|| recording.next_of(service)).flatten();
                    next.map(|exchange| (recording, exchange, Held::Forced)).ok_or(miss)
                }
                Err(other) => return Err(other),
            },
        };
        match found {
            Ok((recording, exchange, held)) => {
                let count = if held == Held::Forced { &self.counts.forced } else { &self.counts.recorded };
                count.fetch_add(1, Ordering::SeqCst);
                let mut response = marked(recording.answer(exchange).await?, held);
                if simulated.contains(service) {
                    response.headers.push((SIMULATOR_HEADER.to_owned(), "1".to_owned()));
                }
                Ok(response)
            }
            Err(_) if *ask_new => {
                self.counts.new.fetch_add(1, Ordering::SeqCst);
                Ok(marked(self.inner.send(request).await?, Held::New))
            }
            Err(mut miss) => {
                miss.detail.push("or let its service answer what is not recorded: --on-new live".to_owned());
                Err(TransportError::Miss(miss))
            }
        }
    }
}

/// The response with its mark; an earlier one, of a recording made with held services, is replaced.
fn marked(response: HttpResponse, held: Held) -> HttpResponse {
    let mut headers = response.headers;
    headers.retain(|(name, _)| name != HELD_HEADER);
    headers.push((HELD_HEADER.to_owned(), held.as_str().to_owned()));
    HttpResponse { headers, ..response }
}

/// Miss of a request without a recorded answer.
fn unrecorded() -> Miss {
    let message = "no recorded answer to hold".to_owned();
    Miss { cause: message.clone(), message, detail: Vec::new() }
}

impl Transport for HoldTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(self.exchange(request))
    }
}
