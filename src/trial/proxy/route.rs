//! What the proxy serves: a table, a line for each kind of request.
//!
//! The model is mounted at `/model`, the search service at `/search`. What follows is the path below the base URL that the
//! provider's own clients are given. Some of them want a version in their base URL and some do not, and Google's write
//! `v1beta`: all spellings are taken, with and without a trailing slash.

use crate::provider::wire::{
    Dialect, anthropic_messages, gemini, openai_chat, openai_responses, perplexity_agent, perplexity_sonar,
};
use crate::provider::{EMBEDDINGS, EXACT};
use crate::transport::{Profile, Service};
use axum::http::HeaderMap;

/// Where the model is, with the version that OpenAI's clients want in their base URL.
pub(crate) const MODEL_MOUNT: &str = "/model/v1";
/// Where the search service is.
pub(crate) const SEARCH_MOUNT: &str = "/search";
/// Versions that may follow the mount.
const VERSIONS: [&str; 3] = ["/v1", "/v1beta", "/v1alpha"];

/// How a request is read and compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Api {
    /// By a dialect.
    Dialect(&'static dyn Dialect),
    /// As embeddings of OpenAI's shape: compared as our own are, and not read.
    Embeddings,
    /// It is compared exactly, and not read.
    Exact,
}

impl Api {
    /// How requests are compared.
    pub(super) fn profile(self) -> &'static Profile {
        match self {
            Self::Dialect(dialect) => dialect.profile(),
            Self::Embeddings => &EMBEDDINGS,
            Self::Exact => &EXACT,
        }
    }
}

/// One kind of request that is served.
#[derive(Debug)]
struct Entry {
    /// Who it is for; the mount follows.
    service: Service,
    method: &'static str,
    /// The path below the mount, without a version; `*` in a segment stands for any text.
    path: &'static str,
    api: Api,
    /// The path below the provider's base URL, where it is another.
    below: Option<&'static str>,
}

const fn entry(
    service: Service,
    method: &'static str,
    path: &'static str,
    api: Api,
    below: Option<&'static str>,
) -> Entry {
    Entry { service, method, path, api, below }
}

const CHAT: Api = Api::Dialect(openai_chat::DIALECT);
const RESPONSES: Api = Api::Dialect(openai_responses::DIALECT);
const MESSAGES: Api = Api::Dialect(anthropic_messages::DIALECT);
const GEMINI: Api = Api::Dialect(gemini::DIALECT);
const AGENT: Api = Api::Dialect(perplexity_agent::DIALECT);
const SONAR: Api = Api::Dialect(perplexity_sonar::DIALECT);

/// Everything that is served. A further API is a further line.
const TABLE: &[Entry] = &[
    entry(Service::Model, "POST", "/chat/completions", CHAT, None),
    entry(Service::Model, "POST", "/openai/deployments/*/chat/completions", CHAT, None),
    entry(Service::Model, "POST", "/responses", RESPONSES, None),
    entry(Service::Model, "POST", "/messages", MESSAGES, Some("/v1/messages")),
    entry(Service::Model, "POST", "/messages/count_tokens", Api::Exact, Some("/v1/messages/count_tokens")),
    entry(Service::Model, "POST", "/models/*:generateContent", GEMINI, None),
    entry(Service::Model, "POST", "/models/*:streamGenerateContent", GEMINI, None),
    entry(Service::Model, "POST", "/models/*:countTokens", Api::Exact, None),
    entry(Service::Embeddings, "POST", "/embeddings", Api::Embeddings, None),
    entry(Service::Embeddings, "POST", "/openai/deployments/*/embeddings", Api::Embeddings, None),
    entry(Service::Model, "GET", "/models", Api::Exact, None),
    entry(Service::Model, "GET", "/models/*", Api::Exact, None),
    entry(Service::Search, "POST", "/responses", AGENT, Some("/v1/responses")),
    entry(Service::Search, "POST", "/agent", AGENT, Some("/v1/agent")),
    entry(Service::Search, "POST", "/search", AGENT, None),
    entry(Service::Search, "POST", "/chat/completions", SONAR, None),
];

/// What one request asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    /// Who it is for.
    pub service: Service,
    /// The method.
    pub method: &'static str,
    /// How it is read and compared.
    pub api: Api,
    /// The path below the provider's base URL, query included.
    pub path: String,
}

/// The route of a request; `None` when nothing is served there.
pub(super) fn route(method: &str, path: &str, query: Option<&str>) -> Option<Route> {
    TABLE.iter().find_map(|entry| {
        let rest = path.strip_prefix(mount(entry.service)).filter(|rest| rest.starts_with('/'))?;
        let unversioned = without_version(rest.trim_end_matches('/'));
        if entry.method != method || !fits(entry.path, unversioned) {
            return None;
        }
        let below = entry.below.unwrap_or(unversioned);
        let path = query.map_or_else(|| below.to_owned(), |query| format!("{below}?{query}"));
        Some(Route { service: entry.service, method: entry.method, api: entry.api, path })
    })
}

/// Methods of requests to declared services.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// The route of a request to a declared service, which is mounted at its name; `None` for any other request.
pub(super) fn declared(mounts: &[Service], method: &str, path: &str, query: Option<&str>) -> Option<Route> {
    let method = METHODS.into_iter().find(|known| *known == method)?;
    let (mount, rest) = path.strip_prefix('/')?.split_once('/').unwrap_or((path.strip_prefix('/')?, ""));
    let service = mounts.iter().find(|service| service.as_str() == mount)?;
    let path = query.map_or_else(|| format!("/{rest}"), |query| format!("/{rest}?{query}"));
    Some(Route { service: *service, method, api: Api::Exact, path })
}

fn without_version(path: &str) -> &str {
    let below = |version: &&str| path.strip_prefix(*version).filter(|rest| rest.starts_with('/'));
    VERSIONS.iter().find_map(below).unwrap_or(path)
}

/// The dialect in whose shape a client expects errors, whether or not what it asks for is served: by the headers that
/// its libraries send with every request, else by the path.
pub(super) fn client_dialect(path: &str, headers: &HeaderMap) -> &'static dyn Dialect {
    let below = path.trim_end_matches('/');
    let google = |name: &str| name.starts_with("x-goog-");
    if headers.contains_key("anthropic-version") || below.contains("/messages") {
        anthropic_messages::DIALECT
    } else if headers.keys().any(|name| google(name.as_str())) || below.contains("/models/") && below.contains(':') {
        gemini::DIALECT
    } else {
        openai_chat::DIALECT
    }
}

/// What is served, for messages.
pub(super) fn served(mounts: &[Service]) -> String {
    let shown = |entry: &Entry| {
        let mount = match entry.service {
            Service::Search => SEARCH_MOUNT,
            _ if entry.api == GEMINI => "/model/v1beta",
            _ => MODEL_MOUNT,
        };
        format!("{} {mount}{}", entry.method, entry.path)
    };
    let declared = mounts.iter().map(|service| format!("anything below /{}", service.as_str()));
    TABLE.iter().map(shown).chain(declared).collect::<Vec<_>>().join(", ")
}

fn mount(service: Service) -> &'static str {
    if service == Service::Search { SEARCH_MOUNT } else { "/model" }
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
    fn each_api_of_a_model_leads_to_its_dialect_and_an_embedding_to_no_completion() {
        let stream = "/models/gemini-3:streamGenerateContent";
        for (path, service, api, below) in [
            ("/model/v1/responses", Service::Model, RESPONSES, "/responses"),
            ("/model/responses/", Service::Model, RESPONSES, "/responses"),
            ("/model/v1/messages", Service::Model, MESSAGES, "/v1/messages"),
            ("/model/messages", Service::Model, MESSAGES, "/v1/messages"),
            ("/model/v1/messages/count_tokens", Service::Model, Api::Exact, "/v1/messages/count_tokens"),
            (&format!("/model/v1beta{stream}"), Service::Model, GEMINI, stream),
            (&format!("/model/v1{stream}"), Service::Model, GEMINI, stream),
            ("/model/v1beta/models/g:generateContent", Service::Model, GEMINI, "/models/g:generateContent"),
            ("/model/v1beta/models/g:countTokens", Service::Model, Api::Exact, "/models/g:countTokens"),
            ("/model/v1/embeddings", Service::Embeddings, Api::Embeddings, "/embeddings"),
            ("/model/embeddings/", Service::Embeddings, Api::Embeddings, "/embeddings"),
        ] {
            let found = route("POST", path, None).expect(path);
            assert_eq!((found.service, found.api, found.path.as_str()), (service, api, below), "{path}");
            assert_eq!(
                route("GET", path, None).map(|found| found.api).filter(|api| *api != Api::Exact),
                None,
                "{path}"
            );
        }
        assert_eq!(Api::Embeddings.profile().name, "openai-embeddings");
    }

    #[test]
    fn a_client_is_told_by_its_headers_or_its_path() {
        let none = HeaderMap::new();
        let with =
            |name: &'static str| HeaderMap::from_iter([(name.parse().expect("a name"), "x".parse().expect("text"))]);
        for (path, headers, dialect) in [
            ("/model/v1/chat/completions", &none, openai_chat::DIALECT),
            ("/model/v1/audio/speech", &none, openai_chat::DIALECT),
            ("/model/v1/messages/batches", &none, anthropic_messages::DIALECT),
            ("/model/v1/files", &with("anthropic-version"), anthropic_messages::DIALECT),
            ("/model/v1beta/models/g:embedContent", &none, gemini::DIALECT),
            ("/model/v1beta/files", &with("x-goog-api-client"), gemini::DIALECT),
        ] {
            assert_eq!(client_dialect(path, headers), dialect, "{path}");
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
            assert_eq!((found.method, found.api, found.path.as_str()), ("GET", Api::Exact, below));
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
            "/model/v1/audio/speech",
            "/model/v1beta/models/gemini-3:embedContent",
            "/model/v2/responses",
            "/model/openai/deployments//chat/completions",
            "/model/openai/deployments/a/b/chat/completions",
            "/search",
            "/v1/chat/completions",
        ] {
            assert_eq!(route("POST", path, None), None, "{path}");
        }
        let served = served(&[]);
        for part in [
            "POST /model/v1/chat/completions",
            "POST /model/v1/responses",
            "POST /model/v1/messages",
            "POST /model/v1beta/models/*:streamGenerateContent",
            "POST /model/v1/embeddings",
            "GET /model/v1/models",
            "POST /search/responses",
        ] {
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
