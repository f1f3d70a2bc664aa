//! VCR.py: `interactions`, in YAML or JSON, with bodies as text, as `!!binary`, as `base64_string`, or as the
//! `parsed_body` that some projects store in place of the bytes. httpx's recorder writes `content` and `status_code`.

use super::found::{self, Body, Found, Message, REQUEST, RESPONSE, Refusal, is_document, word};
use crate::platform::yaml::Node;
use std::collections::BTreeSet;

/// Members of a mapping that wraps a body.
const WRAPPING: [&str; 3] = ["string", "base64_string", "encoding"];

/// One exchange.
pub(super) fn read(interaction: &Node<'_>) -> Result<Found, Refusal> {
    let mut notes = BTreeSet::new();
    let request = interaction.get("request").ok_or(Refusal::NoAddress)?;
    let url = word(request, "uri").or_else(|| word(request, "url")).ok_or(Refusal::NoAddress)?.to_owned();
    let method = found::method(request)?;
    let response = interaction.get("response").ok_or(Refusal::NoStatus)?;
    let status = response.get("status").map(|status| status.get("code").unwrap_or(status));
    let status = found::status(status.or_else(|| response.get("status_code"))).ok_or(Refusal::NoStatus)?;
    if ["body", "content", "parsed_body"].iter().all(|name| response.get(name).is_none()) {
        notes.insert("a response has no `body` in its file: it is empty in the recording");
    }
    let mut message = |message: &Node<'_>, whose| {
        Ok(Message { headers: found::headers(message, &mut notes), body: body(message, whose)? })
    };
    let (sent, received) = (message(request, REQUEST)?, message(response, RESPONSE)?);
    Ok(Found { method, url, sent, status, received, took: None, at: None, notes })
}

fn body(message: &Node<'_>, whose: &'static str) -> Result<Body, Refusal> {
    let member = |name: &&str| message.get(name).filter(|body| !body.is_null());
    if let Some(parsed) = member(&"parsed_body") {
        return Ok(Body::Parsed(parsed.to_value()));
    }
    let Some(body) = ["body", "content"].iter().find_map(member) else { return Ok(Body::Bytes(Vec::new())) };
    let names: Vec<&str> = body.entries().into_iter().filter_map(|(name, _)| name.written()).collect();
    let wrapped = !names.is_empty() && names.iter().all(|name| WRAPPING.contains(name));
    if !wrapped && is_document(body) {
        return Ok(Body::Parsed(body.to_value()));
    }
    let bytes = match body.get("base64_string").and_then(Node::text) {
        Some(packed) => Some(found::decoded(packed, whose)?),
        None if wrapped => found::bytes(body.get("string"), whose)?,
        None => found::bytes(Some(body), whose)?,
    };
    Ok(Body::Bytes(bytes.unwrap_or_default()))
}
