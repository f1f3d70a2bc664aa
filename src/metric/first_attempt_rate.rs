//! `first_attempt_rate(TOOL)`: queries whose first attempt at the final step is a valid call of the tool / queries
//! (SC-002). The tool is the one with the role `respond` unless named.
//!
//! Free text, another tool, invalid arguments and a refusal use up the first attempt; the trace shows this as
//! feedback about the tool, as a call of it that was rejected or failed, or as a call of a tool that does not exist. A
//! call out of order, or of no tool, belongs to an earlier step and uses up nothing if that step was still to come:
//! another tool ran after it, or in the same completion.
//! HTTP retries use up nothing. A query that never reached the final step has no valid first attempt: a failure.

use super::catalogue::Registered;
use super::tools::Tools;
use super::turns::{executed, not_shown};
use super::{Held, Member, Metric, Seen, TurnView, quote};
use crate::settings::catalogue::Parameter;
use crate::trace::{ToolCalled, ToolOutcome, Trace, What};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("first_attempt_rate", |asked| metric(Tools::of(asked)))
    .about("Queries whose first attempt at the final step is a valid call of the tool.")
    .takes(&[Parameter::tool(Some("respond"))])];

/// The cause of a reminder, as a person would say it.
fn in_words(cause: &str) -> String {
    match cause {
        "free_text" => "answered in plain text".to_owned(),
        "empty" => "the reply was empty".to_owned(),
        "cut_off" => "the reply was cut off".to_owned(),
        "refusal" => "the model refused".to_owned(),
        "missing_call" => "not called".to_owned(),
        cause => quote(&cause.replace('_', " "), 60),
    }
}

/// Whether the call was rejected because the agent has no such tool.
fn is_unknown(call: &ToolCalled) -> bool {
    matches!(&call.outcome, ToolOutcome::Rejected(rejection) if rejection.cause == "unknown_tool")
}

/// The metric for a tool, or the tools with its role.
fn metric(tools: Tools) -> Metric {
    Metric {
        needs: vec![tools.clone()],
        reads_outcomes: true,
        members: &[Member::Calls, Member::Feedback, Member::Sequence],
        ..Metric::by_turn("queries", move |turn, trace| Some(judge(&tools, turn, trace)))
    }
}

fn judge(tools: &Tools, turn: &TurnView<'_>, trace: &Trace) -> Held {
    let name = || tools.label(trace);
    // What a call out of order or of no tool did, until an earlier step excuses it, and whether a step ran in this
    // completion.
    let (mut unexcused, mut ran, mut listed) = (None, false, false);
    for what in &turn.events {
        match what {
            What::ModelCalled(called) => (ran, listed) = (false, called.reply.lists_calls()),
            What::FedBack(told) if tools.has(trace, &told.tool) => {
                return Err(Seen::new(format!("{}; {} needed a reminder", in_words(&told.cause), name())));
            }
            What::ToolCalled(call) if tools.has(trace, &call.tool) => match &call.outcome {
                ToolOutcome::Ok(_) => return unexcused.map_or(Ok(()), |why| Err(Seen::new(why))),
                ToolOutcome::Unseen { .. } => return Err(not_shown(&name())),
                ToolOutcome::OutOfOrder(_) => {
                    let why = || format!("{} was first called out of order at its own step", name());
                    unexcused = (!(ran && listed)).then(why);
                }
                ToolOutcome::Rejected(rejection) => {
                    return Err(Seen::new(format!("first call rejected: {}", quote(&rejection.reason, 100))));
                }
                ToolOutcome::Failed { message, .. } => {
                    return Err(Seen::new(format!("first call failed: {}", quote(message, 100))));
                }
            },
            What::ToolCalled(call) if executed(call) => (ran, unexcused) = (true, None),
            What::ToolCalled(call) if is_unknown(call) && !(ran && listed) => {
                let tool = quote(&call.tool, 60);
                unexcused = Some(format!("`{tool}`, which does not exist, was called before {}", name()));
            }
            _ => {}
        }
    }
    Err(Seen::new(format!("{} was never accepted: {}", name(), turn.ending())))
}
