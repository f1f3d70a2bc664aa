//! What a scenario says about an agent that runs elsewhere, resolved, and how its turns are timed.

use super::SetupError;
use super::settings::{self, ServiceSettings};
use crate::cassette::LocalTimes;
use crate::flow::external::{Endpoint, Pace, Settings, Target, Words};
use crate::proxy::{Pattern, Vars};
use crate::scenario::LoadedScenario;
use crate::scenario::external::USUAL_PROXY;
use crate::transport::Service;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The agent's own time in a turn, as local stages of a cassette call it.
const OWN: &str = "agent";
/// What exchanges side by side save of a turn's time.
const OVERLAP: &str = "overlap";

/// What is shared by the trials of one scenario with an agent that runs elsewhere.
pub(super) struct ExternalSetup {
    /// What the flow needs.
    pub(super) settings: Settings,
    /// The ways to the services behind the proxy.
    pub(super) services: ServiceSettings,
    /// The model's name, as the scenario has it.
    pub(super) model: String,
    search: Option<String>,
    /// Where the proxy listens.
    pub(super) proxy: SocketAddr,
    /// What the agent mints.
    pub(super) patterns: Vec<Pattern>,
}

impl ExternalSetup {
    /// As the scenario says.
    ///
    /// # Errors
    /// [`SetupError::Settings`] when something does not fit, which `check` finds before.
    pub(super) fn of(written: &LoadedScenario) -> Result<Self, SetupError> {
        let scenario = &written.scenario;
        let wrong = |reason: String| SetupError::Settings { file: written.file.clone(), reason };
        let endpoint = |url: &str| Endpoint::parse(url).ok_or_else(|| wrong(format!("{url} is no address")));
        let target = scenario.target.as_ref().ok_or_else(|| wrong("`target` is missing".into()))?;
        let roles = scenario.roles.clone().unwrap_or_default();
        let proxy = scenario.proxy.as_deref().unwrap_or(USUAL_PROXY);
        let patterns = scenario.vars.iter().map(|(name, minted)| {
            let expression = minted.expression.as_deref().map(regex::Regex::new).transpose();
            let expression = expression.map_err(|why| wrong(format!("vars.{name}: {why}")))?;
            Ok(Pattern { name: name.clone(), at: minted.at.clone(), expression })
        });
        Ok(Self {
            settings: Settings {
                target: Target {
                    endpoint: endpoint(&target.http)?,
                    send: target.send.clone().unwrap_or_else(Target::usual_body),
                    answer: target.answer.clone(),
                },
                reset: scenario.reset.as_ref().map(|reset| endpoint(&reset.http)).transpose()?,
                roles: roles.by_tool(),
                turn: *scenario.limits.turn,
            },
            services: settings::services(written, &scenario.model),
            model: scenario.model.name.clone(),
            search: scenario.search.as_ref().map(|search| search.name.clone()),
            proxy: proxy.parse().map_err(|why| wrong(format!("proxy: {why}")))?,
            patterns: patterns.collect::<Result<_, _>>()?,
        })
    }
}

impl ExternalSetup {
    /// The name under which a service has its price: `provider/model`, as the scenario names them.
    pub(super) fn model_of(&self, service: Service) -> Option<String> {
        match service {
            Service::Model => Some(format!("{}/{}", self.services.model, self.model)),
            Service::Search => Some(format!("{}/{}", self.services.search.as_ref()?, self.search.as_ref()?)),
            Service::Agent => None,
        }
    }
}

/// Measures turns and notes what of them was not the services'.
pub(super) struct Measured(pub(super) Arc<LocalTimes>);

/// Takes what was not the services' from a recording.
pub(super) struct Recorded(pub(super) LocalTimes);

impl Pace for Measured {
    fn turn(&self, real: Duration, exchanges: Duration) -> Duration {
        self.0.note(OWN, real.saturating_sub(exchanges));
        self.0.note(OVERLAP, exchanges.saturating_sub(real));
        real
    }
}

impl Pace for Recorded {
    fn turn(&self, _real: Duration, exchanges: Duration) -> Duration {
        let own = self.0.take(OWN).unwrap_or_default();
        (exchanges + own).saturating_sub(self.0.take(OVERLAP).unwrap_or_default())
    }
}

impl Words for Vars {
    fn text(&self, text: &str) -> String {
        self.told(text)
    }

    fn body(&self, body: &Value) -> Value {
        self.as_recorded(body)
    }
}
