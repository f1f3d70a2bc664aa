//! A scenario file as written.

use super::KnowledgeNames;
use super::case_table::CaseTable;
use super::criteria::{Criteria, Gate};
use super::expect::Expectation;
use super::external::{
    AgentProbe, AgentReset, AgentRoles, AgentTarget, DeclaredService, ExternalAgent, MintedValue, USUAL_PROXY,
};
use crate::platform::yaml;
use crate::settings::catalogue::Catalogues;
use crate::settings::{DeclaredFault, Enforcement, Limits, ModelSettings, OptionalService, SearchSettings};
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
    /// A managed retrieval service of the project file, for flows that use one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_retrieval: Option<String>,
    /// The chat model. Required, except for an external agent that declares it in `services`.
    #[serde(default)]
    pub model: ModelSettings,
    /// The external search service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSettings>,
    /// Services that the agent can work without: a trial in which one of them has an outage is evaluated, with a
    /// note. An outage of any other service makes the trial an ERROR.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub optional: BTreeSet<OptionalService>,
    /// Address of an external agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<AgentTarget>,
    /// Roles of an external agent's tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<AgentRoles>,
    /// Values that an external agent generates in every run, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, MintedValue>,
    /// Services of an external agent, by name: `claude: {provider: anthropic}`, `vectors: {http: URL, env:
    /// CHROMA_URL}`. `model` and `search` may stand here instead of in `model:` and `search:`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, DeclaredService>,
    /// Endpoint called before each trial of an external agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<AgentReset>,
    /// Where to read what an external agent's keyword index holds, after each turn that wrote to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<AgentProbe>,
    /// Address where an external agent reaches the model and the search service, `127.0.0.1:8101` by default: its
    /// base URLs are `http://<proxy>/model/v1` and `http://<proxy>/search`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Host names under which an external agent reaches the proxy, in addition to those of this machine: the service
    /// name of a container that forwards to it, without a port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxy_hosts: Vec<String>,
    /// How a mandatory step is enforced.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Limits on every turn.
    #[serde(default)]
    pub limits: Limits,
    /// Replaced prompt texts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, PromptText>,
    /// Repetitions of each case in each variant.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Settings to compare, by name. Default: one variant named `base`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, Variant>,
    /// The cases.
    pub cases: Vec<Case>,
    /// Gates on this scenario alone, in addition to the criteria. Every scenario has the gate `cases` (each trial
    /// meets its case's expectations), unless it has one on `case_pass_rate` or named `cases`; `gates: []` removes
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Vec<Gate>>,
    /// Flows whose criteria become gates of this scenario, before those of `gates`; a gate with the same id replaces
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates_of: Vec<String>,
    /// Criteria that its cases do not count for, each with the reason; every case must declare its `fault` or `faults`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excluded_from: BTreeMap<String, String>,
    /// Faults that strike every case: see `faults` of a case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<DeclaredFault>,
}

impl Scenario {
    /// Its gates, with those of flows first; `None` if it has neither.
    pub(super) fn all_gates(&self, catalogues: &Catalogues) -> Option<Vec<Gate>> {
        let own: Vec<Gate> = self.gates.iter().flatten().cloned().collect();
        let mut gates: Vec<Gate> = Vec::new();
        for flow in self.gates_of.iter().filter_map(|name| catalogues.flow(name)) {
            // A test for every flow ensures that it can be read.
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

    /// Its gates, with the one that every scenario has unless it says otherwise.
    pub(crate) fn applied_gates(&self) -> Vec<Gate> {
        let named = |metric: &str| metric.split('(').next().unwrap_or_default().trim() == "case_pass_rate";
        let about_cases = |gate: &Gate| named(&gate.metric) || gate.id == "cases";
        match &self.gates {
            Some(gates) if gates.is_empty() || gates.iter().any(about_cases) => gates.clone(),
            gates => [Gate::every_case()].into_iter().chain(gates.iter().flatten().cloned()).collect(),
        }
    }

    /// The flow of each variant: the scenario's unless the variant names one.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        let own = self.variants.is_empty().then_some(self.flow.as_str());
        own.into_iter().chain(self.variants.values().map(|variant| self.flow_of(variant)))
    }

    pub fn flow_of<'a>(&'a self, variant: &'a Variant) -> &'a str {
        variant.flow.as_deref().unwrap_or(&self.flow)
    }

    /// Settles the services `model` and `search`, if they are declared in `services`.
    pub(super) fn settle_services(&mut self) {
        let declared = |name: &str| {
            let service = self.services.get(name)?;
            Some((service.provider.clone()?, service.name.clone().unwrap_or_default()))
        };
        let (model, search) = (declared("model"), declared("search"));
        if let Some((provider, name)) = model {
            self.model = ModelSettings { provider, name, ..ModelSettings::default() };
        }
        if let Some((provider, name)) = search {
            self.search = Some(SearchSettings { provider, name });
        }
    }

    /// The external agent; `None` when `target` is missing.
    pub fn agent(&self) -> Option<ExternalAgent> {
        Some(self.agent_at(self.target.clone()?))
    }

    /// The external agent, at that target.
    pub(crate) fn agent_at(&self, target: AgentTarget) -> ExternalAgent {
        ExternalAgent {
            target,
            roles: self.roles.clone().unwrap_or_default(),
            vars: self.vars.clone(),
            services: self.services.clone(),
            reset: self.reset.clone(),
            probe: self.probe.clone(),
            proxy: self.proxy.clone().unwrap_or_else(|| USUAL_PROXY.to_owned()),
            proxy_hosts: self.proxy_hosts.clone(),
        }
    }
}

fn one() -> u32 {
    1
}

/// A replaced prompt text: exactly one of `file` and `text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptText {
    /// A file, relative to the scenario.
    File(String),
    /// The text itself.
    Text(String),
}

/// Settings changed by one variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Variant {
    /// Purpose of the variant, in a sentence.
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
    /// Rules that its prompts ask for, by names of your own: `[rewrite-queries, use-response-tool]`. A simulated model
    /// behaves by this list, and never by the wording of a prompt; prompts are compared with a simulator only where both
    /// sides declare it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks_for: Option<Vec<String>>,
}

/// One case: exactly one of `ask`, `turns` and `sequence`. With a `table`, one case for each of its rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The case's name, unique in its scenario.
    pub case: String,
    /// A table (`.csv`, `.tsv` or `.jsonl`) relative to the scenario. Each row makes one case from this template, in
    /// which `"{{ column }}"` is replaced by the row's cell. An empty cell removes a value that consists of it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<CaseTable>,
    /// Purpose of the case, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Requirements that it exercises, in addition to the scenario's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<String>,
    /// Labels for selection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The user's tenant, by the name of one of the knowledge bases, for flows with tenants; a conversation of a
    /// sequence may name another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Facts about the user available to the flow's tools outside the conversation, `{user: {country: Norway}}` for
    /// example; a conversation of a sequence may override it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_context: Map<String, Value>,
    /// The user's only message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The user's messages, turn by turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// Conversations that share one keyword index, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequence: Vec<SequenceStep>,
    /// Expectation on the whole case: on its only turn (`ask`), or over all turns and conversations. With several turns, what
    /// no answer may do (`not_contains`, `grounded`, `unsupported_facts`, `refusal: false`) and `within` hold for each; the rest
    /// of `answer`, `sources`, `reply`, `context` and `error` for the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// Whether the case's context probes also run without history, where they must fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// Repetitions of this case, instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Name of a deliberate fault in this case: lower-case letters, digits and hyphens. Only a simulator receives it,
    /// and follows its behaviour file. Only such a case may be excluded from criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Faults that ragcheck itself produces, in replay, live and while recording; they are in no recording. Such a case may
    /// be excluded from criteria. If one never lands, the case is NOT_MEASURED.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<DeclaredFault>,
    /// State of the keyword index in this case. Default: a separate index in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword_index: Option<KeywordIndexState>,
    /// Whether an external agent answers this case without calling its model or the search service. A trial without a
    /// request is otherwise an ERROR; with this setting, a trial with a request fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_nothing: bool,
    /// Criteria that the case does not count for, each with the reason; the case must declare its `fault` or `faults`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excluded_from: BTreeMap<String, String>,
}

/// State of the keyword index in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeywordIndexState {
    /// The index is a file that is closed and reopened before each step of the sequence, as between runs of a served
    /// agent: entries must persist.
    Reopened,
    /// The index cannot be written: indexing fails, as on a full disk.
    Unwritable,
}

/// One message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The user's message.
    pub ask: String,
    /// Expectation on this turn.
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
    /// The user's tenant, instead of the case's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Facts about the user available to the flow's tools, instead of the case's.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub tool_context: Map<String, Value>,
    /// The user's messages, turn by turn.
    pub turns: Vec<Turn>,
    /// Labels its questions as related to what an earlier conversation learned: counted by `learned_retrieval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Related>,
}

/// A label, given before any run, that makes a conversation count for SC-006.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// The earlier conversation.
    pub to: String,
    /// The kind of relation.
    #[serde(default)]
    pub kind: RelatedKind,
    /// Sources that answer it: `learned` for the entries learned in `to`, and every chunk or document of the
    /// knowledge base that answers it too. Required, except for unrelated questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relevant: Vec<String>,
}

impl Related {
    /// The word for entries learned in the earlier conversation.
    pub const LEARNED: &'static str = "learned";
}

/// Relation of a later question to an earlier one.
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
    /// Not related: a control that must not be rescued.
    Unrelated,
}
