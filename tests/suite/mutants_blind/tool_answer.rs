//! Defects of the flow `tool-rag`: its answers, its failures, its context and its reply.
use super::edit::{
    Events, answer, before, break_off, calls, cite, cut, delay, each, end_of, find, flow, is, markers, pick, question,
    rejected, reword, same_turn, shown, sources, text, tools, whole,
};
use super::tool_rag::{KB, NOTHING, OUT, RESPOND, answers, asked_by, no_retry, shrug};
use serde_json::{Value, json};

/// Lets a refused response be the answer: the turn ends with it.
fn accept(events: &mut Events, i: usize) -> bool {
    let given = events[i]["what"]["tool_called"]["arguments"].clone();
    let last = before(events, end_of(events, i), is("moved")).map(|k| events[k].clone());
    let (Some(mut last), Some(sources)) = (last, given["sources"].as_array().cloned()) else { return false };
    last["what"]["moved"]["from"] = events[asked_by(events, i)]["what"]["model_called"]["state"].clone();
    events[i]["what"]["tool_called"]["outcome"] = json!({"ok": "responded"});
    let end = end_of(events, i);
    cut(events, i + 1, end);
    let end = end_of(events, i);
    last["at_us"] = events[end]["at_us"].clone();
    events.insert(end, last);
    answer(events, end + 1, "");
    reword(events, end + 1, given["answer"].as_str().unwrap_or_default());
    cite(events, end + 1, sources);
    ["used_internal_kb", "used_external_kb"].iter().all(|name| flag(events, end + 1, name, given[*name].clone()))
}

/// Sets a flag of the answer, in the call, the end of the turn and the reply.
fn flag(events: &mut Events, end: usize, name: &str, value: Value) -> bool {
    let call = before(events, end, calls(RESPOND)).unwrap_or(end);
    let ended = ["/what/turn_ended/reply", "/what/turn_ended/outcome/answered"];
    for (i, path) in [(call, "/what/tool_called/arguments"), (end, ended[0]), (end, ended[1])] {
        if let Some(old) = events[i].pointer_mut(path).and_then(|p| p.get_mut(name)) {
            *old = value.clone();
        }
    }
    true
}

/// Hides messages of earlier turns from completions: `keep` gets them and returns those that are still shown.
pub fn forget(events: &mut Events, keep: impl Fn(&[Value]) -> Vec<Value>) -> bool {
    let mut changed = false;
    for i in pick(events, |e| is("turn_started")(e) && e["turn"] != 0) {
        let earlier =
            |k: &usize| events[*k]["conversation"] == events[i]["conversation"] && is("turn_ended")(&events[*k]);
        let known = (0..i).rev().find(earlier).map(|k| events[k]["what"]["turn_ended"]["history"].clone());
        let known = known.and_then(|k| k.as_array().cloned()).unwrap_or_default();
        let kept = keep(&known);
        let turn = events[i].clone();
        for e in events[i..].iter_mut().filter(|e| same_turn(e, &turn)) {
            if let Some(all) = shown(e).filter(|s| s.len() > known.len() && s[1..].starts_with(&known)) {
                all.splice(1..=known.len(), kept.clone());
                changed |= kept.len() < known.len();
            }
        }
    }
    changed
}

/// Withholds the history, and lets the answer be what a model says that lacks it.
fn lost(events: &mut Events) -> bool {
    let changed = forget(events, |_| vec![]);
    each(events, answers(events), |ev, end| {
        if ev[end]["turn"] == 0 {
            return false;
        }
        let words = question(ev, end).trim_end_matches('?').to_lowercase();
        if let Some(i) = before(ev, end, calls(KB)) {
            ev[i]["what"]["tool_called"]["arguments"]["query"] = json!(words);
            if let Some(search) = ev[i].pointer_mut("/what/tool_called/outcome/ok/search") {
                search["query"] = json!(words);
            }
        }
        shrug(ev, end, "It is not clear what your question refers to. Please give more detail.")
    }) | changed
}

mutants! {
    "FR-009: used_internal_kb is never set", answers, |ev, end| {
        sources(ev, end).iter().any(|s| s["kind"] == "internal") && flag(ev, end, "used_internal_kb", json!(false))
    };
    "FR-010: a missing response ends the turn at once, without a retry",
        whole, |e, _| no_retry(e, "response", "response_missing");
    "FR-010: a response with an invented source is accepted",
        whole, |e, _| each(e, rejected(e, RESPOND, "unknown_source"), accept);
    "FR-010: a response whose flags contradict the calls is accepted",
        whole, |e, _| each(e, rejected(e, RESPOND, "flags"), accept);
    "FR-010: a response beside other calls, or before the keywords, is accepted",
        whole, |e, _| each(e, tools(e, RESPOND, "out_of_order"), accept);
    "FR-011: a failing Perplexity ends the turn with an internal error",
        |e| tools(e, OUT, "failed"), |ev, i| break_off(ev, i, "crashed", "internal", "An internal error occurred.");
    "FR-011: the answer does not say that the outside search was not available", answers, |ev, end| {
        let said = text(ev, end);
        let rest = said.strip_prefix("The outside search was not available, so this rests on the knowledge base alone. ");
        rest.is_some_and(|rest| reword(ev, end, rest))
    };
    "FR-011: an outage of the knowledge base is told as `nothing found`", whole, |e, _| {
        let down = |e: &Value| e["what"]["degraded"]["without"] == KB;
        each(e, answers(e), |ev, end| before(ev, end, down).is_some() && reword(ev, end, NOTHING))
    };
    "FR-012: each turn begins without the history", whole, |e, _| flow(e, "knowledge_due") && lost(e);
    "FR-012: the history holds the user's messages without the answers",
        whole, |e, _| flow(e, "knowledge_due") && forget(e, |known| known.iter().step_by(2).cloned().collect());
    "FR-012: the history holds only the last turn",
        whole, |e, _| flow(e, "knowledge_due") && forget(e, |known| known[known.len().saturating_sub(2)..].to_vec());
    "FR-012: another session's history is shown to the model", whole, |e, _| {
        let other = pick(e, |e| e["conversation"] == 0 && is("turn_ended")(e)).first().copied();
        let (true, Some(other)) = (flow(e, "knowledge_due"), other) else { return false };
        let foreign = e[other]["what"]["turn_ended"]["history"].as_array().cloned().unwrap_or_default();
        let later = pick(e, |x| x["conversation"] != 0 && is("model_called")(x));
        each(e, later, |ev, i| {
            i > other && shown(&mut ev[i]).map(|s| s.splice(1..1, foreign.clone()).count()).is_some()
        })
    };
    "FR-013: where both sources help, the answer leaves out the knowledge base", answers, |ev, end| {
        let (said, all) = (text(ev, end), sources(ev, end));
        let inside = all.iter().filter(|s| s["kind"] == "internal").count();
        let both = 0 < inside && inside < all.len();
        let Some((_, out)) = said.split_once("Outside sources add: ").filter(|_| both) else { return false };
        let out = markers(out, |n| format!("[{}]", n.saturating_sub(inside)));
        cite(ev, end, all.into_iter().filter(|s| s["kind"] != "internal").collect());
        reword(ev, end, &out)
    };
    "FR-014: external sources are lost on the way to the answer", answers, |ev, end| {
        let (inside, out): (Vec<_>, Vec<_>) = sources(ev, end).into_iter().partition(|s| s["kind"] == "internal");
        let call = before(ev, end, calls(RESPOND)).unwrap_or(end);
        let given = ev[call].clone();
        let lost = !out.is_empty() && cite(ev, end, inside) && flag(ev, end, "used_external_kb", json!(true));
        ev[call] = given;
        lost
    };
    "FR-014: the numbers in the text cite the wrong sources", answers, |ev, end| {
        let (said, n) = (text(ev, end), sources(ev, end).len());
        n > 1 && reword(ev, end, &markers(&said, |k| format!("[{}]", k % n + 1)))
    };
    "FR-001: the answer has no inline citations any more", answers, |ev, end| {
        let said = markers(&text(ev, end), |_| String::new());
        reword(ev, end, &said)
    };
    "FR-001: the answer talks to the user about the tools", answers, |ev, end| {
        let said = format!("Based on my call of knowledge_base_search, here is what I found. {}", text(ev, end));
        !sources(ev, end).is_empty() && reword(ev, end, &said)
    };
    "SC-005: the model takes four times as long", |e| find(e, "model_called"), |ev, i| {
        let took = ev[i]["what"]["model_called"]["took_us"].as_i64().unwrap_or_default();
        flow(ev, "knowledge_due") && delay(ev, i, 3 * took)
    };
    "SC-004: answers break off after the first half", answers, |ev, end| {
        let all: Vec<char> = text(ev, end).chars().collect();
        let half: String = all[..all.len() / 2].iter().collect();
        !sources(ev, end).is_empty() && reword(ev, end, half.trim_end())
    };
    "CHAT-1: the reply lacks the session", |e| find(e, "turn_ended"), |ev, i| {
        let reply = ev[i].pointer_mut("/what/turn_ended/reply").and_then(Value::as_object_mut);
        reply.is_some_and(|r| r.remove("session_id").is_some())
    };
    "CHAT-1: errors are sent as the answer's text", |e| find(e, "turn_ended"), |ev, i| {
        let reply = ev[i].pointer_mut("/what/turn_ended/reply").filter(|r| r.get("error").is_some());
        let Some(reply) = reply else { return false };
        *reply = json!({"answer": reply["error"]["message"], "sources": [], "confidence_score": null,
            "used_internal_kb": false, "used_external_kb": false, "session_id": reply["session_id"]});
        true
    };
}
