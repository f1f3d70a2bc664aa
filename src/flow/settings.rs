//! What a scenario's variant sets, resolved: texts instead of files, durations instead of words.

use super::Prompts;
use std::sync::Arc;
use std::time::Duration;

/// Settings of one trial.
#[derive(Debug, Clone)]
pub struct Settings {
    /// All prompt texts, shared by the trials of a variant.
    pub prompts: Arc<Prompts>,
    /// How a mandatory step is enforced.
    pub enforcement: Enforcement,
    /// The chat model.
    pub model: ModelSettings,
    /// The external search service; without it its tools are not offered.
    pub search: Option<SearchSettings>,
    /// Bounds on every turn.
    pub limits: Limits,
    /// Sampling seed for the model.
    pub seed: Option<u32>,
    /// Whether earlier turns are kept from the model: the control arm.
    pub withhold_history: bool,
}

/// How a mandatory step is enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// A missing call is fed back and retried once.
    #[default]
    Feedback,
    /// The request names the tool, and feedback is the net below.
    Forced,
}

/// The chat model and its parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// The model's name as the provider knows it.
    pub name: String,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Bound on output tokens of one completion.
    pub max_tokens: Option<u32>,
    /// Whether the model may make several calls in one message.
    pub parallel_calls: Option<bool>,
}

/// The external search service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// The service's model.
    pub name: String,
}

/// Bounds on a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Completions of the model in one turn.
    pub model_calls: u32,
    /// Retries of one failing or rejected tool in one turn.
    pub tool_retries: u32,
    /// Time for one turn.
    pub turn: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { model_calls: 12, tool_retries: 2, turn: Duration::from_mins(2) }
    }
}
