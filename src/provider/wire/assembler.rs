//! Streams, added up to the document that an answer without streaming would have been.

use super::document::WireError;
use super::error;
use crate::transport::sse::Event;
use serde_json::Value;
use std::fmt::Debug;

/// How one dialect adds the events of a stream up.
pub trait Assemble: Debug + Send {
    /// Takes the next event's data.
    fn push(&mut self, data: &Value);
    /// Takes the marker `[DONE]`, with which some dialects end.
    fn done(&mut self) {}
    /// Takes an event in which a content filter says that it stopped the answer; false where the dialect has none.
    fn filtered(&mut self, _message: &str) -> bool {
        false
    }
    /// Whether the stream said that it ended.
    fn complete(&self) -> bool;
    /// The document so far.
    fn document(&mut self) -> Value;
}

/// Adds the events of one stream up, whatever its dialect.
#[derive(Debug)]
pub struct Assembler(Box<dyn Assemble>);

impl Assembler {
    /// For a stream of the dialect that `events` adds up.
    pub fn of(events: impl Assemble + 'static) -> Self {
        Self(Box::new(events))
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The error that the provider reports within the stream, or an event that is not JSON.
    pub fn push(&mut self, event: &Event) -> Result<(), WireError> {
        if event.data.trim() == "[DONE]" {
            self.0.done();
            return Ok(());
        }
        let data: Value = serde_json::from_str(&event.data).map_err(|error| WireError::NotJson {
            message: format!("the event at byte {} of the stream: {error}", event.bytes.start),
        })?;
        if error::filtered(&data).is_some_and(|message| self.0.filtered(&message)) {
            return Ok(());
        }
        if let Some(reported) = error::reported(&data) {
            return Err(reported);
        }
        self.0.push(&data);
        Ok(())
    }

    /// Whether the stream said that it ended; only such a stream may be recorded or believed.
    pub fn complete(&self) -> bool {
        self.0.complete()
    }

    /// The document so far.
    pub fn document(mut self) -> Value {
        self.0.document()
    }
}
