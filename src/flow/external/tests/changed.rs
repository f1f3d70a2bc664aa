//! Calls that did not run as the model wrote them.

use super::*;

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
