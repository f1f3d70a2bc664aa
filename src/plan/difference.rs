//! Differences between two plans, for messages: place, old value, new value.

use crate::trace::text::clip;
use serde_json::Value;
use std::collections::BTreeSet;

/// Largest number of differences reported.
const TOLD: usize = 5;
/// Longest value, in characters.
const LONG: usize = 80;
/// Members that are not compared: they follow from the rest, or do not change what runs.
const IGNORED: [&str; 3] = ["id", "digest", "typed"];
/// A member that plans of older builds lack.
const NEWER: &str = "knowledge";

/// Differences between two plans (the JSON of `plan.json`), at most a few; empty if they are equal.
pub(crate) fn differences(before: &Value, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(before, now, &mut Vec::new(), &mut found);
    if found.len() > TOLD {
        let more = found.len() - TOLD;
        found.truncate(TOLD);
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(before: &Value, now: &Value, place: &mut Vec<String>, found: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let whole = place.is_empty();
            for key in keys.into_iter().filter(|key| !(whole && IGNORED.contains(&key.as_str()))) {
                place.push(key.clone());
                match (one.get(key), other.get(key)) {
                    (Some(one), Some(other)) => compare(one, other, place, found),
                    _ if whole && key == NEWER => {}
                    (one, other) => found.push(describe(place, one, other)),
                }
                place.pop();
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            if one.len() != other.len() {
                found.push(format!("{}: {} then, {} now", place.join("."), one.len(), other.len()));
                return;
            }
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                place.push(named(one).map_or_else(|| (index + 1).to_string(), |name| format!("`{name}`")));
                compare(one, other, place, found);
                place.pop();
            }
        }
        _ if before != now => found.push(describe(place, Some(before), Some(now))),
        _ => {}
    }
}

/// Name of an entry of a list.
fn named(entry: &Value) -> Option<&str> {
    let own = ["id", "name"].into_iter().find_map(|key| entry.get(key)?.as_str());
    own.or_else(|| entry.get("case")?.get("case")?.as_str())
}

fn describe(place: &[String], before: Option<&Value>, now: Option<&Value>) -> String {
    let text = |value: Option<&Value>| {
        value.map_or_else(|| "nothing".to_owned(), |value| clip(&value.to_string(), LONG).into_owned())
    };
    format!("{}: {} then, {} now", place.join("."), text(before), text(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_told_with_its_place_and_an_equal_plan_has_none() {
        let plan = |target: &str, trials: usize| {
            json!({
                "digest": target,
                "criteria": {"criteria": [{"id": "SC-001", "target": target}]},
                "scenarios": [{"name": "refunds", "cases": [{"line": 3, "case": {"case": "late", "ask": "why"}}]}],
                "trials": vec![json!({"id": "x"}); trials],
            })
        };
        assert!(differences(&plan("95%", 3), &plan("95%", 3)).is_empty());
        let found = differences(&plan("95%", 3), &plan("90%", 2));
        assert_eq!(found, ["criteria.criteria.`SC-001`.target: \"95%\" then, \"90%\" now", "trials: 3 then, 2 now"]);
        let mut newer = plan("95%", 3);
        newer["knowledge"] = json!({"bikes": "0a"});
        assert!(differences(&plan("95%", 3), &newer).is_empty(), "an older build does not say");
        let mut changed = newer.clone();
        changed["knowledge"]["bikes"] = json!("0b");
        assert_eq!(differences(&newer, &changed), ["knowledge.bikes: \"0a\" then, \"0b\" now"]);
        let mut other = plan("95%", 3);
        other["scenarios"][0]["cases"][0]["case"]["ask"] = json!("when");
        assert!(differences(&plan("95%", 3), &other)[0].starts_with("scenarios.`refunds`.cases.`late`.case.ask: "));
    }
}
