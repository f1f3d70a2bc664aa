//! Addresses, dialects and keys of the services of a scenario.
//!
//! Keys come from the variables named in the project file: from the environment file if one was given, else from the
//! process environment. They are passed to requests and to the redactor only.

use super::opened::{FlowSetup, Opened};
use super::tariff::tariff_of;
use super::{SetupError, trust};
use crate::cassette::Redactor;
use crate::flow;
use crate::plan::{Plan, PlannedTrial, VariantSettings};
use crate::platform::clock::{Clock, PausableClock, RealClock};
use crate::platform::secrets;
use crate::provider::wire::{self, Dialect};
use crate::scenario::Project;
use crate::settings::Provider;
use crate::transport::{Budget, LimitTransport, LiveTransport, Pace, Service, Target, Tariff, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Variables by name, in addition to the process environment.
pub(crate) type Variables = BTreeMap<String, String>;

/// Parses an environment file of `KEY=VALUE` lines. Ignores empty lines and lines that begin with `#`; strips `export`
/// before a name and one pair of quotes around a value. Nothing is expanded.
///
/// # Errors
/// Number of the first invalid line, from 1. The line itself is not returned: it may hold a secret.
pub(crate) fn read_variables(text: &str) -> Result<Variables, usize> {
    let mut variables = Variables::new();
    for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(number)?;
        let name = name.strip_prefix("export ").unwrap_or(name).trim();
        let sound = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.chars().all(sound) {
            return Err(number);
        }
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        variables.insert(name.to_owned(), quoted.unwrap_or(value).to_owned());
    }
    Ok(variables)
}

/// Who provides the keys of the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// ragcheck does: a missing key is an error.
    Ours,
    /// The agent does; ragcheck fills in for an agent that sends none.
    TheAgents,
}

/// Addresses and keys of the services of these providers.
pub(super) fn targets(
    opened: &Opened,
    providers: &BTreeMap<Service, &str>,
    timeout: Duration,
    keys: Keys,
) -> Result<BTreeMap<Service, Target>, SetupError> {
    let targets = providers.iter().map(|(service, name)| {
        let provider = opened.loaded.project.providers.get(*name).ok_or_else(|| unknown(name))?;
        let key = key(name, provider, &opened.variables, keys)?;
        Ok((*service, target(provider, dialect(name, provider)?, key, timeout)))
    });
    let mut targets: BTreeMap<Service, Target> = targets.collect::<Result<_, SetupError>>()?;
    if let Some(model) = targets.get(&Service::Model).filter(|_| keys == Keys::TheAgents) {
        // An agent asks for vectors where it asks its model: one client does both.
        targets.insert(Service::Embeddings, model.clone());
    }
    Ok(targets)
}

/// Rate limits of the services of these providers; services of one provider share one.
pub(super) fn paces_of(opened: &Opened, providers: &BTreeMap<Service, &str>) -> BTreeMap<Service, Arc<Pace>> {
    let vectors = providers.get(&Service::Model).map(|name| (Service::Embeddings, *name));
    let services = providers.iter().map(|(service, name)| (*service, *name)).chain(vectors);
    services.filter_map(|(service, name)| Some((service, Arc::clone(opened.paces.get(name)?)))).collect()
}

/// Access of a flow's trial to its providers, with the limits of the run; a simulator also gets its seed and the fault.
pub(super) fn access(
    opened: &Opened,
    planned: &PlannedTrial,
    fault: Option<&str>,
    setup: &FlowSetup,
) -> Result<LiveAccess, SetupError> {
    let shared = setup.live.get_or_init(|| {
        let timeout = *setup.declared.limits.request;
        let mut asked = providers(&setup.declared);
        asked.retain(|service, _| opened.may_ask(planned, *service));
        let mut targets = targets(opened, &asked, timeout, Keys::Ours)?;
        targets.extend(setup.retrieval.targets(&opened.variables, timeout)?);
        Ok(LiveTransport::new(targets, Arc::new(RealClock::start()))?)
    });
    let live = shared.as_ref().map_err(Clone::clone)?.asking_for(setup.declared.asks_for.as_deref());
    let mut paces = paces_of(opened, &providers(&setup.declared));
    paces.extend(setup.retrieval.paces(&opened.paces));
    Ok(LiveAccess::new(&live, (planned.seed, fault), paces, &opened.budget, tariff_of(opened, planned)))
}

/// Overrides model names with the variables that their flows read (`OPENAI_MODEL`, for example), if set. Used live and
/// by `serve`, never for recordings. A flow that reads no variable keeps its variant's model.
pub(crate) fn name_models(plan: &mut Plan, variables: &Variables) {
    for variant in plan.scenarios.iter_mut().flat_map(|scenario| &mut scenario.variants) {
        let named = flow::by_name(&variant.flow).and_then(|flow| flow.description().model_variable);
        let named = named.and_then(|named| variable(variables, named));
        if let (Some(named), Some(settings)) = (named, &mut variant.settings) {
            settings.model.name = named;
        }
    }
}

pub(super) fn providers(declared: &VariantSettings) -> BTreeMap<Service, &str> {
    let search = declared.search.as_ref().map(|search| (Service::Search, search.provider.as_str()));
    [Some((Service::Model, declared.model.provider.as_str())), search].into_iter().flatten().collect()
}

/// Error for a provider that the project does not declare.
pub(super) fn unknown(provider: &str) -> SetupError {
    SetupError::Provider { provider: provider.to_owned(), reason: "it is not in the project file".to_owned() }
}

/// A transport to live services, and its clock.
pub(crate) struct LiveAccess {
    /// The clock, which pauses while a request waits for its rate limit.
    pub(crate) clock: Arc<dyn Clock>,
    /// The transport.
    pub(crate) transport: Arc<dyn Transport>,
}

impl LiveAccess {
    /// Wraps `live` with the simulator's headers and the limits of the providers and of the run.
    pub(super) fn new(
        live: &LiveTransport,
        (seed, fault): (u64, Option<&str>),
        paces: BTreeMap<Service, Arc<Pace>>,
        budget: &Arc<Budget>,
        tariff: Arc<dyn Tariff>,
    ) -> Self {
        let pausable = PausableClock::new(Arc::new(RealClock::start()));
        let clock: Arc<dyn Clock> = Arc::new(pausable.clone());
        let own = live.with_clock(Arc::clone(&clock)).with_trial(seed, fault);
        let limited = LimitTransport::new(Arc::new(own), paces, Arc::clone(budget), pausable);
        Self { clock, transport: Arc::new(limited.with_tariff(tariff)) }
    }
}

/// Redacts every key that the project file names and that is set, and the likely keys of the environment, which an agent
/// may send to any service. Recordings have the names of the project.
pub(super) fn redactor(project: &Project, variables: &Variables) -> Redactor {
    let keys: Vec<(String, String)> =
        keys_that_are_set(project, variables).into_iter().map(|(name, _, value)| (name, value)).collect();
    secrets::declare(keys.clone());
    Redactor::new(keys).beside(&secrets::declared())
}

/// Variables with keys of the project whose values are too short or too plain to be redacted.
pub(super) fn unredacted(project: &Project, variables: &Variables) -> BTreeSet<String> {
    let keys = keys_that_are_set(project, variables).into_iter();
    keys.filter(|(_, _, value)| secrets::is_unredacted(value)).map(|(_, variable, _)| variable).collect()
}

/// The keys that the project file names and that may be read: the name for messages, the variable, and the value.
fn keys_that_are_set(project: &Project, variables: &Variables) -> Vec<(String, String, String)> {
    let providers =
        project.providers.iter().map(|(name, provider)| (name, provider.key.as_ref(), provider.base_url.as_str()));
    let servers = project.knowledge_bases.iter().filter_map(|(name, base)| {
        let server = base.server.as_ref()?;
        Some((name, base.key.as_ref(), server.base_url.as_str()))
    });
    // Several services may share an account: its secrets are identified by their variables.
    let managed = project.managed_retrieval.values().flat_map(|managed| {
        [&managed.token, &managed.api_key].map(|variable| (variable, Some(variable), managed.base_url.as_str()))
    });
    let keys = providers.chain(servers).chain(managed).filter_map(|(name, named, base_url)| {
        let named = named?;
        // An environment file holds only what the user meant to pass; from the process environment, only keys that may
        // be sent are read.
        let read = variables.contains_key(named) || trust::may_send(named, base_url).is_ok();
        Some((name.clone(), named.clone(), variable(variables, named).filter(|_| read)?))
    });
    keys.collect()
}

/// Key of a provider, if it needs one.
pub(super) fn key(
    name: &str,
    provider: &Provider,
    variables: &Variables,
    keys: Keys,
) -> Result<Option<String>, SetupError> {
    let Some(wanted) = &provider.key else { return Ok(None) };
    trust::may_send(wanted, &provider.base_url)
        .map_err(|reason| SetupError::Distrust { provider: name.to_owned(), reason })?;
    match (variable(variables, wanted), keys) {
        (None, Keys::Ours) => Err(SetupError::Key { provider: name.to_owned(), variable: wanted.clone() }),
        (key, _) => Ok(key),
    }
}

/// Address and authentication of a provider.
pub(super) fn target(provider: &Provider, dialect: &Dialect, key: Option<String>, timeout: Duration) -> Target {
    Target {
        base_url: provider.base_url.clone(),
        key,
        auth: provider.auth.unwrap_or(dialect.auth),
        headers: dialect.headers,
        timeout,
        trial_header: provider.quirks.trial_header,
    }
}

/// Dialect that the provider `name` declares.
///
/// # Errors
/// [`SetupError::Provider`] if this build does not speak it.
pub(super) fn dialect(name: &str, provider: &Provider) -> Result<&'static Dialect, SetupError> {
    let found = wire::by_name(&provider.dialect).filter(|dialect| !dialect.retired);
    found.ok_or_else(|| SetupError::Provider {
        provider: name.to_owned(),
        reason: format!("its dialect, {}, is none that this build speaks", provider.dialect),
    })
}

pub(super) fn variable(variables: &Variables, name: &str) -> Option<String> {
    let value = variables.get(name).cloned().or_else(|| std::env::var(name).ok());
    value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// One rate limit per provider, shared by all trials of a run, which has one of `partitions` shares of it.
pub(super) fn paces(project: &Project, partitions: u32) -> BTreeMap<String, Arc<Pace>> {
    let limits = |provider: &Provider| provider.pace_limits().divided(partitions);
    let pace = |provider: &Provider| Arc::new(Pace::new(limits(provider), Arc::new(RealClock::start())));
    project.providers.iter().map(|(name, provider)| (name.clone(), pace(provider))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_file_is_read_line_by_line_and_nothing_is_expanded() {
        let text = "# keys\n\nexport A_KEY=\"one two\"\nB='x=y#z'\n C = $A_KEY \nEMPTY=\n";
        let read = read_variables(text).expect("sound");
        let pairs: Vec<(&str, &str)> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("A_KEY", "one two"), ("B", "x=y#z"), ("C", "$A_KEY"), ("EMPTY", "")]);
        for (text, line) in [("A=1\nsk-secret", 2), ("A B=1", 1), ("=x", 1), ("1A=x", 1)] {
            assert_eq!(read_variables(text), Err(line), "{text}");
        }
    }
}
