//! HAR 1.2: `log.entries` in JSON, as browsers export them and Polly records them.
//!
//! A browser stores a body decompressed, in base64 if it is binary. Polly stores a compressed body as it came: the
//! base64, or in older versions the hexadecimal digits, of each chunk, as a list in JSON.

use super::found::{self, Body, Found, Headers, Message, REQUEST, RESPONSE, Refusal, several, word};
use crate::platform::yaml::Node;
use std::collections::BTreeSet;
use std::time::Duration;

/// One exchange.
pub(super) fn read(entry: &Node<'_>, root: &Node<'_>) -> Result<Found, Refusal> {
    let mut notes = BTreeSet::new();
    let request = entry.get("request").ok_or(Refusal::NoAddress)?;
    let url = word(request, "url").ok_or(Refusal::NoAddress)?.to_owned();
    let method = found::method(request)?;
    if entry.get("_webSocketMessages").is_some() || word(entry, "_resourceType") == Some("websocket") {
        return Err(Refusal::WebSocket);
    }
    let response = entry.get("response").ok_or(Refusal::NoStatus)?;
    let status = found::status(response.get("status")).ok_or(Refusal::NoStatus)?;
    let (asked, mut answered) = (headers(request, &mut notes), headers(response, &mut notes));
    let sent = body(request.get("postData"), request.get("bodySize"), REQUEST)?;
    let content = response.get("content");
    let received = body(content, content.and_then(|content| content.get("size")), RESPONSE)?;
    let creator = root.get("log").and_then(|log| log.get("creator")).and_then(|creator| word(creator, "name"));
    if creator != Some("Polly.JS") {
        answered.retain(|(name, _)| name != "content-encoding");
    }
    let time = entry.get("time").and_then(Node::written).and_then(|time| time.parse::<f64>().ok());
    let took = time.and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok());
    let at = word(entry, "startedDateTime").map(str::to_owned);
    let (sent, received) = (Message { headers: asked, body: sent }, Message { headers: answered, body: received });
    Ok(Found { method, url, sent, status, received, took, at, notes })
}

/// The headers, of which the first of a name counts.
fn headers(message: &Node<'_>, notes: &mut BTreeSet<&'static str>) -> Headers {
    let mut headers: Headers = Vec::new();
    for header in message.get("headers").and_then(Node::items).unwrap_or_default() {
        let Some((name, value)) = word(header, "name").zip(header.get("value").and_then(Node::written)) else {
            continue;
        };
        let name = name.to_ascii_lowercase();
        let known = headers.iter().any(|(other, _)| *other == name);
        several(known, notes);
        if !known {
            headers.push((name, value.to_owned()));
        }
    }
    headers
}

/// The bytes of `postData` or `content`; none there are only if the size is not above 0.
fn body(holder: Option<&Node<'_>>, size: Option<&Node<'_>>, whose: &'static str) -> Result<Body, Refusal> {
    let text = holder.and_then(|holder| holder.get("text")).filter(|text| !text.is_null());
    let Some(text) = text else {
        let size = size.and_then(Node::written).and_then(|size| size.parse::<f64>().ok());
        let fields = holder.and_then(|holder| holder.get("params")).and_then(Node::items).unwrap_or_default();
        let there_was_one = size.is_some_and(|size| size > 0.0) || !fields.is_empty();
        return if there_was_one { Err(Refusal::NoBody(whose)) } else { Ok(Body::Bytes(Vec::new())) };
    };
    let text = text.text().ok_or(Refusal::NotBody(whose))?;
    let chunks = serde_json::from_str::<Vec<String>>(text).unwrap_or_else(|_| vec![text.to_owned()]);
    let encoding = holder.and_then(|holder| holder.get("encoding")).and_then(Node::text).unwrap_or_default();
    let hexadecimal = holder.and_then(|holder| holder.get("_isBinary")).and_then(Node::written) == Some("true");
    let pieces: Vec<Vec<u8>> = match encoding {
        "base64" => chunks.iter().map(|chunk| found::decoded(chunk, whose)).collect::<Result<_, _>>()?,
        "" if hexadecimal => match chunks.iter().map(hex::decode).collect() {
            Ok(pieces) => pieces,
            Err(_) => vec![text.as_bytes().to_vec()],
        },
        "" | "utf8" | "utf-8" => vec![text.as_bytes().to_vec()],
        encoding => {
            return Err(Refusal::Encoding { whose, encoding: super::super::word_diff::printable(encoding, 40) });
        }
    };
    Ok(Body::Bytes(pieces.concat()))
}
