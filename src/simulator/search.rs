//! The simulated search service: the first topic that fits the query answers.

use super::behaviour::{Caller, FailTimes, Page, SearchBehaviour};
use super::dice::Dice;
use std::time::Duration;

/// What the service says to one query.
#[derive(Debug, Clone)]
pub(super) struct Found<'a> {
    /// The text.
    pub answer: &'a str,
    /// The pages it rests on.
    pub results: &'a [Page],
    /// How long it takes.
    pub latency: Duration,
    /// Which failure comes first (its position in the file), with which status, and how often.
    pub failure: Option<(usize, u16, FailTimes)>,
}

/// The answer to what no topic fits.
const NOTHING: &str = "No reliable source was found for this question.";

/// Answers one query.
pub(super) fn ask<'a>(behaviour: &'a SearchBehaviour, seed: u64, caller: Caller<'_>, query: &str) -> Found<'a> {
    let topic = behaviour.topics.iter().find(|topic| topic.when.holds(query, caller));
    let failure = behaviour.failures.iter().enumerate().find(|(_, failure)| failure.when.holds(query, caller));
    Found {
        answer: topic.map_or(NOTHING, |topic| topic.answer.as_str()),
        results: topic.map_or(&[], |topic| topic.results.as_slice()),
        latency: behaviour.latency.draw(&Dice::new(seed, &["search", caller.seed, query])),
        failure: failure.map(|(at, failure)| (at, failure.status, failure.times)),
    }
}
