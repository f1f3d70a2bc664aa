//! Signs in a trace that a model was asked beside the proxy for a part of a turn, or that an answer is not whole: notes,
//! because agents may have reasons.

use crate::trace::{Reply, Role, Trace, TurnOutcome, What, cut_off};
use std::collections::BTreeSet;

/// Notes on calls that no completion made, on answers after a search whose result no completion was shown, and on answers
/// whose completion was cut off.
pub(super) fn notes(trace: &Trace) -> Vec<String> {
    let (mut written, mut unheard) = (BTreeSet::new(), BTreeSet::new());
    let mut asked: BTreeSet<(u32, &str)> = BTreeSet::new();
    let mut last: Option<&str> = None;
    for event in &trace.events {
        match &event.what {
            What::TurnStarted { .. } => last = None,
            What::ModelCalled(model) => {
                if let Reply::Completion(completion) = &model.reply {
                    asked.extend(completion.calls.iter().map(|tool| (model.call, tool.as_str())));
                }
                last = None;
            }
            What::ToolCalled(call) => {
                // A call of an MCP server that is recorded has no id, nor has one that the provider ran.
                if !call.id.is_empty() && !asked.contains(&(call.call, call.tool.as_str())) {
                    written.insert(call.tool.as_str());
                }
                let searches = matches!(trace.role(&call.tool), Role::Knowledge | Role::External);
                if searches && call.outcome.is_unseen() {
                    last = Some(&call.tool);
                }
            }
            What::TurnEnded(ended) if matches!(ended.outcome, TurnOutcome::Answered(_)) => {
                unheard.extend(last);
            }
            _ => {}
        }
    }
    let names = |tools: BTreeSet<&str>| tools.into_iter().collect::<Vec<_>>().join(", ");
    let written = (!written.is_empty()).then(|| {
        format!(
            "the agent wrote calls of {} into the conversation that no completion through the proxy made: if a model made \
             them, it was asked beside the proxy",
            names(written)
        )
    });
    let unheard = (!unheard.is_empty()).then(|| {
        format!(
            "the agent answered after a call of {} whose result no request shows: if a model wrote the answer, it was asked \
             beside the proxy",
            names(unheard)
        )
    });
    written.into_iter().chain(unheard).chain(cut_off(&trace.events)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{Story, plan, story};
    use crate::trace::{ToolOutcome, ToolResult};
    use serde_json::json;

    /// The notes on a trace of one turn whose first completion was cut off, and whose last one stopped for `finish`.
    fn noted(tell: impl Fn(Story) -> Story, finish: &str) -> Vec<String> {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let mut told = tell(story(&plan, 0).turn("q")).completion_shown(&["q"]);
        let mut finishes = ["length", finish].into_iter();
        told.each(|what| {
            if let What::ModelCalled(called) = what
                && let Reply::Completion(completion) = &mut called.reply
            {
                completion.finish = finishes.next().expect("two completions").to_owned();
            }
        });
        // Its response call is the story's, and no completion's.
        let respond = |note: &String| !note.contains("calls of generate_response into");
        notes(&told.answer("x", &[]).done()).into_iter().filter(respond).collect()
    }

    #[test]
    fn an_answer_whose_last_completion_was_cut_off_has_a_note() {
        assert_eq!(noted(|story| story, "stop"), Vec::<String>::new());
        for finish in ["length", "content_filter"] {
            let found = noted(|story| story, finish);
            assert!(matches!(found.as_slice(), [one] if one.contains(&format!("(`{finish}`)"))), "{found:?}");
        }
    }

    #[test]
    fn a_call_that_no_completion_made_has_a_note() {
        let found =
            noted(|story| story.call("look_up", json!({}), ToolOutcome::Ok(ToolResult::Other(json!(1)))), "stop");
        assert!(
            matches!(found.as_slice(), [one] if one.contains("calls of generate_response, look_up into")),
            "{found:?}"
        );
    }
}
