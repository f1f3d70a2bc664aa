//! Resolves a variant's declaration into flow settings and into the environment of one trial.

use super::SetupError;
use super::opened::{FlowSetup, Opened};
use super::services::{dialect, unknown};
use crate::flow::{AgentContext, Flow, PromptError, Prompts, Services, Settings, Stages};
use crate::knowledge::KeywordIndex;
use crate::plan::{PlannedTrial, VariantSettings};
use crate::platform::clock::Clock;
use crate::platform::secrets;
use crate::provider::{Access, ChatClient, ManagedRetrieval, PerplexityAgent, Refusals, RetryPolicy, SearchService};
use crate::trace::Arm;
use crate::transport::Transport;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Settings of a variant's flow; settings per trial (sampling seed, history) are filled in later.
///
/// # Errors
/// [`PromptError`] if a prompt is invalid.
pub(super) fn resolve(flow: &dyn Flow, declared: &VariantSettings) -> Result<Settings, PromptError> {
    let services = Services { search: declared.search.is_some() };
    let prompts = Prompts::resolve(flow, &declared.prompts, services)?;
    Ok(Settings {
        prompts: Arc::new(prompts),
        enforcement: declared.enforcement,
        model: declared.model.clone(),
        search: declared.search.clone(),
        managed_retrieval: declared.managed_retrieval.as_ref().map(|named| named.settings.clone()),
        limits: declared.limits.clone(),
        seed: None,
        withhold_history: false,
    })
}

/// Environment of one trial, for any transport and clock; `seed` determines delays between HTTP attempts.
///
/// # Errors
/// [`SetupError::Provider`] if a provider is unknown or speaks the wrong dialect.
pub(super) fn environment(
    (opened, planned, setup): (&Opened, &PlannedTrial, &FlowSetup),
    transport: &Arc<dyn Transport>,
    clock: &Arc<dyn Clock>,
    stages: Arc<dyn Stages>,
    seed: u64,
) -> Result<AgentContext, SetupError> {
    let refusals = Arc::new(Refusals::new(Arc::clone(transport), Arc::clone(clock)));
    let policy = RetryPolicy { attempts: setup.declared.limits.transport_retries + 1, seed, ..RetryPolicy::default() };
    let access = Access { transport: Arc::clone(&refusals) as Arc<dyn Transport>, clock: Arc::clone(clock), policy };
    let provider = |name: &str| opened.loaded.project.providers.get(name).ok_or_else(|| unknown(name));
    let chat = provider(&setup.declared.model.provider)?;
    let model = ChatClient::new(dialect(&setup.declared.model.provider, chat)?, access.clone())
        .with_quirks(chat.quirks.clone())
        .streaming(setup.declared.model.stream);
    let search = match &setup.declared.search {
        None => None,
        Some(search) => {
            let name = &search.provider;
            let dialect = dialect(name, provider(name)?)?;
            if !dialect.searches {
                let reason = format!("its dialect, {}, is not that of a search service", dialect.name());
                return Err(SetupError::Provider { provider: name.clone(), reason });
            }
            Some(Arc::new(PerplexityAgent::new(access.clone())) as Arc<dyn SearchService>)
        }
    };
    let settings = Settings {
        seed: setup.declared.model.seeded.then(|| sampling_seed(&planned.id)),
        withhold_history: planned.lane.arm == Arm::Control,
        ..setup.settings.clone()
    };
    let mut context = AgentContext::new(
        Arc::new(model),
        search,
        setup.knowledge.open(&access),
        Arc::new(KeywordIndex::in_memory()),
        Arc::clone(clock),
        stages,
        Arc::new(settings),
    );
    let managed = setup.retrieval.managed();
    context.managed_retrieval = managed.map(|declared| ManagedRetrieval::new(&access, declared, secrets::declared()));
    context.refusals = Some(refusals);
    Ok(context)
}

/// Sampling seed derived from the trial's name alone, so that no other seed of a run changes a recording.
fn sampling_seed(trial: &str) -> u32 {
    let digest = Sha256::digest(trial.as_bytes());
    digest.iter().take(4).fold(0, |seed, byte| seed << 8 | u32::from(*byte)) & 0x7fff_ffff
}
