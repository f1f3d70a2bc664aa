//! The small YAML that cassettes are written in, and two readers for it.
//!
//! [`write`] prints a JSON document in a fixed style: block maps and lists, every string quoted or a literal block,
//! keys in the order given. [`strict`] reads exactly that style, borrowing from the text and passing over what the
//! caller does not need; it gives up on anything else. [`loose`] is a full YAML parser for files that a person
//! edited. Both make the same [`Node`]s, so nothing behind them knows which one ran.

mod loose;
mod strict;
mod write;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use std::borrow::Cow;

pub(super) use loose::parse as parse_loose;
pub(super) use strict::parse as parse_strict;
pub(super) use write::{fits, write};

/// A YAML value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node<'a> {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What it is.
    pub kind: Kind<'a>,
}

/// Kinds of [`Node`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'a> {
    Null,
    Bool(bool),
    /// A JSON number, as written.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Map(Vec<(Cow<'a, str>, Node<'a>)>),
    /// Passed over at the caller's wish.
    Skipped,
}

impl<'a> Node<'a> {
    /// The entry of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Node<'a>> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The JSON document that this node shows.
    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// As messages name this kind of value.
    pub(super) fn describe(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a yes-or-no value",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
            Kind::Skipped => "a part that was passed over",
        }
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            Kind::Null | Kind::Skipped => serializer.serialize_unit(),
            Kind::Bool(value) => serializer.serialize_bool(*value),
            Kind::Number(text) => {
                if let Ok(number) = text.parse::<u64>() {
                    serializer.serialize_u64(number)
                } else if let Ok(number) = text.parse::<i64>() {
                    serializer.serialize_i64(number)
                } else {
                    serializer.serialize_f64(text.parse().unwrap_or(f64::NAN))
                }
            }
            Kind::Text(text) => serializer.serialize_str(text),
            Kind::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Kind::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(key.as_ref(), node)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn awkward_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("\n".to_owned()),
            Just("\r\n".to_owned()),
            Just("---\n".to_owned()),
            Just("...\n".to_owned()),
            Just("\t".to_owned()),
            Just(" ".to_owned()),
            Just("  - key: value\n".to_owned()),
            Just("# no comment".to_owned()),
            Just("\u{1}\u{7f}\u{85}\u{2028}\u{feff}\u{202e}".to_owned()),
            Just("'\"\\{}[]&*!|>%@`".to_owned()),
            Just("é漢字🙂".to_owned()),
            "[ -~]{0,12}",
            any::<String>(),
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            awkward_text().prop_map(Value::from),
        ];
        let tree = leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((prop_oneof![awkward_text(), "[a-z_]{1,9}"], inner), 0..6)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        });
        prop::collection::vec(("[a-z]{1,6}", tree), 1..5)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn both_readers_give_back_whatever_was_written(value in document()) {
            prop_assume!(fits(&value));
            let text = write(&value);
            let strict = parse_strict(&text, &[]).expect("our own style");
            prop_assert_eq!(strict.to_value(), value.clone(), "strict reader of\n{}", text);
            let loose = parse_loose(&text).expect("YAML");
            prop_assert_eq!(loose.to_value(), value, "YAML parser of\n{}", text);
        }

        #[test]
        fn the_strict_reader_never_panics(text in "([ -~\n\t]|  |- |: |\\|\n|\"|')*") {
            let _ = parse_strict(&text, &[]);
        }
    }

    #[test]
    fn a_document_looks_as_a_reviewer_wants_it() {
        let value = json!({
            "cassette": 1,
            "body": {"role": "assistant", "content": "First line.\nSecond line.", "calls": [{"arguments": "{\"query\":\"x\"}"}],
                "none": null, "scores": [1, 0.5], "empty": [], "Content-Type": "a/b", "1": "no"},
        });
        assert_eq!(
            write(&value),
            "cassette: 1\nbody:\n  role: \"assistant\"\n  content: |-\n    First line.\n    Second line.\n  calls:\n    - \
             arguments: '{\"query\":\"x\"}'\n  none: null\n  scores: [1, 0.5]\n  empty: []\n  Content-Type: \"a/b\"\n  \"1\": \"no\"\n"
        );
    }

    #[test]
    fn a_part_that_is_not_needed_is_passed_over_with_its_literal_blocks() {
        let value = json!({"list": [{"skip": {"text": "a\n\nb: c\n", "more": [1]}, "keep": "k"}, {"keep": "l"}]});
        let text = write(&value);
        let node = parse_strict(&text, &["skip"]).expect("our own style");
        let Kind::List(items) = &node.get("list").expect("list").kind else { panic!("a list") };
        assert_eq!(items[0].get("skip").expect("noted").kind, Kind::Skipped);
        assert_eq!(items[0].get("keep").and_then(Node::text), Some("k"));
        assert_eq!(items[1].get("keep").and_then(Node::text), Some("l"));
    }

    #[test]
    fn what_a_person_wrote_is_left_to_the_loose_reader() {
        let text = "cassette: 1 # a note\nkey: plain words\n";
        assert!(parse_strict(text, &[]).is_none());
        let node = parse_loose(text).expect("YAML");
        assert_eq!(node.get("key").and_then(Node::text), Some("plain words"));
        assert_eq!(node.get("key").map(|node| (node.line, node.column)), Some((2, 6)));
    }

    #[test]
    fn broken_yaml_is_an_error_with_line_and_column() {
        let error = parse_loose("a: 1\nb: [1, 2\nc: }\n").expect_err("broken");
        assert!(error.line >= 2, "{error:?}");
        assert!(error.column >= 1, "{error:?}");
    }
}
