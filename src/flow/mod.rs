//! Agents: their shared parts, and one folder for each.
//!
//! A [`Flow`] turns one user message into an answer or an error. It acts through an [`AgentContext`], which records and
//! decides nothing, under [`Settings`], in a [`ConversationState`] that carries the state of earlier turns.
//!
//! | question | file |
//! |---|---|
//! | What does a trial give a flow? | `context`, `settings` |
//! | What is kept from turn to turn, and how is it stored? | `conversation`, `history` |
//! | What do all turns have in common? | `frame` |
//! | How is a turn recorded, and the model called? | `turn` |
//! | How is a tool declared, checked, run, retried and recorded? | `tools` |
//! | To which account is a retry booked? | `retries` |
//! | How are prompts replaced and filled in? | `prompts` |
//! | How are states and transitions declared? | `machine` |
//! | Who may observe a running turn? | `observer` |
//! | Where is a session stored while a turn runs? | `store` |
//! | How does a chat service return an answer? | `reply` |
//!
//! A flow's folder holds its loop (`mod`), its decisions (`policy`), its `machine`, `tools` and `prompts`. No folder
//! imports another. Nothing here knows whether traffic is live or replayed.

mod context;
mod conversation;
pub(crate) mod external;
mod frame;
mod history;
mod machine;
pub(crate) mod managed_rag;
mod observer;
pub(crate) mod prompts;
pub(crate) mod react;
pub(crate) mod reply;
mod retries;
mod settings;
mod store;
pub(crate) mod template;
pub(crate) mod tool_rag;
pub(crate) mod tools;
mod turn;
pub(crate) mod two_stage;

#[cfg(test)]
#[path = "../../examples/retrieve_then_read/mod.rs"]
mod example;
#[cfg(test)]
mod example_tests;
#[cfg(test)]
mod scripted;

pub(crate) use context::{AgentContext, Stages};
pub(crate) use conversation::{ConversationState, FlowState, StateError};
pub(crate) use history::digest;
pub(crate) use observer::{Observer, Status};
pub(crate) use prompts::{PromptError, PromptText, Prompts};
pub(crate) use settings::{Services, Settings};
pub(crate) use store::{MemoryStore, SessionStore, StoreError};

use crate::platform::clock::BoxFuture;
use crate::settings::catalogue::{FlowEntry, ToolEntry};
use crate::trace::state_machine::Machine;
use crate::trace::{Answer, Artifact, Roles};
use crate::transport::Miss;
use serde_json::Value;

/// Lists the flows: one line each, beside its `mod` line.
macro_rules! flows {
    ($($folder:ident),+ $(,)?) => {
        /// Every flow, by the name of its folder.
        pub static FLOWS: &[(&str, &dyn Flow)] = &[$((stringify!($folder), &$folder::FLOW)),+];
    };
}

flows! {
    tool_rag,
    two_stage,
    managed_rag,
    react,
}

/// Reason why a trial cannot continue: its verdict is ERROR and says nothing about the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Abort {
    /// The recording has no such exchange.
    Miss(Box<Miss>),
    /// The stored state of the conversation cannot be used.
    State(StateError),
    /// The process ended during a turn: the session store holds its last state.
    Killed,
}

impl From<StateError> for Abort {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

/// What a flow declares about itself.
#[derive(Debug)]
pub struct Description {
    /// The name that scenarios use.
    pub name: &'static str,
    /// Its tools, in the order in which they are offered.
    pub tools: &'static [&'static tools::Declaration],
    /// Its prompts, in the order of their use; a tool's description is the prompt of the tool's name.
    pub prompts: &'static [PromptText],
    /// Its criteria, as the YAML of a criteria file. A criteria file includes them with `flows: [NAME]`, a scenario
    /// with `gates_of: [NAME]`.
    pub criteria: &'static str,
    /// Error kinds with which its turns can end; empty if they are not declared.
    pub errors: &'static [&'static str],
    /// Whether its users belong to tenants: each knowledge base belongs to one tenant and is closed to all others.
    pub tenants: bool,
    /// Whether it asks a managed retrieval service instead of a knowledge base.
    pub managed_retrieval: bool,
    /// Environment variable that names its model in live and served use; recordings keep the declared model.
    pub model_variable: Option<&'static str>,
}

impl Description {
    /// Describes a flow of that name that declares nothing else.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            tools: &[],
            prompts: &[],
            criteria: "",
            errors: &[],
            tenants: false,
            managed_retrieval: false,
            model_variable: None,
        }
    }
}

/// An agent.
pub trait Flow: Send + Sync {
    /// What the flow declares about itself.
    fn description(&self) -> &'static Description;
    /// States and transitions of one turn.
    fn machine(&self) -> Machine;
    /// An answer as a chat service returns it: `answer`, `sources`, `confidence_score` and the two flags. A flow that
    /// has more data on its sources adds it to them.
    fn reply(&self, conversation: &ConversationState, answer: &Answer) -> Value;
    /// Files of a conversation for download, oldest first.
    fn artifacts(&self, conversation: &ConversationState) -> Vec<Artifact>;
    /// Runs one turn of `conversation` from the user's words to its end; all events go to `env`.
    ///
    /// # Errors
    /// [`Abort`] if the trial cannot continue. An agent that fails has ended its turn: that is no error.
    fn turn<'a>(
        &'a self,
        env: &'a AgentContext,
        conversation: &'a mut ConversationState,
        query: &'a str,
    ) -> BoxFuture<'a, Result<(), Abort>>;
    /// Called when the conversation of `session` is over; removes what the flow stored outside it.
    fn session_ended(&self, env: &AgentContext, conversation: &ConversationState);
}

/// The flow of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Flow> {
    FLOWS.iter().map(|(_, flow)| *flow).find(|flow| flow.description().name == name)
}

/// What a flow declares about itself.
pub(crate) fn entry(flow: &dyn Flow) -> FlowEntry {
    let &Description { name, tools, prompts, criteria, errors, tenants, managed_retrieval, .. } = flow.description();
    let tool = |tool: &&tools::Declaration| ToolEntry { name: tool.name, arguments: tool.arguments(), role: tool.role };
    FlowEntry {
        name,
        tools: Some(tools.iter().map(tool).collect()),
        tenants,
        managed_retrieval,
        placeholders: &[],
        criteria,
        errors,
        prompts: prompts.iter().map(|prompt| prompt.name).collect(),
    }
}

/// The roles of a flow's tools.
pub(crate) fn roles(flow: &dyn Flow) -> Roles {
    flow.description().tools.iter().map(|tool| (tool.name.to_owned(), tool.role)).collect()
}

/// Declarations of all flows, external agents last.
pub(crate) fn entries() -> Vec<FlowEntry> {
    FLOWS.iter().map(|(_, flow)| entry(*flow)).chain([external::entry()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All flows, and the worked example of ARCHITECTURE.md.
    fn flows() -> impl Iterator<Item = (&'static str, &'static dyn Flow)> {
        FLOWS.iter().copied().chain([("example", &example::FLOW as &dyn Flow)])
    }

    #[test]
    fn every_flow_is_found_by_its_name_which_is_that_of_its_folder() {
        for (folder, flow) in FLOWS {
            let name = flow.description().name;
            assert_eq!(name, folder.replace('_', "-"));
            assert_eq!(by_name(name).map(|flow| flow.description().name), Some(name));
        }
        assert!(by_name("tool_rag").is_none());
    }

    #[test]
    fn a_machine_is_a_function_one_state_and_one_event_give_one_next_state() {
        for (folder, flow) in flows() {
            let ambiguous = flow.machine().ambiguous();
            assert!(ambiguous.is_empty(), "{folder}: {ambiguous:?}");
        }
    }

    #[test]
    fn every_state_but_the_terminal_ones_is_reached_and_left() {
        for (folder, flow) in flows() {
            let machine = flow.machine();
            let mut reached = BTreeSet::from([machine.initial.clone()]);
            while let Some(row) =
                machine.transitions.iter().find(|row| reached.contains(&row.from) && !reached.contains(&row.to))
            {
                reached.insert(row.to.clone());
            }
            for row in &machine.transitions {
                assert!(reached.contains(&row.from), "{folder}: `{}` is never reached", row.from);
                assert!(!machine.terminal.contains(&row.from), "{folder}: `{}` is terminal and left", row.from);
                let ends = machine.terminal.contains(&row.to);
                let left = machine.transitions.iter().any(|other| other.from == row.to && other.to != other.from);
                assert!(ends || left, "{folder}: `{}` is a trap", row.to);
            }
            assert!(machine.terminal.iter().all(|state| reached.contains(state)), "{folder}");
        }
    }

    #[test]
    fn the_criteria_that_a_flow_declares_can_be_judged_and_name_its_own_tools_by_role() {
        let metrics = crate::metric::catalogue::entries();
        for (folder, flow) in flows() {
            let read: crate::scenario::Criteria = crate::platform::yaml::read(flow.description().criteria)
                .unwrap_or_else(|why| panic!("{folder}: {why}"));
            assert!(!read.criteria.is_empty(), "{folder}");
            for row in &read.criteria {
                row.read(&metrics).unwrap_or_else(|why| panic!("{folder}, {}: {why}", row.id));
                assert_eq!(row.flow, None, "{folder}, {}: the flow is the one that declares it", row.id);
                let named = flow.description().tools.iter().find(|tool| row.metric.contains(tool.name));
                assert!(named.is_none(), "{folder}, {}: write the role of the tool", row.id);
            }
        }
    }

    #[test]
    fn tools_have_names_of_their_own_a_description_and_a_schema_that_compiles() {
        for (folder, flow) in flows() {
            let Description { tools, prompts, .. } = flow.description();
            let names: BTreeSet<_> = tools.iter().map(|tool| tool.name).collect();
            assert_eq!(names.len(), tools.len(), "{folder}");
            for tool in *tools {
                assert!(tool.compiles(), "{folder}: the schema of {} does not compile", tool.name);
                assert!(prompts.iter().any(|prompt| prompt.name == tool.name), "{folder}: {}", tool.name);
            }
            let names: BTreeSet<_> = prompts.iter().map(|prompt| prompt.name).collect();
            assert_eq!(names.len(), prompts.len(), "{folder}");
        }
    }
}
