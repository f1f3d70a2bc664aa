//! Runs of LangSmith: what its SDK posts (`post` and `patch`), or a list of runs, as spans.
//!
//! A run is posted when it begins, with its inputs, and patched when it ends, with its outputs; a short one is posted
//! whole. Its `run_type` says what it was: `llm`, `tool`, `retriever`, `embedding`, or `chain` for an agent or a part of it.

use super::json::nanoseconds;
use super::{Attributes, Batch, Span, SpanError, usage};
use crate::trace::finish_of;
use crate::trace::text::quote;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Takes the runs out of a document that holds some.
pub(super) fn take(object: &mut Map<String, Value>) -> Option<Vec<Value>> {
    if object.get("run_type").is_some_and(Value::is_string) {
        return Some(vec![Value::Object(std::mem::take(object))]);
    }
    let is_list = |name: &str| object.get(name).is_none_or(Value::is_array);
    if !(object.contains_key("post") || object.contains_key("patch")) || !is_list("post") || !is_list("patch") {
        return None;
    }
    let lists = ["post", "patch"].into_iter().filter_map(|name| object.remove(name));
    Some(lists.flat_map(|list| if let Value::Array(runs) = list { runs } else { Vec::new() }).collect())
}

/// Adds the spans of runs, each with all that was posted and patched of it.
pub(super) fn add(runs: Vec<Value>, batch: &mut Batch) {
    let mut whole: Vec<Map<String, Value>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        let Value::Object(run) = run else {
            batch.unread.push(format!("{} is no run", quote(&run.to_string(), 60)));
            continue;
        };
        let id = text(&run, "id").unwrap_or_default().to_owned();
        if let Some(place) = places.get(&id).filter(|_| !id.is_empty()) {
            let told = run.into_iter().filter(|(_, value)| !value.is_null() && *value != Value::Object(Map::new()));
            whole[*place].extend(told);
        } else {
            places.insert(id, whole.len());
            whole.push(run);
        }
    }
    for run in whole {
        match span(&run) {
            Ok(span) => batch.spans.push(span),
            Err(why) => {
                let name = quote(text(&run, "name").unwrap_or("without a name"), 60);
                batch.unread.push(format!("the run `{name}`: {why}"));
            }
        }
    }
}

fn text<'r>(run: &'r Map<String, Value>, name: &str) -> Option<&'r str> {
    run.get(name)?.as_str()
}

/// The hexadecimal digits of a UUID.
fn id(run: &Map<String, Value>, name: &str) -> Result<Option<String>, SpanError> {
    let Some(written) = run.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let digits = written.as_str().unwrap_or_default().replace('-', "").to_ascii_lowercase();
    if digits.len() == 32 && hex::decode(&digits).is_ok() {
        return Ok(Some(digits));
    }
    Err(SpanError(format!("its `{name}` is {}", quote(&written.to_string(), 60))))
}

fn span(run: &Map<String, Value>) -> Result<Span, SpanError> {
    let missing = |name: &str| SpanError(format!("it has no `{name}`"));
    let own = id(run, "id")?.ok_or_else(|| missing("id"))?;
    let trace = id(run, "trace_id")?.ok_or_else(|| missing("trace_id"))?;
    let time = |name: &str| run.get(name).and_then(nanoseconds);
    let start_ns = time("start_time").unwrap_or_default();
    let error = text(run, "error").filter(|error| !error.is_empty());
    Ok(Span {
        trace,
        id: own,
        parent: id(run, "parent_run_id")?,
        name: text(run, "name").unwrap_or_default().to_owned(),
        start_ns,
        end_ns: time("end_time").unwrap_or_default(),
        attributes: attributes(run),
        failed: error.map(|error| error.lines().next().unwrap_or_default().to_owned()),
        ..Span::default()
    })
}

/// What a run says, by the names of OpenInference.
fn attributes(run: &Map<String, Value>) -> Attributes {
    let kind @ ("llm" | "tool" | "retriever" | "embedding" | "chain") = text(run, "run_type").unwrap_or_default()
    else {
        return Attributes::new();
    };
    let nothing = Value::Null;
    let (inputs, outputs) = (run.get("inputs").unwrap_or(&nothing), run.get("outputs").unwrap_or(&nothing));
    let only = |value: &Value, name: &str| match value {
        Value::Object(members) if members.len() == 1 => members.get(name).cloned(),
        _ => None,
    };
    let at = |of: &Value, pointers: &[&str]| {
        pointers.iter().find_map(|pointer| of.pointer(pointer)).filter(|value| !value.is_null()).cloned()
    };
    let whole = Value::Object(run.clone());
    let mut told = Attributes::new();
    let mut tell = |name: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null() && *value != Value::Object(Map::new())) {
            told.insert(name.to_owned(), value);
        }
    };
    let about = whole.pointer("/extra/metadata").and_then(Value::as_object).into_iter().flatten();
    about.filter(|(name, _)| name.starts_with("ragcheck.")).for_each(|(name, value)| tell(name, Some(value.clone())));
    tell("openinference.span.kind", Some(kind.into()));
    match kind {
        "llm" => {
            let message =
                ["/choices/0/message", "/generations/0/0/message", "/generations/0/0/text", "/message", "/output"];
            let usage = ["/usage_metadata", "/generations/0/0/message/kwargs/usage_metadata"];
            let usage = at(outputs, &usage).unwrap_or_default();
            let counted = |name: &str, of_run: &str| at(&usage, &[name]).or_else(|| at(&whole, &[of_run]));
            tell("input.value", Some(inputs.clone()));
            tell("output.value", at(outputs, &message).or_else(|| Some(outputs.clone())));
            let model = at(outputs, &["/model", "/generations/0/0/message/kwargs/response_metadata/model_name"]);
            tell("llm.model_name", model.or_else(|| at(&whole, &["/extra/metadata/ls_model_name"])));
            let message = at(outputs, &["/generations/0/0/message/kwargs"]).unwrap_or_default();
            let finish = finish_of(outputs).or_else(|| finish_of(&message));
            tell("gen_ai.response.finish_reasons", finish.map(Value::from));
            tell("llm.token_count.prompt", counted("/input_tokens", "/prompt_tokens"));
            tell("llm.token_count.completion", counted("/output_tokens", "/completion_tokens"));
            if let Some(Value::Object(kinds)) = usage.get("input_token_details") {
                tell("llm.token_count.prompt_details.cache_read", usage::cached(kinds).map(Value::from));
                tell("llm.token_count.prompt_details.cache_write", usage::written(kinds).map(Value::from));
            }
        }
        "tool" => {
            // LangChain writes the arguments as a text of Python, and the result as a message.
            tell(
                "input.value",
                Some(inputs.clone()).filter(|_| only(inputs, "input").is_none_or(|one| !one.is_string())),
            );
            tell("output.value", only(outputs, "output").or_else(|| Some(outputs.clone())));
        }
        "retriever" => {
            tell("input.value", Some(inputs.clone()));
            tell("gen_ai.retrieval.documents", at(outputs, &["/documents", "/output"]));
        }
        _ => {
            tell("input.value", Some(inputs.clone()));
            tell("output.value", Some(outputs.clone()));
        }
    }
    told
}
