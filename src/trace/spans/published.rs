//! The attributes that ragcheck publishes for what no convention names; `docs/how-to/spans.md` has them as a table.
//!
//! An entry of the trajectory log is an event of a span, named `ragcheck.` and the kind of the entry, with its members
//! as attributes: `ragcheck.reflection` with `ragcheck.step`, `ragcheck.text`, …

use super::{Attributes, Span, parsed};
use crate::trace::Logged;
use serde_json::{Map, Value};

const PREFIX: &str = "ragcheck.";
/// A whole entry of the trajectory log as JSON.
const LOGGED: &str = "ragcheck.logged";
/// How a call ended, as far as the agent knows.
pub(super) const OUTCOME: &str = "ragcheck.outcome";
pub(super) const WITHOUT_LEARNED: &str = "ragcheck.without_learned";
pub(super) const LEARNED: &str = "ragcheck.learned";
pub(super) const TASK: &str = "ragcheck.task_id";
pub(crate) const REWARD: &str = "ragcheck.reward";

/// An entry of the trajectory log cannot be read: its name, and why.
#[derive(Debug, thiserror::Error)]
#[error("an entry `{0}` cannot be read: {1}")]
pub(super) struct EntryError(String, serde_json::Error);

/// Attributes with the spans that carry them and their values.
const ATTRIBUTES: [[&str; 3]; 5] = [
    [
        OUTCOME,
        "run of a tool, agent",
        "`ok`, `failed`, `refused` (bad arguments) or `out_of_order`: a refused call did not run. All runs have it, or none counts",
    ],
    [
        WITHOUT_LEARNED,
        "search",
        "ids that the same search finds without learned keywords, a list. All searches have it, or none counts",
    ],
    [
        LEARNED,
        "search",
        "learned entries among the documents, by id: `{\"ID\": {\"result\": \"…\", \"keywords\": [\"…\"], \"urls\": [\"…\"]}}` as JSON, each member optional",
    ],
    [TASK, "any span of an imported trace", "the case"],
    [REWARD, "any span of an imported trace", "the grade: 0 to 1, `true` or `false`"],
];

/// Rows of the published table: the attribute or the name of an event, where it is, and its value or attributes.
#[cfg_attr(front_door_only, expect(dead_code, reason = "tests use it"))]
pub fn published() -> Vec<[String; 3]> {
    let attributes = ATTRIBUTES.map(|[name, place, value]| [format!("`{name}`"), place.to_owned(), value.to_owned()]);
    let schema = serde_json::to_value(schemars::schema_for!(Logged)).unwrap_or_default();
    let kinds = schema["oneOf"].as_array().into_iter().flatten().flat_map(|kind| {
        let about = |of: &Value| of["description"].as_str().unwrap_or_default().replace(['\n', '|'], " ");
        let row =
            |name: &str, members: String| [format!("`{PREFIX}{name}`"), "event".to_owned(), about(kind) + &members];
        let with_members = kind["properties"].as_object().into_iter().flatten().map(move |(name, entry)| {
            let required: Vec<&str> =
                entry["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let members = entry["properties"].as_object().into_iter().flatten().map(|(member, _)| {
                let optional = if required.contains(&member.as_str()) { "" } else { "?" };
                format!("`{PREFIX}{member}`{optional}")
            });
            row(name, format!(" {}", members.collect::<Vec<_>>().join(", ")))
        });
        let alone = [&kind["const"]].into_iter().chain(kind["enum"].as_array().into_iter().flatten());
        let alone = alone.filter_map(Value::as_str).map(|name| row(name, String::new()));
        with_members.chain(alone).collect::<Vec<_>>()
    });
    attributes.into_iter().chain(kinds).collect()
}

/// Entries of the trajectory log in a span and in its events, each with its time; or why one cannot be read.
pub(super) fn logged(span: &Span) -> Vec<(u64, Result<Logged, EntryError>)> {
    let whole = |entry: &Value| serde_json::from_value(parsed(entry)).map_err(|why| EntryError(LOGGED.to_owned(), why));
    let own = span.attributes.get(LOGGED).map(|entry| (span.start_ns, whole(entry)));
    let events = span.events.iter().filter_map(|(at, name, attributes)| {
        let at = if *at == 0 { span.start_ns } else { *at };
        let entry = match attributes.get(LOGGED) {
            Some(entry) => whole(entry),
            None => of_event(name.strip_prefix(PREFIX)?, attributes).map_err(|why| EntryError(name.clone(), why)),
        };
        Some((at, entry))
    });
    events.chain(own).collect()
}

fn of_event(kind: &str, attributes: &Attributes) -> serde_json::Result<Logged> {
    let member = |(name, value): (&String, &Value)| {
        let name = name.strip_prefix(PREFIX)?;
        Some((name.to_owned(), if name == "context" { parsed(value) } else { value.clone() }))
    };
    let members: Map<String, Value> = attributes.iter().filter_map(member).collect();
    serde_json::from_value(if members.is_empty() {
        Value::String(kind.to_owned())
    } else {
        Value::Object(Map::from_iter([(kind.to_owned(), Value::Object(members))]))
    })
}
