//! Any YAML into [`Node`]s, for cassettes that a person edited: slower, and with positions for messages.

use super::{Kind, Node};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::borrow::Cow;

/// Why a text is not YAML, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cassette) struct Broken {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

/// Parses a document of any style.
///
/// # Errors
/// [`Broken`] when it is not YAML.
pub(in crate::cassette) fn parse(text: &str) -> Result<Node<'static>, Broken> {
    match serde_saphyr::from_str::<Spanned<Tree>>(text) {
        Ok(tree) => Ok(node(tree)),
        Err(error) => {
            let place = error.location();
            let message = error.without_snippet().to_string();
            Err(Broken {
                line: place.map_or(1, |place| at_least_one(place.line())),
                column: place.map_or(1, |place| at_least_one(place.column())),
                message: message.lines().next().unwrap_or("not YAML").to_owned(),
            })
        }
    }
}

fn at_least_one(number: u64) -> u32 {
    u32::try_from(number.max(1)).unwrap_or(u32::MAX)
}

fn node(tree: Spanned<Tree>) -> Node<'static> {
    let kind = match tree.value {
        Tree::Null => Kind::Null,
        Tree::Bool(value) => Kind::Bool(value),
        Tree::Number(text) => Kind::Number(Cow::Owned(text)),
        Tree::Text(text) => Kind::Text(Cow::Owned(text)),
        Tree::List(items) => Kind::List(items.into_iter().map(node).collect()),
        Tree::Map(entries) => {
            Kind::Map(entries.into_iter().map(|(key, value)| (Cow::Owned(key), node(value))).collect())
        }
    };
    Node { line: at_least_one(tree.referenced.line()), column: at_least_one(tree.referenced.column()), kind }
}

enum Tree {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(String, Spanned<Tree>)>),
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a value that JSON has too")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Tree::Null, |number| Tree::Number(number.to_string())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<String>()? {
            entries.push((key, access.next_value()?));
        }
        Ok(Tree::Map(entries))
    }
}
