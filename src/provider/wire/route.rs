//! Which dialect an address speaks: for traffic that others recorded, where the address is all that tells.

use super::Dialect;

/// Parameters of an address that carry a key.
const KEYS: [&str; 3] = ["key", "api_key", "api-key"];

/// The dialect of an address, and the path below the base URL as our own requests have it, its query without keys.
/// `None` when it is none that is known here.
pub fn route(url: &str) -> Option<(Dialect, String)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, rest) = rest.split_at(rest.find('/')?);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (dialect, path) = if host == "api.perplexity.ai" {
        match path {
            "/chat/completions" => (Dialect::PerplexitySonar, path),
            "/v1/agent" | "/v1/responses" | "/search" => (Dialect::PerplexityAgent, path),
            _ => return None,
        }
    } else if path.ends_with("/chat/completions") {
        (Dialect::OpenAiChat, "/chat/completions")
    } else if path.ends_with("/responses") {
        (Dialect::OpenAiResponses, "/responses")
    } else if path.ends_with("/v1/messages") {
        (Dialect::AnthropicMessages, "/v1/messages")
    } else if path.ends_with("/v1/agent") {
        (Dialect::PerplexityAgent, "/v1/agent")
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        (Dialect::Gemini, &path[path.rfind("/models/")?..])
    } else {
        return None;
    };
    Some((dialect, with_query(path, query)))
}

/// The deployment that an Azure path names.
pub fn deployment(path: &str) -> Option<&str> {
    let name = path.split_once("/deployments/")?.1.split(['/', '?']).next()?;
    Some(name).filter(|name| !name.is_empty())
}

/// The path and query of any address, without keys.
pub fn path(url: &str) -> String {
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
    use super::*;

    #[test]
    fn addresses_of_many_servers_lead_to_the_paths_that_our_requests_have() {
        for (url, dialect, path) in [
            ("https://api.openai.com/v1/chat/completions", Dialect::OpenAiChat, "/chat/completions"),
            ("https://api.groq.com/openai/v1/chat/completions", Dialect::OpenAiChat, "/chat/completions"),
            ("https://api.perplexity.ai/chat/completions", Dialect::PerplexitySonar, "/chat/completions"),
            ("https://api.perplexity.ai/v1/responses", Dialect::PerplexityAgent, "/v1/responses"),
            ("https://api.openai.com/v1/responses", Dialect::OpenAiResponses, "/responses"),
            ("https://api.anthropic.com/v1/messages?beta=true", Dialect::AnthropicMessages, "/v1/messages?beta=true"),
            (
                "https://g.example/v1beta/models/gemini-3:streamGenerateContent?alt=sse&key=abc",
                Dialect::Gemini,
                "/models/gemini-3:streamGenerateContent?alt=sse",
            ),
        ] {
            assert_eq!(route(url), Some((dialect, path.to_owned())), "{url}");
        }
        let stream = Dialect::Gemini.path("gemini-3", true);
        assert_eq!(route(&format!("https://g.example/v1beta{stream}")).map(|(_, path)| path), Some(stream));
        for other in ["https://api.cohere.com/v2/embed", "https://mcp.example/mcp", "nonsense", "https://host"] {
            assert_eq!(route(other), None, "{other}");
        }
        assert_eq!(self::path("https://h.example/a/b?api_key=x&y=1"), "/a/b?y=1");
    }
}
