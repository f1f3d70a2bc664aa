//! What a scenario says about an agent that runs elsewhere, resolved, and how its turns are timed.

use super::trust::{self, Distrust};
use crate::cassette::LocalTimes;
use crate::flow::external::{Endpoint, Pace, Settings, Target, Words};
use crate::plan::VariantSettings;
use crate::scenario::external::ExternalAgent;
use crate::settings::expression;
use crate::trial::proxy::{Pattern, Vars};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The agent's own time in a turn, as local stages of a cassette call it.
const OWN: &str = "agent";
/// What exchanges side by side save of a turn's time.
const OVERLAP: &str = "overlap";

/// Why an agent that runs elsewhere cannot be reached as declared.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentError {
    /// A URL that cannot be posted to.
    #[error("{0} is no address")]
    Address(String),
    /// The expression of a generated value.
    #[error("vars.{name}: {why}")]
    Variable {
        /// The value's name.
        name: String,
        /// Why it is no regular expression.
        why: regex::Error,
    },
    /// Where the proxy listens.
    #[error("proxy: {0}")]
    Proxy(std::net::AddrParseError),
}

/// What is shared by the trials of one variant whose agent runs elsewhere.
pub(super) struct ExternalSetup {
    /// What the flow needs.
    pub(super) settings: Settings,
    /// What the variant declares of the services behind the proxy.
    pub(super) declared: VariantSettings,
    /// Where the proxy listens.
    pub(super) proxy: SocketAddr,
    /// Host names by which the agent asks for it, beside those of this machine.
    pub(super) hosts: Vec<String>,
    /// Paths that the proxy may refuse without ending the trial.
    pub(super) may_refuse: Vec<String>,
    /// What the agent mints.
    pub(super) patterns: Vec<Pattern>,
}

impl ExternalSetup {
    /// As the scenario says.
    ///
    /// # Errors
    /// [`AgentError`] for the first thing that does not fit; `check` finds all of them before.
    pub(super) fn of(agent: &ExternalAgent, declared: VariantSettings) -> Result<Self, AgentError> {
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
    /// Whether everything that a trial would post to was named by whoever started the run.
    ///
    /// # Errors
    /// The first address that was not.
    pub(super) fn may_be_called(&self) -> Result<(), Distrust> {
        let endpoints = std::iter::once(&self.settings.target.endpoint).chain(&self.settings.reset);
        endpoints.map(Endpoint::url).try_for_each(|url| trust::may_call(&url))
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
