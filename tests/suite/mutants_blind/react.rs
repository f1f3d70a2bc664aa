//! Defects of an agent that reasons, searches, assesses and corrects itself: its loop.

use super::edit::{
    again, answer, answer_of, cut, drop_all, each, end_of, fail, in_flow, last, logged, model_in, moved_on, place, ran,
    relist, reword, set, shown, turns, unset, what,
};
use super::tool_rag::run_refused;
use serde_json::{Value, json};

pub const SEARCH: &str = "search_documents_for_facts";

pub fn here(events: &[Value]) -> bool {
    in_flow(events, "thinking")
}

pub fn is(event: &Value, kind: &str) -> bool {
    logged(event, kind).is_some()
}

/// Numbers the steps of the entries from `from` on higher or lower.
fn shift_steps(part: &mut [Value], from: usize, by: i64) {
    for event in part.iter_mut().skip(from) {
        let Some(entry) = event.pointer_mut("/what/logged").and_then(Value::as_object_mut) else { continue };
        for fields in entry.values_mut() {
            for pointer in ["/step", "/actual"] {
                let old = fields.pointer(pointer).and_then(Value::as_u64);
                if let Some(old) = old {
                    set(fields, pointer, json!(old.saturating_add_signed(by)));
                }
            }
        }
    }
}

/// Sums what the sessions used.
fn recount(events: &mut [Value]) {
    let mut sums = std::collections::BTreeMap::<u64, (u64, u64)>::new();
    for event in events {
        let sum = sums.entry(event["conversation"].as_u64().unwrap_or_default()).or_default();
        if is(event, "started_afresh") {
            *sum = (0, 0);
        }
        if let Some(used) = event.pointer_mut("/what/logged/used") {
            let of = |name: &str| used[name].as_u64().unwrap_or_default();
            *sum = (sum.0 + of("input"), sum.1 + of("output"));
            used["session_input"] = json!(sum.0);
            used["session_output"] = json!(sum.1);
        }
    }
}

fn counted(events: &mut Vec<Value>, edit: impl Fn(&mut Vec<Value>) -> bool) -> bool {
    here(events) && turns(events, edit) && {
        recount(events);
        true
    }
}

pub fn unreasoned_search(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let thought = last(part, |event| is(event, "thought"));
        thought.is_some_and(|at| {
            part.remove(at);
            true
        })
    })
}

pub fn reasoned_afterwards(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let Some(thought) = place(part, 0, |event| is(event, "thought")) else { return false };
        let Some(call) = place(part, thought, |event| event["what"]["tool_called"]["tool"] == SEARCH) else {
            return false;
        };
        let (thought_at, mut moved) = (part[thought]["place"].clone(), part.remove(thought));
        moved["at_us"] = part[call]["at_us"].clone();
        moved["place"] = thought_at;
        part.insert(call, moved);
        true
    })
}

pub fn no_observation(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| is(event, "observation"))
}

/// Stops at the first result, although the step ended otherwise.
fn stops_early(part: &mut Vec<Value>, on: &str) -> bool {
    let Some(first) = place(part, 0, |event| event["what"]["moved"]["from"] == "observing") else { return false };
    let Some(answering) = last(part, |event| event["what"]["moved"]["to"] == "answering") else { return false };
    if !moved_on(&part[first], on) || first >= answering || answer_of(part).is_none() {
        return false;
    }
    let found =
        part[..first].iter().find_map(|event| Some(logged(event, "graded")?["relevant"].clone())).unwrap_or(json!([]));
    let summary =
        part[..first].iter().find_map(|event| Some(logged(event, "summary")?["text"].clone())).unwrap_or(json!(""));
    part[answering]["what"]["moved"] = json!({"from": "observing", "on": "goal_met", "to": "answering"});
    let lessons = part[first..answering].iter().filter_map(|event| Some(logged(event, "reflection")?["shown"].clone()));
    let lessons: Vec<Value> = lessons.collect();
    shown(part, |_| true, |list| list.retain(|message| !lessons.contains(message)));
    cut(part, first, answering);
    part.retain(|event| !is(event, "failure"));
    if let Some(efficiency) = place(part, 0, |event| is(event, "efficiency")) {
        let useful = u64::from(found.as_array().is_some_and(|found| !found.is_empty()));
        part[efficiency]["what"]["logged"]["efficiency"] = json!({"useful": useful, "actual": 1});
    }
    answer(part, |answer| {
        relist(answer, "/sources", |list| {
            list.retain(|source| found.as_array().is_some_and(|found| found.contains(&source["id"])));
        });
        let none = answer["sources"].as_array().is_some_and(Vec::is_empty);
        none && set(answer, "/text", summary.clone()) | set(answer, "/used_internal_kb", json!(false))
    });
    true
}

pub fn stops_incomplete(events: &mut Vec<Value>) -> bool {
    counted(events, |part| stops_early(part, "incomplete"))
}

pub fn stops_with_irrelevant(events: &mut Vec<Value>) -> bool {
    counted(events, |part| stops_early(part, "irrelevant"))
}

pub fn no_search_status(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| logged(event, "status").is_some_and(|status| status["text"] == "Searching…"))
}

pub fn no_retry_status(events: &mut Vec<Value>) -> bool {
    drop_all(events, |event| logged(event, "status").is_some_and(|status| status["tokens"].is_number()))
}

/// Takes one more step where the turn was to stop.
fn one_more_step(part: &mut Vec<Value>, notice: &str) -> bool {
    let stopped = |event: &Value| {
        logged(event, "notice").is_some_and(|entry| entry["text"].as_str().is_some_and(|text| text.contains(notice)))
    };
    if !part.iter().any(stopped) {
        return false;
    }
    let starts: Vec<usize> = (0..part.len()).filter(|at| part[*at]["what"]["moved"]["to"] == "thinking").collect();
    let [.., before, after] = starts[..] else { return false };
    again(part, before + 1, after + 1);
    shift_steps(part, after + 1, 1);
    let mut call = 9_000;
    for event in part.iter_mut().skip(after + 1).take(after - before) {
        if set(event, "/what/model_called/call", json!(call + 1)) {
            call += 1;
        }
        set(event, "/what/tool_called/call", json!(call));
    }
    true
}

pub fn sixth_step(events: &mut Vec<Value>) -> bool {
    counted(events, |part| one_more_step(part, "5 steps"))
}

pub fn fourth_retry(events: &mut Vec<Value>) -> bool {
    counted(events, |part| one_more_step(part, "3 retries"))
}

/// Leaves the words of a notice out of the answer.
pub fn unsaid(events: &mut Vec<Value>, about: &str, unlogged: bool) -> bool {
    turns(events, |part| {
        let notice = |event: &Value| {
            logged(event, "notice").filter(|notice| notice["about"] == about).map(|notice| notice["text"].clone())
        };
        let Some(text) = part.iter().find_map(notice) else { return false };
        let words = format!("\n\nNote: {}", text.as_str().unwrap_or_default());
        answer(part, |answer| reword(answer, "/text", |text| text.replace(&words, ""))) && {
            let end = end_of(part).unwrap_or_default();
            relist(&mut part[end], "/what/turn_ended/reply/trajectory/notices", |list| {
                list.retain(|notice| unlogged && *notice != text);
            });
            if unlogged {
                drop_all(part, |event| notice(event).is_some());
            }
            true
        }
    })
}

pub fn stop_unexplained(events: &mut Vec<Value>) -> bool {
    unsaid(events, "stopped", false)
}

pub fn no_disclaimer(events: &mut Vec<Value>) -> bool {
    unsaid(events, "own_knowledge", true)
}

pub fn outage_untold(events: &mut Vec<Value>) -> bool {
    unsaid(events, "search", false)
}

pub fn bare_rejection(events: &mut Vec<Value>) -> bool {
    here(events)
        && each(events, |event| {
            set(event, "/what/tool_called/outcome/rejected/reason", json!("invalid input"))
                | set(event, "/what/tool_called/outcome/rejected/guidance", json!(""))
        })
}

pub fn invalid_call_runs(events: &mut Vec<Value>) -> bool {
    counted(events, |part| {
        let called = place(part, 0, |event| event["what"]["tool_called"]["outcome"]["rejected"]["cause"] == "schema");
        run_refused(part, SEARCH, &["schema"]) && {
            shift_steps(part, called.unwrap_or_default(), -1);
            true
        }
    })
}

pub fn no_reflection(events: &mut Vec<Value>) -> bool {
    counted(events, |part| {
        let Some(into) = place(part, 0, |event| event["what"]["moved"]["to"] == "reflecting") else { return false };
        let Some(out) = place(part, into, |event| event["what"]["moved"]["from"] == "reflecting") else { return false };
        let Some(digest) = part[into..out].iter().find_map(|event| Some(logged(event, "reflection")?["shown"].clone()))
        else {
            return false;
        };
        part[out]["what"]["moved"]["from"] = part[into]["what"]["moved"]["from"].clone();
        cut(part, into, out);
        shown(&mut part[into..], |_| true, |list| list.retain(|message| *message != digest));
        true
    })
}

/// Withholds lessons in the turn in which they were learned, or afterwards.
fn lessons_withheld(events: &mut [Value], in_turn: bool) -> bool {
    let mut lessons: Vec<(Value, Value)> = Vec::new();
    let mut changed = false;
    for event in events {
        if let Some(reflection) = logged(event, "reflection") {
            lessons.push((event["turn"].clone(), reflection["shown"].clone()));
        }
        let turn = event["turn"].clone();
        let hidden = |message: &Value| lessons.iter().any(|(of, lesson)| (*of == turn) == in_turn && lesson == message);
        changed |= relist(event, "/what/model_called/shown", |list| list.retain(|message| !hidden(message)));
    }
    changed
}

pub fn lesson_not_given(events: &mut Vec<Value>) -> bool {
    lessons_withheld(events, true)
}

pub fn lesson_forgotten(events: &mut Vec<Value>) -> bool {
    lessons_withheld(events, false)
}

pub fn same_approach(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let first = part.iter().find_map(|event| logged(event, "thought")?["approach"].as_str().map(str::to_owned));
        first.is_some_and(|first| {
            each(part, |event| {
                reword(event, "/what/logged/status/text", |text| match text.split_once("approach ") {
                    Some((before, _)) => format!("{before}approach {first}…"),
                    None => text.to_owned(),
                }) | set(event, "/what/logged/thought/approach", json!(first))
                    | set(event, "/what/logged/failure/approach", json!(first))
                    | set(event, "/what/tool_called/arguments/approach", json!(first))
                    | (moved_on(event, "change_approach") && set(event, "/what/moved/on", json!("retry")))
            })
        })
    })
}

pub fn no_retry_cost(events: &mut Vec<Value>) -> bool {
    each(events, |event| unset(event, "/what/logged/status", "tokens"))
}

pub fn one_ungraded(events: &mut Vec<Value>) -> bool {
    each(events, |event| relist(event, "/what/logged/graded/irrelevant", |list| _ = list.pop()))
}

pub fn all_relevant(events: &mut Vec<Value>) -> bool {
    each(events, |event| {
        let Some(graded) = event.pointer_mut("/what/logged/graded") else { return false };
        let irrelevant = graded["irrelevant"].as_array().cloned().unwrap_or_default();
        set(graded, "/irrelevant", json!([]))
            && relist(graded, "/relevant", |list| list.extend(irrelevant.iter().cloned()))
    })
}

pub fn same_words(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let search = |event: &Value| event["what"]["tool_called"]["tool"] == SEARCH;
        let Some(first) = place(part, 0, |event| ran(event, SEARCH)) else { return false };
        let query = part[first]["what"]["tool_called"]["arguments"]["query"].as_str().unwrap_or_default();
        let query = json!(format!("{query} please"));
        each(&mut part[first + 1..], |event| {
            search(event)
                && (set(event, "/what/tool_called/arguments/query", query.clone())
                    | set(event, "/what/tool_called/outcome/ok/search/query", query.clone()))
        })
    })
}

pub fn cites_irrelevant(events: &mut Vec<Value>) -> bool {
    turns(events, |part| {
        let hits: Vec<Value> = part
            .iter()
            .filter_map(|event| event["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"].as_array())
            .flatten()
            .cloned()
            .collect();
        let grades = |kind: &str| -> Vec<Value> {
            part.iter().filter_map(|event| logged(event, "graded")?[kind].as_array()).flatten().cloned().collect()
        };
        let relevant = grades("relevant");
        let Some(id) = grades("irrelevant").into_iter().find(|id| !relevant.contains(id)) else { return false };
        let title = hits.iter().find(|hit| hit["id"] == id).map(|hit| hit["title"].clone());
        answer(part, |answer| {
            let number = answer["sources"].as_array().map_or(0, Vec::len) + 1;
            number > 1
                && relist(answer, "/sources", |list| list.push(json!({"kind": "internal", "id": id, "title": title})))
                && reword(answer, "/text", |text| text.replacen(" [1]", &format!(" [1] [{number}]"), 1))
        })
    })
}

/// Answers where the documents are down with an error instead.
pub fn outage_fails(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let moved = place(part, 0, |event| moved_on(event, "own_knowledge"));
            moved.is_some_and(|moved| {
                fail(part, moved, "search_failed", "retrieval_failed", "The documents cannot be searched.")
            })
        })
}

pub fn retry_with_the_same_context(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let Some(moved) = place(part, 0, |event| moved_on(event, "shorter_context")) else { return false };
            let Some(failed) = last(&part[..moved], |event| what(event, "model_called").is_some()) else {
                return false;
            };
            let before = part[failed]["what"]["model_called"]["shown"].clone();
            let next = place(part, moved, |event| what(event, "model_called").is_some());
            next.is_some_and(|next| set(&mut part[next], "/what/model_called/shown", before))
        })
}

pub fn no_second_try(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let moved = place(part, 0, |event| moved_on(event, "shorter_context"));
            moved.is_some_and(|moved| {
                fail(part, moved, "model_unavailable", "model_unavailable", "The language model is unavailable.")
            })
        })
}

pub fn partial_result_lost(events: &mut Vec<Value>) -> bool {
    here(events)
        && turns(events, |part| {
            let moved = place(part, 0, |event| moved_on(event, "partial_result"));
            moved.is_some_and(|moved| {
                fail(part, moved, "model_unavailable", "model_unavailable", "The language model is unavailable.")
            })
        })
}

/// Does not search in the turn in which the search works again.
pub fn stays_degraded(events: &mut Vec<Value>) -> bool {
    counted(events, |part| {
        if !part.iter().any(|event| is(event, "recovered")) {
            return false;
        }
        let Some(call) = place(part, 0, |event| model_in(event, "thinking")) else { return false };
        let Some(answering) = last(part, |event| event["what"]["moved"]["to"] == "answering") else { return false };
        part[answering]["what"]["moved"] = json!({"from": "thinking", "on": "own_knowledge", "to": "answering"});
        cut(part, call, answering);
        let tool = |message: &Value| message.as_str().is_some_and(|text| text.starts_with("tool:"));
        shown(part, |_| true, |list| list.retain(|message| !tool(message)));
        if let Some(efficiency) = place(part, 0, |event| is(event, "efficiency")) {
            part[efficiency]["what"]["logged"]["efficiency"] = json!({"useful": 0, "actual": 0});
        }
        answer(part, |answer| {
            set(answer, "/text", json!("In general, this depends on the product; its manual says more."))
                | set(answer, "/sources", json!([]))
                | set(answer, "/used_internal_kb", json!(false))
        })
    })
}
