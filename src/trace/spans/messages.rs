//! Messages of a model's input and output, as instrumentations write them into attributes.
//!
//! Read are the `parts` of the GenAI conventions, the messages of OpenAI's chat, of LangChain and of Vercel's AI SDK,
//! OpenInference's and OpenLLMetry's flattened attributes (`llm.input_messages.0.message.role`,
//! `gen_ai.prompt.0.content`), and lists of calls.

use super::langchain::{is_failed, unwrapped};
use super::parts::{self, Kind};
use super::{Attributes, parsed};
use serde_json::{Map, Value};

/// Parts of a flattened name that are read; names with more are not messages.
const MOST_PARTS: usize = 16;
/// What stands for messages that were cut off.
pub(super) const CUT_OFF: &str = "messages that are cut off, or no JSON";
/// Roles of messages that are pairs of a role and a text.
const ROLES: [&str; 5] = ["system", "user", "human", "assistant", "ai"];
/// Members of an agent's input or output that hold its words, if it is an object.
const WORDS: [&str; 16] = [
    "input", "question", "query", "message", "prompt", "content", "text", "output", "answer", "response", "result",
    "inputs", "outputs", "task", "kwargs", "return_value",
];
/// Those of them that hold what was asked: an output may repeat them beside the answer.
const ASKED: [&str; 6] = ["input", "question", "query", "prompt", "inputs", "task"];

/// One message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    /// `system`, `user`, `assistant`, `tool` or another word; empty if none is given.
    pub(crate) role: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    /// For a result: the id of its call.
    pub(crate) answers: Option<String>,
    /// For a result: the name of its tool, if it is given.
    pub(crate) tool: Option<String>,
    /// For a result: whether it is marked as an error.
    pub(crate) is_failed: bool,
    /// What of it cannot be read and may be a call.
    pub(crate) unread: Option<String>,
}

/// One call of a tool in a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Empty if none is given.
    pub(crate) id: String,
    pub(crate) tool: String,
    /// As JSON, or as text if it is none.
    pub(crate) arguments: Value,
}

impl Said {
    pub(crate) fn is_user(&self) -> bool {
        matches!(self.role.as_str(), "user" | "human")
    }

    pub(crate) fn is_result(&self) -> bool {
        matches!(self.role.as_str(), "tool" | "function")
    }

    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.role.as_str(), "assistant" | "ai" | "model" | "")
    }
}

/// The messages in a value, which may be written as JSON in a text.
pub(super) fn messages(value: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    match (value, parsed(value)) {
        (Value::String(_), Value::Array(none)) if none.is_empty() => {}
        (Value::String(_), Value::String(text)) if parts::is_broken(&text) => {
            said.push(Said { role: CUT_OFF.to_owned(), unread: Some(CUT_OFF.to_owned()), ..Said::default() });
        }
        // A text that is JSON, but no message.
        (Value::String(text), read) if !holds_messages(&read) => {
            said.push(Said { text: text.clone(), ..Said::default() });
        }
        (_, read) => collect(&read, &mut said),
    }
    said
}

/// Whether a value is a message, or a list that has one.
fn holds_messages(value: &Value) -> bool {
    const MEMBERS: [&str; 8] =
        ["role", "content", "parts", "contents", "message", "messages", "tool_calls", "tool.name"];
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_object() && holds_messages(item)),
        Value::Object(object) => {
            MEMBERS.iter().any(|name| object.contains_key(*name))
                || parts::item(object).is_some()
                || unwrapped(object).or_else(|| items(object)).is_some_and(holds_messages)
        }
        _ => false,
    }
}

/// The messages in flattened attributes that begin with one of these names.
pub(super) fn flattened(attributes: &Attributes, names: &[&str]) -> Option<Vec<Said>> {
    let said = messages(&names.iter().find_map(|name| nested(attributes, name))?);
    (!said.is_empty()).then_some(said)
}

/// The value of flattened attributes: `NAME.0.a.b`.
pub(super) fn nested(attributes: &Attributes, name: &str) -> Option<Value> {
    let mut root = Map::new();
    for (key, value) in attributes {
        let Some(path) = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) else { continue };
        let mut parts: Vec<&str> = path.split('.').take(MOST_PARTS + 1).collect();
        let Some(last) = parts.pop().filter(|_| parts.len() < MOST_PARTS) else { continue };
        let mut place = Some(&mut root);
        for part in parts {
            let Some(members) = place else { break };
            place = members.entry(part).or_insert_with(|| Value::Object(Map::new())).as_object_mut();
        }
        if let Some(members) = place {
            members.insert(last.to_owned(), value.clone());
        }
    }
    (!root.is_empty()).then(|| listed(root))
}

/// Objects whose names are numbers become lists.
fn listed(members: Map<String, Value>) -> Value {
    let numbers: Option<Vec<u64>> = members.keys().map(|name| name.parse().ok()).collect();
    let value = |one: Value| if let Value::Object(inner) = one { listed(inner) } else { one };
    match numbers {
        Some(numbers) => {
            let mut items: Vec<(u64, Value)> =
                numbers.into_iter().zip(members.into_iter().map(|(_, one)| one)).collect();
            items.sort_by_key(|(number, _)| *number);
            items.into_iter().map(|(_, one)| value(one)).collect()
        }
        None => Value::Object(members.into_iter().map(|(name, one)| (name, value(one))).collect()),
    }
}

fn collect(value: &Value, said: &mut Vec<Said>) {
    match value {
        Value::Array(items) if items.iter().any(|item| item.get("tool.name").is_some()) => {
            let calls = items.iter().filter_map(parts::call).collect();
            said.push(Said { role: "assistant".to_owned(), calls, ..Said::default() });
        }
        Value::Array(items) => match items.as_slice() {
            // LangChain's short form: a role and the words.
            [Value::String(role), Value::String(text)] if ROLES.contains(&role.as_str()) => {
                said.push(Said { role: role.clone(), text: text.clone(), ..Said::default() });
            }
            items => items.iter().for_each(|item| collect(item, said)),
        },
        Value::Object(object) => {
            if let Some(inner) = object.get("message").filter(|inner| inner.is_object()) {
                return collect(inner, said);
            }
            if let Some(inner) = unwrapped(object) {
                return collect(inner, said);
            }
            match object.get("messages").or_else(|| items(object)) {
                Some(inner) => collect(inner, said),
                None => match parts::item(object) {
                    Some(items) => said.extend(items),
                    None => message(object, said),
                },
            }
        }
        Value::Null => {}
        other => said.push(Said { text: plain(other), ..Said::default() }),
    }
}

/// The items of a request to OpenAI's Responses API, or of its answer; the choices of an answer of its chat.
fn items(object: &Map<String, Value>) -> Option<&Value> {
    let listed = ["input", "output"].into_iter().find_map(|name| object.get(name).filter(|items| items.is_array()));
    let choices = || object.get("choices").filter(|choices| choices.pointer("/0/message").is_some());
    let listed = listed.or_else(choices);
    listed.filter(|_| !["role", "content", "call_id"].iter().any(|name| object.contains_key(*name)))
}

fn message(object: &Map<String, Value>, said: &mut Vec<Said>) {
    let text = |names: &[&str]| names.iter().find_map(|name| object.get(*name)?.as_str());
    let role = text(&["role", "type"]).unwrap_or_default().to_ascii_lowercase();
    let mut one = Said { role, ..Said::default() };
    let mut results = Vec::new();
    for name in ["contents", "parts", "content"] {
        let (mut more, mut its_results) = (Said::default(), Vec::new());
        match object.get(name) {
            Some(Value::Array(parts)) => parts.iter().for_each(|item| part(item, &mut more, &mut its_results)),
            Some(Value::Null) | None => continue,
            Some(other) => more.text = plain(other),
        }
        one.unread = one.unread.take().or(more.unread.take());
        add_unknown(more, its_results, &mut one, &mut results);
    }
    // The text of a result may stand beside it.
    if !one.is_agent() && results.iter().any(|result| condensed(&result.text) == condensed(&one.text)) {
        one.text.clear();
    }
    // LangChain repeats the calls of the content.
    let (calls, unread) = parts::beside(object);
    one.unread = one.unread.take().or(unread);
    let known = one.calls.len();
    for call in calls {
        if call.id.is_empty() || one.calls[..known].iter().all(|one| one.id != call.id) {
            one.calls.push(call);
        }
    }
    one.answers = text(&["tool_call_id", "id"]).filter(|_| one.role == "tool").map(str::to_owned);
    one.tool = text(&["name"]).filter(|_| one.role == "tool").map(str::to_owned);
    one.is_failed = one.role == "tool" && is_failed(object);
    // A message may hold nothing but results.
    if results.is_empty() || !one.text.is_empty() || !one.calls.is_empty() || one.unread.is_some() {
        said.push(one);
    }
    said.append(&mut results);
}

/// Adds what another member of a message says, without what is known: some instrumentations write all or a part of it
/// twice, as parts and as a text.
fn add_unknown(more: Said, its_results: Vec<Said>, one: &mut Said, results: &mut Vec<Said>) {
    if one.text.is_empty() {
        one.text = more.text;
    } else {
        let (known, new) = (condensed(&one.text), condensed(&more.text));
        if new.contains(&known) {
            one.text = more.text;
        } else if !known.contains(&new) {
            add(&mut one.text, &more.text);
        }
    }
    let is_repeated = |call: &Call, known: &Call| {
        let has_ids = !call.id.is_empty() && !known.id.is_empty();
        if has_ids { call.id == known.id } else { (&call.tool, &call.arguments) == (&known.tool, &known.arguments) }
    };
    let calls = more.calls.into_iter().filter(|call| !one.calls.iter().any(|known| is_repeated(call, known)));
    let calls: Vec<Call> = calls.collect();
    one.calls.extend(calls);
    let is_repeated = |result: &Said, known: &Said| {
        let has_ids = result.answers.is_some() && known.answers.is_some();
        let is_same = || condensed(&result.text) == condensed(&known.text) && result.calls == known.calls;
        if has_ids { result.answers == known.answers } else { is_same() }
    };
    let new = its_results.into_iter().filter(|result| !results.iter().any(|known| is_repeated(result, known)));
    let new: Vec<Said> = new.collect();
    results.extend(new);
}

/// A text without whitespace.
fn condensed(text: &str) -> String {
    text.split_whitespace().collect()
}

fn part(item: &Value, one: &mut Said, results: &mut Vec<Said>) {
    let item = item.get("message_content").unwrap_or(item);
    let kind = item.get("type").and_then(Value::as_str);
    let (what, item) = parts::kind_of(item);
    let text = |names: &[&str]| names.iter().find_map(|name| item.get(*name)?.as_str()).map(str::to_owned);
    match what {
        Kind::Words => {
            let words = item.as_str().map(str::to_owned).or_else(|| text(&["content", "text"]));
            add(&mut one.text, &words.unwrap_or_default());
        }
        Kind::Call(call) => one.calls.push(call),
        Kind::Served(said) => results.extend(said),
        Kind::Result => {
            let result = ["response", "result", "content", "output"].into_iter().find_map(|name| item.get(name));
            let result =
                result.map(|result| result.get("value").filter(|_| kind == Some("tool-result")).unwrap_or(result));
            let answers = text(&["id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId"]);
            let tool = text(&["name", "toolName"]);
            let text = parts::shown(result);
            let is_marked = ["is_error", "isError"].iter().any(|name| item.get(*name) == Some(&Value::Bool(true)));
            // Of the AI SDK: `error-text`, `error-json`, `execution-denied`.
            let kind = item.pointer("/output/type").and_then(Value::as_str).unwrap_or_default();
            let is_failed = is_marked || kind.starts_with("error-") || kind == "execution-denied";
            results.push(Said { role: "tool".to_owned(), text, answers, tool, is_failed, ..Said::default() });
        }
        Kind::Aside => {}
        Kind::Unread(why) => one.unread = Some(why),
    }
}

fn add(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The arguments of an observed function by their names, from the `args` and `kwargs` that instrumentations of Python
/// write; any other value as it is. `None` if some are given by position.
pub(super) fn by_name(value: Value) -> Option<Value> {
    match (value.get("args"), value.get("kwargs")) {
        (Some(Value::Array(args)), Some(kwargs)) => args.is_empty().then(|| kwargs.clone()),
        _ => Some(value),
    }
}

/// A value as words: a text as it is, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The texts in a value, at any depth, with those in lists or without.
fn texts(value: &Value, with_lists: bool) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) if with_lists => items.iter().flat_map(|one| texts(one, true)).collect(),
        Value::Object(members) => members.values().flat_map(|one| texts(one, with_lists)).collect(),
        _ => Vec::new(),
    }
}

/// Whether JSON holds an object of Python, written as a text, in which a member is `said`.
pub(super) fn prints(json: &str, said: &str) -> bool {
    let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(json) else { return false };
    let escaped = said.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r").replace('\t', r"\t");
    let quoted = [format!("='{escaped}'"), format!("=\"{escaped}\""), format!("='{}'", escaped.replace('\'', r"\'"))];
    texts(&value, true).iter().any(|text| quoted.iter().any(|quoted| text.contains(quoted)))
}

/// The words of a user (or of the agent) in an agent's input (or output): the last message of theirs; else a text, or
/// the one member of an object that is known to hold words, or the one text of an input; else the JSON as it is.
pub(crate) fn words_in(value: &Value, user: bool) -> Option<String> {
    let mut read = parsed(value);
    if read.as_str().is_some_and(parts::is_cut_off) {
        return None;
    }
    let answers = |name: &str| WORDS.contains(&name) && !ASKED.contains(&name);
    if let Value::Object(members) = &mut read
        && !user
        && members.iter().any(|(name, inner)| answers(name) && !inner.is_null())
    {
        members.retain(|name, _| !ASKED.contains(&name.as_str()));
    }
    let theirs = |said: &&Said| if user { said.is_user() } else { said.is_agent() && said.calls.is_empty() };
    if holds_messages(&read)
        && let Some(last) = messages(&read).iter().rfind(theirs)
    {
        return Some(last.text.clone());
    }
    if let Value::Object(members) = &read {
        if let Some(args) = members.get("args").and_then(Value::as_array)
            && members.get("kwargs").and_then(Value::as_object).is_some_and(Map::is_empty)
        {
            // Of arguments by position nothing says which are the words, unless there is one.
            let is_alone =
                |value: &&Value| args.iter().filter(|other| other.is_string()).count() == 1 && value.is_string();
            return args.iter().find(is_alone).map(plain);
        }
        let names = WORDS.into_iter().filter(|name| user || !ASKED.contains(name) || members.len() == 1);
        if let Some(inner) = names.filter_map(|name| members.get(name)).find(|inner| !inner.is_null()) {
            return words_in(inner, user);
        }
        // The parts of a pipeline may all be asked the same. What is in lists is data.
        let asked = texts(&read, false);
        if user
            && let [first, ..] = asked.as_slice()
            && asked.iter().all(|text| text == first)
        {
            return Some((*first).to_owned());
        }
    }
    let words = if read.is_string() { plain(&read) } else { plain(value) };
    (!words.is_empty() && words != "null").then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_of_responses_are_calls_and_results_alone_and_within_a_request_or_an_answer() {
        let items = json!([
            {"role": "user", "content": "Why?"},
            {"type": "reasoning", "id": "rs1", "summary": []},
            {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "look", "arguments": "{\"q\":\"x\"}"},
            {"type": "shell_call", "call_id": "c2", "action": {"commands": ["ls"]}},
            {"type": "function_call_output", "call_id": "c1", "output": "so"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
        ]);
        for value in [items.clone(), json!({"input": items, "model": "m"}), json!({"id": "r", "output": items})] {
            let said = messages(&value.to_string().into());
            let calls: Vec<_> = said.iter().flat_map(|one| &one.calls).cloned().collect();
            let call = |id: &str, tool: &str, arguments: Value| Call { id: id.into(), tool: tool.into(), arguments };
            let made = [call("c1", "look", json!({"q": "x"})), call("c2", "shell", json!({"commands": ["ls"]}))];
            assert_eq!(calls, made, "{value}");
            let result = said.iter().find(|one| one.role == "tool").expect("a result");
            assert_eq!((result.answers.as_deref(), result.text.as_str()), (Some("c1"), "so"));
            assert_eq!(words_in(&value, true).as_deref(), Some("Why?"));
            assert_eq!(words_in(&value, false).as_deref(), Some("So."));
        }
    }

    #[test]
    fn json_with_a_call_id_is_no_message_unless_its_type_is_that_of_an_item_of_responses() {
        for value in
            [json!({"call_id": "7", "transcript": "Hello"}), json!({"call_id": "7", "type": "billing", "name": "Ada"})]
        {
            assert_eq!(messages(&value.to_string().into())[0].text, value.to_string());
            assert_eq!(words_in(&value, false), Some(value.to_string()));
        }
    }

    #[test]
    fn words_that_stand_twice_in_a_message_are_read_once() {
        let twice = json!({"role": "assistant", "content": "So.", "contents": [{"message_content": {"type": "text", "text": "So."}}]});
        assert_eq!(messages(&twice)[0].text, "So.");
        let twice = json!({"role": "tool", "content": "{\"a\": 1}", "tool_call_id": "c1",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": {"a": 1}}]});
        assert_eq!(messages(&twice).len(), 1);
        let parts = json!([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]);
        let twice = json!({"role": "assistant", "content": parts, "parts": [{"type": "tool_call", "id": "c1", "name": "look"}]});
        assert_eq!(messages(&twice)[0].calls.len(), 1);
    }

    #[test]
    fn a_text_beside_parts_that_hold_other_words_a_call_or_a_result_alone_is_read() {
        let part = |kind: &str| json!([{"type": kind, "id": "c1", "name": "look", "response": "found"}]);
        let asked = messages(&json!({"role": "user", "content": "Hi?", "parts": part("tool_call_response")}));
        assert!(asked.iter().any(|one| one.is_user() && one.text == "Hi?"), "{asked:?}");
        assert!(asked.iter().any(|one| one.answers.as_deref() == Some("c1") && one.text == "found"), "{asked:?}");
        let said = messages(&json!({"role": "assistant", "content": "I look.", "contents": part("tool_call")}));
        assert_eq!((said[0].text.as_str(), said[0].calls.len(), said.len()), ("I look.", 1, 1));
        let more =
            json!({"role": "assistant", "content": "So it is.", "parts": [{"type": "text", "content": "Here:"}]});
        assert_eq!(messages(&more)[0].text, "Here:\nSo it is.");
    }

    #[test]
    fn an_output_that_repeats_what_was_asked_does_not_answer_with_it() {
        for asked in ["input", "question", "query", "prompt", "inputs", "task"] {
            assert_eq!(words_in(&json!({asked: "Why?", "answer": "So."}), false).as_deref(), Some("So."), "{asked}");
            let unknown = json!({asked: "Why?", "final": "So."});
            assert_eq!(words_in(&unknown, false), Some(unknown.to_string()));
            assert_eq!(words_in(&unknown, true).as_deref(), Some("Why?"));
            assert_eq!(words_in(&json!({asked: "So."}), false).as_deref(), Some("So."));
        }
        let earlier = json!([{"role": "assistant", "content": "Earlier."}, {"role": "user", "content": "Why?"}]);
        assert_eq!(words_in(&json!({"input": earlier, "output": "So."}), false).as_deref(), Some("So."));
    }
}
