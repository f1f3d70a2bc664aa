//! Ruby VCR: `http_interactions`, in YAML or JSON, with bodies as text, as `!binary` or as `base64_string`.
//!
//! A body's text is UTF-8 in the file, and its `encoding` is that of the bytes which were sent or received
//! (<https://benoittgt.github.io/vcr/>, "Preserve exact body bytes").

use super::found::{self, Body, Found, Message, REQUEST, RESPONSE, Refusal, word};
use crate::platform::yaml::Node;
use std::collections::BTreeSet;

/// One exchange.
pub(super) fn read(interaction: &Node<'_>, root: &Node<'_>) -> Result<Found, Refusal> {
    let mut notes = BTreeSet::new();
    let request = interaction.get("request").ok_or(Refusal::NoAddress)?;
    let url = word(request, "uri").ok_or(Refusal::NoAddress)?.to_owned();
    let method = found::method(request)?;
    let response = interaction.get("response").ok_or(Refusal::NoStatus)?;
    let status =
        found::status(response.get("status").and_then(|status| status.get("code"))).ok_or(Refusal::NoStatus)?;
    let sent = message(request, REQUEST, &mut notes)?;
    let received = message(response, RESPONSE, &mut notes)?;
    let at = word(interaction, "recorded_at").map(str::to_owned);
    if at.is_none() && root.get("recorded_with").is_none() {
        notes.insert("a file has no end (`recorded_with`): its last body may be cut off");
    }
    Ok(Found { method, url, sent, status, received, took: None, at, notes })
}

fn message(message: &Node<'_>, whose: &'static str, notes: &mut BTreeSet<&'static str>) -> Result<Message, Refusal> {
    let mut headers = found::headers(message, notes);
    let Some(body) = message.get("body").filter(|body| body.is_map()) else {
        let bytes = found::bytes(message.get("body"), whose)?.unwrap_or_default();
        return Ok(Message { headers, body: Body::Bytes(bytes) });
    };
    if let Some(packed) = body.get("base64_string").filter(|packed| !packed.is_null()) {
        let bytes = found::decoded(packed.text().ok_or(Refusal::NotBase64(whose))?, whose)?;
        return Ok(Message { headers, body: Body::Bytes(bytes) });
    }
    let string = body.get("string");
    let mut bytes = found::bytes(string, whose)?.unwrap_or_default();
    if string.is_some_and(|string| string.binary().is_none()) {
        match word(body, "encoding").unwrap_or_default().to_ascii_uppercase().as_str() {
            "ISO-8859-1" => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect();
            }
            "" | "UTF-8" | "US-ASCII" | "ASCII-8BIT" | "BINARY" => {}
            _ if bytes.is_ascii() => {}
            _ => {
                notes.insert("a body in another encoding than UTF-8 or ISO-8859-1 is written as UTF-8");
            }
        }
    }
    // With `decode_compressed_response` the file has the text, and may still have the header.
    if message.get("adapter_metadata").is_some_and(|about| about.get("vcr_decompressed").is_some()) {
        headers.retain(|(name, _)| name != "content-encoding");
    }
    Ok(Message { headers, body: Body::Bytes(bytes) })
}
