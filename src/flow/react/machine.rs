//! The states of one turn and their transitions: think and act, observe, reflect on a failure, answer. `policy` decides
//! which event happens; its tests check it against these rows.

use crate::flow::machine::{Interruptions, Table, on, stay, words};
use State::{Answered, Answering, Failed, Observing, Reflecting, Thinking};
use serde::{Deserialize, Serialize};

words! {
    /// States of a turn.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum State {
        Thinking = "thinking", Observing = "observing", Reflecting = "reflecting", Answering = "answering",
        Answered = "answered", Failed = "failed",
    }
}

words! {
    /// Events that move a turn from state to state; `policy` chooses them.
    enum Event {
        ResultsFound = "results_found", NothingFound = "nothing_found", CallRefused = "call_refused",
        NoCall = "no_call", SearchFailed = "search_failed", Ready = "ready", GoalMet = "goal_met",
        Incomplete = "incomplete", Irrelevant = "irrelevant", Retry = "retry", ChangeApproach = "change_approach",
        OwnKnowledge = "own_knowledge", RetriesUsedUp = "retries_used_up", StepsUsedUp = "steps_used_up",
        Answered = "answered", NoAnswer = "no_answer", ShorterContext = "shorter_context", NoAnalysis = "no_analysis",
        PartialResult = "partial_result", ModelUnavailable = "model_unavailable", BudgetUsedUp = "budget_used_up",
        Timeout = "timeout",
    }
}

impl State {
    /// Whether the turn is over.
    pub(super) fn is_terminal(self) -> bool {
        MACHINE.ends.contains(&self)
    }
}

/// States in which the model is called.
const ASKING: &[State] = &[Thinking, Observing, Reflecting, Answering];

/// The machine of `react`.
pub(super) static MACHINE: Table<State, Event> = Table {
    begins: Thinking,
    ends: &[Answered, Failed],
    interruptions: Interruptions {
        model_unavailable: Event::ModelUnavailable,
        model_calls_exhausted: Event::BudgetUsedUp,
        timeout: Event::Timeout,
    },
    rows: &[
        // One step: the model thinks and calls the search.
        on(Event::ResultsFound, &[Thinking], Observing),
        on(Event::NothingFound, &[Thinking], Reflecting),
        on(Event::CallRefused, &[Thinking], Reflecting),
        on(Event::NoCall, &[Thinking], Reflecting),
        on(Event::SearchFailed, &[Thinking], Reflecting),
        on(Event::Ready, &[Thinking], Answering),
        // The result of the step.
        on(Event::GoalMet, &[Observing], Answering),
        on(Event::Incomplete, &[Observing], Thinking),
        on(Event::Irrelevant, &[Observing], Reflecting),
        // The next step after a failure.
        on(Event::Retry, &[Reflecting], Thinking),
        on(Event::ChangeApproach, &[Reflecting], Thinking),
        on(Event::OwnKnowledge, &[Reflecting], Answering),
        on(Event::RetriesUsedUp, &[Reflecting], Answering),
        on(Event::StepsUsedUp, &[Observing, Reflecting], Answering),
        // The end.
        on(Event::Answered, &[Answering], Answered),
        on(Event::NoAnswer, &[Answering], Failed),
        stay(Event::ShorterContext, &[Thinking, Observing, Answering]),
        on(Event::NoAnalysis, &[Reflecting], Reflecting),
        on(Event::PartialResult, ASKING, Answered),
        on(Event::ModelUnavailable, &[Thinking, Observing, Answering], Failed),
        on(Event::BudgetUsedUp, ASKING, Failed),
        on(Event::Timeout, ASKING, Failed),
    ],
};
