//! Recognises the format of a file by the members of its first items. Nothing is guessed: a file of no known format, or
//! of two, is an error.

use super::json::pieces;
use super::{Format, ImportError, evals, shape};
use crate::platform::lenient_json::repaired;
use crate::trace::spans;
use crate::trace::text::quote;
use serde_json::Value;

/// Items of a file that are looked at.
const LOOKED_AT: usize = 20;
/// Members in which a conversation has its messages, and the setting of a file of them.
const HOLDERS: [&str; 7] = ["messages", "history", "traj", "contents", "items", "input", "mapping"];

/// The format of a file.
///
/// # Errors
/// If its content is of no known format, or of several.
pub(super) fn format(bytes: &[u8]) -> Result<Format, ImportError> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if !text.starts_with(b"{") && !text.starts_with(b"[") {
        let first = || quote(&String::from_utf8_lossy(&text[..text.len().min(30)]), 30);
        return match spans::read(bytes) {
            Ok(batch) if !batch.spans.is_empty() => Ok(Format::Otlp),
            _ => Err(ImportError::Unrecognised(format!("it begins with `{}`", first()))),
        };
    }
    let items = beginning(text)?;
    let mut formats: Vec<Format> = items.iter().filter_map(of).collect();
    formats.dedup();
    match formats.as_slice() {
        [one] => Ok(*one),
        [] => Err(ImportError::Unrecognised(items.first().map_or_else(|| "it is empty".to_owned(), seen))),
        [one, other, ..] => Err(ImportError::Mixed(one.name(), other.name())),
    }
}

/// The first items of a list, or of lines; a broken line is passed over.
fn beginning(text: &[u8]) -> Result<Vec<Value>, ImportError> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::Array(items))) if items.iter().any(|item| !item.is_null()) => {
            Ok(items.into_iter().take(LOOKED_AT).collect())
        }
        Some(Ok(first)) => Ok(std::iter::once(first).chain(values.map_while(Result::ok)).take(LOOKED_AT).collect()),
        Some(Err(why)) => {
            if let Some((clean, _)) = repaired(text) {
                return beginning(&clean);
            }
            let parts = pieces(text).into_iter().take(LOOKED_AT);
            let read: Vec<Value> = parts.filter_map(|(_, part)| serde_json::from_slice(part).ok()).collect();
            if read.is_empty() { Err(why.into()) } else { Ok(read) }
        }
        None => Ok(Vec::new()),
    }
}

/// The format that has such an item.
fn of(item: &Value) -> Option<Format> {
    match item {
        Value::Array(items) => items.first().and_then(of),
        Value::Object(object) if object.get("conversations").is_some_and(Value::is_array) => Some(Format::Trace),
        _ if evals::is_one(item) => Some(Format::Evals),
        _ if spans::is_export(item) => Some(Format::Otlp),
        Value::Object(object) => {
            let holds = HOLDERS.iter().any(|name| object.contains_key(*name));
            (shape::is_message(item) || holds).then_some(Format::Messages)
        }
        _ => None,
    }
}

fn seen(item: &Value) -> String {
    let Value::Object(object) = item else { return format!("it holds {}", quote(&item.to_string(), 60)) };
    let names: Vec<String> = object.keys().take(6).map(|name| format!("`{}`", quote(name, 40))).collect();
    format!("it holds an object with {}", if names.is_empty() { "no members".to_owned() } else { names.join(", ") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_format_is_recognised_alone_in_a_list_and_in_lines() {
        let message = json!({"role": "user", "content": "hello"});
        for (item, expected) in [
            (json!({"conversations": []}), Format::Trace),
            (json!({"item": {"question": "q"}, "sample": {"output_text": "a"}}), Format::Evals),
            (json!({"testing_criteria": []}), Format::Evals),
            (json!({"resourceSpans": []}), Format::Otlp),
            (json!({"name": "s", "context": {"trace_id": "0x1", "span_id": "0x2"}}), Format::Otlp),
            (json!({"id": "1", "trace_id": "1", "run_type": "llm"}), Format::Otlp),
            (json!({"post": [{"id": "1", "run_type": "llm"}], "patch": []}), Format::Otlp),
            (message.clone(), Format::Messages),
            (json!([message]), Format::Messages),
            (json!({"messages": []}), Format::Messages),
            (json!({"mapping": {}}), Format::Messages),
        ] {
            let unknown = item.to_string().replacen('{', "{\"score\": NaN, ", 1).replace(", }", "}");
            for text in [
                item.to_string(),
                json!([item]).to_string(),
                format!("{item}\n\n{item}\n"),
                format!("[{unknown}]"),
                unknown,
            ] {
                assert_eq!(format(text.as_bytes()).expect("a format"), expected, "{text}");
            }
            assert_eq!(format(format!("{item}\n{{oops\n").as_bytes()).expect("a format"), expected);
        }
    }

    #[test]
    fn what_is_of_no_format_or_of_two_is_refused_with_what_was_seen() {
        let told = |text: &str| format(text.as_bytes()).expect_err("no format").to_string();
        assert!(told(r#"{"speaker": "me", "words": 1}"#).contains("an object with `speaker`, `words`"));
        assert!(told("hello").contains("it begins with `hello`"));
        assert!(told("[]").contains("the format is not recognised"));
        assert!(told("{oops").contains("not JSON"));
        let mixed = told("{\"messages\": []}\n{\"conversations\": []}\n");
        assert!(mixed.contains("`messages`") && mixed.contains("`trace`"), "{mixed}");
    }
}
