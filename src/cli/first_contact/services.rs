//! Which provider answers what an agent asks: the one that is named, else by the first request and the keys that are
//! set, else a simulator in this process.

use super::Unmet;
use super::generated::{equal, nearest};
use crate::platform::clock::{BoxFuture, Clock, RealClock};
use crate::platform::lock::lock;
use crate::platform::secrets;
use crate::provider::chat::ToolDefinition;
use crate::provider::wire::{
    self,
    embeddings_shapes::{GOOGLE, OPENAI},
};
use crate::settings::Provider;
use crate::simulator;
use crate::transport::{HttpRequest, HttpResponse, LiveTransport, Passed, Service, Target, Transport, TransportError};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Name of the simulator among the providers.
pub(super) const SIMULATOR: &str = "simulator";
/// Port of the simulator, if it is free.
const USUAL_PORT: u16 = 8091;
/// The usual dialect of a search service.
const SEARCH: &str = "perplexity-agent";
const LIMIT: Duration = Duration::from_mins(2);

/// Providers by name: the dialect's family, the base URL and the variable of the key.
const KNOWN: [(&str, &str, &str, &str); 10] = [
    ("openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("google", "gemini", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
    ("perplexity", "perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    ("groq", "openai", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    ("mistral", "openai", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    ("openrouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    ("deepseek", "openai", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    ("together", "openai", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    ("xai", "openai", "https://api.x.ai/v1", "XAI_API_KEY"),
];

/// The APIs whose clients `ragcheck exec` serves without a scenario: the first of each family in [`KNOWN`].
const USUAL: usize = 4;

/// The usual provider of each API, by name.
pub(in crate::cli) fn usual_providers() -> impl Iterator<Item = (&'static str, Provider)> {
    KNOWN.iter().take(USUAL).map(|(name, family, base_url, key)| {
        let dialect = if *family == "perplexity" { SEARCH } else { dialect_of(family) };
        (*name, Provider { key: Some((*key).to_owned()), ..Provider::at(*base_url, dialect) })
    })
}

/// Whose clients speak a dialect: the name of its family in [`KNOWN`].
pub(in crate::cli) fn clients_of(dialect: &str) -> &'static str {
    if wire::by_name(dialect).is_some_and(|dialect| dialect.searches) { "perplexity" } else { family(dialect) }
}

/// A provider for one service of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// Its name in the project file.
    pub(super) name: String,
    pub(super) dialect: String,
    pub(super) base_url: String,
    /// The variable of its key.
    pub(super) key: Option<String>,
    /// The model that the agent names.
    pub(super) model: String,
    /// Why it was chosen.
    pub(super) why: String,
}

/// What was chosen, and the behaviour of the simulator if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Chosen {
    pub(super) model: Option<Choice>,
    pub(super) search: Option<Choice>,
    /// Further providers of the agent, by the name of their service.
    pub(super) others: BTreeMap<&'static str, Choice>,
    pub(super) simulator: Option<(u16, String)>,
}

impl Chosen {
    /// All choices, the model first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Choice> {
        self.model.iter().chain(self.others.values()).chain(&self.search)
    }

    fn slot(&mut self, lane: Lane) -> Option<&mut Choice> {
        match lane {
            Lane::Model => self.model.as_mut(),
            Lane::Search => self.search.as_mut(),
            Lane::Other(family) => self.others.get_mut(family),
        }
    }
}

/// Whose requests one provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// The first provider of a model.
    Model,
    Search,
    /// A further provider of models, by its dialect's family.
    Other(&'static str),
}

/// Why a name is no provider.
pub(super) fn checked(provider: Option<&str>) -> Result<(), Unmet> {
    let Some(name) = provider else { return Ok(()) };
    let known = name == SIMULATOR || KNOWN.iter().any(|(known, ..)| *known == name);
    if known {
        return Ok(());
    }
    if let Some((_, address)) = name.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme)) {
        let host = address.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') || address.contains(['?', '#']) || !secrets::declared().is_clean(name) {
            let why = "this address holds a login, parameters or a key, which would be written into ragcheck.yaml: name the base URL \
                       alone, and the variable with the key in the file";
            return Err(Unmet::Provider(why.to_owned()));
        }
        return Ok(());
    }
    let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).filter(|name| *name != "perplexity").collect();
    Err(Unmet::Provider(format!(
        "`{name}` is unknown; known: {}, {SIMULATOR}, or the base URL of another one",
        names.join(", ")
    )))
}

/// Transports, and the family of the first model.
#[derive(Default)]
struct Ways {
    by_lane: BTreeMap<Lane, Arc<dyn Transport>>,
    model: Option<&'static str>,
}

/// Hands each request to the provider that its first request led to.
pub(super) struct Services {
    given: Option<String>,
    state: tokio::sync::Mutex<(Chosen, Ways)>,
}

/// What to name in place of the simulated model, for a dialect that it does not speak.
fn not_simulated(dialect: &str) -> Option<&'static str> {
    match dialect {
        "ollama" => Some("name a server with --provider http://127.0.0.1:11434"),
        "bedrock-converse" => Some("name the service with --provider https://bedrock-runtime.REGION.amazonaws.com"),
        _ => None,
    }
}

impl Services {
    pub(super) fn new(given: Option<&str>) -> Self {
        Self { given: given.map(str::to_owned), state: tokio::sync::Mutex::default() }
    }

    pub(super) async fn chosen(&self) -> Chosen {
        let state = self.state.lock().await;
        let (mut chosen, ways) = (state.0.clone(), &state.1);
        if let Some(family) = ways.model {
            // Its vectors were asked for before its first completion.
            chosen.others.remove(family);
        } else if chosen.model.is_none() {
            chosen.model = chosen.others.pop_first().map(|(_, only)| only);
        }
        chosen
    }

    async fn way(&self, request: &HttpRequest) -> Result<Arc<dyn Transport>, Unmet> {
        let mut state = self.state.lock().await;
        let (chosen, ways) = &mut *state;
        // A base URL that was given may speak several APIs.
        let own =
            self.given.as_deref().is_some_and(|given| given.contains("://")) && request.service != Service::Search;
        let lane = if own { Lane::Model } else { lane(request, &mut ways.model) };
        if let Some(way) = ways.by_lane.get(&lane) {
            if let Some(choice) = chosen.slot(lane).filter(|choice| choice.model.is_empty()) {
                choice.model = model_of(request);
            }
            return Ok(Arc::clone(way));
        }
        let service = if lane == Lane::Search { Service::Search } else { Service::Model };
        let mut choice = self.choice(request, lane);
        if choice.name.starts_with(SIMULATOR) {
            if let Some(server) = not_simulated(&choice.dialect) {
                let path = request.path.split('?').next().unwrap_or_default();
                let why = format!("{} {path} is not served by the simulated model: {server}", request.method);
                return Err(Unmet::Provider(why));
            }
            let port = match &chosen.simulator {
                Some((port, _)) => *port,
                None => simulate(chosen, &offered(request)).await?,
            };
            choice.base_url = choice.base_url.replace("PORT", &port.to_string());
        }
        let key = choice.key.as_ref().and_then(|name| std::env::var(name).ok()).map(|key| key.trim().to_owned());
        secrets::declare(key.clone().map(|key| (choice.name.clone(), key)));
        let dialect = wire::by_name(&choice.dialect)
            .ok_or_else(|| Unmet::Provider(format!("the dialect {} is unknown", choice.dialect)))?;
        let target = Target {
            base_url: choice.base_url.clone(),
            key,
            auth: dialect.auth,
            headers: dialect.headers,
            timeout: LIMIT,
            trial_header: false,
        };
        let served = [Some(service), (service == Service::Model).then_some(Service::Embeddings)];
        let targets = served.into_iter().flatten().map(|service| (service, target.clone())).collect();
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let way: Arc<dyn Transport> =
            Arc::new(LiveTransport::new(targets, clock).map_err(|why| Unmet::Provider(why.to_string()))?);
        ways.by_lane.insert(lane, Arc::clone(&way));
        match lane {
            Lane::Model => chosen.model = Some(choice),
            Lane::Search => chosen.search = Some(choice),
            Lane::Other(family) => {
                chosen.others.insert(family, choice);
            }
        }
        Ok(way)
    }

    fn choice(&self, request: &HttpRequest, lane: Lane) -> Choice {
        let (dialect, family) = match (wire::by_name(request.profile.name), lane) {
            (dialect, Lane::Search) => (dialect.map_or(SEARCH, |dialect| dialect.name()), "perplexity"),
            (Some(dialect), _) => (dialect.name(), family(dialect.name())),
            (None, Lane::Other(family)) => (dialect_of(family), family),
            (None, _) => ("openai-chat", "openai"),
        };
        let asked =
            format!("the agent asks by {} {}", request.method, request.path.split('?').next().unwrap_or_default());
        let given = self.given.as_deref().filter(|given| lane == Lane::Model || *given == SIMULATOR);
        let set = |variable: &str| std::env::var(variable).is_ok_and(|key| !key.trim().is_empty());
        let found = KNOWN.iter().find(|(name, of, _, key)| match given {
            Some(given) => *name == given,
            None => *of == family && set(key),
        });
        let model = model_of(request);
        let dialect = dialect.to_owned();
        if let Some((name, _, base_url, key)) = found {
            let why = if given.is_some() { format!("{asked}; --provider") } else { format!("{asked}; {key} is set") };
            let (name, base_url, key) = ((*name).to_owned(), (*base_url).to_owned(), Some((*key).to_owned()));
            return Choice { name, dialect, base_url, key, model, why };
        }
        if let Some(url) = given.filter(|given| *given != SIMULATOR) {
            let base_url = url.trim_end_matches('/').to_owned();
            return Choice {
                name: "own".to_owned(),
                dialect,
                base_url,
                key: None,
                model,
                why: format!("{asked}; --provider"),
            };
        }
        let base_url = match family {
            "openai" => "http://127.0.0.1:PORT/model/v1",
            "gemini" => "http://127.0.0.1:PORT/model/v1beta",
            "anthropic" => "http://127.0.0.1:PORT/model",
            _ => "http://127.0.0.1:PORT/search",
        };
        let name = match lane {
            Lane::Model => SIMULATOR.to_owned(),
            Lane::Search => format!("{SIMULATOR}-search"),
            Lane::Other(family) => format!("{SIMULATOR}-{family}"),
        };
        let keys: Vec<&str> = KNOWN.iter().filter(|(_, of, ..)| *of == family).map(|(.., key)| *key).take(1).collect();
        let why = match given {
            Some(_) => format!("{asked}; --provider"),
            None => format!("{asked}, and {} is not set: a simulated model answers", keys.concat()),
        };
        Choice { name, dialect, base_url: base_url.to_owned(), key: None, model, why }
    }
}

impl Transport for Services {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let way = self.way(&request).await.map_err(|why| TransportError::Invalid { message: why.to_string() })?;
            way.send(request).await
        })
    }
}

/// Whose request it is. The first completion decides which family is the model's; a request that any provider may get,
/// for the list of models for example, is the model's, too.
fn lane(request: &HttpRequest, model: &mut Option<&'static str>) -> Lane {
    if request.service == Service::Search {
        return Lane::Search;
    }
    let path = request.path.split('?').next().unwrap_or_default();
    let completion = wire::by_name(request.profile.name).map(|dialect| family(dialect.name()));
    let aside = match request.profile.name {
        profile if profile == OPENAI.profile.name => Some("openai"),
        profile if profile == GOOGLE.profile.name => Some("gemini"),
        _ if path.ends_with(":countTokens") => Some("gemini"),
        _ if path.contains("/messages/") => Some("anthropic"),
        _ => None,
    };
    if model.is_none() {
        *model = completion;
    }
    match completion.or(aside) {
        Some(wanted) if *model != Some(wanted) => Lane::Other(wanted),
        _ => Lane::Model,
    }
}

/// The dialect of a family whose first request is none for a completion.
fn dialect_of(family: &str) -> &'static str {
    match family {
        "anthropic" => "anthropic-messages",
        "gemini" => "gemini",
        _ => "openai-chat",
    }
}

pub(super) fn offered(request: &HttpRequest) -> Vec<ToolDefinition> {
    let dialect = wire::by_name(request.profile.name).filter(|_| request.service == Service::Model);
    let decoded = dialect.and_then(|dialect| dialect.decode_request(&request.path, &request.body).ok());
    decoded.map(|decoded| decoded.tools.to_vec()).unwrap_or_default()
}

/// Dialects whose requests go to the same providers.
fn family(dialect: &str) -> &'static str {
    match dialect {
        "anthropic-messages" => "anthropic",
        "gemini" => "gemini",
        _ => "openai",
    }
}

fn model_of(request: &HttpRequest) -> String {
    let in_path = || {
        let after = request.path.split("/models/").nth(1).or_else(|| request.path.split("/deployments/").nth(1))?;
        after.split([':', '/', '?']).next()
    };
    if request.service == Service::Embeddings {
        return String::new();
    }
    request.body.get("model").and_then(Value::as_str).or_else(in_path).unwrap_or_default().to_owned()
}

/// Starts a simulator for an agent with these tools; returns its port.
#[expect(clippy::disallowed_methods, reason = "a server is a task of its own")]
async fn simulate(chosen: &mut Chosen, offered: &[ToolDefinition]) -> Result<u16, Unmet> {
    let text = behaviour(offered);
    for port in (USUAL_PORT..USUAL_PORT + 20).chain([0]) {
        let behaviour = simulator::parse(&text).map_err(|why| Unmet::Simulator(why.problem.to_string()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if let Ok((bound, serving)) = simulator::serve(behaviour, address, Arc::new(RealClock::start())).await {
            tokio::spawn(serving);
            chosen.simulator = Some((bound.port(), text));
            return Ok(bound.port());
        }
    }
    Err(Unmet::Simulator("no port is free".to_owned()))
}

/// The behaviour file of a simulated model for an agent with these tools.
fn behaviour(offered: &[ToolDefinition]) -> String {
    let roles: Vec<String> = simulator::roles(offered)
        .into_iter()
        .filter(|proposed| proposed.sure)
        .map(|proposed| format!("  {}: {}\n", proposed.role, super::project::quoted(&proposed.tool)))
        .collect();
    let tools = if roles.is_empty() { String::new() } else { format!("tools:\n{}", roles.concat()) };
    format!(
        "# A simulated model and search service, for trying things out without a key. `rules` below `model` say what it calls and\n\
         # answers: `ragcheck schema behaviour --markdown`.\n\
         name: first-contact\nseed: 1\npace: declared\n{tools}model:\n  latency: {{constant: 500ms}}\n  \
         # rules:\n  #   - when: {{asks: refund}}\n  #     calls: [{{tool: search_docs, arguments: {{query: refund}}}}]\n  \
         #     answer: Refunds take 14 days.\n\
         search:\n  latency: {{constant: 800ms}}\nembeddings:\n  latency: {{constant: 50ms}}\n  dimensions: 64\n"
    )
}

/// Answers the requests of a second process as those of a first one were, whatever values differ in them.
pub(super) struct Echo {
    first: Vec<Passed>,
    left: std::sync::Mutex<Vec<Passed>>,
}

impl Echo {
    pub(super) fn new(first: Vec<Passed>) -> Self {
        Self { left: std::sync::Mutex::new(first.clone()), first }
    }

    /// The answer to the same request, or else to the one that has most in common with it. A process that is started once
    /// more, as a program that reads lines, asks again what it asked at its start.
    fn answer(&self, request: &HttpRequest) -> Option<Result<HttpResponse, TransportError>> {
        let mut left = lock(&self.left);
        if let Some(place) = equal(&left, request) {
            return Some(left.remove(place).result);
        }
        let again = equal(&self.first, request).map(|place| self.first[place].result.clone());
        again.or_else(|| nearest(&left, request).map(|place| left.remove(place).result))
    }
}

impl Transport for Echo {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let none = || TransportError::Invalid { message: "the first conversation asked no such thing".to_owned() };
        let answer = self.answer(&request).unwrap_or_else(|| Err(none()));
        Box::pin(std::future::ready(answer))
    }
}
