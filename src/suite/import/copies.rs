//! Finds duplicate conversations in a log, and conversations with equal inputs.
//!
//! A duplicate has the messages of another conversation, its id or its times, and its case, repetition, reward and model;
//! it is dropped. Two rewards of one id are a contradiction. Other conversations with equal inputs are repetitions of
//! one case; outcomes never decide what is merged.

use super::error::ConversationError;
use super::record::Record;
use super::shape;
use crate::trace::normalise::same_question;
use crate::trace::text::plural;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Removes duplicates; returns the positions, from 1, of each duplicate and its original. Conversations with one id and
/// different rewards become errors.
pub(super) fn drop_copies(records: &mut Vec<Record>) -> Vec<(usize, usize)> {
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let (mut dropped, mut contradictions) = (Vec::new(), Vec::new());
    for place in 0..records.len() {
        let Some(text) =
            records[place].messages.as_ref().ok().map(|messages| Value::from(messages.clone()).to_string())
        else {
            continue;
        };
        let same = known.entry(text).or_default();
        if let Some(first) = same.iter().find(|first| records[place].is_copy_of(&records[**first])) {
            dropped.push((place + 1, first + 1));
        } else {
            let others = same.iter().copied().filter(|other| records[place].contradicts(&records[*other]));
            contradictions.extend(others.flat_map(|other| [(place, other), (other, place)]));
            same.push(place);
        }
    }
    for (place, other) in contradictions {
        records[place].messages = Err(ConversationError::OtherReward { other: other + 1 });
    }
    let mut place = 0;
    records.retain(|_| {
        place += 1;
        dropped.iter().all(|(copy, _)| *copy != place)
    });
    dropped
}

/// Digest of what the user said in a conversation, ignoring white space and letter case; `None` if that is nothing or
/// cannot be read. Messages of the system and of tools, ids and settings are no part of it.
pub(super) fn input(record: &Record) -> Option<String> {
    let mut said: Vec<String> = Vec::new();
    let mut after_result = false;
    for message in record.messages.as_ref().ok()? {
        let Ok(read) = shape::recognise(message) else { continue };
        let is_whole = read.media.is_empty();
        for one in read.messages {
            let text = one.get("content").and_then(Value::as_str).unwrap_or_default();
            let role = record.mapping.role(one.get("role").and_then(Value::as_str).unwrap_or_default());
            let reminds = after_result && record.mapping.is_reminder(text);
            after_result = matches!(role, "tool" | "function") || reminds;
            if role == "user" && !reminds {
                // What a medium shows is not known: messages with other media are other messages.
                let words = if is_whole { text.to_owned() } else { message.to_string() };
                said.push(same_question(&words));
            }
        }
    }
    let text = serde_json::to_string(&said).ok().filter(|_| !said.is_empty())?;
    Some(hex::encode(&Sha256::digest(text)[..8]))
}

/// Leaves each record the digest of its session if another one has the same; returns a remark on how many have one.
pub(super) fn keep_shared_sessions(records: &mut [Record]) -> Option<String> {
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for session in records.iter().filter_map(|record| record.session.clone()) {
        *sizes.entry(session).or_default() += 1;
    }
    sizes.retain(|_, size| *size > 1);
    for record in records {
        let session = record.session.take().filter(|session| sizes.contains_key(session));
        record.session = session.map(|session| hex::encode(&Sha256::digest(session)[..8]));
    }
    let (traces, sessions) = (sizes.values().sum(), sizes.len());
    (sessions > 0).then(|| {
        let (of, each) = (plural(traces, "conversation"), plural(sessions, "session"));
        format!(
            "{of} are parts of {each}: the parts of one are not independent, and count together as one conversation"
        )
    })
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

    /// Places of the cases of its trials.
    fn cases(read: &super::super::Imported) -> Vec<usize> {
        read.plan.trials.iter().map(|trial| trial.case).collect()
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
    fn another_task_trial_reward_or_model_is_no_copy_and_two_rewards_of_one_trial_are_an_error() {
        let with = |more: Value| {
            let mut whole = json!({"messages": talk("q", "a"), "id": "x", "created_at": "1", "reward": 1});
            whole.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
            whole
        };
        for (one, other) in [
            (json!({"task_id": "a"}), json!({"task_id": "b"})),
            (json!({"task_id": "a", "trial": 1}), json!({"task_id": "a", "trial": 2, "reward": 0})),
            (json!({"model": "m"}), json!({"model": "n"})),
            (
                json!({"id": "sk-proj-a1B2a1B2a1B2a1B2a1B2a1B2a1B2", "created_at": null}),
                json!({"id": "sk-proj-Z9y8Z9y8Z9y8Z9y8Z9y8Z9y8Z9y8", "created_at": null}),
            ),
        ] {
            let read = imported(&[with(one), with(other.clone())]);
            assert_eq!((read.copies.len(), read.plan.trials.len()), (0, 2), "{other}");
            assert!(read.traces.iter().all(|trace| trace.end == crate::trace::TrialEnd::Completed), "{other}");
        }
        let read = imported(&[with(json!({})), with(json!({"reward": 0})), with(json!({"reward": 0}))]);
        assert_eq!(read.copies, [(3, 2)]);
        let told = read.summary();
        assert!(told.starts_with("2 traces: 0 complete, 2 broken") && told.contains("another reward"), "{told}");
    }

    #[test]
    fn conversations_with_the_same_input_are_repetitions_of_one_case_whatever_came_of_them() {
        let read = imported(&[talk("How?", "so"), talk("Why?", "so"), talk("how? ", "not so")]);
        assert_eq!(cases(&read), [0, 0, 1]);
        let repetitions: Vec<u32> = read.plan.trials.iter().map(|trial| trial.lane.repetition).collect();
        assert_eq!(repetitions, [1, 2, 1]);
        let reversed = imported(&[talk("Why?", "so"), talk("How?", "so")]);
        assert_eq!(reversed.traces[0].case, read.traces[2].case, "a question has one name in every log");
    }

    #[test]
    fn the_input_is_what_the_user_said_whatever_the_system_tools_and_ids_are_beside_it() {
        let user = json!({"role": "user", "content": "What is X?"});
        let answer = json!({"role": "assistant", "content": "r"});
        let use_tool = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "s", "input": {}}]});
        let result =
            |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "r"}]});
        let same = [
            json!([user, answer]),
            json!([{"role": "system", "content": "It is 10:01."}, user, answer]),
            json!([{"role": "system", "content": "It is 10:02."}, user, answer]),
            json!([user, use_tool("a"), result("a"), answer]),
            json!([user, use_tool("b"), result("b"), answer]),
            json!([{"type": "human", "content": "What is X?", "id": "m1"}, {"type": "ai", "content": "r"}]),
            json!({"messages": [user, answer], "tools": ["t1"]}),
            json!([{"role": "user", "content": [{"type": "text", "text": "What is X?", "cache_control": {"type": "ephemeral"}}]}, answer]),
            json!({"contents": [{"role": "user", "parts": [{"text": "What is X?"}]}, {"role": "model", "parts": [{"text": "r"}]}]}),
        ];
        assert_eq!(cases(&imported(&same)), [0; 9]);
        let gemini = |question: &str, task: Option<&str>| json!({"task_id": task, "contents": [{"role": "user", "parts": [{"text": question}]}, {"role": "model", "parts": [{"text": "r"}]}]});
        assert_eq!(cases(&imported(&[gemini("One?", None), gemini("Two?", None)])), [0, 1]);
        let tasks = imported(&[gemini("One?", Some("a")), gemini("Two?", Some("b")), gemini("one?", Some("c"))]);
        let inputs: Vec<&str> = tasks.plan.scenarios[0].cases.iter().map(|case| case.input.as_str()).collect();
        assert_eq!(inputs, ["a", "b", "a"]);
        let seen = |image: &str| json!([{"role": "user", "content": [{"type": "image", "source": image}]}, answer]);
        assert_eq!(cases(&imported(&[seen("x"), seen("y")])), [0, 1], "other images are other questions");
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
