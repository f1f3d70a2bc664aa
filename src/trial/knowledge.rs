//! Knowledge bases of a scenario, prepared once for all its trials, with the services that they and the managed
//! retrieval flows call.

use super::SetupError;
use super::opened::Sources;
use super::services::{self, Keys, LiveAccess, Variables};
use super::tariff::tariff;
use crate::knowledge::{self, DEFAULT_KB, Declared, KnowledgeSource, KnowledgeSources};
use crate::plan::PlannedScenario;
use crate::platform::clock::{BoxFuture, RealClock};
use crate::platform::secrets;
use crate::provider::wire::nuclia_ask;
use crate::provider::{Access, RetryPolicy};
use crate::scenario::{Loaded, Project};
use crate::settings::{Auth, KnowledgeBaseSettings, ManagedRetrievalSettings, Provider, ServerAddress};
use crate::transport::{
    Budget, HttpRequest, HttpResponse, LiveTransport, Pace, Service, Target, Transport, TransportError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Placeholder dialect of a knowledge server, which has its own client and no chat dialect.
const OPENAI_CHAT: &str = "openai-chat";

/// Time limit of one request outside a trial.
const REQUEST: Duration = Duration::from_mins(5);

/// Knowledge bases of a scenario, each prepared on first use; every trial opens them separately.
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
            let declared = Declared { place, knowledge: &folder, cache: Some(&cache), settings };
            let source = knowledge::prepare(declared).map_err(|error| unusable(error.to_string()))?;
            prepared.insert(place.clone(), Arc::clone(&source));
            source
        };
        // A scenario's only base is found under its own name too.
        let name = if scenario.knowledge.len() == 1 && id == DEFAULT_KB { place } else { id };
        sources.push((name.clone(), source));
    }
    Ok(KnowledgeSources::new(sources))
}

/// Services that knowledge bases call: by kind, the name and the declaration.
#[derive(Debug, Clone, Default)]
pub(super) struct RetrievalServices {
    services: BTreeMap<Service, (String, Provider)>,
    /// Embedding models, as `provider/model`.
    embeddings: BTreeSet<String>,
    /// The managed retrieval service and its name in the project.
    managed: Option<(String, ManagedRetrievalSettings)>,
}

impl RetrievalServices {
    /// Services of a scenario's bases, plus the managed retrieval service of that name.
    pub(super) fn of(project: &Project, scenario: &PlannedScenario, managed: Option<&str>) -> Result<Self, SetupError> {
        let mut retrieval = Self::default();
        for settings in scenario.knowledge.values().filter_map(|place| project.knowledge_bases.get(place)) {
            retrieval.add(project, settings)?;
        }
        retrieval.managed = managed.map(|name| declared_retrieval(project, name)).transpose()?;
        Ok(retrieval)
    }

    fn add(&mut self, project: &Project, settings: &KnowledgeBaseSettings) -> Result<(), SetupError> {
        if let Some(embeddings) = &settings.embeddings {
            let name = &embeddings.provider;
            let provider = project.providers.get(name).ok_or_else(|| services::unknown(name))?;
            self.put(Service::Embeddings, name.clone(), provider.clone())?;
            self.embeddings.insert(embeddings.price_name());
        }
        if let Some(address) = &settings.server {
            self.put(Service::Knowledge, address.scheme.clone(), server(address, settings.key.clone()))?;
        }
        Ok(())
    }

    /// All bases of a scenario share one server and one embedding provider.
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

    /// Names under which the embedding models are priced.
    pub(super) fn embeddings(&self) -> &BTreeSet<String> {
        &self.embeddings
    }

    pub(super) fn services(&self) -> impl Iterator<Item = Service> + '_ {
        let managed = self.managed.iter().map(|_| Service::ManagedRetrieval);
        self.services.keys().copied().chain(managed)
    }

    /// Service names by service, as recordings store them.
    pub(super) fn names(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let services = self.services.iter().map(|(service, (name, _))| (*service, name));
        let managed = self.managed.iter().map(|(name, _)| (Service::ManagedRetrieval, name));
        services.chain(managed).map(|(service, name)| (service.as_str().to_owned(), name.clone()))
    }

    /// The managed retrieval service as declared in the project.
    pub(super) fn managed(&self) -> Option<&ManagedRetrievalSettings> {
        self.managed.as_ref().map(|(_, settings)| settings)
    }

    /// Base URL of one of these services, as declared in the project.
    pub(super) fn base_url(&self, service: Service) -> Option<&str> {
        if service == Service::ManagedRetrieval {
            return Some(&self.managed()?.base_url);
        }
        Some(&self.services.get(&service)?.1.base_url)
    }

    /// Keys that are not set or may not be sent to their address.
    pub(super) fn key_problems(&self, variables: &Variables) -> Vec<SetupError> {
        let problem =
            |(name, provider): &(String, Provider)| services::key(name, provider, variables, Keys::Ours).err();
        let managed = self.managed.iter().flat_map(|(name, settings)| {
            [&settings.token, &settings.api_key].map(|named| {
                (
                    name.clone(),
                    Provider { key: Some(named.clone()), ..Provider::at(&settings.base_url, nuclia_ask::NAME) },
                )
            })
        });
        self.services.values().cloned().chain(managed).filter_map(|one| problem(&one)).collect()
    }

    /// Addresses and keys of these services.
    pub(super) fn targets(
        &self,
        variables: &Variables,
        timeout: Duration,
    ) -> Result<BTreeMap<Service, Target>, SetupError> {
        let target = |(service, (name, provider)): (&Service, &(String, Provider))| {
            let key = services::key(name, provider, variables, Keys::Ours)?;
            Ok((*service, services::target(provider, services::dialect(name, provider)?, key, timeout)))
        };
        let targets = self.services.iter().map(target);
        let mut targets = targets.collect::<Result<BTreeMap<Service, Target>, SetupError>>()?;
        if let Some((name, settings)) = &self.managed {
            targets.insert(Service::ManagedRetrieval, retrieval(name, settings, variables, timeout)?);
        }
        Ok(targets)
    }

    /// Rate limits of those services that are providers of the project.
    pub(super) fn paces<'p>(
        &'p self,
        paces: &'p BTreeMap<String, Arc<Pace>>,
    ) -> impl Iterator<Item = (Service, Arc<Pace>)> + 'p {
        self.services.iter().filter_map(|(service, (name, _))| Some((*service, Arc::clone(paces.get(name)?))))
    }
}

/// A knowledge server as a provider: address and key.
fn server(address: &ServerAddress, key: Option<String>) -> Provider {
    let plain = Provider::at(address.base_url.clone(), OPENAI_CHAT);
    Provider { key, auth: Some(knowledge::server_auth(&address.scheme)), ..plain }
}

/// The project's declaration of the managed retrieval service of that name.
fn declared_retrieval(project: &Project, name: &str) -> Result<(String, ManagedRetrievalSettings), SetupError> {
    let declared = project.managed_retrieval.get(name).ok_or_else(|| services::unknown(name))?;
    Ok((name.to_owned(), declared.clone()))
}

/// Address of a managed retrieval service. The account id must be set too, and is not sent.
fn retrieval(
    name: &str,
    settings: &ManagedRetrievalSettings,
    variables: &Variables,
    timeout: Duration,
) -> Result<Target, SetupError> {
    let key = |named: &str| {
        let provider = Provider { key: Some(named.to_owned()), ..Provider::at(&settings.base_url, nuclia_ask::NAME) };
        services::key(name, &provider, variables, Keys::Ours)
    };
    let (token, account) = (key(&settings.token)?, key(&settings.api_key)?);
    let known = [(&settings.token, &token), (&settings.api_key, &account)];
    secrets::declare(known.into_iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))));
    Ok(Target {
        base_url: settings.base_url.clone(),
        key: token,
        auth: Auth::XNucliaServiceaccount,
        headers: if settings.stream { &[] } else { &[nuclia_ask::SYNCHRONOUS] },
        timeout,
        trial_header: settings.trial_header,
    })
}

/// Access to the services of a base outside any trial, for indexing, pushing and searching by hand.
///
/// # Errors
/// [`SetupError`] if a provider is unknown, a key is missing or not allowed for that host, or an address is invalid.
pub(crate) fn knowledge_access(
    project: &Project,
    settings: &KnowledgeBaseSettings,
    variables: &Variables,
) -> Result<Access, SetupError> {
    let mut retrieval = RetrievalServices::default();
    retrieval.add(project, settings)?;
    let live = LiveTransport::new(retrieval.targets(variables, REQUEST)?, Arc::new(RealClock::start()))?;
    let paces = services::paces(project, 1);
    let paces = retrieval.paces(&paces).collect();
    let LiveAccess { clock, transport } =
        LiveAccess::new(&live, (0, None), paces, &Arc::new(Budget::default()), tariff(None));
    Ok(Access { transport, clock, policy: RetryPolicy::default() })
}

/// Access for a base that calls no service: every request fails.
pub(crate) fn without_services(policy: RetryPolicy) -> Access {
    struct Nowhere;
    impl Transport for Nowhere {
        fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            let message = format!("no address is configured for the {} service", request.service.as_str());
            Box::pin(std::future::ready(Err(TransportError::Invalid { message })))
        }
    }
    Access { transport: Arc::new(Nowhere), clock: Arc::new(RealClock::start()), policy }
}
