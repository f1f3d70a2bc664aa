//! The knowledge bases of a scenario, prepared once for all its trials, and the services that they ask.

use super::cost::tariff;
use super::services::{self, Keys, LiveAccess, Variables};
use super::{SetupError, Sources};
use crate::clock::{BoxFuture, RealClock};
use crate::knowledge::{self, DEFAULT_KB, Declared, KnowledgeSource, KnowledgeSources};
use crate::plan::PlannedScenario;
use crate::provider::{Access, RetryPolicy};
use crate::scenario::{Loaded, Project};
use crate::settings::{KnowledgeBaseSettings, Provider, ServerAddress};
use crate::transport::{
    Budget, HttpRequest, HttpResponse, LiveTransport, Pace, Service, Target, Transport, TransportError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The kind of knowledge base that a folder of the project is.
const EMBEDDED: &str = "embedded";

/// What a server of collections is declared to speak, which says nothing: it has a client of its own.
const OPENAI_CHAT: &str = "openai-chat";

/// Time for one request outside a trial.
const REQUEST: Duration = Duration::from_mins(5);

/// The knowledge bases of a scenario, each prepared when it is first needed; a trial opens them for itself.
pub(super) fn sources(
    loaded: &Loaded,
    scenario: &PlannedScenario,
    prepared: &mut Sources,
) -> Result<KnowledgeSources, SetupError> {
    let (folder, cache) = (loaded.root.join(&loaded.project.knowledge), loaded.root.join(".ragcheck"));
    let mut sources = Vec::new();
    for (id, place) in &scenario.knowledge {
        let unusable =
            |reason: String| SetupError::Knowledge { file: scenario.file.clone(), folder: place.clone(), reason };
        let source: Arc<dyn KnowledgeSource> = if let Some(source) = prepared.get(place) {
            Arc::clone(source)
        } else {
            let settings = loaded.project.knowledge_bases.get(place);
            let kind = settings.and_then(|base| base.server.as_ref()).map_or(EMBEDDED, |server| server.kind.name());
            let declared = Declared { place, knowledge: &folder, cache: Some(&cache), settings };
            let backend = knowledge::backend(kind).ok_or_else(|| unusable(format!("no backend {kind}")))?;
            let source = backend.prepare(declared).map_err(|error| unusable(error.to_string()))?;
            prepared.insert(place.clone(), Arc::clone(&source));
            source
        };
        // The only base answers to its own name too.
        let name = if scenario.knowledge.len() == 1 && id == DEFAULT_KB { place } else { id };
        sources.push((name.clone(), source));
    }
    Ok(KnowledgeSources::new(sources))
}

/// The services that knowledge bases ask: by kind, the name and what is declared of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    services: BTreeMap<Service, (String, Provider)>,
    /// `provider/model` of what makes vectors.
    embeddings: BTreeSet<String>,
}

impl Asked {
    /// Those of a scenario's bases.
    pub(super) fn of(project: &Project, scenario: &PlannedScenario) -> Result<Self, SetupError> {
        let mut asked = Self::default();
        for settings in scenario.knowledge.values().filter_map(|place| project.knowledge_bases.get(place)) {
            asked.add(project, settings)?;
        }
        Ok(asked)
    }

    fn add(&mut self, project: &Project, settings: &KnowledgeBaseSettings) -> Result<(), SetupError> {
        if let Some(embeddings) = &settings.embeddings {
            let name = &embeddings.provider;
            let provider = project.providers.get(name).ok_or_else(|| services::unknown(name))?;
            self.put(Service::Embeddings, name.clone(), provider.clone())?;
            self.embeddings.insert(embeddings.price_name());
        }
        if let Some(address) = &settings.server {
            self.put(Service::Knowledge, address.kind.name().to_owned(), server(address, settings.key.clone()))?;
        }
        Ok(())
    }

    /// A scenario's bases share one server and one provider of embeddings.
    fn put(&mut self, service: Service, name: String, provider: Provider) -> Result<(), SetupError> {
        match self.services.get(&service) {
            Some((_, known)) if known.base_url != provider.base_url => {
                let (one, other) = (&known.base_url, &provider.base_url);
                let reason =
                    format!("the bases of one scenario ask one {} service, not {one} and {other}", service.as_str());
                Err(SetupError::Provider { provider: name, reason })
            }
            _ => {
                self.services.insert(service, (name, provider));
                Ok(())
            }
        }
    }

    /// The names under which the models that make vectors have their prices.
    pub(super) fn embeddings(&self) -> &BTreeSet<String> {
        &self.embeddings
    }

    /// Their names, by service, as recordings tell them.
    pub(super) fn names(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.services.iter().map(|(service, (name, _))| (service.as_str().to_owned(), name.clone()))
    }

    /// Where they are, with their keys.
    pub(super) fn targets(
        &self,
        variables: &Variables,
        timeout: Duration,
    ) -> Result<BTreeMap<Service, Target>, SetupError> {
        let target = |(service, (name, provider)): (&Service, &(String, Provider))| {
            let key = services::key(name, provider, variables, Keys::Ours)?;
            Ok((*service, services::target(provider, services::dialect(name, provider)?, key, timeout)))
        };
        self.services.iter().map(target).collect()
    }

    /// How fast they may be asked, where they are providers of the project.
    pub(super) fn paces<'p>(
        &'p self,
        paces: &'p BTreeMap<String, Arc<Pace>>,
    ) -> impl Iterator<Item = (Service, Arc<Pace>)> + 'p {
        self.services.iter().filter_map(|(service, (name, _))| Some((*service, Arc::clone(paces.get(name)?))))
    }
}

/// A server of collections as a provider: where it is, and its key.
fn server(address: &ServerAddress, key: Option<String>) -> Provider {
    use crate::settings::{Auth, ServerKind};
    let plain = Provider::at(address.base_url.clone(), OPENAI_CHAT);
    let auth = match address.kind {
        ServerKind::Chroma => Auth::Bearer,
        ServerKind::Qdrant => Auth::ApiKey,
    };
    Provider { key, auth: Some(auth), ..plain }
}

/// The way to what a base asks, outside any trial: for whoever indexes, pushes or searches by hand.
///
/// # Errors
/// [`SetupError`] when a provider is unknown, a key is missing or not trusted with that host, or an address is none.
pub fn knowledge_access(
    project: &Project,
    settings: &KnowledgeBaseSettings,
    variables: &Variables,
) -> Result<Access, SetupError> {
    let mut asked = Asked::default();
    asked.add(project, settings)?;
    let live = LiveTransport::new(asked.targets(variables, REQUEST)?, Arc::new(RealClock::start()))?;
    let paces = services::paces(project);
    let paces = asked.paces(&paces).collect();
    let LiveAccess { clock, transport } =
        LiveAccess::new(&live, (0, None), paces, &Arc::new(Budget::default()), tariff(None));
    Ok(Access { transport, clock, policy: RetryPolicy::default() })
}

/// The way of a base that asks nothing: whatever is sent fails.
pub fn without_services(policy: RetryPolicy) -> Access {
    struct Nowhere;
    impl Transport for Nowhere {
        fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            let message = format!("no address is configured for the {} service", request.service.as_str());
            Box::pin(std::future::ready(Err(TransportError::Invalid { message })))
        }
    }
    Access { transport: Arc::new(Nowhere), clock: Arc::new(RealClock::start()), policy }
}
