//! Environment variables of an agent's process: its base URLs, and keys.
//!
//! In a replay every key is a placeholder, so an agent that bypasses the proxy is refused by the provider and costs
//! nothing. Otherwise keys that are not set get the placeholder, because clients refuse to start without one; the proxy
//! takes it out, and the key of the project file is sent in its place.

use crate::trial::TrialMode;
use crate::trial::proxy::PLACEHOLDER_KEY;
use crate::trial::trust::usual_keys;

/// Variable that stops the OpenAI Agents SDK from sending traces.
const AGENTS_TRACING: &str = "OPENAI_AGENTS_DISABLE_TRACING";

/// Variables for a process with these base URLs.
pub(in crate::trial::external) fn of(base_urls: Vec<(String, String)>, mode: TrialMode) -> Vec<(String, String)> {
    let mut all = base_urls;
    let keys = usual_keys()
        .filter(|name| mode == TrialMode::Replay || std::env::var(name).map_or(true, |key| key.trim().is_empty()))
        .map(|name| (name.to_owned(), PLACEHOLDER_KEY.to_owned()));
    let keys: Vec<(String, String)> = keys.collect();
    // OpenAI's Agents SDK sends its traces past the proxy, to OpenAI, which refuses the placeholder.
    let tracing = std::env::var_os(AGENTS_TRACING).is_none() && keys.iter().any(|(name, _)| name == "OPENAI_API_KEY");
    all.extend(keys);
    all.extend(tracing.then(|| (AGENTS_TRACING.to_owned(), "1".to_owned())));
    all.push(("RAGCHECK_MODE".to_owned(), mode.word().to_owned()));
    // Buffered lines of a process that crashes would be lost.
    all.push(("PYTHONUNBUFFERED".to_owned(), "1".to_owned()));
    // Sets and hash maps that are written into a request would have another order in each process.
    for (name, fixed) in [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0"), ("PERL_PERTURB_KEYS", "0")] {
        if std::env::var_os(name).is_none() {
            all.push((name.to_owned(), fixed.to_owned()));
        }
    }
    for name in ["NO_PROXY", "no_proxy"] {
        let own = std::env::var(name).unwrap_or_default();
        let own = if own.is_empty() { own } else { format!("{own},") };
        all.push((name.to_owned(), format!("{own}127.0.0.1,localhost")));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_gives_base_urls_and_placeholders_for_keys() {
        let given = of(vec![("LLM_URL".to_owned(), "http://127.0.0.1:4711".to_owned())], TrialMode::Replay);
        let value = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("LLM_URL"), Some("http://127.0.0.1:4711"));
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PERPLEXITY_API_KEY", "CO_API_KEY"] {
            assert_eq!(value(key), Some(PLACEHOLDER_KEY), "{key}");
        }
        assert_eq!(value(AGENTS_TRACING), Some("1"), "with a placeholder, nothing is traced past the proxy");
        assert_eq!(value("RAGCHECK_MODE"), Some("replay"));
        assert!(value("NO_PROXY").is_some_and(|hosts| hosts.ends_with("127.0.0.1,localhost")));
    }
}
