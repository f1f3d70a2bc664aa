//! `reply_agreement`: replies of the chat service that agree with the turn that they report / replies in the trace.
//!
//! A reply must name a session, the same in each turn of a conversation. An answered turn's reply holds the answer's
//! text, its flags, as many sources as the answer, and its confidence; a failed turn's reply holds the kind and message
//! of the error (CHAT-1).

use super::catalogue::Registered;
use super::{Member, Metric, Observation, TrialView};
use crate::settings::catalogue::Units;
use crate::trace::TurnOutcome;
use serde_json::{Value, json};

/// Catalogue entries of the metrics in this file.
pub(super) const ENTRIES: &[Registered] = &[Registered::rate("reply_agreement", |_| Metric {
    members: &[Member::Replies, Member::Answers, Member::Sources, Member::Claims],
    ..Metric::new("replies", observe)
})
.about("Of the replies, those that hold the answer or error of their turn, and the conversation's session.")
.counted(Units::OfTurns)];

/// The first member of a reply that is not what the turn ended with.
fn differs(reply: &Value, outcome: &TurnOutcome) -> Option<&'static str> {
    let expected = match outcome {
        TurnOutcome::Answered(answer) => vec![
            ("answer", json!(answer.text)),
            ("confidence_score", json!(answer.confidence)),
            ("used_internal_kb", json!(answer.used_internal_kb)),
            ("used_external_kb", json!(answer.used_external_kb)),
        ],
        TurnOutcome::Failed { kind, message } => vec![("error", json!({"kind": kind, "message": message}))],
    };
    if let Some((member, _)) = expected.into_iter().find(|(member, value)| reply.get(member) != Some(value)) {
        return Some(member);
    }
    let TurnOutcome::Answered(answer) = outcome else { return None };
    let sources = reply["sources"].as_array().map(Vec::len);
    (sources != Some(answer.sources.len())).then_some("sources")
}

fn observe(view: &TrialView<'_>) -> Vec<Observation> {
    let mut units = Vec::new();
    for turns in view.turns.chunk_by(|left, right| left.conversation == right.conversation) {
        let mut session: Option<&str> = None;
        for turn in turns {
            let Some(end) = turn.ended() else { continue };
            let Some(reply) = &end.reply else { continue };
            let named = reply["session_id"].as_str().filter(|id| !id.is_empty());
            let kept = named.is_some() && session.is_none_or(|before| named == Some(before));
            session = session.or(named);
            let wrong = differs(reply, &end.outcome).or((!kept).then_some("session_id"));
            let note = wrong.map(|member| format!("`{member}` of the reply is not that of the turn"));
            units.push(Observation::unless(turn.label(), note));
        }
    }
    units
}
