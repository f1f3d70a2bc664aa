//! Catalogue entry of a flow.

use crate::trace::{Role, Roles};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowEntry {
    /// The name used in scenarios.
    pub name: &'static str,
    /// Its tools, in the order in which they are offered; `None` if known only at run time.
    pub tools: Option<Vec<ToolEntry>>,
    /// Whether its users belong to tenants, each with a separate knowledge base.
    pub tenants: bool,
    /// Whether it uses a managed retrieval service instead of a knowledge base.
    pub managed_retrieval: bool,
    /// Placeholders allowed in the body of a turn for an external agent.
    pub placeholders: &'static [&'static str],
    /// Its criteria, as the YAML of a criteria file; empty if it declares none.
    pub criteria: &'static str,
    /// Errors that its turns can end with; empty if unknown.
    pub errors: &'static [&'static str],
    /// Prompt texts that a scenario or a variant may replace, in order of use.
    pub prompts: Vec<&'static str>,
}

/// One tool of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    pub name: &'static str,
    pub arguments: Vec<String>,
    pub role: Role,
}

impl FlowEntry {
    /// The roles of its tools.
    pub fn roles(&self) -> Roles {
        self.tools.iter().flatten().map(|tool| (tool.name.to_owned(), tool.role)).collect()
    }
}
