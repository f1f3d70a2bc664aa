//! The decisions of `tool-rag`, as pure functions: progress of a turn, calls that may run, and the next step.

use super::machine::{Event, State};
use super::tools::{GENERATE_RESPONSE, INDEX_KEYWORDS, KNOWLEDGE_BASE_SEARCH, PERPLEXITY_SEARCH};
use crate::flow::tools::{End, Executed};
use crate::platform::words;
use crate::provider::chat::ToolChoice;
use crate::settings::Enforcement;
use crate::trace::ToolResult;

words! {
    fn name;
    /// The three mandatory steps, in order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Step {
        Knowledge = "knowledge_base",
        Keywords = "keywords",
        Response = "response",
    }
}

impl Step {
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::Knowledge => KNOWLEDGE_BASE_SEARCH,
            Self::Keywords => INDEX_KEYWORDS,
            Self::Response => GENERATE_RESPONSE,
        }
    }
}

/// Progress of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) state: State,
    /// External answers of this turn that have no keywords yet.
    pub(super) keywords_due: Vec<String>,
    pub(super) keywords_given_up: bool,
    pub(super) response_reminded: bool,
    /// Whether the model has read all external answers, of every turn.
    pub(super) answers_read: bool,
}

impl Progress {
    /// Whether the mandatory search was made, successful or not.
    fn searched(&self) -> bool {
        !matches!(self.state, State::KnowledgeDue | State::KnowledgeReminded)
    }

    /// The next step, for a model that did something else.
    pub(super) fn next_step(&self) -> Step {
        if !self.searched() {
            Step::Knowledge
        } else if self.keywords_due.is_empty() {
            Step::Response
        } else {
            Step::Keywords
        }
    }

    /// Handles an external answer; returns the event.
    fn external_arrived(&mut self, result: &str) -> Event {
        if self.keywords_given_up {
            return Event::ExternalAnsweredWithoutKeywords;
        }
        self.keywords_due.push(result.to_owned());
        Event::ExternalAnswered
    }

    /// Handles stored keywords for that answer; returns the event.
    fn indexed(&mut self, result: &str) -> Event {
        let were_due = !self.keywords_due.is_empty();
        self.keywords_due.retain(|due| due != result);
        match (were_due && self.keywords_due.is_empty(), self.response_reminded) {
            (false, _) => Event::KeywordsAdded,
            (true, false) => Event::KeywordsIndexed,
            (true, true) => Event::KeywordsIndexedResponseReminded,
        }
    }

    /// Gives up on missing keywords; returns the event.
    pub(super) fn give_up_keywords(&mut self) -> Event {
        self.keywords_due.clear();
        self.keywords_given_up = true;
        if self.response_reminded { Event::KeywordsGivenUpResponseReminded } else { Event::KeywordsGivenUp }
    }

    /// The tool choice of the next request. `last` is set when the turn allows no further one: it forces an answer from
    /// a model that would search forever.
    pub(super) fn tool_choice(&self, enforcement: Enforcement, last: bool) -> ToolChoice {
        let step = self.next_step();
        let due = step != Step::Response || self.response_reminded || last;
        let named = enforcement == Enforcement::Forced && due;
        if named { ToolChoice::Named(step.tool().to_owned()) } else { ToolChoice::Auto }
    }
}

/// Why a call may not run, by the progress of the turn when the model made it; `None` if it may.
pub(super) fn out_of_order(before: &Progress, tool: &str, alone: bool) -> Option<&'static str> {
    match tool {
        PERPLEXITY_SEARCH if !before.searched() => {
            Some("the knowledge base comes first, and its result has to be read")
        }
        INDEX_KEYWORDS if !before.searched() => Some("the knowledge base comes first in every turn"),
        INDEX_KEYWORDS if !before.answers_read => Some("there is no external answer yet that keywords could describe"),
        GENERATE_RESPONSE if !before.searched() => Some("the knowledge base has to be searched before any response"),
        GENERATE_RESPONSE if !alone => {
            Some("the response stands alone, after the results of all other calls were read")
        }
        GENERATE_RESPONSE if before.state == State::KeywordsDue => Some("the external answer has no keywords yet"),
        _ => None,
    }
}

/// Outcome of one completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CompletionResult {
    /// Why the text counts as no call, if no tool was called.
    pub(super) free_text: Option<&'static str>,
    /// Whether the knowledge base was called, with any result.
    pub(super) knowledge_called: bool,
    /// Whether the knowledge base was called with refused parameters as often as allowed.
    pub(super) knowledge_refused: bool,
    /// Whether a call was out of order.
    pub(super) out_of_order: bool,
    /// Whether a response was refused only because keywords were due.
    pub(super) response_before_keywords: bool,
    /// Why a response was refused.
    pub(super) response_invalid: Option<&'static str>,
    /// Whether a response was accepted.
    pub(super) answered: bool,
}

/// Updates progress from one executed call; returns the event, `None` for an accepted response, which ends the turn.
pub(super) fn note(
    progress: &mut Progress,
    seen: &mut CompletionResult,
    executed: &Executed,
    alone: bool,
) -> Option<Event> {
    let tool = executed.tool.unwrap_or_default();
    let on = match &executed.end {
        End::Unknown | End::UsedUp => return Some(Event::CallRejected),
        End::OutOfOrder => {
            seen.out_of_order = true;
            seen.response_before_keywords |= tool == GENERATE_RESPONSE && alone && progress.searched();
            return Some(Event::OutOfOrder);
        }
        End::Refused(_) => Some(Event::CallRejected),
        End::Failed(_) | End::Gave(_) if tool == KNOWLEDGE_BASE_SEARCH => Some(match &executed.end {
            End::Gave(ToolResult::Search(found)) if !found.hits.is_empty() => Event::KnowledgeFound,
            End::Gave(_) => Event::KnowledgeEmpty,
            _ => Event::KnowledgeFailed,
        }),
        End::Gave(ToolResult::External(answer)) => Some(progress.external_arrived(&answer.result)),
        End::Gave(ToolResult::Indexed(done)) => Some(progress.indexed(&done.result)),
        End::Failed(_) if tool == INDEX_KEYWORDS => Some(Event::KeywordsFailed),
        End::Failed(_) => Some(Event::ExternalFailed),
        End::Gave(_) => None,
    };
    let cause = match executed.end {
        End::Refused(cause) | End::Failed(cause) => Some(cause),
        _ => None,
    };
    match tool {
        KNOWLEDGE_BASE_SEARCH => {
            seen.knowledge_called = true;
            let refused = matches!(executed.end, End::Refused(_));
            seen.knowledge_refused = refused && !progress.searched() && executed.used_up;
        }
        GENERATE_RESPONSE => {
            seen.response_invalid = cause;
            seen.answered = cause.is_none();
        }
        _ => {}
    }
    on
}

/// Whether missing keywords must be given up, because their tool accepts no further calls.
pub(super) fn gives_up_keywords(progress: &Progress, executed: &Executed) -> bool {
    let ran = !matches!(executed.end, End::Unknown | End::OutOfOrder | End::UsedUp);
    ran && executed.tool == Some(INDEX_KEYWORDS) && executed.used_up && !progress.keywords_due.is_empty()
}

/// Next action after a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// Call the model again with the results.
    Ask,
    /// Send feedback about a missing step, with cause and reason.
    FeedBack(Step, &'static str, String),
    /// Deliver the answer to the user.
    Deliver,
    /// Fail, because the step is missing after all attempts.
    Fail(Step),
    /// Fail, because the parameters of the mandatory search were refused after all attempts.
    Refused,
}

/// Decides what follows a completion; `after` is the progress of the turn with its results.
pub(super) fn next(after: &Progress, seen: &CompletionResult) -> Next {
    if !after.searched() {
        return match seen {
            CompletionResult { knowledge_refused: true, .. } => Next::Refused,
            CompletionResult { knowledge_called: true, .. } => Next::Ask,
            _ if after.state == State::KnowledgeReminded => Next::Fail(Step::Knowledge),
            CompletionResult { free_text: Some("refusal"), .. } => {
                missing(Step::Knowledge, "refusal", "the model refused")
            }
            CompletionResult { free_text: Some(_), .. } => {
                missing(Step::Knowledge, "free_text", "text was written instead of calling a tool")
            }
            CompletionResult { out_of_order: true, .. } => {
                missing(Step::Knowledge, "out_of_order", "other tools were called first")
            }
            _ => missing(Step::Knowledge, "missing_call", "the knowledge base was not searched"),
        };
    }
    if seen.answered {
        return Next::Deliver;
    }
    if seen.response_before_keywords {
        return missing(Step::Keywords, "missing_call", "the external answer was not indexed");
    }
    let lost = match seen {
        CompletionResult { free_text: Some("refusal"), .. } => Some(("refusal", "the model refused".to_owned())),
        CompletionResult { free_text: Some(cause), .. } => {
            Some((*cause, "text outside a tool call does not reach the user".to_owned()))
        }
        // Details are in the tool's result: text written by a model does not belong in a system message.
        CompletionResult { response_invalid: Some(why), .. } => {
            Some(("invalid_arguments", format!("the call was refused ({why}), for the reason that its result gives")))
        }
        _ => None,
    };
    match lost {
        None => Next::Ask,
        Some(_) if after.response_reminded => Next::Fail(Step::Response),
        Some((cause, reason)) => Next::FeedBack(Step::Response, cause, reason),
    }
}

fn missing(step: Step, cause: &'static str, reason: &str) -> Next {
    Next::FeedBack(step, cause, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched() -> Progress {
        Progress { state: State::Judging, ..Progress::default() }
    }

    #[test]
    fn the_external_service_waits_for_a_result_that_was_read() {
        assert!(out_of_order(&Progress::default(), PERPLEXITY_SEARCH, true).is_some());
        assert!(out_of_order(&searched(), PERPLEXITY_SEARCH, true).is_none());
    }

    #[test]
    fn a_response_stands_alone_and_after_keywords_unless_these_were_asked_for_in_vain() {
        let mut progress = searched();
        assert!(out_of_order(&progress, GENERATE_RESPONSE, true).is_none());
        assert!(out_of_order(&progress, GENERATE_RESPONSE, false).is_some());
        progress.external_arrived("result-1");
        progress.state = State::KeywordsDue;
        assert!(out_of_order(&progress, GENERATE_RESPONSE, true).is_some());
        progress.state = State::KeywordsReminded;
        assert!(out_of_order(&progress, GENERATE_RESPONSE, true).is_none());
    }

    #[test]
    fn forcing_names_the_mandatory_step_and_leaves_judging_to_the_model() {
        let forced = |progress: &Progress| progress.tool_choice(Enforcement::Forced, false).to_string();
        let mut progress = Progress::default();
        assert_eq!(progress.tool_choice(Enforcement::Feedback, true), ToolChoice::Auto);
        assert_eq!(forced(&progress), "named knowledge_base_search");
        progress.state = State::Judging;
        assert_eq!(forced(&progress), "auto");
        let last = progress.tool_choice(Enforcement::Forced, true);
        assert_eq!(last.to_string(), "named generate_response", "the bound ends in an answer");
        progress.external_arrived("result-1");
        assert_eq!(forced(&progress), "named index_keywords");
        progress.give_up_keywords();
        progress.response_reminded = true;
        assert_eq!(forced(&progress), "named generate_response");
    }

    #[test]
    fn a_missing_search_is_fed_back_once_and_then_fails() {
        let text = CompletionResult { free_text: Some("free_text"), ..CompletionResult::default() };
        assert!(matches!(next(&Progress::default(), &text), Next::FeedBack(Step::Knowledge, "free_text", _)));
        let reminded = Progress { state: State::KnowledgeReminded, ..Progress::default() };
        assert_eq!(next(&reminded, &text), Next::Fail(Step::Knowledge));
    }

    #[test]
    fn a_refused_response_uses_up_the_first_attempt_as_free_text_does() {
        let invalid = CompletionResult { response_invalid: Some("sources"), ..CompletionResult::default() };
        assert!(matches!(next(&searched(), &invalid), Next::FeedBack(Step::Response, "invalid_arguments", _)));
        let reminded = Progress { response_reminded: true, ..searched() };
        assert_eq!(next(&reminded, &invalid), Next::Fail(Step::Response));
        assert_eq!(next(&reminded, &CompletionResult::default()), Next::Ask);
    }
}
