//! What a request to the proxy asks for, by the `table` of what is served.
//!
//! The model is mounted at `/model`, the search service at `/search`. What follows is the path below the base URL that the
//! provider's own clients are given. Some of them want a version in their base URL and some do not, and Google's write
//! `v1beta`: all spellings are taken, with and without a trailing slash.

use super::table::{ANY, Api, Entry, TABLE, Version};
use crate::provider::wire::{Dialect, anthropic_messages, bedrock_converse, gemini, ollama, openai_chat};
use crate::transport::Service;
use axum::http::HeaderMap;

/// Where the model is, with the version that OpenAI's clients want in their base URL.
pub(crate) const MODEL_MOUNT: &str = "/model/v1";
/// Where the search service is.
pub(crate) const SEARCH_MOUNT: &str = "/search";
/// Where the servers of `ragcheck mcp-record` are, each by its name.
pub(crate) const MCP_MOUNT: &str = "mcp";
/// Beginnings of paths that no version stands before.
const OWN_ROOTS: [&str; 3] = ["/api/", "/v2/", "/model/"];
/// What may stand between the mount and the path of the table: versions, and what Groq's clients write before theirs.
const VERSIONS: [&str; 4] = ["/v1", "/v1beta", "/v1alpha", "/openai/v1"];

/// What one request asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    /// Who it is for.
    pub service: Service,
    pub method: &'static str,
    /// How it is read and compared.
    pub api: Api,
    /// The path below the provider's base URL, query included.
    pub path: String,
}

/// A service beside the model and the search service, mounted at its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) service: Service,
    /// What is served below its name.
    pub(crate) serves: Serves,
}

/// What is served at a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serves {
    /// What the table has for a model.
    Models,
    /// What the table has for a search service.
    Searches,
    /// Any path and any method.
    Anything,
    /// Messages to an MCP server.
    Mcp,
}

/// The route of a request with this method and path; `None` when nothing is served there.
pub(super) fn route(
    mounts: &[Mount],
    (method, path): (&str, &str),
    query: Option<&str>,
    headers: &HeaderMap,
) -> Option<Route> {
    let (name, rest) = path.strip_prefix('/')?.split_once('/').unwrap_or((path.strip_prefix('/')?, ""));
    let mount = mounts.iter().find(|mount| mount.service.as_str() == name);
    let method = METHODS.into_iter().find(|known| *known == method)?;
    let any = |service: Service, api: Api, path: String| Some(Route { service, method, api, path });
    let with_query = |path: String| query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
    let searches = match mount.map(|mount| mount.serves) {
        Some(Serves::Mcp) => return any(mount?.service, Api::Mcp, "/".to_owned()),
        Some(Serves::Anything) => return any(mount?.service, Api::Exact, with_query(format!("/{rest}"))),
        Some(serves) => serves == Serves::Searches,
        None if name == MCP_MOUNT && is_server_name(rest) => {
            return any(Service::declared(rest), Api::Mcp, "/".to_owned());
        }
        None if path.starts_with("/model/") => false,
        None if path.starts_with("/search/") => true,
        None => return None,
    };
    let rest = path.get(name.len() + 1..)?;
    let unversioned = without_version(rest.trim_end_matches('/'));
    let entry = TABLE.iter().find(|entry| {
        let by_method = entry.method == method || entry.method == ANY;
        (entry.service == Service::Search) == searches && by_method && fits(entry.path, unversioned)
    })?;
    let versioned = entry.version == Version::V1 || entry.version == Version::OfClient && writes_version(headers);
    let path = with_query(format!("{}{unversioned}", if versioned { "/v1" } else { "" }));
    let service = mount.map_or(entry.service, |mount| mount.service);
    Some(Route { service, method, api: entry.api, path })
}

/// Whether `ragcheck mcp-record` may have a server of that name.
pub(crate) fn is_server_name(name: &str) -> bool {
    let sound = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=60).contains(&name.len()) && name.chars().all(sound)
}

/// Whether a client writes `/v1` into its paths because its base URL has no version: Anthropic's and Cohere's.
fn writes_version(headers: &HeaderMap) -> bool {
    let cohere = |name: &axum::http::HeaderValue| name.as_bytes() == b"cohere";
    headers.contains_key("anthropic-version") || headers.get("x-fern-sdk-name").is_some_and(cohere)
}

/// Methods that are served.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// The methods by which a path is served.
pub(super) fn methods(mounts: &[Mount], path: &str, headers: &HeaderMap) -> Vec<&'static str> {
    METHODS.into_iter().filter(|method| route(mounts, (method, path), None, headers).is_some()).collect()
}

/// The path behind its versions; a client may write its own behind that of its base URL.
fn without_version(path: &str) -> &str {
    let without = |path| {
        let below = |version: &&str| str::strip_prefix(path, *version).filter(|rest| rest.starts_with('/'));
        VERSIONS.iter().find_map(below).unwrap_or(path)
    };
    without(without(path))
}

/// The dialect in whose shape a client expects errors, whether or not what it asks for is served: by the headers that
/// its libraries send with every request, else by the path.
pub(super) fn client_dialect(path: &str, headers: &HeaderMap) -> &'static Dialect {
    let below = path.trim_end_matches('/');
    let google = |name: &str| name.starts_with("x-goog-");
    if headers.contains_key("anthropic-version") || below.contains("/messages") {
        anthropic_messages::DIALECT
    } else if headers.keys().any(|name| google(name.as_str())) || below.contains("/models/") && below.contains(':') {
        gemini::DIALECT
    } else if headers.contains_key("amz-sdk-request")
        || ["/converse", "/converse-stream"].iter().any(|end| below.ends_with(end))
    {
        bedrock_converse::DIALECT
    } else if below.contains("/api/") {
        ollama::DIALECT
    } else {
        openai_chat::DIALECT
    }
}

/// What is served, for messages.
pub(super) fn served(mounts: &[Mount]) -> String {
    let shown = |entry: &Entry| {
        let mount = match entry.service {
            Service::Search => SEARCH_MOUNT,
            _ if entry.path.starts_with("/models/*:") => "/model/v1beta",
            _ if OWN_ROOTS.iter().any(|root| entry.path.starts_with(root)) => "/model",
            _ => MODEL_MOUNT,
        };
        let method = if entry.method == ANY { String::new() } else { format!("{} ", entry.method) };
        format!("{method}{mount}{}", entry.path)
    };
    let declared = mounts.iter().map(|mount| {
        let same = match mount.serves {
            Serves::Models => "what is below /model",
            Serves::Searches => "what is below /search",
            Serves::Anything => "anything",
            Serves::Mcp => "an MCP server",
        };
        format!("{same} below /{}", mount.service.as_str())
    });
    TABLE.iter().map(shown).chain(declared).collect::<Vec<_>>().join(", ")
}

/// The mounts, if a path is below none of them.
pub(super) fn lost_mount(mounts: &[Mount], path: &str) -> Option<String> {
    let declared = mounts.iter().map(|mount| mount.service.as_str());
    let known: Vec<&str> = ["model", "search"].into_iter().chain(declared).collect();
    let first = path.split('/').nth(1).unwrap_or_default();
    (!known.contains(&first)).then(|| known.iter().map(|name| format!("/{name}")).collect::<Vec<_>>().join(", "))
}

/// Whether a path fits a pattern: segment by segment, `*` in a segment for any text, without a trailing slash.
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
    use crate::provider::wire::embeddings_shapes::{COHERE, GOOGLE, OLLAMA, OPENAI};
    use crate::trial::proxy::table::{AGENT, CHAT, CHAT_OF_OLLAMA, CONVERSE, GEMINI, MESSAGES, RESPONSES};

    fn route(method: &str, path: &str, query: Option<&str>) -> Option<Route> {
        super::route(&[], (method, path), query, &HeaderMap::new())
    }

    #[test]
    fn a_named_provider_serves_what_its_kind_of_service_does_and_a_declared_service_anything() {
        let mounts = [
            Mount { service: Service::provider("claude"), serves: Serves::Models },
            Mount { service: Service::provider("web"), serves: Serves::Searches },
            Mount { service: Service::declared("shelf"), serves: Serves::Anything },
        ];
        let found = |method: &str, path: &str| super::route(&mounts, (method, path), Some("x=1"), &HeaderMap::new());
        for (path, api, below) in [
            ("/claude/v1/messages", MESSAGES, "/v1/messages?x=1"),
            ("/claude/messages/", MESSAGES, "/v1/messages?x=1"),
            ("/claude/v1/chat/completions", CHAT, "/chat/completions?x=1"),
            ("/claude/v1/embeddings", Api::Embeddings(&OPENAI), "/embeddings?x=1"),
            ("/claude/model/m/converse", CONVERSE, "/model/m/converse?x=1"),
            ("/web/v1/responses", AGENT, "/v1/responses?x=1"),
            ("/shelf/v1/messages", Api::Exact, "/v1/messages?x=1"),
            ("/shelf", Api::Exact, "/?x=1"),
        ] {
            let route = found("POST", path).expect(path);
            assert_eq!(
                (route.service.as_str(), route.api, route.path.as_str()),
                (path[1..].split('/').next().expect("a name"), api, below)
            );
        }
        assert_eq!(found("DELETE", "/shelf/1").map(|route| route.method), Some("DELETE"));
        for path in ["/claude", "/claude/search", "/web/messages", "/claudia/v1/messages"] {
            assert_eq!(found("POST", path), None, "{path}");
        }
        assert_eq!(found("POST", "/model/v1/messages").map(|route| route.service), Some(Service::Model));
        let listed = served(&mounts);
        for part in ["what is below /model below /claude", "what is below /search below /web", "anything below /shelf"]
        {
            assert!(listed.contains(part), "{listed}");
        }
    }

    #[test]
    fn both_spellings_of_a_base_url_lead_to_the_same_path_with_a_trailing_slash_too() {
        for (path, service, below) in [
            ("/model/v1/chat/completions", Service::Model, "/chat/completions"),
            ("/model/chat/completions", Service::Model, "/chat/completions"),
            ("/model/v1/openai/v1/chat/completions", Service::Model, "/chat/completions"),
            ("/model/v1/v1/chat/completions", Service::Model, "/chat/completions"),
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
            ("/model/v1/embeddings", Service::Embeddings, Api::Embeddings(&OPENAI), "/embeddings"),
            (
                "/model/v1beta/models/e:embedContent",
                Service::Embeddings,
                Api::Embeddings(&GOOGLE),
                "/models/e:embedContent",
            ),
            (
                "/model/v1beta/models/e:batchEmbedContents",
                Service::Embeddings,
                Api::Embeddings(&GOOGLE),
                "/models/e:batchEmbedContents",
            ),
            ("/model/model/m%3A0/converse-stream", Service::Model, CONVERSE, "/model/m%3A0/converse-stream"),
            ("/model/api/chat", Service::Model, CHAT_OF_OLLAMA, "/api/chat"),
            ("/model/api/generate/", Service::Model, CHAT_OF_OLLAMA, "/api/generate"),
            ("/model/api/show", Service::Model, Api::Exact, "/api/show"),
            ("/model/v2/embed", Service::Embeddings, Api::Embeddings(&COHERE), "/v2/embed"),
            ("/model/v1/embed", Service::Embeddings, Api::Embeddings(&COHERE), "/v1/embed"),
            ("/model/api/embed", Service::Embeddings, Api::Embeddings(&OLLAMA), "/api/embed"),
            ("/model/v1/api/embeddings", Service::Embeddings, Api::Embeddings(&OLLAMA), "/api/embeddings"),
            ("/model/embeddings/", Service::Embeddings, Api::Embeddings(&OPENAI), "/embeddings"),
        ] {
            let found = route("POST", path, None).expect(path);
            assert_eq!((found.service, found.api, found.path.as_str()), (service, api, below), "{path}");
            assert_eq!(
                route("GET", path, None).map(|found| found.api).filter(|api| *api != Api::Exact),
                None,
                "{path}"
            );
        }
        assert_eq!(Api::Embeddings(&OPENAI).profile().name, "openai-embeddings");
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
            ("/model/api/pull", &none, ollama::DIALECT),
            ("/model/model/m%3A0/converse", &none, bedrock_converse::DIALECT),
            ("/model/model/m/invoke", &with("amz-sdk-request"), bedrock_converse::DIALECT),
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
        for (name, value) in [("anthropic-version", "2023-06-01"), ("x-fern-sdk-name", "cohere")] {
            let headers = HeaderMap::from_iter([(name.parse().expect("a name"), value.parse().expect("text"))]);
            let one = super::route(&[], ("GET", "/model/v1/models/m-1"), Some("limit=2"), &headers).expect("a route");
            assert_eq!(one.path, "/v1/models/m-1?limit=2", "{name}");
        }
        assert_eq!(route("POST", "/model/v1/models", None), None);
        assert_eq!(route("GET", "/model/v1/models/", None).map(|found| found.path).as_deref(), Some("/models"));
    }

    #[test]
    fn answers_and_conversations_that_openai_keeps_are_served_by_every_method_and_compared_exactly() {
        for (method, path) in [
            ("GET", "/responses/resp_1"),
            ("POST", "/responses/resp_1/cancel"),
            ("GET", "/responses/resp_1/input_items"),
            ("POST", "/conversations"),
            ("DELETE", "/conversations/conv_1"),
            ("POST", "/conversations/conv_1/items"),
            ("GET", "/conversations/conv_1/items/msg_1"),
        ] {
            let found = route(method, &format!("/model/v1{path}"), None).expect(path);
            assert_eq!((found.method, found.api, found.path.as_str()), (method, Api::Exact, path));
        }
        assert_eq!(route("GET", "/model/v1/conversations", None), None);
    }

    #[test]
    fn nothing_else_is_served_and_the_list_for_messages_is_the_table() {
        for path in [
            "/",
            "/model",
            "/modelx/chat/completions",
            "/model/v1/v1/v1/chat/completions",
            "/model/v1/audio/speech",
            "/model/v1beta/models/gemini-3:predict",
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
            "POST /model/v1/responses, /model/v1/responses/*,",
            "POST /model/v1/messages",
            "POST /model/v1beta/models/*:streamGenerateContent",
            "POST /model/v1/embeddings",
            "POST /model/v2/embed",
            "POST /model/api/embed",
            "POST /model/v1beta/models/*:embedContent",
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
