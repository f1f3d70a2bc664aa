//! Random model behaviour: every turn ends once and follows the state machine, no version replaces another, and no
//! answer embeds an artifact that was never created.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn anything(random: &mut ChaCha8Rng) -> Says {
    let call = |random: &mut ChaCha8Rng| match random.random_range(0..8) {
        0..4 => (NUCLIA_RAG, json!({"query": "warranty"})),
        4 => (NUCLIA_RAG, json!({"query": "zeppelin"})),
        5 => (NUCLIA_RAG, json!({"query": "broken"})),
        6 => (NUCLIA_RAG, json!({"q": 1})),
        _ => ("web_search", json!({})),
    };
    match random.random_range(0..14) {
        0 => Says::Text("It is so [1]."),
        1 => Says::Text(REFUSAL),
        2 => Says::Text(" "),
        3..6 => Says::Text("«artifact_content:nuclia_answer.md»"),
        6 => Says::Text("«artifact_content:nuclia_answer.md:1»"),
        7 => Says::Text("«artifact_content:other.md:9»"),
        8 => Says::Refuses,
        9 => Says::Fails,
        10 => Says::Late,
        11 => Says::Calls(vec![call(random), call(random), call(random)]),
        _ => Says::Calls(vec![call(random)]),
    }
}

#[test]
fn whatever_a_model_does_each_turn_ends_once_within_its_calls_and_keeps_every_version() {
    let mut ends = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let model: Vec<Says> = (0..24).map(|_| anything(&mut random)).collect();
        let limits = Limits { model_calls: 6, ..Limits::default() };
        let played = Stage { limits, ..Stage::default() }.play(model, &["One?", "Two?", "Three?"]);
        assert_eq!(played.ends().len(), 3, "seed {seed}");
        assert!(played.requests.len() <= 18, "seed {seed}");
        ends.extend(played.ends().into_iter().map(str::to_owned));
        let versions: Vec<u32> = ManagedRag.artifacts(&played.conversation).iter().map(|one| one.version).collect();
        assert_eq!(versions, (1..=versions.len() as u32).collect::<Vec<_>>(), "seed {seed}");
        for answer in played.answers() {
            assert!(!answer.text.contains("artifact_content"), "seed {seed}: {}", answer.text);
            assert_eq!(answer.used_internal_kb, answer.text.contains("24 months"), "seed {seed}: {}", answer.text);
        }
    }
    let all = [
        "answered", "model_calls_exhausted", "model_unavailable", "no_answer", "no_artifact", "no_tool_call",
        "refused", "timeout",
    ];
    assert_eq!(ends.iter().map(String::as_str).collect::<Vec<_>>(), all);
}
