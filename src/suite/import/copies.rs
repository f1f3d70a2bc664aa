//! Finds duplicate conversations in a log, and conversations with equal inputs.
//!
//! A duplicate has the messages of another conversation and also its id or its times; it is dropped. Other
//! conversations with equal inputs are repetitions of one case; outcomes never decide what is merged.

use super::record::Record;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Removes duplicates; returns the positions, from 1, of each duplicate and its original.
pub(super) fn drop_copies(records: &mut Vec<Record>) -> Vec<(usize, usize)> {
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut dropped = Vec::new();
    for place in 0..records.len() {
        let Some(text) =
            records[place].messages.as_ref().ok().map(|messages| Value::from(messages.clone()).to_string())
        else {
            continue;
        };
        let same = known.entry(text).or_default();
        match same.iter().find(|first| records[place].is_copy_of(&records[**first])) {
            Some(first) => dropped.push((place + 1, first + 1)),
            None => same.push(place),
        }
    }
    let mut place = 0;
    records.retain(|_| {
        place += 1;
        dropped.iter().all(|(copy, _)| *copy != place)
    });
    dropped
}

/// Digest of all user and system messages of a conversation, ignoring white space and letter case; `None` if there are
/// none or they cannot be read.
pub(super) fn input(record: &Record) -> Option<String> {
    let messages = record.messages.as_ref().ok()?;
    let mut said: Vec<(&str, String)> = Vec::new();
    for message in messages {
        let role = record.mapping.role(message.get("role").and_then(Value::as_str)?);
        if matches!(role, "user" | "system" | "developer") {
            let words = match message.get("content") {
                Some(Value::String(text)) => text.to_lowercase(),
                Some(other) => other.to_string().to_lowercase(),
                None => String::new(),
            };
            said.push((role, words.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    if !said.iter().any(|(role, _)| *role == "user") {
        return None;
    }
    let text = serde_json::to_string(&(said, &record.offered)).ok()?;
    Some(hex::encode(&Sha256::digest(text)[..8]))
}

/// Groups cases that are linked by conversations with equal inputs; returns the group of each case. `inputs` pairs a
/// case with the input of one of its conversations.
pub(super) fn shared(cases: usize, inputs: &[(usize, Option<String>)]) -> Vec<usize> {
    fn root(first: &[usize], mut case: usize) -> usize {
        while first[case] != case {
            case = first[case];
        }
        case
    }
    let mut first: Vec<usize> = (0..cases).collect();
    let mut of: BTreeMap<&str, usize> = BTreeMap::new();
    for (case, input) in inputs.iter().filter_map(|(case, input)| Some((*case, input.as_deref()?))) {
        let other = *of.entry(input).or_insert(case);
        let (one, other) = (root(&first, case), root(&first, other));
        first[one.max(other)] = one.min(other);
    }
    (0..cases).map(|case| root(&first, case)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;
    use crate::gate::evaluate;
    use crate::scenario::criteria::Estimand;
    use serde_json::json;

    fn talk(question: &str, answer: &str) -> Value {
        json!([{"role": "user", "content": question}, {"role": "assistant", "content": answer}])
    }

    fn imported(conversations: &[Value]) -> super::super::Imported {
        messages("log.json", json!(conversations).to_string().as_bytes(), None).expect("a file")
    }

    #[test]
    fn exact_copies_are_dropped_and_told_and_equal_talks_without_id_and_time_are_not() {
        let with = |id: &str, at: &str| json!({"messages": talk("q", "a"), "id": id, "created_at": at});
        let read = imported(&[with("x", "1"), with("x", "2"), with("y", "1"), with("z", "3")]);
        assert_eq!(read.copies, [(2, 1), (3, 1)], "the same id, the same times");
        assert_eq!(read.plan.trials.len(), 2);
        assert!(read.traces[0].notes.iter().any(|note| note.contains("exact copies")), "{:?}", read.traces[0].notes);
        let bare = imported(&[talk("q", "a"), talk("q", "a"), json!({"messages": talk("q", "b"), "id": "x"})]);
        assert!(bare.copies.is_empty());
        assert_eq!(bare.plan.trials.len(), 3);
        let other = imported(&[with("x", "1"), json!({"messages": talk("q", "b"), "id": "x", "created_at": "1"})]);
        assert!(other.copies.is_empty(), "other messages are no copy");
        let stamped =
            |at: u32| json!([{"role": "user", "content": "q", "timestamp": at}, {"role": "assistant", "content": "a"}]);
        assert_eq!(imported(&[stamped(1), stamped(1), stamped(2)]).copies, [(2, 1)], "times of messages");
    }

    #[test]
    fn conversations_with_the_same_input_are_repetitions_of_one_case_whatever_came_of_them() {
        let read = imported(&[talk("How?", "so"), talk("Why?", "so"), talk("how? ", "not so")]);
        let ids: Vec<&str> = read.plan.trials.iter().map(|trial| trial.id.as_str()).collect();
        let expected =
            ["conversation-1/imported.base.1", "conversation-1/imported.base.2", "conversation-2/imported.base.1"];
        assert_eq!(ids, expected.map(|id| format!("log/{id}")));
    }

    #[test]
    fn under_population_copies_of_one_question_are_one_case_and_under_fixed_suite_trials_that_do_not_differ() {
        let judged = |estimand: Estimand, question: &dyn Fn(u32) -> String| {
            let task = |number: u32| json!({"task_id": number, "messages": talk(&question(number), "a")});
            let mut read = imported(&(0..60).map(task).collect::<Vec<_>>());
            read.plan.criteria.estimand = estimand;
            let traces = read.traces.iter().cloned().map(Ok);
            evaluate(&read.plan, traces).expect("judged").criteria.remove(0)
        };
        let same = judged(Estimand::Population, &|_| "q".into());
        assert_eq!((same.n, same.clusters), (60, 1), "{}", same.sentence);
        assert_eq!(judged(Estimand::Population, &|number| format!("q{number}")).clusters, 60);
        let fixed = judged(Estimand::FixedSuite, &|_| "q".into());
        assert_eq!((fixed.n, fixed.clusters, fixed.distinct), (60, 60, 1), "{}", fixed.sentence);
    }

    #[test]
    fn cases_are_linked_through_any_conversation_that_they_share() {
        let said = |case: usize, input: &str| (case, Some(input.to_owned()));
        let inputs = [said(0, "a"), said(1, "b"), said(2, "b"), said(2, "a"), said(3, "c"), (4, None), (5, None)];
        assert_eq!(shared(6, &inputs), [0, 0, 0, 3, 4, 5]);
    }
}
