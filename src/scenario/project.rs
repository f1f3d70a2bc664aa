//! `ragcheck.yaml`, the project file, as written.

use super::criteria::Estimand;
use crate::platform::bounds::{Amount, Bound};
use crate::settings::price::Price;
use crate::settings::{AgeLimit, KeywordIndexSettings, KnowledgeBaseSettings, ManagedRetrievalSettings, Provider};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The project file. Paths are relative to its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Project {
    /// Scenario files, as globs.
    pub scenarios: Vec<String>,
    /// The criteria file.
    pub criteria: Option<String>,
    /// Folder of cassettes.
    pub cassettes: String,
    /// Folder of knowledge bases.
    pub knowledge: String,
    /// Bases with vectors, by the name that scenarios use.
    pub knowledge_bases: BTreeMap<String, KnowledgeBaseSettings>,
    /// Managed retrieval services, by the name that scenarios use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub managed_retrieval: BTreeMap<String, ManagedRetrievalSettings>,
    /// The keyword index of served and long-lived use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword_index: Option<KeywordIndexSettings>,
    /// Human ratings (CSV with `trial,satisfied`), for SC-004.
    pub ratings: Option<String>,
    /// How far the grades of a model agree with people (`agreement.json` of a graded run with ratings): only the items in
    /// it may decide gates, and only by the rubric and model that it was measured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<String>,
    /// Where reports go.
    pub reports: String,
    /// Providers, by the name that scenarios use.
    pub providers: BTreeMap<String, Provider>,
    /// What a rate is a statement about, where the criteria file does not say.
    pub estimand: Option<Estimand>,
    /// Criteria that may measure nothing, by id.
    pub not_measured_ok: Vec<String>,
    /// When recordings are too old.
    pub recordings: Recordings,
    /// Folders of replays that nobody graded or compared which are kept, newest first; 50 by default.
    pub keep_replays: Option<u32>,
    /// What models and search services cost, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// What the project asks for, by the ids that `covers` names; reports show which cases cover which.
    pub requirements: BTreeMap<String, Requirement>,
    /// A YAML file with more prices, of the same form; what stands here wins.
    pub price_file: Option<String>,
    /// Limits on what may be written that are lower than usual; `--limit NAME=VALUE` on the command line raises one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bounds: BTreeMap<Bound, Amount>,
}

impl Default for Project {
    fn default() -> Self {
        Self {
            scenarios: vec!["scenarios/*.yaml".into()],
            criteria: None,
            cassettes: "fixtures/cassettes".into(),
            knowledge: "fixtures/knowledge".into(),
            knowledge_bases: BTreeMap::new(),
            managed_retrieval: BTreeMap::new(),
            keyword_index: None,
            ratings: None,
            agreement: None,
            reports: "reports".into(),
            providers: BTreeMap::new(),
            estimand: None,
            not_measured_ok: Vec::new(),
            recordings: Recordings::default(),
            keep_replays: None,
            prices: BTreeMap::new(),
            requirements: BTreeMap::new(),
            price_file: None,
            bounds: BTreeMap::new(),
        }
    }
}

/// Folders of replays that are kept where the project does not say.
const KEPT_REPLAYS: u32 = 50;

impl Project {
    /// Folders of replays that nobody graded or compared which are kept.
    pub fn keep_replays(&self) -> usize {
        self.keep_replays.unwrap_or(KEPT_REPLAYS).max(1) as usize
    }
}

/// One requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// What it asks for, in a few words.
    pub text: String,
    /// Where it comes from: a document, a ticket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// What is expected of recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recordings {
    /// Older ones are warned of: `90d`, which is the default, or `12h`; `never` warns of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_after: Option<AgeLimit>,
}

impl Recordings {
    /// The age from which on a recording is warned of; `None` for never.
    pub fn warn_after(&self) -> Option<Duration> {
        self.warn_after.as_ref().map_or(Some(Duration::from_hours(90 * 24)), AgeLimit::age)
    }
}

/// A price file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceFile {
    /// What models and search services cost, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
}
