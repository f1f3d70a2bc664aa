//! What a recording cost when it was made, as far as services told their tokens and the project knows prices: the
//! best guess at what making it again costs.

use super::TrialRunner;
use crate::cassette::{Cassette, Exchange, Outcome};
use crate::plan::{Plan, PlannedTrial};
use crate::price::{Price, Tokens};
use crate::provider::wire;
use crate::settings::SearchSettings;
use crate::trace::EXTERNAL;
use crate::transport::{HttpRequest, HttpResponse, Service, Tariff, sse};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Calls and money.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spending {
    /// Requests to the model.
    pub model_calls: u64,
    /// Requests to the search service.
    pub search_calls: u64,
    /// US dollars for all that is known.
    pub dollars: f64,
    /// `provider/model` without a price.
    pub unpriced: BTreeSet<String>,
    /// Requests whose tokens the service did not tell, though they have a price.
    pub untold: u64,
}

impl Spending {
    /// Adds another lane's.
    pub fn add(&mut self, other: &Self) {
        self.model_calls += other.model_calls;
        self.search_calls += other.search_calls;
        self.dollars += other.dollars;
        self.unpriced.extend(other.unpriced.iter().cloned());
        self.untold += other.untold;
    }
}

impl TrialRunner {
    /// What the requests of a trial's recording came to.
    pub fn spending(&self, trial: &PlannedTrial, cassette: &Cassette) -> Spending {
        let mut spending = Spending::default();
        for exchange in &cassette.exchanges {
            // Embeddings cost a thousandth of an answer, a server of one's own nothing by the request.
            let own = [Service::Embeddings, Service::Knowledge].iter().any(|one| one.as_str() == exchange.service);
            if own {
                continue;
            }
            let search = exchange.service == Service::Search.as_str();
            *(if search { &mut spending.search_calls } else { &mut spending.model_calls }) += 1;
            let service = if search { Service::Search } else { Service::Model };
            let Some(model) = self.model_of(trial, service) else { continue };
            match (self.loaded.project.prices.get(&model), tokens(exchange)) {
                (None, _) => {
                    spending.unpriced.insert(model);
                }
                (Some(price), tokens) => match tokens.and_then(|tokens| price.of(tokens)) {
                    Some(dollars) => spending.dollars += dollars,
                    None => spending.untold += 1,
                },
            }
        }
        spending
    }

    /// `provider/model` of all services of a plan that have no price.
    pub fn unpriced(&self, plan: &Plan) -> BTreeSet<String> {
        let variants = plan.scenarios.iter().flat_map(|scenario| &scenario.variants);
        let declared = variants.filter_map(|variant| variant.settings.as_ref());
        let models = declared.flat_map(|settings| {
            let search = settings.search.as_ref().map(SearchSettings::price_name);
            [Some(settings.model.price_name()), search].into_iter().flatten()
        });
        models.filter(|model| !self.loaded.project.prices.contains_key(model)).collect()
    }

    /// `provider/model` of all models of a plan whose completions have no bound. What an agent that runs elsewhere asks is
    /// its own: its requests are looked at when they come.
    pub fn unbounded(&self, plan: &Plan) -> BTreeSet<String> {
        let variants = plan.scenarios.iter().flat_map(|scenario| &scenario.variants);
        let ours = variants.filter(|variant| variant.flow != EXTERNAL).filter_map(|variant| variant.settings.as_ref());
        ours.filter(|settings| settings.model.max_tokens.is_none())
            .map(|settings| settings.model.price_name())
            .collect()
    }

    /// What requests of a trial and their responses cost.
    pub(super) fn tariff(&self, trial: &PlannedTrial) -> Arc<dyn Tariff> {
        let price = |service| {
            let model = self.model_of(trial, service)?;
            self.loaded.project.prices.get(&model).copied()
        };
        tariff(price(Service::Model), price(Service::Search))
    }

    /// The name under which a trial's service has its price: `provider/model`.
    pub(super) fn model_of(&self, trial: &PlannedTrial, service: Service) -> Option<String> {
        let declared = self.declared(trial)?;
        match service {
            Service::Model => Some(declared.model.price_name()),
            Service::Search => declared.search.as_ref().map(SearchSettings::price_name),
            Service::Embeddings | Service::Knowledge | Service::Agent => None,
        }
    }
}

/// Tokens that a service may add to what is sent: its own instructions for tools, and marks around messages.
const ADDED_BY_MODEL: u64 = 1_000;
/// Tokens that a search service is taken to read and write, for want of a bound: an answer that was dearer is the guess
/// for the next.
const OF_A_SEARCH: u64 = 4_000;

/// What requests and responses cost at these prices.
pub(super) fn tariff(model: Option<Price>, search: Option<Price>) -> Arc<dyn Tariff> {
    Arc::new(Prices { model, search })
}

struct Prices {
    model: Option<Price>,
    search: Option<Price>,
}

impl Tariff for Prices {
    fn quote(&self, request: &HttpRequest) -> Option<f64> {
        // No token is shorter than a byte.
        let sent = serde_json::to_vec(&*request.body).ok()?.len() as u64;
        let tokens = |added: u64, output: u64| Tokens { input: Some(sent + added), cached: None, output: Some(output) };
        match request.service {
            Service::Search => self.search?.of(tokens(OF_A_SEARCH, OF_A_SEARCH)),
            // A base's own server has no price, and vectors cost next to nothing: neither is counted.
            Service::Knowledge | Service::Embeddings => Some(0.0),
            // Nothing is written for an embedding.
            _ if request.path.ends_with("/embeddings") => self.model?.of(tokens(0, 0)),
            _ => self.model?.of(tokens(ADDED_BY_MODEL, most_tokens(&request.body)?)),
        }
    }

    fn cost(&self, service: Service, profile: &str, response: &HttpResponse) -> Option<f64> {
        if response.status >= 400 || matches!(service, Service::Knowledge | Service::Embeddings) {
            return Some(0.0);
        }
        let price = if service == Service::Search { self.search } else { self.model };
        let stream = sse::is_stream(&response.headers, &response.body);
        price?.of(tokens_of(profile, stream, &response.body)?)
    }
}

/// The bound on the tokens of a completion that a request has, in any dialect.
fn most_tokens(body: &Value) -> Option<u64> {
    let bound = |fields: &Value| {
        let names = ["max_completion_tokens", "max_tokens", "max_output_tokens", "maxOutputTokens"];
        names.into_iter().find_map(|name| fields.get(name)?.as_u64())
    };
    let one = bound(body).or_else(|| bound(body.get("generationConfig")?));
    let times = body.get("n").and_then(Value::as_u64).unwrap_or(1).max(1);
    one.map(|one| one.saturating_mul(times))
}

/// The tokens of one exchange: none of a request that failed, `None` when the service did not tell.
fn tokens(exchange: &Exchange) -> Option<Tokens> {
    let nothing = Tokens { input: Some(0), cached: None, output: Some(0) };
    let Outcome::Response { status, headers, body, .. } = &exchange.outcome else { return Some(nothing) };
    if *status >= 400 {
        return Some(nothing);
    }
    let stream = sse::is_stream(headers, body);
    tokens_of(&exchange.profile, stream, body)
}

/// The tokens that an answer tells of, by the name of its dialect.
fn tokens_of(dialect: &str, stream: bool, body: &[u8]) -> Option<Tokens> {
    let dialect = wire::by_name(dialect)?;
    let document: Value = if stream {
        let mut assembler = dialect.assembler();
        for event in sse::read_all(body).ok()? {
            assembler.push(&event).ok()?;
        }
        assembler.document()
    } else {
        serde_json::from_slice(body).ok()?
    };
    let usage = dialect.decode_response(&document).ok()?.usage;
    Some(Tokens { input: usage.input, cached: usage.cached, output: usage.output })
}
