//! Resolved settings of an external agent, and how its turns are timed.

use super::agents::START_LIMIT;
use super::services::AgentServices;
use crate::cassette::LocalTimes;
use crate::flow::external::{AnswerAt, Endpoint, Pace, Settings, Target, Words};
use crate::plan::{Plan, VariantSettings};
use crate::scenario::Project;
use crate::scenario::external::{AgentProbe, ExternalAgent, OPENAI_SHAPE, PORT};
use crate::settings::expression;
use crate::trial::SetupError;
use crate::trial::opened::{Opened, Setup, Trial};
use crate::trial::proxy::{Pattern, Refused, Vars};
use crate::trial::recording::Subject;
use crate::trial::trust::{self, Distrust};
use serde_json::Value;
use std::collections::BTreeMap;
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
    Variable { name: String, why: regex::Error },
    /// The proxy's listening address is invalid.
    #[error("proxy: {0}")]
    Proxy(std::net::AddrParseError),
    /// A variable may not be sent to the agent.
    #[error("target.headers: {0}")]
    Distrust(Distrust),
    /// A variable is not set.
    #[error("target.headers: `{header}` needs the environment variable {variable}, which is not set")]
    Unset { header: String, variable: String },
}

/// Settings shared by all trials of one variant with an external agent.
pub(in crate::trial) struct ExternalSetup {
    /// Settings of the flow, with port 0 in place of `{{port}}`.
    settings: Settings,
    /// Program and arguments that start the agent; empty if it runs elsewhere.
    pub(super) command: Vec<String>,
    /// Environment variables of a process that the scenario sets.
    pub(super) env: Vec<(String, String)>,
    /// URL of a turn as written; `None` if turns go to the standard input of the process.
    pub(super) http: Option<String>,
    /// URL that resets the agent, as written.
    reset: Option<String>,
    /// How the agent's keyword index is read, as written.
    probe: Option<AgentProbe>,
    /// Path that answers when a process is ready.
    pub(super) ready: Option<String>,
    /// How long the process may take until it is ready.
    pub(super) ready_within: Duration,
    /// Whether each trial has a process of its own.
    pub(super) restarts: bool,
    /// Variant settings for the services behind the proxy.
    pub(in crate::trial) declared: VariantSettings,
    /// Listening address of the proxy of an agent that runs elsewhere.
    pub(super) proxy: SocketAddr,
    /// Host names the agent uses for the proxy, besides those of this machine.
    pub(super) hosts: Vec<String>,
    pub(in crate::trial) services: AgentServices,
    /// Paths that the proxy may refuse without ending the trial.
    may_refuse: Vec<String>,
    /// Whether the agent sends spans.
    pub(super) spans: bool,
    /// Patterns of the values that the agent generates per run.
    pub(super) patterns: Vec<Pattern>,
}

impl ExternalSetup {
    /// Resolves the scenario's declaration.
    ///
    /// # Errors
    /// [`AgentError`] for the first invalid setting; `check` reports all of them earlier.
    pub(in crate::trial) fn of(
        agent: &ExternalAgent,
        variant: &str,
        declared: VariantSettings,
        project: &Project,
    ) -> Result<Self, AgentError> {
        let (target, roles) = (&agent.target, &agent.roles);
        let patterns = agent.vars.iter().map(|(name, minted)| {
            let expression = minted.expression.as_deref().map(expression).transpose();
            let expression = expression.map_err(|why| AgentError::Variable { name: name.clone(), why })?;
            Ok(Pattern { name: name.clone(), at: minted.at.clone(), expression })
        });
        let address = match &target.http {
            Some(url) => endpoint(url, 0)?,
            None if target.command.is_empty() => {
                Endpoint { origin: "your test runner".to_owned(), path: String::new() }
            }
            None => Endpoint { origin: format!("`{}`", target.command.join(" ")), path: String::new() },
        };
        let answer =
            if target.answer == OPENAI_SHAPE { AnswerAt::OpenAi } else { AnswerAt::Pointer(target.answer.clone()) };
        if let Some(probe) = agent.probe.as_ref().filter(|probe| probe.service.is_none()) {
            endpoint(&probe.http, 0)?;
        }
        Ok(Self {
            settings: Settings {
                target: Target {
                    endpoint: address,
                    headers: headers(&target.headers, target.http.as_deref())?,
                    send: target.send.clone().unwrap_or_else(|| Target::usual_body(&answer)),
                    answer,
                    sources: target.sources.clone(),
                },
                reset: agent.reset.as_ref().map(|reset| endpoint(&reset.http, 0)).transpose()?,
                roles: roles.by_tool(),
                turn: *declared.limits.turn,
                prompts: declared.prompts.clone(),
            },
            command: target.command.clone(),
            env: target
                .env
                .iter()
                .map(|(name, value)| {
                    let value = value.replace("{{variant}}", variant).replace("{{model}}", &declared.model.name);
                    (name.clone(), value)
                })
                .collect(),
            http: target.http.clone(),
            reset: agent.reset.as_ref().map(|reset| reset.http.clone()),
            probe: agent.probe.clone(),
            ready: target.ready.clone(),
            ready_within: target.ready_within.as_deref().copied().unwrap_or(START_LIMIT),
            restarts: target.restart.is_some(),
            services: AgentServices::of(agent, &declared, project),
            hosts: agent.proxy_hosts.clone(),
            may_refuse: target.may_refuse.clone(),
            spans: target.spans,
            proxy: agent.proxy.parse().map_err(AgentError::Proxy)?,
            patterns: patterns.collect::<Result<_, AgentError>>()?,
            declared,
        })
    }

    /// Whether ragcheck starts the agent.
    pub(in crate::trial) fn is_started(&self) -> bool {
        !self.command.is_empty()
    }

    /// Parts refused requests into those of `may_refuse` and the others.
    pub(super) fn allowed(&self, refused: Vec<Refused>) -> (Vec<Refused>, Vec<Refused>) {
        refused.into_iter().partition(|one| one.is_among(&self.may_refuse))
    }

    /// The port that every process has to listen at, if the scenario names one; then only one can run at a time.
    pub(super) fn fixed_port(&self) -> Option<u16> {
        let url = self.http.as_deref().filter(|url| !url.contains(PORT))?;
        reqwest::Url::parse(url).ok()?.port_or_known_default()
    }

    /// Whether a process remembers no earlier trial: the scenario resets it, or starts it anew.
    pub(in crate::trial) fn forgets(&self) -> bool {
        self.restarts || self.reset.is_some()
    }

    /// Identity and path of a new recording of a trial.
    pub(super) fn subject(&self, trial: Trial<'_>) -> Subject {
        let mut subject = trial.subject(&self.declared);
        subject.providers = self.services.answered_by();
        subject
    }

    /// Settings of a trial with the process at `port`; `None` for an agent that runs elsewhere.
    pub(super) fn settings(&self, port: Option<u16>) -> Settings {
        let mut settings = self.settings.clone();
        let at = |url: &String| endpoint(url, port.unwrap_or_default()).ok();
        if let Some(found) = self.http.as_ref().and_then(at) {
            settings.target.endpoint = found;
        }
        settings.reset = self.reset.as_ref().and_then(at);
        settings
    }

    /// How the agent's keyword index is read, where the agent listens at `port`: the declaration, and its address unless a
    /// service holds it.
    pub(super) fn probe(&self, port: Option<u16>) -> Option<(&AgentProbe, Option<Endpoint>)> {
        let probe = self.probe.as_ref()?;
        let own = probe.service.is_none().then(|| endpoint(&probe.http, port.unwrap_or_default()).ok());
        Some((probe, own.flatten()))
    }

    /// Checks that every URL the trial would post to was allowed on the command line. A process that the run itself
    /// starts needs no permission: whoever runs the project runs its code.
    ///
    /// # Errors
    /// The first URL that was not allowed.
    pub(super) fn may_be_called(&self) -> Result<(), Distrust> {
        if self.is_started() {
            return Ok(());
        }
        let endpoints = std::iter::once(&self.settings.target.endpoint).chain(&self.settings.reset);
        let probe = self.probe.iter().filter(|probe| probe.service.is_none()).map(|probe| probe.http.clone());
        endpoints.map(Endpoint::url).chain(probe).try_for_each(|url| trust::may_call(&url))
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

fn endpoint(url: &str, port: u16) -> Result<Endpoint, AgentError> {
    let url = url.replace(PORT, &port.to_string());
    Endpoint::parse(&url).ok_or(AgentError::Address(url))
}

/// Headers of a turn, with the environment variables in them.
fn headers(declared: &BTreeMap<String, String>, http: Option<&str>) -> Result<Vec<(String, String)>, AgentError> {
    let url = http.unwrap_or_default().replace(PORT, "0");
    let filled = declared.iter().map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let mut out = String::new();
        let mut rest = value.as_str();
        while let Some((before, after)) = rest.split_once("{{env.") {
            let Some((variable, after)) = after.split_once("}}") else { break };
            let variable = variable.trim();
            trust::may_send(variable, &url).map_err(AgentError::Distrust)?;
            let unset = || AgentError::Unset { header: name.clone(), variable: variable.to_owned() };
            out.push_str(before);
            out.push_str(&std::env::var(variable).map_err(|_| unset())?);
            rest = after;
        }
        out.push_str(rest);
        Ok((name, out))
    });
    filled.collect()
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
