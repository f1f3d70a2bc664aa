//! Describes how two requests differ, in terms that prompt authors use.

use super::layout::Layout;
use super::reordered::is_same_json;
use super::word_diff::{changed_words, printable};
use crate::platform::numbers;
use crate::trace::text::{listed, plural};
use serde_json::Value;
use std::collections::BTreeMap;

/// Lines of one difference that are shown.
const MOST_LINES: usize = 40;
/// Parameters that are named.
const MOST_NAMES: usize = 8;

/// Line for texts whose parameters stand in another order.
pub(super) const IN_ANOTHER_ORDER: &str =
    "  the same parameters in another order: let the agent write them in a fixed order";
/// Line for the same messages in another order.
const MESSAGES_IN_ANOTHER_ORDER: &str =
    "  the same messages in another order: let the agent add the results of parallel calls in the order of the calls";
/// Line for the same tools in another order.
const TOOLS_IN_ANOTHER_ORDER: &str = "  the same tools in another order: let the agent sort them, as maps of many languages have another order each time";
/// Line for a text of JSON that is spelled otherwise: the order of its members is that of the recording already.
const SAME_JSON: &str =
    "  the same JSON with other white space or escapes: let the agent write it as it did, or record it again";
/// Line for a text whose words stand in another order.
const WORDS_IN_ANOTHER_ORDER: &str =
    "  the same words in another order: let the agent write the items of maps and sets in a fixed order";

/// One difference between two requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The part that differs, for example `the system prompt`.
    pub what: String,
    /// Lines of evidence, `- recorded` and `+ now`.
    pub lines: Vec<String>,
    /// Whether the only difference is that one conversation has more messages.
    pub only_length: bool,
}

impl Difference {
    fn new(what: impl Into<String>, mut lines: Vec<String>) -> Self {
        if lines.len() > MOST_LINES {
            let left = lines.len() - MOST_LINES;
            lines.truncate(MOST_LINES);
            lines.push(format!("  … and {left} more lines"));
        }
        Self { what: what.into(), lines, only_length: false }
    }
}

/// All differences of `now` from `recorded`, the most informative first.
pub(super) fn differences(layout: &Layout, recorded: &Value, now: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let (before, after) = (part(recorded, layout.model), part(now, layout.model));
    if before != after {
        found.push(Difference::new("the model", pair(before, after)));
    }
    found.extend(system_prompt(layout, recorded, now));
    let (before, after) = (part(recorded, layout.tools), part(now, layout.tools));
    if before != after {
        found.push(tools(layout, before, after));
    }
    found.extend(parameters(layout, recorded, now));
    found.extend(conversation(layout, &messages(layout, recorded), &messages(layout, now)));
    found
}

/// The difference between the system prompts: in their words, else in how they are sent.
fn system_prompt(layout: &Layout, recorded: &Value, now: &Value) -> Option<Difference> {
    let words = |body| {
        let mut texts = layout.system_prompts(body);
        let parts = layout.messages(body).iter().filter(|message| layout.is_system(message));
        let parts = parts.filter_map(|message| message.pointer(layout.text)?.as_array()).flatten();
        texts.extend(parts.filter_map(|part| part.get("text")?.as_str()));
        texts.join("\n")
    };
    let (before, after) = (words(recorded), words(now));
    if before != after {
        return Some(Difference::new("the system prompt", texts(&before, &after)));
    }
    let forms = (system_forms(layout, recorded), system_forms(layout, now));
    let place = (0..forms.0.len().max(forms.1.len())).find(|place| forms.0.get(*place) != forms.1.get(*place))?;
    let lines = match (forms.0.get(place), forms.1.get(place)) {
        (Some((before, from)), Some((after, to))) => match first_difference(before, after) {
            Some(found) => lines_at(found),
            None => {
                vec![format!("- after {}", plural(*from, "message")), format!("+ after {}", plural(*to, "message"))]
            }
        },
        (before, after) => pair(before.map(|(form, _)| *form), after.map(|(form, _)| *form)),
    };
    Some(Difference::new("the form of the system prompt", lines))
}

/// The members and messages of a body that hold system prompts, each with the number of other messages before it.
fn system_forms<'v>(layout: &Layout, body: &'v Value) -> Vec<(&'v Value, usize)> {
    let mut others = 0;
    let mut forms: Vec<_> =
        layout.prompt_members.iter().filter_map(|member| Some((body.pointer(member)?, 0))).collect();
    for message in layout.messages(body) {
        if layout.is_system(message) {
            forms.push((message, others));
        } else {
            others += 1;
        }
    }
    forms
}

/// The lines of a first difference, with its path if it has one.
fn lines_at((path, before, after): (String, Option<&Value>, Option<&Value>)) -> Vec<String> {
    let head = (!path.is_empty()).then(|| format!("  {path}:"));
    head.into_iter().chain(pair(before, after)).collect()
}

/// The first part in which two bodies differ; `None` for equal ones.
pub(super) fn first_part(recorded: &Value, now: &Value) -> Option<Difference> {
    Some(Difference::new("another part of the request", lines_at(first_difference(recorded, now)?)))
}

/// Distance of two requests: how many of system prompt and tools differ, as each agent of several has its own; then the
/// number of messages that differ or exist in one only, and the number of other parts that differ.
pub(super) fn distance(layout: &Layout, recorded: &Value, now: &Value) -> (usize, usize, usize) {
    let agent = [
        layout.system_prompts(recorded) != layout.system_prompts(now),
        part(recorded, layout.tools) != part(now, layout.tools),
    ];
    let others = [part(recorded, layout.model) != part(now, layout.model), parameters(layout, recorded, now).is_some()];
    let number = |parts: [bool; 2]| parts.into_iter().filter(|differs| *differs).count();
    let (recorded, now) = (messages(layout, recorded), messages(layout, now));
    let differing = recorded.iter().zip(&now).filter(|(a, b)| a != b).count();
    (number(agent), differing + recorded.len().abs_diff(now.len()), number(others))
}

fn part<'v>(body: &'v Value, at: Option<&str>) -> Option<&'v Value> {
    body.pointer(at?)
}

/// The conversation without system prompts; tool call ids that do not count are renamed by first appearance.
fn messages(layout: &Layout, body: &Value) -> Vec<Value> {
    let mut ids: Vec<String> = Vec::new();
    let mut rename = |id: &mut Value| {
        let Some(text) = id.as_str() else { return };
        let place = ids.iter().position(|known| known == text).unwrap_or_else(|| {
            ids.push(text.to_owned());
            ids.len() - 1
        });
        *id = Value::String(format!("call#{place}"));
    };
    let mut messages: Vec<Value> = match layout.conversation(body) {
        Some((_, Value::Array(list))) => list.iter().filter(|message| !layout.is_system(message)).cloned().collect(),
        Some((_, other)) => vec![other.clone()],
        None => Vec::new(),
    };
    for message in &mut messages {
        layout.calls.iter().chain(layout.results).for_each(|place| place.each_folded_mut(message, &mut rename));
    }
    messages
}

fn show(value: Option<&Value>) -> String {
    match value {
        None => "(not sent)".to_owned(),
        Some(Value::String(text)) => printable(text, 200),
        Some(other) => printable(&numbers::write(other), 200),
    }
}

fn pair(recorded: Option<&Value>, now: Option<&Value>) -> Vec<String> {
    match (recorded, now) {
        (Some(Value::String(before)), Some(Value::String(after))) if is_reordered(before, after) => vec![
            format!("- {}", printable(before, 200)),
            format!("+ {}", printable(after, 200)),
            IN_ANOTHER_ORDER.to_owned(),
        ],
        (Some(Value::String(before)), Some(Value::String(after))) if is_same_json(before, after) => {
            vec![format!("- {}", printable(before, 200)), format!("+ {}", printable(after, 200)), SAME_JSON.to_owned()]
        }
        (Some(Value::String(before)), Some(Value::String(after))) => texts(before, after),
        // A text of digits is another value than the number.
        (Some(before), Some(after)) if show(recorded) == show(now) => {
            vec![format!("- {}", numbers::write(before)), format!("+ {}", numbers::write(after))]
        }
        _ => vec![format!("- {}", show(recorded)), format!("+ {}", show(now))],
    }
}

/// The words in which two texts differ, and whether it is their order alone. Digits in another order are another number.
fn texts(before: &str, after: &str) -> Vec<String> {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let sorted = |mut words: Vec<String>| {
        words.sort_unstable();
        words
    };
    let (old, new) = (words(before), words(after));
    let moved = old.iter().zip(&new).any(|(one, other)| one != other && one.contains(char::is_alphabetic));
    let reordered = (moved && sorted(old) == sorted(new)).then_some(WORDS_IN_ANOTHER_ORDER);
    changed_words(before, after).into_iter().chain(reordered.map(str::to_owned)).collect()
}

/// Whether two texts differ in the order of their parameters alone: those of a form, or of the query of a path.
pub(super) fn is_reordered(one: &str, other: &str) -> bool {
    let sorted = |text: &str| {
        let (path, query) = text.split_once('?').unwrap_or(("", text));
        let mut parameters: Vec<String> = query.split('&').map(str::to_owned).collect();
        parameters.sort_unstable();
        (path.to_owned(), parameters)
    };
    one != other && sorted(one) == sorted(other)
}

fn tools(layout: &Layout, recorded: Option<&Value>, now: Option<&Value>) -> Difference {
    let named = |list: Option<&Value>| -> BTreeMap<String, Value> {
        let tools = list.and_then(Value::as_array).into_iter().flatten();
        tools
            .enumerate()
            .map(|(index, tool)| {
                let name = layout.tool_names.iter().find_map(|at| tool.pointer(at)?.as_str());
                (name.map_or_else(|| format!("number {index}"), str::to_owned), tool.clone())
            })
            .collect()
    };
    let (before, after) = (named(recorded), named(now));
    let mut lines = Vec::new();
    for (name, tool) in &before {
        match after.get(name) {
            None => lines.push(format!("- tool {}", printable(name, 60))),
            Some(other) if other != tool => {
                if let Some((path, old, new)) = first_difference(tool, other) {
                    lines.push(format!("  tool {}, {path}:", printable(name, 60)));
                    lines.extend(pair(old, new));
                }
            }
            Some(_) => {}
        }
    }
    lines.extend(
        after.keys().filter(|name| !before.contains_key(*name)).map(|name| format!("+ tool {}", printable(name, 60))),
    );
    if lines.is_empty() {
        lines.push(TOOLS_IN_ANOTHER_ORDER.to_owned());
    }
    Difference::new("the tool list", lines)
}

fn parameters(layout: &Layout, recorded: &Value, now: &Value) -> Option<Difference> {
    let (before, after) = (layout.parameters(recorded), layout.parameters(now));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut lines = Vec::new();
    let mut changed = Vec::new();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old != new
            && !(old.and_then(Value::as_f64).is_some() && old.and_then(Value::as_f64) == new.and_then(Value::as_f64))
        {
            changed.push(printable(name, 60));
            lines.push(format!("- {}: {}", printable(name, 60), show(old)));
            lines.push(format!("+ {}: {}", printable(name, 60), show(new)));
            let texts = old.and_then(Value::as_str).zip(new.and_then(Value::as_str));
            let reordered = texts.filter(|(old, new)| is_reordered(old, new));
            lines.extend(reordered.map(|_| IN_ANOTHER_ORDER.to_owned()));
        }
    }
    let what = match changed.as_slice() {
        [] => return None,
        [one] => format!("the parameter {one}"),
        _ => format!("the parameters {}", listed(&changed, MOST_NAMES)),
    };
    Some(Difference::new(what, lines))
}

/// Whether two parts of a conversation hold the same messages; each is found once.
fn is_reordering(old: &[Value], new: &[Value]) -> bool {
    let mut left: Vec<&Value> = new.iter().collect();
    let mut found = |message| left.iter().position(|other| *other == message).map(|at| left.swap_remove(at));
    old.len() == new.len() && old.iter().all(|message| found(message).is_some())
}

fn conversation(layout: &Layout, recorded: &[Value], now: &[Value]) -> Vec<Difference> {
    let place = recorded.iter().zip(now).position(|(before, after)| before != after);
    let Some(place) = place else {
        let place = recorded.len().min(now.len());
        let (what, line) = match (recorded.get(place), now.get(place)) {
            (None, None) => return Vec::new(),
            (None, Some(next)) => ("the conversation is longer", format!("+ {}", summary(layout, place, next))),
            (Some(next), _) => ("the conversation is shorter", format!("- {}", summary(layout, place, next))),
        };
        return vec![Difference { what: what.to_owned(), lines: vec![line], only_length: true }];
    };
    let (old, new) = (&recorded[place..], &now[place..]);
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(before, after)| before == after).count();
    let (old, new) = (&old[..old.len() - same_end], &new[..new.len() - same_end]);
    let listed = || {
        let lines = [(old, '-'), (new, '+')].into_iter().flat_map(|(messages, sign)| {
            (place..).zip(messages).map(move |(place, message)| format!("{sign} {}", summary(layout, place, message)))
        });
        lines.collect::<Vec<_>>()
    };
    if old.is_empty() || new.is_empty() {
        return vec![Difference::new("the number of messages", listed())];
    }
    if is_reordering(old, new) {
        let lines = listed().into_iter().chain([MESSAGES_IN_ANOTHER_ORDER.to_owned()]);
        return vec![Difference::new("the order of the messages", lines.collect())];
    }
    let others = old.iter().zip(new).skip(1).filter(|(before, after)| before != after).count();
    let mut found = vec![message(layout, place, (&recorded[place], &now[place]), others)];
    if old.len() != new.len() {
        let lines = vec![format!("- {} messages", recorded.len()), format!("+ {} messages", now.len())];
        found.push(Difference::new("the number of messages", lines));
    }
    found
}

/// The difference between two messages at one place, after which `others` differ too.
fn message(layout: &Layout, place: usize, (before, after): (&Value, &Value), others: usize) -> Difference {
    if let Some(knowledge) = knowledge(layout, before, after) {
        return knowledge;
    }
    let what = match after.pointer(layout.role).and_then(Value::as_str) {
        Some(role) if others > 0 => format!("message {} ({}) and {others} more", place + 1, printable(role, 20)),
        Some(role) => format!("message {} ({})", place + 1, printable(role, 20)),
        None => "the input".to_owned(),
    };
    let lines = match first_difference(before, after) {
        Some((path, old, new)) if path == layout.text.trim_start_matches('/') => pair(old, new),
        Some(found) => lines_at(found),
        None => Vec::new(),
    };
    Difference::new(what, lines)
}

/// Short summary of one message.
fn summary(layout: &Layout, place: usize, message: &Value) -> String {
    let role = message.pointer(layout.role).and_then(Value::as_str).unwrap_or("input");
    let mut names = Vec::new();
    layout
        .call_names
        .iter()
        .for_each(|place| place.each(message, &mut |name| names.extend(name.and_then(Value::as_str))));
    let text =
        if names.is_empty() { show(message.pointer(layout.text)) } else { format!("calls {}", names.join(", ")) };
    format!("message {} ({}): {}", place + 1, printable(role, 20), printable(&text, 120))
}

/// The difference between two results of a knowledge search: passages with other text, added and missing passages.
fn knowledge(layout: &Layout, recorded: &Value, now: &Value) -> Option<Difference> {
    let chunks = |message: &Value| -> Option<Vec<(String, String)>> {
        let content: Value = serde_json::from_str(message.pointer(layout.text)?.as_str()?).ok()?;
        let chunks = content.get("chunks")?.as_array()?.iter();
        chunks
            .map(|chunk| Some((chunk.get("id")?.as_str()?.to_owned(), chunk.get("text")?.as_str()?.to_owned())))
            .collect()
    };
    let (before, after) = (chunks(recorded)?, chunks(now)?);
    if before == after {
        return None;
    }
    let mut changed = Vec::new();
    let mut lines = Vec::new();
    for (id, text) in &after {
        if let Some((_, old)) = before.iter().find(|(other, _)| other == id)
            && old != text
        {
            changed.push(printable(id, 80));
            lines.push(format!("  passage {}:", printable(id, 80)));
            lines.extend(changed_words(old, text));
        }
    }
    if changed.is_empty() {
        let ids =
            |list: &[(String, String)]| list.iter().map(|(id, _)| printable(id, 80)).collect::<Vec<_>>().join(", ");
        let ids = |list: &[(String, String)]| if list.is_empty() { "nothing".to_owned() } else { ids(list) };
        lines = vec![format!("- found {}", ids(&before)), format!("+ found {}", ids(&after))];
        return Some(Difference::new("knowledge: the search finds other passages", lines));
    }
    let plural = if changed.len() == 1 { "passage" } else { "passages" };
    Some(Difference::new(format!("knowledge: {plural} {}", changed.join(", ")), lines))
}

/// Path of the first difference between two documents, and the values there.
fn first_difference<'v>(a: &'v Value, b: &'v Value) -> Option<(String, Option<&'v Value>, Option<&'v Value>)> {
    let join = |head: String, rest: String| if rest.is_empty() { head } else { format!("{head}.{rest}") };
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let mut names: Vec<&String> = x.keys().chain(y.keys()).collect();
            names.sort_unstable();
            names.dedup();
            names.into_iter().find_map(|name| match (x.get(name), y.get(name)) {
                (Some(a), Some(b)) => {
                    first_difference(a, b).map(|(path, a, b)| (join(printable(name, 60), path), a, b))
                }
                (a, b) => Some((printable(name, 60), a, b)),
            })
        }
        (Value::Array(x), Value::Array(y)) => {
            (0..x.len().max(y.len())).find_map(|place| match (x.get(place), y.get(place)) {
                (Some(a), Some(b)) => first_difference(a, b).map(|(path, a, b)| (join(place.to_string(), path), a, b)),
                (a, b) => Some((place.to_string(), a, b)),
            })
        }
        _ => (a != b).then_some((String::new(), Some(a), Some(b))),
    }
}
