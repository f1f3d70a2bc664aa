//! How turns end: each row of the table in `docs/reference/managed-rag.md`, and every declared transition.

use super::*;
use std::collections::BTreeSet;

const QUESTION: [&str; 1] = ["How long is the warranty?"];
const EMBED: &str = "«artifact_content:nuclia_answer.md:1»";

/// Every way in which a turn ends: the script, and the expected end.
fn ways() -> Vec<(Vec<Says>, &'static str)> {
    let (found, nothing, broken) = (ask("warranty"), ask("zeppelin"), ask("broken"));
    let text = |text| Says::Text(text);
    let strange = Says::Calls(vec![("web_search", json!({"query": "warranty"}))]);
    vec![
        (vec![found.clone(), text(EMBED)], "answered"),
        (vec![found.clone(), text("Here:\n«artifact_content:nuclia_answer.md»")], "answered"),
        (vec![nothing.clone(), text(REFUSAL)], "refused"),
        (vec![broken.clone(), text("The documents could not be asked.")], "answered"),
        // Asked again, in either state.
        (vec![nothing.clone(), found.clone(), text(EMBED)], "answered"),
        (vec![found.clone(), nothing.clone(), broken.clone(), text(EMBED)], "answered"),
        (vec![strange.clone(), found.clone(), strange.clone(), text(EMBED)], "answered"),
        // Reminded of the call.
        (vec![text("24 months."), strange.clone(), found.clone(), text(EMBED)], "answered"),
        (vec![text("24 months."), nothing.clone(), text(REFUSAL)], "refused"),
        (vec![text("24 months."), broken.clone(), text("It could not be asked.")], "answered"),
        (vec![text("24 months."), text("24 months!")], "no_tool_call"),
        (vec![Says::Refuses, Says::Refuses], "no_tool_call"),
        // Reminded of the artifact.
        (vec![found.clone(), text("24 months."), strange.clone(), text(EMBED)], "answered"),
        (vec![found.clone(), text("24 months."), text("24 months!")], "no_artifact"),
        (vec![found.clone(), text("«artifact_content:nuclia_answer.md:7»"), text(EMBED)], "answered"),
        (vec![found.clone(), text(" "), text(REFUSAL)], "no_artifact"),
        (
            vec![found.clone(), text("24 months."), found.clone(), nothing.clone(), broken.clone(), text(EMBED)],
            "answered",
        ),
        // Reminded of the answer.
        (vec![nothing.clone(), text(" "), text(REFUSAL)], "refused"),
        (vec![nothing.clone(), text(" "), text("It is not in them.")], "answered"),
        (vec![nothing.clone(), text(" "), text(" ")], "no_answer"),
        (vec![nothing.clone(), Says::Refuses, Says::Refuses], "no_answer"),
        (vec![nothing.clone(), Says::Ends("It", Finish::ContentFilter), text(" ")], "no_answer"),
        // The model's service, in every state.
        (vec![Says::Fails], "model_unavailable"),
        (vec![text("24"), Says::Fails], "model_unavailable"),
        (vec![found.clone(), Says::Fails], "model_unavailable"),
        (vec![found.clone(), text("24"), Says::Fails], "model_unavailable"),
        (vec![Says::Late], "timeout"),
        (vec![text("24"), Says::Late], "timeout"),
        (vec![found.clone(), Says::Late], "timeout"),
        (vec![found.clone(), text("24"), Says::Late], "timeout"),
    ]
}

#[test]
fn every_turn_ends_once_in_its_own_way_and_every_declared_transition_is_taken() {
    let mut taken = BTreeSet::new();
    let mut note = |played: &Played| {
        taken.extend(played.moves().into_iter().map(|moved| (moved.from.clone(), moved.on.clone(), moved.to.clone())));
    };
    for (number, (model, end)) in ways().into_iter().enumerate() {
        let played = play(model, &QUESTION);
        assert_eq!(played.ends(), [end], "way {number}");
        note(&played);
    }
    let text = || Says::Text("24 months.");
    for (number, model) in [
        vec![ask("broken \n;DROP TABLE x")],
        vec![text(), ask("")],
        vec![ask("warranty")],
        vec![ask("warranty"), text()],
    ]
    .into_iter()
    .enumerate()
    {
        let limits = Limits { model_calls: model.len() as u32, ..Limits::default() };
        let played = Stage { limits, ..Stage::default() }.play(model, &QUESTION);
        assert_eq!(played.ends(), ["model_calls_exhausted"], "way {number}");
        note(&played);
    }
    let declared: BTreeSet<_> =
        ManagedRag.machine().transitions.into_iter().map(|row| (row.from, row.on, row.to)).collect();
    assert_eq!(declared.difference(&taken).collect::<Vec<_>>(), Vec::<&(String, String, String)>::new(), "never taken");
    assert_eq!(taken.difference(&declared).collect::<Vec<_>>(), Vec::<&(String, String, String)>::new(), "undeclared");
}

#[test]
fn the_call_is_forced_where_that_is_declared_and_never_after_it() {
    let stage = Stage { enforcement: Enforcement::Forced, ..Stage::default() };
    let played = stage.play(vec![ask("warranty"), Says::Text(EMBED)], &QUESTION);
    let choices: Vec<_> = played.requests.iter().map(|request| request.tool_choice.clone()).collect();
    assert_eq!(
        choices,
        [crate::provider::chat::ToolChoice::Named(NUCLIA_RAG.into()), crate::provider::chat::ToolChoice::Auto]
    );
}

#[test]
fn each_reminder_comes_as_a_system_message_once_and_names_what_is_missing() {
    let played = play(vec![Says::Text("24."), ask("warranty"), Says::Text("24."), Says::Text("24.")], &QUESTION);
    assert_eq!(played.ends(), ["no_artifact"]);
    let fed: Vec<_> = played
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::FedBack(fed) => Some((fed.step.as_str(), fed.cause.as_str(), fed.message.as_str())),
            _ => None,
        })
        .collect();
    let [(first, _, call), (second, cause, artifact)] = fed.as_slice() else { panic!("{fed:?}") };
    assert_eq!((*first, *second, *cause), ("knowledge_base", "response", "no_artifact"));
    assert!(call.contains(NUCLIA_RAG) && artifact.contains(EMBED), "{call} {artifact}");
    let system = |message: &&Message| message.role == Role::System;
    let said: Vec<_> =
        played.requests[3].messages.iter().filter(system).skip(1).map(|one| one.content.as_str()).collect();
    assert_eq!(said, [*call, *artifact]);
}
