//! Calls that did not run as the model wrote them, and words that stand in others.

use super::super::shown::digests;
use super::*;
use crate::flow::digest;
use crate::provider::chat::Message;

fn made(exchanges: Vec<Passed>) -> Vec<(String, Value, bool)> {
    let (events, _) = told(exchanges);
    let ok = |call: &crate::trace::ToolCalled| matches!(call.outcome, ToolOutcome::Ok(_));
    calls(&events).into_iter().map(|call| (call.tool.clone(), call.arguments.clone(), ok(call))).collect()
}

#[test]
fn a_call_that_a_guard_rewrote_is_the_one_that_the_conversation_or_the_server_shows() {
    let asks = || call("c1", "refund", &json!({"amount": 50}));
    let ran = |tool: &str, amount: u32| [(tool.to_owned(), json!({"amount": amount}), true)];
    for (shown, found) in [
        (call("c1", "refund", &json!({"amount": 20})), ran("refund", 20)),
        (call("c1", "refund_all", &json!({"amount": 500})), ran("refund_all", 500)),
        (call("c1", "refund", &json!({})), ran("refund", 50)),
    ] {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let mut exchanges = vec![model(&mut conversation, asks())];
        *conversation.last_mut().expect("a call") = shown;
        result(&mut conversation, "c1", &json!({"refunded": true}));
        exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "Done."})));
        assert_eq!(made(exchanges), found);
    }
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges = vec![model(&mut conversation, asks())];
    let text = json!({"content": [{"type": "text", "text": "refunded"}]});
    exchanges.push(mcp("refund", &json!({"amount": 500}), &text));
    result(&mut conversation, "c1", &json!("refunded"));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "Done."})));
    assert_eq!(made(exchanges), ran("refund", 500), "the server says what ran");
}

#[test]
fn parallel_calls_that_share_an_id_stay_those_that_the_model_made() {
    let (look_up, cancel) = (json!({"name": "Anna"}), json!({"order": "B-77"}));
    let asked = [call("call_0", "look_up", &look_up), call("call_0", "cancel_order", &cancel)];
    let both = asked.map(|one| one["tool_calls"][0].clone());
    let mut conversation = vec![json!({"role": "user", "content": "why?"})];
    let mut exchanges =
        vec![model(&mut conversation, json!({"role": "assistant", "content": null, "tool_calls": both}))];
    result(&mut conversation, "call_0", &json!({"order": "B-77"}));
    result(&mut conversation, "call_0", &json!({"cancelled": true}));
    exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "Done."})));
    assert_eq!(made(exchanges), [("look_up".to_owned(), look_up, true), ("cancel_order".to_owned(), cancel, true)]);
}

#[test]
fn calls_that_a_client_unpacks_from_one_of_openais_own_names_are_calls_of_those_tools() {
    let order = json!({"order": "B-77"});
    let one = |name: &str| json!({"recipient_name": name, "parameters": order});
    let parallel = json!({"tool_uses": [one("functions.look_up"), one("functions.cancel_order")]});
    let is_made = |asks: Value| {
        let mut conversation = vec![json!({"role": "user", "content": "why?"})];
        let mut exchanges = vec![model(&mut conversation, asks)];
        result(&mut conversation, "c1", &json!({"cancelled": true}));
        exchanges.push(model(&mut conversation, json!({"role": "assistant", "content": "Done."})));
        made(exchanges).into_iter().map(|(tool, arguments, _)| (tool, arguments)).collect::<Vec<_>>()
    };
    let cancelled = ("cancel_order".to_owned(), order.clone());
    assert_eq!(is_made(call("c1", "functions.cancel_order", &order)), std::slice::from_ref(&cancelled));
    let both = [("look_up".to_owned(), order.clone()), cancelled];
    assert_eq!(is_made(call("c1", "multi_tool_use.parallel", &parallel)), both);
}

#[test]
fn short_words_are_found_where_they_are_said_and_not_within_others() {
    let known = [(Role::User, "How long does delivery take?"), (Role::Assistant, "3 days."), (Role::User, "no")];
    let known = known.map(|(role, said)| (role, said.to_owned()));
    let found = |role: Role, text: &str| digests(&known, &Message::text(role, text));
    let of = |places: &[usize]| places.iter().map(|at| digest(known[*at].0, &known[*at].1)).collect::<Vec<_>>();
    for apart in ["You know nothing else.", "Answer yes or no.", "- yes: it is\n- no: it is not", "no idea"] {
        assert_eq!(found(Role::System, apart), [digest(Role::System, apart)], "{apart}");
    }
    for said in [
        "no",
        " no\n",
        "User: no",
        "<user>no</user>",
        "Ask.\n\nno\n\nBe brief.",
        "{\"role\": \"user\", \"content\": \"no\"}",
    ] {
        assert_eq!(found(Role::System, said), of(&[2]), "{said}");
        assert_eq!(found(Role::User, said), of(&[2]), "{said}");
    }
    let transcript = "You know it.\nUser: How long does delivery take?\nYou: 3 days.\nUser: no";
    assert_eq!(found(Role::System, transcript), of(&[0, 1, 2]));
    assert_eq!(found(Role::User, "They say no to that"), of(&[2]), "the user's words may be wrapped in any others");
    let with_passages = "no refunds, no\n\nHow long does delivery take?";
    assert_eq!(found(Role::User, with_passages), of(&[0]));
    let result = "{\"query\": \"How long does delivery take?\", \"note\": \"no\"}";
    assert_eq!(
        found(Role::Tool, result),
        [digest(Role::Tool, result)],
        "a result that repeats the question is a result"
    );
}
