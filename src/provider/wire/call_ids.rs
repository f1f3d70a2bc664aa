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
    /// The id of the next call of this name: the given one, otherwise a generated one.
    pub(super) fn of_call(&mut self, name: &str, given: Option<String>) -> String {
        let id = given.unwrap_or_else(|| {
            self.count += 1;
            format!("{name}#{}", self.count - 1)
        });
        self.open.push((name.to_owned(), id.clone()));
        id
    }

    /// The id of the call that a result answers: the given one, otherwise that of the oldest unanswered call of this name,
    /// as clients may leave out an id that the call has; the name itself if there is none.
    pub(super) fn of_result(&mut self, name: &str, given: Option<String>) -> String {
        let answered = self.open.iter().position(|(open, id)| match &given {
            Some(given) => id == given,
            None => open == name,
        });
        let id = answered.map(|place| self.open.remove(place).1);
        given.or(id).unwrap_or_else(|| name.to_owned())
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

    #[test]
    fn a_result_without_an_id_answers_the_oldest_unanswered_call_of_its_name_whether_that_has_one_or_not() {
        let mut ids = CallIds::default();
        assert_eq!(ids.of_call("f", Some("a".to_owned())), "a");
        assert_eq!(ids.of_call("f", Some("b".to_owned())), "b");
        assert_eq!(ids.of_call("f", None), "f#0");
        assert_eq!(ids.of_result("f", Some("b".to_owned())), "b");
        assert_eq!((ids.of_result("f", None), ids.of_result("f", None)), ("a".to_owned(), "f#0".to_owned()));
        assert_eq!(
            (ids.of_result("f", None), ids.of_result("g", Some("c".to_owned()))),
            ("f".to_owned(), "c".to_owned())
        );
    }
}
