//! Runs whole conversations with scripted models and services through the real flow on the virtual clock.
//!
//! Every run is checked against the state machine, and every request against the rule that each tool result answers a
//! call.

/// Compares what a trial did, in numbered lines, with the snapshot of the test's name under `snapshots/`.
macro_rules! assert_story {
    ($played:expr) => {
        insta::with_settings!({snapshot_path => "../../../../snapshots", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!($played.story());
        })
    };
}

mod answers;
mod bases;
mod failures;
mod kept;
mod mistakes;
mod wander;

use super::*;
use crate::flow::tool_rag::tools::{GENERATE_RESPONSE, INDEX_KEYWORDS, KNOWLEDGE_BASE_SEARCH, PERPLEXITY_SEARCH};
use crate::flow::{AgentContext, ConversationState, Flow, Prompts, Services, Settings, Stages};
use crate::knowledge::{Corpus, Embedded, KeywordIndex, KnowledgeBases, Passage};
use crate::platform::clock::{BoxFuture, Clock, VirtualClock, block_on};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, Role, ToolCall, Usage};
use crate::provider::{
    Attempt, Attempted, ChatModel, Citation, ErrorKind, ProviderError, SearchAnswer, SearchQuestion, SearchService,
};
use crate::settings::{Enforcement, Limits, ModelSettings, SearchSettings};
use crate::trace::{
    Account, Event, Reply as Replied, Retried, ToolCalled, ToolOutcome, ToolResult, Trace, TurnOutcome, What,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One scripted completion, or its failure.
#[derive(Clone)]
enum Says {
    Calls(Vec<(&'static str, String)>),
    Text(&'static str),
    Refuses,
    Fails(ErrorKind),
    /// Completes only after this many seconds.
    Late(u64),
    /// One attempt returns HTTP 503, the next one says this.
    AfterOneRetry(Box<Says>),
}

fn calls<const N: usize>(all: [(&'static str, Value); N]) -> Says {
    Says::Calls(all.into_iter().map(|(name, arguments)| (name, arguments.to_string())).collect())
}

fn search(query: &str) -> Says {
    calls([(KNOWLEDGE_BASE_SEARCH, json!({"query": query}))])
}

fn outside(query: &str) -> Says {
    calls([(PERPLEXITY_SEARCH, json!({"query": query}))])
}

fn keywords(words: &[&str]) -> Says {
    keywords_for("result-1", words)
}

fn keywords_for(result: &str, words: &[&str]) -> Says {
    let arguments = json!({"keywords": words, "query": "What is the tariff now?", "perplexity_result_id": result});
    calls([(INDEX_KEYWORDS, arguments)])
}

const GOOD_KEYWORDS: [&str; 3] = ["grid tariff", "tariff levy", "spring 2026 price"];
const PAGE: &str = "https://example.org/tariffs";

fn inside() -> Value {
    json!({"answer": "Two years.", "sources": [{"kind": "internal", "id": "warranty#1"}],
           "used_internal_kb": true, "used_external_kb": false})
}

fn both() -> Value {
    json!({"answer": "Two years, and the tariff fell.", "used_internal_kb": true, "used_external_kb": true,
           "sources": [{"kind": "internal", "id": "warranty#1"}, {"kind": "external", "id": PAGE, "title": "Tariffs"}]})
}

fn empty_handed() -> Value {
    json!({"answer": "Nothing was found.", "sources": [], "used_internal_kb": false, "used_external_kb": false})
}

fn responds(arguments: Value) -> Says {
    calls([(GENERATE_RESPONSE, arguments)])
}

struct Scripted<T> {
    clock: VirtualClock,
    script: Mutex<VecDeque<T>>,
    requests: Mutex<Vec<ChatRequest>>,
}

fn attempt(cause: Option<ErrorKind>) -> Attempt {
    let status = if cause.is_some() { Some(503) } else { Some(200) };
    Attempt {
        service: crate::transport::Service::Model,
        status,
        cause,
        took: Duration::from_millis(100),
        wait: cause.map(|_| Duration::from_millis(50)),
        first_token: None,
        declared_fault: false,
        held: None,
        vectors: None,
    }
}

impl ChatModel for Scripted<Says> {
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>> {
        let number = {
            let mut requests = self.requests.lock().expect("not poisoned");
            requests.push(request.clone());
            requests.len()
        };
        let mut says = self.script.lock().expect("not poisoned").pop_front().unwrap_or(Says::Text("(script over)"));
        Box::pin(async move {
            self.clock.sleep(Duration::from_millis(100)).await;
            let mut attempts = Vec::new();
            if let Says::AfterOneRetry(then) = says {
                attempts.push(attempt(Some(ErrorKind::Server)));
                says = *then;
            }
            if let Says::Late(seconds) = says {
                self.clock.sleep(Duration::from_secs(seconds)).await;
                says = Says::Text("late");
            }
            let (content, refusal, made) = match says {
                Says::Fails(kind) => {
                    attempts.push(attempt(Some(kind)));
                    let result =
                        Err(ProviderError::Failed { kind, status: Some(503), message: "upstream is down".into() });
                    return Attempted { result, attempts };
                }
                Says::Refuses => (String::new(), Some("I can't help with that.".to_owned()), Vec::new()),
                Says::Text(text) => (text.to_owned(), None, Vec::new()),
                Says::Calls(all) => (String::new(), None, all),
                Says::Late(_) | Says::AfterOneRetry(_) => unreachable!("taken apart above"),
            };
            attempts.push(attempt(None));
            let finish = if made.is_empty() { Finish::Stop } else { Finish::ToolCalls };
            let one = |(index, (name, arguments)): (usize, (&str, String))| ToolCall {
                id: format!("c{number}-{index}"),
                name: name.into(),
                arguments,
            };
            let calls = made.into_iter().enumerate().map(one).collect();
            let usage = Usage::default();
            let response =
                ChatResponse { model: "scripted".into(), content, refusal, calls, finish, usage, passthrough: None };
            Attempted { result: Ok(response), attempts }
        })
    }
}

impl SearchService for Scripted<Result<(), ErrorKind>> {
    fn ask<'a>(&'a self, _: &'a SearchQuestion) -> BoxFuture<'a, Attempted<SearchAnswer>> {
        let says = self.script.lock().expect("not poisoned").pop_front().unwrap_or(Ok(()));
        Box::pin(async move {
            self.clock.sleep(Duration::from_millis(400)).await;
            let attempts = vec![attempt(says.err())];
            let result = match says {
                Ok(()) => Ok(SearchAnswer {
                    text: "The tariff fell in spring [1].".into(),
                    citations: vec![Citation { title: "Tariffs".into(), url: PAGE.into(), snippet: String::new() }],
                    model: "sonar".into(),
                    usage: Usage::default(),
                }),
                Err(kind) => Err(ProviderError::Failed { kind, status: Some(503), message: "upstream is down".into() }),
            };
            Attempted { result, attempts }
        })
    }
}

struct FiveMillis(VirtualClock);

impl Stages for FiveMillis {
    fn spent<'a>(&'a self, _: &'static str, _: Duration) -> BoxFuture<'a, ()> {
        self.0.sleep(Duration::from_millis(5))
    }
}

/// A conversation to play, and its setup.
struct Play {
    model: Vec<Says>,
    service: Vec<Result<(), ErrorKind>>,
    enforcement: Enforcement,
    limits: Limits,
    withhold_history: bool,
    external: bool,
    knowledge: KnowledgeBases,
}

fn play(model: Vec<Says>) -> Play {
    let (enforcement, limits) = (Enforcement::Feedback, Limits::default());
    let knowledge = KnowledgeBases::new(vec![("desk".to_owned(), Arc::new(knowledge()))]);
    Play { model, service: Vec::new(), enforcement, limits, withhold_history: false, external: true, knowledge }
}

/// Result of a played conversation.
struct Played {
    events: Vec<Event>,
    requests: Vec<ChatRequest>,
    clock: VirtualClock,
    talks: Vec<ConversationState>,
}

fn knowledge() -> Embedded {
    let passage = |id: &str, title: &str, text: &str| Passage { id: id.into(), title: title.into(), text: text.into() };
    let passages = vec![
        passage("warranty#1", "Warranty", "The battery warranty lasts two years."),
        passage("charging#1", "Charging", "A full charge takes four hours."),
    ];
    Embedded::open(Corpus::of("desk", passages), None).expect("opens")
}

impl Play {
    /// Plays one conversation of these turns.
    fn turns(self, queries: &[&str]) -> Played {
        self.conversations(&[queries])
    }

    /// Plays conversations one after another, with one keyword index.
    fn conversations(self, all: &[&[&str]]) -> Played {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let (model, env) = self.environment(&clock);
        let mut talks = Vec::new();
        for (ordinal, queries) in (0..).zip(all) {
            let mut conversation = ConversationState::new(ordinal, &format!("talk-{ordinal}"));
            env.conversation_started(&conversation);
            for query in *queries {
                block_on(&clock, ToolRag.turn(&env, &mut conversation, query)).expect("no deadlock").expect("no abort");
            }
            talks.push(conversation);
        }
        let requests = model.requests.lock().expect("not poisoned").clone();
        let played = Played { events: env.take_events(), requests, clock, talks };
        played.check();
        played
    }

    fn environment(self, clock: &VirtualClock) -> (Arc<Scripted<Says>>, AgentContext) {
        let model = Arc::new(Scripted {
            clock: clock.clone(),
            script: Mutex::new(self.model.into()),
            requests: Mutex::default(),
        });
        let service =
            Scripted { clock: clock.clone(), script: Mutex::new(self.service.into()), requests: Mutex::default() };
        let settings = Settings {
            prompts: Arc::new(
                Prompts::resolve(&FLOW, &BTreeMap::new(), Services { search: self.external }).expect("resolves"),
            ),
            enforcement: self.enforcement,
            model: ModelSettings { name: "scripted".into(), ..ModelSettings::default() },
            search: self.external.then(|| SearchSettings { provider: "search".into(), name: "sonar".into() }),
            managed_retrieval: None,
            limits: self.limits,
            seed: None,
            withhold_history: self.withhold_history,
        };
        let env = AgentContext::new(
            Arc::clone(&model) as Arc<dyn ChatModel>,
            self.external.then(|| Arc::new(service) as Arc<dyn SearchService>),
            self.knowledge,
            Arc::new(KeywordIndex::in_memory()),
            Arc::new(clock.clone()),
            Arc::new(FiveMillis(clock.clone())),
            Arc::new(settings),
        );
        (model, env)
    }
}

impl Played {
    /// Checks invariants of every run.
    fn check(&self) {
        let departures = ToolRag.machine().departures(&trace(self.events.clone()));
        assert!(departures.is_empty(), "{departures:?}\n{}", self.story());
        for request in &self.requests {
            let mut open: Vec<&str> = Vec::new();
            for message in &request.messages {
                match &message.answers {
                    Some(id) => {
                        let place = open.iter().position(|call| call == id).expect("every result answers a call");
                        open.remove(place);
                    }
                    None => assert!(open.is_empty(), "every call is answered before anything else is said"),
                }
                open.extend(message.calls.iter().map(|call| call.id.as_str()));
            }
            assert!(open.is_empty(), "every call is answered");
        }
        let shown: Vec<usize> = self.completions().map(|called| called.shown.len()).collect();
        let sent: Vec<usize> = self.requests.iter().map(|request| request.messages.len()).collect();
        assert!(shown == sent[..shown.len()], "the record shows what was sent");
    }

    fn completions(&self) -> impl Iterator<Item = &crate::trace::ModelCalled> {
        self.events.iter().filter_map(|event| match &event.what {
            What::ModelCalled(called) => Some(called),
            _ => None,
        })
    }

    fn tools(&self) -> Vec<&ToolCalled> {
        let called = |event: &'_ Event| matches!(event.what, What::ToolCalled(_));
        let take = |event| match event {
            &Event { what: What::ToolCalled(ref called), .. } => called,
            _ => unreachable!("filtered"),
        };
        self.events.iter().filter(|event| called(event)).map(take).collect()
    }

    fn retries(&self) -> Vec<&Retried> {
        self.events
            .iter()
            .filter_map(|event| match &event.what {
                What::Retried(retried) => Some(retried),
                _ => None,
            })
            .collect()
    }

    /// How each turn ended: `answered`, or the kind of the failure.
    fn ends(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match &event.what {
                What::TurnEnded(ended) => Some(match &ended.outcome {
                    TurnOutcome::Answered(_) => "answered",
                    TurnOutcome::Failed { kind, .. } => kind.as_str(),
                }),
                _ => None,
            })
            .collect()
    }

    /// The conversation as numbered lines.
    fn story(&self) -> String {
        let mut told = String::new();
        for (number, event) in (1..).zip(&self.events) {
            let line = match &event.what {
                What::Searched(_) | What::Requested(_) => unreachable!("the flow searches through its tools"),
                What::ConversationStarted { name, .. } => format!("conversation {name}"),
                What::TurnStarted { query } => format!("user: {query}"),
                What::Moved(moved) => format!("  {} -{}-> {}", moved.from, moved.on, moved.to),
                What::ModelCalled(called) => match &called.reply {
                    Replied::Completion(done) if done.calls.is_empty() => {
                        format!(
                            "model ({}): {}{}",
                            called.tool_choice,
                            done.text,
                            done.refusal.as_deref().unwrap_or("")
                        )
                    }
                    Replied::Completion(done) => {
                        format!("model ({}) calls {}", called.tool_choice, done.calls.join(", "))
                    }
                    Replied::Failure { kind, .. } => format!("model failed: {kind}"),
                },
                What::ToolCalled(called) => format!("{}: {}", called.tool, outcome(&called.outcome)),
                What::FedBack(fed) => format!("feedback {} ({}): {}", fed.step, fed.cause, fed.message),
                What::Retried(one) => {
                    let (account, end) = (one.account.as_str(), if one.recovered { "recovered" } else { "did not" });
                    format!("retry {account} {}.{} {} ({}): {end}", one.episode, one.attempt, one.target, one.cause)
                }
                What::Degraded { without, reason } => format!("goes on without {without}: {reason}"),
                What::Logged(entry) => format!("log: {}", entry.described().0),
                What::TurnEnded(ended) => match &ended.outcome {
                    TurnOutcome::Answered(answer) => format!("answer: {} {:?}", answer.text, answer.sources.len()),
                    TurnOutcome::Failed { kind, message } => format!("error {kind}: {message}"),
                },
            };
            let _ = writeln!(told, "{number:02} {:>7} {line}", event.at_us);
        }
        told
    }
}

fn outcome(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Ok(ToolResult::Search(found)) => {
            format!("ok {:?}", found.hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>())
        }
        ToolOutcome::Ok(ToolResult::External(external)) => format!("ok {}", external.result),
        ToolOutcome::Ok(ToolResult::Indexed(done)) => format!("ok {:?} merged {:?}", done.read_back, done.merged),
        ToolOutcome::Ok(_) => "ok".into(),
        ToolOutcome::Rejected(why) => format!("rejected {}: {}", why.cause, why.reason),
        ToolOutcome::OutOfOrder(why) => format!("out of order: {}", why.reason),
        ToolOutcome::Failed { message, retryable } => format!("failed (retryable {retryable}): {message}"),
        ToolOutcome::Unseen { reason } => format!("unseen: {reason}"),
    }
}

fn trace(events: Vec<Event>) -> Trace {
    crate::flow::scripted::trace(&FLOW, events)
}
