//! Expectations on keyword indexing.

use super::generic::{is_generic, normalise};
use super::keyword_coverage::indexed;
use super::{Held, Seen, TurnView, quote};
use crate::scenario::expect::KeywordsExpectation;
use std::collections::BTreeSet;

/// Checks every given key and returns what was observed where it does not hold; `turns` are those that the
/// expectation covers, `all` the whole trial's.
pub(super) fn check(
    expected: &KeywordsExpectation,
    turns: &[&TurnView<'_>],
    all: &[TurnView<'_>],
) -> Vec<(String, Held)> {
    let indexings = || turns.iter().flat_map(|turn| turn.indexings());
    let stored: BTreeSet<String> =
        indexings().flat_map(|index| index.keywords.iter().map(|word| normalise(word))).collect();
    let merged: BTreeSet<String> =
        indexings().flat_map(|index| index.merged.iter().map(|word| normalise(word))).collect();
    let listing = |words: &BTreeSet<String>| {
        let words: Vec<_> = words.iter().take(12).map(|word| quote(word, 50)).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    let mut results = Vec::new();
    if let Some(wanted) = expected.indexed {
        results.push((format!("keywords.indexed: {wanted}"), check_indexed(wanted, turns, &listing(&stored))));
    }
    for word in &expected.include {
        let held = stored.contains(&normalise(word));
        let seen = || Seen::new(format!("indexed keywords were: {}", listing(&stored)));
        results.push((format!("keywords.include: {word}"), held.then_some(()).ok_or_else(seen)));
    }
    if let Some(wanted) = expected.none_generic {
        let generic: BTreeSet<String> = stored.iter().filter(|word| is_generic(word)).cloned().collect();
        let result = match (stored.is_empty(), generic.is_empty() == wanted) {
            // Without keywords none is generic, which is no evidence.
            (true, _) => Err(Seen::new("no keywords were indexed")),
            (false, true) => Ok(()),
            (false, false) => Err(Seen::new(format!("generic keywords: {}", listing(&generic)))),
        };
        results.push((format!("keywords.none_generic: {wanted}"), result));
    }
    for word in &expected.merged {
        let held = merged.contains(&normalise(word));
        let seen = || Seen::new(format!("merged keywords were: {}", listing(&merged)));
        results.push((format!("keywords.merged: {word}"), held.then_some(()).ok_or_else(seen)));
    }
    if let Some(later) = &expected.found_by {
        results.push((format!("keywords.found_by: {later}"), check_found(later, turns, all)));
    }
    results
}

fn check_indexed(wanted: bool, turns: &[&TurnView<'_>], stored: &str) -> Held {
    if wanted {
        if turns.iter().all(|turn| turn.externals().next().is_none()) {
            return Err(Seen::new("there was no external result to index"));
        }
        return turns.iter().try_for_each(|turn| indexed(turn));
    }
    let none = turns.iter().all(|turn| turn.indexings().next().is_none());
    if none { Ok(()) } else { Err(Seen::new(format!("indexed keywords were: {stored}"))) }
}

fn check_found(later: &str, turns: &[&TurnView<'_>], all: &[TurnView<'_>]) -> Held {
    let origins: BTreeSet<u32> = turns.iter().filter(|turn| turn.name != later).map(|turn| turn.conversation).collect();
    let mut searches = all.iter().filter(|turn| turn.name == later).flat_map(TurnView::searches).peekable();
    if searches.peek().is_none() {
        return Err(Seen::new(format!("conversation {later} searched nothing")));
    }
    let found = searches
        .flat_map(|search| &search.hits)
        .any(|hit| hit.learned.as_ref().is_some_and(|learned| origins.contains(&learned.conversation)));
    if found {
        Ok(())
    } else {
        Err(Seen::new(format!("no search of conversation {later} found what was learned here")))
    }
}
