//! The wire formats of chat models, as pure translation: no I/O, no waiting, no retry.
//!
//! One file a dialect, and all have one shape: `decode_request`, `encode_request`, `decode_response`, `Assembler`.
//! Decoding takes out the neutral words and keeps the rest ([`crate::chat::Passthrough`]) around the places where they stood;
//! encoding puts the words back. So a document that was read is written again as it was, and a document whose words
//! were changed in between differs in these words only. What is kept goes back to its own dialect and to no other.
//!
//! [`Dialect`] chooses among the files by value. `passthrough` fills the places again, `document` reads JSON with messages
//! for people, `error` sorts error bodies, `embeddings` stands apart because its words are vectors.

mod call_ids;
mod document;
mod error;
#[cfg(test)]
mod laws;
mod passthrough;

pub mod anthropic_messages;
mod anthropic_messages_stream;
pub mod embeddings;
pub mod gemini;
mod gemini_parts;
mod gemini_stream;
pub mod openai_chat;
mod openai_chat_legacy;
mod openai_chat_stream;
pub mod openai_responses;
mod openai_responses_items;
mod openai_responses_stream;
pub mod perplexity;
pub mod route;

pub use crate::settings::Dialect;
pub use call_ids::continue_ids;
pub use document::WireError;
pub use error::{error_kind, error_message};

use crate::chat::{ChatRequest, ChatResponse};
use crate::transport::sse::Event;
use serde_json::Value;

impl Dialect {
    /// The path below the base URL that the provider's own client libraries use.
    pub fn path(self, model: &str, stream: bool) -> String {
        match self {
            Self::OpenAiChat | Self::PerplexitySonar => "/chat/completions".to_owned(),
            Self::OpenAiResponses => "/responses".to_owned(),
            Self::AnthropicMessages => "/v1/messages".to_owned(),
            Self::Gemini => gemini::path(model, stream),
            Self::PerplexityAgent => "/v1/agent".to_owned(),
        }
    }

    /// Reads a request that was sent to `path`; Gemini's model stands only there, and Azure's.
    pub fn decode_request(self, path: &str, body: &Value) -> Result<ChatRequest, WireError> {
        match self {
            Self::OpenAiChat => {
                let mut request = openai_chat::decode_request(body)?;
                if request.model.is_empty() {
                    route::deployment(path).unwrap_or_default().clone_into(&mut request.model);
                }
                Ok(request)
            }
            Self::OpenAiResponses => openai_responses::decode_request(body),
            Self::AnthropicMessages => anthropic_messages::decode_request(body),
            Self::Gemini => {
                let mut request = gemini::decode_request(body)?;
                gemini::model_of(path).unwrap_or_default().clone_into(&mut request.model);
                Ok(request)
            }
            Self::PerplexityAgent => perplexity::decode_request(body),
            Self::PerplexitySonar => perplexity::decode_sonar_request(body),
        }
    }

    /// Writes a request's body.
    pub fn encode_request(self, request: &ChatRequest) -> Value {
        self.encode_again(request, None)
    }

    /// Writes a request's body; `tools` is what an earlier body has under that name, with the same definitions. To write
    /// them is half of the work, and they are the same in every request of a conversation.
    pub fn encode_again(self, request: &ChatRequest, tools: Option<Value>) -> Value {
        match self {
            Self::OpenAiChat => openai_chat::encode_request(request, tools),
            Self::OpenAiResponses => openai_responses::encode_request(request, tools),
            Self::AnthropicMessages => anthropic_messages::encode_request(request, tools),
            Self::Gemini => gemini::encode_request(request, tools),
            Self::PerplexityAgent => perplexity::encode_request(request, tools),
            Self::PerplexitySonar => perplexity::encode_sonar_request(request, tools),
        }
    }

    /// Reads a whole response, one that an [`Assembler`] put together included.
    pub fn decode_response(self, body: &Value) -> Result<ChatResponse, WireError> {
        match self {
            Self::OpenAiChat => openai_chat::decode_response(body),
            Self::OpenAiResponses => openai_responses::decode_response(body),
            Self::AnthropicMessages => anthropic_messages::decode_response(body),
            Self::Gemini => gemini::decode_response(body),
            Self::PerplexityAgent => perplexity::decode_response(body),
            Self::PerplexitySonar => perplexity::decode_sonar_response(body),
        }
    }

    /// An assembler for one stream.
    pub fn assembler(self) -> Assembler {
        match self {
            Self::OpenAiChat | Self::PerplexitySonar => Assembler::Chat(openai_chat::Assembler::default()),
            Self::OpenAiResponses | Self::PerplexityAgent => Assembler::Items(openai_responses::Assembler::default()),
            Self::AnthropicMessages => Assembler::Blocks(anthropic_messages::Assembler::default()),
            Self::Gemini => Assembler::Candidates(gemini::Assembler::default()),
        }
    }
}

/// Adds the events of a stream up to the document that an answer without streaming would have been.
#[derive(Debug)]
pub enum Assembler {
    /// Chunks of choices.
    Chat(openai_chat::Assembler),
    /// Output items.
    Items(openai_responses::Assembler),
    /// Content blocks.
    Blocks(anthropic_messages::Assembler),
    /// Candidates of parts.
    Candidates(gemini::Assembler),
}

impl Assembler {
    /// Takes the next event; an error that the provider reports within the stream is the error.
    pub fn push(&mut self, event: &Event) -> Result<(), WireError> {
        if event.data.trim() == "[DONE]" {
            if let Self::Chat(chat) = self {
                chat.done();
            }
            return Ok(());
        }
        let data: Value = serde_json::from_str(&event.data).map_err(|error| WireError::NotJson {
            message: format!("the event at byte {} of the stream: {error}", event.bytes.start),
        })?;
        if let Self::Chat(chat) = self
            && let Some(message) = error::filtered(&data)
        {
            chat.filtered(&message);
            return Ok(());
        }
        if let Some(reported) = error::reported(&data) {
            return Err(reported);
        }
        match self {
            Self::Chat(chat) => chat.push(&data),
            Self::Items(items) => items.push(&data),
            Self::Blocks(blocks) => blocks.push(&data),
            Self::Candidates(candidates) => candidates.push(&data),
        }
        Ok(())
    }

    /// Whether the stream said that it ended; only such a stream may be recorded or believed.
    pub fn complete(&self) -> bool {
        match self {
            Self::Chat(chat) => chat.complete(),
            Self::Items(items) => items.complete(),
            Self::Blocks(blocks) => blocks.complete(),
            Self::Candidates(candidates) => candidates.complete(),
        }
    }

    /// The document so far.
    pub fn document(self) -> Value {
        match self {
            Self::Chat(chat) => chat.document(),
            Self::Items(items) => items.document(),
            Self::Blocks(blocks) => blocks.document(),
            Self::Candidates(candidates) => candidates.document(),
        }
    }
}
