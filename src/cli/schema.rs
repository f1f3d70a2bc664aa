//! `ragcheck schema`: prints the JSON Schemas of the files that people write, and of the data in a run folder.

use super::arguments::Schema;
use super::compare::Compared;
use super::demo::Demonstrated;
use super::exit::Exit;
use super::explain::Explanation;
use super::init::Initialised;
use super::judge::Judged;
use super::list::Listing;
use super::output::{self, Problem};
use super::payloads::PayloadFile;
use super::promote::Promoted;
use super::show::ShownTrial;
use super::{cassette, csv_page, history, keywords, knowledge, reference};
use crate::gate::Evaluation;
use crate::metric::catalogue;
use crate::plan::Plan;
use crate::report::DecidedExit;
use crate::report::runs::RunRow;
use crate::scenario::{Diagnostic, schema};
use crate::simulator;
use crate::suite::faults::FaultMatrix;
use crate::suite::import::published::PublishedTrace;
use crate::suite::mutation::Mutants;
use crate::suite::storage::StoredSet;
use crate::trace::Trace;
use clap::ValueEnum as _;
use regex::Regex;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Documents with a schema, as file stems below `schema/`.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
pub const DOCUMENTS: [&str; 15] = [
    "scenario", "criteria", "project", "rubric", "behaviour", "payloads", "trace", "run", "plan", "events",
    "exit-code", "check", "list", "show", "explain",
];

/// Further commands with a schema of what they print, as file stems below `schema/`.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests use it"))]
pub const PRINTED: [&str; 13] = [
    "init", "demo", "judge", "compare", "history", "runs", "mutate", "faults", "knowledge", "keywords", "cassette",
    "storage", "promote",
];

/// Schema of a document, ending with a newline; for `csv` the page of its columns. `None` for an unknown document.
pub fn text(document: &str) -> Option<String> {
    let schema = match document {
        "csv" => return Some(csv_page::page()),
        "scenario" => schema::scenario_with_columns(&crate::catalogues()),
        _ => of(document)?,
    };
    serde_json::to_string_pretty(&schema).ok().map(|text| text + "\n")
}

/// Reference page generated from a document's schema; `None` for an unknown document.
pub fn page(document: &str) -> Option<String> {
    match document {
        "csv" => text(document),
        "trace" => Some(reference::page(document, &of(document)?) + &needs()),
        _ => Some(reference::page(document, &of(document)?)),
    }
}

/// The table of what each metric needs of a published trace.
fn needs() -> String {
    let mut table = "\n## What metrics need\n\nA trace that lacks one of these members is not measured by the metric, and the criterion names it.\n\n\
                     | metric | members |\n|---|---|\n"
        .to_owned();
    for (metric, members) in catalogue::members() {
        let paths: Vec<String> = members.iter().map(|member| format!("`{}`", member.path())).collect();
        let paths = if paths.is_empty() { "what the cases expect, or nothing".to_owned() } else { paths.join(", ") };
        let _ = writeln!(table, "| `{metric}` | {paths} |");
    }
    table
}

fn of(document: &str) -> Option<Value> {
    Some(match document {
        "scenario" => schema::scenario(&crate::catalogues()),
        "criteria" => schema::criteria(&crate::catalogues()),
        "project" => schema::project(&crate::catalogues()),
        "rubric" => schema::rubric(),
        "behaviour" => simulator::schema(),
        "payloads" => of_input::<PayloadFile>("Payloads"),
        "run" => of_data::<Evaluation>("run.json"),
        "plan" => sealed(of_data::<Plan>("plan.json")),
        "trace" => of_input::<PublishedTrace>("A published trace"),
        "events" => sealed(of_data::<Trace>("One line of traces.jsonl")),
        "exit-code" => sealed(of_data::<DecidedExit>("exit-code.json")),
        "check" => of_data::<Vec<Diagnostic>>("ragcheck check --format json"),
        "list" => of_data::<Listing>("ragcheck list --format json"),
        "show" => of_data::<ShownTrial>("ragcheck show --format json"),
        "explain" => of_data::<Explanation>("ragcheck explain --format json"),
        "init" => of_data::<Initialised>("ragcheck init --format json"),
        "demo" => of_data::<Demonstrated>("ragcheck demo --format json"),
        "judge" => of_data::<Judged>("ragcheck judge --format json"),
        "compare" => of_data::<Compared>("ragcheck compare --format json"),
        "history" => of_data::<history::Printable>("ragcheck history --format json"),
        "runs" => of_data::<Vec<RunRow>>("ragcheck runs --format json"),
        "mutate" => of_data::<Mutants>("ragcheck mutate --format json"),
        "faults" => of_data::<FaultMatrix>("ragcheck faults --format json"),
        "knowledge" => of_data::<knowledge::Printable>("ragcheck knowledge --format json"),
        "keywords" => of_data::<keywords::Printable>("ragcheck keywords --format json"),
        "cassette" => of_data::<cassette::Printable>("ragcheck cassette --format json"),
        "storage" => of_data::<Vec<StoredSet>>("ragcheck storage --format json"),
        "promote" => of_data::<Promoted>("ragcheck promote --output json"),
        _ => return None,
    })
}

/// Schema of data as this build writes it: a member that is always written is required.
fn of_data<T: JsonSchema>(title: &str) -> Value {
    titled::<T>(SchemaSettings::draft2020_12().for_serialize(), title)
}

/// Schema of data as this build reads it.
fn of_input<T: JsonSchema>(title: &str) -> Value {
    titled::<T>(SchemaSettings::draft2020_12(), title)
}

fn titled<T: JsonSchema>(settings: SchemaSettings, title: &str) -> Value {
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema["title"] = title.into();
    describe(&mut schema);
    schema
}

/// Adds the digest that ends a stored text.
fn sealed(mut schema: Value) -> Value {
    let about = "First 16 hex digits of SHA-256 over the text before this member, which is the last one: reveals edits by hand.";
    schema["properties"]["digest"] = serde_json::json!({"description": about, "type": "string"});
    if let Some(required) = schema["required"].as_array_mut() {
        required.push("digest".into());
    }
    schema
}

/// Rewrites descriptions, which are comments of the code, for readers of JSON: no links to code, and `null` or
/// "absent" in place of `None`.
fn describe(schema: &mut Value) {
    static LINK: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[(`[^`]*`)\](?:\([^)]*\))?").ok());
    let reword = |schema: &mut Value, none: &str| {
        let Some(Value::String(text)) = schema.get_mut("description") else { return };
        let linkless = LINK.as_ref().map(|link| link.replace_all(text, "$1").into_owned());
        // What follows is an example in Rust.
        let linkless = linkless.unwrap_or_default();
        *text = linkless.split("\n\n```").next().unwrap_or_default().replace("`None`", none);
    };
    let required = schema["required"].clone();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    for (name, member) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        reword(member, if is_required(name) { "`null`" } else { "absent" });
    }
    reword(schema, "`null`");
    match schema {
        Value::Object(members) => members.values_mut().for_each(describe),
        Value::Array(items) => items.iter_mut().for_each(describe),
        _ => {}
    }
}

/// Runs `ragcheck schema`.
///
/// # Errors
/// Never: every document that can be named has a schema.
pub(super) fn run(given: &Schema) -> Result<Exit, Problem> {
    let document = given.of.to_possible_value();
    let document = document.as_ref().map_or("", clap::builder::PossibleValue::get_name);
    let made = if given.markdown { page(document) } else { text(document) };
    let text = made.ok_or_else(|| format!("no schema is called `{document}`"))?;
    output::result(&text);
    Ok(Exit::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::Schemas;
    use clap::ValueEnum;
    use std::collections::BTreeSet;

    #[test]
    fn every_document_with_a_schema_can_be_named() {
        let named = Schemas::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let named: BTreeSet<String> = named.map(|value| value.get_name().to_owned()).collect();
        let all = DOCUMENTS.into_iter().chain(PRINTED).chain(["csv"]).map(str::to_owned);
        assert_eq!(named, all.collect());
    }
}
