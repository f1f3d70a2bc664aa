//! Where the agent is: the command or the URL of `--agent`.

use super::SCENARIO;
use super::project::origin;
use crate::cli::output::Problem;
use crate::platform::secrets;
use crate::scenario::external::{PORT, USUAL_PROXY};
use crate::transport::Transport;
use crate::trial::{Contact, NoContact};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// How the agent is started, or where it runs.
pub(super) struct AgentTarget {
    pub(super) command: Vec<String>,
    /// Server of an agent that runs.
    pub(super) origin: String,
    pub(super) path: Option<String>,
}

impl AgentTarget {
    pub(super) fn of(agent: &str, path: Option<&str>, asked_in: &Path) -> Result<Self, Problem> {
        let path = path.map(|path| if path.starts_with('/') { path.to_owned() } else { format!("/{path}") });
        if is_url(agent) {
            let server = origin(agent).ok_or_else(|| format!("--agent: {agent} is no address"))?;
            let own = Some(&agent[server.len()..]).filter(|own| own.len() > 1).map(str::to_owned);
            return Ok(Self { command: Vec::new(), origin: server.to_owned(), path: path.or(own) });
        }
        let ask = "--agent: write a command, such as 'python agent.py', or the URL of a running agent";
        let words = shlex::split(agent).ok_or_else(|| format!("{ask}; a quote is not closed"))?;
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(format!("{ask}; it names no program").into());
        }
        if let Some(word) = secret_in(&words) {
            return Err(Problem::Words(format!(
                "--agent: {word} would be written to {SCENARIO}: let the agent read it from a variable of its environment"
            )));
        }
        let here = std::env::current_dir().unwrap_or_default();
        let moved =
            |word: String| if here == asked_in { word } else { seen_from(&here, asked_in, &word).unwrap_or(word) };
        Ok(Self { command: words.into_iter().map(moved).collect(), origin: String::new(), path })
    }

    /// Starts the agent, or connects the proxy of one that runs.
    pub(super) async fn contact(&self, services: Arc<dyn Transport>, answered: bool) -> Result<Contact, NoContact> {
        if self.command.is_empty() {
            let proxy = USUAL_PROXY.parse().map_err(|why| format!("{USUAL_PROXY}: {why}"))?;
            return Contact::running(&self.origin, proxy, services).await;
        }
        let here = Path::new(".");
        match Contact::start(&self.command, true, here, (Arc::clone(&services), answered)).await {
            // A program without a server ends when its standard input does.
            Err(why)
                if why.ended_well && !self.command.iter().any(|word| word.contains(PORT)) && self.path.is_none() =>
            {
                Contact::start(&self.command, false, here, (services, answered)).await
            }
            started => started,
        }
    }
}

/// What a command holds that must not be written to a file: a key, or the value of an option that takes one.
fn secret_in(words: &[String]) -> Option<String> {
    const OPTIONS: [&str; 6] = ["key", "token", "password", "passwd", "secret", "passphrase"];
    let option = words.iter().enumerate().find_map(|(place, word)| {
        let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let is_secret = name.starts_with('-') && OPTIONS.iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        let given = value.is_some() || words.get(place + 1).is_some_and(|next| !next.starts_with('-'));
        (is_secret && given).then(|| format!("the value of {name}"))
    });
    option.or_else(|| (!secrets::declared().is_clean(&words.join(" "))).then(|| "a key in the command".to_owned()))
}

/// Whether `--agent` names an agent that runs.
pub(in crate::cli) fn is_url(agent: &str) -> bool {
    agent.starts_with("http://") || agent.starts_with("https://")
}

/// A word of the command that names a file below `from`, as a path from `here`.
fn seen_from(here: &Path, from: &Path, word: &str) -> Option<String> {
    let path = Path::new(word);
    let file = from.join(path);
    if path.is_absolute() || word.starts_with('-') || !file.exists() {
        return None;
    }
    let below = here.strip_prefix(from).ok()?;
    let up: PathBuf = below.components().filter(|one| matches!(one, Component::Normal(_))).map(|_| "..").collect();
    Some(up.join(path).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_command_are_named_from_the_new_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("evals")).expect("a folder");
        std::fs::write(folder.path().join("agent.py"), "").expect("a file");
        let here = folder.path().join("evals");
        let seen = |word| seen_from(&here, folder.path(), word);
        let up = Path::new("..").join("agent.py").display().to_string();
        assert_eq!(seen("agent.py"), Some(up));
        assert_eq!((seen("python"), seen("--port"), seen("{{port}}")), (None, None, None));
    }
}
