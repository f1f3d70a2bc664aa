//! The shape of answers: which members they have, of which types, whatever stands in them.
//!
//! A path names a member from the root, `[]` any element of a list: `choices[].message.content`. Many answers add up
//! to one shape; a text that is `null` for once is of no other type for that.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Types by path, over some answers, with the number of answers that have the path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    answers: usize,
    paths: BTreeMap<String, (BTreeSet<&'static str>, usize)>,
}

/// One thing in which answers differ from those recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// A member that no recorded answer has.
    New {
        /// Where.
        path: String,
        /// Of which types.
        types: String,
    },
    /// A member that every recorded answer has, and no answer now.
    Gone {
        /// Where.
        path: String,
        /// Of which types it was.
        types: String,
    },
    /// A member of another type.
    Retyped {
        /// Where.
        path: String,
        /// Of which types it was.
        before: String,
        /// Of which it is.
        now: String,
    },
    /// A member that some recorded answers have, and no answer now: it may depend on what was said.
    Unseen {
        /// Where.
        path: String,
        /// Recorded answers with it.
        of: usize,
    },
}

impl Change {
    /// Whether it says that the service changed, and not only that it said something else.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self, Self::Unseen { .. })
    }
}

impl Shape {
    /// Adds one answer: its document, or the events of its stream.
    pub(crate) fn add(&mut self, documents: &[Value]) {
        let mut seen = BTreeMap::new();
        for document in documents {
            walk(document, String::new(), &mut seen);
        }
        self.answers += 1;
        for (path, types) in seen {
            let entry = self.paths.entry(path).or_default();
            entry.0.extend(types);
            entry.1 += 1;
        }
    }

    /// Answers that were added.
    pub(crate) fn answers(&self) -> usize {
        self.answers
    }

    /// What is other in `self` than it was: `asked` are the recorded answers to the same requests, `all` all that are
    /// recorded of that service, so that what some answer had before is not new. Below a member that is new or gone,
    /// nothing more is told.
    pub(crate) fn changes(&self, asked: &Self, all: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        if self.answers == 0 {
            return changes;
        }
        for (path, (types, _)) in &self.paths {
            match all.paths.get(path) {
                None => changes.push(Change::New { path: path.clone(), types: joined(types) }),
                Some((before, _)) => {
                    let other = |(one, another): (&BTreeSet<_>, &BTreeSet<_>)| {
                        one.iter().any(|kind| *kind != "null" && !another.contains(kind))
                    };
                    let known = before.iter().any(|kind| *kind != "null");
                    if known && other((types, before)) {
                        let (before, now) = (joined(before), joined(types));
                        changes.push(Change::Retyped { path: path.clone(), before, now });
                    }
                }
            }
        }
        for (path, (types, answers)) in asked.paths.iter().filter(|(path, _)| !self.paths.contains_key(*path)) {
            changes.push(if *answers == asked.answers {
                Change::Gone { path: path.clone(), types: joined(types) }
            } else {
                Change::Unseen { path: path.clone(), of: *answers }
            });
        }
        let outermost: BTreeSet<String> = changes.iter().filter_map(Change::whole).map(str::to_owned).collect();
        let inside = |path: &str| {
            path.char_indices()
                .filter(|(_, letter)| matches!(letter, '.' | '['))
                .any(|(end, _)| outermost.contains(&path[..end]))
        };
        changes.retain(|change| change.whole().is_none_or(|path| !inside(path)));
        changes.sort();
        changes
    }
}

impl Change {
    /// The path of a member that is there on one side only.
    fn whole(&self) -> Option<&str> {
        match self {
            Self::New { path, .. } | Self::Gone { path, .. } | Self::Unseen { path, .. } => Some(path),
            Self::Retyped { .. } => None,
        }
    }
}

fn joined(types: &BTreeSet<&'static str>) -> String {
    types.iter().copied().collect::<Vec<_>>().join(" or ")
}

fn walk(value: &Value, path: String, seen: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(value, path, seen);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, format!("{path}[]"), seen)),
        _ => {}
    }
    seen.entry(path).or_default().insert(kind);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn shape(answers: &[Value]) -> Shape {
        let mut shape = Shape::default();
        for answer in answers {
            shape.add(std::slice::from_ref(answer));
        }
        shape
    }

    #[test]
    fn what_is_new_gone_or_of_another_type_is_told_once_at_the_outermost_place() {
        let before = shape(&[
            json!({"id": "1", "choices": [{"text": null, "logs": {"a": 1}}], "created": 1}),
            json!({"id": "2", "choices": [{"text": "x", "logs": null, "calls": [1]}], "created": 2}),
        ]);
        let now =
            shape(&[json!({"id": "3", "choices": [{"text": "y"}], "created": "today", "usage": {"in": {"deep": 1}}})]);
        let changes = now.changes(&before, &before);
        let string = |text: &str| text.to_owned();
        assert_eq!(
            changes,
            [
                Change::New { path: string("usage"), types: string("object") },
                Change::Gone { path: string("choices[].logs"), types: string("null or object") },
                Change::Retyped { path: string("created"), before: string("number"), now: string("string") },
                Change::Unseen { path: string("choices[].calls"), of: 1 },
            ]
        );
        assert_eq!(changes.iter().filter(|change| change.counts()).count(), 3);
    }

    #[test]
    fn what_any_recorded_answer_had_is_not_new_and_without_an_answer_nothing_is_told() {
        let (asked, all) = (shape(&[json!({"a": 1})]), shape(&[json!({"a": 1}), json!({"a": null, "b": {}})]));
        assert_eq!(shape(&[json!({"a": null, "b": {}})]).changes(&asked, &all), []);
        assert_eq!(Shape::default().changes(&asked, &all), []);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[a-z]{0,3}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn answers_have_no_changes_to_themselves(answers in prop::collection::vec(value(), 1..4)) {
            let shape = shape(&answers);
            prop_assert_eq!(shape.changes(&shape, &shape), []);
        }
    }
}
