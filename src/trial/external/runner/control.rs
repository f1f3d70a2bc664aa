//! Where a test runner begins and ends its cases: a small server on loopback.
//!
//! | request | body | reply |
//! |---|---|---|
//! | `POST /cases` | `name`, and optional `take`, `side_by_side` and `question` or `questions` | 201: `id`, base URLs and the first turn |
//! | `POST /cases/ID/turn` | the same as for `end` | 200: the next turn; `question` is null if there is none |
//! | `POST /cases/ID/end` | `answer` and optional `sources`, or `error`, or `skipped` | 200: `error`, why the case cannot be judged, or null |
//!
//! What it refuses has a JSON body with `error`. A web page is refused as everywhere (`platform::loopback`).

use super::case::{self, Asked, Open, Said};
use super::{Cases, Key};
use crate::platform::lock::lock;
use crate::platform::loopback;
use crate::transport::HttpRequest;
use crate::trial::opened::Setup;
use crate::trial::proxy::base_path;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, btree_map::Entry};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Longest body, in bytes.
const LONGEST_BODY: usize = 16 << 20;
/// Characters of a case's name.
const LONGEST_NAME: usize = 100;

/// The server; it stops when it is dropped.
pub(super) struct Control {
    address: SocketAddr,
    desk: Arc<Desk>,
    task: tokio::task::JoinHandle<()>,
}

/// What its requests are about.
struct Desk {
    cases: Arc<Cases>,
    proxy: SocketAddr,
}

/// What ends the turn of an open case, and the case.
pub(super) struct Ending {
    reply: oneshot::Sender<Said>,
    asked: mpsc::UnboundedReceiver<Asked>,
    over: oneshot::Receiver<Option<String>>,
}

/// Body of a request that begins a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    name: String,
    take: Option<u32>,
    question: Option<String>,
    #[serde(default)]
    questions: Vec<String>,
    /// Whether other processes of the runner run tests at the same time.
    #[serde(default)]
    side_by_side: bool,
}

/// What skips a case, open or refused: why its test was skipped.
#[derive(Debug, Deserialize)]
struct Skip {
    skipped: String,
}

/// A trace id that is no trial's: requests to its base URLs belong to no case.
const NOBODY: &str = "00000000000000000000000000000000";

/// Receives the end of a trial: why it cannot be judged, if so.
type OverReceiver = oneshot::Receiver<Option<String>>;

/// A status with the reason.
type Refused = (StatusCode, String);

impl Control {
    /// Listens on a free port of loopback.
    #[expect(clippy::disallowed_methods, reason = "a server is a task of its own")]
    pub(super) async fn open(cases: &Arc<Cases>, proxy: SocketAddr) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (address, desk) = (listener.local_addr()?, Arc::new(Desk { cases: Arc::clone(cases), proxy }));
        let routes = axum::Router::new().fallback(answer).with_state(Arc::clone(&desk));
        let task = tokio::spawn(async move {
            // It ends with the listener, which fails only when the process is out of sockets; requests then say so.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, desk, task })
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn cases(&self) -> &Cases {
        &self.desk.cases
    }

    /// Base URLs by variable: of the case with that trace id, or of the only case that is open.
    pub(super) fn base_urls(&self, trace: Option<&str>) -> Vec<(String, String)> {
        self.desk.base_urls(trace)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let (status, body) = match desk.answer(request).await {
        Ok(answered) => answered,
        Err((status, why)) => (status, json!({"error": why})),
    };
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

impl Desk {
    async fn answer(&self, request: Request) -> Result<(StatusCode, Value), Refused> {
        let (head, body) = request.into_parts();
        let header = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        loopback::admit(header(HOST.as_str()), header(ORIGIN.as_str()), header(loopback::SITE))
            .map_err(|why| (StatusCode::FORBIDDEN, why.to_string()))?;
        let path: Vec<&str> = head.uri.path().trim_matches('/').split('/').collect();
        match (head.method.as_str(), path.as_slice()) {
            ("POST", ["cases"]) => self.begin(&read(body).await?).await,
            ("POST", ["cases", id, "turn"]) => self.turn(id, read(body).await?).await,
            ("POST", ["cases", id, "end"]) => self.end(id, read(body).await?).await,
            _ => {
                let why = "served: POST /cases, POST /cases/ID/turn, and POST /cases/ID/end; models are at the base URLs of the environment";
                Err((StatusCode::NOT_FOUND, why.to_owned()))
            }
        }
    }

    async fn begin(&self, body: &[u8]) -> Result<(StatusCode, Value), Refused> {
        let Begin { name, take, question, questions, side_by_side } = serde_json::from_slice(body)
            .map_err(|why| (StatusCode::BAD_REQUEST, format!("{why}: send {{\"name\": \"…\"}}")))?;
        let key = (named(&name)?, take.unwrap_or(1));
        if key.1 == 0 {
            return Err((StatusCode::BAD_REQUEST, "`take` is counted from 1".to_owned()));
        }
        let questions = question.into_iter().chain(questions).collect();
        let Open { served, mut asked, over } = self.open(&key, questions, side_by_side)?;
        let first = if let Ok(trace) = served.await { asked.recv().await.map(|first| (trace, first)) } else { None };
        let Some((trace, Asked { request, reply })) = first else {
            let why = over.await.ok().flatten();
            let why = why.unwrap_or_else(|| "the run ends".to_owned());
            let error = format!("the case `{}` cannot begin: {why}", key.0);
            let urls: BTreeMap<String, String> = self.base_urls(Some(NOBODY)).into_iter().collect();
            // Its test may still skip it.
            return Ok((StatusCode::CONFLICT, json!({"error": error, "id": id_of(&key), "base_urls": urls})));
        };
        let urls: BTreeMap<String, String> = self.base_urls(Some(&trace)).into_iter().collect();
        let id = id_of(&key);
        {
            let mut state = lock(&self.cases.state);
            if !state.runs {
                return Err(over_already());
            }
            if let Some(known) = state.known.get_mut(&key) {
                known.served = true;
            }
            state.open.insert(key, Ending { reply, asked, over });
        }
        let mut body = turn_of(&request);
        body.extend([("id".to_owned(), id.into()), ("base_urls".to_owned(), json!(urls))]);
        Ok((StatusCode::CREATED, body.into()))
    }

    /// Begins a case, or begins it again to verify its recording.
    fn open(&self, key: &Key, questions: Vec<String>, beside: bool) -> Result<Open, Refused> {
        let mut state = lock(&self.cases.state);
        if !state.runs {
            return Err(over_already());
        }
        let verifies = state.verifies;
        let known = match state.known.entry(key.clone()) {
            Entry::Occupied(known) if known.get().begun => {
                let why = format!(
                    "the case `{}` was begun twice in one run of the tests: give each test a name of other letters or digits, \
                     as all other characters count as `-` (`test[1]` and `test[-1]` are one case), or count the \
                     repetitions of one test with `take`",
                    key.0
                );
                state.problems.push(why.clone());
                return Err((StatusCode::CONFLICT, why));
            }
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if verifies => {
                let why = format!("the case `{}` was begun when the recordings were verified, and not before", key.0);
                state.problems.push(why.clone());
                return Err((StatusCode::CONFLICT, why));
            }
            Entry::Vacant(place) => place.insert(self.cases.start(self.cases.planned(key, questions))),
        };
        let (begun, open) = case::begin(beside);
        (known.begun, known.served) = (true, false);
        if let Some(begins) = &known.begins {
            // A trial that has ended drops it, and the runner is told.
            let _ = begins.send(begun);
        }
        Ok(open)
    }

    /// Ends the turn of an open case; returns what its next one and its end are awaited by.
    fn reply(&self, id: &str, body: Bytes) -> Result<(Key, mpsc::UnboundedReceiver<Asked>, OverReceiver), Refused> {
        if !serde_json::from_slice::<Value>(&body).is_ok_and(|body| body.is_object()) {
            let why = "send {\"answer\": \"…\"} with what the agent answered, or {\"error\": \"…\"}".to_owned();
            return Err((StatusCode::BAD_REQUEST, why));
        }
        let ending = key_of(id).and_then(|key| lock(&self.cases.state).open.remove_entry(&key));
        let (key, Ending { reply, asked, over }) = ending.ok_or_else(|| not_open(id))?;
        // A trial that has ended, by its time limit for example, says why.
        let _ = reply.send(Said::Reply(body));
        Ok((key, asked, over))
    }

    /// Ends a turn, and begins the next one.
    async fn turn(&self, id: &str, body: Bytes) -> Result<(StatusCode, Value), Refused> {
        let (key, mut asked, over) = self.reply(id, body)?;
        let Some(Asked { request, reply }) = asked.recv().await else {
            return Ok((StatusCode::OK, json!({"question": null, "error": why(over).await})));
        };
        let mut state = lock(&self.cases.state);
        if !state.runs {
            return Err(over_already());
        }
        state.open.insert(key, Ending { reply, asked, over });
        let mut body = turn_of(&request);
        body.insert("error".to_owned(), Value::Null);
        Ok((StatusCode::OK, body.into()))
    }

    /// Ends a case.
    async fn end(&self, id: &str, body: Bytes) -> Result<(StatusCode, Value), Refused> {
        if let Ok(Skip { skipped }) = serde_json::from_slice(&body) {
            return self.skip(id, skipped).await;
        }
        let (_, mut asked, over) = self.reply(id, body)?;
        if let Some(next) = asked.recv().await {
            // The trial that waits for it fails by that.
            let _ = next.reply.send(Said::Early);
        }
        Ok((StatusCode::OK, json!({"error": why(over).await})))
    }

    /// Leaves a case out whose test was skipped, also one that could not begin.
    async fn skip(&self, id: &str, why: String) -> Result<(StatusCode, Value), Refused> {
        let open = {
            let mut state = lock(&self.cases.state);
            let key = key_of(id).ok_or_else(|| not_open(id))?;
            let open = state.open.remove(&key);
            // What was ended before is judged.
            let known = state.known.get_mut(&key).filter(|known| open.is_some() || known.begun && !known.served);
            known.ok_or_else(|| not_open(id))?.skipped = Some(why);
            open
        };
        if let Some(Ending { reply, asked, over }) = open {
            // The trial ends as that of a case that is never ended, and is not recorded.
            drop((reply, asked));
            let _ = over.await;
        }
        Ok((StatusCode::OK, json!({"error": null})))
    }

    fn base_urls(&self, trace: Option<&str>) -> Vec<(String, String)> {
        let (opened, plan) = (&self.cases.opened, &self.cases.plan);
        let setup = opened.setups(plan).flat_map(|(_, setups)| setups.values()).next();
        let Some(Setup::Agent(setup)) = setup else { return Vec::new() };
        let (proxy, path) = (format!("http://{}", self.proxy), trace.map(base_path).unwrap_or_default());
        let urls = setup.services.base_urls(self.proxy).into_iter();
        urls.map(|(name, url)| (name, url.replacen(&proxy, &format!("{proxy}{path}"), 1))).collect()
    }
}

/// The id of a case in paths.
fn id_of((name, take): &Key) -> String {
    format!("{name}.{take}")
}

fn key_of(id: &str) -> Option<Key> {
    id.rsplit_once('.').and_then(|(name, take)| Some((name.to_owned(), take.parse().ok()?)))
}

fn not_open(id: &str) -> Refused {
    (StatusCode::CONFLICT, format!("no case `{id}` is open: it was ended, or was never begun"))
}

/// Why a trial cannot be judged, when it has ended.
async fn why(over: OverReceiver) -> Option<String> {
    over.await.unwrap_or_else(|_| Some("the run ends".to_owned()))
}

/// What a runner is told of a turn: the question and what belongs to it, and the headers.
fn turn_of(request: &HttpRequest) -> Map<String, Value> {
    let mut turn = request.body.as_object().cloned().unwrap_or_default();
    let headers: BTreeMap<&String, &String> = request.headers.iter().map(|(name, value)| (name, value)).collect();
    turn.insert("headers".to_owned(), json!(headers));
    turn
}

/// Refuses what a process sends that outlived the runner.
fn over_already() -> Refused {
    (StatusCode::CONFLICT, "the test runner has ended".to_owned())
}

async fn read(body: Body) -> Result<Bytes, Refused> {
    let too_long = |why: axum::Error| (StatusCode::PAYLOAD_TOO_LARGE, format!("the body cannot be read: {why}"));
    axum::body::to_bytes(body, LONGEST_BODY).await.map_err(too_long)
}

/// The name of a case, as a segment of paths and trial ids: `test_refund[eu]` is `test-refund-eu`. Names that differ only in
/// letters of other alphabets end with a digest.
fn named(written: &str) -> Result<String, Refused> {
    let lower = written.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut words: Vec<&str> = words.collect();
    let others = lower.chars().any(|letter| letter.is_alphanumeric() && !letter.is_ascii());
    let digest = others.then(|| hex::encode(&Sha256::digest(&lower)[..4]));
    words.extend(digest.as_deref());
    let name = words.join("-");
    if name.is_empty() || name.len() > LONGEST_NAME {
        let why =
            format!("`name` is to have 1 to {LONGEST_NAME} letters a to z and digits; other characters count as `-`");
        return Err((StatusCode::BAD_REQUEST, why));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_become_names_of_cases() {
        for (written, name) in [
            ("refund", "refund"),
            ("test_refund[eu-1]", "test-refund-eu-1"),
            ("tests/test_desk.py::TestDesk::test_refund", "tests-test-desk-py-testdesk-test-refund"),
            ("../etc/passwd", "etc-passwd"),
        ] {
            assert_eq!(named(written).as_deref(), Ok(name), "{written}");
        }
        for unnamed in ["", "…", &"a".repeat(101)] {
            assert!(named(unnamed).is_err(), "{unnamed}");
        }
    }

    #[test]
    fn names_that_differ_in_other_alphabets_alone_are_different_cases() {
        let name = |written: &str| named(written).expect("a name");
        assert_ne!(name("test[日本]"), name("test[中国]"));
        assert_ne!(name("日本"), name("中国"));
        assert_eq!(name("test[日本]"), name("TEST[日本]"));
        assert!(name("test[日本]").starts_with("test-") && name("test_größe") != name("test_grüße"));
    }
}
