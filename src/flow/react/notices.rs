//! Notices for the user about a limited answer. They are added to the answer, whatever the model wrote.

use super::policy::{MOST_RETRIES, MOST_STEPS, Stop};

/// A limitation of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// No document supports it.
    OwnKnowledge,
    /// The documents could not be searched.
    SearchUnavailable,
    /// Part of the conversation was left out of the model's context, because the model failed with the whole.
    ShorterContext { cause: String },
    /// The turn stopped before its goal.
    Stopped(Stop),
    /// No answer was written, so the findings are delivered unedited.
    Partial,
    /// The state of the session was lost.
    FreshSession,
    /// The state of the session cannot be stored.
    NotKept,
    /// The turn may cost more than the user's warning threshold.
    Costs { most: u64, threshold: u64 },
    /// The context could not be compacted.
    FullContext,
}

impl Notice {
    /// Subject, one word.
    pub(super) fn about(&self) -> &'static str {
        match self {
            Self::OwnKnowledge => "own_knowledge",
            Self::SearchUnavailable => "search",
            Self::ShorterContext { .. } => "context",
            Self::Stopped(_) => "stopped",
            Self::Partial => "partial",
            Self::FreshSession | Self::NotKept => "session",
            Self::Costs { .. } => "budget",
            Self::FullContext => "window",
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::OwnKnowledge => {
                "No document supports this answer: it is from the language model's own knowledge and may be wrong."
                    .into()
            }
            Self::SearchUnavailable => "The search of the documents is unavailable at the moment.".into(),
            Self::ShorterContext { cause } => {
                let failed = if cause.starts_with("timeout") {
                    "did not respond in time".to_owned()
                } else {
                    // The kind alone: a status is a number that no document supports.
                    format!("failed ({})", cause.split(',').next().unwrap_or_default().replace('_', " "))
                };
                format!("The language model {failed}, so earlier parts of the conversation were left out.")
            }
            Self::Stopped(Stop::Steps) => {
                format!("The search stopped after {MOST_STEPS} steps; this is the best result so far.")
            }
            Self::Stopped(Stop::Retries) => {
                format!("The search stopped after {MOST_RETRIES} retries; this is the best result so far.")
            }
            Self::Stopped(Stop::Budget) => "The token budget of this session is used up.".into(),
            Self::Stopped(Stop::Timeout) => "The time for this question ran out.".into(),
            Self::Stopped(Stop::Model) => "The language model is unavailable at the moment.".into(),
            Self::Stopped(Stop::Goal | Stop::OwnKnowledge) => String::new(),
            Self::Partial => "This is what was found before the answer broke off.".into(),
            Self::FreshSession => "The earlier conversation could not be restored, so this is a fresh session.".into(),
            Self::NotKept => "This session cannot be stored: it is lost when the service restarts.".into(),
            Self::Costs { most, threshold } => {
                format!("This question may use up to {most} tokens, more than the {threshold} that you set.")
            }
            Self::FullContext => {
                "The conversation is too long for the language model and could not be made shorter: begin a new one."
                    .into()
            }
        }
    }
}
