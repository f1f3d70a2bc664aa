//! What a flow declares about itself.

use crate::trace::{Role, Roles};

/// One flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEntry {
    /// The name that scenarios use.
    pub name: &'static str,
    /// Its tools, in the order in which they are offered; `None` where they are known only at run time.
    pub tools: Option<Vec<ToolEntry>>,
    /// Whether its users belong to tenants, each with a knowledge base of its own.
    pub tenants: bool,
    /// Whether it asks a managed retrieval service, and no knowledge base.
    pub managed_retrieval: bool,
    /// What may stand in braces in the body of a turn that is sent to an agent elsewhere.
    pub placeholders: &'static [&'static str],
    /// The criteria that it declares, as the YAML of a criteria file; empty where it declares none.
    pub criteria: &'static str,
    /// The errors that its turns can end with; empty where that is not known.
    pub errors: &'static [&'static str],
    /// Prompt texts that a scenario or a variant may replace, in the order of their use.
    pub prompts: Vec<&'static str>,
}

/// One tool of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// Its name.
    pub name: &'static str,
    /// The names of its arguments.
    pub arguments: Vec<String>,
    /// The part that it plays.
    pub role: Role,
}

impl FlowEntry {
    /// The roles of its tools.
    pub fn roles(&self) -> Roles {
        self.tools.iter().flatten().map(|tool| (tool.name.to_owned(), tool.role)).collect()
    }
}
