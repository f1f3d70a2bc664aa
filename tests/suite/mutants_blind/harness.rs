//! Defects of the harness, or of what it records.

use super::edit::{again, drop_all, each, end_of, relist, set, turns, unset, what};
use serde_json::{Value, json};

pub fn retries_unrecorded(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| what(event, "retried").is_some())
}

pub fn moves_unrecorded(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| event["what"]["moved"]["to"] == "answered")
}

pub fn call_recorded_twice(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let call = part.iter().position(|event| event["what"]["tool_called"]["outcome"].get("ok").is_some());
        call.is_some_and(|call| {
            again(part, call, call + 1);
            true
        })
    })
}

/// Loses the end of the last turn, as when the file was cut off.
pub fn end_lost(events: &mut Vec<Value>) -> bool {
    let end = events.iter().rposition(|event| what(event, "turn_ended").is_some());
    end.is_some_and(|end| {
        events.truncate(end);
        true
    })
}

pub fn tokens_unknown(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let of = "/what/model_called/reply/completion";
        unset(event, of, "input_tokens") | unset(event, of, "output_tokens")
    })
}

pub fn calls_of_the_first_conversation(events: &mut Vec<Value>) -> bool {
    each(events, |event| what(event, "tool_called").is_some() && set(event, "/conversation", json!(0)))
}

/// Measures a request without the attempts that failed and the waits before the last one.
pub fn last_attempt_only(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let mut less = 0;
        let changed = each(part, |event| {
            ["model_called", "tool_called"].iter().fold(false, |any, kind| {
                let Some(called) = event.pointer_mut(&format!("/what/{kind}")) else { return any };
                let attempts = called["attempts"].as_array().cloned().unwrap_or_default();
                let (Some(last), true) = (attempts.last(), attempts.len() > 1) else { return any };
                let (old, new) =
                    (called["took_us"].as_u64().unwrap_or_default(), last["took_us"].as_u64().unwrap_or_default());
                less += old.saturating_sub(new);
                relist(called, "/attempts", |list| _ = list.drain(..list.len() - 1));
                set(called, "/took_us", json!(new)) | any
            })
        });
        let end = end_of(part);
        changed
            && end.is_some_and(|end| {
                let took = part[end]["what"]["turn_ended"]["took_us"].as_u64().unwrap_or_default();
                set(&mut part[end], "/what/turn_ended/took_us", json!(took.saturating_sub(less)))
            })
    })
}

pub fn milliseconds(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let took = event["what"]["turn_ended"]["took_us"].as_u64().unwrap_or_default();
        set(event, "/what/turn_ended/took_us", json!(took / 1_000))
    })
}

pub fn calls_not_listed(events: &mut Vec<Value>) -> bool {
    each(events, |event| unset(event, "/what/model_called/reply/completion", "calls"))
}

pub fn history_not_recorded(events: &mut Vec<Value>) -> bool {
    each(events, |event| relist(event, "/what/turn_ended/history", Vec::clear))
}
