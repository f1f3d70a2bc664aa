//! Calls one chat model of the project outside any trial.

use super::SetupError;
use super::services::{self, Keys, LiveAccess, Variables};
use super::tariff::tariff;
use crate::cassette::Redactor;
use crate::platform::clock::{Clock, RealClock};
use crate::provider::wire::Dialect;
use crate::provider::{Access, ChatClient, RetryPolicy};
use crate::scenario::Project;
use crate::settings::Provider;
use crate::settings::price::Price;
use crate::transport::{Budget, LiveTransport, Pace, Service, Transport};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Time limit of one request.
const REQUEST: Duration = Duration::from_mins(1);

/// Access to one provider's models.
pub(crate) struct ModelAccess {
    name: String,
    provider: Provider,
    dialect: &'static Dialect,
    variables: Variables,
    redactor: Arc<Redactor>,
    pace: Option<Arc<Pace>>,
    budget: Arc<Budget>,
    price: Option<Price>,
    live: OnceLock<Result<LiveTransport, SetupError>>,
}

impl ModelAccess {
    /// Access to the provider `name` of `project`; keys are looked up when a request is sent.
    ///
    /// # Errors
    /// [`SetupError::Provider`] if the project has no such provider, or this build does not speak its dialect.
    pub(crate) fn new(project: &Project, name: &str, variables: Variables, budget: Budget) -> Result<Self, SetupError> {
        let provider = project.providers.get(name).cloned().ok_or_else(|| services::unknown(name))?;
        Ok(Self {
            name: name.to_owned(),
            dialect: services::dialect(name, &provider)?,
            redactor: Arc::new(services::redactor(project, &variables)),
            pace: services::paces(project, 1).get(name).cloned(),
            budget: Arc::new(budget),
            price: None,
            live: OnceLock::new(),
            provider,
            variables,
        })
    }

    /// Sets the model's price, so that a budget in US dollars can be enforced.
    #[must_use]
    pub(crate) fn at_price(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// Provider name in the project file.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Redacts every key that is set.
    pub(crate) fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Budget of all requests.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A client that sends through `transport`; `seed` determines retry delays.
    pub(crate) fn client(&self, transport: Arc<dyn Transport>, clock: Arc<dyn Clock>, seed: u64) -> ChatClient {
        let policy = RetryPolicy { seed, ..RetryPolicy::default() };
        ChatClient::new(self.dialect, Access { transport, clock, policy }).with_quirks(self.provider.quirks.clone())
    }

    /// A clock and a transport to the live provider, for one purpose; `seed` is sent to a simulator.
    ///
    /// # Errors
    /// [`SetupError`] if the provider's key is missing or its address is invalid.
    pub(crate) fn live(&self, seed: u64) -> Result<LiveAccess, SetupError> {
        let shared = self.live.get_or_init(|| {
            let key = services::key(&self.name, &self.provider, &self.variables, Keys::Ours)?;
            let target = services::target(&self.provider, self.dialect, key, REQUEST);
            let targets = BTreeMap::from([(Service::Model, target)]);
            Ok(LiveTransport::new(targets, Arc::new(RealClock::start()))?)
        });
        let live = shared.as_ref().map_err(Clone::clone)?;
        let paces = self.pace.iter().map(|pace| (Service::Model, Arc::clone(pace))).collect();
        Ok(LiveAccess::new(live, (seed, None), paces, &self.budget, tariff(self.price)))
    }
}
