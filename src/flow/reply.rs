//! Response of a chat service to a turn.

use super::{ConversationState, Flow};
use crate::trace::{Answer, SourceRef, TurnOutcome};
use serde_json::{Value, json};

/// The whole body for the outcome of a turn: the flow's reply or [`failed`], with `session_id`.
pub(crate) fn body(flow: &dyn Flow, conversation: &ConversationState, outcome: &TurnOutcome) -> Value {
    let mut body = match outcome {
        TurnOutcome::Answered(answer) => flow.reply(conversation, answer),
        TurnOutcome::Failed { kind, message } => failed(kind, message),
    };
    body["session_id"] = json!(conversation.session);
    body
}

/// `{error: {kind, message}}`.
pub(crate) fn failed(kind: &str, message: &str) -> Value {
    json!({"error": {"kind": kind, "message": message}})
}

/// `{answer, sources: [{kind, id, title, url}], confidence_score, used_internal_kb, used_external_kb}`; unknown values
/// are null.
pub(in crate::flow) fn usual(answer: &Answer) -> Value {
    json!({
        "answer": answer.text,
        "sources": answer.sources.iter().map(source).collect::<Vec<_>>(),
        "confidence_score": answer.confidence,
        "used_internal_kb": answer.used_internal_kb,
        "used_external_kb": answer.used_external_kb,
    })
}

/// One source; only a web source has a URL, which is its id.
pub(in crate::flow) fn source(source: &SourceRef) -> Value {
    let web = source.id.starts_with("https://") || source.id.starts_with("http://");
    let title = (!source.title.is_empty()).then_some(source.title.as_str());
    json!({"kind": source.kind, "id": source.id, "title": title, "url": web.then_some(source.id.as_str())})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_the_web_have_an_address_and_what_is_not_known_is_null() {
        let source = |kind: &str, id: &str, title: &str| SourceRef {
            kind: kind.into(),
            id: id.into(),
            title: title.into(),
            number: None,
        };
        let sources = vec![source("internal", "plans#1", "Plans"), source("external", "https://example.org/a", "")];
        let (used_internal_kb, used_external_kb) = (true, true);
        let answer = Answer { text: "So.".into(), sources, used_internal_kb, used_external_kb, ..Answer::default() };
        let expected = json!({
            "answer": "So.",
            "sources": [
                {"kind": "internal", "id": "plans#1", "title": "Plans", "url": null},
                {"kind": "external", "id": "https://example.org/a", "title": null, "url": "https://example.org/a"},
            ],
            "confidence_score": null, "used_internal_kb": true, "used_external_kb": true,
        });
        assert_eq!(usual(&answer), expected);
    }
}
