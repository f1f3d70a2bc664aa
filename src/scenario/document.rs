//! A scenario file as written.

use super::KnowledgeNames;
use super::case_table::CaseTable;
use super::criteria::{Criteria, Gate};
use super::expect::Expectation;
use super::external::{AgentReset, AgentRoles, AgentTarget, ExternalAgent, MintedValue, USUAL_PROXY};
use crate::platform::yaml;
use crate::settings::catalogue::Catalogues;
use crate::settings::{Enforcement, Limits, ModelSettings, OptionalService, SearchSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// One scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The scenario's name: the file's name without `.yaml`.
    pub scenario: String,
    /// What it is about, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Requirements that all its cases exercise, `FR-003` for example.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// The agent: `tool-rag`, or `external` for one that runs elsewhere; a variant may name another.
    pub flow: String,
    /// Folder of Markdown documents, below the project's knowledge folder; or several, by the `kb_id` that the model
    /// names. An external agent has its own knowledge.
    #[serde(default, skip_serializing_if = "KnowledgeNames::is_empty")]
    pub knowledge: KnowledgeNames,
    /// A managed retrieval service of the project file, for flows that ask one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_retrieval: Option<String>,
    /// The chat model.
    pub model: ModelSettings,
    /// The external search service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSettings>,
    /// Services that the agent can do without: a trial in which one of them has an outage is judged, with a note. An
    /// outage of any other service is an ERROR of the trial.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub optional: BTreeSet<OptionalService>,
    /// Where an external agent is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<AgentTarget>,
    /// The parts that an external agent's tools play.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<AgentRoles>,
    /// What an external agent mints anew in every run, by a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, MintedValue>,
    /// What is called before each trial of an external agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<AgentReset>,
    /// Where an external agent finds model and search service, `127.0.0.1:8101` unless given: its base URLs are
    /// `http://<proxy>/model/v1` and `http://<proxy>/search`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Host names by which an external agent asks the proxy, beside those of this machine: the service name of a container
    /// that leads to it, without a port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxy_hosts: Vec<String>,
    /// How a mandatory step is enforced.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Bounds on every turn.
    #[serde(default)]
    pub limits: Limits,
    /// Replaced prompt texts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, PromptText>,
    /// How often each case is run in each variant.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Settings under comparison, by name; without any there is one, named `base`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, Variant>,
    /// The cases.
    pub cases: Vec<Case>,
    /// Gates on this scenario alone, beside the criteria. Every scenario has the gate `cases` (each trial meets what its
    /// case expects), unless it writes one on `case_pass_rate` or called `cases`; `gates: []` removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<Gate>>,
    /// Flows whose own criteria are gates of this scenario, before those of `gates`; one that `gates` writes with the same
    /// id stands in its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates_of: Vec<String>,
    /// Criteria that none of its cases counts for, each with the reason; every case must declare its `fault`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excluded_from: BTreeMap<String, String>,
}

impl Scenario {
    /// Its gates, those that it takes over from flows first; `None` where it writes none and takes none over.
    pub(super) fn all_gates(&self, catalogues: &Catalogues) -> Option<Vec<Gate>> {
        let own: Vec<Gate> = self.gates.iter().flatten().cloned().collect();
        let mut gates: Vec<Gate> = Vec::new();
        for flow in self.gates_of.iter().filter_map(|name| catalogues.flow(name)) {
            // That it can be read is tested for every flow.
            let declared: Criteria = yaml::read(flow.criteria).unwrap_or_default();
            for row in declared.criteria {
                if !own.iter().chain(gates.iter()).any(|other| other.id == row.id) {
                    gates.push(row);
                }
            }
        }
        gates.extend(own);
        (self.gates.is_some() || !gates.is_empty()).then_some(gates)
    }

    /// The flows that its variants name: its own, where a variant names none.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        let own = self.variants.is_empty().then_some(self.flow.as_str());
        own.into_iter().chain(self.variants.values().map(|variant| self.flow_of(variant)))
    }

    /// The flow of one of its variants.
    pub fn flow_of<'a>(&'a self, variant: &'a Variant) -> &'a str {
        variant.flow.as_deref().unwrap_or(&self.flow)
    }

    /// The agent that runs elsewhere; `None` when it is not said where.
    pub fn agent(&self) -> Option<ExternalAgent> {
        Some(ExternalAgent {
            target: self.target.clone()?,
            roles: self.roles.clone().unwrap_or_default(),
            vars: self.vars.clone(),
            reset: self.reset.clone(),
            proxy: self.proxy.clone().unwrap_or_else(|| USUAL_PROXY.to_owned()),
            proxy_hosts: self.proxy_hosts.clone(),
        })
    }
}

fn one() -> u32 {
    1
}

/// A replaced prompt text: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptText {
    /// A file, relative to the scenario.
    File(String),
    /// The text itself.
    Text(String),
}

/// What one variant changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Variant {
    /// What it tries, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Another agent for the same cases, `external` for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Another model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelSettings>,
    /// Another temperature for the same model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Another enforcement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// Replaced prompt texts, by name; they win over the scenario's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, PromptText>,
}

/// One case: exactly one of `ask`, `turns` and `sequence`. With a `table`, one case for each of its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The case's name, unique in its scenario.
    pub case: String,
    /// A table (`.csv`, `.tsv` or `.jsonl`) relative to the scenario: each of its rows makes one case of this one, in whose
    /// texts `"{{ column }}"` stands for the row's cell. An empty cell leaves out what it alone would fill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<CaseTable>,
    /// What it shows, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Requirements that it exercises, beside the scenario's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// Labels to select by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The tenant that the user belongs to, by the name of one of the knowledge bases, for flows that have tenants; a
    /// conversation of a sequence may name another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What the flow's tools know of the user beside the conversation, `{user: {country: Norway}}` for example; a
    /// conversation of a sequence may have another.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_context: Map<String, Value>,
    /// The one thing the user says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// What the user says, turn by turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Conversations that share one keyword index, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<SequenceStep>,
    /// What is expected of the case as a whole: of its only turn (`ask`), or over all turns and conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// Whether the case's context probes are also run without history, where they must fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// Repetitions of this case, instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// What goes wrong in this case on purpose, by a name: lower-case letters, digits and hyphens. A simulator is told it
    /// and does what its behaviour file says of it; no other provider is. Only such a case may be left out of criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// What becomes of the keyword index in this case; without it, the case has an index of its own in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword_index: Option<KeywordIndexState>,
    /// Whether an external agent answers this case without asking its model or the search service. A trial without a
    /// request is an ERROR otherwise; one with a request fails here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_nothing: bool,
    /// Criteria that the case does not count for, each with the reason; the case must declare its `fault`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excluded_from: BTreeMap<String, String>,
}

/// What becomes of the keyword index in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeywordIndexState {
    /// It lies in a file that is closed and opened again before each step of the sequence, as by one run of a served agent
    /// after another: what was learned must have outlasted them.
    Reopened,
    /// It cannot be written: what would be indexed fails, as on a disk that is full.
    Unwritable,
}

/// One thing the user says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What the user says.
    pub ask: String,
    /// What is expected of this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
}

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SequenceStep {
    /// One conversation.
    Conversation(Conversation),
    /// Conversations side by side, started at the same moment.
    Together(Vec<Conversation>),
}

/// One conversation of a sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// Its name, unique in the case.
    pub name: String,
    /// The tenant that the user belongs to, instead of the case's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What the flow's tools know of the user, instead of the case's.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_context: Map<String, Value>,
    /// What the user says.
    pub turns: Vec<Turn>,
    /// That its questions relate to what an earlier conversation learned: counted by `learned_retrieval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
}

/// A label, given before any run, that makes a conversation count for SC-006.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// The earlier conversation.
    pub to: String,
    /// How it relates.
    #[serde(default)]
    pub kind: RelatedKind,
    /// What answers it: `learned` for the entries learned in `to`, and every chunk or document of the knowledge base
    /// that answers it too. Required, but of unrelated questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relevant: Vec<String>,
}

impl Related {
    /// The word for the entries learned in the earlier conversation.
    pub const LEARNED: &'static str = "learned";
}

/// How a later question relates to an earlier one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RelatedKind {
    /// The same words.
    Repeat,
    /// The same question in other words.
    Paraphrase,
    /// Another question on the same subject.
    #[default]
    Related,
    /// Not related at all: a control that must not be rescued.
    Unrelated,
}
