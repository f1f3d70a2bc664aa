//! Positions of the parts of a request: data that each dialect passes in with its matching profile.
//!
//! Positions are JSON pointers. In a [`Place`], `*` stands for each element of a list.

use serde_json::{Map, Value};

/// How requests of one dialect are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its name, as in recordings.
    pub name: &'static str,
    /// Increases whenever the canonical form changes.
    pub version: u32,
    /// JSON pointers of members that are left out.
    pub drop: &'static [&'static str],
    /// Positions of the other parts.
    pub(crate) layout: &'static Layout,
}

impl Profile {
    /// Name of the profile of requests that no dialect decodes: to a declared service, or beside a conversation.
    pub(crate) const EXACT: &'static str = "exact";
    /// The profile of requests whose answer says nothing: they are passed on and not recorded, and a replay accepts them.
    pub(crate) const NOTICE: Self = Self::plain("notice");

    /// Whether the answer to such a request says nothing, see [`Profile::NOTICE`].
    pub(crate) fn is_notice(&self) -> bool {
        self.name == Self::NOTICE.name
    }

    /// A profile of requests whose members all count and mean nothing in particular.
    pub const fn plain(name: &'static str) -> Self {
        Self { name, version: 1, drop: &[], layout: &Layout::NONE }
    }
}

/// A member that marks an object, and the words that it may hold.
pub(crate) type Mark = (&'static str, &'static [&'static str]);

/// Positions of the parts of a request. `system`, `calls`, `call_names`, `results`, `references`, `role` and `text`
/// start from a message, the others from the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The model's name.
    pub model: Option<&'static str>,
    /// The list of messages: the first of these that a body has.
    pub conversation: &'static [&'static str],
    /// Marks messages that are system prompts; keys hold the hash of their text.
    pub system: Option<Mark>,
    /// System prompts beside the conversation.
    pub prompts: &'static [Place],
    /// The members that hold these prompts, which are not parameters.
    pub prompt_members: &'static [&'static str],
    /// The list of tools; keys hold its hash.
    pub tools: Option<&'static str>,
    /// The name of a tool: the first of these that a tool has.
    pub tool_names: &'static [&'static str],
    /// Who speaks.
    pub role: &'static str,
    pub text: &'static str,
    /// Ids of the calls that a message makes.
    pub calls: &'static [Place],
    /// Names of the tools that a message calls.
    pub call_names: &'static [Place],
    /// Ids of the calls that a message answers. An object that is marked as a result must have one.
    pub results: &'static [Place],
    /// Members by which a request continues a conversation that the service keeps: its calls are not checked.
    pub continues: &'static [&'static str],
    /// Marks elements of the conversation that the service keeps: its calls are not checked.
    pub references: Option<Mark>,
}

impl Layout {
    /// The layout of requests without a conversation.
    pub(crate) const NONE: Self = Self {
        model: None,
        conversation: &[],
        system: None,
        prompts: &[],
        prompt_members: &[],
        tools: None,
        tool_names: &[],
        role: "",
        text: "",
        calls: &[],
        call_names: &[],
        results: &[],
        continues: &[],
        references: None,
    };

    /// The conversation of a body and its position.
    pub(super) fn conversation<'v>(&self, body: &'v Value) -> Option<(&'static str, &'v Value)> {
        self.conversation.iter().find_map(|at| Some((*at, body.pointer(at)?)))
    }

    /// The messages of a body; empty if it has no list of them.
    pub(crate) fn messages<'v>(&self, body: &'v Value) -> &'v [Value] {
        self.conversation(body).and_then(|(_, list)| list.as_array()).map_or(&[], Vec::as_slice)
    }

    /// Whether a message is a system prompt.
    pub(super) fn is_system(&self, message: &Value) -> bool {
        self.system.is_some_and(|mark| is_marked(message, mark))
    }

    /// Whether two bodies have the same conversation, system prompts apart.
    pub(crate) fn same_conversation(&self, one: &Value, other: &Value) -> bool {
        let said = |body| self.messages(body).iter().filter(|message| !self.is_system(message));
        let plain = |body| self.conversation(body).filter(|(_, said)| !said.is_array());
        said(one).eq(said(other)) && plain(one) == plain(other)
    }

    /// The system prompts of a body, in order.
    pub(super) fn system_prompts<'v>(&self, body: &'v Value) -> Vec<&'v str> {
        let messages = self.messages(body).iter().filter(|message| self.is_system(message));
        let mut prompts: Vec<&str> = messages.filter_map(|message| message.pointer(self.text)?.as_str()).collect();
        for place in self.prompts {
            place.each(body, &mut |prompt| prompts.extend(prompt.and_then(Value::as_str)));
        }
        prompts
    }

    /// Whether requests of this layout ask a model.
    pub(super) fn is_of_model(&self) -> bool {
        self.model.is_some() || !self.conversation.is_empty()
    }

    /// A body without the names of its model and its tools.
    pub(super) fn without_names(&self, mut body: Value) -> Value {
        self.model.iter().for_each(|model| remove(&mut body, model));
        let tools = self.tools.and_then(|tools| body.pointer_mut(tools)?.as_array_mut());
        for tool in tools.into_iter().flatten() {
            self.tool_names.iter().for_each(|name| remove(tool, name));
        }
        body
    }

    /// The members of a body that are neither model, conversation, system prompt nor tools.
    pub(super) fn parameters(&self, body: &Value) -> Map<String, Value> {
        let mut rest = if body.is_object() { body.clone() } else { Value::Null };
        let parts = self.conversation.iter().chain(self.prompt_members).chain(&self.model).chain(&self.tools);
        parts.for_each(|part| remove(&mut rest, part));
        if let Value::Object(entries) = rest { entries } else { Map::new() }
    }
}

/// Texts or ids in a message or a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    at: &'static str,
    when: Option<Mark>,
    folds: bool,
}

impl Place {
    /// The values at this pointer, in which `*` stands for each element of a list.
    pub(crate) const fn at(at: &'static str) -> Self {
        Self { at, when: None, folds: false }
    }

    /// Restricts the place to objects whose `member` is one of `words`.
    #[must_use]
    pub(crate) const fn when(self, member: &'static str, words: &'static [&'static str]) -> Self {
        Self { when: Some((member, words)), ..self }
    }

    /// Lets keys hold the hash of a prompt or the number of a call in place of the value.
    #[must_use]
    pub(crate) const fn folded(self) -> Self {
        Self { folds: true, ..self }
    }

    /// Its pointer and mark, if keys do not hold its values.
    pub(super) fn fold(&self) -> Option<(&'static str, Option<Mark>)> {
        self.folds.then_some((self.at, self.when))
    }

    /// Calls `act` with the value in each object that could have one; `None` for an object that is marked and has none.
    pub(crate) fn each<'v>(&self, root: &'v Value, act: &mut dyn FnMut(Option<&'v Value>)) {
        fn reach<'v>(at: &str, value: &'v Value, act: &mut dyn FnMut(&'v Value)) {
            match at.split_once("/*") {
                None => value.pointer(at).into_iter().for_each(act),
                Some((list, rest)) => {
                    let items = value.pointer(list).and_then(Value::as_array).into_iter().flatten();
                    items.for_each(|item| reach(rest, item, act));
                }
            }
        }
        let (holder, name) = self.at.rsplit_once('/').unwrap_or_default();
        let Some(mark) = self.when else {
            return reach(self.at, root, &mut |value| act(Some(value)));
        };
        reach(holder, root, &mut |holder| {
            if is_marked(holder, mark) {
                act(holder.get(name));
            }
        });
    }

    /// Calls `act` with each value that keys do not hold, to change it.
    pub(super) fn each_folded_mut(&self, root: &mut Value, act: &mut dyn FnMut(&mut Value)) {
        fn reach(at: &str, value: &mut Value, act: &mut dyn FnMut(&mut Value)) {
            match at.split_once("/*") {
                None => value.pointer_mut(at).into_iter().for_each(act),
                Some((list, rest)) => {
                    let items = value.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
                    items.for_each(|item| reach(rest, item, act));
                }
            }
        }
        if self.folds {
            reach(self.at, root, act);
        }
    }
}

/// Whether an object is marked so.
pub(crate) fn is_marked(value: &Value, (member, words): Mark) -> bool {
    value.get(member).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
}

/// Removes the member at a pointer, and the members that this leaves empty.
pub(super) fn remove(body: &mut Value, mut pointer: &str) {
    while let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(entries)) = body.pointer_mut(parent)
        && entries.shift_remove(name).is_some()
        && entries.is_empty()
    {
        pointer = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::key;
    use super::super::tests::{CHAT, conversation, exchange_by, header, prompt, saved, sent};
    use super::super::{Cassette, Redactor, Request, Taken, explain};
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    static ITEMS: Layout = Layout {
        model: Some("/model"),
        conversation: &["/input"],
        prompts: &[Place::at("/instructions").folded()],
        prompt_members: &["/instructions"],
        ..Layout::NONE
    };

    static PARTS: Layout = Layout {
        conversation: &["/contents"],
        prompts: &[Place::at("/systemInstruction/parts/*/text")],
        prompt_members: &["/systemInstruction"],
        ..Layout::NONE
    };

    /// A dialect that nobody speaks: its parts are below one member, with names of their own.
    static ODD: Layout = Layout {
        model: Some("/payload/engine"),
        conversation: &["/payload/turns"],
        system: Some(("kind", &["rule"])),
        tools: Some("/payload/functions"),
        tool_names: &["/call_me"],
        role: "/kind",
        text: "/say",
        calls: &[Place::at("/wants/*/ref").when("kind", &["run"]).folded()],
        call_names: &[Place::at("/wants/*/call_me")],
        results: &[Place::at("/for").when("kind", &["outcome"]).folded()],
        ..Layout::NONE
    };

    static ODD_PROFILE: Profile = Profile { layout: &ODD, drop: &["/payload/trace/id"], ..Profile::plain("odd") };

    fn odd(prompt: &str, tool: &str, results: &[(&str, &str)]) -> Value {
        let mut turns = vec![json!({"kind": "rule", "say": prompt}), json!({"kind": "user", "say": "Refund?"})];
        for (id, result) in results {
            turns.push(json!({"kind": "model", "wants": [{"kind": "run", "ref": id, "call_me": "find"}]}));
            turns.push(json!({"kind": "outcome", "for": id, "say": result}));
        }
        let functions =
            [json!({"call_me": "find", "about": tool}), json!({"call_me": "keep", "about": "Keeps. ".repeat(80)})];
        json!({"payload": {"engine": "e-1", "turns": turns, "functions": functions, "heat": 0.5, "trace": {"id": turns.len()}}})
    }

    #[test]
    fn conversations_of_every_layout_are_kept_once_and_their_prompts_beside() {
        let prompt = prompt();
        let said = |count: usize| -> Vec<Value> {
            (0..count).map(|place| json!({"role": "user", "content": format!("turn {place}")})).collect()
        };
        let bodies = |count: usize| {
            let mut first = conversation(&prompt, &[]);
            first["messages"].as_array_mut().expect("messages").extend(said(count));
            let results: Vec<(String, String)> = (0..count).map(|n| (format!("c{n}"), format!("turn {n}"))).collect();
            let results: Vec<(&str, &str)> = results.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
            [
                (&CHAT, first),
                (&ITEMS, json!({"model": "m", "instructions": prompt, "input": said(count)})),
                (&PARTS, json!({"systemInstruction": {"parts": [{"text": prompt}]}, "contents": said(count)})),
                (&ODD, odd(&prompt, "Finds.", &results)),
            ]
        };
        let profile =
            |layout| -> &'static Profile { Box::leak(Box::new(Profile { layout, ..Profile::plain("test") })) };
        for ((layout, one), (_, two)) in bodies(1).into_iter().zip(bodies(3)) {
            assert_eq!(layout.system_prompts(&one), [prompt.as_str()]);
            let exchanges =
                [(0, &one), (1, &two)].map(|(place, body)| exchange_by(profile(layout), place, body, "{}")).to_vec();
            let cassette = Cassette::new(header(), exchanges, BTreeMap::new());
            let folder = tempfile::tempdir().expect("a folder");
            assert_eq!(saved(&cassette, folder.path()).requests(), sent(&cassette));
            let (text, _) = cassette.to_text().expect("readable");
            assert_eq!((text.matches("turn 0").count(), text.matches("turn 2").count()), (1, 1), "{text}");
            assert!(text.matches("Always search").count() <= 1, "{text}");
        }
    }

    #[test]
    fn a_dialect_that_keeps_its_parts_elsewhere_has_digests_explanations_and_matching_as_any() {
        let prompt = prompt();
        let base = odd(&prompt, "Finds.", &[("a", "nothing")]);
        let of = |body: &Value| exchange_by(&ODD_PROFILE, 0, body, "{}");
        let digests = of(&base).drift;
        assert_eq!((digests.model.as_str(), digests.system.len(), digests.tools.len()), ("e-1", 16, 16));
        let mut warm = base.clone();
        warm["payload"]["heat"] = json!(1);
        let mut other = base.clone();
        other["payload"]["engine"] = json!("e-2");
        let changed = [
            (odd("Never search.", "Finds.", &[("a", "nothing")]), "system prompt changed"),
            (odd(&prompt, "Looks.", &[("a", "nothing")]), "tool list changed:   tool find, about: - Finds. + Looks."),
            (warm, "parameter payload changed"),
            (other, "model changed: - e-1 + e-2"),
            (odd(&prompt, "Finds.", &[("a", "much")]), "message 3 (outcome) changed: - nothing + much"),
        ];
        let cassette = Cassette::new(header(), vec![of(&base)], BTreeMap::new());
        for (place, (body, words)) in changed.iter().enumerate() {
            let drift = of(body).drift;
            let differ = [drift.system != digests.system, drift.tools != digests.tools];
            let differ =
                [differ[0], differ[1], drift.parameters != digests.parameters, drift.model != digests.model, false];
            assert_eq!(differ.iter().position(|differs| *differs), (place < 4).then_some(place), "{words}");
            let request = Request { profile: &ODD_PROFILE, method: "POST", path: "/chat/completions", body };
            let key = key(request, &Redactor::default());
            assert_ne!(key, cassette.exchanges[0].key, "{words}");
            let taken = (Taken::Unknown, &[0][..]);
            let told = explain(&cassette, "model", request, &key, taken, &Redactor::default(), "ragcheck run");
            assert!(told.cause.starts_with(words), "{told:?}");
        }
        assert_eq!(of(&base).key, of(&odd(&prompt, "Finds.", &[("z", "nothing")])).key, "ids of calls do not count");
        let more = Cassette::new(header(), vec![of(&odd(&prompt, "Finds.", &[]))], BTreeMap::new());
        let request = Request { profile: &ODD_PROFILE, method: "POST", path: "/chat/completions", body: &base };
        let taken = (Taken::Unknown, &[0][..]);
        let told = explain(&more, "model", request, "", taken, &Redactor::default(), "ragcheck run");
        assert!(told.detail[1].contains("message 2 (model): calls find"), "{told:?}");
        let blobs = cassette.to_text().expect("readable").1;
        assert_eq!(blobs.len(), 2, "the prompt and the functions are shared: {blobs:?}");
    }
}
