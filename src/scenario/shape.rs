//! Collects all mistakes of shape at once by comparing a document's tree with the JSON Schema of its type.
//!
//! The typed reader stops at its first mistake. This walk then collects every unknown, repeated or missing key and
//! every value of a wrong type, and turns the rest into a JSON value whose valid parts can still be read and checked
//! for meaning.

use super::case_table::{TABLE, names_table};
use super::diagnostic::{At, Mistake, did_you_mean};
use crate::platform::bounds::Bound;
use crate::platform::placeholders::has_value;
use crate::platform::yaml::{Kind, Node};
use crate::settings::{AgeLimit, TimeSpan};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Largest number of nodes visited, counting aliases each time.
const BUDGET: usize = 2_000_000;

/// The mistake that leaves a document valid, see [`Walked::value`].
pub(super) const BAD_DURATION: &str = "bad-duration";

/// Result of a walk.
pub(super) struct Walked {
    /// The mistakes, in the order of the document.
    pub mistakes: Vec<Mistake>,
    /// Number of unknown keys after the last listed mistake.
    pub more: usize,
    /// The document as JSON; values with mistakes are null, except that an invalid time is replaced by a valid one.
    pub value: Value,
}

/// Walks a whole document. In a case that names a `table`, a text with columns may replace any value.
pub(super) fn walk(root: &Node<'_>, schema: &Value) -> Walked {
    walked(root, schema, Texts::Written, At::ROOT)
}

/// Walks a case made from a table row, in which a single value may replace a list.
pub(super) fn walk_filled(case: &Node<'_>, schema: &Value, at: At<'_>) -> Walked {
    walked(case, schema, Texts::Filled, at)
}

fn walked(root: &Node<'_>, schema: &Value, texts: Texts, at: At<'_>) -> Walked {
    let mut walker = Walker { schema, mistakes: Vec::new(), more: 0, budget: BUDGET, texts };
    let value = walker.value(root, schema, at);
    Walked { mistakes: walker.mistakes, more: walker.more, value }
}

/// Origin of a document's scalars.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    /// Written by a person.
    Written,
    /// Written by a person, in a case with columns in its texts.
    Template,
    /// Constants of a template, and cells.
    Filled,
}

struct Walker<'s> {
    texts: Texts,
    schema: &'s Value,
    mistakes: Vec<Mistake>,
    more: usize,
    budget: usize,
}

impl<'s> Walker<'s> {
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
        target.and_then(|pointer| self.schema.pointer(pointer)).unwrap_or(schema)
    }

    fn value(&mut self, node: &Node<'_>, schema: &'s Value, at: At<'_>) -> Value {
        if self.budget == 0 {
            return Value::Null;
        }
        self.budget -= 1;
        let schema = self.resolve(schema);
        if self.texts == Texts::Template
            && let Some(text) = node.written().filter(|text| has_value(text))
        {
            return Value::String(text.to_owned());
        }
        let alternatives = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
        if let Some(alternatives) = alternatives {
            return self.one_of(node, alternatives, at);
        }
        let types = types(schema);
        if types.is_empty() {
            return self.anything(node, at);
        }
        match node.kind() {
            Kind::Map(_) if types.contains(&"object") => self.object(node, schema, at),
            Kind::List(items) if types.contains(&"array") => {
                let inner = schema.get("items").unwrap_or(&Value::Null);
                Value::Array(
                    items.iter().enumerate().map(|(index, item)| self.value(item, inner, at.index(index))).collect(),
                )
            }
            Kind::Scalar(..) if self.texts == Texts::Filled && types == ["array"] => {
                let inner = schema.get("items").unwrap_or(&Value::Null);
                Value::Array(vec![self.value(node, inner, at)])
            }
            Kind::Scalar(text, _) => self.scalar(node, text, schema, &types, at),
            _ => self.wrong_type(node, &types, at),
        }
    }

    fn wrong_type(&mut self, node: &Node<'_>, types: &[&str], at: At<'_>) -> Value {
        let wanted: Vec<&str> = types.iter().filter(|name| **name != "null").map(|name| in_words(name)).collect();
        let message = format!("expected {}, found {}", wanted.join(" or "), node.describe());
        let mistake = Mistake::at(at, "wrong-type", message);
        self.mistakes.push(match unquoted_column(node) {
            Some(name) => mistake.label(format!("in YAML, braces need quotes: `\"{{{{ {name} }}}}\"`")),
            None => mistake,
        });
        Value::Null
    }

    fn scalar(&mut self, node: &Node<'_>, text: &str, schema: &'s Value, types: &[&str], at: At<'_>) -> Value {
        let meaning = node.to_value();
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return self.word(text, words.iter().filter_map(Value::as_str).collect(), at);
        }
        if let Some(word) = schema.get("const").and_then(Value::as_str) {
            return self.word(text, vec![word], at);
        }
        let fits = |name: &&str| match (*name, &meaning) {
            ("null", Value::Null) | ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => true,
            ("string", meaning) => !meaning.is_null(),
            ("integer", Value::Number(number)) => {
                let least = schema.get("minimum").and_then(Value::as_i64);
                let in_range = |value: i64| least.is_none_or(|least| value >= least) && value <= i64::from(u32::MAX);
                number.as_i64().is_some_and(in_range)
            }
            ("array" | "object", Value::Null) => schema.get("default").is_some(),
            _ => false,
        };
        match types.iter().find(|name| fits(name)) {
            Some(&"string") => self.text(text, schema, at),
            Some(&"array") => Value::Array(Vec::new()),
            Some(&"object") => Value::Object(Map::new()),
            Some(_) => meaning,
            None => {
                let wanted: Vec<&str> =
                    types.iter().filter(|name| **name != "null").map(|name| in_words(name)).collect();
                let found = node.describe();
                let mistake = Mistake::at(at, "wrong-type", format!("expected {}, found {found}", wanted.join(" or ")));
                self.mistakes.push(mistake);
                Value::Null
            }
        }
    }

    /// Checks a text that may have to be a time: reports an invalid time and replaces it by a valid one.
    fn text(&mut self, text: &str, schema: &'s Value, at: At<'_>) -> Value {
        let wrong = match schema.get("pattern").and_then(Value::as_str) {
            Some(TimeSpan::PATTERN) => text.parse::<TimeSpan>().err(),
            Some(AgeLimit::PATTERN) => text.parse::<AgeLimit>().err(),
            _ => None,
        };
        let Some(wrong) = wrong else { return Value::String(text.to_owned()) };
        self.mistakes.push(Mistake::at(at, BAD_DURATION, wrong.to_string()));
        Value::String("1s".to_owned())
    }

    fn word(&mut self, text: &str, known: Vec<&str>, at: At<'_>) -> Value {
        if !known.contains(&text) {
            let mistake = Mistake::at(at, "unknown-word", format!("unknown word `{text}`"));
            self.mistakes.push(mistake.label(did_you_mean(text, known)));
        }
        Value::String(text.to_owned())
    }

    fn one_of(&mut self, node: &Node<'_>, alternatives: &'s [Value], at: At<'_>) -> Value {
        let all: Vec<&'s Value> = alternatives.iter().map(|schema| self.resolve(schema)).collect();
        let is_null = |schema: &&'s Value| types(schema) == ["null"];
        if all.iter().any(is_null) && node.is_null() {
            return Value::Null;
        }
        let real: Vec<&'s Value> = all.into_iter().filter(|schema| !is_null(schema)).collect();
        if let [only] = real.as_slice() {
            return self.value(node, only, at);
        }
        match node.kind() {
            Kind::Scalar(text, _) => {
                let words: Vec<&str> = real.iter().flat_map(|schema| words(schema)).collect();
                if !words.is_empty() {
                    return self.word(text, words, at);
                }
                match real.iter().find(|schema| !types(schema).iter().any(|name| matches!(*name, "object" | "array"))) {
                    Some(schema) => self.value(node, schema, at),
                    None => self.tagged(node, &real, at),
                }
            }
            Kind::Map(_) => {
                let maps: Vec<&'s Value> =
                    real.into_iter().filter(|schema| types(schema).contains(&"object")).collect();
                match maps.as_slice() {
                    [only] => self.value(node, only, at),
                    _ => self.tagged(node, &maps, at),
                }
            }
            _ => match real.iter().find(|schema| types(schema).contains(&"array")) {
                Some(schema) => self.value(node, schema, at),
                None => self.tagged(node, &real, at),
            },
        }
    }

    /// A map with exactly one key, which selects the alternative.
    fn tagged(&mut self, node: &Node<'_>, alternatives: &[&'s Value], at: At<'_>) -> Value {
        let known: Vec<&'s str> = alternatives.iter().filter_map(|schema| tag(schema)).collect();
        let pairs = node.entries();
        let [(key, _)] = pairs.as_slice() else {
            let message = match pairs.len() {
                0 => format!("expected a map with one key, found {}", node.describe()),
                several => format!("expected exactly one key here, found {several}"),
            };
            self.mistakes.push(Mistake::at(at, "wrong-type", message).label(format!("one of: {}", known.join(", "))));
            return Value::Null;
        };
        let key = key.written().unwrap_or_default();
        let Some(schema) = alternatives.iter().find(|schema| tag(schema) == Some(key)) else {
            self.unknown_key(key, known, at);
            return Value::Null;
        };
        self.object(node, schema, at)
    }

    fn unknown_key<'k>(&mut self, key: &str, known: impl IntoIterator<Item = &'k str>, at: At<'_>) {
        // Keeps one beyond those listed: the place after which there are more.
        if self.mistakes.len() > Bound::Mistakes.most_in_memory() {
            self.more += 1;
            return;
        }
        let mistake = Mistake::at(at.key(key), "unknown-key", format!("unknown key `{key}`")).on_key();
        self.mistakes.push(mistake.label(did_you_mean(key, known)));
    }

    fn object(&mut self, node: &Node<'_>, schema: &'s Value, at: At<'_>) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let texts = self.texts;
        if texts == Texts::Written && properties.is_some_and(|known| known.contains_key(TABLE)) && names_table(node) {
            self.texts = Texts::Template;
        }
        let value = self.properties(node, schema, properties, at);
        self.texts = texts;
        value
    }

    fn properties(
        &mut self,
        node: &Node<'_>,
        schema: &'s Value,
        properties: Option<&'s Map<String, Value>>,
        at: At<'_>,
    ) -> Value {
        let others = schema.get("additionalProperties");
        let mut map = Map::new();
        for (key, value) in self.pairs(node, at) {
            let property = properties.and_then(|properties| properties.get(key));
            match (property, others) {
                (Some(property), _) => {
                    let value = self.value(value, property, at.key(key));
                    map.insert(key.to_owned(), value);
                }
                (None, Some(Value::Bool(false))) => {
                    let known = properties.into_iter().flat_map(Map::keys).map(String::as_str);
                    self.unknown_key(key, known, at);
                }
                (None, others) => {
                    let value = self.value(value, others.unwrap_or(&Value::Null), at.key(key));
                    map.insert(key.to_owned(), value);
                }
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for key in required.filter(|key| !map.contains_key(*key)) {
            self.mistakes.push(Mistake::at(at, "missing-key", format!("the key `{key}` is missing")));
        }
        Value::Object(map)
    }

    fn anything(&mut self, node: &Node<'_>, at: At<'_>) -> Value {
        match node.kind() {
            Kind::List(items) => {
                let items = items.iter().enumerate();
                Value::Array(items.map(|(index, item)| self.value(item, &Value::Null, at.index(index))).collect())
            }
            Kind::Map(_) => {
                let pairs = self.pairs(node, at);
                let pairs = pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), self.value(value, &Value::Null, at.key(key))));
                Value::Object(pairs.collect())
            }
            _ => node.to_value(),
        }
    }

    /// Pairs with text keys; repeated keys are reported and dropped, and explicit pairs override merged ones.
    fn pairs<'n, 'a>(&mut self, node: &'n Node<'a>, at: At<'_>) -> Vec<(&'n str, &'n Node<'a>)> {
        let Kind::Map(own) = node.kind() else { return Vec::new() };
        let own: Vec<&str> = own.iter().filter_map(|(key, _)| key.written()).filter(|key| *key != "<<").collect();
        let mut seen = BTreeSet::new();
        let mut pairs = Vec::new();
        for (index, (key, value)) in node.entries().into_iter().enumerate() {
            let Some(text) = key.written() else {
                self.mistakes.push(Mistake::at(at, "wrong-type", "a key must be text"));
                continue;
            };
            if seen.insert(text) {
                pairs.push((text, value));
            } else if index < own.len() {
                let mut mistake =
                    Mistake::at(at.key(text), "duplicate-key", format!("the key `{text}` is written twice"));
                mistake.told.place = Some(key.place);
                self.mistakes.push(mistake.label("remove one of the two"));
            }
        }
        pairs
    }
}

/// The column in an unquoted `{{ column }}`, which YAML reads as a map whose only key is a map.
fn unquoted_column<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    let Kind::Map(pairs) = node.kind() else { return None };
    let [(key, _)] = pairs.as_slice() else { return None };
    let Kind::Map(inner) = key.kind() else { return None };
    let [(name, value)] = inner.as_slice() else { return None };
    name.written().filter(|_| value.is_null())
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn words(schema: &Value) -> Vec<&str> {
    let one = schema.get("const").and_then(Value::as_str);
    one.into_iter()
        .chain(schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str))
        .collect()
}

fn tag(schema: &Value) -> Option<&str> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .and_then(|properties| properties.keys().next())
        .map(String::as_str)
}

fn in_words(name: &str) -> &str {
    match name {
        "string" => "text",
        "integer" => "a whole number, 0 or more",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, schema};
    use super::*;

    fn codes(text: &str) -> Vec<(String, &'static str)> {
        let root = crate::platform::yaml::parse(text).expect("YAML");
        let walked = walk(&root, &schema::of::<Scenario>());
        walked.mistakes.into_iter().map(|mistake| (mistake.told.message, mistake.told.code)).collect()
    }

    #[test]
    fn all_mistakes_of_shape_are_found_at_once() {
        let found = codes(
            "scenario: a\nflow: tool-rag\nflow: x\nknowledge: k\nmodel: {provider: p, nme: n}\nrepeat: many\nenforcement: froced\n\
             cases:\n  - case: a\n    expects: {}\n    ask: [1]\n  - turns: []\n    control: yes\n    expect: {calls: [{befor: [x]}, {never: {tool: x, out: y}}]}\n",
        );
        let codes: Vec<_> = found.iter().map(|(_, code)| *code).collect();
        assert_eq!(
            codes,
            [
                "duplicate-key", "unknown-key", "missing-key", "wrong-type", "unknown-word", "unknown-key",
                "wrong-type", "wrong-type", "unknown-key", "unknown-key", "missing-key"
            ],
            "{found:#?}"
        );
    }
}
