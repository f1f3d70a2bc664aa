//! Knowledge bases of a scenario: one, or several by the `kb_id` that the model names.

use super::either::{Either, text_or_map};
use crate::platform::schema;
use crate::settings::DEFAULT_KB;
use schemars::json_schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Knowledge bases by `kb_id`; a single name has the id `default_kb`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnowledgeNames {
    names: BTreeMap<String, String>,
    single: bool,
}

impl KnowledgeNames {
    /// Whether no base is named.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a single name was written rather than a map.
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// The bases, by `kb_id`.
    pub fn names(&self) -> &BTreeMap<String, String> {
        &self.names
    }
}

impl From<&str> for KnowledgeNames {
    fn from(name: &str) -> Self {
        let names = if name.is_empty() { None } else { Some((DEFAULT_KB.to_owned(), name.to_owned())) };
        Self { names: names.into_iter().collect(), single: true }
    }
}

impl Serialize for KnowledgeNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.names.get(DEFAULT_KB) {
            Some(name) if self.single => serializer.serialize_str(name),
            _ => self.names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for KnowledgeNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match text_or_map(deserializer, "the name of a knowledge base, or a map of names by `kb_id`")? {
            Either::Text(name) => name.as_str().into(),
            Either::Whole(names) => Self { names, single: false },
        })
    }
}

schema!(
    inline KnowledgeNames,
    json_schema!({"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]})
);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_name_or_several_are_written_as_they_were() {
        for written in [json!("garden"), json!({"default_kb": "garden"}), json!({"faq": "faq", "manual": "garden"})] {
            let names: KnowledgeNames = serde_json::from_value(written.clone()).expect("names");
            assert_eq!(serde_json::to_value(&names).expect("JSON"), written);
        }
        assert_eq!(KnowledgeNames::from("garden").names()[DEFAULT_KB], "garden");
        assert!(KnowledgeNames::default().is_empty() && serde_json::from_str::<KnowledgeNames>("3").is_err());
    }
}
