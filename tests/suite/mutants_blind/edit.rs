//! Helpers shared by the mutants: finding events, and changing all traces of one thing at once.
use serde_json::{Value, json};

/// The events of one trial.
pub type Events = Vec<Value>;

/// Indices of the events of a kind.
pub fn find(events: &Events, kind: &str) -> Vec<usize> {
    pick(events, |e| e["what"].get(kind).is_some())
}

/// Indices of the events that satisfy a condition.
pub fn pick(events: &Events, test: impl Fn(&Value) -> bool) -> Vec<usize> {
    (0..events.len()).filter(|&i| test(&events[i])).collect()
}

/// Whether the trial is of the flow that has this state.
pub fn flow(events: &Events, state: &str) -> bool {
    events.iter().any(|e| e["what"]["model_called"]["state"] == state || e["what"]["moved"]["from"] == state)
}

/// Indices of the calls of a tool with an outcome (`ok`, `rejected`, …).
pub fn tools(events: &Events, tool: &'static str, outcome: &str) -> Vec<usize> {
    pick(events, |e| calls(tool)(e) && e["what"]["tool_called"]["outcome"].get(outcome).is_some())
}

/// Indices of the calls of a tool that were rejected for a cause.
pub fn rejected(events: &Events, tool: &'static str, cause: &str) -> Vec<usize> {
    pick(events, |e| calls(tool)(e) && e["what"]["tool_called"]["outcome"]["rejected"]["cause"] == cause)
}

/// Indices of the moves caused by an event.
pub fn moves(events: &Events, on: &str) -> Vec<usize> {
    pick(events, |e| e["what"]["moved"]["on"] == on)
}

/// Indices of the log's entries of a kind.
pub fn logs(events: &Events, entry: &str) -> Vec<usize> {
    pick(events, |e| e["what"]["logged"].get(entry).is_some() || e["what"]["logged"] == entry)
}

/// Indices of the ends of answered turns.
pub fn answered(events: &Events) -> Vec<usize> {
    pick(events, |e| e["what"]["turn_ended"]["outcome"].get("answered").is_some())
}

/// Edits at each index, from the last to the first, so that removals leave the other indices valid.
pub fn each(events: &mut Events, at: Vec<usize>, mut edit: impl FnMut(&mut Events, usize) -> bool) -> bool {
    at.into_iter().rev().fold(false, |changed, i| edit(events, i) | changed)
}

/// Edits at each of the places that are found first.
pub fn on(
    events: &mut Events,
    places: impl Fn(&Events) -> Vec<usize>,
    edit: impl FnMut(&mut Events, usize) -> bool,
) -> bool {
    let at = places(events);
    each(events, at, edit)
}

/// For edits of the whole trial.
pub fn whole(_: &Events) -> Vec<usize> {
    vec![0]
}

/// Whether two events belong to one turn.
pub fn same_turn(a: &Value, b: &Value) -> bool {
    a["conversation"] == b["conversation"] && a["turn"] == b["turn"]
}

/// Next event of the turn, after `i`, that satisfies a condition.
pub fn after(events: &Events, i: usize, test: impl Fn(&Value) -> bool) -> Option<usize> {
    (i + 1..events.len()).find(|&k| same_turn(&events[k], &events[i]) && test(&events[k]))
}

/// Nearest event of the turn, before `i`, that satisfies a condition.
pub fn before(events: &Events, i: usize, test: impl Fn(&Value) -> bool) -> Option<usize> {
    (0..i).rev().find(|&k| same_turn(&events[k], &events[i]) && test(&events[k]))
}

/// Whether the event is of a kind.
pub fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |e| e["what"].get(kind).is_some()
}

/// Whether the event is a call of a tool.
pub fn calls(tool: &'static str) -> impl Fn(&Value) -> bool {
    move |e| e["what"]["tool_called"]["tool"] == tool
}

/// Sets cause and target of a move.
pub fn turn_to(e: &mut Value, on: &str, to: &str) {
    e["what"]["moved"]["on"] = json!(on);
    e["what"]["moved"]["to"] = json!(to);
}

/// The text at a path of an event, or nothing.
pub fn at(e: &Value, path: &str) -> String {
    e.pointer(path).and_then(Value::as_str).unwrap_or_default().to_string()
}

/// End of the turn to which event `i` belongs.
pub fn end_of(events: &Events, i: usize) -> usize {
    after(events, i, is("turn_ended")).unwrap_or(i)
}

/// 12 hex digits that stand for a text, like those in `shown` and `history`.
pub fn digest(text: &str) -> String {
    let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, hash))[..12].to_string()
}

/// Changes each text in a value; returns whether one was changed.
fn texts(value: &mut Value, change: &impl Fn(&mut String) -> bool) -> bool {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().fold(false, |c, v| texts(v, change) | c),
        Value::Object(map) => map.values_mut().fold(false, |c, v| texts(v, change) | c),
        _ => false,
    }
}

/// Replaces a whole text wherever it occurs in a value.
pub fn replace(value: &mut Value, old: &str, new: &str) {
    texts(value, &|text| text == old && std::mem::replace(text, new.to_string()) != new);
}

/// Replaces a part of texts wherever it occurs in a value; returns whether it did.
pub fn replace_part(value: &mut Value, old: &str, new: &str) -> bool {
    texts(value, &|text| text.contains(old) && std::mem::replace(text, text.replace(old, new)) != *text)
}

/// Replaces a message's digest (or another whole text) in all events of the conversation from `i` on.
pub fn swap(events: &mut Events, i: usize, old: &str, new: &str) {
    let conversation = events[i]["conversation"].clone();
    events[i..].iter_mut().filter(|e| e["conversation"] == conversation).for_each(|e| replace(e, old, new));
}

/// The text of the answer that ends a turn.
pub fn text(events: &Events, end: usize) -> String {
    at(&events[end], "/what/turn_ended/outcome/answered/text")
}

/// The sources of the answer that ends a turn.
pub fn sources(events: &Events, end: usize) -> Vec<Value> {
    events[end]["what"]["turn_ended"]["outcome"]["answered"]["sources"].as_array().cloned().unwrap_or_default()
}

/// The user's message of the turn.
pub fn question(events: &Events, i: usize) -> String {
    before(events, i, is("turn_started")).map(|s| at(&events[s], "/what/turn_started/query")).unwrap_or_default()
}

/// Gives the history's last message a new digest, there and in all that later turns are shown.
fn new_history(events: &mut Events, end: usize, said: &str) {
    let history = &events[end]["what"]["turn_ended"]["history"];
    if let Some(old) = history.as_array().and_then(|h| h.last()).and_then(Value::as_str) {
        let old = old.to_string();
        swap(events, end, &old, &format!("assistant:{}", digest(said)));
    }
}

/// Changes the answer's text: in the call or completion that gave it, the end of the turn, the reply and the history.
pub fn reword(events: &mut Events, end: usize, new: &str) -> bool {
    if new == text(events, end) {
        return false;
    }
    let (call, completion) = ("/what/tool_called/arguments/answer", "/what/model_called/reply/completion/text");
    let gave = |e: &Value| calls("generate_response")(e) || e.pointer(completion).is_some();
    let gave = before(events, end, gave).filter(|&i| !at(&events[i], completion).contains("«artifact"));
    let plain = new.split("\n\nNote: ").next().unwrap_or(new);
    let places = [(gave.unwrap_or(end), call, new), (gave.unwrap_or(end), completion, plain)];
    let ended = [(end, "/what/turn_ended/outcome/answered/text", new), (end, "/what/turn_ended/reply/answer", new)];
    for (i, path, said) in places.into_iter().chain(ended) {
        events[i].pointer_mut(path).into_iter().for_each(|old| *old = json!(said));
    }
    new_history(events, end, new);
    true
}

/// Changes the answer's sources, and the flags that follow from them: in the call, the end of the turn and the reply.
pub fn cite(events: &mut Events, end: usize, sources: Vec<Value>) -> bool {
    let call = before(events, end, |e| e["what"]["tool_called"]["tool"] == "generate_response").unwrap_or(end);
    let has = |kind: &str| sources.iter().any(|s| s["kind"] == kind);
    for (i, path) in [(call, "tool_called/arguments"), (end, "turn_ended/outcome/answered"), (end, "turn_ended/reply")]
    {
        let place = events[i].pointer_mut(&format!("/what/{path}"));
        let Some(place) = place.filter(|p| p.get("sources").is_some()) else { continue };
        let old = place["sources"].as_array().cloned().unwrap_or_default();
        let known = |s: &Value| old.iter().find(|o| o["id"] == s["id"]).unwrap_or(s).clone();
        place["sources"] = sources.iter().map(known).collect();
        place["used_internal_kb"] = json!(has("internal"));
        place["used_external_kb"] = json!(has("external"));
    }
    true
}

/// Gives a turn another outcome and reply, and the history what was said.
fn finish(events: &mut Events, end: usize, outcome: Value, mut reply: Value, said: &str) -> bool {
    let ended = &mut events[end]["what"]["turn_ended"];
    ended["outcome"] = outcome;
    if ended.get("reply").is_some_and(|r| !r.is_null()) {
        reply["session_id"] = ended["reply"]["session_id"].clone();
        ended["reply"] = reply;
    }
    new_history(events, end, said);
    true
}

/// Ends a turn with an error in place of its answer.
pub fn fail(events: &mut Events, end: usize, kind: &str, message: &str) -> bool {
    let error = json!({"kind": kind, "message": message});
    finish(events, end, json!({"failed": error}), json!({"error": error}), message)
}

/// Ends a turn with an answer in place of its error.
pub fn answer(events: &mut Events, end: usize, said: &str) -> bool {
    let given = json!({"text": said, "sources": [], "used_internal_kb": false, "used_external_kb": false});
    let reply = json!({"answer": said, "sources": [], "confidence_score": null, "used_internal_kb": false,
        "used_external_kb": false});
    finish(events, end, json!({"answered": given}), reply, said)
}

/// Moves all later events of the conversation by a time.
fn shift(events: &mut Events, i: usize, by: i64) {
    let turn = events[i].clone();
    for e in events[i + 1..].iter_mut().filter(|e| e["conversation"] == turn["conversation"]) {
        e["at_us"] = json!((e["at_us"].as_i64().unwrap_or_default() + by).max(0));
    }
    let end = if events[i]["what"].get("turn_ended").is_some() { i } else { end_of(events, i) };
    if let Some(took) = events[end]["what"]["turn_ended"]["took_us"].as_i64() {
        events[end]["what"]["turn_ended"]["took_us"] = json!((took + by).max(0));
    }
}

/// Makes a model's or tool's call take longer.
pub fn delay(events: &mut Events, i: usize, extra: i64) -> bool {
    let kind = if events[i]["what"].get("model_called").is_some() { "model_called" } else { "tool_called" };
    let call = &mut events[i]["what"][kind];
    call["took_us"] = json!(call["took_us"].as_i64().unwrap_or_default() + extra);
    if let Some(last) = call["attempts"].as_array_mut().and_then(|a| a.last_mut()) {
        last["took_us"] = json!(last["took_us"].as_i64().unwrap_or_default() + extra);
    }
    shift(events, i, extra);
    true
}

/// Removes the events of one turn in a range of indices, numbers completions anew and closes the gap in time.
pub fn cut(events: &mut Events, from: usize, to: usize) -> bool {
    let first = events[from].clone();
    let time = |e: &Value| e["at_us"].as_i64().unwrap_or_default();
    let resumes = (to..events.len()).find(|&k| same_turn(&events[k], &first));
    let gap = resumes.map_or(0, |k| time(&events[k]) - time(&first));
    let mut k = 0..;
    events.retain(|e| !k.next().is_some_and(|k| (from..to).contains(&k)) || !same_turn(e, &first));
    let last = (0..from).rev().find(|&k| same_turn(&events[k], &first)).filter(|_| gap > 0);
    if let Some(k) = last {
        shift(events, k, -gap);
    }
    number(events);
    true
}

/// Numbers the completions anew, and the calls by them.
pub fn number(events: &mut Events) {
    let mut old: Vec<u64> = events.iter().filter_map(|e| e["what"]["model_called"]["call"].as_u64()).collect();
    old.sort_unstable();
    for e in events.iter_mut() {
        for kind in ["model_called", "tool_called"] {
            let place = e["what"][kind]["call"].as_u64().and_then(|c| old.iter().position(|o| *o == c));
            if let Some(p) = place {
                e["what"][kind]["call"] = json!(p);
            }
        }
    }
}

/// The messages shown to a completion.
pub fn shown(e: &mut Value) -> Option<&mut Vec<Value>> {
    e.pointer_mut("/what/model_called/shown").and_then(Value::as_array_mut)
}

/// Removes the completion at `m` with all that came of it, also from what later completions of the turn are shown.
pub fn drop_step(events: &mut Events, m: usize) -> bool {
    let stop = after(events, m, |e| is("model_called")(e) || is("turn_ended")(e));
    let Some(stop) = stop else { return false };
    let length = |i: usize| events[i]["what"]["model_called"]["shown"].as_array().map_or(0, Vec::len);
    let (from, to) = (length(m), length(stop));
    let turn = events[m].clone();
    for e in events[stop..].iter_mut().filter(|e| same_turn(e, &turn)) {
        if let Some(shown) = shown(e).filter(|s| from <= to && to <= s.len()) {
            shown.drain(from..to);
        }
    }
    let initial = first_state(events, &turn);
    cut(events, m, stop);
    let all = pick(events, |e| same_turn(e, &turn) && is("moved")(e));
    all.first().into_iter().for_each(|&i| events[i]["what"]["moved"]["from"] = initial.clone());
    for pair in all.windows(2) {
        events[pair[0]]["what"]["moved"]["to"] = events[pair[1]]["what"]["moved"]["from"].clone();
    }
    true
}

/// The state in which the turn began.
fn first_state(events: &Events, turn: &Value) -> Value {
    let first = events.iter().find(|e| same_turn(e, turn) && is("moved")(e));
    first.map(|e| e["what"]["moved"]["from"].clone()).unwrap_or_default()
}

/// After a change of a tool's result: gives its message a new digest in what later completions are shown.
pub fn retold(events: &mut Events, i: usize) -> bool {
    let Some(next) = after(events, i, is("model_called")) else { return true };
    let shown = events[next]["what"]["model_called"]["shown"].as_array();
    let old = shown.and_then(|s| s.iter().rev().filter_map(Value::as_str).find(|s| s.starts_with("tool:")));
    if let Some(old) = old.map(String::from) {
        let new = format!("tool:{}", digest(&events[i]["what"]["tool_called"]["outcome"].to_string()));
        swap(events, i, &old, &new);
    }
    true
}

/// Removes messages from all that is shown to completions from `i` on.
pub fn unshow(events: &mut Events, i: usize, gone: &[String]) {
    let hidden = |v: &Value| v.as_str().is_some_and(|s| gone.iter().any(|g| g == s));
    for e in &mut events[i..] {
        for path in ["/what/model_called/shown", "/what/logged/failure/context/shown"] {
            if let Some(shown) = e.pointer_mut(path).and_then(Value::as_array_mut) {
                shown.retain(|v| !hidden(v));
            }
        }
    }
}

/// Ends the turn right after event `i` with an error.
pub fn break_off(events: &mut Events, i: usize, on: &str, kind: &str, message: &str) -> bool {
    let end = end_of(events, i);
    let state = before(events, i + 1, is("moved")).map(|k| events[k]["what"]["moved"]["to"].clone());
    let state = state.unwrap_or_else(|| first_state(events, &events[i]));
    if end > i + 1 {
        cut(events, i + 1, end);
    }
    let mut moved = events[i].clone();
    moved["what"] = json!({"moved": {"from": state, "on": on, "to": "failed"}});
    let end = end_of(events, i);
    moved["at_us"] = events[end]["at_us"].clone();
    events.insert(end, moved);
    fail(events, end + 1, kind, message)
}

/// Replaces each `[n]` of a text by what is given for its number.
pub fn markers(text: &str, new: impl Fn(usize) -> String) -> String {
    let mut parts = text.split('[');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let Some((n, rest)) = part.split_once(']').and_then(|(n, rest)| Some((n.parse().ok()?, rest))) else {
            out = out + "[" + part;
            continue;
        };
        let marker = new(n);
        let kept = if marker.is_empty() { out.trim_end_matches(' ') } else { &out };
        out = format!("{kept}{marker}{rest}");
    }
    out
}

/// The first sentence of a text.
pub fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_string() + "."
}

/// Inserts a call, with its arguments, its result and its duration, and a move before the completion at `m`.
pub fn insert(events: &mut Events, m: usize, call: (&str, Value, Value, i64), moved: [&str; 3]) {
    let turn = events[m].clone();
    let (mut model, added) = (turn["what"]["model_called"].clone(), format!("tool:{}", digest(call.0)));
    let (length, n) = (model["shown"].as_array().map_or(0, Vec::len), model["call"].as_u64());
    for (k, e) in events.iter_mut().enumerate() {
        for kind in ["model_called", "tool_called"] {
            let later = e["what"][kind]["call"].as_u64().filter(|c| Some(*c) >= n);
            if let Some(c) = later {
                e["what"][kind]["call"] = json!(c + 1);
            }
        }
        let own = k >= m && same_turn(e, &turn);
        if let Some(shown) = shown(e).filter(|s| own && s.len() >= length) {
            shown.splice(length..length, [json!("assistant:e3b0c44298fc"), json!(added)]);
        }
    }
    model["state"] = json!(moved[0]);
    model["reply"]["completion"]["calls"] = json!([call.0]);
    let took = [0, model["took_us"].as_i64().unwrap_or_default(), call.3];
    let called = json!({"tool_called": {"call": n, "id": format!("call_more_{}", call.0), "tool": call.0,
        "arguments": call.1, "outcome": {"ok": call.2}, "took_us": call.3}});
    let moved = json!({"moved": {"from": moved[0], "on": moved[1], "to": moved[2]}});
    for (k, what) in [json!({"model_called": model}), called, moved].into_iter().enumerate() {
        let mut e = turn.clone();
        e["at_us"] = json!(e["at_us"].as_i64().unwrap_or_default() + took[..=k].iter().sum::<i64>());
        e["what"] = what;
        events.insert(m + k, e);
    }
    shift(events, m + 2, took.iter().sum());
}
