//! Collects examined trials into a [`Summary`]: sums by case and variant, and the settings recorded in traces.

use super::RepetitionCounts;
use super::inputs::{copies, digest, digests};
use super::summary::{BASELINE_VERSION, CASES, CaseFigures, Measured, Setting, StoppedEarly, Summary, TrialOutcome};
use crate::metric::case_pass_rate;
use crate::metric::turns::turns;
use crate::metric::{Group, Metric, Observation, Outcome};
use crate::plan::{Plan, PlannedScenario};
use crate::scenario::{Criterion, Target, parse_target};
use crate::stats::quantile::median;
use crate::trace::normalise::same_question;
use crate::trace::{Arm, Mode, Trace, TrialEnd, What};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The metric of a scenario's gate on its cases.
const ON_CASES: &str = "case_pass_rate";
/// Placeholder for the gate of a scenario without one.
pub(super) const NO_GATE: &str = "none";

/// Evaluation of one trial that could be run.
#[derive(Debug, Clone)]
pub(crate) struct TrialFigures<'a> {
    /// Whether it met everything its case expects; `None` if that was not measured.
    pub passed: Option<bool>,
    /// The first expectation that it did not meet.
    pub why: String,
    /// Its cost in US dollars, if known.
    pub cost: Option<f64>,
    /// Its units, by metric as written.
    pub units: Vec<(&'a str, &'a [Observation])>,
    /// The same of metrics whose tool its agent did not offer: they count if it has that tool in another trial.
    pub not_offered: Vec<(&'a str, &'a [Observation])>,
}

/// Sums trials, independent of their order.
pub(crate) struct Collector<'p> {
    plan: &'p Plan,
    criteria: Vec<Asked<'p>>,
    settings: BTreeMap<(usize, String), Setting>,
    cases: BTreeMap<(usize, usize, String), Case>,
    /// Tools that were offered in trials that counted, by criterion, scenario and variant.
    counted: BTreeMap<(String, usize, String), BTreeSet<Vec<String>>>,
}

/// Successes and units by repetition.
type Numbers = BTreeMap<u32, (u64, u64)>;

/// One criterion of the plan.
struct Asked<'p> {
    measured: Measured,
    /// The scenario of a gate.
    scenario: Option<usize>,
    written: &'p Criterion,
    /// Repetitions per unit, if more than one.
    group: Option<Group>,
}

#[derive(Default)]
struct Case {
    figures: CaseFigures,
    /// Trials of which something says whether they met what the case expects, by their place in the plan.
    trials: BTreeMap<usize, TrialOutcome>,
    /// Trials that ended in an error which says nothing about the agent.
    not_measured: u64,
    /// The planned repetitions.
    planned: Vec<u32>,
    /// What the user said first in the imported conversations of it.
    said: BTreeSet<String>,
    /// Successes and units by criterion and repetition.
    by_number: BTreeMap<String, Numbers>,
    /// The same of trials whose agent did not offer the tool of the criterion, and by the tools that it did.
    not_offered: BTreeMap<(String, Vec<String>), Numbers>,
    /// For criteria whose units are several repetitions, by key: which repetitions succeeded.
    open: BTreeMap<String, BTreeMap<u32, bool>>,
}

impl<'p> Collector<'p> {
    /// Creates a collector for a plan; `metric` returns the metric of a criterion as written.
    pub(crate) fn new<'m>(plan: &'p Plan, metric: impl Fn(&str) -> Option<&'m Metric>) -> Self {
        // Every scenario's gate on its cases is part of the single row on all cases.
        // What a flow promises whatever the model does compares no models and no prompts.
        let is_compared = |scenario: Option<usize>, written: &Criterion| {
            !written.self_test && (scenario.is_none() || written.metric != ON_CASES)
        };
        let mut criteria = Vec::new();
        for (scenario, written) in plan.criteria_and_gates().filter(|(of, written)| is_compared(*of, written)) {
            let group = metric(&written.metric).and_then(|metric| metric.group);
            criteria.push(Asked { measured: measured(plan, scenario, written, &metric), scenario, written, group });
        }
        let copies = copies(plan);
        let mut cases: BTreeMap<(usize, usize, String), Case> = BTreeMap::new();
        let mut settings = BTreeMap::new();
        for trial in plan.trials.each() {
            let scenario = &plan.scenarios[trial.scenario];
            let variant = trial.variant;
            let key = (trial.scenario, variant.to_owned());
            settings.entry(key).or_insert_with(|| setting(plan, trial.scenario, trial.flow, variant));
            let case = cases.entry((trial.scenario, trial.case, variant.to_owned())).or_default();
            if trial.arm == Arm::Main {
                case.planned.push(trial.repetition);
            }
            case.figures.scenario.clone_from(&scenario.name);
            case.figures.case.clone_from(&scenario.cases[trial.case].case.case);
            if case.figures.text.is_empty() {
                (case.figures.text, case.figures.expected) = digests(&scenario.cases[trial.case].case);
                case.figures.copy_of = copies.get(&(trial.scenario, trial.case)).cloned().unwrap_or_default();
            }
            variant.clone_into(&mut case.figures.variant);
        }
        Self { plan, criteria, settings, cases, counted: BTreeMap::new() }
    }

    /// Adds one trial that could be run; ignores one that the plan does not contain.
    pub(crate) fn add<'t>(&mut self, trace: &Trace, seen: &TrialFigures<'t>) {
        let Some(place) = self.plan.trials.place_of(&trace.trial) else { return };
        let Some(trial) = self.plan.trials.at(place) else { return };
        let planned = &self.plan.scenarios[trial.scenario].cases[trial.case].case;
        let variant = &trial.lane.variant;
        if let Some(setting) = self.settings.get_mut(&(trial.scenario, variant.clone())) {
            observe(setting, trace);
        }
        let Some(case) = self.cases.get_mut(&(trial.scenario, trial.case, variant.clone())) else { return };
        let imported = trace.evidence.mode == Mode::Imported;
        for Asked { measured: criterion, scenario, written, group } in &self.criteria {
            let covered = scenario.is_none_or(|of| of == trial.scenario) && written.counts_flow(&trial.lane.flow);
            if !covered || planned.excluded_from.contains_key(&written.id) {
                continue;
            }
            let of_metric = |all: &[(&str, &'t [Observation])]| {
                all.iter().find(|(metric, _)| *metric == criterion.metric).map(|(_, units)| *units)
            };
            let is_success = |unit: &Observation| match (unit.outcome, criterion.limit_us) {
                (Outcome::Success, _) => true,
                (Outcome::Took(time), Some(limit)) => time < limit,
                _ => false,
            };
            let units = of_metric(&seen.units).unwrap_or_default();
            if let Some(lost) = of_metric(&seen.not_offered).filter(|_| group.is_none()) {
                let tools = trace.offered.clone().unwrap_or_default();
                let numbers = case.not_offered.entry((criterion.key.clone(), tools)).or_default();
                let sum = numbers.entry(trial.lane.repetition).or_default();
                let successes = lost.iter().filter(|unit| is_success(unit)).count() as u64;
                *sum = (sum.0 + successes, sum.1 + lost.len() as u64);
            } else if let Some(offered) = trace.offered.as_ref().filter(|_| !units.is_empty() && !imported) {
                let of = (criterion.key.clone(), trial.scenario, variant.clone());
                self.counted.entry(of).or_default().insert(offered.clone());
            }
            for unit in units {
                let success = is_success(unit);
                if group.is_some() {
                    case.open.entry(criterion.key.clone()).or_default().insert(trial.lane.repetition, success);
                    continue;
                }
                let numbers = case.by_number.entry(criterion.key.clone()).or_default();
                let sum = numbers.entry(trial.lane.repetition).or_default();
                *sum = (sum.0 + u64::from(success), sum.1 + 1);
            }
        }
        if trial.lane.arm != Arm::Main {
            return;
        }
        if matches!(trace.end, TrialEnd::Error(_)) {
            case.not_measured += 1;
            return;
        }
        case.figures.trials += 1;
        if let Some(passed) = seen.passed.filter(|_| case_pass_rate::is_unit(self.plan, &trial, trace.evidence.mode)) {
            let why = if passed { String::new() } else { seen.why.clone() };
            let outcome = TrialOutcome { id: trial.id.clone(), repetition: trial.lane.repetition, passed, why };
            case.trials.insert(place, outcome);
        }
        let usage = case.figures.usage.get_or_insert_default();
        usage.add_calls(trace, seen.cost);
        for turn in turns(planned, trace) {
            let time = usage.add_turn(trace, turn.ended().map(|end| (&end.outcome, end.took_us)));
            if let Some(time) = time {
                case.figures.times.entry(trial.lane.repetition).or_default().push(time);
            }
        }
        if imported {
            case.said.extend(Some(said(trace)).filter(|words| !words.is_empty()));
        }
    }

    /// Returns the summary after all trials that could be run. A run until decided needs no trial after its last
    /// pass, `passes`; `part` describes how the run is partial.
    pub(crate) fn finish(mut self, label: &str, passes: Option<u32>, part: &str) -> Summary {
        for ((scenario, _, variant), case) in &mut self.cases {
            for ((key, offered), numbers) in std::mem::take(&mut case.not_offered) {
                let counted = self.counted.get(&(key.clone(), *scenario, variant.clone()));
                let of_agent = |tools: &Vec<String>| offered.iter().all(|tool| tools.contains(tool));
                if !counted.is_some_and(|counted| counted.iter().any(of_agent)) {
                    continue;
                }
                let known = case.by_number.entry(key).or_default();
                for (repetition, (successes, n)) in numbers {
                    let sum = known.entry(repetition).or_default();
                    *sum = (sum.0 + successes, sum.1 + n);
                }
            }
        }
        let stopped = self.plan.stopping.zip(passes).filter(|(stopping, passes)| *passes < stopping.max_passes);
        let asked = self.criteria;
        let imported = self.plan.mode == Some(Mode::Imported);
        let cases = self.cases.into_values().map(|mut case| {
            let mut figures = case.figures;
            if imported {
                figures.text =
                    if case.said.is_empty() { String::new() } else { digest(&json!([figures.text, case.said])) };
            }
            let usage = figures.usage.get_or_insert_default();
            usage.turns_us.sort_unstable();
            figures.turn_us = median(&usage.turns_us).filter(|time| *time != u64::MAX);
            for (key, repetitions) in &case.open {
                let group = asked.iter().find(|one| one.measured.key == *key).and_then(|one| one.group);
                if let Some(group) = group {
                    case.by_number.insert(key.clone(), whole_units(group, repetitions));
                }
            }
            figures.trials_run = case.trials.into_values().collect();
            figures.passed = figures.trials_run.iter().filter(|trial| trial.passed).count() as u64;
            let needed = case.planned.iter().filter(|repetition| passes.is_none_or(|last| **repetition <= last));
            figures.errors = (needed.count() as u64).saturating_sub(figures.trials + case.not_measured);
            let passed = figures.trials_run.iter().map(|trial| (trial.repetition, (u64::from(trial.passed), 1)));
            case.by_number.insert(CASES.into(), passed.collect());
            for (key, numbers) in case.by_number.into_iter().filter(|(_, numbers)| !numbers.is_empty()) {
                let sum = numbers.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                let rows = numbers.into_iter();
                let rows = rows.map(|(repetition, (successes, n))| RepetitionCounts { repetition, successes, n });
                figures.units.insert(key.clone(), sum.into());
                figures.repetitions.insert(key, rows.collect());
            }
            figures
        });
        let cases = cases.collect();
        let on_cases = |gate: &Criterion| gate.metric == ON_CASES && gate.is_required();
        let gated = self.plan.scenarios.iter().any(|scenario| scenario.gates.iter().any(on_cases));
        Summary {
            version: BASELINE_VERSION,
            label: label.to_owned(),
            criteria: asked
                .into_iter()
                .map(|one| one.measured)
                .chain([Measured { required: gated, ..cases_row() }])
                .collect(),
            settings: self.settings.into_values().collect(),
            cases,
            stopped: stopped.map(|(stopping, passes)| StoppedEarly { passes, max: stopping.max_passes }),
            part: part.to_owned(),
            doubt: String::new(),
            gates: Some(self.plan.scenarios.iter().map(gates_on_cases).collect()),
        }
    }
}

/// A scenario, and the rules of the gates on its cases.
fn gates_on_cases(scenario: &PlannedScenario) -> (String, String) {
    let gates = scenario.gates.iter().filter(|gate| gate.metric == ON_CASES);
    let words: Vec<String> = gates.map(|gate| format!("{}, {}", gate.target, judged(gate))).collect();
    (scenario.name.clone(), if words.is_empty() { NO_GATE.to_owned() } else { words.join("; ") })
}

/// Successes and units of several repetitions each: 1 to k, k + 1 to 2k, and so on, by the number of the unit. A unit
/// that lacks a repetition does not count.
fn whole_units(group: Group, repetitions: &BTreeMap<u32, bool>) -> BTreeMap<u32, (u64, u64)> {
    let mut units: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    for (repetition, success) in repetitions {
        units.entry((repetition.max(&1) - 1) / group.size).or_default().push(*success);
    }
    let whole = units.into_iter().filter(|(_, unit)| unit.len() == group.size as usize);
    let holds = |unit: &Vec<bool>| if group.all { unit.iter().all(|one| *one) } else { unit.contains(&true) };
    whole.map(|(number, unit)| (number + 1, (u64::from(holds(&unit)), 1))).collect()
}

/// The user's first words in a conversation, without differences of spaces and capitals: later ones answer the agent.
fn said(trace: &Trace) -> String {
    let first = trace.events.iter().find_map(|event| match &event.what {
        What::TurnStarted { query } => Some(same_question(query)),
        _ => None,
    });
    first.unwrap_or_default()
}

fn measured<'m>(
    plan: &Plan,
    scenario: Option<usize>,
    written: &Criterion,
    metric: impl Fn(&str) -> Option<&'m Metric>,
) -> Measured {
    let target = parse_target(&written.target).ok();
    Measured {
        key: scenario.map_or_else(|| written.id.clone(), |of| format!("{}/{}", plan.scenarios[of].name, written.id)),
        about: written.about.clone(),
        metric: written.metric.clone(),
        flow: written.flow.clone(),
        target: written.target.clone(),
        judged: judged(written),
        required: written.is_required(),
        fewer_is_better: matches!(target, Some(Target::AtMostRate(_))),
        limit_us: match target {
            Some(Target::AtMostTime(limit)) => Some(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX)),
            _ => None,
        },
        proxy: metric(&written.metric).is_some_and(|metric| metric.is_proxy(plan)),
    }
}

/// The rule of a criterion as text.
fn judged(written: &Criterion) -> String {
    let more = [
        written.floor.as_ref().map(|floor| format!("floor {floor}")),
        written.min_n.map(|least| format!("min_n {least}")),
        written.margin.as_ref().map(|margin| format!("margin {margin}")),
        (!written.is_required()).then(|| "not required".to_owned()),
    ];
    [written.kind.as_str().to_owned()].into_iter().chain(more.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// The row that every comparison has: trials that pass, by case.
pub(super) fn cases_row() -> Measured {
    Measured {
        key: CASES.into(),
        about: "Every trial meets what its case expects.".into(),
        metric: "case_pass_rate".into(),
        target: "= 100%".into(),
        required: true,
        ..Measured::default()
    }
}

fn setting(plan: &Plan, scenario: usize, flow: &str, variant: &str) -> Setting {
    let scenario = &plan.scenarios[scenario];
    let planned = scenario.variant(variant);
    let mut setting = Setting {
        scenario: scenario.name.clone(),
        variant: variant.to_owned(),
        flow: flow.to_owned(),
        about: planned.map(|planned| planned.about.clone()).unwrap_or_default(),
        ..Setting::default()
    };
    if let Some(planned) = planned.and_then(|planned| planned.settings.as_ref()) {
        setting.enforcement = Some(planned.enforcement);
        setting.provider = Some(planned.model.provider.clone());
        setting.temperature = planned.model.temperature;
        setting.prompts.clone_from(&planned.prompts);
        setting.asks_for = planned.asks_for.as_ref().map(|rules| rules.iter().cloned().collect());
    }
    setting
}

fn observe(setting: &mut Setting, trace: &Trace) {
    let add = |set: &mut std::collections::BTreeSet<String>, value: &str| {
        if !value.is_empty() && !set.contains(value) {
            set.insert(value.to_owned());
        }
    };
    let evidence = &trace.evidence;
    add(&mut setting.modes, &evidence.mode.to_string());
    add(&mut setting.recorded_from, evidence.answered_by().unwrap_or_default());
    let day = evidence.recorded_at.as_deref().unwrap_or_default();
    add(&mut setting.recorded_on, day.get(..10).unwrap_or(day));
    add(&mut setting.models, &evidence.model);
    add(&mut setting.knowledge, &evidence.knowledge);
    let first = trace.events.iter().find_map(|event| match &event.what {
        What::ModelCalled(called) => called.shown.iter().find_map(|shown| shown.strip_prefix("system:")),
        _ => None,
    });
    add(&mut setting.system_prompts, first.unwrap_or_default());
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
