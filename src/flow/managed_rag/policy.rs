//! The decisions of `managed-rag`, without any input or output: how far a turn is, what a text without calls comes to.

use super::tools::NUCLIA_RAG;
use super::{machine, prompts};
use crate::flow::tools::{End, Executed};
use crate::provider::chat::ToolChoice;
use crate::settings::Enforcement;
use crate::trace::ToolResult;

/// How far one turn is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The service was asked, whatever came of it.
    pub(super) asked: bool,
    /// There is an artifact to answer with.
    pub(super) found: bool,
    call_reminded: bool,
    answer_reminded: bool,
}

/// What a text without calls lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The service was not asked.
    Call,
    /// The artifact is not in the answer.
    Artifact,
    /// There is no answer at all.
    Answer,
}

impl Missing {
    /// The word in traces.
    pub(super) fn step(self) -> &'static str {
        match self {
            Self::Call => "knowledge_base",
            Self::Artifact | Self::Answer => "response",
        }
    }

    /// The feedback that the model is given.
    pub(super) fn prompt(self) -> &'static str {
        match self {
            Self::Call => prompts::MISSING_CALL,
            Self::Artifact => prompts::MISSING_ARTIFACT,
            Self::Answer => prompts::MISSING_ANSWER,
        }
    }
}

/// What comes next after a text without calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Deliver,
    FeedBack(Missing),
    Fail(Failure),
}

/// How a turn ends with an error: the event, the error's kind, and what the user is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) on: &'static str,
    pub(super) kind: &'static str,
    pub(super) message: &'static str,
}

impl Progress {
    /// The state of the machine.
    pub(super) fn state(self) -> &'static str {
        match self {
            Self { asked: false, call_reminded: false, .. } => machine::ASKING,
            Self { asked: false, .. } => machine::ASKING_REMINDED,
            Self { answer_reminded: false, .. } => machine::ANSWERING,
            Self { .. } => machine::ANSWERING_REMINDED,
        }
    }

    /// What the next request says about tools.
    pub(super) fn tool_choice(self, enforcement: Enforcement) -> ToolChoice {
        match enforcement {
            Enforcement::Forced if !self.asked => ToolChoice::Named(NUCLIA_RAG.to_owned()),
            _ => ToolChoice::Auto,
        }
    }

    /// The model was told what is missing; gives the event.
    pub(super) fn reminded(&mut self, missing: Missing) -> &'static str {
        match missing {
            Missing::Call => {
                self.call_reminded = true;
                "call_missing"
            }
            Missing::Artifact => {
                self.answer_reminded = true;
                "artifact_missing"
            }
            Missing::Answer => {
                self.answer_reminded = true;
                "answer_missing"
            }
        }
    }
}

/// Takes in what came of one call, and gives the event that it is.
pub(super) fn note(progress: &mut Progress, executed: &Executed) -> &'static str {
    match &executed.end {
        End::Gave(ToolResult::Search(search)) => {
            let found = search.managed.as_ref().is_some_and(|managed| managed.artifact.is_some());
            progress.asked = true;
            progress.found |= found;
            if found { "answer_found" } else { "no_answer_found" }
        }
        End::Gave(_) | End::Failed(_) | End::UsedUp => {
            progress.asked = true;
            "service_failed"
        }
        // The tool takes no further call: the model goes on without it.
        _ if executed.used_up => {
            progress.asked = true;
            "service_failed"
        }
        End::Unknown | End::OutOfOrder | End::Refused(_) => "call_rejected",
    }
}

/// What a text without calls comes to. `said` is what it is (`free_text`, `empty`, `refusal`, …), `embeds` whether it holds
/// an artifact of this turn, `known` whether every artifact that it names exists.
pub(super) fn next(progress: Progress, said: &str, embeds: bool, known: bool) -> Next {
    let fail = |on, kind, message| Next::Fail(Failure { on, kind, message });
    let text = matches!(said, "free_text" | "cut_off");
    match progress {
        Progress { asked: false, call_reminded: false, .. } => Next::FeedBack(Missing::Call),
        Progress { asked: false, .. } => {
            let message = "No answer was given: the documents were not asked, also when the assistant was reminded.";
            fail("no_call", "no_tool_call", message)
        }
        Progress { found: true, answer_reminded, .. } if !embeds || !known => {
            if answer_reminded {
                let message = "No answer was given: the assistant did not deliver what the documents say.";
                fail("no_artifact", "no_artifact", message)
            } else {
                Next::FeedBack(Missing::Artifact)
            }
        }
        Progress { answer_reminded, .. } if !text || !known => {
            if answer_reminded {
                fail("no_answer", "no_answer", "The language model gave no answer.")
            } else {
                Next::FeedBack(Missing::Answer)
            }
        }
        Progress { .. } => Next::Deliver,
    }
}

/// Whether a text says in the words of the refusal, and in no others, that the documents hold no answer.
pub(super) fn refuses(text: &str, refusal: &str) -> bool {
    let words = |text: &str| -> String {
        let text = text.replace('\u{2019}', "'").to_lowercase();
        text.split_whitespace().collect::<Vec<_>>().join(" ").trim_matches(['.', '"', '\'', '*']).to_owned()
    };
    !refusal.trim().is_empty() && words(text) == words(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_fed_back_once_and_then_ends_the_turn() {
        let mut progress = Progress::default();
        assert_eq!(next(progress, "free_text", false, true), Next::FeedBack(Missing::Call));
        assert_eq!(progress.reminded(Missing::Call), "call_missing");
        let Next::Fail(failure) = next(progress, "free_text", false, true) else { panic!("fails") };
        assert_eq!(failure.kind, "no_tool_call");
        progress = Progress { asked: true, found: true, ..progress };
        assert_eq!(next(progress, "free_text", true, true), Next::Deliver);
        for (embeds, known) in [(false, true), (true, false)] {
            assert_eq!(next(progress, "free_text", embeds, known), Next::FeedBack(Missing::Artifact));
        }
        progress.reminded(Missing::Artifact);
        let Next::Fail(failure) = next(progress, "free_text", false, true) else { panic!("fails") };
        assert_eq!(failure.kind, "no_artifact");
    }

    #[test]
    fn without_an_artifact_any_words_are_an_answer_and_none_are_not() {
        let progress = Progress { asked: true, ..Progress::default() };
        assert_eq!(next(progress, "free_text", false, true), Next::Deliver);
        assert_eq!(next(progress, "empty", false, true), Next::FeedBack(Missing::Answer));
        assert_eq!(next(progress, "refusal", false, true), Next::FeedBack(Missing::Answer));
    }

    #[test]
    fn a_refusal_is_the_sentence_itself_whatever_its_case_and_spaces() {
        assert!(refuses(" i found  nothing.", "I found nothing."));
        assert!(!refuses("I found nothing, but it is 42.", "I found nothing."));
        assert!(!refuses("", " "));
    }
}
