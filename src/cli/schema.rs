//! `ragcheck schema`: the JSON Schemas of what people write.

use crate::scenario::schema;

/// The documents that have a schema, as file stems below `schema/`.
pub const DOCUMENTS: [&str; 3] = ["scenario", "criteria", "project"];

/// The schema of a document, as text that ends with a line break; `None` for an unknown document.
pub fn text(document: &str) -> Option<String> {
    let schema = match document {
        "scenario" => schema::scenario(),
        "criteria" => schema::criteria(),
        "project" => schema::project(),
        _ => return None,
    };
    serde_json::to_string_pretty(&schema).ok().map(|text| text + "\n")
}
