//! Random model behaviour: every turn ends once and follows the state machine.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;

fn anything(random: &mut ChaCha8Rng) -> Says {
    let one = |random: &mut ChaCha8Rng| match random.random_range(0..11) {
        0..3 => (KNOWLEDGE_BASE_SEARCH, json!({"query": "battery warranty"})),
        3 => (KNOWLEDGE_BASE_SEARCH, json!({"query": "zeppelin"})),
        4 => (KNOWLEDGE_BASE_SEARCH, json!({"question": "battery"})),
        5 => (PERPLEXITY_SEARCH, json!({"query": "tariff"})),
        6 => (INDEX_KEYWORDS, json!({"keywords": GOOD_KEYWORDS, "query": "q", "perplexity_result_id": "result-1"})),
        7 => (
            INDEX_KEYWORDS,
            json!({"keywords": ["data", "news", "info"], "query": "q", "perplexity_result_id": "result-1"}),
        ),
        8 => (GENERATE_RESPONSE, inside()),
        9 => (GENERATE_RESPONSE, both()),
        _ => ("web_search", json!({})),
    };
    match random.random_range(0..12) {
        0 => Says::Text("words"),
        1 => Says::Refuses,
        2 => calls([one(random), one(random)]),
        3 => Says::AfterOneRetry(Box::new(calls([one(random)]))),
        _ => calls([one(random)]),
    }
}

#[test]
fn whatever_a_model_does_the_turn_ends_once_and_keeps_to_the_machine() {
    let mut taken = BTreeSet::new();
    for seed in 0..600 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut model: Vec<Says> = (0..16).map(|_| anything(&mut random)).collect();
        if seed % 3 == 0 {
            model.insert(0, search("battery"));
            model.insert(1, outside("tariff"));
        }
        let service = (0..4).map(|_| if random.random_bool(0.3) { Err(ErrorKind::Server) } else { Ok(()) }).collect();
        let enforcement = if seed % 2 == 0 { Enforcement::Feedback } else { Enforcement::Forced };
        let played = Play { service, enforcement, ..play(model) }.turns(&["One?", "Two?"]);
        assert_eq!(played.ends().len(), 2, "{}", played.story());
        taken.extend(played.events.iter().filter_map(|event| match &event.what {
            What::Moved(moved) => Some((moved.from.clone(), moved.on.clone(), moved.to.clone())),
            _ => None,
        }));
    }
    // Most of the machine is reached: the rest needs a failing model, a failing disk, or two answers at once.
    let declared = ToolRag.machine().transitions.len();
    assert!(taken.len() * 2 > declared, "{} of {declared}", taken.len());
}
