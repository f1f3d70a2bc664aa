//! Decides which key may be sent to which host.
//!
//! A stranger's project file names variables and addresses; without this check, a pull request could send any variable
//! of the machine to any host. A key may go to the hosts of its own service, by the table below. The user must allow
//! every other pair. A variable without an allowed pair is not even read.

use crate::platform::loopback::is_loopback;
use reqwest::Url;
use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

/// Hosts of the services whose variables have a usual name.
const TIED: [(&str, &[&str]); 17] = [
    ("ANTHROPIC_API_KEY", &["api.anthropic.com"]),
    (
        "AWS_BEARER_TOKEN_BEDROCK",
        &[
            "bedrock-runtime.us-east-1.amazonaws.com",
            "bedrock-runtime.us-west-2.amazonaws.com",
            "bedrock-runtime.eu-west-1.amazonaws.com",
            "bedrock-runtime.eu-central-1.amazonaws.com",
        ],
    ),
    ("CEREBRAS_API_KEY", &["api.cerebras.ai"]),
    ("CO_API_KEY", &["api.cohere.com", "api.cohere.ai"]),
    ("COHERE_API_KEY", &["api.cohere.com", "api.cohere.ai"]),
    ("DEEPSEEK_API_KEY", &["api.deepseek.com"]),
    ("FIREWORKS_API_KEY", &["api.fireworks.ai"]),
    ("GEMINI_API_KEY", &["generativelanguage.googleapis.com"]),
    ("GOOGLE_API_KEY", &["generativelanguage.googleapis.com"]),
    ("GROQ_API_KEY", &["api.groq.com"]),
    ("MISTRAL_API_KEY", &["api.mistral.ai"]),
    ("OLLAMA_API_KEY", &["ollama.com"]),
    ("OPENAI_API_KEY", &["api.openai.com"]),
    ("OPENROUTER_API_KEY", &["openrouter.ai"]),
    ("PERPLEXITY_API_KEY", &["api.perplexity.ai"]),
    ("TOGETHER_API_KEY", &["api.together.xyz", "api.together.ai"]),
    ("XAI_API_KEY", &["api.x.ai"]),
];

/// Variables with a usual name, in which clients look for their keys.
pub(crate) fn usual_keys() -> impl Iterator<Item = &'static str> {
    TIED.iter().map(|(name, _)| *name)
}

static TRUSTED: RwLock<BTreeSet<(String, String)>> = RwLock::new(BTreeSet::new());

static AGENTS: RwLock<Vec<Url>> = RwLock::new(Vec::new());

/// The given agent address is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` is no address of an agent ({reason}): write `http://HOST:PORT`")]
pub(crate) struct NoAgent {
    url: String,
    reason: String,
}

/// Allows external agents for the rest of the process: one or more addresses separated by white space, which scenarios
/// may then use. An address with a path allows only what is below that path.
///
/// # Errors
/// The first address that is not an `http` or `https` URL with a host; none is allowed then.
pub(crate) fn name_agents(text: &str) -> Result<(), NoAgent> {
    let address = |url: &str| {
        let no_agent = |reason: String| NoAgent { url: url.to_owned(), reason };
        let parsed = Url::parse(url).map_err(|error| no_agent(error.to_string()))?;
        let sound = matches!(parsed.scheme(), "http" | "https") && parsed.has_host();
        if sound { Ok(parsed) } else { Err(no_agent("it begins with neither http:// nor https://".to_owned())) }
    };
    let named: Vec<Url> = text.split_whitespace().map(address).collect::<Result<_, _>>()?;
    AGENTS.write().unwrap_or_else(PoisonError::into_inner).extend(named);
    Ok(())
}

/// Checks that the agent at that URL was allowed on the command line, on this machine too: otherwise a stranger's
/// scenario could post to any local service.
///
/// # Errors
/// Why it may not be called, with the option that allows it.
pub(crate) fn may_call(url: &str) -> Result<(), Distrust> {
    let no_address = |reason: String| Distrust::AgentAddress { url: url.to_owned(), reason };
    let wanted = Url::parse(url).map_err(|error| no_address(error.to_string()))?;
    let agents = AGENTS.read().unwrap_or_else(PoisonError::into_inner);
    if agents.iter().any(|agent| agent.origin() == wanted.origin() && is_below(wanted.path(), agent.path())) {
        return Ok(());
    }
    let named = agents.iter().map(Url::to_string).collect();
    Err(Distrust::Agent { url: wanted.to_string(), origin: wanted.origin().ascii_serialization(), named })
}

/// Whether `path` equals `folder` or is below it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A line that is not a `KEY=HOST` pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no pair of a variable and a host: write `KEY=HOST`, `AZURE_KEY=my.openai.azure.com` for example")]
pub(crate) struct NoPair(String);

/// Allows the pairs of a text for the rest of the process: `KEY=HOST` (or `KEY=HOST:PORT` for that port alone),
/// separated by white space or commas. Text after `#` is a comment.
///
/// # Errors
/// The first word that is not a pair; nothing is allowed then.
pub(crate) fn trust(text: &str) -> Result<(), NoPair> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = lines.flat_map(|line| line.split([' ', '\t', ','])).filter(|word| !word.is_empty());
    let pair = |word: &str| {
        let (key, host) = word.split_once('=').filter(|(key, host)| !key.is_empty() && !host.is_empty())?;
        let plain = !host.contains(['/', '@', '*', '=']);
        plain.then(|| (key.to_owned(), host.to_ascii_lowercase()))
    };
    let pairs: Vec<_> =
        words.map(|word| pair(word).ok_or_else(|| NoPair(word.to_owned()))).collect::<Result<_, _>>()?;
    TRUSTED.write().unwrap_or_else(PoisonError::into_inner).extend(pairs);
    Ok(())
}

/// Why a key or turn may not be sent to an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// The pair was not allowed. `host`: host, with the port if the address has one.
    #[error(
        "{variable} is not sent to {host}: nobody said that it may be. If it belongs there, say so with `--trust {variable}={host}` (or in RAGCHECK_TRUST, or in a line of ~/.config/ragcheck/trust)"
    )]
    Pair { variable: String, host: String },
    /// The connection would be unencrypted.
    #[error("{variable} is not sent to {host} without encryption: write `https://`")]
    Plain { variable: String, host: String },
    /// The external agent was not allowed on the command line. `origin`: its server, as `--agent` takes it.
    #[error(
        "the scenario's agent is at {url}, and {}: if it is yours, start the run with `--agent {origin}` (or RAGCHECK_AGENT={origin})",
        not_named(named)
    )]
    Agent { url: String, origin: String, named: Vec<String> },
    /// The agent's address is invalid.
    #[error("the agent's address {url} is not a URL: {reason}")]
    AgentAddress { url: String, reason: String },
    /// The address is invalid.
    #[error("the base URL is not a URL: {reason}")]
    Address { reason: String },
}

fn not_named(named: &[String]) -> String {
    if named.is_empty() {
        "a scenario alone has nobody spoken to".to_owned()
    } else {
        format!("the run was started with --agent {}", named.join(" "))
    }
}

/// A variable and an address that its key may go to.
struct Pair {
    url: Url,
    host: String,
    with_port: String,
    /// Whether the table or the user allows it.
    allowed: bool,
}

fn pair(variable: &str, base_url: &str) -> Result<Pair, Distrust> {
    let no_address = |reason: String| Distrust::Address { reason };
    let url = Url::parse(base_url).map_err(|error| no_address(error.to_string()))?;
    let host = url.host_str().ok_or_else(|| no_address("it names no host".to_owned()))?.to_ascii_lowercase();
    // Port 0 is that of a process which is not started yet: it differs from run to run.
    let port = url.port().filter(|port| *port != 0);
    let with_port = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
    let tied = url.port().is_none()
        && url.scheme() == "https"
        && TIED.iter().any(|(known, hosts)| *known == variable && hosts.contains(&host.as_str()));
    let said = {
        let trusted = TRUSTED.read().unwrap_or_else(PoisonError::into_inner);
        [&host, &with_port].into_iter().any(|host| trusted.contains(&(variable.to_owned(), host.clone())))
    };
    Ok(Pair { url, host, with_port, allowed: tied || said })
}

/// Checks that the key in `variable` may be sent to `base_url`.
///
/// # Errors
/// Why it may not be sent.
pub(crate) fn may_send(variable: &str, base_url: &str) -> Result<(), Distrust> {
    let Pair { url, host, with_port, allowed } = pair(variable, base_url)?;
    if url.scheme() != "https" && !is_loopback(&host) {
        return Err(Distrust::Plain { variable: variable.to_owned(), host: with_port });
    }
    if allowed { Ok(()) } else { Err(Distrust::Pair { variable: variable.to_owned(), host: with_port }) }
}

/// Checks that the key in `variable`, which an agent sends itself, may go to `base_url`: also to a server on this machine,
/// and to those that the user's own base URLs name.
///
/// # Errors
/// Why it may not.
pub(crate) fn may_hand_on(variable: &str, base_url: &str, own: &[String]) -> Result<(), Distrust> {
    let Pair { url, host, with_port, allowed } = pair(variable, base_url)?;
    let is_own = own.iter().filter_map(|own| Url::parse(own).ok()).any(|own| own.origin() == url.origin());
    let allowed = allowed || is_own || is_loopback(&host);
    if allowed { Ok(()) } else { Err(Distrust::Pair { variable: variable.to_owned(), host: with_port }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(variable: &str, url: &str) -> String {
        may_send(variable, url).map_or_else(|why| why.to_string(), |()| "sent".to_owned())
    }

    #[test]
    fn a_key_goes_to_its_own_service_and_to_nobody_else_unasked() {
        assert_eq!(said("OPENAI_API_KEY", "https://api.openai.com/v1"), "sent");
        for url in [
            "https://api.openai.com.evil.example/v1",
            "https://evil.example/api.openai.com",
            "https://api.openai.com@evil.example/v1",
            "https://api.openai.com:8443/v1",
            "https://api.anthropic.com",
            "http://127.0.0.1:9",
        ] {
            assert!(said("OPENAI_API_KEY", url).contains("--trust OPENAI_API_KEY="), "{url}");
        }
        assert!(said("PATH", "https://api.openai.com/v1").contains("--trust PATH=api.openai.com"));
    }

    #[test]
    fn a_pair_is_trusted_for_one_host_and_never_without_encryption() {
        trust(
            "# ours\nTEST_GATEWAY_KEY=gateway.example, TEST_OTHER_KEY=gateway.example:8443\nTEST_LOCAL_KEY=127.0.0.1",
        )
        .expect("pairs");
        assert_eq!(said("TEST_GATEWAY_KEY", "https://GATEWAY.example/v1"), "sent");
        assert_eq!(said("TEST_GATEWAY_KEY", "https://gateway.example:8443/v1"), "sent");
        assert_eq!(said("TEST_OTHER_KEY", "https://gateway.example:8443/v1"), "sent");
        assert!(said("TEST_OTHER_KEY", "https://gateway.example/v1").contains("--trust"));
        assert!(said("TEST_GATEWAY_KEY", "https://a.gateway.example").contains("--trust"));
        assert!(said("TEST_GATEWAY_KEY", "http://gateway.example").contains("without encryption"));
        assert!(said("OPENAI_API_KEY", "http://api.openai.com/v1").contains("without encryption"));
        assert_eq!(said("TEST_LOCAL_KEY", "http://127.0.0.1:8091/v1"), "sent");
        let unstarted = said("TEST_UNSAID_KEY", "http://127.0.0.1:0/chat");
        assert!(unstarted.contains("`--trust TEST_UNSAID_KEY=127.0.0.1`"), "{unstarted}");
    }

    #[test]
    fn an_agents_own_key_goes_to_its_service_to_this_machine_and_where_the_user_points_its_clients() {
        let own = ["https://gateway.example/openai/v1".to_owned(), "no address".to_owned()];
        let handed_on = |url: &str| may_hand_on("OPENAI_API_KEY", url, &own).is_ok();
        for url in [
            "https://api.openai.com/v1", "http://127.0.0.1:4000/v1", "http://localhost:11434",
            "https://GATEWAY.example/v1",
        ] {
            assert!(handed_on(url), "{url}");
        }
        for url in [
            "https://evil.example/v1",
            "https://gateway.example.evil.example/v1",
            "http://gateway.example/v1",
            "https://gateway.example:8443/v1",
            "https://api.openai.com@evil.example/v1",
            "https://api.anthropic.com",
            "no address",
        ] {
            assert!(!handed_on(url), "{url}");
        }
        trust("OPENAI_API_KEY=lan.example:4000").expect("a pair");
        assert!(handed_on("http://lan.example:4000/v1"));
    }

    #[test]
    fn an_agent_is_named_by_whoever_starts_the_run_also_on_this_machine() {
        for url in [
            "http://127.0.0.1:8100/chat",
            "http://localhost:8100/chat",
            "http://169.254.169.254/latest/meta-data",
            "http://127.0.0.1@evil.example/",
        ] {
            assert!(matches!(may_call(url), Err(Distrust::Agent { .. })), "{url}");
        }
        name_agents("http://agent.internal:8100 http://127.0.0.1:8199/help/desk/").expect("addresses");
        for url in [
            "http://agent.internal:8100/chat",
            "http://AGENT.internal:8100/reset?all=1",
            "http://127.0.0.1:8199/help/desk",
            "http://127.0.0.1:8199/help/./desk/chat",
        ] {
            assert_eq!(may_call(url), Ok(()), "{url}");
        }
        for url in [
            "http://agent.internal:8101/chat",
            "https://agent.internal:8100/chat",
            "http://agent.internal:8100@evil.example/chat",
            "http://evil.example\\@agent.internal:8100/",
            "http://127.0.0.1:8199/help/desktop",
            "http://127.0.0.1:8199/help/desk/../admin",
            "http://127.0.0.1:8199/help/desk/%2e%2E/admin",
        ] {
            let said = may_call(url).expect_err(url).to_string();
            assert!(said.contains("with `--agent http"), "{url}: {said}");
        }
    }

    #[test]
    fn what_is_no_address_of_an_agent_is_told() {
        for url in ["127.0.0.1:8100", "localhost:8100", "file:///etc/passwd", "http://"] {
            assert!(name_agents(url).is_err_and(|why| why.to_string().contains(url)), "{url}");
        }
    }

    #[test]
    fn what_is_no_pair_is_told() {
        for word in ["KEY", "=host", "KEY=", "KEY=https://host/", "KEY=*.example"] {
            assert_eq!(trust(word), Err(NoPair(word.to_owned())), "{word}");
        }
    }
}
