//! A knowledge base behind a server, recorded through a file and replayed: the same passages, the same failures and
//! attempts, and an explained miss for what was never asked.

use bytes::Bytes;
use ragcheck::internals::cassette::{self, Cassette, Header, Redactor};
use ragcheck::internals::knowledge::{
    DEFAULT_KB, Found, KnowledgeBase, KnowledgeSource, KnowledgeSources, Passage, Search, SearchError,
};
use ragcheck::internals::platform::clock::{BoxFuture, Clock, VirtualClock, block_on};
use ragcheck::internals::provider::{Access, ErrorKind, Failure, ProviderError, RetryPolicy};
use ragcheck::internals::transport::{
    HttpRequest, HttpResponse, Profile, RecordTransport, ReplayTransport, Service, Transport, TransportError,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// As a backend would declare it: shared by trials, each of which opens it for itself.
struct Shelf;

struct OpenShelf {
    access: Access,
    calls: AtomicU64,
}

impl KnowledgeSource for Shelf {
    fn open(&self, access: &Access) -> Arc<dyn KnowledgeBase> {
        Arc::new(OpenShelf { access: access.clone(), calls: AtomicU64::new(0) })
    }
}

impl KnowledgeBase for OpenShelf {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let request = move || {
            HttpRequest::new(
                Service::Search,
                &const { Profile::plain("exact") },
                "POST",
                "/query",
                json!({"query": query, "n": top_k}),
            )
        };
        Box::pin(async move { self.access.exchange(call, request, decode).await.into() })
    }

    fn hash(&self) -> String {
        "shelf-1".into()
    }
}

fn decode(response: &HttpResponse) -> Result<Vec<Found>, Failure> {
    let status = Some(response.status);
    if response.status != 200 {
        return Err(Failure { kind: ErrorKind::Overloaded, status, message: "busy".into() });
    }
    let unreadable =
        |error: serde_json::Error| Failure { kind: ErrorKind::Malformed, status, message: error.to_string() };
    let texts: Vec<String> = serde_json::from_slice(&response.body).map_err(unreadable)?;
    let found = |(n, text): (u32, String)| {
        let passage = Passage { id: format!("shelf#{n}"), title: "Shelf".into(), text };
        Found { passage, raw_score: 1.0 / f64::from(n) }
    };
    Ok((1..).zip(texts).map(found).collect())
}

/// Busy at first, then finds what was asked for.
struct Server(VirtualClock, AtomicU64);

impl Transport for Server {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let busy = self.1.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            let took = Duration::from_millis(40);
            self.0.sleep(took).await;
            let (status, body) = if busy { (503, json!("busy")) } else { (200, json!([request.body["query"]])) };
            let body = Bytes::from(body.to_string());
            Ok(HttpResponse { status, headers: Vec::new(), body, took, chunks: Vec::new() })
        })
    }
}

fn access(transport: Arc<dyn Transport>, clock: &VirtualClock) -> Access {
    let policy = RetryPolicy { attempts: 2, seed: 7, ..RetryPolicy::default() };
    Access { transport, clock: Arc::new(clock.clone()), policy }
}

fn search(base: &dyn KnowledgeBase, clock: &VirtualClock, query: &str) -> Search {
    block_on(clock, base.search(query, 3)).expect("no deadlock")
}

/// Through the file and back.
fn replayed(recorder: &RecordTransport) -> (Arc<dyn Transport>, VirtualClock) {
    let folder = tempfile::tempdir().expect("a folder");
    let header = Header {
        scenario: "s".into(),
        case: "c".into(),
        lane: "f.base.1".into(),
        recorded_at: jiff::Timestamp::UNIX_EPOCH,
        recorded_from: recorder.recorded_from(&BTreeMap::new()),
        recorder: "test".into(),
        knowledge: "shelf-1".into(),
        seed: 7,
        subject: String::new(),
        take: 1,
        takes: BTreeMap::new(),
        profiles: recorder.profiles(),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
        held: None,
    };
    let (file, blobs) = (cassette::path(folder.path(), "s", "c", &"f.base.1"), cassette::blobs_dir(folder.path(), "s"));
    let recorded = Cassette::new(header, recorder.finish(), BTreeMap::new());
    recorded.save(&file, &blobs, &Redactor::default()).expect("is saved");
    let cassette = Cassette::load(&file, &blobs).expect("is loaded");
    let clock = VirtualClock::at(cassette.header.recorded_at);
    let transport = ReplayTransport::new(cassette, Arc::new(clock.clone()), "ragcheck run".into());
    (Arc::new(transport), clock)
}

#[test]
fn what_was_recorded_is_found_again_with_its_attempts_and_what_was_not_is_an_explained_miss() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let server: Arc<dyn Transport> = Arc::new(Server(clock.clone(), AtomicU64::new(0)));
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let recorder = Arc::new(RecordTransport::new(server, shared, Arc::new(Redactor::default())));
    let source = KnowledgeSources::new(vec![("shelf".into(), Arc::new(Shelf) as Arc<dyn KnowledgeSource>)]);

    let live = source.open(&access(Arc::clone(&recorder) as Arc<dyn Transport>, &clock));
    let base = live.get("shelf").expect("is there");
    let first = search(&**base, &clock, "battery warranty");
    assert_eq!(first.attempts.iter().map(|one| one.status).collect::<Vec<_>>(), [Some(503), Some(200)]);

    let (transport, later) = replayed(&recorder);
    let again = source.open(&access(transport, &later));
    let base = again.get(DEFAULT_KB).expect("the only one");
    let second = search(&**base, &later, "battery warranty");
    assert_eq!(second.result.expect("is recorded"), first.result.expect("was found"));
    assert_eq!(second.attempts, first.attempts, "with the same times and waits");
    assert_eq!(later.now(), clock.now());

    let missed = search(&**base, &later, "battery range");
    let Err(SearchError::Service(ProviderError::Miss(miss))) = missed.result else { panic!("{missed:?}") };
    let told: Value = json!({"message": miss.message, "detail": miss.detail});
    assert!(told.to_string().contains("battery range"), "{told}");
}
