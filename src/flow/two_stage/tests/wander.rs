//! Random model behaviour: every turn ends once, follows the state machine, calls the model at most twice, and shows no
//! data of another tenant.

use super::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn anything(random: &mut ChaCha8Rng) -> Says {
    let call = |random: &mut ChaCha8Rng| match random.random_range(0..6) {
        0..3 => (RETRIEVE_DOCUMENTS, json!({"query": "warranty months"})),
        3 => (RETRIEVE_DOCUMENTS, json!({"query": "zeppelin"})),
        4 => (RETRIEVE_DOCUMENTS, json!({"query": "warranty", "kb_id": "south"})),
        _ => ("web_search", json!({})),
    };
    match random.random_range(0..12) {
        0 => Says::Text("It is so [1]."),
        1 => Says::Text(REFUSAL),
        2 => Says::Refuses,
        3 => Says::Fails,
        4 => Says::Late,
        5 => Says::Ends("so", Finish::ContentFilter),
        6..8 => Says::Calls(vec![call(random), call(random), call(random)]),
        _ => Says::Calls(vec![call(random)]),
    }
}

#[test]
fn whatever_a_model_does_each_turn_ends_once_in_two_requests_at_most() {
    for seed in 0..400 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let model: Vec<Says> = (0..6).map(|_| anything(&mut random)).collect();
        let played = play("north", model, &["One?", "Two?", "Three?"]);
        assert_eq!(played.ends().len(), 3, "seed {seed}");
        assert!(played.requests.len() <= 6, "seed {seed}");
        for called in played.calls() {
            let ToolOutcome::Ok(result) = &called.outcome else { continue };
            let own = matches!(result, ToolResult::Search(search) if search.kb_id == "north");
            assert!(own, "seed {seed}");
        }
        let leaked =
            |request: &ChatRequest| request.messages.iter().any(|message| message.content.contains("60 months"));
        assert!(!played.requests.iter().any(leaked), "seed {seed}");
    }
}
