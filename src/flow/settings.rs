//! Settings of a scenario's variant, resolved: texts instead of files, durations instead of strings.

use super::Prompts;
use crate::settings::{Enforcement, Limits, ManagedRetrievalSettings, ModelSettings, SearchSettings};
use std::sync::Arc;

/// Settings of one trial.
#[derive(Debug, Clone)]
pub struct Settings {
    /// All prompt texts, shared by the trials of a variant.
    pub prompts: Arc<Prompts>,
    /// How a mandatory step is enforced.
    pub enforcement: Enforcement,
    /// The chat model.
    pub model: ModelSettings,
    /// The external search service; without it, its tools are not offered.
    pub search: Option<SearchSettings>,
    /// The declared managed retrieval service, without its address.
    pub managed_retrieval: Option<ManagedRetrievalSettings>,
    /// Limits of every turn.
    pub limits: Limits,
    /// Sampling seed for the model.
    pub seed: Option<u32>,
    /// Whether earlier turns are hidden from the model: the control arm.
    pub withhold_history: bool,
}

/// Services of a trial in addition to its model; they decide which tools a flow offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Services {
    /// An external search service.
    pub search: bool,
}
