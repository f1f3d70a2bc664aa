//! Defects of the flow `managed-rag`.
use super::edit::{
    Events, answer, answered, at, before, break_off, cite, cut, each, end_of, find, flow, is, replace_part, retold,
    reword, sources, text, tools, whole,
};
use serde_json::{Value, json};

const ASK: &str = "nuclia_rag";
const NOTHING: &str = "I found nothing about this in the knowledge base.";

/// The service's answer of a call.
fn managed(e: &mut Value) -> Option<&mut Value> {
    e.pointer_mut("/what/tool_called/outcome/ok/search/managed")
}

/// What the model sees of the service's answer.
fn told(m: &Value) -> Vec<Option<&Value>> {
    let filter = ["/filter_applied", "/applied_filter", "/missing_filter_parameters"];
    let other = ["/status", "/learning_id", "/artifact/filename", "/artifact/version"];
    filter.iter().chain(&other).map(|path| m.pointer(path)).collect()
}

/// Changes each answer of the service, the message to the model, and what of it the user's answer embeds.
fn remake(events: &mut Events, change: impl Fn(&mut Value, &str)) -> bool {
    each(events, tools(events, ASK, "ok"), |ev, i| {
        let query = at(&ev[i], "/what/tool_called/arguments/query");
        let Some(m) = managed(&mut ev[i]) else { return false };
        let old = m.clone();
        change(m, &query);
        let new = m.clone();
        if told(&old) != told(&new) {
            retold(ev, i);
        }
        let (end, content) = (end_of(ev, i), |m: &Value| at(m, "/artifact/content").trim().to_string());
        let said = text(ev, end);
        if !content(&old).is_empty() && said.contains(&content(&old)) {
            reword(ev, end, &said.replace(&content(&old), &content(&new)));
            let lists =
                |m: &Value, s: &Value| m["sources"].as_array().is_some_and(|l| l.iter().any(|n| n["id"] == s["id"]));
            let kept = sources(ev, end).into_iter().filter(|s| lists(&new, s) || !lists(&old, s)).collect();
            cite(ev, end, kept);
        }
        old != new
    })
}

/// Replaces a part of all texts of this flow: artifacts, links, embeds, answers and replies.
fn rename(events: &mut Events, old: &str, new: &str) -> bool {
    flow(events, "asking") && {
        let changed = events.iter_mut().fold(false, |c, e| replace_part(&mut e["what"], old, new) | c);
        each(events, answered(events), |ev, end| {
            let said = text(ev, end);
            changed && reword(ev, end, &format!("{said} ")) && reword(ev, end, &said)
        });
        changed
    }
}

/// Places the markers anew: `place` gives the place, in characters, for the text and the start and end of a cited span.
fn place(m: &mut Value, place: impl Fn(&[char], usize, usize) -> usize) {
    let (text, content): (Vec<char>, _) = (at(m, "/text").chars().collect(), at(m, "/artifact/content"));
    let Some((_, list)) = content.split_once("\n\n## Sources").filter(|_| !text.is_empty()) else { return };
    let mut places: Vec<(usize, String)> = vec![];
    for c in m["citations"].as_array().into_iter().flatten() {
        let same = |s: &&Value| s["source"] == c["source"] && s["page"] == c["page"];
        let Some(known) = m["sources"].as_array().and_then(|s| s.iter().find(same)) else { continue };
        let marker = format!("[[{}]]({})", known["number"], known["link"].as_str().unwrap_or_default());
        for span in c["spans"].as_array().into_iter().flatten() {
            let edge = |k: &str| span[k].as_u64().unwrap_or_default() as usize;
            places.push((place(&text, edge("start"), edge("end")).min(text.len()), marker.clone()));
        }
    }
    places.sort();
    places.dedup();
    let mut body = String::new();
    for (k, c) in text.iter().map(Some).chain([None]).enumerate() {
        places.iter().filter(|(place, _)| *place == k).for_each(|(_, marker)| body.push_str(marker));
        body.extend(c);
    }
    m["artifact"]["content"] = json!(format!("{body}\n\n## Sources{list}"));
}

/// Removes a member of the service's answer.
fn remove(m: &mut Value, name: &str) {
    m.as_object_mut().map(|m| m.remove(name));
}

/// Changes the artifact's text.
fn content(m: &mut Value, change: impl Fn(&str) -> String) {
    if let Some(text) = m.pointer_mut("/artifact/content") {
        *text = json!(change(text.as_str().unwrap_or_default()));
    }
}

mutants! {
    "NU-1: output_filename_base is ignored", whole, |e, _| rename(e, "fernlight.md", "nuclia_answer.md");
    "NU-1: markers are links although plain ones are configured", whole, |e, _| remake(e, |m, _| {
        if m["artifact"]["content"].as_str().is_some_and(|c| c.contains("[1]") && !c.contains("[[1]]")) {
            place(m, |_, _, end| end);
        }
    });
    "NU-1: no audit data are sent", whole, |e, _| remake(e, |m, _| remove(m, "audit"));
    "NU-2: the query is sent without the rephrasing", whole, |e, _| remake(e, |m, query| m["asked"] = json!(query));
    "NU-2: a placeholder of the rephrasing is not filled in",
        whole, |e, _| remake(e, |m, _| _ = replace_part(&mut m["asked"], "Norway", "{country}"));
    "NU-3: the service is asked without citations", whole, |e, _| remake(e, |m, _| {
        m["citations"].is_array().then(|| remove(m, "citations"));
        remove(m, "sources");
        let plain = at(m, "/text");
        content(m, |_| plain.clone());
    });
    "NU-4: all markers are at the end of the text", whole, |e, _| remake(e, |m, _| place(m, |text, _, _| text.len()));
    "NU-4: the service's positions are taken as bytes", whole, |e, _| remake(e, |m, _| {
        if m["text"].as_str().is_some_and(|t| !t.is_ascii()) {
            let bytes = |text: &[char]| text.iter().map(|c| c.len_utf8()).sum::<usize>();
            place(m, |text, _, end| (0..text.len()).find(|&k| bytes(&text[..k]) >= end).unwrap_or(end));
        }
    });
    "NU-4: links open the page before, because the service counts from 0",
        whole, |e, _| (1..10).fold(false, |c, n| rename(e, &format!(".pdf#page={n}"), &format!(".pdf#page={}", n - 1)) | c);
    "NU-4: the artifact has no list of sources",
        whole, |e, _| remake(e, |m, _| content(m, |c| c.split("\n\n## Sources").next().unwrap_or_default().to_string()));
    "NU-5: links lead to the service instead of the gateway",
        whole, |e, _| rename(e, "/gateway/download/", "https://europe-1.nuclia.cloud/api/v1/kb/fernlight-box/resource/");
    "NU-5: links carry the service account's token",
        whole, |e, _| rename(e, ".pdf#page", ".pdf?eph-token=eyJhbGciOiJIUzI1NiJ9.e30.c2VjcmV0#page");
    "NU-6: each artifact has version 1", whole, |e, _| {
        let changed = remake(e, |m, _| {
            if m["artifact"].is_object() {
                m["artifact"]["version"] = json!(1);
            }
        });
        changed && (2..5).fold(true, |_, n| rename(e, &format!(".md:{n}»"), ".md:1»") | true)
    };
    "NU-6: the model retells the answer instead of embedding the artifact", |e| tools(e, ASK, "ok"), |ev, i| {
        let (end, said) = (end_of(ev, i), managed(&mut ev[i]).map(|m| at(m, "/text")).unwrap_or_default());
        let Some(m) = before(ev, end, is("model_called")).filter(|_| !said.is_empty() && !sources(ev, end).is_empty()) else {
            return false;
        };
        ev[m]["what"]["model_called"]["reply"]["completion"]["text"] = json!(said);
        reword(ev, end, &said) && cite(ev, end, vec![])
    };
    "NU-7: `no answer found` is reported as success, and the service's phrase is the answer",
        |e| tools(e, ASK, "ok"), |ev, i| {
            let Some(m) = managed(&mut ev[i]).filter(|m| m["status"] == "no_answer_found") else { return false };
            m["status"] = json!("success");
            let said = format!("The documents answer this. {}", at(m, "/text"));
            let end = end_of(ev, i);
            retold(ev, i) && answer(ev, end, "") && reword(ev, end, &said)
        };
    "NU-7: the filter is never sent", whole, |e, _| remake(e, |m, _| {
        m["filter_applied"].is_boolean().then(|| m["filter_applied"] = json!(false));
        remove(m, "applied_filter");
    });
    "NU-7: missing parameters of the filter are not named",
        whole, |e, _| remake(e, |m, _| remove(m, "missing_filter_parameters"));
    "NU-7: an error of the service is told as `nothing found`", |e| tools(e, ASK, "failed"), |ev, i| {
        let end = end_of(ev, i);
        ev[end]["what"]["turn_ended"]["outcome"].get("answered").is_some() && reword(ev, end, NOTHING)
    };
    "NU-3: without a call the turn fails at once, without a reminder", |e| find(e, "fed_back"), |ev, i| {
        let told = &ev[i]["what"]["fed_back"];
        told["tool"] == ASK && told["step"] == "knowledge_base" && {
            break_off(ev, i, "no_call", "no_tool_call", "No answer was given: the documents were not asked.")
        } && cut(ev, i, i + 1)
    };
}
