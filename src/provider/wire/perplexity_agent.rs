//! Dialect of Perplexity's Agent API, for a search service or a chat model; the base URL is
//! `https://api.perplexity.ai`.
//!
//! It uses the items of Responses, with a model, a chain of models or a preset. Its additional items are kept but not
//! decoded: the answer is the text of its messages.

use super::{Dialect, UNCOMPARED, ending, openai_responses as responses};
use crate::cassette::Profile;

/// The dialect's name.
pub(super) const NAME: &str = "perplexity-agent";

/// Path of its endpoint, below the base URL.
pub const ENDPOINT: &str = "/v1/agent";

/// The host that uses this dialect at OpenAI's paths.
pub(super) const HOST: &str = "api.perplexity.ai";

/// How its requests are compared.
pub static PROFILE: Profile = Profile { name: NAME, version: 1, drop: UNCOMPARED, layout: &responses::LAYOUT };

/// The dialect.
pub const DIALECT: &Dialect = &Dialect {
    about: "Perplexity's Agent API: a search service, or a chat model; the base URL is `https://api.perplexity.ai`.",
    profile: &PROFILE,
    proxied: false,
    searches: true,
    path: |_, _| ENDPOINT.to_owned(),
    own_host: Some(HOST),
    endpoint: |host, path| {
        if host != HOST {
            return ending(path, ENDPOINT);
        }
        Some(path).filter(|path| [ENDPOINT, "/v1/responses", "/search"].contains(path))
    },
    decode_request: |_, body| responses::decode(NAME, body),
    encode: |request, tools| responses::encode(NAME, request, tools),
    decode_response: |body| responses::reply(NAME, body),
    ..*responses::DIALECT
};
