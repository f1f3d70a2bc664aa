//! A model and a search service over a socket: recorded, then replayed with the same attempts and answers.

use super::*;
use crate::cassette::{Cassette, Header, Redactor};
use crate::platform::clock::{Clock, RealClock, VirtualClock, block_on};
use crate::provider::chat::{Message, Role};
use crate::settings::Auth;
use crate::transport::{LiveTransport, RecordTransport, ReplayTransport, Service, Target, Transport};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

fn request() -> ChatRequest {
    ChatRequest::new("m", vec![Message::text(Role::User, "Hello")])
}

fn question() -> SearchQuestion {
    SearchQuestion { query: "news".to_owned(), context: None, model: "perplexity/sonar".to_owned() }
}

fn access(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> Access {
    Access { transport, clock, policy: RetryPolicy::default() }
}

fn model(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> ChatClient {
    let policy = RetryPolicy { base: Duration::from_millis(20), seed: 11, ..RetryPolicy::default() };
    ChatClient::new(wire::openai_chat::DIALECT, Access { transport, clock, policy })
}

async fn mount(server: &MockServer, at: &str, template: ResponseTemplate) {
    Mock::given(path(at)).respond_with(template).up_to_n_times(1).mount(server).await;
}

#[tokio::test]
async fn retries_answers_and_waits_of_a_recording_come_again_in_replay() {
    let server = MockServer::start().await;
    let (chat, agent) = ("/v1/chat/completions", "/v1/agent");
    mount(&server, chat, ResponseTemplate::new(429).insert_header("retry-after-ms", "15")).await;
    mount(&server, chat, ResponseTemplate::new(500)).await;
    let completion = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]});
    mount(&server, chat, ResponseTemplate::new(200).set_body_json(completion)).await;
    let quota = json!({"error": {"type": "insufficient_quota", "message": "pay"}});
    mount(&server, agent, ResponseTemplate::new(429).set_body_json(quota)).await;

    let live: Arc<dyn Clock> = Arc::new(RealClock::start());
    let target = |base: &str| Target {
        base_url: format!("{}{base}", server.uri()),
        key: None,
        auth: Auth::Bearer,
        headers: &[],
        timeout: Duration::from_secs(10),
        trial_header: true,
    };
    let targets = BTreeMap::from([(Service::Model, target("/v1")), (Service::Search, target(""))]);
    let inner = LiveTransport::new(targets, Arc::clone(&live)).expect("a transport");
    let recorder = Arc::new(RecordTransport::new(Arc::new(inner), Arc::clone(&live), Arc::new(Redactor::default())));
    let recorded = model(recorder.clone(), Arc::clone(&live)).complete(&request()).await;
    let refused = PerplexityAgent::new(access(recorder.clone(), live)).ask(&question()).await;
    assert_eq!(recorded.result.expect("an answer").content, "Hi");
    assert_eq!(recorded.attempts.len(), 3);
    assert_eq!(recorded.attempts[0].wait, Some(Duration::from_millis(15)));
    assert!(matches!(refused.result, Err(ProviderError::Failed { kind: ErrorKind::Quota, .. })));
    assert_eq!(refused.attempts.len(), 1);

    let header = Header {
        scenario: "s".to_owned(),
        case: "c".to_owned(),
        lane: "f.base.1".to_owned(),
        recorded_at: jiff::Timestamp::UNIX_EPOCH,
        recorded_from: BTreeMap::new(),
        recorder: "test".to_owned(),
        knowledge: String::new(),
        seed: 11,
        subject: String::new(),
        take: 1,
        takes: BTreeMap::new(),
        profiles: recorder.profiles(),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
        held: None,
    };
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let cassette = Cassette::new(header, recorder.finish(), BTreeMap::new());
    let replay = Arc::new(ReplayTransport::new(cassette, Arc::new(clock.clone()), String::new()));
    let replayed = block_on(&clock, model(replay.clone(), Arc::new(clock.clone())).complete(&request()));
    let replayed = replayed.expect("no deadlock");
    assert_eq!(replayed.attempts, recorded.attempts);
    assert_eq!(replayed.result.expect("an answer").content, "Hi");
    let total: Duration = recorded.attempts.iter().map(|attempt| attempt.took + attempt.wait.unwrap_or_default()).sum();
    assert_eq!(clock.now(), total);
    assert_eq!(replay.unused(), ["f.base.1: exchange 3 (search) was recorded and not asked for"]);
    let agent = PerplexityAgent::new(access(replay, Arc::new(clock.clone())));
    let other = SearchQuestion { query: "weather".to_owned(), ..question() };
    let missed = block_on(&clock, agent.ask(&other)).expect("no deadlock");
    assert_eq!(missed.attempts.len(), 1);
    let Err(ProviderError::Miss(miss)) = missed.result else { panic!("not a miss") };
    assert_eq!(miss.cause, "input changed: - news + weather");
}
