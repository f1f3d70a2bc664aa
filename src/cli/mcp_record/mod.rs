//! `ragcheck mcp-record`: stands between an agent and an MCP server that talks by its standard input and output.
//!
//! `client` reads the agent's messages and sends each request to the proxy of the run, which replays it, or asks back at
//! an address of ours; `server` answers there, starts the server with the first request, and hands it the messages. So a
//! replay never starts it.
//!
//! The proxy is found by `RAGCHECK_PROXY`: in the environment, or in that of an ancestor, because clients pass servers
//! few variables.

mod ancestors;
mod client;
mod server;

pub(super) use client::{NO_JSON, cancel, error, lines_of_stdin, messages_in};

use super::arguments::McpRecord;
use super::exit::Exit;
use super::output::Problem;
use super::serve::started;
use crate::platform::secrets::looks_secret;
use crate::trial::{MCP_MOUNT, is_server_name};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use tokio::runtime::Builder;

/// Variable that holds the address of a run's proxy.
const PROXY: &str = "RAGCHECK_PROXY";
/// Programs that start a server that one of their arguments names.
const LAUNCHERS: [&str; 15] = [
    "npx", "bunx", "pnpx", "npm", "node", "bun", "deno", "uvx", "uv", "pipx", "python", "python3", "docker", "tsx",
    "env",
];
/// Words of launchers that name no server.
const VERBS: [&str; 5] = ["run", "exec", "tool", "x", "dlx"];

/// Why a message has no answer.
#[derive(Debug, Clone, thiserror::Error)]
enum ServerError {
    /// Nothing can listen.
    #[error("no port of loopback can be used: {0}")]
    Port(String),
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Http(String),
    /// The server cannot be started.
    #[error("the MCP server `{command}` cannot be started: {why}")]
    NotStarted { command: String, why: String },
    /// The server ended.
    #[error("the MCP server `{0}` ended")]
    Ended(String),
    /// The proxy of the run is not there.
    #[error("the proxy of the run does not answer: {0}")]
    Proxy(String),
    /// The proxy answers with something else than messages.
    #[error("the proxy of the run answered with HTTP {0} and no JSON-RPC message")]
    Status(u16),
    /// The agent did not answer the server.
    #[error("the agent left a question of the server open")]
    Unanswered,
}

/// Records or replays a server until the agent closes its input.
///
/// # Errors
/// Outside of a run, or if the server has no name; then nothing is started.
pub(super) fn run(given: &McpRecord) -> Result<Exit, Problem> {
    let own = std::env::var(PROXY).ok().filter(|address| !address.trim().is_empty());
    let proxy = own.or_else(ancestors::proxy).ok_or_else(|| {
        Problem::Words(format!(
            "mcp-record: no run of ragcheck started this agent: neither the environment nor that of a parent process has {PROXY}, so \
             nothing was started. Outside of runs, start the server itself; for an agent that runs elsewhere, set {PROXY} to the \
             address in the scenario's `proxy` (http://127.0.0.1:8101) in the `env` of this server"
        ))
    })?;
    let name = given.name.clone().or_else(|| name_of(&given.server)).filter(|name| is_server_name(name));
    let name = name.ok_or_else(|| {
        Problem::Words("mcp-record: the server needs a name of a to z, 0 to 9 and `-`: --name NAME".to_owned())
    })?;
    let runtime = started(Builder::new_multi_thread().worker_threads(2))?;
    let secrets = super::variables().filter(|(name, value)| looks_secret(name, value)).collect();
    let url = format!("{}/{}/{name}", proxy.trim_end_matches('/'), MCP_MOUNT);
    let served = runtime.block_on(client::serve(url, secrets, given.server.clone()));
    served.map_err(|why| Problem::Words(format!("mcp-record: {why}")))?;
    Ok(Exit::Passed)
}

/// The name of a server by its command: the last part of the first word that names it.
fn name_of(command: &[OsString]) -> Option<String> {
    let mut words = command.iter().filter_map(|word| word.to_str());
    let program = words.next()?;
    let is_launcher = |word: &str| LAUNCHERS.contains(&stem(word).as_str());
    let named = if is_launcher(program) {
        words.find(|word| !word.starts_with('-') && !VERBS.contains(word) && !is_launcher(word))?
    } else {
        program
    };
    Some(stem(named))
}

/// The last part of a path or a package, without version, ending and what a name cannot have.
fn stem(word: &str) -> String {
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let last = last.split('@').next().unwrap_or_default();
    let last = last.split("==").next().unwrap_or_default();
    let stem = Path::new(last).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let letters = stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
    letters.collect::<String>().trim_matches('-').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_command() {
        for (command, name) in [
            ("npx -y @modelcontextprotocol/server-memory", Some("server-memory")),
            ("npx -y @modelcontextprotocol/server-memory@2026.8.31", Some("server-memory")),
            ("uvx mcp-server-time==1.0 --local-timezone UTC", Some("mcp-server-time")),
            ("python -m mcp_server_sqlite --db-path x.db", Some("mcp-server-sqlite")),
            ("uv run server.py", Some("server")),
            ("/opt/tools/Tickets.exe --port 3", Some("tickets")),
            ("npx -y", None),
        ] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(name_of(&words).as_deref(), name, "{command}");
        }
    }
}
