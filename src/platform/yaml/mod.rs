//! Reads and writes YAML. The only module that uses the YAML library; it does not know what documents mean.
//!
//! | function | reads |
//! |---|---|
//! | [`read`] | a document into its type, up to its first mistake: how files that people write are read when they are sound |
//! | [`parse`] | any document into the tree of [`Node`]s with their places: when there is a mistake to point at |
//! | [`parse_own_style`] | what `write` printed, and nothing else, into the same tree: borrowing from the text and passing over what the caller does not need. Recordings are read by the ten thousand, and a general parser takes several times as long |
//!
//! `write` prints a JSON document in one fixed style: block maps and lists, every string quoted or a literal block,
//! keys in the order given.

mod error;
mod node;
mod own_style;
mod place;
mod tree;
mod typed;
mod write;

pub(crate) use error::{Problem, ReadError};
pub(crate) use node::{Kind, Node, Scalar, Style};
pub(crate) use own_style::parse as parse_own_style;
pub(crate) use place::{Focus, Place, Step};
pub(crate) use tree::{parse, parse_only};
pub(crate) use typed::read;
pub(crate) use write::{fits, write};

/// Aliases that multiply: nine levels of nine each.
#[cfg(test)]
fn alias_bomb() -> String {
    let level = |level: usize| {
        let below = if level == 0 { "x".to_owned() } else { format!("*a{}", level - 1) };
        format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(", "))
    };
    (0..9).map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

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
            let own = parse_own_style(&text, &[]).expect("our own style");
            prop_assert_eq!(own.to_value(), value.clone(), "our own reader of\n{}", text);
            let any = parse(&text).expect("YAML");
            prop_assert_eq!(any.to_value(), value, "YAML parser of\n{}", text);
        }

        #[test]
        fn the_reader_of_our_own_style_never_panics(text in "([ -~\n\t]|  |- |: |\\|\n|\"|')*") {
            let _ = parse_own_style(&text, &[]);
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
        let node = parse_own_style(&text, &["skip"]).expect("our own style");
        let items = node.get("list").and_then(Node::items).expect("a list");
        assert_eq!(items[0].get("skip").map(Node::kind), Some(&Kind::Skipped));
        assert_eq!(items[0].get("keep").and_then(Node::text), Some("k"));
        assert_eq!(items[1].get("keep").and_then(Node::text), Some("l"));
    }

    #[test]
    fn only_the_part_itself_is_passed_over_and_nothing_else_of_that_name() {
        let named =
            json!({"skip": {"a": [1]}, "list": [{"keep": {"skip": "kept", "json": {"skip": [2]}}, "skip": "gone"}]});
        let text = write(&named);
        let node = parse_own_style(&text, &["skip"]).expect("our own style");
        assert_eq!(node.get("skip").map(Node::to_value), Some(json!({"a": [1]})));
        let item = &node.get("list").and_then(Node::items).expect("a list")[0];
        assert_eq!(item.get("keep").map(Node::to_value), Some(json!({"skip": "kept", "json": {"skip": [2]}})));
        assert_eq!(item.get("skip").map(Node::kind), Some(&Kind::Skipped));
    }

    #[test]
    fn what_the_writer_would_not_print_is_left_to_the_general_reader() {
        for (text, value) in [("a: 1 \n", json!(1)), ("a:  1\n", json!(1)), ("a: [1, 2 ]\n", json!([1, 2]))] {
            assert!(parse_own_style(text, &[]).is_none(), "{text:?}");
            assert_eq!(parse(text).expect("YAML").to_value(), json!({ "a": value }));
        }
        assert!(parse_own_style("a: \"\\x+f\"\n", &[]).is_none());
        let nested: String = (0..2_000).map(|level| format!("{}a:\n", "  ".repeat(level))).collect();
        assert!(parse_own_style(&nested, &[]).is_none());
        assert_eq!(parse(&nested).expect_err("too deep").problem, Problem::TooLarge);
    }

    #[test]
    fn what_a_person_wrote_is_left_to_the_general_reader() {
        let text = "cassette: 1 # a note\nkey: plain words\n";
        assert!(parse_own_style(text, &[]).is_none());
        let node = parse(text).expect("YAML");
        assert_eq!(node.get("key").and_then(Node::text), Some("plain words"));
        assert_eq!(node.get("key").map(|node| (node.place.line, node.place.column)), Some((2, 6)));
    }
}
