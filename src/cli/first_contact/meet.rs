//! Finds out how a turn is sent to an agent: the path and the names of its members, by trying the usual ones.

use super::Unmet;
use super::reply::{self, Shape};
use crate::flow::external::{AnswerAt, Endpoint, Fill, Target, Unread};
use crate::platform::distinct;
use crate::platform::secrets;
use crate::provider::EXACT;
use crate::scenario::external::OPENAI_SHAPE;
use crate::transport::{HttpRequest, HttpResponse, Passed, Service, TransportError};
use crate::trial::{Contact, unsent_key};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

/// Paths that are tried.
const PATHS: [&str; 6] = ["/chat", "/api/chat", "/query", "/ask", "/v1/chat/completions", "/"];
/// Names that a message has in a request, the most usual first.
const MESSAGES: [&str; 7] = ["message", "question", "query", "input", "prompt", "text", "q"];
/// Names of what identifies a conversation.
const CONVERSATIONS: [&str; 8] =
    ["conversation_id", "session_id", "thread_id", "chat_id", "conversation", "session", "thread", "user_id"];
/// Where a server may describe itself.
const DESCRIPTION: &str = "/openapi.json";
/// Characters of a reply in messages.
const SHOWN: usize = 300;

/// How an agent is reached, and the turn by which that was found out.
#[derive(Debug, Clone)]
pub(super) struct Met {
    /// Path of a turn; `None` for a program that reads lines.
    pub(super) path: Option<String>,
    /// Body of a turn.
    pub(super) send: Value,
    pub(super) shape: Shape,
    /// What the agent asked its services.
    pub(super) passed: Vec<Passed>,
}

/// A turn that ended the agent's process.
#[derive(Debug, Clone)]
pub(super) struct Fatal {
    path: String,
    send: Value,
    /// What the process printed last.
    lines: Vec<String>,
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.path.is_empty() { "a line".to_owned() } else { format!("POST {}", self.path) };
        write!(f, "the agent's process ended on {at} with {}", self.send)
    }
}

/// Sends the question until a reply can be read, by the given path or the usual ones; skips what is `fatal`.
///
/// # Errors
/// What the agent answers instead, and what to do.
pub(super) async fn meet(contact: &Contact, path: Option<&str>, question: &str, fatal: &[Fatal]) -> Result<Met, Unmet> {
    let declared = if contact.is_server() { openapi(contact).await } else { BTreeMap::new() };
    if !contact.is_running() {
        return Err(Unmet::Agent(format!(
            "the agent's process ended when it was asked GET {DESCRIPTION}, where ragcheck looks for its paths: let it \
             answer what it does not serve with 404"
        )));
    }
    let mut paths: Vec<String> = match path {
        Some(path) => vec![path.to_owned()],
        None if !contact.is_server() => vec![String::new()],
        None => PATHS.map(str::to_owned).to_vec(),
    };
    if path.is_none() {
        // What a server declares comes first; of several paths, those that are usual.
        let mut known: Vec<&String> = declared.keys().collect();
        known.sort_by_key(|known| PATHS.iter().position(|usual| usual == known).unwrap_or(PATHS.len()));
        paths = known.into_iter().cloned().chain(paths).collect();
    }
    let mut met: Option<Met> = None;
    let mut trouble: Option<Unmet> = fatal.first().map(|first| {
        let more = if fatal.len() == 1 { String::new() } else { format!(", and on {} other bodies", fatal.len() - 1) };
        let printed: String = first.lines.iter().map(|line| format!("\n  {line}")).collect();
        let printed = if printed.is_empty() { printed } else { format!("\nthe last lines of that process:{printed}") };
        Unmet::Agent(format!("{first}{more}: let it answer what it cannot read with an error{printed}"))
    });
    // Of an attempt whose question reached the model, which says more than any other.
    let mut unread: Option<String> = None;
    let (mut asked, mut broke) = (false, false);
    let paths = distinct(paths);
    let tried = paths.join(", ");
    let mut paths = VecDeque::from(paths);
    'paths: while let Some(path) = paths.pop_front() {
        let path = &path;
        let mut bodies: VecDeque<Value> = declared.get(path).cloned().into_iter().chain(bodies(path)).collect();
        let mut validated = false;
        while let Some(send) = bodies.pop_front() {
            if fatal.iter().any(|by| by.path == *path && by.send == send) {
                continue;
            }
            let (mut reply, mut passed) = contact.send(turn(path, &send, question, FIRST)).await;
            // Some servers close the connection of the request before without notice, and this body has not arrived.
            if is_cut(&reply) && passed.is_empty() && !contact.has_crashed().await {
                (reply, passed) = contact.send(turn(path, &send, question, FIRST)).await;
            }
            // One that has asked its model understood the body.
            if is_cut(&reply) && passed.is_empty() && contact.has_crashed().await {
                return Err(Unmet::Ended(Fatal { path: path.clone(), send, lines: contact.last_lines() }));
            }
            let reply = match reply {
                Ok(reply) => reply,
                // It may still read, so another line would be no clearer.
                Err(TransportError::Timeout { after }) if !contact.is_server() => {
                    return Err(Unmet::Agent(no_line(contact, after)));
                }
                Err(why) => {
                    trouble.get_or_insert(Unmet::Agent(format!("POST {path} got no reply: {why}")));
                    continue;
                }
            };
            asked |= !passed.is_empty();
            refused_key(&passed)?;
            match reply.status {
                404 | 405 | 501 if passed.is_empty() => continue 'paths,
                401 | 403 => return Err(Unmet::Agent(unauthorised(path, &reply))),
                300..=399 => {
                    let status = reply.status;
                    let why = format!("POST {path} redirects (HTTP {status}): name the path itself with --path");
                    trouble.get_or_insert(Unmet::Agent(why));
                    // Often to the same path with a slash.
                    if !path.ends_with('/') {
                        paths.push_front(format!("{path}/"));
                    }
                    continue 'paths;
                }
                200..=299 => match reply::shape(&reply, question, &passed) {
                    Ok(shape) => {
                        let asks = passed.iter().any(|one| holds(one, question));
                        let one = Met { path: contact.is_server().then(|| path.clone()), send, shape, passed };
                        if asks {
                            return Ok(one);
                        }
                        // Perhaps it reads the message by another name.
                        if met.as_ref().is_none_or(|known| known.passed.is_empty() && !one.passed.is_empty()) {
                            met = Some(one);
                        }
                    }
                    Err(why) if passed.iter().any(|one| holds(one, question)) => {
                        unread.get_or_insert_with(|| no_answer(path, &send, &why, &failures(&passed)));
                        continue 'paths;
                    }
                    Err(why) => {
                        trouble.get_or_insert(why.into());
                    }
                },
                status => {
                    broke |= status >= 500;
                    if !validated && let Some(send) = required(&reply) {
                        validated = true;
                        bodies.push_front(send);
                    }
                    let why = format!("POST {path} is answered with HTTP {status}. {}", said(&reply));
                    // It understood the question, and failed.
                    if passed.iter().any(|one| holds(one, question)) {
                        return Err(Unmet::Agent(format!("{why}\n{}", failures(&passed)).trim_end().to_owned()));
                    }
                    trouble.get_or_insert(Unmet::Agent(why));
                }
            }
        }
    }
    match (met, trouble) {
        (Some(met), _) if !met.passed.is_empty() => Ok(met),
        _ if let Some(why) = unread => Err(Unmet::Agent(why)),
        (Some(_), _) => Err(Unmet::Agent(format!("the agent answered, and {}", nothing_asked(contact)))),
        (None, Some(Unmet::Agent(why))) if let Some(remedy) = unsent_key(&why) => {
            Err(Unmet::Agent(format!("{why}\n{remedy}")))
        }
        (None, Some(Unmet::Agent(why))) if broke && !asked => {
            let bodies = tried_bodies();
            Err(Unmet::Agent(format!(
                "{why}\nIf it takes another body than {bodies}, write that as `target.send` in a scenario \
                 (docs/how-to/external-agents.md). Otherwise {}",
                nothing_asked(contact)
            )))
        }
        (None, Some(why)) => Err(Unmet::Agent(format!(
            "{why}\n`--path` names the path of a turn; the message was sent as one of {}, in a JSON body. If the agent reads \
             a form, write `target.headers: {{content-type: application/x-www-form-urlencoded}}` in a scenario \
             (docs/how-to/external-agents.md)",
            tried_bodies()
        ))),
        (None, None) => Err(Unmet::Agent(format!(
            "no path of the agent takes a question: POST to {tried} is answered with 404 or 405; name its path with --path"
        ))),
    }
}

/// Whether the connection ended before a reply.
fn is_cut(reply: &Result<HttpResponse, TransportError>) -> bool {
    matches!(reply, Err(TransportError::Connection { .. }))
}

/// The bodies that are tried, in words.
fn tried_bodies() -> String {
    MESSAGES.map(|name| format!("`{name}`")).join(", ") + " and in `messages`, also as the AI SDK's `useChat` sends it"
}

/// Id of the conversation in which an agent is met; a second one has [`SECOND`] in its place.
pub(super) const FIRST: &str = "init-1f0c7a52";
/// Id of a second conversation.
pub(super) const SECOND: &str = "init-2e9b4d83";

pub(super) fn turn(path: &str, send: &Value, question: &str, conversation: &str) -> HttpRequest {
    let target = Target {
        endpoint: Endpoint { origin: String::new(), path: path.to_owned() },
        headers: Vec::new(),
        send: send.clone(),
        answer: AnswerAt::OpenAi,
        sources: None,
    };
    target.request(&Fill {
        message: question,
        conversation,
        history: &[],
        tenant: None,
        variant: "base",
        trial: "init",
        turn: 0,
        prompts: &BTreeMap::new(),
    })
}

/// A request without a turn.
pub(super) fn plain(method: &'static str, path: &str) -> HttpRequest {
    let body = if method == "GET" { Value::Null } else { json!({}) };
    HttpRequest::new(Service::Agent, &EXACT, method, path, body)
}

/// The usual body of a turn, which a scenario need not declare.
pub(super) fn usual(answer: &str) -> Value {
    let at = if answer == OPENAI_SHAPE { AnswerAt::OpenAi } else { AnswerAt::Pointer(String::new()) };
    Target::usual_body(&at)
}

fn bodies(path: &str) -> Vec<Value> {
    let openai = usual(OPENAI_SHAPE);
    if path.ends_with("/chat/completions") {
        return vec![openai];
    }
    let named = MESSAGES.iter().map(|name| json!({*name: "{{message}}"}));
    let lists = ["{{messages}}", "{{ui_messages}}"].map(|list| json!({"messages": list}));
    std::iter::once(usual("")).chain(named).chain(lists).collect()
}

/// A body with these members; `None` if none of them can be the message.
fn body_of(names: &[&str]) -> Option<Value> {
    let name = MESSAGES.iter().find(|name| names.contains(name));
    let message = name.copied().or_else(|| names.iter().find(|name| !is_known(name)).copied());
    let mut body = Map::new();
    for name in names {
        let text = match *name {
            name if Some(name) == message => "{{message}}",
            "history" => "{{history}}",
            "messages" => "{{messages}}",
            name if CONVERSATIONS.contains(&name) => "{{conversation_id}}",
            _ => continue,
        };
        body.insert((*name).to_owned(), text.into());
    }
    (message.is_some() || body.contains_key("messages")).then(|| body.into())
}

fn is_known(name: &str) -> bool {
    CONVERSATIONS.contains(&name) || matches!(name, "history" | "messages" | "tenant" | "model" | "stream")
}

/// The members that a validation error misses: FastAPI's `detail`.
fn required(reply: &HttpResponse) -> Option<Value> {
    let body: Value = serde_json::from_slice(&reply.body).ok()?;
    let missing = body
        .get("detail")?
        .as_array()?
        .iter()
        .filter(|one| one.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains("missing")));
    let names: Vec<&str> = missing.filter_map(|one| one.get("loc")?.as_array()?.last()?.as_str()).collect();
    body_of(&names)
}

/// Bodies by path, where the server describes itself at [`DESCRIPTION`], as FastAPI does.
async fn openapi(contact: &Contact) -> BTreeMap<String, Value> {
    let (reply, _) = contact.send(plain("GET", DESCRIPTION)).await;
    let document = reply.ok().filter(|reply| reply.status == 200);
    let document = document.and_then(|reply| serde_json::from_slice::<Value>(&reply.body).ok()).unwrap_or_default();
    let resolved = |schema: &Value| {
        let of = schema.get("$ref").and_then(Value::as_str).and_then(|at| document.pointer(at.strip_prefix('#')?));
        of.unwrap_or(schema).clone()
    };
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let found = paths.filter(|(path, _)| !path.contains('{')).filter_map(|(path, methods)| {
        let schema = resolved(methods.pointer("/post/requestBody/content/application~1json/schema")?);
        let properties: Vec<&str> = schema.get("properties")?.as_object()?.keys().map(String::as_str).collect();
        // Only the usual names: a path that takes a document is no chat.
        let usual = properties.iter().any(|name| MESSAGES.contains(name) || *name == "messages");
        Some((path.clone(), body_of(&properties).filter(|_| usual)?))
    });
    found.collect()
}

fn holds(passed: &Passed, question: &str) -> bool {
    let quoted = Value::from(question).to_string();
    passed.request.body.to_string().contains(quoted.trim_matches('"'))
}

fn said(reply: &HttpResponse) -> String {
    let kind = reply.header("content-type").unwrap_or("no content type").to_owned();
    let body = String::from_utf8_lossy(&reply.body);
    format!("The reply ({kind}) begins with: {}", secrets::beginning(body.trim(), SHOWN))
}

/// Message for a turn that reached the model, and whose reply shows no answer; `failed` is what went wrong with requests.
fn no_answer(path: &str, send: &Value, why: &Unread, failed: &str) -> String {
    if !failed.is_empty() {
        return format!("the agent asked its model, and got no answer:\n{failed}\n{why}");
    }
    let (sent, logs) = match path {
        "" => ("The line".to_owned(), ". What is a log line or an event belongs on standard error"),
        path => (format!("POST {path} with"), ""),
    };
    format!(
        "{sent} {send} reaches the model, but no answer is found in what comes back. {why}\n\
         The answer is a text of the reply that the model said, or one that is named as usual ({}): name it so, or write the \
         scenario yourself with `target.answer` (docs/how-to/external-agents.md){logs}",
        reply::ANSWERS[..3].join(", ")
    )
}

fn unauthorised(path: &str, reply: &HttpResponse) -> String {
    format!(
        "POST {path} asks for authentication (HTTP {}): start the agent without it for tests, or write the scenario yourself with \
         `target.headers` (docs/how-to/external-agents.md). {}",
        reply.status,
        said(reply)
    )
}

/// Fails if a provider refused a key.
fn refused_key(passed: &[Passed]) -> Result<(), Unmet> {
    let refused = passed.iter().find_map(|one| {
        let reply = one.result.as_ref().ok().filter(|reply| matches!(reply.status, 401 | 403))?;
        Some(format!(
            "the provider refused {} {} (HTTP {}): is the key right? {}",
            one.request.method,
            one.request.path,
            reply.status,
            said(reply)
        ))
    });
    refused.map_or(Ok(()), |why| Err(Unmet::Agent(why)))
}

/// What went wrong with the requests of the agent.
fn failures(passed: &[Passed]) -> String {
    let lines = passed.iter().filter_map(|one| match &one.result {
        Ok(reply) if reply.status < 400 => None,
        Ok(reply) => {
            Some(format!("{} {} got HTTP {}. {}", one.request.method, one.request.path, reply.status, said(reply)))
        }
        Err(why) => Some(format!("{} {}: {why}", one.request.method, one.request.path)),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Message for an agent that printed no reply to its first line.
fn no_line(contact: &Contact, waited: Duration) -> String {
    let printed = contact.last_lines();
    let printed = if printed.is_empty() {
        "It printed nothing.".to_owned()
    } else {
        format!("The last lines that it printed:\n  {}", printed.join("\n  "))
    };
    format!(
        "the agent printed no reply within {} s.\n\
         A program without a server gets each message as one line of JSON on its standard input, such as \
         {{\"message\": \"…\"}},\n\
         and prints its reply as one line, such as {{\"answer\": \"…\"}}, at once (flushed); logs belong on standard error.\n\
         {printed}",
        waited.as_secs()
    )
}

/// Message for an agent that sent no request to the proxy, or none that was served.
fn nothing_asked(contact: &Contact) -> String {
    let refused = contact.refused();
    if !refused.is_empty() {
        return format!("the proxy refused what the agent asked:\n{}", refused.join("\n"));
    }
    let proxy = contact.proxy();
    format!(
        "no request came to the proxy at http://{proxy}: the agent goes to its provider itself, or asks no model.\n\
         Its environment has the proxy's address in {}.\n\
         If its client reads another variable or a setting, give that the value of RAGCHECK_MODEL_URL \
         (`base_url=os.environ.get(\"RAGCHECK_MODEL_URL\")` in Python; in any language, \
         `--agent 'sh -c \"NAME=$RAGCHECK_MODEL_URL exec COMMAND\"'`).",
        contact.variables().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn members_are_filled_by_their_names() {
        for (names, expected) in [
            (
                &["question", "session_id", "top_k"][..],
                Some(json!({"question": "{{message}}", "session_id": "{{conversation_id}}"})),
            ),
            (&["utterance"], Some(json!({"utterance": "{{message}}"}))),
            (&["messages", "stream"], Some(json!({"messages": "{{messages}}"}))),
            (&["thread"], None),
        ] {
            assert_eq!(body_of(names), expected, "{names:?}");
        }
    }

    #[test]
    fn a_validation_error_names_the_missing_members() {
        let body =
            json!({"detail": [{"type": "missing", "loc": ["body", "question"], "msg": "Field required"}]}).to_string();
        let reply = HttpResponse {
            status: 422,
            headers: Vec::new(),
            body: Bytes::from(body),
            took: Duration::ZERO,
            chunks: Vec::new(),
        };
        assert_eq!(required(&reply), Some(json!({"question": "{{message}}"})));
    }
}
