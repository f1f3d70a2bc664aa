//! Environment variables of an agent's process: the base URLs that the usual clients read, and keys.
//!
//! In a replay every key is a placeholder, so an agent that bypasses the proxy is refused by the provider and costs
//! nothing. Otherwise keys that are not set get the placeholder, because clients refuse to start without one; the proxy
//! takes it out, and the key of the project file is sent in its place.

use crate::trial::Doing;
use crate::trial::proxy::{MODEL_MOUNT, PLACEHOLDER_KEY, SEARCH_MOUNT};
use crate::trial::trust::usual_keys;
use std::net::SocketAddr;

/// Variables in which clients look for a base URL, and where the proxy has what they look for.
const BASE_URLS: [(&str, &str); 12] = [
    ("OPENAI_BASE_URL", MODEL_MOUNT),
    ("OPENAI_API_BASE", MODEL_MOUNT),
    ("AZURE_OPENAI_ENDPOINT", "/model"),
    ("ANTHROPIC_BASE_URL", "/model"),
    ("GOOGLE_GEMINI_BASE_URL", "/model"),
    ("OLLAMA_HOST", "/model"),
    ("CO_API_URL", "/model"),
    ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "/model"),
    ("PERPLEXITY_BASE_URL", SEARCH_MOUNT),
    ("RAGCHECK_MODEL_URL", MODEL_MOUNT),
    ("RAGCHECK_SEARCH_URL", SEARCH_MOUNT),
    ("RAGCHECK_PROXY", ""),
];

/// Names of the variables that hold base URLs.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    BASE_URLS.iter().map(|(name, _)| *name)
}

/// Variables for a process whose services are at `proxy`.
pub(super) fn of(proxy: SocketAddr, doing: Doing) -> impl Iterator<Item = (String, String)> {
    let urls = BASE_URLS.iter().map(|(name, mount)| ((*name).to_owned(), format!("http://{proxy}{mount}")));
    let keys = usual_keys()
        .filter(|name| doing == Doing::Replay || std::env::var(name).map_or(true, |key| key.trim().is_empty()))
        .map(|name| (name.to_owned(), PLACEHOLDER_KEY.to_owned()));
    let mut all: Vec<(String, String)> = urls.chain(keys).collect();
    all.push(("RAGCHECK_MODE".to_owned(), doing.word().to_owned()));
    // Buffered lines of a process that crashes would be lost.
    all.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
    for name in ["NO_PROXY", "no_proxy"] {
        let own = std::env::var(name).unwrap_or_default();
        let own = if own.is_empty() { own } else { format!("{own},") };
        all.push((name.to_owned(), format!("{own}127.0.0.1,localhost")));
    }
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_gives_placeholders_for_keys_and_base_urls_at_the_proxy() {
        let given = of(SocketAddr::from(([127, 0, 0, 1], 4711)), Doing::Replay).collect::<Vec<_>>();
        let value = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("OPENAI_BASE_URL"), Some("http://127.0.0.1:4711/model/v1"));
        assert_eq!(value("ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:4711/model"));
        assert_eq!(value("OLLAMA_HOST"), Some("http://127.0.0.1:4711/model"));
        assert_eq!(value("CO_API_URL"), Some("http://127.0.0.1:4711/model"));
        assert_eq!(value("PERPLEXITY_BASE_URL"), Some("http://127.0.0.1:4711/search"));
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PERPLEXITY_API_KEY", "CO_API_KEY"] {
            assert_eq!(value(key), Some(PLACEHOLDER_KEY), "{key}");
        }
        assert_eq!(value("RAGCHECK_MODE"), Some("replay"));
        assert!(value("NO_PROXY").is_some_and(|hosts| hosts.ends_with("127.0.0.1,localhost")));
    }
}
