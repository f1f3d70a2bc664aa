//! Where the time of each turn went: model, knowledge, Perplexity, indexing, and overhead, along the critical path.
//!
//! What ran beside something longer costs nothing, and every instant belongs to one stage, so that the stages of a turn
//! sum to its time: see [`critical_path`](crate::stats::critical_path). Retries and waits belong to what was retried.

use crate::stats::critical_path::{Span, attribute};
use crate::trace::{Trace, TurnOutcome, What};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A stage that time is spent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Completions of the model, waits before another attempt included.
    Model,
    /// Searches of the knowledge base.
    Knowledge,
    /// The external search service.
    Perplexity,
    /// Indexing of keywords.
    Indexing,
    /// What is left: the agent itself.
    Overhead,
}

impl Stage {
    /// All of them, in the order in which reports show them.
    pub const ALL: [Self; 5] = [Self::Model, Self::Knowledge, Self::Perplexity, Self::Indexing, Self::Overhead];

    /// As reports print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Knowledge => "knowledge",
            Self::Perplexity => "Perplexity",
            Self::Indexing => "indexing",
            Self::Overhead => "overhead",
        }
    }

    fn of_tool(tool: &str) -> Self {
        match tool {
            "knowledge_base_search" => Self::Knowledge,
            "perplexity_search" => Self::Perplexity,
            "index_keywords" => Self::Indexing,
            _ => Self::Overhead,
        }
    }
}

/// The time of one turn that got an answer, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTime {
    /// From the user's words to the answer.
    pub took_us: u64,
    /// The same by stage, in the order of [`Stage::ALL`]: the sum is `took_us`.
    pub stages_us: [u64; 5],
}

/// The times of the turns that got an answer, by conversation and turn.
pub fn turn_times(trace: &Trace) -> Vec<TurnTime> {
    let mut open: BTreeMap<(u32, u32), Vec<Span<Stage>>> = BTreeMap::new();
    let mut times: BTreeMap<(u32, u32), TurnTime> = BTreeMap::new();
    for event in &trace.events {
        let key = (event.conversation, event.turn);
        let mut part = |stage: Stage, took_us: u64| {
            let (start_us, end_us) = (event.at_us, event.at_us.saturating_add(took_us));
            open.entry(key).or_default().push(Span { stage, parent: Some(0), start_us, end_us, awaited: true });
        };
        match &event.what {
            // Its end is known when the turn has ended.
            What::TurnStarted { .. } => {
                let (start_us, end_us) = (event.at_us, event.at_us);
                let whole = Span { stage: Stage::Overhead, parent: None, start_us, end_us, awaited: true };
                open.insert(key, vec![whole]);
            }
            What::ModelCalled(called) => part(Stage::Model, called.took_us),
            What::ToolCalled(called) => part(Stage::of_tool(&called.tool), called.took_us),
            What::TurnEnded(ended) => {
                let mut spans = open.remove(&key).unwrap_or_default();
                let Some(whole) = spans.first_mut() else { continue };
                whole.end_us = whole.start_us.saturating_add(ended.took_us);
                let Ok(found) = attribute(&spans) else { continue };
                if matches!(ended.outcome, TurnOutcome::Answered(_)) {
                    let stages_us = Stage::ALL.map(|stage| found.get(&stage).copied().unwrap_or(0));
                    times.insert(key, TurnTime { took_us: ended.took_us, stages_us });
                }
            }
            _ => {}
        }
    }
    times.into_values().collect()
}

/// Times from asking the model to the first word or call of its answer, in microseconds: of streams alone.
pub fn first_tokens(trace: &Trace) -> impl Iterator<Item = u64> {
    trace.events.iter().filter_map(|event| match &event.what {
        What::ModelCalled(called) => called.first_token_us,
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};
    use proptest::prelude::*;

    /// A turn of 9 s, in tenths: the reference request of `critical_path`, told as events.
    fn request() -> Trace {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let mut trace = story(&plan, 0)
            .turn("q")
            .search(&["doc#1"])
            .external("result-1")
            .index("result-1", &["k"], 1)
            .deliver("so", &[], 9_000_000)
            .done();
        let asked = trace.events[1].clone();
        trace.events.extend([asked.clone(), asked]);
        let at =
            [None, Some((2, 22)), Some((23, 29)), Some((23, 53)), Some((54, 64)), None, Some((54, 80)), Some((81, 88))];
        for (event, at) in trace.events.iter_mut().zip(at) {
            let Some((from, to)) = at else { continue };
            event.at_us = from * 100_000;
            match &mut event.what {
                What::ModelCalled(called) => called.took_us = (to - from) * 100_000,
                What::ToolCalled(called) => called.took_us = (to - from) * 100_000,
                other => panic!("{other:?} takes no time"),
            }
        }
        trace.events[5].at_us = 9_000_000;
        // The end is noticed last.
        let ended = trace.events.remove(5);
        trace.events.push(ended);
        trace
    }

    #[test]
    fn the_reference_request_is_attributed_to_its_stages() {
        let found = turn_times(&request());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].stages_us.map(|us| us / 100_000), [53, 0, 30, 0, 7]);
        assert_eq!(found[0].stages_us.iter().sum::<u64>(), 9_000_000);
    }

    #[test]
    fn a_turn_that_ends_in_an_error_has_no_stages() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        assert_eq!(turn_times(&story(&plan, 0).turn("q").fail("timeout").done()), []);
        assert_eq!(turn_times(&story(&plan, 0).turn("q").done()), []);
    }

    proptest! {
        #[test]
        fn the_stages_of_a_turn_sum_to_its_time(
            parts in proptest::collection::vec((0_u64..12_000_000, 0_u64..12_000_000), 7),
        ) {
            let mut trace = request();
            for (event, (at_us, took)) in trace.events.iter_mut().zip(parts) {
                match &mut event.what {
                    What::ModelCalled(called) => called.took_us = took,
                    What::ToolCalled(called) => called.took_us = took,
                    _ => continue,
                }
                event.at_us = at_us;
            }
            let found = turn_times(&trace);
            prop_assert_eq!(found[0].stages_us.iter().sum::<u64>(), found[0].took_us);
        }
    }
}
