//! Runs of LangSmith as its SDK posts them to `/runs/multipart`: a part for each run, named `post.ID` or `patch.ID`, and one
//! for each of its large members, `post.ID.inputs` for example. A file may hold the bodies of several requests.

use super::{Batch, SpanError};
use crate::platform::lenient_json::repaired;
use crate::trace::text::quote;
use memchr::memmem;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What begins each part and ends a body, before its boundary.
const DASHES: &[u8] = b"--";
/// Bytes of a boundary, by RFC 2046.
const LONGEST_BOUNDARY: usize = 70;
/// Bytes of the head of a part.
const LONGEST_HEAD: usize = 4096;

/// The boundary with which a body begins; `None` if these bytes are no such body.
fn boundary(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(DASHES)?;
    let end = memmem::find(&rest[..rest.len().min(LONGEST_BOUNDARY + 2)], b"\r\n")?;
    let head = &rest[end..rest.len().min(end + LONGEST_HEAD)];
    let names = memmem::find(&head.to_ascii_lowercase(), b"content-disposition: form-data").is_some();
    (end > 0 && names).then(|| &bytes[..end + DASHES.len()])
}

/// Whether the input begins with such a body.
pub(super) fn fits(bytes: &[u8]) -> bool {
    boundary(bytes).is_some()
}

/// The runs in all bodies, each as often as it was posted and patched. What is none is listed.
pub(super) fn runs(bytes: &[u8], batch: &mut Batch) -> Vec<Value> {
    let mut runs: Vec<Map<String, Value>> = Vec::new();
    let mut places: BTreeMap<(bool, String), usize> = BTreeMap::new();
    let mut rest = bytes;
    while let Some(boundary) = boundary(rest) {
        let delimiter = [b"\r\n", boundary].concat();
        let mut body = &rest[boundary.len()..];
        loop {
            if body.starts_with(DASHES) {
                rest = body[DASHES.len()..].trim_ascii_start();
                break;
            }
            let (part, next) = if let Some(end) = memmem::find(body, &delimiter) {
                (&body[..end], &body[end + delimiter.len()..])
            } else {
                batch.unread.push("the last part is cut off".to_owned());
                (body, &b"--"[..])
            };
            match add(part, &mut runs, &mut places) {
                Ok(None) => {}
                Ok(Some(remark)) => batch.odd.push(remark),
                Err(why) => batch.unread.push(why.to_string()),
            }
            body = next;
        }
    }
    if !rest.is_empty() {
        batch.unread.push(format!("the last {} bytes are no part", rest.len()));
    }
    runs.into_iter().map(Value::Object).collect()
}

/// Adds what a part says of a run. An attachment is of none, and is a remark.
fn add(
    part: &[u8],
    runs: &mut Vec<Map<String, Value>>,
    places: &mut BTreeMap<(bool, String), usize>,
) -> Result<Option<String>, SpanError> {
    let end = memmem::find(part, b"\r\n\r\n").ok_or(SpanError::from("a part has no head"))?;
    let head = String::from_utf8_lossy(&part[..end]);
    let name = head.split_once("name=\"").and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default();
    let shown = || quote(name, 60);
    let mut words = name.splitn(3, '.');
    let (kind, id, member) = (words.next().unwrap_or_default(), words.next().unwrap_or_default(), words.next());
    if kind == "attachment" {
        return Ok(Some(format!("the part `{}` is of no run", shown())));
    }
    if !matches!(kind, "post" | "patch") || id.is_empty() {
        return Err(SpanError(format!("the part `{}` is of no run", shown())));
    }
    let content = &part[end + 4..];
    let mended = || repaired(content).and_then(|(clean, _)| serde_json::from_slice(&clean).ok());
    let value: Value = serde_json::from_slice(content)
        .or_else(|why| mended().ok_or(why))
        .map_err(|why| SpanError(format!("the part `{}` is not JSON: {why}", shown())))?;
    let place = *places.entry((kind == "post", id.to_owned())).or_insert_with(|| {
        runs.push(Map::from_iter([("id".to_owned(), id.into())]));
        runs.len() - 1
    });
    match (member, value) {
        (Some(member), value) => _ = runs[place].insert(member.to_owned(), value),
        (None, Value::Object(run)) => runs[place].extend(run),
        (None, _) => return Err(SpanError(format!("the part `{}` is no run", shown()))),
    }
    Ok(None)
}
