//! The normal form of a case, read by everything after the plan: conversations in steps, each with its turns.
//!
//! `ask`, `turns` and `sequence` exist only in scenario files.

use crate::scenario::{Case, Conversation, Expectation, KeywordIndexState, SequenceStep, Turn};
use crate::settings::DeclaredFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the conversation in a single-conversation case.
pub(crate) const ONLY: &str = "main";

/// A case, its conversations in steps, with its scenario's `covers` and `excluded_from`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "super::stored::Case")]
#[schemars(!from)]
pub struct ResolvedCase {
    /// Its name.
    pub case: String,
    /// Its purpose.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Requirements that it exercises.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// Labels for selection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its conversations: steps run one after another, conversations of one step concurrently.
    pub steps: Vec<Vec<Conversation>>,
    /// Expectation over all its turns; that of `ask` is on its only turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// Whether it also runs without history, where its context probes must fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// Name of its deliberate fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Faults that ragcheck produces in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<DeclaredFault>,
    /// State of the keyword index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword_index: Option<KeywordIndexState>,
    /// Whether an external agent answers it without a request to a service.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_nothing: bool,
    /// Criteria that it does not count for, each with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub excluded_from: BTreeMap<String, String>,
}

impl ResolvedCase {
    /// Whether it expects anything beyond an answer to each turn; labels for metrics do not count.
    pub fn expects_something(&self) -> bool {
        let asserts = |expect: &Option<Expectation>| expect.as_ref().is_some_and(Expectation::asserts);
        asserts(&self.expect) || self.turns().any(|turn| asserts(&turn.expect))
    }

    /// Its input and expectations, without name, labels and exclusions.
    #[must_use]
    pub fn content(&self) -> Self {
        let (case, about, covers, tags) = (String::new(), String::new(), Vec::new(), Vec::new());
        Self { case, about, covers, tags, excluded_from: BTreeMap::new(), ..self.clone() }
    }

    /// A case of one conversation.
    pub fn single(name: impl Into<String>, turns: Vec<Turn>) -> Self {
        Self { case: name.into(), steps: single(turns), ..Self::default() }
    }

    /// All its conversations, in the order of their ordinals.
    pub fn conversations(&self) -> impl Iterator<Item = &Conversation> {
        self.steps.iter().flatten()
    }

    /// Whether something is expected of the body of a reply; traces record the body only then.
    pub fn expects_reply(&self) -> bool {
        let turns = self.turns().filter_map(|turn| turn.expect.as_ref());
        turns.chain(&self.expect).any(|expect| !expect.reply.is_empty())
    }

    /// Whether something goes wrong in it on purpose: it declares a fault, or a turn of it must end with an error.
    pub(crate) fn fails_on_purpose(&self) -> bool {
        let turns = self.turns().filter_map(|turn| turn.expect.as_ref());
        self.fault.is_some()
            || !self.faults.is_empty()
            || turns.chain(&self.expect).any(|expect| expect.error.is_some())
    }

    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.conversations().flat_map(|conversation| &conversation.turns)
    }

    /// Whether a turn is expected to fail.
    pub(crate) fn expects_errors(&self) -> bool {
        self.turns().any(|turn| turn.expect.as_ref().is_some_and(|expect| expect.error.is_some()))
    }

    /// Whether it has a single conversation, which then needs no name.
    pub fn is_single(&self) -> bool {
        matches!(self.steps.as_slice(), [step] if matches!(step.as_slice(), [one] if one.name == ONLY))
    }
}

/// The only step of a single-conversation case.
pub(super) fn single(turns: Vec<Turn>) -> Vec<Vec<Conversation>> {
    let (name, tool_context) = (ONLY.to_owned(), serde_json::Map::new());
    vec![vec![Conversation { name, tenant: None, tool_context, turns, related: None }]]
}

impl From<Case> for ResolvedCase {
    fn from(case: Case) -> Self {
        let mut expect = case.expect;
        let mut steps: Vec<Vec<Conversation>> = match case.ask {
            Some(ask) => single(vec![Turn { ask, expect: expect.take() }]),
            None if case.sequence.is_empty() => single(case.turns),
            None => case.sequence.into_iter().map(conversations).collect(),
        };
        for conversation in steps.iter_mut().flatten().filter(|conversation| conversation.tenant.is_none()) {
            conversation.tenant.clone_from(&case.tenant);
        }
        for conversation in steps.iter_mut().flatten().filter(|conversation| conversation.tool_context.is_empty()) {
            conversation.tool_context.clone_from(&case.tool_context);
        }
        Self {
            case: case.case,
            about: case.about,
            covers: case.covers,
            tags: case.tags,
            steps,
            expect,
            control: case.control,
            fault: case.fault,
            faults: case.faults,
            keyword_index: case.keyword_index,
            asks_nothing: case.asks_nothing,
            excluded_from: case.excluded_from,
        }
    }
}

/// The conversations of a step as written.
pub(super) fn conversations(step: SequenceStep) -> Vec<Conversation> {
    match step {
        SequenceStep::Conversation(one) => vec![one],
        SequenceStep::Together(all) => all,
    }
}
