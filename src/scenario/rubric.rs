//! A rubric: questions for a model that grades answers, and the choice of that model.
//!
//! Items are binary and independent: each can be answered with yes or no from the user's question, the answer and the
//! evidence. There is no scale, because people and models agree on scales less than on facts.

use super::diagnostic::{At, Mistake};
use super::project::Project;
use crate::settings::ModelSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A rubric file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rubric {
    /// Its name.
    pub rubric: String,
    /// Its purpose.
    #[serde(default)]
    pub about: String,
    /// The model that grades; preferably of another family than the graded one.
    pub model: ModelSettings,
    /// How much of each passage the grader receives.
    #[serde(default, skip_serializing_if = "RubricEvidence::is_excerpts")]
    pub evidence: RubricEvidence,
    /// Questions about every answer.
    pub items: Vec<RubricItem>,
}

/// How much of each retrieved passage the grader receives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RubricEvidence {
    /// The beginning, as stored in the trace: at most 160 characters.
    #[default]
    Excerpts,
    /// The whole passage, where the run folder holds it; costs more input tokens.
    Passages,
}

impl RubricEvidence {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
    fn is_excerpts(&self) -> bool {
        *self == Self::Excerpts
    }
}

/// One yes-or-no question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RubricItem {
    /// Its name: lower-case letters, digits and hyphens.
    pub id: String,
    /// The question.
    pub ask: String,
    /// Condition for an answer to pass.
    pub passes_when: String,
}

/// Checks a rubric; `kept` holds the indices of its items in the file.
pub(super) fn check(rubric: &Rubric, kept: &[usize], project: &Project) -> Vec<Mistake> {
    let root = At::ROOT;
    let mut mistakes = Vec::new();
    if rubric.rubric.trim().is_empty() {
        mistakes.push(Mistake::at(root.key("rubric"), "empty-text", "a rubric needs a name"));
    }
    if !project.providers.contains_key(&rubric.model.provider) {
        let known: Vec<&str> = project.providers.keys().map(String::as_str).collect();
        let model = root.key("model");
        let mistake = Mistake::at(model.key("provider"), "unknown-provider", "the project file has no such provider");
        mistakes.push(mistake.label(format!("known: {}", known.join(", "))));
    }
    let items = root.key("items");
    if rubric.items.is_empty() && kept.is_empty() {
        mistakes.push(Mistake::at(root.key("items"), "no-items", "the rubric asks nothing"));
    }
    let mut ids = BTreeSet::new();
    for (position, item) in rubric.items.iter().enumerate() {
        let at = items.index(kept.get(position).copied().unwrap_or(position));
        let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if item.id.is_empty() || !item.id.chars().all(plain) {
            let message = "an item's id is of lower-case letters, digits and hyphens";
            mistakes.push(Mistake::at(at.key("id"), "bad-name", message));
        } else if !ids.insert(item.id.as_str()) {
            mistakes.push(Mistake::at(at.key("id"), "duplicate-item", "another item has this id"));
        }
        for (key, text) in [("ask", &item.ask), ("passes_when", &item.passes_when)] {
            if text.trim().is_empty() {
                mistakes.push(Mistake::at(at.key(key), "empty-text", format!("`{key}` says nothing")));
            }
        }
    }
    mistakes
}
