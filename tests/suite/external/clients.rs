//! Agents written with the clients of others, unchanged from their registries: recorded from the simulator, then replayed
//! with the simulator stopped, to the same traces and verdicts.
//!
//! `RAGCHECK_SDKS` names the folder that `tests/sdks/install FOLDER` has filled.

use super::super::project::Project;
use super::super::simulator::Simulator;
use super::events;
use std::path::Path;

/// An agent: its file, the API that its recording must show, and whether it offers the model a tool.
struct Client {
    file: &'static str,
    path: &'static str,
    tool: bool,
}

const fn with_tool(file: &'static str, path: &'static str) -> Client {
    Client { file, path, tool: true }
}

const fn without_tool(file: &'static str, path: &'static str) -> Client {
    Client { file, path, tool: false }
}

const CLIENTS: [Client; 17] = [
    with_tool("openai_chat.py", "/chat/completions"),
    with_tool("openai_chat_stream.py", "/chat/completions"),
    with_tool("openai_responses.py", "/responses"),
    with_tool("openai_agents.py", "/responses"),
    without_tool("openai_embeddings.py", "/embeddings"),
    with_tool("anthropic_messages.py", "/v1/messages"),
    with_tool("google_genai.py", "/models/gpt-4o-mini:generateContent"),
    with_tool("langgraph_react.py", "/chat/completions"),
    with_tool("llama_index_agent.py", "/chat/completions"),
    with_tool("pydantic_ai_agent.py", "/chat/completions"),
    with_tool("openai_chat.mjs", "/chat/completions"),
    with_tool("openai_responses.mjs", "/responses"),
    without_tool("openai_embeddings.mjs", "/embeddings"),
    with_tool("anthropic_messages.mjs", "/v1/messages"),
    with_tool("ai_sdk.mjs", "/responses"),
    with_tool("agent-go", "/chat/completions"),
    without_tool("agent.sh", "/chat/completions"),
];

const BEHAVIOUR: &str = "name: bicycles
seed: 3
pace: declared
tools: {knowledge_base_search: search_docs}
model: {latency: {constant: 5ms}}
search: {latency: {constant: 5ms}}
embeddings: {dimensions: 64, latency: {constant: 5ms}}
";

/// The command of an agent in the folder of clients.
fn command(folder: &Path, file: &str) -> String {
    let program = match file.rsplit_once('.') {
        Some(("llama_index_agent", _)) => "python-llama-index/bin/python ",
        Some((_, "py")) => "python/bin/python ",
        Some((_, "mjs")) => "node ",
        _ => "",
    };
    let folder = folder.display();
    if program.is_empty() { format!("{folder}/{file}") } else { format!("{folder}/{program}{folder}/{file}") }
}

fn scenario(folder: &Path, client: &Client) -> String {
    let provider = match client.path {
        "/v1/messages" => "anthropic",
        path if path.ends_with(":generateContent") => "google",
        _ => "openai",
    };
    let (roles, expected) = if client.tool {
        (
            "roles: {knowledge: search_docs}\ngates:\n  - {id: searched, metric: mandatory_call_rate(knowledge), target: '= 100%', kind: point}\n",
            "{calls: [{in_order: [search_docs]}], answer: {contains: [helmet]}}",
        )
    } else {
        ("", "{answer: {matches: ['.']}}")
    };
    format!(
        "scenario: {}\nflow: external\nmodel: {{provider: {provider}, name: gpt-4o-mini}}\n\
         target: {{command: '{}', env: {{MODEL: '{{{{model}}}}'}}}}\n{roles}\
         cases: [{{case: helmet, ask: What about the helmet?, expect: {expected}}}]\n",
        name(client),
        command(folder, client.file),
    )
}

fn name(client: &Client) -> String {
    client.file.replace(['.', '_'], "-")
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_clients_agents_of_every_sdk_replay_what_they_recorded_with_the_provider_stopped() {
    let folder = std::env::var_os("RAGCHECK_SDKS").expect("RAGCHECK_SDKS names the folder of `tests/sdks/install`");
    let project = Project::shipped();
    project.write("bicycles.yaml", BEHAVIOUR);
    project.write(
        "ragcheck.yaml",
        "scenarios: [sdks/*.yaml]\ncassettes: cassettes\nproviders:\n  \
         openai: {dialect: openai-chat, base_url: 'http://127.0.0.1:8091/model/v1'}\n  \
         anthropic: {dialect: anthropic-messages, base_url: 'http://127.0.0.1:8091/model'}\n  \
         google: {dialect: gemini, base_url: 'http://127.0.0.1:8091/model/v1beta'}\n",
    );
    for client in &CLIENTS {
        project.write(&format!("sdks/{}.yaml", name(client)), &scenario(Path::new(&folder), client));
    }
    let simulator = Simulator::start(&project, "bicycles.yaml");
    let all_pass = format!("{0} trials: {0} PASS", CLIENTS.len());
    let recorded = project.run(&["run", "--mode", "record", "--jobs", "2"]);
    assert!(recorded.stdout.contains(&all_pass), "{}{}", recorded.stdout, recorded.stderr);
    let (run, traces) = (project.latest("run.json"), project.traces());
    drop(simulator);
    let replayed = project.run(&["run", "--jobs", "2"]);
    assert!(replayed.stdout.contains(&all_pass), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(project.traces(), traces, "a replay gives the trace of the recording");
    assert_eq!(project.latest("run.json")["gates"], run["gates"]);
    assert_eq!(traces.len(), CLIENTS.len());
    for client in &CLIENTS {
        let lane = project.read(&format!("cassettes/{}/helmet/external.base.1.yaml", name(client)));
        assert!(lane.replace('"', "").contains(&format!("path: {}", client.path)), "{}: {lane}", client.file);
        assert!(lane.contains("recorded_from:") && lane.contains("\"simulator\""), "{}: {lane}", client.file);
        let of_it = |trace: &&serde_json::Value| trace["id"].as_str().is_some_and(|id| id.starts_with(&name(client)));
        let trace = traces.iter().find(of_it).unwrap_or_else(|| panic!("no trace of {}", client.file));
        assert_eq!(events(trace, "tool_called").len(), usize::from(client.tool), "{}: {trace}", client.file);
    }
}
