//! Records over a real socket and replays without one: the same bytes, times and failures.

use super::*;
use crate::cassette::{self, Cassette, Header, Layout, Place, Redactor};
use crate::platform::clock::{Clock, RealClock, VirtualClock, block_on, timeout};
use crate::settings::Auth;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const KEY: &str = "not-a-real-key-0123456789";

static PROFILE: Profile = Profile { layout: &LAYOUT, ..Profile::plain("chat") };

static LAYOUT: Layout = Layout {
    model: Some("/model"),
    conversation: &["/messages"],
    role: "/role",
    text: "/content",
    calls: &[Place::at("/tool_calls/*/id")],
    results: &[Place::at("/tool_call_id").when("role", &["tool"])],
    ..Layout::NONE
};

fn request(words: &str) -> HttpRequest {
    HttpRequest::new(
        Service::Model,
        &PROFILE,
        "POST",
        "/chat/completions",
        json!({"model": "m", "messages": [{"role": "user", "content": words}]}),
    )
}

fn live(url: String, limit: Duration) -> LiveTransport {
    let target = Target {
        base_url: url,
        key: Some(KEY.to_owned()),
        auth: Auth::Bearer,
        headers: &[],
        timeout: limit,
        trial_header: true,
    };
    LiveTransport::new(BTreeMap::from([(Service::Model, target)]), Arc::new(RealClock::start())).expect("a transport")
}

fn recorder(inner: LiveTransport) -> RecordTransport {
    let redactor = Redactor::new([("MODEL_KEY".to_owned(), KEY.to_owned())]);
    RecordTransport::new(Arc::new(inner), Arc::new(RealClock::start()), Arc::new(redactor))
}

/// Writes and reads the cassette, as a trial does.
fn replay(recorder: &RecordTransport) -> (ReplayTransport, VirtualClock, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let header = Header {
        scenario: "s".to_owned(),
        case: "c".to_owned(),
        lane: "f.base.1".to_owned(),
        recorded_at: jiff::Timestamp::UNIX_EPOCH,
        recorded_from: recorder.recorded_from(&BTreeMap::from([("model".to_owned(), "openai".to_owned())])),
        recorder: "test".to_owned(),
        knowledge: String::new(),
        seed: 1,
        subject: String::new(),
        take: 1,
        takes: BTreeMap::new(),
        profiles: recorder.profiles(),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
        held: None,
    };
    let (file, blobs) = (cassette::path(folder.path(), "s", "c", &"f.base.1"), cassette::blobs_dir(folder.path(), "s"));
    let redactor = Redactor::new([("MODEL_KEY".to_owned(), KEY.to_owned())]);
    Cassette::new(header, recorder.finish(), BTreeMap::new()).save(&file, &blobs, &redactor).expect("saved");
    let text = std::fs::read_to_string(&file).expect("written");
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let cassette = Cassette::load(&file, &blobs).expect("loads");
    (ReplayTransport::new(cassette, Arc::new(clock.clone()), "ragcheck run".to_owned()), clock, text)
}

#[tokio::test]
async fn a_request_matches_with_the_members_of_its_json_in_another_order_each_exchange_once() {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let recorder = recorder(live(server.uri(), Duration::from_secs(5)));
    let (first, second) = (r#"{"id":"w1","k":[1],"n":2}"#, r#"{"n":2,"id":"w1","k":[1]}"#);
    let (third, spaced) = (r#"{"k":[1],"n":2,"id":"w1"}"#, r#"{"k": [1],"n":2,"id":"w1"}"#);
    for words in [first, second] {
        recorder.send(request(words)).await.expect("an answer");
    }
    let (replay, clock, _) = replay(&recorder);
    let ask = |words: &str| {
        let (place, result) = block_on(&clock, replay.send_placed(request(words))).expect("no deadlock");
        result.map(|_| place.map(|place| (place.ordinal, place.body)))
    };
    assert_eq!(ask(second).expect("as recorded"), Some((1, None)));
    let Err(TransportError::Miss(miss)) = ask(r#"{"n":3,"id":"w1","k":[1]}"#) else { panic!("another value") };
    assert!(miss.message.contains("message 1 (user) changed"), "{miss:?}");
    assert_eq!(ask(second).expect("reordered"), Some((0, Some(Arc::clone(&request(first).body)))));
    for (asked, is_again) in [(third, true), (spaced, false)] {
        let Err(TransportError::Miss(miss)) = ask(asked) else { panic!("all are used") };
        assert_eq!(miss.message.contains("exhausted"), is_again, "{miss:?}");
    }
}

/// Requests to a service of an agent's own that hold a key: in a header, a path, a text, and a query.
fn with_key(kind: char, key: &str) -> HttpRequest {
    const SERVICE: Profile = Profile::plain("exact");
    let (method, path, body) = match kind {
        'h' => ("GET", "/search".to_owned(), Value::Null),
        'p' => ("GET", format!("/v1/{key}/lookup"), Value::Null),
        't' => ("POST", "/x".to_owned(), json!({"t": format!("use {key} here"), "n": 1})),
        _ => ("GET", format!("/search?api_key={key}"), Value::Null),
    };
    let headers = if kind == 'h' { vec![("x-api-key".to_owned(), key.to_owned())] } else { Vec::new() };
    HttpRequest { headers, ..HttpRequest::new(Service::declared("kb"), &const { SERVICE }, method, path, body) }
}

#[tokio::test]
async fn a_key_is_redacted_in_each_request_of_a_lane_and_a_replay_with_another_key_finds_those_behind_the_one_that_tells_it()
 {
    let server = MockServer::start().await;
    Mock::given(wiremock::matchers::any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    let (key, other) = ("intKEY0a1b2c3d4e5f6g7h8", "ciKEY99z8y7x6w5v4u3t2s1r");
    for order in ["hpt", "pht", "pth", "qtp", "tpq", "pq", "th", "hq", "qh"] {
        let (url, auth) = (server.uri(), Auth::Bearer);
        let timeout = Duration::from_secs(5);
        let target = Target { base_url: url, key: None, auth, headers: &[], timeout, trial_header: false };
        let targets = BTreeMap::from([(Service::declared("kb"), target)]);
        let recorder = recorder(LiveTransport::new(targets, Arc::new(RealClock::start())).expect("a transport"));
        for kind in order.chars() {
            recorder.send(with_key(kind, key)).await.expect("an answer");
        }
        let (again, clock, text) = replay(&recorder);
        assert!(!text.contains(key), "{order}: {text}");
        let ask = |replay: &ReplayTransport, clock: &VirtualClock, kind, key: &str| {
            block_on(clock, replay.send(with_key(kind, key))).expect("no deadlock").is_ok()
        };
        // Until a request has told the key, any word may stand in its place: such a lane is a miss.
        let is_told = order.starts_with(['h', 'q']);
        let found = order.chars().all(|kind| ask(&again, &clock, kind, other));
        assert_eq!(found, is_told, "{order}");
        let (changed, clock, _) = replay(&recorder);
        for kind in order.chars() {
            let tells = matches!(kind, 'h' | 'q');
            let found = ask(&changed, &clock, kind, if tells { other } else { "ciKEY00a1b2c3d4" });
            assert!(tells || !found, "{order}: {kind}");
        }
    }
}

#[tokio::test]
async fn a_redirect_tells_its_host_alone_live_and_replayed() {
    let server = MockServer::start().await;
    let to = "https://api.example:8443/v1/elsewhere?key=sk-abcdefghijklmnopqrst";
    let template = ResponseTemplate::new(307).insert_header("location", to).insert_header(REDIRECT_HEADER, "forged");
    Mock::given(method("POST")).respond_with(template).mount(&server).await;
    let recorder = recorder(live(server.uri(), Duration::from_secs(5)));
    let told = recorder.send(request("where?")).await.expect("an answer");
    assert_eq!((told.header(REDIRECT_HEADER), told.header("location")), (Some("api.example:8443"), None));
    let (replay, clock, text) = replay(&recorder);
    let again = block_on(&clock, replay.send(request("where?"))).expect("no deadlock").expect("an answer");
    assert_eq!(again.header(REDIRECT_HEADER), Some("api.example:8443"));
    assert!(!text.contains("elsewhere"), "{text}");
}

#[tokio::test]
async fn what_was_recorded_over_a_socket_is_replayed_byte_for_byte() {
    let server = MockServer::start().await;
    let bodies: [&[u8]; 4] =
        [b"{\"choices\":[],\"n\":1.0}", b"{\n  \"a\": [\n    1\n  ]\n}", b"plain\r\ntext \n", b"\xff\x00binary"];
    for (place, body) in bodies.iter().enumerate() {
        let template = ResponseTemplate::new(if place == 2 { 429 } else { 200 })
            .set_body_raw(body.to_vec(), "application/json")
            .insert_header("retry-after", "2")
            .insert_header("set-cookie", "session=1");
        Mock::given(method("POST"))
            .and(path("/v1/chat/completions"))
            .and(header("authorization", format!("Bearer {KEY}").as_str()))
            .and(header("x-ragcheck-seed", "00000000000000ff"))
            .and(header("x-ragcheck-fault", "forgets"))
            .respond_with(template)
            .up_to_n_times(1)
            .mount(&server)
            .await;
    }
    let recorder =
        recorder(live(format!("{}/v1/", server.uri()), Duration::from_secs(5)).with_trial(255, Some("forgets")));
    let mut sent = Vec::new();
    for word in ["same", "same", "other", "last"] {
        sent.push(recorder.send(request(word)).await.expect("a response"));
    }
    let (replay, clock, text) = replay(&recorder);
    assert!(!text.contains(KEY) && !text.contains("set-cookie"), "{text}");
    assert!(text.contains("model: \"openai m\""), "{text}");
    let mut total = Duration::ZERO;
    // Between different keys, any order is allowed.
    for place in [3, 0, 2, 1] {
        let word = ["same", "same", "other", "last"][place];
        let replayed = block_on(&clock, replay.send(request(word))).expect("no deadlock").expect("a hit");
        assert_eq!(replayed.body, sent[place].body);
        assert_eq!(replayed.status, sent[place].status);
        assert_eq!(replayed.header("retry-after"), Some("2"));
        let micros = u64::try_from(sent[place].took.as_micros()).expect("short");
        assert_eq!(replayed.took, Duration::from_micros(micros));
        total += replayed.took;
        assert_eq!(clock.now(), total);
    }
    assert_eq!(replay.unused(), Vec::<String>::new());
    let miss = block_on(&clock, replay.send(request("same"))).expect("no deadlock");
    assert!(matches!(miss, Err(TransportError::Miss(miss)) if miss.cause.starts_with("exhausted")));
}

#[tokio::test]
async fn failures_are_recorded_and_fail_again_in_replay() {
    let slow = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_delay(Duration::from_secs(30)))
        .mount(&slow)
        .await;
    let timing_out = recorder(live(slow.uri(), Duration::from_millis(50)));
    assert!(matches!(timing_out.send(request("x")).await, Err(TransportError::Timeout { .. })));
    let waiting = recorder(live(slow.uri(), Duration::from_secs(20)));
    let clock = RealClock::start();
    assert!(timeout(&clock, Duration::from_millis(50), waiting.send(request("x"))).await.is_err());
    let unreachable = recorder(live("http://127.0.0.1:1".to_owned(), Duration::from_secs(5)));
    assert!(matches!(unreachable.send(request("x")).await, Err(TransportError::Connection { .. })));

    let (replayed, clock, _) = replay(&timing_out);
    let result = block_on(&clock, replayed.send(request("x"))).expect("no deadlock");
    assert!(matches!(result, Err(TransportError::Timeout { after }) if after == Duration::from_millis(50)));
    let (replayed, clock, _) = replay(&waiting);
    let cut = timeout(&clock, Duration::from_hours(1), replayed.send(request("x")));
    assert!(block_on(&clock, cut).expect("no deadlock").is_err(), "the caller's own limit cuts it off again");
    let (replayed, clock, _) = replay(&unreachable);
    let result = block_on(&clock, replayed.send(request("x"))).expect("no deadlock");
    assert!(matches!(result, Err(TransportError::Connection { message, .. }) if !message.is_empty()));
}

#[tokio::test]
async fn secrets_in_answers_are_redacted_and_simulators_are_named() {
    let server = MockServer::start().await;
    let answer = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}});
    let template = ResponseTemplate::new(401).set_body_json(answer).insert_header(SIMULATOR_HEADER, "1");
    Mock::given(method("POST")).respond_with(template).mount(&server).await;
    let recorder = recorder(live(server.uri(), Duration::from_secs(5)));
    recorder.send(request(&format!("my key is {KEY}"))).await.expect("a response");
    let (_, _, text) = replay(&recorder);
    assert!(!text.contains(KEY), "{text}");
    assert!(text.contains("Incorrect API key provided: [redacted:MODEL_KEY]"), "{text}");
    assert!(text.contains("rewritten: true") && text.contains("model: \"simulator\""), "{text}");
}

#[test]
fn a_request_that_answers_no_call_is_refused_before_it_is_matched() {
    let cassette = Cassette::new(
        Header {
            scenario: String::new(),
            case: String::new(),
            lane: String::new(),
            recorded_at: jiff::Timestamp::UNIX_EPOCH,
            recorded_from: BTreeMap::new(),
            recorder: String::new(),
            knowledge: String::new(),
            seed: 0,
            subject: String::new(),
            take: 1,
            takes: BTreeMap::new(),
            profiles: BTreeMap::new(),
            vars: BTreeMap::new(),
            spans: Vec::new(),
            stopping: None,
            held: None,
        },
        Vec::new(),
        BTreeMap::new(),
    );
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let replay = ReplayTransport::new(cassette, Arc::new(clock.clone()), String::new());
    let mut bad = request("x");
    bad.body = json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "a", "content": ""}]}).into();
    let result = block_on(&clock, replay.send(bad)).expect("no deadlock");
    assert!(matches!(result, Err(TransportError::Invalid { message }) if message.contains("\"a\"")));
}

#[test]
fn a_version_that_base_url_and_path_share_stands_in_the_address_once() {
    for (base, path, expected) in [
        ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("http://gateway/v1/", "/v1/messages?beta=true", "http://gateway/v1/messages?beta=true"),
        ("http://gateway/v1", "/responses", "http://gateway/v1/responses"),
        ("http://gateway/v1", "/v10/messages", "http://gateway/v1/v10/messages"),
        ("http://127.0.0.1:11434/v1", "/api/chat", "http://127.0.0.1:11434/api/chat"),
        ("http://gateway/v1/", "/v2/embed", "http://gateway/v2/embed"),
    ] {
        assert_eq!(live::address(Service::Model, base, path), expected);
    }
    let declared = live::address(Service::declared("shop"), "http://shop/v1", "/api/orders");
    assert_eq!(declared, "http://shop/v1/api/orders");
}

#[test]
fn versions_of_an_api_and_boundaries_of_uploads_are_no_secrets() {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let upload = "multipart/form-data; boundary=5f0c2b1e8d3a4f6b9c7d1e2f3a4b5c6d";
    let headers =
        vec![header("anthropic-version", "2023-06-01"), header("content-type", upload), header("x-api-key", "sk-1")];
    let secrets: Vec<_> = HttpRequest { headers, ..request("q") }.secrets().collect();
    assert_eq!(secrets, [header("agent's x-api-key", "sk-1")]);
}

#[test]
fn a_key_in_a_body_to_a_service_of_the_agents_own_is_known_elsewhere() {
    let keys = |service: Service, body: Value| {
        HttpRequest { service, body: body.into(), ..request("q") }.secrets().map(|(_, key)| key).collect::<Vec<_>>()
    };
    let key = "k4Yq1w2e3r4t5y6u7i8o";
    for body in [
        json!({"api_key": key, "query": "battery"}),
        json!({"query": "battery", "auth": {"accessToken": key}}),
        json!(format!("query=battery&api_key={key}")),
    ] {
        assert_eq!(keys(Service::declared("desk"), body.clone()), [key], "{body}");
        assert!(keys(Service::Model, body.clone()).is_empty(), "what an agent tells its model: {body}");
    }
    for body in [
        json!({"api_key": "customer-support", "query": "battery"}),
        json!({"cookie": "theme=dark-mode-2026; lang=en"}),
        json!({"database": "postgres://app:lamp@db.example/shop"}),
        json!({"key": "doc-battery-2026-11"}),
        json!({"query": "standard bearer responsibilities, key=warranty-and-returns"}),
        json!({"session_token": "customer-4711-2026-11", "authorization": "return-policy-v2-2026"}),
    ] {
        assert!(keys(Service::declared("desk"), body.clone()).is_empty(), "{body}");
    }
}

/// Answers at once.
struct Instant;

impl Transport for Instant {
    fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        let answer = HttpResponse {
            status: 200,
            headers: Vec::new(),
            body: b"{}".to_vec().into(),
            took: Duration::ZERO,
            chunks: Vec::new(),
        };
        Box::pin(async move { Ok(answer) })
    }
}

#[test]
fn the_time_of_a_request_in_its_turn_is_recorded_and_comes_back_in_replay() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let recorder = RecordTransport::new(Arc::new(Instant), Arc::clone(&shared), Arc::new(Redactor::default()));
    let recorder = Arc::new(recorder);
    let sent = |tap: Tap, is_live: bool| {
        let turn = async {
            clock.sleep(Duration::from_millis(7)).await;
            if is_live {
                tap.begin_turn(&shared);
            }
            clock.sleep(Duration::from_millis(5)).await;
            tap.send(request("q")).await.expect("an answer");
        };
        block_on(&clock, turn).expect("no deadlock");
        tap.take().remove(0).at
    };
    assert_eq!(sent(Tap::new(Arc::clone(&recorder) as Arc<dyn Transport>), true), Some(Duration::from_millis(5)));
    let (replay, ..) = replay(&recorder);
    assert_eq!(sent(Tap::new(Arc::new(replay)), false), Some(Duration::from_millis(5)));
}

#[test]
fn requests_sent_at_once_to_a_service_that_answers_at_once_are_recorded_as_such() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let recorder = RecordTransport::new(Arc::new(Instant), Arc::new(clock.clone()), Arc::new(Redactor::default()));
    let second = async {
        clock.sleep(Duration::from_millis(5)).await;
        recorder.send_placed(request("second")).await
    };
    let both = futures_util::future::join(recorder.send_placed(request("first")), second);
    let (one, other) = block_on(&clock, both).expect("no deadlock");
    let third = block_on(&clock, recorder.send_placed(request("third"))).expect("no deadlock");
    assert!([one, other, third].iter().all(|(_, result)| result.is_ok()));
    let beside: Vec<bool> = recorder.finish().iter().map(|exchange| exchange.beside).collect();
    assert_eq!(beside, [false, true, false]);
}
