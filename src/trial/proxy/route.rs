//! From a path to a service, a dialect and the path below the provider's base URL.
//!
//! The model is mounted at `/model/v1`, whose remainder is the path below the base URL of an OpenAI-compatible
//! provider, the search service at `/search`. Some clients want a version in their base URL and some do not: both
//! spellings are taken.

use crate::provider::wire::{Dialect, openai_chat, perplexity_agent, perplexity_sonar};
use crate::transport::Service;

/// Where the model is, with the version that OpenAI's clients want in their base URL.
pub const MODEL_MOUNT: &str = "/model/v1";
/// Where the search service is.
pub const SEARCH_MOUNT: &str = "/search";

/// What one request asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    /// Who it is for.
    pub service: Service,
    /// The dialect.
    pub dialect: &'static dyn Dialect,
    /// The path below the provider's base URL, query included.
    pub path: String,
}

/// The route of a path with its query; `None` when nothing is served there.
pub(super) fn route(path: &str, query: Option<&str>) -> Option<Route> {
    let below = |mount: &str| path.strip_prefix(mount).filter(|rest| rest.starts_with('/'));
    let unversioned = |rest: &str| rest.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).map(str::to_owned);
    let (service, dialect, path) = if let Some(rest) = below("/model") {
        let rest = unversioned(rest).unwrap_or_else(|| rest.to_owned());
        (rest == "/chat/completions" || is_deployment(&rest)).then_some((Service::Model, openai_chat::DIALECT, rest))?
    } else {
        let rest = below(SEARCH_MOUNT)?;
        match unversioned(rest).as_deref().unwrap_or(rest) {
            "/agent" => (Service::Search, perplexity_agent::DIALECT, "/v1/agent".to_owned()),
            "/responses" => (Service::Search, perplexity_agent::DIALECT, "/v1/responses".to_owned()),
            "/search" => (Service::Search, perplexity_agent::DIALECT, "/search".to_owned()),
            "/chat/completions" => (Service::Search, perplexity_sonar::DIALECT, "/chat/completions".to_owned()),
            _ => return None,
        }
    };
    let path = query.map_or(path.clone(), |query| format!("{path}?{query}"));
    Some(Route { service, dialect, path })
}

/// Whether a path is that of Azure's clients, which name the model in it.
fn is_deployment(path: &str) -> bool {
    let name = path.strip_prefix("/openai/deployments/").and_then(|rest| rest.strip_suffix("/chat/completions"));
    name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// What is served, for messages.
pub(super) const SERVED: &str = "POST /model/v1/chat/completions, /search/v1/responses, /search/v1/agent, \
                                 /search/search, /search/chat/completions";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_base_url_lead_to_the_same_path() {
        for (path, service, below) in [
            ("/model/v1/chat/completions", Service::Model, "/chat/completions"),
            ("/model/chat/completions", Service::Model, "/chat/completions"),
            ("/search/v1/responses", Service::Search, "/v1/responses"),
            ("/search/responses", Service::Search, "/v1/responses"),
            ("/search/v1/agent", Service::Search, "/v1/agent"),
            ("/search/search", Service::Search, "/search"),
            ("/search/chat/completions", Service::Search, "/chat/completions"),
        ] {
            let found = route(path, None).expect(path);
            assert_eq!((found.service, found.path.as_str()), (service, below), "{path}");
        }
        let versioned = route("/model/v1/chat/completions", Some("api-version=1")).expect("a route");
        assert_eq!(versioned.path, "/chat/completions?api-version=1");
        let azure = route("/model/openai/deployments/gpt/chat/completions", Some("api-version=1")).expect("a route");
        assert_eq!(azure.path, "/openai/deployments/gpt/chat/completions?api-version=1");
        assert_eq!(route("/model/openai/deployments/a/b/chat/completions", None), None);
    }

    #[test]
    fn what_is_not_served_has_no_route() {
        for path in
            ["/", "/model", "/modelx/chat/completions", "/model/v1/embeddings", "/search", "/v1/chat/completions"]
        {
            assert_eq!(route(path, None), None, "{path}");
        }
    }
}
