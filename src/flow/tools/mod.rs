//! What the tools of all flows share: how one is declared, checked, run, retried and recorded. Which tools there are,
//! each flow's folder says.
//!
//! A call comes as the model wrote it. `execution` takes it through the pipeline: is the tool on offer, may it run now
//! (the flow's policy says), has it tries left, are the arguments JSON (`arguments`), do they fit the schema, and then
//! the tool's own function, which sanitises texts (`sanitise`), holds them against the guard (`guard`) and does the work;
//! what tools that search have in common is in `search`.
//! What does not pass is a [`Refusal`] with a cause, a reason and guidance that a model can act on.

mod arguments;
mod execution;
pub mod guard;
pub(crate) mod sanitise;
pub(in crate::flow) mod search;

pub(in crate::flow) use execution::{End, Executed};

use super::frame::Agent;
use super::{Abort, AgentContext, Services};
use crate::knowledge::{KnowledgeError, SearchError};
use crate::platform::clock::BoxFuture;
use crate::provider::chat::ToolDefinition;
use crate::provider::{self, ProviderError};
use crate::settings::JsonSchema;
use crate::trace::{Role, ToolResult};
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// What a flow declares of a tool.
#[derive(Debug)]
pub struct Declaration {
    /// Its name.
    pub name: &'static str,
    /// The part that it plays.
    pub role: Role,
    /// JSON Schema of its arguments.
    pub schema: fn() -> Value,
    /// Whether it is on offer beside these services.
    pub offered: fn(Services) -> bool,
    /// What the model is told of a call that gave no result, made of what every tool says.
    pub error: fn(String) -> String,
    /// Compiled once a process: schemas do not vary. `None` for one that does not compile.
    compiled: OnceLock<Option<JsonSchema>>,
}

impl Declaration {
    /// A tool that is always on offer.
    pub const fn new(name: &'static str, role: Role, schema: fn() -> Value) -> Self {
        Self { name, role, schema, offered: |_| true, error: |message| message, compiled: OnceLock::new() }
    }

    /// A tool that is always on offer and words its failures in its own way.
    pub const fn with_error(
        name: &'static str,
        role: Role,
        schema: fn() -> Value,
        error: fn(String) -> String,
    ) -> Self {
        Self { name, role, schema, offered: |_| true, error, compiled: OnceLock::new() }
    }

    /// A tool that is on offer beside some services only.
    pub const fn offered_with(
        name: &'static str,
        role: Role,
        schema: fn() -> Value,
        offered: fn(Services) -> bool,
    ) -> Self {
        Self { name, role, schema, offered, error: |message| message, compiled: OnceLock::new() }
    }

    /// As the model is told about it, under this description.
    pub fn definition(&self, description: &str) -> ToolDefinition {
        let (name, description) = (self.name.to_owned(), description.trim().to_owned());
        ToolDefinition { name, description, parameters: (self.schema)() }
    }

    /// The names of its arguments, in the order of its schema.
    pub fn arguments(&self) -> Vec<String> {
        let schema = (self.schema)();
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
    }

    /// Whether its schema can be used to check anything.
    #[cfg(test)]
    pub fn compiles(&self) -> bool {
        self.compiled().is_some()
    }

    fn compiled(&self) -> Option<&JsonSchema> {
        self.compiled.get_or_init(|| JsonSchema::compile(&(self.schema)()).ok()).as_ref()
    }
}

/// A tool of the flow `A`.
pub(in crate::flow) struct Tool<A: Agent> {
    /// What is declared of it.
    pub(in crate::flow) declaration: Declaration,
    /// Does the work; the arguments fit the schema.
    pub(in crate::flow) run: Run<A>,
}

/// What these tools declare, in their order.
pub(in crate::flow) const fn declarations<A: Agent, const N: usize>(
    tools: &[&'static Tool<A>; N],
) -> [&'static Declaration; N] {
    let mut all = [&tools[0].declaration; N];
    let mut place = 0;
    while place < N {
        all[place] = &tools[place].declaration;
        place += 1;
    }
    all
}

/// The work of a tool.
pub(in crate::flow) type Run<A> =
    for<'a> fn(&'a Map<String, Value>, Scope<'a, A>) -> BoxFuture<'a, Result<Output, ToolError>>;

/// What a tool may see and change.
pub(in crate::flow) struct Scope<'a, A: Agent> {
    pub(in crate::flow) env: &'a AgentContext,
    /// The session that the conversation belongs to.
    pub(in crate::flow) session: &'a str,
    /// The conversation's ordinal within the trial.
    pub(in crate::flow) conversation: u32,
    /// The turn's ordinal within the conversation.
    pub(in crate::flow) turn: u32,
    /// The user's words in this turn.
    pub(in crate::flow) question: &'a str,
    /// What outlives the turn.
    pub(in crate::flow) memory: &'a mut A::Memory,
    /// What the flow knows of the turn.
    pub(in crate::flow) own: &'a mut A::Own,
}

/// What a tool gave.
pub(in crate::flow) struct Output {
    /// For the trace.
    pub(in crate::flow) result: ToolResult,
    /// For the model: the tool message.
    pub(in crate::flow) told: String,
    pub(in crate::flow) sent: Sent,
}

impl Output {
    /// A result without an exchange.
    pub(in crate::flow) fn local(result: ToolResult, told: String) -> Self {
        Self { result, told, sent: Sent::default() }
    }
}

/// The HTTP attempts of a tool's request, and the service that they went to.
#[derive(Debug, Clone, Default)]
pub(in crate::flow) struct Sent {
    pub(in crate::flow) service: &'static str,
    pub(in crate::flow) attempts: Vec<provider::Attempt>,
}

/// Why a tool gave nothing.
pub(in crate::flow) enum ToolError {
    /// Its parameters are refused; it did not run.
    Refused(Refusal),
    /// It ran and failed.
    Failed(Box<Failure>),
    /// The trial cannot go on.
    Abort(Abort),
}

/// A failed run.
pub(in crate::flow) struct Failure {
    /// The cause on the retry account.
    pub(in crate::flow) cause: &'static str,
    /// What happened, for the trace.
    pub(in crate::flow) message: String,
    /// The cause, for the model.
    pub(in crate::flow) told: &'static str,
    /// What happened, for the model: without the details of the machine.
    pub(in crate::flow) reason: String,
    /// What the model should do while another try can help, and when none can.
    pub(in crate::flow) guidance: [&'static str; 2],
    /// Whether the same call may succeed later.
    pub(in crate::flow) transient: bool,
    pub(in crate::flow) sent: Sent,
}

impl Failure {
    /// A service that failed: `what` names it, as in "the external service".
    pub(in crate::flow) fn of_service(
        what: &str,
        kind: provider::ErrorKind,
        status: Option<u16>,
        words: &str,
        guidance: [&'static str; 2],
        sent: Sent,
    ) -> Self {
        let status = status.map_or(String::new(), |status| format!(", HTTP {status}"));
        let words: String = words.chars().filter(|letter| !letter.is_control()).take(200).collect();
        let reason = format!("{what} failed ({}{status})", kind.as_str());
        Self {
            cause: kind.as_str(),
            message: format!("{reason}: {words}"),
            told: kind.as_str(),
            reason,
            guidance,
            transient: kind.is_transient(),
            sent,
        }
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Something of our own failed: told without the details of the machine.
impl From<KnowledgeError> for ToolError {
    fn from(error: KnowledgeError) -> Self {
        Self::Failed(Box::new(Failure {
            cause: "tool_failed",
            message: error.to_string(),
            told: "failed",
            reason: "the tool failed".to_owned(),
            guidance: ["Try once more, or go on without it."; 2],
            transient: true,
            sent: Sent::default(),
        }))
    }
}

impl ToolError {
    /// A search of a knowledge base that gave nothing; `attempts` are those that it took.
    pub(in crate::flow) fn of_search(error: SearchError, attempts: Vec<provider::Attempt>) -> Self {
        match error {
            SearchError::Local(error) => error.into(),
            SearchError::Service(ProviderError::Miss(miss)) => Self::Abort(Abort::Miss(miss)),
            SearchError::Service(ProviderError::Failed { kind, status, message }) => {
                let guidance = ["Try once more, or go on without it.", "Go on without it and say what is missing."];
                let sent = Sent { service: "knowledge", attempts };
                Self::Failed(Box::new(Failure::of_service(
                    "the knowledge base",
                    kind,
                    status,
                    &message,
                    guidance,
                    sent,
                )))
            }
        }
    }
}

/// Why a call is not executed, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Machine-readable cause: `unknown_tool`, `not_json`, `double_encoded`, `not_an_object`, `schema`, `length`,
    /// `hostile`, `generic_keyword`, …
    pub cause: &'static str,
    /// Why, in words.
    pub reason: String,
    /// What to do instead.
    pub guidance: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(cause: &'static str, reason: impl Into<String>, guidance: impl Into<String>) -> Self {
        Self { cause, reason: reason.into(), guidance: guidance.into() }
    }

    /// The refusal of a tool that is not among those on offer.
    pub fn unknown_tool<'n>(name: &str, offered: impl IntoIterator<Item = &'n str>) -> Self {
        let shown: String = name.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let offered: Vec<&str> = offered.into_iter().collect();
        let guidance = format!("Use one of the tools on offer: {}.", offered.join(", "));
        Self::new("unknown_tool", format!("there is no tool `{shown}`"), guidance)
    }

    /// The tool message that tells it.
    pub fn for_model(&self, retryable: bool) -> String {
        error_for_model(self.cause, &self.reason, &self.guidance, retryable)
    }
}

/// The tool message of a call that gave no result.
fn error_for_model(cause: &str, reason: &str, guidance: &str, retryable: bool) -> String {
    serde_json::json!({
        "error": {"cause": cause, "reason": reason, "guidance": guidance, "retryable": retryable}
    })
    .to_string()
}
