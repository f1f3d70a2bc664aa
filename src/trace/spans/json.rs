//! Spans in JSON: OTLP (`resourceSpans`), and what SDKs print, one object a span with its `context`.
//!
//! Ids are hexadecimal digits in OTLP; some exporters write the base64 of protobuf's JSON mapping, and some dumps
//! decimal numbers. All are read. So are the names in snake case.

use super::{Attributes, Batch, Span, SpanError, SpansError, id_of, langsmith};
use crate::platform::lenient_json::repaired;
use crate::trace::text::{plural, quote};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Members in which documents keep lists of resources, and those their scopes.
const RESOURCES: [&str; 3] = ["resourceSpans", "resource_spans", "batches"];
/// Members of what a collector may write to the same file.
const OTHERS: [&str; 3] = ["resourceMetrics", "resourceLogs", "resourceProfiles"];
const SCOPES: [&str; 4] = ["scopeSpans", "scope_spans", "instrumentationLibrarySpans", "ilSpans"];
/// Digits that every reader of numbers keeps.
const SAFE_DIGITS: usize = 18;

/// Adds the spans in a text.
///
/// # Errors
/// If it is not JSON at all.
pub(super) fn read(text: &str, batch: &mut Batch) -> Result<(), SpansError> {
    let mut text = quoted(text);
    let mut runs = Vec::new();
    let values = |text: &str| serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
    let mut whole = values(&text);
    if whole.is_err()
        && let Some((clean, halves)) = repaired(text.as_bytes())
        && let Ok(clean) = String::from_utf8(clean)
    {
        text = clean.into();
        whole = values(&text);
        if halves > 0 {
            batch.odd.push(format!(
                "{} of a surrogate pair replaced (`\\ud83d` without its other half)",
                plural(halves, "half")
            ));
        }
    }
    match whole {
        Ok(documents) => documents.into_iter().for_each(|document| of_document(document, batch, &mut runs)),
        Err(why) => {
            let before = batch.unread.len();
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            let mut read = 0;
            for (number, line) in lines {
                match serde_json::from_str(line) {
                    Ok(document) => {
                        read += 1;
                        of_document(document, batch, &mut runs);
                    }
                    Err(why) => batch.unread.push(format!("line {}: it is not JSON: {why}", number + 1)),
                }
            }
            if read == 0 {
                batch.unread.truncate(before);
                return Err(SpansError(format!("it is not JSON: {why}")));
            }
        }
    }
    langsmith::add(runs, batch);
    Ok(())
}

/// The text with numbers of more digits than are safe in quotes: dumps write ids of 128 bits as numbers.
fn quoted(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at, mut in_string) = (String::new(), 0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'0'..=b'9' if !in_string => {
                let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let part = |byte: Option<&u8>| matches!(byte, Some(b'.' | b'e' | b'E' | b'-' | b'+'));
                if end - at > SAFE_DIGITS && !part(bytes.get(end)) && !part(at.checked_sub(1).map(|one| &bytes[one])) {
                    out.push_str(&text[copied..at]);
                    out.push('"');
                    out.push_str(&text[at..end]);
                    out.push('"');
                    copied = end;
                }
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

fn of_document(document: Value, batch: &mut Batch, runs: &mut Vec<Value>) {
    let mut object = match document {
        Value::Array(items) => return items.into_iter().for_each(|item| of_document(item, batch, runs)),
        Value::Object(object) => object,
        other => return batch.unread.push(format!("{} is no span", kind(&other))),
    };
    if let Some(found) = langsmith::take(&mut object) {
        runs.extend(found);
    } else if let Some(resources) = RESOURCES.into_iter().find_map(|name| object.remove(name)) {
        for scope in list(resources).into_iter().flat_map(|one| lists_of(one, &SCOPES)) {
            for span in lists_of(scope, &["spans"]) {
                add(&span, batch);
            }
        }
    } else if object.get("spans").is_some_and(Value::is_array) {
        let first = batch.spans.len();
        for span in list(object.remove("spans").unwrap_or_default()) {
            add(&span, batch);
        }
        // A dump may keep the agent's last words beside the spans.
        let root = batch.spans[first..].iter_mut().find(|span| span.parent.is_none());
        if let Some((root, said)) = root.zip(object.remove("final_output")).filter(|(_, said)| !said.is_null()) {
            let words = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
            root.attributes.entry("output.value").or_insert(Value::String(words));
        }
    } else if let Some(other) = OTHERS.into_iter().find(|name| object.contains_key(*name)) {
        let remark = format!("`{other}` passed over");
        if !batch.odd.contains(&remark) {
            batch.odd.push(remark);
        }
    } else {
        add(&Value::Object(object), batch);
    }
}

/// Whether a JSON value is a span, a run, or a document that holds some.
pub(crate) fn is_export(value: &Value) -> bool {
    let named = |of: &Value, names: &[&str]| names.iter().any(|name| of.get(*name).is_some());
    let context = value.get("context").unwrap_or(value);
    let is_span =
        named(context, &["traceId", "trace_id", "traceID"]) && named(context, &["spanId", "span_id", "spanID"]);
    let listed = ["spans", "post", "patch"].iter().any(|name| {
        let first = value.get(*name).and_then(|list| list.get(0));
        first.is_some_and(is_export)
    });
    is_span || listed || named(value, &RESOURCES) || value.get("run_type").is_some_and(Value::is_string)
}

fn list(value: Value) -> Vec<Value> {
    if let Value::Array(items) = value { items } else { Vec::new() }
}

fn lists_of(mut of: Value, names: &[&str]) -> Vec<Value> {
    names.iter().find_map(|name| of.get_mut(*name).map(Value::take)).map(list).unwrap_or_default()
}

fn kind(value: &Value) -> String {
    value.as_object().map_or_else(
        || value.to_string().chars().take(60).collect(),
        |object| {
            let names: Vec<&str> = object.keys().map(String::as_str).take(6).collect();
            format!("an object with `{}`", names.join("`, `"))
        },
    )
}

fn add(value: &Value, batch: &mut Batch) {
    match span(value) {
        Ok(span) => batch.spans.push(span),
        Err(why) => {
            let name = value.get("name").and_then(Value::as_str).unwrap_or("without a name");
            batch.unread.push(quote(&format!("the span `{}`: {why}", quote(name, 60)), 200));
        }
    }
}

fn member<'v>(object: &'v Value, names: &[&str]) -> Option<&'v Value> {
    names.iter().find_map(|name| object.get(*name)).filter(|value| !value.is_null())
}

fn span(value: &Value) -> Result<Span, SpanError> {
    let context = value.get("context").unwrap_or(value);
    let (trace, id) =
        (member(context, &["traceId", "trace_id", "traceID"]), member(context, &["spanId", "span_id", "spanID"]));
    if trace.is_none() && id.is_none() && value.get("name").is_none() {
        return Err(SpanError(format!("{} is no span", kind(value))));
    }
    let wrong = |what: &str, found: Option<&Value>| {
        let found: String = found.map_or_else(|| "missing".to_owned(), Value::to_string).chars().take(60).collect();
        SpanError(format!("its {what} id is {found}"))
    };
    let parent = member(value, &["parentSpanId", "parent_span_id", "parent_id"])
        .or_else(|| member(value.get("parent")?, &["span_id", "spanId"]));
    let parent = match parent {
        Some(Value::String(none)) if none.is_empty() || none.bytes().all(|digit| digit == b'0') => None,
        Some(other) => Some(read_id(other, 8).ok_or_else(|| wrong("parent", Some(other)))?),
        None => None,
    };
    let time = |names: &[&str]| member(value, names).and_then(nanoseconds).unwrap_or_default();
    let events = member(value, &["events", "logs"]).and_then(Value::as_array).into_iter().flatten();
    let status = value.get("status");
    let code = status.and_then(|status| member(status, &["code", "status_code"]));
    let is_error = match code {
        Some(Value::String(code)) => code.to_ascii_lowercase().ends_with("error") || code == "2",
        Some(code) => code.as_u64() == Some(2),
        None => false,
    };
    let message = status.and_then(|status| member(status, &["message", "description"]));
    let dropped = |names: &[&str]| member(value, names).and_then(Value::as_u64).unwrap_or_default();
    Ok(Span {
        trace: trace.and_then(|id| read_id(id, 16)).ok_or_else(|| wrong("trace", trace))?,
        id: id.and_then(|id| read_id(id, 8)).ok_or_else(|| wrong("span", id))?,
        parent,
        name: value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        is_server: match value.get("kind") {
            Some(Value::String(kind)) => kind.to_ascii_lowercase().ends_with("server"),
            other => other.and_then(Value::as_u64) == Some(2),
        },
        start_ns: time(&["startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"]),
        end_ns: time(&["endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"]),
        attributes: attributes(value.get("attributes")),
        events: events
            .map(|event| {
                let name = event.get("name").and_then(Value::as_str).unwrap_or_default();
                let at = member(event, &["timeUnixNano", "time_unix_nano", "timestamp", "time"]).and_then(nanoseconds);
                (at.unwrap_or_default(), name.to_owned(), attributes(event.get("attributes")))
            })
            .collect(),
        failed: is_error.then(|| message.and_then(Value::as_str).unwrap_or_default().to_owned()),
        dropped: dropped(&["droppedAttributesCount", "dropped_attributes_count"]),
        dropped_events: dropped(&["droppedEventsCount", "dropped_events_count"]),
    })
}

/// An id of so many bytes: hexadecimal digits, base64 or a decimal number.
fn read_id(value: &Value, length: usize) -> Option<String> {
    let text = match value {
        Value::String(text) => text.strip_prefix("0x").unwrap_or(text),
        Value::Number(number) => return id_of(&u128::from(number.as_u64()?).to_be_bytes()[16 - length..], length),
        _ => return None,
    };
    if text.len() == length * 2 {
        return id_of(&hex::decode(text).ok()?, length);
    }
    if text.bytes().all(|digit| digit.is_ascii_digit()) && text.len() > SAFE_DIGITS {
        let bytes = text.parse::<u128>().ok()?.to_be_bytes();
        return bytes[..16 - length].iter().all(|byte| *byte == 0).then(|| id_of(&bytes[16 - length..], length))?;
    }
    id_of(&STANDARD.decode(text).ok()?, length)
}

/// A time in nanoseconds; times with a date are read too, in UTC unless they say another offset.
pub(super) fn nanoseconds(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok().or_else(|| {
            let time: jiff::Timestamp = text.parse().or_else(|_| format!("{text}Z").parse()).ok()?;
            u64::try_from(time.as_nanosecond()).ok()
        }),
        _ => None,
    }
}

/// Attributes as OTLP's list of keys and values, or as a plain object.
fn attributes(value: Option<&Value>) -> Attributes {
    match value {
        Some(Value::Array(pairs)) => pairs
            .iter()
            .filter_map(|pair| {
                let name = pair.get("key")?.as_str()?.to_owned();
                Some((name, pair.get("value").map_or(Value::Null, any)))
            })
            .collect(),
        Some(Value::Object(plain)) => plain.clone(),
        _ => Map::new(),
    }
}

/// OTLP's `AnyValue`.
fn any(value: &Value) -> Value {
    let Some((kind, held)) = value.as_object().and_then(|object| object.iter().next()) else { return value.clone() };
    match kind.as_str() {
        "intValue" | "int_value" => match held.as_str().map(str::parse::<i64>) {
            Some(Ok(number)) => number.into(),
            _ => held.clone(),
        },
        "stringValue" | "string_value" | "boolValue" | "bool_value" | "doubleValue" | "double_value" | "bytesValue"
        | "bytes_value" => held.clone(),
        "arrayValue" | "array_value" => {
            held.get("values").and_then(Value::as_array).into_iter().flatten().map(any).collect()
        }
        "kvlistValue" | "kvlist_value" => Value::Object(attributes(held.get("values"))),
        _ => value.clone(),
    }
}
