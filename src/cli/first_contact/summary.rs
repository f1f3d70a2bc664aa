//! What is printed of an agent that was met.

use super::SCENARIO;
use super::project::{Findings, origin};
use super::services::{Choice, SIMULATOR};
use crate::cli::exit::Exit;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// An agent that `init --agent` met.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct MetAgent {
    /// Address to which a question is posted; absent for an agent that reads lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Kind of its reply.
    pub reply: String,
    /// The services that it asks.
    pub providers: Vec<MetProvider>,
    /// Tools that it offers its model.
    pub tools: Vec<String>,
    /// Values that it generates anew in each conversation, with their places.
    pub generated: Vec<String>,
    /// Folder of the run that replayed the recorded question, or of the recording if that did not pass.
    pub run: String,
    /// Exit code of that run.
    pub exit_code: u8,
}

/// Who answers for one service of the agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct MetProvider {
    /// The provider.
    pub name: String,
    /// Why it was chosen.
    pub why: String,
}

impl MetAgent {
    pub(super) fn of(findings: &Findings, run: &Path, exit: Exit) -> Self {
        let provider = |choice: &Choice| MetProvider { name: choice.name.clone(), why: choice.why.clone() };
        Self {
            http: findings.http.clone(),
            reply: findings.met.shape.kind.to_string(),
            providers: findings.chosen.all().map(provider).collect(),
            tools: findings.tools.iter().map(|tool| tool.name.clone()).collect(),
            generated: findings.vars.iter().map(ToString::to_string).collect(),
            run: run.display().to_string(),
            exit_code: exit.code(),
        }
    }
}

/// What was found out, line by line.
pub(super) fn summary(findings: &Findings) -> String {
    let Findings { met, chosen, .. } = findings;
    let reached = match &findings.http {
        Some(url) if findings.command.is_empty() => format!("reached:   POST {url}"),
        Some(url) => {
            format!("reached:   POST {} of the process, which listens at PORT", &url[origin(url).map_or(0, str::len)..])
        }
        None => "reached:   one line of JSON on its standard input for each turn".to_owned(),
    };
    let sources = met.shape.sources.as_ref().map_or(String::new(), |at| format!(", the sources at {at}"));
    let at = if matches!(met.shape.kind, "JSON") {
        format!(", the answer at {}{sources}", met.shape.answer)
    } else {
        sources
    };
    let mut lines = vec![reached, format!("reply:     {}{at}", met.shape.kind)];
    lines.extend(chosen.all().map(|choice| format!("provider:  {} ({})", choice.name, choice.why)));
    let names: Vec<&str> = findings.tools.iter().map(|tool| tool.name.as_str()).collect();
    lines.push(format!("tools:     {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    lines.extend(findings.vars.iter().map(|one| format!("generated: {one}")));
    format!("{}\n", lines.join("\n"))
}

/// What to do next.
pub(super) fn next(findings: &Findings) -> String {
    let agent = findings.http.as_deref().filter(|_| findings.command.is_empty()).and_then(origin);
    let agent = agent.map_or_else(String::new, |origin| format!(" --agent {origin}"));
    let model = findings.chosen.model.as_ref().is_some_and(|choice| choice.name == SIMULATOR);
    let note = if model {
        "the answer is a simulated model's: set a key, name its provider in the scenario, and record again\n"
    } else {
        ""
    };
    format!(
        "{note}\nnext:\n  edit {SCENARIO}: your questions, and what must hold\n  ragcheck run --mode record{agent}{}\n  ragcheck run{agent}\n",
        simulator(findings)
    )
}

/// How to start the simulator, if the agent needs it.
pub(super) fn simulator(findings: &Findings) -> String {
    let of = |(port, _): &(u16, String)| {
        format!(" (first, in another terminal: `ragcheck simulate simulator.yaml --port {port}`)")
    };
    findings.chosen.simulator.as_ref().map(of).unwrap_or_default()
}
