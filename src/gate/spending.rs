//! Tokens and cost of a run, by trial, case, variant and in total.
//!
//! Tokens are the model's. The cost covers the model, the search service, managed retrieval and the vectors of queries, by
//! the prices in the plan. Usage that a service does not report, or a missing price, makes the cost not measured, with the
//! reason; the sum is never just smaller.

use super::{TrialResult, TrialResults, TrialRow};
use crate::metric::taken::{Charged, Taken, plus};
use crate::plan::{Plan, Planned, PlannedTrial};
use crate::trace::{Mode, Trace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Usage of some trials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Trials in which a model answered.
    pub trials: u64,
    /// Model calls in them, failed ones included.
    pub model_calls: u64,
    /// Input tokens, cached ones included; `None` if a completion does not report them.
    pub input_tokens: Option<u64>,
    /// Input tokens from the provider's cache, as far as reported; `None` if no completion reports any.
    pub cached_tokens: Option<u64>,
    /// Output tokens; `None` if a completion does not report them.
    pub output_tokens: Option<u64>,
    /// US dollars; `None` if part of it is unknown.
    #[serde(rename = "cost_usd", alias = "cost")]
    pub cost: Option<f64>,
    /// Reason why the cost is not measured; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub not_measured: String,
}

/// Usage of one variant, or of one case. Older builds wrote a list of the two values, which is still read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpentBy {
    /// `scenario@variant`, or `scenario/case`.
    pub name: String,
    /// Its usage.
    pub spent: Spent,
}

/// Usage of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// The total.
    pub run: Spent,
    /// By `scenario@variant`, in order.
    pub variants: Vec<SpentBy>,
    /// By `scenario/case`, in order.
    pub cases: Vec<SpentBy>,
}

impl Spending {
    /// Whether no model answered in any trial.
    pub fn is_empty(&self) -> bool {
        self.run.trials == 0
    }

    /// Sums the trials of a plan, in plan order.
    pub(super) fn of(plan: &Plan, trials: &TrialResults) -> Self {
        let mut run = Sum::default();
        let mut variants: BTreeMap<(usize, String), Sum> = BTreeMap::new();
        let mut cases: BTreeMap<(usize, usize), Sum> = BTreeMap::new();
        // Without a completed call, as in a replay without its recording, there is no usage.
        let asked = |result: &TrialRow<'_>| result.model_calls > 0 && result.input_tokens != Some(0);
        for (trial, result) in plan.trials.each().zip(trials).filter(|(_, result)| asked(result)) {
            run.add(&trial, &result);
            variants.entry((trial.scenario, trial.variant.to_owned())).or_default().add(&trial, &result);
            cases.entry((trial.scenario, trial.case)).or_default().add(&trial, &result);
        }
        let name = |scenario: usize| plan.scenarios[scenario].name.as_str();
        let case = |scenario: usize, case: usize| plan.scenarios[scenario].cases[case].case.case.as_str();
        let by = |name: String, sum: Sum| SpentBy { name, spent: sum.spent(plan) };
        Self {
            run: run.spent(plan),
            variants: variants
                .into_iter()
                .map(|((scenario, variant), sum)| by(format!("{}@{variant}", name(scenario)), sum))
                .collect(),
            cases: cases.into_iter().map(|(of, sum)| by(format!("{}/{}", name(of.0), case(of.0, of.1)), sum)).collect(),
        }
    }
}

/// Running sum of the usage of trials.
struct Sum {
    spent: Spent,
    /// Trials of unknown cost, and their scenarios with the variants.
    unknown: u64,
    unknown_of: BTreeMap<usize, BTreeSet<String>>,
}

impl Default for Sum {
    fn default() -> Self {
        let spent = Spent { input_tokens: Some(0), output_tokens: Some(0), cost: Some(0.0), ..Spent::default() };
        Self { spent, unknown: 0, unknown_of: BTreeMap::new() }
    }
}

impl Sum {
    fn add(&mut self, trial: &Planned<'_>, result: &TrialRow<'_>) {
        let sum = &mut self.spent;
        sum.trials += 1;
        sum.model_calls += u64::from(result.model_calls);
        sum.input_tokens = plus(sum.input_tokens, result.input_tokens);
        sum.output_tokens = plus(sum.output_tokens, result.output_tokens);
        let cached = |more: u64| Some(sum.cached_tokens.unwrap_or(0).saturating_add(more));
        sum.cached_tokens = result.cached_tokens.map_or(sum.cached_tokens, cached);
        sum.cost = sum.cost.zip(result.cost).map(|(sum, more)| sum + more);
        if result.cost.is_none() {
            self.unknown += 1;
            let variants = self.unknown_of.entry(trial.scenario).or_default();
            if !variants.contains(trial.variant) {
                variants.insert(trial.variant.to_owned());
            }
        }
    }

    fn spent(self, plan: &Plan) -> Spent {
        let not_measured = if self.spent.cost.is_some() { String::new() } else { self.why_not(plan) };
        Spent { not_measured, ..self.spent }
    }

    /// Reason why the cost of these trials is unknown.
    fn why_not(&self, plan: &Plan) -> String {
        if plan.mode == Some(Mode::Imported) {
            return if self.spent.input_tokens.is_some() && self.spent.output_tokens.is_some() {
                "`prices` has no price, or several, of a model that completions name".to_owned()
            } else {
                "completions do not say their tokens".to_owned()
            };
        }
        let unknown = || {
            self.unknown_of.iter().flat_map(|(scenario, variants)| variants.iter().map(|variant| (*scenario, variant)))
        };
        if unknown().any(|(scenario, variant)| !Charged::of(plan, scenario, variant).is_known()) {
            return "the plan does not say which model was asked".to_owned();
        }
        let unpriced: BTreeSet<String> =
            unknown().flat_map(|(scenario, variant)| Charged::of(plan, scenario, variant).unpriced()).collect();
        if unpriced.is_empty() {
            let trials = format!("{} of {} trials", self.unknown, self.spent.trials);
            return format!(
                "the services of {trials} did not report their tokens, or an embeddings model has no price"
            );
        }
        let unpriced: Vec<String> = unpriced.into_iter().collect();
        format!("no price of {}", unpriced.join(", "))
    }
}

/// Stores the tokens of a trial's completions and its cost in `result`.
pub(super) fn account(plan: &Plan, trial: &PlannedTrial, trace: &Trace, result: &mut TrialResult) {
    let charged = Charged::of(plan, trial.scenario, &trial.lane.variant);
    let taken = Taken::of(trace.events.iter().map(|event| &event.what), Some(&charged));
    if taken.model_calls > 0 {
        (result.input_tokens, result.cached_tokens, result.output_tokens) = (taken.input, taken.cached, taken.output);
        result.cost = taken.cost;
    }
}

#[cfg(test)]
mod tests {
    use crate::gate::{Evaluation, evaluate};
    use crate::metric::sample::{good, plan};
    use crate::plan::{NamedRetrieval, Plan, VariantSettings};
    use crate::settings::price::{Price, Prices};
    use crate::settings::{ManagedRetrievalSettings, ModelSettings};
    use crate::trace::{ManagedAnswer, Mode, Reply, ToolOutcome, ToolResult, Trace, What};

    fn asking(provider: &str) -> Plan {
        let mut plan = plan("[{case: a, ask: q, expect: {calls: [{never: perplexity_search}]}}]", "[]", 2);
        let model = ModelSettings { provider: provider.into(), name: "m".into(), ..ModelSettings::default() };
        plan.scenarios[0].variants[0].settings = Some(VariantSettings { model, ..VariantSettings::default() });
        let price = Price { input: 1.0, output: 10.0, ..Price::default() };
        plan.prices.insert("acme/m".into(), price);
        plan
    }

    fn run(plan: &Plan, change: impl Fn(&mut Option<u64>)) -> Evaluation {
        let mut traces: Vec<Trace> = (0..2).map(|place| good(plan, place)).collect();
        for trace in &mut traces {
            trace.evidence.mode = plan.mode.unwrap_or(trace.evidence.mode);
        }
        for event in &mut traces[1].events {
            if let What::ModelCalled(called) = &mut event.what
                && let Reply::Completion(done) = &mut called.reply
            {
                change(&mut done.output_tokens);
            }
        }
        evaluate(plan, traces.into_iter().map(Ok)).expect("can be judged")
    }

    #[test]
    fn a_cost_is_the_sum_over_trials_and_one_silent_completion_makes_it_unknown_but_not_the_others() {
        let plan = asking("acme");
        let told = run(&plan, |_| ()).spending;
        let calls = told.run.model_calls as f64;
        assert_eq!(told.run.cost, Some(calls * (10.0 * 1.0 + 2.0 * 10.0) / 1e6));
        assert_eq!(
            (told.run.trials, told.variants[0].name.as_str(), told.cases[0].name.as_str()),
            (2, "s@base", "s/a")
        );

        let silent = run(&plan, |output| *output = None);
        assert_eq!(silent.trials.iter().map(|trial| trial.cost.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!((silent.spending.run.cost, silent.spending.run.output_tokens), (None, None));
        let why = silent.spending.run.not_measured;
        assert_eq!(
            why,
            "the services of 1 of 2 trials did not report their tokens, or an embeddings model has no price"
        );
    }

    #[test]
    fn a_sum_that_passes_64_bits_is_unknown_and_never_smaller() {
        let plan = asking("acme");
        let asks = |event: &&crate::trace::Event| matches!(event.what, What::ModelCalled(_));
        let of_one = good(&plan, 1).events.iter().filter(asks).count() as u64;
        let vast = run(&plan, |output| *output = Some((u64::MAX - 1) / of_one));
        assert!(vast.trials.iter().all(|trial| trial.output_tokens.is_some()), "each trial by itself is known");
        assert_eq!((vast.spending.run.output_tokens, vast.spending.run.input_tokens.is_some()), (None, true));
    }

    #[test]
    fn an_answer_of_managed_retrieval_costs_by_its_tokens_and_an_unpriced_one_makes_the_cost_unknown() {
        let answered = |tokens: Option<u64>| {
            move |trace: &mut Trace| {
                let mut managed: ManagedAnswer =
                    serde_json::from_value(serde_json::json!({"status": "no_answer_found", "asked": "q", "text": ""}))
                        .expect("an answer");
                (managed.input_tokens, managed.output_tokens) = (tokens, tokens);
                let search = trace.events.iter_mut().find_map(|event| match &mut event.what {
                    What::ToolCalled(called) => match &mut called.outcome {
                        ToolOutcome::Ok(ToolResult::Search(search)) => Some(search),
                        _ => None,
                    },
                    _ => None,
                });
                search.expect("a search").managed = Some(Box::new(managed));
            }
        };
        let cost = |plan: &Plan, change: &dyn Fn(&mut Trace)| {
            let traces = (0..2).map(|place| {
                let mut trace = good(plan, place);
                change(&mut trace);
                Ok(trace)
            });
            evaluate(plan, traces).expect("can be judged").spending.run
        };
        let mut plan = asking("acme");
        let named = NamedRetrieval::new("docs", &ManagedRetrievalSettings::default());
        plan.scenarios[0].variants[0].settings.as_mut().expect("settings").managed_retrieval = Some(named);
        let without = cost(&plan, &|_| ()).cost.expect("known: nothing was asked");
        let unpriced = cost(&plan, &answered(Some(100)));
        assert_eq!((unpriced.cost, unpriced.not_measured.as_str()), (None, "no price of docs/ask"));
        plan.prices
            .insert("docs/ask".into(), Price { input: 2.0, output: 3.0, request: Some(0.01), ..Price::default() });
        let priced = cost(&plan, &answered(Some(100))).cost.expect("known");
        assert!((priced - without - 2.0 * (0.01 + 500.0 / 1e6)).abs() < 1e-12, "{priced} {without}");
        assert_eq!(cost(&plan, &answered(None)).cost, None, "tokens that are not told are never 0");
    }

    #[test]
    fn where_no_call_was_answered_nothing_is_said_to_be_spent() {
        let plan = asking("acme");
        let mut traces: Vec<Trace> = (0..2).map(|place| good(&plan, place)).collect();
        for event in traces.iter_mut().flat_map(|trace| &mut trace.events) {
            if let What::ModelCalled(called) = &mut event.what {
                called.reply = Reply::Failure { kind: "server_error".into(), message: "503".into() };
            }
        }
        let spending = evaluate(&plan, traces.into_iter().map(Ok)).expect("can be judged").spending;
        assert!(spending.is_empty() && spending.cases.is_empty(), "{spending:?}");
    }

    #[test]
    fn what_has_no_price_is_named_and_a_plan_that_names_no_model_says_so() {
        assert_eq!(run(&asking("other"), |_| ()).spending.run.not_measured, "no price of other/m");
        let mut nameless = asking("acme");
        nameless.scenarios[0].variants[0].settings = None;
        let why = |plan: &Plan| run(plan, |_| ()).spending.run.not_measured;
        assert_eq!(why(&nameless), "the plan does not say which model was asked");
        let imported = Plan { mode: Some(Mode::Imported), prices: Prices::default(), ..nameless };
        assert_eq!(why(&imported), "`prices` has no price, or several, of a model that completions name");
        let silent = run(&imported, |output| *output = None).spending.run.not_measured;
        assert_eq!(silent, "completions do not say their tokens");
    }
}
