//! Defects of the flow `react`.
use super::edit::{
    Events, after, answer, answered, at, before, break_off, cite, cut, each, end_of, find, first_sentence, flow, logs,
    moves, pick, replace, replace_part, reword, same_turn, sources, text, tools, turn_to, unshow, whole,
};
use super::tool_answer::forget;
use serde_json::{Value, json};

const SEARCH: &str = "search_documents_for_facts";

/// Answers of this flow.
fn answers(events: &Events) -> Vec<usize> {
    if flow(events, "thinking") { answered(events) } else { vec![] }
}

/// Changes each entry of a kind in the log; returns whether one was changed.
fn entries(events: &mut Events, kind: &str, change: impl Fn(&mut Value)) -> bool {
    events.iter_mut().fold(false, |changed, e| {
        let Some(entry) = e["what"].get_mut("logged").and_then(|l| l.get_mut(kind)) else { return changed };
        let old = entry.clone();
        change(entry);
        changed || old != *entry
    })
}

/// Removes entries from the log.
fn strike(events: &mut Events, kind: &str, test: impl Fn(&Value) -> bool) -> bool {
    let (gone, length) = (logs(events, kind), events.len());
    let mut k = 0..;
    events.retain(|e| !k.next().is_some_and(|k| gone.contains(&k) && test(&e["what"]["logged"][kind])));
    events.len() < length
}

/// Removes a notice from the log, the answer and the reply.
fn unnote(events: &mut Events, about: &str) -> bool {
    for i in logs(events, "notice") {
        let notice = events[i]["what"]["logged"]["notice"].clone();
        let (end, note) = (end_of(events, i), at(&notice, "/text"));
        if notice["about"] == about && events[end]["what"]["turn_ended"]["outcome"].get("answered").is_some() {
            let said = text(events, end).replace(&format!("\n\nNote: {note}"), "");
            reword(events, end, &said);
            let told = events[end].pointer_mut("/what/turn_ended/reply/trajectory/notices");
            told.and_then(Value::as_array_mut).into_iter().for_each(|t| t.retain(|t| *t != *note));
        }
    }
    strike(events, "notice", |n| n["about"] == about)
}

/// The digests by which log entries of a kind were shown.
fn digests(events: &Events, kind: &str) -> Vec<String> {
    let all = logs(events, kind).into_iter().map(|i| &events[i]["what"]["logged"][kind]["shown"]);
    all.filter_map(|s| s.as_str().map(String::from)).collect()
}

/// Changes the answers of turns with a style.
fn styled(events: &mut Events, style: &str, change: impl Fn(&Events, usize, &str) -> String) -> bool {
    each(events, answers(events), |ev, end| {
        let is_so = |e: &Value| e["what"]["logged"]["style"]["style"] == style;
        let said = text(ev, end);
        let (said, notes) = said.split_at(said.find("\n\nNote: ").unwrap_or(said.len()));
        let new = change(ev, end, said) + notes;
        before(ev, end, is_so).is_some() && reword(ev, end, &new)
    })
}

/// What a long-winded answer adds: the beginnings of all passages that the last search found.
fn more(events: &Events, end: usize) -> String {
    let hits = |e: &Value| e["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"].as_array().cloned();
    let found = before(events, end, |e| hits(e).is_some()).and_then(|i| hits(&events[i])).unwrap_or_default();
    found.iter().map(|h| at(h, "/excerpt")).collect::<Vec<_>>().join(" ")
}

mutants! {
    "KL-1: searches come without reasoning", whole, |e, _| {
        each(e, tools(e, SEARCH, "ok"), |ev, i| {
            ev[i]["what"]["tool_called"]["arguments"]["reasoning"] = json!("");
            true
        });
        strike(e, "thought", |_| true)
    };
    "KL-1: results are not observed before the next step", whole, |e, _| strike(e, "observation", |_| true);
    "KL-1: the agent answers after its first step, although a part is open", |e| moves(e, "incomplete"), |ev, i| {
        let Some(k) = after(ev, i, |e| e["what"]["moved"]["to"] == "answering") else { return false };
        ev[i]["what"]["moved"] = json!({"from": "observing", "on": "goal_met", "to": "answering"});
        cut(ev, i + 1, k + 1);
        entries(ev, "efficiency", |x| *x = json!({"useful": 1, "actual": 1}));
        let end = end_of(ev, i);
        let said = first_sentence(&text(ev, end));
        unnote(ev, "stopped");
        let end = end_of(ev, i);
        let first: Vec<Value> = sources(ev, end).into_iter().take(1).collect();
        cite(ev, end, first) && reword(ev, end, &format!("{said} [1]")) | true
    };
    "KL-1: the waiting user sees no status", whole, |e, _| strike(e, "status", |_| true);
    "KL-1: the answer does not say that the search stopped early", whole, |e, _| unnote(e, "stopped");
    "KL-1: when the steps or retries are used up, the user gets an error", whole, |e, _| {
        let at = pick(e, |e| e["what"]["moved"]["on"].as_str().is_some_and(|on| on.ends_with("s_used_up")));
        each(e, at, |ev, i| break_off(ev, i, "no_result", "no_answer", "No answer was found."))
    };
    "KL-3: failures are not analysed before the retry", whole, |e, _| {
        let lessons = digests(e, "reflection");
        unshow(e, 0, &lessons);
        each(e, pick(e, |e| e["what"]["moved"]["to"] == "reflecting"), |ev, i| {
            after(ev, i, |e| e["what"]["moved"]["from"] == "reflecting").is_some_and(|k| k > i + 1 && cut(ev, i + 1, k))
        })
    };
    "KL-3: lessons are not shown to the retry", whole, |e, _| {
        let (old, lessons) = (e.clone(), digests(e, "reflection"));
        unshow(e, 0, &lessons);
        old != *e
    };
    "KL-3: retries keep the approach that failed", |e| tools(e, SEARCH, "ok"), |ev, i| {
        let (turn, old) = (ev[i].clone(), at(&ev[i], "/what/tool_called/arguments/approach"));
        for e in ev.iter_mut().filter(|e| same_turn(e, &turn) && old != "direct") {
            replace(e, &old, "direct");
            replace_part(e, &format!("approach {old}"), "approach direct");
        }
        old != "direct"
    };
    "KL-4: an answer from own knowledge has no disclaimer", whole, |e, _| unnote(e, "own_knowledge");
    "KL-4: the answer also cites a passage that was graded irrelevant", answers, |ev, end| {
        let none = |e: &Value| e["what"]["logged"]["graded"]["irrelevant"][0].is_string();
        let (Some(g), mut all) = (before(ev, end, none), sources(ev, end)) else { return false };
        if all.is_empty() {
            return false;
        }
        let id = &ev[g]["what"]["logged"]["graded"]["irrelevant"][0];
        all.push(json!({"kind": "internal", "id": id, "title": "Related"}));
        let (said, marker) = (text(ev, end), format!(" [{}]", all.len()));
        let (said, notes) = said.split_at(said.find("\n\nNote: ").unwrap_or(said.len()));
        cite(ev, end, all) && reword(ev, end, &format!("{said}{marker}{notes}"))
    };
    "KL-5: compaction drops the user's decisions and preferences", whole, |e, _| {
        let (notes, compacted) = (digests(e, "noted"), logs(e, "compacted"));
        let changed = entries(e, "compacted", |c| {
            c["keeps"].as_array_mut().into_iter().for_each(|k| k.retain(|k| !notes.iter().any(|n| *k == **n)));
        });
        compacted.first().filter(|_| changed).into_iter().for_each(|&i| unshow(e, i, &notes));
        changed
    };
    "KL-5: the model gets no grounding section", whole, |e, _| {
        let grounding = digests(e, "grounding");
        unshow(e, 0, &grounding);
        strike(e, "grounding", |_| true)
    };
    "KL-6: short questions get long answers", whole, |e, _| {
        styled(e, "concise", |ev, end, said| format!("{said} Here is what else belongs to it. {}", more(ev, end)))
    };
    "KL-6: questions that explore get one sentence", whole, |e, _| styled(e, "detailed", |_, _, said| {
        first_sentence(said) + if said.contains('[') { " [1]" } else { "" }
    });
    "KL-6: answers begin and end with filler", answers, |ev, end| {
        let said = format!("Great question! {} I hope this helps. Let me know if you need anything else!", text(ev, end));
        reword(ev, end, &said)
    };
    "KL-6: the user's explicit wish for the style is ignored", |e| logs(e, "style"), |ev, i| {
        let style = &mut ev[i]["what"]["logged"]["style"];
        let wished = style["because"].as_str().is_some_and(|b| b.contains("asked") || b.contains("wish"));
        let other = if style["style"] == "concise" { "detailed" } else { "concise" };
        if wished {
            *style = json!({"style": other, "because": "the question decides"});
        }
        let end = end_of(ev, i);
        let said = text(ev, end);
        let new = if other == "concise" { first_sentence(&said) + " [1]" } else { format!("{said} {}", more(ev, end)) };
        wished && (said.is_empty() || reword(ev, end, &new) | true)
    };
    "KL-7: the log of a failure lacks its context", whole, |e, _| entries(e, "failure", |f| {
        for name in ["shown", "tried", "queries", "findings"] {
            f["context"][name] = json!([]);
        }
    });
    "KL-9: the user is not told that the search is down", whole, |e, _| unnote(e, "search");
    "KL-9: an answer that breaks off is lost instead of delivered in part",
        |e| moves(e, "partial_result"), |ev, i| break_off(ev, i, "no_answer", "no_answer", "No answer was given.");
    "KL-9: a timeout ends the turn instead of a shorter context", |e| moves(e, "shorter_context"), |ev, i| {
        ev[i]["what"]["moved"]["on"] = json!("timeout");
        break_off(ev, i, "model_unavailable", "model_unavailable", "The language model did not respond.")
            && cut(ev, i, i + 1)
    };
    "KL-10: the state is stored only at the end of a turn",
        whole, |e, _| strike(e, "persisted", |p| p["state"] != "answered" && p["state"] != "ended" && p["state"] != "failed");
    "KL-10: the session is not restored in the next turn, in silence",
        whole, |e, _| flow(e, "thinking") && forget(e, |_| vec![]) && strike(e, "restored", |r| r.get("state").is_none());
    "KL-10: a fresh start after a failed restore is not told to the user", whole, |e, _| unnote(e, "session");
    "KL-11: the session's tokens are not summed up", whole, |e, _| entries(e, "used", |u| {
        u["session_input"] = u["input"].clone();
        u["session_output"] = u["output"].clone();
    });
    "KL-11: the user is not warned of the cost",
        whole, |e, _| unnote(e, "budget") && entries(e, "estimated", |x| x["warned"] = json!(false));
    "KL-11: the limit of tokens does not end the session", |e| moves(e, "budget_used_up"), |ev, i| {
        let Some(last) = pick(ev, |e| e["what"]["model_called"]["state"] == "answering").pop() else { return false };
        let (mut model, mut moved, end) = (ev[i].clone(), ev[i].clone(), end_of(ev, i));
        turn_to(&mut ev[i], "goal_met", "answering");
        cut(ev, i + 1, end);
        model["what"] = ev[last]["what"].clone();
        model["what"]["model_called"]["call"] = json!(find(ev, "model_called").len());
        moved["what"] = json!({"moved": {"from": "answering", "on": "answered", "to": "answered"}});
        ev.splice((i + 1)..=i, [model, moved]);
        answer(ev, i + 3, "") && reword(ev, i + 3, "In general, this depends on the product; its manual says more.")
    };
}
