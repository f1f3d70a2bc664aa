//! Shape of responses: their members and types, without values.
//!
//! A path names a member from the root; `[]` is any element of a list: `choices[].message.content`. One shape merges
//! many responses. `null` does not count as a type of its own.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Types by path over some responses, with the number of responses that have the path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    answers: usize,
    paths: BTreeMap<String, (BTreeSet<&'static str>, usize)>,
}

/// One difference between current and recorded responses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// A member that no recorded response has.
    New {
        /// Path of the member.
        path: String,
        /// Its types.
        types: String,
    },
    /// A member that every recorded response has, and no current one.
    Gone {
        /// Path of the member.
        path: String,
        /// Its types in the recordings.
        types: String,
    },
    /// A member with another type.
    Retyped {
        /// Path of the member.
        path: String,
        /// Recorded types.
        before: String,
        /// Current types.
        now: String,
    },
    /// A member that some recorded responses have, and no current one: it may depend on the content.
    Unseen {
        /// Path of the member.
        path: String,
        /// Number of recorded responses with it.
        of: usize,
    },
}

impl Change {
    /// Whether the change shows that the service changed, and not just the content.
    pub(crate) fn counts(&self) -> bool {
        !matches!(self, Self::Unseen { .. })
    }
}

impl Shape {
    /// Adds one response: its document, or the events of its stream.
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

    /// Number of responses added.
    pub(crate) fn answers(&self) -> usize {
        self.answers
    }

    /// Changes of `self` from the recordings: `asked` holds the recorded responses to the same requests, `all` every
    /// recorded response of the service, so that a member that occurred before is not new. Members below a new or
    /// removed one are not listed.
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
    /// Path of a member that exists on one side only.
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
