//! Tests of the proposals for values that an agent generates.

use super::super::dated::Now;
use super::*;
use serde_json::json;

fn lines(before: &Value, now: &Value) -> Vec<String> {
    minted([(before, now)], &[], &[], &[]).iter().map(ToString::to_string).collect()
}

fn system(text: &str) -> Value {
    json!({"messages": [{"role": "system", "content": text}, {"role": "user", "content": "Where is it?"}]})
}

#[test]
fn dates_and_ids_in_a_prompt_are_declared_by_the_words_before_them_and_their_shape() {
    let before = system("Answer briefly.\nToday is 2026-11-23, ticket TK-71000.");
    let now = system("Answer briefly.\nToday is 2026-11-24, ticket TK-71001.");
    assert_eq!(
        lines(&before, &now),
        [
            r"today: {at: '/messages/0/content', match: 'Today is (\d{4}-\d{2}-\d{2})'}",
            r"ticket: {at: '/messages/0/content', match: 'ticket (TK-\d{5})'}",
        ]
    );
}

#[test]
fn every_proposed_expression_finds_both_values() {
    for (one, other) in [
        ("Session 0b5c1d2e-1111-4a4a-9b9b-0123456789ab begins", "Session f00dfeed-2222-4b4b-8c8c-ba9876543210 begins"),
        ("2026-11-23T10:00:00.123456 is now", "2026-11-24T09:59:01.000001 is now"),
        ("It's run 1771234 (a)", "It's run 20991 (a)"),
        ("{\"ticket\": \"T-1000\"}", "{\"ticket\": \"T-2001\"}"),
    ] {
        let found = minted([(&system(one), &system(other))], &[], &[], &[]);
        assert_eq!(found.len(), 1, "{one}: {found:?}");
        let expression = found[0].expression.as_deref().expect("part of a text");
        let expression = regex::Regex::new(expression).expect("sound");
        for text in [one, other] {
            let value = expression.captures(text).and_then(|found| found.get(1)).map(|value| value.as_str());
            assert!(value.is_some_and(|value| value.len() >= SHORTEST && text.contains(value)), "{text}: {expression}");
        }
    }
}

#[test]
fn an_expression_finds_later_values_too_whose_digits_and_length_differ_by_chance() {
    for (one, other, later) in [
        (
            "request 12345678-1111-4444-9999-0123456789ab",
            "request 87654321-2222-4333-8888-9876543210aa",
            "request 5a61e801-dd7b-47f8-8613-8bd05f8a5663",
        ),
        ("asked at 1795486781.373799", "asked at 1795486782.776822", "asked at 1795486783.5"),
        ("asked at 10:00:00.123456", "asked at 10:00:01.654321", "asked at 10:00:02.65432"),
    ] {
        let found = minted([(&system(one), &system(other))], &[], &[], &[]);
        let expression = found[0].expression.as_deref().expect("part of a text");
        let expression = regex::Regex::new(&format!("^{expression}$")).expect("sound");
        assert!([one, other, later].iter().all(|text| expression.is_match(text)), "{later}: {expression}");
    }
}

#[test]
fn a_whole_text_has_its_shape_and_a_list_is_named_by_a_star() {
    let body = |id: &str| json!({"thread": id, "messages": [{"content": format!("[{id}] a")}, {"content": format!("[{id}] b")}]});
    let found = lines(&body("7f3a91"), &body("00bc12"));
    assert_eq!(found[0], "thread: {at: '/thread', match: '^([0-9a-f]+)$'}");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[1].starts_with("content: {at: '/messages/*/content'") || found[1].contains("/messages/*/content"),
        "{found:?}"
    );
}

#[test]
fn a_value_beside_a_question_is_declared_for_every_question_and_every_turn() {
    let asked = "How long do I have to return a damaged battery?";
    let body =
        |question: &str, id: u64| json!({"messages": [{"role": "user", "content": format!("{question} sid={id}")}]});
    let (before, now) = (body(asked, 1_795_486_781_234), body(asked, 1_795_486_782_345));
    let found: Vec<String> = minted([(&before, &now)], &[], &[asked], &[]).iter().map(ToString::to_string).collect();
    assert_eq!(found, [r"sid: {at: '/messages/*/content', match: 'sid=(\d+)'}"]);
    let dated = json!({"input": format!("{asked} 2026-11-23")});
    let found: Vec<String> = holding([&dated], "2026-11-23", &[asked], &[]).iter().map(ToString::to_string).collect();
    assert_eq!(found, [r"input: {at: '/input', match: '\b(\d{4}-\d{2}-\d{2})$'}"]);
}

#[test]
fn other_words_and_short_counters_are_no_values() {
    for (one, other) in [("Turn 1", "Turn 2"), ("Search first.", "Always search first."), ("a", "b")] {
        assert_eq!(lines(&system(one), &system(other)), Vec::<String>::new(), "{one}");
    }
}

#[test]
fn an_amount_is_what_the_agent_says_and_a_time_or_a_counter_is_generated() {
    let generated = |one: &str, other: &str| {
        let found = minted([(&system(one), &system(other))], &[], &[], &[]);
        found.iter().any(|one| one.looks_generated)
    };
    for (one, other) in [
        ("You have $123.45.", "You have $223.45."),
        ("You have $1,123.45.", "You have $1,223.45."),
        ("It is 1200 €.", "It is 1300 €."),
        ("It costs 123.50 in all", "It costs 124.25 in all"),
    ] {
        assert!(!generated(one, other), "{one}");
    }
    for (one, other) in [
        ("run 1771234", "run 2177123"),
        ("at 1795486781.373799", "at 1795486782.776822"),
        ("on 2026-11-23", "on 2026-11-24"),
    ] {
        assert!(generated(one, other), "{one}");
    }
}

#[test]
fn values_in_paths_and_numbers_are_declared_and_short_numbers_are_settings() {
    let paths = ["/carts/c81a2f00/items?q=a", "/carts/99b10c7d/items?q=a"].map(str::to_owned);
    let [before, now] = paths;
    let found = minted([], &[(before, now)], &[], &[]);
    assert_eq!(found[0].to_string(), r"carts: {at: path, match: '/carts/([0-9a-f]+)'}");
    let body = |seed: u64, most: u64| json!({"seed": seed, "max_tokens": most});
    let found = minted([(&body(1_433_201_137, 1_024), &body(99_120_001, 2_048))], &[], &[], &[]);
    let found: Vec<(String, bool)> = found.iter().map(|one| (one.to_string(), one.looks_generated)).collect();
    let expected = [("max-tokens: {at: '/max_tokens'}", false), ("seed: {at: '/seed'}", true)];
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(expected.iter().all(|(line, is)| found.contains(&((*line).to_owned(), *is))), "{found:?}");
}

#[test]
fn a_date_of_today_is_found_as_a_whole_word() {
    let long = holding([&system("It is November 3, 2026 today.")], "November 3, 2026", &[], &[]);
    assert_eq!(long[0].expression.as_deref(), Some(r"It is (\p{L}+ \d{1,2}, \d{4})"));
    let body = system("Order 12026-11-230 was placed.\nToday is 2026-11-23.");
    for (today, tomorrow) in [
        ("Friday, 27 November 2026", "Saturday, 28 November 2026"),
        ("Monday, 2026-11-30", "Tuesday, 2026-12-01"),
        ("Mon Nov 30", "Tue Dec 01"),
    ] {
        let found = holding([&system(&format!("Now: {today} in Oslo."))], today, &[], &[today]);
        let expression = found[0].expression.as_deref().expect("an expression");
        let expression = regex::Regex::new(expression).expect("a sound one");
        for day in [today, tomorrow] {
            let text = format!("Now: {day} in Oslo.");
            assert_eq!(
                expression.captures(&text).map(|found| found[1].to_owned()),
                Some(day.to_owned()),
                "{expression}"
            );
        }
    }
    let both = system("Today is Friday, 27 November 2026 (2026-11-27).");
    let dates = ["Friday, 27 November 2026", "27 November 2026", "2026-11-27"];
    let found: Vec<usize> = dates.iter().map(|date| holding([&both], date, &[], &dates).len()).collect();
    assert_eq!(found, [1, 0, 1], "the shorter one stands within the longer");
    let found: Vec<String> = holding([&body], "2026-11-23", &[], &[]).iter().map(ToString::to_string).collect();
    assert_eq!(found, [r"today: {at: '/messages/0/content', match: 'Today is (\d{4}-\d{2}-\d{2})'}"]);
}

#[test]
fn a_date_in_words_is_one_value_whose_expression_finds_the_next_days_and_months() {
    for (one, other, later) in [
        ("Saturday, 28 November 2026, 23:58", "Sunday, 29 November 2026, 09:12", "Tuesday, 1 December 2026, 9:12"),
        ("28 November 2026, 23:58", "28 November 2026, 23:59", "1 May 2027, 00:00"),
        ("November 28, 2026", "November 29, 2026", "December 1, 2026"),
        ("Saturday 28 November", "Sunday 29 November", "Tuesday 1 December"),
        ("11/28/2026", "12/1/2026", "1/10/2027"),
        ("11/28/2026, 11:58:00 PM", "11/29/2026, 9:12:44 AM", "1/1/2027, 12:00:00 PM"),
        ("28. November 2026", "1. Dezember 2026", "12. Mai 2027"),
        ("Sat Nov 28 2026 11:58 PM", "Sun Nov 29 2026 9:12 AM", "Tue Dec 1 2026 10:00 AM"),
        ("Sat Nov 28 2026 23:58:02 GMT+0000", "Sun Nov 29 2026 09:12:44 GMT+0000", "Tue Dec 01 2026 10:00:00 GMT+0100"),
        ("Sat, 28 Nov 2026 23:58:02", "Sun, 29 Nov 2026 09:12:44", "Tue, 01 Dec 2026 10:00:00"),
        ("Sat Nov 28 23:58:02 2026", "Sun Nov 29 09:12:44 2026", "Tue Dec 11 10:00:00 2026"),
        ("11:58 PM", "9:12 AM", "12:00 PM"),
        ("Nov. 28th, 2026 at 23:58", "Nov. 29th, 2026 at 9:12", "May 1st, 2027 at 10:00"),
        ("28 Nov 2026", "29 Nov 2026", "1 May 2027"),
        ("02:13 PM on 11/28/2026", "09:14 AM on 11/29/2026", "1:10 PM on 1/1/2027"),
        (
            "Sat Nov 28 2026 23:58:02 GMT+0100 (Central European Standard Time)",
            "Sun Nov 29 2026 09:12:44 GMT+0100 (Central European Standard Time)",
            "Tue Dec 01 2026 10:00:00 GMT-0500 (EST)",
        ),
        ("2026-11-28T23:58:02+01:00", "2026-11-29T09:12:44+01:00", "2026-12-01T10:00:00-05:00"),
        ("2026-11-28T23:58:02.123Z", "2026-11-29T09:12:44.5Z", "2026-12-01T10:00:00.000+01:00"),
        ("2026-11-28 23:58", "2026-11-29 09:12", "2026-12-01 10:00"),
        ("Samstag, 28. November 2026 um 23:58", "Sonntag, 29. November 2026 um 09:12", "Dienstag, 1. Mai 2027 um 9:12"),
        ("November 2026", "January 2027", "May 2027"),
        // Another place writes it in another way.
        ("11/28/2026, 2:10:20 PM", "29.11.2026, 14:10:20", "1.12.2026, 9:10:20"),
        ("28/11/2026", "29.11.2026", "1/12/2026"),
    ] {
        let text = |date: &str| format!("You help 3 shops of 2019. Today is {date}. Within 30 days.");
        let found = minted([(&system(&text(one)), &system(&text(other)))], &[], &[], &[]);
        assert!(found.len() == 1 && found[0].looks_generated, "{one}: {found:?}");
        let expression = regex::Regex::new(found[0].expression.as_deref().expect("an expression")).expect("sound");
        for date in [one, other, later] {
            let value = expression.captures(&text(date)).map(|found| found[1].to_owned());
            assert_eq!(value.as_deref(), Some(date), "{expression}");
        }
    }
}

#[test]
fn the_present_date_and_time_are_recognised_in_any_form() {
    let days = [28, 29].map(|day| jiff::civil::date(2026, 11, day)).into();
    let now = Now { days, times: vec![jiff::civil::time(14, 12, 0, 0)] };
    for (text, found) in [
        ("Today is 29 Nov 2026.", vec!["29 Nov 2026"]),
        ("Heute ist Sonntag, der 29. November 2026!", vec!["29. November 2026"]),
        ("Nous sommes le dimanche 29 novembre 2026", vec!["dimanche 29 novembre 2026"]),
        ("domingo, 29 de noviembre de 2026, 14:10", vec!["domingo, 29 de noviembre de 2026, 14:10"]),
        ("It is 02:13 PM on 11/29/2026.", vec!["02:13 PM on 11/29/2026"]),
        ("at 2026-11-29T03:00:00-05:00, or 2026-11-29 14:10", vec!["2026-11-29T03:00:00-05:00", "2026-11-29 14:10"]),
        ("Sun Nov 29 2026 15:10:20 GMT+0100 (CET), be brief", vec!["Sun Nov 29 2026 15:10:20 GMT+0100 (CET)"]),
        ("It is 2:10 PM, we close at 18:00 and 2:10 AM", vec!["2:10 PM"]),
        ("It is 2:10 PM.", vec!["2:10 PM"]),
        ("now 14:12:59 of 14:13 and 14:06", vec!["14:12:59"]),
        ("on 29 Oct 2026, 29 reports, Nov 29, 29/12/2026, 1 November 2026, November 2026", vec![]),
        ("order 2026-11-290, 12026-11-29 and version 29.11.2", vec![]),
    ] {
        assert_eq!(now.in_text(text), found, "{text}");
    }
    let opening = Now { times: vec![jiff::civil::time(9, 1, 0, 0)], ..now };
    assert_eq!(opening.in_text("Open 9:00 to 18:00. It is 9:00:00."), ["9:00:00"], "opening hours");
}

#[test]
fn an_expression_for_ids_of_random_letters_finds_those_with_other_signs() {
    for (one, other, later) in [
        ("abC1dEf-2hI", "xYz9-kLm-3w", "_-lB_irp4L-"),
        ("a8FkQ2z", "Zb91xQ_", "-q9_Zb-"),
        ("a8Fk-Q2z9", "Zb91-Qw3x", "q9ZbKw"),
        ("-8FkQ2z_", "Zb91xQ", "q9ZbKw"),
        ("sess-a8FkQ2z", "sess-Zb91xQ", "sess-q9_Z-bKw"),
    ] {
        let text = |id: &str| format!("Request {id} by user.");
        let found = minted([(&system(&text(one)), &system(&text(other)))], &[], &[], &[]);
        let expression = regex::Regex::new(found[0].expression.as_deref().expect("an expression")).expect("sound");
        for id in [one, other, later] {
            let value = expression.captures(&text(id)).map(|found| found[1].to_owned());
            assert_eq!(value.as_deref(), Some(id), "{expression}");
        }
    }
}

#[test]
fn a_word_beside_a_date_is_no_part_of_it() {
    for (one, other) in [
        ("refund allowed 2026-11-28", "refund denied 2026-11-29"),
        ("We have 12 tickets 2026 left", "We have 14 places 2026 left"),
    ] {
        let found = minted([(&system(one), &system(other))], &[], &[], &[]);
        assert!(found.iter().all(|one| !one.looks_generated || !one.value.contains(' ')), "{found:?}");
    }
}

#[test]
fn what_looks_like_a_part_of_a_date_stays_what_it_is() {
    for (one, other, line) in [
        ("room 7, session 48121", "room 7, session 90377", r"session (\d+)"),
        ("Decision 12, ticket TK-71000", "Decision 12, ticket TK-71001", r"ticket (TK-\d{5})"),
        ("run 2019 of 28 May 2020, id 48121", "run 2019 of 28 May 2020, id 90377", r"id (\d+)"),
        ("see /docs/11/28 at 1795486781234", "see /docs/11/28 at 1795486782345", r"/docs/11/28 at (\d+)"),
        ("it took 3.478 s", "it took 9.114 s", r"took (\d+\.\d+)"),
        ("at 23:58 in Oslo", "at 09:12 in Oslo", r"at (\d{2}:\d{2})"),
    ] {
        let found = minted([(&system(one), &system(other))], &[], &[], &[]);
        let expressions: Vec<_> = found.iter().filter_map(|one| one.expression.as_deref()).collect();
        assert_eq!(expressions, [line], "{one}");
    }
}
