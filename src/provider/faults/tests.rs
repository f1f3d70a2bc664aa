use super::*;
use crate::platform::clock::{VirtualClock, block_on};
use crate::provider::chat::ChatRequest;
use crate::provider::wire::Dialect;
use crate::provider::{ErrorKind, ended_by, observed};
use std::sync::atomic::{AtomicU32, Ordering};

/// Answers every request with the same document, and counts.
struct Answers(Value, AtomicU32);

impl Transport for Answers {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        let body = bytes::Bytes::from(self.0.to_string());
        let response =
            HttpResponse { status: 200, headers: Vec::new(), body, took: Duration::ZERO, chunks: Vec::new() };
        Box::pin(std::future::ready(Ok(response)))
    }
}

fn request(dialect: &'static Dialect, stream: bool) -> HttpRequest {
    let tool = crate::provider::chat::ToolDefinition {
        name: "find".to_owned(),
        description: "Finds.".to_owned(),
        parameters: serde_json::json!({"type": "object"}),
    };
    let asked =
        ChatRequest { tools: Arc::from([tool]), ..ChatRequest::new("m", vec![Message::text(Role::User, "Hello")]) };
    let path = dialect.path("m", stream);
    let mut request = HttpRequest::new(Service::Model, dialect.profile, "POST", path, dialect.encode_request(&asked));
    request.stream = stream.then(|| ended_by(dialect));
    request
}

/// What the first two of the same requests come to, how many reached the service, and the faults.
fn twice(
    declared: DeclaredFault,
    dialect: &'static Dialect,
    stream: bool,
) -> (Vec<observed::Observed<crate::provider::chat::ChatResponse>>, u32, Arc<Faults>) {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let faults =
        Faults::of(&[declared], None, ("s/c/f.b.1", "f.b.1"), 1, &shared, Duration::from_secs(9)).expect("armed");
    let answers = Arc::new(Answers(dialect.example().whole, AtomicU32::new(0)));
    let transport = FaultTransport::of_flow(Arc::clone(&answers) as Arc<dyn Transport>, Arc::clone(&faults));
    let results = [(); 2].map(|()| {
        let asked = request(dialect, stream);
        let result = block_on(&clock, transport.send(asked.clone())).expect("no deadlock");
        observed::completion(&asked, &result)
    });
    (results.into(), answers.1.load(Ordering::SeqCst), faults)
}

#[test]
fn every_fault_of_a_request_is_read_as_its_kind_in_every_dialect_and_the_repetition_is_answered() {
    use FaultKind as K;
    for dialect in wire::dialects().filter(|dialect| dialect.proxied) {
        for (kind, expected) in [
            (K::RateLimit, ErrorKind::RateLimit),
            (K::RateLimitSeconds, ErrorKind::RateLimit),
            (K::RateLimitMilliseconds, ErrorKind::RateLimit),
            (K::RateLimitDate, ErrorKind::RateLimit),
            (K::Quota, ErrorKind::Quota),
            (K::ServerError, ErrorKind::Server),
            (K::Unavailable, ErrorKind::Overloaded),
            (K::Overloaded, ErrorKind::Overloaded),
            (K::TooLarge, ErrorKind::BadRequest),
            (K::ContextLength, ErrorKind::ContextLength),
            (K::Reset, ErrorKind::Connection),
            (K::Stall, ErrorKind::Timeout),
        ] {
            let (seen, sent, faults) = twice(DeclaredFault::new(kind), dialect, false);
            let name = format!("{} {}", dialect.name(), kind.as_str());
            assert_eq!((seen[0].attempt.cause, seen[0].attempt.declared_fault), (Some(expected), true), "{name}");
            assert_eq!((seen[1].attempt.cause, seen[1].attempt.declared_fault), (None, false), "{name}");
            assert_eq!(
                (sent, faults.missed().len(), faults.landings()),
                (1, 0, 1),
                "{name}: only the repetition is sent"
            );
        }
    }
}

#[test]
fn every_broken_stream_is_a_broken_connection_or_the_reported_error_in_every_dialect_that_streams_text() {
    use FaultKind as K;
    for dialect in wire::dialects().filter(|one| one.proxied && one.name() != "bedrock-converse") {
        for kind in [K::CutBeforeToken, K::CutAfterToken, K::CutInArguments, K::ErrorInStream] {
            if kind == K::CutInArguments && ["gemini", "ollama"].contains(&dialect.name()) {
                continue;
            }
            let (seen, sent, _) = twice(DeclaredFault::new(kind), dialect, true);
            let expected = if kind == K::ErrorInStream { ErrorKind::Server } else { ErrorKind::Connection };
            let name = format!("{} {}", dialect.name(), kind.as_str());
            assert_eq!((seen[0].attempt.cause, seen[0].attempt.declared_fault), (Some(expected), true), "{name}");
            assert_eq!((seen[1].attempt.cause, sent), (None, 1), "{name}");
        }
    }
}

#[test]
fn another_answer_is_an_answer_and_lost_usage_is_unknown_usage() {
    use FaultKind as K;
    for dialect in wire::dialects().filter(|dialect| dialect.proxied) {
        for kind in [K::NoToolCall, K::WrongTool, K::MalformedArguments, K::LengthStop, K::Refusal, K::NoUsage] {
            let (seen, sent, faults) = twice(DeclaredFault::new(kind), dialect, false);
            let name = format!("{} {}", dialect.name(), kind.as_str());
            let first = seen[0].result.as_ref().unwrap_or_else(|why| panic!("{name}: {why:?}"));
            match kind {
                K::NoToolCall => assert!(first.calls.is_empty() && !first.content.is_empty(), "{name}"),
                K::WrongTool => assert_eq!(first.calls[0].name, "no_such_tool", "{name}"),
                K::MalformedArguments => assert_eq!(first.calls[0].name, "find", "{name}"),
                K::NoUsage => assert_eq!(first.usage.input, None, "{name}"),
                _ => assert!(first.calls.is_empty(), "{name}"),
            }
            assert_eq!((sent, faults.landings()), (1, 1), "{name}: a changed answer is kept for the repetition");
        }
    }
}

#[test]
fn a_fault_that_finds_nothing_to_strike_is_missed_and_changes_nothing() {
    let chat = wire::by_name("openai-chat").expect("spoken");
    let (seen, sent, faults) = twice(DeclaredFault::new(FaultKind::CutAfterToken), chat, false);
    assert!(seen.iter().all(|one| one.attempt.cause.is_none()));
    assert_eq!((sent, faults.missed()), (2, vec!["cut-after-token at request 1 to model".to_owned()]));
    let later = DeclaredFault { call: 3, ..DeclaredFault::new(FaultKind::Reset) };
    assert_eq!(twice(later, chat, false).2.missed(), ["reset at request 3 to model"]);
}

#[test]
fn a_share_strikes_about_that_many_trials_the_same_ones_each_time() {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::at(jiff::Timestamp::UNIX_EPOCH));
    let declared = [DeclaredFault { share: Some(0.25), ..DeclaredFault::new(FaultKind::Reset) }];
    let struck = |seed: u64| {
        let trials = (0..1000).map(|number| format!("s/c/f.b.{number}"));
        let of = |trial: &String| Faults::of(&declared, None, (trial, "f.b.1"), seed, &clock, Duration::ZERO).is_some();
        trials.filter(of).collect::<Vec<_>>()
    };
    assert_eq!(struck(1), struck(1));
    assert!((200..300).contains(&struck(1).len()) && struck(1) != struck(2));
    let elsewhere = [DeclaredFault { lane: Some("f.other".into()), ..DeclaredFault::new(FaultKind::Reset) }];
    assert!(Faults::of(&elsewhere, None, ("s/c/f.b.1", "f.b.1"), 1, &clock, Duration::ZERO).is_none());
}

#[test]
fn the_results_of_an_agents_own_tools_are_changed_in_its_requests() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    for dialect in wire::dialects().filter(|dialect| dialect.proxied) {
        let call = |id: &str| crate::provider::chat::ToolCall {
            id: id.to_owned(),
            name: "find".to_owned(),
            arguments: "{}".to_owned(),
        };
        let assistant = Message { calls: vec![call("a"), call("b")], ..Message::text(Role::Assistant, "") };
        let results = [Message::tool_result("a", "{\"ohms\":48}"), Message::tool_result("b", "{\"ohms\":48}")];
        let mut messages = vec![Message::text(Role::User, "q"), assistant];
        messages.extend(results);
        let body = dialect.encode_request(&ChatRequest::new("m", messages));
        let request = HttpRequest::new(Service::Model, dialect.profile, "POST", dialect.path("m", false), body);
        let declared =
            DeclaredFault { tool: Some("find".into()), call: 2, ..DeclaredFault::new(FaultKind::ToolContradicts) };
        let faults = Faults::of(&[declared], None, ("t", "l"), 1, &shared, Duration::ZERO).expect("armed");
        let changed = faults.with_tool_results(request);
        let read = dialect.decode_request(&changed.path, &changed.body).expect("decodes");
        let contents: Vec<&str> =
            read.messages.iter().filter(|one| one.role == Role::Tool).map(|one| one.content.as_str()).collect();
        assert_eq!(contents.len(), 2, "{}", dialect.name());
        assert!(contents[0].contains("48") && !contents[0].contains("71"), "{} {contents:?}", dialect.name());
        assert!(contents[1].contains("48") && contents[1].contains("71"), "{} {contents:?}", dialect.name());
        assert_eq!(faults.landings(), 1);
    }
}
