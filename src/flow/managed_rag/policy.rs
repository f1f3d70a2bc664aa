//! The decisions of `managed-rag`, as pure functions: progress of a turn, and the next step after a text without calls.

use super::machine::{Event, State};
use super::prompts;
use super::tools::NUCLIA_RAG;
use crate::flow::frame;
use crate::flow::tools::{End, Executed};
use crate::provider::chat::ToolChoice;
use crate::settings::Enforcement;
use crate::trace::ToolResult;
use crate::trace::refusal::says;

/// A turn that ends with an error.
type Failure = frame::Failure<Event>;

/// Progress of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) state: State,
    /// Whether there is an artifact to answer with.
    pub(super) found: bool,
}

/// What is missing from a text without calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The service was not asked.
    Call,
    /// The answer does not embed the artifact.
    Artifact,
    /// There is no answer.
    Answer,
}

impl Missing {
    /// Name in traces.
    pub(super) fn step(self) -> &'static str {
        match self {
            Self::Call => "knowledge_base",
            Self::Artifact | Self::Answer => "response",
        }
    }

    /// The event of this feedback.
    pub(super) fn event(self) -> Event {
        match self {
            Self::Call => Event::CallMissing,
            Self::Artifact => Event::ArtifactMissing,
            Self::Answer => Event::AnswerMissing,
        }
    }

    /// The prompt of this feedback.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Call => prompts::MISSING_CALL,
            Self::Artifact => prompts::MISSING_ARTIFACT,
            Self::Answer => prompts::MISSING_ANSWER,
        }
    }
}

/// Next step after a text without calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Deliver,
    FeedBack(Missing),
    Fail(Failure),
}

impl Progress {
    /// Whether the service was asked, with any result.
    fn asked(self) -> bool {
        !matches!(self.state, State::Asking | State::AskingReminded)
    }

    /// The tool choice of the next request.
    pub(super) fn tool_choice(self, enforcement: Enforcement) -> ToolChoice {
        match enforcement {
            Enforcement::Forced if !self.asked() => ToolChoice::Named(NUCLIA_RAG.to_owned()),
            _ => ToolChoice::Auto,
        }
    }
}

/// Updates progress from one executed call; returns the event.
pub(super) fn note(progress: &mut Progress, executed: &Executed) -> Event {
    match &executed.end {
        End::Gave(ToolResult::Search(search)) => {
            let found = search.managed.as_ref().is_some_and(|managed| managed.artifact.is_some());
            progress.found |= found;
            if found { Event::AnswerFound } else { Event::NoAnswerFound }
        }
        End::Gave(_) | End::Failed(_) | End::UsedUp => Event::ServiceFailed,
        // The tool accepts no further call: the model continues without it.
        _ if executed.used_up => Event::ServiceFailed,
        End::Unknown | End::OutOfOrder | End::Refused(_) => Event::CallRejected,
    }
}

/// Next step after a text without calls. `said` is the kind of text (`free_text`, `empty`, `refusal`, …), `embeds`
/// whether it embeds an artifact of this turn, `known` whether every embedded artifact exists.
pub(super) fn next(progress: Progress, said: &str, embeds: bool, known: bool) -> Next {
    // What is embedded is whole, wherever the words after it end.
    let text = said == "free_text" || said == "cut_off" && progress.found;
    let reminded = progress.state == State::AnsweringReminded;
    match progress.state {
        State::Asking => Next::FeedBack(Missing::Call),
        State::AskingReminded => {
            let message = "No answer was given: the documents were not asked, also when the assistant was reminded.";
            Next::Fail(Failure::of_kind(Event::NoCall, "no_tool_call", message))
        }
        _ if progress.found && (!embeds || !known) => {
            if reminded {
                let message = "No answer was given: the assistant did not deliver what the documents say.";
                Next::Fail(Failure::new(Event::NoArtifact, message))
            } else {
                Next::FeedBack(Missing::Artifact)
            }
        }
        _ if !text || !known => {
            if reminded {
                Next::Fail(Failure::new(Event::NoAnswer, "The language model gave no answer."))
            } else {
                Next::FeedBack(Missing::Answer)
            }
        }
        _ => Next::Deliver,
    }
}

/// Whether a text is exactly the refusal that reports that the documents hold no answer.
pub(super) fn refuses(text: &str, refusal: &str) -> bool {
    !refusal.trim().is_empty() && says(text, refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_fed_back_once_and_then_ends_the_turn() {
        let mut progress = Progress::default();
        assert_eq!(next(progress, "free_text", false, true), Next::FeedBack(Missing::Call));
        progress.state = State::AskingReminded;
        let Next::Fail(failure) = next(progress, "free_text", false, true) else { panic!("fails") };
        assert_eq!(failure.kind, "no_tool_call");
        progress = Progress { state: State::Answering, found: true };
        assert_eq!(next(progress, "free_text", true, true), Next::Deliver);
        for (embeds, known) in [(false, true), (true, false)] {
            assert_eq!(next(progress, "free_text", embeds, known), Next::FeedBack(Missing::Artifact));
        }
        progress.state = State::AnsweringReminded;
        let Next::Fail(failure) = next(progress, "free_text", false, true) else { panic!("fails") };
        assert_eq!(failure.kind, "no_artifact");
    }

    #[test]
    fn without_an_artifact_any_words_are_an_answer_and_none_are_not() {
        let progress = Progress { state: State::Answering, found: false };
        assert_eq!(next(progress, "free_text", false, true), Next::Deliver);
        assert_eq!(next(progress, "empty", false, true), Next::FeedBack(Missing::Answer));
        assert_eq!(next(progress, "refusal", false, true), Next::FeedBack(Missing::Answer));
        assert_eq!(next(progress, "cut_off", false, true), Next::FeedBack(Missing::Answer));
        assert_eq!(next(Progress { found: true, ..progress }, "cut_off", true, true), Next::Deliver);
    }

    #[test]
    fn a_refusal_is_the_sentence_itself_whatever_its_case_and_spaces() {
        assert!(refuses(" i found  nothing.", "I found nothing."));
        assert!(!refuses("I found nothing, but it is 42.", "I found nothing."));
        assert!(!refuses("", " "));
    }
}
