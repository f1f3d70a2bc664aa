//! `ragcheck schema`: the JSON Schemas of what people write.

use super::arguments::{Schema, Schemas};
use super::exit::Exit;
use super::output::{self, Problem};
use crate::scenario::schema;

/// The documents that have a schema, as file stems below `schema/`.
pub const DOCUMENTS: [&str; 4] = ["scenario", "criteria", "project", "rubric"];

/// The schema of a document, as text that ends with a line break; `None` for an unknown document.
pub fn text(document: &str) -> Option<String> {
    let schema = match document {
        "scenario" => schema::scenario(&crate::catalogues()),
        "criteria" => schema::criteria(&crate::catalogues()),
        "project" => schema::project(&crate::catalogues()),
        "rubric" => schema::rubric(),
        _ => return None,
    };
    serde_json::to_string_pretty(&schema).ok().map(|text| text + "\n")
}

/// Does what `ragcheck schema` was asked to.
///
/// # Errors
/// Never: every document that can be named has a schema.
pub(super) fn run(given: &Schema) -> Result<Exit, Problem> {
    let document = match given.of {
        Schemas::Scenario => "scenario",
        Schemas::Criteria => "criteria",
        Schemas::Project => "project",
        Schemas::Rubric => "rubric",
    };
    let text = text(document).ok_or_else(|| format!("no schema is called `{document}`"))?;
    output::result(&text);
    Ok(Exit::Passed)
}
