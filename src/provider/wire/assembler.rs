//! Assembles a stream into the document that a non-streamed answer would have been.

use super::document::WireError;
use super::error;
use crate::platform::lenient_json;
use crate::transport::sse::Event;
use serde_json::Value;
use std::fmt::Debug;

/// Assembles the events of a stream in one dialect.
pub trait Assemble: Debug + Send {
    /// Handles the next event's data.
    fn push(&mut self, data: &Value);
    /// Handles the end marker `[DONE]` of some dialects.
    fn done(&mut self) {}
    /// Handles an event in which a content filter reports that it stopped the answer; returns false if the dialect has
    /// none.
    fn filtered(&mut self, _message: &str) -> bool {
        false
    }
    /// Whether the stream has signalled its end.
    fn complete(&self) -> bool;
    /// The document so far.
    fn document(&mut self) -> Value;
}

/// Appends a piece to a text, which begins with it if there is none.
pub(super) fn append(text: &mut Value, more: &str) {
    match text {
        Value::String(sum) => sum.push_str(more),
        other => *other = Value::from(more),
    }
}

/// Assembles the events of one stream in any dialect.
#[derive(Debug)]
pub struct Assembler {
    events: Box<dyn Assemble>,
    /// Half of an emoji whose other half the next event has.
    half: Option<String>,
}

impl Assembler {
    /// Creates an assembler for the dialect of `events`.
    pub fn of(events: impl Assemble + 'static) -> Self {
        Self { events: Box::new(events), half: None }
    }

    /// Handles the next event.
    ///
    /// # Errors
    /// The error that the provider reports within the stream, or an event that is not JSON.
    pub fn push(&mut self, event: &Event) -> Result<(), WireError> {
        if event.data.trim() == "[DONE]" {
            self.events.done();
            return Ok(());
        }
        let data = lenient_json::read_next(&event.data, &mut self.half).map_err(|error| WireError::NotJson {
            message: format!("the event at byte {} of the stream: {error}", event.bytes.start),
        })?;
        if error::filtered(&data).is_some_and(|message| self.events.filtered(&message)) {
            return Ok(());
        }
        if let Some(reported) = error::reported(&data) {
            return Err(reported);
        }
        self.events.push(&data);
        Ok(())
    }

    /// Whether the stream has signalled its end; only then may it be used or recorded.
    pub fn complete(&self) -> bool {
        self.events.complete()
    }

    /// The document so far.
    pub fn document(mut self) -> Value {
        self.events.document()
    }
}
