//! `mandatory_call_rate(TOOL, at=after_retry|first)`: queries in which the tool was executed before the answer /
//! queries (SC-001).
//!
//! A call that ran and failed counts: the model did its part. A rejected call, or one out of order, did not run. A
//! call in the same completion as the response does not precede the answer, whose text was written with it. With
//! `at=first`, a query fails if the controller had to ask for the call or rejected it.

use super::catalogue::Registered;
use super::tools::Tools;
use super::turns::{executed, not_shown};
use super::{Held, Member, Metric, Seen, TurnView};
use crate::settings::catalogue::Parameter;
use crate::trace::{Role, ToolCalled, ToolOutcome, Trace, What};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("mandatory_call_rate", |asked| {
    metric(Tools::of(asked), if asked.parameter("at") == "first" { At::First } else { At::AfterRetry })
})
.about("Queries in which the tool was executed before the answer; with at=first only those that needed no feedback.")
.takes(&[Parameter::tool(None), Parameter::one_of("at", &["first", "after_retry"], "after_retry")])];

/// Which attempts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Only without feedback.
    First,
    /// After the controller's feedback too.
    AfterRetry,
}

/// The metric for a tool, or the tools with its role.
fn metric(tools: Tools, at: At) -> Metric {
    Metric {
        needs: vec![tools.clone()],
        reads_outcomes: true,
        members: match at {
            At::First => &[Member::Calls, Member::Feedback, Member::Sequence],
            At::AfterRetry => &[Member::Calls],
        },
        ..Metric::by_turn("queries", move |turn, trace| Some(judge(&tools, at, turn, trace)))
    }
}

fn judge(tools: &Tools, at: At, turn: &TurnView<'_>, trace: &Trace) -> Held {
    let mut asked = None;
    let name = || tools.label(trace);
    // Where completions do not list their calls, each call counts as a separate completion.
    let (mut found, mut listed) = (false, false);
    // Calls with unknown outcome: in an earlier completion, and in this one, where an answer is too early.
    let (mut unseen, mut unseen_now) = (false, false);
    for what in &turn.events {
        match what {
            What::ModelCalled(_) if found => break,
            What::ModelCalled(called) => {
                listed = called.reply.lists_calls();
                unseen |= std::mem::take(&mut unseen_now);
            }
            What::FedBack(told) if !found && tools.has(trace, &told.tool) => asked = Some("feedback"),
            What::ToolCalled(call) if tools.has(trace, &call.tool) && executed(call) => {
                found = true;
                if !listed {
                    break;
                }
            }
            What::ToolCalled(call) if tools.has(trace, &call.tool) && call.outcome.is_unseen() => {
                let place = if listed { &mut unseen_now } else { &mut unseen };
                *place |= asked.is_none() || at == At::AfterRetry;
            }
            What::ToolCalled(call) if !found && tools.has(trace, &call.tool) => {
                asked = asked.or(Some("a rejected call"));
            }
            What::ToolCalled(call) if answers(call, trace) && found => {
                return Err(Seen::new(format!("{} was called beside the answer", name())));
            }
            What::ToolCalled(call) if answers(call, trace) && unseen => return Err(not_shown(&name())),
            What::ToolCalled(call) if answers(call, trace) => {
                return Err(Seen::new(format!("answered without {}", name())));
            }
            What::TurnEnded(_) => break,
            _ => {}
        }
    }
    match asked.filter(|_| at == At::First) {
        Some(after) if found => return Err(Seen::new(format!("{} was executed only after {after}", name()))),
        None if found => return Ok(()),
        _ if !found && (unseen || unseen_now) => return Err(not_shown(&name())),
        _ => {}
    }
    Err(Seen::new(format!("{} was never executed: {}", name(), turn.ending())))
}

/// Whether a call gave the answer.
fn answers(call: &ToolCalled, trace: &Trace) -> bool {
    matches!(call.outcome, ToolOutcome::Ok(_)) && trace.role(&call.tool) == Role::Respond
}
