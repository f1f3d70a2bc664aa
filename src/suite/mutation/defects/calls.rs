//! Defects of calls: dropped, swapped, doubled, with other arguments.

use super::edits::{each, keep, tools_of};
use crate::trace::{Reply, Role, ToolCalled, ToolOutcome, ToolResult, Trace, What};
use serde_json::Value;

/// Drops the calls of a role from events and completions; for searches, those of the flow too.
pub(super) fn drop_calls(trace: &mut Trace, role: Role) -> bool {
    let tools = tools_of(trace, &[role]);
    each(trace, |what| {
        if let What::ModelCalled(called) = what
            && let Reply::Completion(completion) = &mut called.reply
        {
            completion.calls.retain(|tool| !tools.contains(tool));
        }
        false
    });
    keep(trace, |what| match what {
        What::ToolCalled(call) => !tools.contains(&call.tool),
        What::Searched(_) => role != Role::Knowledge,
        _ => true,
    })
}

/// Places of the calls that ran, by turn.
fn ran(trace: &Trace) -> Vec<usize> {
    let ok = |what: &What| matches!(what, What::ToolCalled(ToolCalled { outcome: ToolOutcome::Ok(_), .. }));
    (0..trace.events.len()).filter(|place| ok(&trace.events[*place].what)).collect()
}

pub(super) fn order_swapped(trace: &mut Trace) -> bool {
    let places = ran(trace);
    let tool = |place: usize| trace.events[place].what.tool_call().map(|call| call.tool.clone());
    let turn = |place: usize| (trace.events[place].conversation, trace.events[place].turn);
    let pair = places.windows(2).find(|two| turn(two[0]) == turn(two[1]) && tool(two[0]) != tool(two[1]));
    let Some(&[first, second]) = pair else { return false };
    trace.events.swap(first, second);
    true
}

pub(super) fn call_doubled(trace: &mut Trace) -> bool {
    let Some(place) = ran(trace).first().copied() else { return false };
    trace.events.insert(place, trace.events[place].clone());
    true
}

pub(super) fn query_copied(trace: &mut Trace) -> bool {
    let tools = tools_of(trace, &[Role::Knowledge, Role::External]);
    let mut asked = String::new();
    each(trace, |what| match what {
        What::TurnStarted { query } => {
            asked.clone_from(query);
            false
        }
        What::ToolCalled(call) if tools.contains(&call.tool) => {
            let query = call.arguments.get_mut("query");
            if let ToolOutcome::Ok(ToolResult::Search(search)) = &mut call.outcome {
                search.query.clone_from(&asked);
            }
            query.is_some_and(|query| {
                *query = Value::String(asked.clone());
                true
            })
        }
        _ => false,
    })
}

pub(super) fn keywords_generic(trace: &mut Trace) -> bool {
    let generic = || vec!["information".to_owned(), "details".to_owned()];
    each(trace, |what| match what {
        What::ToolCalled(ToolCalled { arguments, outcome: ToolOutcome::Ok(ToolResult::Indexed(index)), .. }) => {
            (index.keywords, index.read_back) = (generic(), generic());
            if let Some(keywords) = arguments.get_mut("keywords") {
                *keywords = Value::from(generic());
            }
            true
        }
        _ => false,
    })
}
