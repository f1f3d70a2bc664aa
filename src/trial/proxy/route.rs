//! What the proxy serves: a table, a line for each kind of request.
//!
//! The model is mounted at `/model/v1`, whose remainder is the path below the base URL of an OpenAI-compatible
//! provider, the search service at `/search`. Some clients want a version in their base URL and some do not: both
//! spellings are taken, with and without a trailing slash.

use crate::provider::wire::{Dialect, openai_chat, perplexity_agent, perplexity_sonar};
use crate::transport::Service;

/// Where the model is, with the version that OpenAI's clients want in their base URL.
pub(crate) const MODEL_MOUNT: &str = "/model/v1";
/// Where the search service is.
pub(crate) const SEARCH_MOUNT: &str = "/search";

/// One kind of request that is served.
#[derive(Debug)]
struct Entry {
    /// Who it is for; the mount follows.
    service: Service,
    method: &'static str,
    /// The path below the mount, without a version; `*` in a segment stands for any text.
    path: &'static str,
    /// How it is read and compared; `None` for what is compared exactly.
    dialect: Option<&'static dyn Dialect>,
    /// The path below the provider's base URL, where it is another.
    below: Option<&'static str>,
}

const fn entry(
    service: Service,
    method: &'static str,
    path: &'static str,
    dialect: Option<&'static dyn Dialect>,
    below: Option<&'static str>,
) -> Entry {
    Entry { service, method, path, dialect, below }
}

/// Everything that is served. A further API is a further line.
const TABLE: &[Entry] = &[
    entry(Service::Model, "POST", "/chat/completions", Some(openai_chat::DIALECT), None),
    entry(Service::Model, "POST", "/openai/deployments/*/chat/completions", Some(openai_chat::DIALECT), None),
    entry(Service::Model, "GET", "/models", None, None),
    entry(Service::Model, "GET", "/models/*", None, None),
    entry(Service::Search, "POST", "/responses", Some(perplexity_agent::DIALECT), Some("/v1/responses")),
    entry(Service::Search, "POST", "/agent", Some(perplexity_agent::DIALECT), Some("/v1/agent")),
    entry(Service::Search, "POST", "/search", Some(perplexity_agent::DIALECT), None),
    entry(Service::Search, "POST", "/chat/completions", Some(perplexity_sonar::DIALECT), None),
];

/// What one request asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    /// Who it is for.
    pub service: Service,
    /// The method.
    pub method: &'static str,
    /// The dialect; `None` for what is compared exactly.
    pub dialect: Option<&'static dyn Dialect>,
    /// The path below the provider's base URL, query included.
    pub path: String,
}

/// The route of a request; `None` when nothing is served there.
pub(super) fn route(method: &str, path: &str, query: Option<&str>) -> Option<Route> {
    TABLE.iter().find_map(|entry| {
        let rest = path.strip_prefix(mount(entry.service)).filter(|rest| rest.starts_with('/'))?;
        let rest = rest.trim_end_matches('/');
        let unversioned = rest.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(rest);
        if entry.method != method || !fits(entry.path, unversioned) {
            return None;
        }
        let below = entry.below.unwrap_or(unversioned);
        let path = query.map_or_else(|| below.to_owned(), |query| format!("{below}?{query}"));
        Some(Route { service: entry.service, method: entry.method, dialect: entry.dialect, path })
    })
}

/// What is served, for messages.
pub(super) fn served() -> String {
    let shown = |entry: &Entry| {
        let mount = if entry.service == Service::Model { MODEL_MOUNT } else { SEARCH_MOUNT };
        format!("{} {mount}{}", entry.method, entry.path)
    };
    TABLE.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn mount(service: Service) -> &'static str {
    if service == Service::Model { "/model" } else { SEARCH_MOUNT }
}

/// Whether a path is what a pattern says: segment by segment, `*` in a segment for any text, a trailing slash aside.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.trim_end_matches('/').split('/'), path.trim_end_matches('/').split('/'));
    let (pattern, path): (Vec<&str>, Vec<&str>) = (pattern.collect(), path.collect());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(wanted, given)| segment_fits(wanted, given))
}

fn segment_fits(wanted: &str, given: &str) -> bool {
    let Some((start, end)) = wanted.split_once('*') else { return wanted == given };
    given.strip_prefix(start).is_some_and(|rest| rest.len() > end.len() && rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_base_url_lead_to_the_same_path_with_a_trailing_slash_too() {
        for (path, service, below) in [
            ("/model/v1/chat/completions", Service::Model, "/chat/completions"),
            ("/model/chat/completions", Service::Model, "/chat/completions"),
            (
                "/model/openai/deployments/gpt/chat/completions",
                Service::Model,
                "/openai/deployments/gpt/chat/completions",
            ),
            ("/search/v1/responses", Service::Search, "/v1/responses"),
            ("/search/responses", Service::Search, "/v1/responses"),
            ("/search/v1/agent", Service::Search, "/v1/agent"),
            ("/search/search", Service::Search, "/search"),
            ("/search/chat/completions", Service::Search, "/chat/completions"),
        ] {
            for path in [path.to_owned(), format!("{path}/")] {
                let found = route("POST", &path, None).expect(&path);
                assert_eq!((found.service, found.path.as_str()), (service, below), "{path}");
                let versioned = route("POST", &path, Some("api-version=1")).expect("a route");
                assert_eq!(versioned.path, format!("{below}?api-version=1"));
                assert_eq!(route("PUT", &path, None), None, "{path}");
            }
        }
    }

    #[test]
    fn the_list_of_models_and_one_of_them_are_served_and_compared_exactly() {
        for (path, below) in [
            ("/model/v1/models", "/models"),
            ("/model/models/", "/models"),
            ("/model/v1/models/gpt-4o", "/models/gpt-4o"),
        ] {
            let found = route("GET", path, None).expect(path);
            assert_eq!((found.method, found.dialect, found.path.as_str()), ("GET", None, below));
        }
        assert_eq!(route("POST", "/model/v1/models", None), None);
        assert_eq!(route("GET", "/model/v1/models/", None).map(|found| found.path).as_deref(), Some("/models"));
    }

    #[test]
    fn nothing_else_is_served_and_the_list_for_messages_is_the_table() {
        for path in [
            "/",
            "/model",
            "/modelx/chat/completions",
            "/model/v1/embeddings",
            "/model/openai/deployments//chat/completions",
            "/model/openai/deployments/a/b/chat/completions",
            "/search",
            "/v1/chat/completions",
        ] {
            assert_eq!(route("POST", path, None), None, "{path}");
        }
        let served = served();
        for part in ["POST /model/v1/chat/completions", "GET /model/v1/models", "POST /search/responses"] {
            assert!(served.contains(part), "{served}");
        }
    }

    #[test]
    fn a_star_stands_for_some_text_within_one_segment() {
        assert!(fits("/models/*:generateContent", "/models/gemini-3:generateContent"));
        assert!(fits("/audio/*", "/audio/speech/"));
        for path in ["/models/:generateContent", "/models/a/b:generateContent", "/models/gemini-3"] {
            assert!(!fits("/models/*:generateContent", path), "{path}");
        }
    }
}
