//! Defects of an agent with tools for its knowledge base and an external search.

use super::edit::{
    again, answer, answer_of, asks_for, beside, cut, delay, deliver, each, fail, in_flow, last, last_text, model_in,
    moved_on, place, ran, relist, reword, set, shown, turns, unset, what,
};
use serde_json::{Value, json};

const KNOWLEDGE: &str = "knowledge_base_search";
const EXTERNAL: &str = "perplexity_search";
const INDEX: &str = "index_keywords";
const RESPOND: &str = "generate_response";
const FIRST: &str = "knowledge_due";

pub fn kinds(answer: &Value) -> (bool, bool) {
    let of =
        |kind: &str| answer["sources"].as_array().is_some_and(|list| list.iter().any(|source| source["kind"] == kind));
    (of("internal"), of("external"))
}

pub fn system_prompt_lost(events: &mut Vec<Value>) -> bool {
    let later = |event: &Value| {
        ["judging", "keywords_due", "keywords_reminded", "response_reminded"].iter().any(|state| model_in(event, state))
    };
    shown(events, later, |list| {
        list.retain(|message| !message.as_str().is_some_and(|text| text.starts_with("system:")));
    })
}

pub fn text_beside_response(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(text) = answer_of(part).map(|answer| answer["text"].clone()) else { return false };
        let Some(call) = last(part, |event| asks_for(event, RESPOND)) else { return false };
        part[call]["what"]["model_called"]["reply"]["completion"]["text"] = text;
        true
    })
}

pub fn hits_reversed(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        ran(event, KNOWLEDGE) && relist(event, "/what/tool_called/outcome/ok/search/hits", |hits| hits.reverse())
    })
}

/// Runs a call that was to be refused, so that the next one is not needed.
pub fn run_refused(part: &mut Vec<Value>, tool: &str, causes: &[&str]) -> bool {
    let Some(refused) = place(part, 0, |event| {
        let called = &event["what"]["tool_called"];
        called["tool"] == tool && causes.iter().any(|cause| called["outcome"]["rejected"]["cause"] == *cause)
    }) else {
        return false;
    };
    let Some(next) = place(part, refused, |event| ran(event, tool)) else { return false };
    let Some(moved) = place(part, next, |event| what(event, "moved").is_some()) else { return false };
    let mut outcome = part[next]["what"]["tool_called"]["outcome"].clone();
    let query = part[refused]["what"]["tool_called"]["arguments"]["query"].as_str().map(str::to_owned);
    for pointer in ["/ok/search/query", "/ok/external/query"] {
        if let Some(query) = &query {
            set(&mut outcome, pointer, json!(query));
        }
    }
    part[refused]["what"]["tool_called"]["outcome"] = outcome;
    cut(part, refused + 1, moved);
    true
}

pub fn hostile_search(events: &mut Vec<Value>) -> bool {
    turns(events, |part| run_refused(part, KNOWLEDGE, &["hostile"]))
}

pub fn unchecked_search(events: &mut Vec<Value>) -> bool {
    turns(events, |part| run_refused(part, KNOWLEDGE, &["schema", "length", "unknown_kb"]))
}

pub fn hostile_external(events: &mut Vec<Value>) -> bool {
    turns(events, |part| run_refused(part, EXTERNAL, &["hostile", "not_json"]))
}

/// Answers without the search that came before.
fn unsearched(part: &mut Vec<Value>) -> bool {
    if part.iter().any(|event| asks_for(event, EXTERNAL)) || answer_of(part).is_none() {
        return false;
    }
    let Some(asked) = place(part, 0, |event| asks_for(event, KNOWLEDGE)) else { return false };
    let Some(responds) = place(part, asked, |event| asks_for(event, RESPOND) && model_in(event, "judging")) else {
        return false;
    };
    if !part[responds..].iter().any(|event| ran(event, RESPOND)) {
        return false;
    }
    let before = part[asked]["what"]["model_called"].clone();
    part[responds]["what"]["model_called"]["shown"] = before["shown"].clone();
    part[responds]["what"]["model_called"]["state"] = before["state"].clone();
    if let Some(moved) = place(part, responds, |event| moved_on(event, "answered")) {
        part[moved]["what"]["moved"]["from"] = before["state"].clone();
    }
    cut(part, asked, responds);
    answer(part, |answer| set(answer, "/sources", json!([])) | set(answer, "/used_internal_kb", json!(false)))
}

pub fn first_turn_unsearched(events: &mut Vec<Value>) -> bool {
    turns(events, |part| part[0]["turn"] == 0 && unsearched(part))
}

pub fn follow_up_unsearched(events: &mut Vec<Value>) -> bool {
    turns(events, |part| part[0]["turn"] != 0 && unsearched(part))
}

pub fn vague_reminder(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        set(event, "/what/fed_back/message", json!("Your last message was not valid. Please try again."))
    })
}

pub fn memory_delivered(events: &mut Vec<Value>) -> bool {
    turns(events, |part| last_text(part).is_some_and(|text| deliver(part, "mandatory_call_missing", &text)))
}

/// Gives up at the feedback for a step.
fn gives_up(part: &mut Vec<Value>, step: &str, on: &str, kind: &str) -> bool {
    let Some(told) = place(part, 0, |event| event["what"]["fed_back"]["step"] == step) else { return false };
    answer_of(part).is_some()
        && fail(part, told, on, kind, "No answer was given: the language model did not make the call that is needed.")
}

pub fn no_second_search(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| gives_up(part, "knowledge_base", "knowledge_missing", "mandatory_call_missing"))
}

pub fn no_second_response(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST) && turns(events, |part| gives_up(part, "response", "response_missing", "response_missing"))
}

fn found_outside(query: &str) -> Value {
    json!({"external": {
        "result": "result-1",
        "query": query,
        "answer": "Several guides describe the subject in general terms and recommend the manual of the maker [1].",
        "citations": [{"title": "A general guide", "url": "https://guides.example.org/general"}],
        "model": "perplexity-sim", "input_tokens": 24, "output_tokens": 31,
    }})
}

/// Searches outside, and indexes what is found, although the knowledge base was enough.
pub fn needless_external(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        if part[0]["turn"] != 0 || !part.iter().any(|event| ran(event, KNOWLEDGE)) {
            return false;
        }
        let enough = answer_of(part).is_some_and(|answer| kinds(answer) == (true, false));
        if !enough || part.iter().any(|event| asks_for(event, EXTERNAL)) {
            return false;
        }
        let Some(at) = place(part, 0, |event| asks_for(event, RESPOND) && model_in(event, "judging")) else {
            return false;
        };
        let question = part.iter().find_map(|event| what(event, "turn_started")?["query"].as_str());
        let query = format!("{} facts", question.unwrap_or_default().trim_end_matches('?'));
        let mut asks = part[at].clone();
        let completion = &mut asks["what"]["model_called"]["reply"]["completion"];
        completion["calls"] = json!([EXTERNAL]);
        let mut indexes = asks.clone();
        indexes["what"]["model_called"]["state"] = json!("keywords_due");
        indexes["what"]["model_called"]["reply"]["completion"]["calls"] = json!([INDEX]);
        let keywords = json!(["general guide", "manual of the maker", "greenhouse guide"]);
        let call = |id: &str, tool: &str, arguments: Value, ok: Value, took: u64| json!({"tool_called": {"call": 0, "id": id, "tool": tool, "arguments": arguments, "outcome": {"ok": ok}, "took_us": took}});
        let start = part[at].clone();
        let mut new = vec![
            asks,
            beside(&start, call("call_b11d0001", EXTERNAL, json!({"query": query}), found_outside(&query), 1_500_000)),
            beside(&start, json!({"moved": {"from": "judging", "on": "external_answered", "to": "keywords_due"}})),
            indexes,
            beside(
                &start,
                call(
                    "call_b11d0002",
                    INDEX,
                    json!({"keywords": keywords, "query": query, "perplexity_result_id": "result-1"}),
                    json!({"indexed": {"result": "result-1", "keywords": keywords, "merged": [], "read_back": keywords}}),
                    400,
                ),
            ),
            beside(&start, json!({"moved": {"from": "keywords_due", "on": "keywords_indexed", "to": "judging"}})),
        ];
        // Ordinals far above those of the turn: they are numbered afterwards.
        for (event, ordinal) in new.iter_mut().zip([9_001, 9_001, 0, 9_002, 9_002, 0]) {
            for pointer in ["/what/model_called/call", "/what/tool_called/call"] {
                set(event, pointer, json!(ordinal));
            }
        }
        let took = start["what"]["model_called"]["took_us"].as_u64().unwrap_or_default() as i64;
        for (from, by) in [(1, took), (2, 1_500_000), (4, took), (5, 400)] {
            delay(&mut new, from, by);
        }
        delay(part, at, 2 * took + 1_500_400);
        let more = [
            json!("assistant:e3b0c44298fc"),
            json!("tool:2f1c60aa01d7"),
            json!("assistant:e3b0c44298fc"),
            json!("tool:11c5ac2dbea2"),
        ];
        relist(&mut new[3], "/what/model_called/shown", |list| list.extend_from_slice(&more[..2]));
        shown(&mut part[at..], |_| true, |list| list.extend_from_slice(&more));
        part.splice(at..at, new);
        true
    })
}

/// Answers from what the knowledge base has, although it does not suffice.
pub fn external_skipped(events: &mut Vec<Value>) -> bool {
    if events.iter().any(|event| event.to_string().contains("\"learned\"")) {
        return false;
    }
    turns(events, |part| {
        let Some(asked) = place(part, 0, |event| asks_for(event, EXTERNAL) && model_in(event, "judging")) else {
            return false;
        };
        let Some(responds) = last(part, |event| asks_for(event, RESPOND) && model_in(event, "judging")) else {
            return false;
        };
        if asked > responds
            || !part[asked..responds].iter().any(|event| ran(event, EXTERNAL))
            || answer_of(part).is_none()
        {
            return false;
        }
        let found = part.iter().find(|event| ran(event, KNOWLEDGE));
        let hit =
            found.and_then(|event| event["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"].get(0)).cloned();
        part[responds]["what"]["model_called"]["shown"] = part[asked]["what"]["model_called"]["shown"].clone();
        cut(part, asked, responds);
        answer(part, |answer| {
            let (text, sources) = match &hit {
                Some(hit) => {
                    (hit["excerpt"].clone(), json!([{"kind": "internal", "id": hit["id"], "title": hit["title"]}]))
                }
                None => (json!("The documents say nothing about this question."), json!([])),
            };
            set(answer, "/text", text)
                | set(answer, "/sources", sources)
                | set(answer, "/used_internal_kb", json!(hit.is_some()))
                | set(answer, "/used_external_kb", json!(false))
        })
    })
}

pub fn citations_of_service_lost(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let lost = each(part, |event| {
            ran(event, EXTERNAL) && relist(event, "/what/tool_called/outcome/ok/external/citations", Vec::clear)
        });
        lost && {
            answer(part, |answer| {
                relist(answer, "/sources", |list| list.retain(|source| source["kind"] != "external"))
            });
            true
        }
    })
}

pub fn answer_as_text(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(responds) = last(part, |event| ran(event, RESPOND)) else { return false };
        let Some(text) = answer_of(part).map(|answer| answer["text"].clone()) else { return false };
        let Some(call) = last(&part[..responds], |event| asks_for(event, RESPOND)) else { return false };
        let completion = &mut part[call]["what"]["model_called"]["reply"]["completion"];
        completion["text"] = text;
        completion["finish"] = json!("stop");
        unset(completion, "", "calls");
        part.remove(responds);
        true
    })
}

pub fn second_miss_delivered(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let refused = last(part, |event| event["what"]["tool_called"]["tool"] == RESPOND);
        let argument = refused
            .and_then(|call| part[call]["what"]["tool_called"]["arguments"]["answer"].as_str().map(str::to_owned));
        let text = last_text(part).filter(|text| !text.is_empty()).or(argument);
        text.is_some_and(|text| deliver(part, "response_missing", &text))
    })
}

/// The place of the move after a failed call of the tool that was not made good.
fn given_up(part: &[Value], tool: &str) -> Option<usize> {
    let failed = |event: &Value| {
        event["what"]["tool_called"]["tool"] == tool && event["what"]["tool_called"]["outcome"].get("failed").is_some()
    };
    let call = last(part, failed).filter(|_| !part.iter().any(|event| ran(event, tool)))?;
    place(part, call, |event| what(event, "moved").is_some())
}

pub fn external_down_is_fatal(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        given_up(part, EXTERNAL).is_some_and(|moved| {
            answer_of(part).is_some()
                && fail(part, moved, "external_failed", "external_unavailable", "The external search failed.")
        })
    })
}

pub fn not_retryable(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        event["what"]["tool_called"]["outcome"]["failed"]["retryable"] == true
            && set(event, "/what/tool_called/outcome/failed/retryable", json!(false))
    })
}

pub fn bare_error(events: &mut Vec<Value>) -> bool {
    each(events, |event| set(event, "/what/tool_called/outcome/failed/message", json!("Error")))
}

pub fn endless_retries(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(moved) = given_up(part, EXTERNAL).or_else(|| given_up(part, KNOWLEDGE)) else { return false };
        let Some(call) = last(&part[..moved], |event| what(event, "model_called").is_some()) else { return false };
        (0..6).for_each(|_| again(part, call, moved + 1));
        let mut attempts = 0;
        each(part, |event| {
            attempts += u64::from(event["what"]["retried"]["account"] == "tool");
            event["what"]["retried"]["account"] == "tool" && set(event, "/what/retried/attempt", json!(attempts))
        });
        true
    })
}

pub fn tool_results_forgotten(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST)
        && turns(events, |part| {
            let Some(call) = last(part, |event| asks_for(event, RESPOND)) else { return false };
            let tool = |message: &Value| message.as_str().is_some_and(|text| text.starts_with("tool:"));
            relist(&mut part[call], "/what/model_called/shown", |list| list.retain(|message| !tool(message)))
        })
}

pub fn history_lost(events: &mut Vec<Value>) -> bool {
    in_flow(events, FIRST) && super::edit::without_history(events) && {
        turns(events, |part| {
            part[0]["turn"] != 0
                && answer(part, |answer| {
                    reword(answer, "/text", |text| match text.split_once(": ") {
                        Some((about, rest)) if about.starts_with("About ") => rest.to_owned(),
                        _ => text.to_owned(),
                    })
                })
        });
        true
    }
}

pub fn sessions_mixed(events: &mut Vec<Value>) -> bool {
    let mut before: Vec<Value> = Vec::new();
    let mut changed = false;
    for event in events.iter_mut() {
        if event["conversation"] == 0 {
            before = what(event, "turn_ended").and_then(|ended| ended["history"].as_array().cloned()).unwrap_or(before);
        } else if !before.is_empty() {
            changed |= relist(event, "/what/model_called/shown", |list| _ = list.splice(1..1, before.iter().cloned()));
        }
    }
    changed
}

/// Leaves the call that came out of order as it would be without a check of the order.
pub fn out_of_order_runs(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let called = &event["what"]["tool_called"];
        let query = called["arguments"]["query"].as_str().unwrap_or_default().to_owned();
        called["tool"] == EXTERNAL
            && called["outcome"].get("out_of_order").is_some()
            && set(event, "/what/tool_called/outcome", json!({"ok": found_outside(&query)}))
            && set(event, "/what/tool_called/took_us", json!(1_500_000))
    })
}
