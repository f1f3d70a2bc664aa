//! How turns end: each row of the source's error table, and every declared transition.

use super::*;
use std::collections::BTreeSet;

/// Every way in which a turn ends: the tenant, the script, and the expected end.
fn ways() -> Vec<(&'static str, Vec<Says>, &'static str)> {
    let twice = Says::Calls(vec![
        (RETRIEVE_DOCUMENTS, json!({"query": "warranty"})),
        (RETRIEVE_DOCUMENTS, json!({"query": "months"})),
    ]);
    let strange = |query| {
        Says::Calls(vec![("web_search", json!({"query": "warranty"})), (RETRIEVE_DOCUMENTS, json!({"query": query}))])
    };
    let said = |text| vec![retrieve("warranty"), Says::Text(text)];
    vec![
        ("north", said("24 months [1]."), "answered"),
        ("north", said(REFUSAL), "refused"),
        ("north", said("Dazu habe ich in den Dokumenten nichts gefunden."), "refused"),
        ("north", said("Dazu habe ich nichts gefunden. Es sind 42 Monate."), "answered"),
        ("north", vec![twice, Says::Text("24 months [1].")], "answered"),
        ("north", vec![strange("warranty"), Says::Text("24 months [1].")], "answered"),
        ("north", vec![retrieve("zeppelin"), Says::Text(REFUSAL)], "refused"),
        ("north", vec![retrieve("zeppelin"), Says::Text("It is 42.")], "answered"),
        ("north", vec![retrieve("warranty"), Says::Ends("24 mon", Finish::Length)], "no_answer"),
        ("east", vec![], "unknown_tenant"),
        ("north", vec![Says::Text("24 months, I think.")], "no_tool_call"),
        ("north", vec![Says::Refuses], "no_tool_call"),
        ("north", vec![Says::Calls(vec![("web_search", json!({}))])], "no_tool_call"),
        ("north", vec![retrieve("../../../../etc/passwd")], "query_refused"),
        ("north", vec![Says::Calls(vec![(RETRIEVE_DOCUMENTS, json!({"q": 1}))])], "query_refused"),
        ("broken", vec![retrieve("warranty")], "retrieval_failed"),
        ("north", vec![retrieve("warranty"), retrieve("warranty")], "call_in_answer"),
        ("north", vec![retrieve("warranty"), Says::Refuses], "no_answer"),
        ("north", said(" "), "no_answer"),
        ("north", vec![retrieve("warranty"), Says::Ends("24", Finish::ContentFilter)], "no_answer"),
        ("north", vec![Says::Fails], "model_unavailable"),
        ("north", vec![retrieve("warranty"), Says::Fails], "model_unavailable"),
        ("north", vec![Says::Late], "timeout"),
        ("north", vec![retrieve("warranty"), Says::Late], "timeout"),
    ]
}

#[test]
fn every_turn_ends_once_in_its_own_way_and_every_declared_transition_is_taken() {
    let mut taken = BTreeSet::new();
    let mut note = |played: &Played| {
        taken.extend(played.moves().iter().map(|moved| (moved.from.clone(), moved.on.clone(), moved.to.clone())));
    };
    for (number, (tenant, model, end)) in ways().into_iter().enumerate() {
        let played = play(tenant, model, &["How long is the warranty?"]);
        assert_eq!(played.ends(), [end], "way {number}");
        note(&played);
    }
    let limits = Limits { model_calls: 1, ..Limits::default() };
    let played = play_within(limits, "north", vec![retrieve("warranty")], &["How long?"]);
    assert_eq!(played.ends(), ["model_calls_exhausted"]);
    note(&played);
    let declared = TwoStage.machine().transitions.into_iter().map(|row| (row.from, row.on, row.to));
    assert_eq!(taken, declared.collect(), "declared and taken");
}

#[test]
fn an_unknown_tenant_is_named_and_neither_model_nor_documents_are_asked() {
    let played = play("east\u{1b}[2J", vec![retrieve("warranty")], &["How long is the warranty?"]);
    assert!(played.requests.is_empty() && played.calls().is_empty());
    let told = played.events.iter().find_map(|event| match &event.what {
        What::TurnEnded(ended) => match &ended.outcome {
            TurnOutcome::Failed { message, .. } => Some(message.clone()),
            TurnOutcome::Answered(_) => None,
        },
        _ => None,
    });
    assert!(told.is_some_and(|told| told.contains("east") && !told.contains('\u{1b}')));
}

#[test]
fn a_first_reply_without_a_call_is_in_the_trace_in_full() {
    let words = "24 months, I think: that is what most makers give.";
    let played = play("north", vec![Says::Text(words)], &["How long is the warranty?"]);
    let whole = |event: &Event| matches!(&event.what, What::ModelCalled(called) if matches!(&called.reply, Replied::Completion(done) if done.text == words));
    assert!(played.events.iter().any(whole));
    assert_eq!(played.requests.len(), 1, "nothing is tried again");
}

#[test]
fn the_words_of_a_failing_provider_reach_the_user_by_kind_and_status_and_the_trace_whole() {
    let played = play("north", vec![Says::Fails], &["How long is the warranty?"]);
    let told = |what: &What| match what {
        What::TurnEnded(ended) => {
            matches!(&ended.outcome, TurnOutcome::Failed { message, .. } if message.contains("500"))
        }
        _ => false,
    };
    assert!(played.events.iter().any(|event| told(&event.what)));
    let kept = |what: &What| matches!(what, What::ModelCalled(called) if matches!(&called.reply, Replied::Failure { message, .. } if message.contains("upstream is down")));
    assert!(played.events.iter().any(|event| kept(&event.what)));
}
