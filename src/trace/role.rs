//! Role of a tool: with its name, all that metrics know about a tool.
//!
//! A flow declares the roles of its tools, a scenario maps them for an external or imported agent, and every trace
//! carries them. Traces of version 1 carry none: there the four tools of the only flow had fixed names, also for
//! external agents, and `roles_v1.json` maps them.

use super::Trace;
use crate::platform::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const VERSION_1: &str = include_str!("roles_v1.json");

words! {
    /// Role of a tool.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        /// Searches the agent's knowledge.
        Knowledge = "knowledge",
        /// Calls an external search service.
        External = "external",
        /// Stores external results under keywords.
        Index = "index",
        /// Gives the answer.
        Respond = "respond",
        /// Any other tool.
        #[default]
        None = "none",
    }
}

impl Role {
    /// Roles that a tool can be given, in the order of a turn.
    pub const GIVEN: [Self; 4] = [Self::Knowledge, Self::External, Self::Index, Self::Respond];

    /// Parses a role; `none` means no role and is rejected.
    pub fn given(word: &str) -> Option<Self> {
        Self::GIVEN.into_iter().find(|role| role.as_str() == word)
    }
}

/// Roles by tool name; unlisted tools have none.
pub(crate) type Roles = BTreeMap<String, Role>;

/// The roles of the tools in traces of version 1.
pub(crate) fn version_1() -> Roles {
    serde_json::from_str(VERSION_1).unwrap_or_default()
}

impl Trace {
    /// The role of that tool.
    pub fn role(&self, tool: &str) -> Role {
        self.roles.get(tool).copied().unwrap_or_default()
    }

    /// Names of the tools with a role.
    pub fn tools_of(&self, role: Role) -> impl Iterator<Item = &str> {
        self.roles.iter().filter(move |(_, known)| **known == role).map(|(tool, _)| tool.as_str())
    }

    /// Whether the agent had that tool: it was offered or used. True if the offer is unknown.
    pub fn has_tool(&self, tool: &str) -> bool {
        let offered = |offered: &Vec<String>| offered.iter().any(|known| known == tool);
        self.offered.as_ref().is_none_or(offered) || self.called(tool)
    }

    /// Whether the agent had a tool with this role.
    pub fn has_role(&self, role: Role) -> bool {
        self.tools_of(role).any(|tool| self.has_tool(tool))
    }

    /// Whether that tool was called, executed or not.
    pub fn called(&self, tool: &str) -> bool {
        self.events.iter().any(|event| matches!(&event.what, super::What::ToolCalled(call) if call.tool == tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_that_can_be_given_is_read_by_its_word() {
        for role in Role::GIVEN {
            assert_eq!(Role::given(role.as_str()), Some(role));
            assert_eq!(serde_json::to_value(role).expect("a word"), role.as_str());
        }
        assert_eq!((Role::given("none"), Role::default()), (None, Role::None));
    }

    #[test]
    fn the_tools_of_version_1_play_one_role_each() {
        let roles: std::collections::BTreeSet<Role> = version_1().into_values().collect();
        assert_eq!(roles, Role::GIVEN.into_iter().collect());
    }
}
