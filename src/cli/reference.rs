//! Renders a JSON Schema as a Markdown reference page: one table for each kind of object, in reading order.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Title and introduction of a page.
fn introduction(document: &str, schema: &Value) -> (String, String) {
    let (title, about) = match document {
        "scenario" => ("Scenario files", "Every key of a scenario."),
        "criteria" => ("Criteria files", "Every key of a file of criteria. `ragcheck explain` describes the metrics."),
        "project" => ("The project file", "Every key of `ragcheck.yaml`."),
        "rubric" => ("Rubrics", "Every key of a rubric, by which a model grades answers."),
        "behaviour" => {
            ("Behaviour files", "Every key of a behaviour file, which says what `ragcheck simulate` answers.")
        }
        "payloads" => ("Files of payloads", "Every key of the file of `ragcheck faults --poison`."),
        "run" => ("run.json", "Every member of `run.json`, the verdicts and figures of a run."),
        "plan" => ("plan.json", "Every member of `plan.json`, the input of scoring beside the traces."),
        "trace" => {
            ("Published traces", "Every member of a published trace, which `ragcheck score --import trace` reads.")
        }
        "events" => ("traces.jsonl", "Every member of a line of `traces.jsonl`, the events of one trial."),
        "exit-code" => (
            "exit-code.json",
            "Every member of `exit-code.json`, written if more than the criteria decided the exit code.",
        ),
        _ => {
            let command = schema["title"].as_str().unwrap_or(document);
            let title = command.strip_prefix("ragcheck ").unwrap_or(command);
            return (title.to_owned(), format!("Every member of what `{command}` prints."));
        }
    };
    (title.to_owned(), about.to_owned())
}

pub(super) fn page(document: &str, schema: &Value) -> String {
    let (title, about) = introduction(document, schema);
    let mut out = format!(
        "# {title}\n\n{about} The page is made from the schema (`ragcheck schema {document} --markdown`); `ragcheck schema {document}` prints \
         the schema for editors.\n"
    );
    let mut page = SchemaPage { schema, named: Vec::new() };
    let mut body = String::new();
    page.section(&mut body, schema);
    // Writing a section may add further ones.
    let mut at = 0;
    while let Some(name) = page.named.get(at).cloned() {
        at += 1;
        let _ = writeln!(body, "\n## {name}");
        if let Some(section) = schema.pointer(&format!("/$defs/{name}")) {
            page.section(&mut body, section);
        }
    }
    out += &body;
    out
}

struct SchemaPage<'s> {
    schema: &'s Value,
    /// Kinds referenced so far, in order.
    named: Vec<String>,
}

impl SchemaPage<'_> {
    /// Section with a schema's description, keys and alternatives.
    fn section(&mut self, out: &mut String, schema: &Value) {
        if let Some(about) = schema["description"].as_str() {
            let _ = writeln!(out, "\n{}", words(about));
        }
        if schema["items"].is_object() {
            let _ = writeln!(out, "\n{}.", capital(&self.kind(schema)));
        }
        if let Some(keys) = schema["properties"].as_object() {
            let required = required(schema);
            self.table(out, keys.iter().map(|(key, value)| (key.as_str(), value, required.contains(&key.as_str()))));
        }
        let Some(all) = alternatives(schema) else {
            if schema["additionalProperties"].is_object() {
                let _ = writeln!(out, "\n{}.", capital(&self.kind(schema)));
            }
            if let Some(names) = schema["propertyNames"]["enum"].as_array() {
                let _ = writeln!(out, "\nNames: {}.", listed(names));
            }
            if let Some(values) = schema["enum"].as_array() {
                let _ = writeln!(out, "\nOne of {}.", listed(values));
            }
            return;
        };
        let single: Vec<(&str, &Value)> = all.iter().filter_map(only_key).collect();
        if single.len() == all.len() {
            // Exactly one of several keys: each is described with its alternative.
            let _ = writeln!(out, "\nExactly one of these keys:\n\n| key | type | meaning |\n|---|---|---|");
            for ((key, value), one) in single.iter().zip(all) {
                let _ = writeln!(out, "| `{key}` | {} | {} |", self.kind(value), about(one));
            }
        } else if all.iter().all(|one| one.get("const").is_some() || one.get("enum").is_some()) {
            let _ = writeln!(out, "\n| value | meaning |\n|---|---|");
            for one in all {
                let values = one.get("const").map_or_else(
                    || listed(one["enum"].as_array().map_or(&[][..], Vec::as_slice)),
                    |value| listed(std::slice::from_ref(value)),
                );
                let _ = writeln!(out, "| {values} | {} |", about(one));
            }
        } else {
            self.mixed(out, all);
        }
    }

    /// Alternatives of several kinds: words, and keys of which exactly one is given.
    fn mixed(&mut self, out: &mut String, all: &[Value]) {
        if !all.iter().any(|one| only_key(one).is_some()) {
            let kinds: Vec<String> = all.iter().map(|one| self.kind(one)).collect();
            let _ = writeln!(out, "\n{}.", capital(&kinds.join(", or ")));
            return;
        }
        let _ = writeln!(
            out,
            "\nOne of these words, or a map with one of these keys:\n\n| word or key | type | meaning |\n|---|---|---|"
        );
        for one in all {
            if let Some((key, value)) = only_key(one) {
                let _ = writeln!(out, "| `{key}` | {} | {} |", self.kind(value), about(one));
            } else {
                let _ = writeln!(out, "| {} | word | {} |", self.kind(one), about(one));
            }
        }
    }

    fn table<'k>(&mut self, out: &mut String, keys: impl Iterator<Item = (&'k str, &'k Value, bool)>) {
        let _ = writeln!(out, "\n| key | type | meaning |\n|---|---|---|");
        for (key, value, required) in keys {
            let needed = if required { " (required)" } else { "" };
            let default = value.get("default").filter(|value| is_telling(value));
            let default = default.map_or_else(String::new, |value| format!(" By default `{value}`."));
            let _ = writeln!(out, "| `{key}`{needed} | {} | {}{default} |", self.kind(value), about(value));
        }
    }

    /// Short name of a type, with links to types that have a section.
    fn kind(&mut self, value: &Value) -> String {
        if let Some(name) = value["$ref"].as_str().and_then(|place| place.strip_prefix("#/$defs/")) {
            return self.link(name);
        }
        if let Some(values) = value["enum"].as_array() {
            return listed(values);
        }
        if let Some(value) = value.get("const") {
            return listed(std::slice::from_ref(value));
        }
        if let Some(all) = alternatives(value) {
            let kinds: Vec<String> = all.iter().filter(|one| one["type"] != "null").map(|one| self.kind(one)).collect();
            return kinds.join(" or ");
        }
        let single = match &value["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).find(|name| *name != "null"),
            other => other.as_str(),
        };
        match single {
            Some("string") => match value["examples"].as_array().filter(|_| value.get("pattern").is_some()) {
                Some(examples) => format!("text such as {}", listed(examples)),
                None => "text".to_owned(),
            },
            Some("integer") => "whole number".to_owned(),
            Some("number") => "number".to_owned(),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some("array") => match value.get("items") {
                Some(items) => format!("list of {}", self.kind(items)),
                None => "list".to_owned(),
            },
            Some("object") => match value.get("additionalProperties").filter(|inner| inner.is_object()) {
                Some(inner) => format!("map of names to {}", self.kind(inner)),
                None => "map".to_owned(),
            },
            _ => "any value".to_owned(),
        }
    }

    fn link(&mut self, name: &str) -> String {
        if self.schema.pointer(&format!("/$defs/{name}")).is_some() && !self.named.iter().any(|known| known == name) {
            self.named.push(name.to_owned());
        }
        format!("[{name}](#{})", name.to_lowercase())
    }
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())
}

/// The key of a map that has only this one.
fn only_key(schema: &Value) -> Option<(&str, &Value)> {
    let keys: &Map<String, Value> = schema["properties"].as_object()?;
    let (key, value) = keys.iter().next().filter(|_| keys.len() == 1)?;
    required(schema).contains(&key.as_str()).then_some((key, value))
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether a default is worth showing: null, an empty text and an empty list are expected.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        // For a map, each key shows its default in the map's section.
        Value::Null | Value::Object(_) => false,
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn about(schema: &Value) -> String {
    schema["description"].as_str().map_or_else(String::new, words)
}

/// A description as one table cell.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn listed(values: &[Value]) -> String {
    let shown = |value: &Value| match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    };
    values.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::schema::{DOCUMENTS, page};

    #[test]
    fn every_key_of_every_schema_stands_on_its_page_and_every_link_leads_to_a_section() {
        for document in DOCUMENTS {
            let text = page(document).expect("a page");
            let schema: Value =
                serde_json::from_str(&crate::cli::schema::text(document).expect("a schema")).expect("JSON");
            let kinds = schema["$defs"].as_object().into_iter().flatten().map(|(_, kind)| kind);
            for kind in kinds.chain([&schema]) {
                for key in kind["properties"].as_object().into_iter().flatten().map(|(key, _)| key) {
                    assert!(text.contains(&format!("| `{key}`")), "{document}: `{key}` is missing");
                }
            }
            for link in text.split("](#").skip(1) {
                let name = link.split(')').next().expect("an end");
                let there =
                    text.lines().any(|line| line.strip_prefix("## ").is_some_and(|head| head.to_lowercase() == name));
                assert!(there, "{document}: #{name} leads nowhere");
            }
        }
    }
}
