//! Agents with official SDKs meet the simulator: a first green run without a key, by each API of a model.

use super::super::project::Outcome;
use std::path::Path;
use std::process::Command;

/// Each program of `sdks/`, and the request by which it asks.
const AGENTS: [(&str, &str); 4] = [
    ("anthropic_stream", "POST /v1/messages"),
    ("gemini_stream", "POST /models/gemini-2.5-flash:streamGenerateContent"),
    ("openai_agents", "POST /responses"),
    ("openai_continued", "POST /responses"),
];
/// Variables that would choose a real provider.
const KEYS: [&str; 3] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];

#[test]
#[ignore = "needs an interpreter with openai, openai-agents, anthropic and google-genai: RAGCHECK_AGENTS_PYTHON"]
fn needs_sdks_every_api_of_a_model_gives_a_first_green_run_without_a_key() {
    let python = std::env::var("RAGCHECK_AGENTS_PYTHON").expect("RAGCHECK_AGENTS_PYTHON names an interpreter");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/external/sdks");
    for (agent, asks) in AGENTS {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ragcheck"));
        let program = format!("'{python}' '{}'", programs.join(agent).with_extension("py").display());
        command.args(["init", "--agent", &program, "--question", "How fast are orders shipped?"]);
        command.current_dir(folder.path()).env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1");
        KEYS.iter().for_each(|key| _ = command.env_remove(key));
        let met = Outcome::of(&mut command);
        met.expect_code(0);
        let said = format!("{}{}", met.stdout, met.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in
            [&format!("the agent asks by {asks}"), "a simulated model answers", "tools: search_docs", "1 trial: 1 PASS"]
        {
            assert!(said.contains(part), "{agent}: {part}: {said}");
        }
        // It searched, understood what was found, and answered with it.
        let runs = std::fs::read_dir(folder.path().join("reports")).expect("reports").filter_map(Result::ok);
        let traces = runs.filter_map(|run| std::fs::read_to_string(run.path().join("traces.jsonl")).ok());
        let trace = traces.last().expect("a run");
        assert!(trace.contains("\"text\":\"Orders are shipped within 2 working days.\""), "{agent}: {trace}");
        assert!(trace.contains("\"tool\":\"search_docs\""), "{agent}: {trace}");
    }
}
