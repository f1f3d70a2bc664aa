//! Defects of keywords: how they are made, stored and used.

use super::edit::{answer, asks_for, cut, delay, each, last, moved_on, place, ran, relist, set, turns};
use serde_json::{Value, json};

const INDEX: &str = "index_keywords";
const RESPOND: &str = "generate_response";
const INDEXED: &str = "/what/tool_called/outcome/ok/indexed";

/// Changes the keywords of every call that stored some.
fn keywords(events: &mut [Value], edit: impl Fn(&Value, &mut Vec<Value>)) -> bool {
    each(events, |event| {
        if !ran(event, INDEX) {
            return false;
        }
        let arguments = event["what"]["tool_called"]["arguments"].clone();
        let changed = relist(event, "/what/tool_called/arguments/keywords", |list| edit(&arguments, list));
        let new = event["what"]["tool_called"]["arguments"]["keywords"].clone();
        changed && {
            relist(event, &format!("{INDEXED}/merged"), |merged| {
                merged.retain(|keyword| new.as_array().is_some_and(|new| new.contains(keyword)));
            });
            set(event, &format!("{INDEXED}/keywords"), new.clone()) | set(event, &format!("{INDEXED}/read_back"), new)
        }
    })
}

pub fn two_keywords(events: &mut Vec<Value>) -> bool {
    keywords(events, |_, list| list.truncate(2))
}

pub fn generic_keyword(events: &mut Vec<Value>) -> bool {
    keywords(events, |_, list| list.last_mut().into_iter().for_each(|last| *last = json!("information")))
}

pub fn sentence_as_keyword(events: &mut Vec<Value>) -> bool {
    keywords(events, |arguments, list| {
        let sentence =
            format!("what is known about {}", arguments["query"].as_str().unwrap_or_default().to_lowercase());
        list.last_mut().into_iter().for_each(|last| *last = json!(sentence));
    })
}

pub fn no_guidance(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        event["what"]["tool_called"]["tool"] == INDEX
            && set(event, "/what/tool_called/outcome/rejected/guidance", json!(""))
    })
}

pub fn origin_forgotten(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let hits = event.pointer_mut("/what/tool_called/outcome/ok/search/hits").and_then(Value::as_array_mut);
        hits.is_some_and(|hits| {
            each(hits, |hit| set(hit, "/learned/result", json!("")) && set(hit, "/title", json!("")))
        })
    })
}

pub fn merge_untold(events: &mut Vec<Value>) -> bool {
    each(events, |event| relist(event, &format!("{INDEXED}/merged"), Vec::clear))
}

pub fn one_keyword_lost(events: &mut Vec<Value>) -> bool {
    each(events, |event| relist(event, &format!("{INDEXED}/read_back"), |list| _ = list.pop()))
}

/// Accepts the answer although the keywords are missing, without a reminder.
pub fn keywords_not_asked_for(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        if !part.iter().any(|event| event["what"]["fed_back"]["step"] == "keywords") {
            return false;
        }
        let early = |event: &Value| {
            event["what"]["tool_called"]["tool"] == RESPOND
                && event["what"]["tool_called"]["outcome"].get("out_of_order").is_some()
        };
        let Some(call) = place(part, 0, early) else { return false };
        let Some(answered) = last(part, |event| moved_on(event, "answered")).filter(|moved| *moved > call) else {
            return false;
        };
        part[call]["what"]["tool_called"]["outcome"] = json!({"ok": "responded"});
        part[answered]["what"]["moved"]["from"] = json!("keywords_due");
        cut(part, call + 1, answered);
        part.retain(|event| event["what"]["retried"]["target"] != INDEX);
        true
    })
}

pub fn keywords_forgotten(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(asked) = place(part, 0, |event| asks_for(event, INDEX)) else { return false };
        let Some(indexed) = place(part, asked, |event| moved_on(event, "keywords_indexed")) else { return false };
        let Some(due) = last(&part[..asked], |event| event["what"]["moved"]["to"] == "keywords_due") else {
            return false;
        };
        part[due]["what"]["moved"]["to"] = json!("judging");
        cut(part, asked, indexed + 1);
        each(&mut part[asked..], |event| {
            relist(event, "/what/model_called/shown", |list| {
                let two_less = list.len().saturating_sub(2);
                list.truncate(two_less);
            })
        });
        true
    })
}

pub fn nothing_read_back(events: &mut Vec<Value>) -> bool {
    each(events, |event| relist(event, "/what/tool_called/outcome/ok/indexed/read_back", Vec::clear))
}

/// Finds nothing through keywords: only what the search finds without them.
pub fn keywords_unused(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let lost = each(part, |event| {
            relist(event, "/what/tool_called/outcome/ok/search/hits", |hits| {
                hits.retain(|hit| hit.get("learned").is_none());
            })
        });
        lost && {
            answer(part, |answer| {
                let learned = |source: &Value| source["id"].as_str().is_some_and(|id| id.starts_with("learned:"));
                relist(answer, "/sources", |list| list.retain(|source| !learned(source)))
                    && answer["sources"].as_array().is_some_and(Vec::is_empty)
                    && set(answer, "/text", json!("The knowledge base has no answer to this question."))
                    && set(answer, "/used_internal_kb", json!(false))
            });
            true
        }
    })
}

/// Refuses the first correction of keywords as well, and takes the second one.
pub fn correction_refused(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let refused = |event: &Value| {
            event["what"]["tool_called"]["tool"] == INDEX
                && event["what"]["tool_called"]["outcome"].get("rejected").is_some()
        };
        let Some(second) = place(part, 0, |event| ran(event, INDEX)) else { return false };
        let Some(first) = last(&part[..second], refused) else { return false };
        let Some(asked) = place(part, first, |event| asks_for(event, INDEX)).filter(|asked| *asked < second) else {
            return false;
        };
        let Some(retried) = place(part, second, |event| event["what"]["retried"]["target"] == INDEX) else {
            return false;
        };
        let took = part[asked]["what"]["model_called"]["took_us"].as_u64().unwrap_or_default() as i64;
        let mut new = [part[asked].clone(), part[first].clone(), part[retried].clone(), part[first + 1].clone()];
        let (start, place) = (part[asked]["at_us"].clone(), part[asked]["place"].clone());
        for event in &mut new {
            event["at_us"] = start.clone();
            event["place"] = place.clone();
            set(event, "/what/model_called/call", json!(9_001));
            set(event, "/what/tool_called/call", json!(9_001));
            set(event, "/what/retried/recovered", json!(false));
        }
        delay(&mut new, 1, took);
        let attempt = part[retried]["what"]["retried"]["attempt"].as_u64().unwrap_or_default();
        part[retried]["what"]["retried"]["attempt"] = json!(attempt + 1);
        delay(part, asked, took);
        part.splice(asked..asked, new);
        true
    })
}
