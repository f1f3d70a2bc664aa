//! The wire formats of chat models, as pure translation: no I/O, no waiting, no retry.
//!
//! Each file is one [`Dialect`], and all have the same shape: its declarations (name, authentication, paths, members
//! ignored when requests are compared), `decode_request`, `encode_request`, `decode_response`, `Assembler`. Decoding
//! extracts the neutral fields and keeps the rest ([`crate::provider::chat::Passthrough`]) with the positions of what
//! was extracted; encoding puts the fields back. So a decoded document is encoded unchanged, and a document with
//! changed fields differs only in these. What is kept is sent back only in its own dialect.
//!
//! `passthrough` restores the positions, `document` reads JSON with readable errors, `error` classifies error bodies,
//! `framing` cuts streams into events and `assembler` assembles them, `route` finds the dialect of an address, `perplexity` decodes answers of a search
//! service, `embeddings` and `embeddings_shapes` are separate because their results are vectors, `nuclia_ask` because it has a question and no
//! conversation.

pub(crate) mod answer;
pub(crate) mod assembler;
mod call_ids;
mod document;
mod error;
pub(crate) mod framing;
pub(crate) mod hosted;
mod passthrough;

pub mod anthropic_messages;
mod anthropic_messages_blocks;
mod anthropic_messages_stream;
pub(crate) mod bedrock_converse;
mod bedrock_converse_blocks;
pub mod embeddings;
pub(crate) mod embeddings_shapes;
pub mod gemini;
mod gemini_parts;
mod gemini_stream;
pub(crate) mod nuclia_ask;
mod nuclia_ask_answer;
pub(crate) mod ollama;
pub mod openai_chat;
mod openai_chat_answer;
mod openai_chat_legacy;
mod openai_chat_stream;
mod openai_chat_tools;
pub mod openai_responses;
mod openai_responses_items;
mod openai_responses_stream;
pub(crate) mod perplexity;
pub mod perplexity_agent;
pub mod perplexity_sonar;
pub(crate) mod route;

pub(crate) use assembler::Assembler;
pub(crate) use call_ids::continue_ids;
pub use document::WireError;
pub(super) use error::reported;
pub use error::{error_kind, error_message};
pub(crate) use error::{is_unfinished, reported_kind};
pub(crate) use openai_responses_items::built_in;
pub(crate) use passthrough::arguments_object;

use super::mcp::MCP;
use crate::cassette::Profile;
use crate::provider::chat::{ChatRequest, ChatResponse, Message};
use crate::settings::catalogue::DialectEntry;
use crate::settings::{Auth, Quirks};
use serde_json::{Map, Value, json};
use std::fmt;

/// Lists the dialects: one line each, beside its `mod` line.
macro_rules! dialects {
    ($($file:ident),+ $(,)?) => {
        static DIALECTS: &[&Dialect] = &[$($file::DIALECT),+];
    };
}

// In the order of reports; the first is assumed for a model's answer whose request names no dialect.
dialects! {
    openai_chat,
    openai_responses,
    anthropic_messages,
    gemini,
    ollama,
    bedrock_converse,
    perplexity_agent,
    perplexity_sonar,
}

/// Members that vary between calls and do not affect the answer, under the names that most dialects use.
const UNCOMPARED: &[&str] =
    &["/user", "/metadata", "/safety_identifier", "/prompt_cache_key", "/stream_options/include_obfuscation"];

/// A wire format.
pub struct Dialect {
    /// Description in one sentence, with its base URL.
    pub about: &'static str,
    /// How its requests are compared.
    pub profile: &'static Profile,
    /// How its servers expect the key.
    pub auth: Auth,
    /// Headers sent with every request, with or without a key.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether it is the dialect of a search service, so that a scenario may name it as its `search`.
    pub searches: bool,
    /// Whether the proxy accepts it for model requests of external agents.
    pub proxied: bool,
    /// Whether its service was shut down: it is decoded in old recordings, and no provider can declare it.
    pub retired: bool,
    /// The only host that uses it at paths which belong to other dialects elsewhere.
    pub own_host: Option<&'static str>,
    /// How its streams are cut into events.
    pub framing: framing::Framing,
    path: fn(&str, bool) -> String,
    endpoint: for<'a> fn(&str, &'a str) -> Option<&'a str>,
    decode_request: fn(&str, &Value) -> Result<ChatRequest, WireError>,
    encode: fn(&ChatRequest, Option<Value>) -> Value,
    asks_for_stream: fn(&str, &Value) -> bool,
    ask_for_stream: fn(&mut Map<String, Value>),
    /// Adapts a request's body to a server, for quirks specific to this dialect.
    pub apply_quirks: fn(&Quirks, &mut Map<String, Value>),
    decode_response: fn(&Value) -> Result<ChatResponse, WireError>,
    encode_error: fn(u16, &str, &str) -> Value,
    assembler: fn() -> Assembler,
}

/// What a dialect has in common with Chat Completions, unless it says otherwise.
const USUAL: Dialect = Dialect {
    proxied: false,
    ask_for_stream: |fields| _ = fields.insert("stream".to_owned(), json!(true)),
    apply_quirks: |_, _| {},
    ..*openai_chat::DIALECT
};

impl Dialect {
    /// Name in `ragcheck.yaml`, cassettes and messages.
    pub fn name(&self) -> &'static str {
        self.profile.name
    }

    /// The path below the base URL that the provider's own client libraries use.
    pub fn path(&self, model: &str, stream: bool) -> String {
        (self.path)(model, stream)
    }

    /// The part of an address's path that our own requests use, if the address belongs to this dialect.
    pub fn endpoint<'a>(&self, host: &str, path: &'a str) -> Option<&'a str> {
        (self.endpoint)(host, path)
    }

    /// Decodes the body of a request sent to `path`.
    ///
    /// # Errors
    /// [`WireError`] with the member that does not match the dialect.
    pub fn decode_request(&self, path: &str, body: &Value) -> Result<ChatRequest, WireError> {
        (self.decode_request)(path, body)
    }

    /// Encodes a request's body; `tools` is the list from an earlier body with the same definitions. Encoding them
    /// is half of the work, and they are the same in every request of a conversation.
    pub fn encode_again(&self, request: &ChatRequest, tools: Option<Value>) -> Value {
        (self.encode)(request, tools)
    }

    /// Encodes a request's body.
    #[cfg_attr(front_door_only, expect(dead_code, reason = "tests and benches use it"))]
    pub fn encode_request(&self, request: &ChatRequest) -> Value {
        (self.encode)(request, None)
    }

    /// Whether a request asks for its answer in pieces.
    pub fn asks_for_stream(&self, path: &str, body: &Value) -> bool {
        (self.asks_for_stream)(path, body)
    }

    /// Asks for a stream in the body of a request.
    pub fn ask_for_stream(&self, fields: &mut Map<String, Value>) {
        (self.ask_for_stream)(fields);
    }

    /// Decodes a whole response, including one from an `Assembler`.
    ///
    /// # Errors
    /// [`WireError`] with the error that the response reports, or the member that does not match the dialect.
    pub fn decode_response(&self, body: &Value) -> Result<ChatResponse, WireError> {
        (self.decode_response)(body)
    }

    /// Writes the body of an error of our own, for a client of this dialect: an HTTP status, a machine-readable code and a
    /// sentence.
    pub fn encode_error(&self, status: u16, code: &str, message: &str) -> Value {
        (self.encode_error)(status, code, message)
    }

    /// An assembler for one stream.
    pub fn assembler(&self) -> Assembler {
        (self.assembler)()
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Dialect {}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `end`, if `path` ends with it.
fn ending<'a>(path: &'a str, end: &str) -> Option<&'a str> {
    path.ends_with(end).then(|| &path[path.len() - end.len()..])
}

/// All dialects, in the order of reports.
pub fn dialects() -> impl Iterator<Item = &'static Dialect> {
    DIALECTS.iter().copied()
}

/// Whether a tool's result says, in a member of the dialect that it was sent in, that the tool failed.
pub(crate) fn is_failed_result(message: &Message) -> bool {
    anthropic_messages_blocks::is_failed(message) || bedrock_converse_blocks::is_failed(message)
}

/// Passages that a message holds beside its text, in parts of its dialect, as objects with `id`, `title` and `text`.
pub(crate) fn attached_passages(message: &Message) -> Vec<Value> {
    let mut found = anthropic_messages_blocks::passages(message);
    found.extend(bedrock_converse_blocks::passages(message));
    found
}

/// The dialect of that name.
pub fn by_name(name: &str) -> Option<&'static Dialect> {
    dialects().find(|dialect| dialect.name() == name)
}

/// The matching profile of that name, if this build has it.
pub(crate) fn known_profile(name: &str) -> Option<&'static Profile> {
    let of_service = || super::json_service::profile_of_service(name).or((name == MCP.name).then_some(&MCP));
    by_name(name).map(|dialect| dialect.profile).or_else(of_service)
}

/// Declarations of the dialects that a provider can use.
pub(crate) fn entries() -> Vec<DialectEntry> {
    let declarable = dialects().filter(|dialect| !dialect.retired);
    declarable
        .map(|dialect| DialectEntry {
            name: dialect.name(),
            about: dialect.about,
            searches: dialect.searches,
            proxied: dialect.proxied,
        })
        .collect()
}

#[cfg(test)]
mod tests;
