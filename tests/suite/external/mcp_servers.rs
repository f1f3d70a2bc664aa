//! Public MCP servers of two languages, behind `ragcheck mcp-record` and the official clients of two languages: recorded,
//! then replayed with no server to start, to the same traces.
//!
//! `RAGCHECK_MCP` names the folder that `tests/mcp/install FOLDER` has filled.

use super::super::project::Project;
use super::events;
use serde_json::{Value, json};
use std::path::Path;

/// A call: the server, the tool, its arguments (`FOLDER` for a folder with one file), and words of the answer.
const CALLS: [(&str, &str, &str, &str); 6] = [
    ("everything", "echo", r#"{"message": "hello"}"#, "Echo: hello"),
    ("everything", "get-sum", r#"{"a": 2, "b": 3}"#, "5"),
    ("files", "read_text_file", r#"{"path": "FOLDER/note.txt"}"#, "the canopy lasts"),
    (
        "memory",
        "create_entities",
        r#"{"entities": [{"name": "Ada", "entityType": "person", "observations": ["gardens"]}]}"#,
        "Ada",
    ),
    (
        "thinking",
        "sequentialthinking",
        r#"{"thought": "first", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}"#,
        "thoughtNumber",
    ),
    (
        "time",
        "convert_time",
        r#"{"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "UTC"}"#,
        "time_difference",
    ),
];

/// The commands of the servers; those of `missing` do not exist.
fn servers(agent: &str, folder: &Path, files: &Path, missing: bool) -> Value {
    let at = |path: &str| folder.join(if missing { "missing" } else { "." }).join(path).display().to_string();
    let node = |name: &str, more: &[&str]| {
        let program = at(&format!("node_modules/@modelcontextprotocol/server-{name}/dist/index.js"));
        let words = [&[at("node"), program][..], &more.iter().map(ToString::to_string).collect::<Vec<_>>()].concat();
        json!(words)
    };
    let files = files.display().to_string();
    let mut memory = node("memory", &[]);
    let own = [json!("env"), json!(format!("MEMORY_FILE_PATH={files}/{agent}.json"))];
    memory.as_array_mut().expect("words").splice(0..0, own);
    json!({
        "everything": node("everything", &[]),
        "files": node("filesystem", &[&files]),
        "memory": memory,
        "thinking": node("sequential-thinking", &[]),
        "time": [at("python/bin/python"), "-m", "mcp_server_time", "--local-timezone", "UTC"],
    })
}

fn scenario(name: &str, command: &str, servers: &Value, version: &str, files: &Path) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let cases = CALLS.iter().enumerate().map(|(place, (server, tool, arguments, words))| {
        let ask = quoted(&format!("{server} {tool} {}", arguments.replace("FOLDER", &files.display().to_string())));
        let expect = if words.is_empty() { "{matches: ['.']}".to_owned() } else { format!("{{contains: [{}]}}", quoted(words)) };
        format!("  - {{case: {server}-{place}, ask: {ask}, expect: {{answer: {expect}, calls: [{{in_order: [{tool}]}}]}}}}\n")
    });
    format!(
        "scenario: {name}\nflow: external\nmodel: {{provider: openai, name: m}}\ntarget:\n  command: {}\n  env:\n    SERVERS: {}\n    \
         RAGCHECK_PROGRAM: {}\n    MCP_VERSION: {version}\ncases:\n{}",
        quoted(command),
        quoted(&servers.to_string()),
        quoted(crate::program::program()),
        cases.collect::<String>()
    )
}

#[test]
#[ignore = "needs the clients and servers that `tests/mcp/install` installs: RAGCHECK_MCP"]
fn needs_mcp_servers_public_servers_replay_what_they_recorded_with_no_server_to_start() {
    let folder = std::env::var_os("RAGCHECK_MCP").expect("RAGCHECK_MCP names the folder of `tests/mcp/install`");
    let folder = Path::new(&folder);
    let files = tempfile::tempdir().expect("a folder");
    std::fs::write(files.path().join("note.txt"), "the canopy lasts two years").expect("a file");
    let project = Project::shipped();
    project.write(
        "ragcheck.yaml",
        "scenarios: [mcp/*.yaml]\ncassettes: cassettes\nproviders:\n  \
         openai: {dialect: openai-chat, base_url: 'http://127.0.0.1:9/v1'}\n",
    );
    let shown = folder.display();
    let agents = [
        ("python-auto", format!("{shown}/python/bin/python {shown}/agent.py"), "auto"),
        ("python-legacy", format!("{shown}/python/bin/python {shown}/agent.py"), "legacy"),
        ("node", format!("{shown}/node {shown}/agent.mjs"), "auto"),
    ];
    let write = |missing: bool| {
        for (name, command, version) in &agents {
            let servers = servers(name, folder, files.path(), missing);
            project.write(&format!("mcp/{name}.yaml"), &scenario(name, command, &servers, version, files.path()));
        }
    };
    write(false);
    let recorded = project.run(&["run", "--mode", "record", "--jobs", "1"]);
    let count = agents.len() * CALLS.len();
    let all_pass = format!("{count} trials: {count} PASS");
    assert!(recorded.stdout.contains(&all_pass), "{}{}", recorded.stdout, recorded.stderr);
    let traces = project.traces();
    write(true);
    let replayed = project.run(&["run", "--jobs", "1"]);
    assert!(replayed.stdout.contains(&all_pass), "{}{}", replayed.stdout, replayed.stderr);
    assert!(!replayed.stderr.contains("not asked for"), "{}", replayed.stderr);
    assert_eq!(project.traces(), traces, "a replay gives the trace of the recording");
    for trace in &traces {
        assert_eq!(events(trace, "tool_called").len(), 1, "{trace}");
    }
}
