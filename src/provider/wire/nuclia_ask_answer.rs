//! Assembles and decodes the parts of an answer of Nuclia's ask call: items, passages, citations.

use super::document::{WireError, text};
use super::nuclia_ask::{AskCitation, Paragraph, READER};
use crate::platform::lenient_json;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Assembles items into one object; also returns the unknown item types.
pub(super) fn assembled(body: &[u8]) -> Result<(Value, Vec<String>), WireError> {
    let (mut document, mut answer, mut skipped) = (Map::new(), String::new(), BTreeSet::new());
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    for (number, line) in lines.iter().enumerate() {
        let line = match lenient_json::read(line) {
            Ok(line) => line,
            // The truncated last line of a stream that was cut off.
            Err(error) if error.is_eof() && number + 1 == lines.len() => return Err(WireError::Cut),
            Err(error) => return Err(WireError::NotJson { message: format!("line {}: {error}", number + 1) }),
        };
        let at = format!("line {}: /item", number + 1);
        let item = line.get("item").ok_or_else(|| READER.wrong(&at, "an object", None))?;
        let item = READER.object(&at, item)?;
        match text(item, "type") {
            "answer" => answer.push_str(text(item, "text")),
            "retrieval" => put(&mut document, "retrieval_results", item.get("results")),
            "citations" => put(&mut document, "citations", item.get("citations")),
            "metadata" => {
                let part = |name: &str| item.get(name).cloned().unwrap_or_default();
                document.insert("metadata".into(), json!({"tokens": part("tokens"), "timings": part("timings")}));
            }
            "status" => {
                put(&mut document, "status", item.get("status"));
                put(&mut document, "error_details", item.get("details"));
            }
            "error" => {
                document.insert("status".into(), json!("error"));
                put(&mut document, "error_details", item.get("error"));
            }
            // Optional items that are not needed here.
            "answer_json" | "footnote_citations" | "relations" | "prequeries" | "reasoning" | "debug" => {}
            "" => return Err(READER.wrong(&format!("line {}: /item/type", number + 1), "a string", item.get("type"))),
            unknown => _ = skipped.insert(unknown.to_owned()),
        }
    }
    if !document.contains_key("status") {
        return Err(WireError::Cut);
    }
    document.insert("answer".into(), Value::String(answer));
    Ok((Value::Object(document), skipped.into_iter().collect()))
}

fn put(document: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        document.insert(name.to_owned(), value.clone());
    }
}

/// The passages in a search result, best first.
pub(super) fn paragraphs(results: Option<&Value>) -> Result<Vec<Paragraph>, WireError> {
    let mut found = Vec::new();
    let Some(results) = results.filter(|results| !results.is_null()) else { return Ok(found) };
    let entries = |value: Option<&Value>, at: &str| match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => {
            Ok::<_, WireError>(READER.object(at, value)?.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
        }
    };
    for (id, resource) in entries(results.get("resources"), "/retrieval_results/resources")? {
        let title = resource.get("title").and_then(Value::as_str).unwrap_or_default();
        let at = format!("/retrieval_results/resources/{id}/fields");
        for (field, content) in entries(resource.get("fields"), &at)? {
            let field = field.trim_start_matches('/').to_owned();
            let name = field.strip_prefix("f/").unwrap_or_default();
            let file = resource.pointer("/data/files").and_then(|files| files.get(name));
            let file = file.and_then(|file| file.pointer("/value/file/filename")).and_then(Value::as_str);
            let file = file.map(str::trim).filter(|file| !file.is_empty());
            for (paragraph, read) in entries(content.get("paragraphs"), &format!("{at}/{field}/paragraphs"))? {
                found.push(Paragraph {
                    id: paragraph,
                    resource: id.clone(),
                    field: field.clone(),
                    title: title.to_owned(),
                    file: file.map(str::to_owned),
                    page: read.pointer("/position/page_number").and_then(Value::as_u64),
                    text: read.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    score: read.get("score").and_then(Value::as_f64).unwrap_or_default(),
                });
            }
        }
    }
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.id.cmp(&other.id)));
    Ok(found)
}

/// The ranges of the answer and the passages that support them.
pub(super) fn citations(told: Option<&Value>) -> Result<Vec<AskCitation>, WireError> {
    let Some(told) = told.filter(|told| !told.is_null()) else { return Ok(Vec::new()) };
    let citation = |(paragraph, spans): (&String, &Value)| {
        let at = format!("/citations/{paragraph}");
        let wrong = |found: &Value| READER.wrong(&at, "a list of pairs of positions", Some(found));
        let span = |span: &Value| match span.as_array().map(Vec::as_slice) {
            Some([start, end]) => start.as_u64().zip(end.as_u64()).ok_or_else(|| wrong(span)),
            _ => Err(wrong(span)),
        };
        let spans = spans.as_array().ok_or_else(|| wrong(spans))?;
        Ok(AskCitation {
            paragraph: paragraph.clone(),
            spans: spans.iter().map(span).collect::<Result<_, WireError>>()?,
        })
    };
    READER.object("/citations", told)?.iter().map(citation).collect()
}
