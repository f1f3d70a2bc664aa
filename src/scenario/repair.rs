//! Reads a document as its type, or the valid parts of one with mistakes of shape.
//!
//! A wrong key in one case therefore does not hide mistakes in another.

use super::diagnostic::{Diagnostic, Mistake, Step, diagnose_in};
use super::schema;
use super::shape::{self, Walked};
use crate::platform::yaml;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// A typed document, possibly only its valid parts.
pub(super) struct Parsed<T> {
    pub value: T,
    kept: Option<Vec<usize>>,
    patched: BTreeSet<String>,
}

impl<T> Parsed<T> {
    /// A document of which the elements with these indices were kept and these top-level keys filled in.
    pub(super) fn repaired(value: T, kept: Vec<usize>, patched: BTreeSet<String>) -> Self {
        Self { value, kept: Some(kept), patched }
    }

    /// Indices in the file of the elements of the main list.
    pub(super) fn kept(&self, length: usize) -> Vec<usize> {
        self.kept.clone().unwrap_or_else(|| (0..length).collect())
    }

    /// Drops mistakes about values that were filled in.
    pub(super) fn own(&self, mistakes: Vec<Mistake>) -> Vec<Mistake> {
        let all_dropped = self.kept.as_ref().is_some_and(Vec::is_empty);
        let ours = |mistake: &Mistake| {
            let patched = matches!(mistake.path.first(), Some(Step::Key(key)) if self.patched.contains(key));
            // A model may be declared in the services, which are not known.
            let model = mistake.told.code == "missing-key" && mistake.path == [Step::Key("model".to_owned())];
            patched
                || (model && self.patched.contains("services"))
                || (all_dropped && matches!(mistake.told.code, "no-cases" | "no-criteria"))
        };
        mistakes.into_iter().filter(|mistake| !ours(mistake)).collect()
    }
}

/// Reads `text` as a `T`; mistakes of shape go to `out`, and the valid parts are returned in any case.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(
    text: &str,
    file: &str,
    list: &str,
    required: &[(&str, Value)],
    out: &mut Vec<Diagnostic>,
) -> Option<Parsed<T>> {
    let error = match yaml::read::<T>(text) {
        Ok(value) => return Some(Parsed { value, kept: None, patched: BTreeSet::new() }),
        Err(error) => error,
    };
    let tree = if error.problem.is_hopeless() { None } else { yaml::parse(text).ok() };
    let Some(tree) = tree else {
        out.push(Diagnostic::misread(&error, file, text));
        return None;
    };
    let walked = shape::walk(&tree, &schema::of::<T>());
    // When more mistakes exist than are kept, the valid parts are unknown.
    let repaired = (walked.more == 0).then(|| repair(&walked, list, required)).flatten();
    if walked.mistakes.is_empty() {
        out.push(Diagnostic::misread(&error, file, text));
        return None;
    }
    out.extend(diagnose_in(walked.mistakes, walked.more, file, text, Some(&tree)));
    drop(tree);
    let Repaired { value, kept, patched } = repaired?;
    let value = serde_json::from_value(value).ok()?;
    Some(Parsed { value, kept: Some(kept), patched })
}

/// Mistakes of shape in `text` as a `T`, with their places; empty if it has none or another kind.
pub(crate) fn mistakes_of_shape<T: DeserializeOwned + JsonSchema>(text: &str, file: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if parse::<T>(text, file, "", &[], &mut found).is_some() && found.is_empty() { Vec::new() } else { found }
}

/// A document without its invalid parts.
pub(super) struct Repaired {
    /// The remaining value.
    pub value: Value,
    /// Indices in the file of the kept elements of the main list.
    pub kept: Vec<usize>,
    /// Top-level keys that were removed or filled in.
    pub patched: BTreeSet<String>,
}

/// Removes values with mistakes: elements of `list`, and other top-level keys; fills in `required` with placeholders.
pub(super) fn repair(walked: &Walked, list: &str, required: &[(&str, Value)]) -> Option<Repaired> {
    let mut value = walked.value.as_object()?.clone();
    let (mut patched, mut dropped) = (BTreeSet::new(), BTreeSet::new());
    for mistake in walked.mistakes.iter().filter(|mistake| mistake.told.code != shape::BAD_DURATION) {
        match mistake.path.as_slice() {
            [Step::Key(key), Step::Index(index), ..] if key == list => {
                dropped.insert(*index);
            }
            [Step::Key(key), ..] => {
                patched.insert(key.clone());
            }
            _ => {}
        }
    }
    if !list.is_empty() && patched.contains(list) {
        return None;
    }
    for key in &patched {
        value.remove(key);
    }
    for (key, stand_in) in required {
        if !value.contains_key(*key) {
            value.insert((*key).into(), stand_in.clone());
            patched.insert((*key).into());
        }
    }
    let mut kept = Vec::new();
    if let Some(Value::Array(items)) = value.get_mut(list) {
        kept = (0..items.len()).filter(|index| !dropped.contains(index)).collect();
        let mut index = 0;
        items.retain(|_| {
            index += 1;
            !dropped.contains(&(index - 1))
        });
    }
    Some(Repaired { value: Value::Object(value), kept, patched })
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::*;

    #[test]
    fn the_sound_parts_survive_with_their_places() {
        let text = "scenario: a\nflow: tool-rag\nknowledge: k\nmodel: 3\ncases:\n  - {case: [], ask: q}\n  - {case: b, ask: q}\n";
        let root = yaml::parse(text).expect("YAML");
        let walked = shape::walk(&root, &schema::of::<Scenario>());
        let model = serde_json::json!({"provider": "", "name": ""});
        let repaired = repair(&walked, "cases", &[("model", model)]).expect("repairable");
        assert_eq!(repaired.kept, [1]);
        assert!(repaired.patched.contains("model"));
        let scenario: Scenario = serde_json::from_value(repaired.value).expect("a scenario");
        assert_eq!(scenario.cases[0].case, "b");
    }
}
