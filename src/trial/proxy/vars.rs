//! What an agent generates, dates and ids, taken out of requests and put back into replayed responses.
//!
//! A pattern names places in request bodies by JSON pointer, `*` standing for any member or index, or the path of requests
//! to declared services, and within them, by a regular expression, the value. The values of one pattern are numbered in order of appearance, so `ticket#1` is the
//! second ticket of a trial, whatever it is called today. In keys and in the cassette stands the number; the values of
//! the recording stand in the cassette's header. A replayed response holds recorded values: those that the agent has
//! generated anew since are exchanged for its own, wherever they stand whole. Where they do not (a stream cuts them), the
//! agent sees the recorded one and says it again, which is understood as well.

use crate::platform::clock::BoxFuture;
use crate::platform::lock::lock;
use crate::scenario::external::IN_PATH;
use crate::transport::{HttpRequest, HttpResponse, Service, Transport, TransportError, raw};
use bytes::Bytes;
use regex::Regex;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Values shorter than this are not bound: exchanging them would tear ordinary words apart.
const SHORTEST: usize = 4;

/// Where one generated value is found.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub name: String,
    /// JSON pointer into request bodies, or [`IN_PATH`].
    pub at: String,
    /// What of the text there is the value: the first group, or the whole match. Without it, the whole text.
    pub expression: Option<Regex>,
}

/// The values of one trial.
#[derive(Debug)]
pub(crate) struct Vars {
    patterns: Vec<Pattern>,
    recorded: BTreeMap<String, Vec<String>>,
    generated: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Vars {
    /// Nothing bound yet; `recorded` are the values of the recording that is replayed.
    pub(crate) fn new(patterns: Vec<Pattern>, recorded: BTreeMap<String, Vec<String>>) -> Self {
        Self { patterns, recorded, generated: Mutex::default() }
    }

    /// What the agent has generated so far, by name, in order of appearance.
    pub(crate) fn values(&self) -> BTreeMap<String, Vec<String>> {
        lock(&self.generated).clone()
    }

    /// The body with a numbered name in place of each value.
    pub(crate) fn bind(&self, body: &Value) -> Value {
        if self.patterns.is_empty() {
            return body.clone();
        }
        for pattern in self.patterns.iter().filter(|pattern| pattern.at != IN_PATH) {
            let mut texts = Vec::new();
            find(body, pattern.at.strip_prefix('/').map(|rest| rest.split('/')), &mut texts);
            for text in texts {
                self.note(pattern, text);
            }
        }
        let mut bound = body.clone();
        for pattern in &self.patterns {
            if let Some(steps) = pattern.at.strip_prefix('/').filter(|_| pattern.expression.is_none()) {
                numbers(&mut bound, steps.split('/'), &mut |number| self.bind_number(pattern, number));
            }
        }
        replaced_in(&bound, &self.names())
    }

    /// The path of a request to a declared service with a numbered name in place of each value.
    fn bind_path(&self, path: &str) -> String {
        if self.patterns.is_empty() {
            return path.to_owned();
        }
        self.patterns.iter().filter(|pattern| pattern.at == IN_PATH).for_each(|pattern| self.note(pattern, path));
        replaced(path, &self.names()).into_owned()
    }

    /// Keeps the values of a pattern in a text.
    fn note(&self, pattern: &Pattern, text: &str) {
        let mut generated = lock(&self.generated);
        for value in pattern.values(text).filter(|value| value.chars().count() >= SHORTEST) {
            let known = generated.entry(pattern.name.clone()).or_default();
            let of_old = self.recorded.get(&pattern.name).is_some_and(|old| old.iter().any(|one| one == value));
            // A recorded value comes back where a response could not be rewritten: it is no new one.
            let echoed = of_old && !known.is_empty();
            if !echoed && !known.iter().any(|one| one == value) {
                known.push(value.to_owned());
            }
        }
    }

    /// The slot of a number at the place of a pattern, if it is long enough.
    fn bind_number(&self, pattern: &Pattern, number: &Number) -> Option<Value> {
        let text = number.to_string();
        self.note(pattern, &text);
        let begin = format!("{{{{{}#", pattern.name);
        let (_, slot) = self.names().into_iter().find(|(value, slot)| *value == text && slot.starts_with(&begin))?;
        Some(Value::String(format!("{}{OF_NUMBER}", slot.strip_suffix("}}")?)))
    }

    /// Values of the agent and of the recording, with their numbered names.
    fn names(&self) -> Vec<(String, String)> {
        let generated = lock(&self.generated);
        let values = generated.iter().chain(&self.recorded);
        let pairs = values
            .flat_map(|(name, values)| values.iter().enumerate().map(move |(n, value)| (value.clone(), slot(name, n))));
        longest_first(pairs.collect())
    }

    /// A bound body with the agent's own values again: what a live service is sent.
    pub(crate) fn unbind(&self, body: &Value) -> Value {
        replaced_in(body, &slots(&lock(&self.generated)))
    }

    /// A body, bound or the agent's own, with the values of the recording: what a trace tells. While recording, those are the
    /// agent's.
    pub(crate) fn as_recorded(&self, body: &Value) -> Value {
        replaced_in(body, &self.to_recorded())
    }

    /// Text of the agent's, or a bound path, with the values of the recording.
    pub(crate) fn told(&self, text: &str) -> String {
        replaced(text, &self.to_recorded()).into_owned()
    }

    /// The agent's values of today, and slots, with the values of the recording that take their place.
    fn to_recorded(&self) -> Vec<(String, String)> {
        let today = self.pairs(&self.recorded).into_iter().map(|(old, new)| (new, old));
        longest_first(today.chain(self.recorded_slots()).collect())
    }

    fn recorded_slots(&self) -> Vec<(String, String)> {
        if self.recorded.is_empty() { slots(&lock(&self.generated)) } else { slots(&self.recorded) }
    }

    /// Replayed bytes with the values that the agent generated today.
    fn put_back(&self, body: &Bytes, recorded: &BTreeMap<String, Vec<String>>) -> Bytes {
        let pairs = longest_first(self.pairs(recorded));
        match std::str::from_utf8(body).map(|text| replaced(text, &pairs)) {
            Ok(Cow::Owned(text)) => Bytes::from(text),
            _ => body.clone(),
        }
    }

    /// Recorded values with those of today that take their place.
    fn pairs(&self, recorded: &BTreeMap<String, Vec<String>>) -> Vec<(String, String)> {
        let generated = lock(&self.generated);
        let pairs = recorded.iter().flat_map(|(name, old)| {
            let new = generated.get(name).map_or(&[][..], Vec::as_slice);
            old.iter().zip(new).filter(|(old, new)| old != new).map(|(old, new)| (old.clone(), new.clone()))
        });
        pairs.collect()
    }
}

impl Pattern {
    fn values<'t>(&'t self, text: &'t str) -> Box<dyn Iterator<Item = &'t str> + 't> {
        match &self.expression {
            None => Box::new(std::iter::once(text)),
            Some(expression) => Box::new(
                expression.captures_iter(text).filter_map(|found| found.get(1).or(found.get(0))).map(|m| m.as_str()),
            ),
        }
    }
}

/// End of the slot of a JSON number.
const OF_NUMBER: &str = ":number}}";

fn slot(name: &str, number: usize) -> String {
    format!("{{{{{name}#{number}}}}}")
}

fn slots(values: &BTreeMap<String, Vec<String>>) -> Vec<(String, String)> {
    let of = |(name, values): (&String, &Vec<String>)| -> Vec<(String, String)> {
        values.iter().enumerate().map(|(n, value)| (slot(name, n), value.clone())).collect()
    };
    values.iter().flat_map(of).collect()
}

fn longest_first(mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
    pairs.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
    pairs.dedup_by(|a, b| a.0 == b.0);
    pairs
}

/// All texts at a pointer; `None` is the document itself.
fn find<'v>(value: &'v Value, steps: Option<std::str::Split<'_, char>>, texts: &mut Vec<&'v str>) {
    let Some(mut steps) = steps else {
        texts.extend(value.as_str());
        return;
    };
    let Some(step) = steps.next() else {
        texts.extend(value.as_str());
        return;
    };
    let name = step.replace("~1", "/").replace("~0", "~");
    match value {
        Value::Array(items) if step == "*" => items.iter().for_each(|item| find(item, Some(steps.clone()), texts)),
        Value::Object(members) if step == "*" => {
            members.values().for_each(|item| find(item, Some(steps.clone()), texts));
        }
        Value::Array(items) => {
            if let Some(item) = name.parse().ok().and_then(|at: usize| items.get(at)) {
                find(item, Some(steps), texts);
            }
        }
        Value::Object(members) => {
            if let Some(item) = members.get(&name) {
                find(item, Some(steps), texts);
            }
        }
        _ => {}
    }
}

/// Replaces the numbers at a pointer whose last step is a name or an index by what `each` returns for them.
fn numbers(value: &mut Value, mut steps: std::str::Split<'_, char>, each: &mut impl FnMut(&Number) -> Option<Value>) {
    let Some(step) = steps.next() else {
        if let Value::Number(number) = value
            && let Some(slot) = each(number)
        {
            *value = slot;
        }
        return;
    };
    let (name, ends) = (step.replace("~1", "/").replace("~0", "~"), steps.clone().next().is_none());
    let mut below = |value: &mut Value| numbers(value, steps.clone(), each);
    match value {
        // What else stands there was passed over before numbers were bound.
        _ if step == "*" && ends => {}
        Value::Array(items) if step == "*" => items.iter_mut().for_each(below),
        Value::Object(members) if step == "*" => members.values_mut().for_each(below),
        Value::Array(items) => {
            if let Some(item) = name.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                below(item);
            }
        }
        Value::Object(members) => {
            if let Some(item) = members.get_mut(&name) {
                below(item);
            }
        }
        _ => {}
    }
}

fn replaced<'t>(text: &'t str, pairs: &[(String, String)]) -> Cow<'t, str> {
    let mut out = Cow::Borrowed(text);
    let mut rest = text;
    let mut made: Option<String> = None;
    // One pass from left to right, so that what was put in is never replaced again.
    while let Some((at, (from, to))) =
        pairs.iter().filter_map(|pair| Some((rest.find(pair.0.as_str())?, pair))).min_by_key(|(at, _)| *at)
    {
        let made = made.get_or_insert_default();
        made.push_str(&rest[..at]);
        made.push_str(to);
        rest = &rest[at + from.len()..];
    }
    if let Some(mut made) = made {
        made.push_str(rest);
        out = Cow::Owned(made);
    }
    out
}

fn replaced_in(value: &Value, pairs: &[(String, String)]) -> Value {
    if pairs.is_empty() {
        return value.clone();
    }
    match value {
        Value::String(text) if text.starts_with("{{") && text.ends_with(OF_NUMBER) => {
            let slot = text.trim_end_matches(OF_NUMBER).to_owned() + "}}";
            // The slot of a number is a text by which it becomes one again.
            let number = pairs.iter().find(|(from, _)| *from == slot).and_then(|(_, to)| to.parse().ok());
            number.map_or_else(|| value.clone(), Value::Number)
        }
        Value::String(text) => Value::String(replaced(text, pairs).into_owned()),
        Value::Array(items) => items.iter().map(|item| replaced_in(item, pairs)).collect(),
        Value::Object(members) => members.iter().map(|(name, item)| (name.clone(), replaced_in(item, pairs))).collect(),
        other => other.clone(),
    }
}

/// Binds requests on their way to `inner`, and puts today's values back into what comes from there.
pub(crate) struct Bound {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) vars: Arc<Vars>,
}

impl Transport for Bound {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let body = self.vars.bind(&request.body).into();
            let declared = matches!(request.service, Service::Declared(_));
            let path = if declared { self.vars.bind_path(&request.path) } else { request.path };
            let response = self.inner.send(HttpRequest { path, body, ..request }).await?;
            let body = self.vars.put_back(&response.body, &self.vars.recorded);
            Ok(HttpResponse { body, ..response })
        })
    }
}

/// Puts today's values into the answers of a recording that is held.
pub(crate) struct Renewed {
    pub(crate) inner: Arc<dyn Transport>,
    /// The values in the answers of `inner`.
    pub(crate) recorded: BTreeMap<String, Vec<String>>,
    pub(crate) vars: Arc<Vars>,
}

impl Transport for Renewed {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let response = self.inner.send(request).await?;
            let body = self.vars.put_back(&response.body, &self.recorded);
            Ok(HttpResponse { body, ..response })
        })
    }
}

/// Gives bound requests their values again, on their way to a live service.
pub(crate) struct Unbound {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) vars: Arc<Vars>,
}

impl Transport for Unbound {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async move {
            let body = self.vars.unbind(&request.body);
            let path = replaced(&request.path, &slots(&lock(&self.vars.generated))).into_owned();
            // A value of the recording that the agent said again is today's to a live service.
            let sent = request.sent.filter(|sent| raw::packed(sent, &mut None) == body);
            self.inner.send(HttpRequest { path, body: body.into(), sent, ..request }).await
        })
    }
}

#[cfg(test)]
mod tests;
