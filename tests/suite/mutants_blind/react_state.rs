//! Defects of an agent that reasons and acts: context, style, log, state, budget.

use super::edit::{
    answer, delay, drop_all, each, last, last_text, logged, model_in, moved_on, place, relist, set, shown, turns,
    unset, what,
};
use super::react::{here, is, unsaid};
use serde_json::{Value, json};

pub fn no_summary(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| is(event, "summary"))
}

pub fn little_saved(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let before = event["what"]["logged"]["compacted"]["before"].as_u64().unwrap_or_default();
        event["what"]["logged"]["compacted"]["done"] == true
            && set(event, "/what/logged/compacted/after", json!(before * 9 / 10))
    })
}

/// Loses what must stay: one message of those that a compaction is to keep.
fn kept_lost(events: &mut [Value], role: &str) -> bool {
    let compacted = |event: &Value| logged(event, "compacted").is_some_and(|entry| entry["done"] == true);
    let Some(at) = place(events, 0, compacted) else { return false };
    let keeps = events[at]["what"]["logged"]["compacted"]["keeps"].as_array().cloned().unwrap_or_default();
    let of_role = |message: &&Value| message.as_str().is_some_and(|text| text.starts_with(role));
    let Some(lost) = keeps.iter().find(of_role).cloned() else { return false };
    shown(&mut events[at..], |_| true, |list| list.retain(|message| *message != lost))
}

pub fn decision_lost(events: &mut Vec<Value>) -> bool {
    kept_lost(events, "user:")
}

pub fn reflection_lost(events: &mut Vec<Value>) -> bool {
    kept_lost(events, "system:")
}

pub fn compaction_missing(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| logged(event, "compacted").is_some_and(|entry| entry["done"] == true))
}

pub fn ungrounded_cycles(events: &mut Vec<Value>) -> bool {
    let later = |event: &Value| logged(event, "grounding").filter(|entry| entry["step"].as_u64() > Some(1)).cloned();
    let digests: Vec<Value> = events.iter().filter_map(|event| Some(later(event)?["shown"].clone())).collect();
    let thinking = |event: &Value| model_in(event, "thinking");
    drop_all(events, |event| later(event).is_some()) && {
        shown(events, thinking, |list| list.retain(|message| !digests.contains(message)));
        true
    }
}

/// Changes the words of the model in an answer, without the notices, of turns in a style.
fn words(events: &mut Vec<Value>, style: &str, edit: impl Fn(&[Value], &str) -> String) -> bool {
    here(events)
        && turns(events, |part| {
            let styled = part
                .iter()
                .any(|event| logged(event, "style").is_some_and(|entry| style.is_empty() || entry["style"] == style));
            let copy = part.clone();
            styled
                && answer(part, |answer| {
                    let text = answer["text"].as_str().unwrap_or_default();
                    let (own, notes) = text.split_at(text.find("\n\nNote:").unwrap_or(text.len()));
                    let new = format!("{}{notes}", edit(&copy, own));
                    set(answer, "/text", json!(new))
                })
        })
}

pub fn filler(events: &mut Vec<Value>) -> bool {
    words(events, "", |_, text| format!("Great question! I'd be happy to help you with that. {text}"))
}

pub fn long_winded(events: &mut Vec<Value>) -> bool {
    words(events, "concise", |part, text| {
        let hits = part
            .iter()
            .filter_map(|event| event["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"].as_array())
            .flatten();
        hits.filter_map(|hit| hit["excerpt"].as_str()).fold(text.to_owned(), |text, more| format!("{text} {more}"))
    })
}

fn first_sentence(text: &str) -> String {
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    let cited = text[..end].contains('[') || !text.contains("[1]");
    format!("{}{}", &text[..end], if cited { "" } else { " [1]" })
}

pub fn too_short(events: &mut Vec<Value>) -> bool {
    words(events, "detailed", |_, text| first_sentence(text))
}

pub fn wish_ignored(events: &mut Vec<Value>) -> bool {
    let wished = |event: &Value| {
        logged(event, "style").is_some_and(|style| {
            style["style"] == "detailed"
                && style["because"].as_str().is_some_and(|why| why.contains("wish") || why.contains("asks for"))
        })
    };
    turns(events, |part| {
        let Some(at) = place(part, 0, wished) else { return false };
        part[at]["what"]["logged"]["style"] =
            json!({"style": "concise", "because": "the question is short and direct"});
        let end = part.iter().position(|event| what(event, "turn_ended").is_some());
        if let Some(end) = end {
            set(&mut part[end], "/what/turn_ended/reply/trajectory/style", json!("concise"));
        }
        answer(part, |answer| {
            let text = answer["text"].as_str().unwrap_or_default();
            let (own, notes) = text.split_at(text.find("\n\nNote:").unwrap_or(text.len()));
            let new = format!("{}{notes}", first_sentence(own));
            set(answer, "/text", json!(new))
        });
        true
    })
}

pub fn every_step_is_the_first(events: &mut Vec<Value>) -> bool {
    each(events, |event| set(event, "/what/logged/thought/step", json!(1)))
}

pub fn trigger_unknown(events: &mut Vec<Value>) -> bool {
    each(events, |event| set(event, "/what/logged/reflection/trigger", json!("error")))
}

pub fn always_efficient(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let useful = event["what"]["logged"]["efficiency"]["useful"].clone();
        let told = set(event, "/what/logged/efficiency/actual", useful);
        set(event, "/what/turn_ended/reply/trajectory/efficiency", json!(1.0)) | told
    })
}

pub fn efficiency_not_logged(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| is(event, "efficiency"))
}

pub fn failure_without_messages(events: &mut Vec<Value>) -> bool {
    each(events, |event| relist(event, "/what/logged/failure/context/shown", Vec::clear))
}

pub fn failure_without_context(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let state = event["what"]["logged"]["failure"]["context"]["state"].clone();
        set(event, "/what/logged/failure/context", json!({"state": state}))
    })
}

pub fn wrong_template(events: &mut Vec<Value>) -> bool {
    let thinking = events.iter().find(|event| here(std::slice::from_ref(*event)));
    let Some(prompt) = thinking.map(|event| event["what"]["model_called"]["shown"][0].clone()).filter(Value::is_string)
    else {
        return false;
    };
    each(events, |event| model_in(event, "answering") && set(event, "/what/model_called/shown/0", prompt.clone()))
}

pub fn not_stored(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| logged(event, "persisted").is_some_and(|entry| entry["state"] == "observing"))
}

/// Stores a state only when the next request has come back.
pub fn stored_late(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let stored = |event: &Value| logged(event, "persisted").is_some_and(|entry| entry["state"] == "answering");
        let Some(at) = place(part, 0, stored) else { return false };
        let Some(call) = place(part, at, |event| model_in(event, "answering")) else { return false };
        let mut event = part.remove(at);
        event["at_us"] = part[call]["at_us"].clone();
        part.insert(call, event);
        true
    })
}

pub fn starts_over(events: &mut Vec<Value>) -> bool {
    each(events, |event| set(event, "/what/logged/restored/state", json!("thinking")))
}

pub fn not_restored(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| logged(event, "restored").is_some_and(|entry| entry.get("state").is_none()))
}

pub fn not_cleared(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| event["what"]["logged"] == "cleared")
}

pub fn usage_of_request_only(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let used = event["what"]["logged"]["used"].clone();
        set(event, "/what/logged/used/session_input", used["input"].clone())
            | set(event, "/what/logged/used/session_output", used["output"].clone())
    })
}

pub fn tokens_in_one_sum(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let Some(used) = event.pointer_mut("/what/logged/used") else { return false };
        let of = |name: &str| used[name].as_u64().unwrap_or_default();
        *used = json!({
            "input": of("input") + of("output"), "output": 0,
            "session_input": of("session_input") + of("session_output"), "session_output": 0,
        });
        true
    })
}

pub fn estimate_too_low(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let expected = event["what"]["logged"]["estimated"]["expected"].as_u64().unwrap_or_default();
        set(event, "/what/logged/estimated/most", json!(expected / 3))
            | set(event, "/what/logged/estimated/expected", json!(expected / 4))
    })
}

pub fn no_estimate(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| is(event, "estimated"))
}

/// Asks for the answer although the budget is used up.
pub fn over_budget(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(moved) = place(part, 0, |event| moved_on(event, "budget_used_up")) else { return false };
        let Some(call) = last(&part[..moved], |event| what(event, "model_called").is_some()) else { return false };
        let Some(used) = last(&part[..moved], |event| is(event, "used")) else { return false };
        let mut asked = part[call].clone();
        let text = "The documents say little about this.";
        asked["at_us"] = part[moved]["at_us"].clone();
        asked["what"]["model_called"]["call"] = json!(9_001);
        asked["what"]["model_called"]["state"] = json!("answering");
        asked["what"]["model_called"]["tool_choice"] = json!("none");
        let completion = &mut asked["what"]["model_called"]["reply"]["completion"];
        completion["text"] = json!(text);
        completion["finish"] = json!("stop");
        completion["input_tokens"] = json!(9_200);
        unset(completion, "", "calls");
        let mut total = part[used].clone();
        let entry = &mut total["what"]["logged"]["used"];
        let output = asked["what"]["model_called"]["reply"]["completion"]["output_tokens"].as_u64().unwrap_or_default();
        let sum = |name: &str, more: u64| json!(entry[name].as_u64().unwrap_or_default() + more);
        let (input_sum, output_sum) = (sum("session_input", 9_200), sum("session_output", output));
        *entry = json!({"input": 9_200, "output": output, "session_input": input_sum, "session_output": output_sum});
        total["at_us"] = asked["at_us"].clone();
        let mut on = part[moved].clone();
        on["what"]["moved"]["to"] = json!("answering");
        on["what"]["moved"]["on"] = json!("goal_met");
        part[moved]["what"]["moved"]["from"] = json!("answering");
        let took = asked["what"]["model_called"]["took_us"].as_u64().unwrap_or_default() as i64;
        part.splice(moved..moved, [on, asked, total]);
        delay(part, moved + 2, took);
        drop_all(part, |event| is(event, "notice"));
        last_text(part).is_some_and(|text| super::edit::deliver(part, "budget_used_up", &text))
    })
}

pub fn shorter_context_untold(events: &mut Vec<Value>) -> bool {
    unsaid(events, "context", true)
}

pub fn fresh_session_untold(events: &mut Vec<Value>) -> bool {
    unsaid(events, "session", true)
}

pub fn cost_untold(events: &mut Vec<Value>) -> bool {
    let untold = unsaid(events, "budget", true);
    untold && {
        each(events, |event| set(event, "/what/logged/estimated/warned", json!(false)));
        true
    }
}
