//! Signs in a trace that a model was asked beside the proxy for a part of a turn: notes, because agents may have reasons.

use crate::trace::{Reply, Role, Trace, TurnOutcome, What};
use std::collections::BTreeSet;

/// Notes on calls that no completion made, and on answers after a search whose result no completion was shown.
pub(super) fn notes(trace: &Trace) -> Vec<String> {
    let (mut written, mut unheard) = (BTreeSet::new(), BTreeSet::new());
    let mut asked: BTreeSet<(u32, &str)> = BTreeSet::new();
    let mut last: Option<&str> = None;
    for event in &trace.events {
        match &event.what {
            What::TurnStarted { .. } => last = None,
            What::ModelCalled(model) => {
                if let Reply::Completion(completion) = &model.reply {
                    asked.extend(completion.calls.iter().map(|tool| (model.call, tool.as_str())));
                }
                last = None;
            }
            What::ToolCalled(call) => {
                // A call of an MCP server's tool has no id: it passed the proxy itself.
                if !call.id.is_empty() && !asked.contains(&(call.call, call.tool.as_str())) {
                    written.insert(call.tool.as_str());
                }
                let searches = matches!(trace.role(&call.tool), Role::Knowledge | Role::External);
                if searches && call.outcome.is_unseen() {
                    last = Some(&call.tool);
                }
            }
            What::TurnEnded(ended) if matches!(ended.outcome, TurnOutcome::Answered(_)) => unheard.extend(last),
            _ => {}
        }
    }
    let names = |tools: BTreeSet<&str>| tools.into_iter().collect::<Vec<_>>().join(", ");
    let written = (!written.is_empty()).then(|| {
        format!(
            "the agent wrote calls of {} into the conversation that no completion through the proxy made: if a model made \
             them, it was asked beside the proxy",
            names(written)
        )
    });
    let unheard = (!unheard.is_empty()).then(|| {
        format!(
            "the agent answered after a call of {} whose result no request shows: if a model wrote the answer, it was asked \
             beside the proxy",
            names(unheard)
        )
    });
    written.into_iter().chain(unheard).collect()
}
