//! The table of a case as written: a file name, or a map with more settings.

use super::either::{Either, text_or_map};
use crate::platform::schema;
use crate::platform::yaml::Node;
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The key that makes a case a template.
pub(super) const TABLE: &str = "table";

/// Whether a case names a table.
pub(super) fn names_table(case: &Node<'_>) -> bool {
    case.get(TABLE).is_some_and(|table| !table.is_null())
}

/// A table that makes one case per row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseTable {
    /// The file, relative to the scenario: `.csv`, `.tsv` or `.jsonl`.
    pub file: String,
    /// Columns whose cells hold several values, with the separator between two values: `;` for example.
    pub lists: BTreeMap<String, String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileAndLists {
    /// The file, relative to the scenario: `.csv`, `.tsv` or `.jsonl`.
    file: String,
    /// Columns whose cells hold several values, with the separator between two values: `;` for example. JSON lines
    /// have lists already.
    #[serde(default)]
    lists: BTreeMap<String, String>,
}

impl Serialize for CaseTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.lists.is_empty() {
            return serializer.serialize_str(&self.file);
        }
        FileAndLists { file: self.file.clone(), lists: self.lists.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CaseTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match text_or_map(deserializer, "the name of a table, or a map with `file` and `lists`")? {
            Either::Text(file) => Self { file, lists: BTreeMap::new() },
            Either::Whole(FileAndLists { file, lists }) => Self { file, lists },
        })
    }
}

schema!(named CaseTable, |generator| json_schema!({
    "description": "A table with a case for each of its rows: its file alone, or a map with more.",
    "oneOf": [{"type": "string"}, generator.subschema_for::<FileAndLists>()]
}));
