//! `ragcheck explain`: explains what a criterion or a metric measures, and how it is judged.

use super::arguments::{Explain, Printed};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::scenario::criteria::Per;
use crate::scenario::diagnostic::did_you_mean;
use crate::scenario::{self, Criterion, GateKind};
use crate::settings::catalogue::{MetricEntry, Units};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// Runs `ragcheck explain`.
///
/// # Errors
/// If nothing has that name, or the criteria have mistakes.
pub(super) fn run(given: &Explain) -> Result<Exit, Problem> {
    let here = super::select::current_folder()?;
    let named = given.name.as_deref();
    let catalogues = crate::catalogues();
    let metrics: Vec<&MetricEntry> =
        catalogues.metrics.iter().copied().filter(|entry| named.is_none_or(|name| name == entry.name)).collect();
    let (_, criteria) = super::select::from_here(&[], given.criteria.as_deref());
    let criteria = match scenario::load(&scenario::find_root(&here), &[], criteria.as_deref(), &catalogues) {
        Ok(loaded) => loaded.criteria.criteria,
        Err(_) if !metrics.is_empty() && named.is_some() => Vec::new(),
        Err(mistakes) => return Err(mistakes.into()),
    };
    let implicit = Criterion::every_case();
    let all: Vec<&Criterion> = criteria.iter().chain(named.map(|_| &implicit)).collect();
    let asked = |criterion: &&Criterion| named.is_none_or(|name| name.eq_ignore_ascii_case(&criterion.id));
    let criteria: Vec<&Criterion> = all.iter().copied().filter(asked).collect();
    if metrics.is_empty() && criteria.is_empty() {
        let name = named.unwrap_or_default();
        let ids = all.iter().map(|criterion| criterion.id.as_str());
        let known = ids.chain(catalogues.metrics.iter().map(|entry| entry.name));
        return Err(Problem::Words(format!(
            "no criterion or metric is called `{name}`: {}; `ragcheck explain` prints them all",
            did_you_mean(name, known)
        )));
    }
    if given.format == Printed::Json {
        let explanation = Explanation {
            criteria: criteria.into_iter().map(ExplainedCriterion::of).collect(),
            metrics: metrics.into_iter().map(ExplainedMetric::of).collect(),
        };
        output::data_as_json(&explanation)?;
        return Ok(Exit::Passed);
    }
    let mut out = String::new();
    for criterion in criteria {
        out.push_str(&of_criterion(criterion));
    }
    for metric in metrics {
        let _ = writeln!(out, "{}\n  {}\n  {}\n", metric.signature(), metric.about, counted(metric));
    }
    output::result(&out);
    Ok(Exit::Passed)
}

/// Criteria and metrics, as `explain --format json` prints them.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Explanation {
    /// The criteria that were asked for.
    criteria: Vec<ExplainedCriterion>,
    /// The metrics that were asked for.
    metrics: Vec<ExplainedMetric>,
}

/// A criterion.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedCriterion {
    /// Its id.
    id: String,
    /// What it is about.
    about: String,
    /// The metric and its arguments.
    metric: String,
    /// The target as written.
    target: String,
    /// How its verdict is reached, in words.
    kind: &'static str,
    /// Whether it decides the exit code.
    required: bool,
}

/// A metric.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedMetric {
    /// Its name and parameters.
    signature: String,
    /// What it measures.
    about: String,
    /// What it counts by default, and what `per: unit` needs.
    counts: &'static str,
}

impl ExplainedCriterion {
    fn of(criterion: &Criterion) -> Self {
        Self {
            id: criterion.id.clone(),
            about: criterion.about.clone(),
            metric: criterion.metric.clone(),
            target: criterion.target.clone(),
            kind: reached(criterion),
            required: criterion.is_required(),
        }
    }
}

impl ExplainedMetric {
    fn of(metric: &MetricEntry) -> Self {
        Self { signature: metric.signature().clone(), about: metric.about.to_string(), counts: counted(metric) }
    }
}

/// What a metric counts by default, and what `per: unit` needs.
fn counted(metric: &MetricEntry) -> &'static str {
    match metric.units {
        Units::Planned => "counts units (the script fixes their number); `per: conversation` counts conversations",
        Units::OfTurns => "counts conversations (at most one unit per turn); `per: unit` counts units",
        Units::OfCompletions => {
            "counts conversations (at most `limits.model_calls` units per turn); `per: unit` counts units"
        }
        Units::Unlimited => {
            "counts conversations (any number of units); `per: unit` with `most`, the maximum of one conversation, counts units"
        }
    }
}

/// How the verdict of a criterion is reached.
fn reached(criterion: &Criterion) -> &'static str {
    match criterion.kind {
        GateKind::Invariant => "invariant: one violation fails it",
        GateKind::Confidence => {
            "confidence: passes when the one-sided 95 % bound reaches the target, fails when the opposite bound misses it, \
             and is undecided between. Clopper-Pearson where every conversation has one unit, a bet on whole \
             conversations otherwise, cases of equal weight with `estimand: population`; the 5 % of the FAIL side are \
             shared among the required confidence gates of a run"
        }
        GateKind::Point if criterion.is_required() => "point: the observed figure decides, and luck with it",
        GateKind::Point => "point: the observed figure decides; advisory, since luck decides with it",
    }
}

fn of_criterion(criterion: &Criterion) -> String {
    let mut out = format!("{}  {}\n", criterion.id, criterion.about);
    let _ = writeln!(out, "  metric   {}", criterion.metric);
    let _ = writeln!(out, "  target   {}", criterion.target);
    let how = reached(criterion);
    let _ = writeln!(out, "  kind     {how}");
    match (criterion.per, criterion.most) {
        (Some(Per::Unit), Some(most)) => {
            let _ = writeln!(out, "  per      unit, at most {most} in one conversation");
        }
        (Some(Per::Unit), None) => out.push_str("  per      unit\n"),
        (Some(Per::Conversation), _) => out.push_str("  per      conversation\n"),
        (None, _) => {}
    }
    if let Some(floor) = &criterion.floor {
        let _ = writeln!(out, "  floor    the lower bound must reach {floor} as well");
    }
    if let Some(least) = criterion.min_n {
        let _ = writeln!(
            out,
            "  min_n    fewer than {least} conversations (with `estimand: population`: cases) are INCONCLUSIVE"
        );
    }
    if let Some(margin) = &criterion.margin {
        let _ =
            writeln!(out, "  margin   in a run until decided, {margin} on the wrong side of the target may still pass");
    }
    let required = if criterion.is_required() { "yes" } else { "no: shown, and never fails the run" };
    let _ = writeln!(out, "  required {required}");
    if *criterion == Criterion::every_case() {
        let _ = writeln!(
            out,
            "  applies to every scenario that has no gate on `case_pass_rate` and none called `cases`; `gates: []` removes it"
        );
    }
    out.push('\n');
    out
}
