//! Generates ids for calls without one on the wire: the name and a number that counts such calls in the conversation.
//!
//! They are never sent. A result that only names its function answers the oldest unanswered call of that name.

use crate::provider::chat::{ChatRequest, ToolCall};

/// Generates ids while a conversation is decoded from its beginning.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    count: usize,
    open: Vec<(String, String)>,
}

impl CallIds {
    /// Generates the id of the next call of this name.
    pub(super) fn generate(&mut self, name: &str) -> String {
        let id = format!("{name}#{}", self.count);
        self.count += 1;
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    /// The id of the oldest unanswered call of that name; the name itself if there is none.
    pub(super) fn answer(&mut self, name: &str) -> String {
        match self.open.iter().position(|(open, _)| open == name) {
            Some(place) => self.open.remove(place).1,
            None => name.to_owned(),
        }
    }
}

/// The number in a call's id, if the id was generated here.
pub(super) fn generated(call: &ToolCall) -> Option<usize> {
    call.id.strip_prefix(call.name.as_str())?.strip_prefix('#')?.parse().ok()
}

/// Numbers the generated ids of an answer as the next request of the conversation will.
pub(crate) fn continue_ids(asked: &ChatRequest, calls: &mut [ToolCall]) {
    let before = asked.messages.iter().flat_map(|message| &message.calls).filter(|call| generated(call).is_some());
    let before = before.count();
    for call in calls {
        if let Some(number) = generated(call) {
            call.id = format!("{}#{}", call.name, before + number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::openai_chat;
    use serde_json::json;

    #[test]
    fn an_answers_calls_are_numbered_as_the_next_request_numbers_them() {
        let call = json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}});
        let said = json!({"role": "function", "name": "f", "content": "found"});
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}, call, said]});
        let read = |body: &serde_json::Value| openai_chat::DIALECT.decode_request("", body).expect("a request");
        let answer = json!({"choices": [{"finish_reason": "function_call", "message": call}]});
        let mut calls = openai_chat::DIALECT.decode_response(&answer).expect("an answer").calls;
        continue_ids(&read(&body), &mut calls);
        if let Some(messages) = body["messages"].as_array_mut() {
            messages.extend([call, said]);
        }
        let next = read(&body);
        assert_eq!(calls[0].id, "f#1");
        assert_eq!(next.messages[4].answers.as_deref(), Some("f#1"));
    }
}
