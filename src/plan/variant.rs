//! Variants of a scenario, resolved.

use crate::settings::{Enforcement, Limits, ManagedRetrievalSettings, ModelSettings, OptionalService, SearchSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One variant of a scenario, resolved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlannedVariant {
    /// Its name.
    pub name: String,
    /// What it changes.
    pub about: String,
    /// The agent.
    pub flow: String,
    /// Its resolved settings; `None` for imported conversations and in plans of the oldest builds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<VariantSettings>,
}

impl PlannedVariant {
    /// A variant without further settings.
    pub fn named(name: impl Into<String>, about: impl Into<String>, flow: impl Into<String>) -> Self {
        Self { name: name.into(), about: about.into(), flow: flow.into(), settings: None }
    }
}

/// Resolved settings of one variant: input of a trial, and the basis for comparing runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSettings {
    /// The chat model.
    pub model: ModelSettings,
    /// The external search service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchSettings>,
    /// Services that the agent can work without.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub optional: BTreeSet<OptionalService>,
    /// The managed retrieval service, for flows that use one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_retrieval: Option<NamedRetrieval>,
    /// Limits on every turn; defaults for plans up to version 3, which do not record them.
    pub limits: Limits,
    /// How mandatory steps are enforced.
    pub enforcement: Enforcement,
    /// Replaced prompt texts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, String>,
    /// What its prompts ask for, as declared; `None` if nothing is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_for: Option<Vec<String>>,
}

/// A managed retrieval service without its address and the variables of its secrets, because plans are published with
/// reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedRetrieval {
    /// Its name in the project file.
    pub name: String,
    /// Its declared settings.
    pub settings: ManagedRetrievalSettings,
}

impl NamedRetrieval {
    /// The service of that name.
    pub fn new(name: &str, declared: &ManagedRetrievalSettings) -> Self {
        let [base_url, token, api_key] = [const { String::new() }; 3];
        let settings = ManagedRetrievalSettings { base_url, token, api_key, ..declared.clone() };
        Self { name: name.to_owned(), settings }
    }

    /// Its key in the price list: `NAME/ask`.
    pub fn price_name(&self) -> String {
        format!("{}/ask", self.name)
    }
}
