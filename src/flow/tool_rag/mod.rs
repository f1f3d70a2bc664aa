//! `tool-rag`: the agent that does everything through tools.
//!
//! One turn is: search the knowledge base (mandatory), judge, go outside for what is missing, keep keywords for what
//! came from there, respond through `generate_response` (mandatory). A missing mandatory call is fed back once, then
//! the turn fails. [`converse`] reads from top to bottom; the decisions are pure functions in `policy`, what each
//! tool call does is in `steps`, the states are in `machine`, retries are booked in `retries`.

mod machine;
mod policy;
mod steps;
pub mod tools;
pub(in crate::flow) mod turn;

#[cfg(test)]
mod tests;

use super::{Abort, AgentContext, ConversationState, Flow};
use crate::clock::{BoxFuture, timeout};
use crate::state_machine::Machine;
use crate::trace::TurnOutcome;
use policy::{Next, Seen, Step};
use turn::{Reply, Turn};

/// The name that scenarios use.
pub const NAME: &str = "tool-rag";

/// The flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolRag;

impl Flow for ToolRag {
    fn name(&self) -> &'static str {
        NAME
    }

    fn machine(&self) -> Machine {
        machine::machine()
    }

    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>> {
        Box::pin(async move {
            let mut turn = Turn::begin(env, conversation, query);
            let limit = *env.settings.limits.turn;
            let ended = timeout(&*env.clock, limit, converse(&mut turn)).await;
            let outcome = if let Ok(outcome) = ended {
                outcome?
            } else {
                turn.cut_off();
                turn.failed("timeout", "timeout", format!("No answer was ready within {} s.", limit.as_secs_f64()))
            };
            turn.end(query, outcome);
            Ok(())
        })
    }
}

/// Everything between the user's words and the outcome.
async fn converse(turn: &mut Turn<'_>) -> Result<TurnOutcome, Abort> {
    loop {
        if let Some(limit) = turn.model_calls_used_up() {
            let message = format!("No answer was ready after {limit} steps of the assistant.");
            return Ok(turn.failed("model_calls_exhausted", "model_calls_exhausted", message));
        }
        let completion = match turn.ask_model().await? {
            Reply::Completion(completion) => completion,
            Reply::Unavailable(why) => {
                let message = format!("The language model is not available ({why}). Please try again later.");
                return Ok(turn.failed("model_unavailable", "model_unavailable", message));
            }
        };

        let mut seen = Seen { free_text: completion.free_text, ..Seen::default() };
        let mut answer = None;
        let before = turn.progress.clone();
        for call in &completion.calls {
            let made = steps::Made {
                call,
                completion: completion.ordinal,
                before: &before,
                alone: completion.calls.len() == 1,
            };
            answer = steps::take(turn, &made, &mut seen).await?.or(answer);
        }

        match policy::next(&turn.progress, &seen) {
            Next::Ask => {}
            Next::FeedBack(step, cause, reason) => turn.feed_back(step, cause, &reason),
            Next::Deliver => {
                if let Some(answer) = answer {
                    turn.moved_to_end("answered", machine::ANSWERED);
                    return Ok(TurnOutcome::Answered(answer));
                }
            }
            Next::Refused => {
                let message = "The knowledge base could not be searched: every query was refused.";
                return Ok(turn.failed("parameters_refused", "mandatory_call_missing", message.into()));
            }
            Next::Fail(step) => {
                let (on, kind) = match step {
                    Step::Knowledge => ("knowledge_missing", "mandatory_call_missing"),
                    Step::Keywords | Step::Response => ("response_missing", "response_missing"),
                };
                let message = format!(
                    "No answer was given: the step {} needs a call of {}, which did not come, also when asked for.",
                    step.name(),
                    step.tool()
                );
                return Ok(turn.failed(on, kind, message));
            }
        }
    }
}
