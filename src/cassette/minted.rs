//! Proposes `vars` for requests that differ in values which an agent generates per run: dates, numbers, ids.
//!
//! Two texts at one place of a body are split into words and what is between them. Where only words differ, each is a
//! value; its expression is what identifies its place (`surroundings`), and the shape of the value.

use super::dated;
use super::surroundings::{Questions, Spot, is_amount, name};
use crate::platform::numbers;
use regex::{Regex, escape};
use serde_json::Value;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Values shorter than this are never bound, so none is proposed.
const SHORTEST: usize = 4;
/// Numbers with fewer digits are settings, as far as one can tell without a second recording.
const SHORTEST_NUMBER: usize = 8;
/// Maximum number of proposals.
const MOST: usize = 12;
/// Place of a value in the path of a request to a declared service.
const IN_PATH: &str = "path";
/// A value that an agent generates per run, as a line of `vars` declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Minted {
    pub name: String,
    /// JSON pointer into request bodies.
    pub at: String,
    /// Regular expression whose first group is the value; `None` for a number.
    pub expression: Option<String>,
    /// Whether each value seen has a digit, as dates, counters and ids have, and is no amount, such as `$123.45` or
    /// `12.5 %`: amounts and words are what the agent says.
    pub looks_generated: bool,
    /// The value in the body that came first.
    pub value: String,
    /// The value in the other body; `value` if there is no other.
    pub other: String,
}

impl fmt::Display for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let at = if self.at == IN_PATH { self.at.clone() } else { quoted(&self.at) };
        write!(f, "{}: {{at: {at}", self.name)?;
        if let Some(expression) = &self.expression {
            write!(f, ", match: {}", quoted(expression))?;
        }
        f.write_str("}")
    }
}

/// Proposals for the values in which bodies differ, for pairs of the recorded body and the one that came later, and in which
/// `paths` differ. `asked` are the questions of the user, and `dates` today's in several spellings, on whose words no
/// expression rests.
pub(crate) fn minted<'v>(
    pairs: impl IntoIterator<Item = (&'v Value, &'v Value)>,
    paths: &[(String, String)],
    asked: &[&str],
    dates: &[&str],
) -> Vec<Minted> {
    let (mut found, questions) = (Vec::new(), Questions::new(asked, dates));
    for (before, now) in pairs {
        let bodies = LazyCell::new(|| (before.to_string(), now.to_string()));
        // What both bodies have stands elsewhere now, as results in another order: nothing was generated.
        let moved = |word: &str, other: &str| bodies.0.contains(other) && bodies.1.contains(word);
        differing(before, now, &mut String::new(), &mut |at, before, now, is_number| {
            let known = found.len();
            in_text(at, (before, now), &questions, moved, &mut found);
            // Expressions are for texts.
            found[known..].iter_mut().filter(|_| is_number).for_each(|one| one.expression = None);
            // A short number is a setting: `max_tokens`.
            let short = is_number && before.len().min(now.len()) < SHORTEST_NUMBER;
            found[known..].iter_mut().filter(|_| short).for_each(|one| one.looks_generated = false);
        });
    }
    for (before, now) in paths.iter().filter(|(before, now)| before != now) {
        in_text(IN_PATH, (before, now), &questions, |_, _| false, &mut found);
    }
    distinct(found)
}

/// Proposals for the date in `value` where bodies hold it, except within a longer one of `dates`; `asked` and `dates` as for
/// [`minted`].
pub(crate) fn holding<'v>(
    bodies: impl IntoIterator<Item = &'v Value>,
    value: &str,
    asked: &[&str],
    dates: &[&str],
) -> Vec<Minted> {
    let (mut found, questions) = (Vec::new(), Questions::new(asked, dates));
    let longer: Vec<(usize, &str)> =
        dates.iter().filter(|date| **date != value).filter_map(|date| Some((date.find(value)?, *date))).collect();
    for body in bodies {
        texts(body, &mut String::new(), &mut |text, at| {
            let mut from = 0;
            while let Some(place) = text[from..].find(value) {
                let begin = from + place;
                from = begin + value.len();
                let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
                let within = longer.iter().any(|(offset, date)| {
                    begin
                        .checked_sub(*offset)
                        .and_then(|start| text.get(start..))
                        .is_some_and(|text| text.starts_with(date))
                });
                if !within && !inside(text[..begin].chars().next_back()) && !inside(text[from..].chars().next()) {
                    let spot = Spot { text, value: begin..from, around: 0..text.len() };
                    found.push(proposal(at, &spot, &questions, &of_date(value)));
                }
            }
        });
    }
    distinct(found)
}

/// The present dates and times that bodies contain.
pub(crate) fn of_now<'v>(bodies: impl IntoIterator<Item = &'v Value>, now: &dated::Now) -> Vec<String> {
    let mut found = Vec::new();
    for body in bodies {
        texts(body, &mut String::new(), &mut |text, _| found.extend(now.in_text(text).into_iter().map(str::to_owned)));
    }
    found
}

/// Calls `each` for every text in a value, with its pointer.
fn texts(value: &Value, at: &mut String, each: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => each(text, at),
        Value::Array(items) => {
            (0..).zip(items).for_each(|(index, item): (usize, _)| {
                below(at, &index.to_string(), |at| texts(item, at, each));
            });
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, item)| below(at, name, |at| texts(item, at, each)));
        }
        _ => {}
    }
}

fn below(at: &mut String, step: &str, with: impl FnOnce(&mut String)) {
    let length = at.len();
    at.push('/');
    at.push_str(&step.replace('~', "~0").replace('/', "~1"));
    with(at);
    at.truncate(length);
}

/// Calls `each` with the pointer of each text or number that differs, both of them, and whether they are numbers.
fn differing(before: &Value, now: &Value, at: &mut String, each: &mut impl FnMut(&str, &str, &str, bool)) {
    if let (Some(before), Some(now)) = (numbers::digits(before), numbers::digits(now)) {
        if before != now {
            each(at, &before, &now, true);
        }
        return;
    }
    match (before, now) {
        (Value::String(before), Value::String(now)) if before != now => each(at, before, now, false),
        (Value::Array(before), Value::Array(now)) => {
            for (index, (before, now)) in before.iter().zip(now).enumerate() {
                below(at, &index.to_string(), |at| differing(before, now, at, each));
            }
        }
        (Value::Object(before), Value::Object(now)) => {
            for (name, before) in before {
                if let Some(now) = now.get(name) {
                    below(at, name, |at| differing(before, now, at, each));
                }
            }
        }
        _ => {}
    }
}

fn in_text(
    at: &str,
    (before, now): (&str, &str),
    questions: &Questions,
    moved: impl Fn(&str, &str) -> bool,
    found: &mut Vec<Minted>,
) {
    let Some((ours, theirs)) = dated::aligned(before, now) else { return };
    let mut cut = 0;
    for ((begin, word), (there, other)) in ours.iter().zip(&theirs) {
        if word == other {
            continue;
        }
        let end = begin + word.len();
        if word.chars().count().min(other.chars().count()) >= SHORTEST && !moved(word, other) {
            // Another value in the context would not match again.
            let after = ours.iter().zip(&theirs).find(|((place, one), (_, other))| *place > *begin && one != other);
            let until = after.map_or(before.len(), |((place, _), _)| *place);
            let after = &before[end..until];
            let looks_generated = [word, other].iter().all(|one| one.contains(|letter: char| letter.is_ascii_digit()))
                && ![word, other].iter().any(|one| is_amount(&before[..*begin], one, after));
            let spot = Spot { text: before, value: *begin..end, around: cut..until };
            let proposed = proposal(at, &spot, questions, &of_both(word, other));
            let values = [(before, *begin..end), (now, *there..there + other.len())];
            if proposed.expression.as_ref().is_none_or(|expression| finds(expression, &values)) {
                found.push(Minted { looks_generated, other: (*other).to_owned(), ..proposed });
            }
        }
        cut = end;
    }
}

/// Whether an expression finds each value in its text.
fn finds(expression: &str, values: &[(&str, Range<usize>)]) -> bool {
    let Ok(expression) = Regex::new(expression) else { return false };
    let has = |text: &str, value: &Range<usize>| {
        let mut found = expression.captures_iter(text).filter_map(|found| found.get(1));
        found.any(|found| found.range() == *value)
    };
    values.iter().all(|(text, value)| has(text, value))
}

/// The proposal for a value. In the next turn, a message that holds a question has another place, and so has the id of a
/// call.
fn proposal(at: &str, spot: &Spot<'_>, questions: &Questions, shape: &str) -> Minted {
    let whole = spot.value == (0..spot.text.len());
    let moves = if whole { is_of_id(at) } else { questions.stand_in(spot.text) };
    Minted {
        name: name(spot.before(questions), at, shape),
        at: if moves { anywhere(at) } else { at.to_owned() },
        expression: Some(if whole { format!("^({shape})$") } else { spot.expression(questions, shape) }),
        looks_generated: true,
        value: spot.text[spot.value.clone()].to_owned(),
        other: spot.text[spot.value.clone()].to_owned(),
    }
}

/// Whether the member at a pointer is an id by its name.
fn is_of_id(at: &str) -> bool {
    let name = at.rsplit('/').next().unwrap_or_default();
    let before = name.strip_suffix("id").or_else(|| name.strip_suffix("ID"));
    before.is_some_and(|before| !before.ends_with(char::is_alphabetic)) || name.ends_with("Id")
}

/// A pointer with `*` for each index.
fn anywhere(at: &str) -> String {
    at.split('/').map(|step| if step.parse::<usize>().is_ok() { "*" } else { step }).collect::<Vec<_>>().join("/")
}

/// An expression for random ids: two samples without `-` and `_` do not show that none has them.
const RANDOM: &str = r"[\w-]+";

/// An expression for two values of one kind, part by part.
fn shape(one: &str, other: &str) -> String {
    let joins = |letter: char| !letter.is_alphanumeric();
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (one.split(joins).collect(), other.split(joins).collect());
    let between = |word: &str| word.chars().filter(|letter| joins(*letter)).collect::<Vec<_>>();
    let is_edge = |join: &char| matches!(join, '-' | '_');
    let joined = between(one);
    if joined != between(other) {
        let all = [joined, between(other)].concat();
        return if all.iter().all(is_edge) { RANDOM } else { r"[0-9A-Za-z_.:+-]*[0-9A-Za-z_-]" }.to_owned();
    }
    // How many digits a number has is chance: `7` and `12` are two runs' counts, and `3.48` a time. Those of dates are fixed.
    let fixed = ours.len() > 1 && one.parse::<f64>().is_err();
    // Parts of one id are of one kind: that two hexadecimal ones hold digits alone is chance.
    let pairs = || ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs);
    let hex = pairs().all(|(ours, theirs)| is_hex(ours) && is_hex(theirs))
        && pairs().any(|(ours, theirs)| [ours, theirs].iter().any(|part| part.contains(char::is_alphabetic)));
    let mut parts = Vec::new();
    for (place, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        let is_fraction = place.checked_sub(1).is_some_and(|before| joined[before] == '.');
        parts.push((part(ours, theirs, hex, fixed && !is_fraction), ours != theirs));
    }
    let mut out = String::new();
    let mut place = 0;
    while place < parts.len() {
        // A random id may have been split at a `-` of its own.
        let mut end = place + 1;
        while end < parts.len() && is_edge(&joined[end - 1]) && parts[end - 1].1 && parts[end].1 {
            end += 1;
        }
        let run = &parts[place..end];
        if run.len() > 1 && run.iter().any(|(part, _)| part == RANDOM) {
            out.push_str(RANDOM);
        } else {
            end = place + 1;
            out.push_str(&parts[place].0);
        }
        out.extend(joined.get(end - 1).map(|join| escape(&join.to_string()).replace("\\-", "-")));
        place = end;
    }
    out
}

fn is_hex(part: &str) -> bool {
    part.chars().all(|letter| letter.is_ascii_hexdigit() && !letter.is_ascii_uppercase())
}

/// An expression for two values; for dates, which may be of several words, also if their forms differ.
fn of_both(one: &str, other: &str) -> String {
    let are_dates = dated::is_date(one) && dated::is_date(other);
    if !are_dates && !dated::is_joined(one) || !dated::is_joined(one) && !dated::is_joined(other) {
        return shape(one, other);
    }
    let written = dated::shape(one);
    let fits = Regex::new(&format!("^(?:{written})$")).is_ok_and(|expression| expression.is_match(other));
    let mut ways = [written, dated::shape(other)];
    // The first alternative that matches counts, and the shorter one may match the beginning of the longer.
    ways.sort_by_key(|way| Reverse(way.len()));
    match ways {
        _ if fits => dated::shape(one),
        [longer, shorter] if are_dates => format!("{longer}|{shorter}"),
        _ => shape(one, other),
    }
}

/// An expression for a date: names of months vary, and days have one digit or two where they stand beside a name.
fn of_date(value: &str) -> String {
    if value.contains(char::is_alphabetic) || dated::is_joined(value) {
        dated::shape(value)
    } else {
        shape(value, value)
    }
}

/// An expression for one part; `hex` if the value is hexadecimal, `fixed` if two of one length are always of that length, as
/// fractions and numbers by themselves are not.
fn part(one: &str, other: &str, hex: bool, fixed: bool) -> String {
    let both = |test: fn(char) -> bool| one.chars().all(test) && other.chars().all(test);
    let length = one.chars().count();
    let times = if length == other.chars().count() && fixed { format!("{{{length}}}") } else { "+".to_owned() };
    if one.is_empty() && other.is_empty() {
        String::new()
    } else if one == other && both(char::is_alphabetic) {
        escape(one)
    } else if both(|letter| letter.is_ascii_digit()) && !hex {
        format!(r"\d{times}")
    } else if is_hex(one) && is_hex(other) {
        format!("[0-9a-f]{times}")
    } else {
        // How many letters a word of unknown kind has is chance.
        RANDOM.to_owned()
    }
}

/// Each proposal once, with `*` for an index at which places differ, and names that are all different.
fn distinct(found: Vec<Minted>) -> Vec<Minted> {
    let mut kept: Vec<Minted> = Vec::new();
    for one in found {
        let same = kept.iter().enumerate().find_map(|(place, known)| {
            let at = (known.expression == one.expression).then(|| merged(&known.at, &one.at))??;
            Some((place, at))
        });
        match same {
            Some((place, at)) => kept[place].at = at,
            None if kept.len() < MOST => kept.push(one),
            None => {}
        }
    }
    let mut named: BTreeMap<String, u32> = BTreeMap::new();
    for one in &mut kept {
        let count = named.entry(one.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            one.name = format!("{}-{count}", one.name);
        }
    }
    kept
}

/// One pointer for two places that differ in indices at most; `None` for others.
fn merged(one: &str, other: &str) -> Option<String> {
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (one.split('/').collect(), other.split('/').collect());
    if ours.len() != theirs.len() {
        return None;
    }
    let index = |step: &str| step == "*" || !step.is_empty() && step.chars().all(|letter| letter.is_ascii_digit());
    let steps = ours
        .iter()
        .zip(&theirs)
        .map(|(ours, theirs)| if ours == theirs { Some(*ours) } else { (index(ours) && index(theirs)).then_some("*") });
    Some(steps.collect::<Option<Vec<_>>>()?.join("/"))
}

#[cfg(test)]
#[path = "minted_tests.rs"]
mod tests;
