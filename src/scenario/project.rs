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
    /// Bases with vectors, by the name used in scenarios.
    pub knowledge_bases: BTreeMap<String, KnowledgeBaseSettings>,
    /// Managed retrieval services, by the name used in scenarios.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub managed_retrieval: BTreeMap<String, ManagedRetrievalSettings>,
    /// The keyword index for serving and other long-lived use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword_index: Option<KeywordIndexSettings>,
    /// Human ratings (CSV with `trial,satisfied`), for SC-004.
    pub ratings: Option<String>,
    /// Measured agreement of a model's grades with people (`agreement.json` of a graded run with ratings). Only its
    /// items may decide gates, and only with the rubric and model that it was measured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<String>,
    /// Folder of reports.
    pub reports: String,
    /// Providers, by the name used in scenarios.
    pub providers: BTreeMap<String, Provider>,
    /// Population that a rate describes, unless the criteria file says.
    pub estimand: Option<Estimand>,
    /// Criteria that may measure nothing, by id.
    pub not_measured_ok: Vec<String>,
    /// Age limit of recordings.
    pub recordings: Recordings,
    /// Number of replay folders to keep, newest first, not counting those that were graded or compared; 50 by
    /// default.
    pub keep_replays: Option<u32>,
    /// Prices of models and search services, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
    /// Requirements of the project, by the ids that `covers` names; reports show which cases cover which.
    pub requirements: BTreeMap<String, Requirement>,
    /// A YAML file with more prices, in the same form; prices here win.
    pub price_file: Option<String>,
    /// Limits below the defaults; `--limit NAME=VALUE` on the command line raises one.
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

/// Default number of replay folders to keep.
const KEPT_REPLAYS: u32 = 50;

impl Project {
    /// Number of replay folders to keep, not counting those that were graded or compared.
    pub fn keep_replays(&self) -> usize {
        self.keep_replays.unwrap_or(KEPT_REPLAYS).max(1) as usize
    }
}

/// One requirement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The requirement in a few words.
    pub text: String,
    /// Its source: a document, a ticket.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Defects of `ragcheck mutate` that take its evidence away: it is asserted where its cases notice each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Tests that show it outside of runs, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
}

/// Settings for recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Recordings {
    /// Age from which a recording causes a warning: `90d` (the default) or `12h`; `never` turns warnings off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_after: Option<AgeLimit>,
}

impl Recordings {
    /// The age from which a recording causes a warning; `None` for never.
    pub fn warn_after(&self) -> Option<Duration> {
        self.warn_after.as_ref().map_or(Some(Duration::from_hours(90 * 24)), AgeLimit::age)
    }
}

/// A price file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceFile {
    /// Prices of models and search services, by `provider/model`.
    pub prices: BTreeMap<String, Price>,
}
