//! Dialect of Perplexity's chat API, retired on 27 September 2026: decoded for old recordings and compatible gateways.
//!
//! It has the format of Chat Completions with `citations` and `search_results` beside the choices; its streams repeat
//! the whole message in each chunk.

use super::assembler::Assembler;
use super::document::WireError;
use super::openai_chat_stream::Assembler as Chunks;
use super::perplexity_agent::HOST;
use super::{Dialect, UNCOMPARED, openai_chat as chat, openai_chat_answer as answer};
use crate::cassette::Profile;
use crate::provider::chat::{ChatRequest, ChatResponse};
use serde_json::Value;

/// The dialect's name.
const NAME: &str = "perplexity-sonar";

/// Path of its endpoint, below the base URL.
const ENDPOINT: &str = "/chat/completions";

static PROFILE: Profile = Profile { name: NAME, version: 1, drop: UNCOMPARED, layout: &chat::LAYOUT };

#[derive(Debug)]
struct PerplexitySonar;

/// The dialect.
pub const DIALECT: &dyn Dialect = &PerplexitySonar;

impl Dialect for PerplexitySonar {
    fn about(&self) -> &'static str {
        "Perplexity's chat API, retired on 27 September 2026: read for old recordings."
    }

    fn profile(&self) -> &'static Profile {
        &PROFILE
    }

    fn searches(&self) -> bool {
        true
    }

    fn retired(&self) -> bool {
        true
    }

    fn path(&self, _model: &str, _stream: bool) -> String {
        ENDPOINT.to_owned()
    }

    fn own_host(&self) -> Option<&'static str> {
        Some(HOST)
    }

    fn endpoint<'a>(&self, host: &str, path: &'a str) -> Option<&'a str> {
        Some(path).filter(|path| host == HOST && *path == ENDPOINT)
    }

    fn decode_request(&self, _path: &str, body: &Value) -> Result<ChatRequest, WireError> {
        chat::decode(NAME, body)
    }

    fn encode_again(&self, request: &ChatRequest, tools: Option<Value>) -> Value {
        chat::encode(NAME, request, tools)
    }

    fn decode_response(&self, body: &Value) -> Result<ChatResponse, WireError> {
        answer::read(NAME, body)
    }

    fn assembler(&self) -> Assembler {
        Assembler::of(Chunks::default())
    }

    #[cfg(test)]
    fn example(&self) -> super::laws::Example {
        chat::DIALECT.example()
    }
}
