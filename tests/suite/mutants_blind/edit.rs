//! Ways to change the events of a trial.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The event of a kind, without its time and turn.
pub fn what<'e>(event: &'e Value, kind: &str) -> Option<&'e Value> {
    event["what"].get(kind)
}

/// The entry of the agent's log of a kind.
pub fn logged<'e>(event: &'e Value, kind: &str) -> Option<&'e Value> {
    event["what"]["logged"].get(kind)
}

/// Whether the event is an accepted call of the tool.
pub fn ran(event: &Value, tool: &str) -> bool {
    event["what"]["tool_called"]["tool"] == tool && event["what"]["tool_called"]["outcome"].get("ok").is_some()
}

/// Whether the event is a completion that calls the tool.
pub fn asks_for(event: &Value, tool: &str) -> bool {
    event["what"]["model_called"]["reply"]["completion"]["calls"]
        .as_array()
        .is_some_and(|calls| calls.contains(&json!(tool)))
}

/// Whether the event is a call of the model in that state of the flow.
pub fn model_in(event: &Value, state: &str) -> bool {
    event["what"]["model_called"]["state"] == state
}

/// Whether the event is a move of the flow on that event.
pub fn moved_on(event: &Value, on: &str) -> bool {
    event["what"]["moved"]["on"] == on
}

/// Whether the trial is one of the flow, by the first state of its turns.
pub fn in_flow(events: &[Value], first: &str) -> bool {
    events.iter().any(|event| model_in(event, first) || event["what"]["moved"]["from"] == first)
}

/// Place of the first event from `from` on that fits.
pub fn place(events: &[Value], from: usize, fits: impl Fn(&Value) -> bool) -> Option<usize> {
    events.iter().skip(from).position(fits).map(|found| found + from)
}

/// Place of the last event that fits.
pub fn last(events: &[Value], fits: impl Fn(&Value) -> bool) -> Option<usize> {
    events.iter().rposition(fits)
}

/// Changes every event; whether one was changed.
pub fn each(events: &mut [Value], edit: impl FnMut(&mut Value) -> bool) -> bool {
    events.iter_mut().map(edit).fold(false, |any, one| any | one)
}

/// Sets the value at a pointer; whether it was there and another one.
pub fn set(value: &mut Value, pointer: &str, new: Value) -> bool {
    value.pointer_mut(pointer).is_some_and(|old| std::mem::replace(old, new.clone()) != new)
}

/// Removes a member of the object at a pointer; whether it was there.
pub fn unset(value: &mut Value, pointer: &str, member: &str) -> bool {
    let object = value.pointer_mut(pointer).and_then(Value::as_object_mut);
    object.is_some_and(|object| object.shift_remove(member).is_some())
}

/// Changes the text at a pointer; whether there was one and it is another now.
pub fn reword(value: &mut Value, pointer: &str, edit: impl Fn(&str) -> String) -> bool {
    let Some(old) = value.pointer(pointer).and_then(Value::as_str).map(&edit) else { return false };
    set(value, pointer, json!(old))
}

/// Changes the list at a pointer; whether there was one and it is another now.
pub fn relist(value: &mut Value, pointer: &str, edit: impl Fn(&mut Vec<Value>)) -> bool {
    let Some(list) = value.pointer_mut(pointer).and_then(Value::as_array_mut) else { return false };
    let before = list.clone();
    edit(list);
    *list != before
}

/// Replaces a text in every string of a value; whether it occurred.
pub fn replace(value: &mut Value, from: &str, to: &str) -> bool {
    match value {
        Value::String(text) if text.contains(from) => {
            *text = text.replace(from, to);
            true
        }
        Value::Array(list) => list.iter_mut().fold(false, |any, one| any | replace(one, from, to)),
        Value::Object(map) => map.values_mut().fold(false, |any, one| any | replace(one, from, to)),
        _ => false,
    }
}

/// Removes the events that fit; whether there was one.
pub fn drop_all(events: &mut Vec<Value>, fits: impl Fn(&Value) -> bool) -> bool {
    let before = events.len();
    events.retain(|event| !fits(event));
    events.len() != before
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Moves the events from `from` on by a time, to later or earlier, with the length of their turn.
pub fn delay(events: &mut [Value], from: usize, by: i64) {
    for event in events.iter_mut().skip(from) {
        event["at_us"] = json!(number(&event["at_us"]).saturating_add_signed(by));
        if let Some(took) = event.pointer_mut("/what/turn_ended/took_us") {
            *took = json!(number(took).saturating_add_signed(by));
        }
    }
}

/// Removes the events `from..to`, with the time that they took.
pub fn cut(events: &mut Vec<Value>, from: usize, to: usize) {
    let took = number(&events[to]["at_us"]).saturating_sub(number(&events[from]["at_us"]));
    delay(events, to, -(took as i64));
    events.drain(from..to);
}

/// Puts the events `from..to` another time at `to`, with the time that they took.
pub fn again(events: &mut Vec<Value>, from: usize, to: usize) {
    let took = number(&events[to]["at_us"]).saturating_sub(number(&events[from]["at_us"])) as i64;
    let mut copies = events[from..to].to_vec();
    delay(&mut copies, 0, took);
    delay(events, to, took);
    events.splice(to..to, copies);
}

/// An event like another one in time and turn.
pub fn beside(event: &Value, what: Value) -> Value {
    let mut new = event.clone();
    new["what"] = what;
    new
}

/// Changes each turn on its own, whatever happened beside it, and keeps what follows in time and its numbers.
pub fn turns(events: &mut Vec<Value>, edit: impl Fn(&mut Vec<Value>) -> bool) -> bool {
    let turn_of = |event: &Value| (number(&event["conversation"]), number(&event["turn"]));
    let mut placed: Vec<Value> = events.clone();
    for (place, event) in placed.iter_mut().enumerate() {
        event["place"] = json!(place);
    }
    let mut all = Vec::new();
    events.iter().map(turn_of).for_each(|turn| {
        if !all.contains(&turn) {
            all.push(turn);
        }
    });
    let mut changed = false;
    for turn in all {
        let (mut part, rest): (Vec<_>, Vec<_>) = placed.iter().cloned().partition(|event| turn_of(event) == turn);
        let end = |part: &[Value]| part.last().map_or(0, |event| number(&event["at_us"]));
        let (old, last_place) = (end(&part), part.last().map_or(0, |event| number(&event["place"])));
        if !edit(&mut part) {
            continue;
        }
        changed = true;
        let mut latest = 0;
        for event in &mut part {
            latest = number(&event["place"]).max(latest);
            event["place"] = json!(latest);
        }
        let by = end(&part) as i64 - old as i64;
        let rest = rest.into_iter().map(|mut event| {
            if number(&event["place"]) > last_place {
                event["at_us"] = json!(number(&event["at_us"]).saturating_add_signed(by));
            }
            event
        });
        placed = part.into_iter().chain(rest).collect();
        placed.sort_by_key(|event| number(&event["place"]));
    }
    if changed {
        each(&mut placed, |event| unset(event, "", "place"));
        *events = placed;
        number_calls(events);
    }
    changed
}

/// Numbers the completions from 0 where some are missing or double.
fn number_calls(events: &mut [Value]) {
    let mut calls: Vec<u64> = events.iter().filter_map(|event| what(event, "model_called")?["call"].as_u64()).collect();
    calls.sort_unstable();
    if calls.iter().copied().eq(0..calls.len() as u64) {
        return;
    }
    let (mut new, mut next) = (BTreeMap::new(), 0);
    for event in events {
        if let Some(call) = event.pointer_mut("/what/model_called/call") {
            new.insert(number(call), next);
            *call = json!(next);
            next += 1;
        }
        if let Some(call) = event.pointer_mut("/what/tool_called/call") {
            *call = json!(new.get(&number(call)).copied().unwrap_or_else(|| number(call)));
        }
    }
}

/// Where a turn's answer or error is.
pub fn end_of(part: &[Value]) -> Option<usize> {
    place(part, 0, |event| what(event, "turn_ended").is_some())
}

/// The turn's answer, as the user got it.
pub fn answer_of(part: &[Value]) -> Option<&Value> {
    what(&part[end_of(part)?], "turn_ended")?["outcome"].get("answered")
}

/// Changes the turn's answer wherever it is: at its end, in the service's reply, in the call or the text that gave it.
pub fn answer(part: &mut [Value], edit: impl Fn(&mut Value) -> bool) -> bool {
    let Some(before) = answer_of(part).cloned() else { return false };
    let mut after = before.clone();
    if !edit(&mut after) || after == before {
        return false;
    }
    if let Some(call) = last(part, |event| ran(event, "generate_response")) {
        let arguments = &mut part[call]["what"]["tool_called"]["arguments"];
        for (name, argument) in [
            ("text", "answer"),
            ("sources", "sources"),
            ("confidence", "confidence_score"),
            ("used_internal_kb", "used_internal_kb"),
            ("used_external_kb", "used_external_kb"),
        ] {
            if let Some(value) = after.get(name) {
                arguments[argument] = value.clone();
            }
        }
    }
    let (old, new) = (before["text"].as_str().unwrap_or_default(), after["text"].as_str().unwrap_or_default());
    let own = new.split("\n\nNote:").next().unwrap_or_default();
    if let Some(text) = last(part, |event| what(event, "model_called").is_some())
        .and_then(|call| part[call].pointer_mut("/what/model_called/reply/completion/text"))
        && text.as_str().is_some_and(|text| old.starts_with(text))
    {
        *text = json!(own);
    }
    let Some(end) = end_of(part) else { return false };
    let ended = &mut part[end]["what"]["turn_ended"];
    if let Some(reply) = ended.get_mut("reply").filter(|reply| reply.get("answer").is_some()) {
        let given = reply["sources"].as_array().cloned().unwrap_or_default();
        let sources = after["sources"].as_array().into_iter().flatten().map(|source| {
            let same = given.iter().find(|given| given["id"] == source["id"]);
            same.cloned().unwrap_or_else(
                || json!({"kind": source["kind"], "id": source["id"], "title": source["title"], "url": null}),
            )
        });
        reply["sources"] = sources.collect();
        reply["answer"] = after["text"].clone();
        reply["confidence_score"] = after["confidence"].clone();
        reply["used_internal_kb"] = after["used_internal_kb"].clone();
        reply["used_external_kb"] = after["used_external_kb"].clone();
    }
    ended["outcome"]["answered"] = after;
    true
}

/// Changes the text of every answer.
pub fn texts(events: &mut Vec<Value>, edit: impl Fn(&str) -> String) -> bool {
    turns(events, |part| answer(part, |answer| reword(answer, "/text", &edit)))
}

/// Ends a turn at an event with an error, for which nothing that follows is needed.
pub fn fail(part: &mut Vec<Value>, at: usize, on: &str, kind: &str, message: &str) -> bool {
    let Some(end) = end_of(part).filter(|end| *end > at) else { return false };
    let state = part[..at].iter().rev().find_map(|event| {
        let (to, state) = (&event["what"]["moved"]["to"], &event["what"]["model_called"]["state"]);
        to.as_str().or(state.as_str())
    });
    let state = state.unwrap_or_default().to_owned();
    let stored = part[at..end].iter().any(|event| logged(event, "persisted").is_some());
    let at_us = part[at]["at_us"].clone();
    cut(part, at, end);
    let mut ended = vec![beside(&part[at], json!({"moved": {"from": state, "on": on, "to": "failed"}}))];
    if stored {
        ended.push(beside(&part[at], json!({"logged": {"persisted": {"state": "failed"}}})));
    }
    let outcome = &mut part[at]["what"]["turn_ended"];
    outcome["outcome"] = json!({"failed": {"kind": kind, "message": message}});
    if let Some(reply) = outcome.get_mut("reply") {
        *reply = json!({"error": {"kind": kind, "message": message}, "session_id": reply["session_id"]});
    }
    part[at]["at_us"] = at_us;
    part.splice(at..at, ended);
    true
}

/// Gives the user a text where the turn ended with an error of that kind.
pub fn deliver(part: &mut [Value], kind: &str, text: &str) -> bool {
    let Some(end) = end_of(part).filter(|end| part[*end]["what"]["turn_ended"]["outcome"]["failed"]["kind"] == kind)
    else {
        return false;
    };
    let given = json!({"text": text, "sources": [], "used_internal_kb": false, "used_external_kb": false});
    let ended = &mut part[end]["what"]["turn_ended"];
    ended["outcome"] = json!({"answered": given});
    if let Some(reply) = ended.get_mut("reply") {
        *reply = json!({
            "answer": text, "sources": [], "confidence_score": null, "used_internal_kb": false, "used_external_kb": false,
            "session_id": reply["session_id"],
        });
    }
    each(part, |event| {
        event["what"]["moved"]["to"] == "failed"
            && (set(event, "/what/moved/to", json!("answered")) | set(event, "/what/moved/on", json!("answered")))
    });
    each(part, |event| {
        logged(event, "persisted").is_some_and(|entry| entry["state"] == "failed")
            && set(event, "/what/logged/persisted/state", json!("answered"))
    });
    true
}

/// The text of the turn's last completion.
pub fn last_text(part: &[Value]) -> Option<String> {
    let call = last(part, |event| what(event, "model_called").is_some())?;
    Some(part[call]["what"]["model_called"]["reply"]["completion"]["text"].as_str()?.to_owned())
}

/// Changes what the model was shown, in every completion that fits.
pub fn shown(events: &mut [Value], fits: impl Fn(&Value) -> bool, edit: impl Fn(&mut Vec<Value>)) -> bool {
    each(events, |event| fits(event) && relist(event, "/what/model_called/shown", &edit))
}

/// Takes the turns before out of what the model is shown.
pub fn without_history(events: &mut [Value]) -> bool {
    let mut histories = BTreeMap::new();
    for event in events.iter() {
        if let Some(ended) = what(event, "turn_ended") {
            histories.insert((number(&event["conversation"]), number(&event["turn"])), ended["history"].clone());
        }
    }
    each(events, |event| {
        let before = number(&event["turn"]).checked_sub(1).map(|turn| (number(&event["conversation"]), turn));
        let Some(history) = before.and_then(|before| histories.get(&before)?.as_array()) else { return false };
        relist(event, "/what/model_called/shown", |list| list.retain(|message| !history.contains(message)))
    })
}
