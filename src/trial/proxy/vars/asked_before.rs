//! Recorded requests by which the number of a value is known, whichever of concurrent requests arrives first.
//!
//! A request that is a recorded one but for the values in its slots has the values of these slots. Only requests that are none
//! get numbers in order of appearance.

use super::{Generated, Vars, number_in};
use crate::cassette::Cassette;
use crate::platform::lock::lock;
use crate::platform::numbers;
use crate::scenario::external::SHORTEST_VALUE;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

/// A slot, with its name and number.
static SLOT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{([^{}#]+)#(\d+)(?::number)?\}\}").expect("an expression"));

/// A request of a recording that holds values.
#[derive(Debug, Clone)]
pub(crate) struct AskedBefore {
    pub(super) service: String,
    pub(super) path: String,
    pub(super) body: Value,
}

/// The value of a slot: name, number, value.
type Filled<'a> = (&'a str, usize, String);

impl AskedBefore {
    /// Those of a recording; one without values has none.
    pub(crate) fn of(cassette: &Cassette) -> Vec<Self> {
        if cassette.header.vars.is_empty() {
            return Vec::new();
        }
        let exchanges = cassette.exchanges.iter().zip(cassette.requests());
        let all = exchanges.map(|(exchange, request)| Self {
            service: exchange.service.clone(),
            path: request.path,
            body: request.body,
        });
        all.filter(|one| SLOT.is_match(&one.path) || SLOT.is_match(&one.body.to_string())).collect()
    }
}

impl Vars {
    /// With the requests of the recording that is replayed.
    pub(crate) fn knowing(self, asked_before: Vec<AskedBefore>) -> Self {
        Self { asked_before, ..self }
    }

    /// Path and body of a request as it was recorded, if it differs from a recorded one in generated values alone. These are
    /// known from then on.
    pub(super) fn recognised(&self, service: &str, (path, body): (&str, &Value)) -> Option<(String, Value)> {
        let mut generated = lock(&self.generated);
        self.asked_before.iter().filter(|one| one.service == service).find_map(|one| {
            let mut filled = Vec::new();
            let is_one = text_fills(path, &one.path, &mut filled) && fills(body, &one.body, &mut filled);
            if !is_one {
                return None;
            }
            let mut known = generated.clone();
            if !filled.iter().all(|one| self.takes(&mut known, one, body)) {
                return None;
            }
            *generated = known;
            Some((one.path.clone(), as_recorded(body, &one.body)))
        })
    }

    /// Whether a slot may have that value, which it then has.
    fn takes(&self, generated: &mut Generated, (name, number, value): &Filled<'_>, body: &Value) -> bool {
        let Some(recorded) = self.recorded.get(*name).and_then(|values| values.get(*number)) else { return false };
        let known = generated.entry((*name).to_owned()).or_default();
        if let Some(known) = known.get(number) {
            return known == value || recorded == value;
        }
        // A recorded value may come back from a response.
        let comes_back = recorded == value && !known.is_empty() && self.replayed.load(Ordering::SeqCst);
        if comes_back {
            return true;
        }
        let is_new = value.chars().count() >= SHORTEST_VALUE && number_in(known, value).is_none();
        if is_new && self.looks_like(name, (recorded, value), body) {
            known.insert(*number, value.clone());
            return true;
        }
        false
    }

    /// Whether a value of a request may be one of a declared variable: an expression of it finds it there, or letters and
    /// digits stand where those of the recorded one do.
    fn looks_like(&self, name: &str, (recorded, value): (&str, &str), body: &Value) -> bool {
        let mut own = self.patterns.iter().filter(|pattern| pattern.name == name);
        let shape = |text: &str| text.replace(char::is_alphanumeric, "x");
        own.any(|pattern| shape(recorded) == shape(value) || pattern.found(body).contains(&value))
    }
}

/// Whether a value is the recorded one but for what stands in its slots. Members that are not recorded are not compared.
fn fills<'r>(now: &Value, recorded: &'r Value, filled: &mut Vec<Filled<'r>>) -> bool {
    match (now, recorded) {
        (Value::String(now), Value::String(recorded)) => text_fills(now, recorded, filled),
        (Value::Number(_), Value::String(recorded)) => numbers::digits(now)
            .is_some_and(|now| recorded.ends_with(super::OF_NUMBER) && text_fills(&now, recorded, filled)),
        (Value::Array(now), Value::Array(recorded)) => {
            now.len() == recorded.len() && now.iter().zip(recorded).all(|(now, recorded)| fills(now, recorded, filled))
        }
        (Value::Object(now), Value::Object(recorded)) => {
            recorded.iter().all(|(name, recorded)| now.get(name).is_some_and(|now| fills(now, recorded, filled)))
        }
        (now, recorded) => now == recorded,
    }
}

/// Whether a text is the recorded one but for what stands in its slots.
fn text_fills<'r>(now: &str, recorded: &'r str, filled: &mut Vec<Filled<'r>>) -> bool {
    if now == recorded {
        return true;
    }
    let (mut rest, mut end) = (now, 0);
    let mut last: Option<(&str, usize)> = None;
    for found in SLOT.captures_iter(recorded) {
        let (Some(slot), Some(name), Some(number)) = (found.get(0), found.get(1), found.get(2)) else { return false };
        let between = &recorded[end..slot.start()];
        let Some((value, after)) = rest.split_once(between) else { return false };
        match last.replace((name.as_str(), number.as_str().parse().unwrap_or(usize::MAX))) {
            Some((name, number)) => filled.push((name, number, value.to_owned())),
            None if value.is_empty() => {}
            None => return false,
        }
        (rest, end) = (after, slot.end());
    }
    let Some(((name, number), value)) = last.zip(rest.strip_suffix(&recorded[end..])) else { return false };
    filled.push((name, number, value.to_owned()));
    true
}

/// A body with the recorded texts in place of those that hold values.
fn as_recorded(now: &Value, recorded: &Value) -> Value {
    match (now, recorded) {
        (Value::String(_) | Value::Number(_), Value::String(_)) => recorded.clone(),
        (Value::Array(now), Value::Array(recorded)) => {
            now.iter().zip(recorded).map(|(now, recorded)| as_recorded(now, recorded)).collect()
        }
        (Value::Object(now), Value::Object(recorded)) => {
            let of = |(name, now): (&String, &Value)| {
                (name.clone(), recorded.get(name).map_or_else(|| now.clone(), |recorded| as_recorded(now, recorded)))
            };
            now.iter().map(of).collect()
        }
        (now, _) => now.clone(),
    }
}
