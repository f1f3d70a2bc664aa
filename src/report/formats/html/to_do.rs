//! "What to do", the first section of the page: see [`crate::report::to_do`].

use super::model::{Badge, anchored, badge};
use crate::gate::{CriterionResult, Verdict, Violation};
use crate::report::View;
use crate::report::figures::{self, counted};
use crate::report::page::FRAGMENT;
use crate::report::to_do::{Help, State, ToDo, to_do};
use crate::trace::text::clip;
use percent_encoding::utf8_percent_encode;
use serde::Serialize;

/// Items shown before a fold.
const FIRST: usize = 4;
/// Lines of detail shown before a fold.
const LINES: usize = 6;

/// One item of the list.
#[derive(Serialize)]
pub(super) struct Item {
    badge: Badge,
    name: String,
    /// What the criterion requires, or why the cases could not be run.
    about: String,
    /// Link of the name: the first trial, or the row of the criterion.
    href: String,
    trials: String,
    why: String,
    detail: String,
    /// Detail beyond the first lines.
    more: String,
    commands: Vec<(&'static str, String, String)>,
    /// Whether the commands of an item above help here, too.
    helped: bool,
    /// Link to the table with the trials that fail for the main reason; empty without one.
    find: String,
    /// What these trials are.
    found: &'static str,
}

/// The list in parts: shown, folded, and criteria that nothing decides.
#[derive(Serialize)]
pub(super) struct List {
    first: Vec<Item>,
    more: Vec<Item>,
    undecided: Vec<Item>,
    /// Required criteria that wait for trials that could not be run: anchor, name and what they require.
    waiting: Vec<(String, String, String)>,
}

/// A link to a trial.
#[derive(Serialize)]
pub(super) struct Link {
    trial: String,
    pub href: String,
    unit: String,
    note: String,
}

pub(super) fn link(trial: &str) -> Link {
    let href = format!("#trial={}", utf8_percent_encode(trial, FRAGMENT));
    Link { trial: trial.to_owned(), href, unit: String::new(), note: String::new() }
}

/// Link to a trial that violates a criterion, with the unit and the reason.
pub(super) fn violation(violation: &Violation) -> Link {
    let (unit, note) = (violation.unit.clone(), clip(&violation.note, 300).into_owned());
    Link { unit, note, ..link(&violation.trial) }
}

/// The list; `None` if there is nothing to do.
pub(super) fn list(view: &View<'_>) -> Option<List> {
    let found = to_do(view);
    let (undecided, items): (Vec<_>, Vec<_>) = found.iter().partition(|one| one.state.is_open());
    // The first of each state, so that no kind of failure stands in the fold alone.
    let mut shown: Vec<usize> = Vec::new();
    for (place, one) in items.iter().enumerate() {
        let alike = shown.iter().filter(|place| items[**place].state == one.state).count();
        if alike == 0 || alike < FIRST && shown.len() < FIRST {
            shown.push(place);
        }
    }
    let (mut first, mut more) = (Vec::new(), Vec::new());
    for (place, one) in items.iter().enumerate() {
        let mut item = item(view, one);
        // A command that helps several items comes once, where it is read first.
        item.helped = !one.commands.is_empty()
            && one.commands.iter().all(Help::is_of_several)
            && items[..place].iter().any(|above| above.commands == one.commands);
        if item.helped {
            item.commands.clear();
        }
        if shown.contains(&place) { &mut first } else { &mut more }.push(item);
    }
    let undecided: Vec<Item> = undecided.into_iter().map(|one| item(view, one)).collect();
    let waits = |(_, row): &(String, &CriterionResult)| row.required && row.verdict == Verdict::Error;
    let waiting = anchored(view.evaluation).filter(waits);
    let waiting = waiting.map(|(anchor, row)| (anchor, figures::name(row), row.about.clone())).collect();
    (!found.is_empty()).then_some(List { first, more, undecided, waiting })
}

fn item(view: &View<'_>, one: &ToDo) -> Item {
    let row = anchored(view.evaluation).find(|(_, row)| one.trials == 0 && row.key() == one.name);
    let word = Badge { word: one.state.as_str(), ..badge(verdict(one.state)) };
    let cause = row.as_ref().and_then(|(_, row)| row.causes.first());
    let href = match (&row, &one.trial) {
        (Some((anchor, _)), _) => format!("#{anchor}"),
        (None, Some(trial)) => link(trial).href,
        (None, None) => String::new(),
    };
    // The cases come before the kind of error, and a criterion before what it requires.
    let (name, about) = (one.name.clone(), one.about.clone());
    let (name, about) = if one.state.is_untried() && !about.is_empty() { (about, name) } else { (name, about) };
    let lines: Vec<&str> = one.detail.iter().flat_map(|text| text.lines()).collect();
    let (detail, more) = lines.split_at(lines.len().min(LINES));
    Item {
        badge: word,
        name,
        about,
        href,
        trials: if one.trials > 0 { counted(one.trials, "trial") } else { String::new() },
        why: clip(&one.why, 600).into_owned(),
        detail: clip(&detail.join("\n"), 2_000).into_owned(),
        more: clip(&more.join("\n"), 4_000).into_owned(),
        commands: one.commands.iter().map(|help| (help.purpose, help.command.clone(), help.cost.clone())).collect(),
        helped: false,
        // Of several reasons the link leads to the trials with the first.
        found: match &row {
            Some((_, row)) if row.causes.len() > 1 => "trials with this reason",
            _ => "all trials",
        },
        find: match cause {
            Some(cause) => format!("#trials?cause={}", utf8_percent_encode(&cause.reason, FRAGMENT)),
            None if one.state.is_untried() => "#trials=ERROR".to_owned(),
            None => String::new(),
        },
    }
}

/// Verdict whose colour and shape a state has.
fn verdict(state: State) -> Verdict {
    match state {
        State::NotRecorded | State::Down | State::Error => Verdict::Error,
        State::NotMeasured => Verdict::NotMeasured,
        State::Undecided => Verdict::Inconclusive,
        _ => Verdict::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn every_kind_of_failure_has_an_item_in_sight_and_the_rest_is_folded() {
        let run = sample::run(30);
        let list = list(&run.view()).expect("it fails");
        let found = to_do(&run.view());
        let decided = found.iter().filter(|one| !one.state.is_open()).count();
        assert_eq!(list.first.len() + list.more.len(), decided);
        for one in &found {
            let shown = list.first.iter().chain(&list.undecided).any(|item| item.badge.word == one.state.as_str());
            assert!(shown, "{one:?}");
        }
    }

    #[test]
    fn a_command_that_records_several_causes_comes_once_and_the_others_say_so() {
        let mut run = sample::run(2);
        let mut again = run.evaluation.errors[0].clone();
        again.kind = "cassette miss".to_owned();
        again.message = "another difference".to_owned();
        run.evaluation.errors[0].kind = "cassette miss".to_owned();
        run.evaluation.errors.insert(1, again);
        let list = list(&run.view()).expect("it fails");
        let missing: Vec<_> = list.first.iter().filter(|item| item.badge.word == "NOT RECORDED").collect();
        let said: Vec<_> = missing.iter().map(|item| (item.commands.len(), item.helped)).collect();
        assert_eq!(said, [(2, false), (0, true)]);
    }

    #[test]
    fn fragments_hold_only_unreserved_characters() {
        assert_eq!(utf8_percent_encode("a/b c.ü<", FRAGMENT).to_string(), "a/b%20c.%C3%BC%3C");
    }
}
