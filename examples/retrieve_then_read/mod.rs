//! `retrieve-then-read`: one search with the user's words, one request with what it found, no tools.

use super::frame::{Agent, Ended, Failure, StateOf};
use super::machine::{Interruptions, Table, on, words};
use super::turn::Turn;
use super::{Description, PromptText};
use crate::provider::chat::{Message, Role, ToolChoice};
use crate::trace::{Answer, SourceRef};
use State::{Answered, Failed, Reading, Retrieving};
use serde_json::json;

pub(crate) static FLOW: RetrieveThenRead = RetrieveThenRead;

#[derive(Debug)]
pub(crate) struct RetrieveThenRead;

static DESCRIPTION: Description = Description {
    prompts: &[PromptText::fixed("read", include_str!("read.md"))],
    criteria: include_str!("criteria.yaml"),
    errors: &["model_unavailable", "no_answer", "search_failed", "timeout"],
    ..Description::new("retrieve-then-read")
};

words! { #[derive(Default)] enum State {
    #[default]
    Retrieving = "retrieving", Reading = "reading", Answered = "answered", Failed = "failed",
} }

words! { enum Event {
    Retrieved = "retrieved", Answered = "answered", SearchFailed = "search_failed",
    NoAnswer = "no_answer", ModelUnavailable = "model_unavailable", Timeout = "timeout",
} }

impl Agent for RetrieveThenRead {
    type State = State;
    type Event = Event;
    type Memory = ();
    type Own = State;

    const DESCRIPTION: &'static Description = &DESCRIPTION;
    const MACHINE: &'static Table<State, Event> = &Table {
        begins: Retrieving,
        ends: &[Answered, Failed],
        interruptions: Interruptions {
            model_unavailable: Event::ModelUnavailable,
            model_calls_exhausted: Event::ModelUnavailable,
            timeout: Event::Timeout,
        },
        rows: &[
            on(Event::Retrieved, &[Retrieving], Reading),
            on(Event::SearchFailed, &[Retrieving], Failed),
            on(Event::Answered, &[Reading], Answered),
            on(Event::NoAnswer, &[Reading], Failed),
            on(Event::ModelUnavailable, &[Reading], Failed),
            on(Event::Timeout, &[Retrieving, Reading], Failed),
        ],
    };
    const STATE: StateOf<Self> = |own| own;

    async fn converse(turn: &mut Turn<'_, Self>) -> Ended<Self> {
        let (env, query) = (turn.env, turn.query.clone());
        let Some((name, base)) = env.knowledge.all().next() else {
            return Err(Failure::new(Event::SearchFailed, "There are no documents.").into());
        };
        let Some(found) = turn.search((name, &**base), &query, 5).await? else {
            return Err(Failure::new(Event::SearchFailed, "The documents cannot be searched.").into());
        };
        turn.happen(Event::Retrieved);

        let texts: Vec<&str> = found.iter().map(|found| found.passage.text.as_str()).collect();
        turn.open("read");
        turn.say(Message::text(Role::User, json!({"question": query, "passages": texts}).to_string()));
        let said = turn.ask(ToolChoice::None).await?;
        if said.free_text() != Some("free_text") {
            return Err(Failure::new(Event::NoAnswer, "The language model gave no answer.").into());
        }
        let source = |id, title| SourceRef { kind: "internal".into(), id, title, number: None };
        let sources = found.into_iter().map(|found| source(found.passage.id, found.passage.title)).collect();
        let answer = Answer { text: said.text, sources, used_internal_kb: true, ..Answer::default() };
        Ok(turn.answered(Event::Answered, answer))
    }
}
