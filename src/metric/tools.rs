//! Selects the tools that a metric is about: one by name, or all with a role.

use crate::settings::catalogue::ResolvedMetric;
use crate::trace::{Role, Trace, TrialEnd};

/// The tools that a metric's parameter names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tools {
    /// Every tool with this role.
    Role(Role),
    Named(String),
}

impl Tools {
    /// Reads the parameter `tool`; a word that names a role means the role.
    pub(super) fn of(asked: &ResolvedMetric) -> Self {
        let word = asked.parameter("tool");
        Role::given(word).map_or_else(|| Self::Named(word.to_owned()), Self::Role)
    }

    /// Whether the selection includes a tool of that trace.
    pub(super) fn has(&self, trace: &Trace, tool: &str) -> bool {
        match self {
            Self::Role(role) => trace.role(tool) == *role,
            Self::Named(name) => name == tool,
        }
    }

    /// Names of the selected tools in that trace, for reports.
    pub(super) fn label(&self, trace: &Trace) -> String {
        match self {
            Self::Role(role) => {
                let names: Vec<&str> = trace.tools_of(*role).collect();
                if names.is_empty() { role.as_str().to_owned() } else { names.join(" or ") }
            }
            Self::Named(name) => name.clone(),
        }
    }

    /// Reason why the agent of that trace is out of scope: it has none of the tools. A trial in ERROR may have ended before
    /// its requests offered them.
    pub fn missing(&self, trace: &Trace) -> Option<String> {
        match self {
            _ if trace.offered.is_some() && matches!(trace.end, TrialEnd::Error(_)) => None,
            Self::Role(role) if trace.has_role(*role) => None,
            Self::Role(role) => Some(format!("the agent has no tool with the role `{}`", role.as_str())),
            Self::Named(name) if trace.has_tool(name) => None,
            Self::Named(name) => Some(format!("the agent has no tool `{name}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::{plan, story};

    #[test]
    fn a_trial_that_ended_in_an_error_says_nothing_of_the_tools_that_it_did_not_offer() {
        let plan = plan("[{case: a, ask: q}]", "[]", 1);
        let mut broken = story(&plan, 0).turn("q").error("gone");
        broken.offered = Some(Vec::new());
        let mut ended = story(&plan, 0).turn("q").done();
        ended.offered = Some(Vec::new());
        let tools = Tools::Named("look".into());
        assert_eq!(tools.missing(&broken), None);
        assert_eq!(tools.missing(&ended).as_deref(), Some("the agent has no tool `look`"));
    }
}
