//! What a trial did, as one number: two trials with equal numbers held the same conversation.
//!
//! Of its case: what was said, what was called with which arguments, what came of it, what was answered. Not: times, ids
//! that a provider made, tokens. Repetitions that are equal in all of this show no more than one of them.

use crate::trace::{Reply, ToolOutcome, Trace, TurnOutcome, What};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of a trace.
pub(super) fn behaviour(trace: &Trace) -> u64 {
    let mut hash = DefaultHasher::new();
    (&trace.scenario, &trace.case, &trace.lane.flow, &trace.lane.arm).hash(&mut hash);
    for event in &trace.events {
        (event.conversation, event.turn).hash(&mut hash);
        match &event.what {
            What::TurnStarted { query } => ("asks", query).hash(&mut hash),
            What::ModelCalled(called) => match &called.reply {
                Reply::Completion(completion) => {
                    ("model", &completion.text, &completion.refusal, &completion.calls).hash(&mut hash);
                }
                Reply::Failure { kind, .. } => ("no model", kind).hash(&mut hash),
            },
            What::ToolCalled(called) => {
                ("tool", &called.tool, &called.arguments, outcome(&called.outcome)).hash(&mut hash);
            }
            What::Searched(search) => ("search", &search.query, outcome(&search.outcome)).hash(&mut hash),
            What::FedBack(told) => ("told", &told.tool, &told.cause).hash(&mut hash),
            What::TurnEnded(ended) => match &ended.outcome {
                TurnOutcome::Answered(answer) => {
                    let sources: Vec<&str> = answer.sources.iter().map(|source| source.id.as_str()).collect();
                    ("answer", &answer.text, sources).hash(&mut hash);
                }
                TurnOutcome::Failed { kind, .. } => ("error", kind).hash(&mut hash),
            },
            What::ConversationStarted { .. }
            | What::Moved(_)
            | What::Retried(_)
            | What::Degraded { .. }
            | What::Logged(_) => {}
        }
    }
    hash.finish()
}

fn outcome(outcome: &ToolOutcome) -> &str {
    match outcome {
        ToolOutcome::Ok(_) => "ok",
        ToolOutcome::Rejected(rejection) | ToolOutcome::OutOfOrder(rejection) => rejection.cause.as_str(),
        ToolOutcome::Failed { .. } => "failed",
        ToolOutcome::Unseen { .. } => "unseen",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{good, plan, story};

    #[test]
    fn repetitions_that_do_the_same_are_one_behaviour_and_other_words_are_another() {
        let plan = plan("[{case: a, ask: q}]", "[]", 3);
        let told = |place: usize, text: &str| story(&plan, place).turn("q").search(&["doc#1"]).answer(text, &[]).done();
        assert_eq!(behaviour(&good(&plan, 0)), behaviour(&good(&plan, 1)));
        assert_ne!(behaviour(&told(0, "so")), behaviour(&told(1, "or so")));
        let slow = {
            let mut slow = told(2, "so");
            slow.took_us = 99;
            slow
        };
        assert_eq!(behaviour(&told(0, "so")), behaviour(&slow), "time is no behaviour");
    }
}
