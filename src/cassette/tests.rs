//! Writes, reads, edits and breaks a realistic lane.

use super::*;
use crate::platform::files;
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

pub(super) static PROFILE: Profile = Profile { name: "openai-chat", version: 1, drop: &["/user"], layout: &CHAT };

pub(super) static CHAT: Layout = Layout {
    model: Some("/model"),
    conversation: &["/messages"],
    system: Some(("role", &["system"])),
    tools: Some("/tools"),
    tool_names: &["/function/name"],
    role: "/role",
    text: "/content",
    calls: &[Place::at("/tool_calls/*/id").folded()],
    call_names: &[Place::at("/tool_calls/*/function/name")],
    results: &[Place::at("/tool_call_id").when("role", &["tool"]).folded()],
    ..Layout::NONE
};

pub(super) fn header() -> Header {
    Header {
        scenario: "refunds".to_owned(),
        case: "refund-03".to_owned(),
        lane: "tool-rag.base.1".to_owned(),
        recorded_at: "2026-02-11T09:14:03.25Z".parse().expect("a time"),
        recorded_from: BTreeMap::from([("model".to_owned(), "simulator".to_owned())]),
        recorder: "0.1.0".to_owned(),
        knowledge: "a1b2".to_owned(),
        seed: u64::MAX,
        subject: String::new(),
        take: 1,
        takes: BTreeMap::new(),
        profiles: BTreeMap::from([("openai-chat".to_owned(), 1)]),
        vars: BTreeMap::new(),
        spans: Vec::new(),
        stopping: None,
        held: None,
    }
}

pub(super) fn exchange(ordinal: u32, body: &Value, answer: &str) -> Exchange {
    exchange_by(&PROFILE, ordinal, body, answer)
}

pub(super) fn exchange_by(profile: &'static Profile, ordinal: u32, body: &Value, answer: &str) -> Exchange {
    let request = Request { profile, method: "POST", path: "/chat/completions", body };
    let outcome = Outcome::Response {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Bytes::from(answer.to_owned()),
        took: Duration::from_micros(812_345),
        rewritten: false,
        chunks: Vec::new(),
    };
    Exchange::of(ordinal, "model".to_owned(), request, outcome, &Redactor::default())
}

pub(super) fn prompt() -> String {
    format!("Always search the knowledge base first.\n{}", "Cite each source by its number.\n".repeat(20))
}

pub(super) fn conversation(prompt: &str, results: &[&str]) -> Value {
    let mut messages =
        vec![json!({"role": "system", "content": prompt}), json!({"role": "user", "content": "Refund?"})];
    for (index, result) in results.iter().enumerate() {
        let id = format!("call_{index}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "knowledge_base_search", "arguments": "{\"query\":\"refund\"}"}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    let tools: Vec<Value> = (0..4)
        .map(|n| json!({"type": "function", "function": {"name": format!("tool_{n}"), "description": "Finds. ".repeat(20)}}))
        .collect();
    json!({"model": "m-1", "messages": messages, "tools": tools, "tool_choice": "auto", "temperature": 0.0, "user": "u"})
}

pub(super) fn lane() -> Cassette {
    let prompt = prompt();
    let first = r#"{"id":"1","choices":[{"message":{"role":"assistant","content":null}}],"usage":{"total_tokens":7}}"#;
    let exchanges = vec![
        exchange(0, &conversation(&prompt, &[]), first),
        exchange(
            1,
            &conversation(&prompt, &["{\"chunks\":[{\"id\":\"kb-1\",\"text\":\"Refunds take 14 days.\"}]}"]),
            first,
        ),
        exchange(
            2,
            &conversation(&prompt, &["{\"chunks\":[{\"id\":\"kb-1\",\"text\":\"Refunds take 14 days.\"}]}", "done"]),
            "not json\n",
        ),
    ];
    let stages =
        BTreeMap::from([("knowledge".to_owned(), vec![Duration::from_micros(1200), Duration::from_micros(900)])]);
    Cassette::new(header(), exchanges, stages)
}

pub(super) fn saved(cassette: &Cassette, folder: &Path) -> Cassette {
    let (file, blobs) = (path(folder, "refunds", "refund-03", &"tool-rag.base.1"), blobs_dir(folder, "refunds"));
    cassette.save(&file, &blobs, &Redactor::default()).expect("saved");
    Cassette::load(&file, &blobs).expect("loaded")
}

#[test]
fn the_design_of_a_run_until_decided_stands_in_each_of_its_lanes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, blobs) = (folder.path().join("lane.yaml"), folder.path().join("blobs"));
    let design = StoppingDesign::new(12, 0.05, 0.025, vec!["refunds".into(), "orders".into()]);
    let header = Header { stopping: Some(design), ..header() };
    let cassette = Cassette::new(header.clone(), Vec::new(), BTreeMap::new());
    cassette.save(&file, &blobs, &Redactor::default()).expect("saved");
    assert_eq!(Cassette::load(&file, &blobs).expect("read").header, header);
}

/// The requests of a cassette, as they are after loading.
pub(super) fn sent(cassette: &Cassette) -> Vec<StoredRequest> {
    let requests = cassette.requests().into_iter();
    requests.map(|request| StoredRequest { layout: &Layout::NONE, ..request }).collect()
}

#[test]
fn a_saved_lane_loads_as_it_was_requests_included() {
    let folder = tempfile::tempdir().expect("a folder");
    let cassette = lane();
    let loaded = saved(&cassette, folder.path());
    assert_eq!(loaded.header, cassette.header);
    assert_eq!(loaded.stages, cassette.stages);
    for (loaded, recorded) in loaded.exchanges.iter().zip(&cassette.exchanges) {
        assert_eq!((&loaded.key, &loaded.drift, &loaded.outcome), (&recorded.key, &recorded.drift, &recorded.outcome));
        assert_eq!(loaded.request, None);
    }
    assert_eq!(loaded.requests(), sent(&cassette));
    let saved_again = tempfile::tempdir().expect("a folder");
    assert_eq!(saved(&loaded, saved_again.path()).to_text().expect("readable"), cassette.to_text().expect("readable"));
}

#[test]
fn members_of_bodies_that_are_called_request_and_response_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let body =
        json!({"model": "m-1", "messages": [{"functionResponse": {"response": {"request": 1}}}], "response": [2]});
    let answer = r#"{"request":{"a":1},"response":[{"request":"x"}]}"#;
    let cassette = Cassette::new(header(), vec![exchange(0, &body, answer)], BTreeMap::new());
    let loaded = saved(&cassette, folder.path());
    assert_eq!(loaded.exchanges[0].outcome, cassette.exchanges[0].outcome);
    assert_eq!(loaded.requests(), sent(&cassette));
}

#[test]
fn every_earlier_take_and_its_verdict_comes_back_and_what_was_not_noted_is_unknown() {
    let mut cassette = lane();
    assert_eq!(cassette.header.earlier_verdicts(), Vec::<String>::new());
    for verdict in [Some("FAIL"), None, Some("PASS")] {
        let (take, recorded_at) = (cassette.header.take, cassette.header.recorded_at);
        if let Some(verdict) = verdict {
            cassette.header.takes.insert(take, Take { recorded_at, verdict: verdict.to_owned() });
        }
        (cassette.header.take, cassette.header.takes) = cassette.header.next_take();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = saved(&cassette, folder.path());
    assert_eq!(loaded.header, cassette.header);
    assert_eq!(loaded.header.take, 4);
    assert_eq!(loaded.header.earlier_verdicts(), ["FAIL", "unknown", "PASS"]);
}

#[test]
fn a_lane_is_small_and_shares_its_prompt_and_tools() {
    let (text, blobs) = lane().to_text().expect("readable");
    assert_eq!(blobs.len(), 2);
    assert_eq!(blobs.iter().filter(|(_, text)| text.starts_with("Always search")).count(), 1);
    assert_eq!(text.matches("Refund?").count(), 1, "{text}");
    assert_eq!(text.matches("after:").count(), 2);
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("cassette-of-a-lane", text);
    });
}

#[test]
fn what_was_sent_beside_an_earlier_exchange_is_of_its_burst_and_comes_back_so_with_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cassette = lane();
    cassette.exchanges[2].beside = true;
    cassette.exchanges[2].at = Some(Duration::from_micros(1_250));
    let loaded = saved(&cassette, folder.path());
    assert_eq!(loaded.bursts(), [1, 2, 2]);
    assert_eq!(loaded.exchanges.iter().map(|one| one.at).collect::<Vec<_>>(), [None, None, cassette.exchanges[2].at]);
}

#[test]
fn members_named_like_the_parts_of_an_exchange_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = r#"{"request":{"id":"abc","q":[1,2]},"response":{"x":1},"hits":[{"request":"inner","v":3}]}"#;
    let body = json!({"model": "m-1", "messages": [], "response": {"format": "json"}, "request": {"u": 2}});
    let mut cassette = lane();
    cassette.exchanges = vec![exchange(0, &body, answer)];
    cassette.header.vars = BTreeMap::from([("request".to_owned(), vec!["R-1042".to_owned()])]);
    cassette.header.recorded_from.insert("request".to_owned(), "simulator".to_owned());
    let loaded = saved(&cassette, folder.path());
    assert_eq!(loaded.header, cassette.header);
    let Outcome::Response { body: replayed, .. } = &loaded.exchanges[0].outcome else { panic!("no response") };
    assert_eq!(String::from_utf8_lossy(replayed), answer);
    assert_eq!(loaded.requests()[0].body, body);
}

#[test]
fn every_outcome_comes_back() {
    let mut cassette = lane();
    let (took, after) = (Duration::from_micros(5), Duration::from_micros(6));
    cassette.exchanges[0].outcome = Outcome::ConnectionError { message: "reset\nby peer".to_owned(), took };
    cassette.exchanges[1].outcome = Outcome::Timeout { after };
    cassette.exchanges[2].outcome = Outcome::Abandoned { after };
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = saved(&cassette, folder.path());
    let outcomes = |cassette: &Cassette| cassette.exchanges.iter().map(|e| e.outcome.clone()).collect::<Vec<_>>();
    assert_eq!(outcomes(&loaded), outcomes(&cassette));
}

#[test]
fn the_arrival_of_a_streams_pieces_comes_back_and_must_fit_the_body() {
    let mut cassette = lane();
    let body = Bytes::from_static(b"data: {\"a\":1}\n\ndata: [DONE]\n\n");
    let chunks = vec![
        Chunk { at: Duration::from_micros(812), end: 9 },
        Chunk { at: Duration::from_micros(1990), end: body.len() },
    ];
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    let took = Duration::from_micros(2001);
    cassette.exchanges[0].outcome = Outcome::Response { status: 200, headers, body, took, rewritten: false, chunks };
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = saved(&cassette, folder.path());
    assert_eq!(loaded.exchanges[0].outcome, cassette.exchanges[0].outcome);
    let (text, _) = cassette.to_text().expect("readable");
    for (from, to, said) in [("[812, 9]", "[812, 900]", "out of order"), ("[812, 9]", "[812]", "a chunk is")] {
        assert!(text.contains(from), "{text}");
        let error = parse(&text.replace(from, to)).expect_err("refused");
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn parse(text: &str) -> Result<Cassette, CassetteError> {
    Cassette::parse(text.into(), Path::new("lane.yaml"), Path::new("blobs"))
}

#[test]
fn a_file_that_a_person_edited_still_loads() {
    let (text, _) = lane().to_text().expect("readable");
    let edited = text
        .replace("case: \"refund-03\"", "# looked at it\ncase: refund-03   # ours")
        .replace("total_tokens: 7", "total_tokens: 8");
    let cassette = parse(&edited).expect("loads");
    assert_eq!(cassette.header.case, "refund-03");
    assert!(cassette.edited && cassette.origin("simulator".to_owned()) == "simulator (edited by hand)");
    let again = parse(&cassette.to_text().expect("readable").0).expect("loads");
    assert!(again.edited, "written again by a program it is still edited");
    let Outcome::Response { body, .. } = &cassette.exchanges[0].outcome else { panic!("a response") };
    assert!(std::str::from_utf8(body).expect("text").ends_with("\"usage\":{\"total_tokens\":8}}"), "{body:?}");
}

#[test]
fn mistakes_in_a_file_are_told_with_line_and_column() {
    let (text, _) = lane().to_text().expect("readable");
    let line_of = |part: &str| text.lines().position(|line| line.contains(part)).expect("there") + 1;
    for (from, to, line, words) in [
        ("    key: ", "    kye: ", line_of("ordinal: 0"), "`key` is missing"),
        ("status: 200", "status: \"ok\"", line_of("status: 200"), "`status` must be a whole number"),
        ("status: 200", "status: 70000", line_of("status: 200"), "too large"),
        ("recorded_at: \"2026", "recorded_at: \"then", 5, "must be a quoted time"),
        ("profiles:", "profiles: }", line_of("profiles:"), ""),
    ] {
        let error = parse(&text.replacen(from, to, 1)).expect_err(to);
        let CassetteError::Broken { line: at, column, message, .. } = &error else { panic!("{error}") };
        assert_eq!(*at as usize, line, "{error}");
        assert!(*column >= 1);
        assert!(message.contains(words), "{error}");
    }
    assert!(matches!(parse(&text.replace("cassette: 2", "cassette: 3")), Err(CassetteError::Newer { version: 3, .. })));
    assert!(matches!(Cassette::load(Path::new("no/such.yaml"), Path::new("")), Err(CassetteError::Missing { .. })));
}

#[test]
fn a_cassette_with_a_secret_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cassette = lane();
    cassette.header.recorded_from.insert("model".to_owned(), "hunter2hunter2".to_owned());
    let redactor = Redactor::new([("MODEL_KEY".to_owned(), "hunter2hunter2".to_owned())]);
    let file = folder.path().join("lane.yaml");
    let error = cassette.save(&file, &folder.path().join("blobs"), &redactor).expect_err("refused");
    assert!(error.to_string().contains("MODEL_KEY"), "{error}");
    assert!(!file.exists() && !folder.path().join("blobs").exists());
}

#[test]
fn a_lane_ends_with_a_line_that_covers_origin_dates_latencies_and_takes() {
    let (text, _) = lane().to_text().expect("readable");
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("end: {exchanges: 3, digest: \"") && text.ends_with("\"}\n"), "{last}");
    let whole = parse(&text).expect("loads");
    assert!(whole.sealed && !whole.edited);
    let windows = parse(&text.replace('\n', "\r\n")).expect("loads");
    assert!(!windows.edited, "line ends are git's matter");
    for (from, to) in [
        ("took_us: ", "took_us: 1"),
        ("recorded_at: \"2026", "recorded_at: \"2025"),
        ("take: 1", "take: 2"),
        ("knowledge: [", "knowledge: [1"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        assert!(parse(&text.replacen(from, to, 1)).expect("loads").edited, "{from}");
    }
}

#[test]
fn a_file_of_the_first_format_is_refused_and_rekeying_converts_it() {
    let (text, _) = lane().to_text().expect("readable");
    let (body, _) = super::end::split(&text).expect("an end");
    let old = body.replacen("cassette: 2", "cassette: 1", 1);
    let refused = parse(&old).expect_err("refused").to_string();
    assert!(refused.contains("`ragcheck cassette rekey lane.yaml` converts it"), "{refused}");
    let folder = tempfile::tempdir().expect("a folder");
    let (file, blobs) =
        (path(folder.path(), "refunds", "refund-03", &"tool-rag.base.1"), blobs_dir(folder.path(), "refunds"));
    lane().save(&file, &blobs, &Redactor::default()).expect("saved");
    std::fs::write(&file, &old).expect("written");
    assert!(matches!(Cassette::load(&file, &blobs), Err(CassetteError::FirstFormat { .. })));
    let mut loaded = Cassette::load_to_convert(&file, &blobs).expect("loads");
    let rekeyed = loaded.rekey(|_| Some(&PROFILE)).expect("whole");
    assert!(rekeyed.sealed && rekeyed.keys.is_empty() && !rekeyed.is_empty());
    assert_eq!(loaded.to_text().expect("readable").0, text, "nothing but the version and the end is new");
}

#[test]
fn every_cut_of_a_file_is_an_error_that_names_it() {
    let (text, _) = lane().to_text().expect("readable");
    for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let error = parse(&text[..cut]).expect_err("a part passes for the whole").to_string();
        assert!(error.starts_with("lane.yaml"), "{cut}: {error}");
        if cut > text.find('\n').unwrap_or_default() + 1 {
            assert!(error.contains("cut off"), "{cut}: {error}");
        }
    }
}

#[test]
fn a_thousand_mutations_are_told_as_edited_or_refused_and_nothing_panics() {
    let (text, _) = lane().to_text().expect("readable");
    let original = parse(&text).expect("loads");
    let bytes = text.as_bytes();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (mut edited, mut refused) = (0, 0);
    for _ in 0..1000 {
        let mut changed = bytes.to_vec();
        let at = random(changed.len());
        match random(5) {
            0 => changed[at] = (random(96) + 32) as u8,
            1 => changed[at] ^= 1 << random(8),
            2 => _ = changed.remove(at),
            3 => changed.insert(at, b"\n \"':{}[]-#&*"[random(13)]),
            _ => {
                let end = (at + random(200)).min(changed.len());
                let piece = changed[at..end].to_vec();
                let place = random(changed.len());
                changed.splice(place..place, piece);
            }
        }
        if changed == bytes {
            continue;
        }
        let Ok(changed) = String::from_utf8(changed) else { continue };
        match parse(&changed) {
            Ok(cassette) if cassette.edited => edited += 1,
            Ok(cassette) => {
                assert_eq!(
                    (&cassette.header, &cassette.exchanges),
                    (&original.header, &original.exchanges),
                    "{changed}"
                );
            }
            Err(error) => {
                assert!(error.to_string().starts_with("lane.yaml"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(edited > 100 && refused > 100, "{edited} edited, {refused} refused");
}

#[test]
fn a_full_disk_is_recognised_behind_the_error_of_a_recording() {
    let write = |kind: io::ErrorKind| CassetteError::Write { path: "lane.yaml".into(), source: kind.into() };
    assert!(files::is_full_disk(&io::Error::other(write(io::ErrorKind::StorageFull))));
    assert!(!files::is_full_disk(&io::Error::other(write(io::ErrorKind::PermissionDenied))));
}
