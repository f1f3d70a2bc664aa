//! Usage of a turn or a whole case: model tokens and money.
//!
//! Tokens are the model's, over all completions. Money covers the model, the search service, managed retrieval and the
//! vectors of queries, by the prices in the plan; not what an external agent embeds, which its traffic shows in part. Usage
//! that a service does not report, or a missing price, makes the sum unknown, never smaller; a failed request has no tokens.

use super::{Held, Seen, TrialView, TurnView, Unknown};
use crate::plan::{NamedRetrieval, Plan, VariantSettings};
use crate::scenario::expect::{CostExpectation, Expectation, TokensExpectation};
use crate::scenario::external::{DeclaredService, SHORT_FORMS};
use crate::settings::price::{Price, Prices, Tokens, dollars, price_of, price_of_any};
use crate::trace::{
    Attempt, EXTERNAL, Mode, Reply, SearchResult, ToolResult, TrialError, TrialErrorKind, VectorUsage, What,
};
use std::collections::{BTreeMap, BTreeSet};

/// Service of attempts that request vectors.
const EMBEDDINGS: &str = "embeddings";

/// Services of a variant that cost money, and their prices in the plan.
#[derive(Debug, Clone)]
pub(crate) struct Charged<'p> {
    prices: &'p Prices,
    settings: Option<&'p VariantSettings>,
    /// Services that an external agent has beside these, by name.
    services: Option<&'p BTreeMap<String, DeclaredService>>,
    /// Whether the traces are imported: their models alone are known.
    is_imported: bool,
}

impl<'p> Charged<'p> {
    /// Those of a variant of a planned scenario.
    pub(crate) fn of(plan: &'p Plan, scenario: usize, variant: &str) -> Self {
        let scenario = plan.scenarios.get(scenario);
        let planned = scenario.and_then(|scenario| scenario.variant(variant));
        let agent = scenario.and_then(|scenario| scenario.agent.as_ref());
        let agent = agent.filter(|_| planned.is_some_and(|planned| planned.flow == EXTERNAL));
        Self {
            prices: &plan.prices,
            settings: planned.and_then(|planned| planned.settings.as_ref()),
            services: agent.map(|agent| &agent.services),
            is_imported: plan.mode == Some(Mode::Imported),
        }
    }

    /// Whether the plan says which services are asked.
    pub(crate) fn is_known(&self) -> bool {
        self.settings.is_some()
    }

    /// Services without a price, `provider/model`; `provider/*` if the agent names the model, and no model of the
    /// provider has a price.
    pub(crate) fn unpriced(&self) -> BTreeSet<String> {
        let Some(settings) = self.settings else { return BTreeSet::new() };
        let own = (settings.model.provider.as_str(), settings.model.name.as_str());
        let search = settings.search.as_ref().map(|search| (search.provider.as_str(), search.name.as_str()));
        let others = self.services.into_iter().flatten().filter(|(name, _)| !SHORT_FORMS.contains(&name.as_str()));
        let others =
            others.filter_map(|(_, one)| Some((one.provider.as_deref()?, one.name.as_deref().unwrap_or_default())));
        let priced = |(provider, model): &(&str, &str)| {
            let of = |name: &String| name.strip_prefix(provider).is_some_and(|rest| rest.starts_with('/'));
            if model.is_empty() {
                self.prices.keys().any(of)
            } else {
                self.prices.contains_key(&format!("{provider}/{model}"))
            }
        };
        let all = [Some(own), search].into_iter().flatten().chain(others).filter(|one| !priced(one));
        let named = all.map(|(provider, model)| format!("{provider}/{}", if model.is_empty() { "*" } else { model }));
        let managed = settings.managed_retrieval.as_ref().map(NamedRetrieval::price_name);
        named.chain(managed.filter(|name| !self.prices.contains_key(name))).collect()
    }

    /// The price of a completion, or of a search service's answer: by the model that the answer names, else by the one that
    /// the scenario names.
    fn answer(&self, service: Option<&str>, searches: bool, model: &str) -> Option<&'p Price> {
        if self.is_imported {
            return price_of_any(self.prices, model);
        }
        let settings = self.settings?;
        let (provider, named) = match service {
            Some(name) => {
                let declared = self.services?.get(name)?;
                (declared.provider.as_deref()?, declared.name.as_deref().unwrap_or_default())
            }
            None if searches => settings.search.as_ref().map(|one| (one.provider.as_str(), one.name.as_str()))?,
            None => (settings.model.provider.as_str(), settings.model.name.as_str()),
        };
        price_of(self.prices, provider, model).or_else(|| self.prices.get(&format!("{provider}/{named}")))
    }

    /// The cost of an answered request for vectors; `None` if it is unknown.
    fn vectors(&self, usage: Option<&VectorUsage>) -> Option<f64> {
        let usage = usage?;
        let price = self.prices.get(&usage.model)?;
        let is_free = price.input == 0.0 && price.request.unwrap_or(0.0) == 0.0;
        let input = usage.input_tokens.or_else(|| is_free.then_some(0));
        price.of(Tokens { input, output: Some(0), ..Tokens::default() })
    }

    fn managed(&self) -> Option<&'p Price> {
        self.prices.get(&self.settings?.managed_retrieval.as_ref()?.price_name())
    }
}

/// Usage summed over events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Taken {
    /// Model calls, failed ones included.
    pub model_calls: u32,
    completions: u32,
    /// Completions that do not report their tokens.
    silent: u32,
    /// Input tokens, cached ones included; `None` where a completion does not report them.
    pub input: Option<u64>,
    /// Input tokens from the provider's cache, as far as reported; `None` when no completion reports any.
    pub cached: Option<u64>,
    /// Output tokens; `None` where a completion does not report them.
    pub output: Option<u64>,
    /// US dollars; `None` when part of the sum is unknown.
    pub cost: Option<f64>,
    /// Reported input and output tokens.
    told: (u128, u128),
    /// US dollars from known prices.
    known: f64,
}

/// Adds tokens to a sum: `None` if either is unknown or the sum overflows 64 bits.
pub(crate) fn plus(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    sum?.checked_add(more?)
}

impl Taken {
    /// Sums the usage of events; without `charged`, the cost is unknown.
    pub(crate) fn of<'e>(events: impl IntoIterator<Item = &'e What>, charged: Option<&Charged<'_>>) -> Self {
        let mut taken = Self { input: Some(0), output: Some(0), cost: Some(0.0), ..Self::default() };
        for event in events {
            taken.vectors(event, charged);
            match event {
                What::ModelCalled(called) => {
                    taken.model_calls += 1;
                    let Reply::Completion(done) = &called.reply else { continue };
                    // Every completion has input: a service that reports 0 does not count.
                    let input = done.input_tokens.filter(|tokens| *tokens > 0);
                    let (cached, written, output) = (done.cached_tokens, done.cache_write_tokens, done.output_tokens);
                    let tokens = Tokens { input, cached, written, output };
                    taken.completion(tokens);
                    taken.charge(
                        charged.and_then(|one| one.answer(called.service.as_deref(), false, &done.model)),
                        tokens,
                    );
                }
                what => match what.given() {
                    Some(ToolResult::External(found)) if found.is_written() => {
                        let (input, cached, output) = (found.input_tokens, found.cached_tokens, found.output_tokens);
                        let service = what.service();
                        let price = charged.and_then(|one| one.answer(service, true, &found.model));
                        taken.charge(price, Tokens { input, cached, written: None, output });
                    }
                    Some(ToolResult::Search(SearchResult { managed: Some(answer), .. })) => {
                        let (input, output) = (answer.input_tokens, answer.output_tokens);
                        taken.charge(charged.and_then(Charged::managed), Tokens { input, output, ..Tokens::default() });
                    }
                    _ => {}
                },
            }
        }
        taken
    }

    fn completion(&mut self, tokens: Tokens) {
        self.completions += 1;
        self.silent += u32::from(tokens.input.is_none() || tokens.output.is_none());
        self.input = plus(self.input, tokens.input);
        self.output = plus(self.output, tokens.output);
        self.cached = tokens.cached.map_or(self.cached, |more| Some(self.cached.unwrap_or(0).saturating_add(more)));
        self.told.0 += u128::from(tokens.input.unwrap_or(0));
        self.told.1 += u128::from(tokens.output.unwrap_or(0));
    }

    /// Charges the vectors that were requested for an event.
    fn vectors(&mut self, event: &What, charged: Option<&Charged<'_>>) {
        let Some(charged) = charged.filter(|charged| charged.services.is_none()) else { return };
        let is_answered = |one: &&Attempt| one.cause.is_none() && one.status.is_some();
        let asked = event.attempts().iter().filter(|one| one.service.as_deref() == Some(EMBEDDINGS));
        for one in asked.filter(is_answered) {
            self.add(charged.vectors(one.vectors.as_ref()));
        }
    }

    fn charge(&mut self, price: Option<&Price>, tokens: Tokens) {
        self.add(price.and_then(|price| price.of(tokens)));
    }

    fn add(&mut self, dollars: Option<f64>) {
        self.cost = self.cost.zip(dollars).map(|(sum, more)| sum + more);
        self.known += dollars.unwrap_or(0.0);
    }
}

/// Checks the usage of `turns` together.
pub(super) fn checks(expect: &Expectation, turns: &[&TurnView<'_>], view: &TrialView<'_>) -> Vec<(String, Held)> {
    if expect.tokens.is_none() && expect.cost.is_none() {
        return Vec::new();
    }
    let charged = Charged::of(view.plan, view.trial.scenario, &view.trial.lane.variant);
    let taken = Taken::of(turns.iter().flat_map(|turn| turn.events.iter().copied()), Some(&charged));
    let mut results = Vec::new();
    if let Some(TokensExpectation { at_most, input_at_most, output_at_most }) = &expect.tokens {
        let (input, output) = taken.told;
        for (name, limit, told) in [
            ("at_most", at_most, input + output),
            ("input_at_most", input_at_most, input),
            ("output_at_most", output_at_most, output),
        ] {
            if let Some(limit) = limit {
                results.push((format!("tokens.{name}: {limit}"), tokens(&taken, *limit, told)));
            }
        }
    }
    if let Some(CostExpectation { at_most }) = &expect.cost {
        let what = format!("cost.at_most: {}", dollars(*at_most));
        let unpriced: Vec<String> = charged.unpriced().into_iter().collect();
        let why = match unpriced.as_slice() {
            [] if charged.is_imported => "a model has no price, or a service did not report its tokens".to_owned(),
            [] => "not every service reported its tokens, or an embeddings model has no price".to_owned(),
            unpriced => format!("no price of {}", unpriced.join(", ")),
        };
        results.push((what, cost(&taken, *at_most, &why)));
    }
    results
}

fn unknown(why: impl std::fmt::Display) -> Held {
    Err(Seen::unknown(format!("not measured: {why}")))
}

/// Compares tokens with a limit. The reported part alone may already exceed it, and then so does the sum.
fn tokens(taken: &Taken, limit: u32, told: u128) -> Held {
    let least = if taken.silent > 0 { "at least " } else { "" };
    match (told > u128::from(limit), taken.completions, taken.silent) {
        (true, ..) => Err(Seen::new(format!("it took {least}{told} tokens"))),
        (false, 0, _) => unknown("no completion of the model"),
        (false, _, 0) => Ok(()),
        (false, all, silent) => unknown(format!("{silent} of {all} completions did not report their tokens")),
    }
}

fn cost(taken: &Taken, limit: f64, why: &str) -> Held {
    let least = if taken.cost.is_none() { "at least " } else { "" };
    // Sums of prices carry rounding errors: a sum equal to the limit as written is within it.
    if taken.known > limit + limit.abs() * 1e-9 {
        return Err(Seen::new(format!("it cost {least}{}", dollars(taken.known))));
    }
    match taken.cost {
        Some(_) if taken.completions == 0 => unknown("no completion of the model"),
        Some(_) => Ok(()),
        None => unknown(why),
    }
}

/// Reason why a trial in which all other checks hold is an ERROR: one of its expectations is undetermined.
pub(crate) fn not_measured(checks: &[super::Check]) -> Option<TrialError> {
    let mut failing = checks.iter().filter(|check| !check.passed).peekable();
    let first = failing.peek().copied()?.clone();
    let why = first.unknown?;
    let only = failing.all(|check| check.unknown.is_some());
    let (kind, of, remedy) = match why {
        Unknown::Usage => (
            TrialErrorKind::UsageUnknown,
            "what a case expects of tokens or cost",
            "remove the expectation, add the price, or let the service report its tokens",
        ),
        Unknown::Traffic => (
            TrialErrorKind::NotShown,
            "what a case expects of its agent",
            "let the agent show it (results in a later message to its model, sources in its reply: `target.sources`), or \
             remove the expectation",
        ),
    };
    only.then(|| TrialError {
        kind,
        message: format!("{}: {}", first.what, first.seen),
        cause: format!("{of} is {}", first.seen),
        detail: vec![remedy.to_owned()],
    })
}

#[cfg(test)]
#[path = "taken_tests.rs"]
mod tests;
