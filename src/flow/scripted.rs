//! Test support for all flows: a scripted model, the outcomes of its turns, a trace of them, and stages that take no
//! time.

use super::{Flow, Prompts, Services, Settings, Stages, roles};
use crate::platform::clock::{BoxFuture, Clock, VirtualClock};
use crate::provider::chat::{ChatRequest, ChatResponse, Finish, ToolCall, Usage};
use crate::provider::{Attempt, Attempted, ChatModel, ErrorKind, ProviderError};
use crate::settings::{Enforcement, Limits, ModelSettings};
use crate::trace::{Answer, Arm, Event, Evidence, Lane, Mode, Moved, ToolCalled, Trace, TurnOutcome, What};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Stages that take no time.
pub(in crate::flow) struct NoTime;

impl Stages for NoTime {
    fn spent<'a>(&'a self, _: &'static str, _: Duration) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// One scripted completion, or its failure.
#[derive(Clone)]
pub(in crate::flow) enum Says {
    Calls(Vec<(&'static str, Value)>),
    Text(&'static str),
    /// A text that ended for the given reason.
    Ends(&'static str, Finish),
    Refuses,
    /// The provider returns HTTP 500.
    Fails,
    /// No answer within the request's time limit.
    TimesOut,
    /// Answers after every time limit of a turn.
    Late,
}

/// A model that follows a script, 100 ms per completion, and keeps its requests.
pub(in crate::flow) struct Scripted {
    clock: VirtualClock,
    script: Mutex<VecDeque<Says>>,
    requests: Mutex<Vec<ChatRequest>>,
    /// Whether calls have ids and the matching finish reason.
    exact: bool,
}

impl Scripted {
    pub(in crate::flow) fn new(clock: &VirtualClock, script: Vec<Says>) -> Arc<Self> {
        Arc::new(Self {
            clock: clock.clone(),
            script: Mutex::new(script.into()),
            requests: Mutex::default(),
            exact: true,
        })
    }

    /// A model behind a server that omits call ids and reports that the model stopped.
    pub(in crate::flow) fn loose(clock: &VirtualClock, script: Vec<Says>) -> Arc<Self> {
        Arc::new(Self {
            clock: clock.clone(),
            script: Mutex::new(script.into()),
            requests: Mutex::default(),
            exact: false,
        })
    }

    /// Requests, in order.
    pub(in crate::flow) fn requests(&self) -> Vec<ChatRequest> {
        self.requests.lock().expect("not poisoned").clone()
    }
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
            let attempt = |status, cause| {
                Attempt::new(crate::transport::Service::Model, Some(status), cause, Duration::from_millis(100))
            };
            let (content, refusal, made, finish) = match says {
                Says::Fails => {
                    let (kind, message) = (ErrorKind::Server, "upstream is down".to_owned());
                    let result = Err(ProviderError::Failed { kind, status: Some(500), message });
                    return Attempted { result, attempts: vec![attempt(500, Some(kind))] };
                }
                Says::TimesOut => {
                    let (kind, message) = (ErrorKind::Timeout, "no answer in time".to_owned());
                    let result = Err(ProviderError::Failed { kind, status: None, message });
                    return Attempted { result, attempts: vec![attempt(504, Some(kind))] };
                }
                Says::Late => {
                    self.clock.sleep(Duration::from_secs(999)).await;
                    ("late".to_owned(), None, Vec::new(), Finish::Stop)
                }
                Says::Refuses => (String::new(), Some("No.".to_owned()), Vec::new(), Finish::Stop),
                Says::Text(text) => (text.to_owned(), None, Vec::new(), Finish::Stop),
                Says::Ends(text, finish) => (text.to_owned(), None, Vec::new(), finish),
                Says::Calls(all) if self.exact => (String::new(), None, all, Finish::ToolCalls),
                Says::Calls(all) => (String::new(), None, all, Finish::Stop),
            };
            let one = |(index, (name, arguments)): (usize, (&str, Value))| ToolCall {
                id: if self.exact { format!("c{number}-{index}") } else { String::new() },
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

/// Settings of a flow without services, with its shipped prompts.
pub(in crate::flow) fn settings(flow: &dyn Flow, limits: Limits, enforcement: Enforcement) -> Settings {
    Settings {
        prompts: Arc::new(Prompts::resolve(flow, &BTreeMap::new(), Services::default()).expect("resolves")),
        enforcement,
        model: ModelSettings { name: "scripted".into(), ..ModelSettings::default() },
        search: None,
        managed_retrieval: None,
        limits,
        seed: None,
        withhold_history: false,
    }
}

pub(in crate::flow) fn outcomes(events: &[Event]) -> impl Iterator<Item = &TurnOutcome> {
    events.iter().filter_map(|event| match &event.what {
        What::TurnEnded(ended) => Some(&ended.outcome),
        _ => None,
    })
}

/// Outcomes in one word: `answered`, `refused`, or the kind of the failure.
pub(in crate::flow) fn ends(events: &[Event]) -> Vec<&str> {
    outcomes(events)
        .map(|outcome| match outcome {
            TurnOutcome::Answered(answer) if answer.refused => "refused",
            TurnOutcome::Answered(_) => "answered",
            TurnOutcome::Failed { kind, .. } => kind.as_str(),
        })
        .collect()
}

pub(in crate::flow) fn answers(events: &[Event]) -> Vec<&Answer> {
    outcomes(events)
        .filter_map(|outcome| if let TurnOutcome::Answered(answer) = outcome { Some(answer) } else { None })
        .collect()
}

/// The transitions between states.
pub(in crate::flow) fn moves(events: &[Event]) -> Vec<&Moved> {
    events.iter().filter_map(|event| if let What::Moved(moved) = &event.what { Some(moved) } else { None }).collect()
}

pub(in crate::flow) fn calls(events: &[Event]) -> Vec<&ToolCalled> {
    events
        .iter()
        .filter_map(|event| if let What::ToolCalled(called) = &event.what { Some(called) } else { None })
        .collect()
}

/// A completed trial of a flow with these events.
pub(in crate::flow) fn trace(flow: &dyn Flow, events: Vec<Event>) -> Trace {
    let lane = Lane { flow: flow.description().name.into(), variant: "base".into(), repetition: 1, arm: Arm::Main };
    let evidence = Evidence::new(Mode::Replay, "script".into(), "scripted");
    let trace = Trace::of("t".into(), lane, 0, evidence);
    Trace { scenario: "s".into(), case: "c".into(), roles: roles(flow), events, ..trace }
}
