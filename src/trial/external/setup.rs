//! Resolved settings of an external agent, and how its turns are timed.

use crate::cassette::LocalTimes;
use crate::flow::external::{Endpoint, Pace, Settings, Target, Words};
use crate::plan::{Plan, VariantSettings};
use crate::scenario::external::ExternalAgent;
use crate::settings::expression;
use crate::trial::SetupError;
use crate::trial::opened::{Opened, Setup};
use crate::trial::proxy::{Pattern, Vars};
use crate::trial::trust::{self, Distrust};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Local stage of a cassette that holds the agent's own time in a turn.
const OWN: &str = "agent";
/// Local stage that holds the time saved by exchanges that overlap.
const OVERLAP: &str = "overlap";

/// Why an external agent's declaration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::trial) enum AgentError {
    /// The URL cannot be posted to.
    #[error("{0} is no address")]
    Address(String),
    /// The pattern of a generated value is invalid.
    #[error("vars.{name}: {why}")]
    Variable {
        /// Name of the value.
        name: String,
        /// Regular expression error.
        why: regex::Error,
    },
    /// The proxy's listening address is invalid.
    #[error("proxy: {0}")]
    Proxy(std::net::AddrParseError),
}

/// Settings shared by all trials of one variant with an external agent.
pub(in crate::trial) struct ExternalSetup {
    /// Settings of the flow.
    pub(super) settings: Settings,
    /// Variant settings for the services behind the proxy.
    pub(in crate::trial) declared: VariantSettings,
    /// Listening address of the proxy.
    pub(super) proxy: SocketAddr,
    /// Host names the agent uses for the proxy, besides those of this machine.
    pub(super) hosts: Vec<String>,
    /// Paths that the proxy may refuse without ending the trial.
    pub(super) may_refuse: Vec<String>,
    /// Patterns of the values that the agent generates per run.
    pub(super) patterns: Vec<Pattern>,
}

impl ExternalSetup {
    /// Resolves the scenario's declaration.
    ///
    /// # Errors
    /// [`AgentError`] for the first invalid setting; `check` reports all of them earlier.
    pub(in crate::trial) fn of(agent: &ExternalAgent, declared: VariantSettings) -> Result<Self, AgentError> {
        let endpoint = |url: &str| Endpoint::parse(url).ok_or_else(|| AgentError::Address(url.to_owned()));
        let (target, roles) = (&agent.target, &agent.roles);
        let patterns = agent.vars.iter().map(|(name, minted)| {
            let expression = minted.expression.as_deref().map(expression).transpose();
            let expression = expression.map_err(|why| AgentError::Variable { name: name.clone(), why })?;
            Ok(Pattern { name: name.clone(), at: minted.at.clone(), expression })
        });
        Ok(Self {
            settings: Settings {
                target: Target {
                    endpoint: endpoint(&target.http)?,
                    send: target.send.clone().unwrap_or_else(Target::usual_body),
                    answer: target.answer.clone(),
                    sources: target.sources.clone(),
                },
                reset: agent.reset.as_ref().map(|reset| endpoint(&reset.http)).transpose()?,
                roles: roles.by_tool(),
                turn: *declared.limits.turn,
            },
            hosts: agent.proxy_hosts.clone(),
            may_refuse: target.may_refuse.clone(),
            proxy: agent.proxy.parse().map_err(AgentError::Proxy)?,
            patterns: patterns.collect::<Result<_, AgentError>>()?,
            declared,
        })
    }
}

impl ExternalSetup {
    /// Checks that every URL the trial would post to was allowed on the command line.
    ///
    /// # Errors
    /// The first URL that was not allowed.
    pub(super) fn may_be_called(&self) -> Result<(), Distrust> {
        let endpoints = std::iter::once(&self.settings.target.endpoint).chain(&self.settings.reset);
        endpoints.map(Endpoint::url).try_for_each(|url| trust::may_call(&url))
    }
}

/// Checks that all external agents of a plan were allowed on the command line; replay requires this too.
///
/// # Errors
/// [`SetupError::Agent`] for the first that was not allowed.
pub(crate) fn agents_named(opened: &Opened, plan: &Plan) -> Result<(), SetupError> {
    for (scenario, setups) in opened.setups(plan) {
        for setup in setups.values() {
            if let Setup::Agent(setup) = setup {
                let wrong = |reason| SetupError::Agent { file: scenario.file.clone(), reason };
                setup.may_be_called().map_err(wrong)?;
            }
        }
    }
    Ok(())
}

/// Measures turns and notes the time not spent in services.
pub(super) struct Measured(pub(super) Arc<LocalTimes>);

/// Takes the time not spent in services from a recording.
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
