//! go-vcr, versions 1 to 4: `interactions` in YAML, whose responses have `code` and, since version 1, `duration`.

use super::found::{self, Body, Found, Message, REQUEST, RESPONSE, Refusal, word};
use crate::platform::yaml::Node;
use std::collections::BTreeSet;
use std::time::Duration;

/// Whether an interaction is one of go-vcr, and not of VCR.py, whose files look alike.
pub(super) fn is(interaction: &Node<'_>) -> bool {
    let response = interaction.get("response");
    let python = interaction.get("request").is_some_and(|request| request.get("uri").is_some());
    !python && response.is_some_and(|response| response.get("code").is_some())
}

/// One exchange.
pub(super) fn read(interaction: &Node<'_>) -> Result<Found, Refusal> {
    let mut notes = BTreeSet::new();
    let request = interaction.get("request").ok_or(Refusal::NoAddress)?;
    let url = word(request, "url").filter(|url| !url.is_empty()).ok_or(Refusal::NoAddress)?.to_owned();
    // The standard library of Go sends GET for a request without a method.
    let method = match request.get("method") {
        Some(method) if method.written() == Some("") => "GET".to_owned(),
        _ => found::method(request)?,
    };
    let response = interaction.get("response").ok_or(Refusal::NoStatus)?;
    let status = found::status(response.get("code")).or_else(|| found::status(response.get("status")));
    let status = status.ok_or(Refusal::NoStatus)?;
    let mut message = |message: &Node<'_>, whose| {
        let headers = found::headers(message, &mut notes);
        let body = found::bytes(message.get("body"), whose)?.unwrap_or_default();
        Ok(Message { headers, body: Body::Bytes(body) })
    };
    let (sent, received) = (message(request, REQUEST)?, message(response, RESPONSE)?);
    let filled = |message: &Node<'_>, name| message.get(name).is_some_and(|member| !member.entries().is_empty());
    if filled(request, "trailer") || filled(response, "trailer") {
        notes.insert("headers behind the body (`trailer`) are left out");
    }
    if filled(request, "form") && matches!(&sent.body, Body::Bytes(bytes) if bytes.is_empty()) {
        notes.insert("the fields of a form (`form`) without the body that had them are left out");
    }
    let took = response.get("duration").and_then(Node::written).and_then(duration);
    Ok(Found { method, url, sent, status, received, took, at: None, notes })
}

/// A duration as Go writes it, `1m2.5s` for example; without a unit it is in nanoseconds. `None` for none.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(nanoseconds) = text.parse() {
        return Some(Duration::from_nanos(nanoseconds));
    }
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?);
        let unit = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = after;
    }
    Duration::try_from_secs_f64(total).ok().filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go_are_read_in_every_unit_and_other_texts_are_none() {
        for (text, milliseconds) in [
            ("1m2.5s", 62_500.0),
            ("637.342791ms", 637.342_791),
            ("1h0m0s", 3.6e6),
            ("250µs", 0.25),
            ("0s", 0.0),
            ("1500000", 1.5),
        ] {
            let read = duration(text).expect(text).as_secs_f64() * 1e3;
            assert!((read - milliseconds).abs() < 1e-6, "{text}: {read}");
        }
        for text in
            ["", "s", "5", "1.5", "-1s", "1 s", "99999999999999999999999h", "soon"].map(|text| (text, duration(text)))
        {
            assert_eq!(text.1.is_some(), text.0 == "5", "{text:?}");
        }
    }
}
