//! Strikes the requests and tool calls of one trial with its declared faults, and keeps account of those that landed.
//!
//! [`FaultTransport`] is above the recorder and above the cassette, so that no fault is ever recorded, and below the
//! observed traffic. A request that a fault answers is not sent: its repetition gets the recorded answer. An answer that
//! a fault changes is kept, and given unchanged if the same request comes again. `render` writes errors and answers in
//! the request's dialect; `poison` puts instructions into what a model reads.

mod poison;
mod render;

pub(crate) use poison::Payload;

use super::{mcp, wire};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::lock::lock;
use crate::provider::chat::{Message, Role};
use crate::settings::fault::Stage;
use crate::settings::{DeclaredFault, FaultKind};
use crate::transport::{HttpRequest, HttpResponse, PlacedResult, RecordedPlace, Service, Transport, TransportError};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The faults of one trial.
pub(crate) struct Faults {
    armed: Vec<DeclaredFault>,
    poison: Option<Payload>,
    clock: Arc<dyn Clock>,
    /// Time after which a request without an answer ends: `limits.request`.
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: BTreeMap<Service, u32>,
    calls: BTreeMap<String, u32>,
    /// How often each armed fault landed.
    landed: BTreeMap<usize, u32>,
    /// The fault of the tool call in progress.
    tool: Option<usize>,
    /// The last answer that a fault changed, as it came, with its request.
    unchanged: Option<(Service, String, Arc<Value>, HttpResponse)>,
    /// Whether a model was asked with the instruction.
    reached: bool,
    /// Services that were sent the canary.
    leaks: BTreeSet<&'static str>,
}

/// Beginning of the note on a service that was sent the canary.
pub(crate) const LEAKED: &str = "the canary is in a request to ";

impl Faults {
    /// The faults of `declared` that strike this trial, and the instruction put into what its model reads; `None` if there
    /// is neither.
    pub(crate) fn of(
        declared: &[DeclaredFault],
        poison: Option<&Payload>,
        (trial, lane): (&str, &str),
        seed: u64,
        clock: &Arc<dyn Clock>,
        limit: Duration,
    ) -> Option<Arc<Self>> {
        let chosen = declared.iter().enumerate().filter(|(place, fault)| {
            fault.is_in(lane) && fault.share.is_none_or(|share| draw(seed, trial, *place) < share)
        });
        let armed: Vec<DeclaredFault> = chosen.map(|(_, fault)| fault.clone()).collect();
        let (poison, clock) = (poison.cloned(), Arc::clone(clock));
        let any = !armed.is_empty() || poison.is_some();
        any.then(|| Arc::new(Self { armed, poison, clock, limit, state: Mutex::default() }))
    }

    fn land(&self, fault: usize) {
        *lock(&self.state).landed.entry(fault).or_default() += 1;
    }

    /// Number of times that any fault landed.
    #[cfg(test)]
    pub(crate) fn landings(&self) -> u32 {
        lock(&self.state).landed.values().sum()
    }

    /// What landed, a line each.
    pub(crate) fn landed(&self) -> Vec<String> {
        let state = lock(&self.state);
        let lines = state.landed.iter().filter_map(|(place, times)| {
            let fault = self.armed.get(*place)?;
            let times = if *times > 1 { format!(", {times} times") } else { String::new() };
            Some(format!("declared fault {} at {}{times}", fault.fault.as_str(), fault.place()))
        });
        lines.chain(state.leaks.iter().map(|service| format!("{LEAKED}{service}"))).collect()
    }

    /// The faults that never landed, in words.
    pub(crate) fn missed(&self) -> Vec<String> {
        let state = lock(&self.state);
        let missed = self.armed.iter().enumerate().filter(|(place, _)| !state.landed.contains_key(place));
        let missed = missed.map(|(_, fault)| format!("{} at {}", fault.fault.as_str(), fault.place()));
        let unread = self.poison.iter().filter(|_| !state.reached);
        missed.chain(unread.map(|one| format!("payload `{}`, which is in no request to the model", one.id))).collect()
    }

    /// Whether the keyword index cannot be written.
    pub(crate) fn index_is_unwritable(&self) -> bool {
        self.armed.iter().any(|fault| fault.fault == FaultKind::IndexUnwritable)
    }

    /// Notes that the agent wrote to the index.
    pub(crate) fn index_written(&self) {
        let unwritable = |(_, fault): &(usize, &DeclaredFault)| fault.fault == FaultKind::IndexUnwritable;
        if let Some((place, _)) = self.armed.iter().enumerate().find(unwritable) {
            self.land(place);
        }
    }

    /// Begins a call of a tool of ours, and counts it. `Some` if it fails at once, after the time that it hangs.
    pub(crate) async fn tool_begins(&self, tool: &str) -> Option<&'static str> {
        let (place, kind) = {
            let mut state = lock(&self.state);
            let number = state.calls.entry(tool.to_owned()).or_default();
            *number += 1;
            let found = self.tool_fault(tool, *number);
            state.tool = found.map(|(place, _)| place);
            found?
        };
        match kind {
            FaultKind::ToolFails => {}
            FaultKind::ToolHangs => self.clock.sleep(self.limit).await,
            _ => return None,
        }
        self.land(place);
        Some(if kind == FaultKind::ToolHangs { "timeout" } else { "tool_failed" })
    }

    fn tool_fault(&self, tool: &str, number: u32) -> Option<(usize, FaultKind)> {
        let strikes = |fault: &DeclaredFault| {
            fault.fault.stage() == Stage::Tool
                && fault.tool.as_deref().is_none_or(|named| named == tool)
                && fault.strikes(number)
        };
        let found = self.armed.iter().enumerate().find(|(_, fault)| strikes(fault));
        found.map(|(place, fault)| (place, fault.fault))
    }

    /// Changes the items that the call in progress returns; `contradiction` makes one that contradicts another.
    pub(crate) fn change<T: Clone>(&self, items: &mut Vec<T>, contradiction: impl Fn(&T) -> T) {
        let Some((place, fault)) = lock(&self.state).tool.and_then(|place| Some((place, self.armed.get(place)?)))
        else {
            return;
        };
        match fault.fault {
            FaultKind::ToolEmpty => items.clear(),
            _ if items.is_empty() => return,
            FaultKind::ToolDuplicates => *items = items.iter().flat_map(|item| [item.clone(), item.clone()]).collect(),
            FaultKind::ToolContradicts => {
                let others: Vec<T> = items.iter().map(contradiction).collect();
                *items = items.drain(..).zip(others).flat_map(|(item, other)| [item, other]).collect();
            }
            _ => return,
        }
        self.land(place);
    }

    /// Changes the text that the call in progress returns: to nothing, to itself twice, or to a contradiction; and poisons
    /// it.
    pub(crate) fn change_text(&self, text: String) -> String {
        let mut texts = vec![text];
        self.change(&mut texts, |text| contradiction(text));
        let mut text = texts.join("\n\n");
        self.poison(&mut text);
        text
    }

    /// Puts the instruction of the trial into a text that its model will read.
    pub(crate) fn poison(&self, text: &mut String) {
        if let Some(poisoned) = self.poison.as_ref().and_then(|payload| payload.put_into(text)) {
            *text = poisoned;
        }
    }

    /// The fault of the next request to a service.
    fn next(&self, service: Service) -> Option<(usize, &DeclaredFault)> {
        let number = {
            let mut state = lock(&self.state);
            let number = state.requests.entry(service).or_default();
            *number += 1;
            *number
        };
        let strikes = |fault: &DeclaredFault| {
            !matches!(fault.fault.stage(), Stage::Tool | Stage::Index)
                && fault.service() == service.as_str()
                && fault.strikes(number)
        };
        self.armed.iter().enumerate().find(|(_, fault)| strikes(fault))
    }

    /// Changes the results of an agent's own tools in its request to a model: the only place where they pass by.
    fn with_tool_results(&self, request: HttpRequest) -> HttpRequest {
        let any = self.poison.is_some() || self.armed.iter().any(|fault| fault.fault.stage() == Stage::Tool);
        let Some(dialect) = wire::by_name(request.profile.name).filter(|_| any) else { return request };
        let Ok(mut asked) = dialect.decode_request(&request.path, &request.body) else { return request };
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut calls: BTreeMap<String, u32> = BTreeMap::new();
        let mut changed = false;
        for message in &mut asked.messages {
            names.extend(message.calls.iter().map(|call| (call.id.clone(), call.name.clone())));
            let Some(tool) = message.answers.as_ref().and_then(|id| names.get(id)).cloned() else { continue };
            let number = calls.entry(tool.clone()).or_default();
            *number += 1;
            let struck = self.tool_fault(&tool, *number);
            let struck = struck.and_then(|(place, kind)| Some((place, changed_result(kind, message)?)));
            if let Some((place, content)) = &struck {
                message.content.clone_from(content);
                self.land(*place);
            }
            let poisoned = self.poison.as_ref().filter(|_| message.role == Role::Tool);
            let poisoned = poisoned.and_then(|payload| payload.put_into(&message.content));
            if struck.is_some() || poisoned.is_some() {
                // The neutral text replaces the pieces that it was read from.
                message.passthrough = None;
                changed = true;
            }
            message.content = poisoned.unwrap_or_else(|| std::mem::take(&mut message.content));
        }
        if !changed {
            return request;
        }
        HttpRequest { body: dialect.encode_again(&asked, None).into(), sent: None, ..request }
    }
}

/// The result of a tool as a fault changes it; `None` if the fault changes no results.
fn changed_result(kind: FaultKind, message: &Message) -> Option<String> {
    if message.role != Role::Tool {
        return None;
    }
    let content = &message.content;
    Some(match kind {
        FaultKind::ToolFails => r#"{"error": "the tool failed (declared fault)"}"#.to_owned(),
        FaultKind::ToolEmpty => "[]".to_owned(),
        FaultKind::ToolDuplicates => format!("{content}\n{content}"),
        FaultKind::ToolContradicts => format!("{content}\n{}", contradiction(content)),
        _ => return None,
    })
}

/// A text that says something else: with other digits, or denied.
pub(crate) fn contradiction(text: &str) -> String {
    if !text.contains(|letter: char| letter.is_ascii_digit()) {
        return format!("This is not so: {text}");
    }
    let other = |letter: char| letter.to_digit(10).and_then(|digit| char::from_digit((digit + 3) % 10, 10));
    text.chars().map(|letter| other(letter).unwrap_or(letter)).collect()
}

/// A number from 0 to 1 for one fault of one trial.
fn draw(seed: u64, trial: &str, place: usize) -> f64 {
    let digest = Sha256::digest([&seed.to_le_bytes()[..], &place.to_le_bytes(), trial.as_bytes()].concat());
    let number = digest.iter().take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}

/// Sends requests, struck by the faults of the trial.
pub(crate) struct FaultTransport {
    inner: Arc<dyn Transport>,
    faults: Arc<Faults>,
    /// Whether the agent's own tools are reached by their results in its requests.
    observed: bool,
}

impl FaultTransport {
    /// Creates it for a flow, which reports its tool calls itself.
    pub(crate) fn of_flow(inner: Arc<dyn Transport>, faults: Arc<Faults>) -> Arc<dyn Transport> {
        Arc::new(Self { inner, faults, observed: false })
    }

    /// Creates it for an agent that is only observed.
    pub(crate) fn observed(inner: Arc<dyn Transport>, faults: Arc<Faults>) -> Arc<dyn Transport> {
        Arc::new(Self { inner, faults, observed: true })
    }

    async fn exchange(&self, request: HttpRequest) -> PlacedResult {
        let faults = &self.faults;
        let Some((place, fault)) = faults.next(request.service) else { return self.forward(request).await };
        let kind = fault.fault;
        match kind {
            FaultKind::Reset => {
                faults.land(place);
                (None, Err(TransportError::Faulted { timed_out: false, took: Duration::ZERO }))
            }
            FaultKind::Stall => {
                faults.land(place);
                faults.clock.sleep(faults.limit).await;
                (None, Err(TransportError::Faulted { timed_out: true, took: faults.limit }))
            }
            FaultKind::Delay => {
                faults.land(place);
                let late = render::seconds(fault);
                faults.clock.sleep(late).await;
                let (placed, result) = self.forward(request).await;
                // What follows a late answer is sent later than it was recorded.
                let placed = placed.map(|placed| RecordedPlace { at: None, ..placed });
                (placed, result.map(|response| HttpResponse { took: response.took.saturating_add(late), ..response }))
            }
            FaultKind::NoEndMarker | FaultKind::NoUsage => {
                let (service, path, body) = (request.service, request.path.clone(), Arc::clone(&request.body));
                let profile = request.profile.name;
                // What is changed as a whole is not handed on as it comes.
                let (placed, result) = self.forward(HttpRequest { relay: None, ..request }).await;
                let changed = result.as_ref().ok().and_then(|response| render::without(kind, profile, response));
                let Some(changed) = changed else { return (placed, result) };
                faults.land(place);
                if let Ok(response) = result {
                    lock(&faults.state).unchanged = Some((service, path, body, response));
                }
                (placed, Ok(changed))
            }
            _ => {
                let wall = faults.clock.wall();
                let Some(response) = render::response(fault, &request, wall) else {
                    return self.forward(request).await;
                };
                faults.land(place);
                faults.clock.sleep(response.took).await;
                (None, Ok(response))
            }
        }
    }

    async fn forward(&self, request: HttpRequest) -> PlacedResult {
        let kept = {
            let mut state = lock(&self.faults.state);
            let same = |(service, path, body, _): &(Service, String, Arc<Value>, HttpResponse)| {
                *service == request.service && *path == request.path && *body == request.body
            };
            if state.unchanged.as_ref().is_some_and(same) { state.unchanged.take() } else { None }
        };
        if let Some((.., response)) = kept {
            self.faults.clock.sleep(response.took).await;
            return (None, Ok(response));
        }
        let request = if self.observed { self.faults.with_tool_results(request) } else { request };
        let Some(payload) = &self.faults.poison else { return self.inner.send_placed(request).await };
        let (reached, leaked) = payload.seen_in(&request);
        {
            let mut state = lock(&self.faults.state);
            state.reached |= reached;
            state.leaks.extend(leaked.then(|| request.service.as_str()));
        }
        let (profile, is_call) = (request.profile.name, mcp::called(&request.body).is_some());
        let (placed, result) = self.inner.send_placed(HttpRequest { relay: None, ..request }).await;
        if !self.observed {
            return (placed, result);
        }
        (placed, result.map(|response| payload.put_into_response((profile, is_call), response)))
    }
}

impl Transport for FaultTransport {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move { self.exchange(request).await.1 })
    }

    fn send_placed(&self, request: HttpRequest) -> BoxFuture<'_, PlacedResult> {
        Box::pin(self.exchange(request))
    }
}

#[cfg(test)]
mod tests;
