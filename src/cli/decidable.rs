//! Diagnostics of `ragcheck check` on criteria that the selected cases cannot decide: too few cases for a target,
//! repetitions that do not fill a unit, and no case that can be a unit.

use crate::metric::{Tools, catalogue};
use crate::plan::{Plan, PlannedTrial};
use crate::scenario::criteria::Estimand;
use crate::scenario::{Criterion, Diagnostic, GateKind, Loaded, resolve_metric};
use crate::stats::population;
use crate::suite::evaluation::{Prospect, can_count, prospects};
use crate::trace::Arm;
use crate::trace::text::plural;
use std::collections::{BTreeMap, BTreeSet};

/// One error for each case whose repetitions do not fill whole units of a criterion with several repetitions per unit.
pub(super) fn ragged(plan: &Plan) -> Vec<Diagnostic> {
    let mut repetitions: BTreeMap<(usize, usize, String), u32> = BTreeMap::new();
    for trial in plan.trials.iter().filter(|trial| trial.lane.arm == Arm::Main) {
        let number = repetitions.entry((trial.scenario, trial.case, trial.lane.variant.clone())).or_default();
        *number = (*number).max(trial.lane.repetition);
    }
    let mut found = BTreeMap::new();
    for ((scenario, case, _), number) in repetitions {
        let of = &plan.scenarios[scenario];
        let case = &of.cases[case].case;
        for written in plan.criteria.criteria.iter().chain(&of.gates) {
            let Ok(metric) = resolve_metric(&written.metric, &catalogue::entries()) else { continue };
            let size = metric.parameters.get("k").and_then(|size| size.parse::<u32>().ok()).filter(|size| *size > 0);
            let Some(size) = size.filter(|size| number % size > 0) else { continue };
            if case.excluded_from.contains_key(&written.id) {
                continue;
            }
            let message = format!(
                "`{}` is repeated {number} times, and {} of {} takes {size} repetitions for one unit",
                case.case, written.metric, written.id
            );
            let help = format!("repeat it a multiple of {size} times");
            let diagnostic = Diagnostic::error("ragged-repetitions", &of.file, message).with_help(help);
            found.insert((scenario, case.case.clone(), written.id.clone()), diagnostic);
        }
    }
    found.into_values().collect()
}

/// One error for each required criterion that has no possible unit: no trial is of its flow, no agent has a tool of its role,
/// or every case is of another kind or excluded. Criteria on the whole run are included if `whole` says that they decide.
pub(super) fn without_units(loaded: &Loaded, plan: &Plan, whole: bool) -> Vec<Diagnostic> {
    let flows = crate::catalogues().flows;
    let roles = |flow: &str| flows.iter().find(|entry| entry.name == flow).filter(|entry| entry.tools.is_some());
    let mut found = Vec::new();
    for (of, written) in plan.criteria_and_gates().filter(|(of, _)| whole || of.is_some()) {
        if !written.is_required() || plan.not_measured_ok.contains(&written.id) {
            continue;
        }
        let asked = resolve_metric(&written.metric, &catalogue::entries()).ok();
        let Some(metric) = asked.and_then(|asked| catalogue::resolve(&asked).ok()) else { continue };
        let near = || plan.trials.iter().filter(move |trial| of.is_none_or(|at| at == trial.scenario));
        let mine = || near().filter(|trial| written.counts_flow(&trial.lane.flow));
        let lacks = |flow: &str| {
            // The tools of an external agent are known only when it runs.
            let known = roles(flow).map(crate::settings::catalogue::FlowEntry::roles)?;
            metric.needs.iter().find_map(|tools| match tools {
                Tools::Role(role) if !known.values().any(|own| own == role) => Some(*role),
                _ => None,
            })
        };
        let can =
            |trial: &PlannedTrial| can_count(plan, of, written, &metric, trial) && lacks(&trial.lane.flow).is_none();
        if near().next().is_none() || near().any(can) {
            continue;
        }
        let role = mine().find_map(|trial| lacks(&trial.lane.flow));
        let why = match (role, &written.flow) {
            (Some(role), _) => format!("no agent here has a tool with the role `{}`", role.as_str()),
            (None, Some(flow)) if mine().next().is_none() => format!("no trial is of the flow `{flow}`"),
            (None, _) => "every case is of another kind, or left out".to_owned(),
        };
        let file = file_of(loaded, plan, of);
        let message = format!("no case can be a unit of {} ({}): {why}", written.id, written.metric);
        let help = "write a case for it, remove it, or declare it under `not_measured_ok`";
        found.push(Diagnostic::error("no-units", file, message).with_help(help));
    }
    found
}

/// One note for each required gate that cannot pass with its conversations, or that would rarely pass at a true rate
/// that deserves it. Criteria on the whole run are included if `whole` says that they decide.
pub(super) fn poor_prospects(loaded: &Loaded, plan: &Plan, whole: bool) -> Vec<Diagnostic> {
    let population = plan.criteria.estimand == Estimand::Population;
    // Too few cases are reported by `too_few_cases`.
    let told = |one: &Prospect| population && !one.can_pass();
    let note = |one: Prospect| {
        let file = file_of(loaded, plan, one.scenario);
        let code = if one.can_pass() { "seldom-passes" } else { "cannot-pass" };
        let message = format!("{}: {}", one.key, one.sentence);
        let help = "add cases or repetitions, or lower the target; each conversation is counted as one unit";
        Diagnostic::note(code, file, message).with_help(help)
    };
    let poor = prospects(plan, whole).into_iter().filter(Prospect::is_poor).filter(|one| !told(one));
    poor.map(note).collect()
}

/// One note if ratings name trials that no scenario has.
pub(super) fn unknown_ratings(loaded: &Loaded, plan: &Plan) -> Option<Diagnostic> {
    let (ratings, file) = (loaded.ratings.as_ref()?, loaded.project.ratings.as_ref()?);
    let mut unknown = ratings.keys().filter(|trial| plan.trials.place_of(trial).is_none());
    let first = unknown.next()?;
    let number = unknown.count() + 1;
    let message = format!("{number} of {} ratings name no trial of the project, first `{first}`", ratings.len());
    let help = "ratings belong to the trials of `trials.csv`: their ids change with scenario, case and variant";
    Some(Diagnostic::note("unknown-rating", file, message).with_help(help))
}

/// File of a scenario's gates, or of the criteria on the whole run.
fn file_of<'l>(loaded: &'l Loaded, plan: &'l Plan, of: Option<usize>) -> &'l str {
    match of {
        Some(at) => &plan.scenarios[at].file,
        None if loaded.criteria_file.is_empty() => "ragcheck.yaml",
        None => &loaded.criteria_file,
    }
}

/// File of a criterion or gate, and its key in reports.
pub(super) fn place<'l>(
    loaded: &'l Loaded,
    plan: &'l Plan,
    of: Option<usize>,
    written: &Criterion,
) -> (&'l str, String) {
    let scenario = of.map(|at| format!("{}/", plan.scenarios[at].name)).unwrap_or_default();
    (file_of(loaded, plan, of), scenario + &written.id)
}

/// With `estimand: population`, one note for each required target that needs more cases than there are. Criteria on the
/// whole run are included if `whole` says so.
pub(super) fn too_few_cases(loaded: &Loaded, plan: &Plan, whole: bool) -> Vec<Diagnostic> {
    if plan.criteria.estimand != Estimand::Population {
        return Vec::new();
    }
    let first = plan.first_alike();
    let distinct = |of: Option<usize>| {
        let cases = first.iter().filter(|((scenario, _), _)| of.is_none_or(|of| of == *scenario));
        cases.map(|(_, first)| first).collect::<BTreeSet<_>>().len()
    };
    let note = |(of, written): (Option<usize>, &Criterion)| {
        let read = written.read(&catalogue::entries()).ok()?;
        let quantile =
            resolve_metric(&written.metric, &catalogue::entries()).ok()?.entry.figure.quantile().unwrap_or(0.95);
        let bound = match written.kind {
            GateKind::Confidence => read.target.good_share(quantile),
            GateKind::Invariant => read.floor?,
            GateKind::Point => return None,
        };
        let needed = population::cases_for(0.0, bound)?.max(u64::from(written.min_n.unwrap_or(0)));
        let cases = distinct(of);
        if !written.is_required() || needed <= cases as u64 {
            return None;
        }
        let (file, id) = place(loaded, plan, of, written);
        let message = format!(
            "{id} cannot pass: with `estimand: population` a rate of {:.1} % or more needs {needed} cases without a \
             failure, and there are {}",
            bound * 100.0,
            plural(cases, "distinct case")
        );
        let help =
            "write more cases (repetitions of a case add none), lower the target, or say `estimand: fixed_suite`";
        Some(Diagnostic::note("too-few-cases", file, message).with_help(help))
    };
    plan.criteria_and_gates().filter(|(of, _)| whole || of.is_some()).filter_map(note).collect()
}
