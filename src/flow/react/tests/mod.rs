//! Runs whole conversations with scripted models through the real flow on the virtual clock, and checks every run
//! against the state machine.

mod ends;
mod kept;
mod steps;
mod wander;

use super::tools::{ANALYSE, ASSESS, SEARCH};
use super::*;
use crate::flow::scripted::{self, NoTime, Says, Scripted};
use crate::flow::{Flow, SessionStore, StoreError};
use crate::knowledge::{
    Corpus, Embedded, KeywordIndex, KnowledgeBase, KnowledgeBases, KnowledgeError, Passage, Search,
};
use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
use crate::provider::ChatModel;
use crate::provider::chat::{ChatRequest, Finish, Role};
use crate::settings::{Enforcement, Limits};
use crate::trace::{Event as Recorded, Moved, TurnOutcome};
use serde_json::json;
use std::sync::{Arc, Mutex};

fn search(query: &str, approach: &str) -> Says {
    Says::Calls(vec![(SEARCH, json!({"reasoning": "The terms should say it.", "query": query, "approach": approach}))])
}

fn grades(relevant: &[u64], goal_met: bool) -> Says {
    let summary = format!("Passages {relevant:?} tell of the warranty.");
    let said = json!({"observation": "As seen.", "relevant": relevant, "goal_met": goal_met, "summary": summary});
    Says::Calls(vec![(ASSESS, said)])
}

fn analysis(lesson: &str) -> Says {
    Says::Calls(vec![(ANALYSE, json!({"cause": "The words were wrong.", "lesson": lesson}))])
}

/// A turn through every state, with a failure in it.
fn whole() -> Vec<Says> {
    vec![
        search("frost warranty", "direct"),
        grades(&[], false),
        analysis("Leave the frost out."),
        search("warranty months", "broader"),
        grades(&[1, 2, 3], true),
        Says::Text("24 months [1]."),
    ]
}

/// A base that fails a given number of times.
struct Failing(Mutex<u32>, Arc<dyn KnowledgeBase>);

impl KnowledgeBase for Failing {
    fn search<'a>(&'a self, query: &'a str, top_k: usize) -> BoxFuture<'a, Search> {
        let mut left = self.0.lock().expect("not poisoned");
        if *left == 0 {
            return self.1.search(query, top_k);
        }
        *left -= 1;
        let error = KnowledgeError::Foreign { path: "index".into(), why: crate::knowledge::ForeignFile::NotSqlite };
        Box::pin(std::future::ready(Search::local(Err(error))))
    }

    fn hash(&self) -> String {
        "failing".into()
    }
}

/// A store that keeps everything ever saved, with its state.
#[derive(Debug, Default)]
struct Recording {
    saved: Mutex<Vec<(String, String)>>,
    unusable: bool,
}

impl SessionStore for Recording {
    fn save(&self, _: &str, state: &str, text: &str) -> Result<(), StoreError> {
        if self.unusable {
            return Err(StoreError::Unusable("full".into()));
        }
        self.saved.lock().expect("not poisoned").push((state.to_owned(), text.to_owned()));
        Ok(())
    }

    fn load(&self, _: &str) -> Result<Option<String>, StoreError> {
        Ok(self.saved.lock().expect("not poisoned").last().map(|(_, text)| text.clone()))
    }

    fn clear(&self, _: &str) -> Result<(), StoreError> {
        self.saved.lock().expect("not poisoned").clear();
        Ok(())
    }
}

fn base(failures: u32) -> KnowledgeBases {
    let passage = |n: u32, text: String| Passage { id: format!("warranty#{n}"), title: "Warranty".into(), text };
    let texts = (1..=3).map(|n| passage(n, format!("The warranty lasts 24 months, part {n}.")));
    let corpus = Corpus::of("north", texts.chain([passage(4, "Frost guard and heater.".into())]).collect());
    let base = Arc::new(Embedded::open(corpus, None).expect("opens"));
    KnowledgeBases::new(vec![("north".into(), Arc::new(Failing(Mutex::new(failures), base)))])
}

/// How a conversation is played.
struct Play {
    limits: Limits,
    failures: u32,
    enforcement: Enforcement,
    store: Arc<Recording>,
    conversation: ConversationState,
}

impl Default for Play {
    fn default() -> Self {
        Self {
            limits: Limits { model_calls: 30, ..Limits::default() },
            failures: 0,
            enforcement: Enforcement::Feedback,
            store: Arc::default(),
            conversation: ConversationState::new(0, "main"),
        }
    }
}

/// Result of a conversation.
struct Played {
    events: Vec<Recorded>,
    requests: Vec<ChatRequest>,
    conversation: ConversationState,
    store: Arc<Recording>,
}

fn play(model: Vec<Says>, queries: &[&str]) -> Played {
    Play::default().of(model, queries)
}

impl Play {
    fn of(self, model: Vec<Says>, queries: &[&str]) -> Played {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let model = Scripted::loose(&clock, model);
        let settings = scripted::settings(&FLOW, self.limits, self.enforcement);
        let mut env = AgentContext::new(
            Arc::clone(&model) as Arc<dyn ChatModel>,
            None,
            base(self.failures),
            Arc::new(KeywordIndex::in_memory()),
            Arc::new(clock.clone()),
            Arc::new(NoTime),
            Arc::new(settings),
        );
        env.sessions = Arc::clone(&self.store) as Arc<dyn SessionStore>;
        let mut conversation = self.conversation;
        let fresh = conversation.turns == 0;
        env.conversation_started(&conversation);
        for query in queries {
            block_on(&clock, FLOW.turn(&env, &mut conversation, query)).expect("no deadlock").expect("no abort");
        }
        let requests = model.requests();
        let played = Played { events: env.take_events(), requests, conversation, store: self.store };
        if fresh {
            let trace = scripted::trace(&FLOW, played.events.clone());
            let departures = FLOW.machine().departures(&trace);
            assert!(departures.is_empty(), "{departures:?}");
        }
        played
    }
}

impl Played {
    fn outcomes(&self) -> Vec<&TurnOutcome> {
        scripted::outcomes(&self.events).collect()
    }

    /// The text of the last turn's answer or error, and `answered` or the error's kind.
    fn end(&self) -> (&str, &str) {
        match self.outcomes().last().expect("a turn") {
            TurnOutcome::Answered(answer) => (answer.text.as_str(), "answered"),
            TurnOutcome::Failed { kind, message } => (message.as_str(), kind.as_str()),
        }
    }

    fn sources(&self) -> Vec<&str> {
        match self.outcomes().last().expect("a turn") {
            TurnOutcome::Answered(answer) => answer.sources.iter().map(|source| source.id.as_str()).collect(),
            TurnOutcome::Failed { .. } => Vec::new(),
        }
    }

    fn log(&self) -> Vec<&Logged> {
        self.events
            .iter()
            .filter_map(|event| if let What::Logged(entry) = &event.what { Some(entry) } else { None })
            .collect()
    }

    fn moves(&self) -> Vec<&Moved> {
        scripted::moves(&self.events)
    }

    fn took(&self, on: &str) -> usize {
        self.moves().iter().filter(|moved| moved.on == on).count()
    }

    /// All messages sent to the model in one request.
    fn shown(&self, request: usize) -> String {
        let messages = self.requests[request].messages.iter();
        messages.map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
    }
}
