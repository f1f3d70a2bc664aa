//! Scripted models drive whole conversations through the real flow, on the virtual clock; every run is also held against
//! the state machine.

mod ends;
mod stages;
mod wander;

use super::*;
use crate::chat::{ChatRequest, ChatResponse, Finish, ToolCall, Usage};
use crate::clock::{Clock, VirtualClock, block_on};
use crate::flow::scripted::NoTime;
use crate::flow::two_stage::tools::RETRIEVE_DOCUMENTS;
use crate::flow::{Prompts, Services, Settings};
use crate::knowledge::{
    Corpus, Embedded, KeywordIndex, KnowledgeBase, KnowledgeBases, KnowledgeError, Passage, Search,
};
use crate::provider::{Attempt, Attempted, ChatModel, ErrorKind, ProviderError};
use crate::settings::{Enforcement, Limits, ModelSettings};
use crate::trace::{Event, Moved, Reply as Replied, ToolCalled, ToolOutcome, ToolResult, Trace, What};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One scripted completion, or its failure.
#[derive(Clone)]
enum Says {
    Calls(Vec<(&'static str, Value)>),
    Text(&'static str),
    Ends(&'static str, Finish),
    Refuses,
    Fails,
    Late,
}

fn retrieve(query: &str) -> Says {
    Says::Calls(vec![(RETRIEVE_DOCUMENTS, json!({"query": query}))])
}

const REFUSAL: &str = "I found nothing about this in the knowledge base.";

struct Scripted {
    clock: VirtualClock,
    script: Mutex<VecDeque<Says>>,
    requests: Mutex<Vec<ChatRequest>>,
}

impl ChatModel for Scripted {
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>> {
        let number = {
            let mut requests = self.requests.lock().expect("not poisoned");
            requests.push(request.clone());
            requests.len()
        };
        let says = self.script.lock().expect("not poisoned").pop_front().unwrap_or(Says::Text("(script over)"));
        Box::pin(async move {
            self.clock.sleep(Duration::from_millis(100)).await;
            let attempt = |status, cause| Attempt {
                status: Some(status),
                cause,
                took: Duration::from_millis(100),
                wait: None,
                first_token: None,
                declared_fault: false,
            };
            let (content, refusal, made, finish) = match says {
                Says::Fails => {
                    let (kind, message) = (ErrorKind::Server, "upstream is down".to_owned());
                    let result = Err(ProviderError::Failed { kind, status: Some(500), message });
                    return Attempted { result, attempts: vec![attempt(500, Some(kind))] };
                }
                Says::Late => {
                    self.clock.sleep(Duration::from_secs(999)).await;
                    ("late".to_owned(), None, Vec::new(), Finish::Stop)
                }
                Says::Refuses => (String::new(), Some("No.".to_owned()), Vec::new(), Finish::Stop),
                Says::Text(text) => (text.to_owned(), None, Vec::new(), Finish::Stop),
                Says::Ends(text, finish) => (text.to_owned(), None, Vec::new(), finish),
                Says::Calls(all) => (String::new(), None, all, Finish::ToolCalls),
            };
            let one = |(index, (name, arguments)): (usize, (&str, Value))| ToolCall {
                id: format!("c{number}-{index}"),
                name: name.into(),
                arguments: arguments.to_string(),
            };
            let calls = made.into_iter().enumerate().map(one).collect();
            let usage = Usage::default();
            let response =
                ChatResponse { model: "scripted".into(), content, refusal, calls, finish, usage, passthrough: None };
            Attempted { result: Ok(response), attempts: vec![attempt(200, None)] }
        })
    }
}

/// A base that fails.
struct Broken;

impl KnowledgeBase for Broken {
    fn search<'a>(&'a self, _: &'a str, _: usize) -> BoxFuture<'a, Search> {
        let error = KnowledgeError::Foreign { path: "index".into(), why: crate::knowledge::ForeignFile::NotSqlite };
        Box::pin(std::future::ready(Search::local(Err(error))))
    }

    fn hash(&self) -> String {
        "broken".into()
    }

    fn id(&self) -> &'static str {
        "broken"
    }
}

fn bases() -> KnowledgeBases {
    let base = |name: &str, months: &str| {
        let passage = |n: u32| Passage {
            id: format!("warranty#{n}"),
            title: "Warranty".into(),
            text: format!("The warranty of {name} lasts {months} months, part {n}."),
        };
        let base = Embedded::open(Corpus::of(name, (1..=7).map(passage).collect()), None).expect("opens");
        (name.to_owned(), Arc::new(base) as Arc<dyn KnowledgeBase>)
    };
    let broken: (String, Arc<dyn KnowledgeBase>) = ("broken".into(), Arc::new(Broken));
    KnowledgeBases::new(vec![base("north", "24"), base("south", "60"), broken])
}

/// What came of a conversation.
struct Played {
    events: Vec<Event>,
    requests: Vec<ChatRequest>,
    conversation: ConversationState,
}

/// Plays one conversation of a tenant.
fn play(tenant: &str, model: Vec<Says>, queries: &[&str]) -> Played {
    play_within(Limits::default(), tenant, model, queries)
}

fn play_within(limits: Limits, tenant: &str, model: Vec<Says>, queries: &[&str]) -> Played {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let model =
        Arc::new(Scripted { clock: clock.clone(), script: Mutex::new(model.into()), requests: Mutex::default() });
    let settings = Settings {
        prompts: Arc::new(Prompts::resolve(&FLOW, &BTreeMap::new(), Services::default()).expect("resolves")),
        enforcement: Enforcement::Feedback,
        model: ModelSettings { name: "scripted".into(), ..ModelSettings::default() },
        search: None,
        managed_retrieval: None,
        limits,
        seed: None,
        withhold_history: false,
    };
    let env = AgentContext::new(
        Arc::clone(&model) as Arc<dyn ChatModel>,
        None,
        bases(),
        Arc::new(KeywordIndex::in_memory()),
        Arc::new(clock.clone()),
        Arc::new(NoTime),
        Arc::new(settings),
    );
    let mut conversation = ConversationState::new(0, "main").of_tenant(Some(tenant));
    env.conversation_started(&conversation);
    for query in queries {
        block_on(&clock, TwoStage.turn(&env, &mut conversation, query)).expect("no deadlock").expect("no abort");
    }
    let requests = model.requests.lock().expect("not poisoned").clone();
    let played = Played { events: env.take_events(), requests, conversation };
    let departures = TwoStage.machine().departures(&trace(played.events.clone()));
    assert!(departures.is_empty(), "{departures:?}");
    played
}

impl Played {
    /// How the turns ended: `answered`, `refused`, or the kind of the failure.
    fn ends(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match &event.what {
                What::TurnEnded(ended) => Some(match &ended.outcome {
                    TurnOutcome::Answered(answer) if answer.refused => "refused",
                    TurnOutcome::Answered(_) => "answered",
                    TurnOutcome::Failed { kind, .. } => kind.as_str(),
                }),
                _ => None,
            })
            .collect()
    }

    fn moves(&self) -> Vec<&Moved> {
        self.events
            .iter()
            .filter_map(|event| if let What::Moved(moved) = &event.what { Some(moved) } else { None })
            .collect()
    }

    fn answer(&self) -> &Answer {
        let answer = self.events.iter().rev().find_map(|event| match &event.what {
            What::TurnEnded(ended) => match &ended.outcome {
                TurnOutcome::Answered(answer) => Some(answer),
                TurnOutcome::Failed { .. } => None,
            },
            _ => None,
        });
        answer.expect("an answer")
    }

    fn calls(&self) -> Vec<&ToolCalled> {
        self.events
            .iter()
            .filter_map(|event| if let What::ToolCalled(called) = &event.what { Some(called) } else { None })
            .collect()
    }
}

fn trace(events: Vec<Event>) -> Trace {
    crate::flow::scripted::trace(&FLOW, events)
}
