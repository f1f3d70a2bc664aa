//! Estimates what re-recording costs: tokens that services reported in the recording, times the project's prices.

use crate::cassette::Cassette;
use crate::plan::{Plan, PlannedScenario, PlannedTrial, PlannedVariant, VariantSettings};
use crate::provider::EXACT;
use crate::scenario::Loaded;
use crate::settings::SearchSettings;
use crate::trace::EXTERNAL;
use crate::transport::Service;
use crate::trial::{Opened, model_of, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// Calls and money.
#[derive(Debug, Clone, Default, PartialEq)]
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
            service if service == Service::Search.as_str() => Service::Search,
            _ => Service::Model,
        };
        // Listing models is not a completion and has no price.
        if exchange.profile == EXACT.name && matches!(service, Service::Model | Service::Search) {
            continue;
        }
        match service {
            Service::Search => spending.search_calls += 1,
            Service::Embeddings => spending.embedding_calls += 1,
            _ => spending.model_calls += 1,
        }
        let embedded = || Some(format!("{}/{}", opened.declared(planned)?.model.provider, exchange.drift.model));
        let named = model_of(opened, planned, service);
        let own = named.is_none() && service == Service::Embeddings && planned.is_external();
        let Some(model) = named.or_else(|| embedded().filter(|_| own)) else { continue };
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
            let search = settings.search.as_ref().map(SearchSettings::price_name);
            let bases = scenario.knowledge.values().filter(|_| variant.flow != EXTERNAL);
            let bases = bases.filter_map(|place| project.knowledge_bases.get(place));
            let models = [Some(settings.model.price_name()), search].into_iter().flatten();
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
