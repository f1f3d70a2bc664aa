//! `ragcheck mcp-server`: serves check, run, show, compare and record to a coding agent, by its standard input and output.
//!
//! Each call starts this program again with the words of the subcommand, so a call sees the project as it is, ends with
//! an exit code, and can be cancelled. What a person granted the server, its calls have; an agent can grant nothing:
//! paths in arguments stay in the project, and recordings share what `--max-cost` allows.

mod tools;

use super::arguments::McpServer;
use super::exit::Exit;
use super::mcp_record::{NO_JSON, cancel, error, lines_of_stdin, messages_in};
use super::output::{self, Problem};
use super::serve::started;
use crate::platform::files;
use crate::platform::lock::lock;
use crate::provider::mcp::{Message, message, method};
use crate::scenario::{self, Project};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::runtime::Builder;
use tokio::task::{AbortHandle, JoinSet};
use tools::{Call, Tool};

/// Versions of the protocol that are spoken, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Code of an unknown method.
const NO_METHOD: i32 = -32601;
/// Code of wrong parameters.
const WRONG_PARAMETERS: i32 = -32602;
/// Bytes of an error that quotes an argument.
const LONGEST_ERROR: usize = 1000;
/// Longest output of a call, in bytes of each stream: what is read has to fit into a conversation.
const LONGEST: usize = 48 << 10;

/// Why a call was not carried out.
#[derive(Debug, thiserror::Error)]
enum CallError {
    /// Nobody permitted recordings.
    #[error(
        "recording asks models and costs money, and this server was started without --max-cost: ask a person to start it with \
         `ragcheck mcp-server --max-cost USD`, or to record with `ragcheck run --mode record`"
    )]
    NotPermitted,
    /// The money is spent.
    #[error("what --max-cost of `ragcheck mcp-server` allows is spent: a person has to start it again")]
    Spent,
    /// What the limit is counted by was changed.
    #[error(
        "prices or providers of the project are not those that this server read when it was started, and --max-cost counts by \
         them: a person has to start it again"
    )]
    OtherPrices,
    /// The program cannot be started again.
    #[error("{} cannot be started: {why}", program.display())]
    NotStarted { program: PathBuf, why: std::io::Error },
}

/// Digest of what the cost of a recording is counted by.
pub(super) fn charged_by(project: &Project) -> String {
    let both = serde_json::to_vec(&(&project.prices, &project.providers)).unwrap_or_default();
    hex::encode(Sha256::digest(both))
}

/// That of the project in a folder; `None` if its file has mistakes.
fn charged_in(root: &Path) -> Option<String> {
    Some(charged_by(&scenario::load_project(root, &crate::catalogues()).ok()?))
}

/// What the server holds.
struct Server {
    /// Options of the command line that every call gets.
    granted: Vec<OsString>,
    program: PathBuf,
    /// What recordings may still spend, in US dollars; `None` if the server may not record.
    left: Option<Mutex<f64>>,
    root: PathBuf,
    /// Digest of prices and providers at the start: an agent that edits the project changes no limit.
    charged: Option<String>,
    /// Recordings come one after another: they share what is left.
    recording: tokio::sync::Mutex<()>,
    /// Where a recording says what it spent.
    spent: PathBuf,
    /// Calls in flight, by their ids as JSON.
    calls: Mutex<BTreeMap<String, AbortHandle>>,
    tasks: Mutex<JoinSet<()>>,
}

/// Serves an agent until it closes its output, and answers the calls under way before it ends.
pub(super) fn run(given: &McpServer, granted: Vec<OsString>) -> Result<Exit, Problem> {
    let program = std::env::current_exe().map_err(|why| format!("this program cannot be found: {why}"))?;
    let root = scenario::find_root(&super::select::current_folder()?);
    let server = Arc::new(Server {
        spent: root.join(format!(".ragcheck/spent-{}", std::process::id())),
        charged: charged_in(&root),
        root,
        granted,
        program,
        left: given.max_cost.map(Mutex::new),
        recording: tokio::sync::Mutex::default(),
        calls: Mutex::default(),
        tasks: Mutex::default(),
    });
    started(Builder::new_multi_thread().worker_threads(2))?.block_on(async {
        let mut input = lines_of_stdin();
        while let Some(line) = input.recv().await {
            match serde_json::from_str(&line) {
                Ok(heard) => messages_in(heard).into_iter().for_each(|one| server.hear(one)),
                Err(why) => say(&error(&Value::Null, NO_JSON, &format!("a line is no JSON: {why}"))),
            }
        }
        let mut tasks = std::mem::take(&mut *lock(&server.tasks));
        while tasks.join_next().await.is_some() {}
    });
    Ok(Exit::Passed)
}

fn say(message: &Value) {
    output::json(&format!("{message}\n"));
}

impl Server {
    /// Takes one message of the agent.
    fn hear(self: &Arc<Self>, heard: Value) {
        match message(&heard) {
            Message::Request if method(&heard) == Some("tools/call") => {
                let (server, key) = (Arc::clone(self), heard["id"].to_string());
                // The task takes itself out, for which it needs what is held here.
                let mut calls = lock(&self.calls);
                let mut tasks = lock(&self.tasks);
                while tasks.try_join_next().is_some() {}
                let task = tasks.spawn(async move {
                    let answer = server.call(&heard).await;
                    lock(&server.calls).remove(&heard["id"].to_string());
                    say(&answer);
                });
                calls.insert(key, task);
            }
            Message::Request => say(&self.answer(&heard)),
            Message::Notification if method(&heard) == Some("notifications/cancelled") => {
                cancel(&self.calls, &heard);
            }
            Message::Notification | Message::Response => {}
            Message::Invalid => say(&error(&Value::Null, -32600, "not a JSON-RPC message")),
        }
    }

    /// The answer to a request that needs no process.
    fn answer(&self, asked: &Value) -> Value {
        let result = match method(asked).unwrap_or_default() {
            "initialize" => {
                let wanted = asked.pointer("/params/protocolVersion").and_then(Value::as_str);
                let version = VERSIONS.iter().find(|known| Some(**known) == wanted).unwrap_or(&VERSIONS[0]);
                json!({
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "ragcheck", "version": env!("CARGO_PKG_VERSION")},
                    "instructions": tools::INSTRUCTIONS,
                })
            }
            "ping" => json!({}),
            "tools/list" => json!({"tools": tools::list(self.left.is_some())}),
            other => {
                let why = format!("no method is called `{other}`");
                return error(&asked["id"], NO_METHOD, &fitting(&why, LONGEST_ERROR));
            }
        };
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    }

    /// The answer to a call of a tool.
    async fn call(&self, asked: &Value) -> Value {
        let none = Value::Object(Map::new());
        let arguments = asked.pointer("/params/arguments").filter(|given| !given.is_null()).unwrap_or(&none);
        let name = asked.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        let call = match tools::read(name, arguments) {
            Ok(call) => call,
            Err(why) => return error(&asked["id"], WRONG_PARAMETERS, &fitting(&why.to_string(), LONGEST_ERROR)),
        };
        let result = match self.carry_out(call).await {
            Ok(result) => result,
            Err(why) => json!({"content": [{"type": "text", "text": why.to_string()}], "isError": true}),
        };
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    }

    async fn carry_out(&self, call: Call) -> Result<Value, CallError> {
        if call.tool == Tool::Record {
            let Some(left) = &self.left else { return Err(CallError::NotPermitted) };
            let _alone = self.recording.lock().await;
            return self.record(call, left).await;
        }
        Ok(shown(call.tool, &self.start(&call.words).await?, None))
    }

    /// Records with what is left, or less if the call says so.
    async fn record(&self, call: Call, left: &Mutex<f64>) -> Result<Value, CallError> {
        let before = *lock(left);
        let most = call.max_cost.unwrap_or(before).min(before);
        if most <= 0.0 {
            return Err(CallError::Spent);
        }
        // A recording names the mistakes of a project that has some.
        if charged_in(&self.root).is_some_and(|now| self.charged.as_ref() != Some(&now)) {
            return Err(CallError::OtherPrices);
        }
        let mut words = vec![OsString::from("run"), "--mode=record".into(), format!("--max-cost={most}").into()];
        let mut spent_file = OsString::from("--spent-file=");
        spent_file.push(&self.spent);
        words.push(spent_file);
        // The project may be edited before the subcommand reads it.
        words.extend(self.charged.as_ref().map(|digest| format!("--charged-by={digest}").into()));
        words.extend(call.words.into_iter().skip(1));
        // All of it, if the call is cancelled or the process dies.
        *lock(left) = before - most;
        let ended = self.start(&words).await?;
        let told = files::read_to_string(&self.spent).ok().and_then(|text| text.trim().parse::<f64>().ok());
        let _ = files::remove_file(&self.spent);
        // Without a figure, a usage error came before the first request.
        let spent = told.unwrap_or(if ended.code == Some(Exit::Usage.code()) { 0.0 } else { most });
        *lock(left) = (before - spent).max(0.0);
        Ok(shown(Tool::Record, &ended, Some((spent, *lock(left)))))
    }

    /// Starts this program with these words, and waits for it.
    async fn start(&self, words: &[OsString]) -> Result<Ended, CallError> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.granted).args(words).kill_on_drop(true).env("NO_COLOR", "1").env("COLUMNS", "120");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended =
            command.output().await.map_err(|why| CallError::NotStarted { program: self.program.clone(), why })?;
        Ok(Ended {
            code: ended.status.code().and_then(|code| code.try_into().ok()),
            output: text(&ended.stdout),
            notes: text(&ended.stderr),
        })
    }
}

/// How a started subcommand ended.
struct Ended {
    /// Exit code; `None` if a signal ended it.
    code: Option<u8>,
    output: String,
    notes: String,
}

/// Printed text that fits, with the middle left out if it is too long.
fn text(bytes: &[u8]) -> String {
    fitting(&String::from_utf8_lossy(bytes), LONGEST)
}

/// A text of about `most` bytes, with the middle left out if it is longer.
fn fitting(whole: &str, most: usize) -> String {
    if whole.len() <= most {
        return whole.to_owned();
    }
    let (head, tail) = (whole.floor_char_boundary(most / 2), whole.ceil_char_boundary(whole.len() - most / 2));
    format!("{}\n… {} bytes left out: select less …\n{}", &whole[..head], tail - head, &whole[tail..])
}

/// The result of a call: what was printed, and the exit code with its meaning.
fn shown(tool: Tool, ended: &Ended, money: Option<(f64, f64)>) -> Value {
    let exit = ended.code.map(Exit::of_code);
    let meaning = match (tool, exit) {
        (Tool::Check, Some(Exit::Passed)) => "no mistake was found; nothing was run, and no gate was evaluated",
        (Tool::Show | Tool::Compare, Some(Exit::Passed)) => "done; no gate was evaluated",
        (_, exit) => exit.map_or("a signal ended it", Exit::meaning),
    };
    let mut structured =
        json!({"exit_code": ended.code, "meaning": meaning, "output": ended.output, "notes": ended.notes});
    let mut said = [ended.output.as_str(), ended.notes.as_str()].map(str::trim_end).join("\n\n").trim().to_owned();
    if !said.is_empty() {
        said.push_str("\n\n");
    }
    match ended.code {
        Some(code) => said.push_str(&format!("exit code {code}: {meaning}")),
        None => said.push_str(meaning),
    }
    if let Some((spent, left)) = money {
        said.push_str(&format!("\nspent ${spent:.4}; ${left:.4} left for recordings of this server"));
        structured["spent_usd"] = json!(spent);
        structured["left_usd"] = json!(left);
    }
    // A failed gate is a result; a mistake in the call is an error.
    let is_error = matches!(exit, None | Some(Exit::Usage | Exit::Unwritten));
    json!({"content": [{"type": "text", "text": said}], "structuredContent": structured, "isError": is_error})
}
