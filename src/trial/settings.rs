//! From what a scenario and its variant say to the settings of a flow and the ways to its services.

use super::{SetupError, VariantSetup};
use crate::clock::Clock;
use crate::flow::{AgentContext, Flow, Prompts, Services, Settings, Stages};
use crate::knowledge::KeywordIndex;
use crate::plan::PlannedTrial;
use crate::provider::{Access, ChatClient, PerplexityAgent, RetryPolicy, SearchService};
use crate::scenario::{LoadedScenario, Project};
use crate::settings::ModelSettings;
use crate::trace::Arm;
use crate::transport::Transport;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// What a variant needs beside the settings of its flow.
#[derive(Debug, Clone)]
pub(super) struct ServiceSettings {
    /// The chat model's provider.
    pub model: String,
    /// The search service's provider.
    pub search: Option<String>,
    /// Time for one HTTP attempt.
    pub request: Duration,
    /// HTTP attempts of one request, the first one included.
    pub attempts: u32,
    /// Whether each trial sends a sampling seed of its own.
    pub seeded: bool,
    /// Whether answers of the model come in pieces.
    pub stream: bool,
}

/// The settings of `variant` of a scenario; the trial's own (sampling seed, history) are filled in later.
///
/// # Errors
/// [`SetupError::Settings`] when a prompt does not fit.
pub(super) fn resolve(
    flow: &dyn Flow,
    written: &LoadedScenario,
    variant: &str,
) -> Result<(Settings, ServiceSettings), SetupError> {
    let scenario = &written.scenario;
    let wrong = |reason: String| SetupError::Settings { file: written.file.clone(), reason };
    let changed = scenario.variants.get(variant);
    let model = changed.and_then(|change| change.model.as_ref()).unwrap_or(&scenario.model);
    let temperature = changed.and_then(|change| change.temperature).or(model.temperature);
    let enforcement = changed.and_then(|change| change.enforcement).unwrap_or(scenario.enforcement);
    let texts = written.prompts.get(variant).cloned().unwrap_or_default();
    let prompts = Prompts::resolve(flow, &texts, Services { search: scenario.search.is_some() })
        .map_err(|why| wrong(format!("variant `{variant}`: {why}")))?;
    let settings = Settings {
        prompts: Arc::new(prompts),
        enforcement,
        model: ModelSettings { temperature, ..model.clone() },
        search: scenario.search.clone(),
        limits: scenario.limits.clone(),
        seed: None,
        withhold_history: false,
    };
    Ok((settings, services(written, model)))
}

/// The ways to the services of a scenario with that model.
pub(super) fn services(written: &LoadedScenario, model: &ModelSettings) -> ServiceSettings {
    let (scenario, limits) = (&written.scenario, &written.scenario.limits);
    ServiceSettings {
        model: model.provider.clone(),
        search: scenario.search.as_ref().map(|search| search.provider.clone()),
        request: *limits.request,
        attempts: limits.transport_retries + 1,
        seeded: model.seeded,
        stream: model.stream,
    }
}

/// The environment of one trial, whatever its transport and clock; waits between HTTP attempts are drawn from `seed`.
///
/// # Errors
/// [`SetupError::Provider`] when a provider is unknown or speaks the wrong dialect.
pub(super) fn environment(
    project: &Project,
    trial: &PlannedTrial,
    setup: &VariantSetup,
    transport: &Arc<dyn Transport>,
    clock: &Arc<dyn Clock>,
    stages: Arc<dyn Stages>,
    seed: u64,
) -> Result<AgentContext, SetupError> {
    let policy = RetryPolicy { attempts: setup.services.attempts, seed, ..RetryPolicy::default() };
    let provider = |name: &str| {
        let reason = "it is not in the project file".to_owned();
        project.providers.get(name).ok_or_else(|| SetupError::Provider { provider: name.to_owned(), reason })
    };
    let chat = provider(&setup.services.model)?;
    let model = ChatClient::new(chat.dialect, Arc::clone(transport), Arc::clone(clock), policy)
        .with_quirks(chat.quirks.clone())
        .streaming(setup.services.stream);
    let search = match &setup.services.search {
        None => None,
        Some(name) => {
            let dialect = provider(name)?.dialect;
            if !dialect.searches() {
                let reason = format!("its dialect, {}, is not that of a search service", dialect.name());
                return Err(SetupError::Provider { provider: name.clone(), reason });
            }
            let agent = PerplexityAgent::new(Arc::clone(transport), Arc::clone(clock), policy);
            Some(Arc::new(agent) as Arc<dyn SearchService>)
        }
    };
    let settings = Settings {
        seed: setup.services.seeded.then(|| sampling_seed(&trial.id)),
        withhold_history: trial.lane.arm == Arm::Control,
        ..setup.settings.clone()
    };
    let access = Access { transport: Arc::clone(transport), clock: Arc::clone(clock), policy };
    let context = AgentContext::new(
        Arc::new(model),
        search,
        setup.knowledge.open(&access),
        Arc::new(KeywordIndex::in_memory()),
        Arc::clone(clock),
        stages,
        Arc::new(settings),
    );
    Ok(context.with_access(access))
}

/// A sampling seed that depends on the trial's name alone, so that no other seed of a run changes a recording.
fn sampling_seed(trial: &str) -> u32 {
    let digest = Sha256::digest(trial.as_bytes());
    digest.iter().take(4).fold(0, |seed, byte| seed << 8 | u32::from(*byte)) & 0x7fff_ffff
}
