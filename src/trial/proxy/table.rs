//! Everything that the proxy serves: a table, a line for each kind of request.

use crate::provider::EXACT;
use crate::provider::mcp::MCP;
use crate::provider::wire::embeddings_shapes::{COHERE, GOOGLE, OLLAMA, OPENAI, Shape};
use crate::provider::wire::{
    Dialect, anthropic_messages, bedrock_converse, gemini, ollama, openai_chat, openai_responses, perplexity_agent,
    perplexity_sonar,
};
use crate::transport::{Profile, Service};
use Version::{InBase, OfClient, V1};

/// How a request is read and compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Api {
    Dialect(&'static Dialect),
    /// As embeddings of a shape: compared by its parts, and not read.
    Embeddings(&'static Shape),
    /// It is compared exactly, and not read.
    Exact,
    /// A message to an MCP server.
    Mcp,
}

impl Api {
    /// How requests are compared.
    pub(super) fn profile(self) -> &'static Profile {
        match self {
            Self::Dialect(dialect) => dialect.profile,
            Self::Embeddings(shape) => &shape.profile,
            Self::Exact => &EXACT,
            Self::Mcp => &MCP,
        }
    }
}

impl PartialEq for Api {
    fn eq(&self, other: &Self) -> bool {
        self.profile().name == other.profile().name
    }
}

/// One kind of request that is served.
#[derive(Debug)]
pub(super) struct Entry {
    /// The receiver, which decides the mount.
    pub(super) service: Service,
    /// The method; [`ANY`] for all.
    pub(super) method: &'static str,
    /// The path below the mount, without a version; `*` in a segment stands for any text.
    pub(super) path: &'static str,
    pub(super) api: Api,
    /// What stands before this path below the provider's base URL.
    pub(super) version: Version,
}

/// A version in a path below a provider's base URL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Version {
    /// The base URL has it, or there is none.
    InBase,
    /// The path has it.
    V1,
    /// The path has it where the client's base URL has none.
    OfClient,
}

/// Any method.
pub(super) const ANY: &str = "*";

const fn entry(service: Service, method: &'static str, path: &'static str, api: Api, version: Version) -> Entry {
    Entry { service, method, path, api, version }
}

pub(super) const CHAT: Api = Api::Dialect(openai_chat::DIALECT);
pub(super) const RESPONSES: Api = Api::Dialect(openai_responses::DIALECT);
pub(super) const MESSAGES: Api = Api::Dialect(anthropic_messages::DIALECT);
pub(super) const GEMINI: Api = Api::Dialect(gemini::DIALECT);
pub(super) const CONVERSE: Api = Api::Dialect(bedrock_converse::DIALECT);
pub(super) const CHAT_OF_OLLAMA: Api = Api::Dialect(ollama::DIALECT);
pub(super) const AGENT: Api = Api::Dialect(perplexity_agent::DIALECT);
pub(super) const SONAR: Api = Api::Dialect(perplexity_sonar::DIALECT);

/// Everything that is served. A further API is a further line.
pub(super) const TABLE: &[Entry] = &[
    entry(Service::Model, "POST", "/chat/completions", CHAT, InBase),
    entry(Service::Model, "POST", "/openai/deployments/*/chat/completions", CHAT, InBase),
    entry(Service::Model, "POST", "/responses", RESPONSES, InBase),
    entry(Service::Model, ANY, "/responses/*", Api::Exact, InBase),
    entry(Service::Model, ANY, "/responses/*/*", Api::Exact, InBase),
    entry(Service::Model, "POST", "/conversations", Api::Exact, InBase),
    entry(Service::Model, ANY, "/conversations/*", Api::Exact, InBase),
    entry(Service::Model, ANY, "/conversations/*/items", Api::Exact, InBase),
    entry(Service::Model, ANY, "/conversations/*/items/*", Api::Exact, InBase),
    entry(Service::Model, "POST", "/messages", MESSAGES, V1),
    entry(Service::Model, "POST", "/messages/count_tokens", Api::Exact, V1),
    entry(Service::Model, "POST", "/models/*:generateContent", GEMINI, InBase),
    entry(Service::Model, "POST", "/models/*:streamGenerateContent", GEMINI, InBase),
    entry(Service::Model, "POST", "/models/*:countTokens", Api::Exact, InBase),
    entry(Service::Model, "POST", "/model/*/converse", CONVERSE, InBase),
    entry(Service::Model, "POST", "/model/*/converse-stream", CONVERSE, InBase),
    entry(Service::Model, "POST", "/api/chat", CHAT_OF_OLLAMA, InBase),
    entry(Service::Model, "POST", "/api/generate", CHAT_OF_OLLAMA, InBase),
    entry(Service::Model, "POST", "/api/show", Api::Exact, InBase),
    entry(Service::Model, "GET", "/api/tags", Api::Exact, InBase),
    entry(Service::Model, "GET", "/api/version", Api::Exact, InBase),
    entry(Service::Embeddings, "POST", "/embeddings", Api::Embeddings(&OPENAI), InBase),
    entry(Service::Embeddings, "POST", "/openai/deployments/*/embeddings", Api::Embeddings(&OPENAI), InBase),
    entry(Service::Embeddings, "POST", "/models/*:embedContent", Api::Embeddings(&GOOGLE), InBase),
    entry(Service::Embeddings, "POST", "/models/*:batchEmbedContents", Api::Embeddings(&GOOGLE), InBase),
    entry(Service::Embeddings, "POST", "/embed", Api::Embeddings(&COHERE), V1),
    entry(Service::Embeddings, "POST", "/v2/embed", Api::Embeddings(&COHERE), InBase),
    entry(Service::Embeddings, "POST", "/api/embed", Api::Embeddings(&OLLAMA), InBase),
    entry(Service::Embeddings, "POST", "/api/embeddings", Api::Embeddings(&OLLAMA), InBase),
    entry(Service::Model, "GET", "/models", Api::Exact, OfClient),
    entry(Service::Model, "GET", "/models/*", Api::Exact, OfClient),
    entry(Service::Search, "POST", "/responses", AGENT, V1),
    entry(Service::Search, "POST", "/agent", AGENT, V1),
    entry(Service::Search, "POST", "/search", AGENT, InBase),
    entry(Service::Search, "POST", "/chat/completions", SONAR, InBase),
];
