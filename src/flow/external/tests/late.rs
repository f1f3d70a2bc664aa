//! Results of calls that reach the model in a later turn.

use super::super::turn::Seen;
use super::*;
use crate::trace::{Event, TurnEnded};

/// The calls of a conversation whose turns are given with the user's words, the exchanges and the answer: for each, its turn,
/// id and outcome.
fn calls_of(turns: Vec<(&str, Vec<Passed>, &str)>) -> Vec<(u32, String, &'static str)> {
    shown_calls_of(turns).into_iter().map(|(turn, id, outcome, _)| (turn, id, outcome)).collect()
}

/// The same, with the arguments.
fn shown_calls_of(turns: Vec<(&str, Vec<Passed>, &str)>) -> Vec<(u32, String, &'static str, Value)> {
    let clock = Arc::new(VirtualClock::at(jiff::Timestamp::UNIX_EPOCH));
    let tap = Arc::new(Tap::new(Arc::new(Slow(Arc::clone(&clock)))));
    let settings = settings();
    let mut session = session(&settings, &clock, &tap, Silence::Unchecked);
    let mut known: Vec<(Role, String)> = Vec::new();
    for (turn, (query, passed, answer)) in (0..).zip(turns) {
        known.push((Role::User, query.to_owned()));
        let reply = Reply::Answer { text: answer.to_owned(), body: json!({"answer": answer}) };
        let (began, took, completions) = (Duration::ZERO, Duration::ZERO, session.completions);
        let seen = Seen { conversation: 0, turn, began, took, known: known.clone(), passed, reply, completions };
        let built = session.built(&seen, Vec::new(), &[]).0;
        session.completions = built.completions;
        session.tracing.late.insert((0, turn), built.late);
        let ended =
            TurnEnded { took_us: 0, outcome: built.outcome.expect("a reply"), history: Vec::new(), reply: None };
        let events = built.events.into_iter().map(|(_, what)| what).chain([What::TurnEnded(ended)]);
        session.events.extend(events.map(|what| Event { at_us: 0, conversation: 0, turn, what }));
        known.push((Role::Assistant, answer.to_owned()));
    }
    block_on(&clock, session.finish()).expect("no deadlock").expect("finished");
    let call = |event: &Event| match &event.what {
        What::ToolCalled(call) => {
            let outcome = match call.outcome {
                ToolOutcome::Ok(_) => "ok",
                ToolOutcome::Failed { .. } => "failed",
                _ => "unseen",
            };
            Some((event.turn, call.id.clone(), outcome, call.arguments.clone()))
        }
        _ => None,
    };
    session.events.iter().filter_map(call).collect()
}

fn says(role: &str, words: &str) -> Value {
    json!({"role": role, "content": words})
}

/// A call that the first turn ends with, that answer, what the second turn's request has behind the call, and the calls of
/// the trial: of the first and of the second turn.
type Row = (&'static str, Vec<Value>, Option<&'static str>, Option<&'static str>);

#[test]
fn a_call_whose_result_a_later_turn_shows_is_one_call_of_the_turn_in_which_it_ran() {
    let returned = |content: Value| json!({"role": "tool", "tool_call_id": "c1", "content": content.to_string()});
    let done = || returned(json!({"cancelled": true}));
    let order = || returned(json!({"order": "A-1", "eta": "2026-11-24"}));
    let confirm = "Please confirm: cancel order A-1? (yes/no)";
    let rows: Vec<Row> = vec![
        // The user approves it: the result is all that is new, or stands behind the words.
        (confirm, vec![done()], None, Some("ok")),
        (confirm, vec![returned(json!({"error": "down"}))], None, Some("failed")),
        // What the confirmation shares with the result by chance, or because it was looked up, is no answer.
        ("Cancel A-1? Reply 1 for yes, 2 for no.", vec![returned(json!({"items": 1}))], None, Some("ok")),
        ("Cancel A-1 for 49.95 EUR?", vec![returned(json!({"fee": 49.95}))], Some("unseen"), Some("ok")),
        // The user refuses it, and it runs all the same.
        (confirm, vec![done(), says("user", "go on")], Some("unseen"), Some("ok")),
        // The user refuses it.
        (confirm, vec![returned(json!({"error": "rejected by user"})), says("user", "go on")], Some("failed"), None),
        // Its result was the answer, or the answer tells what only the result can have told it.
        (r#"{"eta":"2026-11-24","order":"A-1"}"#, vec![order(), says("user", "go on")], Some("ok"), None),
        ("It arrives on 2026-11-24. Anything else?", vec![order(), says("user", "go on")], Some("ok"), None),
        // The agent went on after it.
        ("Done.", vec![done(), says("assistant", "Done."), says("user", "go on")], Some("ok"), None),
        ("Done.", vec![returned(json!({"error": "down"})), says("user", "go on")], Some("failed"), None),
        // The conversation goes on without its result.
        ("Done.", vec![says("user", "go on")], Some("unseen"), None),
    ];
    for (answer, behind, first, second) in rows {
        let asks = call("c1", "cancel", &json!({"order": "A-1"}));
        let mut conversation = vec![says("user", "Cancel A-1")];
        let one = vec![model(&mut conversation, asks)];
        conversation.extend(behind.clone());
        let two = vec![model(&mut conversation, says("assistant", "All right."))];
        // The whole conversation is sent again.
        conversation.push(says("user", "thanks"));
        let three = vec![model(&mut conversation, says("assistant", "Bye."))];
        let found =
            calls_of(vec![("Cancel A-1", one, answer), ("go on", two, "All right."), ("thanks", three, "Bye.")]);
        let at = |turn, outcome: Option<&'static str>| outcome.map(|outcome| (turn, "c1".to_owned(), outcome));
        let expected: Vec<_> = at(0, first).into_iter().chain(at(1, second)).collect();
        assert_eq!(found, expected, "{answer}: {behind:?}");
    }
}

#[test]
fn a_late_call_has_the_arguments_that_the_conversation_shows_with_its_result() {
    let confirm = "Refund 50? (yes/no)";
    let edited = json!({"amount": 500});
    // The user approves another amount, or the agent takes one; or it had run in the turn that asked for it.
    for (answer, behind, turn) in
        [(confirm, vec![], 1), ("Done.", vec![says("assistant", "Done."), says("user", "yes")], 0)]
    {
        for shown in [&edited, &json!({})] {
            let mut conversation = vec![says("user", "Refund me")];
            let one = vec![model(&mut conversation, call("c1", "refund", &json!({"amount": 50})))];
            _ = conversation.pop();
            conversation.push(call("c1", "refund", shown));
            result(&mut conversation, "c1", &json!({"refunded": true}));
            conversation.extend(behind.clone());
            let two = vec![model(&mut conversation, says("assistant", "All right."))];
            conversation.push(says("user", "thanks"));
            let three = vec![model(&mut conversation, says("assistant", "Bye."))];
            let found =
                shown_calls_of(vec![("Refund me", one, answer), ("yes", two, "All right."), ("thanks", three, "Bye.")]);
            // Arguments that the agent leaves out are those of the model.
            let ran = if *shown == edited { shown.clone() } else { json!({"amount": 50}) };
            assert_eq!(found, [(turn, "c1".to_owned(), "ok", ran)], "{answer}");
        }
    }
}

#[test]
fn an_edited_call_with_an_id_that_repeats_is_no_call_of_this_turn() {
    let mut conversation = vec![says("user", "Refund me")];
    let one = vec![model(&mut conversation, call("x", "refund", &json!({"amount": 50})))];
    let mut other = vec![says("user", "And me")];
    let mut two = vec![model(&mut other, call("x", "refund", &json!({"amount": 7})))];
    result(&mut other, "x", &json!({"refunded": true}));
    two.push(model(&mut other, says("assistant", "All right.")));
    let found = shown_calls_of(vec![("Refund me", one, "Sure?"), ("And me", two, "All right.")]);
    let id = || "x".to_owned();
    assert_eq!(found, [(0, id(), "unseen", json!({"amount": 50})), (1, id(), "ok", json!({"amount": 7}))]);
}

#[test]
fn results_of_calls_that_are_approved_one_after_another_are_read_once_each() {
    let mut conversation = vec![says("user", "Cancel all")];
    let mut turns =
        vec![("Cancel all", vec![model(&mut conversation, call("c1", "cancel", &json!({"order": 1})))], "Sure?")];
    for (id, next) in [("c1", "c2"), ("c2", "c3")] {
        result(&mut conversation, id, &json!({"cancelled": true}));
        let order = next[1..].parse::<u32>().expect("a number");
        turns.push(("yes", vec![model(&mut conversation, call(next, "cancel", &json!({"order": order})))], "Sure?"));
    }
    let ids = calls_of(turns);
    let expected = [(1, "c1", "ok"), (2, "c2", "ok"), (2, "c3", "unseen")];
    assert_eq!(ids, expected.map(|(turn, id, outcome)| (turn, id.to_owned(), outcome)));
}

#[test]
fn a_result_in_the_history_is_not_that_of_a_later_call_with_the_same_id() {
    let asks = || call("x", "cancel", &json!({"order": 1}));
    let mut conversation = vec![says("user", "Cancel 1")];
    let mut one = vec![model(&mut conversation, asks())];
    result(&mut conversation, "x", &json!({"cancelled": true}));
    one.push(model(&mut conversation, asks()));
    conversation.push(says("user", "go on"));
    let two = vec![model(&mut conversation, says("assistant", "All right."))];
    let found = calls_of(vec![("Cancel 1", one, "Sure?"), ("go on", two, "All right.")]);
    let id = || "x".to_owned();
    assert_eq!(found, [(0, id(), "ok"), (0, id(), "unseen")]);
}
