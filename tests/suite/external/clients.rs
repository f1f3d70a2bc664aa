//! Agents written with the clients of others, unchanged from their registries: met by `init --agent` without a key, and
//! recorded from the simulator, then replayed with the simulator stopped, to the same traces and verdicts.

use super::super::project::{Outcome, Project};
use super::super::simulator::Simulator;
use super::{events, sdks};
use std::fs;
use std::path::Path;
use std::process::Command;

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

const CLIENTS: [Client; 20] = [
    with_tool("openai_chat.py", "/chat/completions"),
    with_tool("openai_chat_stream.py", "/chat/completions"),
    with_tool("openai_responses.py", "/responses"),
    with_tool("openai_agents.py", "/responses"),
    with_tool("openai_continued.py", "/responses"),
    without_tool("openai_embeddings.py", "/embeddings"),
    with_tool("anthropic_messages.py", "/v1/messages"),
    with_tool("anthropic_stream.py", "/v1/messages"),
    with_tool("gemini_stream.py", "/models/gpt-4o-mini:streamGenerateContent"),
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

/// Those that `init --agent` meets: each API, in three languages, with and without a tool.
const MET: [&str; 7] = [
    "openai_chat.py", "openai_continued.py", "openai_agents.py", "anthropic_stream.py", "gemini_stream.py",
    "ai_sdk.mjs", "agent.sh",
];
/// Variables that would choose a real provider.
const KEYS: [&str; 4] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// The clients whose program is there: that in Go is built only where there is a compiler.
fn installed(folder: &Path) -> Vec<&'static Client> {
    CLIENTS.iter().filter(|client| client.file != "agent-go" || folder.join(client.file).exists()).collect()
}

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
        path if path.starts_with("/models/") => "google",
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
fn needs_sdks_agents_of_every_client_replay_what_they_recorded_with_the_provider_stopped() {
    let folder = sdks();
    let clients = installed(&folder);
    let project = Project::shipped();
    project.write("bicycles.yaml", BEHAVIOUR);
    project.write(
        "ragcheck.yaml",
        "scenarios: [sdks/*.yaml]\ncassettes: cassettes\nproviders:\n  \
         openai: {dialect: openai-chat, base_url: 'http://127.0.0.1:8091/model/v1'}\n  \
         anthropic: {dialect: anthropic-messages, base_url: 'http://127.0.0.1:8091/model'}\n  \
         google: {dialect: gemini, base_url: 'http://127.0.0.1:8091/model/v1beta'}\n",
    );
    for client in &clients {
        project.write(&format!("sdks/{}.yaml", name(client)), &scenario(&folder, client));
    }
    let simulator = Simulator::start(&project, "bicycles.yaml");
    let all_pass = format!("{0} trials: {0} PASS", clients.len());
    let recorded = project.run(&["run", "--mode", "record", "--jobs", "2"]);
    assert!(recorded.stdout.contains(&all_pass), "{}{}", recorded.stdout, recorded.stderr);
    let (run, traces) = (project.latest("run.json"), project.traces());
    drop(simulator);
    let replayed = project.run(&["run", "--jobs", "2"]);
    assert!(replayed.stdout.contains(&all_pass), "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(project.traces(), traces, "a replay gives the trace of the recording");
    assert_eq!(project.latest("run.json")["gates"], run["gates"]);
    assert_eq!(traces.len(), clients.len());
    for client in &clients {
        let lane = project.read(&format!("cassettes/{}/helmet/external.base.1.yaml", name(client)));
        assert!(lane.replace('"', "").contains(&format!("path: {}", client.path)), "{}: {lane}", client.file);
        assert!(lane.contains("recorded_from:") && lane.contains("\"simulator\""), "{}: {lane}", client.file);
        let trace = traces.iter().find(|trace| trace["scenario"] == name(client).as_str());
        let trace = trace.unwrap_or_else(|| panic!("no trace of {}", client.file));
        assert_eq!(events(trace, "tool_called").len(), usize::from(client.tool), "{}: {trace}", client.file);
    }
}

/// Runs ragcheck without a key of a provider.
fn keyless(folder: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(crate::program::program());
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    for key in KEYS {
        command.env_remove(key);
    }
    Outcome::of(&mut command)
}

#[test]
#[ignore = "needs the clients that `tests/sdks/install` installs: RAGCHECK_SDKS"]
fn needs_sdks_an_agent_met_without_a_key_is_green_unedited_and_red_once_it_is_broken() {
    let sdks = sdks();
    for file in MET {
        let client = CLIENTS.iter().find(|client| client.file == file).expect(file);
        let folder = tempfile::tempdir().expect("a folder");
        for shared in ["desk.py", "desk.mjs", file] {
            fs::copy(sdks.join(shared), folder.path().join(shared)).expect(shared);
        }
        std::os::unix::fs::symlink(sdks.join("node_modules"), folder.path().join("node_modules")).expect("a link");
        let agent = command(&sdks, file).replace(&format!("{}/{file}", sdks.display()), file);
        let agent = if file == "agent.sh" { format!("sh {agent}") } else { agent };
        let met = keyless(folder.path(), &["init", "--agent", &agent, "--question", "What about the helmet?"]);
        met.expect_code(0);
        let said = format!("{}{}", met.stdout, met.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        let path = client.path.trim_start_matches('/').split('/').next_back().unwrap_or_default();
        for part in [path, "a simulated model answers", "1 trial: 1 PASS", "REPLAYED", "asserted: "] {
            assert!(said.contains(part), "{file}: {part}: {said}");
        }
        assert_eq!(said.contains("tools: search_docs"), client.tool, "{file}: {said}");
        keyless(folder.path(), &["run"]).expect_code(0);

        // It still asks its model, and answers something else.
        let (program, whole, broken) = match file.rsplit_once('.') {
            Some((_, "py")) => (
                "desk.py",
                "answer(json.loads(line)[\"message\"])",
                "answer(json.loads(line)[\"message\"]) and \"Sorry.\"",
            ),
            Some((_, "mjs")) => {
                let whole = "answer: await answer(JSON.parse(line).message)";
                ("desk.mjs", whole, "answer: (await answer(JSON.parse(line).message)) && \"Sorry.\"")
            }
            _ => (file, ".choices[0].message.content", "\"Sorry.\""),
        };
        let text = fs::read_to_string(folder.path().join(program)).expect(program);
        assert!(text.contains(whole), "{file}");
        fs::write(folder.path().join(program), text.replace(whole, broken)).expect(program);
        let red = keyless(folder.path(), &["run"]);
        red.expect_code(1);
        assert!(red.stdout.contains("1 trial: 1 FAIL"), "{file}: {}{}", red.stdout, red.stderr);
    }
}
