//! Writes the project of an agent that was met: project file, scenario, criteria and CI workflow.

use super::meet::{Met, usual};
use super::runtime;
use super::services::{Choice, Chosen, SIMULATOR};
use crate::cassette::Minted;
use crate::cli::workflow_file::{Below, placed};
use crate::cli::{schema, starter};
use crate::provider::chat::ToolDefinition;
use crate::scenario::external::USUAL_PROXY;
use crate::simulator::{Proposed, roles};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// Everything that the first contact found out.
#[derive(Debug, Clone)]
pub(super) struct Findings {
    /// Words of the command that starts the agent; empty for one that runs.
    pub(super) command: Vec<String>,
    /// The URL of a turn; `None` for a program that reads lines.
    pub(super) http: Option<String>,
    pub(super) met: Met,
    /// The URL that clears the agent's memory.
    pub(super) reset: Option<String>,
    pub(super) chosen: Chosen,
    pub(super) tools: Vec<ToolDefinition>,
    /// The tool whose arguments are the answer: the conversation ends with its call.
    pub(super) respond: Option<String>,
    pub(super) vars: Vec<Minted>,
    pub(super) question: String,
    /// Variables of the environment that hold URLs of other services.
    pub(super) elsewhere: Vec<(String, String)>,
}

/// What the recording of the question showed.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// Tools in the order of their calls.
    pub(super) calls: Vec<String>,
    /// Texts of the answer that will be in it again.
    pub(super) facts: Vec<String>,
    /// Whether they are words of this answer, which another model may not choose.
    pub(super) quoted: bool,
    pub(super) answer: String,
    /// Whether the answer says that it cannot answer.
    pub(super) refuses: bool,
}

/// A YAML scalar in quotes.
pub(super) fn quoted(text: &str) -> String {
    if text.contains(char::is_control) {
        Value::from(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// A pointer, in quotes where YAML needs them.
fn pointer(text: &str) -> String {
    let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '_' | '-'));
    if plain { text.to_owned() } else { quoted(text) }
}

/// One line of a text, for a comment.
fn line(text: &str, most: usize) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let short: String = plain.take(most).collect();
    if text.chars().count() > most { format!("{short}…") } else { short }
}

/// All files but the scenario, by path.
pub(super) fn files(findings: &Findings) -> Vec<(String, String)> {
    let mut files = vec![
        ("ragcheck.yaml".to_owned(), project(&findings.chosen)),
        ("scenarios/criteria.yaml".to_owned(), criteria(findings, None)),
        placed(Below::of(Path::new(".")).as_ref(), (".github/workflows/ragcheck.yml".to_owned(), workflow(findings))),
    ];
    files.extend(findings.chosen.simulator.as_ref().map(|(_, text)| ("simulator.yaml".to_owned(), text.clone())));
    files.extend(
        starter::files()
            .filter(|(path, _)| path.starts_with(".git") && !path.contains('/'))
            .map(|(path, text)| (path, text.to_owned())),
    );
    let schemas = ["scenario", "criteria", "project"].into_iter();
    files.extend(schemas.filter_map(|of| Some((format!("schema/{of}.json"), schema::text(of)?))));
    files
}

/// Paths of files that must not exist yet.
pub(super) const OURS: [&str; 4] =
    ["ragcheck.yaml", "scenarios/agent.yaml", "scenarios/criteria.yaml", "simulator.yaml"];

fn project(chosen: &Chosen) -> String {
    let mut text = "# yaml-language-server: $schema=schema/project.json\n\
                    # Where things are, and which services the agent asks. `ragcheck check` finds every mistake in it.\n\
                    scenarios: [scenarios/*.yaml]\ncriteria: scenarios/criteria.yaml\ncassettes: recordings\nreports: reports\nproviders:\n"
        .to_owned();
    if let Some((port, _)) = &chosen.simulator {
        let _ = writeln!(
            text,
            "  # A simulated model. To record with it: `ragcheck simulate simulator.yaml --port {port}`, then `ragcheck run --mode record`."
        );
    }
    let mut known: Vec<&Choice> = Vec::new();
    for choice in chosen.all() {
        if known.iter().any(|one| one.name == choice.name) {
            continue;
        }
        known.push(choice);
        let _ =
            writeln!(text, "  {}:\n    dialect: {}\n    base_url: {}", choice.name, choice.dialect, choice.base_url);
        if choice.name.starts_with(SIMULATOR) {
            text += "    quirks: {trial_header: true}\n";
        }
        if let Some(key) = &choice.key {
            let _ = writeln!(text, "    key: {key}");
        }
    }
    if chosen.simulator.is_some() {
        text += "  # A real one: set OPENAI_API_KEY, write `model: {provider: openai, …}` in the scenario, and record again.\n  \
                 # openai: {dialect: openai-chat, base_url: https://api.openai.com/v1, key: OPENAI_API_KEY}\n";
    }
    text
}

/// The roles of the tools: by what the conversation shows, else by their names and descriptions.
fn proposed(findings: &Findings) -> Vec<Proposed> {
    let mut found = roles(&findings.tools);
    if let Some(tool) = &findings.respond {
        found.retain(|one| one.tool != *tool);
        found.iter_mut().filter(|one| one.role == "respond").for_each(|one| one.sure = false);
        found.push(Proposed { role: "respond", tool: tool.clone(), sure: true });
    }
    found
}

fn sure(findings: &Findings) -> Vec<Proposed> {
    proposed(findings).into_iter().filter(|one| one.sure).collect()
}

/// The scenario; its expectations are those that the recording showed, if there is one.
pub(super) fn scenario(findings: &Findings, shown: Option<&Shown>) -> String {
    let Findings { met, chosen, .. } = findings;
    let mut text =
        "# yaml-language-server: $schema=../schema/scenario.json\nscenario: agent\nflow: external\n".to_owned();
    if let Some(model) = &chosen.model {
        let name = if model.model.is_empty() { "model" } else { &model.model };
        let _ = writeln!(
            text,
            "# Chosen because {}.\nmodel: {{provider: {}, name: {}}}",
            model.why,
            model.name,
            quoted(name)
        );
    }
    if let Some(search) = &chosen.search {
        let name = if search.model.is_empty() { "search" } else { &search.model };
        let _ = writeln!(text, "search: {{provider: {}, name: {}}}", search.name, quoted(name));
    }
    text += &services_block(findings);
    text += "target:\n";
    if !findings.command.is_empty() {
        let words: Vec<String> = findings.command.iter().map(|word| quoted(word)).collect();
        let plain = findings
            .command
            .iter()
            .all(|word| word.chars().all(|one| one.is_ascii_alphanumeric() || "-_./=:@,+{}".contains(one)));
        let command = if plain { quoted(&findings.command.join(" ")) } else { format!("[{}]", words.join(", ")) };
        let _ = writeln!(text, "  command: {command}");
    }
    if let Some(http) = &findings.http {
        let _ = writeln!(text, "  http: {}", quoted(http));
    }
    if met.send != usual(&met.shape.answer) {
        let _ = writeln!(text, "  send: {}", met.send);
    }
    let _ = writeln!(text, "  answer: {}", pointer(&met.shape.answer));
    match &met.shape.sources {
        Some(sources) => text += &format!("  sources: {}\n", pointer(sources)),
        None => {
            text += "  # The reply names no sources. If it can: `sources: /sources`, a pointer to a list of ids, addresses or objects.\n";
        }
    }
    match &findings.reset {
        Some(url) => text += &format!("reset: {{http: {}}}\n", quoted(url)),
        None if findings.http.is_none() => {
            text += "# If the agent remembers earlier conversations: `restart: trial` in `target`.\n";
        }
        None if findings.command.is_empty() => {
            text +=
                "# If the agent remembers earlier conversations: `reset: {http: …}`, a URL that clears its memory.\n";
        }
        None => {
            text += "# If the agent remembers earlier conversations: `reset: {http: …}`, a URL that clears its memory, or `restart: trial` in\n# `target`.\n";
        }
    }
    text += &roles_block(findings);
    if findings.vars.is_empty() {
        text += "# Values that the agent generates per run (dates, ids): none differed between two runs of the question. See `vars` in\n# docs/how-to/external-agents.md.\n";
    } else {
        text += "# Values that differed between two runs of the question, or hold today's date.\nvars:\n";
        for one in &findings.vars {
            let _ = writeln!(text, "  {one}");
        }
    }
    text + &case(findings, shown)
}

/// The further providers that the agent asks, and services that it may ask: those to which variables of the environment
/// lead.
fn services_block(findings: &Findings) -> String {
    let mut text = String::new();
    if !findings.chosen.others.is_empty() {
        text += "services:\n";
    }
    for (service, choice) in &findings.chosen.others {
        let name = if choice.model.is_empty() { String::new() } else { format!(", name: {}", quoted(&choice.model)) };
        let _ = writeln!(text, "  # Chosen because {}.\n  {service}: {{provider: {}{name}}}", choice.why, choice.name);
    }
    if !findings.command.is_empty() && !findings.elsewhere.is_empty() {
        text += "# These variables of the environment hold URLs. If the agent asks such a service, declare it: its requests are then\n\
                 # recorded, too.\n";
        if findings.chosen.others.is_empty() {
            text += "# services:\n";
        }
        for (variable, url) in &findings.elsewhere {
            let kind = if url.trim_end_matches('/').ends_with("/mcp") { "mcp" } else { "http" };
            let _ = writeln!(text, "#   {}: {{{kind}: {}, env: {variable}}}", service_name(variable), quoted(url));
        }
    }
    if findings.command.is_empty() && !findings.chosen.others.is_empty() {
        let names: Vec<String> =
            findings.chosen.others.keys().map(|service| format!("http://{USUAL_PROXY}/{service}")).collect();
        let _ =
            writeln!(text, "# Start the agent with these base URLs of its further providers: {}.", names.join(", "));
    }
    text
}

/// `CHROMA_URL` as the name of a service: `chroma`.
fn service_name(variable: &str) -> String {
    let name = ENDINGS.iter().find_map(|end| variable.strip_suffix(end)).unwrap_or(variable);
    name.trim_matches('_').to_ascii_lowercase().replace('_', "-")
}

/// What the names of variables with a base URL end in.
const ENDINGS: [&str; 5] = ["_BASE_URL", "_URL", "_HOST", "_ENDPOINT", "_URI"];
/// Beginnings of names that are about tools of the machine, and no service of an agent.
const OF_TOOLS: [&str; 12] = [
    "RAGCHECK_", "GITHUB_", "ACTIONS_", "RUNNER_", "CI_", "PIP_", "UV_", "NPM_", "CARGO_", "CONDA_", "BUILDKITE_",
    "JENKINS_",
];
/// Variables that are listed.
const MOST_LISTED: usize = 8;

/// Whether a part of a path may be a secret, as in the address of a webhook.
fn is_opaque(part: &str) -> bool {
    let holds = |kind: fn(&char) -> bool| part.chars().any(|letter| kind(&letter));
    let mixed = holds(char::is_ascii_digit) || (holds(char::is_ascii_uppercase) && holds(char::is_ascii_lowercase));
    part.len() >= 8 && mixed && holds(char::is_ascii_alphabetic)
}

/// Variables of the environment that hold the URL of an HTTP service; `known` are those that ragcheck sets itself.
pub(super) fn elsewhere(
    environment: impl Iterator<Item = (String, String)>,
    known: &[String],
) -> Vec<(String, String)> {
    let plain = |url: &str| {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        // What stands before an `@` or after a `?` may be a secret.
        rest.is_some_and(|rest| {
            !rest.is_empty()
                && !rest.contains(['@', '?', '#'])
                && !rest.contains(char::is_whitespace)
                && !rest.split('/').skip(1).any(is_opaque)
        })
    };
    let mut found: Vec<(String, String)> = environment
        .filter(|(name, url)| {
            ENDINGS.iter().any(|end| name.len() > end.len() && name.ends_with(end))
                && !OF_TOOLS.iter().any(|start| name.starts_with(start))
                && !known.contains(name)
                && name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
                && plain(url)
        })
        .collect();
    found.sort();
    found.truncate(MOST_LISTED);
    found
}

fn roles_block(findings: &Findings) -> String {
    let mut text = String::new();
    if findings.tools.is_empty() {
        return "# The first request offered no tools, so there are no `roles`.\n".to_owned();
    }
    let names: Vec<String> = findings.tools.iter().map(|tool| line(&tool.name, 60)).collect();
    let _ = writeln!(text, "# Tools: {}.", names.join(", "));
    let sure = sure(findings);
    let unsure: Vec<Proposed> = proposed(findings).into_iter().filter(|one| !one.sure).collect();
    if !sure.is_empty() {
        text += "roles:\n";
    }
    for one in &sure {
        let _ = writeln!(text, "  {}: {}", one.role, quoted(&one.tool));
    }
    if sure.is_empty() && unsure.is_empty() {
        text +=
            "# None has a name of a role: knowledge, external, index or respond. Expectations can use their names.\n";
    }
    for one in &unsure {
        let _ = writeln!(
            text,
            "{}# {}: {}    # perhaps: remove the `#` if that is its role",
            if sure.is_empty() { "" } else { "  " },
            one.role,
            quoted(&one.tool)
        );
    }
    text
}

fn case(findings: &Findings, shown: Option<&Shown>) -> String {
    let mut text = format!("cases:\n  - case: first-question\n    ask: {}\n    expect:\n", quoted(&findings.question));
    let Some(shown) = shown else { return text + "      answer: {matches: ['\\S']}\n" };
    if !shown.calls.is_empty() {
        let calls: Vec<String> = shown.calls.iter().map(|name| quoted(name)).collect();
        let _ =
            writeln!(text, "      # The calls of the recording.\n      calls: [{{in_order: [{}]}}]", calls.join(", "));
    }
    let _ = writeln!(text, "      # The recorded answer: {}", line(&shown.answer, 160));
    if shown.facts.is_empty() {
        text += "      # Write what must be in it: `contains: [\"14 days\"]`.\n      answer: {matches: ['\\S']}\n";
    } else {
        if shown.quoted {
            text += "      # Words of that answer, which a broken agent loses. Write what every answer must hold, such as \"14 days\":\n      \
                     # another model chooses other words.\n";
        }
        let facts: Vec<String> = shown.facts.iter().map(|fact| quoted(fact)).collect();
        let _ = writeln!(text, "      answer: {{contains: [{}]}}", facts.join(", "));
    }
    text
}

/// The criteria; that of searches only if the recording has one.
pub(super) fn criteria(findings: &Findings, shown: Option<&Shown>) -> String {
    let mut text = "# yaml-language-server: $schema=../schema/criteria.json\n\
                    # What must hold for a change to ship. `ragcheck explain` says how each is counted.\n\
                    about: What the agent must keep to.\nundecided: warn\nestimand: fixed_suite\ncriteria:\n  - id: ANSWERS\n    \
                    about: Every question gets an answer\n    metric: turn_success_rate\n    target: '= 100%'\n    kind: invariant\n"
        .to_owned();
    let called = |tool: &String| shown.is_some_and(|shown| shown.calls.contains(tool));
    if sure(findings).iter().any(|one| one.role == "knowledge" && called(&one.tool)) {
        text += "  # Watched, not required: make it `required: true` if every question has to search the knowledge.\n  - id: SEARCH\n    \
                 about: Every question searches the knowledge\n    metric: mandatory_call_rate(knowledge)\n    target: '= 100%'\n    \
                 kind: point\n    required: false\n";
        if findings.met.shape.sources.is_some() {
            text += "  - id: CITED\n    about: Answers cite only what the conversation found\n    metric: citation_validity\n    \
                     target: '= 100%'\n    kind: point\n    required: false\n";
        }
    }
    text
}

/// The workflow of a new project, with the runtime of the agent.
fn workflow(findings: &Findings) -> String {
    let step = runtime::steps(&findings.command, |file| Path::new(file).is_file());
    let whole =
        starter::files().find(|(path, _)| path.ends_with("workflows/ragcheck.yml")).map_or("", |(_, text)| text);
    let mark = "      # In a fresh folder";
    let text = whole.replacen(mark, &format!("{step}{mark}"), 1);
    match findings.http.as_deref().filter(|_| findings.command.is_empty()).and_then(origin) {
        Some(origin) => {
            text.replacen("          BASE: ", &format!("          RAGCHECK_AGENT: {origin}\n          BASE: "), 1)
        }
        None => text,
    }
}

/// `http://host:port` of a URL.
pub(super) fn origin(url: &str) -> Option<&str> {
    let host = url.find("://")? + 3;
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    (end > host).then(|| &url[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_hold_a_plain_url_are_listed_and_no_others() {
        let environment = [
            ("CHROMA_URL", "http://127.0.0.1:8000"),
            ("RERANKER_ENDPOINT", "https://rerank.example/v1"),
            ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
            ("PIP_INDEX_URL", "https://pypi.example/simple"),
            ("DATABASE_URL", "postgres://db.example/x"),
            ("SHOP_URL", "https://me:secret@shop.example"),
            ("HOOK_URL", "https://hooks.example/x?key=1"),
            ("SLACK_URL", "https://hooks.example/services/T0AB12CD3/aBcD1234eFgH"),
            ("_URL", "http://127.0.0.1"),
            ("QDRANT_HOST", "localhost"),
        ];
        let environment = environment.into_iter().map(|(name, url)| (name.to_owned(), url.to_owned()));
        let found = elsewhere(environment, &["OPENAI_BASE_URL".to_owned()]);
        let names: Vec<(&str, String)> = found.iter().map(|(name, _)| (name.as_str(), service_name(name))).collect();
        assert_eq!(names, [("CHROMA_URL", "chroma".to_owned()), ("RERANKER_ENDPOINT", "reranker".to_owned())]);
    }
}
