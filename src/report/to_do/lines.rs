//! The list as lines for a terminal.

use super::{Help, State, ToDo};
use crate::report::figures;
use crate::trace::text::clip;
use std::collections::BTreeSet;

/// A line of the list on a terminal.
pub(in crate::report) enum Line<'a> {
    /// The head of an item, which may be wrapped.
    Head(String),
    /// Words that belong to it, which may be wrapped.
    Words(String),
    /// A line of its details, which may not be wrapped.
    Detail(&'a str),
    /// A command, which may not be wrapped.
    Command(&'a Help),
}

/// Causes of ERROR that a terminal shows of one state.
const CAUSES: usize = 12;

/// The first items of each state as lines for a terminal, `most` of failures; then how many more there are. A command that helps
/// several items comes once, below them.
pub(in crate::report) fn lines(found: &[ToDo], most: usize) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let states: BTreeSet<State> = found.iter().map(|one| one.state).filter(|state| !state.is_open()).collect();
    for state in states {
        let of: Vec<&ToDo> = found.iter().filter(|one| one.state == state).collect();
        let most = if state.is_untried() { CAUSES } else { most };
        let mut shared: Vec<&Help> = Vec::new();
        for one in of.iter().take(most) {
            if state.is_untried() {
                lines.push(Line::Head(format!("{} {}", state.as_str(), named(one))));
                lines.push(Line::Words(one.why.clone()));
                lines.extend(one.detail.iter().map(|line| Line::Detail(line)));
                lines.extend(one.trial.as_ref().map(|first| Line::Words(format!("in {first}{}", further(one.trials)))));
            } else {
                lines.push(Line::Head(format!("{} {}", state.as_str(), title(one))));
            }
            for help in &one.commands {
                if help.is_of_several() {
                    shared.extend((!shared.contains(&help)).then_some(help));
                } else {
                    lines.push(Line::Command(help));
                }
            }
        }
        lines.extend(shared.into_iter().map(Line::Command));
        if of.len() > most {
            let more = figures::thousands((of.len() - most) as u64);
            lines.push(Line::Head(format!("{} {more} more, in the report", state.as_str())));
        }
    }
    let mut open: Vec<&ToDo> = found.iter().filter(|one| one.state.is_open()).collect();
    if found.iter().all(|one| one.state.is_open() || one.state == State::FailsOnBaseToo) {
        // They decide the exit code.
        for one in open.drain(..open.len().min(most)) {
            lines.push(Line::Head(format!("{} {}: {}", one.state.as_str(), subject(one), one.why)));
        }
    }
    if let [one] = open[..] {
        lines.push(Line::Head(format!("cannot be judged yet: {}: {}", subject(one), one.why)));
    } else if !open.is_empty() {
        let names = figures::first_names(open.iter().map(|one| &one.name), CAUSES);
        lines.push(Line::Head(format!("cannot be judged yet: {names}")));
    }
    lines
}

/// What an item is about, for reports that show its trial elsewhere: the cases that could not be run and why, or the criterion
/// with what it requires.
pub(in crate::report) fn subject(one: &ToDo) -> String {
    match (one.about.as_str(), one.state.is_untried()) {
        ("", _) => one.name.clone(),
        (cases, true) => format!("{cases}: {}", one.name),
        (about, false) => format!("{}, {about}", one.name),
    }
}

/// How many of `trials` there are besides the first.
fn further(trials: u64) -> String {
    if trials > 1 { format!(" and {} more", figures::thousands(trials - 1)) } else { String::new() }
}

/// Name and number of trials.
fn named(one: &ToDo) -> String {
    let trials = if one.trials > 0 { format!(" ({})", figures::counted(one.trials, "trial")) } else { String::new() };
    if one.trials > 0 { format!("{}{trials}", one.name) } else { subject(one) }
}

/// Name, number of trials, and reason.
fn title(one: &ToDo) -> String {
    format!("{}: {}", named(one), clip(&crate::trace::text::line(&one.why), 400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criteria_that_nothing_decides_say_what_would_where_they_alone_decide_the_exit_code() {
        let open = |name: &str| ToDo {
            state: State::Undecided,
            name: name.to_owned(),
            about: "Retries recover".to_owned(),
            trials: 0,
            why: "met, not shown: 62 more conversations at this rate would show it".to_owned(),
            detail: Vec::new(),
            trial: None,
            place: None,
            commands: Vec::new(),
        };
        let said = |found: &[ToDo]| -> Vec<String> {
            let heads = lines(found, 2).into_iter().filter_map(|line| match line {
                Line::Head(words) => Some(words),
                _ => None,
            });
            heads.collect()
        };
        let three = ["SC-002", "SC-006", "SC-007"].map(open);
        let alone = said(&three);
        assert_eq!(alone.len(), 3, "{alone:?}");
        assert!(alone[0].starts_with("UNDECIDED SC-002, Retries recover: met, not shown: 62 more"), "{alone:?}");
        let last = "cannot be judged yet: SC-007, Retries recover: met, not shown: 62 more";
        assert!(alone[2].starts_with(last), "a single one has room for its reason: {alone:?}");
        let mut beside = three.to_vec();
        beside.insert(0, ToDo { state: State::CriterionFails, ..open("SC-001") });
        assert_eq!(said(&beside).last().map(String::as_str), Some("cannot be judged yet: SC-002, SC-006, SC-007"));
    }
}
