//! The simulated search service: the first topic that matches the query answers.

use super::behaviour::{Caller, Page, SearchBehaviour};
use super::dice::Dice;
use std::time::Duration;

/// Response to one query.
#[derive(Debug, Clone)]
pub(super) struct SearchAnswer<'a> {
    /// The text.
    pub answer: &'a str,
    pub results: &'a [Page],
    /// Response time.
    pub latency: Duration,
}

/// Answer if no topic matches.
const NOTHING: &str = "No reliable source was found for this question.";

pub(super) fn ask<'a>(behaviour: &'a SearchBehaviour, seed: u64, caller: Caller<'_>, query: &str) -> SearchAnswer<'a> {
    let topic = behaviour.topics.iter().find(|topic| topic.when.holds(query, caller));
    SearchAnswer {
        answer: topic.map_or(NOTHING, |topic| topic.answer.as_str()),
        results: topic.map_or(&[], |topic| topic.results.as_slice()),
        latency: behaviour.latency.draw(&Dice::new(seed, &["search", caller.seed, query])),
    }
}
