//! Reads `plan.json` as stored by this build and older ones.
//!
//! Up to version 3, cases had the form of scenario files (`ask`, `turns`, `sequence`), variants were pairs of a name
//! and their changes, and resolved settings were separate in `settings`. An older build rejects a newer version.

use super::case::{conversations, single};
use super::{PlannedCase, PlannedScenario, PlannedVariant, ResolvedCase, VariantSettings};
use crate::scenario::external::ExternalAgent;
use crate::scenario::{Conversation, Criterion, Expectation, KeywordIndexState, SequenceStep, Turn};
use crate::settings::{DeclaredFault, Enforcement, ModelSettings, SearchSettings};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A scenario, old or new.
#[derive(Deserialize)]
pub(super) struct Scenario {
    name: String,
    file: String,
    about: String,
    /// Old: the flow of all variants.
    #[serde(default)]
    flow: String,
    agent: Option<ExternalAgent>,
    #[serde(default)]
    knowledge: BTreeMap<String, String>,
    variants: Vec<Variant>,
    cases: Vec<PlannedCase>,
    gates: Vec<Criterion>,
    /// Old: the search service of all variants, `provider/model`.
    search: Option<String>,
    /// Old: resolved settings of the variants.
    #[serde(default)]
    settings: Vec<Settings>,
}

/// A variant, old or new.
#[derive(Deserialize)]
#[serde(untagged)]
enum Variant {
    Pair(String, String),
    Resolved { name: String, about: String, flow: String, settings: Option<Box<VariantSettings>> },
}

/// Resolved settings of a variant in a plan up to version 3.
#[derive(Deserialize)]
struct Settings {
    variant: String,
    provider: String,
    model: String,
    temperature: Option<f64>,
    enforcement: Enforcement,
    prompts: BTreeMap<String, String>,
}

impl From<Scenario> for PlannedScenario {
    fn from(stored: Scenario) -> Self {
        let Scenario { name, file, about, flow, agent, knowledge, variants, cases, gates, search, settings } = stored;
        let search = search.as_deref().and_then(|name| name.split_once('/'));
        let search = search.map(|(provider, name)| SearchSettings { provider: provider.into(), name: name.into() });
        let mut settings: BTreeMap<String, VariantSettings> = settings
            .into_iter()
            .map(|old| {
                let model = ModelSettings {
                    provider: old.provider,
                    name: old.model,
                    temperature: old.temperature,
                    ..ModelSettings::default()
                };
                let (enforcement, prompts, search) = (old.enforcement, old.prompts, search.clone());
                let settings = VariantSettings { model, search, enforcement, prompts, ..VariantSettings::default() };
                (old.variant, settings)
            })
            .collect();
        let variants = variants.into_iter().map(|variant| match variant {
            Variant::Resolved { name, about, flow, settings } => {
                PlannedVariant { name, about, flow, settings: settings.map(|settings| *settings) }
            }
            Variant::Pair(name, about) => {
                let settings = settings.remove(&name);
                PlannedVariant { name, about, flow: flow.clone(), settings }
            }
        });
        Self { name, file, about, agent, knowledge, variants: variants.collect(), cases, gates }
    }
}

/// A case, old or new.
#[derive(Deserialize)]
pub(super) struct Case {
    #[serde(rename = "case")]
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    covers: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    steps: Option<Vec<Vec<Conversation>>>,
    /// Old: the turns of the only conversation.
    #[serde(default)]
    turns: Vec<Turn>,
    /// Old: several conversations.
    #[serde(default)]
    sequence: Vec<SequenceStep>,
    expect: Option<Expectation>,
    #[serde(default)]
    control: bool,
    fault: Option<String>,
    #[serde(default)]
    faults: Vec<DeclaredFault>,
    keyword_index: Option<KeywordIndexState>,
    #[serde(default)]
    asks_nothing: bool,
    #[serde(default)]
    excluded_from: BTreeMap<String, String>,
}

impl From<Case> for ResolvedCase {
    fn from(stored: Case) -> Self {
        let Case { steps, turns, sequence, .. } = stored;
        let written = || {
            if sequence.is_empty() { single(turns) } else { sequence.into_iter().map(conversations).collect() }
        };
        let steps = steps.unwrap_or_else(written);
        let Case { name, about, covers, tags, expect, control, fault, faults, keyword_index, .. } = stored;
        let (asks_nothing, excluded_from) = (stored.asks_nothing, stored.excluded_from);
        Self {
            case: name,
            about,
            covers,
            tags,
            steps,
            expect,
            control,
            fault,
            faults,
            keyword_index,
            asks_nothing,
            excluded_from,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scenario_of_an_older_plan_has_its_cases_in_steps_and_its_variants_resolved() {
        let old = json!({
            "name": "s", "file": "s.yaml", "about": "", "flow": "tool-rag",
            "variants": [["base", "as the scenario says"], ["forced", "enforcement forced"]],
            "cases": [
                {"line": 1, "case": {"case": "one", "turns": [{"ask": "q", "expect": {"within": "1s"}}], "repeat": 3}},
                {"line": 2, "case": {"case": "two", "sequence": [
                    {"conversation": {"name": "a", "turns": [{"ask": "q"}]}},
                    {"together": [{"name": "b", "turns": [{"ask": "q"}]}, {"name": "c", "turns": []}]},
                ], "expect": {"within": "9s"}}},
            ],
            "gates": [], "search": "outside/perplexity/sonar",
            "settings": [{"variant": "forced", "provider": "p", "model": "m", "temperature": 0.5,
                          "enforcement": "forced", "prompts": {"system": "Be kind."}}],
        });
        let read: PlannedScenario = serde_json::from_value(old).expect("an old scenario");
        assert!(read.cases[0].case.is_single() && read.cases[0].case.steps[0][0].turns[0].expect.is_some());
        let two = &read.cases[1].case;
        assert_eq!(two.steps.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
        assert!(two.expect.is_some() && !two.is_single());
        assert!(read.variants.iter().all(|variant| variant.flow == "tool-rag"));
        assert_eq!(read.variant("base").map(|variant| variant.settings.is_none()), Some(true), "not said");
        let forced = read.variant("forced").and_then(|variant| variant.settings.clone()).expect("settings");
        assert_eq!((forced.model.price_name(), forced.model.temperature), ("p/m".to_owned(), Some(0.5)));
        assert_eq!(forced.search.map(|search| search.price_name()), Some("outside/perplexity/sonar".to_owned()));

        let now = serde_json::to_value(&read).expect("JSON");
        assert_eq!(serde_json::from_value::<PlannedScenario>(now).expect("a scenario"), read);
    }
}
