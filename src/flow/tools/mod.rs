//! Shared machinery of all flows' tools: declaration, checks, execution, retries and recording. Each flow's folder
//! lists its tools.
//!
//! A call arrives as the model wrote it. `execution` checks in turn whether the tool is offered, whether it may run now
//! (the flow's policy decides), whether it has tries left, whether the arguments are JSON (`arguments`), and whether
//! they match the schema. Then the tool's function sanitises texts (`sanitise`), checks them with the guard (`guard`)
//! and does the work; `search` is shared by tools that search. A call that fails a check is a [`Refusal`] with a cause,
//! a reason and guidance for the model.

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

/// Declaration of a tool.
#[derive(Debug)]
pub struct Declaration {
    pub name: &'static str,
    pub role: Role,
    /// JSON Schema of its arguments.
    pub schema: fn() -> Value,
    /// Whether the tool is offered with these services.
    pub offered: fn(Services) -> bool,
    /// Completes the error message of a call without a result, given the fields of every tool error.
    pub error: fn(String) -> String,
    /// Compiled once per process: schemas do not vary. `None` if the schema does not compile.
    compiled: OnceLock<Option<JsonSchema>>,
}

impl Declaration {
    /// A tool that is always offered.
    pub const fn new(name: &'static str, role: Role, schema: fn() -> Value) -> Self {
        Self { name, role, schema, offered: |_| true, error: |message| message, compiled: OnceLock::new() }
    }

    /// The tool with its own error messages.
    pub(in crate::flow) const fn with_error(mut self, error: fn(String) -> String) -> Self {
        self.error = error;
        self
    }

    /// The tool offered only with some services.
    pub(in crate::flow) const fn offered_with(mut self, offered: fn(Services) -> bool) -> Self {
        self.offered = offered;
        self
    }

    /// Definition for the model, with this description.
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

    /// Whether its schema compiles.
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
    pub(in crate::flow) declaration: Declaration,
    /// Does the work; the arguments fit the schema.
    pub(in crate::flow) run: Run<A>,
}

/// The declarations of these tools, in order.
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

/// Implementation of a tool.
pub(in crate::flow) type Run<A> =
    for<'a> fn(&'a Map<String, Value>, Scope<'a, A>) -> BoxFuture<'a, Result<Output, ToolError>>;

/// State that a tool may read and change.
pub(in crate::flow) struct Scope<'a, A: Agent> {
    pub(in crate::flow) env: &'a AgentContext,
    pub(in crate::flow) session: &'a str,
    /// The conversation's ordinal within the trial.
    pub(in crate::flow) conversation: u32,
    /// The turn's ordinal within the conversation.
    pub(in crate::flow) turn: u32,
    /// The user's words in this turn.
    pub(in crate::flow) question: &'a str,
    /// State that outlives the turn.
    pub(in crate::flow) memory: &'a mut A::Memory,
    /// State of the turn.
    pub(in crate::flow) own: &'a mut A::Own,
}

/// Result of a tool.
pub(in crate::flow) struct Output {
    /// For the trace.
    pub(in crate::flow) result: ToolResult,
    /// Tool message for the model.
    pub(in crate::flow) message: String,
    pub(in crate::flow) sent: Sent,
}

impl Output {
    /// A result without an HTTP exchange.
    pub(in crate::flow) fn local(result: ToolResult, message: String) -> Self {
        Self { result, message, sent: Sent::default() }
    }
}

/// The HTTP attempts of a tool's request, and their service.
#[derive(Debug, Clone, Default)]
pub(in crate::flow) struct Sent {
    pub(in crate::flow) service: &'static str,
    pub(in crate::flow) attempts: Vec<provider::Attempt>,
}

/// Reason why a tool has no result.
pub(in crate::flow) enum ToolError {
    /// The parameters are refused; the tool did not run.
    Refused(Refusal),
    /// The tool ran and failed.
    Failed(Box<Failure>),
    /// The trial cannot continue.
    Abort(Abort),
}

/// A failed run.
pub(in crate::flow) struct Failure {
    /// Cause on the retry account.
    pub(in crate::flow) cause: &'static str,
    /// Description for the trace.
    pub(in crate::flow) message: String,
    pub(in crate::flow) model_cause: &'static str,
    /// Description for the model, without internal details.
    pub(in crate::flow) reason: String,
    /// Guidance for the model: while a retry can help, and when none can.
    pub(in crate::flow) guidance: [&'static str; 2],
    /// Whether the same call may succeed later.
    pub(in crate::flow) transient: bool,
    pub(in crate::flow) sent: Sent,
}

/// Guidance for the model after a failure: while a retry can help, and when none can.
const GUIDANCE: [&str; 2] = ["Try once more, or go on without it.", "Go on without it and say what is missing."];

impl Failure {
    /// A failure that may pass, told to the trace and to the model in the same words, and without an HTTP exchange.
    pub(in crate::flow) fn of(cause: &'static str, reason: String, guidance: [&'static str; 2]) -> Self {
        let (message, model_cause, sent) = (reason.clone(), cause, Sent::default());
        Self { cause, message, model_cause, reason, guidance, transient: true, sent }
    }
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// An internal failure, reported without internal details.
impl From<KnowledgeError> for ToolError {
    fn from(error: KnowledgeError) -> Self {
        let guidance = ["Try once more, or go on without it."; 2];
        let failure = Failure::of("tool_failed", "the tool failed".to_owned(), guidance);
        Self::Failed(Box::new(Failure { message: error.to_string(), model_cause: "failed", ..failure }))
    }
}

impl ToolError {
    /// A tool that a declared fault lets fail.
    fn struck(cause: &'static str) -> Self {
        let failure = Failure::of(cause, "the tool failed".to_owned(), GUIDANCE);
        Self::Failed(Box::new(Failure { message: format!("declared fault: {cause}"), ..failure }))
    }

    /// A failed search of a knowledge base; `attempts` are its HTTP attempts.
    pub(in crate::flow) fn of_search(error: SearchError, attempts: Vec<provider::Attempt>) -> Self {
        match error {
            SearchError::Local(error) => error.into(),
            SearchError::Service(error) => {
                Self::of_service("the knowledge base", error, GUIDANCE, Sent { service: "knowledge", attempts })
            }
        }
    }

    /// A failed service; `what` names it, as in "the external service".
    pub(in crate::flow) fn of_service(
        what: &str,
        error: ProviderError,
        guidance: [&'static str; 2],
        sent: Sent,
    ) -> Self {
        let (kind, status, words) = match error {
            ProviderError::Miss(miss) => return Self::Abort(Abort::Miss(miss)),
            ProviderError::Failed { kind, status, message } => (kind, status, message),
        };
        let status = status.map_or(String::new(), |status| format!(", HTTP {status}"));
        let words: String = words.chars().filter(|letter| !letter.is_control()).take(200).collect();
        let reason = format!("{what} failed ({}{status})", kind.as_str());
        let message = format!("{reason}: {words}");
        let failure = Failure::of(kind.as_str(), reason, guidance);
        Self::Failed(Box::new(Failure { message, transient: kind.is_transient(), sent, ..failure }))
    }
}

/// Reason for the model why a call is not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Machine-readable cause: `unknown_tool`, `not_json`, `double_encoded`, `not_an_object`, `schema`, `length`,
    /// `hostile`, `generic_keyword`, …
    pub cause: &'static str,
    /// Reason, in words.
    pub reason: String,
    /// What to do instead.
    pub guidance: String,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(cause: &'static str, reason: impl Into<String>, guidance: impl Into<String>) -> Self {
        Self { cause, reason: reason.into(), guidance: guidance.into() }
    }

    /// Refuses a tool that is not offered.
    pub fn unknown_tool<'n>(name: &str, offered: impl IntoIterator<Item = &'n str>) -> Self {
        let shown: String = name.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let offered: Vec<&str> = offered.into_iter().collect();
        let guidance = format!("Use one of the tools on offer: {}.", offered.join(", "));
        Self::new("unknown_tool", format!("there is no tool `{shown}`"), guidance)
    }

    /// The tool message of this refusal.
    pub fn for_model(&self, retryable: bool) -> String {
        error_for_model(self.cause, &self.reason, &self.guidance, retryable)
    }
}

/// The tool message of a call without a result.
fn error_for_model(cause: &str, reason: &str, guidance: &str, retryable: bool) -> String {
    serde_json::json!({
        "error": {"cause": cause, "reason": reason, "guidance": guidance, "retryable": retryable}
    })
    .to_string()
}
