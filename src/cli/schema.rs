//! `ragcheck schema`: prints the JSON Schemas of the files that people write.

use super::arguments::{Schema, Schemas};
use super::exit::Exit;
use super::output::{self, Problem};
use super::reference;
use crate::scenario::schema;
use crate::simulator;
use serde_json::Value;

/// Documents with a schema, as file stems below `schema/`.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
pub const DOCUMENTS: [&str; 5] = ["scenario", "criteria", "project", "rubric", "behaviour"];

/// Schema of a document, ending with a newline; `None` for an unknown document.
pub fn text(document: &str) -> Option<String> {
    let schema = match document {
        "scenario" => schema::scenario_with_columns(&crate::catalogues()),
        _ => of(document)?,
    };
    serde_json::to_string_pretty(&schema).ok().map(|text| text + "\n")
}

/// Reference page generated from a document's schema; `None` for an unknown document.
pub fn page(document: &str) -> Option<String> {
    Some(reference::page(document, &of(document)?))
}

fn of(document: &str) -> Option<Value> {
    Some(match document {
        "scenario" => schema::scenario(&crate::catalogues()),
        "criteria" => schema::criteria(&crate::catalogues()),
        "project" => schema::project(&crate::catalogues()),
        "rubric" => schema::rubric(),
        "behaviour" => simulator::schema(),
        _ => return None,
    })
}

/// Runs `ragcheck schema`.
///
/// # Errors
/// Never: every document that can be named has a schema.
pub(super) fn run(given: &Schema) -> Result<Exit, Problem> {
    let document = match given.of {
        Schemas::Scenario => "scenario",
        Schemas::Criteria => "criteria",
        Schemas::Project => "project",
        Schemas::Rubric => "rubric",
        Schemas::Behaviour => "behaviour",
    };
    let made = if given.markdown { page(document) } else { text(document) };
    let text = made.ok_or_else(|| format!("no schema is called `{document}`"))?;
    output::result(&text);
    Ok(Exit::Passed)
}
