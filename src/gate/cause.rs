//! Groups and counts the reasons why units fail a criterion, without details that vary from unit to unit.
//!
//! A reason is the note of a violation without turn numbers, durations, addresses, quotations and passage numbers. What a case
//! expects is said in words, with the expected value: `turn 1: answer.contains: 30 days: the answer says …` is `expected "30 days",
//! which is not in the answer`. A turn that is too slow keeps its limit: `slower than 5 s`.

use super::Violation;
use crate::trace::text::quote;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Largest number of distinct reasons per criterion.
const REASONS: usize = 1_000;
/// Longest reason, in characters.
const LONGEST: usize = 160;

/// A reason why units fail a criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// The reason, without varying details.
    pub reason: String,
    /// Number of units that fail for it.
    pub units: u64,
    /// Number of trials with such units.
    pub trials: u64,
    /// The first of them, in plan order.
    pub first: Violation,
}

/// Reasons of one criterion's violations; independent of the order of additions.
#[derive(Debug, Clone, Default)]
pub(super) struct Causes(BTreeMap<String, (Place, Cause)>);

/// Place of the first unit that fails for a reason, in the plan and in its trial.
type Place = (usize, usize);

impl Causes {
    /// Adds the violations of one trial, each with its place in the plan and in the trial.
    pub(super) fn add(&mut self, violations: Vec<(Place, Violation)>) {
        let mut of_trial = BTreeSet::new();
        for (place, first) in violations {
            let reason = reason(&first.note);
            let trials = u64::from(of_trial.insert(reason.clone()));
            self.put(place, Cause { reason, units: 1, trials, first });
        }
    }

    /// Adds the reasons of other trials.
    pub(super) fn absorb(&mut self, other: &Self) {
        for (place, cause) in other.0.values() {
            self.put(*place, cause.clone());
        }
    }

    fn put(&mut self, place: Place, more: Cause) {
        match self.0.entry(more.reason.clone()) {
            Entry::Vacant(entry) => {
                entry.insert((place, more));
            }
            Entry::Occupied(mut entry) => {
                let (first, known) = entry.get_mut();
                let (units, trials) = (known.units + more.units, known.trials + more.trials);
                if place < *first {
                    (*first, *known) = (place, more);
                }
                (known.units, known.trials) = (units, trials);
            }
        }
        // The last by name: it would be dropped in any order, so every remaining reason is counted in full.
        if self.0.len() > REASONS {
            self.0.pop_last();
        }
    }

    /// Most frequent first, then in plan order.
    pub(super) fn list(&self) -> Vec<Cause> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|(place, cause)| (Reverse(cause.units), *place));
        all.into_iter().map(|(_, cause)| cause.clone()).collect()
    }
}

/// Patterns for varying details in a note, and their replacements.
static VARYING: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let rules = [
        (r"^(?:conversation [^:]*, )?turn \d+: ", ""),
        (r" \(and \d+ more\)$", ""),
        (r"^([a-z_]+(?:\.[a-z_]+)+): (?s:.*)$", "$1"),
        (r"https?://\S+", "URL"),
        (r#""[^"]*""#, "\"…\""),
        (r"\b\d+(?:\.\d+)? ?(?:ms|s|min)\b", "…"),
        (r"#\d+", "#…"),
    ];
    rules.into_iter().filter_map(|(pattern, to)| Some((Regex::new(pattern).ok()?, to))).collect()
});

/// Expectations of a case, and the same in words; `VALUE` is the expected value. Others are `expected KEY VALUE`.
const EXPECTED: [(&str, &str); 8] = [
    ("answer.contains", "expected \"VALUE\", which is not in the answer"),
    ("answer.not_contains", "\"VALUE\" is in the answer, and must not be"),
    ("answer.matches", "the answer does not match /VALUE/"),
    ("answer.cites", "VALUE is not cited"),
    ("answer.refusal: true", "expected a refusal"),
    ("answer.refusal: false", "expected an answer, not a refusal"),
    ("calls.never", "VALUE was called, and must not be"),
    ("within", "slower than VALUE"),
];

/// A failed expectation in words: `what` is the check without its turn, for example `answer.contains: 30 days`.
pub(crate) fn expectation(what: &str) -> Option<String> {
    static KEY: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^([a-z_]+(?:\.[a-z_]+)+|within): (?s:(.*))$").ok());
    let found = KEY.as_ref()?.captures(what)?;
    let (key, value) = (&found[1], quote(&found[2], LONGEST / 2));
    let of = |(known, words): &(&str, &str)| (*known == key || *known == what).then(|| words.replace("VALUE", &value));
    Some(EXPECTED.iter().find_map(of).unwrap_or_else(|| format!("expected {key} {value}")))
}

/// A note of a failed expectation in words, with its turn and what was seen: `turn 1: expected "90 euros", which is not in the
/// answer; the answer says: The deposit is 80.`.
pub(crate) fn note_in_words(note: &str) -> String {
    let (turn, rest) = match note.split_once(": ") {
        Some((turn, rest)) if turn.contains("turn ") => (format!("{turn}: "), rest),
        _ => (String::new(), note),
    };
    let (what, seen) = split(rest);
    let Some(words) = expectation(what) else { return note.to_owned() };
    if seen.is_empty() { format!("{turn}{words}") } else { format!("{turn}{words}; {seen}") }
}

/// The expectation of a note and what was seen instead: the latter begins with one of a few fixed words.
fn split(note: &str) -> (&str, &str) {
    let seen = ["the answer ", "it ", "its ", "not measured", "seen", "there w", "nothing ", "no call", "neither "];
    let cuts = seen.iter().filter_map(|words| note.find(&format!(": {words}")));
    cuts.min().map_or((note, ""), |cut| (&note[..cut], &note[cut + 2..]))
}

/// A note without varying details.
pub(crate) fn reason(note: &str) -> String {
    let bare =
        VARYING.iter().take(2).fold(note.to_owned(), |text, (pattern, to)| pattern.replace(&text, *to).into_owned());
    let (what, seen) = split(&bare);
    // A turn that ended without an answer has this reason, whatever was expected of the answer.
    if !seen.starts_with("it ended")
        && !seen.starts_with("it never")
        && let Some(words) = expectation(what)
    {
        return quote(&words, LONGEST);
    }
    if let Some((limit, _)) = bare.split_once(": ").filter(|(limit, _)| limit.starts_with("slower than ")) {
        return limit.to_owned();
    }
    let mut text = note.to_owned();
    for (pattern, to) in VARYING.iter() {
        if let std::borrow::Cow::Owned(changed) = pattern.replace_all(&text, *to) {
            text = changed;
        }
    }
    if text.is_empty() { "no reason given".to_owned() } else { quote(&text, LONGEST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_an_expectation_is_said_in_words_and_any_other_stays() {
        for (note, words) in [
            (
                "turn 1: answer.contains: 90 euros: the answer says: The deposit is 80.",
                "turn 1: expected \"90 euros\", which is not in the answer; the answer says: The deposit is 80.",
            ),
            ("answer.refusal: true", "expected a refusal"),
            ("slower than 5 s: 10.89 s", "slower than 5 s: 10.89 s"),
        ] {
            assert_eq!(note_in_words(note), words);
        }
    }

    #[test]
    fn what_differs_from_unit_to_unit_is_no_reason() {
        for (note, expected) in [
            (
                "turn 1: answer.contains: 90 euros: the answer says: The deposit is 80.",
                "expected \"90 euros\", which is not in the answer",
            ),
            ("turn 12: calls.before: a, b: seen \"x\" (and 2 more)", "expected calls.before a, b"),
            ("turn 1: answer.refusal: true: it cites no source", "expected a refusal"),
            ("slower than 5 s: 10.89 s", "slower than 5 s"),
            ("slower than 5 s: no answer", "slower than 5 s"),
            ("turn 1: within: 5s: it took 6.10 s", "slower than 5s"),
            ("took 10.89 s", "took …"),
            (
                "https://a.example/b?c is lost: [1] of the external result, and 1 more",
                "URL is lost: [1] of the external result, and 1 more",
            ),
            ("answered in plain text; respond needed a reminder", "answered in plain text; respond needed a reminder"),
            ("not recovered (tool account, length)", "not recovered (tool account, length)"),
            ("cites hire#12", "cites hire#…"),
            ("", "no reason given"),
        ] {
            assert_eq!(reason(note), expected);
        }
        assert_eq!(VARYING.len(), 7, "a pattern does not compile");
    }

    #[test]
    fn causes_are_counted_by_unit_and_by_trial_whatever_the_order() {
        let violation =
            |trial: &str, note: &str| Violation { trial: trial.into(), unit: "turn 1".into(), note: note.into() };
        let one = vec![((0, 0), violation("a", "took 1 s")), ((0, 1), violation("a", "took 2 s"))];
        let two = vec![((1, 0), violation("b", "took 3 s")), ((1, 1), violation("b", "other"))];
        let (mut there, mut back) = (Causes::default(), Causes::default());
        there.add(one.clone());
        there.add(two.clone());
        back.add(two);
        back.add(one);
        assert_eq!(there.list(), back.list());
        let causes = there.list();
        assert_eq!((causes[0].reason.as_str(), causes[0].units, causes[0].trials), ("took …", 3, 2));
        assert_eq!((causes[0].first.trial.as_str(), causes[1].units), ("a", 1));
    }
}
