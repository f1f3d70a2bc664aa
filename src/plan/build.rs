//! Builds the matrix case x variant x repetition x arm, in an order and with seeds that do not depend on the
//! selection.

use super::{
    NamedRetrieval, PLAN_VERSION, Plan, PlannedCase, PlannedScenario, PlannedTrial, PlannedVariant,
    RequirementEvidence, ResolvedCase, STOPPING_ALPHA, Stopping, VariantSettings,
};
use crate::platform::bounds::Bound;
use crate::scenario::document::Variant;
use crate::scenario::{Case, Diagnostic, Loaded, LoadedScenario, Requirement, Scenario, diagnostic};
use crate::settings::{DeclaredFault, ModelSettings};
use crate::trace::{Arm, EXTERNAL, Lane};
use globset::{GlobBuilder, GlobMatcher};
use sha2::{Digest, Sha256};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Selects trials of a project; the default selects all.
///
/// ```
/// let refunds = ragcheck::Selection { only: vec!["refunds/*".into()], ..Default::default() };
/// assert!(refunds.chooses_cases() && refunds.is_part());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Globs that match a trial's id, its case, or `scenario/case`; a trial needs one match. Empty selects all.
    pub only: Vec<String>,
    /// Globs of trials to exclude, matched in the same way.
    pub exclude: Vec<String>,
    /// Tags; a case needs one of them. Empty selects all.
    pub tags: Vec<String>,
    /// Only this flow.
    pub flow: Option<String>,
    /// Only this variant.
    pub variant: Option<String>,
    /// Number of repetitions, overriding the scenarios.
    pub repeat: Option<u32>,
    /// Only so many of the cases that are selected otherwise, drawn by the run's seed.
    pub sample: Option<u32>,
    /// Only these trial ids.
    pub trials: Option<BTreeSet<String>>,
    /// Run until decided, with at most this many complete passes; overrides other repetitions.
    pub passes: Option<u32>,
}

impl Selection {
    /// Whether it selects among cases, and not only flows, variants or repetitions.
    pub fn chooses_cases(&self) -> bool {
        self.trials.is_some()
            || self.sample.is_some()
            || !(self.only.is_empty() && self.exclude.is_empty() && self.tags.is_empty())
    }

    /// Whether it excludes any of a project's trials.
    pub fn is_part(&self) -> bool {
        self.chooses_cases() || self.flow.is_some() || self.variant.is_some()
    }

    /// The selection as typed; empty for all trials.
    pub fn typed(&self) -> Vec<String> {
        let each = |(option, values): (&str, Vec<String>)| -> Vec<String> {
            values.iter().map(|value| format!("--{option} {value}")).collect()
        };
        self.options().into_iter().flat_map(each).collect()
    }

    /// Options that select among a project's trials, with their values.
    pub(crate) fn options(&self) -> [(&'static str, Vec<String>); 6] {
        let one = |value: &Option<String>| value.iter().cloned().collect();
        [
            ("only", self.only.clone()),
            ("exclude", self.exclude.clone()),
            ("tag", self.tags.clone()),
            ("flow", one(&self.flow)),
            ("variant", one(&self.variant)),
            ("filter-sample", one(&self.sample.map(|cases| cases.to_string()))),
        ]
    }
}

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
        mode: None,
        part: None,
        typed: None,
        changed_recordings: None,
        partition: None,
        hold: None,
        id: String::new(),
        stopping,
        seed,
        scenarios,
        trials: trials.into(),
        criteria: loaded.criteria.clone(),
        not_measured_ok: loaded.project.not_measured_ok.clone(),
        machines: BTreeMap::new(),
        prompts: BTreeMap::new(),
        ratings: loaded.ratings.clone(),
        agreement: loaded.agreement.clone(),
        order: Vec::new(),
        rewards: BTreeMap::new(),
        prices: loaded.project.prices.clone(),
        requirement_sources: sources(loaded),
        requirement_evidence: evidence(loaded),
        requirements: loaded.project.requirements.iter().map(|(id, one)| (id.clone(), one.text.clone())).collect(),
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

struct Wanted<'a> {
    selection: &'a Selection,
    only: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// One pattern of `--only` or `--exclude`, and whether a trial matched it.
struct Pattern {
    glob: GlobMatcher,
    fits: Cell<bool>,
}

impl<'a> Wanted<'a> {
    fn of(loaded: &Loaded, selection: &'a Selection) -> Result<Self, Vec<Diagnostic>> {
        let mut mistakes = Vec::new();
        let mut matchers = |option: &str, patterns: &[String]| -> Vec<Pattern> {
            let matcher = |pattern: &String| match GlobBuilder::new(pattern).literal_separator(false).build() {
                Ok(glob) => Some(Pattern { glob: glob.compile_matcher(), fits: Cell::new(false) }),
                Err(error) => {
                    let message = format!("`--{option} {pattern}` is not a pattern: {}", error.kind());
                    mistakes.push(Diagnostic::error("bad-glob", "", message));
                    None
                }
            };
            patterns.iter().filter_map(matcher).collect()
        };
        let (only, exclude) = (matchers("only", &selection.only), matchers("exclude", &selection.exclude));
        let tags: BTreeSet<&str> = loaded
            .scenarios
            .iter()
            .flat_map(|source| source.scenario.cases.iter().flat_map(|case| case.tags.iter().map(String::as_str)))
            .collect();
        for tag in selection.tags.iter().filter(|tag| !tags.contains(tag.as_str())) {
            let diagnostic = Diagnostic::error("unknown-tag", "", format!("no case has the tag `{tag}`"));
            mistakes.push(diagnostic.with_help(diagnostic::did_you_mean(tag, tags.iter().copied())));
        }
        let flows: BTreeSet<&str> = loaded.scenarios.iter().flat_map(|source| source.scenario.flows()).collect();
        if let Some(flow) = selection.flow.as_ref().filter(|flow| !flows.contains(flow.as_str())) {
            let diagnostic = Diagnostic::error("unknown-flow", "", format!("no scenario has the flow `{flow}`"));
            mistakes.push(diagnostic.with_help(diagnostic::did_you_mean(flow, flows)));
        }
        let known: BTreeSet<&str> = loaded.scenarios.iter().flat_map(|source| variants(&source.scenario)).collect();
        if let Some(variant) = selection.variant.as_ref().filter(|variant| !known.contains(variant.as_str())) {
            let diagnostic = Diagnostic::error("unknown-variant", "", format!("no scenario has a variant `{variant}`"));
            mistakes.push(diagnostic.with_help(diagnostic::did_you_mean(variant, known)));
        }
        if selection.repeat == Some(0) {
            mistakes.push(Diagnostic::error("repeat-zero", "", "with `--repeat 0` nothing runs"));
        }
        if mistakes.is_empty() { Ok(Self { selection, only, exclude }) } else { Err(mistakes) }
    }

    fn wants(&self, id: &str, scenario: &str, case: &Case, lane: &Lane) -> bool {
        let named = |patterns: &[Pattern]| {
            if patterns.is_empty() {
                return false;
            }
            let both = format!("{scenario}/{}", case.case);
            let fits = |glob: &GlobMatcher| glob.is_match(id) || glob.is_match(&case.case) || glob.is_match(&both);
            // Evaluates every pattern: one that matches nothing is a mistake.
            patterns.iter().fold(false, |any, pattern| {
                let fits = fits(&pattern.glob);
                pattern.fits.set(pattern.fits.get() || fits);
                any || fits
            })
        };
        let (only, exclude) = (named(&self.only), named(&self.exclude));
        let of = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|wanted| wanted == own);
        of(&self.selection.flow, &lane.flow)
            && of(&self.selection.variant, &lane.variant)
            && self.selection.trials.as_ref().is_none_or(|trials| trials.contains(id))
            && (self.selection.tags.is_empty() || self.selection.tags.iter().any(|tag| case.tags.contains(tag)))
            && (self.only.is_empty() || only)
            && !exclude
    }
}

/// Error for a pattern that matches nothing: a mistyped name, or a removed case.
fn fits_nothing(loaded: &Loaded, selection: &Selection, wanted: &Wanted<'_>) -> Vec<Diagnostic> {
    let options = [("only", &selection.only, &wanted.only), ("exclude", &selection.exclude, &wanted.exclude)];
    let mut mistakes = Vec::new();
    for (option, written, patterns) in options {
        for (text, _) in written.iter().zip(patterns).filter(|(_, pattern)| !pattern.fits.get()) {
            let diagnostic =
                Diagnostic::error("unknown-case", "", format!("`--{option} {text}` fits no case or trial"));
            let help = nearest_case(loaded, text).map(|meant| format!("did you mean `--{option} {meant}`?"));
            mistakes.push(diagnostic.with_help(help.unwrap_or_else(|| SHOWS.into())));
        }
    }
    mistakes
}

/// An error for each declared fault whose lane no trial of its cases has: it would strike nothing.
fn in_no_lane(loaded: &Loaded, selection: &Selection) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    for scenario in loaded.scenarios.iter().map(|source| &source.scenario) {
        let name = &scenario.scenario;
        let mut check = |faults: &[DeclaredFault], cases: &[Case], whose: &str| {
            for (fault, named) in faults.iter().filter_map(|fault| Some((fault, fault.lane.as_deref()?))) {
                let repeats = [None, selection.passes.or(selection.repeat)];
                let all =
                    cases.iter().flat_map(|case| repeats.iter().flat_map(|repeat| lanes(scenario, case, *repeat)));
                let all: Vec<Lane> = all.collect();
                if all.iter().any(|lane| fault.is_in(&lane.to_string())) {
                    continue;
                }
                let known: BTreeSet<String> =
                    all.iter().map(|lane| format!("{}.{}", lane.flow, lane.variant)).collect();
                let kind = fault.fault.as_str();
                let message =
                    format!("the fault `{kind}` strikes nothing: no trial of `{whose}` has the lane `{named}`");
                let help = diagnostic::did_you_mean(named, known.iter().map(String::as_str));
                mistakes.push(Diagnostic::error("unknown-lane", "", message).with_help(help));
            }
        };
        check(&scenario.faults, &scenario.cases, name);
        for case in &scenario.cases {
            check(&case.faults, std::slice::from_ref(case), &format!("{name}/{}", case.case));
        }
    }
    mistakes
}

const SHOWS: &str = "`ragcheck list` shows the cases and lanes that there are";

fn nearest_case(loaded: &Loaded, pattern: &str) -> Option<String> {
    let cases = loaded.scenarios.iter().flat_map(|source| {
        source.scenario.cases.iter().map(|case| (source.scenario.scenario.as_str(), case.case.as_str()))
    });
    let cases: Vec<String> =
        cases.flat_map(|(scenario, case)| [case.to_owned(), format!("{scenario}/{case}")]).collect();
    diagnostic::nearest(pattern, cases.iter().map(String::as_str)).map(ToOwned::to_owned)
}

fn too_many() -> Diagnostic {
    let message = format!("more than {} trials: cases, variants and repetitions multiply", Bound::Trials.shown());
    Diagnostic::error("too-many-trials", "", message)
        .with_help(format!("select some with `--only` or `--variant`, or repeat less; {}", Bound::Trials.advice()))
}

fn variants(scenario: &Scenario) -> Vec<&str> {
    if scenario.variants.is_empty() { vec!["base"] } else { scenario.variants.keys().map(String::as_str).collect() }
}

/// All lanes of a case: variant, repetition, arm.
fn lanes(scenario: &Scenario, case: &Case, repeat: Option<u32>) -> Vec<Lane> {
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
