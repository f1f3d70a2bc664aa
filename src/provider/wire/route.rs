//! Finds the dialect of an address: for imported traffic, where only the address shows it.

use super::{Dialect, dialects};

/// Query parameters that carry a key.
const KEYS: [&str; 3] = ["key", "api_key", "api-key"];

/// The dialect of an address, and the path below the base URL in the form of our own requests, with keys removed from
/// its query. `None` if no dialect matches.
pub(crate) fn route(url: &str) -> Option<(&'static Dialect, String)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, rest) = rest.split_at(rest.find('/')?);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let owned = dialects().any(|dialect| dialect.own_host == Some(host));
    let mut asked = dialects().filter(|dialect| !owned || dialect.own_host == Some(host));
    let (dialect, path) = asked.find_map(|dialect| Some((dialect, dialect.endpoint(host, path)?)))?;
    Some((dialect, with_query(path, query)))
}

/// The path and query of any address, without keys.
pub(crate) fn path(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.find('/').map_or("/", |slash| &rest[slash..]);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    with_query(path, query)
}

fn with_query(path: &str, query: &str) -> String {
    let passthrough: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !KEYS.contains(&pair.split('=').next().unwrap_or_default()))
        .collect();
    if passthrough.is_empty() { path.to_owned() } else { format!("{path}?{}", passthrough.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::super::{anthropic_messages, gemini, openai_chat, openai_responses, perplexity_agent, perplexity_sonar};
    use super::*;

    #[test]
    fn addresses_of_many_servers_lead_to_the_paths_that_our_requests_have() {
        for (url, dialect, path) in [
            ("https://api.openai.com/v1/chat/completions", openai_chat::DIALECT, "/chat/completions"),
            ("https://api.groq.com/openai/v1/chat/completions", openai_chat::DIALECT, "/chat/completions"),
            ("https://api.perplexity.ai/chat/completions", perplexity_sonar::DIALECT, "/chat/completions"),
            ("https://api.perplexity.ai/v1/responses", perplexity_agent::DIALECT, "/v1/responses"),
            ("https://api.openai.com/v1/responses", openai_responses::DIALECT, "/responses"),
            ("https://api.anthropic.com/v1/messages?beta=true", anthropic_messages::DIALECT, "/v1/messages?beta=true"),
            (
                "https://g.example/v1beta/models/gemini-3:streamGenerateContent?alt=sse&key=abc",
                gemini::DIALECT,
                "/models/gemini-3:streamGenerateContent?alt=sse",
            ),
        ] {
            assert_eq!(route(url), Some((dialect, path.to_owned())), "{url}");
        }
        let stream = gemini::DIALECT.path("gemini-3", true);
        assert_eq!(route(&format!("https://g.example/v1beta{stream}")).map(|(_, path)| path), Some(stream));
        for other in ["https://api.cohere.com/v2/embed", "https://mcp.example/mcp", "nonsense", "https://host"] {
            assert_eq!(route(other), None, "{other}");
        }
        assert_eq!(self::path("https://h.example/a/b?api_key=x&y=1"), "/a/b?y=1");
    }
}
