//! Runs whole conversations with scripted models through the real flow on the virtual clock, and checks every run
//! against the state machine.

mod ends;
mod stages;
mod wander;

use super::*;
use crate::flow::scripted::{self, NoTime, Says, Scripted};
use crate::flow::two_stage::tools::RETRIEVE_DOCUMENTS;
use crate::flow::{AgentContext, Flow};
use crate::knowledge::{
    Corpus, Embedded, KeywordIndex, KnowledgeBase, KnowledgeBases, KnowledgeError, Passage, Search,
};
use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
use crate::provider::ChatModel;
use crate::provider::chat::{ChatRequest, Finish};
use crate::settings::{Enforcement, Limits};
use crate::trace::{Event, Moved, Reply as Replied, ToolCalled, ToolOutcome, ToolResult, Trace, What};
use serde_json::json;
use std::sync::Arc;

fn retrieve(query: &str) -> Says {
    Says::Calls(vec![(RETRIEVE_DOCUMENTS, json!({"query": query}))])
}

const REFUSAL: &str = "I found nothing about this in the knowledge base.";

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

/// Result of a conversation.
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
    let model = Scripted::new(&clock, model);
    let settings = scripted::settings(&FLOW, limits, Enforcement::Feedback);
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
    let played = Played { events: env.take_events(), requests: model.requests(), conversation };
    let departures = TwoStage.machine().departures(&trace(played.events.clone()));
    assert!(departures.is_empty(), "{departures:?}");
    played
}

impl Played {
    fn ends(&self) -> Vec<&str> {
        scripted::ends(&self.events)
    }

    fn moves(&self) -> Vec<&Moved> {
        scripted::moves(&self.events)
    }

    fn answer(&self) -> &Answer {
        scripted::answers(&self.events).pop().expect("an answer")
    }

    fn calls(&self) -> Vec<&ToolCalled> {
        scripted::calls(&self.events)
    }
}

fn trace(events: Vec<Event>) -> Trace {
    crate::flow::scripted::trace(&FLOW, events)
}
