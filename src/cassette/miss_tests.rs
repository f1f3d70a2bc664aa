//! Tests of what a miss says.

use super::super::pool::Pool;
use super::super::tests::{PROFILE, conversation, exchange, header, lane, prompt, saved};
use super::*;
use serde_json::json;

const CHUNK: &str = "{\"chunks\":[{\"id\":\"kb-1\",\"text\":\"Refunds take 14 days.\"}]}";

/// The explanation for `now`, after `used` exchanges were taken.
fn miss(cassette: &Cassette, now: &Value, used: usize) -> Explanation {
    let pool = Pool::new(cassette);
    for exchange in &cassette.exchanges[..used] {
        pool.take("model", &exchange.key, |_| false);
    }
    let request = Request { profile: &PROFILE, method: "POST", path: "/chat/completions", body: now };
    let redactor = Redactor::default();
    let key = super::super::keys::key(request, &redactor);
    let taken = pool.take("model", &key, |_| false);
    assert!(!matches!(taken, Taken::Exchange(_)), "a hit");
    explain(cassette, "model", request, &key, (taken, &pool.unused()), &redactor, "ragcheck run x.yaml --mode record")
}

#[test]
fn one_word_of_the_system_prompt_is_shown_with_file_exchange_and_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let cassette = saved(&lane(), folder.path());
    let now = conversation(&prompt().replace("Always search", "Search"), &[]);
    let miss = miss(&cassette, &now, 0);
    assert_eq!(miss.message, "cassette miss: POST /chat/completions: system prompt changed");
    assert_eq!(
        miss.cause,
        "system prompt changed: - Always search the knowledge base first. + Search the knowledge base first."
    );
    let file = cassette.place();
    assert_eq!(
        miss.detail,
        [
            format!("nearest: {file} exchange 0: only the system prompt differs"),
            "- Always search the knowledge base first.".to_owned(),
            "+ Search the knowledge base first.".to_owned(),
            "re-record: ragcheck run x.yaml --mode record     (about 3 calls)".to_owned(),
        ]
    );
}

#[test]
fn an_edited_key_and_a_secret_in_the_prompt_are_told_as_what_they_are() {
    let mut edited = lane();
    let asked = edited.exchanges[0].request.clone().expect("recorded").body;
    edited.exchanges[0].key = "0".repeat(32);
    let told = miss(&edited, &asked, 0);
    assert!(
        told.message.ends_with("the recorded key is not that of its request: the recording was edited"),
        "{told:?}"
    );
    assert!(told.detail.iter().any(|line| line.contains("cassette rekey")), "{told:?}");
    let mut secret = lane();
    let request = secret.exchanges[0].request.as_mut().expect("recorded");
    request.body["messages"][0]["content"] = json!("Always search with [redacted:KEY].");
    let told = miss(&secret, &conversation("Always search with 0123456789.", &[]), 0);
    assert!(told.detail.iter().any(|line| line.starts_with("the request contains a secret")), "{told:?}");
}

#[test]
fn a_changed_passage_is_named() {
    let now = conversation(&prompt(), &[&CHUNK.replace("14", "30")]);
    let miss = miss(&lane(), &now, 1);
    assert_eq!(miss.message, "cassette miss: POST /chat/completions: knowledge changed: passage kb-1");
    assert_eq!(miss.detail[2..4], ["- Refunds take 14 days.", "+ Refunds take 30 days."]);
    let now = conversation(&prompt(), &[&CHUNK.replace("kb-1", "kb-9")]);
    assert!(self::miss(&lane(), &now, 1).cause.contains("- found kb-1 + found kb-9"));
    let now = conversation(&prompt(), &[r#"{"chunks":[]}"#]);
    assert!(self::miss(&lane(), &now, 1).cause.contains("- found kb-1 + found nothing"));
}

#[test]
fn model_tools_parameters_and_messages_are_told_apart() {
    let base = conversation(&prompt(), &[CHUNK]);
    let with = |pointer: &str, value: Value| {
        let mut body = base.clone();
        *body.pointer_mut(pointer).expect("there") = value;
        miss(&lane(), &body, 1).cause
    };
    assert_eq!(with("/model", json!("m-2")), "model changed: - m-1 + m-2");
    assert_eq!(
        with("/temperature", json!(0.5)),
        "parameter temperature changed: - temperature: 0.0 + temperature: 0.5"
    );
    assert_eq!(
        with("/tools/2/function/description", json!("Looks up.")).split(" - ").next(),
        Some("tool list changed:   tool tool_2, function.description:")
    );
    assert_eq!(with("/messages/1/content", json!("Return?")), "message 1 (user) changed: - Refund? + Return?");
    assert_eq!(with("/messages/3/content", json!("nothing")).split(':').next(), Some("message 3 (tool) changed"));
    let mut two = base.clone();
    two["model"] = json!("m-2");
    two["temperature"] = json!(1);
    assert_eq!(
        miss(&lane(), &two, 1).message,
        "cassette miss: POST /chat/completions: model and the parameter temperature changed"
    );
}

#[test]
fn the_names_of_models_and_tools_are_no_values_that_an_agent_generates() {
    let mut now = conversation(&prompt().replace("Always", "2024"), &[]);
    now["model"] = json!("model-2025");
    now["tools"][0]["function"]["name"] = json!("tool_2025");
    let missed = miss(&lane(), &now, 0).missed.expect("the nearest");
    let (before, now) = missed.bodies;
    assert_eq!((&before["tools"], before.get("model"), now.get("model")), (&now["tools"], None, None));
    assert_ne!(before, now, "the prompt may hold such a value");
    assert_eq!(missed.paths.0, missed.paths.1);
}

#[test]
fn messages_that_were_added_or_lost_are_not_told_as_one_that_changed() {
    let base = conversation(&prompt(), &[CHUNK]);
    let mut leaked = base.clone();
    let earlier = [json!({"role": "user", "content": "Lost?"}), json!({"role": "assistant", "content": "Yes."})];
    leaked["messages"].as_array_mut().expect("a list").splice(1..1, earlier);
    let told = miss(&lane(), &leaked, 1);
    assert_eq!(told.message, "cassette miss: POST /chat/completions: number of messages changed");
    assert!(told.detail[0].ends_with("only the number of messages differs"), "{told:?}");
    assert_eq!(told.detail[1..3], ["+ message 1 (user): Lost?", "+ message 2 (assistant): Yes."]);
    let mut turned = base.clone();
    turned["messages"].as_array_mut().expect("a list").swap(1, 3);
    let told = miss(&lane(), &turned, 1);
    assert_eq!(told.message, "cassette miss: POST /chat/completions: order of the messages changed");
    assert!(told.detail.iter().any(|line| line.contains("the results of parallel calls")), "{told:?}");
    leaked["messages"][5]["content"] = json!("nothing");
    let told = miss(&lane(), &leaked, 1);
    assert!(told.message.ends_with("message 1 (user) and 2 more and the number of messages changed"), "{told:?}");
}

#[test]
fn the_same_system_prompt_in_another_form_is_told_and_is_no_edited_recording() {
    let base = conversation(&prompt(), &[]);
    let told = |change: &dyn Fn(&mut Value)| {
        let mut body = base.clone();
        change(&mut body);
        miss(&lane(), &body, 0)
    };
    let parts = told(&|body| {
        let text = body["messages"][0]["content"].take();
        body["messages"][0]["content"] = json!([{"type": "text", "text": text}]);
    });
    let last = told(&|body| body["messages"].as_array_mut().expect("a list").rotate_left(1));
    for told in [&parts, &last] {
        assert_eq!(told.message, "cassette miss: POST /chat/completions: form of the system prompt changed");
        assert!(!told.detail.iter().any(|line| line.contains("rekey")), "{told:?}");
    }
    assert!(parts.cause.contains("content: - ") && parts.cause.contains("\"type\":\"text\""), "{}", parts.cause);
    assert_eq!(last.detail[1..3], ["- after 0 messages", "+ after 1 message"]);
}

#[test]
fn the_parts_that_differ_make_a_sentence_in_every_combination() {
    let of = |what: &str, only_length: bool| Difference { what: what.to_owned(), lines: Vec::new(), only_length };
    let (system, tools) = (of("the system prompt", false), of("the tool list", false));
    let (longer, knowledge) = (of("the conversation is longer", true), of("knowledge: passage kb-1", false));
    for (found, expected) in [
        (vec![system.clone()], "the system prompt differs"),
        (vec![of("the parameters a, b", false)], "the parameters a, b differ"),
        (vec![system.clone(), tools.clone()], "the system prompt and the tool list differ"),
        (vec![system.clone(), longer.clone()], "the system prompt differs, and the conversation is longer"),
        (
            vec![system.clone(), tools, longer],
            "the system prompt and the tool list differ, and the conversation is longer",
        ),
        (vec![system, knowledge], "the system prompt differs, and the knowledge differs: passage kb-1"),
    ] {
        assert_eq!(sentence(&found, "differs", "differ"), expected);
    }
}

#[test]
fn the_nearest_exchange_is_one_of_the_same_agent() {
    let mut lane = lane();
    let triage = conversation("You are the triage agent.", &[]);
    let long = conversation(&prompt(), &[CHUNK, "done", "more"]);
    lane.exchanges = vec![exchange(0, &triage, "{}"), exchange(1, &long, "{}")];
    let miss = miss(&lane, &conversation(&prompt(), &[]), 0);
    assert!(miss.message.ends_with(": the conversation is shorter"), "{miss:?}");
    assert!(miss.detail[0].contains("exchange 1: the conversation is shorter"), "{miss:?}");
}

#[test]
fn the_same_json_in_another_order_is_no_difference() {
    let base = conversation(&prompt(), &[r#"[{"id":"w1","text":"The Sprig has 24 months."}]"#]);
    let mut lane = lane();
    lane.exchanges = vec![exchange(0, &base, "{}")];
    let mut now = base.clone();
    now["messages"][3]["content"] = json!(r#"[{"text":"The Sprig has 24 months.","id":"w1"}]"#);
    now["model"] = json!("another");
    let miss = miss(&lane, &now, 0);
    assert!(miss.message.ends_with(": model changed"), "{miss:?}");
}

#[test]
fn the_same_json_with_other_white_space_says_so_and_blames_no_order() {
    for (recorded, now) in [
        (r#"{"id":"w1","n":[1,2]}"#, "{\n  \"id\": \"w1\",\n  \"n\": [1, 2]\n}"),
        (r#"{"id":"w1","score":0.20100729165871556}"#, r#"{"score": 0.20100729165871556, "id": "w1"}"#),
        (CHUNK, &CHUNK.replace(':', ": ")),
    ] {
        let mut lane = lane();
        lane.exchanges = vec![exchange(0, &conversation(&prompt(), &[recorded]), "{}")];
        let miss = miss(&lane, &conversation(&prompt(), &[now]), 0);
        let said = [format!("- {recorded}"), format!("+ {}", now.replace('\n', "⏎"))];
        assert_eq!(miss.detail[1..3], said, "{now}");
        assert!(miss.detail[3].starts_with("  the same JSON with other white space"), "{miss:?}");
        assert!(!miss.detail.iter().any(|line| line.contains("order")), "{miss:?}");
    }
    let mut lane = lane();
    lane.exchanges = vec![exchange(0, &conversation(&prompt(), &[r#"{"id":"w1","n":[1,2]}"#]), "{}")];
    let other = miss(&lane, &conversation(&prompt(), &[r#"{"id":"w1","n": [2,1]}"#]), 0);
    assert!(!other.detail.iter().any(|line| line.contains("the same JSON")), "{other:?}");
}

#[test]
fn a_deleted_exchange_is_named_whichever_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    for deleted in 0..2 {
        let whole = lane();
        let now = whole.exchanges[deleted].request.clone().expect("recorded").body;
        let mut document = saved(&whole, folder.path());
        let text = whole.to_text().expect("readable").0;
        let start = text.find(&format!("  - ordinal: {deleted}")).expect("there");
        let end = text.find(&format!("  - ordinal: {}", deleted + 1)).expect("there");
        let edited = format!("{}{}", &text[..start], &text[end..]);
        let blobs = folder.path().join("refunds/blobs");
        document = Cassette::parse(edited.into(), std::path::Path::new(&document.place()), &blobs).expect("loads");
        let miss = miss(&document, &now, 0);
        assert_eq!(miss.cause, format!("exchange {deleted} is missing from the cassette"), "{miss:?}");
    }
}

#[test]
fn a_repeated_request_and_a_longer_conversation_are_kinds_of_their_own() {
    let again = lane().exchanges[0].request.clone().expect("recorded").body;
    assert!(miss(&lane(), &again, 3).cause.starts_with("exhausted"));
    let longer = conversation(&prompt(), &[CHUNK, "done", "more"]);
    let longer = miss(&lane(), &longer, 3);
    assert!(longer.cause.starts_with("no exchange left"), "{longer:?}");
    assert!(longer.detail[1].contains("message 6 (assistant): calls knowledge_base_search"), "{longer:?}");
    let empty = Cassette::new(header(), Vec::new(), std::collections::BTreeMap::new());
    assert_eq!(miss(&empty, &again, 0).cause, "no exchange with the model service was recorded");
}

#[test]
fn a_recording_by_an_older_matcher_says_so() {
    let mut old = lane();
    old.header.profiles.insert(PROFILE.name.to_owned(), 0);
    let now = conversation("another prompt", &[]);
    assert!(miss(&old, &now, 0).cause.starts_with("recorded with version 0"));
}

#[test]
fn the_same_cause_in_two_lanes_is_the_same_text() {
    let mut other = lane();
    other.header.lane = "tool-rag.base.2".to_owned();
    other.exchanges = vec![exchange(0, &conversation(&prompt(), &[]), "{}")];
    let now = conversation(&prompt().replace("Always", "Never"), &[]);
    assert_eq!(miss(&lane(), &now, 0).cause, miss(&other, &now, 0).cause);
}
