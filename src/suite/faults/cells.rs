//! Which faults fit a trial: one cell for each.

use crate::cassette::{Exchange, Outcome as Recorded};
use crate::provider::observed;
use crate::provider::wire::framing::Framing;
use crate::settings::fault::Stage;
use crate::settings::{DeclaredFault, FaultKind};
use crate::trace::{Role, Trace, What};
use std::collections::{BTreeMap, BTreeSet};

/// The faults that fit the requests of a recording and the tool calls of its trace.
pub(super) fn fitting(trace: &Trace, exchanges: &[Exchange], external: bool) -> Vec<DeclaredFault> {
    let mut found = Vec::new();
    let calls_at = requests_with_calls(trace);
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for exchange in exchanges {
        let number = numbers.entry(exchange.service.as_str()).or_default();
        *number += 1;
        let completion = observed::is_completion(&exchange.profile);
        let streamed = match &exchange.outcome {
            Recorded::Response { headers, body, .. } => Framing::of(&exchange.profile).is_stream(headers, body),
            _ => false,
        };
        let at = |fault: FaultKind| DeclaredFault {
            service: Some(exchange.service.clone()),
            call: *number,
            ..DeclaredFault::new(fault)
        };
        for kind in FaultKind::ALL {
            let fits = match kind.stage() {
                Stage::Request => completion || *kind != FaultKind::ContextLength,
                Stage::Stream => completion && streamed,
                // An answer without a call is no fault where the model called nothing.
                Stage::Answer if *kind == FaultKind::NoToolCall => completion && calls_at.contains(number),
                Stage::Answer => completion,
                Stage::Tool | Stage::Index => false,
            };
            found.extend(fits.then(|| at(*kind)));
        }
        found.extend([FaultKind::ServerError, FaultKind::Reset].map(|kind| DeclaredFault { times: 0, ..at(kind) }));
    }
    let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
    let mut indexes = false;
    for event in &trace.events {
        let Some(called) = event.what.tool_call() else { continue };
        let role = trace.role(&called.tool);
        indexes |= role == Role::Index;
        let number = calls.entry(called.tool.as_str()).or_default();
        *number += 1;
        if matches!(role, Role::Respond | Role::Index) {
            continue;
        }
        let tools = FaultKind::ALL.iter().filter(|kind| kind.stage() == Stage::Tool);
        // Only a search of ours returns what can be changed; what tools of others return is unknown.
        let searches = external || matches!(role, Role::Knowledge | Role::External);
        let tools = tools.filter(|kind| match kind {
            FaultKind::ToolFails => true,
            FaultKind::ToolHangs => !external,
            _ => searches,
        });
        let at = |kind: &FaultKind| DeclaredFault {
            tool: Some(called.tool.clone()),
            call: *number,
            ..DeclaredFault::new(*kind)
        };
        found.extend(tools.map(at));
    }
    found.extend((indexes && !external).then(|| DeclaredFault::new(FaultKind::IndexUnwritable)));
    found
}

/// The requests to the model, counted from 1, that were answered with calls.
fn requests_with_calls(trace: &Trace) -> BTreeSet<u32> {
    let mut number = 0;
    let models = trace.events.iter().filter_map(|event| match &event.what {
        What::ModelCalled(called) => Some(called),
        _ => None,
    });
    let numbered = models.map(|called| {
        number += u32::try_from(called.attempts.len()).unwrap_or(1).max(1);
        (number, called.reply.lists_calls())
    });
    numbered.filter(|(_, calls)| *calls).map(|(number, _)| number).collect()
}
