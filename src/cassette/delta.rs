//! Stores each request as its additions to an earlier one, and long prompts and tool lists as shared blobs.
//!
//! A conversation sends all its messages again with every call. Stored in full, four calls of a lane would hold the
//! same text four times; stored as `after: <ordinal>, keep: <messages>` plus new messages, the file shows reviewers
//! only what is new.

use super::digest::digest;
use super::exchange::{Exchange, StoredRequest};
use super::layout::Layout;
use crate::platform::bounds::Bound;
use crate::platform::yaml::Node;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum bytes of a blob; shorter prompts and tool lists are stored inline.
const BLOB_FROM: usize = 400;
/// The conversation of a request that has no `conversation` member of its own in the file.
const CONVERSATION: &str = "messages";
/// Member that refers to a blob.
const BLOB: &str = "$blob";

/// Blobs by file name.
pub(super) type Blobs = BTreeMap<String, String>;

/// One request, split into the parts that the file stores.
struct Split {
    ordinal: u32,
    service: String,
    parameters: Value,
    /// Pointer to the messages, if they are a list.
    conversation: Option<&'static str>,
    messages: Vec<Value>,
}

/// The `request` mapping of each exchange, in order, and the blobs that they refer to.
pub(super) fn encode(exchanges: &[Exchange]) -> (Vec<Value>, Blobs) {
    let mut blobs = Blobs::new();
    let mut earlier: Vec<Split> = Vec::new();
    let mut requests = Vec::new();
    for exchange in exchanges {
        let Some(request) = &exchange.request else {
            requests.push(Value::Null);
            continue;
        };
        let split = split(exchange, request, &mut blobs);
        let base = earlier
            .iter()
            .filter(|base| base.service == split.service)
            .map(|base| (shared(&base.messages, &split.messages), base))
            .filter(|(keep, _)| *keep > 0)
            .max_by_key(|(keep, base)| (*keep, base.parameters == split.parameters, std::cmp::Reverse(base.ordinal)));
        let mut entry = Map::new();
        entry.insert("method".to_owned(), json!(request.method));
        entry.insert("path".to_owned(), json!(request.path));
        let keep = base.map_or(0, |(keep, _)| keep);
        if let Some((keep, base)) = base {
            entry.insert("after".to_owned(), json!(base.ordinal));
            entry.insert("keep".to_owned(), json!(keep));
        }
        if base.is_none_or(|(_, base)| base.parameters != split.parameters) {
            entry.insert("parameters".to_owned(), split.parameters.clone());
        }
        if let Some(at) = split.conversation {
            let path = &at[1..];
            if path != CONVERSATION {
                entry.insert("conversation".to_owned(), json!(path));
            }
            entry.insert("messages".to_owned(), Value::Array(split.messages[keep..].to_vec()));
        }
        requests.push(Value::Object(entry));
        earlier.push(split);
    }
    (requests, blobs)
}

fn shared(a: &[Value], b: &[Value]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn split(exchange: &Exchange, request: &StoredRequest, blobs: &mut Blobs) -> Split {
    let layout = request.layout;
    let mut parameters = request.body.clone();
    let conversation = layout.conversation(&request.body).filter(|(_, list)| list.is_array()).map(|(at, _)| at);
    let list =
        conversation.and_then(|at| holder(&mut parameters, at)).and_then(|(holder, name)| holder.shift_remove(name));
    let mut messages = if let Some(Value::Array(list)) = list { list } else { Vec::new() };
    if let Some(tools) = layout.tools.and_then(|at| parameters.pointer_mut(at))
        && let Ok(text) = serde_json::to_string_pretty(tools)
        && text.len() >= BLOB_FROM
    {
        *tools = blob(text, "json", blobs);
    }
    for prompt in layout.prompt_members {
        parameters.pointer_mut(prompt).into_iter().for_each(|prompt| outsource(prompt, blobs));
    }
    for message in &mut messages {
        // A reader looks for blobs in the members of a message, and no deeper: texts of models are below.
        if layout.is_system(message)
            && let Some(prompt) = layout.text.strip_prefix('/').and_then(|name| message.get_mut(name))
        {
            outsource(prompt, blobs);
        }
    }
    Split { ordinal: exchange.ordinal, service: exchange.service.clone(), parameters, conversation, messages }
}

/// The object that holds the member at a pointer, and the member's name.
fn holder<'v, 'p>(body: &'v mut Value, pointer: &'p str) -> Option<(&'v mut Map<String, Value>, &'p str)> {
    let (parent, name) = pointer.rsplit_once('/')?;
    Some((body.pointer_mut(parent)?.as_object_mut()?, name))
}

fn outsource(prompt: &mut Value, blobs: &mut Blobs) {
    if let Value::String(text) = prompt
        && text.len() >= BLOB_FROM
    {
        *prompt = blob(std::mem::take(text), "txt", blobs);
    }
}

fn blob(text: String, extension: &str, blobs: &mut Blobs) -> Value {
    let name = format!("{}.{extension}", digest(&text, 16));
    let reference = json!({ BLOB: name });
    blobs.insert(name, text);
    reference
}

/// Approximate memory of a value without its texts, in bytes.
const NODE: u64 = 64;

/// Message for a request that exceeds the memory limit: a small file can refer to a large blob many times.
pub(super) fn no_room() -> String {
    let bound = Bound::RecordingSize;
    format!("the requests of the recording are larger than {} together; {}", bound.shown(), bound.advice())
}

/// Memory budget shared by all requests of a file, in bytes; reserved before a request is assembled.
struct Room(u64);

impl Room {
    /// Reserves `size` bytes; `None` if they exceed the budget, which is then used up.
    fn take(&mut self, size: u64) -> Option<()> {
        let left = self.0.checked_sub(size);
        self.0 = left.unwrap_or(0);
        left.map(|_| ())
    }

    /// Reserves a copy of `value`, which is measured no further than the budget allows.
    fn take_copy(&mut self, value: &Value) -> Option<()> {
        self.take(NODE)?;
        match value {
            Value::String(text) => self.take(text.len() as u64),
            Value::Array(items) => items.iter().try_for_each(|item| self.take_copy(item)),
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                self.take(NODE + name.len() as u64)?;
                self.take_copy(value)
            }),
            _ => Some(()),
        }
    }

    /// Reserves a blob, whose JSON text may become many values.
    fn take_blob(&mut self, name: &str, text: &str) -> Option<()> {
        let marks = if is_json(name) { text.bytes().filter(|byte| b",:[{".contains(byte)).count() } else { 0 };
        self.take(NODE * (marks as u64 + 1) + text.len() as u64)
    }
}

/// The blob that a value refers to, if it is a reference.
fn blob_name(value: &Value) -> Option<&str> {
    value.as_object().filter(|reference| reference.len() == 1)?.get(BLOB)?.as_str()
}

/// The blobs that the stored form of a request refers to.
pub(super) fn blob_names(request: &mut Value, names: &mut BTreeSet<String>) {
    everywhere(request, &mut |value| names.extend(blob_name(value).map(str::to_owned)));
}

/// Calls `act` with a value and all values in it, the outer ones first.
fn everywhere(value: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    act(value);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| everywhere(item, act)),
        Value::Object(entries) => entries.values_mut().for_each(|inner| everywhere(inner, act)),
        _ => {}
    }
}

fn is_json(name: &str) -> bool {
    matches!(name.rsplit_once('.'), Some((_, "json")))
}

/// Why a blob cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BlobProblem {
    /// The file is missing or unreadable.
    #[error("the blob {0} is missing")]
    Missing(String),
    /// Its text has been edited.
    #[error("the blob {0} was edited: its text is not the one that it is named by")]
    Edited(String),
}

/// The text of the blob with that name, if it is the recorded one; line ends may differ.
pub(super) fn as_recorded(name: &str, text: String) -> Result<String, BlobProblem> {
    let named = name.split('.').next().unwrap_or_default();
    let gives = |text: &str| digest(text, 16) == named;
    if gives(&text) {
        return Ok(text);
    }
    let plain = text.replace("\r\n", "\n");
    if gives(&plain) {
        return Ok(plain);
    }
    Err(BlobProblem::Edited(name.to_owned()))
}

/// Assembles requests, within [`Bound::RecordingSize`]; `read` returns a blob's text by name, or why it cannot be used.
///
/// Takes `(ordinal, service, request mapping)`; missing parts are named in [`StoredRequest::problem`].
pub(super) fn decode(
    entries: &[(u32, String, Option<&Node<'_>>)],
    read: &dyn Fn(&str) -> Result<String, BlobProblem>,
) -> Vec<StoredRequest> {
    let mut earlier: Vec<(u32, StoredRequest)> = Vec::new();
    let mut room = Room(Bound::RecordingSize.most());
    // Each blob is read once, however often it is used.
    let mut blobs: BTreeMap<String, Result<String, BlobProblem>> = BTreeMap::new();
    for (ordinal, _, node) in entries {
        let mut problem = None;
        let text = |name: &str| node.and_then(|node| node.get(name)?.text().map(str::to_owned)).unwrap_or_default();
        let number = |name: &str| node.and_then(|node| node.get(name)?.to_value().as_u64());
        let base = number("after").map(|after| {
            let found = earlier.iter().find(|(ordinal, _)| u64::from(*ordinal) == after);
            if found.is_none() {
                problem = Some(format!("exchange {after}, which it continues, is not in the file"));
            }
            found
        });
        let base = base.flatten().map(|(_, request)| request);
        if problem.is_none() {
            problem = base.and_then(|base| base.problem.clone());
        }
        let named = node.and_then(|node| node.get("conversation")?.text().map(str::to_owned));
        let conversation = format!("/{}", named.as_deref().unwrap_or(CONVERSATION));
        let base_messages = base.and_then(|base| base.body.pointer(&conversation)?.as_array());
        let kept = base_messages.map(|all| &all[..all.len().min(number("keep").unwrap_or(0) as usize)]);
        let kept = kept.unwrap_or_default();
        let parameters = node.and_then(|node| node.get("parameters"));
        let own = node.and_then(|node| node.get("messages"));
        let has_room = kept.iter().try_for_each(|message| room.take_copy(message)).and_then(|()| match parameters {
            Some(_) => Some(()),
            None => base.map_or(Some(()), |base| room.take_copy(&base.body)),
        });
        let (mut messages, mut body, own) = if has_room.is_some() {
            let inherited = || base.map_or_else(|| json!({}), |base| base.body.clone());
            (kept.to_vec(), parameters.map_or_else(inherited, Node::to_value), own.map(Node::to_value))
        } else {
            problem = Some(no_room());
            (Vec::new(), json!({}), None)
        };
        let mut restore = |value: &mut Value| {
            let Some(name) = blob_name(value) else { return };
            *value = match blobs.entry(name.to_owned()).or_insert_with(|| read(name)) {
                Err(why) => {
                    problem = Some(why.to_string());
                    json!(format!("[{name} is not there]"))
                }
                Ok(text) if room.take_blob(name, text).is_none() => {
                    problem = Some(no_room());
                    json!(format!("[{name} is left out]"))
                }
                Ok(text) if is_json(name) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
                Ok(text) => Value::String(text.clone()),
            };
        };
        if let Some(Value::Array(own)) = own {
            messages.extend(own.into_iter().map(|mut message| {
                message.as_object_mut().into_iter().flatten().for_each(|(_, member)| restore(member));
                message
            }));
        }
        if parameters.is_some() {
            everywhere(&mut body, &mut restore);
        }
        if (base_messages.is_some() || !messages.is_empty() || node.is_some_and(|node| node.get("messages").is_some()))
            && let Some((holder, name)) = holder(&mut body, &conversation)
        {
            holder.insert(name.to_owned(), Value::Array(messages));
        }
        let (method, path, layout) = (text("method"), text("path"), &Layout::NONE);
        if method.is_empty() {
            problem.get_or_insert_with(|| "it is not in the file".to_owned());
        }
        earlier.push((*ordinal, StoredRequest { method, path, body, layout, problem }));
    }
    earlier.into_iter().map(|(_, request)| request).collect()
}
