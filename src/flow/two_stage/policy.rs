//! The decisions of `two-stage`, as pure functions: which documents are searched, what each stage may call, the outcome
//! of a completion, and how a turn fails.

use super::machine::{Event, State};
use super::tools::RETRIEVE_DOCUMENTS;
use crate::flow::frame;
use crate::flow::tools::{End, Executed, Refusal};
use crate::flow::turn::Completed;
use crate::knowledge::{KnowledgeBase, KnowledgeBases};
use crate::provider::chat::{Finish, ToolChoice};
use crate::trace::ToolResult;
use crate::trace::answer::is_blank;
use crate::trace::refusal::{only_refuses, says};
use crate::trace::text::quote;
use std::sync::Arc;

/// A turn that ends with an error.
type Failure = frame::Failure<Event>;

/// Characters of a tenant's name that an error shows.
const SHOWN: usize = 64;

/// The two requests of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Retrieval,
    Answer,
}

impl Stage {
    /// The tool choice of the request: the first must retrieve, the second may call no tool.
    pub(super) fn tool_choice(self) -> ToolChoice {
        match self {
            Self::Retrieval => ToolChoice::Named(RETRIEVE_DOCUMENTS.to_owned()),
            Self::Answer => ToolChoice::None,
        }
    }
}

/// Progress of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) state: State,
    /// Whether the tool was called with refused parameters.
    pub(super) query_refused: bool,
    /// Whether the knowledge base failed.
    pub(super) retrieval_failed: bool,
}

impl Progress {
    /// Whether documents were retrieved, possibly none, so that stage 2 may begin.
    fn retrieved(self) -> bool {
        self.state == State::Answering
    }
}

/// The knowledge base of a tenant, under its declared name. Without a tenant, the only one.
///
/// # Errors
/// If no base has that name, or if no tenant is given and there are several bases.
pub(super) fn base_of<'b>(
    bases: &'b KnowledgeBases,
    tenant: Option<&str>,
) -> Result<(&'b str, &'b Arc<dyn KnowledgeBase>), Failure> {
    let mut all = bases.all();
    let found = match tenant {
        Some(tenant) => all.find(|(name, _)| *name == tenant),
        None => all.next().filter(|_| all.next().is_none()),
    };
    found.ok_or_else(|| {
        let message = match tenant {
            Some(tenant) => format!("There is no tenant `{}`.", quote(tenant, SHOWN)),
            None => "The request names no tenant, and there are several.".to_owned(),
        };
        Failure::new(Event::UnknownTenant, message)
    })
}

/// Why a call may not run: a turn retrieves once, and stage 2 calls nothing.
pub(super) fn out_of_order(progress: Progress, tool: &str) -> Option<Refusal> {
    let reason = "documents are retrieved once for each question";
    progress.retrieved().then(|| Refusal::new("order", reason, format!("Answer without calling `{tool}` again.")))
}

/// Updates progress from one executed call; returns the event, `None` for a failure, which ends the turn.
pub(super) fn note(progress: &mut Progress, executed: &Executed) -> Option<Event> {
    Some(match &executed.end {
        End::Gave(result) => {
            let found = matches!(result, ToolResult::Search(search) if !search.hits.is_empty());
            if found { Event::DocumentsFound } else { Event::NothingFound }
        }
        End::Failed(_) => {
            progress.retrieval_failed = true;
            return None;
        }
        _ if progress.retrieved() => Event::ExtraCall,
        End::Unknown => Event::CallRejected,
        End::OutOfOrder | End::UsedUp | End::Refused(_) => {
            progress.query_refused = true;
            Event::CallRejected
        }
    })
}

/// Whether stage 2 may begin.
///
/// # Errors
/// If no retrieval returned a result (an empty one counts).
pub(super) fn after_retrieval(progress: Progress) -> Result<(), Failure> {
    match progress {
        _ if progress.retrieved() => Ok(()),
        Progress { retrieval_failed: true, .. } => {
            let message = "The documents cannot be searched at the moment. Please try again later.";
            Err(Failure::new(Event::RetrievalFailed, message))
        }
        Progress { query_refused: true, .. } => {
            let message = "The documents were not searched: the query of the language model was refused.";
            Err(Failure::new(Event::QueryRefused, message))
        }
        _ => {
            let message = "The language model did not search the documents, although it was made to.";
            Err(Failure::of_kind(Event::NoCall, "no_tool_call", message))
        }
    }
}

/// Outcome of stage 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Answer,
    /// The documents do not hold the answer: the text of the prompt, or other words that say so and nothing else.
    Refusal,
    Calls,
    /// Nothing to deliver, with the reason.
    Nothing(&'static str),
}

/// Reads the completion of stage 2 to what was `asked`. The user cannot tell a text that the token limit cut off from a
/// whole one.
pub(super) fn said(completion: &Completed, refusal: &str, asked: &str) -> Said {
    match completion {
        Completed { calls, .. } if !calls.is_empty() => Said::Calls,
        Completed { refused: true, .. } => Said::Nothing("refusal"),
        Completed { finish: Finish::ContentFilter, .. } => Said::Nothing("content_filter"),
        Completed { finish: Finish::Length, .. } => Said::Nothing("cut_off"),
        Completed { text, .. } if is_blank(text) => Said::Nothing("empty"),
        Completed { text, .. } if says(text, refusal) || only_refuses(text, asked) => Said::Refusal,
        _ => Said::Answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::{Corpus, Embedded, Passage};
    use crate::provider::chat::Usage;

    fn bases(names: &[&str]) -> KnowledgeBases {
        let base = |name: &&str| {
            let passage = Passage { id: "a#1".into(), title: String::new(), text: (*name).into() };
            let base = Embedded::open(Corpus::of(name, vec![passage]), None).expect("opens");
            ((*name).to_owned(), Arc::new(base) as Arc<dyn KnowledgeBase>)
        };
        KnowledgeBases::new(names.iter().map(base).collect())
    }

    fn name(bases: &KnowledgeBases, tenant: Option<&str>) -> Result<String, &'static str> {
        base_of(bases, tenant).map(|(name, _)| name.to_owned()).map_err(|failure| failure.kind)
    }

    fn completion(text: &str) -> Completed {
        let (text, finish) = (text.to_owned(), Finish::Stop);
        Completed { ordinal: 1, text, calls: Vec::new(), finish, refused: false, usage: Usage::default() }
    }

    #[test]
    fn a_tenant_has_the_base_of_its_name_and_no_name_is_an_answer_only_where_there_is_one_base() {
        let two = bases(&["north", "south"]);
        assert_eq!(name(&two, Some("south")), Ok("south".into()));
        for tenant in [None, Some("default_kb"), Some("North"), Some("")] {
            assert_eq!(name(&two, tenant), Err("unknown_tenant"), "{tenant:?}");
        }
        assert_eq!(name(&bases(&["north"]), None), Ok("north".into()));
        assert_eq!(name(&bases(&["north"]), Some("default_kb")), Err("unknown_tenant"));
        assert_eq!(name(&bases(&[]), None), Err("unknown_tenant"));
    }

    #[test]
    fn a_refusal_is_the_sentence_itself_whatever_its_case_quotes_and_spaces_and_what_says_the_same_and_nothing_else() {
        let refusal = "I couldn't find that.";
        let said = |completion: &Completed, refusal: &str| said(completion, refusal, "How wide is it?");
        for text in ["I couldn't find that.", " i couldn\u{2019}t  find that\n", "\"I couldn't find that.\""] {
            assert_eq!(said(&completion(text), refusal), Said::Refusal, "{text}");
        }
        for text in
            ["Dazu habe ich nichts gefunden.", "Je n'ai rien trouvé à ce sujet.", "情報は見つかりませんでした。"]
        {
            assert_eq!(said(&completion(text), refusal), Said::Refusal, "{text}");
            assert_eq!(said(&completion(&format!("{text} 42.")), refusal), Said::Answer, "{text}");
        }
        // Words of the prompt in a language that no list knows.
        assert_eq!(said(&completion("Δεν βρήκα τίποτα."), "Δεν βρήκα τίποτα."), Said::Refusal);
        for text in ["I couldn't find that, but it is 42.", "I couldn't find that. It is 42.", "42 [1]"] {
            assert_eq!(said(&completion(text), refusal), Said::Answer, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_delivered_is_told_apart() {
        let said = |completion: &Completed, refusal: &str| said(completion, refusal, "How wide is it?");
        assert_eq!(said(&completion("  "), "No."), Said::Nothing("empty"));
        assert_eq!(said(&Completed { refused: true, ..completion("") }, "No."), Said::Nothing("refusal"));
        let filtered = Completed { finish: Finish::ContentFilter, ..completion("Well") };
        assert_eq!(said(&filtered, "No."), Said::Nothing("content_filter"));
        let cut_off = Completed { finish: Finish::Length, ..completion("Well") };
        assert_eq!(said(&cut_off, "No."), Said::Nothing("cut_off"));
    }

    #[test]
    fn the_first_stage_names_its_tool_and_the_second_may_call_none() {
        assert_eq!(Stage::Retrieval.tool_choice().to_string(), "named retrieve_documents");
        assert_eq!(Stage::Answer.tool_choice(), ToolChoice::None);
    }
}
