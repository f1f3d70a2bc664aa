//! Context probes: what a turn must show to have remembered earlier turns.

use super::answer::said;
use super::{Checked, answer_of, covering};
use crate::metric::text_match::contains;
use crate::metric::{Check, Held, Seen, TrialView, TurnView, calls, quote};
use crate::scenario::expect::Probe;
use serde_json::Value;

/// Describes the probe, and checks whether it holds in this turn.
pub(super) fn check(probe: &Probe, turn: &TurnView<'_>) -> Checked {
    (describe(probe), remembered(probe, turn))
}

fn describe(probe: &Probe) -> String {
    let any: Vec<_> = probe.any_of.iter().map(|text| quote(text, 60)).collect();
    match &probe.in_arguments_of {
        None => format!("context: the answer has {}", any.join(" or ")),
        Some(tool) => format!("context: the arguments of {tool} have {}", any.join(" or ")),
    }
}

/// Whether the probe appears in this turn; an empty `any_of` never does.
fn remembered(probe: &Probe, turn: &TurnView<'_>) -> Held {
    let Some(tool) = &probe.in_arguments_of else {
        let answer = answer_of(turn)?;
        let held = probe.any_of.iter().any(|text| contains(&answer.text, text));
        return held.then_some(()).ok_or_else(|| said(answer, &probe.any_of.join(" "), turn.query));
    };
    let mut said = Vec::new();
    for call in turn.calls().filter(|call| call.tool == *tool) {
        leaves(&call.arguments, &mut said);
    }
    if said.iter().any(|text| probe.any_of.iter().any(|part| contains(text, part))) {
        return Ok(());
    }
    if turn.calls().any(|call| call.tool == *tool && calls::hides_arguments(call)) {
        return Err(calls::hidden(tool));
    }
    if said.is_empty() {
        return Err(Seen::new(format!("{tool} was not called with any argument")));
    }
    Err(Seen::new(format!("its arguments were: {}", quote(&said.join("; "), 160))))
}

/// Collects the values of a JSON document as text, without field names.
fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::String(text) => out.push(text.clone()),
        Value::Bool(_) | Value::Number(_) => out.push(value.to_string()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, out)),
        Value::Object(fields) => fields.values().for_each(|item| leaves(item, out)),
    }
}

/// Probes that must appear in this turn.
fn probes<'a>(view: &TrialView<'a>, turn: &TurnView<'_>) -> impl Iterator<Item = &'a Probe> {
    covering(view, turn).filter_map(|expect| expect.context.as_ref()).flat_map(|context| &context.probes)
}

/// Context probes of a turn, described, and whether each holds.
pub(in crate::metric) fn probed(view: &TrialView<'_>, turn: &TurnView<'_>) -> impl Iterator<Item = Checked> {
    probes(view, turn).map(|probe| check(probe, turn))
}

/// Describes the first context probe of a turn that does not hold.
pub(in crate::metric) fn probe_failure(view: &TrialView<'_>, turn: &TurnView<'_>) -> Option<String> {
    probed(view, turn).find_map(|(what, held)| held.err().map(|seen| format!("{}: {what}: {seen}", turn.label())))
}

/// The one check of the control arm.
pub(super) fn control(view: &TrialView<'_>) -> Check {
    let (mut probes_seen, mut failed) = (0, false);
    for turn in view.turns {
        for probe in probes(view, turn) {
            probes_seen += 1;
            failed |= remembered(probe, turn).is_err();
        }
    }
    let seen = match (probes_seen, failed) {
        (0, _) => "the case has no context probe to control".to_owned(),
        (_, true) => String::new(),
        (_, false) => "every probe holds without history: they prove no memory".to_owned(),
    };
    let what = "control: a context probe fails without history".into();
    Check { what, passed: seen.is_empty(), seen, unknown: None }
}
