//! Estimates what re-recording costs: tokens that services reported in the recording, times the project's prices.

use crate::cassette::Cassette;
use crate::plan::{Plan, PlannedScenario, PlannedTrial, PlannedVariant, VariantSettings};
use crate::provider::wire::embeddings_shapes::Shape;
use crate::provider::{EXACT, wire};
use crate::scenario::Loaded;
use crate::scenario::external::DeclaredService;
use crate::settings::{ModelSettings, SearchSettings};
use crate::trace::EXTERNAL;
use crate::transport::Service;
use crate::trial::{Opened, model_of, provider_of, tokens};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Calls and money.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Spending {
    /// Requests to the model.
    pub model_calls: u64,
    /// Requests to the search service.
    pub search_calls: u64,
    /// Requests for embeddings.
    pub embedding_calls: u64,
    /// US dollars of all requests whose tokens and price are known.
    pub dollars: f64,
    /// Models without a price, as `provider/model`.
    pub unpriced: BTreeSet<String>,
    /// Requests to priced models whose responses reported no token usage.
    pub untold: u64,
}

impl Spending {
    /// Adds the spending of another lane.
    pub(crate) fn add(&mut self, other: &Self) {
        self.model_calls += other.model_calls;
        self.search_calls += other.search_calls;
        self.embedding_calls += other.embedding_calls;
        self.dollars += other.dollars;
        self.unpriced.extend(other.unpriced.iter().cloned());
        self.untold += other.untold;
    }
}

/// Spending of all requests in a trial's recording.
pub(crate) fn spending(opened: &Opened, planned: &PlannedTrial, cassette: &Cassette) -> Spending {
    let mut spending = Spending::default();
    for exchange in &cassette.exchanges {
        let service = match exchange.service.as_str() {
            // A self-hosted server costs nothing per request, and a managed service has no price per token.
            service if service == Service::Knowledge.as_str() => continue,
            service if service == Service::ManagedRetrieval.as_str() => continue,
            service if service == Service::Embeddings.as_str() => Service::Embeddings,
            service => Service::provider(service),
        };
        let vectors = service == Service::Embeddings || Shape::is_named(&exchange.profile);
        // Listing models is not a completion and has no price; an HTTP service of an agent has none either.
        if exchange.profile == EXACT.name && !vectors {
            continue;
        }
        match wire::by_name(&exchange.profile) {
            _ if vectors => spending.embedding_calls += 1,
            Some(dialect) if service == Service::Search || dialect.searches => spending.search_calls += 1,
            _ => spending.model_calls += 1,
        }
        // An agent says in its requests which model it asks.
        let asked = || Some(format!("{}/{}", provider_of(opened, planned, service)?, exchange.drift.model));
        let named = model_of(opened, planned, service).filter(|_| !vectors || !planned.is_external());
        let is_priced = |model: &String| opened.loaded.project.prices.contains_key(model);
        let Some(model) = asked().filter(is_priced).or(named).or_else(asked) else { continue };
        match (opened.loaded.project.prices.get(&model), tokens(exchange)) {
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

/// Models of a plan without a price (`provider/model`), with the scenario files that name them.
pub(crate) fn unpriced(loaded: &Loaded, plan: &Plan) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    for scenario in &plan.scenarios {
        let project = &loaded.project;
        for (variant, settings) in declared(scenario) {
            let search = settings.search.as_ref().filter(|search| !search.name.is_empty());
            let search = search.map(SearchSettings::price_name);
            let bases = scenario.knowledge.values().filter(|_| variant.flow != EXTERNAL);
            let bases = bases.filter_map(|place| project.knowledge_bases.get(place));
            let model = Some(&settings.model).filter(|model| !model.name.is_empty()).map(ModelSettings::price_name);
            let agent = scenario.agent.iter().filter(|_| variant.flow == EXTERNAL);
            let services = agent.flat_map(|agent| agent.services.values().filter_map(DeclaredService::price_name));
            let models = [model, search].into_iter().flatten().chain(services);
            for model in models.chain(bases.filter_map(|base| Some(base.embeddings.as_ref()?.price_name()))) {
                if !project.prices.contains_key(&model) {
                    found.entry(model).or_default().insert(scenario.file.clone());
                }
            }
        }
    }
    found
}

/// Models of a plan whose completions have no token limit (`provider/model`), with the scenario files that name
/// them. External agents are left out: they set their own limits, which are checked request by request.
pub(crate) fn unbounded(plan: &Plan) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    for scenario in &plan.scenarios {
        for (variant, settings) in declared(scenario) {
            if variant.flow != EXTERNAL && settings.model.max_tokens.is_none() {
                found.entry(settings.model.price_name()).or_default().insert(scenario.file.clone());
            }
        }
    }
    found
}

/// Variants of a scenario whose settings are known.
fn declared(scenario: &PlannedScenario) -> impl Iterator<Item = (&PlannedVariant, &VariantSettings)> {
    scenario.variants.iter().filter_map(|variant| Some((variant, variant.settings.as_ref()?)))
}
