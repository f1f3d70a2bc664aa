//! Dialect of Perplexity's Agent API, for a search service or a chat model; the base URL is
//! `https://api.perplexity.ai`.
//!
//! It uses the items of Responses, with a model, a chain of models or a preset. Its additional items are kept but not
//! decoded: the answer is the text of its messages.

use super::assembler::Assembler;
use super::document::WireError;
use super::openai_responses_stream::Assembler as Items;
use super::{Dialect, UNCOMPARED, ending, openai_responses as responses};
use crate::cassette::Profile;
use crate::provider::chat::{ChatRequest, ChatResponse};
use serde_json::Value;

/// The dialect's name.
pub(super) const NAME: &str = "perplexity-agent";

/// Path of its endpoint, below the base URL.
pub const ENDPOINT: &str = "/v1/agent";

/// The host that uses this dialect at OpenAI's paths.
pub(super) const HOST: &str = "api.perplexity.ai";

/// How its requests are compared.
pub static PROFILE: Profile = Profile { name: NAME, version: 1, drop: UNCOMPARED, layout: &responses::LAYOUT };

#[derive(Debug)]
struct PerplexityAgent;

/// The dialect.
pub const DIALECT: &dyn Dialect = &PerplexityAgent;

impl Dialect for PerplexityAgent {
    fn about(&self) -> &'static str {
        "Perplexity's Agent API: a search service, or a chat model; the base URL is `https://api.perplexity.ai`."
    }

    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn searches(&self) -> bool {
        true
    }

    fn path(&self, _model: &str, _stream: bool) -> String {
        ENDPOINT.to_owned()
    }

    fn own_host(&self) -> Option<&'static str> {
        Some(HOST)
    }

    fn endpoint<'a>(&self, host: &str, path: &'a str) -> Option<&'a str> {
        if host != HOST {
            return ending(path, ENDPOINT);
        }
        Some(path).filter(|path| [ENDPOINT, "/v1/responses", "/search"].contains(path))
    }

    fn decode_request(&self, _path: &str, body: &Value) -> Result<ChatRequest, WireError> {
        responses::decode(NAME, body)
    }

    fn encode_again(&self, request: &ChatRequest, tools: Option<Value>) -> Value {
        responses::encode(NAME, request, tools)
    }

    fn decode_response(&self, body: &Value) -> Result<ChatResponse, WireError> {
        responses::reply(NAME, body)
    }

    fn assembler(&self) -> Assembler {
        Assembler::of(Items::default())
    }

    #[cfg(test)]
    fn example(&self) -> super::laws::Example {
        responses::DIALECT.example()
    }
}
