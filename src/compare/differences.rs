//! Lists differences between the two sides other than their figures; read them first.

use super::collect::NO_GATE;
use super::pairing::Pair;
use super::sentences::NAMED;
use super::summary::{CaseFigures, Measured, Setting, Summary};
use crate::scenario::target_text;
use crate::trace::text::{count, listed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};

/// One setting that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// `model`, `enforcement`, `knowledge` and so on.
    pub what: String,
    /// Under A.
    pub a: String,
    /// Under B.
    pub b: String,
    /// The scenarios concerned.
    pub scenarios: Vec<String>,
}

/// One prompt that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptChange {
    /// The prompt's name.
    pub name: String,
    /// The scenarios concerned.
    pub scenarios: Vec<String>,
    /// The changed lines, each prefixed with `-`, `+` or a space.
    pub lines: Vec<String>,
}

/// Placeholder for a prompt that is not replaced.
const BUILT_IN: &str = "(the built-in text)";

/// Differences between paired settings; equal differences of several scenarios are merged.
pub(super) fn differences(settings: &[(&Setting, &Setting)]) -> (Vec<Difference>, Vec<PromptChange>) {
    let mut rows: Vec<Difference> = Vec::new();
    let mut prompts: Vec<PromptChange> = Vec::new();
    for (a, b) in settings {
        for (what, one, other) in facts(a, b) {
            if one == other {
                continue;
            }
            if let Some(row) = rows.iter_mut().find(|row| row.what == what && row.a == one && row.b == other) {
                note(&mut row.scenarios, &a.scenario);
            } else {
                let scenarios = vec![a.scenario.clone()];
                rows.push(Difference { what: what.into(), a: one, b: other, scenarios });
            }
        }
        let names: BTreeSet<&String> = a.prompts.keys().chain(b.prompts.keys()).collect();
        for name in names.into_iter().filter(|name| a.prompts.get(*name) != b.prompts.get(*name)) {
            let lines = changed(text(&a.prompts, name), text(&b.prompts, name));
            if let Some(row) = prompts.iter_mut().find(|row| row.name == *name && row.lines == lines) {
                note(&mut row.scenarios, &a.scenario);
            } else {
                prompts.push(PromptChange { name: name.clone(), scenarios: vec![a.scenario.clone()], lines });
            }
        }
    }
    (rows, prompts)
}

/// Selects a digest within a case's figures.
type Digest = fn(&CaseFigures) -> &str;

/// Differences in what the agent must do: criteria, case texts, expectations. A rate that rose because less was
/// expected is not progress.
pub(super) fn asked(a: &Summary, b: &Summary, pairs: &[Pair<'_>]) -> Vec<Difference> {
    let mut rows = Vec::new();
    for one in &a.criteria {
        let words = |measured: &Measured| {
            let judged = if measured.judged.is_empty() { String::new() } else { format!(", {}", measured.judged) };
            format!("{}{judged}", target_text(&measured.target))
        };
        let of_both = one.key.split_once('/').is_none_or(|(scenario, _)| b.has(scenario));
        let other = match b.criteria.iter().find(|other| other.key == one.key) {
            Some(other) => words(other),
            None if one.required && of_both => NO_GATE.to_owned(),
            None => continue,
        };
        if words(one) != other {
            rows.push(Difference {
                what: format!("criterion {}", one.key),
                a: words(one),
                b: other,
                scenarios: Vec::new(),
            });
        }
    }
    gates(a, b, &mut rows);
    let digests: [(&str, Digest); 2] = [("case text", |case| &case.text), ("expectations", |case| &case.expected)];
    for (what, digest) in digests {
        let differs = |pair: &&Pair<'_>| {
            let known = |(a, b): &&(&CaseFigures, &CaseFigures)| !digest(a).is_empty() && !digest(b).is_empty();
            pair.rows.iter().filter(known).any(|(a, b)| digest(a) != digest(b))
        };
        let changed: Vec<&Pair<'_>> = pairs.iter().filter(differs).collect();
        if changed.is_empty() {
            continue;
        }
        let names: Vec<String> = changed.iter().map(|pair| format!("{}/{}", pair.scenario, pair.case)).collect();
        let mut scenarios = Vec::new();
        for pair in &changed {
            note(&mut scenarios, pair.scenario);
        }
        let b = format!("changed in {}: {}", count(names.len() as u64, "case", "cases"), listed(&names, NAMED));
        rows.push(Difference { what: what.into(), a: "as before".into(), b, scenarios });
    }
    rows
}

/// The gates on the cases of a scenario that both sides have, where both say which they are.
fn gates(a: &Summary, b: &Summary, rows: &mut Vec<Difference>) {
    const WHAT: &str = "gate on cases";
    let (Some(ours), Some(theirs)) = (&a.gates, &b.gates) else { return };
    for (scenario, one) in ours {
        let Some(other) = theirs.get(scenario).filter(|other| *other != one) else { continue };
        let told = rows.iter_mut().find(|row| row.what == WHAT && row.a == *one && row.b == *other);
        match told {
            Some(row) => note(&mut row.scenarios, scenario),
            None => rows.push(Difference {
                what: WHAT.into(),
                a: one.clone(),
                b: other.clone(),
                scenarios: vec![scenario.clone()],
            }),
        }
    }
}

fn note(scenarios: &mut Vec<String>, scenario: &str) {
    if !scenarios.iter().any(|known| known == scenario) {
        scenarios.push(scenario.to_owned());
    }
}

fn text<'t>(prompts: &'t BTreeMap<String, String>, name: &str) -> &'t str {
    prompts.get(name).map_or(BUILT_IN, String::as_str)
}

/// The settings of both sides as text; a value unknown on one side is not a difference.
fn facts(a: &Setting, b: &Setting) -> Vec<(&'static str, String, String)> {
    let mut facts = vec![("flow", a.flow.clone(), b.flow.clone())];
    let sets: [(&'static str, &BTreeSet<String>, &BTreeSet<String>); 5] = [
        ("mode", &a.modes, &b.modes),
        ("source", &a.recorded_from, &b.recorded_from),
        ("model", &a.models, &b.models),
        ("knowledge", &a.knowledge, &b.knowledge),
        ("system prompt (digest)", &a.system_prompts, &b.system_prompts),
    ];
    for (what, one, other) in sets {
        if !one.is_empty() && !other.is_empty() {
            facts.push((what, words(one), words(other)));
        }
    }
    if let Some((one, other)) = a.enforcement.zip(b.enforcement) {
        facts.push(("enforcement", one.name().into(), other.name().into()));
    }
    if let Some((one, other)) = a.provider.clone().zip(b.provider.clone()) {
        let temperature = |value: Option<f64>| value.map_or_else(|| "the provider's own".into(), |t| t.to_string());
        facts.push(("temperature", temperature(a.temperature), temperature(b.temperature)));
        facts.push(("provider", one, other));
    }
    if a.variant != b.variant {
        facts.push(("variant", variant(a), variant(b)));
    }
    facts
}

fn variant(setting: &Setting) -> String {
    if setting.about.is_empty() { setting.variant.clone() } else { format!("{} ({})", setting.variant, setting.about) }
}

fn words(set: &BTreeSet<String>) -> String {
    set.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn changed(a: &str, b: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(a, b);
    let hunks = diff.unified_diff().context_radius(1).to_string();
    hunks.lines().filter(|line| !line.starts_with("\\ No newline")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::summary;
    use super::*;
    use crate::settings::Enforcement;

    #[test]
    fn equal_settings_differ_in_nothing() {
        let run = summary("run", &[("one", 1, 1)]);
        assert_eq!(differences(&[(&run.settings[0], &run.settings[0])]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn one_difference_of_two_scenarios_is_told_once() {
        let a = summary("run", &[("one", 1, 1)]).settings.remove(0);
        let mut b = Setting { enforcement: Some(Enforcement::Forced), ..a.clone() };
        b.models = ["other".to_owned()].into();
        let (mut more_a, mut more_b) = (a.clone(), b.clone());
        (more_a.scenario, more_b.scenario) = ("t".into(), "t".into());
        let (rows, _) = differences(&[(&a, &b), (&more_a, &more_b)]);
        let told: Vec<_> = rows.iter().map(|row| (row.what.as_str(), row.a.as_str(), row.b.as_str())).collect();
        assert_eq!(told, [("model", "sim-1", "other"), ("enforcement", "feedback", "forced")]);
        assert_eq!(rows[0].scenarios, ["s", "t"]);
    }

    #[test]
    fn a_changed_prompt_is_shown_by_its_lines() {
        let mut a = summary("run", &[("one", 1, 1)]).settings.remove(0);
        let mut b = a.clone();
        a.prompts.insert("system".into(), "Always search.\nAnswer briefly.\n".into());
        b.prompts.insert("system".into(), "Search.\nAnswer briefly.\n".into());
        let (_, prompts) = differences(&[(&a, &b)]);
        assert!(prompts[0].lines.contains(&"-Always search.".to_owned()), "{prompts:?}");
        assert!(prompts[0].lines.contains(&"+Search.".to_owned()), "{prompts:?}");
        a.prompts.clear();
        let (_, prompts) = differences(&[(&a, &b)]);
        assert!(prompts[0].lines.iter().any(|line| line.contains(BUILT_IN)), "{prompts:?}");
    }
}
