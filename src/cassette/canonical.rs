//! Canonical form of a request, over which its key is computed.
//!
//! The form covers the redacted request: profile, method, path and body, with tool call ids renamed by first
//! appearance. Members in the profile's drop-list are left out. Where the profile's layout says so, system prompts and
//! tool lists are represented by their hashes, which are cached because they are long and repeat. Matching is exact,
//! never by similarity.

use super::digest::{push, push_name, separate};
use super::layout::{Layout, Mark, Place, Profile, is_marked, remove};
use super::part_hashes::PartHashes;
use crate::platform::secrets::Redactor;
use serde_json::{Map, Value};
use std::io::Write;

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

impl Request<'_> {
    /// The path as stored in a cassette.
    pub(super) fn redacted_path(&self, redactor: &Redactor) -> String {
        let Profile { layout, .. } = self.profile;
        // What no dialect decodes mostly goes to a service that is no model, where such a name may be that of what is looked up.
        let is_beside = || ["models", "tokens", "Tokens"].iter().any(|of_model| self.path.contains(of_model));
        let is_of_model = layout.is_of_model() && (self.profile.name != Profile::EXACT || is_beside());
        redactor.redact_path(self.path, is_of_model)
    }
}

/// The body as stored in a cassette: redacted, and without dropped members.
pub(crate) fn stored_body(profile: &Profile, body: &Value, redactor: &Redactor) -> Value {
    let mut body = redactor.redact_value(body);
    profile.drop.iter().for_each(|pointer| remove(&mut body, pointer));
    body
}

/// The canonical form of a request.
#[derive(Debug, Default)]
pub(super) struct Form {
    /// The form: a line of profile, method and path, then JSON.
    pub text: Vec<u8>,
    /// End offset of each element of the body's outermost lists, in order: a growing conversation is extended after
    /// one of them.
    pub ends: Vec<usize>,
}

/// Builds the form of a request in the buffer `memory`.
pub(super) fn form(request: Request<'_>, redactor: &Redactor, hashes: &mut PartHashes, mut memory: Vec<u8>) -> Form {
    memory.clear();
    memory.reserve(16 * 1024);
    memory.extend_from_slice(request.profile.name.as_bytes());
    for part in [request.method, request.path] {
        memory.push(b' ');
        memory.extend_from_slice(part.as_bytes());
    }
    memory.push(b'\n');
    let layout = request.profile.layout;
    let mut writer = Writer { out: memory, ends: Vec::new(), depth: 0, calls: Vec::new(), layout, redactor, hashes };
    writer.value(request.body, &rules(request.profile));
    Form { text: writer.out, ends: writer.ends }
}

/// What happens to the value at a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// It is left out.
    Drop,
    /// A list is represented by its hash.
    HashList,
    /// A text is represented by its hash.
    HashText,
    /// An id is represented by the number of its call.
    NumberCall,
    /// The elements of a list are messages.
    Messages,
}

/// An action, for the value that the rest of a pointer leads to.
#[derive(Debug, Clone, Copy)]
struct Rule {
    rest: &'static str,
    when: Option<Mark>,
    action: Action,
}

fn rule(rest: &'static str, when: Option<Mark>, action: Action) -> Rule {
    Rule { rest, when, action }
}

/// The rules for the body of a request.
fn rules(profile: &Profile) -> Vec<Rule> {
    let layout = profile.layout;
    let dropped = profile.drop.iter().map(|at| rule(at, None, Action::Drop));
    let tools = layout.tools.iter().map(|at| rule(at, None, Action::HashList));
    let prompts = layout.prompts.iter().filter_map(Place::fold);
    let prompts = prompts.map(|(at, when)| rule(at, when, Action::HashText));
    let messages = layout.conversation.iter().map(|at| rule(at, None, Action::Messages));
    dropped.chain(tools).chain(prompts).chain(messages).collect()
}

fn message_rules(layout: &Layout) -> Vec<Rule> {
    let ids = layout.calls.iter().chain(layout.results).filter_map(Place::fold);
    let ids = ids.map(|(at, when)| rule(at, when, Action::NumberCall));
    layout.system.map(|mark| rule(layout.text, Some(mark), Action::HashText)).into_iter().chain(ids).collect()
}

/// The rules that lead below a member of `holder`, or below an element of a list.
fn below(rules: &[Rule], segment: &str, holder: Option<&Value>) -> Vec<Rule> {
    let inner = rules.iter().filter_map(|rule| {
        let rest = rule.rest.strip_prefix('/')?.strip_prefix(segment)?;
        let leads = rest.starts_with('/') || rest.is_empty() && rule.when.zip(holder).is_none_or(marked);
        leads.then_some(Rule { rest, ..*rule })
    });
    inner.collect()
}

fn marked((mark, holder): (Mark, &Value)) -> bool {
    is_marked(holder, mark)
}

/// Whether a value counts: it is not dropped, and dropping its members does not leave it empty.
fn counts(value: &Value, rules: &[Rule]) -> bool {
    let mut drops = rules.iter().filter(|rule| rule.action == Action::Drop).peekable();
    if drops.peek().is_none() {
        return true;
    }
    match value {
        _ if drops.any(|rule| rule.rest.is_empty()) => false,
        Value::Object(entries) if !entries.is_empty() => {
            entries.iter().any(|(name, inner)| counts(inner, &below(rules, name, Some(value))))
        }
        _ => true,
    }
}

struct Writer<'a, 'h> {
    out: Vec<u8>,
    /// See [`Form::ends`].
    ends: Vec<usize>,
    /// Number of lists that are open.
    depth: usize,
    /// Tool call ids in order of appearance.
    calls: Vec<&'a str>,
    layout: &'static Layout,
    redactor: &'h Redactor,
    hashes: &'h mut PartHashes,
}

impl<'a> Writer<'a, '_> {
    fn value(&mut self, value: &'a Value, rules: &[Rule]) {
        if rules.is_empty() && self.depth > 0 {
            return push(&mut self.out, value);
        }
        let action = rules.iter().find(|rule| rule.rest.is_empty()).map(|rule| rule.action);
        match (action, value) {
            (Some(Action::HashList), Value::Array(_)) | (Some(Action::HashText), Value::String(_)) => self.hash(value),
            (Some(Action::NumberCall), Value::String(id)) => self.call(id),
            (Some(Action::Messages), Value::Array(items)) => self.list(items, &message_rules(self.layout)),
            (_, Value::Array(items)) => self.list(items, &below(rules, "*", None)),
            (_, Value::Object(entries)) => self.object(value, entries, rules),
            _ => push(&mut self.out, value),
        }
    }

    fn object(&mut self, object: &'a Value, entries: &'a Map<String, Value>, rules: &[Rule]) {
        let inner = entries.iter().map(|(name, value)| (name, value, below(rules, name, Some(object))));
        let mut sorted: Vec<(&String, &Value, Vec<Rule>)> =
            inner.filter(|(_, value, inner)| counts(value, inner)).collect();
        sorted.sort_unstable_by_key(|(name, ..)| *name);
        self.out.push(b'{');
        for (index, (name, value, inner)) in sorted.into_iter().enumerate() {
            push_name(&mut self.out, index, name);
            self.value(value, &inner);
        }
        self.out.push(b'}');
    }

    fn list(&mut self, items: &'a [Value], rules: &[Rule]) {
        self.out.push(b'[');
        self.depth += 1;
        for (index, item) in items.iter().enumerate() {
            separate(&mut self.out, index);
            self.value(item, rules);
            if self.depth == 1 {
                self.ends.push(self.out.len());
            }
        }
        self.depth -= 1;
        self.out.push(b']');
    }

    fn call(&mut self, id: &'a str) {
        let place = self.calls.iter().position(|known| *known == id).unwrap_or_else(|| {
            self.calls.push(id);
            self.calls.len() - 1
        });
        // Writing to memory does not fail.
        let _ = write!(self.out, "\"call#{place}\"");
    }

    fn hash(&mut self, part: &Value) {
        let hash = self.hashes.of(part, self.redactor);
        // Writing to memory does not fail.
        let _ = write!(self.out, "{{\"$sha256\":\"{hash}\"}}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::drift;
    use super::super::keys::key;
    use super::super::tests::CHAT;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    static PROFILE: Profile =
        Profile { drop: &["/user", "/stream_options/include_obfuscation"], layout: &CHAT, ..Profile::plain("test") };

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
        assert_ne!(drift(&CHAT, &base).system, drift(&CHAT, &body("Often search.", "Searches.")).system);
        assert_eq!(drift(&CHAT, &base).tools, drift(&CHAT, &body("Often search.", "Searches.")).tools);
        assert_ne!(drift(&CHAT, &base).tools, drift(&CHAT, &body("Always search.", "Finds.")).tools);
        assert_eq!(drift(&CHAT, &base).parameters, drift(&CHAT, &body("Often search.", "Finds.")).parameters);
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
