//! Settings of a scenario with `flow: external`.

use super::either::{Either, text_or_list};
use crate::settings::TimeSpan;
use crate::trace::{Role, Roles};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Default address of the proxy.
pub(crate) const USUAL_PROXY: &str = "127.0.0.1:8101";

/// An external agent as declared in its scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalAgent {
    /// Its address and request format.
    pub target: AgentTarget,
    /// Roles of its tools.
    #[serde(default)]
    pub roles: AgentRoles,
    /// Values that it generates in every run, by name.
    #[serde(default)]
    pub vars: BTreeMap<String, MintedValue>,
    /// Its services, by name; `model` and `search` are here if the scenario declares them in `services`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, DeclaredService>,
    /// Endpoint called before each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<AgentReset>,
    /// How its keyword index is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<AgentProbe>,
    /// Address of the proxy for its model and search service.
    pub proxy: String,
    /// Host names under which it reaches the proxy, in addition to those of this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxy_hosts: Vec<String>,
}

/// Address of an external agent, and the format of its requests and replies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTarget {
    /// The command that starts the agent, in the project's folder and without a shell: a text that is split as a shell
    /// would (quotes, no variables, no pipes), or a list of words. `{{port}}` is the port to listen at, also in the
    /// environment variable `PORT`. Each worker has one process. Without `http`, a turn is one line of JSON to its
    /// standard input, and the reply one line of its standard output.
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub command: Vec<String>,
    /// Environment variables of the process, in addition to those of the run and the base URLs of its services;
    /// `{{variant}}` is the variant's name, `{{model}}` the model's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The URL to which each turn is posted; `{{port}}` in it is the port of the process that `command` started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// The path that answers a GET with a status below 400 as soon as the process is ready. Default: the process is ready
    /// when its port accepts a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// How long the process may take until it is ready; more for one that compiles first. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_within: Option<TimeSpan>,
    /// When the process is restarted. Default: when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// Headers of each turn. `{{env.NAME}}` is an environment variable, which has to be trusted with the agent's host
    /// (`--trust NAME=HOST`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The JSON body of a turn. The placeholders `{{message}}`, `{{conversation_id}}`, `{{tenant}}`, `{{variant}}`,
    /// `{{trial}}`, `{{turn}}` and `{{prompt.NAME}}` in its texts are replaced; a text that is `{{history}}` becomes the
    /// earlier turns, a list of `{role, content}`, one that is `{{messages}}` the same with the user's message last, and
    /// `{{ui_messages}}` that in the form of the AI SDK, `{id, role, parts}`.
    /// `{message}` is the same as `{{message}}`. Default: `{message: "{{message}}", conversation_id:
    /// "{{conversation_id}}", history: "{{history}}"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Value>,
    /// JSON pointer of the answer in the reply; or `openai` for an endpoint of the shape of Chat Completions.
    #[serde(default = "answer")]
    pub answer: String,
    /// The version of the tested agent, as its owner names it. Trials of different versions are not repetitions of
    /// one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// JSON pointer of the sources in the reply: a list of ids, addresses or objects. Default: the sources in the
    /// answering tool's call, or those at `/sources` where the agent has no such tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<String>,
    /// Paths that the agent may request from the proxy although they are not served, `/model/v1/audio/speech` for
    /// example; `*` matches any text within a segment. A refusal there is a note; any other refusal makes the trial
    /// an ERROR.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_refuse: Vec<String>,
    /// Whether the agent sends OpenTelemetry spans, over HTTP to `/v1/traces` of the proxy: what they say of its tools and
    /// searches is judged beside its traffic. They are awaited after each turn, for at most 10 s.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spans: bool,
}

impl AgentTarget {
    /// Its server, in the form of `--agent`: `http://127.0.0.1:8400`; `None` if `command` starts it, or the URL is not
    /// a plain address.
    pub fn server(&self) -> Option<&str> {
        let http = self.http.as_deref().filter(|_| self.command.is_empty())?;
        let host = http.find("://")? + 3;
        let end = http[host..].find(['/', '?', '#']).map_or(http.len(), |at| host + at);
        let server = &http[..end];
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "+-.:/[]_".contains(letter);
        (end > host && server.chars().all(plain)).then_some(server)
    }
}

fn answer() -> String {
    "/answer".into()
}

/// Placeholder for the port of a process that ragcheck starts.
pub(crate) const PORT: &str = "{{port}}";
/// `target.answer` of an endpoint that has the shape of Chat Completions.
pub(crate) const OPENAI_SHAPE: &str = "openai";

/// When the process of an agent is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Before each trial.
    Trial,
}

/// A service of an external agent, mounted at `http://<proxy>/NAME`. It is either a provider of the project file, for a
/// model or a search service, or any HTTP service, a vector database for example: that one's requests are compared by
/// method, path and body. An MCP server (streamable HTTP) is a service, too; those that the agent starts itself need
/// `ragcheck mcp-record`, and no entry here. The services `model` and `search` are mounted at `/model/v1` and `/search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredService {
    /// Base URL of an HTTP service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// URL of an MCP server that speaks streamable HTTP: `http://127.0.0.1:8400/mcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<String>,
    /// Name of a provider in the project file, which has its base URL, key and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model's name at the provider, by which completions are priced. Default: the name in each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Environment variable, or several, in which a process that ragcheck starts finds this service at the proxy, in
    /// addition to those that the provider's clients usually read.
    #[serde(default, deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub env: Vec<String>,
    /// Whether the agent is judged when this service is down, as with `optional: [search]`: it is to manage without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl DeclaredService {
    /// Its key in the price list, `provider/model`; `None` if it names no model.
    pub fn price_name(&self) -> Option<String> {
        Some(format!("{}/{}", self.provider.as_ref()?, self.name.as_ref()?))
    }
}

/// Names of the two services that have keys of their own in a scenario.
pub(crate) const SHORT_FORMS: [&str; 2] = ["model", "search"];

/// Endpoint called before each trial, to clear what the agent remembers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentReset {
    /// The URL; the request is a POST.
    pub http: String,
}

/// Endpoint that lists the keywords which the agent's index holds, read with a GET after each turn that called a tool with
/// the role `index`. The running agent is asked, in replay too; the answer of a declared service is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentProbe {
    /// The URL: of the agent, whose port is `{{port}}`, or of a store beside it; `{{conversation_id}}` is replaced. With
    /// `service`, the path at that service.
    pub http: String,
    /// Name of a service in `services` that holds the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// When it is read: after each turn that wrote to it, or at the end of the trial, for an agent that stores behind its
    /// reply.
    #[serde(default, skip_serializing_if = "ProbeAfter::is_turn")]
    pub after: ProbeAfter,
    /// JSON pointer to the keywords in the answer: a list of texts, a list of objects with `keyword` or `keywords` (and
    /// `result_id`, if it leads to one), or an object whose names are the keywords. Default: the whole answer.
    #[serde(default)]
    pub at: String,
}

/// When an index is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeAfter {
    /// After each turn that wrote to it.
    #[default]
    Turn,
    /// At the end of the trial.
    Trial,
}

impl ProbeAfter {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

/// The roles of the agent's tools: one name or several per role. Expectations use the agent's tool names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentRoles {
    /// Searches the agent's knowledge.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub knowledge: Vec<String>,
    /// Calls the external search service.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub external: Vec<String>,
    /// Stores keywords for external results.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub index: Vec<String>,
    /// Gives the answer.
    #[serde(deserialize_with = "names", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub respond: Vec<String>,
}

impl AgentRoles {
    /// Every tool that has a role, with its place in the role's list, in the order of [`Role::GIVEN`].
    pub fn given(&self) -> impl Iterator<Item = (Role, usize, &str)> {
        let lists = [&self.knowledge, &self.external, &self.index, &self.respond];
        let pairs = Role::GIVEN.into_iter().zip(lists);
        pairs.flat_map(|(role, tools)| tools.iter().enumerate().map(move |(place, tool)| (role, place, tool.as_str())))
    }

    /// Roles by tool name.
    pub fn by_tool(&self) -> Roles {
        self.given().map(|(role, _, tool)| (tool.to_owned(), role)).collect()
    }
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match text_or_list(deserializer, "a tool's name, or a list of names")? {
        Either::Text(name) => vec![name],
        Either::Whole(names) => names,
    })
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    match text_or_list(deserializer, "a command, or a list of its words")? {
        Either::Text(command) => {
            shlex::split(&command).ok_or_else(|| D::Error::custom("a quote in this command is not closed"))
        }
        Either::Whole(words) => Ok(words),
    }
}

fn names_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
}

/// Where the value is that a path holds.
pub(crate) const IN_PATH: &str = "path";
/// Values with fewer characters are not bound: exchanging them would tear ordinary words apart.
pub(crate) const SHORTEST_VALUE: usize = 4;

/// A value in requests that the agent generates in every run: a date, an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MintedValue {
    /// JSON pointer into the bodies of requests; `*` matches any member or index. `path` is the path, with its query, of
    /// requests to declared services.
    pub at: String,
    /// Regular expression: its first group, or the whole match, is the value. Default: the whole text.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}
