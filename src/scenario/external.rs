//! What a scenario of `flow: external` says about an agent that runs elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the agent is given its base URLs, unless the scenario names another address.
pub const USUAL_PROXY: &str = "127.0.0.1:8101";

/// Where the agent is, and how a turn is spelt for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTarget {
    /// The URL to which each turn is posted.
    pub http: String,
    /// The JSON body of a turn. In its texts `{message}`, `{conversation_id}`, `{variant}`, `{trial}` and `{turn}` are put
    /// in; a text that is `{history}` becomes the earlier turns, a list of `{role, content}`. Without it:
    /// `{message: "{message}", conversation_id: "{conversation_id}", history: "{history}"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Value>,
    /// JSON pointer of the answer in the reply.
    #[serde(default = "answer")]
    pub answer: String,
}

fn answer() -> String {
    "/answer".into()
}

/// What is called before each trial, so that the agent remembers nothing of the one before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentReset {
    /// The URL, which is posted to.
    pub http: String,
}

/// Which of the agent's tools plays which part in the criteria; expectations name the tools on the right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentRoles {
    /// Searches the agent's knowledge: `knowledge_base_search`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<String>,
    /// Asks the outside search service: `perplexity_search`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<String>,
    /// Keeps keywords for what came from outside: `index_keywords`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Gives the answer: `generate_response`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub respond: Option<String>,
}

impl AgentRoles {
    /// The parts that are given, with the agent's tool.
    pub fn given(&self) -> Vec<(&'static str, &str)> {
        let parts = [
            ("knowledge", &self.knowledge),
            ("external", &self.external),
            ("index", &self.index),
            ("respond", &self.respond),
        ];
        parts.into_iter().filter_map(|(part, tool)| Some((part, tool.as_deref()?))).collect()
    }
}

/// Where something stands in requests that the agent makes anew in every run: a date, an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MintedValue {
    /// JSON pointer into the bodies of requests to the model and the search service; `*` is any member or index.
    pub at: String,
    /// Regular expression: its first group, or its whole match, is the value. Without it, the whole text.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}
