//! Answers from a cassette: the recorded bytes after the recorded time, or an explained miss. Opens no socket.

use super::{
    HttpRequest, HttpResponse, Learner, Miss, PlacedResult, RecordedPlace, Service, Transport, TransportError, links,
};
use crate::cassette::{self, Cassette, Exchange, Keys, Missed, Outcome, Pool, Redactor, Request, StoredRequest, Taken};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use crate::platform::secrets;
use serde_json::Value;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Duration of an abandoned exchange beyond its recorded wait: longer than any time limit.
const BEYOND: Duration = Duration::from_hours(24);

/// Missed requests that are kept for proposals: one that is answered by an error may be followed by hundreds.
const MOST_MISSED: usize = 12;

/// Keys that link successive requests of each service.
pub(crate) type ServiceKeys = BTreeMap<Service, Keys>;

/// Replays one lane, once.
pub struct ReplayTransport {
    cassette: Cassette,
    bursts: Vec<u32>,
    pool: Pool,
    /// The recorded requests, once several have one key.
    requests: OnceLock<Vec<StoredRequest>>,
    keys: Mutex<ServiceKeys>,
    clock: Arc<dyn Clock>,
    /// Knows what recordings may not hold, and the keys of the requests so far.
    learner: Learner,
    rerecord: String,
    missed: Mutex<Vec<Missed>>,
}

/// The exchange that answers a request.
pub(super) struct Found<'t> {
    index: usize,
    pub(super) exchange: &'t Exchange,
    /// See [`RecordedPlace::body`].
    body: Option<Value>,
}

impl ReplayTransport {
    /// Replays `cassette` on `clock`; `rerecord` is the command that records the lane again, for messages.
    pub fn new(cassette: Cassette, clock: Arc<dyn Clock>, rerecord: String) -> Self {
        let pool = Pool::new(&cassette);
        let (keys, bursts) = (Mutex::default(), cassette.bursts());
        let (learner, missed) = (Learner::default(), Mutex::default());
        Self { cassette, bursts, pool, requests: OnceLock::new(), keys, clock, learner, rerecord, missed }
    }

    /// Adds the secrets known during recording, in case requests contain any.
    #[must_use]
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.learner = Learner(Mutex::new(Arc::new(redactor)));
        self
    }

    /// Starts with the keys of an earlier replay. They change no key: what requests have in common with its last ones is
    /// not hashed again.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: ServiceKeys) -> Self {
        self.keys = Mutex::new(keys);
        self
    }

    /// Takes the keys, for [`ReplayTransport::with_keys`].
    pub(crate) fn take_keys(&self) -> ServiceKeys {
        std::mem::take(&mut lock(&self.keys))
    }

    /// The recorded exchanges that were not requested, one line each.
    pub fn unused(&self) -> Vec<String> {
        let place = self.cassette.place();
        let line = |exchange: &Exchange| {
            format!("{place}: exchange {} ({}) was recorded and not asked for", exchange.ordinal, exchange.service)
        };
        self.left().map(line).collect()
    }

    /// The recorded exchanges that were not requested.
    pub(crate) fn left(&self) -> impl Iterator<Item = &Exchange> {
        self.pool.unused().into_iter().filter_map(|index| self.cassette.exchanges.get(index))
    }

    /// The recorded exchanges that were requested.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Exchange> {
        let left: BTreeSet<usize> = self.pool.unused().into_iter().collect();
        let given = self.cassette.exchanges.iter().enumerate().filter(move |(index, _)| !left.contains(index));
        given.map(|(_, exchange)| exchange)
    }

    /// Services and profiles of which nothing was requested, although the recording holds such requests; with their number.
    pub(crate) fn silent(&self) -> BTreeMap<(&str, &str), usize> {
        let mut silent: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for exchange in self.left() {
            *silent.entry((&exchange.service, &exchange.profile)).or_default() += 1;
        }
        for exchange in self.given() {
            silent.remove(&(exchange.service.as_str(), exchange.profile.as_str()));
        }
        silent
    }

    /// The first missed requests, each once.
    pub(crate) fn missed(&self) -> Vec<Missed> {
        lock(&self.missed).clone()
    }

    fn key(&self, service: Service, request: Request<'_>, redactor: &Redactor) -> String {
        let mut keys = lock(&self.keys);
        keys.entry(service).or_default().of(request, redactor)
    }

    async fn exchange(&self, request: HttpRequest) -> PlacedResult {
        if request.profile.is_notice() {
            return (None, Ok(HttpResponse::accepted()));
        }
        let Found { index, exchange, body } = match self.find(&request) {
            Ok(found) => found,
            Err(why) => return (None, Err(why)),
        };
        let (ordinal, at, body) = (exchange.ordinal, exchange.at, body.map(Arc::new));
        let place = self.bursts.get(index).map(|burst| RecordedPlace { ordinal, burst: *burst, at, body });
        (place, self.answer(exchange).await)
    }

    /// The first exchange of a service that was not requested.
    pub(super) fn next_of(&self, service: &str) -> Option<&Exchange> {
        self.cassette.exchanges.get(self.pool.take_next(service)?)
    }

    /// The exchange that answers a request.
    pub(super) fn find(&self, request: &HttpRequest) -> Result<Found<'_>, TransportError> {
        if let Some(message) = links::broken_in(request) {
            return Err(TransportError::Invalid { message });
        }
        let canonical =
            Request { profile: request.profile, method: request.method, path: &request.path, body: &request.body };
        let redactor = self.learner.learn(request.secrets());
        let key = self.key(request.service, canonical, &redactor);
        let body = LazyCell::new(|| cassette::stored_body(request.profile, &request.body, &redactor));
        let is_exact = |index: usize| {
            let recorded = self.requests.get_or_init(|| self.cassette.requests());
            recorded.get(index).is_some_and(|one| one.body == *body)
        };
        let taken = self.pool.take(request.service.as_str(), &key, is_exact);
        if let Taken::Exchange(index) = taken
            && let Some(exchange) = self.cassette.exchanges.get(index)
        {
            return Ok(Found { index, exchange, body: None });
        }
        if let Some(found) = self.find_reordered(request.service, canonical, &redactor) {
            return Ok(found);
        }
        let explained = cassette::explain(
            &self.cassette,
            request.service.as_str(),
            canonical,
            &key,
            (taken, &self.pool.unused()),
            &Redactor::clone(&redactor).beside(&secrets::declared()),
            &self.rerecord,
        );
        let cassette::Explanation { message, cause, detail, missed } = explained;
        let mut known = lock(&self.missed);
        // No value in the path of a request to a model is ever bound.
        let missed = missed.map(|mut missed| {
            if !matches!(request.service, Service::Declared(_)) {
                missed.paths = (String::new(), String::new());
            }
            missed
        });
        if let Some(missed) = missed.filter(|missed| known.len() < MOST_MISSED && !known.contains(missed)) {
            known.push(*missed);
        }
        drop(known);
        Err(TransportError::Miss(Box::new(Miss { message, cause, detail })))
    }

    /// An exchange whose request is this one but for the order of members of JSON within texts: it has the recorded key once
    /// they are in the recorded order.
    fn find_reordered(&self, service: Service, request: Request<'_>, redactor: &Redactor) -> Option<Found<'_>> {
        let recorded = self.requests.get_or_init(|| self.cassette.requests());
        self.pool.unused().into_iter().find_map(|index| {
            let exchange = self.cassette.exchanges.get(index).filter(|one| one.service == service.as_str())?;
            let before = recorded.get(index)?;
            let body = cassette::in_recorded_order(request.body, &before.body, redactor)?;
            let key = Keys::default().of(Request { body: &body, ..request }, redactor);
            if key != exchange.key {
                return None;
            }
            let Taken::Exchange(index) = self.pool.take(service.as_str(), &key, |one| one == index) else {
                return None;
            };
            Some(Found { index, exchange: self.cassette.exchanges.get(index)?, body: Some(body) })
        })
    }

    /// Returns the recorded outcome after the recorded time.
    pub(super) async fn answer(&self, exchange: &Exchange) -> Result<HttpResponse, TransportError> {
        match &exchange.outcome {
            Outcome::Response { status, headers, body, took, chunks, .. } => {
                self.clock.sleep(*took).await;
                let (headers, body, chunks) = (headers.clone(), body.clone(), chunks.clone());
                Ok(HttpResponse { status: *status, headers, body, took: *took, chunks })
            }
            Outcome::ConnectionError { message, took } => {
                self.clock.sleep(*took).await;
                Err(TransportError::Connection { message: message.clone(), took: *took })
            }
            Outcome::Timeout { after } => {
                self.clock.sleep(*after).await;
                Err(TransportError::Timeout { after: *after })
            }
            Outcome::Abandoned { after } => {
                let (after, began) = (after.saturating_add(BEYOND), self.clock.now());
                self.clock.sleep(after).await;
                if self.clock.now() == began {
                    // On a fixed clock the sender has a time of its own, and gives up as it did.
                    std::future::pending::<()>().await;
                }
                Err(TransportError::Timeout { after })
            }
        }
    }
}

impl Transport for ReplayTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move { self.exchange(request).await.1 })
    }

    fn send_placed(&self, request: HttpRequest) -> BoxFuture<'_, PlacedResult> {
        Box::pin(self.exchange(request))
    }
}
