//! Edits of a trace that several defects share. Each returns whether there was anything to change.

use crate::trace::{Answer, Role, SearchResult, Trace, TurnEnded, TurnOutcome, What};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn take<T>(list: &mut Vec<T>) -> bool {
    !std::mem::take(list).is_empty()
}

pub(super) fn take_flag(flag: &mut bool) -> bool {
    std::mem::take(flag)
}

pub(super) fn replace(text: &mut String, new: &str) -> bool {
    let differs = text != new;
    new.clone_into(text);
    differs
}

pub(super) fn replace_value(value: &mut Value, new: Value) -> bool {
    std::mem::replace(value, new) != Value::Null
}

pub(super) fn replace_with(text: &mut String, change: impl Fn(&str) -> String) -> bool {
    let new = change(text);
    replace(text, &new)
}

/// Changes every event; returns whether any was changed.
pub(super) fn each(trace: &mut Trace, mut change: impl FnMut(&mut What) -> bool) -> bool {
    let mut changed = false;
    for event in &mut trace.events {
        changed |= change(&mut event.what);
    }
    changed
}

/// Keeps some events; returns whether any was dropped.
pub(super) fn keep(trace: &mut Trace, mut kept: impl FnMut(&What) -> bool) -> bool {
    let before = trace.events.len();
    trace.events.retain(|event| kept(&event.what));
    trace.events.len() < before
}

pub(super) fn ends(trace: &mut Trace, mut change: impl FnMut(&mut TurnEnded) -> bool) -> bool {
    each(trace, |what| if let What::TurnEnded(end) = what { change(end) } else { false })
}

pub(super) fn answers(trace: &mut Trace, mut change: impl FnMut(&mut Answer) -> bool) -> bool {
    ends(trace, |end| if let TurnOutcome::Answered(answer) = &mut end.outcome { change(answer) } else { false })
}

pub(super) fn searches(trace: &mut Trace, mut change: impl FnMut(&mut SearchResult) -> bool) -> bool {
    each(trace, |what| what.search_mut().is_some_and(&mut change))
}

/// The called tools with one of these roles.
pub(super) fn tools_of(trace: &Trace, roles: &[Role]) -> BTreeSet<String> {
    let called = trace.events.iter().filter_map(|event| Some(&event.what.tool_call()?.tool));
    called.filter(|tool| roles.contains(&trace.role(tool))).cloned().collect()
}
