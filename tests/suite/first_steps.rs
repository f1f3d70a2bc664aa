//! The newcomer's first pages, `docs/first-steps/new-project.md` and `your-agent.md`, followed word for word: each `sh` block is run in order in one shell,
//! and each line of the `text` block behind it must have been printed. A command that says no `# exit code` must end with 0.
//!
//! Two things differ from what a reader does: the simulator listens on a free port, and the test waits until it does.

use super::ports;
use crate::program::program;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/first-steps/new-project.md");
const AGENT_PAGE: &str = include_str!("../../docs/first-steps/your-agent.md");

/// The blocks of a page, with the word behind their fence.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a fence has a line of its own")).collect()
}

/// Waits until something listens at a port of loopback: a minute at most.
const WAIT: &str =
    "for _ in $(seq 600); do if (: </dev/tcp/127.0.0.1/$PORT) 2>/dev/null; then break; fi; sleep 0.1; done";

/// One block as a script that stops at the first command whose exit code is not the one that the page says.
fn script(block: &str) -> String {
    let mut script = String::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (command, code) = line.split_once("# exit code ").unwrap_or((line, "0"));
        let command = command.trim();
        if let Some(started) = command.strip_suffix('&') {
            let _ = writeln!(script, "{started} --port $PORT & {WAIT}");
        } else {
            let _ = writeln!(
                script,
                "{command}; code=$?; test $code = {code} || {{ echo \"{command}: exit code $code\"; exit 99; }}"
            );
        }
    }
    script
}

#[test]
fn the_first_page_is_true_in_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let steps = follow(PAGE, folder.path(), "sed -i \"s/127.0.0.1:8091/127.0.0.1:$PORT/\" ragcheck.yaml\n");
    assert!(steps >= 8, "the page lost its steps");
    assert!(folder.path().join("bikes/reports/latest/index.html").exists());
}

#[test]
#[ignore = "starts an interpreter of Python 3, without any package"]
fn needs_a_bare_interpreter_the_page_of_an_agent_is_true_in_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/orders-agent/agent.py");
    fs::copy(agent, folder.path().join("agent.py")).expect("the agent");
    let git = Command::new("git").args(["init", "-q"]).current_dir(folder.path()).status().expect("git");
    assert!(git.success());
    assert_eq!(follow(AGENT_PAGE, folder.path(), ""), 3, "at most five commands");
    let workflow = fs::read_to_string(folder.path().join(".github/workflows/ragcheck.yml")).expect("a workflow");
    assert!(workflow.contains("setup-python") && workflow.contains("ragcheck run --report-dir"), "{workflow}");
}

/// Runs the commands of a page in a folder, `after_first` behind those of the first block, and checks what they print;
/// returns the number of blocks.
fn follow(page: &str, folder: &Path, after_first: &str) -> usize {
    // The program under the name that the page types.
    fs::create_dir(folder.join("bin")).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink(program(), folder.join("bin/ragcheck")).expect("a link");
    #[cfg(not(unix))]
    fs::copy(program(), folder.join("bin/ragcheck.exe")).expect("a copy");
    let port = ports::free();

    // Blocks are numbered, and what each printed goes to a file of its own.
    let mut whole = String::from("set -m\nexec 2>&1\n");
    let (mut steps, mut expected) = (0, Vec::new());
    for (kind, text) in blocks(page) {
        match kind {
            "sh" => {
                steps += 1;
                let _ = write!(whole, "exec >\"$OUT/step{steps}\"\n{}", script(text));
                if steps == 1 {
                    whole += after_first;
                }
            }
            "text" => expected.push((steps, text)),
            // Part of a file that the reader may write.
            "yaml" => {}
            other => panic!("a block of the page is `{other}`"),
        }
    }
    assert!(!expected.is_empty(), "the page lost what it prints");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("bash");
    let shell = shell.arg("-c").arg(&whole).current_dir(folder).stdin(Stdio::null());
    let shell = shell.env("PATH", format!("{}:{path}", folder.join("bin").display()));
    let shell =
        shell.env("OUT", folder.join("bin")).env("PORT", port.to_string()).env("NO_COLOR", "1").env_remove("COLUMNS");
    for (name, value) in [("NAME", "Test"), ("EMAIL", "test@example.org")] {
        shell.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        shell.env_remove(key);
    }
    let status = shell.status().expect("bash");
    let printed = |step: usize| fs::read_to_string(folder.join(format!("bin/step{step}"))).unwrap_or_default();
    let all: String = (1..=steps).map(printed).collect();
    assert!(status.success(), "{status}:\n{all}");
    for (step, text) in expected {
        let said = words(&printed(step));
        for line in text.lines() {
            assert!(said.contains(&words(line)), "step {step} did not print `{line}`:\n{}", printed(step));
        }
    }
    steps
}

/// A text with single blanks: where lines break depends on the width of the terminal.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
