//! Prices requests before they are sent, and responses by the tokens that services report.

use super::opened::Opened;
use crate::cassette::{Exchange, Outcome};
use crate::plan::PlannedTrial;
use crate::provider::observed::{self, Asks};
use crate::provider::wire::embeddings_shapes::{Shape, model_of as model_of_vectors};
use crate::provider::{EXACT, wire};
use crate::settings::SearchSettings;
use crate::settings::price::{self, Price, Tokens};
use crate::transport::{HttpRequest, HttpResponse, Service, Tariff};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Prices requests of a trial and their responses.
pub(super) fn tariff_of(opened: &Opened, planned: &PlannedTrial) -> Arc<dyn Tariff> {
    let price = |service| {
        let model = model_of(opened, planned, service)?;
        opened.loaded.project.prices.get(&model).copied()
    };
    Arc::new(Prices {
        model: price(Service::Model),
        search: price(Service::Search),
        embeddings: opened.flow(planned).and_then(|setup| dearest(opened, setup.retrieval.embeddings())),
        agent: rates(opened, planned),
    })
}

/// Prices of the providers that an agent asks, by service. Which model it asks, it says in its requests.
fn rates(opened: &Opened, planned: &PlannedTrial) -> BTreeMap<Service, Rates> {
    let (Some(agent), prices) = (opened.agent(planned), &opened.loaded.project.prices) else { return BTreeMap::new() };
    let providers = agent.services.providers().into_iter();
    let rates = providers.map(|(service, provider)| {
        let own = model_of(opened, planned, service).and_then(|name| prices.get(&name).copied());
        let of = |name: &str| name.strip_prefix(provider).is_some_and(|rest| rest.starts_with('/'));
        let theirs = prices.iter().filter(|(name, _)| of(name)).map(|(name, price)| (name.clone(), *price));
        (service, Rates { provider: provider.to_owned(), own, by_model: theirs.collect() })
    });
    rates.collect()
}

/// The dearest of these models, `None` where one has no price: a request does not tell which of them it is for.
fn dearest(opened: &Opened, models: &BTreeSet<String>) -> Option<Price> {
    let prices = models.iter().map(|model| opened.loaded.project.prices.get(model).copied());
    let prices = prices.collect::<Option<Vec<Price>>>()?;
    prices.into_iter().max_by(|one, other| one.input.total_cmp(&other.input))
}

/// Name under which a trial's service is priced: `provider/model`.
pub(crate) fn model_of(opened: &Opened, planned: &PlannedTrial, service: Service) -> Option<String> {
    let declared = opened.declared(planned)?;
    match service {
        Service::Model if declared.model.name.is_empty() => None,
        Service::Model => Some(declared.model.price_name()),
        Service::Search => {
            declared.search.as_ref().filter(|search| !search.name.is_empty()).map(SearchSettings::price_name)
        }
        Service::Provider(name) => opened.agent(planned)?.services.price_name(name),
        Service::Embeddings => opened.flow(planned)?.retrieval.embeddings().first().cloned(),
        _ => None,
    }
}

/// Provider of a service of an external agent's trial.
pub(crate) fn provider_of<'o>(opened: &'o Opened, planned: &PlannedTrial, service: Service) -> Option<&'o str> {
    // An agent asks for vectors where it asks its model.
    let service = if service == Service::Embeddings { Service::Model } else { service };
    opened.agent(planned)?.services.providers().get(&service).copied()
}

/// Tokens that a service may add to a request: its own tool instructions, and separators between messages.
const ADDED_BY_MODEL: u64 = 1_000;
/// Assumed input and output tokens of a search, which has no limit. After a more expensive answer, that answer's tokens
/// become the assumption.
const OF_A_SEARCH: u64 = 4_000;

/// Prices requests to a model of that price; requests to other services are free.
pub(super) fn tariff(model: Option<Price>) -> Arc<dyn Tariff> {
    Arc::new(Prices { model, ..Prices::default() })
}

#[derive(Debug, Default)]
struct Prices {
    model: Option<Price>,
    search: Option<Price>,
    embeddings: Option<Price>,
    /// Of an external agent: prices by service.
    agent: BTreeMap<Service, Rates>,
}

/// Prices of one provider of an external agent.
#[derive(Debug, Clone, Default)]
struct Rates {
    provider: String,
    /// The price of the model that the scenario names.
    own: Option<Price>,
    /// All prices of the provider, by `provider/model`.
    by_model: price::Prices,
}

impl Rates {
    fn of(&self, model: Option<&str>) -> Option<Price> {
        price::price_of(&self.by_model, &self.provider, model?).copied()
    }
}

impl Prices {
    /// The price of vectors; `path` and `body` are those of a request, or `body` is an answer that names its model.
    fn of_vectors(&self, service: Service, path: &str, body: &Value) -> Option<Price> {
        // An agent asks for vectors where it asks its model.
        let service = if service == Service::Embeddings { Service::Model } else { service };
        self.embeddings.or_else(|| self.agent.get(&service)?.of(model_of_vectors(path, body)))
    }

    /// The price of a completion or an answer of a search service: of the model that it names, else of the scenario's.
    fn of_answer(&self, service: Service, model: Option<&str>) -> Option<Price> {
        let own = match service {
            Service::Model => self.model,
            Service::Search => self.search,
            _ => None,
        };
        let rates = self.agent.get(&service);
        rates.and_then(|rates| rates.of(model)).or(own).or_else(|| rates?.own)
    }
}

impl Tariff for Prices {
    fn quote(&self, request: &HttpRequest) -> Option<f64> {
        // A token has at least one byte.
        let body = serde_json::to_vec(&*request.body).ok()?;
        let sent = body.len() as u64;
        let tokens =
            |added: u64, output: u64| Tokens { input: Some(sent + added), output: Some(output), ..Tokens::default() };
        let price = || self.of_answer(request.service, model_of_vectors(&request.path, &request.body));
        match (request.service, observed::asks(request)) {
            // A knowledge server has no price, and a managed service has none per token.
            (Service::Knowledge | Service::ManagedRetrieval | Service::Declared(_), _) => Some(0.0),
            // Embeddings have no output tokens.
            (service, Asks::Vectors) => self.of_vectors(service, &request.path, &request.body)?.of(tokens(0, 0)),
            // Listing models costs nothing.
            _ if is_free(request) => Some(0.0),
            (Service::Search, _) | (_, Asks::Search) => price()?.of(tokens(OF_A_SEARCH, OF_A_SEARCH)),
            _ if request.path.ends_with("/embeddings") => self.model?.of(tokens(0, 0)),
            _ => {
                let read = tokens(ADDED_BY_MODEL, most_tokens(&request.body)?);
                // What it asks to keep in the provider's cache may cost more.
                let keeps = |mark: &str| memchr::memmem::find(&body, mark.as_bytes()).is_some();
                let written = read.input.filter(|_| keeps("\"cache_control\"") || keeps("\"cachePoint\""));
                price()?.of(Tokens { written, ..read })
            }
        }
    }

    fn cost(&self, service: Service, profile: &str, response: &HttpResponse) -> Option<f64> {
        let free = matches!(service, Service::Knowledge | Service::ManagedRetrieval | Service::Declared(_));
        if response.status >= 400 || free {
            return Some(0.0);
        }
        if service == Service::Embeddings || Shape::is_named(profile) {
            let body: Value = serde_json::from_slice(&response.body).ok()?;
            return self.of_vectors(service, "", &body)?.of(tokens_read(profile, &response.body)?);
        }
        if profile == EXACT.name {
            return Some(0.0);
        }
        let (model, tokens) = told(profile, &response.headers, &response.body)?;
        self.of_answer(service, Some(&model))?.of(tokens)
    }
}

/// Whether a request of the agent's asks for no completion: for a list of models, how many tokens a text has, or something
/// of a conversation that the provider keeps.
fn is_free(request: &HttpRequest) -> bool {
    let path = request.path.split('?').next().unwrap_or_default();
    let ends = ["/count_tokens", ":countTokens", "/api/show", "/input_tokens", "/cancel"];
    request.method != "POST" || path.starts_with("/conversations") || ends.iter().any(|end| path.ends_with(end))
}

/// The bound on the tokens of a completion that a request has, in any dialect.
fn most_tokens(body: &Value) -> Option<u64> {
    let bound = |fields: &Value| {
        let names = ["max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"];
        names.into_iter().find_map(|name| fields.get(name)?.as_u64())
    };
    let nested = || ["generationConfig", "options"].into_iter().find_map(|key| bound(body.get(key)?));
    let one = bound(body).or_else(nested);
    let times = body.get("n").and_then(Value::as_u64).unwrap_or(1).max(1);
    one.map(|one| one.saturating_mul(times))
}

/// Token usage of one exchange: zero for a failed request, `None` if the service did not report it.
pub(crate) fn tokens(exchange: &Exchange) -> Option<Tokens> {
    let nothing = Tokens { input: Some(0), output: Some(0), ..Tokens::default() };
    let Outcome::Response { status, headers, body, .. } = &exchange.outcome else { return Some(nothing) };
    if *status >= 400 {
        return Some(nothing);
    }
    if exchange.service == Service::Embeddings.as_str() || Shape::is_named(&exchange.profile) {
        return tokens_read(&exchange.profile, body);
    }
    told(&exchange.profile, headers, body).map(|(_, tokens)| tokens)
}

/// Token usage reported in an embeddings response.
fn tokens_read(profile: &str, body: &[u8]) -> Option<Tokens> {
    let read = Shape::named(profile).tokens(&serde_json::from_slice(body).ok()?)?;
    Some(Tokens { input: Some(read), output: Some(0), ..Tokens::default() })
}

/// Model and token usage reported in a completion of the named dialect.
fn told(dialect: &str, headers: &[(String, String)], body: &[u8]) -> Option<(String, Tokens)> {
    let document = observed::document(dialect, headers, body)?;
    let response = wire::by_name(dialect)?.decode_response(&document).ok()?;
    let usage = response.usage;
    Some((
        response.model,
        Tokens { input: usage.input, cached: usage.cached, written: usage.written, output: usage.output },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DEAR: Price = Price { input: 1_000_000.0, cached: None, cache_write: None, output: 0.0, request: None };

    fn request(service: Service, path: &str, body: Value) -> HttpRequest {
        let (profile, body) = (&EXACT, Arc::new(body));
        HttpRequest::new(service, profile, "POST", path, body)
    }

    #[test]
    fn embeddings_are_reserved_by_their_bytes_and_charged_by_the_tokens_that_the_answer_tells() {
        let prices = Prices { embeddings: Some(DEAR), ..Prices::default() };
        let body = json!({"input": ["valve"], "model": "small"});
        let bytes = body.to_string().len() as f64;
        let asked = request(Service::Embeddings, "/embeddings", body);
        assert_eq!(prices.quote(&asked), Some(bytes));
        let answer = |body: Value| HttpResponse {
            status: 200,
            headers: Vec::new(),
            body: body.to_string().into(),
            took: std::time::Duration::ZERO,
            chunks: Vec::new(),
        };
        let told = answer(json!({"data": [], "usage": {"prompt_tokens": 3, "total_tokens": 3}}));
        assert_eq!(prices.cost(Service::Embeddings, "openai-embeddings", &told), Some(3.0));
        let untold = answer(json!({"data": []}));
        assert_eq!(prices.cost(Service::Embeddings, "openai-embeddings", &untold), None);
        assert_eq!(Prices::default().quote(&asked), None, "without a price nothing bounds it");
    }

    #[test]
    fn an_embedding_of_a_foreign_agent_is_priced_by_the_model_that_it_names_and_counting_is_free() {
        let rates = Rates {
            provider: "acme".to_owned(),
            own: None,
            by_model: BTreeMap::from([("acme/small".to_owned(), DEAR)]),
        };
        let prices = Prices {
            agent: [(Service::Model, rates.clone()), (Service::provider("fast"), rates)].into(),
            ..Prices::default()
        };
        let body = |model: &str| json!({"input": [[101, 7]], "model": model});
        let asked = |model| prices.quote(&request(Service::Embeddings, "/embeddings", body(model)));
        let by_path = request(Service::Embeddings, "/models/small:embedContent", json!({}));
        assert_eq!(prices.quote(&by_path), Some(2.0), "Google's is in the path");
        assert_eq!((asked("small"), asked("large")), (Some(body("small").to_string().len() as f64), None));
        for path in [
            "/v1/messages/count_tokens", "/models/g:countTokens?x=1", "/conversations", "/conversations/c/items?x=1",
            "/responses/r/cancel", "/responses/input_tokens",
        ] {
            assert_eq!(Prices::default().quote(&request(Service::Model, path, json!({}))), Some(0.0), "{path}");
        }
        assert_eq!(Prices::default().quote(&request(Service::Model, "/v1/messages", json!({}))), None);
        for service in [Service::Model, Service::provider("fast")] {
            let body = json!({"model": "small", "max_tokens": 0});
            let quoted = prices.quote(&request(service, "/v1/messages", body.clone()));
            assert_eq!(quoted, Some((body.to_string().len() + 1_000) as f64), "the agent names its model");
        }
    }

    #[test]
    fn a_completion_has_the_price_of_the_model_that_it_names_else_of_the_scenarios() {
        let price = |output: f64| Price { output, ..Price::default() };
        let named = [("acme/m", 1e6), ("acme/big", 1e8)].map(|(name, output)| (name.to_owned(), price(output)));
        let rates = Rates { provider: "acme".to_owned(), own: Some(price(1e6)), by_model: named.into() };
        let fast = Service::provider("fast");
        let agent = [(Service::Model, rates.clone()), (fast, rates)].into();
        let prices = Prices { model: Some(price(1e6)), agent, ..Prices::default() };
        for service in [Service::Model, fast] {
            for (model, dollars) in [("m", 10.0), ("big", 1000.0), ("big-2026-01-02", 1000.0), ("alias", 10.0)] {
                let asked = request(service, "/chat/completions", json!({"model": model, "max_tokens": 10}));
                assert_eq!(prices.quote(&asked), Some(dollars), "{model}");
            }
        }
    }

    #[test]
    fn a_search_is_reserved_before_it_is_sent_and_a_server_of_ones_own_costs_nothing() {
        let prices = Prices { search: Some(Price { request: Some(2.0), ..Price::default() }), ..Prices::default() };
        assert_eq!(prices.quote(&request(Service::Search, "/v1/agent", json!({}))), Some(2.0));
        assert_eq!(prices.quote(&request(Service::Knowledge, "/query", json!({}))), Some(0.0));
    }
}
