//! Which turn of a trial a span belongs to, whenever it arrives.
//!
//! A span belongs to the turn whose `traceparent` its outermost ancestor continues. If an ancestor did not come, it
//! belongs with the others below the same missing ancestor to the turn in which the first of them arrived.

use crate::trace::spans::Span;
use std::collections::BTreeMap;

/// The outermost span above a span that is known of.
#[derive(Debug, Clone, Copy)]
enum Top<'s> {
    /// The span of a turn, by its ordinal.
    Turn(usize),
    /// Another span, which may have not come, by its id.
    Span(&'s str),
}

/// The spans of a trial, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct TrialSpans {
    /// Each with the ordinal of the turn in which it arrived.
    spans: Vec<(usize, Span)>,
}

impl TrialSpans {
    /// Adds spans that arrived in that turn.
    pub(super) fn arrived(&mut self, turn: usize, spans: Vec<Span>) {
        self.spans.extend(spans.into_iter().map(|span| (turn, span)));
    }

    /// Places of the spans of each turn; `parents` are the ids that the turns sent, in order.
    pub(super) fn by_turn(&self, parents: &[String]) -> Vec<Vec<usize>> {
        let turns: BTreeMap<&str, usize> = parents.iter().enumerate().map(|(turn, id)| (id.as_str(), turn)).collect();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, (_, span)) in self.spans.iter().enumerate() {
            places.entry(&span.id).or_insert(place);
        }
        let mut tops: Vec<Option<Top<'_>>> = vec![None; self.spans.len()];
        let mut walks = vec![usize::MAX; self.spans.len()];
        for start in 0..self.spans.len() {
            let (mut path, mut at) = (Vec::new(), start);
            let top = loop {
                if let Some(known) = tops[at] {
                    break known;
                }
                let span = &self.spans[at].1;
                if walks[at] == start {
                    // A circle; the rest of the path leads into it.
                    break Top::Span(&span.id);
                }
                walks[at] = start;
                path.push(at);
                let Some(parent) = &span.parent else { break Top::Span(&span.id) };
                if let Some(turn) = turns.get(parent.as_str()) {
                    break Top::Turn(*turn);
                }
                match places.get(parent.as_str()) {
                    Some(next) => at = *next,
                    None => break Top::Span(parent),
                }
            };
            for place in path {
                tops[place] = Some(top);
            }
        }
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for ((turn, _), top) in self.spans.iter().zip(&tops) {
            if let Some(Top::Span(top)) = top {
                let known = first.entry(top).or_insert(*turn);
                *known = (*known).min(*turn);
            }
        }
        let mut by_turn = vec![Vec::new(); parents.len()];
        for (place, top) in tops.iter().enumerate() {
            let turn = match top {
                Some(Top::Turn(turn)) => *turn,
                Some(Top::Span(top)) => first[top],
                None => self.spans[place].0,
            };
            if let Some(own) = by_turn.get_mut(turn) {
                own.push(place);
            }
        }
        by_turn
    }

    /// The spans at those places.
    pub(super) fn at(&self, places: &[usize]) -> Vec<Span> {
        places.iter().map(|place| self.spans[*place].1.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: &str) -> Span {
        let parent = (!parent.is_empty()).then(|| parent.to_owned());
        Span { id: id.to_owned(), parent, ..Span::default() }
    }

    #[test]
    fn a_span_belongs_to_the_turn_that_its_outermost_ancestor_continues_whenever_it_arrives() {
        let parents = ["one".to_owned(), "two".to_owned()];
        let mut spans = TrialSpans::default();
        spans.arrived(0, vec![span("a", "one"), span("lost child", "lost")]);
        assert_eq!(spans.by_turn(&parents), [vec![0, 1], vec![]]);
        // Of the first turn: a late child, and one whose parent comes after it. An orphan goes with its sibling.
        let late = ["late", "b", "deep", "root", "late orphan"];
        let below = ["a", "two", "root", "one", "lost"];
        spans.arrived(1, late.iter().zip(below).map(|(id, parent)| span(id, parent)).collect());
        assert_eq!(spans.by_turn(&parents), [vec![0, 1, 2, 4, 5, 6], vec![3]]);
    }

    #[test]
    fn circles_roots_and_doubled_ids_belong_to_the_turn_of_their_arrival_and_none_is_lost() {
        let parents = ["one".to_owned(), "two".to_owned()];
        let mut spans = TrialSpans::default();
        spans.arrived(0, vec![span("x", "y"), span("y", "x"), span("own", "own"), span("alone", "")]);
        spans.arrived(1, vec![span("u", "v"), span("v", "u"), span("other", ""), span("y", "two")]);
        let by_turn = spans.by_turn(&parents);
        assert_eq!(by_turn, [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(spans.at(&by_turn[1]).len(), 4);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_spans_is_followed_in_time() {
        let chain = (0..100_000).map(|n| span(&format!("s{n}"), &format!("s{}", n + 1)));
        let mut spans = TrialSpans::default();
        spans.arrived(1, chain.chain([span("s100000", "one")]).collect());
        assert_eq!(spans.by_turn(&["one".to_owned(), "two".to_owned()])[0].len(), 100_001);
    }
}
