//! JSON within texts: maps of many languages have their members in another order in each process, and so has what an agent
//! writes from them, such as the result of a tool.

use crate::platform::distinct_json::Distinct;
use crate::platform::numbers;
use crate::platform::secrets::Redactor;
use serde_json::Value;

/// The body `now` with each text of JSON as `recorded` has it, where the two differ in the order of members alone; `None` if no
/// text does.
pub(crate) fn in_recorded_order(now: &Value, recorded: &Value, redactor: &Redactor) -> Option<Value> {
    match (now, recorded) {
        (Value::String(text), Value::String(known)) if text != known && is_document(known) => {
            let is_same = is_reordered(known, &redactor.redact(text));
            is_same.then(|| recorded.clone())
        }
        (Value::Array(items), Value::Array(known)) => {
            let ordered = |(place, (item, known)): (usize, _)| Some((place, in_recorded_order(item, known, redactor)?));
            let changed: Vec<(usize, Value)> = (0..).zip(items.iter().zip(known)).filter_map(ordered).collect();
            (!changed.is_empty()).then(|| {
                let mut items = items.clone();
                for (place, item) in changed {
                    items[place] = item;
                }
                items.into()
            })
        }
        (Value::Object(members), Value::Object(known)) => {
            let ordered =
                |(name, item): (&String, _)| Some((name.clone(), in_recorded_order(item, known.get(name)?, redactor)?));
            let changed: Vec<(String, Value)> = members.iter().filter_map(ordered).collect();
            (!changed.is_empty()).then(|| {
                let mut members = members.clone();
                members.extend(changed);
                members.into()
            })
        }
        _ => None,
    }
}

/// Whether a text may be a JSON object or list.
fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Whether two texts are one JSON object or list but for the order of members: numbers, escapes and spaces are the same.
fn is_reordered(one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        let mut letters = text.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    one.len() == other.len() && letters(one) == letters(other) && is_same_json(one, other)
}

/// Whether two texts are one JSON object or list, with the same numbers as written.
pub(super) fn is_same_json(one: &str, other: &str) -> bool {
    let read = |text: &str| {
        let document = numbers::as_written(text.as_bytes());
        serde_json::from_slice(&document).ok().map(|Distinct(value)| value)
    };
    is_document(one) && read(one).zip(read(other)).is_some_and(|(one, other)| is_equal(&one, &other))
}

/// Whether two documents are equal; texts in them that are JSON themselves may be reordered.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one == other || is_reordered(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value): (&String, _)| other.get(name).is_some_and(|other| is_equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn ordered(now: &Value, recorded: &Value) -> Option<Value> {
        in_recorded_order(now, recorded, &Redactor::default())
    }

    #[test]
    fn the_order_of_members_in_a_text_of_json_is_that_of_the_recording_however_long_its_numbers() {
        for (recorded, now) in [
            (r#"{"id":"w1","n":2}"#, r#"{"n":2,"id":"w1"}"#),
            (r#"[{"id":"w1","n":2},{"a":[1,2]}]"#, r#"[{"n":2,"id":"w1"},{"a":[1,2]}]"#),
            (r#"{"a":{"b":1,"c":"é"},"d":null}"#, r#"{"d":null,"a":{"c":"é","b":1}}"#),
            (r#"{"a":"{\"b\":1,\"c\":2}","d":3}"#, r#"{"d":3,"a":"{\"c\":2,\"b\":1}"}"#),
            (" {\"a\": 1, \"b\": 2}\n", " {\"b\": 2, \"a\": 1}\n"),
            (r#"{"id":"w1","score":0.20100729165871556}"#, r#"{"score":0.20100729165871556,"id":"w1"}"#),
            (r#"{"a":12345678901234567890123,"b":[1.50,1e400]}"#, r#"{"b":[1.50,1e400],"a":12345678901234567890123}"#),
        ] {
            assert_eq!(ordered(&json!(now), &json!(recorded)), Some(json!(recorded)), "{now}");
            let body =
                |text: &str, id: &str| json!({"m": [{"id": id, "said": "x"}, {"content": [{"text": text}]}], "n": 1});
            assert_eq!(ordered(&body(now, "b"), &body(recorded, "a")), Some(body(recorded, "b")), "{now}");
        }
    }

    #[test]
    fn what_differs_in_more_than_the_order_of_members_stays() {
        for (recorded, now) in [
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"[{"a":1},{"b":2}]"#, r#"[{"b":2},{"a":1}]"#),
            (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#),
            (r#"{"a":1,"b":2}"#, r#"{"b": 2,"a":1}"#),
            (r#"{"a":1.0,"b":2}"#, r#"{"b":2,"a":1e0}"#),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1,"a":1}"#),
            (r#"{"a":1,"a":2,"b":3}"#, r#"{"a":2,"b":3,"a":1}"#),
            (r#"{"a":123456789012345678901,"b":2}"#, r#"{"b":2,"a":123456789012345678902}"#),
            (
                r#"{"a":12345678901234567890123,"b":12345678901234567890132}"#,
                r#"{"a":12345678901234567890132,"b":12345678901234567890123}"#,
            ),
            // One double, written in two ways.
            (
                r#"{"a":0.10000000000000001,"b":0.10000000000000010}"#,
                r#"{"a":0.10000000000000010,"b":0.10000000000000001}"#,
            ),
            (r#"Found: {"a":1,"b":2}"#, r#"Found: {"b":2,"a":1}"#),
            (r#"{"a":1,"b":2} and more"#, r#"{"b":2,"a":1} and more"#),
            ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"),
            ("a b", "b a"),
            ("12", "21"),
        ] {
            assert_eq!(ordered(&json!(now), &json!(recorded)), None, "{now}");
        }
        assert_eq!(ordered(&json!({"a": "{}", "b": [1]}), &json!({"a": ["{}"], "b": "[1]"})), None);
    }

    #[test]
    fn a_text_with_a_secret_is_compared_as_it_was_recorded() {
        let redactor = Redactor::new([("KEY".to_owned(), "hunter2hunter2".to_owned())]);
        let recorded = json!({"said": r#"{"key":"[redacted:KEY]","n":2}"#});
        let now = json!({"said": r#"{"n":2,"key":"hunter2hunter2"}"#});
        assert_eq!(in_recorded_order(&now, &recorded, &redactor), Some(recorded));
    }

    proptest! {
        #[test]
        fn any_two_members_may_change_places(names in prop::collection::btree_map("[a-z]{1,3}", "[ -~]{0,6}", 2..6)) {
            let text = |members: &mut dyn Iterator<Item = (&String, &String)>| {
                json!(Value::Object(members.map(|(name, text)| (name.clone(), json!(text))).collect()).to_string())
            };
            let (recorded, now) = (text(&mut names.iter()), text(&mut names.iter().rev()));
            prop_assert_eq!(ordered(&now, &recorded), Some(recorded));
        }
    }
}
