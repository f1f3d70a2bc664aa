//! Several knowledge bases, chosen by `kb_id`, and one behind a server, called through the trial's transport.

use super::*;
use crate::knowledge::{DEFAULT_KB, Found, KnowledgeBase, Search};
use crate::platform::clock::BoxFuture;
use crate::provider::{Access, Failure, RetryPolicy};
use crate::transport::{HttpRequest, HttpResponse, Miss, Service, Transport, TransportError};

fn base(id: &str, text: &str) -> (String, Arc<dyn KnowledgeBase>) {
    let passage = Passage { id: format!("{id}#1"), title: id.into(), text: text.into() };
    (id.to_owned(), Arc::new(Embedded::open(Corpus::of(id, vec![passage]), None).expect("opens")))
}

fn search_in(kb_id: &str) -> Says {
    calls([(KNOWLEDGE_BASE_SEARCH, json!({"query": "battery warranty", "kb_id": kb_id}))])
}

/// The ids returned by each search that ran.
fn found(played: &Played) -> Vec<Vec<&str>> {
    let hits =
        |called: &'_ ToolCalled| matches!(called.outcome, ToolOutcome::Ok(_)) && called.tool == KNOWLEDGE_BASE_SEARCH;
    let tools = played.tools().into_iter().filter(|called| hits(called));
    tools
        .map(|called| match &called.outcome {
            ToolOutcome::Ok(ToolResult::Search(found)) => found.hits.iter().map(|hit| hit.id.as_str()).collect(),
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn a_kb_id_chooses_among_several_knowledge_bases_and_the_first_is_the_default() {
    let bases = || KnowledgeBases::new(vec![base("bikes", "Battery warranty"), base("boats", "Battery warranty too")]);
    let model = vec![search_in("boats"), search_in(DEFAULT_KB), search_in("bikes"), responds(empty_handed())];
    let played = Play { knowledge: bases(), ..play(model) }.turns(&["Warranty?"]);
    assert_eq!(found(&played), [["boats#1"], ["bikes#1"], ["bikes#1"]]);
}

#[test]
fn an_unknown_knowledge_base_is_refused_and_the_model_is_told_which_there_are() {
    let bases = KnowledgeBases::new(vec![base("bikes", "Battery warranty"), base("boats", "Battery")]);
    let model = vec![search_in("planes"), search_in("boats"), responds(empty_handed())];
    let played = Play { knowledge: bases, ..play(model) }.turns(&["Warranty?"]);
    let told: Value = serde_json::from_str(&played.requests[1].messages[3].content).expect("is JSON");
    assert_eq!(told["error"]["cause"], "unknown_kb");
    assert_eq!(told["error"]["guidance"], "Leave `kb_id` out, or use one of `bikes`, `boats`.");
    assert_eq!(found(&played), [["boats#1"]]);
    let booked: Vec<_> = played.retries().iter().map(|one| (one.account, one.recovered)).collect();
    assert_eq!(booked, [(Account::Tool, true)]);
}

/// A base behind a server that is called through the trial's transport.
struct Remote(Access);

impl KnowledgeBase for Remote {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        let request = move || {
            HttpRequest::new(
                Service::Search,
                &crate::provider::EXACT,
                "POST",
                "/query",
                Arc::new(json!({"query": query, "n": top_k})),
            )
        };
        let decode = |response: &HttpResponse| {
            let words = String::from_utf8_lossy(&response.body).into_owned();
            if response.status != 200 {
                return Err(Failure { kind: ErrorKind::Overloaded, status: Some(response.status), message: words });
            }
            let passage = Passage { id: "far#1".into(), title: "Far".into(), text: words };
            Ok(vec![Found { passage, raw_score: 1.0 }])
        };
        Box::pin(async move { self.0.exchange(0, request, decode).await.into() })
    }

    fn hash(&self) -> String {
        "remote".into()
    }
}

/// Returns these statuses in order; after the last, the request is not in the recording.
struct Server(VirtualClock, Mutex<VecDeque<u16>>);

impl Transport for Server {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let status = self.1.lock().expect("not poisoned").pop_front();
        Box::pin(async move {
            let Some(status) = status else {
                let miss = Miss { message: "no such search".into(), cause: "c".into(), detail: Vec::new() };
                return Err(TransportError::Miss(Box::new(miss)));
            };
            let took = Duration::from_millis(30);
            self.0.sleep(took).await;
            let body = bytes::Bytes::from_static(b"The battery warranty lasts two years.");
            Ok(HttpResponse { status, headers: Vec::new(), body, took, chunks: Vec::new() })
        })
    }
}

/// A context whose only base is behind a server that returns these statuses, and its clock.
fn remote(model: Vec<Says>, statuses: &[u16]) -> (AgentContext, VirtualClock) {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let server = Server(clock.clone(), Mutex::new(statuses.iter().copied().collect()));
    let policy = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
    let access = Access { transport: Arc::new(server), clock: Arc::new(clock.clone()), policy };
    let knowledge = KnowledgeBases::new(vec![("far".to_owned(), Arc::new(Remote(access)))]);
    let (_, env) = Play { knowledge, ..play(model) }.environment(&clock);
    (env, clock)
}

#[test]
fn the_attempts_of_a_search_behind_a_server_are_recorded_and_booked_on_the_transport_account() {
    let (env, clock) = remote(vec![search("battery"), responds(empty_handed())], &[503, 200]);
    let mut conversation = ConversationState::new(0, "main");
    block_on(&clock, ToolRag.turn(&env, &mut conversation, "Warranty?")).expect("no deadlock").expect("no abort");
    let events = env.take_events();
    let called =
        events.iter().find_map(|event| if let What::ToolCalled(called) = &event.what { Some(called) } else { None });
    let called = called.expect("a call");
    let statuses: Vec<_> = called.attempts.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [Some(503), Some(200)]);
    assert!(called.took_us >= 60_000, "the time of the exchanges counts: {}", called.took_us);
    let retried = events.iter().find_map(|event| if let What::Retried(one) = &event.what { Some(one) } else { None });
    let retried = retried.expect("a retry");
    assert_eq!((retried.account, retried.target.as_str(), retried.recovered), (Account::Transport, "knowledge", true));
}

#[test]
fn a_server_that_stays_down_is_told_to_the_model_and_the_mandatory_call_counts_as_made() {
    let (env, clock) = remote(vec![search("battery"), responds(empty_handed())], &[503, 503]);
    let mut conversation = ConversationState::new(0, "main");
    block_on(&clock, ToolRag.turn(&env, &mut conversation, "Warranty?")).expect("no deadlock").expect("no abort");
    let events = env.take_events();
    let degraded = events.iter().any(
        |event| matches!(&event.what, What::Degraded { reason, .. } if reason.contains("the knowledge base failed")),
    );
    assert!(degraded, "{events:?}");
    let failed = events.iter().any(|event| matches!(&event.what, What::Moved(moved) if moved.on == "knowledge_failed"));
    assert!(failed && ToolRag.machine().departures(&trace(events)).is_empty());
}

#[test]
fn a_search_that_no_recording_holds_aborts_the_trial() {
    let (env, clock) = remote(vec![search("battery")], &[]);
    let mut conversation = ConversationState::new(0, "main");
    let ended = block_on(&clock, ToolRag.turn(&env, &mut conversation, "Warranty?")).expect("no deadlock");
    assert!(matches!(ended, Err(Abort::Miss(miss)) if miss.message == "no such search"));
}
