//! The plan as it is stored and shown: without keys in what its texts hold.
//!
//! A prompt may be any file of the project, so its text may hold a key that nobody declared. Names stay, because trials are
//! found by them, and so do expectations, because a pattern that is changed matches something else.

use super::Plan;
use crate::platform::secrets::{self, Redactor};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;

impl Plan {
    /// The plan for stored files and reports: the same one if no text of it holds a key.
    pub(crate) fn published(self: &Arc<Self>) -> Arc<Self> {
        self.without_keys().map_or_else(|| Arc::clone(self), Arc::new)
    }

    /// The plan with keys replaced in questions, prompts, descriptions and the agent's declaration; `None` if there are none.
    pub(super) fn without_keys(&self) -> Option<Self> {
        let redactor = secrets::declared();
        let text = |text: &mut String| {
            if let Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        };
        let (mut scenarios, mut prompts) = (self.scenarios.clone(), self.prompts.clone());
        prompts.values_mut().for_each(text);
        for scenario in &mut scenarios {
            text(&mut scenario.about);
            scenario.agent.iter_mut().for_each(|agent| redact(agent, &redactor));
            for variant in &mut scenario.variants {
                text(&mut variant.about);
                variant.settings.iter_mut().flat_map(|settings| settings.prompts.values_mut()).for_each(text);
            }
            for case in scenario.cases.iter_mut().map(|planned| &mut planned.case) {
                text(&mut case.about);
                for conversation in case.steps.iter_mut().flatten() {
                    redact(&mut conversation.tool_context, &redactor);
                    conversation.turns.iter_mut().for_each(|turn| text(&mut turn.ask));
                }
            }
        }
        let is_clean = scenarios == self.scenarios && prompts == self.prompts;
        (!is_clean).then(|| Self { scenarios, prompts, ..self.clone() })
    }
}

/// Redacts every text of a value.
fn redact<T: Serialize + DeserializeOwned>(value: &mut T, redactor: &Redactor) {
    let clean = serde_json::to_value(&*value).map(|value| redactor.redact_value(&value));
    if let Ok(clean) = clean.and_then(serde_json::from_value) {
        *value = clean;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_published_plan_has_no_key_in_its_texts_and_its_names_and_expectations_as_they_are() {
        const KEY: &str = "sk-proj-Xk29fLq81mZpRt64vB";
        const HEADER: &str = "[http] extraheader = AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Z2hzX2FiYzEyMw==";
        let settings = json!({"model": {"provider": "p", "name": "m"}, "limits": {}, "enforcement": "feedback",
            "prompts": {"system": HEADER}});
        let mut plan: Plan = serde_json::from_value(json!({
            "version": 5, "seed": 0, "trials": [], "criteria": {"about": "", "criteria": []}, "not_measured_ok": [],
            "machines": {}, "prompts": {"system:1": HEADER}, "ratings": null, "requirements": {},
            "scenarios": [{"name": "sk-bratislava-opening-hours", "file": "s.yaml", "about": KEY, "gates": [],
                "variants": [{"name": "base", "about": KEY, "flow": "tool-rag", "settings": settings}],
                "cases": [{"line": 1, "case": {"case": "sk-bratislava-opening-hours", "about": KEY, "steps": [[{
                    "name": "main", "tool_context": {"token": KEY},
                    "turns": [{"ask": format!("Is {KEY} a key?"), "expect": {"answer": {"matches": [KEY]}}}]}]]}}]}],
        }))
        .expect("a plan");
        let text = String::from_utf8(plan.stored(<[u8]>::to_vec).expect("stored")).expect("UTF-8");
        assert!(!text.contains("eC1hY2Nlc3M") && text.contains("AUTHORIZATION: basic [redacted:key]"), "{text}");
        assert_eq!(text.matches(KEY).count(), 1, "in the expectation alone: {text}");
        assert_eq!(text.matches("sk-bratislava-opening-hours").count(), 2, "{text}");
        let stored: Plan = serde_json::from_str(&text).expect("a plan");
        let (plan, clean) = (Arc::new(plan), Arc::new(stored));
        assert_eq!(plan.published(), clean, "reports show what is stored, with its id");
        assert!(Arc::ptr_eq(&clean.published(), &clean), "without a key it is the same one");
        assert!(plan.prompts["system:1"].contains("eC1hY2Nlc3M"), "the run sends what was written");
    }
}
