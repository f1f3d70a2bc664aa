//! Where the services of a scenario are, how they are spoken to, and the keys that they want.
//!
//! Keys come from the variables that the project file names: from an environment file where one was given, else from
//! the environment of the process. They go into requests and into the redactor, and nowhere else.

use super::TrialRunner;
use super::settings::ServiceSettings;
use crate::cassette::Redactor;
use crate::clock::RealClock;
use crate::scenario::Project;
use crate::secrets;
use crate::settings::Provider;
use crate::transport::{Pace, Service, Target};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Variables by name, beside those of the process.
pub type Variables = BTreeMap<String, String>;

/// Reads an environment file: `KEY=VALUE` lines; empty lines and those that begin with `#` are passed over, `export`
/// before a name and one pair of quotes around a value are taken away. Nothing is expanded.
///
/// # Errors
/// The number of the first line that is neither, from 1. The line itself is not told: it may hold a secret.
pub fn read_variables(text: &str) -> Result<Variables, usize> {
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

/// Who brings the keys of the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// We do: a missing one is a mistake.
    Ours,
    /// The agent does, or we do for an agent that sends none.
    TheAgents,
}

impl TrialRunner {
    /// Where the services of a scenario are, with their keys.
    pub(super) fn targets(&self, services: &ServiceSettings, keys: Keys) -> Result<BTreeMap<Service, Target>, String> {
        let model = (Service::Model, &services.model);
        let search = services.search.as_ref().map(|search| (Service::Search, search));
        let targets = [Some(model), search].into_iter().flatten().map(|(service, name)| {
            let provider = self.loaded.project.providers.get(name);
            let provider = provider.ok_or_else(|| format!("provider `{name}` is not in the project file"))?;
            let key = key(name, provider, &self.variables, keys)?;
            let target = target(provider, key, services.request);
            Ok((service, target))
        });
        targets.collect()
    }

    /// The paces of the services of a scenario: those of one provider share one.
    pub(super) fn paces(&self, services: &ServiceSettings) -> BTreeMap<Service, Arc<Pace>> {
        let model = (Service::Model, Some(&services.model));
        let search = (Service::Search, services.search.as_ref());
        let services = [model, search].into_iter();
        services.filter_map(|(service, name)| Some((service, Arc::clone(self.paces.get(name?)?)))).collect()
    }

    /// Knows every key that the project file names and that is set.
    pub(super) fn redactor(&self) -> Redactor {
        redactor(&self.loaded.project, &self.variables)
    }
}

/// Knows every key that the project file names and that is set.
pub(super) fn redactor(project: &Project, variables: &Variables) -> Redactor {
    let keys = project.providers.iter();
    let keys = keys.filter_map(|(name, provider)| Some((name.clone(), variable(variables, provider.key.as_ref()?)?)));
    let keys: Vec<(String, String)> = keys.collect();
    secrets::declare(keys.clone());
    Redactor::new(keys)
}

/// The key of a provider, where it wants one.
pub(super) fn key(
    name: &str,
    provider: &Provider,
    variables: &Variables,
    keys: Keys,
) -> Result<Option<String>, String> {
    let Some(wanted) = &provider.key else { return Ok(None) };
    match (variable(variables, wanted), keys) {
        (None, Keys::Ours) => Err(missing(name, wanted)),
        (key, _) => Ok(key),
    }
}

/// Where a provider is, and how it is asked.
pub(super) fn target(provider: &Provider, key: Option<String>, timeout: Duration) -> Target {
    Target {
        base_url: provider.base_url.clone(),
        key,
        auth: provider.auth(),
        headers: provider.dialect.headers(),
        timeout,
        trial_header: provider.quirks.trial_header,
    }
}

fn variable(variables: &Variables, name: &str) -> Option<String> {
    let value = variables.get(name).cloned().or_else(|| std::env::var(name).ok());
    value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn missing(provider: &str, variable: &str) -> String {
    format!(
        "provider `{provider}` needs its key in the environment variable {variable}: set it, or name a file that does with --env-file"
    )
}

/// One pace for each provider, for all trials of a run.
pub(super) fn paces(project: &Project) -> BTreeMap<String, Arc<Pace>> {
    let pace = |provider: &Provider| Arc::new(Pace::new(provider.pace_limits(), Arc::new(RealClock::start())));
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
