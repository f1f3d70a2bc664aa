//! A server with declared faults, one connection per fault: the retry account of each fault, live and replayed from its
//! recording.

use super::wire::openai_chat;
use super::*;
use crate::cassette::{Cassette, Header, Redactor};
use crate::platform::clock::{Clock, RealClock, VirtualClock, block_on};
use crate::provider::chat::{Message, Role};
use crate::settings::Auth;
use crate::transport::{LiveTransport, RecordTransport, ReplayTransport, Service, Target, Transport};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIMIT: Duration = Duration::from_millis(400);

/// Fault of one connection.
#[derive(Clone)]
enum Fault {
    /// An answer with status, headers and body.
    Answer(u16, Vec<(&'static str, &'static str)>, String),
    /// A stream of these events that ends properly at the HTTP level.
    Stream(Vec<String>),
    /// Fewer bytes than announced.
    CutBody,
    /// The connection is reset while the request is read.
    Reset,
    /// No response within any time limit.
    Stall,
    /// The beginning of a stream, then no more.
    StalledStream,
    /// Bytes that are not HTTP.
    Noise,
}

use Fault::{Answer, CutBody, Noise, Reset, Stall, StalledStream, Stream};

fn event(delta: &serde_json::Value, finish: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

fn words() -> Vec<String> {
    let (first, second) = (event(&json!({"content": "Hello"}), None), event(&json!({}), Some("stop")));
    vec![first, second, "data: [DONE]\n\n".to_owned()]
}

fn good() -> Fault {
    let body = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]});
    Answer(200, vec![("content-type", "application/json")], body.to_string())
}

fn busy(status: u16, header: &[(&'static str, &'static str)]) -> Fault {
    Answer(status, header.to_vec(), json!({"error": {"message": "later"}}).to_string())
}

/// Serves each connection with the next fault.
async fn misbehave(listener: TcpListener, faults: Vec<Fault>) {
    let mut open = Vec::new();
    for fault in faults {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        if matches!(fault, Reset) {
            // Closing a socket with unread data sends a reset.
            let mut byte = [0];
            socket.read_exact(&mut byte).await.expect("a byte");
            continue;
        }
        read_request(&mut socket).await;
        let answer = match fault {
            Answer(status, headers, body) => {
                let headers =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<Vec<_>>().concat();
                let length = body.len();
                format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
            }
            Stream(events) => {
                let body = events.concat();
                format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
            }
            CutBody => {
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"cho".to_owned()
            }
            StalledStream => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 999\r\n\r\n{}",
                words()[0]
            ),
            Noise => "\u{1}\u{2}\u{3} no protocol at all\r\n\r\n".to_owned(),
            Stall | Reset => String::new(),
        };
        let stalls = answer.is_empty() || answer.contains("event-stream\r\ncontent-length: 999");
        socket.write_all(answer.as_bytes()).await.expect("written");
        if stalls {
            open.push(socket);
        } else {
            socket.shutdown().await.expect("closed");
        }
    }
    std::future::pending::<()>().await;
}

async fn read_request(socket: &mut TcpStream) {
    let mut request = Vec::new();
    let whole = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).to_ascii_lowercase();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length: usize = head.split("content-length: ").nth(1)?.lines().next()?.trim().parse().ok()?;
        (body.len() >= length).then_some(())
    };
    while whole(&request).is_none() {
        let mut part = [0; 4096];
        let read = socket.read(&mut part).await.expect("a request");
        assert!(read > 0, "the client went away");
        request.extend_from_slice(&part[..read]);
    }
}

fn request() -> ChatRequest {
    ChatRequest::new("m", vec![Message::text(Role::User, "Hello")])
}

fn client(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>, streaming: bool) -> ChatClient {
    let policy = RetryPolicy {
        attempts: 5,
        base: Duration::from_millis(4),
        cap: Duration::from_millis(4),
        retry_after_cap: Duration::from_millis(30),
        seed: 3,
    };
    ChatClient::new(openai_chat::DIALECT, Access { transport, clock, policy }).streaming(streaming)
}

/// Result of one request to a server with these faults: live, and replayed from the recording.
async fn ask(faults: Vec<Fault>, streaming: bool) -> Attempted<ChatResponse> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}", listener.local_addr().expect("bound"));
    let target = Target { base_url, key: None, auth: Auth::Bearer, headers: &[], timeout: LIMIT, trial_header: false };
    let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
    let recorded_at = clock.wall();
    let live = LiveTransport::new(BTreeMap::from([(Service::Model, target)]), Arc::clone(&clock)).expect("a transport");
    let recorder = Arc::new(RecordTransport::new(Arc::new(live), Arc::clone(&clock), Arc::new(Redactor::default())));
    let request = request();
    let model = client(recorder.clone(), clock, streaming);
    let attempted = tokio::select! {
        attempted = model.complete(&request) => attempted,
        () = misbehave(listener, faults) => unreachable!("it never ends"),
    };

    let header = Header {
        scenario: "s".to_owned(),
        case: "c".to_owned(),
        lane: "f.base.1".to_owned(),
        recorded_at,
        recorded_from: BTreeMap::new(),
        recorder: "test".to_owned(),
        knowledge: String::new(),
        seed: 3,
        subject: String::new(),
        take: 1,
        takes: std::collections::BTreeMap::new(),
        profiles: recorder.profiles(),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
        held: None,
    };
    let clock = VirtualClock::at(recorded_at);
    let cassette = Cassette::new(header, recorder.finish(), BTreeMap::new());
    let replay = Arc::new(ReplayTransport::new(cassette, Arc::new(clock.clone()), String::new()));
    let again = block_on(&clock, client(replay.clone(), Arc::new(clock.clone()), streaming).complete(&request));
    let again = again.expect("no deadlock");
    assert_eq!(again.attempts, attempted.attempts);
    assert_eq!(told(&again), told(&attempted));
    assert_eq!(replay.unused(), Vec::<String>::new());
    attempted
}

/// The account: status and cause of each attempt, and the result.
fn told(attempted: &Attempted<ChatResponse>) -> String {
    let attempts = attempted.attempts.iter().map(|attempt| {
        let status = attempt.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        format!("{status} {}", attempt.cause.map_or("ok", ErrorKind::as_str))
    });
    let end = match &attempted.result {
        Ok(response) => response.content.clone(),
        Err(ProviderError::Failed { kind, .. }) => format!("failed: {}", kind.as_str()),
        Err(ProviderError::Miss(miss)) => miss.message.clone(),
    };
    format!("{} = {end}", attempts.collect::<Vec<_>>().join(", "))
}

#[tokio::test]
async fn each_spelling_of_retry_after_is_waited_for_and_none_too_long() {
    let faults = vec![
        busy(429, &[("retry-after-ms", "15")]),
        busy(429, &[("retry-after", "0.02")]),
        busy(429, &[("retry-after", "Fri, 06 Nov 2020 08:49:42 GMT")]),
        busy(429, &[("retry-after", "86400")]),
        good(),
    ];
    let attempted = ask(faults, false).await;
    assert_eq!(told(&attempted), "429 rate_limit, 429 rate_limit, 429 rate_limit, 429 rate_limit, 200 ok = Hello");
    let waits: Vec<u128> =
        attempted.attempts.iter().filter_map(|attempt| attempt.wait).map(|wait| wait.as_millis()).collect();
    assert_eq!(waits, [15, 20, 0, 30]);
}

#[tokio::test]
async fn faults_of_server_and_wire_are_tried_again_and_each_is_booked_as_what_it_is() {
    for (faults, account) in [
        (vec![busy(500, &[]), busy(529, &[]), good()], "500 server_error, 529 overloaded, 200 ok = Hello"),
        (vec![Reset, good()], "- connection, 200 ok = Hello"),
        (vec![CutBody, good()], "- connection, 200 ok = Hello"),
        (vec![Noise, good()], "- connection, 200 ok = Hello"),
        (vec![Stall, good()], "- timeout, 200 ok = Hello"),
        (vec![Reset; 5], "- connection, - connection, - connection, - connection, - connection = failed: connection"),
    ] {
        assert_eq!(told(&ask(faults, false).await), account);
    }
}

#[tokio::test]
async fn what_cannot_get_better_is_asked_once() {
    let quota = json!({"error": {"code": "insufficient_quota", "message": "pay"}}).to_string();
    for (fault, account) in [
        (Answer(429, vec![("retry-after", "0")], quota), "429 quota = failed: quota"),
        (busy(401, &[]), "401 auth = failed: auth"),
        (busy(500, &[("x-should-retry", "false")]), "500 server_error = failed: server_error"),
        (Answer(200, Vec::new(), "{\"choices\": 7}".to_owned()), "200 malformed = failed: malformed"),
    ] {
        assert_eq!(told(&ask(vec![fault], false).await), account);
    }
}

#[tokio::test]
async fn an_empty_body_or_a_page_for_people_is_asked_again_once() {
    let page = || Answer(200, Vec::new(), "<html>It works!</html>".to_owned());
    let empty = || Answer(200, Vec::new(), " \n".to_owned());
    for (faults, account) in [
        (vec![page(), good()], "200 html_page, 200 ok = Hello"),
        (vec![empty(), good()], "200 malformed, 200 ok = Hello"),
        (vec![page(), page(), good()], "200 html_page, 200 html_page = failed: html_page"),
        (vec![empty(), page(), good()], "200 malformed, 200 html_page = failed: html_page"),
        (vec![page(), busy(500, &[]), good()], "200 html_page, 500 server_error, 200 ok = Hello"),
    ] {
        assert_eq!(told(&ask(faults, false).await), account);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_neither_believed_nor_recorded() {
    let cut = || Stream(words()[..1].to_vec());
    let attempted = ask(vec![cut(), StalledStream, Stream(words())], true).await;
    assert_eq!(told(&attempted), "- connection, - timeout, 200 ok = Hello");
    let last = attempted.attempts.last().expect("an attempt");
    assert!(last.first_token.is_some_and(|first| first <= last.took), "{last:?}");
    assert!(attempted.first_token().is_some_and(|first| first >= LIMIT), "the waits count as well");

    let reported = "data: {\"error\": {\"code\": 429, \"message\": \"upstream is busy\"}}\n\n".to_owned();
    let attempted = ask(vec![Stream(vec![words()[0].clone(), reported]), good()], true).await;
    assert_eq!(told(&attempted), "200 rate_limit, 200 ok = Hello");
    assert_eq!(attempted.first_token(), None, "the second answer came whole");
}
