//! `generate_response {answer, sources, confidence_score?, used_internal_kb, used_external_kb}`: the only way to answer.
//!
//! Flags and sources must match the calls made: only shown sources may be cited, and every number in the answer refers
//! to one of its sources.

use super::GENERATE_RESPONSE;
use crate::flow::tool_rag::{ToolRag, memory::Citable};
use crate::flow::tools::{Declaration, Output, Refusal, Scope, Tool, ToolError, sanitise};
use crate::platform::secrets;
use crate::trace::citations::numbers_of;
use crate::trace::{Answer, Role, SourceRef, ToolResult, USED_EXTERNAL_KB, USED_INTERNAL_KB};
use serde_json::{Map, Value, json};

pub(super) static TOOL: Tool<ToolRag> = Tool {
    declaration: Declaration::new(GENERATE_RESPONSE, Role::Respond, schema),
    run: |arguments, scope| Box::pin(std::future::ready(run(arguments, scope))),
};

const MAX_ANSWER: usize = 20_000;
const MAX_SOURCES: usize = 40;

/// Kind of a source of the knowledge base, learned entries included.
const INTERNAL: &str = "internal";
/// Kind of a page on the web.
const EXTERNAL: &str = "external";

/// JSON Schema of the arguments.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "minLength": 1, "maxLength": MAX_ANSWER,
                       "description": "The complete answer for the user, in the user's language."},
            "sources": {
                "type": "array", "maxItems": MAX_SOURCES,
                "description": "Every source that the answer rests on; empty only when nothing was found.",
                "items": {
                    "type": "object",
                    "properties": {
                        "kind": {"type": "string", "enum": ["internal", "external"],
                                 "description": "internal for a chunk of the knowledge base, external for a web page."},
                        "id": {"type": "string", "minLength": 1, "maxLength": 2_000,
                               "description": "The chunk's id, or the page's URL, exactly as shown."},
                        "title": {"type": "string", "maxLength": 500}
                    },
                    "required": ["kind", "id"],
                    "additionalProperties": false
                }
            },
            "confidence_score": {"type": "number", "minimum": 0, "maximum": 1,
                                 "description": "How sure the answer is, 0 to 1."},
            "used_internal_kb": {"type": "boolean", "description": "Whether the answer uses the knowledge base."},
            "used_external_kb": {"type": "boolean", "description": "Whether the answer uses an external answer."}
        },
        "required": ["answer", "sources", "used_internal_kb", "used_external_kb"],
        "additionalProperties": false
    })
}

/// The answer in a call; its sources stand in order, without duplicates.
fn answer(object: &Map<String, Value>) -> Result<Answer, Refusal> {
    // An answer may mention anything, so the guard does not check it; it is escaped when displayed.
    let text = sanitise::text(object.get("answer").and_then(Value::as_str).unwrap_or_default());
    sanitise::length("answer", &text, 1, MAX_ANSWER)?;
    let mut sources: Vec<SourceRef> = Vec::new();
    for item in object.get("sources").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| sanitise::line(item.get(name).and_then(Value::as_str).unwrap_or_default());
        let kind = if field("kind") == EXTERNAL { EXTERNAL } else { INTERNAL }.to_owned();
        let source = SourceRef { kind, id: field("id"), title: field("title"), number: None };
        if !sources.iter().any(|known| known.kind == source.kind && known.id == source.id) {
            sources.push(source);
        }
    }
    let flag = |name: &str| object.get(name).and_then(Value::as_bool).unwrap_or_default();
    Ok(Answer {
        text,
        sources,
        confidence: object.get("confidence_score").and_then(Value::as_f64),
        used_internal_kb: flag("used_internal_kb"),
        used_external_kb: flag("used_external_kb"),
        ..Answer::default()
    })
}

/// Checks that the flags and sources of an answer match what was shown.
///
/// # Errors
/// The first mismatch.
fn agrees(answer: &Answer, citable: &Citable) -> Result<(), Refusal> {
    for source in &answer.sources {
        let (known, guidance) = if source.kind == INTERNAL {
            (&citable.internal, "Cite only chunk ids that a search showed.")
        } else {
            (&citable.external, "Cite only URLs that the external answer listed.")
        };
        if !known.contains(&source.id) {
            let shown = secrets::beginning(&source.id, 120);
            let reason = format!("the {} source \"{shown}\" was not shown in this conversation", source.kind);
            return Err(Refusal::new("unknown_source", reason, guidance));
        }
    }
    let sources = answer.sources.len();
    if let Some(number) = numbers_of(&answer.text).into_iter().find(|number| !(1..=sources).contains(number)) {
        let reason = format!("[{number}] in the answer stands for no source: `sources` lists {sources}");
        let guidance = "Number sources from 1, in the order of `sources`, and cite no others.";
        return Err(Refusal::new("citation_number", reason, guidance));
    }
    let asked = citable.asked || !citable.external.is_empty();
    for (flag, said, was_called, kind) in [
        (USED_INTERNAL_KB, answer.used_internal_kb, citable.searched, INTERNAL),
        (USED_EXTERNAL_KB, answer.used_external_kb, asked, EXTERNAL),
    ] {
        let cited = answer.sources.iter().any(|source| source.kind == kind);
        if said && !was_called {
            let reason = format!("`{flag}` is true, but that source gave no result in this conversation");
            return Err(Refusal::new("flags", reason, format!("Set `{flag}` to false.")));
        }
        if !said && cited {
            let reason = format!("`{flag}` is false, but {kind} sources are cited");
            return Err(Refusal::new("flags", reason, format!("Set `{flag}` to true, or leave those sources out.")));
        }
        if said && !cited {
            let reason = format!("`{flag}` is true, but `sources` lists no {kind} source");
            let guidance = format!("List what the answer rests on in `sources`, or set `{flag}` to false.");
            return Err(Refusal::new("sources", reason, guidance));
        }
    }
    Ok(())
}

/// Accepts the response.
fn run(arguments: &Map<String, Value>, scope: Scope<'_, ToolRag>) -> Result<Output, ToolError> {
    let answer = answer(arguments)?;
    agrees(&answer, &scope.memory.citable)?;
    scope.own.answer = Some(answer);
    Ok(Output::local(ToolResult::Responded, json!({"accepted": true}).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn response(sources: &[(&str, &str)], used_internal_kb: bool, used_external_kb: bool) -> Answer {
        let source = |(kind, id): &(&str, &str)| SourceRef {
            kind: (*kind).into(),
            id: (*id).into(),
            title: String::new(),
            number: None,
        };
        let sources = sources.iter().map(source).collect();
        Answer { text: "Yes.".into(), sources, used_internal_kb, used_external_kb, ..Answer::default() }
    }

    fn citable() -> Citable {
        Citable { searched: true, asked: false, internal: ["doc#1".into()].into(), external: BTreeSet::new() }
    }

    fn cause(response: &Answer, citable: &Citable) -> &'static str {
        agrees(response, citable).expect_err("is refused").cause
    }

    #[test]
    fn an_answer_that_agrees_with_what_was_called_passes() {
        let internal = (INTERNAL, "doc#1");
        assert!(agrees(&response(&[internal], true, false), &citable()).is_ok());
        let nothing = Citable { searched: true, ..Citable::default() };
        assert!(agrees(&response(&[], false, false), &nothing).is_ok());
        assert_eq!(cause(&response(&[], true, false), &nothing), "sources");
    }

    #[test]
    fn the_pages_of_a_learned_entry_may_be_cited_as_external_without_asking_anew() {
        let page = (EXTERNAL, "https://example.org/hives");
        let learned = Citable { external: ["https://example.org/hives".into()].into(), ..citable() };
        assert!(agrees(&response(&[page], false, true), &learned).is_ok());
        assert_eq!(cause(&response(&[page], false, false), &learned), "flags");
    }

    #[test]
    fn invented_sources_wrong_flags_and_missing_sources_are_refused() {
        let internal = (INTERNAL, "doc#1");
        assert_eq!(cause(&response(&[(INTERNAL, "doc#9")], true, false), &citable()), "unknown_source");
        let page = (EXTERNAL, "https://example.org/made-up");
        assert_eq!(cause(&response(&[internal, page], true, true), &citable()), "unknown_source");
        assert_eq!(cause(&response(&[internal], true, true), &citable()), "flags");
        assert_eq!(cause(&response(&[internal], false, false), &citable()), "flags");
        assert_eq!(cause(&response(&[], true, false), &citable()), "sources");
        let page = (EXTERNAL, "https://example.org/frost");
        let both = Citable { asked: true, external: ["https://example.org/frost".into()].into(), ..citable() };
        assert!(agrees(&response(&[internal, page], true, true), &both).is_ok());
        assert_eq!(cause(&response(&[internal], true, true), &both), "sources", "nothing of the web is cited");
        assert_eq!(cause(&response(&[page], true, true), &both), "sources", "nothing of the documents is cited");
        let numbered = |text: &str| Answer { text: text.into(), ..response(&[internal], true, false) };
        assert!(agrees(&numbered("Yes [1]."), &citable()).is_ok());
        for text in ["Yes [2].", "Yes [0].", "Yes [1, 2].", "Yes 【2】."] {
            assert_eq!(cause(&numbered(text), &citable()), "citation_number", "{text}");
        }
    }
}
