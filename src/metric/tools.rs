//! Which tools a metric is about: one by its name, or all that play a role.

use crate::settings::catalogue::ResolvedMetric;
use crate::trace::{Role, Trace};

/// The tools that a metric's parameter names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tools {
    /// Every tool with this role.
    Role(Role),
    /// The tool of this name.
    Named(String),
}

impl Tools {
    /// What the parameter `tool` says; a word that is a role is the role.
    pub(super) fn of(asked: &ResolvedMetric) -> Self {
        let word = asked.parameter("tool");
        Role::given(word).map_or_else(|| Self::Named(word.to_owned()), Self::Role)
    }

    /// Whether a tool of that trace is one of them.
    pub(super) fn has(&self, trace: &Trace, tool: &str) -> bool {
        match self {
            Self::Role(role) => trace.role(tool) == *role,
            Self::Named(name) => name == tool,
        }
    }

    /// For people: the names of the tools of that trace.
    pub(super) fn label(&self, trace: &Trace) -> String {
        match self {
            Self::Role(role) => {
                let names: Vec<&str> = trace.tools_of(*role).collect();
                if names.is_empty() { role.as_str().to_owned() } else { names.join(" or ") }
            }
            Self::Named(name) => name.clone(),
        }
    }

    /// Why the agent of that trace is out of their reach: it has none of them.
    pub fn missing(&self, trace: &Trace) -> Option<String> {
        match self {
            Self::Role(role) if trace.has_role(*role) => None,
            Self::Role(role) => Some(format!("the agent has no tool with the role `{}`", role.as_str())),
            Self::Named(name) if trace.has_tool(name) => None,
            Self::Named(name) => Some(format!("the agent has no tool `{name}`")),
        }
    }
}
