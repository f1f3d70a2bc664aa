//! Checks of criteria, gates and the project file.

use super::check_services::login;
use super::criteria::Per;
use super::diagnostic::{At, Mistake, did_you_mean};
use super::grammar::{GrammarError, Target, parse_floor, parse_target};
use super::{Criteria, Criterion, GateKind, Project, resolve_metric};
use crate::settings::catalogue::{Better, Catalogues, Figure, MetricEntry, ResolvedMetric, Units, Values};
use crate::trace::Role;
use std::collections::BTreeSet;

/// Criteria or gates, with their indices in the file if some were dropped.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The criteria.
    pub rows: &'a [Criterion],
    /// Their indices in the file; `None` when none was dropped.
    pub kept: Option<&'a [usize]>,
}

/// Names that criteria may use.
pub(super) struct Known<'a> {
    pub metrics: &'a [&'static MetricEntry],
    /// The tools of the flows concerned; `None` where an agent's tools are known only at run time.
    pub tools: Option<BTreeSet<&'a str>>,
    /// The flows; `None` when reading a plan, whose flows may come from another build.
    pub flows: Option<Vec<&'static str>>,
}

/// Checks a criteria file.
pub(super) fn criteria(criteria: &Criteria, known: &Known<'_>, kept: &[usize]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let root = At::ROOT;
    for (index, flow) in criteria.flows.iter().enumerate() {
        let flows = root.key("flows");
        flow_exists(flow, known, flows.index(index), &mut mistakes);
    }
    if criteria.criteria.is_empty() && criteria.flows.is_empty() && kept.is_empty() {
        mistakes.push(Mistake::at(
            root.key("criteria"),
            "no-criteria",
            "the file states no criteria: nothing would be judged",
        ));
    }
    rows(Rows { rows: &criteria.criteria, kept: Some(kept) }, known, root.key("criteria"), &mut mistakes);
    mistakes
}

/// Checks criteria or gates.
pub(super) fn rows(written: Rows<'_>, known: &Known<'_>, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    let mut ids = BTreeSet::new();
    for (position, row) in written.rows.iter().enumerate() {
        let index = written.kept.and_then(|kept| kept.get(position)).copied().unwrap_or(position);
        let at = at.index(index);
        if row.id.trim().is_empty() {
            mistakes.push(Mistake::at(at.key("id"), "empty-text", "a criterion needs an id"));
        } else if !ids.insert(row.id.as_str()) {
            mistakes.push(Mistake::at(at.key("id"), "duplicate-criterion", "another criterion has this id"));
        }
        criterion(row, known, at, mistakes);
    }
}

/// A parsed criterion.
#[derive(Debug, Clone)]
pub struct ReadCriterion {
    /// Its metric with all parameters.
    pub metric: ResolvedMetric,
    pub target: Target,
    /// For an invariant: the share of good units that the bound must reach.
    pub floor: Option<f64>,
    /// For `confidence`: how far below the target a share of good units may be and still pass a run until decided; 0
    /// is strict.
    pub margin: f64,
    /// Unit that the rate is counted over, as written or implied by the metric.
    pub per: Per,
}

/// Reason why a criterion cannot be parsed, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CriterionError(String);

impl Criterion {
    /// Reads metric, target and floor by the rules that `check` applies.
    ///
    /// # Errors
    /// The first mistake: what is wrong and what to write.
    pub fn read(&self, metrics: &[&'static MetricEntry]) -> Result<ReadCriterion, CriterionError> {
        let mut mistakes = Vec::new();
        let read = criterion(self, &Known { metrics, tools: None, flows: None }, At::ROOT, &mut mistakes);
        match (read, mistakes.into_iter().next()) {
            (Some(read), None) => Ok(read),
            (_, Some(mistake)) => Err(CriterionError(mistake.sentence())),
            (None, None) => Err(CriterionError("the criterion cannot be read".to_owned())),
        }
    }
}

fn criterion(row: &Criterion, known: &Known<'_>, at: At<'_>, mistakes: &mut Vec<Mistake>) -> Option<ReadCriterion> {
    let metric = resolve_metric(&row.metric, known.metrics);
    let metric = metric.map_err(|error| mistakes.push(grammar_mistake(error, at.key("metric"), "bad-metric"))).ok();
    let target = parse_target(&row.target);
    let target = target.map_err(|error| mistakes.push(grammar_mistake(error, at.key("target"), "bad-target"))).ok();
    if let (Some(metric), Some(tools)) = (&metric, &known.tools) {
        named_tools(metric, tools, row, at, mistakes);
    }
    if let (Some(metric), Some(target)) = (&metric, target)
        && target.is_time() == (metric.entry.figure == Figure::Rate)
    {
        let wanted = if target.is_time() { "a rate, `>= 95%` for example" } else { "a time, `<= 10s` for example" };
        mistakes.push(Mistake::at(at.key("target"), "bad-target", format!("this metric's target is {wanted}")));
    }
    if let (Some(metric), Some(target)) = (&metric, target)
        && !row.meant
        && metric.entry.figure == Figure::Rate
    {
        mistakes.extend(unusual(row, metric.entry.better, target, at.key("target")));
    }
    // Every unit must be good; for a time the target already says so.
    let whole = target.is_some_and(|target| target.good_share(1.0) >= 1.0);
    let timed = target.is_some_and(Target::is_time);
    if row.kind == GateKind::Confidence && whole && !timed {
        let mistake = Mistake::at(at.key("target"), "unreachable-target", "no number of trials bounds a rate at 100 %");
        let floor = if target.is_some_and(Target::is_ceiling) { "<= 5%" } else { ">= 95%" };
        mistakes.push(mistake.help(format!("use `kind: invariant`, with `floor: \"{floor}\"` for the bound")));
    }
    if row.kind == GateKind::Invariant && target.is_some() && !whole {
        let message = "an invariant allows no violation: its target is `= 100%`, or `= 0%` where fewer is better";
        let mistake = Mistake::at(at.key("target"), "bad-target", message);
        mistakes.push(mistake.help("use `kind: confidence` for a rate below"));
    }
    if let Some(flow) = &row.flow {
        flow_exists(flow, known, at.key("flow"), mistakes);
    }
    if row.min_n == Some(0) {
        mistakes.push(Mistake::at(
            at.key("min_n"),
            "bad-value",
            "`min_n` is 1 or more: nothing measured is never a success",
        ));
    }
    if row.floor.is_some() && row.kind != GateKind::Invariant {
        let mistake = Mistake::at(at.key("floor"), "bad-value", "only an invariant has a floor").on_key();
        mistakes.push(mistake.help("the target of the other kinds is the bound already"));
    }
    let floor = match (&row.floor, target) {
        (Some(floor), Some(target)) => match parse_floor(floor, target) {
            Ok(floor) => Some(floor),
            Err(error) => {
                mistakes.push(grammar_mistake(error, at.key("floor"), "bad-target"));
                None
            }
        },
        _ => None,
    };
    per(row, metric.as_ref(), at, mistakes);
    let (metric, target) = (metric?, target?);
    let margin = margin(row, target.good_share(metric.entry.figure.quantile().unwrap_or(1.0)), at, mistakes);
    let counted = row.per.unwrap_or(if metric.entry.units == Units::Planned { Per::Unit } else { Per::Conversation });
    Some(ReadCriterion { metric, target, floor, margin, per: counted })
}

/// A rate per unit needs a limit on the units of one conversation wherever the agent's behaviour determines their
/// number. Without it, one conversation could hold more units than all others together.
fn per(row: &Criterion, metric: Option<&ResolvedMetric>, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    if row.most == Some(0) {
        mistakes.push(Mistake::at(at.key("most"), "bad-value", "`most` is 1 or more"));
    }
    if row.most.is_some() && row.per != Some(Per::Unit) {
        let mistake =
            Mistake::at(at.key("most"), "bad-value", "only `per: unit` needs the most units of a conversation");
        mistakes.push(mistake.on_key().help("remove it, or write `per: unit`"));
    }
    let unlimited = metric.is_some_and(|metric| metric.entry.units == Units::Unlimited);
    if row.per == Some(Per::Unit) && row.most.is_none() && unlimited {
        let message = "what the agent does says how many units a conversation has, and nothing limits them";
        let mistake = Mistake::at(at.key("per"), "no-maximum", message);
        mistakes.push(mistake.help("write the most that one can have, `most: 8` for example, or `per: conversation`"));
    }
}

fn flow_exists(flow: &str, known: &Known<'_>, at: At<'_>, mistakes: &mut Vec<Mistake>) {
    if let Some(flows) = known.flows.as_ref().filter(|flows| !flows.contains(&flow)) {
        let mistake = Mistake::at(at, "unknown-flow", "unknown flow");
        mistakes.push(mistake.label(did_you_mean(flow, flows.iter().copied())));
    }
}

/// Tools that a metric names and no flow concerned declares.
fn named_tools(
    metric: &ResolvedMetric,
    tools: &BTreeSet<&str>,
    row: &Criterion,
    at: At<'_>,
    mistakes: &mut Vec<Mistake>,
) {
    for parameter in metric.entry.parameters.iter().filter(|parameter| matches!(parameter.values, Values::Tool)) {
        let named = metric.parameter(parameter.name);
        if Role::given(named).is_some() || tools.contains(named) {
            continue;
        }
        let place = row.metric.find(named).map_or(0, |byte| row.metric[..byte].chars().count());
        let known = tools.iter().copied().chain(Role::GIVEN.map(Role::as_str));
        let mistake = Mistake::at(at.key("metric"), "unknown-tool", format!("no flow here has a tool `{named}`"));
        mistakes.push(mistake.within(place, named.chars().count()).label(did_you_mean(named, known)));
    }
}

/// A target that is probably a mistake: it asks for nothing, bounds the wrong side for its metric, or reads 0.95 as
/// per cent.
fn unusual(row: &Criterion, better: Better, target: Target, at: At<'_>) -> Option<Mistake> {
    const MEANT: &str = "if this is intended, write `meant: true`";
    if target.is_time() {
        return None;
    }
    if target.good_share(1.0) <= 0.0 {
        let message = "every figure meets this target: it asks nothing";
        return Some(Mistake::at(at, "vacuous-target", message).help(MEANT));
    }
    if target.is_ceiling() != (better == Better::Lower) {
        let name = row.metric.split('(').next().unwrap_or_default().trim();
        let (way, sign) = if better == Better::Lower { ("lower", "<=") } else { ("higher", ">=") };
        let message = format!("{way} is better for `{name}`, so this target rewards what is worse");
        return Some(Mistake::at(at, "reversed-target", message).help(format!("write `{sign}`; {MEANT}")));
    }
    let number = row
        .target
        .trim()
        .strip_suffix('%')
        .and_then(|text| text.trim_start_matches(['>', '=', ' ']).trim().parse().ok());
    let tiny = number.is_some_and(|number: f64| number > 0.0 && number < 1.0);
    (tiny && !target.is_ceiling()).then(|| {
        let number = number.unwrap_or_default();
        let message = format!("{number}% is {}: nearly everything meets it", number / 100.0);
        Mistake::at(at, "vacuous-target", message)
            .help(format!("write `>= {}%` or `>= {number}`; {MEANT}", number * 100.0))
    })
}

/// The margin of a criterion with this target share of good units; 0 where there is none or it is invalid.
fn margin(row: &Criterion, share: f64, at: At<'_>, mistakes: &mut Vec<Mistake>) -> f64 {
    let Some(text) = &row.margin else { return 0.0 };
    let at = at.key("margin");
    if row.kind != GateKind::Confidence {
        let mistake = Mistake::at(at, "bad-value", "only `kind: confidence` has a margin").on_key();
        mistakes.push(mistake.help("an invariant allows no violation, and a point gate bounds nothing"));
        return 0.0;
    }
    let number = text.trim().strip_suffix('%').map(|number| number.trim().parse::<f64>().map(|value| value / 100.0));
    match number.unwrap_or_else(|| text.trim().parse()) {
        Ok(margin) if margin > 0.0 && margin < share => margin,
        Ok(_) => {
            let message = "a margin is more than 0 and leaves something of the target";
            mistakes.push(Mistake::at(at, "bad-value", message).help("`5%` below `>= 95%` passes rates above 90 %"));
            0.0
        }
        Err(_) => {
            mistakes.push(Mistake::at(at, "bad-value", "expected a share, `5%` for example"));
            0.0
        }
    }
}

fn grammar_mistake(error: GrammarError, at: At<'_>, code: &'static str) -> Mistake {
    let mut mistake = Mistake::at(at, code, error.message).within(error.start, error.length);
    mistake.told.label = error.label;
    mistake
}

/// Largest number of patterns for scenario files.
pub(super) const MOST_PATTERNS: usize = 100;

/// Checks the project file.
pub(super) fn project(project: &Project, catalogues: &Catalogues) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let root = At::ROOT;
    let bounds = root.key("bounds");
    for (bound, amount) in &project.bounds {
        if amount.raises(*bound) {
            let message = format!("a project file may lower this limit, from {}, and not raise it", bound.shown());
            let mistake = Mistake::at(bounds.key(bound.name()), "raised-limit", message);
            mistakes.push(mistake.help(bound.advice()));
        }
    }
    let scenarios = root.key("scenarios");
    if project.scenarios.len() > MOST_PATTERNS {
        let message = format!("{} patterns: a project has {MOST_PATTERNS} at most", project.scenarios.len());
        mistakes.push(Mistake::at(scenarios, "too-many-patterns", message).help("`**` matches any number of folders"));
    }
    for (index, pattern) in project.scenarios.iter().enumerate() {
        if let Err(error) = globset::Glob::new(pattern) {
            let mistake = Mistake::at(scenarios.index(index), "bad-glob", "not a file pattern");
            mistakes.push(mistake.label(error.kind().to_string()));
        }
    }
    let providers = root.key("providers");
    for (name, provider) in &project.providers {
        let at = providers.key(name);
        if catalogues.dialect(&provider.dialect).is_none() {
            let known = catalogues.dialects.iter().map(|dialect| dialect.name);
            let mistake = Mistake::at(at.key("dialect"), "unknown-dialect", "unknown dialect");
            mistakes.push(mistake.label(did_you_mean(&provider.dialect, known)));
        }
        let scheme = ["http://", "https://"].iter().any(|scheme| provider.base_url.starts_with(scheme));
        if !scheme {
            let mistake = Mistake::at(at.key("base_url"), "bad-url", "a base URL begins with `https://` or `http://`");
            mistakes.push(mistake);
        }
        let help = "remove it: `key: VARIABLE` names the environment variable of the key";
        mistakes.extend(login(&provider.base_url, at.key("base_url"), help));
        let variable = |key: &String| {
            let legal = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
            !key.is_empty() && key.chars().all(legal)
        };
        if provider.key.as_ref().is_some_and(|key| !variable(key)) {
            let message = "`key` is the name of an environment variable, never the key itself";
            let mistake = Mistake::at(at.key("key"), "bad-key", message).without_quote();
            mistakes.push(mistake.help("for example `key: OPENAI_API_KEY`; if a real key stood here, revoke it"));
        }
        let limits = [
            ("concurrency", provider.concurrency.map(u64::from)),
            ("requests_per_minute", provider.requests_per_minute.map(u64::from)),
            ("tokens_per_minute", provider.tokens_per_minute),
        ];
        for (name, _) in limits.into_iter().filter(|(_, limit)| *limit == Some(0)) {
            mistakes.push(Mistake::at(at.key(name), "bad-value", format!("with `{name}: 0` nothing is ever asked")));
        }
    }
    for (id, requirement) in &project.requirements {
        let requirements = root.key("requirements");
        let at = requirements.key(id);
        if id.trim().is_empty() || id.contains(char::is_whitespace) {
            let mistake = Mistake::at(at, "bad-name", "an id is one word, `FR-003` for example").on_key();
            mistakes.push(mistake);
        }
        if requirement.text.trim().is_empty() {
            mistakes.push(Mistake::at(at.key("text"), "empty-text", "a requirement without words"));
        }
    }
    mistakes.extend(super::check_knowledge::bases(project, catalogues, root.key("knowledge_bases")));
    mistakes.extend(super::check_managed::services(project, root.key("managed_retrieval")));
    mistakes.extend(super::prices::check(&project.prices, root.key("prices")));
    mistakes
}

/// Checks that the ids in `not_measured_ok` exist.
pub(super) fn not_measured(project: &Project, known: &BTreeSet<String>) -> Vec<Mistake> {
    let root = At::ROOT;
    let at = root.key("not_measured_ok");
    let unknown = project.not_measured_ok.iter().enumerate().filter(|(_, id)| !known.contains(*id));
    unknown
        .map(|(index, id)| {
            let mistake = Mistake::at(at.index(index), "unknown-criterion", format!("unknown criterion `{id}`"));
            mistake.label(did_you_mean(id, known.iter().map(String::as_str)))
        })
        .collect()
}
