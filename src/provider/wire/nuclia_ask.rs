//! Nuclia's ask call: one question, an answer with its passages, and citations that link the answer's words to
//! passages.
//!
//! It is not a chat dialect, because it carries a question with a filter, not a conversation with tools. An answer is
//! one JSON object, or items, one JSON object per line; items of unknown types are skipped and listed. Positions are
//! counted in characters (code points) of the answer, pages from 0.

use super::document::{Reader, WireError, text, tokens};
use super::nuclia_ask_answer::{assembled, citations, paragraphs};
use crate::cassette::Profile;
use crate::platform::lenient_json;
use crate::provider::ErrorKind;
use crate::provider::chat::Usage;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The dialect's name.
pub(crate) const NAME: &str = "nuclia-ask";

/// How its requests are compared: everything counts.
pub(crate) static PROFILE: Profile = Profile::plain(NAME);

/// Header of a request for one JSON object.
pub(crate) const SYNCHRONOUS: (&str, &str) = ("x-synchronous", "true");

/// Response header with the id of the exchange, if an answer is streamed.
pub(crate) const LEARNING_ID_HEADER: &str = "nuclia-learning-id";

/// Content type of a streamed answer.
pub(crate) const CONTENT_TYPE: &str = "application/x-ndjson";

pub(super) const READER: Reader = Reader(NAME);

/// Requested parts of the service's resources; `values` includes file names.
const SHOWN: [&str; 2] = ["basic", "values"];

/// One question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AskRequest {
    /// The question.
    pub query: String,
    /// Maximum number of passages for the answer.
    pub top_k: u32,
    /// Filter for resources.
    pub filter_expression: Option<Value>,
    /// For the service's audit log.
    pub audit_metadata: BTreeMap<String, String>,
}

/// Status that the service reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskStatus {
    /// There is an answer.
    Success,
    /// The service failed.
    Error,
    /// Nothing in the knowledge box matches the question.
    NoContext,
    /// The search found nothing.
    NoRetrievalData,
    /// A status that this build does not know.
    Other(String),
}

impl AskStatus {
    fn of(word: &str) -> Self {
        match word {
            "success" => Self::Success,
            "error" => Self::Error,
            "no_context" => Self::NoContext,
            "no_retrieval_data" => Self::NoRetrievalData,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A passage that may support an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Paragraph {
    /// Its id: `resource/field type/field/start-end`.
    pub id: String,
    /// Id of its resource.
    pub resource: String,
    /// Its field in the resource: `type/field`.
    pub field: String,
    /// Title of its resource.
    pub title: String,
    /// File name of that field; `None` if the field is not a file, or if the service does not report it.
    pub file: Option<String>,
    /// Page, from 0, if the service reports it.
    pub page: Option<u64>,
    pub text: String,
    /// Relevance, on the service's scale.
    pub score: f64,
}

/// The parts of an answer that one passage supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskCitation {
    /// The passage's id.
    pub paragraph: String,
    /// Ranges in the answer: first character and the one after the last, in code points.
    pub spans: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AskAnswer {
    /// The text, without markers.
    pub text: String,
    pub status: AskStatus,
    /// The service's message about the status, if any.
    pub details: Option<String>,
    /// The service's id of the exchange, if it reports one.
    pub learning_id: Option<String>,
    /// The passages found, best first.
    pub paragraphs: Vec<Paragraph>,
    /// The citations, in the service's order.
    pub citations: Vec<AskCitation>,
    /// Tokens used.
    pub usage: Usage,
    /// Item types that this build does not know, in order, each once.
    pub skipped: Vec<String>,
}

/// Path of the call below the base URL.
pub(crate) fn path(kb_id: &str) -> String {
    format!("/kb/{kb_id}/ask")
}

/// Path of a file below the base URL. Each name is encoded as one segment.
pub(crate) fn download_path(kb_id: &str, resource: &str, field: &str) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    let [resource, field] = [resource, field].map(|part| utf8_percent_encode(part, PLAIN).to_string());
    format!("/kb/{kb_id}/resource/{resource}/file/{field}/download/field")
}

/// Encodes a request's body.
pub(crate) fn encode_request(request: &AskRequest) -> Value {
    let mut body = json!({"query": request.query, "citations": true, "top_k": request.top_k, "show": SHOWN});
    if let Some(filter) = &request.filter_expression {
        body["filter_expression"] = filter.clone();
    }
    if !request.audit_metadata.is_empty() {
        body["audit_metadata"] = json!(request.audit_metadata);
    }
    body
}

/// Decodes a request's body.
///
/// # Errors
/// [`WireError`] with the member that does not match the dialect.
pub(crate) fn decode_request(body: &Value) -> Result<AskRequest, WireError> {
    let document = READER.object("", body)?;
    let query = READER.string(document, "query")?.to_owned();
    let top_k = document.get("top_k").and_then(super::document::small).unwrap_or(20);
    let audit_metadata = match document.get("audit_metadata") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let at = format!("/audit_metadata/{name}");
                let text = value.as_str().ok_or_else(|| READER.wrong(&at, "a string", Some(value)))?;
                Ok((name.clone(), text.to_owned()))
            };
            READER.object("/audit_metadata", fields)?.iter().map(field).collect::<Result<_, WireError>>()?
        }
    };
    let filter_expression = document.get("filter_expression").filter(|filter| !filter.is_null()).cloned();
    Ok(AskRequest { query, top_k, filter_expression, audit_metadata })
}

/// Decodes an answer in either form.
///
/// # Errors
/// [`WireError::Reported`] if the service reports a failure, [`WireError::Cut`] if the last item is missing, else the
/// member that does not match the dialect.
pub(crate) fn decode_response(body: &[u8]) -> Result<AskAnswer, WireError> {
    let (document, skipped) = match lenient_json::read(body) {
        Ok(document) if document.get("item").is_none() => (document, Vec::new()),
        _ => assembled(body)?,
    };
    if let Some(reported) = super::error::reported(&document) {
        return Err(reported);
    }
    let answer = READER.object("", &document)?;
    let status = AskStatus::of(READER.string(answer, "status")?);
    let details = answer.get("error_details").and_then(Value::as_str).filter(|words| !words.is_empty());
    if status == AskStatus::Error {
        let message = details.unwrap_or("the service gives no reason").to_owned();
        return Err(WireError::Reported { kind: ErrorKind::Server, message });
    }
    Ok(AskAnswer {
        text: text(answer, "answer").to_owned(),
        details: details.map(str::to_owned),
        learning_id: answer.get("learning_id").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned),
        paragraphs: paragraphs(answer.get("retrieval_results"))?,
        citations: citations(answer.get("citations"))?,
        usage: Usage {
            input: tokens(&document, "/metadata/tokens/input"),
            output: tokens(&document, "/metadata/tokens/output"),
            ..Usage::default()
        },
        status,
        skipped,
    })
}

/// Whether a streamed answer is complete.
pub(crate) fn is_whole(body: &[u8]) -> bool {
    !matches!(assembled(body), Err(WireError::Cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An answer as one object, in the service's format.
    fn whole() -> Value {
        json!({
            "answer": "The coil has 38 to 46 ohms.", "status": "success", "learning_id": "ab12", "error_details": null,
            "retrieval_results": {"resources": {"r1": {"id": "r1", "title": "Error codes",
                "data": {"files": {"manual": {"value": {"file": {"uri": "/kb/k/resource/r1/file/manual/download/field", "filename": "error-codes.pdf"}}}}},
                "fields": {"/f/manual": {"paragraphs": {
                    "r1/f/manual/0-90": {"id": "r1/f/manual/0-90", "text": "38 to 46 ohms", "score": 0.5,
                        "position": {"page_number": 4, "index": 1, "start": 0, "end": 90}},
                    "r1/f/manual/91-99": {"id": "r1/f/manual/91-99", "text": "more", "score": 0.9}}},
                    "/t/note": {"paragraphs": {"r1/t/note/0-4": {"text": "note", "score": 0.1}}}}}}},
            "citations": {"r1/f/manual/0-90": [[13, 26]]},
            "metadata": {"tokens": {"input": 120, "output": 9}, "timings": {"generative_first_chunk": 0.4}},
        })
    }

    /// The same answer in items, with one of an unknown type.
    fn items() -> String {
        let whole = whole();
        let items = [
            json!({"type": "retrieval", "results": whole["retrieval_results"]}),
            json!({"type": "answer", "text": "The coil has "}),
            json!({"type": "mood_of_tomorrow", "mood": "good"}),
            json!({"type": "answer", "text": "38 to 46 ohms."}),
            json!({"type": "metadata", "tokens": whole["metadata"]["tokens"], "timings": {}}),
            json!({"type": "citations", "citations": whole["citations"]}),
            json!({"type": "debug", "metadata": {}}),
            json!({"type": "status", "code": "0", "status": "success", "details": null}),
        ];
        items.iter().flat_map(|item| [json!({ "item": item }).to_string(), "\n".to_owned()]).collect()
    }

    fn read(value: &Value) -> Result<AskAnswer, WireError> {
        decode_response(value.to_string().as_bytes())
    }

    #[test]
    fn both_forms_of_an_answer_are_read_as_the_same_and_unknown_items_are_named() {
        let one = read(&whole()).expect("reads");
        let pieces = decode_response(items().as_bytes()).expect("reads");
        assert_eq!(pieces.skipped, ["mood_of_tomorrow"]);
        let pieces = AskAnswer { learning_id: one.learning_id.clone(), skipped: Vec::new(), ..pieces };
        assert_eq!(one, pieces);
        let ids: Vec<&str> = one.paragraphs.iter().map(|paragraph| paragraph.id.as_str()).collect();
        assert_eq!(ids, ["r1/f/manual/91-99", "r1/f/manual/0-90", "r1/t/note/0-4"], "best first");
        let cited = &one.paragraphs[1];
        assert_eq!(
            (cited.file.as_deref(), cited.page, cited.field.as_str()),
            (Some("error-codes.pdf"), Some(4), "f/manual")
        );
        assert_eq!(one.paragraphs[2].file, None, "a note is no file");
        assert_eq!(one.citations[0].spans, [(13, 26)]);
        assert_eq!((one.usage.input, one.usage.output), (Some(120), Some(9)));
    }

    #[test]
    fn a_stream_without_its_status_is_cut_and_a_broken_line_in_its_middle_is_no_json() {
        let text = items();
        let lines: Vec<&str> = text.lines().collect();
        for kept in 0..lines.len() {
            let cut = lines[..kept].join("\n");
            assert_eq!(decode_response(cut.as_bytes()), Err(WireError::Cut), "{kept} lines");
            assert!(!is_whole(cut.as_bytes()));
        }
        let torn = &text[..text.len() - 20];
        assert_eq!(decode_response(torn.as_bytes()), Err(WireError::Cut));
        assert!(is_whole(text.as_bytes()));
        let broken = text.replacen("{\"item\"", "{item", 1);
        assert!(matches!(decode_response(broken.as_bytes()), Err(WireError::NotJson { .. })));
    }

    #[test]
    fn what_the_service_reports_is_an_error_and_nothing_found_is_an_answer() {
        for body in [
            json!({"status": "error", "answer": "", "error_details": "the model is away"}).to_string(),
            json!({"item": {"type": "error", "error": "the model is away"}}).to_string(),
            json!({"item": {"type": "status", "code": "-1", "status": "error", "details": "the model is away"}})
                .to_string(),
        ] {
            let error = decode_response(body.as_bytes()).expect_err("an error");
            let expected = WireError::Reported { kind: ErrorKind::Server, message: "the model is away".into() };
            assert_eq!(error, expected, "{body}");
        }
        for (word, status) in [
            ("no_context", AskStatus::NoContext),
            ("no_retrieval_data", AskStatus::NoRetrievalData),
            ("partial", AskStatus::Other("partial".into())),
        ] {
            let answer = read(&json!({"status": word, "answer": "", "citations": null})).expect("reads");
            assert_eq!((answer.status, answer.citations.len()), (status, 0));
        }
    }

    #[test]
    fn what_is_no_answer_of_the_service_is_refused_with_its_place() {
        for (body, place) in [
            (json!({"answer": "x"}), "/status"),
            (json!({"status": "success", "citations": {"p": [[1]]}}), "/citations/p"),
            (json!({"status": "success", "citations": {"p": [[-1, 2]]}}), "/citations/p"),
            (json!({"status": "success", "retrieval_results": {"resources": []}}), "/retrieval_results/resources"),
            (json!([1]), "an object"),
        ] {
            let error = read(&body).expect_err("refused").to_string();
            assert!(error.starts_with(NAME) && error.contains(place), "{error}");
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written_and_wants_citations() {
        let request = AskRequest {
            query: "why?".into(),
            top_k: 5,
            filter_expression: Some(json!({"field": {"prop": "label", "label": "no"}})),
            audit_metadata: BTreeMap::from([("environment".into(), "production".into())]),
        };
        let body = encode_request(&request);
        assert_eq!(body["citations"], json!(true));
        assert_eq!(decode_request(&body), Ok(request));
        let plain = AskRequest { query: "why?".into(), top_k: 5, ..Default::default() };
        let body = encode_request(&plain);
        assert!(body.get("filter_expression").is_none() && body.get("audit_metadata").is_none());
        assert!(decode_request(&json!({"question": "why?"})).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error_and_never_a_panic(body: Vec<u8>, cut in 0_usize..2_000) {
            _ = decode_response(&body);
            let text = items();
            _ = decode_response(&text.as_bytes()[..cut.min(text.len())]);
            let one = whole().to_string();
            prop_assert!(decode_response(&one.as_bytes()[..cut.min(one.len() - 1)]).is_err());
        }
    }
}
