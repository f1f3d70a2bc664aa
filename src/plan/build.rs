//! Builds the matrix case x variant x repetition x arm, in an order and with seeds that do not depend on the
//! selection.

use super::selection::{SHOWS, Selection, Wanted, fits_nothing, in_no_lane};
use super::{
    NamedRetrieval, PLAN_VERSION, Plan, PlannedCase, PlannedScenario, PlannedTrial, PlannedVariant,
    RequirementEvidence, ResolvedCase, STOPPING_ALPHA, Stopping, VariantSettings,
};
use crate::platform::bounds::Bound;
use crate::scenario::document::Variant;
use crate::scenario::{Case, Diagnostic, Loaded, LoadedScenario, Requirement, Scenario};
use crate::settings::ModelSettings;
use crate::trace::{Arm, EXTERNAL, Lane};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// A trial's seed: the first eight bytes of SHA-256 over the run's seed and the trial's id.
pub fn trial_seed(run_seed: u64, trial_id: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(run_seed.to_le_bytes());
    hash.update(trial_id.as_bytes());
    let digest = hash.finalize();
    digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// Builds the plan of the selected trials; omits scenarios and cases without any. The caller fills in the state
/// machines.
///
/// # Errors
/// If the selection names something unknown, or selects nothing.
pub fn build(loaded: &Loaded, selection: &Selection, seed: u64) -> Result<Plan, Vec<Diagnostic>> {
    let wanted = Wanted::of(loaded, selection)?;
    let sampled = selection.sample.map(|cases| sample(loaded, &wanted, selection, cases, seed));
    let (mut scenarios, mut trials) = (Vec::new(), Vec::new());
    for source in &loaded.scenarios {
        let mut cases = Vec::new();
        for (index, case) in source.scenario.cases.iter().enumerate() {
            let before = trials.len();
            for lane in lanes(&source.scenario, case, selection.passes.or(selection.repeat)) {
                let id = format!("{}/{}/{lane}", source.scenario.scenario, case.case);
                let is_sampled = || {
                    let of =
                        |names: &BTreeSet<_>| names.contains(&(source.scenario.scenario.as_str(), case.case.as_str()));
                    sampled.as_ref().is_none_or(of)
                };
                if wanted.wants(&id, &source.scenario.scenario, case, &lane) && is_sampled() {
                    let seed = trial_seed(seed, &id);
                    trials.push(PlannedTrial { id, scenario: scenarios.len(), case: cases.len(), lane, seed });
                }
            }
            if trials.len() > Bound::Trials.most_in_memory() {
                return Err(vec![too_many()]);
            }
            if trials.len() > before {
                let place = source.case_places.get(index);
                let (table, line) = (place.and_then(|place| place.table.clone()), place.map_or(1, |place| place.line));
                cases.push(PlannedCase { table, line, case: resolved(&source.scenario, case), input: String::new() });
            }
        }
        if !cases.is_empty() {
            scenarios.push(planned(source, cases, selection));
        }
    }
    let mut mistakes = fits_nothing(loaded, selection, &wanted);
    mistakes.extend(in_no_lane(loaded, selection));
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    if trials.is_empty() {
        return Err(vec![Diagnostic::error("nothing-selected", "", "no trial is selected").with_help(SHOWS)]);
    }
    let stopping = selection.passes.map(|max_passes| Stopping {
        max_passes,
        alpha_pass: STOPPING_ALPHA,
        alpha_fail: STOPPING_ALPHA,
    });
    if stopping.is_some() {
        trials.sort_by_key(|trial| trial.lane.repetition);
    }
    Ok(Plan {
        version: PLAN_VERSION,
        stopping,
        seed,
        scenarios,
        trials: trials.into(),
        criteria: loaded.criteria.clone(),
        not_measured_ok: loaded.project.not_measured_ok.clone(),
        ratings: loaded.ratings.clone(),
        agreement: loaded.agreement.clone(),
        prices: loaded.project.prices.clone(),
        requirement_sources: sources(loaded),
        requirement_evidence: evidence(loaded),
        requirements: loaded.project.requirements.iter().map(|(id, one)| (id.clone(), one.text.clone())).collect(),
        ..Plan::default()
    })
}

/// Scenario and name of `most` of the wanted cases: those whose names have the smallest digests with the seed.
fn sample<'l>(
    loaded: &'l Loaded,
    wanted: &Wanted<'_>,
    selection: &Selection,
    most: u32,
    seed: u64,
) -> BTreeSet<(&'l str, &'l str)> {
    let mut drawn = Vec::new();
    for scenario in loaded.scenarios.iter().map(|source| &source.scenario) {
        for case in &scenario.cases {
            let name = format!("{}/{}", scenario.scenario, case.case);
            let mut lanes = lanes(scenario, case, selection.passes.or(selection.repeat)).into_iter();
            if lanes.any(|lane| wanted.wants(&format!("{name}/{lane}"), &scenario.scenario, case, &lane)) {
                drawn.push((trial_seed(seed, &name), scenario.scenario.as_str(), case.case.as_str()));
            }
        }
    }
    drawn.sort_unstable();
    drawn.into_iter().take(most as usize).map(|(_, scenario, case)| (scenario, case)).collect()
}

/// Sources of the project's requirements.
fn sources(loaded: &Loaded) -> BTreeMap<String, String> {
    let told = loaded.project.requirements.iter().filter(|(_, one)| !one.source.is_empty());
    told.map(|(id, one)| (id.clone(), one.source.clone())).collect()
}

/// What shows the project's requirements.
fn evidence(loaded: &Loaded) -> BTreeMap<String, RequirementEvidence> {
    let of = |one: &Requirement| RequirementEvidence { defects: one.evidence.clone(), tests: one.tests.clone() };
    let told = loaded.project.requirements.iter().map(|(id, one)| (id.clone(), of(one)));
    told.filter(|(_, found)| *found != RequirementEvidence::default()).collect()
}

fn too_many() -> Diagnostic {
    let message = format!("more than {} trials: cases, variants and repetitions multiply", Bound::Trials.shown());
    Diagnostic::error("too-many-trials", "", message)
        .with_help(format!("select some with `--only` or `--variant`, or repeat less; {}", Bound::Trials.advice()))
}

pub(super) fn variants(scenario: &Scenario) -> Vec<&str> {
    if scenario.variants.is_empty() { vec!["base"] } else { scenario.variants.keys().map(String::as_str).collect() }
}

/// All lanes of a case: variant, repetition, arm.
pub(super) fn lanes(scenario: &Scenario, case: &Case, repeat: Option<u32>) -> Vec<Lane> {
    let repeat = repeat.or(case.repeat).unwrap_or(scenario.repeat);
    let arms: &[Arm] = if case.control { &[Arm::Main, Arm::Control] } else { &[Arm::Main] };
    let mut lanes = Vec::new();
    for variant in variants(scenario) {
        let flow = scenario.variants.get(variant).map_or(scenario.flow.as_str(), |written| scenario.flow_of(written));
        for repetition in 1..=repeat {
            lanes.extend(arms.iter().map(|arm| Lane {
                flow: flow.to_owned(),
                variant: variant.to_owned(),
                repetition,
                arm: *arm,
            }));
        }
    }
    lanes
}

/// The case with the settings that its scenario makes for all cases.
fn resolved(scenario: &Scenario, case: &Case) -> ResolvedCase {
    let mut case = ResolvedCase::from(case.clone());
    let mut covers = scenario.covers.clone();
    covers.extend(case.covers.iter().filter(|id| !scenario.covers.contains(id)).cloned());
    case.covers = covers;
    case.faults.extend(scenario.faults.iter().cloned());
    for (id, reason) in &scenario.excluded_from {
        case.excluded_from.entry(id.clone()).or_insert_with(|| reason.clone());
    }
    case
}

fn planned(source: &LoadedScenario, cases: Vec<PlannedCase>, selection: &Selection) -> PlannedScenario {
    let scenario = &source.scenario;
    let wanted = |name: &str| selection.variant.as_ref().is_none_or(|wanted| wanted == name);
    let variants: Vec<PlannedVariant> = if scenario.variants.is_empty() {
        vec![variant(source, "base", &Variant::default())]
    } else {
        let all = scenario.variants.iter().filter(|(name, _)| wanted(name));
        all.map(|(name, written)| variant(source, name, written)).collect()
    };
    PlannedScenario {
        name: scenario.scenario.clone(),
        file: source.file.clone(),
        about: scenario.about.clone(),
        agent: if variants.iter().any(|variant| variant.flow == EXTERNAL) { scenario.agent() } else { None },
        knowledge: scenario.knowledge.names().clone(),
        variants,
        cases,
        gates: scenario.applied_gates(),
    }
}

/// The scenario's settings with the variant's changes.
fn variant(source: &LoadedScenario, name: &str, written: &Variant) -> PlannedVariant {
    let scenario = &source.scenario;
    let model = written.model.as_ref().unwrap_or(&scenario.model);
    let temperature = written.temperature.or(model.temperature);
    PlannedVariant {
        name: name.to_owned(),
        about: differs(written),
        flow: scenario.flow_of(written).to_owned(),
        settings: Some(VariantSettings {
            model: ModelSettings { temperature, ..model.clone() },
            search: scenario.search.clone(),
            optional: scenario.optional.clone(),
            managed_retrieval: source
                .managed_retrieval
                .as_ref()
                .map(|(name, settings)| NamedRetrieval::new(name, settings)),
            limits: scenario.limits.clone(),
            enforcement: written.enforcement.unwrap_or(scenario.enforcement),
            prompts: source.prompts.get(name).cloned().unwrap_or_default(),
            asks_for: written.asks_for.clone(),
        }),
    }
}

fn differs(variant: &Variant) -> String {
    if !variant.about.is_empty() {
        return variant.about.clone();
    }
    let mut parts = Vec::new();
    if let Some(flow) = &variant.flow {
        parts.push(format!("flow {flow}"));
    }
    if let Some(model) = &variant.model {
        parts.push(format!("model {}", model.name));
    }
    if let Some(temperature) = variant.temperature {
        parts.push(format!("temperature {temperature}"));
    }
    if let Some(enforcement) = variant.enforcement {
        parts.push(format!("enforcement {}", enforcement.name()));
    }
    if !variant.prompts.is_empty() {
        parts.push(format!("prompts {}", variant.prompts.keys().cloned().collect::<Vec<_>>().join(", ")));
    }
    if parts.is_empty() { "as the scenario says".into() } else { parts.join("; ") }
}

#[cfg(test)]
mod tests;
