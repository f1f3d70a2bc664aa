//! A document as a tree of nodes with positions.

use super::place::{Focus, Place, Step};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node<'a> {
    /// Position in the text.
    pub place: Place,
    pub(super) kind: Kind<'a>,
}

/// Content of a node. Maps keep the text's order and repeated keys, and `<<` as a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind<'a> {
    /// A text, number, boolean or null, as written.
    Scalar(Cow<'a, str>, Style),
    List(Vec<Node<'a>>),
    Map(Vec<(Node<'a>, Node<'a>)>),
    /// Value of an anchor, shared with its aliases.
    Shared(Rc<Node<'a>>),
    /// Skipped on the caller's request.
    Skipped,
}

/// Spelling of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes: may be a number, a boolean or null.
    Plain,
    Quoted,
    /// A block of lines.
    Block,
    /// Base64, in any of these spellings, with the tag `!!binary` or `!binary`.
    Binary,
}

/// Meaning of a scalar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar<'n> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'n str),
}

impl<'a> Node<'a> {
    /// A value that does not come from YAML text.
    pub(crate) fn new(place: Place, kind: Kind<'a>) -> Self {
        Self { place, kind }
    }

    /// A JSON value, all of it at one place.
    pub(crate) fn of_json(value: &'a Value, place: Place) -> Self {
        let text = |text: &'a str| Kind::Scalar(Cow::Borrowed(text), Style::Quoted);
        let pair = |(key, value): (&'a String, &'a Value)| (Self::new(place, text(key)), Self::of_json(value, place));
        let kind = match value {
            Value::String(string) => text(string),
            Value::Array(items) => Kind::List(items.iter().map(|item| Self::of_json(item, place)).collect()),
            Value::Object(pairs) => Kind::Map(pairs.iter().map(pair).collect()),
            word => Kind::Scalar(Cow::Owned(word.to_string()), Style::Plain),
        };
        Self::new(place, kind)
    }

    /// Items of an unshared list.
    ///
    /// # Errors
    /// The node itself, if it is anything else.
    pub(crate) fn into_items(self) -> Result<Vec<Self>, Self> {
        match self.kind {
            Kind::List(items) => Ok(items),
            kind => Err(Self { kind, ..self }),
        }
    }

    /// Content of the node; never [`Kind::Shared`].
    pub(crate) fn kind(&self) -> &Kind<'a> {
        match &self.kind {
            Kind::Shared(node) => node.kind(),
            kind => kind,
        }
    }

    /// Text of a scalar, without its quotes.
    pub(crate) fn written(&self) -> Option<&str> {
        match self.kind() {
            Kind::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// Meaning of a scalar: without quotes, `true` and `false` are booleans, JSON numbers are numbers, and numbers with
    /// a leading zero are text.
    pub(crate) fn scalar(&self) -> Option<Scalar<'_>> {
        match self.kind() {
            Kind::Scalar(text, Style::Plain) => Some(meaning(text)),
            Kind::Scalar(text, _) => Some(Scalar::Text(text)),
            _ => None,
        }
    }

    /// Text of a scalar that is not a number, a boolean or null.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.scalar() {
            Some(Scalar::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Base64 that is tagged as such.
    pub(crate) fn binary(&self) -> Option<&str> {
        match self.kind() {
            Kind::Scalar(text, Style::Binary) => Some(text),
            _ => None,
        }
    }

    /// Whether it is null: `null`, `~` or empty.
    pub(crate) fn is_null(&self) -> bool {
        self.scalar() == Some(Scalar::Null)
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> Option<&[Node<'a>]> {
        match self.kind() {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is a map.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.kind(), Kind::Map(_))
    }

    /// All pairs of a map, followed by those of `<<`; repeated keys are included, and the first one counts.
    pub(crate) fn entries(&self) -> Vec<(&Node<'a>, &Node<'a>)> {
        let mut found = Vec::new();
        self.collect(&mut found, 0);
        found
    }

    fn collect<'n>(&'n self, found: &mut Vec<(&'n Node<'a>, &'n Node<'a>)>, depth: usize) {
        let Kind::Map(pairs) = self.kind() else { return };
        found.extend(pairs.iter().filter(|(key, _)| !key.is_merge()).map(|(key, value)| (key, value)));
        if depth > 4 {
            return;
        }
        for (_, merged) in pairs.iter().filter(|(key, _)| key.is_merge()) {
            match merged.kind() {
                Kind::List(maps) => maps.iter().for_each(|map| map.collect(found, depth + 1)),
                _ => merged.collect(found, depth + 1),
            }
        }
    }

    fn is_merge(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(text, Style::Plain) if text == "<<")
    }

    /// The value of a map's key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node<'a>> {
        let Kind::Map(pairs) = self.kind() else { return None };
        let own = pairs.iter().find(|(name, _)| name.written() == Some(key)).map(|(_, value)| value);
        own.or_else(|| self.pair(key).map(|(_, value)| value))
    }

    /// Key and value of a map's entry.
    fn pair(&self, key: &str) -> Option<(&Node<'a>, &Node<'a>)> {
        let Kind::Map(pairs) = self.kind() else { return None };
        let own = pairs.iter().find(|(name, _)| !name.is_merge() && name.written() == Some(key));
        let merged = || self.entries().into_iter().find(|(name, _)| name.written() == Some(key));
        own.map(|(name, value)| (name, value)).or_else(merged)
    }

    /// First key, in text order, that is repeated in its map or is not a text.
    pub(crate) fn wrong_key(&self) -> Option<&Node<'a>> {
        match self.kind() {
            Kind::List(items) => items.iter().find_map(Node::wrong_key),
            Kind::Map(pairs) => {
                let mut seen = BTreeSet::new();
                pairs.iter().find_map(|(key, value)| match key.written() {
                    Some(text) if seen.insert(text) => value.wrong_key(),
                    _ => Some(key),
                })
            }
            _ => None,
        }
    }

    /// Position of a path, or of the last step that exists.
    pub(crate) fn locate(&self, path: &[Step], focus: Focus) -> Place {
        let (mut here, mut key) = (self, self);
        for step in path {
            let next = match step {
                Step::Key(name) => here.pair(name),
                Step::Index(index) => here.items().and_then(|items| items.get(*index)).map(|item| (item, item)),
            };
            match next {
                Some((name, value)) => (key, here) = (name, value),
                None => return here.place,
            }
        }
        match (focus, here.kind()) {
            (Focus::Key, _) => key.place,
            (Focus::Value, Kind::Scalar(text, Style::Plain)) if text.is_empty() => key.place,
            (Focus::Within(start, length), Kind::Scalar(text, style)) => {
                let quote = u32::from(*style == Style::Quoted);
                // Only a text on one line without escapes has positions inside it.
                if here.place.length != text.chars().count() as u32 + 2 * quote {
                    return here.place;
                }
                let column = here.place.column + quote + start as u32;
                Place { column, length: length.max(1) as u32, ..here.place }
            }
            _ => here.place,
        }
    }

    /// The node as a JSON value.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Description for messages about an unexpected value.
    pub(crate) fn describe(&self) -> Cow<'static, str> {
        match (self.kind(), self.scalar()) {
            (_, Some(Scalar::Null)) => "nothing".into(),
            (Kind::Scalar(text, Style::Plain), _) if text.chars().count() <= 40 => format!("`{text}`").into(),
            (Kind::Scalar(text, _), _) if text.chars().count() <= 40 => format!("the text `{text}`").into(),
            (Kind::List(_), _) => "a list".into(),
            (Kind::Map(_), _) => "a map".into(),
            _ => "text".into(),
        }
    }
}

/// Meaning of a scalar without quotes.
fn meaning(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        _ => {}
    }
    let digits = text.trim_start_matches(['-', '+']);
    let zero_led = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_alphanumeric();
    if !digits.starts_with(|first: char| first.is_ascii_digit()) || zero_led {
        return Scalar::Text(text);
    }
    let whole = text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from));
    let number = whole.ok().or_else(|| text.parse().ok().and_then(Number::from_f64));
    number.map_or(Scalar::Text(text), Scalar::Number)
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.kind() {
            Kind::Scalar(text, Style::Plain) => match meaning(text) {
                Scalar::Null => serializer.serialize_unit(),
                Scalar::Bool(value) => serializer.serialize_bool(value),
                Scalar::Number(number) => number.serialize(serializer),
                Scalar::Text(text) => serializer.serialize_str(text),
            },
            Kind::Scalar(text, _) => serializer.serialize_str(text),
            Kind::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Kind::Map(pairs) if pairs.iter().any(|(key, _)| key.is_merge()) => {
                let mut seen = BTreeSet::new();
                let mut entries = self.entries();
                entries.retain(|(key, _)| seen.insert(key.written().unwrap_or_default()));
                map(serializer, entries.into_iter())
            }
            Kind::Map(pairs) => map(serializer, pairs.iter().map(|(key, value)| (key, value))),
            Kind::Skipped | Kind::Shared(_) => serializer.serialize_unit(),
        }
    }
}

fn map<'n, 'a: 'n, S: Serializer>(
    serializer: S,
    entries: impl ExactSizeIterator<Item = (&'n Node<'a>, &'n Node<'a>)>,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(entries.len()))?;
    for (key, value) in entries {
        map.serialize_entry(key.written().unwrap_or_default(), value)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use serde_json::json;

    fn path(keys: &[&str]) -> Vec<Step> {
        keys.iter().map(|key| key.parse().map_or_else(|_| Step::Key((*key).into()), Step::Index)).collect()
    }

    fn at(text: &str, keys: &[&str], focus: Focus) -> (u32, u32, u32) {
        let place = parse(text).expect("YAML").locate(&path(keys), focus);
        (place.line, place.column, place.length)
    }

    #[test]
    fn a_path_leads_to_line_column_and_length() {
        let text = "a:\n  - b: 'xy z'\n    c: [1, 22]\n";
        assert_eq!(at(text, &["a", "0", "b"], Focus::Value), (2, 8, 6));
        assert_eq!(at(text, &["a", "0", "b"], Focus::Within(3, 1)), (2, 12, 1));
        assert_eq!(at(text, &["a", "0", "c", "1"], Focus::Value), (3, 12, 2));
        assert_eq!(at(text, &["a", "0", "c"], Focus::Key), (3, 5, 1));
        assert_eq!(at(text, &["a", "0", "missing", "deep"], Focus::Value), (2, 5, 1));
    }

    #[test]
    fn merged_keys_are_found_where_they_are_written() {
        assert_eq!(at("x: &x {p: 1}\ny:\n  <<: *x\n  q: 2\n", &["y", "p"], Focus::Value), (1, 11, 1));
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(at("ä: {ö: ü}", &["ä", "ö"], Focus::Value), (1, 8, 1));
    }

    #[test]
    fn a_merged_map_gives_what_its_own_keys_leave_and_a_quoted_merge_key_is_a_key() {
        let node = parse("x: &x {p: 1, q: 2}\ny: {<<: *x, q: 3}\nz: {\"<<\": 4}\n").expect("YAML");
        assert_eq!(node.to_value(), json!({"x": {"p": 1, "q": 2}, "y": {"q": 3, "p": 1}, "z": {"<<": 4}}));
    }

    #[test]
    fn words_that_look_like_numbers_stay_text_and_numbers_keep_their_value() {
        let node = parse("[no, 012, 1_000, 0x10, 1.5.2, 18446744073709551615, -3, 2.50, 1e3, ~, 'true', true]");
        assert_eq!(
            node.expect("YAML").to_value(),
            json!(["no", "012", "1_000", "0x10", "1.5.2", u64::MAX, -3, 2.5, 1000.0, null, "true", true])
        );
    }

    #[test]
    fn a_repeated_key_and_one_that_is_no_text_are_found() {
        let wrong = |text: &str| parse(text).expect("YAML").wrong_key().map(|key| (key.place.line, key.place.column));
        assert_eq!(wrong("a: 1\nb:\n  - {c: 1, d: 2, c: 3}\n"), Some((3, 18)));
        assert_eq!(wrong("a: 1\n? [x, y]\n: 2\n"), Some((2, 3)));
        assert_eq!(wrong("a: {c: 1}\nb: {c: 1}\n"), None);
    }
}
