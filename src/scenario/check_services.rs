//! Checks of the services that an external agent asks through the proxy.

use super::check::Checker;
use super::diagnostic::{At, Mistake};
use super::external::{DeclaredService, SHORT_FORMS};
use crate::settings::catalogue::DialectEntry;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Names of services that are none of an agent's own.
const TAKEN: [&str; 5] = ["embeddings", "knowledge", "managed_retrieval", "agent", "mcp"];

impl Checker<'_> {
    pub(super) fn proxy(&mut self, at: At<'_>) {
        let Some(written) = &self.scenario.proxy else { return };
        let example = "write a fixed port of this machine, `127.0.0.1:8101` for example";
        match written.parse::<SocketAddr>() {
            Err(_) => self.say(Mistake::at(at, "bad-proxy", "not an address to listen at").label(example)),
            Ok(address) if !address.ip().is_loopback() => {
                let mistake = Mistake::at(at, "bad-proxy", "an address that other machines can reach");
                self.say(mistake.label(example).help("whoever reaches the proxy uses the provider with your key"));
            }
            Ok(address) if address.port() == 0 => {
                let mistake = Mistake::at(at, "bad-proxy", "the agent must know the port before it is started");
                self.say(mistake.label(example));
            }
            Ok(_) => {}
        }
    }

    pub(super) fn services(&mut self, at: At<'_>) {
        let mut variables: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, service) in &self.scenario.services {
            let at = at.key(name);
            if !super::names::is_name(name) {
                let mistake = Mistake::at(at, "bad-name", format!("`{name}` cannot be a name")).on_key();
                self.say(mistake.label("use a to z, 0 to 9 and `-`"));
            } else if TAKEN.contains(&name.as_str()) {
                let mistake =
                    Mistake::at(at, "bad-name", format!("`{name}` is already a service of ragcheck")).on_key();
                self.say(mistake.help("give this one another name"));
            } else if SHORT_FORMS.contains(&name.as_str()) {
                self.declared_twice(name, at);
            }
            match (&service.http, &service.mcp, &service.provider) {
                (Some(url), None, None) => self.http_service(name, service, ("http", url), at),
                (None, Some(url), None) => self.http_service(name, service, ("mcp", url), at),
                (None, None, Some(provider)) => self.provider_service(name, provider, at),
                _ => {
                    let message = "a service has one of `http`, `mcp` and `provider`";
                    let mistake = Mistake::at(at, "bad-service", message).on_key();
                    self.say(mistake.help(
                        "`provider: NAME` for a model or a search service, `mcp: URL` for an MCP server, `http: URL` for \
                         any other",
                    ));
                }
            }
            if service.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
                self.say(Mistake::at(at.key("name"), "empty-text", "the model has no name"));
            }
            for (place, variable) in service.env.iter().enumerate() {
                let sound = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let env = at.key("env");
                if variable.is_empty() || !variable.chars().all(sound) {
                    self.say(Mistake::at(env.index(place), "bad-name", "not a variable's name"));
                } else if let Some(other) = variables.insert(variable, name) {
                    let message = format!("`{variable}` has the base URL of `{other}` already");
                    self.say(Mistake::at(env.index(place), "two-services", message).label("a variable has one value"));
                }
            }
        }
        self.one_model();
    }

    /// Rejects a service that its short form declares as well.
    fn declared_twice(&mut self, name: &str, at: At<'_>) {
        let scenario = self.scenario;
        let short = if name == "search" { scenario.search.is_some() } else { !scenario.model.provider.is_empty() };
        if short {
            let message = format!("`{name}:` declares this service already");
            self.say(Mistake::at(at, "two-services", message).on_key().help("keep one of the two"));
        }
    }

    fn http_service(&mut self, name: &str, service: &DeclaredService, (key, url): (&str, &str), at: At<'_>) {
        if SHORT_FORMS.contains(&name) {
            let message = format!("`{name}` is a provider of the project file");
            let mistake = Mistake::at(at.key(key), "bad-service", message);
            self.say(mistake.help("write `provider: NAME`, or give this service another name"));
        }
        if service.name.is_some() {
            let mistake = Mistake::at(at.key("name"), "bad-service", "`name` is a provider's model").on_key();
            self.say(mistake.label("remove it"));
        }
        self.address(url, false, at.key(key));
    }

    fn provider_service(&mut self, name: &str, provider: &str, at: At<'_>) {
        let wanted: (&str, fn(&DialectEntry) -> bool) =
            if name == "search" { ("search service", |dialect| dialect.searches) } else { ("chat model", |_| true) };
        self.provider(provider, wanted, at.key("provider"));
        self.proxied(provider, name != "model", at);
    }

    /// Reports provider services without one named `model`.
    pub(super) fn one_model(&mut self) {
        let scenario = self.scenario;
        let first = scenario.services.iter().find(|(_, service)| service.provider.is_some());
        let model = !scenario.model.provider.is_empty() || scenario.services.contains_key("model");
        if let Some((name, _)) = first.filter(|_| !model) {
            let at = At::ROOT;
            let services = at.key("services");
            let mistake = Mistake::at(services.key(name), "missing-key", "no service is named `model`").on_key();
            self.say(mistake.help("reports are about the service `model`: give the agent's main model that name"));
        }
    }

    pub(super) fn proxy_hosts(&mut self, hosts: &[String], at: At<'_>) {
        for (place, host) in hosts.iter().enumerate() {
            let sound = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
            if host.is_empty() || !host.chars().all(sound) {
                let mistake = Mistake::at(at.index(place), "bad-host", "not a host name");
                self.say(mistake.label("write the name alone, without `http://`, port or `*`: `llm-gateway`"));
            }
        }
    }

    pub(super) fn may_refuse(&mut self, paths: &[String], at: At<'_>) {
        for (place, path) in paths.iter().enumerate() {
            // Agents that use the proxy from an environment variable request an absolute URL, which begins with a
            // host.
            let host = path.contains("://") || path.contains(':') && !path.contains('/');
            if !path.starts_with('/') && !host {
                let mistake = Mistake::at(at.index(place), "bad-path", "not a path");
                self.say(mistake.label(format!("write it as messages show it: `/{path}`")));
            }
        }
    }
}

/// The mistake of an address with a name or a password before its host, as `https://user:secret@host`, without a quote of it;
/// `help` says what to do instead.
pub(super) fn login(url: &str, at: At<'_>, help: &str) -> Option<Mistake> {
    let host = url.split_once("://")?.1.split(['/', '?', '#']).next().unwrap_or_default();
    let message = "this address holds a login, which would be written into plans and reports";
    host.contains('@').then(|| Mistake::at(at, "bad-url", message).without_quote().help(help))
}
