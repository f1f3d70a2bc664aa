//! What an agent generates, dates and ids, taken out of requests and put back into replayed responses.
//!
//! A pattern names places in request bodies by JSON pointer, `*` standing for any member or index, or the path of requests
//! to declared services, and within them, by a regular expression, the value. The values of one pattern are numbered in order of appearance, so `ticket#1` is the
//! second ticket of a trial, whatever it is called today. In keys and in the cassette stands the number; the values of
//! the recording stand in the cassette's header. A replayed response holds recorded values: those that the agent has
//! generated anew since are exchanged for its own, wherever they stand whole. Where they do not (a stream cuts them), the
//! agent sees the recorded one and says it again, which is understood as well. Values of several patterns may be equal, as the
//! date of tomorrow and that of the next day's today: where an expression finds a value, it is that pattern's; elsewhere, today's
//! values win over recorded ones.

mod asked_before;
mod transports;

pub(crate) use asked_before::AskedBefore;
pub(crate) use transports::{Bound, Renewed, Unbound};

use crate::platform::lock::lock;
use crate::platform::numbers;
use crate::scenario::external::{IN_PATH, SHORTEST_VALUE};
use bytes::Bytes;
use regex::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where one generated value is found.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub name: String,
    /// JSON pointer into request bodies, or [`IN_PATH`].
    pub at: String,
    /// What of the text there is the value: the first group, or the whole match. Without it, the whole text.
    pub expression: Option<Regex>,
}

/// What an agent has generated, by name and number.
type Generated = BTreeMap<String, BTreeMap<usize, String>>;

/// The values of one trial.
#[derive(Debug)]
pub(crate) struct Vars {
    patterns: Vec<Pattern>,
    recorded: BTreeMap<String, Vec<String>>,
    /// The requests of the recording that hold values.
    asked_before: Vec<AskedBefore>,
    generated: Mutex<Generated>,
    /// Names of values that are too short to be bound.
    short: Mutex<BTreeSet<String>>,
    /// Whether a recorded response was replayed: from then on, the agent may repeat values of the recording.
    replayed: AtomicBool,
}

impl Vars {
    /// Nothing bound yet; `recorded` are the values of the recording that is replayed.
    pub(crate) fn new(patterns: Vec<Pattern>, recorded: BTreeMap<String, Vec<String>>) -> Self {
        Self {
            patterns,
            recorded,
            asked_before: Vec::new(),
            generated: Mutex::default(),
            short: Mutex::default(),
            replayed: AtomicBool::new(false),
        }
    }

    /// What the agent has generated so far, by name, in order of appearance.
    pub(crate) fn values(&self) -> BTreeMap<String, Vec<String>> {
        let of =
            |(name, values): (&String, &BTreeMap<usize, String>)| (name.clone(), values.values().cloned().collect());
        lock(&self.generated).iter().map(of).collect()
    }

    /// A note on each variable with values that are too short to be bound.
    pub(crate) fn notes(&self) -> Vec<String> {
        let note = |name: &String| {
            format!(
                "a value of the variable `{name}` is shorter than {SHORTEST_VALUE} characters, and is not bound: let its `match` take \
                 the words beside it, too"
            )
        };
        lock(&self.short).iter().map(note).collect()
    }

    /// The body with a numbered name in place of each value.
    pub(crate) fn bind(&self, body: &Value) -> Value {
        if self.patterns.is_empty() {
            return body.clone();
        }
        for pattern in self.patterns.iter().filter(|pattern| pattern.at != IN_PATH) {
            for text in pattern.texts(body) {
                self.note(pattern, text);
            }
        }
        let mut bound = body.clone();
        for pattern in &self.patterns {
            if let Some(steps) = pattern.at.strip_prefix('/').filter(|_| pattern.expression.is_none()) {
                each_number(&mut bound, steps.split('/'), &mut |number| self.bind_number(pattern, number));
            }
        }
        let names = self.names();
        let mut found: BTreeMap<*const u8, Vec<&Pattern>> = BTreeMap::new();
        for pattern in self.patterns.iter().filter(|pattern| pattern.at != IN_PATH) {
            for text in pattern.texts(&bound) {
                found.entry(text.as_ptr()).or_default().push(pattern);
            }
        }
        replaced_by(&bound, &|text| {
            let patterns = found.get(&text.as_ptr()).map_or(&[][..], Vec::as_slice);
            Value::String(match of_number(text) {
                Some(_) => text.to_owned(),
                None => self.with_slots(text, patterns, &names).into_owned(),
            })
        })
    }

    /// A text with a numbered name in place of each value; `patterns` are those that look for theirs in it.
    fn with_slots<'t>(&self, text: &'t str, patterns: &[&Pattern], names: &[(String, String)]) -> Cow<'t, str> {
        // A recording has one slot for equal values.
        let patterns = if self.recorded.is_empty() { &[] } else { patterns };
        let places: Vec<(Range<usize>, String)> =
            patterns.iter().flat_map(|pattern| self.slots_in(pattern, text)).collect();
        let slot = |place: Range<usize>, named: &str| {
            let own = places.iter().find(|(found, _)| *found == place);
            own.map_or_else(|| named.to_owned(), |(_, slot)| slot.clone())
        };
        replaced_at(text, names, slot)
    }

    /// Where a pattern finds its values in a text, with their numbered names.
    fn slots_in(&self, pattern: &Pattern, text: &str) -> Vec<(Range<usize>, String)> {
        let numbered = pattern.ranges(text).filter_map(|range| {
            let number = self.number(pattern, &text[range.clone()])?;
            Some((range, self.of_recording(&pattern.name, number)))
        });
        numbered.collect()
    }

    /// The slot that the recording has for a value of a variable: of those that had the same value by then, the first.
    fn of_recording(&self, name: &str, number: usize) -> String {
        let own = || slot(name, number);
        let Some(value) = self.recorded.get(name).and_then(|values| values.get(number)) else { return own() };
        let generated = lock(&self.generated);
        let same = |(name, values): (&String, &Vec<String>)| -> Vec<(bool, String)> {
            let is_new = |number| generated.get(name).is_none_or(|known| !known.contains_key(&number));
            let numbers = (0..values.len()).filter(|number| values[*number] == *value);
            numbers.map(|number| (is_new(number), slot(name, number))).collect()
        };
        self.recorded.iter().flat_map(same).min().map_or_else(own, |(_, slot)| slot)
    }

    /// The number of a value of a pattern: of those generated today, else of those of the recording.
    fn number(&self, pattern: &Pattern, value: &str) -> Option<usize> {
        let generated = lock(&self.generated);
        let today = generated.get(&pattern.name).and_then(|known| number_in(known, value));
        today.or_else(|| self.recorded.get(&pattern.name)?.iter().position(|one| one == value))
    }

    /// The path of a request to a declared service with a numbered name in place of each value.
    fn bind_path(&self, path: &str) -> String {
        if self.patterns.is_empty() {
            return path.to_owned();
        }
        let patterns: Vec<&Pattern> = self.patterns.iter().filter(|pattern| pattern.at == IN_PATH).collect();
        for pattern in &patterns {
            self.note(pattern, path);
        }
        self.with_slots(path, &patterns, &self.names()).into_owned()
    }

    /// Keeps the values of a pattern in a text.
    fn note(&self, pattern: &Pattern, text: &str) {
        let mut generated = lock(&self.generated);
        for value in pattern.ranges(text).map(|range| &text[range]) {
            if value.chars().count() < SHORTEST_VALUE {
                lock(&self.short).insert(pattern.name.clone());
                continue;
            }
            let known = generated.entry(pattern.name.clone()).or_default();
            // The smallest number that no value has.
            let next = known.keys().zip(0..).take_while(|(number, place)| *number == place).count();
            let of_old = self.recorded.get(&pattern.name).and_then(|old| old.iter().position(|one| one == value));
            // A recorded value comes back where a response could not be rewritten: it is no new one.
            let comes_back = || !known.is_empty() && self.replayed.load(Ordering::SeqCst);
            let echoed = of_old.is_some_and(|number| number != next) && comes_back();
            if !echoed && number_in(known, value).is_none() {
                known.insert(next, value.to_owned());
            }
        }
    }

    /// The slot of a number at the place of a pattern, if it is long enough.
    fn bind_number(&self, pattern: &Pattern, text: &str) -> Option<Value> {
        self.note(pattern, text);
        let slot = slot(&pattern.name, self.number(pattern, text)?);
        Some(Value::String(format!("{}{OF_NUMBER}", slot.strip_suffix("}}")?)))
    }

    /// Values of the agent and of the recording, with their numbered names.
    fn names(&self) -> Vec<(String, String)> {
        let named = |values: &Generated| {
            let of = |(name, values): (&String, &BTreeMap<usize, String>)| -> Vec<(String, String)> {
                values.iter().map(|(n, value)| (value.clone(), self.of_recording(name, *n))).collect()
            };
            longest_first(values.iter().flat_map(of).collect())
        };
        let today = lock(&self.generated).clone();
        let mut names = named(&today);
        let of_old = named(&numbered(&self.recorded));
        let of_old: Vec<_> = of_old.into_iter().filter(|(old, _)| names.iter().all(|(one, _)| one != old)).collect();
        names.extend(of_old);
        longest_first(names)
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
        if self.recorded.is_empty() { slots(&lock(&self.generated)) } else { slots(&numbered(&self.recorded)) }
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
            let today = generated.get(name);
            let pair = move |(number, old): (usize, &String)| Some((old.clone(), today?.get(&number)?.clone()));
            old.iter().enumerate().filter_map(pair).filter(|(old, new)| old != new)
        });
        pairs.collect()
    }
}

impl Pattern {
    /// Its values in a body.
    pub(crate) fn found<'v>(&self, body: &'v Value) -> Vec<&'v str> {
        let of = |text: &'v str| self.ranges(text).map(|range| &text[range]).collect::<Vec<_>>();
        self.texts(body).into_iter().flat_map(of).collect()
    }

    /// The texts of a body in which it looks for its values.
    fn texts<'v>(&self, body: &'v Value) -> Vec<&'v str> {
        let mut texts = Vec::new();
        find(body, self.at.strip_prefix('/').map(|rest| rest.split('/')), &mut texts);
        texts
    }

    /// Where its values stand in a text.
    fn ranges<'t>(&'t self, text: &'t str) -> Box<dyn Iterator<Item = Range<usize>> + 't> {
        match &self.expression {
            None => Box::new(std::iter::once(0..text.len())),
            Some(expression) => Box::new(
                expression.captures_iter(text).filter_map(|found| found.get(1).or(found.get(0))).map(|m| m.range()),
            ),
        }
    }
}

/// End of the slot of a JSON number.
const OF_NUMBER: &str = ":number}}";

fn slot(name: &str, number: usize) -> String {
    format!("{{{{{name}#{number}}}}}")
}

fn slots(values: &Generated) -> Vec<(String, String)> {
    let of = |(name, values): (&String, &BTreeMap<usize, String>)| -> Vec<(String, String)> {
        values.iter().map(|(n, value)| (slot(name, *n), value.clone())).collect()
    };
    values.iter().flat_map(of).collect()
}

fn numbered(values: &BTreeMap<String, Vec<String>>) -> Generated {
    values.iter().map(|(name, values)| (name.clone(), values.iter().cloned().enumerate().collect())).collect()
}

/// The number that a value has.
fn number_in(known: &BTreeMap<usize, String>, value: &str) -> Option<usize> {
    known.iter().find(|(_, one)| *one == value).map(|(number, _)| *number)
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
fn each_number(value: &mut Value, mut steps: std::str::Split<'_, char>, each: &mut impl FnMut(&str) -> Option<Value>) {
    let Some(step) = steps.next() else {
        if let Some(slot) = numbers::digits(value).and_then(|number| each(&number)) {
            *value = slot;
        }
        return;
    };
    let (name, ends) = (step.replace("~1", "/").replace("~0", "~"), steps.clone().next().is_none());
    let mut below = |value: &mut Value| each_number(value, steps.clone(), each);
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
    replaced_at(text, pairs, |_, to| to.to_owned())
}

/// A text with what `put` returns in place of each key of `pairs`, for the range of the key and its value.
fn replaced_at<'t>(
    text: &'t str,
    pairs: &[(String, String)],
    put: impl Fn(Range<usize>, &str) -> String,
) -> Cow<'t, str> {
    let mut begin = 0;
    let mut made: Option<String> = None;
    // One pass from left to right, so that what was put in is never replaced again.
    while let Some((at, (from, to))) =
        pairs.iter().filter_map(|pair| Some((text[begin..].find(pair.0.as_str())?, pair))).min_by_key(|(at, _)| *at)
    {
        let (start, end) = (begin + at, begin + at + from.len());
        let made = made.get_or_insert_default();
        made.push_str(&text[begin..start]);
        made.push_str(&put(start..end, to));
        begin = end;
    }
    made.map_or(Cow::Borrowed(text), |made| Cow::Owned(made + &text[begin..]))
}

fn replaced_in(value: &Value, pairs: &[(String, String)]) -> Value {
    if pairs.is_empty() {
        return value.clone();
    }
    replaced_by(value, &|text| match of_number(text) {
        // The slot of a number is a text by which it becomes one again.
        Some(slot) => {
            let number = pairs.iter().find(|(from, _)| *from == slot).and_then(|(_, to)| numbers::number(to));
            number.unwrap_or_else(|| text.into())
        }
        None => Value::String(replaced(text, pairs).into_owned()),
    })
}

/// The slot of a number, if a text is one.
fn of_number(text: &str) -> Option<String> {
    Some(text.strip_suffix(OF_NUMBER).filter(|slot| slot.starts_with("{{"))?.to_owned() + "}}")
}

/// A value with what `each` returns in place of its texts.
fn replaced_by(value: &Value, each: &impl Fn(&str) -> Value) -> Value {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().map(|item| replaced_by(item, each)).collect(),
        Value::Object(members) => members.iter().map(|(name, item)| (name.clone(), replaced_by(item, each))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
