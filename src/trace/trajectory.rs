//! The trajectory log: statements of an agent that reasons in steps, beside its recorded actions.
//!
//! Entries are the agent's words and decisions; requests and calls are in the other events, and metrics compare the
//! two. A log message that the model must receive is named by its digest, as in
//! [`ModelCalled::shown`](super::ModelCalled::shown).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Logged {
    /// Progress shown to a waiting user.
    Status {
        /// The text: `Searching…`.
        text: String,
        /// Estimated tokens of a retry, if one is under way.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
    },
    /// The reasoning behind the action of a step, logged before the call.
    Thought {
        /// The step, from 1.
        step: u32,
        /// The reasoning.
        text: String,
        /// The approach of the step.
        approach: String,
    },
    /// Meaning of a result for the goal.
    Observation {
        /// The step, from 1.
        step: u32,
        /// The analysis.
        text: String,
        /// Whether the goal is reached.
        goal_met: bool,
    },
    /// Which results of a step are relevant.
    Graded {
        /// The step, from 1.
        step: u32,
        /// Ids of the relevant sources.
        relevant: Vec<String>,
        /// Ids of the irrelevant sources.
        irrelevant: Vec<String>,
        /// The grader: `model`, or `words` if the model gave no grades.
        by: String,
    },
    /// Summary of a finished step.
    Summary {
        /// The step, from 1.
        step: u32,
        /// The outcome.
        text: String,
    },
    /// A failed action, with the complete context at that moment.
    Failure {
        /// The step, from 1.
        step: u32,
        /// The kind, as used for counting failures.
        kind: String,
        /// The approach that failed.
        approach: String,
        /// The state: messages by digest, findings, approaches, tokens.
        context: Value,
    },
    /// The lesson of a failure.
    Reflection {
        /// The step that failed, from 1.
        step: u32,
        /// The kind of the failure.
        trigger: String,
        /// The analysis and the lesson.
        text: String,
        /// Digest of the message that carries it to the retry.
        shown: String,
    },
    /// A decision or preference of the user for later.
    Noted {
        /// `decision` or `preference`.
        kind: String,
        /// The user's sentence.
        text: String,
        /// Digest of the message that carries it to later requests.
        shown: String,
    },
    /// State and objective at the start of a cycle, as sent to the model.
    Grounding {
        /// The step that begins, from 1.
        step: u32,
        /// The digest of the message.
        shown: String,
    },
    /// The context was near the size of its window.
    Compacted {
        /// Tokens before, estimated.
        before: u64,
        /// Tokens after, estimated; those of the shortest form where none was short enough.
        after: u64,
        /// Whether the shorter form is used.
        done: bool,
        /// Digests of the messages that must stay.
        keeps: Vec<String>,
    },
    /// How long the answer is to be.
    Style {
        /// `concise` or `detailed`.
        style: String,
        /// Why.
        because: String,
    },
    /// Before a turn: what it may cost at most.
    Estimated {
        /// Tokens at most, within what the session may still use.
        most: u64,
        /// Tokens of a turn as usual for this question; unknown in older traces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<u64>,
        /// The threshold of the warning, where one is declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warn: Option<u64>,
        /// Whether the user was warned.
        warned: bool,
        /// The session's limit.
        limit: u64,
    },
    /// After a request: what it and the session used.
    Used {
        /// Input tokens of the request.
        input: u64,
        /// Output tokens of the request.
        output: u64,
        /// Input tokens of the session.
        session_input: u64,
        /// Output tokens of the session.
        session_output: u64,
    },
    /// The user is informed of something that the answer lacks; the answer has the words.
    Notice {
        /// What it is about, in one word.
        about: String,
        /// The words.
        text: String,
    },
    /// The state was stored.
    Persisted {
        /// The state of the turn.
        state: String,
    },
    /// The state was read back from the store.
    Restored {
        /// The state in which a turn goes on; `None` between turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    },
    /// The store could not be used, and the session started over.
    StartedAfresh {
        /// Why.
        reason: String,
    },
    /// Something that was unavailable works again.
    Recovered {
        /// What.
        feature: String,
    },
    /// The session's state was removed from the store.
    Cleared,
    /// How many steps gave something. What the question needs is known to its case alone.
    Efficiency {
        /// Steps that added a source; called `optimal` in older traces.
        #[serde(alias = "optimal")]
        useful: u32,
        /// Steps that were taken.
        actual: u32,
    },
}

impl Logged {
    /// Every kind, as a trace names it.
    pub(crate) const KINDS: [&str; 20] = [
        "status", "thought", "observation", "graded", "summary", "failure", "reflection", "noted", "grounding",
        "compacted", "style", "estimated", "used", "notice", "persisted", "restored", "started_afresh", "recovered",
        "cleared", "efficiency",
    ];

    /// The kind of the entry, as a trace names it.
    pub(crate) fn kind(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(kind)) => kind,
            Ok(Value::Object(entry)) => entry.into_iter().next().map(|(kind, _)| kind).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The kind of the entry, and its words for people.
    pub fn described(&self) -> (&'static str, String) {
        match self {
            Self::Status { text, tokens: None } => ("status", text.clone()),
            Self::Status { text, tokens: Some(tokens) } => ("status", format!("{text} (about {tokens} tokens)")),
            Self::Thought { step, text, approach } => ("thought", format!("step {step}, {approach}: {text}")),
            Self::Observation { step, text, goal_met } => {
                let met = if *goal_met { "goal met" } else { "goal not met" };
                ("observation", format!("step {step}, {met}: {text}"))
            }
            Self::Graded { step, relevant, irrelevant, by } => {
                let list = |ids: &[String]| if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
                let words = format!("relevant {}; not relevant {}", list(relevant), list(irrelevant));
                ("grades", format!("step {step}, by {by}: {words}"))
            }
            Self::Summary { step, text } => ("summary", format!("step {step}: {text}")),
            Self::Failure { step, kind, approach, context } => {
                ("failure", format!("step {step}, {approach}: {kind}; context {context}"))
            }
            Self::Reflection { step, trigger, text, .. } => ("reflection", format!("step {step}, {trigger}: {text}")),
            Self::Noted { kind, text, .. } => ("note", format!("{kind}: {text}")),
            Self::Grounding { step, .. } => ("grounding", format!("step {step}")),
            Self::Compacted { before, after, done, .. } => {
                let done = if *done { "compacted" } else { "could not be compacted" };
                ("compaction", format!("{done}: {before} tokens before, {after} after"))
            }
            Self::Style { style, because } => ("style", format!("{style}: {because}")),
            Self::Estimated { most, expected, warned, limit, .. } => {
                let warned = if *warned { ", the user is warned" } else { "" };
                let expected = expected.map_or_else(String::new, |expected| format!("about {expected} and "));
                ("budget", format!("{expected}at most {most} tokens for this turn, {limit} for the session{warned}"))
            }
            Self::Used { input, output, session_input, session_output } => {
                let session = format!("session {session_input} input, {session_output} output");
                ("usage", format!("{input} input, {output} output tokens; {session}"))
            }
            Self::Notice { about, text } => ("notice", format!("{about}: {text}")),
            Self::Persisted { state } => ("persisted", state.clone()),
            Self::Restored { state: Some(state) } => ("restored", format!("goes on in {state}")),
            Self::Restored { state: None } => ("restored", "between turns".to_owned()),
            Self::StartedAfresh { reason } => ("started afresh", reason.clone()),
            Self::Recovered { feature } => ("recovered", feature.clone()),
            Self::Cleared => ("cleared", String::new()),
            Self::Efficiency { useful, actual } => ("efficiency", format!("{useful} of {actual} steps added a source")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_kinds_are_those_of_the_schema() {
        let schema = serde_json::to_value(schemars::schema_for!(Logged)).expect("a schema");
        let variants = schema["oneOf"].as_array().expect("variants").iter();
        let kinds = variants.flat_map(|one| match one["required"].as_array() {
            Some(kinds) => kinds.clone(),
            None => one["enum"].as_array().cloned().unwrap_or_else(|| vec![one["const"].clone()]),
        });
        let kinds: BTreeSet<String> = kinds.map(|kind| kind.as_str().expect("a name").to_owned()).collect();
        assert_eq!(kinds, Logged::KINDS.map(str::to_owned).into());
        assert_eq!(Logged::Cleared.kind(), "cleared");
        assert_eq!(Logged::Restored { state: None }.kind(), "restored");
    }
}
