//! A document as its type, or, where it has mistakes of shape, as much of it as is sound.
//!
//! So a wrong key in one case does not hide the wrong words in another.

use super::diagnostic::{Diagnostic, Mistake, Step, diagnose_in};
use super::schema;
use super::shape::{self, Walked};
use crate::platform::yaml;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

/// A typed document, perhaps only its sound parts.
pub(super) struct Parsed<T> {
    /// The document.
    pub value: T,
    kept: Option<Vec<usize>>,
    patched: BTreeSet<String>,
}

impl<T> Parsed<T> {
    /// A document of which the elements with these indices were kept, and these keys at the top filled in.
    pub(super) fn repaired(value: T, kept: Vec<usize>, patched: BTreeSet<String>) -> Self {
        Self { value, kept: Some(kept), patched }
    }

    /// Indices in the file of the elements of the main list.
    pub(super) fn kept(&self, length: usize) -> Vec<usize> {
        self.kept.clone().unwrap_or_else(|| (0..length).collect())
    }

    /// Without mistakes about what was filled in by us.
    pub(super) fn own(&self, mistakes: Vec<Mistake>) -> Vec<Mistake> {
        let all_dropped = self.kept.as_ref().is_some_and(Vec::is_empty);
        let ours = |mistake: &Mistake| {
            let patched = matches!(mistake.path.first(), Some(Step::Key(key)) if self.patched.contains(key));
            patched || (all_dropped && matches!(mistake.code, "no-cases" | "no-criteria"))
        };
        mistakes.into_iter().filter(|mistake| !ours(mistake)).collect()
    }
}

/// Reads `text` as a `T`; mistakes of shape go to `out`, and what is sound is returned all the same.
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
    // Of more mistakes than are kept, what is sound is not known.
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

/// The mistakes of shape in `text` as a `T`, with their places; none where it has another mistake, or none.
pub(crate) fn mistakes_of_shape<T: DeserializeOwned + JsonSchema>(text: &str, file: &str) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if parse::<T>(text, file, "", &[], &mut found).is_some() && found.is_empty() { Vec::new() } else { found }
}

/// A document with its unsound parts taken out.
pub(super) struct Repaired {
    /// The rest.
    pub value: Value,
    /// Indices in the file of the elements of the main list that were kept.
    pub kept: Vec<usize>,
    /// Keys at the top that were taken out or filled in.
    pub patched: BTreeSet<String>,
}

/// Takes out what has mistakes: elements of `list`, and other keys at the top; fills in `required` with stand-ins.
pub(super) fn repair(walked: &Walked, list: &str, required: &[(&str, Value)]) -> Option<Repaired> {
    let mut value = walked.value.as_object()?.clone();
    let (mut patched, mut dropped) = (BTreeSet::new(), BTreeSet::new());
    for mistake in walked.mistakes.iter().filter(|mistake| mistake.code != shape::BAD_DURATION) {
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
