//! Converts between a [`Cassette`] and the document in its file.
//!
//! Writes version 2. Version 1 lacks the `end:` line of [`super::end`], and is read for conversion only. A reader
//! refuses a newer version, ignores unknown members, and reports line and column of anything missing or of the wrong
//! type. Members that a reader may not know:
//!
//! `chunks` of a stream are pairs of arrival and end; without them, the same bytes are replayed at once. `beside` marks
//! exchanges of an external agent that were sent while an earlier one was in progress; without it, exchanges count as
//! sent in order of arrival. `at_us` is when one was sent, since its turn began; without it in a turn, they count as sent one
//! after the other. `vars` are lists by name, for agents that generate values per run. `spans` are
//! what an agent's spans told, a line each. `stopping` is the design of a run until decided; without it, `stopping.json` applies.
//! `held` counts the calls that an earlier recording answered when this one was made.

use super::body;
use super::drift::Drift;
use super::exchange::{Cassette, Chunk, Exchange, Header, Outcome, Take};
use super::stopping::StoppingDesign;
use crate::platform::yaml::{Node, Place, Scalar};
use crate::trace::HeldCalls;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Version of the format that this build writes.
pub(super) const VERSION: u64 = 2;

/// A problem in a document, with its position.
#[derive(Debug)]
pub(super) struct Wrong {
    pub place: Place,
    pub message: String,
}

type Parsed<T> = Result<T, Wrong>;

fn wrong<T>(node: &Node<'_>, message: impl Into<String>) -> Parsed<T> {
    Err(Wrong { place: node.place, message: message.into() })
}

fn member<'n, 'a>(node: &'n Node<'a>, name: &str) -> Parsed<&'n Node<'a>> {
    match node.get(name) {
        Some(member) => Ok(member),
        None if node.is_map() => wrong(node, format!("`{name}` is missing here")),
        None => wrong(node, format!("expected a map with `{name}`, found {}", node.describe())),
    }
}

fn text(node: &Node<'_>, name: &str) -> Parsed<String> {
    let member = member(node, name)?;
    match member.text() {
        Some(text) => Ok(text.to_owned()),
        None => wrong(member, format!("`{name}` must be a string, not {}", member.describe())),
    }
}

fn text_or_empty(node: &Node<'_>, name: &str) -> Parsed<String> {
    if node.get(name).is_none() { Ok(String::new()) } else { text(node, name) }
}

fn number(node: &Node<'_>, name: &str) -> Parsed<u64> {
    let member = member(node, name)?;
    whole(member, name)
}

fn whole(node: &Node<'_>, name: &str) -> Parsed<u64> {
    match node.scalar() {
        Some(Scalar::Number(number)) if number.is_u64() => Ok(number.as_u64().unwrap_or_default()),
        _ => wrong(node, format!("`{name}` must be a whole number, 0 or more, not {}", node.describe())),
    }
}

fn small<T: TryFrom<u64>>(node: &Node<'_>, name: &str) -> Parsed<T> {
    match T::try_from(number(node, name)?) {
        Ok(number) => Ok(number),
        Err(_) => wrong(node.get(name).unwrap_or(node), format!("`{name}` is too large")),
    }
}

fn entries<'n>(node: &'n Node<'_>, name: &str) -> Parsed<Vec<(&'n str, &'n Node<'n>)>> {
    match node.get(name) {
        None => Ok(Vec::new()),
        Some(map) if map.is_map() => {
            let named = |(key, value): (&'n Node<'_>, &'n Node<'_>)| Some((key.written()?, value));
            Ok(map.entries().into_iter().filter_map(named).collect())
        }
        Some(other) => wrong(other, format!("`{name}` must be a map, not {}", other.describe())),
    }
}

/// The texts of a list; `otherwise` says what an item must be.
fn texts(node: &Node<'_>, name: &str, otherwise: &str) -> Parsed<Vec<String>> {
    let text = |item: &Node<'_>| match item.text() {
        Some(text) => Ok(text.to_owned()),
        None => wrong(item, otherwise),
    };
    list(node, name)?.iter().map(text).collect()
}

fn list<'n, 'a>(node: &'n Node<'a>, name: &str) -> Parsed<&'n [Node<'a>]> {
    match node.items() {
        Some(items) => Ok(items),
        None => wrong(node, format!("`{name}` must be a list, not {}", node.describe())),
    }
}

/// Version in the document.
pub(super) fn version(root: &Node<'_>) -> Parsed<u64> {
    number(root, "cassette")
}

/// Decodes a document of the current version.
pub(super) fn decode(root: &Node<'_>) -> Parsed<Cassette> {
    let at = recorded_at(root)?;
    let seed = member(root, "seed")?;
    let Some(seed) = seed.text().and_then(|text| text.parse::<u64>().ok()) else {
        return wrong(seed, "`seed` must be a quoted whole number");
    };
    let mut header = Header {
        scenario: text(root, "scenario")?,
        case: text(root, "case")?,
        lane: text(root, "lane")?,
        recorded_at: at,
        recorder: text(root, "recorder")?,
        knowledge: text(root, "knowledge")?,
        seed,
        subject: if root.get("subject").is_some() { text(root, "subject")? } else { String::new() },
        take: small(root, "take")?,
        stopping: root.get("stopping").map(stopping).transpose()?,
        held: root.get("held").map(held).transpose()?,
        ..Header::default()
    };
    for (service, node) in entries(root, "recorded_from")? {
        let name = node.text().map(str::to_owned);
        let Some(name) = name else { return wrong(node, "who answered must be a string") };
        header.recorded_from.insert(service.to_string(), name);
    }
    for (profile, node) in entries(root, "profiles")? {
        header.profiles.insert(profile.to_string(), u32::try_from(whole(node, profile)?).unwrap_or(u32::MAX));
    }
    for (name, node) in entries(root, "vars")? {
        header.vars.insert(name.to_string(), texts(node, name, "a value of `vars` must be a string")?);
    }
    if let Some(spans) = root.get("spans") {
        let lines = list(spans, "spans")?.iter().map(|line| line.text().map(str::to_owned));
        let Some(lines) = lines.collect() else { return wrong(spans, "an item of `spans` must be a string") };
        header.spans = lines;
    }
    if let Some(takes) = root.get("takes") {
        for node in list(takes, "takes")? {
            let take = Take { recorded_at: recorded_at(node)?, verdict: text(node, "verdict")? };
            header.takes.insert(small(node, "take")?, take);
        }
    }
    let mut stages = BTreeMap::new();
    for (stage, node) in entries(root, "stages_us")? {
        let times = list(node, stage)?.iter().map(|time| whole(time, stage).map(Duration::from_micros));
        stages.insert(stage.to_string(), times.collect::<Parsed<Vec<_>>>()?);
    }
    let exchanges = list(member(root, "exchanges")?, "exchanges")?;
    let exchanges = exchanges.iter().map(exchange).collect::<Parsed<Vec<_>>>()?;
    Ok(Cassette { header, exchanges, stages, edited: false, sealed: false, recorded: None, source: None })
}

/// Calls that an earlier recording answered.
fn held(node: &Node<'_>) -> Parsed<HeldCalls> {
    let optional = |name| node.get(name).map(|_| text(node, name)).transpose();
    Ok(HeldCalls {
        services: texts(member(node, "services")?, "services", "an item of `services` must be a string")?,
        lane: optional("lane")?,
        recorded_at: optional("recorded_at")?,
        recorded: small(node, "recorded")?,
        forced: small(node, "forced")?,
        new: small(node, "new")?,
    })
}

/// Design of the run until decided that made the lane.
fn stopping(node: &Node<'_>) -> Parsed<StoppingDesign> {
    let share = |name: &str| {
        let member = member(node, name)?;
        match member.scalar() {
            Some(Scalar::Number(number)) => Ok(number.as_f64().unwrap_or_default()),
            _ => wrong(member, format!("`{name}` must be a number, not {}", member.describe())),
        }
    };
    let together = texts(member(node, "together")?, "together", "the name of a scenario must be a string")?;
    let (alpha_pass, alpha_fail) = (share("alpha_pass")?, share("alpha_fail")?);
    let design = StoppingDesign::new(small(node, "max_passes")?, alpha_pass, alpha_fail, together);
    Ok(StoppingDesign { rule: text(node, "rule")?, ..design })
}

fn recorded_at(node: &Node<'_>) -> Parsed<jiff::Timestamp> {
    let recorded_at = member(node, "recorded_at")?;
    match recorded_at.text().and_then(|text| text.parse::<jiff::Timestamp>().ok()) {
        Some(at) => Ok(at),
        None => wrong(recorded_at, "`recorded_at` must be a quoted time such as \"2026-02-11T09:14:03Z\""),
    }
}

fn exchange(node: &Node<'_>) -> Parsed<Exchange> {
    let drift = match node.get("drift") {
        None => Drift::default(),
        Some(drift) => Drift {
            model: text_or_empty(drift, "model")?,
            system: text_or_empty(drift, "system")?,
            tools: text_or_empty(drift, "tools")?,
            parameters: text_or_empty(drift, "parameters")?,
        },
    };
    Ok(Exchange {
        ordinal: small(node, "ordinal")?,
        service: text(node, "service")?,
        profile: text(node, "profile")?,
        key: text(node, "key")?,
        drift,
        request: None,
        outcome: outcome(member(node, "response")?)?,
        beside: node.get("beside").and_then(Node::scalar) == Some(Scalar::Bool(true)),
        at: node.get("at_us").map(|at| whole(at, "at_us")).transpose()?.map(Duration::from_micros),
    })
}

fn outcome(node: &Node<'_>) -> Parsed<Outcome> {
    let took = Duration::from_micros(number(node, "took_us")?);
    if node.get("connection_error").is_some() {
        return Ok(Outcome::ConnectionError { message: text(node, "connection_error")?, took });
    }
    if node.get("timeout").is_some() {
        return Ok(Outcome::Timeout { after: took });
    }
    if node.get("abandoned").is_some() {
        return Ok(Outcome::Abandoned { after: took });
    }
    let mut headers = Vec::new();
    for (name, value) in entries(node, "headers")? {
        for value in value.items().unwrap_or(std::slice::from_ref(value)) {
            let Some(text) = value.text() else { return wrong(value, "a header's value must be a string") };
            headers.push((name.to_string(), text.to_owned()));
        }
    }
    let body = match body::decode(node) {
        Ok(body) => body,
        Err((message, place)) => return wrong(place, message),
    };
    let rewritten = node.get("rewritten").and_then(Node::scalar) == Some(Scalar::Bool(true));
    let chunks = match node.get("chunks") {
        None => Vec::new(),
        Some(chunks) => list(chunks, "chunks")?.iter().map(chunk).collect::<Parsed<Vec<_>>>()?,
    };
    let ends = chunks.iter().map(|chunk| chunk.end).chain([body.len()]);
    if !chunks.is_empty() && !ends.is_sorted() {
        return wrong(node.get("chunks").unwrap_or(node), "the `chunks` end after the body, or out of order");
    }
    Ok(Outcome::Response { status: small(node, "status")?, headers, body, took, rewritten, chunks })
}

fn chunk(node: &Node<'_>) -> Parsed<Chunk> {
    let [at, end] = list(node, "chunks")? else {
        return wrong(node, "a chunk is `[microseconds from sending, bytes of the body so far]`");
    };
    let end = usize::try_from(whole(end, "chunks")?).unwrap_or(usize::MAX);
    Ok(Chunk { at: Duration::from_micros(whole(at, "chunks")?), end })
}

/// The document of a cassette with these requests.
pub(super) fn encode(cassette: &Cassette, requests: Vec<Value>) -> Value {
    let header = &cassette.header;
    let exchanges: Vec<Value> = cassette
        .exchanges
        .iter()
        .zip(requests)
        .map(|(exchange, request)| exchange_document(exchange, request))
        .collect();
    let stages: Map<String, Value> = cassette
        .stages
        .iter()
        .map(|(stage, times)| (stage.clone(), times.iter().map(|time| json!(micros(*time))).collect()))
        .collect();
    let takes: Vec<Value> = header
        .takes
        .iter()
        .map(|(number, take)| {
            json!({"take": number, "recorded_at": take.recorded_at.to_string(), "verdict": take.verdict})
        })
        .collect();
    let mut document = json!({
        "cassette": VERSION,
        "scenario": header.scenario,
        "case": header.case,
        "lane": header.lane,
        "recorded_at": header.recorded_at.to_string(),
        "recorded_from": header.recorded_from,
        "recorder": header.recorder,
        "knowledge": header.knowledge,
        "seed": header.seed.to_string(),
    });
    if let Value::Object(entries) = &mut document {
        if !header.subject.is_empty() {
            entries.insert("subject".to_owned(), json!(header.subject));
        }
        entries.insert("take".to_owned(), json!(header.take));
        if !takes.is_empty() {
            entries.insert("takes".to_owned(), takes.into());
        }
        entries.insert("profiles".to_owned(), json!(header.profiles));
        if !header.vars.is_empty() {
            entries.insert("vars".to_owned(), json!(header.vars));
        }
        if !header.spans.is_empty() {
            entries.insert("spans".to_owned(), json!(header.spans));
        }
        if let Some(design) = &header.stopping {
            let StoppingDesign { rule, max_passes, alpha_pass, alpha_fail, together, .. } = design;
            let stopping = json!({
                "rule": rule,
                "max_passes": max_passes,
                "alpha_pass": alpha_pass,
                "alpha_fail": alpha_fail,
                "together": together,
            });
            entries.insert("stopping".to_owned(), stopping);
        }
        if let Some(held) = &header.held {
            entries.insert("held".to_owned(), json!(held));
        }
        entries.insert("stages_us".to_owned(), stages.into());
        entries.insert("exchanges".to_owned(), exchanges.into());
    }
    document
}

fn exchange_document(exchange: &Exchange, request: Value) -> Value {
    let mut drift = Map::new();
    for (name, value) in [
        ("model", &exchange.drift.model),
        ("system", &exchange.drift.system),
        ("tools", &exchange.drift.tools),
        ("parameters", &exchange.drift.parameters),
    ] {
        if !value.is_empty() {
            drift.insert(name.to_owned(), json!(value));
        }
    }
    let mut document = json!({
        "ordinal": exchange.ordinal,
        "service": exchange.service,
        "profile": exchange.profile,
        "key": exchange.key,
        "drift": drift,
    });
    if let Value::Object(entries) = &mut document {
        if exchange.beside {
            entries.insert("beside".to_owned(), json!(true));
        }
        if let Some(at) = exchange.at {
            entries.insert("at_us".to_owned(), json!(micros(at)));
        }
        if !request.is_null() {
            entries.insert("request".to_owned(), request);
        }
        entries.insert("response".to_owned(), outcome_document(&exchange.outcome));
    }
    document
}

/// Headers by their names; those that occur several times, such as cookies, as a list.
fn by_name(headers: &[(String, String)]) -> Map<String, Value> {
    let mut document = Map::new();
    for (name, value) in headers {
        match document.get_mut(name) {
            None => drop(document.insert(name.clone(), json!(value))),
            Some(Value::Array(values)) => values.push(json!(value)),
            Some(one) => *one = json!([one.take(), value]),
        }
    }
    document
}

fn outcome_document(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::ConnectionError { message, took } => json!({"connection_error": message, "took_us": micros(*took)}),
        Outcome::Timeout { after } => json!({"timeout": true, "took_us": micros(*after)}),
        Outcome::Abandoned { after } => json!({"abandoned": true, "took_us": micros(*after)}),
        Outcome::Response { status, headers, body, took, rewritten, chunks } => {
            let headers = by_name(headers);
            let mut document = json!({"status": status, "took_us": micros(*took), "headers": headers});
            if let Value::Object(entries) = &mut document {
                if *rewritten {
                    entries.insert("rewritten".to_owned(), json!(true));
                }
                if !chunks.is_empty() {
                    let pairs = chunks.iter().map(|chunk| json!([micros(chunk.at), chunk.end]));
                    entries.insert("chunks".to_owned(), pairs.collect());
                }
                let (form, value) = body::encode(body);
                entries.insert(form.to_owned(), value);
            }
            document
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
