//! Collects examined trials into a [`Summary`]: sums by case and variant, and the settings recorded in traces.

use super::RepetitionCounts;
use super::inputs::{copies, digest, digests};
use super::summary::{BASELINE_VERSION, CASES, CaseFigures, Measured, Setting, StoppedEarly, Summary, TrialOutcome};
use crate::metric::turns::turns;
use crate::metric::{Group, Metric, Observation, Outcome};
use crate::plan::{Plan, PlannedScenario};
use crate::scenario::{Criterion, GateKind, Target, parse_target};
use crate::stats::quantile::median;
use crate::trace::normalise::same_question;
use crate::trace::{Arm, Mode, Trace, What};
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
    /// Trials by their place in the plan.
    trials: BTreeMap<usize, TrialOutcome>,
    /// Trials of which nothing says whether they met what the case expects.
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
    pub(crate) fn new<'m>(plan: &'p Plan, metric: impl Fn(&str) -> Option<&'m dyn Metric>) -> Self {
        // Every scenario's gate on its cases is part of the single row on all cases.
        // What a flow promises whatever the model does compares no models and no prompts.
        let is_compared = |scenario: Option<usize>, written: &Criterion| {
            !written.self_test && (scenario.is_none() || written.metric != ON_CASES)
        };
        let mut criteria = Vec::new();
        for (scenario, written) in plan.criteria_and_gates().filter(|(of, written)| is_compared(*of, written)) {
            let group = metric(&written.metric).and_then(Metric::group);
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
            } else if !units.is_empty() {
                let of = (criterion.key.clone(), trial.scenario, variant.clone());
                self.counted.entry(of).or_default().insert(trace.offered.clone().unwrap_or_default());
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
        if let Some(passed) = seen.passed {
            let why = if passed { String::new() } else { seen.why.clone() };
            let outcome = TrialOutcome { id: trial.id.clone(), repetition: trial.lane.repetition, passed, why };
            case.trials.insert(place, outcome);
        } else {
            case.not_measured += 1;
        }
        let usage = case.figures.usage.get_or_insert_default();
        usage.add_calls(trace, seen.cost);
        for turn in turns(planned, trace) {
            let time = usage.add_turn(trace, turn.ended().map(|end| (&end.outcome, end.took_us)));
            if let Some(time) = time {
                case.figures.times.entry(trial.lane.repetition).or_default().push(time);
            }
        }
        if trace.evidence.mode == Mode::Imported {
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
            figures.trials = figures.trials_run.len() as u64;
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
    metric: impl Fn(&str) -> Option<&'m dyn Metric>,
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
    let kind = match written.kind {
        GateKind::Invariant => "invariant",
        GateKind::Confidence => "confidence",
        GateKind::Point => "point",
    };
    let more = [
        written.floor.as_ref().map(|floor| format!("floor {floor}")),
        written.min_n.map(|least| format!("min_n {least}")),
        written.margin.as_ref().map(|margin| format!("margin {margin}")),
        (!written.is_required()).then(|| "not required".to_owned()),
    ];
    [kind.to_owned()].into_iter().chain(more.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// The row that every comparison has: trials that pass, by case.
pub(super) fn cases_row() -> Measured {
    Measured {
        key: CASES.into(),
        about: "Every trial meets what its case expects.".into(),
        metric: "case_pass_rate".into(),
        flow: None,
        target: "= 100%".into(),
        judged: String::new(),
        required: true,
        fewer_is_better: false,
        limit_us: None,
        proxy: false,
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
mod tests {
    use super::*;
    use crate::metric::catalogue;
    use crate::metric::sample::{good, plan, story};

    const CASES_WRITTEN: &str = "[{case: one, ask: q}, {case: two, ask: q, excluded_from: {F: why}}]";
    const CRITERIA: &str = "[{id: T, metric: latency_p95, target: <= 1s, kind: confidence}, \
                            {id: F, metric: turn_success_rate, target: '>= 90%', kind: confidence}]";

    #[test]
    fn units_are_summed_by_case_and_exclusions_and_errors_are_kept_apart() {
        let plan = plan(CASES_WRITTEN, CRITERIA, 2);
        let answered = [Observation { unit: "turn 1".into(), outcome: Outcome::Success, note: String::new() }];
        let slow = [Observation { unit: "turn 1".into(), outcome: Outcome::Took(2_000_000), note: String::new() }];
        let units: Vec<(&str, &[Observation])> = vec![("turn_success_rate", &answered), ("latency_p95", &slow)];
        let mut collector = Collector::new(&plan, |_| None);
        collector.add(
            &good(&plan, 0),
            &TrialFigures {
                passed: Some(true),
                why: String::new(),
                cost: None,
                units: units.clone(),
                not_offered: Vec::new(),
            },
        );
        collector.add(
            &good(&plan, 1),
            &TrialFigures {
                passed: Some(false),
                why: "short".into(),
                cost: None,
                units: units.clone(),
                not_offered: Vec::new(),
            },
        );
        let failed = story(&plan, 2).turn("q").fail("model").done();
        collector.add(
            &failed,
            &TrialFigures { passed: Some(false), why: "no answer".into(), cost: None, units, not_offered: Vec::new() },
        );
        let summary = collector.finish("run", None, "");
        let [one, two] = summary.cases.as_slice() else { panic!("{summary:?}") };
        assert_eq!((one.trials, one.passed, one.errors, one.turn_us), (2, 1, 0, Some(2_000_000)));
        let units = |key: &str| (one.units[key].successes, one.units[key].n);
        assert_eq!((units("F"), units("T"), units(CASES)), ((2, 2), (0, 2), (1, 2)));
        assert_eq!((two.trials, two.errors, two.turn_us), (1, 1, None), "a turn without an answer has no time");
        assert!(!two.units.contains_key("F"), "an excluded case has no units");
        assert_eq!(one.trials_run[1].why, "short");
        assert_eq!(summary.settings[0].recorded_from.iter().next().map(String::as_str), Some("simulator"));
    }

    #[test]
    fn a_criterion_of_one_flow_counts_the_trials_of_that_flow_and_of_external_agents() {
        let of = |flow: &str| {
            let written =
                format!("[{{id: F, metric: turn_success_rate, target: '>= 90%', kind: confidence, flow: {flow}}}]");
            let plan = plan("[{case: one, ask: q}]", &written, 1);
            let mut collector = Collector::new(&plan, |_| None);
            let seen = [Observation::success("turn 1")];
            let units: Vec<(&str, &[Observation])> = vec![("turn_success_rate", &seen)];
            collector.add(
                &good(&plan, 0),
                &TrialFigures { passed: Some(true), why: String::new(), cost: None, units, not_offered: Vec::new() },
            );
            collector.finish("run", None, "").cases[0].units.contains_key("F")
        };
        assert!(of("tool-rag") && !of("react"));
    }

    #[test]
    fn repetitions_that_are_one_unit_together_are_paired_by_case_like_any_other() {
        let criteria = "[{id: ALL, metric: pass_all(k=2), target: '>= 90%', kind: confidence}, \
                         {id: ANY, metric: pass_any(k=2), target: '>= 90%', kind: confidence}]";
        let plan = plan("[{case: one, ask: q}]", criteria, 5);
        let resolved: Vec<_> = ["pass_all(k=2)", "pass_any(k=2)"]
            .map(|name| {
                catalogue::resolve(&crate::scenario::resolve_metric(name, &catalogue::entries()).expect("known"))
                    .expect("known")
            })
            .into();
        let metric = |written: &str| Some(resolved[usize::from(written.starts_with("pass_any"))].as_ref());
        let mut collector = Collector::new(&plan, metric);
        let unit = |success| if success { Observation::success("trial") } else { Observation::failure("trial", "no") };
        // The fourth could not be run: repetitions 3 and 4 are no unit, and 5 alone is none either.
        for (place, success) in [(1, true), (0, false), (2, true), (4, true)] {
            let seen = [unit(success)];
            let units: Vec<(&str, &[Observation])> = vec![("pass_all(k=2)", &seen), ("pass_any(k=2)", &seen)];
            collector.add(
                &good(&plan, place),
                &TrialFigures { passed: Some(success), why: String::new(), cost: None, units, not_offered: Vec::new() },
            );
        }
        let summary = collector.finish("run", None, "");
        let units = |key: &str| (summary.cases[0].units[key].successes, summary.cases[0].units[key].n);
        assert_eq!((units("ALL"), units("ANY")), ((0, 1), (1, 1)));
    }

    #[test]
    fn the_last_row_is_on_all_cases_and_a_proxy_is_marked() {
        let plan = plan("[{case: one, ask: q}]", "[{id: S, metric: satisfaction, target: '>= 90%', kind: point}]", 1);
        let metric =
            catalogue::resolve(&crate::scenario::resolve_metric("satisfaction", &catalogue::entries()).expect("known"))
                .expect("known");
        let summary = Collector::new(&plan, |_| Some(metric.as_ref())).finish("run", None, "");
        assert!(summary.criteria[0].proxy && !summary.criteria[1].proxy);
        assert_eq!(summary.criteria[1].key, CASES);
        assert_eq!(summary.errors(), 1, "nothing was added");
    }
}
