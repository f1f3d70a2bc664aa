//! Agents as people write them, each with the verdict that it must get (`agents/README.md` of the corpus): recorded
//! from the provider beside them, then replayed with the provider stopped.
//!
//! `RAGCHECK_SDKS` names the folder that `tests/sdks/install FOLDER` has filled. The two-stage agent needs `python3` alone.

use crate::part;
use crate::ports::free;
use crate::program::program;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Imports of a framework take seconds.
const LONGEST: Duration = Duration::from_mins(1);

/// A process that is stopped with the test.
struct Server(Child);

impl Server {
    /// Starts one and waits until it listens.
    fn start(command: &mut Command, port: u16) -> Self {
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("an interpreter");
        let server = Self(child);
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < LONGEST, "nothing listens on {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where an agent sends its requests.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
    Proxy,
    /// A path below the proxy that is not served.
    Unserved,
    Provider,
}

/// What a run must end with.
enum Must {
    /// Recorded, replayed, and PASS both times; the recording holds these words.
    Pass(&'static str),
    /// ERROR of the recording, with these words, and nothing recorded.
    Error(&'static str),
    /// Recorded as PASS; ERROR, with these words, of a replay in which it asks the provider.
    Bypass(&'static str),
}

struct Row {
    module: &'static str,
    kind: &'static str,
    asks: Asks,
    expected: &'static str,
    must: Must,
}

const SERVED: &str = "which is not served; served: POST /model/v1/chat/completions";
const HELMET: &str = "helmet";

/// The table of the README. `swallowing_agent.py` is answered by now, so what the proxy refuses is a path of its own; and
/// the provider echoes no question in its Responses, so `sdk_agent.py` is expected to use what it found.
const ROWS: [Row; 15] = [
    row("sdk_agent", "responses", Asks::Proxy, "From the docs", Must::Pass("path: /responses")),
    row("sdk_agent", "agents", Asks::Proxy, "helmet is free", Must::Pass("path: /responses")),
    row("sdk_agent", "anthropic", Asks::Proxy, HELMET, Must::Pass("path: /v1/messages")),
    row("embedding_agent", "embed", Asks::Proxy, "helmet (vector)", Must::Pass("path: /embeddings")),
    row("embedding_agent", "agents", Asks::Proxy, HELMET, Must::Pass("path: /chat/completions")),
    row("embedding_agent", "embed", Asks::Unserved, HELMET, Must::Error(SERVED)),
    row("swallowing_agent", "", Asks::Unserved, HELMET, Must::Error(SERVED)),
    row("swallowing_agent", "", Asks::Proxy, "From the docs", Must::Pass("path: /responses")),
    row("refused_agent", "models", Asks::Proxy, HELMET, Must::Pass("path: /models")),
    row("refused_agent", "slash", Asks::Proxy, HELMET, Must::Pass("path: /chat/completions")),
    row("refused_agent", "origin", Asks::Proxy, HELMET, Must::Error("with an `Origin` header")),
    row("refused_agent", "host", Asks::Proxy, HELMET, Must::Error("the host name `llm-gateway:9321` are refused")),
    row("swallowing_agent", "", Asks::Provider, HELMET, Must::Error("the agent asked nothing here")),
    row("sdk_agent", "anthropic", Asks::Proxy, HELMET, Must::Bypass("1 recorded exchange was not asked for")),
    row("embedding_agent", "embed", Asks::Proxy, HELMET, Must::Bypass("2 recorded exchanges were not asked for")),
];

const fn row(module: &'static str, kind: &'static str, asks: Asks, expected: &'static str, must: Must) -> Row {
    Row { module, kind, asks, expected, must }
}

/// A project for one agent, and the ports of the three parties.
struct Stage {
    folder: TempDir,
    provider: u16,
    proxy: u16,
    agent: u16,
}

impl Stage {
    fn set(row: &Row) -> Self {
        let stage =
            Self { folder: tempfile::tempdir().expect("a folder"), provider: free(), proxy: free(), agent: free() };
        let Self { provider, proxy, agent, .. } = &stage;
        let model =
            if row.kind == "anthropic" { "{provider: a, name: claude-x}" } else { "{provider: p, name: fake-1}" };
        let expected = row.expected;
        stage.write(
            "ragcheck.yaml",
            &format!(
                "scenarios: [s.yaml]\ncassettes: cassettes\nproviders:\n  p: {{dialect: openai-chat, base_url: 'http://127.0.0.1:{provider}/v1'}}\n  \
                 a: {{dialect: anthropic-messages, base_url: 'http://127.0.0.1:{provider}'}}\n"
            ),
        );
        stage.write(
            "s.yaml",
            &format!(
                "scenario: s\nflow: external\nmodel: {model}\ntarget: {{http: 'http://127.0.0.1:{agent}/chat', answer: /answer}}\n\
                 proxy: 127.0.0.1:{proxy}\ncases:\n  - case: helmet\n    ask: What about the helmet?\n    \
                 expect: {{answer: {{contains: ['{expected}']}}}}\n"
            ),
        );
        stage
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).expect("written");
    }

    fn provider(&self, python: &Path) -> Server {
        let mut command = Command::new(python);
        Server::start(command.arg(part("agents/provider.py")).arg(self.provider.to_string()), self.provider)
    }

    fn agent(&self, python: &Path, row: &Row, asks: Asks) -> Server {
        let base = match asks {
            Asks::Proxy => format!("http://127.0.0.1:{}/model", self.proxy),
            Asks::Unserved => format!("http://127.0.0.1:{}/model/other", self.proxy),
            Asks::Provider => format!("http://127.0.0.1:{}", self.provider),
        };
        let mut command = Command::new(python);
        command
            .args(["-m", "uvicorn", &format!("{}:app", row.module), "--port", &self.agent.to_string()])
            .current_dir(part("agents"))
            .envs([("KIND", row.kind), ("OPENAI_API_KEY", "dummy"), ("ANTHROPIC_API_KEY", "dummy")])
            .envs([("OPENAI_BASE_URL", format!("{base}/v1")), ("ANTHROPIC_BASE_URL", base)])
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Server::start(&mut command, self.agent)
    }

    fn run(&self, mode: &str) -> (i32, String) {
        let mut command = Command::new(program());
        let agent = format!("http://127.0.0.1:{}", self.agent);
        command.args(["run", "s.yaml", "--mode", mode, "--agent", &agent]).current_dir(self.folder.path());
        said(&command.env("NO_COLOR", "1").output().expect("it runs"))
    }

    /// The text of all recordings.
    fn recorded(&self) -> String {
        let lane = self.folder.path().join("cassettes/s/helmet/external.base.1.yaml");
        std::fs::read_to_string(lane).unwrap_or_default()
    }
}

/// The exit code and both streams, with single spaces.
fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    (output.status.code().unwrap_or(-1), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What a row got wrong; empty if nothing.
fn mistakes(python: &Path, row: &Row) -> String {
    let stage = Stage::set(row);
    let provider = stage.provider(python);
    let agent = stage.agent(python, row, row.asks);
    let (code, told) = stage.run("record");
    let recorded = stage.recorded();
    if let Must::Error(words) = row.must {
        let right = code == 3 && told.contains(words) && told.contains("1 trial: 1 ERROR") && !told.contains("FAIL s");
        return if right && recorded.is_empty() { String::new() } else { format!("exit {code}: {told}{recorded}") };
    }
    if code != 0 || !told.contains("1 trial: 1 PASS") {
        return format!("recorded with exit {code}: {told}");
    }
    let (words, pass) = match row.must {
        Must::Pass(words) => {
            drop(provider);
            (words, true)
        }
        Must::Error(words) | Must::Bypass(words) => (words, false),
    };
    let agent = if pass {
        agent
    } else {
        {
            drop(agent);
            stage.agent(python, row, Asks::Provider)
        }
    };
    let (code, told) = stage.run("replay");
    drop(agent);
    let right = if pass {
        code == 0
            && told.contains("1 trial: 1 PASS")
            && told.contains("REPLAYED")
            && recorded.replace('"', "").contains(words)
    } else {
        code == 3 && told.contains("no request came to the proxy") && told.contains(words) && told.contains("1 ERROR")
    };
    if right { String::new() } else { format!("replayed with exit {code}: {told}\n{recorded}") }
}

#[test]
#[ignore = "needs the agents of the corpus, and the clients that `tests/sdks/install` installs: RAGCHECK_CORPUS, RAGCHECK_SDKS"]
fn needs_sdks_every_agent_gets_the_verdict_that_its_table_says() {
    let sdks = std::env::var_os("RAGCHECK_SDKS").expect("RAGCHECK_SDKS names the folder of `tests/sdks/install`");
    let python = Path::new(&sdks).join("python/bin/python");
    let wrong: Vec<String> = ROWS
        .iter()
        .map(|row| (row, mistakes(&python, row)))
        .filter(|(_, wrong)| !wrong.is_empty())
        .map(|(row, wrong)| format!("{} KIND={}: {wrong}", row.module, row.kind))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
#[ignore = "needs the agents of the corpus: RAGCHECK_CORPUS, and python3"]
fn a_two_stage_agent_of_the_standard_library_passes_by_its_prompt_and_its_reply() {
    let python = Path::new("python3");
    let text = |file: &str| std::fs::read_to_string(part(&format!("agents/{file}"))).expect(file);
    let folder = tempfile::tempdir().expect("a folder");
    let (provider, agent, proxy) = (free(), free(), free());
    // The ports of the agents are fixed; other runs on this machine may have them.
    let moved = |file: &str| {
        let text = text(file).replace("18391", &provider.to_string()).replace("18392", &agent.to_string());
        std::fs::write(folder.path().join(file), text.replace("18393", &proxy.to_string())).expect("written");
        let mut command = Command::new(python);
        command.arg(file).current_dir(folder.path());
        command
    };
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).expect("written");
    write(
        "ragcheck.yaml",
        &format!(
            "scenarios: [s.yaml]\nproviders:\n  p: {{dialect: openai-chat, base_url: 'http://127.0.0.1:{provider}/v1'}}\n"
        ),
    );
    write(
        "s.yaml",
        &format!(
            "scenario: s\nflow: external\nmodel: {{provider: p, name: gpt-4o-mini}}\n\
             target: {{http: 'http://127.0.0.1:{agent}/chat', answer: /answer, sources: /sources}}\n\
             reset: {{http: 'http://127.0.0.1:{agent}/reset'}}\nproxy: 127.0.0.1:{proxy}\n\
             roles: {{knowledge: retrieve_documents}}\n\
             gates:\n  - {{id: forced, metric: forced_retrieval_rate, target: '= 100%', kind: point}}\n  \
             - {{id: called, metric: mandatory_call_rate(knowledge), target: '= 100%', kind: point}}\n  \
             - {{id: given, metric: citation_provenance, target: '= 100%', kind: point}}\n\
             cases:\n  - case: press\n    ask: How often is the press serviced?\n    expect:\n      \
             answer: {{contains: [500 hours], cites: [manual]}}\n      \
             sources: {{internal: true, external: false, at_least: 1}}\n"
        ),
    );
    let model = Server::start(&mut moved("two_stage_provider.py"), provider);
    let _service = Server::start(&mut moved("two_stage_agent.py"), agent);
    let run = |mode: &str| {
        let mut command = Command::new(program());
        command.args(["run", "s.yaml", "--mode", mode, "--agent", &format!("http://127.0.0.1:{agent}")]);
        let (code, told) = said(&command.current_dir(folder.path()).env("NO_COLOR", "1").output().expect("it runs"));
        assert!(code == 0 && told.contains("1 trial: 1 PASS"), "{mode}: exit {code}: {told}");
        for gate in ["FAIL", "never executed", "sources `[]`"] {
            assert!(!told.contains(gate), "{mode}: {told}");
        }
        told
    };
    run("record");
    drop(model);
    assert!(run("replay").contains("REPLAYED"));
}
