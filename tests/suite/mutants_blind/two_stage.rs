//! Defects of the flow `two-stage`.
use super::edit::{
    Events, answer, answered, at, before, break_off, cite, each, end_of, flow, is, markers, moves, pick, retold,
    reword, shown, sources, text, tools, turn_to, whole,
};
use serde_json::{Value, json};

/// Answers of this flow.
fn answers(events: &Events) -> Vec<usize> {
    if flow(events, "retrieving") { answered(events) } else { vec![] }
}

/// Moves of this flow caused by an event.
fn ours(events: &Events, on: &str) -> Vec<usize> {
    if flow(events, "retrieving") { moves(events, on) } else { vec![] }
}

/// Changes each completion of a state, if the trial is of this flow.
fn models(events: &mut Events, state: &str, change: impl Fn(&mut Value)) -> bool {
    let stage = |e: &Value| state.is_empty() || e["what"]["model_called"]["state"] == state;
    let ours = flow(events, "retrieving");
    each(events, pick(events, |e| ours && is("model_called")(e) && stage(e)), |ev, i| {
        let old = ev[i].clone();
        ev[i]["what"].get_mut("model_called").into_iter().for_each(&change);
        old != ev[i]
    })
}

mutants! {
    "TT-1: stage 1 leaves the choice of the tool to the model",
        whole, |e, _| models(e, "retrieving", |m| m["tool_choice"] = json!("auto"));
    "TT-2: stage 2 may call tools", whole, |e, _| models(e, "answering", |m| m["tool_choice"] = json!("auto"));
    "TT-2: the answer has no numbers, and so no sources", answers, |ev, end| {
        let said = markers(&text(ev, end), |_| String::new());
        cite(ev, end, vec![]);
        reword(ev, end, &said)
    };
    "TT-2: the answer cites numbers that no passage has", answers, |ev, end| {
        let said = markers(&text(ev, end), |n| format!("[{}]", n + 5));
        reword(ev, end, &said) && cite(ev, end, vec![])
    };
    "TT-2: where the documents say nothing, the model answers from memory", |e| ours(e, "refused"), |ev, i| {
        turn_to(&mut ev[i], "answered", "answered");
        let end = end_of(ev, i);
        answer(ev, end, "") && reword(ev, end, "In most greenhouses about two per square metre a week are usual.")
    };
    "TT-3: all retrieved passages are listed as sources, cited or not", answers, |ev, end| {
        let Some(i) = before(ev, end, is("tool_called")) else { return false };
        let hits = ev[i]["what"]["tool_called"]["outcome"]["ok"]["search"]["hits"].as_array().cloned().unwrap_or_default();
        let source = |(h, n): (&Value, i32)| json!({"kind": "internal", "id": h["id"], "title": h["title"], "number": n});
        let all: Vec<Value> = hits.iter().zip(1..).map(source).collect();
        all.len() > sources(ev, end).len() && cite(ev, end, all)
    };
    "TT-4: stage 2 does not get the history", whole, |e, _| {
        let later = pick(e, |e| e["turn"] != 0 && e["what"]["model_called"]["state"] == "answering");
        let two = flow(e, "retrieving");
        each(e, later, |ev, i| two && shown(&mut ev[i]).is_some_and(|s| s.drain(1..s.len() - 3).count() > 0))
    };
    "TT-5: with two tenants at once, the second gets the documents of the first", whole, |e, _| {
        let mut found = tools(e, "retrieve_documents", "ok").into_iter().filter(|&i| e[i]["conversation"] == 0);
        let first = found.next().map(|i| e[i]["what"]["tool_called"]["outcome"].clone());
        let said = answers(e).into_iter().find(|&k| e[k]["conversation"] == 0).map(|end| (text(e, end), sources(e, end)));
        let (Some(found), Some((said, cited))) = (first, said) else { return false };
        each(e, tools(e, "retrieve_documents", "ok"), |ev, i| {
            let end = end_of(ev, i);
            if ev[i]["conversation"] == 0 || ev[i]["what"]["tool_called"]["outcome"] == found {
                return false;
            }
            let query = ev[i]["what"]["tool_called"]["arguments"]["query"].clone();
            ev[i]["what"]["tool_called"]["outcome"] = found.clone();
            ev[i]["what"]["tool_called"]["outcome"]["ok"]["search"]["query"] = query;
            retold(ev, i) && reword(ev, end, &said) && cite(ev, end, cited.clone())
        })
    };
    "TT-6: without a call in stage 1 the free text is the answer", |e| ours(e, "no_call"), |ev, i| {
        let m = before(ev, i, is("model_called")).unwrap_or(i);
        let said = at(&ev[m], "/what/model_called/reply/completion/text");
        let end = end_of(ev, i);
        turn_to(&mut ev[i], "answered", "answered");
        answer(ev, end, &said)
    };
    "TT-7: where nothing is found, stage 2 is left out and the turn fails", |e| ours(e, "nothing_found"), |ev, i| {
        break_off(ev, i, "stopped", "nothing_found", "No documents were found.")
    };
    "TT-9: the configured model is ignored", whole, |e, _| models(e, "", |m| {
        m.pointer_mut("/reply/completion/model").into_iter().for_each(|name| *name = json!("fernlight-sim-mini"));
    });
}
