//! Defects of the flow `tool-rag`: its calls, its keywords and its retries.
use super::edit::{
    Events, after, answer, answered, at, before, break_off, calls, cite, cut, drop_step, each, end_of, flow, insert,
    is, pick, question, rejected, replace, retold, reword, same_turn, sources, text, tools, whole,
};
use serde_json::{Value, json};

pub const KB: &str = "knowledge_base_search";
pub const OUT: &str = "perplexity_search";
pub const INDEX: &str = "index_keywords";
pub const RESPOND: &str = "generate_response";
pub const NOTHING: &str = "I found nothing about this.";

/// Answers of this flow, by the ends of their turns.
pub fn answers(events: &Events) -> Vec<usize> {
    if flow(events, "knowledge_due") { answered(events) } else { vec![] }
}

/// The completion that asked for the call at `i`.
pub fn asked_by(events: &Events, i: usize) -> usize {
    before(events, i, is("model_called")).unwrap_or(i)
}

/// Removes the steps of the turn that called a tool, last first; returns the turn's new end.
pub fn without(events: &mut Events, end: usize, tool: &str) -> usize {
    let turn = events[end].clone();
    let calls = pick(events, |e| same_turn(e, &turn) && e["what"]["tool_called"]["tool"] == tool);
    each(events, calls, |ev, i| {
        let m = asked_by(ev, i);
        drop_step(ev, m)
    });
    pick(events, |e| same_turn(e, &turn) && is("turn_ended")(e))[0]
}

/// Lets a rejected call run with this result, and removes the corrected call of the same tool.
pub fn let_run(events: &mut Events, i: usize, result: impl Fn(&Value, &Value) -> Value) -> bool {
    let tool = events[i]["what"]["tool_called"]["tool"].clone();
    let ran = |e: &Value| e["what"]["tool_called"]["outcome"].get("ok").is_some();
    let good = after(events, i, |e| e["what"]["tool_called"]["tool"] == tool && ran(e));
    let Some(good) = good else { return false };
    let mut call = events[i]["what"]["tool_called"].clone();
    call["outcome"] = json!({"ok": result(&call["arguments"], &events[good]["what"]["tool_called"]["outcome"]["ok"])});
    call["call"] = events[good]["what"]["tool_called"]["call"].clone();
    call["took_us"] = events[good]["what"]["tool_called"]["took_us"].clone();
    events[good]["what"]["tool_called"] = call;
    retold(events, good);
    let m = asked_by(events, i);
    let retried = |e: &Value| e["what"]["retried"]["target"] == tool && e["what"]["retried"]["recovered"] == true;
    if let Some(r) = after(events, m, retried) {
        cut(events, r, r + 1);
    }
    drop_step(events, m)
}

/// A search as the rejected arguments ask for it, with the hits of the corrected one.
pub fn searched(arguments: &Value, ok: &Value) -> Value {
    let mut ok = ok.clone();
    let kind = if ok.get("search").is_some() { "search" } else { "external" };
    if let Some(query) = arguments["query"].as_str() {
        ok[kind]["query"] = json!(query);
    }
    ok
}

/// Keywords as the rejected arguments give them, stored like the corrected ones.
pub fn indexed(arguments: &Value, ok: &Value) -> Value {
    let mut ok = ok.clone();
    ok["indexed"]["keywords"] = arguments["keywords"].clone();
    ok["indexed"]["read_back"] = arguments["keywords"].clone();
    ok
}

/// Changes the hits of each search of the knowledge base, the message that shows them and the sources that they give.
pub fn hits(events: &mut Events, change: impl Fn(&mut Vec<Value>)) -> bool {
    each(events, tools(events, KB, "ok"), |ev, i| {
        let search = &mut ev[i]["what"]["tool_called"]["outcome"]["ok"]["search"];
        let old = search.clone();
        search["hits"].as_array_mut().into_iter().for_each(&change);
        search["without_learned"].as_array_mut().into_iter().for_each(&change);
        let (new, mut left, end) = (search.clone(), sources(ev, end_of(ev, i)), end_of(ev, i));
        let has = |s: &Value, id: &Value| s["hits"].as_array().is_some_and(|h| h.iter().any(|h| h["id"] == *id));
        left.retain(|s| has(&new, &s["id"]) || !has(&old, &s["id"]));
        if left.len() < sources(ev, end).len() {
            cite(ev, end, left);
        }
        old != new && retold(ev, i)
    })
}

/// Forgets all stored results: what is learned is not found, and an answer from nothing else says so.
fn unlearn(events: &mut Events) -> bool {
    each(events, answers(events), |ev, end| {
        sources(ev, end).iter().any(|s| at(s, "/id").starts_with("learned:")) && shrug(ev, end, NOTHING)
    }) | hits(events, |h| h.retain(|h| h["learned"].is_null()))
}

/// Whether the turn called a tool with success.
pub fn called(events: &Events, end: usize, tool: &str) -> bool {
    let ran = |e: &Value| e["what"]["tool_called"]["outcome"].get("ok").is_some();
    before(events, end, |e| e["what"]["tool_called"]["tool"] == tool && ran(e)).is_some()
}

/// Whether the turn needed the knowledge base alone, and no feedback.
pub fn plain(events: &Events, end: usize) -> bool {
    called(events, end, KB) && !called(events, end, OUT) && before(events, end, is("fed_back")).is_none()
}

/// Gives the turn this answer without sources.
pub fn shrug(events: &mut Events, end: usize, said: &str) -> bool {
    cite(events, end, vec![]);
    reword(events, end, said)
}

/// Ends turns at the first feedback of a step, instead of the retry.
pub fn no_retry(events: &mut Events, step: &str, kind: &str) -> bool {
    let at = pick(events, |e| e["what"]["fed_back"]["step"] == step && e["what"]["fed_back"]["tool"] != "nuclia_rag");
    each(events, at, |ev, i| {
        let done = break_off(ev, i, "given_up", kind, "No answer was given: a step is missing.");
        cut(ev, i, i + 1) && done
    })
}

mutants! {
    "FR-002: the search ignores top_k and returns only its best hit", whole, |e, _| hits(e, |h| h.truncate(1));
    "FR-002: the hits come with the worst first", whole, |e, _| hits(e, |h| h.reverse());
    "FR-002: hostile queries are searched instead of refused",
        |e| rejected(e, KB, "hostile"), |ev, i| let_run(ev, i, searched);
    "FR-002: an unknown kb_id falls back to the default base in silence",
        |e| rejected(e, KB, "unknown_kb"), |ev, i| let_run(ev, i, searched);
    "FR-005: hostile queries go to Perplexity", |e| rejected(e, OUT, "hostile"), |ev, i| let_run(ev, i, searched);
    "FR-003: questions are answered from memory, without a search", answers, |ev, end| {
        plain(ev, end) && {
            let end = without(ev, end, KB);
            let m = asked_by(ev, end);
            ev[m]["what"]["model_called"]["state"] = json!("knowledge_due");
            cite(ev, end, vec![])
        }
    };
    "FR-003: a forgotten search ends the turn at once, without a retry",
        whole, |e, _| no_retry(e, "knowledge_base", "mandatory_call_missing");
    "FR-002 (tailored queries): the user's words go to the knowledge base verbatim", |e| tools(e, KB, "ok"), |ev, i| {
        let (said, call) = (question(ev, i), &mut ev[i]["what"]["tool_called"]);
        call["arguments"]["query"] = json!(said);
        call["outcome"]["ok"]["search"]["query"] = json!(said);
        retold(ev, i)
    };
    "FR-005 (tailored queries): Perplexity gets the knowledge base's query", |e| tools(e, OUT, "ok"), |ev, i| {
        let (path, kb) = ("/what/tool_called/arguments/query", before(ev, i, calls(KB)).unwrap_or(i));
        let (query, old) = (at(&ev[kb], path), at(&ev[i], path));
        retold(ev, i);
        ev[i..].iter_mut().for_each(|e| replace(e, &old, &query));
        old != query
    };
    "FR-004: the model takes any hit as sufficient and never searches outside", answers, |ev, end| {
        unlearn(ev);
        if !called(ev, end, OUT) {
            return false;
        }
        let end = without(ev, end, INDEX);
        let end = without(ev, end, OUT);
        let inside: Vec<Value> = sources(ev, end).into_iter().filter(|s| s["kind"] == "internal").collect();
        let said = text(ev, end).split_once("Outside sources add:").map_or("", |(kb, _)| kb.trim()).to_string();
        cite(ev, end, inside);
        reword(ev, end, if said.is_empty() { NOTHING } else { &said })
    };
    "FR-006: Perplexity is asked although the knowledge base answers", answers, |ev, end| {
        if !plain(ev, end) || sources(ev, end).is_empty() {
            return false;
        }
        let m = asked_by(ev, before(ev, end, calls(RESPOND)).unwrap_or(end));
        let query = format!("{} explained", question(ev, end).trim_end_matches('?'));
        let keywords = json!(["greenhouse control", "grower manual", "controller settings"]);
        let found = json!({"result": "result-9", "query": query, "answer": text(ev, end), "citations": [],
            "model": "perplexity/sonar", "input_tokens": 70, "output_tokens": 60});
        let stored = json!({"result": "result-9", "keywords": keywords, "merged": [], "read_back": keywords});
        let index = json!({"keywords": keywords, "query": query, "perplexity_result_id": "result-9"});
        let out = (OUT, json!({"query": query}), json!({"external": found}), 1_100_000);
        insert(ev, m, out, ["judging", "external_answered", "keywords_due"]);
        insert(ev, m + 3, (INDEX, index, json!({"indexed": stored}), 900), ["keywords_due", "keywords_indexed", "judging"]);
        true
    };
    "FR-007: keywords are never indexed after an external answer", whole, |e, _| {
        each(e, answers(e), |ev, end| called(ev, end, INDEX) && without(ev, end, INDEX) < end) && unlearn(e) | true
    };
    "FR-007: generic keywords are accepted", |e| rejected(e, INDEX, "generic_keyword"), |ev, i| let_run(ev, i, indexed);
    "FR-007: the number and length of keywords are not checked",
        |e| rejected(e, INDEX, "length"), |ev, i| let_run(ev, i, indexed);
    "FR-008: stored results are never found again", whole, |e, _| unlearn(e);
    "FR-008: keywords are said to be indexed, but a look-up does not return the result",
        |e| tools(e, INDEX, "ok"), |ev, i| {
            ev[i]["what"]["tool_called"]["outcome"]["ok"]["indexed"]["read_back"] = json!([]);
            true
        };
    "FR-008: stored results displace all passages of the knowledge base", whole, |e, _| hits(e, |h| {
        if h.iter().any(|h| h["learned"].is_object()) {
            h.retain(|h| h["learned"].is_object());
        }
    });
    "FR-009: free text is delivered as the answer, without generate_response", answers, |ev, end| {
        let Some(i) = before(ev, end, calls(RESPOND)) else { return false };
        let (m, said) = (asked_by(ev, i), text(ev, end));
        let done = &mut ev[m]["what"]["model_called"]["reply"]["completion"];
        done["text"] = json!(said);
        done["calls"] = json!([]);
        done["finish"] = json!("stop");
        answer(ev, end, "");
        reword(ev, end, &said);
        cut(ev, i, i + 1)
    };
}
