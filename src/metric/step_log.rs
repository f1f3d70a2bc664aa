//! `step_log`: steps whose log is complete / searches that another completion followed (KL-1, KL-4.1, KL-5.1, KL-7.1).
//!
//! Before the search the log has the step's grounding and a thought, whose step comes after that of the search before;
//! after it, a summary and, where passages were found, an observation of the step and a grade for each passage.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TurnView};
use crate::settings::catalogue::Units;
use crate::trace::{Logged, Role, ToolCalled, ToolOutcome, ToolResult, Trace, What};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("step_log", |_| Metric {
    members: &[Member::Log, Member::Passages, Member::Sequence, Member::Completions],
    ..Metric::new("searches", |view| view.turns.iter().flat_map(|turn| steps(turn, view.trace)).collect())
})
.about("Of the searches, those with thought, observation, grades and summary of their step in the log.")
.counted(Units::OfTurns)];

/// The entries of a list of events.
fn entries<'a>(events: &'a [&'a What]) -> impl Iterator<Item = &'a Logged> {
    events.iter().filter_map(|what| if let What::Logged(entry) = what { Some(entry) } else { None })
}

/// Passages of a search of documents that ran, by id.
fn found<'a>(what: &'a What, trace: &Trace) -> Option<Vec<&'a String>> {
    match what {
        What::ToolCalled(ToolCalled { tool, outcome: ToolOutcome::Ok(ToolResult::Search(search)), .. })
            if trace.roles.get(tool) == Some(&Role::Knowledge) =>
        {
            Some(search.hits.iter().map(|hit| &hit.id).collect())
        }
        _ => None,
    }
}

/// The kind of entry that a step lacks; `earlier` is the step of the search before.
fn lacks(before: &[&What], after: &[&What], passages: &[&String], earlier: &mut u32) -> Option<&'static str> {
    let thought = |entry: &Logged| if let Logged::Thought { step, .. } = entry { Some(*step) } else { None };
    let Some(now) = entries(before).filter_map(thought).last().filter(|step| step > earlier) else {
        return Some("thought");
    };
    *earlier = now;
    let grounded = |entry: &Logged| matches!(entry, Logged::Grounding { step, .. } if *step == now);
    let summary = |entry: &Logged| matches!(entry, Logged::Summary { step, .. } if *step == now);
    let observed = |entry: &Logged| matches!(entry, Logged::Observation { step, .. } if *step == now);
    let graded = |entry: &Logged| {
        let Logged::Graded { step, relevant, irrelevant, .. } = entry else { return false };
        *step == now && passages.iter().all(|id| relevant.contains(id) || irrelevant.contains(id))
    };
    match () {
        () if !entries(before).any(grounded) => Some("grounding"),
        () if !entries(after).any(summary) => Some("summary"),
        () if !passages.is_empty() && !entries(after).any(observed) => Some("observation"),
        () if !passages.is_empty() && !entries(after).any(graded) => Some("grade of each passage"),
        () => None,
    }
}

/// The units of a turn.
fn steps(turn: &TurnView<'_>, trace: &Trace) -> Vec<Observation> {
    let searches: Vec<usize> = (0..turn.events.len()).filter(|at| found(turn.events[*at], trace).is_some()).collect();
    let (mut units, mut earlier) = (Vec::new(), 0);
    for (place, at) in searches.iter().enumerate() {
        let end = searches.get(place + 1).copied().unwrap_or(turn.events.len());
        let (before, after) = (&turn.events[..*at], &turn.events[at + 1..end]);
        if !after.iter().any(|what| matches!(what, What::ModelCalled(_))) {
            continue;
        }
        let passages = found(turn.events[*at], trace).unwrap_or_default();
        let lack = lacks(before, after, &passages, &mut earlier);
        let note = lack.map(|kind| format!("search {} has no {kind} in the log", place + 1));
        units.push(Observation::unless(turn.label(), note));
    }
    units
}
