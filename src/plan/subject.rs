//! What is under test: trials that repeat the same experiment, and cases that repeat the same question.

use super::{Plan, PlannedTrial, ResolvedCase};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

impl Plan {
    /// Maps each scenario and case to the place of the first case with the same input and expectations (ignoring
    /// spaces and capitals), the same agents and the same knowledge: a copy of a case adds no evidence about unseen
    /// cases. Does not depend on outcomes.
    pub fn first_alike(&self) -> BTreeMap<(usize, usize), usize> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut first = BTreeMap::new();
        for (at, scenario) in self.scenarios.iter().enumerate() {
            let flows: Vec<&str> = scenario.variants.iter().map(|variant| variant.flow.as_str()).collect();
            for (number, planned) in scenario.cases.iter().enumerate() {
                let content = (&flows, &scenario.agent, &scenario.knowledge, &planned.input, planned.case.content());
                // Plans come from JSON or are written to it, so serialisation cannot fail.
                let mut text =
                    serde_json::to_string(&content).unwrap_or_else(|_| format!("{at}/{number}")).to_lowercase();
                // Spaces and line breaks, as escaped in JSON, do not make another question.
                for space in ["\\n", "\\r", "\\t"] {
                    text = text.replace(space, "");
                }
                text.retain(|letter| !letter.is_whitespace());
                let place = first.len();
                first.insert((at, number), *known.entry(text).or_insert(place));
            }
        }
        first
    }

    /// Digest of everything under test in a trial: its case, the variant's model, prompts and parameters, its
    /// knowledge, and the agent with its version. Draws with equal subjects repeat the same experiment.
    pub fn subject(&self, trial: &PlannedTrial) -> String {
        let content = self.case_of(trial).map(ResolvedCase::content);
        let settings = self.variant_of(trial).and_then(|variant| variant.settings.as_ref());
        let scenario = self.scenario_of(trial).map(|scenario| (&scenario.agent, &scenario.knowledge));
        let subject = (content, settings, scenario, &trial.lane.flow, trial.lane.arm);
        // Plans come from JSON or are written to it, so serialisation cannot fail.
        let text = serde_json::to_vec(&subject).unwrap_or_default();
        hex::encode(&Sha256::digest(text)[..8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::sample::plan;
    use crate::plan::VariantSettings;

    #[test]
    fn repetitions_put_the_same_to_the_test_and_another_case_model_or_version_of_an_agent_something_else() {
        let subject = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan("[{case: a, ask: q}, {case: b, ask: other}]", "[]", 2);
            let settings = || Some(VariantSettings::default());
            plan.scenarios
                .iter_mut()
                .flat_map(|scenario| &mut scenario.variants)
                .for_each(|one| one.settings = settings());
            change(&mut plan);
            plan.trials.iter().map(|trial| plan.subject(trial)).collect::<Vec<_>>()
        };
        let usual = subject(&|_| {});
        assert!(usual[0] == usual[1] && usual[2] == usual[3] && usual[0] != usual[2], "{usual:?}");
        // Labels and evaluation settings are not under test.
        let labelled = subject(&|plan| {
            plan.scenarios[0].cases[0].case.tags = vec!["slow".into()];
            plan.not_measured_ok = vec!["SC-004".into()];
            plan.seed = 99;
        });
        assert_eq!(labelled, usual);
        let settings = |plan: &mut Plan, change: &dyn Fn(&mut VariantSettings)| {
            let variant = plan.scenarios[0].variants[0].settings.as_mut();
            change(variant.expect("settings"));
        };
        let changes: [&dyn Fn(&mut Plan); 4] = [
            &|plan| settings(plan, &|one| one.model.name = "other".into()),
            &|plan| settings(plan, &|one| one.model.temperature = Some(0.9)),
            &|plan| settings(plan, &|one| drop(one.prompts.insert("system".into(), "Be brief.".into()))),
            &|plan| {
                let agent = serde_json::json!({"target": {"http": "http://127.0.0.1:1/", "version": "2"}, "proxy": ""});
                plan.scenarios[0].agent = serde_json::from_value(agent).ok();
                assert!(plan.scenarios[0].agent.is_some());
            },
        ];
        for change in changes {
            assert!(subject(change).iter().zip(&usual).all(|(one, other)| one != other));
        }
        let versions = ["1", "2"].map(|version| {
            subject(&|plan| {
                let agent =
                    serde_json::json!({"target": {"http": "http://127.0.0.1:1/", "version": version}, "proxy": ""});
                plan.scenarios[0].agent = serde_json::from_value(agent).ok();
            })
        });
        assert_ne!(versions[0], versions[1]);
    }
}
