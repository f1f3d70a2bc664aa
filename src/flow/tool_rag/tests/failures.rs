//! Services that fail, limits that are reached, and a recording that does not match.

use super::*;
use crate::settings::TimeSpan;
use crate::transport::Miss;

#[test]
fn with_the_external_service_down_the_answer_comes_from_the_knowledge_base() {
    let model = vec![search("battery"), outside("tariff"), outside("tariff 2026"), responds(inside())];
    let down = vec![Err(ErrorKind::Server), Err(ErrorKind::Server)];
    let played = Play { service: down, ..play(model) }.turns(&["Warranty and tariff?"]);
    assert_story!(played);
    assert_eq!(played.retries().iter().filter(|one| one.account == Account::Tool).count(), 1);
}

#[test]
fn a_failure_that_waiting_does_not_help_is_not_tried_again() {
    let model = vec![search("battery"), outside("tariff"), outside("tariff 2026"), responds(inside())];
    let played = Play { service: vec![Err(ErrorKind::Auth)], ..play(model) }.turns(&["Tariff?"]);
    let ToolOutcome::Failed { retryable, .. } = played.tools()[1].outcome else { panic!("{}", played.story()) };
    assert!(!retryable);
    assert!(outcome(&played.tools()[2].outcome).contains("retries_exhausted"), "{}", played.story());
    assert!(played.story().contains("goes on without perplexity_search"), "{}", played.story());
    assert!(played.retries().is_empty());
}

#[test]
fn an_external_service_that_comes_back_is_a_recovered_tool_retry() {
    let model = vec![search("battery"), outside("t"), outside("t"), keywords(&GOOD_KEYWORDS), responds(both())];
    let played = Play { service: vec![Err(ErrorKind::Server)], ..play(model) }.turns(&["Tariff?"]);
    let booked = played.retries();
    assert_eq!((booked.len(), booked[0].account, booked[0].recovered), (1, Account::Tool, true));
    assert!(!played.story().contains("goes on without"), "{}", played.story());
}

#[test]
fn an_unavailable_model_ends_the_turn_and_not_the_conversation() {
    let model = vec![search("warranty"), Says::Fails(ErrorKind::Overloaded), search("warranty"), responds(inside())];
    let played = play(model).turns(&["Warranty?", "Again: warranty?"]);
    assert_eq!(played.ends(), ["model_unavailable", "answered"]);
    assert!(played.requests[2].messages[2].content.starts_with("(No answer was given."));
}

#[test]
fn repeated_http_attempts_are_booked_on_the_transport_account() {
    let model = vec![Says::AfterOneRetry(Box::new(search("warranty"))), responds(inside())];
    let played = play(model).turns(&["Warranty?"]);
    let booked = played.retries();
    assert_eq!((booked.len(), booked[0].account, booked[0].target.as_str()), (1, Account::Transport, "model"));
    assert!(booked[0].recovered && booked[0].cause == "server_error");
    assert_eq!(played.completions().next().expect("one").attempts.len(), 2);
}

#[test]
fn a_turn_takes_no_longer_than_its_limit_and_shows_what_it_waited_for() {
    let limits = Limits { turn: TimeSpan::seconds(10), ..Limits::default() };
    let played = Play { limits, ..play(vec![search("warranty"), Says::Late(60)]) }.turns(&["Warranty?"]);
    assert_eq!(played.ends(), ["timeout"]);
    assert_eq!(played.clock.now(), Duration::from_secs(10));
    let last = played.completions().last().expect("one");
    assert!(matches!(&last.reply, Replied::Failure { kind, .. } if kind == "timeout"));
    assert_eq!(last.took_us, 9_895_000);
}

#[test]
fn a_model_that_never_ends_is_stopped_at_its_bound() {
    let limits = Limits { model_calls: 4, ..Limits::default() };
    let played = Play { limits, ..play((0..9).map(|_| search("warranty")).collect()) }.turns(&["Warranty?"]);
    assert_eq!(played.ends(), ["model_calls_exhausted"]);
    assert_eq!(played.requests.len(), 4);
}

struct Missing;

impl ChatModel for Missing {
    fn complete<'a>(&'a self, _: &'a ChatRequest) -> BoxFuture<'a, Attempted<ChatResponse>> {
        let miss = Miss { message: "no such exchange".into(), cause: "c".into(), detail: Vec::new() };
        Box::pin(async { Attempted { result: Err(ProviderError::Miss(Box::new(miss))), attempts: Vec::new() } })
    }
}

#[test]
fn a_request_that_no_recording_holds_aborts_the_trial() {
    let clock = VirtualClock::at(jiff::Timestamp::UNIX_EPOCH);
    let (_, mut env) = play(vec![]).environment(&clock);
    env.model = Arc::new(Missing);
    let mut conversation = ConversationState::new(0, "main");
    let ended = block_on(&clock, ToolRag.turn(&env, &mut conversation, "Warranty?")).expect("no deadlock");
    assert!(matches!(ended, Err(Abort::Miss(miss)) if miss.message == "no such exchange"));
    assert!(!env.take_events().iter().any(|event| matches!(event.what, What::TurnEnded(_))));
}
