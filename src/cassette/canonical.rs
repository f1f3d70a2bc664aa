//! Canonical form of a request, and its hash: the key that matches requests to recorded exchanges.
//!
//! The form covers the redacted request: profile, method, path, and the body with sorted members, numbers as exact
//! decimals (1 and 1.0 are equal), lists in order, and tool call ids renamed by first appearance. Members in the
//! profile's drop-list are left out. System prompts and tool lists are represented by their hashes, which are cached
//! because they are long and repeat. Matching is exact, never by similarity.

use super::cache::remembered;
use super::drift::is_system;
use super::keys::Keys;
use crate::platform::secrets::Redactor;
use serde_json::{Map, Number, Value};
use std::io::Write;

/// How requests of one dialect are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its name, as in [`Profile::name`].
    pub name: &'static str,
    /// Increases whenever the canonical form changes.
    pub version: u32,
    /// JSON pointers of members that are left out.
    pub drop: &'static [&'static str],
}

impl Profile {
    /// Profile for requests of unknown dialects: every member counts.
    pub const EXACT: Self = Self { name: "exact", version: 1, drop: &[] };
}

/// The parts of a request that take part in matching.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Profile of its dialect.
    pub profile: &'a Profile,
    /// Upper case.
    pub method: &'a str,
    /// Below the provider's base URL.
    pub path: &'a str,
    /// The JSON body.
    pub body: &'a Value,
}

/// The key of a request: the first 32 hex digits of SHA-256 over its canonical form.
pub fn key(request: Request<'_>, redactor: &Redactor) -> String {
    Keys::default().of(request, redactor)
}

/// The body as stored in a cassette: redacted, and without dropped members.
pub(crate) fn stored_body(profile: &Profile, body: &Value, redactor: &Redactor) -> Value {
    let mut body = redactor.redact_value(body);
    for pointer in profile.drop {
        // Members left empty are removed too, as in the canonical form.
        let mut pointer = *pointer;
        while let Some((parent, name)) = pointer.rsplit_once('/')
            && let Some(Value::Object(entries)) = body.pointer_mut(parent)
            && entries.shift_remove(name).is_some()
            && entries.is_empty()
        {
            pointer = parent;
        }
    }
    body
}

/// Canonical form of a JSON document alone.
pub(super) fn canonical(value: &Value) -> Vec<u8> {
    let mut writer = Writer::into(Vec::new());
    writer.value(value, &[]);
    writer.out
}

/// Lower-case hex, truncated to `digits`.
pub(crate) fn hex(bytes: &[u8], digits: usize) -> String {
    let mut text = hex::encode(bytes);
    text.truncate(digits);
    text
}

/// The canonical form of a request.
#[derive(Debug, Default)]
pub(super) struct Form {
    /// The form: a line of profile, method and path, then JSON.
    pub text: Vec<u8>,
    /// End offset of each list element in the body, in order: a growing conversation is extended after one of them.
    pub ends: Vec<usize>,
}

/// Builds the form of a request in the buffer `memory`.
pub(super) fn form(request: Request<'_>, redactor: &Redactor, mut memory: Vec<u8>) -> Form {
    memory.clear();
    memory.reserve(16 * 1024);
    let mut writer = Writer::into(memory);
    writer.out.extend_from_slice(request.profile.name.as_bytes());
    for part in [request.method, request.path] {
        writer.out.push(b' ');
        writer.out.extend_from_slice(part.as_bytes());
    }
    writer.out.push(b'\n');
    match request.body {
        Value::Object(entries) => writer.body(entries, request.profile.drop, redactor),
        other => writer.value(other, &[]),
    }
    Form { text: writer.out, ends: writer.ends }
}

struct Writer<'a> {
    out: Vec<u8>,
    /// See [`Form::ends`].
    ends: Vec<usize>,
    /// Tool call ids in order of appearance.
    calls: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    fn into(out: Vec<u8>) -> Self {
        Self { out, ends: Vec::new(), calls: Vec::new() }
    }

    fn body(&mut self, entries: &'a Map<String, Value>, drop: &[&str], redactor: &Redactor) {
        self.object(entries, drop, |writer, name, value| match (name, value) {
            ("tools", Value::Array(_)) | ("instructions", Value::String(_)) => {
                writer.reference(&remembered(value, redactor));
            }
            ("messages", Value::Array(messages)) => {
                writer.list(messages, |writer, message| {
                    writer.message(message, redactor);
                    writer.ends.push(writer.out.len());
                });
            }
            (_, Value::Array(items)) => writer.list(items, |writer, item| {
                writer.value(item, &[]);
                writer.ends.push(writer.out.len());
            }),
            _ => writer.value(value, &below(drop, name)),
        });
    }

    fn message(&mut self, message: &'a Value, redactor: &Redactor) {
        let Value::Object(entries) = message else { return self.value(message, &[]) };
        let system = is_system(message);
        self.object(entries, &[], |writer, name, value| match (name, value) {
            ("content", Value::String(_)) if system => writer.reference(&remembered(value, redactor)),
            ("tool_call_id", Value::String(id)) => writer.call(id),
            ("tool_calls", Value::Array(calls)) => writer.list(calls, |writer, call| match call {
                Value::Object(entries) => writer.object(entries, &[], |writer, name, value| match (name, value) {
                    ("id", Value::String(id)) => writer.call(id),
                    _ => writer.value(value, &[]),
                }),
                other => writer.value(other, &[]),
            }),
            _ => writer.value(value, &[]),
        });
    }

    fn object(
        &mut self,
        entries: &'a Map<String, Value>,
        drop: &[&str],
        mut member: impl FnMut(&mut Self, &'a str, &'a Value),
    ) {
        let mut sorted: Vec<(&String, &Value)> =
            entries.iter().filter(|(name, value)| counts(name, value, drop)).collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        self.out.push(b'{');
        for (index, (name, value)) in sorted.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.string(name);
            self.out.push(b':');
            member(self, name, value);
        }
        self.out.push(b'}');
    }

    fn list(&mut self, items: &'a [Value], mut item: impl FnMut(&mut Self, &'a Value)) {
        self.out.push(b'[');
        for (index, value) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            item(self, value);
        }
        self.out.push(b']');
    }

    fn value(&mut self, value: &'a Value, drop: &[&str]) {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => self.list(items, |writer, item| writer.value(item, &[])),
            Value::Object(entries) => {
                self.object(entries, drop, |writer, name, value| writer.value(value, &below(drop, name)));
            }
        }
    }

    fn number(&mut self, number: &Number) {
        let float = if number.is_f64() { number.as_f64() } else { None };
        let text = match float {
            // Whole floats print as integers: 1.0 as 1, and -0.0 as 0.
            Some(float) if float.fract() == 0.0 => format!("{:.0}", float + 0.0),
            _ => number.to_string(),
        };
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes a string like `serde_json`; about as fast as a copy if little needs escaping.
    fn string(&mut self, text: &str) {
        let out = &mut self.out;
        out.push(b'"');
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(PIECE));
            rest = behind;
            // No branch per byte, so that the compiler can vectorise.
            if piece.iter().fold(false, |found, byte| found | escaped(*byte)) {
                for byte in piece {
                    push_escaped(out, *byte);
                }
            } else {
                out.extend_from_slice(piece);
            }
        }
        out.push(b'"');
    }

    fn call(&mut self, id: &'a str) {
        let place = self.calls.iter().position(|known| *known == id).unwrap_or_else(|| {
            self.calls.push(id);
            self.calls.len() - 1
        });
        // Writing to memory does not fail.
        let _ = write!(self.out, "\"call#{place}\"");
    }

    fn reference(&mut self, hash: &str) {
        self.out.extend_from_slice(b"{\"$sha256\":\"");
        self.out.extend_from_slice(hash.as_bytes());
        self.out.extend_from_slice(b"\"}");
    }
}

/// Bytes of a string that are checked together.
const PIECE: usize = 32;

/// Whether a byte of a string is written as an escape.
fn escaped(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\')
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        byte if escaped(byte) => {
            // Writing to memory does not fail.
            let _ = write!(out, "\\u{byte:04x}");
            return;
        }
        byte => return out.push(byte),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Whether a member counts: it is not dropped, and dropping its members does not leave it empty.
fn counts(name: &str, value: &Value, drop: &[&str]) -> bool {
    if drop.is_empty() {
        return true;
    }
    let inner = below(drop, name);
    match value {
        _ if inner.contains(&"") => false,
        Value::Object(entries) if !inner.is_empty() && !entries.is_empty() => {
            entries.iter().any(|(name, value)| counts(name, value, &inner))
        }
        _ => true,
    }
}

/// Pointers that continue below a member; an empty one is the member itself.
fn below<'p>(drop: &[&'p str], name: &str) -> Vec<&'p str> {
    if drop.is_empty() {
        return Vec::new();
    }
    let rest = drop.iter().filter_map(|pointer| pointer.strip_prefix('/')?.strip_prefix(name));
    rest.filter(|rest| rest.is_empty() || rest.starts_with('/')).collect()
}

#[cfg(test)]
mod tests {
    use super::super::drift::drift;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const PROFILE: Profile =
        Profile { name: "test", version: 1, drop: &["/user", "/stream_options/include_obfuscation"] };

    fn key_of(body: &Value) -> String {
        key(Request { profile: &PROFILE, method: "POST", path: "/x", body }, &Redactor::default())
    }

    #[test]
    fn one_and_one_point_zero_are_one_number_and_long_integers_stay_apart() {
        assert_eq!(key_of(&json!({"a": 1})), key_of(&json!({"a": 1.0})));
        assert_eq!(key_of(&json!({"a": 0})), key_of(&json!({"a": -0.0})));
        assert_ne!(key_of(&json!({"a": 9_007_199_254_740_992_u64})), key_of(&json!({"a": 9_007_199_254_740_993_u64})));
        assert_ne!(key_of(&json!({"a": 1})), key_of(&json!({"a": "1"})));
        assert_ne!(key_of(&json!({"a": [1, 2]})), key_of(&json!({"a": [2, 1]})));
    }

    #[test]
    fn members_in_the_drop_list_do_not_count_and_their_namesakes_do() {
        let plain = json!({"model": "m", "query": {"user": "u"}});
        let mut dressed = plain.clone();
        dressed["user"] = json!("someone");
        dressed["stream_options"] = json!({"include_obfuscation": true});
        assert_eq!(key_of(&plain), key_of(&dressed));
        assert_ne!(key_of(&plain), key_of(&json!({"model": "m", "query": {"user": "v"}})));
        assert_ne!(key_of(&plain), key_of(&json!({"model": "m", "query": {"user": "u"}, "username": 1})));
        let stored = stored_body(&PROFILE, &dressed, &Redactor::default());
        assert_eq!(stored, plain);
    }

    fn conversation(first: &str, second: &str, answers: [&str; 2]) -> Value {
        json!({"messages": [
            {"role": "assistant", "tool_calls": [{"id": first, "function": {"name": "f"}}, {"id": second, "function": {"name": "g"}}]},
            {"role": "tool", "tool_call_id": answers[0], "content": "1"},
            {"role": "tool", "tool_call_id": answers[1], "content": "2"},
        ]})
    }

    #[test]
    fn ids_of_calls_do_not_count_but_what_answers_what_does() {
        let recorded = key_of(&conversation("call_x", "call_y", ["call_x", "call_y"]));
        assert_eq!(recorded, key_of(&conversation("1", "2", ["1", "2"])));
        assert_ne!(recorded, key_of(&conversation("1", "2", ["2", "1"])));
    }

    proptest! {
        #[test]
        fn a_string_is_written_as_the_library_writes_it(text in "([ -~]{0,40}|[\\x00-\\x1f\"\\\\é🙂\u{7f}]|\\PC){0,8}") {
            prop_assert_eq!(canonical(&json!(text)), serde_json::to_vec(&text).expect("JSON"));
        }
    }

    #[test]
    fn one_word_of_a_system_prompt_or_a_tool_changes_the_key_and_its_drift_hash() {
        let body = |prompt: &str, tool: &str| {
            json!({"model": "m", "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": "q"}],
                "tools": [{"type": "function", "function": {"name": "f", "description": tool}}]})
        };
        let base = body("Always search.", "Searches.");
        for changed in [body("Often search.", "Searches."), body("Always search.", "Finds.")] {
            assert_ne!(key_of(&base), key_of(&changed));
        }
        assert_ne!(drift(&base).system, drift(&body("Often search.", "Searches.")).system);
        assert_eq!(drift(&base).tools, drift(&body("Often search.", "Searches.")).tools);
        assert_ne!(drift(&base).tools, drift(&body("Always search.", "Finds.")).tools);
        assert_eq!(drift(&base).parameters, drift(&body("Often search.", "Finds.")).parameters);
    }

    #[test]
    fn the_key_is_over_the_redacted_request() {
        let redactor = Redactor::new([("KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let of = |text: &str, redactor: &Redactor| {
            let body = json!({"messages": [{"role": "system", "content": text}, {"role": "user", "content": text}]});
            assert_eq!(text.contains('['), redactor.redact_value(&body) == body);
            key(Request { profile: &PROFILE, method: "POST", path: "/x", body: &body }, redactor)
        };
        assert_eq!(of("hunter2hunter2", &redactor), of("[redacted:KEY]", &Redactor::default()));
        let pattern = of("a\nsk-abcdefghijklmnopqrst", &Redactor::default());
        assert_eq!(pattern, of("a\n[redacted:openai]", &Redactor::default()));
    }

    fn shuffled(value: &Value) -> Value {
        match value {
            Value::Object(entries) => entries.iter().rev().map(|(key, value)| (key.clone(), shuffled(value))).collect(),
            Value::Array(items) => items.iter().map(shuffled).collect(),
            other => other.clone(),
        }
    }

    /// Changes the leaf at index `place` in document order; `false` if there are fewer leaves.
    fn change_leaf(value: &mut Value, place: &mut usize) -> bool {
        match value {
            Value::Object(entries) => entries.values_mut().any(|value| change_leaf(value, place)),
            Value::Array(items) => items.iter_mut().any(|value| change_leaf(value, place)),
            leaf => {
                if *place == 0 {
                    *leaf = match leaf {
                        Value::String(text) => json!(format!("{text}!")),
                        Value::Bool(value) => json!(!*value),
                        _ => json!("another"),
                    };
                    return true;
                }
                *place -= 1;
                false
            }
        }
    }

    fn body() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z ]{0,8}".prop_map(Value::from),
        ];
        let tree = leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,4}", inner, 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        });
        let names = prop_oneof![Just("messages".to_owned()), Just("tools".to_owned()), "[a-z]{2,3}"];
        prop::collection::btree_map(names, tree, 1..6).prop_map(|entries| Value::Object(entries.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn the_order_of_members_does_not_matter(body in body()) {
            prop_assert_eq!(key_of(&body), key_of(&shuffled(&body)));
        }

        #[test]
        fn any_changed_leaf_changes_the_key(body in body(), place: prop::sample::Index) {
            let count = (0..10_000).take_while(|place| change_leaf(&mut body.clone(), &mut { *place })).count();
            prop_assume!(count > 0);
            let mut changed = body.clone();
            change_leaf(&mut changed, &mut place.index(count));
            prop_assert_ne!(key_of(&body), key_of(&changed));
        }
    }
}
