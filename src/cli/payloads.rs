//! Reads the file of `--poison`: instructions, each with the canary that shows whether an agent obeys.
//!
//! YAML has a list `payloads`. A file whose name ends in `.jsonl` has an object on each line, of which `id`, `text`, `canary`
//! and `control` are read, so that lists of others can be used as they are; a line without an id is `line-N`.

use super::output::Problem;
use crate::platform::{files, yaml};
use crate::provider::faults::Payload;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The file of `ragcheck faults --poison`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PayloadFile {
    /// Texts, each put on its own into what a model reads.
    payloads: Vec<Payload>,
}

#[derive(Deserialize)]
struct PayloadLine {
    id: Option<String>,
    text: String,
    canary: Option<String>,
    #[serde(default)]
    control: bool,
}

/// Reads and checks the file.
///
/// # Errors
/// If it cannot be read, is no such list, or has a payload that cannot be used; with the place.
pub(super) fn payloads(file: &Path) -> Result<Vec<Payload>, Problem> {
    let shown = file.display();
    let text = files::read_to_string(file).map_err(|why| format!("--poison: {shown} cannot be read: {why}"))?;
    let lines = file.extension().is_some_and(|end| end == "jsonl");
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let found = if lines { of_lines(text) } else { of_yaml(text) };
    let found = found.map_err(|(place, why)| {
        format!("--poison: {shown}{place}: {why}; a payload is {{id: …, text: …, canary: …}}")
    })?;
    let mut known: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for (number, payload) in (1..).zip(&found) {
        if let Some((key, why)) = payload.mistake() {
            return Err(format!("--poison: {shown}, payload {number}, `{key}`: {why}").into());
        }
        // Recordings have these names, and some file systems do not tell `A` from `a`.
        if let Some((other, id)) = known.insert(payload.id.to_ascii_lowercase(), (number, &payload.id)) {
            let same = if id == payload.id { "the same id" } else { "this id in other case" };
            let why = format!("payload {other}, `{id}`, has {same}; recordings are named by it");
            return Err(format!("--poison: {shown}, payload {number}, `id` `{}`: {why}", payload.id).into());
        }
    }
    if found.is_empty() { Err(format!("--poison: {shown} has no payload").into()) } else { Ok(found) }
}

type Mistake = (String, String);

fn of_yaml(text: &str) -> Result<Vec<Payload>, Mistake> {
    let read: Result<PayloadFile, _> = yaml::read(text);
    read.map(|read| read.payloads).map_err(|why| {
        let place = why.place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
        (place, why.to_string())
    })
}

fn of_lines(text: &str) -> Result<Vec<Payload>, Mistake> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        let one: PayloadLine =
            serde_json::from_str(line).map_err(|why| (format!(":{number}:{}", why.column()), why.to_string()))?;
        let PayloadLine { id, text, canary, control } = one;
        Ok(Payload {
            id: id.unwrap_or_else(|| format!("line-{number}")),
            text,
            canary: canary.map(Into::into),
            control,
        })
    });
    read.collect()
}
