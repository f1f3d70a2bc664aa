//! What a scenario of `flow: external` says about an agent that runs elsewhere.

use crate::trace::{Role, Roles};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where the agent is given its base URLs, unless the scenario names another address.
pub(crate) const USUAL_PROXY: &str = "127.0.0.1:8101";

/// An agent that runs elsewhere, as its scenario declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExternalAgent {
    /// Where it is.
    pub target: AgentTarget,
    /// The parts that its tools play.
    #[serde(default)]
    pub roles: AgentRoles,
    /// Values that it generates in every run, by a name.
    #[serde(default)]
    pub vars: BTreeMap<String, MintedValue>,
    /// What is called before each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<AgentReset>,
    /// Where it finds model and search service.
    pub proxy: String,
    /// Host names by which it asks for that, beside those of this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxy_hosts: Vec<String>,
}

/// Where the agent is, and how a turn is spelt for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTarget {
    /// The URL to which each turn is posted.
    pub http: String,
    /// The JSON body of a turn. In its texts `{message}`, `{conversation_id}`, `{tenant}`, `{variant}`, `{trial}` and
    /// `{turn}` are put in; a text that is `{history}` becomes the earlier turns, a list of `{role, content}`. Without it:
    /// `{message: "{message}", conversation_id: "{conversation_id}", history: "{history}"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Value>,
    /// JSON pointer of the answer in the reply.
    #[serde(default = "answer")]
    pub answer: String,
    /// The version of the agent that is tested, as its owner calls it. Trials of another version are no repeated draws of this
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// JSON pointer of the sources in the reply, a list of ids, addresses or objects. Without it, the sources are those that
    /// the answering tool was called with, or those at `/sources` where the agent has no such tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<String>,
    /// Paths that the agent may ask the proxy for although they are not served, `/model/v1/audio/speech` for example; `*`
    /// stands for any text of a segment. What is refused there is a note; any other refusal makes the trial an ERROR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_refuse: Vec<String>,
}

impl AgentTarget {
    /// Its server, as `--agent` names it: `http://127.0.0.1:8400`; `None` for what is no plain address.
    pub fn server(&self) -> Option<&str> {
        let host = self.http.find("://")? + 3;
        let end = self.http[host..].find(['/', '?', '#']).map_or(self.http.len(), |at| host + at);
        let server = &self.http[..end];
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "+-.:/[]_".contains(letter);
        (end > host && server.chars().all(plain)).then_some(server)
    }
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

/// The roles of the agent's tools, by role: one name or several. Expectations name tools by the agent's own names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentRoles {
    /// Searches the agent's knowledge.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub knowledge: Vec<String>,
    /// Asks the external search service.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub external: Vec<String>,
    /// Keeps keywords for what came from outside.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub index: Vec<String>,
    /// Gives the answer.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub respond: Vec<String>,
}

impl AgentRoles {
    /// Every tool that is given a role, with its place in the role's list, in the order of [`Role::GIVEN`].
    pub fn given(&self) -> impl Iterator<Item = (Role, usize, &str)> {
        let lists = [&self.knowledge, &self.external, &self.index, &self.respond];
        let pairs = Role::GIVEN.into_iter().zip(lists);
        pairs.flat_map(|(role, tools)| tools.iter().enumerate().map(move |(place, tool)| (role, place, tool.as_str())))
    }

    /// The same by tool.
    pub fn by_tool(&self) -> Roles {
        self.given().map(|(role, _, tool)| (tool.to_owned(), role)).collect()
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Vec<String>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a tool's name, or a list of names")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Vec<String>, E> {
        Ok(vec![name.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Vec<String>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(names))
    }
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(NamesVisitor)
}

fn names_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
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
