//! Runs whole conversations through the real flow on the virtual clock, with a scripted model and a scripted service,
//! and checks every run against the state machine.

mod answers;
mod ends;
mod wander;

use super::tools::NUCLIA_RAG;
use super::*;
use crate::flow::scripted::{self, NoTime, Says, Scripted};
use crate::flow::{AgentContext, Flow, Settings};
use crate::knowledge::{KeywordIndex, KnowledgeBases};
use crate::platform::clock::{BoxFuture, VirtualClock, block_on};
use crate::provider::chat::{ChatRequest, Finish};
use crate::provider::{Access, ChatModel, ManagedRetrieval, RetryPolicy};
use crate::settings::{Enforcement, Limits, ManagedRetrievalSettings, TemplateParameter};
use crate::trace::{Event, ManagedAnswer, Moved, ToolCalled, ToolOutcome, ToolResult, What};
use crate::transport::{HttpRequest, HttpResponse, Transport, TransportError};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const REFUSAL: &str = "I found nothing about this in the knowledge base.";
const HOST: &str = "europe-1.nuclia.cloud";
const TOKEN: &str = "planted-token-0451";

fn ask(query: &str) -> Says {
    Says::Calls(vec![(NUCLIA_RAG, json!({"query": query}))])
}

/// The service: it knows how long warranties last and, from a text without a file, the opening hours, holds nothing else, and fails on request.
#[derive(Default)]
struct Service {
    requests: Mutex<Vec<HttpRequest>>,
}

impl Service {
    fn answer(query: &str) -> (u16, Value) {
        if query.contains("broken") {
            return (400, json!({"detail": format!("no such label at https://{HOST} for {TOKEN}")}));
        }
        if query.contains("opening hours") {
            let passage = json!({"text": "Open from nine.", "score": 1.0});
            let resource = json!({"title": "Hours", "fields": {"/t/page": {"paragraphs": {"h/t/page/0-9": passage}}}});
            let answer = json!({
                "answer": "From nine.", "status": "success", "retrieval_results": {"resources": {"h": resource}},
                "citations": {"h/t/page/0-9": [[0, 10]]},
            });
            return (200, answer);
        }
        if !query.contains("warranty") {
            return (
                200,
                json!({"answer": "Not enough data to answer this.", "status": "no_context", "learning_id": "l0"}),
            );
        }
        let paragraph =
            |page: u32| json!({"text": "The warranty lasts.", "score": 1.0, "position": {"page_number": page}});
        (
            200,
            json!({
                "answer": "👨‍🔧 It lasts 24 months. The pump: 60 months.", "status": "success", "learning_id": "l1",
                "retrieval_results": {"resources": {"w": {"title": "Warranty", "data": {"files": {"file": {"value": {"file": {
                    "filename": "warranty.pdf", "uri": format!("https://{HOST}/kb/w?token={TOKEN}")}}}}},
                    "fields": {"/f/file": {"paragraphs": {"w/f/file/0-9": paragraph(1), "w/f/file/9-20": paragraph(4)}}}}}},
                "citations": {"w/f/file/0-9": [[4, 23]], "w/f/file/9-20": [[25, 45]]},
                "metadata": {"tokens": {"input": 400, "output": 30}}
            }),
        )
    }
}

impl Transport for Service {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let (status, body) = Self::answer(request.body["query"].as_str().unwrap_or_default());
        self.requests.lock().expect("not poisoned").push(request);
        let (headers, chunks) = (Vec::new(), Vec::new());
        let response = HttpResponse { status, headers, body: body.to_string().into(), took: Duration::ZERO, chunks };
        Box::pin(std::future::ready(Ok(response)))
    }
}

/// Result of a conversation.
struct Played {
    events: Vec<Event>,
    requests: Vec<ChatRequest>,
    asked: Vec<HttpRequest>,
    conversation: ConversationState,
}

/// How a conversation is played.
#[derive(Clone)]
struct Stage {
    limits: Limits,
    enforcement: Enforcement,
    settings: ManagedRetrievalSettings,
    context: Map<String, Value>,
}

impl Default for Stage {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            enforcement: Enforcement::Feedback,
            settings: ManagedRetrievalSettings {
                base_url: format!("https://{HOST}/api/v1"),
                kb_id: "box".into(),
                ..ManagedRetrievalSettings::default()
            },
            context: Map::new(),
        }
    }
}

impl Stage {
    fn play(&self, model: Vec<Says>, queries: &[&str]) -> Played {
        let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
        let model = Scripted::new(&clock, model);
        let settings = Settings {
            managed_retrieval: Some(self.settings.clone()),
            ..scripted::settings(&FLOW, self.limits.clone(), self.enforcement)
        };
        let service = Arc::new(Service::default());
        let transport = Arc::clone(&service) as Arc<dyn Transport>;
        let access = Access { transport, clock: Arc::new(clock.clone()), policy: RetryPolicy::default() };
        let mut env = AgentContext::new(
            Arc::clone(&model) as Arc<dyn ChatModel>,
            None,
            KnowledgeBases::new(Vec::new()),
            Arc::new(KeywordIndex::in_memory()),
            Arc::new(clock.clone()),
            Arc::new(NoTime),
            Arc::new(settings),
        );
        env.managed_retrieval = Some(ManagedRetrieval::keeping(("NUCLIA_TOKEN", TOKEN), &access, &self.settings));
        let mut conversation = ConversationState::new(0, "main").knowing(self.context.clone());
        env.conversation_started(&conversation);
        for query in queries {
            block_on(&clock, ManagedRag.turn(&env, &mut conversation, query)).expect("no deadlock").expect("no abort");
        }
        let asked = service.requests.lock().expect("not poisoned").clone();
        let played = Played { events: env.take_events(), requests: model.requests(), asked, conversation };
        let departures = ManagedRag.machine().departures(&scripted::trace(&FLOW, played.events.clone()));
        assert!(departures.is_empty(), "{departures:?}");
        played
    }
}

/// Plays one conversation with the default setup.
fn play(model: Vec<Says>, queries: &[&str]) -> Played {
    Stage::default().play(model, queries)
}

impl Played {
    fn ends(&self) -> Vec<&str> {
        scripted::ends(&self.events)
    }

    fn answers(&self) -> Vec<&Answer> {
        scripted::answers(&self.events)
    }

    fn moves(&self) -> Vec<&Moved> {
        scripted::moves(&self.events)
    }

    fn calls(&self) -> Vec<&ToolCalled> {
        scripted::calls(&self.events)
    }

    /// The results built from the service's answers.
    fn managed(&self) -> Vec<&ManagedAnswer> {
        self.calls()
            .into_iter()
            .filter_map(|call| match &call.outcome {
                ToolOutcome::Ok(ToolResult::Search(search)) => search.managed.as_deref(),
                _ => None,
            })
            .collect()
    }

    /// Tool messages sent to the model, in order.
    fn told(&self) -> Vec<Value> {
        let last = self.requests.last().map(|request| request.messages.as_slice()).unwrap_or_default();
        let tools = last.iter().filter(|message| message.role == Role::Tool);
        tools.map(|message| serde_json::from_str(&message.content).expect("JSON")).collect()
    }
}
