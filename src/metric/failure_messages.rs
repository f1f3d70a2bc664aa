//! `failure_messages`: messages about a failure that say what it is / all such messages.
//!
//! Feedback to the model names its tool, or quotes what to write; a refused call has a reason and, in traces that show
//! it, guidance; a failed call and a failed turn say more than that there was an error (FR-003, FR-007, FR-011, KL-2.4).

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView};
use crate::settings::catalogue::Units;
use crate::trace::{EXTERNAL, Mode, Rejection, ToolOutcome, TurnOutcome, What};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("failure_messages", |_| Metric {
    members: &[Member::Feedback, Member::Calls, Member::Outcomes, Member::Answers],
    ..Metric::new("messages", observe)
})
.about("Of the messages about failures, those that say what failed or what to do.")
.counted(Units::OfTurns)];

/// Fewest words of a message with a cause: "An error occurred" has none.
const WORDS: usize = 4;

fn says(message: &str) -> bool {
    message.split_whitespace().count() >= WORDS
}

/// A message about a failure, judged.
struct Message {
    /// What it does not say; `None` where it says enough.
    lack: Option<&'static str>,
}

/// The message of an event, if it has one about a failure; `guided` where the trace shows the guidance of refusals.
fn message(what: &What, guided: bool) -> Option<Message> {
    let refused = |refusal: &Rejection| {
        let lacks = refusal.reason.trim().is_empty() || (guided && refusal.guidance.trim().is_empty());
        lacks.then_some("a refusal without reason or guidance")
    };
    let explained = |message: &str| (!says(message)).then_some("an error without its cause");
    let lack = match what {
        What::FedBack(told) => {
            let quotes = ['`', '«', '"'].iter().any(|quote| told.message.contains(*quote));
            (!quotes && !told.message.contains(&told.tool)).then_some("feedback that names no tool")
        }
        What::ToolCalled(call) => match &call.outcome {
            ToolOutcome::Rejected(refusal) | ToolOutcome::OutOfOrder(refusal) => refused(refusal),
            ToolOutcome::Failed { message, .. } => explained(message),
            _ => return None,
        },
        What::TurnEnded(end) => match &end.outcome {
            TurnOutcome::Failed { message, .. } => explained(message),
            TurnOutcome::Answered(_) => return None,
        },
        _ => return None,
    };
    Some(Message { lack })
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let mut units = Vec::new();
    // A published trace and spans have the reason of a refusal alone.
    let guided = view.trace.evidence.mode != Mode::Imported && view.trace.lane.flow != EXTERNAL;
    for turn in view.turns {
        let messages = turn.events.iter().filter_map(|what| message(what, guided));
        units.extend(messages.map(|message| Observation::unless(turn.label(), message.lack)));
    }
    units
}
