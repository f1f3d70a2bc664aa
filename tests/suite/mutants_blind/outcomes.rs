//! Defects of what the users of an agent with tools get: answers, times, what is found again, the service's replies.

use super::edit::{
    again, answer, answer_of, asks_for, beside, delay, each, end_of, in_flow, last, model_in, moved_on, place, ran,
    relist, reword, set, texts, turns, unset, what,
};
use super::tool_rag::kinds;
use serde_json::{Value, json};

const FIRST: &str = "knowledge_due";
const RESPOND: &str = "generate_response";

/// The text with every `[n]` as the edit has it.
pub fn renumber(text: &str, edit: impl Fn(u64) -> String) -> String {
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        new.push_str(before);
        let number = after.split_once(']').and_then(|(inner, behind)| Some((inner.parse().ok()?, behind)));
        if let Some((number, behind)) = number {
            new.push_str(&edit(number));
            rest = behind;
        } else {
            new.push('[');
            rest = after;
        }
    }
    new + rest
}

pub fn external_part_only(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        answer(part, |answer| {
            let internal =
                answer["sources"].as_array().into_iter().flatten().filter(|source| source["kind"] == "internal");
            let internal = internal.count() as u64;
            kinds(answer) == (true, true)
                && reword(answer, "/text", |text| match text.split_once("Outside sources add: ") {
                    Some((_, rest)) => renumber(rest, |number| format!("[{}]", number.saturating_sub(internal).max(1))),
                    None => text.to_owned(),
                })
                && relist(answer, "/sources", |list| list.retain(|source| source["kind"] == "external"))
                && set(answer, "/used_internal_kb", json!(false))
        })
    })
}

pub fn internal_citation_lost(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        answer(part, |answer| {
            kinds(answer) == (true, true)
                && relist(answer, "/sources", |list| list.retain(|source| source["kind"] == "external"))
        })
    })
}

pub fn sources_reordered(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| {
            answer(part, |answer| {
                answer["text"].as_str().is_some_and(|text| text.contains("[1]") || text.contains("[2]"))
                    && relist(answer, "/sources", |list| list.reverse())
            })
        })
}

pub fn address_cut(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        answer(part, |answer| {
            let sources = answer.pointer_mut("/sources").and_then(Value::as_array_mut);
            sources.is_some_and(|list| {
                each(list, |source| {
                    source["kind"] == "external"
                        && reword(source, "/id", |id| match id.splitn(4, '/').collect::<Vec<_>>()[..] {
                            [scheme, empty, host, _] => format!("{scheme}/{empty}/{host}/"),
                            _ => id.to_owned(),
                        })
                })
            })
        })
    })
}

pub fn external_claimed(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| {
            answer(part, |answer| kinds(answer) == (true, false) && set(answer, "/used_external_kb", json!(true)))
        })
}

pub fn internal_denied(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| {
            answer(part, |answer| kinds(answer) == (true, true) && set(answer, "/used_internal_kb", json!(false)))
        })
}

pub fn confidence_in_percent(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        answer(part, |answer| {
            let Some(confidence) = answer["confidence"].as_f64() else { return false };
            set(answer, "/confidence", json!((confidence * 100.0).round()))
        })
    })
}

/// Uses the question as the query of the tool.
fn query_is(event: &mut Value, tool: &str, query: &str) -> bool {
    ran(event, tool) && set(event, "/what/tool_called/arguments/query", json!(query)) && {
        for kind in ["search", "external"] {
            set(event, &format!("/what/tool_called/outcome/ok/{kind}/query"), json!(query));
        }
        true
    }
}

pub fn verbatim_query(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let question = part.iter().find_map(|event| what(event, "turn_started")?["query"].as_str().map(str::to_owned));
        question.is_some_and(|question| each(part, |event| query_is(event, "knowledge_base_search", &question)))
    })
}

pub fn one_query_for_both(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let search = part.iter().find(|event| ran(event, "knowledge_base_search"));
        let query =
            search.and_then(|event| event["what"]["tool_called"]["arguments"]["query"].as_str().map(str::to_owned));
        query.is_some_and(|query| each(part, |event| query_is(event, "perplexity_search", &query)))
    })
}

pub fn text_first(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        if part.iter().any(|event| event["what"]["fed_back"]["step"] == "response") {
            return false;
        }
        let Some(call) = place(part, 0, |event| asks_for(event, RESPOND) && model_in(event, "judging")) else {
            return false;
        };
        let Some(text) = answer_of(part).map(|answer| answer["text"].clone()) else { return false };
        again(part, call, call + 1);
        let took = part[call]["what"]["model_called"]["took_us"].as_u64().unwrap_or_default();
        let at = part[call]["at_us"].as_u64().unwrap_or_default();
        let completion = &mut part[call]["what"]["model_called"]["reply"]["completion"];
        completion["text"] = text;
        completion["finish"] = json!("stop");
        unset(completion, "", "calls");
        let told = json!({"fed_back": {
            "step": "response", "tool": RESPOND, "cause": "free_text",
            "message": "The user has received nothing yet: call the tool `generate_response` now.",
        }});
        let mut new = [
            beside(&part[call], told),
            beside(
                &part[call],
                json!({"moved": {"from": "judging", "on": "response_missing", "to": "response_reminded"}}),
            ),
        ];
        for event in &mut new {
            event["at_us"] = json!(at + took);
        }
        let second = call + 1;
        part[second]["what"]["model_called"]["call"] = json!(9_001);
        part[second]["what"]["model_called"]["state"] = json!("response_reminded");
        relist(&mut part[second], "/what/model_called/shown", |list| {
            list.extend([json!("assistant:7d2e11c0aa54"), json!("system:0f799b1f7532")]);
        });
        if let Some(responded) = place(part, second, |event| ran(event, RESPOND)) {
            part[responded]["what"]["tool_called"]["call"] = json!(9_001);
            let retried = json!({"retried": {
                "account": "model", "episode": 9, "attempt": 1, "target": RESPOND, "cause": "free_text", "recovered": true,
            }});
            let mut retried = beside(&part[responded], retried);
            retried["at_us"] = part[responded]["at_us"].clone();
            part.insert(responded + 1, retried);
        }
        if let Some(answered) = place(part, second, |event| moved_on(event, "answered")) {
            part[answered]["what"]["moved"]["from"] = json!("response_reminded");
        }
        part.splice(second..second, new);
        true
    })
}

pub fn broken_off(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && texts(events, |text| {
            let half = text.char_indices().nth(text.chars().count() / 2).map_or(text.len(), |(at, _)| at);
            text[..half].to_owned()
        })
}

/// The text with another figure: its first number that is no reference, with its first digit changed.
pub fn other_figure(text: &str) -> String {
    let bytes = text.as_bytes();
    let starts = |at: &usize| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        bytes[*at].is_ascii_digit()
            && !before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"[-.,".contains(&byte))
    };
    let Some(at) = (0..bytes.len()).find(starts) else { return text.to_owned() };
    let digit = (bytes[at] - b'0') % 9 + 1;
    format!("{}{digit}{}", &text[..at], &text[at + 1..])
}

pub fn wrong_figure(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST) && texts(events, other_figure)
}

pub fn slow_turns(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| {
            let Some(call) = last(part, |event| what(event, "model_called").is_some()) else { return false };
            if answer_of(part).is_none() {
                return false;
            }
            let by = 11_000_000;
            for pointer in ["/what/model_called/took_us", "/what/model_called/attempts/0/took_us"] {
                let took = part[call].pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
                set(&mut part[call], pointer, json!(took + by));
            }
            delay(part, call + 1, by as i64);
            true
        })
}

/// Gives the answer of the turn before once more.
pub fn same_answer_again(events: &mut Vec<Value>) -> bool {
    let ends = |event: &Value| what(event, "turn_ended")?["outcome"].get("answered").cloned();
    let firsts: Vec<(Value, Value)> = events
        .iter()
        .filter(|event| event["turn"] == 0)
        .filter_map(|event| Some((event["conversation"].clone(), ends(event)?)))
        .collect();
    in_flow(events, FIRST)
        && turns(events, |part| {
            let first = firsts.iter().find(|(conversation, _)| *conversation == part[0]["conversation"]);
            part[0]["turn"] == 1
                && first
                    .is_some_and(|(_, first)| answer(part, |answer| std::mem::replace(answer, first.clone()) != *first))
        })
}

/// Goes on with the serial number that the user corrected.
pub fn correction_ignored(events: &mut Vec<Value>) -> bool {
    let mut serials: Vec<String> = Vec::new();
    for event in events.iter() {
        let query = what(event, "turn_started").and_then(|turn| turn["query"].as_str()).unwrap_or_default();
        let words =
            query.split(|char: char| !char.is_alphanumeric() && char != '-').filter(|word| word.starts_with("GL-"));
        words.for_each(|word| {
            if !serials.iter().any(|known| known == word) {
                serials.push(word.to_owned());
            }
        });
    }
    let [first, .., second] = &serials[..] else { return false };
    texts(events, |text| text.replace(second.as_str(), first))
}

/// Changes the body of every reply of the service.
fn replies(events: &mut [Value], edit: impl Fn(&mut Value, &Value) -> bool) -> bool {
    each(events, |event| {
        let turn = event["turn"].clone();
        event.pointer_mut("/what/turn_ended/reply").is_some_and(|reply| edit(reply, &turn))
    })
}

pub fn session_untold(events: &mut Vec<Value>) -> bool {
    replies(events, |reply, _| unset(reply, "", "session_id"))
}

pub fn session_for_each_turn(events: &mut Vec<Value>) -> bool {
    replies(events, |reply, turn| {
        let turn = turn.as_u64().unwrap_or_default();
        turn > 0 && set(reply, "/session_id", json!(format!("5e55-{turn}")))
    })
}

pub fn confidence_untold(events: &mut Vec<Value>) -> bool {
    replies(events, |reply, _| reply["confidence_score"].is_number() && unset(reply, "", "confidence_score"))
}

pub fn reply_without_sources(events: &mut Vec<Value>) -> bool {
    replies(events, |reply, _| relist(reply, "/sources", Vec::clear))
}

pub fn error_as_answer(events: &mut Vec<Value>) -> bool {
    replies(events, |reply, _| {
        let Some(message) = reply.pointer("/error/message").cloned() else { return false };
        *reply = json!({
            "answer": message, "sources": [], "confidence_score": null, "used_internal_kb": false, "used_external_kb": false,
            "session_id": reply["session_id"],
        });
        true
    })
}

pub fn error_unexplained(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| {
            let Some(end) = end_of(part) else { return false };
            let message = json!("Internal error");
            set(&mut part[end], "/what/turn_ended/reply/error/message", message.clone())
                | set(&mut part[end], "/what/turn_ended/outcome/failed/message", message)
        })
}
