//! Units that are steps, searches and failures of a turn, and what was logged about them.

use super::{Units, graded, hold, is_whole, logs};
use crate::metric::turns::executed;
use crate::metric::{Seen, TurnView, quote};
use crate::trace::{Logged, Role, Trace, What};
use std::collections::BTreeSet;

pub(super) fn steps(turn: &TurnView<'_>, trace: &Trace, most: u32) -> Units {
    let (mut thought, mut logged, mut searches) = (None, BTreeSet::new(), BTreeSet::new());
    for what in &turn.events {
        match what {
            What::Logged(Logged::Thought { step, .. }) => thought = Some(*step),
            What::ToolCalled(call) if executed(call) => {
                logged.extend(thought);
                if matches!(trace.role(&call.tool), Role::Knowledge | Role::External) {
                    searches.insert(call.call);
                }
            }
            _ => {}
        }
    }
    let counts = |entry: &Logged| {
        matches!(
            entry,
            Logged::Thought { .. } | Logged::Grounding { .. } | Logged::Failure { .. } | Logged::Efficiency { .. }
        )
    };
    if !logs(turn).any(counts) {
        return Vec::new();
    }
    let steps = u32::try_from(logged.len().max(searches.len())).unwrap_or(u32::MAX);
    let wrong = logs(turn).find_map(|entry| match entry {
        Logged::Efficiency { useful, actual } => {
            let graded = useful_grades(turn);
            let so = *useful <= graded && (*useful == 0) == (graded == 0) && useful <= actual;
            (!so).then(|| format!("{useful} of {actual} steps are logged as useful, by the grades {graded}"))
        }
        _ => None,
    });
    let held = wrong.map_or_else(|| hold(steps <= most, || format!("{steps} steps")), |seen| Err(Seen::new(seen)));
    vec![(String::new(), held)]
}

/// Searches of a turn that found a source which was graded relevant for the first time.
fn useful_grades(turn: &TurnView<'_>) -> u32 {
    let mut known = BTreeSet::new();
    let new = graded(turn).filter(|relevant| {
        let before = known.len();
        known.extend(relevant.iter());
        known.len() > before
    });
    u32::try_from(new.count()).unwrap_or(u32::MAX)
}

/// Searches that ran.
pub(super) fn reasoned(turn: &TurnView<'_>, trace: &Trace) -> Units {
    let unlogged = !is_whole(turn);
    let (mut thought, mut status, mut number, mut units) = (false, unlogged, 0, Vec::new());
    for what in &turn.events {
        match what {
            What::Logged(Logged::Thought { text, .. }) => thought = !text.trim().is_empty(),
            What::Logged(Logged::Status { text, .. }) => status |= !text.trim().is_empty(),
            What::ToolCalled(call) if trace.role(&call.tool) == Role::Knowledge && executed(call) => {
                number += 1;
                let held = match (std::mem::take(&mut thought), status) {
                    (true, true) => Ok(()),
                    (false, _) => Err(Seen::new("no thought was logged before it")),
                    (true, false) => Err(Seen::new("no status was logged before it")),
                };
                status = unlogged;
                units.push((format!("search {number}"), held));
            }
            _ => {}
        }
    }
    units
}

/// The approach of an entry, and its kind of failure.
fn step_of(entry: &Logged) -> Option<(u32, &str, Option<&str>)> {
    match entry {
        Logged::Thought { step, approach, .. } => Some((*step, approach, None)),
        Logged::Failure { kind, .. } if kind == "model_unavailable" => None,
        Logged::Failure { step, approach, kind, .. } => Some((*step, approach, Some(kind))),
        _ => None,
    }
}

/// Repeated failures.
pub(super) fn approaches(turn: &TurnView<'_>) -> Units {
    let steps: Vec<_> = logs(turn).filter_map(step_of).collect();
    let (mut before, mut units) = (BTreeSet::new(), Vec::new());
    for (at, (step, approach, kind)) in steps.iter().enumerate() {
        let Some(kind) = kind else { continue };
        let again = !before.insert(kind);
        let Some((_, next, _)) = steps[at..].iter().find(|later| again && later.0 > *step) else { continue };
        let held = hold(next != approach, || format!("{} again, and again by {}", quote(kind, 40), quote(next, 40)));
        units.push((format!("step {step}"), held));
    }
    units
}

/// Reflections, and failures without one.
pub(super) fn lessons(turn: &TurnView<'_>) -> Units {
    let mut units = Vec::new();
    for (at, what) in turn.events.iter().enumerate() {
        let What::Logged(Logged::Reflection { step, shown, trigger, .. }) = what else { continue };
        let later = || {
            let after = turn.events[at..].iter();
            after.filter_map(|what| if let What::ModelCalled(called) = what { Some(called) } else { None })
        };
        if later().next().is_some() {
            let missing = later().find(|called| !called.shown.contains(shown));
            let held = missing.map_or(Ok(()), |called| {
                Err(Seen::new(format!("{}: completion {} was not shown it", quote(trigger, 40), called.call)))
            });
            units.push((format!("reflection on step {step}"), held));
        }
    }
    units.extend(
        unanalysed(turn).into_iter().map(|step| {
            (format!("failure in step {step}"), Err(Seen::new("no lesson was logged before the next step")))
        }),
    );
    units
}

/// Steps whose failure was followed by another step without a reflection between them, in a whole log.
fn unanalysed(turn: &TurnView<'_>) -> Vec<u32> {
    let (mut due, mut found) = (None, Vec::new());
    if !is_whole(turn) {
        return found;
    }
    for entry in logs(turn) {
        match entry {
            Logged::Failure { step, kind, .. } if kind != "model_unavailable" => due = Some(*step),
            Logged::Reflection { .. } => due = None,
            Logged::Thought { .. } => found.extend(due.take()),
            _ => {}
        }
    }
    found
}

/// Logged failures.
pub(super) fn contexts(turn: &TurnView<'_>) -> Units {
    let (mut last, mut units): (&[String], Units) = (&[], Vec::new());
    for what in &turn.events {
        match what {
            What::ModelCalled(called) => last = &called.shown,
            What::Logged(Logged::Failure { step, kind, context, .. }) => {
                let logged = context["shown"].as_array().map_or(&[][..], Vec::as_slice);
                let missing = last.iter().filter(|one| !logged.iter().any(|shown| shown == *one)).count();
                let held = if context["state"].is_string() {
                    hold(missing == 0, || format!("{missing} of {} messages are not in the log", last.len()))
                } else {
                    Err(Seen::new("the state is not in the log"))
                };
                units.push((format!("{} in step {step}", quote(kind, 40)), held));
            }
            _ => {}
        }
    }
    units
}
