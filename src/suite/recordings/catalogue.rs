//! The tools of MCP servers, as recordings list them, and the recorded calls of these tools.
//!
//! A server lists its tools when an agent asks. When that list changes, cases that call a changed tool are named: by
//! `check`, where the newest list does not fit recorded calls, and after a recording, where its list differs from the
//! earlier one.

use super::starts::start_lanes;
use crate::cassette::{Cassette, Outcome};
use crate::plan::{Plan, PlannedTrial};
use crate::provider::mcp::{self, MCP};
use crate::scenario::Diagnostic;
use crate::trace::text::{plural, quote};
use crate::transport::HttpResponse;
use crate::trial::Opened;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A tool: the scenario's index, the service, and the tool's name.
type Tool = (usize, String, String);

/// The tools of a plan's MCP servers and their calls.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// Newest list of each server, by scenario and service.
    lists: BTreeMap<(usize, String), (Timestamp, BTreeMap<String, Value>)>,
    /// Cases that call a tool, with the arguments of each call.
    calls: BTreeMap<Tool, Vec<(String, Value)>>,
}

impl Catalogue {
    /// The recorded lists and calls of a plan. Broken recordings are left out: others report them.
    pub(crate) fn recorded(opened: &Opened, plan: &Plan) -> Self {
        let mut all = Self::default();
        for lane in start_lanes(plan, &opened.cassettes) {
            if let Ok(Some(cassette)) = lane.recording(&opened.loaded.root) {
                all.add(lane.scenario, None, &cassette);
            }
        }
        for trial in plan.trials.iter().filter(|trial| trial.is_external()) {
            if let Ok(cassette) = opened.trial(plan, trial).recording() {
                all.add(trial.scenario, Some(trial), &cassette);
            }
        }
        all
    }

    fn add(&mut self, scenario: usize, trial: Option<&PlannedTrial>, cassette: &Cassette) {
        if !cassette.exchanges.iter().any(|exchange| exchange.profile == MCP.name) {
            return;
        }
        for (exchange, request) in cassette.exchanges.iter().zip(cassette.requests()) {
            let Outcome::Response { status, headers, body, took, .. } = &exchange.outcome else { continue };
            if exchange.profile != MCP.name {
                continue;
            }
            if let Some((trial, (tool, arguments))) = trial.zip(mcp::called(&request.body)) {
                let case = trial.id.rsplit_once('/').map_or(trial.id.as_str(), |(case, _)| case).to_owned();
                let tool = (scenario, exchange.service.clone(), tool.to_owned());
                self.calls.entry(tool).or_default().push((case, arguments));
            }
            let (headers, body) = (headers.clone(), body.clone());
            let response = HttpResponse { status: *status, headers, body, took: *took, chunks: Vec::new() };
            let (tools, at) = (mcp::tools(&request.body, &response), cassette.header.recorded_at);
            if tools.is_empty() {
                continue;
            }
            let list = self.lists.entry((scenario, exchange.service.clone())).or_insert((at, BTreeMap::new()));
            if list.0 < at {
                *list = (at, BTreeMap::new());
            }
            // A long list has several pages.
            if list.0 == at {
                list.1.extend(tools);
            }
        }
    }

    /// What differs in the lists of servers since `before`, with the number of cases that call each tool then or now.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (key, (_, now)) in &self.lists {
            let Some((_, then)) = before.lists.get(key) else { continue };
            let names: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
            for name in names {
                let tool = (key.0, key.1.clone(), name.clone());
                let calls = [before, self].into_iter().filter_map(|all| all.calls.get(&tool)).flatten();
                let cases: BTreeSet<&str> = calls.map(|(case, _)| case.as_str()).collect();
                let used = match cases.len() {
                    0 => "no case uses it".to_owned(),
                    1 => "1 case uses it".to_owned(),
                    more => format!("{more} cases use it"),
                };
                let changes = match (then.get(name), now.get(name)) {
                    (Some(then), Some(now)) => changes(then, now),
                    (Some(_), None) => vec!["is not offered any more".to_owned()],
                    _ => vec!["is new".to_owned()],
                };
                let (name, service) = (quote(name, 80), &key.1);
                lines.extend(changes.into_iter().map(|change| format!("{name} of `{service}` {change}: {used}")));
            }
        }
        lines
    }

    /// Notes on recorded calls that the newest list of their server does not allow.
    pub(crate) fn misfits(&self, plan: &Plan) -> Vec<Diagnostic> {
        let mut notes = Vec::new();
        for ((scenario, service, tool), calls) in &self.calls {
            let Some((_, list)) = self.lists.get(&(*scenario, service.clone())) else { continue };
            let mut wrong: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
            for (case, arguments) in calls {
                let why = match list.get(tool) {
                    None => vec!["is not offered any more".to_owned()],
                    Some(listed) => {
                        let lacks = |name: &&str| arguments.get(name).is_none();
                        let lacking = required(listed).into_iter().filter(lacks);
                        lacking.map(|name| format!("now requires `{}`", quote(name, 80))).collect()
                    }
                };
                for why in why {
                    wrong.entry(why).or_default().insert(case);
                }
            }
            let file = plan.scenarios.get(*scenario).map_or("", |scenario| scenario.file.as_str());
            for (why, cases) in wrong {
                let (count, uses) = (plural(cases.len(), "case"), if cases.len() == 1 { "uses" } else { "use" });
                let message = format!("{} of `{service}` {why}: {count} {uses} it as before", quote(tool, 80));
                let first = cases.first().copied().unwrap_or_default();
                let help = format!("record them again, {first} for example: ragcheck run {file} --mode record");
                notes.push(Diagnostic::note("changed-catalogue", file, message).with_help(help));
            }
        }
        notes
    }
}

fn required(tool: &Value) -> Vec<&str> {
    let list = tool.pointer("/inputSchema/required").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn parameters(tool: &Value) -> Map<String, Value> {
    tool.pointer("/inputSchema/properties").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// What differs between two descriptions of a tool, the most important first.
fn changes(then: &Value, now: &Value) -> Vec<String> {
    let (was, is) = (required(then), required(now));
    let (had, has) = (parameters(then), parameters(now));
    let mut found = Vec::new();
    let shown = |name: &str| quote(name, 80);
    found.extend(is.iter().filter(|name| !was.contains(name)).map(|name| format!("now requires `{}`", shown(name))));
    found.extend(
        had.keys()
            .filter(|name| !has.contains_key(*name))
            .map(|name| format!("does not take `{}` any more", shown(name))),
    );
    let retyped = had.iter().filter_map(|(name, then)| Some((name, then, has.get(name)?)));
    for (name, then, now) in retyped.filter(|(_, then, now)| then["type"] != now["type"]) {
        found.push(format!("takes `{}` as {}, and took {}", shown(name), now["type"], then["type"]));
    }
    found.extend(
        was.iter()
            .filter(|name| !is.contains(name) && has.contains_key(**name))
            .map(|name| format!("does not require `{}` any more", shown(name))),
    );
    let new = has.keys().filter(|name| !had.contains_key(*name) && !is.contains(&name.as_str()));
    found.extend(new.map(|name| format!("takes `{}` as well", shown(name))));
    if found.is_empty() && then != now {
        found.push("has another description".to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_of_a_tool_is_told_by_its_parameters() {
        let tool = |properties: Value, required: Value| json!({"name": "refund", "inputSchema": {"type": "object", "properties": properties, "required": required}});
        let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
        let base = tool(json!({"order": text, "amount": number}), json!(["order"]));
        for (now, told) in [
            (
                tool(json!({"order": text, "amount": number, "reason": text}), json!(["order", "reason"])),
                vec!["now requires `reason`"],
            ),
            (tool(json!({"order": text}), json!(["order"])), vec!["does not take `amount` any more"]),
            (
                tool(json!({"order": number, "amount": number, "note": text}), json!([])),
                vec![
                    "takes `order` as \"number\", and took \"string\"",
                    "does not require `order` any more",
                    "takes `note` as well",
                ],
            ),
            (
                json!({"name": "refund", "description": "x", "inputSchema": base["inputSchema"]}),
                vec!["has another description"],
            ),
            (base.clone(), vec![]),
        ] {
            assert_eq!(changes(&base, &now), told);
        }
    }
}
