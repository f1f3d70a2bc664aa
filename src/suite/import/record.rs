//! Splits a file's JSON into conversations; an invalid conversation keeps its position and its error.

use super::error::{ConversationError, Kind, TraceMistake, WrongMember};
use super::json::{Item, items};
use super::mapping::Mapping;
use super::published::PublishedTrace;
use super::{ImportError, shape};
use crate::scenario::Turn;
use crate::scenario::expect::Expectation;
use crate::trace::{Event, Member, NamedPassage, text};
use serde_json::{Map, Value};
use std::sync::Arc;

/// One conversation of a file, with the members beside it.
#[derive(Debug)]
pub(super) struct Record {
    /// Its messages, or why they cannot be read. For a published trace its turns, each in the shape of a user message.
    pub messages: Result<Vec<Value>, ConversationError>,
    pub published: Option<Box<PublishedTrace>>,
    pub task: Option<String>,
    /// Trial number in the file.
    pub trial: Option<u32>,
    /// Its reward, 0 to 1.
    pub reward: Option<f64>,
    pub model: Option<String>,
    /// How its messages are read.
    pub mapping: Mapping,
    /// Ignored members of its object.
    pub ignored: Vec<String>,
    /// Names of the tools offered to the agent, if given.
    pub offered: Option<Vec<String>>,
    /// Id in the log.
    pub id: Option<String>,
    /// The session that it is a part of, if its source says so.
    pub session: Option<String>,
    /// Times of the conversation and of its messages, as written.
    pub times: Vec<String>,
    /// Events that its source tells directly, instead of by its messages.
    pub told: Option<Told>,
    /// What its case asks, and expects of the last answer, if its source says so.
    pub case: Option<(Vec<Turn>, Option<Expectation>)>,
}

/// Events of one conversation that its source tells directly, and what it shows beside them.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub events: Vec<Event>,
    /// Remarks on the conversation.
    pub notes: Vec<String>,
    /// Members of a published trace that its source lacks; `None` if the mode decides.
    pub absent: Option<Vec<Member>>,
    /// Duration of all turns, in microseconds.
    pub took_us: u64,
    /// Messages of the user before its first turn.
    pub earlier: Vec<String>,
    /// Whole passages that its searches found.
    pub passages: Vec<Arc<NamedPassage>>,
}

/// Conversations of a file, in order.
///
/// # Errors
/// If none of its lines or items is JSON, or it is empty.
pub(super) fn records(text: &[u8]) -> Result<Vec<Record>, ImportError> {
    let items = items(text)?;
    let is_message = |item: &Item| item.as_ref().is_ok_and(shape::is_message);
    if items.iter().any(is_message) && items.iter().all(|item| item.is_err() || is_message(item)) {
        // A message that cannot be read may be a call of the one conversation.
        return Ok(vec![Record::of(items.into_iter().collect())]);
    }
    let mut mapping = Mapping::default();
    let mut records = Vec::with_capacity(items.len());
    for item in items {
        let is_alone = |item: &&Value| item.as_object().is_some_and(|object| object.len() == 1);
        match item.as_ref().ok().filter(is_alone).and_then(|item| item.get("mapping")) {
            Some(given) => mapping.read(given)?,
            None => records.push(item.map_or_else(|why| Record::of(Err(why)), |item| record(item, &mapping))),
        }
    }
    if records.is_empty() { Err(ImportError::Empty) } else { Ok(records) }
}

/// Published traces of a file, in order.
///
/// # Errors
/// If none of its lines is JSON, or it is empty.
pub(super) fn traces(text: &[u8]) -> Result<Vec<Record>, ImportError> {
    Ok(items(text)?.into_iter().map(|item| item.map_or_else(|why| Record::of(Err(why)), published)).collect())
}

/// The record of one published trace.
fn published(item: Value) -> Record {
    let turn = |turn: &Value| serde_json::json!({"role": "user", "content": turn["message"], "turn": turn});
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let conversations = listed(&item["conversations"]).into_iter();
    let turns = conversations.flat_map(|one| listed(&one["turns"])).map(|one| turn(&one)).collect();
    let trace: PublishedTrace = match serde_path_to_error::deserialize(item) {
        Ok(trace) => trace,
        Err(why) => {
            let path = why.path().to_string();
            let why = why.into_inner().to_string();
            // The names of Rust's types.
            let plain = [
                ("expected f64", "expected a number"),
                ("expected u64", "expected a whole number"),
                ("expected u32", "expected a whole number"),
            ];
            let why = plain.iter().fold(why, |why, (name, words)| why.replace(name, words));
            let why = text::quote(&why, 300);
            return Record::of(Err(TraceMistake { path, why }.into()));
        }
    };
    let mut record = Record::of(Ok(turns));
    if let Some(reward) = trace.reward.filter(|reward| !(0.0..=1.0).contains(reward)) {
        record.messages = Err(TraceMistake::new("reward", format!("is {reward:?}, not 0 to 1")).into());
    }
    if trace.recorded_at.as_ref().is_some_and(|at| at.parse::<jiff::Timestamp>().is_err()) {
        record.messages = Err(TraceMistake::new("recorded_at", "is not a time in RFC 3339").into());
    }
    record.id.clone_from(&trace.id);
    record.task.clone_from(&trace.case);
    record.trial = trace.repetition;
    record.reward = trace.reward;
    record.model.clone_from(&trace.model);
    record.offered.clone_from(&trace.tools);
    record.published = Some(Box::new(trace));
    record
}

/// Members in which logs keep the answer beside the messages.
const REPLIES: [&str; 4] = ["response", "output", "completion", "choices"];

/// The member with the answer, if the messages end with a query or a result.
fn reply_beside(messages: &[Value], record: &Record, object: &Map<String, Value>) -> Option<&'static str> {
    let mapping = &record.mapping;
    let named = |message: &Value, key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
    let asks = |message: &Value| {
        let role = named(message, "role").or_else(|| named(message, "type")).unwrap_or_default();
        let closes = named(message, "content").is_some_and(|words| mapping.closing.is_no_query(&words));
        ["user", "human", "tool", "function"].contains(&mapping.role(&role)) && !closes
    };
    messages.last().filter(|last| record.reward.is_none() && asks(last))?;
    REPLIES.into_iter().find(|name| object.get(*name).is_some_and(|value| !value.is_null()))
}

/// Members read beside the messages; others are ignored, and listed.
const BESIDE: &[&str] = &["task_id", "trial", "reward", "model", "tools", "mapping", "roles"];
/// Names of the conversation id in logs.
pub(super) const IDS: &[&str] = &["id", "conversation_id", "session_id", "thread_id"];
/// Those that several conversations of one user may share, the widest first.
const SESSIONS: [&str; 3] = ["session_id", "thread_id", "conversation_id"];
/// Names of times of conversations and messages in logs.
const TIMES: &[&str] = &["created_at", "created", "timestamp", "time", "started_at", "ended_at", "updated_at"];

/// Times in an object.
fn times(object: &Map<String, Value>) -> impl Iterator<Item = String> {
    TIMES.iter().filter_map(|name| object.get(*name)).filter(|value| !value.is_null()).map(Value::to_string)
}

impl Record {
    /// Whether it duplicates another conversation with the same messages: its id or times are equal, and so are its case,
    /// repetition, reward and model.
    pub(super) fn is_copy_of(&self, other: &Self) -> bool {
        let told = |record: &Self| -> Vec<String> {
            let messages = record.messages.iter().flatten().filter_map(Value::as_object);
            record.times.iter().cloned().chain(messages.flat_map(times)).collect()
        };
        let times = told(self);
        let is_same = self.has_id_of(other) || (!times.is_empty() && times == told(other));
        is_same && self.is_trial_of(other) && self.reward == other.reward && self.model == other.model
    }

    /// Whether it is another conversation with the same messages, graded differently.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        self.has_id_of(other) && self.is_trial_of(other) && self.reward != other.reward
    }

    fn has_id_of(&self, other: &Self) -> bool {
        self.id.is_some() && self.id == other.id
    }

    fn is_trial_of(&self, other: &Self) -> bool {
        (&self.task, self.trial) == (&other.task, other.trial)
    }

    pub(super) fn of(messages: Result<Vec<Value>, ConversationError>) -> Self {
        Self {
            messages,
            published: None,
            task: None,
            trial: None,
            reward: None,
            model: None,
            mapping: Mapping::default(),
            ignored: Vec::new(),
            offered: None,
            id: None,
            session: None,
            times: Vec::new(),
            told: None,
            case: None,
        }
    }
}

fn record(item: Value, mapping: &Mapping) -> Record {
    match item {
        Value::Array(messages) => Record { mapping: mapping.clone(), ..Record::of(Ok(messages)) },
        Value::Object(mut object) => {
            let mut record = Record { mapping: mapping.clone(), ..Record::of(Ok(Vec::new())) };
            let given =
                ["messages", "history", "traj", "contents", "items"].into_iter().find_map(|key| object.remove(key));
            let given = given.or_else(|| exchanged(&mut object));
            let read = |key: &&String| [BESIDE, IDS, TIMES].iter().any(|names| names.contains(&key.as_str()));
            record.ignored = object.keys().filter(|key| !read(key)).cloned().collect();
            let first = |names: &[&str]| {
                let ids = names.iter().filter_map(|name| object.get(*name));
                ids.filter(|id| !id.is_null()).find(|id| id.as_str() != Some("")).map(Value::to_string)
            };
            (record.id, record.session) = (first(IDS), first(&SESSIONS));
            record.times = times(&object).collect();
            record.messages = match (beside(&object, &mut record), given) {
                (Err(mistake), _) => Err(mistake),
                (Ok(()), Some(Value::Array(messages))) => match reply_beside(&messages, &record, &object) {
                    Some(name) => Err(ConversationError::ReplyBeside(name)),
                    None => Ok(messages),
                },
                (Ok(()), Some(other)) => Err(WrongMember::new("messages", &other, "a list").into()),
                (Ok(()), None) => Err(ConversationError::NoMessages),
            };
            record
        }
        other => Record::of(Err(ConversationError::NoConversation(Kind::of(&other)))),
    }
}

/// Items of a Responses request and its response, as logged; `input` may be a text.
fn exchanged(object: &mut Map<String, Value>) -> Option<Value> {
    let mut items = match object.remove("input")? {
        Value::Array(items) => items,
        Value::String(words) => vec![serde_json::json!({"role": "user", "content": words})],
        other => return Some(other),
    };
    match object.remove("output") {
        None | Some(Value::Null) => {}
        Some(Value::Array(mut output)) => {
            let details = object.remove("incomplete_details");
            if let Some(finish) = details.as_ref().and_then(|details| details["reason"].as_str())
                && let Some(last) = output.iter_mut().rfind(|item| item["type"] == "message")
            {
                last["finish_reason"] = finish.into();
            }
            items.extend(output);
        }
        Some(Value::String(words)) => items.push(serde_json::json!({"role": "assistant", "content": words})),
        Some(other) => return Some(other),
    }
    Some(Value::Array(items))
}

/// Reads the members beside the messages; `null` counts as missing.
fn beside(object: &Map<String, Value>, record: &mut Record) -> Result<(), ConversationError> {
    let given = |key: &str| object.get(key).filter(|value| !value.is_null());
    record.task = match given("task_id") {
        None => None,
        Some(Value::String(task)) => Some(task.clone()),
        Some(Value::Number(task)) => Some(format!("task-{task}")),
        Some(other) => return Err(WrongMember::new("task_id", other, "text or a number").into()),
    };
    if let Some(trial) = given("trial") {
        let number = trial.as_u64().and_then(|trial| u32::try_from(trial).ok()).filter(|trial| *trial < u32::MAX);
        record.trial = Some(number.ok_or_else(|| WrongMember::new("trial", trial, "a small whole number"))?);
    }
    if let Some(reward) = given("reward") {
        record.reward = Some(grade("reward", reward)?);
    }
    record.offered = given("tools").and_then(Value::as_array).and_then(|tools| tools.iter().map(tool_name).collect());
    record.model = given("model").and_then(Value::as_str).map(str::to_owned);
    match given("roles") {
        None => {}
        Some(Value::Object(roles)) => record.mapping.read_roles("roles", roles)?,
        Some(other) => return Err(WrongMember::new("roles", other, "a map of names to roles").into()),
    }
    Ok(given("mapping").map_or(Ok(()), |mapping| record.mapping.read(mapping))?)
}

/// A grade from 0 to 1, or whether it is the full one.
pub(super) fn grade(member: &str, value: &Value) -> Result<f64, WrongMember> {
    let number = match value {
        Value::Bool(full) => Some(f64::from(u8::from(*full))),
        other => other.as_f64().filter(|grade| (-1e-6..=1.0 + 1e-6).contains(grade)),
    };
    number.ok_or_else(|| WrongMember::new(member, value, "0 to 1"))
}

/// Name of an offered tool: a text, or the name in an OpenAI tool definition.
fn tool_name(tool: &Value) -> Option<String> {
    let named = tool.get("function").unwrap_or(tool).get("name");
    tool.as_str().or_else(|| named.and_then(Value::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<Result<usize, ConversationError>> {
        let records = records(text.as_bytes()).expect("a file");
        records.into_iter().map(|record| record.messages.map(|messages| messages.len())).collect()
    }

    #[test]
    fn lists_objects_and_lines_are_told_apart() {
        let message = r#"{"role": "user", "content": "hello"}"#;
        assert_eq!(lengths(&format!("[{message}, {message}]")), [Ok(2)]);
        assert_eq!(lengths(&format!("{message}\n{message}\n")), [Ok(2)]);
        assert_eq!(lengths(&format!("[[{message}], [{message}]]")), [Ok(1), Ok(1)]);
        assert_eq!(lengths(&format!("[{message}]\n\n[{message}, {message}]\n")), [Ok(1), Ok(2)]);
        assert_eq!(lengths(&format!(r#"{{"messages": [{message}]}}"#)), [Ok(1)]);
        assert_eq!(lengths(&format!("{{\"messages\": [{message}]}}\n{{\"traj\": []}}")), [Ok(1), Ok(0)]);
    }

    #[test]
    fn what_stands_beside_is_read_or_refused_with_the_reason() {
        let text = r#"[{"messages": [], "task_id": 7, "trial": 0, "reward": true, "roles": {"human": "user"}},
            {"messages": [], "reward": 5}, {"messages": [], "trial": -1}, {"messages": "x"}, {}, 3]"#;
        let records = records(text.as_bytes()).expect("a file");
        assert_eq!(
            (records[0].task.as_deref(), records[0].trial, records[0].reward),
            (Some("task-7"), Some(0), Some(1.0))
        );
        assert_eq!(records[0].mapping.role("human"), "user");
        let mistakes: Vec<_> =
            records[1..].iter().map(|record| record.messages.clone().expect_err("a mistake").to_string()).collect();
        for (mistake, part) in
            mistakes.iter().zip(["`reward` is 5", "`trial` is -1", "a text", "no `messages`", "it is 3"])
        {
            assert!(mistake.contains(part), "{mistake}");
        }
    }

    #[test]
    fn a_mapping_of_its_own_holds_for_what_follows_and_foreign_members_are_listed() {
        let text = r#"[{"messages": [], "score": 1, "task_id": "a"}, {"mapping": {"roles": {"human": "user"}}},
            {"history": [], "mapping": {"closing": "query"}}, []]"#;
        let records = records(text.as_bytes()).expect("a file");
        assert_eq!(records[0].ignored, ["score"]);
        let heard: Vec<&str> = records.iter().map(|record| record.mapping.role("human")).collect();
        assert_eq!(heard, ["human", "user", "user"]);
        let mistake = super::records(br#"[{"mapping": {"rolls": {}}}, []]"#).expect_err("unknown").to_string();
        assert!(mistake.contains("`mapping.rolls` is not known"), "{mistake}");
    }

    #[test]
    fn a_conversation_that_is_nested_too_deeply_is_an_error_and_the_others_are_read() {
        let deep = |levels: usize| {
            let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"messages": [], "note": "a \" ] }}", "more": {nested}}}"#)
        };
        let good = r#"{"messages": []}"#;
        for text in [
            format!("{good}\n{}\n{good}\n", deep(127)),
            format!("[{good}, {}, {good}]", deep(126)),
            format!("[\n{good},\n{},\n{good}]", deep(5000)),
            format!("[]\n[{}]\n[]", deep(200)),
        ] {
            let read: Vec<bool> =
                records(text.as_bytes()).expect("a file").iter().map(|one| one.messages.is_ok()).collect();
            assert_eq!(read, [true, false, true]);
            let records = records(text.as_bytes()).expect("a file");
            let told = records[1].messages.as_ref().expect_err("too deep").to_string();
            assert_eq!(told, "its JSON is nested deeper than 127 levels");
        }
        assert!(records(deep(126).as_bytes()).expect("a file")[0].messages.is_ok());
        let message = r#"{"role": "user", "content": "q"}"#;
        let one = records(format!("[{message}, {}]", deep(200)).as_bytes()).expect("a file");
        assert!(one.len() == 1 && one[0].messages.is_err(), "one conversation: {one:?}");
    }

    #[test]
    fn an_answer_beside_the_messages_is_an_error_unless_they_end_with_one() {
        let ends = |role: &str, beside: &str| {
            let text = format!(r#"[{{"messages": [{{"role": "{role}", "content": "x"}}], {beside}}}]"#);
            records(text.as_bytes()).expect("a file")[0].messages.as_ref().map(Vec::len).map_err(ToString::to_string)
        };
        let told = ends("user", r#""response": "So.""#).expect_err("an answer beside");
        assert!(told.contains("`response` beside them is not read"), "{told}");
        assert!(ends("tool", r#""choices": [{}]"#).is_err());
        assert_eq!(ends("assistant", r#""response": "So.""#), Ok(1));
        assert_eq!(ends("user", r#""response": null"#), Ok(1));
        assert_eq!(ends("user", r#""response": "So.", "reward": 1"#), Ok(1));
        assert_eq!(ends("bot", r#""mapping": {"roles": {"bot": "assistant"}}, "output": "So.""#), Ok(1));
    }

    #[test]
    fn numbers_that_json_lacks_are_unknown_and_texts_with_their_names_stay() {
        let log = br#"{"messages": [{"role": "user", "content": "NaN \" Infinity?"}, {"role": "assistant", "content": "x"}], "reward": NaN}
            {"messages": [{"role": "user", "content": "b"}, {"role": "assistant", "content": "y"}], "note": NaN}
            {"messages": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "z"}], "reward": Infinity}"#;
        let read = records(log).expect("a log");
        assert_eq!(read.len(), 3);
        assert_eq!((read[0].reward, read[2].messages.is_err()), (None, true), "what is infinite is no grade");
        let messages = read[0].messages.as_ref().expect("messages");
        assert_eq!(messages[0]["content"], "NaN \" Infinity?");
        assert!(records(b"{\"messages\": Nan}").is_err());
        assert_eq!(records(br#"[{"messages": [], "reward": NaN}, []]"#).expect("a log").len(), 2);
    }

    #[test]
    fn a_line_that_is_no_json_is_a_broken_conversation_and_a_part_of_one_breaks_it() {
        let message = r#"{"role": "user", "content": "hello"}"#;
        let read = lengths(&format!("{{\"messages\": [{message}]}}\n{{\"messages\": oops}}\n[{message}, {message}]"));
        assert!(matches!(&read[..], [Ok(1), Err(ConversationError::Line { line: 2, .. }), Ok(2)]), "{read:?}");
        let read = lengths(&format!("{message}\n{message}\n{{\"role\": \"tool"));
        assert!(matches!(&read[..], [Err(ConversationError::Line { line: 3, .. })]), "{read:?}");
    }

    #[test]
    fn a_file_that_is_no_json_is_refused_with_the_place() {
        let mistake = records(b"[1, 2\n{\"messages\": oops}").expect_err("not JSON").to_string();
        assert!(mistake.contains("line 2 column"), "{mistake}");
        assert!(matches!(records(b"[]"), Err(ImportError::Empty)));
        assert!(matches!(records(b" \n"), Err(ImportError::Empty)));
    }
}
