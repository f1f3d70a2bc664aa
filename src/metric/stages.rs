//! Time of each turn by stage: model, each tool by name, and overhead, along the critical path.
//!
//! What ran beside something longer costs nothing, and every instant belongs to one stage, so the stages of a turn
//! sum to its time: see [`critical_path`](crate::stats::critical_path). Retries and waits count for what was retried.

use super::turns::executed;
use crate::stats::critical_path::{Span, attribute};
use crate::trace::{FlowSearch, Member, Trace, TurnOutcome, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A stage of a turn, written as its name; a tool called `model` or `overhead` is written `tool model`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Stage {
    /// Completions of the model, including waits before another attempt.
    Model,
    /// A tool, by name, including waits before another attempt.
    Tool(Box<str>),
    /// The rest: the agent itself.
    Overhead,
}

const MODEL: &str = "model";
const OVERHEAD: &str = "overhead";

impl Stage {
    /// Name as printed in reports.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Model => MODEL,
            Self::Tool(name) => name,
            Self::Overhead => OVERHEAD,
        }
    }
}

impl From<String> for Stage {
    fn from(name: String) -> Self {
        match name.as_str() {
            MODEL => Self::Model,
            OVERHEAD => Self::Overhead,
            other => Self::Tool(other.strip_prefix("tool ").unwrap_or(other).into()),
        }
    }
}

impl From<Stage> for String {
    fn from(stage: Stage) -> Self {
        match &stage {
            Stage::Tool(name) if matches!(&**name, MODEL | OVERHEAD) => format!("tool {name}"),
            stage => stage.as_str().to_owned(),
        }
    }
}

/// Time of one answered turn, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnTime {
    /// From the user's input to the answer.
    pub took_us: u64,
    /// The same by stage; the values sum to `took_us`. Empty if the trace does not show how long its parts took.
    pub stages_us: BTreeMap<Stage, u64>,
}

/// Times of the answered turns, by conversation and turn.
pub(crate) fn turn_times(trace: &Trace) -> Vec<TurnTime> {
    let mut open: BTreeMap<(u32, u32), Vec<Span<Stage>>> = BTreeMap::new();
    let mut times: BTreeMap<(u32, u32), TurnTime> = BTreeMap::new();
    for event in &trace.events {
        let key = (event.conversation, event.turn);
        let mut part = |stage: Stage, took_us: u64| {
            let (start_us, end_us) = (event.at_us, event.at_us.saturating_add(took_us));
            open.entry(key).or_default().push(Span { stage, parent: Some(0), start_us, end_us, awaited: true });
        };
        match &event.what {
            // The end is known only when the turn has ended.
            What::TurnStarted { .. } => {
                let (start_us, end_us) = (event.at_us, event.at_us);
                let whole = Span { stage: Stage::Overhead, parent: None, start_us, end_us, awaited: true };
                open.insert(key, vec![whole]);
            }
            What::ModelCalled(called) => part(Stage::Model, called.took_us),
            // A rejected call ran nothing, whatever name the model wrote.
            What::ToolCalled(called) if executed(called) => {
                part(Stage::Tool(called.tool.as_str().into()), called.took_us);
            }
            What::Searched(search) => part(Stage::Tool(FlowSearch::NAME.into()), search.took_us),
            What::Requested(one) => part(Stage::Tool(one.service.as_str().into()), one.took_us),
            What::TurnEnded(ended) => {
                let mut spans = open.remove(&key).unwrap_or_default();
                let Some(whole) = spans.first_mut() else { continue };
                whole.end_us = whole.start_us.saturating_add(ended.took_us);
                let stages = if trace.lacks(Member::TookParts) { Ok(BTreeMap::new()) } else { attribute(&spans) };
                let Ok(stages_us) = stages else { continue };
                if matches!(ended.outcome, TurnOutcome::Answered(_)) {
                    times.insert(key, TurnTime { took_us: ended.took_us, stages_us });
                }
            }
            _ => {}
        }
    }
    times.into_values().collect()
}

/// Times from the request to the first token or call of the completion, in microseconds; streamed completions only.
pub(crate) fn first_tokens(trace: &Trace) -> impl Iterator<Item = u64> {
    trace.events.iter().filter_map(|event| match &event.what {
        What::ModelCalled(called) => called.first_token_us,
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};
    use crate::trace::Requested;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// A turn of 9 s, in tenths: the reference request of `critical_path`, as events.
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
        let tool = |name: &str| Stage::Tool(name.into());
        let tenths: BTreeMap<Stage, u64> =
            found[0].stages_us.iter().map(|(stage, us)| (stage.clone(), us / 100_000)).collect();
        let outside = request().tools_of(crate::trace::Role::External).map(tool).next().expect("a tool");
        assert_eq!((tenths[&Stage::Model], tenths[&outside], tenths[&Stage::Overhead]), (53, 30, 7));
        assert_eq!(found[0].stages_us.values().sum::<u64>(), 9_000_000);
        assert_eq!(found[0].stages_us.len(), 5, "the model, three tools, and the rest: {tenths:?}");
    }

    #[test]
    fn a_tool_with_the_name_of_another_stage_stays_a_tool() {
        for stage in [Stage::Model, Stage::Overhead, Stage::Tool("model".into()), Stage::Tool("lookup".into())] {
            let written = serde_json::to_string(&stage).expect("a name");
            assert_eq!(serde_json::from_str::<Stage>(&written).expect("a stage"), stage, "{written}");
        }
    }

    #[test]
    fn a_turn_that_ends_in_an_error_has_no_stages() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        assert_eq!(turn_times(&story(&plan, 0).turn("q").fail("timeout").done()), []);
        assert_eq!(turn_times(&story(&plan, 0).turn("q").done()), []);
    }

    #[test]
    fn a_request_to_a_service_is_a_stage_and_a_rejected_call_is_none() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let (service, method, path) = ("crm".to_owned(), "GET".to_owned(), "/a".to_owned());
        let requested = Requested { service, method, path, failed: None, took_us: 5, attempts: Vec::new() };
        let story = story(&plan, 0).turn("q").rejected("lookup").push(What::Requested(requested));
        let times = turn_times(&story.deliver("so", &[], 9).done());
        let stages: BTreeSet<Stage> = times[0].stages_us.keys().cloned().collect();
        assert_eq!(stages, [Stage::Model, Stage::Overhead, Stage::Tool("crm".into())].into());
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
            prop_assert_eq!(found[0].stages_us.values().sum::<u64>(), found[0].took_us);
        }
    }
}
