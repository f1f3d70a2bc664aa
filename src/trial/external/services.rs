//! The services of an external agent: who provides them, where the proxy mounts them, and the environment variables in
//! which a process finds them.

use crate::plan::VariantSettings;
use crate::provider::wire;
use crate::scenario::Project;
use crate::scenario::external::{DeclaredService, ExternalAgent, SHORT_FORMS};
use crate::settings::Auth;
use crate::transport::{Service, Target};
use crate::trial::proxy::{MODEL_MOUNT, Mount, SEARCH_MOUNT, Serves};
use crate::trial::services::providers;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Variables in which clients look for a base URL: whose clients, the variable, and what follows the mount.
const BASE_URLS: [(Clients, &str, &str); 10] = [
    (Clients::OpenAi, "OPENAI_BASE_URL", "/v1"),
    (Clients::OpenAi, "OPENAI_API_BASE", "/v1"),
    (Clients::OpenAi, "AZURE_OPENAI_ENDPOINT", ""),
    (Clients::OpenAi, "GROQ_BASE_URL", ""),
    (Clients::Anthropic, "ANTHROPIC_BASE_URL", ""),
    (Clients::Google, "GOOGLE_GEMINI_BASE_URL", ""),
    (Clients::Ollama, "OLLAMA_HOST", ""),
    (Clients::Cohere, "CO_API_URL", ""),
    (Clients::Amazon, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", ""),
    (Clients::Perplexity, "PERPLEXITY_BASE_URL", ""),
];

/// Variables in which clients look for a base URL.
pub(super) fn usual_variables() -> impl Iterator<Item = &'static str> {
    BASE_URLS.iter().map(|(_, variable, _)| *variable)
}

/// Client libraries that look for their base URL in variables of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clients {
    OpenAi,
    Anthropic,
    Google,
    Ollama,
    Cohere,
    Amazon,
    Perplexity,
}

impl Clients {
    fn of(dialect: &str) -> Self {
        match dialect {
            "anthropic-messages" => Self::Anthropic,
            "gemini" => Self::Google,
            "ollama" => Self::Ollama,
            "bedrock-converse" => Self::Amazon,
            dialect if searches(dialect) => Self::Perplexity,
            _ => Self::OpenAi,
        }
    }
}

fn searches(dialect: &str) -> bool {
    wire::by_name(dialect).is_some_and(|dialect| dialect.searches)
}

#[derive(Debug, Clone)]
struct AgentService {
    service: Service,
    origin: Origin,
    /// Its model in the price list, `provider/model`.
    price_name: Option<String>,
    /// Variables that the scenario names for it.
    env: Vec<String>,
    /// Whether the agent is judged when it is down.
    optional: bool,
}

/// Who answers a service.
#[derive(Debug, Clone)]
enum Origin {
    /// A provider of the project file, by name, with its dialect.
    Provider { name: String, dialect: String },
    /// An HTTP service, by its base URL.
    Http(String),
    /// An MCP server, by its URL.
    Mcp(String),
}

/// The services of one variant, the model first.
#[derive(Debug, Clone)]
pub(in crate::trial) struct AgentServices(Vec<AgentService>);

impl AgentServices {
    pub(super) fn of(agent: &ExternalAgent, declared: &VariantSettings, project: &Project) -> Self {
        let provider = |service: Service, name: &str| {
            let dialect = project.providers.get(name).map(|provider| provider.dialect.clone()).unwrap_or_default();
            let written = agent.services.get(service.as_str());
            let env = written.map(|one| one.env.clone()).unwrap_or_default();
            let price_name = written.and_then(DeclaredService::price_name);
            let (origin, optional) =
                (Origin::Provider { name: name.to_owned(), dialect }, written.is_some_and(|one| one.optional));
            AgentService { service, origin, price_name, env, optional }
        };
        let short = providers(declared).into_iter().map(|(service, name)| provider(service, name));
        let others = agent.services.iter().filter(|(name, _)| !SHORT_FORMS.contains(&name.as_str()));
        let others = others.filter_map(|(name, one)| match one {
            DeclaredService { provider: Some(named), .. } => Some(provider(Service::provider(name), named)),
            DeclaredService { http: Some(url), env, optional, .. } => {
                let (service, origin) = (Service::declared(name), Origin::Http(url.clone()));
                Some(AgentService { service, origin, price_name: None, env: env.clone(), optional: *optional })
            }
            DeclaredService { mcp: Some(url), env, optional, .. } => {
                let (service, origin) = (Service::declared(name), Origin::Mcp(url.clone()));
                Some(AgentService { service, origin, price_name: None, env: env.clone(), optional: *optional })
            }
            _ => None,
        });
        Self(short.chain(others).collect())
    }

    /// Names of providers, by service.
    pub(in crate::trial) fn providers(&self) -> BTreeMap<Service, &str> {
        let named = self.0.iter().filter_map(|one| match &one.origin {
            Origin::Provider { name, .. } => Some((one.service, name.as_str())),
            Origin::Http(_) | Origin::Mcp(_) => None,
        });
        named.collect()
    }

    /// The model of a service in the price list, as far as the scenario names it.
    pub(in crate::trial) fn price_name(&self, name: &str) -> Option<String> {
        self.0.iter().find(|one| one.service.as_str() == name)?.price_name.clone()
    }

    /// Whether the agent is judged when a service is down.
    pub(in crate::trial) fn is_optional(&self, name: &str) -> bool {
        self.0.iter().any(|one| one.service.as_str() == name && one.optional)
    }

    /// Whether a declared service without a dialect is optional; `None` if there is none of that name.
    pub(super) fn declared(&self, name: &str) -> Option<bool> {
        let mut all = self.0.iter();
        all.find(|one| matches!(one.service, Service::Declared(own) if own == name)).map(|one| one.optional)
    }

    /// Addresses of HTTP services and MCP servers.
    pub(super) fn targets(&self, timeout: Duration) -> impl Iterator<Item = (Service, Target)> {
        self.0.iter().filter_map(move |one| {
            let (Origin::Http(base_url) | Origin::Mcp(base_url)) = &one.origin else { return None };
            let (base_url, auth) = (base_url.clone(), Auth::Bearer);
            Some((one.service, Target { base_url, key: None, auth, headers: &[], timeout, trial_header: false }))
        })
    }

    pub(super) fn mcp_servers(&self) -> impl Iterator<Item = Service> {
        self.0.iter().filter(|one| matches!(one.origin, Origin::Mcp(_))).map(|one| one.service)
    }

    /// Base URL of a service, by its name in traces.
    pub(in crate::trial) fn base_url<'s>(&'s self, name: &str, project: &'s Project) -> Option<&'s str> {
        // An agent asks for vectors where it asks its model.
        let name = if name == Service::Embeddings.as_str() { Service::Model.as_str() } else { name };
        match &self.0.iter().find(|one| one.service.as_str() == name)?.origin {
            Origin::Provider { name, .. } => Some(&project.providers.get(name)?.base_url),
            Origin::Http(url) | Origin::Mcp(url) => Some(url),
        }
    }

    /// Every service that a recording may answer for, and whether it is a search service.
    pub(in crate::trial) fn holdable(&self) -> impl Iterator<Item = (Service, bool)> + '_ {
        let one = |one: &AgentService| {
            let searches = matches!(&one.origin, Origin::Provider { dialect, .. } if searches(dialect));
            (one.service, searches)
        };
        // An agent asks for vectors where it asks its model.
        self.0.iter().map(one).chain([(Service::Embeddings, false)])
    }

    /// Who answers, by service, for the header of a recording.
    pub(super) fn answered_by(&self) -> BTreeMap<String, String> {
        let mut named: BTreeMap<String, String> = BTreeMap::new();
        for one in &self.0 {
            let (Origin::Provider { name: who, .. } | Origin::Http(who) | Origin::Mcp(who)) = &one.origin;
            if one.service == Service::Model {
                named.insert(Service::Embeddings.as_str().to_owned(), who.clone());
            }
            named.insert(one.service.as_str().to_owned(), who.clone());
        }
        named
    }

    /// Where the proxy serves those that are not at its own two mounts.
    pub(super) fn mounts(&self) -> Vec<Mount> {
        let others = self.0.iter().filter(|one| !matches!(one.service, Service::Model | Service::Search));
        let mount = |one: &AgentService| Mount {
            service: one.service,
            serves: match &one.origin {
                Origin::Http(_) => Serves::Anything,
                Origin::Mcp(_) => Serves::Mcp,
                Origin::Provider { dialect, .. } if searches(dialect) => Serves::Searches,
                Origin::Provider { .. } => Serves::Models,
            },
        };
        others.map(mount).collect()
    }

    /// Base URLs at the proxy by variable: those that clients usually read, ragcheck's, and those that the scenario names.
    pub(super) fn base_urls(&self, proxy: SocketAddr) -> Vec<(String, String)> {
        let usual = BASE_URLS.iter().map(|(clients, variable, end)| {
            let mount = self.usual(*clients).map_or_else(|| mount(*clients).to_owned(), AgentService::mount);
            ((*variable).to_owned(), format!("http://{proxy}{mount}{end}"))
        });
        let mut all: Vec<(String, String)> = usual.collect();
        all.push(("RAGCHECK_MODEL_URL".to_owned(), format!("http://{proxy}{MODEL_MOUNT}")));
        all.push(("RAGCHECK_SEARCH_URL".to_owned(), format!("http://{proxy}{SEARCH_MOUNT}")));
        all.push(("RAGCHECK_PROXY".to_owned(), format!("http://{proxy}")));
        for one in &self.0 {
            let url = format!("http://{proxy}{}{}", one.mount(), one.end());
            if !matches!(one.service, Service::Model | Service::Search) {
                let name = one.service.as_str().to_ascii_uppercase().replace('-', "_");
                all.push((format!("RAGCHECK_{name}_URL"), url.clone()));
            }
            all.extend(one.env.iter().map(|variable| (variable.clone(), url.clone())));
        }
        all
    }

    /// The service that clients reach by their usual variables: the first of their API, and first one for which the
    /// scenario names no variable.
    fn usual(&self, clients: Clients) -> Option<&AgentService> {
        let own = |one: &&AgentService| match &one.origin {
            Origin::Provider { dialect, .. } => Clients::of(dialect) == clients,
            Origin::Http(_) | Origin::Mcp(_) => false,
        };
        let mut theirs = self.0.iter().filter(own);
        theirs.clone().find(|one| one.env.is_empty()).or_else(|| theirs.next())
    }
}

impl AgentService {
    /// Its mount, without a version.
    fn mount(&self) -> String {
        format!("/{}", self.service.as_str())
    }

    /// What its usual clients want in a base URL.
    fn end(&self) -> &'static str {
        match &self.origin {
            Origin::Provider { dialect, .. } if Clients::of(dialect) == Clients::OpenAi => "/v1",
            _ => "",
        }
    }
}

/// The mount of clients none of whose services is declared.
fn mount(clients: Clients) -> &'static str {
    if clients == Clients::Perplexity { SEARCH_MOUNT } else { "/model" }
}

/// Base URLs at the proxy for an agent of which nothing is known yet.
pub(super) fn unknown_base_urls(proxy: SocketAddr) -> Vec<(String, String)> {
    AgentServices(Vec::new()).base_urls(proxy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::yaml;
    use crate::settings::{ModelSettings, Provider, SearchSettings};

    fn services(written: &str) -> BTreeMap<String, String> {
        let providers = [
            ("openai", "openai-chat"),
            ("groq", "openai-chat"),
            ("anthropic", "anthropic-messages"),
            ("perplexity", "perplexity-agent"),
        ];
        let providers = providers
            .map(|(name, dialect)| (name.to_owned(), Provider::at(format!("https://{name}.example"), dialect)));
        let project = Project { providers: providers.into(), ..Project::default() };
        let agent = format!("target: {{command: [agent]}}\nproxy: 127.0.0.1:8101\nservices: {written}\n");
        let agent: ExternalAgent = yaml::read(&agent).expect("an agent");
        let model = ModelSettings { provider: "openai".into(), ..ModelSettings::default() };
        let search = Some(SearchSettings { provider: "perplexity".into(), name: String::new() });
        let declared = VariantSettings { model, search, ..VariantSettings::default() };
        let found = AgentServices::of(&agent, &declared, &project);
        found.base_urls(SocketAddr::from(([127, 0, 0, 1], 4711))).into_iter().collect()
    }

    #[test]
    fn each_provider_service_is_where_its_usual_clients_look_for_it() {
        let alone = services("{}");
        let at = |variables: &BTreeMap<String, String>, name: &str| {
            variables.get(name).map(|url| url.replace("http://127.0.0.1:4711", "")).unwrap_or_default()
        };
        for (variable, expected) in [
            ("OPENAI_BASE_URL", "/model/v1"),
            ("OPENAI_API_BASE", "/model/v1"),
            ("AZURE_OPENAI_ENDPOINT", "/model"),
            ("ANTHROPIC_BASE_URL", "/model"),
            ("PERPLEXITY_BASE_URL", "/search"),
            ("RAGCHECK_PROXY", ""),
        ] {
            assert_eq!(at(&alone, variable), expected, "{variable}");
        }
        let more = services(
            "{claude: {provider: anthropic}, fast: {provider: groq, env: [GROQ_BASE_URL, LLM_URL]}, model: {provider: \
             openai, env: MAIN_URL}, vectors: {http: 'http://127.0.0.1:9', env: CHROMA_URL}}",
        );
        for (variable, expected) in [
            ("ANTHROPIC_BASE_URL", "/claude"),
            ("RAGCHECK_CLAUDE_URL", "/claude"),
            ("GROQ_BASE_URL", "/fast/v1"),
            ("LLM_URL", "/fast/v1"),
            ("OPENAI_BASE_URL", "/model/v1"),
            ("MAIN_URL", "/model/v1"),
            ("GOOGLE_GEMINI_BASE_URL", "/model"),
            ("CHROMA_URL", "/vectors"),
        ] {
            assert_eq!(at(&more, variable), expected, "{variable}");
        }
        assert_eq!(at(&services("{fast: {provider: groq, env: OPENAI_BASE_URL}}"), "OPENAI_BASE_URL"), "/fast/v1");
    }
}
