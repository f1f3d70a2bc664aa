//! What a trial did, as a number: trials with the same number are one conversation, seen more than once.
//!
//! Told apart by what users asked, which calls were made with which values, and what came of them. Not by its case, wording
//! (of the model, its queries and its answers), times, tokens, and ids that a provider made.

use crate::trace::{Role, ToolOutcome, Trace, TurnOutcome, What};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of a trace.
pub(super) fn behaviour(trace: &Trace) -> u64 {
    let mut hash = DefaultHasher::new();
    (&trace.lane.flow, &trace.lane.arm).hash(&mut hash);
    for event in &trace.events {
        let place = (event.conversation, event.turn);
        match &event.what {
            What::TurnStarted { query } => {
                let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
                (place, "asks", words).hash(&mut hash);
            }
            What::ToolCalled(called) => {
                (place, "tool", &called.tool, outcome(&called.outcome)).hash(&mut hash);
                // What the response tool is given is wording and what it cites.
                if trace.role(&called.tool) != Role::Respond {
                    values(&called.arguments, &mut hash);
                }
            }
            What::Searched(search) => (place, "search", outcome(&search.outcome)).hash(&mut hash),
            What::FedBack(told) => (place, "told", &told.tool, &told.cause).hash(&mut hash),
            What::TurnEnded(ended) => match &ended.outcome {
                TurnOutcome::Answered(answer) => (place, "answer", answer.refused).hash(&mut hash),
                TurnOutcome::Failed { kind, .. } => (place, "error", kind).hash(&mut hash),
            },
            What::ConversationStarted { .. }
            | What::ModelCalled(_)
            | What::Moved(_)
            | What::Retried(_)
            | What::Degraded { .. }
            | What::Logged(_) => {}
        }
    }
    hash.finish()
}

/// The values of arguments but for wording: queries, and texts of several words.
fn values(arguments: &Value, hash: &mut DefaultHasher) {
    match arguments {
        Value::Object(members) => {
            for (name, value) in members {
                name.hash(hash);
                if name != "query" {
                    values(value, hash);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, hash)),
        Value::String(text) if text.contains(char::is_whitespace) => "words".hash(hash),
        other => other.to_string().hash(hash),
    }
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
    fn what_differs_in_wording_alone_is_one_behaviour_and_another_question_or_call_is_another() {
        let plan = plan("[{case: a, ask: q}]", "[]", 3);
        let told = |place: usize, text: &str| story(&plan, place).turn("q").search(&["doc#1"]).answer(text, &[]).done();
        assert_eq!(behaviour(&good(&plan, 0)), behaviour(&good(&plan, 1)));
        assert_eq!(behaviour(&told(0, "so")), behaviour(&told(1, "or so")), "wording is no behaviour");
        let other = story(&plan, 1).turn("another").search(&["doc#1"]).answer("so", &[]).done();
        assert_ne!(behaviour(&told(0, "so")), behaviour(&other), "another question");
        let without = story(&plan, 1).turn("q").answer("so", &[]).done();
        assert_ne!(behaviour(&told(0, "so")), behaviour(&without), "another call");
        let spoken = story(&plan, 1).turn(" Q ").search(&["doc#1"]).answer("so", &[]).done();
        assert_eq!(behaviour(&told(0, "so")), behaviour(&spoken));
        let hashed = |arguments: serde_json::Value| {
            let mut hash = DefaultHasher::new();
            values(&arguments, &mut hash);
            hash.finish()
        };
        let call = |query: &str, order: &str| serde_json::json!({"query": query, "order": order});
        assert_eq!(hashed(call("warranty", "A-1")), hashed(call("warranty please", "A-1")));
        assert_ne!(hashed(call("warranty", "A-1")), hashed(call("warranty", "A-2")));
        let slow = {
            let mut slow = told(2, "so");
            slow.took_us = 99;
            slow
        };
        assert_eq!(behaviour(&told(0, "so")), behaviour(&slow), "time is no behaviour");
    }
}
