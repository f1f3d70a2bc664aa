//! `latency_p50`, `_p90`, `_p95`, `_p99`: time from the user's input to the answer, retries and waits included.
//!
//! A target is the claim P(T < limit) >= q. A turn that ended in an error or never ended counts as slower than any
//! limit; leaving it out would make failing fast look quick.

use super::catalogue::Registered;
use super::{Member, Metric, Observation, Outcome, TrialView};
use crate::trace::TurnOutcome;

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[
    Registered::time("latency_p50", 50, |_| metric(0.50))
        .about("Time from the user's words to the answer: half of all queries stay below."),
    Registered::time("latency_p90", 90, |_| metric(0.90))
        .about("Time from the user's words to the answer: 90 % of queries stay below."),
    Registered::time("latency_p95", 95, |_| metric(0.95))
        .about("Time from the user's words to the answer: 95 % of queries stay below."),
    Registered::time("latency_p99", 99, |_| metric(0.99))
        .about("Time from the user's words to the answer: 99 % of queries stay below."),
];

/// The share of turns that must stay below the limit is `quantile`.
fn metric(quantile: f64) -> Metric {
    Metric { quantile, members: &[Member::Took, Member::Answers], ..Metric::new("queries", observe) }
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let unit = |turn: &super::TurnView<'_>| {
        let (outcome, note) = match turn.ended() {
            Some(end) if matches!(end.outcome, TurnOutcome::Answered(_)) => (Outcome::Took(end.took_us), String::new()),
            _ => (Outcome::Never, turn.ending()),
        };
        Observation { unit: turn.label(), outcome, note }
    };
    view.turns.iter().map(unit).collect()
}
