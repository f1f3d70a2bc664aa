//! Values of yesterday and today: the same requests, the same traces, the agent's own values back.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn patterns() -> Vec<Pattern> {
    let pattern = |name: &str, at: &str, expression: &str| Pattern {
        name: name.to_owned(),
        at: at.to_owned(),
        expression: Some(Regex::new(expression).expect("a pattern")),
    };
    vec![
        pattern("today", "/messages/0/content", r"Today is (\S+)\."),
        pattern("ticket", "/messages/*/content", r"T-\d+"),
    ]
}

fn conversation(day: &str, tickets: [&str; 2]) -> Value {
    json!({"messages": [
        {"role": "system", "content": format!("Today is {day}. Be brief.")},
        {"role": "tool", "content": format!("opened {} and {}", tickets[0], tickets[1])},
        {"role": "assistant", "content": null, "tool_calls": [{"arguments": format!("{{\"id\":\"{}\"}}", tickets[1])}]}]})
}

#[test]
fn an_integer_beyond_64_bits_is_a_value_and_a_number_again_for_a_live_service() {
    let at = Pattern { name: "id".to_owned(), at: "/id".to_owned(), expression: None };
    let body = |id: &str| numbers::read(format!("{{\"id\":{id}}}").as_bytes()).expect("JSON");
    let (today, before) = (body("123456789012345678901234567890"), body("223456789012345678901234567890"));
    let vars = Vars::new(vec![at.clone()], BTreeMap::new());
    let bound = vars.bind(&today);
    assert_eq!(bound, Vars::new(vec![at], BTreeMap::new()).bind(&before));
    assert_eq!(vars.unbind(&bound), today);
}

#[test]
fn other_values_in_the_same_places_are_the_same_request() {
    let recording = Vars::new(patterns(), BTreeMap::new());
    let bound = recording.bind(&conversation("2026-01-02", ["T-71", "T-72"]));
    assert_eq!(bound["messages"][0]["content"], "Today is {{today#0}}. Be brief.");
    assert_eq!(bound["messages"][2]["tool_calls"][0]["arguments"], "{\"id\":\"{{ticket#1}}\"}");
    assert_eq!(recording.unbind(&bound), conversation("2026-01-02", ["T-71", "T-72"]));
    assert_eq!(recording.values()["ticket"], ["T-71", "T-72"]);

    let replaying = Vars::new(patterns(), recording.values());
    assert_eq!(replaying.bind(&conversation("2027-12-31", ["T-9000", "T-9001"])), bound);
    assert_eq!(replaying.as_recorded(&bound), conversation("2026-01-02", ["T-71", "T-72"]));
    let answer = Bytes::from_static(b"{\"text\":\"T-72 on 2026-01-02\"}");
    assert_eq!(replaying.put_back(&answer, &replaying.recorded), "{\"text\":\"T-9001 on 2027-12-31\"}");
    assert_eq!(replaying.told("T-9001 on 2027-12-31"), "T-72 on 2026-01-02");
    assert_eq!(
        replaying.as_recorded(&serde_json::json!({"sources": ["T-9001"]})),
        serde_json::json!({"sources": ["T-72"]})
    );
}

#[test]
fn a_value_in_the_path_of_a_declared_service_is_bound_with_those_of_bodies() {
    let mut patterns = patterns();
    let expression = Some(Regex::new("/carts/([^/?]+)").expect("a pattern"));
    patterns.push(Pattern { name: "cart".to_owned(), at: IN_PATH.to_owned(), expression });
    let recording = Vars::new(patterns.clone(), BTreeMap::new());
    recording.bind(&conversation("2026-01-02", ["T-71", "T-72"]));
    let bound = recording.bind_path("/carts/c-8123/items?ticket=T-72");
    assert_eq!(bound, "/carts/{{cart#0}}/items?ticket={{ticket#1}}");
    assert_eq!(recording.told(&bound), "/carts/c-8123/items?ticket=T-72");
    let replaying = Vars::new(patterns, recording.values());
    replaying.bind(&conversation("2027-12-31", ["T-9000", "T-9001"]));
    assert_eq!(replaying.bind_path("/carts/c-9999/items?ticket=T-9001"), bound);
    assert_eq!(replaying.told(&bound), "/carts/c-8123/items?ticket=T-72", "a trace has the recorded path");
    let answer = replaying.put_back(&Bytes::from_static(b"cart c-8123"), &replaying.recorded);
    assert_eq!(answer, "cart c-9999");
}

#[test]
fn a_recorded_value_that_could_not_be_exchanged_is_understood_when_it_comes_back() {
    let recorded = BTreeMap::from([("today".to_owned(), vec!["2026-01-02".to_owned()])]);
    let vars = Vars::new(patterns(), recorded);
    vars.bind(&conversation("2027-12-31", ["T-7100", "T-7200"]));
    let echoed = vars.bind(&json!({"input": "2026-01-02"}));
    assert_eq!(echoed, json!({"input": "{{today#0}}"}));
}

#[test]
fn a_value_is_of_the_variable_that_finds_it_whatever_others_were_when_it_was_recorded() {
    let pattern = |name: &str, expression: &str| Pattern {
        name: name.to_owned(),
        at: "/messages/*/content".to_owned(),
        expression: Some(Regex::new(expression).expect("a pattern")),
    };
    let day = |day: u32| format!("2026-11-{day}");
    let apart = [("today", r"Today is (\S+);"), ("from", r"from (\S+)"), ("to", r"to (\S+)\.")];
    let apart: Vec<Pattern> = apart.map(|(name, expression)| pattern(name, expression)).into();
    // One variable for all dates, which come in a falling order, too.
    let one = vec![pattern("date", r"\d{4}-\d{2}-\d{2}")];
    for (patterns, [from, to]) in [(apart.clone(), [1, 5]), (apart, [0, 3]), (one.clone(), [1, 5]), (one, [5, 1])] {
        let asked = |today: u32| {
            let text = format!("Today is {}; from {} to {}.", day(today), day(today + from), day(today + to));
            let called = format!("ordered on {}", day(today + to));
            json!({"messages": [{"content": text}, {"role": "assistant", "tool_calls": [{"arguments": called}]}]})
        };
        let recording = Vars::new(patterns.clone(), BTreeMap::new());
        let bound = recording.bind(&asked(10));
        assert_eq!(recording.unbind(&bound), asked(10));
        for today in 10..20 {
            let replaying = Vars::new(patterns.clone(), recording.values());
            assert_eq!(replaying.bind(&asked(today)), bound, "{from}, {to}: {today}");
            assert_eq!(replaying.as_recorded(&bound), asked(10));
        }
    }
}

#[test]
fn values_that_were_equal_when_they_were_recorded_may_differ_later() {
    let pattern = |name: &str, expression: &str| Pattern {
        name: name.to_owned(),
        at: "/prompt".to_owned(),
        expression: Some(Regex::new(expression).expect("a pattern")),
    };
    let patterns = vec![pattern("today", r"Today is (\S+)\."), pattern("due", r"Due (\S+)\.")];
    let asked = |today: &str, due: &str| json!({"prompt": format!("Today is {today}. Due {due}. So {today}?")});
    let recording = Vars::new(patterns.clone(), BTreeMap::new());
    let bound = recording.bind(&asked("2026-11-29", "2026-11-29"));
    for (today, due) in [("2026-11-29", "2026-11-29"), ("2026-11-30", "2026-11-29"), ("2026-11-30", "2026-12-04")] {
        let replaying = Vars::new(patterns.clone(), recording.values());
        assert_eq!(replaying.bind(&asked(today, due)), bound, "{today} {due}");
    }
    // One after the other: a request has the slot of what was known by then.
    let each = [json!({"prompt": "Today is 2026-11-29."}), asked("2026-11-29", "2026-11-29")];
    let recording = Vars::new(patterns.clone(), BTreeMap::new());
    let bound_each = each.clone().map(|body| recording.bind(&body));
    for day in ["2026-11-29", "2026-11-30"] {
        let replaying = Vars::new(patterns.clone(), recording.values());
        let today = |body: &Value| serde_json::from_str(&body.to_string().replace("2026-11-29", day)).expect("JSON");
        assert_eq!(each.clone().map(|body| replaying.bind(&today(&body))), bound_each, "{day}");
    }
    let other = Vars::new(patterns, recording.values());
    assert_ne!(other.bind(&json!({"prompt": "Today is 2026-11-30. Due 2026-11-29. So 2026-12-01?"})), bound);
}

#[test]
fn a_value_that_comes_back_from_a_response_takes_no_number_of_its_own() {
    let recorded = BTreeMap::from([("ticket".to_owned(), ["T-71", "T-72", "T-73"].map(str::to_owned).into())]);
    let vars = Vars::new(patterns(), recorded);
    let said = |text: &str| vars.bind(&json!({"messages": [{"content": text}]}))["messages"][0]["content"].clone();
    assert_eq!(said("T-9001"), "{{ticket#0}}");
    vars.replayed.store(true, Ordering::SeqCst);
    assert_eq!(said("T-9001 T-71"), "{{ticket#0}} {{ticket#0}}");
    assert_eq!(said("T-72 T-9003"), "{{ticket#1}} {{ticket#2}}", "an id that the service made");
}

#[test]
fn the_numbers_of_values_do_not_depend_on_which_of_concurrent_requests_comes_first() {
    let expression = Regex::new(r"in (run-\w+)").ok();
    let run = Pattern { name: "run".into(), at: "/messages/*/content".into(), expression };
    let session = Pattern { name: "session".into(), at: "/session".into(), expression: None };
    let patterns = vec![run, session];
    let asked = |text: &str, day: &str| -> Value { serde_json::from_str(&text.replace("DAY", day)).expect("JSON") };
    for texts in [
        // Each has a value of its own; one has both.
        [r#"{"messages": [{"content": "a in run-DAY1"}]}"#, r#"{"messages": [{"content": "b in run-DAY2"}]}"#],
        [
            r#"{"messages": [{"content": "a in run-DAY1"}]}"#,
            r#"{"messages": [{"content": "b in run-DAY2, in run-DAY1"}]}"#,
        ],
        // No expression finds it in the second.
        [r#"{"messages": [{"content": "a in run-DAY1"}]}"#, r#"{"input": "b of run-DAY1."}"#],
        // Two variables find one value.
        [r#"{"session": "run-DAY1"}"#, r#"{"messages": [{"content": "a in run-DAY1"}]}"#],
    ] {
        let recording = Vars::new(patterns.clone(), BTreeMap::new());
        let bound = texts.map(|text| recording.bind(&asked(text, "41")));
        let before = bound.clone().map(|body| AskedBefore { service: "model".into(), path: "/x".into(), body });
        for order in [[0, 1], [1, 0]] {
            let replaying = Vars::new(patterns.clone(), recording.values()).knowing(before.clone().into());
            for which in order {
                let body = asked(texts[which], "77");
                let (_, known) = replaying.recognised("model", ("/x", &body)).expect("a recorded request");
                replaying.bind(&body);
                assert_eq!(known, bound[which], "{order:?}");
                assert_eq!(replaying.as_recorded(&known), asked(texts[which], "41"));
            }
            for other in ["c in run-771", "a in run-775 or so", "a in a hurry"] {
                let other = json!({"messages": [{"content": other}]});
                assert_eq!(replaying.recognised("model", ("/x", &other)), None, "{other}");
            }
        }
    }
}

#[test]
fn short_values_and_bytes_that_are_no_text_are_left_alone() {
    let at = Pattern { name: "id".into(), at: "/id".into(), expression: None };
    let vars = Vars::new(vec![at], BTreeMap::from([("id".into(), vec!["abcd".into()])]));
    assert_eq!(vars.bind(&json!({"id": "7", "text": "17"})), json!({"id": "7", "text": "17"}));
    assert!(matches!(vars.notes().as_slice(), [one] if one.contains("variable `id` is shorter than 4")));
    vars.bind(&json!({"id": "wxyz"}));
    let bytes = Bytes::from_static(b"\xffabcd");
    assert_eq!(vars.put_back(&bytes, &vars.recorded), bytes);
    assert_eq!(vars.put_back(&Bytes::from_static(b"abcd"), &vars.recorded), "wxyz");
}

#[test]
fn a_number_is_bound_and_becomes_a_number_again() {
    let pattern = |name: &str, at: &str| Pattern { name: name.into(), at: at.into(), expression: None };
    let patterns = vec![pattern("seed", "/seed"), pattern("at", "/sentAt")];
    let body = |seed: u64, at: f64| json!({"seed": seed, "sentAt": at, "n": 3, "text": format!("seed {seed}")});
    let recording = Vars::new(patterns.clone(), BTreeMap::new());
    let bound = recording.bind(&body(1_433_201_137, 1_795_861_281.25));
    assert_eq!((&bound["seed"], &bound["n"]), (&json!("{{seed#0:number}}"), &json!(3)));
    assert_eq!(recording.unbind(&bound), body(1_433_201_137, 1_795_861_281.25));
    assert_eq!(bound["text"], "seed {{seed#0}}", "a text that repeats it");
    let replaying = Vars::new(patterns, recording.values());
    assert_eq!(replaying.bind(&body(77_201, 1_795_899_999.5)), bound);
    assert_eq!(replaying.as_recorded(&bound), body(1_433_201_137, 1_795_861_281.25));
    let others = json!({"messages": [{"content": "budget 4096"}], "max_tokens": 4096, "metadata": {"limit": 5000}});
    let text = Pattern { expression: Regex::new(r"budget (\d+)").ok(), ..pattern("budget", "/messages/*/content") };
    let vars = Vars::new(vec![text, pattern("any", "/metadata/*")], BTreeMap::new());
    let bound = vars.bind(&others);
    assert_eq!((&bound["max_tokens"], &bound["metadata"]["limit"]), (&json!(4096), &json!(5000)), "{bound}");
}

#[test]
fn pointers_reach_through_lists_members_and_escapes() {
    let body = json!({"a/b": [{"c": "one"}, {"c": 2}, {"d": {"x": "two", "y": "three"}}]});
    for (at, found) in [
        ("/a~1b/0/c", vec!["one"]),
        ("/a~1b/*/c", vec!["one"]),
        ("/a~1b/2/d/*", vec!["two", "three"]),
        ("/none/*", vec![]),
    ] {
        let mut texts = Vec::new();
        find(&body, at.strip_prefix('/').map(|rest| rest.split('/')), &mut texts);
        assert_eq!(texts, found, "{at}");
    }
}

proptest! {
    #[test]
    fn binding_and_unbinding_gives_the_request_back(
        day in "[0-9]{4}-[0-9]{2}", first in 1000_u32..9999, second in 10_000_u32..99_999, other in "[a-zT0-9-]{0,12}",
    ) {
        let vars = Vars::new(patterns(), BTreeMap::new());
        let mut body = conversation(&day, [&format!("T-{first}"), &format!("T-{second}")]);
        body["other"] = json!(other);
        let bound = vars.bind(&body);
        prop_assert_eq!(vars.unbind(&bound), body);
    }
}
